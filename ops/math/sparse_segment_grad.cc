// Gradients of SparseSegmentSum, SparseSegmentMean and SparseSegmentSqrtN.
//
// Row i of the gradient of data is a weighted sum of rows of grad: the rows of the segments that
// row i was selected for, each multiplied by the weight of its segment.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/data_types.h"
#include "gradflow/ops/math/segment_rows.h"

namespace gradflow::sparse_segment_grad {
namespace {

enum class Weight { kOne, kMean, kSqrtN };

// The number of columns whose sums stay in the L1 cache.
constexpr int64_t kTile = 512;

// Checks grad, indices and segment_ids. Checks that output_dim0 is a scalar.
absl::Status CheckInputs(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRankAtLeast(0, 1));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(1, 1));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(2, 1));
  GRADFLOW_RETURN_IF_ERROR(c.CheckSameShape(1, 2));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(3, 0));
  return absl::OkStatus();
}

absl::Status CheckRows(absl::string_view name, int64_t rows) {
  if (rows >= 0) return absl::OkStatus();
  return errors::InvalidArgument(name, " is ", rows, ", expected at least 0");
}

absl::Status SetRows(ShapeContext& c, int64_t rows) {
  if (c.input(0).unknown_rank()) return absl::OkStatus();
  DimVector dims = {rows};
  for (int d = 1; d < c.input(0).dims(); ++d) dims.push_back(c.Dim(0, d));
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, PartialTensorShape::Make(dims));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status GradShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckInputs(c));
  std::vector<int64_t> rows;
  GRADFLOW_ASSIGN_OR_RETURN(const bool known, c.IntsFromInput(3, &rows));
  if (known) GRADFLOW_RETURN_IF_ERROR(CheckRows("output_dim0", rows[0]));
  return SetRows(c, known ? rows[0] : -1);
}

absl::Status GradShapeV2(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckInputs(c));
  std::vector<int64_t> rows;
  GRADFLOW_ASSIGN_OR_RETURN(const bool rows_known, c.IntsFromInput(3, &rows));
  if (rows_known) GRADFLOW_RETURN_IF_ERROR(CheckRows("dense_output_dim0", rows[0]));
  std::vector<int64_t> indices;
  GRADFLOW_ASSIGN_OR_RETURN(const bool known, c.IntsFromInput(1, &indices));
  int64_t unique = -1;
  if (known) {
    std::sort(indices.begin(), indices.end());
    unique = std::unique(indices.begin(), indices.end()) - indices.begin();
  }
  c.set_output(1, {unique});
  return SetRows(c, unique);
}

// Sets row s of `out` to the sum of weights[id] * grad[id] over the ids of the rows of segment s.
template <typename T>
void AddRows(KernelContext& ctx, const SegmentRows& rows, const int64_t* ids, const double* weights,
             int64_t width, const T* grad, T* out) {
  const int64_t tile = std::min(width, kTile);
  const int64_t tiles = NumBlocks(width, tile);
  const double mean_rows = 1.0 * rows.starts[rows.num_segments] / rows.num_segments;
  ParallelFor(ctx, rows.num_segments * tiles, BlockSizeForCost((mean_rows + 0.5) * tile + 5),
              [&](int64_t begin, int64_t end) {
                double sums[kTile];
                for (int64_t task = begin; task < end; ++task) {
                  const int64_t s = task / tiles;
                  const int64_t column = task % tiles * tile;
                  const int64_t columns = std::min(tile, width - column);
                  std::fill_n(sums, columns, 0.0);
                  for (int64_t i = rows.starts[s]; i < rows.starts[s + 1]; ++i) {
                    const int64_t id = ids[rows.order[i]];
                    const T* row = grad + id * width + column;
                    const double weight = weights[id];
                    for (int64_t j = 0; j < columns; ++j) {
                      sums[j] += weight * static_cast<double>(row[j]);
                    }
                  }
                  T* to = out + s * width + column;
                  for (int64_t j = 0; j < columns; ++j) to[j] = static_cast<T>(sums[j]);
                }
              });
}

