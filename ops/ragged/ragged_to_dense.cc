// RaggedTensorToTensor and RaggedTensorToSparse.
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
#include "gradflow/ops/common/element_copy.h"
#include "gradflow/ops/common/indices.h"
#include "gradflow/ops/common/row_splits.h"
#include "gradflow/ops/ragged/ragged_splits.h"

namespace gradflow::ragged_to_dense {
namespace {

// ---- RaggedTensorToSparse ----

absl::Status ToSparseShape(ShapeContext& c) {
  const int levels = c.num_inputs() - 1;
  for (int i = 0; i < levels; ++i) GRADFLOW_RETURN_IF_ERROR(c.CheckRank(i, 1));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRankAtLeast(levels, 1));
  const PartialTensorShape& values = c.input(levels);
  const int64_t rank = values.unknown_rank() ? -1 : values.dims() + levels;
  c.set_output(0, PartialTensorShape({-1, rank}));
  c.set_output(1, PartialTensorShape({-1}));
  c.set_output(2, PartialTensorShape({rank}));
  return absl::OkStatus();
}

absl::Status ToSparse(KernelContext& ctx) {
  const int levels = ctx.num_inputs() - 1;
  const Tensor& values = ctx.input(levels);
  GRADFLOW_RETURN_IF_ERROR(CheckNestedSplits(ctx, "rt_nested_splits", 0, levels));
  const int rank = values.dims() + levels;
  Tensor* indices = nullptr;
  Tensor* shape = nullptr;
  GRADFLOW_ASSIGN_OR_RETURN(const TensorShape indices_shape,
                            TensorShape::Make({values.NumElements(), rank}));
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, indices_shape, &indices));
  absl::StatusOr<Tensor> flat = values.Reshaped({values.NumElements()});
  if (!flat.ok()) return flat.status();
  ctx.set_output(1, *std::move(flat));
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(2, {rank}, &shape));
  const auto sizes = shape->span<int64_t>();
  sizes[0] = ctx.input(0).NumElements() - 1;
  for (int level = 0; level < levels; ++level) {
    const IndexReader splits(ctx.input(level));
    int64_t most = 0;
    for (int64_t r = 0; r + 1 < ctx.input(level).NumElements(); ++r) {
      most = std::max(most, splits[r + 1] - splits[r]);
    }
    sizes[level + 1] = most;
  }
  for (int d = 1; d < values.dims(); ++d) sizes[levels + d] = values.dim_size(d);
  // The row of each level that holds the current value.
  std::vector<int64_t> rows(levels, 0);
  const auto index = indices->span<int64_t>();
  const int64_t width = values.dim_size(0) == 0 ? 0 : values.NumElements() / values.dim_size(0);
  for (int64_t value = 0; value < values.dim_size(0) && width > 0; ++value) {
    if ((value & 0xfff) == 0xfff && ctx.ShouldStop()) return StoppedError();
    int64_t position = value;
    for (int level = levels - 1; level >= 0; --level) {
      const IndexReader splits(ctx.input(level));
      while (splits[rows[level] + 1] <= position) ++rows[level];
      index[value * width * rank + level + 1] = position - splits[rows[level]];
      position = rows[level];
    }
    index[value * width * rank] = position;
    for (int64_t k = 0; k < width; ++k) {
      const int64_t at = (value * width + k) * rank;
      if (k > 0) std::copy_n(index.begin() + value * width * rank, levels + 1, index.begin() + at);
      int64_t rest = k;
      for (int d = values.dims() - 1; d > 0; --d) {
        index[at + levels + d] = rest % values.dim_size(d);
        rest /= values.dim_size(d);
      }
    }
  }
  return absl::OkStatus();
}

// ---- RaggedTensorToTensor ----

enum class Partition { kFirstDimSize, kValueRowIds, kRowSplits };

struct Partitions {
  absl::Status Read(const std::vector<std::string>& names, int count) {
    if (static_cast<int>(names.size()) != count) {
      return errors::InvalidArgument("row_partition_types must have ", count,
                                     " elements, one for each tensor, but has ", names.size());
    }
    for (size_t k = 0; k < names.size(); ++k) {
      if (names[k] == "FIRST_DIM_SIZE" && k == 0) {
        types.push_back(Partition::kFirstDimSize);
      } else if (names[k] == "VALUE_ROWIDS" && k > 0) {
        types.push_back(Partition::kValueRowIds);
      } else if (names[k] == "ROW_SPLITS") {
        types.push_back(Partition::kRowSplits);
      } else {
        return errors::InvalidArgument(
            "row_partition_types must be ROW_SPLITS, or FIRST_DIM_SIZE followed by VALUE_ROWIDS, "
            "but element ",
            k, " is '", errors::Printable(names[k]), "'");
      }
    }
    if (types.empty() || (types.size() == 1 && types[0] == Partition::kFirstDimSize)) {
      return errors::InvalidArgument("row_partition_types must describe at least one dimension");
    }
    return absl::OkStatus();
  }
  // The first partition of a ragged dimension.
  int first() const { return types[0] == Partition::kFirstDimSize ? 1 : 0; }
  int levels() const { return static_cast<int>(types.size()) - first(); }

