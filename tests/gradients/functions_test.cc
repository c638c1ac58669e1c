// Every gradient function against central differences in float64, and against differences of its
// own result: the second order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/gradients/gradient_registry.h"
#include "gradflow/gradients/gradients.h"
#include "gradflow/graph/import.h"
#include "gradflow/graph/node.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/proto/op_def.pb.h"
#include "gradflow/runtime/session/client_session.h"
#include "gradflow/testing/gradient_checker.h"
#include "gradflow/testing/status_matchers.h"
#include "gradflow/testing/tensor_matchers.h"
#include "tests/testing/op_rows.h"
#include "tests/testing/subprocess.h"

namespace gradflow::testing {
namespace {

constexpr char kRows[] = GRADFLOW_TEST_DATA_DIR "/gradient_rows.txt";

// A node of a row, with its inputs of float64 to be fed.
struct RowGraph {
  Scope scope = Scope::NewRootScope();
  OutputList xs;
  std::vector<Tensor> values;
  OutputList ys;
};

bool HasNote(const std::vector<std::string>& row, absl::string_view note) {
  return row.size() > 3 && absl::StrContains(row[3], note);
}

void Make(const std::vector<std::string>& row, RowGraph* graph) {
  const std::vector<Tensor> inputs = ParseTensors(row[2]);
  GraphDef def;
  std::vector<std::pair<std::string, Tensor>> feeds;
  AddOpRow("n", row[0], row[1], inputs, Knowledge::kValues, &def, &feeds);
  GRADFLOW_ASSERT_OK(ImportGraphDef({}, def, graph->scope.graph()));
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].dtype() != DT_DOUBLE) continue;
    const bool only = HasNote(row, "only ");
    if (only && !HasNote(row, absl::StrCat("only ", i))) continue;
    const Node* const x = graph->scope.graph()->FindNode(absl::StrCat("n/i", i));
    ASSERT_NE(x, nullptr);
    graph->xs.emplace_back(x, 0);
    graph->values.push_back(inputs[i]);
  }
  const Node* const node = graph->scope.graph()->FindNode("n");
  ASSERT_NE(node, nullptr);
  for (int i = 0; i < node->num_outputs(); ++i) {
    if (node->output_type(i) == DT_DOUBLE) graph->ys.emplace_back(node, i);
  }
  ASSERT_FALSE(graph->ys.empty());
}

// The gradients of `ys`, given theirs, with zeros in the place of none.
GradientFn GradientsOf(const OutputList& ys, const OutputList& xs) {
  return [ys, xs](const Scope& scope, const OutputList& dys) {
    std::vector<Output> dxs;
    scope.UpdateStatus(AddSymbolicGradients(scope, ys, xs, dys, &dxs));
    for (size_t i = 0; i < dxs.size(); ++i) {
      if (IsNoGradient(dxs[i])) dxs[i] = ops::ZerosLike(scope, xs[i]);
    }
    return dxs;
  };
}

double Allowed(const GradientError& error) { return 1e-7 * std::max(1.0, error.largest); }

class GradientRowTest : public ::testing::TestWithParam<std::vector<std::string>> {};

TEST_P(GradientRowTest, AgreesWithDifferences) {
  RowGraph graph;
  Make(GetParam(), &graph);
  const auto error = FindGradientError(graph.scope, graph.xs, graph.values, graph.ys,
                                       GradientsOf(graph.ys, graph.xs));
  ASSERT_TRUE(error.ok()) << error.status();
  EXPECT_LE(error->max_error, Allowed(*error)) << error->DebugString();
}

