// Ops that move the values of sparse tensors: SparseReorder, SparseReshape, SparseSlice,
// SparseConcat, SparseSplit, SparseToDense and SparseFillEmptyRows. RaggedFillEmptyRows fills the
// rows of ragged tensors.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/core/stop_token.h"
#include "gradflow/ops/common/accumulate.h"
#include "gradflow/ops/common/element_copy.h"
#include "gradflow/ops/common/indices.h"
#include "gradflow/ops/common/strided_copy.h"
#include "gradflow/ops/sparse/sparse_inputs.h"

namespace gradflow::sparse_moves {
namespace {

double StringBytesOf(const Tensor& values) {
  return values.dtype() == DT_STRING ? static_cast<double>(values.StringBytes()) : 0;
}

absl::Status SetSparseShapes(ShapeContext& c, int indices, int values, int64_t size, int64_t rank) {
  c.set_output(indices, PartialTensorShape({size, rank}));
  c.set_output(values, PartialTensorShape({size}));
  return absl::OkStatus();
}

// ---- SparseReorder ----

absl::Status ReorderShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckSparseShapes(c, 0, 1, 2));
  const int64_t size = std::max(c.Dim(0, 0), c.Dim(1, 0));
  return SetSparseShapes(c, 0, 1, size, std::max(c.Dim(0, 1), c.Dim(2, 0)));
}

absl::Status Reorder(KernelContext& ctx) {
  GRADFLOW_ASSIGN_OR_RETURN(const SparseInput in,
                            ReadSparse(ctx, "input_", SparseOrder::kUnchecked, 0, 1, 2));
  GRADFLOW_ASSIGN_OR_RETURN(const Tensor order, SortedOrder(ctx, in));
  Tensor* indices = nullptr;
  Tensor* values = nullptr;
  GRADFLOW_RETURN_IF_ERROR(
      AllocateSparse(ctx, 0, 1, in.size, in.rank, StringBytesOf(*in.values), &indices, &values));
  for (int64_t i = 0; i < in.size; ++i) {
    const int64_t from = order.span<int64_t>()[i];
    const auto index = in.index(from);
    std::copy(index.begin(), index.end(), indices->span<int64_t>().begin() + i * in.rank);
    CopyElements(*in.values, from, 1, values, i);
  }
  return absl::OkStatus();
}

// ---- SparseReshape ----

absl::Status ReshapeShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckSparseShapes(c, 0, -1, 1));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(2, 1));
  c.set_output(0, PartialTensorShape({c.Dim(0, 0), c.Dim(2, 0)}));
  c.set_output(1, PartialTensorShape({c.Dim(2, 0)}));
  return absl::OkStatus();
}

absl::Status Reshape(KernelContext& ctx) {
  GRADFLOW_ASSIGN_OR_RETURN(const SparseInput in,
                            ReadSparse(ctx, "input_", SparseOrder::kAny, 0, -1, 1));
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(2, "new_shape"));
  GRADFLOW_ASSIGN_OR_RETURN(DimVector dims, ctx.Ints(2, "new_shape"));
  int unknown = -1;
  int64_t known = 1;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] == -1) {
      if (unknown >= 0) {
        return errors::InvalidArgument("new_shape must have at most one -1, but has two, at ",
                                       unknown, " and ", d);
      }
      unknown = static_cast<int>(d);
    } else if (dims[d] < 0) {
      return errors::InvalidArgument("new_shape has ", dims[d], ", expected at least -1");
    } else {
      known = MultiplyWithoutOverflow(known, dims[d]);
      if (known < 0) return errors::InvalidArgument("new_shape has too many elements");
    }
  }
  const int64_t elements = in.shape.num_elements();
  if (unknown >= 0) {
    if (known == 0) {
      return errors::InvalidArgument("new_shape has a -1, which any size fits, because it has a 0");
    }
    dims[unknown] = elements / known;
  }
  GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, TensorShape::Make(dims));
  if (shape.num_elements() != elements) {
    return errors::InvalidArgument("a sparse tensor of shape ", in.shape.DebugString(),
                                   " cannot be reshaped to ", shape.DebugString());
  }
  const int rank = shape.dims();
  Tensor* indices = nullptr;
  GRADFLOW_ASSIGN_OR_RETURN(const TensorShape indices_shape, TensorShape::Make({in.size, rank}));
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, indices_shape, &indices));
  GRADFLOW_RETURN_IF_ERROR(SetShapeOutput(ctx, 1, dims));
  const auto out = indices->span<int64_t>();
  ParallelFor(ctx, in.size, BlockSizeForCost(5.0 * (in.rank + rank)),
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  int64_t position = in.Position(i);
                  for (int d = rank - 1; d >= 0; --d) {
                    out[i * rank + d] = position % dims[d];
                    position /= dims[d];
                  }
                }
              });
  return absl::OkStatus();
}

