// TraceRecorder: records the nodes of a traced run. Internal; users get the records as StepStats.
//
// Thread safety: a node's record is written by the threads that own the node, one after the other.
// Records may be read when the run is over.
#ifndef GRADFLOW_RUNTIME_TRACE_TRACE_RECORDER_H_
#define GRADFLOW_RUNTIME_TRACE_TRACE_RECORDER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "gradflow/core/mutex.h"
#include "gradflow/core/tensor.h"
#include "gradflow/runtime/plan/plan.h"

namespace gradflow {

class StepStats;

class TraceRecorder {
 public:
  // Times are values of Now().
  struct NodeRecord {
    // The time at which all nodes that it waits for had ended.
    int64_t scheduled = 0;
    int64_t start = 0;
    int64_t compute_start = 0;
    int64_t compute_end = 0;
    // The end of the node, even if it failed or was stopped; 0 if it did not start.
    int64_t end = 0;
    uint32_t thread = 0;
    // Bytes of all tensors that its kernel allocated.
    int64_t allocated_bytes = 0;
    struct Output {
      DataType dtype;
      TensorShape shape;
      int64_t bytes;
    };
    absl::InlinedVector<Output, 1> outputs;

    // Ends the record of a node that produced no outputs, at any stage.
    void EndFailed();
  };

  // Must be made by the thread that calls Run. `plan` must outlive this object.
  explicit TraceRecorder(const Plan& plan);

  // Returns the time in nanoseconds of a monotonic clock.
  static int64_t Now();
  // Returns the system's id of the calling thread.
  static uint32_t ThisThread();

  NodeRecord& node(int32_t index) { return nodes_[index]; }
  // Adds the trace of a function that node `caller` of `trace` calls. `trace` is part of this
  // trace. Names the function's nodes "<caller>/<name>". The result lives as long as this object.
  // Thread-safe.
  TraceRecorder* AddCall(std::shared_ptr<const Plan> plan, const TraceRecorder* trace,
                         int32_t caller);
  // Adds the trace of a plan that a node runs, or of one iteration of a loop. The node belongs to
  // `trace`, which is part of this trace. Returns null if the calls of the run have kMaxRecords
  // records. `plan` must outlive this object. Thread-safe.
  TraceRecorder* AddCallee(const Plan& plan, const TraceRecorder& trace);
  // The records of a run with loops have no other bound.
  static constexpr int64_t kMaxRecords = 1 << 18;
  // Adds the nodes that have started to *stats, ordered by their start.
  void WriteTo(StepStats* stats) const;

 private:
  // Appends the nodes that have started.
  void AppendTo(std::vector<std::pair<const TraceRecorder*, int32_t>>* order) const;

  const Plan& plan_;
  // For a function: the plan, which is kept alive, and the prefix of the names of its nodes.
  std::shared_ptr<const Plan> owned_plan_;
  std::string prefix_;
  std::vector<NodeRecord> nodes_;
  const uint32_t caller_;
  // The difference between the time since 1970 and Now().
  const int64_t since_1970_;
  mutable Mutex mutex_;
  std::vector<std::unique_ptr<TraceRecorder>> calls_ ABSL_GUARDED_BY(mutex_);
  // The records of AddCallee().
  int64_t callee_records_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_TRACE_TRACE_RECORDER_H_
