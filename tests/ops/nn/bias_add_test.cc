#include <cstdint>
#include <string>
#include <vector>

#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

// Returns the shape that lets `bias` broadcast over the channels of `value`.
TensorShape BroadcastableBias(const Tensor& value, const std::string& format) {
  const int d = format == "NHWC" ? value.dims() - 1 : 1;
  std::vector<int64_t> dims(value.dims(), 1);
  dims[d] = value.dim_size(d);
  return TensorShape(dims);
}

Tensor BiasAddReference(const Tensor& value, const Tensor& bias, const std::string& format) {
  const Tensor shaped = bias.Reshaped(BroadcastableBias(value, format)).value();
  return BinaryReference(value, shaped, value.dtype(), [](double x, double b) { return x + b; });
}

Tensor BiasAddGradReference(const Tensor& dy, const std::string& format) {
  std::vector<int32_t> axes;
  const int channel_dim = format == "NHWC" ? dy.dims() - 1 : 1;
  for (int d = 0; d < dy.dims(); ++d) {
    if (d != channel_dim) axes.push_back(d);
  }
  return ReductionReference(dy, axes, false, [](const std::vector<double>& values) {
    double sum = 0;
    for (const double v : values) sum += v;
    return sum;
  });
}

const TensorShape kBiasAddShapes[] = {
    {3, 4},          {0, 4},       {2, 3, 4},          {2, 5, 7, 3},
    {2, 3, 4, 2, 3}, {1, 1, 1, 1}, {2, 2, 1, 2, 1, 2}, {2, 3, 0},
    {2, 7, 60, 61},  {3, 3000},    {2, 2, 30000}};

TEST(BiasAdd, RunsForEveryTypeAndFormat) {
  ForEachType(RealTypes(), [](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr DataType dtype = DataTypeToEnum<T>::value;
    for (const std::string format : {"NHWC", "NCHW"}) {
      for (const TensorShape& shape : kBiasAddShapes) {
        SCOPED_TRACE(format + " " + shape.DebugString() + " of " + DataTypeString(dtype));
        const Tensor value = RandomTensor(dtype, shape, 0, 50, 1);
        const int d = format == "NHWC" ? shape.dims() - 1 : 1;
        const Tensor bias = RandomTensor(dtype, {shape.dim_size(d)}, 0, 50, 2);
        OpTester op("BiasAdd");
        op.Input(value).Input(bias).Attr("data_format", format);
        EXPECT_THAT(op.RunOne(), TensorEq(BiasAddReference(value, bias, format)));
        if (format == "NHWC") {
          EXPECT_THAT(OpTester("BiasAddV1").Input(value).Input(bias).RunOne(),
                      TensorEq(BiasAddReference(value, bias, format)));
        }
      }
    }
  });
}

TEST(BiasAdd, WrapsIntegersAround) {
  EXPECT_THAT(
      OpTester("BiasAdd").Input<int8_t>({100, -100}, {1, 2}).Input<int8_t>({100, -100}).RunOne(),
      TensorEq(AsTensor<int8_t>({-56, 56}, {1, 2})));
}

TEST(BiasAdd, RunsForComplexNumbers) {
  EXPECT_THAT(OpTester("BiasAdd")
                  .Input<complex64>({{1, 2}, {3, 4}, {5, 6}, {7, 8}}, {1, 2, 2})
                  .Input<complex64>({{10, 20}, {30, 40}})
                  .Attr("data_format", "NCHW")
                  .RunOne(),
              TensorEq(AsTensor<complex64>({{11, 22}, {13, 24}, {35, 46}, {37, 48}}, {1, 2, 2})));
}

TEST(BiasAdd, RejectsShapes) {
  for (const char* const op : {"BiasAdd", "BiasAddV1"}) {
    const auto run = [op](const TensorShape& value, const TensorShape& bias) {
      OpTester tester(op);
      tester.Input(Tensor(DT_FLOAT, value)).Input(Tensor(DT_FLOAT, bias));
      const absl::Status status = tester.Run().status();
      EXPECT_EQ(tester.InferShape().status(), status);
      return status;
    };
    EXPECT_THAT(run({2}, {2}),
                StatusIs(kInvalidArgument, "value has shape [2], expected rank 2 at least"));
    EXPECT_THAT(run({2, 2}, {}),
                StatusIs(kInvalidArgument, "bias has shape [], expected a vector"));
    EXPECT_THAT(run({2, 3}, {1}),
                StatusIs(kInvalidArgument,
                         "bias has 1 elements, expected 3 (the channels of value [2,3], NHWC)"));
  }
  EXPECT_THAT(OpTester("BiasAdd")
                  .Input(Tensor(DT_FLOAT, {2, 3, 4}))
                  .Input(Tensor(DT_FLOAT, {4}))
                  .Attr("data_format", "NCHW")
                  .Run(),
              StatusIs(kInvalidArgument,
                       "bias has 4 elements, expected 3 (the channels of value [2,3,4], NCHW)"));
}

TEST(BiasAdd, InfersTheChannels) {
  const auto infer = [](const std::string& format, const PartialTensorShape& value) {
    return OpTester("BiasAdd")
        .UnknownInput(DT_FLOAT, value)
        .UnknownInput(DT_FLOAT, PartialTensorShape({5}))
        .Attr("data_format", format)
        .InferShape();
  };
  EXPECT_THAT(infer("NHWC", {2, -1, -1}), ShapeIs("[2,?,5]"));
  EXPECT_THAT(infer("NCHW", {2, -1, -1}), ShapeIs("[2,5,?]"));
  EXPECT_THAT(infer("NHWC", PartialTensorShape()), ShapeIs("<unknown>"));
}

TEST(BiasAddGrad, RunsForEveryTypeAndFormat) {
  for (const DataType dtype :
       {DT_FLOAT, DT_DOUBLE, DT_HALF, DT_BFLOAT16, DT_INT32, DT_INT64, DT_UINT64}) {
    for (const std::string format : {"NHWC", "NCHW"}) {
      for (const TensorShape& shape : kBiasAddShapes) {
        SCOPED_TRACE(format + " " + shape.DebugString() + " of " + DataTypeString(dtype));
        const Tensor dy = RandomTensor(dtype, shape, 0, 3);
        EXPECT_THAT(OpTester("BiasAddGrad").Input(dy).Attr("data_format", format).RunOne(),
                    TensorNear(BiasAddGradReference(dy, format)));
      }
    }
  }
}

TEST(BiasAddGrad, RejectsVectors) {
  OpTester op("BiasAddGrad");
  op.Input<float>({1, 2});
  const auto error =
      StatusIs(kInvalidArgument, "out_backprop has shape [2], expected rank 2 at least");
  EXPECT_THAT(op.Run(), error);
  EXPECT_THAT(op.InferShape(), error);
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
