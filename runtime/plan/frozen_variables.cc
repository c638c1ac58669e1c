// FreezeVariables() (passes.h).
#include "gradflow/runtime/plan/frozen_variables.h"

#include <optional>
#include <string>
#include <vector>

#include "gradflow/runtime/plan/copied_values.h"
#include "gradflow/runtime/plan/deadness.h"
#include "gradflow/runtime/plan/passes.h"

namespace gradflow {

std::shared_ptr<Variable> FrozenVariableOf(const Node& node, const ResourceManager& resources) {
  const std::string& op = node.type_string();
  if (op != "VarHandleOp" && op != "VariableV2" && op != "Variable") return nullptr;
  std::string container;
  std::string name;
  node.GetAttr("container", &container).IgnoreError();
  node.GetAttr("shared_name", &name).IgnoreError();
  if (name.empty()) name = node.name();
  const auto variable = resources.Lookup<Variable>(container, name);
  return variable.ok() && (*variable)->IsFrozen() ? *variable : nullptr;
}

absl::Status FreezeVariables(const PassContext& context, PlanGraph* graph) {
  if (context.options.resources == nullptr) return absl::OkStatus();
  bool any = false;
  std::optional<CopiedValues> copied;
  std::optional<std::vector<bool>> maybe_dead;
  for (const int32_t node : graph->order()) {
    // Either an op, or a read of a reference that ResolveReferences() has added.
    const PlanNodeLabel* const label = graph->label(node);
    const bool reads = label == nullptr ? graph->is_original(node) &&
                                              graph->origin(node).type_string() == "ReadVariableOp"
                                        : label->op == "Read";
    if (!reads || graph->num_inputs(node) != 1 || graph->device(node) != 0) continue;
    if (!copied.has_value()) copied.emplace(*graph);
    const PlanGraph::Value source = copied->SourceOf(graph->edge(node, 0));
    if (source.is_feed() || !graph->is_original(source.node)) continue;
    const std::shared_ptr<Variable> variable =
        FrozenVariableOf(graph->origin(source.node), *context.options.resources);
    if (variable == nullptr) continue;
    // A constant would run even if its branch is not taken.
    if (!maybe_dead.has_value()) maybe_dead = FindMaybeDead(*graph);
    if (!maybe_dead->empty() && (*maybe_dead)[node]) continue;
    const absl::StatusOr<Tensor> value = variable->Read();
    if (!value.ok() || value->dtype() != graph->output_types(node)[0]) continue;
    graph->SetConstant(node, MakeFolded({*value}).kernel);
    any = true;
  }
  return any ? graph->Prune() : absl::OkStatus();
}

}  // namespace gradflow
