#include "tests/testing/op_rows.h"

#include <gtest/gtest.h>

#include <limits>
#include <type_traits>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gradflow/core/attributes.h"
#include "gradflow/core/op_def_util.h"
#include "gradflow/core/registry.h"
#include "gradflow/proto/op_def.pb.h"
#include "tests/testing/subprocess.h"

namespace gradflow::testing {
namespace {

std::vector<std::string> Split(absl::string_view text, char separator) {
  std::vector<std::string> parts;
  for (const absl::string_view part : absl::StrSplit(text, separator)) {
    parts.emplace_back(absl::StripAsciiWhitespace(part));
  }
  return parts;
}

double Number(const std::string& text) {
  double number = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(absl::SimpleAtod(text, &number)) << text;
  return number;
}

int64_t Integer(const std::string& text) {
  int64_t number = 0;
  EXPECT_TRUE(absl::SimpleAtoi(text, &number)) << text;
  return number;
}

// Parses a number of type T; `value` is that of element i if it is empty.
template <typename T>
T ParseElement(const std::string& value, int64_t i) {
  if constexpr (std::is_same_v<T, tstring>) {
    if (!absl::StartsWith(value, "\"")) return value;
    std::string unescaped;
    EXPECT_TRUE(absl::CUnescape(value.substr(1, value.size() - 2), &unescaped)) << value;
    return unescaped;
  } else if constexpr (kIsComplex<T>) {
    using Part = typename T::value_type;
    const std::pair<std::string, std::string> parts = absl::StrSplit(value, ':');
    return T(ParseElement<Part>(parts.first, i),
             parts.second.empty() ? Part(0) : ParseElement<Part>(parts.second, i));
  } else if constexpr (std::is_same_v<T, double>) {
    return value.empty() ? 0.1 * static_cast<double>(i + 1) : Number(value);
  } else if constexpr (std::is_same_v<T, float> || kIsFloat16<T>) {
    // Not by way of double, which would round twice.
    float number = 0.1f * static_cast<float>(i + 1);
    EXPECT_TRUE(value.empty() || absl::SimpleAtof(value, &number)) << value;
    return static_cast<T>(number);
  } else if constexpr (std::is_same_v<T, bool>) {
    return (value.empty() ? i : Integer(value)) % 2 != 0;
  } else if constexpr (std::is_same_v<T, uint64_t>) {
    uint64_t number = static_cast<uint64_t>(i);
    EXPECT_TRUE(value.empty() || absl::SimpleAtoi(value, &number)) << value;
    return number;
  } else if constexpr (std::is_integral_v<T>) {
    const int64_t number = value.empty() ? i : Integer(value);
    return static_cast<T>(number);
  } else {
    return T{ParseElement<decltype(T::value)>(value, i)};
  }
}

using ParsedTypes =
    ConcatTypes<ConcatTypes<NumberTypes, QuantizedTypes>::type, TypeList<bool, tstring>>::type;

}  // namespace

void SetRowAttrs(const std::string& op, const std::string& attrs, const std::vector<Tensor>& inputs,
                 NodeDef* node) {
  const OpRegistration* const registered = GlobalRegistry().FindOp(op);
  ASSERT_NE(registered, nullptr) << op;
  const OpDef& def = registered->def();
  // Infers attributes from the inputs. Lists share the inputs that the other arguments leave.
  size_t next = 0;
  size_t lists = 0;
  for (const auto& arg : def.input_arg()) lists += IsListArg(arg) ? 1 : 0;
  for (const auto& arg : def.input_arg()) {
    size_t length = 1;
    if (IsListArg(arg)) {
      length = (inputs.size() + lists - def.input_arg_size()) / lists;
    }
    ASSERT_LE(next + length, inputs.size()) << op;
    if (!arg.number_attr().empty()) {
      AddNodeAttr(arg.number_attr(), static_cast<int64_t>(length), node);
    }
    if (!arg.type_attr().empty()) AddNodeAttr(arg.type_attr(), inputs[next].dtype(), node);
    if (!arg.type_list_attr().empty()) {
      DataTypeVector types;
      for (size_t i = next; i < next + length; ++i) types.push_back(inputs[i].dtype());
      AddNodeAttr(arg.type_list_attr(), types, node);
    }
    next += length;
  }
  EXPECT_EQ(next, inputs.size()) << op;
  // The type of a resource variable is in an attribute that no input shows.
  for (const auto& attr : def.attr()) {
    const bool names_type = attr.name() == "dtype" || attr.name() == "T";
    if (attr.type() == "type" && names_type && node->attr().count(attr.name()) == 0 &&
        !inputs.empty() && def.input_arg(0).type() == DT_RESOURCE) {
      AddNodeAttr(attr.name(), inputs[0].dtype(), node);
    }
  }
  for (const std::string& attr : Split(attrs, ';')) {
    if (attr.empty()) continue;
    const std::pair<std::string, std::string> parts = absl::StrSplit(attr, absl::MaxSplits('=', 1));
    bool found = false;
    for (const auto& attr_def : def.attr()) {
      if (attr_def.name() != parts.first) continue;
      found = ParseAttrValue(attr_def.type(), parts.second, &(*node->mutable_attr())[parts.first]);
    }
    EXPECT_TRUE(found) << op << ": " << attr;
  }
}

std::vector<std::vector<std::string>> ReadRows(const std::string& path) {
  std::vector<std::vector<std::string>> rows;
  const std::string text = ReadFile(path);
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!line.empty() && line[0] != '#') rows.push_back(Split(line, '|'));
  }
  EXPECT_FALSE(rows.empty()) << path;
  return rows;
}

