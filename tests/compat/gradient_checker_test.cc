// Tests of comparing gradients with differences, like in tests of TensorFlow's C++ gradients.
#include "tensorflow/cc/framework/gradient_checker.h"

#include <vector>

#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/cc/framework/testutil.h"
#include "tensorflow/cc/ops/standard_ops.h"
#include "tensorflow/core/framework/tensor_testutil.h"
#include "tensorflow/core/lib/core/status_test_util.h"
#include "tensorflow/core/platform/test.h"

namespace tensorflow {
namespace ops {
namespace {

class GradientCheckerTest : public ::testing::Test {
 protected:
  GradientCheckerTest() : scope_(Scope::NewRootScope()) {}

  void RunTest(const OutputList& xs, const std::vector<TensorShape>& x_shapes, const OutputList& ys,
               const std::vector<TensorShape>& y_shapes, float allowed) {
    TF_ASSERT_OK(scope_.status());
    float max_error = -1;
    TF_ASSERT_OK((
        ComputeGradientError<float, float, float>(scope_, xs, x_shapes, ys, y_shapes, &max_error)));
    EXPECT_GT(max_error, 0);
    EXPECT_LT(max_error, allowed);
  }

  // Expects an error of ComputeGradientError.
  template <typename X_T = float, typename Y_T = float>
  void ExpectError(const OutputList& xs, const OutputList& ys, error::Code code,
                   const string& text) {
    TF_ASSERT_OK(scope_.status());
    float max_error = -1;
    const Status status = ComputeGradientError<X_T, Y_T, float>(
        scope_, xs, std::vector<TensorShape>(xs.size(), shape_), ys,
        std::vector<TensorShape>(ys.size(), shape_), &max_error);
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_EQ(status.message(), text);
    EXPECT_EQ(max_error, -1);
    TF_EXPECT_OK(scope_.status());
  }

  Output BatchNorm(const Output& x) {
    const auto none = Const(scope_, Tensor(DT_FLOAT, {0}));
    return FusedBatchNormV3(scope_, x, {1.5f, 0.5f}, {0.f, 1.f}, none, none,
                            FusedBatchNormV3::Epsilon(0.1f))
        .y;
  }

