#include "gradflow/runtime/plan/plan_graph.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/node_checks.h"
#include "gradflow/proto/node_def.pb.h"
#include "gradflow/proto/op_def.pb.h"

namespace gradflow {

const std::shared_ptr<const OpKernel>& PlanGraph::kernel(int32_t node) const {
  static const auto& none = *new std::shared_ptr<const OpKernel>;
  return nodes_[node].kernel < 0 ? none : kernels_[nodes_[node].kernel];
}

const std::shared_ptr<LoopGraphs>& PlanGraph::loop(int32_t node) const {
  static const auto& none = *new std::shared_ptr<LoopGraphs>;
  return nodes_[node].loop < 0 ? none : loops_[nodes_[node].loop];
}

PlanGraph::Value PlanGraph::Resolve(Value value) const {
  while (!value.is_feed() && nodes_[value.node].replaced_by >= 0) {
    const PlanNode& node = nodes_[value.node];
    if (node.replacements < 0 || value.is_control()) {
      value.node = node.replaced_by;
    } else {
      value = replacements_[node.replacements + value.output];
    }
  }
  return value;
}

PlanGraph::Value PlanGraph::ResolveAndShorten(Value value) {
  const Value end = Resolve(value);
  while (!value.is_feed() && nodes_[value.node].replaced_by >= 0) {
    PlanNode& node = nodes_[value.node];
    const int32_t by = node.replaced_by;
    if (node.replacements < 0) {
      // Its outputs and its control edges may have different ends.
      value.node = by;
    } else if (value.is_control()) {
      value.node = std::exchange(node.replaced_by, end.node);
    } else {
      value = std::exchange(replacements_[node.replacements + value.output], end);
    }
  }
  return end;
}

std::vector<int32_t> PlanGraph::CountUses() const {
  std::vector<int32_t> uses(nodes_.size());
  const auto count = [&](Value value) {
    if (!value.is_feed()) ++uses[value.node];
  };
  for (const Value root : roots_) count(Resolve(root));
  for (const int32_t node : order_) {
    if (is_replaced(node)) continue;
    for (int i = 0; i < num_edges(node); ++i) count(edge(node, i));
  }
  return uses;
}

std::vector<PlanGraph::Use> PlanGraph::FindUses() const {
  std::vector<Use> uses(nodes_.size());
  const auto add = [&](Value value, int32_t reader, int32_t input) {
    if (value.is_feed()) return;
    Use& use = uses[value.node];
    ++use.count;
    use.reader = reader;
    use.input = input;
    if (value.output > 0) use.first_output = false;
  };
  for (const Value root : roots_) add(Resolve(root), -1, -1);
  for (const int32_t node : order_) {
    if (is_replaced(node)) continue;
    for (int i = 0; i < num_edges(node); ++i) {
      add(edge(node, i), node, i < num_inputs(node) ? i : -1);
    }
  }
  return uses;
}

int32_t PlanGraph::AddNode(NewNode node) {
  PlanNode added;
  added.origin = node.label.origins.back().node;
  added.site = node.label.origins.back().site;
  added.output_types = &added_types_.emplace_back(std::move(node.output_types));
  added.edges_begin = static_cast<int64_t>(edges_.size());
  added.num_inputs = static_cast<int32_t>(node.inputs.size());
  added.num_edges = static_cast<int32_t>(node.inputs.size() + node.control_inputs.size());
  added.kernel = static_cast<int32_t>(kernels_.size());
  added.label = static_cast<int32_t>(labels_.size());
  added.is_original = false;
  added.stateful = node.stateful;
  added.device = node.device;
  added.ignores_dead_controls = node.ignores_dead_controls;
  if (node.loop != nullptr) {
    added.loop = static_cast<int32_t>(loops_.size());
    loops_.push_back(std::move(node.loop));
  }
  edges_.insert(edges_.end(), node.inputs.begin(), node.inputs.end());
  for (const int32_t from : node.control_inputs) edges_.push_back({from, kControl});
  kernels_.push_back(std::move(node.kernel));
  labels_.push_back(std::move(node.label));
  nodes_.push_back(added);
  is_pruned_ = false;
  return num_nodes() - 1;
}

int32_t PlanGraph::AddOriginal(PlanOrigin origin, absl::Span<const Value> inputs,
                               absl::Span<const Value> control_inputs) {
  PlanNode added;
  added.origin = origin.node;
  added.site = origin.site;
  added.output_types = &origin.node->output_types();
  added.edges_begin = static_cast<int64_t>(edges_.size());
  added.num_inputs = static_cast<int32_t>(inputs.size());
  added.num_edges = static_cast<int32_t>(inputs.size() + control_inputs.size());
  added.stateful = origin.node->op_def().is_stateful();
  added.device = DeviceOf(*origin.node);
  edges_.insert(edges_.end(), inputs.begin(), inputs.end());
  edges_.insert(edges_.end(), control_inputs.begin(), control_inputs.end());
  nodes_.push_back(added);
  order_.push_back(num_nodes() - 1);
  is_pruned_ = false;
  return num_nodes() - 1;
}

int32_t PlanGraph::AddCopy(const PlanGraph& from, int32_t node, absl::Span<const Value> inputs,
                           absl::Span<const Value> control_inputs) {
  const PlanNode& copied = from.nodes_[node];
  PlanNode added = copied;
  added.edges_begin = static_cast<int64_t>(edges_.size());
  added.num_inputs = static_cast<int32_t>(inputs.size());
  added.num_edges = static_cast<int32_t>(inputs.size() + control_inputs.size());
  added.replaced_by = -1;
  added.replacements = -1;
  if (copied.kernel >= 0) {
    added.kernel = static_cast<int32_t>(kernels_.size());
    kernels_.push_back(from.kernels_[copied.kernel]);
  }
  if (copied.label >= 0) {
    added.label = static_cast<int32_t>(labels_.size());
    labels_.push_back(from.labels_[copied.label]);
    added.output_types = &added_types_.emplace_back(*copied.output_types);
  }
  if (copied.loop >= 0) {
    added.loop = static_cast<int32_t>(loops_.size());
    loops_.push_back(from.loops_[copied.loop]);
  }
  edges_.insert(edges_.end(), inputs.begin(), inputs.end());
  edges_.insert(edges_.end(), control_inputs.begin(), control_inputs.end());
  nodes_.push_back(added);
  order_.push_back(num_nodes() - 1);
  is_pruned_ = false;
  return num_nodes() - 1;
}

PlanGraph::Value PlanGraph::AddFeed(Feed feed) {
  feeds_.push_back(std::move(feed));
  return {kFeed, static_cast<int32_t>(feeds_.size()) - 1};
}

void PlanGraph::AddFetch(Value value, bool keeps_reference) {
  roots_.push_back(value);
  num_fetches_ = static_cast<int>(roots_.size());
  is_pruned_ = false;
  if (keeps_reference) {
    keeps_reference_.resize(roots_.size());
    keeps_reference_.back() = true;
  }
}

uint8_t PlanGraph::DeviceOf(const Node& node) const {
  // Reads the node's definition only if it matters, because that is a cache miss.
  if (devices_.size() == 1) return 0;
  const std::string& requested = node.requested_device();
  for (size_t i = 1; i < devices_.size(); ++i) {
    if (absl::EndsWith(requested, devices_[i])) return static_cast<uint8_t>(i);
  }
  return 0;
}

void PlanGraph::Replace(int32_t node, int32_t by) {
  nodes_[node].replaced_by = by;
  nodes_[node].replacements = -1;
  is_pruned_ = false;
}

void PlanGraph::Replace(int32_t node, int32_t by, std::vector<Value> by_outputs) {
  Replace(node, by);
  nodes_[node].replacements = static_cast<int32_t>(replacements_.size());
  replacements_.insert(replacements_.end(), by_outputs.begin(), by_outputs.end());
}

void PlanGraph::SetEdge(int32_t node, int i, Value value) {
  edges_[nodes_[node].edges_begin + i] = value;
  nodes_[node].is_original = false;
  is_pruned_ = false;
}

void PlanGraph::SetRoot(int i, Value value) {
  roots_[i] = value;
  is_pruned_ = false;
}

void PlanGraph::SetConstant(int32_t node, std::shared_ptr<const OpKernel> kernel) {
  PlanNode& constant = nodes_[node];
  constant.kernel = static_cast<int32_t>(kernels_.size());
  constant.num_inputs = 0;
  constant.num_edges = 0;
  constant.label = -1;
  constant.stateful = false;
  kernels_.push_back(std::move(kernel));
  is_pruned_ = false;
}

absl::Status PlanGraph::Prune() {
  if (is_pruned_) return absl::OkStatus();
  enum State : uint8_t { kUnvisited, kInProgress, kDone };
  std::vector<State> states(nodes_.size(), kUnvisited);
  order_.clear();
  // The path to a node and, for each node on it, the first of its edges that has not been followed.
  std::vector<std::pair<int32_t, int32_t>> path;
  const auto enter = [&](int32_t node) {
    states[node] = kInProgress;
    path.emplace_back(node, 0);
  };
  for (const Value unresolved : roots_) {
    const Value root = ResolveAndShorten(unresolved);
    if (root.is_feed() || states[root.node] != kUnvisited) continue;
    enter(root.node);
    while (!path.empty()) {
      auto& [node, next_edge] = path.back();
      if (next_edge == nodes_[node].num_edges) {
        states[node] = kDone;
        order_.push_back(node);
        path.pop_back();
        continue;
      }
      const Value source = ResolveAndShorten(edges_[nodes_[node].edges_begin + next_edge++]);
      if (source.is_feed() || states[source.node] == kDone) continue;
      if (states[source.node] == kInProgress) {
        return errors::Internal(PlanNodePrefix(origin_at_site(node), label(node)),
                                "the plan has a cycle");
      }
      enter(source.node);
    }
  }
  is_pruned_ = true;
  return absl::OkStatus();
}

std::string PlanOrigin::name() const {
  return site == nullptr ? node->name() : absl::StrCat(site->path, node->name());
}

std::string PlanNodePrefix(const PlanOrigin& origin, const PlanNodeLabel* label) {
  const auto title = [](const PlanOrigin& one) {
    return internal::NodeTitle(one.name(), one.node->type_string());
  };
  if (label == nullptr) return absl::StrCat("node ", title(origin), ": ");
  constexpr size_t kMaxOrigins = 4;
  const size_t count = label->origins.size();
  std::vector<std::string> titles;
  for (size_t i = 0; i < std::min(count, kMaxOrigins); ++i) {
    titles.push_back(title(label->origins[i]));
  }
  if (count > kMaxOrigins) titles.push_back(absl::StrCat(count - kMaxOrigins, " more"));
  return absl::StrCat(count == 1 ? "node " : "nodes ", absl::StrJoin(titles, ", "), ", run as ",
                      label->op, ": ");
}

}  // namespace gradflow
