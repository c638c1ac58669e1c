// Replaces gloo_collectives.cc in builds without Gloo.
#include "gradflow/core/status.h"
#include "gradflow/distributed/gloo_collectives.h"
#include "gradflow/distributed/in_process.h"

namespace gradflow {

absl::StatusOr<std::shared_ptr<Collectives>> GlooCollectives(const LaunchOptions& options) {
  if (options.size == 1) return InProcessCollectives(1)[0];
  return errors::Unimplemented("this build has no Gloo (Debian: libgloo-dev)");
}

}  // namespace gradflow
