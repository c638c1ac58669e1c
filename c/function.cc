#include "gradflow/c/function.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "gradflow/c/attributes.h"
#include "gradflow/c/buffer.h"
#include "gradflow/c/status.h"
#include "gradflow/core/op_def_internal.h"
#include "gradflow/core/op_def_util.h"
#include "gradflow/graph/function_library.h"
#include "gradflow/graph/graph_impl.h"
#include "gradflow/graph/import.h"
#include "gradflow/graph/import_checks.h"
#include "gradflow/graph/node_checks.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/proto/node_def.pb.h"
#include "gradflow/proto/op_def.pb.h"

namespace gradflow::capi {
namespace {

// The names of a function's arguments, results and nodes, which are all different.
class TakenNames {
 public:
  // Makes an unused identifier from the name of a node, and reserves it.
  std::string TakeIdentifier(absl::string_view name) {
    std::string identifier;
    for (const char c : name) {
      const auto byte = static_cast<unsigned char>(c);
      if (identifier.empty() && std::isalpha(byte) == 0) continue;
      identifier += std::isalnum(byte) == 0 ? '_' : static_cast<char>(std::tolower(byte));
    }
    return Take(identifier.empty() ? "unknown" : identifier);
  }
  // Reserves a name, and returns it. Appends a number if the name is reserved.
  std::string Take(const std::string& name) {
    if (taken_.insert(name).second) return name;
    // Continues after the number that the name got last.
    int& number = next_[name];
    for (;; ++number) {
      std::string numbered = absl::StrCat(name, "_", number);
      if (taken_.insert(numbered).second) return numbered;
    }
  }
  // Reserves a name. Returns false if it is already reserved.
  bool TakeExactly(const std::string& name) { return taken_.insert(name).second; }

 private:
  absl::flat_hash_set<std::string> taken_;
  absl::flat_hash_map<std::string, int> next_;
};

// Errors have TensorFlow's texts, which programs and tests compare.
class FunctionMaker {
 public:
  FunctionMaker(const Graph& graph, const FunctionParts& parts)
      : graph_(graph), parts_(parts), signature_(*function_.mutable_signature()) {}

  absl::StatusOr<FunctionDef> Make() {
    signature_.set_name(parts_.name);
    if (parts_.description != nullptr) signature_.set_description(parts_.description);
    // As in TensorFlow, results get their names first.
    GRADFLOW_RETURN_IF_ERROR(NameResults());
    GRADFLOW_RETURN_IF_ERROR(AddArguments());
    GRADFLOW_RETURN_IF_ERROR(ChooseBody());
    for (const Node* node : body_) node_names_[node] = names_.Take(node->name());
    for (const Node* node : body_) GRADFLOW_RETURN_IF_ERROR(AddNode(*node));
    GRADFLOW_RETURN_IF_ERROR(AddResults());
    GRADFLOW_RETURN_IF_ERROR(AddControlResults());
    for (const auto& [name, attr] : attrs_) *signature_.add_attr() = attr;
    if (parts_.append_hash) AppendHash();
    return std::move(function_);
  }

 private:
  std::string While() const {
    return absl::StrCat("Encountered while creating function '", parts_.name, "'");
  }

  absl::Status CheckOne(const TF_Output& output, int i, absl::string_view role,
                        absl::string_view preposition) const {
    const auto context = [&] {
      return absl::StrCat("\n\tEncountered while processing ", role, " ", i, " ", preposition,
                          " function '", parts_.name, "'");
    };
    if (output.oper == nullptr) return errors::InvalidArgument("Node is null", context());
    const Node& node = *FromC(output.oper);
    if (&node.graph() != &graph_) {
      return errors::InvalidArgument(internal::NodeTitle(node.def()), " is of another graph",
                                     context());
    }
    if (output.index < 0 || output.index >= node.num_outputs()) {
      return absl::OutOfRangeError(absl::StrCat(
          "Node '", node.name(), "' (type: '", node.type_string(), "', num of outputs: ",
          node.num_outputs(), ") does not have output ", output.index, context()));
    }
    return absl::OkStatus();
  }

