// gradflow_generate_wrappers OUTPUT_DIR GROUP... -- DEFINITIONS...
//
// Generates the C++ wrapper classes of the standard ops into OUTPUT_DIR: one header and one source
// per group. DEFINITIONS are the files ops/<folder>/definitions.pbtxt. The program links no op.
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/codegen/definitions.h"
#include "gradflow/codegen/wrapper_generator.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"

namespace {

absl::Status Run(const std::string& output_dir, const std::vector<std::string>& groups,
                 const std::vector<std::string>& files) {
  gradflow::Registry registry;
  for (const std::string& file : files) {
    GRADFLOW_ASSIGN_OR_RETURN(const std::string text, gradflow::ReadTextFile(file));
    const absl::Status status = gradflow::RegisterDefinitions(text, &registry);
    if (!status.ok()) {
      return absl::Status(status.code(), absl::StrCat(file, ": ", status.message()));
    }
  }
  return gradflow::WriteWrappers(registry, groups, "gradflow/ops", nullptr, output_dir);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> groups;
  std::vector<std::string> files;
  std::vector<std::string>* list = &groups;
  for (int i = 2; i < argc; ++i) {
    if (std::string(argv[i]) == "--") {
      list = &files;
    } else {
      list->emplace_back(argv[i]);
    }
  }
  if (groups.empty() || files.empty()) {
    std::fprintf(stderr, "usage: %s OUTPUT_DIR GROUP... -- DEFINITIONS...\n", argv[0]);
    return 2;
  }
  if (const absl::Status status = Run(argv[1], groups, files); !status.ok()) {
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    return 1;
  }
  return 0;
}
