// Parameters of distributions, for ops that draw samples for each element of their parameters.
#ifndef GRADFLOW_OPS_RANDOM_PARAMETERS_H_
#define GRADFLOW_OPS_RANDOM_PARAMETERS_H_

#include <array>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/tensor_shape.h"
#include "gradflow/core/types.h"
#include "gradflow/ops/random/distributions.h"
#include "gradflow/ops/random/philox.h"

namespace gradflow {

class KernelContext;

// The types of the parameters and of the samples.
using SampleTypes = TypeList<half, float, double, int32_t, int64_t>;

// Reads doubles in [0, 1). Of the two doubles of a counter, the second comes first.
class UniformReader {
 public:
  explicit UniformReader(const Philox& stream) : stream_(stream) {}
  double Next() {
    if (left_ == 0) {
      pair_ = Uniform<double>()(stream_.Next());
      left_ = 2;
    }
    return pair_[--left_];
  }

 private:
  Philox stream_;
  std::array<double, 2> pair_{};
  int left_ = 0;
};

// Returns a sample as type T. Integers are clamped. NaN and infinity become integer 0, as in
// TensorFlow.
template <typename T>
T SampleAs(double x) {
  if constexpr (std::is_integral_v<T>) {
    if (!(x - x == 0)) return 0;
    // 2^63 does not fit int64.
    if (x >= static_cast<double>(std::numeric_limits<T>::max())) {
      return std::numeric_limits<T>::max();
    }
    return static_cast<T>(x);
  } else {
    return static_cast<T>(x);
  }
}

// The elements of a parameter by batch, an index in the broadcast shape of all parameters.
class Parameter {
 public:
  // Does not copy the elements. REQUIRES: `tensor` has one of SampleTypes, and its shape broadcasts
  // to `batches`
  Parameter(const Tensor& tensor, const TensorShape& batches);
  double operator[](int64_t batch) const { return read_(data_, IndexOf(batch)); }

 private:
  int64_t IndexOf(int64_t batch) const;

  const void* data_;
  double (*read_)(const void* data, int64_t i) = nullptr;
  bool is_whole_ = true;
  absl::InlinedVector<int64_t, 4> sizes_;
  absl::InlinedVector<int64_t, 4> strides_;
};

// Returns the broadcast shape of inputs [begin, end). `shape` must end with this shape; its
// preceding dimensions are the samples. Sets *samples to the number of samples of each element.
absl::StatusOr<TensorShape> BatchShape(const KernelContext& ctx, const TensorShape& shape,
                                       int begin, int end, int64_t* samples);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_RANDOM_PARAMETERS_H_
