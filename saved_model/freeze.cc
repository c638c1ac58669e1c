#include "gradflow/saved_model/freeze.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/attributes.h"
#include "gradflow/core/call_safely.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/core/variable.h"
#include "gradflow/graph/control_flow.h"
#include "gradflow/graph/function_library.h"
#include "gradflow/graph/graph.h"
#include "gradflow/graph/node_checks.h"
#include "gradflow/graph/tensor_id.h"
#include "gradflow/saved_model/saved_graph.h"

namespace gradflow {
namespace {

// A call of a function, or the graph itself.
struct InlinedCall {
  const InlinedCall* caller = nullptr;
  // Null for the graph.
  const Node* call = nullptr;
  const FunctionBody* body = nullptr;
  // "call/", for the names of nodes.
  std::string prefix;
  int depth = 0;
};

// A tensor of the new graph, or a variable.
struct NewTensor {
  // "node" or "node:1".
  std::string name;
  // If the tensor is a handle or a reference, the node that makes it.
  const Node* variable = nullptr;
};

// The result of a node in the new graph.
struct NewNode {
  std::vector<NewTensor> outputs;
  // The nodes that a control input from the node waits for.
  std::vector<std::string> controls;
};

// Returns true if an op takes the handle of a variable and only reads the variable.
bool ReadsVariable(absl::string_view op) {
  return op == "ReadVariableOp" || op == "ResourceGather" || op == "ResourceGatherNd" ||
         op == "VariableShape" || op == "VarIsInitializedOp" || op == "DisableCopyOnRead";
}

// Changes a node that takes the handle of a variable to a node that takes the value. `axis` is the
// name of a constant zero of type int32, the axis of GatherV2. Returns false if the node takes no
// handle.
bool ReadValue(const std::string& axis, NodeDef* node) {
  auto& attrs = *node->mutable_attr();
  const auto rename = [&](const char* from, const char* to) {
    const auto found = attrs.find(from);
    if (found == attrs.end()) return;
    const AttrValue value = found->second;
    attrs.erase(found);
    attrs[to] = value;
  };
  if (node->op() == "ReadVariableOp") {
    node->set_op("Identity");
    rename("dtype", "T");
  } else if (node->op() == "ResourceGather") {
    node->set_op("GatherV2");
    rename("dtype", "Tparams");
    attrs.erase("validate_indices");
    attrs["Taxis"].set_type(DT_INT32);
    // Control inputs follow.
    node->add_input(axis);
    for (int i = node->input_size() - 1; i > 2; --i) node->mutable_input()->SwapElements(i, i - 1);
  } else if (node->op() == "ResourceGatherNd") {
    node->set_op("GatherNd");
    rename("dtype", "Tparams");
  } else if (node->op() == "VariableShape") {
    node->set_op("Shape");
  } else {
    return false;
  }
  return true;
}

// Makes functions that take the values of variables instead of their handles.
class FunctionSpecializer {
 public:
  FunctionSpecializer(const GraphDef& graph, const GraphLimits& limits) : limits_(limits) {
    for (const FunctionDef& function : graph.library().function()) {
      functions_.emplace(function.signature().name(), &function);
      names_.insert(function.signature().name());
    }
  }

