// Unique, UniqueWithCounts, their V2 versions, and ListDiff.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "absl/hash/hash.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/element_equality.h"
#include "gradflow/ops/common/indices.h"
#include "gradflow/ops/common/strided_copy.h"

namespace gradflow::unique {
namespace {

// The slices of a tensor [outer, count, inner] along one dimension.
struct Slices {
  int64_t outer = 1;
  int64_t count = 1;
  int64_t inner = 1;

  static Slices Of(const TensorShape& shape, int axis) {
    // The products may overflow. All slices are empty and therefore equal.
    if (shape.num_elements() == 0) return {0, shape.dim_size(axis), 0};
    Slices slices;
    for (int d = 0; d < shape.dims(); ++d) {
      (d < axis ? slices.outer : d == axis ? slices.count : slices.inner) *= shape.dim_size(d);
    }
    return slices;
  }
};

// A hash table of slices, by value. It is allocated from the memory of the run.
class SliceTable {
 public:
  // `tensor` has the slices to look up. Does not copy the tensor.
  SliceTable(const Tensor& tensor, const Slices& slices)
      : tensor_(tensor),
        slices_(slices),
        equality_(FindElementEquality(tensor.dtype())),
        element_size_(tensor.dtype() == DT_STRING ? static_cast<int64_t>(sizeof(tstring))
                                                  : DataTypeSize(tensor.dtype())) {}

  absl::Status Allocate(KernelContext& ctx) {
    int64_t size = 16;
    // The table is at most half full. No tensor has so many elements that the size overflows.
    while (size / 2 < slices_.count) size *= 2;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_INT64, {size}, &table_));
    std::fill_n(table_.flat<int64_t>().data(), size, kEmpty);
    return absl::OkStatus();
  }

  // Calls fn(i, found) for each slice i in [0, count) of `other`, which is either the table's
  // tensor or a vector. `found` is the first inserted slice that equals slice i; -1 if there is
  // none. In that case, inserts slice i if `insert` is true. REQUIRES: if `insert` is true, `other`
  // is the table's tensor
  template <typename F>
  absl::Status FindAll(const KernelContext& ctx, const Tensor& other, int64_t count, bool insert,
                       const F& fn) {
    // Slots are visited in random order. First prefetches the slots of a batch, then the slices
    // that they refer to.
    constexpr int64_t kBatch = 64;
    const absl::Span<const int64_t> table = table_.span<int64_t>();
    const size_t mask = table.size() - 1;
    size_t hashes[kBatch];
    for (int64_t begin = 0; begin < count; begin += kBatch) {
      if (begin % 4096 == 0 && ctx.ShouldStop()) return absl::CancelledError("the run is stopped");
      const int64_t n = std::min(kBatch, count - begin);
      for (int64_t k = 0; k < n; ++k) {
        hashes[k] = Hash(other, begin + k);
        __builtin_prefetch(&table[hashes[k] & mask]);
      }
      for (int64_t k = 0; k < n; ++k) FetchSlice(table[hashes[k] & mask]);
      for (int64_t k = 0; k < n; ++k) {
        fn(begin + k, Find(other, begin + k, hashes[k], insert));
      }
    }
    return absl::OkStatus();
  }

 private:
  static constexpr int64_t kEmpty = -1;

  int64_t Find(const Tensor& other, int64_t i, size_t hash, bool insert) {
    const absl::Span<int64_t> table = table_.span<int64_t>();
    const size_t mask = table.size() - 1;
    for (size_t at = hash & mask;; at = (at + 1) & mask) {
      if (table[at] == kEmpty) {
        // A slice with NaN does not equal any slice, not even itself. Inserting it would only slow
        // down searches.
        if (insert && Equal(i, other, i)) table[at] = i;
        return -1;
      }
      if (Equal(table[at], other, i)) return table[at];
    }
  }

  // Prefetches the first element of a slice of the table's tensor.
  void FetchSlice(int64_t i) const {
    if (i == kEmpty) return;
    const auto* const elements = static_cast<const char*>(tensor_.raw_data());
    __builtin_prefetch(elements + i * slices_.inner * element_size_);
  }

