#include "gradflow/core/memory_reservation.h"

#include "gradflow/core/status.h"

namespace gradflow {

bool MemoryReservation::Set(size_t bytes) {
  if (bytes > bytes_) {
    if (!allocator_->Reserve(bytes - bytes_)) return false;
  } else if (bytes < bytes_) {
    allocator_->Release(bytes_ - bytes);
  }
  bytes_ = bytes;
  return true;
}

absl::Status MemoryReservation::Set(double bytes, absl::string_view what) {
  // No allocator has more bytes.
  constexpr double kMax = 1e18;
  if (bytes <= kMax && Set(static_cast<size_t>(bytes))) return absl::OkStatus();
  return errors::ResourceExhausted("out of memory for ", what, ", ", bytes, " bytes");
}

}  // namespace gradflow
