// Tests of `gradflow gradients` as a process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
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

using ::gradflow::testing::AsTensor;
using ::gradflow::testing::FileExists;
using ::gradflow::testing::ProcessResult;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;

// Writes a graph with loss = sum(tanh(x w)), an integer placeholder, and y = floor(x), which is not
// differentiable.
class GradientsCommandTest : public testing::CommandLineFixture {
 protected:
  void SetUp() override {
    const Scope root = Scope::NewRootScope();
    const Output x = ops::Placeholder(root.WithOpName("x"), DT_FLOAT);
    const Output w = ops::Const(root.WithOpName("w"), {{1.0f, -0.5f}, {0.25f, 2.0f}});
    ops::Placeholder(root.WithOpName("n"), DT_INT32);
    const Output y = ops::Tanh(root.WithOpName("y"), ops::MatMul(root.WithOpName("xw"), x, w));
    ops::Sum(root.WithOpName("loss"), y, {0, 1});
    ops::Floor(root.WithOpName("floor"), x);
    ops::Shape(root.WithOpName("shape"), x);
    GraphDef graph;
    GRADFLOW_ASSERT_OK(root.ToGraphDef(&graph));
    GRADFLOW_ASSERT_OK(WriteGraphDef(File("graph.pb"), graph));
    GRADFLOW_ASSERT_OK(WriteNpy(File("x.npy"), AsTensor<float>({0.5f, -1, 0.25f, 0.125f}, {2, 2})));
  }
  ProcessResult Gradients(std::vector<std::string> options) const {
    std::vector<std::string> arguments = {"gradients", File("graph.pb"), "-o", File("out.pb")};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return Gradflow(arguments);
  }
};

TEST_F(GradientsCommandTest, WritesTheGraphWithGradients) {
  const ProcessResult result = Gradients({"--of", "loss"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, MatchesRegex("x: gradients/xw/[A-Za-z_0-9]+\n"));
  EXPECT_THAT(result.err, IsEmpty());
  const std::string gradient = result.out.substr(3, result.out.size() - 4);
  const ProcessResult run = Gradflow(
      {"run", File("out.pb"), "--feed", "x=" + File("x.npy"), "--fetch", gradient, "--fetch", "y"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr(gradient + ": Tensor<type: float shape: [2,2] values: "));
}

TEST_F(GradientsCommandTest, TakesNamesOfTensors) {
  const ProcessResult result = Gradients({"--of", "y", "--wrt", "w,x,xw:0,n"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("w: gradients/xw/"), HasSubstr("\nx: gradients/xw/"),
                                HasSubstr("\nxw: gradients/y/"), HasSubstr("\nn: no gradient\n")));
}

TEST_F(GradientsCommandTest, ComparesWithDifferences) {
  for (const char* const recompute : {"", "--recompute"}) {
    // 0 means no limit.
    const std::string limit = *recompute == 0 ? "1000000" : "0";
    std::vector<std::string> options = {
        "--of", "loss", "--wrt", "x,w", "--check", "x=" + File("x.npy"), "--memory-limit", limit};
    if (*recompute != 0) options.push_back(recompute);
    const ProcessResult result = Gradients(options);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, MatchesRegex("x: [^\n]*\n  agrees: largest difference [^\n]*\n"
                                         "w: [^\n]*\n  agrees: largest difference [^\n]*\n"));
  }
}

TEST_F(GradientsCommandTest, RecomputesOnDemand) {
  constexpr int kNodes = 16;
  const Scope root = Scope::NewRootScope();
  Output y = ops::Placeholder(root, DT_FLOAT);
  for (int i = 0; i < kNodes; ++i) y = ops::Sin(root, y);
  ops::Identity(root.WithOpName("last"), y);
  GraphDef graph;
  GRADFLOW_ASSERT_OK(root.ToGraphDef(&graph));
  GRADFLOW_ASSERT_OK(WriteGraphDef(File("graph.pb"), graph));
  const auto sines = [&](const std::vector<std::string>& options) {
    const ProcessResult result = Gradients(options);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const absl::StatusOr<GraphDef> written = ReadGraphDef(File("out.pb"));
    GRADFLOW_EXPECT_OK(written.status());
    return std::count_if(written->node().begin(), written->node().end(),
                         [](const NodeDef& node) { return node.op() == "Sin"; });
  };
  EXPECT_EQ(sines({"--of", "last"}), kNodes);
  EXPECT_GT(sines({"--of", "last", "--recompute"}), kNodes);
}

// The tensor fed as y has another shape than x, and so does the gradient computed from it.
TEST_F(GradientsCommandTest, RefusesAGradientOfAnotherShape) {
  const Scope root = Scope::NewRootScope();
  const Output x = ops::Placeholder(root.WithOpName("x"), DT_FLOAT);
  ops::Neg(root.WithOpName("y"), x);
  GraphDef graph;
  GRADFLOW_ASSERT_OK(root.ToGraphDef(&graph));
  GRADFLOW_ASSERT_OK(WriteGraphDef(File("graph.pb"), graph));
  GRADFLOW_ASSERT_OK(WriteNpy(File("x.npy"), AsTensor<float>(std::vector<float>(100))));
  GRADFLOW_ASSERT_OK(WriteNpy(File("y.npy"), AsTensor<float>({1})));
  const ProcessResult result =
      Gradients({"--of", "y", "--check", "x=" + File("x.npy"), "--check", "y=" + File("y.npy")});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("the gradient of 'x' is float [1]; the tensor is float [100]"));
}

