#include "gradflow/gradients/gradients.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/status.h"
#include "gradflow/gradients/gradient_registry.h"
#include "gradflow/graph/const_op.h"
#include "gradflow/graph/node.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/proto/node_def.pb.h"
#include "gradflow/runtime/session/client_session.h"
#include "gradflow/testing/status_matchers.h"
#include "gradflow/testing/tensor_matchers.h"
#include "gradflow/testing/tensors.h"

namespace gradflow {
namespace {

using ::absl::StatusCode;
using ::gradflow::testing::AsTensor;
using ::gradflow::testing::StatusIs;
using ::gradflow::testing::TensorEq;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class GradientsTest : public ::testing::Test {
 protected:
  Output Variable(const std::string& name, DataType dtype = DT_DOUBLE) {
    return ops::Placeholder(scope_.WithOpName(name), dtype, ops::Placeholder::Shape(TensorShape()));
  }
  // Returns the gradients of the sum of `ys` with respect to `xs`, which are fed `values`.
  std::vector<double> Gradients(const std::vector<Output>& ys, const std::vector<Output>& xs,
                                const std::vector<double>& values) {
    std::vector<Output> gradients;
    GRADFLOW_EXPECT_OK(AddSymbolicGradients(scope_, ys, xs, &gradients));
    return Evaluate(gradients, xs, values);
  }
  std::vector<double> Evaluate(const std::vector<Output>& fetches, const std::vector<Output>& xs,
                               const std::vector<double>& values) {
    ClientSession session(scope_);
    ClientSession::FeedType feeds;
    for (size_t i = 0; i < xs.size(); ++i) feeds.emplace(xs[i], values[i]);
    std::vector<Tensor> outputs;
    GRADFLOW_EXPECT_OK(session.Run(feeds, fetches, &outputs));
    std::vector<double> results;
    for (const Tensor& output : outputs) results.push_back(output.scalar<double>()());
    return results;
  }

  Scope scope_ = Scope::NewRootScope();
};

TEST_F(GradientsTest, SumsOverAllPaths) {
  const Output x = Variable("x");
  const Output y = Variable("y");
  // Computes x^2 y + x + x.
  const Output product = ops::Mul(scope_, ops::Square(scope_, x), y);
  const Output z = ops::AddN(scope_, {product, x, x});
  EXPECT_THAT(Gradients({z}, {x, y}, {3, 5}), ElementsAre(2 * 3 * 5 + 2, 9));
}

TEST_F(GradientsTest, SumsOverOutputsWithTheirGradients) {
  const Output x = Variable("x");
  const Output a = ops::Square(scope_, x);
  const Output b = ops::Neg(scope_, x);
  std::vector<Output> gradients;
  GRADFLOW_ASSERT_OK(AddSymbolicGradients(
      scope_, {a, b}, {x}, {ops::Const(scope_, 10.0), ops::Const(scope_, 3.0)}, &gradients));
  EXPECT_THAT(Evaluate(gradients, {x}, {4}), ElementsAre(10 * 8 - 3));
  // An output without a gradient is ignored.
  GRADFLOW_ASSERT_OK(AddSymbolicGradients(scope_, {a, b}, {x},
                                          {NoGradient(), ops::Const(scope_, 3.0)}, &gradients));
  EXPECT_THAT(Evaluate(gradients, {x}, {4}), ElementsAre(-3));
}

TEST_F(GradientsTest, ContinuesThroughInputs) {
  const Output x = Variable("x");
  const Output y = ops::Square(scope_, x);
  const Output z = ops::Mul(scope_, y, x);
  std::vector<Output> gradients;
  GRADFLOW_ASSERT_OK(AddSymbolicGradients(scope_, {z}, {x, y, z}, &gradients));
  EXPECT_THAT(Evaluate(gradients, {x}, {2}), ElementsAre(12, 2, 1));
}

TEST_F(GradientsTest, StopsAtStopGradients) {
  const Output x = Variable("x");
  const Output y = ops::Square(scope_, x);
  const Output z = ops::Mul(scope_, y, x);
  GradientBuildOptions options;
  options.stop_gradients = {x, y};
  std::vector<Output> gradients;
  GRADFLOW_ASSERT_OK(AddSymbolicGradients(scope_, {z}, {x, y}, &gradients, options));
  EXPECT_THAT(Evaluate(gradients, {x}, {2}), ElementsAre(4, 2));
}

TEST_F(GradientsTest, ReportsInputsWithoutAGradient) {
  const Output x = Variable("x");
  const Output y = Variable("y");
  const Output stopped = ops::StopGradient(scope_, ops::Square(scope_, y));
  const Output z = ops::Mul(scope_, x, stopped);
  std::vector<Output> gradients;
  GRADFLOW_ASSERT_OK(AddSymbolicGradients(scope_, {z}, {x, y}, &gradients));
  ASSERT_EQ(gradients.size(), 2);
  EXPECT_FALSE(IsNoGradient(gradients[0]));
  EXPECT_TRUE(IsNoGradient(gradients[1]));
  EXPECT_EQ(gradients[1].node(), nullptr);
}

// Indices and counts are not continuous.
TEST_F(GradientsTest, IntegersHaveNoGradient) {
  const Output x = ops::Const(scope_, {1.0, 3.0, 2.0});
  const ops::TopK top(scope_, x, 2);
  const Output rounded = ops::Cast(scope_, x, DT_INT32);
  std::vector<Output> gradients;
  GRADFLOW_ASSERT_OK(AddSymbolicGradients(scope_, {top.indices, rounded}, {x}, &gradients));
  EXPECT_TRUE(IsNoGradient(gradients[0]));
  GRADFLOW_ASSERT_OK(AddSymbolicGradients(scope_, {rounded}, {rounded}, &gradients));
  EXPECT_TRUE(IsNoGradient(gradients[0]));
}

TEST_F(GradientsTest, IntegersHaveGradientsOnRequest) {
  const Output x = Variable("x");
  const Output i = ops::Const(scope_, {3, 4});
  const Output rows = ops::Cast(scope_, x, DT_INT32);
  const Output picked = ops::Gather(scope_, ops::Mul(scope_, i, i), rows);
  GradientBuildOptions options;
  options.of_integers = true;
  std::vector<Output> gradients;
  GRADFLOW_ASSERT_OK(AddSymbolicGradients(scope_, {picked}, {i, x, rows}, &gradients, options));
  // Indices still have no gradient.
  EXPECT_TRUE(IsNoGradient(gradients[1]));
  EXPECT_TRUE(IsNoGradient(gradients[2]));
  std::vector<Tensor> outputs;
  GRADFLOW_ASSERT_OK(ClientSession(scope_).Run({{x, 1.0}}, {gradients[0]}, &outputs));
  EXPECT_THAT(outputs[0], TensorEq(AsTensor<int32_t>({0, 8})));
}

TEST_F(GradientsTest, InputsMustBeReachedOnRequest) {
  const Output x = Variable("x");
  const Output y = Variable("y");
  const Output stopped = ops::Add(scope_, x, ops::StopGradient(scope_, y));
  GradientBuildOptions options;
  options.inputs_must_be_reached = true;
  std::vector<Output> gradients;
  GRADFLOW_ASSERT_OK(AddSymbolicGradients(scope_, {stopped}, {x, y}, &gradients, options));
  EXPECT_TRUE(IsNoGradient(gradients[1]));
  EXPECT_THAT(AddSymbolicGradients(scope_, {ops::Square(scope_, x)}, {x, y}, &gradients, options),
              StatusIs(StatusCode::kInvalidArgument,
                       "Cannot compute the partial derivative for node 'y' as it's unreachable "
                       "from the output node(s)."));
}

// The number of rows, 2^32, exceeds int32.
TEST_F(GradientsTest, GathersMayHaveManyBatches) {
  const Output params = ops::Fill(scope_, {1 << 16, 1 << 16, 0}, 1.0);
  const Output indices = ops::Fill(scope_, {1 << 16, 1}, 7);
  const Output y = ops::GatherV2(scope_, params, indices, 1, ops::GatherV2::BatchDims(1));
  std::vector<Output> gradients;
  GRADFLOW_ASSERT_OK(AddSymbolicGradients(scope_, {y}, {params}, &gradients));
  std::vector<Tensor> values;
  GRADFLOW_ASSERT_OK(ClientSession(scope_).Run(gradients, &values));
  EXPECT_EQ(values[0].shape(), TensorShape({1 << 16, 1 << 16, 0}));
}

TEST_F(GradientsTest, DifferentiatesGradients) {
  const Output x = Variable("x");
  Output y = ops::Mul(scope_, ops::Square(scope_, x), ops::Square(scope_, x));
  // The derivatives of x^4 are 4 x^3, 12 x^2 and 24 x.
  std::vector<double> derivatives;
  for (int order = 0; order < 3; ++order) {
    std::vector<Output> gradients;
    GRADFLOW_ASSERT_OK(AddSymbolicGradients(scope_, {y}, {x}, &gradients));
    y = gradients[0];
    derivatives.push_back(Evaluate({y}, {x}, {2})[0]);
  }
  EXPECT_THAT(derivatives, ElementsAre(32, 48, 48));
}

TEST_F(GradientsTest, NamesOpsUnderGradients) {
  const Output x = Variable("x");
  const Output y = ops::Exp(scope_.WithOpName("layer/exp"), x);
  const int before = scope_.graph()->num_nodes();
  std::vector<Output> gradients;
  GRADFLOW_ASSERT_OK(AddSymbolicGradients(scope_, {y}, {x},
                                          {ops::Const(scope_.WithOpName("dy"), 1.0)}, &gradients));
  EXPECT_THAT(gradients[0].node()->name(), HasSubstr("gradients/layer/exp/"));
  for (int i = before + 1; i < scope_.graph()->num_nodes(); ++i) {
    EXPECT_TRUE(absl::StartsWith(scope_.graph()->node(i)->name(), "gradients/"));
  }
}

TEST_F(GradientsTest, ColocatesGradientsWithTheirOps) {
  const Output x = Variable("x");
  const Output y = ops::Exp(scope_.WithOpName("exp"), x);
  GradientBuildOptions options;
  options.colocate_gradients_with_ops = true;
  std::vector<Output> gradients;
  GRADFLOW_ASSERT_OK(AddSymbolicGradients(scope_, {y}, {x}, &gradients, options));
  std::vector<std::string> classes;
  GRADFLOW_ASSERT_OK(gradients[0].node()->GetAttr("_class", &classes));
  EXPECT_THAT(classes, ElementsAre("loc:@exp"));
}

// Takes linear time and does not recurse.
TEST_F(GradientsTest, TakesDeepGraphs) {
  constexpr int kDepth = 50000;
  const Output x = Variable("x");
  Output y = x;
  for (int i = 0; i < kDepth; ++i) y = ops::Neg(scope_, y);
  std::vector<Output> gradients;
  const int before = scope_.graph()->num_nodes();
  GRADFLOW_ASSERT_OK(AddSymbolicGradients(scope_, {y}, {x}, &gradients));
  EXPECT_LE(scope_.graph()->num_nodes() - before, kDepth + 2);
  EXPECT_THAT(Evaluate(gradients, {x}, {4}), ElementsAre(1));
}

TEST_F(GradientsTest, StopsAtRandomNumbers) {
  const Output x = Variable("x");
  const Output noise = ops::RandomStandardNormal(scope_, ops::Shape(scope_, x), DT_DOUBLE);
  EXPECT_THAT(Gradients({ops::Add(scope_, ops::Square(scope_, x), noise)}, {x}, {5}),
              ElementsAre(10));
}

TEST_F(GradientsTest, SkipsOpsThatDoNotDependOnTheInputs) {
  const Output x = Variable("x");
  const Output unknown = ops::Cast(scope_, ops::Range(scope_, 0, 3, 1), DT_DOUBLE);
  const Output y = ops::Mul(scope_, ops::Square(scope_, x), ops::Sum(scope_, unknown, 0));
  EXPECT_THAT(Gradients({y}, {x}, {5}), ElementsAre(30));
}

TEST_F(GradientsTest, ErrorsNameAllOpsWithoutAGradientFunction) {
  const GradientRegistry none;
  GradientBuildOptions options;
  options.registry = &none;
  const Output x = Variable("x");
  const Output a = ops::Exp(scope_.WithOpName("a"), x);
  const Output b = ops::Neg(scope_.WithOpName("b"), x);
  const Output b2 = ops::Neg(scope_.WithOpName("b2"), x);
  std::vector<Output> gradients = {x};
  EXPECT_THAT(AddSymbolicGradients(scope_, {a, b, b2}, {x}, &gradients, options),
              StatusIs(StatusCode::kUnimplemented,
                       "no gradient function is registered for Exp (node 'a'), Neg (node 'b' and "
                       "1 more)"));
  EXPECT_THAT(gradients, ElementsAre(x));
}

TEST_F(GradientsTest, ErrorsNameOpsBeforeOneWithoutAGradientFunction) {
  const GradientRegistry none;
  GradientBuildOptions options;
  options.registry = &none;
  const Output x = Variable("x");
  const Output a = ops::Exp(scope_.WithOpName("a"), x);
  const Output b = ops::Neg(scope_.WithOpName("b"), a);
  std::vector<Output> gradients;
  EXPECT_THAT(AddSymbolicGradients(scope_, {b}, {x}, &gradients, options),
              StatusIs(StatusCode::kUnimplemented,
                       "no gradient function is registered for Exp (node 'a'), Neg (node 'b')"));
}

// The graph has nodes that the scope does not know, such as gradients of an imported graph.
TEST_F(GradientsTest, AvoidsNamesThatTheGraphHas) {
  const Output x = Variable("x");
  const Output y = ops::Exp(scope_.WithOpName("exp"), x);
  NodeDef def;
  def.set_name("gradients/exp/Mul");
  def.set_op("NoOp");
  GRADFLOW_ASSERT_OK(scope_.graph()->AddNode(std::move(def)));
  std::vector<Output> gradients;
  GRADFLOW_ASSERT_OK(AddSymbolicGradients(scope_, {y}, {x}, &gradients));
  EXPECT_THAT(gradients[0].node()->name(), HasSubstr("gradients_1/exp/"));
}

TEST_F(GradientsTest, MeansOfManyHalfNumbersAreExact) {
  const Output x = ops::Placeholder(scope_, DT_HALF);
  const Output y = ops::Mean(scope_, x, 1);
  std::vector<Output> gradients;
  GRADFLOW_ASSERT_OK(AddSymbolicGradients(scope_, {y}, {x}, &gradients));
  ClientSession session(scope_);
  std::vector<Tensor> outputs;
  Tensor value(DT_HALF, {300, 256});
  value.flat<half>().setZero();
  GRADFLOW_ASSERT_OK(session.Run({{x, value}}, gradients, &outputs));
  EXPECT_EQ(static_cast<float>(outputs[0].flat<half>()(0)), 1.0f / 256);
}

TEST_F(GradientsTest, StopsAtIntegers) {
  const Output x = Variable("x");
  const Output i = ops::Placeholder(scope_, DT_INT32);
  const Output y = ops::Mul(scope_, x, ops::Cast(scope_, ops::Mul(scope_, i, i), DT_DOUBLE));
  const Output z = ops::Mul(scope_, i, 2);
  std::vector<Output> gradients;
  GRADFLOW_ASSERT_OK(AddSymbolicGradients(scope_, {y, z}, {x, i}, &gradients));
  EXPECT_FALSE(IsNoGradient(gradients[0]));
  EXPECT_TRUE(IsNoGradient(gradients[1]));
}

// If the inputs of a product are known to have the same shape, its gradients are two nodes, without
// sums over broadcast dimensions.
TEST_F(GradientsTest, ChainsOfKnownShapesNeedNoSums) {
  constexpr int kDepth = 20000;
  const Output x = Variable("x");
  const Output w = Variable("w");
  Output y = x;
  for (int i = 0; i < kDepth; ++i) y = ops::Mul(scope_, y, w);
  std::vector<Output> gradients;
  const int before = scope_.graph()->num_nodes();
  GRADFLOW_ASSERT_OK(AddSymbolicGradients(scope_, {y}, {x, w}, &gradients));
  // Two more nodes: the gradient of y, a tensor of ones, and the sum of the gradients of w.
  EXPECT_EQ(scope_.graph()->num_nodes() - before, 2 * kDepth + 2);
  EXPECT_THAT(Evaluate(gradients, {x, w}, {4, -1}), ElementsAre(1, -4.0 * kDepth));
}

// The statically known shapes of two inputs. A gradient is summed if its input may be broadcast.
struct BroadcastCase {
  PartialTensorShape x;
  PartialTensorShape y;
  bool sums_x;
  bool sums_y;
};

TEST_F(GradientsTest, SumsIfShapesMayBeBroadcast) {
  const PartialTensorShape unknown{};
  const PartialTensorShape scalar = TensorShape();
  const std::vector<BroadcastCase> cases = {
      {scalar, scalar, false, false}, {{2, 3}, {2, 3}, false, false},
      {{2, 3}, {3}, false, true},     {{2, 3}, {1, 3}, false, true},
      {{3}, {2, 3}, true, false},     {{2, 1}, {1, 3}, true, true},
      {{0, 3}, {1, 3}, false, true},  {{1, 3}, {0, 3}, true, false},
      {{-1, 3}, {3}, false, true},    {{-1, 3}, {1, 3}, false, true},
      {{-1, 3}, {-1, 3}, true, true}, {{-1}, {2}, true, true},
      {{2}, {-1}, true, true},        {unknown, scalar, false, true},
      {scalar, unknown, true, false}, {unknown, {2}, true, true},
      {unknown, unknown, true, true},
  };
  for (const BroadcastCase& c : cases) {
    SCOPED_TRACE(c.x.DebugString() + c.y.DebugString());
    const Scope scope = Scope::NewRootScope();
    const Output x = ops::Placeholder(scope, DT_FLOAT, ops::Placeholder::Shape(c.x));
    const Output y = ops::Placeholder(scope, DT_FLOAT, ops::Placeholder::Shape(c.y));
    std::vector<Output> gradients;
    GRADFLOW_ASSERT_OK(AddSymbolicGradients(scope, {ops::Sub(scope, x, y)}, {x, y}, &gradients));
    EXPECT_EQ(gradients[0].node()->type_string() == "Reshape", c.sums_x);
    EXPECT_EQ(gradients[1].node()->type_string() == "Reshape", c.sums_y);
    // Unknown sizes are 1 or 2, so that they broadcast with all known sizes.
    for (const int64_t size : {1, 2}) {
      const auto feed = [&](const PartialTensorShape& shape) {
        TensorShape fed;
        for (int d = 0; d < shape.dims(); ++d) {
          fed.AddDim(shape.dim_size(d) < 0 ? size : shape.dim_size(d));
        }
        if (shape.unknown_rank() && size == 2) fed = {3, 1};
        return ::gradflow::testing::RandomTensor(DT_FLOAT, fed);
      };
      const Tensor fed_x = feed(c.x);
      const Tensor fed_y = feed(c.y);
      ClientSession session(scope);
      std::vector<Tensor> outputs;
      GRADFLOW_ASSERT_OK(session.Run({{x, fed_x}, {y, fed_y}}, gradients, &outputs));
      const auto elements = static_cast<float>([&] {
        int64_t count = 1;
        const TensorShape& a = fed_x.shape();
        const TensorShape& b = fed_y.shape();
        for (int d = 1; d <= std::max(a.dims(), b.dims()); ++d) {
          const int64_t m = d <= a.dims() ? a.dim_size(a.dims() - d) : 1;
          const int64_t n = d <= b.dims() ? b.dim_size(b.dims() - d) : 1;
          count *= m == 1 ? n : m;
        }
        return count;
      }());
      const auto expect_all = [&](const Tensor& gradient, const Tensor& of, float sign) {
        EXPECT_EQ(gradient.shape(), of.shape());
        for (const float value : gradient.span<float>()) {
          EXPECT_EQ(value, sign * elements / static_cast<float>(of.NumElements()));
        }
      };
      expect_all(outputs[0], fed_x, 1);
      expect_all(outputs[1], fed_y, -1);
    }
  }
}

// If the graph does not know the shape, the next fed tensor may have another shape.
TEST_F(GradientsTest, FollowsTheShapesOfFedTensors) {
  const Output w = ops::Placeholder(scope_, DT_FLOAT, ops::Placeholder::Shape({-1}));
  const Output b = ops::Const(scope_, {3.0f, 4.0f});
  std::vector<Output> gradients;
  GRADFLOW_ASSERT_OK(AddSymbolicGradients(scope_, {ops::Add(scope_, w, b)}, {w, b}, &gradients));
  ClientSession session(scope_);
  std::vector<Tensor> outputs;
  GRADFLOW_ASSERT_OK(session.Run({{w, {5.0f}}}, gradients, &outputs));
  EXPECT_EQ(outputs[0].shape(), TensorShape({1}));
  EXPECT_EQ(outputs[0].flat<float>()(0), 2);
  EXPECT_EQ(outputs[1].shape(), TensorShape({2}));
}

TEST_F(GradientsTest, ErrorsNameTheNode) {
  const Output x = Variable("x");
  const Output y =
      ops::PreventGradient(scope_.WithOpName("wall"), x, ops::PreventGradient::Message("no way"));
  std::vector<Output> gradients;
  EXPECT_THAT(AddSymbolicGradients(scope_, {y}, {x}, &gradients),
              StatusIs(StatusCode::kInvalidArgument,
                       "node 'wall' (PreventGradient): the gradient is prevented: no way"));
}

TEST_F(GradientsTest, ChecksItsArguments) {
  const Output x = Variable("x");
  const Output y = ops::Exp(scope_, x);
  std::vector<Output> gradients;
  EXPECT_THAT(AddSymbolicGradients(scope_, {y}, {x}, {}, &gradients),
              StatusIs(StatusCode::kInvalidArgument,
                       "expected one gradient for each of 1 outputs, found 0"));
  EXPECT_THAT(AddSymbolicGradients(scope_, {y}, {x}, {ops::Const(scope_, 1.0f)}, &gradients),
              StatusIs(StatusCode::kInvalidArgument,
                       "the gradient of output 0 has type float, expected double"));
  EXPECT_THAT(AddSymbolicGradients(scope_, {y}, {Output()}, &gradients),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("input 0 is not a tensor of")));
  const Scope other = Scope::NewRootScope();
  EXPECT_THAT(AddSymbolicGradients(other, {y}, {x}, &gradients),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("output 0 is not a tensor of")));
  EXPECT_THAT(AddSymbolicGradients(scope_, {Output(y.node(), 1)}, {x}, &gradients),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("output 0 is not a tensor of")));
}

