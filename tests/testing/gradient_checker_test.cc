// Tests of ComputeGradientError and CheckGradient: results and messages.
#include "gradflow/testing/gradient_checker.h"

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/graph/const_op.h"
#include "gradflow/graph/node_builder.h"
#include "gradflow/ops/register.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// ---- Graphs ----

// y = tanh(x), with dx = factor * dy * (1 - y^2).
struct TanhGraph {
  explicit TanhGraph(DataType dtype) : x(ops::Placeholder(scope, dtype)), y(ops::Tanh(scope, x)) {}

  GradientFn Gradient(double factor = 1) const {
    return [this, factor](const Scope& s, const OutputList& dys) -> OutputList {
      const auto constant = [&](double value) {
        return ops::Cast(s, ops::Const(s, value), x.type());
      };
      const Output slope = ops::Sub(s, constant(1), ops::Square(s, y));
      return {ops::Mul(s, ops::Mul(s, dys[0], slope), constant(factor))};
    };
  }

  Scope scope = Scope::NewRootScope();
  Output x;
  Output y;
};

TEST(ComputeGradientError, IsSmallForARightGradient) {
  for (const DataType dtype : {DT_FLOAT, DT_DOUBLE}) {
    const TanhGraph graph(dtype);
    double error = -1;
    GRADFLOW_ASSERT_OK(ComputeGradientError(graph.scope, {graph.x}, {{2, 3}}, {graph.y}, {{2, 3}},
                                            graph.Gradient(), &error));
    EXPECT_GT(error, 0);
    EXPECT_LT(error, dtype == DT_FLOAT ? 1e-4 : 1e-9);
  }
}

TEST(ComputeGradientError, FindsAWrongGradient) {
  const TanhGraph graph(DT_DOUBLE);
  double error = 0;
  GRADFLOW_ASSERT_OK(ComputeGradientError(graph.scope, graph.x, AsTensor<double>({0.5, 0, 3}),
                                          graph.y, {3}, graph.Gradient(1.25), &error));
  // The largest error is at 0, where the derivative is 1.
  EXPECT_NEAR(error, 0.25, 1e-8);
}

absl::Status CopyInput(KernelContext& ctx) {
  ctx.set_output(0, ctx.input(0));
  return absl::OkStatus();
}

TEST(ComputeGradientError, UsesRegisteredGradientOps) {
  const Scope scope = Scope::NewRootScope();
  const Output x = ops::Placeholder(scope, DT_DOUBLE);
  const Tensor value = AsTensor<double>({0.5, 0, 3});
  const Output y = ops::Neg(scope, ops::Identity(scope, ops::Neg(scope, x)));
  double error = -1;
  GRADFLOW_ASSERT_OK(ComputeGradientError(scope, x, value, y, {3}, &error));
  EXPECT_LT(error, 1e-9);
  GRADFLOW_ASSERT_OK(ComputeGradientError(scope, {x}, {{2}}, {y, x}, {{2}, {2}}, &error));
  EXPECT_LT(error, 1e-9);
  // Half of the correct gradient 2 * x.
  RegisterGradientOp("Square", {"Mul", {"d:y", "x"}, {"x"}});
  const Output square = ops::Square(scope, y);
  GRADFLOW_ASSERT_OK(ComputeGradientError(scope, x, value, square, {3}, &error));
  EXPECT_NEAR(error, 3, 1e-8);
  GlobalRegistry()
      .Op("WithoutGradient")
      .Input("x: double")
      .Output("y: double")
      .Shape(UnchangedShape);
  GlobalRegistry().Kernel("WithoutGradient", MakeFunctionKernel<CopyInput>);
  const Output copy = OpBuilder(scope, "WithoutGradient").Input(square).Finish().output(0);
  EXPECT_THAT(ComputeGradientError(scope, x, value, copy, {3}, &error),
              StatusIs(absl::StatusCode::kUnimplemented,
                       "no gradient function is registered for WithoutGradient (node "
                       "'WithoutGradient')"));
}

