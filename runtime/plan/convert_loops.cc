// ConvertLoops() (passes.h): turns the loops of version 1 control flow into nodes that run plans.
//
// A loop is a part of the graph that Enter nodes of one frame name lead into and that Exit nodes
// lead out of:
//
//     x -> Enter -> Merge -> ... -> LoopCond
//                   ^  |               |
//                   |  +-> Switch <----+
//                   |      |1     |0
//                   |     body    +-> Exit -> y
//                   |      |
//                   +- NextIteration
//
// A frame is the set of nodes that are reached from the Enter nodes of one name in one outer frame.
// The nodes of a frame that are connected with each other are a loop. It has a LoopCond, and a
// variable for each Merge that reads a NextIteration. The Switch nodes by the LoopCond divide the
// nodes of a loop into three parts: the body depends on a true output, and the nodes after the loop
// depend on a false output. The other nodes compute the condition. They run once more than the
// body.
//
// The new node has two plans (LoopGraphs). `entry` takes the inputs of the Enter nodes and computes
// the condition. `iteration` runs the body and computes the condition again. Both return the
// condition and the state: the values that the body, the Exit nodes and the next iteration read.
// The inner loops of a loop are converted first.
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/status.h"
#include "gradflow/core/stop_token.h"
#include "gradflow/graph/control_flow.h"
#include "gradflow/graph/node_checks.h"
#include "gradflow/runtime/plan/expand_calls.h"
#include "gradflow/runtime/plan/op_traits.h"
#include "gradflow/runtime/plan/passes.h"
#include "gradflow/runtime/plan/plan_rewriter.h"
#include "gradflow/runtime/plan/wait_kernel.h"

namespace gradflow {
namespace {

using Value = PlanGraph::Value;

constexpr int32_t kControl = PlanGraph::kControl;
constexpr int32_t kRoot = 0;
// The frame of a constant, which any frame may read.
constexpr int32_t kAnyFrame = -1;
// Converted loops are destroyed by recursion.
constexpr int kMaxDepth = 500;

struct Frame {
  int32_t parent = kRoot;
  int depth = 0;
  std::string name;
  // The nodes that run in the frame, in topological order except for inner loops.
  std::vector<int32_t> nodes;
};

// The frames of the nodes of a graph.
struct Frames {
  explicit Frames(int32_t num_nodes)
      : kinds(num_nodes, ControlFlowOp::kNone), of(num_nodes, kRoot), list(1) {}

  // Adds a node that the conversion has made.
  void Add(int32_t node, int32_t frame) {
    kinds.resize(node + 1, ControlFlowOp::kNone);
    of.resize(node + 1, kRoot);
    is_awaited.resize(node + 1);
    loops.resize(node + 1, -1);
    of[node] = frame;
    list[frame].nodes.push_back(node);
  }

  // Indexed by node. An Enter or Exit that has been converted, or that is not part of a loop, has
  // the kind kNone.
  std::vector<ControlFlowOp> kinds;
  // The frame that the node runs in. An Enter runs in the outer frame, an Exit in the inner frame.
  std::vector<int32_t> of;
  // True for nodes that the run or a function waits for.
  std::vector<bool> is_awaited;
  // The loop that contains the node, or -1.
  std::vector<int32_t> loops;
  std::vector<Frame> list;
};

// Converts the loops of one frame whose inner loops have been converted.
class LoopConverter {
 public:
  LoopConverter(const PassContext& context, PlanGraph* graph, Frames* frames, int32_t frame)
      : context_(context), graph_(*graph), frames_(*frames), frame_(frame) {}

  absl::Status Convert() {
    FindLoops();
    for (const std::vector<int32_t>& nodes : loops_) GRADFLOW_RETURN_IF_ERROR(ConvertLoop(nodes));
    // From here on, these nodes only pass their inputs on.
    for (const int32_t enter : kept_enters_) frames_.kinds[enter] = ControlFlowOp::kNone;
    return absl::OkStatus();
  }

 private:
  enum class Part : uint8_t { kBefore, kBody, kAfter };

  // A copy of some nodes of the loop in a new graph.
  struct Copies {
    PlanGraph* graph = nullptr;
    // The values in the new graph, keyed by node and output. Controls are not listed.
    absl::flat_hash_map<std::pair<int32_t, int32_t>, Value> values;
    // The nodes in the new graph.
    absl::flat_hash_map<int32_t, int32_t> nodes;
  };

  ControlFlowOp KindOf(int32_t node) const { return frames_.kinds[node]; }
  bool IsMember(int32_t node) const { return frames_.of[node] == frame_; }
  // Returns true for the output of an Enter of this frame.
  bool IsEntered(Value value) const {
    return !value.is_feed() && KindOf(value.node) == ControlFlowOp::kEnter &&
           frames_.of[value.node] == frames_.list[frame_].parent && entered_.contains(value.node);
  }
  bool IsVariable(int32_t node) const { return next_.count(node) > 0; }
  bool IsLoopSwitch(int32_t node) const {
    return KindOf(node) == ControlFlowOp::kSwitch && graph_.output_types(node).size() == 2 &&
           graph_.edge(node, 1) == Value{cond_, 0};
  }
  std::string Prefix(int32_t node) const {
    return PlanNodePrefix(graph_.origin_at_site(node), graph_.label(node));
  }
  template <typename... Args>
  absl::Status Error(int32_t node, const Args&... args) const {
    return errors::InvalidArgument(Prefix(node), args..., " in loop ",
                                   internal::Quoted(frames_.list[frame_].name));
  }

