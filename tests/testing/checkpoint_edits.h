// Edits checkpoints into files that gradflow does not write.
#ifndef GRADFLOW_TESTS_TESTING_CHECKPOINT_EDITS_H_
#define GRADFLOW_TESTS_TESTING_CHECKPOINT_EDITS_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace gradflow {
namespace testing {

// Moves a slice along the first dimension, from position `from` to `to`. The slice keeps its
// elements. `path` is the index of a checkpoint or a file of the old format. Fails the test if
// tensor `name` has no slice that begins at `from`.
void MoveSlice(const std::string& path, absl::string_view name, int64_t from, int64_t to);

// Replaces the entries of an index by `entries` entries whose names share a prefix of `key_bytes`
// characters. The file contains the prefix once.
void ExpandKeys(const std::string& path, int64_t key_bytes, int entries);

}  // namespace testing
}  // namespace gradflow

#endif  // GRADFLOW_TESTS_TESTING_CHECKPOINT_EDITS_H_
