#include "gradflow/gradients/gradients.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gradflow/core/call_safely.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/node.h"
#include "gradflow/graph/node_checks.h"
#include "gradflow/ops/array_ops.h"
#include "gradflow/ops/math_ops.h"

namespace gradflow {
namespace {

// Returns a sub-scope "gradients", or "gradients_1" and so on, under whose name the graph has no
// nodes: an imported graph may have gradients that the scope does not know.
Scope UnusedSubScope(const Scope& scope) {
  for (;;) {
    Scope sub_scope = scope.NewSubScope("gradients");
    constexpr absl::string_view kAny = "any";
    const std::string name = sub_scope.GetUniqueNameForOp(kAny);
    const absl::string_view prefix(name.data(), name.size() - kAny.size());
    bool is_used = false;
    for (int i = 0; i < scope.graph()->num_nodes() && !is_used; ++i) {
      is_used = absl::StartsWith(scope.graph()->node(i)->name(), prefix);
    }
    if (!is_used) return sub_scope;
  }
}

bool IsDifferentiable(DataType dtype) {
  return DataTypeIsFloating(BaseType(dtype)) || DataTypeIsComplex(BaseType(dtype));
}

class GradientBuilder {
 public:
  GradientBuilder(const Scope& scope, const std::vector<Output>& inputs,
                  const GradientBuildOptions& options)
      : scope_(UnusedSubScope(scope)),
        options_(options),
        registry_(options.registry != nullptr ? *options.registry : GradientRegistry::Global()) {
    for (const Output& input : inputs) reached_.insert(input.node());
    stops_.insert(options.stop_gradients.begin(), options.stop_gradients.end());
  }

  absl::StatusOr<std::vector<Output>> Run(const std::vector<Output>& outputs,
                                          const std::vector<Output>& inputs,
                                          const std::vector<Output>* grad_inputs) {
    for (const Output& output : outputs) Visit(output.node());
    for (size_t i = 0; i < outputs.size(); ++i) {
      AddTerm(outputs[i], grad_inputs != nullptr ? (*grad_inputs)[i]
                                                 : Output(ops::OnesLike(scope_, outputs[i])));
    }
    GRADFLOW_RETURN_IF_ERROR(scope_.status());
    for (auto node = order_.rbegin(); node != order_.rend(); ++node) {
      GRADFLOW_RETURN_IF_ERROR(
          errors::Prefix(internal::NodePrefix((*node)->def()), Propagate(**node)));
    }
    if (!unknown_.empty()) return UnknownOps();
    std::vector<Output> gradients;
    for (const Output& input : inputs) {
      GRADFLOW_ASSIGN_OR_RETURN(const Output sum, SumOf(input));
      gradients.push_back(sum);
    }
    return gradients;
  }

 private:
  // Appends `last` and those of its transitive inputs that are reached from an input of the
  // gradient to order_, in topological order.
  void Visit(const Node* last) {
    // The current path, with the next source of each node.
    std::vector<std::pair<const Node*, int>> path;
    const auto enter = [&](const Node* node) {
      if (!visited_.insert(node).second) return false;
      path.emplace_back(node, 0);
      return true;
    };
    enter(last);
    while (!path.empty()) {
      const auto [node, next] = path.back();
      if (next == node->num_inputs()) {
        if (reached_.contains(node)) order_.push_back(node);
        path.pop_back();
        continue;
      }
      const Node* const source = node->sources()[next].node;
      // Entered first; looked at again when its own sources are known.
      if (enter(source)) continue;
      if (reached_.contains(source)) reached_.insert(node);
      ++path.back().second;
    }
  }

  void AddTerm(const Output& y, const Output& gradient) {
    if (!IsNoGradient(gradient)) terms_[y].push_back(gradient);
  }

  // Returns the gradient of `y`, whose readers have all been propagated.
  absl::StatusOr<Output> SumOf(const Output& y) {
    const auto it = terms_.find(y);
    if (it == terms_.end()) return NoGradient();
    std::vector<Output>& terms = it->second;
    if (terms.size() > 1) terms = {ops::AddN(scope_, terms)};
    GRADFLOW_RETURN_IF_ERROR(scope_.status());
    return terms[0];
  }

  // Adds the gradients of a node's inputs.
  absl::Status Propagate(const Node& node) {
    std::vector<Output> dys;
    bool any = false;
    for (int i = 0; i < node.num_outputs(); ++i) {
      if (stops_.contains(Output(&node, i))) {
        dys.push_back(NoGradient());
        continue;
      }
      GRADFLOW_ASSIGN_OR_RETURN(const Output dy, SumOf(Output(&node, i)));
      any |= !IsNoGradient(dy);
      dys.push_back(dy);
    }
    // The inputs of an input of the gradient may not matter.
    const bool wanted =
        std::any_of(node.sources().begin(), node.sources().begin() + node.num_inputs(),
                    [&](const Node::Source& source) { return reached_.contains(source.node); });
    // Inputs of an unknown op might have a gradient.
    if (!(any || maybe_.contains(&node)) || !wanted) return absl::OkStatus();
    const absl::StatusOr<GradientFunction> function = registry_.Find(node.type_string());
    if (function.ok() && *function == nullptr) return absl::OkStatus();
    if (!function.ok()) unknown_[node.type_string()].push_back(&node);
    if (!unknown_.empty()) {
      // No gradients will be returned; the nodes before may be unknown, too.
      for (int i = 0; i < node.num_inputs(); ++i) maybe_.insert(node.sources()[i].node);
      return absl::OkStatus();
    }
    std::vector<Output> dxs;
    Scope scope = scope_.NewSubScope(node.name());
    if (options_.colocate_gradients_with_ops) scope = scope.ColocateWith(Operation(&node));
    GRADFLOW_RETURN_IF_ERROR((*function)(scope, Operation(&node), dys, &dxs));
    GRADFLOW_RETURN_IF_ERROR(scope.status());
    if (static_cast<int>(dxs.size()) != node.num_inputs()) {
      return errors::Internal("the gradient function returned ", dxs.size(),
                              " gradients, expected ", node.num_inputs());
    }
    for (int i = 0; i < node.num_inputs(); ++i) {
      const Node::Source source = node.sources()[i];
      const DataType expected = BaseType(node.input_type(i));
      // Numbers that do not vary continuously have no gradient. That of a handle is the gradient of
      // its variable.
      const bool is_handle = expected == DT_RESOURCE;
      if (IsNoGradient(dxs[i]) || !reached_.contains(source.node) ||
          !IsDifferentiable(is_handle ? dxs[i].type() : expected)) {
        continue;
      }
      if (dxs[i].type() != expected && !is_handle) {
        return errors::Internal("the gradient function returned a gradient of type ",
                                DataTypeString(dxs[i].type()), " for input ", i, ", expected ",
                                DataTypeString(expected));
      }
      AddTerm(Output(source.node, source.output), dxs[i]);
    }
    return absl::OkStatus();
  }

