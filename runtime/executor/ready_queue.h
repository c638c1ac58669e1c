// ReadyQueue: the ready work of one Executor::Run, which any of its threads may take.
//
// The queue holds ready nodes and finished asynchronous nodes of the run's sources: the plan that
// was requested and the functions that its kernels call. The thread that called Run takes work
// until nothing is left, and waits for other threads and asynchronous kernels. Other threads join
// as helpers: when work is added and fewer threads than allowed are at work, the queue asks the
// session's arena for a helper. A helper leaves when it finds no work. A helper that arrives after
// the run is over finds the gate closed.
//
// Nodes are linked through memory that the source provides, so adding a node allocates nothing.
//
// Thread safety: all methods may be called from any thread. Not for users.
#ifndef GRADFLOW_RUNTIME_EXECUTOR_READY_QUEUE_H_
#define GRADFLOW_RUNTIME_EXECUTOR_READY_QUEUE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "gradflow/core/mutex.h"
#include "gradflow/core/run_stop.h"

namespace gradflow {

inline constexpr int32_t kNoNode = -1;

class ReadyQueue {
 public:
  // An asynchronous node that has ended. Shared by the queue and the caller of PushCompletion.
  class Completion {
   public:
    virtual ~Completion() = default;

   private:
    friend class ReadyQueue;
    std::shared_ptr<Completion> next_;
  };

  // The ready nodes of one plan's run. The queue owns a node's link while the node is in the queue.
  class Source {
   public:
    // `links` has an element for each node.
    explicit Source(int32_t* links) : links_(links) {}

   private:
    friend class ReadyQueue;
    int32_t* const links_;
    int32_t first_ = kNoNode;
    int32_t last_ = kNoNode;
    bool starts_ = false;
    std::shared_ptr<Completion> first_completion_;
    Completion* last_completion_ = nullptr;
    bool queued_ = false;
    Source* next_ = nullptr;
  };

  // One piece of work: a node, an ended node, or the start of a source.
  struct Work {
    Source* source = nullptr;
    int32_t node = kNoNode;
    std::shared_ptr<Completion> completion;
  };

  // The source of helpers.
  class Arena {
   public:
    virtual ~Arena() = default;
    // Calls help(gate) on another thread at some later time, never on this thread before Spawn
    // returns. Returns false if there is no memory for that.
    virtual bool Spawn(void (*help)(void*), void* gate) = 0;
  };

  // Lets at most `max_threads` threads work at once. Helpers are spawned in `arena`, or not at all
  // if it is null, and call help(). The thread that makes the queue counts as at work.
  ReadyQueue(int max_threads, Arena* arena, std::function<void()> help);
  // REQUIRES: Close() has been called, or nothing was ever added.
  ~ReadyQueue();
  ReadyQueue(const ReadyQueue&) = delete;
  ReadyQueue& operator=(const ReadyQueue&) = delete;

  // Adds a ready node behind the other nodes of its source.
  void Push(Source* source, int32_t node);
  // Adds the start of a source. Returns false if the run is over.
  bool PushStart(Source* source);
  // Counts an asynchronous node that begins. PushCompletion counts it as ended.
  void BeginAsync();
  // Adds an ended node. Drops it if the run is over. REQUIRES: the source lives as long as the run
  void PushCompletion(Source* source, std::shared_ptr<Completion> completion);

  // Takes a piece of work. Returns false if there is none; the thread no longer counts as at work
  // then.
  bool Take(Work* work);
  // Waits for work and takes it; the thread counts as at work again. Called by the thread that made
  // the queue, when it is not at work. Returns false if the run is over: no thread is at work, and
  // no asynchronous node is in flight or `stop` has stopped. Stops at the deadline of `stop`.
  bool WaitAndTake(RunStop* stop, Work* work);
  // Wakes WaitAndTake to check `stop`.
  void Wake();
  // Admits no helpers from now on. Returns true if asynchronous nodes are still in flight, or ended
  // after the run was over. REQUIRES: the run is over
  bool Close();

 private:
  struct Gate;

  void Append(Source* source) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool TakeLocked(Work* work) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Wakes the waiting thread or spawns a helper, if the added work needs one.
  void FindThread() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Admits a helper. Returns false if it is no longer needed.
  bool Enter();
  static void Help(void* gate);

  const int max_threads_;
  Arena* const arena_;
  const std::function<void()> help_;
  Mutex mutex_;
  CondVar changed_;
  Source* first_ ABSL_GUARDED_BY(mutex_) = nullptr;
  Source* last_ ABSL_GUARDED_BY(mutex_) = nullptr;
  // Threads at work, and helpers that were requested and have not arrived.
  int working_ ABSL_GUARDED_BY(mutex_) = 1;
  int asked_ ABSL_GUARDED_BY(mutex_) = 0;
  int async_ ABSL_GUARDED_BY(mutex_) = 0;
  // True if WaitAndTake is waiting, and if Wake has been called since it last checked `stop`.
  bool waits_ ABSL_GUARDED_BY(mutex_) = false;
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  // True if a completion arrived after the run was over.
  bool unfinished_ ABSL_GUARDED_BY(mutex_) = false;
  // The number of pieces of work, for threads that wait for some without the mutex.
  std::atomic<int> size_{0};
  // Leads helpers to the queue. Made for the first helper.
  Gate* gate_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_EXECUTOR_READY_QUEUE_H_
