// Tests of optimizers, schedules, initializers and savers in graphs.
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <ostream>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gradflow/core/status.h"
#include "gradflow/gradients/gradients.h"
#include "gradflow/graph/scope.h"
#include "gradflow/io/checkpoint.h"
#include "gradflow/io/file.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/runtime/session/client_session.h"
#include "gradflow/testing/status_matchers.h"
#include "gradflow/testing/tensor_matchers.h"
#include "gradflow/testing/tensors.h"
#include "gradflow/training/initializers.h"
#include "gradflow/training/optimizer.h"
#include "gradflow/training/saver.h"
#include "gradflow/training/schedules.h"
#include "gradflow/training/variables.h"
#include "tests/testing/constants.h"
#include "tests/testing/folder_fixture.h"
#include "tests/testing/subprocess.h"

namespace gradflow {
namespace training {
namespace {

using ::gradflow::testing::AsScalar;
using ::gradflow::testing::AsTensor;
using ::gradflow::testing::FolderFixture;
using ::gradflow::testing::StatusIs;
using ::gradflow::testing::TensorEq;
using ::gradflow::testing::TensorNear;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A graph with the variables x and y and a loss, for an optimizer.
struct Problem {
  explicit Problem(bool is_resource) {
    x = NewVariable(scope.WithOpName("x"), "x", DT_DOUBLE, TensorShape(), is_resource);
    y = NewVariable(scope.WithOpName("y"), "y", DT_DOUBLE, {2}, is_resource);
    init = {AssignVariable(scope, x, ops::Const(scope, -1.0)),
            AssignVariable(scope, y, ops::Const(scope, {2.0, -0.5}))};
    const Output vx = ReadVariable(scope, x);
    const Output vy = ReadVariable(scope, y);
    // (x - 1)^2 + sum((y - x)^2)
    loss = ops::Add(scope, ops::Square(scope, ops::Sub(scope, vx, 1.0)),
                    ops::Sum(scope, ops::Square(scope, ops::Sub(scope, vy, vx)), 0));
  }

