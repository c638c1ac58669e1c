// FractionalMaxPool, FractionalAvgPool and their gradients: pooling over windows with random
// numbers of rows and columns, after Graham: "Fractional max-pooling" (arXiv:1412.6071).
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/elementwise.h"
#include "gradflow/ops/common/input_checks.h"
#include "gradflow/ops/nn/pool_rows.h"
#include "gradflow/ops/random/distributions.h"
#include "gradflow/ops/random/philox.h"
#include "gradflow/ops/random/streams.h"

namespace gradflow::fractional_pool {
namespace {

// ---- Sequences: the first row (column) of each window, and the number of rows (columns) ----

// Returns the pseudorandom sequence of the paper: one random number shifts all boundaries.
void PseudoRandomSequence(int64_t in, int64_t out, Philox* stream, int64_t* sequence) {
  const double alpha = static_cast<double>(in) / static_cast<double>(out);
  const int64_t k = in / out;
  // With this bound, all windows have k or k + 1 elements.
  const double max_u = std::min(static_cast<double>(k + 2) / alpha - 1,
                                static_cast<double>(in + 1 - k) / alpha - (out - 1));
  const Philox::Numbers numbers = stream->Next();
  const double u = UnitNumbers<double>::Make(numbers[0], numbers[1]) * max_u;
  sequence[0] = 0;
  for (int64_t i = 1; i < out; ++i) {
    const int64_t next = static_cast<int64_t>(std::ceil(alpha * (static_cast<double>(i) + u))) - 1;
    // Rounding must not make a window empty.
    sequence[i] = std::clamp(next, sequence[i - 1] + 1, in - (out - i));
  }
  sequence[out] = in;
}

// Returns the random sequence of the paper: windows of sizes k and k + 1 in random order.
void RandomSequence(int64_t in, int64_t out, Philox* stream, int64_t* sequence) {
  // The differences follow the first element.
  int64_t* const sizes = sequence + 1;
  std::fill_n(sizes, out, in / out);
  for (int64_t i = 0; i < in % out; ++i) sizes[i] += 1;
  PhiloxReader reader(*stream);
  for (int64_t i = 0; i + 1 < out; ++i) std::swap(sizes[i], sizes[i + reader.Next() % (out - i)]);
  *stream = stream->Ahead((out + 3) / 4);
  sequence[0] = 0;
  for (int64_t i = 0; i < out; ++i) sizes[i] += sequence[i];
}

// A window along one dimension: [begin, end).
struct FractionalWindow {
  int64_t begin;
  int64_t end;
  int64_t size() const { return end - begin; }
};

FractionalWindow WindowAt(const int64_t* sequence, int64_t i, int64_t in, bool overlapping) {
  return {sequence[i], std::min(in, sequence[i + 1] + (overlapping ? 1 : 0))};
}

// Returns INVALID_ARGUMENT unless input i is a sequence of `out` windows in [0, in).
absl::Status CheckSequence(const KernelContext& ctx, int i, const char* name, int64_t out,
                           int64_t in) {
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckShape(i, name, TensorShape({out + 1})));
  const auto sequence = ctx.input(i).flat<int64_t>();
  for (int64_t k = 0; k <= out; ++k) {
    const int64_t least = k == 0 ? 0 : sequence(k - 1) + 1;
    if (sequence(k) < least || sequence(k) > in) {
      return errors::InvalidArgument(name, "[", k, "] is ", sequence(k),
                                     ", expected a number from ", least, " to ", in);
    }
  }
  return absl::OkStatus();
}

// ---- Forward ----

struct FractionalPoolAttrs {
  std::vector<float> ratio;
  bool pseudo_random = false;
  bool overlapping = false;
  bool deterministic = false;
  int64_t seed = 0;
  int64_t seed2 = 0;

