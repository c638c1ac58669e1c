#include <google/protobuf/text_format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gradflow/core/stop_token.h"
#include "gradflow/core/tensor_proto.h"
#include "gradflow/graph/scope.h"
#include "gradflow/ops/linalg/openmp.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/runtime/session/client_session.h"
#include "gradflow/runtime/session/session.h"
#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

// A convolution of images or volumes. With a `multiplier`, it is a depthwise convolution.
struct ConvCase {
  int spatial = 2;
  bool channels_last = true;
  // Output channels per input channel of a depthwise convolution; 0 for other convolutions.
  int64_t multiplier = 0;
  int64_t batch = 1;
  int64_t groups = 1;
  // Channels of one group.
  int64_t in_depth = 1;
  int64_t out_depth = 1;
  std::array<int64_t, 3> in = {1, 1, 1};
  std::array<int64_t, 3> filter = {1, 1, 1};
  std::array<int64_t, 3> stride = {1, 1, 1};
  std::array<int64_t, 3> dilation = {1, 1, 1};
  std::array<int64_t, 3> before = {};
  std::array<int64_t, 3> after = {};
  std::string padding = "VALID";

  int first() const { return 3 - spatial; }
  int64_t span(int s) const { return (filter[s] - 1) * dilation[s] + 1; }
  // The number of zeros before and after the input.
  std::array<int64_t, 2> pads(int s) const {
    if (padding != "SAME") return {before[s], after[s]};
    const int64_t pad = std::max<int64_t>(0, (out(s) - 1) * stride[s] + span(s) - in[s]);
    return {pad / 2, pad - pad / 2};
  }
  int64_t out(int s) const {
    if (padding == "SAME") return (in[s] + stride[s] - 1) / stride[s];
    const int64_t size = in[s] + before[s] + after[s];
    return size < span(s) ? 0 : (size - span(s)) / stride[s] + 1;
  }
  bool valid() const {
    for (int s = first(); s < 3; ++s) {
      if (padding != "SAME" && in[s] + before[s] + after[s] - span(s) <= -2 * stride[s])
        return false;
    }
    return true;
  }

  TensorShape Images(int64_t depth, const std::function<int64_t(int)>& size) const {
    TensorShape shape = {batch};
    if (!channels_last) shape.AddDim(depth);
    for (int s = first(); s < 3; ++s) shape.AddDim(size(s));
    if (channels_last) shape.AddDim(depth);
    return shape;
  }
  TensorShape input_shape() const {
    return Images(groups * in_depth, [this](int s) { return in[s]; });
  }
  TensorShape output_shape() const {
    return Images(groups * out_depth, [this](int s) { return out(s); });
  }
  TensorShape filter_shape() const {
    TensorShape shape;
    for (int s = first(); s < 3; ++s) shape.AddDim(filter[s]);
    shape.AddDim(multiplier > 0 ? groups : in_depth);
    shape.AddDim(multiplier > 0 ? multiplier : groups * out_depth);
    return shape;
  }

  // Returns one value per spatial dimension, and 1 for the batch and the channels.
  std::vector<int64_t> List(const std::array<int64_t, 3>& values) const {
    std::vector<int64_t> list = {1};
    if (!channels_last) list.push_back(1);
    list.insert(list.end(), values.begin() + first(), values.end());
    if (channels_last) list.push_back(1);
    return list;
  }
  std::string name() const {
    return multiplier > 0 ? "DepthwiseConv2dNative" : spatial == 2 ? "Conv2D" : "Conv3D";
  }
  std::string input_gradient() const {
    return multiplier > 0 ? "DepthwiseConv2dNativeBackpropInput"
           : spatial == 2 ? "Conv2DBackpropInput"
                          : "Conv3DBackpropInputV2";
  }
  std::string filter_gradient() const {
    return multiplier > 0 ? "DepthwiseConv2dNativeBackpropFilter"
           : spatial == 2 ? "Conv2DBackpropFilter"
                          : "Conv3DBackpropFilterV2";
  }
  OpTester Op(const std::string& op) const {
    OpTester tester(op);
    tester.Attr("strides", absl::MakeConstSpan(List(stride)));
    tester.Attr("dilations", absl::MakeConstSpan(List(dilation))).Attr("padding", padding);
    if (padding == "EXPLICIT") {
      std::vector<int64_t> paddings = {0, 0};
      if (!channels_last) paddings.insert(paddings.end(), {0, 0});
      for (int s = 1; s < 3; ++s) paddings.insert(paddings.end(), {before[s], after[s]});
      if (channels_last) paddings.insert(paddings.end(), {0, 0});
      tester.Attr("explicit_paddings", absl::MakeConstSpan(paddings));
    }
    if (op == "Conv3DBackpropInput" || op == "Conv3DBackpropFilter") return tester;
    const char* const formats[2][2] = {{"NCHW", "NCDHW"}, {"NHWC", "NDHWC"}};
    return tester.Attr("data_format", std::string(formats[channels_last][spatial - 2]));
  }
  std::string DebugString() const {
    return absl::StrCat(name(), " of ", input_shape().DebugString(), " by ",
                        filter_shape().DebugString(), " strides ", absl::StrJoin(stride, ","),
                        " dilations ", absl::StrJoin(dilation, ","), " ", padding, " ",
                        absl::StrJoin(before, ","), " ", absl::StrJoin(after, ","),
                        channels_last ? "" : " channels first");
  }