  // Changes a node whose inputs at these positions have become values of these types: a call, a
  // branch or a loop.
  absl::Status ChangeCall(const std::map<int, DataType>& types, int depth, NodeDef* node) {
    const std::string& op = node->op();
    const bool is_if = op == "If" || op == "StatelessIf" || op == "Case" || op == "StatelessCase";
    const bool is_loop = op == "While" || op == "StatelessWhile";
    const bool is_call = op == "PartitionedCall" || op == "StatefulPartitionedCall";
    if (!is_if && !is_loop && !is_call) {
      return errors::Unimplemented(
          internal::NodePrefix(*node),
          "the node uses a variable; freezing takes graphs that only read variables");
    }
    // The first input of a branch is the condition.
    const int first = is_if ? 1 : 0;
    std::map<int, DataType> shifted;
    for (const auto& [i, type] : types) shifted.emplace(i - first, type);
    AttrValue* const inputs = &(*node->mutable_attr())[is_loop ? "T" : "Tin"];
    for (const auto& [i, type] : shifted) {
      if (i < 0 || i >= inputs->list().type_size()) {
        return errors::InvalidArgument(internal::NodePrefix(*node), "wrong inputs");
      }
      inputs->mutable_list()->set_type(i, type);
    }
    for (auto& [name, value] : *node->mutable_attr()) {
      std::vector<NameAttrList*> functions;
      if (value.has_func()) functions.push_back(value.mutable_func());
      if (value.has_list()) {
        for (NameAttrList& function : *value.mutable_list()->mutable_func()) {
          functions.push_back(&function);
        }
      }
      for (NameAttrList* const function : functions) {
        GRADFLOW_ASSIGN_OR_RETURN(*function->mutable_name(),
                                  Specialize(function->name(), shifted, depth + 1));
      }
    }
    return absl::OkStatus();
  }

  // Returns a function of the graph or a new one, or null.
  const FunctionDef* Find(const std::string& name) const {
    const auto found = functions_.find(name);
    return found == functions_.end() ? nullptr : found->second;
  }

 private:
  // Returns the name of a function whose arguments at these positions are values.
  absl::StatusOr<std::string> Specialize(const std::string& name,
                                         const std::map<int, DataType>& types, int depth) {
    constexpr int kMaxDepth = 50;
    const FunctionDef* const found = Find(name);
    if (found == nullptr) {
      return errors::NotFound("there is no function ", internal::Quoted(name));
    }
    if (depth > kMaxDepth) return errors::Unimplemented("calls are nested too deeply");
    const auto key = std::make_pair(name, types);
    if (const auto known = made_.find(key); known != made_.end()) return known->second;
    num_nodes_ += found->node_def_size();
    if (num_nodes_ > limits_.max_nodes) {
      return errors::InvalidArgument("expected at most ", limits_.max_nodes,
                                     " nodes of functions (GraphLimits::max_nodes)");
    }
    num_bytes_ += static_cast<int64_t>(found->ByteSizeLong());
    if (num_bytes_ > limits_.max_file_bytes) {
      return errors::InvalidArgument("expected functions of at most ", limits_.max_file_bytes,
                                     " bytes (GraphLimits::max_file_bytes)");
    }
    FunctionDef function = *found;
    std::string new_name = absl::StrCat(name, "_frozen");
    for (int i = 1; !names_.insert(new_name).second; ++i) {
      new_name = absl::StrCat(name, "_frozen_", i);
    }
    function.mutable_signature()->set_name(new_name);
    function.clear_resource_arg_unique_id();
    made_.emplace(key, new_name);
    const absl::Status status = Change(types, depth, &function);
    if (!status.ok()) {
      return errors::Prefix(absl::StrCat("function ", internal::Quoted(name), ": "), status);
    }
    new_functions_.push_back(std::move(function));
    functions_.emplace(new_name, &new_functions_.back());
    return new_name;
  }