Tensor ParseTensor(const std::string& text) {
  const size_t begin = text.find('[');
  const size_t end = text.find(']');
  DataType dtype = DT_INVALID;
  EXPECT_TRUE(DataTypeFromString(text.substr(0, begin), &dtype)) << text;
  TensorShape shape;
  for (const std::string& dim : Split(text.substr(begin + 1, end - begin - 1), ',')) {
    if (!dim.empty()) shape.AddDim(Integer(dim));
  }
  Tensor tensor(dtype, shape);
  const std::string value = end + 1 < text.size() ? text.substr(end + 2) : "";
  std::vector<std::string> values;
  if (absl::StartsWith(value, "{")) {
    values = Split(value.substr(1, value.size() - 2), ',');
    EXPECT_EQ(static_cast<int64_t>(values.size()), tensor.NumElements()) << text;
    values.resize(tensor.NumElements());
  }
  const bool parsed = DispatchType(ParsedTypes(), dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto flat = tensor.flat<T>();
    for (int64_t i = 0; i < tensor.NumElements(); ++i) {
      flat(i) = ParseElement<T>(values.empty() ? value : values[i], i);
    }
  });
  EXPECT_TRUE(parsed) << "tensors of type " << DataTypeString(dtype) << " are not parsed";
  return tensor;
}

std::vector<Tensor> ParseTensors(const std::string& text) {
  std::vector<Tensor> tensors;
  for (const std::string& tensor : Split(text, ';')) {
    if (!tensor.empty()) tensors.push_back(ParseTensor(tensor));
  }
  return tensors;
}

void AddOpRow(const std::string& name, const std::string& op, const std::string& attrs,
              const std::vector<Tensor>& inputs, Knowledge knowledge, GraphDef* graph,
              std::vector<std::pair<std::string, Tensor>>* feeds) {
  NodeDef op_node;
  op_node.set_name(name);
  op_node.set_op(op);
  SetRowAttrs(op, attrs, inputs, &op_node);
  DataTypeVector input_types;
  DataTypeVector output_types;
  const OpDef& op_def = GlobalRegistry().FindOp(op)->def();
  NodeDef with_defaults = op_node;
  AddDefaultsToNodeDef(op_def, &with_defaults);
  if (!InOutTypesForNode(with_defaults, op_def, &input_types, &output_types).ok()) {
    // A row that is to fail.
    input_types.clear();
  }
  input_types.resize(inputs.size(), DT_FLOAT);
  std::vector<std::string> controls;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string input = absl::StrCat(name, "/i", i);
    const PartialTensorShape known_shape =
        knowledge == Knowledge::kValues  ? PartialTensorShape(inputs[i].shape())
        : knowledge == Knowledge::kRanks ? PartialTensorShape::UnknownOfRank(inputs[i].dims())
                                         : PartialTensorShape();
    const bool is_resource = input_types[i] == DT_RESOURCE;
    const bool is_variable = is_resource || IsRefType(input_types[i]);
    if (is_variable) {
      // A variable, and the node that initializes it before the op runs.
      NodeDef* const variable = graph->add_node();
      variable->set_name(absl::StrCat(input, "/variable"));
      variable->set_op(is_resource ? "VarHandleOp" : "VariableV2");
      AddNodeAttr("dtype", inputs[i].dtype(), variable);
      AddNodeAttr("shape", known_shape, variable);
      NodeDef* const assign = graph->add_node();
      assign->set_name(absl::StrCat(input, "/assign"));
      assign->set_op(is_resource ? "AssignVariableOp" : "Assign");
      AddNodeAttr(is_resource ? "dtype" : "T", inputs[i].dtype(), assign);
      assign->add_input(variable->name());
      assign->add_input(input);
      op_node.add_input(is_resource ? variable->name() : assign->name());
      if (is_resource) controls.push_back(absl::StrCat("^", assign->name()));
    } else {
      op_node.add_input(input);
    }
    NodeDef* const node = graph->add_node();
    node->set_name(input);
    AddNodeAttr("dtype", inputs[i].dtype(), node);
    if (knowledge == Knowledge::kValues) {
      node->set_op("Const");
      AddNodeAttr("value", inputs[i], node);
      continue;
    }
    node->set_op("Placeholder");
    AddNodeAttr("shape", known_shape, node);
    feeds->emplace_back(node->name(), inputs[i]);
  }
  for (const std::string& control : controls) op_node.add_input(control);
  *graph->add_node() = std::move(op_node);
}

}  // namespace gradflow::testing
