// DynamicPartition, which distributes rows to several tensors, and its inverses DynamicStitch and
// ParallelDynamicStitch. Rows are copied as bytes, strings and other objects one at a time.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/input_checks.h"
#include "gradflow/ops/common/strided_copy.h"

namespace gradflow::dynamic_stitch {
namespace {

// Returns [rows] followed by the dimensions of `shape` from `from` on.
absl::StatusOr<PartialTensorShape> WithRows(int64_t rows, const PartialTensorShape& shape,
                                            int from) {
  DimVector dims = {rows};
  for (int d = from; d < shape.dims(); ++d) dims.push_back(shape.dim_size(d));
  return PartialTensorShape::Make(dims);
}

// Copies row `from` of `source` to row `to` of `target`. Rows have `width` elements.
void CopyRow(const Tensor& source, int64_t from, Tensor* target, int64_t to, int64_t width) {
  CopyElements(source, from * width, target, to * width, width);
}

// ---- DynamicPartition ----

absl::Status CheckPartition(int64_t i, int64_t partition, int64_t num_partitions) {
  if (partition >= 0 && partition < num_partitions) return absl::OkStatus();
  return errors::InvalidArgument("partitions[", i, "] = ", partition, " is not in [0, ",
                                 num_partitions, ")");
}

absl::Status PartitionShape(ShapeContext& c) {
  const PartialTensorShape& data = c.input(0);
  const PartialTensorShape& partitions = c.input(1);
  GRADFLOW_RETURN_IF_ERROR(CheckPrefix("data", data, "partitions", partitions));
  std::vector<int64_t> values;
  GRADFLOW_ASSIGN_OR_RETURN(const bool known, c.IntsFromInput(1, &values));
  std::vector<int64_t> counts(c.num_outputs(), known ? 0 : -1);
  for (size_t i = 0; i < values.size(); ++i) {
    GRADFLOW_RETURN_IF_ERROR(CheckPartition(static_cast<int64_t>(i), values[i], c.num_outputs()));
    ++counts[values[i]];
  }
  if (data.unknown_rank() || partitions.unknown_rank()) return absl::OkStatus();
  for (int p = 0; p < c.num_outputs(); ++p) {
    GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape,
                              WithRows(counts[p], data, partitions.dims()));
    c.set_output(p, std::move(shape));
  }
  return absl::OkStatus();
}

absl::Status DynamicPartition(KernelContext& ctx) {
  const Tensor& data = ctx.input(0);
  const Tensor& partitions = ctx.input(1);
  GRADFLOW_RETURN_IF_ERROR(CheckPrefix("data", data.shape(), "partitions", partitions.shape()));
  if (partitions.dtype() != DT_INT32) {
    return errors::InvalidArgument("partitions must be of type int32, but are ",
                                   DataTypeString(partitions.dtype()));
  }
  const auto partition = partitions.span<int32_t>();
  const int64_t n = partitions.NumElements();
  std::vector<int64_t> counts(ctx.num_outputs());
  for (int64_t i = 0; i < n; ++i) {
    GRADFLOW_RETURN_IF_ERROR(CheckPartition(i, partition[i], ctx.num_outputs()));
    ++counts[partition[i]];
  }
  std::vector<Tensor*> outputs(ctx.num_outputs());
  for (int p = 0; p < ctx.num_outputs(); ++p) {
    GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape dims,
                              WithRows(counts[p], data.shape(), partitions.dims()));
    GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, TensorShape::Make(dims.dim_sizes()));
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(p, shape, &outputs[p]));
  }
  if (data.NumElements() == 0) return absl::OkStatus();
  const int64_t width = data.NumElements() / n;
  // The row of the output that each input row goes to.
  Tensor targets;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_INT64, {n}, &targets));
  int64_t* target = static_cast<int64_t*>(targets.raw_data());
  std::fill(counts.begin(), counts.end(), 0);
  for (int64_t i = 0; i < n; ++i) target[i] = counts[partition[i]]++;
  ParallelFor(ctx, n, BlockSizeForCost(0.2 * width + 5), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      CopyRow(data, i, outputs[partition[i]], target[i], width);
    }
  });
  return absl::OkStatus();
}

// ---- DynamicStitch ----

// Returns the error that the rows of data[k] and data[first] have different shapes.
absl::Status RowsDiffer(int first, const PartialTensorShape& first_row, int k,
                        const PartialTensorShape& row) {
  return MergeShapes(absl::StrCat("a row of data[", first, "]"), first_row,
                     absl::StrCat("a row of data[", k, "]"), row)
      .status();
}

absl::Status CheckIndex(int k, int64_t i, int64_t index) {
  if (index >= 0) return absl::OkStatus();
  return errors::InvalidArgument("indices[", k, "][", i, "] is ", index, ", expected at least 0");
}

