#include "gradflow/gradients/derivatives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "gradflow/graph/node.h"
#include "gradflow/ops/standard_ops.h"
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
using ::gradflow::testing::TensorNear;
using ::testing::HasSubstr;

class DerivativesTest : public ::testing::Test {
 protected:
  Tensor Evaluate(const Output& y) {
    std::vector<Tensor> outputs;
    GRADFLOW_EXPECT_OK(ClientSession(scope_).Run({y}, &outputs));
    return outputs.empty() ? Tensor() : outputs[0];
  }

  Scope scope_ = Scope::NewRootScope();
};

// The Jacobian of y = A x is A. For z_ij = x_i x_j, dz_ii / dx_i = 2 x_i.
TEST_F(DerivativesTest, JacobianHasTheShapeOfBoth) {
  const Output x = ops::Const(scope_, {1.0, 2.0, 3.0});
  const Tensor a = AsTensor<double>({1, 2, 3, 4, 5, 6}, {2, 3});
  const Output y = ops::MatMul(scope_, ops::Const(scope_, a), ops::ExpandDims(scope_, x, 1));
  Output jacobian;
  GRADFLOW_ASSERT_OK(Jacobian(scope_, y, x, &jacobian));
  EXPECT_THAT(Evaluate(jacobian), TensorEq(AsTensor<double>({1, 2, 3, 4, 5, 6}, {2, 1, 3})));
  const Output pairs =
      ops::Mul(scope_, ops::ExpandDims(scope_, x, 0), ops::ExpandDims(scope_, x, 1));
  GRADFLOW_ASSERT_OK(Jacobian(scope_, pairs, x, &jacobian));
  EXPECT_THAT(Evaluate(jacobian),
              TensorEq(AsTensor<double>(
                  {2, 0, 0, 2, 1, 0, 3, 0, 1, 2, 1, 0, 0, 4, 0, 0, 3, 2, 3, 0, 1, 0, 3, 2, 0, 0, 6},
                  {3, 3, 3})));
}

TEST_F(DerivativesTest, JacobianTakesScalarsAndEmptyTensors) {
  const Output x = ops::Const(scope_, 3.0f);
  Output jacobian;
  GRADFLOW_ASSERT_OK(Jacobian(scope_, ops::Square(scope_, x), x, &jacobian));
  EXPECT_THAT(Evaluate(jacobian), TensorEq(AsTensor<float>({6}, {})));
  const Output empty = ops::Slice(scope_, ops::ExpandDims(scope_, x, 0), {0}, {0});
  GRADFLOW_ASSERT_OK(Jacobian(scope_, empty, x, &jacobian));
  EXPECT_THAT(Evaluate(jacobian), TensorEq(Tensor(DT_FLOAT, {0})));
  GRADFLOW_ASSERT_OK(Jacobian(scope_, ops::Const(scope_, {1.0f, 2.0f}), x, &jacobian));
  EXPECT_TRUE(IsNoGradient(jacobian));
}

TEST_F(DerivativesTest, JacobianRejectsInvalidArguments) {
  const Output x = ops::Placeholder(scope_, DT_FLOAT);
  Output jacobian = x;
  EXPECT_THAT(Jacobian(scope_, ops::Square(scope_, x), x, &jacobian),
              StatusIs(StatusCode::kInvalidArgument,
                       "the shape of the output must be known, but is <unknown>"));
  const Output large = ops::Fill(scope_, {300, 300}, ops::Const(scope_, 1.0f));
  EXPECT_THAT(Jacobian(scope_, large, x, &jacobian),
              StatusIs(StatusCode::kInvalidArgument,
                       "the output must have at most 65536 elements, but has 90000"));
  EXPECT_THAT(
      Jacobian(scope_, Output(), x, &jacobian),
      StatusIs(StatusCode::kInvalidArgument, "output 0 is not a tensor of the scope's graph"));
  EXPECT_EQ(jacobian, x);
}