  template <typename Source>
  absl::Status Read(const Source& source) {
    GRADFLOW_RETURN_IF_ERROR(source.GetAttr("pooling_ratio", &ratio));
    GRADFLOW_RETURN_IF_ERROR(source.GetAttr("pseudo_random", &pseudo_random));
    GRADFLOW_RETURN_IF_ERROR(source.GetAttr("overlapping", &overlapping));
    GRADFLOW_RETURN_IF_ERROR(source.GetAttr("deterministic", &deterministic));
    GRADFLOW_RETURN_IF_ERROR(source.GetAttr("seed", &seed));
    GRADFLOW_RETURN_IF_ERROR(source.GetAttr("seed2", &seed2));
    if (ratio.size() != 4) {
      return errors::InvalidArgument("pooling_ratio must have 4 elements, but has ", ratio.size());
    }
    for (const float r : ratio) {
      if (!(r >= 1) || !std::isfinite(r)) {
        return errors::InvalidArgument("pooling_ratio must be finite and at least 1, but is [",
                                       absl::StrJoin(ratio, ","), "]");
      }
    }
    if (ratio[0] != 1 || ratio[3] != 1) {
      return errors::Unimplemented("pooling_ratio is [", absl::StrJoin(ratio, ","),
                                   "], but pooling across batch or channels is not supported");
    }
    if (!deterministic && (seed != 0 || seed2 != 0)) {
      return errors::InvalidArgument("seed and seed2 are ", seed, " and ", seed2,
                                     ", expected 0, as deterministic is false");
    }
    return absl::OkStatus();
  }
  int64_t OutputSize(int d, int64_t size) const {
    // Computed in float, as in TensorFlow. Sizes above 2^24 may be rounded up.
    return std::min(size, static_cast<int64_t>(std::floor(static_cast<float>(size) / ratio[d])));
  }
};

absl::StatusOr<PartialTensorShape> OutputShape(const FractionalPoolAttrs& attrs,
                                               const PartialTensorShape& input) {
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  if (input.unknown_rank()) return PartialTensorShape::UnknownOfRank(4);
  GRADFLOW_RETURN_IF_ERROR(CheckRank("value", input, 4));
  PartialTensorShape output = input;
  for (int d = 0; d < 4; ++d) {
    const int64_t size = input.dim_size(d);
    if (size < 0) continue;
    if (static_cast<float>(size) < attrs.ratio[d] || size > kMax) {
      return errors::InvalidArgument("dimension ", d, " of value is ", size,
                                     ", expected a size from its pooling_ratio ", attrs.ratio[d],
                                     " to ", kMax);
    }
    output.set_dim(d, d == 0 || d == 3 ? size : attrs.OutputSize(d, size));
  }
  return output;
}

absl::Status FractionalPoolShape(ShapeContext& c) {
  FractionalPoolAttrs attrs;
  GRADFLOW_RETURN_IF_ERROR(attrs.Read(c));
  GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape output, OutputShape(attrs, c.input(0)));
  c.set_output(0, output);
  for (int d = 1; d <= 2; ++d) {
    const int64_t windows = output.dim_size(d);
    c.set_output(d, PartialTensorShape({windows < 0 ? -1 : windows + 1}));
  }
  return absl::OkStatus();
}

// The mean, accumulated in double. Integers are accumulated modulo 2^n, as in TensorFlow.
template <typename T>
struct Mean {
  using Accumulator = std::conditional_t<std::is_integral_v<T>, WrappingType<T>, double>;
  static Accumulator Initial() { return 0; }
  static Accumulator Combine(Accumulator a, T x) { return a + static_cast<Accumulator>(x); }
  static T Finish(Accumulator a, int64_t count) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<T>(a) / count);
    } else {
      return static_cast<T>(a / static_cast<double>(count));
    }
  }
};

template <typename T, typename Op>
class FractionalPool final : public OpKernel {
 public:
  using A = typename Op::Accumulator;

