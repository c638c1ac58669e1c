// The gradients of max pooling, and the gradients of these gradients.
//
// MaxPoolGrad computes the positions of the maxima. It then processes the rows of the input: each
// element gets the sum of the gradients of the windows that have their maximum there. Rows are
// independent.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/ops/common/indices.h"
#include "gradflow/ops/common/input_checks.h"
#include "gradflow/ops/common/strided_copy.h"
#include "gradflow/ops/nn/pool_argmax.h"
#include "gradflow/ops/nn/pool_rows.h"
#include "gradflow/ops/nn/pool_simd.h"
#include "gradflow/ops/nn/pool_windows.h"

namespace gradflow::max_pool_grad {
namespace {

// ---- Attributes and shapes ----

absl::Status CheckAttrs(const PoolAttrs& attrs) {
  GRADFLOW_RETURN_IF_ERROR(attrs.CheckSupported());
  if (!attrs.pools_channels()) return absl::OkStatus();
  return errors::Unimplemented("gradients of maxima across channels are not supported");
}

// The kind of gradient. It determines which inputs have the shape of the pooled input and which
// have the shape of the output.
enum class Kind {
  // (orig_input, orig_output, grad of the output) -> gradient of the input
  kGrad,
  // (orig_input, orig_output, grad of the input) -> gradient of the output
  kGradGrad,
  // (input, grad of the output, argmax) -> gradient of the input
  kGradWithArgmax,
  // (input, grad of the input, argmax) -> gradient of the output
  kGradGradWithArgmax,
};
constexpr bool IsGradGrad(Kind kind) {
  return kind == Kind::kGradGrad || kind == Kind::kGradGradWithArgmax;
}
constexpr bool HasArgmax(Kind kind) {
  return kind == Kind::kGradWithArgmax || kind == Kind::kGradGradWithArgmax;
}
constexpr const char* InputName(Kind kind, int i) {
  if (HasArgmax(kind)) return i == 1 ? "grad" : "argmax";
  return i == 1 ? "orig_output" : "grad";
}

template <Kind kKind, int Rank>
absl::Status GradShape(ShapeContext& c) {
  PoolAttrs attrs;
  const bool sizes_are_inputs = c.num_inputs() == 5;
  GRADFLOW_RETURN_IF_ERROR(attrs.Read(c, Rank, sizes_are_inputs));
  PartialTensorShape pooled = PartialTensorShape::UnknownOfRank(Rank);
  bool known = true;
  if (sizes_are_inputs) {
    GRADFLOW_ASSIGN_OR_RETURN(known, ReadPoolSizes(c, 3, &attrs));
    GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, Rank));
  }
  if (known) {
    GRADFLOW_RETURN_IF_ERROR(CheckAttrs(attrs));
    GRADFLOW_ASSIGN_OR_RETURN(pooled, PooledShape(attrs, c.input(0)));
  }
  PartialTensorShape input = c.input(0);
  if (input.unknown_rank()) input = PartialTensorShape::UnknownOfRank(Rank);
  for (int i = 1; i < 3; ++i) {
    const bool of_input = IsGradGrad(kKind) && i == (HasArgmax(kKind) ? 1 : 2);
    if (!of_input) {
      GRADFLOW_RETURN_IF_ERROR(CheckPooled(InputName(kKind, i), c.input(i), pooled));
      GRADFLOW_ASSIGN_OR_RETURN(pooled, pooled.MergeWith(c.input(i)));
    } else if (!c.input(i).IsCompatibleWith(input)) {
      return ShapeError(InputName(kKind, i), c.input(i), input, "the shape of the input");
    }
  }
  c.set_output(0, IsGradGrad(kKind) ? std::move(pooled) : std::move(input));
  return absl::OkStatus();
}

