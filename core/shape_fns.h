// Shape functions and shape arithmetic shared by many ops. Shape functions and kernels both call
// the arithmetic, so that results and errors agree.
#ifndef GRADFLOW_CORE_SHAPE_FNS_H_
#define GRADFLOW_CORE_SHAPE_FNS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gradflow/core/shape_context.h"
#include "gradflow/core/tensor_shape.h"

#pragma GCC visibility push(default)
namespace gradflow {

// Gives output 0 the shape of input 0.
absl::Status UnchangedShape(ShapeContext& c);
// Gives output 0 the shape of all inputs, which must have the same shape.
absl::Status SameShape(ShapeContext& c);
// Makes every output a scalar.
absl::Status ScalarShape(ShapeContext& c);
// Leaves the shapes of all outputs unknown.
absl::Status UnknownShape(ShapeContext& c);
// Gives the outputs the shapes that attribute `attr` lists. They stay unknown if the node has no
// such attribute or if its list is empty. Returns INVALID_ARGUMENT if the list has another length.
absl::Status ListedShapes(ShapeContext& c, absl::string_view attr);
// ListedShapes() of `_output_shapes`, which TensorFlow's exports may have.
absl::Status OutputShapesAttrShape(ShapeContext& c);
// Gives output 0 the NumPy broadcast shape of inputs 0 and 1.
absl::Status BroadcastBinaryShape(ShapeContext& c);
// Gives output 0 the shape of input 0 reduced over the axes in input 1, by attribute keep_dims.
absl::Status ReductionShape(ShapeContext& c);

// Returns the shape of a and b under NumPy broadcasting: shapes are aligned at the last dimension,
// and dimensions of size 1 stretch. Returns INVALID_ARGUMENT "shapes [2,3] and [2] cannot be
// broadcast together" if they are not compatible.
absl::StatusOr<TensorShape> BroadcastShapes(const TensorShape& a, const TensorShape& b);
absl::StatusOr<PartialTensorShape> BroadcastShapes(const PartialTensorShape& a,
                                                   const PartialTensorShape& b);

// Returns true if all dimensions known in both shapes can be broadcast. BroadcastShapes may still
// fail if the result has too many elements.
bool CanBroadcast(const PartialTensorShape& a, const PartialTensorShape& b);

// Returns `axis`, or `axis` + `rank` if `axis` is negative. Returns INVALID_ARGUMENT "axis 4 is out
// of range [-2, 2)" if it is out of range.
absl::StatusOr<int> CanonicalAxis(absl::string_view name, int64_t axis, int rank);

// Returns a vector that is true for each of the `rank` dimensions that `axes` names. Returns
// INVALID_ARGUMENT "axis names axis 1 twice" unless the axes are distinct and in range.
absl::StatusOr<std::vector<bool>> NamedAxes(absl::string_view name, absl::Span<const int64_t> axes,
                                            int rank);

// Returns INVALID_ARGUMENT unless `shape` is compatible with a scalar or with a vector of at most
// `rank` elements. `shape` is the shape of a reduction's axes. A negative rank is unknown.
absl::Status CheckReductionAxes(absl::string_view name, const PartialTensorShape& shape, int rank);
// Returns the shape of `dims` reduced over `axes`, which must be distinct. If `reduced` is not
// null, sets (*reduced)[d] to whether dimension d is reduced.
absl::StatusOr<DimVector> ReducedDims(absl::string_view name, absl::Span<const int64_t> dims,
                                      absl::Span<const int64_t> axes, bool keep_dims,
                                      std::vector<bool>* reduced = nullptr);

// Returns `dims`, the shape argument of Reshape, with its -1 resolved for a tensor of shape
// `input`. If `dims` contains 0, the -1 makes the products of the nonzero dimensions of both shapes
// equal, as in TensorFlow: `dims` [0,-1] reshape [0,2,3] to [0,6].
absl::StatusOr<TensorShape> ResolveReshape(const TensorShape& input,
                                           absl::Span<const int64_t> dims);

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_CORE_SHAPE_FNS_H_
