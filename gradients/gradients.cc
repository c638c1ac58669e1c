#include "gradflow/gradients/gradients.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gradflow/core/call_safely.h"
#include "gradflow/core/out_parameter.h"
#include "gradflow/core/status.h"
#include "gradflow/gradients/functional.h"
#include "gradflow/gradients/gradient_helpers.h"
#include "gradflow/gradients/recomputation.h"
#include "gradflow/graph/graph.h"
#include "gradflow/graph/node.h"
#include "gradflow/graph/node_builder.h"
#include "gradflow/graph/node_checks.h"
#include "gradflow/ops/array_ops.h"
#include "gradflow/ops/math_ops.h"

namespace gradflow {
namespace {

// Returns the first sub-scope of "gradients", "gradients_1" and so on that no node of the graph
// uses. The scope does not know the names of gradients in an imported graph.
Scope UnusedSubScope(const Scope& scope) {
  // The names of existing sub-scopes, such as "gradients_1/". Collected once, because a graph may
  // have any number of them.
  absl::flat_hash_set<absl::string_view> used;
  bool is_first = true;
  for (;;) {
    Scope sub_scope = scope.NewSubScope("gradients");
    constexpr absl::string_view kAny = "any";
    const std::string name = sub_scope.GetUniqueNameForOp(kAny);
    const absl::string_view prefix(name.data(), name.size() - kAny.size());
    if (std::exchange(is_first, false)) {
      // "" or "outer/".
      const std::string parent(prefix.substr(0, prefix.rfind('/', prefix.size() - 2) + 1));
      for (int i = 0; i < scope.graph()->num_nodes(); ++i) {
        const absl::string_view node = scope.graph()->node(i)->name();
        const size_t slash = absl::StartsWith(node, parent) ? node.find('/', parent.size())
                                                            : absl::string_view::npos;
        if (slash != absl::string_view::npos) used.insert(node.substr(0, slash + 1));
      }
    }
    if (!used.contains(prefix)) return sub_scope;
  }
}

// The state of a node during backpropagation.
struct NodeState {
  bool visited = false;
  // True if the node is an input of the gradient or depends on such an input.
  bool reached = false;
  // True if the search does not visit the inputs of the node.
  bool is_last = false;
  // True if a reader of the node was not differentiated because an op without a gradient function
  // had been found.
  bool maybe = false;
  // The position of output 0 in terms_, or -1.
  int first_terms = -1;
};

// Node states by node id, in pages. A gradient of few nodes takes little time in a graph of
// millions of nodes, and a gradient of millions of nodes needs no hash table.
class NodeStates {
 public:
  NodeState& operator[](const Node* node) {
    const auto page = static_cast<size_t>(node->id()) / kPageSize;
    if (page >= pages_.size()) pages_.resize(page + 1);
    if (pages_[page] == nullptr) pages_[page] = std::make_unique<Page>();
    return (*pages_[page])[static_cast<size_t>(node->id()) % kPageSize];
  }

 private:
  static constexpr size_t kPageSize = 256;
  using Page = std::array<NodeState, kPageSize>;
  std::vector<std::unique_ptr<Page>> pages_;
};

using gradients::FunctionGradients;
using gradients::IsDifferentiable;

class GradientBuilder {
 public:
  // Adds nodes to `scope` itself. If `stop_at_inputs`, does not visit the sources of the inputs.
  // Adds functions to the scope's graph unless `functions` is given.
  GradientBuilder(const Scope& scope, const std::vector<Output>& inputs,
                  const GradientBuildOptions& options, bool stop_at_inputs = false,
                  FunctionGradients* functions = nullptr)
      : scope_(scope),
        options_(options),
        registry_(options.registry != nullptr ? *options.registry : GradientRegistry::Global()),
        functions_(functions) {
    for (const Output& input : inputs) {
      NodeState& state = states_[input.node()];
      state.reached = true;
      state.is_last = stop_at_inputs;
    }
    stops_.insert(options.stop_gradients.begin(), options.stop_gradients.end());
  }

  // Requests slices for the gradients of `inputs` where possible. Must be called before Run.
  void WantSlices(const std::vector<Output>& inputs) {
    wants_slices_.insert(inputs.begin(), inputs.end());
  }

