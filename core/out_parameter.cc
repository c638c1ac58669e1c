#include "gradflow/core/out_parameter.h"

#include <cstdio>
#include <cstdlib>

#include "gradflow/core/status.h"

namespace gradflow::internal {

absl::Status NullOut(const char* function, const char* parameter) {
  return errors::InvalidArgument(function, ": ", parameter, " must not be null");
}

void EndForNullOut(const char* function, const char* parameter) {
  std::fprintf(stderr, "gradflow: %s: %s must not be null\n", function, parameter);
  std::abort();
}

}  // namespace gradflow::internal