// A kernel with the attributes. Run() is called with checked inputs.
template <Kind kKind, int Rank>
class MaxPoolGradKernel : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    types_ = InputTypes(construction);
    const bool sizes_are_inputs = types_.size() == 5;
    GRADFLOW_RETURN_IF_ERROR(attrs_.Read(construction, Rank, sizes_are_inputs));
    if (HasArgmax(kKind)) {
      GRADFLOW_RETURN_IF_ERROR(
          construction.GetAttr("include_batch_in_index", &include_batch_in_index_));
    }
    return sizes_are_inputs ? absl::OkStatus() : CheckAttrs(attrs_);
  }

  absl::Status Compute(KernelContext& ctx) const final {
    GRADFLOW_RETURN_IF_ERROR(CheckInputTypes(ctx, types_));
    if (types_.size() == 3) return CheckAndRun(ctx, attrs_);
    PoolAttrs attrs = attrs_;
    GRADFLOW_RETURN_IF_ERROR(ReadPoolSizes(ctx, 3, &attrs));
    GRADFLOW_RETURN_IF_ERROR(CheckAttrs(attrs));
    return CheckAndRun(ctx, attrs);
  }

 protected:
  virtual absl::Status Run(KernelContext& ctx, const PoolGeometry& g, Tensor* output) const = 0;
  bool include_batch_in_index() const { return include_batch_in_index_; }

 private:
  absl::Status CheckAndRun(KernelContext& ctx, const PoolAttrs& attrs) const {
    const TensorShape& input = ctx.input(0).shape();
    TensorShape pooled;
    GRADFLOW_ASSIGN_OR_RETURN(const PoolGeometry g, MakePoolGeometry(attrs, input, &pooled));
    for (int i = 1; i < 3; ++i) {
      const bool of_input = IsGradGrad(kKind) && i == (HasArgmax(kKind) ? 1 : 2);
      if (ctx.input(i).shape() != (of_input ? input : pooled)) {
        return ShapeError(InputName(kKind, i), ctx.input(i).shape(), of_input ? input : pooled,
                          of_input ? "the shape of the input" : "the shape of the pooled input");
      }
    }
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, IsGradGrad(kKind) ? pooled : input, &output));
    if (output->NumElements() == 0) return absl::OkStatus();
    // A pooled shape without rows may still have any number of columns.
    if (pooled.num_elements() == 0) {
      SetZero(ctx.run(), output);
      return absl::OkStatus();
    }
    return Run(ctx, g, output);
  }

  DataTypeVector types_;
  PoolAttrs attrs_;
  bool include_batch_in_index_ = false;
};

// ---- MaxPoolGrad ----

// Sets *positions to the positions of the maxima of all windows, as int32.
template <typename C>
absl::Status FindArgmax(KernelContext& ctx, const PoolGeometry& g, const Tensor& input,
                        Tensor* positions) {
  GRADFLOW_RETURN_IF_ERROR(CheckArgmaxPositions(g));
  const int64_t n = g.out_row();
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_INT32, {g.out_rows(), n}, positions));
  if (positions->NumElements() == 0) return absl::OkStatus();
  int32_t* const to = static_cast<int32_t*>(positions->raw_data());
  const RowArgmax<C> rows(g, input);
  return ForEachPoolRow(ctx, g.out_rows(), rows.Nanoseconds(),
                        rows.ScratchBytes() + n * static_cast<int64_t>(sizeof(C)),
                        [&](int64_t row, char* scratch) {
                          C* const values = reinterpret_cast<C*>(scratch + rows.ScratchBytes());
                          rows.Run(ctx, row, scratch, values, to + row * n);
                        });
}

// C is the type of comparisons. Gradients are added as S, which has no undefined overflow.
template <typename C>
class MaxPoolGrad final : public MaxPoolGradKernel<Kind::kGrad, 4> {
 public:
  using S = WrappingType<C>;

