// Streams of random numbers: the Philox generators of kernels. They equal TensorFlow's streams, so
// equal seeds give equal numbers.
#ifndef GRADFLOW_OPS_RANDOM_STREAMS_H_
#define GRADFLOW_OPS_RANDOM_STREAMS_H_

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gradflow/core/mutex.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/shape_context.h"
#include "gradflow/core/tensor_shape.h"
#include "gradflow/ops/random/philox.h"

namespace gradflow {

// Returns a random number from the operating system.
uint64_t SystemRandom();

// The number of counters that a run reserves for each output. Groups of a distribution that rejects
// numbers start at multiples of this number.
inline constexpr int kCountersPerOutput = 256;

// The stream of a stateful kernel. Each run continues it.
//
// Thread safety: Reserve() may be called concurrently.
class StatefulStream {
 public:
  // Reads `seed` and `seed2`. If both are zero, the operating system provides the seed.
  absl::Status Init(const KernelConstruction& construction);
  // Returns the stream at the current position and advances the position by `counters`.
  Philox Reserve(uint64_t counters) const;

 private:
  mutable Mutex mutex_;
  mutable Philox stream_ ABSL_GUARDED_BY(mutex_);
};

// The source of an op's stream. It determines the op's first inputs.
enum class Source {
  kState,  // (shape), and attributes `seed` and `seed2`
  kSeed,   // (shape, seed)
  kKey,    // (shape, key, counter, alg)
};
// Returns the number of these inputs.
constexpr int NumSourceInputs(Source source) {
  return source == Source::kState ? 1 : source == Source::kSeed ? 2 : 4;
}

// The key and counter of a seed of two numbers.
struct KeyAndCounter {
  uint64_t key = 0;
  uint64_t counter[2] = {0, 0};
};
// Reads input i, a vector of two int32 or int64. Returns INVALID_ARGUMENT for other shapes.
absl::StatusOr<KeyAndCounter> ReadSeed(const KernelContext& ctx, int i);
// Returns the stream for the seed in input i.
absl::StatusOr<Philox> SeedStream(const KernelContext& ctx, int i);
// Returns the stream for the key, counter and algorithm in inputs i, i + 1 and i + 2.
absl::StatusOr<Philox> KeyStream(const KernelContext& ctx, int i);

// The checks of the same inputs for shape functions.
absl::Status CheckSeedShape(ShapeContext& c, int i);
absl::Status CheckKeyShapes(ShapeContext& c, int i);
absl::Status CheckSourceShapes(ShapeContext& c, Source source);

// Returns the shape in input 0.
absl::StatusOr<TensorShape> ReadShape(const KernelContext& ctx);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_RANDOM_STREAMS_H_
