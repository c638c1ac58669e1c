// Scope: adds ops to a graph, with a name, a device and other properties for them.
//
//   Scope root = Scope::NewRootScope();
//   Scope layer = root.NewSubScope("layer").WithDevice("/cpu:0");
//   Output w = ops::Const(layer.WithOpName("w"), {1.f, 2.f});   // "layer/w"
//   Output y = ops::Square(layer, w);                           // "layer/Square"
//   GraphDef graph;
//   absl::Status status = root.ToGraphDef(&graph);
//
// A scope is a value that is cheap to copy. All scopes that derive from one root share its graph
// and its status. The first error stays; ops that are added after it do nothing and are empty.
//
// Names are made unique as in TensorFlow: the second "Square" is "Square_1", and the second
// NewSubScope("layer") is "layer_1".
//
// Thread safety: none. Scopes of one root share state.
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
struct CompositeOpScopes;

namespace internal {
class UniqueNames;
}  // namespace internal

class Scope {
 public:
  // A copy shares the graph and the status. As in TensorFlow, a move is a copy: a scope that has
  // been moved from can still be used.
  Scope(const Scope&) = default;
  Scope& operator=(const Scope&) = default;

  // Returns a scope over a new graph, with the ops of GlobalRegistry() or of `registry`, which is
  // borrowed.
  static Scope NewRootScope();
  static Scope NewRootScope(const Registry& registry);
  // NewRootScope without shape inference.
  static Scope DisabledShapeInferenceScope();
  static Scope DisabledShapeInferenceScope(const Registry& registry);

  // ---- Each returns a copy of this scope with one change ----

  // Names ops "<this>/<name>/...". An empty name keeps the names of this scope.
  Scope NewSubScope(absl::string_view name) const;
  // Names the next op by the parts, joined, instead of by its type. A name that is taken gets a
  // number.
  template <typename... Parts>
  Scope WithOpName(const Parts&... parts) const {
    return WithOpNameImpl(absl::StrCat(parts...));
  }
  // Makes ops run after these, in addition to the control dependencies of this scope.
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
  // Prints the first error and ends the program (std::abort).
  Scope ExitOnError() const;
  // Makes ops run on kernels registered with this label.
  Scope WithKernelLabel(absl::string_view kernel_label) const;

  // ---- For code that adds ops ----

  // Takes and returns a full name that no other op has, made from the name set by WithOpName or, if
  // there is none, from `default_name`.
  std::string GetUniqueNameForOp(absl::string_view default_name) const;
  // Returns the scopes of an op that is composed of several: one for all ops but the last, and one
  // for the last, which names it after the whole and can be used once.
  CompositeOpScopes GetCompositeOpScopes(absl::string_view composite_op_name) const;
  // Sets control dependencies, device, colocation and kernel label of a node.
  void UpdateBuilder(NodeBuilder* builder) const;
  // Sets the status unless there is an error already.
  void UpdateStatus(const absl::Status& status) const;
  // Does nothing, since shapes are inferred when a node is added. For code written for TensorFlow.
  absl::Status DoShapeInference(const Node*) const { return absl::OkStatus(); }
  const std::vector<Operation>& control_deps() const;

  // ---- The result ----

  bool ok() const;
  const absl::Status& status() const;
  Graph* graph() const;
  std::shared_ptr<Graph> graph_as_shared_ptr() const;
  // Returns the scope's error if there is one, otherwise writes the graph. Only imported graphs
  // have debug information.
  absl::Status ToGraphDef(GraphDef* graph_def, bool include_debug_info = false) const;
  // Returns the scope's error if there is one, otherwise adds the nodes to another graph.
  absl::Status ToGraph(Graph* graph) const;

 private:
  struct Shared;
  struct Settings;

  Scope(const Registry& registry, bool infer_shapes);

  Scope WithOpNameImpl(std::string op_name) const;
  const Settings& settings() const;
  // Returns a copy of this scope with settings of its own, to be changed.
  Scope WithNewSettings(Settings** settings) const;
  bool single_use() const { return used_ != nullptr; }

  std::shared_ptr<Shared> shared_;
  // The names that are taken under `name_`.
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
  // For every op but the last.
  Scope child;
  // For the last op.
  Scope last;
};

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_GRAPH_SCOPE_H_
