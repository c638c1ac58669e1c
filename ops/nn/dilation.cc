// Dilation2D, the grayscale morphological dilation, and its gradients.
//
// Each output is the largest sum of an input element and a filter element in its window. If several
// sums are equal, the gradient goes to the first one, as in TensorFlow.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/core/shape_context.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/data_types.h"
#include "gradflow/ops/common/input_checks.h"
#include "gradflow/ops/common/strided_copy.h"
#include "gradflow/ops/nn/conv_geometry.h"

namespace gradflow::dilation {
namespace {

struct DilationAttrs {
  int64_t stride[2] = {1, 1};
  int64_t rate[2] = {1, 1};
  WindowPadding padding = WindowPadding::kValid;
};

template <typename Source>
absl::Status ReadSizes(const Source& source, const char* name, int64_t* sizes) {
  std::vector<int64_t> values;
  GRADFLOW_RETURN_IF_ERROR(source.GetAttr(name, &values));
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  if (values.size() != 4 || values[0] != 1 || values[3] != 1) {
    return errors::InvalidArgument(name, " must have 4 elements, the first and last 1, but is [",
                                   absl::StrJoin(values, ","), "]");
  }
  for (size_t d = 1; d < 3; ++d) {
    if (values[d] < 1 || values[d] > kMax) {
      return errors::InvalidArgument(name, "[", d, "] is ", values[d], ", expected 1 to ", kMax);
    }
    sizes[d - 1] = values[d];
  }
  return absl::OkStatus();
}

// Reads the attributes. Source is KernelConstruction or ShapeContext.
template <typename Source>
absl::Status ReadAttrs(const Source& source, DilationAttrs* attrs) {
  GRADFLOW_RETURN_IF_ERROR(ReadSizes(source, "strides", attrs->stride));
  GRADFLOW_RETURN_IF_ERROR(ReadSizes(source, "rates", attrs->rate));
  std::string padding;
  GRADFLOW_RETURN_IF_ERROR(source.GetAttr("padding", &padding));
  attrs->padding = padding == "SAME" ? WindowPadding::kSame : WindowPadding::kValid;
  return absl::OkStatus();
}

// Sets the shape of the output if it is known, and the padding before the first row and column.
absl::Status InferOutput(const DilationAttrs& attrs, const PartialTensorShape& input,
                         const PartialTensorShape& filter, PartialTensorShape* output,
                         int64_t* pad) {
  GRADFLOW_RETURN_IF_ERROR(CheckRank("input", input, 4));
  GRADFLOW_RETURN_IF_ERROR(CheckRank("filter", filter, 3));
  *output = input.unknown_rank() ? PartialTensorShape::UnknownOfRank(4) : input;
  if (!input.unknown_rank() && !filter.unknown_rank() && input.dim_size(3) >= 0 &&
      filter.dim_size(2) >= 0 && input.dim_size(3) != filter.dim_size(2)) {
    return errors::InvalidArgument("filter has depth ", filter.dim_size(2), ", expected ",
                                   input.dim_size(3), " (the depth of input ", input.DebugString(),
                                   ")");
  }
  if (output->dim_size(3) < 0 && !filter.unknown_rank()) output->set_dim(3, filter.dim_size(2));
  for (int d = 0; d < 2; ++d) {
    const int64_t window = filter.unknown_rank() ? -1 : filter.dim_size(d);
    if (window == 0) {
      return errors::InvalidArgument("filter has shape ", filter.DebugString(),
                                     ", expected rows and columns");
    }
    GRADFLOW_ASSIGN_OR_RETURN(const int64_t size,
                              WindowedSize(output->dim_size(d + 1), window, attrs.stride[d],
                                           attrs.rate[d], attrs.padding, &pad[d], 0));
    output->set_dim(d + 1, size);
  }
  return PartialTensorShape::Make(output->dim_sizes()).status();
}

absl::Status InferGradient(const DilationAttrs& attrs, const PartialTensorShape& input,
                           const PartialTensorShape& filter, const PartialTensorShape& out_backprop,
                           int64_t* pad) {
  PartialTensorShape output;
  GRADFLOW_RETURN_IF_ERROR(InferOutput(attrs, input, filter, &output, pad));
  if (output.IsCompatibleWith(out_backprop)) return absl::OkStatus();
  return ShapeError("out_backprop", out_backprop, output, "the output of Dilation2D");
}

absl::Status DilationShape(ShapeContext& c) {
  DilationAttrs attrs;
  GRADFLOW_RETURN_IF_ERROR(ReadAttrs(c, &attrs));
  PartialTensorShape output;
  int64_t pad[2];
  GRADFLOW_RETURN_IF_ERROR(InferOutput(attrs, c.input(0), c.input(1), &output, pad));
  c.set_output(0, output);
  return absl::OkStatus();
}

// The output has the shape of input `Like`, which has rank `Rank`.
template <int Like, int Rank>
absl::Status GradientShape(ShapeContext& c) {
  DilationAttrs attrs;
  GRADFLOW_RETURN_IF_ERROR(ReadAttrs(c, &attrs));
  int64_t pad[2];
  GRADFLOW_RETURN_IF_ERROR(InferGradient(attrs, c.input(0), c.input(1), c.input(2), pad));
  const PartialTensorShape& like = c.input(Like);
  c.set_output(0, like.unknown_rank() ? PartialTensorShape::UnknownOfRank(Rank) : like);
  return absl::OkStatus();
}

// x + y, rounded to T. Integers wrap around.
template <typename T>
T Add(T x, T y) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(x) + static_cast<uint64_t>(y));
  } else if constexpr (sizeof(T) == 2) {
    return static_cast<T>(static_cast<float>(x) + static_cast<float>(y));
  } else {
    return x + y;
  }
}

