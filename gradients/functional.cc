#include "gradflow/gradients/functional.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>

#include "absl/cleanup/cleanup.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "gradflow/core/attributes.h"
#include "gradflow/core/call_safely.h"
#include "gradflow/core/out_parameter.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/gradients/gradient_helpers.h"
#include "gradflow/graph/const_op.h"
#include "gradflow/graph/import.h"
#include "gradflow/graph/node_builder.h"
#include "gradflow/graph/node_checks.h"
#include "gradflow/ops/array_ops.h"
#include "gradflow/ops/list_ops.h"
#include "gradflow/ops/math_ops.h"
#include "gradflow/ops/resource_variable_ops.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/proto/op_def.pb.h"

namespace gradflow::gradients {
namespace {

// The deepest nesting of functions that a gradient follows. Each level takes some of the stack.
constexpr size_t kMaxNesting = 100;
// The number of nodes that all gradient functions may copy from their functions and from the
// functions that these call.
constexpr int64_t kMaxCopies = 200'000;

// Returns true if the op only reads variables, or makes their handles.
bool IsRead(const Node& node) {
  static const auto& reads = *new absl::flat_hash_set<absl::string_view>(
      {"ReadVariableOp", "ResourceGather", "ResourceGatherNd", "VarHandleOp", "VarIsInitializedOp",
       "VariableShape"});
  return reads.contains(node.type_string());
}

// Follows Identity nodes.
Node::Source SourceOf(Node::Source source) {
  while (source.node->type_string() == "Identity") source = source.node->sources()[0];
  return source;
}

std::string XName(int i) { return absl::StrCat("x", i); }
std::string DyName(int i) { return absl::StrCat("dy", i); }
std::string DxName(int i) { return absl::StrCat("dx", i); }

std::vector<int> Indexes(const std::vector<bool>& selected) {
  std::vector<int> indexes;
  for (size_t i = 0; i < selected.size(); ++i) {
    if (selected[i]) indexes.push_back(static_cast<int>(i));
  }
  return indexes;
}

NameAttrList NameOf(const std::string& name) {
  NameAttrList function;
  function.set_name(name);
  return function;
}

// Adds a node `op` that calls functions, with inputs that may be empty.
Operation AddCall(const Scope& scope, const std::string& op, const OutputList& inputs,
                  const DataTypeVector& types, const NameAttrList& function) {
  return OpBuilder(scope, op)
      .Input(InputList(inputs))
      .Attr("Tout", types)
      .Attr("f", function)
      .Finish();
}

const char* CallOp(bool is_stateful) {
  return is_stateful ? "StatefulPartitionedCall" : "PartitionedCall";
}

// Returns UNIMPLEMENTED if a second call of the body would have other results or effects.
absl::Status CheckRepeatable(const FunctionBody& body,
                             absl::flat_hash_set<const FunctionBody*>* seen, size_t depth = 0);

absl::Status CheckRepeatable(const Node& node, absl::flat_hash_set<const FunctionBody*>* seen,
                             size_t depth = 0) {
  if (node.op().functional() == FunctionalOp::kNone) {
    if (!node.op_def().is_stateful() || IsRead(node)) return absl::OkStatus();
    return errors::Unimplemented(
        "the gradient needs the values of ", internal::NodeTitle(node.def()),
        " in a function, which cannot be computed again because the op is stateful");
  }
  if (node.op().functional() == FunctionalOp::kArg ||
      node.op().functional() == FunctionalOp::kRetval) {
    return absl::OkStatus();
  }
  GRADFLOW_ASSIGN_OR_RETURN(const std::vector<const FunctionBody*> bodies, CalledFunctions(node));
  for (const FunctionBody* body : bodies)
    GRADFLOW_RETURN_IF_ERROR(CheckRepeatable(*body, seen, depth + 1));
  return absl::OkStatus();
}

absl::Status CheckRepeatable(const FunctionBody& body,
                             absl::flat_hash_set<const FunctionBody*>* seen, size_t depth) {
  if (!seen->insert(&body).second) return absl::OkStatus();
  if (depth > kMaxNesting) {
    return errors::Unimplemented("functions with effects are nested deeper than ", kMaxNesting,
                                 " levels");
  }
  for (const Node* node : body.effects()) {
    GRADFLOW_RETURN_IF_ERROR(CheckRepeatable(*node, seen, depth));
  }
  return absl::OkStatus();
}

bool IsStateful(const FunctionBody& body) { return !body.effects().empty(); }

}  // namespace

// ---- The gradient of one function ----

class FunctionGradients::Body {
 public:
  // Build() must succeed before other members are called.
  Body(FunctionGradients* owner, const Scope& scope, const FunctionBody& body)
      : owner_(*owner), body_(body), builder_("gradient", scope) {}

  // Builds the gradients of the arguments `wanted` for gradients of the results `has_dy`.
  absl::Status Build(const std::vector<bool>& has_dy, const std::vector<bool>& wanted);

  // The types of the gradients of the arguments; DT_INVALID for arguments without gradient.
  const DataTypeVector& dx_types() const { return dx_types_; }
  // The arguments that have gradients.
  std::vector<bool> has_dx() const {
    std::vector<bool> has;
    for (const DataType type : dx_types_) has.push_back(type != DT_INVALID);
    return has;
  }

