// EditApi: handles the JSON requests of the page of `gradflow edit`, independent of HTTP.
#ifndef GRADFLOW_TOOLS_EDIT_EDIT_API_H_
#define GRADFLOW_TOOLS_EDIT_EDIT_API_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gradflow/graph/import.h"
#include "gradflow/runtime/session/session.h"
#include "tools/edit/edit_graph.h"

namespace gradflow::tools {

struct EditOptions {
  // The file to edit, which need not exist; empty for a new graph without a name. Files are saved
  // in its folder.
  std::string path;
  // As GraphFlags.
  int threads = 0;
  int64_t memory_limit = 0;
  GraphLimits limits;
  // Limit on the time of a run or a differentiation; 0 for none.
  double timeout_seconds = 0;
};

// Thread-safe. Requests are untrusted, and checked like graph files.
class EditApi {
 public:
  // Reads the file. A file that does not exist is an empty graph.
  static absl::StatusOr<std::unique_ptr<EditApi>> Make(const EditOptions& options);

  // Returns the data of the page (graph_json.h) with the key "edit". `has_server` tells the page
  // whether calls are answered.
  absl::StatusOr<std::string> PageData(bool has_server) const;

  // Answers a call by its name: "check", "run", "save", "gradients" or "cpp". NOT_FOUND for another
  // name. web/src/edit/api.ts has the requests and the results.
  absl::StatusOr<std::string> Call(absl::string_view name, absl::string_view request);

  // Ends a run in progress, and all later ones.
  void Stop();

 private:
  explicit EditApi(const EditOptions& options) : options_(options) {}

  absl::StatusOr<std::string> Check(const EditedGraph& graph) const;
  absl::StatusOr<std::string> Run(const EditedGraph& graph, const google::protobuf::Value& request);
  absl::StatusOr<std::string> Save(const EditedGraph& graph,
                                   const google::protobuf::Value& request) const;
  absl::StatusOr<std::string> Differentiate(const EditedGraph& graph,
                                            const google::protobuf::Value& request) const;

  const EditOptions options_;
  EditBase base_;
  // One run at a time.
  std::mutex run_mutex_;
  // Guards the rest.
  std::mutex mutex_;
  Session* session_ = nullptr;
  bool is_stopped_ = false;
};

}  // namespace gradflow::tools

#endif  // GRADFLOW_TOOLS_EDIT_EDIT_API_H_
