// libFuzzer's entry points for GRADFLOW_FUZZ_TARGET, a target of tests/testing/fuzz_targets.h.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "tests/testing/fuzz_targets.h"

namespace {

const gradflow::testing::FuzzTarget& Target() {
  static const auto* const target = [] {
    // A failed expectation throws, so that libFuzzer stops and keeps the input.
    GTEST_FLAG_SET(throw_on_failure, true);
    return gradflow::testing::FindFuzzTarget(GRADFLOW_FUZZ_TARGET);
  }();
  return *target;
}

}  // namespace

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Target().run(absl::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int seed) {
  gradflow::testing::MutationRandom random(seed);
  if (random.OneIn(8)) return LLVMFuzzerMutate(data, size, max_size);
  std::string bytes(reinterpret_cast<const char*>(data), size);
  if (!Target().mutate(&random, &bytes) || bytes.size() > max_size) {
    return LLVMFuzzerMutate(data, size, max_size);
  }
  std::memcpy(data, bytes.data(), bytes.size());
  return bytes.size();
}
