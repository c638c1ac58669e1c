#include "gradflow/graph/node_builder.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gradflow/core/call_safely.h"
#include "gradflow/core/op_def_util.h"
#include "gradflow/core/out_parameter.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/const_op.h"
#include "gradflow/graph/graph_impl.h"
#include "gradflow/graph/node_checks.h"
#include "gradflow/graph/protobuf_internals.h"
#include "gradflow/graph/scope.h"
#include "gradflow/graph/tables.h"
#include "gradflow/graph/tensor_id.h"
#include "gradflow/proto/attr_value.pb.h"
#include "gradflow/proto/node_def.pb.h"
#include "gradflow/proto/op_def.pb.h"

namespace gradflow {
namespace {

DataType TypeOf(const NodeOut& source) { return source.node->output_type(source.index); }

}  // namespace

NodeBuilder::NodeBuilder(absl::string_view name, absl::string_view op)
    : NodeBuilder(NodeDefPtr(new NodeDef), op) {
  def_->mutable_name()->assign(name.data(), name.size());
}
NodeBuilder::NodeBuilder(NodeDefPtr def, absl::string_view op) : def_(std::move(def)) {
  def_->mutable_op()->assign(op.data(), op.size());
}
NodeBuilder::~NodeBuilder() = default;
NodeBuilder::NodeBuilder(const NodeBuilder& other)
    : def_(other.def_ == nullptr ? nullptr : new NodeDef(*other.def_)),
      sources_(other.sources_),
      arguments_(other.arguments_),
      control_inputs_(other.control_inputs_),
      has_list_(other.has_list_),
      assigned_device_(other.assigned_device_),
      infer_shapes_(other.infer_shapes_) {}
NodeBuilder& NodeBuilder::operator=(const NodeBuilder& other) {
  if (this == &other) return *this;
  def_.reset(other.def_ == nullptr ? nullptr : new NodeDef(*other.def_));
  sources_ = other.sources_;
  arguments_ = other.arguments_;
  control_inputs_ = other.control_inputs_;
  has_list_ = other.has_list_;
  assigned_device_ = other.assigned_device_;
  infer_shapes_ = other.infer_shapes_;
  return *this;
}

const std::string& NodeBuilder::node_name() const {
  return def_ == nullptr ? NodeDef::default_instance().name() : def_->name();
}

NodeBuilder& NodeBuilder::Input(NodeOut source) {
  arguments_.push_back({static_cast<int>(sources_.size()), kSingle});
  sources_.push_back(source);
  return *this;
}

NodeBuilder& NodeBuilder::Input(absl::Span<const NodeOut> sources) {
  has_list_ = true;
  arguments_.push_back({static_cast<int>(sources_.size()), static_cast<int>(sources.size())});
  sources_.insert(sources_.end(), sources.begin(), sources.end());
  return *this;
}

NodeBuilder& NodeBuilder::ControlInput(const Node* node) {
  control_inputs_.push_back(node);
  return *this;
}

NodeBuilder& NodeBuilder::ControlInputs(absl::Span<const Node* const> nodes) {
  for (const Node* node : nodes) ControlInput(node);
  return *this;
}

NodeBuilder& NodeBuilder::Device(absl::string_view device) {
  if (def_ != nullptr && !assigned_device_) def_->set_device(std::string(device));
  return *this;
}

NodeBuilder& NodeBuilder::AssignedDevice(absl::string_view device) {
  assigned_device_ = true;
  if (def_ != nullptr) def_->set_device(std::string(device));
  return *this;
}

// Returns "b", or "values[1]" for element 1 of a list. `i` is -1 for the list as a whole.
std::string NodeBuilder::SourceName(const OpDef& op_def, int argument, int i) const {
  const std::string& name = op_def.input_arg(argument).name();
  return arguments_[argument].size == kSingle || i < 0 ? name : absl::StrCat(name, "[", i, "]");
}

// Returns the error that source `i` of an argument has `found` where `expected` is required. `what`
// is "type" or "length". If `i` is -1, the error is about the whole list. `attr` is the attribute
// that requires it, or empty if the op definition does.
absl::Status NodeBuilder::Mismatch(const OpDef& op_def, int argument, int i, absl::string_view what,
                                   absl::string_view found, absl::string_view expected,
                                   absl::string_view attr) const {
  std::string reason;
  if (!attr.empty()) {
    // Names the first earlier argument or element with this attribute. If there is none, the caller
    // gave the attribute.
    std::string origin = "given";
    for (int a = 0; a <= argument; ++a) {
      const OpDef::ArgDef& arg = op_def.input_arg(a);
      const bool by_element = arg.type_attr() == attr && arguments_[a].size != 0;
      const bool by_list = arg.number_attr() == attr || arg.type_list_attr() == attr;
      if ((!by_element && !by_list) || (a == argument && (by_list || i == 0))) continue;
      origin = absl::StrCat("fixed by input ", SourceName(op_def, a, by_list ? -1 : 0));
      break;
    }
    reason = absl::StrCat(" (attribute ", attr, ", ", origin, ")");
  }
  return errors::InvalidArgument("input ", SourceName(op_def, argument, i), " has ", what, " ",
                                 found, ", expected ", expected, reason);
}

absl::Status NodeBuilder::InferAttrs(const OpDef& op_def) {
  if (static_cast<int>(arguments_.size()) != op_def.input_arg_size()) {
    const auto append_name = [](std::string* out, const OpDef::ArgDef& arg) {
      out->append(arg.name());
    };
    return errors::InvalidArgument(
        "expected ", op_def.input_arg_size(), op_def.input_arg_size() == 1 ? " input" : " inputs",
        op_def.input_arg_size() == 0
            ? ""
            : absl::StrCat(" (", absl::StrJoin(op_def.input_arg(), ", ", append_name), ")"),
        ", but found ", arguments_.size());
  }
  TypeAttr type;
  for (int a = 0; a < op_def.input_arg_size(); ++a) {
    const OpDef::ArgDef& arg = op_def.input_arg(a);
    const bool is_list = arguments_[a].size != kSingle;
    if (is_list != IsListArg(arg)) {
      return errors::InvalidArgument(
          "input ", arg.name(), " is ",
          is_list ? "a list, expected a single output" : "a single output, expected a list");
    }
    GRADFLOW_RETURN_IF_ERROR(InferAttrsFrom(op_def, a, &type));
  }
  return absl::OkStatus();
}

// Sets the attributes that follow from an argument, or compares the argument with attributes that
// are already set. Leaves an attribute of the wrong kind to ValidateNodeDef.
absl::Status NodeBuilder::InferAttrsFrom(const OpDef& op_def, int a, TypeAttr* last) {
  const OpDef::ArgDef& arg = op_def.input_arg(a);
  const auto sources = absl::MakeConstSpan(sources_).subspan(
      arguments_[a].begin, arguments_[a].size == kSingle ? 1 : arguments_[a].size);
  const int count = static_cast<int>(sources.size());
  auto& attrs = *def_->mutable_attr();

  if (!arg.number_attr().empty()) {
    AttrValue& length = attrs[arg.number_attr()];
    if (length.value_case() == AttrValue::VALUE_NOT_SET) length.set_i(count);
    if (length.value_case() == AttrValue::kI && length.i() != count) {
      return Mismatch(op_def, a, -1, "length", absl::StrCat(count), absl::StrCat(length.i()),
                      arg.number_attr());
    }
  }
  if (!arg.type_list_attr().empty()) {
    AttrValue& types = attrs[arg.type_list_attr()];
    if (types.value_case() == AttrValue::VALUE_NOT_SET) {
      auto* list = types.mutable_list();
      for (const NodeOut& source : sources) list->add_type(BaseType(TypeOf(source)));
    }
    if (!types.has_list()) return absl::OkStatus();
    if (types.list().type_size() != count) {
      return Mismatch(op_def, a, -1, "length", absl::StrCat(count),
                      absl::StrCat(types.list().type_size()), arg.type_list_attr());
    }
    for (int i = 0; i < count; ++i) {
      GRADFLOW_RETURN_IF_ERROR(CheckType(op_def, a, i, types.list().type(i), arg.type_list_attr()));
    }
    return absl::OkStatus();
  }
  int expected = arg.type();
  if (!arg.type_attr().empty() && count > 0) {
    // Often the previous argument has the same attribute.
    if (arg.type_attr() != last->name) *last = {arg.type_attr(), &attrs[arg.type_attr()]};
    AttrValue& type = *last->value;
    if (type.value_case() == AttrValue::VALUE_NOT_SET) type.set_type(BaseType(TypeOf(sources[0])));
    if (type.value_case() != AttrValue::kType) return absl::OkStatus();
    expected = type.type();
  }
  for (int i = 0; i < count; ++i) {
    GRADFLOW_RETURN_IF_ERROR(CheckType(op_def, a, i, expected, arg.type_attr()));
  }
  return absl::OkStatus();
}

absl::Status NodeBuilder::CheckType(const OpDef& op_def, int argument, int i, int expected,
                                    absl::string_view attr) const {
  const DataType found = TypeOf(sources_[arguments_[argument].begin + i]);
  DataType wanted = static_cast<DataType>(expected);
  if (op_def.input_arg(argument).is_ref()) wanted = MakeRefType(wanted);
  if (internal::IsInputType(found, wanted)) return absl::OkStatus();
  return Mismatch(op_def, argument, i, "type", DataTypeString(found), DataTypeString(wanted), attr);
}

absl::Status NodeBuilder::CheckSources(const Graph& graph, const OpDef& op_def) const {
  const auto name = [&](const NodeOut* source) -> std::string {
    const int position = static_cast<int>(source - sources_.data());
    for (int a = 0; a < op_def.input_arg_size() && a < static_cast<int>(arguments_.size()); ++a) {
      const auto [begin, size] = arguments_[a];
      const int i = position - begin;
      if (i >= 0 && i < std::max(size, 1)) return SourceName(op_def, a, i);
    }
    return absl::StrCat(position);
  };
  for (const NodeOut& source : sources_) {
    if (source.node == nullptr) {
      return errors::InvalidArgument("input ", name(&source), " is an empty output");
    }
    if (&source.node->graph() != &graph) {
      return errors::InvalidArgument("input ", name(&source), " (",
                                     internal::Quoted(source.node->name()),
                                     ") belongs to another graph");
    }
    if (source.index < 0 || source.index >= source.node->num_outputs()) {
      return errors::InvalidArgument("input ", name(&source), " is output ", source.index, " of ",
                                     internal::Quoted(source.node->name()), " (",
                                     source.node->type_string(), "), which has ",
                                     source.node->num_outputs());
    }
  }
  for (const Node* node : control_inputs_) {
    if (node == nullptr) {
      return errors::InvalidArgument("a control dependency is an empty operation");
    }
    if (&node->graph() != &graph) {
      return errors::InvalidArgument("the control dependency ", internal::Quoted(node->name()),
                                     " belongs to another graph");
    }
  }
  return absl::OkStatus();
}

absl::Status NodeBuilder::Finalize(Graph* graph, Node** node) {
  GRADFLOW_RETURN_IF_ERROR(internal::CheckOut(graph, "NodeBuilder::Finalize", "graph"));
  return CallSafely([&] { return AddTo(graph, node); });
}

absl::Status NodeBuilder::AddTo(Graph* graph, Node** node) {
  if (def_ == nullptr) {
    return errors::FailedPrecondition("Finalize was called before; a NodeBuilder makes one node");
  }
  internal::GraphImpl& impl = internal::GraphImpl::Of(graph);
  // In a large graph the look-up is a cache miss, so it is prefetched before the checks.
  impl.by_name()->Prefetch(def_->name());
  const absl::StatusOr<internal::CheckedNodeCache*> checked = impl.LookUpCheckedNode(def_->op());
  absl::Status status = checked.status();
  internal::Attrs attrs = internal::Attrs::kUnchecked;
  if (status.ok()) status = CheckSources(*graph, (*checked)->op->def());
  if (status.ok()) status = MakeAttrs(**checked, &attrs);
  if (!status.ok()) return errors::Prefix(internal::NodePrefix(*def_), status);

  absl::InlinedVector<Node::Source, 4> sources;
  AddInputs(&sources);
  GRADFLOW_ASSIGN_OR_RETURN(const Node* made,
                            impl.Append(std::move(def_), *checked, sources, infer_shapes_, attrs));
  if (node != nullptr) *node = const_cast<Node*>(made);
  return absl::OkStatus();
}

// Sets the attributes that follow from the inputs. Sets *attrs to those that Append need not check.
absl::Status NodeBuilder::MakeAttrs(const internal::CheckedNodeCache& checked,
                                    internal::Attrs* attrs) {
  if (has_list_ || def_->attr_size() > 0) return InferAttrs(checked.op->def());
  if (!checked.inferred || !HasInputTypes(checked.types->inputs)) {
    *attrs = internal::Attrs::kInferred;
    return InferAttrs(checked.op->def());
  }
  *attrs = internal::Attrs::kOfCheckedNode;
  for (const auto& [name, value] : checked.def->attr()) {
    AttrValue& copy = (*def_->mutable_attr())[name];
    if (value.value_case() == AttrValue::kType) {
      copy.set_type(value.type());
    } else {
      copy = value;
    }
  }
  return absl::OkStatus();
}

bool NodeBuilder::HasInputTypes(const DataTypeVector& types) const {
  return std::equal(sources_.begin(), sources_.end(), types.begin(), types.end(),
                    [](const NodeOut& source, DataType type) { return TypeOf(source) == type; });
}

// Writes the inputs of the NodeDef, and the same inputs as *sources.
void NodeBuilder::AddInputs(absl::InlinedVector<Node::Source, 4>* sources) {
  // The name of a node lives as long as the graph, so messages of its arena need no copies.
  const bool borrow = def_->GetArena() != nullptr;
  auto& inputs = *def_->mutable_input();
  inputs.Reserve(static_cast<int>(sources_.size() + control_inputs_.size()));
  for (const NodeOut& source : sources_) {
    sources->push_back({source.node, source.index});
    const std::string& name = source.node->name();
    if (source.index > 0) {
      *inputs.Add() = absl::StrCat(name, ":", source.index);
    } else if (borrow) {
      internal::AddBorrowed(name, &inputs);
    } else {
      *inputs.Add() = name;
    }
  }
  const auto add = [&](const Node* control) {
    *inputs.Add() = absl::StrCat("^", control->name());
    sources->push_back({control, -1});
  };
  if (control_inputs_.size() < 2) {
    for (const Node* control : control_inputs_) add(control);
    return;
  }
  internal::HashSet<const Node*> added;
  for (const Node* control : control_inputs_) {
    if (added.insert(control).second) add(control);
  }
}

// ---- OpBuilder ----

OpBuilder::OpBuilder(const Scope& scope, absl::string_view op)
    : scope_(scope),
      live_(scope.ok()),
      builder_(
          live_ ? internal::GraphImpl::Of(scope.graph()).NewNodeDef() : NodeDefPtr(new NodeDef),
          op) {}

OpBuilder& OpBuilder::Input(const gradflow::Input& input) {
  if (!live_ || !CheckValue(input, -1)) return *this;
  builder_.Input(ops::AsNodeOut(scope_, input));
  live_ = scope_.ok();
  return *this;
}

OpBuilder& OpBuilder::Input(const InputList& inputs) {
  if (!live_) return *this;
  int i = 0;
  for (const gradflow::Input& input : inputs) {
    if (!CheckValue(input, i++)) return *this;
  }
  builder_.Input(ops::AsNodeOutList(scope_, inputs));
  live_ = scope_.ok();
  return *this;
}

// Returns true if `input`, the next input of the op or element `i` of its next list, is
// well-formed. Otherwise gives the scope an error that names the op and the input.
bool OpBuilder::CheckValue(const gradflow::Input& input, int i) {
  if (input.status().ok()) return true;
  NodeDef& def = *builder_.def_;
  *def.mutable_name() = scope_.GetUniqueNameForOp(def.op());
  const int argument = static_cast<int>(builder_.arguments_.size());
  const OpRegistration* op = scope_.graph()->registry().FindOp(def.op());
  std::string name = op == nullptr || argument >= op->def().input_arg_size()
                         ? absl::StrCat(argument)
                         : op->def().input_arg(argument).name();
  if (i >= 0) absl::StrAppend(&name, "[", i, "]");
  scope_.UpdateStatus(errors::Prefix(absl::StrCat(internal::NodePrefix(def), "input ", name, ": "),
                                     input.status()));
  live_ = false;
  return false;
}

Operation OpBuilder::Finish() {
  if (!live_ || !scope_.ok()) return Operation();
  live_ = false;
  builder_.def_->set_name(scope_.GetUniqueNameForOp(builder_.def_->op()));
  if (!scope_.ok()) return Operation();
  scope_.UpdateBuilder(&builder_);
  Node* node = nullptr;
  scope_.UpdateStatus(builder_.Finalize(scope_.graph(), &node));
  return Operation(node);
}

}  // namespace gradflow
