#include "gradflow/testing/golden.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/import.h"
#include "gradflow/graph/tensor_id.h"
#include "gradflow/io/file.h"
#include "gradflow/io/npy.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/runtime/session/session.h"
#include "gradflow/testing/case_folder.h"
#include "gradflow/testing/watchdog.h"

namespace gradflow {
namespace testing {
namespace {

namespace fs = std::filesystem;

constexpr absl::string_view kExtension = ".npy";

bool IsFile(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

// Returns the path of the case's graph; "" if there is none.
std::string GraphFile(const fs::path& folder) {
  for (const char* name : {"graph.pb", "graph.pbtxt"}) {
    if (IsFile(folder / name)) return (folder / name).string();
  }
  return "";
}

absl::Status CannotRead(const fs::path& path, const std::error_code& error) {
  return errors::NotFound("'", path.string(), "': cannot read: ", error.message());
}

using Clock = std::chrono::steady_clock;

// Returns the deadline for work that starts now.
Clock::time_point DeadlineOf(const GoldenOptions& options) {
  const Clock::time_point limit = options.graph_limits.deadline;
  if (options.timeout_ms <= 0) return limit;
  return std::min(limit, Clock::now() + std::chrono::milliseconds(options.timeout_ms));
}

// Returns the sorted paths of the entries of `folder` at any depth, without following links.
// Returns DEADLINE_EXCEEDED after the deadline, and RESOURCE_EXHAUSTED if there are more than
// `max_entries`.
absl::StatusOr<std::vector<fs::path>> Contents(const fs::path& folder, size_t max_entries,
                                               Clock::time_point deadline) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    if (Clock::now() > deadline) return Watchdog::DeadlineError();
    if (paths.size() == max_entries) {
      return errors::ResourceExhausted("'", folder.string(), "' has more than ", max_entries,
                                       " files and folders");
    }
    paths.push_back(it->path());
  }
  if (error) return CannotRead(folder, error);
  std::sort(paths.begin(), paths.end());
  return paths;
}

// Returns INVALID_ARGUMENT if `path`, an entry of the case `folder`, is a link that leaves the
// case.
absl::Status CheckInside(const fs::path& folder, const fs::path& path) {
  std::error_code error;
  if (!fs::is_symlink(path, error)) return absl::OkStatus();
  const fs::path root = fs::canonical(folder, error);
  const fs::path target = error ? fs::path() : fs::canonical(path, error);
  if (!error) {
    const fs::path inside = target.lexically_relative(root);
    if (!inside.empty() && *inside.begin() != "..") return absl::OkStatus();
  }
  return errors::InvalidArgument("'", path.lexically_relative(folder).generic_string(),
                                 "' is a link that leaves the case");
}

// Returns the .npy files in the folder `name` of a case as {tensor name, path}. Returns an empty
// list if the folder does not exist.
absl::StatusOr<std::vector<std::pair<std::string, std::string>>> TensorFiles(
    const fs::path& root, const char* name, Clock::time_point deadline) {
  std::vector<std::pair<std::string, std::string>> files;
  const fs::path folder = root / name;
  std::error_code ignored;
  if (!fs::exists(folder, ignored)) return files;
  GRADFLOW_RETURN_IF_ERROR(CheckInside(root, folder));
  constexpr size_t kMaxEntries = 10000;
  GRADFLOW_ASSIGN_OR_RETURN(const std::vector<fs::path> paths,
                            Contents(folder, kMaxEntries, deadline));
  for (const fs::path& path : paths) {
    if (path.extension() != fs::path(std::string(kExtension)) || !IsFile(path)) continue;
    GRADFLOW_ASSIGN_OR_RETURN(std::string tensor,
                              GoldenTensorName(path.lexically_relative(folder).generic_string()));
    files.emplace_back(std::move(tensor), path.string());
  }
  return files;
}

// Reads a tensor of type `dtype` from a file of a case. Converts uint16 to bfloat16.
absl::StatusOr<Tensor> ReadAs(const std::string& folder, const std::string& file, DataType dtype) {
  GRADFLOW_RETURN_IF_ERROR(CheckInside(folder, file));
  GRADFLOW_ASSIGN_OR_RETURN(Tensor tensor, ReadNpy(file));
  if (dtype != DT_BFLOAT16 || tensor.dtype() != DT_UINT16) return tensor;
  GRADFLOW_ASSIGN_OR_RETURN(Tensor result, Tensor::Allocate(DT_BFLOAT16, tensor.shape()));
  if (tensor.NumElements() > 0) {
    std::memcpy(result.raw_data(), tensor.raw_data(), tensor.TotalBytes());
  }
  return result;
}

// Reads a small text file that people write, such as tolerance.txt.
absl::StatusOr<std::string> ReadSideFile(const std::string& path) {
  constexpr size_t kMaxBytes = size_t{1} << 20;
  size_t size;
  GRADFLOW_ASSIGN_OR_RETURN(const internal::FileDescriptor file, internal::OpenFile(path, &size));
  if (size > kMaxBytes) {
    return errors::InvalidArgument("expected at most ", kMaxBytes, " bytes, but found ", size);
  }
  std::string text(size, '\0');
  GRADFLOW_RETURN_IF_ERROR(internal::ReadAt(file.get(), 0, text.data(), size));
  return text;
}

// A loaded case.
class LoadedCase {
 public:
  LoadedCase(std::string folder, const GoldenOptions& options, const Registry& registry)
      : folder_(std::move(folder)),
        options_(options),
        registry_(registry),
        deadline_(DeadlineOf(options)) {}

