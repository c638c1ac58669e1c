// Helpers for kernels and shape functions of tensor lists: lists in inputs and outputs, element
// shapes in inputs, and the values of elements that are not set.
#ifndef GRADFLOW_OPS_LIST_LIST_INPUTS_H_
#define GRADFLOW_OPS_LIST_LIST_INPUTS_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/shape_context.h"
#include "gradflow/core/tensor_list.h"
#include "gradflow/core/tensor_shape.h"
#include "gradflow/core/types.h"

namespace gradflow {

// ---- Shape functions ----

// Returns INVALID_ARGUMENT unless input i, the shape of the elements of a list, is a vector or the
// scalar -1, which stands for an unknown rank. Returns the shape, or its known part.
absl::StatusOr<PartialTensorShape> ElementShape(const ShapeContext& c, int i);

// ---- Kernels ----

// A base class of kernels of lists. Reads attribute element_dtype.
class ListKernel : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return construction.GetAttr("element_dtype", &dtype_);
  }

 protected:
  DataType dtype_ = DT_INVALID;
};

// Returns the element shape that input i holds.
absl::StatusOr<PartialTensorShape> ElementShape(const KernelContext& ctx, int i,
                                                absl::string_view name);
// Returns the list that input i, a scalar, holds.
absl::StatusOr<const TensorList*> ListInput(const KernelContext& ctx, int i,
                                            absl::string_view name);
// Returns INVALID_ARGUMENT unless the list has elements of the type that attribute element_dtype
// states.
absl::Status CheckElementType(const TensorList& list, DataType element_dtype);
// Makes output `output` the list of input `input`, and returns it to be changed: in place if
// nothing else reads the input. The list in the input must not be used any more.
absl::StatusOr<TensorList*> ListOutput(KernelContext& ctx, int input, absl::string_view name,
                                       int output = 0);
// Makes a new list output 0.
absl::Status SetListOutput(KernelContext& ctx, TensorList list);

// Returns the shape of the elements of `list` if it must also be compatible with `shape`.
absl::StatusOr<PartialTensorShape> MergeElementShape(const TensorList& list,
                                                     const PartialTensorShape& shape);
// Returns the shape of an element that is not set: `shape`, with its unknown sizes taken from the
// elements that are set.
absl::StatusOr<TensorShape> UnsetShape(const TensorList& list, PartialTensorShape shape,
                                       absl::string_view what);
// Returns a tensor of zeros, empty strings or empty variants.
absl::StatusOr<Tensor> MakeZeros(KernelContext& ctx, DataType dtype, const TensorShape& shape);

// Sets output 0 to elements index(0), ..., index(count - 1) of `list`, stacked. They must have a
// shape compatible with `shape`. REQUIRES: the indices are in range
absl::Status StackElements(KernelContext& ctx, const TensorList& list,
                           const PartialTensorShape& shape, int64_t count,
                           absl::FunctionRef<int64_t(int64_t)> index);

// Returns rows [start, limit) of `tensor`, which share its memory if they are aligned in it.
// Removes dimension 0, of one row, if `squeeze`.
absl::StatusOr<Tensor> TakeRows(KernelContext& ctx, const Tensor& tensor, int64_t start,
                                int64_t limit, bool squeeze);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_LIST_LIST_INPUTS_H_