  // ---- The loops of the frame ----

  // Finds the nodes that are connected with each other. Nodes that are not part of a cycle get the
  // outer frame, because they run once.
  void FindLoops() {
    std::vector<int32_t> nodes = frames_.list[frame_].nodes;
    absl::flat_hash_map<int32_t, int32_t> parents;
    for (const int32_t node : nodes) parents.emplace(node, node);
    const auto find = [&](int32_t node) {
      while (parents[node] != node) node = parents[node] = parents[parents[node]];
      return node;
    };
    for (const int32_t node : nodes) {
      for (int i = 0; i < graph_.num_edges(node); ++i) {
        const Value source = graph_.edge(node, i);
        if (!source.is_feed() && IsMember(source.node)) parents[find(source.node)] = find(node);
      }
    }
    absl::flat_hash_map<int32_t, int32_t> indexes;
    std::vector<std::vector<int32_t>> groups;
    std::vector<bool> is_loop;
    for (const int32_t node : nodes) {
      const auto [it, is_new] =
          indexes.try_emplace(find(node), static_cast<int32_t>(groups.size()));
      if (is_new) {
        groups.emplace_back();
        is_loop.push_back(false);
      }
      groups[it->second].push_back(node);
      if (KindOf(node) == ControlFlowOp::kLoopCond ||
          KindOf(node) == ControlFlowOp::kNextIteration) {
        is_loop[it->second] = true;
      }
    }
    const int32_t parent = frames_.list[frame_].parent;
    for (size_t i = 0; i < groups.size(); ++i) {
      if (is_loop[i]) {
        loops_.push_back(std::move(groups[i]));
        continue;
      }
      for (const int32_t node : groups[i]) {
        for (int e = 0; e < graph_.num_edges(node); ++e) {
          const Value source = graph_.edge(node, e);
          if (!source.is_feed() && KindOf(source.node) == ControlFlowOp::kEnter &&
              frames_.of[source.node] == parent) {
            kept_enters_.push_back(source.node);
          }
        }
        frames_.of[node] = parent;
        if (KindOf(node) == ControlFlowOp::kExit) frames_.kinds[node] = ControlFlowOp::kNone;
        if (parent != kRoot) frames_.list[parent].nodes.push_back(node);
      }
    }
  }

  // ---- One loop ----

  absl::Status ConvertLoop(const std::vector<int32_t>& nodes) {
    cond_ = -1;
    next_.clear();
    entered_.clear();
    parts_.clear();
    inputs_.clear();
    input_indexes_.clear();
    state_.clear();
    state_indexes_.clear();
    targets_.clear();
    GRADFLOW_RETURN_IF_ERROR(FindVariables(nodes));
    GRADFLOW_RETURN_IF_ERROR(Sort(nodes));
    GRADFLOW_RETURN_IF_ERROR(FindParts());
    // Without effects and branches, the order of nodes makes no difference.
    ignores_controls_ = std::none_of(order_.begin(), order_.end(), [&](int32_t node) {
      return HasEffects(node) || (KindOf(node) == ControlFlowOp::kSwitch && !IsLoopSwitch(node));
    });
    GRADFLOW_RETURN_IF_ERROR(FindResults());
    const size_t num_outputs = state_.size();
    FindState();
    auto loop = std::make_shared<LoopGraphs>();
    GRADFLOW_RETURN_IF_ERROR(MakeEntry(&loop->entry));
    GRADFLOW_RETURN_IF_ERROR(MakeIteration(&loop->iteration));
    AddLoop(nodes, std::move(loop), num_outputs);
    return absl::OkStatus();
  }

  // Finds the LoopCond, the variables and the Enter nodes.
  absl::Status FindVariables(const std::vector<int32_t>& nodes) {
    for (const int32_t node : nodes) {
      if (KindOf(node) != ControlFlowOp::kLoopCond) continue;
      if (cond_ >= 0) {
        return Error(node, "another LoopCond, ",
                     internal::Quoted(graph_.origin_at_site(cond_).name()),
                     ", is connected with it");
      }
      cond_ = node;
    }
    for (const int32_t node : nodes) {
      if (cond_ < 0) return Error(node, "no LoopCond is connected with the node");
      for (int i = 0; i < graph_.num_edges(node); ++i) {
        const Value source = graph_.edge(node, i);
        if (source.is_feed() || KindOf(source.node) == ControlFlowOp::kNone) continue;
        if (KindOf(source.node) == ControlFlowOp::kEnter && !IsMember(source.node)) {
          entered_.insert(source.node);
        } else if (KindOf(source.node) == ControlFlowOp::kNextIteration) {
          if (KindOf(node) != ControlFlowOp::kMerge || source.is_control()) {
            return Error(node, "only a Merge may depend on a NextIteration, as the node does");
          }
          if (graph_.num_inputs(node) != 2 || next_.count(node) > 0) {
            return Error(node,
                         "a Merge with a NextIteration must have two inputs, one of them an "
                         "Enter, but the node does not");
          }
          next_.emplace(node, i);
        }
      }
    }
    for (const auto& [merge, next] : next_) {
      const Value first = graph_.edge(merge, 1 - next);
      if (first.is_feed() || !entered_.contains(first.node) || first.is_control()) {
        return Error(merge,
                     "the first value of the variable does not come from an Enter of the "
                     "loop");
      }
    }
    return absl::OkStatus();
  }

