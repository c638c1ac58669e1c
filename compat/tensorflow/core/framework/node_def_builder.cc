#include "tensorflow/core/framework/node_def_builder.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "gradflow/core/op_def_util.h"
#include "gradflow/core/status.h"
#include "tensorflow/core/framework/op_def_util.h"

namespace tensorflow {

NodeDefBuilder::NodeDefBuilder(absl::string_view name, absl::string_view op_name,
                               const OpRegistryInterface* op_registry) {
  node_def_.set_name(std::string(name));
  node_def_.set_op(std::string(op_name));
  const absl::Status status = op_registry->LookUpOpDef(node_def_.op(), &op_def_);
  if (!status.ok()) errors_.emplace_back(status.message());
}

NodeDefBuilder::NodeDefBuilder(absl::string_view name, const OpDef* op_def) : op_def_(op_def) {
  node_def_.set_name(std::string(name));
  node_def_.set_op(op_def->name());
}

const OpDef::ArgDef* NodeDefBuilder::NextArg() {
  if (op_def_ == nullptr) return nullptr;
  if (next_arg_ < op_def_->input_arg_size()) return &op_def_->input_arg(next_arg_++);
  errors_.push_back(
      absl::StrCat("More Input() calls than the ", op_def_->input_arg_size(), " input_args"));
  return nullptr;
}

void NodeDefBuilder::AddSources(const OpDef::ArgDef& arg, gtl::ArraySlice<NodeOut> sources) {
  for (const NodeOut& source : sources) {
    if (source.node.empty()) {
      errors_.push_back("Empty input node name");
    } else if (source.node[0] == '^') {
      errors_.push_back(absl::StrCat("Non-control input starting with ^: ", source.node));
    } else {
      node_def_.add_input(source.index == 0 ? source.node
                                            : absl::StrCat(source.node, ":", source.index));
    }
    CheckRef(arg, source.data_type);
  }
}

void NodeDefBuilder::CheckRef(const OpDef::ArgDef& arg, DataType found) {
  // If the definition fixes the type of an argument, the type includes the reference.
  if (arg.is_ref() && arg.type() == DT_INVALID && !IsRefType(found)) {
    errors_.push_back(absl::StrCat("Input '", arg.name(), "' passed ", DataTypeString(found),
                                   " expected ref type"));
  }
}

void NodeDefBuilder::CheckType(const OpDef::ArgDef& arg, DataType expected, DataType found) {
  if (TypesCompatible(expected, found)) return;
  errors_.push_back(absl::StrCat("Input '", arg.name(), "' passed ", DataTypeString(found),
                                 " expected ", DataTypeString(expected)));
}

NodeDefBuilder& NodeDefBuilder::SetAttr(absl::string_view name, const AttrValue& value) {
  const AttrValue* const found = gradflow::FindNodeAttr(node_def_, name);
  if (found == nullptr) {
    (*node_def_.mutable_attr())[std::string(name)] = value;
  } else if (!AreAttrValuesEqual(*found, value)) {
    errors_.push_back(absl::StrCat("Inconsistent values for attr '", name, "' ",
                                   SummarizeAttrValue(*found), " vs. ", SummarizeAttrValue(value)));
  }
  return *this;
}

NodeDefBuilder& NodeDefBuilder::Input(const NodeOut& source) {
  const OpDef::ArgDef* const arg = NextArg();
  if (arg == nullptr) return *this;
  AddSources(*arg, {source});
  if (gradflow::IsListArg(*arg)) {
    errors_.push_back(absl::StrCat("Single tensor passed to '", arg->name(), "', expected list"));
  } else if (arg->type() != DT_INVALID) {
    CheckType(*arg, arg->is_ref() ? gradflow::MakeRefType(arg->type()) : arg->type(),
              source.data_type);
  } else {
    Attr(arg->type_attr(), BaseType(source.data_type));
  }
  return *this;
}

NodeDefBuilder& NodeDefBuilder::Input(gtl::ArraySlice<NodeOut> sources) {
  const OpDef::ArgDef* const arg = NextArg();
  if (arg != nullptr) AddList(*arg, sources);
  return *this;
}

void NodeDefBuilder::AddList(const OpDef::ArgDef& arg, gtl::ArraySlice<NodeOut> sources) {
  AddSources(arg, sources);
  if (!arg.number_attr().empty()) {
    Attr(arg.number_attr(), static_cast<int64>(sources.size()));
    if (arg.type() != DT_INVALID) {
      const DataType type = arg.is_ref() ? gradflow::MakeRefType(arg.type()) : arg.type();
      for (const NodeOut& source : sources) CheckType(arg, type, source.data_type);
    } else if (!sources.empty()) {
      const DataType type = BaseType(sources[0].data_type);
      Attr(arg.type_attr(), type);
      for (const NodeOut& source : sources.subspan(1)) {
        CheckType(arg, type, BaseType(source.data_type));
      }
    }
  } else if (!arg.type_list_attr().empty()) {
    DataTypeVector types;
    for (const NodeOut& source : sources) types.push_back(BaseType(source.data_type));
    Attr(arg.type_list_attr(), types);
  } else {
    errors_.push_back(
        absl::StrCat("List provided to input '", arg.name(), "' when single Tensor expected"));
  }
}

absl::Status NodeDefBuilder::FakeSources(const OpDef::ArgDef& arg, const FakeInputs& fake,
                                         bool* is_list, std::vector<NodeOut>* sources) const {
  const auto infer = [&](absl::string_view what, const std::string& attr,
                         auto* value) -> absl::Status {
    absl::Status status = GetNodeAttr(node_def_, attr, value);
    if (status.ok()) return status;
    // Defaults of the definition are set at the end.
    const OpDef::AttrDef* const def = FindAttr(attr, *op_def_);
    if (def != nullptr && def->has_default_value()) {
      gradflow::NodeDef node;
      (*node.mutable_attr())[attr] = def->default_value();
      return GetNodeAttr(node, attr, value);
    }
    return errors::InvalidArgument("Could not infer ", what, " '", arg.name(), "': No attr named '",
                                   attr, "' in NodeDef: ", SummarizeNodeDef(node_def_));
  };
  DataTypeVector types;
  *is_list = true;
  if (fake.count.has_value() && fake.types.has_value() && fake.types->size() != 1) {
    types = *fake.types;
  } else if (fake.count.has_value() || !arg.number_attr().empty()) {
    int64 count = 0;
    if (fake.count.has_value()) {
      count = *fake.count;
    } else {
      TF_RETURN_IF_ERROR(infer("length of input", arg.number_attr(), &count));
    }
    // Each tensor is an input, and ValidateNodeDef limits the number of inputs.
    if (count < 0 || count > 1 << 20) {
      return errors::InvalidArgument("input '", arg.name(), "' cannot have ", count, " tensors");
    }
    DataType type = DT_FLOAT;
    if (fake.types.has_value()) {
      type = fake.types->front();
    } else if (count > 0 && arg.type() != DT_INVALID) {
      type = arg.is_ref() ? gradflow::MakeRefType(arg.type()) : arg.type();
    } else if (count > 0 && !arg.type_attr().empty()) {
      TF_RETURN_IF_ERROR(infer("type for input", arg.type_attr(), &type));
    } else if (count > 0) {
      return errors::InvalidArgument("No type or type_attr field in arg '", arg.name(), "'");
    }
    types.assign(static_cast<size_t>(count), type);
  } else if (!fake.types.has_value() && !arg.type_list_attr().empty()) {
    TF_RETURN_IF_ERROR(infer("list of types for input", arg.type_list_attr(), &types));
  } else {
    *is_list = false;
    DataType type = arg.is_ref() ? gradflow::MakeRefType(arg.type()) : arg.type();
    if (fake.types.has_value()) {
      type = fake.types->front();
    } else if (arg.type() == DT_INVALID) {
      TF_RETURN_IF_ERROR(infer("type for input", arg.type_attr(), &type));
      if (arg.is_ref()) type = gradflow::MakeRefType(type);
    }
    types = {type};
  }
  const std::string node(1, static_cast<char>('a' + next_arg_ % 26));
  for (size_t i = 0; i < types.size(); ++i) {
    sources->emplace_back(node, static_cast<int>(i), types[i]);
  }
  return absl::OkStatus();
}

NodeDefBuilder& NodeDefBuilder::Input(const FakeInputs& fake) {
  if (op_def_ == nullptr) return *this;
  if (next_arg_ >= op_def_->input_arg_size()) {
    NextArg();
    return *this;
  }
  bool is_list = false;
  std::vector<NodeOut> sources;
  const absl::Status status = FakeSources(op_def_->input_arg(next_arg_), fake, &is_list, &sources);
  if (!status.ok()) {
    errors_.emplace_back(status.message());
    return *this;
  }
  return is_list ? Input(gtl::ArraySlice<NodeOut>(sources)) : Input(sources[0]);
}

NodeDefBuilder& NodeDefBuilder::ControlInput(absl::string_view src_node) {
  control_inputs_.push_back(absl::StrCat("^", src_node));
  return *this;
}

NodeDefBuilder& NodeDefBuilder::Device(absl::string_view device) {
  node_def_.set_device(std::string(device));
  return *this;
}

absl::Status NodeDefBuilder::Finalize(NodeDef* node_def, bool consume) {
  std::vector<std::string> errors = errors_;
  if (op_def_ != nullptr && next_arg_ < op_def_->input_arg_size()) {
    errors.push_back(absl::StrCat(next_arg_, " inputs specified of ", op_def_->input_arg_size(),
                                  " inputs in Op"));
  }
  if (!errors.empty()) {
    std::string where = absl::StrCat(" while building NodeDef '", node_def_.name(), "'");
    if (op_def_ != nullptr) absl::StrAppend(&where, " using ", SummarizeOpDef(*op_def_));
    if (errors.size() == 1) return errors::InvalidArgument(errors[0], where);
    return errors::InvalidArgument(errors.size(), " errors", where, ":\n",
                                   absl::StrJoin(errors, "\n"));
  }
  if (node_def == nullptr) return absl::OkStatus();
  NodeDef node = consume ? std::move(node_def_) : node_def_;
  for (const std::string& input : control_inputs_) node.add_input(input);
  gradflow::AddDefaultsToNodeDef(*op_def_, &node);
  *node_def = std::move(node);
  return absl::OkStatus();
}

}  // namespace tensorflow
