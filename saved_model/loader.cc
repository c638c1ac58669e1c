#include "gradflow/saved_model/loader.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gradflow/core/call_safely.h"
#include "gradflow/core/out_parameter.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/core/variable.h"
#include "gradflow/graph/node_checks.h"
#include "gradflow/io/checkpoint.h"
#include "gradflow/saved_model/files.h"
#include "gradflow/saved_model/missing_ops.h"
#include "gradflow/saved_model/reader.h"
#include "gradflow/saved_model/saved_graph.h"
#include "gradflow/saved_model/signature_tensors.h"

namespace gradflow {
namespace {

namespace fs = std::filesystem;

using Feeds = std::vector<std::pair<std::string, Tensor>>;
using SignatureMap = SavedModelBundleInterface::SignatureMap;

constexpr char kInitSignature[] = "__saved_model_init_op";
constexpr char kTrainSignature[] = "__saved_model_train_op";
constexpr char kMainOpCollection[] = "saved_model_main_op";
constexpr char kLegacyInitCollection[] = "legacy_init_op";

// The steps that load a graph.
struct LoadPlan {
  internal::Restoration restoration;
  // Further variables that the checkpoint may hold.
  std::vector<ModelVariable> by_object;
  // The tensors that the objects of the exporting program name. The checkpoint lacks the tensors of
  // variables that had no value.
  std::set<std::string> object_keys;
  // The variables outside of functions.
  std::vector<ModelVariable> variables;
  // The variables that a signature may write.
  std::set<internal::VariableKey> written;
  // The node that initializes the model; empty for none.
  std::string init_op;
  SaverDef saver;
};

// Returns the name of the node of a tensor.
std::string NodeOfTensor(absl::string_view tensor) {
  if (absl::StartsWith(tensor, "^")) tensor.remove_prefix(1);
  return std::string(tensor.substr(0, tensor.rfind(':')));
}

absl::StatusOr<std::string> FindInitOp(const MetaGraphDef& meta_graph) {
  const auto signature = meta_graph.signature_def().find(kInitSignature);
  if (signature != meta_graph.signature_def().end()) {
    const auto output = signature->second.outputs().find(kInitSignature);
    if (output == signature->second.outputs().end() || output->second.name().empty()) {
      return errors::InvalidArgument("signature '", kInitSignature, "' has no output of its name");
    }
    return NodeOfTensor(output->second.name());
  }
  for (const char* const name : {kMainOpCollection, kLegacyInitCollection}) {
    const auto collection = meta_graph.collection_def().find(name);
    if (collection == meta_graph.collection_def().end()) continue;
    const auto& nodes = collection->second.node_list().value();
    if (nodes.size() != 1) {
      return errors::FailedPrecondition("collection '", name, "': expected one node, found ",
                                        nodes.size());
    }
    return NodeOfTensor(nodes[0]);
  }
  return std::string();
}

// Returns the names of the tensors that the signatures compute, except the signature that
// initializes the model.
std::vector<std::string> SignatureOutputs(const SignatureMap& signatures) {
  std::vector<std::string> names;
  for (const auto& [name, signature] : signatures) {
    if (name == kInitSignature) continue;
    const auto outputs = internal::SignatureTensors(signature.outputs());
    if (!outputs.ok()) continue;
    for (const SignatureTensor& output : *outputs) names.push_back(output.tensor_name);
  }
  return names;
}

// `checkpoint` may be null.
absl::StatusOr<LoadPlan> PlanLoading(const MetaGraphDef& meta_graph, const Checkpoint* checkpoint,
                                     const GraphLimits& limits, bool freezes) {
  LoadPlan plan;
  GRADFLOW_ASSIGN_OR_RETURN(plan.init_op, FindInitOp(meta_graph));
  plan.saver = meta_graph.saver_def();
  internal::SavedGraph graph(meta_graph.graph_def(), plan.saver);
  plan.restoration = graph.FindRestoration();
  if (checkpoint != nullptr && meta_graph.has_object_graph_def()) {
    GRADFLOW_ASSIGN_OR_RETURN(const TrackableObjectGraph tensors,
                              ReadTrackableObjectGraph(*checkpoint, limits));
    plan.by_object = graph.FindByObject(plan.restoration, meta_graph.object_graph_def(), tensors);
    for (const auto& object : tensors.nodes()) {
      for (const auto& attribute : object.attributes()) {
        plan.object_keys.insert(attribute.checkpoint_key());
      }
    }
  }
  if (freezes) {
    plan.written = graph.FindWritten(SignatureOutputs(meta_graph.signature_def()));
    for (const NodeDef& node : meta_graph.graph_def().node()) {
      absl::StatusOr<ModelVariable> variable = internal::VariableOfNode(node);
      if (variable.ok()) plan.variables.push_back(*std::move(variable));
    }
  }
  return plan;
}

// Returns the feeds of the paths of assets.
absl::StatusOr<Feeds> AssetFeeds(const MetaGraphDef& meta_graph, const std::string& export_dir,
                                 const FileAccess& files) {
  Feeds feeds;
  std::set<std::string> fed;
  for (const AssetFileDef& asset : meta_graph.asset_file_def()) {
    const std::string& name = asset.filename();
    const std::vector<absl::string_view> parts = absl::StrSplit(name, '/');
    const bool leaves = std::find(parts.begin(), parts.end(), "..") != parts.end();
    if (name.empty() || name[0] == '/' || leaves || absl::StrContains(name, '\0')) {
      return errors::InvalidArgument("asset ", internal::Quoted(name),
                                     ": expected a relative path below ", internal::kAssetsFolder);
    }
    const std::string path = (fs::path(export_dir) / internal::kAssetsFolder / name).string();
    if (const absl::Status status = files.Check(path, FileAccess::Use::kRead); !status.ok()) {
      return errors::Prefix(absl::StrCat("asset ", internal::Quoted(name), ": "),
                            internal::ExplainDenied(status));
    }
    if (!fed.insert(asset.tensor_info().name()).second) continue;
    feeds.emplace_back(asset.tensor_info().name(), Tensor(tstring(path)));
  }
  return feeds;
}

// Reads tensors of a checkpoint. Variables with the same tensor, or with equal tensors, share a
// buffer: Keras stores each weight twice. A variable that is written copies its shared buffer
// first.
class TensorReader {
 public:
  TensorReader(const Checkpoint& checkpoint, std::shared_ptr<Allocator> allocator)
      : checkpoint_(checkpoint), allocator_(std::move(allocator)) {}

