// Gather, GatherV2 and ResourceGather.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/core/variable.h"
#include "gradflow/ops/array/nd_indices.h"
#include "gradflow/ops/common/indices.h"
#include "gradflow/ops/common/strided_copy.h"
#include "gradflow/ops/common/tile_copy.h"
#include "gradflow/proto/op_def.pb.h"

namespace gradflow::gather {
namespace {

// The axis and the number of batch dimensions. Both are nonnegative and checked against the ranks.
struct GatherAxes {
  int axis = 0;
  int batch_dims = 0;
};

// Returns `batch_dims`; adds the rank of the indices if it is negative.
absl::StatusOr<int> ResolveBatchDims(int64_t batch_dims, int indices_rank) {
  if (batch_dims < -indices_rank || batch_dims > indices_rank) {
    return errors::InvalidArgument("Expected batch_dims in the range [", -indices_rank, ", ",
                                   indices_rank, "], but got ", batch_dims);
  }
  return static_cast<int>(batch_dims < 0 ? batch_dims + indices_rank : batch_dims);
}

absl::StatusOr<GatherAxes> ResolveAxes(int params_rank, int indices_rank, int64_t axis,
                                       int64_t batch_dims) {
  GatherAxes axes;
  GRADFLOW_ASSIGN_OR_RETURN(axes.axis, CanonicalAxis("axis", axis, params_rank));
  GRADFLOW_ASSIGN_OR_RETURN(axes.batch_dims, ResolveBatchDims(batch_dims, indices_rank));
  if (axes.batch_dims > axes.axis) {
    return errors::InvalidArgument("batch_dims ", axes.batch_dims, " must be at most axis ",
                                   axes.axis);
  }
  return axes;
}

// Returns the shape params[:axis] + indices[batch_dims:] + params[axis + 1:].
// REQUIRES: both ranks are known
absl::StatusOr<PartialTensorShape> GatherShape(const PartialTensorShape& params,
                                               const PartialTensorShape& indices,
                                               const GatherAxes& axes) {
  DimVector dims;
  for (int d = 0; d < axes.batch_dims; ++d) {
    const int64_t a = params.dim_size(d);
    const int64_t b = indices.dim_size(d);
    if (a >= 0 && b >= 0 && a != b) {
      return errors::InvalidArgument("params, of shape ", params.DebugString(),
                                     ", and indices, of ", "shape ", indices.DebugString(),
                                     ", must agree in the first ", axes.batch_dims,
                                     " dimensions, the batch_dims");
    }
    dims.push_back(std::max(a, b));
  }
  for (int d = axes.batch_dims; d < axes.axis; ++d) dims.push_back(params.dim_size(d));
  for (int d = axes.batch_dims; d < indices.dims(); ++d) dims.push_back(indices.dim_size(d));
  for (int d = axes.axis + 1; d < params.dims(); ++d) dims.push_back(params.dim_size(d));
  return PartialTensorShape::Make(dims);
}

absl::Status GatherV1Shape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRankAtLeast(0, 1));
  if (c.input(0).unknown_rank() || c.input(1).unknown_rank()) return absl::OkStatus();
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, GatherShape(c.input(0), c.input(1), {0, 0}));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status GatherShapeFn(ShapeContext& c) {
  int64_t batch_dims;
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("batch_dims", &batch_dims));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRankAtLeast(0, 1));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(2, 0));
  std::vector<int64_t> axis;
  GRADFLOW_ASSIGN_OR_RETURN(const bool known, c.IntsFromInput(2, &axis));
  const PartialTensorShape& params = c.input(0);
  const PartialTensorShape& indices = c.input(1);
  if (params.unknown_rank() || indices.unknown_rank()) return absl::OkStatus();
  if (!known) {
    GRADFLOW_ASSIGN_OR_RETURN(const int batch_rank, ResolveBatchDims(batch_dims, indices.dims()));
    const int rank = params.dims() + indices.dims() - 1 - batch_rank;
    // batch_dims > axis becomes an error once the axis is known.
    if (rank <= kMaxDims) c.set_output(0, PartialTensorShape::UnknownOfRank(rank));
    return absl::OkStatus();
  }
  GRADFLOW_ASSIGN_OR_RETURN(const GatherAxes axes,
                            ResolveAxes(params.dims(), indices.dims(), axis[0], batch_dims));
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, GatherShape(params, indices, axes));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status ResourceGatherShape(ShapeContext& c) {
  int64_t batch_dims;
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("batch_dims", &batch_dims));
  const PartialTensorShape params = c.variable_shape(0);
  const PartialTensorShape& indices = c.input(1);
  GRADFLOW_RETURN_IF_ERROR(CheckRankAtLeast("params", params, 1));
  if (params.unknown_rank() || indices.unknown_rank()) return absl::OkStatus();
  GRADFLOW_ASSIGN_OR_RETURN(const int axis, ResolveBatchDims(batch_dims, indices.dims()));
  GRADFLOW_ASSIGN_OR_RETURN(const GatherAxes axes,
                            ResolveAxes(params.dims(), indices.dims(), axis, axis));
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, GatherShape(params, indices, axes));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