  Scope scope = Scope::NewRootScope();
  Output x;
  Output y;
  Output loss;
  std::vector<Operation> init;
};

double Loss(const ClientSession& session, const Problem& problem) {
  std::vector<Tensor> outputs;
  GRADFLOW_EXPECT_OK(session.Run({problem.loss}, &outputs));
  return outputs.empty() ? NAN : outputs[0].scalar<double>()();
}

struct Method {
  std::string name;
  std::function<std::unique_ptr<Optimizer>(const Scope&)> make;
  int steps;
  double loss;
  std::vector<std::string> slots;
};

void PrintTo(const Method& method, std::ostream* out) { *out << method.name; }

std::vector<Method> Methods() {
  return {
      {"GradientDescent",
       [](const Scope& s) {
         return std::make_unique<GradientDescent>(s, GradientDescentOptions().LearningRate(0.1f));
       },
       100,
       1e-4,
       {}},
      {"Momentum",
       [](const Scope& s) {
         return std::make_unique<Momentum>(s, MomentumOptions().LearningRate(0.02f));
       },
       200,
       1e-4,
       {"x/Momentum", "y/Momentum"}},
      {"Adagrad",
       [](const Scope& s) {
         return std::make_unique<Adagrad>(s, AdagradOptions().LearningRate(0.5f));
       },
       200,
       1e-3,
       {"x/Adagrad", "y/Adagrad"}},
      {"RMSProp",
       [](const Scope& s) {
         return std::make_unique<RMSProp>(s, RMSPropOptions().LearningRate(0.01f));
       },
       600,
       1e-3,
       {"x/RMSProp", "x/RMSProp_1", "y/RMSProp", "y/RMSProp_1"}},
      {"Adam",
       [](const Scope& s) { return std::make_unique<Adam>(s, AdamOptions().LearningRate(0.05f)); },
       400,
       1e-3,
       {"beta1_power", "beta2_power", "x/Adam", "x/Adam_1", "y/Adam", "y/Adam_1"}},
      {"AdamW",
       [](const Scope& s) { return std::make_unique<AdamW>(s, AdamOptions().LearningRate(0.05f)); },
       400,
       1e-3,
       {"beta1_power", "beta2_power", "x/Adam", "x/Adam_1", "y/Adam", "y/Adam_1"}},
      {"Ftrl",
       [](const Scope& s) { return std::make_unique<Ftrl>(s, FtrlOptions().LearningRate(0.5f)); },
       300,
       1e-3,
       {"x/Ftrl", "x/Ftrl_1", "y/Ftrl", "y/Ftrl_1"}},
  };
}

class MethodTest : public ::testing::TestWithParam<Method> {};
INSTANTIATE_TEST_SUITE_P(All, MethodTest, ::testing::ValuesIn(Methods()),
                         [](const auto& info) { return info.param.name; });

TEST_P(MethodTest, Converges) {
  for (const bool is_resource : {true, false}) {
    Problem problem(is_resource);
    const auto optimizer = GetParam().make(problem.scope);
    Operation train;
    GRADFLOW_ASSERT_OK(optimizer->Minimize(problem.loss, {problem.x, problem.y}, &train));
    std::vector<std::string> slots;
    for (const Output& slot : optimizer->slots()) slots.push_back(InfoOf(slot)->name);
    EXPECT_EQ(slots, GetParam().slots);
    ClientSession session(problem.scope);
    GRADFLOW_ASSERT_OK(session.Run({}, {}, problem.init, nullptr));
    GRADFLOW_ASSERT_OK(session.Run({}, {}, optimizer->initializers(), nullptr));
    EXPECT_GT(Loss(session, problem), 10);
    for (int i = 0; i < GetParam().steps; ++i) {
      GRADFLOW_ASSERT_OK(session.Run({}, {}, {train}, nullptr));
    }
    EXPECT_LT(Loss(session, problem), GetParam().loss);
  }
}

// The options reach the gradients.
TEST(Optimizers, TakeGradientBuildOptions) {
  Problem problem(/*is_resource=*/true);
  GradientDescent descent(problem.scope);
  GradientBuildOptions options;
  options.plain_names = true;
  Operation train;
  GRADFLOW_ASSERT_OK(descent.Minimize(problem.loss, {problem.x, problem.y}, &train, options));
  for (int i = 0; i < problem.scope.graph()->num_nodes(); ++i) {
    EXPECT_THAT(problem.scope.graph()->node(i)->name(),
                ::testing::Not(::testing::HasSubstr("gradients/")));
  }
}

// Eight threads run steps of one session. The effects of steps add up in any order, so the sums
// reveal a lost update.
TEST(Optimizers, ThreadsLoseNoUpdate) {
  constexpr int kThreads = 8;
  constexpr int kSteps = 200;
  constexpr int64_t kSize = 3000;
  for (const bool is_resource : {true, false}) {
    for (const bool use_locking : {true, false}) {
      const Scope s = Scope::NewRootScope();
      const auto vector = [&](const char* name) {
        return NewVariable(s, name, DT_FLOAT, {kSize}, is_resource);
      };
      const std::vector<Output> variables = {vector("w"), vector("v"), vector("accumulator"),
                                             vector("x")};
      const Output& w = variables[0];
      const Output& v = variables[1];
      const Output& accumulator = variables[2];
      const Output& x = variables[3];
      const Output zeros = ops::Fill(s, {kSize}, 0.0f);
      const Output ones = ops::Fill(s, {kSize}, 1.0f);
      std::vector<Operation> init;
      for (const Output& variable : variables) init.push_back(AssignVariable(s, variable, zeros));
      std::vector<Operation> step;
      const Output minus = ops::Const(s, -1.0f);
      const Output rows = ops::Range(s, 0, static_cast<int>(kSize), 3);
      const Output some = ops::Fill(s, ops::Shape(s, rows), 1.0f);
      // A step computes w += 1; accumulator += 1, v -= accumulator; and adds 1 to every third
      // element of x.
      if (is_resource) {
        using Descent = ops::ResourceApplyGradientDescent;
        step.push_back(Descent(s, w, minus, ones, Descent::UseLocking(use_locking)).operation);
        using Momentum = ops::ResourceApplyMomentum;
        step.push_back(
            Momentum(s, v, accumulator, 1.0f, ones, 1.0f, Momentum::UseLocking(use_locking))
                .operation);
        step.push_back(ops::ResourceScatterAdd(s, x, rows, some).operation);
      } else {
        using Descent = ops::ApplyGradientDescent;
        step.push_back(Descent(s, w, minus, ones, Descent::UseLocking(use_locking)).operation);
        using Momentum = ops::ApplyMomentum;
        step.push_back(
            Momentum(s, v, accumulator, 1.0f, ones, 1.0f, Momentum::UseLocking(use_locking))
                .operation);
        step.push_back(
            ops::ScatterAdd(s, x, rows, some, ops::ScatterAdd::UseLocking(use_locking)).operation);
      }
      std::vector<Output> reads;
      for (const Output& variable : variables) reads.push_back(ReadVariable(s, variable));
      GRADFLOW_ASSERT_OK(s.status());
      ClientSession session(s);
      GRADFLOW_ASSERT_OK(session.Run({}, {}, init, nullptr));
      std::vector<std::thread> threads;
      for (int t = 0; t < kThreads; ++t) {
        threads.emplace_back([&] {
          for (int i = 0; i < kSteps; ++i) {
            GRADFLOW_EXPECT_OK(session.Run({}, {}, step, nullptr));
          }
        });
      }
      for (std::thread& thread : threads) thread.join();
      std::vector<Tensor> outputs;
      GRADFLOW_ASSERT_OK(session.Run(reads, &outputs));
      // All numbers are integers below 2^24, which float represents exactly.
      constexpr float kSum = kThreads * kSteps;
      EXPECT_THAT(outputs[0].span<float>(), ::testing::Each(kSum));
      EXPECT_THAT(outputs[1].span<float>(), ::testing::Each(-kSum * (kSum + 1) / 2));
      EXPECT_THAT(outputs[2].span<float>(), ::testing::Each(kSum));
      for (int64_t i = 0; i < kSize; ++i) {
        EXPECT_EQ(outputs[3].flat<float>()(i), i % 3 == 0 ? kSum : 0) << i;
      }
    }
  }
}

// Computes the first three steps of Adam and AdamW for one variable.
TEST(Optimizers, AdamFollowsThePaper) {
  for (const double decay : {0.0, 0.1}) {
    const Scope s = Scope::NewRootScope();
    const Output w = NewVariable(s, "w", DT_DOUBLE, TensorShape());
    const Operation init = AssignVariable(s, w, ops::Const(s, 3.0));
    const Output loss = ops::Square(s, ReadVariable(s, w));
    AdamOptions options = AdamOptions().LearningRate(0.5f);
    options.weight_decay = static_cast<float>(decay);
    Adam adam(s, options);
    Operation train;
    GRADFLOW_ASSERT_OK(adam.Minimize(loss, {w}, &train));
    ClientSession session(s);
    GRADFLOW_ASSERT_OK(session.Run({}, {}, {init}, nullptr));
    GRADFLOW_ASSERT_OK(session.Run({}, {}, adam.initializers(), nullptr));
    double x = 3;
    double m = 0;
    double v = 0;
    for (int t = 1; t <= 3; ++t) {
      const double g = 2 * x;
      x -= 0.5 * decay * x;
      m = 0.9 * m + 0.1 * g;
      v = 0.999 * v + 0.001 * g * g;
      x -= 0.5 * (m / (1 - std::pow(0.9, t))) / (std::sqrt(v / (1 - std::pow(0.999, t))) + 1e-8);
      GRADFLOW_ASSERT_OK(session.Run({}, {}, {train}, nullptr));
    }
    std::vector<Tensor> outputs;
    GRADFLOW_ASSERT_OK(session.Run({ReadVariable(s, w)}, &outputs));
    EXPECT_NEAR(outputs[0].scalar<double>()(), x, 1e-5);
  }
}

// The slots of a second optimizer have new names, like in TensorFlow.
TEST(Optimizers, TwoOptimizersOfAGraphShareNoState) {
  const auto loss_of = [](const Scope& s, const Output& w) {
    return ops::Square(s, ReadVariable(s, w));
  };
  const auto make = [](const Scope& s, const char* name) {
    return NewVariable(s, name, DT_DOUBLE, TensorShape());
  };
  // Returns x and y after three steps. Each has its own optimizer, in one graph or in two.
  const auto train = [&](bool one_graph, std::vector<std::string>* slots) {
    const Scope first = Scope::NewRootScope();
    const Scope second = one_graph ? first : Scope::NewRootScope();
    const Output x = make(first, "x");
    const Output y = make(second, "y");
    Adam adam_x(first, AdamOptions().LearningRate(0.5f));
    Adam adam_y(second, AdamOptions().LearningRate(0.25f));
    Operation train_x;
    Operation train_y;
    GRADFLOW_EXPECT_OK(adam_x.Minimize(loss_of(first, x), {x}, &train_x));
    GRADFLOW_EXPECT_OK(adam_y.Minimize(loss_of(second, y), {y}, &train_y));
    for (const Adam* adam : {&adam_x, &adam_y}) {
      for (const Output& slot : adam->slots()) slots->push_back(InfoOf(slot)->name);
    }
    const Operation init_x = AssignVariable(first, x, ops::Const(first, 3.0));
    const Operation init_y = AssignVariable(second, y, ops::Const(second, -2.0));
    ClientSession session_x(first);
    ClientSession session_y(second);
    ClientSession& y_session = one_graph ? session_x : session_y;
    GRADFLOW_EXPECT_OK(session_x.Run({}, {}, {init_x}, nullptr));
    GRADFLOW_EXPECT_OK(y_session.Run({}, {}, {init_y}, nullptr));
    GRADFLOW_EXPECT_OK(session_x.Run({}, {}, adam_x.initializers(), nullptr));
    GRADFLOW_EXPECT_OK(y_session.Run({}, {}, adam_y.initializers(), nullptr));
    for (int i = 0; i < 3; ++i) {
      GRADFLOW_EXPECT_OK(session_x.Run({}, {}, {train_x}, nullptr));
      GRADFLOW_EXPECT_OK(y_session.Run({}, {}, {train_y}, nullptr));
    }
    std::vector<Tensor> values;
    std::vector<Tensor> outputs;
    GRADFLOW_EXPECT_OK(session_x.Run({ReadVariable(first, x)}, &values));
    GRADFLOW_EXPECT_OK(y_session.Run({ReadVariable(second, y)}, &outputs));
    values.push_back(outputs[0]);
    return values;
  };
  std::vector<std::string> slots;
  std::vector<std::string> unused;
  const std::vector<Tensor> together = train(true, &slots);
  const std::vector<Tensor> apart = train(false, &unused);
  EXPECT_THAT(together, ElementsAre(TensorEq(apart[0]), TensorEq(apart[1])));
  EXPECT_THAT(slots, ElementsAre("beta1_power", "beta2_power", "x/Adam", "x/Adam_1",
                                 "beta1_power_1", "beta2_power_1", "y/Adam", "y/Adam_1"));
  // Two optimizers of the same variable.
  const Scope s = Scope::NewRootScope();
  const Output w = make(s, "w");
  slots.clear();
  for (int i = 0; i < 2; ++i) {
    RMSProp optimizer(s);
    Operation step;
    GRADFLOW_ASSERT_OK(optimizer.Minimize(loss_of(s, w), {w}, &step));
    for (const Output& slot : optimizer.slots()) slots.push_back(InfoOf(slot)->name);
  }
  EXPECT_THAT(slots, ElementsAre("w/RMSProp", "w/RMSProp_1", "w/RMSProp_2", "w/RMSProp_3"));
}

TEST(Optimizers, MinimizeTheRosenbrockFunction) {
  const Scope s = Scope::NewRootScope();
  const Output w = NewVariable(s, "w", DT_DOUBLE, {2});
  const Operation init = AssignVariable(s, w, ops::Const(s, {-1.2, 1.0}));
  const auto parts = ops::Unstack(s, ReadVariable(s, w), 2);
  const Output x = parts[0];
  const Output y = parts[1];
  const Output valley = ops::Square(s, ops::Sub(s, y, ops::Square(s, x)));
  const Output loss = ops::Add(s, ops::Square(s, ops::Sub(s, 1.0, x)), ops::Mul(s, 100.0, valley));
  Adam adam(s, AdamOptions().LearningRate(0.02f));
  Operation train;
  GRADFLOW_ASSERT_OK(adam.Minimize(loss, {w}, &train));
  ClientSession session(s);
  GRADFLOW_ASSERT_OK(session.Run({}, {}, {init}, nullptr));
  GRADFLOW_ASSERT_OK(session.Run({}, {}, adam.initializers(), nullptr));
  for (int i = 0; i < 3000; ++i) GRADFLOW_ASSERT_OK(session.Run({}, {}, {train}, nullptr));
  std::vector<Tensor> outputs;
  GRADFLOW_ASSERT_OK(session.Run({ReadVariable(s, w)}, &outputs));
  EXPECT_NEAR(outputs[0].flat<double>()(0), 1, 1e-2);
  EXPECT_NEAR(outputs[0].flat<double>()(1), 1, 2e-2);
}

TEST(Optimizers, RejectInvalidArguments) {
  Problem problem(true);
  GradientDescent descent(problem.scope);
  Operation train;
  std::vector<Output> gradients;
  EXPECT_THAT(descent.ComputeGradients(problem.loss, {problem.loss}, &gradients),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is not a variable")));
  const Output other = NewVariable(problem.scope, "other", DT_FLOAT, {2});
  EXPECT_THAT(descent.Minimize(problem.loss, {other}, &train),
              StatusIs(absl::StatusCode::kInvalidArgument, "no variable has a gradient"));
  EXPECT_THAT(descent.ApplyGradients(std::vector<Output>(), {problem.x}, &train),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("found 0")));
  EXPECT_THAT(descent.Minimize(problem.loss, {problem.x, problem.x}, &train),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'x' is given twice")));
  GRADFLOW_EXPECT_OK(descent.Minimize(problem.loss, {problem.x, other}, &train));
  EXPECT_THAT(descent.Minimize(problem.loss, {problem.x}, &train),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  Adam adam(problem.scope);
  const Output unknown = NewVariable(problem.scope, "unknown", DT_DOUBLE, PartialTensorShape());
  const Output loss = ops::Sum(problem.scope, ReadVariable(problem.scope, unknown), 0);
  EXPECT_THAT(adam.Minimize(loss, {unknown}, &train),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("shape is not known")));
}

TEST(Optimizers, ClipByGlobalNormScalesGradients) {
  const Scope s = Scope::NewRootScope();
  const auto clip = [&](float norm) {
    const std::vector<Output> clipped =
        ClipByGlobalNorm(s, {ops::Const(s, {3.f, 0.f}), NoGradient(), ops::Const(s, 4.0)}, norm);
    EXPECT_TRUE(IsNoGradient(clipped[1]));
    ClientSession session(s);
    std::vector<Tensor> outputs;
    GRADFLOW_EXPECT_OK(session.Run({clipped[0], clipped[2]}, &outputs));
    return outputs;
  };
  EXPECT_THAT(clip(10),
              ElementsAre(TensorNear(AsTensor<float>({3, 0})), TensorNear(AsScalar<double>(4))));
  const auto clipped = clip(1);
  EXPECT_THAT(clipped[0], TensorNear(AsTensor<float>({0.6f, 0})));
  EXPECT_NEAR(clipped[1].scalar<double>()(), 0.8, 1e-6);
}

// TensorFlow also signals an overflow by NaN.
TEST(Optimizers, ClipByGlobalNormOfInfinitiesIsNaN) {
  const Scope s = Scope::NewRootScope();
  const auto clip = [&](const std::vector<Output>& gradients) {
    ClientSession session(s);
    std::vector<Tensor> outputs;
    GRADFLOW_EXPECT_OK(session.Run(ClipByGlobalNorm(s, gradients, 1), &outputs));
    return outputs;
  };
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float bad : {kInfinity, -kInfinity, std::nanf(""), 1e30f}) {
    const auto clipped = clip({ops::Const(s, {bad, 0.f}), ops::Const(s, {1.f})});
    EXPECT_THAT(clipped[0].span<float>(), ::testing::Each(::testing::IsNan())) << bad;
    EXPECT_THAT(clipped[1].span<float>(), ::testing::Each(::testing::IsNan())) << bad;
  }
  // The squares are infinite in half, or in float.
  const auto half_norm = clip({ops::Cast(s, ops::Const(s, {3000.f, 4000.f}), DT_HALF)});
  EXPECT_THAT(half_norm[0], TensorNear(AsTensor<half>({0.6f, 0.8f})));
  const auto double_norm = clip({ops::Const(s, {3e30, 4e30}), ops::Const(s, {1.f})});
  EXPECT_THAT(double_norm[0], TensorNear(AsTensor<double>({0.6, 0.8})));
}

// AdamW treats variables without decay like Adam.
TEST(Optimizers, AdamWDecaysSomeVariables) {
  const Scope s = Scope::NewRootScope();
  const auto variable = [&](const char* name) {
    return NewVariable(s, name, DT_DOUBLE, TensorShape());
  };
  const std::vector<Output> variables = {variable("dense/kernel"), variable("dense/bias"),
                                         variable("other")};
  std::vector<Operation> init;
  for (const Output& v : variables) init.push_back(AssignVariable(s, v, ops::Const(s, 3.0)));
  const auto loss_of = [&](const Output& v) { return ops::Square(s, ReadVariable(s, v)); };
  AdamOptions options = AdamOptions().LearningRate(0.5f);
  options.weight_decay = 0.25f;
  options.decays = [](const std::string& name) { return name.find("bias") == name.npos; };
  AdamW adamw(s, options);
  Operation train;
  GRADFLOW_ASSERT_OK(adamw.Minimize(ops::Add(s, loss_of(variables[0]), loss_of(variables[1])),
                                    {variables[0], variables[1]}, &train));
  Adam adam(s, AdamOptions().LearningRate(0.5f));
  Operation train_other;
  GRADFLOW_ASSERT_OK(adam.Minimize(loss_of(variables[2]), {variables[2]}, &train_other));
  ClientSession session(s);
  GRADFLOW_ASSERT_OK(session.Run({}, {}, init, nullptr));
  GRADFLOW_ASSERT_OK(session.Run({}, {}, adamw.initializers(), nullptr));
  GRADFLOW_ASSERT_OK(session.Run({}, {}, adam.initializers(), nullptr));
  GRADFLOW_ASSERT_OK(session.Run({}, {}, {train, train_other}, nullptr));
  std::vector<Output> reads;
  for (const Output& v : variables) reads.push_back(ReadVariable(s, v));
  std::vector<Tensor> values;
  GRADFLOW_ASSERT_OK(session.Run(reads, &values));
  EXPECT_THAT(values[1], TensorEq(values[2]));
  // The decay is 3 * 0.5 * 0.25.
  EXPECT_NEAR(values[0].scalar<double>()(), values[2].scalar<double>()() - 0.375, 1e-6);
}

// A method that updates the rows of a table by slices, and its float64 reference.
struct SparseMethod {
  std::string name;
  // The op, or null if the update also changes rows without a gradient.
  const char* op;
  std::function<std::unique_ptr<Optimizer>(const Scope&)> make;
  // The initial values of two slots of each element.
  double slots[2];
  // Updates an element and its slots by its gradient in step t. Steps begin at 1.
  std::function<void(double& x, double* slots, double g, int t)> step;
};

void PrintTo(const SparseMethod& method, std::ostream* out) { *out << method.name; }

// The options are powers of two, which float represents exactly.
std::vector<SparseMethod> SparseMethods() {
  const auto ftrl = [](double& x, double* slots, double g, int) {
    const double accumulated = slots[0] + g * g;
    slots[1] += g - (std::sqrt(accumulated) - std::sqrt(slots[0])) / 0.125 * x;
    slots[0] = accumulated;
    const double quadratic = std::sqrt(accumulated) / 0.125 + 2 * 0.25;
    x = std::abs(slots[1]) > 0.125 ? (std::copysign(0.125, slots[1]) - slots[1]) / quadratic : 0;
  };
  const auto momentum = [](bool nesterov) {
    return [nesterov](double& x, double* slots, double g, int) {
      slots[0] = 0.5 * slots[0] + g;
      x -= 0.125 * (nesterov ? g + 0.5 * slots[0] : slots[0]);
    };
  };
  const auto make_momentum = [](bool nesterov) {
    return [nesterov](const Scope& s) {
      MomentumOptions options = MomentumOptions().LearningRate(0.125f);
      options.momentum = 0.5f;
      options.use_nesterov = nesterov;
      return std::make_unique<Momentum>(s, options);
    };
  };
  return {
      {"GradientDescent",
       "ScatterSub",
       [](const Scope& s) {
         return std::make_unique<GradientDescent>(s, GradientDescentOptions().LearningRate(0.125f));
       },
       {0, 0},
       [](double& x, double*, double g, int) { x -= 0.125 * g; }},
      {"Momentum", "SparseApplyMomentum", make_momentum(false), {0, 0}, momentum(false)},
      {"NesterovMomentum", "SparseApplyMomentum", make_momentum(true), {0, 0}, momentum(true)},
      {"Adagrad",
       "SparseApplyAdagrad",
       [](const Scope& s) {
         AdagradOptions options = AdagradOptions().LearningRate(0.125f);
         options.initial_accumulator_value = 0.25f;
         return std::make_unique<Adagrad>(s, options);
       },
       {0.25, 0},
       [](double& x, double* slots, double g, int) {
         slots[0] += g * g;
         x -= 0.125 * g / std::sqrt(slots[0]);
       }},
      {"RMSProp",
       "SparseApplyRMSProp",
       [](const Scope& s) {
         RMSPropOptions options = RMSPropOptions().LearningRate(0.125f);
         options.decay = 0.75f;
         options.momentum = 0.5f;
         options.epsilon = 0x1p-20f;
         return std::make_unique<RMSProp>(s, options);
       },
       {1, 0},
       [](double& x, double* slots, double g, int) {
         slots[0] = 0.75 * slots[0] + 0.25 * g * g;
         slots[1] = 0.5 * slots[1] + 0.125 * g / std::sqrt(slots[0] + 0x1p-20);
         x -= slots[1];
       }},
      {"Ftrl",
       "SparseApplyFtrl",
       [](const Scope& s) {
         FtrlOptions options = FtrlOptions().LearningRate(0.125f);
         options.initial_accumulator_value = 0.25f;
         options.l1 = 0.125f;
         options.l2 = 0.25f;
         return std::make_unique<Ftrl>(s, options);
       },
       {0.25, 0},
       ftrl},
      {"Adam",
       nullptr,
       [](const Scope& s) {
         AdamOptions options = AdamOptions().LearningRate(0.125f);
         options.beta1 = 0.5f;
         options.beta2 = 0.75f;
         options.epsilon = 0x1p-20f;
         return std::make_unique<Adam>(s, options);
       },
       {0, 0},
       [](double& x, double* slots, double g, int t) {
         slots[0] = 0.5 * slots[0] + 0.5 * g;
         slots[1] = 0.75 * slots[1] + 0.25 * g * g;
         const double rate = 0.125 * std::sqrt(1 - std::pow(0.75, t)) / (1 - std::pow(0.5, t));
         x -= rate * slots[0] / (std::sqrt(slots[1]) + 0x1p-20);
       }},
  };
}

class SparseMethodTest : public ::testing::TestWithParam<SparseMethod> {};
INSTANTIATE_TEST_SUITE_P(All, SparseMethodTest, ::testing::ValuesIn(SparseMethods()),
                         [](const auto& info) { return info.param.name; });

TEST_P(SparseMethodTest, ChangesTheRowsThatAreGathered) {
  constexpr int kRows = 7;
  constexpr int kColumns = 2;
  const SparseMethod& method = GetParam();
  // Mode 0 is ResourceGather of a resource. Modes 1 and 2 are GatherV2 of a value that is read from
  // a resource or a reference.
  for (const int mode : {0, 1, 2}) {
    const bool is_resource = mode < 2;
    const Scope s = Scope::NewRootScope();
    const Output table = NewVariable(s, "table", DT_DOUBLE, {kRows, kColumns}, is_resource);
    const Output rows = ops::Placeholder(s, DT_INT64, ops::Placeholder::Shape({-1}));
    const Output targets = ops::Placeholder(s, DT_DOUBLE, ops::Placeholder::Shape({-1, kColumns}));
    const Output gathered = mode == 0 ? Output(ops::ResourceGather(s, table, rows, DT_DOUBLE))
                                      : Output(ops::GatherV2(s, ReadVariable(s, table), rows, 0));
    const Output loss =
        ops::Mul(s, ops::Sum(s, ops::Square(s, ops::Sub(s, gathered, targets)), {0, 1}), 0.5);
    const auto optimizer = method.make(s);
    Operation train;
    GRADFLOW_ASSERT_OK(optimizer->Minimize(loss, {table}, &train));
    GraphDef graph;
    GRADFLOW_ASSERT_OK(s.ToGraphDef(&graph));
    const std::string op =
        absl::StrCat(is_resource ? "Resource" : "", method.op == nullptr ? "ApplyAdam" : method.op);
    EXPECT_EQ(std::count_if(graph.node().begin(), graph.node().end(),
                            [&](const NodeDef& node) { return node.op() == op; }),
              1)
        << op;
    std::vector<double> expected(kRows * kColumns);
    for (size_t i = 0; i < expected.size(); ++i) expected[i] = static_cast<double>(i) / 4 - 2;
    const Operation init = AssignVariable(
        s, table, ops::Const(s, Input::Initializer(AsTensor<double>(expected, {kRows, kColumns}))));
    ClientSession session(s);
    GRADFLOW_ASSERT_OK(session.Run({}, {}, {init}, nullptr));
    GRADFLOW_ASSERT_OK(session.Run({}, {}, optimizer->initializers(), nullptr));
    std::vector<std::array<double, 2>> slots(expected.size(), {method.slots[0], method.slots[1]});
    std::mt19937 random(5);
    for (int t = 1; t <= 100; ++t) {
      // Some rows occur several times, the last row never, and some steps have no rows.
      std::vector<int64_t> chosen(t % 10 == 0 ? 0 : 4);
      std::vector<double> goals(chosen.size() * kColumns);
      for (int64_t& row : chosen) row = static_cast<int64_t>(random() % (kRows - 1));
      for (double& goal : goals) goal = static_cast<double>(random() % 16) / 8;
      std::vector<double> gradient(expected.size());
      std::vector<bool> has_gradient(kRows);
      for (size_t i = 0; i < goals.size(); ++i) {
        const int64_t at = chosen[i / kColumns] * kColumns + static_cast<int64_t>(i) % kColumns;
        gradient[at] += expected[at] - goals[i];
        has_gradient[chosen[i / kColumns]] = true;
      }
      for (size_t i = 0; i < expected.size(); ++i) {
        if (method.op != nullptr && !has_gradient[i / kColumns]) continue;
        method.step(expected[i], slots[i].data(), gradient[i], t);
      }
      const auto count = static_cast<int64_t>(chosen.size());
      GRADFLOW_ASSERT_OK(session.Run({{rows, AsTensor<int64_t>(chosen)},
                                      {targets, AsTensor<double>(goals, {count, kColumns})}},
                                     {}, {train}, nullptr));
    }
    std::vector<Tensor> outputs;
    GRADFLOW_ASSERT_OK(session.Run({ReadVariable(s, table)}, &outputs));
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(outputs[0].flat<double>()(i), expected[i], 1e-10) << i;
    }
  }
}

// Slices and tensors are clipped by one norm.
TEST(Optimizers, ClipsSlices) {
  const Scope s = Scope::NewRootScope();
  const Output table = NewVariable(s, "table", DT_FLOAT, {4, 1});
  const Output w = NewVariable(s, "w", DT_FLOAT, TensorShape());
  const Output unused = NewVariable(s, "unused", DT_FLOAT, TensorShape());
  const Output gathered = ops::ResourceGather(s, table, {2, 0, 2}, DT_FLOAT);
  const Output loss =
      ops::Add(s, ops::Sum(s, gathered, {0, 1}), ops::Mul(s, ReadVariable(s, w), 1.0f));
  GradientDescent descent(s, GradientDescentOptions().LearningRate(1));
  std::vector<SparseGradient> gradients;
  GRADFLOW_ASSERT_OK(descent.ComputeGradients(loss, {table, w, unused}, &gradients));
  ASSERT_TRUE(gradients[0].is_sparse);
  // The norm of (1, 1, 1) and 1 is 2.
  gradients = ClipByGlobalNorm(s, gradients, 0.5f);
  EXPECT_TRUE(gradients[0].is_sparse);
  EXPECT_TRUE(IsNoGradient(gradients[2].dense));
  Operation train;
  GRADFLOW_ASSERT_OK(descent.ApplyGradients(gradients, {table, w, unused}, &train));
  ClientSession session(s);
  GRADFLOW_ASSERT_OK(
      session.Run({}, {},
                  {AssignVariable(s, table, ops::Const(s, {{0.f}, {0.f}, {0.f}, {0.f}})),
                   AssignVariable(s, w, ops::Const(s, 0.f))},
                  nullptr));
  GRADFLOW_ASSERT_OK(session.Run({}, {}, {train}, nullptr));
  std::vector<Tensor> outputs;
  GRADFLOW_ASSERT_OK(session.Run({ReadVariable(s, table), ReadVariable(s, w)}, &outputs));
  EXPECT_THAT(outputs[0], TensorNear(AsTensor<float>({-0.25f, 0, -0.5f, 0}, {4, 1})));
  EXPECT_THAT(outputs[1], TensorNear(AsScalar<float>(-0.25f)));
}

TEST(Schedules, AgreeWithTheirFormulas) {
  const Scope s = Scope::NewRootScope();
  const Output step = ops::Placeholder(s, DT_INT64);
  const Output constant = PiecewiseConstant(s, step, {10, 20}, {1, 0.5f, 0.25f});
  const Output exponential = ExponentialDecay(s, step, 0.1f, 10, 0.5f);
  const Output stairs = ExponentialDecay(s, step, 0.1f, 10, 0.5f, true);
  const Output cosine = CosineDecay(s, step, 0.2f, 20, 0.1f);
  const Output warm = WarmUp(s, step, ops::Const(s, 2.f), 8);
  GRADFLOW_ASSERT_OK(s.status());
  ClientSession session(s);
  for (const int64_t n :
       {int64_t{0}, int64_t{5}, int64_t{10}, int64_t{11}, int64_t{20}, int64_t{35}}) {
    std::vector<Tensor> outputs;
    GRADFLOW_ASSERT_OK(session.Run({{step, AsScalar<int64_t>(n)}},
                                   {constant, exponential, stairs, cosine, warm}, &outputs));
    const auto value = [&](int i) { return outputs[i].scalar<float>()(); };
    const double x = static_cast<double>(n);
    EXPECT_EQ(value(0), n <= 10 ? 1 : n <= 20 ? 0.5f : 0.25f) << n;
    EXPECT_NEAR(value(1), 0.1 * std::pow(0.5, x / 10), 1e-7);
    EXPECT_NEAR(value(2), 0.1 * std::pow(0.5, std::floor(x / 10)), 1e-7);
    EXPECT_NEAR(value(3), 0.2 * (0.1 + 0.9 * (1 + std::cos(M_PI * std::min(x / 20, 1.0))) / 2),
                1e-7);
    EXPECT_NEAR(value(4), 2 * std::min((x + 1) / 8, 1.0), 1e-6);
  }
  PiecewiseConstant(s, step, {10}, {1});
  EXPECT_THAT(s.status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("expected 2 rates")));
}

TEST(Initializers, HaveTheirDistributions) {
  const Scope s = Scope::NewRootScope();
  InitializerOptions options;
  options.shape = {3, 3, 40, 60};
  options.seed = 7;
  const Output glorot = GlorotUniform(s, options);
  const Output he = HeNormal(s, options);
  const Output truncated = TruncatedNormal(s, options, 0.5f);
  const Output again = HeNormal(s, options);
  options.seed = 8;
  const Output other = HeNormal(s, options);
  options.dtype = DT_DOUBLE;
  options.shape = {4, 10, 20};
  const Output orthogonal = Orthogonal(s, options);
  options.shape = {2, 3};
  const Output constant = ConstantValues(s, options, 0.5f);
  GRADFLOW_ASSERT_OK(s.status());
  ClientSession session(s);
  std::vector<Tensor> outputs;
  GRADFLOW_ASSERT_OK(
      session.Run({glorot, he, truncated, again, other, orthogonal, constant}, &outputs));
  const auto moments = [&](int i) {
    double sum = 0;
    double squares = 0;
    double most = 0;
    for (const float x : outputs[i].span<float>()) {
      sum += x;
      squares += x * x;
      most = std::max<double>(most, std::abs(x));
    }
    const double n = static_cast<double>(outputs[i].NumElements());
    return std::vector<double>{sum / n, std::sqrt(squares / n), most};
  };
  const double bound = std::sqrt(6.0 / (9 * 40 + 9 * 60));
  EXPECT_NEAR(moments(0)[0], 0, 3e-3);
  EXPECT_NEAR(moments(0)[1], bound / std::sqrt(3), 2e-3);
  EXPECT_LE(moments(0)[2], bound * 1.0001);
  EXPECT_NEAR(moments(1)[1], std::sqrt(2.0 / (9 * 40)), 2e-3);
  EXPECT_LE(moments(2)[2], 1.0001);
  EXPECT_THAT(outputs[3], TensorEq(outputs[1]));
  EXPECT_NE(outputs[4].flat<float>()(0), outputs[1].flat<float>()(0));
  // A matrix of 40 rows and 20 orthonormal columns.
  const auto q = outputs[5].flat<double>();
  for (int a = 0; a < 20; ++a) {
    for (int b = 0; b <= a; ++b) {
      double dot = 0;
      for (int r = 0; r < 40; ++r) dot += q(r * 20 + a) * q(r * 20 + b);
      EXPECT_NEAR(dot, a == b ? 1 : 0, 1e-5);
    }
  }
  EXPECT_THAT(outputs[6], TensorEq(AsTensor<double>({0.5, 0.5, 0.5, 0.5, 0.5, 0.5}, {2, 3})));
}

class SaverTest : public FolderFixture {};

TEST_F(SaverTest, ContinuesWithTheSameBits) {
  Problem problem(true);
  Adam adam(problem.scope, AdamOptions().LearningRate(0.05f));
  Operation train;
  GRADFLOW_ASSERT_OK(adam.Minimize(problem.loss, {problem.x, problem.y}, &train));
  std::vector<Output> variables = adam.slots();
  variables.push_back(problem.x);
  variables.push_back(problem.y);
  SaverOptions options;
  options.max_to_keep = 2;
  Saver saver(problem.scope, variables, options);
  GRADFLOW_ASSERT_OK(problem.scope.status());
  ClientSession session(problem.scope);
  GRADFLOW_ASSERT_OK(session.Run({}, {}, problem.init, nullptr));
  GRADFLOW_ASSERT_OK(session.Run({}, {}, adam.initializers(), nullptr));
  EXPECT_THAT(LatestCheckpoint(folder()), StatusIs(absl::StatusCode::kNotFound));
  for (int i = 0; i < 30; ++i) {
    GRADFLOW_ASSERT_OK(session.Run({}, {}, {train}, nullptr));
    if (i % 10 != 9) continue;
    GRADFLOW_ASSERT_OK(saver.Save(session, File("model/ckpt"), i + 1));
  }
  EXPECT_THAT(saver.checkpoints(), ElementsAre(File("model/ckpt-20"), File("model/ckpt-30")));
  EXPECT_FALSE(std::filesystem::exists(File("model/ckpt-10.index")));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::string latest, LatestCheckpoint(File("model")));
  EXPECT_EQ(latest, File("model/ckpt-30"));

