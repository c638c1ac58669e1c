// Tests of layers, losses and moving averages: values, gradients, names and errors.
#include "gradflow/training/layers.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "gradflow/gradients/gradients.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/runtime/session/client_session.h"
#include "gradflow/testing/status_matchers.h"
#include "gradflow/testing/tensor_matchers.h"
#include "gradflow/testing/tensors.h"
#include "gradflow/training/losses.h"
#include "gradflow/training/optimizer.h"
#include "gradflow/training/variables.h"

namespace gradflow {
namespace training {
namespace {

using ::gradflow::testing::AsScalar;
using ::gradflow::testing::AsTensor;
using ::gradflow::testing::RandomTensor;
using ::gradflow::testing::StatusIs;
using ::gradflow::testing::TensorEq;
using ::gradflow::testing::TensorNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A graph with an input and a model.
struct Layers {
  Output Input(const PartialTensorShape& shape) {
    x = ops::Placeholder(scope, DT_FLOAT, ops::Placeholder::Shape(shape));
    return x;
  }
  void Start() {
    GRADFLOW_ASSERT_OK(scope.status());
    session = std::make_unique<ClientSession>(scope);
    GRADFLOW_ASSERT_OK(session->Run({}, {}, model.initializers(), nullptr));
  }
  std::vector<Tensor> Run(const Tensor& value, const std::vector<Output>& fetches,
                          const std::vector<Operation>& targets = {}) {
    std::vector<Tensor> outputs;
    GRADFLOW_EXPECT_OK(session->Run({{x, value}}, fetches, targets, &outputs));
    return outputs;
  }
  std::vector<std::string> Names(const std::vector<Output>& variables) const {
    std::vector<std::string> names;
    for (const Output& variable : variables) names.push_back(InfoOf(variable)->name);
    return names;
  }
  Tensor ValueOf(const std::string& name) {
    for (const Output& variable : model.variables()) {
      if (InfoOf(variable)->name != name) continue;
      std::vector<Tensor> outputs;
      GRADFLOW_EXPECT_OK(session->Run({ReadVariable(scope, variable)}, &outputs));
      return outputs.empty() ? Tensor() : outputs[0];
    }
    ADD_FAILURE() << "there is no variable " << name;
    return Tensor();
  }

