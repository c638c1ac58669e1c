#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "gradflow/ops/common/simd.h"
#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

struct Direction {
  bool exclusive;
  bool reverse;
};
constexpr Direction kDirections[] = {{false, false}, {true, false}, {false, true}, {true, true}};

std::vector<double> DoublesOf(const Tensor& x) {
  std::vector<double> values;
  DispatchType(RealTypes(), x.dtype(), [&](auto tag) {
    for (const auto v : x.span<typename decltype(tag)::type>()) {
      values.push_back(static_cast<double>(v));
    }
  });
  return values;
}

// Computes the scan in long double.
Tensor ScanReference(const Tensor& x, int axis, Direction direction, long double first,
                     absl::FunctionRef<long double(long double, long double)> combine) {
  const std::vector<double> in = DoublesOf(x);
  std::vector<double> out(in.size());
  int64_t outer = 1;
  int64_t inner = 1;
  for (int d = 0; d < axis; ++d) outer *= x.dim_size(d);
  for (int d = axis + 1; d < x.dims(); ++d) inner *= x.dim_size(d);
  const int64_t n = x.dim_size(axis);
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t j = 0; j < inner; ++j) {
      long double sum = first;
      for (int64_t i = 0; i < n; ++i) {
        const int64_t at = (o * n + (direction.reverse ? n - 1 - i : i)) * inner + j;
        const long double after = combine(sum, in[at]);
        out[at] = static_cast<double>(direction.exclusive ? sum : after);
        sum = after;
      }
    }
  }
  return FromDoubles(x.dtype(), x.shape(), out);
}

long double Plus(long double a, long double b) { return a + b; }
long double Times(long double a, long double b) { return a * b; }
long double LogAdd(long double a, long double b) {
  const long double max = std::fmax(a, b);
  return std::isinf(max) ? max : max + std::log(std::exp(a - max) + std::exp(b - max));
}

OpTester Scan(const char* op, const Tensor& x, int32_t axis, Direction direction = {}) {
  return OpTester(op)
      .Input(x)
      .Input(AsScalar<int32_t>(axis))
      .Attr("exclusive", direction.exclusive)
      .Attr("reverse", direction.reverse);
}

struct Layout {
  TensorShape shape;
  int axis;
};

// Sizes around the tiles of columns and the blocks of rows.
std::vector<Layout> Layouts() {
  return {{{1}, 0},       {{7}, 0},           {{32768}, 0},    {{32769}, 0},   {{100001}, 0},
          {{5, 9}, 0},    {{5, 9}, 1},        {{3, 257}, 0},   {{4, 256}, 0},  {{40000, 3}, 0},
          {{2, 3, 4}, 1}, {{2, 400, 300}, 1}, {{70, 5, 2}, 1}, {{2, 50000}, 1}};
}

TEST(Cumsum, RunsForEveryLayout) {
  for (const Layout& layout : Layouts()) {
    for (const Direction direction : kDirections) {
      SCOPED_TRACE(layout.shape.DebugString());
      const Tensor x = RandomTensor(DT_FLOAT, layout.shape, -1, 2);
      EXPECT_THAT(Scan("Cumsum", x, layout.axis, direction).RunOne(),
                  TensorNear(ScanReference(x, layout.axis, direction, 0, Plus), 1e-9, 6e-8));
    }
    const Tensor y = RandomTensor(DT_FLOAT, layout.shape, 0.999f, 1.001f);
    EXPECT_THAT(Scan("Cumprod", y, layout.axis).RunOne(),
                TensorNear(ScanReference(y, layout.axis, {}, 1, Times), 0, 7e-8));
    const Tensor z = RandomTensor(DT_DOUBLE, layout.shape, -5, 5);
    EXPECT_THAT(
        Scan("CumulativeLogsumexp", z, layout.axis, {false, true}).RunOne(),
        TensorNear(ScanReference(z, layout.axis, {false, true}, -kInf, LogAdd), 1e-12, 1e-12));
  }
}