  absl::Status Run(KernelContext& ctx, const PoolGeometry& g, Tensor* output) const override {
    Tensor argmax;
    GRADFLOW_RETURN_IF_ERROR(FindArgmax<C>(ctx, g, ctx.input(0), &argmax));
    const int32_t* const positions = static_cast<const int32_t*>(argmax.raw_data());
    const RowReader<S> grads(ctx.input(2));
    const RowWriter<S> writer(output, ctx.input(0), g.depth);
    std::vector<PoolRange> covering;
    int64_t most_windows = 1;
    if (std::is_same_v<S, float> && g.depth >= kMinPoolVector) {
      covering.reserve(static_cast<size_t>(g.in[2]));
      for (int64_t c = 0; c < g.in[2]; ++c) {
        covering.push_back(g.Covering(2, c));
        most_windows = std::max(most_windows, covering.back().size());
      }
    }
    const int64_t rows_at_a_time = RowsAtATime(grads.converts(), most_windows);
    const int64_t n = g.out_row();
    const int64_t m = g.in_row();
    const int64_t bytes = PaddedBytes<S>(n) + (writer.converts() ? m * sizeof(S) : 0);
    const double cost =
        m + static_cast<double>(g.Covering(1, g.in[1] / 2).size()) * static_cast<double>(n);
    return ForEachPoolRow(ctx, g.in_rows(), cost, bytes, [&](int64_t row, char* scratch) {
      S* const dx = writer.Place(row * m, reinterpret_cast<S*>(scratch + PaddedBytes<S>(n)));
      const int64_t r = row % g.in[1];
      const PoolRange windows = g.Covering(1, r);
      const int64_t first_window = (row / g.in[1] * g.out[1] + windows.begin) * n;
      const int32_t first = static_cast<int32_t>(r * g.in[2]);
      S* const buffer = reinterpret_cast<S*>(scratch);
      if constexpr (std::is_same_v<S, float>) {
        if (!covering.empty()) {
          VectorRows(ctx, g, covering, rows_at_a_time, grads, positions, first_window,
                     windows.size(), first, writer.non_temporal(), buffer, dx);
          return writer.Write(dx, row * m, m);
        }
      }
      std::fill_n(dx, m, S(0));
      for (int64_t i = 0; i < windows.size(); ++i) {
        const int64_t from = first_window + i * n;
        AddRow(ctx, g, grads.Read(from, n, buffer), positions + from, first, dx);
      }
      writer.Write(dx, row * m, m);
    });
  }

 private:
  // Computes a row of the input with vectors. The first position of the row is `first`. The row
  // gets gradients from `rows` rows of windows, which begin at element `from` of dy and are
  // processed `most` at a time. covering[i] is the range of windows that cover column i.
  static void VectorRows(const KernelContext& ctx, const PoolGeometry& g,
                         const std::vector<PoolRange>& covering, int64_t most,
                         const RowReader<S>& grads, const int32_t* positions, int64_t from,
                         int64_t rows, int32_t first, bool non_temporal, S* buffer, S* dx) {
    const int64_t n = g.out_row();
    // If there are several passes, the row is read again.
    non_temporal = non_temporal && rows <= most;
    int64_t r = 0;
    do {
      const int64_t some = std::min(rows - r, most);
      const S* const dy = grads.Read(from + r * n, some > 0 ? n : 0, buffer);
      ForPixels(ctx, g.in[2], [&](int64_t i, int64_t pixels) {
        AddToMaxima(dy, positions + from + r * n, n, some, covering.data() + i, pixels, g.depth,
                    first + static_cast<int32_t>(i), r > 0, non_temporal, dx + i * g.depth);
      });
      r += most;
    } while (r < rows && !ctx.ShouldStop());
  }

  // Adds the gradients of a row of windows to the row of the input whose first position is `first`,
  // if their maxima are in that row.
  static void AddRow(const KernelContext& ctx, const PoolGeometry& g, const S* dy,
                     const int32_t* positions, int32_t first, S* dx) {
    // For this many channels, a vector takes less time than a branch for each channel.
    constexpr int64_t kMinVector = 8;
    const int32_t columns = static_cast<int32_t>(g.in[2]);
    const int64_t depth = g.depth;
    for (int64_t o = 0; o < g.out[2]; ++o, dy += depth, positions += depth) {
      if (o % 64 == 0 && ctx.ShouldStop()) return;
      if (depth < kMinVector) {
        for (int64_t d = 0; d < depth; ++d) {
          const uint32_t column =
              static_cast<uint32_t>(positions[d]) - static_cast<uint32_t>(first);
          if (column < static_cast<uint32_t>(columns)) dx[column * depth + d] += dy[d];
        }
        continue;
      }
      const PoolRange window = g.Window(2, o);
      for (int64_t c = window.begin; c < window.end; ++c) {
        const int32_t position = first + static_cast<int32_t>(c);
        S* const to = dx + c * depth;
        for (int64_t d = 0; d < depth; ++d) to[d] += positions[d] == position ? dy[d] : S(0);
      }
    }
  }
};

// ---- MaxPool3DGrad ----