  absl::Status UnknownOps() const {
    std::vector<std::string> ops;
    for (const auto& [op, nodes] : unknown_) {
      std::string text = absl::StrCat(op, " (node ", internal::Quoted(nodes[0]->name()));
      if (nodes.size() > 1) absl::StrAppend(&text, " and ", nodes.size() - 1, " more");
      ops.push_back(absl::StrCat(text, ")"));
    }
    return errors::Unimplemented("no gradient function is registered for ",
                                 absl::StrJoin(ops, ", "));
  }

  const Scope scope_;
  const GradientBuildOptions& options_;
  const GradientRegistry& registry_;
  absl::flat_hash_set<const Node*> visited_;
  // Nodes of the inputs, and nodes that read what is reached.
  absl::flat_hash_set<const Node*> reached_;
  absl::flat_hash_set<Output, OutputHash> stops_;
  // Nodes before one without a gradient function.
  absl::flat_hash_set<const Node*> maybe_;
  std::vector<const Node*> order_;
  // The terms of each output's gradient.
  absl::flat_hash_map<Output, std::vector<Output>, OutputHash> terms_;
  // By op: the nodes between inputs and outputs that have no gradient function.
  std::map<std::string, std::vector<const Node*>> unknown_;
};

absl::Status CheckOutputs(const Scope& scope, absl::string_view what,
                          const std::vector<Output>& outputs, bool may_be_none = false) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Node* const node = outputs[i].node();
    if (may_be_none && node == nullptr) continue;
    if (node == nullptr || &node->graph() != scope.graph() ||
        outputs[i].index() >= node->num_outputs() || outputs[i].index() < 0) {
      return errors::InvalidArgument(what, " ", i, " is not a tensor of the scope's graph");
    }
  }
  return absl::OkStatus();
}

// Without `grad_inputs`, they are ones.
absl::Status AddGradients(const Scope& scope, const std::vector<Output>& outputs,
                          const std::vector<Output>& inputs, const std::vector<Output>* grad_inputs,
                          std::vector<Output>* grad_outputs, const GradientBuildOptions& options) {
  return CallSafely([&]() -> absl::Status {
    GRADFLOW_RETURN_IF_ERROR(scope.status());
    GRADFLOW_RETURN_IF_ERROR(CheckOutputs(scope, "output", outputs));
    GRADFLOW_RETURN_IF_ERROR(CheckOutputs(scope, "input", inputs));
    if (grad_inputs != nullptr) {
      if (grad_inputs->size() != outputs.size()) {
        return errors::InvalidArgument("expected one gradient for each of ", outputs.size(),
                                       " outputs, found ", grad_inputs->size());
      }
      GRADFLOW_RETURN_IF_ERROR(CheckOutputs(scope, "the gradient of output", *grad_inputs,
                                            /*may_be_none=*/true));
      for (size_t i = 0; i < outputs.size(); ++i) {
        const Output& gradient = (*grad_inputs)[i];
        if (IsNoGradient(gradient) || BaseType(gradient.type()) == BaseType(outputs[i].type())) {
          continue;
        }
        return errors::InvalidArgument("the gradient of output ", i, " has type ",
                                       DataTypeString(gradient.type()), ", expected ",
                                       DataTypeString(outputs[i].type()));
      }
    }
    GRADFLOW_ASSIGN_OR_RETURN(
        *grad_outputs, GradientBuilder(scope, inputs, options).Run(outputs, inputs, grad_inputs));
    return absl::OkStatus();
  });
}

}  // namespace

absl::Status AddSymbolicGradients(const Scope& scope, const std::vector<Output>& outputs,
                                  const std::vector<Output>& inputs,
                                  const std::vector<Output>& grad_inputs,
                                  std::vector<Output>* grad_outputs,
                                  const GradientBuildOptions& options) {
  return AddGradients(scope, outputs, inputs, &grad_inputs, grad_outputs, options);
}

absl::Status AddSymbolicGradients(const Scope& scope, const std::vector<Output>& outputs,
                                  const std::vector<Output>& inputs,
                                  std::vector<Output>* grad_outputs,
                                  const GradientBuildOptions& options) {
  return AddGradients(scope, outputs, inputs, nullptr, grad_outputs, options);
}

Output NoGradient() { return Output(nullptr, -1); }
bool IsNoGradient(const Output& output) { return output.node() == nullptr; }

}  // namespace gradflow