// Some SIMD targets convert infinity and large doubles to the largest float.
TEST(Cumsum, OverflowsToInfinityOnEveryTarget) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const std::string& target : SimdTargets()) {
    SCOPED_TRACE(target);
    ASSERT_TRUE(SetSimdTarget(target));
    for (const int64_t columns : {16, 520}) {
      const std::vector<float> x(2 * columns, 3e38f);
      std::vector<float> sums(x);
      std::fill(sums.begin() + columns, sums.end(), inf);
      EXPECT_THAT(Scan("Cumsum", AsTensor<float>(x, {2, columns}), 0).RunOne(),
                  TensorEq(AsTensor<float>(sums, {2, columns})));
    }
  }
  ASSERT_TRUE(SetSimdTarget(""));
}

TEST(Cumsum, RunsForEveryRealType) {
  ForEachType(RealTypes(), [](auto tag) {
    using T = typename decltype(tag)::type;
    SCOPED_TRACE(DataTypeString(DataTypeToEnum<T>::value));
    const Tensor x = AsTensor<T>({1, 2, 3, 4, 2, 1}, {2, 3});
    for (const int axis : {0, 1}) {
      for (const Direction direction : kDirections) {
        EXPECT_THAT(Scan("Cumsum", x, axis, direction).RunOne(),
                    TensorEq(ScanReference(x, axis, direction, 0, Plus)));
        EXPECT_THAT(Scan("Cumprod", x, axis - 2, direction).RunOne(),
                    TensorEq(ScanReference(x, axis, direction, 1, Times)));
      }
    }
  });
}

TEST(CumulativeLogsumexp, RunsForEveryFloatingType) {
  for (const DataType dtype : {DT_HALF, DT_BFLOAT16, DT_FLOAT, DT_DOUBLE}) {
    SCOPED_TRACE(DataTypeString(dtype));
    const Tensor x = RandomTensor(dtype, {4, 9}, -10, 10);
    for (const Direction direction : kDirections) {
      EXPECT_THAT(Scan("CumulativeLogsumexp", x, 1, direction).RunOne(),
                  TensorNear(ScanReference(x, 1, direction, -kInf, LogAdd)));
    }
  }
}

TEST(CumulativeLogsumexp, DoesNotOverflow) {
  EXPECT_THAT(Scan("CumulativeLogsumexp", AsTensor<float>({1000, 1000, -1000}), 0).RunOne(),
              TensorNear(AsTensor<float>({1000, 1000.6931f, 1000.6931f})));
  EXPECT_THAT(Scan("CumulativeLogsumexp",
                   AsTensor<double>({-kInf, -kInf, 1, -kInf, kInf, kInf, 2, -kInf, kNan, 1}), 0)
                  .RunOne(),
              TensorEq(AsTensor<double>({-kInf, -kInf, 1, 1, kInf, kInf, kInf, kInf, kNan, kNan})));
  EXPECT_THAT(Scan("CumulativeLogsumexp", AsTensor<float>({kNan, -kInf, 3}), 0).RunOne(),
              TensorEq(AsTensor<float>({kNan, kNan, kNan})));
}

TEST(Cumsum, RunsForComplexNumbers) {
  const Tensor x = AsTensor<complex64>({{1, 2}, {3, 4}, {5, -6}});
  EXPECT_THAT(Scan("Cumsum", x, 0).RunOne(),
              TensorEq(AsTensor<complex64>({{1, 2}, {4, 6}, {9, 0}})));
  EXPECT_THAT(Scan("Cumsum", x, 0, {true, true}).RunOne(),
              TensorEq(AsTensor<complex64>({{8, -2}, {5, -6}, {0, 0}})));
  EXPECT_THAT(Scan("Cumprod", AsTensor<complex128>({{0, 1}, {0, 1}, {2, 1}}), 0).RunOne(),
              TensorEq(AsTensor<complex128>({{0, 1}, {-1, 0}, {-2, -1}})));
}

