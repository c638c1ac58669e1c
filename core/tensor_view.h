// A typed, row-major view of a tensor's elements with N dimensions, as Tensor::matrix<float>()
// and its siblings return.
//
// A view does not own memory: the tensor must outlive it. A view that could not be made (wrong
// type or rank) is empty: size() is 0, data() is nullptr, and indexing it reaches one dummy element
// of the calling thread instead of memory that is not there.
#ifndef GRADFLOW_CORE_TENSOR_VIEW_H_
#define GRADFLOW_CORE_TENSOR_VIEW_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>

#include "absl/types/span.h"

#pragma GCC visibility push(default)
namespace gradflow {

// N-dimensional elements in row-major order that something else owns.
template <typename T, int N>
class TensorView {
 public:
  // The type of the elements.
  using value_type = std::remove_const_t<T>;

  // The empty view of a mismatch.
  TensorView() : data_(Dummy()) {}
  TensorView(T* data, const std::array<int64_t, N>& dims) : data_(data), dims_(dims) {
    // Unsigned, because beside a dimension of 0, where no stride matters, others may overflow.
    uint64_t stride = 1;
    for (int d = N - 1; d >= 0; --d) {
      strides_[d] = stride;
      stride *= dims[d];
    }
    size_ = stride;
  }

  // The element at the given indices, each in [0, dimension(d)). Not checked.
  template <typename... Index>
  T& operator()(Index... index) const {
    static_assert(sizeof...(Index) == N, "one index per dimension");
    const std::array<int64_t, N> indices = {static_cast<int64_t>(index)...};
    int64_t offset = 0;
    for (int d = 0; d < N; ++d) offset += indices[d] * strides_[d];
    return data_[offset];
  }
  // The element at `i` in row-major order (of a vector or flat view: its i-th).
  T& operator[](int64_t i) const { return data_[size_ == 0 ? 0 : i]; }

  // The sizes, and the elements: null if there are none.
  int64_t dimension(int d) const { return dims_[d]; }
  const std::array<int64_t, N>& dimensions() const { return dims_; }
  int64_t size() const { return size_; }
  T* data() const { return size_ == 0 ? nullptr : data_; }
  T* begin() const { return data(); }
  T* end() const { return data() + size_; }
  operator absl::Span<T>() const { return absl::Span<T>(data(), size_); }  // NOLINT

  // Writes all elements.
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

// As TensorFlow names them.
template <typename T>
struct TTypes {
  // A view of a tensor of rank 0, 1, of all elements of one of any rank, and of rank 2.
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