// ---- SparseSlice, SparseSliceGrad ----

absl::Status SliceShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckSparseShapes(c, 0, 1, 2));
  GRADFLOW_RETURN_IF_ERROR(c.CheckSameShape(2, 3));
  GRADFLOW_RETURN_IF_ERROR(c.CheckSameShape(2, 4));
  const int64_t rank = std::max({c.Dim(0, 1), c.Dim(2, 0), c.Dim(3, 0), c.Dim(4, 0)});
  c.set_output(2, PartialTensorShape({rank}));
  return SetSparseShapes(c, 0, 1, -1, rank);
}

absl::Status Slice(KernelContext& ctx) {
  GRADFLOW_ASSIGN_OR_RETURN(const SparseInput in,
                            ReadSparse(ctx, "", SparseOrder::kUnchecked, 0, 1, 2));
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckShape(3, "start", TensorShape({in.rank})));
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckShape(4, "size", TensorShape({in.rank})));
  GRADFLOW_ASSIGN_OR_RETURN(const DimVector start, ctx.Ints(3, "start"));
  GRADFLOW_ASSIGN_OR_RETURN(const DimVector size, ctx.Ints(4, "size"));
  DimVector limits(in.rank);
  DimVector dims(in.rank);
  for (int d = 0; d < in.rank; ++d) {
    if (size[d] < 0) return errors::InvalidArgument("size must not be negative, but has ", size[d]);
    // The sum may overflow.
    const int64_t most = std::numeric_limits<int64_t>::max();
    const int64_t limit = start[d] > most - size[d] ? most : start[d] + size[d];
    limits[d] = limit;
    // As in TensorFlow, the slice ends with the tensor.
    const int64_t dim = in.shape.dim_size(d);
    const int64_t rest = start[d] < dim - most ? most : dim - start[d];
    dims[d] = start[d] >= dim ? 0 : limit < dim ? size[d] : rest;
  }
  GRADFLOW_RETURN_IF_ERROR(TensorShape::Make(dims).status());
  const auto within = [&](int64_t i) {
    const auto index = in.index(i);
    for (int d = 0; d < in.rank; ++d) {
      if (index[d] < start[d] || index[d] >= limits[d]) return false;
    }
    return true;
  };
  int64_t count = 0;
  double bytes = 0;
  for (int64_t i = 0; i < in.size; ++i) {
    if (!within(i)) continue;
    ++count;
    if (in.values->dtype() == DT_STRING) {
      bytes += static_cast<double>(in.values->span<tstring>()[i].size());
    }
  }
  Tensor* indices = nullptr;
  Tensor* values = nullptr;
  GRADFLOW_RETURN_IF_ERROR(AllocateSparse(ctx, 0, 1, count, in.rank, bytes, &indices, &values));
  GRADFLOW_RETURN_IF_ERROR(SetShapeOutput(ctx, 2, dims));
  int64_t next = 0;
  for (int64_t i = 0; i < in.size; ++i) {
    if (!within(i)) continue;
    for (int d = 0; d < in.rank; ++d) {
      // A difference from a far start wraps around.
      indices->span<int64_t>()[next * in.rank + d] = static_cast<int64_t>(
          static_cast<uint64_t>(in.index(i)[d]) - static_cast<uint64_t>(start[d]));
    }
    CopyElements(*in.values, i, 1, values, next++);
  }
  return absl::OkStatus();
}

absl::Status SliceGradShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 1));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(1, 2));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(2, 1));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(3, 2));
  c.set_output(0, PartialTensorShape({c.Dim(1, 0)}));
  return absl::OkStatus();
}

// Both lists of indices are in the order of the slice.
absl::Status SliceGrad(KernelContext& ctx) {
  const Tensor& grad = ctx.input(0);
  const Tensor& in = ctx.input(1);
  const Tensor& out = ctx.input(3);
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(0, "backprop_val_grad"));
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckRank(1, "input_indices", 2));
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckRank(3, "output_indices", 2));
  const int64_t rank = in.dim_size(1);
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckShape(2, "input_start", TensorShape({rank})));
  if (out.dim_size(1) != rank || out.dim_size(0) != grad.NumElements()) {
    return errors::InvalidArgument("output_indices must have shape [", grad.NumElements(), ",",
                                   rank, "], but has shape ", out.shape().DebugString());
  }
  Tensor* result = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, {in.dim_size(0)}, &result));
  SetZero(ctx.run(), result);
  const auto start = ctx.input(2).span<int64_t>();
  const auto from = in.span<int64_t>();
  const auto to = out.span<int64_t>();
  int64_t next = 0;
  for (int64_t i = 0; i < in.dim_size(0) && next < out.dim_size(0); ++i) {
    bool same = true;
    for (int64_t d = 0; d < rank && same; ++d) {
      same = static_cast<uint64_t>(from[i * rank + d]) - static_cast<uint64_t>(start[d]) ==
             static_cast<uint64_t>(to[next * rank + d]);
    }
    if (same) CopyElements(grad, next++, 1, result, i);
  }
  if (next == out.dim_size(0)) return absl::OkStatus();
  return errors::InvalidArgument("output_indices[", next, "] is not an index of the slice");
}