  absl::Status AddArguments() {
    for (int i = 0; i < parts_.num_inputs; ++i) {
      GRADFLOW_RETURN_IF_ERROR(CheckOne(parts_.inputs[i], i, "input", "into"));
      const Node& node = *FromC(parts_.inputs[i].oper);
      const int output = parts_.inputs[i].index;
      const std::string name = names_.TakeIdentifier(node.name());
      OpDef::ArgDef* const arg = signature_.add_input_arg();
      arg->set_name(name);
      arg->set_type(node.output_type(output));
      if (!tensors_.emplace(Tensor{&node, output}, name).second) {
        return errors::InvalidArgument("TF_Output ", node.name(), ":", output,
                                       " appears more than once in the input list");
      }
      inputs_.emplace(&node, name);
      if (parts_.all_operations && node.num_outputs() != 1) {
        return errors::InvalidArgument(
            "When `num_opers` is set to -1, nodes referenced in `inputs` must have a single "
            "output. "
            "Node ",
            node.name(), " has ", node.num_outputs(), " outputs. ", While());
      }
      CopyArgAttrs(node, i);
    }
    return absl::OkStatus();
  }

  // Attributes that begin with "_" describe an argument, and so does its shape.
  void CopyArgAttrs(const Node& node, int i) {
    for (const auto& [name, value] : node.def().attr()) {
      if (absl::StartsWith(name, "_")) {
        (*(*function_.mutable_arg_attr())[i].mutable_attr())[name] = value;
      } else if (name == "shape" && node.num_outputs() == 1 && value.has_shape()) {
        AttrValue shapes;
        *shapes.mutable_list()->add_shape() = value.shape();
        (*(*function_.mutable_arg_attr())[i].mutable_attr())["_output_shapes"] = shapes;
      }
    }
  }

  absl::Status ChooseBody() {
    if (!parts_.all_operations) {
      body_ = parts_.operations;
      body_set_.insert(body_.begin(), body_.end());
      return absl::OkStatus();
    }
    for (int id = 0; id < graph_.num_nodes(); ++id) {
      const Node* const node = graph_.node(id);
      if (inputs_.count(node) == 0) body_.push_back(node);
    }
    body_set_.insert(body_.begin(), body_.end());
    return absl::OkStatus();
  }

  absl::Status NameResults() {
    for (int i = 0; i < parts_.num_outputs; ++i) {
      GRADFLOW_RETURN_IF_ERROR(CheckOne(parts_.outputs[i], i, "output", "from"));
      const Node& node = *FromC(parts_.outputs[i].oper);
      OpDef::ArgDef* const result = signature_.add_output_arg();
      result->set_type(node.output_type(parts_.outputs[i].index));
      if (parts_.output_names == nullptr) {
        result->set_name(names_.TakeIdentifier(node.name()));
        continue;
      }
      const std::string name = OrEmpty(parts_.output_names[i]);
      if (!result_names_.insert(name).second) {
        return errors::InvalidArgument("Cannot have duplicate output names. Name '",
                                       errors::Printable(name),
                                       "' appears more than once in 'output_names' array.");
      }
      names_.TakeExactly(name);
      result->set_name(name);
    }
    return absl::OkStatus();
  }

  // Returns the name of an output in the function.
  absl::StatusOr<std::string> NameOf(const Node& node, int output) {
    const auto argument = tensors_.find({&node, output});
    if (argument != tensors_.end()) return argument->second;
    if (body_set_.count(&node) == 0) return absl::NotFoundError("");
    NameRangeMap& ranges = ranges_[&node];
    if (ranges.empty()) {
      GRADFLOW_RETURN_IF_ERROR(NameRangesForNode(node.def(), node.op_def(), nullptr, &ranges));
    }
    for (const auto& [name, range] : ranges) {
      if (output >= range.first && output < range.second) {
        return absl::StrCat(node_names_[&node], ":", name, ":", output - range.first);
      }
    }
    return errors::Internal(internal::NodePrefix(node.def()), "output ", output, " has no name");
  }