// The gradients of a weighted sum of the outputs, differentiated again.
TEST_P(GradientRowTest, AgreesWithDifferencesInSecondOrder) {
  const std::vector<std::string>& row = GetParam();
  if (HasNote(row, "first order")) return;
  RowGraph graph;
  Make(row, &graph);
  std::vector<Output> weights;
  for (const Output& y : graph.ys) {
    const Output flat = ops::Cast(graph.scope, ops::Size(graph.scope, y), DT_DOUBLE);
    const Output range = ops::Range(graph.scope, 0.0, flat, 1.0);
    weights.push_back(
        ops::Reshape(graph.scope, ops::Cos(graph.scope, range), ops::Shape(graph.scope, y)));
  }
  std::vector<Output> first;
  GRADFLOW_ASSERT_OK(AddSymbolicGradients(graph.scope, graph.ys, graph.xs, weights, &first));
  OutputList ys;
  for (const Output& dx : first) {
    if (!IsNoGradient(dx)) ys.push_back(dx);
  }
  ASSERT_FALSE(ys.empty());
  GradientOptions options;
  options.delta = 1e-4;
  const auto error = FindGradientError(graph.scope, graph.xs, graph.values, ys,
                                       GradientsOf(ys, graph.xs), options);
  ASSERT_TRUE(error.ok()) << error.status();
  EXPECT_LE(error->max_error, 30 * Allowed(*error)) << error->DebugString();
}

std::string RowName(const ::testing::TestParamInfo<std::vector<std::string>>& info) {
  return absl::StrCat(info.param[0], "_", info.index);
}
INSTANTIATE_TEST_SUITE_P(Rows, GradientRowTest, ::testing::ValuesIn(ReadRows(kRows)), RowName);

// ---- Completeness ----

TEST(GradientRows, CoverEveryGradientFunction) {
  std::set<std::string> rows;
  for (const auto& row : ReadRows(kRows)) rows.insert(row[0]);
  // Of float alone or complex, or without a row for a reason; tested elsewhere.
  const std::set<std::string> elsewhere = {"Angle",
                                           "Cholesky",
                                           "Complex",
                                           "ComplexAbs",
                                           "Conj",
                                           "Imag",
                                           "Real",
                                           "FakeQuantWithMinMaxArgs",
                                           "FakeQuantWithMinMaxVars",
                                           "FakeQuantWithMinMaxVarsPerChannel",
                                           "FusedBatchNorm",
                                           "FusedBatchNormV2",
                                           "FusedBatchNormV3",
                                           "LRN",
                                           "PreventGradient",
                                           "QuantizeAndDequantizeV2",
                                           "QuantizeAndDequantizeV3",
                                           "ReadVariableOp",
                                           "ResourceGather",
                                           "ResourceGatherNd"};
  for (const std::string& op : GradientRegistry::Global().DifferentiableOps()) {
    EXPECT_TRUE(rows.count(op) + elsewhere.count(op) == 1) << op << " has no row";
    EXPECT_NE(GlobalRegistry().FindOp(op), nullptr) << op;
  }
}

// docs/gradients.md ends with the list of differentiable ops.
TEST(GradientDocs, ListEveryGradientFunction) {
  const std::string text = ReadFile(GRADFLOW_TEST_DATA_DIR "/../../docs/gradients.md");
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(text, absl::MaxSplits("## Ops with a gradient\n", 1));
  std::vector<std::string> listed;
  for (const absl::string_view word :
       absl::StrSplit(parts.second, absl::ByAnyChar(" \n,`"), absl::SkipEmpty())) {
    listed.emplace_back(word);
  }
  EXPECT_THAT(listed, ::testing::ElementsAreArray(GradientRegistry::Global().DifferentiableOps()));
}

// ---- Gradients of float alone ----

TEST(GradientFunctions, OfLrnReadItsAttributes) {
  const Scope scope = Scope::NewRootScope();
  const Output x = ops::Placeholder(scope, DT_FLOAT);
  const auto attrs = ops::LRN::DepthRadius(1).Bias(1.5f).Alpha(0.5f).Beta(0.75f);
  const Output y = ops::LRN(scope, x, attrs);
  const TensorShape shape = {2, 1, 2, 5};
  Tensor value(DT_FLOAT, shape);
  for (int64_t i = 0; i < value.NumElements(); ++i) {
    value.flat<float>()(i) = static_cast<float>(i % 7) * 0.5f - 1.5f;
  }
  double error = 1;
  GRADFLOW_ASSERT_OK(ComputeGradientError(scope, x, value, y, shape, &error));
  EXPECT_LT(error, 2e-3);
}

