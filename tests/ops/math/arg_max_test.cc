#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

double FirstMax(const std::vector<double>& values) {
  size_t best = 0;
  for (size_t i = 1; i < values.size(); ++i) {
    if (values[i] > values[best] || (std::isnan(values[best]) && !std::isnan(values[i]))) best = i;
  }
  return static_cast<double>(best);
}
double FirstMin(const std::vector<double>& values) {
  size_t best = 0;
  for (size_t i = 1; i < values.size(); ++i) {
    if (values[i] < values[best] || (std::isnan(values[best]) && !std::isnan(values[i]))) best = i;
  }
  return static_cast<double>(best);
}

Tensor ArgReference(const Tensor& x, int axis, DataType dtype,
                    double (*index)(const std::vector<double>&)) {
  // Compares in float64, which represents these integers exactly.
  const Tensor wide = UnaryReference(
      x.dtype() == DT_DOUBLE
          ? x
          : FromDoubles(DT_DOUBLE, x.shape(),
                        [&] {
                          std::vector<double> values;
                          DispatchType(RealTypes(), x.dtype(), [&](auto tag) {
                            for (const auto v : x.span<typename decltype(tag)::type>()) {
                              values.push_back(static_cast<double>(v));
                            }
                          });
                          return values;
                        }()),
      [](double v) { return v; });
  const Tensor indices = ReductionReference(wide, {axis}, false, index);
  std::vector<double> values(indices.span<double>().begin(), indices.span<double>().end());
  return FromDoubles(dtype, indices.shape(), values);
}

// Shapes around the sizes at which the search changes: lanes of a single column, tiles of columns,
// blocks of rows. There are few distinct values, so ties decide most results.
TEST(ArgMax, RunsForEveryLayout) {
  struct Case {
    TensorShape shape;
    int axis;
  };
  const Case cases[] = {
      {{1}, 0},           {{5}, 0},        {{127}, 0},      {{128}, 0},     {{131}, 0},
      {{40000}, 0},       {{70001}, 0},    {{7, 10}, 1},    {{10, 7}, 0},   {{300, 200}, 0},
      {{200, 300}, 1},    {{3, 513}, 0},   {{40000, 2}, 0}, {{3, 5, 7}, 1}, {{2, 300, 600}, 1},
      {{2, 3, 4, 5}, -2}, {{70, 1, 3}, 1},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.shape.DebugString());
    const int axis = c.axis < 0 ? c.axis + c.shape.dims() : c.axis;
    for (const DataType dtype : {DT_FLOAT, DT_INT8}) {
      const Tensor x = RandomTensor(dtype, c.shape, Uniform(-20, 20));
      EXPECT_THAT(OpTester("ArgMax").Input(x).Input(AsScalar<int32_t>(c.axis)).RunOne(),
                  TensorEq(ArgReference(x, axis, DT_INT64, FirstMax)));
      EXPECT_THAT(OpTester("ArgMin")
                      .Input(x)
                      .Input(AsScalar<int64_t>(c.axis))
                      .Attr("output_type", DT_INT32)
                      .RunOne(),
                  TensorEq(ArgReference(x, axis, DT_INT32, FirstMin)));
    }
  }
}

TEST(ArgMax, RunsForEveryRealType) {
  ForEachType(RealTypes(), [](auto tag) {
    using T = typename decltype(tag)::type;
    SCOPED_TRACE(DataTypeString(DataTypeToEnum<T>::value));
    const Tensor x = AsTensor<T>({1, 5, 3, 4, 5, 0}, {2, 3});
    for (const int axis : {0, 1}) {
      EXPECT_THAT(OpTester("ArgMax").Input(x).Input(AsScalar<int32_t>(axis)).RunOne(),
                  TensorEq(ArgReference(x, axis, DT_INT64, FirstMax)));
      EXPECT_THAT(OpTester("ArgMin").Input(x).Input(AsScalar<int32_t>(axis)).RunOne(),
                  TensorEq(ArgReference(x, axis, DT_INT64, FirstMin)));
    }
    const Tensor extremes =
        AsTensor<T>({0, std::numeric_limits<T>::max(), 1, std::numeric_limits<T>::lowest()});
    EXPECT_THAT(OpTester("ArgMax").Input(extremes).Input(AsScalar<int32_t>(0)).RunOne(),
                TensorEq(AsScalar<int64_t>(1)));
  });
  const Tensor flags = AsTensor<bool>({false, true, true, false}, {2, 2});
  EXPECT_THAT(OpTester("ArgMax").Input(flags).Input(AsScalar<int32_t>(1)).RunOne(),
              TensorEq(AsTensor<int64_t>({1, 0})));
  EXPECT_THAT(OpTester("ArgMin").Input(flags).Input(AsScalar<int32_t>(1)).RunOne(),
              TensorEq(AsTensor<int64_t>({0, 1})));
}

