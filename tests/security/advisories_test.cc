// Tests of the rows in tests/data/advisories.txt. Ops run in three graphs: with known values, with
// known ranks, and with unknown shapes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/tensor_proto.h"
#include "gradflow/graph/import.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/runtime/session/session.h"
#include "gradflow/testing/status_matchers.h"
#include "tests/testing/op_rows.h"

namespace gradflow {
namespace {

using ::gradflow::testing::AddOpRow;
using ::gradflow::testing::Knowledge;
using ::gradflow::testing::ParseTensors;
using ::gradflow::testing::ReadRows;
using ::gradflow::testing::StatusIs;
using ::testing::AnyOfArray;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Matcher;
using ::testing::StartsWith;

using Feeds = std::vector<std::pair<std::string, Tensor>>;

// Builds the graph, runs its last node and returns the status.
absl::Status BuildAndRun(const GraphDef& graph, const Feeds& feeds) {
  SessionOptions options;
  options.tensor_memory_limit_bytes = int64_t{1} << 30;
  absl::StatusOr<std::unique_ptr<Session>> session = Session::Make(options);
  if (!session.ok()) return session.status();
  if (absl::Status status = (*session)->Create(graph); !status.ok()) return status;
  if (graph.node_size() == 0) return absl::OkStatus();
  const std::string& name = graph.node().rbegin()->name();
  std::vector<Tensor> outputs;
  absl::Status status = (*session)->Run(feeds, {}, {name}, nullptr);
  if (status.ok() && !feeds.empty()) status = (*session)->Run(feeds, {name}, {}, &outputs);
  for (const Tensor& output : outputs) EXPECT_TRUE(output.IsInitialized());
  EXPECT_TRUE(status.ok() || outputs.empty());
  outputs.clear();
  // Frees the variables.
  EXPECT_TRUE((*session)->Close().ok());
  EXPECT_EQ((*session)->MemoryStats().bytes_in_use, 0);
  return status;
}

// Expects that all statuses have the code of the row, and that each message starts with `begin` and
// a text of the row. Each text must occur.
void ExpectAnswers(const std::vector<absl::Status>& answers, const std::string& code,
                   const std::string& begin, const std::string& texts) {
  std::vector<std::string> messages;
  for (const absl::Status& answer : answers) {
    EXPECT_EQ(absl::StatusCodeToString(answer.code()), code) << answer;
    messages.emplace_back(answer.message());
  }
  if (code == "OK") {
    EXPECT_EQ(texts, "");
    return;
  }
  std::vector<Matcher<std::string>> matchers;
  for (const absl::string_view text : absl::StrSplit(texts, " // ")) {
    // A short text could match unrelated messages.
    EXPECT_GE(text.size(), 15) << text;
    matchers.push_back(StartsWith(absl::StrCat(begin, text)));
    EXPECT_THAT(messages, Contains(matchers.back()));
  }
  EXPECT_THAT(messages, Each(AnyOfArray(matchers)));
}

TEST(Advisories, OpsRefuseTheirInputsWithAnyStaticKnowledge) {
  int rows = 0;
  for (const auto& row : ReadRows(GRADFLOW_TEST_DATA_DIR "/advisories.txt")) {
    if (row[1] == "GraphDef") continue;
    ASSERT_EQ(row.size(), 6) << row[0];
    ++rows;
    const std::vector<Tensor> inputs = ParseTensors(row[3]);
    std::vector<absl::Status> answers;
    for (const auto& [what, knowledge] : {std::pair("all is known", Knowledge::kValues),
                                          {"ranks are known", Knowledge::kRanks},
                                          {"nothing is known", Knowledge::kNothing}}) {
      SCOPED_TRACE(absl::StrCat(row[0], ", ", what));
      GraphDef graph;
      Feeds feeds;
      AddOpRow("n", row[1], row[2], inputs, knowledge, &graph, &feeds);
      answers.push_back(BuildAndRun(graph, feeds));
    }
    SCOPED_TRACE(row[0]);
    ExpectAnswers(answers, row[4], absl::StrCat("node 'n' (", row[1], "): "), row[5]);
  }
  EXPECT_GE(rows, 100);
}

TEST(Advisories, GraphsAreRefused) {
  int rows = 0;
  for (const auto& row : ReadRows(GRADFLOW_TEST_DATA_DIR "/advisories.txt")) {
    if (row[1] != "GraphDef") continue;
    ASSERT_EQ(row.size(), 5) << row[0];
    ++rows;
    SCOPED_TRACE(row[0]);
    // Expands "@100 text @" to 100 repetitions of the text, and three closing braces for each of
    // them.
    std::string text = row[2];
    if (const std::vector<std::string> parts = absl::StrSplit(text, '@'); parts.size() == 3) {
      const std::pair<std::string, std::string> repeat =
          absl::StrSplit(parts[1], absl::MaxSplits(' ', 1));
      int times = 0;
      ASSERT_TRUE(absl::SimpleAtoi(repeat.first, &times));
      text = parts[0];
      for (int i = 0; i < times; ++i) text += repeat.second;
      for (int i = 0; i < times; ++i) text += "} } }";
      text += parts[2];
    }
    std::vector<absl::Status> answers;
    const absl::StatusOr<GraphDef> graph = ParseGraphDefText(text);
    answers.push_back(graph.ok() ? BuildAndRun(*graph, {}) : graph.status());
    if (graph.ok()) {
      const absl::StatusOr<GraphDef> binary = ParseGraphDef(graph->SerializeAsString());
      answers.push_back(binary.ok() ? BuildAndRun(*binary, {}) : binary.status());
    }
    ExpectAnswers(answers, row[3], "", row[4]);
  }
  EXPECT_GE(rows, 30);
}

// ---- Advisories that concern neither ops nor graphs ----

// 2022-008
TEST(Advisories, NumberOfThreadsIsLimited) {
  SessionOptions options;
  options.config.set_intra_op_parallelism_threads(0x60000000);
  EXPECT_THAT(Session::Make(options),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("1610612736")));
}

// 2022-166
TEST(Advisories, BytesOfBoolsAreNormalized) {
  TensorProto proto;
  proto.set_dtype(DT_BOOL);
  proto.mutable_tensor_shape()->add_dim()->set_size(3);
  proto.set_tensor_content(std::string("\x00\x02\xff", 3));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor tensor, TensorFromProto(proto));
  EXPECT_EQ(tensor.tensor_data(), absl::string_view("\0\1\1", 3));
  EXPECT_EQ(tensor.DebugString(), "Tensor<type: bool shape: [3] values: 0 1 1>");
}

// 2023-016
TEST(Advisories, PrintsZeroElements) {
  EXPECT_THAT(Tensor(DT_BOOL, {2, 2}).DebugString(0), StartsWith("Tensor<type: bool shape: [2,2]"));
}

// 2020-014
TEST(Advisories, LoopsCountBeyond32Bits) {
  constexpr int64_t kItems = (int64_t{1} << 33) + 5;
  std::atomic<int64_t> items{0};
  ParallelFor(RunContext(), kItems, int64_t{1} << 28,
              [&](int64_t begin, int64_t end) { items += end - begin; });
  EXPECT_EQ(items, kItems);
}

// 2020-029
TEST(Advisories, QuantizedTensorsStartWithZeros) {
  EXPECT_EQ(qint32().value, 0);
  EXPECT_EQ(qint8().value, 0);
  EXPECT_EQ(quint8().value, 0);
}

}  // namespace
}  // namespace gradflow
