// Tests of FuseSteps: which nodes are fused, and that results keep every bit.
#include <algorithm>
#include <atomic>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/node.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/proto/step_stats.pb.h"
#include "gradflow/runtime/plan/passes.h"
#include "gradflow/runtime/plan/plan.h"
#include "gradflow/runtime/session/client_session.h"
#include "gradflow/runtime/session/options.h"
#include "gradflow/testing/status_matchers.h"
#include "gradflow/testing/tensor_matchers.h"
#include "gradflow/testing/tensors.h"
#include "tests/runtime/plan/plan_labels.h"

namespace gradflow {
// Other tests of this folder have functions of the same names.
namespace fusing_test {
namespace {

using ::absl::StatusCode;
using ::gradflow::testing::AsTensor;
using ::gradflow::testing::RandomTensor;
using ::gradflow::testing::StatusIs;
using ::gradflow::testing::TensorEq;
using ::testing::AllOf;
using ::testing::HasSubstr;

using Build = std::function<Output(const Scope& s, const Output& x)>;

Output Constant(const Scope& s, const TensorShape& shape, uint32_t seed, double low = -1,
                double high = 1) {
  return ops::Const(s, RandomTensor(DT_FLOAT, shape, low, high, seed));
}
Output Conv(const Scope& s, const Output& x, int in, int out, int size = 3, int stride = 1,
            uint32_t seed = 1) {
  return ops::Conv2D(s, x, Constant(s, {size, size, in, out}, seed), {1, stride, stride, 1},
                     "SAME");
}
Output Bias(const Scope& s, const Output& x, int channels) {
  return ops::BiasAdd(s, x, Constant(s, {channels}, 11));
}
Output Norm(const Scope& s, const Output& x, int channels, bool is_training = false) {
  return ops::FusedBatchNormV3(s, x, Constant(s, {channels}, 12), Constant(s, {channels}, 13),
                               Constant(s, {channels}, 14), Constant(s, {channels}, 15, 0.25, 2),
                               ops::FusedBatchNormV3::IsTraining(is_training))
      .y;
}

class FusingTest : public ::testing::Test {
 protected:
  // Returns the labels of the fused nodes of a plan, such as "FusedConv2D(Conv2D, BiasAdd)".
  std::vector<std::string> Fused(const std::vector<Output>& fetches) {
    PlanOptions options;
    options.eliminate_common_subexpressions = false;
    options.max_folded_bytes = 0;
    options.fold_batch_norms = folds_;
    return PlanLabels(scope_, x_, fetches, options);
  }

  absl::StatusOr<std::vector<Tensor>> Run(const std::vector<Output>& fetches, const Tensor& x,
                                          bool fuse, int threads = 2) {
    SessionOptions options;
    options.config.set_intra_op_parallelism_threads(threads);
    options.config.set_inter_op_parallelism_threads(threads);
    options.config.mutable_graph_options()->mutable_optimizer_options()->set_opt_level(
        fuse ? OptimizerOptions::L1 : OptimizerOptions::L0);
    options.fold_batch_norms = folds_;
    ClientSession session(scope_, options);
    std::vector<Tensor> outputs;
    GRADFLOW_RETURN_IF_ERROR(session.Run({{x_, x}}, fetches, &outputs));
    return outputs;
  }

  // Expects the same bits with and without fusing.
  void ExpectSameBits(const std::vector<Output>& fetches, const Tensor& x) {
    const auto expected = Run(fetches, x, false);
    ASSERT_TRUE(expected.ok()) << expected.status();
    for (const int threads : {1, 2, 3, 8}) {
      const auto found = Run(fetches, x, true, threads);
      ASSERT_TRUE(found.ok()) << found.status();
      for (size_t i = 0; i < fetches.size(); ++i) {
        EXPECT_THAT((*found)[i], TensorEq((*expected)[i])) << threads << " threads";
      }
    }
  }