  absl::Status Change(const std::map<int, DataType>& types, int depth, FunctionDef* function) {
    OpDef& signature = *function->mutable_signature();
    // The tensors that were handles, by their names in the function.
    std::map<std::string, DataType, std::less<>> values;
    for (const auto& [i, type] : types) {
      if (i >= signature.input_arg_size()) {
        return errors::InvalidArgument("it has no argument ", i);
      }
      signature.mutable_input_arg(i)->set_type(type);
      values.emplace(signature.input_arg(i).name(), type);
    }
    const auto type_of = [&](const std::string& input) {
      const auto found = values.find(input);
      return found == values.end() ? DT_INVALID : found->second;
    };
    // Identities and loops return their inputs. The nodes are in any order.
    std::multimap<absl::string_view, std::pair<const NodeDef*, int>> users;
    for (const NodeDef& node : function->node_def()) {
      const bool is_loop = node.op() == "While" || node.op() == "StatelessWhile";
      if (node.op() != "Identity" && !is_loop) continue;
      for (int i = 0; i < node.input_size(); ++i) users.emplace(node.input(i), std::pair(&node, i));
    }
    std::vector<std::pair<std::string, DataType>> open(values.begin(), values.end());
    while (!open.empty()) {
      const auto [value, type] = std::move(open.back());
      open.pop_back();
      const auto [begin, end] = users.equal_range(value);
      for (auto user = begin; user != end; ++user) {
        const auto& [node, i] = user->second;
        std::string output = absl::StrCat(node->name(), ":output:", i);
        if (values.emplace(output, type).second) open.emplace_back(std::move(output), type);
      }
    }
    std::set<std::string> reads;
    std::vector<NodeDef> added;
    for (NodeDef& node : *function->mutable_node_def()) {
      std::map<int, DataType> inputs;
      for (int i = 0; i < node.input_size(); ++i) {
        const DataType type = type_of(node.input(i));
        if (type != DT_INVALID) inputs.emplace(i, type);
      }
      if (inputs.empty()) continue;
      if (node.op() == "Identity") {
        (*node.mutable_attr())["T"].set_type(inputs.begin()->second);
      } else if (node.op() == "DisableCopyOnRead") {
        node.set_op("NoOp");
        node.clear_input();
        node.clear_attr();
      } else if (ReadsVariable(node.op())) {
        if (node.op() == "ReadVariableOp") reads.insert(node.name());
        const std::string axis = node.name() + "/axis";
        if (node.op() == "ResourceGather") added.push_back(ZeroAxis(axis));
        if (!ReadValue(axis + ":output:0", &node)) return CannotRead(node);
      } else {
        GRADFLOW_RETURN_IF_ERROR(ChangeCall(inputs, depth, &node));
      }
    }
    for (NodeDef& node : added) *function->add_node_def() = std::move(node);
    // ReadVariableOp calls its output "value", Identity "output".
    const auto rename = [&](std::string* input) {
      const size_t colon = input->find(':');
      if (colon == std::string::npos || reads.count(input->substr(0, colon)) == 0) return;
      *input = absl::StrCat(input->substr(0, colon), ":output:0");
    };
    for (NodeDef& node : *function->mutable_node_def()) {
      for (std::string& input : *node.mutable_input()) rename(&input);
    }
    for (auto& [name, value] : *function->mutable_ret()) {
      const DataType type = type_of(value);
      rename(&value);
      if (type == DT_INVALID) continue;
      for (OpDef::ArgDef& output : *signature.mutable_output_arg()) {
        if (output.name() == name) output.set_type(type);
      }
    }
    return absl::OkStatus();
  }

 public:
  // Returns a constant zero.
  static NodeDef ZeroAxis(const std::string& name) {
    NodeDef node;
    node.set_name(name);
    node.set_op("Const");
    (*node.mutable_attr())["dtype"].set_type(DT_INT32);
    Tensor(int32_t{0}).AsProtoField((*node.mutable_attr())["value"].mutable_tensor());
    return node;
  }
  static absl::Status CannotRead(const NodeDef& node) {
    return errors::Unimplemented(internal::NodePrefix(node),
                                 "freezing does not support this use of a variable");
  }

 private:
  const GraphLimits& limits_;
  absl::flat_hash_map<std::string, const FunctionDef*> functions_;
  std::set<std::string> names_;
  std::map<std::pair<std::string, std::map<int, DataType>>, std::string> made_;
  // A deque, because functions_ points to its elements.
  std::deque<FunctionDef> new_functions_;
  // The nodes and bytes of the new functions.
  int64_t num_nodes_ = 0;
  int64_t num_bytes_ = 0;
};

// Copies the nodes that outputs need to a new graph.
class Freezer {
 public:
  Freezer(const Graph& graph, Session* session, const FreezeGraphOptions& options)
      : graph_(graph),
        session_(session),
        options_(options),
        functions_(graph.def(), options.limits) {}

