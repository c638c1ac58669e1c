#include "gradflow/runtime/plan/plan.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gradflow/core/attributes.h"
#include "gradflow/core/run_stop.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/node_checks.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/runtime/plan/optimize.h"
#include "gradflow/runtime/plan/plan_nodes.h"
#include "gradflow/runtime/plan/tensor_names.h"

namespace gradflow {
namespace {

// Returns the shape that a Placeholder declares; of unknown rank if it declares none, or the node
// is not a Placeholder.
absl::StatusOr<PartialTensorShape> DeclaredShape(const Node& node) {
  PartialTensorShape shape;
  const bool declares = IsPlaceholder(node) || node.type_string() == "PlaceholderWithDefault";
  if (!declares || FindNodeAttr(node.def(), "shape") == nullptr) return shape;
  absl::Status status = node.GetAttr("shape", &shape);
  if (!status.ok()) return errors::Prefix(internal::NodePrefix(node.def()), status);
  // Graphs of older versions encode an unknown shape as that of a scalar.
  constexpr int kFirstVersionWithUnknownRank = 24;
  if (shape.dims() == 0 &&
      node.graph().def().versions().producer() < kFirstVersionWithUnknownRank) {
    return PartialTensorShape();
  }
  return shape;
}

}  // namespace

// Makes one plan: chooses its nodes, optimizes them and lays them out, each in time linear in its
// nodes and edges.
class PlanBuilder {
 public:
  PlanBuilder(const Graph& graph, const PlanOptions& options, const RunLimits& limits,
              KernelCache* kernels)
      : graph_(graph),
        options_(options),
        limits_(limits),
        kernels_(kernels),
        stop_(limits.cancelled, limits.closed) {}

  absl::StatusOr<std::shared_ptr<const Plan>> Build(const PlanNames& names);

 private:
  // The position of a node that has not been visited.
  static constexpr int32_t kUnvisited = -1;
  static constexpr int32_t kInProgress = -2;

  // Returns an error when the run that waits for the plan is cancelled. Checked at each node, since
  // the factory of a kernel may take long.
  absl::Status CheckNotStopped(const Node& node) {
    if (!stop_.Check()) return absl::OkStatus();
    return errors::Prefix(absl::StrCat(internal::NodePrefix(node.def()), "not planned, since "),
                          WhyStopped(stop_, limits_));
  }
  absl::Status ResolveFeeds(const std::vector<std::string>& names);
  // Returns true if the folded nodes in the cache are valid for these feeds.
  bool MayUseFolded() const;
  // Numbers the nodes that `root` needs, then `root` itself.
  absl::Status Visit(const Node* root);
  absl::Status AddNodes();
  absl::Status AddInputs(int index);
  void AddSuccessors();
  void AddFetches();

  int SlotOf(const Node& node, int output) const {
    const int feed = nodes_.FeedOf(node, output);
    return feed >= 0 ? feed : plan_->nodes_[nodes_.PositionOf(node)].outputs_begin + output;
  }

  const Graph& graph_;
  const PlanOptions& options_;
  const RunLimits& limits_;
  KernelCache* const kernels_;
  RunStop stop_;
  std::unique_ptr<Plan> plan_;
  PlanNodes nodes_;
  bool use_folded_ = false;
  std::vector<TensorRef> fetches_;
};

absl::StatusOr<std::shared_ptr<const Plan>> PlanBuilder::Build(const PlanNames& names) {
  plan_.reset(new Plan);
  nodes_.position.assign(graph_.num_nodes(), kUnvisited);
  GRADFLOW_RETURN_IF_ERROR(ResolveFeeds(names.feeds));
  for (const std::string& name : names.fetches) {
    GRADFLOW_ASSIGN_OR_RETURN(const TensorRef fetch, FindTensor(graph_, "fetch", name));
    fetches_.push_back(fetch);
    if (nodes_.FeedOf(*fetch.node, fetch.output) < 0) nodes_.roots.push_back(fetch.node);
  }
  for (const std::string& name : names.targets) {
    GRADFLOW_ASSIGN_OR_RETURN(const Node* const target, FindTarget(graph_, name));
    if (!nodes_.IsFedPlaceholder(*target)) nodes_.roots.push_back(target);
  }
  use_folded_ = MayUseFolded();
  for (const Node* root : nodes_.roots) GRADFLOW_RETURN_IF_ERROR(Visit(root));
  if (options_.eliminate_common_subexpressions) EliminateCommonSubexpressions(&nodes_);
  GRADFLOW_RETURN_IF_ERROR(FoldConstants(options_.max_folded_bytes, limits_, kernels_, &nodes_));
  GRADFLOW_RETURN_IF_ERROR(AddNodes());
  AddSuccessors();
  if (!plan_->is_sequential_) {
    const auto nodes = plan_->nodes();
    plan_->SortByPaths([&](int node) { return nodes[node].cheap ? 0 : 1; }, &plan_->first_order_);
    plan_->cost_.reset(new std::atomic<int64_t>[plan_->num_nodes()]());
  }
  AddFetches();
  for (auto& [id, folded] : nodes_.constants) {
    plan_->constants_.push_back(std::move(folded.kernel));
  }
  return std::move(plan_);
}

absl::Status PlanBuilder::ResolveFeeds(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    GRADFLOW_ASSIGN_OR_RETURN(const TensorRef fed, FindTensor(graph_, "feed", name));
    const int index = static_cast<int>(plan_->feeds_.size());
    if (!nodes_.feeds.insert({{fed.node->id(), fed.output}, index}).second) {
      return errors::InvalidArgument("feed '", TensorName(fed), "' is given twice");
    }
    Plan::Feed feed{TensorName(fed), PartialTensorShape()};
    GRADFLOW_ASSIGN_OR_RETURN(feed.shape, DeclaredShape(*fed.node));
    plan_->feeds_.push_back(std::move(feed));
    plan_->slot_types_.push_back(BaseType(fed.node->output_type(fed.output)));
  }
  return absl::OkStatus();
}

