// Tests of average and max pooling of images and volumes, and of all their gradients.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "gradflow/core/stop_token.h"
#include "gradflow/ops/common/simd.h"
#include "gradflow/ops/nn/pool_windows.h"
#include "gradflow/testing/kernel_test.h"
#include "tests/ops/common/error_case.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

using Sizes = std::array<int64_t, 3>;

// Windows over planes, rows and columns. Images have one plane.
struct PoolCase {
  Sizes in;
  Sizes size;
  Sizes stride;
  std::string padding;
  // For EXPLICIT: the padding before and after each of the three dimensions.
  std::vector<int64_t> pads = {0, 0, 0, 0, 0, 0};

  bool is_image() const { return in[0] == 1 && size[0] == 1 && stride[0] == 1; }
  // Returns the number of windows along dimension d.
  int64_t Out(int d) const {
    if (padding == "SAME") return (in[d] + stride[d] - 1) / stride[d];
    return (in[d] + pads[2 * d] + pads[2 * d + 1] - size[d]) / stride[d] + 1;
  }
  int64_t Before(int d) const {
    if (padding != "SAME") return pads[2 * d];
    return std::max<int64_t>(0, (Out(d) - 1) * stride[d] + size[d] - in[d]) / 2;
  }
  std::string DebugString() const {
    std::string text = padding;
    for (int d = 0; d < 3; ++d) {
      text += " " + std::to_string(in[d]) + "/" + std::to_string(size[d]) + "/" +
              std::to_string(stride[d]);
    }
    return text;
  }
};

constexpr int64_t kBatch = 2;

const std::vector<PoolCase>& ImageCases() {
  static const auto* const cases = new std::vector<PoolCase>{
      {{1, 6, 7}, {1, 2, 2}, {1, 2, 2}, "VALID"},
      {{1, 6, 7}, {1, 3, 3}, {1, 2, 2}, "SAME"},
      {{1, 6, 7}, {1, 3, 2}, {1, 1, 1}, "SAME"},
      {{1, 9, 5}, {1, 2, 3}, {1, 3, 1}, "VALID"},
      {{1, 4, 4}, {1, 4, 4}, {1, 1, 1}, "VALID"},
      {{1, 5, 5}, {1, 1, 1}, {1, 3, 2}, "SAME"},
      {{1, 3, 4}, {1, 7, 9}, {1, 1, 2}, "SAME"},
      {{1, 9, 9}, {1, 8, 8}, {1, 1, 1}, "VALID"},
      {{1, 1, 1}, {1, 3, 3}, {1, 2, 2}, "SAME"},
      {{1, 2, 40}, {1, 2, 3}, {1, 1, 3}, "VALID"},
      // Windows with more rows than are combined at a time.
      {{1, 21, 3}, {1, 11, 2}, {1, 1, 1}, "SAME"},
  };
  return *cases;
}
const std::vector<PoolCase>& ExplicitCases() {
  static const auto* const cases = new std::vector<PoolCase>{
      {{1, 5, 6}, {1, 3, 3}, {1, 2, 2}, "EXPLICIT", {0, 0, 1, 1, 1, 1}},
      {{1, 5, 6}, {1, 4, 2}, {1, 1, 3}, "EXPLICIT", {0, 0, 3, 0, 0, 1}},
      {{1, 1, 2}, {1, 3, 3}, {1, 1, 1}, "EXPLICIT", {0, 0, 2, 2, 1, 0}},
  };
  return *cases;
}
const std::vector<PoolCase>& VolumeCases() {
  static const auto* const cases = new std::vector<PoolCase>{
      {{4, 5, 6}, {2, 2, 2}, {2, 2, 2}, "VALID"}, {{4, 5, 6}, {3, 2, 3}, {2, 1, 2}, "SAME"},
      {{3, 3, 3}, {3, 3, 3}, {1, 1, 1}, "SAME"},  {{2, 4, 3}, {1, 3, 1}, {1, 1, 2}, "VALID"},
      {{1, 4, 5}, {3, 2, 2}, {1, 2, 2}, "SAME"},
  };
  return *cases;
}

// Maps an element [batch, plane, row, column, channel] to its index in a tensor.
class Layout {
 public:
  Layout(Sizes sizes, int64_t depth, const std::string& format)
      : sizes_(sizes), depth_(depth), format_(format) {}
  TensorShape shape() const {
    const bool is_image = format_.size() == 4;
    TensorShape shape({kBatch});
    if (format_[1] == 'C') shape.AddDim(depth_);
    for (int d = is_image ? 1 : 0; d < 3; ++d) shape.AddDim(sizes_[d]);
    if (format_[1] != 'C') shape.AddDim(depth_);
    return shape;
  }
  int64_t size() const { return kBatch * sizes_[0] * sizes_[1] * sizes_[2] * depth_; }
  int64_t At(int64_t b, int64_t p, int64_t r, int64_t c, int64_t d) const {
    if (format_[1] == 'C') b = b * depth_ + d;
    const int64_t at = ((b * sizes_[0] + p) * sizes_[1] + r) * sizes_[2] + c;
    return format_[1] == 'C' ? at : at * depth_ + d;
  }

 private:
  Sizes sizes_;
  int64_t depth_;
  std::string format_;
};

// Calls window(o, elements) for each window, with the index of the output and the indices of the
// window's elements in order.
void ForEachWindow(
    const PoolCase& c, int64_t depth, const std::string& format,
    const std::function<void(int64_t o, const std::vector<int64_t>& elements)>& window) {
  const Sizes outs = {c.Out(0), c.Out(1), c.Out(2)};
  const Layout in(c.in, depth, format);
  const Layout out(outs, depth, format);
  for (int64_t b = 0; b < kBatch; ++b) {
    for (int64_t i = 0; i < outs[0] * outs[1] * outs[2] * depth; ++i) {
      const int64_t d = i % depth;
      const Sizes o = {i / depth / outs[2] / outs[1], i / depth / outs[2] % outs[1],
                       i / depth % outs[2]};
      std::vector<int64_t> elements;
      for (int64_t k = 0; k < c.size[0] * c.size[1] * c.size[2]; ++k) {
        const Sizes offset = {k / c.size[2] / c.size[1], k / c.size[2] % c.size[1], k % c.size[2]};
        Sizes at;
        bool inside = true;
        for (int s = 0; s < 3; ++s) {
          at[s] = o[s] * c.stride[s] - c.Before(s) + offset[s];
          inside = inside && at[s] >= 0 && at[s] < c.in[s];
        }
        if (inside) elements.push_back(in.At(b, at[0], at[1], at[2], d));
      }
      window(out.At(b, o[0], o[1], o[2], d), elements);
    }
  }
}

