// GlooCollectives: ranks that are processes, on one or several machines, connected by Gloo over
// TCP.
//
//   GRADFLOW_ASSIGN_OR_RETURN(const LaunchOptions launch, LaunchOptionsFromEnvironment());
//   SessionOptions options;
//   GRADFLOW_ASSIGN_OR_RETURN(options.collectives, GlooCollectives(launch));
//
// Rank 0 coordinates the calls (docs/distributed.md). The connections are neither encrypted nor
// authenticated: use them in networks whose machines trust each other.
#ifndef GRADFLOW_DISTRIBUTED_GLOO_COLLECTIVES_H_
#define GRADFLOW_DISTRIBUTED_GLOO_COLLECTIVES_H_

#include <memory>

#include "absl/status/statusor.h"
#include "gradflow/core/collectives.h"
#include "gradflow/distributed/launch.h"

#pragma GCC visibility push(default)
namespace gradflow {

// Connects this process to the other ranks, and waits until all of them are connected. The result
// owns three threads, and a fourth on rank 0; they block all signals, so that a lost rank does not
// end this process by SIGPIPE. Destroying the result means that this rank is lost for the others;
// if it is rank 0, the calls of all ranks end with UNAVAILABLE. Errors:
//
//   INVALID_ARGUMENT   an option is not valid, or the ranks disagree about their number
//   DEADLINE_EXCEEDED  not all ranks have connected within the connect timeout
//   UNAVAILABLE        the address cannot be used
//   UNIMPLEMENTED      this build has no Gloo, and there are several ranks
absl::StatusOr<std::shared_ptr<Collectives>> GlooCollectives(const LaunchOptions& options);

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_DISTRIBUTED_GLOO_COLLECTIVES_H_