  absl::StatusOr<std::vector<Output>> Run(const std::vector<Output>& outputs,
                                          const std::vector<Output>& inputs,
                                          const std::vector<Output>* grad_inputs) {
    std::vector<SparseGradient> sparse;
    GRADFLOW_RETURN_IF_ERROR(Run(outputs, inputs, grad_inputs, &sparse));
    std::vector<Output> gradients;
    for (const SparseGradient& gradient : sparse) gradients.push_back(gradient.dense);
    return gradients;
  }
  absl::Status Run(const std::vector<Output>& outputs, const std::vector<Output>& inputs,
                   const std::vector<Output>* grad_inputs, std::vector<SparseGradient>* gradients) {
    // Visits the last output first. Propagation goes through the nodes in reverse, so it adds
    // gradients of separate outputs in the order of the outputs, as in TensorFlow.
    for (auto output = outputs.rbegin(); output != outputs.rend(); ++output) Visit(output->node());
    for (const Output& input : inputs) {
      if (!options_.inputs_must_be_reached || states_[input.node()].visited) continue;
      return errors::InvalidArgument("Cannot compute the partial derivative for node ",
                                     internal::Quoted(input.node()->name()),
                                     " as it's unreachable from the output node(s).");
    }
    WantSlicesOfCopies();
    PrepareRecomputation(outputs, inputs);
    for (size_t i = 0; i < outputs.size(); ++i) {
      // The gradient of a handle is the gradient of its variable.
      const bool is_handle = grad_inputs != nullptr && BaseType(outputs[i].type()) == DT_RESOURCE;
      if (!is_handle && !IsDifferentiable(outputs[i].type(), options_)) continue;
      if (grad_inputs == nullptr && BaseType(outputs[i].type()) == DT_VARIANT) {
        return errors::InvalidArgument("output ", i, " is a variant, whose gradient must be given");
      }
      AddTerm(outputs[i], grad_inputs != nullptr ? (*grad_inputs)[i]
                                                 : Output(ops::OnesLike(scope_, outputs[i])));
    }
    GRADFLOW_RETURN_IF_ERROR(scope_.status());
    for (auto node = order_.rbegin(); node != order_.rend(); ++node) {
      GRADFLOW_RETURN_IF_ERROR(
          errors::Prefix(internal::NodePrefix((*node)->def()), Propagate(**node)));
    }
    if (!unknown_.empty()) return UnknownOps();
    for (const Output& input : inputs) {
      SparseGradient gradient;
      const auto slices = slices_.find(input);
      if (slices != slices_.end() && TermsOf(input).empty()) {
        gradient.dense = NoGradient();
        gradient.is_sparse = true;
        gradient.slices = Concatenate(slices->second);
      } else {
        GRADFLOW_ASSIGN_OR_RETURN(gradient.dense, SumOf(input));
      }
      gradients->push_back(gradient);
    }
    return scope_.status();
  }

 private:
  // Appends `last` and its transitive inputs that depend on an input of the gradient to order_, in
  // topological order.
  void Visit(const Node* last) {
    // The current path, with the index of the next source of each node.
    std::vector<std::pair<const Node*, int>> path;
    const auto enter = [&](const Node* node) {
      bool& visited = states_[node].visited;
      if (visited) return false;
      path.emplace_back(node, 0);
      return visited = true;
    };
    enter(last);
    while (!path.empty()) {
      const auto [node, next] = path.back();
      NodeState& state = states_[node];
      if (next == node->num_inputs() || state.is_last) {
        if (state.reached) order_.push_back(node);
        path.pop_back();
        continue;
      }
      const Node* const source = node->sources()[next].node;
      // A new source is entered first, and checked again after its own sources have been visited.
      if (enter(source)) continue;
      if (states_[source].reached) state.reached = true;
      ++path.back().second;
    }
  }

  // Prepares recomputation if the options request it. Otherwise all forward tensors are kept.
  void PrepareRecomputation(const std::vector<Output>& outputs, const std::vector<Output>& inputs) {
    if (options_.checkpoints.empty() && !options_.automatic_checkpoints) return;
    absl::flat_hash_set<const Node*> kept;
    for (const auto* list : {&outputs, &inputs, &options_.checkpoints}) {
      for (const Output& output : *list) kept.insert(output.node());
    }
    if (options_.automatic_checkpoints) {
      const auto chosen = gradients::Recomputation::ChooseKept(order_, kept);
      kept.insert(chosen.begin(), chosen.end());
    }
    recomputation_.emplace(scope_, order_, std::move(kept));
  }