  ClientSession resumed(problem.scope);
  GRADFLOW_ASSERT_OK(saver.Restore(resumed, File("model/ckpt-20")));
  for (int i = 0; i < 10; ++i) GRADFLOW_ASSERT_OK(resumed.Run({}, {}, {train}, nullptr));
  std::vector<Tensor> expected;
  std::vector<Tensor> actual;
  const std::vector<Output> reads = {ReadVariable(problem.scope, problem.x),
                                     ReadVariable(problem.scope, problem.y)};
  GRADFLOW_ASSERT_OK(session.Run(reads, &expected));
  GRADFLOW_ASSERT_OK(resumed.Run(reads, &actual));
  EXPECT_THAT(actual, ElementsAre(TensorEq(expected[0]), TensorEq(expected[1])));

  // The names are the same as in TensorFlow.
  const auto checkpoint = Checkpoint::Open(latest);
  GRADFLOW_ASSERT_OK(checkpoint);
  EXPECT_THAT(checkpoint->Names(), ElementsAre("beta1_power", "beta2_power", "x", "x/Adam",
                                               "x/Adam_1", "y", "y/Adam", "y/Adam_1"));
}

TEST_F(SaverTest, AFailureChangesNothing) {
  Problem problem(true);
  Saver saver(problem.scope, {problem.x, problem.y});
  ClientSession session(problem.scope);
  EXPECT_THAT(saver.Save(session, File("c"), 1), StatusIs(absl::StatusCode::kFailedPrecondition,
                                                          HasSubstr("has not been initialized")));
  EXPECT_FALSE(std::filesystem::exists(File("checkpoint")));
  GRADFLOW_ASSERT_OK(session.Run({}, {}, problem.init, nullptr));
  GRADFLOW_ASSERT_OK(saver.Save(session, File("c"), 1));
  EXPECT_FALSE(saver.Save(session, "/proc/none/c", 2).ok());
  EXPECT_THAT(saver.checkpoints(), ElementsAre(File("c-1")));
  // The last byte is an element of y.
  const std::string data = File("c-1.data-00000-of-00001");
  std::filesystem::resize_file(data, std::filesystem::file_size(data) - 1);
  const double before = Loss(session, problem);
  EXPECT_THAT(saver.Restore(session, File("c-1")), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_EQ(Loss(session, problem), before);
  // The value has another shape.
  for (const bool is_resource : {true, false}) {
    Problem other(is_resource);
    Saver other_saver(other.scope, {other.x, other.y});
    GRADFLOW_ASSERT_OK(other.scope.status());
    ClientSession other_session(other.scope);
    GRADFLOW_ASSERT_OK(other_session.Run({}, {}, other.init, nullptr));
    const double other_before = Loss(other_session, other);
    for (const char* wrong : {"x", "y"}) {
      const bool wrong_x = wrong[0] == 'x';
      GRADFLOW_ASSERT_OK(WriteCheckpoint(
          File("w"), {{"x", wrong_x ? AsTensor<double>({5, 6, 7}) : AsScalar<double>(5), ""},
                      {"y", wrong_x ? AsTensor<double>({5, 6}) : AsScalar<double>(6), ""}}));
      for (int i = 0; i < 20; ++i) {
        EXPECT_THAT(other_saver.Restore(other_session, File("w")),
                    StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("EnsureShape")));
        EXPECT_EQ(Loss(other_session, other), other_before);
      }
    }
  }
  std::ofstream(File("checkpoint")) << "nothing\n";
  EXPECT_THAT(LatestCheckpoint(folder()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("names no checkpoint")));
}

