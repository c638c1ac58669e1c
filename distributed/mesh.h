// Mesh: Gloo's connections between the ranks of a group, and the exchanges of tensors over them.
//
// All ranks of a mesh run the same exchanges in the same order, on one thread each. The exchanges
// post receives and sends on Gloo's unbound buffers and wait for them. Elements are merged in the
// order of the ranks: rank i merges the i-th chunk of all ranks and sends the result to the others.
// Each rank sends and receives the same number of bytes as with a ring.
//
// Sizes must agree on all ranks: Gloo ends the process if a rank receives more than it expects. The
// hub has compared the headers of the calls before.
#ifndef GRADFLOW_DISTRIBUTED_MESH_H_
#define GRADFLOW_DISTRIBUTED_MESH_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gradflow/core/collectives.h"

namespace gradflow::distributed {

// Values that ranks exchange to find each other.
class RendezvousValues {
 public:
  virtual ~RendezvousValues() = default;
  virtual absl::Status Set(const std::string& key, const std::string& value) = 0;
  // Waits for a value until `deadline`.
  virtual absl::StatusOr<std::string> Get(const std::string& key,
                                          std::chrono::steady_clock::time_point deadline) = 0;
};

class Mesh {
 public:
  using Time = std::chrono::steady_clock::time_point;

  virtual ~Mesh() = default;
  // Connects rank `index` of `size` ranks. `host` is this machine's address; `prefix` begins the
  // keys of the mesh's values. Gloo's threads block the signals that this thread blocks. `values`
  // is borrowed. Calls publish() with the mesh before waiting, so that Abort() can end the wait.
  static absl::StatusOr<std::shared_ptr<Mesh>> Connect(
      const std::string& prefix, int index, int size, const std::string& host,
      RendezvousValues* values, Time deadline,
      const std::function<void(const std::shared_ptr<Mesh>&)>& publish);

  // Runs the calls of a bundle: several calls of kReduce, or one call of any type. senders[i] is
  // the sender of calls[i] if it is a kBroadcast. After an error the mesh cannot be used.
  virtual absl::Status Run(const std::vector<CollectiveCall*>& calls,
                           const std::vector<int>& senders, Time deadline) = 0;
  // Ends Connect() and Run() with CANCELLED. May be called on any thread.
  virtual void Abort() = 0;
};

}  // namespace gradflow::distributed

#endif  // GRADFLOW_DISTRIBUTED_MESH_H_