template <typename T>
bool Greater(T x, T y) {
  if constexpr (std::is_arithmetic_v<T>) {
    return x > y;
  } else {
    return static_cast<float>(x) > static_cast<float>(y);
  }
}

template <typename T>
T Lowest() {
  if constexpr (std::is_arithmetic_v<T>) {
    return std::numeric_limits<T>::lowest();
  } else if constexpr (std::is_same_v<T, half>) {
    return static_cast<T>(-65504.0f);
  } else {
    return static_cast<T>(-3.3895314e38f);
  }
}

enum class Pass { kForward, kInputGradient, kFilterGradient };

struct Problem {
  int64_t batch;
  int64_t in[2];
  int64_t out[2];
  int64_t filter[2];
  int64_t depth;
  int64_t pad[2];
  DilationAttrs attrs;
};

// The largest sum of a window, for each channel.
template <typename T>
struct Maxima {
  std::vector<T> value;
  // The indices of the input and filter positions of the largest sum. If no sum is larger than the
  // lowest number, `input` is the position where the window begins within the input, or -1 if the
  // window is outside of the input, and `filter` is 0.
  std::vector<int64_t> input;
  std::vector<int64_t> filter;

  explicit Maxima(int64_t depth)
      : value(static_cast<size_t>(depth)),
        input(static_cast<size_t>(depth)),
        filter(static_cast<size_t>(depth)) {}
};

// Finds the maxima of channels [begin, begin + n) of the window at (image, row, column).
template <typename T>
void FindMaxima(const Problem& p, const T* x, const T* f, int64_t image, int64_t row,
                int64_t column, int64_t begin, int64_t n, Maxima<T>* maxima) {
  const int64_t top = row * p.attrs.stride[0] - p.pad[0];
  const int64_t left = column * p.attrs.stride[1] - p.pad[1];
  std::fill_n(maxima->value.data(), n, Lowest<T>());
  const int64_t first_row = std::max<int64_t>(top, 0);
  const int64_t first_column = std::max<int64_t>(left, 0);
  const bool inside = first_row < p.in[0] && first_column < p.in[1];
  std::fill_n(maxima->input.data(), n,
              inside ? (image * p.in[0] + first_row) * p.in[1] + first_column : -1);
  std::fill_n(maxima->filter.data(), n, 0);
  for (int64_t h = 0; h < p.filter[0]; ++h) {
    const int64_t i = top + h * p.attrs.rate[0];
    if (i < 0 || i >= p.in[0]) continue;
    for (int64_t w = 0; w < p.filter[1]; ++w) {
      const int64_t j = left + w * p.attrs.rate[1];
      if (j < 0 || j >= p.in[1]) continue;
      const int64_t from = (image * p.in[0] + i) * p.in[1] + j;
      const int64_t tap = h * p.filter[1] + w;
      const T* const inputs = x + from * p.depth + begin;
      const T* const filters = f + tap * p.depth + begin;
      for (int64_t c = 0; c < n; ++c) {
        const T sum = Add(inputs[c], filters[c]);
        if (!Greater(sum, maxima->value[static_cast<size_t>(c)])) continue;
        maxima->value[static_cast<size_t>(c)] = sum;
        maxima->input[static_cast<size_t>(c)] = from;
        maxima->filter[static_cast<size_t>(c)] = tap;
      }
    }
  }
}

