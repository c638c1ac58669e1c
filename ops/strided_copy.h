// Copies between tensors whose elements lie at regular distances: what slicing, joining,
// transposing, tiling and broadcasting are once their shapes are worked out. Works for every type
// of tensor, with one instantiation per size of element.
#ifndef GRADFLOW_OPS_STRIDED_COPY_H_
#define GRADFLOW_OPS_STRIDED_COPY_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/tensor_shape.h"

namespace gradflow {

// Elements between neighbours along each dimension of a row-major tensor.
DimVector RowMajorStrides(absl::Span<const int64_t> dims);

// The strides with which a row-major tensor of shape `dims` is walked as one of the shape `to`, to
// which NumPy's rules broadcast it: 0 where it repeats.
DimVector BroadcastStrides(absl::Span<const int64_t> dims, absl::Span<const int64_t> to);

// A nest of loops that walks several operands at once, each by strides of its own: element
// (i0, i1, ...) of operand k is at offset + i0 * strides[k][0] + i1 * strides[k][1] + ...
class StridedLoop {
 public:
  struct Operand {
    int64_t offset = 0;
    // One for each of the dimensions; 0 repeats an element.
    DimVector strides;
  };

  // Drops dimensions of size 1 and joins neighbours that all operands walk in one stride.
  // REQUIRES: no dimension is negative, and the product of all fits in an int64.
  StridedLoop(absl::Span<const int64_t> dims, std::vector<Operand> operands);

  int64_t num_elements() const { return num_elements_; }
  // What is left after joining, at least one dimension.
  const DimVector& dims() const { return dims_; }
  const Operand& operand(int k) const { return operands_[k]; }
  // The stride of operand k along the last dimension.
  int64_t inner_stride(int k) const { return operands_[k].strides.back(); }

  // Calls fn(offsets, n), concurrently, for runs of n elements along the last dimension that
  // together are all elements: operand k's are at offsets[k] + i * inner_stride(k).
  void ForEachRun(double nanoseconds_per_element,
                  absl::FunctionRef<void(const int64_t* offsets, int64_t n)> fn) const;

 private:
  DimVector dims_;
  std::vector<Operand> operands_;
  int64_t num_elements_;
};

// Calls fn(TypeTag<E>()) where E is a type with the size of `dtype`'s elements that copies as they
// do: an unsigned integer, a pair of them, or a string. For kernels that only move elements.
struct Bytes16 {
  uint64_t words[2];
};
template <typename F>
void DispatchElement(DataType dtype, F&& fn) {
  switch (DataTypeSize(dtype)) {
    case 1:
      return fn(TypeTag<uint8_t>());
    case 2:
      return fn(TypeTag<uint16_t>());
    case 4:
      return fn(TypeTag<uint32_t>());
    case 8:
      return fn(TypeTag<uint64_t>());
    case 16:
      return fn(TypeTag<Bytes16>());
    default:
      return fn(TypeTag<tstring>());
  }
}

// Copies the elements of a block of `dims` from where `from` says in `source` to where `to` says in
// `target`. REQUIRES: the tensors have one type and the block lies within both; elements of
// `target` are not written twice.
void CopyStrided(absl::Span<const int64_t> dims, const Tensor& source, StridedLoop::Operand from,
                 Tensor* target, StridedLoop::Operand to);

// Makes output `output` a tensor of `shape` whose elements, in order, are those of a block of
// `dims` that `from` finds in input `input`. Shares the input's memory where the block is one run
// in it that starts aligned. REQUIRES: `shape` and `dims` have the same number of elements.
absl::Status OutputStrided(KernelContext& ctx, int output, const TensorShape& shape,
                           absl::Span<const int64_t> dims, int input, StridedLoop::Operand from);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_STRIDED_COPY_H_