  absl::StatusOr<FrozenGraph> Freeze(const std::vector<std::string>& outputs) {
    *result_.graph.mutable_versions() = graph_.def().versions();
    const InlinedCall root;
    for (const std::string& output : outputs) {
      GRADFLOW_ASSIGN_OR_RETURN(const TensorId id, ParseTensorId(output));
      const Node* const node = graph_.FindNode(id.node);
      if (node == nullptr || id.index < 0) {
        return errors::NotFound("the graph has no output ", internal::Quoted(output));
      }
      GRADFLOW_RETURN_IF_ERROR(node->CheckResolved());
      if (id.index >= node->num_outputs()) {
        return errors::NotFound("the graph has no output ", internal::Quoted(output));
      }
      GRADFLOW_RETURN_IF_ERROR(Visit({&root, node}));
      const NewTensor& tensor = done_.at({&root, node}).outputs[id.index];
      if (tensor.variable != nullptr) {
        if (node->output_type(id.index) == DT_RESOURCE) {
          return errors::Unimplemented("output ", internal::Quoted(output),
                                       " is the handle of a variable");
        }
        GRADFLOW_RETURN_IF_ERROR(AddConstant(*tensor.variable, tensor.name));
      }
      result_.outputs.push_back(tensor.name);
    }
    AddFunctions();
    return std::move(result_);
  }

 private:
  using Place = std::pair<const InlinedCall*, const Node*>;

  bool IsInlined(const Node& node) const {
    return options_.inline_calls && node.op().functional() == FunctionalOp::kCall;
  }

  absl::StatusOr<const InlinedCall*> CallOf(const Place& place) {
    if (const auto known = calls_.find(place); known != calls_.end()) return known->second;
    GRADFLOW_ASSIGN_OR_RETURN(const std::vector<const FunctionBody*> bodies,
                              CalledFunctions(*place.second));
    // A recursion has no end here.
    constexpr int kMaxDepth = 100;
    if (place.first->depth >= kMaxDepth) {
      return errors::Unimplemented(internal::NodePrefix(place.second->def()),
                                   "calls are nested deeper than ", kMaxDepth);
    }
    all_calls_.push_back({place.first, place.second, bodies[0],
                          absl::StrCat(place.first->prefix, place.second->name(), "/"),
                          place.first->depth + 1});
    calls_.emplace(place, &all_calls_.back());
    return &all_calls_.back();
  }

  // Makes the node and everything that it needs.
  absl::Status Visit(const Place& first) {
    GRADFLOW_RETURN_IF_ERROR(VisitUntilLoops(first));
    // A node that closes a loop needs the first nodes of the loop.
    while (!continued_.empty()) {
      const Place place = continued_.back();
      continued_.pop_back();
      GRADFLOW_RETURN_IF_ERROR(VisitUntilLoops(place));
    }
    return absl::OkStatus();
  }

  absl::Status VisitUntilLoops(const Place& first) {
    std::vector<Place> open = {first};
    while (!open.empty()) {
      const Place place = open.back();
      if (done_.count(place) > 0) {
        open.pop_back();
        continue;
      }
      std::vector<Place> needs;
      GRADFLOW_RETURN_IF_ERROR(FindNeeds(place, &needs));
      const size_t before = open.size();
      for (const Place& need : needs) {
        if (done_.count(need) == 0) open.push_back(need);
      }
      if (open.size() > before) continue;
      open.pop_back();
      absl::StatusOr<NewNode> made = Make(place);
      if (!made.ok()) {
        return errors::Prefix(
            absl::IsNotFound(made.status()) || place.first->call == nullptr
                ? ""
                : absl::StrCat("in ", internal::Quoted(place.first->prefix), ": "),
            made.status());
      }
      for (const NewTensor& output : made->outputs) num_bytes_ += BytesOf(output.name);
      for (const std::string& control : made->controls) num_bytes_ += BytesOf(control);
      done_.emplace(place, *std::move(made));
      if (++num_made_ > options_.limits.max_nodes) {
        return errors::InvalidArgument("expected at most ", options_.limits.max_nodes,
                                       " nodes (GraphLimits::max_nodes)");
      }
      GRADFLOW_RETURN_IF_ERROR(CheckBytes());
    }
    return absl::OkStatus();
  }

