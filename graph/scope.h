// Scope: where and how ops are added to a graph.
//
//   Scope root = Scope::NewRootScope();
//   Scope layer = root.NewSubScope("layer").WithDevice("/cpu:0");
//   Output w = ops::Const(layer.WithOpName("w"), {1.f, 2.f});   // "layer/w"
//   Output y = ops::Square(layer, w);                           // "layer/Square"
//   GraphDef graph;
//   absl::Status status = root.ToGraphDef(&graph);
//
// A scope is a cheap value. All scopes that come from one root share its graph and its status: the
// first error of any of them stays, and ops added after it do nothing and are empty.
//
// Names are made unique as in TensorFlow: the second "Square" is "Square_1", and the second
// NewSubScope("layer") is "layer_1".
//
// Thread safety: none; scopes of one root share what they change.
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
  // A scope over a new graph, of the ops of GlobalRegistry() or of `registry`, which is borrowed.
  static Scope NewRootScope();
  static Scope NewRootScope(const Registry& registry);
  // The same, except that nothing infers or checks shapes while the graph is built.
  static Scope DisabledShapeInferenceScope();
  static Scope DisabledShapeInferenceScope(const Registry& registry);

  // ---- Scopes that differ from this one in one thing ----

  // Ops are named "<this>/<name>/...". An empty name gives a scope with the names of this one.
  Scope NewSubScope(absl::string_view name) const;
  // The next op has this name instead of the op's: the parts, joined. A name that is taken gets a
  // number.
  template <typename... Parts>
  Scope WithOpName(const Parts&... parts) const {
    return WithOpNameImpl(absl::StrCat(parts...));
  }
  // Ops run after these, besides those that this scope waits for.
  Scope WithControlDependencies(absl::Span<const Operation> control_deps) const;
  Scope WithControlDependencies(const Output& control_dep) const;
  Scope WithNoControlDependencies() const;
  Scope WithDevice(absl::string_view device) const;
  // A device that wins over that of WithDevice.
  Scope WithAssignedDevice(absl::string_view device) const;
  // Ops go where `op` is (and those with which `op` is colocated).
  Scope ColocateWith(const Operation& op) const;
  Scope ColocateWith(const Output& output) const { return ColocateWith(output.op()); }
  Scope ClearColocation() const;
  // The first error is printed and ends the program (std::abort).
  Scope ExitOnError() const;
  // Ops run on kernels registered with this label.
  Scope WithKernelLabel(absl::string_view kernel_label) const;

  // ---- For code that adds ops ----

  // A full name that no other op has, from the name set by WithOpName or, without one,
  // `default_name`. The name is taken from then on.
  std::string GetUniqueNameForOp(absl::string_view default_name) const;
  // For an op made of several: a scope for all ops but the last, and one that gives the last op
  // the name of the whole and can be used just once.
  CompositeOpScopes GetCompositeOpScopes(absl::string_view composite_op_name) const;
  // Control dependencies, device, colocation and kernel label of this scope.
  void UpdateBuilder(NodeBuilder* builder) const;
  // Keeps `status` unless there is an error already.
  void UpdateStatus(const absl::Status& status) const;
  // Does nothing: shapes are inferred when a node is added. For code written for TensorFlow.
  absl::Status DoShapeInference(const Node*) const { return absl::OkStatus(); }
  const std::vector<Operation>& control_deps() const;

  // ---- What was built ----

  bool ok() const;
  const absl::Status& status() const;
  Graph* graph() const;
  std::shared_ptr<Graph> graph_as_shared_ptr() const;
  // The scope's error, if there is one. Debug information is only of imported graphs.
  absl::Status ToGraphDef(GraphDef* graph_def, bool include_debug_info = false) const;
  // Adds the nodes to another graph.
  absl::Status ToGraph(Graph* graph) const;

 private:
  struct Shared;
  struct Settings;

  Scope(const Registry& registry, bool infer_shapes);

  Scope WithOpNameImpl(std::string op_name) const;
  const Settings& settings() const;
  // A scope whose settings are a copy of this one's, to be changed.
  Scope WithNewSettings(Settings** settings) const;
  bool single_use() const { return used_ != nullptr; }

  std::shared_ptr<Shared> shared_;
  // The names taken under `name_`.
  std::shared_ptr<internal::UniqueNames> names_;
  // Null for those of a root. Shared by scopes until one changes them.
  std::shared_ptr<const Settings> settings_;
  // Of a single-use scope: whether it has been used. Null for others.
  std::shared_ptr<bool> used_;
  std::string name_;
  std::string op_name_;
};

// What Scope::GetCompositeOpScopes returns.
struct CompositeOpScopes {
  // For every op but the last.
  Scope child;
  // For the last op.
  Scope last;
};

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_GRAPH_SCOPE_H_
