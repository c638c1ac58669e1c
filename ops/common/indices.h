// Reads indices from integer tensors of any width without a widened copy.
#ifndef GRADFLOW_OPS_COMMON_INDICES_H_
#define GRADFLOW_OPS_COMMON_INDICES_H_

#include <atomic>
#include <cstdint>
#include <limits>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/types.h"

namespace gradflow {

// Reads the elements of an int8, int16, int32, int64, uint8 or uint16 tensor as int64. Elements of
// other types are read as -1.
class IndexReader {
 public:
  // Does not copy the elements; `tensor` must outlive the reader.
  explicit IndexReader(const Tensor& tensor) : data_(tensor.raw_data()), dtype_(tensor.dtype()) {}

  int64_t operator[](int64_t i) const {
    switch (dtype_) {
      case DT_INT32:
        return static_cast<const int32_t*>(data_)[i];
      case DT_INT64:
        return static_cast<const int64_t*>(data_)[i];
      case DT_INT16:
        return static_cast<const int16_t*>(data_)[i];
      case DT_UINT16:
        return static_cast<const uint16_t*>(data_)[i];
      case DT_INT8:
        return static_cast<const int8_t*>(data_)[i];
      case DT_UINT8:
        return static_cast<const uint8_t*>(data_)[i];
      default:
        return -1;
    }
  }

 private:
  const void* data_;
  DataType dtype_;
};

// Writes `value` to element i of `tensor`. REQUIRES: `tensor` is of type int32 or int64
inline void WriteIndex(Tensor* tensor, int64_t i, int64_t value) {
  if (tensor->dtype() == DT_INT64) {
    static_cast<int64_t*>(tensor->raw_data())[i] = value;
  } else {
    static_cast<int32_t*>(tensor->raw_data())[i] = static_cast<int32_t>(value);
  }
}

// The smallest position of an invalid index that the threads of a loop have found, or the maximum
// of int64 if they have found no invalid index. Thread-safe.
class FirstBadIndex {
 public:
  void Found(int64_t i) {
    int64_t first = first_;
    while (i < first && !first_.compare_exchange_weak(first, i)) {
    }
  }
  bool any() const { return first_ != std::numeric_limits<int64_t>::max(); }
  int64_t first() const { return first_; }

 private:
  std::atomic<int64_t> first_{std::numeric_limits<int64_t>::max()};
};

// Returns the name of element i of a tensor with this shape, such as "indices[1,2]"; `name` alone
// if the tensor is a scalar.
std::string ElementName(absl::string_view name, const TensorShape& shape, int64_t i);

// Returns INVALID_ARGUMENT unless all elements of `indices` are in [0, limit); the error names the
// first invalid element. If the run is stopped, some elements may remain unchecked, and the caller
// must not use them. ParallelFor() runs no blocks after a stop, so its loops may use the elements.
// REQUIRES: `indices` is of type int16, int32 or int64
absl::Status CheckIndices(const RunContext& run, const Tensor& indices, int64_t limit);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_COMMON_INDICES_H_
