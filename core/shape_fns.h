// Shape functions and shape arithmetic that many ops share, used by shape functions and kernels
// alike so that both give the same answer and the same error.
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

// Output 0 has the shape of input 0.
absl::Status UnchangedShape(ShapeContext& c);
// All inputs and output 0 have one shape.
absl::Status SameShape(ShapeContext& c);
// Every output is a scalar.
absl::Status ScalarShape(ShapeContext& c);
// No outputs, or nothing known of them.
absl::Status UnknownShape(ShapeContext& c);
// Output 0 is inputs 0 and 1 broadcast as NumPy does.
absl::Status BroadcastBinaryShape(ShapeContext& c);
// Output 0 is input 0 reduced over the axes in input 1, by attribute keep_dims.
absl::Status ReductionShape(ShapeContext& c);

// The common shape of a and b, broadcast as NumPy does: aligned at the last dimension, ones
// stretch. INVALID_ARGUMENT "shapes [2,3] and [2] cannot be broadcast together".
absl::StatusOr<TensorShape> BroadcastShapes(const TensorShape& a, const TensorShape& b);
absl::StatusOr<PartialTensorShape> BroadcastShapes(const PartialTensorShape& a,
                                                   const PartialTensorShape& b);

// Whether the sizes fit that both know, so that only a result of too many elements may still keep
// the shapes from being broadcast together.
bool CanBroadcast(const PartialTensorShape& a, const PartialTensorShape& b);

// `axis` counted from the front. INVALID_ARGUMENT "axis 4 is out of range [-2, 2)" if it is.
absl::StatusOr<int> CanonicalAxis(absl::string_view name, int64_t axis, int rank);

// INVALID_ARGUMENT unless `shape` may be that of the axes of a reduction of `rank` dimensions, or
// an unknown number of them if negative: a scalar or a vector of at most that many.
absl::Status CheckReductionAxes(absl::string_view name, const PartialTensorShape& shape, int rank);
// What is left of `dims` when reduced over `axes`, which must differ. If not null, (*reduced)[d]
// becomes whether they name dimension d.
absl::StatusOr<DimVector> ReducedDims(absl::string_view name, absl::Span<const int64_t> dims,
                                      absl::Span<const int64_t> axes, bool keep_dims,
                                      std::vector<bool>* reduced = nullptr);

// Resolves the one -1 of a Reshape: `dims` for a tensor of `num_elements` elements. Beside a 0 it
// is an error, as every size would do.
absl::StatusOr<TensorShape> ResolveReshape(int64_t num_elements, absl::Span<const int64_t> dims);

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_CORE_SHAPE_FNS_H_
