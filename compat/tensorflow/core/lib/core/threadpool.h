// thread::ThreadPool: the threads that a kernel may split its work over, which are the session's.
#ifndef GRADFLOW_COMPAT_CORE_LIB_CORE_THREADPOOL_H_
#define GRADFLOW_COMPAT_CORE_LIB_CORE_THREADPOOL_H_

#include <functional>

#include "tensorflow/core/platform/types.h"

namespace tensorflow {
namespace thread {

class ThreadPool {
 public:
  int NumThreads() const;
  // Calls fn(begin, end) for blocks that cover [0, total), concurrently. A unit costs about that
  // many cycles. How the work is split does not depend on the number of threads.
  void ParallelFor(int64 total, int64 cost_per_unit,
                   const std::function<void(int64, int64)>& fn) const;
};

}  // namespace thread
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_LIB_CORE_THREADPOOL_H_
