#include "tensorflow/core/framework/common_shape_fns.h"

#include <algorithm>
#include <string>
#include <vector>

#include "tensorflow/core/framework/op.h"

namespace tensorflow {
namespace shape_inference {

absl::Status UnchangedShape(InferenceContext* c) {
  c->set_output(0, c->input(0));
  return absl::OkStatus();
}

absl::Status UnchangedShapeWithRank(InferenceContext* c, int32 rank) {
  ShapeHandle out;
  TF_RETURN_IF_ERROR(c->WithRank(c->input(0), rank, &out));
  c->set_output(0, out);
  return absl::OkStatus();
}

absl::Status UnchangedShapeWithRankAtLeast(InferenceContext* c, int32 rank) {
  ShapeHandle out;
  TF_RETURN_IF_ERROR(c->WithRankAtLeast(c->input(0), rank, &out));
  c->set_output(0, out);
  return absl::OkStatus();
}

absl::Status UnchangedShapeWithRankAtMost(InferenceContext* c, int32 rank) {
  ShapeHandle out;
  TF_RETURN_IF_ERROR(c->WithRankAtMost(c->input(0), rank, &out));
  c->set_output(0, out);
  return absl::OkStatus();
}

absl::Status NoOutputs(InferenceContext*) { return absl::OkStatus(); }

absl::Status ScalarShape(InferenceContext* c) {
  c->set_output(0, c->Scalar());
  return absl::OkStatus();
}

absl::Status UnknownShape(InferenceContext* c) {
  for (int i = 0; i < c->num_outputs(); ++i) c->set_output(i, c->UnknownShape());
  return absl::OkStatus();
}

absl::Status MergeBothInputsShapeFn(InferenceContext* c) {
  ShapeHandle out;
  TF_RETURN_IF_ERROR(c->Merge(c->input(0), c->input(1), &out));
  c->set_output(0, out);
  return absl::OkStatus();
}

absl::Status BroadcastBinaryOpOutputShapeFnHelper(InferenceContext* c, ShapeHandle shape_x,
                                                  ShapeHandle shape_y,
                                                  bool incompatible_shape_error, ShapeHandle* out) {
  if (!c->RankKnown(shape_x) || !c->RankKnown(shape_y)) {
    *out = c->UnknownShape();
    return absl::OkStatus();
  }
  const int32 rank = std::max(c->Rank(shape_x), c->Rank(shape_y));
  std::vector<DimensionHandle> dims(rank);
  for (int32 i = 1; i <= rank; ++i) {
    const bool has_x = i <= c->Rank(shape_x), has_y = i <= c->Rank(shape_y);
    const DimensionHandle x = has_x ? c->Dim(shape_x, -i) : c->MakeDim(1);
    const DimensionHandle y = has_y ? c->Dim(shape_y, -i) : c->MakeDim(1);
    DimensionHandle& dim = dims[rank - i];
    if (c->Value(x) == 1) {
      // If one input lacks this dimension, the other input gives the size.
      dim = has_y ? y : x;
    } else if (c->Value(y) == 1) {
      dim = x;
    } else if (c->ValueKnown(x) != c->ValueKnown(y)) {
      // An unknown size is either 1 or the same; the kernel checks it.
      dim = c->ValueKnown(x) ? x : y;
    } else if (!c->ValueKnown(x)) {
      dim = x.SameHandle(y) ? x : c->UnknownDim();
    } else if (c->Value(x) == c->Value(y)) {
      dim = x;
    } else if (incompatible_shape_error) {
      *out = ShapeHandle();
      return errors::InvalidArgument("Dimensions must be equal, but are ", c->Value(x), " and ",
                                     c->Value(y));
    } else {
      *out = c->UnknownShape();
      return absl::OkStatus();
    }
  }
  *out = c->MakeShape(dims);
  return absl::OkStatus();
}

absl::Status BroadcastBinaryOpOutputShapeFn(InferenceContext* c, int output_index) {
  ShapeHandle out;
  TF_RETURN_IF_ERROR(BroadcastBinaryOpOutputShapeFnHelper(c, c->input(0), c->input(1), true, &out));
  c->set_output(output_index, out);
  return absl::OkStatus();
}

absl::Status MatMulShape(InferenceContext* c) {
  ShapeHandle a, b;
  TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 2, &a));
  TF_RETURN_IF_ERROR(c->WithRank(c->input(1), 2, &b));
  bool transpose_a, transpose_b;
  TF_RETURN_IF_ERROR(c->GetAttr("transpose_a", &transpose_a));
  TF_RETURN_IF_ERROR(c->GetAttr("transpose_b", &transpose_b));
  DimensionHandle inner;
  TF_RETURN_IF_ERROR(
      c->Merge(c->Dim(a, transpose_a ? 0 : 1), c->Dim(b, transpose_b ? 1 : 0), &inner));
  c->set_output(0, c->Matrix(c->Dim(a, transpose_a ? 1 : 0), c->Dim(b, transpose_b ? 0 : 1)));
  return absl::OkStatus();
}