// ---- The kernel ----

// The sizes of params [batch, outer, limit, inner], indices [batch, count], and the output [batch,
// outer, count, inner].
struct GatherSizes {
  int64_t batch = 1;
  int64_t outer = 1;
  int64_t limit = 1;
  int64_t inner = 1;
  int64_t count = 1;
};

// The selected runs of `inner` elements, in the order of the output.
template <typename E, typename Index>
class GatheredRuns {
 public:
  GatheredRuns(const GatherSizes& sizes, const Tensor& params, const Tensor& indices)
      : sizes_(sizes),
        from_(static_cast<const E*>(params.raw_data())),
        picks_(indices.flat<Index>().data()) {}

  int64_t size() const { return sizes_.batch * sizes_.outer * sizes_.count; }
  // True if all runs are single elements of one row.
  bool are_elements() const { return sizes_.batch * sizes_.outer * sizes_.inner == 1; }
  // Sets to[i - begin] to the element of run i, for i in [begin, end). REQUIRES: are_elements()
  void CopyElements(int64_t begin, int64_t end, E* to) const {
    for (int64_t i = begin; i < end; ++i) to[i - begin] = from_[picks_[i]];
  }
  // The runs of one row of params.
  int64_t num_rows() const { return sizes_.batch * sizes_.outer; }
  int64_t per_row() const { return sizes_.count; }
  const E* RowOf(int64_t row) const { return from_ + row * sizes_.limit * sizes_.inner; }
  const Index* PicksOf(int64_t row) const { return picks_ + row / sizes_.outer * sizes_.count; }
  // The number of bytes of params that the runs read.
  int64_t bytes() const {
    return num_rows() * sizes_.limit * sizes_.inner * static_cast<int64_t>(sizeof(E));
  }
  const E* operator[](int64_t i) const {
    if (sizes_.batch * sizes_.outer == 1) return from_ + picks_[i] * sizes_.inner;
    const int64_t row = i / sizes_.count;
    const int64_t index = picks_[row / sizes_.outer * sizes_.count + i % sizes_.count];
    return from_ + (row * sizes_.limit + index) * sizes_.inner;
  }

 private:
  const GatherSizes sizes_;
  const E* const from_;
  const Index* const picks_;
};

// Copies a run, with non-temporal stores if `non_temporal` is true. Long runs are copied in parts,
// so that the kernel ends soon after a stop.
template <typename E>
void CopyGathered(const RunContext& run, bool non_temporal, const E* from, int64_t n, E* to) {
  const int64_t part = BlockSizeForCost(kIsObject<E> ? 20 : 0.05 * sizeof(E));
  for (int64_t i = 0; i < n && (i == 0 || !run.ShouldStop()); i += part) {
    const int64_t count = std::min(part, n - i);
    if constexpr (kIsObject<E>) {
      std::copy_n(from + i, count, to + i);
    } else if (non_temporal) {
      NonTemporalCopy(to + i, from + i, count * sizeof(E));
    } else {
      CopyShort(to + i, from + i, count * sizeof(E));
    }
  }
}

