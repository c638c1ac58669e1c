#include "gradflow/core/shape_fns.h"

#include <algorithm>

#include "gradflow/core/status.h"

namespace gradflow {

absl::Status UnchangedShape(ShapeContext& c) {
  c.set_output(0, c.input(0));
  return absl::OkStatus();
}

absl::Status SameShape(ShapeContext& c) {
  PartialTensorShape shape = c.input(0);
  for (int i = 1; i < c.num_inputs(); ++i) {
    GRADFLOW_RETURN_IF_ERROR(c.CheckSameShape(0, i));
    GRADFLOW_ASSIGN_OR_RETURN(shape, shape.MergeWith(c.input(i)));
  }
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status ScalarShape(ShapeContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, PartialTensorShape({}));
  return absl::OkStatus();
}

absl::Status UnknownShape(ShapeContext&) { return absl::OkStatus(); }

absl::Status BroadcastBinaryShape(ShapeContext& c) {
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, BroadcastShapes(c.input(0), c.input(1)));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status ReductionShape(ShapeContext& c) {
  bool keep_dims = false;
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("keep_dims", &keep_dims));
  const PartialTensorShape& axes_shape = c.input(1);
  if (axes_shape.dims() > 1) {
    return errors::InvalidArgument(c.input_name(1), " must be a scalar or a vector, but has shape ",
                                   axes_shape.DebugString());
  }
  std::vector<int64_t> axes;
  GRADFLOW_ASSIGN_OR_RETURN(const bool known, c.IntsFromInput(1, &axes));
  const PartialTensorShape& input = c.input(0);
  if (input.unknown_rank()) return absl::OkStatus();
  if (!known) {
    if (keep_dims) c.set_output(0, PartialTensorShape::UnknownOfRank(input.dims()));
    return absl::OkStatus();
  }
  std::vector<bool> reduced(input.dims());
  for (const int64_t axis : axes) {
    GRADFLOW_ASSIGN_OR_RETURN(const int canonical,
                              CanonicalAxis(c.input_name(1), axis, input.dims()));
    if (reduced[canonical]) {
      return errors::InvalidArgument(c.input_name(1), " names axis ", canonical, " twice");
    }
    reduced[canonical] = true;
  }
  DimVector dims;
  for (int d = 0; d < input.dims(); ++d) {
    if (!reduced[d]) {
      dims.push_back(input.dim_size(d));
    } else if (keep_dims) {
      dims.push_back(1);
    }
  }
  c.set_output(0, PartialTensorShape(dims));
  return absl::OkStatus();
}

absl::StatusOr<PartialTensorShape> BroadcastShapes(const PartialTensorShape& a,
                                                   const PartialTensorShape& b) {
  if (a.unknown_rank() || b.unknown_rank()) return PartialTensorShape();
  const int rank = std::max(a.dims(), b.dims());
  DimVector dims(rank);
  for (int d = 0; d < rank; ++d) {
    const int da = d - (rank - a.dims());
    const int db = d - (rank - b.dims());
    const int64_t size_a = da < 0 ? 1 : a.dim_size(da);
    const int64_t size_b = db < 0 ? 1 : b.dim_size(db);
    if (size_a == size_b || size_b == 1) {
      dims[d] = size_a;
    } else if (size_a == 1) {
      dims[d] = size_b;
    } else if (size_a < 0 || size_b < 0) {
      // The unknown one is 1 or the same as the known one, which is not 1.
      dims[d] = std::max(size_a, size_b);
    } else {
      return errors::InvalidArgument("shapes ", a.DebugString(), " and ", b.DebugString(),
                                     " cannot be broadcast together");
    }
  }
  return PartialTensorShape::Make(dims);
}

absl::StatusOr<TensorShape> BroadcastShapes(const TensorShape& a, const TensorShape& b) {
  GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape shape,
                            BroadcastShapes(PartialTensorShape(a), PartialTensorShape(b)));
  return TensorShape::Make(shape.dim_sizes());
}

absl::StatusOr<int> CanonicalAxis(absl::string_view name, int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) {
    return errors::InvalidArgument(name, " ", axis, " is out of range [", -rank, ", ", rank, ")");
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

absl::StatusOr<TensorShape> ResolveReshape(int64_t num_elements, absl::Span<const int64_t> dims) {
  const PartialTensorShape requested(dims);
  DimVector resolved(dims.begin(), dims.end());
  const auto unknown = std::find(resolved.begin(), resolved.end(), -1);
  if (unknown != resolved.end()) {
    if (std::find(unknown + 1, resolved.end(), -1) != resolved.end()) {
      return errors::InvalidArgument("shape ", requested.DebugString(),
                                     " must have at most one dimension of -1");
    }
    *unknown = 1;
    GRADFLOW_ASSIGN_OR_RETURN(const TensorShape known, TensorShape::Make(resolved));
    const int64_t rest = known.num_elements();
    if (rest == 0 ? num_elements != 0 : num_elements % rest != 0) {
      return errors::InvalidArgument("a tensor of ", num_elements, " elements cannot take shape ",
                                     requested.DebugString());
    }
    *unknown = rest == 0 ? 0 : num_elements / rest;
  }
  GRADFLOW_ASSIGN_OR_RETURN(TensorShape shape, TensorShape::Make(resolved));
  if (shape.num_elements() != num_elements) {
    return errors::InvalidArgument("a tensor of ", num_elements, " elements cannot take shape ",
                                   shape.DebugString());
  }
  return shape;
}

}  // namespace gradflow