namespace {

// Infers the shape of a matrix product over the last two dimensions, with attributes `adj_x` and
// `adj_y`.
absl::Status BatchMatMul(InferenceContext* c, bool broadcast) {
  ShapeHandle a, b, batch_a, batch_b, batch, out;
  TF_RETURN_IF_ERROR(c->WithRankAtLeast(c->input(0), 2, &a));
  TF_RETURN_IF_ERROR(c->WithRankAtLeast(c->input(1), 2, &b));
  bool adj_x = false, adj_y = false;
  TF_RETURN_IF_ERROR(c->GetAttr("adj_x", &adj_x));
  TF_RETURN_IF_ERROR(c->GetAttr("adj_y", &adj_y));
  DimensionHandle inner;
  TF_RETURN_IF_ERROR(c->Merge(c->Dim(a, adj_x ? -2 : -1), c->Dim(b, adj_y ? -1 : -2), &inner));
  TF_RETURN_IF_ERROR(c->Subshape(a, 0, -2, &batch_a));
  TF_RETURN_IF_ERROR(c->Subshape(b, 0, -2, &batch_b));
  if (broadcast) {
    TF_RETURN_IF_ERROR(BroadcastBinaryOpOutputShapeFnHelper(c, batch_a, batch_b, true, &batch));
  } else {
    TF_RETURN_IF_ERROR(c->Merge(batch_a, batch_b, &batch));
  }
  TF_RETURN_IF_ERROR(c->Concatenate(
      batch, c->Matrix(c->Dim(a, adj_x ? -1 : -2), c->Dim(b, adj_y ? -2 : -1)), &out));
  c->set_output(0, out);
  return absl::OkStatus();
}

// Finds the channel dimension and the minimum rank of a tensor in the format of attribute
// data_format. Without the attribute, channels are last.
void ChannelDim(InferenceContext* c, int* channel, int* min_rank) {
  std::string format;
  const bool first = c->GetAttr("data_format", &format).ok() && format == "NCHW";
  *channel = first ? 1 : -1;
  *min_rank = first ? 3 : 2;
}

// Infers the shape of inputs [begin, end) concatenated along the axis in input `axis_input`.
absl::Status Concat(InferenceContext* c, int begin, int end, int axis_input) {
  ShapeHandle axis_shape;
  TF_RETURN_IF_ERROR(c->WithRank(c->input(axis_input), 0, &axis_shape));
  ShapeHandle out = c->input(begin);
  const Tensor* const axis = c->input_tensor(axis_input);
  if (axis == nullptr) {
    // All inputs must have the same rank.
    for (int i = begin; i < end; ++i) {
      if (!c->RankKnown(c->input(i))) continue;
      TF_RETURN_IF_ERROR(c->WithRankAtLeast(c->input(i), 1, &out));
      out = c->UnknownShapeOfRank(c->Rank(out));
      break;
    }
    if (c->RankKnown(out)) {
      for (int i = begin; i < end; ++i) {
        ShapeHandle same;
        TF_RETURN_IF_ERROR(c->WithRank(c->input(i), c->Rank(out), &same));
      }
    }
    c->set_output(0, out);
    return absl::OkStatus();
  }
  int64 a = 0;
  TF_RETURN_IF_ERROR(c->GetScalarFromTensor(axis, &a));
  if (a < -gradflow::kMaxDims || a >= gradflow::kMaxDims) {
    return errors::InvalidArgument("the axis of a concatenation is ", a);
  }
  out = c->UnknownShape();
  for (int i = begin; i < end; ++i) {
    ShapeHandle in;
    TF_RETURN_IF_ERROR(c->WithRankAtLeast(c->input(i), a < 0 ? -a : a + 1, &in));
    ShapeHandle rest;
    TF_RETURN_IF_ERROR(c->ReplaceDim(in, a, c->UnknownDim(), &rest));
    TF_RETURN_IF_ERROR(c->Merge(out, rest, &out));
  }
  DimensionHandle sum = c->MakeDim(0);
  for (int i = begin; i < end; ++i) TF_RETURN_IF_ERROR(c->Add(sum, c->Dim(c->input(i), a), &sum));
  TF_RETURN_IF_ERROR(c->ReplaceDim(out, a, sum, &out));
  c->set_output(0, out);
  return absl::OkStatus();
}

}  // namespace