// Copies runs with one element.
template <typename E, typename Index>
void CopyElements(const RunContext& run, const GatheredRuns<E, Index>& runs, Tensor* output) {
  E* const to = static_cast<E*>(output->raw_data());
  const bool non_temporal = runs.size() * static_cast<int64_t>(sizeof(E)) >= MinNonTemporalBytes();
  ParallelFor(run, runs.size(), BlockSizeForCost(2), [&](int64_t begin, int64_t end) {
    if (!non_temporal) return runs.CopyElements(begin, end, to + begin);
    constexpr int64_t kPart = 4096 / sizeof(E);
    alignas(kCacheLineBytes) E buffer[kPart];
    for (int64_t i = begin; i < end; i += kPart) {
      const int64_t next = std::min(end, i + kPart);
      runs.CopyElements(i, next, buffer);
      NonTemporalCopy(to + i, buffer, (next - i) * sizeof(E));
    }
    StoreFence();
  });
}

// Copies runs of `size` bytes to adjacent memory. kSize is the size if it is known, otherwise 0.
template <int64_t kSize, typename Index>
void CopyShortRuns(const char* row, const Index* picks, int64_t n, int64_t size, char* to) {
  if constexpr (kSize > 0) size = kSize;
  for (int64_t i = 0; i < n; ++i) {
    const char* const from = row + static_cast<int64_t>(picks[i]) * size;
    if constexpr (kSize > 0) {
      std::memcpy(to + i * size, from, kSize);
    } else {
      CopyShort(to + i * size, from, static_cast<size_t>(size));
    }
  }
}

template <typename Index>
void CopyShortRuns(const char* row, const Index* picks, int64_t n, int64_t size, char* to) {
  switch (size) {
    case 1:
      return CopyShortRuns<1>(row, picks, n, size, to);
    case 2:
      return CopyShortRuns<2>(row, picks, n, size, to);
    case 3:
      return CopyShortRuns<3>(row, picks, n, size, to);
    case 4:
      return CopyShortRuns<4>(row, picks, n, size, to);
    case 8:
      return CopyShortRuns<8>(row, picks, n, size, to);
    case 12:
      return CopyShortRuns<12>(row, picks, n, size, to);
    case 16:
      return CopyShortRuns<16>(row, picks, n, size, to);
    case 24:
      return CopyShortRuns<24>(row, picks, n, size, to);
    default:
      return CopyShortRuns<0>(row, picks, n, size, to);
  }
}

// Copies short runs of params that fit a cache, row by row.
template <typename E, typename Index>
void CopyCachedRuns(const RunContext& run, const GatheredRuns<E, Index>& runs, int64_t inner,
                    Tensor* output) {
  auto* const to = static_cast<char*>(output->raw_data());
  const int64_t size = inner * static_cast<int64_t>(sizeof(E));
  ParallelFor(run, runs.size(), BlockSizeForCost(1 + 0.05 * static_cast<double>(size)),
              [&](int64_t begin, int64_t end) {
                int64_t row = begin / runs.per_row();
                for (int64_t i = begin; i < end; ++row) {
                  const int64_t row_begin = row * runs.per_row();
                  const int64_t row_end = std::min(end, row_begin + runs.per_row());
                  CopyShortRuns(reinterpret_cast<const char*>(runs.RowOf(row)),
                                runs.PicksOf(row) + (i - row_begin), row_end - i, size,
                                to + i * size);
                  i = row_end;
                }
              });
}

template <typename E, typename Index>
void CopyRuns(const RunContext& run, const GatheredRuns<E, Index>& runs, int64_t inner,
              Tensor* output) {
  if constexpr (!kIsObject<E>) {
    if (runs.are_elements()) return CopyElements(run, runs, output);
    // Rows of params are read in order. Runs of a single row, in random order, are prefetched
    // unless params stay in a cache.
    constexpr int64_t kCachedBytes = int64_t{4} << 20;
    constexpr int64_t kMaxRunBytes = 512;
    if (inner * static_cast<int64_t>(sizeof(E)) <= kMaxRunBytes &&
        (runs.num_rows() > 1 || runs.bytes() <= kCachedBytes) &&
        output->NumElements() * static_cast<int64_t>(sizeof(E)) < MinNonTemporalBytes()) {
      return CopyCachedRuns(run, runs, inner, output);
    }
  }
  // Slices are read in random order, which hardware prefetchers cannot follow.
  constexpr int64_t kMaxPrefetchedBytes = 1024;
  E* to = static_cast<E*>(output->raw_data());
  const double element_cost = kIsObject<E> ? 20 : 0.05 * sizeof(E);
  const int64_t bytes =
      std::min<int64_t>(inner * static_cast<int64_t>(sizeof(E)), kMaxPrefetchedBytes);
  const int64_t ahead = std::clamp<int64_t>(4 * kMaxPrefetchedBytes / (bytes + 1), 4, 16);
  // Writes whole cache lines if the output does not stay in the L2 cache.
  const bool non_temporal =
      !kIsObject<E> && output->IsAligned() && inner * sizeof(E) % kCacheLineBytes == 0 &&
      output->NumElements() * static_cast<int64_t>(sizeof(E)) >= MinNonTemporalBytes();
  const auto copy = [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      if (r + ahead < end) {
        const char* next = reinterpret_cast<const char*>(runs[r + ahead]);
        for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(next + i);
      }
      CopyGathered(run, non_temporal, runs[r], inner, to + r * inner);
    }
    if (non_temporal) StoreFence();
  };
  ParallelFor(run, runs.size(), BlockSizeForCost(2 + inner * element_cost), copy);
}

