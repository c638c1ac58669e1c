// Rows of elements for softmax and cross entropy. Chunks of a row are computed in float or double.
// The order of a sum over a row depends only on the length of the row.
#ifndef GRADFLOW_OPS_NN_SOFTMAX_ROWS_H_
#define GRADFLOW_OPS_NN_SOFTMAX_ROWS_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "gradflow/core/tensor.h"
#include "gradflow/core/types.h"
#include "gradflow/ops/common/elementary_simd.h"
#include "gradflow/ops/common/elementwise.h"
#include "gradflow/ops/common/elementwise_simd.h"
#include "gradflow/ops/common/simd.h"
#include "gradflow/ops/nn/softmax_simd.h"

namespace gradflow {

// The maximum number of elements of a chunk. A multiple of kSumLanes.
inline constexpr int64_t kRowChunk = kElementwiseChunk;
static_assert(kRowChunk % kSumLanes == 0);

// Reads the elements of a tensor as type C, which is float for half and bfloat16.
template <typename C>
class RowReader {
 public:
  // Does not copy the elements. REQUIRES: ComputeType of the element type is C
  explicit RowReader(const Tensor& tensor)
      : data_(static_cast<const char*>(tensor.raw_data())), dtype_(tensor.dtype()) {}

  // Returns the n elements from element i on, either in place or converted in `buffer`.
  const C* Read(int64_t i, int64_t n, C* buffer) const {
    if constexpr (std::is_same_v<C, float>) {
      if (dtype_ != DT_FLOAT) {
        const ElementType type = dtype_ == DT_HALF ? ElementType::kHalf : ElementType::kBfloat16;
        Float16ToFloat(type, data_ + 2 * i, buffer, n);
        return buffer;
      }
    }
    return reinterpret_cast<const C*>(data_) + i;
  }
  bool converts() const { return DataTypeSize(dtype_) == 2; }

 private:
  const char* const data_;
  const DataType dtype_;
};

template <typename C>
class RowWriter {
 public:
  explicit RowWriter(Tensor* tensor)
      : data_(static_cast<char*>(tensor->raw_data())), dtype_(tensor->dtype()) {}
  // Decides whether to use non-temporal stores. `input` may share its buffer with the tensor. If
  // stores begin at multiples of `run` elements, a run must consist of whole cache lines.
  RowWriter(Tensor* tensor, const Tensor& input, int64_t run = kSumLanes) : RowWriter(tensor) {
    constexpr int64_t kBytes = sizeof(C);
    non_temporal_ =
        !converts() && ShouldUseNonTemporalStores(data_, data_ == input.raw_data(),
                                                  tensor->NumElements() * kBytes, run * kBytes);
  }

  // Returns the location of element i, or `buffer` if elements are converted.
  C* Place(int64_t i, C* buffer) const {
    return converts() ? buffer : reinterpret_cast<C*>(data_) + i;
  }
  // Writes n elements that are not yet in place.
  void Write(const C* from, int64_t i, int64_t n) const {
    if constexpr (std::is_same_v<C, float>) {
      if (dtype_ != DT_FLOAT) {
        const ElementType type = dtype_ == DT_HALF ? ElementType::kHalf : ElementType::kBfloat16;
        FloatToFloat16(type, from, data_ + 2 * i, n, /*non_temporal=*/false);
        return;
      }
    }
    C* const to = reinterpret_cast<C*>(data_) + i;
    if (to != from) std::copy_n(from, n, to);
  }
  bool converts() const { return DataTypeSize(dtype_) == 2; }
  // Returns true if non-temporal stores are faster for these results.
  bool non_temporal() const { return non_temporal_; }

 private:
  char* const data_;
  const DataType dtype_;
  bool non_temporal_ = false;
};

// Vectors do not help for fewer elements.
inline constexpr int64_t kMinSimdElements = 32;

// The maximum of a row, whose chunks are added in order. Ignores NaN.
template <typename C>
class RowMax {
 public:
  RowMax() { std::fill_n(lanes_, kSumLanes, -std::numeric_limits<C>::infinity()); }
  void Add(const C* x, int64_t n) {
    int64_t i = 0;
    if constexpr (std::is_same_v<C, float>) {
      if (n >= kMinSimdElements) {
        MaxOfLanes(x, n, lanes_);
        i = n / kSumLanes * kSumLanes;
      }
    }
    for (; i + kSumLanes <= n; i += kSumLanes) {
      for (int j = 0; j < kSumLanes; ++j) lanes_[j] = x[i + j] > lanes_[j] ? x[i + j] : lanes_[j];
    }
    for (int j = 0; i < n; ++i, ++j) lanes_[j] = x[i] > lanes_[j] ? x[i] : lanes_[j];
  }
  C Result() const { return *std::max_element(lanes_, lanes_ + kSumLanes); }