  absl::Status Load() {
    const std::string file = GraphFile(folder_);
    if (file.empty()) return errors::NotFound("neither graph.pb nor graph.pbtxt exists");
    GRADFLOW_RETURN_IF_ERROR(CheckInside(folder_, file));
    SessionOptions session_options;
    session_options.graph_limits = options_.graph_limits;
    session_options.graph_limits.deadline = deadline_;
    session_options.tensor_memory_limit_bytes = options_.memory_limit_bytes;
    session_options.file_access = options_.file_access;
    session_options.config.set_intra_op_parallelism_threads(options_.threads);
    session_options.config.set_inter_op_parallelism_threads(options_.threads);
    GRADFLOW_ASSIGN_OR_RETURN(session_, Session::Make(session_options, registry_));
    GRADFLOW_ASSIGN_OR_RETURN(GraphDef def, ReadGraphDef(file, session_options.graph_limits));
    GRADFLOW_RETURN_IF_ERROR(session_->Create(std::move(def)));
    watchdog_.emplace(session_.get(), deadline_);
    GRADFLOW_ASSIGN_OR_RETURN(const auto feeds, TensorFiles(folder_, "feeds", deadline_));
    for (const auto& [name, feed_file] : feeds) {
      GRADFLOW_ASSIGN_OR_RETURN(Tensor value, ReadAs(folder_, feed_file, TypeOf(name)));
      feeds_.emplace_back(name, std::move(value));
    }
    GRADFLOW_ASSIGN_OR_RETURN(expected_, TensorFiles(folder_, "expected", deadline_));
    return ReadTolerances();
  }

  // Returns `status`, or DEADLINE_EXCEEDED if the time limit caused it.
  absl::Status Explain(absl::Status status) const {
    return watchdog_.has_value() ? watchdog_->Explain(std::move(status)) : status;
  }

  absl::StatusOr<GoldenResult> Compare() {
    if (options_.tolerance.has_value() && options_.tolerance->ulps() < 0) {
      return errors::InvalidArgument("a tolerance of ", options_.tolerance->ulps(),
                                     " ulps is negative");
    }
    if (expected_.empty()) {
      return errors::FailedPrecondition("expected/ has no .npy file");
    }
    std::vector<std::string> fetches;
    for (const auto& [name, file] : expected_) fetches.push_back(name);
    std::vector<Tensor> outputs;
    GRADFLOW_RETURN_IF_ERROR(Run(fetches, &outputs));
    GoldenResult result;
    result.outputs = static_cast<int>(outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      GRADFLOW_ASSIGN_OR_RETURN(const Tensor expected,
                                ReadAs(folder_, expected_[i].second, outputs[i].dtype()));
      TensorDiff diff =
          DiffTensors(outputs[i], expected, ToleranceOf(fetches[i], outputs[i].dtype()));
      if (!diff.ok()) result.differences.push_back({fetches[i], std::move(diff)});
    }
    return result;
  }

  absl::StatusOr<GoldenResult> Update() {
    if (expected_.empty()) {
      GRADFLOW_ASSIGN_OR_RETURN(const std::vector<std::string> names, session_->UnusedOutputs());
      for (const std::string& name : names) {
        expected_.emplace_back(
            name, (fs::path(folder_) / "expected").string() + "/" + GoldenFileName(name));
      }
    }
    std::vector<std::string> fetches;
    for (const auto& [name, file] : expected_) fetches.push_back(name);
    std::vector<Tensor> outputs;
    GRADFLOW_RETURN_IF_ERROR(Run(fetches, &outputs));
    GRADFLOW_RETURN_IF_ERROR(Write(outputs));
    GoldenResult result;
    result.outputs = static_cast<int>(outputs.size());
    return result;
  }

