// Recomputation: copies of nodes of the forward pass that compute tensors again for the backward
// pass, so that these need not be kept. Not for users.
#ifndef GRADFLOW_GRADIENTS_RECOMPUTATION_H_
#define GRADFLOW_GRADIENTS_RECOMPUTATION_H_

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gradflow/graph/node.h"
#include "gradflow/graph/ops.h"
#include "gradflow/graph/scope.h"

namespace gradflow::gradients {

class Recomputation {
 public:
  // Adds copies to `scope`. The tensors of `kept` are not computed again, nor are those of nodes
  // that are not in `order`, the nodes between inputs and outputs in topological order.
  Recomputation(const Scope& scope, const std::vector<const Node*>& order,
                absl::flat_hash_set<const Node*> kept);

  // Chooses nodes to keep, about the square root of their number, such that as few tensors as
  // possible are used across the cuts between them.
  static absl::flat_hash_set<const Node*> ChooseKept(const std::vector<const Node*>& order,
                                                     const absl::flat_hash_set<const Node*>& kept);

  // Returns a node like `node` whose inputs and outputs are computed again, unless they are kept:
  // what the gradient function of the node may read. Computation starts after all that was passed
  // to StartAfter.
  absl::StatusOr<const Node*> ForGradient(const Node& node);
  // Passes a gradient that has been added. Without the order, gradients that nothing waits for
  // would be computed last, and what they read would be kept until then.
  void StartAfter(const Output& gradient) { finished_.push_back(gradient.node()); }
  // Returns `dy` for the next gradient function: after several gradients, a copy that waits for
  // them.
  absl::StatusOr<Output> Ordered(const Scope& scope, const Output& dy);

 private:
  bool IsKept(const Node* node) const { return recomputed_.count(node) == 0; }
  bool IsReady(const Node* node) const { return IsKept(node) || copies_.contains(node); }
  absl::StatusOr<const Node*> Copy(const Node& node);
  absl::StatusOr<const Node*> CopyNode(const Node& node);
  absl::Status AddBarrier();

  const Scope scope_;
  // Apart from the scopes of gradients, which have the names of their nodes.
  const Scope copies_scope_;
  absl::flat_hash_set<const Node*> recomputed_;
  absl::flat_hash_map<const Node*, const Node*> copies_;
  // A node that waits for gradients. Those added since then.
  const Node* barrier_ = nullptr;
  std::vector<const Node*> finished_;
};

}  // namespace gradflow::gradients

#endif  // GRADFLOW_GRADIENTS_RECOMPUTATION_H_