  // Returns the scope for the gradient of a node. Scope names are unique because node names are.
  Scope ScopeOf(const Node& node) const {
    return options_.plain_names ? scope_ : internal::SubScopeOfUnusedName(scope_, node.name());
  }

  // ---- Slices ----

  // The gradient of the output of Identity or ReadVariableOp is also the gradient of the input.
  static bool IsCopy(const Node& node) {
    return node.type_string() == "Identity" || node.type_string() == "ReadVariableOp";
  }
  // Adds to wants_slices_ the copies of the tensors in it.
  void WantSlicesOfCopies() {
    if (wants_slices_.empty()) return;
    for (const Node* node : order_) {
      if (IsCopy(*node) && wants_slices_.contains(Operation(node).input(0))) {
        wants_slices_.insert(Output(node, 0));
      }
    }
  }
  // If the gradient of a copy is slices, adds them to the slices of the copy's input and returns
  // true.
  bool PassSlices(const Node& node) {
    if (wants_slices_.empty() || !IsCopy(node)) return false;
    const Output copy(&node, 0);
    const auto it = slices_.find(copy);
    if (it == slices_.end() || stops_.contains(copy) || !TermsOf(copy).empty()) return false;
    const absl::StatusOr<GradientFunction> function = registry_.Find(node.type_string());
    if (!function.ok() || *function == nullptr) return false;
    // Copies the slices instead of moving them, because the copy may also be an input.
    const std::vector<IndexedSlices> slices = it->second;
    std::vector<IndexedSlices>& of_source = slices_[Operation(&node).input(0)];
    of_source.insert(of_source.end(), slices.begin(), slices.end());
    return true;
  }
  // If the node gathers rows of a tensor whose gradient may be slices, adds the rows of `dy` to the
  // slices and returns true.
  absl::StatusOr<bool> AddSlices(const Node& node, const Output& dy) {
    if (wants_slices_.empty() || IsNoGradient(dy)) return false;
    const std::string& op = node.type_string();
    if (op != "Gather" && op != "GatherV2" && op != "ResourceGather") return false;
    const Output params = Operation(&node).input(0);
    if (!wants_slices_.contains(params)) return false;
    int64_t batch_dims = 0;
    if (op != "Gather") GRADFLOW_RETURN_IF_ERROR(node.GetAttr("batch_dims", &batch_dims));
    if (batch_dims != 0) return false;
    if (op == "GatherV2") {
      const Output axis = Operation(&node).input(2);
      const Tensor* const value = node.graph().ConstantValue(*axis.node(), axis.index());
      if (value == nullptr || value->NumElements() != 1) return false;
      const bool is_first = value->dtype() == DT_INT64 ? value->flat<int64_t>()(0) == 0
                                                       : value->flat<int32_t>()(0) == 0;
      if (!is_first) return false;
    }
    const Scope scope = ScopeOf(node);
    const Output indices = Operation(&node).input(1);
    IndexedSlices slices;
    slices.dense_shape = op == "ResourceGather"
                             ? OpBuilder(scope, "VariableShape").Input(params).Finish().output(0)
                             : Output(ops::Shape(scope, params));
    const Output flat = gradients::Vector(scope, {-1});
    slices.indices = ops::Reshape(scope, indices, flat);
    const Output row = ops::Slice(scope, slices.dense_shape, gradients::Vector(scope, {1}), flat);
    slices.values =
        ops::Reshape(scope, dy, ops::ConcatV2(scope, {ops::Shape(scope, slices.indices), row}, 0));
    GRADFLOW_RETURN_IF_ERROR(scope.status());
    slices_[params].push_back(slices);
    return true;
  }
  IndexedSlices Concatenate(const std::vector<IndexedSlices>& parts) {
    if (parts.size() == 1) return parts[0];
    bool is_wide = false;
    for (const IndexedSlices& part : parts) is_wide |= part.indices.type() == DT_INT64;
    std::vector<Output> values;
    std::vector<Output> indices;
    for (const IndexedSlices& part : parts) {
      values.push_back(part.values);
      const bool cast = is_wide && part.indices.type() != DT_INT64;
      indices.push_back(cast ? Output(ops::Cast(scope_, part.indices, DT_INT64)) : part.indices);
    }
    return {ops::ConcatV2(scope_, values, 0), ops::ConcatV2(scope_, indices, 0),
            parts[0].dense_shape};
  }
  // Converts the slices of `y` to a dense term, for readers that need a tensor.
  void MakeSlicesDense(const Output& y) {
    const auto it = slices_.find(y);
    if (it == slices_.end()) return;
    const IndexedSlices slices = Concatenate(it->second);
    slices_.erase(it);
    AddTerm(y, ToDense(scope_, slices));
  }