// Groups the positions of `indices` by value, in increasing order. Sets *unique to the distinct
// values.
absl::Status GroupUnique(KernelContext& ctx, absl::Span<const int64_t> indices, SegmentRows* rows,
                         std::vector<int64_t>* unique) {
  const int64_t n = static_cast<int64_t>(indices.size());
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_INT64, {n + 1}, &rows->starts_storage));
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_INT64, {n}, &rows->order_storage));
  int64_t* starts = static_cast<int64_t*>(rows->starts_storage.raw_data());
  int64_t* order = static_cast<int64_t*>(rows->order_storage.raw_data());
  for (int64_t i = 0; i < n; ++i) order[i] = i;
  std::sort(order, order + n, [&](int64_t a, int64_t b) {
    return indices[a] != indices[b] ? indices[a] < indices[b] : a < b;
  });
  for (int64_t i = 0; i < n; ++i) {
    if (i > 0 && indices[order[i]] == unique->back()) continue;
    starts[unique->size()] = i;
    unique->push_back(indices[order[i]]);
  }
  starts[unique->size()] = n;
  rows->num_segments = static_cast<int64_t>(unique->size());
  rows->starts = starts;
  rows->order = order;
  return absl::OkStatus();
}

// kUnique: the V2 op, whose output has only the rows that were selected.
template <Weight kWeight, bool kUnique>
absl::Status Gradient(KernelContext& ctx) {
  constexpr char kRows[] = "dense_output_dim0";
  const absl::string_view rows_name = kUnique ? kRows : kRows + 6;
  const Tensor& grad = ctx.input(0);
  if (grad.dtype() != ctx.expected_output_dtype(0)) {
    return errors::InvalidArgument("grad must be of type ",
                                   DataTypeString(ctx.expected_output_dtype(0)), ", but is ",
                                   DataTypeString(grad.dtype()));
  }
  if (grad.dims() < 1) return errors::InvalidArgument("grad must have rank 1 at least");
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(1, "indices"));
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(2, "segment_ids"));
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckSameShape(1, "indices", 2, "segment_ids"));
  GRADFLOW_ASSIGN_OR_RETURN(const int64_t output_rows, ctx.ScalarInt(3, rows_name));
  GRADFLOW_RETURN_IF_ERROR(CheckRows(rows_name, output_rows));
  Tensor storage[2];
  GRADFLOW_ASSIGN_OR_RETURN(const absl::Span<const int64_t> indices,
                            Int64Elements(ctx, 1, "indices", &storage[0]));
  GRADFLOW_ASSIGN_OR_RETURN(const absl::Span<const int64_t> ids,
                            Int64Elements(ctx, 2, "segment_ids", &storage[1]));
  GRADFLOW_RETURN_IF_ERROR(CheckIndices("indices", indices, output_rows));
  GRADFLOW_RETURN_IF_ERROR(CheckIndices("segment_ids", ids, grad.dim_size(0)));

  SegmentRows rows;
  std::vector<int64_t> unique;
  if (kUnique) GRADFLOW_RETURN_IF_ERROR(GroupUnique(ctx, indices, &rows, &unique));
  DimVector dims = {kUnique ? rows.num_segments : output_rows};
  for (int d = 1; d < grad.dims(); ++d) dims.push_back(grad.dim_size(d));
  GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, TensorShape::Make(dims));
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
  if (kUnique) {
    Tensor* values = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(1, {rows.num_segments}, &values));
    DispatchType(IndexTypes(), values->dtype(), [&](auto tag) {
      using Index = typename decltype(tag)::type;
      Index* to = values->flat<Index>().data();
      for (size_t i = 0; i < unique.size(); ++i) to[i] = static_cast<Index>(unique[i]);
    });
  }
  if (shape.num_elements() == 0) return absl::OkStatus();
  if (!kUnique) GRADFLOW_RETURN_IF_ERROR(GroupRows(ctx, indices, output_rows, &rows));

  Tensor weights;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_DOUBLE, {grad.dim_size(0)}, &weights));
  double* weight = static_cast<double*>(weights.raw_data());
  std::fill_n(weight, weights.NumElements(), kWeight == Weight::kOne ? 1 : 0);
  if (kWeight != Weight::kOne) {
    for (const int64_t id : ids) ++weight[id];
    for (int64_t s = 0; s < weights.NumElements(); ++s) {
      if (weight[s] > 0)
        weight[s] = 1 / (kWeight == Weight::kMean ? weight[s] : std::sqrt(weight[s]));
    }
  }
  DispatchType(FloatingTypes(), grad.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    AddRows<T>(ctx, rows, ids.data(), weight, shape.num_elements() / shape.dim_size(0),
               static_cast<const T*>(grad.raw_data()), static_cast<T*>(output->raw_data()));
  });
  return absl::OkStatus();
}

