// Golden cases: folders with a graph, what goes in, and what should come out.
//
//   bn_gradient/
//     graph.pb                a GraphDef, or graph.pbtxt
//     feeds/dy.npy            what is fed: the output of that name, of any node
//     feeds/layer/x@1.npy     "layer/x:1": folders stand for '/', and '@' for ':'
//     expected/grad.npy       what fetching "grad" should give
//     tolerance.txt           optional; see ReadGoldenTolerance
//
// `gradflow test FOLDER...` runs them, and so does GoogleTest: golden_test.h, and
// gradflow_add_golden_test() in CMake. bfloat16, which NumPy does not have, is uint16 in the files.
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
#include "gradflow/testing/tensor_diff.h"

namespace gradflow {
namespace testing {

// How RunGoldenCase runs and compares.
struct GoldenOptions {
  // In place of what the case's tolerance.txt says.
  std::optional<Tolerance> tolerance;
  // 0: all cores.
  int threads = 0;
};

// What a case gave.
struct GoldenResult {
  // An output that is not as expected.
  struct Difference {
    // The name of the output, as "node" or "node:1".
    std::string fetch;
    TensorDiff diff;
  };

  // Whether all outputs were as expected.
  bool ok() const { return differences.empty(); }
  // "grad: 1 of 4 elements differs: [2]: ..."; outputs that are off, one a line.
  std::string Text() const;
  // How many outputs were compared, or written.
  int outputs = 0;
  // Those that are not as expected.
  std::vector<Difference> differences;
};

// The cases in `folder`: itself if it has a graph, otherwise those of its folders, at any depth, in
// the order of their names. NOT_FOUND if there are none.
absl::StatusOr<std::vector<std::string>> FindGoldenCases(const std::string& folder);

// Runs a case and compares what it expects. FAILED_PRECONDITION if it expects nothing,
// INVALID_ARGUMENT if the tolerance is of negative ulps; otherwise errors are those of the files,
// the graph and the run, and name the case's folder.
absl::StatusOr<GoldenResult> RunGoldenCase(const std::string& folder,
                                           const GoldenOptions& options = {},
                                           const Registry& registry = GlobalRegistry());

// Runs a case and writes what it gives as what it expects: of the outputs that it expects so far,
// or, if there are none, of those that no node of the graph uses. All files are written, or none.
absl::StatusOr<GoldenResult> UpdateGoldenCase(const std::string& folder,
                                              const GoldenOptions& options = {},
                                              const Registry& registry = GlobalRegistry());

// What tolerance.txt says. Each line is
//   [NAME] atol NUMBER [rtol NUMBER]
//   [NAME] rtol NUMBER
//   [NAME] ulps NUMBER
//   [NAME] exact
// for the output NAME, or for all that have no line of their own; '#' begins a comment. Outputs of
// which it says nothing have Tolerance::ForType.
struct GoldenTolerances {
  // By the name of the output; "" for the others.
  std::map<std::string, Tolerance> by_name;
};
// Reads the text of a tolerance.txt.
absl::StatusOr<GoldenTolerances> ParseGoldenTolerances(absl::string_view text);

// "layer/x:1" as "layer/x@1.npy", and back; names of output 0 have no number. INVALID_ARGUMENT if
// it is no such name.
std::string GoldenFileName(absl::string_view tensor);
absl::StatusOr<std::string> GoldenTensorName(absl::string_view file);

}  // namespace testing
}  // namespace gradflow

#endif  // GRADFLOW_TESTING_GOLDEN_H_
