// Replaces gloo_collectives.cc in builds without Gloo.
#include "gradflow/core/status.h"
#include "gradflow/distributed/gloo_collectives.h"

namespace gradflow {

absl::StatusOr<std::shared_ptr<Collectives>> GlooCollectives(const LaunchOptions&) {
  return errors::Unimplemented("this build has no Gloo (Debian: libgloo-dev)");
}

}  // namespace gradflow