// sign(x) jumps within the step of 1e-3.
TEST_F(GradientsCommandTest, FailsIfAGradientDiffers) {
  const Scope root = Scope::NewRootScope();
  const Output x = ops::Placeholder(root.WithOpName("x"), DT_DOUBLE);
  const Output rest = ops::Placeholder(root.WithOpName("rest"), DT_DOUBLE);
  ops::Add(root.WithOpName("y"), ops::Sign(root, x), ops::Square(root, rest));
  GraphDef graph;
  GRADFLOW_ASSERT_OK(root.ToGraphDef(&graph));
  GRADFLOW_ASSERT_OK(WriteGraphDef(File("graph.pb"), graph));
  GRADFLOW_ASSERT_OK(WriteNpy(File("x.npy"), AsTensor<double>({1, 1e-6})));
  const ProcessResult result =
      Gradients({"--of", "y", "--check", "x=" + File("x.npy"), "--check", "rest=" + File("x.npy")});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, AllOf(HasSubstr("  DIFFERS: largest difference 1e+05 (allowed 0.1): "
                                          "element 1 is 0 by the gradient, 100000 by differences"),
                                HasSubstr("  agrees: ")));
  EXPECT_EQ(result.err, "FAILED_PRECONDITION: 1 of 2 gradients differ from differences: x\n");
  EXPECT_TRUE(FileExists(File("out.pb")));
}

// Compares every second element of tensors with 101 to 200 elements, and a smaller part of larger
// tensors.
TEST_F(GradientsCommandTest, ComparesEvenlySpacedElements) {
  const auto check = [&](const Tensor& value, DataType dtype) {
    const Scope root = Scope::NewRootScope();
    const Output x = ops::Placeholder(root.WithOpName("x"), dtype);
    const Output jump = ops::Sign(root, x);
    ops::Add(root.WithOpName("y"), jump, ops::Square(root, x));
    GraphDef graph;
    GRADFLOW_EXPECT_OK(root.ToGraphDef(&graph));
    GRADFLOW_EXPECT_OK(WriteGraphDef(File("graph.pb"), graph));
    GRADFLOW_EXPECT_OK(WriteNpy(File("x.npy"), value));
    const std::string out = Gradients({"--of", "y", "--check", "x=" + File("x.npy")}).out;
    return out.substr(out.find('\n') + 1);
  };
  // Sign jumps at the position of the 0.
  const auto jump_at = [&](int size, int place) {
    std::vector<float> values(size, 2);
    values[place] = 0;
    return check(AsTensor<float>(values), DT_FLOAT);
  };
  for (const auto& [size, place] :
       std::vector<std::pair<int, int>>{{1, 0}, {100, 99}, {101, 100}, {200, 198}, {201, 3}}) {
    EXPECT_EQ(jump_at(size, place),
              absl::StrCat("  DIFFERS: largest difference 1e+03 (allowed 10): element ", place,
                           " is 0 by the gradient, 1000 by differences\n"))
        << size;
  }
  EXPECT_THAT(jump_at(101, 99), HasSubstr("  agrees: "));
  EXPECT_THAT(jump_at(201, 4), HasSubstr("  agrees: "));
  EXPECT_EQ(check(AsTensor<float>({}), DT_FLOAT), "  no elements\n");
  // For large numbers, the step is relative.
  EXPECT_THAT(check(AsTensor<double>({1e9, 3}), DT_DOUBLE),
              MatchesRegex("  agrees: largest difference [^\n]* \\(allowed 2e\\+03\\): [^\n]*\n"));
  check(AsTensor<half>({half(1.0f)}), DT_HALF);
  EXPECT_THAT(Gradients({"--of", "y", "--check", "x=" + File("x.npy")}).err,
              HasSubstr("--check needs a tensor of float or double, but 'y' is half"));
}

TEST_F(GradientsCommandTest, ComparesNoGradientsOfOtherTypes) {
  const Scope root = Scope::NewRootScope();
  ops::Cast(root.WithOpName("y"), ops::Placeholder(root.WithOpName("x"), DT_HALF), DT_FLOAT);
  GraphDef graph;
  GRADFLOW_ASSERT_OK(root.ToGraphDef(&graph));
  GRADFLOW_ASSERT_OK(WriteGraphDef(File("graph.pb"), graph));
  GRADFLOW_ASSERT_OK(WriteNpy(File("x.npy"), Tensor(half(1.0f))));
  const ProcessResult result = Gradients({"--of", "y", "--check", "x=" + File("x.npy")});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, EndsWith("\n  not compared: differences are of float or double\n"));
}

