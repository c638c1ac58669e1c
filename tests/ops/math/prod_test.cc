#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

double ProductOf(const std::vector<double>& values) {
  long double product = 1;
  for (const double value : values) product *= value;
  return static_cast<double>(product);
}
double NormOf(const std::vector<double>& values) {
  long double sum = 0;
  for (const double value : values) sum += static_cast<long double>(value) * value;
  return static_cast<double>(std::sqrt(sum));
}
double AllOf(const std::vector<double>& values) {
  for (const double value : values) {
    if (value == 0) return 0;
  }
  return 1;
}
double AnyOf(const std::vector<double>& values) {
  for (const double value : values) {
    if (value != 0) return 1;
  }
  return 0;
}

absl::StatusOr<Tensor> ReduceAxis(const char* op, const Tensor& x, int32_t axis) {
  return OpTester(op).Input(x).Input(AsScalar<int32_t>(axis)).RunOne();
}

TEST(Prod, RunsForEveryLayout) {
  for (const ReductionCase& c : ReductionLayouts()) {
    SCOPED_TRACE(c.DebugString());
    // Factors near 1, so that large products neither overflow nor vanish.
    const Tensor x = RandomTensor(DT_FLOAT, c.shape, 0.9f, 1.1f);
    EXPECT_THAT(OpTester("Prod").Input(x).Input(AsTensor<int32_t>(c.axes)).RunOne(),
                TensorNear(ReductionReference(x, c.axes, false, ProductOf), 1e-30, 1e-7));
    EXPECT_THAT(OpTester("EuclideanNorm").Input(x).Input(AsTensor<int32_t>(c.axes)).RunOne(),
                TensorNear(ReductionReference(x, c.axes, false, NormOf), 0, 1e-7));
  }
}

TEST(Prod, RunsForRandomShapes) {
  std::mt19937 random(9);
  for (int round = 0; round < 60; ++round) {
    const ReductionCase c = RandomReduction(&random);
    SCOPED_TRACE(c.DebugString());
    const Tensor axes = AsTensor<int32_t>(c.axes);
    const Tensor x = RandomTensor(DT_DOUBLE, c.shape, 0.5f, 1.5f, round);
    EXPECT_THAT(OpTester("Prod").Input(x).Input(axes).Attr("keep_dims", true).RunOne(),
                TensorNear(ReductionReference(x, c.axes, true, ProductOf), 1e-300, 1e-12));
    EXPECT_THAT(OpTester("EuclideanNorm").Input(x).Input(axes).RunOne(),
                TensorNear(ReductionReference(x, c.axes, false, NormOf), 1e-15, 1e-15));
    Tensor flags(DT_BOOL, c.shape);
    for (bool& flag : flags.span<bool>()) flag = random() % 4 != 0;
    EXPECT_THAT(OpTester("All").Input(flags).Input(axes).RunOne(),
                TensorEq(ReductionReference(flags, c.axes, false, AllOf)));
    EXPECT_THAT(OpTester("Any").Input(flags).Input(axes).RunOne(),
                TensorEq(ReductionReference(flags, c.axes, false, AnyOf)));
  }
}

TEST(Prod, HasTheSameBitsOnAnyNumberOfThreads) {
  for (const char* op : {"Prod", "EuclideanNorm"}) {
    for (const DataType dtype : {DT_DOUBLE, DT_COMPLEX64, DT_COMPLEX128}) {
      SCOPED_TRACE(DataTypeString(dtype));
      OpTester tester(op);
      tester.Input(RandomTensor(dtype, {70000, 3}, 0.9f, 1.1f)).Input(AsScalar<int32_t>(0));
      GRADFLOW_EXPECT_OK(tester.RunEverywhere());
    }
  }
}

TEST(Prod, RunsForEveryRealType) {
  ForEachType(RealTypes(), [](auto tag) {
    using T = typename decltype(tag)::type;
    SCOPED_TRACE(DataTypeString(DataTypeToEnum<T>::value));
    const Tensor x = AsTensor<T>({1, 2, 3, 4, 5, 7}, {2, 3});
    EXPECT_THAT(ReduceAxis("Prod", x, 0), TensorEq(AsTensor<T>({4, 10, 21})));
    EXPECT_THAT(ReduceAxis("EuclideanNorm", AsTensor<T>({3, 4, 2, 6, 2, 3}, {2, 3}), 1),
                TensorEq(FromDoubles(x.dtype(), {2}, {std::sqrt(29.0), 7})));
  });
}

TEST(Prod, RunsForComplexNumbers) {
  const Tensor x = AsTensor<complex64>({{1, 2}, {3, -1}, {0, 1}, {2, 0}}, {2, 2});
  EXPECT_THAT(ReduceAxis("Prod", x, 1), TensorEq(AsTensor<complex64>({{5, 5}, {0, 2}})));
  EXPECT_THAT(ReduceAxis("EuclideanNorm", AsTensor<complex64>({{2, 4}, {5, -6}}), 0),
              TensorEq(AsScalar<complex64>({9, 0})));
  const Tensor z = AsTensor<complex128>({{0, 1}, {0, 1}, {0, 1}});
  EXPECT_THAT(ReduceAxis("Prod", z, 0), TensorNear(AsScalar<complex128>({0, -1}), 0, 0));
  EXPECT_THAT(ReduceAxis("EuclideanNorm", z, 0),
              TensorNear(AsScalar<complex128>({std::sqrt(3.0), 0}), 0, 1e-15));
}

