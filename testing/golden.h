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
  // The most bytes of tensors at a time; 0 for no limit.
  int64_t memory_limit_bytes = 0;
  // Milliseconds for the search for cases, and for the import, the planning and the run of a case;
  // 0 for no limit.
  int64_t timeout_ms = 0;
  // Limits of the graph.
  GraphLimits graph_limits;
  // The files that the graphs of cases may touch (SessionOptions::file_access). Ops of plugins are
  // not checked.
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

  // Returns true if all outputs are as expected.
  bool ok() const { return differences.empty(); }
  // Returns a line per differing output: "grad: 1 of 4 elements differs: [2]: ...".
  std::string Text() const;
  // The number of outputs compared or written.
  int outputs = 0;
  // The outputs that differ.
  std::vector<Difference> differences;
};

// Returns the cases in `folder`: itself if it has a graph, otherwise its subfolders at any depth
// that have one, sorted by name. Follows no links below `folder`. Returns NOT_FOUND if there are
// none, DEADLINE_EXCEEDED if the search takes too long, and RESOURCE_EXHAUSTED if there are more
// than 100,000 files and folders.
absl::StatusOr<std::vector<std::string>> FindGoldenCases(const std::string& folder,
                                                         const GoldenOptions& options = {});

// Runs a case and compares its outputs with the expected ones. Returns FAILED_PRECONDITION if none
// is expected, INVALID_ARGUMENT if the tolerance in ulps is negative or if a file is a link that
// leaves the case, RESOURCE_EXHAUSTED if feeds/ or expected/ has more than 10,000 files and
// folders, and errors of the files, the graph and the run. Errors name the folder.
absl::StatusOr<GoldenResult> RunGoldenCase(const std::string& folder,
                                           const GoldenOptions& options = {},
                                           const Registry& registry = GlobalRegistry());

// Runs a case and writes its outputs to expected/: those with a file there, or, if there are none,
// those that no node of the graph uses. Writes all files or none.
absl::StatusOr<GoldenResult> UpdateGoldenCase(const std::string& folder,
                                              const GoldenOptions& options = {},
                                              const Registry& registry = GlobalRegistry());

// The contents of tolerance.txt. Each line is
//   [NAME] atol NUMBER [rtol NUMBER]
//   [NAME] rtol NUMBER
//   [NAME] ulps NUMBER
//   [NAME] exact
// for output NAME, or for all outputs without a line of their own. '#' begins a comment. Outputs
// without a tolerance have Tolerance::ForType.
struct GoldenTolerances {
  // Keyed by the name of the output; "" applies to the others.
  std::map<std::string, Tolerance> by_name;
};
// Parses the text of a tolerance.txt.
absl::StatusOr<GoldenTolerances> ParseGoldenTolerances(absl::string_view text);

// Convert "layer/x:1" to "layer/x@1.npy" and back. Names of output 0 have no number. Return
// INVALID_ARGUMENT if the name does not have that form.
std::string GoldenFileName(absl::string_view tensor);
absl::StatusOr<std::string> GoldenTensorName(absl::string_view file);

}  // namespace testing
}  // namespace gradflow

#endif  // GRADFLOW_TESTING_GOLDEN_H_
