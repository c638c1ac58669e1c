#include "gradflow/graph/import_limits.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "gradflow/core/status.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/tensor_proto.h"
#include "gradflow/core/tensor_shape.h"
#include "gradflow/graph/node_checks.h"
#include "gradflow/graph/protobuf_internals.h"
#include "gradflow/graph/tables.h"
#include "gradflow/proto/graph.pb.h"

namespace gradflow::internal {
namespace {

// The maximum nesting of functions in attributes of functions.
constexpr int kMaxFunctionDepth = 32;

absl::Status TooMany(absl::string_view what, int64_t found, int64_t limit, absl::string_view name) {
  return errors::InvalidArgument(what, ", found ", found, ", expected at most ", limit,
                                 " (GraphLimits::", name, ")");
}

TensorShape ShapeOf(const TensorProto& proto) {
  return TensorShape::Make(proto.tensor_shape()).value_or(TensorShape());
}

int64_t ListLength(const AttrValue::ListValue& list) {
  return int64_t{list.s_size()} + list.i_size() + list.f_size() + list.b_size() + list.type_size() +
         list.shape_size() + list.tensor_size() + list.func_size();
}

}  // namespace

absl::Status LimitChecks::CheckName(absl::string_view what, absl::string_view name) const {
  if (static_cast<int64_t>(name.size()) > options_.limits.max_name_bytes) {
    return errors::InvalidArgument(what, " ", Quoted(name), " has ", name.size(),
                                   " bytes, expected at most ", options_.limits.max_name_bytes,
                                   " (GraphLimits::max_name_bytes)");
  }
  if (!IsUtf8(name)) {
    return errors::InvalidArgument(what, " ", Quoted(name), " is not valid UTF-8");
  }
  return absl::OkStatus();
}

absl::Status LimitChecks::CheckGraph(const GraphDef& graph, const GraphDef& before) {
  for (const FunctionDef& function : graph.library().function()) {
    used_.function_nodes += function.node_def_size();
  }
  const int64_t nodes = used_.function_nodes + graph.node_size() + before.node_size();
  if (nodes > options_.limits.max_nodes) {
    return TooMany("the graph has too many nodes", nodes, options_.limits.max_nodes, "max_nodes");
  }
  // Counts functions that are in both twice, so the sum is an upper bound.
  const int64_t functions =
      int64_t{graph.library().function_size()} + before.library().function_size();
  if (functions > options_.limits.max_functions) {
    return TooMany("the graph has too many functions", functions, options_.limits.max_functions,
                   "max_functions");
  }
  if (before.node_size() > 0) {
    if (used_.graph_def_bytes == 0) {
      used_.graph_def_bytes = static_cast<int64_t>(before.ByteSizeLong());
    }
    used_.graph_def_bytes += static_cast<int64_t>(graph.ByteSizeLong());
    if (used_.graph_def_bytes > options_.limits.max_file_bytes) {
      return TooMany("the GraphDefs of the graph have too many bytes", used_.graph_def_bytes,
                     options_.limits.max_file_bytes, "max_file_bytes");
    }
  }
  return graph.has_library() ? CheckLibrary(graph.library()) : absl::OkStatus();
}

absl::Status LimitChecks::CheckTime() {
  if (options_.limits.deadline == std::chrono::steady_clock::time_point::max()) {
    return absl::OkStatus();
  }
  if (time_checks_++ % 64 != 0 || std::chrono::steady_clock::now() < options_.limits.deadline) {
    return absl::OkStatus();
  }
  return absl::DeadlineExceededError("the time for the import is over (GraphLimits::deadline)");
}

absl::Status LimitChecks::CheckShapeBytes(int64_t bytes) const {
  if (bytes <= options_.limits.max_shape_bytes) return absl::OkStatus();
  return errors::InvalidArgument("with this node, the inferred shapes of the graph have ", bytes,
                                 " bytes, expected at most ", options_.limits.max_shape_bytes,
                                 " (GraphLimits::max_shape_bytes)");
}

absl::Status LimitChecks::CheckNode(const NodeDef& node) const {
  const GraphLimits& limits = options_.limits;
  GRADFLOW_RETURN_IF_ERROR(CheckName("the name", node.name()));
  GRADFLOW_RETURN_IF_ERROR(CheckName("the op", node.op()));
  GRADFLOW_RETURN_IF_ERROR(CheckName("the device", node.device()));
  if (node.input_size() > limits.max_inputs) {
    return TooMany("the node has too many inputs", node.input_size(), limits.max_inputs,
                   "max_inputs");
  }
  if (node.attr_size() > limits.max_attrs) {
    return TooMany("the node has too many attributes", node.attr_size(), limits.max_attrs,
                   "max_attrs");
  }
  return absl::OkStatus();
}

absl::Status LimitChecks::CountListOutputs(int outputs) {
  used_.list_outputs += outputs;
  if (used_.list_outputs <= options_.limits.max_list_outputs) return absl::OkStatus();
  return errors::InvalidArgument("with this node, the list outputs of the graph have ",
                                 used_.list_outputs, " elements, expected at most ",
                                 options_.limits.max_list_outputs,
                                 " (GraphLimits::max_list_outputs)");
}

absl::Status LimitChecks::CheckAttrs(const NodeDef& node) {
  for (const auto& [name, value] : node.attr()) {
    GRADFLOW_RETURN_IF_ERROR(CheckName("the name of attribute", name));
    // No op definition has attributes with such names.
    const bool is_extra = absl::StartsWith(name, "_");
    GRADFLOW_RETURN_IF_ERROR(
        CheckValue(name, value, is_extra ? Tensors::kUnknown : Tensors::kValid, 0));
  }
  return absl::OkStatus();
}

absl::Status LimitChecks::CheckFloat(absl::string_view name, float value) const {
  if (!std::isnan(value) || options_.allow_nan_attributes) return absl::OkStatus();
  return errors::InvalidArgument("attribute ", Quoted(name),
                                 " is NaN, expected a number "
                                 "(ImportGraphDefOptions::allow_nan_attributes)");
}

absl::Status LimitChecks::AddTensor(absl::string_view name, const TensorProto& tensor,
                                    Tensors tensors) {
  if (tensors == Tensors::kUnknown) {
    const absl::Status status = ValidateTensorProto(tensor);
    if (!status.ok()) {
      return errors::Prefix(absl::StrCat("attribute ", Quoted(name), ": "), status);
    }
  }
  const int64_t bytes = TensorProtoBytes(tensor);
  const int64_t left = options_.limits.max_constant_bytes - used_.constant_bytes;
  if (bytes >= 0 && bytes <= left) {
    used_.constant_bytes += bytes;
    return absl::OkStatus();
  }
  return errors::InvalidArgument(
      "attribute ", Quoted(name), " is a tensor of type ", DataTypeString(tensor.dtype()),
      " and shape ", ShapeOf(tensor).DebugString(), ", with ",
      bytes < 0 ? "more bytes than an int64 counts" : absl::StrCat(bytes, " bytes"),
      ", but the constants of a graph have at most ", options_.limits.max_constant_bytes,
      " together (GraphLimits::max_constant_bytes), of which ", left, " are left");
}

absl::Status LimitChecks::CheckFunctionValue(absl::string_view name, const NameAttrList& function,
                                             Tensors tensors, int depth) {
  if (depth >= kMaxFunctionDepth) {
    return errors::InvalidArgument("attribute ", Quoted(name),
                                   ": functions in attributes of functions are nested deeper "
                                   "than ",
                                   kMaxFunctionDepth, " levels");
  }
  for (const auto& [inner_name, inner] : function.attr()) {
    GRADFLOW_RETURN_IF_ERROR(CheckValue(name, inner, tensors, depth + 1));
  }
  return absl::OkStatus();
}

absl::Status LimitChecks::CheckValue(absl::string_view name, const AttrValue& value,
                                     Tensors tensors, int depth) {
  switch (value.value_case()) {
    case AttrValue::kF:
      return CheckFloat(name, value.f());
    case AttrValue::kTensor:
      return AddTensor(name, value.tensor(), tensors);
    case AttrValue::kFunc:
      return CheckFunctionValue(name, value.func(), tensors, depth);
    case AttrValue::kList:
      break;
    default:
      return absl::OkStatus();
  }
  const AttrValue::ListValue& list = value.list();
  if (ListLength(list) > options_.limits.max_list_length) {
    return TooMany(absl::StrCat("the list of attribute ", Quoted(name), " is too long"),
                   ListLength(list), options_.limits.max_list_length, "max_list_length");
  }
  for (const float number : list.f()) GRADFLOW_RETURN_IF_ERROR(CheckFloat(name, number));
  for (const TensorProto& tensor : list.tensor()) {
    GRADFLOW_RETURN_IF_ERROR(AddTensor(name, tensor, tensors));
  }
  for (const NameAttrList& function : list.func()) {
    GRADFLOW_RETURN_IF_ERROR(CheckFunctionValue(name, function, tensors, depth));
  }
  return absl::OkStatus();
}

absl::Status LimitChecks::CheckLibrary(const FunctionDefLibrary& library) {
  HashSet<absl::string_view> names;
  for (int i = 0; i < library.function_size(); ++i) {
    const FunctionDef& function = library.function(i);
    const std::string& name = function.signature().name();
    if (name.empty()) {
      return errors::InvalidArgument("function ", i, " of the graph has no name");
    }
    GRADFLOW_RETURN_IF_ERROR(CheckName("the name of function", name));
    if (!names.insert(name).second) {
      return errors::InvalidArgument("function ", Quoted(name),
                                     ": another function has the same name");
    }
    const absl::Status status = CheckFunction(function);
    if (!status.ok()) return errors::Prefix(absl::StrCat("function ", Quoted(name), ": "), status);
  }
  return absl::OkStatus();
}

absl::Status LimitChecks::CheckFunction(const FunctionDef& function) {
  GRADFLOW_RETURN_IF_ERROR(CheckSignature(function.signature()));
  GRADFLOW_RETURN_IF_ERROR(CheckFunctionAttrs(function.attr()));
  for (const auto& [index, argument] : function.arg_attr()) {
    GRADFLOW_RETURN_IF_ERROR(errors::Prefix(absl::StrCat("argument ", index, ": "),
                                            CheckFunctionAttrs(argument.attr())));
  }
  GRADFLOW_RETURN_IF_ERROR(CheckResults("result", function.ret()));
  GRADFLOW_RETURN_IF_ERROR(CheckResults("control output", function.control_ret()));
  HashSet<absl::string_view> names;
  for (int i = 0; i < function.node_def_size(); ++i) {
    const NodeDef& node = function.node_def(i);
    if (node.name().empty()) return errors::InvalidArgument("its node ", i, " has no name");
    const auto check = [&]() -> absl::Status {
      GRADFLOW_RETURN_IF_ERROR(CheckNode(node));
      // TensorFlow's own passes begin some names in functions with '_'.
      GRADFLOW_RETURN_IF_ERROR(CheckNodeName(absl::StripPrefix(node.name(), "_")));
      if (node.op().empty()) return errors::InvalidArgument("the node has no op");
      if (!names.insert(node.name()).second) {
        return errors::InvalidArgument("another node has the same name");
      }
      for (const std::string& input : node.input()) {
        if (input.empty()) return errors::InvalidArgument("the name of an input is empty");
        GRADFLOW_RETURN_IF_ERROR(CheckName("the input", input));
      }
      return CheckFunctionAttrs(node.attr());
    };
    GRADFLOW_RETURN_IF_ERROR(errors::Prefix(NodePrefix(node), check()));
  }
  return absl::OkStatus();
}

absl::Status LimitChecks::CheckSignature(const OpDef& signature) {
  GRADFLOW_RETURN_IF_ERROR(CheckDeclared("attribute", signature.attr()));
  GRADFLOW_RETURN_IF_ERROR(CheckDeclared("argument", signature.input_arg()));
  GRADFLOW_RETURN_IF_ERROR(CheckDeclared("result", signature.output_arg()));
  for (const std::string& name : signature.control_output()) {
    GRADFLOW_RETURN_IF_ERROR(CheckName("the name of control output", name));
  }
  for (const OpDef::AttrDef& attr : signature.attr()) {
    for (const AttrValue* value : {&attr.default_value(), &attr.allowed_values()}) {
      GRADFLOW_RETURN_IF_ERROR(errors::Prefix(
          "in its signature: ", CheckValue(attr.name(), *value, Tensors::kUnknown, 0)));
    }
  }
  return absl::OkStatus();
}

template <typename Messages>
absl::Status LimitChecks::CheckDeclared(absl::string_view what, const Messages& messages) const {
  HashSet<absl::string_view> names;
  for (const auto& message : messages) {
    GRADFLOW_RETURN_IF_ERROR(CheckName(absl::StrCat("the name of ", what), message.name()));
    if (!names.insert(message.name()).second) {
      return errors::InvalidArgument(what, " ", Quoted(message.name()), " is declared twice");
    }
  }
  return absl::OkStatus();
}

template <typename Attrs>
absl::Status LimitChecks::CheckFunctionAttrs(const Attrs& attrs) {
  for (const auto& [name, value] : attrs) {
    if (name.empty()) return errors::InvalidArgument("an attribute has no name");
    GRADFLOW_RETURN_IF_ERROR(CheckName("the name of attribute", name));
    GRADFLOW_RETURN_IF_ERROR(CheckValue(name, value, Tensors::kUnknown, 0));
  }
  return absl::OkStatus();
}

absl::Status LimitChecks::CheckUnknownAttrs(const NodeDef& node) {
  return CheckFunctionAttrs(node.attr());
}

template <typename Results>
absl::Status LimitChecks::CheckResults(absl::string_view what, const Results& results) const {
  for (const auto& [name, source] : results) {
    GRADFLOW_RETURN_IF_ERROR(CheckName(absl::StrCat("the name of its ", what), name));
    if (source.empty()) {
      return errors::InvalidArgument("the source of its ", what, " ", Quoted(name), " is empty");
    }
    GRADFLOW_RETURN_IF_ERROR(CheckName(absl::StrCat("the source of its ", what), source));
  }
  return absl::OkStatus();
}

}  // namespace gradflow::internal
