// Calls of the C API in random orders, for a test and a fuzzer.
#ifndef GRADFLOW_TESTS_C_RANDOM_CALLS_H_
#define GRADFLOW_TESTS_C_RANDOM_CALLS_H_

#include "absl/strings/string_view.h"

namespace gradflow::capi_test {

// Calls functions of the C API until the bytes, which choose the functions and arguments, are used
// up. Arguments may be null where TensorFlow accepts null, belong to another graph, or have sizes
// that are negative or too large. Deleted handles are never used. Fails the test if an error has no
// text, a failed call returns an object, or the memory of a tensor is not released once.
void CallInRandomOrder(absl::string_view bytes);

}  // namespace gradflow::capi_test

#endif  // GRADFLOW_TESTS_C_RANDOM_CALLS_H_