// ---- Slices ----

class SparseGradientsTest : public ::testing::Test {
 protected:
  SparseGradient GradientOf(const Output& y, const Output& x) {
    std::vector<SparseGradient> gradients;
    const Output dy = ops::OnesLike(scope_, y);
    GRADFLOW_EXPECT_OK(AddSparseSymbolicGradients(scope_, {y}, {x}, {dy}, &gradients));
    return gradients.empty() ? SparseGradient() : gradients[0];
  }
  std::vector<Tensor> Evaluate(const std::vector<Output>& ys) {
    std::vector<Tensor> outputs;
    GRADFLOW_EXPECT_OK(ClientSession(scope_).Run(ys, &outputs));
    return outputs;
  }
  // Expects that `gradient` equals the dense gradient.
  void ExpectDense(const Output& y, const Output& x, const SparseGradient& gradient) {
    std::vector<Output> dense;
    GRADFLOW_ASSERT_OK(AddSymbolicGradients(scope_, {y}, {x}, &dense));
    const Output found = gradient.is_sparse ? ToDense(scope_, gradient.slices) : gradient.dense;
    const std::vector<Tensor> values = Evaluate({found, dense[0]});
    EXPECT_THAT(values[0], TensorEq(values[1]));
  }

  Scope scope_ = Scope::NewRootScope();
  Output table_ = ops::Const(scope_, AsTensor<float>({1, 2, 3, 4, 5, 6}, {3, 2}));
};

