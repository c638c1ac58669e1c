// KernelCache: the kernels of a graph's nodes, each made when a plan first needs it, and the
// results of constant folding (passes.h).
//
// Plans of one graph share their kernels, so a constant that several plans use is decoded once, and
// the state that a kernel keeps for its node is the same for all fetches. A node keeps its id as
// long as its graph lives. The graph must outlive the cache.
//
// Thread safety: all methods require exclusive access. The kernels may run concurrently.
#ifndef GRADFLOW_RUNTIME_PLAN_KERNEL_CACHE_H_
#define GRADFLOW_RUNTIME_PLAN_KERNEL_CACHE_H_

#include <cstdint>
#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/tensor.h"
#include "gradflow/graph/node.h"
#include "gradflow/graph/tables.h"

namespace gradflow {

struct KernelRegistration;
class OpRegistration;

// A kernel without inputs that produces the outputs of a folded node, as long as nothing that the
// node needs is fed.
struct FoldedNode {
  // Null for none.
  std::shared_ptr<const OpKernel> kernel;
  // Bytes of the tensors that the kernel holds.
  int64_t bytes = 0;
};

// Returns output `output` of a constant, whose kernel keeps it. Returns an unset tensor if the
// kernel does not: it then decodes the value in each run, within the run's limit of memory.
Tensor KeptValue(const OpKernel& kernel, const Node& constant, int output);

class KernelCache {
 public:
  // Returns the kernel of a node, which lives as long as the cache. Errors begin with "node 'name'
  // (Op): ", and include attributes that the kernel rejects. A kernel that could not be made is
  // tried again on the next call.
  absl::StatusOr<const OpKernel*> Get(const Node& node);
  // Returns the kernel if it has been made, otherwise null.
  const OpKernel* Find(const Node& node) const;
  // Drops the kernel, which a later Get() makes again. REQUIRES: no plan has it
  void Drop(const Node& node);
  // Makes a further kernel of a node, one of whose inputs is `constant` in each run.
  absl::StatusOr<std::unique_ptr<OpKernel>> Make(const Node& node, const Tensor& constant);

  // Finds or adds a folded node. Keeps the latest folded nodes whose total size is at most
  // max_bytes.
  FoldedNode FindFolded(const Node& node) const;
  void AddFolded(const Node& node, FoldedNode folded, int64_t max_bytes);
  // Excludes nodes from folding that fail or take long.
  bool MayBeFolded(const Node& node) const { return not_folded_.count(node.id()) == 0; }
  void NeverFold(const Node& node) { not_folded_.insert(node.id()); }

 private:
  // The kernels of an op by the types of nodes (Node::output_types()), if the types determine the
  // kernel.
  struct KernelsOfOp {
    bool types_decide = false;
    absl::InlinedVector<std::pair<const DataTypeVector*, const KernelRegistration*>, 1> by_types;
  };
  absl::StatusOr<const KernelRegistration*> FindKernel(const Node& node);
  // Returns the value of the largest constant among the node's inputs, if its kernel keeps it;
  // otherwise an unset tensor.
  Tensor LargestConstant(const Node& node) const;

  // A node's id and its folded form.
  using Folded = std::pair<int, FoldedNode>;

  // By the node's id; null if not made.
  std::vector<std::unique_ptr<OpKernel>> kernels_;
  // Caches look-ups: finding a kernel takes longer than making it.
  absl::flat_hash_map<const OpRegistration*, KernelsOfOp> kernels_of_ops_;
  // The latest is last.
  std::list<Folded> folded_;
  int64_t folded_bytes_ = 0;
  // By the node's id.
  internal::HashMap<int, std::list<Folded>::iterator> folded_by_id_;
  internal::HashSet<int> not_folded_;
};

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_PLAN_KERNEL_CACHE_H_