// The gradient of a variable is the sum of the gradients of its reads.
TEST_F(GradientsCommandTest, DifferentiatesWithRespectToVariables) {
  const Scope root = Scope::NewRootScope();
  const Output w = ops::VarHandleOp(root.WithOpName("w"), DT_FLOAT, {2});
  const Output rows = ops::VarHandleOp(root.WithOpName("rows"), DT_FLOAT, {3, 2});
  ops::VarHandleOp(root.WithOpName("n"), DT_INT32, TensorShape());
  const Output r = ops::Variable(root.WithOpName("r"), {2}, DT_FLOAT);
  const Output a = ops::ReadVariableOp(root.WithOpName("a"), w, DT_FLOAT);
  const Output b = ops::ReadVariableOp(root.WithOpName("b"), w, DT_FLOAT);
  // These ops do not read the value.
  ops::AssignVariableOp(root, w, {1.0f, 2.0f});
  ops::VarIsInitializedOp(root, w);
  ops::VariableShape(root, w);
  const Output gathered = ops::ResourceGather(root.WithOpName("g"), rows, {1, 1}, DT_FLOAT);
  ops::Sum(root.WithOpName("loss"), ops::Mul(root, ops::Mul(root, a, b), r), 0);
  ops::Add(root.WithOpName("all"), ops::Square(root, gathered), ops::Mul(root, a, r));
  GraphDef graph;
  GRADFLOW_ASSERT_OK(root.ToGraphDef(&graph));
  GRADFLOW_ASSERT_OK(WriteGraphDef(File("graph.pb"), graph));
  GRADFLOW_ASSERT_OK(WriteNpy(File("w.npy"), AsTensor<float>({3, -2})));
  GRADFLOW_ASSERT_OK(WriteNpy(File("r.npy"), AsTensor<float>({0.5f, 4})));
  GRADFLOW_ASSERT_OK(WriteNpy(File("g.npy"), AsTensor<float>({1, 2, 3, 4}, {2, 2})));
  const ProcessResult result = Gradients({"--of", "loss", "--wrt", "variables", "--check",
                                          "w=" + File("w.npy"), "--check", "r=" + File("r.npy")});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(
      result.out,
      MatchesRegex("w: gradients/[^\n]*\n  agrees: [^\n]* element 1 is -16 by the gradient[^\n]*\n"
                   "rows: no gradient\n"
                   "r: gradients/[^\n]*\n  agrees: [^\n]*\n"));
  // The rows of a variable cannot be fed.
  const ProcessResult other =
      Gradients({"--of", "all", "--wrt", "variables", "--check", "w=" + File("w.npy"), "--check",
                 "r=" + File("r.npy"), "--check", "g=" + File("g.npy")});
  EXPECT_EQ(other.exit_code, 0) << other.err;
  EXPECT_THAT(other.out, HasSubstr("\nrows: gradients/"));
  EXPECT_THAT(other.out, HasSubstr("  not compared: not all ops that read the variable are "
                                   "ReadVariableOp\n"));
}

TEST_F(GradientsCommandTest, ErrorsNameTheFlag) {
  const auto expect = [&](const std::vector<std::string>& options, const std::string& text) {
    SCOPED_TRACE(text);
    ExpectFailure(Gradients(options), "INVALID_ARGUMENT", HasSubstr(text));
    EXPECT_FALSE(FileExists(File("out.pb")));
  };
  expect({"--of", "z"}, "--of 'z' is not in the graph");
  expect({"--of", "^loss"}, "--of '^loss' must be the name of a tensor, NODE or NODE:INDEX");
  expect({"--of", "loss:1"}, "--of 'loss:1' must be one of the 1 outputs of the node");
  expect({"--of", "shape"}, "--of 'shape' must be of floating-point numbers, but is int32");
  expect({"--of", "loss", "--wrt", "x,"}, "--wrt ''");
  expect({"--of", "loss", "--wrt", "variables"},
         "the graph has no variables of floating-point numbers; --wrt also takes names");
  EXPECT_EQ(Gradflow({"gradients", File("graph.pb")}).exit_code, 2);
}

TEST_F(GradientsCommandTest, RejectsInvalidFeeds) {
  const ProcessResult missing = Gradients({"--of", "loss", "--check", "x=" + File("nothing.npy")});
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_THAT(missing.err, HasSubstr("nothing.npy"));
  for (const std::string flag : {"x", "x=", "=x.npy"}) {
    EXPECT_THAT(Gradients({"--of", "loss", "--check", flag}).err,
                HasSubstr("--check '" + flag + "' must be NAME=FILE.npy"));
  }
  EXPECT_THAT(Gradients({"--of", "loss", "--check", "z=" + File("x.npy")}).err,
              HasSubstr("--check 'z' is not in the graph"));
}

}  // namespace
}  // namespace gradflow
