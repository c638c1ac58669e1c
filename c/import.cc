// Imports of GraphDefs with options. Rewrites the GraphDef for a plain import: its nodes get their
// new names, and its inputs name nodes of the graph where the options map them.
#include "gradflow/graph/import.h"

#include <algorithm>
#include <climits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "gradflow/c/buffer.h"
#include "gradflow/c/graph.h"
#include "gradflow/c/status.h"
#include "gradflow/core/attributes.h"
#include "gradflow/core/op_def_util.h"
#include "gradflow/core/registry.h"
#include "gradflow/graph/node_checks.h"
#include "gradflow/graph/tensor_id.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/proto/node_def.pb.h"
#include "tensorflow/c/c_api_experimental.h"

struct TF_ImportGraphDefOptions {
  // An output of a node of the GraphDef.
  using TensorKey = std::pair<std::string, int>;

  std::string prefix;
  std::string default_device;
  bool uniquify_names = false;
  bool uniquify_prefix = false;
  bool validate_colocation = true;
  std::map<TensorKey, TF_Output> input_map;
  std::map<std::string, TF_Operation*> control_map;
  std::vector<TF_Operation*> control_dependencies;
  std::vector<TensorKey> return_outputs;
  std::vector<std::string> return_operations;
};

struct TF_ImportGraphDefResults {
  std::vector<TF_Output> outputs;
  std::vector<TF_Operation*> operations;
  // The input mappings without a source; `names` points into the strings.
  std::vector<std::string> strings;
  std::vector<const char*> names;
  std::vector<int> indexes;
};

namespace gradflow::capi {
namespace {

using TensorKey = TF_ImportGraphDefOptions::TensorKey;

class Importer {
 public:
  Importer(TF_Graph* graph, const TF_ImportGraphDefOptions& options, GraphDef* graph_def)
      : graph_(*graph), options_(options), graph_def_(*graph_def) {}

  absl::Status Import(TF_ImportGraphDefResults* results) {
    GRADFLOW_RETURN_IF_ERROR(CheckOptions());
    GRADFLOW_RETURN_IF_ERROR(ChooseNames());
    for (NodeDef& node : *graph_def_.mutable_node()) GRADFLOW_RETURN_IF_ERROR(Rewrite(&node));
    GRADFLOW_RETURN_IF_ERROR(CheckReturns());
    ImportGraphDefOptions options;
    options.require_kernels = false;
    GRADFLOW_RETURN_IF_ERROR(ImportGraphDef(options, std::move(graph_def_), &graph_.graph));
    return StoreResults(results);
  }

 private:
  absl::Status CheckOptions() const {
    for (const auto& [source, target] : options_.input_map) {
      GRADFLOW_RETURN_IF_ERROR(CheckOutput(
          graph_.graph, target, absl::StrCat("the mapping of ", internal::Quoted(source.first))));
    }
    for (const auto& [source, target] : options_.control_map) {
      GRADFLOW_RETURN_IF_ERROR(CheckOperation(
          graph_.graph, target, absl::StrCat("the mapping of ", internal::Quoted(source))));
    }
    for (const TF_Operation* oper : options_.control_dependencies) {
      GRADFLOW_RETURN_IF_ERROR(CheckOperation(graph_.graph, oper, "a control dependency"));
    }
    return absl::OkStatus();
  }

  bool IsTaken(const std::string& name) const {
    return new_names_.count(name) > 0 || graph_.graph.FindNode(name) != nullptr;
  }

  // Returns true if a node has the name, or a name that begins with it and "/".
  bool IsPrefixTaken(const std::string& prefix) const {
    for (int id = 0; id < graph_.graph.num_nodes(); ++id) {
      absl::string_view name = graph_.graph.node(id)->name();
      if (absl::ConsumePrefix(&name, prefix) && (name.empty() || name[0] == '/')) return true;
    }
    return false;
  }

  absl::Status ChooseNames() {
    std::string prefix(absl::StripSuffix(options_.prefix, "/"));
    if (options_.uniquify_prefix && !prefix.empty()) {
      const std::string base = prefix;
      for (int i = 1; IsPrefixTaken(prefix); ++i) prefix = absl::StrCat(base, "_", i);
    }
    for (const NodeDef& node : graph_def_.node()) {
      std::string name = prefix.empty() ? node.name() : absl::StrCat(prefix, "/", node.name());
      if (options_.uniquify_names) {
        const std::string base = name;
        // Continues after the number that the name got last.
        for (int& i = numbers_[base]; IsTaken(name);) name = absl::StrCat(base, "_", ++i);
      }
      new_names_.insert(name);
      if (!names_.emplace(node.name(), std::move(name)).second) {
        return errors::InvalidArgument("Node '", errors::Printable(node.name()), "' is not unique");
      }
    }
    return absl::OkStatus();
  }

