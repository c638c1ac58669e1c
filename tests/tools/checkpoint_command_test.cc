// Tests of `gradflow checkpoint`, `gradflow freeze`, and --checkpoint of run and bench, as
// processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/graph/export.h"
#include "gradflow/graph/import.h"
#include "gradflow/graph/node_builder.h"
#include "gradflow/io/checkpoint.h"
#include "gradflow/io/npy.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/testing/status_matchers.h"
#include "gradflow/testing/tensor_matchers.h"
#include "gradflow/testing/tensors.h"
#include "gradflow/training/variables.h"
#include "tests/testing/checkpoint_edits.h"
#include "tests/tools/command_line_fixture.h"

namespace gradflow {
namespace {

using ::gradflow::testing::AsScalar;
using ::gradflow::testing::AsTensor;
using ::gradflow::testing::FileExists;
using ::gradflow::testing::ProcessResult;
using ::gradflow::testing::TensorEq;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Writes a graph y = x * w + v + table[1] + old with variables of all kinds, and a node that
// changes w.
class CheckpointCommandTest : public testing::CommandLineFixture {
 protected:
  void SetUp() override {
    const Scope root = Scope::NewRootScope();
    const Output x = ops::Placeholder(root.WithOpName("x"), DT_FLOAT);
    const Output w = training::NewVariable(root.WithOpName("handle"), "layer/w", DT_FLOAT, {2});
    const Output v =
        training::NewVariable(root.WithOpName("v"), "", DT_FLOAT, {2}, /*is_resource=*/false);
    const Output table = training::NewVariable(root.WithOpName("table"), "t", DT_FLOAT, {3, 2});
    const Output row = ops::ResourceGather(root.WithOpName("row"), table, 1, DT_FLOAT);
    const Output product =
        ops::Mul(root, x, ops::ReadVariableOp(root.WithOpName("w"), w, DT_FLOAT));
    // The old op uses the shape of a scalar for an unknown shape.
    const Output old = OpBuilder(root.WithOpName("old"), "Variable")
                           .Attr("shape", PartialTensorShape(TensorShape()))
                           .Attr("dtype", DT_FLOAT)
                           .Finish()
                           .output(0);
    const Output sum = ops::AddN(root, {product, ops::Identity(root, v), old});
    ops::Add(root.WithOpName("y"), sum, row);
    ops::AssignAddVariableOp(root.WithOpName("train"), w, {1.0f, 1.0f});
    // The node has the name that a reader of checkpoints might choose.
    ops::NoOp(root.WithOpName("checkpoint"));
    GraphDef graph;
    GRADFLOW_ASSERT_OK(root.ToGraphDef(&graph));
    GRADFLOW_ASSERT_OK(WriteGraphDef(File("graph.pb"), graph));
    GRADFLOW_ASSERT_OK(WriteNpy(File("x.npy"), AsTensor<float>({1, 10})));
    GRADFLOW_ASSERT_OK(Write("m/ckpt-1", AsTensor<float>({2, 3})));
    GRADFLOW_ASSERT_OK(Write("m/ckpt-2", AsTensor<float>({2, 3.5f})));
    testing::WriteFile(File("m/checkpoint"), "model_checkpoint_path: \"ckpt-2\"\n");
  }
  absl::Status Write(const std::string& prefix, const Tensor& w) const {
    return WriteCheckpoint(File(prefix),
                           {{"layer/w", w, ""},
                            {"old", AsTensor<float>({0, 1000}), ""},
                            {"v", AsTensor<float>({100, 200}), ""},
                            {"t", AsTensor<float>({0, 0, 0.25f, 0.5f, 0, 0}, {3, 2}), ""},
                            {"step", AsScalar<int64_t>(7), ""},
                            {"text", AsTensor<tstring>({"a"}), ""}});
  }
  std::vector<std::string> RunOf(const std::string& graph) const {
    return {"run", File(graph), "--feed", "x=" + File("x.npy"), "--fetch", "y"};
  }
};

constexpr char kY[] = "y: Tensor<type: float shape: [2] values: 102.25 1230.5>\n";

TEST_F(CheckpointCommandTest, ListsTensors) {
  const std::string expected =
      "layer/w: float [2]\nold: float [2]\nstep: int64 []\nt: float [3,2]\ntext: string [1]\nv: "
      "float [2]\n"
      "6 tensors of 14 elements\n";
  for (const char* name : {"m/ckpt-1", "m/ckpt-1.index", "m", "m/"}) {
    const ProcessResult result = Gradflow({"checkpoint", File(name)});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.out, expected);
  }
}

TEST_F(CheckpointCommandTest, ExtractsATensor) {
  EXPECT_EQ(Gradflow({"checkpoint", File("m"), "--tensor", "layer/w"}).out,
            "layer/w: Tensor<type: float shape: [2] values: 2 3.5>\n");
  const ProcessResult result =
      Gradflow({"checkpoint", File("m/ckpt-1"), "--tensor", "t", "-o", File("t.npy")});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "");
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor t, ReadNpy(File("t.npy")));
  EXPECT_THAT(t, TensorEq(AsTensor<float>({0, 0, 0.25f, 0.5f, 0, 0}, {3, 2})));
  ExpectFailure(Gradflow({"checkpoint", File("m"), "--tensor", "none"}), "NOT_FOUND",
                HasSubstr("none"));
  EXPECT_EQ(
      Gradflow({"checkpoint", File("m"), "--tensor", "text", "-o", File("text.npy")}).exit_code, 0);
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor text, ReadNpy(File("text.npy")));
  EXPECT_THAT(text, TensorEq(AsTensor<tstring>({"a"})));
  EXPECT_EQ(Gradflow({"checkpoint", File("m"), "-o", File("t.npy")}).exit_code, 2);
}

