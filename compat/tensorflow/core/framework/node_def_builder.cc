#include "tensorflow/core/framework/node_def_builder.h"

#include <utility>

#include "gradflow/core/op_def_util.h"
#include "gradflow/core/status.h"
#include "gradflow/proto/op_def.pb.h"

namespace tensorflow {
namespace {

// Sets an attribute inferred from the inputs. Returns an error if it is set to another value.
template <typename T>
absl::Status SetInferred(const std::string& attr, const T& value, NodeDef* node) {
  AttrValue inferred;
  SetAttrValue(value, &inferred);
  const AttrValue* given = gradflow::FindNodeAttr(*node, attr);
  if (given == nullptr) {
    AddNodeAttr(attr, value, node);
  } else if (!AreAttrValuesEqual(*given, inferred)) {
    return errors::InvalidArgument("attribute '", attr, "' is ", SummarizeAttrValue(*given),
                                   ", but the inputs make it ", SummarizeAttrValue(inferred));
  }
  return absl::OkStatus();
}

// Infers the attributes of `arg` from an input of type `dtype`.
absl::Status CheckType(const OpDef::ArgDef& arg, DataType dtype, NodeDef* node) {
  if (!arg.type_attr().empty()) return SetInferred(arg.type_attr(), BaseType(dtype), node);
  if (arg.type() == DT_INVALID || TypesCompatible(arg.type(), dtype)) return absl::OkStatus();
  return errors::InvalidArgument("input '", arg.name(), "' must be of type ",
                                 DataTypeString(arg.type()), ", but is ", DataTypeString(dtype));
}

}  // namespace

NodeDefBuilder::NodeDefBuilder(StringPiece name, StringPiece op_name, OpRegistry::Handle registry) {
  node_def_.set_name(std::string(name));
  node_def_.set_op(std::string(op_name));
  status_ = registry->LookUpOpDef(node_def_.op(), &op_def_);
}

NodeDefBuilder::NodeDefBuilder(StringPiece name, const OpDef* op_def) : op_def_(op_def) {
  node_def_.set_name(std::string(name));
  node_def_.set_op(op_def->name());
}

NodeDefBuilder& NodeDefBuilder::Input(const NodeOut& source) {
  arguments_.push_back({{source}, /*is_list=*/false, /*is_fake=*/false, {}});
  return *this;
}

NodeDefBuilder& NodeDefBuilder::Input(gtl::ArraySlice<NodeOut> sources) {
  arguments_.push_back({{sources.begin(), sources.end()}, /*is_list=*/true, /*is_fake=*/false, {}});
  return *this;
}

NodeDefBuilder& NodeDefBuilder::Input(const FakeInputs& fake) {
  arguments_.push_back({{}, /*is_list=*/false, /*is_fake=*/true, fake});
  return *this;
}

NodeDefBuilder& NodeDefBuilder::ControlInput(StringPiece src_node) {
  control_inputs_.push_back(absl::StrCat("^", src_node));
  return *this;
}

NodeDefBuilder& NodeDefBuilder::Device(StringPiece device) {
  node_def_.set_device(std::string(device));
  return *this;
}

absl::Status NodeDefBuilder::Finalize(NodeDef* node_def) const {
  TF_RETURN_IF_ERROR(status_);
  NodeDef node = node_def_;
  const auto finalize = [&]() -> absl::Status {
    if (static_cast<int>(arguments_.size()) != op_def_->input_arg_size()) {
      return errors::InvalidArgument("expected ", op_def_->input_arg_size(), " inputs, but ",
                                     arguments_.size(),
                                     " are given: ", gradflow::OpDefSignature(*op_def_));
    }
    // Attributes first: they determine the number of inputs of fake arguments.
    for (int a = 0; a < op_def_->input_arg_size(); ++a) {
      const OpDef::ArgDef& arg = op_def_->input_arg(a);
      const Argument& argument = arguments_[a];
      DataTypeVector types;
      if (argument.is_fake) {
        if (!argument.fake.types.has_value()) {
          // The type is given by an attribute or its default.
          if (!argument.fake.count.has_value()) continue;
          types.assign(*argument.fake.count, DT_INVALID);
        } else {
          types = *argument.fake.types;
        }
      } else {
        for (const NodeOut& source : argument.sources) types.push_back(source.data_type);
      }
      const bool wants_list = gradflow::IsListArg(arg);
      const bool has_list = argument.is_fake ? argument.fake.count.has_value() : argument.is_list;
      // FakeInput(DT_FLOAT) may stand for a list of one type.
      if (has_list != wants_list && (!argument.is_fake || has_list)) {
        return errors::InvalidArgument(
            "input '", arg.name(), "' is ",
            wants_list ? "a list, but one tensor is" : "one tensor, but a list is", " given");
      }
      if (!arg.number_attr().empty() && has_list) {
        TF_RETURN_IF_ERROR(SetInferred(arg.number_attr(), static_cast<int64>(types.size()), &node));
      }
      if (!arg.type_list_attr().empty()) {
        TF_RETURN_IF_ERROR(SetInferred(arg.type_list_attr(), types, &node));
      } else {
        for (const DataType dtype : types) {
          if (dtype != DT_INVALID) TF_RETURN_IF_ERROR(CheckType(arg, dtype, &node));
        }
      }
    }
    gradflow::AddDefaultsToNodeDef(*op_def_, &node);

    for (int a = 0; a < op_def_->input_arg_size(); ++a) {
      const OpDef::ArgDef& arg = op_def_->input_arg(a);
      const Argument& argument = arguments_[a];
      if (!argument.is_fake) {
        for (const NodeOut& source : argument.sources) {
          node.add_input(source.index == 0 ? source.node
                                           : absl::StrCat(source.node, ":", source.index));
        }
        continue;
      }
      int64 count = 1;
      if (!arg.number_attr().empty()) {
        TF_RETURN_IF_ERROR(GetNodeAttr(node, arg.number_attr(), &count));
      } else if (!arg.type_list_attr().empty()) {
        DataTypeVector types;
        TF_RETURN_IF_ERROR(GetNodeAttr(node, arg.type_list_attr(), &types));
        count = static_cast<int64>(types.size());
      }
      const std::string fake_node(1, static_cast<char>('a' + a % 26));
      for (int64 i = 0; i < count; ++i) {
        node.add_input(i == 0 ? fake_node : absl::StrCat(fake_node, ":", i));
      }
    }
    for (const std::string& input : control_inputs_) node.add_input(input);
    return gradflow::ValidateNodeDef(node, *op_def_);
  };
  TF_RETURN_IF_ERROR(gradflow::errors::Prefix(
      absl::StrCat("node '", node.name(), "' (", node.op(), "): "), finalize()));
  *node_def = std::move(node);
  return absl::OkStatus();
}

}  // namespace tensorflow
