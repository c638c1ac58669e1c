// Paths that match a pattern. Internal.
#ifndef GRADFLOW_IO_FILE_PATTERN_H_
#define GRADFLOW_IO_FILE_PATTERN_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gradflow/io/file.h"
#include "gradflow/io/file_reservation.h"

namespace gradflow::internal {

// Appends the existing paths that match `pattern`, in no particular order. In each part between
// slashes, `*` stands for any number of characters, `?` for one character, `[a-z]` for a character
// of a set, and a backslash makes the next character literal. Folders that do not exist or cannot
// be read match nothing. Ends early if should_stop() returns true. Adds the memory of the paths to
// *reservation. Returns RESOURCE_EXHAUSTED if the memory of paths and search exceeds the limit, and
// PERMISSION_DENIED if a folder or a path on the way may not be read.
absl::Status MatchingPaths(absl::string_view pattern, absl::FunctionRef<bool()> should_stop,
                           FileReservation* reservation, std::vector<std::string>* paths,
                           const FileAccess& access = AllFiles());

}  // namespace gradflow::internal

#endif  // GRADFLOW_IO_FILE_PATTERN_H_
