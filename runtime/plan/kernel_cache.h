// KernelCache: the kernels of a graph's nodes, each made when a plan first needs it, and the
// results of constant folding (passes.h).
//
// Plans of one graph share their kernels, so a constant that several plans use is decoded once, and
// the state that a kernel keeps for its node is the same for all fetches. A node keeps its id as
// long as its graph lives. The graph must outlive the cache.
//
// The nodes of a function have kernels for each call of the function (CallSite), because a kernel
// may hold state, such as the position of a stream of random numbers.
//
// Thread safety: all methods require exclusive access. The kernels may run concurrently.
#ifndef GRADFLOW_RUNTIME_PLAN_KERNEL_CACHE_H_
#define GRADFLOW_RUNTIME_PLAN_KERNEL_CACHE_H_

#include <cstdint>
#include <list>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/resource_manager.h"
#include "gradflow/core/tensor.h"
#include "gradflow/graph/node.h"
#include "gradflow/graph/tables.h"
#include "gradflow/runtime/plan/call_site.h"

namespace gradflow {

struct KernelRegistration;
class FunctionBody;
class OpRegistration;

// A kernel without inputs that produces the outputs of a folded node. Valid for plans that feed
// nothing that the node needs.
struct FoldedNode {
  // Null if the node is not folded.
  std::shared_ptr<const OpKernel> kernel;
  // Bytes of the tensors that the kernel holds.
  int64_t bytes = 0;
};

// Returns the value that a constant's kernel keeps for output `output`. Returns an unset tensor if
// the kernel keeps no value: it then decodes the value in each run, within the run's memory limit.
Tensor KeptValue(const OpKernel& kernel, const Node& constant, int output);

class KernelCache {
 public:
  // Nodes that read frozen variables of `resources`, which may be null, have constant inputs.
  explicit KernelCache(std::shared_ptr<const ResourceManager> resources = nullptr)
      : resources_(std::move(resources)), sites_(1) {}

  // Returns the site at which `node` of site `caller` calls `body`. Adds it on the first call. It
  // lives as long as the cache.
  const CallSite* SiteOf(const CallSite* caller, const Node& node, const FunctionBody& body);

  // Returns the kernel of a node of a site, which lives as long as the cache. Errors, such as an
  // attribute that the kernel rejects, begin with "node 'path/name' (Op): ". After an error, the
  // next call tries again.
  absl::StatusOr<const OpKernel*> Get(const CallSite* site, const Node& node);
  // Returns the kernel if it has been made, otherwise null.
  const OpKernel* Find(const CallSite* site, const Node& node) const;
  // Drops the kernel; a later Get() makes it again. REQUIRES: no plan uses it
  void Drop(const CallSite* site, const Node& node);
  // Makes another kernel for a node that reads the value `constant` in every run.
  absl::StatusOr<std::unique_ptr<OpKernel>> Make(const Node& node, const Tensor& constant);

  // Finds or adds a folded node of the session's graph. Evicts the oldest folded nodes while their
  // total size exceeds max_bytes.
  FoldedNode FindFolded(const Node& node) const;
  void AddFolded(const Node& node, FoldedNode folded, int64_t max_bytes);
  // NeverFold() excludes from folding a node that fails or takes too much work.
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
  // Returns the value of the largest constant or frozen variable among the node's inputs, if its
  // kernel keeps it; otherwise an unset tensor.
  Tensor LargestConstant(const CallSite* site, const Node& node) const;
  // Returns the value of the variable that `source` reads if the variable is frozen; otherwise an
  // unset tensor.
  Tensor FrozenValue(const CallSite* site, Node::Source source) const;
  // If *source is an argument of an inlined function, replaces *source and *site by the source of
  // the caller's input and its site.
  static void FollowArgument(const CallSite** site, Node::Source* source);

  // A node's id and its folded form.
  using Folded = std::pair<int, FoldedNode>;

  struct Site {
    // Null for the session's graph.
    std::unique_ptr<const CallSite> call_site;
    // Indexed by node id; null if not made.
    std::vector<std::unique_ptr<OpKernel>> kernels;
  };
  using SiteKey = std::tuple<const CallSite*, const Node*, const FunctionBody*>;

  static int32_t IndexOf(const CallSite* site) { return site == nullptr ? 0 : site->index; }

  // May be null.
  const std::shared_ptr<const ResourceManager> resources_;
  // Indexed by CallSite::index; the first is the session's graph.
  std::vector<Site> sites_;
  absl::flat_hash_map<SiteKey, int32_t> site_indexes_;
  // Caches look-ups: finding a kernel takes longer than making it.
  absl::flat_hash_map<const OpRegistration*, KernelsOfOp> kernels_of_ops_;
  // Newest last.
  std::list<Folded> folded_;
  int64_t folded_bytes_ = 0;
  // Keyed by node id.
  internal::HashMap<int, std::list<Folded>::iterator> folded_by_id_;
  internal::HashSet<int> not_folded_;
};

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_PLAN_KERNEL_CACHE_H_
