#include "gradflow/core/shape_context.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "gradflow/core/op_def_util.h"
#include "gradflow/core/out_parameter.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/core/status.h"
#include "gradflow/proto/op_def.pb.h"

namespace gradflow {

std::string ShapeContext::input_name(int i) const {
  NameRangeMap inputs;
  if (NameRangesForNode(node_, op_def_, &inputs, nullptr).ok()) {
    for (const auto& [name, range] : inputs) {
      if (i < range.first || i >= range.second) continue;
      if (range.second - range.first == 1) return name;
      return absl::StrCat(name, "[", i - range.first, "]");
    }
  }
  return absl::StrCat("input ", i);
}

void ShapeContext::set_output(int i, PartialTensorShape shape) {
  internal::RequireIndex("ShapeContext::set_output", i, num_outputs());
  const bool repeats = i > 0 && shape == outputs_[i - 1];
  outputs_[i] = repeats ? outputs_[i - 1] : std::move(shape);
}

DataType ShapeContext::variable_type(int i) const {
  if (input_type(i) != DT_RESOURCE) return BaseType(input_type(i));
  DataType dtype = DT_INVALID;
  PartialTensorShape shape;
  if (!find_variable_.has_value() || !(*find_variable_)(i, &dtype, &shape)) return DT_INVALID;
  return dtype;
}

PartialTensorShape ShapeContext::variable_shape(int i) const {
  if (input_type(i) != DT_RESOURCE) return input(i);
  DataType dtype = DT_INVALID;
  PartialTensorShape shape;
  if (!find_variable_.has_value() || !(*find_variable_)(i, &dtype, &shape)) {
    return PartialTensorShape();
  }
  return shape;
}

int64_t ShapeContext::Dim(int i, int d) const {
  const PartialTensorShape& shape = input(i);
  if (shape.unknown_rank()) return -1;
  if (d < 0) d += shape.dims();
  return d >= 0 && d < shape.dims() ? shape.dim_size(d) : -1;
}

absl::Status ShapeContext::CheckRank(int i, int rank) const {
  const PartialTensorShape& shape = input(i);
  if (shape.unknown_rank() || shape.dims() == rank) return absl::OkStatus();
  return gradflow::CheckRank(input_name(i), shape, rank);
}

absl::Status ShapeContext::CheckRankAtLeast(int i, int rank) const {
  const PartialTensorShape& shape = input(i);
  if (shape.unknown_rank() || shape.dims() >= rank) return absl::OkStatus();
  return gradflow::CheckRankAtLeast(input_name(i), shape, rank);
}

absl::Status ShapeContext::CheckSameShape(int i, int j) const {
  return MergeInputs(*this, i, j).status();
}

absl::StatusOr<bool> ShapeContext::IntsFromInput(int i, std::vector<int64_t>* values) const {
  GRADFLOW_RETURN_IF_ERROR(internal::CheckOut(values, "ShapeContext::IntsFromInput", "values"));
  using IntTypes = TypeList<int16_t, int32_t, int64_t>;
  const Tensor* tensor = input_tensor(i);
  // Nodes that were imported without shapes may have a known value whose number of elements has not
  // been checked.
  if (tensor == nullptr || !input(i).IsFullyDefined()) return false;
  const bool known = DispatchType(IntTypes(), tensor->dtype(), [&](auto tag) {
    const auto flat = tensor->flat<typename decltype(tag)::type>();
    values->assign(flat.begin(), flat.end());
  });
  if (!known) {
    return errors::InvalidArgument(input_name(i), " must be of type int16, int32 or int64, but is ",
                                   DataTypeString(tensor->dtype()));
  }
  return true;
}

absl::StatusOr<PartialTensorShape> ShapeContext::ShapeFromInput(int i, bool allow_unknown) const {
  GRADFLOW_RETURN_IF_ERROR(CheckRank(i, 1));
  std::vector<int64_t> sizes;
  GRADFLOW_ASSIGN_OR_RETURN(const bool known, IntsFromInput(i, &sizes));
  if (!known) {
    if (PartialTensorShape shape = input_as_shape(i); !shape.unknown_rank()) return shape;
    const int64_t rank = Dim(i, 0);
    if (rank < 0) return PartialTensorShape();
    if (rank > kMaxDims) {
      return errors::InvalidArgument(input_name(i), " must have at most ", kMaxDims,
                                     " elements, but has ", rank);
    }
    return PartialTensorShape::UnknownOfRank(static_cast<int>(rank));
  }
  absl::StatusOr<PartialTensorShape> shape;
  if (allow_unknown) {
    shape = PartialTensorShape::Make(sizes);
  } else if (absl::StatusOr<TensorShape> full = TensorShape::Make(sizes); full.ok()) {
    shape = PartialTensorShape(*full);
  } else {
    shape = full.status();
  }
  if (!shape.ok()) return errors::Prefix(absl::StrCat(input_name(i), ": "), shape.status());
  return shape;
}

}  // namespace gradflow
