// The shapes of the tensors of recurrent cells, for shape functions and kernels.
#ifndef GRADFLOW_OPS_NN_CELL_SHAPES_H_
#define GRADFLOW_OPS_NN_CELL_SHAPES_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/shape_context.h"
#include "gradflow/core/tensor_shape.h"

namespace gradflow {

// The sizes of a cell. In shape functions, -1 is an unknown size.
struct CellSizes {
  int64_t steps = -1;
  int64_t batch = -1;
  // The number of elements of an input, and of a state.
  int64_t input = -1;
  int64_t cell = -1;
};

// A tensor of an op. Each letter of `dims` is a dimension: t is the number of steps, b the batch
// size, i the input size, and c the cell size. 2 and 4 are multiples of the cell size. w is the sum
// of input and cell size.
struct CellTensor {
  const char* name;
  const char* dims;
};

// Sets *sizes from the shapes of the inputs, if they are known. Returns INVALID_ARGUMENT if the
// shapes do not match.
absl::Status InferCellSizes(absl::Span<const CellTensor> inputs,
                            absl::FunctionRef<PartialTensorShape(int)> shape, CellSizes* sizes);
// Overload for the inputs of a kernel, whose sizes are all known.
absl::Status InferCellSizes(absl::Span<const CellTensor> inputs, const KernelContext& ctx,
                            CellSizes* sizes);
// Sets the shapes of the outputs.
absl::Status InferCellShapes(ShapeContext& c, absl::Span<const CellTensor> inputs,
                             absl::Span<const CellTensor> outputs);
// Returns the shape with these dimensions.
absl::StatusOr<PartialTensorShape> CellShape(absl::string_view dims, const CellSizes& sizes);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_NN_CELL_SHAPES_H_