  // A function that returns some of the gradients.
  class Function {
   public:
    // Returns true if the gradients need argument i, or the gradient of result i.
    bool NeedsX(int i) const { return needed_.contains(XName(i)); }
    bool NeedsDy(int i) const { return needed_.contains(DyName(i)); }
    bool is_stateful() const { return def_.signature().is_stateful(); }
    // Adds the function with these arguments. REQUIRES: they include all arguments that the
    // function needs
    absl::StatusOr<NameAttrList> AddTo(FunctionGradients* owner, const std::vector<int>& xs,
                                       const std::vector<int>& dys) const {
      absl::flat_hash_map<std::string, OpDef::ArgDef> args;
      for (const OpDef::ArgDef& arg : def_.signature().input_arg()) args[arg.name()] = arg;
      FunctionDef function = def_;
      function.mutable_signature()->clear_input_arg();
      const auto add = [&](const std::string& name) {
        *function.mutable_signature()->add_input_arg() = args[name];
      };
      for (const int i : xs) add(XName(i));
      for (const int i : dys) add(DyName(i));
      return owner->AddFunction(absl::StrCat(body_->name(), "_gradient"), std::move(function));
    }

   private:
    friend class Body;
    // Drops the nodes that no result needs, and finds the arguments that the results need.
    void Prune();

    const FunctionBody* body_ = nullptr;
    FunctionDef def_;
    // The names of the nodes and arguments that the results need.
    absl::flat_hash_set<std::string> needed_;
  };

  // Returns a function that returns the gradients of the arguments `dxs`. Missing gradients are
  // zeros; `types` has the types of all gradients.
  absl::StatusOr<Function> Return(const std::vector<int>& dxs, const DataTypeVector& types) {
    // The nodes stay for other functions.
    FunctionBuilder builder = builder_;
    const Scope& scope = builder.scope();
    for (const int i : dxs) {
      const auto index = static_cast<size_t>(i);
      Output dx = dxs_[index];
      if (IsNoGradient(dx)) {
        const bool is_handle = BaseType(xs_[index].type()) == DT_RESOURCE;
        dx = ops::ZerosLike(
            scope,
            is_handle ? Output(ops::ReadVariableOp(scope, xs_[index], types[index])) : xs_[index]);
      }
      builder.Result(DxName(i), dx);
    }
    Function function;
    function.body_ = &body_;
    GRADFLOW_ASSIGN_OR_RETURN(function.def_, builder.Build());
    function.Prune();
    GRADFLOW_RETURN_IF_ERROR(Check(&function.def_));
    return function;
  }

 private:
  // Copies the nodes that the selected results need, and returns these results. The nodes of called
  // functions take the place of the calls. Control inputs are left out: the forward call has the
  // effects.
  absl::StatusOr<std::vector<Output>> Copy(const FunctionBody& body,
                                           const std::vector<Output>& args,
                                           const std::vector<bool>& selected,
                                           const std::string& prefix) {
    absl::flat_hash_map<const Node*, std::vector<Output>> copies;
    const auto copy_of = [&](const Node::Source& source) {
      const int arg = body.arg_index(*source.node);
      return arg >= 0 ? args[static_cast<size_t>(arg)]
                      : copies.at(source.node)[static_cast<size_t>(source.output)];
    };
    inlined_.push_back(&body);
    const absl::Cleanup leave = [this] { inlined_.pop_back(); };
    std::vector<Output> results;
    for (const int i : Indexes(selected)) {
      const Node::Source result = body.results()[static_cast<size_t>(i)];
      // The path to a node, with the index of the next source of each node.
      std::vector<std::pair<const Node*, int>> path;
      const auto enter = [&](const Node* node) {
        if (body.arg_index(*node) < 0 && !copies.contains(node)) path.emplace_back(node, 0);
      };
      enter(result.node);
      while (!path.empty()) {
        const auto [node, next] = path.back();
        if (next < node->num_inputs()) {
          ++path.back().second;
          enter(node->sources()[next].node);
          continue;
        }
        path.pop_back();
        if (copies.contains(node)) continue;
        std::vector<Output> inputs;
        for (int k = 0; k < node->num_inputs(); ++k) {
          inputs.push_back(copy_of(node->sources()[k]));
        }
        GRADFLOW_ASSIGN_OR_RETURN(copies[node], CopyNode(*node, inputs, prefix));
      }
      results.push_back(copy_of(result));
    }
    return results;
  }

  absl::StatusOr<std::vector<Output>> CopyNode(const Node& node, const std::vector<Output>& inputs,
                                               const std::string& prefix) {
    if (++owner_.num_copies_ > kMaxCopies) {
      return errors::ResourceExhausted("the gradients of functions have more than ", kMaxCopies,
                                       " nodes");
    }
    const std::string name = absl::StrCat(prefix, absl::StripPrefix(node.name(), "_"));
    if (node.op().functional() == FunctionalOp::kCall && inlined_.size() < kMaxNesting) {
      absl::StatusOr<std::vector<const FunctionBody*>> bodies = CalledFunctions(node);
      if (!bodies.ok()) return errors::Prefix(internal::NodePrefix(node.def()), bodies.status());
      const FunctionBody& called = *(*bodies)[0];
      const bool recurs = std::find(inlined_.begin(), inlined_.end(), &called) != inlined_.end();
      if (!recurs && owner_.DeclaredGradient(called).empty()) {
        return Copy(called, inputs, std::vector<bool>(called.results().size(), true),
                    absl::StrCat(name, "/"));
      }
    }
    NodeDef def = node.def();
    def.set_name(builder_.scope().GetUniqueNameForOp(name));
    def.mutable_attr()->erase("_class");
    def.clear_input();
    for (const Output& input : inputs) def.add_input(input.name());
    GRADFLOW_ASSIGN_OR_RETURN(const Node* const copy,
                              builder_.scope().graph()->AddNode(std::move(def)));
    std::vector<Output> outputs;
    for (int i = 0; i < copy->num_outputs(); ++i) outputs.emplace_back(copy, i);
    return outputs;
  }