// A task processes a range of channels of an image. For the gradient of the filter, it processes
// them for all images, so that no two tasks add to the same element.
template <typename T>
void Run(const KernelContext& ctx, Pass pass, const Problem& p, Tensor* output) {
  const T* const x = static_cast<const T*>(ctx.input(0).raw_data());
  const T* const f = static_cast<const T*>(ctx.input(1).raw_data());
  const T* const dy =
      pass == Pass::kForward ? nullptr : static_cast<const T*>(ctx.input(2).raw_data());
  T* const out = static_cast<T*>(output->raw_data());
  if (pass != Pass::kForward) SetZero(ctx.run(), output);
  constexpr int64_t kChannels = 32;
  const int64_t blocks = NumBlocks(p.depth, kChannels);
  const bool by_filter = pass == Pass::kFilterGradient;
  const int64_t images = by_filter ? p.batch : 1;
  const double sums = 4.0 * static_cast<double>(images * p.out[0] * p.out[1]) *
                      static_cast<double>(p.filter[0] * p.filter[1]) *
                      static_cast<double>(std::min(kChannels, p.depth));
  ParallelFor(ctx, (by_filter ? 1 : p.batch) * blocks, BlockSizeForCost(sums),
              [&](int64_t first, int64_t last) {
                Maxima<T> maxima(kChannels);
                for (int64_t task = first; task < last; ++task) {
                  const int64_t begin = task % blocks * kChannels;
                  const int64_t n = std::min(kChannels, p.depth - begin);
                  const int64_t first_row = task / blocks * p.out[0];
                  for (int64_t row = first_row;
                       row < first_row + images * p.out[0] && !ctx.ShouldStop(); ++row) {
                    const int64_t image = row / p.out[0];
                    for (int64_t column = 0; column < p.out[1]; ++column) {
                      if (column % 64 == 0 && ctx.ShouldStop()) return;
                      FindMaxima(p, x, f, image, row % p.out[0], column, begin, n, &maxima);
                      const int64_t y = (row * p.out[1] + column) * p.depth + begin;
                      if (pass == Pass::kForward) {
                        std::copy_n(maxima.value.data(), n, out + y);
                        continue;
                      }
                      const std::vector<int64_t>& targets =
                          by_filter ? maxima.filter : maxima.input;
                      for (int64_t c = 0; c < n; ++c) {
                        const int64_t target = targets[static_cast<size_t>(c)];
                        if (target < 0) continue;
                        T& to = out[target * p.depth + begin + c];
                        to = Add(to, dy[y + c]);
                      }
                    }
                  }
                }
              });
}

template <Pass kPass>
class Dilation final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    types_ = InputTypes(construction);
    return ReadAttrs(construction, &attrs_);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckInputTypes(ctx, types_));
    const TensorShape& input = ctx.input(0).shape();
    const TensorShape& filter = ctx.input(1).shape();
    Problem p;
    p.attrs = attrs_;
    PartialTensorShape result;
    GRADFLOW_RETURN_IF_ERROR(InferOutput(attrs_, input, filter, &result, p.pad));
    if (kPass != Pass::kForward) {
      GRADFLOW_RETURN_IF_ERROR(InferGradient(attrs_, input, filter, ctx.input(2).shape(), p.pad));
    }
    GRADFLOW_ASSIGN_OR_RETURN(const TensorShape out_shape, TensorShape::Make(result.dim_sizes()));
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0,
                                                kPass == Pass::kForward         ? out_shape
                                                : kPass == Pass::kInputGradient ? input
                                                                                : filter,
                                                &output));
    if (output->NumElements() == 0) return absl::OkStatus();
    // The product of the other sizes may overflow.
    const bool is_zero = kPass != Pass::kForward &&
                         (ctx.input(0).NumElements() == 0 || ctx.input(2).NumElements() == 0);
    if (is_zero) {
      SetZero(ctx.run(), output);
      return absl::OkStatus();
    }
    p.batch = input.dim_size(0);
    p.depth = input.dim_size(3);
    for (int d = 0; d < 2; ++d) {
      p.in[d] = input.dim_size(d + 1);
      p.out[d] = out_shape.dim_size(d + 1);
      p.filter[d] = filter.dim_size(d);
    }
    DispatchType(RealTypes(), output->dtype(),
                 [&](auto tag) { Run<typename decltype(tag)::type>(ctx, kPass, p, output); });
    return absl::OkStatus();
  }

 private:
  DataTypeVector types_;
  DilationAttrs attrs_;
};

