// gradflow run: runs a graph once.
#include <cstdio>

#include "gradflow/core/npy.h"
#include "gradflow/core/status.h"
#include "tools/commands.h"
#include "tools/loaded_graph.h"

namespace gradflow::tools {

absl::Status RunCommand(const GraphFlags& flags, std::ostream& out) {
  // As many values as one reads.
  constexpr int64_t kPrintedValues = 32;
  GRADFLOW_ASSIGN_OR_RETURN(const LoadedGraph loaded, LoadGraph(flags));
  std::vector<Tensor> outputs;
  GRADFLOW_RETURN_IF_ERROR(
      loaded.session->Run(loaded.feeds, loaded.fetches, loaded.targets, &outputs));
  // Files first: if one cannot be written, none is left, and nothing is printed.
  std::vector<std::string> written;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (loaded.files[i].empty()) continue;
    if (absl::Status status = WriteNpy(loaded.files[i], outputs[i]); !status.ok()) {
      for (const std::string& file : written) std::remove(file.c_str());
      return status;
    }
    written.push_back(loaded.files[i]);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!loaded.files[i].empty()) continue;
    out << loaded.fetches[i] << ": " << outputs[i].DebugString(kPrintedValues) << "\n";
  }
  return absl::OkStatus();
}

}  // namespace gradflow::tools
