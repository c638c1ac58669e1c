// libFuzzer's entry point for calls of the C API in random orders.
#include <gtest/gtest.h>

#include <cstdint>

#include "tests/c/random_calls.h"

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  // A failed expectation throws, so that libFuzzer stops and keeps the input.
  GTEST_FLAG_SET(throw_on_failure, true);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  gradflow::capi_test::CallInRandomOrder(
      absl::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