  // A vector `other` may have any length, because its only outer index is 0.
  size_t Hash(const Tensor& other, int64_t i) const {
    size_t hash = 0;
    for (int64_t o = 0; o < slices_.outer; ++o) {
      const int64_t begin = (o * slices_.count + i) * slices_.inner;
      for (int64_t k = 0; k < slices_.inner; ++k) {
        const size_t element = equality_.hash(other.raw_data(), begin + k);
        hash = slices_.outer * slices_.inner == 1 ? element : absl::HashOf(hash, element);
      }
    }
    return hash;
  }
  bool Equal(int64_t own, const Tensor& other, int64_t i) const {
    for (int64_t o = 0; o < slices_.outer; ++o) {
      const int64_t own_begin = (o * slices_.count + own) * slices_.inner;
      const int64_t begin = (o * slices_.count + i) * slices_.inner;
      for (int64_t k = 0; k < slices_.inner; ++k) {
        if (!equality_.equal(tensor_.raw_data(), own_begin + k, other.raw_data(), begin + k)) {
          return false;
        }
      }
    }
    return true;
  }

  const Tensor& tensor_;
  const Slices slices_;
  const ElementEquality equality_;
  const int64_t element_size_;
  // Indices of slices, ordered by hash. The size is a power of two.
  Tensor table_;
};

// Copies the slices of `input` that satisfy pick(i) to `output`, in order.
template <typename Pick>
void CopySlices(const RunContext& run, const Tensor& input, const Slices& slices,
                int64_t output_count, const Pick& pick, Tensor* output) {
  DispatchElement(input.dtype(), [&](auto tag) {
    using E = typename decltype(tag)::type;
    const E* from = static_cast<const E*>(input.raw_data());
    E* to = static_cast<E*>(output->raw_data());
    const double cost = 1 + slices.inner * CopyNanoseconds(input.dtype());
    const int64_t outer_block = std::max<int64_t>(
        1, BlockSizeForCost(cost * static_cast<double>(std::max<int64_t>(1, slices.count))));
    ParallelFor(run, slices.outer, outer_block, [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) {
        int64_t next = 0;
        for (int64_t i = 0; i < slices.count && next < output_count; ++i) {
          if (!pick(i, next)) continue;
          std::copy_n(from + (o * slices.count + i) * slices.inner, slices.inner,
                      to + (o * output_count + next) * slices.inner);
          ++next;
        }
      }
    });
  });
}

absl::Status CheckIndexRange(int64_t count, DataType out_idx) {
  if (out_idx == DT_INT64 || count <= std::numeric_limits<int32_t>::max()) return absl::OkStatus();
  return errors::InvalidArgument("out_idx is int32, which cannot hold the indices of ", count,
                                 " elements");
}

// ---- Unique ----

absl::Status UniqueShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 1));
  c.set_output(0, {-1});
  c.set_output(1, {c.Dim(0, 0)});
  if (c.num_outputs() == 3) c.set_output(2, {-1});
  return absl::OkStatus();
}

// Returns the dimension that `axis` selects. `axis` has at most one element.
absl::StatusOr<int> UniqueAxis(const PartialTensorShape& x, absl::Span<const int64_t> axis) {
  if (axis.size() > 1) {
    return errors::InvalidArgument("axis must have at most one element, but has ", axis.size());
  }
  if (axis.empty()) {
    GRADFLOW_RETURN_IF_ERROR(CheckRank("x, without an axis,", x, 1));
    return 0;
  }
  return CanonicalAxis("axis", axis[0], x.dims());
}

absl::Status UniqueV2Shape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(1, 1));
  std::vector<int64_t> axis;
  GRADFLOW_ASSIGN_OR_RETURN(const bool known, c.IntsFromInput(1, &axis));
  PartialTensorShape y = c.input(0);
  int64_t count = -1;
  if (!y.unknown_rank() && known) {
    GRADFLOW_ASSIGN_OR_RETURN(const int d, UniqueAxis(y, axis));
    count = y.dim_size(d);
    y.set_dim(d, -1);
  } else if (!y.unknown_rank()) {
    y = PartialTensorShape::UnknownOfRank(y.dims());
  }
  c.set_output(0, std::move(y));
  c.set_output(1, {count});
  if (c.num_outputs() == 3) c.set_output(2, {-1});
  return absl::OkStatus();
}