// ---- SparseConcat, SparseSplit ----

absl::Status ConcatShape(ShapeContext& c) {
  const int n = c.num_inputs() / 3;
  int64_t size = 0;
  int64_t rank = -1;
  // An input whose rank is known.
  int ranked = 0;
  for (int k = 0; k < n; ++k) {
    GRADFLOW_RETURN_IF_ERROR(CheckSparseShapes(c, k, n + k, 2 * n + k));
    for (const auto& [input, d] : {std::pair(k, 1), std::pair(2 * n + k, 0)}) {
      if (c.Dim(input, d) < 0) continue;
      if (rank >= 0) GRADFLOW_RETURN_IF_ERROR(MergeDims(c, ranked, -1, input, d).status());
      rank = c.Dim(input, d);
      ranked = input;
    }
    const int64_t rows = std::max(c.Dim(k, 0), c.Dim(n + k, 0));
    size = rows < 0 || size < 0 ? -1 : size + rows;
  }
  c.set_output(2, PartialTensorShape({rank}));
  return SetSparseShapes(c, 0, 1, size, rank);
}

class ConcatKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return construction.GetAttr("concat_dim", &concat_dim_);
  }
  absl::Status Compute(KernelContext& ctx) const override {
    const int n = ctx.num_inputs() / 3;
    std::vector<SparseInput> inputs;
    int64_t size = 0;
    double bytes = 0;
    for (int k = 0; k < n; ++k) {
      GRADFLOW_ASSIGN_OR_RETURN(
          SparseInput input,
          ReadSparse(ctx, absl::StrCat("input ", k, ": "), SparseOrder::kAny, k, n + k, 2 * n + k));
      if (k > 0 && input.rank != inputs[0].rank) {
        return errors::InvalidArgument("inputs must have the same rank, but inputs 0 and ", k,
                                       " have ", inputs[0].rank, " and ", input.rank);
      }
      size += input.size;
      bytes += StringBytesOf(*input.values);
      inputs.push_back(std::move(input));
    }
    const int rank = inputs[0].rank;
    GRADFLOW_ASSIGN_OR_RETURN(const int axis, CanonicalAxis("concat_dim", concat_dim_, rank));
    DimVector dims(inputs[0].shape.dim_sizes().begin(), inputs[0].shape.dim_sizes().end());
    std::vector<int64_t> offsets = {0};
    for (int k = 1; k < n; ++k) {
      for (int d = 0; d < rank; ++d) {
        if (d == axis || inputs[k].shape.dim_size(d) == dims[d]) continue;
        return errors::InvalidArgument(
            "inputs must have the same shape except for dimension ", axis, ", but inputs 0 and ", k,
            " have ", inputs[0].shape.DebugString(), " and ", inputs[k].shape.DebugString());
      }
      offsets.push_back(dims[axis]);
      if (dims[axis] > std::numeric_limits<int64_t>::max() - inputs[k].shape.dim_size(axis)) {
        return errors::InvalidArgument("the result has too many elements");
      }
      dims[axis] += inputs[k].shape.dim_size(axis);
    }
    GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, TensorShape::Make(dims));
    // All indices, in the order of the inputs; then their order.
    Tensor all;
    GRADFLOW_ASSIGN_OR_RETURN(const TensorShape all_shape, TensorShape::Make({size, rank}));
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_INT64, all_shape, &all));
    int64_t at = 0;
    for (int k = 0; k < n; ++k) {
      for (int64_t i = 0; i < inputs[k].size; ++i, at += rank) {
        const auto index = inputs[k].index(i);
        std::copy(index.begin(), index.end(), all.span<int64_t>().begin() + at);
        all.span<int64_t>()[at + axis] += offsets[k];
      }
    }
    SparseInput joined;
    joined.size = size;
    joined.rank = rank;
    joined.indices = all.span<int64_t>();
    GRADFLOW_ASSIGN_OR_RETURN(const Tensor order, SortedOrder(ctx, joined));
    Tensor* indices = nullptr;
    Tensor* values = nullptr;
    GRADFLOW_RETURN_IF_ERROR(AllocateSparse(ctx, 0, 1, size, rank, bytes, &indices, &values));
    GRADFLOW_RETURN_IF_ERROR(SetShapeOutput(ctx, 2, dims));
    std::vector<int64_t> starts = {0};
    for (const SparseInput& input : inputs) starts.push_back(starts.back() + input.size);
    for (int64_t i = 0; i < size; ++i) {
      const int64_t from = order.span<int64_t>()[i];
      const auto index = joined.index(from);
      std::copy(index.begin(), index.end(), indices->span<int64_t>().begin() + i * rank);
      const auto k = std::upper_bound(starts.begin(), starts.end(), from) - starts.begin() - 1;
      CopyElements(*inputs[k].values, from - starts[k], 1, values, i);
    }
    return absl::OkStatus();
  }

 private:
  int64_t concat_dim_ = 0;
};

