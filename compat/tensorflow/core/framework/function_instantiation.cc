// Instances of functions: their nodes, text, hashes and call frames.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "gradflow/core/op_def_util.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/op_def_util.h"
#include "tensorflow/core/framework/resource_handle.h"
#include "tensorflow/core/lib/hash/hash.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/util/device_name_utils.h"
#include "tensorflow/core/util/equal_graph_def.h"

namespace tensorflow {
namespace {

// Limits for an instance. A node of a few bytes may have a list of many outputs, and a placeholder
// may expand to a long attribute.
constexpr int64_t kMaxTensors = 1048576;
constexpr size_t kMaxBytes = size_t{1} << 28;

// ---- Text ----

std::string Text(const AttrValue& value, bool hash_strings = false) {
  switch (value.value_case()) {
    case AttrValue::kType:
      return DataTypeString(value.type());
    case AttrValue::kFunc: {
      // Sorted by name.
      std::map<std::string, std::string> attrs;
      for (const auto& [name, attr] : value.func().attr()) attrs[name] = Text(attr);
      if (attrs.empty()) return value.func().name();
      return absl::StrCat(value.func().name(), "[",
                          absl::StrJoin(attrs, ", ", absl::PairFormatter("=")), "]");
    }
    case AttrValue::kList:
      if (value.list().type_size() > 0) {
        return absl::StrCat(
            "{",
            absl::StrJoin(value.list().type(), ", ",
                          [](std::string* out, int type) {
                            out->append(DataTypeString(static_cast<DataType>(type)));
                          }),
            "}");
      }
      break;
    case AttrValue::kS:
      if (hash_strings) return absl::StrCat(Hash64(value.s()));
      break;
    default:
      break;
  }
  return SummarizeAttrValue(value);
}

std::string Text(const OpDef::ArgDef& arg) {
  std::string type =
      arg.type() != DT_INVALID ? DataTypeString(arg.type()) : std::string(arg.type_attr());
  if (type.empty()) type = arg.type_list_attr();
  if (!arg.number_attr().empty()) type = absl::StrCat(arg.number_attr(), "*", type);
  return arg.is_ref() ? absl::StrCat(arg.name(), ":Ref(", type, ")")
                      : absl::StrCat(arg.name(), ":", type);
}

std::string ArgsText(const protobuf::RepeatedPtrField<OpDef::ArgDef>& args) {
  return absl::StrJoin(args, ", ",
                       [](std::string* out, const OpDef::ArgDef& arg) { out->append(Text(arg)); });
}

// Returns the type and the number of a device, such as "CPU:0".
std::string ShortDevice(const std::string& device) {
  DeviceNameUtils::ParsedName parsed;
  if (!DeviceNameUtils::ParseFullName(device, &parsed)) return "<FAILED_TO_PARSE>";
  return absl::StrCat(parsed.type, ":", parsed.id);
}

// Returns "name = Op[attributes](inputs) @ control inputs".
std::string Text(const NodeDef& node) {
  std::vector<std::string> attrs;
  for (const auto& [name, value] : node.attr()) {
    attrs.push_back(absl::StrCat(name, "=", Text(value)));
  }
  std::sort(attrs.begin(), attrs.end());
  if (!attrs.empty() && !node.device().empty()) {
    attrs.push_back(absl::StrCat("device=", ShortDevice(node.device())));
  }
  std::vector<absl::string_view> inputs, controls;
  for (absl::string_view input : node.input()) {
    (absl::ConsumePrefix(&input, "^") ? controls : inputs).push_back(input);
  }
  std::string text = absl::StrCat(node.name(), " = ", node.op());
  if (!attrs.empty()) absl::StrAppend(&text, "[", absl::StrJoin(attrs, ", "), "]");
  absl::StrAppend(&text, "(", absl::StrJoin(inputs, ", "), ")");
  if (!controls.empty()) absl::StrAppend(&text, " @ ", absl::StrJoin(controls, ", "));
  return text;
}

bool IsArg(const NodeDef& node) {
  return node.op() == FunctionLibraryDefinition::kArgOp ||
         node.op() == FunctionLibraryDefinition::kDeviceArgOp;
}
bool IsRet(const NodeDef& node) {
  return node.op() == FunctionLibraryDefinition::kRetOp ||
         node.op() == FunctionLibraryDefinition::kDeviceRetOp;
}

template <typename Nodes>
std::string InstanceText(const Nodes& nodes) {
  // Arguments and results by index.
  std::multimap<int, std::string> args, results;
  std::string body;
  for (const NodeDef& node : nodes) {
    if (!IsArg(node) && !IsRet(node)) {
      absl::StrAppend(&body, "  ", Text(node), "\n");
      continue;
    }
    int index = 0;
    DataType dtype = DT_INVALID;
    TryGetNodeAttr(node, "index", &index);
    // GetNodeAttr rejects reference types.
    if (const AttrValue* const type = AttrSlice(node).Find("T")) dtype = type->type();
    const std::string& name = IsArg(node) || node.input_size() == 0 ? node.name() : node.input(0);
    std::string text = absl::StrCat(name, ":", DataTypeString(dtype));
    if (!node.device().empty()) absl::StrAppend(&text, "@", ShortDevice(node.device()));
    (IsArg(node) ? args : results).emplace(index, std::move(text));
  }
  const auto second = [](std::string* out, const auto& pair) { out->append(pair.second); };
  return absl::StrCat("\n(", absl::StrJoin(args, ", ", second), ") -> (",
                      absl::StrJoin(results, ", ", second), ") {\n", body, "}\n");
}

// ---- Instances ----

// Stores the types of the tensors of an argument.
absl::Status TypesOf(const OpDef::ArgDef& arg, AttrSlice attrs, DataTypeVector* types) {
  const auto find = [&](const char* kind, const std::string& name, const AttrValue** value) {
    *value = attrs.Find(name);
    return *value != nullptr ? absl::OkStatus()
                             : absl::Status(errors::NotFound(kind, " attr not found: ", name));
  };
  const AttrValue* value = nullptr;
  types->clear();
  if (!arg.type_list_attr().empty()) {
    TF_RETURN_IF_ERROR(find("type list", arg.type_list_attr(), &value));
    for (const int type : value->list().type()) types->push_back(static_cast<DataType>(type));
    return absl::OkStatus();
  }
  int64_t number = 1;
  if (!arg.number_attr().empty()) {
    TF_RETURN_IF_ERROR(find("number", arg.number_attr(), &value));
    number = value->i();
    if (number < 0 || number > kMaxTensors) {
      return errors::InvalidArgument("argument '", arg.name(), "' is a list of ", number,
                                     " tensors, expected 0 to ", kMaxTensors);
    }
  }
  DataType type = arg.type();
  if (!arg.type_attr().empty()) {
    TF_RETURN_IF_ERROR(find("type", arg.type_attr(), &value));
    type = value->type();
  }
  types->resize(static_cast<size_t>(number), type);
  return absl::OkStatus();
}

absl::Status CheckAttrs(const OpDef& signature, AttrSlice attrs) {
  for (const OpDef::AttrDef& attr : signature.attr()) {
    const AttrValue* const value = attrs.Find(attr.name());
    if (value == nullptr && !attr.has_default_value()) {
      return errors::NotFound("Attr ", attr.name(), " is not found from ",
                              SummarizeOpDef(signature));
    }
    if (value == nullptr) continue;
    absl::Status status = AttrValueHasType(*value, attr.type());
    errors::AppendToMessage(&status, "for attr '", attr.name(), "'");
    TF_RETURN_IF_ERROR(status);
  }
  return absl::OkStatus();
}

// Creates the nodes of an instance.
class Instance {
 public:
  Instance(const FunctionDef& function, AttrSlice attrs, const GetFunctionSignature& get_function,
           InstantiationResult* result)
      : function_(function),
        attrs_(attrs),
        get_function_(get_function),
        result_(*result),
        ints_on_device_(IsSet(AttrSlice(&function.attr())) || IsSet(attrs)) {}

