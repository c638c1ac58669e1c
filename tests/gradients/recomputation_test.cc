// Tests of GradientBuildOptions::checkpoints and automatic_checkpoints: less memory, the same bits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gradflow/gradients/gradients.h"
#include "gradflow/graph/graph.h"
#include "gradflow/graph/node.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/runtime/session/client_session.h"
#include "gradflow/runtime/session/options.h"
#include "gradflow/testing/status_matchers.h"
#include "gradflow/testing/tensor_matchers.h"
#include "gradflow/testing/tensors.h"

namespace gradflow {
namespace {

using ::gradflow::testing::TensorEq;

struct Result {
  std::vector<Tensor> values;
  int64_t peak_bytes = 0;
};

// A graph with its parameters and its loss.
struct Model {
  Scope scope = Scope::NewRootScope();
  std::vector<Output> parameters;
  std::vector<Output> tensors;
  Output loss;
  ClientSession::FeedType feeds;

  // Adds a fed tensor, which is not folded.
  Output Fed(const Tensor& value) {
    const Output x = ops::Placeholder(scope, value.dtype(), ops::Placeholder::Shape(value.shape()));
    feeds.emplace(x, value);
    return x;
  }
};

Result Differentiate(Model* model, const GradientBuildOptions& options, int threads = 1) {
  Result result;
  std::vector<Output> gradients;
  GRADFLOW_EXPECT_OK(
      AddSymbolicGradients(model->scope, {model->loss}, model->parameters, &gradients, options));
  SessionOptions session_options;
  session_options.config.set_intra_op_parallelism_threads(threads);
  session_options.config.set_inter_op_parallelism_threads(threads);
  const ClientSession session(model->scope, session_options);
  GRADFLOW_EXPECT_OK(session.Run(model->feeds, gradients, &result.values));
  result.peak_bytes = session.MemoryStats().peak_bytes_in_use;
  return result;
}

void ExpectSameBits(const Result& a, const Result& b) {
  ASSERT_EQ(a.values.size(), b.values.size());
  for (size_t i = 0; i < a.values.size(); ++i) EXPECT_THAT(a.values[i], TensorEq(b.values[i]));
}

constexpr int kLayers = 1000;
// The bytes of a tensor between two layers.
constexpr double kLayer = 256 * 16 * sizeof(float);

// A layer is tanh(x w + b).
void MakeChain(Model* model) {
  const Scope& scope = model->scope;
  Output x = model->Fed(testing::RandomTensor(DT_FLOAT, {256, 16}, testing::Uniform(-1, 1), 1));
  const Output w =
      model->Fed(testing::RandomTensor(DT_FLOAT, {16, 16}, testing::Uniform(-0.5, 0.5), 2));
  const Output b = model->Fed(testing::RandomTensor(DT_FLOAT, {16}, testing::Uniform(-1, 1), 3));
  model->parameters = {x, b};
  for (int i = 0; i < kLayers; ++i) {
    x = ops::Tanh(scope, ops::BiasAdd(scope, ops::MatMul(scope, x, w), b));
    model->tensors.push_back(x);
  }
  model->loss = ops::Sum(scope, x, {0, 1});
}

TEST(Recomputation, ChainKeepsTheSquareRootOfItsTensors) {
  Model plain;
  MakeChain(&plain);
  const Result expected = Differentiate(&plain, {});
  Model model;
  MakeChain(&model);
  GradientBuildOptions options;
  options.automatic_checkpoints = true;
  EXPECT_GE(static_cast<double>(expected.peak_bytes), kLayers * kLayer);
  for (const int threads : {1, 2}) {
    const Result result = Differentiate(&model, options, threads);
    EXPECT_LE(static_cast<double>(result.peak_bytes), 3 * std::sqrt(kLayers) * kLayer);
    ExpectSameBits(result, expected);
  }
}

TEST(Recomputation, KeepsCheckpoints) {
  Model plain;
  MakeChain(&plain);
  const Result expected = Differentiate(&plain, {});
  Model model;
  MakeChain(&model);
  GradientBuildOptions options;
  for (int i = 99; i < kLayers; i += 100) options.checkpoints.push_back(model.tensors[i]);
  const Result result = Differentiate(&model, options);
  // The memory of 10 checkpoints and of the layers between two of them.
  EXPECT_LE(static_cast<double>(result.peak_bytes), 130 * kLayer);
  EXPECT_GE(static_cast<double>(result.peak_bytes), 100 * kLayer);
  ExpectSameBits(result, expected);
}

// Residual connections read tensors across several layers.
void MakeResiduals(Model* model) {
  const Scope& scope = model->scope;
  Output x = model->Fed(testing::RandomTensor(DT_FLOAT, {16, 64}, testing::Uniform(-1, 1), 1));
  for (int i = 0; i < 60; ++i) {
    const Output w =
        model->Fed(testing::RandomTensor(DT_FLOAT, {64, 64}, testing::Uniform(-0.1, 0.1), 2 + i));
    model->parameters.push_back(w);
    const Output h = ops::Relu(scope, ops::MatMul(scope, x, w));
    const auto parts = ops::Split(scope, 1, h, 2);
    const Output joined = ops::ConcatV2(
        scope, {ops::Sigmoid(scope, parts.output[1]), ops::Square(scope, parts.output[0])}, 1);
    x = ops::Add(scope, x, joined);
    model->tensors.push_back(x);
  }
  model->loss = ops::Mean(scope, ops::Square(scope, x), {0, 1});
}

TEST(Recomputation, ResidualLayersTakeLessMemory) {
  Model plain;
  MakeResiduals(&plain);
  const Result expected = Differentiate(&plain, {});
  for (const bool automatic : {false, true}) {
    Model model;
    MakeResiduals(&model);
    GradientBuildOptions options;
    options.automatic_checkpoints = automatic;
    if (!automatic) options.checkpoints = {model.tensors[20], model.tensors[40]};
    const Result result = Differentiate(&model, options);
    EXPECT_LT(result.peak_bytes, expected.peak_bytes * 7 / 10);
    ExpectSameBits(result, expected);
  }
}

// Random numbers are drawn once.
TEST(Recomputation, DoesNotRepeatStatefulNodes) {
  Model model;
  const Scope& scope = model.scope;
  const Output x = ops::Const(scope, {1.0f, 2.0f, 3.0f});
  Output y = ops::Exp(scope, x);
  // A stateful op that reads x.
  const Output noise =
      ops::RandomGamma(scope.WithOpName("noise"), {4}, y, ops::RandomGamma::Seed(1));
  const Output scaled = ops::Mul(scope.WithOpName("scaled"), noise, y);
  model.loss = ops::Sum(scope, ops::Square(scope, ops::Square(scope, scaled)), {0, 1});
  model.parameters = {x};
  GradientBuildOptions options;
  options.checkpoints = {x};
  std::vector<Output> gradients;
  GRADFLOW_ASSERT_OK(
      AddSymbolicGradients(scope, {model.loss}, model.parameters, &gradients, options));
  int copies_of_noise = 0;
  int copies = 0;
  for (int i = 0; i < scope.graph()->num_nodes(); ++i) {
    const Node& node = *scope.graph()->node(i);
    copies += absl::StrContains(node.name(), "/recomputed/");
    copies_of_noise += node.type_string() == "RandomGamma";
  }
  EXPECT_EQ(copies_of_noise, 1);
  EXPECT_GE(copies, 3);
  std::vector<Tensor> values;
  GRADFLOW_ASSERT_OK(ClientSession(scope).Run(gradients, &values));
}

// The variable is read before it is assigned to.
TEST(Recomputation, DoesNotReadVariablesAgain) {
  const Scope scope = Scope::NewRootScope();
  const Output w = ops::Variable(scope, {2, 2}, DT_FLOAT);
  const auto init = ops::Assign(scope, w, {{1.0f, 2.0f}, {3.0f, 4.0f}});
  const Output x = ops::Const(scope, {{0.5f, -1.0f}, {0.25f, 1.0f}});
  const Output read = ops::Identity(scope, w);
  const Output product = ops::MatMul(scope, w, x);
  const Output y = ops::Mul(scope, ops::Sin(scope, read), ops::Sin(scope, product));
  // The backward pass begins after the assignment.
  const auto assign = ops::AssignSub(scope.WithControlDependencies({y.op()}), w,
                                     ops::Const(scope, {{9.0f, 9.0f}, {9.0f, 9.0f}}));
  const Output dy = ops::OnesLike(scope.WithControlDependencies({assign.operation}), y);
  std::vector<Output> plain;
  GRADFLOW_ASSERT_OK(AddSymbolicGradients(scope, {y}, {w, x}, {dy}, &plain));
  GradientBuildOptions options;
  options.checkpoints = {x};
  std::vector<Output> recomputed;
  GRADFLOW_ASSERT_OK(AddSymbolicGradients(scope, {y}, {w, x}, {dy}, &recomputed, options));
  std::vector<std::string> copies;
  for (int i = 0; i < scope.graph()->num_nodes(); ++i) {
    const Node& node = *scope.graph()->node(i);
    if (absl::StrContains(node.name(), "/recomputed/")) copies.push_back(node.type_string());
  }
  EXPECT_THAT(copies, ::testing::UnorderedElementsAre("Mul", "Sin", "Sin"));
  std::vector<Tensor> values[2];
  ClientSession session(scope);
  for (const int i : {0, 1}) {
    GRADFLOW_ASSERT_OK(session.Run({}, {}, {init.operation}, nullptr));
    GRADFLOW_ASSERT_OK(session.Run(i == 0 ? plain : recomputed, &values[i]));
  }
  for (const int i : {0, 1}) EXPECT_THAT(values[1][i], TensorEq(values[0][i]));
}

TEST(Recomputation, TakesShortGraphsAndRejectsWrongCheckpoints) {
  const Scope scope = Scope::NewRootScope();
  const Output x = ops::Const(scope, 3.0f);
  const Output y = ops::Square(scope, ops::Exp(scope, x));
  GradientBuildOptions options;
  options.automatic_checkpoints = true;
  std::vector<Output> gradients;
  GRADFLOW_ASSERT_OK(AddSymbolicGradients(scope, {y}, {x}, &gradients, options));
  std::vector<Tensor> values;
  GRADFLOW_ASSERT_OK(ClientSession(scope).Run(gradients, &values));
  EXPECT_NEAR(values[0].scalar<float>()(), 2 * std::exp(6.0), 1e-2);
  // The output is also the input.
  GRADFLOW_ASSERT_OK(AddSymbolicGradients(scope, {x}, {x}, &gradients, options));
  options.checkpoints = {Output()};
  EXPECT_THAT(AddSymbolicGradients(scope, {y}, {x}, &gradients, options),
              testing::StatusIs(absl::StatusCode::kInvalidArgument,
                                "checkpoint 0 is not a tensor of the scope's graph"));
}

// Copying a deep chain takes linear time and does not recurse.
TEST(Recomputation, TakesDeepChains) {
  const Scope scope = Scope::NewRootScope();
  const Output x = ops::Const(scope, 0.5f);
  Output y = x;
  for (int i = 0; i < 20000; ++i) y = ops::Tanh(scope, y);
  GradientBuildOptions options;
  options.checkpoints = {x};
  std::vector<Output> gradients;
  GRADFLOW_ASSERT_OK(AddSymbolicGradients(scope, {y}, {x}, &gradients, options));
  options.checkpoints.clear();
  options.automatic_checkpoints = true;
  GRADFLOW_ASSERT_OK(AddSymbolicGradients(scope, {y}, {x}, &gradients, options));
  EXPECT_LE(scope.graph()->num_nodes(), 400000);
}

}  // namespace
}  // namespace gradflow
