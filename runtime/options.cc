#include "gradflow/runtime/options.h"

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

}  // namespace gradflow
