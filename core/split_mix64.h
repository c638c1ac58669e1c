// SplitMix64: random numbers that are the same on all systems. Not for security.
#ifndef GRADFLOW_CORE_SPLIT_MIX64_H_
#define GRADFLOW_CORE_SPLIT_MIX64_H_

#include <cstdint>

namespace gradflow {

// The SplitMix64 generator. Its numbers must not change, because checkpoints of data loaders hold
// positions in orders that it made.
class SplitMix64 {
 public:
  explicit SplitMix64(uint64_t state) : state_(state) {}
  // Returns the next 64 random bits.
  uint64_t Next() { return Mix(state_ += 0x9e3779b97f4a7c15u); }
  // Returns a uniformly distributed number less than `bound`. REQUIRES: bound > 0
  uint64_t Below(uint64_t bound) {
    // Rejects the lowest numbers: accepting them would make some remainders more frequent.
    const uint64_t first = (0 - bound) % bound;
    for (;;) {
      if (const uint64_t number = Next(); number >= first) return number % bound;
    }
  }
  // Returns a number in [0, 1).
  double Unit() { return static_cast<double>(Next() >> 11) * 0x1p-53; }
  // Returns a hash of `word`.
  static uint64_t Mix(uint64_t word) {
    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9u;
    word = (word ^ (word >> 27)) * 0x94d049bb133111ebu;
    return word ^ (word >> 31);
  }

 private:
  uint64_t state_;
};

}  // namespace gradflow

#endif  // GRADFLOW_CORE_SPLIT_MIX64_H_
