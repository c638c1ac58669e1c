// A run's statistics as a file that Perfetto (ui.perfetto.dev) and chrome://tracing open.
#ifndef GRADFLOW_TOOLS_CHROME_TRACE_H_
#define GRADFLOW_TOOLS_CHROME_TRACE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "gradflow/proto/graph.pb.h"
#include "gradflow/proto/step_stats.pb.h"

namespace gradflow::tools {

// Something beside the nodes that took time on the thread that called for the run; nanoseconds
// since 1970.
struct TracePhase {
  std::string name;
  int64_t start;
  int64_t end;
};

// JSON in the Chrome trace format: a row for each thread, with a complete event for each node and,
// on the caller's, for each phase; and an arrow for each tensor that one node made and another
// read, as `graph` says. Times are relative to the earliest. A phase is made long enough for the
// events that it overlaps in part, so that all nest.
std::string ChromeTrace(const StepStats& stats, const GraphDef& graph,
                        std::vector<TracePhase> phases);

}  // namespace gradflow::tools

#endif  // GRADFLOW_TOOLS_CHROME_TRACE_H_