  absl::Status Make() {
    const OpDef& signature = function_.signature();
    for (int i = 0; i < signature.input_arg_size(); ++i) {
      TF_RETURN_IF_ERROR(
          In(Text(signature.input_arg(i)), AddArg(signature.input_arg(i), static_cast<uint32>(i))));
    }
    bodies_.assign(function_.node_def().begin(), function_.node_def().end());
    for (NodeDef& node : bodies_) TF_RETURN_IF_ERROR(Bind(&node));
    for (const NodeDef& node : bodies_) {
      TF_RETURN_IF_ERROR(In(FormatNodeDefForError(node), AddOutputs(node)));
    }
    for (NodeDef& node : bodies_) {
      TF_RETURN_IF_ERROR(In(FormatNodeDefForError(node), ConnectInputs(&node)));
      result_.nodes.push_back(std::move(node));
    }
    for (const OpDef::ArgDef& ret : signature.output_arg()) {
      TF_RETURN_IF_ERROR(In(absl::StrCat("function output ", Text(ret)), AddRet(ret)));
    }
    return absl::OkStatus();
  }

 private:
  // The approximate number of bytes that the tables need for a tensor, and for the node of an
  // argument or result, without names.
  static constexpr size_t kBytesOfATensor = 256;
  static constexpr size_t kBytesOfANode = 512;