 private:
  absl::Status Run(const std::vector<std::string>& fetches, std::vector<Tensor>* outputs) const {
    RunOptions run_options;
    if (deadline_ != Clock::time_point::max()) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - Clock::now());
      run_options.set_timeout_in_ms(std::max<int64_t>(left.count(), 1));
    }
    return session_->Run(run_options, feeds_, fetches, {}, outputs, nullptr);
  }

  // Returns DT_INVALID if the output does not exist. The run then returns the error.
  DataType TypeOf(const std::string& name) const {
    return session_->OutputType(name).value_or(DT_INVALID);
  }

  absl::Status ReadTolerances() {
    const std::string path = (fs::path(folder_) / "tolerance.txt").string();
    if (!IsFile(path)) return absl::OkStatus();
    GRADFLOW_RETURN_IF_ERROR(CheckInside(folder_, path));
    const absl::StatusOr<std::string> text = ReadSideFile(path);
    if (!text.ok()) return errors::Prefix("tolerance.txt: ", text.status());
    absl::StatusOr<GoldenTolerances> tolerances = ParseGoldenTolerances(*text);
    if (!tolerances.ok()) return errors::Prefix("tolerance.txt: ", tolerances.status());
    tolerances_ = *std::move(tolerances);
    for (const auto& [name, tolerance] : tolerances_.by_name) {
      const bool known =
          name.empty() || std::any_of(expected_.begin(), expected_.end(),
                                      [&name = name](const auto& e) { return e.first == name; });
      if (!known) {
        return errors::InvalidArgument("tolerance.txt: output '", name, "' is not in expected/");
      }
    }
    return absl::OkStatus();
  }

  Tolerance ToleranceOf(const std::string& name, DataType dtype) const {
    if (options_.tolerance.has_value()) return *options_.tolerance;
    for (const std::string& key : {name, std::string()}) {
      const auto found = tolerances_.by_name.find(key);
      if (found != tolerances_.by_name.end()) return found->second;
    }
    return Tolerance::ForType(dtype);
  }

  // Writes all files under temporary names before renaming any.
  absl::Status Write(const std::vector<Tensor>& outputs) const {
    GRADFLOW_ASSIGN_OR_RETURN(CaseFolder folder, CaseFolder::Open(folder_));
    const std::string expected = (fs::path(folder_) / "expected").string();
    for (size_t i = 0; i < outputs.size(); ++i) {
      const absl::StatusOr<std::string> header = FormatNpyHeader(outputs[i]);
      if (!header.ok()) {
        return errors::Prefix(absl::StrCat("'", expected_[i].second, "': "), header.status());
      }
      const std::string name = "expected" + expected_[i].second.substr(expected.size());
      std::string storage;
      GRADFLOW_RETURN_IF_ERROR(
          folder.Stage(name, {*header, FormatNpyElements(outputs[i], &storage)}));
    }
    return folder.Commit();
  }

  const std::string folder_;
  const GoldenOptions options_;
  const Registry& registry_;
  const Clock::time_point deadline_;
  std::unique_ptr<Session> session_;
  // Ends runs at the deadline, even during planning.
  std::optional<Watchdog> watchdog_;
  std::vector<std::pair<std::string, Tensor>> feeds_;
  // {output name, path}.
  std::vector<std::pair<std::string, std::string>> expected_;
  GoldenTolerances tolerances_;
};

// Returns the result of `work` on the case. Errors name the case.
template <typename Work>
absl::StatusOr<GoldenResult> WithCase(const std::string& folder, const GoldenOptions& options,
                                      const Registry& registry, const Work& work) {
  LoadedCase golden(folder, options, registry);
  absl::Status status = golden.Load();
  if (status.ok()) {
    absl::StatusOr<GoldenResult> result = work(&golden);
    if (result.ok()) return result;
    status = result.status();
  }
  return errors::Prefix(absl::StrCat("'", folder, "': "), golden.Explain(status));
}

