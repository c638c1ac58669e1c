#include "gradflow/ops/image/resample.h"

#include <hwy/cache_control.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>
#include <vector>

#include "gradflow/core/parallel.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/elementwise_simd.h"
#include "gradflow/ops/common/simd.h"
#include "gradflow/ops/image/resample_simd.h"

namespace gradflow {
namespace {

constexpr int64_t kMaxSize = std::numeric_limits<int32_t>::max();
// There are few blocks of rows, so that their scratch memory is small compared to the tensors.
constexpr int64_t kMaxBlocks = 64;

template <typename T>
void ConvertToFloat(const void* from, int64_t i, int64_t n, float* to) {
  const T* const source = static_cast<const T*>(from) + i;
  for (int64_t k = 0; k < n; ++k) to[k] = static_cast<float>(source[k]);
}

}  // namespace

const DataTypeVector& ImageTypes() {
  static const auto* const types =
      new DataTypeVector{DT_INT8,  DT_UINT8, DT_INT16, DT_UINT16, DT_INT32,
                         DT_INT64, DT_HALF,  DT_FLOAT, DT_DOUBLE, DT_BFLOAT16};
  return *types;
}

const float* FloatReader::Read(int64_t i, int64_t n, float* buffer) const {
  switch (dtype_) {
    case DT_FLOAT:
      return reinterpret_cast<const float*>(data_) + i;
    case DT_HALF:
      Float16ToFloat(ElementType::kHalf, data_ + 2 * i, buffer, n);
      break;
    case DT_BFLOAT16:
      Float16ToFloat(ElementType::kBfloat16, data_ + 2 * i, buffer, n);
      break;
    case DT_DOUBLE:
      ConvertToFloat<double>(data_, i, n, buffer);
      break;
    case DT_INT8:
      ConvertToFloat<int8_t>(data_, i, n, buffer);
      break;
    case DT_UINT8:
      ConvertToFloat<uint8_t>(data_, i, n, buffer);
      break;
    case DT_INT16:
      ConvertToFloat<int16_t>(data_, i, n, buffer);
      break;
    case DT_UINT16:
      ConvertToFloat<uint16_t>(data_, i, n, buffer);
      break;
    case DT_INT32:
      ConvertToFloat<int32_t>(data_, i, n, buffer);
      break;
    case DT_INT64:
      ConvertToFloat<int64_t>(data_, i, n, buffer);
      break;
    default:
      std::fill_n(buffer, n, 0.0f);
  }
  return buffer;
}

absl::Status ResizeAttrs::CheckOneIsFalse() const {
  if (!align_corners || !half_pixel_centers) return absl::OkStatus();
  return errors::InvalidArgument("align_corners and half_pixel_centers must not both be true");
}

absl::StatusOr<PartialTensorShape> ResizedShape(ShapeContext& c, int size) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 4));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(size, 1));
  std::vector<int64_t> sizes = {-1, -1};
  GRADFLOW_ASSIGN_OR_RETURN(const bool known, c.IntsFromInput(size, &sizes));
  GRADFLOW_RETURN_IF_ERROR(CheckDim(c, size, 0, 2));
  for (const int64_t value : sizes) {
    if (known && value < 0) {
      return errors::InvalidArgument(c.input_name(size), " must be positive, but is [", sizes[0],
                                     ",", sizes[1], "]");
    }
  }
  return PartialTensorShape::Make({c.Dim(0, 0), sizes[0], sizes[1], c.Dim(0, 3)});
}

absl::Status ResizeShape(ShapeContext& c) {
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, ResizedShape(c, 1));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status ResizeAttrsShape(ShapeContext& c) {
  ResizeAttrs attrs;
  GRADFLOW_RETURN_IF_ERROR(attrs.Read(c));
  return ResizeShape(c);
}