  // One or more tensors: their types, and the names of inputs that read them.
  struct Tensors {
    std::vector<std::string> inputs;
    DataTypeVector types;
  };

  static bool IsSet(AttrSlice attrs) {
    const AttrValue* const value = attrs.Find(FunctionLibraryDefinition::kIntsOnDeviceAttr);
    return value != nullptr && value->b();
  }
  static absl::Status In(const std::string& where, absl::Status status) {
    errors::AppendToMessage(&status, "In ", where);
    return status;
  }

  absl::Status Charge(size_t bytes) {
    bytes_ += std::min(bytes, kMaxBytes);
    if (bytes_ < kMaxBytes) return absl::OkStatus();
    return errors::ResourceExhausted("the instance of function '", function_.signature().name(),
                                     "' needs more than ", kMaxBytes, " bytes");
  }

  // Names the tensors of an argument or output, both individually and together.
  absl::Status Name(const char* kind, const std::string& name, Tensors tensors) {
    TF_RETURN_IF_ERROR(Charge((tensors.types.size() + 1) * (2 * name.size() + kBytesOfATensor)));
    bool is_new = true;
    for (size_t i = 0; i < tensors.types.size(); ++i) {
      is_new &= tensors_
                    .try_emplace(absl::StrCat(name, ":", i),
                                 Tensors{{tensors.inputs[i]}, {tensors.types[i]}})
                    .second;
    }
    is_new &= tensors_.try_emplace(name, std::move(tensors)).second;
    return is_new ? absl::OkStatus()
                  : absl::Status(errors::InvalidArgument("Duplicated ", kind, " name: ", name));
  }

  // Adds the node of an argument or result.
  NodeDef* AddEnd(const char* op, const char* op_on_device, const OpDef::ArgDef& arg, DataType type,
                  std::string name, int index) {
    NodeDef* const node = &result_.nodes.emplace_back();
    node->set_name(std::move(name));
    node->set_op(ints_on_device_ && type == DT_INT32 ? op_on_device : op);
    AddNodeAttr("T", arg.is_ref() ? MakeRefType(type) : type, node);
    AddNodeAttr("index", index, node);
    return node;
  }

  absl::Status AddArg(const OpDef::ArgDef& arg, uint32 index) {
    Tensors tensors;
    TF_RETURN_IF_ERROR(TypesOf(arg, attrs_, &tensors.types));
    if (tensors.types.empty()) return errors::Internal("Expected a list of at least one dtype");
    const size_t count = tensors.types.size();
    const auto arg_attrs = function_.arg_attr().find(index);
    const bool has_attrs = arg_attrs != function_.arg_attr().end();
    const size_t node_bytes =
        kBytesOfANode + arg.name().size() + (has_attrs ? arg_attrs->second.ByteSizeLong() : 0);
    for (size_t i = 0; i < count; ++i) {
      TF_RETURN_IF_ERROR(Charge(node_bytes));
      const DataType type = tensors.types[i];
      if (arg.is_ref() && IsRefType(type)) {
        return errors::InvalidArgument("Cannot make a ref type for a ref type ",
                                       DataTypeString(type));
      }
      NodeDef* const node =
          AddEnd(FunctionLibraryDefinition::kArgOp, FunctionLibraryDefinition::kDeviceArgOp, arg,
                 type, count == 1 ? arg.name() : absl::StrCat(arg.name(), "_", i),
                 static_cast<int>(result_.arg_types.size()));
      const auto id = function_.resource_arg_unique_id().find(index);
      if (id != function_.resource_arg_unique_id().end()) {
        AddNodeAttr("_resource_arg_unique_id", static_cast<int64_t>(id->second), node);
      }
      if (has_attrs) {
        for (const auto& [name, value] : arg_attrs->second.attr()) {
          (*node->mutable_attr())[name] = value;
        }
      }
      result_.arg_types.push_back(type);
      tensors.inputs.push_back(node->name());
    }
    nodes_.try_emplace(arg.name(), tensors.inputs[0]);
    return Name("arg", arg.name(), std::move(tensors));
  }