  // Calls fn(x, f, y) for each product of input element x and filter element f that is added to
  // output element y.
  template <typename F>
  void ForEachProduct(const F& fn) const {
    const int64_t ins = in[0] * in[1] * in[2];
    const int64_t outs = out(0) * out(1) * out(2);
    const auto at = [&](int64_t image, int64_t position, int64_t channel, int64_t volume,
                        int64_t depth) {
      return channels_last ? (image * volume + position) * depth + channel
                           : (image * depth + channel) * volume + position;
    };
    for (int64_t n = 0; n < batch; ++n) {
      for (int64_t p = 0; p < outs; ++p) {
        const int64_t position[3] = {p / (out(1) * out(2)), p / out(2) % out(1), p % out(2)};
        for (int64_t tap = 0; tap < filter[0] * filter[1] * filter[2]; ++tap) {
          const int64_t k[3] = {tap / (filter[1] * filter[2]), tap / filter[2] % filter[1],
                                tap % filter[2]};
          int64_t source = 0;
          bool inside = true;
          for (int s = 0; s < 3; ++s) {
            const int64_t i = position[s] * stride[s] + k[s] * dilation[s] - pads(s)[0];
            inside = inside && i >= 0 && i < in[s];
            source = source * in[s] + i;
          }
          if (!inside) continue;
          const int64_t x = at(n, source, 0, ins, groups * in_depth);
          const int64_t y = at(n, p, 0, outs, groups * out_depth);
          const int64_t x_step = channels_last ? 1 : ins;
          const int64_t y_step = channels_last ? 1 : outs;
          const int64_t f = tap * in_depth * groups * out_depth;
          for (int64_t o = 0; o < groups * out_depth; ++o) {
            const int64_t first = o / out_depth * in_depth;
            for (int64_t i = 0; i < in_depth; ++i) {
              fn(x + (first + i) * x_step, f + i * groups * out_depth + o, y + o * y_step);
            }
          }
        }
      }
    }
  }
};

ConvCase RandomConvCase(std::mt19937* random) {
  const auto number = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(*random);
  };
  ConvCase c;
  do {
    c = ConvCase();
    c.spatial = number(0, 3) == 0 ? 3 : 2;
    c.channels_last = number(0, 2) > 0;
    c.batch = number(0, 9) == 0 ? 0 : number(1, 3);
    c.groups = number(0, 2) == 0 ? number(2, 5) : 1;
    c.in_depth = number(0, 7) == 0 ? number(9, 40) : number(1, 6);
    c.out_depth = number(0, 7) == 0 ? number(9, 40) : number(1, 6);
    if (c.spatial == 2 && number(0, 3) == 0) {
      c.multiplier = number(0, 1) == 0 ? 1 : number(2, 3);
      c.groups = number(1, 20);
      c.in_depth = 1;
      c.out_depth = c.multiplier;
    }
    const char* const paddings[] = {"SAME", "VALID", "EXPLICIT"};
    c.padding = paddings[number(0, c.spatial == 2 ? 2 : 1)];
    for (int s = c.first(); s < 3; ++s) {
      c.in[s] = number(1, c.spatial == 2 ? 11 : 6);
      c.filter[s] = number(1, c.spatial == 2 ? 5 : 3);
      c.stride[s] = number(0, 1) == 0 ? 1 : number(1, 3);
      c.dilation[s] = number(0, 1) == 0 ? 1 : number(1, 3);
      if (c.padding == "EXPLICIT") {
        c.before[s] = number(0, 4);
        c.after[s] = number(0, 4);
      }
    }
  } while (!c.valid());
  return c;
}

// The results of the three passes in float64, for one input, filter and output gradient.
struct ConvResults {
  std::vector<double> output;
  std::vector<double> input_gradient;
  std::vector<double> filter_gradient;
};
ConvResults ConvReference(const ConvCase& c, const Tensor& input, const Tensor& filter,
                          const Tensor& dy) {
  const std::vector<double> inputs = AsDoubles(input);
  const std::vector<double> filters = AsDoubles(filter);
  const std::vector<double> gradients = AsDoubles(dy);
  ConvResults r;
  r.output.resize(gradients.size());
  r.input_gradient.resize(inputs.size());
  r.filter_gradient.resize(filters.size());
  // Plain pointers are faster in builds without optimization, where this loop dominates.
  const double* const x = inputs.data();
  const double* const f = filters.data();
  const double* const g = gradients.data();
  double* const y = r.output.data();
  double* const dx = r.input_gradient.data();
  double* const df = r.filter_gradient.data();
  c.ForEachProduct([&](int64_t i, int64_t j, int64_t k) {
    y[k] += x[i] * f[j];
    dx[i] += f[j] * g[k];
    df[j] += x[i] * g[k];
  });
  return r;
}

