#include "gradflow/saved_model/builder.h"

#include <fcntl.h>
#include <stdio.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <set>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/attributes.h"
#include "gradflow/core/call_safely.h"
#include "gradflow/core/status.h"
#include "gradflow/core/variable.h"
#include "gradflow/core/version.h"
#include "gradflow/graph/node_checks.h"
#include "gradflow/io/file.h"
#include "gradflow/saved_model/files.h"
#include "gradflow/saved_model/reader.h"
#include "gradflow/saved_model/saved_graph.h"

namespace gradflow {
namespace {

namespace fs = std::filesystem;

constexpr char kInitName[] = "__saved_model_init_op";

absl::StatusOr<TensorInfo> InfoOf(const Output& output) {
  if (output.node() == nullptr || output.index() < 0 ||
      output.index() >= output.node()->num_outputs()) {
    return errors::InvalidArgument("expected an output of a node");
  }
  TensorInfo info;
  info.set_name(absl::StrCat(output.node()->name(), ":", output.index()));
  info.set_dtype(BaseType(output.type()));
  output.node()->output_shape(output.index()).AsProto(info.mutable_tensor_shape());
  return info;
}

absl::StatusOr<Tensor> ValueOf(const ModelVariable& variable, const ResourceManager* resources) {
  if (resources != nullptr) {
    const auto found = resources->Lookup<Variable>(variable.container, variable.name);
    if (found.ok()) return (*found)->Read();
    if (!absl::IsNotFound(found.status())) return found.status();
  }
  return errors::FailedPrecondition("variable ", internal::Quoted(variable.name),
                                    " has not been initialized");
}

void SetStrings(const std::vector<std::string>& texts, const TensorShape& shape, NodeDef* node) {
  Tensor tensor(DT_STRING, shape);
  for (size_t i = 0; i < texts.size(); ++i) {
    tensor.flat<tstring>()(static_cast<int64_t>(i)) = texts[i];
  }
  AddNodeAttr("dtype", DT_STRING, node);
  AddNodeAttr("value", tensor, node);
}

// Adds the nodes that save and restore the variables, as TensorFlow's saver does. `prefix` is the
// first part of their names.
void AddSaver(const std::string& prefix, const std::vector<ModelVariable>& variables,
              GraphDef* graph, SaverDef* saver) {
  const auto add = [&](const std::string& name, const char* op,
                       const std::vector<std::string>& inputs) {
    NodeDef* const node = graph->add_node();
    node->set_name(absl::StrCat(prefix, "/", name));
    node->set_op(op);
    for (const std::string& input : inputs) {
      const bool is_control = input[0] == '^';
      node->add_input(absl::StrCat(is_control ? "^" : "", prefix, "/", input.substr(is_control)));
    }
    return node;
  };
  SetStrings({"model"}, {}, add("filename/input", "Const", {}));
  NodeDef* node = add("filename", "PlaceholderWithDefault", {"filename/input"});
  AddNodeAttr("dtype", DT_STRING, node);
  AddNodeAttr("shape", PartialTensorShape(TensorShape()), node);
  std::vector<std::string> names;
  DataTypeVector types;
  for (const ModelVariable& variable : variables) {
    names.push_back(variable.key);
    types.push_back(variable.dtype);
  }
  const TensorShape shape({static_cast<int64_t>(names.size())});
  SetStrings(names, shape, add("names", "Const", {}));
  SetStrings(std::vector<std::string>(names.size()), shape, add("slices", "Const", {}));
  std::vector<std::string> saved = {"filename", "names", "slices"};
  std::vector<std::string> assigned;
  for (size_t i = 0; i < variables.size(); ++i) {
    const ModelVariable& variable = variables[i];
    const bool is_resource = variable.slice == "resource";
    const std::string read = absl::StrCat("read_", i);
    node = add(read, is_resource ? "ReadVariableOp" : "Identity", {});
    node->add_input(variable.node);
    AddNodeAttr(is_resource ? "dtype" : "T", variable.dtype, node);
    saved.push_back(read);
  }
  if (!variables.empty()) {
    AddNodeAttr("dtypes", types, add("SaveV2", "SaveV2", saved));
    AddNodeAttr("dtypes", types, add("RestoreV2", "RestoreV2", {"filename", "names", "slices"}));
  }
  for (size_t i = 0; i < variables.size(); ++i) {
    const ModelVariable& variable = variables[i];
    const bool is_resource = variable.slice == "resource";
    const std::string assign = absl::StrCat("assign_", i);
    node = add(assign, is_resource ? "AssignVariableOp" : "Assign", {});
    node->add_input(variable.node);
    node->add_input(i == 0 ? absl::StrCat(prefix, "/RestoreV2")
                           : absl::StrCat(prefix, "/RestoreV2:", i));
    AddNodeAttr(is_resource ? "dtype" : "T", variable.dtype, node);
    assigned.push_back("^" + assign);
  }
  add("restore_all", "NoOp", assigned);
  // The tensor that a program fetches to save.
  node = add("saved", "Identity",
             variables.empty() ? std::vector<std::string>{"filename"}
                               : std::vector<std::string>{"filename", "^SaveV2"});
  AddNodeAttr("T", DT_STRING, node);
  saver->set_filename_tensor_name(prefix + "/filename:0");
  saver->set_save_tensor_name(prefix + "/saved:0");
  saver->set_restore_op_name(prefix + "/restore_all");
  saver->set_version(SaverDef::V2);
}

absl::Status FromError(const std::error_code& error, const fs::path& path) {
  if (!error) return absl::OkStatus();
  return absl::ErrnoToStatus(error.value(), absl::StrCat("'", path.string(), "'"));
}

// Moves a folder to the place of another, and the other to the first's.
absl::Status Exchange(const std::string& a, const std::string& b) {
  if (renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0) {
    return absl::OkStatus();
  }
  return absl::ErrnoToStatus(errno, absl::StrCat("'", b, "': cannot replace the folder"));
}

}  // namespace

absl::StatusOr<std::string> SerializeSavedModel(const SavedModel& model) {
  if (model.ByteSizeLong() >= (size_t{1} << 31)) {
    return errors::InvalidArgument("the graphs have ", model.ByteSizeLong(),
                                   " bytes, but a SavedModel has less than 2 GiB");
  }
  std::string bytes;
  if (!model.SerializeToString(&bytes)) {
    return errors::Internal("the model cannot be serialized");
  }
  return bytes;
}

absl::Status SavedModelBuilder::AddAsset(const std::string& file, std::string* name) {
  *name = fs::path(file).filename().string();
  if (name->empty()) return errors::InvalidArgument("'", file, "' is not a file");
  const auto [place, is_new] = assets_.emplace(*name, file);
  if (is_new || place->second == file) return absl::OkStatus();
  return errors::InvalidArgument("the assets '", place->second, "' and '", file,
                                 "' have the same name");
}

absl::Status SavedModelBuilder::AddGraph(const Scope& scope, const ResourceManager* resources,
                                         const std::unordered_set<std::string>& tags,
                                         const std::vector<NewSignature>& signatures,
                                         const NewGraphOptions& options) {
  return CallSafely([&]() -> absl::Status {
    MetaGraphDef graph;
    GRADFLOW_RETURN_IF_ERROR(scope.ToGraphDef(graph.mutable_graph_def()));
    auto& info = *graph.mutable_meta_info_def();
    std::set<std::string> sorted(tags.begin(), tags.end());
    for (const std::string& tag : sorted) info.add_tags(tag);
    for (const MetaGraphDef& other : model_.meta_graphs()) {
      const auto& used = other.meta_info_def().tags();
      if (std::set<std::string>(used.begin(), used.end()) == sorted) {
        return errors::InvalidArgument("the model already has a graph with these tags");
      }
    }
    // TensorFlow restores models of older versions in another way.
    info.set_tensorflow_version("2.0.0");
    info.set_tensorflow_git_version("gradflow " GRADFLOW_VERSION_STRING);
    for (const NewSignature& signature : signatures) {
      SignatureDef& def = (*graph.mutable_signature_def())[signature.name];
      const auto prefix = [&](const std::string& name) {
        return absl::StrCat("signature ", internal::Quoted(signature.name), ", ",
                            internal::Quoted(name), ": ");
      };
      if (signature.name.empty() || !def.method_name().empty() || !def.outputs().empty()) {
        return errors::InvalidArgument("the name of signature ", internal::Quoted(signature.name),
                                       " is empty or in use");
      }
      def.set_method_name(signature.method_name);
      for (const auto& [tensors, to] : {std::pair(&signature.inputs, def.mutable_inputs()),
                                        std::pair(&signature.outputs, def.mutable_outputs())}) {
        for (const auto& [name, output] : *tensors) {
          absl::StatusOr<TensorInfo> tensor = InfoOf(output);
          if (!tensor.ok()) return errors::Prefix(prefix(name), tensor.status());
          if (!to->insert({name, *std::move(tensor)}).second) {
            return errors::InvalidArgument(prefix(name), "the name is in use");
          }
        }
      }
    }
    std::vector<ModelVariable> variables;
    // The variables, by their names in the checkpoint.
    std::map<std::string, internal::VariableKey> names;
    std::map<std::string, Tensor> values;
    std::string saver = "saver";
    for (const NodeDef& node : graph.graph_def().node()) {
      while (absl::StartsWith(node.name(), saver)) saver += "_";
      absl::StatusOr<ModelVariable> variable = internal::VariableOfNode(node);
      if (!variable.ok()) continue;
      // TensorFlow has one container of variables.
      variable->key = variable->container.empty()
                          ? variable->name
                          : absl::StrCat(variable->container, "/", variable->name);
      const internal::VariableKey key(variable->container, variable->name);
      const auto [known, is_new] = names.emplace(variable->key, key);
      if (!is_new && known->second != key) {
        return errors::InvalidArgument("two variables would have the name ",
                                       internal::Quoted(variable->key), " in the checkpoint");
      }
      variable->slice = node.op() == "VarHandleOp" ? "resource" : "";
      if (values.count(variable->key) == 0 && tensors_.count(variable->key) == 0) {
        GRADFLOW_ASSIGN_OR_RETURN(Tensor value, ValueOf(*variable, resources));
        values.emplace(variable->key, std::move(value));
      }
      // One of several nodes of a variable restores it.
      if (is_new) variables.push_back(*std::move(variable));
    }
    AddSaver(saver, variables, graph.mutable_graph_def(), graph.mutable_saver_def());
    if (options.init_op.node() != nullptr) {
      const std::string& name = options.init_op.node()->name();
      (*graph.mutable_collection_def())["saved_model_main_op"].mutable_node_list()->add_value(name);
      TensorInfo& output =
          (*(*graph.mutable_signature_def())[kInitName].mutable_outputs())[kInitName];
      output.set_name(name);
      output.mutable_tensor_shape()->set_unknown_rank(true);
    }
    for (const auto& [output, file] : options.assets) {
      GRADFLOW_ASSIGN_OR_RETURN(TensorInfo tensor, InfoOf(output));
      AssetFileDef& asset = *graph.add_asset_file_def();
      GRADFLOW_RETURN_IF_ERROR(AddAsset(file, asset.mutable_filename()));
      *asset.mutable_tensor_info() = std::move(tensor);
    }
    tensors_.merge(values);
    *model_.add_meta_graphs() = std::move(graph);
    return absl::OkStatus();
  });
}

absl::Status SavedModelBuilder::AddModel(const std::string& folder, const MetaGraphDef& meta_graph,
                                         const ResourceManager* resources) {
  const absl::Status status = CallSafely([&]() -> absl::Status {
    GRADFLOW_ASSIGN_OR_RETURN(const FileAccess files, internal::FilesOf(folder));
    std::map<std::string, Tensor> tensors;
    GRADFLOW_ASSIGN_OR_RETURN(const std::optional<Checkpoint> checkpoint,
                              OpenSavedModelCheckpoint(folder));
    if (checkpoint.has_value()) {
      internal::SavedGraph graph(meta_graph.graph_def(), meta_graph.saver_def());
      const internal::Restoration restoration = graph.FindRestoration();
      GRADFLOW_ASSIGN_OR_RETURN(const TrackableObjectGraph objects,
                                ReadTrackableObjectGraph(*checkpoint));
      std::vector<ModelVariable> variables =
          graph.FindByObject(restoration, meta_graph.object_graph_def(), objects);
      // The saver and the objects may name different variables for one tensor. Signatures use the
      // variables that the objects name, so they come first.
      variables.insert(variables.end(), restoration.variables.begin(), restoration.variables.end());
      for (const ModelVariable& variable : variables) {
        if (!variable.slice.empty()) {
          return errors::Unimplemented("variable ", internal::Quoted(variable.name),
                                       " is a part of a tensor of the checkpoint");
        }
        if (tensors.count(variable.key) > 0) continue;
        absl::StatusOr<Tensor> value = ValueOf(variable, resources);
        if (value.ok()) tensors.emplace(variable.key, *std::move(value));
      }
      for (const std::string& name : checkpoint->Names()) {
        if (tensors.count(name) > 0) continue;
        GRADFLOW_ASSIGN_OR_RETURN(Tensor value, checkpoint->Read(name));
        tensors.emplace(name, std::move(value));
      }
    }
    for (const AssetFileDef& asset : meta_graph.asset_file_def()) {
      std::string name;
      const fs::path file = fs::path(folder) / internal::kAssetsFolder / asset.filename();
      GRADFLOW_RETURN_IF_ERROR(
          internal::ExplainDenied(files.Check(file.string(), FileAccess::Use::kRead)));
      GRADFLOW_RETURN_IF_ERROR(AddAsset(file.string(), &name));
      if (name != asset.filename()) {
        return errors::Unimplemented("asset ", internal::Quoted(asset.filename()),
                                     " is in a subfolder of assets");
      }
    }
    for (auto& [name, value] : tensors) {
      if (!tensors_.emplace(name, value).second) {
        return errors::InvalidArgument("the model already has a tensor ", internal::Quoted(name));
      }
    }
    *model_.add_meta_graphs() = meta_graph;
    return absl::OkStatus();
  });
  return status.ok() ? status : errors::Prefix(absl::StrCat("'", folder, "': "), status);
}

absl::Status SavedModelBuilder::Write(const std::string& folder) const {
  const fs::path to = folder;
  SavedModel model = model_;
  model.set_saved_model_schema_version(1);
  GRADFLOW_ASSIGN_OR_RETURN(const std::string bytes, SerializeSavedModel(model));
  GRADFLOW_RETURN_IF_ERROR(internal::WriteFile((to / internal::kSavedModelFile).string(), {bytes},
                                               /*sync=*/true));
  if (!tensors_.empty()) {
    std::vector<CheckpointTensor> tensors;
    for (const auto& [name, value] : tensors_) tensors.push_back({name, value, ""});
    GRADFLOW_RETURN_IF_ERROR(WriteCheckpoint(SavedModelCheckpoint(folder), tensors));
  }
  std::error_code error;
  if (!assets_.empty()) fs::create_directories(to / internal::kAssetsFolder, error);
  GRADFLOW_RETURN_IF_ERROR(FromError(error, to));
  for (const auto& [name, file] : assets_) {
    fs::copy_file(file, to / internal::kAssetsFolder / name, error);
    GRADFLOW_RETURN_IF_ERROR(FromError(error, file));
  }
  return absl::OkStatus();
}

absl::Status SavedModelBuilder::Save(bool replace) const {
  const absl::Status status = CallSafely([&]() -> absl::Status {
    std::string target = export_dir_;
    while (target.size() > 1 && target.back() == '/') target.pop_back();
    if (model_.meta_graphs_size() == 0) {
      return errors::FailedPrecondition("the builder has no graph");
    }
    std::error_code error;
    const bool exists = fs::exists(fs::symlink_status(target, error));
    if (exists && !replace) return errors::AlreadyExists("the folder exists");
    if (exists && !MaybeSavedModelDirectory(target)) {
      return errors::AlreadyExists("only a folder with a SavedModel can be replaced");
    }
    GRADFLOW_RETURN_IF_ERROR(internal::MakeFolders(target));
    std::string temporary = target + ".tmp-XXXXXX";
    if (mkdtemp(temporary.data()) == nullptr) {
      return absl::ErrnoToStatus(errno, "cannot make a folder next to it");
    }
    // mkdtemp() lets only the user read the folder.
    fs::permissions(temporary,
                    fs::perms::group_read | fs::perms::group_exec | fs::perms::others_read |
                        fs::perms::others_exec,
                    fs::perm_options::add, error);
    absl::Status written = Write(temporary);
    if (written.ok()) {
      if (exists) {
        written = Exchange(temporary, target);
      } else {
        // Fails if another program has made the folder meanwhile, unless it is empty.
        fs::rename(temporary, target, error);
        written = FromError(error, target);
        if (written.ok()) return absl::OkStatus();
      }
    }
    // Removes the new folder after an error, or the replaced folder.
    std::error_code ignored;
    fs::remove_all(temporary, ignored);
    return written;
  });
  return status.ok() ? status : errors::Prefix(absl::StrCat("'", export_dir_, "': "), status);
}

}  // namespace gradflow
