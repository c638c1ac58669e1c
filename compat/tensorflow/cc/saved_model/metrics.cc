#include "tensorflow/cc/saved_model/metrics.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "gradflow/core/status.h"

namespace tensorflow::metrics {
namespace {

// Counters by label. They live as long as the process.
class Counters {
 public:
  monitoring::CounterCell& Get(absl::string_view label) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return cells_[std::string(label)];
  }

 private:
  std::mutex mutex_;
  std::map<std::string, monitoring::CounterCell> cells_;
};

}  // namespace

monitoring::CounterCell& SavedModelReadCount(absl::string_view write_version) {
  static auto* const counters = new Counters();
  return counters->Get(write_version);
}

monitoring::CounterCell& SavedModelReadApi(absl::string_view api_label) {
  static auto* const counters = new Counters();
  return counters->Get(api_label);
}

monitoring::GaugeCell<std::string>& SavedModelReadPath() {
  static auto* const cell = new monitoring::GaugeCell<std::string>();
  return *cell;
}

monitoring::GaugeCell<std::string>& SavedModelReadFingerprint() {
  static auto* const cell = new monitoring::GaugeCell<std::string>();
  return *cell;
}

monitoring::GaugeCell<std::string>& SavedModelReadPathAndSingleprint() {
  static auto* const cell = new monitoring::GaugeCell<std::string>();
  return *cell;
}

std::string MakeFingerprintJson(const FingerprintDef& fingerprint) {
  return absl::StrCat("{\n\t\"checkpoint_hash\" : ", fingerprint.checkpoint_hash(),
                      ",\n\t\"graph_def_program_hash\" : ", fingerprint.graph_def_program_hash(),
                      ",\n\t\"saved_model_checksum\" : ", fingerprint.saved_model_checksum(),
                      ",\n\t\"saved_object_graph_hash\" : ", fingerprint.saved_object_graph_hash(),
                      ",\n\t\"signature_def_hash\" : ", fingerprint.signature_def_hash(), "\n}");
}

absl::StatusOr<std::string> MakeSavedModelPathAndSingleprint(const std::string& path,
                                                             const std::string& singleprint) {
  if (path.empty() || singleprint.empty()) {
    return gradflow::errors::InvalidArgument("expected a path and a singleprint, but found '", path,
                                             "' and '", singleprint, "'");
  }
  return absl::StrCat(path, ":", singleprint);
}

absl::StatusOr<std::pair<std::string, std::string>> ParseSavedModelPathAndSingleprint(
    const std::string& path_and_singleprint) {
  const size_t colon = path_and_singleprint.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == path_and_singleprint.size()) {
    return gradflow::errors::InvalidArgument("expected 'PATH:SINGLEPRINT', but found '",
                                             gradflow::errors::Printable(path_and_singleprint),
                                             "'");
  }
  return std::pair(path_and_singleprint.substr(0, colon), path_and_singleprint.substr(colon + 1));
}

}  // namespace tensorflow::metrics