// Returns `sizes` as an attribute in the order of `format`.
std::vector<int64_t> Dims(const Sizes& sizes, const std::string& format) {
  std::vector<int64_t> dims = {1};
  const int first = format.size() == 5 ? 0 : 1;
  if (format[1] == 'C') dims.push_back(1);
  for (int d = first; d < 3; ++d) dims.push_back(sizes[d]);
  if (format[1] != 'C') dims.push_back(1);
  return dims;
}
OpTester PoolTester(const std::string& op, const PoolCase& c, const std::string& format) {
  OpTester tester(op);
  tester.Attr("padding", c.padding);
  if (op.find("Argmax") == std::string::npos) tester.Attr("data_format", format);
  if (c.padding == "EXPLICIT") {
    std::vector<int64_t> pads = {0, 0};
    if (format[1] == 'C') pads.insert(pads.end(), {0, 0});
    pads.insert(pads.end(), c.pads.begin() + 2, c.pads.end());
    if (format[1] != 'C') pads.insert(pads.end(), {0, 0});
    tester.Attr("explicit_paddings", pads);
  }
  if (op.find("V2") == std::string::npos) {
    tester.Attr("ksize", Dims(c.size, format)).Attr("strides", Dims(c.stride, format));
  }
  return tester;
}
// Adds the sizes as inputs.
void AddSizes(const PoolCase& c, const std::string& format, OpTester* tester) {
  for (const Sizes& sizes : {c.size, c.stride}) {
    std::vector<int32_t> values;
    for (const int64_t v : Dims(sizes, format)) values.push_back(static_cast<int32_t>(v));
    tester->Input(AsTensor<int32_t>(values));
  }
}
Sizes Outs(const PoolCase& c) { return {c.Out(0), c.Out(1), c.Out(2)}; }

const DataTypeVector& FloatTypes() {
  static const auto* const types = new DataTypeVector{DT_FLOAT, DT_DOUBLE, DT_HALF, DT_BFLOAT16};
  return *types;
}

void TestAvgPool(const PoolCase& c, int64_t depth, const std::string& format, DataType dtype) {
  SCOPED_TRACE(c.DebugString() + " " + format + " depth " + std::to_string(depth) + " of " +
               DataTypeString(dtype));
  const bool is_image = format.size() == 4;
  const Layout in(c.in, depth, format);
  const Layout out(Outs(c), depth, format);
  const Tensor x = RandomTensor(dtype, in.shape(), -2, 2, 1);
  const Tensor dy = RandomTensor(dtype, out.shape(), -2, 2, 2);
  const std::vector<double> xs = AsDoubles(x);
  const std::vector<double> dys = AsDoubles(dy);
  std::vector<double> y(out.size());
  std::vector<double> dx(in.size());
  ForEachWindow(c, depth, format, [&](int64_t o, const std::vector<int64_t>& elements) {
    for (const int64_t i : elements) {
      y[o] += xs[i] / static_cast<double>(elements.size());
      dx[i] += dys[o] / static_cast<double>(elements.size());
    }
  });
  const std::string op = is_image ? "AvgPool" : "AvgPool3D";
  EXPECT_THAT(PoolTester(op, c, format).Input(x).RunOne(),
              TensorNear(FromDoubles(dtype, out.shape(), y)));
  std::vector<int32_t> dims;
  const TensorShape in_shape = in.shape();
  for (const int64_t d : in_shape.dim_sizes()) dims.push_back(static_cast<int32_t>(d));
  const char* const grad_op = is_image ? "AvgPoolGrad" : "AvgPool3DGrad";
  EXPECT_THAT(PoolTester(grad_op, c, format).Input(AsTensor<int32_t>(dims)).Input(dy).RunOne(),
              TensorNear(FromDoubles(dtype, in.shape(), dx)));
}

TEST(AvgPool, AgreesWithItsDefinition) {
  for (const PoolCase& c : ImageCases()) {
    for (const DataType dtype : FloatTypes()) {
      for (const int64_t depth : {1, 3, 17}) TestAvgPool(c, depth, "NHWC", dtype);
      for (const int64_t depth : {1, 3}) TestAvgPool(c, depth, "NCHW", dtype);
    }
  }
  for (const PoolCase& c : VolumeCases()) {
    for (const DataType dtype : FloatTypes()) {
      for (const int64_t depth : {3, 17}) TestAvgPool(c, depth, "NDHWC", dtype);
      TestAvgPool(c, 2, "NCDHW", dtype);
    }
  }
}

// The error of a float sum would exceed the tolerance.
TEST(AvgPool, AccumulatesLargeWindowsInDouble) {
  const PoolCase c = {{1, 300, 300}, {1, 300, 300}, {1, 1, 1}, "VALID"};
  Tensor x(DT_FLOAT, {1, 300, 300, 1});
  x.flat<float>().setConstant(0.1f);
  EXPECT_THAT(PoolTester("AvgPool", c, "NHWC").Input(x).RunOne(),
              TensorEq(AsTensor<float>({0.1f}, {1, 1, 1, 1})));
}

// Expected results of max pooling. Values are small integers with ties.
struct MaxExpected {
  Tensor x, y, argmax, dy, dx, ddy, ddx;
};

