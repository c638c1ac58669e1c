#include "gradflow/saved_model/reader.h"

#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gradflow/core/call_safely.h"
#include "gradflow/core/out_parameter.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/node_checks.h"
#include "gradflow/graph/text_format.h"
#include "gradflow/graph/wire_check.h"
#include "gradflow/io/file.h"
#include "gradflow/io/file_access.h"
#include "gradflow/saved_model/files.h"
#include "gradflow/saved_model/saved_graph.h"

namespace gradflow {
namespace {

namespace fs = std::filesystem;

using internal::kSavedModelFile;
using internal::kSavedModelTextFile;

std::string TagList(const MetaGraphDef& graph) {
  const auto& tags = graph.meta_info_def().tags();
  std::vector<std::string> names;
  for (const std::string& tag : tags) names.push_back(internal::Quoted(tag));
  std::sort(names.begin(), names.end());
  return absl::StrCat("{", absl::StrJoin(names, ", "), "}");
}

// Returns the tags of all graphs, for messages.
std::string AllTags(const SavedModel& model) {
  constexpr int kMaxGraphs = 20;
  std::vector<std::string> lists;
  for (const MetaGraphDef& graph : model.meta_graphs()) {
    if (lists.size() == kMaxGraphs) break;
    lists.push_back(TagList(graph));
  }
  if (model.meta_graphs_size() > kMaxGraphs) lists.emplace_back("...");
  return lists.empty() ? "no graph" : absl::StrJoin(lists, ", ");
}

absl::Status Parse(absl::string_view bytes, bool is_text, const GraphLimits& limits,
                   google::protobuf::Message* message) {
  if (is_text) return internal::MessageFromText(bytes, limits, message);
  GRADFLOW_RETURN_IF_ERROR(internal::CheckWire(bytes, *message, limits));
  // Keeps protobuf from writing the fault to standard error; the status states it.
  const google::protobuf::LogSilencer silencer;
  if (message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::OkStatus();
  }
  GRADFLOW_RETURN_IF_ERROR(internal::ExplainWire(bytes, *message, limits));
  return errors::InvalidArgument("found ", bytes.size(), " other bytes");
}

// Versions of the schema other than 1 do not exist.
absl::Status CheckVersion(const SavedModel& model) {
  if (model.saved_model_schema_version() <= 1) return absl::OkStatus();
  return errors::InvalidArgument("expected version 1 of the schema, but found ",
                                 model.saved_model_schema_version());
}

// TensorFlow 1 lists the assets in a collection. Adds them to the field of the message, unless it
// has assets.
absl::Status AddAssetsOfCollection(const std::string& export_dir, MetaGraphDef* graph) {
  const auto collection = graph->collection_def().find("saved_model_assets");
  if (collection == graph->collection_def().end() || graph->asset_file_def_size() > 0) {
    return absl::OkStatus();
  }
  for (const google::protobuf::Any& value : collection->second.any_list().value()) {
    if (!absl::EndsWith(value.type_url(), "/tensorflow.AssetFileDef") ||
        !graph->add_asset_file_def()->ParseFromString(value.value())) {
      return errors::InvalidArgument(
          "'", export_dir,
          "': collection 'saved_model_assets' has an element that is not "
          "an AssetFileDef");
    }
  }
  return absl::OkStatus();
}

}  // namespace

namespace internal {

bool FileExists(const std::string& path) {
  std::error_code unknown;
  return fs::exists(path, unknown);
}

absl::StatusOr<FileAccess> FilesOf(const std::string& export_dir) {
  return FileAccess::Below({export_dir}, {});
}

absl::Status ExplainDenied(const absl::Status& status) {
  if (!absl::IsPermissionDenied(status)) return status;
  return absl::PermissionDeniedError(
      absl::StrCat(status.message(), "; the files of a SavedModel must be inside its folder"));
}

absl::Status ReadMessage(const std::string& path, const FileAccess& files, absl::string_view kind,
                         const GraphLimits& limits, google::protobuf::Message* message) {
  const auto read = [&]() -> absl::Status {
    size_t size = 0;
    const absl::StatusOr<FileDescriptor> file = OpenFile(path, &size, files);
    if (!file.ok()) return ExplainDenied(file.status());
    if (size == 0) return errors::InvalidArgument("expected a ", kind, ", but the file is empty");
    const auto limit = static_cast<size_t>(
        std::clamp<int64_t>(limits.max_file_bytes, 0, std::numeric_limits<int>::max()));
    if (size > limit) {
      return errors::InvalidArgument("expected a ", kind, " of at most ", limit,
                                     " bytes (GraphLimits::max_file_bytes), but found ", size);
    }
    std::string bytes(size, '\0');
    GRADFLOW_RETURN_IF_ERROR(ReadAt(file->get(), 0, bytes.data(), size));
    const bool is_text = fs::path(path).extension() == ".pbtxt";
    return errors::Prefix(absl::StrCat("expected a ", kind, is_text ? " as text: " : ": "),
                          Parse(bytes, is_text, limits, message));
  };
  return errors::Prefix(absl::StrCat("'", path, "': "), CallSafely(read));
}

}  // namespace internal

// Reads a message of the folder. Returns null if there is no such file.
template <typename Message>
static absl::StatusOr<std::unique_ptr<Message>> ReadOptional(const std::string& export_dir,
                                                             const char* file, const char* kind,
                                                             const GraphLimits& limits) {
  const std::string path = (fs::path(export_dir) / file).string();
  if (!internal::FileExists(path)) return nullptr;
  GRADFLOW_ASSIGN_OR_RETURN(const FileAccess files, internal::FilesOf(export_dir));
  auto message = std::make_unique<Message>();
  GRADFLOW_RETURN_IF_ERROR(internal::ReadMessage(path, files, kind, limits, message.get()));
  return message;
}

absl::StatusOr<SavedModel> ReadSavedModel(const std::string& export_dir,
                                          const GraphLimits& limits) {
  const std::string path = SavedModelFile(export_dir);
  if (path.empty()) {
    return errors::NotFound("'", export_dir, "': expected a SavedModel, a folder with ",
                            kSavedModelFile, " or ", kSavedModelTextFile);
  }
  GRADFLOW_ASSIGN_OR_RETURN(const FileAccess files, internal::FilesOf(export_dir));
  SavedModel model;
  GRADFLOW_RETURN_IF_ERROR(internal::ReadMessage(path, files, "SavedModel", limits, &model));
  const absl::Status status = CheckVersion(model);
  if (!status.ok()) return errors::Prefix(absl::StrCat("'", path, "': "), status);
  return model;
}

absl::StatusOr<SavedModel> ParseSavedModel(absl::string_view bytes, bool is_text,
                                           const GraphLimits& limits) {
  SavedModel model;
  GRADFLOW_RETURN_IF_ERROR(CallSafely([&] { return Parse(bytes, is_text, limits, &model); }));
  GRADFLOW_RETURN_IF_ERROR(CheckVersion(model));
  return model;
}

absl::StatusOr<std::unique_ptr<GraphDebugInfo>> ReadSavedModelDebugInfo(
    const std::string& export_dir, const GraphLimits& limits) {
  return ReadOptional<GraphDebugInfo>(export_dir, "debug/saved_model_debug_info.pb",
                                      "GraphDebugInfo", limits);
}

absl::StatusOr<std::unique_ptr<FingerprintDef>> ReadSavedModelFingerprint(
    const std::string& export_dir, const GraphLimits& limits) {
  return ReadOptional<FingerprintDef>(export_dir, "fingerprint.pb", "FingerprintDef", limits);
}

absl::StatusOr<int> FindMetaGraph(const std::string& export_dir,
                                  const std::unordered_set<std::string>& tags,
                                  const SavedModel& model) {
  for (int i = 0; i < model.meta_graphs_size(); ++i) {
    const auto& found = model.meta_graphs(i).meta_info_def().tags();
    if (std::unordered_set<std::string>(found.begin(), found.end()) == tags) return i;
  }
  MetaGraphDef wanted;
  for (const std::string& tag : tags) wanted.mutable_meta_info_def()->add_tags(tag);
  return errors::NotFound("'", export_dir, "': no graph of the SavedModel has the tags ",
                          TagList(wanted), "; it has ", AllTags(model));
}

absl::Status TakeMetaGraph(const std::string& export_dir,
                           const std::unordered_set<std::string>& tags, SavedModel* model,
                           MetaGraphDef* meta_graph) {
  GRADFLOW_RETURN_IF_ERROR(internal::CheckOut(model, "TakeMetaGraph", "model"));
  GRADFLOW_RETURN_IF_ERROR(internal::CheckOut(meta_graph, "TakeMetaGraph", "meta_graph"));
  GRADFLOW_ASSIGN_OR_RETURN(const int index, FindMetaGraph(export_dir, tags, *model));
  MetaGraphDef& graph = *model->mutable_meta_graphs(index);
  GRADFLOW_RETURN_IF_ERROR(AddAssetsOfCollection(export_dir, &graph));
  *meta_graph = std::move(graph);
  return absl::OkStatus();
}

absl::Status ReadMetaGraphDefFromSavedModel(const std::string& export_dir,
                                            const std::unordered_set<std::string>& tags,
                                            MetaGraphDef* meta_graph, const GraphLimits& limits) {
  GRADFLOW_RETURN_IF_ERROR(
      internal::CheckOut(meta_graph, "ReadMetaGraphDefFromSavedModel", "meta_graph"));
  GRADFLOW_ASSIGN_OR_RETURN(SavedModel model, ReadSavedModel(export_dir, limits));
  return TakeMetaGraph(export_dir, tags, &model, meta_graph);
}

absl::StatusOr<std::vector<ModelVariable>> ModelVariables(const MetaGraphDef& meta_graph,
                                                          const Checkpoint* checkpoint) {
  std::vector<ModelVariable> variables;
  std::set<internal::VariableKey> seen;
  const auto add_all = [&](const auto& nodes) {
    for (const NodeDef& node : nodes) {
      absl::StatusOr<ModelVariable> variable = internal::VariableOfNode(node);
      if (!variable.ok() || !seen.emplace(variable->container, variable->name).second) continue;
      variables.push_back(*std::move(variable));
    }
  };
  GRADFLOW_RETURN_IF_ERROR(CallSafely([&]() -> absl::Status {
    add_all(meta_graph.graph_def().node());
    for (const FunctionDef& function : meta_graph.graph_def().library().function()) {
      add_all(function.node_def());
    }
    internal::SavedGraph graph(meta_graph.graph_def(), meta_graph.saver_def());
    const internal::Restoration restoration = graph.FindRestoration();
    std::map<internal::VariableKey, const ModelVariable*> restored;
    for (const ModelVariable& variable : restoration.variables) {
      restored.emplace(internal::VariableKey(variable.container, variable.name), &variable);
    }
    std::vector<ModelVariable> by_object;
    if (checkpoint != nullptr && meta_graph.has_object_graph_def()) {
      GRADFLOW_ASSIGN_OR_RETURN(const TrackableObjectGraph tensors,
                                ReadTrackableObjectGraph(*checkpoint));
      by_object = graph.FindByObject(restoration, meta_graph.object_graph_def(), tensors);
    }
    for (const ModelVariable& variable : by_object) {
      if (!checkpoint->Find(variable.key).ok()) continue;
      restored.emplace(internal::VariableKey(variable.container, variable.name), &variable);
    }
    for (ModelVariable& variable : variables) {
      const auto found = restored.find({variable.container, variable.name});
      if (found == restored.end()) continue;
      variable.key = found->second->key;
      variable.slice = found->second->slice;
    }
    return absl::OkStatus();
  }));
  return variables;
}

std::vector<std::string> MissingOpsOf(const MetaGraphDef& meta_graph,
                                      const std::vector<std::string>& tensors,
                                      const std::vector<std::string>& feeds,
                                      const Registry& registry) {
  internal::SavedGraph graph(meta_graph.graph_def(), meta_graph.saver_def());
  const std::set<std::string> missing = graph.FindMissingOps(tensors, feeds, registry);
  return std::vector<std::string>(missing.begin(), missing.end());
}

absl::StatusOr<TrackableObjectGraph> ReadTrackableObjectGraph(const Checkpoint& checkpoint,
                                                              const GraphLimits& limits) {
  constexpr char kKey[] = "_CHECKPOINTABLE_OBJECT_GRAPH";
  TrackableObjectGraph graph;
  const absl::StatusOr<Checkpoint::Info> info = checkpoint.Find(kKey);
  if (!info.ok() || info->dtype != DT_STRING || info->shape.num_elements() != 1) return graph;
  absl::StatusOr<Tensor> value = checkpoint.Read(kKey);
  if (!value.ok()) return internal::ExplainDenied(value.status());
  const absl::string_view bytes = value->span<tstring>()[0];
  GRADFLOW_RETURN_IF_ERROR(
      errors::Prefix(absl::StrCat("expected a TrackableObjectGraph in '", kKey, "': "),
                     Parse(bytes, /*is_text=*/false, limits, &graph)));
  return graph;
}

std::string SavedModelFile(const std::string& export_dir) {
  for (const char* const name : {kSavedModelFile, kSavedModelTextFile}) {
    std::string path = (fs::path(export_dir) / name).string();
    if (internal::FileExists(path)) return path;
  }
  return "";
}

bool MaybeSavedModelDirectory(const std::string& export_dir) {
  return !SavedModelFile(export_dir).empty();
}

absl::StatusOr<std::optional<Checkpoint>> OpenSavedModelCheckpoint(
    const std::string& export_dir, const std::shared_ptr<Allocator>& allocator) {
  const std::string prefix = SavedModelCheckpoint(export_dir);
  // As in TensorFlow, a model without this file has no variables.
  if (!internal::FileExists(prefix + ".index")) return std::nullopt;
  GRADFLOW_ASSIGN_OR_RETURN(const FileAccess files, internal::FilesOf(export_dir));
  absl::StatusOr<Checkpoint> opened = Checkpoint::Open(prefix, allocator, files);
  if (!opened.ok()) return internal::ExplainDenied(opened.status());
  return *std::move(opened);
}

std::string SavedModelCheckpoint(const std::string& export_dir) {
  return (fs::path(export_dir) / "variables" / "variables").string();
}

}  // namespace gradflow
