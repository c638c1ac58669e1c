#include "gradflow/runtime/executor/ready_queue.h"

#include <new>
#include <utility>

#include "gradflow/core/tsan.h"

namespace gradflow {
namespace {

// The number of times that a thread looks for work before it leaves: about two microseconds, enough
// for a small node to end.
constexpr int kSpins = 100;

void Pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

// Outlives the queue until the last requested helper has arrived.
struct ReadyQueue::Gate {
  explicit Gate(ReadyQueue* q) : queue(q) {}
  void Unref() {
    if (refs.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  std::atomic<int> refs{1};
  Mutex mutex;
  // Null when the run is over.
  ReadyQueue* queue ABSL_GUARDED_BY(mutex);
};

ReadyQueue::ReadyQueue(int max_threads, Arena* arena, std::function<void()> help)
    : max_threads_(max_threads), arena_(arena), help_(std::move(help)) {}

ReadyQueue::~ReadyQueue() = default;

void ReadyQueue::Append(Source* source) {
  size_.fetch_add(1, std::memory_order_relaxed);
  if (std::exchange(source->queued_, true)) return;
  source->next_ = nullptr;
  if (first_ == nullptr) {
    first_ = source;
  } else {
    last_->next_ = source;
  }
  last_ = source;
}

bool ReadyQueue::Notify() {
  if (closed_latch_ == nullptr) {
    changed_.Notify();
    return true;
  }
  // If this fails, no work is lost: while the latch is closed, a helper is at work, which takes the
  // work and opens the latch when it leaves.
  if (!closed_latch_->Open()) return false;
  closed_latch_ = nullptr;
  return true;
}

void ReadyQueue::WakeOrSpawn() {
  if (waits_) {
    const bool in_latch = closed_latch_ != nullptr;
    // The waiting thread takes one piece of work. Work that is added before it wakes needs helpers.
    if (Notify()) waits_ = false;
    // The waiting thread may be within a block of a loop.
    if (!in_latch) return;
  }
  if (arena_ == nullptr || working_ + spawned_ >= max_threads_) return;
  if (gate_ == nullptr) gate_ = new (std::nothrow) Gate(this);
  if (gate_ == nullptr) return;
  ++spawned_;
  gate_->refs.fetch_add(1, std::memory_order_relaxed);
  TsanRelease(gate_);
  if (arena_->Spawn(Help, gate_)) return;
  gate_->Unref();
  --spawned_;
}

void ReadyQueue::Push(Source* source, int32_t node) {
  MutexLock lock(&mutex_);
  source->links_[node] = kNoNode;
  if (source->first_ == kNoNode) {
    source->first_ = node;
  } else {
    source->links_[source->last_] = node;
  }
  source->last_ = node;
  Append(source);
  WakeOrSpawn();
}

bool ReadyQueue::PushStart(Source* source) {
  MutexLock lock(&mutex_);
  if (closed_) return false;
  source->starts_ = true;
  Append(source);
  WakeOrSpawn();
  return true;
}

void ReadyQueue::BeginAsync() {
  MutexLock lock(&mutex_);
  ++async_;
}

void ReadyQueue::PushCompletion(Source* source, std::shared_ptr<Completion> completion) {
  MutexLock lock(&mutex_);
  --async_;
  if (closed_) {
    unfinished_ = true;
    return;
  }
  Completion* const last = completion.get();
  if (source->first_completion_ == nullptr) {
    source->first_completion_ = std::move(completion);
  } else {
    source->last_completion_->next_ = std::move(completion);
  }
  source->last_completion_ = last;
  Append(source);
  // Called under the mutex, because the run may end once the mutex is released.
  WakeOrSpawn();
}

bool ReadyQueue::TakeLocked(Work* work) {
  Source* const source = first_;
  if (source == nullptr) return false;
  size_.fetch_sub(1, std::memory_order_relaxed);
  work->source = source;
  work->node = kNoNode;
  work->completion = nullptr;
  if (source->starts_) {
    source->starts_ = false;
  } else if (source->first_completion_ != nullptr) {
    work->completion = std::move(source->first_completion_);
    source->first_completion_ = std::move(work->completion->next_);
  } else {
    work->node = source->first_;
    source->first_ = source->links_[work->node];
  }
  if (source->first_ == kNoNode && source->first_completion_ == nullptr) {
    source->queued_ = false;
    first_ = source->next_;
  }
  return true;
}

bool ReadyQueue::Take(Work* work) {
  for (int spins = 0;; ++spins) {
    if (spins == kSpins || size_.load(std::memory_order_relaxed) > 0) {
      MutexLock lock(&mutex_);
      if (TakeLocked(work)) return true;
      // If only this thread is at work, no other thread can add work.
      if (spins == kSpins || working_ == 1) {
        --working_;
        if (working_ == 0 && waits_) (void)Notify();
        return false;
      }
    }
    Pause();
  }
}

bool ReadyQueue::WaitAndTake(StopToken* stop, Work* work) {
  MutexLock lock(&mutex_);
  for (;;) {
    if (working_ < max_threads_ && TakeLocked(work)) {
      ++working_;
      return true;
    }
    auto deadline = StopToken::Clock::time_point::max();
    if (working_ == 0) {
      if (async_ == 0) {
        closed_ = true;
        return false;
      }
      woken_ = false;
      // Releases the mutex, because callbacks of kernels run if this stops the run.
      mutex_.Unlock();
      const bool stopped = stop->Check();
      if (stopped) stop->Stop();
      mutex_.Lock();
      const bool same = working_ == 0 && first_ == nullptr;
      if (same && stopped) {
        // From here on, no completion spawns a helper.
        closed_ = true;
        return false;
      }
      if (!same || async_ == 0 || woken_) continue;
      deadline = stop->deadline();
    }
    waits_ = true;
    Arena::Latch* latch = nullptr;
    if (working_ > 0 && arena_ != nullptr) latch = arena_->CallerLatch();
    if (latch != nullptr) {
      latch->Close();
      closed_latch_ = latch;
      mutex_.Unlock();
      latch->Wait();
      mutex_.Lock();
    } else if (deadline == StopToken::Clock::time_point::max()) {
      changed_.Wait(&mutex_);
    } else {
      changed_.WaitUntil(&mutex_, deadline);
    }
    waits_ = false;
  }
}

void ReadyQueue::Wake() {
  MutexLock lock(&mutex_);
  woken_ = true;
  (void)Notify();
}

bool ReadyQueue::Close() {
  Gate* gate;
  bool unfinished;
  {
    MutexLock lock(&mutex_);
    closed_ = true;
    unfinished = unfinished_ || async_ > 0;
    gate = gate_;
  }
  if (gate == nullptr) return unfinished;
  {
    MutexLock lock(&gate->mutex);
    gate->queue = nullptr;
  }
  gate->Unref();
  return unfinished;
}

bool ReadyQueue::Enter() {
  MutexLock lock(&mutex_);
  --spawned_;
  if (first_ == nullptr || working_ >= max_threads_) return false;
  ++working_;
  return true;
}

void ReadyQueue::Help(void* argument) {
  Gate* const gate = static_cast<Gate*>(argument);
  TsanAcquire(gate);
  ReadyQueue* queue = nullptr;
  {
    MutexLock lock(&gate->mutex);
    if (gate->queue != nullptr && gate->queue->Enter()) queue = gate->queue;
  }
  // Being at work keeps the queue alive.
  if (queue != nullptr) queue->help_();
  gate->Unref();
}

}  // namespace gradflow