absl::Status ResizeGradShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 4));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(1, 4));
  PartialTensorShape shape = c.input(1);
  if (shape.unknown_rank()) shape = PartialTensorShape::UnknownOfRank(4);
  for (const int d : {0, 3}) {
    if (shape.dim_size(d) < 0) shape.set_dim(d, c.Dim(0, d));
  }
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status CheckResize(const KernelContext& ctx, int size, TensorShape* shape) {
  // Programs may expect TensorFlow's wording, which calls size shape_t.
  const TensorShape& images = ctx.input(0).shape();
  if (images.dims() != 4) {
    return errors::InvalidArgument("input must be 4-dimensional, but images has shape ",
                                   images.DebugString());
  }
  const TensorShape& size_shape = ctx.input(size).shape();
  if (size_shape.dims() != 1) {
    return errors::InvalidArgument("shape_t must be 1-dimensional, but size has shape ",
                                   size_shape.DebugString());
  }
  if (size_shape.num_elements() != 2) {
    return errors::InvalidArgument("shape_t must have two elements, but size has shape ",
                                   size_shape.DebugString());
  }
  GRADFLOW_ASSIGN_OR_RETURN(const DimVector sizes, ctx.Ints(size, "size"));
  if (sizes[0] <= 0 || sizes[1] <= 0) {
    return errors::InvalidArgument("output dimensions must be positive, but size is [", sizes[0],
                                   ",", sizes[1], "]");
  }
  for (int d = 1; d < 4; ++d) {
    if (images.dim_size(d) < 1 || images.dim_size(d) >= kMaxSize) {
      return errors::InvalidArgument("images must have 1 to ", kMaxSize - 1,
                                     " rows, columns and channels, but have shape ",
                                     images.DebugString());
    }
  }
  GRADFLOW_ASSIGN_OR_RETURN(
      *shape, TensorShape::Make({images.dim_size(0), sizes[0], sizes[1], images.dim_size(3)}));
  return absl::OkStatus();
}

absl::Status CheckResizeGrad(const KernelContext& ctx) {
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckRank(0, "grads", 4));
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckRank(1, "original_image", 4));
  const TensorShape& grads = ctx.input(0).shape();
  const TensorShape& images = ctx.input(1).shape();
  for (int d = 0; d < 4; ++d) {
    const bool differs = d == 1 || d == 2;
    if (!differs && grads.dim_size(d) != images.dim_size(d)) {
      return errors::InvalidArgument("grads has shape ", grads.DebugString(),
                                     ", expected the batch and channels of original_image ",
                                     images.DebugString());
    }
    if (differs && (std::min(grads.dim_size(d), images.dim_size(d)) < 1 ||
                    std::max(grads.dim_size(d), images.dim_size(d)) >= kMaxSize)) {
      return errors::InvalidArgument("grads and original_image must have 1 to ", kMaxSize - 1,
                                     " rows and columns, but have shapes ", grads.DebugString(),
                                     " and ", images.DebugString());
    }
  }
  return absl::OkStatus();
}

absl::Status Taps::Allocate(KernelContext& ctx, int64_t in, int64_t out, int64_t count) {
  in_ = in;
  out_ = out;
  count_ = count;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_INT32, {out, count}, &index_tensor_));
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_FLOAT, {out, count}, &weight_tensor_));
  indices_ = static_cast<int32_t*>(index_tensor_.raw_data());
  weights_ = static_cast<float*>(weight_tensor_.raw_data());
  return absl::OkStatus();
}

namespace {

// The loop over a window with more taps checks for a stop of the run.
constexpr int64_t kWideTaps = 12;

// Resamples the columns of a row. Returns early if the run is stopped.
void ResampleColumns(const KernelContext& ctx, const Taps& columns, int64_t channels,
                     const float* x, float* y) {
  const int64_t taps = columns.count();
  const Weighting weighting = columns.is_linear ? Weighting::kLinear
                              : taps == 4       ? Weighting::kFour
                                                : Weighting::kDouble;
  const int64_t some = taps > kWideTaps ? 1 : columns.out();
  for (int64_t i = 0; i < columns.out(); i += some) {
    if (taps > kWideTaps && ctx.ShouldStop()) return;
    ResamplePixels(weighting, {x, columns.in(), channels}, columns.indices(i), columns.weights(i),
                   taps, some, y + i * channels);
  }
}

// Resamples the rows of one block of the output. Keeps the most recent input rows, resampled along
// their columns, for the output rows that share them.
class RowCache {
 public:
  // Returns the number of rows to keep: the rows of a window, unless `caches` would take more
  // memory than the images.
  static int64_t Slots(const Taps& rows, int64_t out_row, int64_t caches, int64_t elements) {
    const double floats = static_cast<double>(rows.count()) * static_cast<double>(out_row) *
                          static_cast<double>(caches);
    constexpr double kSmall = 1 << 20;
    const bool fits = floats <= std::max(kSmall, static_cast<double>(elements));
    return rows.count() <= kWideTaps || fits ? rows.count() : 1;
  }