MaxExpected MaxReference(const PoolCase& c, int64_t depth, const std::string& format,
                         DataType dtype) {
  const Layout in(c.in, depth, format);
  const Layout out(Outs(c), depth, format);
  const bool is_unsigned =
      dtype == DT_UINT8 || dtype == DT_UINT16 || dtype == DT_UINT32 || dtype == DT_UINT64;
  const auto random = [&](const TensorShape& shape, uint32_t seed) {
    const Tensor ints = RandomTensor(DT_INT32, shape, is_unsigned ? 0 : -3, 6, seed);
    return *OpTester("Cast").Input(ints).Attr("DstT", dtype).RunOne();
  };
  MaxExpected e;
  e.x = random(in.shape(), 1);
  e.dy = random(out.shape(), 2);
  e.ddx = random(in.shape(), 3);
  const std::vector<double> x = AsDoubles(e.x);
  const std::vector<double> dy = AsDoubles(e.dy);
  const std::vector<double> ddx = AsDoubles(e.ddx);
  std::vector<double> y(out.size());
  std::vector<double> dx(in.size());
  std::vector<double> ddy(out.size());
  std::vector<int64_t> argmax(out.size());
  const bool is_image = format.size() == 4;
  ForEachWindow(c, depth, format, [&](int64_t o, const std::vector<int64_t>& elements) {
    int64_t best = elements[0];
    for (const int64_t i : elements) {
      if (x[i] > x[best]) best = i;
    }
    y[o] = x[best];
    argmax[o] = best;
    ddy[o] = ddx[best];
    for (const int64_t i : elements) {
      // MaxPool3DGrad sends the gradient to all maxima.
      if (is_image ? i == best : x[i] == x[best]) dx[i] += dy[o];
    }
  });
  e.y = FromDoubles(dtype, out.shape(), y);
  e.dx = FromDoubles(dtype, in.shape(), dx);
  e.ddy = FromDoubles(dtype, out.shape(), ddy);
  e.argmax = AsTensor<int64_t>(argmax, out.shape());
  return e;
}

void TestMaxPool(const PoolCase& c, int64_t depth, const std::string& format, DataType dtype) {
  SCOPED_TRACE(c.DebugString() + " " + format + " depth " + std::to_string(depth) + " of " +
               DataTypeString(dtype));
  const MaxExpected e = MaxReference(c, depth, format, dtype);
  const bool has_forward = dtype != DT_UINT32 && dtype != DT_UINT64;
  if (has_forward) {
    EXPECT_THAT(PoolTester("MaxPool", c, format).Input(e.x).RunOne(), TensorEq(e.y));
  }
  EXPECT_THAT(PoolTester("MaxPoolGrad", c, format).Input(e.x).Input(e.y).Input(e.dy).RunOne(),
              TensorEq(e.dx));
  if (c.padding == "EXPLICIT") return;
  EXPECT_THAT(PoolTester("MaxPoolGradGrad", c, format).Input(e.x).Input(e.y).Input(e.ddx).RunOne(),
              TensorEq(e.ddy));
  if (has_forward) {
    OpTester forward = PoolTester("MaxPoolV2", c, format).Input(e.x);
    AddSizes(c, format, &forward);
    EXPECT_THAT(forward.RunOne(), TensorEq(e.y));
  }
  OpTester grad = PoolTester("MaxPoolGradV2", c, format).Input(e.x).Input(e.y).Input(e.dy);
  AddSizes(c, format, &grad);
  EXPECT_THAT(grad.RunOne(), TensorEq(e.dx));
  OpTester grad_grad =
      PoolTester("MaxPoolGradGradV2", c, format).Input(e.x).Input(e.y).Input(e.ddx);
  AddSizes(c, format, &grad_grad);
  EXPECT_THAT(grad_grad.RunOne(), TensorEq(e.ddy));
  if (format != "NHWC") return;
  const int64_t image = e.x.NumElements() / kBatch;
  for (const bool include_batch : {false, true}) {
    for (const DataType index : {DT_INT32, DT_INT64}) {
      Tensor argmax(index, e.argmax.shape());
      for (int64_t i = 0; i < argmax.NumElements(); ++i) {
        const int64_t at = e.argmax.flat<int64_t>()(i);
        const int64_t value = include_batch ? at : at % image;
        if (index == DT_INT64) {
          argmax.flat<int64_t>()(i) = value;
        } else {
          argmax.flat<int32_t>()(i) = static_cast<int32_t>(value);
        }
      }
      const auto tester = [&](const char* op) {
        return PoolTester(op, c, format).Attr("include_batch_in_index", include_batch);
      };
      const auto outputs = tester("MaxPoolWithArgmax").Input(e.x).Attr("Targmax", index).Run();
      ASSERT_TRUE(outputs.ok()) << outputs.status();
      EXPECT_THAT((*outputs)[0], TensorEq(e.y));
      EXPECT_THAT((*outputs)[1], TensorEq(argmax));
      EXPECT_THAT(tester("MaxPoolGradWithArgmax").Input(e.x).Input(e.dy).Input(argmax).RunOne(),
                  TensorEq(e.dx));
      EXPECT_THAT(
          tester("MaxPoolGradGradWithArgmax").Input(e.x).Input(e.ddx).Input(argmax).RunOne(),
          TensorEq(e.ddy));
    }
  }
}

TEST(MaxPool, AgreesWithItsDefinition) {
  for (const PoolCase& c : ImageCases()) {
    for (const DataType dtype : {DT_FLOAT, DT_HALF, DT_INT16}) {
      for (const int64_t depth : {1, 3, 17}) TestMaxPool(c, depth, "NHWC", dtype);
      for (const int64_t depth : {1, 3}) TestMaxPool(c, depth, "NCHW", dtype);
    }
  }
  for (const PoolCase& c : ExplicitCases()) {
    for (const int64_t depth : {1, 9, 17}) TestMaxPool(c, depth, "NHWC", DT_FLOAT);
    TestMaxPool(c, 17, "NHWC", DT_HALF);
    TestMaxPool(c, 2, "NCHW", DT_FLOAT);
  }
}

TEST(MaxPool, RunsForEveryType) {
  for (const PoolCase& c : {ImageCases()[1], ImageCases()[3]}) {
    ForEachType(RealTypes(), [&](auto tag) {
      const DataType dtype = DataTypeToEnum<typename decltype(tag)::type>::value;
      TestMaxPool(c, 5, "NHWC", dtype);
      TestMaxPool(c, 12, "NHWC", dtype);
    });
  }
}