TEST(FindGradientError, ReportsTheElement) {
  const TanhGraph graph(DT_DOUBLE);
  GRADFLOW_ASSERT_OK_AND_ASSIGN(
      const GradientError error,
      FindGradientError(graph.scope, {graph.x}, {AsTensor<double>({0.5, 0, 3})}, {graph.y},
                        graph.Gradient(1.5)));
  EXPECT_EQ(error.y_element, 1);
  EXPECT_EQ(error.x_element, 1);
  EXPECT_EQ(error.analytic, 1.5);
  EXPECT_NEAR(error.numeric, 1, 1e-8);
  EXPECT_EQ(error.largest, 1.5);
  EXPECT_EQ(error.DebugString(),
            "d y0[1] / d x0[1] is 1.5 by the gradient, 1 by differences "
            "(error 0.5)");
}

TEST(FindGradientError, SupportsSeveralInputsAndOutputs) {
  const Scope scope = Scope::NewRootScope();
  const Output a = ops::Placeholder(scope, DT_DOUBLE);
  const Output b = ops::Placeholder(scope, DT_DOUBLE);
  const Output product = ops::MatMul(scope, a, b);
  const Output square = ops::Square(scope, a);
  // `of_square` is the factor of a in the gradient of the square: 2 if the gradient is correct.
  const auto gradient = [&](double of_square) -> GradientFn {
    return [&a, &b, of_square](const Scope& s, const OutputList& dys) -> OutputList {
      const Output by_product = ops::MatMul(s, dys[0], b, ops::MatMul::TransposeB(true));
      const Output by_square = ops::Mul(s, ops::Mul(s, dys[1], a), ops::Const(s, of_square));
      return {ops::Add(s, by_product, by_square),
              ops::MatMul(s, a, dys[0], ops::MatMul::TransposeA(true))};
    };
  };
  const std::vector<Tensor> values = {RandomTensor(DT_DOUBLE, {2, 3}),
                                      RandomTensor(DT_DOUBLE, {3, 2}, -1, 1, 2)};
  GRADFLOW_ASSERT_OK_AND_ASSIGN(
      const GradientError right,
      FindGradientError(scope, {a, b}, values, {product, square}, gradient(2)));
  EXPECT_LT(right.max_error, 1e-8);
  GRADFLOW_ASSERT_OK_AND_ASSIGN(
      const GradientError wrong,
      FindGradientError(scope, {a, b}, values, {product, square}, gradient(3)));
  EXPECT_EQ(wrong.y, 1);
  EXPECT_EQ(wrong.x, 0);
}

// For a holomorphic function, the gradient is multiplied by the conjugate of the derivative.
TEST(FindGradientError, SupportsComplexTypes) {
  for (const DataType dtype : {DT_COMPLEX64, DT_COMPLEX128}) {
    const Scope scope = Scope::NewRootScope();
    const Output x = ops::Placeholder(scope, dtype);
    const Output square = ops::Square(scope, x);
    const Output real =
        ops::Real(scope, x, ops::Real::Tout(dtype == DT_COMPLEX64 ? DT_FLOAT : DT_DOUBLE));
    const auto gradient = [&](const Scope& s, const OutputList& dys) -> OutputList {
      const Output slope = ops::Conj(s, ops::Add(s, x, x));
      const Output zero = ops::ZerosLike(s, dys[1]);
      return {ops::Add(s, ops::Mul(s, dys[0], slope),
                       ops::Complex(s, dys[1], zero, ops::Complex::Tout(dtype)))};
    };
    const auto without_conjugate = [&](const Scope& s, const OutputList& dys) -> OutputList {
      return {ops::Mul(s, dys[0], ops::Add(s, x, x))};
    };
    const std::vector<Tensor> values = {RandomTensor(dtype, {3})};
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const GradientError right,
                                  FindGradientError(scope, {x}, values, {square, real}, gradient));
    EXPECT_LT(right.max_error, dtype == DT_COMPLEX64 ? 1e-4 : 1e-9) << right.DebugString();
    GRADFLOW_ASSERT_OK_AND_ASSIGN(
        const GradientError wrong,
        FindGradientError(scope, {x}, values, {square}, without_conjugate));
    EXPECT_GT(wrong.max_error, 0.1);
  }
}

