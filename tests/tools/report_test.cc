// Tests of the report page of a run, with given tensors and times.
#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gradflow/graph/import.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/runtime/session/session.h"
#include "gradflow/testing/status_matchers.h"
#include "gradflow/testing/tensors.h"
#include "tools/view/analyzed_graph.h"
#include "tools/view/report_nodes.h"
#include "tools/view/run_report.h"

namespace gradflow::tools {
namespace {

using ::gradflow::testing::AsTensor;
using ::gradflow::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

AnalyzedGraph AnalyzedOf(const std::string& text) {
  absl::StatusOr<GraphDef> def = ParseGraphDefText(text);
  EXPECT_TRUE(def.ok()) << def.status();
  return AnalyzeGraph(def.ok() ? *std::move(def) : GraphDef(), GraphLimits());
}

std::string JsonOf(const Tensor& tensor) { return ReportTensor("x", tensor).json; }

TEST(ReportTensor, HasStatisticsAndAPicture) {
  EXPECT_EQ(ReportTensor("name", Tensor(1.0f)).name, "name");
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  std::string no_bins = "0";
  for (int i = 0; i < 15; ++i) no_bins += ",0";
  EXPECT_EQ(
      JsonOf(AsTensor<float>({1, nan, 4, inf, -inf, inf}, {2, 3})),
      R"({"t":"float","s":[2,3],"count":6,"nan":1,"pinf":2,"ninf":1,"min":1.0,"max":4.0,)"
      R"("mean":2.5,"sd":1.5,"hist":[1,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,)"
      R"(0,0,0,1],"first":"[1 nan 4][inf -inf inf]","p":[2,3,1,0,-1,255,-1,-1,-1]})");
  EXPECT_EQ(JsonOf(AsTensor<tstring>({"a", "b\""})),
            R"({"t":"string","s":[2],"count":2,"nan":0,"pinf":0,"ninf":0,"min":null,"max":null,)"
            R"("mean":null,"sd":null,"hist":[],"first":"a b\\\""})");
  EXPECT_EQ(JsonOf(AsTensor<float>({nan})),
            R"({"t":"float","s":[1],"count":1,"nan":1,"pinf":0,"ninf":0,"min":null,"max":null,)"
            R"("mean":null,"sd":null,"hist":[],"first":"nan","p":[1,1,1,-1]})");
  // A vector has a curve instead of a picture.
  EXPECT_THAT(JsonOf(AsTensor<float>({1, inf, 3}, {1, 3})),
              EndsWith(R"("first":"[1 inf 3]","c":[1.0,null,3.0]})"));
  // Numbers have six significant digits.
  EXPECT_THAT(JsonOf(Tensor(0.1234567f)), HasSubstr(R"("min":0.123457,"max":0.123457,)"));
  EXPECT_THAT(JsonOf(Tensor(-1234567.0)), HasSubstr(R"("min":-1234570.0,)"));
}

TEST(ReportTensor, ListsTheFirst24ValuesAndTheFirst16Sizes) {
  std::vector<int32_t> numbers(25);
  std::iota(numbers.begin(), numbers.end(), 1);
  const std::string first = absl::StrJoin(numbers.begin(), numbers.begin() + 24, " ");
  EXPECT_THAT(JsonOf(AsTensor<int32_t>(numbers)),
              HasSubstr(absl::StrCat("\"first\":\"", first, "...\"")));
  numbers.pop_back();
  EXPECT_THAT(JsonOf(AsTensor<int32_t>(numbers)),
              HasSubstr(absl::StrCat("\"first\":\"", first, "\"")));
  const auto sizes = [](int dims) {
    return JsonOf(Tensor(DT_INT8, TensorShape(DimVector(dims, 1))));
  };
  const std::string all = "\"s\":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1],";
  EXPECT_THAT(sizes(16), HasSubstr(all));
  EXPECT_THAT(sizes(17), HasSubstr(all));
}

constexpr char kChain[] = R"(
  node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
  node { name: "p" op: "Unpack" input: "x" attr { key: "num" value { i: 2 } }
         attr { key: "T" value { type: DT_FLOAT } } }
  node { name: "y" op: "Neg" input: "p:1" input: "^n" attr { key: "T" value { type: DT_FLOAT } } }
  node { name: "n" op: "NoOp" input: "^m" }
  node { name: "m" op: "Neg" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
  node { name: "h" op: "VarHandleOp" attr { key: "dtype" value { type: DT_FLOAT } }
         attr { key: "shape" value { shape { } } } }
  node { name: "r" op: "ReadVariableOp" input: "h"
         attr { key: "dtype" value { type: DT_FLOAT } } }
  node { name: "v" op: "Variable" attr { key: "dtype" value { type: DT_FLOAT } }
         attr { key: "shape" value { shape { } } } }
  node { name: "w" op: "Identity" input: "v" attr { key: "T" value { type: DT_FLOAT } } })";

TEST(ReportedOutputs, AreTheOutputsThatTheRunComputes) {
  const AnalyzedGraph graph = AnalyzedOf(kChain);
  ASSERT_THAT(graph.problems, IsEmpty());
  using Names = std::vector<std::string>;
  const auto reported = [&](const std::string& which, const Names& fetches, const Names& targets,
                            const Names& feeds) {
    return *ReportedOutputs(graph, which, fetches, targets, feeds);
  };
  EXPECT_THAT(reported("outputs", {"y"}, {}, {}), IsEmpty());
  EXPECT_THAT(reported("all", {}, {}, {}), IsEmpty());
  EXPECT_THAT(reported("all", {"y"}, {}, {}), ElementsAre("x", "p", "p:1", "m"));
  EXPECT_THAT(reported("all", {}, {"y"}, {}), ElementsAre("x", "p", "p:1", "y", "m"));
  EXPECT_THAT(reported("all", {"y:0", "p:1"}, {}, {"x:0"}), ElementsAre("p", "m"));
  // A fed tensor does not need its producer, unless another output of the producer is read.
  EXPECT_THAT(reported("all", {"y"}, {}, {"p:1"}), ElementsAre("x", "m"));
  EXPECT_THAT(reported("all", {"y", "p"}, {}, {"p:1"}), ElementsAre("x", "m"));
  EXPECT_THAT(reported("all", {"m"}, {"p"}, {"x"}), ElementsAre("p", "p:1"));
  EXPECT_THAT(reported("all", {"x"}, {}, {"x"}), IsEmpty());
  // Handles and references cannot be fetched.
  EXPECT_THAT(reported("all", {}, {"r", "w"}, {}), ElementsAre("r", "w"));
  EXPECT_THAT(reported("^[pm]$", {"y"}, {}, {}), ElementsAre("p", "p:1", "m"));
  EXPECT_THAT(reported("none", {"y"}, {}, {}), IsEmpty());
  // The names are not in the graph.
  EXPECT_THAT(reported("all", {"none", "?"}, {"none"}, {"none", "?"}), IsEmpty());
  EXPECT_THAT(ReportedOutputs(graph, "(", {}, {}, {}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--report-tensors '(' is not a regular expression: ")));
}

TEST(ReportedOutputs, AreAtMostTenThousand) {
  for (const int count : {9'999, 10'000, 10'001}) {
    const AnalyzedGraph graph = AnalyzedOf(absl::StrCat(
        "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } } ",
        "node { name: 'p' op: 'Unpack' input: 'x' attr { key: 'num' value { i: ", count,
        " } } attr { key: 'T' value { type: DT_FLOAT } } }"));
    EXPECT_EQ(ReportedOutputs(graph, "all", {}, {"p"}, {"x"})->size(), std::min(count, 10'000));
  }
}

TEST(ReportNodes, ReportExistingOutputs) {
  const AnalyzedGraph graph =
      AnalyzedOf(absl::StrCat(kChain, "node { name: 'gradflow_report_1' op: 'NoOp' }"));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session,
                                Session::Make(SessionOptions()));
  GRADFLOW_ASSERT_OK(session->Create(graph.def));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(
      const ReportNodes nodes,
      ReportNodes::Add(graph, {"m", "none", "^m", "?", "m:1", "p:1", "p:2"}, session.get()));
  EXPECT_THAT(nodes.fetches(), ElementsAre("gradflow_report_0", "gradflow_report_2"));
  std::vector<Tensor> outputs;
  GRADFLOW_ASSERT_OK(session->Run({{"x", AsTensor<float>({3, 5})}}, nodes.fetches(), {}, &outputs));
  const std::vector<TensorReport> reports = nodes.Reports(outputs);
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_EQ(reports[0].name, "m");
  EXPECT_EQ(reports[0].json, JsonOf(AsTensor<float>({-3, -5})));
  EXPECT_EQ(reports[1].name, "p:1");
  EXPECT_EQ(reports[1].json, JsonOf(Tensor(5.0f)));
  EXPECT_TRUE(ReportNodes::IsReportNode("gradflow_report_7"));
  EXPECT_FALSE(ReportNodes::IsReportNode("report"));
}

TEST(RunJson, HasTheTimesFromTheFirstNode) {
  const AnalyzedGraph graph = AnalyzedOf(
      "node { name: 'a' op: 'NoOp' } node { name: 'b' op: 'NoOp' } "
      "node { name: 'gradflow_report_1' op: 'NoOp' }");
  StepStats stats;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(R"(
    dev_stats {
      thread_names { key: 7 value: "main\"" }
      node_stats { node_name: "gradflow_report_0" thread_id: 5
                   all_start_nanos: 10 all_end_rel_nanos: 1000 }
      node_stats { node_name: "b" thread_id: 7 all_start_nanos: 1100 all_end_rel_nanos: 50
                   memory { total_bytes: 64 } memory { total_bytes: 8 }
                   output { tensor_description { allocation_description { requested_bytes: 3 } } }
                   output { tensor_description { allocation_description { requested_bytes: 4 } } } }
      node_stats { node_name: "other" thread_id: 9 all_start_nanos: 1000 all_end_rel_nanos: 500 } }
    dev_stats {
      node_stats { node_name: "a" thread_id: 7 all_start_nanos: 1200 all_end_rel_nanos: 10 }
      node_stats { node_name: "gradflow_report_1" thread_id: 9 all_start_nanos: 1300 }
      node_stats { node_name: "one more" thread_id: 9 all_start_nanos: 1499 } })",
                                                            &stats));
  EXPECT_EQ(
      RunJson(graph, stats,
              {{"b", R"({"x":1})"}, {"^a", ""}, {"none", ""}, {"?", ""}, {"a:3", R"({"y":2})"}}),
      "{\"total\":500,\"threads\":[\"main\\\"\",\"9\"],\"events\":["
      "1,100,150,0,72,7,-1,0,500,1,0,0,0,200,210,0,0,0,2,300,300,1,0,0,-1,499,499,1,0,0],"
      "\"labels\":[\"other\",\"one more\"],"
      "\"outputs\":[{\"n\":1,\"o\":0,\"x\":1},\n{\"n\":0,\"o\":3,\"y\":2}]}");
  EXPECT_EQ(RunJson(graph, StepStats(), {}),
            R"({"total":0,"threads":[],"events":[],"labels":[],"outputs":[]})");
}

TEST(RunJson, KeepsHostileTextAsText) {
  StepStats stats;
  DeviceStepStats* const device = stats.add_dev_stats();
  (*device->mutable_thread_names())[1] = "\"\xff\n";
  NodeExecStats* const node = device->add_node_stats();
  node->set_thread_id(1);
  node->set_node_name("</script>\x01\"\\\x80");
  EXPECT_EQ(RunJson(AnalyzedOf(""), stats, {}),
            "{\"total\":0,\"threads\":[\"\\\"\ufffd\\n\"],\"events\":[-1,0,0,0,0,0],"
            "\"labels\":[\"</script>\\u0001\\\"\\\\\ufffd\"],\"outputs\":[]}");
  EXPECT_THAT(JsonOf(AsTensor<tstring>({"</script>\x01\"\xff"})),
              HasSubstr(R"("first":"</script>\\001\\\"\\377")"));
}

}  // namespace
}  // namespace gradflow::tools