  Scope scope = Scope::NewRootScope();
  Model model{scope, 3};
  Output x;
  std::unique_ptr<ClientSession> session;
};

TEST(Layers, DenseIsAProductAndABias) {
  Layers g;
  const Output x = g.Input({-1, 3});
  const Output y = Dense(g.scope, &g.model, "a", x, 2);
  const Output again = Dense(g.scope, &g.model, "a", x, 2);
  const Output plain = Dense(g.scope, &g.model, "b", x, 2,
                             LayerOptions().UseBias(false).KernelInitializer(Constant(0.5f)));
  EXPECT_THAT(g.Names(g.model.variables()), ElementsAre("a/kernel", "a/bias", "b/kernel"));
  EXPECT_THAT(g.Names(g.model.trainable()), ElementsAre("a/kernel", "a/bias", "b/kernel"));
  g.Start();
  const Tensor value = AsTensor<float>({1, 2, 3, -1, 0, 2}, {2, 3});
  const Tensor w = g.ValueOf("a/kernel");
  EXPECT_EQ(w.shape(), TensorShape({3, 2}));
  EXPECT_THAT(g.ValueOf("a/bias"), TensorEq(AsTensor<float>({0, 0})));
  const std::vector<Tensor> outputs = g.Run(value, {y, again, plain});
  EXPECT_THAT(outputs[1], TensorEq(outputs[0]));
  EXPECT_THAT(outputs[2], TensorEq(AsTensor<float>({3, 3, 0.5f, 0.5f}, {2, 2})));
  for (int r = 0; r < 2; ++r) {
    for (int c = 0; c < 2; ++c) {
      double sum = 0;
      for (int i = 0; i < 3; ++i) sum += value.matrix<float>()(r, i) * w.matrix<float>()(i, c);
      EXPECT_NEAR(outputs[0].matrix<float>()(r, c), sum, 1e-6);
    }
  }
}

TEST(Layers, FirstValuesDependOnSeedAndOrder) {
  const auto kernels = [](int64_t seed) {
    const Scope scope = Scope::NewRootScope();
    Model model(scope, seed);
    const Output x = ops::Placeholder(scope, DT_FLOAT, ops::Placeholder::Shape({-1, 30}));
    Dense(scope, &model, "b", Dense(scope, &model, "a", x, 30), 30);
    ClientSession session(scope);
    GRADFLOW_EXPECT_OK(session.Run({}, {}, model.initializers(), nullptr));
    std::vector<Tensor> outputs;
    GRADFLOW_EXPECT_OK(session.Run(
        {ReadVariable(scope, model.variables()[0]), ReadVariable(scope, model.variables()[2])},
        &outputs));
    return outputs;
  };
  const std::vector<Tensor> first = kernels(1);
  EXPECT_THAT(kernels(1), ElementsAre(TensorEq(first[0]), TensorEq(first[1])));
  EXPECT_NE(first[0].tensor_data(), first[1].tensor_data());
  EXPECT_NE(first[0].tensor_data(), kernels(2)[0].tensor_data());
}

TEST(Layers, Conv2DHasItsShapes) {
  Layers g;
  const Output x = g.Input({-1, 8, 6, 3});
  const Output same = Conv2D(g.scope, &g.model, "a", x, 4, LayerOptions().Stride(2));
  const Output valid = Conv2D(
      g.scope, &g.model, "b", x, 5,
      LayerOptions().Padding("VALID").Filter(5).UseBias(false).KernelInitializer(Constant(1)));
  const Output flat = Flatten(g.scope, valid);
  EXPECT_THAT(g.Names(g.model.variables()), ElementsAre("a/kernel", "a/bias", "b/kernel"));
  g.Start();
  const std::vector<Tensor> outputs = g.Run(
      AsTensor<float>(std::vector<float>(2 * 8 * 6 * 3, 1), {2, 8, 6, 3}), {same, valid, flat});
  EXPECT_EQ(outputs[0].shape(), TensorShape({2, 4, 3, 4}));
  EXPECT_EQ(outputs[1].shape(), TensorShape({2, 4, 2, 5}));
  EXPECT_EQ(outputs[2].shape(), TensorShape({2, 40}));
  EXPECT_EQ(g.ValueOf("a/kernel").shape(), TensorShape({3, 3, 3, 4}));
  for (const float value : outputs[2].span<float>()) EXPECT_EQ(value, 75);
}

// Computes the mean and the variance of a column. The variance divides by n - 1.
void Moments(const Tensor& x, int c, double* mean, double* variance) {
  const auto m = x.flat_inner_dims<float>();
  const int64_t n = m.dimension(0);
  *mean = 0;
  for (int64_t r = 0; r < n; ++r) *mean += m(r, c) / static_cast<double>(n);
  *variance = 0;
  for (int64_t r = 0; r < n; ++r) {
    *variance += (m(r, c) - *mean) * (m(r, c) - *mean) / static_cast<double>(n - 1);
  }
}

TEST(Layers, BatchNormMovesItsStatistics) {
  for (const TensorShape& shape : {TensorShape({20, 3}), TensorShape({5, 2, 4, 3})}) {
    Layers g;
    const Output x = g.Input(PartialTensorShape(shape));
    const BatchNormOptions options = BatchNormOptions().Momentum(0.75f).Epsilon(0.01f);
    const Output train = BatchNorm(g.scope, &g.model, "n", x, options);
    const Output infer = BatchNorm(g.scope, &g.model, "n", x, options.Training(false));
    EXPECT_THAT(g.Names(g.model.trainable()), ElementsAre("n/gamma", "n/beta"));
    EXPECT_THAT(g.Names(g.model.variables()),
                ElementsAre("n/gamma", "n/beta", "n/moving_mean", "n/moving_variance"));
    EXPECT_EQ(g.model.updates().size(), 2);
    g.Start();
    const Tensor value = RandomTensor(DT_FLOAT, shape, -1, 4);
    const Tensor trained = g.Run(value, {train}, g.model.updates())[0];
    const Tensor inferred = g.Run(value, {infer})[0];
    EXPECT_EQ(trained.shape(), shape);
    const auto in = value.flat_inner_dims<float>();
    const auto n = static_cast<double>(in.dimension(0));
    for (int c = 0; c < 3; ++c) {
      double mean = 0;
      double variance = 0;
      Moments(value, c, &mean, &variance);
      const double moving_mean = 0.25 * mean;
      const double moving_variance = 0.75 + 0.25 * variance;
      EXPECT_NEAR(g.ValueOf("n/moving_mean").flat<float>()(c), moving_mean, 1e-5);
      EXPECT_NEAR(g.ValueOf("n/moving_variance").flat<float>()(c), moving_variance, 1e-5);
      for (int64_t r = 0; r < in.dimension(0); ++r) {
        EXPECT_NEAR(trained.flat_inner_dims<float>()(r, c),
                    (in(r, c) - mean) / std::sqrt(variance * (n - 1) / n + 0.01), 1e-4);
        EXPECT_NEAR(inferred.flat_inner_dims<float>()(r, c),
                    (in(r, c) - moving_mean) / std::sqrt(moving_variance + 0.01), 1e-4);
      }
    }
  }
}

TEST(Layers, FakeQuantTracksTheRange) {
  Layers g;
  const Output x = g.Input({-1});
  const FakeQuantOptions options = FakeQuantOptions().Momentum(0.5f).Range(-2, 6);
  const Output train = FakeQuant(g.scope, &g.model, "q", x, options);
  const Output infer = FakeQuant(g.scope, &g.model, "q", x, options.Training(false));
  EXPECT_THAT(g.Names(g.model.variables()), ElementsAre("q/max", "q/min"));
  EXPECT_TRUE(g.model.trainable().empty());
  g.Start();
  // The range moves from [-2, 6] to [-1, 4], with a step of 5 / 255. 0 stays 0.
  const Tensor value = AsTensor<float>({2, 0.5f, 0, 1.9f});
  const std::vector<Tensor> outputs = g.Run(value, {train}, g.model.updates());
  EXPECT_EQ(g.ValueOf("q/min").scalar<float>()(), -1);
  EXPECT_EQ(g.ValueOf("q/max").scalar<float>()(), 4);
  for (int i = 0; i < 4; ++i) {
    const float y = outputs[0].flat<float>()(i);
    EXPECT_NEAR(y, value.flat<float>()(i), 2.5 / 255 + 1e-6);
    EXPECT_NEAR(y * 255 / 5, std::round(y * 255 / 5), 1e-4);
  }
  // Inference uses the range from training and does not change it.
  EXPECT_THAT(g.Run(value, {infer})[0], TensorEq(outputs[0]));
  EXPECT_THAT(g.Run(AsTensor<float>({100, -100}), {infer})[0],
              TensorNear(AsTensor<float>({4, -1}), 0.01, 0));
  EXPECT_EQ(g.ValueOf("q/max").scalar<float>()(), 4);
}

TEST(Layers, FakeQuantSupportsPowersOfTwo) {
  const auto quantized = [](float max, bool nonnegative, const std::vector<float>& values) {
    Layers g;
    const Output x = g.Input({-1});
    const Output y =
        FakeQuant(g.scope, &g.model, "q", x,
                  FakeQuantOptions().Training(false).Range(-max, max).PowerOfTwo(true).Nonnegative(
                      nonnegative));
    EXPECT_EQ(g.model.variables().size(), nonnegative ? 1 : 2);
    g.Start();
    return g.Run(AsTensor<float>(values), {y})[0];
  };
  // The step is 2^-6 for ranges up to 255 / 64, and 2^-5 beyond.
  EXPECT_THAT(quantized(255.0f / 64, true, {0.016f, 3.0f, -1, 10}),
              TensorEq(AsTensor<float>({1.0f / 64, 3, 0, 255.0f / 64})));
  EXPECT_THAT(quantized(4, true, {0.016f, 0.03f, 10}),
              TensorEq(AsTensor<float>({1.0f / 32, 1.0f / 32, 255.0f / 32})));
  EXPECT_THAT(quantized(127.0f / 64, false, {0.016f, -10, 10}),
              TensorEq(AsTensor<float>({1.0f / 64, -2, 127.0f / 64})));
  // The step of any range is a power of two and covers the range.
  for (float max = 1e-4f; max < 1e4f; max *= 1.37f) {
    const float top = quantized(max, true, {2 * max + 1}).flat<float>()(0);
    int exponent = 0;
    EXPECT_EQ(std::frexp(top / 255, &exponent), 0.5f) << max;
    EXPECT_GE(top, max * (1 - 1e-5f));
    EXPECT_LE(top, max * 2.01f);
  }
}

TEST(Layers, WeightsAreQuantizedByChannel) {
  Layers g;
  const Output x = g.Input({4, 3});
  const Output y = FakeQuantWeights(g.scope, x);
  std::vector<Output> gradients;
  GRADFLOW_ASSERT_OK(AddSymbolicGradients(g.scope, {y}, {x}, &gradients));
  g.Start();
  const Tensor value = AsTensor<float>({1, 0, 100, -2, 0, 30, 0.5f, 0, -7, 1.99f, 0, 99}, {4, 3});
  const std::vector<Tensor> outputs = g.Run(value, {y, gradients[0]});
  for (int c = 0; c < 3; ++c) {
    const float scale = std::vector<float>{2, 0, 100}[c] / 127;
    for (int r = 0; r < 4; ++r) {
      const float q = outputs[0].matrix<float>()(r, c);
      EXPECT_NEAR(q, value.matrix<float>()(r, c), scale / 2 * 1.0001f);
      if (scale > 0) {
        EXPECT_NEAR(q / scale, std::round(q / scale), 1e-3);
      }
    }
  }
  // The largest weight also has a gradient, because its range follows it.
  for (const float gradient : outputs[1].span<float>()) EXPECT_EQ(gradient, 1);
}

TEST(Layers, QuantizedLayersTrain) {
  Layers g;
  const Output x = g.Input({-1, 2});
  const auto network = [&](bool training) {
    Output y = Dense(g.scope, &g.model, "a", x, 16, LayerOptions().WeightBits(8));
    y = BatchNorm(g.scope, &g.model, "n", y, BatchNormOptions().Training(training).Momentum(0.9f));
    y = FakeQuant(g.scope, &g.model, "q", ops::Relu(g.scope, y),
                  FakeQuantOptions().Training(training).Nonnegative(true));
    return Dense(g.scope, &g.model, "b", y, 2, LayerOptions().WeightBits(8));
  };
  const Output labels = ops::Placeholder(g.scope, DT_UINT8);
  const Output loss = SoftmaxCrossEntropy(g.scope, network(true), labels);
  const Output accuracy = Accuracy(g.scope, network(false), labels);
  Adam adam(g.scope, AdamOptions().LearningRate(0.03f));
  Operation train;
  GRADFLOW_ASSERT_OK(adam.Minimize(loss, g.model.trainable(), &train));
  std::vector<Operation> step = g.model.updates();
  step.push_back(train);
  g.Start();
  GRADFLOW_ASSERT_OK(g.session->Run({}, {}, adam.initializers(), nullptr));
  // Points inside and outside of a circle.
  const Tensor points = RandomTensor(DT_FLOAT, {400, 2}, -1, 1);
  Tensor classes(DT_UINT8, {400});
  for (int i = 0; i < 400; ++i) {
    classes.flat<uint8_t>()(i) =
        std::hypot(points.matrix<float>()(i, 0), points.matrix<float>()(i, 1)) < 0.7;
  }
  std::vector<Tensor> outputs;
  for (int i = 0; i < 200; ++i) {
    GRADFLOW_ASSERT_OK(g.session->Run({{x, points}, {labels, classes}}, {loss}, step, &outputs));
  }
  EXPECT_LT(outputs[0].scalar<float>()(), 0.2);
  GRADFLOW_ASSERT_OK(g.session->Run({{x, points}, {labels, classes}}, {accuracy}, &outputs));
  EXPECT_GT(outputs[0].scalar<float>()(), 0.93);
}

TEST(Layers, RejectInvalidArguments) {
  const auto error = [](const std::function<void(Layers*)>& add) {
    Layers g;
    add(&g);
    return g.scope.status();
  };
  const auto is = [](const std::string& text) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text));
  };
  EXPECT_THAT(error([](Layers* g) {
                Dense(g->scope, &g->model, "a", g->Input({2, -1}), 3);
              }),
              is("layer 'a': expected an input of rank 2 with known positive dimensions after the "
                 "first, found shape [2,?]"));
  EXPECT_THAT(error([](Layers* g) {
                Conv2D(g->scope, &g->model, "a", g->Input({2, 3}), 3);
              }),
              is("expected an input of rank 4"));
  EXPECT_THAT(error([](Layers* g) {
                BatchNorm(g->scope, &g->model, "a", g->Input({2, 3, 4}));
              }),
              is("expected an input of rank 2 or 4"));
  EXPECT_THAT(error([](Layers* g) {
                Flatten(g->scope, g->Input({2, -1, 4}));
              }),
              is("found shape [2,?,4]"));
  EXPECT_THAT(error([](Layers* g) {
                Dense(g->scope, &g->model, "a", g->Input({1, 2}), 3);
                Dense(g->scope, &g->model, "a", g->Input({1, 4}), 3);
              }),
              is("variable 'a/kernel' has shape [2,3], expected [4,3]"));
  // The output is empty, like after an error.
  EXPECT_THAT(error([](Layers* g) { Dense(g->scope, &g->model, "a", Output(), 3); }),
              is("layer 'a': the input is empty"));
  EXPECT_THAT(error([](Layers* g) { Conv2D(g->scope, &g->model, "a", Output(), 3); }),
              is("layer 'a': the input is empty"));
  EXPECT_THAT(error([](Layers* g) { BatchNorm(g->scope, &g->model, "a", Output()); }),
              is("layer 'a': the input is empty"));
  EXPECT_THAT(error([](Layers* g) { FakeQuant(g->scope, &g->model, "a", Output()); }),
              is("layer 'a': the input is empty"));
  EXPECT_THAT(error([](Layers* g) { Flatten(g->scope, Output()); }),
              is("expected a tensor to flatten, found none"));
  for (const int bits : {1, 17, 100}) {
    EXPECT_THAT(error([&](Layers* g) {
                  FakeQuant(g->scope, &g->model, "q", g->Input({1}), FakeQuantOptions().Bits(bits));
                }),
                is("expected 2 to 16 bits"));
  }
}