  // The bytes of a name in memory.
  static int64_t BytesOf(const std::string& name) {
    return static_cast<int64_t>(sizeof(name) + name.size());
  }

  absl::Status CheckBytes() const {
    if (num_bytes_ <= options_.limits.max_file_bytes) return absl::OkStatus();
    return errors::InvalidArgument("expected nodes of at most ", options_.limits.max_file_bytes,
                                   " bytes (GraphLimits::max_file_bytes)");
  }

  // Adds a node to the result.
  void AddNode(NodeDef node) {
    num_bytes_ += static_cast<int64_t>(node.ByteSizeLong());
    *result_.graph.add_node() = std::move(node);
  }

  absl::Status FindNeeds(const Place& place, std::vector<Place>* needs) {
    const auto& [call, node] = place;
    GRADFLOW_RETURN_IF_ERROR(node->CheckResolved());
    // The first nodes in the graph of a function are its arguments.
    if (node->op().functional() == FunctionalOp::kArg) {
      if (call->call == nullptr) {
        return errors::InvalidArgument(internal::NodePrefix(node->def()),
                                       "an argument of a function must be in a function");
      }
      needs->emplace_back(call->caller, call->call->sources()[node->id()].node);
      return absl::OkStatus();
    }
    if (IsInlined(*node)) {
      GRADFLOW_ASSIGN_OR_RETURN(const InlinedCall* const inner, CallOf(place));
      for (const Node::Source& result : inner->body->results()) {
        needs->emplace_back(inner, result.node);
      }
      for (const Node* const effect : inner->body->effects()) needs->emplace_back(inner, effect);
      return absl::OkStatus();
    }
    for (const Node::Source& source : node->sources()) {
      if (!IsBackEdge(*node, source)) needs->emplace_back(call, source.node);
    }
    if (node->op().def().is_stateful()) {
      // The nodes that a call waits for run before the effects of its function.
      for (const InlinedCall* c = call; c->call != nullptr; c = c->caller) {
        // The nodes on top of the stack are made before all others.
        if (!waiting_.insert(c).second) break;
        for (const Node::Source& source : c->call->sources()) {
          if (source.output < 0) needs->emplace_back(c->caller, source.node);
        }
      }
    }
    return absl::OkStatus();
  }

  std::string UniqueName(const std::string& name) {
    std::string unique = name;
    if (names_.insert(unique).second) return unique;
    int& next = next_[name];
    do {
      unique = absl::StrCat(name, "_", ++next);
    } while (!names_.insert(unique).second);
    return unique;
  }

  // Returns the name of the node that a place becomes.
  std::string NewName(const Place& place) {
    const auto reserved = reserved_.find(place);
    return reserved != reserved_.end() ? reserved->second
                                       : UniqueName(place.first->prefix + place.second->name());
  }

  // Returns the name of a node that closes a loop. The node may be made later.
  std::string NameAhead(const Place& place) {
    const auto done = done_.find(place);
    if (done != done_.end()) return done->second.outputs[0].name;
    const auto [reserved, is_new] = reserved_.try_emplace(place);
    if (is_new) {
      reserved->second = UniqueName(place.first->prefix + place.second->name());
      continued_.push_back(place);
    }
    return reserved->second;
  }