  // Sets order_ to the nodes in topological order, without NextIteration and Exit nodes.
  absl::Status Sort(const std::vector<int32_t>& nodes) {
    enum State : uint8_t { kInProgress, kDone };
    order_.clear();
    absl::flat_hash_map<int32_t, State> states;
    std::vector<std::pair<int32_t, int>> path;
    const auto enter = [&](int32_t node) {
      states[node] = kInProgress;
      path.emplace_back(node, 0);
    };
    for (const int32_t root : nodes) {
      if (states.contains(root)) continue;
      enter(root);
      while (!path.empty()) {
        auto& [node, edge] = path.back();
        if (edge == graph_.num_edges(node)) {
          states[node] = kDone;
          order_.push_back(node);
          path.pop_back();
          continue;
        }
        const int i = edge++;
        const auto next = next_.find(node);
        if (next != next_.end() && next->second == i) continue;
        const Value source = graph_.edge(node, i);
        if (source.is_feed() || !IsMember(source.node)) continue;
        const auto state = states.find(source.node);
        if (state == states.end()) {
          enter(source.node);
        } else if (state->second == kInProgress) {
          return Error(node, "the node needs its own result, by way of another loop,");
        }
      }
    }
    return absl::OkStatus();
  }

  Part PartOf(int32_t node) const {
    const auto it = parts_.find(node);
    return it == parts_.end() ? Part::kBefore : it->second;
  }
  Part PartOf(Value value) const {
    if (value.is_feed() || !IsMember(value.node)) return Part::kBefore;
    if (!value.is_control() && IsLoopSwitch(value.node)) {
      return value.output == 0 ? Part::kAfter : Part::kBody;
    }
    return PartOf(value.node);
  }

  absl::Status FindParts() {
    for (const int32_t node : order_) {
      Part part = Part::kBefore;
      const auto next = next_.find(node);
      for (int i = 0; i < graph_.num_edges(node); ++i) {
        if (next != next_.end() && next->second == i) continue;
        const Part of_source = PartOf(graph_.edge(node, i));
        if (of_source == Part::kBefore || of_source == part) continue;
        if (part != Part::kBefore) {
          return Error(node, "the node depends on both outputs of a Switch by the condition");
        }
        part = of_source;
      }
      if (part == Part::kBefore) continue;
      if (IsVariable(node) || IsLoopSwitch(node) || node == cond_) {
        return Error(node, "the node must not depend on a Switch by the condition");
      }
      if (part == Part::kAfter && KindOf(node) == ControlFlowOp::kNextIteration) {
        return Error(node,
                     "the node must not depend on the false output of a Switch by the "
                     "condition");
      }
      parts_.emplace(node, part);
    }
    for (const int32_t node : order_) {
      for (int i = 0; i < graph_.num_inputs(node); ++i) {
        const Value source = graph_.edge(node, i);
        if (source.is_feed()) continue;
        if (source.output == 1 && IsVariable(source.node)) {
          return Error(node,
                       "the index of a variable's Merge is not supported, but the node reads "
                       "it");
        }
        if (IsEntered(source) && !IsConstant(source.node) && !IsVariable(node)) {
          return Error(node, "the node reads an Enter that is not constant, ",
                       internal::Quoted(graph_.origin_at_site(source.node).name()), ",");
        }
      }
    }
    return absl::OkStatus();
  }

  bool IsConstant(int32_t enter) const {
    bool constant = false;
    return graph_.origin(enter).GetAttr("is_constant", &constant).ok() && constant;
  }

  // Adds a value of the part before the condition to the state. Returns its index.
  int32_t StateOf(Value value) {
    const auto [it, is_new] =
        state_indexes_.try_emplace({value.node, value.output}, static_cast<int32_t>(state_.size()));
    if (is_new) state_.push_back(value);
    return it->second;
  }
  int32_t InputOf(int32_t enter) {
    const auto [it, is_new] =
        input_indexes_.try_emplace(enter, static_cast<int32_t>(inputs_.size()));
    if (is_new) inputs_.push_back(enter);
    return it->second;
  }

  // Puts the values that the Exit nodes and the nodes after the loop read first into the state.
  absl::Status FindResults() {
    for (const int32_t node : order_) {
      const bool is_exit = KindOf(node) == ControlFlowOp::kExit;
      if (PartOf(node) != Part::kAfter) {
        if (is_exit) {
          return Error(node,
                       "an Exit must read the false output of a Switch by the condition, but "
                       "the node does not");
        }
        continue;
      }
      for (int i = 0; i < graph_.num_inputs(node); ++i) {
        const Value source = graph_.edge(node, i);
        if (source.is_feed() || frames_.of[source.node] == kAnyFrame || IsEntered(source)) continue;
        if (IsMember(source.node) && IsLoopSwitch(source.node)) {
          StateOf(graph_.edge(source.node, 0));
        } else if (PartOf(source) == Part::kBefore) {
          StateOf(source);
        }
      }
    }
    return absl::OkStatus();
  }