// Parses a line of tolerance.txt after the output name.
absl::StatusOr<Tolerance> ParseTolerance(const std::vector<std::string>& words) {
  if (words == std::vector<std::string>{"exact"}) return Tolerance::Exact();
  std::map<std::string, double> values;
  for (size_t i = 0; i + 1 < words.size(); i += 2) {
    double value = 0;
    const bool good = absl::SimpleAtod(words[i + 1], &value) && std::isfinite(value) && value >= 0;
    if (!good) return errors::InvalidArgument("'", words[i + 1], "' is not a tolerance");
    if (!values.emplace(words[i], value).second) {
      return errors::InvalidArgument("'", words[i], "' appears twice");
    }
  }
  if (words.size() % 2 == 0) {
    int64_t ulps = 0;
    if (values.size() == 1 && values.count("ulps") == 1 && absl::SimpleAtoi(words[1], &ulps)) {
      return Tolerance::Ulps(ulps);
    }
    const size_t near = values.count("atol") + values.count("rtol");
    if (near == values.size() && near > 0) return Tolerance::Near(values["atol"], values["rtol"]);
  }
  return errors::InvalidArgument(
      "expected \"[NAME] atol NUMBER [rtol NUMBER]\", \"rtol NUMBER\", \"ulps NUMBER\" or "
      "\"exact\"");
}

}  // namespace

std::string GoldenResult::Text() const {
  std::string text;
  for (const Difference& difference : differences) {
    absl::StrAppend(&text, text.empty() ? "" : "\n", difference.fetch, ": ",
                    difference.diff.Text());
  }
  return text;
}

absl::StatusOr<std::vector<std::string>> FindGoldenCases(const std::string& folder,
                                                         const GoldenOptions& options) {
  if (!GraphFile(folder).empty()) return std::vector<std::string>{folder};
  constexpr size_t kMaxEntries = 100000;
  const Clock::time_point deadline = DeadlineOf(options);
  GRADFLOW_ASSIGN_OR_RETURN(const std::vector<fs::path> paths,
                            Contents(folder, kMaxEntries, deadline));
  std::vector<std::string> cases;
  for (const fs::path& path : paths) {
    if (Clock::now() > deadline) return Watchdog::DeadlineError();
    std::error_code ignored;
    if (!fs::is_directory(fs::symlink_status(path, ignored))) continue;
    if (!GraphFile(path).empty()) cases.push_back(path.string());
  }
  if (cases.empty()) {
    return errors::NotFound("'", folder,
                            "': neither it nor its subfolders contain graph.pb or graph.pbtxt");
  }
  return cases;
}

absl::StatusOr<GoldenResult> RunGoldenCase(const std::string& folder, const GoldenOptions& options,
                                           const Registry& registry) {
  return WithCase(folder, options, registry, [](LoadedCase* golden) { return golden->Compare(); });
}

absl::StatusOr<GoldenResult> UpdateGoldenCase(const std::string& folder,
                                              const GoldenOptions& options,
                                              const Registry& registry) {
  return WithCase(folder, options, registry, [](LoadedCase* golden) { return golden->Update(); });
}

absl::StatusOr<GoldenTolerances> ParseGoldenTolerances(absl::string_view text) {
  GoldenTolerances tolerances;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = line.substr(0, line.find('#'));
    std::vector<std::string> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
    if (words.empty()) continue;
    std::string name;
    const bool named = words.size() % 2 == (words.back() == "exact" ? 0 : 1);
    if (named && words.size() > 1) {
      const absl::StatusOr<TensorId> id = ParseTensorId(words[0]);
      if (!id.ok()) return errors::Prefix(absl::StrCat("line ", number, ": "), id.status());
      name = FormatTensorId(*id);
      words.erase(words.begin());
    }
    const absl::StatusOr<Tolerance> tolerance = ParseTolerance(words);
    if (!tolerance.ok()) {
      return errors::Prefix(absl::StrCat("line ", number, ": "), tolerance.status());
    }
    if (!tolerances.by_name.emplace(name, *tolerance).second) {
      return errors::InvalidArgument("line ", number, ": '", name, "' has a tolerance already");
    }
  }
  return tolerances;
}

std::string GoldenFileName(absl::string_view tensor) {
  return absl::StrCat(absl::StrReplaceAll(tensor, {{":", "@"}}), kExtension);
}

absl::StatusOr<std::string> GoldenTensorName(absl::string_view file) {
  absl::string_view name = file;
  const bool is_npy = absl::ConsumeSuffix(&name, kExtension);
  const std::string tensor = absl::StrReplaceAll(name, {{"@", ":"}});
  const absl::StatusOr<TensorId> id = ParseTensorId(tensor);
  if (!is_npy || !id.ok() || id->IsControl() || absl::StrContains(id->node, ":")) {
    return errors::InvalidArgument("'", file,
                                   "' is not named like a tensor: \"node.npy\", \"node@1.npy\"");
  }
  return FormatTensorId(*id);
}

}  // namespace testing
}  // namespace gradflow
