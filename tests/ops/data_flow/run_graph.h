// Runs graphs of ops whose handles live in a run.
#ifndef GRADFLOW_TESTS_OPS_DATA_FLOW_RUN_GRAPH_H_
#define GRADFLOW_TESTS_OPS_DATA_FLOW_RUN_GRAPH_H_

#include <vector>

#include "absl/status/statusor.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/scope.h"
#include "gradflow/runtime/session/client_session.h"
#include "gradflow/runtime/session/session.h"

namespace gradflow::testing {

// Runs the graph of `scope` in a new session, and returns the fetched tensors.
inline absl::StatusOr<std::vector<Tensor>> RunGraph(const Scope& scope,
                                                    const std::vector<Output>& fetches,
                                                    const SessionOptions& options = {}) {
  GRADFLOW_RETURN_IF_ERROR(scope.status());
  ClientSession session(scope, options);
  std::vector<Tensor> outputs;
  GRADFLOW_RETURN_IF_ERROR(session.Run(fetches, &outputs));
  return outputs;
}

}  // namespace gradflow::testing

#endif  // GRADFLOW_TESTS_OPS_DATA_FLOW_RUN_GRAPH_H_
