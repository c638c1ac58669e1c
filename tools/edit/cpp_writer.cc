#include "tools/edit/cpp_writer.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "gradflow/codegen/op_wrapper.h"
#include "gradflow/codegen/wrapper_text.h"
#include "gradflow/core/attributes.h"
#include "gradflow/core/op_def_util.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/tensor_proto.h"
#include "gradflow/core/types.h"
#include "gradflow/graph/export.h"
#include "gradflow/graph/graph.h"
#include "gradflow/graph/node.h"
#include "gradflow/graph/tensor_id.h"
#include "gradflow/ops/register.h"
#include "tools/view/analyzed_graph.h"

namespace gradflow::tools {
namespace {

constexpr size_t kMaxBytes = size_t{64} << 20;
// A constant with more elements is written as bytes, not as numbers.
constexpr int64_t kMaxNumbers = 1000;

// Returns a std::string expression. The bytes may include zeros.
std::string BytesLiteral(absl::string_view bytes) {
  std::string text = "std::string(";
  // The compiler joins the literals of 64 bytes.
  constexpr size_t kPiece = 64;
  if (bytes.empty()) text += "\"\"";
  for (size_t i = 0; i < bytes.size(); i += kPiece) {
    if (i > 0) text += "\n            ";
    text += "\"";
    for (const char c : bytes.substr(i, kPiece)) {
      absl::StrAppendFormat(&text, "\\%03o", static_cast<unsigned char>(c));
    }
    text += "\"";
  }
  return absl::StrCat(text, ", ", bytes.size(), ")");
}

template <typename T>
std::string NumberText(T value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_same_v<T, float>) {
    return FloatLiteral(value);
  } else if constexpr (std::is_same_v<T, double>) {
    return DoubleLiteral(value);
  } else if (value == std::numeric_limits<T>::min() && value < 0) {
    // The smallest integer has no literal.
    return absl::StrCat(static_cast<int64_t>(value) + 1, " - 1");
  } else {
    return absl::StrCat(value);
  }
}

// Returns the elements, or nothing if an element has no literal.
template <typename T>
std::vector<std::string> Numbers(const Tensor& tensor) {
  std::vector<std::string> numbers;
  for (int64_t i = 0; i < tensor.NumElements(); ++i) {
    const T value = tensor.flat<T>()(i);
    if constexpr (std::is_floating_point_v<T>) {
      if (!std::isfinite(value)) return {};
    }
    numbers.push_back(NumberText(value));
  }
  return numbers;
}

// Returns the generated class of an op; null if it does not exist. The classes of plugin ops are in
// headers that this library does not know.
const OpWrapper* FindWrapper(const OpRegistration& op) {
  // Wrappers refer to the registry. Both are never destroyed, so that they outlive all users.
  static Registry& registry = *new Registry();
  static const auto& wrappers = *[] {
    RegisterStandardOps(registry);
    auto* const result = new absl::flat_hash_map<std::string, OpWrapper>();
    for (const OpRegistration* standard : registry.Ops()) {
      if (standard->api().hand_written || standard->api().group.empty() ||
          standard->def().name()[0] == '_') {
        continue;
      }
      absl::StatusOr<OpWrapper> wrapper = OpWrapper::Make(*standard);
      if (wrapper.ok()) result->emplace(standard->def().name(), *std::move(wrapper));
    }
    return result;
  }();
  const auto found = wrappers.find(op.def().name());
  return found == wrappers.end() ? nullptr : &found->second;
}

// The variable of a node in the program.
struct CppVariable {
  std::string name;
  enum class Kind { kOutput, kOperation, kWrapper } kind = Kind::kOperation;
  const OpWrapper* wrapper = nullptr;
  NameRangeMap outputs;
  const OpDef* op = nullptr;
};

class ProgramWriter {
 public:
  // `sources` are the input sources of the nodes of the graph.
  ProgramWriter(const Graph& graph, const InputSources& sources, absl::string_view title)
      : graph_(graph), sources_(sources), title_(title) {}

