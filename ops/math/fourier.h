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
  typedef double Vector __attribute__((vector_size(32)));
  static constexpr int kCount = 4;
  Vector real;
  Vector imag;
};

// The constants of transforms of one length. If all prime factors of the length are at most 13, the
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
  void Convolve(const RunContext& run, C* data, C* scratch) const;

  int64_t n_ = 1;
  // Prime factors up to 13. Two factors 2 are combined to 4.
  std::vector<int> factors_;
  // exp(-2 pi i k / n) for k < n. Bluestein's algorithm needs factors exp(-pi i k^2 / n), so it
  // uses 2 n instead of n.
  Tensor roots_;
  // For Bluestein's algorithm: the transforms of the convolution's length, and the transform of the
  // second operand of the convolution. Otherwise null.
  std::shared_ptr<const FourierPlan> convolution_;
  Tensor chirp_;
};

}  // namespace gradflow

#endif  // GRADFLOW_OPS_MATH_FOURIER_H_
