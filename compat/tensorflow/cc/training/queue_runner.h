// QueueRunner: threads that fill a queue, until it is closed or an enqueue fails.
//
//   std::unique_ptr<QueueRunner> runner;
//   TF_CHECK_OK(QueueRunner::New(def, &coordinator, &runner));
//   TF_CHECK_OK(runner->Start(session));
//   TF_CHECK_OK(coordinator.RegisterRunner(std::move(runner)));
//
// Thread-safe, except for Start. Inline, because Status is a different class in TensorFlow 1.x
// programs.
#ifndef GRADFLOW_COMPAT_CC_TRAINING_QUEUE_RUNNER_H_
#define GRADFLOW_COMPAT_CC_TRAINING_QUEUE_RUNNER_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tensorflow/cc/training/coordinator.h"
#include "tensorflow/core/lib/core/threadpool.h"
#include "tensorflow/core/platform/blocking_counter.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/protobuf/queue_runner.pb.h"
#include "tensorflow/core/public/session.h"

namespace tensorflow {

class QueueRunner : public RunnerInterface {
 public:
  // Returns INVALID_ARGUMENT if `def` names no enqueue op.
  static Status New(const QueueRunnerDef& def, std::unique_ptr<QueueRunner>* result) {
    return New(def, nullptr, result);
  }
  // Makes a runner that stops when `coordinator` is asked to stop, and reports its error there.
  // `coordinator` must outlive the runner.
  static Status New(const QueueRunnerDef& def, Coordinator* coordinator,
                    std::unique_ptr<QueueRunner>* result);
  // Joins the threads.
  ~QueueRunner() override { absl::Status(Join()).IgnoreError(); }
  QueueRunner(const QueueRunner&) = delete;
  QueueRunner& operator=(const QueueRunner&) = delete;

  // Adds a function that is called with the first error, on the thread that has it.
  void AddErrorCallback(const std::function<void(Status)>& callback);
  void ClearErrorCallbacks();

  // Starts a thread for each enqueue op, which runs the op in a loop. `session` must outlive the
  // threads.
  Status Start(Session* session) { return Start(session, 0); }
  // Waits for the first run of each op as well, if `wait_for_ms` is positive. Returns its error, or
  // DEADLINE_EXCEEDED after that time.
  Status Start(Session* session, int wait_for_ms);
  // These also run the enqueue ops with `options`. There is no cost graph.
  Status StartAndCollectCostGraph(Session* session, const RunOptions& options = RunOptions()) {
    return StartAndCollectCostGraph(session, 0, options);
  }
  Status StartAndCollectCostGraph(Session* session, int wait_for_ms,
                                  const RunOptions& options = RunOptions()) {
    options_ = options;
    return Start(session, wait_for_ms);
  }
  // Runs the op that cancels the enqueues. A runner with a coordinator calls this itself.
  void Stop(Session* session);
  // Waits for the threads. Returns the first error that does not mean that the queue is closed.
  Status Join() final;
  Status GetStatus();
  // Returns FAILED_PRECONDITION, because gradflow makes no cost graphs.
  Status ExportCostGraph(CostGraphDef*) const override {
    return errors::FailedPrecondition("gradflow makes no cost graphs");
  }
  bool IsRunning() const override { return !stopped_; }

 private:
  QueueRunner(const QueueRunnerDef& def, Coordinator* coordinator);

  void RunLoop(Session* session, const std::string& op);
  absl::Status RunOp(Session* session, const std::string& op);
  bool MeansClosed(const absl::Status& status) const {
    return closed_codes_.count(static_cast<int>(status.code())) != 0;
  }
  void Report(const absl::Status& status);