// Returns the total length of the selected strings, which may repeat a long string many times. Like
// CopyRuns, never uses unchecked indices.
template <typename Index>
double GatheredBytes(const RunContext& run, const GatheredRuns<tstring, Index>& runs,
                     int64_t inner) {
  // Larger than any memory, and small enough that sums do not overflow.
  constexpr int64_t kEnough = int64_t{1} << 60;
  std::atomic<int64_t> bytes{0};
  ParallelFor(run, runs.size(), BlockSizeForCost(2 + inner), [&](int64_t begin, int64_t end) {
    if (bytes >= kEnough) return;
    int64_t block_bytes = 0;
    for (int64_t r = begin; r < end; ++r) {
      for (const tstring& s : absl::MakeConstSpan(runs[r], inner)) block_bytes += s.size();
    }
    bytes += block_bytes;
  });
  return static_cast<double>(bytes);
}

// Kernel of GatherV2, Gather and ResourceGather. Gather has neither an axis nor batch dimensions.
// The axis of ResourceGather is the first dimension after the batch dimensions.
class GatherKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    has_axis_ = construction.num_inputs() == 3;
    if (construction.op_def().name() == "Gather") return absl::OkStatus();
    return construction.GetAttr("batch_dims", &batch_dims_);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    const Tensor& params = ctx.input(0);
    const TensorShape& params_shape = params.shape();
    int64_t axis = 0;
    if (has_axis_) {
      GRADFLOW_ASSIGN_OR_RETURN(axis, ctx.ScalarInt(2, "axis"));
    } else {
      GRADFLOW_ASSIGN_OR_RETURN(axis, ResolveBatchDims(batch_dims_, ctx.input(1).dims()));
    }
    GRADFLOW_RETURN_IF_ERROR(CheckRankAtLeast("params", params.shape(), 1));
    GRADFLOW_ASSIGN_OR_RETURN(const GatherAxes axes,
                              ResolveAxes(params.dims(), ctx.input(1).dims(), axis, batch_dims_));
    GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape gathered,
                              GatherShape(params_shape, ctx.input(1).shape(), axes));
    const TensorShape shape(gathered.dim_sizes());
    // Reads the indices in their own type, because a widened copy could take more memory than the
    // indices.
    absl::Status status;
    const bool known = DispatchType(
        TypeList<int16_t, int32_t, int64_t>(), ctx.input_dtype(1),
        [&](auto tag) { status = Gather<typename decltype(tag)::type>(ctx, axes, shape); });
    if (!known) {
      return errors::InvalidArgument("indices must be of type int16, int32 or int64, but is ",
                                     DataTypeString(ctx.input_dtype(1)));
    }
    return status;
  }

 private:
  template <typename Index>
  static absl::Status Gather(KernelContext& ctx, const GatherAxes& axes, const TensorShape& shape) {
    const Tensor& params = ctx.input(0);
    const Tensor& indices = ctx.input(1);
    GatherSizes sizes;
    sizes.limit = params.dim_size(axes.axis);
    GRADFLOW_RETURN_IF_ERROR(CheckIndices(ctx.run(), indices, sizes.limit));
    if (shape.num_elements() == 0) {
      Tensor* output = nullptr;
      return ctx.AllocateOutput(0, shape, &output);
    }
    for (int d = 0; d < axes.batch_dims; ++d) sizes.batch *= params.dim_size(d);
    for (int d = axes.batch_dims; d < axes.axis; ++d) sizes.outer *= params.dim_size(d);
    for (int d = axes.axis + 1; d < params.dims(); ++d) sizes.inner *= params.dim_size(d);
    sizes.count = indices.NumElements() / sizes.batch;
    if (params.dtype() == DT_STRING) {
      const GatheredRuns<tstring, Index> runs(sizes, params, indices);
      ctx.ExpectStringBytes(GatheredBytes(ctx.run(), runs, sizes.inner));
    }
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
    DispatchElement(params.dtype(), [&](auto tag) {
      const GatheredRuns<typename decltype(tag)::type, Index> runs(sizes, params, indices);
      CopyRuns(ctx.run(), runs, sizes.inner, output);
    });
    return absl::OkStatus();
  }

  bool has_axis_ = true;
  int64_t batch_dims_ = 0;
};

}  // namespace

