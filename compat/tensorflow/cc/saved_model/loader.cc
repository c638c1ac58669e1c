#include "gradflow/saved_model/loader.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gradflow/core/status.h"
#include "gradflow/saved_model/reader.h"
#include "tensorflow/cc/saved_model/loader.h"
#include "tensorflow/cc/saved_model/metrics.h"
#include "tensorflow/cc/saved_model/reader.h"
#include "tensorflow/cc/saved_model/util.h"

namespace tensorflow::compat_internal {

absl::Status CountRead(const std::string& export_dir, absl::string_view api_label) {
  metrics::SavedModelReadApi(api_label).IncrementBy(1);
  metrics::SavedModelReadPath().Set(export_dir);
  GRADFLOW_ASSIGN_OR_RETURN(const std::unique_ptr<FingerprintDef> fingerprint,
                            gradflow::ReadSavedModelFingerprint(export_dir));
  if (fingerprint == nullptr) return absl::OkStatus();
  metrics::SavedModelReadFingerprint().Set(metrics::MakeFingerprintJson(*fingerprint));
  GRADFLOW_ASSIGN_OR_RETURN(const std::string path_and_singleprint,
                            metrics::MakeSavedModelPathAndSingleprint(
                                export_dir, absl::StrCat(fingerprint->graph_def_program_hash(), "/",
                                                         fingerprint->signature_def_hash(), "/",
                                                         fingerprint->saved_object_graph_hash(),
                                                         "/", fingerprint->checkpoint_hash())));
  metrics::SavedModelReadPathAndSingleprint().Set(path_and_singleprint);
  return absl::OkStatus();
}

namespace {

// Adds TensorFlow's text to the error of unknown tags, because programs look for it.
absl::Status ExplainTags(const absl::Status& status, const std::unordered_set<std::string>& tags) {
  return gradflow::errors::Prefix(
      absl::StrCat("Could not find meta graph def matching supplied tags: { ",
                   gradflow::errors::Printable(absl::StrJoin(tags, " ")), " }: "),
      status);
}

absl::StatusOr<std::unique_ptr<LocalSessionCalls>> LoadKnownModel(
    const SessionOptions& session_options, const RunOptions& run_options,
    const std::string& export_dir, const std::unordered_set<std::string>& tags, bool keeps_graph,
    MetaGraphDef* meta_graph, std::unique_ptr<GraphDebugInfo>* debug_info) {
  SessionOptions options = session_options;
  if (!options.freeze_variables.has_value()) options.freeze_variables = false;
  // A damaged fingerprint does not prevent loading.
  CountRead(export_dir, "cc_load").IgnoreError();
  if (keeps_graph) {
    gradflow::SavedModelBundle bundle;
    GRADFLOW_RETURN_IF_ERROR(
        gradflow::LoadSavedModel(options, run_options, export_dir, tags, &bundle));
    *meta_graph = std::move(bundle.meta_graph_def);
    metrics::SavedModelReadCount(meta_graph->has_object_graph_def() ? "2" : "1").IncrementBy(1);
    if (debug_info != nullptr) *debug_info = std::move(bundle.debug_info);
    return LocalSessionCalls::Wrap(std::move(bundle.session));
  }
  gradflow::SavedModelBundleLite bundle;
  GRADFLOW_RETURN_IF_ERROR(
      gradflow::LoadSavedModel(options, run_options, export_dir, tags, &bundle));
  *meta_graph->mutable_signature_def() = bundle.GetSignatures();
  return LocalSessionCalls::Wrap(bundle.TakeSession());
}

}  // namespace

absl::StatusOr<std::unique_ptr<LocalSessionCalls>> LoadModel(
    const SessionOptions& session_options, const RunOptions& run_options,
    const std::string& export_dir, const std::unordered_set<std::string>& tags, bool keeps_graph,
    MetaGraphDef* meta_graph, std::unique_ptr<GraphDebugInfo>* debug_info) {
  auto session = LoadKnownModel(session_options, run_options, export_dir, tags, keeps_graph,
                                meta_graph, debug_info);
  if (!absl::IsNotFound(session.status())) return session;
  const absl::StatusOr<SavedModel> model =
      gradflow::ReadSavedModel(export_dir, session_options.graph_limits);
  if (!model.ok() || gradflow::FindMetaGraph(export_dir, tags, *model).ok()) return session;
  return ExplainTags(session.status(), tags);
}

absl::Status RestoreModel(const RunOptions& run_options, const MetaGraphDef& meta_graph,
                          const std::string& export_dir, LocalSessionCalls* session) {
  return gradflow::RestoreSession(run_options, meta_graph, export_dir, session->session());
}

bool HasSavedModel(const std::string& export_dir) {
  return gradflow::MaybeSavedModelDirectory(export_dir);
}

absl::Status ReadSavedModel(absl::string_view export_dir, SavedModel* saved_model) {
  GRADFLOW_ASSIGN_OR_RETURN(*saved_model, gradflow::ReadSavedModel(std::string(export_dir)));
  metrics::SavedModelReadCount(saved_model::GetWriteVersion(*saved_model)).IncrementBy(1);
  return absl::OkStatus();
}

absl::StatusOr<MetaGraphDef*> FindMetaGraph(const std::unordered_set<std::string>& tags,
                                            SavedModel* saved_model) {
  const absl::StatusOr<int> index = gradflow::FindMetaGraph("saved_model.pb", tags, *saved_model);
  if (!index.ok()) return ExplainTags(index.status(), tags);
  return saved_model->mutable_meta_graphs(*index);
}

absl::Status ReadMetaGraph(absl::string_view export_dir,
                           const std::unordered_set<std::string>& tags, MetaGraphDef* meta_graph) {
  SavedModel model;
  GRADFLOW_RETURN_IF_ERROR(ReadSavedModel(export_dir, &model));
  GRADFLOW_RETURN_IF_ERROR(FindMetaGraph(tags, &model).status());
  return gradflow::TakeMetaGraph(std::string(export_dir), tags, &model, meta_graph);
}

absl::Status ReadDebugInfo(absl::string_view export_dir,
                           std::unique_ptr<GraphDebugInfo>* debug_info) {
  GRADFLOW_ASSIGN_OR_RETURN(*debug_info,
                            gradflow::ReadSavedModelDebugInfo(std::string(export_dir)));
  return absl::OkStatus();
}

}  // namespace tensorflow::compat_internal
