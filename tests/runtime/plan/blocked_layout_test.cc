// Tests of ChooseBlockedLayouts: which images use the blocked layout, and that results stay close.
#include "gradflow/core/blocked_layout.h"

#include <cmath>
#include <functional>
#include <limits>
#include <ostream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/run_context.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/nn/conv_engine.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/runtime/plan/plan.h"
#include "gradflow/runtime/session/client_session.h"
#include "gradflow/runtime/session/options.h"
#include "gradflow/testing/status_matchers.h"
#include "gradflow/testing/tensor_matchers.h"
#include "gradflow/testing/tensors.h"
#include "tests/runtime/plan/plan_labels.h"

namespace gradflow {
namespace {

using ::absl::StatusCode;
using ::gradflow::testing::AsTensor;
using ::gradflow::testing::RandomTensor;
using ::gradflow::testing::StatusIs;
using ::gradflow::testing::TensorEq;
using ::gradflow::testing::TensorNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// ---- The layout ----

// Channel c of a pixel is element c % block of block c / block; the others are 0.
TEST(BlockedLayout, CopiesBothWays) {
  const RunContext run;
  for (const int64_t depth : {1, 3, 8, 16, 21}) {
    for (const int64_t block : {1, 8, 16}) {
      SCOPED_TRACE(absl::StrCat(depth, " channels in blocks of ", block));
      const Tensor image = RandomTensor(DT_FLOAT, {2, 3, 5, depth}, 1, 2);
      Tensor blocks(DT_FLOAT, BlockedShape(image.shape(), block));
      ASSERT_EQ(blocks.shape(), TensorShape({2, (depth + block - 1) / block, 3, 5, block}));
      blocks.flat<float>().setConstant(-1);
      CopyToBlocked(run, image, &blocks);
      const auto x = image.tensor<float, 4>();
      const auto y = blocks.tensor<float, 5>();
      for (int64_t n = 0; n < 2; ++n) {
        for (int64_t c = 0; c < blocks.dim_size(1) * block; ++c) {
          for (int64_t h = 0; h < 3; ++h) {
            for (int64_t w = 0; w < 5; ++w) {
              ASSERT_EQ(y(n, c / block, h, w, c % block), c < depth ? x(n, h, w, c) : 0.0f);
            }
          }
        }
      }
      ASSERT_EQ(UnblockedShape(blocks.shape(), depth), image.shape());
      Tensor back(DT_FLOAT, image.shape());
      CopyFromBlocked(run, blocks, &back);
      EXPECT_THAT(back, TensorEq(image));
    }
  }
}

// ---- Plans ----

// Each call returns different weights, because a plan merges equal constants.
Output Weights(const Scope& s, const TensorShape& shape) {
  const auto seed = static_cast<uint32_t>(s.graph()->num_nodes());
  // Scales the weights so that the sum over a window has the magnitude of its elements.
  const double size =
      1 / std::sqrt(static_cast<double>(shape.num_elements() / shape.dim_size(shape.dims() - 1)));
  return ops::Const(s, RandomTensor(DT_FLOAT, shape, -2 * size, 2 * size, seed));
}
Output Conv(const Scope& s, const Output& x, int in, int out, int size = 1, int stride = 1,
            const std::string& padding = "SAME") {
  return ops::Conv2D(s, x, Weights(s, {size, size, in, out}), {1, stride, stride, 1}, padding);
}
Output Depthwise(const Scope& s, const Output& x, int depth, int stride = 1) {
  return ops::DepthwiseConv2dNative(s, x, Weights(s, {3, 3, depth, 1}), {1, stride, stride, 1},
                                    "SAME");
}
// Adds enough convolutions for the blocked layout to pay off.
Output Tail(const Scope& s, Output x, int depth) {
  for (int i = 0; i < 5; ++i) x = Conv(s, x, depth, depth);
  return x;
}
Output Bias(const Scope& s, const Output& x, int channels) {
  return ops::BiasAdd(s, x, ops::Const(s, RandomTensor(DT_FLOAT, {channels}, -1, 1, 3)));
}

class BlockedLayoutTest : public ::testing::Test {
 protected:
  // Returns the nodes of the plan that compute on blocks, such as "Conv2D" and "FusedConv2D", each
  // with the names of its origins.
  std::vector<std::string> Blocked(const std::vector<Output>& fetches) {
    PlanOptions options;
    options.fold_batch_norms = true;
    constexpr absl::string_view kPrefix = "Blocked";
    std::vector<std::string> blocked;
    for (const std::string& label : PlanLabels(scope_, x_, fetches, options)) {
      if (absl::StartsWith(label, kPrefix)) blocked.push_back(label.substr(kPrefix.size()));
    }
    return blocked;
  }

