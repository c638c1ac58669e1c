#include "tensorflow/core/lib/core/threadpool.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "gradflow/core/parallel.h"

namespace tensorflow {
namespace thread {

// The threads, and the functions that they have not started.
class ThreadPool::Workers {
 public:
  explicit Workers(int num_threads) {
    for (int i = 0; i < std::max(num_threads, 1); ++i) {
      threads_.emplace_back([this, i] { Work(i); });
    }
  }
  ~Workers() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    // A pool thread may free the last owner of the pool. It cannot join itself.
    if (current_pool == this) {
      std::unique_lock<std::mutex> lock(mutex_);
      while (!functions_.empty()) RunNext(&lock);
      current_pool = nullptr;
    }
    for (std::thread& thread : threads_) {
      if (thread.get_id() == std::this_thread::get_id()) {
        thread.detach();
      } else {
        thread.join();
      }
    }
  }
  int size() const { return static_cast<int>(threads_.size()); }
  void Add(std::function<void()> fn) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      functions_.push_back(std::move(fn));
    }
    changed_.notify_one();
  }
  int CurrentThread() const { return current_pool == this ? current_thread : -1; }

 private:
  void Work(int i) {
    current_pool = this;
    current_thread = i;
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return stopping_ || !functions_.empty(); });
      if (functions_.empty()) return;
      if (!RunNext(&lock)) return;
    }
  }

  // Runs the next function without the lock. Returns false if the function destroyed the pool.
  // REQUIRES: functions_ is not empty
  bool RunNext(std::unique_lock<std::mutex>* lock) {
    std::function<void()> fn = std::move(functions_.front());
    functions_.pop_front();
    lock->unlock();
    fn();
    // Frees the function without the lock, because its captures may call or destroy this pool.
    fn = nullptr;
    if (current_pool != this) return false;
    lock->lock();
    return true;
  }

  static thread_local const Workers* current_pool;
  static thread_local int current_thread;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> functions_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

thread_local const ThreadPool::Workers* ThreadPool::Workers::current_pool = nullptr;
thread_local int ThreadPool::Workers::current_thread = -1;

ThreadPool::ThreadPool(const gradflow::RunContext* run) : run_(run) {}

ThreadPool::ThreadPool(Env* env, const std::string& name, int num_threads)
    : ThreadPool(env, ThreadOptions(), name, num_threads) {}

ThreadPool::ThreadPool(Env*, const ThreadOptions&, const std::string&, int num_threads, bool)
    : workers_(std::make_unique<Workers>(num_threads)) {}

ThreadPool::~ThreadPool() = default;

int ThreadPool::NumThreads() const {
  if (workers_ != nullptr) return workers_->size();
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

int ThreadPool::CurrentThreadId() const {
  return workers_ == nullptr ? -1 : workers_->CurrentThread();
}

void ThreadPool::Schedule(std::function<void()> fn) {
  if (workers_ == nullptr) {
    fn();
  } else {
    workers_->Add(std::move(fn));
  }
}

void ThreadPool::ParallelFor(int64 total, int64 cost_per_unit,
                             const std::function<void(int64, int64)>& fn) const {
  // TensorFlow's costs are in cycles. Assumes 3 cycles per nanosecond.
  const double nanoseconds = std::max<double>(static_cast<double>(cost_per_unit), 1) / 3;
  TransformRangeConcurrently(gradflow::BlockSizeForCost(nanoseconds), total, fn);
}

void ThreadPool::TransformRangeConcurrently(int64 block_size, int64 total,
                                            const std::function<void(int64, int64)>& fn) const {
  static const gradflow::RunContext no_run;
  gradflow::ParallelFor(run_ != nullptr ? *run_ : no_run, total, std::max<int64>(block_size, 1),
                        fn);
}

}  // namespace thread
}  // namespace tensorflow
