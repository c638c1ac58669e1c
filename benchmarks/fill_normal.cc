#include "benchmarks/fill_normal.h"

#include <random>
#include <vector>

namespace gradflow::benchmarks {

void FillNormal(float* values, int64_t count, uint32_t seed, float mean) {
  // One period of normal numbers, shifted by the seed. It is quick to generate, and its length is
  // not a multiple of common numbers of channels.
  static const std::vector<float>* const period = [] {
    auto* numbers = new std::vector<float>(65537);
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (float& number : *numbers) number = normal(random);
    return numbers;
  }();
  size_t next = seed * 7919 % period->size();
  for (int64_t i = 0; i < count; ++i) {
    values[i] = mean + (*period)[next];
    if (++next == period->size()) next = 0;
  }
}

}  // namespace gradflow::benchmarks
