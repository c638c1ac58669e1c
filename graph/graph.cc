#include "gradflow/graph/graph.h"

#include <google/protobuf/arena.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/container/inlined_vector.h"
#include "absl/hash/hash.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "gradflow/core/call_safely.h"
#include "gradflow/core/op_def_util.h"
#include "gradflow/core/shape_context.h"
#include "gradflow/core/status.h"
#include "gradflow/core/tensor_proto.h"
#include "gradflow/graph/function_library.h"
#include "gradflow/graph/graph_impl.h"
#include "gradflow/graph/import.h"
#include "gradflow/graph/import_checks.h"
#include "gradflow/graph/node_checks.h"
#include "gradflow/graph/protobuf_internals.h"
#include "gradflow/graph/tensor_id.h"
#include "gradflow/graph/while_context.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/proto/op_def.pb.h"

namespace gradflow {

Graph::Graph(const Registry& registry)
    : impl_(std::make_unique<internal::GraphImpl>(*this, registry, nullptr)) {}
Graph::Graph(const Registry& registry, const FunctionLibrary& functions)
    : impl_(std::make_unique<internal::GraphImpl>(*this, registry, &functions)) {}
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
    const absl::StatusOr<internal::CheckedNodeCache*> checked =
        impl_->LookUpCheckedNode(owned->op());
    if (!checked.ok()) return errors::Prefix(internal::NodePrefix(*owned), checked.status());
    internal::Sources sources;
    const absl::Status resolved = internal::ResolveInputs(
        *owned, [this](absl::string_view name) { return FindNode(name); }, &sources);
    if (!resolved.ok()) return errors::Prefix(internal::NodePrefix(*owned), resolved);
    GRADFLOW_ASSIGN_OR_RETURN(node,
                              impl_->Append(std::move(owned), *checked, sources, infer_shapes));
    return absl::OkStatus();
  }));
  return node;
}

const FunctionLibrary& Graph::functions() const { return impl_->functions(); }

absl::Status Graph::AddFunction(const FunctionDef& def) {
  const std::string& name = def.signature().name();
  if (registry().FindOp(name) != nullptr) {
    return errors::InvalidArgument("function ", internal::Quoted(name),
                                   ": an op has the same name");
  }
  return CallSafely([&]() -> absl::Status {
    if (const FunctionDef* const known = functions().Find(name)) {
      return internal::CheckSameFunction(def, *known);
    }
    GraphDef graph_def;
    *graph_def.mutable_versions() = this->def().versions();
    *graph_def.mutable_library()->add_function() = def;
    return ImportGraphDef({}, std::move(graph_def), this);
  });
}

absl::Status Node::CheckResolved() const {
  return internal::GraphImpl::Of(*this).CheckResolved(*this);
}

