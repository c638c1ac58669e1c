#include "gradflow/core/status.h"

namespace gradflow::errors {

absl::Status Prefix(absl::string_view prefix, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(prefix, status.message()));
}

}  // namespace gradflow::errors
