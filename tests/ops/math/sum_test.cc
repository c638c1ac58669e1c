#include <cmath>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

// Computes in long double, for a reference that is more accurate than the op.
double SumOf(const std::vector<double>& values) {
  long double sum = 0;
  for (const double value : values) sum += value;
  return static_cast<double>(sum);
}
double MeanOf(const std::vector<double>& values) {
  long double sum = 0;
  for (const double value : values) sum += value;
  return static_cast<double>(sum / values.size());
}

TEST(Sum, ReducesEverySetOfAxes) {
  const Tensor x = RandomTensor(DT_DOUBLE, {3, 1, 4, 2, 5}, -1, 1);
  for (int set = 0; set < 32; ++set) {
    std::vector<int32_t> axes;
    for (int d = 0; d < 5; ++d) {
      // Every second axis is negative.
      if (set >> d & 1) axes.push_back(d % 2 == 0 ? d : d - 5);
    }
    for (const bool keep_dims : {false, true}) {
      SCOPED_TRACE(AsTensor<int32_t>(axes).DebugString(5));
      const Tensor indices = AsTensor<int32_t>(axes);
      EXPECT_THAT(OpTester("Sum").Input(x).Input(indices).Attr("keep_dims", keep_dims).RunOne(),
                  TensorNear(ReductionReference(x, axes, keep_dims, SumOf), 1e-15, 1e-15));
      EXPECT_THAT(OpTester("Mean").Input(x).Input(indices).Attr("keep_dims", keep_dims).RunOne(),
                  TensorNear(ReductionReference(x, axes, keep_dims, MeanOf), 1e-15, 1e-15));
    }
  }
}

// Shapes around the sizes at which the loops change: wide rows, tiles of columns, blocks of rows,
// and the remainders.
TEST(Sum, RunsForEveryLayout) {
  for (const ReductionCase& c : ReductionLayouts()) {
    SCOPED_TRACE(c.DebugString());
    const Tensor x = RandomTensor(DT_FLOAT, c.shape, -1, 2);
    // The sum is computed in double and rounded once.
    EXPECT_THAT(OpTester("Sum").Input(x).Input(AsTensor<int32_t>(c.axes)).RunOne(),
                TensorNear(ReductionReference(x, c.axes, false, SumOf), 1e-12, 6e-8));
  }
}

TEST(Sum, RunsForRandomShapes) {
  std::mt19937 random(3);
  for (int round = 0; round < 100; ++round) {
    const ReductionCase c = RandomReduction(&random);
    SCOPED_TRACE(c.DebugString());
    const Tensor x = RandomTensor(DT_DOUBLE, c.shape, -1, 1, round);
    EXPECT_THAT(OpTester("Sum")
                    .Input(x)
                    .Input(AsTensor<int64_t>(std::vector<int64_t>(c.axes.begin(), c.axes.end())))
                    .RunOne(),
                TensorNear(ReductionReference(x, c.axes, false, SumOf), 1e-15, 1e-15));
  }
}

TEST(Sum, HasTheSameBitsOnAnyNumberOfThreads) {
  for (const DataType dtype : {DT_FLOAT, DT_DOUBLE, DT_COMPLEX64}) {
    for (const ReductionCase& c : ReductionLayouts()) {
      SCOPED_TRACE(DataTypeString(dtype) + c.DebugString());
      OpTester tester("Sum");
      tester.Input(RandomTensor(dtype, c.shape, -1, 1)).Input(AsTensor<int32_t>(c.axes));
      GRADFLOW_EXPECT_OK(tester.RunEverywhere());
    }
  }
}

