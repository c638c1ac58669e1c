#include "gradflow/runtime/plan/expand_calls.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/control_flow.h"
#include "gradflow/graph/graph.h"
#include "gradflow/graph/node_checks.h"
#include "gradflow/runtime/plan/deadness.h"
#include "gradflow/runtime/plan/kernel_cache.h"
#include "gradflow/runtime/plan/op_traits.h"
#include "gradflow/runtime/plan/plan_rewriter.h"
#include "gradflow/runtime/plan/wait_kernel.h"

namespace gradflow {
namespace {

using Value = PlanGraph::Value;

// The sizes that stand for the memory of a call site, and of a plan in addition to its nodes.
constexpr int64_t kCallSize = 16;
constexpr int64_t kPlanSize = 48;

// Adds the nodes of functions to a plan.
class BodyInserter {
 public:
  BodyInserter(const PassContext& context, PlanGraph* graph)
      : context_(context), graph_(*graph), stop_(context.limits.cancelled, context.limits.closed) {}

  // The nodes of a body in the plan.
  struct Inserted {
    std::vector<Value> results;
    // The nodes that compute the results, and the nodes of `effects`. May have duplicates.
    std::vector<int32_t> ends;
    std::vector<int32_t> effects;
  };

  // Adds the body that is called at `site`. Nodes that read an argument or nothing, except
  // constants, wait for `controls`. REQUIRES: `args` has a value for each argument of the body
  absl::StatusOr<Inserted> Insert(const CallSite* site, absl::Span<const Value> args,
                                  absl::Span<const int32_t> controls) {
    const FunctionBody& body = *site->body;
    site_ = site;
    args_ = args;
    controls_ = controls;
    // Also charges the nodes that the plan does not need: the inserter has an entry for each node
    // of the body, and the call has an entry for each argument and result.
    GRADFLOW_RETURN_IF_ERROR(
        ChargeFunctions(context_, PlanOrigin(site->node, site->caller),
                        kCallSize + body.graph().num_nodes() +
                            static_cast<int64_t>(args.size() + body.results().size())));
    ids_.assign(body.graph().num_nodes(), kUnvisited);
    is_delayed_.assign(body.graph().num_nodes(), false);
    back_edges_.clear();
    Inserted inserted;
    for (const Node* effect : body.effects()) GRADFLOW_RETURN_IF_ERROR(Visit(effect));
    for (const Node::Source& result : body.results()) {
      if (ArgOf(*result.node) < 0) GRADFLOW_RETURN_IF_ERROR(Visit(result.node));
    }
    // Loops of version 1 control flow are cycles, which are closed when all nodes have been added.
    for (size_t i = 0; i < back_edges_.size(); ++i) {
      GRADFLOW_RETURN_IF_ERROR(Visit(back_edges_[i].source.node));
    }
    for (const BackEdge& edge : back_edges_) {
      graph_.SetEdge(edge.node, edge.input, ValueOf(edge.source));
    }
    for (const Node* effect : body.effects()) {
      inserted.effects.push_back(ids_[effect->id()]);
      inserted.ends.push_back(ids_[effect->id()]);
    }
    for (const Node::Source& result : body.results()) {
      const Value value = ValueOf(result);
      inserted.results.push_back(value);
      if (!value.is_feed()) inserted.ends.push_back(value.node);
    }
    return inserted;
  }

 private:
  // Stand for the id of a node that has not been added.
  static constexpr int32_t kUnvisited = -1;
  static constexpr int32_t kInProgress = -2;

  // Returns the index of the argument that the node stands for, or -1.
  int32_t ArgOf(const Node& node) const { return site_->body->arg_index(node); }

  // REQUIRES: the node has been added, or is an argument
  Value ValueOf(const Node::Source& source) const {
    const int32_t arg = ArgOf(*source.node);
    if (arg < 0) return {ids_[source.node->id()], source.output < 0 ? kControl : source.output};
    if (source.output >= 0) return args_[arg];
    return {args_[arg].node, kControl};
  }

