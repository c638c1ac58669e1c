#include "gradflow/runtime/plan.h"

#include <limits>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "gradflow/core/attributes.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/node_checks.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/runtime/tensor_names.h"

namespace gradflow {
namespace {

bool IsPlaceholder(const Node& node) {
  return node.type_string() == "Placeholder" || node.type_string() == "PlaceholderV2";
}

// What a fed Placeholder says of its shape; of unknown rank if it says nothing, or the node is
// none.
absl::StatusOr<PartialTensorShape> DeclaredShape(const Node& node) {
  PartialTensorShape shape;
  const bool declares = IsPlaceholder(node) || node.type_string() == "PlaceholderWithDefault";
  if (!declares || FindNodeAttr(node.def(), "shape") == nullptr) return shape;
  absl::Status status = node.GetAttr("shape", &shape);
  if (!status.ok()) return errors::Prefix(internal::NodePrefix(node.def()), status);
  // Graphs of older versions write a shape that is not known like that of a scalar.
  constexpr int kFirstVersionWithUnknownRank = 24;
  if (shape.dims() == 0 &&
      node.graph().def().versions().producer() < kFirstVersionWithUnknownRank) {
    return PartialTensorShape();
  }
  return shape;
}

}  // namespace

// Makes one plan. Runs over the pruned graph once to order it and once to lay it out, each in time
// linear in its nodes and edges.
class PlanBuilder {
 public:
  PlanBuilder(const Graph& graph, KernelCache* kernels) : graph_(graph), kernels_(kernels) {}

  absl::StatusOr<std::unique_ptr<const Plan>> Build(const PlanNames& names);

 private:
  // What `position_` says of a node that has none yet.
  static constexpr int32_t kUnvisited = -1;
  static constexpr int32_t kInProgress = -2;

  absl::Status ResolveFeeds(const std::vector<std::string>& names);
  // Numbers what `root` needs, then itself.
  absl::Status Visit(const Node* root);
  absl::Status AddNodes();
  absl::Status AddInputs(int index);
  void AddSuccessors();
  void AddFetches();

  // The feed that gives this output, or -1.
  int FeedOf(const Node& node, int output) const {
    if (feeds_.empty()) return -1;
    const auto it = feeds_.find({node.id(), output});
    return it == feeds_.end() ? -1 : it->second;
  }
  bool IsFedPlaceholder(const Node& node) const {
    return !feeds_.empty() && IsPlaceholder(node) && FeedOf(node, 0) >= 0;
  }
  // Whether an edge is one that a feed replaces.
  bool IsCut(const Node::Source& source) const {
    return source.output < 0 ? IsFedPlaceholder(*source.node)
                             : FeedOf(*source.node, source.output) >= 0;
  }
  int SlotOf(const Node& node, int output) const {
    const int feed = FeedOf(node, output);
    return feed >= 0 ? feed : plan_->nodes_[position_[node.id()]].outputs_begin + output;
  }

  const Graph& graph_;
  KernelCache* const kernels_;
  std::unique_ptr<Plan> plan_;
  // (node id, output) -> index of the feed.
  absl::flat_hash_map<std::pair<int, int>, int> feeds_;
  std::vector<TensorRef> fetches_;
  // By node id: its number in the plan.
  std::vector<int32_t> position_;
  // The nodes of the plan by number.
  std::vector<const Node*> order_;
};

absl::StatusOr<std::unique_ptr<const Plan>> PlanBuilder::Build(const PlanNames& names) {
  plan_.reset(new Plan);
  position_.assign(graph_.num_nodes(), kUnvisited);
  GRADFLOW_RETURN_IF_ERROR(ResolveFeeds(names.feeds));
  std::vector<const Node*> roots;
  for (const std::string& name : names.fetches) {
    GRADFLOW_ASSIGN_OR_RETURN(const TensorRef fetch, FindTensor(graph_, "fetch", name));
    fetches_.push_back(fetch);
    if (FeedOf(*fetch.node, fetch.output) < 0) roots.push_back(fetch.node);
  }
  for (const std::string& name : names.targets) {
    GRADFLOW_ASSIGN_OR_RETURN(const Node* const target, FindTarget(graph_, name));
    if (!IsFedPlaceholder(*target)) roots.push_back(target);
  }
  for (const Node* root : roots) GRADFLOW_RETURN_IF_ERROR(Visit(root));
  GRADFLOW_RETURN_IF_ERROR(AddNodes());
  AddSuccessors();
  AddFetches();
  return std::move(plan_);
}

absl::Status PlanBuilder::ResolveFeeds(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    GRADFLOW_ASSIGN_OR_RETURN(const TensorRef fed, FindTensor(graph_, "feed", name));
    const int index = static_cast<int>(plan_->feeds_.size());
    if (!feeds_.insert({{fed.node->id(), fed.output}, index}).second) {
      return errors::InvalidArgument("feed '", TensorName(fed), "' is given twice");
    }
    Plan::Feed feed{TensorName(fed), PartialTensorShape()};
    GRADFLOW_ASSIGN_OR_RETURN(feed.shape, DeclaredShape(*fed.node));
    plan_->feeds_.push_back(std::move(feed));
    plan_->slot_types_.push_back(BaseType(fed.node->output_type(fed.output)));
  }
  return absl::OkStatus();
}

