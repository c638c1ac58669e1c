// gradflow_write_definitions OPS_DIR
//
// Writes the definitions of the registered ops to definitions.pbtxt in each folder of ops/. `./dev
// ops` runs it after a definition has changed.
#include <cstdio>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "gradflow/codegen/definitions.h"
#include "gradflow/codegen/wrapper_generator.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/register.h"

namespace {

absl::Status Run(const std::string& ops_dir) {
  using Texts = std::map<std::string, std::string>;
  GRADFLOW_ASSIGN_OR_RETURN(const Texts texts,
                            gradflow::DefinitionsText(gradflow::StandardOpFamilies()));
  for (const auto& [folder, text] : texts) {
    GRADFLOW_RETURN_IF_ERROR(
        gradflow::WriteIfChanged(absl::StrCat(ops_dir, "/", folder), {"definitions.pbtxt", text}));
  }
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s OPS_DIR\n", argv[0]);
    return 2;
  }
  if (const absl::Status status = Run(argv[1]); !status.ok()) {
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    return 1;
  }
  return 0;
}
