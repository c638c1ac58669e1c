#include "tensorflow/core/framework/function.h"

#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_def_builder.h"
#include "tensorflow/core/platform/logging.h"

namespace tensorflow {
namespace {

OpDef Signature(const std::string& name, gtl::ArraySlice<std::string> inputs,
                gtl::ArraySlice<std::string> outputs, gtl::ArraySlice<std::string> attrs) {
  const auto parse = [&](const std::string* input, const std::string* output) {
    OpDefBuilder builder(name);
    for (const std::string& spec : attrs) builder.Attr(spec);
    if (input != nullptr) builder.Input(*input);
    if (output != nullptr) builder.Output(*output);
    OpRegistrationData data;
    TF_CHECK_OK(builder.Finalize(&data));
    return data.op_def;
  };
  // Parses each argument separately: unlike in an op, an argument and a result may have the same
  // name.
  OpDef signature = parse(nullptr, nullptr);
  for (const std::string& spec : inputs) {
    *signature.add_input_arg() = parse(&spec, nullptr).input_arg(0);
  }
  for (const std::string& spec : outputs) {
    *signature.add_output_arg() = parse(nullptr, &spec).output_arg(0);
  }
  return signature;
}

}  // namespace

void FunctionDefHelper::AttrValueWrapper::InitFromString(absl::string_view val) {
  if (absl::StartsWith(val, "$")) {
    proto.set_placeholder(std::string(val.substr(1)));
  } else {
    SetAttrValue(val, &proto);
  }
}

FunctionDefHelper::AttrValueWrapper FunctionDefHelper::FunctionRef(
    const std::string& name, gtl::ArraySlice<std::pair<std::string, AttrValueWrapper>> attrs) {
  AttrValueWrapper value;
  value.proto.mutable_func()->set_name(name);
  for (const auto& [attr, wrapped] : attrs) {
    (*value.proto.mutable_func()->mutable_attr())[attr] = wrapped.proto;
  }
  return value;
}

std::string FunctionDefHelper::Node::GetName() const {
  if (!name.empty()) return name;
  CHECK(!ret.empty()) << "a node of op " << op << " has no name";
  return ret[0];
}

NodeDef FunctionDefHelper::Node::ToNodeDef() const {
  NodeDef node;
  node.set_op(op);
  node.set_name(GetName());
  node.set_device(device);
  for (const auto& [key, value] : attr) (*node.mutable_attr())[key] = value.proto;
  for (const std::string& input : arg) node.add_input(input);
  for (const std::string& input : dep) node.add_input(absl::StrCat("^", input));
  auto* const info = original_node_names.empty() && original_func_names.empty()
                         ? nullptr
                         : node.mutable_experimental_debug_info();
  for (const std::string& original : original_node_names) {
    info->add_original_node_names(original);
  }
  for (const std::string& original : original_func_names) {
    info->add_original_func_names(original);
  }
  return node;
}

FunctionDefHelper::Node FunctionDefHelper::Const(const std::string& name, const Tensor& value) {
  Node node;
  node.ret = {name};
  node.op = "Const";
  node.attr.emplace_back("dtype", value.dtype());
  node.attr.emplace_back("value", value);
  return node;
}

FunctionDef FunctionDefHelper::Create(
    const std::string& function_name, gtl::ArraySlice<std::string> in_def,
    gtl::ArraySlice<std::string> out_def, gtl::ArraySlice<std::string> attr_def,
    gtl::ArraySlice<Node> node_def, gtl::ArraySlice<std::pair<std::string, std::string>> ret_def,
    gtl::ArraySlice<std::pair<std::string, std::string>> control_ret_def) {
  FunctionDef function;
  *function.mutable_signature() = Signature(function_name, in_def, out_def, attr_def);
  for (const Node& node : node_def) *function.add_node_def() = node.ToNodeDef();
  for (const auto& [name, value] : ret_def) (*function.mutable_ret())[name] = value;
  for (const auto& [name, node] : control_ret_def) {
    (*function.mutable_control_ret())[name] = node;
    function.mutable_signature()->add_control_output(name);
  }
  return function;
}

FunctionDef FunctionDefHelper::Define(const std::string& function_name,
                                      gtl::ArraySlice<std::string> arg_def,
                                      gtl::ArraySlice<std::string> ret_def,
                                      gtl::ArraySlice<std::string> attr_def,
                                      gtl::ArraySlice<Node> node_def) {
  FunctionDef function;
  *function.mutable_signature() = Signature(function_name, arg_def, ret_def, attr_def);
  // The full names of values, by their short names.
  std::map<std::string, std::string> values;
  for (const OpDef::ArgDef& arg : function.signature().input_arg()) {
    values[arg.name()] = arg.name();
  }
  for (const Node& node : node_def) {
    NodeDef* const def = function.add_node_def();
    *def = node.ToNodeDef();
    for (std::string& input : *def->mutable_input()) {
      if (absl::StartsWith(input, "^")) continue;
      const auto value = values.find(input);
      CHECK(value != values.end()) << "'" << input << "' is not a value of " << function_name;
      input = value->second;
    }
    const OpDef* op_def = nullptr;
    TF_CHECK_OK(OpRegistry::Global()->LookUpOpDef(node.op, &op_def));
    // An attribute of the function is a single type, and a list has a single tensor.
    OpDef lengths = *op_def;
    lengths.clear_input_arg();
    NameRangeMap outputs;
    TF_CHECK_OK(NameRangesForNode(AttrSlice(*def), lengths, nullptr, &outputs));
    for (const auto& [name, range] : outputs) {
      for (int i = range.first; i < range.second && i < static_cast<int>(node.ret.size()); ++i) {
        values[node.ret[i]] = absl::StrCat(def->name(), ":", name, ":", i - range.first);
      }
    }
  }
  for (const OpDef::ArgDef& arg : function.signature().output_arg()) {
    const auto value = values.find(arg.name());
    CHECK(value != values.end()) << "'" << arg.name() << "' is not a value of " << function_name;
    (*function.mutable_ret())[arg.name()] = value->second;
  }
  return function;
}

}  // namespace tensorflow