// All elements that differ from the maximum of a window by less than 1e-5 get its gradient, as in
// TensorFlow.
class MaxPool3DGrad final : public MaxPoolGradKernel<Kind::kGrad, 5> {
 public:
  absl::Status Run(KernelContext& ctx, const PoolGeometry& g, Tensor* output) const override {
    const RowReader<float> inputs(ctx.input(0));
    const RowReader<float> outputs(ctx.input(1));
    const RowReader<float> grads(ctx.input(2));
    const RowWriter<float> writer(output);
    const int64_t n = g.out_row();
    const int64_t m = g.in_row();
    const int64_t out_bytes = PaddedBytes<float>(n);
    const int64_t in_bytes = PaddedBytes<float>(m);
    const double cost = m + static_cast<double>(g.Covering(0, g.in[0] / 2).size()) *
                                static_cast<double>(g.Covering(1, g.in[1] / 2).size()) *
                                static_cast<double>(n);
    const int64_t bytes = 2 * out_bytes + 2 * in_bytes;
    return ForEachPoolRow(ctx, g.in_rows(), cost, bytes, [&](int64_t row, char* scratch) {
      float* const y_buffer = reinterpret_cast<float*>(scratch);
      float* const dy_buffer = reinterpret_cast<float*>(scratch + out_bytes);
      float* const x_buffer = reinterpret_cast<float*>(scratch + 2 * out_bytes);
      float* const dx =
          writer.Place(row * m, reinterpret_cast<float*>(scratch + 2 * out_bytes + in_bytes));
      std::fill_n(dx, m, 0.0f);
      const float* const x = inputs.Read(row * m, m, x_buffer);
      const PoolRange planes = g.Covering(0, row / g.in[1] % g.in[0]);
      const PoolRange rows = g.Covering(1, row % g.in[1]);
      const int64_t batch = row / g.in[1] / g.in[0];
      for (int64_t p = planes.begin; p < planes.end; ++p) {
        for (int64_t r = rows.begin; r < rows.end; ++r) {
          const int64_t from = ((batch * g.out[0] + p) * g.out[1] + r) * n;
          const float* const y = outputs.Read(from, n, y_buffer);
          AddRow(ctx, g, x, y, grads.Read(from, n, dy_buffer), dx);
        }
      }
      writer.Write(dx, row * m, m);
    });
  }

 private:
  static void AddRow(const KernelContext& ctx, const PoolGeometry& g, const float* x,
                     const float* y, const float* dy, float* dx) {
    constexpr float kTolerance = 1e-5f;
    const int64_t depth = g.depth;
    for (int64_t o = 0; o < g.out[2]; ++o, y += depth, dy += depth) {
      if (o % 64 == 0 && ctx.ShouldStop()) return;
      const PoolRange window = g.Window(2, o);
      for (int64_t c = window.begin; c < window.end; ++c) {
        const float* const from = x + c * depth;
        float* const to = dx + c * depth;
        for (int64_t d = 0; d < depth; ++d) {
          to[d] += std::abs(from[d] - y[d]) < kTolerance ? dy[d] : 0.0f;
        }
      }
    }
  }
};

// ---- MaxPoolGradGrad ----

// Each output is the gradient of the first element of a window that equals the maximum; 0 if none
// does.
template <typename C, int Rank>
class MaxPoolGradGrad final : public MaxPoolGradKernel<Kind::kGradGrad, Rank> {
 public:
  absl::Status Run(KernelContext& ctx, const PoolGeometry& g, Tensor* output) const override {
    const RowReader<C> inputs(ctx.input(0));
    const RowReader<C> outputs(ctx.input(1));
    const RowReader<C> grads(ctx.input(2));
    const RowWriter<C> writer(output);
    const int64_t n = g.out_row();
    const int64_t m = g.in_row();
    const int64_t out_bytes = PaddedBytes<C>(n);
    const int64_t in_bytes = PaddedBytes<C>(m);
    const double cost = 1 + g.window_rows() * static_cast<double>(std::min(g.size[2], g.in[2])) * n;
    const int64_t bytes = 2 * out_bytes + 2 * in_bytes;
    return ForEachPoolRow(ctx, g.out_rows(), cost, bytes, [&](int64_t row, char* scratch) {
      C* const y_buffer = reinterpret_cast<C*>(scratch);
      C* const x_buffer = reinterpret_cast<C*>(scratch + 2 * out_bytes);
      C* const g_buffer = reinterpret_cast<C*>(scratch + 2 * out_bytes + in_bytes);
      C* const result = writer.Place(row * n, reinterpret_cast<C*>(scratch + out_bytes));
      const C* const y = outputs.Read(row * n, n, y_buffer);
      std::fill_n(result, n, C(0));
      const PoolRange planes = g.Window(0, row / g.out[1] % g.out[0]);
      const PoolRange rows = g.Window(1, row % g.out[1]);
      const int64_t batch = row / g.out[1] / g.out[0];
      // In reverse order, so that the first match is written last.
      for (int64_t p = planes.end - 1; p >= planes.begin; --p) {
        for (int64_t r = rows.end - 1; r >= rows.begin; --r) {
          const int64_t from = ((batch * g.in[0] + p) * g.in[1] + r) * m;
          const C* const x = inputs.Read(from, m, x_buffer);
          SelectRow(ctx, g, x, grads.Read(from, m, g_buffer), y, result);
        }
      }
      writer.Write(result, row * n, n);
    });
  }

