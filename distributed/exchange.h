// The exchange of tensors between calls in one process, and checks of calls.
#ifndef GRADFLOW_DISTRIBUTED_EXCHANGE_H_
#define GRADFLOW_DISTRIBUTED_EXCHANGE_H_

#include <vector>

#include "absl/status/status.h"
#include "gradflow/core/collectives.h"

namespace gradflow::distributed {

// Returns INVALID_ARGUMENT unless the group has 2 to `size` ranks, and the tensors have types and
// sizes that fit together.
absl::Status CheckCall(const CollectiveCall& call, int size);

// Computes the outputs of all calls of a round, in the order of the group.
// REQUIRES: the headers of the calls agree, and CheckCall() is OK for each
void Exchange(const std::vector<CollectiveCall*>& calls);

}  // namespace gradflow::distributed

#endif  // GRADFLOW_DISTRIBUTED_EXCHANGE_H_