bool PlanBuilder::MayUseFolded() const {
  if (options_.max_folded_bytes == 0) return false;
  // Folded nodes depend on pure nodes and constants. A feed of one of these changes their values.
  return std::all_of(nodes_.feeds.begin(), nodes_.feeds.end(), [&](const auto& feed) {
    const Node& node = *graph_.node(feed.first.first);
    return !node.IsConstant() && !IsPure(node);
  });
}

absl::Status PlanBuilder::Visit(const Node* root) {
  // Depth-first search without recursion: the stack holds the path to a node, and for each node on
  // it the first of its sources that has not been visited.
  std::vector<std::pair<const Node*, size_t>> stack;
  const auto enter = [&](const Node* node) {
    nodes_.position[node->id()] = kInProgress;
    stack.emplace_back(node, 0);
    // A node's sources were often added shortly before it.
    if (node->id() >= kNodesAhead) PrefetchNode(graph_.node(node->id() - kNodesAhead));
    if (!use_folded_) return;
    // The sources of a folded node are not needed for it.
    if (FoldedNode folded = kernels_->FindFolded(*node); folded.kernel != nullptr) {
      nodes_.constants.emplace(node->id(), std::move(folded));
    }
  };
  if (nodes_.position[root->id()] == kUnvisited) enter(root);
  while (!stack.empty()) {
    const Node* node = stack.back().first;
    const auto sources = nodes_.SourcesOf(*node);
    const Node* next = nullptr;
    for (size_t& i = stack.back().second; i < sources.size() && next == nullptr; ++i) {
      if (nodes_.IsCut(sources[i])) continue;
      const int32_t position = nodes_.position[sources[i].node->id()];
      if (position == kInProgress) {
        return errors::Internal(internal::NodePrefix(node->def()), "the graph has a cycle");
      }
      if (position == kUnvisited) next = sources[i].node;
    }
    if (next != nullptr) {
      enter(next);
    } else {
      GRADFLOW_RETURN_IF_ERROR(CheckNotStopped(*node));
      nodes_.position[node->id()] = static_cast<int32_t>(nodes_.order.size());
      nodes_.order.push_back(node);
      stack.pop_back();
    }
  }
  return absl::OkStatus();
}

absl::Status PlanBuilder::AddNodes() {
  int64_t num_edges = 0;
  int64_t num_slots = plan_->num_feeds();
  for (const Node* node : nodes_.order) {
    num_edges += nodes_.SourcesOf(*node).size();
    num_slots += node->num_outputs();
  }
  if (std::max(num_edges, num_slots) > std::numeric_limits<int32_t>::max()) {
    return errors::ResourceExhausted("a run of ", num_edges, " edges and ", num_slots,
                                     " tensors is too large; expected at most 2147483647");
  }
  plan_->nodes_.resize(nodes_.order.size() + 1);
  plan_->slot_types_.reserve(num_slots);
  plan_->slot_uses_.resize(num_slots);
  plan_->inputs_.reserve(num_edges);
  for (size_t i = 0; i < nodes_.order.size(); ++i) {
    const Node& node = *nodes_.order[i];
    if (i + kNodesAhead < nodes_.order.size()) PrefetchNode(nodes_.order[i + kNodesAhead]);
    GRADFLOW_RETURN_IF_ERROR(CheckNotStopped(node));
    Plan::PlanNode& plan_node = plan_->nodes_[i];
    plan_node.kernel = nodes_.ConstantOf(node);
    if (plan_node.kernel == nullptr) {
      GRADFLOW_ASSIGN_OR_RETURN(plan_node.kernel, kernels_->Get(node));
    }
    plan_node.node = &node;
    plan_node.cheap = plan_node.kernel->IsCheap();
    plan_node.async = plan_node.kernel->AsAsync() != nullptr;
    plan_->has_async_ |= plan_node.async;
    plan_node.outputs_begin = static_cast<int32_t>(plan_->slot_types_.size());
    for (const DataType dtype : node.output_types()) {
      plan_->slot_types_.push_back(BaseType(dtype));
    }
    GRADFLOW_RETURN_IF_ERROR(AddInputs(static_cast<int>(i)));
  }
  Plan::PlanNode& end = plan_->nodes_.back();
  end.inputs_begin = static_cast<int32_t>(plan_->inputs_.size());
  end.outputs_begin = static_cast<int32_t>(plan_->slot_types_.size());
  return absl::OkStatus();
}