 private:
  static void SelectRow(const KernelContext& ctx, const PoolGeometry& g, const C* x, const C* grad,
                        const C* y, C* result) {
    const int64_t depth = g.depth;
    for (int64_t o = 0; o < g.out[2]; ++o, y += depth, result += depth) {
      if (o % 64 == 0 && ctx.ShouldStop()) return;
      const PoolRange window = g.Window(2, o);
      for (int64_t c = window.end - 1; c >= window.begin; --c) {
        const C* const at = x + c * depth;
        const C* const from = grad + c * depth;
        for (int64_t d = 0; d < depth; ++d) result[d] = at[d] == y[d] ? from[d] : result[d];
      }
    }
  }
};

// ---- Gradients by positions ----

// The indices that are valid for the images of a batch. Reads each element only once, because
// another thread may write to a fed tensor.
class ImageIndices {
 public:
  ImageIndices(const Tensor& argmax, const PoolGeometry& g, bool include_batch)
      : argmax_(argmax),
        indices_(argmax),
        outputs_(argmax.NumElements() / g.batch),
        image_(g.in[1] * g.in_row()),
        include_batch_(include_batch) {}

  // Returns element i as an index within its image; -1 if it is out of range.
  int64_t At(int64_t i) const {
    const int64_t index = indices_[i];
    const int64_t first = First(i);
    return index < first || index - first >= image_ ? -1 : index - first;
  }
  // Returns the error for an element that is out of range.
  absl::Status Error(int64_t i) const {
    return errors::InvalidArgument(ElementName("argmax", argmax_.shape(), i), " is ", indices_[i],
                                   ", expected an index of the image from ", First(i), " to ",
                                   First(i) + image_ - 1);
  }

 private:
  int64_t First(int64_t i) const { return include_batch_ ? i / outputs_ * image_ : 0; }

  const Tensor& argmax_;
  const IndexReader indices_;
  const int64_t outputs_;
  const int64_t image_;
  const bool include_batch_;
};

template <typename C>
class MaxPoolGradWithArgmax final : public MaxPoolGradKernel<Kind::kGradWithArgmax, 4> {
 public:
  using S = WrappingType<C>;

  absl::Status Run(KernelContext& ctx, const PoolGeometry& g, Tensor* output) const override {
    const Tensor& argmax = ctx.input(2);
    const int64_t images = g.batch;
    const int64_t inputs = output->NumElements() / images;
    const int64_t outputs = argmax.NumElements() / images;
    // Sums are accumulated in S, even if the output has 16-bit floats.
    Tensor sums = *output;
    if (DataTypeSize(output->dtype()) != sizeof(S)) {
      GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_FLOAT, output->shape(), &sums));
    }
    const ImageIndices indices(argmax, g, include_batch_in_index());
    FirstBadIndex bad;
    const RowReader<S> grads(ctx.input(1));
    const RowWriter<S> writer(output);
    S* const to = static_cast<S*>(sums.raw_data());
    ParallelFor(ctx, images, BlockSizeForCost(inputs + 2.0 * outputs),
                [&](int64_t begin, int64_t end) {
                  for (int64_t b = begin; b < end && !ctx.ShouldStop(); ++b) {
                    S* const image = to + b * inputs;
                    std::fill_n(image, inputs, S(0));
                    constexpr int64_t kChunk = 1024;
                    S buffer[kChunk];
                    for (int64_t i = 0; i < outputs; i += kChunk) {
                      const int64_t n = std::min(kChunk, outputs - i);
                      const S* const dy = grads.Read(b * outputs + i, n, buffer);
                      for (int64_t j = 0; j < n; ++j) {
                        const int64_t index = indices.At(b * outputs + i + j);
                        if (index < 0) return bad.Found(b * outputs + i + j);
                        image[index] += dy[j];
                      }
                    }
                    writer.Write(image, b * inputs, inputs);
                  }
                });
    return bad.any() ? indices.Error(bad.first()) : absl::OkStatus();
  }
};

