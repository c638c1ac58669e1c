#include "gradflow/ops/common/hash64.h"

#include <cstddef>

namespace gradflow {

uint64_t Hash64(absl::string_view bytes) {
  constexpr uint64_t kSeed = 0xDECAFCAFFE;
  constexpr uint64_t kMultiplier = 0xc6a4a7935bd1e995;
  constexpr int kShift = 47;
  uint64_t hash = kSeed ^ (bytes.size() * kMultiplier);
  const auto mix = [](uint64_t x) { return x ^ (x >> kShift); };
  size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    uint64_t word = 0;
    for (int b = 7; b >= 0; --b) word = word << 8 | static_cast<uint8_t>(bytes[at + b]);
    hash = (hash ^ mix(word * kMultiplier) * kMultiplier) * kMultiplier;
  }
  if (at < bytes.size()) {
    uint64_t rest = 0;
    for (size_t b = bytes.size(); b > at; --b)
      rest = rest << 8 | static_cast<uint8_t>(bytes[b - 1]);
    hash = (hash ^ rest) * kMultiplier;
  }
  return mix(mix(hash) * kMultiplier);
}

}  // namespace gradflow