TEST(FindGradientError, CountsNanAsTheLargestError) {
  const TanhGraph graph(DT_FLOAT);
  GRADFLOW_ASSERT_OK_AND_ASSIGN(
      const GradientError error,
      FindGradientError(graph.scope, {graph.x}, {AsTensor<float>({0, 1})}, {graph.y},
                        [&](const Scope& s, const OutputList& dys) -> OutputList {
                          return {ops::Log(s, ops::Sub(s, dys[0], 2.0f))};
                        }));
  EXPECT_TRUE(std::isnan(error.max_error));
}

TEST(FindGradientError, NamesMismatches) {
  const TanhGraph graph(DT_FLOAT);
  const Tensor value = AsTensor<float>({1, 2});
  const auto find = [&](const OutputList& xs, const std::vector<Tensor>& values,
                        const GradientFn& gradient) {
    return FindGradientError(graph.scope, xs, values, {graph.y}, gradient).status();
  };
  EXPECT_THAT(find({graph.x}, {}, graph.Gradient()),
              StatusIs(kInvalidArgument, "there are 1 xs, but 0 values of them"));
  EXPECT_THAT(find({graph.x}, {AsTensor<double>({1})}, graph.Gradient()),
              StatusIs(kInvalidArgument,
                       "x0 has type float, and its value double: both must be float, double "
                       "or complex"));
  const auto no_gradient = [](const Scope&, const OutputList&) { return OutputList(); };
  EXPECT_THAT(find({graph.x}, {value}, no_gradient),
              StatusIs(kInvalidArgument, "the gradient graph returns 0 gradients for 1 xs"));
  const auto scalar = [](const Scope& s, const OutputList&) -> OutputList {
    return {ops::Const(s, 1.0f)};
  };
  EXPECT_THAT(find({graph.x}, {value}, scalar),
              StatusIs(kInvalidArgument,
                       "the gradient of x0 must be float of shape [2], but is float of "
                       "shape []"));
  double error = 0;
  EXPECT_THAT(ComputeGradientError(graph.scope, {graph.x}, {{2}, {3}}, {graph.y}, {{2}},
                                   graph.Gradient(), &error),
              StatusIs(kInvalidArgument, "there are 1 xs, but 2 shapes of them"));
  // The graph knows the shapes.
  const Scope scope = Scope::NewRootScope();
  const Output x = ops::Placeholder(scope, DT_FLOAT, ops::Placeholder::Shape({2}));
  EXPECT_THAT(
      ComputeGradientError(scope, x, value, ops::Square(scope, x), {3}, graph.Gradient(), &error),
      StatusIs(kInvalidArgument, "y0 has shape [2], not [3]"));
}

// ---- Ops with a registered gradient op ----

TEST(CheckGradient, ChecksFakeQuant) {
  const Tensor x = AsTensor<float>({-3, -0.9f, -0.31f, 0.123f, 0.9f, 1.7f}, {3, 2});
  for (const int num_bits : {2, 8, 16}) {
    for (const bool narrow : {false, true}) {
      SCOPED_TRACE(absl::StrCat(num_bits, narrow ? " narrow" : ""));
      const auto tester = [&](const char* op) {
        return OpTester(op).Input(x).Attr("num_bits", num_bits).Attr("narrow_range", narrow);
      };
      EXPECT_TRUE(
          CheckGradient(tester("FakeQuantWithMinMaxArgs").Attr("min", -1.25f).Attr("max", 1.1f)));
      EXPECT_TRUE(CheckGradient(tester("FakeQuantWithMinMaxVars")
                                    .Input(AsScalar<float>(-1.25f))
                                    .Input(AsScalar<float>(1.1f))));
      EXPECT_TRUE(CheckGradient(tester("FakeQuantWithMinMaxVarsPerChannel")
                                    .Input<float>({-1.25f, -0.6f})
                                    .Input<float>({1.1f, 2})));
    }
  }
  EXPECT_TRUE(CheckGradient("FakeQuantWithMinMaxVars",
                            {x, AsScalar<float>(-1.25f), AsScalar<float>(1.1f)}));
}