  // Replaces placeholders, and sets missing attributes to their defaults.
  absl::Status Bind(NodeDef* node) {
    absl::Status status;
    const auto substitute = [&](const std::string& name, AttrValue* value) {
      const AttrValue* found = attrs_.Find(name);
      if (found == nullptr) {
        const OpDef::AttrDef* const attr = FindAttr(name, function_.signature());
        if (attr == nullptr || !attr->has_default_value()) return false;
        found = &attr->default_value();
      }
      status = Charge(found->ByteSizeLong());
      if (!status.ok()) return false;
      *value = *found;
      return true;
    };
    for (auto& [name, value] : *node->mutable_attr()) {
      if (!SubstitutePlaceholders(substitute, &value)) {
        TF_RETURN_IF_ERROR(status);
        return errors::InvalidArgument("Failed to bind all placeholders in ",
                                       SummarizeAttrValue(value));
      }
    }
    const OpDef* op = nullptr;
    TF_RETURN_IF_ERROR(get_function_(node->op(), &op));
    for (const OpDef::AttrDef& attr : op->attr()) {
      if (attr.has_default_value() && node->attr().count(attr.name()) == 0) {
        TF_RETURN_IF_ERROR(Charge(attr.default_value().ByteSizeLong()));
      }
    }
    gradflow::AddDefaultsToNodeDef(*op, node);
    return absl::OkStatus();
  }

  absl::Status AddOutputs(const NodeDef& node) {
    if (!nodes_.try_emplace(node.name(), node.name()).second) {
      return errors::InvalidArgument("Duplicated ret name: ", node.name());
    }
    const OpDef* op = nullptr;
    TF_RETURN_IF_ERROR(get_function_(node.op(), &op));
    int index = 0;
    for (const OpDef::ArgDef& output : op->output_arg()) {
      Tensors tensors;
      TF_RETURN_IF_ERROR(TypesOf(output, node, &tensors.types));
      for (size_t i = 0; i < tensors.types.size(); ++i, ++index) {
        tensors.inputs.push_back(index == 0 ? node.name() : absl::StrCat(node.name(), ":", index));
      }
      TF_RETURN_IF_ERROR(
          Name("ret", absl::StrCat(node.name(), ":", output.name()), std::move(tensors)));
    }
    return absl::OkStatus();
  }

  // Converts the inputs to the form of a graph.
  absl::Status ConnectInputs(NodeDef* node) {
    const OpDef* op = nullptr;
    TF_RETURN_IF_ERROR(get_function_(node->op(), &op));
    std::vector<std::string> inputs;
    int next = 0;
    for (const OpDef::ArgDef& arg : op->input_arg()) {
      DataTypeVector types;
      TF_RETURN_IF_ERROR(TypesOf(arg, *node, &types));
      for (size_t filled = 0; filled < types.size(); ++next) {
        if (next >= node->input_size()) {
          return errors::InvalidArgument("Attempt to access beyond input size: ", next,
                                         " >= ", node->input_size());
        }
        const std::string& name = node->input(next);
        const auto found = tensors_.find(name);
        if (found == tensors_.end()) {
          return errors::InvalidArgument("input ", name,
                                         " is not found: ", FormatNodeDefForError(*node));
        }
        const Tensors& tensors = found->second;
        if (tensors.types.size() > types.size() - filled) {
          return errors::InvalidArgument("Input ", name, " too long for ", arg.name());
        }
        for (size_t k = 0; k < tensors.types.size(); ++k, ++filled) {
          if (tensors.types[k] != types[filled]) {
            return errors::InvalidArgument("input ", arg.name(), "[", filled, "] expected type ",
                                           DataTypeString(types[filled]),
                                           " != ", DataTypeString(tensors.types[k]),
                                           ", the type of ", name, "[", k, "]");
          }
          // Counted twice, in `inputs` and in the node.
          TF_RETURN_IF_ERROR(Charge(2 * (sizeof(std::string) + tensors.inputs[k].size())));
          inputs.push_back(tensors.inputs[k]);
        }
      }
    }
    for (; next < node->input_size(); ++next) {
      absl::string_view name = node->input(next);
      if (!absl::ConsumePrefix(&name, "^")) {
        return errors::InvalidArgument("Expected input[", next, "] == '", name,
                                       "' to be a control input.");
      }
      const auto found = nodes_.find(std::string(name));
      if (found == nodes_.end()) {
        return errors::InvalidArgument("input[", next, "] == '^", name, "', is not found.");
      }
      inputs.push_back(absl::StrCat("^", found->second));
    }
    node->clear_input();
    for (std::string& input : inputs) node->add_input(std::move(input));
    return absl::OkStatus();
  }