absl::Status SplitShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckSparseShapes(c, 1, 2, 3));
  const int n = c.num_outputs() / 3;
  const int64_t rank = std::max(c.Dim(1, 1), c.Dim(3, 0));
  for (int k = 0; k < n; ++k) {
    GRADFLOW_RETURN_IF_ERROR(SetSparseShapes(c, k, n + k, -1, rank));
    c.set_output(2 * n + k, PartialTensorShape({rank}));
  }
  return absl::OkStatus();
}

absl::Status Split(KernelContext& ctx) {
  const int n = ctx.num_outputs() / 3;
  if (ctx.input(0).NumElements() != 1 || ctx.input_dtype(0) != DT_INT64) {
    return errors::InvalidArgument("split_dim must be one int64, but has shape ",
                                   ctx.input(0).shape().DebugString());
  }
  GRADFLOW_ASSIGN_OR_RETURN(const SparseInput in, ReadSparse(ctx, "", SparseOrder::kAny, 1, 2, 3));
  GRADFLOW_ASSIGN_OR_RETURN(const int axis,
                            CanonicalAxis("split_dim", ctx.input(0).span<int64_t>()[0], in.rank));
  const int64_t dim = in.shape.dim_size(axis);
  if (n < 1 || n > dim) {
    return errors::InvalidArgument("num_split must be between 1 and ", dim,
                                   ", the size of dimension ", axis, ", but is ", n);
  }
  // The first parts are one larger if the size is not a multiple.
  const int64_t small = dim / n;
  const int64_t large = dim % n;
  const auto part_of = [&](int64_t k) {
    const int64_t boundary = large * (small + 1);
    return k < boundary ? k / (small + 1) : large + (k - boundary) / small;
  };
  std::vector<int64_t> counts(n, 0);
  std::vector<double> bytes(n, 0);
  for (int64_t i = 0; i < in.size; ++i) {
    const int64_t part = part_of(in.index(i)[axis]);
    ++counts[part];
    if (in.values->dtype() == DT_STRING) {
      bytes[part] += static_cast<double>(in.values->span<tstring>()[i].size());
    }
  }
  std::vector<Tensor*> indices(n);
  std::vector<Tensor*> values(n);
  DimVector dims(in.shape.dim_sizes().begin(), in.shape.dim_sizes().end());
  for (int k = 0; k < n; ++k) {
    GRADFLOW_RETURN_IF_ERROR(
        AllocateSparse(ctx, k, n + k, counts[k], in.rank, bytes[k], &indices[k], &values[k]));
    dims[axis] = small + (k < large ? 1 : 0);
    GRADFLOW_RETURN_IF_ERROR(SetShapeOutput(ctx, 2 * n + k, dims));
    counts[k] = 0;
  }
  for (int64_t i = 0; i < in.size; ++i) {
    const auto index = in.index(i);
    const int64_t part = part_of(index[axis]);
    const int64_t at = counts[part]++;
    const auto out = indices[part]->span<int64_t>().subspan(at * in.rank, in.rank);
    std::copy(index.begin(), index.end(), out.begin());
    out[axis] -= part * small + std::min(part, large);
    CopyElements(*in.values, i, 1, values[part], at);
  }
  return absl::OkStatus();
}

// ---- SparseToDense ----

absl::Status ToDenseShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckRankAtMost("sparse_indices", c.input(0), 2));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(3, 0));
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, c.ShapeFromInput(1));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

class ToDenseKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return construction.GetAttr("validate_indices", &validates_);
  }
  absl::Status Compute(KernelContext& ctx) const override {
    const Tensor& indices = ctx.input(0);
    const Tensor& values = ctx.input(2);
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(1, "output_shape"));
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckScalar(3, "default_value"));
    GRADFLOW_ASSIGN_OR_RETURN(const DimVector dims, ctx.Ints(1, "output_shape"));
    const absl::StatusOr<TensorShape> made = TensorShape::Make(dims);
    if (!made.ok()) return errors::Prefix("output_shape: ", made.status());
    const TensorShape& shape = *made;
    GRADFLOW_RETURN_IF_ERROR(CheckRankAtMost("sparse_indices", indices.shape(), 2));
    const int64_t size = indices.dims() > 0 ? indices.dim_size(0) : 1;
    const int64_t rank = indices.dims() > 1 ? indices.dim_size(1) : 1;
    if (rank != shape.dims()) {
      return errors::InvalidArgument("sparse_indices must have a column for each of the ",
                                     shape.dims(), " dimensions of output_shape, but has shape ",
                                     indices.shape().DebugString());
    }
    if (values.dims() > 1 || (values.dims() == 1 && values.NumElements() != size)) {
      return errors::InvalidArgument("sparse_values must be a scalar or have shape [", size,
                                     "], but has shape ", values.shape().DebugString());
    }
    const Tensor& default_value = ctx.input(3);
    if (default_value.dtype() != values.dtype()) {
      return errors::InvalidArgument("default_value must have the type of sparse_values");
    }
    const IndexReader reader(indices);
    Tensor positions;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_INT64, {size}, &positions));
    const auto position = positions.span<int64_t>();
    for (int64_t i = 0; i < size; ++i) {
      int64_t at = 0;
      for (int64_t d = 0; d < rank; ++d) {
        const int64_t index = reader[i * rank + d];
        if (index < 0 || index >= dims[d]) {
          return errors::InvalidArgument("sparse_indices[", i, "] has ", index, " for dimension ",
                                         d, " of the shape ", shape.DebugString());
        }
        // The product of some sizes may overflow if another size is 0, which no index fits.
        at = shape.num_elements() == 0 ? 0 : at * dims[d] + index;
      }
      position[i] = at;
      if (validates_ && i > 0 && at <= position[i - 1]) {
        return errors::InvalidArgument("sparse_indices[", i, "] is ",
                                       at == position[i - 1] ? "repeated" : "out of order");
      }
    }
    if (values.dtype() == DT_STRING) {
      const double most = static_cast<double>(default_value.StringBytes());
      ctx.ExpectStringBytes(most * static_cast<double>(shape.num_elements()) +
                            static_cast<double>(values.StringBytes()) *
                                (values.dims() == 0 ? static_cast<double>(size) : 1));
    }
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
    FillAll(ctx.run(), default_value, output);
    if (ctx.ShouldStop()) return StoppedError();
    DispatchElement(values.dtype(), [&](auto tag) {
      using E = typename decltype(tag)::type;
      const E* const from = static_cast<const E*>(values.raw_data());
      E* const to = static_cast<E*>(output->raw_data());
      const int64_t stride = values.dims() == 0 ? 0 : 1;
      for (int64_t i = 0; i < size; ++i) to[position[i]] = from[i * stride];
    });
    return absl::OkStatus();
  }

 private:
  bool validates_ = true;
};

// ---- SparseFillEmptyRows, RaggedFillEmptyRows and their gradients ----

absl::Status FillShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckSparseShapes(c, 0, 1, 2));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(3, 0));
  GRADFLOW_RETURN_IF_ERROR(SetSparseShapes(c, 0, 1, -1, std::max(c.Dim(0, 1), c.Dim(2, 0))));
  const PartialTensorShape shape = c.input_as_shape(2);
  c.set_output(
      2, PartialTensorShape({shape.unknown_rank() || shape.dims() == 0 ? -1 : shape.dim_size(0)}));
  c.set_output(3, PartialTensorShape({std::max(c.Dim(0, 0), c.Dim(1, 0))}));
  return absl::OkStatus();
}