TEST(CheckGradient, ChecksFusedBatchNorm) {
  const Tensor x = RandomTensor(DT_FLOAT, {2, 3, 2, 2}, Normal(0, 1));
  const Tensor scale = AsTensor<float>({0.5f, 2});
  const Tensor offset = AsTensor<float>({1, -1});
  for (const char* op : {"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"}) {
    SCOPED_TRACE(op);
    OpTester training(op);
    training.Inputs({x, scale, offset, Tensor(), Tensor()}).Attr("epsilon", 0.01f);
    EXPECT_TRUE(CheckGradient(training));
    // In inference, the means and variances are constants.
    OpTester inference(op);
    inference.Inputs({x, scale, offset, AsTensor<float>({0.5f, 0}), AsTensor<float>({1, 2})})
        .Attr("is_training", false);
    EXPECT_TRUE(CheckGradient(inference));
  }
  OpTester channels_first("FusedBatchNormV3");
  channels_first.Input(*x.Reshaped({2, 2, 3, 2}))
      .Inputs({scale, offset, Tensor(), Tensor()})
      .Attr("data_format", "NCHW");
  EXPECT_TRUE(CheckGradient(channels_first));
}

// ---- Custom ops ----

// y = x^3 in double, with a gradient op that returns `Factor` * x^2 * dy.
absl::Status Cube(KernelContext& ctx) {
  Tensor* y = nullptr;
  absl::Status status = ctx.AllocateOutput(0, ctx.input(0).shape(), &y);
  for (int64_t i = 0; status.ok() && i < y->NumElements(); ++i) {
    const double x = ctx.input(0).flat<double>()(i);
    y->flat<double>()(i) = x * x * x;
  }
  return status;
}

template <int Factor>
absl::Status CubeGrad(KernelContext& ctx) {
  Tensor* dx = nullptr;
  absl::Status status = ctx.AllocateOutput(0, ctx.input(0).shape(), &dx);
  for (int64_t i = 0; status.ok() && i < dx->NumElements(); ++i) {
    const double x = ctx.input(1).flat<double>()(i);
    dx->flat<double>()(i) = Factor * x * x * ctx.input(0).flat<double>()(i);
  }
  return status;
}

// The gradient is correct except for element 1, where it is infinite, or NaN if `Sign` is 0.
template <int Sign>
absl::Status InfiniteCubeGrad(KernelContext& ctx) {
  absl::Status status = CubeGrad<3>(ctx);
  if (status.ok() && ctx.input(0).flat<double>()(1) != 0) {
    ctx.mutable_output(0)->flat<double>()(1) = Sign * kInf;
  }
  return status;
}

template <absl::Status (*Gradient)(KernelContext&)>
std::unique_ptr<Registry> RegistryOfCube(const std::string& op = "Cube") {
  auto registry = std::make_unique<Registry>();
  RegisterStandardOps(*registry);
  registry->Op(op).Input("x: double").Output("y: double").Shape(UnchangedShape).Doc("A test.");
  registry->Op("CubeGrad")
      .Input("dy: double")
      .Input("x: double")
      .Output("dx: double")
      .Shape(UnchangedShape)
      .Doc("A test.");
  registry->Kernel(op, MakeFunctionKernel<Cube>);
  registry->Kernel("CubeGrad", MakeFunctionKernel<Gradient>);
  return registry;
}

