// ThreadPoolOptions: the threads of one run.
#ifndef GRADFLOW_COMPAT_CORE_PLATFORM_THREADPOOL_OPTIONS_H_
#define GRADFLOW_COMPAT_CORE_PLATFORM_THREADPOOL_OPTIONS_H_

#include "tensorflow/core/platform/threadpool_interface.h"

namespace tensorflow {
namespace thread {

// Threads that a program provides for a run. gradflow uses its own threads, so a run with a pool
// returns UNIMPLEMENTED.
struct ThreadPoolOptions {
  ThreadPoolInterface* inter_op_threadpool = nullptr;
  ThreadPoolInterface* intra_op_threadpool = nullptr;
};

}  // namespace thread
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_PLATFORM_THREADPOOL_OPTIONS_H_
