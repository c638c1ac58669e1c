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
  // The file to edit; it need not exist. Empty for a new graph without a name. Files are saved in
  // the folder of this file.
  std::string path;
  // If `path` is the file of a SavedModel: the folder of the model, and the tags of the graph to
  // edit (ChooseTags). Runs restore the variables of the model.
  std::string model;
  std::string tag;
  // See GraphFlags.
  int threads = 0;
  int64_t memory_limit = 0;
  GraphLimits limits;
  // Limit on the time of a run, of decoding an image, and of each import of a graph; 0 for no
  // limit. The calls "check", "run", "gradients" and "cpp" import the graph. Adding gradients has
  // no limit, but takes time linear in the graph.
  double timeout_seconds = 0;
  // The files that ops of runs may touch.
  FileAccess file_access = FileAccess::None();
};

// Returns the answer to a call that failed.
std::string ErrorJson(absl::string_view reason);

// Answers requests. Thread-safe. Requests are untrusted, and are checked like graph files.
class EditApi {
 public:
  // Reads the file. A file that does not exist is an empty graph.
  static absl::StatusOr<std::unique_ptr<EditApi>> Make(const EditOptions& options);

  // Reads the file again and returns the data of a new page (graph_json.h) with the key "edit".
  // `has_server` tells the page whether a server answers calls.
  absl::StatusOr<std::string> PageData(bool has_server);

  // Stores the address of this editor. Other editors report it for files that this editor has
  // saved. REQUIRES: no call is in progress.
  void SetAddress(absl::string_view address) { address_ = std::string(address); }

  // Answers a call by its name: "page" (PageData), "check", "run", "save", "gradients", "image",
  // "cpp" or "cancel". NOT_FOUND for another name. web/src/edit/api.ts has the requests and the
  // results. FAILED_PRECONDITION if pages have shown at least kMaxBases other contents of the file
  // since the page of this call.
  absl::StatusOr<std::string> Call(absl::string_view name, absl::string_view request);

  // Ends a run in progress.
  void Cancel();
  // Ends a run in progress, and all later runs.
  void Stop();

 private:
  // The maximum number of different contents of the file that are kept for open pages.
  static constexpr size_t kMaxBases = 8;
  // The maximum number of pairs of a page and a file whose contents are remembered.
  static constexpr size_t kMaxSaved = 1024;

  explicit EditApi(const EditOptions& options) : options_(options) {}

  // Reads the file. Stores the number of its content in *number.
  absl::StatusOr<std::shared_ptr<const EditBase>> ReadBase(int64_t* number);
  absl::StatusOr<std::shared_ptr<const EditBase>> FindBase(const google::protobuf::Value& request);

  // A session that Cancel() and Stop() close. One session of an EditApi exists at a time.
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
  absl::StatusOr<std::string> Run(const EditBase& base, const EditedGraph& graph,
                                  const google::protobuf::Value& request);
  absl::StatusOr<std::string> Save(const EditBase& base, const EditedGraph& graph,
                                   const google::protobuf::Value& request);
  // Returns FAILED_PRECONDITION if the content of a file is not known to the page.
  absl::Status CheckOverwrite(const EditBase& base, int64_t page, const std::string& path) const;
  absl::StatusOr<std::string> Differentiate(const EditedGraph& graph,
                                            const google::protobuf::Value& request) const;

  const EditOptions options_;
  // Held while a session is open.
  std::mutex run_mutex_;
  // Guards the following members.
  std::mutex mutex_;
  // The contents of the file, by number. The oldest are dropped if there are more than kMaxBases.
  std::map<int64_t, std::shared_ptr<const EditBase>> bases_;
  Session* session_ = nullptr;
  bool is_stopped_ = false;
  int64_t next_page_ = 1;

  // Held while a file is saved. Guards the following members.
  std::mutex save_mutex_;
  // A hash of the content that a page saved last, by page and path.
  std::map<std::pair<int64_t, std::string>, size_t> saved_;
  // Locks of files that were saved under other names.
  std::map<std::string, EditLock> locks_;
  std::string address_;
};

}  // namespace gradflow::tools

#endif  // GRADFLOW_TOOLS_EDIT_EDIT_API_H_
