// Shard: shards the work of a kernel.
#ifndef GRADFLOW_COMPAT_CORE_UTIL_WORK_SHARDER_H_
#define GRADFLOW_COMPAT_CORE_UTIL_WORK_SHARDER_H_

#include <functional>

#include "tensorflow/core/lib/core/threadpool.h"

namespace tensorflow {

// Calls workers->ParallelFor, or runs only on the calling thread if max_parallelism <= 1.
void Shard(int max_parallelism, thread::ThreadPool* workers, int64 total, int64 cost_per_unit,
           std::function<void(int64, int64)> work);

// No effect: SessionOptions and RunOptions limit the threads.
inline void SetPerThreadMaxParallelism(int) {}

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_UTIL_WORK_SHARDER_H_