// ---- Broadcasting of shapes that are known only when the graph runs ----

TEST(GradientFunctions, SumOverBroadcastDimensionsOfUnknownShapes) {
  const Scope scope = Scope::NewRootScope();
  const Output x = ops::Placeholder(scope, DT_DOUBLE);
  const Output y = ops::Placeholder(scope, DT_DOUBLE);
  const Output z = ops::Mul(scope, x, ops::Sub(scope, x, y));
  std::vector<Output> gradients;
  GRADFLOW_ASSERT_OK(AddSymbolicGradients(scope, {z}, {x, y}, &gradients));
  struct Shapes {
    TensorShape x;
    TensorShape y;
    TensorShape z;
  };
  const std::vector<Shapes> all_shapes = {{{2, 3}, {2, 3}, {2, 3}},
                                          {{2, 1}, {3}, {2, 3}},
                                          {{}, {2, 2}, {2, 2}},
                                          {{4, 1, 3}, {2, 1}, {4, 2, 3}},
                                          {{1}, {1, 1}, {1, 1}}};
  const auto gradient = [&](const Scope& s, const OutputList& dys) {
    std::vector<Output> dxs;
    s.UpdateStatus(AddSymbolicGradients(s, {z}, {x, y}, dys, &dxs));
    return dxs;
  };
  for (const Shapes& shapes : all_shapes) {
    double error = 1;
    GRADFLOW_ASSERT_OK(ComputeGradientError(scope, {x, y}, {shapes.x, shapes.y}, {z}, {shapes.z},
                                            gradient, &error));
    EXPECT_LT(error, 1e-8);
  }
}

// ---- Ops of float ----

TEST(GradientFunctions, OfBatchNormInInferenceReachItsStatistics) {
  for (const char* const format : {"NHWC", "NCHW"}) {
    const Scope scope = Scope::NewRootScope();
    OutputList xs;
    for (int i = 0; i < 5; ++i) xs.push_back(ops::Placeholder(scope, DT_FLOAT));
    const auto norm = ops::FusedBatchNormV3(
        scope, xs[0], xs[1], xs[2], xs[3], xs[4],
        ops::FusedBatchNormV3::IsTraining(false).Epsilon(0.25f).DataFormat(format));
    const std::vector<Tensor> values = {
        ParseTensor("float[1,2,2,2]"), ParseTensor("float[2]={1.5, -2}"), ParseTensor("float[2]"),
        ParseTensor("float[2]={0.5, 0.25}"), ParseTensor("float[2]={0.75, 1.25}")};
    const auto error = FindGradientError(scope, xs, values, {norm.y}, GradientsOf({norm.y}, xs));
    ASSERT_TRUE(error.ok()) << error.status();
    EXPECT_LE(error->max_error, 2e-3 * error->largest) << error->DebugString();
  }
}

TEST(GradientFunctions, OfBatchNormInTraining) {
  const Scope scope = Scope::NewRootScope();
  OutputList xs;
  for (int i = 0; i < 3; ++i) xs.push_back(ops::Placeholder(scope, DT_FLOAT));
  const std::vector<Tensor> values = {ParseTensor("float[2,2,1,2]={1, -2, 3, 0, -1, 4, 2, 1}"),
                                      ParseTensor("float[2]={1.5, -2}"), ParseTensor("float[2]")};
  const Output empty = ops::Const(scope, Tensor(DT_FLOAT, {0}));
  const auto v1 = ops::FusedBatchNorm(scope, xs[0], xs[1], xs[2], empty, empty);
  const auto v2 = ops::FusedBatchNormV2(scope, xs[0], xs[1], xs[2], empty, empty);
  const auto v3 = ops::FusedBatchNormV3(scope, xs[0], xs[1], xs[2], empty, empty);
  for (const Output& y : {v1.y, v2.y, v3.y}) {
    const auto error = FindGradientError(scope, xs, values, {y}, GradientsOf({y}, xs));
    ASSERT_TRUE(error.ok()) << error.status();
    EXPECT_LE(error->max_error, 2e-3 * error->largest) << error->DebugString();
  }
}