  Scope scope_;
  const TensorShape shape_{2, 2, 1, 2};
};

TEST_F(GradientCheckerTest, ChecksFusedBatchNormGrad) {
  const TensorShape channels({2});
  const auto x = Placeholder(scope_, DT_FLOAT, Placeholder::Shape(shape_));
  const auto scale = Placeholder(scope_, DT_FLOAT, Placeholder::Shape(channels));
  const auto offset = Placeholder(scope_, DT_FLOAT, Placeholder::Shape(channels));
  const auto none = Const(scope_, Tensor(DT_FLOAT, {0}));
  const auto norm = FusedBatchNorm(scope_, x, scale, offset, none, none,
                                   FusedBatchNorm::IsTraining(true).Epsilon(0.1f));
  RunTest({x, scale, offset}, {shape_, channels, channels}, {norm.y}, {shape_}, 5e-3f);
}

TEST_F(GradientCheckerTest, ChecksAChainOfOps) {
  const auto x = Placeholder(scope_, DT_FLOAT, Placeholder::Shape(shape_));
  const auto y = Neg(scope_, BatchNorm(Identity(scope_, BatchNorm(x))));
  RunTest({x}, {shape_}, {y}, {shape_}, 2e-2f);
}

TEST_F(GradientCheckerTest, GradientsOfSeveralUsesAreAdded) {
  const auto x = Placeholder(scope_, DT_FLOAT, Placeholder::Shape(shape_));
  const auto middle = BatchNorm(x);
  RunTest({x}, {shape_}, {middle, Neg(scope_, middle), BatchNorm(middle)}, {shape_, shape_, shape_},
          2e-2f);
}

TEST_F(GradientCheckerTest, ChecksInnerOutputs) {
  // A fed tensor does not depend on x.
  const auto x = Placeholder(scope_, DT_FLOAT, Placeholder::Shape(shape_));
  const auto inner = BatchNorm(x);
  RunTest({x, inner}, {shape_, shape_}, {BatchNorm(inner), BatchNorm(x)}, {shape_, shape_}, 5e-3f);
}

TEST_F(GradientCheckerTest, DetectsLargeStepsOfFakeQuant) {
  const auto x = Placeholder(scope_, DT_FLOAT, Placeholder::Shape({2, 3}));
  const Tensor value = test::AsTensor<float>({-5.9f, -1.f, 0.1f, 0.5f, 5.1f, 7.f}, {2, 3});
  const auto fine = FakeQuantWithMinMaxArgs(scope_, x, FakeQuantWithMinMaxArgs::NumBits(16));
  float max_error = -1;
  TF_ASSERT_OK(
      (ComputeGradientError<float, float, float>(scope_, x, value, fine, {2, 3}, &max_error)));
  EXPECT_LT(max_error, 2e-2);
  // If quantization steps are much larger than delta, differences do not agree with the gradient.
  const auto coarse = FakeQuantWithMinMaxArgs(scope_, x, FakeQuantWithMinMaxArgs::NumBits(2));
  TF_ASSERT_OK(
      (ComputeGradientError<float, float, float>(scope_, x, value, coarse, {2, 3}, &max_error)));
  EXPECT_GE(max_error, 1);
}

TEST_F(GradientCheckerTest, ChecksInDouble) {
  const auto x = Placeholder(scope_, DT_DOUBLE);
  double max_error = -1;
  TF_ASSERT_OK((ComputeGradientError<double, double, double>(
      scope_, x, test::AsTensor<double>({1, 2, 3}), Neg(scope_, x), {3}, &max_error)));
  EXPECT_LT(max_error, 1e-9);
}

TEST_F(GradientCheckerTest, NamesNodesWithoutAGradient) {
  const auto x = Placeholder(scope_.WithOpName("x"), DT_FLOAT);
  const auto unknown = ResizeArea(scope_.WithOpName("layer/unknown"), x, Const(scope_, {2, 1}));
  ExpectError({x}, {Neg(scope_, unknown)}, error::UNIMPLEMENTED,
              "no gradient function is registered for ResizeArea (node 'layer/unknown')");
  // Nodes that are not between x and y need no gradient.
  RunTest({unknown}, {shape_}, {BatchNorm(unknown)}, {shape_}, 5e-3f);

  const auto vector = Placeholder(scope_.WithOpName("vector"), DT_FLOAT);
  const auto norm = FusedBatchNormV3(scope_.WithOpName("norm"), Const(scope_, 1.f, shape_), vector,
                                     vector, vector, vector, FusedBatchNormV3::IsTraining(false));
  float max_error;
  EXPECT_EQ((ComputeGradientError<float, float, float>(scope_, {vector}, {{2}}, {norm.batch_mean},
                                                       {{2}}, &max_error)),
            errors::Unimplemented("node 'norm' (FusedBatchNormV3): only output 0 (y) can be "
                                  "differentiated, not output 1"));
  TF_EXPECT_OK(scope_.status());
}

TEST_F(GradientCheckerTest, ChecksComplexTypes) {
  const auto x = Placeholder(scope_, DT_COMPLEX64, Placeholder::Shape(shape_));
  float max_error = -1;
  TF_ASSERT_OK((ComputeGradientError<complex64, complex64, float>(
      scope_, {x}, {shape_}, {Square(scope_, x)}, {shape_}, &max_error)));
  EXPECT_LT(max_error, 1e-2);
  // One of the types is complex.
  TF_ASSERT_OK((ComputeGradientError<complex64, float, float>(
      scope_, {x}, {shape_}, {Real(scope_, x)}, {shape_}, &max_error)));
  EXPECT_LT(max_error, 1e-2);
}

TEST_F(GradientCheckerTest, NamesMismatches) {
  const auto x = Placeholder(scope_, DT_FLOAT);
  const auto other = Placeholder(scope_.WithOpName("other"), DT_FLOAT);
  const auto y = Neg(scope_, x);
  ExpectError({x, other}, {y}, error::INVALID_ARGUMENT, "no y depends on x1, which is 'other:0'");
  ExpectError<double>({x}, {y}, error::INVALID_ARGUMENT,
                      "x0 has type float, but the test is for double");
  ExpectError<float, double>({x}, {y}, error::INVALID_ARGUMENT,
                             "y0 has type float, but the test is for double");
  ExpectError<complex64>({x}, {y}, error::INVALID_ARGUMENT,
                         "x0 has type float, but the test is for complex64");
}

}  // namespace
}  // namespace ops
}  // namespace tensorflow