  // Adds the nodes that `root` needs, then `root` itself.
  absl::Status Visit(const Node* root) {
    // Depth-first search without recursion: the stack holds the path to a node, and for each node
    // on it the first of its sources that has not been visited.
    if (ids_[root->id()] != kUnvisited) return absl::OkStatus();
    std::vector<std::pair<const Node*, absl::Span<const Node::Source>>> stack;
    const auto enter = [&](const Node* node) {
      ids_[node->id()] = kInProgress;
      stack.emplace_back(node, node->sources());
    };
    enter(root);
    while (!stack.empty()) {
      auto& [node, sources] = stack.back();
      const Node* next = nullptr;
      while (next == nullptr && !sources.empty()) {
        const Node::Source& edge = sources.front();
        const Node* const source = edge.node;
        sources.remove_prefix(1);
        if (ArgOf(*source) >= 0 || IsBackEdge(*node, edge)) continue;
        const int32_t id = ids_[source->id()];
        if (id == kInProgress) {
          return errors::Internal(PlanNodePrefix({node, site_}), "the function has a cycle");
        }
        if (id == kUnvisited) next = source;
      }
      if (next != nullptr) {
        enter(next);
        continue;
      }
      if (stop_.Check()) {
        return errors::Prefix(absl::StrCat(PlanNodePrefix({node, site_}), "not planned, since "),
                              WhyStopped(stop_, context_.limits));
      }
      GRADFLOW_RETURN_IF_ERROR(Add(*node));
      stack.pop_back();
    }
    return absl::OkStatus();
  }

  absl::Status Add(const Node& node) {
    std::vector<Value> inputs;
    std::vector<Value> control_inputs;
    bool reads_arg = false;
    bool is_delayed = false;
    for (const Node::Source& source : node.sources()) {
      const Value value = ValueOf(source);
      reads_arg |= ArgOf(*source.node) >= 0;
      is_delayed |= ArgOf(*source.node) < 0 && is_delayed_[source.node->id()];
      if (IsBackEdge(node, source)) {
        back_edges_.push_back({graph_.num_nodes(), static_cast<int>(inputs.size()), source});
      }
      (source.output < 0 ? control_inputs : inputs).push_back(value);
    }
    // Values that depend on constants alone may be folded.
    if (!controls_.empty() && (reads_arg || (!is_delayed && !IsPure(node)))) {
      is_delayed = true;
      for (const int32_t control : controls_) control_inputs.push_back({control, kControl});
    }
    // Insert() has charged the node itself.
    GRADFLOW_RETURN_IF_ERROR(ChargeFunctions(
        context_, {&node, site_},
        static_cast<int64_t>(inputs.size() + control_inputs.size() + node.output_types().size())));
    is_delayed_[node.id()] = is_delayed;
    ids_[node.id()] = graph_.AddOriginal({&node, site_}, inputs, control_inputs);
    return absl::OkStatus();
  }

  static constexpr int32_t kControl = PlanGraph::kControl;

  const PassContext& context_;
  PlanGraph& graph_;
  StopToken stop_;
  // The call whose body is being inserted, its arguments, and the nodes that the body waits for.
  const CallSite* site_ = nullptr;
  absl::Span<const Value> args_;
  absl::Span<const int32_t> controls_;
  // The node's id in the plan. Indexed by the node's id in the body.
  std::vector<int32_t> ids_;
  // True if the node waits, directly or not, for the control inputs. Indexed by the node's id in
  // the body.
  std::vector<bool> is_delayed_;
  // An edge of a node of the plan that closes a loop.
  struct BackEdge {
    int32_t node;
    int input;
    Node::Source source;
  };
  std::vector<BackEdge> back_edges_;
};

// Adds a node that ends when `nodes` have ended.
int32_t AddWait(const PlanOrigin& call, std::vector<int32_t> nodes, PlanGraph* graph) {
  PlanGraph::NewNode wait;
  wait.label.name = call.name();
  wait.label.op = "Wait";
  wait.label.origins = {call};
  wait.kernel = std::make_shared<WaitKernel>();
  wait.control_inputs = std::move(nodes);
  // A function has ended even if some of its branches were not taken.
  wait.ignores_dead_controls = true;
  return graph->AddNode(std::move(wait));
}

class CallExpander {
 public:
  CallExpander(const PassContext& context, PlanGraph* graph)
      : context_(context), graph_(*graph), inserter_(context, graph) {}