  const QueueRunnerDef def_;
  Coordinator* const coordinator_;
  std::set<int> closed_codes_;
  RunOptions options_;
  std::atomic<bool> stopped_{false};
  // Guards the members below.
  std::mutex mutex_;
  std::condition_variable has_run_;
  std::vector<std::thread> threads_;
  // The ops that have not run yet, and those that run in a loop.
  int num_new_ = 0;
  int num_running_ = 0;
  // The first error, and an error of the first run of an op.
  absl::Status status_;
  absl::Status first_status_;
  std::vector<std::function<void(Status)>> callbacks_;
};

inline Status QueueRunner::New(const QueueRunnerDef& def, Coordinator* coordinator,
                               std::unique_ptr<QueueRunner>* result) {
  result->reset(new QueueRunner(def, coordinator));
  if (def.enqueue_op_name_size() > 0) return absl::OkStatus();
  return errors::InvalidArgument("a queue runner must have at least one enqueue op");
}

inline QueueRunner::QueueRunner(const QueueRunnerDef& def, Coordinator* coordinator)
    : def_(def),
      coordinator_(coordinator),
      closed_codes_(def.queue_closed_exception_types().begin(),
                    def.queue_closed_exception_types().end()) {
  if (closed_codes_.empty()) {
    closed_codes_.insert(static_cast<int>(absl::StatusCode::kOutOfRange));
  }
}

inline void QueueRunner::AddErrorCallback(const std::function<void(Status)>& callback) {
  const std::lock_guard<std::mutex> lock(mutex_);
  callbacks_.push_back(callback);
}

inline void QueueRunner::ClearErrorCallbacks() {
  const std::lock_guard<std::mutex> lock(mutex_);
  callbacks_.clear();
}

inline Status QueueRunner::Start(Session* session, int wait_for_ms) {
  std::unique_lock<std::mutex> lock(mutex_);
  num_new_ += def_.enqueue_op_name_size();
  num_running_ += def_.enqueue_op_name_size();
  for (const std::string& op : def_.enqueue_op_name()) {
    threads_.emplace_back([this, session, op] { RunLoop(session, op); });
  }
  if (coordinator_ != nullptr) threads_.emplace_back([this, session] { Stop(session); });
  if (wait_for_ms <= 0) return absl::OkStatus();
  if (!has_run_.wait_for(lock, std::chrono::milliseconds(wait_for_ms),
                         [this] { return num_new_ == 0; })) {
    return errors::DeadlineExceeded("the enqueue ops have not run within ", wait_for_ms, " ms");
  }
  return first_status_.ok() ? status_ : first_status_;
}

inline void QueueRunner::Stop(Session* session) {
  if (coordinator_ != nullptr) coordinator_->WaitForStop();
  if (!def_.cancel_op_name().empty()) Report(RunOp(session, def_.cancel_op_name()));
  stopped_ = true;
}

inline Status QueueRunner::Join() {
  std::vector<std::thread> threads;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
  return GetStatus();
}

inline Status QueueRunner::GetStatus() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return status_;
}

inline absl::Status QueueRunner::RunOp(Session* session, const std::string& op) {
  return session->Run(options_, {}, {}, {op}, nullptr, nullptr);
}

inline void QueueRunner::RunLoop(Session* session, const std::string& op) {
  absl::Status status;
  bool is_last = false;
  for (bool is_first = true; status.ok(); is_first = false) {
    if (coordinator_ != nullptr && coordinator_->ShouldStop()) break;
    status = RunOp(session, op);
    if (!is_first) continue;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!status.ok()) first_status_ = status;
    --num_new_;
    has_run_.notify_all();
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_last = --num_running_ == 0;
  }
  if (status.ok()) return;
  if (!MeansClosed(status)) {
    Report(status);
    if (coordinator_ != nullptr) absl::Status(coordinator_->RequestStop()).IgnoreError();
    return;
  }
  // A coordinator that stops runs the op that cancels instead.
  const bool stops = coordinator_ != nullptr && coordinator_->ShouldStop();
  if (is_last && !stops && !def_.close_op_name().empty()) {
    Report(RunOp(session, def_.close_op_name()));
  }
}

inline void QueueRunner::Report(const absl::Status& status) {
  std::vector<std::function<void(Status)>> callbacks;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (status.ok() || !status_.ok() || MeansClosed(status)) return;
    status_ = status;
    callbacks = callbacks_;
  }
  if (coordinator_ != nullptr) coordinator_->ReportStatus(status);
  for (const auto& callback : callbacks) callback(status);
}

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CC_TRAINING_QUEUE_RUNNER_H_