// int32 has no kernel for the filter gradient.
bool HasFilterGradient(DataType dtype) { return dtype != DT_INT32; }

// Compares the kernels of all passes with the reference, for each kernel label. If `thorough`,
// makes all checks of OpTester.
void CheckConv(const ConvCase& c, DataType dtype, const std::vector<std::string>& labels,
               bool thorough) {
  const double bound = dtype == DT_INT32 ? 5 : 1;
  const Tensor input = RandomTensor(dtype, c.input_shape(), -bound, bound, 1);
  const Tensor filter = RandomTensor(dtype, c.filter_shape(), -bound, bound, 2);
  const Tensor dy = RandomTensor(dtype, c.output_shape(), -bound, bound, 3);
  const ConvResults expected = ConvReference(c, input, filter, dy);
  const int64_t taps = c.filter[0] * c.filter[1] * c.filter[2];
  // `terms` is the number of products in a sum.
  const auto check = [&](const OpTester& op, const TensorShape& shape,
                         const std::vector<double>& values, int64_t terms) {
    double atol = 0;
    double rtol = 0;
    if (dtype != DT_INT32) {
      atol = dtype == DT_DOUBLE ? 1e-15 + 1e-16 * terms : 2e-6 + 1e-7 * terms;
      rtol = dtype == DT_DOUBLE ? 1e-15 : dtype == DT_FLOAT ? 2e-7 : dtype == DT_HALF ? 1e-3 : 8e-3;
    }
    const Tensor rounded = FromDoubles(dtype, shape, values);
    for (const std::string& label : labels) {
      SCOPED_TRACE(c.DebugString() + " of " + DataTypeString(dtype) + " " + label);
      OpTester labeled = op;
      if (!label.empty()) labeled.KernelLabel(label);
      const auto results = thorough ? labeled.Run() : labeled.RunOnThreads(1);
      ASSERT_TRUE(results.ok()) << results.status();
      EXPECT_THAT((*results)[0], TensorNear(rounded, atol, rtol));
    }
  };
  const auto sizes = [](const TensorShape& shape) {
    std::vector<int32_t> values(shape.dim_sizes().begin(), shape.dim_sizes().end());
    return AsTensor<int32_t>(values, {shape.dims()});
  };
  check(c.Op(c.name()).Input(input).Input(filter), dy.shape(), expected.output, taps * c.in_depth);
  if (dtype == DT_INT32 && c.name() != "Conv2D") return;
  check(c.Op(c.input_gradient()).Input(sizes(input.shape())).Input(filter).Input(dy), input.shape(),
        expected.input_gradient, taps * c.out_depth);
  if (!HasFilterGradient(dtype)) return;
  check(c.Op(c.filter_gradient()).Input(input).Input(sizes(filter.shape())).Input(dy),
        filter.shape(), expected.filter_gradient, c.batch * c.out(0) * c.out(1) * c.out(2));
}

TEST(Conv, AgreesWithTheReferenceInRandomCases) {
  std::mt19937 random(1);
  for (int i = 0; i < 2000 && !HasFailure(); ++i) {
    const ConvCase c = RandomConvCase(&random);
    const DataType dtypes[] = {DT_FLOAT, DT_FLOAT, DT_DOUBLE, DT_HALF, DT_BFLOAT16, DT_INT32};
    DataType dtype = dtypes[i % 6];
    if (dtype == DT_INT32 && c.name() != "Conv2D") dtype = DT_FLOAT;
    // The label "gemm" selects the kernels without oneDNN.
    std::vector<std::string> labels = {""};
    if (dtype == DT_FLOAT) labels.emplace_back("gemm");
    CheckConv(c, dtype, labels, i % 8 == 0);
  }
}

// Sizes that divide the work into blocks.
TEST(Conv, AgreesWithTheReferenceInLargeCases) {
  std::vector<ConvCase> cases(10);
  for (ConvCase& c : cases) c.padding = "SAME";
  // Many channels and a small image: blocks of channels.
  cases[0].batch = 2;
  cases[0].in_depth = 200;
  cases[0].out_depth = 210;
  cases[0].in = {1, 5, 6};
  cases[0].filter = {1, 3, 3};
  // Many rows.
  cases[1].in_depth = 3;
  cases[1].out_depth = 40;
  cases[1].in = {1, 80, 50};
  cases[1].filter = {1, 5, 5};
  cases[1].stride = {1, 2, 1};
  // Pointwise.
  cases[2].batch = 5;
  cases[2].in_depth = 130;
  cases[2].out_depth = 70;
  cases[2].in = {1, 14, 15};
  // Depthwise.
  cases[3].batch = 3;
  cases[3].multiplier = 1;
  cases[3].groups = 150;
  cases[3].in = {1, 20, 30};
  cases[3].filter = {1, 3, 3};
  cases[4] = cases[3];
  cases[4].multiplier = cases[4].out_depth = 2;
  cases[4].stride = {1, 2, 1};
  // Groups.
  cases[5].batch = 9;
  cases[5].groups = 4;
  cases[5].in_depth = 16;
  cases[5].out_depth = 32;
  cases[5].in = {1, 8, 9};
  cases[5].filter = {1, 3, 2};
  cases[5].dilation = {1, 2, 1};
  // Volumes.
  cases[6].spatial = 3;
  cases[6].batch = 2;
  cases[6].in_depth = 12;
  cases[6].out_depth = 20;
  cases[6].in = {7, 8, 9};
  cases[6].filter = {3, 3, 3};
  cases[6].stride = {2, 1, 2};
  // Channels first.
  cases[7] = cases[1];
  cases[7].channels_last = false;
  // The gradient of the filter is the sum of partial gradients, by images and by rows.
  cases[8].batch = 2;
  cases[8].in_depth = 8;
  cases[8].out_depth = 24;
  cases[8].in = {1, 90, 100};
  cases[8].filter = {1, 3, 3};
  // A 1x1 convolution whose rows are divided equally. oneDNN cannot use a filter packed for four
  // rows with five rows.
  cases[9].in_depth = 128;
  cases[9].out_depth = 512;
  cases[9].in = {1, 28, 28};
  for (const ConvCase& c : cases) {
    CheckConv(c, DT_FLOAT, {"", "gemm"}, true);
  }
  CheckConv(cases[0], DT_DOUBLE, {""}, true);
}

