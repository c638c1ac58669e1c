// Tests of the command line as a process: exit status, standard output and error, and files.
#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gradflow/core/op_def_util.h"
#include "gradflow/graph/export.h"
#include "gradflow/graph/import.h"
#include "gradflow/io/npy.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/proto/op_def.pb.h"
#include "gradflow/testing/status_matchers.h"
#include "tests/tools/command_line_fixture.h"

namespace gradflow {
namespace {

using ::gradflow::testing::FileExists;
using ::gradflow::testing::IsOk;
using ::gradflow::testing::ProcessResult;
using ::gradflow::testing::ReadFile;
using ::gradflow::testing::WriteFile;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

Tensor Floats(const std::vector<float>& values) {
  Tensor tensor(DT_FLOAT, {static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), tensor.flat<float>().begin());
  return tensor;
}

// Writes a graph with y = x * 2 and the gradient ops of fake quantization, and its feeds.
class GradflowTest : public testing::CommandLineFixture {
 protected:
  void SetUp() override {
    Scope root = Scope::NewRootScope();
    Output x = ops::Placeholder(root.WithOpName("x"), DT_FLOAT, ops::Placeholder::Shape({-1}));
    Output factor = ops::Const(root.WithOpName("factor"), 2.0f);
    ops::Mul(root.WithOpName("y"), x, factor);
    ops::FakeQuantWithMinMaxVarsGradient(root.WithOpName("grad"), x, x, -1.0f, 1.0f);
    GraphDef graph;
    ASSERT_THAT(root.ToGraphDef(&graph), IsOk());
    ASSERT_THAT(WriteGraphDef(File("graph.pb"), graph), IsOk());
    ASSERT_THAT(WriteNpy(File("x.npy"), Floats({1, -3, 0.5})), IsOk());
  }

  std::string Feed() const { return "x=" + File("x.npy"); }
};

TEST_F(GradflowTest, RunPrintsFetchedTensors) {
  const ProcessResult result =
      Gradflow({"run", File("graph.pb"), "--feed", Feed(), "--fetch", "y", "--fetch", "grad:2"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out,
            "y: Tensor<type: float shape: [3] values: 2 -6 1>\n"
            "grad:2: Tensor<type: float shape: [] values: 0>\n");
  EXPECT_THAT(result.err, IsEmpty());
}

TEST_F(GradflowTest, RunFetchesUnusedOutputsIfNoneAreNamed) {
  const ProcessResult result = Gradflow({"run", File("graph.pb"), "--feed", Feed()});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("\ngrad: "), HasSubstr("\ngrad:1: "),
                                HasSubstr("\ngrad:2: "), StartsWith("y: ")));
  EXPECT_THAT(result.out, Not(HasSubstr("factor")));
}

TEST_F(GradflowTest, RunWritesFilesOnAnyNumberOfThreads) {
  for (const std::string threads : {"0", "1", "2", "8"}) {
    const std::string out = File("y" + threads + ".npy");
    const ProcessResult result = Gradflow(
        {"run", File("graph.pb"), "--feed", Feed(), "--fetch", "y=" + out, "--threads", threads});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, IsEmpty());
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor y, ReadNpy(out));
    EXPECT_EQ(y.DebugString(), "Tensor<type: float shape: [3] values: 2 -6 1>");
  }
}

