// HeapMeter: the memory that this process takes from malloc, for tests of what code allocates.
//
// A program that uses it has its own malloc, which counts. With sanitizers, their hooks count.
#ifndef GRADFLOW_TESTS_TESTING_HEAP_METER_H_
#define GRADFLOW_TESTS_TESTING_HEAP_METER_H_

#include <cstdint>

namespace gradflow {
namespace testing {

// Measures all threads. Only one meter may exist at a time.
class HeapMeter {
 public:
  // Begins to measure.
  HeapMeter();
  HeapMeter(const HeapMeter&) = delete;
  HeapMeter& operator=(const HeapMeter&) = delete;

  // Returns the most bytes that were allocated at a time since the beginning, less those that were
  // allocated then.
  int64_t peak() const;

 private:
  const int64_t start_;
};

}  // namespace testing
}  // namespace gradflow

#endif  // GRADFLOW_TESTS_TESTING_HEAP_METER_H_
