// Tests of random mutations of valid graphs. Each mutation runs or fails with a status.
//
// GRADFLOW_MUTATIONS sets the number of mutations, GRADFLOW_MUTATION_SEED sets the seed, and
// GRADFLOW_MUTATION_ROWS names a file with some lines of op_rows.txt, to test only these ops. The
// test prints the number of each status code.
#include <gmock/gmock.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "gradflow/core/registry.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/proto/op_def.pb.h"
#include "gradflow/testing/status_matchers.h"
#include "tests/testing/hostile_graph.h"
#include "tests/testing/mutate.h"
#include "tests/testing/subprocess.h"

namespace gradflow {
namespace {

using ::gradflow::testing::FileExists;
using ::gradflow::testing::MutateBytes;
using ::gradflow::testing::MutateGraph;
using ::gradflow::testing::MutationRandom;
using ::gradflow::testing::RunHostileGraph;
using ::gradflow::testing::StatusIs;
using ::gradflow::testing::ValidGraphs;

constexpr char kOpRows[] = GRADFLOW_TEST_DATA_DIR "/op_rows.txt";

int64_t FromEnvironment(const char* name, int64_t value) {
  const char* const text = std::getenv(name);
  EXPECT_TRUE(text == nullptr || absl::SimpleAtoi(text, &value)) << name;
  return value;
}

// The initial graphs must be valid and must contain every op.
TEST(Mutations, StartFromEveryOp) {
  // Abort always fails, the nodes of a loop cannot run outside of it, and all but one output of a
  // Switch have no value. A group of one rank has no sender of a broadcast.
  const std::set<std::string> refused = {"Abort",
                                         "CollectiveBcastRecv",
                                         "CollectiveBcastRecvV2",
                                         "Enter",
                                         "Exit",
                                         "LoopCond",
                                         "NextIteration",
                                         "RefEnter",
                                         "RefExit",
                                         "RefNextIteration",
                                         "RefSwitch",
                                         "Switch",
                                         "_SwitchN"};
  const auto is_answer = [](const absl::Status& status) {
    return absl::IsInvalidArgument(status) || absl::IsAborted(status);
  };
  std::set<std::string> ops;
  for (const GraphDef& graph : ValidGraphs(kOpRows)) {
    bool has_unknown_values = false;
    bool is_refused = false;
    for (const NodeDef& node : graph.node()) {
      ops.insert(node.op());
      has_unknown_values |= node.op() == "Placeholder";
      is_refused |= refused.count(node.op()) > 0;
    }
    // The values fed to placeholders are arbitrary.
    const absl::Status status = RunHostileGraph(graph.SerializeAsString());
    // Hostile graphs must not touch files. Under a sanitizer, rows with large windows may exceed
    // the time limit of a hostile graph.
    EXPECT_TRUE(status.ok() || has_unknown_values || absl::IsPermissionDenied(status) ||
                absl::IsDeadlineExceeded(status) || (is_refused && is_answer(status)))
        << status << graph.DebugString();
  }
  for (const OpRegistration* op : GlobalRegistry().Ops()) {
    const std::string& name = op->def().name();
    // These ops have no rows. NoOp computes nothing, PlaceholderV2 fails because it is not fed, and
    // SymbolicGradient is not supported. Ops that call functions need a library of functions:
    // tests/graph/function_mutations_test.cc tests their mutations.
    if (name == "NoOp" || name == "PlaceholderV2" || name == "SymbolicGradient" ||
        op->functional() != FunctionalOp::kNone) {
      continue;
    }
    EXPECT_EQ(ops.count(name), 1) << name << " has no row in op_rows.txt";
  }
}

TEST(Mutations, WriteNoFiles) {
  const std::string path = ::testing::TempDir() + "/gradflow_hostile_file";
  const auto write = [](const Input& to) {
    const Scope scope = Scope::NewRootScope();
    ops::WriteFile(scope, to, "text");
    GraphDef graph;
    GRADFLOW_EXPECT_OK(scope.ToGraphDef(&graph));
    return RunHostileGraph(graph.SerializeAsString());
  };
  EXPECT_THAT(write(path), StatusIs(absl::StatusCode::kPermissionDenied));
  EXPECT_FALSE(FileExists(path));
  EXPECT_THAT(write("/proc/none/file"), StatusIs(absl::StatusCode::kPermissionDenied));
}

TEST(Mutations, RunOrFailWithAStatus) {
  // Suppresses messages about invalid UTF-8.
  const google::protobuf::LogSilencer silencer;
  const char* const rows = std::getenv("GRADFLOW_MUTATION_ROWS");
  const std::vector<GraphDef> graphs = ValidGraphs(rows != nullptr ? rows : kOpRows);
  const int64_t mutations = FromEnvironment("GRADFLOW_MUTATIONS", 2000);
  const int64_t first = FromEnvironment("GRADFLOW_MUTATION_SEED", 0);
  const bool print = std::getenv("GRADFLOW_MUTATIONS") != nullptr;
  std::map<absl::StatusCode, int64_t> codes;
  std::chrono::steady_clock::duration longest{};
  int64_t longest_seed = 0;
  for (int64_t seed = first; seed < first + mutations && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    MutationRandom random(static_cast<uint64_t>(seed));
    GraphDef graph = graphs[random.Below(static_cast<int64_t>(graphs.size()))];
    for (int64_t i = random.Below(4); i >= 0; --i) MutateGraph(&random, &graph);
    std::string bytes;
    // Makes the order of maps deterministic.
    {
      google::protobuf::io::StringOutputStream stream(&bytes);
      google::protobuf::io::CodedOutputStream coded(&stream);
      coded.SetSerializationDeterministic(true);
      graph.SerializePartialToCodedStream(&coded);
    }
    if (random.OneIn(4)) MutateBytes(&random, &bytes);
    const auto start = std::chrono::steady_clock::now();
    ++codes[RunHostileGraph(bytes).code()];
    const auto time = std::chrono::steady_clock::now() - start;
    if (time > longest) {
      longest = time;
      longest_seed = seed;
    }
  }
  if (print) {
    for (const auto& [code, count] : codes) std::cout << code << ": " << count << "\n";
    std::cout << "the longest, of seed " << longest_seed << ", took "
              << std::chrono::duration<double, std::milli>(longest).count() << " ms\n";
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    std::cout << "the process never had more than " << usage.ru_maxrss / 1024 << " MiB\n";
    EXPECT_LT(longest, std::chrono::seconds(1));
    EXPECT_LT(usage.ru_maxrss, 1 << 20);
  }
  // Some mutations are valid and some are not.
  EXPECT_GT(codes[absl::StatusCode::kOk], mutations / 20);
  EXPECT_GT(codes[absl::StatusCode::kInvalidArgument], mutations / 20);
}

}  // namespace
}  // namespace gradflow