// Moves elements without interpreting them. E has the size of an element.
template <typename E>
class MaxPoolGradGradWithArgmax final : public MaxPoolGradKernel<Kind::kGradGradWithArgmax, 4> {
 public:
  absl::Status Run(KernelContext& ctx, const PoolGeometry& g, Tensor* output) const override {
    const Tensor& argmax = ctx.input(2);
    const ImageIndices indices(argmax, g, include_batch_in_index());
    FirstBadIndex bad;
    const int64_t inputs = ctx.input(1).NumElements() / g.batch;
    const int64_t outputs = argmax.NumElements() / g.batch;
    const E* const from = static_cast<const E*>(ctx.input(1).raw_data());
    E* const to = static_cast<E*>(output->raw_data());
    ParallelFor(ctx, argmax.NumElements(), BlockSizeForCost(2.0), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t index = indices.At(i);
        if (index < 0) return bad.Found(i);
        to[i] = from[i / outputs * inputs + index];
      }
    });
    return bad.any() ? indices.Error(bad.first()) : absl::OkStatus();
  }
};

// ---- Definitions ----

constexpr char kTypes[] =
    "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}";
constexpr char kSizesDoc[] = R"(ksize: The size of the windows, as in the forward op.
strides: The distance between neighboring windows, as in the forward op.
)";
constexpr char kPaddingDoc[] = "padding: The padding, as in the forward op.\n";
constexpr char kFormatDoc[] =
    R"(data_format: The order of the dimensions. Unlike in TensorFlow, the CPU accepts channels first.
)";
constexpr char kTypeDoc[] = "T: The type of the elements.";
constexpr char kGradInputsDoc[] = R"(orig_input: The input of the forward op.
orig_output: The output of the forward op.
grad: The gradients with respect to the output.
)";
constexpr char kGradGradInputsDoc[] = R"(orig_input: The input of the forward op.
orig_output: The output of the forward op.
grad: The gradients with respect to the output of the gradient op, of the shape of `orig_input`.
)";
constexpr char kGradDoc[] = R"(Computes the gradient of max pooling.

The gradient of a window goes to its maximum: the first of equal elements in the order of rows and
columns. `orig_output` is not read.

)";
constexpr char kGradGradDoc[] = R"(Computes the gradient of the gradient of max pooling.

The output of a window is the gradient of the first element of the window that equals the maximum.

)";

void DefineGrad(Registry& registry) {
  registry.Op("MaxPoolGrad")
      .Group("nn_ops")
      .Input("orig_input: T")
      .Input("orig_output: T")
      .Input("grad: T")
      .Output("output: T")
      .Attr("ksize: list(int) >= 4")
      .Attr("strides: list(int) >= 4")
      .Attr("padding: {'SAME', 'VALID', 'EXPLICIT'}")
      .Attr("explicit_paddings: list(int) = []")
      .Attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
      .Attr(absl::StrCat(kTypes, " = DT_FLOAT"))
      .Shape(GradShape<Kind::kGrad, 4>)
      .Doc(absl::StrCat(
          kGradDoc, kGradInputsDoc, "output: The gradients with respect to the input.\n", kSizesDoc,
          kPaddingDoc, "explicit_paddings: The padding before and after each dimension.\n",
          kFormatDoc, kTypeDoc));
  registry.Op("MaxPoolGradV2")
      .Group("nn_ops")
      .Input("orig_input: T")
      .Input("orig_output: T")
      .Input("grad: T")
      .Input("ksize: int32")
      .Input("strides: int32")
      .Output("output: T")
      .Attr("padding: {'SAME', 'VALID'}")
      .Attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
      .Attr(absl::StrCat(kTypes, " = DT_FLOAT"))
      .Shape(GradShape<Kind::kGrad, 4>)
      .Doc(absl::StrCat(kGradDoc, kGradInputsDoc, kSizesDoc,
                        "output: The gradients with respect to the input.\n", kPaddingDoc,
                        kFormatDoc, kTypeDoc));
  registry.Op("MaxPool3DGrad")
      .Group("nn_ops")
      .Input("orig_input: TInput")
      .Input("orig_output: TInput")
      .Input("grad: T")
      .Output("output: T")
      .Attr("ksize: list(int) >= 5")
      .Attr("strides: list(int) >= 5")
      .Attr("padding: {'SAME', 'VALID'}")
      .Attr("data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'")
      .Attr("T: {half, bfloat16, float} = DT_FLOAT")
      .Attr("TInput: {half, bfloat16, float} = DT_FLOAT")
      .Shape(GradShape<Kind::kGrad, 5>)
      .Doc(absl::StrCat(R"(Computes the gradient of MaxPool3D.

The gradient of a window goes to each of its elements that differs from `orig_output` by less than
1e-5, as in TensorFlow.

)",
                        kGradInputsDoc, "output: The gradients with respect to the input.\n",
                        kSizesDoc, kPaddingDoc, kFormatDoc,
                        "T: The type of the gradients.\nTInput: The type of the elements."));
}

