// Scope: gradflow::Scope. In TensorFlow 1.x programs, Scope is a class that converts to and from
// gradflow::Scope, and whose statuses are tensorflow::Status. Its sub-scopes have the same class.
#ifndef GRADFLOW_COMPAT_CC_FRAMEWORK_SCOPE_H_
#define GRADFLOW_COMPAT_CC_FRAMEWORK_SCOPE_H_

#include <string>
#include <utility>
#include <vector>

#include "gradflow/graph/node_builder.h"
#include "gradflow/graph/scope.h"
#include "tensorflow/cc/framework/ops.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow/core/lib/gtl/array_slice.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {

#ifndef GRADFLOW_TENSORFLOW_V1

using gradflow::CompositeOpScopes;
using gradflow::Scope;

#else

struct CompositeOpScopes;

class Scope : public gradflow::Scope {
 public:
  Scope(gradflow::Scope scope) : gradflow::Scope(std::move(scope)) {}  // NOLINT: both are one

  static Scope NewRootScope() { return gradflow::Scope::NewRootScope(); }
  static Scope DisabledShapeInferenceScope() {
    return gradflow::Scope::DisabledShapeInferenceScope();
  }

  Scope NewSubScope(absl::string_view name) const { return gradflow::Scope::NewSubScope(name); }
  template <typename... Parts>
  Scope WithOpName(const Parts&... parts) const {
    return gradflow::Scope::WithOpName(parts...);
  }
  Scope WithControlDependencies(gtl::ArraySlice<Operation> control_deps) const {
    return gradflow::Scope::WithControlDependencies(control_deps);
  }
  Scope WithControlDependencies(const Output& control_dep) const {
    return gradflow::Scope::WithControlDependencies(control_dep);
  }
  Scope WithNoControlDependencies() const { return gradflow::Scope::WithNoControlDependencies(); }
  Scope WithDevice(absl::string_view device) const { return gradflow::Scope::WithDevice(device); }
  Scope WithAssignedDevice(absl::string_view device) const {
    return gradflow::Scope::WithAssignedDevice(device);
  }
  Scope ColocateWith(const Operation& op) const { return gradflow::Scope::ColocateWith(op); }
  Scope ColocateWith(const Output& output) const { return gradflow::Scope::ColocateWith(output); }
  Scope ClearColocation() const { return gradflow::Scope::ClearColocation(); }
  Scope ExitOnError() const { return gradflow::Scope::ExitOnError(); }
  Scope WithKernelLabel(absl::string_view label) const {
    return gradflow::Scope::WithKernelLabel(label);
  }
  CompositeOpScopes GetCompositeOpScopes(absl::string_view composite_op_name) const;

  Status status() const { return gradflow::Scope::status(); }
  Status ToGraphDef(GraphDef* graph_def, bool include_debug_info = false) const {
    return gradflow::Scope::ToGraphDef(graph_def, include_debug_info);
  }
  Status ToGraph(Graph* graph) const { return gradflow::Scope::ToGraph(graph); }
};

struct CompositeOpScopes {
  // For all ops except the last.
  Scope child;
  // For the last op.
  Scope last;
};

inline CompositeOpScopes Scope::GetCompositeOpScopes(absl::string_view composite_op_name) const {
  gradflow::CompositeOpScopes scopes = gradflow::Scope::GetCompositeOpScopes(composite_op_name);
  return {std::move(scopes.child), std::move(scopes.last)};
}

#endif  // GRADFLOW_TENSORFLOW_V1

// Adds an op with single inputs to the scope. Stores output 0 in *output, or an empty Output if the
// op has no outputs.
inline Status CreateOutputWithScope(absl::string_view op_name, gtl::ArraySlice<Input> inputs,
                                    const Scope& scope, Output* output) {
  gradflow::OpBuilder builder(scope, op_name);
  for (const Input& input : inputs) builder.Input(input);
  const Operation operation = builder.Finish();
  if (scope.ok())
    *output = operation.num_outputs() > 0 ? operation.output(0) : Output(operation, 0);
  return scope.status();
}

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CC_FRAMEWORK_SCOPE_H_