  absl::StatusOr<std::string> Write() {
    for (const std::vector<InputSource>& inputs : sources_) {
      for (const InputSource& input : inputs) read_.insert(graph_.node(input.node)->name());
    }
    const std::vector<int> order = ProducersFirst(sources_);
    if (order.size() < sources_.size()) {
      return errors::Unimplemented("the graph has a cycle, which a program with Scope cannot have");
    }
    for (const int id : order) {
      GRADFLOW_RETURN_IF_ERROR(errors::Prefix(
          absl::StrCat("node '", graph_.node(id)->name(), "': "), AddNode(*graph_.node(id))));
      if (body_.size() > kMaxBytes) {
        return errors::ResourceExhausted("the program has more than ", kMaxBytes, " bytes");
      }
    }
    std::string text = absl::StrCat("// Builds the graph '", errors::Printable(title_, 200),
                                    "'. Made by gradflow.\n");
    absl::StrAppend(&text,
                    "#include <iostream>\n#include <string>\n#include <utility>\n\n"
                    "#include \"absl/status/status.h\"\n"
                    "#include \"absl/status/statusor.h\"\n"
                    "#include \"gradflow/core/tensor.h\"\n"
                    "#include \"gradflow/graph/const_op.h\"\n"
                    "#include \"gradflow/graph/export.h\"\n");
    const bool has_functions = graph_.def().library().function_size() > 0;
    if (has_functions) {
      absl::StrAppend(&text,
                      "#include \"gradflow/graph/graph.h\"\n"
                      "#include \"gradflow/graph/import.h\"\n");
    }
    absl::StrAppend(&text,
                    "#include \"gradflow/graph/node_builder.h\"\n"
                    "#include \"gradflow/graph/scope.h\"\n");
    for (const std::string& group : groups_) {
      absl::StrAppend(&text, "#include \"gradflow/ops/", group, ".h\"\n");
    }
    absl::StrAppend(&text, "#include \"gradflow/proto/graph.pb.h\"\n\n");
    if (uses_bytes_) {
      absl::StrAppend(&text,
                      "// Adds a constant with these bytes.\n"
                      "static gradflow::Output Constant(const gradflow::Scope& scope, "
                      "gradflow::DataType type,\n"
                      "                                 const gradflow::TensorShape& shape, "
                      "const std::string& bytes) {\n"
                      "  gradflow::TensorProto proto;\n"
                      "  proto.set_dtype(type);\n"
                      "  shape.AsProto(proto.mutable_tensor_shape());\n"
                      "  proto.set_tensor_content(bytes);\n"
                      "  return gradflow::ops::ConstFromProto(scope, proto);\n"
                      "}\n\n");
    }
    if (has_functions) {
      GRADFLOW_ASSIGN_OR_RETURN(const std::string functions, FunctionsText());
      absl::StrAppend(&text, functions);
    }
    if (uses_messages_) {
      absl::StrAppend(&text,
                      "// Parses a message from its bytes.\n"
                      "template <typename Message>\n"
                      "static Message Parse(const std::string& bytes) {\n"
                      "  Message message;\n"
                      "  message.ParseFromString(bytes);\n"
                      "  return message;\n"
                      "}\n\n");
    }
    absl::StrAppend(&text,
                    "absl::Status BuildGraph(const gradflow::Scope& root) {\n"
                    "  using namespace gradflow;  // NOLINT\n",
                    has_functions ? "  root.UpdateStatus(AddFunctions(root.graph()));\n" : "",
                    body_, "  return root.status();\n}\n\n",
                    "int main(int argc, char** argv) {\n"
                    "  const gradflow::Scope root = gradflow::Scope::NewRootScope();\n"
                    "  absl::Status status = BuildGraph(root);\n"
                    "  gradflow::GraphDef graph;\n"
                    "  if (status.ok()) status = root.ToGraphDef(&graph);\n"
                    "  if (status.ok()) status = gradflow::WriteGraphDef(argc > 1 ? argv[1] : "
                    "\"graph.pb\", graph);\n"
                    "  if (status.ok()) return 0;\n"
                    "  std::cerr << status.ToString() << \"\\n\";\n"
                    "  return 1;\n"
                    "}\n");
    return text;
  }