// The second half of the numbers negates the first half in another order. One more number is the
// exact sum. An uncompensated sum would have no correct digit.
TEST(Sum, IsExactUnderCancellationOfDoubles) {
  for (const int64_t n : {1, 50, 1000, 100000}) {
    SCOPED_TRACE(n);
    const Tensor half = RandomTensor(DT_DOUBLE, {n}, -1e6, 1e6);
    Tensor x(DT_DOUBLE, {2 * n + 1});
    for (int64_t i = 0; i < n; ++i) {
      x.vec<double>()(i) = half.vec<double>()(i);
      x.vec<double>()(n + 1 + i) = -half.vec<double>()((i * 7 + n / 3) % n);
    }
    x.vec<double>()(n) = 1e-9;
    EXPECT_THAT(OpTester("Sum").Input(x).Input(AsScalar<int32_t>(0)).RunOne(),
                TensorEq(AsScalar<double>(1e-9)));
    // Repeats the numbers in several columns.
    for (const int64_t columns : {3, 70}) {
      if (n > 1000) break;
      Tensor matrix(DT_DOUBLE, {2 * n + 1, columns});
      for (int64_t i = 0; i < matrix.NumElements(); ++i) {
        matrix.flat<double>()(i) = x.vec<double>()(i / columns);
      }
      EXPECT_THAT(OpTester("Sum").Input(matrix).Input(AsScalar<int32_t>(0)).RunOne(),
                  TensorEq(FromDoubles(DT_DOUBLE, {columns}, std::vector<double>(columns, 1e-9))));
    }
  }
}

TEST(Sum, RoundsManyFloatsOnce) {
  const Tensor x = RandomTensor(DT_FLOAT, {1 << 20}, 0);
  EXPECT_THAT(OpTester("Sum").Input(x).Input(AsScalar<int32_t>(0)).RunOne(),
              TensorNear(ReductionReference(x, {0}, false, SumOf), 0, 6e-8));
  // A sum of ones in half would stop at 2048.
  Tensor ones(DT_HALF, {10, 5000});
  ones.flat<half>().setConstant(half(1));
  EXPECT_THAT(
      OpTester("Sum").Input(ones).Input(AsScalar<int32_t>(1)).RunOne(),
      TensorEq(UnaryReference(Tensor(ones.SubSlice(0).Slice(0, 10)), [](double) { return 5000; })));
  EXPECT_THAT(OpTester("Mean").Input(ones).Input(AsTensor<int32_t>({0, 1})).RunOne(),
              TensorEq(AsScalar<half>(1)));
}

// The exact results are slightly above a tie of the type. The nearest float is the tie.
TEST(Sum, RoundsHalvesFromDouble) {
  const auto run = [](const char* op, const Tensor& x) {
    return OpTester(op).Input(x).Input(AsScalar<int32_t>(0)).RunOne();
  };
  EXPECT_THAT(run("Sum", AsTensor<half>({2048, 1, 0x1p-24f})), TensorEq(AsScalar<half>(2050)));
  EXPECT_THAT(run("Sum", AsTensor<half>({2048, 1})), TensorEq(AsScalar<half>(2048)));
  EXPECT_THAT(run("Mean", AsTensor<half>({4096, 2, 0x1p-24f, 0})), TensorEq(AsScalar<half>(1025)));
  EXPECT_THAT(run("Mean", AsTensor<half>({4096, 2, 0x1p-23f, 4096, 2, 0, 0, 0})),
              TensorEq(AsScalar<half>(1025)));
  EXPECT_THAT(run("Sum", AsTensor<bfloat16>({256, 1, 0x1p-30f})),
              TensorEq(AsScalar<bfloat16>(258)));
  EXPECT_THAT(run("Mean", AsTensor<bfloat16>({512, 2, 0x1p-30f, 0})),
              TensorEq(AsScalar<bfloat16>(129)));
}

TEST(Sum, RunsForEveryRealType) {
  ForEachType(RealTypes(), [](auto tag) {
    using T = typename decltype(tag)::type;
    SCOPED_TRACE(DataTypeString(DataTypeToEnum<T>::value));
    const Tensor x = AsTensor<T>({1, 2, 3, 4, 5, 7}, {2, 3});
    EXPECT_THAT(OpTester("Sum").Input(x).Input(AsScalar<int32_t>(0)).RunOne(),
                TensorEq(AsTensor<T>({5, 7, 10})));
    EXPECT_THAT(OpTester("Sum").Input(x).Input(AsScalar<int32_t>(1)).RunOne(),
                TensorEq(AsTensor<T>({6, 16})));
    EXPECT_THAT(OpTester("Mean").Input(x).Input(AsScalar<int32_t>(0)).RunOne(),
                TensorEq(FromDoubles(x.dtype(), {3}, {2.5, 3.5, 5})));
  });
}