absl::Status UniqueAlong(KernelContext& ctx, int axis) {
  const Tensor& x = ctx.input(0);
  const Slices slices = Slices::Of(x.shape(), axis);
  GRADFLOW_RETURN_IF_ERROR(CheckIndexRange(slices.count, ctx.expected_output_dtype(1)));
  Tensor* idx = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(1, {slices.count}, &idx));
  SliceTable table(x, slices);
  GRADFLOW_RETURN_IF_ERROR(table.Allocate(ctx));
  // The index of each slice among the unique slices, which are numbered in the order of first
  // appearance.
  const IndexReader ids(*idx);
  int64_t unique = 0;
  GRADFLOW_RETURN_IF_ERROR(table.FindAll(
      ctx, x, slices.count, /*insert=*/true,
      [&](int64_t i, int64_t first) { WriteIndex(idx, i, first < 0 ? unique++ : ids[first]); }));
  TensorShape shape = x.shape();
  shape.set_dim(axis, unique);
  Tensor* y = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &y));
  CopySlices(
      ctx.run(), x, slices, unique, [&](int64_t i, int64_t next) { return ids[i] == next; }, y);
  if (ctx.num_outputs() < 3) return absl::OkStatus();
  Tensor* counts = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(2, {unique}, &counts));
  const IndexReader count(*counts);
  for (int64_t k = 0; k < unique; ++k) WriteIndex(counts, k, 0);
  for (int64_t i = 0; i < slices.count; ++i) WriteIndex(counts, ids[i], count[ids[i]] + 1);
  return absl::OkStatus();
}

absl::Status Unique(KernelContext& ctx) {
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(0, "x"));
  return UniqueAlong(ctx, 0);
}

absl::Status UniqueV2(KernelContext& ctx) {
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(1, "axis"));
  GRADFLOW_ASSIGN_OR_RETURN(const DimVector values, ctx.Ints(1, "axis"));
  GRADFLOW_ASSIGN_OR_RETURN(const int axis, UniqueAxis(ctx.input(0).shape(), values));
  return UniqueAlong(ctx, axis);
}

// ---- ListDiff ----

absl::Status ListDiffShape(ShapeContext& c) {
  for (int i = 0; i < 2; ++i) GRADFLOW_RETURN_IF_ERROR(c.CheckRank(i, 1));
  c.set_output(0, {-1});
  c.set_output(1, {-1});
  return absl::OkStatus();
}

absl::Status ListDiff(KernelContext& ctx) {
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(0, "x"));
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(1, "y"));
  const Tensor& x = ctx.input(0);
  const Tensor& y = ctx.input(1);
  const int64_t size = x.NumElements();
  GRADFLOW_RETURN_IF_ERROR(CheckIndexRange(size, ctx.expected_output_dtype(1)));
  SliceTable table(y, Slices::Of(y.shape(), 0));
  GRADFLOW_RETURN_IF_ERROR(table.Allocate(ctx));
  GRADFLOW_RETURN_IF_ERROR(
      table.FindAll(ctx, y, y.NumElements(), /*insert=*/true, [](int64_t, int64_t) {}));
  Tensor is_kept;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_BOOL, {size}, &is_kept));
  const absl::Span<bool> kept = is_kept.span<bool>();
  int64_t count = 0;
  GRADFLOW_RETURN_IF_ERROR(
      table.FindAll(ctx, x, size, /*insert=*/false, [&](int64_t i, int64_t first) {
        kept[i] = first < 0;
        count += kept[i] ? 1 : 0;
      }));
  Tensor* out = nullptr;
  Tensor* idx = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, {count}, &out));
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(1, {count}, &idx));
  CopySlices(
      ctx.run(), x, Slices::Of(x.shape(), 0), count, [&](int64_t i, int64_t) { return kept[i]; },
      out);
  int64_t next = 0;
  for (int64_t i = 0; i < size; ++i) {
    if (kept[i]) WriteIndex(idx, next++, i);
  }
  return absl::OkStatus();
}

}  // namespace