  // Adds the values that the body and the next iteration read to the state.
  void FindState() {
    for (const int32_t node : order_) {
      const auto next = next_.find(node);
      if (next != next_.end()) InputOf(graph_.edge(node, 1 - next->second).node);
      const bool is_before = PartOf(node) == Part::kBefore;
      if (PartOf(node) == Part::kAfter || (is_before && IsLoopSwitch(node))) continue;
      const bool is_next = KindOf(node) == ControlFlowOp::kNextIteration;
      for (int i = 0; i < graph_.num_inputs(node); ++i) {
        const Value source = graph_.edge(node, i);
        if (IsEntered(source)) {
          if (!IsVariable(node)) StateOf(source);
        } else if (is_before && !is_next) {
          // Computed again in each iteration.
        } else if (source.is_feed() || !IsMember(source.node)) {
          // A constant.
        } else if (IsLoopSwitch(source.node)) {
          StateOf(graph_.edge(source.node, 0));
        } else if (PartOf(source) == Part::kBefore) {
          StateOf(source);
        }
      }
    }
    for (const Value value : state_) {
      if (IsEntered(value)) InputOf(value.node);
    }
  }

  // ---- The graphs of the loop ----

  DataType TypeOf(Value value) const { return graph_.output_types(value.node)[value.output]; }
  // No error names the feeds, because the executor itself sets them.
  PlanGraph::Feed FeedFor(Value value) const { return {/*name=*/"", TypeOf(value), {}}; }

  absl::Status MakeEntry(PlanGraph* entry) {
    *entry = PlanGraph(graph_.devices());
    entry->SetIsLoop();
    Copies copies;
    copies.graph = entry;
    for (const int32_t enter : inputs_) {
      copies.values[{enter, 0}] = entry->AddFeed(FeedFor({enter, 0}));
    }
    for (const auto& [merge, next] : next_) {
      // A copy: the insertion may move the values.
      const Value entered = copies.values.at({graph_.edge(merge, 1 - next).node, 0});
      copies.values[{merge, 0}] = entered;
    }
    std::vector<int32_t> effects;
    GRADFLOW_RETURN_IF_ERROR(CopyPart(Part::kBefore, -1, &copies, &effects));
    return SetRoots(effects, &copies);
  }

  absl::Status MakeIteration(PlanGraph* iteration) {
    *iteration = PlanGraph(graph_.devices());
    iteration->SetIsLoop();
    Copies body;
    body.graph = iteration;
    for (const Value value : state_) {
      body.values[{value.node, value.output}] = iteration->AddFeed(FeedFor(value));
    }
    std::vector<int32_t> effects;
    GRADFLOW_RETURN_IF_ERROR(CopyPart(Part::kBody, -1, &body, &effects));
    Copies before;
    before.graph = iteration;
    for (const auto& [merge, next] : next_) {
      const int32_t source = graph_.edge(merge, next).node;
      GRADFLOW_ASSIGN_OR_RETURN(const Value value, ValueIn(source, graph_.edge(source, 0), &body));
      before.values.insert_or_assign({merge, 0}, value);
      // The next iteration also waits for the control inputs of its values.
      for (int i = graph_.num_inputs(source); i < graph_.num_edges(source); ++i) {
        AddControl(graph_.edge(source, i), body, &effects);
      }
    }
    for (const Value value : state_) {
      if (IsEntered(value)) before.values[{value.node, 0}] = body.values.at({value.node, 0});
    }
    std::sort(effects.begin(), effects.end());
    effects.erase(std::unique(effects.begin(), effects.end()), effects.end());
    // The condition sees the effects of the body.
    int32_t wait = -1;
    const bool waits = std::any_of(order_.begin(), order_.end(), [&](int32_t node) {
      return PartOf(node) == Part::kBefore && HasEffects(node);
    });
    if (!effects.empty() && waits) {
      PlanGraph::NewNode node;
      node.label.name = graph_.origin_at_site(cond_).name();
      node.label.op = "Wait";
      node.label.origins = {graph_.origin_at_site(cond_)};
      node.kernel = std::make_shared<WaitKernel>();
      node.control_inputs = effects;
      node.ignores_dead_controls = true;
      wait = iteration->AddNode(std::move(node));
      effects = {wait};
    }
    GRADFLOW_RETURN_IF_ERROR(CopyPart(Part::kBefore, wait, &before, &effects));
    return SetRoots(effects, &before);
  }

  // Makes the graph return the condition and the state, and run the effects.
  absl::Status SetRoots(const std::vector<int32_t>& effects, Copies* copies) {
    GRADFLOW_ASSIGN_OR_RETURN(const Value condition, ValueIn(cond_, graph_.edge(cond_, 0), copies));
    copies->graph->AddFetch(condition);
    for (const Value value : state_) {
      GRADFLOW_ASSIGN_OR_RETURN(const Value fetch, ValueIn(cond_, value, copies));
      copies->graph->AddFetch(fetch, IsRefType(TypeOf(value)));
    }
    for (const int32_t effect : effects) copies->graph->AddTarget(effect);
    for (const int32_t target : targets_) copies->graph->AddTarget(target);
    targets_.clear();
    return copies->graph->Prune();
  }

