// TFE_CancellationManager: a token with callbacks.
#ifndef GRADFLOW_C_EAGER_CANCELLATION_H_
#define GRADFLOW_C_EAGER_CANCELLATION_H_

#include <atomic>
#include <map>
#include <thread>

#include "gradflow/core/mutex.h"
#include "gradflow/runtime/session/cancellation.h"
#include "tensorflow/c/eager/c_api_experimental.h"

struct TFE_CancellationManager {
  const gradflow::CancellationToken token;
  // True while StartCancel() calls the callbacks. Set with the mutex.
  std::atomic<bool> cancelling{false};
  gradflow::Mutex mutex;
  // Notified when `cancelling` becomes false.
  gradflow::CondVar changed;
  // The thread that has called StartCancel().
  std::thread::id canceller ABSL_GUARDED_BY(mutex);
  TFE_CancellationToken next ABSL_GUARDED_BY(mutex) = 0;
  std::map<TFE_CancellationToken, TFE_CancelCallback> callbacks ABSL_GUARDED_BY(mutex);
};

#endif  // GRADFLOW_C_EAGER_CANCELLATION_H_