// Adds the default value, input 3, for each of the `rows` rows that has no value. The indices of
// `in` begin with the row. Output 0 has the shape `indices_shape` for a number of values.
template <typename IndicesShape>
absl::Status FillRows(KernelContext& ctx, const SparseInput& in, int64_t rows,
                      const IndicesShape& indices_shape) {
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckScalar(3, "default_value"));
  if (ctx.input_dtype(3) != in.values->dtype()) {
    return errors::InvalidArgument("default_value must have the type of values");
  }
  Tensor* empty = nullptr;
  Tensor* reverse = nullptr;
  Tensor starts;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(2, {rows}, &empty));
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(3, {in.size}, &reverse));
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_INT64, {rows}, &starts));
  const auto start = starts.span<int64_t>();
  std::fill(start.begin(), start.end(), 0);
  for (int64_t i = 0; i < in.size; ++i) {
    const int64_t row = in.index(i)[0];
    if (row < 0 || row >= rows) {
      return errors::InvalidArgument(in.rank == 1 ? "value_rowids[" : "indices[", i, "] has row ",
                                     row, ", but there are ", rows, " rows");
    }
    ++start[row];
  }
  int64_t total = 0;
  int64_t num_empty = 0;
  for (int64_t r = 0; r < rows; ++r) {
    empty->span<bool>()[r] = start[r] == 0;
    num_empty += start[r] == 0 ? 1 : 0;
    const int64_t count = std::max<int64_t>(start[r], 1);
    start[r] = total;
    total += count;
  }
  const Tensor& default_value = ctx.input(3);
  Tensor* indices = nullptr;
  Tensor* values = nullptr;
  GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, indices_shape(total));
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &indices));
  ctx.ExpectStringBytes(StringBytesOf(*in.values) +
                        StringBytesOf(default_value) * static_cast<double>(num_empty));
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(1, {total}, &values));
  const auto out = indices->span<int64_t>();
  for (int64_t r = 0; r < rows; ++r) {
    if (!empty->span<bool>()[r]) continue;
    std::fill_n(out.begin() + start[r] * in.rank, in.rank, 0);
    out[start[r] * in.rank] = r;
    CopyElements(default_value, 0, 1, values, start[r]);
  }
  for (int64_t i = 0; i < in.size; ++i) {
    const auto index = in.index(i);
    const int64_t at = start[index[0]]++;
    reverse->span<int64_t>()[i] = at;
    std::copy(index.begin(), index.end(), out.begin() + at * in.rank);
    CopyElements(*in.values, i, 1, values, at);
  }
  return absl::OkStatus();
}

absl::Status Fill(KernelContext& ctx) {
  GRADFLOW_ASSIGN_OR_RETURN(const SparseInput in,
                            ReadSparse(ctx, "", SparseOrder::kUnchecked, 0, 1, 2));
  if (in.rank == 0) return errors::InvalidArgument("dense_shape must not be empty");
  return FillRows(ctx, in, in.shape.dim_size(0), [&](int64_t size) {
    return TensorShape::Make({size, in.rank});
  });
}

absl::Status RaggedFillShape(ShapeContext& c) {
  for (const int i : {0, 1}) GRADFLOW_RETURN_IF_ERROR(c.CheckRank(i, 1));
  for (const int i : {2, 3}) GRADFLOW_RETURN_IF_ERROR(c.CheckRank(i, 0));
  GRADFLOW_RETURN_IF_ERROR(c.CheckSameShape(0, 1));
  for (const int i : {0, 1, 2}) c.set_output(i, PartialTensorShape({-1}));
  c.set_output(3, PartialTensorShape({std::max(c.Dim(0, 0), c.Dim(1, 0))}));
  return absl::OkStatus();
}

absl::Status RaggedFill(KernelContext& ctx) {
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(0, "value_rowids"));
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckShape(1, "values", ctx.input(0).shape()));
  GRADFLOW_ASSIGN_OR_RETURN(const int64_t rows, ctx.ScalarInt(2, "nrows"));
  if (rows < 0) return errors::InvalidArgument("nrows must not be negative, but is ", rows);
  SparseInput in;
  in.size = ctx.input(0).NumElements();
  in.rank = 1;
  in.indices = ctx.input(0).span<int64_t>();
  in.values = &ctx.input(1);
  return FillRows(ctx, in, rows, [](int64_t size) { return TensorShape::Make({size}); });
}

absl::Status FillGradShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 1));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(1, 1));
  c.set_output(0, c.input(0));
  c.set_output(1, TensorShape());
  return absl::OkStatus();
}

absl::Status FillGrad(KernelContext& ctx) {
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(0, "reverse_index_map"));
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(1, "grad_values"));
  const Tensor& grad = ctx.input(1);
  const int64_t size = ctx.input(0).NumElements();
  const auto map = ctx.input(0).span<int64_t>();
  const AccumulateFn add = FindAccumulation(Accumulation::kAdd, grad.dtype());
  Tensor used;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_BOOL, {grad.NumElements()}, &used));
  std::fill(used.span<bool>().begin(), used.span<bool>().end(), false);
  Tensor* values = nullptr;
  Tensor* rest = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, {size}, &values));
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(1, {}, &rest));
  SetZero(ctx.run(), rest);
  for (int64_t i = 0; i < size; ++i) {
    if (map[i] < 0 || map[i] >= grad.NumElements()) {
      return errors::InvalidArgument("reverse_index_map[", i, "] is ", map[i],
                                     ", but grad_values has ", grad.NumElements(), " elements");
    }
    used.span<bool>()[map[i]] = true;
    CopyElements(grad, map[i], 1, values, i);
  }
  const int64_t bytes = DataTypeSize(grad.dtype());
  for (int64_t i = 0; i < grad.NumElements(); ++i) {
    if (used.span<bool>()[i]) continue;
    add(rest->raw_data(), 1, static_cast<const char*>(grad.raw_data()) + i * bytes, 1, 1);
  }
  return absl::OkStatus();
}

}  // namespace

