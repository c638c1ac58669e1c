#include "tests/testing/op_rows.h"

#include <gtest/gtest.h>

#include <limits>

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

// Sets element i of a tensor to `value`, or to its default if `value` is empty.
void SetElement(const std::string& value, int64_t i, Tensor* tensor) {
  const auto integer = [&] { return value.empty() ? i : Integer(value); };
  switch (tensor->dtype()) {
    case DT_FLOAT:
      tensor->flat<float>()(i) =
          value.empty() ? 0.1f * static_cast<float>(i + 1) : static_cast<float>(Number(value));
      return;
    case DT_DOUBLE:
      tensor->flat<double>()(i) = value.empty() ? 0.1 * static_cast<double>(i + 1) : Number(value);
      return;
    case DT_INT8:
      tensor->flat<int8_t>()(i) = static_cast<int8_t>(integer());
      return;
    case DT_INT32:
      tensor->flat<int32_t>()(i) = static_cast<int32_t>(integer());
      return;
    case DT_INT64:
      tensor->flat<int64_t>()(i) = integer();
      return;
    case DT_BOOL:
      tensor->flat<bool>()(i) = integer() % 2 != 0;
      return;
    case DT_STRING:
      tensor->flat<tstring>()(i) = value;
      return;
    case DT_COMPLEX64: {
      const double real = value.empty() ? 0.1 * static_cast<double>(i + 1) : Number(value);
      tensor->flat<complex64>()(i) = complex64(static_cast<float>(real), 1);
      return;
    }
    case DT_QINT8:
      tensor->flat<qint8>()(i).value = static_cast<int8_t>(integer());
      return;
    default:
      ADD_FAILURE() << "tensors of type " << DataTypeString(tensor->dtype()) << " are not parsed";
  }
}

void SetAttrs(const std::string& op, const std::string& attrs, const std::vector<Tensor>& inputs,
              NodeDef* node) {
  const OpRegistration* const registered = GlobalRegistry().FindOp(op);
  ASSERT_NE(registered, nullptr) << op;
  const OpDef& def = registered->def();
  // Infers attributes from the inputs. A list takes all inputs that the other arguments leave.
  size_t next = 0;
  for (const auto& arg : def.input_arg()) {
    size_t length = 1;
    if (IsListArg(arg)) {
      length = inputs.size() + 1 - def.input_arg_size();
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

}  // namespace

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
  for (int64_t i = 0; i < tensor.NumElements(); ++i) {
    SetElement(values.empty() ? value : values[i], i, &tensor);
  }
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
  SetAttrs(op, attrs, inputs, &op_node);
  for (size_t i = 0; i < inputs.size(); ++i) {
    NodeDef* const node = graph->add_node();
    node->set_name(absl::StrCat(name, "/i", i));
    op_node.add_input(node->name());
    AddNodeAttr("dtype", inputs[i].dtype(), node);
    if (knowledge == Knowledge::kValues) {
      node->set_op("Const");
      AddNodeAttr("value", inputs[i], node);
      continue;
    }
    node->set_op("Placeholder");
    AddNodeAttr("shape",
                knowledge == Knowledge::kRanks ? PartialTensorShape::UnknownOfRank(inputs[i].dims())
                                               : PartialTensorShape(),
                node);
    feeds->emplace_back(node->name(), inputs[i]);
  }
  *graph->add_node() = std::move(op_node);
}

}  // namespace gradflow::testing