TEST(Conv, GradientsTakeTheShapeFromTensors) {
  for (const int spatial : {2, 3}) {
    ConvCase c;
    c.spatial = spatial;
    c.batch = 2;
    c.in_depth = 3;
    c.out_depth = 4;
    c.in = {spatial == 3 ? 4 : 1, 5, 6};
    c.filter = {spatial == 3 ? 2 : 1, 2, 3};
    c.padding = "SAME";
    const Tensor input = RandomTensor(DT_DOUBLE, c.input_shape(), -1, 1, 1);
    const Tensor filter = RandomTensor(DT_DOUBLE, c.filter_shape(), -1, 1, 2);
    const Tensor dy = RandomTensor(DT_DOUBLE, c.output_shape(), -1, 1, 3);
    const ConvResults expected = ConvReference(c, input, filter, dy);
    const char* const input_op = spatial == 2 ? "Conv2DBackpropInputV2" : "Conv3DBackpropInput";
    const char* const filter_op = spatial == 2 ? "Conv2DBackpropFilterV2" : "Conv3DBackpropFilter";
    EXPECT_THAT(c.Op(input_op).Input(input).Input(filter).Input(dy).RunOne(),
                TensorNear(FromDoubles(DT_DOUBLE, input.shape(), expected.input_gradient)));
    EXPECT_THAT(c.Op(filter_op).Input(input).Input(filter).Input(dy).RunOne(),
                TensorNear(FromDoubles(DT_DOUBLE, filter.shape(), expected.filter_gradient)));
  }
}

TEST(Conv, SizesMayContainOnlyTheImageSize) {
  EXPECT_THAT(OpTester("Conv2DBackpropInput")
                  .Input<int32_t>({2, 3})
                  .Input<float>({1, 2}, {1, 2, 1, 1})
                  .Input<float>({1, 10, 100, 1000}, {1, 2, 2, 1})
                  .Attr("strides", {1, 1, 1, 1})
                  .Attr("padding", "VALID")
                  .RunOne(),
              TensorEq(AsTensor<float>({1, 12, 20, 100, 1200, 2000}, {1, 2, 3, 1})));
}

TEST(Conv, SupportsBatchDimsAndGroups) {
  for (const int64_t batch_dims : {0, 1, 3}) {
    for (const bool volumes : {false, true}) {
      for (const bool channels_last : {true, false}) {
        ConvCase c;
        c.spatial = volumes ? 3 : 2;
        c.channels_last = channels_last;
        c.batch = batch_dims == 0 ? 1 : batch_dims == 1 ? 3 : 6;
        c.groups = 2;
        c.in_depth = 3;
        c.out_depth = 2;
        c.in = {volumes ? 3 : 1, 5, 4};
        c.filter = {volumes ? 2 : 1, 3, 2};
        c.stride = {1, 2, 1};
        c.padding = "SAME";
        SCOPED_TRACE(absl::StrCat(c.DebugString(), " batch_dims ", batch_dims));
        const Tensor input = RandomTensor(DT_DOUBLE, c.input_shape(), -1, 1, 1);
        const Tensor filter = RandomTensor(DT_DOUBLE, c.filter_shape(), -1, 1, 2);
        const Tensor dy(DT_DOUBLE, c.output_shape());
        const std::vector<double> expected =
            ConvReference(c, input, filter, RandomTensor(DT_DOUBLE, dy.shape())).output;
        const auto with_batch = [&](TensorShape shape) {
          shape.RemoveDim(0);
          if (batch_dims == 1) shape.InsertDim(0, 3);
          if (batch_dims == 3) {
            for (const int64_t size : {3, 1, 2}) shape.InsertDim(0, size);
          }
          return shape;
        };
        EXPECT_THAT(OpTester("Conv")
                        .Input(input.Reshaped(with_batch(input.shape())).value())
                        .Input(filter)
                        .Attr("strides", absl::MakeConstSpan(c.List(c.stride)))
                        .Attr("padding", "SAME")
                        .Attr("data_format", channels_last ? "CHANNELS_LAST" : "CHANNELS_FIRST")
                        .Attr("batch_dims", batch_dims)
                        .Attr("groups", int64_t{2})
                        .RunOne(),
                    TensorNear(FromDoubles(DT_DOUBLE, with_batch(dy.shape()), expected)));
      }
    }
  }
}

