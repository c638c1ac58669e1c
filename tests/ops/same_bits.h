// Checks that a kernel's results have the same bits however it runs.
#ifndef GRADFLOW_TESTS_OPS_SAME_BITS_H_
#define GRADFLOW_TESTS_OPS_SAME_BITS_H_

#include <tbb/global_control.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/ops/simd.h"
#include "tests/ops/op_test_util.h"

namespace gradflow {
namespace testing {

// On 1, 2, 3 and 8 threads, and on every instruction set that this processor has.
inline void ExpectSameBitsEverywhere(OpTester& tester) {
  // For good: oneTBB complains when the limit goes down again.
  static const auto* const allow =
      new tbb::global_control(tbb::global_control::max_allowed_parallelism, 8);
  (void)allow;
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> expected, tester.RunOnThreads(1));
  for (const std::string& target : SimdTargets()) {
    ASSERT_TRUE(SetSimdTarget(target)) << target;
    for (const int threads : {1, 2, 3, 8}) {
      SCOPED_TRACE(absl::StrCat(target, " on ", threads, " threads"));
      const auto outputs = tester.RunOnThreads(threads);
      EXPECT_OK(outputs);
      for (size_t i = 0; outputs.ok() && i < expected.size(); ++i) {
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
