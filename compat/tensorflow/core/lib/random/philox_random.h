// PhiloxRandom: the Philox 4x32-10 generator.
#ifndef GRADFLOW_COMPAT_CORE_LIB_RANDOM_PHILOX_RANDOM_H_
#define GRADFLOW_COMPAT_CORE_LIB_RANDOM_PHILOX_RANDOM_H_

#include <array>

#include "tensorflow/core/platform/types.h"

namespace tensorflow {
namespace random {

// N values of a type.
template <typename T, int N>
class Array : public std::array<T, N> {
 public:
  static constexpr int kElementCount = N;
  Array() : std::array<T, N>{} {}
};

// Computes four 32-bit numbers from a key and a counter, and advances the counter.
class PhiloxRandom {
 public:
  using ResultType = Array<uint32, 4>;
  using ResultElementType = uint32;
  using Key = Array<uint32, 2>;
  static constexpr int kResultElementCount = 4;
  static constexpr int kElementCost = 10;

  PhiloxRandom() = default;
  explicit PhiloxRandom(uint64 seed) { SetKey(seed); }
  PhiloxRandom(uint64 seed_lo, uint64 seed_hi) {
    SetKey(seed_lo);
    counter_[2] = static_cast<uint32>(seed_hi);
    counter_[3] = static_cast<uint32>(seed_hi >> 32);
  }
  PhiloxRandom(ResultType counter, Key key) : counter_(counter), key_(key) {}

  const ResultType& counter() const { return counter_; }
  const Key& key() const { return key_; }

  // Advances the counter by `count`.
  void Skip(uint64 count) {
    uint64 carry = count;
    for (int i = 0; i < 4; ++i) {
      // `carry` is left to be added: first the two words of `count`, then the upper word and the
      // carry of the sum.
      const uint64 sum = uint64{counter_[i]} + (carry & 0xffffffff);
      counter_[i] = static_cast<uint32>(sum);
      carry = (carry >> 32) + (sum >> 32);
    }
  }
  ResultType operator()() {
    ResultType x = counter_;
    Key key = key_;
    for (int round = 0; round < 10; ++round) {
      const uint64 product0 = uint64{0xD2511F53} * x[0];
      const uint64 product1 = uint64{0xCD9E8D57} * x[2];
      const uint32 x0 = static_cast<uint32>(product1 >> 32) ^ x[1] ^ key[0];
      const uint32 x2 = static_cast<uint32>(product0 >> 32) ^ x[3] ^ key[1];
      x[0] = x0;
      x[1] = static_cast<uint32>(product1);
      x[2] = x2;
      x[3] = static_cast<uint32>(product0);
      key[0] += 0x9E3779B9;
      key[1] += 0xBB67AE85;
    }
    Skip(1);
    return x;
  }

 private:
  void SetKey(uint64 seed) {
    key_[0] = static_cast<uint32>(seed);
    key_[1] = static_cast<uint32>(seed >> 32);
  }

  ResultType counter_;
  Key key_;
};

}  // namespace random
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_LIB_RANDOM_PHILOX_RANDOM_H_
