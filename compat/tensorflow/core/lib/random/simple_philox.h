// SimplePhilox: generates random numbers one at a time, for tests.
#ifndef GRADFLOW_COMPAT_CORE_LIB_RANDOM_SIMPLE_PHILOX_H_
#define GRADFLOW_COMPAT_CORE_LIB_RANDOM_SIMPLE_PHILOX_H_

#include "tensorflow/core/lib/random/philox_random.h"

namespace tensorflow {
namespace random {

class SimplePhilox {
 public:
  // Reads from *gen. Does not own it.
  explicit SimplePhilox(PhiloxRandom* gen) : gen_(gen) {}

  uint32 Rand32() {
    if (used_ == PhiloxRandom::kResultElementCount) {
      numbers_ = (*gen_)();
      used_ = 0;
    }
    return numbers_[used_++];
  }
  uint64 Rand64() {
    const uint64 low = Rand32();
    return low | uint64{Rand32()} << 32;
  }
  // Return numbers in [0, 1).
  float RandFloat() { return static_cast<float>(Rand32() >> 8) * 0x1p-24f; }
  double RandDouble() { return static_cast<double>(Rand64() >> 11) * 0x1p-53; }
  // Return numbers in [0, n). REQUIRES: n > 0
  uint32 Uniform(uint32 n) {
    const uint32 excess = (0 - n) % n;  // 2^32 modulo n
    while (true) {
      const uint32 x = Rand32();
      if (x >= excess) return x % n;
    }
  }
  uint64 Uniform64(uint64 n) {
    const uint64 excess = (0 - n) % n;
    while (true) {
      const uint64 x = Rand64();
      if (x >= excess) return x % n;
    }
  }
  bool OneIn(uint32 n) { return Uniform(n) == 0; }
  // Returns a number in [0, 2^max_log). Small numbers are more frequent.
  uint32 Skewed(int max_log) {
    const int shift = static_cast<int>(Rand32() % static_cast<uint32>(max_log + 1));
    return Rand32() & (shift == 32 ? ~uint32{0} : (uint32{1} << shift) - 1);
  }

 private:
  PhiloxRandom* const gen_;
  PhiloxRandom::ResultType numbers_;
  int used_ = PhiloxRandom::kResultElementCount;
};

}  // namespace random
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_LIB_RANDOM_SIMPLE_PHILOX_H_