// A saver continues with the checkpoints of an earlier saver, and does not overwrite a checkpoint
// that is listed.
TEST_F(SaverTest, ContinuesAfterAnotherSaver) {
  Problem problem(true);
  SaverOptions options;
  options.max_to_keep = 2;
  Saver first(problem.scope, {problem.x, problem.y}, options);
  Saver second(problem.scope, {problem.x, problem.y}, options);
  ClientSession session(problem.scope);
  GRADFLOW_ASSERT_OK(session.Run({}, {}, problem.init, nullptr));
  GRADFLOW_ASSERT_OK(first.Save(session, File("c"), 1));
  GRADFLOW_ASSERT_OK(first.Save(session, File("c"), 2));
  // The same folder under another name.
  GRADFLOW_ASSERT_OK(second.Save(session, folder() + "/./c", 2));
  EXPECT_THAT(*LatestCheckpoint(folder()), HasSubstr("c-2-1"));
  EXPECT_FALSE(std::filesystem::exists(File("c-1.index")));
  EXPECT_FALSE(std::filesystem::exists(File("c-1.data-00000-of-00001")));
  GRADFLOW_ASSERT_OK(second.Restore(session, File("c-2")));
  GRADFLOW_ASSERT_OK(second.Restore(session, File("c-2-1")));
  // Files that the state file does not list are overwritten.
  std::ofstream(File("c-3.index")) << "left over";
  GRADFLOW_ASSERT_OK(second.Save(session, File("c"), 3));
  EXPECT_EQ(*LatestCheckpoint(folder()), File("c-3"));
  GRADFLOW_ASSERT_OK(second.Restore(session, File("c-3")));
  // Files in other folders are never removed, even if the state file lists them.
  std::filesystem::create_directories(File("other"));
  std::filesystem::copy(File("c-3.index"), File("other/d-1.index"));
  for (const char* name : {"../other/d-1", "other/d-1"}) {
    std::ofstream(File("checkpoint")) << "model_checkpoint_path: \"c-3\"\n"
                                      << "all_model_checkpoint_paths: \"" << name << "\"\n"
                                      << "all_model_checkpoint_paths: \"c-2-1\"\n"
                                      << "all_model_checkpoint_paths: \"c-3\"\n";
    GRADFLOW_ASSERT_OK(second.Save(session, File("c"), 4));
    EXPECT_TRUE(std::filesystem::exists(File("other/d-1.index")));
  }
}