// y = (x0 x1, exp(x1)) at (2, 0): J = (0 2; 0 1), and J (3, 5) = (10, 5).
TEST_F(DerivativesTest, JacobianVectorProductIsForwardMode) {
  const Output a = ops::Const(scope_, 2.0);
  const Output b = ops::Const(scope_, 0.0);
  const OutputList ys = {ops::Mul(scope_, a, b), ops::Exp(scope_, b), ops::Const(scope_, 1.0)};
  std::vector<Output> products;
  GRADFLOW_ASSERT_OK(JacobianVectorProduct(
      scope_, ys, {a, b}, {ops::Const(scope_, 3.0), ops::Const(scope_, 5.0)}, &products));
  ASSERT_EQ(products.size(), 3);
  EXPECT_THAT(Evaluate(products[0]), TensorEq(AsTensor<double>({10}, {})));
  EXPECT_THAT(Evaluate(products[1]), TensorEq(AsTensor<double>({5}, {})));
  EXPECT_TRUE(IsNoGradient(products[2]));
}

// Forward mode and backward passes give the same columns of a network's Jacobian.
TEST_F(DerivativesTest, ForwardModeAgreesWithTheJacobian) {
  const Output x = ops::Const(scope_, {0.5, -1.0, 2.0});
  const Output w = ops::Const(scope_, AsTensor<double>({1, -2, 0.5, 3, 1, -1}, {2, 3}));
  const Output hidden = ops::MatMul(scope_, w, ops::ExpandDims(scope_, x, 1));
  const Output y = ops::Softmax(scope_, ops::Tanh(scope_, ops::Reshape(scope_, hidden, {2})));
  Output jacobian;
  GRADFLOW_ASSERT_OK(Jacobian(scope_, y, x, &jacobian));
  const Tensor expected = Evaluate(jacobian);
  for (int i = 0; i < 3; ++i) {
    Tensor unit(DT_DOUBLE, {3});
    unit.flat<double>().setZero();
    unit.flat<double>()(i) = 1;
    std::vector<Output> product;
    GRADFLOW_ASSERT_OK(
        JacobianVectorProduct(scope_, {y}, {x}, {ops::Const(scope_, unit)}, &product));
    EXPECT_THAT(Evaluate(product[0]),
                TensorNear(AsTensor<double>(
                               {expected.matrix<double>()(0, i), expected.matrix<double>()(1, i)}),
                           1e-14, 1e-14));
  }
}

// loss = x^2 y: H = (2y 2x; 2x 0), and H (1, 10) at (3, 5) = (10 + 60, 6).
TEST_F(DerivativesTest, HessianVectorProductMatchesTheHessian) {
  const Output x = ops::Const(scope_, 3.0);
  const Output y = ops::Const(scope_, 5.0);
  const Output z = ops::Const(scope_, 7.0);
  const Output loss = ops::Mul(scope_, ops::Square(scope_, x), y);
  std::vector<Output> products;
  GRADFLOW_ASSERT_OK(HessianVectorProduct(
      scope_, loss, {x, y, z},
      {ops::Const(scope_, 1.0), ops::Const(scope_, 10.0), ops::Const(scope_, 1.0)}, &products));
  EXPECT_THAT(Evaluate(products[0]), TensorEq(AsTensor<double>({70}, {})));
  EXPECT_THAT(Evaluate(products[1]), TensorEq(AsTensor<double>({6}, {})));
  EXPECT_TRUE(IsNoGradient(products[2]));
}

TEST_F(DerivativesTest, ProductsRejectInvalidArguments) {
  const Output x = ops::Const(scope_, 3.0);
  std::vector<Output> products = {x};
  EXPECT_THAT(
      HessianVectorProduct(scope_, x, {x}, {}, &products),
      StatusIs(StatusCode::kInvalidArgument, "expected one vector for each of 1 inputs, found 0"));
  EXPECT_THAT(HessianVectorProduct(scope_, x, {x}, {ops::Const(scope_, 1.0f)}, &products),
              StatusIs(StatusCode::kInvalidArgument, "vector 0 has type float, expected double"));
  EXPECT_THAT(JacobianVectorProduct(scope_, {x}, {x}, {Output()}, &products),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("vector 0 is not a tensor")));
  EXPECT_THAT(products, ::testing::ElementsAre(x));
}

}  // namespace
}  // namespace gradflow
