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

// The constants of transforms of one length. Lengths whose prime factors are 13 at most are
// transformed factor by factor. Others become a convolution, whose length is a power of two
// (Bluestein's algorithm). Either takes time in proportion to n log(n).
//
// Work for a run that is stopped ends early, with any result.
//
// Thread-safe once made.
class FourierPlan {
 public:
  // Allocates the constants by the allocator of `run`. REQUIRES: n > 0
  static absl::StatusOr<FourierPlan> Make(const RunContext& run, int64_t n);

  int64_t n() const { return n_; }
  // The number of elements of memory that Transform uses.
  int64_t scratch_size() const { return convolution_ == nullptr ? n_ : 2 * convolution_->n_; }
  // Returns a number that the time of a transform is in proportion to.
  double Operations() const;

  // Replaces data[n] by its transform, the sum over j of data[j] * exp(-2 pi i j k / n); or, if
  // `inverse`, by the inverse transform, with the sign reversed and divided by n.
  void Transform(const RunContext& run, bool inverse, complex128* data, complex128* scratch) const;

 private:
  FourierPlan() = default;

  const complex128* roots() const { return static_cast<const complex128*>(roots_.raw_data()); }
  void Forward(const RunContext& run, complex128* data, complex128* scratch) const;
  void Convolve(const RunContext& run, complex128* data, complex128* scratch) const;

  int64_t n_ = 1;
  // Prime factors up to 13, and 4 for two twos.
  std::vector<int> factors_;
  // exp(-2 pi i k / n) for k < n. Of 2 n instead for Bluestein's algorithm, whose factors are
  // exp(-pi i k^2 / n).
  Tensor roots_;
  // Bluestein's algorithm: transforms of the length of the convolution, and the transform of its
  // second operand. Null otherwise.
  std::shared_ptr<const FourierPlan> convolution_;
  Tensor chirp_;
};

}  // namespace gradflow

#endif  // GRADFLOW_OPS_MATH_FOURIER_H_
