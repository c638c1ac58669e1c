// The argument `paddings` of padding ops: a matrix with a row [before, after] for each dimension.
#ifndef GRADFLOW_OPS_ARRAY_PADDINGS_H_
#define GRADFLOW_OPS_ARRAY_PADDINGS_H_

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/shape_context.h"
#include "gradflow/core/tensor_shape.h"

namespace gradflow {

struct Padding {
  int64_t before = 0;
  int64_t after = 0;
};
using Paddings = absl::InlinedVector<Padding, 4>;

// Returns the rows of `values`, the elements of `paddings`. Returns INVALID_ARGUMENT if one of them
// is negative.
absl::StatusOr<Paddings> MakePaddings(absl::string_view name, absl::Span<const int64_t> values);

// Returns INVALID_ARGUMENT unless `paddings` has, or may have, the shape [rank of `padded`, 2].
absl::Status CheckPaddingsShape(absl::string_view name, const PartialTensorShape& paddings,
                                absl::string_view padded_name, const PartialTensorShape& padded);

// Returns input `i` of a kernel, which must have a row for each dimension of input 0.
absl::StatusOr<Paddings> ReadPaddings(const KernelContext& ctx, int i, absl::string_view name);

// The paddings of a shape function, if they are known.
struct KnownPaddings {
  bool known = false;
  Paddings rows;
  // The shape of input 0. If its rank is unknown, it gets the rank of the paddings.
  PartialTensorShape input;
};
absl::StatusOr<KnownPaddings> ReadPaddings(const ShapeContext& c, int i);

// Returns the padded shape. REQUIRES: `paddings` has a row for each dimension of `shape`
absl::StatusOr<PartialTensorShape> PaddedShape(const PartialTensorShape& shape,
                                               const Paddings& paddings);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_ARRAY_PADDINGS_H_
