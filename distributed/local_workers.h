// RunLocalWorkers: starts a program again as the ranks of a run on this machine.
//
//   int main(int argc, char** argv) {
//     ...
//     if (workers > 1 && !IsLaunched()) return RunLocalWorkers(workers, argv).value_or(1);
//     const absl::StatusOr<LaunchOptions> launch = LaunchOptionsFromEnvironment();
//     ...
#ifndef GRADFLOW_DISTRIBUTED_LOCAL_WORKERS_H_
#define GRADFLOW_DISTRIBUTED_LOCAL_WORKERS_H_

#include "absl/status/statusor.h"

#pragma GCC visibility push(default)
namespace gradflow {

// Returns true if this process is a rank that RunLocalWorkers() or a launcher has started.
bool IsLaunched();

// Starts this program `size` times with the arguments `argv`, which end with a null pointer, and
// with GRADFLOW_RANK, GRADFLOW_SIZE and GRADFLOW_ADDRESS set. Waits for the processes. Returns 0 if
// all of them return 0, otherwise the exit status of the first process that fails, or 128 plus the
// number of the signal that has ended it. The other processes then have some seconds to report the
// lost rank before they are killed. All are killed if this process ends. Call it before this
// process has started threads. Returns INVALID_ARGUMENT unless size is at least 1, and UNAVAILABLE
// if a process cannot be started.
absl::StatusOr<int> RunLocalWorkers(int size, char* const* argv);

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_DISTRIBUTED_LOCAL_WORKERS_H_
