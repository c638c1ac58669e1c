#include "tensorflow/core/framework/shape_inference.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_join.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "tensorflow/core/framework/name_ranges.h"

namespace tensorflow {
namespace shape_inference {
namespace {

// Returns an error about two dimensions that must be equal.
absl::Status NotEqual(int64 a, int64 b) {
  return errors::InvalidArgument("Dimensions must be equal, but are ", a, " and ", b);
}

}  // namespace

InferenceContext::InferenceContext(int graph_def_version, const AttrSlice& attrs,
                                   const OpDef& op_def,
                                   const std::vector<ShapeHandle>& input_shapes,
                                   const std::vector<const Tensor*>& input_tensors,
                                   const std::vector<ShapeHandle>& input_tensors_as_shapes,
                                   Handles input_handle_shapes_and_types)
    : graph_def_version_(graph_def_version),
      attrs_(attrs),
      inputs_(input_shapes),
      input_tensors_as_shapes_(input_tensors_as_shapes),
      input_handles_(std::move(input_handle_shapes_and_types)) {
  Init(op_def, input_tensors);
}

InferenceContext::InferenceContext(
    int graph_def_version, const AttrSlice& attrs, const OpDef& op_def,
    const std::vector<PartialTensorShape>& input_shapes,
    const std::vector<const Tensor*>& input_tensors,
    const std::vector<PartialTensorShape>& input_tensors_as_shapes,
    const std::vector<std::unique_ptr<std::vector<std::pair<PartialTensorShape, DataType>>>>&
        input_handle_shapes_and_types)
    : graph_def_version_(graph_def_version), attrs_(attrs) {
  for (const PartialTensorShape& shape : input_shapes) inputs_.push_back(Own(shape));
  for (const PartialTensorShape& shape : input_tensors_as_shapes) {
    input_tensors_as_shapes_.push_back(Own(shape));
  }
  for (const auto& values : input_handle_shapes_and_types) {
    input_handles_.emplace_back();
    if (values == nullptr) continue;
    input_handles_.back() = std::make_unique<ShapesAndTypes>();
    for (const auto& [shape, dtype] : *values) {
      input_handles_.back()->emplace_back(Own(shape), dtype);
    }
  }
  Init(op_def, input_tensors);
}

InferenceContext::InferenceContext(gradflow::ShapeContext& context)
    : context_(&context), attrs_(context.def()) {
  for (int i = 0; i < context.num_inputs(); ++i) inputs_.push_back(Own(context.input(i)));
  outputs_.resize(context.num_outputs());
  input_tensors_.resize(inputs_.size());
  input_handles_.resize(inputs_.size());
  output_handles_.resize(outputs_.size());
  requested_tensor_.resize(inputs_.size());
  requested_partial_shape_.resize(inputs_.size());
}

InferenceContext::~InferenceContext() = default;

void InferenceContext::Init(const OpDef& op_def, const std::vector<const Tensor*>& input_tensors) {
  input_tensors_ = input_tensors;
  input_tensors_.resize(inputs_.size());
  input_handles_.resize(inputs_.size());
  requested_tensor_.resize(inputs_.size());
  requested_partial_shape_.resize(inputs_.size());
  has_ranges_ = true;
  construction_status_ = NameRangesForNode(attrs_, op_def, &input_ranges_, &output_ranges_);
  int num_outputs = 0;
  for (const auto& [name, range] : output_ranges_)
    num_outputs = std::max(num_outputs, range.second);
  int num_inputs = 0;
  for (const auto& [name, range] : input_ranges_) num_inputs = std::max(num_inputs, range.second);
  if (construction_status_.ok() && num_inputs != this->num_inputs()) {
    construction_status_ =
        errors::InvalidArgument("Wrong number of inputs passed: ", this->num_inputs(), " while ",
                                num_inputs, " expected based on NodeDef");
  }
  outputs_.resize(num_outputs);
  output_handles_.resize(num_outputs);
}

absl::Status InferenceContext::Run(const std::function<absl::Status(InferenceContext* c)>& fn) {
  ForgetMerges();
  absl::Status status = fn(this);
  status.Update(status_);
  return status.ok() ? status : AttachContext(status);
}

bool InferenceContext::Has(absl::string_view kind, int64 i, int count) const {
  if (i >= 0 && i < count) return true;
  status_.Update(errors::Internal("the shape function asked for ", kind, " ", i, " of ", count));
  return false;
}

ShapeHandle InferenceContext::Own(const PartialTensorShape& shape) {
  if (shape.unknown_rank()) return UnknownShape();
  std::vector<DimensionHandle> dims;
  dims.reserve(shape.dims());
  for (const int64 size : shape.dim_sizes()) dims.push_back(MakeDim(size));
  return MakeShape(dims);
}

absl::StatusOr<PartialTensorShape> InferenceContext::PlainShape(ShapeHandle s) const {
  if (!RankKnown(s)) return PartialTensorShape();
  std::vector<int64> sizes;
  for (const DimensionHandle d : s->dims_) sizes.push_back(Value(d));
  return PartialTensorShape::Make(sizes);
}

absl::Status InferenceContext::FindRanges() const {
  if (has_ranges_) return absl::OkStatus();
  GRADFLOW_ASSIGN_OR_RETURN(const gradflow::OpRegistration* op,
                            gradflow::GlobalRegistry().LookUpOp(context_->def().op()));
  TF_RETURN_IF_ERROR(NameRangesForNode(attrs_, op->def(), &input_ranges_, &output_ranges_));
  has_ranges_ = true;
  return absl::OkStatus();
}

absl::Status InferenceContext::input(absl::string_view name,
                                     std::vector<ShapeHandle>* shapes) const {
  gradflow::NameRange range;
  TF_RETURN_IF_ERROR(FindRanges());
  TF_RETURN_IF_ERROR(compat_internal::FindRange(input_ranges_, "input", name, &range));
  shapes->clear();
  for (int i = range.first; i < range.second; ++i) shapes->push_back(input(i));
  return absl::OkStatus();
}

absl::Status InferenceContext::output(absl::string_view name,
                                      std::vector<ShapeHandle>* shapes) const {
  gradflow::NameRange range;
  TF_RETURN_IF_ERROR(FindRanges());
  TF_RETURN_IF_ERROR(compat_internal::FindRange(output_ranges_, "output", name, &range));
  shapes->clear();
  for (int i = range.first; i < range.second; ++i) shapes->push_back(output(i));
  return absl::OkStatus();
}

absl::Status InferenceContext::set_output(absl::string_view name,
                                          const std::vector<ShapeHandle>& shapes) {
  gradflow::NameRange range;
  TF_RETURN_IF_ERROR(FindRanges());
  TF_RETURN_IF_ERROR(compat_internal::FindRange(output_ranges_, "output", name, &range));
  if (range.second - range.first != static_cast<int>(shapes.size())) {
    return errors::InvalidArgument("output '", name, "' has ", range.second - range.first,
                                   " tensors, but ", shapes.size(), " shapes are given");
  }
  for (size_t i = 0; i < shapes.size(); ++i) {
    set_output(range.first + static_cast<int>(i), shapes[i]);
  }
  return absl::OkStatus();
}

absl::Status InferenceContext::ExpandOutputs(int new_output_size) {
  if (new_output_size < num_outputs()) {
    return errors::InvalidArgument("the number of outputs cannot be reduced from ", num_outputs(),
                                   " to ", new_output_size);
  }
  outputs_.resize(new_output_size);
  output_handles_.resize(new_output_size);
  return absl::OkStatus();
}

const Tensor* InferenceContext::input_tensor(int i) {
  if (!HasInput(i)) return nullptr;
  requested_tensor_[i] = true;
  if (context_ != nullptr) input_tensors_[i] = context_->input_tensor(i);
  return input_tensors_[i];
}

// ---- Access ----

DimensionHandle InferenceContext::DimKnownRank(ShapeHandle s, int64 i) {
  const int64 rank = Rank(s);
  if (i < 0) i += rank;
  return rank < 0 || i < 0 || i >= rank ? DimensionHandle() : s->dims_[i];
}

DimensionHandle InferenceContext::Dim(ShapeHandle s, int64 i) {
  const DimensionHandle d = DimKnownRank(s, i);
  return d.IsSet() ? d : UnknownDim();
}

bool InferenceContext::FullyDefined(ShapeHandle s) const {
  return RankKnown(s) && std::all_of(s->dims_.begin(), s->dims_.end(),
                                     [](DimensionHandle d) { return ValueKnown(d); });
}

DimensionHandle InferenceContext::NumElements(ShapeHandle s) {
  const absl::StatusOr<PartialTensorShape> shape = PlainShape(s);
  return MakeDim(shape.ok() ? shape->num_elements() : kUnknownDim);
}

void InferenceContext::ShapeHandleToProto(ShapeHandle s, TensorShapeProto* proto) const {
  proto->Clear();
  if (!RankKnown(s)) {
    proto->set_unknown_rank(true);
    return;
  }
  for (const DimensionHandle d : s->dims_) proto->add_dim()->set_size(Value(d));
}

TensorShapeProto InferenceContext::ShapeHandleToProto(ShapeHandle s) const {
  TensorShapeProto proto;
  ShapeHandleToProto(s, &proto);
  return proto;
}

std::string InferenceContext::DebugString(ShapeHandle s) const {
  if (!RankKnown(s)) return "?";
  return absl::StrCat(
      "[",
      absl::StrJoin(s->dims_, ",", [this](std::string* text, auto d) { *text += DebugString(d); }),
      "]");
}

std::string InferenceContext::DebugString(DimensionHandle d) const {
  return ValueKnown(d) ? absl::StrCat(Value(d)) : "?";
}

std::string InferenceContext::DebugString(const ShapeAndType& shape_and_type) const {
  return absl::StrCat(DebugString(shape_and_type.shape), ":", DataTypeString(shape_and_type.dtype));
}

std::string InferenceContext::DebugString(gtl::ArraySlice<ShapeAndType> shapes_and_types) const {
  return absl::StrCat("[",
                      absl::StrJoin(shapes_and_types, ",",
                                    [this](std::string* text, const ShapeAndType& value) {
                                      *text += DebugString(value);
                                    }),
                      "]");
}

std::string InferenceContext::DebugString() const {
  return absl::StrCat("InferenceContext for node: ", attrs_.SummarizeNode());
}

absl::Status InferenceContext::AttachContext(const absl::Status& status) {
  std::string text = absl::StrCat(status.message(), " for '", attrs_.SummarizeNode(), "'");
  const auto append = [&](absl::string_view what, const std::vector<std::string>& items) {
    if (!items.empty()) absl::StrAppend(&text, what, absl::StrJoin(items, ", "));
  };
  std::vector<std::string> shapes, tensors, partial_shapes;
  for (const ShapeHandle s : inputs_) shapes.push_back(DebugString(s));
  for (int i = 0; i < num_inputs(); ++i) {
    const Tensor* const tensor = input_tensors_[i];
    if (tensor != nullptr && (requested_tensor_[i] || requested_partial_shape_[i])) {
      tensors.push_back(absl::StrCat("input[", i, "] = <", tensor->SummarizeValue(256), ">"));
    } else if (requested_partial_shape_[i] &&
               i < static_cast<int>(input_tensors_as_shapes_.size()) &&
               RankKnown(input_tensors_as_shapes_[i])) {
      partial_shapes.push_back(
          absl::StrCat("input[", i, "] = ", DebugString(input_tensors_as_shapes_[i])));
    }
  }
  append(" with input shapes: ", shapes);
  append(" and with computed input tensors: ", tensors);
  append(" and with input tensors computed as partial shapes: ", partial_shapes);
  return absl::Status(status.code(), text + ".");
}

// ---- Constraints ----

absl::Status InferenceContext::WithRank(ShapeHandle s, int64 rank, ShapeHandle* out) {
  if (rank < 0 || rank > gradflow::kMaxDims) {
    *out = ShapeHandle();
    return errors::InvalidArgument("Rank must be in [0, ", gradflow::kMaxDims, "], but is ", rank);
  }
  if (!RankKnown(s)) return Merge(s, UnknownShapeOfRank(rank), out);
  if (Rank(s) != rank) {
    const int32 found = Rank(s);
    *out = ShapeHandle();
    return errors::InvalidArgument("Shape must be rank ", rank, " but is rank ", found);
  }
  *out = s;
  return absl::OkStatus();
}

absl::Status InferenceContext::WithRankAtLeast(ShapeHandle s, int64 rank, ShapeHandle* out) {
  if (RankKnown(s) && Rank(s) < rank) {
    *out = ShapeHandle();
    return errors::InvalidArgument("Shape must be at least rank ", rank, " but is rank ", Rank(s));
  }
  *out = s;
  return absl::OkStatus();
}

absl::Status InferenceContext::WithRankAtMost(ShapeHandle s, int64 rank, ShapeHandle* out) {
  if (RankKnown(s) && Rank(s) > rank) {
    *out = ShapeHandle();
    return errors::InvalidArgument("Shape must be at most rank ", rank, " but is rank ", Rank(s));
  }
  *out = s;
  return absl::OkStatus();
}

absl::Status InferenceContext::WithValue(DimensionHandle d, int64 value, DimensionHandle* out) {
  if (!ValueKnown(d)) return Merge(d, MakeDim(value), out);
  if (Value(d) == value) {
    *out = d;
    return absl::OkStatus();
  }
  *out = DimensionHandle();
  return errors::InvalidArgument("Dimension must be ", value, " but is ", Value(d));
}

absl::Status InferenceContext::Merge(DimensionHandle a, DimensionHandle b, DimensionHandle* out) {
  if (ValueKnown(a) && ValueKnown(b) && Value(a) != Value(b)) {
    *out = DimensionHandle();
    return NotEqual(Value(a), Value(b));
  }
  if (!a.SameHandle(b) && (!ValueKnown(a) || !ValueKnown(b))) merged_dims_.emplace_back(a, b);
  // Returns the known dimension; `a` if both or neither are known.
  *out = ValueKnown(a) || !ValueKnown(b) ? a : b;
  return absl::OkStatus();
}

absl::Status InferenceContext::Merge(ShapeHandle a, ShapeHandle b, ShapeHandle* out) {
  if (a.SameHandle(b)) {
    *out = a;
    return absl::OkStatus();
  }
  if (!RankKnown(a) || !RankKnown(b)) {
    merged_shapes_.emplace_back(a, b);
    *out = RankKnown(a) || !RankKnown(b) ? a : b;
    return absl::OkStatus();
  }
  *out = ShapeHandle();
  if (Rank(a) != Rank(b)) {
    return errors::InvalidArgument("Shapes must be equal rank, but are ", Rank(a), " and ",
                                   Rank(b));
  }
  // True while a (or b) has all sizes that either shape knows.
  bool is_a = true, is_b = true;
  for (int i = 0; i < Rank(a); ++i) {
    const int64 size_a = Value(a->dims_[i]);
    const int64 size_b = Value(b->dims_[i]);
    if (size_a == size_b) continue;
    if (size_a != kUnknownDim && size_b != kUnknownDim) {
      return errors::InvalidArgument("Dimension ", i, " in both shapes must be equal, but are ",
                                     size_a, " and ", size_b, ". Shapes are ", DebugString(a),
                                     " and ", DebugString(b), ".");
    }
    (size_a == kUnknownDim ? is_a : is_b) = false;
  }
  merged_shapes_.emplace_back(a, b);
  if (is_a || is_b) {
    *out = is_a ? a : b;
    return absl::OkStatus();
  }
  std::vector<DimensionHandle> dims(Rank(a));
  for (int i = 0; i < Rank(a); ++i) {
    TF_RETURN_IF_ERROR(Merge(a->dims_[i], b->dims_[i], &dims[i]));
  }
  *out = MakeShape(dims);
  merged_shapes_.emplace_back(a, *out);
  return absl::OkStatus();
}

absl::Status InferenceContext::MergePrefix(ShapeHandle s, ShapeHandle prefix, ShapeHandle* s_out,
                                           ShapeHandle* prefix_out) {
  *s_out = *prefix_out = ShapeHandle();
  if (!RankKnown(s) || !RankKnown(prefix)) {
    *s_out = s;
    *prefix_out = prefix;
    return absl::OkStatus();
  }
  TF_RETURN_IF_ERROR(WithRankAtLeast(s, Rank(prefix), &s));
  std::vector<DimensionHandle> dims(Rank(prefix));
  for (int i = 0; i < Rank(prefix); ++i) {
    TF_RETURN_IF_ERROR(Merge(s->dims_[i], prefix->dims_[i], &dims[i]));
  }
  *prefix_out = MakeShape(dims);
  dims.insert(dims.end(), s->dims_.begin() + Rank(prefix), s->dims_.end());
  *s_out = MakeShape(dims);
  return absl::OkStatus();
}

bool InferenceContext::MergeInput(int i, ShapeHandle shape) {
  ShapeHandle merged;
  if (!HasInput(i) || !Merge(inputs_[i], shape, &merged).ok()) return false;
  inputs_[i] = merged;
  return true;
}

bool InferenceContext::RelaxInput(int i, ShapeHandle shape) {
  if (!HasInput(i)) return false;
  ShapeHandle relaxed;
  Relax(inputs_[i], shape, &relaxed);
  if (inputs_[i].SameHandle(relaxed)) return false;
  inputs_[i] = relaxed;
  return true;
}

void InferenceContext::Relax(DimensionHandle d_old, DimensionHandle d_new, DimensionHandle* out) {
  if (d_old.SameHandle(d_new) || (ValueKnown(d_old) && Value(d_old) == Value(d_new))) {
    *out = d_old;
    return;
  }
  ForgetMerges();
  *out = ValueKnown(d_new) ? UnknownDim() : d_new;
}

void InferenceContext::Relax(ShapeHandle s_old, ShapeHandle s_new, ShapeHandle* out) {
  if (s_old.SameHandle(s_new)) {
    *out = s_old;
    return;
  }
  if (!RankKnown(s_new)) {
    ForgetMerges();
    *out = s_new;
    return;
  }
  if (Rank(s_old) != Rank(s_new)) {
    ForgetMerges();
    *out = UnknownShape();
    return;
  }
  std::vector<DimensionHandle> dims(Rank(s_old));
  bool is_old = true;
  for (int i = 0; i < Rank(s_old); ++i) {
    Relax(s_old->dims_[i], s_new->dims_[i], &dims[i]);
    is_old = is_old && dims[i].SameHandle(s_old->dims_[i]);
  }
  *out = is_old ? s_old : MakeShape(dims);
}

void InferenceContext::ForgetMerges() {
  merged_shapes_.clear();
  merged_dims_.clear();
}

// ---- Shapes ----

ShapeHandle InferenceContext::MakeShape(const std::vector<DimensionHandle>& dims) {
  return shapes_.MakeShape(dims);
}

ShapeHandle InferenceContext::MakeShape(std::initializer_list<DimensionOrConstant> dims) {
  std::vector<DimensionHandle> handles;
  for (const DimensionOrConstant& dim : dims) handles.push_back(MakeDim(dim));
  return MakeShape(handles);
}

ShapeHandle InferenceContext::UnknownShape() { return shapes_.UnknownShape(); }

ShapeHandle InferenceContext::UnknownShapeOfRank(int64 rank) {
  if (rank < 0 || rank > gradflow::kMaxDims) return UnknownShape();
  std::vector<DimensionHandle> dims(rank);
  for (DimensionHandle& dim : dims) dim = UnknownDim();
  return MakeShape(dims);
}

absl::Status InferenceContext::MakeShapeFromShapeTensor(int i, ShapeHandle* out) {
  return MakeShapeFromInput(i, /*scalar_is_unknown=*/false, out);
}

absl::Status InferenceContext::MakeShapeFromShapeTensorTreatScalarAsUnknownShape(int i,
                                                                                 ShapeHandle* out) {
  return MakeShapeFromInput(i, /*scalar_is_unknown=*/true, out);
}

absl::StatusOr<ShapeHandle> InferenceContext::MakeShapeFromShapeTensor(const TensorShape& shape) {
  ShapeHandle out;
  TF_RETURN_IF_ERROR(MakeShapeFromTensorShape(shape, &out));
  return out;
}

absl::Status InferenceContext::MakeShapeFromInput(int i, bool scalar_is_unknown, ShapeHandle* out) {
  *out = ShapeHandle();
  request_input_tensor_as_partial_shape(i);
  ShapeHandle s;
  if (scalar_is_unknown || Rank(input(i)) == 0) {
    TF_RETURN_IF_ERROR(WithRankAtMost(input(i), 1, &s));
  } else {
    TF_RETURN_IF_ERROR(WithRank(input(i), 1, &s));
  }
  const Tensor* const tensor = input_tensor(i);
  if (tensor == nullptr && context_ != nullptr && HasInput(i)) {
    input_tensors_as_shapes_.resize(inputs_.size());
    input_tensors_as_shapes_[i] = Own(context_->input_as_shape(i));
  }
  if (tensor == nullptr && i >= 0 && i < static_cast<int>(input_tensors_as_shapes_.size()) &&
      RankKnown(input_tensors_as_shapes_[i])) {
    *out = input_tensors_as_shapes_[i];
    return absl::OkStatus();
  }
  return MakeShape(tensor, input(i), scalar_is_unknown, out);
}

absl::Status InferenceContext::MakeShapeFromTensor(const Tensor* tensor, ShapeHandle tensor_shape,
                                                   ShapeHandle* out) {
  return MakeShape(tensor, tensor_shape, /*scalar_is_unknown=*/false, out);
}

absl::Status InferenceContext::MakeShape(const Tensor* tensor, ShapeHandle tensor_shape,
                                         bool scalar_is_unknown, ShapeHandle* out) {
  *out = ShapeHandle();
  if (tensor == nullptr) {
    if (scalar_is_unknown && Rank(tensor_shape) < 1) {
      *out = UnknownShape();
      return absl::OkStatus();
    }
    ShapeHandle vector;
    TF_RETURN_IF_ERROR(WithRank(tensor_shape, 1, &vector));
    const int64 rank = Value(Dim(vector, 0));
    if (rank > gradflow::kMaxDims) {
      return errors::InvalidArgument("a shape has at most ", gradflow::kMaxDims,
                                     " dimensions, but the tensor has ", rank, " elements");
    }
    *out = UnknownShapeOfRank(rank);
    return absl::OkStatus();
  }
  if (tensor->dtype() != DT_INT32 && tensor->dtype() != DT_INT64) {
    return errors::InvalidArgument("Input tensor must be int32 or int64, but was ",
                                   DataTypeString(tensor->dtype()));
  }
  if (tensor->dims() == 0) {
    int64 value = 0;
    TF_RETURN_IF_ERROR(GetScalarFromTensor(tensor, &value));
    if (value != -1) {
      return errors::InvalidArgument(
          "Input tensor must be rank 1, or if its rank 0 it must have value -1 (representing an "
          "unknown shape).  Saw value: ",
          value);
    }
    *out = UnknownShape();
    return absl::OkStatus();
  }
  if (tensor->dims() != 1) {
    return errors::InvalidArgument("Input tensor must be rank 1, but was rank ", tensor->dims());
  }
  if (tensor->NumElements() > gradflow::kMaxDims) {
    return errors::InvalidArgument("a shape has at most ", gradflow::kMaxDims,
                                   " dimensions, but the tensor has ", tensor->NumElements(),
                                   " elements");
  }
  std::vector<DimensionHandle> dims;
  for (int64 i = 0; i < tensor->NumElements(); ++i) {
    const int64 size =
        tensor->dtype() == DT_INT32 ? tensor->flat<int32>()(i) : tensor->flat<int64>()(i);
    if (size < -1) {
      return errors::InvalidArgument("Invalid value in tensor used for shape: ", size);
    }
    dims.push_back(MakeDim(size));
  }
  *out = MakeShape(dims);
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
  *out = ShapeHandle();
  PartialTensorShape shape;
  TF_RETURN_IF_ERROR(PartialTensorShape::BuildPartialTensorShape(proto, &shape));
  *out = Own(shape);
  return absl::OkStatus();
}

absl::Status InferenceContext::Subshape(ShapeHandle s, int64 start, ShapeHandle* out) {
  return Subshape(s, start, std::numeric_limits<int64>::max(), 1, out);
}

absl::Status InferenceContext::Subshape(ShapeHandle s, int64 start, int64 end, ShapeHandle* out) {
  return Subshape(s, start, end, 1, out);
}

absl::Status InferenceContext::Subshape(ShapeHandle s, int64 start, int64 end, int64 stride,
                                        ShapeHandle* out) {
  constexpr int64 kEnd = std::numeric_limits<int64>::max();
  const ShapeHandle shape = s;
  *out = ShapeHandle();
  if (stride == 0) return errors::InvalidArgument("Subshape must have a stride other than 0");
  const int64 rank = Rank(shape);
  if (start == 0 && stride == 1 && (end == kEnd || (rank >= 0 && end >= rank))) {
    *out = shape;
    return absl::OkStatus();
  }
  if (!RankKnown(shape)) {
    *out = UnknownShape();
    return absl::OkStatus();
  }
  const auto resolve = [&](const char* what, int64 position, int64* result) -> absl::Status {
    *result = position < 0 ? position + rank : std::min(position, rank);
    if (*result >= 0) return absl::OkStatus();
    return errors::InvalidArgument("Subshape ", what, " out of bounds: ", position,
                                   ", for shape with rank ", rank);
  };
  int64 first = 0, last = 0;
  TF_RETURN_IF_ERROR(resolve("start", start, &first));
  // With a negative stride, a missing end includes the first dimension.
  if (stride < 0 && end == kEnd) {
    last = -1;
  } else {
    TF_RETURN_IF_ERROR(resolve("end", end, &last));
  }
  if (stride < 0) first = std::min(first, rank - 1);
  if (stride > 0 ? first > last : first < last) {
    return errors::InvalidArgument(
        "Subshape must have computed start ", stride > 0 ? "<=" : ">=", " end",
        stride > 0 ? "" : " since stride is negative", ", but is ", first, " and ", last,
        " (computed from start ", start, " and end ", end, " over shape with rank ", rank, ")");
  }
  // Strides beyond the rank end the loop after one step.
  stride = std::clamp<int64>(stride, -rank - 1, rank + 1);
  std::vector<DimensionHandle> dims;
  for (int64 i = first; stride > 0 ? i < last : i > last; i += stride) {
    dims.push_back(shape->dims_[i]);
  }
  *out = MakeShape(dims);
  return absl::OkStatus();
}

absl::Status InferenceContext::Concatenate(ShapeHandle a, ShapeHandle b, ShapeHandle* out) {
  if (!RankKnown(a) || !RankKnown(b)) {
    *out = UnknownShape();
    return absl::OkStatus();
  }
  std::vector<DimensionHandle> dims = a->dims_;
  dims.insert(dims.end(), b->dims_.begin(), b->dims_.end());
  if (dims.size() > static_cast<size_t>(gradflow::kMaxDims)) {
    *out = ShapeHandle();
    return errors::InvalidArgument("the concatenated shape has ", dims.size(),
                                   " dimensions, more than ", gradflow::kMaxDims);
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
    *out = ShapeHandle();
    return errors::InvalidArgument("Out of range dim_index ", i, " for shape with ", rank,
                                   " dimensions");
  }
  std::vector<DimensionHandle> dims = s->dims_;
  dims[i < 0 ? i + rank : i] = dim;
  *out = MakeShape(dims);
  return absl::OkStatus();
}

// ---- Dimensions ----

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

absl::Status InferenceContext::GetScalarFromTensor(const Tensor* tensor, int64 i, int64* value) {
  if (tensor->dims() != 1) {
    return errors::InvalidArgument("Input must be 1D but has rank ", tensor->dims());
  }
  if (i < 0 || i >= tensor->NumElements()) {
    return errors::InvalidArgument("Invalid index ", i, " for Tensor of size ",
                                   tensor->NumElements());
  }
  if (tensor->dtype() == DT_INT32) {
    *value = tensor->flat<int32>()(i);
  } else if (tensor->dtype() == DT_INT64) {
    *value = tensor->flat<int64>()(i);
  } else {
    return errors::InvalidArgument("Tensor input must be int32 or int64, but is ",
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
  *out = MakeDim(value);
  return absl::OkStatus();
}

absl::Status InferenceContext::MakeDimForScalarInputWithNegativeIndexing(int i, int input_rank,
                                                                         DimensionHandle* out) {
  const Tensor* tensor = input_tensor(i);
  if (tensor == nullptr) {
    *out = UnknownDim();
    return absl::OkStatus();
  }
  int64 value = 0;
  TF_RETURN_IF_ERROR(GetScalarFromTensor(tensor, &value));
  if (input_rank < 0 && value < 0) {
    *out = UnknownDim();
    return absl::OkStatus();
  }
  if (input_rank >= 0 && (value < -int64{input_rank} || value >= input_rank)) {
    return errors::InvalidArgument("Dimension size, given by scalar input ", value,
                                   " must be in range [", -input_rank, ", ", input_rank, ")");
  }
  *out = MakeDim(value < 0 ? value + input_rank : value);
  return absl::OkStatus();
}

absl::Status InferenceContext::Add(DimensionHandle a, DimensionOrConstant b, DimensionHandle* out) {
  const int64 x = Value(a), y = Value(b);
  if (x == 0 || y == 0) {
    *out = x == 0 ? MakeDim(b) : a;
  } else if (x == kUnknownDim || y == kUnknownDim) {
    *out = UnknownDim();
  } else {
    int64 sum;
    if (__builtin_add_overflow(x, y, &sum)) {
      return errors::InvalidArgument("Dimension size overflow from adding ", x, " and ", y);
    }
    *out = MakeDim(sum);
  }
  return absl::OkStatus();
}

absl::Status InferenceContext::Subtract(DimensionHandle a, DimensionOrConstant b,
                                        DimensionHandle* out) {
  const int64 x = Value(a), y = Value(b);
  if (y == 0) {
    *out = a;
  } else if (x == kUnknownDim || y == kUnknownDim) {
    *out = UnknownDim();
  } else {
    if (x < y) {
      return errors::InvalidArgument("Negative dimension size caused by subtracting ", y, " from ",
                                     x);
    }
    *out = MakeDim(x - y);
  }
  return absl::OkStatus();
}

absl::Status InferenceContext::Multiply(DimensionHandle a, DimensionOrConstant b,
                                        DimensionHandle* out) {
  const int64 x = Value(a), y = Value(b);
  if (x == 0 || y == 1) {
    *out = a;
  } else if (y == 0 || x == 1) {
    *out = MakeDim(b);
  } else if (x == kUnknownDim || y == kUnknownDim) {
    *out = UnknownDim();
  } else {
    const int64 product = gradflow::MultiplyWithoutOverflow(x, y);
    if (product < 0) {
      return errors::InvalidArgument("Negative dimension size caused by overflow when multiplying ",
                                     x, " and ", y);
    }
    *out = MakeDim(product);
  }
  return absl::OkStatus();
}

absl::Status InferenceContext::Divide(DimensionHandle a, DimensionOrConstant b,
                                      bool evenly_divisible, DimensionHandle* out) {
  const int64 x = Value(a), y = Value(b);
  if (y == 1) {
    *out = a;
    return absl::OkStatus();
  }
  // A constant -1 is not an unknown dimension.
  const bool known = !b.dim.IsSet() || y != kUnknownDim;
  if (known && y <= 0) {
    return errors::InvalidArgument("Divisor must be positive but is ", y);
  }
  if (!known || x == kUnknownDim) {
    *out = UnknownDim();
    return absl::OkStatus();
  }
  if (evenly_divisible && x % y != 0) {
    return errors::InvalidArgument("Dimension size must be evenly divisible by ", y, " but is ", x);
  }
  *out = MakeDim(x / y);
  return absl::OkStatus();
}

absl::Status InferenceContext::Min(DimensionHandle a, DimensionOrConstant b, DimensionHandle* out) {
  const int64 x = Value(a), y = Value(b);
  if (x == 0 || y == 0) {
    *out = x == 0 ? a : MakeDim(b);
  } else if (x == kUnknownDim || y == kUnknownDim) {
    *out = UnknownDim();
  } else {
    *out = x <= y ? a : MakeDim(b);
  }
  return absl::OkStatus();
}

absl::Status InferenceContext::Max(DimensionHandle a, DimensionOrConstant b, DimensionHandle* out) {
  const int64 x = Value(a), y = Value(b);
  if (x == kUnknownDim || y == kUnknownDim) {
    *out = UnknownDim();
  } else {
    *out = x >= y ? a : MakeDim(b);
  }
  return absl::OkStatus();
}

// ---- Values behind handles ----

bool InferenceContext::Update(Handles* handles, int i, const ShapesAndTypes& values, bool relax) {
  std::unique_ptr<ShapesAndTypes>& old = (*handles)[i];
  if (old == nullptr) {
    old = std::make_unique<ShapesAndTypes>(values);
    return true;
  }
  if (old->size() != values.size()) return false;
  ShapesAndTypes updated = *old;
  bool changed = false;
  for (size_t k = 0; k < values.size(); ++k) {
    ShapeAndType& item = updated[k];
    if (item.dtype != values[k].dtype) {
      if (item.dtype == DT_INVALID) {
        item.dtype = values[k].dtype;
        changed = true;
      } else if (relax) {
        return false;
      }
    }
    ShapeHandle shape;
    if (relax) {
      Relax(item.shape, values[k].shape, &shape);
    } else if (!Merge(item.shape, values[k].shape, &shape).ok()) {
      // Contradictory shapes are left unchanged.
      continue;
    }
    changed = changed || !shape.SameHandle(item.shape);
    item.shape = shape;
  }
  if (changed) *old = std::move(updated);
  return changed;
}

bool InferenceContext::MergeInputHandleShapesAndTypes(int i, const ShapesAndTypes& values) {
  return HasInput(i) && Update(&input_handles_, i, values, /*relax=*/false);
}

bool InferenceContext::MergeOutputHandleShapesAndTypes(int i, const ShapesAndTypes& values) {
  return HasOutput(i) && Update(&output_handles_, i, values, /*relax=*/false);
}

bool InferenceContext::RelaxInputHandleShapesAndMergeTypes(int i, const ShapesAndTypes& values) {
  return HasInput(i) && Update(&input_handles_, i, values, /*relax=*/true);
}

bool InferenceContext::RelaxOutputHandleShapesAndMergeTypes(int i, const ShapesAndTypes& values) {
  return HasOutput(i) && Update(&output_handles_, i, values, /*relax=*/true);
}

namespace {

using Shapes = std::vector<PartialTensorShape>;
// An input or output, and one of its dimensions.
using Place = std::pair<int, int>;

// Maps dimensions of outputs to the input dimensions that they equal. A plain shape function does
// not report this, so the function is called with other sizes: an output dimension is an input
// dimension if it takes its size and changes with no other input dimension. Sizes that cause an
// error give no information. Traces nothing if the inputs have very many dimensions, because the
// number of calls may grow with the square of their number.
std::map<Place, Place> TraceDims(const Shapes& inputs, const Shapes& outputs,
                                 absl::FunctionRef<absl::Status(const Shapes&, Shapes*)> infer) {
  constexpr size_t kMaxTracedDims = 32;
  std::vector<Place> places;
  for (size_t i = 0; i < inputs.size(); ++i) {
    for (int d = 0; d < inputs[i].dims(); ++d) places.emplace_back(i, d);
  }
  std::map<Place, Place> origins;
  if (places.size() > kMaxTracedDims) return origins;
  // Returns the size of an output dimension, or less than -1 if the rank differs.
  const auto size_of = [](const Shapes& shapes, const Place& place) -> int64 {
    const PartialTensorShape& shape = shapes[place.first];
    return place.second < shape.dims() ? shape.dim_size(place.second) : -2;
  };
  // Returns a size that differs from the present one. For an unknown size, a power of two, so that
  // group counts divide it.
  const auto other_size = [&](const Place& place) -> int64 {
    constexpr int64 kOther = 1 << 12;
    const int64 size = inputs[place.first].dim_size(place.second);
    return size < 0 ? kOther : size + 1;
  };
  for (const Place& from : places) {
    Shapes changed_inputs = inputs;
    changed_inputs[from.first].set_dim(from.second, other_size(from));
    Shapes changed;
    if (!infer(changed_inputs, &changed).ok()) continue;
    std::vector<Place> followers;
    for (size_t i = 0; i < outputs.size(); ++i) {
      for (int d = 0; d < outputs[i].dims(); ++d) {
        const Place to(i, d);
        if (size_of(outputs, to) == inputs[from.first].dim_size(from.second) &&
            size_of(changed, to) == other_size(from)) {
          followers.push_back(to);
        }
      }
    }
    for (const Place& other : places) {
      if (followers.empty()) break;
      if (other == from) continue;
      Shapes again = changed_inputs;
      again[other.first].set_dim(other.second, other_size(other));
      if (!infer(again, &changed).ok()) continue;
      followers.erase(
          std::remove_if(followers.begin(), followers.end(),
                         [&](const Place& to) { return size_of(changed, to) != other_size(from); }),
          followers.end());
    }
    for (const Place& to : followers) origins.emplace(to, from);
  }
  return origins;
}

}  // namespace

absl::Status CallPlainShapeFn(gradflow::ShapeFn fn, const OpDef& op_def, InferenceContext* c) {
  // The node may be of another op that has the same shape function.
  NodeDef storage;
  NodeDef node = c->attrs().ToNode(&storage);
  node.set_op(op_def.name());
  AddDefaultsToNodeDef(op_def, &node);
  DataTypeVector input_types, output_types;
  size_t num_inputs = 0, num_outputs = 0;
  if (InOutTypesForNode(node, op_def, &input_types, &output_types).ok()) {
    num_inputs = input_types.size();
    num_outputs = output_types.size();
  } else {
    // The other op lacks an attribute. Lists may have any length.
    const auto is_single = [](const OpDef::ArgDef& arg) {
      return arg.number_attr().empty() && arg.type_list_attr().empty();
    };
    input_types.clear();
    num_inputs = std::count_if(op_def.input_arg().begin(), op_def.input_arg().end(), is_single);
    num_outputs = std::count_if(op_def.output_arg().begin(), op_def.output_arg().end(), is_single);
  }
  if (static_cast<size_t>(c->num_inputs()) < num_inputs ||
      static_cast<size_t>(c->num_outputs()) < num_outputs) {
    return errors::Internal("the shape function of '", op_def.name(), "' needs ", num_inputs,
                            " inputs and ", num_outputs, " outputs, found ", c->num_inputs(),
                            " and ", c->num_outputs());
  }
  Shapes shapes(c->num_inputs());
  for (int i = 0; i < c->num_inputs(); ++i) {
    GRADFLOW_ASSIGN_OR_RETURN(shapes[i], c->PlainShape(c->input(i)));
  }
  input_types.resize(shapes.size(), DT_INVALID);
  const auto constant = [&](int i) { return c->input_tensor(i); };
  // A variable has one shape and type. A table has a second pair, of its values.
  const auto find_variable = [c](int i, DataType* dtype, PartialTensorShape* shape) {
    const auto* const contents = c->input_handle_shapes_and_types(i);
    if (contents == nullptr || contents->empty()) return false;
    const absl::StatusOr<PartialTensorShape> plain = c->PlainShape(contents->back().shape);
    if (!plain.ok()) return false;
    *dtype = contents->back().dtype;
    *shape = *plain;
    return true;
  };
  const auto infer = [&](const Shapes& from, Shapes* to) {
    std::vector<const PartialTensorShape*> inputs;
    for (const PartialTensorShape& shape : from) inputs.push_back(&shape);
    gradflow::ShapeContext context(node, op_def, inputs, input_types, c->num_outputs(), constant);
    context.SetFindVariable(find_variable);
    TF_RETURN_IF_ERROR(fn(context));
    to->assign(context.mutable_outputs().begin(), context.mutable_outputs().end());
    return absl::OkStatus();
  };
  Shapes outputs;
  TF_RETURN_IF_ERROR(infer(shapes, &outputs));
  const std::map<Place, Place> origins = TraceDims(shapes, outputs, infer);
  for (int i = 0; i < c->num_outputs(); ++i) {
    ShapeHandle shape;
    if (outputs[i].unknown_rank()) {
      shape = c->UnknownShape();
    } else {
      std::vector<DimensionHandle> dims;
      for (int d = 0; d < outputs[i].dims(); ++d) {
        const auto origin = origins.find({i, d});
        dims.push_back(origin == origins.end()
                           ? c->MakeDim(outputs[i].dim_size(d))
                           : c->Dim(c->input(origin->second.first), origin->second.second));
      }
      shape = c->MakeShape(dims);
    }
    c->set_output(i, shape);
  }
  return absl::OkStatus();
}

}  // namespace shape_inference
}  // namespace tensorflow