absl::Status StitchShape(ShapeContext& c) {
  const int n = c.num_inputs() / 2;
  int64_t rows = 0;
  // The shape of a row.
  PartialTensorShape row;
  int first = -1;
  for (int k = 0; k < n; ++k) {
    const PartialTensorShape& indices = c.input(k);
    const PartialTensorShape& data = c.input(n + k);
    GRADFLOW_RETURN_IF_ERROR(CheckPrefix(c.input_name(n + k), data, c.input_name(k), indices));
    std::vector<int64_t> values;
    GRADFLOW_ASSIGN_OR_RETURN(const bool known, c.IntsFromInput(k, &values));
    if (!known) rows = -1;
    for (size_t i = 0; i < values.size(); ++i) {
      GRADFLOW_RETURN_IF_ERROR(CheckIndex(k, static_cast<int64_t>(i), values[i]));
      if (rows >= 0) rows = std::max(rows, values[i] + 1);
    }
    if (data.unknown_rank() || indices.unknown_rank()) continue;
    const PartialTensorShape here(data.dim_sizes().subspan(indices.dims()));
    if (!row.IsCompatibleWith(here)) {
      return RowsDiffer(first, row, k, here);
    }
    if (first < 0) first = k;
    GRADFLOW_ASSIGN_OR_RETURN(row, row.MergeWith(here));
  }
  if (row.unknown_rank()) return absl::OkStatus();
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, WithRows(rows, row, 0));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status DynamicStitch(KernelContext& ctx) {
  const int n = ctx.num_inputs() / 2;
  int64_t rows = 0;
  absl::Span<const int64_t> row;
  for (int k = 0; k < n; ++k) {
    const Tensor& indices = ctx.input(k);
    const Tensor& data = ctx.input(n + k);
    if (indices.dtype() != DT_INT32 || data.dtype() != ctx.expected_output_dtype(0)) {
      return errors::InvalidArgument("indices and data must be of types int32 and ",
                                     DataTypeString(ctx.expected_output_dtype(0)), ", but are ",
                                     DataTypeString(indices.dtype()), " and ",
                                     DataTypeString(data.dtype()));
    }
    GRADFLOW_RETURN_IF_ERROR(CheckPrefix(absl::StrCat("data[", k, "]"), data.shape(),
                                         absl::StrCat("indices[", k, "]"), indices.shape()));
    const auto here = data.shape().dim_sizes().subspan(indices.dims());
    if (k == 0) row = here;
    if (here != row) {
      return RowsDiffer(0, PartialTensorShape(row), k, PartialTensorShape(here));
    }
    const auto values = indices.span<int32_t>();
    for (size_t i = 0; i < values.size(); ++i) {
      GRADFLOW_RETURN_IF_ERROR(CheckIndex(k, static_cast<int64_t>(i), values[i]));
      rows = std::max<int64_t>(rows, int64_t{values[i]} + 1);
    }
  }
  DimVector dims = {rows};
  dims.insert(dims.end(), row.begin(), row.end());
  GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, TensorShape::Make(dims));
  if (ctx.expected_output_dtype(0) == DT_STRING) {
    double bytes = 0;
    for (int k = 0; k < n; ++k) bytes += static_cast<double>(ctx.input(n + k).StringBytes());
    ctx.ExpectStringBytes(bytes);
  }
  Tensor* merged = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &merged));
  if (shape.num_elements() == 0) return absl::OkStatus();
  const int64_t width = shape.num_elements() / rows;

  // The source of each row: an input and a row of this input, or -1. The last of several sources
  // wins, so that each row is written once.
  Tensor sources;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_INT64, {rows, 2}, &sources));
  int64_t* source = static_cast<int64_t*>(sources.raw_data());
  std::fill_n(source, 2 * rows, -1);
  for (int k = 0; k < n; ++k) {
    const auto values = ctx.input(k).span<int32_t>();
    for (size_t i = 0; i < values.size(); ++i) {
      // 2 * r may not fit in an int32.
      const int64_t r = values[i];
      source[2 * r] = n + k;
      source[2 * r + 1] = static_cast<int64_t>(i);
    }
  }
  ParallelFor(ctx, rows, BlockSizeForCost(0.2 * width + 5), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      if (source[2 * r] >= 0) {
        CopyRow(ctx.input(static_cast<int>(source[2 * r])), source[2 * r + 1], merged, r, width);
      } else {
        ClearElements(merged, r * width, width);
      }
    }
  });
  return absl::OkStatus();
}

constexpr char kStitchDoc[] = R"(

Row `indices[k][i]` of the result is row i of `data[k]`. If an index occurs several times, the last
row is used: the last k and, for this k, the last i. Rows without an index are 0 (or empty strings).

indices: Tensors of the indices of rows, not negative.
data: For each tensor of indices, a tensor whose shape starts with the shape of the indices. The
  rest is the shape of a row, which is the same for all tensors.
merged: The rows, up to the largest index.
N: The number of tensors of indices, and of data.
T: The type of `data` and `merged`.)";

}  // namespace

void Register(Registry& registry) {
  registry.Op("DynamicPartition")
      .Group("data_flow_ops")
      .Input("data: T")
      .Input("partitions: int32")
      .Output("outputs: num_partitions * T")
      .Attr("num_partitions: int >= 1")
      .Attr("T: type")
      .Shape(PartitionShape)
      .Doc(R"(Sends each row of a tensor to one of several outputs.

The rows of an output keep their order.

data: A tensor whose shape starts with the shape of `partitions`. The rest is the shape of a row.
partitions: The output of each row, in [0, num_partitions), in any shape.
outputs: The rows for each output.
num_partitions: The number of outputs.
T: The type of `data` and the outputs.)");
  for (const char* op : {"DynamicStitch", "ParallelDynamicStitch"}) {
    registry.Op(op)
        .Group("data_flow_ops")
        .Input("indices: N * int32")
        .Input("data: N * T")
        .Output("merged: T")
        .Attr("N: int >= 1")
        .Attr("T: type")
        .Shape(StitchShape)
        .Doc(absl::StrCat("Merges rows of tensors into one tensor, by index.", kStitchDoc));
    registry.Kernel(op, MakeFunctionKernel<DynamicStitch>).Types("T", AllDataTypes());
  }
  registry.Kernel("DynamicPartition", MakeFunctionKernel<DynamicPartition>)
      .Types("T", AllDataTypes());
}

}  // namespace gradflow::dynamic_stitch