 private:
  // Returns the source of a function that adds the functions of the graph, as text, and its
  // versions.
  absl::StatusOr<std::string> FunctionsText() const {
    // The text is longer than the bytes.
    const size_t size = graph_.def().library().ByteSizeLong();
    if (size > kMaxBytes) return errors::ResourceExhausted("the functions have ", size, " bytes");
    GraphDef functions;
    *functions.mutable_library() = graph_.def().library();
    *functions.mutable_versions() = graph_.def().versions();
    const std::string text = GraphDefToText(functions);
    if (text.size() > kMaxBytes) {
      return errors::ResourceExhausted("the functions have ", text.size(), " bytes as text");
    }
    // A delimiter of a raw string has at most 16 characters.
    std::string end = "graph";
    while (end.size() <= 16 && absl::StrContains(text, absl::StrCat(")", end, "\""))) end += "_";
    if (end.size() > 16) {
      return errors::Unimplemented("the functions have strings that end each raw string literal");
    }
    return absl::StrCat(
        "static absl::Status AddFunctions(gradflow::Graph* graph) {\n"
        "  static const char kFunctions[] = R\"",
        end, "(", text, ")", end,
        "\";\n"
        "  absl::StatusOr<gradflow::GraphDef> functions = "
        "gradflow::ParseGraphDefText(kFunctions);\n"
        "  if (!functions.ok()) return functions.status();\n"
        "  return gradflow::ImportGraphDef({}, *std::move(functions), graph);\n"
        "}\n\n");
  }

  // Returns an unused name: "layer/mat-mul" -> "layer_mat_mul".
  std::string UniqueName(absl::string_view node) {
    constexpr size_t kMaxName = 60;
    std::string name;
    for (const char c : node.substr(0, kMaxName)) {
      name.push_back(absl::ascii_isalnum(c) ? c : '_');
    }
    if (name.empty() || !absl::ascii_isalpha(name[0])) name.insert(0, "n");
    // Names in the generated function.
    static const auto* const taken = new std::set<std::string>{
        "root",       "main",        "ops",       "gradflow",   "std",         "absl",
        "Parse",      "Constant",    "Scope",     "Output",     "Operation",   "Input",
        "InputList",  "OpBuilder",   "AttrValue", "Tensor",     "TensorShape", "PartialTensorShape",
        "BuildGraph", "linux",       "unix",      "OutputList", "int32_t",     "int64_t",
        "uint8_t",    "errno",       "stdin",     "stdout",     "stderr",      "assert",
        "DataType",   "AddFunctions"};
    name = SafeName(name);
    // Avoids macros, such as NULL.
    if (std::none_of(name.begin(), name.end(), absl::ascii_islower)) name += "_node";
    const auto take = [&](const std::string& free) {
      return taken->count(free) == 0 && !absl::StartsWith(free, "DT_") &&
             names_.insert(free).second;
    };
    if (take(name)) return name;
    // Many names may have the same first kMaxName characters. The search continues after the last
    // number, so that it takes linear time.
    int& number = last_numbers_.try_emplace(name, 1).first->second;
    std::string numbered;
    do {
      numbered = absl::StrCat("n_", name, "_", ++number);
    } while (!take(numbered));
    return numbered;
  }

  // Returns an output as an expression.
  std::string OutputText(const TensorId& id) const {
    const CppVariable& variable = variables_.at(std::string(id.node));
    if (variable.kind == CppVariable::Kind::kOutput) return variable.name;
    if (variable.kind == CppVariable::Kind::kOperation) {
      return absl::StrCat("Output(", variable.name, ", ", id.index, ")");
    }
    for (int i = 0; i < variable.op->output_arg_size(); ++i) {
      const auto range = variable.outputs.find(variable.op->output_arg(i).name());
      if (range == variable.outputs.end() || id.index < range->second.first ||
          id.index >= range->second.second) {
        continue;
      }
      const OpWrapper::Argument& output = variable.wrapper->outputs()[i];
      const std::string member = absl::StrCat(variable.name, ".", output.cpp_name);
      if (!output.is_list) return member;
      return absl::StrCat(member, "[", id.index - range->second.first, "]");
    }
    return absl::StrCat("Output(", variable.name, ".operation, ", id.index, ")");
  }
  std::string OperationText(absl::string_view node) const {
    const CppVariable& variable = variables_.at(std::string(node));
    switch (variable.kind) {
      case CppVariable::Kind::kOutput:
        return absl::StrCat(variable.name, ".op()");
      case CppVariable::Kind::kOperation:
        return variable.name;
      case CppVariable::Kind::kWrapper:
        return absl::StrCat(variable.name, ".operation");
    }
    return variable.name;
  }