  // Checks that all stateful nodes may run again. Sets whether the function has such nodes.
  absl::Status Check(FunctionDef* function) const {
    absl::flat_hash_set<const FunctionBody*> seen;
    const Graph& graph = *builder_.scope().graph();
    for (const NodeDef& def : function->node_def()) {
      const Node& node = *graph.FindNode(def.name());
      if (node.op_def().is_stateful()) function->mutable_signature()->set_is_stateful(true);
      GRADFLOW_RETURN_IF_ERROR(CheckRepeatable(node, &seen));
      if (!IsRead(node)) continue;
      for (int i = 0; i < node.num_inputs(); ++i) {
        const Node& source = *SourceOf(node.sources()[i]).node;
        if (!writes_.contains(source.name())) continue;
        return errors::Unimplemented("the gradient needs the value that ", internal::NodeTitle(def),
                                     " has read from a variable, which the function also writes");
      }
    }
    return absl::OkStatus();
  }

  FunctionGradients& owner_;
  const FunctionBody& body_;
  FunctionBuilder builder_;
  std::vector<Output> xs_;
  // The gradients of the arguments.
  std::vector<Output> dxs_;
  DataTypeVector dx_types_;
  // The functions whose nodes are being copied, outermost first.
  std::vector<const FunctionBody*> inlined_;
  // The names of arguments.
  absl::flat_hash_set<std::string> writes_;
};

absl::Status FunctionGradients::Body::Build(const std::vector<bool>& has_dy,
                                            const std::vector<bool>& wanted) {
  for (size_t i = 0; i < body_.arg_types().size(); ++i) {
    xs_.push_back(builder_.Arg(XName(static_cast<int>(i)), BaseType(body_.arg_types()[i])));
  }
  std::vector<Output> dys;
  for (int i = 0; i < static_cast<int>(has_dy.size()); ++i) {
    const Output dy = builder_.Arg(DyName(i), body_.result_types()[static_cast<size_t>(i)]);
    if (has_dy[static_cast<size_t>(i)]) dys.push_back(dy);
  }
  GRADFLOW_RETURN_IF_ERROR(builder_.scope().status());
  const std::vector<bool> writes = owner_.WrittenArgs(body_, 0);
  for (const int i : Indexes(writes)) writes_.insert(XName(i));
  GRADFLOW_ASSIGN_OR_RETURN(const std::vector<Output> ys, Copy(body_, xs_, has_dy, ""));
  std::vector<Output> wanted_xs;
  for (const int i : Indexes(wanted)) wanted_xs.push_back(xs_[static_cast<size_t>(i)]);
  GRADFLOW_ASSIGN_OR_RETURN(
      const std::vector<Output> dxs,
      AddGradientsOfFunction(builder_.scope(), ys, wanted_xs, dys, owner_.options_, &owner_));
  dxs_.assign(xs_.size(), NoGradient());
  dx_types_.assign(xs_.size(), DT_INVALID);
  size_t next = 0;
  for (const int i : Indexes(wanted)) {
    const Output& dx = dxs[next++];
    if (IsNoGradient(dx)) continue;
    dxs_[static_cast<size_t>(i)] = dx;
    dx_types_[static_cast<size_t>(i)] = BaseType(dx.type());
  }
  return absl::OkStatus();
}

void FunctionGradients::Body::Function::Prune() {
  absl::flat_hash_map<absl::string_view, const NodeDef*> nodes;
  for (const NodeDef& node : def_.node_def()) nodes.emplace(node.name(), &node);
  std::vector<std::string> todo;
  const auto need = [&](absl::string_view input) {
    absl::ConsumePrefix(&input, "^");
    const std::string name(input.substr(0, input.find(':')));
    if (needed_.insert(name).second) todo.push_back(name);
  };
  for (const auto& [result, value] : def_.ret()) need(value);
  while (!todo.empty()) {
    const auto node = nodes.find(todo.back());
    todo.pop_back();
    if (node == nodes.end()) continue;
    for (const std::string& input : node->second->input()) need(input);
  }
  google::protobuf::RepeatedPtrField<NodeDef> kept;
  for (NodeDef& node : *def_.mutable_node_def()) {
    if (needed_.contains(node.name())) *kept.Add() = std::move(node);
  }
  def_.mutable_node_def()->Swap(&kept);
  def_.mutable_signature()->set_is_stateful(false);
}

// ---- FunctionGradients ----

FunctionGradients::FunctionGradients(Graph* graph, const GradientBuildOptions& options)
    : graph_(*graph) {
  options_.registry = options.registry;
  options_.of_integers = options.of_integers;
  options_.plain_names = false;
}

FunctionGradients::~FunctionGradients() = default;

absl::StatusOr<FunctionGradients::Body*> FunctionGradients::GradientsOf(
    const Scope& scope, const FunctionBody& body, const std::vector<bool>& has_dy,
    const std::vector<bool>& wanted) {
  const Key key = {&body, {has_dy, wanted}};
  if (const auto built = bodies_.find(key); built != bodies_.end()) return built->second.get();
  if (std::find(path_.begin(), path_.end(), key) != path_.end()) {
    return errors::Unimplemented("function ", internal::Quoted(body.name()),
                                 " calls itself; gradients of recursions are not supported");
  }
  if (path_.size() >= kMaxNesting) {
    return errors::Unimplemented("functions are nested deeper than ", kMaxNesting, " levels");
  }
  path_.push_back(key);
  const absl::Cleanup leave = [this] { path_.pop_back(); };
  auto made = std::make_unique<Body>(this, scope, body);
  if (absl::Status status = made->Build(has_dy, wanted); !status.ok()) {
    return errors::Prefix(absl::StrCat("function ", internal::Quoted(body.name()), ": "), status);
  }
  return (bodies_[key] = std::move(made)).get();
}

bool FunctionGradients::Handles(const Node& node) {
  switch (node.op().functional()) {
    case FunctionalOp::kCall:
    case FunctionalOp::kIf:
    case FunctionalOp::kCase:
    case FunctionalOp::kWhile:
      return true;
    default:
      return false;
  }
}

absl::StatusOr<NameAttrList> FunctionGradients::AddFunction(const std::string& prefix,
                                                            FunctionDef function) {
  std::string name = prefix;
  for (int i = 1;
       graph_.functions().Find(name) != nullptr || graph_.registry().FindOp(name) != nullptr; ++i) {
    name = absl::StrCat(prefix, "_", i);
  }
  function.mutable_signature()->set_name(name);
  GRADFLOW_RETURN_IF_ERROR(graph_.AddFunction(function));
  return NameOf(name);
}

absl::Status FunctionGradients::Add(const Scope& scope, const Operation& op,
                                    const std::vector<bool>& wanted, const std::vector<Output>& dys,
                                    std::vector<Output>* dxs) {
  const Node& node = *op.node();
  GRADFLOW_ASSIGN_OR_RETURN(const std::vector<const FunctionBody*> bodies, CalledFunctions(node));
  dxs->assign(static_cast<size_t>(op.num_inputs()), NoGradient());
  switch (node.op().functional()) {
    case FunctionalOp::kCall:
      if (const std::string gradient = DeclaredGradient(*bodies[0]); !gradient.empty()) {
        return AddDeclared(scope, op, gradient, dys, dxs);
      }
      return AddOfCall(scope, op, *bodies[0], wanted, dys, dxs);
    case FunctionalOp::kIf:
    case FunctionalOp::kCase:
      return AddOfBranches(scope, op, bodies, wanted, dys, dxs);
    default:
      return AddOfWhile(scope, op, *bodies[0], *bodies[1], wanted, dys, dxs);
  }
}

absl::StatusOr<NameAttrList> FunctionGradients::AddComplete(const Scope& scope,
                                                            const FunctionBody& body) {
  if (const std::string gradient = DeclaredGradient(body); !gradient.empty()) {
    return NameOf(gradient);
  }
  std::vector<bool> has_dy, wanted;
  for (const DataType type : body.result_types()) {
    has_dy.push_back(IsDifferentiable(type, options_));
  }
  for (const DataType type : body.arg_types()) wanted.push_back(IsDifferentiable(type, options_));
  GRADFLOW_ASSIGN_OR_RETURN(Body* const gradients, GradientsOf(scope, body, has_dy, wanted));
  const std::vector<int> xs = Indexes(std::vector<bool>(wanted.size(), true));
  GRADFLOW_ASSIGN_OR_RETURN(const Body::Function function, gradients->Return(xs, body.arg_types()));
  return function.AddTo(this, xs, Indexes(std::vector<bool>(has_dy.size(), true)));
}

std::vector<bool> FunctionGradients::WrittenArgs(const FunctionBody& body, size_t depth) {
  const size_t num_args = body.arg_types().size();
  // Deeper functions may write anything.
  if (depth > kMaxNesting) return std::vector<bool>(num_args, true);
  const auto [it, is_new] = written_args_.try_emplace(&body, num_args, false);
  // A recursive call writes no further arguments.
  if (!is_new) return it->second;
  std::vector<bool> writes(num_args);
  for (const Node* effect : body.effects()) {
    // The argument that each input is, or -1.
    std::vector<int> inputs;
    for (int i = 0; i < effect->num_inputs(); ++i) {
      const bool is_handle = BaseType(effect->input_type(i)) == DT_RESOURCE;
      inputs.push_back(
          is_handle ? body.arg_index(*SourceOf(effect->sources()[static_cast<size_t>(i)]).node)
                    : -1);
    }
    const auto add = [&](int arg) {
      if (arg >= 0) writes[static_cast<size_t>(arg)] = true;
    };
    if (effect->op().functional() == FunctionalOp::kNone) {
      if (!IsRead(*effect)) std::for_each(inputs.begin(), inputs.end(), add);
      continue;
    }
    const auto bodies = CalledFunctions(*effect);
    if (!bodies.ok()) continue;
    for (const FunctionBody* called : *bodies) {
      const std::vector<bool> written = WrittenArgs(*called, depth + 1);
      if (written.size() > inputs.size()) continue;
      // The inputs before the arguments select a function.
      const size_t first = inputs.size() - written.size();
      for (const int arg : Indexes(written)) add(inputs[first + static_cast<size_t>(arg)]);
    }
  }
  written_args_[&body] = writes;
  return writes;
}

std::string FunctionGradients::DeclaredGradient(const FunctionBody& body) {
  if (!declared_.has_value()) {
    declared_.emplace();
    for (const GradientDef& gradient : graph_.def().library().gradient()) {
      declared_->emplace(gradient.function_name(), gradient.gradient_func());
    }
  }
  const auto it = declared_->find(body.name());
  return it == declared_->end() ? "" : it->second;
}

absl::Status FunctionGradients::AddDeclared(const Scope& scope, const Operation& op,
                                            const std::string& gradient,
                                            const std::vector<Output>& dys,
                                            std::vector<Output>* dxs) {
  OutputList inputs;
  DataTypeVector types;
  for (int i = 0; i < op.num_inputs(); ++i) {
    inputs.push_back(op.input(i));
    types.push_back(BaseType(op.input_type(i)));
  }
  for (int i = 0; i < op.num_outputs(); ++i) inputs.push_back(OrZeros(scope, op, i, dys));
  const Operation call = AddCall(scope, CallOp(true), inputs, types, NameOf(gradient));
  GRADFLOW_RETURN_IF_ERROR(scope.status());
  for (int i = 0; i < op.num_inputs(); ++i) (*dxs)[static_cast<size_t>(i)] = call.output(i);
  return absl::OkStatus();
}

namespace {

std::vector<bool> HasGradient(const std::vector<Output>& dys) {
  std::vector<bool> has;
  for (const Output& dy : dys) has.push_back(!IsNoGradient(dy));
  return has;
}

// Returns a scope whose nodes run after the effects of the forward node `op`, so that they read the
// same values of variables.
Scope After(const Scope& scope, const Operation& op, bool is_stateful) {
  return is_stateful ? scope.WithControlDependencies({op}) : scope;
}

}  // namespace

absl::Status FunctionGradients::AddOfCall(const Scope& scope, const Operation& op,
                                          const FunctionBody& body, const std::vector<bool>& wanted,
                                          const std::vector<Output>& dys,
                                          std::vector<Output>* dxs) {
  const std::vector<bool> has_dy = HasGradient(dys);
  const Key key = {&body, {has_dy, wanted}};
  auto known = known_.find(key);
  if (known == known_.end()) {
    GRADFLOW_ASSIGN_OR_RETURN(Body* const gradients, GradientsOf(scope, body, has_dy, wanted));
    Function function;
    function.dxs = Indexes(gradients->has_dx());
    if (!function.dxs.empty()) {
      GRADFLOW_ASSIGN_OR_RETURN(const Body::Function made,
                                gradients->Return(function.dxs, gradients->dx_types()));
      for (const int i : function.dxs) {
        function.types.push_back(gradients->dx_types()[static_cast<size_t>(i)]);
      }
      for (int i = 0; i < static_cast<int>(wanted.size()); ++i) {
        if (made.NeedsX(i)) function.xs.push_back(i);
      }
      for (int i = 0; i < static_cast<int>(dys.size()); ++i) {
        if (made.NeedsDy(i)) function.dys.push_back(i);
      }
      function.is_stateful = made.is_stateful();
      GRADFLOW_ASSIGN_OR_RETURN(function.name, made.AddTo(this, function.xs, function.dys));
    }
    known = known_.emplace(key, std::move(function)).first;
  }
  const Function& function = known->second;
  if (function.dxs.empty()) return absl::OkStatus();
  OutputList inputs;
  for (const int i : function.xs) inputs.push_back(op.input(i));
  for (const int i : function.dys) inputs.push_back(dys[static_cast<size_t>(i)]);
  const Operation call =
      AddCall(After(scope, op, function.is_stateful), CallOp(function.is_stateful), inputs,
              function.types, function.name);
  GRADFLOW_RETURN_IF_ERROR(scope.status());
  for (size_t k = 0; k < function.dxs.size(); ++k) {
    (*dxs)[static_cast<size_t>(function.dxs[k])] = call.output(static_cast<int>(k));
  }
  return absl::OkStatus();
}

absl::Status FunctionGradients::AddOfBranches(const Scope& scope, const Operation& op,
                                              const std::vector<const FunctionBody*>& bodies,
                                              const std::vector<bool>& wanted,
                                              const std::vector<Output>& dys,
                                              std::vector<Output>* dxs) {
  // Input 0 selects the function.
  const std::vector<bool> wanted_args(wanted.begin() + 1, wanted.end());
  const std::vector<bool> has_dy = HasGradient(dys);
  std::vector<Body*> gradients;
  // The gradients that any function has.
  DataTypeVector types(wanted_args.size(), DT_INVALID);
  for (const FunctionBody* body : bodies) {
    GRADFLOW_ASSIGN_OR_RETURN(gradients.emplace_back(),
                              GradientsOf(scope, *body, has_dy, wanted_args));
    for (size_t i = 0; i < types.size(); ++i) {
      if (types[i] == DT_INVALID) types[i] = gradients.back()->dx_types()[i];
    }
  }
  std::vector<int> returned;
  DataTypeVector returned_types;
  for (size_t i = 0; i < types.size(); ++i) {
    if (types[i] == DT_INVALID) continue;
    returned.push_back(static_cast<int>(i));
    returned_types.push_back(types[i]);
  }
  if (returned.empty()) return absl::OkStatus();
  bool is_stateful = false;
  std::vector<Body::Function> made;
  for (Body* const body : gradients) {
    GRADFLOW_ASSIGN_OR_RETURN(made.emplace_back(), body->Return(returned, types));
    is_stateful |= made.back().is_stateful();
  }
  // All functions have the same arguments.
  const auto any_needs = [&](auto needs) { return std::any_of(made.begin(), made.end(), needs); };
  std::vector<int> xs, needed_dys;
  OutputList inputs;
  for (int i = 0; i < static_cast<int>(types.size()); ++i) {
    if (!any_needs([i](const auto& function) { return function.NeedsX(i); })) continue;
    xs.push_back(i);
    inputs.push_back(op.input(i + 1));
  }
  for (int i = 0; i < static_cast<int>(dys.size()); ++i) {
    if (!any_needs([i](const auto& function) { return function.NeedsDy(i); })) continue;
    needed_dys.push_back(i);
    inputs.push_back(dys[static_cast<size_t>(i)]);
  }
  std::vector<NameAttrList> functions;
  for (const Body::Function& function : made) {
    GRADFLOW_ASSIGN_OR_RETURN(functions.emplace_back(), function.AddTo(this, xs, needed_dys));
  }
  const bool is_if = op.node()->op().functional() == FunctionalOp::kIf;
  const std::string name = absl::StrCat(is_stateful ? "" : "Stateless", is_if ? "If" : "Case");
  const Scope after = After(scope, op, is_stateful);
  OpBuilder builder(after, name);
  builder.Input(op.input(0)).Input(InputList(inputs)).Attr("Tout", returned_types);
  if (is_if) {
    builder.Attr("then_branch", functions[0]).Attr("else_branch", functions[1]);
  } else {
    builder.Attr("branches", absl::Span<const NameAttrList>(functions));
  }
  const Operation branch = builder.Finish();
  GRADFLOW_RETURN_IF_ERROR(scope.status());
  for (size_t k = 0; k < returned.size(); ++k) {
    (*dxs)[static_cast<size_t>(returned[k]) + 1] = branch.output(static_cast<int>(k));
  }
  return absl::OkStatus();
}

absl::Status FunctionGradients::AddOfWhile(const Scope& scope, const Operation& op,
                                           const FunctionBody& condition, const FunctionBody& body,
                                           const std::vector<bool>& wanted,
                                           const std::vector<Output>& dys,
                                           std::vector<Output>* dxs) {
  const int num_variables = op.num_inputs();
  const auto at = [](int i) { return static_cast<size_t>(i); };
  // Variables that each iteration passes on. Their gradients are sums over the iterations.
  std::vector<bool> is_fixed(at(num_variables));
  std::vector<bool> wanted_args(at(num_variables));
  // The results of an iteration that have gradients.
  std::vector<bool> has_dy = HasGradient(dys);
  for (int i = 0; i < num_variables; ++i) {
    is_fixed[at(i)] = body.arg_index(*SourceOf(body.results()[at(i)]).node) == i;
    const DataType type = BaseType(op.input_type(i));
    wanted_args[at(i)] = is_fixed[at(i)] ? wanted[at(i)] : IsDifferentiable(type, options_);
    has_dy[at(i)] = has_dy[at(i)] && !is_fixed[at(i)] && type != DT_RESOURCE;
  }
  // The gradient of a variable in one iteration is the gradient of a result of the previous
  // iteration. Adds results until the variables with gradients and the results with gradients are
  // the same. This takes few rounds.
  Body* gradients_of_body = nullptr;
  for (bool grows = true; grows;) {
    grows = false;
    if (std::find(has_dy.begin(), has_dy.end(), true) == has_dy.end()) break;
    GRADFLOW_ASSIGN_OR_RETURN(gradients_of_body, GradientsOf(scope, body, has_dy, wanted_args));
    for (int i = 0; i < num_variables; ++i) {
      if (is_fixed[at(i)] || has_dy[at(i)] || gradients_of_body->dx_types()[at(i)] == DT_INVALID)
        continue;
      has_dy[at(i)] = grows = true;
    }
  }
  // A variable that is passed on has the gradient of the result as well.
  for (int i = 0; i < num_variables; ++i) {
    if (is_fixed[at(i)]) (*dxs)[at(i)] = dys[at(i)];
  }
  if (gradients_of_body == nullptr) return absl::OkStatus();

  // The gradients that the second loop computes: gradients that change in each iteration, and sums.
  std::vector<int> varied, sums;
  DataTypeVector types(at(num_variables), DT_INVALID);
  for (int i = 0; i < num_variables; ++i) {
    types[at(i)] = gradients_of_body->dx_types()[at(i)];
    if (has_dy[at(i)]) {
      types[at(i)] = body.result_types()[at(i)];
      varied.push_back(i);
    } else if (is_fixed[at(i)] && types[at(i)] != DT_INVALID) {
      sums.push_back(i);
    }
  }
  std::vector<int> returned = varied;
  returned.insert(returned.end(), sums.begin(), sums.end());
  GRADFLOW_ASSIGN_OR_RETURN(const Body::Function gradient,
                            gradients_of_body->Return(returned, types));
  std::vector<int> xs, kept, fixed, needed_dys;
  for (int i = 0; i < num_variables; ++i) {
    if (gradient.NeedsDy(i)) needed_dys.push_back(i);
    if (!gradient.NeedsX(i)) continue;
    xs.push_back(i);
    (is_fixed[at(i)] ? fixed : kept).push_back(i);
  }
  absl::flat_hash_set<const FunctionBody*> seen;
  GRADFLOW_RETURN_IF_ERROR(CheckRepeatable(condition, &seen));
  GRADFLOW_RETURN_IF_ERROR(CheckRepeatable(body, &seen));
  GRADFLOW_ASSIGN_OR_RETURN(const NameAttrList gradient_name, gradient.AddTo(this, xs, needed_dys));

  // ---- The loop that keeps the variables ----
  const bool is_stateful = IsStateful(condition) || IsStateful(body);
  NameAttrList condition_name, body_name;
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "cond", &condition_name));
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "body", &body_name));
  DataTypeVector variable_types;
  for (int i = 0; i < num_variables; ++i) variable_types.push_back(BaseType(op.input_type(i)));
  const Output any_shape = ops::Const(scope, -1);
  OutputList kept_inputs;
  for (int i = 0; i < num_variables; ++i) kept_inputs.push_back(op.input(i));
  kept_inputs.push_back(ops::Const(scope, 0));
  for (const int i : kept) {
    kept_inputs.push_back(ops::EmptyTensorList(scope, any_shape, any_shape, variable_types[at(i)]));
  }
  GRADFLOW_RETURN_IF_ERROR(scope.status());
  const auto add_args = [](FunctionBuilder* builder, const OutputList& values) {
    OutputList args;
    for (size_t i = 0; i < values.size(); ++i) {
      args.push_back(builder->Arg(absl::StrCat("arg", i), BaseType(values[i].type())));
    }
    return args;
  };
  const auto add_to = [this](const std::string& name,
                             const FunctionBuilder& builder) -> absl::StatusOr<NameAttrList> {
    GRADFLOW_ASSIGN_OR_RETURN(FunctionDef function, builder.Build());
    return AddFunction(name, std::move(function));
  };
  FunctionBuilder keeps_condition("condition", scope);
  {
    const OutputList args = add_args(&keeps_condition, kept_inputs);
    const OutputList variables(args.begin(), args.begin() + num_variables);
    const Operation call = AddCall(keeps_condition.scope(), CallOp(IsStateful(condition)),
                                   variables, {condition.result_types()[0]}, condition_name);
    keeps_condition.Result("goes_on", call.output(0));
  }
  FunctionBuilder keeps_body("body", scope);
  {
    const Scope& s = keeps_body.scope();
    const OutputList args = add_args(&keeps_body, kept_inputs);
    const OutputList variables(args.begin(), args.begin() + num_variables);
    const Operation call =
        AddCall(s, CallOp(IsStateful(body)), variables, variable_types, body_name);
    for (int i = 0; i < num_variables; ++i) {
      // Returns fixed variables as they are, so that the gradient of this loop recognizes them as
      // fixed.
      keeps_body.Result(absl::StrCat("result", i), is_fixed[at(i)] ? args[at(i)] : call.output(i));
    }
    keeps_body.Result("count", ops::Add(s, args[at(num_variables)], 1));
    for (size_t k = 0; k < kept.size(); ++k) {
      keeps_body.Result(
          absl::StrCat("list", k),
          ops::TensorListPushBack(s, args[at(num_variables) + 1 + k], args[at(kept[k])]));
    }
  }
  GRADFLOW_ASSIGN_OR_RETURN(const NameAttrList keeps_condition_name,
                            add_to(absl::StrCat(condition.name(), "_kept"), keeps_condition));
  GRADFLOW_ASSIGN_OR_RETURN(const NameAttrList keeps_body_name,
                            add_to(absl::StrCat(body.name(), "_kept"), keeps_body));
  const Scope after = After(scope, op, is_stateful);
  const Operation keeps = OpBuilder(after, is_stateful ? "While" : "StatelessWhile")
                              .Input(InputList(kept_inputs))
                              .Attr("cond", keeps_condition_name)
                              .Attr("body", keeps_body_name)
                              .Finish();
  GRADFLOW_RETURN_IF_ERROR(scope.status());

  // ---- The loop of the gradients. Its variables are the number of iterations that are left, the
  // lists, the fixed variables, and the gradients ----
  OutputList back_inputs;
  for (size_t k = 0; k <= kept.size(); ++k) {
    back_inputs.push_back(keeps.output(num_variables + static_cast<int>(k)));
  }
  for (const int i : fixed) back_inputs.push_back(op.input(i));
  for (const int i : varied) back_inputs.push_back(OrZeros(scope, op, i, dys));
  for (const int i : sums) {
    const Output value = variable_types[at(i)] == DT_RESOURCE
                             ? Output(ops::ReadVariableOp(after, op.input(i), types[at(i)]))
                             : op.input(i);
    back_inputs.push_back(IsNoGradient(dys[at(i)]) ? Output(ops::ZerosLike(scope, value))
                                                   : dys[at(i)]);
  }
  GRADFLOW_RETURN_IF_ERROR(scope.status());
  FunctionBuilder back_condition("condition", scope);
  {
    const OutputList args = add_args(&back_condition, back_inputs);
    back_condition.Result("goes_on", ops::Greater(back_condition.scope(), args[0], 0));
  }
  FunctionBuilder back_body("body", scope);
  {
    const Scope& s = back_body.scope();
    const OutputList args = add_args(&back_body, back_inputs);
    const size_t first_fixed = 1 + kept.size();
    const size_t first_gradient = first_fixed + fixed.size();
    back_body.Result("left", ops::Sub(s, args[0], 1));
    absl::flat_hash_map<int, Output> values;
    for (size_t k = 0; k < kept.size(); ++k) {
      const ops::TensorListPopBack popped(s, args[1 + k], -1, variable_types[at(kept[k])]);
      values[kept[k]] = popped.tensor;
      back_body.Result(absl::StrCat("list", k), popped.output_handle);
    }
    for (size_t k = 0; k < fixed.size(); ++k) {
      values[fixed[k]] = args[first_fixed + k];
      back_body.Result(absl::StrCat("fixed", k), args[first_fixed + k]);
    }
    absl::flat_hash_map<int, Output> gradients;
    for (size_t k = 0; k < returned.size(); ++k) gradients[returned[k]] = args[first_gradient + k];
    OutputList inputs;
    for (const int i : xs) inputs.push_back(values[i]);
    for (const int i : needed_dys) inputs.push_back(gradients[i]);
    DataTypeVector returned_types;
    for (const int i : returned) returned_types.push_back(types[at(i)]);
    const Operation call =
        AddCall(s, CallOp(gradient.is_stateful()), inputs, returned_types, gradient_name);
    for (size_t k = 0; k < returned.size(); ++k) {
      const Output dx = call.output(static_cast<int>(k));
      back_body.Result(
          absl::StrCat("gradient", k),
          k < varied.size() ? dx : Output(ops::AddN(s, OutputList{args[first_gradient + k], dx})));
    }
  }
  GRADFLOW_ASSIGN_OR_RETURN(const NameAttrList back_condition_name,
                            add_to(absl::StrCat(condition.name(), "_back"), back_condition));
  GRADFLOW_ASSIGN_OR_RETURN(const NameAttrList back_body_name,
                            add_to(absl::StrCat(body.name(), "_back"), back_body));
  const Operation back = OpBuilder(after, gradient.is_stateful() ? "While" : "StatelessWhile")
                             .Input(InputList(back_inputs))
                             .Attr("cond", back_condition_name)
                             .Attr("body", back_body_name)
                             .Finish();
  GRADFLOW_RETURN_IF_ERROR(scope.status());
  const int first_gradient = static_cast<int>(back_inputs.size() - returned.size());
  for (size_t k = 0; k < returned.size(); ++k) {
    (*dxs)[at(returned[k])] = back.output(first_gradient + static_cast<int>(k));
  }
  return absl::OkStatus();
}

}  // namespace gradflow::gradients

