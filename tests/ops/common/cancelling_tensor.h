// Inputs whose sum depends on the order of addition. Tests use them to check that results have the
// same bits.
#ifndef GRADFLOW_TESTS_OPS_COMMON_CANCELLING_TENSOR_H_
#define GRADFLOW_TESTS_OPS_COMMON_CANCELLING_TENSOR_H_

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "gradflow/core/tensor.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {

// Returns floats whose sum depends on the order of addition, even in double. In each group of
// elements, the first half has numbers of very different magnitude, and the second half cancels
// them. Sums of ordinary numbers nearly always round to the same float in any order. group_of(i) is
// the group of element i. Supports float and bfloat16; the range of half is too small.
template <typename GroupOf>
Tensor CancellingTensor(DataType dtype, const TensorShape& shape, int64_t groups,
                        const GroupOf& group_of, uint32_t seed) {
  std::mt19937 random(seed);
  // The first half of each group, and the number of elements that are already cancelled.
  std::vector<std::vector<float>> first_half(groups);
  std::vector<int64_t> cancelled(groups);
  const int64_t half = shape.num_elements() / groups / 2;
  std::vector<double> values;
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    const int64_t group = group_of(i);
    if (static_cast<int64_t>(first_half[group].size()) < half) {
      const float value = std::ldexp(1 + random() / 4294967296.0f, static_cast<int>(random() % 60));
      first_half[group].push_back(static_cast<float>(bfloat16(value)));
      values.push_back(first_half[group].back());
    } else if (cancelled[group] < half) {
      values.push_back(-first_half[group][cancelled[group]++]);
    } else {
      values.push_back(1);
    }
  }
  return FromDoubles(dtype, shape, values);
}

}  // namespace testing
}  // namespace gradflow

#endif  // GRADFLOW_TESTS_OPS_COMMON_CANCELLING_TENSOR_H_
