// Tests of `gradflow quantize` as a process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/attributes.h"
#include "gradflow/graph/export.h"
#include "gradflow/graph/import.h"
#include "gradflow/io/npy.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/testing/status_matchers.h"
#include "gradflow/testing/tensors.h"
#include "tests/tools/command_line_fixture.h"

namespace gradflow {
namespace {

using ::gradflow::testing::FileExists;
using ::gradflow::testing::ProcessResult;
using ::gradflow::testing::RandomTensor;
using ::gradflow::testing::ReadFile;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr float kOutlier = 8;

// Writes a network with two convolutions, a pool, a mean and a matrix product, and two inputs. Few
// numbers of the inputs are far from the others.
class QuantizeCommandTest : public testing::CommandLineFixture {
 protected:
  void SetUp() override {
    const Scope s = Scope::NewRootScope();
    const auto random = [&](const TensorShape& shape, uint32_t seed) {
      return ops::Const(s, RandomTensor(DT_FLOAT, shape, -1, 1, seed));
    };
    const Output x = ops::Placeholder(s.WithOpName("x"), DT_FLOAT);
    const Output a = ops::Relu(
        s.WithOpName("a"),
        ops::BiasAdd(
            s, ops::Conv2D(s.WithOpName("first"), x, random({3, 3, 3, 8}, 1), {1, 1, 1, 1}, "SAME"),
            random({8}, 2)));
    const Output pool = ops::AvgPool(s.WithOpName("pool"), a, {1, 2, 2, 1}, {1, 2, 2, 1}, "VALID");
    const Output b =
        ops::Relu(s, ops::DepthwiseConv2dNative(s.WithOpName("second"), pool,
                                                random({3, 3, 8, 1}, 3), {1, 1, 1, 1}, "SAME"));
    const Output mean = ops::Mean(s.WithOpName("mean"), b, {1, 2});
    ops::MatMul(s.WithOpName("logits"), mean, random({8, 5}, 5));
    GraphDef graph;
    GRADFLOW_ASSERT_OK(s.ToGraphDef(&graph));
    GRADFLOW_ASSERT_OK(WriteGraphDef(File("graph.pb"), graph));
    for (const uint32_t seed : {1u, 2u}) {
      Tensor data = RandomTensor(DT_FLOAT, {2, 8, 8, 3}, 0, 1, seed);
      data.flat<float>()(5) = kOutlier;
      GRADFLOW_ASSERT_OK(WriteNpy(File(absl::StrCat("x", seed, ".npy")), data));
    }
  }

  ProcessResult Quantize(std::vector<std::string> options,
                         const std::string& graph = "graph.pb") const {
    std::vector<std::string> arguments = {
        "quantize", File(graph),           "--data", "x=" + File("x1.npy"),
        "--data",   "x=" + File("x2.npy"), "-o",     File("out.pb")};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return Gradflow(arguments);
  }

  absl::StatusOr<Tensor> LogitsOf(const std::string& graph,
                                  const std::vector<std::string>& options = {}) const {
    std::vector<std::string> arguments = {"run",     File(graph),
                                          "--feed",  "x=" + File("x1.npy"),
                                          "--fetch", "logits=" + File("logits.npy")};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const ProcessResult result = Gradflow(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return ReadNpy(File("logits.npy"));
  }

  // Returns the end of the range of a tensor in out.pb.
  float HighestOf(const std::string& tensor) const {
    const auto graph = ReadGraphDef(File("out.pb"));
    EXPECT_TRUE(graph.ok()) << graph.status();
    for (const NodeDef& node : graph->node()) {
      Tensor value;
      if (node.name() != tensor + "/quantized/max") continue;
      EXPECT_TRUE(GetNodeAttr(node, "value", &value).ok());
      return value.scalar<float>()();
    }
    ADD_FAILURE() << "no range of " << tensor;
    return 0;
  }
};

double LargestDifference(const Tensor& a, const Tensor& b) {
  double largest = 0;
  for (int64_t i = 0; i < a.NumElements(); ++i) {
    largest = std::max<double>(largest, std::abs(a.flat<float>()(i) - b.flat<float>()(i)));
  }
  return largest;
}

TEST_F(QuantizeCommandTest, TheQuantizedGraphRunsInIntegers) {
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor expected, LogitsOf("graph.pb"));
  for (const char* const method : {"min-max", "moving-average", "percentile", "least-squares"}) {
    SCOPED_TRACE(method);
    const ProcessResult result = Quantize({"--method", method});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.out,
              "quantized 3 convolutions and matrix products, and 5 tensors between them\n");
    for (const char* const int8 : {"--int8", "--int8=tflite"}) {
      GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor found, LogitsOf("out.pb", {int8}));
      EXPECT_LT(LargestDifference(found, expected), 0.1) << int8;
      const ProcessResult plan = Gradflow({"inspect", File("out.pb"), "--plan", int8});
      EXPECT_THAT(plan.out,
                  AllOf(HasSubstr("in float: 0\n"), HasSubstr("(IntegerDepthwiseConv2dNative)"),
                        HasSubstr("(IntegerAvgPool)"), HasSubstr("(IntegerMean)"),
                        HasSubstr("(IntegerMatMul)")))
          << int8;
    }
  }
}

TEST_F(QuantizeCommandTest, MethodsFindTheirRanges) {
  ASSERT_EQ(Quantize({}).exit_code, 0);
  EXPECT_EQ(HighestOf("x"), kOutlier);
  ASSERT_EQ(Quantize({"--method", "percentile", "--percentile", "99"}).exit_code, 0);
  EXPECT_LE(HighestOf("x"), 1);
  // The error of a single number outside of the range may be larger than the errors of coarser
  // steps.
  ASSERT_EQ(Quantize({"--method", "least-squares"}).exit_code, 0);
  const float found = HighestOf("x");
  EXPECT_GT(found, 1);
  EXPECT_LE(found, kOutlier);
}

