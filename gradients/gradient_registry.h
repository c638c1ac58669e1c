// GradientRegistry: the gradient functions of ops.
//
// A gradient function adds the ops that compute the gradients of one operation's inputs:
//
//   absl::Status GradientOfSquare(const Scope& scope, const Operation& op,
//                                 const std::vector<Output>& dy, std::vector<Output>* dx) {
//     const Output two = ops::Cast(scope, 2.0f, op.input_type(0));
//     dx->push_back(ops::Mul(scope, dy[0], ops::Mul(scope, two, op.input(0))));
//     return scope.status();
//   }
//   GradientRegistry::Global().Register("Square", GradientOfSquare);
//
// dy[i] is the gradient of output i, or NoGradient() if the differentiated outputs do not depend on
// output i. At least one output has a gradient. The function appends one element to *dx for each
// input, in order: the gradient of the input, with its type and shape, or NoGradient(). The
// gradient of a real loss L with respect to a complex z = x + iy is dL/dx + i dL/dy, as in
// TensorFlow: a holomorphic f(z) has the gradient dy * conj(f'(z)).
//
// Thread safety: all methods may be called from any thread.
#ifndef GRADFLOW_GRADIENTS_GRADIENT_REGISTRY_H_
#define GRADFLOW_GRADIENTS_GRADIENT_REGISTRY_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/mutex.h"
#include "gradflow/graph/ops.h"
#include "gradflow/graph/scope.h"

#pragma GCC visibility push(default)
namespace gradflow {

// The gradient function of an op, as described above.
using GradientFunction =
    std::function<absl::Status(const Scope& scope, const Operation& op,
                               const std::vector<Output>& dy, std::vector<Output>* dx)>;

class GradientRegistry {
 public:
  // Returns the registry with gradflow's own ops. Programs add their ops to it.
  static GradientRegistry& Global();

  // Creates an empty registry.
  GradientRegistry() = default;
  GradientRegistry(const GradientRegistry&) = delete;
  GradientRegistry& operator=(const GradientRegistry&) = delete;

  // Registers the gradient function of an op. In Global(), a program's function replaces gradflow's
  // function. Returns false, and changes nothing, if the program has already registered the op.
  bool Register(absl::string_view op, GradientFunction function);
  // Registers that the outputs of an op have no derivative with respect to its inputs.
  // Backpropagation ends at such ops. Returns false like Register().
  bool RegisterNoGradient(absl::string_view op);

  // Returns the gradient function of an op, or an empty function if the op has no derivative.
  // Returns NOT_FOUND if the op has no entry.
  absl::StatusOr<GradientFunction> Find(absl::string_view op) const;
  // Returns the ops that have a gradient function, sorted by name.
  std::vector<std::string> DifferentiableOps() const;

 private:
  struct Entry {
    GradientFunction function;
    bool is_default = false;
  };

  mutable Mutex mutex_;
  std::map<std::string, Entry, std::less<>> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_GRADIENTS_GRADIENT_REGISTRY_H_
