#include "gradflow/ops/common/text_file.h"

#include <algorithm>
#include <cstddef>

#include "absl/status/statusor.h"
#include "gradflow/core/status.h"
#include "gradflow/core/stop_token.h"
#include "gradflow/io/file.h"
#include "gradflow/io/file_access.h"

namespace gradflow {

absl::Status ReadTextFile(const KernelContext& ctx, const std::string& path,
                          MemoryReservation* memory, std::string* text) {
  size_t size = 0;
  GRADFLOW_ASSIGN_OR_RETURN(const internal::FileDescriptor file,
                            internal::OpenFile(path, &size, FileAccessOf(ctx)));
  GRADFLOW_RETURN_IF_ERROR(memory->Set(static_cast<double>(size), "the file"));
  text->assign(size, '\0');
  // Reads in parts, because the run can be stopped between parts.
  constexpr size_t kPart = size_t{1} << 24;
  for (size_t at = 0; at < size; at += kPart) {
    if (ctx.ShouldStop()) return StoppedError();
    GRADFLOW_RETURN_IF_ERROR(
        internal::ReadAt(file.get(), at, &(*text)[at], std::min(kPart, size - at)));
  }
  return absl::OkStatus();
}

}  // namespace gradflow
