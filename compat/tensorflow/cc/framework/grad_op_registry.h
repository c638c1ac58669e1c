// GradOpRegistry and REGISTER_GRADIENT_OP; see gradflow/gradients/gradient_registry.h.
#ifndef GRADFLOW_COMPAT_CC_FRAMEWORK_GRAD_OP_REGISTRY_H_
#define GRADFLOW_COMPAT_CC_FRAMEWORK_GRAD_OP_REGISTRY_H_

#include <string>
#include <utility>

#include "gradflow/gradients/gradient_registry.h"
#include "tensorflow/cc/framework/ops.h"
#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {
namespace ops {

// A function object in gradflow, a pointer in TensorFlow.
using GradFunc = ::gradflow::GradientFunction;

// gradflow's registry under TensorFlow's name.
class GradOpRegistry {
 public:
  static GradOpRegistry* Global() {
    static auto* const registry = new GradOpRegistry;
    return registry;
  }
  // A null function means that the op has no gradient.
  bool Register(const std::string& op, GradFunc func) {
    return ::gradflow::GradientRegistry::Global().Register(op, std::move(func));
  }
  // Stores null in *func if the op has no gradient. Returns NOT_FOUND if the op is not registered.
  Status Lookup(const std::string& op, GradFunc* func) const {
    absl::StatusOr<GradFunc> found = ::gradflow::GradientRegistry::Global().Find(op);
    if (found.ok()) *func = *std::move(found);
    return found.status();
  }
};

}  // namespace ops
}  // namespace tensorflow

#define GRADFLOW_COMPAT_REGISTER_GRADIENT(unique, name, fn)       \
  [[maybe_unused]] static const bool gradflow_gradient_##unique = \
      ::tensorflow::ops::GradOpRegistry::Global()->Register(name, fn)
#define GRADFLOW_COMPAT_REGISTER_GRADIENT_UNIQ(unique, name, fn) \
  GRADFLOW_COMPAT_REGISTER_GRADIENT(unique, name, fn)

// Registers the gradient function of an op, in a source file of the program.
#define REGISTER_GRADIENT_OP(name, fn) GRADFLOW_COMPAT_REGISTER_GRADIENT_UNIQ(__COUNTER__, name, fn)
// Registers that an op has no gradient.
#define REGISTER_NO_GRADIENT_OP(name) \
  GRADFLOW_COMPAT_REGISTER_GRADIENT_UNIQ(__COUNTER__, name, nullptr)

#endif  // GRADFLOW_COMPAT_CC_FRAMEWORK_GRAD_OP_REGISTRY_H_