  RowCache(const KernelContext& ctx, const FloatReader& reader, const Taps& rows,
           const Taps& columns, int64_t channels, int64_t slots, float* scratch)
      : ctx_(ctx),
        reader_(reader),
        rows_(rows),
        columns_(columns),
        channels_(channels),
        in_row_(columns.in() * channels),
        out_row_(columns.out() * channels),
        buffer_(scratch),
        slots_(scratch + in_row_),
        held_(static_cast<size_t>(slots), -1) {}

  // Returns row `row` of all input rows, resampled along its columns.
  const float* Row(int64_t row) {
    const size_t slot = static_cast<size_t>(row) % held_.size();
    float* const to = slots_ + static_cast<int64_t>(slot) * out_row_;
    if (held_[slot] != row) {
      const float* const x = reader_.Read(row * in_row_, in_row_, buffer_);
      ResampleColumns(ctx_, columns_, channels_, x, to);
      held_[slot] = row;
    }
    return to;
  }

  // Computes row i of the image whose first input row is `first`.
  void Output(int64_t first, int64_t i, bool non_temporal, float* y) {
    const int32_t* const indices = rows_.indices(i);
    const float* const weights = rows_.weights(i);
    if (rows_.is_linear) {
      const float* const a = Row(first + indices[0]);
      // Equal rows share a slot.
      const float* const b = Row(first + indices[1]);
      return InterpolateRows(a, b, weights[1], out_row_, non_temporal, y);
    }
    // A wide window may have fewer slots than rows, so its rows are added one by one. Other rows
    // are added together.
    const bool is_wide = rows_.count() > kWideTaps;
    std::array<const float*, kWideTaps> some_rows;
    std::array<float, kWideTaps> some_weights;
    int64_t count = 0;
    for (int64_t t = 0; t < rows_.count(); ++t) {
      if (t > 0 && weights[t] == 0) continue;
      if (is_wide && ctx_.ShouldStop()) return;
      const float* const row = Row(first + indices[t]);
      if (is_wide) {
        AddRows(&row, weights + t, 1, t > 0, out_row_, /*non_temporal=*/false, y);
        continue;
      }
      some_rows[count] = row;
      some_weights[count++] = weights[t];
    }
    if (is_wide) return;
    AddRows(some_rows.data(), some_weights.data(), count, /*add=*/false, out_row_, non_temporal, y);
  }

 private:
  const KernelContext& ctx_;
  const FloatReader& reader_;
  const Taps& rows_;
  const Taps& columns_;
  const int64_t channels_;
  const int64_t in_row_;
  const int64_t out_row_;
  float* const buffer_;
  float* const slots_;
  // The input row that each slot holds.
  std::vector<int64_t> held_;
};

}  // namespace

absl::Status Resample(KernelContext& ctx, const Tensor& images, const Taps& rows,
                      const Taps& columns, Tensor* output) {
  if (output->NumElements() == 0) return absl::OkStatus();
  const int64_t channels = images.dim_size(3);
  const int64_t in_row = columns.in() * channels;
  const int64_t out_row = columns.out() * channels;
  const int64_t total = images.dim_size(0) * rows.out();
  const double cost = 0.3 * static_cast<double>(in_row) +
                      static_cast<double>(out_row) * static_cast<double>(rows.count()) +
                      static_cast<double>(out_row) * static_cast<double>(columns.count());
  const int64_t block = std::max(BlockSizeForCost(cost), NumBlocks(total, kMaxBlocks));
  const int64_t slots = RowCache::Slots(rows, out_row, NumBlocks(total, block),
                                        images.NumElements() + output->NumElements());
  const int64_t floats = (in_row + slots * out_row + 15) / 16 * 16;
  Tensor scratch;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_FLOAT, {NumBlocks(total, block), floats}, &scratch));
  float* const buffers = scratch.flat<float>().data();
  const FloatReader reader(images);
  float* const y = output->flat<float>().data();
  const bool non_temporal = ShouldUseNonTemporalStores(
      y, /*over_input=*/false, total * out_row * static_cast<int64_t>(sizeof(float)),
      out_row * static_cast<int64_t>(sizeof(float)));
  ParallelFor(ctx, total, block, [&](int64_t begin, int64_t end) {
    RowCache cache(ctx, reader, rows, columns, channels, slots, buffers + begin / block * floats);
    for (int64_t r = begin; r < end && !ctx.ShouldStop(); ++r) {
      cache.Output(r / rows.out() * rows.in(), r % rows.out(), non_temporal, y + r * out_row);
    }
    if (non_temporal) hwy::FlushStream();
  });
  return absl::OkStatus();
}

