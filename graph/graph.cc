#include "gradflow/graph/graph.h"

#include <google/protobuf/arena.h>

#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/container/inlined_vector.h"
#include "absl/hash/hash.h"
#include "absl/strings/match.h"
#include "gradflow/core/call_safely.h"
#include "gradflow/core/mutex.h"
#include "gradflow/core/op_def_util.h"
#include "gradflow/core/shape_context.h"
#include "gradflow/core/status.h"
#include "gradflow/core/tensor_proto.h"
#include "gradflow/graph/huge_pages.h"
#include "gradflow/graph/node_checks.h"
#include "gradflow/proto/graph.pb.h"

namespace gradflow {

// Values of Consts by id of their node; null for those whose value cannot be had.
struct Graph::Constants {
  Mutex mutex;
  absl::flat_hash_map<int, std::unique_ptr<const Tensor>> values ABSL_GUARDED_BY(mutex);
};

// The edges of the first `num_nodes` nodes, chained by the node that they leave. New nodes only
// bring edges that end in them, so the chains are extended, never made anew.
struct Graph::ReverseEdges {
  struct Link {
    Edge edge;
    int next = -1;
  };
  struct Chain {
    int first = -1;
    int last = -1;
  };

  Mutex mutex;
  int num_nodes ABSL_GUARDED_BY(mutex) = 0;
  std::vector<Link> links ABSL_GUARDED_BY(mutex);
  std::vector<Chain> chains ABSL_GUARDED_BY(mutex);