// TensorFlow writes checkpoints with several data files.
TEST_F(SaverTest, RemovesAllDataFiles) {
  GRADFLOW_ASSERT_OK(WriteCheckpoint(File("a"), {{"x", AsScalar<double>(5), ""}}));
  GRADFLOW_ASSERT_OK(WriteCheckpoint(File("b"), {{"y", AsTensor<double>({6, 7}), ""}}));
  GRADFLOW_ASSERT_OK(MergeCheckpoints({File("a"), File("b")}, File("c-1")));
  std::ofstream(File("checkpoint")) << "model_checkpoint_path: \"c-1\"\n";
  const std::vector<std::string> others = {File("c-10.data-00000-of-00001"),
                                           File("c-1.data-notes.txt")};
  for (const std::string& file : others) std::ofstream(file) << "not of the checkpoint";
  Problem problem(true);
  SaverOptions options;
  options.max_to_keep = 1;
  Saver saver(problem.scope, {problem.x, problem.y}, options);
  ClientSession session(problem.scope);
  GRADFLOW_ASSERT_OK(saver.Restore(session, File("c-1")));
  const std::vector<std::string> files = {File("c-1.index"), File("c-1.data-00000-of-00002"),
                                          File("c-1.data-00001-of-00002")};
  for (const std::string& file : files) EXPECT_TRUE(std::filesystem::exists(file)) << file;
  GRADFLOW_ASSERT_OK(saver.Save(session, File("c"), 2));
  EXPECT_THAT(saver.checkpoints(), ElementsAre(File("c-2")));
  for (const std::string& file : files) EXPECT_FALSE(std::filesystem::exists(file)) << file;
  for (const std::string& file : others) EXPECT_TRUE(std::filesystem::exists(file)) << file;
}