TEST(GradientFunctions, OfFakeQuantisationAreThoseOfItsGradientOps) {
  const Scope scope = Scope::NewRootScope();
  const Tensor x = ParseTensor("float[2,3]={-9, -1.25, 0, 1.5, 2.75, 9}");
  const Tensor dy = ParseTensor("float[2,3]={1, 2, 3, 4, 5, 6}");
  const Output input = ops::Const(scope, x);
  const auto run = [&](const Output& y, const OutputList& xs, const OutputList& expected) {
    std::vector<Output> dxs;
    GRADFLOW_ASSERT_OK(AddSymbolicGradients(scope, {y}, xs, {ops::Const(scope, dy)}, &dxs));
    ClientSession session(scope);
    std::vector<Tensor> found;
    std::vector<Tensor> wanted;
    GRADFLOW_ASSERT_OK(session.Run(dxs, &found));
    GRADFLOW_ASSERT_OK(session.Run(expected, &wanted));
    for (size_t i = 0; i < found.size(); ++i) EXPECT_THAT(found[i], TensorEq(wanted[i]));
  };
  using Args = ops::FakeQuantWithMinMaxArgs;
  using ArgsGradient = ops::FakeQuantWithMinMaxArgsGradient;
  run(ops::FakeQuantWithMinMaxArgs(scope, input, Args::Min(-2).Max(3).NumBits(4).NarrowRange(true)),
      {input},
      {ArgsGradient(scope, ops::Const(scope, dy), input,
                    ArgsGradient::Min(-2).Max(3).NumBits(4).NarrowRange(true))});
  const Output min = ops::Const(scope, -2.0f);
  const Output max = ops::Const(scope, 3.0f);
  using Vars = ops::FakeQuantWithMinMaxVars;
  using VarsGradient = ops::FakeQuantWithMinMaxVarsGradient;
  const VarsGradient vars(scope, ops::Const(scope, dy), input, min, max,
                          VarsGradient::NumBits(4).NarrowRange(true));
  run(Vars(scope, input, min, max, Vars::NumBits(4).NarrowRange(true)), {input, min, max},
      {vars.backprops_wrt_input, vars.backprop_wrt_min, vars.backprop_wrt_max});
  const Output mins = ops::Const(scope, {-2.0f, -1.0f, -2.0f});
  const Output maxs = ops::Const(scope, {1.0f, 2.0f, 3.0f});
  using Channels = ops::FakeQuantWithMinMaxVarsPerChannel;
  using ChannelsGradient = ops::FakeQuantWithMinMaxVarsPerChannelGradient;
  const ChannelsGradient channels(scope, ops::Const(scope, dy), input, mins, maxs,
                                  ChannelsGradient::NumBits(4));
  run(Channels(scope, input, mins, maxs, Channels::NumBits(4)), {input, mins, maxs},
      {channels.backprops_wrt_input, channels.backprop_wrt_min, channels.backprop_wrt_max});
}

// ---- Ops of symmetric matrices ----

// Of X X^T + I, since the gradient is symmetric while the op reads one triangle.
TEST(GradientFunctions, OfCholesky) {
  const Scope scope = Scope::NewRootScope();
  const Output x = ops::Placeholder(scope, DT_DOUBLE);
  const Output identity = ops::Const(scope, ParseTensor("double[2,2]={1, 0, 0, 1}"));
  const Output square = ops::BatchMatMulV2(scope, x, x, ops::BatchMatMulV2::AdjY(true));
  const Output y = ops::Cholesky(scope, ops::AddV2(scope, square, identity));
  const Tensor value = ParseTensor("double[2,2,2]={1, -2, 0.5, 3, 2, 1, 0.25, 1}");
  const auto error = FindGradientError(scope, {x}, {value}, {y}, GradientsOf({y}, {x}));
  ASSERT_TRUE(error.ok()) << error.status();
  EXPECT_LE(error->max_error, Allowed(*error)) << error->DebugString();
}