// All output files are open at the same time, which exceeds the default limit of shells.
TEST_F(GradflowTest, RunWritesMoreFilesThanMayBeOpen) {
  std::string command = "ulimit -Sn 64 && exec \"$@\"";
  std::vector<std::string> arguments = {
      "/bin/bash",      "-c",     command, "bash", GRADFLOW_PROGRAM_gradflow_cli, "run",
      File("graph.pb"), "--feed", Feed()};
  for (int i = 0; i < 100; ++i) {
    arguments.push_back(absl::StrCat("--fetch=y=", File(absl::StrCat("y", i, ".npy"))));
  }
  const ProcessResult result = testing::RunProcess(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(FileExists(File("y99.npy")));
}

TEST_F(GradflowTest, RunFeedsAnyTensorAndRunsTargets) {
  const ProcessResult result =
      Gradflow({"run", File("graph.pb"), "--feed", Feed(), "--feed", "factor:0=" + File("x.npy"),
                "--fetch", "y", "--target", "grad"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "y: Tensor<type: float shape: [3] values: 1 9 0.25>\n");
}

TEST_F(GradflowTest, RunReportsFailures) {
  const std::string graph = File("graph.pb");
  WriteFile(File("broken.npy"), "not an array");
  WriteFile(File("broken.pb"), "\x0a\xff");
  ASSERT_THAT(WriteNpy(File("int.npy"), Tensor(int32_t{1})), IsOk());
  const std::string broken = File("broken.npy");

  ExpectFailure(Gradflow({"run", File("missing.pb")}), "NOT_FOUND", HasSubstr("missing.pb"));
  ExpectFailure(Gradflow({"run", File("broken.pb")}), "INVALID_ARGUMENT", HasSubstr("broken.pb"));
  ExpectFailure(Gradflow({"run", folder()}), "INVALID_ARGUMENT", HasSubstr(folder()));
  ExpectFailure(Gradflow({"run", graph, "--fetch", "y"}), "INVALID_ARGUMENT", HasSubstr("'x'"));
  ExpectFailure(Gradflow({"run", graph, "--feed", Feed(), "--fetch", "z"}), "NOT_FOUND",
                HasSubstr("'z'"));
  ExpectFailure(Gradflow({"run", graph, "--feed", "x=" + File("none.npy"), "--fetch", "y"}),
                "NOT_FOUND", HasSubstr("none.npy"));
  ExpectFailure(Gradflow({"run", graph, "--feed", "x=" + broken, "--fetch", "y"}),
                "INVALID_ARGUMENT", HasSubstr("broken.npy"));
  for (const std::string flag : {"x", "x=", "=x.npy"}) {
    ExpectFailure(Gradflow({"run", graph, "--feed", flag, "--fetch", "y"}), "INVALID_ARGUMENT",
                  HasSubstr("--feed '" + flag + "' must be NAME=FILE.npy"));
  }
  for (const std::string flag : {"y=", "=y.npy"}) {
    ExpectFailure(Gradflow({"run", graph, "--feed", Feed(), "--fetch", flag}), "INVALID_ARGUMENT",
                  HasSubstr("--fetch '" + flag + "'"));
  }
  ExpectFailure(Gradflow({"run", graph, "--feed", "x=" + File("int.npy"), "--fetch", "y"}),
                "INVALID_ARGUMENT", AllOf(HasSubstr("int32"), HasSubstr("float")));
  ExpectFailure(Gradflow({"run", graph, "--feed", Feed(), "--threads", "1000000"}),
                "INVALID_ARGUMENT", HasSubstr("1000000"));
}

TEST_F(GradflowTest, FailedRunLeavesNoFile) {
  const std::string out = File("y.npy");
  ExpectFailure(Gradflow({"run", File("graph.pb"), "--fetch", "y=" + out}), "INVALID_ARGUMENT",
                HasSubstr("'x'"));
  EXPECT_FALSE(FileExists(out));
  ExpectFailure(Gradflow({"run", File("graph.pb"), "--feed", Feed(), "--fetch",
                          "y=" + File("no_folder") + "/y.npy"}),
                "NOT_FOUND", HasSubstr("no_folder"));
  // The command keeps no files and prints no other outputs.
  ExpectFailure(Gradflow({"run", File("graph.pb"), "--feed", Feed(), "--fetch", "y=" + out,
                          "--fetch", "x=" + File("no_folder") + "/x.npy", "--fetch", "grad"}),
                "NOT_FOUND", HasSubstr("no_folder"));
  EXPECT_FALSE(FileExists(out));
}

TEST_F(GradflowTest, WrongUsageShowsTheUsage) {
  const std::vector<std::vector<std::string>> cases = {
      {},
      {"dance"},
      {"run"},
      {"run", "graph.pb", "--feeds", "x"},
      {"run", "graph.pb", "--threads", "-1"},
      {"run", "graph.pb", "--threads", "many"},
      {"run", "graph.pb", "--timeout", "-1"},
      {"bench", "graph.pb", "--repeat", "0"},
      {"ops", "--format", "xml"},
      {"convert", "only_one.pb"},
  };
  for (const std::vector<std::string>& arguments : cases) {
    const ProcessResult result = Gradflow(arguments);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_THAT(result.out, IsEmpty());
    EXPECT_THAT(result.err, HasSubstr("Usage: "));
  }
}

TEST_F(GradflowTest, HelpSucceeds) {
  for (const char* command : {"run", "bench", "inspect", "ops", "convert"}) {
    const ProcessResult result = Gradflow({command, "--help"});
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_THAT(result.out, AllOf(HasSubstr("Usage: "), HasSubstr(command)));
    EXPECT_THAT(result.err, IsEmpty());
  }
}

TEST_F(GradflowTest, BenchReportsTimesAsTextAndJson) {
  const ProcessResult json = Gradflow({"bench", File("graph.pb"), "--feed", Feed(), "--fetch", "y",
                                       "--repeat", "5", "--threads", "2", "--json"});
  EXPECT_EQ(json.exit_code, 0) << json.err;
  EXPECT_THAT(json.out,
              MatchesRegex("\\{\"median_ms\":[0-9]+\\.[0-9]{1,6},\"min_ms\":[0-9]+\\.[0-9]{1,6},"
                           "\"mean_ms\":[0-9]+\\.[0-9]{1,6},"
                           "\"runs\":5,\"threads\":2,\"peak_tensor_bytes\":[1-9][0-9]*,"
                           "\"allocations_per_run\":[1-9][0-9]*\\.0,"
                           "\"system_allocations_per_run\":[0-9]+\\.[0-9]{1,2}\\}\n"));
  EXPECT_THAT(json.err, IsEmpty());
  const ProcessResult text =
      Gradflow({"bench", File("graph.pb"), "--feed", Feed(), "--repeat", "5", "--threads", "1"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out,
              MatchesRegex("median .* over 5 runs on 1 threads; peak .* bytes of tensors, .*\n"));
}

TEST_F(GradflowTest, BenchShowsProgressOnRequest) {
  const std::vector<std::string> bench = {"bench", File("graph.pb"), "--feed", Feed()};
  EXPECT_THAT(Gradflow(bench).err, IsEmpty());
  std::vector<std::string> asked = bench;
  asked.insert(asked.end(), {"--json", "--progress"});
  const ProcessResult result = Gradflow(asked);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.err, StartsWith("0 of 100 runs, 0.0 s\n"));
  EXPECT_THAT(result.out, StartsWith("{"));
}

TEST_F(GradflowTest, RunStopsAtItsTimeout) {
  // 8,000 distinct products take longer than the timeout.
  Scope root = Scope::NewRootScope();
  Output x = ops::Placeholder(root.WithOpName("x"), DT_FLOAT);
  Output product = x;
  for (int i = 0; i < 8000; ++i) product = ops::MatMul(root, product, x);
  ops::Identity(root.WithOpName("last"), product);
  GraphDef graph;
  ASSERT_THAT(root.ToGraphDef(&graph), IsOk());
  ASSERT_THAT(WriteGraphDef(File("long.pb"), graph), IsOk());
  ASSERT_THAT(WriteNpy(File("square.npy"), Tensor(DT_FLOAT, {512, 512})), IsOk());
  ExpectFailure(Gradflow({"run", File("long.pb"), "--feed", "x=" + File("square.npy"), "--fetch",
                          "last", "--timeout", "0.05", "--trace", File("trace.json")}),
                "DEADLINE_EXCEEDED", HasSubstr(" is over"));
  EXPECT_FALSE(FileExists(File("trace.json")));
}

TEST_F(GradflowTest, InspectListsOpsInputsAndOutputs) {
  const ProcessResult result = Gradflow({"inspect", File("graph.pb")});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("1  FakeQuantWithMinMaxVarsGradient\n"), HasSubstr("3  Const\n"),
                    HasSubstr("\ninputs:\n  x  float [?]\n"), HasSubstr("\n  y  float [?]\n"),
                    HasSubstr("\n  grad:2  float []")));
}