void Register(Registry& registry) {
  // Types of values that ops move.
  DataTypeVector types = AllDataTypes();
  if (std::find(types.begin(), types.end(), DT_RESOURCE) == types.end()) {
    types.push_back(DT_RESOURCE);
  }
  registry.Op("SparseReorder")
      .Group("sparse_ops")
      .Input("input_indices: int64")
      .Input("input_values: T")
      .Input("input_shape: int64")
      .Output("output_indices: int64")
      .Output("output_values: T")
      .Attr("T: type")
      .Shape(ReorderShape)
      .Doc(R"(Sorts the values of a sparse tensor by their indices.

input_indices: The index of each value, a row of a matrix.
input_values: The values, a vector.
input_shape: The shape.
output_indices: The indices in row-major order. Equal indices keep their order.
output_values: The values in the same order.
T: The type of the values.)");
  registry.Kernel("SparseReorder", MakeFunctionKernel<Reorder>).Types("T", types);
  registry.Op("SparseReshape")
      .Group("sparse_ops")
      .Input("input_indices: int64")
      .Input("input_shape: int64")
      .Input("new_shape: int64")
      .Output("output_indices: int64")
      .Output("output_shape: int64")
      .Shape(ReshapeShape)
      .Doc(R"(Changes the shape of a sparse tensor. The values keep their order.

input_indices: The index of each value, a row of a matrix.
input_shape: The shape.
new_shape: The new shape. One size may be -1, which is determined by the others.
output_indices: The new indices.
output_shape: The new shape, without -1.)");
  registry.Kernel("SparseReshape", MakeFunctionKernel<Reshape>);
  registry.Op("SparseSlice")
      .Group("sparse_ops")
      .Input("indices: int64")
      .Input("values: T")
      .Input("shape: int64")
      .Input("start: int64")
      .Input("size: int64")
      .Output("output_indices: int64")
      .Output("output_values: T")
      .Output("output_shape: int64")
      .Attr("T: type")
      .Shape(SliceShape)
      .Doc(R"(Returns a part of a sparse tensor.

indices: The index of each value, a row of a matrix.
values: The values, a vector.
shape: The shape.
start: The first index of the part.
size: The shape of the part, which ends with the tensor.
output_indices: The indices, from `start` on.
output_values: The values.
output_shape: The shape of the part.
T: The type of the values.)");
  registry.Kernel("SparseSlice", MakeFunctionKernel<Slice>).Types("T", types);
  registry.Op("SparseSliceGrad")
      .Group("sparse_ops")
      .Input("backprop_val_grad: T")
      .Input("input_indices: int64")
      .Input("input_start: int64")
      .Input("output_indices: int64")
      .Output("val_grad: T")
      .Attr("T: numbertype")
      .Shape(SliceGradShape)
      .Doc(R"(Returns the gradient of the values of SparseSlice.

backprop_val_grad: The gradient of the values of the part.
input_indices: The indices of the tensor.
input_start: The first index of the part.
output_indices: The indices of the part.
val_grad: The gradient of the values of the tensor.
T: The type of the values.)");
  registry.Kernel("SparseSliceGrad", MakeFunctionKernel<SliceGrad>)
      .Types("T", AccumulationTypes(Accumulation::kAdd));
  registry.Op("SparseConcat")
      .Group("sparse_ops")
      .Input("indices: N * int64")
      .Input("values: N * T")
      .Input("shapes: N * int64")
      .Output("output_indices: int64")
      .Output("output_values: T")
      .Output("output_shape: int64")
      .Attr("concat_dim: int")
      .Attr("N: int >= 2")
      .Attr("T: type")
      .Shape(ConcatShape)
      .Doc(R"(Joins sparse tensors along a dimension.

indices: The indices of each tensor.
values: The values of each tensor.
shapes: The shape of each tensor; equal except for dimension `concat_dim`.
output_indices: The indices of the result in row-major order.
output_values: The values of the result.
output_shape: The shape of the result.
concat_dim: The dimension; a negative number counts from the end.
N: The number of tensors.
T: The type of the values.)");
  registry.Kernel("SparseConcat", MakeKernel<ConcatKernel>).Types("T", types);
  registry.Op("SparseSplit")
      .Group("sparse_ops")
      .Input("split_dim: int64")
      .Input("indices: int64")
      .Input("values: T")
      .Input("shape: int64")
      .Output("output_indices: num_split * int64")
      .Output("output_values: num_split * T")
      .Output("output_shape: num_split * int64")
      .Attr("num_split: int >= 1")
      .Attr("T: type")
      .Shape(SplitShape)
      .Doc(R"(Splits a sparse tensor along a dimension.

If the size of the dimension is not a multiple of `num_split`, the first parts are larger by 1.

split_dim: The dimension, a scalar; a negative number counts from the end.
indices: The index of each value, a row of a matrix.
values: The values, a vector.
shape: The shape.
output_indices: The indices of each part.
output_values: The values of each part.
output_shape: The shape of each part.
num_split: The number of parts.
T: The type of the values.)");
  registry.Kernel("SparseSplit", MakeFunctionKernel<Split>).Types("T", types);
  registry.Op("SparseToDense")
      .Group("sparse_ops")
      .Input("sparse_indices: Tindices")
      .Input("output_shape: Tindices")
      .Input("sparse_values: T")
      .Input("default_value: T")
      .Output("dense: T")
      .Attr("validate_indices: bool = true")
      .Attr("T: type")
      .Attr("Tindices: {int32, int64}")
      .Shape(ToDenseShape)
      .Doc(R"(Returns the dense tensor of a sparse one.

sparse_indices: The index of each value, a row of a matrix; a vector or a scalar for a result of rank
  1.
output_shape: The shape of the result.
sparse_values: The values, or a scalar that stands for all of them.
default_value: The value of the other elements, a scalar.
dense: The dense tensor.
validate_indices: If true, indices that are repeated or not in row-major order are an error.
T: The type of the values.
Tindices: The type of the indices.)");
  registry.Kernel("SparseToDense", MakeKernel<ToDenseKernel>).Types("T", AllDataTypes());
  registry.Op("SparseFillEmptyRows")
      .Group("sparse_ops")
      .Input("indices: int64")
      .Input("values: T")
      .Input("dense_shape: int64")
      .Input("default_value: T")
      .Output("output_indices: int64")
      .Output("output_values: T")
      .Output("empty_row_indicator: bool")
      .Output("reverse_index_map: int64")
      .Attr("T: type")
      .Shape(FillShape)
      .Doc(
          R"(Gives each row of a sparse tensor that has no value a default value, at its first place.

indices: The index of each value, a row of a matrix.
values: The values, a vector.
dense_shape: The shape.
default_value: The default value, a scalar.
output_indices: The indices of the result, ordered by rows.
output_values: The values of the result.
empty_row_indicator: For each row, whether it got the default value.
reverse_index_map: For each value, its place in the result.
T: The type of the values.)");
  registry.Kernel("SparseFillEmptyRows", MakeFunctionKernel<Fill>).Types("T", types);
  registry.Op("RaggedFillEmptyRows")
      .Group("array_ops")
      .Input("value_rowids: int64")
      .Input("values: T")
      .Input("nrows: int64")
      .Input("default_value: T")
      .Output("output_value_rowids: int64")
      .Output("output_values: T")
      .Output("empty_row_indicator: bool")
      .Output("reverse_index_map: int64")
      .Attr("T: type")
      .Shape(RaggedFillShape)
      .Doc(R"(Gives each row of a ragged tensor that has no value a default value.

value_rowids: The row of each value.
values: The values, a vector.
nrows: The number of rows, a scalar.
default_value: The default value, a scalar.
output_value_rowids: The row of each value of the result, in order.
output_values: The values of the result.
empty_row_indicator: For each row, whether it got the default value.
reverse_index_map: For each value, its place in the result.
T: The type of the values.)");
  registry.Kernel("RaggedFillEmptyRows", MakeFunctionKernel<RaggedFill>).Types("T", types);
  for (const bool is_ragged : {false, true}) {
    const std::string forward = is_ragged ? "RaggedFillEmptyRows" : "SparseFillEmptyRows";
    const std::string op = absl::StrCat(forward, "Grad");
    registry.Op(op)
        .Group(is_ragged ? "array_ops" : "sparse_ops")
        .Input("reverse_index_map: int64")
        .Input("grad_values: T")
        .Output("d_values: T")
        .Output("d_default_value: T")
        .Attr("T: type")
        .Shape(FillGradShape)
        .Doc(absl::StrCat("Returns the gradients of ", forward,
                          ".\n\nreverse_index_map: The output of ", forward, R"(.
grad_values: The gradient of its values.
d_values: The gradient of the values.
d_default_value: The gradient of the default value, a scalar.
T: The type of the values.)"));
    registry.Kernel(op, MakeFunctionKernel<FillGrad>)
        .Types("T", AccumulationTypes(Accumulation::kAdd));
  }
}

}  // namespace gradflow::sparse_moves
