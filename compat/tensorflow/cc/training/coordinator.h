// Coordinator: stops and joins cooperating threads.
//
//   Coordinator coordinator;
//   TF_CHECK_OK(coordinator.RegisterRunner(std::move(runner)));  // is running
//   ...
//   TF_CHECK_OK(coordinator.RequestStop());
//   TF_CHECK_OK(coordinator.Join());  // the first error of a runner
//
// Thread-safe. Inline, because Status is a different class in TensorFlow 1.x programs.
#ifndef GRADFLOW_COMPAT_CC_TRAINING_COORDINATOR_H_
#define GRADFLOW_COMPAT_CC_TRAINING_COORDINATOR_H_

#include <algorithm>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/cost_graph.pb.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/protobuf/config.pb.h"
#include "tensorflow/core/protobuf/error_codes.pb.h"

namespace tensorflow {

// Threads that poll Coordinator::ShouldStop.
class RunnerInterface {
 public:
  virtual ~RunnerInterface() = default;
  // Waits for the threads. Returns their first error.
  virtual Status Join() = 0;
  virtual Status ExportCostGraph(CostGraphDef* cost_graph) const;
  // Returns true until all threads have ended.
  virtual bool IsRunning() const = 0;
};

class Coordinator {
 public:
  Coordinator() : Coordinator(std::vector<error::Code>()) {}
  // Errors with these codes end a runner, but Join does not report them.
  explicit Coordinator(const std::vector<error::Code>& clean_stop_errors);
  // Stops and joins.
  ~Coordinator();
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  // Adds a running runner.
  Status RegisterRunner(std::unique_ptr<RunnerInterface> runner);
  bool AllRunnersStopped();
  // Returns FAILED_PRECONDITION if called before.
  Status RequestStop();
  bool ShouldStop();
  // Joins all runners. Returns the first error that was reported. Returns FAILED_PRECONDITION
  // before RequestStop.
  Status Join();
  // Keeps the first error.
  void ReportStatus(const Status& status);
  Status GetStatus();
  // Waits for RequestStop.
  void WaitForStop();
  // Returns UNIMPLEMENTED, because gradflow makes no cost graphs.
  Status ExportCostGraph(CostGraphDef* cost_graph) const;

 private:
  const std::set<error::Code> clean_stop_errors_;
  mutex mutex_;
  condition_variable stopped_;
  bool should_stop_ TF_GUARDED_BY(mutex_) = false;
  absl::Status status_ TF_GUARDED_BY(mutex_);
  mutex runners_mutex_;
  std::vector<std::unique_ptr<RunnerInterface>> runners_ TF_GUARDED_BY(runners_mutex_);
};

inline Status RunnerInterface::ExportCostGraph(CostGraphDef*) const {
  return errors::Unimplemented("gradflow makes no cost graphs");
}

inline Coordinator::Coordinator(const std::vector<error::Code>& clean_stop_errors)
    : clean_stop_errors_(clean_stop_errors.begin(), clean_stop_errors.end()) {}

inline Coordinator::~Coordinator() {
  // Both fail if the program has already called them.
  absl::Status(RequestStop()).IgnoreError();
  absl::Status(Join()).IgnoreError();
}

inline Status Coordinator::RegisterRunner(std::unique_ptr<RunnerInterface> runner) {
  const mutex_lock lock(runners_mutex_);
  runners_.push_back(std::move(runner));
  return absl::OkStatus();
}

inline bool Coordinator::AllRunnersStopped() {
  const mutex_lock lock(runners_mutex_);
  return std::none_of(runners_.begin(), runners_.end(),
                      [](const auto& runner) { return runner->IsRunning(); });
}

inline Status Coordinator::RequestStop() {
  const mutex_lock lock(mutex_);
  if (should_stop_) {
    return errors::FailedPrecondition("the coordinator has been asked to stop before");
  }
  should_stop_ = true;
  stopped_.notify_all();
  return absl::OkStatus();
}

inline bool Coordinator::ShouldStop() {
  const mutex_lock lock(mutex_);
  return should_stop_;
}

inline Status Coordinator::Join() {
  if (!ShouldStop()) {
    return errors::FailedPrecondition("Join() before RequestStop() would wait for ever");
  }
  {
    // Other threads that access the runners wait until the runners have ended.
    const mutex_lock lock(runners_mutex_);
    for (const auto& runner : runners_) ReportStatus(runner->Join());
    runners_.clear();
  }
  return GetStatus();
}

inline void Coordinator::ReportStatus(const Status& status) {
  const mutex_lock lock(mutex_);
  if (status.ok() || !status_.ok()) return;
  if (clean_stop_errors_.count(status.code()) != 0) return;
  status_ = status;
}

inline Status Coordinator::GetStatus() {
  const mutex_lock lock(mutex_);
  return status_;
}

inline void Coordinator::WaitForStop() {
  mutex_lock lock(mutex_);
  while (!should_stop_) stopped_.wait(lock);
}

inline Status Coordinator::ExportCostGraph(CostGraphDef*) const {
  return errors::Unimplemented("gradflow makes no cost graphs");
}

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CC_TRAINING_COORDINATOR_H_
