// Reference implementation of the fake-quant ops for one number, in float with each operation
// rounded once, and test inputs.
#ifndef GRADFLOW_TESTS_OPS_QUANT_FAKE_QUANT_REFERENCE_H_
#define GRADFLOW_TESTS_OPS_QUANT_FAKE_QUANT_REFERENCE_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace testing {

struct QuantRange {
  QuantRange(float min, float max, int num_bits, bool narrow_range) {
    const float q0 = narrow_range ? 1 : 0;
    const float q1 = static_cast<float>(std::pow(2.0, num_bits) - 1);
    is_zero = min == 0 && max == 0;
    scale = (max - min) / (q1 - q0);
    const float zero_point = q0 - min / scale;
    const float nudged = zero_point < q0   ? q0
                         : zero_point > q1 ? q1
                                           : static_cast<float>(std::round(zero_point));
    nudged_min = (q0 - nudged) * scale;
    nudged_max = (q1 - nudged) * scale;
    inv = (q1 - q0) / (max - min);
    zero = std::floor(-nudged_min * inv + 0.5f);
  }

  float Forward(float x, bool divide) const {
    if (is_zero) return 0;
    const float shift = std::max(std::min(x, nudged_max), nudged_min) - nudged_min;
    const float steps = divide ? shift / scale : shift * inv;
    return std::floor(steps - zero + 0.5f) * scale;
  }
  bool Inside(float x) const { return nudged_min <= x && x <= nudged_max; }
  float Backprop(float g, float x) const { return is_zero ? g : g * (Inside(x) ? 1.0f : 0.0f); }
  bool Below(float x) const { return !is_zero && x < nudged_min; }
  bool Above(float x) const { return !is_zero && x > nudged_max; }

  bool is_zero;
  float scale;
  float nudged_min;
  float nudged_max;
  float inv;
  float zero;
};

// Returns numbers around the critical points of a range (its ends, zero and ties), and special
// floats.
inline std::vector<float> InterestingInputs(const QuantRange& range, int levels = 600) {
  std::vector<float> values = {0.0f,
                               -0.0f,
                               1.0f,
                               -1.0f,
                               kNan,
                               -kNan,
                               kInf,
                               -kInf,
                               std::numeric_limits<float>::max(),
                               std::numeric_limits<float>::lowest(),
                               std::numeric_limits<float>::min(),
                               std::numeric_limits<float>::denorm_min(),
                               -std::numeric_limits<float>::denorm_min(),
                               range.nudged_min,
                               range.nudged_max};
  for (int level = -3; level < levels; ++level) {
    values.push_back(range.nudged_min + (level + 0.5f) * range.scale);
    values.push_back(range.nudged_min + level * range.scale);
    values.push_back((level + 0.5f) * range.scale);
  }
  const size_t size = values.size();
  for (size_t i = 0; i < size; ++i) {
    values.push_back(std::nextafter(values[i], kInf));
    values.push_back(std::nextafter(values[i], -kInf));
  }
  return values;
}

struct MinMax {
  float min;
  float max;
};
// Return ranges that are valid as attributes, and further ranges that are valid as inputs.
inline std::vector<MinMax> OrderedRanges() {
  return {{-1, 1},         {-6, 6},         {12, 123},   {-123, -12},   {0, 1},
          {-1, 0},         {-0.1f, 0.37f},  {0, 255},    {-10, 53.75},  {1e-30f, 1e-29f},
          {-1e20f, 3e20f}, {-3e38f, 3e38f}, {0, 1e-44f}, {-1e-3f, 1e3f}};
}
inline std::vector<MinMax> AllRanges() {
  std::vector<MinMax> ranges = OrderedRanges();
  for (const MinMax& more : std::vector<MinMax>{
           {0, 0}, {-0.0f, 0}, {1, -1}, {6, -6}, {123, 12}, {2, 2}, {-2, -2}, {0, -1}, {1, 0}}) {
    ranges.push_back(more);
  }
  return ranges;
}

}  // namespace testing
}  // namespace gradflow

#endif  // GRADFLOW_TESTS_OPS_QUANT_FAKE_QUANT_REFERENCE_H_