TEST(Losses, AgreeWithTheirFormulas) {
  const Scope s = Scope::NewRootScope();
  const Tensor logits = AsTensor<float>({1, 2, 3, 0, 0, -5, 7, 7.5f, 1}, {3, 3});
  const Output l = ops::Const(s, Input::Initializer(logits));
  const Output targets =
      ops::Const(s, Input::Initializer(AsTensor<float>({1, 0, 3, 1, 0, -5, 7, 7.5f, 4}, {3, 3})));
  const Output w = ops::Const(s, {3.0f, 4.0f});
  for (const DataType dtype : {DT_INT64, DT_INT32, DT_UINT8}) {
    const Output labels = ops::Cast(s, ops::Const(s, {2, 0, 0}), dtype);
    ClientSession session(s);
    std::vector<Tensor> outputs;
    GRADFLOW_ASSERT_OK(
        session.Run({SoftmaxCrossEntropy(s, l, labels), Accuracy(s, l, labels),
                     MeanSquaredError(s, l, targets), L2Regularization(s, {w, w}, 0.1f)},
                    &outputs));
    double sum = 0;
    for (int r = 0; r < 3; ++r) {
      double all = 0;
      for (int c = 0; c < 3; ++c) all += std::exp(double{logits.matrix<float>()(r, c)});
      sum += std::log(all) - logits.matrix<float>()(r, r == 0 ? 2 : 0);
    }
    EXPECT_THAT(outputs[0], TensorNear(AsScalar<float>(static_cast<float>(sum / 3)), 1e-6, 0));
    EXPECT_THAT(outputs[1], TensorNear(AsScalar<float>(2.0f / 3), 1e-6, 0));
    EXPECT_THAT(outputs[2], TensorNear(AsScalar<float>((4 + 1 + 9) / 9.0f), 1e-6, 0));
    EXPECT_THAT(outputs[3], TensorNear(AsScalar<float>(2.5f), 1e-6, 0));
  }
  L2Regularization(s, {}, 1);
  EXPECT_THAT(s.status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("needs a weight")));
}

