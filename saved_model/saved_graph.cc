#include "gradflow/saved_model/saved_graph.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gradflow/core/attributes.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/node_checks.h"
#include "gradflow/graph/tensor_id.h"
#include "gradflow/proto/op_def.pb.h"

namespace gradflow::internal {
namespace {

// The limits of searches. A graph of few bytes may have any number of calls within calls. A search
// takes a number of steps that is linear in the size of the graph, and steps for small graphs.
constexpr int64_t kStepsPerInput = 20;
constexpr int64_t kMoreSteps = 100'000;
constexpr int kMaxDepth = 100;

template <size_t n>
bool IsOneOf(absl::string_view op, const std::array<absl::string_view, n>& ops) {
  return std::find(ops.begin(), ops.end(), op) != ops.end();
}

bool IsVariableOp(absl::string_view op) {
  return op == "VarHandleOp" || op == "VariableV2" || op == "Variable";
}

bool IsCallOp(absl::string_view op) {
  return op == "PartitionedCall" || op == "StatefulPartitionedCall";
}

bool IsLoopOp(absl::string_view op) { return op == "While" || op == "StatelessWhile"; }

bool IsBranchOp(absl::string_view op) {
  return op == "If" || op == "StatelessIf" || op == "Case" || op == "StatelessCase";
}

// Returns true if the arguments of the op's functions are its inputs, after the input that selects
// a branch.
bool PassesItsInputs(absl::string_view op) {
  return IsCallOp(op) || IsLoopOp(op) || IsBranchOp(op);
}

// Ops of savers without side effects that tensors of the checkpoint or names of files come from.
bool IsHarmless(absl::string_view op) {
  static constexpr std::array<absl::string_view, 17> kOps = {
      "Const",       "ConcatV2",    "DisableCopyOnRead",
      "Identity",    "IdentityN",   "NoOp",
      "Pack",        "Placeholder", "PlaceholderWithDefault",
      "Reshape",     "RestoreV2",   "ShardedFilename",
      "StringJoin",  "Select",      "StaticRegexFullMatch",
      "VarHandleOp", "Variable"};
  return IsOneOf(op, kOps) || op == "VariableV2";
}

// Returns true for ops that take the handle of a variable and do not write the variable.
bool OnlyReads(absl::string_view op) {
  static constexpr std::array<absl::string_view, 7> kOps = {"ReadVariableOp",
                                                            "ResourceGather",
                                                            "ResourceGatherNd",
                                                            "VariableShape",
                                                            "VarIsInitializedOp",
                                                            "DisableCopyOnRead",
                                                            "NoOp"};
  return IsOneOf(op, kOps);
}

// Returns the functions that the attributes of a node name, and the node's op if the op is a
// function.
std::vector<std::string> FunctionsOf(const NodeDef& node) {
  std::vector<std::string> functions;
  for (const auto& [name, value] : node.attr()) {
    if (value.has_func()) functions.push_back(value.func().name());
    for (const NameAttrList& function : value.list().func()) functions.push_back(function.name());
  }
  return functions;
}

}  // namespace

absl::StatusOr<ModelVariable> VariableOfNode(const NodeDef& node) {
  if (!IsVariableOp(node.op())) {
    return errors::InvalidArgument("node ", Quoted(node.name()), " is not a variable");
  }
  ModelVariable variable;
  variable.node = node.name();
  if (FindNodeAttr(node, "container") != nullptr) {
    GRADFLOW_RETURN_IF_ERROR(GetNodeAttr(node, "container", &variable.container));
  }
  if (FindNodeAttr(node, "shared_name") != nullptr) {
    GRADFLOW_RETURN_IF_ERROR(GetNodeAttr(node, "shared_name", &variable.name));
  }
  if (variable.name.empty()) variable.name = node.name();
  GRADFLOW_RETURN_IF_ERROR(GetNodeAttr(node, "dtype", &variable.dtype));
  GRADFLOW_RETURN_IF_ERROR(GetNodeAttr(node, "shape", &variable.shape));
  // The op Variable writes an unknown shape as the shape of a scalar.
  if (node.op() == "Variable" && variable.shape.dims() == 0) variable.shape = PartialTensorShape();
  return variable;
}

struct SavedGraph::Body {
  template <typename Nodes>
  Body(const Nodes& list, const FunctionDef* of) : function(of) {
    for (const NodeDef& node : list) nodes.emplace(node.name(), &node);
    if (function == nullptr) return;
    for (int i = 0; i < function->signature().input_arg_size(); ++i) {
      const OpDef::ArgDef& arg = function->signature().input_arg(i);
      if (!arg.number_attr().empty() || !arg.type_list_attr().empty()) has_lists = true;
      args.emplace(arg.name(), i);
    }
  }

