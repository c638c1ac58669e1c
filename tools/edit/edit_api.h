// EditApi: handles the JSON requests of the page of `gradflow edit`, independent of HTTP.
#ifndef GRADFLOW_TOOLS_EDIT_EDIT_API_H_
#define GRADFLOW_TOOLS_EDIT_EDIT_API_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/tensor.h"
#include "gradflow/graph/import.h"
#include "gradflow/runtime/session/session.h"
#include "tools/edit/edit_graph.h"
#include "tools/edit/edit_lock.h"

namespace gradflow::tools {

struct EditOptions {
  // The file to edit, which need not exist; empty for a new graph without a name. Files are saved
  // in its folder.
  std::string path;
  // See GraphFlags.
  int threads = 0;
  int64_t memory_limit = 0;
  GraphLimits limits;
  // Limit on the time of a run, and of each import of a graph, which all calls but "save" do; 0 for
  // none. The gradients that a differentiation adds take time linear in the graph.
  double timeout_seconds = 0;
  // The files that ops of runs may touch.
  FileAccess file_access = FileAccess::None();
};

// Returns the answer to a call that failed.
std::string ErrorJson(absl::string_view reason);

// Thread-safe. Requests are untrusted, and checked like graph files.
class EditApi {
 public:
  // Reads the file. A file that does not exist is an empty graph.
  static absl::StatusOr<std::unique_ptr<EditApi>> Make(const EditOptions& options);

  // Reads the file again and returns the data of a new page (graph_json.h) with the key "edit".
  // `has_server` tells the page whether calls are answered.
  absl::StatusOr<std::string> PageData(bool has_server);

  // Stores the address that other editors report of the files that this one has saved.
  // REQUIRES: no call is in progress.
  void SetAddress(absl::string_view address) { address_ = std::string(address); }

  // Answers a call by its name: "page" (PageData), "check", "run", "save", "gradients", "image",
  // "cpp" or "cancel".
  // NOT_FOUND for another name. web/src/edit/api.ts has the requests and the results.
  // FAILED_PRECONDITION if more than kMaxBases other contents of the file have been shown since the
  // page was.
  absl::StatusOr<std::string> Call(absl::string_view name, absl::string_view request);

  // Ends a run in progress.
  void Cancel();
  // Ends a run in progress, and all later ones.
  void Stop();

 private:
  // The contents of the file that pages show.
  static constexpr size_t kMaxBases = 8;
  // Pairs of a page and a file whose contents are remembered.
  static constexpr size_t kMaxSaved = 1024;

  explicit EditApi(const EditOptions& options) : options_(options) {}

  // Reads the file. Stores the number of its content in *number.
  absl::StatusOr<std::shared_ptr<const EditBase>> ReadBase(int64_t* number);
  absl::StatusOr<std::shared_ptr<const EditBase>> FindBase(const google::protobuf::Value& request);

  // A session that Stop() closes. Sessions of one API are made and used one at a time.
  struct OpenSession;
  absl::StatusOr<std::unique_ptr<OpenSession>> MakeSession(
      std::chrono::steady_clock::time_point deadline);

  // Returns the value of a feed, or of the constant that an image becomes.
  absl::StatusOr<Tensor> FeedValue(const google::protobuf::Value& feed,
                                   std::chrono::steady_clock::time_point deadline);
  absl::StatusOr<Tensor> DecodeImage(const google::protobuf::Value& image,
                                     std::chrono::steady_clock::time_point deadline);

  absl::StatusOr<std::string> Image(const google::protobuf::Value& request);
  absl::StatusOr<std::string> Check(const EditedGraph& graph) const;
  absl::StatusOr<std::string> Run(const EditedGraph& graph, const google::protobuf::Value& request);
  absl::StatusOr<std::string> Save(const EditBase& base, const EditedGraph& graph,
                                   const google::protobuf::Value& request);
  // Returns FAILED_PRECONDITION if a file has another content than the page knows.
  absl::Status CheckOverwrite(const EditBase& base, int64_t page, const std::string& path) const;
  absl::StatusOr<std::string> Differentiate(const EditedGraph& graph,
                                            const google::protobuf::Value& request) const;

  const EditOptions options_;
  // Held by the session that is open.
  std::mutex run_mutex_;
  // Guards the rest.
  std::mutex mutex_;
  // By number. The first ones are dropped when there are too many.
  std::map<int64_t, std::shared_ptr<const EditBase>> bases_;
  Session* session_ = nullptr;
  bool is_stopped_ = false;
  int64_t next_page_ = 1;

  // Held by the save in progress. Guards what follows.
  std::mutex save_mutex_;
  // By page and path, a hash of what the page saved last.
  std::map<std::pair<int64_t, std::string>, size_t> saved_;
  // Locks of the files that were saved under other names.
  std::map<std::string, EditLock> locks_;
  std::string address_;
};

}  // namespace gradflow::tools

#endif  // GRADFLOW_TOOLS_EDIT_EDIT_API_H_