  absl::Status Init(const KernelConstruction& construction) {
    types_ = InputTypes(construction);
    GRADFLOW_RETURN_IF_ERROR(attrs_.Read(construction));
    random_ = attrs_.seed == 0 && attrs_.seed2 == 0;
    if (random_ && attrs_.deterministic) {
      attrs_.seed = static_cast<int64_t>(SystemRandom());
      attrs_.seed2 = static_cast<int64_t>(SystemRandom());
      random_ = false;
    }
    return absl::OkStatus();
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckInputTypes(ctx, types_));
    const Tensor& input = ctx.input(0);
    GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape shape, OutputShape(attrs_, input.shape()));
    Tensor* output = nullptr;
    Tensor* sequences[2];
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, TensorShape(shape.dim_sizes()), &output));
    Philox stream(static_cast<uint64_t>(attrs_.seed), 0, static_cast<uint64_t>(attrs_.seed2));
    if (random_) stream = Philox(SystemRandom(), 0, SystemRandom());
    for (int d = 0; d < 2; ++d) {
      const int64_t in = input.dim_size(d + 1);
      const int64_t out = output->dim_size(d + 1);
      GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(d + 1, {out + 1}, &sequences[d]));
      int64_t* const sequence = sequences[d]->flat<int64_t>().data();
      if (attrs_.pseudo_random) {
        PseudoRandomSequence(in, out, &stream, sequence);
      } else {
        RandomSequence(in, out, &stream, sequence);
      }
    }
    Pool(ctx, input, sequences[0]->flat<int64_t>().data(), sequences[1]->flat<int64_t>().data(),
         output);
    return absl::OkStatus();
  }

 private:
  void Pool(const KernelContext& ctx, const Tensor& input, const int64_t* rows,
            const int64_t* columns, Tensor* output) const {
    const int64_t in_rows = input.dim_size(1);
    const int64_t in_columns = input.dim_size(2);
    const int64_t depth = input.dim_size(3);
    const int64_t out_rows = output->dim_size(1);
    const int64_t out_columns = output->dim_size(2);
    const T* const x = input.flat<T>().data();
    T* const y = output->flat<T>().data();
    const double cost = 1.0 * in_rows / out_rows * in_columns * depth;
    ParallelFor(
        ctx, input.dim_size(0) * out_rows, BlockSizeForCost(cost), [&](int64_t begin, int64_t end) {
          for (int64_t row = begin; row < end && !ctx.ShouldStop(); ++row) {
            const FractionalWindow r = WindowAt(rows, row % out_rows, in_rows, attrs_.overlapping);
            const T* const image = x + row / out_rows * in_rows * in_columns * depth;
            for (int64_t o = 0; o < out_columns; ++o) {
              const FractionalWindow c = WindowAt(columns, o, in_columns, attrs_.overlapping);
              T* const to = y + (row * out_columns + o) * depth;
              for (int64_t d = 0; d < depth; ++d) {
                A sum = Op::Initial();
                for (int64_t i = r.begin; i < r.end; ++i) {
                  for (int64_t j = c.begin; j < c.end; ++j) {
                    sum = Op::Combine(sum, image[(i * in_columns + j) * depth + d]);
                  }
                }
                to[d] = static_cast<T>(Op::Finish(sum, r.size() * c.size()));
              }
            }
          }
        });
  }

  DataTypeVector types_;
  FractionalPoolAttrs attrs_;
  // True if each run uses another random stream.
  bool random_ = false;
};

// ---- Gradients ----

absl::Status MaxGradShape(ShapeContext& c) {
  for (int i = 0; i < 3; ++i) GRADFLOW_RETURN_IF_ERROR(c.CheckRank(i, 4));
  GRADFLOW_RETURN_IF_ERROR(c.CheckSameShape(1, 2));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(3, 1));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(4, 1));
  PartialTensorShape shape = c.input(0);
  if (shape.unknown_rank()) shape = PartialTensorShape::UnknownOfRank(4);
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status AvgGradShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(1, 4));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(2, 1));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(3, 1));
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, c.ShapeFromInput(0));
  if (shape.unknown_rank()) shape = PartialTensorShape::UnknownOfRank(4);
  if (shape.dims() != 4) {
    return errors::InvalidArgument("orig_input_tensor_shape must have 4 elements, but has ",
                                   shape.dims());
  }
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

