// The record of a run for a page: `gradflow run --report`, `gradflow bench --report`.
#ifndef GRADFLOW_TOOLS_VIEW_RUN_REPORT_H_
#define GRADFLOW_TOOLS_VIEW_RUN_REPORT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "gradflow/proto/step_stats.pb.h"
#include "tools/view/analyzed_graph.h"
#include "tools/view/report_nodes.h"

namespace gradflow::tools {

// Returns the names of the outputs whose values a report has, in addition to the fetches of the
// run: none for "outputs", all computed outputs for "all", and otherwise the outputs whose names
// match the extended regular expression. The other arguments are arguments of the run.
// INVALID_ARGUMENT if the expression does not parse.
absl::StatusOr<std::vector<std::string>> ReportedOutputs(const AnalyzedGraph& graph,
                                                         const std::string& which,
                                                         const std::vector<std::string>& fetches,
                                                         const std::vector<std::string>& targets,
                                                         const std::vector<std::string>& feeds);

// Returns the value of the key "run" of the data of a page (graph_json.h), from the record of a
// traced run and the reports of tensors.
std::string RunJson(const AnalyzedGraph& graph, const StepStats& stats,
                    const std::vector<TensorReport>& tensors);

// Returns the page of a run. `path` is the path of the graph.
absl::StatusOr<std::string> ReportPage(const std::string& path, const AnalyzedGraph& graph,
                                       const StepStats& stats,
                                       const std::vector<TensorReport>& tensors);

}  // namespace gradflow::tools

#endif  // GRADFLOW_TOOLS_VIEW_RUN_REPORT_H_
