// StringJoin, ReduceJoin and UnsortedSegmentJoin.
#include <algorithm>
#include <cstdint>
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
#include "gradflow/ops/common/indices.h"
#include "gradflow/ops/common/input_checks.h"
#include "gradflow/ops/string/string_loop.h"

namespace gradflow::string_join {
namespace {

class JoinKernel : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return construction.GetAttr("separator", &separator_);
  }

 protected:
  std::string separator_;
};

// ---- StringJoin ----

absl::Status StringJoinShape(ShapeContext& c) {
  PartialTensorShape shape = TensorShape();
  bool is_known = true;
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (c.input(i).unknown_rank()) {
      is_known = false;
    } else if (c.input(i).dims() > 0) {
      if (shape.dims() == 0) {
        shape = c.input(i);
      } else if (shape.IsCompatibleWith(c.input(i))) {
        GRADFLOW_ASSIGN_OR_RETURN(shape, shape.MergeWith(c.input(i)));
      } else {
        return MergeShapes("an earlier input", shape, c.input_name(i), c.input(i)).status();
      }
    }
  }
  if (is_known || shape.dims() > 0) c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

class StringJoinKernel final : public JoinKernel {
 public:
  absl::Status Compute(KernelContext& ctx) const override {
    const int n = ctx.num_inputs();
    TensorShape shape;
    std::vector<absl::Span<const tstring>> inputs;
    double nanoseconds = 0;
    for (int i = 0; i < n; ++i) {
      GRADFLOW_RETURN_IF_ERROR(CheckStrings(ctx, i, "inputs"));
      const Tensor& input = ctx.input(i);
      if (input.dims() > 0) {
        if (shape.dims() > 0 && shape != input.shape()) {
          return MergeShapes("an earlier input", shape, absl::StrCat("inputs[", i, "]"),
                             input.shape())
              .status();
        }
        shape = input.shape();
      }
      inputs.push_back(input.span<tstring>());
      nanoseconds += StringNanoseconds(input, 0.1);
    }
    const auto part = [&](int k, int64_t i) -> const tstring& {
      return inputs[k][ctx.input(k).dims() == 0 ? 0 : i];
    };
    const auto bytes = [&](int64_t i) {
      double sum = static_cast<double>(separator_.size()) * std::max(n - 1, 0);
      for (int k = 0; k < n; ++k) sum += static_cast<double>(part(k, i).size());
      return sum;
    };
    return MakeStrings(ctx, shape, nanoseconds, bytes, [&](int64_t i, tstring* string) {
      string->reserve(static_cast<size_t>(bytes(i)));
      for (int k = 0; k < n; ++k) {
        if (k > 0) string->append(separator_);
        string->append(part(k, i));
      }
      return absl::OkStatus();
    });
  }
};

// ---- ReduceJoin ----

absl::Status CheckAxis(int64_t axis, int rank, std::vector<bool>* reduced) {
  if (axis < -rank || axis >= rank) {
    return absl::OutOfRangeError(absl::StrCat(
        "reduction_indices has ", axis, ", which is not a dimension of inputs, of rank ", rank));
  }
  const int64_t d = axis < 0 ? axis + rank : axis;
  if ((*reduced)[d]) {
    return errors::InvalidArgument("reduction_indices names dimension ", d, " twice");
  }
  (*reduced)[d] = true;
  return absl::OkStatus();
}

absl::Status ReduceJoinShape(ShapeContext& c) {
  const Tensor* const axes = c.input_tensor(1);
  const PartialTensorShape& in = c.input(0);
  bool keep_dims = false;
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("keep_dims", &keep_dims));
  if (axes == nullptr || in.unknown_rank()) {
    if (keep_dims && !in.unknown_rank()) {
      c.set_output(0, PartialTensorShape::UnknownOfRank(in.dims()));
    }
    return absl::OkStatus();
  }
  std::vector<bool> reduced(in.dims());
  const IndexReader reader(*axes);
  for (int64_t k = 0; k < axes->NumElements(); ++k) {
    GRADFLOW_RETURN_IF_ERROR(CheckAxis(reader[k], in.dims(), &reduced));
  }
  DimVector dims;
  for (int d = 0; d < in.dims(); ++d) {
    if (!reduced[d] || keep_dims) dims.push_back(reduced[d] ? 1 : in.dim_size(d));
  }
  c.set_output(0, PartialTensorShape(dims));
  return absl::OkStatus();
}

