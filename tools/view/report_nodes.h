// Nodes that compute the report of tensors during a run.
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

// The name of a tensor, and a JSON object with its report for the page (OutputJson of
// web/src/data/format.ts, without the members "n" and "o").
struct TensorReport {
  std::string name;
  std::string json;
};

// Returns the report of a tensor. Uses all cores.
TensorReport ReportTensor(const std::string& name, const Tensor& tensor);

// The nodes that report outputs of a graph. Each node runs when its tensor is ready, on the threads
// of the run.
class ReportNodes {
 public:
  // Adds a node for each of these outputs to the session of the graph. Leaves out outputs of nodes
  // that could not be imported.
  static absl::StatusOr<ReportNodes> Add(const AnalyzedGraph& graph,
                                         const std::vector<std::string>& outputs, Session* session);

  // The names to fetch.
  const std::vector<std::string>& fetches() const { return fetches_; }
  // Returns the reports, from the tensors of fetches().
  std::vector<TensorReport> Reports(const std::vector<Tensor>& fetched) const;
  // Returns true for the name of a node that this object has added.
  static bool IsReportNode(absl::string_view name);

 private:
  std::vector<std::string> outputs_;
  std::vector<std::string> fetches_;
};

}  // namespace gradflow::tools

#endif  // GRADFLOW_TOOLS_VIEW_REPORT_NODES_H_
