#include "gradflow/graph/graph.h"

#include <google/protobuf/arena.h>

#include <iterator>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/container/inlined_vector.h"
#include "absl/hash/hash.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/call_safely.h"
#include "gradflow/core/op_def_util.h"
#include "gradflow/core/shape_context.h"
#include "gradflow/core/status.h"
#include "gradflow/core/tensor_proto.h"
#include "gradflow/graph/graph_impl.h"
#include "gradflow/graph/node_checks.h"
#include "gradflow/graph/protobuf_internals.h"
#include "gradflow/proto/graph.pb.h"

namespace gradflow {

Graph::Graph(const Registry& registry)
    : impl_(std::make_unique<internal::GraphImpl>(*this, registry)) {}
Graph::~Graph() = default;

const Registry& Graph::registry() const { return impl_->registry(); }
const GraphDef& Graph::def() const { return *impl_->def(); }
std::string Graph::NewName(absl::string_view prefix) const {
  int n = num_nodes();
  std::string name;
  do {
    name = absl::StrCat(prefix, "/_", n++);
  } while (FindNode(name) != nullptr);
  return name;
}

int Graph::num_nodes() const { return static_cast<int>(impl_->nodes().size()); }
const Node* Graph::node(int id) const { return &impl_->nodes()[id]; }
const Node* Graph::FindNode(absl::string_view name) const { return impl_->FindNode(name); }

const Tensor* Graph::ConstantValue(const Node& node, int output, int64_t max_elements) const {
  return impl_->ConstantValue(node, output, max_elements);
}

absl::StatusOr<const Node*> Graph::AddNode(NodeDef&& def, bool infer_shapes) {
  const Node* node = nullptr;
  GRADFLOW_RETURN_IF_ERROR(CallSafely([&]() -> absl::Status {
    NodeDefPtr owned(new NodeDef(std::move(def)));
    const absl::StatusOr<internal::Example*> example = impl_->LookUpExample(owned->op());
    if (!example.ok()) return errors::Prefix(internal::NodePrefix(*owned), example.status());
    internal::Sources sources;
    const absl::Status resolved = internal::ResolveInputs(
        *owned, [this](absl::string_view name) { return FindNode(name); }, &sources);
    if (!resolved.ok()) return errors::Prefix(internal::NodePrefix(*owned), resolved);
    GRADFLOW_ASSIGN_OR_RETURN(node,
                              impl_->Append(std::move(owned), *example, sources, infer_shapes));
    return absl::OkStatus();
  }));
  return node;
}

EdgeSet Node::out_edges() const { return internal::GraphImpl::OutEdges(*this); }

namespace internal {
namespace {

int NumDataInputs(const NodeDef& node) {
  int inputs = node.input_size();
  while (inputs > 0 && absl::StartsWith(node.input(inputs - 1), "^")) --inputs;
  return inputs;
}

}  // namespace

GraphImpl::GraphImpl(const Graph& graph, const Registry& registry)
    : graph_(graph), registry_(registry), def_(std::make_unique<GraphDef>()) {
  def_->mutable_versions()->set_producer(kGraphDefVersion);
}

GraphImpl::~GraphImpl() {
  if (arena_ != nullptr) ClearNodeDefs(def_.get());
}

NodeDefPtr GraphImpl::NewNodeDef() {
  if (arena_ == nullptr) arena_ = MakeGraphArena();
  return NodeDefPtr(google::protobuf::Arena::CreateMessage<NodeDef>(arena_.get()));
}

const Node* GraphImpl::FindNode(const NameKey& name) const {
  const NamedNode* const found = by_name_.Find(name);
  return found == nullptr ? nullptr : &nodes_[found->id];
}

// ---- What is found on demand ----

void GraphImpl::ReverseEdges::Extend(const NodeStore& nodes) {
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

EdgeSet GraphImpl::OutEdges(const Node& node) {
  GraphImpl& impl = Of(node);
  ReverseEdges& reverse = impl.reverse_edges_;
  MutexLock lock(&reverse.mutex);
  reverse.Extend(impl.nodes_);
  std::vector<Edge> edges;
  for (int i = reverse.chains[node.id()].first; i >= 0; i = reverse.links[i].next) {
    edges.push_back(reverse.links[i].edge);
  }
  return EdgeSet(std::move(edges));
}

const Tensor* GraphImpl::ConstantValue(const Node& node, int output, int64_t max_elements) {
  if (output != 0 || !node.IsConstant() || node.num_outputs() != 1) return nullptr;
  const AttrValue* attr = FindNodeAttr(node.def(), "value");
  if (attr == nullptr || !attr->has_tensor()) return nullptr;
  const absl::StatusOr<TensorShape> shape = TensorShape::Make(attr->tensor().tensor_shape());
  if (!shape.ok() || shape->num_elements() > max_elements) return nullptr;

  MutexLock lock(&constants_mutex_);
  const auto [it, is_new] = constants_.try_emplace(node.id());
  if (is_new) {
    // The value may repeat one element of its encoding any number of times.
    const auto encoded = static_cast<int64_t>(attr->tensor().ByteSizeLong());
    const int64_t element = node.output_type(0) == DT_STRING
                                ? static_cast<int64_t>(sizeof(tstring)) + encoded
                                : static_cast<int64_t>(DataTypeSize(node.output_type(0)));
    const int64_t bytes = MultiplyWithoutOverflow(shape->num_elements(), element);
    const int64_t extra = bytes - kMaxExpansion * encoded;
    if (bytes < 0 || extra > 0) {
      if (bytes < 0 || extra > kMaxExpandedBytes - expanded_bytes_) {
        constants_.erase(it);
        return nullptr;
      }
      expanded_bytes_ += extra;
    }
    absl::StatusOr<Tensor> tensor = TensorFromProto(attr->tensor());
    if (tensor.ok() && tensor->dtype() == node.output_type(0)) {
      it->second = std::make_unique<Tensor>(*std::move(tensor));
    }
  }
  return it->second.get();
}

const Tensor* GraphImpl::DecodedConstant(const Node& node) {
  MutexLock lock(&constants_mutex_);
  const auto it = constants_.find(node.id());
  return it == constants_.end() ? nullptr : it->second.get();
}

// ---- Examples ----

size_t GraphImpl::TypesHash::operator()(const NodeTypes& types) const {
  return absl::HashOf(types.inputs, types.outputs);
}

bool GraphImpl::TypesEqual::operator()(const NodeTypes& a, const NodeTypes& b) const {
  return a.inputs == b.inputs && a.outputs == b.outputs;
}

Example* GraphImpl::FindExample(absl::string_view op) {
  const auto it = examples_.find(op);
  if (it != examples_.end()) return &it->second;
  const OpRegistration* const registration = registry_.FindOp(op);
  if (registration == nullptr) return nullptr;
  return &examples_.try_emplace(registration->def().name(), Example{registration}).first->second;
}

absl::StatusOr<Example*> GraphImpl::LookUpExample(absl::string_view op) {
  Example* example = FindExample(op);
  if (example == nullptr) {
    GRADFLOW_RETURN_IF_ERROR(registry_.LookUpOp(op).status());
    // Registered between the two calls.
    example = FindExample(op);
  }
  return example;
}

// ---- The steps of adding a node ----

Node* GraphImpl::NewNode(NodeDef* def, const OpRegistration& op) {
  static const NodeTypes& none = *new NodeTypes();
  Node& node = nodes_.Add();
  node.types_ = &none;
  node.graph_ = &graph_;
  node.def_ = def;
  node.op_ = &op;
  node.id_ = static_cast<int>(nodes_.size()) - 1;
  return &node;
}

void GraphImpl::RemoveNodes(int first_id, const ShapeStore::Mark& shapes) {
  nodes_.Truncate(first_id);
  shapes_.Truncate(shapes);
  known_values_.Truncate(first_id);
  for (auto& [name, example] : examples_) example = {example.op};
  MutexLock lock(&constants_mutex_);
  for (auto it = constants_.begin(); it != constants_.end();) {
    it = it->first >= first_id ? constants_.erase(it) : std::next(it);
  }
}

absl::Status GraphImpl::CheckAlone(Node* node, int producer, Example* example, Attrs attrs) {
  const OpDef& op_def = node->op_def();
  NodeDef& def = *node->def_;
  GRADFLOW_RETURN_IF_ERROR(CheckNodeName(node->name()));
  GRADFLOW_RETURN_IF_ERROR(CheckDeprecation(op_def, producer));
  Example& like = *example;
  if (attrs != Attrs::kOfExample) AddDefaultsToNodeDef(op_def, &def);
  // Constants differ, and are long.
  if (attrs == Attrs::kOfExample ||
      (like.def != nullptr && !node->IsConstant() &&
       NumDataInputs(def) == static_cast<int>(like.types->inputs.size()) &&
       HaveSameAttrs(def, *like.def))) {
    // A kernel is for a device.
    if (def.device() != like.def->device()) like = {like.op, &def, like.types};
  } else {
    // An invalid node replaces the example, too: no node is compared with the same large attribute
    // more than once.
    like = {like.op};
    GRADFLOW_RETURN_IF_ERROR(ValidateNodeDef(def, op_def));
    NodeTypes types;
    GRADFLOW_RETURN_IF_ERROR(InOutTypesForNode(def, op_def, &types.inputs, &types.outputs));
    like = {like.op, &def, &*types_.insert(std::move(types)).first};
  }
  like.inferred |= attrs != Attrs::kUnchecked;
  node->types_ = like.types;
  node->num_data_inputs_ = static_cast<int>(like.types->inputs.size());
  return absl::OkStatus();
}

void GraphImpl::MakeOutputShapes(Node* node) {
  node->output_shapes_ = ShapeStore::Unknown();
  node->shape_step_ = 0;
}

void GraphImpl::SetSources(Node* node, absl::Span<const Node::Source> sources) {
  node->sources_.assign(sources.begin(), sources.end());
}

absl::Status GraphImpl::CheckSources(Node* node) {
  const DataTypeVector& expected = node->types_->inputs;
  for (int i = 0; i < node->num_data_inputs_; ++i) {
    const DataType found = node->input_type(i);
    if (!IsInputType(found, expected[i])) {
      return WrongInputType(node->op_def(), *node->def_, i, found, expected[i]);
    }
  }
  return absl::OkStatus();
}

bool FindVariable(const Node* node, DataType* dtype, PartialTensorShape* shape) {
  // Limits the time for long chains.
  constexpr int kMaxSteps = 16;
  for (int step = 0; step < kMaxSteps; ++step) {
    if (node->type_string() == "VarHandleOp") {
      return node->GetAttr("dtype", dtype).ok() && node->GetAttr("shape", shape).ok();
    }
    if (node->type_string() != "Identity" || node->sources().empty()) return false;
    node = node->sources()[0].node;
  }
  return false;
}

absl::Status GraphImpl::InferShapes(Node* node) {
  const ShapeFn shape_fn = node->op().shape_fn();
  if (shape_fn == nullptr) return absl::OkStatus();
  absl::InlinedVector<const PartialTensorShape*, 8> shapes;
  absl::InlinedVector<DataType, 8> types;
  const auto inputs = node->sources().subspan(0, node->num_inputs());
  for (const auto& [source, output] : inputs) {
    shapes.push_back(&source->output_shape(output));
    types.push_back(BaseType(source->output_type(output)));
  }
  const auto constant = [&](int i) { return known_values_.Find(inputs[i]); };
  ShapeContext context(node->def(), node->op_def(), shapes, types, node->num_outputs(), constant);
  const auto find_variable = [&](int i, DataType* dtype, PartialTensorShape* shape) {
    return FindVariable(inputs[i].node, dtype, shape);
  };
  context.SetFindVariable(find_variable);
  const auto find_shape = [&](int i) { return known_values_.FindShape(inputs[i]); };
  context.SetFindShape(find_shape);
  GRADFLOW_RETURN_IF_ERROR(shape_fn(context));
  const absl::Span<PartialTensorShape> outputs = context.mutable_outputs();
  // Many ops keep the shape of their first input.
  const bool is_unchanged = outputs.size() == 1 && !shapes.empty() && outputs[0] == *shapes[0];
  node->output_shapes_ = is_unchanged ? shapes[0] : shapes_.Add(outputs, &node->shape_step_);
  return absl::OkStatus();
}

absl::StatusOr<const Node*> GraphImpl::Append(NodeDefPtr def, Example* example,
                                              absl::Span<const Node::Source> sources,
                                              bool infer_shapes, Attrs attrs) {
  const NameKey name = def->name();
  const ShapeStore::Mark shapes = shapes_.mark();
  Node* const node = NewNode(def.get(), *example->op);
  bool is_named = false;
  // Runs also if memory runs out.
  absl::Cleanup remove_node = [&] {
    if (is_named) by_name_.Erase(name);
    RemoveNodes(node->id_, shapes);
  };
  SetSources(node, sources);
  const auto check = [&]() -> absl::Status {
    GRADFLOW_RETURN_IF_ERROR(CheckAlone(node, def_->versions().producer(), example, attrs));
    MakeOutputShapes(node);
    is_named = by_name_.Insert(name, &def->name(), node->id_);
    if (!is_named) return errors::InvalidArgument("the graph already has a node of this name");
    if (attrs != Attrs::kOfExample) {
      GRADFLOW_RETURN_IF_ERROR(CheckSources(node));
      if (HasExtraAttrs(*node)) {
        GRADFLOW_RETURN_IF_ERROR(CheckColocation(
            *def, [this](absl::string_view other) { return FindNode(other) != nullptr; }));
      }
    }
    return infer_shapes ? InferShapes(node) : absl::OkStatus();
  };
  if (absl::Status status = check(); !status.ok()) {
    return errors::Prefix(NodePrefix(*def), status);
  }
  AddNodeDef(std::move(def), def_.get());
  std::move(remove_node).Cancel();
  return node;
}

}  // namespace internal
}  // namespace gradflow