TEST(Conv, IntegersWrapAround) {
  EXPECT_THAT(OpTester("Conv2D")
                  .Input<int32_t>({1 << 30, 1 << 30}, {1, 1, 2, 1})
                  .Input<int32_t>({3, 2}, {1, 2, 1, 1})
                  .Attr("strides", {1, 1, 1, 1})
                  .Attr("padding", "VALID")
                  .RunOne(),
              TensorEq(AsTensor<int32_t>({1 << 30}, {1, 1, 1, 1})));
}

// If a VALID window does not fit, TensorFlow returns an empty output as long as less than two
// strides are missing.
TEST(Conv, TakesEmptyTensors) {
  const auto conv = [](const TensorShape& input, const TensorShape& filter) {
    return OpTester("Conv2D")
        .Input(Tensor(DT_FLOAT, input))
        .Input(RandomTensor(DT_FLOAT, filter))
        .Attr("strides", {1, 1, 1, 1})
        .Attr("padding", "VALID");
  };
  EXPECT_THAT(conv({0, 3, 3, 2}, {2, 2, 2, 5}).RunOne(), TensorEq(Tensor(DT_FLOAT, {0, 2, 2, 5})));
  EXPECT_THAT(conv({2, 2, 3, 2}, {3, 3, 2, 5}).RunOne(), TensorEq(Tensor(DT_FLOAT, {2, 0, 1, 5})));
  EXPECT_THAT(
      conv({2, 1, 3, 2}, {3, 3, 2, 5}).RunOne(),
      StatusIs(kInvalidArgument, HasSubstr("the filter spans 3 elements, more than the 1 ")));
  // Windows lie in the padding only.
  Tensor zeros(DT_FLOAT, {1, 2, 4, 1});
  zeros.flat<float>().setConstant(0);
  EXPECT_THAT(OpTester("Conv2D")
                  .Input(Tensor(DT_FLOAT, {1, 0, 2, 1}))
                  .Input<float>({1}, {1, 1, 1, 1})
                  .Attr("strides", {1, 1, 1, 1})
                  .Attr("padding", "EXPLICIT")
                  .Attr("explicit_paddings", {0, 0, 1, 1, 1, 1, 0, 0})
                  .RunOne(),
              TensorEq(zeros));
}

struct ConvError {
  const char* op;
  std::vector<Tensor> inputs;
  const char* attr;
  std::vector<int64_t> value;
  const char* text;
};

// A stride of 2^20 columns reaches beyond 2^31.
TEST(Conv, StridesMayReachBeyondInt32) {
  const auto conv = [](const char* label) {
    return OpTester("Conv2D")
        .Input(RandomTensor(DT_FLOAT, {1, 1, 1, 8}))
        .Input(RandomTensor(DT_FLOAT, {1, 1, 8, 8}))
        .Attr("strides", {1, 1, int64_t{1} << 20, 1})
        .Attr("padding", "EXPLICIT")
        .Attr("explicit_paddings", {0, 0, 0, 0, int64_t{1} << 30, (int64_t{1} << 31) - 1, 0, 0})
        .KernelLabel(label)
        .RunOne();
  };
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor expected, conv("gemm"));
  EXPECT_THAT(conv(""), TensorNear(expected));
}

// The input gradient is one block of positions and adds up the filter elements one by one.
TEST(Conv, StopsWithinABlock) {
  constexpr int64_t kFilter = 200;
  Tensor filter(DT_FLOAT, {kFilter, kFilter, 16, 16});
  Tensor dy(DT_FLOAT, {1, 32, 32, 16});
  filter.flat<float>().setConstant(1);
  dy.flat<float>().setConstant(1);
  StopToken stop(nullptr, nullptr, StopToken::Clock::now() + std::chrono::milliseconds(200));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> outputs,
                                OpTester("Conv2DBackpropInput")
                                    .Input<int32_t>({1, kFilter + 31, kFilter + 31, 16})
                                    .Input(filter)
                                    .Input(dy)
                                    .Attr("strides", {1, 1, 1, 1})
                                    .Attr("padding", "VALID")
                                    .KernelLabel("gemm")
                                    .StoppedBy(&stop)
                                    .RunOnThreads(1));
  EXPECT_NE(outputs[0].span<float>().back(), 16);
}

