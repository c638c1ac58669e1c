// FrameAndIter: the loop frame and the iteration of a running kernel.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_CONTROL_FLOW_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_CONTROL_FLOW_H_

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/hash/hash.h"
#include "tensorflow/core/platform/types.h"

namespace tensorflow {

inline constexpr uint64 kIllegalFrameId = ~uint64{0};
inline constexpr int64_t kIllegalIterId = -1;

struct FrameAndIter {
  FrameAndIter() = default;
  FrameAndIter(uint64 frame, int64_t iteration) : frame_id(frame), iter_id(iteration) {}
  bool operator==(const FrameAndIter& other) const {
    return frame_id == other.frame_id && iter_id == other.iter_id;
  }

  uint64 frame_id = kIllegalFrameId;
  int64_t iter_id = kIllegalIterId;
};

struct FrameAndIterHash {
  size_t operator()(const FrameAndIter& key) const {
    return absl::Hash<std::pair<uint64, int64_t>>()({key.frame_id, key.iter_id});
  }
};

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_CONTROL_FLOW_H_
