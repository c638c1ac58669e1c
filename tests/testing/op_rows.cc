#include "tests/testing/op_rows.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <map>
#include <type_traits>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gradflow/core/attributes.h"
#include "gradflow/core/op_def_util.h"
#include "gradflow/core/optional_value.h"
#include "gradflow/core/ragged_value.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/resource_handle.h"
#include "gradflow/core/tensor_list.h"
#include "gradflow/core/variant.h"
#include "gradflow/ops/lookup/table.h"
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

// Parses a number of type T. If `value` is empty, returns the default value of element i.
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
    // Parsing through double would round twice.
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

// Returns the length of a list that attribute `attrs` of the row states; -1 if there is none.
int64_t StatedLength(const OpDef::ArgDef& arg, const std::string& attrs) {
  for (const std::string& attr : Split(attrs, ';')) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(attr, absl::MaxSplits('=', 1));
    if (!arg.number_attr().empty() && parts.first == arg.number_attr()) {
      return Integer(parts.second);
    }
    if (!arg.type_list_attr().empty() && parts.first == arg.type_list_attr()) {
      const std::vector<std::string> types = absl::StrSplit(parts.second, "DT_");
      return static_cast<int64_t>(types.size()) - 1;
    }
  }
  return -1;
}

}  // namespace

void SetRowAttrs(const std::string& op, const std::string& attrs, const std::vector<Tensor>& inputs,
                 NodeDef* node) {
  const OpRegistration* const registered = GlobalRegistry().FindOp(op);
  ASSERT_NE(registered, nullptr) << op;
  const OpDef& def = registered->def();
  // Infers attributes from the inputs. Lists whose length is not an attribute of the row share the
  // inputs that remain after the other arguments.
  size_t next = 0;
  size_t lists = 0;
  size_t rest = inputs.size();
  std::map<std::string, size_t> lengths;
  for (const auto& arg : def.input_arg()) {
    const int64_t stated = IsListArg(arg) ? StatedLength(arg, attrs) : 1;
    if (stated < 0) {
      ++lists;
    } else {
      lengths[arg.name()] = static_cast<size_t>(stated);
      rest -= lengths[arg.name()];
    }
  }
  for (const auto& arg : def.input_arg()) {
    const auto stated = lengths.find(arg.name());
    const size_t length = stated == lengths.end() ? rest / lists : stated->second;
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
  // The type of a resource variable is in an attribute that the inputs do not determine.
  for (const auto& attr : def.attr()) {
    const bool names_type =
        attr.name() == "dtype" || attr.name() == "T" || attr.name() == "elem_type";
    const bool is_handle = !inputs.empty() && (def.input_arg(0).type() == DT_RESOURCE ||
                                               absl::StartsWith(op, "StackPop"));
    if (attr.type() == "type" && names_type && node->attr().count(attr.name()) == 0 && is_handle) {
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

// Returns a scalar: the list of the rows of `rows`.
static Tensor ListOfRows(const Tensor& rows) {
  PartialTensorShape shape = rows.SubSlice(0).shape();
  absl::StatusOr<TensorList> list = TensorList::Make(rows.dtype(), shape);
  EXPECT_TRUE(list.ok()) << list.status();
  for (int64_t i = 0; i < rows.dim_size(0); ++i) {
    const absl::Status status = list->PushBack(*rows.SubSlice(i).DeepCopy());
    EXPECT_TRUE(status.ok()) << status;
  }
  return Tensor(Variant(*std::move(list)));
}

// Parses "table:keys/values" or "mutable:keys/values". Returns a handle.
static Tensor ParseTable(const std::string& text) {
  const std::pair<std::string, std::string> kind = absl::StrSplit(text, absl::MaxSplits(':', 1));
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(kind.second, absl::MaxSplits('/', 1));
  const Tensor keys = ParseTensor(parts.first);
  const Tensor values = ParseTensor(parts.second);
  LookupTable::Spec spec;
  spec.kind = kind.first == "table" ? LookupTable::Kind::kHash : LookupTable::Kind::kMutable;
  spec.key_dtype = keys.dtype();
  spec.value_dtype = values.dtype();
  spec.value_shape = values.shape();
  spec.value_shape.RemoveDim(0);
  absl::StatusOr<std::shared_ptr<LookupTable>> table =
      LookupTable::Make(std::move(spec), SystemAllocator());
  EXPECT_TRUE(table.ok()) << table.status();
  if (!table.ok()) return Tensor(ResourceHandle());
  if (keys.NumElements() > 0) {
    const absl::Status status =
        kind.first == "table" ? (*table)->Initialize(keys, values) : (*table)->Insert(keys, values);
    EXPECT_TRUE(status.ok()) << status;
  }
  return Tensor(ResourceHandle(*std::move(table), "table"));
}

// Returns the table of a handle, or null.
static const LookupTable* TableIn(const Tensor& handle) {
  if (handle.dtype() != DT_RESOURCE || handle.NumElements() != 1) return nullptr;
  return dynamic_cast<const LookupTable*>(handle.span<ResourceHandle>()[0].resource().get());
}

// Adds nodes that make a copy of a table. Returns the node that makes the table, and the node that
// sets its entries or "".
static std::pair<std::string, std::string> AddTable(const LookupTable& table,
                                                    const std::string& name, bool is_reference,
                                                    GraphDef* graph) {
  const auto add = [&](const std::string& suffix, const std::string& op) {
    NodeDef* const node = graph->add_node();
    node->set_name(absl::StrCat(name, suffix));
    node->set_op(op);
    return node;
  };
  const std::string version = is_reference ? "" : "V2";
  const bool is_hash = table.kind() == LookupTable::Kind::kHash;
  const bool has_vectors = table.value_shape().dims() > 0;
  NodeDef* const make = add("/table", absl::StrCat(is_hash       ? "HashTable"
                                                   : has_vectors ? "MutableHashTableOfTensors"
                                                                 : "MutableHashTable",
                                                   version));
  AddNodeAttr("key_dtype", table.key_dtype(), make);
  AddNodeAttr("value_dtype", table.value_dtype(), make);
  if (has_vectors) AddNodeAttr("value_shape", table.value_shape(), make);
  const std::string table_name = make->name();
  if (table.size() == 0) return {table_name, ""};
  std::vector<Tensor> entries(2);
  const DataTypeVector types = {table.key_dtype(), table.value_dtype()};
  const RunContext run;
  KernelContext context({}, absl::MakeSpan(entries), types, run);
  EXPECT_TRUE(table.Export(context).ok());
  NodeDef import;
  import.set_name(absl::StrCat(name, "/entries"));
  import.set_op(absl::StrCat("LookupTableImport", version));
  import.add_input(table_name);
  for (int i = 0; i < 2; ++i) {
    NodeDef* const node = add(i == 0 ? "/keys" : "/values", "Const");
    AddNodeAttr("dtype", entries[i].dtype(), node);
    AddNodeAttr("value", entries[i], node);
    AddNodeAttr(i == 0 ? "Tin" : "Tout", entries[i].dtype(), &import);
    import.add_input(node->name());
  }
  *graph->add_node() = import;
  return {table_name, import.name()};
}

Tensor ParseTensor(const std::string& text) {
  if (absl::StartsWith(text, "optional:")) {
    return Tensor(Variant(OptionalValue({ParseTensor(text.substr(9))})));
  }
  if (absl::StartsWith(text, "table:") || absl::StartsWith(text, "mutable:")) {
    return ParseTable(text);
  }
  if (absl::StartsWith(text, "list:")) return ListOfRows(ParseTensor(text.substr(5)));
  if (absl::StartsWith(text, "ragged:")) {
    const Tensor rows = ParseTensor(text.substr(7));
    Tensor variants(DT_VARIANT, {rows.dim_size(0)});
    for (int64_t i = 0; i < rows.dim_size(0); ++i) {
      variants.span<Variant>()[i] = RaggedValue({rows.SubSlice(i)});
    }
    return variants;
  }
  if (absl::StartsWith(text, "lists:")) {
    const Tensor rows = ParseTensor(text.substr(6));
    Tensor lists(DT_VARIANT, {rows.dim_size(0)});
    for (int64_t i = 0; i < rows.dim_size(0); ++i) {
      lists.span<Variant>()[i] = ListOfRows(rows.SubSlice(i)).span<Variant>()[0];
    }
    return lists;
  }
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

// Adds a node `name` that makes a TensorArray or a stack, and nodes that write the rows of `rows`,
// the value of node `input`, to it. Returns the last node.
static std::string AddHolder(const std::string& name, const std::string& input, const Tensor& rows,
                             bool is_array, bool is_resource, GraphDef* graph) {
  const auto add = [&](const std::string& node_name, const char* op,
                       const std::vector<std::string>& node_inputs) {
    NodeDef* const node = graph->add_node();
    node->set_name(node_name);
    node->set_op(op);
    for (const std::string& node_input : node_inputs) node->add_input(node_input);
    return node;
  };
  const auto add_const = [&](const std::string& node_name, const Tensor& value) {
    NodeDef* const node = add(node_name, "Const", {});
    AddNodeAttr("dtype", value.dtype(), node);
    AddNodeAttr("value", value, node);
  };
  const int64_t size = rows.dims() == 0 ? 0 : std::min<int64_t>(rows.dim_size(0), 100);
  Tensor size_value(DT_INT32, {});
  size_value.scalar<int32_t>()() = static_cast<int32_t>(size);
  add_const(name + "/size", size_value);
  if (!is_array) {
    NodeDef* const stack =
        is_resource ? add(name, "StackV2", {name + "/size"}) : add(name, "Stack", {});
    AddNodeAttr("elem_type", rows.dtype(), stack);
    NodeDef* const push =
        add(name + "/push", is_resource ? "StackPushV2" : "StackPush", {name, input});
    AddNodeAttr("T", rows.dtype(), push);
    return push->name();
  }
  NodeDef* const array = add(name, "TensorArrayV3", {name + "/size"});
  AddNodeAttr("dtype", rows.dtype(), array);
  AddNodeAttr("dynamic_size", true, array);
  AddNodeAttr("clear_after_read", false, array);
  Tensor indices(DT_INT32, {size});
  for (int64_t i = 0; i < size; ++i) indices.vec<int32_t>()(i) = static_cast<int32_t>(i);
  add_const(name + "/indices", indices);
  NodeDef* const scatter =
      add(name + "/scatter", "TensorArrayScatterV3", {name, name + "/indices", input, name + ":1"});
  AddNodeAttr("T", rows.dtype(), scatter);
  return scatter->name();
}

// Adds a node `name` that makes a queue of tensors like the rows of `rows`, and a node that adds
// the rows, the value of node `input`, to it. If `closes`, adds a node that closes the queue, so
// that no dequeue waits. Returns the last node.
static std::string AddQueue(const std::string& name, const std::string& input, const Tensor& rows,
                            bool closes, bool is_resource, GraphDef* graph) {
  const std::string version = is_resource ? "V2" : "";
  const auto add = [&](const std::string& node_name, const std::string& op,
                       const std::vector<std::string>& node_inputs) {
    NodeDef* const node = graph->add_node();
    node->set_name(node_name);
    node->set_op(absl::StrCat(op, version));
    for (const std::string& node_input : node_inputs) node->add_input(node_input);
    return node;
  };
  TensorShape shape = rows.shape();
  if (shape.dims() > 0) shape.RemoveDim(0);
  NodeDef* const queue = add(name, "FIFOQueue", {});
  AddNodeAttr("component_types", DataTypeVector{rows.dtype()}, queue);
  AddNodeAttr("shapes", std::vector<PartialTensorShape>{shape}, queue);
  std::string last = name;
  if (rows.dims() > 0) {
    NodeDef* const enqueue = add(name + "/enqueue", "QueueEnqueueMany", {name, input});
    AddNodeAttr("Tcomponents", DataTypeVector{rows.dtype()}, enqueue);
    last = enqueue->name();
  }
  if (closes) last = add(name + "/close", "QueueClose", {name, absl::StrCat("^", last)})->name();
  return last;
}

// Adds a node that stores zeros of the types that `unstage` removes. Returns its name, or "" if
// there are no zeros of the types.
static std::string AddStage(const NodeDef& unstage, GraphDef* graph) {
  DataTypeVector types;
  if (!GetNodeAttr(unstage, "dtypes", &types).ok()) return "";
  NodeDef stage = unstage;
  stage.set_name(absl::StrCat(unstage.name(), "/stage"));
  stage.set_op("Stage");
  std::string shared_name;
  if (!GetNodeAttr(unstage, "shared_name", &shared_name).ok() || shared_name.empty()) {
    AddNodeAttr("shared_name", unstage.name(), &stage);
  }
  for (const DataType type : types) {
    if (!DataTypeIsPlainBytes(type)) return "";
    NodeDef* const zero = graph->add_node();
    zero->set_name(absl::StrCat(stage.name(), "/", stage.input_size()));
    zero->set_op("Const");
    Tensor value(type, {2});
    std::memset(value.raw_data(), 0, value.TotalBytes());
    AddNodeAttr("dtype", type, zero);
    AddNodeAttr("value", value, zero);
    stage.add_input(zero->name());
  }
  *graph->add_node() = stage;
  return stage.name();
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
    // The row is expected to fail.
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
    if (const LookupTable* const table = TableIn(inputs[i])) {
      const auto [handle, entries] = AddTable(*table, input, IsRefType(input_types[i]), graph);
      op_node.add_input(handle);
      if (!entries.empty()) controls.push_back(absl::StrCat("^", entries));
      continue;
    }
    const bool is_resource = input_types[i] == DT_RESOURCE;
    const bool is_variable = is_resource || IsRefType(input_types[i]);
    const bool is_array = absl::StartsWith(op, "TensorArray") && is_resource;
    const bool is_stack = absl::StartsWith(op, "Stack") && is_variable;
    if (absl::StartsWith(op, "Queue") && is_variable) {
      const std::string queue = absl::StrCat(input, "/queue");
      const bool closes = absl::StartsWith(op, "QueueDequeue");
      controls.push_back(
          absl::StrCat("^", AddQueue(queue, input, inputs[i], closes, is_resource, graph)));
      op_node.add_input(queue);
    } else if (is_array || is_stack) {
      const std::string holder = absl::StrCat(input, is_array ? "/array" : "/stack");
      controls.push_back(
          absl::StrCat("^", AddHolder(holder, input, inputs[i], is_array, is_resource, graph)));
      op_node.add_input(holder);
    } else if (is_resource && absl::StartsWith(op, "Collective")) {
      // A communicator of one rank, whose key is the input.
      const std::string communicator = absl::StrCat(input, "/communicator");
      NodeDef* const initialize = graph->add_node();
      initialize->set_name(communicator);
      initialize->set_op("CollectiveInitializeCommunicator");
      initialize->add_input(input);
      for (const int32_t value : {0, 1}) {
        NodeDef* const constant = graph->add_node();
        constant->set_name(absl::StrCat(communicator, value == 0 ? "/rank" : "/size"));
        constant->set_op("Const");
        AddNodeAttr("dtype", DT_INT32, constant);
        AddNodeAttr("value", Tensor(value), constant);
        initialize->add_input(constant->name());
      }
      op_node.add_input(communicator);
    } else if (is_variable) {
      // A variable, and a node that initializes it before the op runs.
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
  if (op == "Unstage") {
    const std::string stage = AddStage(op_node, graph);
    if (!stage.empty()) controls.push_back(absl::StrCat("^", stage));
  }
  for (const std::string& control : controls) op_node.add_input(control);
  *graph->add_node() = std::move(op_node);
}

}  // namespace gradflow::testing
