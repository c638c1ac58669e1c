// FileCharge: accounts for the memory of what is decoded from a file. Internal.
#ifndef GRADFLOW_IO_FILE_CHARGE_H_
#define GRADFLOW_IO_FILE_CHARGE_H_

#include <cstddef>

#include "absl/status/status.h"
#include "gradflow/core/allocator.h"
#include "gradflow/core/charge.h"

namespace gradflow::internal {

// The memory of the decoded contents of a file, charged in steps that grow with it.
class FileCharge {
 public:
  // `allocator` is borrowed.
  explicit FileCharge(Allocator* allocator) : charge_(allocator) {}

  // Returns RESOURCE_EXHAUSTED if the sum exceeds the limit of the allocator.
  absl::Status Add(size_t bytes) {
    bytes_ += bytes;
    if (bytes_ <= charge_.bytes()) return absl::OkStatus();
    return charge_.Set(1.125 * static_cast<double>(bytes_), "the contents of a file");
  }
  // REQUIRES: `bytes` have been added
  void Remove(size_t bytes) { bytes_ -= bytes; }
  // Releases the memory that the steps charged in advance.
  void Trim() { charge_.Set(bytes_); }
  size_t bytes() const { return bytes_; }

 private:
  Charge charge_;
  size_t bytes_ = 0;
};

// The memory of a message for each of its bytes, at most: a message of two bytes takes 80.
inline constexpr size_t kParsedBytes = 40;

}  // namespace gradflow::internal

#endif  // GRADFLOW_IO_FILE_CHARGE_H_