  // Copies the nodes of a part, in order. The nodes that have effects also wait for `wait`, if it
  // is not negative. Adds them to *effects.
  absl::Status CopyPart(Part part, int32_t wait, Copies* copies, std::vector<int32_t>* effects) {
    StopToken stop(context_.limits.cancelled, context_.limits.closed);
    for (const int32_t node : order_) {
      if (PartOf(node) != part || KindOf(node) == ControlFlowOp::kNextIteration) continue;
      GRADFLOW_RETURN_IF_ERROR(CheckPlanStop(graph_, node, context_.limits, &stop));
      // These nodes have no copies. Their inputs stand for their outputs.
      if (IsVariable(node) || IsLoopSwitch(node) || node == cond_) {
        if (node == cond_) {
          GRADFLOW_ASSIGN_OR_RETURN(const Value value, ValueIn(node, graph_.edge(node, 0), copies));
          copies->values.insert_or_assign({cond_, 0}, value);
        }
        for (int i = graph_.num_inputs(node); i < graph_.num_edges(node); ++i) {
          AddControl(graph_.edge(node, i), *copies, effects);
        }
        continue;
      }
      if (IsUnused(node)) continue;
      std::vector<Value> inputs;
      std::vector<int32_t> controls;
      for (int i = 0; i < graph_.num_inputs(node); ++i) {
        GRADFLOW_ASSIGN_OR_RETURN(inputs.emplace_back(),
                                  ValueIn(node, graph_.edge(node, i), copies));
      }
      for (int i = graph_.num_inputs(node); i < graph_.num_edges(node); ++i) {
        AddControl(graph_.edge(node, i), *copies, &controls);
      }
      const bool has_effects = HasEffects(node);
      if (!has_effects && controls.empty() && OnlyPassesOn(*copies->graph, node, inputs)) {
        if (!inputs.empty()) copies->values.insert_or_assign({node, 0}, inputs[0]);
        continue;
      }
      if (has_effects && wait >= 0) controls.push_back(wait);
      GRADFLOW_ASSIGN_OR_RETURN(const int32_t copy, Copy(node, inputs, controls, copies));
      if (has_effects) effects->push_back(copy);
    }
    return absl::OkStatus();
  }

  // Returns true for an Enter or Exit that an inner loop has replaced.
  bool IsUnused(int32_t node) const {
    return graph_.is_replaced(node) || KindOf(node) == ControlFlowOp::kEnter;
  }

  // Returns true if the order of the node matters: it has side effects, it reads or writes a
  // variable through a reference, or the run waits for it.
  bool HasEffects(int32_t node) const {
    if (graph_.stateful(node) || frames_.is_awaited[node]) return true;
    for (int i = 0; i < graph_.num_inputs(node); ++i) {
      const Value source = graph_.edge(node, i);
      if (!source.is_feed() && IsRefType(TypeOf(source))) return true;
    }
    return false;
  }

  absl::StatusOr<int32_t> Copy(int32_t node, absl::Span<const Value> inputs,
                               absl::Span<const int32_t> controls, Copies* copies) {
    std::vector<Value> control_inputs;
    for (const int32_t control : controls) control_inputs.push_back({control, kControl});
    GRADFLOW_RETURN_IF_ERROR(
        ChargeFunctions(context_, graph_.origin_at_site(node),
                        1 + static_cast<int64_t>(inputs.size() + control_inputs.size())));
    const int32_t copy = copies->graph->AddCopy(graph_, node, inputs, control_inputs);
    copies->nodes.emplace(node, copy);
    return copy;
  }

  // Returns the value in the new graph that stands for `value`, which `reader` reads.
  absl::StatusOr<Value> ValueIn(int32_t reader, Value value, Copies* copies) {
    // In the body, the outputs of the Switch are its input.
    if (!value.is_feed() && IsMember(value.node) && IsLoopSwitch(value.node)) {
      value = graph_.edge(value.node, 0);
    }
    const auto known = copies->values.find({value.node, value.output});
    if (known != copies->values.end()) return known->second;
    if (!value.is_feed()) {
      if (value.node == cond_) return ValueIn(reader, graph_.edge(cond_, 0), copies);
      const auto node = copies->nodes.find(value.node);
      if (node != copies->nodes.end()) return Value{node->second, value.output};
      if (frames_.of[value.node] == kAnyFrame) {
        const absl::Span<const Value> none;
        GRADFLOW_ASSIGN_OR_RETURN(const int32_t copy, Copy(value.node, none, {}, copies));
        return Value{copy, value.output};
      }
    }
    return errors::Internal(Prefix(reader), "an input of the node is not in its part of the loop");
  }