template <Weight kWeight>
void RegisterGradient(Registry& registry, absl::string_view name, absl::string_view weight) {
  const std::string op = absl::StrCat("SparseSegment", name, "Grad");
  const std::string doc = absl::StrCat("Computes the gradient of SparseSegment", name, R"(.

A row of the gradient of the data is the sum of the rows of `grad` for the segments that it was
selected for)",
                                       weight, ". The sum is computed in double.");
  const std::string inputs = R"(

grad: The gradient of the output, a row for each segment.
indices: A vector of the rows of the data that were selected.
segment_ids: The segments of the selected rows, in any order.
)";
  const std::string types = R"(T: The type of `grad` and `output`.
Tidx: The type of the indices.
Tsegmentids: The type of the ids.)";
  registry.Op(op)
      .Group("math_ops")
      .Input("grad: T")
      .Input("indices: Tidx")
      .Input("segment_ids: Tsegmentids")
      .Input("output_dim0: int32")
      .Output("output: T")
      .Attr("T: {bfloat16, half, float, double}")
      .Attr("Tidx: {int32, int64} = DT_INT32")
      .Attr("Tsegmentids: {int32, int64} = DT_INT32")
      .Shape(GradShape)
      .Doc(absl::StrCat(doc, " Rows that were not selected have 0.", inputs,
                        R"(output_dim0: A scalar: the number of rows of the data.
output: The gradient of the data.
)",
                        types));
  registry.Op(op + "V2")
      .Group("math_ops")
      .Input("grad: T")
      .Input("indices: Tidx")
      .Input("segment_ids: Tsegmentids")
      .Input("dense_output_dim0: int32")
      .Output("output: T")
      .Output("sorted_unique_indices: Tidx")
      .Attr("T: {bfloat16, half, float, double}")
      .Attr("Tidx: {int32, int64} = DT_INT32")
      .Attr("Tsegmentids: {int32, int64} = DT_INT32")
      .Shape(GradShapeV2)
      .Doc(absl::StrCat(doc, inputs, R"(dense_output_dim0: A scalar: the number of rows of the data.
output: The rows of the gradient of the data that were selected.
sorted_unique_indices: The indices of these rows in the data, in increasing order.
)",
                        types));
  registry.Kernel(op, MakeFunctionKernel<Gradient<kWeight, false>>)
      .Types("T", DataTypesOf(FloatingTypes()));
  registry.Kernel(op + "V2", MakeFunctionKernel<Gradient<kWeight, true>>)
      .Types("T", DataTypesOf(FloatingTypes()));
}

}  // namespace

void Register(Registry& registry) {
  RegisterGradient<Weight::kOne>(registry, "Sum", "");
  RegisterGradient<Weight::kMean>(registry, "Mean",
                                  ", each divided by the number of rows of its segment");
  RegisterGradient<Weight::kSqrtN>(
      registry, "SqrtN", ", each divided by the square root of the number of rows of its segment");
}

}  // namespace gradflow::sparse_segment_grad
