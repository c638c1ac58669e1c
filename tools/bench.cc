// gradflow bench: times runs of a graph after warm-up.
#include <tbb/info.h>

#include <algorithm>
#include <chrono>
#include <numeric>

#include "absl/strings/str_format.h"
#include "gradflow/core/status.h"
#include "tools/commands.h"
#include "tools/loaded_graph.h"

namespace gradflow::tools {

absl::Status BenchCommand(const BenchFlags& flags, std::ostream& out) {
  // The first runs make the plan, fill the pool of buffers and start the threads.
  constexpr int kWarmUpRuns = 3;
  GRADFLOW_ASSIGN_OR_RETURN(const LoadedGraph loaded, LoadGraph(flags.graph));
  std::vector<double> times;
  for (int run = -kWarmUpRuns; run < flags.repeat; ++run) {
    if (run == 0) loaded.session->ResetPeakMemory();
    std::vector<Tensor> outputs;
    const auto start = std::chrono::steady_clock::now();
    GRADFLOW_RETURN_IF_ERROR(
        loaded.session->Run(loaded.feeds, loaded.fetches, loaded.targets, &outputs));
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
    if (run >= 0) times.push_back(time.count());
  }
  std::sort(times.begin(), times.end());
  const size_t middle = times.size() / 2;
  const double median =
      times.size() % 2 == 1 ? times[middle] : (times[middle - 1] + times[middle]) / 2;
  const double mean = std::accumulate(times.begin(), times.end(), 0.0) / times.size();
  const int threads =
      flags.graph.threads > 0 ? flags.graph.threads : tbb::info::default_concurrency();
  const int64_t peak = loaded.session->MemoryStats().peak_bytes_in_use;
  if (flags.json) {
    out << absl::StreamFormat(
        "{\"median_ms\": %.6f, \"min_ms\": %.6f, \"mean_ms\": %.6f, \"runs\": %d, "
        "\"threads\": %d, \"peak_tensor_bytes\": %d}\n",
        median, times.front(), mean, times.size(), threads, peak);
  } else {
    out << absl::StreamFormat(
        "median %.4f ms, min %.4f ms, mean %.4f ms over %d runs on %d threads; "
        "peak %d bytes of tensors\n",
        median, times.front(), mean, times.size(), threads, peak);
  }
  return absl::OkStatus();
}

}  // namespace gradflow::tools
