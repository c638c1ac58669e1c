#include "tests/recordings/replay.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/graph.h"
#include "gradflow/graph/import.h"
#include "gradflow/io/npy.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/runtime/session/session.h"
#include "gradflow/testing/tensor_diff.h"
#include "tests/testing/subprocess.h"

namespace gradflow::testing {
namespace {

using Json = nlohmann::json;

std::string FileOf(const std::string& folder, const char* kind, const std::string& tensor) {
  return absl::StrCat(folder, "/", kind, "/", absl::StrReplaceAll(tensor, {{":", "@"}}), ".npy");
}

// Returns the bytes that the characters of a string in JSON stand for: the code points below 256.
std::string BytesOf(const std::string& utf8) {
  std::string bytes;
  for (size_t i = 0; i < utf8.size(); ++i) {
    const auto byte = static_cast<uint8_t>(utf8[i]);
    if (byte < 0x80 || i + 1 == utf8.size()) {
      bytes.push_back(utf8[i]);
      continue;
    }
    bytes.push_back(static_cast<char>(byte << 6 | (static_cast<uint8_t>(utf8[++i]) & 0x3f)));
  }
  return bytes;
}

// Returns the value that a file has for `name`: an array, or strings of the step.
absl::StatusOr<Tensor> ReadValue(const Json& step, const char* strings, const std::string& folder,
                                 const char* kind, const std::string& name) {
  if (!step.contains(strings) || !step[strings].contains(name)) {
    return ReadNpy(FileOf(folder, kind, name));
  }
  const Json& value = step[strings][name];
  DimVector dims;
  for (const Json& size : value["shape"]) dims.push_back(size.get<int64_t>());
  Tensor tensor(DT_STRING, TensorShape(dims));
  for (size_t i = 0; i < value["values"].size(); ++i) {
    tensor.flat<tstring>()(static_cast<int64_t>(i)) =
        BytesOf(value["values"][i].get<std::string>());
  }
  return tensor;
}

// Files store bfloat16 as uint16, and quantized types as integers.
absl::StatusOr<Tensor> OfType(Tensor tensor, DataType type) {
  const bool is_stored_otherwise =
      (type == DT_BFLOAT16 && tensor.dtype() == DT_UINT16) || DataTypeIsQuantized(type);
  if (!is_stored_otherwise || tensor.dtype() == type) return tensor;
  Tensor result;
  GRADFLOW_RETURN_IF_ERROR(result.BitcastFrom(tensor, type, tensor.shape()));
  return result;
}

Tolerance ToleranceFor(const Tensor& expected) {
  const Tolerance usual = Tolerance::ForType(expected.dtype());
  if (usual.is_exact()) return usual;
  double largest = 0;
  for (const double element : AsDoubles(expected)) {
    if (std::isfinite(element)) largest = std::max(largest, std::abs(element));
  }
  return Tolerance::Near(std::max(usual.rtol(), 1e-5) * std::max(largest, 1.0), usual.rtol());
}

std::string CodeOf(const absl::Status& status) { return absl::StatusCodeToString(status.code()); }

absl::Status RunStep(const Json& step, const std::string& folder, Session* session) {
  std::vector<std::pair<std::string, Tensor>> feeds;
  std::set<std::string> names;
  for (const Json& name : step["feeds"]) names.insert(name.get<std::string>());
  if (step.contains("string_feeds")) {
    for (const auto& [name, value] : step["string_feeds"].items()) names.insert(name);
  }
  for (const std::string& name : names) {
    GRADFLOW_ASSIGN_OR_RETURN(Tensor value, ReadValue(step, "string_feeds", folder, "feeds", name));
    GRADFLOW_ASSIGN_OR_RETURN(const DataType type, session->OutputType(name));
    GRADFLOW_ASSIGN_OR_RETURN(value, OfType(std::move(value), type));
    feeds.emplace_back(name, std::move(value));
  }
  const auto fetches = step["fetches"].get<std::vector<std::string>>();
  const auto targets = step["targets"].get<std::vector<std::string>>();
  std::vector<Tensor> outputs;
  const absl::Status status = session->Run(feeds, fetches, targets, &outputs);
  const std::string expected_code = step["status"].get<std::string>();
  if (CodeOf(status) != expected_code) {
    if (status.ok()) return errors::Internal("the run succeeds, expected ", expected_code);
    const auto code = absl::IsNotFound(status) || absl::IsUnimplemented(status)
                          ? status.code()
                          : absl::StatusCode::kInternal;
    return absl::Status(code, absl::StrCat("expected ", expected_code, ", found ", CodeOf(status),
                                           ": ", status.message()));
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    GRADFLOW_ASSIGN_OR_RETURN(Tensor expected,
                              ReadValue(step, "string_fetches", folder, "expected", fetches[i]));
    GRADFLOW_ASSIGN_OR_RETURN(expected, OfType(std::move(expected), outputs[i].dtype()));
    const TensorDiff diff = DiffTensors(outputs[i], expected, ToleranceFor(expected));
    if (!diff.ok()) return errors::Internal(fetches[i], ": ", diff.Line());
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<std::string> FindRecordings(const std::string& folder) {
  std::vector<std::string> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, error)) {
    if (entry.path().filename() == "steps.json") found.push_back(entry.path().parent_path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

absl::Status ReplayRecording(const std::string& folder, int threads) {
  GRADFLOW_ASSIGN_OR_RETURN(GraphDef graph, ReadGraphDef(folder + "/graph.pb"));
  SessionOptions options;
  options.config.set_intra_op_parallelism_threads(threads);
  options.config.set_inter_op_parallelism_threads(threads);
  GRADFLOW_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Make(options));
  const Json document = Json::parse(ReadFile(folder + "/steps.json"));
  if (const absl::Status status = session->Create(std::move(graph)); !status.ok()) {
    if (CodeOf(status) != document["steps"][0]["status"].get<std::string>()) return status;
    // TensorFlow finds some errors in a run that shape functions find when the graph is imported.
    // All other errors of imports are faults of gradflow.
    GRADFLOW_ASSIGN_OR_RETURN(GraphDef again, ReadGraphDef(folder + "/graph.pb"));
    ImportGraphDefOptions without_shapes;
    without_shapes.infer_shapes = false;
    Graph imported;
    const absl::Status unchecked = ImportGraphDef(without_shapes, std::move(again), &imported);
    return errors::Prefix("even without shape inference: ", unchecked);
  }
  int number = 0;
  for (const Json& step : document["steps"]) {
    const std::string place = absl::StrCat(folder, "/", step["folder"].get<std::string>());
    if (const absl::Status status = RunStep(step, place, session.get()); !status.ok()) {
      return errors::Prefix(absl::StrCat("step ", number, ": "), status);
    }
    ++number;
  }
  return absl::OkStatus();
}

}  // namespace gradflow::testing