TEST_F(SparseGradientsTest, GatherHasSlicesOfItsRows) {
  const Output rows = ops::Gather(scope_, table_, {{2, 0}, {2, 2}});
  const Output y = ops::Square(scope_, rows);
  const SparseGradient gradient = GradientOf(y, table_);
  ASSERT_TRUE(gradient.is_sparse);
  EXPECT_TRUE(IsNoGradient(gradient.dense));
  const auto& [values, indices, shape] = gradient.slices;
  EXPECT_THAT(
      Evaluate({values, indices, shape}),
      ElementsAre(TensorEq(AsTensor<float>({10, 12, 2, 4, 10, 12, 10, 12}, {4, 2})),
                  TensorEq(AsTensor<int32_t>({2, 0, 2, 2})), TensorEq(AsTensor<int32_t>({3, 2}))));
  ExpectDense(y, table_, gradient);
}

TEST_F(SparseGradientsTest, SeveralReadersAreConcatenated) {
  const Output a = ops::GatherV2(scope_, table_, {1, 1}, 0);
  const Output b = ops::Gather(scope_, table_, ops::Const(scope_, static_cast<int64_t>(2)));
  const Output y = ops::Add(scope_, ops::Square(scope_, a), ops::Exp(scope_, b));
  const SparseGradient gradient = GradientOf(y, table_);
  ASSERT_TRUE(gradient.is_sparse);
  EXPECT_EQ(gradient.slices.indices.type(), DT_INT64);
  EXPECT_EQ(Evaluate({gradient.slices.indices})[0].NumElements(), 3);
  ExpectDense(y, table_, gradient);
}