  std::vector<Partition> types;
};

// Returns the shape of the result as far as the inputs `shape` and `values` determine it.
absl::StatusOr<PartialTensorShape> MergeShapes(const PartialTensorShape& wanted,
                                               const PartialTensorShape& values, int levels) {
  if (values.unknown_rank()) return wanted;
  PartialTensorShape shape = PartialTensorShape::UnknownOfRank(levels + values.dims());
  for (int d = 1; d < values.dims(); ++d) shape.set_dim(levels + d, values.dim_size(d));
  if (wanted.unknown_rank()) return shape;
  if (wanted.dims() != shape.dims() || !wanted.IsCompatibleWith(shape)) {
    return errors::InvalidArgument("shape is ", wanted.DebugString(),
                                   ", which does not fit a ragged tensor of shape ",
                                   shape.DebugString());
  }
  return wanted.MergeWith(shape);
}

absl::Status ToTensorShape(ShapeContext& c) {
  std::vector<std::string> names;
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("row_partition_types", &names));
  Partitions partitions;
  GRADFLOW_RETURN_IF_ERROR(partitions.Read(names, c.num_inputs() - 3));
  PartialTensorShape wanted;
  if (!c.input(0).unknown_rank() && c.input(0).dims() == 1) {
    GRADFLOW_ASSIGN_OR_RETURN(wanted, c.ShapeFromInput(0, /*allow_unknown=*/true));
  }
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape,
                            MergeShapes(wanted, c.input(1), partitions.levels()));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

class ToTensorKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    std::vector<std::string> names;
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("row_partition_types", &names));
    return partitions_.Read(names, construction.num_inputs() - 3);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    const Tensor& values = ctx.input(1);
    const Tensor& default_value = ctx.input(2);
    const int levels = partitions_.levels();
    GRADFLOW_RETURN_IF_ERROR(CheckRankAtLeast("values", values.shape(), 1));
    if (default_value.dtype() != values.dtype()) {
      return errors::InvalidArgument("default_value and values must have the same type");
    }
    PartialTensorShape wanted;
    if (ctx.input(0).dims() > 0) {
      GRADFLOW_ASSIGN_OR_RETURN(DimVector dims, ctx.Ints(0, "shape"));
      for (int64_t& size : dims) {
        if (size < -1) return errors::InvalidArgument("shape has ", size, ", expected at least -1");
      }
      GRADFLOW_ASSIGN_OR_RETURN(wanted, PartialTensorShape::Make(dims));
    } else {
      GRADFLOW_ASSIGN_OR_RETURN(const int64_t unknown, ctx.ScalarInt(0, "shape"));
      if (unknown != -1) {
        return errors::InvalidArgument("shape must be a vector, or the scalar -1, but is the ",
                                       "scalar ", unknown);
      }
    }
    GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape merged,
                              MergeShapes(wanted, values.shape(), levels));
    TensorShape row_shape = values.shape();
    GRADFLOW_RETURN_IF_ERROR(row_shape.RemoveDimWithStatus(0));
    GRADFLOW_ASSIGN_OR_RETURN(const TensorShape broadcast,
                              BroadcastShapes(default_value.shape(), row_shape));
    if (broadcast != row_shape) {
      return errors::InvalidArgument("default_value must broadcast to the shape of a value, ",
                                     row_shape.DebugString(), ", but has shape ",
                                     default_value.shape().DebugString());
    }
    // The parents of the elements of the current dimension, whose sizes make the shape.
    DimVector dims;
    std::vector<Tensor> parents(levels);
    int64_t rows = 0;
    GRADFLOW_RETURN_IF_ERROR(FirstDimension(ctx, &rows));
    dims.push_back(merged.dim_size(0) >= 0 ? merged.dim_size(0) : rows);
    int64_t elements = rows;
    for (int level = 0; level < levels; ++level) {
      int64_t most = 0;
      const bool is_last = level + 1 == levels;
      GRADFLOW_RETURN_IF_ERROR(
          Parents(ctx, level, elements, is_last ? values.dim_size(0) : -1, &parents[level], &most));
      elements = parents[level].NumElements();
      const int64_t size = merged.dim_size(level + 1);
      dims.push_back(size >= 0 ? size : most);
    }
    for (int d = 1; d < values.dims(); ++d) dims.push_back(values.dim_size(d));
    GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, TensorShape::Make(dims));
    const int64_t width = row_shape.num_elements();
    const bool is_string = values.dtype() == DT_STRING;
    if (is_string) {
      const double default_bytes = default_value.NumElements() == 0
                                       ? 0
                                       : static_cast<double>(default_value.StringBytes()) /
                                             static_cast<double>(default_value.NumElements());
      ctx.ExpectStringBytes(static_cast<double>(values.StringBytes()) +
                            default_bytes * static_cast<double>(shape.num_elements()));
    }
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
    // The product of some sizes may overflow if another size is 0.
    if (shape.num_elements() == 0) return absl::OkStatus();
    // Default values first.
    const int64_t slots = shape.num_elements() / width;
    Tensor row;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(values.dtype(), row_shape, &row));
    Spread(default_value, &row);
    for (int64_t s = 0; s < slots; ++s) {
      if ((s & 0xffff) == 0xffff && ctx.ShouldStop()) return StoppedError();
      CopyElements(row, 0, width, output, s * width);
    }
    // The place of each element of a dimension, or -1 if the shape has no room for it.
    Tensor places;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_INT64, {rows}, &places));
    for (int64_t r = 0; r < rows; ++r) places.span<int64_t>()[r] = r < dims[0] ? r : -1;
    for (int level = 0; level < levels; ++level) {
      const int64_t count = parents[level].NumElements();
      const int64_t size = dims[level + 1];
      Tensor next;
      GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_INT64, {count}, &next));
      int64_t position = 0;
      for (int64_t e = 0; e < count; ++e) {
        if ((e & 0xffff) == 0xffff && ctx.ShouldStop()) return StoppedError();
        const int64_t parent = parents[level].span<int64_t>()[e];
        position = e > 0 && parents[level].span<int64_t>()[e - 1] == parent ? position + 1 : 0;
        const int64_t place = places.span<int64_t>()[parent];
        next.span<int64_t>()[e] = place < 0 || position >= size ? -1 : place * size + position;
      }
      places = std::move(next);
    }
    for (int64_t e = 0; e < places.NumElements(); ++e) {
      if ((e & 0xffff) == 0xffff && ctx.ShouldStop()) return StoppedError();
      const int64_t place = places.span<int64_t>()[e];
      if (place >= 0) CopyElements(values, e * width, width, output, place * width);
    }
    return absl::OkStatus();
  }

 private:
  const Tensor& PartitionTensor(const KernelContext& ctx, int k) const { return ctx.input(3 + k); }

  absl::Status FirstDimension(const KernelContext& ctx, int64_t* rows) const {
    const Tensor& first = PartitionTensor(ctx, 0);
    if (partitions_.types[0] == Partition::kFirstDimSize) {
      GRADFLOW_ASSIGN_OR_RETURN(*rows, ctx.ScalarInt(3, "the first dimension"));
      if (*rows >= 0) return absl::OkStatus();
      return errors::InvalidArgument("the first dimension must not be negative, but is ", *rows);
    }
    if (first.dims() != 1 || first.NumElements() == 0) {
      return errors::InvalidArgument("row_partition_tensors[0] must be a vector of at least one ",
                                     "element, but has shape ", first.shape().DebugString());
    }
    *rows = first.NumElements() - 1;
    return absl::OkStatus();
  }

  // Stores the row of each element of level `level`, and the size of the largest row. There are
  // `rows` rows and, unless it is negative, at most `num_values` elements.
  absl::Status Parents(KernelContext& ctx, int level, int64_t rows, int64_t num_values,
                       Tensor* parents, int64_t* most) const {
    const int k = partitions_.first() + level;
    const Tensor& partition = PartitionTensor(ctx, k);
    const std::string name = absl::StrCat("row_partition_tensors[", k, "]");
    const IndexReader reader(partition);
    GRADFLOW_RETURN_IF_ERROR(CheckRank(name, partition.shape(), 1));
    int64_t count = partition.NumElements();
    const bool has_splits = partitions_.types[k] == Partition::kRowSplits;
    if (has_splits) {
      GRADFLOW_ASSIGN_OR_RETURN(const int64_t num_splits, NumRowSplits(rows));
      if (count != num_splits) {
        return errors::InvalidArgument(name, " must have ", num_splits, " elements, but has ",
                                       count);
      }
      count = reader[rows];
      GRADFLOW_RETURN_IF_ERROR(CheckRowSplits(name, partition, count));
    }
    if (num_values >= 0 && count > num_values) {
      return errors::InvalidArgument(name, " describes ", count, " values, but there are ",
                                     num_values);
    }
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_INT64, {count}, parents));
    const auto parent = parents->span<int64_t>();
    if (has_splits) {
      for (int64_t r = 0; r < rows; ++r) {
        *most = std::max(*most, reader[r + 1] - reader[r]);
        std::fill(parent.begin() + reader[r], parent.begin() + reader[r + 1], r);
      }
      return absl::OkStatus();
    }
    int64_t size = 0;
    for (int64_t e = 0; e < count; ++e) {
      if (reader[e] < 0 || reader[e] >= rows || (e > 0 && reader[e] < reader[e - 1])) {
        return errors::InvalidArgument(name, " must not decrease and must be in [0, ", rows,
                                       "), but element ", e, " is ", reader[e]);
      }
      parent[e] = reader[e];
      size = e > 0 && reader[e] == reader[e - 1] ? size + 1 : 1;
      *most = std::max(*most, size);
    }
    return absl::OkStatus();
  }

  // Broadcasts `from` to the shape of `to`.
  static void Spread(const Tensor& from, Tensor* to) {
    const TensorShape& shape = to->shape();
    for (int64_t i = 0; i < to->NumElements(); ++i) {
      int64_t rest = i;
      int64_t at = 0;
      int64_t stride = 1;
      for (int d = shape.dims() - 1; d >= 0; --d) {
        const int64_t k = rest % shape.dim_size(d);
        rest /= shape.dim_size(d);
        const int own = d - (shape.dims() - from.dims());
        if (own < 0) continue;
        if (from.dim_size(own) > 1) at += k * stride;
        stride *= from.dim_size(own);
      }
      CopyElements(from, at, 1, to, i);
    }
  }

  Partitions partitions_;
};

}  // namespace