TEST(MaxPool, PoolsVolumes) {
  for (const PoolCase& c : VolumeCases()) {
    for (const DataType dtype : {DT_FLOAT, DT_HALF, DT_BFLOAT16, DT_DOUBLE, DT_UINT8, DT_INT64}) {
      for (const char* const format : {"NDHWC", "NCDHW"}) {
        const int64_t depth = format[1] == 'D' && dtype != DT_INT64 ? 17 : 3;
        SCOPED_TRACE(c.DebugString() + " " + format + " of " + DataTypeString(dtype));
        const MaxExpected e = MaxReference(c, depth, format, dtype);
        EXPECT_THAT(
            PoolTester("MaxPool3DGradGrad", c, format).Input(e.x).Input(e.y).Input(e.ddx).RunOne(),
            TensorEq(e.ddy));
        if (dtype != DT_FLOAT && dtype != DT_HALF && dtype != DT_BFLOAT16) continue;
        EXPECT_THAT(PoolTester("MaxPool3D", c, format).Input(e.x).RunOne(), TensorEq(e.y));
        EXPECT_THAT(
            PoolTester("MaxPool3DGrad", c, format).Input(e.x).Input(e.y).Input(e.dy).RunOne(),
            TensorEq(e.dx));
      }
    }
  }
}

TEST(MaxPool, PoolsGroupsOfChannels) {
  // [batch, groups, rows, columns, 4] holds images of four channels for each group.
  const PoolCase c = {{1, 4, 6}, {1, 2, 3}, {1, 2, 1}, "SAME"};
  const Tensor x = RandomTensor(DT_INT8, {2, 3, 4, 6, 4}, -100, 100);
  Tensor groups(DT_INT8, {6, 4, 6, 4});
  ASSERT_TRUE(groups.CopyFrom(x, {6, 4, 6, 4}));
  const Tensor expected = *PoolTester("MaxPool", c, "NHWC").Input(groups).RunOne();
  const auto as = [](const Tensor& tensor, const TensorShape& shape) {
    Tensor quantized;
    EXPECT_TRUE(quantized.BitcastFrom(tensor, DT_QINT8, shape).ok());
    return quantized;
  };
  const auto y = PoolTester("MaxPool", c, "NCHW_VECT_C").Input(as(x, x.shape())).RunOne();
  EXPECT_THAT(y, TensorEq(as(expected, {2, 3, 2, 6, 4})));
}

TEST(MaxPool, PoolsAcrossChannels) {
  const Tensor x = AsTensor<float>({1, 5, 2, 4, 3, 6, 9, 8, 7, 0, -1, -2}, {1, 1, 2, 6});
  const auto tester = [](const char* format, std::vector<int64_t> size) {
    return OpTester("MaxPool")
        .Attr("ksize", size)
        .Attr("strides", size)
        .Attr("padding", "VALID")
        .Attr("data_format", format);
  };
  EXPECT_THAT(tester("NHWC", {1, 1, 1, 3}).Input(x).RunOne(),
              TensorEq(AsTensor<float>({5, 6, 9, 0}, {1, 1, 2, 2})));
  EXPECT_THAT(tester("NCHW", {1, 2, 1, 1}).Input(*x.Reshaped({1, 4, 1, 3})).RunOne(),
              TensorEq(AsTensor<float>({4, 5, 6, 9, 8, 7}, {1, 2, 1, 3})));
  EXPECT_THAT(tester("NHWC", {1, 1, 1, 4}).Input(x).Run(),
              StatusIs(absl::StatusCode::kUnimplemented,
                       ::testing::HasSubstr("windows of 4 channels do not divide the 6 channels")));
}

// As in TensorFlow, kernels refuse these windows.
TEST(MaxPool, GraphsMayHaveWindowsThatNoKernelSupports) {
  EXPECT_THAT(OpTester("MaxPool")
                  .Input(Tensor(DT_FLOAT, {5, 5, 5, 5}))
                  .Attr("ksize", {2, 2, 3, 4})
                  .Attr("strides", {1, 1, 1, 1})
                  .Attr("padding", "VALID")
                  .InferShapes(),
              IsOkAndHolds(::testing::ElementsAre(PartialTensorShape({5, 4, 3, 2}))));
}

TEST(MaxPool, HandlesInfinitiesAndNan) {
  // Tests pixels with one channel and with many.
  const auto pool = [](const std::vector<float>& values) {
    absl::StatusOr<Tensor> first;
    for (const int64_t depth : {1, 17}) {
      std::vector<float> pixels;
      for (const float value : values) pixels.insert(pixels.end(), depth, value);
      const auto y = OpTester("MaxPool")
                         .Input(AsTensor<float>(pixels, {1, 1, 3, depth}))
                         .Attr("ksize", {1, 1, 3, 1})
                         .Attr("strides", {1, 1, 1, 1})
                         .Attr("padding", "VALID")
                         .RunOne();
      if (depth == 1) first = y;
      EXPECT_THAT(y, IsOkAndHolds(TensorEq(AsTensor<float>(
                         std::vector<float>(depth, first->flat<float>()(0)), {1, 1, 1, depth}))));
    }
    return first;
  };
  for (const std::vector<float>& values :
       {std::vector<float>{kNan, 1, 2}, {1, kNan, 2}, {1, 2, kNan}}) {
    EXPECT_THAT(pool(values), TensorEq(AsTensor<float>({2}, {1, 1, 1, 1})));
  }
  EXPECT_THAT(pool({kNan, kNan, kNan}), TensorEq(AsTensor<float>({-kInf}, {1, 1, 1, 1})));
  EXPECT_THAT(pool({-kInf, -kInf, -kInf}), TensorEq(AsTensor<float>({-kInf}, {1, 1, 1, 1})));
  EXPECT_THAT(pool({1, kInf, 2}), TensorEq(AsTensor<float>({kInf}, {1, 1, 1, 1})));
}

