#include "gradflow/runtime/plan/deadness.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "gradflow/graph/control_flow.h"
#include "gradflow/runtime/plan/copied_values.h"

namespace gradflow {
namespace {

using Value = PlanGraph::Value;

ControlFlowOp KindOf(const PlanGraph& graph, int32_t node) {
  return graph.label(node) == nullptr ? ControlFlowOpOf(graph.origin(node)) : ControlFlowOp::kNone;
}

bool HasSwitch(const PlanGraph& graph) {
  return std::any_of(graph.order().begin(), graph.order().end(),
                     [&](int32_t node) { return KindOf(graph, node) == ControlFlowOp::kSwitch; });
}

class Deadness {
 public:
  explicit Deadness(const PlanGraph& graph)
      : graph_(graph), copied_(graph), alive_when_(graph.num_nodes()) {
    sets_.emplace_back();
    ids_.emplace(sets_[0], 0);
    for (const int32_t node : graph.order()) Visit(node);
  }

  bool MayBeDead(int32_t node) const { return alive_when_[node] != kAlways; }
  std::vector<DeadControl>& controls() { return controls_; }

 private:
  // A condition is the value that decides one or more Switches. A Branch is one of its outcomes.
  struct Branch {
    int32_t condition;
    int32_t branch;
    friend bool operator==(Branch a, Branch b) {
      return a.condition == b.condition && a.branch == b.branch;
    }
    friend bool operator<(Branch a, Branch b) {
      return std::pair(a.condition, a.branch) < std::pair(b.condition, b.branch);
    }
    template <typename H>
    friend H AbslHashValue(H h, Branch b) {
      return H::combine(std::move(h), b.condition, b.branch);
    }
  };
  // All of these branches must be taken. Sorted.
  using Set = std::vector<Branch>;
  // The index of the empty set in sets_.
  static constexpr int32_t kAlways = 0;
  // Limits the time for deeply nested branches.
  static constexpr size_t kMaxSet = 32;
  // The branch of a condition that cannot be analyzed.
  static constexpr int32_t kOpaque = -1;

  int32_t IdOf(Set set) {
    if (set.size() > kMaxSet) set = {{num_conditions_++, kOpaque}};
    const auto [it, is_new] = ids_.try_emplace(set, static_cast<int32_t>(sets_.size()));
    if (is_new) sets_.push_back(std::move(set));
    return it->second;
  }

  bool Implies(int32_t a, int32_t b) const {
    if (a == b || b == kAlways) return true;
    return std::includes(sets_[a].begin(), sets_[a].end(), sets_[b].begin(), sets_[b].end());
  }

  int32_t And(int32_t a, int32_t b) {
    if (Implies(a, b)) return a;
    if (Implies(b, a)) return b;
    Set both;
    std::set_union(sets_[a].begin(), sets_[a].end(), sets_[b].begin(), sets_[b].end(),
                   std::back_inserter(both));
    return IdOf(std::move(both));
  }

  // Returns the id of a set that holds whenever one of the sets `ids` holds. The set may be weaker
  // than their disjunction, or opaque.
  int32_t Or(std::vector<int32_t> ids) {
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    Set common = sets_[ids[0]];
    for (const int32_t id : ids) {
      Set kept;
      std::set_intersection(common.begin(), common.end(), sets_[id].begin(), sets_[id].end(),
                            std::back_inserter(kept));
      common = std::move(kept);
    }
    // The branches that the sets add to `common`. If each set adds a single branch of the same
    // condition and all branches are there, one of them runs.
    std::vector<int32_t> branches;
    int32_t condition = -1;
    bool differ_in_one = true;
    for (const int32_t id : ids) {
      Set rest;
      std::set_difference(sets_[id].begin(), sets_[id].end(), common.begin(), common.end(),
                          std::back_inserter(rest));
      if (rest.empty()) return IdOf(std::move(common));
      if (condition < 0) condition = rest[0].condition;
      differ_in_one &= rest.size() == 1 && rest[0].condition == condition;
      branches.push_back(rest[0].branch);
    }
    std::sort(branches.begin(), branches.end());
    branches.erase(std::unique(branches.begin(), branches.end()), branches.end());
    const auto found = num_branches_.find(condition);
    if (differ_in_one && found != num_branches_.end() &&
        static_cast<int32_t>(branches.size()) == found->second) {
      return IdOf(std::move(common));
    }
    // Otherwise an opaque condition stands for the alternative. It is the newest, so it sorts last.
    common.push_back({num_conditions_++, kOpaque});
    return IdOf(std::move(common));
  }