// The slices have as many elements as the tensor, but they overlap.
TEST_F(CheckpointCommandTest, RejectsSlicesThatOverlap) {
  GRADFLOW_ASSERT_OK(WriteCheckpoint(File("s"), {{"w", AsTensor<float>({1, 2}), "4 0,2"},
                                                 {"w", AsTensor<float>({3, 4}), "4 2,2"}}));
  testing::MoveSlice(File("s.index"), "w", 2, 1);
  ExpectFailure(Gradflow({"checkpoint", File("s"), "--tensor", "w"}), "DATA_LOSS",
                HasSubstr("tensor 'w': slices '0,2' and '1,2' overlap"));
  ExpectFailure(Gradflow({"checkpoint", File("s"), "--diff", File("s")}), "DATA_LOSS",
                HasSubstr("tensor 'w': slices '0,2' and '1,2' overlap"));
}

// The index is small, but its names share long beginnings and would take much memory.
TEST_F(CheckpointCommandTest, LimitsTheMemoryOfNames) {
  GRADFLOW_ASSERT_OK(WriteCheckpoint(File("n"), {{"w", AsScalar<float>(1), ""}}));
  testing::ExpandKeys(File("n.index"), /*key_bytes=*/640000, /*entries=*/1600);
  EXPECT_LT(std::filesystem::file_size(File("n.index")), 700000u);
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"checkpoint", File("n")},
        {"checkpoint", File("m"), "--diff", File("n")},
        {"checkpoint", File("n"), "--tensor", "w"}}) {
    const ProcessResult result = Gradflow(arguments);
    ExpectFailure(result, "RESOURCE_EXHAUSTED", HasSubstr("the most for a table of"));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(GRADFLOW_TSAN)
    EXPECT_LT(result.peak_bytes, int64_t{200} << 20);
#endif
  }
}

TEST_F(CheckpointCommandTest, ComparesCheckpoints) {
  const ProcessResult same = Gradflow({"checkpoint", File("m/ckpt-1"), "--diff", File("m/ckpt-1")});
  EXPECT_EQ(same.exit_code, 0) << same.err;
  EXPECT_EQ(same.out, "");
  const ProcessResult result = Gradflow({"checkpoint", File("m/ckpt-1"), "--diff", File("m")});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "layer/w: 1 of 2 elements differ, by 0.5 at most\n");
  EXPECT_THAT(result.err, HasSubstr("FAILED_PRECONDITION: 1 of 6 tensors differ"));
  GRADFLOW_ASSERT_OK(WriteCheckpoint(File("other"), {{"v", AsTensor<double>({1}), ""},
                                                     {"step", AsScalar<int64_t>(8), ""},
                                                     {"text", AsTensor<tstring>({"b"}), ""},
                                                     {"z", AsScalar<float>(1), ""}}));
  EXPECT_EQ(Gradflow({"checkpoint", File("m"), "--diff", File("other")}).out,
            "layer/w: only in the first\nold: only in the first\nstep: 1 of 1 elements differ\nt: "
            "only in the first\n"
            "text: strings differ\nv: float [2] and double [1]\nz: only in the second\n");
}

TEST_F(CheckpointCommandTest, DamagedFilesAreErrors) {
  ExpectFailure(Gradflow({"checkpoint", File("none")}), "NOT_FOUND", HasSubstr("none.index"));
  const std::string data = File("m/ckpt-1.data-00000-of-00001");
  std::filesystem::resize_file(data, std::filesystem::file_size(data) - 1);
  ExpectFailure(Gradflow({"checkpoint", File("m/ckpt-1"), "--tensor", "v"}), "DATA_LOSS",
                HasSubstr("ckpt-1"));
  testing::WriteFile(File("m/ckpt-1.index"), "x");
  ExpectFailure(Gradflow({"checkpoint", File("m/ckpt-1")}), "DATA_LOSS", HasSubstr("ckpt-1"));
}