// Two rows are at most two oneDNN tasks, and each task runs longer than the deadline.
TEST(Conv, StopsWithinALargeTask) {
  Tensor x(DT_FLOAT, {1, 2, 8192, 16});
  Tensor filter(DT_FLOAT, {2, 8192, 16, 16});
  x.flat<float>().setConstant(1);
  filter.flat<float>().setConstant(1);
  StopToken stop(nullptr, nullptr, StopToken::Clock::now() + std::chrono::milliseconds(400));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> outputs,
                                OpTester("Conv2D")
                                    .Input(x)
                                    .Input(filter)
                                    .Attr("strides", {1, 1, 1, 1})
                                    .Attr("padding", "SAME")
                                    .StoppedBy(&stop)
                                    .RunOnThreads(1));
  // The last pixel of the first row is incomplete.
  EXPECT_NE(outputs[0].span<float>()[8191 * 16], 2 * 16 * 4096);
}

TEST(Conv, RejectsInvalidInputs) {
  const auto floats = [](const TensorShape& shape) { return RandomTensor(DT_FLOAT, shape); };
  const Tensor x = floats({1, 4, 4, 4});
  const Tensor f = floats({2, 2, 4, 2});
  const Tensor dy = floats({1, 3, 3, 2});
  const ConvError errors[] = {
      {"Conv2D",
       {floats({4, 4, 4}), f},
       nullptr,
       {},
       "Shape must be rank 4 but is rank 3: input has shape [4,4,4]"},
      {"Conv2D",
       {x, floats({2, 2, 4})},
       nullptr,
       {},
       "Shape must be rank 4 but is rank 3: filter has shape [2,2,4]"},
      {"Conv2D", {x, floats({2, 0, 4, 2})}, nullptr, {}, "expected no dimension of 0"},
      {"Conv2D",
       {x, floats({2, 2, 3, 2})},
       nullptr,
       {},
       "input has depth 4, expected a positive multiple of 3 (the depth of filter ["},
      {"Conv2D",
       {x, floats({2, 2, 2, 3})},
       nullptr,
       {},
       "filter has output depth 3, expected a multiple of 2 (the groups)"},
      {"Conv2D", {x, f}, "strides", {1, 1, 1}, "strides must have 4 elements, 1 for the batch"},
      {"Conv2D", {x, f}, "strides", {2, 1, 1, 1}, "but is [2,1,1,1]"},
      {"Conv2D", {x, f}, "strides", {1, 1, 1, 2}, "but is [1,1,1,2]"},
      {"Conv2D", {x, f}, "strides", {1, 0, 1, 1}, "strides[1] is 0, expected 1 to 2147483647"},
      {"Conv2D", {x, f}, "dilations", {1, 1, -1, 1}, "dilations[2] is -1, expected 1 to"},
      {"Conv2D", {x, f}, "dilations", {1, 1, int64_t{1} << 31, 1}, "dilations[2] is 2147483648"},
      {"Conv2D",
       {x, f},
       "explicit_paddings",
       {0, 0, 1, 1, 1, 1, 0, 0},
       "explicit_paddings must be empty if padding is VALID, but is [0,0,1,1,1,1,0,0]"},
      {"DepthwiseConv2dNative",
       {x, floats({2, 2, 3, 2})},
       nullptr,
       {},
       "input has depth 4, expected 3 (dimension 2 of filter ["},
      {"Conv2DBackpropInput",
       {AsTensor<int32_t>({1, 4, 4}), f, dy},
       nullptr,
       {},
       "input_sizes has 3 elements, expected 4, or 2 for rows and columns"},
      {"Conv2DBackpropInput",
       {AsTensor<int32_t>({1, 4, -4, 4}), f, dy},
       nullptr,
       {},
       "input_sizes[2] is -4, expected at least 0"},
      {"Conv2DBackpropInput",
       {AsTensor<int32_t>({4}, {1, 1}), f, dy},
       nullptr,
       {},
       "Shape must be rank 1 but is rank 2: input_sizes has shape [1,1]"},
      {"Conv2DBackpropInput",
       {AsTensor<int32_t>({1, 5, 4, 4}), f, dy},
       nullptr,
       {},
       "out_backprop has shape [1,3,3,2], expected [1,4,3,2] (the output of the convolution)"},
      {"Conv2DBackpropInput",
       {AsTensor<int32_t>({1, 4, 4, 4}), f, floats({3, 3, 2})},
       nullptr,
       {},
       "Shape must be rank 4 but is rank 3: out_backprop has shape [3,3,2]"},
      {"Conv2DBackpropFilter",
       {x, AsTensor<int32_t>({2, 2, 4}), dy},
       nullptr,
       {},
       "filter_sizes has 3 elements, expected 4"},
      {"Conv2DBackpropFilter",
       {x, AsTensor<int32_t>({2, 2, -4, 2}), dy},
       nullptr,
       {},
       "filter_sizes[2] is -4, expected at least 0"},
      {"Conv2DBackpropFilter",
       {x, AsTensor<int32_t>({2, 2, 4, 3}), dy},
       nullptr,
       {},
       "out_backprop has shape [1,3,3,2], expected [1,3,3,3] (the output of the convolution)"},
      {"DepthwiseConv2dNativeBackpropInput",
       {AsTensor<int32_t>({4, 4}), f, dy},
       nullptr,
       {},
       "input_sizes has 2 elements, expected 4"},
  };
  for (const ConvError& error : errors) {
    SCOPED_TRACE(absl::StrCat(error.op, ": ", error.text));
    OpTester op(error.op);
    op.Inputs(error.inputs).Attr("padding", "VALID");
    if (error.attr == nullptr || error.attr != std::string("strides")) {
      op.Attr("strides", {1, 1, 1, 1});
    }
    if (error.attr != nullptr) op.Attr(error.attr, absl::MakeConstSpan(error.value));
    EXPECT_THAT(op.RunOne(), StatusIs(kInvalidArgument, HasSubstr(error.text)));
  }
}