TEST(CheckGradient, ChecksARegisteredOpInDouble) {
  const Tensor x = AsTensor<double>({-1, 0.5, 2});
  const auto right = RegistryOfCube<CubeGrad<3>>();
  EXPECT_THAT(CheckGradient(OpTester("Cube", *right).Input(x)).message(),
              HasSubstr("gradient of 'Cube': the op has no registered gradient op"));
  RegisterGradientOp("Cube", {"CubeGrad", {"d:y", "x"}, {"x"}});
  EXPECT_TRUE(CheckGradient(OpTester("Cube", *right).Input(x)));
  const auto wrong = RegistryOfCube<CubeGrad<2>>();
  const ::testing::AssertionResult result = CheckGradient(OpTester("Cube", *wrong).Input(x));
  EXPECT_FALSE(result);
  EXPECT_STREQ(result.message(),
               "gradient of 'Cube': d y0[2] / d x0[2] is 8 by the gradient, 12 by differences "
               "(error 4), allowed 1.2e-06; x0 = x");
  RegisterGradientOp("Cube", {"CubeGrad", {"d:z", "x"}, {"x"}});
  EXPECT_THAT(CheckGradient(OpTester("Cube", *right).Input(x)).message(),
              AllOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr("has no output 'z'")));
  RegisterGradientOp("Cube", {"CubGrad", {"d:y", "x"}, {"x"}});
  EXPECT_THAT(CheckGradient(OpTester("Cube", *right).Input(x)).message(),
              HasSubstr("did you mean 'CubeGrad'"));
}

TEST(CheckGradient, RejectsNonFiniteDifferences) {
  // A unique name: registered gradient ops persist between tests.
  const std::string op = "InfiniteCube";
  RegisterGradientOp(op, {"CubeGrad", {"d:y", "x"}, {"x"}});
  const Tensor x = AsTensor<double>({-1, 0.5, 2});
  GradientOptions far;
  far.delta = 1e103;
  const struct {
    std::unique_ptr<Registry> registry;
    Tensor x;
    GradientOptions options;
    const char* text;
  } cases[] = {
      {RegistryOfCube<InfiniteCubeGrad<1>>(op),
       x,
       {},
       "d y0[1] / d x0[1] is inf by the gradient, 0.75 by differences (error inf)"},
      {RegistryOfCube<InfiniteCubeGrad<-1>>(op),
       x,
       {},
       "d y0[1] / d x0[1] is -inf by the gradient, 0.75 by differences (error inf)"},
      {RegistryOfCube<InfiniteCubeGrad<0>>(op),
       x,
       {},
       "d y0[1] / d x0[1] is nan by the gradient, 0.75 by differences (error nan)"},
      // The gradient is finite, but the cube overflows.
      {RegistryOfCube<CubeGrad<3>>(op), AsTensor<double>({0}), far,
       "d y0[0] / d x0[0] is 0 by the gradient, inf by differences (error inf)"},
  };
  for (const auto& c : cases) {
    const ::testing::AssertionResult result =
        CheckGradient(OpTester(op, *c.registry).Input(c.x), c.options);
    EXPECT_FALSE(result);
    EXPECT_THAT(result.message(),
                AllOf(HasSubstr(absl::StrCat("gradient of 'InfiniteCube': ", c.text, ", allowed ")),
                      HasSubstr("; x0 = x")));
  }
}

TEST(CheckGradient, ReportsUnknownOps) {
  EXPECT_STREQ(CheckGradient("Relu", {AsTensor<float>({1})}).message(),
               "gradient of 'Relu': the op has no registered gradient op; see RegisterGradientOp");
  EXPECT_THAT(CheckGradient("FakeQuantWithMinMaxVars", {AsTensor<float>({1})}).message(),
              HasSubstr("INVALID_ARGUMENT"));
}

// ---- CheckGradients ----

