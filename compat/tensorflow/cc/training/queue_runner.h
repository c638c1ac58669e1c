// QueueRunner fills a queue. gradflow has no queues, so the class is only declared: a use is an
// error of the compiler that says so. Runners of other kinds derive from RunnerInterface.
#ifndef GRADFLOW_COMPAT_CC_TRAINING_QUEUE_RUNNER_H_
#define GRADFLOW_COMPAT_CC_TRAINING_QUEUE_RUNNER_H_

#include "tensorflow/cc/training/coordinator.h"
#include "tensorflow/core/lib/core/threadpool.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/public/session.h"

namespace tensorflow {

class [[deprecated("gradflow has no queues: feed the tensors")]] QueueRunner;

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CC_TRAINING_QUEUE_RUNNER_H_