TEST_F(SparseGradientsTest, AreDenseIfOtherOpsReadTheInput) {
  const Output gathered = ops::Gather(scope_, table_, {1, 1});
  const Output y = ops::Mul(scope_, ops::Sum(scope_, gathered, {0, 1}), table_);
  const SparseGradient gradient = GradientOf(y, table_);
  EXPECT_FALSE(gradient.is_sparse);
  ExpectDense(y, table_, gradient);
  // A gather of columns, or along an unknown axis, also has a dense gradient.
  for (const Output& axis : {Output(ops::Const(scope_, 1)),
                             Output(ops::PlaceholderWithDefault(scope_, 0, TensorShape()))}) {
    const Output other = ops::GatherV2(scope_, table_, {1, 1}, axis);
    const SparseGradient other_gradient = GradientOf(other, table_);
    EXPECT_FALSE(other_gradient.is_sparse);
    ExpectDense(other, table_, other_gradient);
  }
}

// The gradient of an inner tensor continues as a dense tensor.
TEST_F(SparseGradientsTest, InnerTensorsContinueDense) {
  const Output squares = ops::Square(scope_, table_);
  const Output y = ops::Gather(scope_, squares, {2, 2});
  std::vector<SparseGradient> gradients;
  const Output dy = ops::OnesLike(scope_, y);
  GRADFLOW_ASSERT_OK(AddSparseSymbolicGradients(scope_, {y}, {squares, table_}, {dy}, &gradients));
  ExpectDense(y, squares, gradients[0]);
  EXPECT_FALSE(gradients[1].is_sparse);
  ExpectDense(y, table_, gradients[1]);
  // The gradient is sparse if no other op needs the tensor.
  EXPECT_TRUE(GradientOf(y, squares).is_sparse);
}