TEST(Cumsum, CompensatesSumsOfDoubles) {
  const Tensor x = AsTensor<double>({1e16, 1, 1, -1e16, 1e-3});
  EXPECT_THAT(Scan("Cumsum", x, 0).RunOne(),
              TensorEq(AsTensor<double>({1e16, 1e16, 1e16 + 2, 2, 2.001})));
}

TEST(Cumsum, IntegersWrapAround) {
  EXPECT_THAT(Scan("Cumsum", AsTensor<int8_t>({100, 100, 100}), 0).RunOne(),
              TensorEq(AsTensor<int8_t>({100, -56, 44})));
  EXPECT_THAT(Scan("Cumprod", AsTensor<uint8_t>({200, 3, 3}), 0).RunOne(),
              TensorEq(AsTensor<uint8_t>({200, 88, 8})));
}

TEST(Cumsum, HasTheSameBitsOnAnyNumberOfThreads) {
  for (const char* op : {"Cumsum", "Cumprod", "CumulativeLogsumexp"}) {
    OpTester tester = Scan(op, RandomTensor(DT_DOUBLE, {100000, 2}, -1.1f, 1.1f), 0);
    GRADFLOW_EXPECT_OK(tester.RunEverywhere());
  }
}

// Vectors scan the rows of floats. The largest result is written with non-temporal stores.
TEST(Cumsum, RunsForManyColumns) {
  for (const TensorShape& shape : {TensorShape({5, 16}), TensorShape({9, 549}),
                                   TensorShape({2, 37, 1100}), TensorShape({770, 4112})}) {
    const int axis = shape.dims() - 2;
    for (const Direction direction : kDirections) {
      SCOPED_TRACE(shape.DebugString());
      const Tensor x = RandomTensor(DT_FLOAT, shape, -1, 2);
      const auto y = Scan("Cumsum", x, axis, direction).RunEverywhere();
      ASSERT_TRUE(y.ok()) << y.status();
      EXPECT_THAT((*y)[0], TensorNear(ScanReference(x, axis, direction, 0, Plus), 1e-9, 6e-8));
    }
  }
}

TEST(Cumsum, TakesEmptyTensors) {
  for (const char* op : {"Cumsum", "Cumprod", "CumulativeLogsumexp"}) {
    for (const int axis : {0, 1}) {
      EXPECT_THAT(Scan(op, Tensor(DT_FLOAT, {0, 3}), axis).RunOne(),
                  TensorEq(Tensor(DT_FLOAT, {0, 3})));
    }
  }
}

TEST(Cumsum, RejectsInvalidInputs) {
  for (const char* op : {"Cumsum", "Cumprod", "CumulativeLogsumexp"}) {
    for (const int axis : {2, -3}) {
      OpTester tester = Scan(op, Tensor(DT_FLOAT, {2, 2}), axis);
      const auto error = StatusIs(kInvalidArgument, HasSubstr("is out of range [-2, 2)"));
      EXPECT_THAT(tester.Run(), error);
      EXPECT_THAT(tester.InferShape(), error);
    }
    EXPECT_THAT(Scan(op, AsScalar<float>(1), 0).Run(),
                StatusIs(kInvalidArgument, HasSubstr("axis 0 is out of range [0, 0)")));
    EXPECT_THAT(OpTester(op).Input(AsTensor<float>({1})).Input(AsTensor<int32_t>({0})).Run(),
                StatusIs(kInvalidArgument,
                         HasSubstr("Shape must be rank 0 but is rank 1: axis has shape [1]")));
    EXPECT_THAT(
        OpTester(op).Attr("T", DT_DOUBLE).RunOn({AsTensor<float>({1}), AsScalar<int32_t>(0)}),
        StatusIs(kInvalidArgument, HasSubstr("x must be of type double, but is float")));
  }
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