TEST(Pool, HasTheSameBitsOnAllInstructionSets) {
  const Tensor x = RandomTensor(DT_FLOAT, {2, 9, 8, 19}, -1, 1, 1);
  const Tensor y = RandomTensor(DT_FLOAT, {2, 5, 4, 19}, -1, 1, 2);
  const PoolCase c = {{1, 9, 8}, {1, 3, 3}, {1, 2, 2}, "SAME"};
  const Tensor sizes = AsTensor<int32_t>({2, 9, 8, 19});
  EXPECT_THAT(PoolTester("MaxPool", c, "NHWC").Input(x).RunEverywhere(), IsOk());
  EXPECT_THAT(PoolTester("AvgPool", c, "NHWC").Input(x).RunEverywhere(), IsOk());
  EXPECT_THAT(PoolTester("MaxPoolGrad", c, "NHWC").Input(x).Input(y).Input(y).RunEverywhere(),
              IsOk());
  EXPECT_THAT(PoolTester("AvgPoolGrad", c, "NHWC").Input(sizes).Input(y).RunEverywhere(), IsOk());
  // Kernels reduce the rows of these windows before their columns.
  const PoolCase overlapping = {{1, 9, 8}, {1, 4, 4}, {1, 1, 1}, "SAME"};
  EXPECT_THAT(PoolTester("MaxPool", overlapping, "NHWC").Input(x).RunEverywhere(), IsOk());
  EXPECT_THAT(PoolTester("AvgPool", overlapping, "NHWC").Input(x).RunEverywhere(), IsOk());
}

// Returns the first `depth` channels.
Tensor FirstChannels(const Tensor& x, int64_t depth) {
  TensorShape shape = x.shape();
  const int64_t all = shape.dim_size(3);
  shape.set_dim(3, depth);
  Tensor channels(DT_FLOAT, shape);
  for (int64_t i = 0; i < channels.NumElements(); ++i) {
    channels.flat<float>()(i) = x.flat<float>()(i / depth * all + i % depth);
  }
  return channels;
}

// Expects the same bits for the first channels of `x` alone, which are computed one by one, and for
// all channels, which are computed in vectors.
void ExpectSameBitsOfFewChannels(const PoolCase& c, const Tensor& x) {
  constexpr int64_t kFew = 3;
  const int64_t depth = x.dim_size(3);
  SCOPED_TRACE(c.DebugString() + " depth " + std::to_string(depth));
  const Tensor dy = RandomTensor(DT_FLOAT, Layout(Outs(c), depth, "NHWC").shape(), -1, 1, 2);
  const auto test = [&](const char* op, const std::vector<Tensor>& inputs) {
    OpTester all = PoolTester(op, c, "NHWC");
    OpTester few = PoolTester(op, c, "NHWC");
    if (std::string(op) == "AvgPoolGrad") {
      std::vector<int32_t> sizes = {kBatch, static_cast<int32_t>(c.in[1]),
                                    static_cast<int32_t>(c.in[2]), static_cast<int32_t>(depth)};
      all.Input(AsTensor<int32_t>(sizes));
      sizes[3] = kFew;
      few.Input(AsTensor<int32_t>(sizes));
    }
    for (const Tensor& input : inputs) {
      all.Input(input);
      few.Input(FirstChannels(input, kFew));
    }
    const auto y = all.RunOne();
    const auto expected = few.RunOne();
    ASSERT_THAT(y, IsOk());
    ASSERT_THAT(expected, IsOk());
    EXPECT_EQ(FirstChannels(*y, kFew).tensor_data(), expected->tensor_data()) << op;
  };
  test("MaxPool", {x});
  test("MaxPoolGrad", {x, dy, dy});
  test("AvgPool", {x});
  test("AvgPoolGrad", {dy});
}

// Windows with little overlap are computed in one step, other windows in two. The last case reduces
// many rows.
TEST(Pool, HasTheSameBitsForAnyNumberOfChannels) {
  const Tensor x = RandomTensor(DT_FLOAT, {kBatch, 13, 12, 19}, -1, 1, 1);
  // Infinities are left out, because their sums may be NaN with either sign.
  const float values[] = {kNan, 0.0f, -0.0f, 1, -1};
  Tensor specials(DT_FLOAT, x.shape());
  const Tensor choice = RandomTensor(DT_INT32, x.shape(), 0, 4, 3);
  for (int64_t i = 0; i < specials.NumElements(); ++i) {
    specials.flat<float>()(i) = values[choice.flat<int32_t>()(i)];
  }
  for (const PoolCase& c : std::vector<PoolCase>{{{1, 13, 12}, {1, 3, 3}, {1, 2, 2}, "SAME"},
                                                 {{1, 13, 12}, {1, 4, 4}, {1, 1, 1}, "SAME"},
                                                 {{1, 13, 12}, {1, 11, 2}, {1, 1, 1}, "VALID"}}) {
    ExpectSameBitsOfFewChannels(c, x);
    ExpectSameBitsOfFewChannels(c, specials);
  }
}

// Kernels write these results with non-temporal stores. Pixels are whole cache lines, or not.
TEST(Pool, HasTheSameBitsForLargeImages) {
  for (const int64_t depth : {64, 65}) {
    const Tensor x = RandomTensor(DT_FLOAT, {kBatch, 160, 157, depth}, -1, 1, 1);
    ASSERT_GE(x.TotalBytes(), static_cast<size_t>(MinNonTemporalBytes()));
    ExpectSameBitsOfFewChannels({{1, 160, 157}, {1, 2, 2}, {1, 1, 1}, "SAME"}, x);
    ExpectSameBitsOfFewChannels({{1, 160, 157}, {1, 4, 4}, {1, 1, 1}, "SAME"}, x);
  }
}

TEST(Pool, RunsForManyRows) {
  const PoolCase c = {{1, 130, 120}, {1, 3, 3}, {1, 2, 2}, "SAME"};
  for (const char* const format : {"NHWC", "NCHW"}) {
    TestMaxPool(c, 16, format, DT_FLOAT);
    TestAvgPool(c, 16, format, DT_FLOAT);
  }
}