TEST_F(SaverTest, SavesCounters) {
  Problem problem(true);
  SaverOptions options;
  options.counters = {"step", "input/position"};
  Saver saver(problem.scope, {problem.x}, options);
  GRADFLOW_ASSERT_OK(problem.scope.status());
  ClientSession session(problem.scope);
  GRADFLOW_ASSERT_OK(session.Run({}, {}, problem.init, nullptr));
  GRADFLOW_ASSERT_OK(saver.Save(session, File("c"), 1, {12, int64_t{1} << 60}));
  std::vector<int64_t> counters = {7};
  GRADFLOW_ASSERT_OK(saver.Restore(session, File("c-1"), &counters));
  EXPECT_THAT(counters, ElementsAre(12, int64_t{1} << 60));
  GRADFLOW_ASSERT_OK(saver.Restore(session, File("c-1")));
  EXPECT_THAT(Checkpoint::Open(File("c-1"))->Names(), ElementsAre("input/position", "step", "x"));
  EXPECT_THAT(
      saver.Save(session, File("c"), 2, {1}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("expected 2 counters, found 1")));
  // If a counter in the file is not a scalar, no variable changes.
  GRADFLOW_ASSERT_OK(WriteCheckpoint(File("d"), {{"x", AsScalar<double>(5), ""},
                                                 {"step", AsTensor<int64_t>({1, 2}), ""},
                                                 {"input/position", AsScalar<int64_t>(1), ""}}));
  EXPECT_THAT(saver.Restore(session, File("d"), &counters),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("[2]")));
  std::vector<Tensor> values;
  GRADFLOW_ASSERT_OK(session.Run({ReadVariable(problem.scope, problem.x)}, &values));
  EXPECT_THAT(values[0], TensorEq(AsScalar<double>(-1)));
  // The name of the counter is the name of a variable.
  options.counters = {"x"};
  const Saver wrong(problem.scope, {problem.x}, options);
  EXPECT_THAT(problem.scope.status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'x' is given twice")));
}

// If a file cannot be written, for example on a full disk, the earlier checkpoints remain.
TEST_F(SaverTest, AFullDiskLosesNothing) {
  Problem problem(true);
  Saver saver(problem.scope, {problem.x, problem.y});
  ClientSession session(problem.scope);
  GRADFLOW_ASSERT_OK(session.Run({}, {}, problem.init, nullptr));
  GRADFLOW_ASSERT_OK(saver.Save(session, File("c"), 1));
  struct rlimit before = {};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  int failed = 0;
  std::string before_it = File("c-1");
  for (rlim_t size = 0; size < 200; size += 10) {
    struct rlimit small = before;
    small.rlim_cur = size;
    setrlimit(RLIMIT_FSIZE, &small);
    const absl::Status status = saver.Save(session, File("c"), 2);
    setrlimit(RLIMIT_FSIZE, &before);
    const std::string latest = *LatestCheckpoint(folder());
    failed += status.ok() ? 0 : 1;
    EXPECT_EQ(latest, status.ok() ? saver.checkpoints().back() : before_it) << size;
    EXPECT_EQ(latest == before_it, !status.ok()) << size;
    GRADFLOW_EXPECT_OK(saver.Restore(session, latest));
    GRADFLOW_EXPECT_OK(saver.Restore(session, before_it));
    before_it = latest;
  }
  EXPECT_GT(failed, 5);
  EXPECT_LT(failed, 20);
  std::signal(SIGXFSZ, old_handler);
}

// If the folder is not writable, the earlier checkpoints remain.
TEST_F(SaverTest, AnUnwritableFolderLosesNothing) {
  Problem problem(true);
  Saver saver(problem.scope, {problem.x, problem.y});
  ClientSession session(problem.scope);
  GRADFLOW_ASSERT_OK(session.Run({}, {}, problem.init, nullptr));
  GRADFLOW_ASSERT_OK(saver.Save(session, File("c"), 1));
  ASSERT_EQ(chmod(folder().c_str(), 0555), 0);
  // Permissions do not bind the superuser.
  const bool is_superuser = geteuid() == 0;
  if (is_superuser) {
    ASSERT_EQ(seteuid(65534), 0);
  }
  const absl::Status status = saver.Save(session, File("c"), 2);
  if (is_superuser) {
    ASSERT_EQ(seteuid(0), 0);
  }
  ASSERT_EQ(chmod(folder().c_str(), 0755), 0);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kPermissionDenied,
                               AllOf(HasSubstr("/c-2.data"), HasSubstr("cannot write"))));
  EXPECT_EQ(*LatestCheckpoint(folder()), File("c-1"));
  EXPECT_THAT(saver.checkpoints(), ElementsAre(File("c-1")));
  GRADFLOW_EXPECT_OK(saver.Restore(session, File("c-1")));
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder())) {
    files += entry.exists() ? 1 : 0;
  }
  EXPECT_EQ(files, 3);
}

// Returns a folder that a death test shares with its child process. The child runs the test from
// the beginning and inherits the environment variable. Other runs of the test use other folders.
std::string FolderOfDeathTest(const std::string& name) {
  const std::string variable = absl::StrCat("GRADFLOW_TEST_FOLDER_", name);
  if (const char* const folder = std::getenv(variable.c_str()); folder != nullptr) {
    std::filesystem::create_directory(folder);
    return folder;
  }
  const std::string folder = absl::StrCat(::testing::TempDir(), "/gradflow_", name, "_", getpid());
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  setenv(variable.c_str(), folder.c_str(), 1);
  return folder;
}

