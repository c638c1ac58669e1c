#include "gradflow/runtime/plan/plan_rewriter.h"

#include "absl/strings/str_cat.h"
#include "gradflow/core/attributes.h"
#include "gradflow/core/op_def_util.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/graph.h"
#include "gradflow/proto/node_def.pb.h"
#include "gradflow/runtime/plan/op_traits.h"

namespace gradflow {

absl::Status CheckPlanStop(const PlanGraph& graph, int32_t node, const RunLimits& limits,
                           StopToken* stop) {
  if (!stop->Check()) return absl::OkStatus();
  const std::string prefix = PlanNodePrefix(graph.origin_at_site(node), graph.label(node));
  return errors::Prefix(absl::StrCat(prefix, "not planned, since "), WhyStopped(*stop, limits));
}

PlanRewriter::PlanRewriter(const PassContext& context, PlanGraph* graph)
    : context_(context),
      graph_(*graph),
      stop_(context.limits.cancelled, context.limits.closed),
      order_(graph->order().begin(), graph->order().end()),
      uses_(graph->FindUses()) {}

int32_t PlanRewriter::OnlyReader(int32_t node) const {
  const PlanGraph::Use& use = uses_[node];
  return use.count == 1 && use.input >= 0 && use.first_output ? use.reader : -1;
}

bool PlanRewriter::IsOp(int32_t node, absl::string_view op) const {
  const Node& origin = graph_.origin(node);
  return origin.type_string() == op && graph_.label(node) == nullptr &&
         graph_.kernel(node) == nullptr && IsPure(origin);
}

const std::string& PlanRewriter::OpOf(int32_t node) const {
  const PlanNodeLabel* const label = graph_.label(node);
  return label == nullptr ? graph_.origin(node).type_string() : label->op;
}

absl::StatusOr<const OpKernel*> PlanRewriter::KernelOf(int32_t node) {
  if (graph_.has_known_value(node) || graph_.stateful(node)) return nullptr;
  if (const OpKernel* const kernel = graph_.kernel(node).get()) return kernel;
  const Node& origin = graph_.origin(node);
  if (!IsPure(origin)) return nullptr;
  return context_.kernels->Get(graph_.site(node), origin);
}

bool PlanRewriter::ConstantOf(PlanGraph::Value source, Tensor* value, int32_t* constant) {
  while (!source.is_feed() && !graph_.has_known_value(source.node) &&
         graph_.origin(source.node).type_string() == "Identity" &&
         graph_.num_edges(source.node) == 1) {
    source = graph_.edge(source.node, 0);
  }
  if (source.is_feed() || graph_.num_edges(source.node) > 0) return false;
  if (constant != nullptr) *constant = source.node;
  const Node& node = graph_.origin(source.node);
  const OpKernel* kernel = graph_.kernel(source.node).get();
  if (kernel == nullptr) {
    if (!node.IsConstant()) return false;
    const CallSite* const site = graph_.site(source.node);
    if (context_.kernels->Find(site, node) == nullptr) read_.insert({site, &node});
    const absl::StatusOr<const OpKernel*> made = context_.kernels->Get(site, node);
    // The node remains in the plan, whose layout returns the error.
    if (!made.ok()) return false;
    kernel = *made;
  }
  *value = KeptValue(*kernel, node, source.output);
  return value->IsInitialized();
}

void PlanRewriter::DropUnreadConstants() {
  for (const int32_t node : graph_.order()) read_.erase({graph_.site(node), &graph_.origin(node)});
  for (const auto& [site, constant] : read_) context_.kernels->Drop(site, *constant);
  read_.clear();
}

absl::StatusOr<std::shared_ptr<const OpKernel>> PlanRewriter::MakeKernel(
    const Node& like, absl::string_view op,
    absl::Span<const std::pair<const char*, DataType>> attrs,
    absl::Span<const DataType> input_types, absl::Span<const DataType> output_types) {
  NodeDef node;
  node.set_op(std::string(op));
  for (const auto& [name, dtype] : attrs) AddNodeAttr(name, dtype, &node);
  const Registry& registry = like.graph().registry();
  GRADFLOW_ASSIGN_OR_RETURN(const OpRegistration* const found, registry.LookUpOp(node.op()));
  AddDefaultsToNodeDef(found->def(), &node);
  GRADFLOW_ASSIGN_OR_RETURN(const KernelRegistration* const registration,
                            registry.FindKernel(node));
  return registration->factory(KernelConstruction(node, found->def(), input_types, output_types));
}

PlanNodeLabel PlanRewriter::LabelFor(absl::Span<const int32_t> nodes, absl::string_view op) const {
  PlanNodeLabel result;
  result.name = graph_.origin_at_site(nodes.back()).name();
  result.op = std::string(op);
  for (const int32_t node : nodes) {
    if (const PlanNodeLabel* const label = graph_.label(node)) {
      result.origins.insert(result.origins.end(), label->origins.begin(), label->origins.end());
    } else {
      result.origins.push_back(graph_.origin_at_site(node));
    }
  }
  return result;
}

PlanGraph::NewNode PlanRewriter::NewNodeFor(absl::Span<const int32_t> nodes,
                                            absl::string_view op) const {
  PlanGraph::NewNode result;
  result.label = LabelFor(nodes, op);
  for (const int32_t node : nodes) {
    for (int e = graph_.num_inputs(node); e < graph_.num_edges(node); ++e) {
      const PlanGraph::Value value = graph_.edge(node, e);
      if (!value.is_feed()) result.control_inputs.push_back(value.node);
    }
  }
  result.output_types = {BaseType(graph_.output_types(nodes.back())[0])};
  result.device = graph_.device(nodes.back());
  return result;
}

PlanGraph::Value PlanRewriter::AddConstant(PlanNodeLabel label, const Tensor& value,
                                           uint8_t device) {
  PlanGraph::NewNode constant;
  constant.label = std::move(label);
  constant.kernel = MakeFolded({value}).kernel;
  constant.output_types = {value.dtype()};
  constant.device = device;
  return {graph_.AddNode(std::move(constant)), 0};
}

int32_t PlanRewriter::Replace(int32_t node, PlanGraph::NewNode by) {
  const int32_t added = graph_.AddNode(std::move(by));
  std::vector<PlanGraph::Value> outputs(graph_.output_types(node).size(), {added, 0});
  graph_.Replace(node, added, std::move(outputs));
  return added;
}

}  // namespace gradflow
