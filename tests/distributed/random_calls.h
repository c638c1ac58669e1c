// Random collectives whose inputs and results follow from a seed, so that each rank of a test, a
// thread or a process, can make its part of the calls and check its results alone.
#ifndef GRADFLOW_TESTS_DISTRIBUTED_RANDOM_CALLS_H_
#define GRADFLOW_TESTS_DISTRIBUTED_RANDOM_CALLS_H_

#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gradflow/core/collectives.h"
#include "gradflow/core/tensor.h"

namespace gradflow::testing {

// A timeout that does not pass in a test that succeeds.
inline constexpr std::chrono::milliseconds kLongTimeout = std::chrono::minutes(2);

// A round of random kind, type, shape and group.
struct RandomRound {
  CollectiveType type;
  CollectiveMerge merge;
  CollectiveFinal final;
  DataType dtype;
  // The shape of the input, or of the broadcast tensor.
  TensorShape shape;
  // The ranks of the group, in the order of the group.
  std::vector<int> ranks;
  int64_t group_key;
  int64_t instance_key;
  // True if the calls state the ranks within the group.
  bool states_ranks;
  // The index of the sender in `ranks`.
  int sender;
  uint64_t seed;
};

// Returns round `index` of a sequence for `size` ranks. REQUIRES: size >= 2
RandomRound MakeRandomRound(uint64_t seed, int index, int size);

// Returns the input of member `i` of the group.
Tensor InputOf(const RandomRound& round, int i);
// Returns the result of member `i`, computed one element at a time with integers.
Tensor ExpectedOf(const RandomRound& round, int i);
// Returns the call of member `i`, with an output of uninitialized elements.
CollectiveCall CallOf(const RandomRound& round, int i, std::chrono::milliseconds timeout);

// Returns a call of group 1 that sums `input`, with an output of uninitialized elements.
CollectiveCall SumCall(const Tensor& input, int group_size, int64_t instance,
                       std::chrono::milliseconds timeout = kLongTimeout);

// A call in flight.
struct StartedCall {
  Collectives::CallId id = 0;
  Tensor output;
  std::future<absl::Status> status;
};
StartedCall StartCall(Collectives* collectives, CollectiveCall call);

// Makes the calls of a rank for `count` rounds, up to `window` at a time, in an order that differs
// between ranks, and checks the results. Returns the first error.
absl::Status RunRandomRounds(Collectives* collectives, uint64_t seed, int count, int window,
                             std::chrono::milliseconds timeout);

// The same with random faults: calls of a round that disagree, ranks that do not call, and calls
// that are cancelled. All calls of such a round must end with the right error, and all other rounds
// must have the right results. Returns INTERNAL otherwise.
absl::Status RunFaultyRounds(Collectives* collectives, uint64_t seed, int count, int window,
                             std::chrono::milliseconds timeout);

}  // namespace gradflow::testing

#endif  // GRADFLOW_TESTS_DISTRIBUTED_RANDOM_CALLS_H_
