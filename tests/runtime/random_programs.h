// Helpers of tests that compare random programs on scalars of int64 with a plain interpreter.
#ifndef GRADFLOW_TESTS_RUNTIME_RANDOM_PROGRAMS_H_
#define GRADFLOW_TESTS_RUNTIME_RANDOM_PROGRAMS_H_

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "gradflow/core/tensor.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/runtime/session/session.h"

namespace gradflow::testing {

using Numbers = std::vector<int64_t>;

// An op of two numbers. Sums and products wrap around.
enum class BinaryOp : uint8_t { kAdd, kSub, kMul, kMaximum };
// Returns the name of the op of the node.
const char* NameOf(BinaryOp op);
int64_t Compute(BinaryOp op, int64_t a, int64_t b);

// Returns the value of an environment variable, the number of programs to run. The default is
// `usual`, or fewer under ThreadSanitizer.
int NumPrograms(const char* variable, int usual);

// Returns options for a session of this many threads.
SessionOptions OptionsFor(int threads);

// Feeds of the placeholders "x0", "x1", ...
std::vector<std::pair<std::string, Tensor>> FeedsOf(const Numbers& args);

// Runs `graph` a few times with random arguments, which FeedsOf() feeds, and expects that the
// outputs `fetches` have the values that `interpret` returns for these arguments.
void ExpectAgrees(const GraphDef& graph, int threads, int num_args,
                  const std::vector<std::string>& fetches,
                  absl::FunctionRef<Numbers(const Numbers& args)> interpret,
                  std::minstd_rand* random);

}  // namespace gradflow::testing

#endif  // GRADFLOW_TESTS_RUNTIME_RANDOM_PROGRAMS_H_