  absl::Status AddRet(const OpDef::ArgDef& ret) {
    const auto name = function_.ret().find(ret.name());
    if (name == function_.ret().end()) {
      return errors::InvalidArgument("Return ", ret.name(), " missing.");
    }
    DataTypeVector types;
    TF_RETURN_IF_ERROR(TypesOf(ret, attrs_, &types));
    const auto found = tensors_.find(name->second);
    if (found == tensors_.end()) {
      return errors::InvalidArgument("Return ", ret.name(), " -> ", name->second, " is not found.");
    }
    const Tensors& tensors = found->second;
    if (types != tensors.types) {
      return errors::InvalidArgument("Invalid ret types ", ret.name(), " : ",
                                     DataTypeVectorString(types), " vs. ",
                                     DataTypeVectorString(tensors.types));
    }
    for (size_t i = 0; i < types.size(); ++i) {
      TF_RETURN_IF_ERROR(Charge(kBytesOfANode + ret.name().size() + tensors.inputs[i].size()));
      std::string node_name = absl::StrCat(ret.name(), "_RetVal");
      if (types.size() > 1) absl::StrAppend(&node_name, "_", i);
      AddEnd(FunctionLibraryDefinition::kRetOp, FunctionLibraryDefinition::kDeviceRetOp, ret,
             types[i], std::move(node_name), static_cast<int>(result_.ret_types.size()))
          ->add_input(tensors.inputs[i]);
      result_.ret_types.push_back(types[i]);
    }
    return absl::OkStatus();
  }

