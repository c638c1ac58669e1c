#include "examples/qat_fashion_mnist/frozen.h"

#include <cmath>
#include <iterator>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "examples/qat_fashion_mnist/network.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/training/variables.h"

namespace qat {

using gradflow::Output;
using gradflow::Scope;
using gradflow::Tensor;
namespace errors = gradflow::errors;
namespace ops = gradflow::ops;
namespace training = gradflow::training;

namespace {

// Returns quantized weights as integers, and appends the scale of each channel.
absl::StatusOr<Tensor> IntegersOf(const Tensor& weights, const Tensor& quantized,
                                  std::vector<double>* scales) {
  const auto original = weights.flat_inner_dims<float>();
  const auto values = quantized.flat_inner_dims<float>();
  GRADFLOW_ASSIGN_OR_RETURN(Tensor integers, Tensor::Allocate(gradflow::DT_INT8, weights.shape()));
  auto out = integers.flat_inner_dims<int8_t>();
  for (int64_t c = 0; c < values.dimension(1); ++c) {
    float max = 1e-6f;
    for (int64_t r = 0; r < values.dimension(0); ++r) {
      max = std::max(max, std::abs(original(r, c)));
    }
    const double scale = max / 127.0;
    for (int64_t r = 0; r < values.dimension(0); ++r) {
      const double integer = values(r, c) / scale;
      if (std::abs(integer - std::round(integer)) > 0.01 || std::abs(integer) > 127.01) {
        return errors::Internal("a weight is ", integer, " steps of its scale");
      }
      out(r, c) = static_cast<int8_t>(std::lround(integer));
    }
    scales->push_back(scale);
  }
  return integers;
}

// Returns the step of a range, rounded to a power of two as in training.
float StepOf(float max) {
  return std::exp2(static_cast<float>(std::ceil(std::log2(static_cast<double>(max) / 255) - 1e-6)));
}

Output Constant(const Scope& scope, const std::vector<float>& values) {
  Tensor tensor(gradflow::DT_FLOAT, {static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), tensor.flat<float>().data());
  return ops::Const(scope, gradflow::Input::Initializer(tensor));
}

}  // namespace

absl::StatusOr<std::vector<FrozenLayer>> Freeze(const Scope& scope,
                                                const gradflow::ClientSession& session,
                                                training::Model* model) {
  // All variables, and the quantized weights of all layers, by name.
  std::vector<Output> fetches;
  std::vector<std::string> names;
  for (const Output& variable : model->variables()) {
    GRADFLOW_ASSIGN_OR_RETURN(const training::VariableInfo info, training::InfoOf(variable));
    fetches.push_back(training::ReadVariable(scope, variable));
    names.push_back(info.name);
    if (info.shape.dims() < 2) continue;
    names.push_back(absl::StrCat(info.name, "/quantized"));
    fetches.push_back(training::FakeQuantWeights(scope, fetches.back()));
  }
  GRADFLOW_RETURN_IF_ERROR(scope.status());
  std::vector<Tensor> outputs;
  GRADFLOW_RETURN_IF_ERROR(session.Run(fetches, &outputs));
  std::map<std::string, Tensor> values;
  for (size_t i = 0; i < names.size(); ++i) values[names[i]] = outputs[i];

  std::vector<FrozenLayer> layers;
  float step = kPixelStep;
  for (const ConvLayer& layer : kLayers) {
    const std::string name = layer.name;
    FrozenLayer frozen;
    std::vector<double> scales;
    GRADFLOW_ASSIGN_OR_RETURN(
        frozen.weights,
        IntegersOf(values[name + "/kernel"], values[name + "/kernel/quantized"], &scales));
    const auto of_norm = [&](const char* which) {
      return values[absl::StrCat(name, "_norm/", which)].flat<float>();
    };
    for (int c = 0; c < layer.filters; ++c) {
      // gamma * (x - mean) / sqrt(variance + epsilon) + beta
      const double factor =
          of_norm("gamma")(c) /
          std::sqrt(static_cast<double>(of_norm("moving_variance")(c)) + kEpsilon);
      frozen.scale.push_back(static_cast<float>(scales[c] * factor));
      frozen.offset.push_back(
          static_cast<float>(of_norm("beta")(c) - of_norm("moving_mean")(c) * factor));
    }
    frozen.input_step = step;
    step = StepOf(values[name + "_range/max"].scalar<float>()());
    frozen.output_step = step;
    frozen.pools = layer.pools;
    layers.push_back(std::move(frozen));
  }
  FrozenLayer last;
  std::vector<double> scales;
  GRADFLOW_ASSIGN_OR_RETURN(
      last.weights, IntegersOf(values["dense/kernel"], values["dense/kernel/quantized"], &scales));
  last.scale.assign(scales.begin(), scales.end());
  const Tensor bias = values["dense/bias"];
  last.offset.assign(bias.flat<float>().begin(), bias.flat<float>().end());
  last.input_step = step;
  layers.push_back(std::move(last));
  return layers;
}

absl::Status MakeGraph(const std::vector<FrozenLayer>& layers, gradflow::GraphDef* graph) {
  const Scope root = Scope::NewRootScope();
  Output x = Pixels(root, Images(root));
  for (size_t i = 0; i < layers.size(); ++i) {
    const FrozenLayer& layer = layers[i];
    const bool is_last = i + 1 == layers.size();
    const Scope scope = root.NewSubScope(is_last ? "dense" : kLayers[i].name);
    const Output weights = ops::Cast(
        scope, ops::Const(scope.WithOpName("weights"), gradflow::Input::Initializer(layer.weights)),
        gradflow::DT_FLOAT);
    x = is_last ? Output(ops::MatMul(scope, training::Flatten(scope, x), weights))
                : Output(ops::Conv2D(scope, x, weights, {1, 1, 1, 1}, "SAME"));
    x = ops::Mul(scope, x, Constant(scope.WithOpName("scale"), layer.scale));
    x = ops::Add(is_last ? root.WithOpName("logits") : scope, x,
                 Constant(scope.WithOpName("offset"), layer.offset));
    if (is_last) break;
    x = ops::Relu(scope, x);
    if (layer.pools) x = Pool(scope, x);
    x = ops::FakeQuantWithMinMaxVars(scope, x, 0.0f, 255 * layer.output_step);
  }
  ops::ArgMax(root.WithOpName("classes"), x, 1);
  return root.ToGraphDef(graph);
}

}  // namespace qat