TEST(Sum, RunsForComplexNumbers) {
  const Tensor x = AsTensor<complex64>({{1, 2}, {3, 4}, {5, 6}, {7, -8}}, {2, 2});
  EXPECT_THAT(OpTester("Sum").Input(x).Input(AsScalar<int32_t>(1)).RunOne(),
              TensorEq(AsTensor<complex64>({{4, 6}, {12, -2}})));
  EXPECT_THAT(OpTester("Mean").Input(x).Input(AsScalar<int32_t>(0)).RunOne(),
              TensorEq(AsTensor<complex64>({{3, 4}, {5, -2}})));
  const Tensor z = AsTensor<complex128>({{1, 1e100}, {1e100, 1}, {-1e100, 1}, {1, -1e100}});
  EXPECT_THAT(OpTester("Sum").Input(z).Input(AsScalar<int32_t>(0)).RunOne(),
              TensorEq(AsScalar<complex128>({2, 2})));
}

TEST(Sum, IntegersWrapAround) {
  EXPECT_THAT(
      OpTester("Sum").Input(AsTensor<int8_t>({100, 100, 100})).Input(AsScalar<int32_t>(0)).RunOne(),
      TensorEq(AsScalar<int8_t>(44)));
  const int64_t max = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(
      OpTester("Sum").Input(AsTensor<int64_t>({max, max})).Input(AsScalar<int32_t>(0)).RunOne(),
      TensorEq(AsScalar<int64_t>(-2)));
}

TEST(Mean, RoundsIntegersTowardsZeroWithoutWrapping) {
  EXPECT_THAT(OpTester("Mean")
                  .Input(AsTensor<int8_t>({100, 100, 101}))
                  .Input(AsScalar<int32_t>(0))
                  .RunOne(),
              TensorEq(AsScalar<int8_t>(100)));
  EXPECT_THAT(
      OpTester("Mean").Input(AsTensor<int32_t>({-3, -4})).Input(AsScalar<int32_t>(0)).RunOne(),
      TensorEq(AsScalar<int32_t>(-3)));
  EXPECT_THAT(
      OpTester("Mean").Input(AsTensor<uint8_t>({255, 255})).Input(AsScalar<int32_t>(0)).RunOne(),
      TensorEq(AsScalar<uint8_t>(255)));
}

TEST(Sum, HandlesInfinitiesAndNan) {
  for (const DataType dtype : {DT_FLOAT, DT_DOUBLE}) {
    const Tensor x =
        FromDoubles(dtype, {4, 3}, {kInf, 1, 2, kInf, -kInf, 1, kNan, 1, 1, -kInf, 0, 0});
    EXPECT_THAT(OpTester("Sum").Input(x).Input(AsScalar<int32_t>(1)).RunOne(),
                TensorEq(FromDoubles(dtype, {4}, {kInf, kNan, kNan, -kInf})));
  }
  const double max = std::numeric_limits<double>::max();
  EXPECT_THAT(
      OpTester("Sum").Input(AsTensor<double>({max, max, 1})).Input(AsScalar<int32_t>(0)).RunOne(),
      TensorEq(AsScalar<double>(kInf)));
}