  // A list of names without duplicates.
  class Controls {
   public:
    void Add(const std::vector<std::string>& names) {
      for (const std::string& name : names) {
        if (seen_.insert(name).second) names_.push_back(name);
      }
    }
    const std::vector<std::string>& names() const { return names_; }

   private:
    std::vector<std::string> names_;
    absl::flat_hash_set<std::string> seen_;
  };

  absl::StatusOr<NewNode> Make(const Place& place) {
    const auto& [call, node] = place;
    if (node->op().functional() == FunctionalOp::kArg) {
      const Node::Source source = call->call->sources()[node->id()];
      return NewNode{{done_.at({call->caller, source.node}).outputs[source.output]}, {}};
    }
    if (IsInlined(*node)) return MakeCall(place);
    const std::string name = NewName(place);
    const std::string& op = node->type_string();
    if (!options_.keep_variables &&
        (op == "VarHandleOp" || op == "VariableV2" || op == "Variable")) {
      return NewNode{{{name, node}}, {}};
    }
    NodeDef def = node->def();
    def.set_name(name);
    def.clear_input();
    def.mutable_attr()->erase(internal::kColocationAttr);
    if (const absl::StatusOr<ModelVariable> info = internal::VariableOfNode(def); info.ok()) {
      // The name of the variable must not depend on the new name of its node.
      (*def.mutable_attr())["shared_name"].set_s(
          internal::VariableOfNode(node->def()).value_or(*info).name);
    }
    // The variables at data inputs.
    std::map<int, const Node*> variables;
    std::vector<NewTensor> inputs;
    Controls controls;
    for (const Node::Source& source : node->sources()) {
      if (IsBackEdge(*node, source)) {
        inputs.push_back({NameAhead({call, source.node}), nullptr});
        continue;
      }
      const NewNode& from = done_.at({call, source.node});
      if (source.output < 0) {
        controls.Add(from.controls);
        continue;
      }
      const NewTensor& tensor = from.outputs[source.output];
      const int i = static_cast<int>(inputs.size());
      if (tensor.variable != nullptr) {
        if (node->takes_reference(i)) return Writes(*node);
        variables.emplace(i, tensor.variable);
      }
      inputs.push_back(tensor);
    }
    if (op == "Identity" && variables.count(0) > 0 && node->input_type(0) == DT_RESOURCE) {
      return NewNode{{inputs[0]}, {}};
    }
    NewNode made;
    made.controls.push_back(name);
    for (int i = 0; i < node->num_outputs(); ++i) {
      made.outputs.push_back({i == 0 ? name : absl::StrCat(name, ":", i), nullptr});
    }
    for (const auto& [i, variable] : variables) {
      GRADFLOW_RETURN_IF_ERROR(AddConstant(*variable, inputs[i].name));
    }
    for (const NewTensor& input : inputs) def.add_input(input.name);
    bool is_read = false;
    std::map<int, DataType> handles;
    for (const auto& [i, variable] : variables) {
      if (BaseType(node->input_type(i)) != DT_RESOURCE) continue;
      DataType dtype = DT_INVALID;
      GRADFLOW_RETURN_IF_ERROR(variable->GetAttr("dtype", &dtype));
      handles.emplace(i, dtype);
    }
    if (!handles.empty() && op == "DisableCopyOnRead") return NewNode{};
    if (!handles.empty() && ReadsVariable(op)) {
      is_read = true;
      const std::string axis = op == "ResourceGather" ? UniqueName(name + "/axis") : "";
      if (!axis.empty()) AddNode(FunctionSpecializer::ZeroAxis(axis));
      if (!ReadValue(axis, &def)) return FunctionSpecializer::CannotRead(node->def());
    } else if (!handles.empty()) {
      if (node->op().functional() == FunctionalOp::kNone) return Writes(*node);
      GRADFLOW_RETURN_IF_ERROR(functions_.ChangeCall(handles, 0, &def));
      if (node->op().functional() == FunctionalOp::kWhile) {
        // Loops return their variables.
        loops_.insert(name);
        for (const auto& [i, dtype] : handles) made.outputs[i].variable = variables.at(i);
      }
    }
    if (node->op().def().is_stateful() && !is_read) {
      for (const InlinedCall* c = call; c->call != nullptr; c = c->caller) {
        for (const Node::Source& source : c->call->sources()) {
          if (source.output < 0) controls.Add(done_.at({c->caller, source.node}).controls);
        }
      }
    }
    // The value of a variable that nothing writes does not depend on the order.
    if (is_read) made.controls.clear();
    if (!is_read) {
      for (const std::string& control : controls.names()) def.add_input("^" + control);
    }
    AddNode(std::move(def));
    return made;
  }