absl::Status PlanBuilder::AddInputs(int index) {
  const Node& node = *nodes_.order[index];
  plan_->nodes_[index].inputs_begin = static_cast<int32_t>(plan_->inputs_.size());
  if (nodes_.ConstantOf(node) != nullptr) return absl::OkStatus();
  for (int i = 0; i < node.num_inputs(); ++i) {
    const Node::Source& source = node.sources()[i];
    const int slot = SlotOf(*source.node, source.output);
    const DataType expected = BaseType(node.input_type(i));
    if (plan_->slot_types_[slot] != expected) {
      return errors::Internal(internal::NodePrefix(node.def()), "input ", i, " is declared as ",
                              DataTypeString(expected), ", but its source '",
                              TensorName({source.node, source.output}), "' as ",
                              DataTypeString(plan_->slot_types_[slot]));
    }
    plan_->inputs_.push_back(slot);
    ++plan_->slot_uses_[slot];
  }
  return absl::OkStatus();
}

void PlanBuilder::AddSuccessors() {
  const size_t num_nodes = nodes_.order.size();
  // The pairs of nodes (from, to) with an edge between them, each once, by ascending `to`.
  std::vector<std::pair<int32_t, int32_t>> pairs;
  pairs.reserve(plan_->inputs_.size());
  std::vector<size_t> count(num_nodes);
  std::vector<size_t> last_to(num_nodes, num_nodes);
  plan_->pending_.resize(num_nodes);
  // The maximum number of nodes worth a task on a path that ends at a node.
  std::vector<int32_t> depth(num_nodes);
  int32_t num_tasks = 0;
  for (size_t to = 0; to < num_nodes; ++to) {
    for (const Node::Source& source : nodes_.SourcesOf(*nodes_.order[to])) {
      if (nodes_.IsCut(source)) continue;
      const int32_t from = nodes_.position[source.node->id()];
      depth[to] = std::max(depth[to], depth[from]);
      if (std::exchange(last_to[from], to) == to) continue;
      pairs.emplace_back(from, static_cast<int32_t>(to));
      ++count[from];
      ++plan_->pending_[to];
    }
    if (!plan_->nodes_[to].cheap) {
      if (depth[to]++ != num_tasks++) plan_->is_sequential_ = false;
    }
    if (plan_->pending_[to] == 0) plan_->first_order_.roots.push_back(static_cast<int32_t>(to));
  }
  // From here on, `count` is the index of a node's next successor.
  size_t total = 0;
  for (size_t i = 0; i < num_nodes; ++i) {
    plan_->nodes_[i].successors_begin = static_cast<int32_t>(total);
    total += std::exchange(count[i], total);
  }
  plan_->nodes_[num_nodes].successors_begin = static_cast<int32_t>(total);
  std::vector<int32_t>& successors = plan_->first_order_.successors;
  successors.resize(total);
  for (const auto& [from, to] : pairs) successors[count[from]++] = to;
}

void PlanBuilder::AddFetches() {
  std::vector<bool> seen(plan_->num_slots());
  plan_->fetches_.resize(fetches_.size());
  for (size_t i = fetches_.size(); i-- > 0;) {
    const int slot = SlotOf(*fetches_[i].node, fetches_[i].output);
    plan_->fetches_[i] = {slot, !seen[slot]};
    if (!seen[slot]) ++plan_->slot_uses_[slot];
    seen[slot] = true;
  }
}

absl::StatusOr<std::shared_ptr<const Plan>> Plan::Make(const Graph& graph, const PlanNames& names,
                                                       KernelCache* kernels,
                                                       const PlanOptions& options,
                                                       const RunLimits& limits) {
  return PlanBuilder(graph, options, limits, kernels).Build(names);
}

