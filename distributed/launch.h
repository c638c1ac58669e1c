// LaunchOptions: which rank this process is, how many ranks there are, and where they meet.
//
// Launchers tell it by environment variables (docs/distributed.md):
//
//   own variables    GRADFLOW_RANK, GRADFLOW_SIZE, GRADFLOW_ADDRESS
//   torchrun         RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT
//   srun             SLURM_PROCID, SLURM_NTASKS, SLURM_STEP_NODELIST, SLURM_JOB_ID
//   mpirun           OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE, or PMI_RANK, PMI_SIZE
//   Kubernetes       JOB_COMPLETION_INDEX, of an Indexed Job
#ifndef GRADFLOW_DISTRIBUTED_LAUNCH_H_
#define GRADFLOW_DISTRIBUTED_LAUNCH_H_

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

#pragma GCC visibility push(default)
namespace gradflow {

// How the processes of a run find each other.
struct LaunchOptions {
  // This process, from 0 to size - 1, and the number of processes.
  int rank = 0;
  int size = 1;
  // Where rank 0 listens and the other ranks connect: "host:port", or "file:PATH" for a file that
  // rank 0 writes and all ranks can read. The file must be a new one for each run.
  std::string address;
  // The address of this machine for connections between ranks. The default is the local address of
  // the connection to rank 0.
  std::string host;
  // The time for all ranks to connect.
  std::chrono::milliseconds connect_timeout = std::chrono::minutes(1);
  // The timeout of calls that state none.
  std::chrono::milliseconds timeout = std::chrono::minutes(5);
};

// Returns the value of an environment variable, or nothing if it is not set.
using ReadVariable = std::function<std::optional<std::string>(const char* name)>;

// Reads the options from the process's environment, or from `read`. The address may come from
// another source than rank and size: GRADFLOW_ADDRESS, or MASTER_ADDR and MASTER_PORT, are used if
// they are set. Without any variable of a launcher, the size is 1. Returns INVALID_ARGUMENT
// if a variable is not valid, or if several ranks have no address.
absl::StatusOr<LaunchOptions> LaunchOptionsFromEnvironment();
absl::StatusOr<LaunchOptions> LaunchOptionsFromEnvironment(const ReadVariable& read);

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_DISTRIBUTED_LAUNCH_H_