  absl::Status Expand() {
    bool any = false;
    bool knows_dead = false;
    // Inlined functions may add further calls.
    for (int32_t node = 0; node < graph_.num_nodes(); ++node) {
      if (graph_.label(node) != nullptr || graph_.has_known_value(node) ||
          graph_.origin(node).op().functional() != FunctionalOp::kCall) {
        continue;
      }
      // Nodes that are inlined below are alive.
      if (!std::exchange(knows_dead, true)) maybe_dead_ = FindMaybeDead(graph_);
      GRADFLOW_ASSIGN_OR_RETURN(const bool expanded, ExpandCall(node));
      any |= expanded;
    }
    return any ? graph_.Prune() : absl::OkStatus();
  }

 private:
  // Returns false if the node remains.
  absl::StatusOr<bool> ExpandCall(int32_t node) {
    const PlanOrigin call = graph_.origin_at_site(node);
    GRADFLOW_ASSIGN_OR_RETURN(const std::vector<Callee> callees, CalleesOf(call));
    const FunctionBody& body = *callees[0].body;
    if (IsWithin(call.site, body)) return false;
    // The nodes of the function that do not depend on the call would run although it is dead.
    if (static_cast<size_t>(node) < maybe_dead_.size() && maybe_dead_[node]) return false;
    // Empty functions count as well.
    const int64_t nodes = 1 + body.graph().num_nodes();
    if (nodes > context_.budget->inlined_nodes || HasControlFlow(body)) return false;
    context_.budget->inlined_nodes -= nodes;
    std::vector<Value> args;
    std::vector<int32_t> controls;
    for (int i = 0; i < graph_.num_edges(node); ++i) {
      const Value value = graph_.edge(node, i);
      if (i < graph_.num_inputs(node)) {
        args.push_back(value);
      } else if (!value.is_feed()) {
        controls.push_back(value.node);
      }
    }
    const CallSite* const site = context_.kernels->SiteOf(call.site, *call.node, body);
    // Otherwise each node of the function would wait for each control input.
    if (controls.size() > 1) controls = {AddWait(call, controls, &graph_)};
    GRADFLOW_ASSIGN_OR_RETURN(BodyInserter::Inserted inserted,
                              inserter_.Insert(site, args, controls));
    for (const int32_t effect : inserted.effects) graph_.AddTarget(effect);
    // The call as a whole also waits for its own inputs.
    std::vector<int32_t> ends = std::move(inserted.ends);
    ends.insert(ends.end(), controls.begin(), controls.end());
    for (const Value arg : args) {
      if (!arg.is_feed()) ends.push_back(arg.node);
    }
    std::sort(ends.begin(), ends.end());
    ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
    const int32_t end = AddWait(call, std::move(ends), &graph_);
    graph_.Replace(node, end, std::move(inserted.results));
    return true;
  }

  // Looks at the nodes of each function once, because there may be many calls of a large function.
  bool HasControlFlow(const FunctionBody& body) {
    const auto [it, is_new] = has_control_flow_.try_emplace(&body, false);
    for (int i = 0; is_new && !it->second && i < body.graph().num_nodes(); ++i) {
      it->second = ControlFlowOpOf(*body.graph().node(i)) != ControlFlowOp::kNone;
    }
    return it->second;
  }

