// Charge: memory that is allocated outside of an allocator, counted against the allocator's limit.
//
// For memory whose size an untrusted graph or file decides and that is no tensor: the workspace of
// a library, a decoded file, a buffer of text. The memory of tensors and of their strings is
// charged by Tensor.
//
//   Charge charge(ctx.allocator().get());
//   GRADFLOW_RETURN_IF_ERROR(charge.Set(8.0 * rows * columns, "the workspace of the inversion"));
//
// Thread safety: as an int.
#ifndef GRADFLOW_CORE_CHARGE_H_
#define GRADFLOW_CORE_CHARGE_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/allocator.h"

#pragma GCC visibility push(default)
namespace gradflow {

class Charge {
 public:
  // Charges nothing yet. `allocator` is borrowed.
  explicit Charge(Allocator* allocator) : allocator_(allocator) {}
  ~Charge() {
    if (bytes_ > 0) allocator_->Release(bytes_);
  }
  Charge(const Charge&) = delete;
  Charge& operator=(const Charge&) = delete;

  // Changes the charge to `bytes`. Returns false, and changes nothing, if that exceeds the limit of
  // the allocator.
  bool Set(size_t bytes);
  // Overload that returns RESOURCE_EXHAUSTED, "out of memory for `what`, 1000 bytes". Takes double,
  // since products of untrusted sizes may overflow. REQUIRES: bytes >= 0
  absl::Status Set(double bytes, absl::string_view what);
  size_t bytes() const { return bytes_; }

 private:
  Allocator* const allocator_;
  size_t bytes_ = 0;
};

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_CORE_CHARGE_H_
