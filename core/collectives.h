// Collectives: exchanges tensors between the ranks of a distributed run, for the kernels of the
// Collective* ops.
//
// A rank is one participant, usually a process. Each rank has an object of this class, and gives it
// to its sessions (SessionOptions::collectives). A call belongs to a group of ranks. Calls with the
// same group and instance key form a round. Ranks may make calls in any order; the keys match them.
// Before any element of a tensor is exchanged, the calls of a round are compared. If they disagree,
// or a rank does not arrive in time, all ranks of the round get an error, which names the op, the
// keys and the ranks.
//
// distributed/ implements this interface for several sessions in one program and for several
// machines (docs/distributed.md). The library itself does not need these implementations.
#ifndef GRADFLOW_CORE_COLLECTIVES_H_
#define GRADFLOW_CORE_COLLECTIVES_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/types.h"

#pragma GCC visibility push(default)
namespace gradflow {

// The kind of exchange. Sums and products are computed in the order of the ranks, in the type of
// the tensors, so that every implementation computes the same bits.
enum class CollectiveType : uint8_t {
  // Every rank receives the merged tensors of all ranks.
  kReduce,
  // Rank i of the group receives the i-th part of the merged tensors, along the first dimension.
  kReduceScatter,
  // Every rank receives the tensors of all ranks, concatenated along the first dimension.
  kGather,
  // Every rank receives the tensor of the sender.
  kBroadcast,
  // Rank i of the group receives row i of the tensors of all ranks.
  kAllToAll,
  // Waits for all ranks, without tensors.
  kBarrier,
};

// The function that merges two elements. Sums and products of integers wrap around. The minimum and
// the maximum are NaN if either element is NaN.
enum class CollectiveMerge : uint8_t { kAdd, kMul, kMin, kMax };

// The function of merged elements: no change, or a division by the size of the group. Integers are
// rounded toward 0.
enum class CollectiveFinal : uint8_t { kId, kDiv };

// A rank's part of a round.
struct CollectiveCall {
  // The name of the op, for errors.
  std::string op;
  CollectiveType type = CollectiveType::kBarrier;
  // For kReduce and kReduceScatter.
  CollectiveMerge merge = CollectiveMerge::kAdd;
  CollectiveFinal final = CollectiveFinal::kId;
  // For kBroadcast: true on the rank that sends.
  bool is_sender = false;

  // ---- Matching ----

  // The number of ranks in the group. REQUIRES: at least 2
  int group_size = 0;
  // The ranks of a group are the ranks that use its key.
  int64_t group_key = 0;
  // Distinguishes the groups into which a group is split.
  int32_t subgroup = 0;
  int64_t instance_key = 0;
  // The rank within the group; -1 if the ranks of the group have the order of Collectives::rank().
  int group_rank = -1;
  // The time until the round fails; 0 for the default of the implementation.
  std::chrono::milliseconds timeout{0};

  // ---- Tensors ----

  // The tensor of this rank. Empty for a receiver of kBroadcast and for kBarrier.
  Tensor input;
  // The result, which has memory of the right size. May share its memory with `input` if this is
  // kReduce. Not used on the sender of kBroadcast and for kBarrier.
  Tensor output;

  // Returns the type of the tensors; DT_INVALID for kBarrier.
  DataType dtype() const {
    if (type == CollectiveType::kBarrier) return DT_INVALID;
    return type == CollectiveType::kBroadcast && !is_sender ? output.dtype() : input.dtype();
  }
  // Returns the shape that the ranks compare: of the input, or of the output of a receiver.
  const TensorShape& shape() const {
    return type == CollectiveType::kBroadcast && !is_sender ? output.shape() : input.shape();
  }
};

// Thread safety: all methods may be called from any thread.
class Collectives {
 public:
  // Identifies a call.
  using CallId = int64_t;
  // Receives the result of a call. If the status is OK, CollectiveCall::output is complete. May be
  // called on any thread, and before Start() returns. Must not block.
  using Done = std::function<void(absl::Status status)>;

  virtual ~Collectives() = default;

  // This rank, at least 0, and the number of ranks.
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Returns a number for Start(). Numbers are unique in this object.
  virtual CallId NewCallId() = 0;
  // Begins a call and returns at once. Calls done() exactly once. Errors:
  //
  //   INVALID_ARGUMENT   the calls of the ranks disagree
  //   DEADLINE_EXCEEDED  a rank has not arrived or does not answer
  //   CANCELLED          the run of a rank was stopped
  //   UNAVAILABLE        a rank is lost
  virtual void Start(CallId id, CollectiveCall call, Done done) = 0;
  // Ends a call with CANCELLED on all ranks, unless it has ended. Has no effect on calls that have
  // not been started.
  virtual void Cancel(CallId id) = 0;
};

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_CORE_COLLECTIVES_H_
