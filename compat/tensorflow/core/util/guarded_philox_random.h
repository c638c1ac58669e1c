// GuardedPhiloxRandom: a generator shared by the runs of a kernel.
#ifndef GRADFLOW_COMPAT_CORE_UTIL_GUARDED_PHILOX_RANDOM_H_
#define GRADFLOW_COMPAT_CORE_UTIL_GUARDED_PHILOX_RANDOM_H_

#include <random>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/lib/random/philox_random.h"
#include "tensorflow/core/platform/mutex.h"

namespace tensorflow {

// Thread-safe after initialisation.
class GuardedPhiloxRandom {
 public:
  GuardedPhiloxRandom() = default;
  GuardedPhiloxRandom(const GuardedPhiloxRandom&) = delete;
  GuardedPhiloxRandom& operator=(const GuardedPhiloxRandom&) = delete;

  // Reads the attributes `seed` and `seed2` of the node. If both are 0, the seed is random.
  absl::Status Init(OpKernelConstruction* context) {
    int64 seed, seed2;
    TF_RETURN_IF_ERROR(context->GetAttr("seed", &seed));
    TF_RETURN_IF_ERROR(context->GetAttr("seed2", &seed2));
    Init(seed, seed2);
    return absl::OkStatus();
  }
  void Init(int64 seed, int64 seed2) {
    if (seed == 0 && seed2 == 0) {
      std::random_device device;
      seed = static_cast<int64>(uint64{device()} << 32 | device());
      seed2 = static_cast<int64>(uint64{device()} << 32 | device());
    }
    const mutex_lock lock(mu_);
    generator_ = random::PhiloxRandom(static_cast<uint64>(seed), static_cast<uint64>(seed2));
  }

  // Returns a generator whose next `samples` 128-bit results are returned by no other call.
  random::PhiloxRandom ReserveSamples128(int64 samples) {
    const mutex_lock lock(mu_);
    const random::PhiloxRandom result = generator_;
    generator_.Skip(static_cast<uint64>(samples));
    return result;
  }
  // Reserves `samples` 32-bit results.
  random::PhiloxRandom ReserveSamples32(int64 samples) {
    return ReserveSamples128((samples + 3) / 4);
  }
  // Reserves the results for outputs that take `multiplier` 128-bit results each.
  random::PhiloxRandom ReserveRandomOutputs(int64 output_count, int multiplier) {
    return ReserveSamples128(output_count * multiplier);
  }

 private:
  mutex mu_;
  random::PhiloxRandom generator_;
};

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_UTIL_GUARDED_PHILOX_RANDOM_H_
