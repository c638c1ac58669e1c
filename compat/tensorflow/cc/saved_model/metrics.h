// Numbers and names of the SavedModels that the process has read with this library's classes in
// namespace tensorflow. gradflow has no other metrics.
//
// Thread safety: all functions may be called from several threads at once.
#ifndef GRADFLOW_COMPAT_CC_SAVED_MODEL_METRICS_H_
#define GRADFLOW_COMPAT_CC_SAVED_MODEL_METRICS_H_

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/protobuf/fingerprint.pb.h"

namespace tensorflow {

namespace monitoring {

class CounterCell {
 public:
  void IncrementBy(int64_t step) { value_ += step; }
  int64_t value() const { return value_; }

 private:
  std::atomic<int64_t> value_{0};
};

template <typename T>
class GaugeCell {
 public:
  void Set(const T& value) {
    const std::lock_guard<std::mutex> lock(mutex_);
    value_ = value;
  }
  T value() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return value_;
  }

 private:
  mutable std::mutex mutex_;
  T value_{};
};

}  // namespace monitoring

namespace metrics {

// The models that were read, by saved_model::GetWriteVersion().
monitoring::CounterCell& SavedModelReadCount(absl::string_view write_version);
// The calls of a function: "cc_load" for LoadSavedModel, "cc_load_bundle_v2" for
// SavedModelV2Bundle::Load.
monitoring::CounterCell& SavedModelReadApi(absl::string_view api_label);
// The folder of the last model.
monitoring::GaugeCell<std::string>& SavedModelReadPath();
// The last fingerprint that was found, as JSON (MakeFingerprintJson).
monitoring::GaugeCell<std::string>& SavedModelReadFingerprint();
// The folder and the hashes of the same model.
monitoring::GaugeCell<std::string>& SavedModelReadPathAndSingleprint();

std::string MakeFingerprintJson(const FingerprintDef& fingerprint);
// Return INVALID_ARGUMENT if a part is empty.
absl::StatusOr<std::string> MakeSavedModelPathAndSingleprint(const std::string& path,
                                                             const std::string& singleprint);
absl::StatusOr<std::pair<std::string, std::string>> ParseSavedModelPathAndSingleprint(
    const std::string& path_and_singleprint);

}  // namespace metrics
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CC_SAVED_MODEL_METRICS_H_
