#include "tests/runtime/graph_maker.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gradflow/core/op_def_util.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/tensor_proto.h"
#include "gradflow/graph/graph.h"
#include "gradflow/proto/op_def.pb.h"

namespace gradflow::testing {

AttrValue AttrOf(DataType type) {
  AttrValue value;
  value.set_type(type);
  return value;
}

AttrValue AttrOf(const DataTypeVector& types) {
  AttrValue value;
  value.mutable_list();
  for (const DataType type : types) value.mutable_list()->add_type(type);
  return value;
}

AttrValue AttrOf(int64_t number) {
  AttrValue value;
  value.set_i(number);
  return value;
}

AttrValue AttrOf(bool truth) {
  AttrValue value;
  value.set_b(truth);
  return value;
}

AttrValue AttrOf(const char* text) {
  AttrValue value;
  value.set_s(text);
  return value;
}

AttrValue FunctionAttr(const std::string& name) {
  AttrValue value;
  value.mutable_func()->set_name(name);
  return value;
}

AttrValue FunctionsAttr(const std::vector<std::string>& names) {
  AttrValue value;
  for (const std::string& name : names) value.mutable_list()->add_func()->set_name(name);
  return value;
}

std::string GraphMaker::Body::InputOf(const std::string& value) const {
  if (function_ == nullptr || value[0] == '^') return value;
  const std::pair<std::string, std::string> parts = absl::StrSplit(value, absl::MaxSplits(':', 1));
  const auto& [node, index] = parts;
  const auto op = ops_.find(node);
  // If no node has this name, the value is an argument of the function.
  if (op == ops_.end()) return node;
  int i = 0;
  const bool has_index = !index.empty();
  EXPECT_TRUE(!has_index || absl::SimpleAtoi(index, &i)) << value;
  const auto signature = maker_.signatures_.find(op->second);
  if (signature != maker_.signatures_.end()) return absl::StrCat(node, ":r", i, ":0");
  const OpRegistration* const registration = *GlobalRegistry().LookUpOp(op->second);
  const OpDef& def = registration->def();
  // The outputs are the elements of one output argument, or each output is an argument of its own.
  if (def.output_arg_size() == 1) return absl::StrCat(node, ":", def.output_arg(0).name(), ":", i);
  return absl::StrCat(node, ":", def.output_arg(i).name(), ":0");
}

DataTypeVector GraphMaker::Body::TypesOf(const std::vector<std::string>& values) const {
  DataTypeVector types;
  for (const std::string& value : values) {
    if (value[0] == '^') continue;
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(value, absl::MaxSplits(':', 1));
    int i = 0;
    EXPECT_TRUE(parts.second.empty() || absl::SimpleAtoi(parts.second, &i)) << value;
    const auto found = types_.find(parts.first);
    EXPECT_TRUE(found != types_.end()) << value;
    types.push_back(found == types_.end() ? DT_INT64 : found->second[i]);
  }
  return types;
}

NodeDef* GraphMaker::Body::NewNode(const std::string& name) {
  NodeDef* const node = function_ == nullptr ? maker_.graph_.add_node() : function_->add_node_def();
  node->set_name(name);
  return node;
}

void GraphMaker::Body::Add(const std::string& name, const std::string& op,
                           const std::vector<std::string>& inputs, NodeAttrs attrs) {
  NodeDef* const node = NewNode(name);
  node->set_op(op);
  for (const std::string& input : inputs) node->add_input(InputOf(input));
  ops_[name] = op;
  const auto signature = maker_.signatures_.find(op);
  if (signature != maker_.signatures_.end()) {
    types_[name] = signature->second.results;
    for (auto& [key, value] : attrs) (*node->mutable_attr())[key] = value;
    return;
  }
  const absl::StatusOr<const OpRegistration*> registration = GlobalRegistry().LookUpOp(op);
  if (registration.ok()) {
    for (const OpDef::AttrDef& attr : (*registration)->def().attr()) {
      if (attr.name() == "T" && attr.type() == "type") attrs.try_emplace("T", AttrOf(DT_INT64));
    }
  }
  for (auto& [key, value] : attrs) (*node->mutable_attr())[key] = value;
  if (!registration.ok()) return;
  NodeDef with_defaults = *node;
  AddDefaultsToNodeDef((*registration)->def(), &with_defaults);
  DataTypeVector input_types;
  EXPECT_TRUE(
      InOutTypesForNode(with_defaults, (*registration)->def(), &input_types, &types_[name]).ok())
      << name;
}

void GraphMaker::Body::AddConst(const std::string& name, int64_t value) {
  Tensor tensor(DT_INT64, {});
  tensor.scalar<int64_t>()() = value;
  AttrValue attr;
  tensor.AsProtoTensorContent(attr.mutable_tensor());
  Add(name, "Const", {}, {{"dtype", AttrOf(DT_INT64)}, {"value", attr}});
}

void GraphMaker::Body::AddPlaceholder(const std::string& name, DataType dtype) {
  Add(name, "Placeholder", {}, {{"dtype", AttrOf(dtype)}});
}

void GraphMaker::Body::AddCall(const std::string& name, const std::string& function,
                               const std::vector<std::string>& inputs, const std::string& op) {
  Add(name, op, inputs,
      {{"Tin", AttrOf(TypesOf(inputs))},
       {"Tout", AttrOf(maker_.signatures_.at(function).results)},
       {"f", FunctionAttr(function)}});
}

void GraphMaker::Body::AddIf(const std::string& name, const std::string& then_branch,
                             const std::string& else_branch, const std::string& condition,
                             const std::vector<std::string>& inputs) {
  std::vector<std::string> all = {condition};
  all.insert(all.end(), inputs.begin(), inputs.end());
  Add(name, "If", all,
      {{"Tcond", AttrOf(TypesOf({condition})[0])},
       {"Tin", AttrOf(TypesOf(inputs))},
       {"Tout", AttrOf(maker_.signatures_.at(then_branch).results)},
       {"then_branch", FunctionAttr(then_branch)},
       {"else_branch", FunctionAttr(else_branch)}});
}

void GraphMaker::Body::AddCase(const std::string& name, const std::vector<std::string>& branches,
                               const std::string& index, const std::vector<std::string>& inputs) {
  std::vector<std::string> all = {index};
  all.insert(all.end(), inputs.begin(), inputs.end());
  Add(name, "Case", all,
      {{"Tin", AttrOf(TypesOf(inputs))},
       {"Tout", AttrOf(maker_.signatures_.at(branches[0]).results)},
       {"branches", FunctionsAttr(branches)}});
}

void GraphMaker::Body::AddWhile(const std::string& name, const std::string& condition,
                                const std::string& body, const std::vector<std::string>& inputs) {
  Add(name, "While", inputs,
      {{"T", AttrOf(TypesOf(inputs))},
       {"cond", FunctionAttr(condition)},
       {"body", FunctionAttr(body)}});
}

void GraphMaker::Body::AddFor(const std::string& name, const std::string& body,
                              const std::vector<std::string>& range,
                              const std::vector<std::string>& inputs) {
  std::vector<std::string> all = range;
  all.insert(all.end(), inputs.begin(), inputs.end());
  Add(name, "For", all, {{"T", AttrOf(TypesOf(inputs))}, {"body", FunctionAttr(body)}});
}

void GraphMaker::Body::Return(const std::vector<std::string>& values,
                              const std::vector<std::string>& effects) {
  for (size_t i = 0; i < values.size(); ++i) {
    (*function_->mutable_ret())[absl::StrCat("r", i)] = InputOf(values[i]);
  }
  for (const std::string& effect : effects) {
    (*function_->mutable_control_ret())[effect] = effect;
    function_->mutable_signature()->add_control_output(effect);
  }
}

GraphMaker::Body& GraphMaker::Function(const std::string& name, const DataTypeVector& args,
                                       const DataTypeVector& results) {
  FunctionDef* const function = graph_.mutable_library()->add_function();
  function->mutable_signature()->set_name(name);
  functions_.push_back(Body(this));
  Body& body = functions_.back();
  body.function_ = function;
  for (size_t i = 0; i < args.size(); ++i) {
    OpDef::ArgDef* const arg = function->mutable_signature()->add_input_arg();
    arg->set_name(absl::StrCat("a", i));
    arg->set_type(args[i]);
    body.types_[arg->name()] = {args[i]};
  }
  for (size_t i = 0; i < results.size(); ++i) {
    OpDef::ArgDef* const result = function->mutable_signature()->add_output_arg();
    result->set_name(absl::StrCat("r", i));
    result->set_type(results[i]);
  }
  signatures_[name] = {args, results};
  return body;
}

}  // namespace gradflow::testing
