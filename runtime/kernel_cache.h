// KernelCache: the kernels of a graph's nodes, each made when a plan first needs it, and what has
// been found out by running nodes of constants (optimize.h).
//
// Plans of one graph share their kernels, so that a constant which several plans use is decoded
// once, and what a kernel keeps for its node is the same whatever is fetched. A node keeps its id
// for as long as its graph lives, which the cache must not outlive.
//
// Thread safety: all of it needs exclusive access; the kernels may be run concurrently.
#ifndef GRADFLOW_RUNTIME_KERNEL_CACHE_H_
#define GRADFLOW_RUNTIME_KERNEL_CACHE_H_

#include <cstdint>
#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/graph/node.h"

namespace gradflow {

struct KernelRegistration;
class OpRegistration;

// Gives what a node gives if nothing that it needs is fed, without any inputs.
struct FoldedNode {
  // Null for none.
  std::shared_ptr<const OpKernel> kernel;
  // Of the tensors that it holds.
  int64_t bytes = 0;
};

class KernelCache {
 public:
  // The kernel of a node; it lives as long as the cache. Errors, also of attributes that the
  // kernel does not accept, begin with "node 'name' (Op): ". A kernel that could not be made is
  // tried again.
  absl::StatusOr<const OpKernel*> Get(const Node& node);

  // Of the nodes that were folded, as many of the latest are kept as hold max_bytes together.
  FoldedNode FindFolded(const Node& node) const;
  void AddFolded(const Node& node, FoldedNode folded, int64_t max_bytes);
  // Nodes that are not to be folded, since they fail or take long.
  bool MayBeFolded(const Node& node) const { return !not_folded_.contains(node.id()); }
  void NeverFold(const Node& node) { not_folded_.insert(node.id()); }

 private:
  // The kernels of an op by the types of nodes (Node::output_types()), where those decide.
  struct KernelsOfOp {
    bool types_decide = false;
    absl::InlinedVector<std::pair<const DataTypeVector*, const KernelRegistration*>, 1> by_types;
  };
  absl::StatusOr<const KernelRegistration*> FindKernel(const Node& node);

  // A node's id and what it was folded to.
  using Folded = std::pair<int, FoldedNode>;

  // By the node's id; null if not made.
  std::vector<std::unique_ptr<OpKernel>> kernels_;
  // Looking for a kernel takes longer than making it.
  absl::flat_hash_map<const OpRegistration*, KernelsOfOp> kernels_of_ops_;
  // The latest last.
  std::list<Folded> folded_;
  int64_t folded_bytes_ = 0;
  // By the node's id.
  absl::flat_hash_map<int, std::list<Folded>::iterator> folded_by_id_;
  absl::flat_hash_set<int> not_folded_;
};

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_KERNEL_CACHE_H_
