// Conversion of a run's statistics to a trace for Perfetto (ui.perfetto.dev) and chrome://tracing.
#ifndef GRADFLOW_TOOLS_CHROME_TRACE_H_
#define GRADFLOW_TOOLS_CHROME_TRACE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "gradflow/proto/graph.pb.h"
#include "gradflow/proto/step_stats.pb.h"

namespace gradflow::tools {

// A phase of the run, other than a node, on the calling thread. Times are nanoseconds since the
// Unix epoch.
struct TracePhase {
  std::string name;
  int64_t start;
  int64_t end;
};

// Returns JSON in the Chrome trace format. There is a row per thread with a complete event ("X")
// for each node; the row of the calling thread also has an event for each phase. An arrow stands
// for each data edge of `graph` between executed nodes. Times are relative to the earliest event.
// Extends phases over events that they overlap partially, so that events nest.
std::string ChromeTrace(const StepStats& stats, const GraphDef& graph,
                        std::vector<TracePhase> phases);

}  // namespace gradflow::tools

#endif  // GRADFLOW_TOOLS_CHROME_TRACE_H_
