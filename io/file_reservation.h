// FileReservation: charges the memory of the decoded contents of a file. Internal.
#ifndef GRADFLOW_IO_FILE_RESERVATION_H_
#define GRADFLOW_IO_FILE_RESERVATION_H_

#include <cstddef>

#include "absl/status/status.h"
#include "gradflow/core/allocator.h"
#include "gradflow/core/memory_reservation.h"

namespace gradflow::internal {

// The charge grows in steps that are proportional to the memory.
class FileReservation {
 public:
  // `allocator` is borrowed.
  explicit FileReservation(Allocator* allocator) : reservation_(allocator) {}

  // Returns RESOURCE_EXHAUSTED if the sum exceeds the limit of the allocator.
  absl::Status Add(size_t bytes) {
    bytes_ += bytes;
    if (bytes_ <= reservation_.bytes()) return absl::OkStatus();
    return reservation_.Set(1.125 * static_cast<double>(bytes_), "the contents of a file");
  }
  // REQUIRES: `bytes` have been added
  void Remove(size_t bytes) { bytes_ -= bytes; }
  // Releases the memory that the steps charged in advance.
  void Trim() { reservation_.Set(bytes_); }
  size_t bytes() const { return bytes_; }

 private:
  MemoryReservation reservation_;
  size_t bytes_ = 0;
};

// The maximum memory of a parsed message per serialized byte.
inline constexpr size_t kParsedBytes = 40;

}  // namespace gradflow::internal

#endif  // GRADFLOW_IO_FILE_RESERVATION_H_
