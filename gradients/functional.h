// Gradients of calls of functions, branches and loops. Internal.
//
// The gradient of a call calls a new function, which computes the gradients of the arguments from
// the arguments and the gradients of the results. It computes again the values of the function that
// it needs. Planning merges these nodes with the nodes of the inlined call.
//
//   If, Case  the gradient is a branch of the same kind, whose functions are the gradients of the
//             functions
//   While     a copy of the loop keeps the variables of each iteration in lists. A second loop
//             takes them from the lists and computes the gradients of the variables, from the
//             last iteration to the first
#ifndef GRADFLOW_GRADIENTS_FUNCTIONAL_H_
#define GRADFLOW_GRADIENTS_FUNCTIONAL_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gradflow/core/types.h"
#include "gradflow/gradients/gradients.h"
#include "gradflow/graph/function_builder.h"
#include "gradflow/graph/function_library.h"
#include "gradflow/graph/graph.h"
#include "gradflow/graph/ops.h"
#include "gradflow/graph/scope.h"
#include "gradflow/proto/attr_value.pb.h"
#include "gradflow/proto/function.pb.h"

namespace gradflow::gradients {

// Returns true if tensors of the type, or lists of them, may have gradients.
bool IsDifferentiable(DataType dtype, const GradientBuildOptions& options);

class FunctionGradients;
// Adds the gradients of `xs` to a function, given the gradients `dys` of `ys`. Functions that the
// gradients call go to `functions`.
absl::StatusOr<std::vector<Output>> AddGradientsOfFunction(const Scope& scope,
                                                           const std::vector<Output>& ys,
                                                           const std::vector<Output>& xs,
                                                           const std::vector<Output>& dys,
                                                           const GradientBuildOptions& options,
                                                           FunctionGradients* functions);

// The functions that one call of AddSymbolicGradients adds.
class FunctionGradients {
 public:
  // Adds functions to `graph`. Uses only `registry` and `of_integers` of the options.
  FunctionGradients(Graph* graph, const GradientBuildOptions& options);
  ~FunctionGradients();

  // Returns true for calls, If, Case and While.
  static bool Handles(const Node& node);

  // Adds the gradients of the inputs that `wanted` selects, like a gradient function
  // (gradient_registry.h). Returns UNIMPLEMENTED if the gradients need values that cannot be
  // computed again: random numbers, effects, or variables that the function writes.
  absl::Status Add(const Scope& scope, const Operation& op, const std::vector<bool>& wanted,
                   const std::vector<Output>& dys, std::vector<Output>* dxs);

  // Adds a function of the arguments of `body` and the gradients of all its results. It returns a
  // gradient for each argument; gradients that do not exist are zeros. `scope` is over the graph.
  absl::StatusOr<NameAttrList> AddComplete(const Scope& scope, const FunctionBody& body);

 private:
  class Body;
  // A function that has been added. Lists hold indexes of arguments and results of the original
  // function.
  struct Function {
    NameAttrList name;
    // The arguments: these arguments, followed by the gradients of these results.
    std::vector<int> xs;
    std::vector<int> dys;
    // The results: the gradients of these arguments, and their types.
    std::vector<int> dxs;
    DataTypeVector types;
    bool is_stateful = false;
  };
  // A body, the results that have gradients, and the arguments whose gradients are wanted.
  using Key = std::pair<const FunctionBody*, std::pair<std::vector<bool>, std::vector<bool>>>;

  absl::Status AddOfCall(const Scope& scope, const Operation& op, const FunctionBody& body,
                         const std::vector<bool>& wanted, const std::vector<Output>& dys,
                         std::vector<Output>* dxs);
  absl::Status AddOfBranches(const Scope& scope, const Operation& op,
                             const std::vector<const FunctionBody*>& bodies,
                             const std::vector<bool>& wanted, const std::vector<Output>& dys,
                             std::vector<Output>* dxs);
  absl::Status AddOfWhile(const Scope& scope, const Operation& op, const FunctionBody& condition,
                          const FunctionBody& body, const std::vector<bool>& wanted,
                          const std::vector<Output>& dys, std::vector<Output>* dxs);
  // Adds the gradient function that the graph's library declares for the called function.
  absl::Status AddDeclared(const Scope& scope, const Operation& op, const std::string& gradient,
                           const std::vector<Output>& dys, std::vector<Output>* dxs);
  // Returns the name of that function, or an empty name.
  std::string DeclaredGradient(const FunctionBody& body);
  // Returns, for each argument, whether it is the handle of a variable that the function writes.
  // `depth` is the number of callers.
  std::vector<bool> WrittenArgs(const FunctionBody& body, size_t depth);
  // Returns the gradients of the arguments `wanted` for gradients of the results `has_dy`.
  absl::StatusOr<Body*> GradientsOf(const Scope& scope, const FunctionBody& body,
                                    const std::vector<bool>& has_dy,
                                    const std::vector<bool>& wanted);

  // Adds a function under a new name that begins with `prefix`.
  absl::StatusOr<NameAttrList> AddFunction(const std::string& prefix, FunctionDef function);

  Graph& graph_;
  GradientBuildOptions options_;
  // The gradients that are being built, outermost first.
  std::vector<Key> path_;
  // The gradients that have been built, and the functions of calls. Each is made once, because
  // functions may call each other many times.
  std::map<Key, std::unique_ptr<Body>> bodies_;
  std::map<Key, Function> known_;
  std::optional<absl::flat_hash_map<std::string, std::string>> declared_;
  absl::flat_hash_map<const FunctionBody*, std::vector<bool>> written_args_;
  // The number of nodes that gradient functions have copied.
  int64_t num_copies_ = 0;
};

}  // namespace gradflow::gradients

#endif  // GRADFLOW_GRADIENTS_FUNCTIONAL_H_