  const Checkpoint& checkpoint() const { return checkpoint_; }
  absl::StatusOr<Tensor> Read(const std::string& key, const std::string& slice) {
    const auto known = by_key_.find({key, slice});
    if (known != by_key_.end()) return known->second;
    GRADFLOW_ASSIGN_OR_RETURN(Tensor value, checkpoint_.Read(key, slice, allocator_));
    // Sharing small tensors saves little memory. Strings, variants and handles are not compared.
    constexpr size_t kMinBytes = 1024;
    const DataType dtype = value.dtype();
    const bool is_number = dtype != DT_STRING && dtype != DT_VARIANT && dtype != DT_RESOURCE;
    if (is_number && value.TotalBytes() >= kMinBytes) {
      const absl::string_view bytes = value.tensor_data();
      std::vector<Tensor>& others = by_ends_[Ends(bytes)];
      const auto equal = std::find_if(others.begin(), others.end(), [&](const Tensor& other) {
        return other.dtype() == value.dtype() && other.shape() == value.shape() &&
               other.tensor_data() == bytes;
      });
      // Bounds the time for many tensors that differ only between their ends.
      constexpr size_t kMaxCompared = 16;
      if (equal != others.end()) {
        value = *equal;
      } else if (others.size() < kMaxCompared) {
        others.push_back(value);
      }
    }
    by_key_.emplace(std::pair(key, slice), value);
    return value;
  }