TEST(Conv, RejectsInvalidPaddingsAndGroups) {
  const auto conv = [](const char* padding, std::vector<int64_t> paddings, int64_t groups,
                       int64_t batch_dims) {
    return OpTester("Conv")
        .Input(RandomTensor(DT_FLOAT, {1, 4, 4, 4}))
        .Input(RandomTensor(DT_FLOAT, {2, 2, 2, 2}))
        .Attr("strides", {1, 1, 1, 1})
        .Attr("padding", padding)
        .Attr("explicit_paddings", absl::MakeConstSpan(paddings))
        .Attr("groups", groups)
        .Attr("batch_dims", batch_dims)
        .RunOne();
  };
  EXPECT_THAT(conv("EXPLICIT", {0, 0, 1, 1}, 2, 1),
              StatusIs(kInvalidArgument, HasSubstr("explicit_paddings must have 8 elements")));
  EXPECT_THAT(conv("EXPLICIT", {0, 1, 1, 1, 1, 1, 0, 0}, 2, 1),
              StatusIs(kInvalidArgument, HasSubstr("0 for the batch and the depth")));
  EXPECT_THAT(conv("EXPLICIT", {0, 0, 1, 1, -1, 1, 0, 0}, 2, 1),
              StatusIs(kInvalidArgument, HasSubstr("explicit_paddings[4] is -1, expected 0 to")));
  EXPECT_THAT(conv("SAME", {}, 1, 1),
              StatusIs(kInvalidArgument, HasSubstr("groups is 1, expected 2, as input has depth")));
  EXPECT_THAT(conv("SAME", {}, 0, 1),
              StatusIs(kInvalidArgument, HasSubstr("groups is 0, expected 1 at least")));
  EXPECT_THAT(conv("SAME", {}, 2, -1),
              StatusIs(kInvalidArgument, HasSubstr("batch_dims is -1, expected 0 to 251")));
  EXPECT_THAT(conv("SAME", {}, 2, 2),
              StatusIs(kInvalidArgument,
                       HasSubstr("Shape must be rank 5 but is rank 4: input has shape [1,4,4,4]")));
}

// The number of groups follows from the shapes. A kernel must not reuse data that it kept for
// another number.
TEST(Conv, RunsOfOneSessionMayDifferInGroups) {
  const Scope s = Scope::NewRootScope();
  const auto x = ops::Placeholder(s, DT_FLOAT);
  const auto f = ops::Placeholder(s, DT_FLOAT);
  const auto dy = ops::Placeholder(s, DT_FLOAT);
  const auto x_sizes = ops::Placeholder(s, DT_INT32);
  const auto f_sizes = ops::Placeholder(s, DT_INT32);
  const std::vector<int> ones = {1, 1, 1, 1};
  const std::vector<Output> outputs = {
      ops::Conv2D(s, x, f, ones, "SAME"),
      ops::Conv2DBackpropInput(s, x_sizes, f, dy, ones, "SAME"),
      ops::Conv2DBackpropFilter(s, x, f_sizes, dy, ones, "SAME"),
  };
  const Tensor x_value = RandomTensor(DT_FLOAT, {1, 14, 14, 8}, Distribution(), 1);
  const Tensor dy_value = RandomTensor(DT_FLOAT, {1, 14, 14, 16}, Distribution(), 2);
  ClientSession session(s);
  for (const int32_t depth : {8, 4, 2, 8}) {
    const ClientSession::FeedType feeds = {
        {x, x_value},
        {f, RandomTensor(DT_FLOAT, {3, 3, depth, 16}, Distribution(), 3)},
        {dy, dy_value},
        {x_sizes, AsTensor<int32_t>({1, 14, 14, 8})},
        {f_sizes, AsTensor<int32_t>({3, 3, depth, 16})},
    };
    std::vector<Tensor> values;
    std::vector<Tensor> expected;
    GRADFLOW_ASSERT_OK(session.Run(feeds, outputs, &values));
    GRADFLOW_ASSERT_OK(ClientSession(s).Run(feeds, outputs, &expected));
    for (size_t i = 0; i < outputs.size(); ++i) {
      EXPECT_THAT(values[i], TensorEq(expected[i])) << "depth " << depth << ", output " << i;
    }
  }
}

