#include "gradflow/gradients/recomputation.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/graph.h"
#include "gradflow/ops/array_ops.h"
#include "gradflow/proto/node_def.pb.h"
#include "gradflow/proto/op_def.pb.h"

namespace gradflow::gradients {
namespace {

// Returns true if the node can be computed twice with the same result, outside of loops and
// branches.
bool MayBeRepeated(const Node& node) {
  if (node.num_inputs() == 0 || node.op_def().is_stateful()) return false;
  for (const char* const op :
       {"Switch", "RefSwitch", "_SwitchN", "Merge", "RefMerge", "Enter", "RefEnter", "Exit",
        "RefExit", "NextIteration", "RefNextIteration", "LoopCond"}) {
    if (node.type_string() == op) return false;
  }
  // The value of a variable may change between the two computations.
  for (int i = 0; i < node.num_inputs(); ++i) {
    const Node::Source source = node.sources()[i];
    if (IsRefType(source.node->output_type(source.output))) return false;
  }
  const DataTypeVector& types = node.output_types();
  return std::none_of(types.begin(), types.end(), [](DataType type) {
    return IsRefType(type) || type == DT_RESOURCE || type == DT_VARIANT;
  });
}

std::string InputName(const Node* node, int output) {
  return output == 0 ? node->name() : absl::StrCat(node->name(), ":", output);
}

}  // namespace

Recomputation::Recomputation(const Scope& scope, const std::vector<const Node*>& order,
                             absl::flat_hash_set<const Node*> kept)
    : scope_(scope), copies_scope_(scope.NewSubScope("recomputed")) {
  for (const Node* node : order) {
    if (!kept.contains(node) && MayBeRepeated(*node)) recomputed_.insert(node);
  }
}

absl::flat_hash_set<const Node*> Recomputation::ChooseKept(
    const std::vector<const Node*>& order, const absl::flat_hash_set<const Node*>& kept) {
  const auto n = static_cast<int64_t>(order.size());
  // For each node, the position of its last reader, or its own position if it has no reader in
  // `order`.
  absl::flat_hash_map<const Node*, int64_t> positions;
  std::vector<int64_t> last(n);
  for (int64_t i = 0; i < n; ++i) {
    const Node& node = *order[i];
    last[i] = i;
    positions[&node] = i;
    for (int input = 0; input < node.num_inputs(); ++input) {
      const auto source = positions.find(node.sources()[input].node);
      if (source != positions.end()) last[source->second] = i;
    }
  }
  const auto counts = [&](int64_t i) {
    return !kept.contains(order[i]) && MayBeRepeated(*order[i]);
  };
  // The number of tensors that are read across the cut after each position.
  std::vector<int64_t> crossing(n + 1);
  int64_t num_counted = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (!counts(i)) continue;
    ++num_counted;
    ++crossing[i];
    --crossing[last[i]];
  }
  for (int64_t i = 1; i < n; ++i) crossing[i] += crossing[i - 1];
  const auto step = static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(num_counted))));
  absl::flat_hash_set<const Node*> chosen;
  if (num_counted < 4) return chosen;
  // Positions: nodes before the last cut that are read after it, and all nodes since that cut.
  std::vector<int64_t> active;
  int64_t begin = 0;
  while (begin + step < n) {
    const int64_t target = begin + step - 1;
    int64_t cut = target;
    for (int64_t i = begin + step / 2; i < std::min(n - 1, begin + step + step / 2); ++i) {
      const auto rank = [&](int64_t at) {
        return std::make_pair(crossing[at], std::abs(at - target));
      };
      if (rank(i) < rank(cut)) cut = i;
    }
    for (int64_t i = begin; i <= cut; ++i) {
      if (counts(i)) active.push_back(i);
    }
    active.erase(
        std::remove_if(active.begin(), active.end(), [&](int64_t i) { return last[i] <= cut; }),
        active.end());
    for (const int64_t i : active) chosen.insert(order[i]);
    begin = cut + 1;
  }
  return chosen;
}

absl::StatusOr<const Node*> Recomputation::ForGradient(const Node& node) {
  bool any = !IsKept(&node);
  for (int i = 0; i < node.num_inputs(); ++i) any |= !IsKept(node.sources()[i].node);
  // A kept node is copied if its inputs are recomputed. Nothing needs the outputs of the copy
  // unless the gradient function reads them.
  if (!any || !MayBeRepeated(node)) return &node;
  return Copy(node);
}

// Copies the sources of the node first, without recursion.
absl::StatusOr<const Node*> Recomputation::Copy(const Node& node) {
  std::vector<const Node*> path = {&node};
  while (!path.empty()) {
    const Node* const next = path.back();
    if (copies_.contains(next)) {
      path.pop_back();
      continue;
    }
    const size_t depth = path.size();
    for (int i = 0; i < next->num_inputs(); ++i) {
      const Node* const source = next->sources()[i].node;
      if (!IsReady(source)) path.push_back(source);
    }
    if (path.size() > depth) continue;
    GRADFLOW_ASSIGN_OR_RETURN(copies_[next], CopyNode(*next));
    path.pop_back();
  }
  return copies_[&node];
}

absl::StatusOr<Output> Recomputation::Ordered(const Scope& scope, const Output& dy) {
  constexpr size_t kGradients = 8;
  if (finished_.size() < kGradients) return dy;
  GRADFLOW_RETURN_IF_ERROR(AddBarrier());
  const Output copy = ops::Identity(scope.WithControlDependencies({Operation(barrier_)}), dy);
  GRADFLOW_RETURN_IF_ERROR(scope.status());
  return copy;
}

absl::Status Recomputation::AddBarrier() {
  if (finished_.empty()) return absl::OkStatus();
  std::sort(finished_.begin(), finished_.end(),
            [](const Node* a, const Node* b) { return a->id() < b->id(); });
  finished_.erase(std::unique(finished_.begin(), finished_.end()), finished_.end());
  NodeDef def;
  def.set_name(scope_.GetUniqueNameForOp("barrier"));
  def.set_op("NoOp");
  for (const Node* node : finished_) def.add_input(absl::StrCat("^", node->name()));
  finished_.clear();
  GRADFLOW_ASSIGN_OR_RETURN(barrier_, scope_.graph()->AddNode(std::move(def)));
  return absl::OkStatus();
}

absl::StatusOr<const Node*> Recomputation::CopyNode(const Node& node) {
  NodeDef def = node.def();
  def.set_name(copies_scope_.GetUniqueNameForOp(node.name()));
  def.clear_input();
  bool any = false;
  for (int i = 0; i < node.num_inputs(); ++i) {
    const Node::Source source = node.sources()[i];
    const bool is_kept = IsKept(source.node);
    any |= !is_kept;
    def.add_input(InputName(is_kept ? source.node : copies_.at(source.node), source.output));
  }
  for (const Node::Source source : node.sources().subspan(node.num_inputs())) {
    def.add_input(absl::StrCat("^", source.node->name()));
  }
  // Without the barrier, the copy could run immediately, and recomputation would save no memory.
  if (!any) {
    GRADFLOW_RETURN_IF_ERROR(AddBarrier());
    if (barrier_ != nullptr) def.add_input(absl::StrCat("^", barrier_->name()));
  }
  return scope_.graph()->AddNode(std::move(def));
}

}  // namespace gradflow::gradients