TEST(CheckGradients, ChecksOps) {
  EXPECT_TRUE(CheckGradients(OpTester("Tanh").Input<double>({-1, 0.5})));
  EXPECT_TRUE(CheckGradients(OpTester("Tanh").Input<float>({-1, 0.5})));
  GradientOptions options;
  options.second_order = true;
  EXPECT_TRUE(CheckGradients(
      OpTester("MatMul").Input<double>({1, 2, 3, 4}, {2, 2}).Input<double>({5, 6}, {2, 1}),
      options));
  // Integer inputs are constants.
  EXPECT_TRUE(CheckGradients(
      OpTester("GatherV2").Input<double>({1, 2, 3}).Input<int32_t>({2, 2}).Input<int32_t>({0}, {}),
      options));
}

TEST(CheckGradients, ChecksFunctions) {
  GradientOptions options;
  options.second_order = true;
  const auto layer = [](const Scope& s, const OutputList& x) -> OutputList {
    return {ops::Exp(s, ops::MatMul(s, x[0], x[1]))};
  };
  EXPECT_TRUE(CheckGradients(
      layer, {AsTensor<double>({1, -0.5}, {1, 2}), AsTensor<double>({0.5, 1, 2, -1}, {2, 2})},
      options));
  // If the result does not depend on an input, the gradient is zero.
  const auto first = [](const Scope& s, const OutputList& x) -> OutputList {
    return {ops::Exp(s, x[0])};
  };
  EXPECT_TRUE(CheckGradients(first, {AsTensor<double>({1}), AsTensor<double>({2})}, options));
}

// With a step for double, the rounding errors of the second input's gradient would dominate.
TEST(CheckGradients, InputsOfDoubleAndFloatAreCheckedTogether) {
  const auto function = [](const Scope& s, const OutputList& x) -> OutputList {
    return {ops::Square(s, x[0]), ops::Add(s, ops::Mul(s, x[1], 4000.0f), ops::Cos(s, x[1]))};
  };
  GradientOptions options;
  options.second_order = true;
  const Tensor a = AsTensor<double>({0.5});
  const Tensor b = AsTensor<float>({0.1f, 0.2f, 0.3f, 0.4f, 0.5f, 0.6f});
  EXPECT_TRUE(CheckGradients(function, {a, b}, options));
}

TEST(CheckGradients, FailuresReportTheOrderAndTheElement) {
  // The step crosses the kink at 0.
  const ::testing::AssertionResult wrong = CheckGradients(OpTester("Abs").Input<double>({4e-6, 1}));
  EXPECT_FALSE(wrong);
  EXPECT_THAT(wrong.message(),
              AllOf(HasSubstr("first order: d y0[0] / d x0[0] is 1 by the gradient"),
                    HasSubstr(", allowed 9.99")));
  EXPECT_THAT(CheckGradients(OpTester("Shape").Input<double>({1})).message(),
              HasSubstr("expected inputs and outputs of float or double, found 1 and 0"));
  EXPECT_THAT(CheckGradients(OpTester("NoSuchOp").Input<double>({1})).message(),
              HasSubstr("NoSuchOp"));
  const auto prevented = [](const Scope& s, const OutputList& x) -> OutputList {
    return {ops::PreventGradient(s, x[0])};
  };
  EXPECT_THAT(CheckGradients(prevented, {AsTensor<double>({1})}).message(),
              HasSubstr("first order: INVALID_ARGUMENT"));
  // The second derivative of |x| x^2 is 6 |x|, which has a zero central difference across 0.
  const auto power = [](const Scope& s, const OutputList& x) -> OutputList {
    return {ops::Mul(s, ops::Abs(s, x[0]), ops::Mul(s, x[0], x[0]))};
  };
  GradientOptions options;
  options.second_order = true;
  options.max_error = 1e-9;
  EXPECT_THAT(CheckGradients(power, {AsTensor<double>({1e-5})}, options).message(),
              HasSubstr("second order: d y0[0] / d x0[0]"));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