absl::Status PlanBuilder::Visit(const Node* root) {
  // Depth first, without recursion: the stack holds the path to a node, and for each node on it
  // the first of its sources that have not been looked at.
  std::vector<std::pair<const Node*, size_t>> stack;
  const auto enter = [&](const Node* node) {
    position_[node->id()] = kInProgress;
    stack.emplace_back(node, 0);
  };
  if (position_[root->id()] == kUnvisited) enter(root);
  while (!stack.empty()) {
    const Node* node = stack.back().first;
    const auto sources = node->sources();
    const Node* next = nullptr;
    for (size_t& i = stack.back().second; i < sources.size() && next == nullptr; ++i) {
      if (IsCut(sources[i])) continue;
      const int32_t position = position_[sources[i].node->id()];
      if (position == kInProgress) {
        return errors::Internal(internal::NodePrefix(node->def()), "the graph has a cycle");
      }
      if (position == kUnvisited) next = sources[i].node;
    }
    if (next != nullptr) {
      enter(next);
    } else {
      position_[node->id()] = static_cast<int32_t>(order_.size());
      order_.push_back(node);
      stack.pop_back();
    }
  }
  return absl::OkStatus();
}

absl::Status PlanBuilder::AddNodes() {
  int64_t num_edges = 0;
  int64_t num_slots = plan_->num_feeds();
  for (const Node* node : order_) {
    num_edges += node->sources().size();
    num_slots += node->num_outputs();
  }
  if (std::max(num_edges, num_slots) > std::numeric_limits<int32_t>::max()) {
    return errors::ResourceExhausted("a run of ", num_edges, " edges and ", num_slots,
                                     " tensors is too large; expected at most 2147483647");
  }
  plan_->nodes_.resize(order_.size() + 1);
  plan_->slot_types_.reserve(num_slots);
  plan_->slot_uses_.resize(num_slots);
  plan_->inputs_.reserve(num_edges);
  for (size_t i = 0; i < order_.size(); ++i) {
    const Node& node = *order_[i];
    Plan::PlanNode& plan_node = plan_->nodes_[i];
    GRADFLOW_ASSIGN_OR_RETURN(plan_node.kernel, kernels_->Get(node));
    plan_node.node = &node;
    plan_node.cheap = plan_node.kernel->IsCheap();
    plan_->all_cheap_ = plan_->all_cheap_ && plan_node.cheap;
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
  const Node& node = *order_[index];
  plan_->nodes_[index].inputs_begin = static_cast<int32_t>(plan_->inputs_.size());
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
  const size_t num_nodes = order_.size();
  // The pairs of nodes (from, to) with an edge between them, each once, by ascending `to`.
  std::vector<std::pair<int32_t, int32_t>> pairs;
  pairs.reserve(plan_->inputs_.size());
  std::vector<size_t> count(num_nodes);
  std::vector<size_t> last_to(num_nodes, num_nodes);
  plan_->pending_.resize(num_nodes);
  for (size_t to = 0; to < num_nodes; ++to) {
    for (const Node::Source& source : order_[to]->sources()) {
      if (IsCut(source)) continue;
      const int32_t from = position_[source.node->id()];
      if (std::exchange(last_to[from], to) == to) continue;
      pairs.emplace_back(from, static_cast<int32_t>(to));
      ++count[from];
      ++plan_->pending_[to];
    }
    if (plan_->pending_[to] == 0) plan_->roots_.push_back(static_cast<int32_t>(to));
  }
  // From here on, `count` says where the next successor of a node goes.
  size_t total = 0;
  for (size_t i = 0; i < num_nodes; ++i) {
    plan_->nodes_[i].successors_begin = static_cast<int32_t>(total);
    total += std::exchange(count[i], total);
  }
  plan_->nodes_[num_nodes].successors_begin = static_cast<int32_t>(total);
  plan_->successors_.resize(total);
  for (const auto& [from, to] : pairs) plan_->successors_[count[from]++] = to;
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

absl::StatusOr<std::unique_ptr<const Plan>> Plan::Make(const Graph& graph, const PlanNames& names,
                                                       KernelCache* kernels) {
  return PlanBuilder(graph, kernels).Build(names);
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

}  // namespace gradflow
