// Nodes that compute what a report says of tensors, while a run goes on.
#ifndef GRADFLOW_TOOLS_VIEW_REPORT_NODES_H_
#define GRADFLOW_TOOLS_VIEW_REPORT_NODES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/tensor.h"
#include "gradflow/runtime/session/session.h"
#include "tools/view/analyzed_graph.h"

namespace gradflow::tools {

// The name of a tensor, and a JSON object of what the page shows of it (OutputJson of
// web/src/data/format.ts, without the members "n" and "o").
struct TensorReport {
  std::string name;
  std::string json;
};

// Returns the report of a tensor; uses all cores.
TensorReport ReportTensor(const std::string& name, const Tensor& tensor);

// The nodes that report outputs of a graph. Each runs when its tensor is there, on the threads of
// the run.
class ReportNodes {
 public:
  // Adds a node for each of these outputs to the session of the graph. Leaves out those of nodes
  // that could not be imported.
  static absl::StatusOr<ReportNodes> Add(const AnalyzedGraph& graph,
                                         const std::vector<std::string>& outputs, Session* session);

  // The names to fetch.
  const std::vector<std::string>& fetches() const { return fetches_; }
  // Returns the reports, from the tensors of fetches().
  std::vector<TensorReport> Reports(const std::vector<Tensor>& fetched) const;
  // Returns true for the name of such a node.
  static bool IsReportNode(absl::string_view name);

 private:
  std::vector<std::string> outputs_;
  std::vector<std::string> fetches_;
};

}  // namespace gradflow::tools

#endif  // GRADFLOW_TOOLS_VIEW_REPORT_NODES_H_
