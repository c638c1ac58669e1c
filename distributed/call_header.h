// CallHeader: what the ranks of a round compare before they exchange elements.
//
// A header has a fixed size and no pointers, so that ranks can send it before they know anything
// about each other's tensors. All machines of a run have the same byte order.
#ifndef GRADFLOW_DISTRIBUTED_CALL_HEADER_H_
#define GRADFLOW_DISTRIBUTED_CALL_HEADER_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <type_traits>

#include "absl/status/status.h"
#include "gradflow/core/collectives.h"

namespace gradflow::distributed {

// The maximum timeout of a call, a year. Longer timeouts could overflow in deadlines.
inline constexpr std::chrono::milliseconds kMaxTimeout = std::chrono::hours(365 * 24);

struct CallHeader {
  // The dimensions that a header lists. Longer shapes are compared by their hash.
  static constexpr int kListedDims = 8;

  int64_t group_key;
  int64_t instance_key;
  int64_t timeout_ms;
  int64_t num_elements;
  uint64_t shape_hash;
  int64_t dims[kListedDims];
  int32_t subgroup;
  int32_t group_size;
  int32_t group_rank;
  int32_t dtype;
  int32_t rank_of_shape;
  uint8_t type;
  uint8_t merge;
  uint8_t final;
  uint8_t is_sender;
  // The name of the op, shortened, with zeros at the end.
  char op[40];
};
static_assert(std::is_trivially_copyable_v<CallHeader>);
static_assert(sizeof(CallHeader) == 5 * 8 + CallHeader::kListedDims * 8 + 5 * 4 + 4 + 40,
              "a header must have no padding");

// Returns the header of a call. REQUIRES: call.timeout is set
CallHeader HeaderOf(const CollectiveCall& call);

// Returns INVALID_ARGUMENT unless a header that another process sent is valid in itself.
absl::Status CheckHeader(const CallHeader& header);

// Returns INVALID_ARGUMENT "rank 1 has shape [3], but rank 0 has shape [2]" unless both calls can
// be in the same round.
absl::Status CompareHeaders(const CallHeader& first, int first_rank, const CallHeader& second,
                            int second_rank);

// "CollectiveReduceV2, group 1, instance 7"
std::string DebugString(const CallHeader& header);

}  // namespace gradflow::distributed

#endif  // GRADFLOW_DISTRIBUTED_CALL_HEADER_H_