namespace gradflow {

absl::Status ExpandSymbolicGradients(GraphDef* graph) {
  const auto expand = [&]() -> absl::Status {
    std::vector<NodeDef*> nodes;
    const auto find = [&](auto* list) {
      for (NodeDef& node : *list) {
        if (node.op() == "SymbolicGradient") nodes.push_back(&node);
      }
    };
    find(graph->mutable_node());
    if (graph->has_library()) {
      for (FunctionDef& function : *graph->mutable_library()->mutable_function()) {
        find(function.mutable_node_def());
      }
    }
    if (nodes.empty()) return absl::OkStatus();
    const Scope scope = Scope::NewRootScope();
    GraphDef functions;
    *functions.mutable_versions() = graph->versions();
    *functions.mutable_library() = graph->library();
    GRADFLOW_RETURN_IF_ERROR(ImportGraphDef({}, std::move(functions), scope.graph()));
    const int num_functions = scope.graph()->def().library().function_size();
    gradients::FunctionGradients gradients(scope.graph(), {});
    // Keyed by the function.
    std::map<const FunctionBody*, NameAttrList> known;
    std::vector<NameAttrList> expanded;
    for (const NodeDef* node : nodes) {
      const auto make = [&]() -> absl::Status {
        NameAttrList f;
        GRADFLOW_RETURN_IF_ERROR(GetNodeAttr(*node, "f", &f));
        GRADFLOW_ASSIGN_OR_RETURN(const FunctionBody* const body,
                                  scope.graph()->functions().Instantiate(f));
        if (known.count(body) == 0) {
          GRADFLOW_ASSIGN_OR_RETURN(known[body], gradients.AddComplete(scope, *body));
        }
        expanded.push_back(known[body]);
        return absl::OkStatus();
      };
      if (absl::Status status = make(); !status.ok()) {
        return errors::Prefix(internal::NodePrefix(*node), status);
      }
    }
    for (size_t i = 0; i < nodes.size(); ++i) {
      nodes[i]->set_op("StatefulPartitionedCall");
      *(*nodes[i]->mutable_attr())["f"].mutable_func() = std::move(expanded[i]);
    }
    const FunctionDefLibrary& library = scope.graph()->def().library();
    for (int i = num_functions; i < library.function_size(); ++i) {
      *graph->mutable_library()->add_function() = library.function(i);
    }
    return absl::OkStatus();
  };
  GRADFLOW_RETURN_IF_ERROR(internal::CheckOut(graph, "ExpandSymbolicGradients", "graph"));
  return CallSafely(expand);
}

}  // namespace gradflow