  absl::StatusOr<std::vector<Tensor>> Run(const std::vector<Output>& fetches, const Tensor& x,
                                          bool fast, int threads = 2) {
    SessionOptions options;
    options.config.set_intra_op_parallelism_threads(threads);
    options.config.set_inter_op_parallelism_threads(threads);
    options.fold_batch_norms = fast;
    ClientSession session(scope_, options);
    std::vector<Tensor> outputs;
    GRADFLOW_RETURN_IF_ERROR(session.Run({{x_, x}}, fetches, &outputs));
    // The second run uses the primitives and filters that the first run made.
    GRADFLOW_RETURN_IF_ERROR(session.Run({{x_, x}}, fetches, &outputs));
    return outputs;
  }

  // Expects results close to the plain layout, and the same bits for every number of threads.
  void ExpectNear(const std::vector<Output>& fetches, const Tensor& x) {
    const auto expected = Run(fetches, x, false);
    ASSERT_TRUE(expected.ok()) << expected.status();
    const auto first = Run(fetches, x, true, 1);
    ASSERT_TRUE(first.ok()) << first.status();
    for (size_t i = 0; i < fetches.size(); ++i) {
      EXPECT_THAT((*first)[i], TensorNear((*expected)[i], 2e-5, 2e-5));
    }
    for (const int threads : {2, 3, 8}) {
      const auto found = Run(fetches, x, true, threads);
      ASSERT_TRUE(found.ok()) << found.status();
      for (size_t i = 0; i < fetches.size(); ++i) {
        EXPECT_THAT((*found)[i], TensorEq((*first)[i])) << threads << " threads";
      }
    }
  }