absl::Status BatchMatMulShape(InferenceContext* c) { return BatchMatMul(c, /*broadcast=*/false); }
absl::Status BatchMatMulV2Shape(InferenceContext* c) { return BatchMatMul(c, /*broadcast=*/true); }

absl::Status BiasAddShape(InferenceContext* c) {
  int channel, min_rank;
  ChannelDim(c, &channel, &min_rank);
  ShapeHandle in, bias, out;
  TF_RETURN_IF_ERROR(c->WithRankAtLeast(c->input(0), min_rank, &in));
  TF_RETURN_IF_ERROR(c->WithRank(c->input(1), 1, &bias));
  if (!c->RankKnown(in)) {
    c->set_output(0, c->UnknownShape());
    return absl::OkStatus();
  }
  DimensionHandle channels;
  TF_RETURN_IF_ERROR(c->Merge(c->Dim(in, channel), c->Dim(bias, 0), &channels));
  TF_RETURN_IF_ERROR(c->ReplaceDim(in, channel, channels, &out));
  c->set_output(0, out);
  return absl::OkStatus();
}

absl::Status BiasAddGradShape(InferenceContext* c) {
  int channel, min_rank;
  ChannelDim(c, &channel, &min_rank);
  ShapeHandle in;
  TF_RETURN_IF_ERROR(c->WithRankAtLeast(c->input(0), min_rank, &in));
  c->set_output(0, c->Vector(c->Dim(in, channel)));
  return absl::OkStatus();
}

absl::Status ReductionShape(InferenceContext* c) {
  const ShapeHandle in = c->input(0);
  ShapeHandle axes_shape;
  // In graphs of version 20 and earlier, the axes may have any rank.
  if (c->graph_def_version() == 0 || c->graph_def_version() >= 21) {
    TF_RETURN_IF_ERROR(c->WithRankAtMost(c->input(1), 1, &axes_shape));
  }
  bool keep_dims = false;
  TF_RETURN_IF_ERROR(c->GetAttr("keep_dims", &keep_dims));
  const Tensor* const axes = c->input_tensor(1);
  if (axes == nullptr || !c->RankKnown(in)) {
    c->set_output(
        0, keep_dims && c->RankKnown(in) ? c->UnknownShapeOfRank(c->Rank(in)) : c->UnknownShape());
    return absl::OkStatus();
  }
  if (axes->dtype() != DT_INT32 && axes->dtype() != DT_INT64) {
    return errors::InvalidArgument("reduction axes must be int32 or int64, but are ",
                                   DataTypeString(axes->dtype()));
  }
  const int64 rank = c->Rank(in);
  std::vector<bool> reduced(rank);
  for (int64 i = 0; i < axes->NumElements(); ++i) {
    const int64 axis = axes->dtype() == DT_INT32 ? axes->flat<int32>()(i) : axes->flat<int64>()(i);
    if (axis < -rank || axis >= rank) {
      return errors::InvalidArgument("Invalid reduction dimension ", axis, " for input with ", rank,
                                     " dimensions.");
    }
    reduced[axis < 0 ? axis + rank : axis] = true;
  }
  std::vector<DimensionHandle> dims;
  for (int64 d = 0; d < rank; ++d) {
    if (!reduced[d]) {
      dims.push_back(c->Dim(in, d));
    } else if (keep_dims) {
      dims.push_back(c->MakeDim(1));
    }
  }
  c->set_output(0, c->MakeShape(dims));
  return absl::OkStatus();
}

absl::Status ConcatShape(InferenceContext* c, int num_inputs_to_concat) {
  return Concat(c, 1, 1 + num_inputs_to_concat, 0);
}

absl::Status ConcatV2Shape(InferenceContext* c) {
  return Concat(c, 0, c->num_inputs() - 1, c->num_inputs() - 1);
}