WhileContext* Node::while_ctx() const {
  return internal::GraphImpl::Of(*this).FindWhileContext(*this);
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

GraphImpl::GraphImpl(const Graph& graph, const Registry& registry, const FunctionLibrary* functions)
    : graph_(graph),
      registry_(registry),
      def_(std::make_unique<GraphDef>()),
      own_functions_(functions == nullptr ? new FunctionLibrary(registry, *def_) : nullptr),
      functions_(functions == nullptr ? *own_functions_ : *functions) {
  def_->mutable_versions()->set_producer(kGraphDefVersion);
}

GraphImpl::~GraphImpl() {
  if (arena_ != nullptr) ClearNodeDefs(def_.get());
}

std::unique_ptr<Graph> GraphImpl::NewGraph(const Registry& registry,
                                           const FunctionLibrary& functions) {
  return std::unique_ptr<Graph>(new Graph(registry, functions));
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
    const int64_t bytes = TensorProtoBytes(attr->tensor());
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

// ---- Checked nodes ----

size_t GraphImpl::TypesHash::operator()(const NodeTypes& types) const {
  return absl::HashOf(types.inputs, types.outputs);
}

bool GraphImpl::TypesEqual::operator()(const NodeTypes& a, const NodeTypes& b) const {
  return a.inputs == b.inputs && a.outputs == b.outputs;
}

CheckedNodeCache* GraphImpl::FindCheckedNode(absl::string_view op) {
  const auto it = checked_nodes_.find(op);
  if (it != checked_nodes_.end()) return &it->second;
  const OpRegistration* registration = registry_.FindOp(op);
  if (registration == nullptr && functions_.Find(op) != nullptr) {
    registration = functions_.FindOp(op).value_or(nullptr);
  }
  if (registration == nullptr) return nullptr;
  return &checked_nodes_.try_emplace(registration->def().name(), CheckedNodeCache{registration})
              .first->second;
}

absl::StatusOr<CheckedNodeCache*> GraphImpl::LookUpCheckedNode(absl::string_view op) {
  CheckedNodeCache* checked = FindCheckedNode(op);
  if (checked == nullptr) {
    if (functions_.Find(op) != nullptr) GRADFLOW_RETURN_IF_ERROR(functions_.FindOp(op).status());
    GRADFLOW_RETURN_IF_ERROR(registry_.LookUpOp(op).status());
    // The op was registered between the two calls.
    checked = FindCheckedNode(op);
  }
  return checked;
}

// ---- Functions ----

absl::Status GraphImpl::AddFunctions(const FunctionDefLibrary& library) {
  for (const FunctionDef& function : library.function()) {
    const FunctionDef* const known = functions_.Find(function.signature().name());
    if (known == nullptr) {
      own_functions_->Add(&function);
    } else {
      GRADFLOW_RETURN_IF_ERROR(CheckSameFunction(function, *known));
    }
  }
  // A new function is checked in time that does not depend on the number of other functions.
  std::vector<absl::string_view> closed;
  GRADFLOW_RETURN_IF_ERROR(CheckRecursion(
      library, functions_, registry_,
      [this](absl::string_view name) { return functions_.IsClosed(name); }, &closed));
  for (const absl::string_view name : closed) own_functions_->SetClosed(name);
  return absl::OkStatus();
}

void GraphImpl::RemoveFunctions(size_t size) {
  for (size_t i = size; i < functions_.size(); ++i) {
    const auto it = checked_nodes_.find(functions_.name(i));
    // Ops of the registry come first: their entries stay.
    if (it == checked_nodes_.end() || registry_.FindOp(it->first) == it->second.op) continue;
    checked_nodes_.erase(it);
  }
  own_functions_->Truncate(size);
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

const OpRegistration& GraphImpl::MissingOp(const std::string& name) {
  std::unique_ptr<const OpRegistration>& op = missing_ops_[name];
  if (op == nullptr) {
    auto def = std::make_unique<OpDef>();
    def->set_name(name);
    op = std::make_unique<const OpRegistration>(std::move(def), nullptr, OpApi());
  }
  return *op;
}

void GraphImpl::MakeUnresolved(Node* node, const Node& cause) {
  static const NodeTypes& none = *new NodeTypes();
  node->op_ = &MissingOp(node->def_->op());
  node->types_ = &none;
  node->num_data_inputs_ = 0;
  node->sources_.clear();
  node->is_resolved_ = false;
  MakeOutputShapes(node);
  unresolved_[node->id_] = cause.id_;
}

absl::Status GraphImpl::CheckResolved(const Node& node) const {
  const auto found = unresolved_.find(node.id_);
  if (found == unresolved_.end()) return absl::OkStatus();
  const Node& cause = nodes_[found->second];
  const absl::Status missing = registry_.LookUpOp(cause.def().op()).status();
  return errors::NotFound(
      NodePrefix(node.def()),
      &cause == &node ? "" : absl::StrCat("it depends on ", NodePrefix(cause.def())),
      missing.ok() ? "the op was not registered when the graph was imported" : missing.message());
}

void GraphImpl::RemoveNodes(int first_id, const ShapeStore::Mark& shapes) {
  // Takes time linear in the number of removed nodes: a program may try many invalid nodes.
  const int num_nodes = static_cast<int>(nodes_.size());
  {
    MutexLock lock(&constants_mutex_);
    for (int id = first_id; id < num_nodes; ++id) constants_.erase(id);
  }
  for (int id = first_id; id < num_nodes; ++id) {
    unresolved_.erase(id);
    constant_evaluator_.Forget(id);
    // The cache may hold the removed node.
    const auto checked = checked_nodes_.find(nodes_[id].op_def().name());
    if (checked != checked_nodes_.end()) checked->second = {checked->second.op};
  }
  nodes_.Truncate(first_id);
  shapes_.Truncate(shapes);
}

absl::Status GraphImpl::CheckAlone(Node* node, int producer, CheckedNodeCache* checked,
                                   Attrs attrs) {
  const OpDef& op_def = node->op_def();
  NodeDef& def = *node->def_;
  // TensorFlow's own passes begin some names in functions with '_'.
  GRADFLOW_RETURN_IF_ERROR(
      CheckNodeName(is_function() ? absl::StripPrefix(node->name(), "_") : node->name()));
  GRADFLOW_RETURN_IF_ERROR(CheckDeprecation(op_def, producer));
  CheckedNodeCache& like = *checked;
  if (attrs != Attrs::kOfCheckedNode) AddDefaultsToNodeDef(op_def, &def);
  // Does not compare constants, because they differ and are long.
  if (attrs == Attrs::kOfCheckedNode ||
      (like.def != nullptr && !node->IsConstant() &&
       NumDataInputs(def) == static_cast<int>(like.types->inputs.size()) &&
       HaveSameAttrs(def, *like.def))) {
    // Another device may have another kernel.
    if (def.device() != like.def->device()) like = {like.op, &def, like.types};
  } else {
    // An invalid node also clears the cache, so that the same large attribute is not compared
    // again.
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

absl::Status GraphImpl::Reconnect(const Node& node, absl::Span<const Node::Source> sources) {
  Node* const changed = &nodes_[node.id()];
  const std::vector<Node::Source> old(node.sources().begin(), node.sources().end());
  SetSources(changed, sources);
  if (absl::Status status = CheckSources(changed); !status.ok()) {
    SetSources(changed, old);
    return errors::Prefix(NodePrefix(node.def()), status);
  }
  changed->def_->clear_input();
  for (const Node::Source& source : sources) {
    changed->def_->add_input(FormatTensorId({source.node->name(), source.output}));
  }
  MutexLock lock(&reverse_edges_.mutex);
  reverse_edges_.num_nodes = 0;
  reverse_edges_.links.clear();
  reverse_edges_.chains.clear();
  return absl::OkStatus();
}

void GraphImpl::SetOutputShape(const Node& node, int output, const PartialTensorShape& shape) {
  std::vector<PartialTensorShape> shapes;
  for (int i = 0; i < node.num_outputs(); ++i) shapes.push_back(node.output_shape(i));
  shapes[output] = shape;
  Node* const changed = &nodes_[node.id()];
  changed->output_shapes_ = shapes_.Add(absl::MakeSpan(shapes), &changed->shape_step_);
}

// Returns true if the node makes a table whose keys are scalars. Only the keys of dense tables may
// have another shape.
static bool IsTable(const Node& node) {
  const auto& attrs = node.op_def().attr();
  const auto has = [&attrs](absl::string_view name) {
    return std::any_of(attrs.begin(), attrs.end(),
                       [name](const OpDef::AttrDef& attr) { return attr.name() == name; });
  };
  return has("key_dtype") && has("value_dtype") && !has("max_load_factor");
}

bool FindVariable(const Node* node, DataType* dtype, PartialTensorShape* shape) {
  // Limits the time for long chains.
  constexpr int kMaxSteps = 16;
  for (int step = 0; step < kMaxSteps; ++step) {
    if (node->type_string() == "VarHandleOp") {
      return node->GetAttr("dtype", dtype).ok() && node->GetAttr("shape", shape).ok();
    }
    if (IsTable(*node)) {
      // Values are scalars unless the node has an attribute for their shape.
      *shape = TensorShape();
      node->GetAttr("value_shape", shape).IgnoreError();
      return node->GetAttr("value_dtype", dtype).ok();
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
  const auto constant = [&](int i) { return constant_evaluator_.Find(inputs[i]); };
  ShapeContext context(node->def(), node->op_def(), shapes, types, node->num_outputs(), constant);
  const auto find_variable = [&](int i, DataType* dtype, PartialTensorShape* shape) {
    return FindVariable(inputs[i].node, dtype, shape);
  };
  context.SetFindVariable(find_variable);
  const auto find_shape = [&](int i) { return constant_evaluator_.FindShape(inputs[i]); };
  context.SetFindShape(find_shape);
  GRADFLOW_RETURN_IF_ERROR(shape_fn(context));
  const absl::Span<PartialTensorShape> outputs = context.mutable_outputs();
  // Many ops keep the shape of their first input.
  const bool is_unchanged = outputs.size() == 1 && !shapes.empty() && outputs[0] == *shapes[0];
  node->output_shapes_ = is_unchanged ? shapes[0] : shapes_.Add(outputs, &node->shape_step_);
  return absl::OkStatus();
}

absl::Status GraphImpl::SetBackEdge(const Node& merge, int input, const Node& next) {
  Node& node = nodes_[merge.id()];
  NodeDef& def = *node.def_;
  const DataType expected = node.types_->inputs[input];
  if (!IsInputType(next.output_type(0), expected)) {
    return errors::InvalidArgument(NodePrefix(def), "its next value ", Quoted(next.name()),
                                   " has type ", DataTypeString(next.output_type(0)), ", expected ",
                                   DataTypeString(expected));
  }
  if (def.GetArena() != nullptr) {
    SetBorrowed(input, next.name(), def.mutable_input());
  } else {
    def.set_input(input, next.name());
  }
  node.sources_[input] = {&next, 0};
  // Its lists may have the old edge.
  MutexLock lock(&reverse_edges_.mutex);
  reverse_edges_.num_nodes = 0;
  reverse_edges_.links.clear();
  reverse_edges_.chains.clear();
  return absl::OkStatus();
}

void GraphImpl::AddWhileContext(std::unique_ptr<WhileContext> context) {
  for (const Node* exit : context->exit_nodes()) {
    while_contexts_by_exit_[exit->id()] = context.get();
  }
  while_contexts_.push_back(std::move(context));
}

WhileContext* GraphImpl::FindWhileContext(const Node& exit) const {
  const auto found = while_contexts_by_exit_.find(exit.id());
  return found == while_contexts_by_exit_.end() ? nullptr : found->second;
}

absl::StatusOr<const Node*> GraphImpl::Append(NodeDefPtr def, CheckedNodeCache* checked,
                                              absl::Span<const Node::Source> sources,
                                              bool infer_shapes, Attrs attrs) {
  const NameKey name = def->name();
  const ShapeStore::Mark shapes = shapes_.mark();
  Node* const node = NewNode(def.get(), *checked->op);
  bool is_named = false;
  // Also runs if memory runs out.
  absl::Cleanup remove_node = [&] {
    if (is_named) by_name_.Erase(name);
    RemoveNodes(node->id_, shapes);
  };
  SetSources(node, sources);
  const auto check = [&]() -> absl::Status {
    GRADFLOW_RETURN_IF_ERROR(CheckAlone(node, def_->versions().producer(), checked, attrs));
    MakeOutputShapes(node);
    is_named = by_name_.Insert(name, &def->name(), node->id_);
    if (!is_named) return errors::InvalidArgument("the graph already has a node of this name");
    if (attrs != Attrs::kOfCheckedNode) {
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