  // SessionOptions::fold_batch_norms.
  bool folds_ = false;
  Scope scope_ = Scope::NewRootScope();
  Output x_ = ops::Placeholder(scope_.WithOpName("x"), DT_FLOAT);
};

struct ChainCase {
  const char* name;
  const char* fused;
  TensorShape shape;
  Build build;
};

const std::vector<ChainCase>& Chains() {
  static const auto& cases = *new std::vector<ChainCase>{
      {"BiasRelu",
       "FusedConv2D(Conv2D, BiasAdd, Relu)",
       {2, 14, 14, 16},
       [](const Scope& s, const Output& x) {
         return ops::Relu(s, Bias(s, Conv(s, x, 16, 32), 32));
       }},
      {"OddSizes",
       "FusedConv2D(Conv2D, BiasAdd, Relu6)",
       {1, 7, 5, 3},
       [](const Scope& s, const Output& x) { return ops::Relu6(s, Bias(s, Conv(s, x, 3, 5), 5)); }},
      // Too small for oneDNN.
      {"Tiny",
       "FusedConv2D(Conv2D, BiasAdd, Elu)",
       {1, 2, 2, 1},
       [](const Scope& s, const Output& x) { return ops::Elu(s, Bias(s, Conv(s, x, 1, 2), 2)); }},
      {"Norm",
       "FusedConv2D(Conv2D, FusedBatchNormV3, Relu)",
       {2, 28, 28, 8},
       [](const Scope& s, const Output& x) {
         return ops::Relu(s, Norm(s, Conv(s, x, 8, 24), 24));
       }},
      {"ManyChannels",
       "FusedConv2D(Conv2D, FusedBatchNormV3, Relu6)",
       {1, 7, 7, 64},
       [](const Scope& s, const Output& x) {
         return ops::Relu6(s, Norm(s, Conv(s, x, 64, 1280, 1), 1280));
       }},
      {"LargeFilter",
       "FusedConv2D(Conv2D, BiasAdd, Relu)",
       {1, 7, 7, 512},
       [](const Scope& s, const Output& x) {
         return ops::Relu(s, Bias(s, Conv(s, x, 512, 512), 512));
       }},
      {"Depthwise",
       "FusedDepthwiseConv2dNative(DepthwiseConv2dNative, FusedBatchNormV3, Relu6)",
       {1, 28, 28, 32},
       [](const Scope& s, const Output& x) {
         const Output y =
             ops::DepthwiseConv2dNative(s, x, Constant(s, {3, 3, 32, 1}, 1), {1, 1, 1, 1}, "SAME");
         return ops::Relu6(s, Norm(s, y, 32));
       }},
      {"Residual",
       "FusedConv2D(Conv2D, BiasAdd, AddV2, Relu)",
       {2, 14, 14, 32},
       [](const Scope& s, const Output& x) {
         return ops::Relu(s, ops::AddV2(s, Bias(s, Conv(s, x, 32, 32), 32), x));
       }},
      {"ResidualFirst",
       "FusedConv2D(Conv2D, AddV2, Relu)",
       {2, 14, 14, 32},
       [](const Scope& s, const Output& x) {
         return ops::Relu(s, ops::AddV2(s, x, Conv(s, x, 32, 32)));
       }},
      {"ScalarsAndRows",
       "FusedConv2D(Conv2D, Sub, Mul, AddV2, Sigmoid)",
       {1, 9, 9, 8},
       [](const Scope& s, const Output& x) {
         const Output y = ops::Sub(s, 3.0f, Conv(s, x, 8, 12));
         const Output z = ops::Mul(s, y, Constant(s, {1, 1, 12}, 5));
         return ops::Sigmoid(s, ops::AddV2(s, z, Constant(s, {1}, 6)));
       }},
      {"MatMul",
       "FusedMatMul(MatMul, BiasAdd, Tanh)",
       {70, 300},
       [](const Scope& s, const Output& x) {
         return ops::Tanh(s, Bias(s, ops::MatMul(s, x, Constant(s, {300, 520}, 1)), 520));
       }},
      {"SmallMatMul",
       "FusedMatMul(MatMul, AddV2)",
       {3, 5},
       [](const Scope& s, const Output& x) {
         return ops::AddV2(s, ops::MatMul(s, x, Constant(s, {5, 7}, 1)), Constant(s, {7}, 2));
       }},
      {"BatchMatMul",
       "FusedBatchMatMulV2(BatchMatMulV2, Mul, AddV2)",
       {3, 40, 20},
       [](const Scope& s, const Output& x) {
         const Output y = ops::BatchMatMulV2(s, x, x, ops::BatchMatMulV2::AdjY(true));
         return ops::AddV2(s, ops::Mul(s, y, 0.125f), Constant(s, {3, 40, 40}, 2));
       }},
      {"Volumes",
       "FusedConv3D(Conv3D, BiasAdd, Relu)",
       {1, 4, 5, 6, 8},
       [](const Scope& s, const Output& x) {
         const Output y =
             ops::Conv3D(s, x, Constant(s, {3, 3, 3, 8, 16}, 1), {1, 1, 1, 1, 1}, "SAME");
         return ops::Relu(s, Bias(s, y, 16));
       }},
  };
  return cases;
}

std::ostream& operator<<(std::ostream& out, const ChainCase& c) { return out << c.name; }

class FusedChainTest : public FusingTest, public ::testing::WithParamInterface<ChainCase> {};

TEST_P(FusedChainTest, KeepsEveryBit) {
  const ChainCase& c = GetParam();
  const Output y = c.build(scope_, x_);
  GRADFLOW_ASSERT_OK(scope_.status());
  EXPECT_THAT(Fused({y}), ::testing::ElementsAre(c.fused));
  ExpectSameBits({y}, RandomTensor(DT_FLOAT, c.shape, -2, 2, 3));
}
INSTANTIATE_TEST_SUITE_P(Chains, FusedChainTest, ::testing::ValuesIn(Chains()),
                         [](const auto& info) { return info.param.name; });

// The second convolution takes the sum. The first one keeps only its batch normalization.
TEST_F(FusingTest, FusesASumIntoOneOfItsConvolutions) {
  const Output a = Norm(scope_, Conv(scope_, x_, 16, 24, 1), 24);
  const Output b = Norm(scope_, Conv(scope_, x_, 16, 24, 3, 1, 2), 24);
  const Output y = ops::Relu(scope_, ops::AddV2(scope_, a, b));
  EXPECT_THAT(Fused({y}), ::testing::UnorderedElementsAre(
                              "FusedConv2D(Conv2D, FusedBatchNormV3)",
                              "FusedConv2D(Conv2D, FusedBatchNormV3, AddV2, Relu)"));
  ExpectSameBits({y}, RandomTensor(DT_FLOAT, {1, 15, 13, 16}));
}

TEST_F(FusingTest, KeepsNodesThatOtherNodesRead) {
  const Output conv = Conv(scope_, x_, 4, 8);
  const Output bias = Bias(scope_, conv, 8);
  const Output y = ops::Relu(scope_, bias);
  const Tensor x = RandomTensor(DT_FLOAT, {1, 10, 10, 4});
  EXPECT_THAT(Fused({y, conv}), ::testing::IsEmpty());
  EXPECT_THAT(Fused({y, bias}), ::testing::ElementsAre("FusedConv2D(Conv2D, BiasAdd)"));
  ExpectSameBits({y, conv}, x);
  ExpectSameBits({y, bias}, x);
  const Output two = ops::Mul(scope_, bias, y);
  EXPECT_THAT(Fused({two}), ::testing::ElementsAre("FusedConv2D(Conv2D, BiasAdd)"));
  // A control edge also counts as a reader.
  const Output after = ops::Identity(scope_.WithControlDependencies({conv}), x_);
  EXPECT_THAT(Fused({y, after}), ::testing::IsEmpty());
}

// A node that only waits for another node does not read its result, so the two are not fused.
TEST_F(FusingTest, LeavesNodesWithControlEdgesBetweenThem) {
  const Output conv = Conv(scope_.WithOpName("conv"), x_, 4, 8);
  const Scope after = scope_.WithControlDependencies({conv});
  const Tensor x = RandomTensor(DT_FLOAT, {1, 10, 10, 4});
  for (const bool folds : {false, true}) {
    folds_ = folds;
    for (const Output& y : {Output(ops::Relu(after, x_)), Output(ops::AddV2(after, x_, x_)),
                            Output(ops::Mul(after, x_, 2.0f)), Bias(after, x_, 4)}) {
      SCOPED_TRACE(y.node()->type_string());
      EXPECT_THAT(Fused({y}), ::testing::IsEmpty());
      ExpectSameBits({y}, x);
    }
  }
  // A control edge prevents fusion even if there is also a data edge.
  folds_ = false;
  EXPECT_THAT(Fused({ops::Relu(after, conv)}), ::testing::IsEmpty());
}

TEST_F(FusingTest, WaitsForControlInputs) {
  const Output first = ops::Identity(scope_.WithOpName("first"), x_);
  const Output conv = Conv(scope_, x_, 4, 8);
  const Output y = ops::Relu(scope_.WithControlDependencies({first}), conv);
  EXPECT_THAT(Fused({y}), ::testing::ElementsAre("FusedConv2D(Conv2D, Relu)"));
  ExpectSameBits({y}, RandomTensor(DT_FLOAT, {1, 10, 10, 4}));
}

TEST_F(FusingTest, LeavesOtherKernels) {
  // In training, a result depends on all elements.
  EXPECT_THAT(Fused({Norm(scope_, Conv(scope_, x_, 4, 8), 8, true)}), ::testing::IsEmpty());
  EXPECT_THAT(Fused({ops::Softmax(scope_, Conv(scope_, x_, 4, 8))}), ::testing::IsEmpty());
  const Output planes = ops::Conv2D(scope_, x_, Constant(scope_, {1, 1, 4, 8}, 1), {1, 1, 1, 1},
                                    "SAME", ops::Conv2D::DataFormat("NCHW"));
  EXPECT_THAT(Fused({ops::Relu(scope_, planes)}), ::testing::IsEmpty());
  const Output wide = ops::Cast(scope_, x_, DT_DOUBLE);
  EXPECT_THAT(Fused({ops::Relu(scope_, ops::MatMul(scope_, wide, wide))}), ::testing::IsEmpty());
  const Output greater = ops::Greater(scope_, ops::MatMul(scope_, x_, x_), x_);
  EXPECT_THAT(Fused({greater}), ::testing::IsEmpty());
}

// The shapes of the operands are known only in a run, and they do not suit the fused steps.
TEST_F(FusingTest, RunsNodesOneByOneWhereShapesDoNotSuit) {
  const Output conv = Conv(scope_, x_, 4, 8);
  for (const TensorShape& shape :
       {TensorShape({3, 1, 1, 8}), TensorShape({1, 6, 1}), TensorShape({2, 1, 1, 1, 1})}) {
    SCOPED_TRACE(shape.DebugString());
    const Output y = ops::Relu(scope_, ops::AddV2(scope_, conv, Constant(scope_, shape, 5)));
    EXPECT_THAT(Fused({y}), ::testing::ElementsAre("FusedConv2D(Conv2D, AddV2, Relu)"));
    ExpectSameBits({y}, RandomTensor(DT_FLOAT, {1, 6, 6, 4}));
  }
  // An empty batch.
  const Output y = ops::Relu(scope_, Bias(scope_, conv, 8));
  ExpectSameBits({y}, Tensor(DT_FLOAT, {0, 6, 6, 4}));
}

// ---- Batch norms folded into weights ----

TEST_F(FusingTest, FoldsBatchNormsOnRequest) {
  const Output conv =
      ops::Relu(scope_, Norm(scope_, Bias(scope_, Conv(scope_, x_, 8, 24), 24), 24));
  const Output depthwise = ops::DepthwiseConv2dNative(
      scope_, conv, Constant(scope_, {3, 3, 24, 2}, 7, -0.5, 0.5), {1, 1, 1, 1}, "SAME");
  const Output y = Norm(scope_, depthwise, 48);
  const Tensor x = RandomTensor(DT_FLOAT, {2, 11, 9, 8});
  const auto expected = Run({y, conv}, x, false);
  ASSERT_TRUE(expected.ok()) << expected.status();
  folds_ = true;
  EXPECT_THAT(
      Fused({y}),
      ::testing::UnorderedElementsAre(
          "FoldedFilter(Conv2D, BiasAdd, FusedBatchNormV3)",
          "FoldedBias(BiasAdd, FusedBatchNormV3)",
          "FusedConv2D(Conv2D, BiasAdd, FusedBatchNormV3, Relu)",
          "FoldedFilter(DepthwiseConv2dNative, FusedBatchNormV3)", "FoldedBias(FusedBatchNormV3)",
          "FusedDepthwiseConv2dNative(DepthwiseConv2dNative, FusedBatchNormV3)"));
  for (const int threads : {1, 3}) {
    const auto found = Run({y, conv}, x, true, threads);
    ASSERT_TRUE(found.ok()) << found.status();
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_THAT((*found)[i], testing::TensorNear((*expected)[i], 2e-5, 2e-5));
    }
  }
  // At optimizer level L0, batch norms are not folded even on request.
  const auto unfused = Run({y}, x, false);
  ASSERT_TRUE(unfused.ok());
  EXPECT_THAT((*unfused)[0], TensorEq((*expected)[0]));
}

struct FoldCase {
  const char* name;
  // The nodes that are folded into the filter.
  const char* folded;
  Build build;
};

// Chains of products and sums after a convolution of 24 channels.
const std::vector<FoldCase>& Folds() {
  static const auto& cases = *new std::vector<FoldCase>{
      {"TwoNorms", "Conv2D, FusedBatchNormV3, FusedBatchNormV3",
       [](const Scope& s, const Output& x) { return Norm(s, Norm(s, x, 24), 24); }},
      // Frozen models of Keras have this form.
      {"MulAndAdd", "Conv2D, Mul, AddV2",
       [](const Scope& s, const Output& x) {
         return ops::AddV2(s, ops::Mul(s, x, Constant(s, {24}, 2)), Constant(s, {24}, 3));
       }},
      {"ConstantFirst", "Conv2D, BiasAdd, Mul, Add, Sub",
       [](const Scope& s, const Output& x) {
         const Output scaled = ops::Mul(s, Constant(s, {1, 1, 1, 24}, 2), Bias(s, x, 24));
         return ops::Sub(s, Constant(s, {1, 24}, 4), ops::Add(s, Constant(s, {24}, 3), scaled));
       }},
      {"Scalars", "Conv2D, Sub, Mul",
       [](const Scope& s, const Output& x) {
         return ops::Mul(s, ops::Sub(s, x, Constant(s, {1}, 2)), 0.25f);
       }},
      {"NoBias", "Conv2D, Mul",
       [](const Scope& s, const Output& x) { return ops::Mul(s, x, Constant(s, {24}, 2)); }},
      {"BehindIdentity", "Conv2D, Mul, AddV2",
       [](const Scope& s, const Output& x) {
         const Output factor = ops::Identity(s, Constant(s, {24}, 2));
         return ops::AddV2(s, ops::Mul(s, x, factor), Constant(s, {24}, 3));
       }},
      // An activation ends the chain.
      {"UpToRelu", "Conv2D, Mul",
       [](const Scope& s, const Output& x) {
         const Output y = ops::Relu(s, ops::Mul(s, x, Constant(s, {24}, 2)));
         return ops::Mul(s, y, Constant(s, {24}, 3));
       }},
  };
  return cases;
}

std::ostream& operator<<(std::ostream& out, const FoldCase& c) { return out << c.name; }

class FoldedChainTest : public FusingTest, public ::testing::WithParamInterface<FoldCase> {};

TEST_P(FoldedChainTest, IsNearTheNodes) {
  const Output y = GetParam().build(scope_, Conv(scope_, x_, 8, 24));
  const Tensor x = RandomTensor(DT_FLOAT, {2, 11, 9, 8});
  const auto expected = Run({y}, x, false);
  ASSERT_TRUE(expected.ok()) << expected.status();
  folds_ = true;
  const std::string filter = absl::StrCat("FoldedFilter(", GetParam().folded, ")");
  EXPECT_THAT(Fused({y}), ::testing::Contains(filter));
  for (const int threads : {1, 3}) {
    const auto found = Run({y}, x, true, threads);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_THAT((*found)[0], testing::TensorNear((*expected)[0], 2e-5, 2e-5));
  }
}

INSTANTIATE_TEST_SUITE_P(All, FoldedChainTest, ::testing::ValuesIn(Folds()),
                         [](const auto& info) { return std::string(info.param.name); });

// Three copies would multiply the memory of the filter.
TEST_F(FusingTest, FoldsASharedFilterOnce) {
  const Output filter = Constant(scope_, {1, 1, 8, 8}, 5, -0.5, 0.5);
  std::vector<Output> y;
  for (int i = 0; i < 3; ++i) {
    const Output x = i == 0 ? x_ : Output(ops::Neg(scope_, y.back()));
    y.push_back(Norm(scope_, ops::Conv2D(scope_, x, filter, {1, 1, 1, 1}, "SAME"), 8));
  }
  folds_ = true;
  const std::vector<std::string> fused = Fused(y);
  EXPECT_EQ(std::count(fused.begin(), fused.end(), "FoldedFilter(Conv2D, FusedBatchNormV3)"), 1);
}

// Once a plan has a folded copy of a filter, the original is dropped unless a plan reads it.
TEST_F(FusingTest, DropsFoldedFilters) {
  const Output filter = Constant(scope_, {1, 1, 8, 8}, 5, -0.5, 0.5);
  const Output y = Norm(scope_, ops::Conv2D(scope_, x_, filter, {1, 1, 1, 1}, "SAME"), 8);
  PlanNames names;
  names.feeds = {x_.name()};
  names.fetches = {y.name()};
  PlanOptions options;
  options.fold_batch_norms = true;
  const Node& constant = *filter.node();
  KernelCache kernels;
  GRADFLOW_ASSERT_OK(Plan::Make(*scope_.graph(), names, &kernels, options).status());
  EXPECT_EQ(kernels.Find(nullptr, constant), nullptr);
  names.fetches.push_back(filter.name());
  GRADFLOW_ASSERT_OK(Plan::Make(*scope_.graph(), names, &kernels, options).status());
  const OpKernel* const kept = kernels.Find(nullptr, constant);
  EXPECT_NE(kept, nullptr);
  names.fetches.pop_back();
  GRADFLOW_ASSERT_OK(Plan::Make(*scope_.graph(), names, &kernels, options).status());
  EXPECT_EQ(kernels.Find(nullptr, constant), kept);
}

// A constant whose kernel counts how often it is made.
std::atomic<int> counted_constants{0};
class CountedConst final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    ++counted_constants;
    return construction.GetAttr("value", &value_);
  }
  absl::Status Compute(KernelContext& ctx) const override {
    ctx.set_output(0, value_);
    return absl::OkStatus();
  }
  bool IsCheap() const override { return true; }