class ReduceJoinKernel final : public JoinKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("keep_dims", &keep_dims_));
    return JoinKernel::Init(construction);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckStrings(ctx, 0, "inputs"));
    const Tensor& input = ctx.input(0);
    const Tensor& axes = ctx.input(1);
    const int rank = input.dims();
    // The first reduced dimension varies fastest within a result.
    std::vector<bool> reduced(rank);
    DimVector joined_sizes;
    DimVector joined_strides;
    DimVector strides(rank);
    int64_t stride = 1;
    for (int d = rank - 1; d >= 0; --d) {
      strides[d] = stride;
      stride *= input.dim_size(d);
    }
    const IndexReader reader(axes);
    for (int64_t k = 0; k < axes.NumElements(); ++k) {
      GRADFLOW_RETURN_IF_ERROR(CheckAxis(reader[k], rank, &reduced));
      const int64_t d = reader[k] < 0 ? reader[k] + rank : reader[k];
      joined_sizes.push_back(input.dim_size(d));
      joined_strides.push_back(strides[d]);
    }
    DimVector dims;
    DimVector kept_sizes;
    DimVector kept_strides;
    for (int d = 0; d < rank; ++d) {
      if (!reduced[d] || keep_dims_) dims.push_back(reduced[d] ? 1 : input.dim_size(d));
      if (reduced[d]) continue;
      kept_sizes.push_back(input.dim_size(d));
      kept_strides.push_back(strides[d]);
    }
    std::reverse(kept_sizes.begin(), kept_sizes.end());
    std::reverse(kept_strides.begin(), kept_strides.end());
    GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, TensorShape::Make(dims));
    int64_t joined = 1;
    for (const int64_t size : joined_sizes) joined *= size;
    // Returns the place of element i of dimensions whose first varies fastest.
    const auto place = [](int64_t i, const DimVector& sizes, const DimVector& steps) {
      int64_t at = 0;
      for (size_t d = 0; d < sizes.size(); ++d) {
        at += i % sizes[d] * steps[d];
        i /= sizes[d];
      }
      return at;
    };
    const auto strings = input.span<tstring>();
    const auto part = [&](int64_t i, int64_t k) -> const tstring& {
      return strings[place(i, kept_sizes, kept_strides) + place(k, joined_sizes, joined_strides)];
    };
    const auto bytes = [&](int64_t i) {
      if (joined == 0) return 0.0;
      double sum = static_cast<double>(separator_.size()) * static_cast<double>(joined - 1);
      for (int64_t k = 0; k < joined; ++k) sum += static_cast<double>(part(i, k).size());
      return sum;
    };
    return MakeStrings(ctx, shape, StringNanoseconds(input, 0.1) * static_cast<double>(joined + 1),
                       bytes, [&](int64_t i, tstring* string) {
                         string->reserve(static_cast<size_t>(bytes(i)));
                         for (int64_t k = 0; k < joined; ++k) {
                           if (k > 0) string->append(separator_);
                           string->append(part(i, k));
                         }
                         return absl::OkStatus();
                       });
  }

 private:
  bool keep_dims_ = false;
};

// ---- UnsortedSegmentJoin ----

absl::Status SegmentJoinShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(2, 0));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRankAtLeast(1, 1));
  const PartialTensorShape& inputs = c.input(0);
  const PartialTensorShape& ids = c.input(1);
  GRADFLOW_RETURN_IF_ERROR(CheckPrefix("inputs", inputs, "segment_ids", ids));
  if (inputs.unknown_rank() || ids.unknown_rank()) return absl::OkStatus();
  std::vector<int64_t> segments;
  GRADFLOW_ASSIGN_OR_RETURN(const bool known, c.IntsFromInput(2, &segments));
  DimVector dims = {-1};
  if (known && segments.size() == 1) {
    if (segments[0] < 0) {
      return errors::InvalidArgument("num_segments must not be negative, but is ", segments[0]);
    }
    dims[0] = segments[0];
  }
  for (int d = ids.dims(); d < inputs.dims(); ++d) dims.push_back(inputs.dim_size(d));
  c.set_output(0, PartialTensorShape(dims));
  return absl::OkStatus();
}