TEST_F(SparseGradientsTest, PassThroughCopies) {
  const Output copy = ops::Identity(scope_, ops::Identity(scope_, table_));
  const Output y = ops::Add(scope_, ops::Exp(scope_, ops::Gather(scope_, copy, {2, 0})),
                            ops::GatherV2(scope_, table_, {1, 1}, 0));
  const SparseGradient gradient = GradientOf(y, table_);
  ASSERT_TRUE(gradient.is_sparse);
  EXPECT_EQ(Evaluate({gradient.slices.indices})[0].NumElements(), 4);
  ExpectDense(y, table_, gradient);
  // The copy may also be an input.
  std::vector<SparseGradient> both;
  const Output dy = ops::OnesLike(scope_, y);
  GRADFLOW_ASSERT_OK(AddSparseSymbolicGradients(scope_, {y}, {copy, table_}, {dy}, &both));
  EXPECT_EQ(Evaluate({both[0].slices.indices})[0].NumElements(), 2);
  ExpectDense(y, copy, both[0]);
  ASSERT_TRUE(both[1].is_sparse);
  ExpectDense(y, table_, both[1]);
  // Another op reads the copy.
  const Output dense = ops::Mul(scope_, ops::Sum(scope_, y, {0, 1}), copy);
  EXPECT_FALSE(GradientOf(dense, table_).is_sparse);
  ExpectDense(dense, table_, GradientOf(dense, table_));
  // The gradient stops at the copy.
  GradientBuildOptions options;
  options.stop_gradients = {copy};
  std::vector<SparseGradient> stopped;
  GRADFLOW_ASSERT_OK(
      AddSparseSymbolicGradients(scope_, {ops::Gather(scope_, copy, {2, 0})}, {table_},
                                 {Output(ops::Const(scope_, 1.0f, {2, 2}))}, &stopped, options));
  EXPECT_FALSE(stopped[0].is_sparse);
  EXPECT_TRUE(IsNoGradient(stopped[0].dense));
}