  // The source of an input.
  struct Source {
    // Both are unset if there is no such source.
    const NodeDef* node = nullptr;
    int arg = -1;
    int output = 0;
  };
  Source Find(absl::string_view input) const {
    Source source;
    absl::ConsumePrefix(&input, "^");
    const std::vector<absl::string_view> parts = absl::StrSplit(input, ':');
    if (function != nullptr && parts.size() < 3) {
      const auto arg = args.find(parts[0]);
      if (arg != args.end()) {
        source.arg = arg->second;
        return source;
      }
    }
    const auto node = nodes.find(parts[0]);
    if (node == nodes.end()) return source;
    if (parts.size() > 1 && !absl::SimpleAtoi(parts.back(), &source.output)) {
      // "node:y" in a function stands for the first tensor of y.
      if (function == nullptr) return source;
      source.output = 0;
    }
    source.node = node->second;
    return source;
  }

  absl::flat_hash_map<absl::string_view, const NodeDef*> nodes;
  absl::flat_hash_map<absl::string_view, int> args;
  const FunctionDef* function;
  // True if an argument is a list of tensors, so that tensors and arguments have different
  // positions.
  bool has_lists = false;
};

struct SavedGraph::Frame {
  const Body* body;
  Frame* parent;
  const NodeDef* call;
  int depth;
  std::map<const NodeDef*, Frame*> calls;
};

struct SavedGraph::Effects {
  // The arguments that the function may write.
  std::set<int> args;
  // Variables that the function makes itself.
  std::set<VariableKey> variables;
  // False while the function is being looked at.
  bool is_complete = false;
};

SavedGraph::SavedGraph(const GraphDef& graph, const SaverDef& saver)
    : graph_(graph), saver_(saver), root_(std::make_unique<Body>(graph.node(), nullptr)) {
  const auto add_steps = [&](const auto& nodes) {
    for (const NodeDef& node : nodes) max_steps_ += kStepsPerInput * (1 + node.input_size());
  };
  max_steps_ = kMoreSteps;
  add_steps(graph.node());
  for (const FunctionDef& function : graph.library().function()) {
    functions_.emplace(function.signature().name(), &function);
    add_steps(function.node_def());
  }
}

SavedGraph::~SavedGraph() = default;

const SavedGraph::Body* SavedGraph::BodyOf(absl::string_view function) {
  const auto known = bodies_.find(function);
  if (known != bodies_.end()) return known->second.get();
  const auto found = functions_.find(function);
  if (found == functions_.end()) return nullptr;
  auto body = std::make_unique<Body>(found->second->node_def(), found->second);
  return bodies_.emplace(std::string(function), std::move(body)).first->second.get();
}

SavedGraph::Frame* SavedGraph::CallFrame(Frame* frame, const NodeDef& call) {
  const auto known = frame->calls.find(&call);
  if (known != frame->calls.end()) return known->second;
  const auto f = call.attr().find("f");
  const Body* const body =
      IsCallOp(call.op()) ? (f == call.attr().end() ? nullptr : BodyOf(f->second.func().name()))
                          : BodyOf(call.op());
  Frame* called = nullptr;
  if (body != nullptr && !body->has_lists && frame->depth < kMaxDepth) {
    frames_.push_back({body, frame, &call, frame->depth + 1, {}});
    called = &frames_.back();
  }
  frame->calls.emplace(&call, called);
  return called;
}

SavedGraph::Place SavedGraph::Resolve(Frame* frame, absl::string_view input) {
  while (--budget_ > 0) {
    const Body::Source source = frame->body->Find(input);
    if (source.arg >= 0) {
      if (frame->call == nullptr || source.arg >= frame->call->input_size()) return {};
      input = frame->call->input(source.arg);
      if (absl::StartsWith(input, "^")) return {};
      frame = frame->parent;
      continue;
    }
    if (source.node == nullptr) return {};
    const NodeDef& node = *source.node;
    if (node.op() == "Identity" && node.input_size() > 0) {
      input = node.input(0);
      continue;
    }
    Frame* const called =
        IsCallOp(node.op()) || functions_.contains(node.op()) ? CallFrame(frame, node) : nullptr;
    if (called == nullptr) return {frame, source.node, source.output};
    const FunctionDef& function = *called->body->function;
    if (source.output < 0 || source.output >= function.signature().output_arg_size()) return {};
    const auto ret = function.ret().find(function.signature().output_arg(source.output).name());
    if (ret == function.ret().end()) return {};
    input = ret->second;
    frame = called;
  }
  return {};
}

const std::string* SavedGraph::StringAt(Frame* frame, absl::string_view input, int index) {
  const Place place = Resolve(frame, input);
  if (place.node == nullptr || place.node->op() != "Const") return nullptr;
  const auto value = place.node->attr().find("value");
  if (value == place.node->attr().end() || value->second.tensor().dtype() != DT_STRING) {
    return nullptr;
  }
  // Savers state each string. Running the node decodes other forms.
  const auto& strings = value->second.tensor().string_val();
  return index >= 0 && index < strings.size() ? &strings[index] : nullptr;
}

// Adds the variable that an assignment restores to *result. Returns false, and sets result->other,
// if the node has another effect.
bool SavedGraph::VisitRestored(Frame* frame, const NodeDef& node, Restoration* result) {
  const auto other = [&](absl::string_view what) {
    result->other =
        absl::StrCat("node ", Quoted(node.name()), " (", errors::Printable(node.op()), ") ", what);
    return false;
  };
  const bool is_resource = node.op() == "AssignVariableOp";
  if (!is_resource && node.op() != "Assign") {
    return IsHarmless(node.op()) ? true : other("is part of restoring");
  }
  if (node.input_size() < 2) return other("lacks inputs");
  const Place target = Resolve(frame, node.input(0));
  const Place value = Resolve(frame, node.input(1));
  if (target.node == nullptr || !IsVariableOp(target.node->op()) || target.output != 0 ||
      (target.node->op() == "VarHandleOp") != is_resource) {
    return other("does not assign to a variable");
  }
  if (value.node == nullptr || value.node->op() != "RestoreV2" || value.node->input_size() < 3) {
    return other("assigns a value that is not a tensor of the checkpoint");
  }
  const Place prefix = Resolve(value.frame, value.node->input(0));
  const std::string filename = std::string(absl::string_view(saver_.filename_tensor_name())
                                               .substr(0, saver_.filename_tensor_name().find(':')));
  if (prefix.node == nullptr || prefix.frame->call != nullptr || prefix.node->name() != filename) {
    return other("reads another checkpoint");
  }
  const std::string* const key = StringAt(value.frame, value.node->input(1), value.output);
  const std::string* const slice = StringAt(value.frame, value.node->input(2), value.output);
  if (key == nullptr || slice == nullptr) {
    return other("reads tensors whose names are not constants");
  }
  absl::StatusOr<ModelVariable> variable = VariableOfNode(*target.node);
  if (!variable.ok()) return other("assigns to a malformed variable");
  variable->key = *key;
  variable->slice = *slice;
  result->variables.push_back(*std::move(variable));
  return true;
}

Restoration SavedGraph::FindRestoration() {
  Restoration result;
  budget_ = max_steps_;
  frames_.clear();
  frames_.push_back({root_.get(), nullptr, nullptr, 0, {}});
  std::vector<std::pair<Frame*, const NodeDef*>> open;
  std::set<std::pair<Frame*, const NodeDef*>> seen;
  const auto enter = [&](Frame* frame, absl::string_view input) {
    const Body::Source source = frame->body->Find(input);
    if (source.node != nullptr && seen.emplace(frame, source.node).second) {
      open.emplace_back(frame, source.node);
    }
  };
  if (root_->nodes.count(saver_.restore_op_name()) == 0) {
    result.other = absl::StrCat("the graph has no node ", Quoted(saver_.restore_op_name()));
    return result;
  }
  enter(&frames_.front(), saver_.restore_op_name());
  while (!open.empty()) {
    const auto [frame, node] = open.back();
    open.pop_back();
    // A node of a call takes memory here. Savers call each function once.
    budget_ -= kStepsPerInput / 2;
    if (budget_ <= 0) {
      result.other = "the functions that restore are too large";
      return result;
    }
    for (const std::string& input : node->input()) enter(frame, input);
    if (IsCallOp(node->op()) || functions_.contains(node->op())) {
      Frame* const called = CallFrame(frame, *node);
      if (called == nullptr) {
        result.other = absl::StrCat("node ", Quoted(node->name()), " calls no known function");
        return result;
      }
      for (const NodeDef& inner : called->body->function->node_def()) {
        if (seen.emplace(called, &inner).second) open.emplace_back(called, &inner);
      }
    } else if (!VisitRestored(frame, *node, &result)) {
      return result;
    }
  }
  std::sort(result.variables.begin(), result.variables.end(),
            [](const ModelVariable& a, const ModelVariable& b) {
              return std::tie(a.container, a.name, a.key, a.slice) <
                     std::tie(b.container, b.name, b.key, b.slice);
            });
  // Several tensors for one variable would depend on the order of assignments.
  for (size_t i = 1; i < result.variables.size(); ++i) {
    const ModelVariable& a = result.variables[i - 1];
    const ModelVariable& b = result.variables[i];
    if (a.container == b.container && a.name == b.name && (a.key != b.key || a.slice != b.slice)) {
      result.other = absl::StrCat("two tensors are assigned to variable ", Quoted(a.name));
      return result;
    }
  }
  return result;
}

std::vector<ModelVariable> SavedGraph::FindByObject(const Restoration& restored,
                                                    const SavedObjectGraph& objects,
                                                    const TrackableObjectGraph& tensors) {
  std::set<VariableKey> known;
  for (const ModelVariable& variable : restored.variables) {
    known.emplace(variable.container, variable.name);
  }
  // An object has the same index in both messages.
  const auto key_of = [&](int object) -> const std::string* {
    if (object < 0 || object >= tensors.nodes_size()) return nullptr;
    for (const auto& attribute : tensors.nodes(object).attributes()) {
      if (attribute.name() == "VARIABLE_VALUE") return &attribute.checkpoint_key();
    }
    return nullptr;
  };
  std::vector<ModelVariable> found;
  const auto add = [&](const NodeDef& node, const std::string& key) {
    absl::StatusOr<ModelVariable> variable = VariableOfNode(node);
    if (!variable.ok() || !known.emplace(variable->container, variable->name).second) return;
    variable->key = key;
    found.push_back(*std::move(variable));
  };
  budget_ = max_steps_;
  frames_.clear();
  frames_.push_back({root_.get(), nullptr, nullptr, 0, {}});
  // The last arguments of a function are the objects that it has captured.
  for (const NodeDef& node : graph_.node()) {
    const auto f = node.attr().find("f");
    if (!IsCallOp(node.op()) || f == node.attr().end()) continue;
    const auto function = objects.concrete_functions().find(f->second.func().name());
    if (function == objects.concrete_functions().end()) continue;
    int inputs = 0;
    while (inputs < node.input_size() && !absl::StartsWith(node.input(inputs), "^")) ++inputs;
    const auto& bound = function->second.bound_inputs();
    for (int i = 0; i < bound.size() && inputs >= bound.size(); ++i) {
      const std::string* const key = key_of(bound[i]);
      if (key == nullptr) continue;
      const Place place = Resolve(&frames_.front(), node.input(inputs - bound.size() + i));
      if (place.node != nullptr && place.node->op() == "VarHandleOp") add(*place.node, *key);
    }
  }
  // Other variables are found by name, if all objects with this name have the same key.
  absl::flat_hash_map<absl::string_view, const std::string*> by_name;
  for (const auto& object : tensors.nodes()) {
    for (const auto& attribute : object.attributes()) {
      if (attribute.name() != "VARIABLE_VALUE") continue;
      const auto [place, is_new] =
          by_name.emplace(attribute.full_name(), &attribute.checkpoint_key());
      if (!is_new && place->second != nullptr && *place->second != attribute.checkpoint_key()) {
        place->second = nullptr;
      }
    }
  }
  for (const NodeDef& node : graph_.node()) {
    if (node.op() != "VarHandleOp") continue;
    const absl::StatusOr<ModelVariable> variable = VariableOfNode(node);
    if (!variable.ok()) continue;
    const auto key = by_name.find(variable->name);
    if (key != by_name.end() && key->second != nullptr) add(node, *key->second);
  }
  return found;
}

std::vector<const NodeDef*> SavedGraph::Reachable(absl::Span<const std::string> names,
                                                  absl::Span<const std::string> feeds) const {
  std::vector<const NodeDef*> nodes;
  absl::flat_hash_set<const NodeDef*> seen;
  for (const std::string& feed : feeds) {
    const Body::Source source = root_->Find(feed);
    if (source.node != nullptr && source.output == 0) seen.insert(source.node);
  }
  const auto enter = [&](absl::string_view input) {
    const Body::Source source = root_->Find(input);
    if (source.node != nullptr && seen.insert(source.node).second) nodes.push_back(source.node);
  };
  for (const std::string& name : names) enter(name);
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const std::string& input : nodes[i]->input()) enter(input);
  }
  return nodes;
}