  using Terms = absl::InlinedVector<Output, 1>;

  void AddTerm(const Output& y, const Output& gradient) {
    if (!IsNoGradient(gradient)) TermsOf(y).push_back(gradient);
  }
  Terms& TermsOf(const Output& y) {
    int& first = states_[y.node()].first_terms;
    if (first < 0) {
      first = static_cast<int>(terms_.size());
      terms_.resize(terms_.size() + y.node()->num_outputs());
    }
    return terms_[first + y.index()];
  }

  // Returns the gradient of `y`. All readers of `y` must have been propagated.
  absl::StatusOr<Output> SumOf(const Output& y) {
    MakeSlicesDense(y);
    Terms& terms = TermsOf(y);
    if (terms.empty()) return NoGradient();
    if (terms.size() > 1) {
      const Output sum = ops::AddN(scope_, std::vector<Output>(terms.begin(), terms.end()));
      terms.assign(1, sum);
    }
    GRADFLOW_RETURN_IF_ERROR(scope_.status());
    return terms[0];
  }

  // Adds the gradients of a node's inputs.
  absl::Status Propagate(const Node& node) {
    // Skips the node unless one of its inputs depends on an input of the gradient.
    const bool wanted =
        std::any_of(node.sources().begin(), node.sources().begin() + node.num_inputs(),
                    [&](const Node::Source& source) { return states_[source.node].reached; });
    if (!wanted || PassSlices(node)) return absl::OkStatus();
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
    // With `maybe`, an output might have a gradient that was not computed.
    if (!any && !states_[&node].maybe) return absl::OkStatus();
    const absl::StatusOr<GradientFunction> function = registry_.Find(node.type_string());
    if (function.ok() && *function == nullptr) return absl::OkStatus();
    const bool calls = !function.ok() && FunctionGradients::Handles(node);
    if (!function.ok() && !calls) unknown_[node.type_string()].push_back(&node);
    if (!unknown_.empty()) {
      // No gradients will be returned. The error also names unknown ops among the node's sources.
      for (int i = 0; i < node.num_inputs(); ++i) states_[node.sources()[i].node].maybe = true;
      return absl::OkStatus();
    }
    GRADFLOW_ASSIGN_OR_RETURN(const bool is_done, AddSlices(node, dys[0]));
    if (is_done) return absl::OkStatus();
    const Node* forward = &node;
    if (recomputation_.has_value()) {
      for (Output& dy : dys) {
        if (IsNoGradient(dy)) continue;
        GRADFLOW_ASSIGN_OR_RETURN(dy, recomputation_->Ordered(scope_, dy));
        recomputation_->StartAfter(dy);
      }
      GRADFLOW_ASSIGN_OR_RETURN(forward, recomputation_->ForGradient(node));
    }
    std::vector<Output> dxs;
    Scope scope = ScopeOf(node);
    if (options_.colocate_gradients_with_ops) scope = scope.ColocateWith(Operation(&node));
    if (calls) {
      std::vector<bool> wanted;
      for (const Node::Source& source : node.sources().subspan(0, node.num_inputs())) {
        const DataType type = BaseType(source.node->output_type(source.output));
        wanted.push_back(states_[source.node].reached &&
                         (type == DT_RESOURCE || IsDifferentiable(type, options_)));
      }
      GRADFLOW_RETURN_IF_ERROR(functions().Add(scope, Operation(forward), wanted, dys, &dxs));
    } else {
      GRADFLOW_RETURN_IF_ERROR((*function)(scope, Operation(forward), dys, &dxs));
    }
    GRADFLOW_RETURN_IF_ERROR(scope.status());
    if (static_cast<int>(dxs.size()) != node.num_inputs()) {
      return errors::Internal("the gradient function returned ", dxs.size(),
                              " gradients, expected ", node.num_inputs());
    }
    for (int i = 0; i < node.num_inputs(); ++i) {
      const Node::Source source = node.sources()[i];
      const DataType expected = BaseType(node.input_type(i));
      // Values that do not vary continuously have no gradient. The gradient of a handle is the
      // gradient of its variable.
      const bool is_handle = expected == DT_RESOURCE;
      if (gradients::IsUnknownGradient(dxs[i]) && states_[source.node].reached) {
        return errors::Unimplemented("the derivative with respect to input ", i, " is not known");
      }
      if (IsNoGradient(dxs[i]) || !states_[source.node].reached ||
          !IsDifferentiable(is_handle ? dxs[i].type() : expected, options_)) {
        continue;
      }
      if (dxs[i].type() != expected && !is_handle) {
        // Gradient functions may return anything for an integer input, such as an index.
        if (DataTypeIsInteger(expected)) continue;
        return errors::Internal("the gradient function returned a gradient of type ",
                                DataTypeString(dxs[i].type()), " for input ", i, ", expected ",
                                DataTypeString(expected));
      }
      AddTerm(Output(source.node, source.output), dxs[i]);
      if (recomputation_.has_value()) recomputation_->StartAfter(dxs[i]);
    }
    return absl::OkStatus();
  }