class SegmentJoinKernel final : public JoinKernel {
 public:
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckStrings(ctx, 0, "inputs"));
    const Tensor& input = ctx.input(0);
    const Tensor& ids = ctx.input(1);
    GRADFLOW_RETURN_IF_ERROR(CheckRankAtLeast("segment_ids", ids.shape(), 1));
    GRADFLOW_RETURN_IF_ERROR(CheckPrefix("inputs", input.shape(), "segment_ids", ids.shape()));
    GRADFLOW_ASSIGN_OR_RETURN(const int64_t segments, ctx.ScalarInt(2, "num_segments"));
    if (segments < 0) {
      return errors::InvalidArgument("num_segments must not be negative, but is ", segments);
    }
    GRADFLOW_RETURN_IF_ERROR(CheckIndices(ctx.run(), ids, segments));
    if (ctx.ShouldStop()) return StoppedError();
    DimVector dims = {segments};
    for (int d = ids.dims(); d < input.dims(); ++d) dims.push_back(input.dim_size(d));
    GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, TensorShape::Make(dims));
    const int64_t rows = ids.NumElements();
    const int64_t width = rows == 0 ? 0 : input.NumElements() / rows;
    // Counts the characters of each result before it is made.
    Tensor sizes;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_DOUBLE, {shape.num_elements()}, &sizes));
    Tensor* output = nullptr;
    ctx.ExpectStringBytes(0);
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
    const auto size = sizes.span<double>();
    std::fill(size.begin(), size.end(), 0.0);
    const IndexReader reader(ids);
    const auto in = input.span<tstring>();
    const auto out = output->span<tstring>();
    const auto separator = static_cast<double>(separator_.size());
    double total = 0;
    for (int64_t r = 0; r < rows; ++r) {
      if (r % 4096 == 0 && ctx.ShouldStop()) return StoppedError();
      for (int64_t k = 0; k < width; ++k) {
        // There is no separator after empty strings at the beginning, as in TensorFlow.
        double& s = size[reader[r] * width + k];
        const double added =
            static_cast<double>(in[r * width + k].size()) + (s > 0 ? separator : 0);
        s += added;
        total += added;
      }
    }
    constexpr double kMost = 1e18;
    GRADFLOW_RETURN_IF_ERROR(output->ChargeStrings(static_cast<size_t>(std::min(total, kMost))));
    for (int64_t r = 0; r < rows; ++r) {
      if (r % 4096 == 0 && ctx.ShouldStop()) return StoppedError();
      for (int64_t k = 0; k < width; ++k) {
        const int64_t at = reader[r] * width + k;
        if (out[at].empty()) {
          out[at].reserve(static_cast<size_t>(size[at]));
        } else {
          out[at].append(separator_);
        }
        out[at].append(in[r * width + k]);
      }
    }
    return absl::OkStatus();
  }
};

}  // namespace

void Register(Registry& registry) {
  registry.Op("StringJoin")
      .Group("string_ops")
      .Input("inputs: N * string")
      .Output("output: string")
      .Attr("N: int >= 0")
      .Attr("separator: string = ''")
      .Shape(StringJoinShape)
      .Doc(R"(Joins the strings at each place of several tensors.

inputs: Tensors of one shape. A scalar stands for a tensor of this shape.
output: The results, of the shape of the inputs.
N: The number of inputs.
separator: The text between two strings.)");
  registry.Kernel("StringJoin", MakeKernel<StringJoinKernel>);
  registry.Op("ReduceJoin")
      .Group("string_ops")
      .Input("inputs: string")
      .Input("reduction_indices: int32")
      .Output("output: string")
      .Attr("keep_dims: bool = false")
      .Attr("separator: string = ''")
      .Shape(ReduceJoinShape)
      .Doc(R"(Joins all strings along dimensions of a tensor.

The first of `reduction_indices` is joined first: `[0, 1]` joins the columns of a matrix, and then
the results.

inputs: Strings.
reduction_indices: The dimensions to join, in any order; negative ones count from the end. If there
  are none, the result is `inputs`.
output: The results.
keep_dims: If true, joined dimensions remain with size 1.
separator: The text between two strings.)");
  registry.Kernel("ReduceJoin", MakeKernel<ReduceJoinKernel>);
  registry.Op("UnsortedSegmentJoin")
      .Group("string_ops")
      .Input("inputs: string")
      .Input("segment_ids: Tindices")
      .Input("num_segments: Tnumsegments")
      .Output("output: string")
      .Attr("separator: string = ''")
      .Attr("Tindices: {int32, int64}")
      .Attr("Tnumsegments: {int32, int64} = DT_INT32")
      .Shape(SegmentJoinShape)
      .Doc(R"(Joins the strings of each segment, in their order.

inputs: Strings.
segment_ids: The segment of each row of `inputs`. Its shape is the beginning of the shape of
  `inputs`.
num_segments: The number of segments, a scalar.
output: A row for each segment. The strings of an empty segment are empty. Empty strings at the
  beginning of a segment have no separator.
separator: The text between two strings.
Tindices: The type of `segment_ids`.
Tnumsegments: The type of `num_segments`.)");
  registry.Kernel("UnsortedSegmentJoin", MakeKernel<SegmentJoinKernel>);
}

}  // namespace gradflow::string_join
