// ControlHub: the process that coordinates the ranks of a run. Rank 0 owns it.
//
// Every rank has a connection to the hub, and sends the header of each of its calls. The hub
// matches and compares them (round_table.h). It then tells the ranks of a round to exchange their
// tensors, in one order for all ranks, so an exchange needs no matching. Rounds that
// start at the same time between the same ranks are exchanged together, as a bundle. A rank reports
// the end of an exchange, and the calls end when all ranks have reported, so that either all ranks
// get the result or all ranks get an error.
//
// If an exchange fails or takes too long, or a rank is lost, the hub fails all rounds that use the
// same connections, and tells the ranks to close these connections. The next round makes new ones.
// The hub also stores the addresses of the ranks (kSet, kGet).
//
// Threads: one, which never waits for a rank.
#ifndef GRADFLOW_DISTRIBUTED_CONTROL_HUB_H_
#define GRADFLOW_DISTRIBUTED_CONTROL_HUB_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "gradflow/distributed/wire.h"

namespace gradflow::distributed {

class ControlHub {
 public:
  // The limit of the bytes of rounds that are exchanged together. Larger bundles would delay the
  // first results; smaller bundles would repeat the latency of an exchange.
  static constexpr int64_t kMaxBundleBytes = int64_t{4} << 20;

  // Serves `size` ranks that connect to `listener`.
  static absl::StatusOr<std::unique_ptr<ControlHub>> Make(int size, Fd listener);
  // Sends what it has to send, for a second at most, and closes the connections.
  virtual ~ControlHub() = default;
};

}  // namespace gradflow::distributed

#endif  // GRADFLOW_DISTRIBUTED_CONTROL_HUB_H_