TEST_F(GradflowTest, InspectListsThePlan) {
  const std::string types = "attr { key: 'T' value { type: DT_FLOAT } } ";
  WriteFile(File("layer.pbtxt"),
            "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } } "
            "node { name: 'mm' op: 'MatMul' input: 'x' input: 'x' " +
                types +
                "} "
                "node { name: 'relu' op: 'Relu' input: 'mm' " +
                types +
                "} "
                "node { name: 'a' op: 'Neg' input: 'x' " +
                types +
                "} "
                "node { name: 'b' op: 'Neg' input: 'x' " +
                types + "} node { name: 'y' op: 'Add' input: 'a' input: 'b' " + types + "}");
  const ProcessResult result = Gradflow({"inspect", File("layer.pbtxt"), "--plan"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("\nplan: 3 nodes of 5\neliminated: 1\n  a  (Neg) = b\n"),
                                HasSubstr("\nfolded: 0\nfused: 1\n"),
                                HasSubstr("\n  relu  (FusedMatMul) = mm, relu\n")));
  EXPECT_EQ(Gradflow({"inspect", File("layer.pbtxt"), "--fast"}).exit_code, 2);
}

// If the statistics of a normalization were fetched, it could not be fused.
TEST_F(GradflowTest, InspectPlansOnlyUsedOutputs) {
  const std::string types = "attr { key: 'T' value { type: DT_FLOAT } } ";
  std::string graph;
  for (const char* name : {"x", "filter", "scale", "offset", "mean", "variance"}) {
    absl::StrAppend(&graph, "node { name: '", name, "' op: 'Placeholder' ",
                    "attr { key: 'dtype' value { type: DT_FLOAT } } }\n");
  }
  absl::StrAppend(&graph, "node { name: 'conv' op: 'Conv2D' input: 'x' input: 'filter' ", types,
                  "attr { key: 'strides' value { list { i: 1 i: 1 i: 1 i: 1 } } } ",
                  "attr { key: 'padding' value { s: 'SAME' } } }\n",
                  "node { name: 'norm' op: 'FusedBatchNorm' input: 'conv' input: 'scale' ",
                  "input: 'offset' input: 'mean' input: 'variance' ", types,
                  "attr { key: 'is_training' value { b: false } } }\n",
                  "node { name: 'relu' op: 'Relu' input: 'norm' ", types, "}\n");
  WriteFile(File("norm.pbtxt"), graph);
  const ProcessResult result = Gradflow({"inspect", File("norm.pbtxt"), "--plan"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("\n  relu  (FusedConv2D) = conv, norm, relu\n"));
  EXPECT_THAT(result.out, HasSubstr("\n  norm:4  float"));
}

TEST_F(GradflowTest, InspectReportsMissingOps) {
  WriteFile(File("alien.pbtxt"),
            "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_HALF } } }"
            "node { name: 'a' op: 'Mull' input: 'x' } node { name: 'b' op: 'Convolve3000' }"
            "node { name: 'c' op: 'Escape\\033[31m' input: 'a:0' }");
  const ProcessResult result = Gradflow({"inspect", File("alien.pbtxt")});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("nodes: 4\n"), HasSubstr("cannot run:"),
                                HasSubstr("inputs:\n  x  half <unknown>\n"),
                                HasSubstr("outputs:\n  b  (Convolve3000)\n  c  (Escape"),
                                Not(HasSubstr("\033")), HasSubstr("did you mean 'Mul'"),
                                HasSubstr("Convolve3000")));
}