TEST(Losses, AgreeWithTheirFormulasInDouble) {
  const std::vector<double> xs = {0, 3, -3, 0.25, 40, -40, 1, -1};
  const std::vector<double> ys = {1, 0, 0.5, 0.75, 1, 1, -1.5, 0};
  const auto n = static_cast<double>(xs.size());
  constexpr double kDelta = 1.5;
  double sigmoid = 0;
  double absolute = 0;
  double huber = 0;
  for (size_t i = 0; i < xs.size(); ++i) {
    // Equals -y log(p) - (1 - y) log(1 - p) for p = 1 / (1 + exp(-x)).
    sigmoid += ys[i] * std::log1p(std::exp(-xs[i])) + (1 - ys[i]) * std::log1p(std::exp(xs[i]));
    const double error = std::abs(xs[i] - ys[i]);
    absolute += error;
    huber += error <= kDelta ? error * error / 2 : kDelta * (error - kDelta / 2);
  }
  for (const DataType dtype : {DT_DOUBLE, DT_FLOAT}) {
    const Scope s = Scope::NewRootScope();
    const auto values = [&](const std::vector<double>& of) {
      return ops::Cast(s, ops::Const(s, Input::Initializer(AsTensor<double>(of))), dtype);
    };
    const Output x = values(xs);
    const Output y = values(ys);
    const std::vector<Output> losses = {SigmoidCrossEntropy(s, x, y), MeanAbsoluteError(s, x, y),
                                        HuberLoss(s, x, y, kDelta)};
    std::vector<Output> gradients;
    GRADFLOW_ASSERT_OK(AddSymbolicGradients(s, {losses[0]}, {x}, &gradients));
    std::vector<Output> fetches = losses;
    fetches.push_back(gradients[0]);
    for (Output& fetch : fetches) fetch = ops::Cast(s, fetch, DT_DOUBLE);
    std::vector<Tensor> outputs;
    GRADFLOW_ASSERT_OK(ClientSession(s).Run(fetches, &outputs));
    const double expected[] = {sigmoid / n, absolute / n, huber / n};
    for (int i = 0; i < 3; ++i) {
      EXPECT_NEAR(outputs[i].scalar<double>()(), expected[i], 1e-6 * expected[i]) << i;
    }
    // The gradient is (p - y) / n, also at 0.
    for (size_t i = 0; i < xs.size(); ++i) {
      EXPECT_NEAR(outputs[3].flat<double>()(static_cast<int>(i)),
                  (1 / (1 + std::exp(-xs[i])) - ys[i]) / n, 1e-7);
    }
  }
}

