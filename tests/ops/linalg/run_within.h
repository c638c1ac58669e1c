// Runs one op in a session with little memory.
#ifndef GRADFLOW_TESTS_OPS_LINALG_RUN_WITHIN_H_
#define GRADFLOW_TESTS_OPS_LINALG_RUN_WITHIN_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/attributes.h"
#include "gradflow/core/status.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/runtime/session/session.h"
#include "gradflow/testing/kernel_test.h"

namespace gradflow {
namespace testing {

// Runs the op of `tester` on one thread with a limit of `bytes` of memory, and returns its status.
// Outputs and workspaces count against the limit; inputs do not.
inline absl::Status RunWithin(int64_t bytes, OpTester tester) {
  GRADFLOW_RETURN_IF_ERROR(tester.Finalize());
  GraphDef graph;
  NodeDef node = tester.node();
  node.set_name("y");
  node.clear_input();
  std::vector<std::pair<std::string, Tensor>> feeds;
  for (int i = 0; i < tester.num_inputs(); ++i) {
    feeds.emplace_back(absl::StrCat("input", i), tester.input(i));
    node.add_input(feeds.back().first);
    NodeDef* const input = graph.add_node();
    input->set_name(feeds.back().first);
    input->set_op("Placeholder");
    AddNodeAttr("dtype", tester.input(i).dtype(), input);
  }
  *graph.add_node() = node;
  SessionOptions options;
  options.tensor_memory_limit_bytes = bytes;
  options.pool_limit_bytes = 0;
  options.config.set_inter_op_parallelism_threads(1);
  options.config.set_intra_op_parallelism_threads(1);
  GRADFLOW_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Make(options));
  GRADFLOW_RETURN_IF_ERROR(session->Create(graph));
  std::vector<Tensor> outputs;
  return session->Run(feeds, {"y"}, {}, &outputs);
}

}  // namespace testing
}  // namespace gradflow

#endif  // GRADFLOW_TESTS_OPS_LINALG_RUN_WITHIN_H_
