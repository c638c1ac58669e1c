// Recomputation: copies nodes of the forward pass, so that the backward pass computes their tensors
// again instead of keeping them. Internal.
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
  // Adds copies to `scope`. `order` holds the nodes between inputs and outputs in topological
  // order. Only nodes in `order` that are not in `kept` are recomputed.
  Recomputation(const Scope& scope, const std::vector<const Node*>& order,
                absl::flat_hash_set<const Node*> kept);

  // Chooses nodes to keep in addition to `kept`. Cuts `order` about every sqrt(n) nodes, where n is
  // the number of nodes that could be recomputed. Each cut is at a place where few tensors are read
  // later. Returns the nodes of these tensors.
  static absl::flat_hash_set<const Node*> ChooseKept(const std::vector<const Node*>& order,
                                                     const absl::flat_hash_set<const Node*>& kept);

  // Returns the node that the gradient function of `node` should read: like `node`, but with
  // recomputed inputs and outputs unless they are kept. The computation starts after everything
  // that was passed to StartAfter.
  absl::StatusOr<const Node*> ForGradient(const Node& node);
  // Registers a gradient that has been added. Later copies wait for it. Otherwise gradients that no
  // node reads would be computed last, and their inputs would stay in memory until then.
  void StartAfter(const Output& gradient) { finished_.push_back(gradient.node()); }
  // Returns `dy` for the next gradient function. After several registered gradients, this is a copy
  // that waits for these gradients.
  absl::StatusOr<Output> Ordered(const Scope& scope, const Output& dy);

 private:
  bool IsKept(const Node* node) const { return recomputed_.count(node) == 0; }
  bool IsReady(const Node* node) const { return IsKept(node) || copies_.contains(node); }
  absl::StatusOr<const Node*> Copy(const Node& node);
  absl::StatusOr<const Node*> CopyNode(const Node& node);
  absl::Status AddBarrier();

  const Scope scope_;
  // Separate from the scopes of gradients, which are named after their nodes.
  const Scope copies_scope_;
  absl::flat_hash_set<const Node*> recomputed_;
  absl::flat_hash_map<const Node*, const Node*> copies_;
  // The last NoOp that waits for registered gradients, or null, and the gradients registered since.
  const Node* barrier_ = nullptr;
  std::vector<const Node*> finished_;
};

}  // namespace gradflow::gradients

#endif  // GRADFLOW_GRADIENTS_RECOMPUTATION_H_
