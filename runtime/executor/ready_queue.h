// ReadyQueue: the ready work of one Executor::Run, which any of its threads may take.
//
// Work comes from sources: the frames of the requested plan and of the functions that it calls. It
// consists of ready nodes, completed asynchronous nodes and sources that start.
//
// The thread that called Run takes work until none is left, then waits for other threads and
// asynchronous kernels. While it waits for other threads, it runs blocks of their loops. When work
// is added, the queue wakes that thread if it waits. If that thread does not wait, or may be within
// a block, the queue spawns a helper, provided that fewer threads than allowed are at work or
// spawned. A helper leaves after it has found no work for about two microseconds. It leaves at once
// if it finds no work on arrival or the run is over.
//
// Nodes are linked through memory of their source, so the queue needs no memory for a node. Only
// waking or spawning a thread may allocate, and it may fail without an error.
//
// Thread safety: all methods may be called from any thread. Internal.
#ifndef GRADFLOW_RUNTIME_EXECUTOR_READY_QUEUE_H_
#define GRADFLOW_RUNTIME_EXECUTOR_READY_QUEUE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/functional/function_ref.h"
#include "gradflow/core/mutex.h"
#include "gradflow/core/stop_token.h"

namespace gradflow {

inline constexpr int32_t kNoNode = -1;

class ReadyQueue {
 public:
  // A completed asynchronous node. Shared by the queue and the caller of PushCompletion.
  class Completion {
   public:
    virtual ~Completion() = default;

   private:
    friend class ReadyQueue;
    std::shared_ptr<Completion> next_;
  };

  // The ready work of one execution of a plan. The queue owns a node's link while the node is in
  // the queue.
  class Source {
   public:
    // `links` has an element for each node of the plan.
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

  // One piece of work: a ready node, a completed asynchronous node or call, or the start of a
  // source.
  struct Work {
    Source* source = nullptr;
    int32_t node = kNoNode;
    std::shared_ptr<Completion> completion;
    // True if the node is a call that has ended. Such work is never in the queue.
    bool called = false;
  };

  // The threads of the run and of its loops.
  class Arena {
   public:
    // The latch that the thread that called Run waits for. Reused for each wait.
    class Latch {
     public:
      virtual ~Latch() = default;
      // Closes the latch. REQUIRES: it is open
      virtual void Close() = 0;
      // Opens the latch. Returns false if out of memory; never fails on a helper. REQUIRES: it is
      // closed
      virtual bool Open() = 0;
      // Runs blocks of loops in the arena until the latch is open.
      virtual void Wait() = 0;
    };

    virtual ~Arena() = default;
    // Calls help(gate) later, never on this thread before Spawn returns. Returns false if out of
    // memory.
    virtual bool Spawn(void (*help)(void*), void* gate) = 0;
    // Calls fn() in isolation: a thread that waits for its own tasks within fn() takes no other
    // tasks of the arena.
    virtual void Isolate(absl::FunctionRef<void()> fn) = 0;
    // Returns the latch of the calling thread, which has called Run; null if out of memory.
    virtual Latch* CallerLatch() = 0;
  };

  // At most `max_threads` threads work at once. Helpers are spawned in `arena` and call help().
  // There are no helpers if `arena` is null. The thread that makes the queue counts as at work.
  ReadyQueue(int max_threads, Arena* arena, std::function<void()> help);
  // REQUIRES: Close() has been called, or no work was ever added
  ~ReadyQueue();
  ReadyQueue(const ReadyQueue&) = delete;
  ReadyQueue& operator=(const ReadyQueue&) = delete;

  // Adds a ready node behind the other nodes of its source.
  void Push(Source* source, int32_t node);
  // Adds the start of a source. Returns false if the run is over.
  bool PushStart(Source* source);
  // Counts an asynchronous node as in flight, until PushCompletion.
  void BeginAsync();
  // Adds a completed node. Drops it if the run is over. REQUIRES: the source lives as long as the
  // run
  void PushCompletion(Source* source, std::shared_ptr<Completion> completion);

  // Takes a piece of work. Returns false if there is none. The thread then no longer counts as at
  // work.
  bool Take(Work* work);
  // Waits for work and takes it. The thread then counts as at work again. Returns false if the run
  // is over: no thread is at work, and either no asynchronous node is in flight or `stop` has
  // stopped. Stops the run at the deadline of `stop`. REQUIRES: called by the thread that made the
  // queue, which is not at work
  bool WaitAndTake(StopToken* stop, Work* work);
  // Wakes WaitAndTake to check `stop`.
  void Wake();
  // Admits no more helpers. Returns true if asynchronous nodes are still in flight, or completed
  // after the run was over. REQUIRES: the run is over
  bool Close();

 private:
  struct Gate;

  void Append(Source* source) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool TakeLocked(Work* work) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Wakes the thread in WaitAndTake. Returns false if out of memory.
  bool Notify() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Wakes the waiting thread or spawns a helper if the added work needs another thread.
  void WakeOrSpawn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
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
  // The number of threads at work.
  int working_ ABSL_GUARDED_BY(mutex_) = 1;
  // The number of helpers that were spawned and have not arrived.
  int spawned_ ABSL_GUARDED_BY(mutex_) = 0;
  // The number of asynchronous nodes in flight.
  int async_ ABSL_GUARDED_BY(mutex_) = 0;
  // True while WaitAndTake is waiting.
  bool waits_ ABSL_GUARDED_BY(mutex_) = false;
  // The closed latch that WaitAndTake waits for; null if it waits for changed_.
  Arena::Latch* closed_latch_ ABSL_GUARDED_BY(mutex_) = nullptr;
  // True if Wake has been called since WaitAndTake last checked `stop`.
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  // True if a completion arrived after the run was over.
  bool unfinished_ ABSL_GUARDED_BY(mutex_) = false;
  // The number of pieces of work, for threads that spin without the mutex.
  std::atomic<int> size_{0};
  // Helpers reach the queue through the gate, which may outlive the queue. Made for the first
  // helper.
  Gate* gate_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_EXECUTOR_READY_QUEUE_H_