void DefineGradGrad(Registry& registry) {
  registry.Op("MaxPoolGradGrad")
      .Group("nn_ops")
      .Input("orig_input: T")
      .Input("orig_output: T")
      .Input("grad: T")
      .Output("output: T")
      .Attr("ksize: list(int) >= 4")
      .Attr("strides: list(int) >= 4")
      .Attr("padding: {'SAME', 'VALID'}")
      .Attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
      .Attr(kTypes)
      .Shape(GradShape<Kind::kGradGrad, 4>)
      .Doc(absl::StrCat(kGradGradDoc, kGradGradInputsDoc,
                        "output: The gradients with respect to `grad` of MaxPoolGrad.\n", kSizesDoc,
                        kPaddingDoc, kFormatDoc, kTypeDoc));
  registry.Op("MaxPoolGradGradV2")
      .Group("nn_ops")
      .Input("orig_input: T")
      .Input("orig_output: T")
      .Input("grad: T")
      .Input("ksize: int32")
      .Input("strides: int32")
      .Output("output: T")
      .Attr("padding: {'SAME', 'VALID'}")
      .Attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
      .Attr(kTypes)
      .Shape(GradShape<Kind::kGradGrad, 4>)
      .Doc(absl::StrCat(kGradGradDoc, kGradGradInputsDoc, kSizesDoc,
                        "output: The gradients with respect to `grad` of MaxPoolGradV2.\n",
                        kPaddingDoc, kFormatDoc, kTypeDoc));
  registry.Op("MaxPool3DGradGrad")
      .Group("nn_ops")
      .Input("orig_input: T")
      .Input("orig_output: T")
      .Input("grad: T")
      .Output("output: T")
      .Attr("ksize: list(int) >= 5")
      .Attr("strides: list(int) >= 5")
      .Attr("padding: {'SAME', 'VALID'}")
      .Attr("data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'")
      .Attr(kTypes)
      .Shape(GradShape<Kind::kGradGrad, 5>)
      .Doc(absl::StrCat(kGradGradDoc, kGradGradInputsDoc,
                        "output: The gradients with respect to `grad` of MaxPool3DGrad.\n",
                        kSizesDoc, kPaddingDoc, kFormatDoc, kTypeDoc));
}

void DefineWithArgmax(Registry& registry) {
  constexpr char kIncludeDoc[] =
      "include_batch_in_index: True if indices count from the first image of the batch.\n"
      "Targmax: The type of `argmax`.\n";
  registry.Op("MaxPoolGradWithArgmax")
      .Group("nn_ops")
      .Input("input: T")
      .Input("grad: T")
      .Input("argmax: Targmax")
      .Output("output: T")
      .Attr("ksize: list(int) >= 4")
      .Attr("strides: list(int) >= 4")
      .Attr("padding: {'SAME', 'VALID'}")
      .Attr("include_batch_in_index: bool = false")
      .Attr("Targmax: {int32, int64}")
      .Attr(kTypes)
      .Shape(GradShape<Kind::kGradWithArgmax, 4>)
      .Doc(absl::StrCat(R"(Computes the gradient of MaxPoolWithArgmax.

input: The input of MaxPoolWithArgmax. Only its shape is read.
grad: The gradients with respect to the maxima.
argmax: The indices of the maxima. Each must be an index of the image of its window.
output: The gradients with respect to the input.
)",
                        kSizesDoc, kPaddingDoc, kIncludeDoc, kTypeDoc));
  registry.Op("MaxPoolGradGradWithArgmax")
      .Group("nn_ops")
      .Input("input: T")
      .Input("grad: T")
      .Input("argmax: Targmax")
      .Output("output: T")
      .Attr("ksize: list(int) >= 4")
      .Attr("strides: list(int) >= 4")
      .Attr("padding: {'SAME', 'VALID'}")
      .Attr("include_batch_in_index: bool = false")
      .Attr("Targmax: {int32, int64}")
      .Attr(kTypes)
      .Shape(GradShape<Kind::kGradGradWithArgmax, 4>)
      .Doc(absl::StrCat(R"(Computes the gradient of MaxPoolGradWithArgmax.

TensorFlow's CPU has no kernel for this op.

input: The input of MaxPoolWithArgmax. Only its shape is read.
grad: The gradients with respect to the output of MaxPoolGradWithArgmax, of the shape of `input`.
argmax: The indices of the maxima. Each must be an index of the image of its window.
output: The gradient of the maximum of each window.
)",
                        kSizesDoc, kPaddingDoc, kIncludeDoc, kTypeDoc));
}

}  // namespace