TEST(Pool, TakesEmptyTensors) {
  const PoolCase c = {{1, 3, 3}, {1, 2, 2}, {1, 1, 1}, "SAME"};
  for (const TensorShape& shape :
       {TensorShape({0, 3, 3, 2}), TensorShape({1, 0, 3, 2}), TensorShape({2, 3, 3, 0})}) {
    const Tensor x(DT_FLOAT, shape);
    EXPECT_THAT(PoolTester("AvgPool", c, "NHWC").Input(x).RunOne(), TensorEq(x));
    EXPECT_THAT(PoolTester("MaxPool", c, "NHWC").Input(x).RunOne(), TensorEq(x));
    EXPECT_THAT(PoolTester("MaxPoolGrad", c, "NHWC").Input(x).Input(x).Input(x).RunOne(),
                TensorEq(x));
    EXPECT_THAT(PoolTester("MaxPoolGradGrad", c, "NHWC").Input(x).Input(x).Input(x).RunOne(),
                TensorEq(x));
    EXPECT_THAT(PoolTester("MaxPoolWithArgmax", c, "NHWC").Input(x).Run(),
                StatusIs(kInvalidArgument, ::testing::HasSubstr("input must not be empty")));
  }
  // No window fits, but less than two strides are missing.
  const PoolCase large = {{1, 2, 2}, {1, 4, 4}, {1, 3, 3}, "VALID"};
  EXPECT_THAT(PoolTester("MaxPool", large, "NHWC").Input(Iota<float>({1, 2, 2, 1})).RunOne(),
              TensorEq(Tensor(DT_FLOAT, {1, 0, 0, 1})));
  EXPECT_THAT(PoolTester("AvgPoolGrad", large, "NHWC")
                  .Input<int32_t>({1, 2, 2, 1})
                  .Input(Tensor(DT_FLOAT, {1, 0, 0, 1}))
                  .RunOne(),
              TensorEq(AsTensor<float>({0, 0, 0, 0}, {1, 2, 2, 1})));
}

// Windows and strides of 2^31 - 1 columns. Only a few columns lie within the input.
TEST(Pool, WindowsMayBeLargerThanTheInput) {
  constexpr int64_t kLarge = (int64_t{1} << 31) - 1;
  const Tensor x = AsTensor<float>({5, 7, -3, 4}, {1, 1, 1, 4});
  const auto op = [&](const char* name) {
    return OpTester(name)
        .Attr("ksize", {1, 1, 1, kLarge})
        .Attr("strides", {1, 1, 1, kLarge})
        .Attr("padding", "EXPLICIT")
        .Attr("explicit_paddings", {0, 0, 0, 0, 0, 0, kLarge - 1, kLarge - 1})
        .Attr("data_format", "NCHW");
  };
  // The first window ends at the first element.
  const Tensor y = AsTensor<float>({5, 7}, {1, 1, 1, 2});
  EXPECT_THAT(op("MaxPool").Input(x).RunOne(), TensorEq(y));
  EXPECT_THAT(op("MaxPoolGrad").Input(x).Input(y).Input<float>({10, 100}, {1, 1, 1, 2}).RunOne(),
              TensorEq(AsTensor<float>({10, 100, 0, 0}, {1, 1, 1, 4})));
  // There are no rows, but each row has 2^31 - 1 windows.
  const Tensor none(DT_FLOAT, {1, 0, kLarge, 1});
  EXPECT_THAT(OpTester("MaxPoolGrad")
                  .Input<float>({5}, {1, 1, 1, 1})
                  .Input(none)
                  .Input(none)
                  .Attr("ksize", {1, 3, kLarge, 1})
                  .Attr("strides", {1, 2, 1, 1})
                  .Attr("padding", "EXPLICIT")
                  .Attr("explicit_paddings", {0, 0, 0, 0, kLarge - 1, kLarge - 1, 0, 0})
                  .RunOne(),
              TensorEq(AsTensor<float>({0}, {1, 1, 1, 1})));
}

// The maximum of a window is NaN if NaN comes first. Otherwise it is the largest number.
TEST(MaxPoolWithArgmax, HandlesNan) {
  struct Case {
    std::vector<float> pixels;
    int64_t argmax;
  };
  for (const Case& c : std::vector<Case>{{{kNan, 1, 2, 3}, 0},
                                         {{1, kNan, 2, kNan}, 2},
                                         {{1, 2, kNan, 0}, 1},
                                         {{-kInf, kNan, -kInf, kNan}, 0}}) {
    for (const int64_t depth : {1, 17}) {
      std::vector<float> pixels;
      for (const float value : c.pixels) pixels.insert(pixels.end(), depth, value);
      const auto outputs = OpTester("MaxPoolWithArgmax")
                               .Input(AsTensor<float>(pixels, {1, 2, 2, depth}))
                               .Attr("ksize", {1, 2, 2, 1})
                               .Attr("strides", {1, 2, 2, 1})
                               .Attr("padding", "VALID")
                               .Run();
      ASSERT_TRUE(outputs.ok()) << outputs.status();
      for (int64_t d = 0; d < depth; ++d) {
        EXPECT_EQ((*outputs)[1].flat<int64_t>()(d), c.argmax * depth + d);
        const float max = (*outputs)[0].flat<float>()(d);
        const float expected = c.pixels[c.argmax];
        EXPECT_TRUE(max == expected || (std::isnan(max) && std::isnan(expected))) << max;
      }
    }
  }
}

// The position after the last column exceeds int32.
TEST(MaxPoolWithArgmax, StrideMayBeLargerThanTheInput) {
  const auto outputs = OpTester("MaxPoolWithArgmax")
                           .Input<float>({1, 2, 3, 4, 5, 6}, {1, 2, 3, 1})
                           .Attr("ksize", {1, 1, 1, 1})
                           .Attr("strides", {1, 1, (int64_t{1} << 31) - 1, 1})
                           .Attr("padding", "VALID")
                           .Run();
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_THAT((*outputs)[0], TensorEq(AsTensor<float>({1, 4}, {1, 2, 1, 1})));
  EXPECT_THAT((*outputs)[1], TensorEq(AsTensor<int64_t>({0, 3}, {1, 2, 1, 1})));
}