void Register(Registry& registry) {
  registry.Op("Unique")
      .Group("array_ops")
      .Input("x: T")
      .Output("y: T")
      .Output("idx: out_idx")
      .Attr("T: type")
      .Attr("out_idx: {int32, int64} = DT_INT32")
      .Shape(UniqueShape)
      .Doc(R"(Returns the distinct elements of a vector.

-0 equals 0. NaN equals nothing.

x: The vector.
y: Its distinct elements, in the order of their first appearance.
idx: The index in `y` of each element of `x`.
T: The type of `x`.
out_idx: The type of `idx`.)");
  registry.Kernel("Unique", MakeFunctionKernel<Unique>);

  registry.Op("UniqueWithCounts")
      .Group("array_ops")
      .Input("x: T")
      .Output("y: T")
      .Output("idx: out_idx")
      .Output("count: out_idx")
      .Attr("T: type")
      .Attr("out_idx: {int32, int64} = DT_INT32")
      .Shape(UniqueShape)
      .Doc(R"(Returns the distinct elements of a vector, and how often each appears.

-0 equals 0. NaN equals nothing.

x: The vector.
y: Its distinct elements, in the order of their first appearance.
idx: The index in `y` of each element of `x`.
count: The number of appearances of each element of `y`.
T: The type of `x`.
out_idx: The type of `idx` and `count`.)");
  registry.Kernel("UniqueWithCounts", MakeFunctionKernel<Unique>);

  registry.Op("UniqueV2")
      .Group("array_ops")
      .Input("x: T")
      .Input("axis: Taxis")
      .Output("y: T")
      .Output("idx: out_idx")
      .Attr("T: type")
      .Attr("Taxis: {int32, int64} = DT_INT64")
      .Attr("out_idx: {int32, int64} = DT_INT32")
      .Shape(UniqueV2Shape)
      .Doc(R"(Returns the distinct slices of a tensor along one dimension.

-0 equals 0. NaN equals nothing.

x: The tensor.
axis: A vector with one element: the dimension. May be empty if `x` is a vector. Negative values
  count from the end.
y: The distinct slices, in the order of their first appearance.
idx: The index in `y` of each slice of `x`.
T: The type of `x`.
Taxis: The type of `axis`.
out_idx: The type of `idx`.)");
  registry.Kernel("UniqueV2", MakeFunctionKernel<UniqueV2>);

  registry.Op("UniqueWithCountsV2")
      .Group("array_ops")
      .Input("x: T")
      .Input("axis: Taxis")
      .Output("y: T")
      .Output("idx: out_idx")
      .Output("count: out_idx")
      .Attr("T: type")
      .Attr("Taxis: {int32, int64} = DT_INT64")
      .Attr("out_idx: {int32, int64} = DT_INT32")
      .Shape(UniqueV2Shape)
      .Doc(
          R"(Returns the distinct slices of a tensor along one dimension, and how often each appears.

-0 equals 0. NaN equals nothing.

x: The tensor.
axis: A vector with one element: the dimension. May be empty if `x` is a vector. Negative values
  count from the end.
y: The distinct slices, in the order of their first appearance.
idx: The index in `y` of each slice of `x`.
count: The number of appearances of each slice of `y`.
T: The type of `x`.
Taxis: The type of `axis`.
out_idx: The type of `idx` and `count`.)");
  registry.Kernel("UniqueWithCountsV2", MakeFunctionKernel<UniqueV2>);

  registry.Op("ListDiff")
      .Group("array_ops")
      .Alias("SetDiff1D")
      .Input("x: T")
      .Input("y: T")
      .Output("out: T")
      .Output("idx: out_idx")
      .Attr("T: type")
      .Attr("out_idx: {int32, int64} = DT_INT32")
      .Shape(ListDiffShape)
      .Doc(R"(Returns the elements of a vector that another vector does not contain.

-0 equals 0. NaN equals nothing.

x: The vector of elements to keep.
y: The vector of elements to remove.
out: The elements of `x` that are not in `y`, in their order, with repetitions.
idx: The index in `x` of each element of `out`.
T: The type of the elements.
out_idx: The type of `idx`.)");
  registry.Kernel("ListDiff", MakeFunctionKernel<ListDiff>);
}

}  // namespace gradflow::unique
