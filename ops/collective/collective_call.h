// The parts that the kernels of collective ops share: attributes, checks, outputs, and the call of
// the session's Collectives.
#ifndef GRADFLOW_OPS_COLLECTIVE_COLLECTIVE_CALL_H_
#define GRADFLOW_OPS_COLLECTIVE_COLLECTIVE_CALL_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/collectives.h"
#include "gradflow/core/op_kernel.h"

namespace gradflow {

// Returns a call with the op's name, its kind, and the attributes merge_op (or `merge_attr`),
// final_op and timeout_seconds, as far as the op has them. Returns INVALID_ARGUMENT if an attribute
// is out of range.
absl::Status ReadCollectiveAttrs(const KernelConstruction& construction, CollectiveType type,
                                 absl::string_view merge_attr, CollectiveCall* call);

// Returns the scalar int32 input `i`, for group sizes and keys.
absl::StatusOr<int32_t> ScalarInt32(const KernelContext& ctx, int i, absl::string_view name);

// Returns INVALID_ARGUMENT unless group_size is at least 1, and FAILED_PRECONDITION or
// INVALID_ARGUMENT unless the session's Collectives have this many ranks. A group of one rank needs
// no Collectives.
absl::Status CheckGroup(const KernelContext& ctx, int64_t group_size);

// Runs a call whose group is set and checked. Input 0 of the kernel is the tensor of this rank,
// unless the rank receives a broadcast of shape `received`. Sets output 0 if the call has a result.
// No thread waits. Calls done() when all ranks have called, or with an error.
void RunCollective(KernelContext& ctx, const AsyncDone& done, CollectiveCall call,
                   const TensorShape* received = nullptr);

// Starts a call whose tensors are set. For kernels that set their outputs themselves.
void StartCollective(KernelContext& ctx, const AsyncDone& done, CollectiveCall call);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_COLLECTIVE_COLLECTIVE_CALL_H_