void Register(Registry& registry) {
  registry.Op("GatherV2")
      .Group("array_ops")
      .Input("params: Tparams")
      .Input("indices: Tindices")
      .Input("axis: Taxis")
      .Output("output: Tparams")
      .Attr("batch_dims: int = 0")
      .Attr("Tparams: type")
      .Attr("Tindices: {int16, int32, int64}")
      .Attr("Taxis: {int32, int64}")
      .Shape(GatherShapeFn)
      .Doc(R"(Gathers slices of a tensor by their indices along one dimension.

The shape of the result is the shape of `params`, with dimension `axis` replaced by the dimensions
of `indices` (without the first `batch_dims`). An index out of range is an error.

params: The tensor to gather from, of at least one dimension.
indices: A tensor of indices, each at least 0 and less than the size of dimension `axis`.
axis: A scalar: the dimension. Negative values count from the end.
output: The slices.
batch_dims: The number of leading dimensions that `params` and `indices` share: indices select
  within their batch. At most `axis`. Negative values count from the rank of `indices`.
Tparams: The type of `params`.
Tindices: The type of `indices`.
Taxis: The type of `axis`.)");
  registry.Kernel("GatherV2", MakeKernel<GatherKernel>).Types("Tparams", AllDataTypes());

  registry.Op("Gather")
      .Group("array_ops")
      .Input("params: Tparams")
      .Input("indices: Tindices")
      .Output("output: Tparams")
      .Attr("validate_indices: bool = true")
      .Attr("Tparams: type")
      .Attr("Tindices: {int32, int64}")
      .Shape(GatherV1Shape)
      .Doc(R"(Gathers slices of a tensor by their indices along the first dimension.

The shape of the result is `indices.shape + params.shape[1:]`. An index out of range is an error.

params: The tensor to gather from, of at least one dimension.
indices: A tensor of indices, each at least 0 and less than the size of the first dimension.
output: The slices.
validate_indices: Has no effect: indices are always checked.
Tparams: The type of `params`.
Tindices: The type of `indices`.)");
  registry.Kernel("Gather", MakeKernel<GatherKernel>).Types("Tparams", AllDataTypes());

  registry.Op("ResourceGather")
      .Group("resource_variable_ops")
      .Input("resource: resource")
      .Input("indices: Tindices")
      .Output("output: dtype")
      .Attr("batch_dims: int = 0")
      .Attr("validate_indices: bool = true")
      .Attr("dtype: type")
      .Attr("Tindices: {int32, int64}")
      .Shape(ResourceGatherShape)
      .Doc(R"(Gathers slices of a variable by their indices along one dimension.

Like `GatherV2` of the variable's value along dimension `batch_dims`. An index out of range is an
error.

resource: The variable, of at least one dimension.
indices: A tensor of indices, each at least 0 and less than the size of dimension `batch_dims`.
output: The slices.
batch_dims: The number of leading dimensions that the variable and `indices` share: indices select
  within their batch. Negative values count from the rank of `indices`.
validate_indices: Has no effect: indices are always checked.
dtype: The type of the variable.
Tindices: The type of `indices`.)");
  registry.Kernel("ResourceGather", MakeKernel<ReadingKernel<GatherKernel>>)
      .Types("dtype", AllDataTypes());
}

}  // namespace gradflow::gather