void Register(Registry& registry) {
  DefineGrad(registry);
  DefineGradGrad(registry);
  DefineWithArgmax(registry);
  const auto add = [&](auto tag, const DataTypeVector& types) {
    using C = typename decltype(tag)::type;
    for (const char* const op : {"MaxPoolGrad", "MaxPoolGradV2"}) {
      registry.Kernel(op, MakeKernel<MaxPoolGrad<C>>).Types("T", types);
    }
    for (const char* const op : {"MaxPoolGradGrad", "MaxPoolGradGradV2"}) {
      registry.Kernel(op, MakeKernel<MaxPoolGradGrad<C, 4>>).Types("T", types);
    }
    registry.Kernel("MaxPool3DGradGrad", MakeKernel<MaxPoolGradGrad<C, 5>>).Types("T", types);
  };
  const DataTypeVector floats = {DT_FLOAT, DT_HALF, DT_BFLOAT16};
  add(TypeTag<float>(), floats);
  add(TypeTag<double>(), {DT_DOUBLE});
  ForEachType(IntegerTypes(), [&](auto tag) {
    using C = typename decltype(tag)::type;
    add(tag, {DataTypeToEnum<C>::value});
  });
  registry.Kernel("MaxPool3DGrad", MakeKernel<MaxPool3DGrad>)
      .Types("T", floats)
      .Types("TInput", floats);
  // Unsigned integers add like signed integers.
  constexpr char kOp[] = "MaxPoolGradWithArgmax";
  registry.Kernel(kOp, MakeKernel<MaxPoolGradWithArgmax<float>>).Types("T", floats);
  registry.Kernel(kOp, MakeKernel<MaxPoolGradWithArgmax<double>>).Type<double>("T");
  registry.Kernel(kOp, MakeKernel<MaxPoolGradWithArgmax<uint8_t>>).Types("T", {DT_INT8, DT_UINT8});
  registry.Kernel(kOp, MakeKernel<MaxPoolGradWithArgmax<uint16_t>>)
      .Types("T", {DT_INT16, DT_UINT16});
  registry.Kernel(kOp, MakeKernel<MaxPoolGradWithArgmax<uint32_t>>)
      .Types("T", {DT_INT32, DT_UINT32});
  registry.Kernel(kOp, MakeKernel<MaxPoolGradWithArgmax<uint64_t>>)
      .Types("T", {DT_INT64, DT_UINT64});
  constexpr char kGradGradOp[] = "MaxPoolGradGradWithArgmax";
  registry.Kernel(kGradGradOp, MakeKernel<MaxPoolGradGradWithArgmax<uint8_t>>)
      .Types("T", {DT_INT8, DT_UINT8});
  registry.Kernel(kGradGradOp, MakeKernel<MaxPoolGradGradWithArgmax<uint16_t>>)
      .Types("T", {DT_INT16, DT_UINT16, DT_HALF, DT_BFLOAT16});
  registry.Kernel(kGradGradOp, MakeKernel<MaxPoolGradGradWithArgmax<uint32_t>>)
      .Types("T", {DT_INT32, DT_UINT32, DT_FLOAT});
  registry.Kernel(kGradGradOp, MakeKernel<MaxPoolGradGradWithArgmax<uint64_t>>)
      .Types("T", {DT_INT64, DT_UINT64, DT_DOUBLE});
}

}  // namespace gradflow::max_pool_grad
