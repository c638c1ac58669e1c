// Loads, plans and runs a file that may say anything.
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

// What reading the bytes as a GraphDef, importing it and running all of its nodes gives;
// placeholders are fed with a few elements. Fails the test if the outcome is an INTERNAL or UNKNOWN
// error, which are for our own faults, or if memory is not given back.
absl::Status RunHostileGraph(absl::string_view bytes, const HostileOptions& options = {});

// Valid graphs that have every op between them: the rows of the file (tests/data/op_rows.txt), each
// alone with constants and with placeholders, and several in one graph.
std::vector<GraphDef> ValidGraphs(const std::string& path);

}  // namespace gradflow::testing

#endif  // GRADFLOW_TESTS_TESTING_HOSTILE_GRAPH_H_
