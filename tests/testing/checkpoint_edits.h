// Edits checkpoints into files that no writer of gradflow makes.
#ifndef GRADFLOW_TESTS_TESTING_CHECKPOINT_EDITS_H_
#define GRADFLOW_TESTS_TESTING_CHECKPOINT_EDITS_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace gradflow {
namespace testing {

// Changes the first position of a slice in the first dimension. The slice keeps its elements.
// `path` is the index of a checkpoint, or a file of the old format. Fails the test if there is no
// slice of tensor `name` that begins at `from`.
void MoveSlice(const std::string& path, absl::string_view name, int64_t from, int64_t to);

// Replaces the entries of an index by `entries` ones whose names share a beginning of `key_bytes`
// characters, which the file has once.
void ExpandKeys(const std::string& path, int64_t key_bytes, int entries);

}  // namespace testing
}  // namespace gradflow

#endif  // GRADFLOW_TESTS_TESTING_CHECKPOINT_EDITS_H_
