// MemoryReservation: counts memory that is allocated elsewhere against the limit of an allocator.
//
// Use it for memory that is not a tensor and whose size depends on an untrusted graph or file: the
// workspace of a library, a decoded file, a text buffer. Tensor charges the memory of tensors and
// their strings.
//
//   MemoryReservation reservation(ctx.allocator().get());
//   GRADFLOW_RETURN_IF_ERROR(reservation.Set(8.0 * rows * columns, "the workspace"));
//
// Thread safety: like an int.
#ifndef GRADFLOW_CORE_MEMORY_RESERVATION_H_
#define GRADFLOW_CORE_MEMORY_RESERVATION_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/allocator.h"

#pragma GCC visibility push(default)
namespace gradflow {

class MemoryReservation {
 public:
  // Charges nothing yet. `allocator` is borrowed.
  explicit MemoryReservation(Allocator* allocator) : allocator_(allocator) {}
  ~MemoryReservation() {
    if (bytes_ > 0) allocator_->Release(bytes_);
  }
  MemoryReservation(const MemoryReservation&) = delete;
  MemoryReservation& operator=(const MemoryReservation&) = delete;

  // Changes the charge to `bytes`. Returns false and changes nothing if this exceeds the limit of
  // the allocator.
  bool Set(size_t bytes);
  // Overload that returns RESOURCE_EXHAUSTED, "out of memory for `what`, 1000 bytes". Takes a
  // double, because products of untrusted sizes may overflow. REQUIRES: bytes >= 0
  absl::Status Set(double bytes, absl::string_view what);
  size_t bytes() const { return bytes_; }

 private:
  Allocator* const allocator_;
  size_t bytes_ = 0;
};

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_CORE_MEMORY_RESERVATION_H_