  // Returns the scope of a node: its name, device and control dependencies.
  std::string ScopeText(const NodeDef& node, const std::vector<std::string>& control) {
    std::string text = absl::StrCat("root.WithOpName(", StringLiteral(node.name()), ")");
    if (!node.device().empty()) {
      absl::StrAppend(&text, ".WithDevice(", StringLiteral(node.device()), ")");
    }
    if (!control.empty()) {
      absl::StrAppend(&text, ".WithControlDependencies({", absl::StrJoin(control, ", "), "})");
    }
    return text;
  }

  static std::string ShapeText(const TensorShape& shape) {
    return absl::StrCat("TensorShape({", absl::StrJoin(shape.dim_sizes(), ", "), "})");
  }

  // Returns the constant as an expression, or "" if it needs a message.
  absl::StatusOr<std::string> ConstText(const std::string& scope, const AttrValue& value) {
    if (value.tensor().ByteSizeLong() > kMaxBytes / 4) {
      return errors::ResourceExhausted("the constant has ", value.tensor().ByteSizeLong(),
                                       " bytes");
    }
    GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape,
                              TensorShape::Make(value.tensor().tensor_shape()));
    // A message that repeats one value may have any number of elements.
    if (shape.num_elements() > kMaxNumbers) return std::string();
    GRADFLOW_ASSIGN_OR_RETURN(const Tensor tensor, TensorFromProto(value.tensor()));
    std::vector<std::string> numbers;
    std::string type;
    DispatchType(TypeList<float, double, int32_t, int64_t, bool>(), tensor.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      numbers = Numbers<T>(tensor);
      type = absl::StrCat(DataTypeString(tensor.dtype()),
                          DataTypeIsInteger(tensor.dtype()) ? "_t" : "");
    });
    if (!numbers.empty()) {
      if (tensor.dims() == 0) {
        return absl::StrCat("ops::Const<", type, ">(", scope, ", ", type, "{", numbers[0], "})");
      }
      // Lines have about 100 columns.
      std::string list;
      size_t column = 0;
      for (const std::string& number : numbers) {
        if (!list.empty()) list += ",";
        if (column + number.size() > 88) {
          list += "\n      ";
          column = 0;
        } else if (!list.empty()) {
          list += " ";
        }
        list += number;
        column += number.size() + 2;
      }
      return absl::StrCat("ops::Const(", scope, ", std::initializer_list<", type, ">{", list, "}, ",
                          ShapeText(shape), ")");
    }
    if (tensor.dtype() == DT_STRING || tensor.NumElements() == 0 || tensor.tensor_data().empty()) {
      return std::string();
    }
    uses_bytes_ = true;
    return absl::StrCat("Constant(", scope, ", ", DataType_Name(tensor.dtype()), ", ",
                        ShapeText(shape), ",\n            ", BytesLiteral(tensor.tensor_data()),
                        ")");
  }

  absl::Status AddNode(const Node& node) {
    const NodeDef& def = node.def();
    // The text is longer than the bytes.
    const size_t size = def.ByteSizeLong();
    if (size > kMaxBytes) {
      return errors::ResourceExhausted("the node has ", size, " bytes, a program at most ",
                                       kMaxBytes);
    }
    std::vector<TensorId> inputs;
    std::vector<std::string> control;
    for (const std::string& input : def.input()) {
      GRADFLOW_ASSIGN_OR_RETURN(const TensorId id, ParseTensorId(input));
      if (id.IsControl()) {
        control.push_back(OperationText(id.node));
      } else {
        inputs.push_back(id);
      }
    }
    // node.op() also finds the functions of the graph, which are not in the registry.
    const OpRegistration* const op = &node.op();
    CppVariable variable;
    variable.name = UniqueName(def.name());
    variable.op = &op->def();
    NameRangeMap input_ranges;
    GRADFLOW_RETURN_IF_ERROR(NameRangesForNode(def, op->def(), &input_ranges, &variable.outputs));

    std::string text;
    const std::string scope = ScopeText(def, control);
    if (def.op() == "Const" && OwnAttrsKnown(def, op->def()) && def.attr().count("value") > 0) {
      GRADFLOW_ASSIGN_OR_RETURN(text, ConstText(scope, def.attr().at("value")));
      variable.kind = CppVariable::Kind::kOutput;
    }
    const OpWrapper* const wrapper = FindWrapper(*op);
    if (text.empty() && wrapper != nullptr && IsInferred(op->def(), def, input_ranges)) {
      absl::StatusOr<std::string> call = WrapperText(def, *wrapper, scope, inputs, input_ranges);
      if (call.ok()) {
        text = *std::move(call);
        variable.kind = CppVariable::Kind::kWrapper;
        variable.wrapper = wrapper;
        groups_.insert(op->api().group);
      }
    }
    if (text.empty()) {
      variable.kind = CppVariable::Kind::kOperation;
      text = OpBuilderText(def, op->def(), scope, inputs, input_ranges);
    }
    const char* type = "auto";
    if (variable.kind == CppVariable::Kind::kOperation) type = "Operation";
    if (variable.kind == CppVariable::Kind::kOutput) type = "Output";
    if (read_.count(def.name()) > 0) {
      absl::StrAppend(&body_, "  const ", type, " ", variable.name, " =\n      ", text, ";\n");
    } else {
      absl::StrAppend(&body_, "  ", text, ";\n");
    }
    variables_.emplace(def.name(), std::move(variable));
    return absl::OkStatus();
  }

  // Returns false if the node has attributes that its op does not define.
  static bool OwnAttrsKnown(const NodeDef& def, const OpDef& op) {
    return std::all_of(def.attr().begin(), def.attr().end(), [&](const auto& attr) {
      return std::any_of(op.attr().begin(), op.attr().end(),
                         [&](const OpDef::AttrDef& known) { return known.name() == attr.first; });
    });
  }

  // Returns true if the class of the op makes this node. The class infers attributes from lists of
  // inputs, so no list may be empty.
  static bool IsInferred(const OpDef& op, const NodeDef& def, const NameRangeMap& inputs) {
    if (!OwnAttrsKnown(def, op)) return false;
    for (const OpDef::ArgDef& arg : op.input_arg()) {
      const auto range = inputs.find(arg.name());
      if (IsListArg(arg) &&
          (range == inputs.end() || range->second.first == range->second.second)) {
        return false;
      }
    }
    return true;
  }

  absl::StatusOr<std::string> WrapperText(const NodeDef& def, const OpWrapper& wrapper,
                                          const std::string& scope,
                                          const std::vector<TensorId>& inputs,
                                          const NameRangeMap& ranges) const {
    std::vector<std::string> arguments = {scope};
    const OpDef& op = GlobalRegistry().FindOp(def.op())->def();
    for (size_t i = 0; i < wrapper.inputs().size(); ++i) {
      arguments.push_back(InputText(op.input_arg(static_cast<int>(i)), inputs, ranges));
    }
    for (const OpWrapper::Attribute& attr : wrapper.required()) {
      const auto value = def.attr().find(attr.name);
      if (value == def.attr().end()) return errors::InvalidArgument("no '", attr.name, "'");
      GRADFLOW_ASSIGN_OR_RETURN(std::string literal, AttrText(attr.def->type(), value->second));
      arguments.push_back(std::move(literal));
    }
    std::string attrs;
    for (const OpWrapper::Attribute& attr : wrapper.optional()) {
      const auto value = def.attr().find(attr.name);
      if (value == def.attr().end() ||
          AreAttrValuesEqual(value->second, attr.def->default_value())) {
        continue;
      }
      GRADFLOW_ASSIGN_OR_RETURN(const std::string literal,
                                AttrText(attr.def->type(), value->second));
      if (attrs.empty()) attrs = absl::StrCat("ops::", def.op(), "::Attrs()");
      absl::StrAppend(&attrs, ".", attr.setter, "(", literal, ")");
    }
    if (!attrs.empty()) arguments.push_back(std::move(attrs));
    const std::string head = absl::StrCat("ops::", def.op(), "(");
    const std::string line = absl::StrJoin(arguments, ", ");
    constexpr size_t kColumns = 92;
    return absl::StrCat(
        head,
        head.size() + line.size() < kColumns ? line : absl::StrJoin(arguments, ",\n          "),
        ")");
  }

  // Rejects values that have no literal here. For example, the class takes int for lists of
  // numbers.
  static absl::StatusOr<std::string> AttrText(const std::string& type, const AttrValue& value) {
    if (type == "list(int)") {
      for (const int64_t i : value.list().i()) {
        if (i != static_cast<int32_t>(i)) return errors::Unimplemented("a large number in a list");
      }
    }
    if (type == "list(shape)" || type == "list(bool)" || type == "list(tensor)") {
      return errors::Unimplemented("a list of this type");
    }
    if (type == "string" && value.s().find('\0') != std::string::npos) {
      return errors::Unimplemented("a string with zeros");
    }
    if (type == "list(string)") {
      for (const std::string& s : value.list().s()) {
        if (s.find('\0') != std::string::npos) return errors::Unimplemented("a string with zeros");
      }
    }
    GRADFLOW_ASSIGN_OR_RETURN(std::string text, CppLiteral(type, value));
    // Two question marks may begin a trigraph.
    if (absl::StrContains(type, "string")) {
      return absl::StrContains(text, "??") ? absl::StrReplaceAll(text, {{"?", "\\?"}}) : text;
    }
    return absl::StrReplaceAll(text, {{"::gradflow::", ""}});
  }

  std::string InputText(const OpDef::ArgDef& arg, const std::vector<TensorId>& inputs,
                        const NameRangeMap& ranges) const {
    const auto range = ranges.find(arg.name());
    std::vector<std::string> sources;
    for (int i = range->second.first; i < range->second.second; ++i) {
      sources.push_back(OutputText(inputs[i]));
    }
    if (!IsListArg(arg)) {
      // An object of a class with one output converts to this output.
      const CppVariable& variable = variables_.at(std::string(inputs[range->second.first].node));
      const bool is_output = variable.kind == CppVariable::Kind::kWrapper &&
                             variable.op->output_arg_size() == 1 &&
                             !variable.wrapper->outputs()[0].is_list;
      return is_output ? variable.name : sources[0];
    }
    return absl::StrCat("InputList(OutputList{", absl::StrJoin(sources, ", "), "})");
  }

  // Returns code that makes the node with OpBuilder, which takes all attributes as messages.
  std::string OpBuilderText(const NodeDef& def, const OpDef& op, const std::string& scope,
                            const std::vector<TensorId>& inputs, const NameRangeMap& ranges) {
    std::string text = absl::StrCat("OpBuilder(", scope, ", ", StringLiteral(def.op()), ")");
    for (const OpDef::ArgDef& arg : op.input_arg()) {
      absl::StrAppend(&text, "\n          .Input(", InputText(arg, inputs, ranges), ")");
    }
    std::map<absl::string_view, const AttrValue*> attrs;
    for (const auto& [name, value] : def.attr()) attrs.emplace(name, &value);
    for (const auto& [name, value] : attrs) {
      uses_messages_ = true;
      absl::StrAppend(&text, "\n          .Attr(", StringLiteral(name), ", Parse<AttrValue>(",
                      BytesLiteral(value->SerializeAsString()), "))  // ",
                      errors::Printable(SummarizeAttrValue(*value), 200));
    }
    return absl::StrCat(text, "\n          .Finish()");
  }

  const Graph& graph_;
  const InputSources& sources_;
  const absl::string_view title_;
  std::unordered_map<std::string, CppVariable> variables_;
  // The nodes that other nodes read. They need a variable.
  std::set<std::string> read_;
  std::set<std::string> names_;
  // The last number that was appended to a name.
  std::unordered_map<std::string, int> last_numbers_;
  std::set<std::string> groups_;
  std::string body_;
  bool uses_bytes_ = false;
  bool uses_messages_ = false;
};

}  // namespace

absl::StatusOr<std::string> CppProgram(const GraphDef& graph, absl::string_view title,
                                       const GraphLimits& limits) {
  Graph imported;
  ImportGraphDefOptions options;
  options.limits = limits;
  options.require_kernels = false;
  GRADFLOW_RETURN_IF_ERROR(ImportGraphDef(options, graph, &imported));
  // Nodes keep their order.
  const InputSources sources = FindSources(graph);
  return ProgramWriter(imported, sources, title).Write();
}

}  // namespace gradflow::tools