  absl::Status Rewrite(NodeDef* node) {
    const std::string old_name = node->name();
    node->set_name(names_.at(old_name));
    if (node->device().empty()) node->set_device(options_.default_device);
    bool has_imported_input = false;
    absl::flat_hash_set<std::string> seen_controls;
    std::vector<std::string> inputs;
    for (const std::string& input : node->input()) {
      GRADFLOW_ASSIGN_OR_RETURN(const TensorId id, ParseTensorId(input));
      const std::string source(id.node);
      if (id.IsControl()) {
        std::string control;
        const auto mapped = options_.control_map.find(source);
        if (mapped != options_.control_map.end()) {
          control = absl::StrCat("^", FromC(mapped->second)->name());
        } else {
          GRADFLOW_ASSIGN_OR_RETURN(const std::string name, NewName(old_name, source));
          control = absl::StrCat("^", name);
          has_imported_input = true;
        }
        if (seen_controls.insert(control).second) inputs.push_back(control);
        continue;
      }
      const TensorKey key(source, id.index);
      const auto mapped = options_.input_map.find(key);
      if (mapped != options_.input_map.end()) {
        used_.insert(key);
        inputs.push_back(
            FormatTensorId({FromC(mapped->second.oper)->name(), mapped->second.index}));
        continue;
      }
      GRADFLOW_ASSIGN_OR_RETURN(const std::string name, NewName(old_name, source));
      inputs.push_back(FormatTensorId({name, id.index}));
      has_imported_input = true;
    }
    if (!has_imported_input) {
      for (const TF_Operation* oper : options_.control_dependencies) {
        std::string control = absl::StrCat("^", FromC(oper)->name());
        if (seen_controls.insert(control).second) inputs.push_back(std::move(control));
      }
    }
    node->mutable_input()->Assign(inputs.begin(), inputs.end());
    RewriteColocation(node);
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> NewName(const std::string& node, const std::string& source) const {
    const auto found = names_.find(source);
    if (found != names_.end()) return found->second;
    return errors::InvalidArgument("Node '", errors::Printable(node), "': Unknown input node '",
                                   errors::Printable(source), "'");
  }

  void RewriteColocation(NodeDef* node) const {
    const auto found = node->mutable_attr()->find(internal::kColocationAttr);
    if (found == node->mutable_attr()->end() || !found->second.has_list()) return;
    std::vector<std::string> entries;
    for (const std::string& entry : found->second.list().s()) {
      absl::string_view other = entry;
      if (!absl::ConsumePrefix(&other, internal::kColocationPrefix)) {
        entries.push_back(entry);
        continue;
      }
      const auto name = names_.find(std::string(other));
      if (name != names_.end()) {
        entries.push_back(absl::StrCat(internal::kColocationPrefix, name->second));
      } else if (options_.validate_colocation) {
        entries.push_back(entry);
      }
    }
    SetAttrValue(entries, &found->second);
  }

  // Returns the number of outputs of a node, or nothing if it calls a function or has wrong
  // attributes.
  std::optional<int> NumOutputsOf(const NodeDef& node) const {
    const OpRegistration* const op = graph_.graph.registry().FindOp(node.op());
    if (op == nullptr) return std::nullopt;
    NodeDef complete = node;
    AddDefaultsToNodeDef(op->def(), &complete);
    DataTypeVector inputs;
    DataTypeVector outputs;
    if (!InOutTypesForNode(complete, op->def(), &inputs, &outputs).ok()) return std::nullopt;
    return static_cast<int>(outputs.size());
  }

  // Errors have TensorFlow's texts.
  absl::Status CheckReturns() const {
    absl::flat_hash_map<absl::string_view, const NodeDef*> nodes;
    if (!options_.return_outputs.empty()) {
      for (const NodeDef& node : graph_def_.node()) nodes.emplace(node.name(), &node);
    }
    for (const auto& [name, index] : options_.return_outputs) {
      if (options_.input_map.count({name, index}) > 0) continue;
      const auto found = names_.find(name);
      if (found == names_.end()) {
        return errors::InvalidArgument("Requested return tensor '", errors::Printable(name), ":",
                                       index, "' not found in graph def");
      }
      const std::optional<int> outputs = NumOutputsOf(*nodes.at(found->second));
      if (index >= 0 && index < outputs.value_or(INT_MAX)) continue;
      return errors::InvalidArgument("Invalid return output ", index, " of node '",
                                     errors::Printable(name), "', which has ", outputs.value_or(0),
                                     " output(s)");
    }
    for (const std::string& name : options_.return_operations) {
      if (names_.count(name) > 0) continue;
      return errors::InvalidArgument("Requested return node '", errors::Printable(name),
                                     "' not found in graph def");
    }
    return absl::OkStatus();
  }

  const Node* FindImported(const std::string& name) const {
    const auto found = names_.find(name);
    return found == names_.end() ? nullptr : graph_.graph.FindNode(found->second);
  }

  absl::Status StoreResults(TF_ImportGraphDefResults* results) const {
    for (const TensorKey& key : options_.return_outputs) {
      const auto mapped = options_.input_map.find(key);
      const TF_Output output = mapped != options_.input_map.end()
                                   ? mapped->second
                                   : TF_Output{ToC(FindImported(key.first)), key.second};
      results->outputs.push_back(output);
    }
    for (const std::string& name : options_.return_operations) {
      results->operations.push_back(ToC(FindImported(name)));
    }
    for (const auto& [key, target] : options_.input_map) {
      if (used_.count(key) > 0) continue;
      const Node* const node = FindImported(key.first);
      if (node != nullptr && key.second < node->num_outputs()) continue;
      results->strings.push_back(key.first);
      results->indexes.push_back(key.second);
    }
    for (const std::string& name : results->strings) results->names.push_back(name.c_str());
    return absl::OkStatus();
  }

  TF_Graph& graph_;
  const TF_ImportGraphDefOptions& options_;
  GraphDef& graph_def_;
  // The new names of the nodes, keyed by their names in the GraphDef.
  absl::flat_hash_map<std::string, std::string> names_;
  absl::flat_hash_set<std::string> new_names_;
  absl::flat_hash_map<std::string, int> numbers_;
  // The input mappings that have been used.
  std::set<TensorKey> used_;
};

absl::Status Import(TF_Graph* graph, const TF_ImportGraphDefOptions* options, GraphDef* graph_def,
                    TF_ImportGraphDefResults* results) {
  const GraphChange change(graph);
  return Importer(graph, *options, graph_def).Import(results);
}

TF_ImportGraphDefResults* ImportMessage(TF_Graph* graph, GraphDef* graph_def,
                                        const TF_ImportGraphDefOptions* options,
                                        TF_Status* status) {
  TF_ImportGraphDefResults* result = nullptr;
  Call(status, [&]() -> absl::Status {
    auto results = std::make_unique<TF_ImportGraphDefResults>();
    GRADFLOW_RETURN_IF_ERROR(Import(graph, options, graph_def, results.get()));
    result = results.release();
    return absl::OkStatus();
  });
  return result;
}

}  // namespace
}  // namespace gradflow::capi

using gradflow::GraphDef;
using gradflow::capi::Call;
using gradflow::capi::CallOr;
using gradflow::capi::CallQuietly;
using gradflow::capi::OrEmpty;

TF_ImportGraphDefOptions* TF_NewImportGraphDefOptions(void) {
  return CallOr<TF_ImportGraphDefOptions*>(nullptr, [] { return new TF_ImportGraphDefOptions; });
}
void TF_DeleteImportGraphDefOptions(TF_ImportGraphDefOptions* opts) { delete opts; }

void TF_ImportGraphDefOptionsSetPrefix(TF_ImportGraphDefOptions* opts, const char* prefix) {
  CallQuietly([&] { opts->prefix = OrEmpty(prefix); });
}
void TF_ImportGraphDefOptionsSetDefaultDevice(TF_ImportGraphDefOptions* opts, const char* device) {
  CallQuietly([&] { opts->default_device = OrEmpty(device); });
}
void TF_ImportGraphDefOptionsSetUniquifyNames(TF_ImportGraphDefOptions* opts,
                                              unsigned char uniquify_names) {
  opts->uniquify_names = uniquify_names != 0;
}
void TF_ImportGraphDefOptionsSetUniquifyPrefix(TF_ImportGraphDefOptions* opts,
                                               unsigned char uniquify_prefix) {
  opts->uniquify_prefix = uniquify_prefix != 0;
}
void TF_ImportGraphDefOptionsSetValidateColocationConstraints(TF_ImportGraphDefOptions* opts,
                                                              unsigned char enable) {
  opts->validate_colocation = enable != 0;
}
void TF_ImportGraphDefOptionsAddInputMapping(TF_ImportGraphDefOptions* opts, const char* src_name,
                                             int src_index, TF_Output dst) {
  CallQuietly([&] { opts->input_map[{OrEmpty(src_name), src_index}] = dst; });
}
void TF_ImportGraphDefOptionsRemapControlDependency(TF_ImportGraphDefOptions* opts,
                                                    const char* src_name, TF_Operation* dst) {
  CallQuietly([&] { opts->control_map[OrEmpty(src_name)] = dst; });
}
void TF_ImportGraphDefOptionsAddControlDependency(TF_ImportGraphDefOptions* opts,
                                                  TF_Operation* oper) {
  CallQuietly([&] { opts->control_dependencies.push_back(oper); });
}
void TF_ImportGraphDefOptionsAddReturnOutput(TF_ImportGraphDefOptions* opts, const char* oper_name,
                                             int index) {
  CallQuietly([&] { opts->return_outputs.emplace_back(OrEmpty(oper_name), index); });
}
int TF_ImportGraphDefOptionsNumReturnOutputs(const TF_ImportGraphDefOptions* opts) {
  return static_cast<int>(opts->return_outputs.size());
}
void TF_ImportGraphDefOptionsAddReturnOperation(TF_ImportGraphDefOptions* opts,
                                                const char* oper_name) {
  CallQuietly([&] { opts->return_operations.emplace_back(OrEmpty(oper_name)); });
}
int TF_ImportGraphDefOptionsNumReturnOperations(const TF_ImportGraphDefOptions* opts) {
  return static_cast<int>(opts->return_operations.size());
}

void TF_ImportGraphDefResultsReturnOutputs(TF_ImportGraphDefResults* results, int* num_outputs,
                                           TF_Output** outputs) {
  *num_outputs = static_cast<int>(results->outputs.size());
  *outputs = results->outputs.data();
}
void TF_ImportGraphDefResultsReturnOperations(TF_ImportGraphDefResults* results, int* num_opers,
                                              TF_Operation*** opers) {
  *num_opers = static_cast<int>(results->operations.size());
  *opers = results->operations.data();
}
void TF_ImportGraphDefResultsMissingUnusedInputMappings(TF_ImportGraphDefResults* results,
                                                        int* num_missing_unused_input_mappings,
                                                        const char*** src_names,
                                                        int** src_indexes) {
  *num_missing_unused_input_mappings = static_cast<int>(results->names.size());
  *src_names = results->names.data();
  *src_indexes = results->indexes.data();
}
void TF_DeleteImportGraphDefResults(TF_ImportGraphDefResults* results) { delete results; }

TF_ImportGraphDefResults* TF_GraphImportGraphDefWithResults(TF_Graph* graph,
                                                            const TF_Buffer* graph_def,
                                                            const TF_ImportGraphDefOptions* options,
                                                            TF_Status* status) {
  TF_ImportGraphDefResults* result = nullptr;
  Call(status, [&]() -> absl::Status {
    GRADFLOW_ASSIGN_OR_RETURN(GraphDef message,
                              gradflow::ParseGraphDef(absl::string_view(
                                  static_cast<const char*>(graph_def->data), graph_def->length)));
    result = gradflow::capi::ImportMessage(graph, &message, options, status);
    return status->status;
  });
  return result;
}

TF_ImportGraphDefResults* TF_GraphImportGraphDefWithResultsNoSerialization(
    TF_Graph* graph, const TF_Buffer* graph_def, const TF_ImportGraphDefOptions* options,
    TF_Status* status) {
  TF_ImportGraphDefResults* result = nullptr;
  Call(status, [&]() -> absl::Status {
    GraphDef message = *static_cast<const GraphDef*>(graph_def->data);
    result = gradflow::capi::ImportMessage(graph, &message, options, status);
    return status->status;
  });
  return result;
}

void TF_GraphImportGraphDefWithReturnOutputs(TF_Graph* graph, const TF_Buffer* graph_def,
                                             const TF_ImportGraphDefOptions* options,
                                             TF_Output* return_outputs, int num_return_outputs,
                                             TF_Status* status) {
  if (num_return_outputs != TF_ImportGraphDefOptionsNumReturnOutputs(options)) {
    Call(status, [&] {
      return gradflow::errors::InvalidArgument("Expected 'num_return_outputs' to be ",
                                               TF_ImportGraphDefOptionsNumReturnOutputs(options),
                                               ", got ", num_return_outputs);
    });
    return;
  }
  if (num_return_outputs > 0 && return_outputs == nullptr) {
    Call(status, [&] {
      return gradflow::errors::InvalidArgument("'return_outputs' must be preallocated to length ",
                                               num_return_outputs);
    });
    return;
  }
  const std::unique_ptr<TF_ImportGraphDefResults> results(
      TF_GraphImportGraphDefWithResults(graph, graph_def, options, status));
  if (results == nullptr) return;
  std::copy(results->outputs.begin(), results->outputs.end(), return_outputs);
}

void TF_GraphImportGraphDef(TF_Graph* graph, const TF_Buffer* graph_def,
                            const TF_ImportGraphDefOptions* options, TF_Status* status) {
  TF_DeleteImportGraphDefResults(
      TF_GraphImportGraphDefWithResults(graph, graph_def, options, status));
}