// Small weights are rounded to 0, so that channels lose some of the inputs, which are positive.
TEST_F(QuantizeCommandTest, BiasCorrectionKeepsMeans) {
  const Scope s = Scope::NewRootScope();
  const Output x = ops::Placeholder(s.WithOpName("x"), DT_FLOAT);
  Tensor weights(DT_FLOAT, {3, 5});
  for (int64_t i = 0; i < weights.NumElements(); ++i) {
    weights.flat<float>()(i) = i < 5 ? 1 : 0.003f * static_cast<float>(i % 5 - 2) / 2;
  }
  const Output y = ops::MatMul(s, ops::Reshape(s, x, {-1, 3}), ops::Const(s, weights));
  ops::Mean(s.WithOpName("logits"), ops::Identity(s.WithOpName("y"), y), {0});
  GraphDef graph;
  GRADFLOW_ASSERT_OK(s.ToGraphDef(&graph));
  GRADFLOW_ASSERT_OK(WriteGraphDef(File("graph.pb"), graph));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor expected, LogitsOf("graph.pb"));
  // Calibrates with the data that LogitsOf() feeds, because the correction is exact only for these
  // means.
  std::vector<std::string> arguments = {
      "quantize", File("graph.pb"), "--data", "x=" + File("x1.npy"), "-o", File("out.pb")};
  ASSERT_EQ(Gradflow(arguments).exit_code, 0);
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor plain, LogitsOf("out.pb"));
  arguments.emplace_back("--bias-correction");
  ASSERT_EQ(Gradflow(arguments).exit_code, 0);
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor corrected, LogitsOf("out.pb"));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor in_integers, LogitsOf("out.pb", {"--int8"}));
  EXPECT_GT(LargestDifference(plain, expected), 1e-3);
  EXPECT_LT(LargestDifference(corrected, expected), 2e-5);
  EXPECT_LT(LargestDifference(in_integers, expected), 2e-5);
}

TEST_F(QuantizeCommandTest, WritesAReport) {
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const GraphDef graph, ReadGraphDef(File("graph.pb")));
  GRADFLOW_ASSERT_OK(WriteGraphDef(File("a&b.pb"), graph));
  const ProcessResult result = Quantize({"--method", "percentile", "--percentile", "99", "--report",
                                         File("report.html"), "--bias-correction"},
                                        "a&b.pb");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::string page = ReadFile(File("report.html"));
  EXPECT_THAT(page, AllOf(HasSubstr("<h2>Where accuracy is lost</h2>"),
                          HasSubstr("3 convolutions and matrix products and 5 tensors with ranges "
                                    "by the method percentile, from 2 runs."),
                          HasSubstr("<td class=\"name\">first</td><td>Conv2D</td>"),
                          HasSubstr("<td class=\"name\">second</td><td>DepthwiseConv2dNative</td>"),
                          HasSubstr("<td class=\"name\">pool</td>"), HasSubstr(" dB")));
  EXPECT_THAT(page, HasSubstr("a&amp;b.pb</h1>"));
  EXPECT_THAT(page, Not(HasSubstr("a&b")));
  // The outliers of x are outside of its range.
  EXPECT_THAT(page, HasSubstr("0 … 8</td>"));
  EXPECT_THAT(page, Not(HasSubstr("nan")));
  EXPECT_THAT(page, Not(HasSubstr("inf")));
  // Each table is complete.
  const auto count = [&](const std::string& text) {
    int found = 0;
    for (size_t at = page.find(text); at != std::string::npos; at = page.find(text, at + 1)) {
      ++found;
    }
    return found;
  };
  EXPECT_EQ(count("<svg"), 5);
  EXPECT_EQ(count("<tr>"), 3 + 5 + 2);
  EXPECT_EQ(count("</tr>"), 3 + 5 + 2);
}

TEST_F(QuantizeCommandTest, ReportsErrors) {
  ExpectFailure(Gradflow({"quantize", File("graph.pb"), "--data", "x", "-o", File("out.pb")}),
                "INVALID_ARGUMENT", HasSubstr("--data 'x' must be NAME=FILE.npy"));
  ExpectFailure(Gradflow({"quantize", File("graph.pb"), "--data", "x=" + File("none.npy"), "-o",
                          File("out.pb")}),
                "NOT_FOUND", HasSubstr("none.npy"));
  ExpectFailure(Gradflow({"quantize", File("graph.pb"), "--data", "y=" + File("x1.npy"), "-o",
                          File("out.pb")}),
                "NOT_FOUND", HasSubstr("--data 'y="));
  GRADFLOW_ASSERT_OK(WriteNpy(File("large.npy"), RandomTensor(DT_FLOAT, {64, 8, 8, 3}, 0, 1)));
  ExpectFailure(Gradflow({"quantize", File("graph.pb"), "--data", "x=" + File("large.npy"), "-o",
                          File("out.pb"), "--memory-limit", "100000"}),
                "RESOURCE_EXHAUSTED", HasSubstr("limit"));
  // A report that cannot be written leaves no graph.
  ExpectFailure(Quantize({"--report", File("none/report.html")}), "NOT_FOUND",
                HasSubstr("none/report.html"));
  EXPECT_FALSE(FileExists(File("out.pb")));
  EXPECT_EQ(Quantize({"--method", "guess"}).exit_code, 2);
  EXPECT_EQ(Quantize({"--percentile", "101"}).exit_code, 2);
}

}  // namespace
}  // namespace gradflow
