// gradflow run: runs a graph once.
#include <cmath>
#include <cstdio>

#include "absl/time/clock.h"
#include "gradflow/core/file.h"
#include "gradflow/core/npy.h"
#include "gradflow/core/status.h"
#include "tools/chrome_trace.h"
#include "tools/commands.h"
#include "tools/loaded_graph.h"

namespace gradflow::tools {
namespace {

// In two steps, so that a trace can tell them apart. *trace gets its text if it is wanted.
absl::Status Run(const LoadedGraph& loaded, const RunFlags& flags, std::vector<Tensor>* outputs,
                 std::string* trace) {
  CallableOptions options;
  std::vector<Tensor> feeds;
  for (const auto& [name, value] : loaded.feeds) {
    options.add_feed(name);
    feeds.push_back(value);
  }
  for (const std::string& fetch : loaded.fetches) options.add_fetch(fetch);
  for (const std::string& target : loaded.targets) options.add_target(target);
  RunOptions& run_options = *options.mutable_run_options();
  run_options.set_timeout_in_ms(std::llround(std::ceil(flags.timeout_seconds * 1000)));
  if (!flags.trace.empty()) run_options.set_trace_level(RunOptions::FULL_TRACE);

  const int64_t start = absl::GetCurrentTimeNanos();
  Session::CallableHandle handle = 0;
  GRADFLOW_RETURN_IF_ERROR(loaded.session->MakeCallable(options, &handle));
  const int64_t planned = absl::GetCurrentTimeNanos();
  RunMetadata metadata;
  GRADFLOW_RETURN_IF_ERROR(loaded.session->RunCallable(handle, feeds, outputs, &metadata));
  const int64_t end = absl::GetCurrentTimeNanos();
  if (!flags.trace.empty()) {
    *trace = ChromeTrace(metadata.step_stats(), loaded.graph,
                         {{"make plan", start, planned}, {"run", planned, end}});
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RunCommand(const RunFlags& flags, std::ostream& out) {
  // As many values as one reads.
  constexpr int64_t kPrintedValues = 32;
  GRADFLOW_ASSIGN_OR_RETURN(
      const LoadedGraph loaded,
      LoadGraph(flags.graph, {/*keep_graph=*/!flags.trace.empty(), /*repeats=*/false}));
  std::vector<Tensor> outputs;
  std::string trace;
  GRADFLOW_RETURN_IF_ERROR(Run(loaded, flags, &outputs, &trace));
  // Files first: if one cannot be written, none is left, and nothing is printed.
  std::vector<std::string> written;
  const auto keep = [&](const std::string& file, const absl::Status& status) {
    if (status.ok()) {
      written.push_back(file);
    } else {
      for (const std::string& other : written) std::remove(other.c_str());
    }
    return status;
  };
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (loaded.files[i].empty()) continue;
    GRADFLOW_RETURN_IF_ERROR(keep(loaded.files[i], WriteNpy(loaded.files[i], outputs[i])));
  }
  if (!flags.trace.empty()) {
    GRADFLOW_RETURN_IF_ERROR(
        keep(flags.trace, errors::Prefix(absl::StrCat("'", flags.trace, "': "),
                                         internal::WriteFile(flags.trace, {trace}))));
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!loaded.files[i].empty()) continue;
    out << loaded.fetches[i] << ": " << outputs[i].DebugString(kPrintedValues) << "\n";
  }
  return absl::OkStatus();
}

}  // namespace gradflow::tools