  absl::StatusOr<NewNode> MakeCall(const Place& place) {
    GRADFLOW_ASSIGN_OR_RETURN(const InlinedCall* const inner, CallOf(place));
    NewNode made;
    for (const Node::Source& result : inner->body->results()) {
      made.outputs.push_back(done_.at({inner, result.node}).outputs[result.output]);
    }
    Controls controls;
    for (const Node* const effect : inner->body->effects()) {
      if (!ReadsVariable(effect->type_string())) controls.Add(done_.at({inner, effect}).controls);
    }
    const bool has_effects = !controls.names().empty();
    if (!has_effects) {
      for (const Node::Source& result : inner->body->results()) {
        controls.Add(done_.at({inner, result.node}).controls);
      }
    }
    made.controls = controls.names();
    if (!has_effects) return made;
    // Whoever reads a result waits for the effects.
    for (size_t i = 0; i < made.outputs.size(); ++i) {
      if (made.outputs[i].variable != nullptr) continue;
      NodeDef identity;
      identity.set_name(UniqueName(absl::StrCat(place.first->prefix, place.second->name())));
      identity.set_op("Identity");
      identity.add_input(made.outputs[i].name);
      for (const std::string& control : made.controls) identity.add_input("^" + control);
      (*identity.mutable_attr())["T"].set_type(place.second->output_type(static_cast<int>(i)));
      made.outputs[i].name = identity.name();
      AddNode(std::move(identity));
      GRADFLOW_RETURN_IF_ERROR(CheckBytes());
    }
    return made;
  }

  static absl::Status Writes(const Node& node) {
    return errors::Unimplemented(
        internal::NodePrefix(node.def()),
        "the node uses a variable; freezing takes graphs that only read variables");
  }

  // Adds the constant `name` with the value of a variable, unless the constant exists. Does nothing
  // if `name` is a loop, because a loop returns the values of its variables.
  absl::Status AddConstant(const Node& node, const std::string& name) {
    if (absl::StrContains(name, ':') || !constants_.insert(name).second) return absl::OkStatus();
    if (loops_.count(name) > 0) return absl::OkStatus();
    if (session_ == nullptr) {
      return errors::InvalidArgument("the values of variables need a session");
    }
    GRADFLOW_ASSIGN_OR_RETURN(const ModelVariable info, internal::VariableOfNode(node.def()));
    const auto error = [&](const absl::Status& status) {
      return errors::Prefix(absl::StrCat("variable ", internal::Quoted(info.name), ": "), status);
    };
    const auto variable = session_->resources()->Lookup<Variable>(info.container, info.name);
    if (!variable.ok()) {
      return errors::FailedPrecondition("variable ", internal::Quoted(info.name),
                                        " has not been initialized");
    }
    const absl::StatusOr<Tensor> value = (*variable)->Read();
    if (!value.ok()) return error(value.status());
    // Several variables may share a buffer, but each constant has a copy of it.
    num_bytes_ += static_cast<int64_t>(value->TotalBytes());
    GRADFLOW_RETURN_IF_ERROR(CheckBytes());
    NodeDef constant;
    constant.set_name(name);
    constant.set_op("Const");
    (*constant.mutable_attr())["dtype"].set_type(value->dtype());
    value->AsProtoTensorContent((*constant.mutable_attr())["value"].mutable_tensor());
    *result_.graph.add_node() = std::move(constant);
    ++result_.num_variables;
    return absl::OkStatus();
  }