 private:
  Tensor value_;
};

// Constants that the plan still reads keep the kernels that folding made for them.
TEST_F(FusingTest, KeepsConstantsThatThePlanReads) {
  static const bool registered = [] {
    GlobalRegistry().Kernel("Const", MakeKernel<CountedConst>).Label("counted");
    return true;
  }();
  ASSERT_TRUE(registered);
  const Tensor value = RandomTensor(DT_FLOAT, {1, 1, 8, 8}, -0.5, 0.5, 5);
  const Output filter = ops::Const(scope_.WithKernelLabel("counted"), value);
  const Output y = Norm(scope_, ops::Conv2D(scope_, x_, filter, {1, 1, 1, 1}, "SAME"), 8);
  const Output other = ops::MaxPool(scope_, filter, {1, 1, 1, 1}, {1, 1, 1, 1}, "SAME");
  folds_ = true;
  counted_constants = 0;
  EXPECT_THAT(Fused({y, other}), ::testing::Contains("FoldedFilter(Conv2D, FusedBatchNormV3)"));
  EXPECT_EQ(counted_constants, 1);
  const auto outputs = Run({other}, RandomTensor(DT_FLOAT, {1, 2, 2, 8}), true);
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_THAT((*outputs)[0], TensorEq(value));
}

TEST_F(FusingTest, LongChainsHaveLimitedLength) {
  Output y = Conv(scope_, x_, 8, 24);
  for (int i = 0; i < 100; ++i) y = ops::Relu(scope_, ops::Neg(scope_, y));
  const std::vector<std::string> fused = Fused({y});
  ASSERT_EQ(fused.size(), 1);
  // The label has a name for each of 16 nodes.
  EXPECT_EQ(std::count(fused[0].begin(), fused[0].end(), ','), 15);
  const Tensor x = RandomTensor(DT_FLOAT, {2, 11, 9, 8});
  const auto expected = Run({y}, x, false);
  const auto found = Run({y}, x, true, 2);
  ASSERT_TRUE(expected.ok() && found.ok()) << expected.status() << found.status();
  EXPECT_THAT((*found)[0], TensorEq((*expected)[0]));
}

