// Loads, plans and runs an untrusted file.
#ifndef GRADFLOW_TESTS_TESTING_HOSTILE_GRAPH_H_
#define GRADFLOW_TESTS_TESTING_HOSTILE_GRAPH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gradflow/proto/graph.pb.h"

namespace gradflow::testing {

struct HostileOptions {
  int64_t memory_bytes = int64_t{1} << 30;
  int64_t timeout_ms = 500;
  int threads = 1;
};

// Reads the bytes as a GraphDef, imports it and runs all nodes, feeding placeholders with a few
// elements. Returns the status: PERMISSION_DENIED, without a run, if the graph may write files.
// Fails the test if it is INTERNAL or UNKNOWN, which indicate bugs, or if memory leaks.
absl::Status RunHostileGraph(absl::string_view bytes, const HostileOptions& options = {});

// Returns valid graphs that together contain every op: each row of the file
// (tests/data/op_rows.txt) with constants and with placeholders, and several rows in one graph.
std::vector<GraphDef> ValidGraphs(const std::string& path);

}  // namespace gradflow::testing

#endif  // GRADFLOW_TESTS_TESTING_HOSTILE_GRAPH_H_
