#include <ostream>

#include "absl/status/status.h"
#include "tools/commands.h"

namespace gradflow::tools {

absl::Status EditCommand(const EditFlags&, std::ostream&) {
  return absl::FailedPreconditionError(
      "this build has no editor; configure it with -DGRADFLOW_BUILD_EDITOR=ON");
}

}  // namespace gradflow::tools