  // Makes the new graph wait for `source`: adds the node that corresponds to `source` to *controls.
  // Adds nothing if `source` ends before the new graph starts.
  void AddControl(Value source, const Copies& copies, std::vector<int32_t>* controls) {
    if (source.is_feed()) return;
    const auto node = copies.nodes.find(source.node);
    if (node != copies.nodes.end()) {
      // The node may fail, so it also runs if nothing else needs it.
      (ignores_controls_ ? &targets_ : controls)->push_back(node->second);
      return;
    }
    // A node without a copy, whose output is the value of another node.
    if (!IsMember(source.node)) return;
    if (IsLoopSwitch(source.node) || source.node == cond_) {
      AddControl(graph_.edge(source.node, 0), copies, controls);
      return;
    }
    const auto value = copies.values.find({source.node, 0});
    if (value == copies.values.end() || value->second.is_feed()) return;
    (ignores_controls_ ? &targets_ : controls)->push_back(value->second.node);
  }

  // Returns true if the node has no effect other than to order nodes, and waits for nothing: a
  // NoOp, or an Identity that neither reads a variable nor marks the branch of a Switch. In
  // TensorFlow's graphs, all nodes of a loop body wait for such a node, and inlined functions have
  // many of them.
  bool OnlyPassesOn(const PlanGraph& graph, int32_t node, absl::Span<const Value> inputs) const {
    if (graph_.label(node) != nullptr || graph_.has_known_value(node)) return false;
    const std::string& op = graph_.origin(node).type_string();
    if (inputs.empty()) return op == "NoOp";
    if (op != "Identity" || !IsPure(graph_.origin(node))) return false;
    const Value input = inputs[0];
    if (input.is_feed()) {
      return graph_.device(node) == 0 && !IsRefType(graph.feeds()[input.output].dtype);
    }
    const bool is_switch = graph.label(input.node) == nullptr &&
                           ControlFlowOpOf(graph.origin(input.node)) == ControlFlowOp::kSwitch;
    return !is_switch && graph_.device(node) == graph.device(input.node) &&
           !IsRefType(graph.output_types(input.node)[input.output]);
  }

  // ---- The node of the loop ----

  void AddLoop(const std::vector<int32_t>& nodes, std::shared_ptr<LoopGraphs> loop,
               size_t num_outputs) {
    const int32_t parent = frames_.list[frame_].parent;
    PlanGraph::NewNode node;
    node.label.name = graph_.origin_at_site(cond_).name();
    node.label.op = "While";
    node.label.origins = {graph_.origin_at_site(cond_)};
    node.loop = std::move(loop);
    node.device = graph_.device(cond_);
    for (size_t i = 0; i < num_outputs; ++i) node.output_types.push_back(TypeOf(state_[i]));
    for (const int32_t enter : inputs_) {
      const Value source = graph_.edge(enter, 0);
      // An Enter of a variable reads its value, or makes sure that it is a reference.
      const bool is_reference =
          IsRefType(graph_.output_types(enter)[0]) ||
          (!source.is_feed() && IsRefType(graph_.output_types(source.node)[source.output]));
      node.inputs.push_back(is_reference ? Value{enter, 0} : source);
      if (is_reference) kept_enters_.push_back(enter);
    }
    for (const int32_t enter : entered_) {
      for (int i = graph_.num_inputs(enter); i < graph_.num_edges(enter); ++i) {
        const Value source = graph_.edge(enter, i);
        if (!source.is_feed()) node.control_inputs.push_back(source.node);
      }
    }
    std::sort(node.control_inputs.begin(), node.control_inputs.end());
    node.control_inputs.erase(std::unique(node.control_inputs.begin(), node.control_inputs.end()),
                              node.control_inputs.end());
    bool is_awaited = false;
    for (const int32_t member : nodes) {
      if (PartOf(member) == Part::kAfter) continue;
      node.stateful |= HasEffects(member);
      is_awaited |= frames_.is_awaited[member];
    }
    const int32_t added = graph_.AddNode(std::move(node));
    frames_.Add(added, parent);
    frames_.is_awaited[added] = is_awaited;
    for (const int32_t member : nodes) {
      if (PartOf(member) == Part::kAfter) {
        MoveOut(member, added);
      } else {
        frames_.loops[member] = added;
      }
    }
  }

  // Moves a node that runs after the loop to the outer frame.
  void MoveOut(int32_t node, int32_t loop) {
    const int32_t parent = frames_.list[frame_].parent;
    if (graph_.is_replaced(node)) return;
    moved_.insert(node);
    std::vector<Value> edges;
    for (int i = 0; i < graph_.num_edges(node); ++i) {
      const Value source = graph_.edge(node, i);
      if (source.is_feed() || frames_.of[source.node] == kAnyFrame ||
          moved_.contains(source.node) ||
          (IsMember(source.node) && PartOf(source.node) == Part::kAfter)) {
        edges.push_back(source);
      } else if (source.is_control()) {
        edges.push_back({loop, kControl});
      } else if (IsEntered(source)) {
        edges.push_back(graph_.edge(source.node, 0));
      } else {
        const Value value = IsMember(source.node) && IsLoopSwitch(source.node)
                                ? graph_.edge(source.node, 0)
                                : source;
        edges.push_back({loop, state_indexes_.at({value.node, value.output})});
      }
    }
    const bool is_exit = KindOf(node) == ControlFlowOp::kExit;
    if (is_exit) frames_.kinds[node] = ControlFlowOp::kNone;
    if (is_exit && edges.size() == 1) {
      graph_.Replace(node, loop, {edges[0]});
    } else {
      for (size_t i = 0; i < edges.size(); ++i) graph_.SetEdge(node, static_cast<int>(i), edges[i]);
      if (parent != kRoot) frames_.list[parent].nodes.push_back(node);
    }
    moved_.insert(node);
    frames_.of[node] = parent;
  }