  absl::Status AddNode(const Node& node) {
    NodeDef* const def = function_.add_node_def();
    *def = node.def();
    def->set_name(node_names_[&node]);
    def->clear_input();
    for (int i = 0; i < static_cast<int>(node.sources().size()); ++i) {
      const Node::Source& source = node.sources()[i];
      if (source.output >= 0) {
        absl::StatusOr<std::string> name = NameOf(*source.node, source.output);
        if (absl::IsNotFound(name.status())) {
          return errors::InvalidArgument(
              "Input ", i, ", '", source.node->name(), ":", source.output, "', of node '",
              node.name(), "' in function '", parts_.name,
              "' is not available. You might need to include it in inputs or include its source "
              "node in the body");
        }
        GRADFLOW_RETURN_IF_ERROR(name.status());
        def->add_input(*std::move(name));
        continue;
      }
      const auto input = inputs_.find(source.node);
      if (input != inputs_.end()) {
        def->add_input(absl::StrCat("^", input->second));
      } else if (body_set_.count(source.node) > 0) {
        def->add_input(absl::StrCat("^", node_names_[source.node]));
      } else {
        return errors::InvalidArgument("The source of control edge [id=", i, " ",
                                       source.node->name(), ":-1 -> ", node.name(),
                                       ":-1] is not in the body. ", While());
      }
    }
    if (node.op_def().is_stateful()) signature_.set_is_stateful(true);
    RenameColocation(def);
    return AddAttrs(node);
  }

  // Renames the nodes in the colocation attribute as in the function, and drops nodes outside of
  // the function.
  void RenameColocation(NodeDef* def) {
    const auto found = def->mutable_attr()->find(internal::kColocationAttr);
    if (found == def->mutable_attr()->end()) return;
    std::vector<std::string> kept;
    for (absl::string_view entry : found->second.list().s()) {
      if (!absl::ConsumePrefix(&entry, internal::kColocationPrefix)) continue;
      const Node* const other = graph_.FindNode(entry);
      if (other != nullptr && body_set_.count(other) > 0) {
        kept.push_back(absl::StrCat(internal::kColocationPrefix, node_names_[other]));
      }
    }
    if (kept.empty()) {
      def->mutable_attr()->erase(internal::kColocationAttr);
    } else {
      SetAttrValue(kept, &found->second);
    }
  }

  // Declares the attributes that nodes take from the function.
  absl::Status AddAttrs(const Node& node) {
    for (const auto& [name, value] : node.def().attr()) {
      if (value.value_case() != AttrValue::kPlaceholder) continue;
      const OpDef::AttrDef* const declared = FindAttrDef(node.op_def(), name);
      if (declared == nullptr) continue;
      OpDef::AttrDef attr = *declared;
      attr.set_name(value.placeholder());
      attr.clear_default_value();
      const auto [it, is_new] = attrs_.emplace(value.placeholder(), attr);
      if (!is_new && it->second.type() != attr.type()) {
        return errors::InvalidArgument("attribute ", internal::Quoted(value.placeholder()),
                                       " of the function would have types ", it->second.type(),
                                       " and ", attr.type());
      }
    }
    return absl::OkStatus();
  }

  absl::Status AddResults() {
    for (int i = 0; i < parts_.num_outputs; ++i) {
      const Node& node = *FromC(parts_.outputs[i].oper);
      absl::StatusOr<std::string> name = NameOf(node, parts_.outputs[i].index);
      if (absl::IsNotFound(name.status())) {
        return errors::InvalidArgument("TF_Output ", node.name(), ":", parts_.outputs[i].index,
                                       " is neither in the function body nor among function "
                                       "inputs. ",
                                       While());
      }
      GRADFLOW_RETURN_IF_ERROR(name.status());
      (*function_.mutable_ret())[signature_.output_arg(i).name()] = *std::move(name);
    }
    return absl::OkStatus();
  }

  absl::Status AddControlResults() {
    std::set<std::string> names;
    for (size_t i = 0; i < parts_.control_outputs.size(); ++i) {
      const Node* const node = parts_.control_outputs[i];
      if (node == nullptr || body_set_.count(node) == 0) {
        return errors::InvalidArgument("control output ", i, " is not in the function body. ",
                                       While());
      }
      const std::string name = parts_.control_output_names == nullptr
                                   ? node->name()
                                   : OrEmpty(parts_.control_output_names[i]);
      if (!names.insert(name).second) {
        return errors::InvalidArgument("Repeated control output name: ", errors::Printable(name));
      }
      signature_.add_control_output(name);
      (*function_.mutable_control_ret())[name] = node_names_[node];
    }
    return absl::OkStatus();
  }