TEST_F(CheckpointCommandTest, RunAndBenchGiveVariablesTheirValues) {
  std::vector<std::string> run = RunOf("graph.pb");
  ExpectFailure(Gradflow(run), "FAILED_PRECONDITION", HasSubstr("has not been initialized"));
  run.insert(run.end(), {"--checkpoint", File("m/ckpt-1")});
  EXPECT_EQ(Gradflow(run).out, kY);
  // Without --fetch, only outputs of the original graph are fetched.
  const ProcessResult all = Gradflow(
      {"run", File("graph.pb"), "--feed", "x=" + File("x.npy"), "--checkpoint", File("m/ckpt-1")});
  EXPECT_EQ(all.out, kY) << all.err;
  const ProcessResult bench = Gradflow({"bench", File("graph.pb"), "--feed", "x=" + File("x.npy"),
                                        "--checkpoint", File("m"), "--repeat", "2"});
  EXPECT_EQ(bench.exit_code, 0) << bench.err;
  // The checkpoint belongs to another model.
  GRADFLOW_ASSERT_OK(WriteCheckpoint(File("other"), {{"z", AsScalar<float>(1), ""}}));
  run.back() = File("other");
  ExpectFailure(Gradflow(run), "NOT_FOUND",
                HasSubstr("--checkpoint: the checkpoint has none of the 4 variables"));
  GRADFLOW_ASSERT_OK(WriteCheckpoint(File("other"), {{"v", AsScalar<double>(1), ""}}));
  ExpectFailure(Gradflow(run), "INVALID_ARGUMENT",
                HasSubstr("variable 'v' has type float, but in the checkpoint double"));
  GRADFLOW_ASSERT_OK(WriteCheckpoint(File("other"), {{"layer/w", AsTensor<float>({1, 2, 3}), ""}}));
  ExpectFailure(Gradflow(run), "INVALID_ARGUMENT", HasSubstr(", but in the checkpoint [3]"));
}

TEST_F(CheckpointCommandTest, FreezesAGraph) {
  const ProcessResult result = Gradflow({"freeze", File("graph.pb"), File("m/ckpt-1"), "--outputs",
                                         "y,w:0", "-o", File("frozen.pb")});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(Gradflow(RunOf("frozen.pb")).out, kY);
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const GraphDef graph, ReadGraphDef(File("frozen.pb")));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const GraphDef before, ReadGraphDef(File("graph.pb")));
  EXPECT_EQ(result.out,
            absl::StrCat(graph.node_size(), " of ", before.node_size(), " nodes, 4 variables\n"));
  for (const NodeDef& node : graph.node()) {
    EXPECT_THAT(node.op(), Not(AllOf(HasSubstr("Var"), Not(HasSubstr("Const")))));
    EXPECT_NE(node.name(), "train");
  }
}

// Nodes that only a control dependency names are frozen as well.
TEST_F(CheckpointCommandTest, FreezesNodesThatTheOutputsNeed) {
  const Scope root = Scope::NewRootScope();
  const Output w = training::NewVariable(root.WithOpName("handle"), "layer/w", DT_FLOAT, {2});
  const Output read = ops::ReadVariableOp(root.WithOpName("read"), w, DT_FLOAT);
  const ops::NoOp before(root.WithOpName("before").WithControlDependencies(w));
  ops::Neg(root.WithOpName("y").WithControlDependencies({before.operation}), read);
  ops::Neg(root.WithOpName("other"), read);
  GraphDef graph;
  GRADFLOW_ASSERT_OK(root.ToGraphDef(&graph));
  GRADFLOW_ASSERT_OK(WriteGraphDef(File("g.pbtxt"), graph));
  const ProcessResult result = Gradflow(
      {"freeze", File("g.pbtxt"), File("m/ckpt-1"), "--outputs", "y", "-o", File("frozen.pbtxt")});
  EXPECT_EQ(result.out, "4 of 5 nodes, 1 variables\n") << result.err;
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const GraphDef frozen, ReadGraphDef(File("frozen.pbtxt")));
  std::vector<std::string> ops;
  for (const NodeDef& node : frozen.node()) ops.push_back(node.name() + " " + node.op());
  EXPECT_THAT(ops, ::testing::ElementsAre("handle Const", "read Identity", "before NoOp", "y Neg"));
}

TEST_F(CheckpointCommandTest, PrintsTheFirst32Values) {
  for (const int size : {32, 33}) {
    std::string values;
    for (int i = 0; i < 32; ++i) absl::StrAppend(&values, i == 0 ? "" : " ", 7);
    GRADFLOW_ASSERT_OK(WriteCheckpoint(
        File("long"), {{"t", AsTensor<int32_t>(std::vector<int32_t>(size, 7)), ""}}));
    EXPECT_EQ(Gradflow({"checkpoint", File("long"), "--tensor", "t"}).out,
              absl::StrCat("t: Tensor<type: int32 shape: [", size, "] values: ", values,
                           size > 32 ? "..." : "", ">\n"));
  }
}

