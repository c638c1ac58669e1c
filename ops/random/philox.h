// Philox 4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw: "Parallel random
// numbers: as easy as 1, 2, 3" (SC 2011). A key and a 128-bit counter determine four 32-bit
// numbers, so each position of a stream can be computed independently.
#ifndef GRADFLOW_OPS_RANDOM_PHILOX_H_
#define GRADFLOW_OPS_RANDOM_PHILOX_H_

#include <array>
#include <cstdint>

#include "gradflow/ops/random/philox_simd.h"

namespace gradflow {

class Philox {
 public:
  // The four numbers of one counter.
  using Numbers = std::array<uint32_t, 4>;

  Philox() = default;
  // The stream of `key`, starting at the counter with these low and high halves.
  Philox(uint64_t key, uint64_t counter_low, uint64_t counter_high)
      : key_(key), low_(counter_low), high_(counter_high) {}

  // Returns the generator that is `counters` counters ahead.
  Philox Ahead(uint64_t counters) const {
    const uint64_t low = low_ + counters;
    return Philox(key_, low, high_ + (low < counters));
  }

  // Stores the numbers of the next `n` counters and advances past them.
  void Next(int64_t n, Numbers* numbers) {
    static_assert(sizeof(Numbers) == 4 * sizeof(uint32_t));
    PhiloxNumbers(key_, low_, high_, n, numbers->data());
    *this = Ahead(n);
  }
  // Returns the numbers of the current counter and advances to the next counter.
  Numbers Next() {
    Numbers x = {Low(low_), High(low_), Low(high_), High(high_)};
    uint32_t key0 = Low(key_);
    uint32_t key1 = High(key_);
    for (int round = 0; round < 10; ++round) {
      const uint64_t product0 = uint64_t{0xD2511F53} * x[0];
      const uint64_t product1 = uint64_t{0xCD9E8D57} * x[2];
      x = {High(product1) ^ x[1] ^ key0, Low(product1), High(product0) ^ x[3] ^ key1,
           Low(product0)};
      key0 += 0x9E3779B9;
      key1 += 0xBB67AE85;
    }
    low_ += 1;
    high_ += low_ == 0;
    return x;
  }

 private:
  static uint32_t Low(uint64_t x) { return static_cast<uint32_t>(x); }
  static uint32_t High(uint64_t x) { return static_cast<uint32_t>(x >> 32); }

  uint64_t key_ = 0;
  uint64_t low_ = 0;
  uint64_t high_ = 0;
};

// Reads a stream one number at a time.
class PhiloxReader {
 public:
  explicit PhiloxReader(const Philox& stream) : stream_(stream) {}

  uint32_t Next() {
    if (position_ == 4) {
      numbers_ = stream_.Next();
      position_ = 0;
    }
    return numbers_[position_++];
  }

 private:
  Philox stream_;
  Philox::Numbers numbers_{};
  int position_ = 4;
};

}  // namespace gradflow

#endif  // GRADFLOW_OPS_RANDOM_PHILOX_H_
