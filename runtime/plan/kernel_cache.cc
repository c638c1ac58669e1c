#include "gradflow/runtime/plan/kernel_cache.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/graph_impl.h"
#include "gradflow/graph/node_checks.h"
#include "gradflow/graph/node_kernel.h"
#include "gradflow/runtime/plan/op_traits.h"

namespace gradflow {
Tensor KeptValue(const OpKernel& kernel, const Node& constant, int output) {
  if (!kernel.IsCheap()) return Tensor(Tensor::Unset{});
  absl::InlinedVector<Tensor, 1> outputs(constant.output_types().size(), Tensor(Tensor::Unset{}));
  const RunContext run;
  KernelContext context({}, absl::MakeSpan(outputs), constant.output_types(), run);
  if (!kernel.Compute(context).ok()) return Tensor(Tensor::Unset{});
  return std::move(outputs[static_cast<size_t>(output)]);
}

absl::StatusOr<const KernelRegistration*> KernelCache::FindKernel(const Node& node) {
  const auto [it, is_new] = kernels_of_ops_.try_emplace(&node.op());
  KernelsOfOp& kernels = it->second;
  if (is_new) kernels.types_decide = AttrsThatFollowFromTypes(node.op_def()).types;
  const bool types_decide =
      kernels.types_decide && node.requested_device().empty() && !internal::HasExtraAttrs(node);
  const DataTypeVector* const types = &node.output_types();
  if (types_decide) {
    for (const auto& [known_types, kernel] : kernels.by_types) {
      if (known_types == types) return kernel;
    }
  }
  GRADFLOW_ASSIGN_OR_RETURN(const KernelRegistration* const kernel,
                            node.graph().registry().FindKernel(node.def()));
  if (types_decide) kernels.by_types.emplace_back(types, kernel);
  return kernel;
}

Tensor KernelCache::LargestConstant(const Node& node) const {
  // Smaller ones are not worth keeping anything for.
  constexpr int64_t kMinElements = 256;
  const Node* largest = nullptr;
  int64_t elements = kMinElements - 1;
  for (const Node::Source& input : node.sources()) {
    const Node* source = input.node;
    // Frozen graphs have one behind each constant.
    if (input.output == 0 && source->type_string() == "Identity")
      source = source->sources()[0].node;
    if (input.output != 0 || !source->IsConstant()) continue;
    const int64_t size = source->output_shape(0).num_elements();
    if (size <= elements) continue;
    largest = source;
    elements = size;
  }
  if (largest == nullptr) return Tensor(Tensor::Unset{});
  const OpKernel* const kernel = Find(*largest);
  return kernel == nullptr ? Tensor(Tensor::Unset{}) : KeptValue(*kernel, *largest, 0);
}

const OpKernel* KernelCache::Find(const Node& node) const {
  const size_t id = static_cast<size_t>(node.id());
  return id < kernels_.size() ? kernels_[id].get() : nullptr;
}

void KernelCache::Drop(const Node& node) {
  const size_t id = static_cast<size_t>(node.id());
  if (id < kernels_.size()) kernels_[id] = nullptr;
}

absl::StatusOr<const OpKernel*> KernelCache::Get(const Node& node) {
  const size_t id = node.id();
  if (id >= kernels_.size()) {
    kernels_.resize(std::max<size_t>(id + 1, node.graph().num_nodes()));
  }
  if (kernels_[id] == nullptr) {
    const auto make = [&]() -> absl::Status {
      GRADFLOW_ASSIGN_OR_RETURN(const KernelRegistration* const registration, FindKernel(node));
      const Tensor constant = LargestConstant(node);
      GRADFLOW_ASSIGN_OR_RETURN(
          kernels_[id],
          internal::MakeNodeKernel(
              node, *registration,
              constant.dtype() == DT_INVALID ? internal::DecodedConstant(node) : &constant));
      return absl::OkStatus();
    };
    if (absl::Status status = make(); !status.ok()) {
      return errors::Prefix(internal::NodePrefix(node.def()), status);
    }
  }
  return kernels_[id].get();
}

absl::StatusOr<std::unique_ptr<OpKernel>> KernelCache::Make(const Node& node,
                                                            const Tensor& constant) {
  GRADFLOW_ASSIGN_OR_RETURN(const KernelRegistration* const registration, FindKernel(node));
  return internal::MakeNodeKernel(node, *registration, &constant);
}

FoldedNode KernelCache::FindFolded(const Node& node) const {
  const auto it = folded_by_id_.find(node.id());
  return it == folded_by_id_.end() ? FoldedNode() : it->second->second;
}

void KernelCache::AddFolded(const Node& node, FoldedNode folded, int64_t max_bytes) {
  if (folded.bytes > max_bytes || folded_by_id_.count(node.id()) > 0) return;
  folded_bytes_ += folded.bytes;
  folded_.emplace_back(node.id(), std::move(folded));
  folded_by_id_[node.id()] = std::prev(folded_.end());
  while (folded_bytes_ > max_bytes) {
    const auto& [id, oldest] = folded_.front();
    folded_bytes_ -= oldest.bytes;
    folded_by_id_.erase(id);
    folded_.pop_front();
  }
}

}  // namespace gradflow
