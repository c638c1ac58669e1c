#include "tests/runtime/random_programs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "absl/strings/str_cat.h"
#include "gradflow/testing/status_matchers.h"
#include "gradflow/testing/tensors.h"

namespace gradflow::testing {

const char* NameOf(BinaryOp op) {
  switch (op) {
    case BinaryOp::kAdd:
      return "AddV2";
    case BinaryOp::kSub:
      return "Sub";
    case BinaryOp::kMul:
      return "Mul";
    case BinaryOp::kMaximum:
      return "Maximum";
  }
  return "";
}

int64_t Compute(BinaryOp op, int64_t a, int64_t b) {
  const auto x = static_cast<uint64_t>(a);
  const auto y = static_cast<uint64_t>(b);
  switch (op) {
    case BinaryOp::kAdd:
      return static_cast<int64_t>(x + y);
    case BinaryOp::kSub:
      return static_cast<int64_t>(x - y);
    case BinaryOp::kMul:
      return static_cast<int64_t>(x * y);
    case BinaryOp::kMaximum:
      return std::max(a, b);
  }
  return 0;
}

int NumPrograms(const char* variable, int usual) {
  const char* const count = std::getenv(variable);
  if (count != nullptr) return std::atoi(count);
#ifdef GRADFLOW_TSAN
  // Plans take fifty times as long.
  return usual / 5;
#else
  return usual;
#endif
}

SessionOptions OptionsFor(int threads) {
  SessionOptions options;
  options.config.set_intra_op_parallelism_threads(threads);
  options.config.set_inter_op_parallelism_threads(threads);
  return options;
}

std::vector<std::pair<std::string, Tensor>> FeedsOf(const Numbers& args) {
  std::vector<std::pair<std::string, Tensor>> feeds;
  for (size_t i = 0; i < args.size(); ++i) {
    feeds.emplace_back(absl::StrCat("x", i), AsScalar<int64_t>(args[i]));
  }
  return feeds;
}

void ExpectAgrees(const GraphDef& graph, int threads, int num_args,
                  const std::vector<std::string>& fetches,
                  absl::FunctionRef<Numbers(const Numbers& args)> interpret,
                  std::minstd_rand* random) {
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session,
                                Session::Make(OptionsFor(threads)));
  GRADFLOW_ASSERT_OK(session->Create(graph));
  for (int run = 0; run < 3; ++run) {
    Numbers args;
    for (int i = 0; i < num_args; ++i) args.push_back(static_cast<int64_t>((*random)() % 9) - 4);
    std::vector<Tensor> outputs;
    GRADFLOW_ASSERT_OK(session->Run(FeedsOf(args), fetches, {}, &outputs));
    Numbers found;
    for (const Tensor& output : outputs) found.push_back(output.scalar<int64_t>()());
    ASSERT_EQ(found, interpret(args));
  }
}

}  // namespace gradflow::testing
