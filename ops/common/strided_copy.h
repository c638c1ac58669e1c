// Strided copies between tensors: the common implementation of slicing, concatenation,
// transposition, tiling and broadcasting. Supports all tensor types; types with elements of the
// same size share an instantiation.
#ifndef GRADFLOW_OPS_COMMON_STRIDED_COPY_H_
#define GRADFLOW_OPS_COMMON_STRIDED_COPY_H_

#include <cstdint>
#include <type_traits>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/resource_handle.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/tensor_shape.h"
#include "gradflow/core/variant.h"

namespace gradflow {

// Returns the strides of a row-major tensor, in elements. All strides are 0 if the tensor is empty.
DimVector RowMajorStrides(absl::Span<const int64_t> dims);

// Returns the strides of a row-major tensor of shape `dims` that is broadcast to the shape `to` by
// NumPy's rules. Repeated dimensions have stride 0.
DimVector BroadcastStrides(absl::Span<const int64_t> dims, absl::Span<const int64_t> to);

// A loop nest over several operands with different strides. Element (i0, i1, ...) of operand k is
// at offset + i0 * strides[0] + i1 * strides[1] + ... of that operand.
class StridedLoop {
 public:
  struct Operand {
    int64_t offset = 0;
    // One stride per dimension, in elements. Stride 0 repeats an element.
    DimVector strides;
  };

  // Drops dimensions of size 1, and merges adjacent dimensions if a single stride covers both in
  // all operands.
  // REQUIRES: no dimension is negative, and their product fits in an int64
  StridedLoop(absl::Span<const int64_t> dims, std::vector<Operand> operands);

  int64_t num_elements() const { return num_elements_; }
  // The dimensions after merging. There is at least one.
  const DimVector& dims() const { return dims_; }
  const Operand& operand(int k) const { return operands_[k]; }
  // Returns the stride of operand k along the last dimension.
  int64_t inner_stride(int k) const { return operands_[k].strides.back(); }

  // Calls fn(offsets, n) concurrently for runs of n elements along the last dimension. The runs
  // together cover all elements. Element i of operand k's run is at offsets[k] + i *
  // inner_stride(k). Unless end_of_block is null, each thread calls end_of_block() after each block
  // of runs.
  void ForEachRun(const RunContext& run, double nanoseconds_per_element,
                  absl::FunctionRef<void(const int64_t* offsets, int64_t n)> fn,
                  void (*end_of_block)() = nullptr) const;

 private:
  DimVector dims_;
  std::vector<Operand> operands_;
  int64_t num_elements_;
};

// Calls fn(TypeTag<E>()), where E has the size and copy semantics of `dtype`'s elements: an
// unsigned integer, a pair of them, a string, a handle or a variant. For kernels that only move
// elements. They are registered for DT_RESOURCE and DT_VARIANT with Types("T", AllDataTypes()).
struct Bytes16 {
  uint64_t words[2];
};
// The types of elements that are not bytes.
using ObjectTypes = TypeList<tstring, ResourceHandle, Variant>;
template <typename E>
inline constexpr bool kIsObject = !std::is_trivially_copyable_v<E>;
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
      break;
  }
  DispatchType(ObjectTypes(), dtype, fn);
}

// Returns the total length of the strings that operand 1 of the loop locates in `source`, for
// KernelContext::ExpectStringBytes. Repeated strings are counted repeatedly. Returns 0 if the
// elements are not strings.
double StridedStringBytes(const RunContext& run, const StridedLoop& loop, const Tensor& source);

// Returns the total length of the strings of inputs [begin, end). Inputs that share a buffer are
// counted separately.
double InputStringBytes(const KernelContext& ctx, int begin, int end);

// Returns the size in bytes of an element in memory.
inline int64_t ElementBytes(DataType dtype) {
  int64_t bytes = DataTypeSize(dtype);
  DispatchType(ObjectTypes(), dtype,
               [&](auto tag) { bytes = sizeof(typename decltype(tag)::type); });
  return bytes;
}
// Returns the approximate cost of copying a contiguous element.
inline double CopyNanoseconds(DataType dtype) {
  return DataTypeIsPlainBytes(dtype) ? 0.05 * DataTypeSize(dtype) : 20;
}

// Sets all elements of a block of `target` to the scalar `value`, which has the same type. The
// block has the shape `dims` and is located by `to`. REQUIRES: no element is set twice
void FillStrided(const RunContext& run, absl::Span<const int64_t> dims, const Tensor& value,
                 Tensor* target, StridedLoop::Operand to);
// Sets all elements of `target` to the scalar `value`, which has the same type.
void FillAll(const RunContext& run, const Tensor& value, Tensor* target);
// Sets all elements of `target` to zero, or to the empty string, handle or variant.
void SetZero(const RunContext& run, Tensor* target);
// Copies elements [from, from + n) of `source` to elements [to, to + n) of `target`, of the same
// type.
void CopyElements(const Tensor& source, int64_t from, Tensor* target, int64_t to, int64_t n);
// Sets elements [begin, begin + n) of `target` as SetZero() does.
void ClearElements(Tensor* target, int64_t begin, int64_t n);
// Returns a scalar of zero, or of the empty string.
absl::StatusOr<Tensor> ZeroScalar(DataType dtype);

// Copies a block of shape `dims`. `from` locates the block in `source`, `to` in `target`.
// REQUIRES: the tensors have the same type, the block lies within both tensors, and no element of
// `target` is written twice
void CopyStrided(const RunContext& run, absl::Span<const int64_t> dims, const Tensor& source,
                 StridedLoop::Operand from, Tensor* target, StridedLoop::Operand to);

// Makes output 0 a writable copy of input `input`. Reuses the input's buffer if nothing else reads
// it.
absl::Status OutputCopy(KernelContext& ctx, int input, Tensor** output);

// Sets output `output` to a tensor of shape `shape` with the elements of a block of input `input`.
// The block has the shape `dims` and is located by `from`. Shares the input's buffer if the block
// is contiguous and its start is aligned.
// REQUIRES: `shape` and `dims` have the same number of elements
absl::Status OutputStrided(KernelContext& ctx, int output, const TensorShape& shape,
                           absl::Span<const int64_t> dims, int input, StridedLoop::Operand from);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_COMMON_STRIDED_COPY_H_
