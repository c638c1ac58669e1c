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

// A lock on the path of a graph, held until the end of the object or of the process. The object
// locks a file in $XDG_RUNTIME_DIR/gradflow, or in /tmp/gradflow-UID without that variable. The
// file stays when the lock is released.
class EditLock {
 public:
  // Returns FAILED_PRECONDITION if another process holds the lock. The error has the process and
  // its announced address. Returns an object without a lock for a new graph without a path, or if
  // the file of the lock cannot be made.
  static absl::StatusOr<EditLock> Acquire(const std::string& path);

  // Stores the address of the editor, for processes that fail to acquire the lock.
  absl::Status Announce(absl::string_view address) const;

 private:
  explicit EditLock(internal::FileDescriptor file) : file_(std::move(file)) {}

  // Invalid if the object holds no lock.
  internal::FileDescriptor file_;
};

}  // namespace gradflow::tools

#endif  // GRADFLOW_TOOLS_EDIT_EDIT_LOCK_H_
