#include "gradflow/graph/function_body.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "gradflow/core/attributes.h"
#include "gradflow/core/op_def_internal.h"
#include "gradflow/core/op_def_util.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/graph_impl.h"
#include "gradflow/graph/import.h"
#include "gradflow/graph/import_checks.h"
#include "gradflow/graph/node_checks.h"
#include "gradflow/graph/tensor_id.h"

namespace gradflow::internal {
namespace {

// The maximum nesting of functions in attributes of functions, as in imports.
constexpr int kMaxDepth = 32;

// The attribute that puts int32 arguments and results on a device: they are _DeviceArg and
// _DeviceRetval nodes.
constexpr char kIntsOnDeviceAttr[] = "experimental_ints_on_device";

// ---- Estimates of memory. Small messages take many times more bytes there than in a file ----

constexpr int64_t kNodeDefBytes = 256;
constexpr int64_t kAttrBytes = 200;
constexpr int64_t kStringBytes = 40;
// The most memory that one byte of a file can take: a varint of one byte becomes an int64, and a
// dimension of two bytes becomes a message.
constexpr int64_t kBytesOfNumber = 8;
constexpr int64_t kBytesOfMessage = 32;

int64_t BytesOf(const google::protobuf::Message& message) {
  return kBytesOfMessage * static_cast<int64_t>(message.ByteSizeLong());
}

template <typename Strings>
int64_t BytesOfStrings(const Strings& strings) {
  int64_t bytes = 0;
  for (const std::string& text : strings) bytes += kStringBytes + static_cast<int64_t>(text.size());
  return bytes;
}

int64_t BytesOf(const TensorProto& tensor) {
  const auto content = static_cast<int64_t>(tensor.tensor_content().size());
  return kAttrBytes + content + BytesOf(tensor.tensor_shape()) +
         BytesOfStrings(tensor.string_val()) +
         kBytesOfNumber * (static_cast<int64_t>(tensor.ByteSizeLong()) - content);
}

int64_t BytesOf(const AttrMap& attrs);

int64_t BytesOf(const NameAttrList& function) {
  return kAttrBytes + static_cast<int64_t>(function.name().size()) + BytesOf(function.attr());
}

int64_t BytesOf(const AttrValue& value) {
  switch (value.value_case()) {
    case AttrValue::kS:
      return kStringBytes + static_cast<int64_t>(value.s().size());
    case AttrValue::kTensor:
      return BytesOf(value.tensor());
    case AttrValue::kFunc:
      return BytesOf(value.func());
    case AttrValue::kShape:
      return BytesOf(value.shape());
    case AttrValue::kList:
      break;
    default:
      return 0;
  }
  const AttrValue::ListValue& list = value.list();
  int64_t bytes =
      kAttrBytes + BytesOfStrings(list.s()) +
      kBytesOfNumber * (int64_t{list.i_size()} + list.f_size() + list.b_size() + list.type_size());
  for (const TensorShapeProto& shape : list.shape()) bytes += kAttrBytes + BytesOf(shape);
  for (const TensorProto& tensor : list.tensor()) bytes += BytesOf(tensor);
  for (const NameAttrList& function : list.func()) bytes += BytesOf(function);
  return bytes;
}

int64_t BytesOf(const AttrMap& attrs) {
  int64_t bytes = 0;
  for (const auto& [name, value] : attrs) {
    bytes += kAttrBytes + static_cast<int64_t>(name.size()) + BytesOf(value);
  }
  return bytes;
}

int64_t BytesOf(const NodeDef& node) {
  const size_t names = node.name().size() + node.op().size() + node.device().size();
  return kNodeDefBytes + static_cast<int64_t>(names) + BytesOfStrings(node.input()) +
         BytesOf(node.attr()) + BytesOf(node.experimental_debug_info());
}

// Returns the functions in the value of an attribute, but not the functions in their attributes.
std::vector<const NameAttrList*> FunctionsIn(const AttrValue& value) {
  std::vector<const NameAttrList*> functions;
  if (value.has_func()) functions.push_back(&value.func());
  for (const NameAttrList& function : value.list().func()) functions.push_back(&function);
  return functions;
}

}  // namespace

absl::StatusOr<BoundAttrs> BindFunctionAttrs(const OpDef& signature, const AttrMap& attrs) {
  BoundAttrs bound;
  std::vector<std::string> faults;
  for (const OpDef::AttrDef& attr : signature.attr()) {
    const auto found = attrs.find(attr.name());
    if (found == attrs.end() && !attr.has_default_value()) {
      faults.push_back(absl::StrCat("attribute ", attr.name(), " (", attr.type(), ") is missing"));
      continue;
    }
    const AttrValue& value = found == attrs.end() ? attr.default_value() : found->second;
    const absl::Status status = CheckAttrValue(attr, value);
    if (!status.ok()) faults.emplace_back(status.message());
    bound.emplace_back(attr.name(), &value);
  }
  if (!faults.empty()) return absl::InvalidArgumentError(JoinFaults(faults));
  return bound;
}

FunctionBodyBuilder::FunctionBodyBuilder(const FunctionDef& function, const BoundAttrs& attrs,
                                         const FunctionLibrary& library, const Registry& registry,
                                         const Options& options)
    : function_(function),
      attrs_(attrs),
      library_(library),
      registry_(registry),
      options_(options) {}

absl::StatusOr<std::unique_ptr<FunctionBody>> FunctionBodyBuilder::Build() {
  GRADFLOW_RETURN_IF_ERROR(
      errors::Prefix("in its signature: ", ValidateFunctionSignature(function_.signature())));
  GRADFLOW_RETURN_IF_ERROR(MakeNodes());
  std::unique_ptr<FunctionBody> body(new FunctionBody(function_.signature().name()));
  GRADFLOW_RETURN_IF_ERROR(Import(body.get()));
  GRADFLOW_RETURN_IF_ERROR(FindEffects(body.get()));
  return body;
}

absl::Status FunctionBodyBuilder::Charge(int64_t bytes) {
  bytes_ += std::min(bytes, options_.max_bytes + 1);
  if (bytes_ <= options_.max_bytes) return absl::OkStatus();
  return errors::ResourceExhausted(
      "the instances of the functions of the graph need too much memory; ", options_.max_bytes,
      " bytes are left for this one");
}

std::string FunctionBodyBuilder::Tensors::Name(int i) const {
  return args.empty() ? FormatTensorId({node, begin + i}) : args[static_cast<size_t>(i)];
}

std::string FunctionBodyBuilder::UniqueName(const std::string& name) {
  std::string unique = name;
  for (int i = 1; !names_.insert(unique).second; ++i) unique = absl::StrCat(name, "_", i);
  return unique;
}

absl::StatusOr<const OpRegistration*> FunctionBodyBuilder::FindOp(const std::string& name) const {
  if (const OpRegistration* op = registry_.FindOp(name)) return op;
  if (library_.Find(name) != nullptr) return library_.FindOp(name);
  return registry_.LookUpOp(name);
}

// ---- The nodes of the graph ----

absl::Status FunctionBodyBuilder::MakeNodes() {
  const OpDef& signature = function_.signature();
  for (const auto& [name, value] : attrs_) {
    // Copies the attributes that determine the types of arguments.
    if (value->value_case() == AttrValue::kType || value->value_case() == AttrValue::kI ||
        value->list().type_size() > 0) {
      (*call_.mutable_attr())[std::string(name)] = *value;
    }
    if (name == kIntsOnDeviceAttr) ints_on_device_ = value->b();
  }
  const auto on_device = function_.attr().find(kIntsOnDeviceAttr);
  if (on_device != function_.attr().end()) ints_on_device_ = on_device->second.b();

  for (const OpDef::ArgDef& arg : signature.input_arg()) names_.insert(arg.name());
  for (const NodeDef& node : function_.node_def()) {
    GRADFLOW_RETURN_IF_ERROR(Charge(BytesOf(node) + kFunctionNodeBytes));
    if (!names_.insert(node.name()).second) {
      return errors::InvalidArgument(NodePrefix(node),
                                     "another node or an argument has the same name");
    }
  }
  for (int i = 0; i < signature.input_arg_size(); ++i) {
    const OpDef::ArgDef& arg = signature.input_arg(i);
    GRADFLOW_RETURN_IF_ERROR(errors::Prefix(absl::StrCat("argument ", Quoted(arg.name()), ": "),
                                            AddArg(arg, static_cast<uint32_t>(i))));
  }
  MissingOps missing(registry_);
  for (const NodeDef& node : function_.node_def()) {
    if (registry_.FindOp(node.op()) == nullptr && library_.Find(node.op()) == nullptr) {
      missing.AddOp(node);
    }
  }
  if (!missing.empty()) return missing.status();
  graph_def_.mutable_node()->Reserve(graph_def_.node_size() + function_.node_def_size() +
                                     signature.output_arg_size());
  for (const NodeDef& node : function_.node_def()) {
    GRADFLOW_RETURN_IF_ERROR(errors::Prefix(NodePrefix(node), AddNode(node)));
  }
  const int num_nodes = graph_def_.node_size();
  for (int i = num_args_; i < num_nodes; ++i) {
    NodeDef* const node = graph_def_.mutable_node(i);
    GRADFLOW_RETURN_IF_ERROR(errors::Prefix(NodePrefix(*node), Connect(node)));
  }
  for (const OpDef::ArgDef& result : signature.output_arg()) {
    GRADFLOW_RETURN_IF_ERROR(
        errors::Prefix(absl::StrCat("result ", Quoted(result.name()), ": "), AddResult(result)));
  }
  return FindControlOutputs();
}

absl::StatusOr<DataTypeVector> FunctionBodyBuilder::TypesOf(const OpDef::ArgDef& arg) const {
  OpDef op_def;
  *op_def.add_input_arg() = arg;
  DataTypeVector types;
  DataTypeVector none;
  GRADFLOW_RETURN_IF_ERROR(InOutTypesForNode(call_, op_def, &types, &none));
  return types;
}

NodeDef* FunctionBodyBuilder::AddEnd(const char* op, const char* device_op, DataType dtype,
                                     std::string name, int index) {
  NodeDef* const node = graph_def_.add_node();
  node->set_name(std::move(name));
  node->set_op(ints_on_device_ && dtype == DT_INT32 ? device_op : op);
  AddNodeAttr("T", dtype, node);
  AddNodeAttr("index", index, node);
  return node;
}

absl::Status FunctionBodyBuilder::AddArg(const OpDef::ArgDef& arg, uint32_t index) {
  GRADFLOW_ASSIGN_OR_RETURN(const DataTypeVector types, TypesOf(arg));
  const auto attrs = function_.arg_attr().find(index);
  const auto resource = function_.resource_arg_unique_id().find(index);
  const bool has_attrs = attrs != function_.arg_attr().end();
  const int64_t bytes = 2 * kFunctionNodeBytes + 4 * static_cast<int64_t>(arg.name().size()) +
                        (has_attrs ? BytesOf(attrs->second.attr()) : 0);
  Tensors tensors;
  tensors.count = static_cast<int>(types.size());
  for (size_t i = 0; i < types.size(); ++i) {
    GRADFLOW_RETURN_IF_ERROR(Charge(bytes));
    tensors.args.push_back(IsListArg(arg) ? UniqueName(absl::StrCat(arg.name(), "_", i))
                                          : arg.name());
    NodeDef* const node = AddEnd("_Arg", "_DeviceArg", types[i], tensors.args.back(), num_args_++);
    if (resource != function_.resource_arg_unique_id().end()) {
      AddNodeAttr("_resource_arg_unique_id", static_cast<int64_t>(resource->second), node);
    }
    if (!has_attrs) continue;
    for (const auto& [name, value] : attrs->second.attr()) {
      // The op _Arg itself defines all attributes with other names.
      if (!name.empty() && name[0] == '_') (*node->mutable_attr())[name] = value;
    }
  }
  nodes_.emplace(arg.name(), tensors.args.empty() ? "" : tensors.args[0]);
  tensors_.emplace(arg.name(), std::move(tensors));
  return absl::OkStatus();
}

// Replaces a placeholder with the attribute of the function that it names, including placeholders
// in attributes of functions.
absl::Status FunctionBodyBuilder::Bind(AttrValue* value, int depth) {
  if (depth > kMaxDepth) {
    return errors::InvalidArgument("functions in attributes are nested deeper than ", kMaxDepth,
                                   " levels");
  }
  if (value->value_case() == AttrValue::kPlaceholder) {
    const std::string name = value->placeholder();
    const auto found = std::find_if(attrs_.begin(), attrs_.end(),
                                    [&](const auto& attr) { return attr.first == name; });
    if (found == attrs_.end()) {
      return errors::InvalidArgument("the placeholder ", Quoted(name),
                                     " names no attribute of the function");
    }
    GRADFLOW_RETURN_IF_ERROR(Charge(BytesOf(*found->second)));
    *value = *found->second;
    return absl::OkStatus();
  }
  if (value->has_func()) {
    return BindAttrsOf(value->mutable_func()->mutable_attr(), depth);
  }
  if (value->list().func_size() == 0) return absl::OkStatus();
  for (NameAttrList& function : *value->mutable_list()->mutable_func()) {
    GRADFLOW_RETURN_IF_ERROR(BindAttrsOf(function.mutable_attr(), depth));
  }
  return absl::OkStatus();
}

absl::Status FunctionBodyBuilder::BindAttrsOf(AttrMap* attrs, int depth) {
  for (auto& [name, value] : *attrs) {
    if (absl::Status status = Bind(&value, depth + 1); !status.ok()) {
      return errors::Prefix(depth == 0 ? absl::StrCat("attribute ", Quoted(name), ": ") : "",
                            status);
    }
  }
  return absl::OkStatus();
}

absl::Status FunctionBodyBuilder::AddNode(const NodeDef& node) {
  NodeDef& added = *graph_def_.add_node();
  added = node;
  GRADFLOW_RETURN_IF_ERROR(BindAttrsOf(added.mutable_attr(), 0));
  GRADFLOW_ASSIGN_OR_RETURN(const OpRegistration* const op, FindOp(node.op()));
  if (op->functional() == FunctionalOp::kArg || op->functional() == FunctionalOp::kRetval) {
    return errors::InvalidArgument("the nodes of a function must not be its arguments or results");
  }
  for (const OpDef::AttrDef& attr : op->def().attr()) {
    if (attr.has_default_value() && FindNodeAttr(added, attr.name()) == nullptr) {
      GRADFLOW_RETURN_IF_ERROR(Charge(BytesOf(attr.default_value())));
    }
  }
  AddDefaultsToNodeDef(op->def(), &added);
  nodes_.emplace(node.name(), node.name());
  return AddOutputs(added, op->def());
}

absl::Status FunctionBodyBuilder::AddOutputs(const NodeDef& node, const OpDef& op_def) {
  NameRangeMap ranges;
  GRADFLOW_RETURN_IF_ERROR(NameRangesForNode(node, op_def, nullptr, &ranges));
  for (const auto& [name, range] : ranges) {
    GRADFLOW_RETURN_IF_ERROR(
        Charge(kFunctionNodeBytes + static_cast<int64_t>(node.name().size() + name.size())));
    Tensors tensors;
    tensors.node = node.name();
    tensors.begin = range.first;
    tensors.count = range.second - range.first;
    tensors_.emplace(absl::StrCat(node.name(), ":", name), std::move(tensors));
  }
  return absl::OkStatus();
}

absl::StatusOr<FunctionBodyBuilder::Range> FunctionBodyBuilder::FindTensors(
    absl::string_view name) const {
  if (const auto found = tensors_.find(std::string(name)); found != tensors_.end()) {
    return Range{&found->second, 0, found->second.count};
  }
  const size_t colon = name.rfind(':');
  if (colon != absl::string_view::npos) {
    int index = 0;
    const auto found = tensors_.find(std::string(name.substr(0, colon)));
    if (found != tensors_.end() && absl::SimpleAtoi(name.substr(colon + 1), &index) && index >= 0 &&
        index < found->second.count) {
      return Range{&found->second, index, 1};
    }
  }
  return errors::InvalidArgument(
      Quoted(name), " names neither an argument of the function nor an output of one of its nodes");
}

absl::Status FunctionBodyBuilder::Connect(NodeDef* node) {
  std::vector<std::string> inputs;
  for (const std::string& input : node->input()) {
    absl::string_view name = input;
    if (absl::ConsumePrefix(&name, "^")) {
      const auto found = nodes_.find(name);
      if (found == nodes_.end()) {
        return errors::InvalidArgument("control input ", Quoted(input),
                                       " names no node of the function");
      }
      if (!found->second.empty()) inputs.push_back(absl::StrCat("^", found->second));
      continue;
    }
    absl::StatusOr<Range> range = FindTensors(name);
    if (!range.ok()) return errors::Prefix("input ", range.status());
    for (int i = 0; i < range->count; ++i) {
      inputs.push_back(range->tensors->Name(range->begin + i));
      // Counts the name twice, because `inputs` and the node both hold it.
      GRADFLOW_RETURN_IF_ERROR(
          Charge(2 * static_cast<int64_t>(sizeof(std::string) + inputs.back().size())));
    }
  }
  node->clear_input();
  node->mutable_input()->Reserve(static_cast<int>(inputs.size()));
  for (std::string& input : inputs) *node->add_input() = std::move(input);
  return absl::OkStatus();
}

absl::Status FunctionBodyBuilder::AddResult(const OpDef::ArgDef& result) {
  const auto source = function_.ret().find(result.name());
  if (source == function_.ret().end()) {
    return errors::InvalidArgument("the function does not say what it is");
  }
  GRADFLOW_ASSIGN_OR_RETURN(const DataTypeVector types, TypesOf(result));
  absl::StatusOr<Range> range = FindTensors(source->second);
  if (!range.ok()) return errors::Prefix("its source ", range.status());
  if (range->count != static_cast<int>(types.size())) {
    return errors::InvalidArgument("its source ", Quoted(source->second), " has ", range->count,
                                   range->count == 1 ? " tensor" : " tensors", ", expected ",
                                   types.size());
  }
  for (size_t i = 0; i < types.size(); ++i) {
    std::string input = range->tensors->Name(range->begin + static_cast<int>(i));
    GRADFLOW_RETURN_IF_ERROR(
        Charge(kFunctionNodeBytes + 2 * static_cast<int64_t>(result.name().size() + input.size())));
    std::string name = absl::StrCat(result.name(), "_RetVal");
    if (IsListArg(result)) absl::StrAppend(&name, "_", i);
    NodeDef* const node =
        AddEnd("_Retval", "_DeviceRetval", types[i], UniqueName(name), num_results_++);
    *node->add_input() = std::move(input);
  }
  return absl::OkStatus();
}

absl::Status FunctionBodyBuilder::FindControlOutputs() {
  for (const std::string& name : function_.signature().control_output()) {
    if (function_.control_ret().find(name) == function_.control_ret().end()) {
      return errors::InvalidArgument("control output ", Quoted(name),
                                     ": the function does not say which node it is");
    }
  }
  for (const auto& [name, node] : function_.control_ret()) {
    const auto found = nodes_.find(node);
    if (found == nodes_.end()) {
      return errors::InvalidArgument("control output ", Quoted(name), ": ", Quoted(node),
                                     " names no node of the function");
    }
    control_outputs_.insert(found->second);
  }
  return absl::OkStatus();
}

// ---- The graph ----

absl::Status FunctionBodyBuilder::Import(FunctionBody* body) {
  graph_def_.mutable_versions()->set_producer(options_.producer);
  std::unique_ptr<Graph> graph = GraphImpl::NewGraph(registry_, library_);
  ImportGraphDefOptions options;
  // Plans report missing kernels. The import of the function has checked the numbers in attributes.
  options.require_kernels = false;
  options.allow_nan_attributes = true;
  options.infer_shapes = options_.infer_shapes;
  GRADFLOW_RETURN_IF_ERROR(ImportGraphDef(options, std::move(graph_def_), graph.get()));
  GRADFLOW_RETURN_IF_ERROR(Charge(GraphImpl::Of(graph.get()).shapes_mark().bytes));
  for (int i = 0; i < num_args_; ++i) {
    body->args_.push_back(graph->node(i));
    body->arg_types_.push_back(graph->node(i)->output_type(0));
  }
  for (int i = graph->num_nodes() - num_results_; i < graph->num_nodes(); ++i) {
    body->results_.push_back(graph->node(i)->sources()[0]);
    body->result_types_.push_back(BaseType(graph->node(i)->input_type(0)));
  }
  body->graph_ = std::move(graph);
  return absl::OkStatus();
}

absl::Status FunctionBodyBuilder::FindEffects(FunctionBody* body) {
  for (int i = num_args_; i < body->graph_->num_nodes() - num_results_; ++i) {
    const Node* const node = body->graph_->node(i);
    bool has_effects = node->op_def().is_stateful() || control_outputs_.count(node->name()) > 0;
    switch (node->op().functional()) {
      case FunctionalOp::kArg:
      case FunctionalOp::kRetval:
        has_effects = false;
        break;
      case FunctionalOp::kNone:
        break;
      default:
        if (registry_.FindOp(node->type_string()) != &node->op()) {
          has_effects = has_effects || options_.has_effects(node->type_string());
        }
        for (const auto& [name, value] : node->def().attr()) {
          for (const NameAttrList* function : FunctionsIn(value)) {
            has_effects = has_effects || options_.has_effects(function->name());
          }
        }
    }
    if (has_effects) body->effects_.push_back(node);
  }
  return absl::OkStatus();
}

}  // namespace gradflow::internal
