#include "tensorflow/core/framework/shape_inference.h"

#include <algorithm>
#include <utility>

#include "gradflow/core/op_def_util.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "tensorflow/core/framework/name_ranges.h"

namespace tensorflow {
namespace shape_inference {
namespace {

// Computes the ranges of the arguments among the node's inputs and outputs.
absl::Status FindRanges(const NodeDef& node, gradflow::NameRangeMap* inputs,
                        gradflow::NameRangeMap* outputs) {
  GRADFLOW_ASSIGN_OR_RETURN(const gradflow::OpRegistration* op,
                            gradflow::GlobalRegistry().LookUpOp(node.op()));
  return gradflow::NameRangesForNode(node, op->def(), inputs, outputs);
}

// Stores a + b in *sum. Returns an error on overflow.
absl::Status CheckedAdd(int64 a, int64 b, int64* sum) {
  if (!__builtin_add_overflow(a, b, sum)) return absl::OkStatus();
  return errors::InvalidArgument("Dimension size overflow from adding ", a, " and ", b);
}

std::string SizeString(int64 size) { return size < 0 ? "?" : absl::StrCat(size); }

}  // namespace

const PartialTensorShape& InferenceContext::Value(ShapeHandle s) const {
  static const auto* unknown = new PartialTensorShape;
  return s.IsSet() ? *s.shape_ : *unknown;
}

bool InferenceContext::Has(StringPiece kind, int i, int count) const {
  if (i >= 0 && i < count) return true;
  status_.Update(errors::Internal("the shape function asked for ", kind, " ", i, " of ", count));
  return false;
}

ShapeHandle InferenceContext::Own(PartialTensorShape shape) {
  shapes_.push_back(std::move(shape));
  return ShapeHandle(&shapes_.back());
}

absl::Status InferenceContext::input(StringPiece name, std::vector<ShapeHandle>* shapes) const {
  gradflow::NameRangeMap ranges;
  gradflow::NameRange range;
  TF_RETURN_IF_ERROR(FindRanges(context_.def(), &ranges, nullptr));
  TF_RETURN_IF_ERROR(compat_internal::FindRange(ranges, "input", name, &range));
  shapes->clear();
  for (int i = range.first; i < range.second; ++i) shapes->push_back(input(i));
  return absl::OkStatus();
}

absl::Status InferenceContext::set_output(StringPiece name,
                                          const std::vector<ShapeHandle>& shapes) {
  gradflow::NameRangeMap ranges;
  gradflow::NameRange range;
  TF_RETURN_IF_ERROR(FindRanges(context_.def(), nullptr, &ranges));
  TF_RETURN_IF_ERROR(compat_internal::FindRange(ranges, "output", name, &range));
  if (range.second - range.first != static_cast<int>(shapes.size())) {
    return errors::InvalidArgument("output '", name, "' has ", range.second - range.first,
                                   " tensors, but ", shapes.size(), " shapes are given");
  }
  for (size_t i = 0; i < shapes.size(); ++i) set_output(range.first + i, shapes[i]);
  return absl::OkStatus();
}

DimensionHandle InferenceContext::Dim(ShapeHandle s, int64 i) const {
  const int32 rank = Rank(s);
  if (i < 0) i += rank;
  if (rank < 0 || i < 0 || i >= rank) return DimensionHandle(kUnknownDim);
  return DimensionHandle(s.shape_->dim_size(static_cast<int>(i)));
}

bool InferenceContext::FullyDefined(ShapeHandle s) const { return Value(s).IsFullyDefined(); }

DimensionHandle InferenceContext::NumElements(ShapeHandle s) const {
  return DimensionHandle(RankKnown(s) ? Value(s).num_elements() : kUnknownDim);
}

std::string InferenceContext::DebugString(ShapeHandle s) const {
  return RankKnown(s) ? Value(s).DebugString() : "?";
}

std::string InferenceContext::DebugString(DimensionHandle d) const { return SizeString(Value(d)); }

absl::Status InferenceContext::WithRank(ShapeHandle s, int64 rank, ShapeHandle* out) {
  if (rank < 0 || rank > gradflow::kMaxDims) {
    return errors::InvalidArgument("Rank must be in [0, ", gradflow::kMaxDims, "], but is ", rank);
  }
  if (!RankKnown(s)) {
    *out = UnknownShapeOfRank(rank);
    return absl::OkStatus();
  }
  if (Rank(s) != rank) {
    return errors::InvalidArgument("Shape must be rank ", rank, " but is rank ", Rank(s),
                                   " for shape ", DebugString(s));
  }
  *out = s;
  return absl::OkStatus();
}

absl::Status InferenceContext::WithRankAtLeast(ShapeHandle s, int64 rank, ShapeHandle* out) {
  if (RankKnown(s) && Rank(s) < rank) {
    return errors::InvalidArgument("Shape must be at least rank ", rank, " but is rank ", Rank(s),
                                   " for shape ", DebugString(s));
  }
  *out = s;
  return absl::OkStatus();
}

absl::Status InferenceContext::WithRankAtMost(ShapeHandle s, int64 rank, ShapeHandle* out) {
  if (RankKnown(s) && Rank(s) > rank) {
    return errors::InvalidArgument("Shape must be at most rank ", rank, " but is rank ", Rank(s),
                                   " for shape ", DebugString(s));
  }
  *out = s;
  return absl::OkStatus();
}

absl::Status InferenceContext::WithValue(DimensionHandle d, int64 value, DimensionHandle* out) {
  if (ValueKnown(d) && Value(d) != value) {
    return errors::InvalidArgument("Dimension must be ", value, " but is ", Value(d));
  }
  *out = DimensionHandle(value);
  return absl::OkStatus();
}

absl::Status InferenceContext::Merge(DimensionHandle a, DimensionHandle b, DimensionHandle* out) {
  if (ValueKnown(a) && ValueKnown(b) && Value(a) != Value(b)) {
    return errors::InvalidArgument("Dimensions must be equal, but are ", Value(a), " and ",
                                   Value(b));
  }
  *out = ValueKnown(a) ? a : MakeDim(b);
  return absl::OkStatus();
}

absl::Status InferenceContext::Merge(ShapeHandle a, ShapeHandle b, ShapeHandle* out) {
  if (!RankKnown(a) || !RankKnown(b)) {
    *out = RankKnown(a) ? a : b;
    return absl::OkStatus();
  }
  if (Rank(a) != Rank(b)) {
    return errors::InvalidArgument("Shapes must be equal rank, but are ", Rank(a), " and ", Rank(b),
                                   ": ", DebugString(a), " and ", DebugString(b));
  }
  std::vector<DimensionHandle> dims(Rank(a));
  for (int i = 0; i < Rank(a); ++i) {
    if (absl::Status status = Merge(Dim(a, i), Dim(b, i), &dims[i]); !status.ok()) {
      return errors::InvalidArgument("Dimension ", i, " in both shapes must be equal, but are ",
                                     DebugString(Dim(a, i)), " and ", DebugString(Dim(b, i)), ": ",
                                     DebugString(a), " and ", DebugString(b));
    }
  }
  *out = MakeShape(dims);
  return absl::OkStatus();
}

absl::Status InferenceContext::MergePrefix(ShapeHandle s, ShapeHandle prefix, ShapeHandle* s_out,
                                           ShapeHandle* prefix_out) {
  if (!RankKnown(s) || !RankKnown(prefix)) {
    *s_out = s;
    *prefix_out = prefix;
    return absl::OkStatus();
  }
  ShapeHandle head, tail;
  TF_RETURN_IF_ERROR(WithRankAtLeast(s, Rank(prefix), &s));
  TF_RETURN_IF_ERROR(Subshape(s, 0, Rank(prefix), &head));
  TF_RETURN_IF_ERROR(Subshape(s, Rank(prefix), &tail));
  TF_RETURN_IF_ERROR(Merge(head, prefix, prefix_out));
  return Concatenate(*prefix_out, tail, s_out);
}

ShapeHandle InferenceContext::MakeShape(const std::vector<DimensionHandle>& dims) {
  PartialTensorShape shape = PartialTensorShape::UnknownOfRank(static_cast<int>(dims.size()));
  for (size_t i = 0; i < dims.size(); ++i) shape.set_dim(static_cast<int>(i), Value(dims[i]));
  return Own(std::move(shape));
}

ShapeHandle InferenceContext::MakeShape(std::initializer_list<DimensionOrConstant> dims) {
  std::vector<DimensionHandle> handles;
  for (const DimensionOrConstant& dim : dims) handles.push_back(MakeDim(dim));
  return MakeShape(handles);
}

ShapeHandle InferenceContext::UnknownShapeOfRank(int64 rank) {
  if (rank < 0 || rank > gradflow::kMaxDims) return UnknownShape();
  return Own(PartialTensorShape::UnknownOfRank(static_cast<int>(rank)));
}

absl::Status InferenceContext::MakeShapeFromShapeTensor(int i, ShapeHandle* out) {
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape,
                            context_.ShapeFromInput(i, /*allow_unknown=*/true));
  *out = Own(std::move(shape));
  return absl::OkStatus();
}

absl::Status InferenceContext::MakeShapeFromPartialTensorShape(const PartialTensorShape& shape,
                                                               ShapeHandle* out) {
  *out = Own(shape);
  return absl::OkStatus();
}

absl::Status InferenceContext::MakeShapeFromTensorShape(const TensorShape& shape,
                                                        ShapeHandle* out) {
  *out = Own(shape);
  return absl::OkStatus();
}

absl::Status InferenceContext::MakeShapeFromShapeProto(const TensorShapeProto& proto,
                                                       ShapeHandle* out) {
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, PartialTensorShape::Make(proto));
  *out = Own(std::move(shape));
  return absl::OkStatus();
}

