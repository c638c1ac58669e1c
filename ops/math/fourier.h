// Discrete Fourier transforms of any length, in double.
#ifndef GRADFLOW_OPS_MATH_FOURIER_H_
#define GRADFLOW_OPS_MATH_FOURIER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "gradflow/core/run_context.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/types.h"

namespace gradflow {

// One complex number from each of four lines. The four lines are transformed together.
struct FourLines {
  // Is also used in memory of complex128.
  typedef double Vector __attribute__((vector_size(32), aligned(16), may_alias));
  static constexpr int kCount = 4;
  Vector real;
  Vector imag;
};

// The constants of transforms of one length. If all prime factors of the length are at most 31, the
// transform processes them one after the other. Otherwise the transform is computed as a
// convolution whose length is a power of two (Bluestein's algorithm). Both take O(n log n) time.
//
// If the run is stopped, functions return early and results are unspecified.
//
// Thread-safe after construction.
class FourierPlan {
 public:
  // Returns a plan like Make(). Keeps the plans of a few short lengths, because computing the
  // constants of a short transform takes longer than the transform.
  static absl::StatusOr<std::shared_ptr<const FourierPlan>> Cached(const RunContext& run,
                                                                   int64_t n);
  // Allocates the constants with the allocator of `run`. REQUIRES: n > 0
  static absl::StatusOr<FourierPlan> Make(const RunContext& run, int64_t n);

  int64_t n() const { return n_; }
  // The number of elements of scratch memory that Transform() uses.
  int64_t scratch_size() const { return convolution_ == nullptr ? n_ : 2 * convolution_->n_; }
  // Returns a number that is proportional to the time of a transform.
  double Operations() const;

  // Replaces data[n] by its transform, the sum over j of data[j] * exp(-2 pi i j k / n). If
  // `inverse` is true, the sign of the exponent is reversed and the result is divided by n.
  void Transform(const RunContext& run, bool inverse, complex128* data, complex128* scratch) const;
  // Transforms four lines. Each result has the same bits as the function above.
  void Transform(const RunContext& run, bool inverse, FourLines* data, FourLines* scratch) const;

 private:
  FourierPlan() = default;

  const complex128* roots() const { return static_cast<const complex128*>(roots_.raw_data()); }
  template <typename C>
  void TransformAny(const RunContext& run, bool inverse, C* data, C* scratch) const;
  template <typename C>
  void Forward(const RunContext& run, C* data, C* scratch) const;
  template <typename C>
  C* Stages(const RunContext& run, size_t first_factor, C* x, C* y) const;
  template <typename C>
  void Convolve(const RunContext& run, C* data, C* scratch) const;

  int64_t n_ = 1;
  // Prime factors up to 31. Two factors 2 are combined to 4.
  std::vector<int> factors_;
  // exp(-2 pi i k / n) for k < n. Bluestein's algorithm needs factors exp(-pi i k^2 / n), so it
  // uses 2 n instead of n.
  Tensor roots_;
  // For Bluestein's algorithm: the transforms of the convolution's length, and the transform of the
  // second operand of the convolution. Otherwise null.
  std::shared_ptr<const FourierPlan> convolution_;
  Tensor chirp_;
};

// The constants of transforms of an even number of real numbers. Each is computed from a transform
// of half as many complex numbers, whose real and imaginary parts are pairs of real numbers.
//
// Thread-safe after construction.
class RealFourierPlan {
 public:
  // As FourierPlan::Cached(). REQUIRES: n is even
  static absl::StatusOr<std::shared_ptr<const RealFourierPlan>> Cached(const RunContext& run,
                                                                       int64_t n);
  static absl::StatusOr<RealFourierPlan> Make(const RunContext& run, int64_t n);

  int64_t n() const { return n_; }
  int64_t scratch_size() const { return half_->scratch_size(); }
  double Operations() const { return half_->Operations() + 4 * static_cast<double>(n_); }

  // data[n / 2 + 1] begins with n / 2 pairs of numbers. Replaces them by the first n / 2 + 1
  // coefficients. The others are the complex conjugates of these.
  void FromReal(const RunContext& run, complex128* data, complex128* scratch) const;
  void FromReal(const RunContext& run, FourLines* data, FourLines* scratch) const;
  // The inverse. Ignores the imaginary parts of the first and the last coefficient.
  void ToReal(const RunContext& run, complex128* data, complex128* scratch) const;
  void ToReal(const RunContext& run, FourLines* data, FourLines* scratch) const;

 private:
  RealFourierPlan() = default;

  int64_t n_ = 2;
  std::shared_ptr<const FourierPlan> half_;
  // exp(-2 pi i k / n) for k < n.
  Tensor roots_;
};

}  // namespace gradflow

#endif  // GRADFLOW_OPS_MATH_FOURIER_H_