TEST(Sum, TakesEmptyTensors) {
  const Tensor axis = AsScalar<int32_t>(1);
  for (const DataType dtype : {DT_FLOAT, DT_DOUBLE, DT_HALF, DT_INT32}) {
    SCOPED_TRACE(DataTypeString(dtype));
    const Tensor x(dtype, {3, 0});
    EXPECT_THAT(OpTester("Sum").Input(x).Input(axis).RunOne(),
                TensorEq(FromDoubles(dtype, {3}, {0, 0, 0})));
    const double mean = dtype == DT_INT32 ? 0 : kNan;
    EXPECT_THAT(OpTester("Mean").Input(x).Input(axis).RunOne(),
                TensorEq(FromDoubles(dtype, {3}, {mean, mean, mean})));
    // Reduces to a result without elements.
    EXPECT_THAT(OpTester("Sum").Input(x).Input(AsScalar<int32_t>(0)).RunOne(),
                TensorEq(Tensor(dtype, {0})));
  }
  EXPECT_THAT(
      OpTester("Sum").Input(Tensor(DT_COMPLEX64, {0, 2})).Input(AsScalar<int32_t>(0)).RunOne(),
      TensorEq(AsTensor<complex64>({{0, 0}, {0, 0}})));
  // The product of the nonzero sizes overflows.
  const int64_t large = int64_t{1} << 40;
  EXPECT_THAT(OpTester("Sum")
                  .Input(Tensor(DT_FLOAT, {large, large, 0}))
                  .Input(AsTensor<int32_t>({0, 1, 2}))
                  .RunOne(),
              TensorEq(AsScalar<float>(0)));
}

TEST(Sum, ReturnsTheInputWithoutAxes) {
  const Tensor x = AsTensor<float>({1, -0.0f});
  EXPECT_THAT(OpTester("Sum").Input(x).Input(Tensor(DT_INT32, {0})).RunOne(), TensorEq(x));
  EXPECT_THAT(OpTester("Mean").Input(AsScalar<int32_t>(7)).Input(Tensor(DT_INT64, {0})).RunOne(),
              TensorEq(AsScalar<int32_t>(7)));
}

TEST(Sum, RefusesBadAxes) {
  struct BadAxes {
    Tensor axes;
    const char* error;
  };
  const BadAxes cases[] = {
      {AsScalar<int32_t>(2), "reduction_indices 2 is out of range [-2, 2)"},
      {AsTensor<int64_t>({0, -3}), "reduction_indices -3 is out of range [-2, 2)"},
      {AsTensor<int32_t>({1, 1}), "reduction_indices names axis 1 twice"},
      {AsTensor<int32_t>({1, 0, 1}), "reduction_indices has 3 axes, more than the 2 of the input"},
      {AsTensor<int32_t>({0, -2}), "reduction_indices names axis 0 twice"},
      {AsTensor<int32_t>({0}, {1, 1}),
       "reduction_indices must be a scalar or a vector, but has shape [1,1]"},
      {AsScalar<int64_t>(std::numeric_limits<int64_t>::min()),
       "reduction_indices -9223372036854775808 is out of range"},
  };
  for (const char* op : {"Sum", "Mean", "Max", "Min"}) {
    for (const BadAxes& c : cases) {
      auto tester = OpTester(op);
      tester.Input(RandomTensor(DT_FLOAT, {2, 3})).Input(c.axes);
      const auto error = StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.error));
      EXPECT_THAT(tester.Run(), error) << op;
      EXPECT_THAT(tester.InferShape(), error) << op;
    }
    EXPECT_THAT(OpTester(op).Input(AsScalar<float>(1)).Input(AsScalar<int32_t>(0)).Run(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("reduction_indices 0 is out of range [0, 0)")));
  }
}

TEST(Sum, RefusesAnInputOfAnotherType) {
  EXPECT_THAT(
      OpTester("Sum").Attr("T", DT_DOUBLE).RunOn({AsTensor<float>({1}), AsScalar<int32_t>(0)}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("input must be of type double, but is float")));
}

TEST(Sum, RefusesAResultThatIsTooLarge) {
  const int64_t large = int64_t{1} << 40;
  EXPECT_THAT(
      OpTester("Sum").Input(Tensor(DT_FLOAT, {large, 0, large})).Input(AsScalar<int32_t>(1)).Run(),
      StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