  Scope scope_ = Scope::NewRootScope();
  Output x_ = ops::Placeholder(scope_.WithOpName("x"), DT_FLOAT);
};

using Build = std::function<Output(const Scope& s, const Output& x)>;

struct NetCase {
  std::string name;
  TensorShape shape;
  // The number of nodes that compute on blocks.
  size_t blocked;
  Build build;
};

std::ostream& operator<<(std::ostream& out, const NetCase& c) { return out << c.name; }

const std::vector<NetCase>& Nets() {
  static const auto& cases = *new std::vector<NetCase>{
      {"Convolutions",
       {2, 9, 7, 3},
       9,
       [](const Scope& s, const Output& x) {
         Output y = Conv(s, x, 3, 16, 3, 2);
         y = ops::Relu(s, Bias(s, Conv(s, y, 16, 40), 40));
         y = ops::Relu6(s, Conv(s, y, 40, 24, 3, 1, "VALID"));
         return Tail(s, Bias(s, Conv(s, y, 24, 30), 30), 30);
       }},
      {"InvertedResidual",
       {1, 14, 14, 24},
       9,
       [](const Scope& s, const Output& x) {
         const Output y = Conv(s, x, 24, 24);
         Output z = ops::Relu6(s, Bias(s, Conv(s, y, 24, 144), 144));
         z = ops::Relu6(s, Bias(s, Depthwise(s, z, 144), 144));
         z = ops::AddV2(s, y, Bias(s, Conv(s, z, 144, 24), 24));
         return Tail(s, z, 24);
       }},
      {"Bottleneck",
       {3, 8, 10, 64},
       10,
       [](const Scope& s, const Output& x) {
         Output y = ops::Relu(s, Bias(s, Conv(s, x, 64, 64), 64));
         const Output shortcut = Conv(s, y, 64, 128, 1, 2);
         y = ops::Relu(s, Bias(s, Conv(s, y, 64, 32), 32));
         y = ops::Relu(s, Bias(s, Conv(s, y, 32, 32, 3, 2), 32));
         y = Bias(s, Conv(s, y, 32, 128), 128);
         y = ops::Relu(s, ops::AddV2(s, y, shortcut));
         return Tail(s, y, 128);
       }},
      // The sum with a row is a bias. In the first sum, the other addend is not in blocks; in the
      // last, it is.
      {"Addends",
       {2, 6, 6, 32},
       11,
       [](const Scope& s, const Output& x) {
         const Output first = Conv(s, x, 32, 32);
         Output y = ops::AddV2(s, Conv(s, ops::Neg(s, first), 32, 32, 3), first);
         for (int i = 0; i < 9; ++i) y = ops::Relu(s, Conv(s, y, 32, 32));
         const Output row = ops::Const(s, RandomTensor(DT_FLOAT, {1, 1, 32}, -1, 1, 7));
         return ops::Relu6(s, ops::AddV2(s, row, Conv(s, y, 32, 32)));
       }},
      // One image is added to a whole batch. A node copies the image for each batch element.
      {"BroadcastAddend",
       {2, 6, 6, 32},
       8,
       [](const Scope& s, const Output& x) {
         const Output first = Conv(s, x, 32, 20);
         const Output one = Conv(s, first, 20, 20, 6, 1, "VALID");
         Output y = ops::AddV2(s, Conv(s, first, 20, 20, 3), one);
         for (int i = 0; i < 5; ++i) y = Conv(s, y, 20 + i, 21 + i);
         return y;
       }},
      {"DilatedAndLarge",
       {1, 30, 41, 16},
       9,
       [](const Scope& s, const Output& x) {
         Output y = ops::Conv2D(
             s, x, Weights(s, {3, 3, 16, 128}), {1, 1, 1, 1}, "EXPLICIT",
             ops::Conv2D::Dilations({1, 2, 3, 1}).ExplicitPaddings({0, 0, 1, 2, 4, 0, 0, 0}));
         y = ops::Relu(s, Bias(s, Conv(s, y, 128, 200, 3), 200));
         y = ops::Relu(s, ops::AddV2(s, Bias(s, Depthwise(s, y, 200), 200), y));
         y = Conv(s, y, 200, 64, 5, 3);
         return Tail(s, y, 64);
       }},
  };
  return cases;
}

class BlockedNetTest : public BlockedLayoutTest, public ::testing::WithParamInterface<NetCase> {};

TEST_P(BlockedNetTest, IsNearTheNodes) {
  const NetCase& c = GetParam();
  const Output y = c.build(scope_, x_);
  GRADFLOW_ASSERT_OK(scope_.status());
  if (OneDnnBlockSize() > 0) {
    EXPECT_THAT(Blocked({y}), ::testing::SizeIs(c.blocked));
  }
  ExpectNear({y}, RandomTensor(DT_FLOAT, c.shape, -2, 2, 5));
  // Other batch sizes, including an empty batch.
  TensorShape shape = c.shape;
  for (const int64_t batch : {5, 1, 0}) {
    shape.set_dim(0, batch);
    ExpectNear({y}, RandomTensor(DT_FLOAT, shape, -2, 2, 6));
  }
}
INSTANTIATE_TEST_SUITE_P(Nets, BlockedNetTest, ::testing::ValuesIn(Nets()),
                         [](const auto& info) { return info.param.name; });

// One task computes several images, and the windows are far apart.
TEST_F(BlockedLayoutTest, IsNearThePlainLayoutForSmallResultsOfLargeImages) {
  const Output y = Tail(scope_, Conv(scope_, Tail(scope_, x_, 16), 16, 16, 1, 50, "VALID"), 16);
  ExpectNear({y}, RandomTensor(DT_FLOAT, {6, 60, 70, 16}, -2, 2, 5));
  if (OneDnnBlockSize() > 0) {
    EXPECT_THAT(Blocked({y}), ::testing::SizeIs(11));
  }
}

TEST_F(BlockedLayoutTest, IsNearThePlainLayoutForRandomNets) {
  std::mt19937 random(1);
  const auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  size_t blocked = 0;
  for (int i = 0; i < 100 && !HasFailure(); ++i) {
    SCOPED_TRACE(i);
    int depth = pick(1, 40);
    const int most = pick(20, 70);
    const TensorShape shape = {pick(1, 3), pick(5, 20), pick(5, 20), depth};
    Output y = x_;
    for (int layer = pick(2, 10); layer > 0; --layer) {
      const Output input = y;
      const int in = depth;
      const int stride = pick(1, 2);
      const bool depthwise = pick(0, 2) == 0;
      if (!depthwise) depth = pick(0, 2) == 0 ? in : pick(8, most);
      y = depthwise ? Depthwise(scope_, y, in, stride)
                    : Conv(scope_, y, in, depth, pick(1, 3), stride);
      if (pick(0, 1) == 0) y = Bias(scope_, y, depth);
      if (depth == in && stride == 1 && pick(0, 1) == 0) y = ops::AddV2(scope_, y, input);
      if (pick(0, 2) == 0) y = ops::Relu(scope_, y);
      if (pick(0, 4) == 0) y = ops::Relu6(scope_, y);
    }
    ExpectNear({y}, RandomTensor(DT_FLOAT, shape, -2, 2, static_cast<uint32_t>(i)));
    blocked += Blocked({y}).size();
  }
  if (OneDnnBlockSize() > 0) {
    EXPECT_GT(blocked, 50u);
  }
}

// ---- What keeps the plain layout ----

TEST_F(BlockedLayoutTest, LeavesImagesThatOtherNodesRead) {
  if (OneDnnBlockSize() == 0) GTEST_SKIP() << "no code for channel blocks";
  std::vector<Output> y = {x_};
  for (int i = 0; i < 8; ++i) y.push_back(Conv(scope_, y.back(), 32, 32));
  EXPECT_EQ(Blocked({y[8]}).size(), 8u);
  EXPECT_THAT(Blocked({y[8]}), ::testing::Each("Conv2D(Conv2D)"));
  // A fetched image is not in blocks. The convolutions on both sides use blocks if they are enough.
  EXPECT_EQ(Blocked({y[8], y[1]}).size(), 7u);
  EXPECT_THAT(Blocked({y[8], y[4]}), IsEmpty());
  ExpectNear({y[8], y[1]}, RandomTensor(DT_FLOAT, {1, 5, 5, 32}));
  // An image that another op reads, or that is a filter, is not in blocks either.
  const Output mean = ops::Mean(scope_, y[4], {1, 2});
  EXPECT_THAT(Blocked({y[8], mean}), IsEmpty());
  const Output square = ops::Conv2D(scope_, y[4], y[4], {1, 1, 1, 1}, "SAME");
  EXPECT_THAT(Blocked({y[8], square}), IsEmpty());
  // A node that only waits for an image does not read it.
  const Output after = ops::Identity(scope_.WithControlDependencies({y[4]}), x_);
  EXPECT_EQ(Blocked({y[8], after}).size(), 8u);
  ExpectNear({y[8], after}, RandomTensor(DT_FLOAT, {1, 5, 5, 32}));
}

// Other nodes have replaced fused nodes, folded normalizations and duplicates.
TEST_F(BlockedLayoutTest, LeavesFetchedNodesThatWereReplaced) {
  std::vector<Output> y = {x_};
  for (int i = 0; i < 4; ++i) y.push_back(ops::Relu(scope_, Conv(scope_, y.back(), 32, 32)));
  for (int i = 0; i < 4; ++i) {
    const Output norm =
        ops::FusedBatchNorm(scope_, Conv(scope_, y.back(), 32, 32),
                            ops::Const(scope_, RandomTensor(DT_FLOAT, {32}, 0.5, 2, 11)),
                            ops::Const(scope_, RandomTensor(DT_FLOAT, {32}, -1, 1, 12)),
                            ops::Const(scope_, RandomTensor(DT_FLOAT, {32}, -1, 1, 13)),
                            ops::Const(scope_, RandomTensor(DT_FLOAT, {32}, 0.5, 2, 14)),
                            ops::FusedBatchNorm::IsTraining(false))
            .y;
    y.push_back(norm);
  }
  const Output duplicate = ops::Relu(scope_, Conv(scope_, x_, 32, 32));
  const Tensor x = RandomTensor(DT_FLOAT, {1, 3, 5, 32});
  for (const std::vector<Output>& fetches :
       {std::vector<Output>{y[8], y[2]}, {y[8], y[6]}, {y[8], duplicate}, {y[8], y[1], y[7]}}) {
    ExpectNear(fetches, x);
  }
  if (OneDnnBlockSize() > 0) {
    EXPECT_THAT(Blocked({y[8]}), ::testing::SizeIs(8));
    // The seventh of eight nodes is fetched as well.
    EXPECT_THAT(Blocked({y[8], y[7]}), ::testing::SizeIs(7));
  }
}

// A fed image is not in blocks, even if the node that it replaces computes in blocks.
TEST_F(BlockedLayoutTest, TakesFedImages) {
  std::vector<Output> y = {x_};
  for (int i = 0; i < 8; ++i) y.push_back(ops::Relu(scope_, Conv(scope_, y.back(), 32, 32)));
  SessionOptions options;
  options.fold_batch_norms = true;
  ClientSession session(scope_, options);
  const Tensor x = RandomTensor(DT_FLOAT, {1, 3, 5, 32});
  std::vector<Tensor> whole;
  GRADFLOW_ASSERT_OK(session.Run({{x_, x}}, {y[2], y[8]}, &whole));
  std::vector<Tensor> rest;
  GRADFLOW_ASSERT_OK(session.Run({{y[2], whole[0]}}, {y[8]}, &rest));
  EXPECT_THAT(rest[0], TensorNear(whole[1], 2e-5, 2e-5));
}

// The image is the constant input here, and it shares its buffer with the filter.
TEST_F(BlockedLayoutTest, KnowsTheFilterFromAConstantImage) {
  const Output image = Weights(scope_, {1, 4, 64, 64});
  const Output filter = ops::Reshape(scope_, image, {1, 1, 64, 256});
  const Output fed = ops::Identity(scope_, image);
  Output y = ops::Conv2D(scope_, fed, filter, {1, 1, 1, 1}, "SAME");
  y = Conv(scope_, y, 64, 64);  // in four groups
  for (int i = 0; i < 7; ++i) y = Conv(scope_, y, 64, 64);
  const Tensor x = RandomTensor(DT_FLOAT, {1, 4, 64, 64});
  Tensor expected;
  for (const bool fast : {false, true}) {
    SessionOptions options;
    options.fold_batch_norms = fast;
    ClientSession session(scope_, options);
    std::vector<Tensor> found;
    // The first run makes the kernels.
    GRADFLOW_ASSERT_OK(session.Run({}, {y}, &found));
    GRADFLOW_ASSERT_OK(session.Run({{fed, x}}, {y}, &found));
    if (fast) {
      EXPECT_THAT(found[0], TensorNear(expected, 2e-5, 2e-5));
    }
    expected = found[0];
  }
}

TEST_F(BlockedLayoutTest, KeepsThePlainLayoutOfOtherConvolutions) {
  const auto chain = [&](const std::function<Output(const Output&)>& layer) {
    Output y = x_;
    for (int i = 0; i < 8; ++i) y = layer(y);
    return y;
  };
  // Steps that blocked kernels do not support.
  EXPECT_THAT(Blocked({chain(
                  [&](const Output& x) { return ops::Sigmoid(scope_, Conv(scope_, x, 16, 16)); })}),
              IsEmpty());
  EXPECT_THAT(Blocked({chain([&](const Output& x) {
                return ops::AddV2(scope_, ops::Relu(scope_, Conv(scope_, x, 16, 16)), x);
              })}),
              IsEmpty());
  // A second bias, a bias after a ReLU, and a second activation.
  EXPECT_THAT(Blocked({chain([&](const Output& x) {
                return Bias(scope_, Bias(scope_, Conv(scope_, x, 16, 16), 16), 16);
              })}),
              IsEmpty());
  EXPECT_THAT(Blocked({chain([&](const Output& x) {
                return Bias(scope_, ops::Relu(scope_, Conv(scope_, x, 16, 16)), 16);
              })}),
              IsEmpty());
  EXPECT_THAT(Blocked({chain([&](const Output& x) {
                return ops::Relu6(scope_, ops::Relu(scope_, Conv(scope_, x, 16, 16)));
              })}),
              IsEmpty());
  std::vector<Output> y = {Conv(scope_, x_, 16, 16)};
  for (int i = 0; i < 8; ++i) y.push_back(Conv(scope_, y.back(), 16, 16));
  const Output sum = ops::AddV2(scope_, Conv(scope_, y[8], 16, 16), y[7]);
  if (OneDnnBlockSize() > 0) {
    EXPECT_THAT(Blocked({sum}), ::testing::SizeIs(10));
    // A sum of three images is not supported, so the last three convolutions keep the plain layout.
    EXPECT_THAT(Blocked({ops::AddV2(scope_, sum, y[6])}), ::testing::SizeIs(7));
  }
  // The addend of a sum is a scalar, a placeholder (whose rank may be larger than 4), or a matrix
  // of several rows.
  for (const Output& addend :
       {ops::Const(scope_, 3.0f), x_, ops::Const(scope_, RandomTensor(DT_FLOAT, {4, 16}))}) {
    EXPECT_THAT(Blocked({chain([&](const Output& x) {
                  return ops::AddV2(scope_, Conv(scope_, x, 16, 16), addend);
                })}),
                IsEmpty());
  }
  // Convolutions in groups.
  EXPECT_THAT(Blocked({chain([&](const Output& x) { return Conv(scope_, x, 8, 16, 3); })}),
              IsEmpty());
  // Several output channels for each input channel.
  EXPECT_THAT(
      Blocked({ops::DepthwiseConv2dNative(scope_, Conv(scope_, x_, 16, 16),
                                          Weights(scope_, {3, 3, 16, 2}), {1, 1, 1, 1}, "SAME")}),
      IsEmpty());
  // Few channels. A block would take several times the memory.
  EXPECT_THAT(Blocked({chain([&](const Output& x) { return Conv(scope_, x, 3, 3, 6); })}),
              IsEmpty());
  // The format NCHW.
  EXPECT_THAT(Blocked({chain([&](const Output& x) {
                return ops::Conv2D(scope_, x, Weights(scope_, {1, 1, 16, 16}), {1, 1, 1, 1}, "SAME",
                                   ops::Conv2D::DataFormat("NCHW"));
              })}),
              IsEmpty());
  // A filter that may differ between runs.
  const Output filter =
      ops::Mul(scope_, Weights(scope_, {1, 1, 16, 16}), ops::Sum(scope_, x_, {0, 1, 2, 3}));
  EXPECT_THAT(Blocked({chain([&](const Output& x) {
                return ops::Conv2D(scope_, x, filter, {1, 1, 1, 1}, "SAME");
              })}),
              IsEmpty());
  // A short chain does not pay for the copies at both ends.
  EXPECT_THAT(Blocked({Conv(scope_, Conv(scope_, x_, 16, 16), 16, 16)}), IsEmpty());
}

TEST_F(BlockedLayoutTest, NeedsFoldBatchNorms) {
  Output y = x_;
  for (int i = 0; i < 8; ++i) y = Conv(scope_, y, 16, 16);
  PlanNames names;
  names.feeds = {x_.name()};
  names.fetches = {y.name()};
  KernelCache kernels;
  for (const bool fuse : {false, true}) {
    PlanOptions options;
    options.fuse = fuse;
    options.fold_batch_norms = !fuse;
    const auto plan = Plan::Make(*scope_.graph(), names, &kernels, options);
    ASSERT_TRUE(plan.ok()) << plan.status();
    for (int i = 0; i < (*plan)->num_nodes(); ++i) EXPECT_EQ((*plan)->label(i), nullptr);
  }
}

// ---- Errors and special values ----

// Nodes in the middle of a chain return the same errors as in the plain layout.
TEST_F(BlockedLayoutTest, NamesTheNodeThatFails) {
  Output y = Conv(scope_, x_, 16, 16);
  for (int i = 0; i < 7; ++i) {
    y = ops::Relu(scope_,
                  Conv(scope_.NewSubScope(absl::StrCat("layer", i)), y, 16, 16, 3, 1, "VALID"));
  }
  const Output bias = ops::Placeholder(scope_.WithOpName("bias"), DT_FLOAT);
  Output biased = x_;
  for (int i = 0; i < 8; ++i) biased = ops::BiasAdd(scope_, Conv(scope_, biased, 16, 16), bias);
  if (OneDnnBlockSize() > 0) {
    EXPECT_THAT(Blocked({y}), ::testing::SizeIs(8));
  }
  for (const bool fast : {false, true}) {
    SessionOptions options;
    options.fold_batch_norms = fast;
    ClientSession session(scope_, options);
    for (const TensorShape& shape : {TensorShape({1, 16}), TensorShape({15}), TensorShape({})}) {
      std::vector<Tensor> outputs;
      EXPECT_THAT(session.Run({{x_, RandomTensor(DT_FLOAT, {1, 3, 3, 16})},
                               {bias, RandomTensor(DT_FLOAT, shape)}},
                              {biased}, &outputs),
                  StatusIs(StatusCode::kInvalidArgument, HasSubstr("bias has")));
    }
    // One pixel is left after three layers.
    EXPECT_THAT(
        Run({y}, RandomTensor(DT_FLOAT, {1, 7, 7, 16}), fast).status(),
        StatusIs(StatusCode::kInvalidArgument, AllOf(HasSubstr("'layer3/Conv2D' (Conv2D)"),
                                                     HasSubstr("the 1 of the padded input"))));
    EXPECT_THAT(Run({y}, RandomTensor(DT_FLOAT, {1, 9, 9, 15}), fast).status(),
                StatusIs(StatusCode::kInvalidArgument, HasSubstr("15")));
  }
}

// The session owns the reordered filter.
TEST_F(BlockedLayoutTest, CountsFiltersAgainstTheMemoryLimit) {
  if (OneDnnBlockSize() == 0) GTEST_SKIP() << "no code for channel blocks";
  Output y = x_;
  for (int i = 0; i < 7; ++i) y = Conv(scope_, y, 32, 32);
  y = Conv(scope_, y, 32, 1024, 3);
  for (const int64_t limit : {1 << 20, 2 << 20}) {
    SessionOptions options;
    options.fold_batch_norms = true;
    options.tensor_memory_limit_bytes = limit;
    ClientSession session(scope_, options);
    std::vector<Tensor> outputs;
    const absl::Status status =
        session.Run({{x_, RandomTensor(DT_FLOAT, {1, 8, 8, 32})}}, {y}, &outputs);
    // The filter takes 1.2 MB, and the images at most 0.3 MB.
    if (limit < 2 << 20) {
      EXPECT_THAT(status, StatusIs(StatusCode::kResourceExhausted));
    } else {
      GRADFLOW_EXPECT_OK(status);
    }
  }
}

// Simultaneous runs of several shapes share the kernels. Each kernel keeps one reordered filter.
TEST_F(BlockedLayoutTest, RunsOfSeveralShapesShareKernels) {
  Output y = x_;
  for (int i = 0; i < 8; ++i) {
    y = ops::Relu(scope_, Conv(scope_, y, i % 2 == 0 ? 32 : 24, i % 2 == 0 ? 24 : 32, 3));
  }
  SessionOptions options;
  options.fold_batch_norms = true;
  ClientSession session(scope_, options);
  std::vector<Tensor> x;
  std::vector<Tensor> expected;
  for (int i = 0; i < 4; ++i) {
    // Large images are divided into ranges of channels, and each range has its own filter.
    x.push_back(RandomTensor(DT_FLOAT, {1 + i % 2, i < 2 ? 6 + i : 60, i < 2 ? 7 : 50, 32}));
    std::vector<Tensor> outputs;
    GRADFLOW_ASSERT_OK(session.Run({{x_, x.back()}}, {y}, &outputs));
    expected.push_back(outputs[0]);
    const auto plain = Run({y}, x.back(), false);
    ASSERT_TRUE(plain.ok()) << plain.status();
    EXPECT_THAT(outputs[0], TensorNear((*plain)[0], 2e-5, 2e-5));
  }
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int run = 0; run < 10; ++run) {
        std::vector<Tensor> outputs;
        GRADFLOW_ASSERT_OK(session.Run({{x_, x[i]}}, {y}, &outputs));
        ASSERT_THAT(outputs[0], TensorEq(expected[i]));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Plans whose kernels differ in one step or in a layout share the other kernels.
TEST_F(BlockedLayoutTest, PlansOfOtherStepsShareKernels) {
  std::vector<Output> convs;
  std::vector<Output> y = {x_};
  for (int i = 0; i < 9; ++i) {
    convs.push_back(Conv(scope_, y.back(), 12, 12, 3));
    y.push_back(i < 7    ? convs.back()
                : i == 7 ? Output(ops::Relu(scope_, convs.back()))
                         : Bias(scope_, convs.back(), 12));
  }
  const Output sum = ops::AddV2(scope_, convs[6], convs[5]);
  SessionOptions options;
  options.fold_batch_norms = true;
  ClientSession session(scope_, options);
  const Tensor x = RandomTensor(DT_FLOAT, {1, 5, 5, 12});
  // In order: with a plain image in the middle, with all images in blocks, without the ReLU,
  // without the bias, without both, with the sum, and again with a plain image.
  for (const std::vector<Output>& fetches : {std::vector<Output>{y[9], y[1]},
                                             {y[9]},
                                             {convs[7]},
                                             {convs[8]},
                                             {convs[6]},
                                             {sum},
                                             {y[9], y[1]}}) {
    std::vector<Tensor> found;
    GRADFLOW_ASSERT_OK(session.Run({{x_, x}}, fetches, &found));
    const auto expected = Run(fetches, x, false);
    ASSERT_TRUE(expected.ok()) << expected.status();
    for (size_t i = 0; i < fetches.size(); ++i) {
      EXPECT_THAT(found[i], TensorNear((*expected)[i], 2e-5, 2e-5));
    }
  }
}

// The last block of 24 channels also has padding channels, which must not become NaN.
TEST_F(BlockedLayoutTest, KeepsInfinitiesInBlocksThatAreNotFull) {
  Output y = x_;
  for (int i = 0; i < 8; ++i) {
    y = ops::Conv2D(scope_, y,
                    ops::Const(scope_, RandomTensor(DT_FLOAT, {1, 1, 24, 24}, 0.5, 1,
                                                    static_cast<uint32_t>(i))),
                    {1, 1, 1, 1}, "SAME");
  }
  Tensor x = RandomTensor(DT_FLOAT, {2, 3, 3, 24}, 0.5, 1);
  x.tensor<float, 4>()(1, 1, 2, 5) = std::numeric_limits<float>::infinity();
  ExpectNear({y}, x);
  if (OneDnnBlockSize() > 0) {
    EXPECT_THAT(Blocked({y}), ::testing::SizeIs(8));
  }
}

TEST_F(BlockedLayoutTest, KeepsInfinitiesAndMakesZeroOfNanInRelu) {
  if (OneDnnBlockSize() == 0) GTEST_SKIP() << "no code for channel blocks";
  Output plain = x_;
  Output relu = ops::Relu(scope_, x_);
  const Output one = ops::Const(scope_, [] {
    Tensor filter(DT_FLOAT, {1, 1, 16, 16});
    filter.flat<float>().setZero();
    for (int i = 0; i < 16; ++i) filter.tensor<float, 4>()(0, 0, i, i) = 1;
    return filter;
  }());
  for (int i = 0; i < 8; ++i) {
    plain = ops::Conv2D(scope_, plain, one, {1, 1, 1, 1}, "SAME");
    relu = ops::Relu(scope_, ops::Conv2D(scope_, relu, one, {1, 1, 1, 1}, "SAME"));
  }
  ASSERT_THAT(Blocked({plain, relu}), ::testing::SizeIs(16));
  Tensor x(DT_FLOAT, {1, 4, 1, 16});
  x.flat<float>().setConstant(-1);
  constexpr float kInf = std::numeric_limits<float>::infinity();
  x.tensor<float, 4>()(0, 1, 0, 0) = std::numeric_limits<float>::quiet_NaN();
  x.tensor<float, 4>()(0, 2, 0, 0) = kInf;
  const auto found = Run({plain, relu}, x, true);
  ASSERT_TRUE(found.ok()) << found.status();
  const auto y = (*found)[0].tensor<float, 4>();
  const auto z = (*found)[1].tensor<float, 4>();
  EXPECT_EQ(y(0, 0, 0, 0), -1);
  EXPECT_EQ(z(0, 0, 0, 0), 0);
  EXPECT_TRUE(std::isnan(y(0, 1, 0, 0)));
  EXPECT_EQ(z(0, 1, 0, 0), 0);
  // Infinity times 0 is NaN.
  EXPECT_TRUE(std::isnan(y(0, 2, 0, 1)));
  EXPECT_EQ(z(0, 2, 0, 0), kInf);
}

}  // namespace
}  // namespace gradflow