void Register(Registry& registry) {
  registry.Op("RaggedTensorToSparse")
      .Group("array_ops")
      .HandWritten()
      .Input("rt_nested_splits: RAGGED_RANK * Tsplits")
      .Input("rt_dense_values: T")
      .Output("sparse_indices: int64")
      .Output("sparse_values: T")
      .Output("sparse_dense_shape: int64")
      .Attr("RAGGED_RANK: int >= 1")
      .Attr("T: type")
      .Attr("Tsplits: {int32, int64} = DT_INT64")
      .Shape(ToSparseShape)
      .Doc(R"(Converts a ragged tensor to a sparse one.

rt_nested_splits: The splits of the ragged tensor, from the outermost dimension on.
rt_dense_values: Its values.
sparse_indices: The indices of the values.
sparse_values: The values.
sparse_dense_shape: The smallest shape that has room for the values.
RAGGED_RANK: The number of ragged dimensions.
T: The type of the values.
Tsplits: The type of the splits.)");
  registry.Kernel("RaggedTensorToSparse", MakeFunctionKernel<ToSparse>).Types("T", AllDataTypes());
  registry.Op("RaggedTensorToTensor")
      .Group("array_ops")
      .Input("shape: Tshape")
      .Input("values: T")
      .Input("default_value: T")
      .Input("row_partition_tensors: num_row_partition_tensors * Tindex")
      .Output("result: T")
      .Attr("T: type")
      .Attr("Tindex: {int64, int32}")
      .Attr("Tshape: {int64, int32}")
      .Attr("num_row_partition_tensors: int >= 1")
      .Attr("row_partition_types: list(string)")
      .Shape(ToTensorShape)
      .Doc(R"(Converts a ragged tensor to a dense one, with default values where it has none.

shape: The shape of the result, with -1 for sizes that the ragged tensor determines; the scalar -1
  if it determines all. Values outside of the shape are left out.
values: The values of the ragged tensor.
default_value: The value of places without a value. It is broadcast to the shape of a value.
row_partition_tensors: How the values are divided into rows, from the outermost dimension on.
result: The dense tensor.
T: The type of the values.
Tindex: The type of `row_partition_tensors`.
Tshape: The type of `shape`.
num_row_partition_tensors: The number of `row_partition_tensors`.
row_partition_types: The kind of each of them: "ROW_SPLITS" (the first value of each row, and the
  number of values), or "FIRST_DIM_SIZE" (the number of rows, a scalar) followed by "VALUE_ROWIDS"
  (the row of each value).)");
  registry.Kernel("RaggedTensorToTensor", MakeKernel<ToTensorKernel>).Types("T", AllDataTypes());
}

}  // namespace gradflow::ragged_to_dense
