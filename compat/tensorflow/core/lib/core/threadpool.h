// thread::ThreadPool: the threads of the session, over which a kernel may shard its work.
#ifndef GRADFLOW_COMPAT_CORE_LIB_CORE_THREADPOOL_H_
#define GRADFLOW_COMPAT_CORE_LIB_CORE_THREADPOOL_H_

#include <functional>

#include "gradflow/core/run_context.h"
#include "tensorflow/core/platform/types.h"

namespace tensorflow {
namespace thread {

class ThreadPool {
 public:
  // The threads of a run, which must outlive this; without one, those of the calling thread.
  explicit ThreadPool(const gradflow::RunContext* run = nullptr) : run_(run) {}

  int NumThreads() const;
  // Calls fn(begin, end) concurrently for shards that cover [0, total). A unit costs about
  // `cost_per_unit` cycles. The sharding does not depend on the number of threads.
  void ParallelFor(int64 total, int64 cost_per_unit,
                   const std::function<void(int64, int64)>& fn) const;
  const gradflow::RunContext* run() const { return run_; }

 private:
  const gradflow::RunContext* run_;
};

}  // namespace thread
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_LIB_CORE_THREADPOOL_H_
