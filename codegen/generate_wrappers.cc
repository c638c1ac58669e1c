// gradflow_generate_wrappers [--plugin=FILE.so --include_dir=DIR] --output_dir=DIR GROUP...
//
// Generates the C++ wrapper classes of all standard ops, or of a plugin's ops, into output_dir: one
// header and one source per group. Programs include the headers from include_dir. Run by this
// build, and as gradflow_generate_ops by the builds of other projects.
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "gradflow/codegen/wrapper_generator.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/io/plugin.h"
#include "gradflow/ops/register.h"

namespace {

struct Flags {
  std::string plugin;
  std::string output_dir;
  std::string include_dir = "gradflow/ops";
  std::vector<std::string> groups;
};

absl::Status Run(const Flags& flags) {
  gradflow::Registry registry;
  gradflow::RegisterStandardOps(registry);
  const gradflow::Registry* base = nullptr;
  if (!flags.plugin.empty()) {
    GRADFLOW_RETURN_IF_ERROR(gradflow::LoadLibrary(flags.plugin, registry));
    base = &gradflow::GlobalRegistry();
  }
  GRADFLOW_ASSIGN_OR_RETURN(
      const std::vector<gradflow::GeneratedFile> files,
      gradflow::GenerateWrappers(registry, flags.groups, flags.include_dir, base));
  for (const gradflow::GeneratedFile& file : files) {
    GRADFLOW_RETURN_IF_ERROR(gradflow::WriteIfChanged(flags.output_dir, file));
  }
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  for (int i = 1; i < argc; ++i) {
    absl::string_view arg = argv[i];
    if (absl::ConsumePrefix(&arg, "--plugin=")) {
      flags.plugin = std::string(arg);
    } else if (absl::ConsumePrefix(&arg, "--output_dir=")) {
      flags.output_dir = std::string(arg);
    } else if (absl::ConsumePrefix(&arg, "--include_dir=")) {
      flags.include_dir = std::string(arg);
    } else {
      flags.groups.emplace_back(arg);
    }
  }
  if (flags.output_dir.empty() || flags.groups.empty()) {
    std::fprintf(stderr,
                 "usage: %s [--plugin=FILE.so --include_dir=DIR] --output_dir=DIR GROUP...\n",
                 argv[0]);
    return 2;
  }
  if (const absl::Status status = Run(flags); !status.ok()) {
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    return 1;
  }
  return 0;
}
