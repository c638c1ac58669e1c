// What the fuzzers call with bytes that may be anything: one function for each kind of input that
// comes from strangers. An ordinary test replays the files of tests/data/corpus/<name>/ with them.
#ifndef GRADFLOW_TESTS_TESTING_FUZZ_TARGETS_H_
#define GRADFLOW_TESTS_TESTING_FUZZ_TARGETS_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tests/testing/mutate.h"

namespace gradflow::testing {

struct FuzzTarget {
  // Also that of the folder of its corpus.
  absl::string_view name;
  // Fails the test (which ends a fuzzer) unless all is as documented.
  void (*run)(absl::string_view bytes);
  // A mutation that knows the structure of the bytes. False if they do not have it.
  bool (*mutate)(MutationRandom* random, std::string* bytes);
};

//   graph_def    a binary GraphDef: read, imported, run
//   tensor_proto a binary TensorProto: made a tensor and back
//   text_format  a GraphDef as text, and values of attributes
//   npy          the bytes of a .npy file
//   op_spec      lines of an op definition: "i x: T", "o y: T", "a T: type", "d documentation"
absl::Span<const FuzzTarget> FuzzTargets();

// Null if there is none of this name.
const FuzzTarget* FindFuzzTarget(absl::string_view name);

}  // namespace gradflow::testing

#endif  // GRADFLOW_TESTS_TESTING_FUZZ_TARGETS_H_