const SavedGraph::Effects& SavedGraph::EffectsOf(absl::string_view function, int depth) {
  const auto known = effects_.find(function);
  if (known != effects_.end()) {
    // Gives up on recursions.
    if (!known->second->is_complete) budget_ = 0;
    return *known->second;
  }
  Effects* const effects =
      effects_.emplace(std::string(function), std::make_unique<Effects>()).first->second.get();
  const Body* const body = BodyOf(function);
  if (body == nullptr) return *effects;
  std::vector<const NodeDef*> nodes;
  for (const NodeDef& node : body->function->node_def()) nodes.push_back(&node);
  FindEffects(*body, nodes, depth, effects);
  effects->is_complete = true;
  return *effects;
}

void SavedGraph::FindEffects(const Body& body, absl::Span<const NodeDef* const> nodes, int depth,
                             Effects* effects) {
  // Follows identities and loop variables to the node or argument that a handle comes from.
  const auto origin = [&](absl::string_view input) {
    Body::Source source = body.Find(input);
    for (int step = 0; step < kMaxDepth && source.node != nullptr; ++step) {
      const NodeDef& node = *source.node;
      int from = -1;
      if (node.op() == "Identity") from = 0;
      if (node.op() == "IdentityN" || IsLoopOp(node.op())) from = source.output;
      if (from < 0 || from >= node.input_size() || absl::StartsWith(node.input(from), "^")) break;
      source = body.Find(node.input(from));
    }
    return source;
  };
  const auto write = [&](absl::string_view input) {
    const Body::Source source = origin(input);
    if (source.arg >= 0) effects->args.insert(source.arg);
    if (source.node == nullptr) return;
    if (const auto variable = VariableOfNode(*source.node); variable.ok()) {
      effects->variables.emplace(variable->container, variable->name);
    }
  };
  // The functions whose variables have been added.
  absl::flat_hash_set<const Effects*> merged;
  const auto is_call = [&](const NodeDef& node) {
    return functions_.contains(node.op()) || !FunctionsOf(node).empty();
  };
  for (const NodeDef* const node : nodes) {
    if (depth > kMaxDepth) budget_ = 0;
    if (--budget_ <= 0) return;
    const std::string& op = node->op();
    if (op == "Identity" || op == "IdentityN" || OnlyReads(op)) continue;
    if (is_call(*node)) {
      std::vector<std::string> functions = FunctionsOf(*node);
      const bool calls_op = functions_.contains(op);
      if (calls_op) functions.push_back(op);
      // The first input selects the branch.
      const int first = IsBranchOp(op) ? 1 : 0;
      for (const std::string& function : functions) {
        const Body* const called = BodyOf(function);
        const bool is_known =
            called != nullptr && !called->has_lists && (calls_op || PassesItsInputs(op));
        const Effects* const inner = is_known ? &EffectsOf(function, depth + 1) : nullptr;
        if (inner != nullptr && merged.insert(inner).second) {
          budget_ -= static_cast<int64_t>(inner->variables.size());
          if (budget_ <= 0) return;
          effects->variables.insert(inner->variables.begin(), inner->variables.end());
        }
        for (int i = first; i < node->input_size(); ++i) {
          if (absl::StartsWith(node->input(i), "^")) break;
          if (inner == nullptr || inner->args.count(i - first) > 0) write(node->input(i));
        }
      }
      continue;
    }
    const auto registered = GlobalRegistry().LookUpOp(op);
    for (int i = 0; i < node->input_size(); ++i) {
      const std::string& input = node->input(i);
      if (absl::StartsWith(input, "^")) break;
      const Body::Source source = origin(input);
      if (source.node != nullptr && source.node->op() != "VarHandleOp") {
        // An op writes a variable through a reference only if its argument is a reference. Such ops
        // have no list arguments before the reference, so input i is argument i.
        if (!IsVariableOp(source.node->op())) continue;
        if (registered.ok() && (i >= (*registered)->def().input_arg_size() ||
                                !(*registered)->def().input_arg(i).is_ref())) {
          continue;
        }
      }
      if (source.arg >= 0 && body.function != nullptr &&
          body.function->signature().input_arg(source.arg).type() != DT_RESOURCE) {
        continue;
      }
      write(input);
    }
  }
  if (body.function == nullptr) return;
  // A returned handle may be written by the caller. The bodies of loops return all loop variables,
  // each at the position of its argument.
  const OpDef& signature = body.function->signature();
  for (int i = 0; i < signature.output_arg_size(); ++i) {
    if (signature.output_arg(i).type() != DT_RESOURCE) continue;
    const auto ret = body.function->ret().find(signature.output_arg(i).name());
    if (ret == body.function->ret().end()) continue;
    if (origin(ret->second).arg != i) write(ret->second);
  }
}