TEST_F(FusingTest, KeepsBatchNormsThatCannotBeFolded) {
  folds_ = true;
  const auto expect_kept = [&](const Output& y) {
    EXPECT_THAT(Fused({y}), ::testing::Each(::testing::Not(HasSubstr("Folded"))));
  };
  // A run may feed the filter or the statistics.
  const Output fed = ops::Placeholder(scope_, DT_FLOAT);
  const Output dynamic = ops::Conv2D(scope_, x_, fed, {1, 1, 1, 1}, "SAME");
  expect_kept(Norm(scope_, dynamic, 8));
  const Output conv = Conv(scope_, x_, 4, 8);
  const Output ones = Constant(scope_, {8}, 3, 1, 2);
  auto inference = ops::FusedBatchNormV3::IsTraining(false);
  expect_kept(ops::FusedBatchNormV3(scope_, conv, fed, ones, ones, ones, inference).y);
  expect_kept(Norm(scope_, conv, 8, true));
  // Constants of other shapes, and a chain without a product.
  expect_kept(ops::Mul(scope_, conv, Constant(scope_, {6, 1}, 4)));
  expect_kept(ops::Mul(scope_, conv, Constant(scope_, {2, 1, 1, 1, 8}, 4)));
  expect_kept(ops::AddV2(scope_, Bias(scope_, conv, 8), ones));
  expect_kept(ops::Mul(scope_, conv, fed));
  // A factor that is not finite.
  const Output zeros = ops::Const(scope_, 0.0f, TensorShape({8}));
  expect_kept(ops::FusedBatchNormV3(scope_, conv, ones, ones, ones, zeros, inference.Epsilon(0)).y);
  const Output huge = ops::Const(scope_, 3e38f, TensorShape({8}));
  expect_kept(ops::Mul(scope_, ops::Mul(scope_, conv, huge), huge));
  // Another node reads the convolution or the statistics.
  const auto norm = ops::FusedBatchNormV3(scope_, conv, ones, ones, ones, ones, inference);
  EXPECT_THAT(Fused({norm.y, norm.batch_mean}),
              ::testing::Each(::testing::Not(HasSubstr("Folded"))));
  EXPECT_THAT(Fused({norm.y, conv}), ::testing::Each(::testing::Not(HasSubstr("Folded"))));
}