TEST(MaxPoolWithArgmax, RejectsIndicesThatDoNotFit) {
  PoolGeometry g;
  g.batch = 3;
  g.depth = 2;
  g.in = {1, 1 << 15, (1 << 15) - 1};
  EXPECT_THAT(CheckArgmaxIndices(g, DT_INT32, false), IsOk());
  EXPECT_THAT(CheckArgmaxIndices(g, DT_INT64, true), IsOk());
  EXPECT_THAT(CheckArgmaxIndices(g, DT_INT32, true),
              StatusIs(kInvalidArgument,
                       "Targmax is int32, which cannot hold the indices of 6442254336 "
                       "elements"));
  g.in[2] += 1;
  EXPECT_THAT(CheckArgmaxIndices(g, DT_INT32, false), IsOk());
  g.depth = 3;
  EXPECT_THAT(CheckArgmaxIndices(g, DT_INT32, false),
              StatusIs(kInvalidArgument, ::testing::HasSubstr("the indices of 3221225472 elem")));
}

// Runs `op` on rows of equal elements, which takes much longer than the deadline. Returns the last
// element of the output, which is set last. inputs[i] is the value of the elements of input i.
float LastOfAStoppedRun(const std::string& op, int64_t columns, int64_t depth, int dims,
                        const std::vector<float>& inputs) {
  const PoolCase c = {{1, 1, columns}, {1, 1, columns}, {1, 1, 1}, "SAME"};
  TensorShape shape({1, 1, columns, depth});
  if (dims == 5) shape = TensorShape({1, 1, 1, columns, depth});
  OpTester tester = PoolTester(op, c, dims == 5 ? "NDHWC" : "NHWC");
  for (const float value : inputs) {
    Tensor input(DT_FLOAT, shape);
    input.flat<float>().setConstant(value);
    tester.Input(input);
  }
  StopToken stop(nullptr, nullptr, StopToken::Clock::now() + std::chrono::milliseconds(20));
  const auto outputs = tester.StoppedBy(&stop).RunOnThreads(1);
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  return (*outputs)[0].flat<float>()(columns * depth - 1);
}

TEST(Pool, StopsWithinARow) {
  constexpr int64_t kColumns = 400000;
  EXPECT_NE(LastOfAStoppedRun("MaxPool", kColumns, 16, 4, {3}), 3);
  EXPECT_NE(LastOfAStoppedRun("AvgPool", kColumns, 16, 4, {3}), 3);
}

TEST(Pool, GradientsStopWithinARow) {
  constexpr int64_t kColumns = 40000;
  // Half of the windows contain the last column.
  EXPECT_NE(LastOfAStoppedRun("MaxPool3DGrad", kColumns, 1, 5, {0, 0, 3}), 3 * (kColumns / 2 + 1));
  EXPECT_NE(LastOfAStoppedRun("MaxPoolGradGrad", kColumns, 1, 4, {0, 0, 7}), 7);
}

TEST(Pool, RejectsBadWindows) {
  constexpr int64_t kLarge = (int64_t{1} << 31) - 1;
  const Tensor x = Iota<float>({1, 4, 4, 2});
  const auto tester = [&](std::vector<int64_t> size, std::vector<int64_t> stride,
                          const char* padding = "VALID") {
    return OpTester("MaxPool")
        .Input(x)
        .Attr("ksize", size)
        .Attr("strides", stride)
        .Attr("padding", padding);
  };
  const std::vector<int64_t> ones = {1, 1, 1, 1};
  ExpectErrors({
      {"count", tester({1, 1, 1, 1, 1}, ones), "ksize must have 4 elements, but is [1,1,1,1,1]"},
      {"zero", tester({1, 0, 1, 1}, ones), "ksize must be positive and less than 2^31"},
      {"stride", tester(ones, {1, 1, -1, 1}), "strides must be positive and less than 2^31"},
      {"huge", tester({1, int64_t{1} << 40, 1, 1}, ones), "ksize must be positive and less than"},
      {"large", tester({1, 6, 1, 1}, ones),
       "the filter spans 6 elements, more than the 4 of the padded input"},
      {"pads", tester(ones, ones, "EXPLICIT"), "explicit_paddings must have 8 elements"},
      {"wide pads",
       tester({1, 2, 2, 1}, ones, "EXPLICIT").Attr("explicit_paddings", {0, 0, 2, 0, 0, 0, 0, 0}),
       "explicit_paddings must be nonnegative and less than ksize [1,2,2,1]"},
      {"useless pads",
       tester({1, 2, 2, 1}, ones).Attr("explicit_paddings", {0, 0, 1, 0, 0, 0, 0, 0}),
       "explicit_paddings must be empty if padding is VALID"},
      {"elements",
       OpTester("MaxPool")
           .Input(Tensor(DT_FLOAT, {0, INT64_MAX, 1, 1}))
           .Attr("ksize", {1, 2, 1, 1})
           .Attr("strides", ones)
           .Attr("padding", "SAME"),
       "a window of 2 elements of dilation 1 on 9223372036854775807 elements exceeds the limit"},
      {"only padding",
       OpTester("MaxPool")
           .Input(Tensor(DT_DOUBLE, {1, 0, int64_t{1} << 59, 2}))
           .Attr("ksize", {1, 2, 1, 1})
           .Attr("strides", {1, 1, kLarge, 1})
           .Attr("padding", "EXPLICIT")
           .Attr("explicit_paddings", {0, 0, 1, 1, 0, 0, 0, 0}),
       "dimension 1 has no elements: windows would have padding only"},
      {"rank",
       OpTester("MaxPool")
           .Input(Iota<float>({4, 4, 2}))
           .Attr("ksize", ones)
           .Attr("strides", ones)
           .Attr("padding", "SAME"),
       "Shape must be rank 4 but is rank 3: input has shape [4,4,2]"},
  });
  for (const auto& [size, stride, error] :
       std::vector<std::tuple<std::vector<int64_t>, std::vector<int64_t>, const char*>>{
           {{2, 1, 1, 1}, ones, "ksize is [2,1,1,1], but pooling across the batch is not"},
           {ones, {2, 1, 1, 1}, "strides is [2,1,1,1], but pooling across the batch is not"},
           {{1, 2, 1, 2},
            {1, 1, 1, 2},
            "ksize is [1,2,1,2], but pooling across both channels and positions is not supported"},
           {{1, 1, 1, 2}, ones, "ksize and strides are 2 and 1 for channels, expected the same"}}) {
    EXPECT_THAT(tester(size, stride).Run(),
                StatusIs(absl::StatusCode::kUnimplemented, ::testing::HasSubstr(error)));
  }
  EXPECT_THAT(
      OpTester("MaxPoolWithArgmax")
          .Input(Tensor(DT_FLOAT, {1, 2, 2, 4}))
          .Attr("ksize", {1, 1, 1, 2})
          .Attr("strides", {1, 1, 1, 2})
          .Attr("padding", "VALID")
          .Run(),
      StatusIs(absl::StatusCode::kUnimplemented,
               ::testing::HasSubstr("ksize[3] is 2, but positions of maxima across channels "
                                    "are not supported")));
  const PoolCase c = {{1, 4, 4}, {1, 2, 2}, {1, 2, 2}, "VALID"};
  const Tensor y = Iota<float>({1, 2, 2, 2});
  ExpectErrors({
      {"output", PoolTester("MaxPoolGrad", c, "NHWC").Input(x).Input(x).Input(y),
       "orig_output has shape [1,4,4,2], expected [1,2,2,2] (the shape of the pooled input)"},
      {"grad", PoolTester("MaxPoolGrad", c, "NHWC").Input(x).Input(y).Input(x),
       "grad has shape [1,4,4,2], expected [1,2,2,2] (the shape of the pooled input)"},
      {"grad grad", PoolTester("MaxPoolGradGrad", c, "NHWC").Input(x).Input(y).Input(y),
       "grad has shape [1,2,2,2], expected [1,4,4,2] (the shape of the input)"},
      {"average", PoolTester("AvgPoolGrad", c, "NHWC").Input<int32_t>({1, 4, 4, 2}).Input(x),
       "grad has shape [1,4,4,2], expected [1,2,2,2] (the shape of the pooled input)"},
      {"average shape", PoolTester("AvgPoolGrad", c, "NHWC").Input<int32_t>({1, -4, 4, 2}).Input(y),
       "-4"},
      {"argmax shape",
       PoolTester("MaxPoolGradWithArgmax", c, "NHWC").Input(x).Input(y).Input<int64_t>({1}),
       "argmax has shape [1], expected [1,2,2,2]"},
  });
  for (const int64_t index : {int64_t{-1}, int64_t{32}, int64_t{1} << 40}) {
    Tensor argmax(DT_INT64, y.shape());
    argmax.flat<int64_t>().setConstant(5);
    argmax.flat<int64_t>()(6) = index;
    for (const char* const op : {"MaxPoolGradWithArgmax", "MaxPoolGradGradWithArgmax"}) {
      const Tensor& grad = op[11] == 'W' ? y : x;
      EXPECT_THAT(PoolTester(op, c, "NHWC").Input(x).Input(grad).Input(argmax).Run(),
                  StatusIs(kInvalidArgument, "argmax[0,1,1,0] is " + std::to_string(index) +
                                                 ", expected an index of the image from 0 to 31"));
    }
  }
}