 private:
  // Returns the first and the last bytes.
  static std::string Ends(absl::string_view bytes) {
    constexpr size_t kBytes = 64;
    return absl::StrCat(bytes.substr(0, kBytes), bytes.substr(bytes.size() - kBytes));
  }

  const Checkpoint& checkpoint_;
  const std::shared_ptr<Allocator> allocator_;
  std::map<std::pair<std::string, std::string>, Tensor> by_key_;
  // The tensors that are compared, by their ends.
  std::unordered_map<std::string, std::vector<Tensor>> by_ends_;
};

absl::Status RestoreVariable(const ModelVariable& variable, TensorReader* reader,
                             Session* session) {
  if (absl::StartsWith(variable.container, kReservedContainers)) {
    return errors::InvalidArgument("container ", internal::Quoted(variable.container),
                                   " is reserved");
  }
  GRADFLOW_ASSIGN_OR_RETURN(const Checkpoint::Info info, reader->checkpoint().Find(variable.key));
  if (info.dtype != variable.dtype) {
    return errors::InvalidArgument("expected type ", DataTypeString(variable.dtype),
                                   ", but the checkpoint has ", DataTypeString(info.dtype));
  }
  const auto check_shape = [&](const TensorShape& shape) -> absl::Status {
    if (variable.shape.IsCompatibleWith(shape)) return absl::OkStatus();
    return errors::InvalidArgument("expected shape ", variable.shape.DebugString(),
                                   ", but the checkpoint has ", shape.DebugString());
  };
  if (variable.slice.empty()) GRADFLOW_RETURN_IF_ERROR(check_shape(info.shape));
  GRADFLOW_ASSIGN_OR_RETURN(const Tensor value, reader->Read(variable.key, variable.slice));
  GRADFLOW_RETURN_IF_ERROR(check_shape(value.shape()));
  GRADFLOW_ASSIGN_OR_RETURN(
      const std::shared_ptr<Variable> made,
      session->resources()->LookupOrCreate<Variable>(variable.container, variable.name, [&] {
        return std::make_shared<Variable>(variable.dtype, variable.shape, variable.name);
      }));
  return made->Assign(value);
}

// `checkpoint` is null if the model has no variables.
absl::Status RestoreVariables(const RunOptions& run_options, const LoadPlan& plan,
                              const std::string& export_dir, const Checkpoint* checkpoint,
                              const Feeds& assets, Session* session) {
  if (checkpoint == nullptr) return absl::OkStatus();
  std::vector<ModelVariable> variables = plan.restoration.variables;
  if (!plan.restoration.other.empty()) {
    variables.clear();
    if (!plan.saver.restore_op_name().empty()) {
      Feeds feeds = assets;
      feeds.emplace_back(plan.saver.filename_tensor_name(),
                         Tensor(tstring(SavedModelCheckpoint(export_dir))));
      GRADFLOW_RETURN_IF_ERROR(errors::Prefix(
          "restoring the variables: ",
          session->Run(run_options, feeds, {}, {plan.saver.restore_op_name()}, nullptr, nullptr)));
    }
  }
  variables.insert(variables.end(), plan.by_object.begin(), plan.by_object.end());
  TensorReader reader(*checkpoint, session->allocator());
  std::set<internal::VariableKey> restored;
  for (const ModelVariable& variable : variables) {
    // Several nodes may stand for one variable.
    if (!restored.emplace(variable.container, variable.name).second) continue;
    if (plan.object_keys.count(variable.key) > 0 && !checkpoint->Find(variable.key).ok()) continue;
    const absl::Status status = RestoreVariable(variable, &reader, session);
    if (!status.ok()) {
      return errors::Prefix(absl::StrCat("variable ", internal::Quoted(variable.name), " (",
                                         internal::Quoted(variable.key), " in the checkpoint): "),
                            internal::ExplainDenied(status));
    }
  }
  return absl::OkStatus();
}

absl::Status Initialize(const RunOptions& run_options, const LoadPlan& plan,
                        const std::string& export_dir, const Checkpoint* checkpoint,
                        const Feeds& assets, Session* session) {
  GRADFLOW_RETURN_IF_ERROR(
      RestoreVariables(run_options, plan, export_dir, checkpoint, assets, session));
  if (!plan.init_op.empty()) {
    const absl::Status status =
        session->Run(run_options, assets, {}, {plan.init_op}, nullptr, nullptr);
    if (!status.ok()) return errors::Prefix("initializing the model: ", status);
  }
  for (const ModelVariable& variable : plan.variables) {
    if (plan.written.count({variable.container, variable.name}) > 0) continue;
    const auto found = session->resources()->Lookup<Variable>(variable.container, variable.name);
    if (found.ok() && (*found)->IsInitialized()) (*found)->Freeze();
  }
  return absl::OkStatus();
}

// Removes the requests of nodes for other devices than the CPU.
void MoveToCpu(GraphDef* graph) {
  const auto move = [](NodeDef* node) {
    if (DeviceType(node->device()) != "CPU") node->clear_device();
  };
  for (NodeDef& node : *graph->mutable_node()) move(&node);
  for (FunctionDef& function : *graph->mutable_library()->mutable_function()) {
    for (NodeDef& node : *function.mutable_node_def()) move(&node);
  }
}

// Loads the graph, whose GraphDef it moves unless `keeps_graph`.
absl::StatusOr<std::unique_ptr<Session>> Load(const SessionOptions& session_options,
                                              const RunOptions& run_options,
                                              const std::string& export_dir,
                                              const std::unordered_set<std::string>& tags,
                                              bool keeps_graph, MetaGraphDef* meta_graph) {
  GRADFLOW_RETURN_IF_ERROR(
      ReadMetaGraphDefFromSavedModel(export_dir, tags, meta_graph, session_options.graph_limits));
  std::unique_ptr<Session> session;
  const absl::Status status = CallSafely([&]() -> absl::Status {
    GRADFLOW_ASSIGN_OR_RETURN(const FileAccess files, internal::FilesOf(export_dir));
    SessionOptions options = session_options;
    options.allow_missing_ops = true;
    GRADFLOW_ASSIGN_OR_RETURN(options.file_access, options.file_access.AlsoReading(export_dir));
    GRADFLOW_ASSIGN_OR_RETURN(const Feeds assets, AssetFeeds(*meta_graph, export_dir, files));
    const bool freezes =
        session_options.freeze_variables.value_or(tags.count(kSavedModelServeTag) > 0);
    GRADFLOW_ASSIGN_OR_RETURN(session, Session::Make(options));
    GRADFLOW_ASSIGN_OR_RETURN(const std::optional<Checkpoint> checkpoint,
                              OpenSavedModelCheckpoint(export_dir, session->allocator()));
    const Checkpoint* const variables = checkpoint.has_value() ? &*checkpoint : nullptr;
    GRADFLOW_ASSIGN_OR_RETURN(
        const LoadPlan plan,
        PlanLoading(*meta_graph, variables, session_options.graph_limits, freezes));
    GraphDef graph;
    if (keeps_graph) {
      graph = meta_graph->graph_def();
    } else {
      graph = std::move(*meta_graph->mutable_graph_def());
    }
    if (options.config.allow_soft_placement()) MoveToCpu(&graph);
    internal::WrapMissingOps(meta_graph->meta_info_def().stripped_op_list(), GlobalRegistry(),
                             &graph);
    GRADFLOW_RETURN_IF_ERROR(session->Create(std::move(graph)));
    return Initialize(run_options, plan, export_dir, variables, assets, session.get());
  });
  if (!status.ok()) return errors::Prefix(absl::StrCat("'", export_dir, "': "), status);
  return session;
}

void CloseSession(Session* session) {
  if (session != nullptr) session->Close().IgnoreError();
}

}  // namespace

SavedModelBundleInterface::~SavedModelBundleInterface() = default;
SavedModelBundle::~SavedModelBundle() { CloseSession(session.get()); }
SavedModelBundleLite::~SavedModelBundleLite() { CloseSession(session_.get()); }

std::vector<std::string> SavedModelBundleInterface::SignatureNames() const {
  std::vector<std::string> names;
  for (const auto& [name, signature] : GetSignatures()) {
    if (name != kInitSignature && name != kTrainSignature) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

absl::StatusOr<Signature> SavedModelBundleInterface::signature(absl::string_view name) const {
  const auto found = GetSignatures().find(std::string(name));
  if (found != GetSignatures().end()) return Signature::Make(name, found->second, GetSession());
  constexpr size_t kMaxNames = 20;
  std::vector<std::string> names;
  for (const std::string& known : SignatureNames()) {
    if (names.size() == kMaxNames) {
      names.emplace_back("...");
      break;
    }
    names.push_back(internal::Quoted(known));
  }
  return errors::NotFound("there is no signature ", internal::Quoted(name), "; the model has ",
                          names.empty() ? "none" : absl::StrJoin(names, ", "));
}

absl::Status LoadSavedModel(const SessionOptions& session_options, const RunOptions& run_options,
                            const std::string& export_dir,
                            const std::unordered_set<std::string>& tags, SavedModelBundle* bundle) {
  GRADFLOW_RETURN_IF_ERROR(internal::CheckOut(bundle, "LoadSavedModel", "bundle"));
  SavedModelBundle loaded;
  GRADFLOW_ASSIGN_OR_RETURN(loaded.session, Load(session_options, run_options, export_dir, tags,
                                                 /*keeps_graph=*/true, &loaded.meta_graph_def));
  GRADFLOW_ASSIGN_OR_RETURN(loaded.debug_info,
                            ReadSavedModelDebugInfo(export_dir, session_options.graph_limits));
  std::swap(bundle->session, loaded.session);
  bundle->meta_graph_def.Swap(&loaded.meta_graph_def);
  bundle->debug_info = std::move(loaded.debug_info);
  return absl::OkStatus();
}

absl::Status LoadSavedModel(const SessionOptions& session_options, const RunOptions& run_options,
                            const std::string& export_dir,
                            const std::unordered_set<std::string>& tags,
                            SavedModelBundleLite* bundle) {
  GRADFLOW_RETURN_IF_ERROR(internal::CheckOut(bundle, "LoadSavedModel", "bundle"));
  MetaGraphDef meta_graph;
  GRADFLOW_ASSIGN_OR_RETURN(std::unique_ptr<Session> session,
                            Load(session_options, run_options, export_dir, tags,
                                 /*keeps_graph=*/false, &meta_graph));
  *bundle =
      SavedModelBundleLite(std::move(session), std::move(*meta_graph.mutable_signature_def()));
  return absl::OkStatus();
}

absl::Status RestoreSession(const RunOptions& run_options, const MetaGraphDef& meta_graph,
                            const std::string& export_dir, Session* session) {
  GRADFLOW_RETURN_IF_ERROR(internal::CheckOut(session, "RestoreSession", "session"));
  const absl::Status status = CallSafely([&]() -> absl::Status {
    GRADFLOW_ASSIGN_OR_RETURN(const FileAccess files, internal::FilesOf(export_dir));
    GRADFLOW_ASSIGN_OR_RETURN(const Feeds assets, AssetFeeds(meta_graph, export_dir, files));
    GRADFLOW_ASSIGN_OR_RETURN(const std::optional<Checkpoint> checkpoint,
                              OpenSavedModelCheckpoint(export_dir, session->allocator()));
    const Checkpoint* const variables = checkpoint.has_value() ? &*checkpoint : nullptr;
    GRADFLOW_ASSIGN_OR_RETURN(const LoadPlan plan,
                              PlanLoading(meta_graph, variables, GraphLimits(), /*freezes=*/false));
    return Initialize(run_options, plan, export_dir, variables, assets, session);
  });
  return status.ok() ? status : errors::Prefix(absl::StrCat("'", export_dir, "': "), status);
}

}  // namespace gradflow
