// EditLock: lets one process of a user edit a graph at a time.
#ifndef GRADFLOW_TOOLS_EDIT_EDIT_LOCK_H_
#define GRADFLOW_TOOLS_EDIT_EDIT_LOCK_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gradflow/io/file.h"

namespace gradflow::tools {

// A lock on the path of a graph, held until the end of the object or of the process. It is a file
// in $XDG_RUNTIME_DIR/gradflow, or in /tmp/gradflow-UID, which stays when the lock is gone.
class EditLock {
 public:
  // Returns FAILED_PRECONDITION, with the process and the address that it has announced, if another
  // process holds the lock. Of a new graph without a path, and where no such file can be made,
  // locks nothing.
  static absl::StatusOr<EditLock> Acquire(const std::string& path);

  // Tells the address of the editor to those who ask for the lock.
  absl::Status Announce(absl::string_view address) const;

 private:
  explicit EditLock(internal::FileDescriptor file) : file_(std::move(file)) {}

  // Invalid if nothing is locked.
  internal::FileDescriptor file_;
};

}  // namespace gradflow::tools

#endif  // GRADFLOW_TOOLS_EDIT_EDIT_LOCK_H_