absl::Status InferenceContext::Subshape(ShapeHandle s, int64 start, ShapeHandle* out) {
  return Subshape(s, start, kint64max, out);
}

absl::Status InferenceContext::Subshape(ShapeHandle s, int64 start, int64 end, ShapeHandle* out) {
  if (start == 0 && ((RankKnown(s) && end >= Rank(s)) || end == kint64max)) {
    *out = s;
    return absl::OkStatus();
  }
  if (!RankKnown(s)) {
    *out = UnknownShape();
    return absl::OkStatus();
  }
  const int64 rank = Rank(s);
  const int64 first = start < 0 ? start + rank : std::min(start, rank);
  const int64 last = end < 0 ? end + rank : std::min(end, rank);
  if (first < 0 || last < first) {
    return errors::InvalidArgument("Subshape must have 0 <= start <= end, but has start = ", start,
                                   " and end = ", end, " of shape ", DebugString(s));
  }
  std::vector<DimensionHandle> dims;
  for (int64 i = first; i < last; ++i) dims.push_back(Dim(s, i));
  *out = MakeShape(dims);
  return absl::OkStatus();
}

absl::Status InferenceContext::Concatenate(ShapeHandle a, ShapeHandle b, ShapeHandle* out) {
  if (!RankKnown(a) || !RankKnown(b)) {
    *out = UnknownShape();
    return absl::OkStatus();
  }
  std::vector<DimensionHandle> dims;
  for (int i = 0; i < Rank(a); ++i) dims.push_back(Dim(a, i));
  for (int i = 0; i < Rank(b); ++i) dims.push_back(Dim(b, i));
  if (dims.size() > static_cast<size_t>(gradflow::kMaxDims)) {
    return errors::InvalidArgument("Shapes ", DebugString(a), " and ", DebugString(b),
                                   " have more than ", gradflow::kMaxDims, " dimensions together");
  }
  *out = MakeShape(dims);
  return absl::OkStatus();
}