TEST_F(SparseGradientsTest, VariablesHaveSlicesThroughReads) {
  const Output w = ops::VarHandleOp(scope_, DT_FLOAT, {3, 2});
  const auto init = ops::AssignVariableOp(scope_, w, table_);
  const Output first = ops::ReadVariableOp(scope_, w, DT_FLOAT);
  const Output second = ops::Identity(scope_, ops::ReadVariableOp(scope_, w, DT_FLOAT));
  const Output y = ops::AddN(scope_, {ops::Exp(scope_, ops::GatherV2(scope_, first, {1, 2}, 0)),
                                      ops::Square(scope_, ops::Gather(scope_, second, {2, 2})),
                                      ops::ResourceGather(scope_, w, {0, 1}, DT_FLOAT)});
  const SparseGradient gradient = GradientOf(y, w);
  ASSERT_TRUE(gradient.is_sparse);
  std::vector<Output> dense;
  GRADFLOW_ASSERT_OK(AddSymbolicGradients(scope_, {y}, {w}, &dense));
  ClientSession session(scope_);
  GRADFLOW_ASSERT_OK(session.Run({}, {}, {init}, nullptr));
  std::vector<Tensor> values;
  const Output found = ToDense(scope_, gradient.slices);
  GRADFLOW_ASSERT_OK(session.Run({found, dense[0], gradient.slices.indices}, &values));
  EXPECT_THAT(values[0], TensorEq(values[1]));
  EXPECT_EQ(values[2].NumElements(), 6);
}

