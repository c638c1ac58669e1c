// InProcessCollectives: ranks within one program, such as several sessions of a test.
//
//   const std::vector<std::shared_ptr<Collectives>> ranks = InProcessCollectives(4);
//   for (int rank = 0; rank < 4; ++rank) {
//     SessionOptions options;
//     options.collectives = ranks[rank];
//     ...
//   }
//
// It is the reference for other implementations: it copies tensors, and computes on the thread of
// the last rank that arrives.
#ifndef GRADFLOW_DISTRIBUTED_IN_PROCESS_H_
#define GRADFLOW_DISTRIBUTED_IN_PROCESS_H_

#include <chrono>
#include <memory>
#include <vector>

#include "gradflow/core/collectives.h"

#pragma GCC visibility push(default)
namespace gradflow {

// Options of InProcessCollectives().
struct InProcessOptions {
  // The timeout of calls that state none.
  std::chrono::milliseconds timeout = std::chrono::minutes(5);
};

// Makes the objects of `size` ranks; rank i is element i. A rank is lost when its object is
// destroyed. The objects share a thread, which waits for timeouts. REQUIRES: size >= 1
std::vector<std::shared_ptr<Collectives>> InProcessCollectives(
    int size, const InProcessOptions& options = {});

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_DISTRIBUTED_IN_PROCESS_H_