TEST(Pool, InfersShapes) {
  const PoolCase c = {{1, 4, 4}, {1, 2, 2}, {1, 2, 2}, "SAME"};
  EXPECT_THAT(PoolTester("MaxPool", c, "NHWC").UnknownInput(DT_FLOAT, {-1, 5, -1, 7}).InferShape(),
              ShapeIs("[?,3,?,7]"));
  EXPECT_THAT(PoolTester("AvgPool", c, "NCHW").UnknownInput(DT_FLOAT, {-1, 5, -1, 7}).InferShape(),
              ShapeIs("[?,5,?,4]"));
  EXPECT_THAT(PoolTester("MaxPoolV2", c, "NHWC")
                  .UnknownInput(DT_FLOAT, {3, 5, -1, 7})
                  .UnknownInput(DT_INT32)
                  .UnknownInput(DT_INT32)
                  .InferShape(),
              ShapeIs("[3,?,?,?]"));
  EXPECT_THAT(PoolTester("AvgPoolGrad", c, "NHWC")
                  .UnknownInput(DT_INT32)
                  .UnknownInput(DT_FLOAT)
                  .InferShape(),
              ShapeIs("[?,?,?,?]"));
  EXPECT_THAT(PoolTester("MaxPoolGradGrad", c, "NHWC")
                  .UnknownInput(DT_FLOAT)
                  .UnknownInput(DT_FLOAT, {1, -1, 2, 3})
                  .UnknownInput(DT_FLOAT)
                  .InferShape(),
              ShapeIs("[1,?,2,3]"));
}

// Random windows, paddings and layouts.
TEST(Pool, AgreesWithTheReferenceForRandomWindows) {
  std::mt19937 random(7);
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % n); };
  for (int round = 0; round < 300; ++round) {
    PoolCase c;
    for (int d = 0; d < 3; ++d) {
      c.in[d] = d == 0 ? 1 : 1 + below(12);
      c.size[d] = d == 0 ? 1 : 1 + below(5);
      c.stride[d] = d == 0 ? 1 : 1 + below(4);
    }
    c.padding = below(2) == 0 ? "SAME" : "VALID";
    if (c.padding == "VALID" && (c.size[1] > c.in[1] || c.size[2] > c.in[2])) continue;
    const char* const format = below(2) == 0 ? "NHWC" : "NCHW";
    // Few channels, or enough for vectors.
    const auto depth = [&] { return below(2) == 0 ? 1 + below(10) : 16 + below(20); };
    TestAvgPool(c, depth(), format, DT_FLOAT);
    const MaxExpected e = MaxReference(c, depth(), format, DT_FLOAT);
    EXPECT_THAT(PoolTester("MaxPool", c, format).Input(e.x).RunOne(), TensorEq(e.y));
    EXPECT_THAT(PoolTester("MaxPoolGrad", c, format).Input(e.x).Input(e.y).Input(e.dy).RunOne(),
                TensorEq(e.dx));
  }
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
