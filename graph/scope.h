// Scope: adds ops to a graph, and sets their names, devices and other properties.
//
//   Scope root = Scope::NewRootScope();
//   Scope layer = root.NewSubScope("layer").WithDevice("/cpu:0");
//   Output w = ops::Const(layer.WithOpName("w"), {1.f, 2.f});   // "layer/w"
//   Output y = ops::Square(layer, w);                           // "layer/Square"
//   GraphDef graph;
//   absl::Status status = root.ToGraphDef(&graph);
//
// A scope is cheap to copy. All scopes that derive from one root share its graph and its status.
// The status keeps the first error. After an error, ops add no nodes and return empty outputs.
//
// Names are made unique as in TensorFlow: the second "Square" is "Square_1", and the second
// NewSubScope("layer") is "layer_1".
//
// Scopes are not thread-safe, because scopes of one root share state.
#ifndef GRADFLOW_GRAPH_SCOPE_H_
#define GRADFLOW_GRAPH_SCOPE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gradflow/graph/graph.h"
#include "gradflow/graph/ops.h"

#pragma GCC visibility push(default)
namespace gradflow {

class GraphDef;
class NodeBuilder;
class Registry;
class Scope;
struct CompositeOpScopes;

namespace internal {
class UniqueNames;
// Returns the sub-scope `name` without reserving the name, so that `scope` keeps no memory for it.
// Internal. REQUIRES: no other op or sub-scope has the name
Scope SubScopeOfUnusedName(const Scope& scope, absl::string_view name);
// Returns a scope over a new graph that has the functions of the caller's graph. The new graph
// keeps the caller's graph alive. Internal.
Scope NewScopeOfFunction(const Scope& caller);
}  // namespace internal

class Scope {
 public:
  // A copy shares the graph and the status. A move is a copy, as in TensorFlow: a moved-from scope
  // can still be used.
  Scope(const Scope&) = default;
  Scope& operator=(const Scope&) = default;

  // Returns a scope over a new graph. Ops come from GlobalRegistry() or from `registry`, which is
  // borrowed.
  static Scope NewRootScope();
  static Scope NewRootScope(const Registry& registry);
  // NewRootScope() without shape inference.
  static Scope DisabledShapeInferenceScope();
  static Scope DisabledShapeInferenceScope(const Registry& registry);

  // ---- Copies of this scope with other settings ----

  // Adds `name` and "/" to the prefix of op names, and drops the name of WithOpName(). An empty
  // name adds no prefix.
  Scope NewSubScope(absl::string_view name) const;
  // Names ops with the concatenated parts instead of their type. A name that is already taken gets
  // a suffix: "w_1".
  template <typename... Parts>
  Scope WithOpName(const Parts&... parts) const {
    return WithOpNameImpl(absl::StrCat(parts...));
  }
  // Adds control dependencies: ops run after `control_deps`.
  Scope WithControlDependencies(absl::Span<const Operation> control_deps) const;
  Scope WithControlDependencies(const Output& control_dep) const;
  Scope WithNoControlDependencies() const;
  Scope WithDevice(absl::string_view device) const;
  // Overrides WithDevice.
  Scope WithAssignedDevice(absl::string_view device) const;
  // Colocates ops with `op`, or with the ops that `op` is colocated with.
  Scope ColocateWith(const Operation& op) const;
  Scope ColocateWith(const Output& output) const { return ColocateWith(output.op()); }
  Scope ClearColocation() const;
  // Makes an error end the program (std::abort) after printing it.
  Scope ExitOnError() const;
  // Selects kernels that are registered with this label.
  Scope WithKernelLabel(absl::string_view kernel_label) const;

  // ---- For code that adds ops ----

  // Reserves and returns a unique full name for an op. The name derives from WithOpName() or, if
  // none was set, from `default_name`.
  std::string GetUniqueNameForOp(absl::string_view default_name) const;
  // Returns the scopes of a composite op, which consists of several ops. In a root scope, the last
  // op has the name of the composite, "b", and the other ops are "b/...". In a sub-scope "a", the
  // other ops are "a/b/...", but the last op is "a_a/b", as in TensorFlow. The scope of the last op
  // can be used once.
  CompositeOpScopes GetCompositeOpScopes(absl::string_view composite_op_name) const;
  // Sets control dependencies, device, colocation, kernel label and shape inference of a node.
  void UpdateBuilder(NodeBuilder* builder) const;
  // Sets the status unless it already holds an error.
  void UpdateStatus(const absl::Status& status) const;
  // Does nothing: shapes are inferred when a node is added. For code written for TensorFlow.
  absl::Status DoShapeInference(const Node*) const { return absl::OkStatus(); }
  const std::vector<Operation>& control_deps() const;

  // ---- The result ----

  bool ok() const;
  const absl::Status& status() const;
  Graph* graph() const;
  std::shared_ptr<Graph> graph_as_shared_ptr() const;
  // Copies the graph to *graph_def. Returns the scope's error if there is one. `include_debug_info`
  // has no effect: only imported graphs have debug information, and it is always copied.
  absl::Status ToGraphDef(GraphDef* graph_def, bool include_debug_info = false) const;
  // Adds copies of the nodes to another graph. Returns the scope's error if there is one.
  absl::Status ToGraph(Graph* graph) const;

 private:
  friend Scope internal::SubScopeOfUnusedName(const Scope& scope, absl::string_view name);
  friend Scope internal::NewScopeOfFunction(const Scope& caller);
  struct Shared;
  struct Settings;

  Scope(const Registry& registry, bool infer_shapes);

  Scope WithOpNameImpl(std::string op_name) const;
  const Settings& settings() const;
  // Returns a copy of this scope with its own settings, which the caller may change.
  Scope WithNewSettings(Settings** settings) const;
  bool single_use() const { return used_ != nullptr; }

  std::shared_ptr<Shared> shared_;
  // The names in use under `name_`.
  std::shared_ptr<internal::UniqueNames> names_;
  // Null for the defaults. Immutable, so that scopes can share them.
  std::shared_ptr<const Settings> settings_;
  // True if a single-use scope has been used. Null for other scopes.
  std::shared_ptr<bool> used_;
  std::string name_;
  std::string op_name_;
};

// The result of Scope::GetCompositeOpScopes.
struct CompositeOpScopes {
  // For every op except the last.
  Scope child;
  // For the last op.
  Scope last;
};

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_GRAPH_SCOPE_H_