absl::Status Plan::CheckFeeds(absl::Span<const Tensor* const> tensors) const {
  if (tensors.size() != feeds_.size()) {
    return errors::InvalidArgument("expected ", feeds_.size(), " fed tensors, found ",
                                   tensors.size());
  }
  for (size_t i = 0; i < feeds_.size(); ++i) {
    const Tensor& tensor = *tensors[i];
    const Feed& feed = feeds_[i];
    if (tensor.dtype() != slot_types_[i]) {
      return errors::InvalidArgument("feed '", feed.name, "': expected type ",
                                     DataTypeString(slot_types_[i]), ", found ",
                                     DataTypeString(tensor.dtype()));
    }
    if (!tensor.IsInitialized()) {
      return errors::InvalidArgument("feed '", feed.name, "': the tensor is not initialised");
    }
    if (!feed.shape.unknown_rank() && !feed.shape.IsCompatibleWith(tensor.shape())) {
      return errors::InvalidArgument("feed '", feed.name, "': expected shape ",
                                     feed.shape.DebugString(), ", found ",
                                     tensor.shape().DebugString());
    }
  }
  return absl::OkStatus();
}

void Plan::SortByPaths(absl::FunctionRef<int64_t(int)> length, Order* order) const {
  // For each node, the length of the longest path that begins there.
  std::vector<int64_t> path(num_nodes());
  // A thread continues with the first node. It spawns the others from the back, and other threads
  // take them in that order.
  const auto sort = [&](int32_t* begin, int32_t* end) {
    if (std::adjacent_find(begin, end, [&](int32_t a, int32_t b) { return path[a] != path[b]; }) ==
        end) {
      return;
    }
    std::stable_sort(begin, end, [&](int32_t a, int32_t b) { return path[a] > path[b]; });
    std::reverse(begin + 1, end);
  };
  for (int32_t i = num_nodes(); i-- > 0;) {
    int32_t* const begin = order->successors.data() + nodes_[i].successors_begin;
    int32_t* const end = order->successors.data() + nodes_[i + 1].successors_begin;
    for (const int32_t* next = begin; next != end; ++next) path[i] = std::max(path[i], path[*next]);
    path[i] += length(i);
    sort(begin, end);
  }
  sort(order->roots.data(), order->roots.data() + order->roots.size());
}

bool Plan::BeginMeasuring(int64_t fed_bytes) const {
  if (cost_ == nullptr) return false;
  int left = to_begin_.load(std::memory_order_relaxed);
  while (left > 0 && !to_begin_.compare_exchange_weak(left, left - 1, std::memory_order_relaxed)) {
  }
  if (left == 0) return false;
  int64_t most = measured_bytes_.load(std::memory_order_relaxed);
  while (most < fed_bytes && !measured_bytes_.compare_exchange_weak(most, fed_bytes)) {
  }
  return true;
}

bool Plan::Shares(const Order& order) const {
  // The maximum number of nodes that are not small on a path that ends at a node.
  std::vector<int32_t> depth(num_nodes());
  int32_t count = 0;
  for (int32_t i = 0; i < num_nodes(); ++i) {
    if (order.small[i] == 0 && depth[i]++ != count++) return true;
    for (int32_t s = nodes_[i].successors_begin; s < nodes_[i + 1].successors_begin; ++s) {
      int32_t& next = depth[order.successors[s]];
      next = std::max(next, depth[i]);
    }
  }
  return false;
}

std::string Plan::ErrorPrefix(int node) const {
  return internal::NodePrefix(nodes_[node].node->def());
}

void Plan::EndMeasuring(bool finished) const {
  if (!finished) {
    to_begin_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  // The run that ends last sees the measurements of all.
  if (to_end_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  // The cost of a hand-over, including waking a thread: a few microseconds.
  constexpr int64_t kSmallNanoseconds = 1000;
  measured_order_ = first_order_;
  measured_order_.measured_bytes = measured_bytes_.load(std::memory_order_relaxed);
  measured_order_.small.resize(num_nodes());
  for (int i = 0; i < num_nodes(); ++i) {
    // A stateful kernel may wait for another, so its time says little about its cost.
    const bool may_wait = nodes_[i].async || nodes_[i].node->op_def().is_stateful();
    measured_order_.small[i] =
        nodes_[i].cheap ||
        (!may_wait && cost_[i].load(std::memory_order_relaxed) <= kSmallNanoseconds);
  }
  measured_order_.shares = Shares(measured_order_);
  SortByPaths(
      [&](int node) {
        return nodes_[node].cheap ? 0 : cost_[node].load(std::memory_order_relaxed);
      },
      &measured_order_);
  order_.store(&measured_order_, std::memory_order_release);
}

}  // namespace gradflow
