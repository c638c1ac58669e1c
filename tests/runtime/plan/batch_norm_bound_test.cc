// Tests the bound that fold_batch_norms guarantees (docs/security.md): results differ only by
// rounding errors of the sum, for constants and images of any magnitude.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gradflow/graph/const_op.h"
#include "gradflow/graph/scope.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/runtime/session/client_session.h"
#include "gradflow/runtime/session/session.h"
#include "gradflow/testing/status_matchers.h"
#include "gradflow/testing/tensor_matchers.h"
#include "gradflow/testing/tensors.h"

namespace gradflow {
namespace {

using ::gradflow::testing::AsTensor;
using ::gradflow::testing::TensorEq;

// y for one image, with and without fold_batch_norms.
struct Results {
  Tensor plain;
  Tensor fast;
};
Results RunBoth(const Scope& scope, const Output& x, const Output& y, const Tensor& image) {
  Results results;
  for (const bool fast : {false, true}) {
    SessionOptions options;
    options.fold_batch_norms = fast;
    const ClientSession session(scope, options);
    std::vector<Tensor> outputs;
    GRADFLOW_EXPECT_OK(session.Run({{x, image}}, {y}, &outputs));
    if (!outputs.empty()) (fast ? results.fast : results.plain) = outputs[0];
  }
  return results;
}

Tensor Image(const std::vector<float>& values) {
  return AsTensor<float>(values, {1, 1, 1, static_cast<int64_t>(values.size())});
}
Output Vector(const Scope& scope, const std::vector<float>& values) {
  return ops::Const(scope, AsTensor<float>(values, {1, 1, static_cast<int64_t>(values.size()), 1}));
}
Output Channel(const Scope& scope, float value) {
  return ops::Const(scope, AsTensor<float>({value}));
}
Output Norm(const Scope& scope, const Output& x, float scale, float offset, float mean,
            float variance) {
  return ops::FusedBatchNormV3(scope, x, Channel(scope, scale), Channel(scope, offset),
                               Channel(scope, mean), Channel(scope, variance),
                               ops::FusedBatchNormV3::IsTraining(false).Epsilon(1e-3F))
      .y;
}

TEST(BatchNormBound, WeightsDoNotUnderflow) {
  const Scope scope = Scope::NewRootScope();
  const Output x = ops::Placeholder(scope, DT_FLOAT);
  const Output conv = ops::Conv2D(scope, x, Vector(scope, {1e-30F}), {1, 1, 1, 1}, "VALID");
  const Output scaled = ops::Mul(scope, conv, Channel(scope, 1e-16F));
  const Output y = ops::Mul(scope, ops::Relu(scope, scaled), Channel(scope, 1e8F));
  const Results results = RunBoth(scope, x, y, Image({1e38F}));
  EXPECT_NEAR(results.plain.flat<float>()(0), 1, 1e-6);
  EXPECT_NEAR(results.fast.flat<float>()(0), 1, 1e-6);
}

TEST(BatchNormBound, ImagesDoNotCancelWithBiases) {
  const Scope scope = Scope::NewRootScope();
  const Output x = ops::Placeholder(scope, DT_FLOAT);
  const Output conv = ops::Conv2D(scope, x, Vector(scope, {1}), {1, 1, 1, 1}, "VALID");
  const Output y = Norm(scope, conv, 0.1F, 0, 1e8F, 1);
  const Results results = RunBoth(scope, x, y, Image({100000008}));
  EXPECT_NEAR(results.plain.flat<float>()(0), 0.8, 1e-3);
  EXPECT_THAT(results.fast, TensorEq(results.plain));

  const Output difference =
      ops::Mul(scope, ops::Sub(scope, conv, Channel(scope, 1e8F)), Channel(scope, 0.1F));
  const Results others = RunBoth(scope, x, difference, Image({100000008}));
  EXPECT_NEAR(others.plain.flat<float>()(0), 0.8, 1e-3);
  EXPECT_THAT(others.fast, TensorEq(others.plain));
}

TEST(BatchNormBound, NoPartOverflowsOrUnderflows) {
  const Scope scope = Scope::NewRootScope();
  const Output x = ops::Placeholder(scope, DT_FLOAT);
  const Output conv = ops::Conv2D(scope, x, Vector(scope, {1}), {1, 1, 1, 1}, "VALID");
  for (const float factor : {1e30F, 1e-30F}) {
    Output y = conv;
    for (const float by : {factor, factor, 1 / factor, 1 / factor}) {
      y = ops::Mul(scope, y, Channel(scope, by));
    }
    const Results results = RunBoth(scope, x, y, Image({1}));
    EXPECT_THAT(results.fast, TensorEq(results.plain)) << factor;
  }
}

// Random chains of constants of all magnitudes. The reference is computed in double.
TEST(BatchNormBound, HoldsForAllMagnitudes) {
  std::mt19937 random(1);
  const auto uniform = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  int checked = 0;
  int folded = 0;
  for (int round = 0; round < 1500; ++round) {
    // Half of the rounds have ordinary constants.
    const double exponent = round % 2 == 0 ? 2 : 36;
    const auto number = [&] {
      const double magnitude = std::exp2(uniform(-exponent, exponent) * 3.3);
      return static_cast<float>(uniform(0, 1) < 0.5 ? -magnitude : magnitude);
    };
    const Scope scope = Scope::NewRootScope();
    const Output x = ops::Placeholder(scope, DT_FLOAT);
    const int taps = 1 + static_cast<int>(uniform(0, 4));
    std::vector<float> image;
    std::vector<float> weights;
    double exact = 0;
    double sum = 0;
    for (int i = 0; i < taps; ++i) {
      image.push_back(number());
      weights.push_back(number());
      exact += double{image.back()} * weights.back();
      sum += std::abs(double{image.back()} * weights.back());
    }
    const double image_sum = sum;
    Output y = ops::Conv2D(scope, x, Vector(scope, weights), {1, 1, 1, 1}, "VALID");
    const int nodes = 1 + static_cast<int>(uniform(0, 4));
    // The sum of the magnitudes of all terms, and the largest intermediate value of the sum.
    double largest = sum;
    const auto scale = [&](double by) {
      exact *= by;
      sum *= std::abs(by);
      largest = std::max(largest, sum);
    };
    const auto shift = [&](double by) {
      exact += by;
      sum += std::abs(by);
      largest = std::max(largest, sum);
    };
    for (int i = 0; i < nodes; ++i) {
      const float a = number();
      switch (static_cast<int>(uniform(0, 4))) {
        case 0:
          y = ops::Mul(scope, y, Channel(scope, a));
          scale(a);
          break;
        case 1:
          y = ops::AddV2(scope, y, Channel(scope, a));
          shift(a);
          break;
        case 2:
          y = ops::Sub(scope, y, Channel(scope, a));
          shift(-double{a});
          break;
        default: {
          const float mean = number();
          const float variance = std::abs(number());
          const float offset = number();
          y = Norm(scope, y, a, offset, mean, variance);
          shift(-double{mean});
          scale(a / std::sqrt(double{variance} + 1e-3F));
          shift(offset);
        }
      }
    }
    // The bound is only stated for smaller images.
    if (image_sum > 0x1p80) continue;
    const Results results = RunBoth(scope, x, y, Image(image));
    const double plain = results.plain.flat<float>()(0);
    const double fast = results.fast.flat<float>()(0);
    if (results.plain.tensor_data() != results.fast.tensor_data()) ++folded;
    // If an intermediate result overflows or underflows, the nodes are not folded and both runs
    // agree.
    const double bound = (2 * taps + 8 * nodes + 8) * 0x1p-24 * sum + taps * 0x1p-100;
    EXPECT_TRUE(std::abs(fast - plain) <= bound || (std::isnan(fast) && std::isnan(plain)) ||
                fast == plain)
        << "round " << round << ": " << plain << ", fast " << fast << ", exact " << exact
        << ", bound " << bound;
    ++checked;
  }
  EXPECT_GT(checked, 1000);
  EXPECT_GT(folded, 100);
}

}  // namespace
}  // namespace gradflow
