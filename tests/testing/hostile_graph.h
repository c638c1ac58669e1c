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

// Reads the bytes as a GraphDef, imports it and runs all nodes. Placeholders are fed with a few
// elements. Returns the status. If the graph may write files, it is not run and the status is
// PERMISSION_DENIED. Fails the test if the status is INTERNAL or UNKNOWN, which indicate bugs, or
// if memory leaks.
absl::Status RunHostileGraph(absl::string_view bytes, const HostileOptions& options = {});

// Returns valid graphs that together contain every op. Each row of the file
// (tests/data/op_rows.txt) occurs with constants and with placeholders, and several rows occur in
// one graph.
std::vector<GraphDef> ValidGraphs(const std::string& path);

}  // namespace gradflow::testing

#endif  // GRADFLOW_TESTS_TESTING_HOSTILE_GRAPH_H_