TEST_F(FusingTest, ErrorsNameTheOriginalNodes) {
  const Output bias = ops::Placeholder(scope_.WithOpName("bias"), DT_FLOAT);
  const Output conv = Conv(scope_.WithOpName("conv"), x_, 4, 8);
  const Output y =
      ops::Relu(scope_.WithOpName("relu"), ops::BiasAdd(scope_.WithOpName("add"), conv, bias));
  ClientSession session(scope_);
  std::vector<Tensor> outputs;
  const auto run = [&](const TensorShape& x, const TensorShape& b) {
    return session.Run({{x_, RandomTensor(DT_FLOAT, x)}, {bias, RandomTensor(DT_FLOAT, b)}}, {y},
                       &outputs);
  };
  GRADFLOW_EXPECT_OK(run({1, 5, 5, 4}, {8}));
  EXPECT_THAT(run({1, 5, 5, 4}, {7}),
              StatusIs(StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("' (Conv2D), "), HasSubstr("'add' (BiasAdd)"),
                             HasSubstr("bias has 7 elements, expected 8"))));
  EXPECT_THAT(run({5, 5, 4}, {8}), StatusIs(StatusCode::kInvalidArgument, HasSubstr("rank 4")));
  GRADFLOW_EXPECT_OK(run({2, 5, 5, 4}, {8}));
}

TEST_F(FusingTest, TracesNameTheLastNode) {
  const Output y = ops::Relu(scope_.WithOpName("relu"), Conv(scope_, x_, 4, 8));
  ClientSession session(scope_);
  RunOptions options;
  options.set_trace_level(RunOptions::FULL_TRACE);
  RunMetadata metadata;
  std::vector<Tensor> outputs;
  GRADFLOW_ASSERT_OK(session.Run(options, {{x_, RandomTensor(DT_FLOAT, {1, 5, 5, 4})}}, {y}, {},
                                 &outputs, &metadata));
  std::vector<std::string> labels;
  for (const auto& device : metadata.step_stats().dev_stats()) {
    for (const auto& node : device.node_stats()) {
      if (node.node_name() == "relu") labels.push_back(node.timeline_label());
    }
  }
  EXPECT_THAT(labels, ::testing::ElementsAre("relu = FusedConv2D(Conv2D, relu)"));
}

}  // namespace
}  // namespace fusing_test
}  // namespace gradflow