TEST(Losses, SmoothedLabelsCoverAllClasses) {
  const Tensor logits = RandomTensor(DT_FLOAT, {6, 4}, -3, 3);
  for (const float smoothing : {0.0f, 0.125f, 1.0f}) {
    const Scope s = Scope::NewRootScope();
    const Output x = ops::Const(s, Input::Initializer(logits));
    std::vector<Tensor> outputs;
    GRADFLOW_ASSERT_OK(ClientSession(s).Run(
        {SmoothedSoftmaxCrossEntropy(s, x, ops::Const(s, {0, 1, 2, 3, 0, 1}), smoothing)},
        &outputs));
    double loss = 0;
    for (int r = 0; r < 6; ++r) {
      double all = 0;
      for (int c = 0; c < 4; ++c) all += std::exp(double{logits.matrix<float>()(r, c)});
      for (int c = 0; c < 4; ++c) {
        const double label = (c == r % 4 ? 1 - smoothing : 0) + smoothing / 4;
        loss -= label * (logits.matrix<float>()(r, c) - std::log(all)) / 6;
      }
    }
    EXPECT_NEAR(outputs[0].scalar<float>()(), loss, 1e-6);
  }
  const Scope s = Scope::NewRootScope();
  const Output x = ops::Placeholder(s, DT_FLOAT);
  SmoothedSoftmaxCrossEntropy(s, x, x, 1.5f);
  EXPECT_THAT(s.status(), StatusIs(absl::StatusCode::kInvalidArgument,
                                   HasSubstr("expected a smoothing of 0 to 1, found 1.5")));
  const Scope other = Scope::NewRootScope();
  const Output y = ops::Placeholder(other, DT_FLOAT);
  HuberLoss(other, y, y, 0);
  EXPECT_THAT(other.status(), StatusIs(absl::StatusCode::kInvalidArgument,
                                       HasSubstr("expected a positive, finite delta, found 0")));
  const Scope infinite = Scope::NewRootScope();
  const Output z = ops::Placeholder(infinite, DT_FLOAT);
  HuberLoss(infinite, z, z, INFINITY);
  EXPECT_THAT(infinite.status(), StatusIs(absl::StatusCode::kInvalidArgument,
                                          HasSubstr("expected a positive, finite delta")));
}

