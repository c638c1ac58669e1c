// DeterministicOpsScope: no effect, because all ops of gradflow are deterministic.
#ifndef GRADFLOW_COMPAT_XLA_TSL_UTIL_DETERMINISM_TEST_UTIL_H_
#define GRADFLOW_COMPAT_XLA_TSL_UTIL_DETERMINISM_TEST_UTIL_H_

namespace tsl {
namespace test {

class DeterministicOpsScope {
 public:
  DeterministicOpsScope() {}   // NOLINT: a variable of this type is used
  ~DeterministicOpsScope() {}  // NOLINT
};

}  // namespace test
}  // namespace tsl

#endif  // GRADFLOW_COMPAT_XLA_TSL_UTIL_DETERMINISM_TEST_UTIL_H_
