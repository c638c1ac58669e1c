#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/ops/common/simd.h"
#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

double MaxOf(const std::vector<double>& values) {
  double max = -kInf;
  for (const double value : values) max = std::isnan(value) || value > max ? value : max;
  return max;
}
double MinOf(const std::vector<double>& values) {
  double min = kInf;
  for (const double value : values) min = std::isnan(value) || value < min ? value : min;
  return min;
}

TEST(Max, RunsForEveryLayout) {
  for (const ReductionCase& c : ReductionLayouts()) {
    SCOPED_TRACE(c.DebugString());
    const Tensor x = RandomTensor(DT_FLOAT, c.shape, -2, -1);
    const Tensor axes = AsTensor<int32_t>(c.axes);
    EXPECT_THAT(OpTester("Max").Input(x).Input(axes).RunOne(),
                TensorEq(ReductionReference(x, c.axes, false, MaxOf)));
    EXPECT_THAT(OpTester("Min").Input(x).Input(axes).Attr("keep_dims", true).RunOne(),
                TensorEq(ReductionReference(x, c.axes, true, MinOf)));
  }
}

TEST(Max, RunsForRandomShapes) {
  std::mt19937 random(5);
  for (int round = 0; round < 100; ++round) {
    const ReductionCase c = RandomReduction(&random);
    SCOPED_TRACE(c.DebugString());
    const Tensor x = RandomTensor(DT_INT32, c.shape, -100, 100, round);
    const Tensor axes = AsTensor<int32_t>(c.axes);
    EXPECT_THAT(OpTester("Max").Input(x).Input(axes).RunOne(),
                TensorEq(ReductionReference(x, c.axes, false, MaxOf)));
    EXPECT_THAT(OpTester("Min").Input(x).Input(axes).RunOne(),
                TensorEq(ReductionReference(x, c.axes, false, MinOf)));
  }
}

TEST(Max, RunsForEveryRealType) {
  ForEachType(RealTypes(), [](auto tag) {
    using T = typename decltype(tag)::type;
    SCOPED_TRACE(DataTypeString(DataTypeToEnum<T>::value));
    const Tensor x = AsTensor<T>({1, 2, 3, 4, 5, 0}, {2, 3});
    EXPECT_THAT(OpTester("Max").Input(x).Input(AsScalar<int32_t>(0)).RunOne(),
                TensorEq(AsTensor<T>({4, 5, 3})));
    EXPECT_THAT(OpTester("Min").Input(x).Input(AsScalar<int32_t>(-1)).RunOne(),
                TensorEq(AsTensor<T>({1, 0})));
    const Tensor extremes =
        AsTensor<T>({std::numeric_limits<T>::lowest(), std::numeric_limits<T>::max()});
    EXPECT_THAT(OpTester("Max").Input(extremes).Input(AsScalar<int32_t>(0)).RunOne(),
                TensorEq(AsScalar<T>(std::numeric_limits<T>::max())));
    EXPECT_THAT(OpTester("Min").Input(extremes).Input(AsScalar<int32_t>(0)).RunOne(),
                TensorEq(AsScalar<T>(std::numeric_limits<T>::lowest())));
  });
}

TEST(Max, KeepsNanWhereverItIs) {
  for (const DataType dtype : {DT_FLOAT, DT_DOUBLE, DT_HALF, DT_BFLOAT16}) {
    SCOPED_TRACE(DataTypeString(dtype));
    constexpr int64_t n = 150;
    for (const int64_t where : {0, 1, 63, 64, 149}) {
      std::vector<double> values(n, 3);
      values[where] = kNan;
      const Tensor x = FromDoubles(dtype, {n}, values);
      for (const char* op : {"Max", "Min"}) {
        EXPECT_THAT(OpTester(op).Input(x).Input(AsScalar<int32_t>(0)).RunOne(),
                    TensorEq(FromDoubles(dtype, {}, {kNan})));
      }
    }
  }
}

// Narrow and wide rows, and remainders after vectors, with zeros of both signs and NaN.
TEST(Max, HasTheSameBitsOnEverySimdTarget) {
  for (const TensorShape& shape : {TensorShape({7, 5}), TensorShape({40, 64}),
                                   TensorShape({19, 83}), TensorShape({3, 4100})}) {
    Tensor x = RandomTensor(DT_FLOAT, shape);
    const auto values = x.span<float>();
    for (size_t i = 0; i < values.size(); ++i) {
      if (i % 3 == 0) values[i] = i % 2 == 0 ? 0.0f : -0.0f;
    }
    values[values.size() / 2] = static_cast<float>(kNan);
    for (const char* op : {"Max", "Min"}) {
      for (const int32_t axis : {0, 1}) {
        SCOPED_TRACE(absl::StrCat(op, " ", shape.DebugString(), " ", axis));
        Tensor expected;
        for (const std::string& target : SimdTargets()) {
          ASSERT_TRUE(SetSimdTarget(target));
          GRADFLOW_ASSERT_OK_AND_ASSIGN(
              const Tensor y, OpTester(op).Input(x).Input(AsScalar<int32_t>(axis)).RunOne());
          if (target == SimdTargets().front()) expected = y;
          EXPECT_EQ(y.tensor_data(), expected.tensor_data()) << target;
        }
      }
    }
  }
  ASSERT_TRUE(SetSimdTarget(""));
}

TEST(Max, TakesEmptyTensors) {
  const Tensor axis = AsScalar<int32_t>(0);
  const Tensor floats(DT_FLOAT, {0, 2});
  EXPECT_THAT(OpTester("Max").Input(floats).Input(axis).RunOne(),
              TensorEq(FromDoubles(DT_FLOAT, {2}, {-kInf, -kInf})));
  EXPECT_THAT(OpTester("Min").Input(floats).Input(axis).RunOne(),
              TensorEq(FromDoubles(DT_FLOAT, {2}, {kInf, kInf})));
  const Tensor bytes(DT_INT8, {0, 2});
  EXPECT_THAT(OpTester("Max").Input(bytes).Input(axis).RunOne(),
              TensorEq(AsTensor<int8_t>({-128, -128})));
  EXPECT_THAT(OpTester("Min").Input(bytes).Input(axis).RunOne(),
              TensorEq(AsTensor<int8_t>({127, 127})));
}

TEST(Max, HandlesInfinities) {
  const Tensor x = FromDoubles(DT_FLOAT, {2, 2}, {-kInf, -kInf, kInf, 1});
  EXPECT_THAT(OpTester("Max").Input(x).Input(AsScalar<int32_t>(1)).RunOne(),
              TensorEq(FromDoubles(DT_FLOAT, {2}, {-kInf, kInf})));
}

TEST(Max, HasNoKernelForQuantizedNumbers) {
  for (const char* op : {"Max", "Min"}) {
    EXPECT_THAT(OpTester(op).Input(AsTensor<quint8>({1})).Input(AsScalar<int32_t>(0)).MakeKernel(),
                StatusIs(absl::StatusCode::kUnimplemented, HasSubstr(op)));
  }
}

TEST(Max, RefusesComplexNumbers) {
  for (const char* op : {"Max", "Min"}) {
    EXPECT_THAT(
        OpTester(op).Input(AsTensor<complex64>({{1, 2}})).Input(AsScalar<int32_t>(0)).MakeKernel(),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("T")));
  }
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