  const PassContext& context_;
  PlanGraph& graph_;
  BodyInserter inserter_;
  // The nodes that may be in a branch that is not taken, before calls are expanded.
  std::vector<bool> maybe_dead_;
  absl::flat_hash_map<const FunctionBody*, bool> has_control_flow_;
};

}  // namespace

absl::Status ChargeFunctions(const PassContext& context, const PlanOrigin& node, int64_t size) {
  context.budget->function_size -= size;
  if (context.budget->function_size >= 0) return absl::OkStatus();
  return errors::ResourceExhausted(
      PlanNodePrefix(node), "the functions that a run calls have more than ",
      PlanBudget::kMaxFunctionSize, " nodes, edges and outputs in all");
}

bool IsWithin(const CallSite* site, const FunctionBody& body) {
  for (; site != nullptr; site = site->caller) {
    if (site->body == &body) return true;
  }
  return false;
}

bool Recurs(const Callee& callee) {
  return IsWithin(callee.call.site, *callee.body) ||
         (callee.loop_body != nullptr && IsWithin(callee.call.site, *callee.loop_body));
}

absl::StatusOr<std::vector<Callee>> CalleesOf(const PlanOrigin& call) {
  absl::StatusOr<std::vector<const FunctionBody*>> bodies = CalledFunctions(*call.node);
  if (!bodies.ok()) return errors::Prefix(PlanNodePrefix(call), bodies.status());
  std::vector<Callee> callees;
  if (call.node->op().functional() == FunctionalOp::kWhile) {
    const FunctionBody* const condition = (*bodies)[0];
    const FunctionBody* const body = (*bodies)[1];
    callees.push_back({CalleeRole::kLoopEntry, call, condition, nullptr});
    callees.push_back({CalleeRole::kLoopIteration, call, condition, body});
    return callees;
  }
  for (const FunctionBody* const body : *bodies) {
    callees.push_back({CalleeRole::kBody, call, body, nullptr});
  }
  return callees;
}

absl::StatusOr<PlanGraph> MakeCalleeGraph(const PassContext& context, const Callee& callee) {
  PlanGraph graph(context.options.devices);
  BodyInserter inserter(context, &graph);
  const PlanOrigin& call = callee.call;
  const FunctionBody& first =
      callee.role == CalleeRole::kLoopIteration ? *callee.loop_body : *callee.body;
  GRADFLOW_RETURN_IF_ERROR(ChargeFunctions(context, call, kPlanSize));
  // No error names the feeds, because the executor itself sets them.
  std::vector<Value> args;
  for (const DataType dtype : first.arg_types()) {
    args.push_back(graph.AddFeed({/*name=*/"", BaseType(dtype), {}}));
  }
  const CallSite* const site = context.kernels->SiteOf(call.site, *call.node, first);
  GRADFLOW_ASSIGN_OR_RETURN(BodyInserter::Inserted inserted, inserter.Insert(site, args, {}));
  GRADFLOW_RETURN_IF_ERROR(ConvertLoops(context, &graph, 0, inserted.results, &inserted.effects));
  for (Value& result : inserted.results) result = graph.Resolve(result);
  std::vector<int32_t> effects = inserted.effects;
  std::vector<Value> fetches = inserted.results;
  if (callee.role == CalleeRole::kLoopEntry) {
    fetches.insert(fetches.end(), args.begin(), args.end());
  } else if (callee.role == CalleeRole::kLoopIteration) {
    // The condition sees the effects of the body.
    const CallSite* const condition_site =
        context.kernels->SiteOf(call.site, *call.node, *callee.body);
    std::vector<int32_t> controls = inserted.effects;
    if (controls.size() > 1) controls = {AddWait(call, controls, &graph)};
    const int32_t first = graph.num_nodes();
    GRADFLOW_ASSIGN_OR_RETURN(BodyInserter::Inserted condition,
                              inserter.Insert(condition_site, inserted.results, controls));
    GRADFLOW_RETURN_IF_ERROR(
        ConvertLoops(context, &graph, first, condition.results, &condition.effects));
    fetches.insert(fetches.begin(), condition.results[0]);
    effects.insert(effects.end(), condition.effects.begin(), condition.effects.end());
  }
  for (const Value fetch : fetches) graph.AddFetch(fetch);
  for (const int32_t effect : effects) graph.AddTarget(effect);
  GRADFLOW_RETURN_IF_ERROR(graph.Prune());
  return graph;
}

absl::Status ExpandCalls(const PassContext& context, PlanGraph* graph) {
  return CallExpander(context, graph).Expand();
}

}  // namespace gradflow