std::set<VariableKey> SavedGraph::FindWritten(absl::Span<const std::string> names) {
  budget_ = max_steps_;
  Effects effects;
  FindEffects(*root_, Reachable(names), 0, &effects);
  if (budget_ > 0) return std::move(effects.variables);
  // Every variable may be written.
  for (const NodeDef& node : graph_.node()) {
    if (const auto variable = VariableOfNode(node); variable.ok()) {
      effects.variables.emplace(variable->container, variable->name);
    }
  }
  return std::move(effects.variables);
}

std::set<std::string> SavedGraph::FindMissingOps(absl::Span<const std::string> names,
                                                 absl::Span<const std::string> feeds,
                                                 const Registry& registry) {
  std::set<std::string> missing;
  absl::flat_hash_set<absl::string_view> reached;
  std::vector<const NodeDef*> nodes = Reachable(names, feeds);
  for (size_t i = 0; i < nodes.size(); ++i) {
    const NodeDef& node = *nodes[i];
    std::vector<std::string> functions = FunctionsOf(node);
    if (functions_.contains(node.op())) {
      functions.push_back(node.op());
    } else if (!registry.LookUpOp(node.op()).ok()) {
      missing.insert(node.op());
    }
    for (const std::string& function : functions) {
      const auto found = functions_.find(function);
      if (found == functions_.end() || !reached.insert(found->first).second) continue;
      for (const NodeDef& inner : found->second->node_def()) nodes.push_back(&inner);
    }
  }
  return missing;
}

}  // namespace gradflow::internal