// The parameter is the file size at which the saving process is killed: in the values, in the
// index, or in the state file.
class SaverDeathTest : public ::testing::TestWithParam<int> {
 protected:
  static constexpr int kCheckpoints = 40;

  // Saves kCheckpoints checkpoints whose values all equal their step. Then saves one more, which
  // ends the process.
  static void SaveUntilKilled(const std::string& folder, rlim_t bytes) {
    const Scope s = Scope::NewRootScope();
    std::vector<Output> variables;
    std::vector<Operation> assignments;
    const Output value = ops::Placeholder(s, DT_DOUBLE);
    for (int i = 0; i < 20; ++i) {
      variables.push_back(NewVariable(s, absl::StrCat("v", i), DT_DOUBLE, {2}));
      assignments.push_back(AssignVariable(s, variables.back(), ops::Fill(s, {2}, value)));
    }
    SaverOptions options;
    // The last save removes the first checkpoint after it has written the state file.
    options.max_to_keep = kCheckpoints;
    Saver saver(s, variables, options);
    ClientSession session(s);
    for (int step = 1; step <= kCheckpoints + 1; ++step) {
      GRADFLOW_ASSERT_OK(
          session.Run({{value, static_cast<double>(step)}}, {}, assignments, nullptr));
      if (step > kCheckpoints) {
        const struct rlimit no_core = {0, 0};
        const struct rlimit small = {bytes, bytes};
        ASSERT_EQ(setrlimit(RLIMIT_CORE, &no_core), 0);
        ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
      }
      GRADFLOW_ASSERT_OK(saver.Save(session, folder + "/c", step));
    }
  }
};

TEST_P(SaverDeathTest, AKillLosesNothing) {
  ::testing::FLAGS_gtest_death_test_style = ::gradflow::testing::kDeathTestStyle;
  const std::string folder = FolderOfDeathTest(absl::StrCat("saver_killed_", GetParam()));
  EXPECT_EXIT(SaveUntilKilled(folder, GetParam()), ::testing::KilledBySignal(SIGXFSZ), "");
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::string latest, LatestCheckpoint(folder));
  EXPECT_EQ(latest, absl::StrCat(folder, "/c-", kCheckpoints));
  for (int step = 1; step <= kCheckpoints; ++step) {
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const Checkpoint checkpoint,
                                  Checkpoint::Open(absl::StrCat(folder, "/c-", step)));
    EXPECT_EQ(checkpoint.Names().size(), 20);
    for (const std::string& name : checkpoint.Names()) {
      GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor tensor, checkpoint.Read(name));
      EXPECT_THAT(tensor.span<double>(), ::testing::Each(step));
    }
  }
  // Together, the sizes cover all three files.
  using std::filesystem::file_size;
  EXPECT_EQ(file_size(latest + ".data-00000-of-00001"), 320);
  EXPECT_GT(file_size(latest + ".index"), 500);
  EXPECT_LT(file_size(latest + ".index"), 1000);
  EXPECT_GT(file_size(folder + "/checkpoint"), 1300);
  std::filesystem::remove_all(folder);
}

INSTANTIATE_TEST_SUITE_P(Bytes, SaverDeathTest,
                         ::testing::Values(1, 100, 319, 321, 500, 1000, 1300));

// Variables whose values all equal the number of the checkpoint, and their saver.
struct Steps {
  static constexpr int kVariables = 20;

  Steps(int64_t n, const SaverOptions& options)
      : elements(n),
        scope(Scope::NewRootScope()),
        variables(Variables(scope, elements)),
        saver(scope, variables, options) {
    value = ops::Placeholder(scope, DT_DOUBLE);
    for (const Output& variable : variables) {
      assignments.push_back(
          AssignVariable(scope, variable, ops::Fill(scope, {static_cast<int>(elements)}, value)));
    }
    session.emplace(scope);
  }
  static std::vector<Output> Variables(const Scope& scope, int64_t elements) {
    std::vector<Output> variables;
    for (int i = 0; i < kVariables; ++i) {
      variables.push_back(NewVariable(scope, absl::StrCat("v", i), DT_DOUBLE, {elements}));
    }
    return variables;
  }
  absl::Status Save(const std::string& folder, int step) { return Save(folder, step, step); }
  absl::Status Save(const std::string& folder, int step, double all_values) {
    GRADFLOW_RETURN_IF_ERROR(session->Run({{value, all_values}}, {}, assignments, nullptr));
    return saver.Save(*session, folder + "/c", step);
  }
  // Fails unless the checkpoint is complete and all values are `step`.
  absl::Status Check(const std::string& prefix, int step) const {
    GRADFLOW_ASSIGN_OR_RETURN(const double found, ValueOf(prefix));
    if (found == step) return absl::OkStatus();
    return errors::Internal(prefix, " has the value ", found);
  }
  // Returns the value that all elements of a checkpoint share.
  absl::StatusOr<double> ValueOf(const std::string& prefix) const {
    GRADFLOW_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::Open(prefix));
    std::optional<double> first;
    if (checkpoint.Names().size() != kVariables) return errors::Internal(prefix, " lacks names");
    for (const std::string& name : checkpoint.Names()) {
      GRADFLOW_ASSIGN_OR_RETURN(const Tensor tensor, checkpoint.Read(name));
      if (tensor.dtype() != DT_DOUBLE || tensor.NumElements() != elements) {
        return errors::Internal(name, " of ", prefix, " is ", tensor.DebugString());
      }
      for (const double x : tensor.span<double>()) {
        if (!first.has_value()) first = x;
        if (x != *first) return errors::Internal(name, " of ", prefix, " has the value ", x);
      }
    }
    return *first;
  }

  const int64_t elements;
  Scope scope;
  std::vector<Output> variables;
  Saver saver;
  Output value;
  std::vector<Operation> assignments;
  std::optional<ClientSession> session;
};