  const FunctionDef& function_;
  const AttrSlice attrs_;
  const GetFunctionSignature& get_function_;
  InstantiationResult& result_;
  const bool ints_on_device_;
  size_t bytes_ = 0;
  // The nodes of the function with unmodified attributes.
  std::vector<NodeDef> bodies_;
  // The key is the name in the function: "argument", "argument:i", "node:output" or
  // "node:output:i".
  std::map<std::string, Tensors> tensors_;
  // The nodes of the instance, by the names of the function's arguments and nodes.
  std::map<std::string, std::string> nodes_;
};

// ---- Comparisons ----

// Returns the entries that have values, sorted by name.
template <typename Map>
auto Sorted(const Map& map) {
  std::map<std::string, typename Map::mapped_type> sorted(map.begin(), map.end());
  if constexpr (std::is_same_v<typename Map::mapped_type, AttrValue>) {
    for (auto it = sorted.begin(); it != sorted.end();) {
      it = it->second.value_case() == AttrValue::VALUE_NOT_SET ? sorted.erase(it) : std::next(it);
    }
  }
  return sorted;
}

}  // namespace

absl::Status InstantiateFunction(const FunctionDef& fdef, AttrSlice attrs,
                                 const GetFunctionSignature& get_function,
                                 InstantiationResult* result) {
  TF_RETURN_IF_ERROR(CheckAttrs(fdef.signature(), attrs));
  *result = InstantiationResult();
  return Instance(fdef, attrs, get_function, result).Make();
}

std::string DebugString(const FunctionDef& func_def) {
  const OpDef& signature = func_def.signature();
  std::string text = absl::StrCat("\n", signature.name());
  if (signature.attr_size() > 0) {
    absl::StrAppend(&text, "[",
                    absl::StrJoin(signature.attr(), ", ",
                                  [](std::string* out, const OpDef::AttrDef& attr) {
                                    absl::StrAppend(out, attr.name(), ":",
                                                    attr.type() == "type"
                                                        ? Text(attr.allowed_values())
                                                        : attr.type());
                                  }),
                    "]");
  }
  absl::StrAppend(&text, "(", ArgsText(signature.input_arg()), ") -> (",
                  ArgsText(signature.output_arg()), ") {\n");
  for (const NodeDef& node : func_def.node_def()) absl::StrAppend(&text, "  ", Text(node), "\n");
  for (const auto& [name, node] : Sorted(func_def.control_ret())) {
    absl::StrAppend(&text, "  @return ", name, " = ", node, "\n");
  }
  for (const auto& [name, value] : Sorted(func_def.ret())) {
    absl::StrAppend(&text, "  return ", name, " = ", value, "\n");
  }
  return absl::StrCat(text, "}\n");
}

std::string DebugString(const GraphDef& instantiated_func_def) {
  return InstanceText(instantiated_func_def.node());
}

std::string DebugString(gtl::ArraySlice<NodeDef> instantiated_func_nodes) {
  return InstanceText(instantiated_func_nodes);
}

std::string DebugStringWhole(const GraphDef& gdef) {
  std::string text;
  for (const FunctionDef& function : gdef.library().function()) text += DebugString(function);
  text += "\n";
  for (const NodeDef& node : gdef.node()) absl::StrAppend(&text, Text(node), "\n");
  return text;
}

bool FunctionDefsEqual(const FunctionDef& f1, const FunctionDef& f2) {
  const auto attrs1 = Sorted(f1.attr());
  const auto attrs2 = Sorted(f2.attr());
  return OpDefEqual(f1.signature(), f2.signature()) &&
         std::equal(attrs1.begin(), attrs1.end(), attrs2.begin(), attrs2.end(),
                    [](const auto& a, const auto& b) {
                      return a.first == b.first && AreAttrValuesEqual(a.second, b.second);
                    }) &&
         EqualRepeatedNodeDef(f1.node_def(), f2.node_def(), nullptr) &&
         Sorted(f1.ret()) == Sorted(f2.ret()) &&
         Sorted(f1.control_ret()) == Sorted(f2.control_ret());
}

uint64 FunctionDefHash(const FunctionDef& fdef) {
  uint64 hash = Hash64Combine(OpDefHash(fdef.signature()), RepeatedNodeDefHash(fdef.node_def()));
  for (const auto& [name, value] : Sorted(fdef.attr())) {
    hash = Hash64Combine(AttrValueHash(value), Hash64(name.data(), name.size(), hash));
  }
  for (const auto* const results : {&fdef.ret(), &fdef.control_ret()}) {
    for (const auto& [name, value] : Sorted(*results)) {
      hash = Hash64(name.data(), name.size(), hash);
      hash = Hash64(value.data(), value.size(), hash);
    }
  }
  return hash;
}

bool CallFrameInterface::CanConsumeArg(int /*index*/) const { return false; }

void CallFrameInterface::ConsumeArg(int index, Tensor* /*val*/) {
  LOG(ERROR) << "argument " << index << " cannot be moved out of this call frame";
}

absl::Status FunctionCallFrame::SetArgs(gtl::ArraySlice<Tensor> args) {
  if (args.size() != arg_types_.size()) {
    return errors::InvalidArgument("Expects ", arg_types_.size(), " arguments, but ", args.size(),
                                   " is provided");
  }
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i].dtype() == arg_types_[i]) continue;
    return errors::InvalidArgument("Expects arg[", i, "] to be ", DataTypeString(arg_types_[i]),
                                   " but ", DataTypeString(args[i].dtype()), " is provided");
  }
  args_.assign(args.begin(), args.end());
  return absl::OkStatus();
}

absl::Status FunctionCallFrame::GetRetvals(std::vector<Tensor>* rets) const {
  rets->clear();
  for (size_t i = 0; i < results_.size(); ++i) {
    if (!results_[i].has_value()) {
      return errors::Internal("Retval[", i, "] does not have value");
    }
    rets->push_back(*results_[i]);
  }
  return absl::OkStatus();
}