TEST(Conv, InfersShapesFromPartlyKnownInputs) {
  const auto infer = [](const char* padding, const PartialTensorShape& input,
                        const PartialTensorShape& filter) {
    return OpTester("Conv2D")
        .UnknownInput(DT_FLOAT, input)
        .UnknownInput(DT_FLOAT, filter)
        .Attr("strides", {1, 2, 3, 1})
        .Attr("padding", padding)
        .InferShape();
  };
  EXPECT_THAT(infer("SAME", {-1, 9, -1, 2}, {3, 3, 2, 5}), IsOkAndHolds(ShapeIs("[?,5,?,5]")));
  EXPECT_THAT(infer("SAME", {4, 9, 9, 2}, {-1, -1, 2, -1}), IsOkAndHolds(ShapeIs("[4,5,3,?]")));
  EXPECT_THAT(infer("VALID", {4, 9, 9, 2}, {-1, 3, 2, 5}), IsOkAndHolds(ShapeIs("[4,?,3,5]")));
  EXPECT_THAT(infer("VALID", PartialTensorShape(), {3, 3, 2, 5}),
              IsOkAndHolds(ShapeIs("[?,?,?,5]")));
  EXPECT_THAT(infer("VALID", {4, 9, 9, 2}, PartialTensorShape()),
              IsOkAndHolds(ShapeIs("[4,?,?,?]")));
  EXPECT_THAT(infer("VALID", {4, 9, int64_t{1} << 61, 2}, {3, 3, 2, 5}),
              StatusIs(kInvalidArgument, HasSubstr("exceeds the limit of 2^60")));
  const auto gradient = OpTester("Conv2DBackpropInput")
                            .UnknownInput(DT_INT32)
                            .UnknownInput(DT_FLOAT)
                            .UnknownInput(DT_FLOAT, {7, 2, 2, -1})
                            .Attr("strides", {1, 1, 1, 1})
                            .Attr("padding", "SAME")
                            .InferShape();
  EXPECT_THAT(gradient, IsOkAndHolds(ShapeIs("[7,?,?,?]")));
}

TEST(Conv, RestoresTheNumberOfOpenMpThreads) {
  const int threads = OpenMpThreads();
  if (threads == 0) GTEST_SKIP() << "no OpenMP";
  SetOpenMpThreads(3);
  EXPECT_THAT(OpTester("Conv2D")
                  .Input(RandomTensor(DT_FLOAT, {2, 20, 20, 8}))
                  .Input(RandomTensor(DT_FLOAT, {3, 3, 8, 16}))
                  .Attr("strides", {1, 1, 1, 1})
                  .Attr("padding", "SAME")
                  .RunOnThreads(1),
              IsOk());
  EXPECT_EQ(OpenMpThreads(), 3);
  SetOpenMpThreads(threads);
}

// ---- Constant filters, which kernels keep in the layout of oneDNN ----

constexpr char kConvGraph[] = R"(
node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } }
node { name: 'f' op: 'Const' attr { key: 'dtype' value { type: DT_FLOAT } } }
node { name: 'y' op: 'Conv2D' input: 'x' input: 'f'
       attr { key: 'T' value { type: DT_FLOAT } }
       attr { key: 'strides' value { list { i: 1 i: 1 i: 1 i: 1 } } }
       attr { key: 'padding' value { s: 'SAME' } } })";

TEST(Conv, UsesTheFilterOfEachRun) {
  const Tensor x = RandomTensor(DT_FLOAT, {2, 9, 8, 20}, -1, 1, 1);
  const Tensor f = RandomTensor(DT_FLOAT, {3, 3, 20, 30}, -1, 1, 2);
  Tensor fed = RandomTensor(DT_FLOAT, {3, 3, 20, 30}, -1, 1, 3);
  const auto conv = [&](const Tensor& filter) {
    return OpTester("Conv2D")
        .Input(x)
        .Input(filter)
        .Attr("strides", {1, 1, 1, 1})
        .Attr("padding", "SAME")
        .RunOne();
  };
  GraphDef graph;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(kConvGraph, &graph));
  f.AsProtoTensorContent((*graph.mutable_node(1)->mutable_attr())["value"].mutable_tensor());
  SessionOptions options;
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session, Session::Make(options));
  GRADFLOW_ASSERT_OK(session->Create(graph));
  const auto run = [&](const std::vector<std::pair<std::string, Tensor>>& feeds) {
    std::vector<Tensor> outputs;
    EXPECT_THAT(session->Run(feeds, {"y"}, {}, &outputs), IsOk());
    return outputs.empty() ? Tensor() : outputs[0];
  };
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(conv(f), IsOkAndHolds(TensorEq(run({{"x", x}}))));
    // A fed filter may have new elements in the same memory.
    EXPECT_THAT(conv(fed), IsOkAndHolds(TensorEq(run({{"x", x}, {"f", fed}}))));
    fed.flat<float>()(7) += 1;
  }
  // Another shape may need another layout of the filter.
  run({{"x", RandomTensor(DT_FLOAT, {1, 30, 31, 20}, -1, 1, 1)}});
  std::vector<std::thread> threads;
  std::vector<Tensor> results(4);
  for (Tensor& result : results) threads.emplace_back([&] { result = run({{"x", x}}); });
  for (std::thread& thread : threads) thread.join();
  for (const Tensor& result : results) {
    EXPECT_THAT(conv(f), IsOkAndHolds(TensorEq(result)));
  }
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
