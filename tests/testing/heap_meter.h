// HeapMeter: measures the memory that this process takes from malloc, for tests of allocations.
//
// This library replaces malloc by a function that counts bytes. With sanitizers, it keeps their
// malloc and counts in hooks.
#ifndef GRADFLOW_TESTS_TESTING_HEAP_METER_H_
#define GRADFLOW_TESTS_TESTING_HEAP_METER_H_

#include <cstdint>

namespace gradflow {
namespace testing {

// Measures all threads. Only one meter may exist at a time.
class HeapMeter {
 public:
  // Starts to measure.
  HeapMeter();
  HeapMeter(const HeapMeter&) = delete;
  HeapMeter& operator=(const HeapMeter&) = delete;

  // Returns the largest number of bytes that were allocated at once, minus the bytes that were
  // allocated at the start.
  int64_t peak() const;

 private:
  const int64_t start_;
};

}  // namespace testing
}  // namespace gradflow

#endif  // GRADFLOW_TESTS_TESTING_HEAP_METER_H_