absl::Status ExplicitShapes(InferenceContext* c) {
  std::vector<PartialTensorShape> shapes;
  TF_RETURN_IF_ERROR(c->GetAttr("shapes", &shapes));
  if (shapes.empty()) return errors::Internal("attribute shapes is empty");
  for (size_t i = 0; i < shapes.size(); ++i) {
    ShapeHandle out;
    TF_RETURN_IF_ERROR(c->MakeShapeFromPartialTensorShape(shapes[i], &out));
    c->set_output(static_cast<int>(i), out);
  }
  return absl::OkStatus();
}

absl::Status RandomShape(InferenceContext* c) {
  ShapeHandle out;
  TF_RETURN_IF_ERROR(c->MakeShapeFromShapeTensor(0, &out));
  c->set_output(0, out);
  return absl::OkStatus();
}

absl::Status ReduceScatterShape(InferenceContext* c) {
  const ShapeHandle in = c->input(0);
  ShapeHandle out = in;
  if (c->RankKnown(in)) {
    const ShapeHandle groups = c->input(1);
    if (c->RankKnown(groups) && c->Rank(groups) != 2) {
      return errors::InvalidArgument("ReduceScatter group_assignment should be rank 2");
    }
    const Tensor* const axis = c->input_tensor(2);
    if (axis == nullptr) {
      out = c->UnknownShapeOfRank(c->Rank(in));
    } else {
      int64 a = 0;
      TF_RETURN_IF_ERROR(c->GetScalarFromTensor(axis, &a));
      DimensionHandle part;
      TF_RETURN_IF_ERROR(c->Divide(c->Dim(in, a), c->Dim(groups, 1), true, &part));
      TF_RETURN_IF_ERROR(c->ReplaceDim(in, a, part, &out));
    }
  }
  c->set_output(0, out);
  return absl::OkStatus();
}

absl::Status ValidateSparseTensor(InferenceContext* c, ShapeHandle indices_shape,
                                  ShapeHandle values_shape, ShapeHandle shape_shape) {
  ShapeHandle indices, values, shape;
  TF_RETURN_IF_ERROR(c->WithRank(indices_shape, 2, &indices));
  TF_RETURN_IF_ERROR(c->WithRank(values_shape, 1, &values));
  TF_RETURN_IF_ERROR(c->WithRank(shape_shape, 1, &shape));
  DimensionHandle count, rank;
  TF_RETURN_IF_ERROR(c->Merge(c->Dim(indices, 0), c->Dim(values, 0), &count));
  return c->Merge(c->Dim(indices, 1), c->Dim(shape, 0), &rank);
}

namespace {

// Calls the shape function of a registered op.
absl::Status ShapeOfOp(const char* op, InferenceContext* c) {
  const OpRegistrationData* data = nullptr;
  TF_RETURN_IF_ERROR(OpRegistry::Global()->LookUp(op, &data));
  return data->shape_inference_fn(c);
}

}  // namespace

absl::Status AvgPoolShape(InferenceContext* c) { return ShapeOfOp("AvgPool", c); }
absl::Status Conv2DShape(InferenceContext* c) { return ShapeOfOp("Conv2D", c); }
absl::Status Conv3DShape(InferenceContext* c) { return ShapeOfOp("Conv3D", c); }
absl::Status DepthwiseConv2DNativeShape(InferenceContext* c) {
  return ShapeOfOp("DepthwiseConv2dNative", c);
}
absl::Status EinsumShape(InferenceContext* c) { return ShapeOfOp("Einsum", c); }
absl::Status FusedBatchNormShape(InferenceContext* c) { return ShapeOfOp("FusedBatchNorm", c); }
absl::Status FusedBatchNormGradShape(InferenceContext* c) {
  return ShapeOfOp("FusedBatchNormGrad", c);
}
absl::Status GatherNdShape(InferenceContext* c) { return ShapeOfOp("GatherNd", c); }
absl::Status MaxPoolShape(InferenceContext* c) { return ShapeOfOp("MaxPool", c); }
absl::Status SliceShape(InferenceContext* c) { return ShapeOfOp("Slice", c); }

absl::Status ExplicitShape(InferenceContext* c) {
  PartialTensorShape shape;
  TF_RETURN_IF_ERROR(c->GetAttr("shape", &shape));
  ShapeHandle out;
  TF_RETURN_IF_ERROR(c->MakeShapeFromPartialTensorShape(shape, &out));
  c->set_output(0, out);
  return absl::OkStatus();
}

}  // namespace shape_inference
}  // namespace tensorflow