// Returns the names of the files of a folder.
std::vector<std::string> FilesOf(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    files.push_back(entry.path().filename().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Two savers of two sessions write checkpoints with the same names into one folder.
TEST_F(SaverTest, TwoThreadsLoseNothing) {
  constexpr int kSteps = 40;
  SaverOptions options;
  options.max_to_keep = 0;
  Steps writers[] = {Steps(50, options), Steps(50, options)};
  std::vector<std::thread> threads;
  for (int writer = 0; writer < 2; ++writer) {
    threads.emplace_back([&, writer] {
      for (int step = 1; step <= kSteps; ++step) {
        GRADFLOW_EXPECT_OK(writers[writer].Save(folder(), step, 1000 * writer + step));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int step = 1; step <= kSteps; ++step) {
    std::vector<double> values;
    for (const char* suffix : {"", "-1"}) {
      const auto value = writers[0].ValueOf(absl::StrCat(File("c-"), step, suffix));
      GRADFLOW_ASSERT_OK(value);
      values.push_back(*value);
    }
    EXPECT_THAT(values, ::testing::UnorderedElementsAre(step, 1000 + step));
  }
  GRADFLOW_ASSERT_OK(writers[0].Save(folder(), kSteps + 1));
  EXPECT_EQ(writers[0].saver.checkpoints().size(), 2 * kSteps + 1);
}

// The environment variable for a writer process of SaverProcessesTest: its number, the number of
// checkpoints that it keeps, and the folder.
constexpr const char* kWriterVariable = "GRADFLOW_TEST_SAVER_WRITER";
constexpr int kWriterSteps = 25;

// Does nothing unless SaverProcessesTest starts it as a process.
TEST(SaverWriter, Saves) {
  const char* const text = std::getenv(kWriterVariable);
  if (text == nullptr) return;
  std::istringstream words(text);
  int writer = 0;
  SaverOptions options;
  std::string folder;
  words >> writer >> options.max_to_keep >> folder;
  Steps steps(500, options);
  for (int step = 1; step <= kWriterSteps; ++step) {
    GRADFLOW_ASSERT_OK(steps.Save(folder, step, 1000 * writer + step));
  }
}

// Several processes write checkpoints with the same names into one folder.
class SaverProcessesTest : public FolderFixture, public ::testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(MaxToKeep, SaverProcessesTest, ::testing::Values(0, 1, 5));

TEST_P(SaverProcessesTest, LoseNothing) {
  constexpr int kWriters = 3;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  std::atomic<int> running = kWriters;
  std::vector<std::thread> threads;
  for (int writer = 0; writer < kWriters; ++writer) {
    threads.emplace_back([&, writer] {
      const testing::ProcessResult result = testing::RunProcess(
          {"/usr/bin/env",
           absl::StrCat(kWriterVariable, "=", writer, " ", GetParam(), " ", folder()), program,
           "--gtest_filter=SaverWriter.Saves"});
      EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
      --running;
    });
  }
  const Steps reader(500, {});
  // Checks the latest checkpoint, whose values must match its step.
  const auto check_latest = [&](const std::string& latest) {
    const absl::StatusOr<double> value = reader.ValueOf(latest);
    if (!value.ok()) return value.status();
    const std::string name = std::filesystem::path(latest).filename().string();
    EXPECT_EQ(std::stoi(name.substr(2)), std::fmod(*value, 1000)) << latest;
    return absl::OkStatus();
  };
  int reads = 0;
  int in_a_row = 0;
  while (running > 0) {
    const absl::StatusOr<std::string> latest = LatestCheckpoint(folder());
    if (reads == 0 && absl::IsNotFound(latest.status())) continue;
    GRADFLOW_EXPECT_OK(latest);
    if (!latest.ok()) break;
    ++reads;
    // A writer may remove the checkpoint during the read. The next checkpoint follows soon.
    const absl::Status status = check_latest(*latest);
    in_a_row = status.ok() ? 0 : in_a_row + 1;
    EXPECT_LT(in_a_row, 1000) << status;
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(reads, 0);
  // The folder has exactly the files of the listed checkpoints, and each checkpoint is complete.
  Steps last(500, {});
  std::vector<std::string> files = {"checkpoint"};
  const int saves = kWriters * kWriterSteps;
  const int kept = GetParam() == 0 ? saves : GetParam();
  std::set<double> values;
  const std::string state = testing::ReadFile(File("checkpoint"));
  for (const absl::string_view line : absl::StrSplit(state, '\n', absl::SkipEmpty())) {
    if (!absl::StartsWith(line, "all_")) continue;
    const std::vector<std::string> parts = absl::StrSplit(line, '"');
    files.push_back(parts[1] + ".index");
    files.push_back(parts[1] + ".data-00000-of-00001");
    const absl::StatusOr<double> value = reader.ValueOf(File(parts[1]));
    GRADFLOW_ASSERT_OK(value);
    values.insert(*value);
  }
  EXPECT_EQ(values.size(), kept);
  std::sort(files.begin(), files.end());
  EXPECT_EQ(FilesOf(folder()), files);
  GRADFLOW_EXPECT_OK(check_latest(*LatestCheckpoint(folder())));
}

// A new saver removes temporary files of killed processes, and no other files.
TEST_F(SaverTest, RemovesStaleFiles) {
  Steps steps(3, {});
  const std::string stale = File(".gradflow-4000000-7.tmp");
  const std::vector<std::string> others = {File(".gradflow-notes.tmp"), File("gradflow-1-1.tmp"),
                                           File(".gradflow-1-1.tmp.gz"), File(".gradflow-.tmp")};
  std::ofstream(stale) << "half a checkpoint";
  for (const std::string& file : others) std::ofstream(file) << "not of gradflow's";
  std::filesystem::create_directory(File(".gradflow-1-2.tmp"));
  std::filesystem::create_symlink(File("target"), File(".gradflow-1-3.tmp"));
  // This file belongs to a running process.
  GRADFLOW_ASSERT_OK_AND_ASSIGN(internal::StagedFile staged,
                                internal::StagedFile::Write(File("staged"), {"text"}));
  GRADFLOW_ASSERT_OK(steps.Save(folder(), 1));
  EXPECT_FALSE(std::filesystem::exists(stale));
  for (const std::string& file : others) EXPECT_TRUE(std::filesystem::exists(file)) << file;
  EXPECT_TRUE(std::filesystem::exists(File(".gradflow-1-2.tmp")));
  EXPECT_TRUE(std::filesystem::is_symlink(File(".gradflow-1-3.tmp")));
  GRADFLOW_EXPECT_OK(staged.Commit());
  EXPECT_EQ(testing::ReadFile(File("staged")), "text");
}

// A process that is killed at a random moment of a save. The parameter is the seed.
class SaverKillTest : public ::testing::TestWithParam<int> {
 public:
  // GRADFLOW_SAVER_KILLS is the number of processes.
  static int Processes() {
    const char* const kills = std::getenv("GRADFLOW_SAVER_KILLS");
    int processes = 0;
    return kills != nullptr && absl::SimpleAtoi(kills, &processes) ? processes : 10;
  }

 protected:
  static constexpr int kKept = 3;

  // Writes the number of each checkpoint that has been saved to the file "log".
  static void SaveUntilKilled(const std::string& folder) {
    SaverOptions options;
    options.max_to_keep = kKept;
    Steps steps(64, options);
    std::atomic<int> saved = 0;
    std::thread killer([&] {
      std::mt19937 random(GetParam());
      const auto wait_for = [&](int step) {
        int64_t waits = 0;
        for (; saved < step; ++waits) std::this_thread::yield();
        return waits;
      };
      wait_for(1);
      // The delay is a random fraction of the time of a save.
      const int64_t waits_of_a_save = wait_for(2);
      wait_for(2 + static_cast<int>(random() % (2 * kKept)));
      const int64_t waits = static_cast<int64_t>(random() % 1000) * waits_of_a_save / 1000;
      for (int64_t i = 0; i < waits; ++i) std::this_thread::yield();
      std::raise(SIGKILL);
    });
    std::ofstream log(folder + "/log");
    for (int step = 1;; ++step) {
      GRADFLOW_ASSERT_OK(steps.Save(folder, step));
      log << step << std::endl;
      saved = step;
    }
  }
};

TEST_P(SaverKillTest, LosesNothing) {
  ::testing::FLAGS_gtest_death_test_style = ::gradflow::testing::kDeathTestStyle;
  const std::string folder = FolderOfDeathTest(absl::StrCat("saver_kills_", GetParam()));
  EXPECT_EXIT(SaveUntilKilled(folder), ::testing::KilledBySignal(SIGKILL), "");
  int saved = 0;
  std::ifstream log(folder + "/log");
  for (int step; log >> step;) saved = step;
  ASSERT_GE(saved, 2);
  // The latest checkpoint is the last saved one, or the next one if the process died before it
  // logged it.
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::string latest, LatestCheckpoint(folder));
  const auto prefix = [&](int step) { return absl::StrCat(folder, "/c-", step); };
  const int newest = latest == prefix(saved) ? saved : saved + 1;
  EXPECT_EQ(latest, prefix(newest));
  SaverOptions options;
  options.max_to_keep = kKept;
  Steps next(64, options);
  for (int step = std::max(1, newest - kKept + 1); step <= newest; ++step) {
    GRADFLOW_EXPECT_OK(next.Check(prefix(step), step));
  }
  // A new saver continues.
  GRADFLOW_EXPECT_OK(next.Save(folder, newest + 1));
  EXPECT_EQ(*LatestCheckpoint(folder), prefix(newest + 1));
  GRADFLOW_EXPECT_OK(next.Check(prefix(newest + 1), newest + 1));
  for (const std::string& file : FilesOf(folder)) {
    EXPECT_FALSE(absl::StartsWith(file, ".gradflow-")) << file;
  }
  std::filesystem::remove_all(folder);
}

INSTANTIATE_TEST_SUITE_P(Seeds, SaverKillTest, ::testing::Range(0, SaverKillTest::Processes()));

// Fills a file system of 16 pages with checkpoints.
TEST(SaverDiskTest, AFullFileSystemLosesNothing) {
  ::testing::FLAGS_gtest_death_test_style = ::gradflow::testing::kDeathTestStyle;
  constexpr int kNoMount = 77;
  const auto fill = [](const std::string& folder) {
    const std::string size = absl::StrCat("size=", 16 * sysconf(_SC_PAGESIZE));
    if (unshare(CLONE_NEWNS) != 0 ||
        mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("tmpfs", folder.c_str(), "tmpfs", 0, size.c_str()) != 0) {
      std::_Exit(kNoMount);
    }
    SaverOptions options;
    options.max_to_keep = 0;
    Steps steps(10, options);
    int step = 0;
    absl::Status status;
    while (status.ok() && step < 100) status = steps.Save(folder, ++step);
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("cannot write")));
    EXPECT_GT(step, 2);
    EXPECT_EQ(*LatestCheckpoint(folder), absl::StrCat(folder, "/c-", step - 1));
    for (int i = 1; i < step; ++i) {
      GRADFLOW_EXPECT_OK(steps.Check(absl::StrCat(folder, "/c-", i), i));
    }
    // After one checkpoint is removed, there is room again.
    std::filesystem::remove(absl::StrCat(folder, "/c-1.data-00000-of-00001"));
    std::filesystem::remove(absl::StrCat(folder, "/c-1.index"));
    GRADFLOW_EXPECT_OK(steps.Save(folder, step));
    GRADFLOW_EXPECT_OK(steps.Check(*LatestCheckpoint(folder), step));
    std::_Exit(::testing::Test::HasFailure() ? 1 : 0);
  };
  int exit_code = -1;
  const auto exits = [&](int status) {
    exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return exit_code == 0 || exit_code == kNoMount;
  };
  const std::string folder = FolderOfDeathTest("saver_disk");
  EXPECT_EXIT(fill(folder), exits, "");
  std::filesystem::remove_all(folder);
  if (exit_code == kNoMount) GTEST_SKIP() << "file systems cannot be mounted";
}

}  // namespace
}  // namespace training
}  // namespace gradflow