TEST(ArgMax, SkipsNan) {
  for (const DataType dtype : {DT_FLOAT, DT_DOUBLE, DT_HALF, DT_BFLOAT16}) {
    SCOPED_TRACE(DataTypeString(dtype));
    const Tensor x =
        FromDoubles(dtype, {4, 3}, {kNan, -kInf, 1, 1, kNan, 2, 3, 1, kNan, kNan, kNan, kNan});
    EXPECT_THAT(OpTester("ArgMax").Input(x).Input(AsScalar<int32_t>(1)).RunOne(),
                TensorEq(AsTensor<int64_t>({2, 2, 0, 0})));
    EXPECT_THAT(OpTester("ArgMin").Input(x).Input(AsScalar<int32_t>(1)).RunOne(),
                TensorEq(AsTensor<int64_t>({1, 0, 1, 0})));
    std::vector<double> values(300, kNan);
    values[200] = -kInf;
    values[250] = -kInf;
    EXPECT_THAT(OpTester("ArgMax")
                    .Input(FromDoubles(dtype, {300}, values))
                    .Input(AsScalar<int32_t>(0))
                    .RunOne(),
                TensorEq(AsScalar<int64_t>(200)));
  }
}

TEST(ArgMax, RunsForEveryOutputType) {
  Tensor x(DT_UINT8, {40001});
  std::memset(x.raw_data(), 0, 40001);
  x.flat<uint8_t>()(40000) = 1;
  const auto run = [&](DataType dtype) {
    return OpTester("ArgMax")
        .Input(x)
        .Input(AsScalar<int16_t>(0))
        .Attr("output_type", dtype)
        .RunOne();
  };
  EXPECT_THAT(run(DT_INT64), TensorEq(AsScalar<int64_t>(40000)));
  EXPECT_THAT(run(DT_INT32), TensorEq(AsScalar<int32_t>(40000)));
  EXPECT_THAT(run(DT_UINT16), TensorEq(AsScalar<uint16_t>(40000)));
  // The index keeps its low bits.
  EXPECT_THAT(run(DT_INT16), TensorEq(AsScalar<int16_t>(-25536)));
}

TEST(ArgMax, TakesEmptyTensors) {
  EXPECT_THAT(
      OpTester("ArgMax").Input(Tensor(DT_FLOAT, {2, 0})).Input(AsScalar<int32_t>(0)).RunOne(),
      TensorEq(Tensor(DT_INT64, {0})));
}

TEST(ArgMax, RejectsInvalidInputs) {
  struct Case {
    Tensor input;
    Tensor dimension;
    const char* error;
    bool at_run_only = false;
  };
  const Case cases[] = {
      {AsScalar<float>(1), AsScalar<int32_t>(0), "rank", true},
      {Tensor(DT_FLOAT, {2, 2}), AsScalar<int32_t>(2), "dimension 2 is out of range [-2, 2)"},
      {Tensor(DT_FLOAT, {2, 2}), AsScalar<int64_t>(-3), "dimension -3 is out of range [-2, 2)"},
      {Tensor(DT_FLOAT, {2, 2}), AsTensor<int32_t>({0}),
       "Shape must be rank 0 but is rank 1: dimension has shape [1]"},
      {Tensor(DT_FLOAT, {0, 2}), AsScalar<int32_t>(0),
       "dimension 0 of input is empty: the shape is [0,2]", true},
      {Tensor(DT_FLOAT, {0, 0}), AsScalar<int32_t>(1),
       "dimension 1 of input is empty: the shape is [0,0]", true},
  };
  for (const char* op : {"ArgMax", "ArgMin"}) {
    for (const Case& c : cases) {
      auto tester = OpTester(op);
      tester.Input(c.input).Input(c.dimension);
      EXPECT_THAT(tester.Run(), StatusIs(kInvalidArgument, HasSubstr(c.error)));
      if (!c.at_run_only) {
        EXPECT_THAT(tester.InferShape(), StatusIs(kInvalidArgument, ::testing::_));
      }
    }
    EXPECT_THAT(OpTester(op).Input(AsTensor<quint8>({1})).Input(AsScalar<int32_t>(0)).MakeKernel(),
                StatusIs(absl::StatusCode::kUnimplemented, HasSubstr(op)));
    EXPECT_THAT(OpTester(op)
                    .Attr("T", DT_FLOAT)
                    .RunOn({AsTensor<complex64>({{1, 2}}), AsScalar<int32_t>(0)}),
                StatusIs(kInvalidArgument, HasSubstr("input must not be of type complex64")));
  }
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