TEST_F(SparseGradientsTest, AreEmptyForIndependentOutputs) {
  const SparseGradient gradient = GradientOf(ops::Const(scope_, 1.0f), table_);
  EXPECT_FALSE(gradient.is_sparse);
  EXPECT_TRUE(IsNoGradient(gradient.dense));
}

// ---- The registry ----

absl::Status Tenfold(const Scope& scope, const Operation&, const std::vector<Output>& dy,
                     std::vector<Output>* dx) {
  dx->push_back(ops::Mul(scope, dy[0], 10.0));
  return scope.status();
}

TEST_F(GradientsTest, UsesRegisteredFunctions) {
  GradientRegistry registry;
  EXPECT_TRUE(registry.Register("Exp", Tenfold));
  EXPECT_FALSE(registry.Register("Exp", nullptr));
  EXPECT_TRUE(registry.RegisterNoGradient("Neg"));
  EXPECT_THAT(registry.DifferentiableOps(), ElementsAre("Exp"));
  EXPECT_THAT(registry.Find("Exp\n").status(),
              StatusIs(StatusCode::kNotFound, "op 'Exp\\n' has no registered gradient function"));
  GradientBuildOptions options;
  options.registry = &registry;
  const Output x = Variable("x");
  const Output y = ops::Exp(scope_, x);
  std::vector<Output> gradients;
  GRADFLOW_ASSERT_OK(AddSymbolicGradients(scope_, {y}, {x}, &gradients, options));
  EXPECT_THAT(Evaluate(gradients, {x}, {1}), ElementsAre(10));
  GRADFLOW_ASSERT_OK(AddSymbolicGradients(scope_, {ops::Neg(scope_, x)}, {x}, &gradients, options));
  EXPECT_TRUE(IsNoGradient(gradients[0]));
}

