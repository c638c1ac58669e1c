// Var: a variable as a resource of the program's own kernels. gradflow's variables have another
// class (gradflow/core/variable.h).
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_RESOURCE_VAR_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_RESOURCE_VAR_H_

#include <atomic>
#include <string>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/resource_base.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/mutex.h"

namespace tensorflow {

class Var : public ResourceBase {
 public:
  explicit Var(DataType dtype) : tensor_(dtype) {}
  Var(const Var&) = delete;
  Var& operator=(const Var&) = delete;

  // Guards the tensor.
  mutex* mu() { return &mu_; }
  Tensor* tensor() { return &tensor_; }
  // Drops the value.
  void Uninitialize() {
    tensor_ = Tensor(tensor_.dtype());
    is_initialized = false;
  }
  std::string DebugString() const override {
    return absl::StrCat(DataTypeString(tensor_.dtype()), "/", tensor_.shape().DebugString());
  }

  bool is_initialized = false;
  std::atomic<bool> copy_on_read_mode{false};

 private:
  mutex mu_;
  Tensor tensor_;
};

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_RESOURCE_VAR_H_