TEST(ExponentialMovingAverages, FollowVariables) {
  for (const DataType dtype : {DT_FLOAT, DT_DOUBLE}) {
    const Scope s = Scope::NewRootScope();
    const Output w = NewVariable(s, "w", dtype, TensorShape());
    const Output next = ops::Placeholder(s, dtype);
    const Operation assign = AssignVariable(s, w, next);
    ExponentialMovingAverage averages(s, 0.75f);
    Operation update;
    GRADFLOW_ASSERT_OK(averages.Apply(s.WithControlDependencies({assign}), {w}, &update));
    EXPECT_EQ(InfoOf(averages.averages()[0])->name, "w/ExponentialMovingAverage");
    ClientSession session(s);
    const auto scalar = [&](float x) {
      return dtype == DT_FLOAT ? AsScalar<float>(x) : AsScalar<double>(x);
    };
    GRADFLOW_ASSERT_OK(session.Run({{next, scalar(8)}}, {}, {assign}, nullptr));
    GRADFLOW_ASSERT_OK(session.Run({}, {}, averages.initializers(), nullptr));
    std::vector<Tensor> outputs;
    // The update sees the value after the assignment: 8, 6, 4.5.
    for (const float expected : {6.0f, 4.5f}) {
      GRADFLOW_ASSERT_OK(session.Run({{next, scalar(0)}}, {}, {update}, nullptr));
      GRADFLOW_ASSERT_OK(session.Run({ReadVariable(s, averages.averages()[0])}, &outputs));
      EXPECT_THAT(outputs[0], TensorEq(scalar(expected)));
    }
    GRADFLOW_ASSERT_OK(session.Run({}, {}, averages.assignments(), nullptr));
    GRADFLOW_ASSERT_OK(session.Run({ReadVariable(s, w)}, &outputs));
    EXPECT_THAT(outputs[0], TensorEq(scalar(4.5f)));
    EXPECT_THAT(averages.Apply(s, {w}, &update), StatusIs(absl::StatusCode::kFailedPrecondition));
    ExponentialMovingAverage none(s, 0.5f);
    EXPECT_THAT(none.Apply(s, {}, &update), StatusIs(absl::StatusCode::kInvalidArgument));
    EXPECT_THAT(none.Apply(s, {next}, &update),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is not a variable")));
  }
}

}  // namespace
}  // namespace training
}  // namespace gradflow