TEST(Prod, IntegersWrapAround) {
  EXPECT_THAT(ReduceAxis("Prod", AsTensor<int8_t>({-100, 3}), 0), TensorEq(AsScalar<int8_t>(-44)));
  EXPECT_THAT(ReduceAxis("Prod", AsTensor<int64_t>({int64_t{1} << 62, 3}), 0),
              TensorEq(AsScalar<int64_t>(-(int64_t{1} << 62))));
}

TEST(Prod, HasNoIntermediateOverflow) {
  EXPECT_THAT(ReduceAxis("Prod", AsTensor<float>({1e30f, 1e30f, 1e-30f, 1e-30f}), 0),
              TensorNear(AsScalar<float>(1), 0, 1e-6));
  EXPECT_THAT(ReduceAxis("EuclideanNorm", AsTensor<float>({3e30f, 4e30f}), 0),
              TensorEq(AsScalar<float>(5e30f)));
}

TEST(Prod, HandlesNanAndInfinity) {
  const Tensor x = FromDoubles(DT_FLOAT, {3, 2}, {kNan, 1, kInf, 0, kInf, -2});
  EXPECT_THAT(ReduceAxis("Prod", x, 1), TensorEq(FromDoubles(DT_FLOAT, {3}, {kNan, kNan, -kInf})));
  EXPECT_THAT(ReduceAxis("EuclideanNorm", x, 1),
              TensorEq(FromDoubles(DT_FLOAT, {3}, {kNan, kInf, kInf})));
}

TEST(Prod, TakesEmptyTensors) {
  for (const DataType dtype : {DT_FLOAT, DT_DOUBLE, DT_HALF, DT_INT32}) {
    const Tensor x(dtype, {2, 0});
    EXPECT_THAT(ReduceAxis("Prod", x, 1), TensorEq(FromDoubles(dtype, {2}, {1, 1})));
    EXPECT_THAT(ReduceAxis("EuclideanNorm", x, 1), TensorEq(FromDoubles(dtype, {2}, {0, 0})));
    EXPECT_THAT(ReduceAxis("Prod", x, 0), TensorEq(Tensor(dtype, {0})));
  }
  EXPECT_THAT(ReduceAxis("All", Tensor(DT_BOOL, {0}), 0), TensorEq(AsScalar<bool>(true)));
  EXPECT_THAT(ReduceAxis("Any", Tensor(DT_BOOL, {0}), 0), TensorEq(AsScalar<bool>(false)));
  EXPECT_THAT(ReduceAxis("Prod", Tensor(DT_COMPLEX64, {0}), 0),
              TensorEq(AsScalar<complex64>({1, 0})));
}

// The norm is computed even for a single element, which other reductions return unchanged.
TEST(EuclideanNorm, IsNotNegative) {
  EXPECT_THAT(ReduceAxis("EuclideanNorm", AsTensor<float>({-3}), 0), TensorEq(AsScalar<float>(3)));
  EXPECT_THAT(OpTester("EuclideanNorm")
                  .Input(AsTensor<complex64>({{-3, 4}}))
                  .Input(Tensor(DT_INT32, {0}))
                  .RunOne(),
              TensorEq(AsTensor<complex64>({{5, 0}})));
}

TEST(EuclideanNorm, RoundsIntegersTowardsZeroAndClamps) {
  EXPECT_THAT(ReduceAxis("EuclideanNorm", AsTensor<int32_t>({1, 2, 3}), 0),
              TensorEq(AsScalar<int32_t>(3)));
  EXPECT_THAT(ReduceAxis("EuclideanNorm", AsTensor<int8_t>({100, -100}), 0),
              TensorEq(AsScalar<int8_t>(127)));
  const int64_t max = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(ReduceAxis("EuclideanNorm", AsTensor<int64_t>({max, max}), 0),
              TensorEq(AsScalar<int64_t>(max)));
  const uint64_t umax = std::numeric_limits<uint64_t>::max();
  EXPECT_THAT(ReduceAxis("EuclideanNorm", AsTensor<uint64_t>({umax, umax}), 0),
              TensorEq(AsScalar<uint64_t>(umax)));
}

TEST(All, TakesAnyByteButZeroAsTrue) {
  Tensor x(DT_BOOL, {100});
  std::memset(x.raw_data(), 6, 100);
  EXPECT_THAT(ReduceAxis("All", x, 0), TensorEq(AsScalar<bool>(true)));
  std::memset(x.raw_data(), 0, 99);
  EXPECT_THAT(ReduceAxis("Any", x, 0), TensorEq(AsScalar<bool>(true)));
  EXPECT_THAT(ReduceAxis("All", x, 0), TensorEq(AsScalar<bool>(false)));
}

TEST(Prod, RefusesBadAxes) {
  const Tensor flags = AsTensor<bool>({true, false}, {1, 2});
  for (const char* op : {"Prod", "EuclideanNorm", "All", "Any"}) {
    const bool of_bool = op[0] == 'A';
    auto tester = OpTester(op);
    tester.Input(of_bool ? flags : AsTensor<float>({1, 2}, {1, 2}))
        .Input(AsTensor<int32_t>({1, -1}));
    const auto error =
        StatusIs(kInvalidArgument, HasSubstr("reduction_indices names axis 1 twice"));
    EXPECT_THAT(tester.Run(), error) << op;
    EXPECT_THAT(tester.InferShape(), error) << op;
  }
  EXPECT_THAT(
      OpTester("Prod").Attr("T", DT_DOUBLE).RunOn({AsTensor<float>({1}), AsScalar<int32_t>(0)}),
      StatusIs(kInvalidArgument, HasSubstr("input must be of type double, but is float")));
  EXPECT_THAT(OpTester("All").RunOn({AsTensor<float>({1}), AsScalar<int32_t>(0)}),
              StatusIs(kInvalidArgument, HasSubstr("input must be of type bool, but is float")));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