 private:
  C lanes_[kSumLanes];
};

// The sum of a row, in double. All chunks except the last have a multiple of kSumLanes elements.
class RowSum {
 public:
  template <typename C>
  void Add(const C* x, int64_t n) {
    int64_t i = 0;
    if constexpr (std::is_same_v<C, float>) {
      if (n >= kMinSimdElements) {
        AddToLanes(x, n, lanes_);
        i = n / kSumLanes * kSumLanes;
      }
    }
    for (; i + kSumLanes <= n; i += kSumLanes) {
      for (int j = 0; j < kSumLanes; ++j) lanes_[j] += static_cast<double>(x[i + j]);
    }
    for (int j = 0; i < n; ++i, ++j) lanes_[j] += static_cast<double>(x[i]);
  }
  // Sets e[i] = exp(x[i] - y) for i < n and adds the results. `e` may be `x`. Prefetches n elements
  // each from next[0] and next[1] on.
  template <typename C>
  void AddExponentials(const C* x, C y, int64_t n, const C* const next[2], C* e);
  // Adds z * (c - (x - y)) for all elements. x - y is rounded; the rest is computed in double.
  template <typename C>
  void AddProducts(const C* x, C y, const C* z, double c, int64_t n) {
    const auto term = [&](int64_t i) {
      const C shifted = x[i] - y;
      return static_cast<double>(z[i]) * (c - static_cast<double>(shifted));
    };
    int64_t i = 0;
    if constexpr (std::is_same_v<C, float>) {
      if (n >= kMinSimdElements) {
        AddProductsToLanes(x, y, z, c, n, lanes_);
        i = n / kSumLanes * kSumLanes;
      }
    }
    for (; i + kSumLanes <= n; i += kSumLanes) {
      for (int j = 0; j < kSumLanes; ++j) lanes_[j] += term(i + j);
    }
    for (int j = 0; i < n; ++i, ++j) lanes_[j] += term(i);
  }
  double Result() const { return SumOfLanes(lanes_); }

 private:
  double lanes_[kSumLanes] = {};
};

// The loops of softmax_simd.h for all types.
template <typename C>
void SubtractNumber(const C* x, C y, int64_t n, C* out) {
  if constexpr (std::is_same_v<C, float>) {
    if (n >= kMinSimdElements) return SubtractFromFloats(x, y, n, out);
  }
  GRADFLOW_SAME_INDEX_LOOP
  for (int64_t i = 0; i < n; ++i) out[i] = x[i] - y;
}
template <typename C>
void SubtractNumbers(const C* x, C y, C z, int64_t n, bool non_temporal, C* out) {
  if constexpr (std::is_same_v<C, float>) {
    if (n >= kMinSimdElements) return SubtractTwiceFromFloats(x, y, z, n, non_temporal, out);
  }
  GRADFLOW_SAME_INDEX_LOOP
  for (int64_t i = 0; i < n; ++i) out[i] = x[i] - y - z;
}
template <typename C>
void DivideByNumber(const C* x, C y, int64_t n, bool non_temporal, C* out) {
  if constexpr (std::is_same_v<C, float>) {
    if (n >= kMinSimdElements) return DivideFloats(x, y, n, non_temporal, out);
  }
  GRADFLOW_SAME_INDEX_LOOP
  for (int64_t i = 0; i < n; ++i) out[i] = x[i] / y;
}
template <typename C>
void DivideAndSubtract(const C* x, C y, const C* z, int64_t n, bool non_temporal, C* out) {
  if constexpr (std::is_same_v<C, float>) {
    if (n >= kMinSimdElements) {
      return DivideAndSubtractFloats(x, y, z, n, non_temporal, out);
    }
  }
  for (int64_t i = 0; i < n; ++i) out[i] = x[i] / y - z[i];
}

template <typename C>
void RowSum::AddExponentials(const C* x, C y, int64_t n, const C* const next[2], C* e) {
  if constexpr (std::is_same_v<C, float>) {
    if (n >= kMinSimdElements) {
      ExponentialsToLanes(x, y, n, next, e, lanes_);
      for (int64_t i = n / kSumLanes * kSumLanes, j = 0; i < n; ++i, ++j) {
        lanes_[j] += static_cast<double>(e[i]);
      }
      return;
    }
  }
  SubtractNumber(x, y, n, e);
  ApplyElementary(Elementary::kExp, e, e, n);
  Add(e, n);
}

}  // namespace gradflow

#endif  // GRADFLOW_OPS_NN_SOFTMAX_ROWS_H_
