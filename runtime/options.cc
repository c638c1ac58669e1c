#include "gradflow/runtime/options.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>

#include "gradflow/proto/step_stats.pb.h"

namespace gradflow {

RunMetadata::RunMetadata() = default;
RunMetadata::~RunMetadata() = default;
RunMetadata::RunMetadata(RunMetadata&& other) noexcept = default;
RunMetadata& RunMetadata::operator=(RunMetadata&& other) noexcept = default;
RunMetadata::RunMetadata(const RunMetadata& other) { *this = other; }
RunMetadata& RunMetadata::operator=(const RunMetadata& other) {
  if (this == &other) return *this;
  step_stats_ = other.has_step_stats() ? std::make_unique<StepStats>(other.step_stats()) : nullptr;
  return *this;
}

const StepStats& RunMetadata::step_stats() const {
  return has_step_stats() ? *step_stats_ : StepStats::default_instance();
}

StepStats* RunMetadata::mutable_step_stats() {
  if (!has_step_stats()) step_stats_ = std::make_unique<StepStats>();
  return step_stats_.get();
}

void RunMetadata::Clear() { step_stats_.reset(); }

std::string RunMetadata::SerializeAsString() const {
  using google::protobuf::internal::WireFormatLite;
  // The number of the field in TensorFlow's message.
  constexpr int kStepStats = 1;
  std::string bytes;
  if (!has_step_stats()) return bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  WireFormatLite::WriteTag(kStepStats, WireFormatLite::WIRETYPE_LENGTH_DELIMITED, &coded);
  const std::string step_stats_bytes = step_stats().SerializeAsString();
  coded.WriteVarint32(static_cast<uint32_t>(step_stats_bytes.size()));
  coded.WriteString(step_stats_bytes);
  return bytes;
}

}  // namespace gradflow