  void AppendHash() {
    std::string bytes;
    {
      google::protobuf::io::StringOutputStream string(&bytes);
      google::protobuf::io::CodedOutputStream stream(&string);
      stream.SetSerializationDeterministic(true);
      function_.SerializeWithCachedSizes(&stream);
    }
    // FNV-1a: the same on all machines.
    uint64_t hash = 14695981039346656037u;
    for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
    signature_.set_name(absl::StrCat(parts_.name, "_", absl::StrFormat("%016x", hash)));
  }

  using Tensor = std::pair<const Node*, int>;

  const Graph& graph_;
  const FunctionParts& parts_;
  FunctionDef function_;
  OpDef& signature_;
  TakenNames names_;
  std::set<std::string> result_names_;
  // The names of arguments by output, and by node.
  std::map<Tensor, std::string> tensors_;
  absl::flat_hash_map<const Node*, std::string> inputs_;
  std::vector<const Node*> body_;
  absl::flat_hash_set<const Node*> body_set_;
  absl::flat_hash_map<const Node*, std::string> node_names_;
  absl::flat_hash_map<const Node*, NameRangeMap> ranges_;
  std::map<std::string, OpDef::AttrDef> attrs_;
};

}  // namespace

absl::StatusOr<FunctionDef> MakeFunction(const Graph& graph, const FunctionParts& parts) {
  return FunctionMaker(graph, parts).Make();
}

namespace {

bool NamesFunction(const AttrValue& value, absl::string_view function) {
  if (value.func().name() == function) return true;
  return std::any_of(value.list().func().begin(), value.list().func().end(),
                     [&](const NameAttrList& func) { return func.name() == function; });
}

void AddNames(const AttrValue& value, std::vector<std::string>* names) {
  if (value.has_func()) names->push_back(value.func().name());
  for (const NameAttrList& func : value.list().func()) names->push_back(func.name());
}

// Returns the names of the ops and functions that a function may call: its nodes name them.
std::vector<std::string> NamesIn(const FunctionDef& function) {
  std::vector<std::string> names;
  for (const NodeDef& node : function.node_def()) {
    names.push_back(node.op());
    for (const auto& [name, value] : node.attr()) AddNames(value, &names);
  }
  return names;
}

}  // namespace

bool CallsFunction(const NodeDef& node, absl::string_view function) {
  if (node.op() == function) return true;
  return std::any_of(node.attr().begin(), node.attr().end(),
                     [&](const auto& attr) { return NamesFunction(attr.second, function); });
}

std::vector<const FunctionDef*> WithCalledFunctions(const TF_Function& function,
                                                    const Graph& graph) {
  absl::flat_hash_map<absl::string_view, const FunctionDef*> known;
  for (const FunctionDef& called : function.called)
    known.emplace(called.signature().name(), &called);
  std::vector<const FunctionDef*> result;
  std::vector<const FunctionDef*> stack = {&function.def};
  absl::flat_hash_set<std::string> seen = {function.def.signature().name()};
  while (!stack.empty()) {
    const FunctionDef& caller = *stack.back();
    stack.pop_back();
    for (const std::string& name : NamesIn(caller)) {
      const auto called = known.find(name);
      if (called == known.end() || !seen.insert(name).second ||
          graph.functions().Find(name) != nullptr) {
        continue;
      }
      result.push_back(called->second);
      stack.push_back(called->second);
    }
  }
  result.push_back(&function.def);
  return result;
}

absl::Status AddFunctionsToGraph(const std::vector<const FunctionDef*>& functions, Graph* graph,
                                 const GradientDef* gradient) {
  GraphDef additions;
  *additions.mutable_versions() = graph->def().versions();
  absl::flat_hash_map<absl::string_view, const FunctionDef*> added;
  for (const FunctionDef* function : functions) {
    const std::string& name = function->signature().name();
    if (graph->registry().FindOp(name) != nullptr) {
      return errors::InvalidArgument("Cannot add function '", errors::Printable(name),
                                     "' because an op with the same name already exists.");
    }
    const auto [known, is_new] = added.emplace(name, function);
    if (is_new) {
      *additions.mutable_library()->add_function() = *function;
    } else {
      GRADFLOW_RETURN_IF_ERROR(internal::CheckSameFunction(*function, *known->second));
    }
  }
  if (gradient != nullptr) {
    for (const GradientDef& known : graph->def().library().gradient()) {
      if (known.function_name() != gradient->function_name() ||
          known.gradient_func() == gradient->gradient_func()) {
        continue;
      }
      return errors::InvalidArgument("Cannot assign gradient function '", gradient->gradient_func(),
                                     "' to '", known.function_name(),
                                     "' because it already has gradient function '",
                                     known.gradient_func(), "'");
    }
    *additions.mutable_library()->add_gradient() = *gradient;
  }
  ImportGraphDefOptions options;
  options.require_kernels = false;
  return ImportGraphDef(options, std::move(additions), graph);
}

void RemoveLastFunctions(int size, Graph* graph) {
  if (graph->def().library().function_size() <= size) return;
  internal::GraphImpl& impl = internal::GraphImpl::Of(graph);
  impl.RemoveFunctions(static_cast<size_t>(size));
  auto* const functions = impl.def()->mutable_library()->mutable_function();
  functions->DeleteSubrange(size, functions->size() - size);
}

namespace {

absl::StatusOr<TF_Function*> GraphToFunction(const TF_Graph* const_graph, FunctionParts parts,
                                             int num_opers, const TF_Operation* const* opers,
                                             int num_control_outputs,
                                             const TF_Operation* const* control_outputs) {
  auto* const graph = const_cast<TF_Graph*>(const_graph);
  const MutexLock lock(&graph->mutex);
  GRADFLOW_RETURN_IF_ERROR(CheckArray(opers, std::max(num_opers, 0), "opers"));
  GRADFLOW_RETURN_IF_ERROR(CheckArray(parts.inputs, parts.num_inputs, "inputs"));
  GRADFLOW_RETURN_IF_ERROR(CheckArray(parts.outputs, parts.num_outputs, "outputs"));
  GRADFLOW_RETURN_IF_ERROR(CheckArray(control_outputs, num_control_outputs, "control_outputs"));
  parts.all_operations = num_opers < 0;
  absl::flat_hash_set<const Node*> seen;
  for (int i = 0; i < num_opers; ++i) {
    GRADFLOW_RETURN_IF_ERROR(
        CheckOperation(graph->graph, opers[i], absl::StrCat("opers[", i, "]")));
    const Node* const node = FromC(opers[i]);
    if (!seen.insert(node).second) {
      return errors::InvalidArgument("opers[", i, "] is ", internal::NodeTitle(node->def()),
                                     ", which is given twice");
    }
    parts.operations.push_back(node);
  }
  for (int i = 0; i < num_control_outputs; ++i) {
    GRADFLOW_RETURN_IF_ERROR(
        CheckOperation(graph->graph, control_outputs[i], absl::StrCat("control_outputs[", i, "]")));
    parts.control_outputs.push_back(FromC(control_outputs[i]));
  }
  auto function = std::make_unique<TF_Function>();
  GRADFLOW_ASSIGN_OR_RETURN(function->def, MakeFunction(graph->graph, parts));
  const auto& library = graph->graph.def().library().function();
  function->called.assign(library.begin(), library.end());
  return function.release();
}

}  // namespace
}  // namespace gradflow::capi

