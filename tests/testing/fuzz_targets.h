// Fuzz targets: a function for each kind of untrusted input. An ordinary test replays the files of
// tests/data/corpus/<name>/.
#ifndef GRADFLOW_TESTS_TESTING_FUZZ_TARGETS_H_
#define GRADFLOW_TESTS_TESTING_FUZZ_TARGETS_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tests/testing/mutate.h"

namespace gradflow::testing {

struct FuzzTarget {
  // Also the name of the corpus folder.
  absl::string_view name;
  // Processes arbitrary bytes. Fails the test (which stops a fuzzer) if a documented property is
  // violated.
  void (*run)(absl::string_view bytes);
  // A structure-aware mutation. Returns false if the bytes do not have the structure.
  bool (*mutate)(MutationRandom* random, std::string* bytes);
};

// Returns all targets:
//
//   graph_def    a binary GraphDef: read, imported, run
//   tensor_proto a binary TensorProto: converted to a tensor and back
//   text_format  a text GraphDef, and attribute values
//   npy          the bytes of a .npy file
//   op_spec      lines of an op definition: "i x: T", "o y: T", "a T: type", "d documentation"
//   checkpoint, old_checkpoint, idx, image
//                the files that file_fuzz_targets.h describes
//   http_head    a request to the server of http_fuzz_target.h
absl::Span<const FuzzTarget> FuzzTargets();

// Returns null if there is no target of that name.
const FuzzTarget* FindFuzzTarget(absl::string_view name);

}  // namespace gradflow::testing

#endif  // GRADFLOW_TESTS_TESTING_FUZZ_TARGETS_H_
