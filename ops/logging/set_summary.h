// The output of ops that write a Summary: a scalar string with the serialized message.
#ifndef GRADFLOW_OPS_LOGGING_SET_SUMMARY_H_
#define GRADFLOW_OPS_LOGGING_SET_SUMMARY_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "gradflow/core/memory_reservation.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/status.h"
#include "gradflow/proto/summary.pb.h"

namespace gradflow {

// Protobuf can only write messages of less than 2 GiB.
inline constexpr double kMaxMessageBytes = 2147483647.0;

// Stores a message in output 0. `bytes` is an upper bound of the size of the serialized message and
// of the message's memory. Charges this memory and then calls fill(&message), which returns a
// status.
template <typename Fill>
absl::Status SetSummary(KernelContext& ctx, double bytes, const Fill& fill) {
  if (bytes > kMaxMessageBytes) {
    return errors::InvalidArgument("a summary has less than 2 GiB, but this one may have ", bytes,
                                   " bytes");
  }
  MemoryReservation reservation(ctx.allocator().get());
  GRADFLOW_RETURN_IF_ERROR(reservation.Set(bytes, "a summary"));
  Summary message;
  GRADFLOW_RETURN_IF_ERROR(fill(&message));
  const size_t size = message.ByteSizeLong();
  ctx.ExpectStringBytes(static_cast<double>(size));
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, {}, &output));
  std::string text;
  if (!message.SerializeToString(&text)) {
    return errors::InvalidArgument("a summary of ", size, " bytes cannot be serialized");
  }
  output->scalar<tstring>()() = std::move(text);
  return absl::OkStatus();
}

}  // namespace gradflow

#endif  // GRADFLOW_OPS_LOGGING_SET_SUMMARY_H_