using gradflow::AttrValue;
using gradflow::FunctionDef;
using gradflow::MutexLock;
using gradflow::capi::Call;
using gradflow::capi::FillBuffer;
using gradflow::capi::OrEmpty;

TF_Function* TF_GraphToFunction(const TF_Graph* fn_body, const char* fn_name,
                                unsigned char append_hash_to_fn_name, int num_opers,
                                const TF_Operation* const* opers, int ninputs,
                                const TF_Output* inputs, int noutputs, const TF_Output* outputs,
                                const char* const* output_names, const TF_FunctionOptions* opts,
                                const char* description, TF_Status* status) {
  return TF_GraphToFunctionWithControlOutputs(
      fn_body, fn_name, append_hash_to_fn_name, num_opers, opers, ninputs, inputs, noutputs,
      outputs, output_names, 0, nullptr, nullptr, opts, description, status);
}

TF_Function* TF_GraphToFunctionWithControlOutputs(
    const TF_Graph* fn_body, const char* fn_name, unsigned char append_hash_to_fn_name,
    int num_opers, const TF_Operation* const* opers, int ninputs, const TF_Output* inputs,
    int noutputs, const TF_Output* outputs, const char* const* output_names, int ncontrol_outputs,
    const TF_Operation* const* control_outputs, const char* const* control_output_names,
    const TF_FunctionOptions*, const char* description, TF_Status* status) {
  TF_Function* result = nullptr;
  Call(status, [&]() -> absl::Status {
    gradflow::capi::FunctionParts parts;
    parts.name = OrEmpty(fn_name);
    parts.append_hash = append_hash_to_fn_name != 0;
    parts.inputs = inputs;
    parts.num_inputs = ninputs;
    parts.outputs = outputs;
    parts.num_outputs = noutputs;
    parts.output_names = output_names;
    parts.control_output_names = control_output_names;
    parts.description = description;
    GRADFLOW_ASSIGN_OR_RETURN(
        result, gradflow::capi::GraphToFunction(fn_body, parts, num_opers, opers, ncontrol_outputs,
                                                control_outputs));
    return absl::OkStatus();
  });
  return result;
}

