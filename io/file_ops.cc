#include "gradflow/io/file_ops.h"

#include <algorithm>
#include <iterator>

namespace gradflow::internal {

bool WritesFiles(absl::string_view op) {
  constexpr absl::string_view kOps[] = {"MergeV2Checkpoints", "Save", "SaveSlices", "SaveV2",
                                        "WriteFile"};
  return std::find(std::begin(kOps), std::end(kOps), op) != std::end(kOps);
}

}  // namespace gradflow::internal
