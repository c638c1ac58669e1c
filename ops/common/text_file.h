// Reads files for kernels that need all of a file.
#ifndef GRADFLOW_OPS_COMMON_TEXT_FILE_H_
#define GRADFLOW_OPS_COMMON_TEXT_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "gradflow/core/memory_reservation.h"
#include "gradflow/core/op_kernel.h"

namespace gradflow {

// Reads the file at `path` into *text, and charges its bytes to *memory. The file must be one that
// the graph may read. Returns CANCELLED or another error of the run if the run is stopped.
absl::Status ReadTextFile(const KernelContext& ctx, const std::string& path,
                          MemoryReservation* memory, std::string* text);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_COMMON_TEXT_FILE_H_