TEST_F(CheckpointCommandTest, ComparesElements) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto write = [&](const std::string& name, const std::vector<float>& floats,
                         const std::vector<double>& doubles, const std::vector<int32_t>& ints) {
    GRADFLOW_ASSERT_OK(WriteCheckpoint(File(name), {{"d", AsTensor<double>(doubles), ""},
                                                    {"f", AsTensor<float>(floats), ""},
                                                    {"i", AsTensor<int32_t>(ints), ""},
                                                    {"s", AsTensor<tstring>({"same"}), ""}}));
  };
  const auto diff = [&] { return Gradflow({"checkpoint", File("a"), "--diff", File("b")}).out; };
  write("a", {1, 2, 3}, {1, 2}, {1, 2, 3});
  write("b", {2, -1, 3.5f}, {0.5, 2.25}, {1, 0, 0});
  EXPECT_EQ(diff(),
            "d: 2 of 2 elements differ, by 0.5 at most\n"
            "f: 3 of 3 elements differ, by 3 at most\ni: 2 of 3 elements differ\n");
  write("b", {1, nan, 4}, {1, 2}, {1, 2, 3});
  EXPECT_EQ(diff(), "f: 2 of 3 elements differ, by nan at most\n");
  // The same number with other bytes.
  write("a", {0, 2, 3}, {1, 2}, {1, 2, 3});
  write("b", {-0.0f, 2, 3}, {1, 2}, {1, 2, 3});
  EXPECT_EQ(diff(), "f: 1 of 3 elements differ, by 0 at most\n");
}

TEST_F(CheckpointCommandTest, RefusesNodesThatCannotBeFrozen) {
  const auto freeze = [&](const std::string& outputs) {
    return Gradflow(
        {"freeze", File("graph.pb"), File("m"), "--outputs", outputs, "-o", File("out.pb")});
  };
  ExpectFailure(freeze("none"), "INVALID_ARGUMENT",
                HasSubstr("--outputs 'none' is not in the graph"));
  ExpectFailure(freeze("train"), "UNIMPLEMENTED",
                HasSubstr("node 'train' (AssignAddVariableOp) uses a variable"));
  GRADFLOW_ASSERT_OK(WriteCheckpoint(File("m/ckpt-2"), {{"v", AsTensor<float>({1, 2}), ""}}));
  ExpectFailure(freeze("y"), "NOT_FOUND", HasSubstr("variable 'handle': "));
  EXPECT_FALSE(FileExists(File("out.pb")));
  EXPECT_EQ(Gradflow({"freeze", File("graph.pb"), File("m")}).exit_code, 2);
}

TEST_F(CheckpointCommandTest, FunctionsWithVariablesAreNotFrozen) {
  GRADFLOW_ASSERT_OK_AND_ASSIGN(GraphDef graph, ReadGraphDef(File("graph.pb")));
  const auto add_function = [&](const std::string& name, const std::string& op) {
    FunctionDef* const function = graph.mutable_library()->add_function();
    function->mutable_signature()->set_name(name);
    NodeDef* const node = function->add_node_def();
    node->set_name("n");
    node->set_op(op);
    return node;
  };
  auto& attrs = *add_function("inner", "VarHandleOp")->mutable_attr();
  attrs["dtype"].set_type(DT_FLOAT);
  attrs["shape"].mutable_shape()->set_unknown_rank(true);
  attrs["shared_name"].set_s("hidden");
  add_function("outer", "inner");
  // No node calls the functions.
  GRADFLOW_ASSERT_OK(WriteGraphDef(File("functions.pb"), graph));
  const auto freeze = [&](const std::string& outputs) {
    return Gradflow(
        {"freeze", File("functions.pb"), File("m"), "--outputs", outputs, "-o", File("f.pb")});
  };
  const ProcessResult result = freeze("y");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto add_call = [&](const std::string& name) {
    NodeDef* const call = graph.add_node();
    call->set_name(name);
    call->set_op("StatefulPartitionedCall");
    return call;
  };
  (*add_call("call")->mutable_attr())["f"].mutable_func()->set_name("outer");
  (*add_call("calls")->mutable_attr())["branches"].mutable_list()->add_func()->set_name("inner");
  add_call("direct")->set_op("inner");
  GRADFLOW_ASSERT_OK(WriteGraphDef(File("functions.pb"), graph));
  for (const char* output : {"call", "calls", "direct"}) {
    ExpectFailure(freeze(output), "UNIMPLEMENTED",
                  HasSubstr("function 'inner' has the variable 'hidden'; freezing"));
  }
}

}  // namespace
}  // namespace gradflow