TEST_F(GradflowTest, InspectHasTheExpectedText) {
  const std::string types = "attr { key: 'T' value { type: DT_FLOAT } } ";
  const auto unpack = [&](const std::string& name, int num) {
    return absl::StrCat("node { name: '", name, "' op: 'Unpack' input: 'x' attr { key: 'num' ",
                        "value { i: ", num, " } } ", types, "}\n");
  };
  const std::string x =
      "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } }\n";
  WriteFile(File("g.pbtxt"),
            absl::StrCat(x, unpack("few", 16), unpack("many", 17),
                         "node { name: 'd' op: 'PlaceholderWithDefault' input: 'x' attr { key: "
                         "'dtype' value { type: DT_FLOAT } } attr { key: 'shape' value { shape { "
                         "unknown_rank: true } } } }\n"
                         "library { function { signature { name: 'f' } } }\n"
                         "versions { producer: 27 min_consumer: 3 }\n"));
  const auto outputs = [](const std::string& name) {
    std::string text = absl::StrCat("  ", name, "  float <unknown>\n");
    for (int i = 1; i < 16; ++i) absl::StrAppend(&text, "  ", name, ":", i, "  float <unknown>\n");
    return text;
  };
  EXPECT_EQ(Gradflow({"inspect", File("g.pbtxt")}).out,
            "nodes: 4\n       1  Placeholder\n       1  PlaceholderWithDefault\n"
            "       2  Unpack\nfunctions: 1\nversions: producer 27, min_consumer 3\n"
            "inputs:\n  x  float <unknown>\n  d  float <unknown>\noutputs:\n" +
                outputs("few") + outputs("many") + "  many  ... and 1 more\n" +
                "  d  float <unknown>\n");
  // Nodes of functions are counted, and the functions that nodes call are checked.
  WriteFile(
      File("calls.pbtxt"),
      absl::StrCat(x,
                   "node { name: 'c' op: 'PartitionedCall' input: 'x' attr { key: 'Tin' value "
                   "{ list { type: DT_FLOAT } } } attr { key: 'Tout' value { list { type: "
                   "DT_FLOAT } } } attr { key: 'f' value { func { name: 'f' } } } }\n"
                   "library { function { signature { name: 'f' input_arg { name: 'a' type: "
                   "DT_FLOAT } output_arg { name: 'r' type: DT_FLOAT } } "
                   "node_def { name: 'n' op: 'g' input: 'a' } ret { key: 'r' value: "
                   "'n:r:0' } } function { signature { name: 'g' input_arg { name: 'a' type: "
                   "DT_FLOAT } output_arg { name: 'r' type: DT_FLOAT } } "
                   "node_def { name: 'm' op: 'Unheard' input: 'a' } ret { key: 'r' value: "
                   "'a' } } }"));
  EXPECT_THAT(Gradflow({"inspect", File("calls.pbtxt")}).out,
              AllOf(HasSubstr("functions: 2\nnodes of functions: 2\n       1  Unheard\n       1  "
                              "g\n"),
                    HasSubstr("cannot run:\n  node 'c' (PartitionedCall): function 'f': node 'n' "
                              "(g): function 'g': "),
                    HasSubstr("Unheard")));
  WriteFile(File("bad.pbtxt"),
            x + "node { name: 'p' op: 'PlaceholderWithDefault' input: 'x:0' attr { key: 'shape' "
                "value { shape { dim { size: 3 } } } } }\nnode { name: 'o' op: 'Odd' input: '^p' "
                "}\n");
  EXPECT_THAT(Gradflow({"inspect", File("bad.pbtxt")}).out,
              StartsWith("nodes: 3\n       1  Odd\n       1  Placeholder\n"
                         "       1  PlaceholderWithDefault\n"
                         "inputs:\n  x  float <unknown>\n  p  INVALID [3]\n"
                         "outputs:\n  o  (Odd)\ncannot run:\n  "));
  // At most 1000 changes of a plan are listed.
  for (const int count : {1000, 1001}) {
    std::string graph = x;
    for (int i = 0; i <= count; ++i) {
      absl::StrAppend(&graph, "node { name: 'n", i, "' op: 'Neg' input: 'x' ", types, "}\n");
    }
    WriteFile(File("plan.pbtxt"), graph);
    const std::string plan = Gradflow({"inspect", File("plan.pbtxt"), "--plan"}).out;
    const size_t begin = plan.find("eliminated: ");
    ASSERT_NE(begin, std::string::npos);
    const std::string changes = plan.substr(begin, plan.find("folded: ") - begin);
    EXPECT_THAT(changes, StartsWith(absl::StrCat("eliminated: ", count, "\n")));
    EXPECT_EQ(std::count(changes.begin(), changes.end(), '\n'), count + 1);
    EXPECT_EQ(changes.find("  ... and 1 more\n") != std::string::npos, count == 1001);
  }
}

