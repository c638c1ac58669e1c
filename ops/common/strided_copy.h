// Strided copies between tensors: the common implementation of slicing, concatenation,
// transposition, tiling and broadcasting. Supports every tensor type, with one instantiation per
// element size.
#ifndef GRADFLOW_OPS_COMMON_STRIDED_COPY_H_
#define GRADFLOW_OPS_COMMON_STRIDED_COPY_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/tensor_shape.h"

namespace gradflow {

// Returns the strides, in elements, of a row-major tensor; zeros if it has no elements.
DimVector RowMajorStrides(absl::Span<const int64_t> dims);

// Returns the strides of a row-major tensor of shape `dims` broadcast to shape `to` by NumPy's
// rules. Dimensions that repeat have stride 0.
DimVector BroadcastStrides(absl::Span<const int64_t> dims, absl::Span<const int64_t> to);

// A loop nest over several operands with different strides. Element (i0, i1, ...) of operand k is
// at offset + i0 * strides[0] + i1 * strides[1] + ... of that operand.
class StridedLoop {
 public:
  struct Operand {
    int64_t offset = 0;
    // One per dimension, in elements; 0 repeats an element.
    DimVector strides;
  };

  // Drops dimensions of size 1 and merges adjacent dimensions that have one stride in all operands.
  // REQUIRES: no dimension is negative, and their product fits in an int64
  StridedLoop(absl::Span<const int64_t> dims, std::vector<Operand> operands);

  int64_t num_elements() const { return num_elements_; }
  // The dimensions after merging, at least one.
  const DimVector& dims() const { return dims_; }
  const Operand& operand(int k) const { return operands_[k]; }
  // Returns the stride of operand k along the last dimension.
  int64_t inner_stride(int k) const { return operands_[k].strides.back(); }

  // Calls fn(offsets, n) concurrently for runs of n elements along the last dimension, which
  // together cover all elements. Element i of operand k's run is at offsets[k] + i *
  // inner_stride(k). After each block of runs calls end_of_block() on the thread that ran them, if
  // it is not null.
  void ForEachRun(const RunContext& run, double nanoseconds_per_element,
                  absl::FunctionRef<void(const int64_t* offsets, int64_t n)> fn,
                  void (*end_of_block)() = nullptr) const;

 private:
  DimVector dims_;
  std::vector<Operand> operands_;
  int64_t num_elements_;
};

// Calls fn(TypeTag<E>()), where E has the size and copy semantics of `dtype`'s elements: an
// unsigned integer, a pair of them, or a string. For kernels that only move elements.
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

// Returns the number of characters of the strings that operand 1 of the loop locates in `source`,
// each counted as often as it occurs; 0 for other types. For KernelContext::ExpectStringBytes.
double StridedStringBytes(const RunContext& run, const StridedLoop& loop, const Tensor& source);

// Returns the number of characters of the strings of inputs [begin, end). Inputs that share a
// buffer are each counted.
double InputStringBytes(const KernelContext& ctx, int begin, int end);

// Returns the size in bytes of such an element.
inline int64_t ElementBytes(DataType dtype) {
  return DataTypeIsPlainBytes(dtype) ? DataTypeSize(dtype) : sizeof(tstring);
}
// Returns the approximate cost of copying an element of contiguous memory.
inline double CopyNanoseconds(DataType dtype) {
  return DataTypeIsPlainBytes(dtype) ? 0.05 * DataTypeSize(dtype) : 20;
}

// Sets all elements of the block of shape `dims` that `to` locates in `target` to the scalar
// `value`, which has the same type. REQUIRES: no element is set twice
void FillStrided(const RunContext& run, absl::Span<const int64_t> dims, const Tensor& value,
                 Tensor* target, StridedLoop::Operand to);
// Sets all elements of `target` to the scalar `value`, which has the same type.
void FillAll(const RunContext& run, const Tensor& value, Tensor* target);
// Sets all elements of `target` to zero, or to the empty string.
void SetZero(const RunContext& run, Tensor* target);
// Returns a scalar of zero, or of the empty string.
absl::StatusOr<Tensor> ZeroScalar(DataType dtype);

// Copies a block of shape `dims` from `source`, where `from` locates its elements, to `target`,
// where `to` does. REQUIRES: the tensors have the same type, the block lies within both, and no
// element of `target` is written twice
void CopyStrided(const RunContext& run, absl::Span<const int64_t> dims, const Tensor& source,
                 StridedLoop::Operand from, Tensor* target, StridedLoop::Operand to);

// Makes output 0 a copy of input `input`, which may be written: the input itself if nothing else
// reads it.
absl::Status OutputCopy(KernelContext& ctx, int input, Tensor** output);

// Sets output `output` to a tensor of shape `shape` whose elements are those of the block of shape
// `dims` that `from` locates in input `input`. Shares the input's buffer if the block is contiguous
// and its start is aligned. REQUIRES: `shape` and `dims` have the same number of elements
absl::Status OutputStrided(KernelContext& ctx, int output, const TensorShape& shape,
                           absl::Span<const int64_t> dims, int input, StridedLoop::Operand from);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_COMMON_STRIDED_COPY_H_