absl::Status FunctionCallFrame::ConsumeRetvals(std::vector<Tensor>* rets, bool allow_dead_tensors) {
  rets->clear();
  for (size_t i = 0; i < results_.size(); ++i) {
    if (results_[i].has_value()) {
      rets->push_back(std::move(*results_[i]));
    } else if (allow_dead_tensors) {
      rets->emplace_back(Tensor::Unset());
    } else {
      return errors::Internal("Retval[", i, "] does not have value");
    }
  }
  return absl::OkStatus();
}

absl::Status FunctionCallFrame::GetArg(int index, const Tensor** val) {
  if (index < 0 || static_cast<size_t>(index) >= args_.size()) {
    return errors::InvalidArgument("GetArg ", index, " is not within [0, ", args_.size(), ")");
  }
  *val = &args_[static_cast<size_t>(index)];
  return absl::OkStatus();
}

absl::Status FunctionCallFrame::SetRetval(int index, const Tensor& val) {
  if (index < 0 || static_cast<size_t>(index) >= results_.size()) {
    return errors::InvalidArgument("SetRetval ", index, " is not within [0, ", results_.size(),
                                   ")");
  }
  const size_t i = static_cast<size_t>(index);
  if (val.dtype() != ret_types_[i]) {
    return errors::InvalidArgument("Expects ret[", index, "] to be ", DataTypeString(ret_types_[i]),
                                   ", but ", DataTypeString(val.dtype()), " is provided.");
  }
  if (results_[i].has_value()) {
    return errors::Internal("Retval[", index, "] has already been set.");
  }
  results_[i] = val;
  return absl::OkStatus();
}

std::string Canonicalize(const std::string& funcname, AttrSlice attrs,
                         const FunctionLibraryRuntime::InstantiateOptions& options) {
  constexpr char kExecutorAttr[] = "_executor";
  // Values by name and number, so that number 10 follows number 2.
  std::multimap<std::pair<std::string, int>, std::string> entries;
  const auto add = [&](std::string name, int number, std::string value) {
    entries.emplace(std::pair(std::move(name), number), std::move(value));
  };
  std::string executor = options.executor_type;
  for (const auto& [name, value] : attrs) {
    if (name != kExecutorAttr) {
      add(name, -1, Text(value, /*hash_strings=*/true));
    } else if (executor.empty()) {
      executor = value.s();
    }
  }
  if (!options.target.empty()) add("_target", -1, absl::CEscape(options.target));
  if (!options.state_handle.empty()) add("_state_handle", -1, options.state_handle);
  if (!executor.empty()) add(kExecutorAttr, -1, executor);
  const auto add_devices = [&](const char* name, const std::vector<std::string>& devices) {
    int number = 0;
    for (const std::string& device : devices) add(name, number++, absl::CEscape(device));
  };
  add_devices("_input_dev", options.input_devices);
  add_devices("_output_dev", options.output_devices);
  return absl::StrCat(funcname, "[",
                      absl::StrJoin(entries, ",",
                                    [](std::string* out, const auto& entry) {
                                      const auto& [key, value] = entry;
                                      absl::StrAppend(out, key.first);
                                      if (key.second >= 0) absl::StrAppend(out, key.second);
                                      absl::StrAppend(out, "=", value);
                                    }),
                      "]");
}

std::string GetFunctionResourceInputDevice(
    const Tensor& input, int arg_index, const FunctionDef& function_def,
    absl::flat_hash_map<std::string, std::vector<std::string>>* composite_devices) {
  std::vector<std::string> devices;
  if (input.dtype() == DT_RESOURCE) {
    for (const gradflow::ResourceHandle& handle : input.span<gradflow::ResourceHandle>()) {
      devices.push_back(ResourceHandle(handle).device());
    }
  }
  const auto attrs = function_def.arg_attr().find(static_cast<uint32>(arg_index));
  if (attrs != function_def.arg_attr().end()) {
    const auto composite = attrs->second.attr().find("_composite_device");
    if (composite != attrs->second.attr().end() && !composite->second.s().empty()) {
      composite_devices->try_emplace(composite->second.s(), std::move(devices));
      return composite->second.s();
    }
  }
  return devices.empty() ? "" : devices[0];
}

}  // namespace tensorflow