TEST(GradientFunctions, OfQuantizeAndDequantizeAreTheIdentity) {
  const Scope scope = Scope::NewRootScope();
  const Output x = ops::Const(scope, {-1.0f, 0.25f, 1.0f});
  const Output y = ops::QuantizeAndDequantizeV2(scope, x, -1.0f, 1.0f);
  std::vector<Output> gradients;
  const Output dy = ops::Const(scope, {3.0f, 4.0f, 5.0f});
  GRADFLOW_ASSERT_OK(AddSymbolicGradients(scope, {y}, {x}, {dy}, &gradients));
  EXPECT_EQ(gradients[0], dy);
}

// ---- Complex numbers ----

// Of a real function of complex numbers, the gradient is that of its real and imaginary parts.
TEST(GradientFunctions, OfComplexNumbersAreThoseOfTheirParts) {
  using Function = Output (*)(const Scope&, const Output&);
  const std::vector<std::pair<const char*, Function>> functions = {
      {"Abs",
       [](const Scope& s, const Output& z) -> Output {
         return ops::ComplexAbs(s, z, ops::ComplexAbs::Tout(DT_DOUBLE));
       }},
      {"Angle",
       [](const Scope& s, const Output& z) -> Output {
         return ops::Angle(s, z, ops::Angle::Tout(DT_DOUBLE));
       }},
      {"Imag",
       [](const Scope& s, const Output& z) -> Output {
         return ops::Imag(s, z, ops::Imag::Tout(DT_DOUBLE));
       }},
      {"Conj",
       [](const Scope& s, const Output& z) -> Output {
         return ops::Imag(s, ops::Conj(s, z), ops::Imag::Tout(DT_DOUBLE));
       }},
      {"Exp",
       [](const Scope& s, const Output& z) -> Output {
         return ops::Imag(s, ops::Exp(s, z), ops::Imag::Tout(DT_DOUBLE));
       }},
      {"Log",
       [](const Scope& s, const Output& z) -> Output {
         return ops::Real(s, ops::Log(s, z), ops::Real::Tout(DT_DOUBLE));
       }},
      {"Square",
       [](const Scope& s, const Output& z) -> Output {
         return ops::Imag(s, ops::Square(s, z), ops::Imag::Tout(DT_DOUBLE));
       }},
      {"Mul",
       [](const Scope& s, const Output& z) -> Output {
         return ops::Real(s, ops::Mul(s, z, ops::Sin(s, z)), ops::Real::Tout(DT_DOUBLE));
       }},
      {"Div",
       [](const Scope& s, const Output& z) -> Output {
         return ops::Imag(s, ops::Div(s, ops::Sin(s, z), z), ops::Imag::Tout(DT_DOUBLE));
       }},
      {"Pow",
       [](const Scope& s, const Output& z) -> Output {
         return ops::Real(s, ops::Pow(s, z, z), ops::Real::Tout(DT_DOUBLE));
       }},
      {"MatMul",
       [](const Scope& s, const Output& z) -> Output {
         return ops::Imag(s, ops::MatMul(s, z, z, ops::MatMul::TransposeA(true)),
                          ops::Imag::Tout(DT_DOUBLE));
       }},
  };
  for (const auto& [name, function] : functions) {
    SCOPED_TRACE(name);
    const Scope scope = Scope::NewRootScope();
    const Output re = ops::Placeholder(scope, DT_DOUBLE, ops::Placeholder::Shape({2, 2}));
    const Output im = ops::Placeholder(scope, DT_DOUBLE, ops::Placeholder::Shape({2, 2}));
    const Output z = ops::Complex(scope, re, im, ops::Complex::Tout(DT_COMPLEX128));
    const Output y = function(scope, z);
    GRADFLOW_ASSERT_OK(scope.status());
    const std::vector<Tensor> values = {ParseTensor("double[2,2]={0.5, -1, 1.5, 0.75}"),
                                        ParseTensor("double[2,2]={1, 0.25, -0.5, -1.25}")};
    const auto error = FindGradientError(scope, {re, im}, values, {y}, GradientsOf({y}, {re, im}));
    ASSERT_TRUE(error.ok()) << error.status();
    EXPECT_LE(error->max_error, Allowed(*error)) << error->DebugString();
  }
}

}  // namespace
}  // namespace gradflow::testing