  const PassContext& context_;
  PlanGraph& graph_;
  Frames& frames_;
  const int32_t frame_;
  std::vector<std::vector<int32_t>> loops_;
  // The Enter nodes that remain in the plan.
  std::vector<int32_t> kept_enters_;

  // ---- The current loop ----

  int32_t cond_ = -1;
  // The Merge nodes of variables, with the indexes of their inputs that are NextIteration nodes.
  std::map<int32_t, int> next_;
  // The Enter nodes.
  absl::flat_hash_set<int32_t> entered_;
  // The nodes in topological order.
  std::vector<int32_t> order_;
  // True if the loop has no effects and no branches. Control inputs then make no difference.
  bool ignores_controls_ = false;
  // The nodes in the new graph that control inputs would wait for if ignores_controls_ were false.
  std::vector<int32_t> targets_;
  // The nodes that do not run before the condition.
  absl::flat_hash_map<int32_t, Part> parts_;
  // The Enter nodes that make the feeds of the entry.
  std::vector<int32_t> inputs_;
  absl::flat_hash_map<int32_t, int32_t> input_indexes_;
  std::vector<Value> state_;
  absl::flat_hash_map<std::pair<int32_t, int32_t>, int32_t> state_indexes_;
  // Nodes that have been moved to the outer frame.
  absl::flat_hash_set<int32_t> moved_;
};

// Finds the frames of all nodes.
class FrameFinder {
 public:
  FrameFinder(const PlanGraph& graph, int32_t first_node)
      : graph_(graph), first_node_(first_node), frames_(graph.num_nodes()) {}

  // Returns no frames except the root if there are no loops. `results` must be outside of loops.
  absl::StatusOr<Frames> Find(absl::Span<const Value> results) {
    bool any = false;
    for (int32_t node = first_node_; node < graph_.num_nodes(); ++node) {
      if (graph_.label(node) != nullptr || graph_.has_known_value(node)) continue;
      frames_.kinds[node] = ControlFlowOpOf(graph_.origin(node));
      switch (frames_.kinds[node]) {
        case ControlFlowOp::kEnter:
        case ControlFlowOp::kExit:
        case ControlFlowOp::kNextIteration:
          any = true;
          break;
        default:
          break;
      }
    }
    if (!any) return std::move(frames_);
    // Nodes are numbered in topological order, except for the edges that close loops.
    for (int32_t node = first_node_; node < graph_.num_nodes(); ++node) {
      GRADFLOW_RETURN_IF_ERROR(Visit(node));
    }
    for (int32_t node = first_node_; node < graph_.num_nodes(); ++node) {
      for (int i = 0; i < graph_.num_edges(node); ++i) {
        if (!IsBack(node, i)) continue;
        const int32_t next = graph_.edge(node, i).node;
        if (frames_.of[next] != frames_.of[node]) return WrongFrame(node, i, frames_.of[next], -1);
      }
    }
    for (const auto& values : {results, graph_.roots()}) {
      for (const Value value : values) {
        if (value.is_control() || FrameOfOutput(value) <= kRoot) continue;
        return errors::InvalidArgument(PlanNodePrefix(graph_.origin_at_site(value.node)), "output ",
                                       value.output, " cannot be fetched: it is ",
                                       NameOf(FrameOfOutput(value)));
      }
    }
    frames_.is_awaited.resize(graph_.num_nodes());
    frames_.loops.resize(graph_.num_nodes(), -1);
    return std::move(frames_);
  }

 private:
  bool IsBack(int32_t node, int i) const {
    if (frames_.kinds[node] != ControlFlowOp::kMerge || i >= graph_.num_inputs(node)) return false;
    const Value source = graph_.edge(node, i);
    return !source.is_feed() && frames_.kinds[source.node] == ControlFlowOp::kNextIteration;
  }

  std::string NameOf(int32_t frame) const {
    return frame == kRoot ? "outside of all loops"
                          : absl::StrCat("in loop ", internal::Quoted(frames_.list[frame].name));
  }

  std::string NameOf(Value source) const {
    return source.is_feed() ? source.is_control() ? "a feed" : graph_.feeds()[source.output].name
                            : graph_.origin_at_site(source.node).name();
  }

  absl::Status WrongFrame(int32_t node, int input, int32_t frame, int other) const {
    const std::string prefix = PlanNodePrefix(graph_.origin_at_site(node), graph_.label(node));
    const std::string rest =
        other < 0 ? absl::StrCat("but the node is ", NameOf(frames_.of[node]))
                  : absl::StrCat("but ", internal::Quoted(NameOf(graph_.edge(node, other))), " is ",
                                 NameOf(FrameOfOutput(graph_.edge(node, other))));
    return errors::InvalidArgument(prefix, "it has inputs from different frames: ",
                                   internal::Quoted(NameOf(graph_.edge(node, input))), " is ",
                                   NameOf(frame), ", ", rest);
  }

