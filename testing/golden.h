// Golden cases: folders with a graph, its feeds and its expected outputs.
//
//   bn_gradient/
//     graph.pb                a GraphDef, or graph.pbtxt
//     feeds/dy.npy            the value fed to "dy", an output of any node
//     feeds/layer/x@1.npy     fed to "layer/x:1": folders stand for '/', '@' for ':'
//     expected/grad.npy       the expected value of "grad"
//     tolerance.txt           optional; see GoldenTolerances
//
// `gradflow test FOLDER...` runs golden cases, and so do GoogleTest programs: see golden_test.h and
// gradflow_add_golden_test() in CMake. Files store bfloat16, which NumPy lacks, as uint16.
#ifndef GRADFLOW_TESTING_GOLDEN_H_
#define GRADFLOW_TESTING_GOLDEN_H_

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/registry.h"
#include "gradflow/graph/import.h"
#include "gradflow/io/file_access.h"
#include "gradflow/testing/tensor_diff.h"

namespace gradflow {
namespace testing {

// Options of RunGoldenCase and UpdateGoldenCase.
struct GoldenOptions {
  // Overrides the case's tolerance.txt.
  std::optional<Tolerance> tolerance;
  // Number of threads; 0 for all cores.
  int threads = 0;
  // The maximum number of bytes that tensors use at a time; 0 for no limit.
  int64_t memory_limit_bytes = 0;
  // The time limit in milliseconds for the search for cases, and for the import, planning and run
  // of each case; 0 for no limit.
  int64_t timeout_ms = 0;
  // Limits for the graph.
  GraphLimits graph_limits;
  // The files that the graphs of cases may access (SessionOptions::file_access). Plugin ops are not
  // restricted.
  FileAccess file_access = FileAccess::None();
};

// The outcome of a case.
struct GoldenResult {
  // An output that differs from its expected value.
  struct Difference {
    // The name of the output, as "node" or "node:1".
    std::string fetch;
    TensorDiff diff;
  };

  // Returns true if all outputs have their expected values.
  bool ok() const { return differences.empty(); }
  // Returns a line for each differing output: "grad: 1 of 4 elements differs: [2]: ...".
  std::string Text() const;
  // The number of outputs that were compared or written.
  int outputs = 0;
  // The outputs that differ.
  std::vector<Difference> differences;
};

// Returns the cases in `folder`, sorted by name: the folder itself if it has a graph, otherwise all
// subfolders at any depth that have a graph. Follows no links below `folder`. Returns NOT_FOUND if
// there are no cases, DEADLINE_EXCEEDED if the search takes too long, and RESOURCE_EXHAUSTED if
// there are more than 100,000 files and folders.
absl::StatusOr<std::vector<std::string>> FindGoldenCases(const std::string& folder,
                                                         const GoldenOptions& options = {});

// Runs a case and compares its outputs with the expected outputs. Returns FAILED_PRECONDITION if
// there are no expected outputs. Returns INVALID_ARGUMENT if the tolerance in ulps is negative or a
// file is a link that leaves the case. Returns RESOURCE_EXHAUSTED if feeds/ or expected/ has more
// than 10,000 files and folders. Otherwise returns errors of the files, the graph and the run.
// Errors name the folder.
absl::StatusOr<GoldenResult> RunGoldenCase(const std::string& folder,
                                           const GoldenOptions& options = {},
                                           const Registry& registry = GlobalRegistry());

// Runs a case and writes its outputs to expected/. Updates the outputs that have a file there. If
// there are none, writes all outputs that no node of the graph uses. No file changes unless all
// files could be written.
absl::StatusOr<GoldenResult> UpdateGoldenCase(const std::string& folder,
                                              const GoldenOptions& options = {},
                                              const Registry& registry = GlobalRegistry());

// The contents of tolerance.txt. Each line has the form
//   [NAME] atol NUMBER [rtol NUMBER]
//   [NAME] rtol NUMBER
//   [NAME] ulps NUMBER
//   [NAME] exact
// and applies to output NAME. A line without NAME applies to all outputs that no other line names.
// '#' starts a comment. Outputs without a tolerance use Tolerance::ForType.
struct GoldenTolerances {
  // Keyed by output name. "" applies to all other outputs.
  std::map<std::string, Tolerance> by_name;
};
// Parses the text of a tolerance.txt file.
absl::StatusOr<GoldenTolerances> ParseGoldenTolerances(absl::string_view text);

// Convert "layer/x:1" to "layer/x@1.npy" and back. Names of output 0 have no number.
// GoldenTensorName() returns INVALID_ARGUMENT if `file` does not have this form.
std::string GoldenFileName(absl::string_view tensor);
absl::StatusOr<std::string> GoldenTensorName(absl::string_view file);

}  // namespace testing
}  // namespace gradflow

#endif  // GRADFLOW_TESTING_GOLDEN_H_
