#include "gradflow/runtime/plan/make_plan_graph.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/attributes.h"
#include "gradflow/core/status.h"
#include "gradflow/core/stop_token.h"
#include "gradflow/graph/control_flow.h"
#include "gradflow/graph/node_checks.h"
#include "gradflow/graph/tables.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/proto/op_def.pb.h"
#include "gradflow/runtime/plan/op_traits.h"
#include "gradflow/runtime/plan/prefetch.h"
#include "gradflow/runtime/plan/tensor_names.h"

namespace gradflow {
namespace {

// Returns the shape that a Placeholder declares. The rank is unknown if it declares no shape or the
// node is not a Placeholder.
absl::StatusOr<PartialTensorShape> DeclaredShape(const Node& node) {
  PartialTensorShape shape;
  const bool declares = IsPlaceholder(node) || node.type_string() == "PlaceholderWithDefault";
  if (!declares || FindNodeAttr(node.def(), "shape") == nullptr) return shape;
  absl::Status status = node.GetAttr("shape", &shape);
  if (!status.ok()) return errors::Prefix(internal::NodePrefix(node.def()), status);
  // Older graph versions encode an unknown shape as a scalar's shape.
  constexpr int kFirstVersionWithUnknownRank = 24;
  if (shape.dims() == 0 &&
      node.graph().def().versions().producer() < kFirstVersionWithUnknownRank) {
    return PartialTensorShape();
  }
  return shape;
}

}  // namespace

class PlanGraphMaker {
 public:
  PlanGraphMaker(const Graph& graph, const PassContext& context)
      : graph_(graph),
        context_(context),
        stop_(context.limits.cancelled, context.limits.closed),
        result_(context.options.devices),
        ids_(graph.num_nodes(), kUnvisited) {}

  absl::StatusOr<PlanGraph> Make(const PlanNames& names) {
    GRADFLOW_RETURN_IF_ERROR(ResolveFeeds(names.feeds));
    use_folded_ = MayUseFolded();
    std::vector<const Node*> roots;
    for (const std::string& name : names.fetches) {
      GRADFLOW_ASSIGN_OR_RETURN(const TensorRef fetch, FindTensor(graph_, "fetch", name));
      fetches_.push_back(fetch);
      if (FeedOf(*fetch.node, fetch.output) < 0) roots.push_back(fetch.node);
    }
    std::vector<const Node*> targets;
    for (const std::string& name : names.targets) {
      GRADFLOW_ASSIGN_OR_RETURN(const Node* const target, FindTarget(graph_, name));
      if (!IsFedPlaceholder(*target)) targets.push_back(target);
    }
    roots.insert(roots.end(), targets.begin(), targets.end());
    for (const Node* root : roots) GRADFLOW_RETURN_IF_ERROR(Visit(root));
    for (size_t i = 0; i < back_edges_.size(); ++i) {
      GRADFLOW_RETURN_IF_ERROR(Visit(back_edges_[i].source.node));
    }
    for (const BackEdge& edge : back_edges_) result_.edges_[edge.index] = ValueOf(edge.source);
    for (const TensorRef& fetch : fetches_) {
      result_.roots_.push_back(ValueOf({fetch.node, fetch.output}));
    }
    result_.num_fetches_ = static_cast<int>(fetches_.size());
    for (const Node* target : targets) result_.roots_.push_back(ValueOf({target, -1}));
    return std::move(result_);
  }

 private:
  // Stands for the id of a node that has not been added.
  static constexpr int32_t kUnvisited = -1;
  static constexpr int32_t kInProgress = -2;

  // Returns the index of the feed of this output, or -1.
  int FeedOf(const Node& node, int output) const {
    if (feeds_.empty()) return -1;
    const auto it = feeds_.find({node.id(), output});
    return it == feeds_.end() ? -1 : it->second;
  }
  bool IsFedPlaceholder(const Node& node) const {
    return !feeds_.empty() && IsPlaceholder(node) && FeedOf(node, 0) >= 0;
  }
  // Returns true if a feed replaces the edge.
  bool IsCut(const Node::Source& source) const {
    return source.output < 0 ? IsFedPlaceholder(*source.node)
                             : FeedOf(*source.node, source.output) >= 0;
  }
  // REQUIRES: the node has been added, or a feed replaces the edge
  PlanGraph::Value ValueOf(const Node::Source& source) const {
    if (source.output < 0) {
      if (IsFedPlaceholder(*source.node)) return {PlanGraph::kFeed, PlanGraph::kControl};
      return {ids_[source.node->id()], PlanGraph::kControl};
    }
    const int feed = FeedOf(*source.node, source.output);
    if (feed >= 0) return {PlanGraph::kFeed, feed};
    return {ids_[source.node->id()], source.output};
  }

  absl::Status ResolveFeeds(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      GRADFLOW_ASSIGN_OR_RETURN(const TensorRef fed, FindTensor(graph_, "feed", name));
      const int index = static_cast<int>(result_.feeds_.size());
      if (!feeds_.insert({{fed.node->id(), fed.output}, index}).second) {
        return errors::InvalidArgument("feed '", TensorName(fed), "' is given twice");
      }
      PlanGraph::Feed feed;
      feed.name = TensorName(fed);
      feed.dtype = BaseType(fed.node->output_type(fed.output));
      if (context_.options.check_feed_shapes) {
        GRADFLOW_ASSIGN_OR_RETURN(feed.shape, DeclaredShape(*fed.node));
      }
      result_.feeds_.push_back(std::move(feed));
    }
    return absl::OkStatus();
  }