// Checks the shapes of a gradient op: grads is [batch, windows, windows, depth].
absl::Status CheckGradShapes(const KernelContext& ctx, const TensorShape& input,
                             const char* grad_name, int grad, int sequences) {
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckRank(grad, grad_name, 4));
  const TensorShape& shape = ctx.input(grad).shape();
  if (input.num_elements() == 0 || shape.num_elements() == 0) {
    return errors::InvalidArgument("the input and ", grad_name, " must not be empty, but have ",
                                   "shapes ", input.DebugString(), " and ", shape.DebugString());
  }
  if (shape.dim_size(0) != input.dim_size(0) || shape.dim_size(3) != input.dim_size(3)) {
    return errors::InvalidArgument(grad_name, " has shape ", shape.DebugString(),
                                   ", expected the batch and channels of the input ",
                                   input.DebugString());
  }
  GRADFLOW_RETURN_IF_ERROR(
      CheckSequence(ctx, sequences, "row_pooling_sequence", shape.dim_size(1), input.dim_size(1)));
  return CheckSequence(ctx, sequences + 1, "col_pooling_sequence", shape.dim_size(2),
                       input.dim_size(2));
}

// Calls fn(image, pixel of grad, window of rows, window of columns). Images are processed
// concurrently, the windows of an image in order.
template <typename F>
void ForEachWindow(const KernelContext& ctx, const TensorShape& input, int grad, int sequences,
                   bool overlapping, const F& begin_image, const F& fn) {
  const TensorShape& shape = ctx.input(grad).shape();
  const int64_t* const rows = ctx.input(sequences).flat<int64_t>().data();
  const int64_t* const columns = ctx.input(sequences + 1).flat<int64_t>().data();
  const int64_t out_rows = shape.dim_size(1);
  const int64_t out_columns = shape.dim_size(2);
  const double cost = 2.0 * input.num_elements() / input.dim_size(0);
  ParallelFor(ctx, input.dim_size(0), BlockSizeForCost(cost), [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      begin_image(b, 0, FractionalWindow(), FractionalWindow());
      for (int64_t i = 0; i < out_rows && !ctx.ShouldStop(); ++i) {
        const FractionalWindow r = WindowAt(rows, i, input.dim_size(1), overlapping);
        for (int64_t j = 0; j < out_columns; ++j) {
          const FractionalWindow c = WindowAt(columns, j, input.dim_size(2), overlapping);
          fn(b, (b * out_rows + i) * out_columns + j, r, c);
        }
      }
    }
  });
}

template <typename F>
std::function<void(int64_t, int64_t, FractionalWindow, FractionalWindow)> Callback(F f) {
  return f;
}

template <typename T>
class FractionalMaxPoolGrad final : public OpKernel {
 public:
  using S = WrappingType<T>;

  absl::Status Init(const KernelConstruction& construction) {
    types_ = InputTypes(construction);
    return construction.GetAttr("overlapping", &overlapping_);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckInputTypes(ctx, types_));
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckRank(0, "orig_input", 4));
    const TensorShape& shape = ctx.input(0).shape();
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckSameShape(1, "orig_output", 2, "out_backprop"));
    GRADFLOW_RETURN_IF_ERROR(CheckGradShapes(ctx, shape, "out_backprop", 2, 3));
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
    const int64_t columns = shape.dim_size(2);
    const int64_t depth = shape.dim_size(3);
    const int64_t image_size = shape.dim_size(1) * columns * depth;
    const T* const x = ctx.input(0).flat<T>().data();
    const S* const dy = static_cast<const S*>(ctx.input(2).raw_data());
    S* const dx = static_cast<S*>(output->raw_data());
    ForEachWindow(ctx, shape, 2, 3, overlapping_,
                  Callback([&](int64_t b, int64_t, FractionalWindow, FractionalWindow) {
                    std::fill_n(dx + b * image_size, image_size, S(0));
                  }),
                  Callback([&](int64_t b, int64_t pixel, FractionalWindow r, FractionalWindow c) {
                    const T* const image = x + b * image_size;
                    for (int64_t d = 0; d < depth; ++d) {
                      int64_t best = (r.begin * columns + c.begin) * depth + d;
                      for (int64_t i = r.begin; i < r.end; ++i) {
                        for (int64_t j = c.begin; j < c.end; ++j) {
                          const int64_t at = (i * columns + j) * depth + d;
                          if (image[at] > image[best]) best = at;
                        }
                      }
                      dx[b * image_size + best] += dy[pixel * depth + d];
                    }
                  }));
    return absl::OkStatus();
  }

 private:
  DataTypeVector types_;
  bool overlapping_ = false;
};