absl::Status InferenceContext::ReplaceDim(ShapeHandle s, int64 i, DimensionHandle dim,
                                          ShapeHandle* out) {
  if (!RankKnown(s)) {
    *out = UnknownShape();
    return absl::OkStatus();
  }
  const int64 rank = Rank(s);
  if (i < -rank || i >= rank) {
    return errors::InvalidArgument("Out of range dim_index ", i, " for shape with ", rank,
                                   " dimensions");
  }
  PartialTensorShape shape = Value(s);
  shape.set_dim(static_cast<int>(i < 0 ? i + rank : i), Value(dim));
  *out = Own(std::move(shape));
  return absl::OkStatus();
}

absl::Status InferenceContext::GetScalarFromTensor(const Tensor* tensor, int64* value) {
  if (tensor->dims() != 0) {
    return errors::InvalidArgument("Input must be scalar but has rank ", tensor->dims());
  }
  if (tensor->dtype() == DT_INT32) {
    *value = tensor->scalar<int32>()();
  } else if (tensor->dtype() == DT_INT64) {
    *value = tensor->scalar<int64>()();
  } else {
    return errors::InvalidArgument("Scalar input must be int32 or int64, but is ",
                                   DataTypeString(tensor->dtype()));
  }
  return absl::OkStatus();
}

