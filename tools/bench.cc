// gradflow bench: times runs of a graph after warm-up.
#include <tbb/info.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gradflow/core/status.h"
#include "gradflow/io/file.h"
#include "tools/commands.h"
#include "tools/graph_limits.h"
#include "tools/json.h"
#include "tools/loaded_graph.h"
#include "tools/progress.h"
#include "tools/view/analyzed_graph.h"
#include "tools/view/run_report.h"

namespace gradflow::tools {

namespace {

// Returns the times of the runs after warm-up, in milliseconds. Stores the statistics of the
// session's memory at the end of the warm-up in *before.
absl::StatusOr<std::vector<double>> TimeRuns(const LoadedGraph& loaded, const BenchFlags& flags,
                                             PoolAllocator::Stats* before) {
  // The first runs make the plan, fill the buffer pool and start the threads.
  constexpr int kWarmUpRuns = 3;
  std::vector<double> times;
  times.reserve(flags.repeat);
  Progress progress(flags.progress, flags.repeat, "runs");
  for (int run = -kWarmUpRuns; run < flags.repeat; ++run) {
    if (run == 0) {
      loaded.session->ResetPeakMemory();
      *before = loaded.session->MemoryStats();
    }
    progress.Update(std::max(run, 0));
    std::vector<Tensor> outputs;
    const auto start = std::chrono::steady_clock::now();
    GRADFLOW_RETURN_IF_ERROR(
        loaded.session->Run(loaded.feeds, loaded.fetches, loaded.targets, &outputs));
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
    if (run >= 0) times.push_back(time.count());
  }
  return times;
}

// Runs the graph once more with a trace, and writes the page.
absl::Status WriteReport(const LoadedGraph& loaded, const BenchFlags& flags) {
  GRADFLOW_ASSIGN_OR_RETURN(const GraphLimits limits, MakeGraphLimits(flags.graph.graph_limits));
  const AnalyzedGraph graph = AnalyzeGraph(loaded.graph, limits);
  GRADFLOW_ASSIGN_OR_RETURN(const ReportNodes nodes,
                            ReportNodes::Add(graph, loaded.fetches, loaded.session.get()));
  RunOptions options;
  options.set_trace_level(RunOptions::FULL_TRACE);
  RunMetadata metadata;
  std::vector<Tensor> outputs;
  GRADFLOW_RETURN_IF_ERROR(loaded.session->Run(options, loaded.feeds, nodes.fetches(),
                                               loaded.targets, &outputs, &metadata));
  std::vector<TensorReport> reports = nodes.Reports(outputs);
  for (const auto& [name, value] : loaded.feeds) reports.push_back(ReportTensor(name, value));
  GRADFLOW_ASSIGN_OR_RETURN(const std::string page,
                            ReportPage(flags.graph.graph, graph, metadata.step_stats(), reports));
  return errors::Prefix(absl::StrCat("'", flags.report, "': "),
                        internal::WriteFile(flags.report, {page}));
}

// Rounds to a multiple of 1 / `parts`.
double Rounded(double value, double parts) { return std::round(value * parts) / parts; }

}  // namespace

absl::Status BenchCommand(const BenchFlags& flags, std::ostream& out) {
  LoadOptions options;
  options.keep_graph = !flags.report.empty();
  GRADFLOW_ASSIGN_OR_RETURN(const LoadedGraph loaded, LoadGraph(flags.graph, options));
  PoolAllocator::Stats before;
  GRADFLOW_ASSIGN_OR_RETURN(std::vector<double> times, TimeRuns(loaded, flags, &before));
  const PoolAllocator::Stats memory = loaded.session->MemoryStats();
  if (!flags.report.empty()) GRADFLOW_RETURN_IF_ERROR(WriteReport(loaded, flags));
  std::sort(times.begin(), times.end());
  const size_t middle = times.size() / 2;
  const double median =
      times.size() % 2 == 1 ? times[middle] : (times[middle - 1] + times[middle]) / 2;
  const double mean = std::accumulate(times.begin(), times.end(), 0.0) / times.size();
  const int threads =
      flags.graph.threads > 0 ? flags.graph.threads : tbb::info::default_concurrency();
  const double runs = static_cast<double>(times.size());
  const double allocations = (memory.allocations - before.allocations) / runs;
  const double from_system = (memory.system_allocations - before.system_allocations) / runs;
  if (flags.json) {
    out << JsonText({{"median_ms", Rounded(median, 1e6)},
                     {"min_ms", Rounded(times.front(), 1e6)},
                     {"mean_ms", Rounded(mean, 1e6)},
                     {"runs", times.size()},
                     {"threads", threads},
                     {"peak_tensor_bytes", memory.peak_bytes_in_use},
                     {"allocations_per_run", Rounded(allocations, 100)},
                     {"system_allocations_per_run", Rounded(from_system, 100)}})
        << "\n";
  } else {
    out << absl::StreamFormat(
        "median %.4f ms, min %.4f ms, mean %.4f ms over %d runs on %d threads; "
        "peak %d bytes of tensors, %.2f allocations per run, %.2f of them from the system\n",
        median, times.front(), mean, times.size(), threads, memory.peak_bytes_in_use, allocations,
        from_system);
  }
  return absl::OkStatus();
}

}  // namespace gradflow::tools
