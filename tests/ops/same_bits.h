// Checks that a kernel's results have the same bits however it runs.
#ifndef GRADFLOW_TESTS_OPS_SAME_BITS_H_
#define GRADFLOW_TESTS_OPS_SAME_BITS_H_

#include <tbb/global_control.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/ops/simd.h"
#include "tests/ops/op_test_util.h"

namespace gradflow {
namespace testing {

// As a tensor of float or bfloat16, rounded.
inline Tensor DoublesAsTensor(DataType dtype, const std::vector<double>& values,
                              const TensorShape& shape) {
  Tensor tensor(dtype, shape);
  for (size_t i = 0; i < values.size(); ++i) {
    const float value = static_cast<float>(values[i]);
    if (dtype == DT_BFLOAT16) {
      tensor.flat<bfloat16>()(i) = bfloat16(value);
    } else {
      tensor.flat<float>()(i) = value;
    }
  }
  return tensor;
}

// Floats whose sum is a matter of the order in which they are added, even in double: of each group
// of elements, the first half are numbers of very different sizes, and the second half cancels
// them. Of ordinary numbers, other orders would nearly always round to the same float. group_of(i)
// is the group of element i. For float and bfloat16: half does not reach that far.
template <typename GroupOf>
Tensor CancellingTensor(DataType dtype, const TensorShape& shape, int64_t groups,
                        const GroupOf& group_of, uint32_t seed) {
  std::mt19937 random(seed);
  // Of each group, the first half, and how many of these have been cancelled.
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
  return DoublesAsTensor(dtype, values, shape);
}

// On every instruction set that this processor has, and on 1, 2, 3 and 8 threads.
inline void ExpectSameBitsEverywhere(OpTester& tester) {
  // For good: oneTBB complains when the limit goes down again.
  static const auto* const allow =
      new tbb::global_control(tbb::global_control::max_allowed_parallelism, 8);
  (void)allow;
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> expected, tester.RunOnThreads(1));
  for (const std::string& target : SimdTargets()) {
    ASSERT_TRUE(SetSimdTarget(target)) << target;
    const bool best = target == SimdTargets().front();
    for (const int threads : best ? std::vector<int>{1, 2, 3, 8} : std::vector<int>{1, 3}) {
      SCOPED_TRACE(absl::StrCat(target, " on ", threads, " threads"));
      const auto outputs = tester.RunOnThreads(threads);
      EXPECT_OK(outputs);
      for (size_t i = 0; outputs.ok() && i < expected.size(); ++i) {
        if ((*outputs)[i].tensor_data() == expected[i].tensor_data()) continue;
        SCOPED_TRACE(absl::StrCat("output ", i));
        ExpectTensorEqual((*outputs)[i], expected[i]);
      }
    }
  }
  ASSERT_TRUE(SetSimdTarget(""));
}

}  // namespace testing
}  // namespace gradflow

#endif  // GRADFLOW_TESTS_OPS_SAME_BITS_H_
