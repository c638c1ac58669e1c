// FunctionLibrary: the functions of a graph, and an instance for each set of attribute values that
// a function is called with.
//
// A function is instantiated when a plan first reaches a call of it: its nodes become a separate
// Graph, with all checks. Functions that no plan reaches get only the checks of imports (import.h),
// so a graph may hold functions with ops that are not registered.
//
// Thread safety: all members may be called from several threads while no thread adds functions.
#ifndef GRADFLOW_GRAPH_FUNCTION_LIBRARY_H_
#define GRADFLOW_GRAPH_FUNCTION_LIBRARY_H_

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gradflow/core/types.h"
#include "gradflow/graph/graph.h"
#include "gradflow/graph/node.h"

#pragma GCC visibility push(default)
namespace gradflow {

class FunctionDef;
class GraphDef;
class NameAttrList;
class NodeDef;
class OpRegistration;
class Registry;

namespace internal {
class FunctionBodyBuilder;
class GraphImpl;
}  // namespace internal

// One function with values for its attributes. Immutable; lives as long as the library.
class FunctionBody {
 public:
  // The name of the function, for errors and traces.
  const std::string& name() const { return name_; }
  // The nodes. Arguments are _Arg nodes (or _DeviceArg), results _Retval nodes (or _DeviceRetval).
  // graph().functions() is the library that this body belongs to.
  const Graph& graph() const { return *graph_; }
  // The argument nodes, by index.
  absl::Span<const Node* const> args() const { return args_; }
  // Returns the index of the argument that a node of graph() stands for, or -1 if the node is no
  // argument.
  int arg_index(const Node& node) const {
    // The first nodes are the arguments, in order.
    return static_cast<size_t>(node.id()) < args_.size() ? node.id() : -1;
  }
  // The sources of the results, by index.
  absl::Span<const Node::Source> results() const { return results_; }
  // Nodes that each call runs even if no result needs them, in the order of the nodes: the control
  // outputs, stateful nodes except arguments and results, and calls of functions that have such
  // nodes.
  absl::Span<const Node* const> effects() const { return effects_; }
  const DataTypeVector& arg_types() const { return arg_types_; }
  const DataTypeVector& result_types() const { return result_types_; }

 private:
  friend class internal::FunctionBodyBuilder;
  explicit FunctionBody(std::string name) : name_(std::move(name)) {}

  const std::string name_;
  std::unique_ptr<const Graph> graph_;
  std::vector<const Node*> args_;
  std::vector<Node::Source> results_;
  std::vector<const Node*> effects_;
  DataTypeVector arg_types_;
  DataTypeVector result_types_;
};

class FunctionLibrary {
 public:
  ~FunctionLibrary();
  FunctionLibrary(const FunctionLibrary&) = delete;
  FunctionLibrary& operator=(const FunctionLibrary&) = delete;

  // Returns null if there is no such function. The result lives as long as the library.
  const FunctionDef* Find(absl::string_view name) const;
  // Returns the instance for the attributes that the function's signature declares. Ignores other
  // attributes. Makes the instance on the first call. Errors begin with the name of the function:
  //
  //   NOT_FOUND           there is no such function, or an op of the body is not registered
  //   INVALID_ARGUMENT    the attributes or the body are wrong
  //   RESOURCE_EXHAUSTED  the instances of the library need too much memory. They may take eight
  //                       times the bytes of the functions, plus 256 MiB.
  absl::StatusOr<const FunctionBody*> Instantiate(const NameAttrList& function) const;
  // Overload for a node whose op is the name of a function.
  absl::StatusOr<const FunctionBody*> Instantiate(const NodeDef& call) const;

 private:
  friend class internal::FunctionBodyBuilder;
  friend class internal::GraphImpl;
  struct Impl;

  // `root` is the GraphDef of the graph that owns the library.
  FunctionLibrary(const Registry& registry, const GraphDef& root);

  // Adds a function, which must outlive the library. REQUIRES: no function has its name
  void Add(const FunctionDef* function);
  // The number of functions.
  size_t size() const;
  // Returns the name of function `i`, in the order of Add().
  const std::string& name(size_t i) const;
  // A function is closed if all functions that it calls by name, directly or not, are in the
  // library. Functions that are added later cannot call each other through it.
  bool IsClosed(absl::string_view name) const;
  // REQUIRES: the function is in the library and closed
  void SetClosed(absl::string_view name);
  // Removes all functions but the first `size`.
  void Truncate(size_t size);
  // Sets whether later instances infer shapes. By default they do.
  void SetInferShapes(bool infer);
  // Returns the op whose nodes call function `name`. Returns NOT_FOUND if there is no such
  // function, INVALID_ARGUMENT if its signature is not valid.
  absl::StatusOr<const OpRegistration*> FindOp(absl::string_view name) const;

  const std::unique_ptr<Impl> impl_;
};

// Returns the functions that the node calls: {f} for a call, {then_branch, else_branch} for If, the
// branches for Case, {cond, body} for While, {body} for For, and none for other nodes. Instantiates
// them, and checks that the node's inputs and outputs have the number and types of their arguments
// and results. Returns the errors of FunctionLibrary::Instantiate(), or INVALID_ARGUMENT. Errors
// name the attribute and the function; the caller adds the name of the node.
absl::StatusOr<std::vector<const FunctionBody*>> CalledFunctions(const Node& node);

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_GRAPH_FUNCTION_LIBRARY_H_
