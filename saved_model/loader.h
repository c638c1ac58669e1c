// Loads SavedModels: folders with graphs, signatures, variables and assets, as TensorFlow 1, 2 and
// Keras write them.
//
//   SavedModelBundle bundle;
//   GRADFLOW_RETURN_IF_ERROR(
//       LoadSavedModel(SessionOptions(), RunOptions(), "model", {"serve"}, &bundle));
//   GRADFLOW_ASSIGN_OR_RETURN(const Signature signature, bundle.signature("serving_default"));
//   GRADFLOW_ASSIGN_OR_RETURN(const SignatureCallable call, signature.MakeCallable());
//   GRADFLOW_ASSIGN_OR_RETURN(const NamedTensors outputs, call({{"x", x}}));
//
// The folder has "saved_model.pb" or "saved_model.pbtxt", and may have "variables/", "assets/",
// "fingerprint.pb" and "debug/". A SavedModel holds one graph or several, each with its own tags.
//
// Variables are read from "variables/" directly. The loader follows the nodes that the saver runs
// to restore the variables, and finds the name of each variable in the checkpoint. If these nodes
// do more than assign tensors of the checkpoint to variables, for example restore a table, the
// loader runs them, as TensorFlow does. A model without "variables/" loads; reading one of its
// variables is FAILED_PRECONDITION. Afterwards, the loader runs the node that initializes the
// model, with the paths of the assets.
//
// The variables, tables and random generators of a model belong to the session of the bundle. All
// signatures share them, and they keep their state between calls.
//
// A model with unregistered ops or missing kernels loads. Calls that need such an op return an
// error. A call does not need an op if it feeds the op's results.
//
// Nodes that ask for a device other than the CPU run on the CPU if ConfigProto.allow_soft_placement
// is set. Otherwise calls that need them return an error.
//
// Files are untrusted. The loader reads no file outside of the folder, even through a link. Names
// of assets must be relative and stay in "assets/". The ops of the graph may read the folder, and
// the files that SessionOptions::file_access allows.
//
// Thread safety: const members of all classes may be called from several threads at once.
#ifndef GRADFLOW_SAVED_MODEL_LOADER_H_
#define GRADFLOW_SAVED_MODEL_LOADER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gradflow/graph/import.h"
#include "gradflow/proto/graph_debug_info.pb.h"
#include "gradflow/proto/meta_graph.pb.h"
#include "gradflow/runtime/session/options.h"
#include "gradflow/runtime/session/session.h"
#include "gradflow/saved_model/reader.h"
#include "gradflow/saved_model/signature.h"

#pragma GCC visibility push(default)
namespace gradflow {

// A loaded graph with its signatures: SavedModelBundle or SavedModelBundleLite.
class SavedModelBundleInterface {
 public:
  // The signatures of a graph, keyed by name.
  using SignatureMap = google::protobuf::Map<std::string, SignatureDef>;

  SavedModelBundleInterface() = default;
  // Bundles can be moved.
  SavedModelBundleInterface(SavedModelBundleInterface&&) = default;
  // Bundles can be moved.
  SavedModelBundleInterface& operator=(SavedModelBundleInterface&&) = default;
  virtual ~SavedModelBundleInterface();

  // Returns the session, or null before a model is loaded. The bundle owns it.
  virtual Session* GetSession() const = 0;
  // Returns the signatures as messages.
  virtual const SignatureMap& GetSignatures() const = 0;

  // Returns a signature. Returns NOT_FOUND, with the names of all signatures, if there is no such
  // signature, and INVALID_ARGUMENT if it is malformed. The result borrows the session.
  absl::StatusOr<Signature> signature(absl::string_view name) const;
  // Returns the names of the signatures for users, in order. Leaves out TensorFlow's internal
  // signatures for initializing and training, "__saved_model_init_op" and "__saved_model_train_op".
  std::vector<std::string> SignatureNames() const;
};

// A loaded graph of a SavedModel. Closes its session when it is destroyed. A move leaves an empty
// bundle.
struct SavedModelBundle final : public SavedModelBundleInterface {
  SavedModelBundle() = default;
  // Leaves an empty bundle.
  SavedModelBundle(SavedModelBundle&&) = default;
  // Leaves an empty bundle.
  SavedModelBundle& operator=(SavedModelBundle&&) = default;
  ~SavedModelBundle() override;

  Session* GetSession() const override { return session.get(); }
  const SignatureMap& GetSignatures() const override { return meta_graph_def.signature_def(); }

  // The session, with all nodes of the graph.
  std::unique_ptr<Session> session;
  // A copy of the session's graph. SavedModelBundleLite has no copy.
  MetaGraphDef meta_graph_def;
  // The places in the Python program that the nodes come from, or null.
  std::unique_ptr<GraphDebugInfo> debug_info;
};

// Like SavedModelBundle, without the graph. Takes less memory.
class SavedModelBundleLite final : public SavedModelBundleInterface {
 public:
  SavedModelBundleLite() = default;
  // Takes a session that has the graph.
  SavedModelBundleLite(std::unique_ptr<Session> session, SignatureMap signatures)
      : session_(std::move(session)), signatures_(std::move(signatures)) {}
  // Leaves an empty bundle.
  SavedModelBundleLite(SavedModelBundleLite&&) = default;
  // Leaves an empty bundle.
  SavedModelBundleLite& operator=(SavedModelBundleLite&&) = default;
  ~SavedModelBundleLite() override;

  Session* GetSession() const override { return session_.get(); }
  const SignatureMap& GetSignatures() const override { return signatures_; }
  // Returns the session and gives up its ownership. The bundle then has no session.
  std::unique_ptr<Session> TakeSession() { return std::move(session_); }

 private:
  std::unique_ptr<Session> session_;
  SignatureMap signatures_;
};

// Loads the graph whose tags are exactly `tags`. `run_options` apply to the runs that initialize
// the model. On error *bundle is unchanged. Errors name the folder:
//
//   NOT_FOUND          There is no SavedModel, no graph has these tags, or the checkpoint lacks a
//                      variable. The text lists the tags of all graphs. A variable that had no
//                      value when a program of TensorFlow 2 exported the model is no error.
//   INVALID_ARGUMENT   The file, the graph or the name of an asset is malformed, or a variable has
//                      another type or shape in the checkpoint.
//   DATA_LOSS          The checkpoint is damaged.
//   PERMISSION_DENIED  A file of the model is a link that leads out of the folder.
//
// Errors of the session, and of the node that initializes the model, are returned unchanged.
absl::Status LoadSavedModel(const SessionOptions& session_options, const RunOptions& run_options,
                            const std::string& export_dir,
                            const std::unordered_set<std::string>& tags, SavedModelBundle* bundle);
// Overload without a copy of the graph.
absl::Status LoadSavedModel(const SessionOptions& session_options, const RunOptions& run_options,
                            const std::string& export_dir,
                            const std::unordered_set<std::string>& tags,
                            SavedModelBundleLite* bundle);

// Restores the variables of a graph from the folder and initializes the model, in a session that
// has the graph. Use this function after Session::Create(), with SessionOptions::allow_missing_ops,
// to load a model whose MetaGraphDef the program has changed.
absl::Status RestoreSession(const RunOptions& run_options, const MetaGraphDef& meta_graph,
                            const std::string& export_dir, Session* session);

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_SAVED_MODEL_LOADER_H_