  // Adds the functions that nodes name, and the functions that these functions name.
  void AddFunctions() {
    std::set<std::string> added;
    std::vector<std::string> open;
    const auto reach = [&](const NodeDef& node) {
      open.push_back(node.op());
      for (const auto& [name, value] : node.attr()) {
        if (value.has_func()) open.push_back(value.func().name());
        for (const NameAttrList& function : value.list().func()) open.push_back(function.name());
      }
    };
    for (const NodeDef& node : result_.graph.node()) reach(node);
    while (!open.empty()) {
      const std::string name = std::move(open.back());
      open.pop_back();
      const FunctionDef* const function = functions_.Find(name);
      if (function == nullptr || !added.insert(name).second) continue;
      *result_.graph.mutable_library()->add_function() = *function;
      for (const NodeDef& node : function->node_def()) reach(node);
    }
  }

  const Graph& graph_;
  Session* const session_;
  const FreezeGraphOptions& options_;
  FunctionSpecializer functions_;
  FrozenGraph result_;
  std::map<Place, const InlinedCall*> calls_;
  std::deque<InlinedCall> all_calls_;
  // The calls whose control inputs have been made, or are on the stack.
  absl::flat_hash_set<const InlinedCall*> waiting_;
  std::map<Place, NewNode> done_;
  // The names of nodes that close loops of version 1 control flow, and the nodes among them that
  // have not been made.
  std::map<Place, std::string> reserved_;
  std::vector<Place> continued_;
  absl::flat_hash_set<std::string> names_;
  // The last numbers of names that were in use.
  absl::flat_hash_map<std::string, int> next_;
  // The names of the constants that have been added.
  absl::flat_hash_set<std::string> constants_;
  // The names of loops.
  absl::flat_hash_set<std::string> loops_;
  int64_t num_made_ = 0;
  int64_t num_bytes_ = 0;
};

// Makes placeholders of the nodes that compute these tensors.
absl::Status CutAt(const std::vector<SignatureTensor>& inputs, GraphDef* graph) {
  absl::flat_hash_map<absl::string_view, const SignatureTensor*> by_node;
  for (const SignatureTensor& input : inputs) {
    GRADFLOW_ASSIGN_OR_RETURN(const TensorId id, ParseTensorId(input.tensor_name));
    if (id.index == 0) by_node.emplace(id.node, &input);
  }
  for (NodeDef& node : *graph->mutable_node()) {
    const auto found = by_node.find(node.name());
    if (found == by_node.end() || absl::StartsWith(node.op(), "Placeholder")) continue;
    if (found->second->dtype == DT_INVALID || IsRefType(found->second->dtype)) continue;
    node.set_op("Placeholder");
    node.clear_input();
    node.clear_attr();
    AddNodeAttr("dtype", found->second->dtype, &node);
    AddNodeAttr("shape", found->second->shape, &node);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<FrozenGraph> FreezeGraph(const GraphDef& graph,
                                        const std::vector<std::string>& outputs, Session* session,
                                        const FreezeGraphOptions& options) {
  FrozenGraph frozen;
  const absl::Status status = CallSafely([&]() -> absl::Status {
    ImportGraphDefOptions import;
    import.allow_missing_ops = true;
    import.require_kernels = false;
    import.limits = options.limits;
    GraphDef cut = graph;
    GRADFLOW_RETURN_IF_ERROR(CutAt(options.inputs, &cut));
    Graph imported;
    GRADFLOW_RETURN_IF_ERROR(ImportGraphDef(import, std::move(cut), &imported));
    GRADFLOW_ASSIGN_OR_RETURN(frozen, Freezer(imported, session, options).Freeze(outputs));
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return frozen;
}

}  // namespace gradflow