// The error contains two shapes with many long sizes.
TEST_F(GradflowTest, InspectCutsLongLinesOfErrors) {
  std::string graph;
  for (const char* name : {"x", "z"}) {
    absl::StrAppend(&graph, "node { name: '", name, "' op: 'Placeholder' ",
                    "attr { key: 'dtype' value { type: DT_FLOAT } } ",
                    "attr { key: 'shape' value { shape { dim { size: ", *name == 'x' ? 2 : 3, " }");
    for (int i = 0; i < 126; ++i) {
      absl::StrAppend(&graph, "dim { size: 1000000000000000000 } dim { size: 0 }");
    }
    absl::StrAppend(&graph, "} } } }\n");
  }
  absl::StrAppend(&graph, "node { name: 'y' op: 'AddV2' input: ['x', 'z'] ",
                  "attr { key: 'T' value { type: DT_FLOAT } } }");
  WriteFile(File("long.pbtxt"), graph);
  const ProcessResult result = Gradflow({"inspect", File("long.pbtxt")});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const size_t begin = result.out.find("cannot run:\n");
  ASSERT_NE(begin, std::string::npos);
  size_t longest = 0;
  for (const absl::string_view line : absl::StrSplit(result.out.substr(begin), '\n')) {
    longest = std::max(longest, line.size());
  }
  // The longest line has the indent, 4096 bytes and "...".
  EXPECT_EQ(longest, 2 + 4096 + 3);
}