  // Returns the number of the condition that decides a Switch.
  int32_t ConditionOf(int32_t node) {
    const Value source = copied_.SourceOf(graph_.edge(node, 1));
    const auto branches = static_cast<int32_t>(graph_.output_types(node).size());
    const auto [it, is_new] = numbers_.try_emplace({source.node, source.output}, num_conditions_);
    if (is_new) {
      num_branches_.emplace(num_conditions_++, branches);
    } else if (num_branches_.at(it->second) != branches) {
      // Two _SwitchN with different numbers of outputs may read the same index. Their branches do
      // not correspond, so this one gets a condition of its own.
      return num_conditions_++;
    }
    return it->second;
  }

  int32_t OfValue(Value value) {
    if (value.is_feed()) return kAlways;
    const int32_t of_node = alive_when_[value.node];
    if (value.is_control() || KindOf(graph_, value.node) != ControlFlowOp::kSwitch) return of_node;
    Set set = sets_[of_node];
    const Branch branch = {switches_.at(value.node), value.output};
    const auto place = std::lower_bound(set.begin(), set.end(), branch);
    if (place == set.end() || !(*place == branch)) set.insert(place, branch);
    return IdOf(std::move(set));
  }

  void Visit(int32_t node) {
    const ControlFlowOp kind = KindOf(graph_, node);
    if (graph_.ignores_dead_controls(node) || kind == ControlFlowOp::kControlTrigger) return;
    const int num_inputs = graph_.num_inputs(node);
    if (kind == ControlFlowOp::kMerge) {
      std::vector<int32_t> ids;
      for (int i = 0; i < num_inputs; ++i) ids.push_back(OfValue(graph_.edge(node, i)));
      alive_when_[node] = Or(std::move(ids));
      return;
    }
    int32_t alive_when = kAlways;
    for (int i = 0; i < num_inputs; ++i) {
      alive_when = And(alive_when, OfValue(graph_.edge(node, i)));
    }
    for (int i = num_inputs; i < graph_.num_edges(node); ++i) {
      const Value source = graph_.edge(node, i);
      if (source.is_feed()) continue;
      const int32_t of_source = alive_when_[source.node];
      if (Implies(alive_when, of_source)) continue;
      controls_.push_back({source.node, node});
      alive_when = And(alive_when, of_source);
    }
    alive_when_[node] = alive_when;
    if (kind == ControlFlowOp::kSwitch) switches_.emplace(node, ConditionOf(node));
  }

  const PlanGraph& graph_;
  const CopiedValues copied_;
  // Indexed by node: the index in sets_ of the branches that must be taken for it to run.
  std::vector<int32_t> alive_when_;
  std::vector<Set> sets_;
  absl::flat_hash_map<Set, int32_t> ids_;
  // The condition of each Switch node.
  absl::flat_hash_map<int32_t, int32_t> switches_;
  // The condition of each deciding value {node, output}.
  absl::flat_hash_map<std::pair<int32_t, int32_t>, int32_t> numbers_;
  // The number of branches of each condition that is not opaque.
  absl::flat_hash_map<int32_t, int32_t> num_branches_;
  int32_t num_conditions_ = 0;
  std::vector<DeadControl> controls_;
};

}  // namespace

std::vector<DeadControl> FindDeadControls(const PlanGraph& graph) {
  if (!HasSwitch(graph)) return {};
  return std::move(Deadness(graph).controls());
}

std::vector<bool> FindMaybeDead(const PlanGraph& graph) {
  if (!HasSwitch(graph)) return {};
  const Deadness deadness(graph);
  std::vector<bool> result(graph.num_nodes());
  for (const int32_t node : graph.order()) result[node] = deadness.MayBeDead(node);
  return result;
}

}  // namespace gradflow