template <typename T>
class FractionalAvgPoolGrad final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    types_ = InputTypes(construction);
    return construction.GetAttr("overlapping", &overlapping_);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckInputTypes(ctx, types_));
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckShape(0, "orig_input_tensor_shape", TensorShape({4})));
    GRADFLOW_ASSIGN_OR_RETURN(const DimVector dims, ctx.Ints(0, "orig_input_tensor_shape"));
    GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, TensorShape::Make(dims));
    GRADFLOW_RETURN_IF_ERROR(CheckGradShapes(ctx, shape, "out_backprop", 1, 2));
    Tensor sums;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_DOUBLE, shape, &sums));
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
    const int64_t columns = shape.dim_size(2);
    const int64_t depth = shape.dim_size(3);
    const int64_t image_size = shape.dim_size(1) * columns * depth;
    const T* const dy = ctx.input(1).flat<T>().data();
    double* const dx = sums.flat<double>().data();
    ForEachWindow(ctx, shape, 1, 2, overlapping_,
                  Callback([&](int64_t b, int64_t, FractionalWindow, FractionalWindow) {
                    std::fill_n(dx + b * image_size, image_size, 0.0);
                  }),
                  Callback([&](int64_t b, int64_t pixel, FractionalWindow r, FractionalWindow c) {
                    const double count = static_cast<double>(r.size() * c.size());
                    for (int64_t i = r.begin; i < r.end; ++i) {
                      for (int64_t j = c.begin; j < c.end; ++j) {
                        double* const to = dx + b * image_size + (i * columns + j) * depth;
                        for (int64_t d = 0; d < depth; ++d) {
                          to[d] += static_cast<double>(dy[pixel * depth + d]) / count;
                        }
                      }
                    }
                  }));
    T* const to = output->flat<T>().data();
    ParallelFor(ctx, output->NumElements(), BlockSizeForCost(0.5), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = FromDouble(dx[i]);
    });
    return absl::OkStatus();
  }

 private:
  // Rounds towards zero and clamps to the range of T.
  static T FromDouble(double value) {
    if constexpr (std::is_integral_v<T>) {
      constexpr T kHalf = std::numeric_limits<T>::max() / 2 + 1;
      constexpr double kEnd = 2.0 * static_cast<double>(kHalf);
      if (value >= kEnd) return std::numeric_limits<T>::max();
      if (value < -kEnd) return std::numeric_limits<T>::min();
    }
    return static_cast<T>(value);
  }

  DataTypeVector types_;
  bool overlapping_ = false;
};

constexpr char kForwardDoc[] =
    R"(The rows and columns of windows have floor(n) or floor(n) + 1 elements, where n is the number of
elements of the input for each element of the output, in random order.

value: Images of shape [batch, rows, columns, channels].
output: The results of the windows: floor(size / ratio) rows and columns.
row_pooling_sequence: The first row of each window, and the number of rows.
col_pooling_sequence: The first column of each window, and the number of columns.
pooling_ratio: The size of the input divided by the size of the output for each dimension, at least
  1; 1 for batch and channels.