TEST_F(GradientsTest, CustomFunctionReplacesTheDefault) {
  GradientRegistry& registry = GradientRegistry::Global();
  EXPECT_TRUE(registry.Register("Rint", Tenfold));
  EXPECT_FALSE(registry.Register("Rint", Tenfold));
  const Output x = Variable("x");
  EXPECT_THAT(Gradients({ops::Rint(scope_, x)}, {x}, {1.25}), ElementsAre(10));
}

TEST_F(GradientsTest, ChecksResultsOfGradientFunctions) {
  GradientRegistry registry;
  registry.Register("Exp", [](const Scope&, const Operation&, const std::vector<Output>&,
                              std::vector<Output>*) { return absl::OkStatus(); });
  registry.Register("Neg", [](const Scope& scope, const Operation&, const std::vector<Output>&,
                              std::vector<Output>* dx) {
    dx->push_back(ops::Const(scope, 1.0f));
    return absl::OkStatus();
  });
  GradientBuildOptions options;
  options.registry = &registry;
  const Output x = Variable("x");
  std::vector<Output> gradients;
  EXPECT_THAT(
      AddSymbolicGradients(scope_, {ops::Exp(scope_.WithOpName("e"), x)}, {x}, &gradients, options),
      StatusIs(StatusCode::kInternal,
               "node 'e' (Exp): the gradient function returned 0 gradients, expected 1"));
  EXPECT_THAT(
      AddSymbolicGradients(scope_, {ops::Neg(scope_.WithOpName("n"), x)}, {x}, &gradients, options),
      StatusIs(StatusCode::kInternal,
               "node 'n' (Neg): the gradient function returned a gradient of type float for input "
               "0, expected double"));
}

}  // namespace
}  // namespace gradflow