  void Extend(const internal::NodeStore& nodes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    chains.resize(nodes.size());
    for (; num_nodes < static_cast<int>(nodes.size()); ++num_nodes) {
      const Node& node = nodes[num_nodes];
      int input = 0;
      for (const Node::Source& source : node.sources()) {
        const bool control = source.output < 0;
        const int link = static_cast<int>(links.size());
        links.push_back({{source.node, source.output, &node, control ? -1 : input++}, -1});
        Chain& chain = chains[source.node->id()];
        (chain.first < 0 ? chain.first : links[chain.last].next) = link;
        chain.last = link;
      }
    }
  }
};

namespace {

// The more blocks an arena has, the larger the next one is.
google::protobuf::ArenaOptions ArenaOptionsOfGraphs() {
  google::protobuf::ArenaOptions options;
  options.max_block_size = internal::kHugePageBytes;
  options.block_alloc = internal::AllocateBlock;
  options.block_dealloc = internal::FreeBlock;
  return options;
}

}  // namespace

Graph::Graph(const Registry& registry)
    : registry_(registry),
      def_(std::make_unique<GraphDef>()),
      constants_(std::make_unique<Constants>()),
      reverse_edges_(std::make_unique<ReverseEdges>()) {
  def_->mutable_versions()->set_producer(kGraphDefVersion);
}

Graph::~Graph() {
  if (arena_ == nullptr) return;
  // What is the arena's is not the GraphDef's to delete.
  auto& nodes = *def_->mutable_node();
  while (!nodes.empty()) NodeDefPtr(nodes.UnsafeArenaReleaseLast()).reset();
}

Graph::Name::Name(absl::string_view n) : text(n), hash(absl::HashOf(n)) {}

NodeDefPtr Graph::NewNodeDef() {
  if (arena_ == nullptr) arena_ = std::make_unique<google::protobuf::Arena>(ArenaOptionsOfGraphs());
  return NodeDefPtr(google::protobuf::Arena::CreateMessage<NodeDef>(arena_.get()));
}

const Node* Graph::FindNode(absl::string_view name) const {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : it->second;
}

EdgeSet Node::out_edges() const {
  Graph::ReverseEdges& reverse = *graph_->reverse_edges_;
  MutexLock lock(&reverse.mutex);
  reverse.Extend(graph_->nodes_);
  std::vector<Edge> edges;
  for (int i = reverse.chains[id_].first; i >= 0; i = reverse.links[i].next) {
    edges.push_back(reverse.links[i].edge);
  }
  return EdgeSet(std::move(edges));
}

const Tensor* Graph::ConstantValue(const Node& node, int output, int64_t max_elements) const {
  if (output != 0 || !node.IsConstant() || node.num_outputs() != 1) return nullptr;
  const AttrValue* attr = FindNodeAttr(node.def(), "value");
  if (attr == nullptr || !attr->has_tensor()) return nullptr;
  const absl::StatusOr<TensorShape> shape = TensorShape::Make(attr->tensor().tensor_shape());
  if (!shape.ok() || shape->num_elements() > max_elements) return nullptr;

  MutexLock lock(&constants_->mutex);
  const auto [it, is_new] = constants_->values.try_emplace(node.id());
  if (is_new) {
    absl::StatusOr<Tensor> tensor = TensorFromProto(attr->tensor());
    if (tensor.ok() && tensor->dtype() == node.output_type(0)) {
      it->second = std::make_unique<Tensor>(*std::move(tensor));
    }
  }
  return it->second.get();
}

Node* Graph::NewNode(NodeDef* def, const OpRegistration& op) {
  static const NodeTypes& none = *new NodeTypes();
  Node& node = nodes_.Add();
  node.types_ = &none;
  node.graph_ = this;
  node.def_ = def;
  node.op_ = &op;
  node.id_ = static_cast<int>(nodes_.size()) - 1;
  return &node;
}

void Graph::RemoveNodes(int first_id) {
  nodes_.Truncate(first_id);
  for (auto& [name, example] : examples_) example = {example.op};
  MutexLock lock(&constants_->mutex);
  absl::erase_if(constants_->values,
                 [first_id](const auto& value) { return value.first >= first_id; });
}

namespace {

int NumDataInputs(const NodeDef& node) {
  int inputs = node.input_size();
  while (inputs > 0 && absl::StartsWith(node.input(inputs - 1), "^")) --inputs;
  return inputs;
}

}  // namespace

size_t Graph::TypesHash::operator()(const NodeTypes& types) const {
  return absl::HashOf(types.inputs, types.outputs);
}

bool Graph::TypesEqual::operator()(const NodeTypes& a, const NodeTypes& b) const {
  return a.inputs == b.inputs && a.outputs == b.outputs;
}

Graph::Example* Graph::FindExample(absl::string_view op) {
  const auto it = examples_.find(op);
  if (it != examples_.end()) return &it->second;
  const OpRegistration* const registration = registry_.FindOp(op);
  if (registration == nullptr) return nullptr;
  return &examples_.try_emplace(registration->def().name(), Example{registration}).first->second;
}

absl::StatusOr<Graph::Example*> Graph::LookUpExample(absl::string_view op) {
  Example* example = FindExample(op);
  if (example == nullptr) {
    GRADFLOW_RETURN_IF_ERROR(registry_.LookUpOp(op).status());
    // Registered just now.
    example = FindExample(op);
  }
  return example;
}

absl::Status Graph::CheckAlone(Node* node, int producer, Example* example) {
  const OpDef& op_def = node->op_def();
  NodeDef& def = *node->def_;
  GRADFLOW_RETURN_IF_ERROR(internal::CheckNodeName(node->name()));
  GRADFLOW_RETURN_IF_ERROR(internal::CheckDeprecation(op_def, producer));
  AddDefaultsToNodeDef(op_def, &def);
  Example& like = *example;
  // Constants differ, and are long.
  if (like.def != nullptr && !node->IsConstant() &&
      NumDataInputs(def) == static_cast<int>(like.types->inputs.size()) &&
      internal::HaveSameAttrs(def, *like.def)) {
    if (def.device() != like.def->device()) like = {like.op, &def, like.types};
  } else {
    // A node that is not valid takes its place, too: no node is compared with the same large
    // attribute more than once.
    like = {like.op};
    GRADFLOW_RETURN_IF_ERROR(ValidateNodeDef(def, op_def));
    NodeTypes types;
    GRADFLOW_RETURN_IF_ERROR(InOutTypesForNode(def, op_def, &types.inputs, &types.outputs));
    like = {like.op, &def, &*types_.insert(std::move(types)).first};
  }
  node->types_ = like.types;
  node->num_data_inputs_ = static_cast<int>(like.types->inputs.size());
  return absl::OkStatus();
}

bool Graph::HasExtraAttrs(const Node& node) {
  return node.def().attr_size() > node.op_def().attr_size();
}

absl::Status Graph::CheckSources(Node* node) {
  const DataTypeVector& expected = node->types_->inputs;
  for (int i = 0; i < node->num_data_inputs_; ++i) {
    const DataType found = node->input_type(i);
    if (!internal::IsInputType(found, expected[i])) {
      return internal::WrongInputType(node->op_def(), *node->def_, i, found, expected[i]);
    }
  }
  return absl::OkStatus();
}

absl::Status Graph::InferShapes(Node* node) {
  const ShapeFn shape_fn = node->op().shape_fn();
  if (shape_fn == nullptr) return absl::OkStatus();
  absl::InlinedVector<const PartialTensorShape*, 8> shapes;
  absl::InlinedVector<DataType, 8> types;
  const auto inputs = node->sources().subspan(0, node->num_inputs());
  for (const auto& [source, output] : inputs) {
    shapes.push_back(&source->output_shape(output));
    types.push_back(RemoveRefType(source->output_type(output)));
  }
  const auto constant = [&](int i) {
    return node->graph().ConstantValue(*inputs[i].node, inputs[i].output);
  };
  ShapeContext context(node->def(), node->op_def(), shapes, types, node->num_outputs(), constant);
  GRADFLOW_RETURN_IF_ERROR(shape_fn(context));
  for (int i = 0; i < node->num_outputs(); ++i) node->output_shapes_[i] = context.output(i);
  return absl::OkStatus();
}

absl::StatusOr<const Node*> Graph::AddNode(NodeDef&& def, bool infer_shapes) {
  const Node* node = nullptr;
  GRADFLOW_RETURN_IF_ERROR(CallSafely([&]() -> absl::Status {
    NodeDefPtr owned(new NodeDef(std::move(def)));
    const absl::StatusOr<Example*> example = LookUpExample(owned->op());
    if (!example.ok()) return errors::Prefix(internal::NodePrefix(*owned), example.status());
    internal::Sources sources;
    const absl::Status resolved = internal::ResolveInputs(
        *owned, [this](absl::string_view name) { return FindNode(name); }, &sources);
    if (!resolved.ok()) return errors::Prefix(internal::NodePrefix(*owned), resolved);
    GRADFLOW_ASSIGN_OR_RETURN(node, Append(std::move(owned), *example, sources, infer_shapes));
    return absl::OkStatus();
  }));
  return node;
}

absl::StatusOr<const Node*> Graph::Append(NodeDefPtr def, Example* example,
                                          absl::Span<const Node::Source> sources,
                                          bool infer_shapes) {
  // In a large graph it takes as long to get there as to do the checks.
  const Name name = def->name();
  by_name_.prefetch(name);
  Node* const node = NewNode(def.get(), *example->op);
  bool is_named = false;
  // Also if there is no memory for the rest.
  absl::Cleanup remove_node = [&] {
    if (is_named) by_name_.erase(name);
    RemoveNodes(node->id_);
  };
  node->sources_.assign(sources.begin(), sources.end());
  const auto check = [&]() -> absl::Status {
    GRADFLOW_RETURN_IF_ERROR(CheckAlone(node, def_->versions().producer(), example));
    node->output_shapes_.resize(node->num_outputs());
    is_named = by_name_.try_emplace(name, node).second;
    if (!is_named) return errors::InvalidArgument("the graph has a node of this name already");
    GRADFLOW_RETURN_IF_ERROR(CheckSources(node));
    if (HasExtraAttrs(*node)) {
      GRADFLOW_RETURN_IF_ERROR(internal::CheckColocation(
          *def, [this](absl::string_view name) { return FindNode(name) != nullptr; }));
    }
    return infer_shapes ? InferShapes(node) : absl::OkStatus();
  };
  if (absl::Status status = check(); !status.ok()) {
    return errors::Prefix(internal::NodePrefix(*def), status);
  }
  def_->mutable_node()->Reserve(def_->node_size() + 1);
  std::move(remove_node).Cancel();
  // Not AddAllocated, which would copy a node of an arena.
  def_->mutable_node()->UnsafeArenaAddAllocated(def.release());
  return node;
}

}  // namespace gradflow