absl::Status InferenceContext::MakeDimForScalarInput(int i, DimensionHandle* out) {
  const Tensor* tensor = input_tensor(i);
  int64 value = kUnknownDim;
  if (tensor != nullptr) {
    TF_RETURN_IF_ERROR(GetScalarFromTensor(tensor, &value));
    if (value < 0) {
      return errors::InvalidArgument("Dimension size, given by scalar input ", i,
                                     ", must be non-negative but is ", value);
    }
  }
  *out = DimensionHandle(value);
  return absl::OkStatus();
}

absl::Status InferenceContext::Add(DimensionHandle a, DimensionOrConstant b, DimensionHandle* out) {
  int64 sum = kUnknownDim;
  if (ValueKnown(a) && ValueKnown(b)) TF_RETURN_IF_ERROR(CheckedAdd(Value(a), Value(b), &sum));
  *out = DimensionHandle(sum);
  return absl::OkStatus();
}

absl::Status InferenceContext::Subtract(DimensionHandle a, DimensionOrConstant b,
                                        DimensionHandle* out) {
  int64 difference = kUnknownDim;
  if (ValueKnown(a) && ValueKnown(b)) {
    if (Value(a) < Value(b)) {
      return errors::InvalidArgument("Negative dimension size caused by subtracting ", Value(b),
                                     " from ", Value(a));
    }
    difference = Value(a) - Value(b);
  }
  *out = DimensionHandle(difference);
  return absl::OkStatus();
}

absl::Status InferenceContext::Multiply(DimensionHandle a, DimensionOrConstant b,
                                        DimensionHandle* out) {
  int64 product = kUnknownDim;
  if (Value(a) == 0 || Value(b) == 0) {
    product = 0;
  } else if (ValueKnown(a) && ValueKnown(b)) {
    product = gradflow::MultiplyWithoutOverflow(Value(a), Value(b));
    if (product < 0) {
      return errors::InvalidArgument("Negative dimension size caused by overflow when multiplying ",
                                     Value(a), " and ", Value(b));
    }
  }
  *out = DimensionHandle(product);
  return absl::OkStatus();
}

absl::Status InferenceContext::Divide(DimensionHandle a, DimensionOrConstant b,
                                      bool evenly_divisible, DimensionHandle* out) {
  int64 quotient = kUnknownDim;
  if (b.dim.IsSet() ? ValueKnown(b) : true) {
    if (Value(b) <= 0) {
      return errors::InvalidArgument("Divisor must be positive but is ", Value(b));
    }
    if (ValueKnown(a)) {
      if (evenly_divisible && Value(a) % Value(b) != 0) {
        return errors::InvalidArgument("Dimension size must be evenly divisible by ", Value(b),
                                       " but is ", Value(a));
      }
      quotient = Value(a) / Value(b);
    }
  }
  *out = DimensionHandle(quotient);
  return absl::OkStatus();
}

absl::Status InferenceContext::Min(DimensionHandle a, DimensionOrConstant b, DimensionHandle* out) {
  int64 min = kUnknownDim;
  if (Value(a) == 0 || Value(b) == 0) {
    min = 0;
  } else if (ValueKnown(a) && ValueKnown(b)) {
    min = std::min(Value(a), Value(b));
  }
  *out = DimensionHandle(min);
  return absl::OkStatus();
}

absl::Status InferenceContext::Max(DimensionHandle a, DimensionOrConstant b, DimensionHandle* out) {
  *out =
      DimensionHandle(ValueKnown(a) && ValueKnown(b) ? std::max(Value(a), Value(b)) : kUnknownDim);
  return absl::OkStatus();
}

}  // namespace shape_inference
}  // namespace tensorflow