const char* TF_FunctionName(TF_Function* func) { return func->def.signature().name().c_str(); }

void TF_FunctionToFunctionDef(TF_Function* func, TF_Buffer* output_func_def, TF_Status* status) {
  Call(status, [&] { return FillBuffer(func->def, output_func_def); });
}

TF_Function* TF_FunctionImportFunctionDef(const void* proto, size_t proto_len, TF_Status* status) {
  TF_Function* result = nullptr;
  Call(status, [&]() -> absl::Status {
    auto function = std::make_unique<TF_Function>();
    if (!gradflow::capi::ParseMessage(proto, proto_len, &function->def).ok()) {
      return gradflow::errors::InvalidArgument(
          "Invalid FunctionDef given to TF_FunctionImportFunctionDef");
    }
    result = function.release();
    return absl::OkStatus();
  });
  return result;
}

void TF_FunctionSetAttrValueProto(TF_Function* func, const char* attr_name, const void* proto,
                                  size_t proto_len, TF_Status* status) {
  Call(status, [&]() -> absl::Status {
    AttrValue value;
    GRADFLOW_RETURN_IF_ERROR(gradflow::capi::ParseMessage(proto, proto_len, &value));
    (*func->def.mutable_attr())[OrEmpty(attr_name)] = value;
    return absl::OkStatus();
  });
}

void TF_FunctionGetAttrValueProto(TF_Function* func, const char* attr_name,
                                  TF_Buffer* output_attr_value, TF_Status* status) {
  Call(status, [&]() -> absl::Status {
    const auto found = func->def.attr().find(OrEmpty(attr_name));
    if (found == func->def.attr().end()) {
      return gradflow::errors::InvalidArgument(
          "Function '", func->def.signature().name(), "' has no attr named '",
          gradflow::errors::Printable(OrEmpty(attr_name)), "'.");
    }
    return FillBuffer(found->second, output_attr_value);
  });
}

void TF_DeleteFunction(TF_Function* func) { delete func; }

void TF_GraphCopyFunction(TF_Graph* g, const TF_Function* func, const TF_Function* grad,
                          TF_Status* status) {
  Call(status, [&]() -> absl::Status {
    if (func == nullptr) {
      return gradflow::errors::InvalidArgument(
          "'func' argument to TF_GraphCopyFunction cannot be null");
    }
    const gradflow::capi::GraphChange change(g);
    std::vector<const FunctionDef*> functions =
        gradflow::capi::WithCalledFunctions(*func, g->graph);
    gradflow::GradientDef gradient;
    if (grad != nullptr) {
      functions.push_back(&grad->def);
      gradient.set_function_name(func->def.signature().name());
      gradient.set_gradient_func(grad->def.signature().name());
    }
    return gradflow::capi::AddFunctionsToGraph(functions, &g->graph,
                                               grad == nullptr ? nullptr : &gradient);
  });
}

int TF_GraphNumFunctions(TF_Graph* g) {
  const MutexLock lock(&g->mutex);
  return g->graph.def().library().function_size();
}

int TF_GraphGetFunctions(TF_Graph* g, TF_Function** funcs, int max_func, TF_Status* status) {
  int count = 0;
  const bool ok = Call(status, [&]() -> absl::Status {
    const MutexLock lock(&g->mutex);
    for (const FunctionDef& def : g->graph.def().library().function()) {
      if (count >= max_func) break;
      funcs[count] = new TF_Function{def, {}};
      ++count;
    }
    return absl::OkStatus();
  });
  if (ok) return count;
  while (count > 0) TF_DeleteFunction(funcs[--count]);
  return 0;
}
