#include "gradflow/ops/sparse/sparse_inputs.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/core/status.h"
#include "gradflow/core/stop_token.h"

namespace gradflow {

absl::StatusOr<SparseInput> ReadSparse(const KernelContext& ctx, absl::string_view name,
                                       SparseOrder order, int indices, int values, int shape) {
  const Tensor& index_tensor = ctx.input(indices);
  const Tensor& shape_tensor = ctx.input(shape);
  if (index_tensor.dtype() != DT_INT64 || shape_tensor.dtype() != DT_INT64) {
    return errors::InvalidArgument(name, "indices and ", name, "shape must be of type int64");
  }
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckRank(indices, absl::StrCat(name, "indices"), 2));
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(shape, absl::StrCat(name, "shape")));
  SparseInput sparse;
  sparse.size = index_tensor.dim_size(0);
  sparse.rank = static_cast<int>(shape_tensor.NumElements());
  if (shape_tensor.NumElements() > kMaxDims || index_tensor.dim_size(1) != sparse.rank) {
    return errors::InvalidArgument(name, "indices must have a column for each of the ",
                                   shape_tensor.NumElements(), " dimensions of ", name,
                                   "shape, but has shape ", index_tensor.shape().DebugString());
  }
  if (values >= 0) {
    GRADFLOW_RETURN_IF_ERROR(
        ctx.CheckShape(values, absl::StrCat(name, "values"), TensorShape({sparse.size})));
    sparse.values = &ctx.input(values);
  }
  sparse.indices = index_tensor.span<int64_t>();
  const absl::StatusOr<TensorShape> dims = TensorShape::Make(shape_tensor.span<int64_t>());
  if (!dims.ok()) return errors::Prefix(absl::StrCat(name, "shape: "), dims.status());
  sparse.shape = *dims;
  sparse.strides.resize(sparse.rank);
  int64_t stride = 1;
  for (int d = sparse.rank - 1; d >= 0; --d) {
    sparse.strides[d] = stride;
    // The product of some sizes may overflow if another size is 0.
    stride = sparse.shape.num_elements() == 0 ? 0 : stride * sparse.shape.dim_size(d);
  }
  if (order == SparseOrder::kUnchecked) return sparse;
  for (int64_t i = 0; i < sparse.size; ++i) {
    const auto index = sparse.index(i);
    for (int d = 0; d < sparse.rank; ++d) {
      if (index[d] >= 0 && index[d] < sparse.shape.dim_size(d)) continue;
      return errors::InvalidArgument(name, "indices[", i, "] is [", absl::StrJoin(index, ","),
                                     "], which is not within the shape ",
                                     sparse.shape.DebugString());
    }
    if (order != SparseOrder::kSorted || i == 0) continue;
    const auto before = sparse.index(i - 1);
    if (!std::lexicographical_compare(before.begin(), before.end(), index.begin(), index.end())) {
      return errors::InvalidArgument(
          name, "indices[", i, "] is [", absl::StrJoin(index, ","), "], ",
          before == index ? "which is repeated" : "which is out of order");
    }
  }
  return sparse;
}

absl::Status CheckSparseShapes(ShapeContext& c, int indices, int values, int shape) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(indices, 2));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(shape, 1));
  if (values >= 0) {
    GRADFLOW_RETURN_IF_ERROR(c.CheckRank(values, 1));
    GRADFLOW_RETURN_IF_ERROR(MergeDims(c, indices, 0, values, 0).status());
  }
  return MergeDims(c, indices, 1, shape, 0).status();
}

absl::Status AllocateSparse(KernelContext& ctx, int indices, int values, int64_t size, int rank,
                            double string_bytes, Tensor** indices_out, Tensor** values_out) {
  GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, TensorShape::Make({size, rank}));
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(indices, shape, indices_out));
  ctx.ExpectStringBytes(string_bytes);
  return ctx.AllocateOutput(values, {size}, values_out);
}

absl::Status SetShapeOutput(KernelContext& ctx, int i, absl::Span<const int64_t> dims) {
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(i, {static_cast<int64_t>(dims.size())}, &output));
  std::copy(dims.begin(), dims.end(), output->span<int64_t>().begin());
  return absl::OkStatus();
}

absl::StatusOr<Tensor> SortedOrder(KernelContext& ctx, const SparseInput& sparse) {
  Tensor order;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_INT64, {sparse.size}, &order));
  const auto positions = order.span<int64_t>();
  std::iota(positions.begin(), positions.end(), 0);
  const auto less = [&](int64_t a, int64_t b) {
    const auto x = sparse.index(a);
    const auto y = sparse.index(b);
    const bool before = std::lexicographical_compare(x.begin(), x.end(), y.begin(), y.end());
    // Sorting by the position as well makes the order stable without further memory.
    return before || (x == y && a < b);
  };
  if (!std::is_sorted(positions.begin(), positions.end(), less)) {
    std::sort(positions.begin(), positions.end(), less);
  }
  return order;
}

}  // namespace gradflow
