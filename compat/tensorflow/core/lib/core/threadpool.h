// thread::ThreadPool: the threads of the session, over which a kernel may shard its work, or
// separate threads.
#ifndef GRADFLOW_COMPAT_CORE_LIB_CORE_THREADPOOL_H_
#define GRADFLOW_COMPAT_CORE_LIB_CORE_THREADPOOL_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "gradflow/core/run_context.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/types.h"

namespace tensorflow {
namespace thread {

class ThreadPool {
 public:
  // Uses the threads of a run, which must outlive this object. If `run` is null, uses the
  // threads of the calling thread's arena.
  explicit ThreadPool(const gradflow::RunContext* run = nullptr);
  // Starts new threads. The destructor runs all scheduled functions, and waits for the threads.
  ThreadPool(Env* env, const std::string& name, int num_threads);
  ThreadPool(Env* env, const ThreadOptions& options, const std::string& name, int num_threads,
             bool low_latency_hint = true);
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool();

  int NumThreads() const;
  // Returns the index of the calling thread in this pool, or -1.
  int CurrentThreadId() const;
  // Runs `fn` on a thread of the pool. If the threads belong to a session, runs `fn` immediately on
  // the calling thread, because session threads would wait for each other.
  void Schedule(std::function<void()> fn);
  void ScheduleWithHint(std::function<void()> fn, int, int) { Schedule(std::move(fn)); }
  // Calls fn(begin, end) concurrently for shards that cover [0, total). A unit costs about
  // `cost_per_unit` cycles. The sharding does not depend on the number of threads. Runs on the
  // session's threads.
  void ParallelFor(int64 total, int64 cost_per_unit,
                   const std::function<void(int64, int64)>& fn) const;
  // Like ParallelFor(), but with shards of `block_size` units.
  void TransformRangeConcurrently(int64 block_size, int64 total,
                                  const std::function<void(int64, int64)>& fn) const;
  const gradflow::RunContext* run() const { return run_; }

 private:
  class Workers;

  const gradflow::RunContext* run_ = nullptr;
  // Null if the threads belong to the session.
  std::unique_ptr<Workers> workers_;
};

}  // namespace thread
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_LIB_CORE_THREADPOOL_H_
