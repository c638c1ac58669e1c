// gradflow_generate_wrappers --output_dir=DIR GROUP...
//
// Writes the C++ classes of all standard ops into DIR, one header and source for each group that
// they are registered in. Run by the build.
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/gen/wrapper_generator.h"

namespace {

absl::Status Run(const std::string& output_dir, const std::vector<std::string>& groups) {
  GRADFLOW_ASSIGN_OR_RETURN(const std::vector<gradflow::GeneratedFile> files,
                            gradflow::GenerateWrappers(gradflow::GlobalRegistry(), groups));
  for (const gradflow::GeneratedFile& file : files) {
    GRADFLOW_RETURN_IF_ERROR(gradflow::WriteIfChanged(output_dir, file));
  }
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  absl::string_view output_dir = argc > 2 ? argv[1] : "";
  if (!absl::ConsumePrefix(&output_dir, "--output_dir=") || output_dir.empty()) {
    std::fprintf(stderr, "usage: %s --output_dir=DIR GROUP...\n", argv[0]);
    return 2;
  }
  const std::vector<std::string> groups(argv + 2, argv + argc);
  if (const absl::Status status = Run(std::string(output_dir), groups); !status.ok()) {
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    return 1;
  }
  return 0;
}
