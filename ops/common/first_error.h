// FirstError: the error of the first element for which a parallel loop fails.
#ifndef GRADFLOW_OPS_COMMON_FIRST_ERROR_H_
#define GRADFLOW_OPS_COMMON_FIRST_ERROR_H_

#include <cstdint>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "gradflow/core/mutex.h"

namespace gradflow {

// Thread-safe.
class FirstError {
 public:
  // Keeps `status`, the error of element `i`, unless an earlier element has an error.
  void Found(int64_t i, absl::Status status) {
    MutexLock lock(&mutex_);
    if (!status_.ok() && i_ <= i) return;
    i_ = i;
    status_ = std::move(status);
  }
  // Returns OK if no element has an error.
  absl::Status status() {
    MutexLock lock(&mutex_);
    return status_;
  }

 private:
  Mutex mutex_;
  int64_t i_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gradflow

#endif  // GRADFLOW_OPS_COMMON_FIRST_ERROR_H_
