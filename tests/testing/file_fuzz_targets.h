// Fuzz targets for readers of files; see fuzz_targets.h.
#ifndef GRADFLOW_TESTS_TESTING_FILE_FUZZ_TARGETS_H_
#define GRADFLOW_TESTS_TESTING_FILE_FUZZ_TARGETS_H_

#include <string>

#include "absl/strings/string_view.h"
#include "tests/testing/mutate.h"

namespace gradflow::testing {

// A checkpoint with one data file: the length of the index in four bytes, the index, and the data.
void RunCheckpoint(absl::string_view bytes);
bool MutateCheckpoint(MutationRandom* random, std::string* bytes);

// A checkpoint in the old format.
void RunOldCheckpoint(absl::string_view bytes);
bool MutateOldCheckpoint(MutationRandom* random, std::string* bytes);

// An IDX file, plain or compressed.
void RunIdx(absl::string_view bytes);
bool MutateIdx(MutationRandom* random, std::string* bytes);

// An image file of any format.
void RunImage(absl::string_view bytes);
bool MutateImage(MutationRandom* random, std::string* bytes);

}  // namespace gradflow::testing

#endif  // GRADFLOW_TESTS_TESTING_FILE_FUZZ_TARGETS_H_
