// RunTrace: what a run that is watched records of its nodes. Not for users, who get it as
// StepStats.
//
// Thread safety: each node's record is written by the threads that the node itself belongs to, one
// after the other; it may be read when the run is over.
#ifndef GRADFLOW_RUNTIME_RUN_TRACE_H_
#define GRADFLOW_RUNTIME_RUN_TRACE_H_

#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "gradflow/core/tensor.h"
#include "gradflow/runtime/plan.h"

namespace gradflow {

class StepStats;

class RunTrace {
 public:
  // Times are Now()'s.
  struct NodeRecord {
    // When all that it waits for was done.
    int64_t scheduled = 0;
    int64_t start = 0;
    int64_t compute_start = 0;
    int64_t compute_end = 0;
    // Of the node, also if it failed or was stopped; 0 if it did not start.
    int64_t end = 0;
    uint32_t thread = 0;
    // Of all tensors that its kernel allocated.
    int64_t allocated_bytes = 0;
    struct Output {
      DataType dtype;
      TensorShape shape;
      int64_t bytes;
    };
    absl::InlinedVector<Output, 1> outputs;

    // Ends the record of a node that gave no outputs, at whatever point.
    void EndFailed();
  };

  // Made by the thread that calls for the run. The plan must outlive it.
  explicit RunTrace(const Plan& plan);

  // Nanoseconds of a clock that does not jump.
  static int64_t Now();
  // The system's number of this thread.
  static uint32_t ThisThread();

  NodeRecord& node(int32_t index) { return nodes_[index]; }
  // The nodes that have started, by their start.
  void WriteTo(StepStats* stats) const;

 private:
  const Plan& plan_;
  std::vector<NodeRecord> nodes_;
  const uint32_t caller_;
  // What to add to Now() for the time since 1970.
  const int64_t since_1970_;
};

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_RUN_TRACE_H_