  FunctionGradients& functions() {
    if (functions_ == nullptr) functions_ = &own_functions_.emplace(scope_.graph(), options_);
    return *functions_;
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
  NodeStates states_;
  absl::flat_hash_set<Output, OutputHash> stops_;
  std::vector<const Node*> order_;
  // The terms of each output's gradient. The outputs of one node are consecutive.
  std::vector<Terms> terms_;
  // Tensors whose gradients may be slices (inputs and their copies), and the slices found so far.
  absl::flat_hash_set<Output, OutputHash> wants_slices_;
  absl::flat_hash_map<Output, std::vector<IndexedSlices>, OutputHash> slices_;
  std::optional<gradients::Recomputation> recomputation_;
  // Null until a node calls functions.
  FunctionGradients* functions_;
  std::optional<FunctionGradients> own_functions_;
  // The nodes between inputs and outputs that have no gradient function, by op.
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

// If `grad_inputs` is null, the gradients of the outputs are ones.
absl::Status CheckArguments(const Scope& scope, const std::vector<Output>& outputs,
                            const std::vector<Output>& inputs,
                            const std::vector<Output>* grad_inputs,
                            const GradientBuildOptions& options) {
  GRADFLOW_RETURN_IF_ERROR(scope.status());
  GRADFLOW_RETURN_IF_ERROR(CheckOutputs(scope, "output", outputs));
  GRADFLOW_RETURN_IF_ERROR(CheckOutputs(scope, "input", inputs));
  GRADFLOW_RETURN_IF_ERROR(CheckOutputs(scope, "checkpoint", options.checkpoints));
  if (grad_inputs == nullptr) return absl::OkStatus();
  if (grad_inputs->size() != outputs.size()) {
    return errors::InvalidArgument("expected one gradient for each of ", outputs.size(),
                                   " outputs, found ", grad_inputs->size());
  }
  GRADFLOW_RETURN_IF_ERROR(
      CheckOutputs(scope, "the gradient of output", *grad_inputs, /*may_be_none=*/true));
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Output& gradient = (*grad_inputs)[i];
    if (IsNoGradient(gradient) || BaseType(gradient.type()) == BaseType(outputs[i].type())) {
      continue;
    }
    return errors::InvalidArgument("the gradient of output ", i, " has type ",
                                   DataTypeString(gradient.type()), ", expected ",
                                   DataTypeString(outputs[i].type()));
  }
  return absl::OkStatus();
}

absl::Status AddGradients(const Scope& scope, const std::vector<Output>& outputs,
                          const std::vector<Output>& inputs, const std::vector<Output>* grad_inputs,
                          std::vector<Output>* grad_outputs, const GradientBuildOptions& options) {
  return CallSafely([&]() -> absl::Status {
    GRADFLOW_RETURN_IF_ERROR(CheckArguments(scope, outputs, inputs, grad_inputs, options));
    GradientBuilder builder(options.plain_names ? scope : UnusedSubScope(scope), inputs, options);
    GRADFLOW_ASSIGN_OR_RETURN(*grad_outputs, builder.Run(outputs, inputs, grad_inputs));
    return absl::OkStatus();
  });
}

}  // namespace

absl::Status AddSymbolicGradients(const Scope& scope, const std::vector<Output>& outputs,
                                  const std::vector<Output>& inputs,
                                  const std::vector<Output>& grad_inputs,
                                  std::vector<Output>* grad_outputs,
                                  const GradientBuildOptions& options) {
  GRADFLOW_RETURN_IF_ERROR(
      internal::CheckOut(grad_outputs, "AddSymbolicGradients", "grad_outputs"));
  return AddGradients(scope, outputs, inputs, &grad_inputs, grad_outputs, options);
}

absl::Status AddSymbolicGradients(const Scope& scope, const std::vector<Output>& outputs,
                                  const std::vector<Output>& inputs,
                                  std::vector<Output>* grad_outputs,
                                  const GradientBuildOptions& options) {
  GRADFLOW_RETURN_IF_ERROR(
      internal::CheckOut(grad_outputs, "AddSymbolicGradients", "grad_outputs"));
  return AddGradients(scope, outputs, inputs, nullptr, grad_outputs, options);
}

absl::Status AddSparseSymbolicGradients(const Scope& scope, const std::vector<Output>& outputs,
                                        const std::vector<Output>& inputs,
                                        const std::vector<Output>& grad_inputs,
                                        std::vector<SparseGradient>* grad_outputs,
                                        const GradientBuildOptions& options) {
  GRADFLOW_RETURN_IF_ERROR(
      internal::CheckOut(grad_outputs, "AddSparseSymbolicGradients", "grad_outputs"));
  return CallSafely([&]() -> absl::Status {
    GRADFLOW_RETURN_IF_ERROR(CheckArguments(scope, outputs, inputs, &grad_inputs, options));
    GradientBuilder builder(options.plain_names ? scope : UnusedSubScope(scope), inputs, options);
    builder.WantSlices(inputs);
    std::vector<SparseGradient> gradients;
    GRADFLOW_RETURN_IF_ERROR(builder.Run(outputs, inputs, &grad_inputs, &gradients));
    *grad_outputs = std::move(gradients);
    return absl::OkStatus();
  });
}

Output ToDense(const Scope& scope, const IndexedSlices& slices) {
  const Output rows = ops::GatherV2(scope, slices.dense_shape, 0, 0);
  return ops::UnsortedSegmentSum(scope, slices.values, slices.indices, rows);
}

namespace gradients {

absl::StatusOr<std::vector<Output>> AddGradientsIn(const Scope& scope,
                                                   const std::vector<Output>& outputs,
                                                   const std::vector<Output>& inputs,
                                                   const std::vector<Output>& grad_inputs,
                                                   const GradientBuildOptions& options) {
  GRADFLOW_RETURN_IF_ERROR(CheckArguments(scope, outputs, inputs, &grad_inputs, options));
  return GradientBuilder(scope, inputs, options).Run(outputs, inputs, &grad_inputs);
}

bool IsDifferentiable(DataType dtype, const GradientBuildOptions& options) {
  const DataType base = BaseType(dtype);
  // Variants may be lists of numbers.
  return DataTypeIsFloating(base) || DataTypeIsComplex(base) || base == DT_VARIANT ||
         (options.of_integers && DataTypeIsInteger(base));
}

absl::StatusOr<std::vector<Output>> AddGradientsOfFunction(const Scope& scope,
                                                           const std::vector<Output>& ys,
                                                           const std::vector<Output>& xs,
                                                           const std::vector<Output>& dys,
                                                           const GradientBuildOptions& options,
                                                           FunctionGradients* functions) {
  return GradientBuilder(UnusedSubScope(scope), xs, options, /*stop_at_inputs=*/true, functions)
      .Run(ys, xs, &dys);
}

absl::Status DifferentiateFormula(const Scope& scope, const std::vector<Output>& inputs,
                                  const Formula& formula, const std::vector<Output>& dys,
                                  std::vector<Output>* dx) {
  std::vector<Output> xs;
  for (const Output& input : inputs) xs.push_back(ops::Identity(scope, input));
  std::vector<Output> ys = formula(scope, xs);
  ys.resize(std::min(ys.size(), dys.size()));
  const std::vector<Output> some_dys(dys.begin(), dys.begin() + static_cast<int>(ys.size()));
  GRADFLOW_RETURN_IF_ERROR(scope.status());
  GRADFLOW_ASSIGN_OR_RETURN(
      const std::vector<Output> dxs,
      GradientBuilder(scope, xs, {}, /*stop_at_inputs=*/true).Run(ys, xs, &some_dys));
  dx->insert(dx->end(), dxs.begin(), dxs.end());
  return scope.status();
}

}  // namespace gradients

Output NoGradient() { return Output(nullptr, -1); }
bool IsNoGradient(const Output& output) { return output.node() == nullptr; }

}  // namespace gradflow
