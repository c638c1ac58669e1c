#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

struct LrnCase {
  int64_t radius;
  float bias;
  float alpha;
  float beta;
};
const LrnCase kLrnCases[] = {
    {5, 1, 1, 0.5}, {0, 1, 1, 0.5}, {1, 2, 0.25, 0.75}, {2, 1.5, 0.5, 1}, {2147483647, 1, 1, 0.5}};

std::vector<double> FloatsAsDoubles(const Tensor& x) {
  std::vector<double> values;
  DispatchType(FloatingTypes(), x.dtype(), [&](auto tag) {
    for (const auto v : x.flat<typename decltype(tag)::type>()) {
      values.push_back(static_cast<double>(v));
    }
  });
  return values;
}

// Returns, for each element of rows of `depth` elements, the sum of the terms in its window.
std::vector<double> WindowReference(const std::vector<double>& terms, int64_t depth,
                                    int64_t radius) {
  std::vector<double> sums(terms.size());
  const int64_t n = static_cast<int64_t>(terms.size());
  for (int64_t i = 0; i < n; ++i) {
    const int64_t row = i / depth * depth;
    const int64_t last = std::min(row + depth - 1, i + radius);
    for (int64_t j = std::max(row, i - radius); j <= last; ++j) sums[i] += terms[j];
  }
  return sums;
}

std::vector<double> NormReference(const std::vector<double>& x, int64_t depth, const LrnCase& c) {
  std::vector<double> squares;
  for (const double v : x) squares.push_back(v * v);
  std::vector<double> norms = WindowReference(squares, depth, c.radius);
  for (double& norm : norms) norm = c.bias + c.alpha * norm;
  return norms;
}

OpTester WithAttrs(const char* op, const LrnCase& c) {
  OpTester tester(op);
  tester.Attr("depth_radius", c.radius).Attr("bias", c.bias).Attr("alpha", c.alpha);
  return tester.Attr("beta", c.beta);
}

TEST(Lrn, RunsForEveryTypeAndRadius) {
  for (const DataType dtype : {DT_FLOAT, DT_HALF, DT_BFLOAT16}) {
    for (const LrnCase& c : kLrnCases) {
      for (const int64_t depth : {1, 2, 3, 11, 12, 40}) {
        SCOPED_TRACE("radius " + std::to_string(c.radius) + " depth " + std::to_string(depth) +
                     " of " + DataTypeString(dtype));
        const TensorShape shape = {2, 3, 4, depth};
        const Tensor x = RandomTensor(dtype, shape, -2, 2, 1);
        const std::vector<double> values = FloatsAsDoubles(x);
        const std::vector<double> norms = NormReference(values, depth, c);
        std::vector<double> expected;
        for (size_t i = 0; i < values.size(); ++i) {
          expected.push_back(values[i] * std::pow(norms[i], -double{c.beta}));
        }
        EXPECT_THAT(WithAttrs("LRN", c).Input(x).RunOne(),
                    TensorNear(FromDoubles(dtype, shape, expected)));

        const Tensor g = RandomTensor(dtype, shape, -2, 2, 2);
        const Tensor y = RandomTensor(dtype, shape, -2, 2, 3);
        const std::vector<double> gs = FloatsAsDoubles(g);
        const std::vector<double> ys = FloatsAsDoubles(y);
        std::vector<double> terms;
        for (size_t i = 0; i < gs.size(); ++i) terms.push_back(gs[i] * ys[i] / norms[i]);
        const std::vector<double> sums = WindowReference(terms, depth, c.radius);
        for (size_t i = 0; i < gs.size(); ++i) {
          expected[i] = gs[i] * std::pow(norms[i], -double{c.beta}) -
                        2.0 * c.alpha * c.beta * values[i] * sums[i];
        }
        const double tolerance = dtype == DT_FLOAT ? 1e-5 : dtype == DT_HALF ? 4e-3 : 3e-2;
        EXPECT_THAT(WithAttrs("LRNGrad", c).Input(g).Input(x).Input(y).RunOne(),
                    TensorNear(FromDoubles(dtype, shape, expected), tolerance, tolerance));
      }
    }
  }
}

// A running sum that subtracts old terms would return 0 next to large elements.
TEST(Lrn, KeepsSmallElementsNextToLargeOnes) {
  const auto y = OpTester("LRN")
                     .Input<float>({1e15f, 1e15f, 1, 1, 1}, {1, 1, 1, 5})
                     .Attr("depth_radius", int64_t{1})
                     .Attr("bias", 0.0f)
                     .RunOne();
  ASSERT_TRUE(y.ok());
  EXPECT_NEAR(y->flat<float>()(3), std::sqrt(1.0 / 3), 1e-6);
  EXPECT_NEAR(y->flat<float>()(4), std::sqrt(1.0 / 2), 1e-6);
}

TEST(Lrn, RunsForManyRows) {
  const Tensor x = RandomTensor(DT_FLOAT, {8, 30, 30, 16});
  const LrnCase c = kLrnCases[0];
  const std::vector<double> values = FloatsAsDoubles(x);
  const std::vector<double> norms = NormReference(values, 16, c);
  std::vector<double> expected;
  for (size_t i = 0; i < values.size(); ++i) expected.push_back(values[i] / std::sqrt(norms[i]));
  EXPECT_THAT(WithAttrs("LRN", c).Input(x).RunOne(),
              TensorNear(FromDoubles(DT_FLOAT, x.shape(), expected)));
}

TEST(Lrn, RejectsShapesAndRadii) {
  for (const TensorShape& shape : {TensorShape({1, 0, 2, 3}), TensorShape({1, 1, 2, 0})}) {
    EXPECT_THAT(OpTester("LRN").Input(Tensor(DT_FLOAT, shape)).RunOne(),
                TensorEq(Tensor(DT_FLOAT, shape)));
  }
  OpTester op("LRN");
  op.Input(RandomTensor(DT_FLOAT, {1, 2, 3}));
  EXPECT_THAT(op.Run(), StatusIs(kInvalidArgument, ::testing::HasSubstr("rank 4")));
  EXPECT_THAT(op.InferShape(), StatusIs(kInvalidArgument, ::testing::HasSubstr("rank 4")));
  for (const int64_t radius : {int64_t{-1}, int64_t{1} << 40}) {
    EXPECT_THAT(OpTester("LRN")
                    .Input(RandomTensor(DT_FLOAT, {1, 1, 1, 2}))
                    .Attr("depth_radius", radius)
                    .Run(),
                StatusIs(kInvalidArgument, "depth_radius is " + std::to_string(radius) +
                                               ", expected 0 to 2147483647"));
  }
  for (const int other : {1, 2}) {
    OpTester grad("LRNGrad");
    for (int i = 0; i < 3; ++i) {
      grad.Input(RandomTensor(DT_FLOAT, {1, 1, 2, i == other ? 3 : 2}));
    }
    EXPECT_THAT(grad.Run(),
                StatusIs(kInvalidArgument,
                         ::testing::HasSubstr("Dimension 3 in both shapes must be equal, but are 2 "
                                              "and 3: input_grads has shape [1,1,2,2], and ")));
    EXPECT_FALSE(grad.InferShape().ok());
  }
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
