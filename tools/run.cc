// gradflow run: runs a graph once.
#include <sys/resource.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/types/span.h"
#include "gradflow/core/status.h"
#include "gradflow/io/file.h"
#include "gradflow/io/npy.h"
#include "gradflow/testing/watchdog.h"
#include "tools/chrome_trace.h"
#include "tools/commands.h"
#include "tools/graph_limits.h"
#include "tools/loaded_graph.h"
#include "tools/view/analyzed_graph.h"
#include "tools/view/run_report.h"

namespace gradflow::tools {
namespace {

using ::gradflow::testing::Watchdog;

// Returns the outputs to fetch for the page, in addition to the fetches of the run.
absl::StatusOr<std::vector<std::string>> FindReported(const LoadedGraph& loaded,
                                                      const RunFlags& flags,
                                                      const AnalyzedGraph& graph) {
  std::vector<std::string> feeds;
  for (const auto& feed : loaded.feeds) feeds.push_back(feed.first);
  return ReportedOutputs(graph, flags.report_tensors, loaded.fetches, loaded.targets, feeds);
}

// Makes the plan and runs it, as separate phases of the trace. If requested, stores the trace in
// *trace and the page in *report. `def` is the graph that both show; it is empty otherwise.
absl::Status Run(const LoadedGraph& loaded, GraphDef def, const RunFlags& flags,
                 Watchdog::Clock::time_point deadline, std::vector<Tensor>* outputs,
                 std::string* trace, std::string* report) {
  CallableOptions options;
  std::vector<Tensor> feeds;
  for (const auto& [name, value] : loaded.feeds) {
    options.add_feed(name);
    feeds.push_back(value);
  }
  for (const std::string& fetch : loaded.fetches) options.add_fetch(fetch);
  AnalyzedGraph graph;
  ReportNodes report_nodes;
  if (flags.report.empty()) {
    graph.def = std::move(def);
  } else {
    GRADFLOW_ASSIGN_OR_RETURN(GraphLimits limits, MakeGraphLimits(flags.graph.graph_limits));
    limits.deadline = deadline;
    graph = AnalyzeGraph(std::move(def), limits);
    std::vector<std::string> reported = loaded.fetches;
    GRADFLOW_ASSIGN_OR_RETURN(const std::vector<std::string> others,
                              FindReported(loaded, flags, graph));
    reported.insert(reported.end(), others.begin(), others.end());
    GRADFLOW_ASSIGN_OR_RETURN(report_nodes,
                              ReportNodes::Add(graph, reported, loaded.session.get()));
    for (const std::string& name : report_nodes.fetches()) options.add_fetch(name);
  }
  for (const std::string& target : loaded.targets) options.add_target(target);
  RunOptions& run_options = *options.mutable_run_options();
  const bool traced = !flags.trace.empty() || !flags.report.empty();
  if (traced) run_options.set_trace_level(RunOptions::FULL_TRACE);

  // Wall time, advanced by a monotonic clock.
  const auto now = [day = absl::GetCurrentTimeNanos(), begin = std::chrono::steady_clock::now()] {
    const std::chrono::nanoseconds passed = std::chrono::steady_clock::now() - begin;
    return day + static_cast<int64_t>(passed.count());
  };
  const int64_t start = now();
  Session::CallableHandle handle = 0;
  const Watchdog watchdog(loaded.session.get(), deadline);
  GRADFLOW_RETURN_IF_ERROR(watchdog.Explain(loaded.session->MakeCallable(options, &handle)));
  const int64_t planned = now();
  RunMetadata metadata;
  GRADFLOW_RETURN_IF_ERROR(
      watchdog.Explain(loaded.session->RunCallable(handle, feeds, outputs, &metadata)));
  const int64_t end = now();
  if (!flags.trace.empty()) {
    *trace = ChromeTrace(metadata.step_stats(), graph.def,
                         {{"make plan", start, planned}, {"run", planned, end}});
  }
  if (!flags.report.empty()) {
    const auto first = outputs->begin() + static_cast<std::ptrdiff_t>(loaded.fetches.size());
    std::vector<TensorReport> reports = report_nodes.Reports({first, outputs->end()});
    for (const auto& [name, value] : loaded.feeds) reports.push_back(ReportTensor(name, value));
    outputs->resize(loaded.fetches.size());
    GRADFLOW_ASSIGN_OR_RETURN(*report,
                              ReportPage(flags.graph.graph, graph, metadata.step_stats(), reports));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RunCommand(const RunFlags& flags, std::ostream& out) {
  // Values printed per output.
  constexpr int64_t kPrintedValues = 32;
  const Watchdog::Clock::time_point deadline = DeadlineAfter(flags.timeout_seconds);
  GRADFLOW_ASSIGN_OR_RETURN(
      LoadedGraph loaded,
      LoadGraph(flags.graph, {/*keep_graph=*/!flags.trace.empty() || !flags.report.empty(),
                              /*repeats=*/false, deadline}));
  std::vector<Tensor> outputs;
  std::string trace;
  std::string report;
  GRADFLOW_RETURN_IF_ERROR(
      Run(loaded, std::move(loaded.graph), flags, deadline, &outputs, &trace, &report));
  // Writes all files before it renames any file: on failure, no file changes and nothing is
  // printed. The files stay open in between. There may be more than the usual limit of 1,024 open
  // files.
  struct rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
  }
  std::vector<std::pair<std::string, internal::StagedFile>> files;
  const auto stage = [&](const std::string& file, absl::Span<const absl::string_view> parts) {
    absl::StatusOr<internal::StagedFile> staged = internal::StagedFile::Write(file, parts);
    if (!staged.ok()) return errors::Prefix(absl::StrCat("'", file, "': "), staged.status());
    files.emplace_back(file, *std::move(staged));
    return absl::OkStatus();
  };
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string& file = loaded.files[i];
    if (file.empty()) continue;
    const absl::StatusOr<std::string> header = FormatNpyHeader(outputs[i]);
    if (!header.ok()) return errors::Prefix(absl::StrCat("'", file, "': "), header.status());
    std::string storage;
    GRADFLOW_RETURN_IF_ERROR(stage(file, {*header, FormatNpyElements(outputs[i], &storage)}));
  }
  if (!flags.trace.empty()) GRADFLOW_RETURN_IF_ERROR(stage(flags.trace, {trace}));
  if (!flags.report.empty()) GRADFLOW_RETURN_IF_ERROR(stage(flags.report, {report}));
  for (auto& [file, staged] : files) {
    if (absl::Status status = staged.Commit(); !status.ok()) {
      return errors::Prefix(absl::StrCat("'", file, "': "), status);
    }
  }
  // Without --fetch, even a small file may have any number of outputs.
  constexpr int kPrintedOutputs = 1000;
  int printed = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!loaded.files[i].empty()) continue;
    if (++printed > kPrintedOutputs) continue;
    out << errors::Printable(loaded.labels[i]) << ": " << outputs[i].DebugString(kPrintedValues)
        << "\n";
  }
  if (printed > kPrintedOutputs) out << "... and " << printed - kPrintedOutputs << " more\n";
  return absl::OkStatus();
}

}  // namespace gradflow::tools