  // Returns true if the folded nodes in the cache are valid for these feeds.
  bool MayUseFolded() const {
    if (context_.options.max_folded_bytes == 0) return false;
    // Folded constants then decide the bits of results, and must not depend on earlier plans.
    if (context_.options.fold_batch_norms || context_.options.integer_inference) return false;
    // Folded nodes depend on pure nodes and constants. A feed of one of these changes their values.
    return std::all_of(feeds_.begin(), feeds_.end(), [&](const auto& feed) {
      const Node& node = *graph_.node(feed.first.first);
      // The nodes of a function may take the place of the node.
      const bool is_functional = node.op().functional() != FunctionalOp::kNone;
      return !node.IsConstant() && !IsPure(node) && !is_functional;
    });
  }

  // Returns an error when the run that waits for the plan is cancelled.
  absl::Status CheckNotStopped(const Node& node) {
    if (!stop_.Check()) return absl::OkStatus();
    return errors::Prefix(absl::StrCat(internal::NodePrefix(node.def()), "not planned, since "),
                          WhyStopped(stop_, context_.limits));
  }

  // Adds the nodes that `root` needs, then `root` itself.
  absl::Status Visit(const Node* root) {
    // Depth-first search without recursion: the stack holds the path to a node, and for each node
    // on it the first of its sources that has not been visited.
    struct Step {
      const Node* node;
      absl::Span<const Node::Source> sources;
      std::shared_ptr<const OpKernel> folded;
    };
    std::vector<Step> stack;
    const auto enter = [&](const Node* node) {
      ids_[node->id()] = kInProgress;
      Step& step = stack.emplace_back();
      step.node = node;
      step.sources = node->sources();
      // A node's sources were often added shortly before it.
      if (node->id() >= kNodesAhead) PrefetchNode(graph_.node(node->id() - kNodesAhead));
      if (!use_folded_) return;
      step.folded = context_.kernels->FindFolded(*node).kernel;
      // A folded node does not need its sources.
      if (step.folded != nullptr) step.sources = {};
    };
    if (ids_[root->id()] == kUnvisited) enter(root);
    while (!stack.empty()) {
      Step& step = stack.back();
      const Node* next = nullptr;
      while (next == nullptr && !step.sources.empty()) {
        const Node::Source& source = step.sources.front();
        step.sources.remove_prefix(1);
        if (IsCut(source) || IsBackEdge(*step.node, source)) continue;
        const int32_t id = ids_[source.node->id()];
        if (id == kInProgress) {
          // TF_UpdateEdge() can make a cycle.
          return errors::InvalidArgument(internal::NodePrefix(step.node->def()),
                                         "the graph has a cycle");
        }
        if (id == kUnvisited) next = source.node;
      }
      if (next != nullptr) {
        enter(next);
      } else {
        GRADFLOW_RETURN_IF_ERROR(CheckNotStopped(*step.node));
        Add(*step.node, std::move(step.folded));
        stack.pop_back();
      }
    }
    return absl::OkStatus();
  }

  // Adds a node whose sources have been added. The node is a constant if `folded` is not null.
  void Add(const Node& node, std::shared_ptr<const OpKernel> folded) {
    const int32_t id = result_.num_nodes();
    ids_[node.id()] = id;
    PlanGraph::PlanNode& added = result_.nodes_.emplace_back();
    added.origin = &node;
    added.output_types = &node.output_types();
    added.edges_begin = static_cast<int64_t>(result_.edges_.size());
    added.stateful = node.op_def().is_stateful();
    added.device = result_.DeviceOf(node);
    result_.order_.push_back(id);
    if (folded != nullptr) {
      added.kernel = static_cast<int32_t>(result_.kernels_.size());
      result_.kernels_.push_back(std::move(folded));
      return;
    }
    added.num_inputs = node.num_inputs();
    added.num_edges = static_cast<int32_t>(node.sources().size());
    for (const Node::Source& source : node.sources()) {
      if (!IsCut(source) && IsBackEdge(node, source)) {
        back_edges_.push_back({static_cast<int64_t>(result_.edges_.size()), source});
      }
      result_.edges_.push_back(ValueOf(source));
    }
  }

  const Graph& graph_;
  const PassContext& context_;
  StopToken stop_;
  PlanGraph result_;
  // The edges that close loops. They are set when all nodes have been added.
  struct BackEdge {
    int64_t index;
    Node::Source source;
  };
  std::vector<BackEdge> back_edges_;
  // (node id, output) -> index of the feed.
  internal::HashMap<std::pair<int, int>, int> feeds_;
  std::vector<TensorRef> fetches_;
  // The id in the plan of each node, indexed by its id in the graph.
  std::vector<int32_t> ids_;
  bool use_folded_ = false;
};

absl::StatusOr<PlanGraph> MakePlanGraph(const Graph& graph, const PlanNames& names,
                                        const PassContext& context) {
  GRADFLOW_ASSIGN_OR_RETURN(PlanGraph made, PlanGraphMaker(graph, context).Make(names));
  GRADFLOW_RETURN_IF_ERROR(ConvertLoops(context, &made));
  return made;
}

}  // namespace gradflow
