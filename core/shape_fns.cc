#include "gradflow/core/shape_fns.h"

#include <algorithm>
#include <string>
#include <utility>

#include "gradflow/core/shape_checks.h"
#include "gradflow/core/status.h"

namespace gradflow {

absl::Status UnchangedShape(ShapeContext& c) {
  c.set_output(0, c.input(0));
  return absl::OkStatus();
}

absl::Status SameShape(ShapeContext& c) {
  PartialTensorShape shape = c.input(0);
  for (int i = 1; i < c.num_inputs(); ++i) {
    if (!shape.IsCompatibleWith(c.input(i))) {
      return MergeShapes(c.input_name(0), shape, c.input_name(i), c.input(i)).status();
    }
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

absl::Status ListedShapes(ShapeContext& c, absl::string_view attr) {
  if (FindNodeAttr(c.def(), attr) == nullptr) return absl::OkStatus();
  std::vector<PartialTensorShape> shapes;
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr(attr, &shapes));
  if (shapes.empty()) return absl::OkStatus();
  if (static_cast<int>(shapes.size()) != c.num_outputs()) {
    return errors::InvalidArgument("attribute ", attr, " lists ", shapes.size(),
                                   " shapes, but the node has ", c.num_outputs(),
                                   c.num_outputs() == 1 ? " output" : " outputs");
  }
  for (int i = 0; i < c.num_outputs(); ++i) {
    c.set_output(i, std::move(shapes[static_cast<size_t>(i)]));
  }
  return absl::OkStatus();
}

absl::Status OutputShapesAttrShape(ShapeContext& c) { return ListedShapes(c, "_output_shapes"); }

absl::Status BroadcastBinaryShape(ShapeContext& c) {
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, BroadcastShapes(c.input(0), c.input(1)));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status ReductionShape(ShapeContext& c) {
  bool keep_dims = false;
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("keep_dims", &keep_dims));
  const PartialTensorShape& input = c.input(0);
  const std::string name = c.input_name(1);
  GRADFLOW_RETURN_IF_ERROR(CheckReductionAxes(name, c.input(1), input.dims()));
  std::vector<int64_t> axes;
  GRADFLOW_ASSIGN_OR_RETURN(const bool known, c.IntsFromInput(1, &axes));
  if (input.unknown_rank()) return absl::OkStatus();
  if (!known) {
    if (keep_dims) c.set_output(0, PartialTensorShape::UnknownOfRank(input.dims()));
    return absl::OkStatus();
  }
  GRADFLOW_ASSIGN_OR_RETURN(const DimVector dims,
                            ReducedDims(name, input.dim_sizes(), axes, keep_dims));
  c.set_output(0, PartialTensorShape(dims));
  return absl::OkStatus();
}

namespace {

// Computes the broadcast dimensions. Returns false if the shapes are not compatible.
// REQUIRES: both ranks are known
bool BroadcastDims(const PartialTensorShape& a, const PartialTensorShape& b, DimVector* dims) {
  const int rank = std::max(a.dims(), b.dims());
  dims->resize(rank);
  for (int d = 0; d < rank; ++d) {
    const int da = d - (rank - a.dims());
    const int db = d - (rank - b.dims());
    const int64_t size_a = da < 0 ? 1 : a.dim_size(da);
    const int64_t size_b = db < 0 ? 1 : b.dim_size(db);
    if (size_a == size_b || size_b == 1) {
      (*dims)[d] = size_a;
    } else if (size_a == 1) {
      (*dims)[d] = size_b;
    } else if (size_a < 0 || size_b < 0) {
      // The unknown size (-1) is 1 or equals the known size, which is not 1.
      (*dims)[d] = std::max(size_a, size_b);
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace

bool CanBroadcast(const PartialTensorShape& a, const PartialTensorShape& b) {
  DimVector dims;
  return a.unknown_rank() || b.unknown_rank() || BroadcastDims(a, b, &dims);
}

absl::StatusOr<PartialTensorShape> BroadcastShapes(const PartialTensorShape& a,
                                                   const PartialTensorShape& b) {
  if (a.unknown_rank() || b.unknown_rank()) return PartialTensorShape();
  DimVector dims;
  if (!BroadcastDims(a, b, &dims)) {
    return errors::InvalidArgument("shapes ", a.DebugString(), " and ", b.DebugString(),
                                   " cannot be broadcast together");
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

absl::Status CheckReductionAxes(absl::string_view name, const PartialTensorShape& shape, int rank) {
  if (shape.dims() > 1) {
    return errors::InvalidArgument(name, " must be a scalar or a vector, but has shape ",
                                   shape.DebugString());
  }
  if (rank >= 0 && shape.dims() == 1 && shape.dim_size(0) > rank) {
    return errors::InvalidArgument(name, " has ", shape.dim_size(0), " axes, more than the ", rank,
                                   " of the input");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<bool>> NamedAxes(absl::string_view name, absl::Span<const int64_t> axes,
                                            int rank) {
  std::vector<bool> named(rank);
  for (const int64_t axis : axes) {
    GRADFLOW_ASSIGN_OR_RETURN(const int d, CanonicalAxis(name, axis, rank));
    if (named[d]) return errors::InvalidArgument(name, " names axis ", d, " twice");
    named[d] = true;
  }
  return named;
}

absl::StatusOr<DimVector> ReducedDims(absl::string_view name, absl::Span<const int64_t> dims,
                                      absl::Span<const int64_t> axes, bool keep_dims,
                                      std::vector<bool>* reduced) {
  const int rank = static_cast<int>(dims.size());
  GRADFLOW_ASSIGN_OR_RETURN(std::vector<bool> is_reduced, NamedAxes(name, axes, rank));
  DimVector left;
  for (int d = 0; d < rank; ++d) {
    if (!is_reduced[d]) {
      left.push_back(dims[d]);
    } else if (keep_dims) {
      left.push_back(1);
    }
  }
  if (reduced != nullptr) *reduced = std::move(is_reduced);
  return left;
}

absl::StatusOr<TensorShape> ResolveReshape(const TensorShape& input,
                                           absl::Span<const int64_t> dims) {
  const PartialTensorShape requested(dims);
  const auto mismatch = [&] {
    return errors::InvalidArgument("a tensor of ", input.num_elements(),
                                   " elements cannot be reshaped to ", requested.DebugString());
  };
  DimVector resolved(dims.begin(), dims.end());
  const auto unknown = std::find(resolved.begin(), resolved.end(), -1);
  if (unknown != resolved.end()) {
    if (std::find(unknown + 1, resolved.end(), -1) != resolved.end()) {
      return errors::InvalidArgument("shape ", requested.DebugString(),
                                     " must have at most one unknown dimension (-1)");
    }
    *unknown = 1;
    DimVector from(input.dim_sizes().begin(), input.dim_sizes().end());
    DimVector to = resolved;
    if (std::find(to.begin(), to.end(), 0) != to.end()) {
      std::replace(from.begin(), from.end(), int64_t{0}, int64_t{1});
      std::replace(to.begin(), to.end(), int64_t{0}, int64_t{1});
    }
    GRADFLOW_ASSIGN_OR_RETURN(const TensorShape known, TensorShape::Make(to));
    GRADFLOW_ASSIGN_OR_RETURN(const TensorShape all, TensorShape::Make(from));
    if (all.num_elements() % known.num_elements() != 0) return mismatch();
    *unknown = all.num_elements() / known.num_elements();
  }
  GRADFLOW_ASSIGN_OR_RETURN(TensorShape shape, TensorShape::Make(resolved));
  if (shape.num_elements() != input.num_elements()) return mismatch();
  return shape;
}

}  // namespace gradflow