absl::Status ResampleGrad(KernelContext& ctx, const Tensor& grads, const Taps& rows,
                          const Taps& columns, Tensor* output) {
  if (output->NumElements() == 0) return absl::OkStatus();
  const int64_t channels = grads.dim_size(3);
  const int64_t in_row = columns.in() * channels;
  const int64_t out_row = columns.out() * channels;
  const int64_t taps = rows.count();
  // The taps of each input row, in the order of the output rows: entries starts[i] to starts[i +
  // 1].
  Tensor starts_tensor;
  Tensor entries_tensor;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_INT64, {rows.in() + 2}, &starts_tensor));
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_INT64, {rows.out() * taps}, &entries_tensor));
  int64_t* const starts = starts_tensor.flat<int64_t>().data();
  int64_t* const entries = entries_tensor.flat<int64_t>().data();
  std::fill_n(starts, rows.in() + 2, int64_t{0});
  const int32_t* const indices = rows.indices(0);
  const float* const weights = rows.weights(0);
  for (int64_t e = 0; e < rows.out() * taps; ++e) ++starts[indices[e] + 2];
  for (int64_t i = 0; i < rows.in(); ++i) starts[i + 2] += starts[i + 1];
  for (int64_t e = 0; e < rows.out() * taps; ++e) entries[starts[indices[e] + 1]++] = e;

  const int64_t total = grads.dim_size(0) * rows.in();
  const double per_row = static_cast<double>(rows.out() * taps) / static_cast<double>(rows.in());
  const double cost = static_cast<double>(in_row) + static_cast<double>(out_row) * per_row +
                      static_cast<double>(out_row * columns.count());
  const int64_t block = std::max(BlockSizeForCost(cost), NumBlocks(total, kMaxBlocks));
  Tensor scratch;
  GRADFLOW_RETURN_IF_ERROR(
      ctx.AllocateTemp(DT_DOUBLE, {NumBlocks(total, block), in_row + out_row}, &scratch));
  double* const buffers = scratch.flat<double>().data();
  const float* const g = grads.flat<float>().data();
  ParallelFor(ctx, total, block, [&](int64_t begin, int64_t end) {
    double* const sums = buffers + begin / block * (in_row + out_row);
    double* const dx = sums + out_row;
    for (int64_t r = begin; r < end && !ctx.ShouldStop(); ++r) {
      const int64_t row = r % rows.in();
      const float* const image = g + r / rows.in() * rows.out() * out_row;
      std::fill_n(sums, out_row, 0.0);
      for (int64_t e = starts[row]; e < starts[row + 1]; ++e) {
        const float weight = weights[entries[e]];
        const float* const dy = image + entries[e] / taps * out_row;
        if (weight == 0) continue;
        if (e % 64 == 0 && ctx.ShouldStop()) return;
        AddScaledFloats(dy, weight, out_row, sums);
      }
      std::fill_n(dx, in_row, 0.0);
      const int64_t some = columns.count() > kWideTaps ? 1 : columns.out();
      for (int64_t i = 0; i < columns.out(); i += some) {
        if (columns.count() > kWideTaps && ctx.ShouldStop()) return;
        DistributePixels(sums + i * channels, columns.indices(i), columns.weights(i),
                         columns.count(), some, channels, dx);
      }
      DispatchType(FloatingTypes(), output->dtype(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        T* const to = static_cast<T*>(output->raw_data()) + r * in_row;
        for (int64_t k = 0; k < in_row; ++k) to[k] = static_cast<T>(dx[k]);
      });
    }
  });
  return absl::OkStatus();
}

}  // namespace gradflow
