// gradflow_generate_ops --plugin=FILE.so --output_dir=DIR --include_dir=DIR GROUP...
//
// Generates the C++ wrapper classes of a plugin's ops into output_dir: one header and one source
// per group. Programs include the headers from include_dir. The CMake function
// gradflow_generate_ops() runs this program.
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

struct GeneratorFlags {
  std::string plugin;
  std::string output_dir;
  std::string include_dir;
  std::vector<std::string> groups;
};

absl::Status Run(const GeneratorFlags& flags) {
  gradflow::Registry registry;
  gradflow::RegisterStandardOps(registry);
  GRADFLOW_RETURN_IF_ERROR(gradflow::LoadLibrary(flags.plugin, registry));
  return gradflow::WriteWrappers(registry, flags.groups, flags.include_dir,
                                 &gradflow::GlobalRegistry(), flags.output_dir);
}

}  // namespace

int main(int argc, char** argv) {
  GeneratorFlags flags;
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
  if (flags.plugin.empty() || flags.output_dir.empty() || flags.include_dir.empty() ||
      flags.groups.empty()) {
    std::fprintf(stderr, "usage: %s --plugin=FILE.so --output_dir=DIR --include_dir=DIR GROUP...\n",
                 argv[0]);
    return 2;
  }
  if (const absl::Status status = Run(flags); !status.ok()) {
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    return 1;
  }
  return 0;
}