constexpr char kAttrsDoc[] = R"(
T: The type of the inputs and outputs. Integers wrap around.
strides: The strides of the windows: [1, row stride, column stride, 1].
rates: The distance between the elements of a window: [1, row rate, column rate, 1].
padding: `SAME` pads so that strides of 1 keep the size, `VALID` does not pad. Padding is ignored
  when the maximum is taken.)";

}  // namespace

void Register(Registry& registry) {
  constexpr char kStrides[] = "strides: list(int) >= 4";
  constexpr char kRates[] = "rates: list(int) >= 4";
  constexpr char kPadding[] = "padding: {'SAME', 'VALID'}";
  registry.Op("Dilation2D")
      .Group("nn_ops")
      .Input("input: T")
      .Input("filter: T")
      .Output("output: T")
      .Attr("T: realnumbertype")
      .Attr(kStrides)
      .Attr(kRates)
      .Attr(kPadding)
      .Shape(DilationShape)
      .Doc(absl::StrCat(R"(Computes the grayscale dilation of images by a filter.

    output[b, i, j, c] = max(input[b, i * stride + di * rate - pad, ..., c] + filter[di, dj, c])

over all di, dj. An output whose sums are all NaN is the lowest number of the type.

input: Images [batch, rows, columns, depth].
filter: A tensor [rows, columns, depth].
output: The result [batch, rows, columns, depth].)",
                        kAttrsDoc));
  registry.Op("Dilation2DBackpropInput")
      .Group("nn_ops")
      .Input("input: T")
      .Input("filter: T")
      .Input("out_backprop: T")
      .Output("in_backprop: T")
      .Attr("T: realnumbertype")
      .Attr(kStrides)
      .Attr(kRates)
      .Attr(kPadding)
      .Shape(GradientShape<0, 4>)
      .Doc(absl::StrCat(R"(Computes the gradient of Dilation2D with respect to its input.

The gradient of an output goes to the first input element whose sum is the largest, or to the first
input element of the window if all sums are NaN or the lowest number of the type.

input: The input of Dilation2D.
filter: The filter of Dilation2D.
out_backprop: The gradient with respect to the output.
in_backprop: The gradient with respect to the input.)",
                        kAttrsDoc));
  registry.Op("Dilation2DBackpropFilter")
      .Group("nn_ops")
      .Input("input: T")
      .Input("filter: T")
      .Input("out_backprop: T")
      .Output("filter_backprop: T")
      .Attr("T: realnumbertype")
      .Attr(kStrides)
      .Attr(kRates)
      .Attr(kPadding)
      .Shape(GradientShape<1, 3>)
      .Doc(absl::StrCat(R"(Computes the gradient of Dilation2D with respect to its filter.

The gradient of an output goes to the first filter element whose sum is the largest, or to the first
element of the filter if all sums are NaN or the lowest number of the type.

input: The input of Dilation2D.
filter: The filter of Dilation2D.
out_backprop: The gradient with respect to the output.
filter_backprop: The gradient with respect to the filter.)",
                        kAttrsDoc));
  const DataTypeVector types = DataTypesOf(RealTypes());
  registry.Kernel("Dilation2D", MakeKernel<Dilation<Pass::kForward>>).Types("T", types);
  registry.Kernel("Dilation2DBackpropInput", MakeKernel<Dilation<Pass::kInputGradient>>)
      .Types("T", types);
  registry.Kernel("Dilation2DBackpropFilter", MakeKernel<Dilation<Pass::kFilterGradient>>)
      .Types("T", types);
}

}  // namespace gradflow::dilation
