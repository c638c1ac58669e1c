// KernelCache: the kernels of a graph's nodes, each made when a plan first needs it.
//
// Plans of one graph share their kernels, so that a constant which several plans use is decoded
// once, and what a kernel keeps for its node is the same whatever is fetched. A node keeps its id
// for as long as its graph lives, which the cache must not outlive.
//
// Thread safety: Get needs exclusive access; the kernels it returns may be run concurrently.
#ifndef GRADFLOW_RUNTIME_KERNEL_CACHE_H_
#define GRADFLOW_RUNTIME_KERNEL_CACHE_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/graph/node.h"

namespace gradflow {

class KernelCache {
 public:
  // The kernel of a node; it lives as long as the cache. Errors, also of attributes that the
  // kernel does not accept, begin with "node 'name' (Op): ". A kernel that could not be made is
  // tried again.
  absl::StatusOr<const OpKernel*> Get(const Node& node);

 private:
  // By the node's id; null if not made.
  std::vector<std::unique_ptr<OpKernel>> kernels_;
};

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_KERNEL_CACHE_H_