  int32_t FrameOfOutput(Value value) const {
    if (value.is_feed() || value.node < first_node_) return kRoot;
    const int32_t frame = frames_.of[value.node];
    switch (frames_.kinds[value.node]) {
      case ControlFlowOp::kEnter:
        return inner_.at(value.node);
      case ControlFlowOp::kExit:
        return frames_.list[frame].parent;
      default:
        return frame;
    }
  }

  absl::Status Visit(int32_t node) {
    int32_t frame = kAnyFrame;
    int first = -1;
    for (int i = 0; i < graph_.num_edges(node); ++i) {
      if (IsBack(node, i)) continue;
      const Value source = graph_.edge(node, i);
      // A fed placeholder that a node waits for is in any frame.
      if (source.is_feed() && source.is_control()) continue;
      const int32_t of_source = FrameOfOutput(source);
      if (of_source == kAnyFrame) continue;
      if (first >= 0 && of_source != frame) return WrongFrame(node, i, of_source, first);
      frame = of_source;
      first = i;
    }
    const bool is_constant = graph_.num_edges(node) == 0 &&
                             (graph_.has_known_value(node) ||
                              (graph_.label(node) == nullptr && graph_.origin(node).IsConstant()));
    if (frame == kAnyFrame && !is_constant) frame = kRoot;
    frames_.of[node] = frame;
    switch (frames_.kinds[node]) {
      case ControlFlowOp::kEnter:
        GRADFLOW_RETURN_IF_ERROR(AddInner(node));
        break;
      case ControlFlowOp::kExit:
      case ControlFlowOp::kNextIteration:
        if (frame != kRoot) break;
        return errors::InvalidArgument(PlanNodePrefix(graph_.origin_at_site(node)),
                                       "the node is outside of all loops");
      default:
        break;
    }
    if (frame > kRoot) frames_.list[frame].nodes.push_back(node);
    return absl::OkStatus();
  }

  absl::Status AddInner(int32_t enter) {
    std::string name;
    absl::Status status = graph_.origin(enter).GetAttr("frame_name", &name);
    const std::string prefix = PlanNodePrefix(graph_.origin_at_site(enter));
    if (!status.ok()) return errors::Prefix(prefix, status);
    const int32_t parent = frames_.of[enter];
    const auto [it, is_new] =
        by_name_.try_emplace({parent, name}, static_cast<int32_t>(frames_.list.size()));
    if (is_new) {
      const int depth = frames_.list[parent].depth + 1;
      if (depth > kMaxDepth) {
        return errors::ResourceExhausted(prefix, "more than ", kMaxDepth,
                                         " loops are nested within each other");
      }
      Frame frame;
      frame.parent = parent;
      frame.depth = depth;
      frame.name = std::move(name);
      frames_.list.push_back(std::move(frame));
    }
    inner_.emplace(enter, it->second);
    return absl::OkStatus();
  }

  const PlanGraph& graph_;
  const int32_t first_node_;
  Frames frames_;
  absl::flat_hash_map<std::pair<int32_t, std::string>, int32_t> by_name_;
  // The frames that Enter nodes lead to.
  absl::flat_hash_map<int32_t, int32_t> inner_;
};

}  // namespace

absl::Status ConvertLoops(const PassContext& context, PlanGraph* graph, int32_t first_node,
                          absl::Span<const Value> results, std::vector<int32_t>* effects) {
  GRADFLOW_ASSIGN_OR_RETURN(Frames frames, FrameFinder(*graph, first_node).Find(results));
  if (frames.list.size() == 1) return absl::OkStatus();
  const auto roots_end = static_cast<int>(graph->roots().size());
  for (int i = 0; i < roots_end; ++i) {
    const Value root = graph->roots()[i];
    if (!root.is_feed() && root.is_control()) frames.is_awaited[root.node] = true;
  }
  if (effects != nullptr) {
    for (const int32_t node : *effects) frames.is_awaited[node] = true;
  }
  // An inner frame comes after its outer frame.
  for (size_t frame = frames.list.size() - 1; frame > 0; --frame) {
    GRADFLOW_RETURN_IF_ERROR(
        LoopConverter(context, graph, &frames, static_cast<int32_t>(frame)).Convert());
  }
  // Returns the outermost loop around a node, or the node.
  const auto outermost = [&](int32_t node) {
    while (frames.loops[node] >= 0) node = frames.loops[node];
    return node;
  };
  for (int i = 0; i < roots_end; ++i) {
    const Value root = graph->roots()[i];
    if (root.is_feed() || !root.is_control()) continue;
    graph->SetRoot(i, {outermost(root.node), kControl});
  }
  if (effects != nullptr) {
    for (int32_t& node : *effects) node = outermost(node);
  }
  // The roots of a function are not set yet.
  if (roots_end == 0) return absl::OkStatus();
  const absl::Status pruned = graph->Prune();
  return pruned.ok() ? pruned : absl::InvalidArgumentError(pruned.message());
}

}  // namespace gradflow
