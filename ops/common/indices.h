// Reads indices from integer tensors of several widths, without making a widened copy.
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

// Reads the elements of a tensor of int8, int16, int32, int64, uint8 or uint16 as int64. Elements
// of other types are read as -1.
class IndexReader {
 public:
  // Borrows the elements.
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

// Writes `value` to element i of `tensor`, which must be of type int32 or int64.
inline void WriteIndex(Tensor* tensor, int64_t i, int64_t value) {
  if (tensor->dtype() == DT_INT64) {
    static_cast<int64_t*>(tensor->raw_data())[i] = value;
  } else {
    static_cast<int32_t*>(tensor->raw_data())[i] = static_cast<int32_t>(value);
  }
}

// The first element out of range that a parallel loop finds.
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

// Returns "indices[1,2]", the position of element i of a tensor of that shape; "indices" if it is a
// scalar.
std::string ElementName(absl::string_view name, const TensorShape& shape, int64_t i);

// Returns INVALID_ARGUMENT, naming the first that is not, unless all elements of `indices`, of type
// int16, int32 or int64, are in [0, limit). If the run is stopped, some may remain unchecked: the
// caller must not use them then, as loops of ParallelFor() do not.
absl::Status CheckIndices(const RunContext& run, const Tensor& indices, int64_t limit);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_COMMON_INDICES_H_
