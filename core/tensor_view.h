// TensorView: a typed, row-major view of a tensor's elements with N dimensions.
// Tensor::matrix<float>() and similar functions return views.
//
// A view borrows the elements: the tensor must outlive it. A view of the wrong type or rank is
// empty: size() is 0, data() is nullptr, and indexing returns a dummy element of the calling
// thread, so that a mismatch never accesses invalid memory.
#ifndef GRADFLOW_CORE_TENSOR_VIEW_H_
#define GRADFLOW_CORE_TENSOR_VIEW_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>

#include "absl/types/span.h"

#pragma GCC visibility push(default)
namespace gradflow {

// A view of N-dimensional elements in row-major order.
template <typename T, int N>
class TensorView {
 public:
  // The element type.
  using value_type = std::remove_const_t<T>;

  // An empty view.
  TensorView() : data_(Dummy()) {}
  TensorView(T* data, const std::array<int64_t, N>& dims) : data_(data), dims_(dims) {
    // Unsigned: if a dimension is 0, the product of the others may overflow, and no stride is used.
    uint64_t stride = 1;
    for (int d = N - 1; d >= 0; --d) {
      strides_[d] = stride;
      stride *= dims[d];
    }
    size_ = stride;
  }

  // Returns the element at the given indices. A single index counts in row-major order. REQUIRES
  // (unchecked): each index is in [0, dimension(d)), a single index in [0, size())
  template <typename... Index>
  T& operator()(Index... index) const {
    static_assert(sizeof...(Index) == N || sizeof...(Index) == 1,
                  "one index per dimension, or one index");
    const std::array<int64_t, sizeof...(Index)> indices = {static_cast<int64_t>(index)...};
    if constexpr (sizeof...(Index) != N) {
      return (*this)[indices[0]];
    } else {
      int64_t offset = 0;
      for (int d = 0; d < N; ++d) offset += indices[d] * strides_[d];
      return data_[offset];
    }
  }
  // Returns element `i` in row-major order.
  T& operator[](int64_t i) const { return data_[size_ == 0 ? 0 : i]; }

  // The sizes and the elements. data() is null if there are no elements.
  int64_t dimension(int d) const { return dims_[d]; }
  const std::array<int64_t, N>& dimensions() const { return dims_; }
  int64_t size() const { return size_; }
  T* data() const { return size_ == 0 ? nullptr : data_; }
  T* begin() const { return data(); }
  T* end() const { return data() + size_; }
  operator absl::Span<T>() const { return absl::Span<T>(data(), size_); }  // NOLINT

  // Sets all elements.
  void setConstant(const value_type& value) const { std::fill(begin(), end(), value); }
  void setZero() const { setConstant(value_type()); }

 private:
  static T* Dummy() {
    static thread_local value_type dummy;
    dummy = value_type();
    return &dummy;
  }

  T* data_;
  std::array<int64_t, N> dims_{};
  std::array<int64_t, N> strides_{};
  int64_t size_ = 0;
};

// TensorFlow's names for views.
template <typename T>
struct TTypes {
  // Views of rank 0, of rank 1, of the flattened elements of any rank, and of rank 2.
  using Scalar = TensorView<T, 0>;
  using Vec = TensorView<T, 1>;
  using Flat = TensorView<T, 1>;
  using Matrix = TensorView<T, 2>;
  using ConstScalar = TensorView<const T, 0>;
  using ConstVec = TensorView<const T, 1>;
  using ConstFlat = TensorView<const T, 1>;
  using ConstMatrix = TensorView<const T, 2>;
};

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_CORE_TENSOR_VIEW_H_