pseudo_random: If true, a random number shifts a regular sequence. Otherwise sizes are shuffled.
overlapping: If true, windows include the first row and column of the next window.
deterministic: If true, all runs of the op have the same sequences.
seed: The seed, with `seed2`. Both must be 0 unless `deterministic` is true. Equal seeds make
  TensorFlow's sequences. If both are 0, the system chooses a seed.
seed2: The second half of the seed.
T: The type of the elements.)";
constexpr char kGradDoc[] = R"(row_pooling_sequence: The sequence of rows of the forward op.
col_pooling_sequence: The sequence of columns of the forward op.
output: The gradients with respect to the input.
overlapping: The attribute of the forward op.
T: The type of the elements.)";

Registry::OpRegistrar DefineForward(Registry& registry, absl::string_view op,
                                    absl::string_view summary) {
  auto builder = registry.Op(op);
  builder.Group("nn_ops")
      .Input("value: T")
      .Output("output: T")
      .Output("row_pooling_sequence: int64")
      .Output("col_pooling_sequence: int64")
      .Attr("pooling_ratio: list(float) >= 4")
      .Attr("pseudo_random: bool = false")
      .Attr("overlapping: bool = false")
      .Attr("deterministic: bool = false")
      .Attr("seed: int = 0")
      .Attr("seed2: int = 0")
      .Attr("T: {float, double, int32, int64}")
      .Stateful()
      .Shape(FractionalPoolShape)
      .Doc(absl::StrCat(summary, "\n\n", kForwardDoc));
  return builder;
}

}  // namespace

void Register(Registry& registry) {
  DefineForward(registry, "FractionalMaxPool", "Computes the maxima of windows of random sizes.");
  DefineForward(registry, "FractionalAvgPool", "Computes the means of windows of random sizes.");
  registry.Op("FractionalMaxPoolGrad")
      .Group("nn_ops")
      .Input("orig_input: T")
      .Input("orig_output: T")
      .Input("out_backprop: T")
      .Input("row_pooling_sequence: int64")
      .Input("col_pooling_sequence: int64")
      .Output("output: T")
      .Attr("overlapping: bool = false")
      .Attr("T: {float, double, int32, int64}")
      .Shape(MaxGradShape)
      .Doc(absl::StrCat(R"(Computes the gradient of FractionalMaxPool.

The gradient of a window goes to its maximum, the first of equal elements. The values of
`orig_output` are not read.

orig_input: The input of FractionalMaxPool.
orig_output: The output of FractionalMaxPool.
out_backprop: The gradients with respect to the output.
)",
                        kGradDoc));
  registry.Op("FractionalAvgPoolGrad")
      .Group("nn_ops")
      .Input("orig_input_tensor_shape: int64")
      .Input("out_backprop: T")
      .Input("row_pooling_sequence: int64")
      .Input("col_pooling_sequence: int64")
      .Output("output: T")
      .Attr("overlapping: bool = false")
      .Attr("T: {float, double, int32, int64}")
      .Shape(AvgGradShape)
      .Doc(absl::StrCat(R"(Computes the gradient of FractionalAvgPool.

The gradient of a window is divided among its elements, in double.

orig_input_tensor_shape: The shape of the input of FractionalAvgPool.
out_backprop: The gradients with respect to the output.
)",
                        kGradDoc));
  ForEachType(TypeList<float, double, int32_t, int64_t>(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const DataTypeVector types = {DataTypeToEnum<T>::value};
    registry.Kernel("FractionalMaxPool", MakeKernel<FractionalPool<T, PoolMax<T>>>)
        .Types("T", types);
    registry.Kernel("FractionalAvgPool", MakeKernel<FractionalPool<T, Mean<T>>>).Types("T", types);
    registry.Kernel("FractionalMaxPoolGrad", MakeKernel<FractionalMaxPoolGrad<T>>)
        .Types("T", types);
    registry.Kernel("FractionalAvgPoolGrad", MakeKernel<FractionalAvgPoolGrad<T>>)
        .Types("T", types);
  });
}

}  // namespace gradflow::fractional_pool
