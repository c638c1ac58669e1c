#include "gradflow/runtime/plan/kernel_cache.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/function_library.h"
#include "gradflow/graph/graph_impl.h"
#include "gradflow/graph/node_checks.h"
#include "gradflow/graph/node_kernel.h"
#include "gradflow/runtime/plan/frozen_variables.h"
#include "gradflow/runtime/plan/op_traits.h"
#include "gradflow/runtime/plan/plan_graph.h"

namespace gradflow {
Tensor KeptValue(const OpKernel& kernel, const Node& constant, int output) {
  if (!kernel.IsCheap()) return Tensor(Tensor::Unset{});
  absl::InlinedVector<Tensor, 1> outputs(constant.output_types().size(), Tensor(Tensor::Unset{}));
  const RunContext run;
  KernelContext context({}, absl::MakeSpan(outputs), constant.output_types(), run);
  if (!kernel.Compute(context).ok()) return Tensor(Tensor::Unset{});
  return std::move(outputs[static_cast<size_t>(output)]);
}

const CallSite* KernelCache::SiteOf(const CallSite* caller, const Node& node,
                                    const FunctionBody& body) {
  const auto index = static_cast<int32_t>(sites_.size());
  const auto [it, is_new] = site_indexes_.try_emplace({caller, &node, &body}, index);
  if (!is_new) return sites_[it->second].call_site.get();
  // A recursion may be of any depth.
  constexpr size_t kMaxPath = 1024;
  auto site = std::make_unique<CallSite>();
  site->caller = caller;
  site->node = &node;
  site->body = &body;
  site->index = index;
  site->path = absl::StrCat(caller == nullptr ? "" : caller->path, node.name(), "/");
  if (site->path.size() > kMaxPath) site->path = absl::StrCat(".../", node.name(), "/");
  sites_.emplace_back().call_site = std::move(site);
  return sites_.back().call_site.get();
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

void KernelCache::FollowArgument(const CallSite** site, Node::Source* source) {
  while (*site != nullptr && source->node->op().functional() == FunctionalOp::kArg) {
    const CallSite& call = **site;
    // The arguments of other kinds of calls change between runs.
    if (call.node->op().functional() != FunctionalOp::kCall) return;
    const int arg = call.body->arg_index(*source->node);
    if (arg < 0) return;
    *source = call.node->sources()[arg];
    *site = call.caller;
  }
}

Tensor KernelCache::LargestConstant(const CallSite* site, const Node& node) const {
  // Smaller constants are not worth a prepared copy.
  constexpr int64_t kMinElements = 256;
  Node::Source largest;
  const CallSite* largest_site = site;
  Tensor largest_variable(Tensor::Unset{});
  int64_t elements = kMinElements - 1;
  for (Node::Source source : node.sources()) {
    const CallSite* source_site = site;
    if (source.output < 0) continue;
    FollowArgument(&source_site, &source);
    // Frozen graphs have an Identity after each constant.
    if (source.output == 0 && source.node->type_string() == "Identity") {
      source = source.node->sources()[0];
      FollowArgument(&source_site, &source);
    }
    if (source.output != 0) continue;
    if (!source.node->IsConstant()) {
      Tensor value = FrozenValue(source_site, source);
      if (!value.IsInitialized() || value.NumElements() <= elements) continue;
      elements = value.NumElements();
      largest_variable = std::move(value);
      largest = {};
      continue;
    }
    const int64_t size = source.node->output_shape(0).num_elements();
    if (size <= elements) continue;
    largest = source;
    largest_site = source_site;
    elements = size;
    largest_variable = Tensor(Tensor::Unset{});
  }
  if (largest_variable.IsInitialized()) return largest_variable;
  if (largest.node == nullptr) return Tensor(Tensor::Unset{});
  const OpKernel* const kernel = Find(largest_site, *largest.node);
  return kernel == nullptr ? Tensor(Tensor::Unset{}) : KeptValue(*kernel, *largest.node, 0);
}

Tensor KernelCache::FrozenValue(const CallSite* site, Node::Source source) const {
  const Tensor none(Tensor::Unset{});
  if (resources_ == nullptr) return none;
  if (source.node->type_string() == "ReadVariableOp") {
    source = source.node->sources()[0];
    FollowArgument(&site, &source);
  } else if (!IsRefType(source.node->output_type(source.output))) {
    return none;
  }
  const std::shared_ptr<const Variable> variable = FrozenVariableOf(*source.node, *resources_);
  return variable == nullptr ? none : variable->Read().value_or(none);
}

const OpKernel* KernelCache::Find(const CallSite* site, const Node& node) const {
  const auto& kernels = sites_[IndexOf(site)].kernels;
  const size_t id = static_cast<size_t>(node.id());
  return id < kernels.size() ? kernels[id].get() : nullptr;
}

void KernelCache::Drop(const CallSite* site, const Node& node) {
  auto& kernels = sites_[IndexOf(site)].kernels;
  const size_t id = static_cast<size_t>(node.id());
  if (id < kernels.size()) kernels[id] = nullptr;
}

absl::StatusOr<const OpKernel*> KernelCache::Get(const CallSite* site, const Node& node) {
  auto& kernels = sites_[IndexOf(site)].kernels;
  const size_t id = node.id();
  if (id >= kernels.size()) {
    kernels.resize(std::max<size_t>(id + 1, node.graph().num_nodes()));
  }
  if (kernels[id] == nullptr) {
    const auto make = [&]() -> absl::Status {
      GRADFLOW_ASSIGN_OR_RETURN(const KernelRegistration* const registration, FindKernel(node));
      const Tensor constant = LargestConstant(site, node);
      GRADFLOW_ASSIGN_OR_RETURN(
          kernels[id],
          internal::MakeNodeKernel(
              node, *registration,
              constant.dtype() == DT_INVALID ? internal::DecodedConstant(node) : &constant));
      return absl::OkStatus();
    };
    if (absl::Status status = make(); !status.ok()) {
      return errors::Prefix(PlanNodePrefix({&node, site}), status);
    }
  }
  return kernels[id].get();
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