TEST_F(GradflowTest, ConvertsBothWaysWithoutLoss) {
  const std::string binary = File("graph.pb");
  EXPECT_EQ(Gradflow({"convert", binary, File("graph.pbtxt")}).exit_code, 0);
  EXPECT_THAT(ReadFile(File("graph.pbtxt")), HasSubstr("op: \"FakeQuantWithMinMaxVarsGradient\""));
  EXPECT_EQ(Gradflow({"convert", File("graph.pbtxt"), File("back.pb")}).exit_code, 0);
  EXPECT_EQ(ReadFile(File("back.pb")), ReadFile(binary));
  // The text form also runs.
  const ProcessResult run =
      Gradflow({"run", File("graph.pbtxt"), "--feed", Feed(), "--fetch", "y"});
  EXPECT_THAT(run.out, HasSubstr("2 -6 1"));

  ExpectFailure(Gradflow({"convert", binary, File("graph.txt.gz")}), "INVALID_ARGUMENT",
                HasSubstr("graph.txt.gz"));
  ExpectFailure(Gradflow({"convert", File("none.pb"), File("out.pb")}), "NOT_FOUND",
                HasSubstr("none.pb"));
  EXPECT_FALSE(FileExists(File("out.pb")));
}

TEST_F(GradflowTest, OpsShowsDocumentationAndSuggestsNames) {
  const ProcessResult one = Gradflow({"ops", "FusedBatchNormGradV3"});
  EXPECT_EQ(one.exit_code, 0) << one.err;
  EXPECT_THAT(one.out, AllOf(StartsWith("FusedBatchNormGradV3(y_backprop: T, "),
                             HasSubstr("attr epsilon: "), HasSubstr("output x_backprop: ")));
  EXPECT_EQ(Gradflow({"ops", "Abs"}).out,
            R"(Abs(x: T) -> (y: T) { T: {bfloat16, half, float, double, int8, int16, int32, int64} }
    Returns the absolute value of x element-wise.
    The smallest integer, whose absolute value is not in its type, is unchanged.
    input x: A tensor of real numbers.
    attr T: The type of both.
    output y: The absolute values, of the shape of `x`.
    gradient: yes
)");
  EXPECT_THAT(Gradflow({"ops", "Floor"}).out, HasSubstr("    gradient: none; backpropagation "));
  EXPECT_THAT(Gradflow({"ops"}).out,
              AllOf(StartsWith("Abort("), HasSubstr("    gradient: yes\n\nA")));
  ExpectFailure(Gradflow({"ops", "FusedBatchNormGrad3"}), "NOT_FOUND",
                HasSubstr("FusedBatchNormGradV3"));
}

TEST_F(GradflowTest, OpsListsTheOpsOfAGraphAndItsFunctions) {
  WriteFile(File("graph.pbtxt"), R"(
    node { name: "b" op: "Unregistered" }
    node { name: "a" op: "NoOp" }
    node { name: "c" op: "NoOp" }
    node { name: "d" op: "F" }
    library {
      function { signature { name: "F" } node_def { name: "e" op: "Abs" } }
    })");
  const ProcessResult result = Gradflow({"ops", "--of", File("graph.pbtxt")});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "Abs\nNoOp\nUnregistered\n");
  ExpectFailure(Gradflow({"ops", "--of", File("none.pb")}), "NOT_FOUND", HasSubstr("none.pb"));
  EXPECT_EQ(Gradflow({"ops", "Abs", "--of", File("graph.pbtxt")}).exit_code, 2);
}

// The printed definitions match TensorFlow's signatures.
TEST_F(GradflowTest, OpsAgreeWithTensorFlowsSignatures) {
  const ProcessResult result = Gradflow({"ops", "--format", "pbtxt"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  OpList list;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(result.out, &list));
  EXPECT_GE(list.op_size(), 70);
  const std::vector<std::string> rows =
      absl::StrSplit(ReadFile(GRADFLOW_TEST_DATA_DIR "/op_signatures.txt"), '\n');
  for (const OpDef& op : list.op()) {
    EXPECT_THAT(rows, ::testing::Contains(OpDefSignature(op))) << op.name();
  }
}

}  // namespace
}  // namespace gradflow
