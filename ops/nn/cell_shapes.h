// The shapes of the tensors of recurrent cells, which shape functions and kernels check alike.
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
  // The elements of an input, and of a state.
  int64_t input = -1;
  int64_t cell = -1;
};

// A tensor of an op. Each letter of `dims` is a dimension: t for the steps, b for the batch, i for
// the input size, c for the cell size, 2 and 4 for multiples of the cell size, and w for the sum of
// input and cell size.
struct CellTensor {
  const char* name;
  const char* dims;
};

// Sets *sizes to those of the inputs, as far as known. Returns INVALID_ARGUMENT if the shapes do
// not agree.
absl::Status InferCellSizes(absl::Span<const CellTensor> inputs,
                            absl::FunctionRef<PartialTensorShape(int)> shape, CellSizes* sizes);
// Does so for the inputs of a kernel, whose sizes are all known.
absl::Status InferCellSizes(absl::Span<const CellTensor> inputs, const KernelContext& ctx,
                            CellSizes* sizes);
// Sets the shapes of the outputs.
absl::Status InferCellShapes(ShapeContext& c, absl::Span<const CellTensor> inputs,
                             absl::Span<const CellTensor> outputs);
// Returns the shape of a tensor of these dimensions.
absl::StatusOr<PartialTensorShape> CellShape(absl::string_view dims, const CellSizes& sizes);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_NN_CELL_SHAPES_H_
