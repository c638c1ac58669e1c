// Layers: functions that add the variables and the ops of a layer to a graph.
//
//   Output Network(const Scope& scope, Model* model, Output x, bool training) {
//     x = Conv2D(scope, model, "conv", x, 16);
//     x = BatchNorm(scope, model, "norm", x, BatchNormOptions().Training(training));
//     x = ops::Relu(scope, x);
//     ...
//     return Dense(scope, model, "logits", Flatten(scope, x), 10);
//   }
//
//   Model model(scope);
//   const Output loss = SoftmaxCrossEntropy(scope, Network(scope, &model, x, true), labels);
//   const Output scores = Network(scope, &model, x, false);   // the same variables
//   adam.Minimize(loss, model.trainable(), &train);
//   ...
//   session.Run({}, {}, model.initializers(), nullptr);
//   session.Run(feeds, {loss}, {train, ... model.updates()}, &outputs);
//
// Variables have the names of Keras and tf.compat.v1.layers: "conv/kernel", "conv/bias",
// "norm/gamma", "norm/moving_mean". The ops of a layer are named under "<layer>/". Images have the
// format NHWC. Shapes must be known, except for the number of examples.
//
// Errors are reported through the scope. The returned Output is then empty.
#ifndef GRADFLOW_TRAINING_LAYERS_H_
#define GRADFLOW_TRAINING_LAYERS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "gradflow/core/tensor_shape.h"
#include "gradflow/graph/ops.h"
#include "gradflow/graph/scope.h"
#include "gradflow/training/initializers.h"

#pragma GCC visibility push(default)
namespace gradflow {
namespace training {

// Adds the initial value of a variable, such as GlorotUniform (initializers.h).
using Initializer = std::function<Output(const Scope&, const InitializerOptions&)>;
// ConstantValues of `value`.
Initializer Constant(float value);

// The variables of a model, by name.
class Model {
 public:
  // Adds variables to the graph of `scope`. Their initial values depend on `seed` and on the order
  // of addition.
  explicit Model(const Scope& scope, int64_t seed = 0) : scope_(scope), seed_(seed) {}
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  // Returns the variable `name`, of type float. The first call for a name adds the variable; later
  // calls must have the same shape.
  Output Variable(const std::string& name, const TensorShape& shape, const Initializer& initializer,
                  bool is_trainable = true);
  // Adds an operation to updates().
  void AddUpdate(const Operation& update) { updates_.push_back(update); }

  // The trainable variables, which optimizers change, and all variables, both in the order of
  // addition.
  const std::vector<Output>& trainable() const { return trainable_; }
  const std::vector<Output>& variables() const { return variables_; }
  // The operations that give the variables their initial values.
  const std::vector<Operation>& initializers() const { return initializers_; }
  // Operations that a training step runs in addition to the updates of the optimizer. They update
  // moving statistics.
  const std::vector<Operation>& updates() const { return updates_; }

 private:
  const Scope scope_;
  const int64_t seed_;
  std::map<std::string, Output> by_name_;
  std::vector<Output> trainable_;
  std::vector<Output> variables_;
  std::vector<Operation> initializers_;
  std::vector<Operation> updates_;
};

// Options of Dense and Conv2D.
struct LayerOptions {
  // If true, the layer adds a bias.
  bool use_bias = true;
  // If not 0, weights are fake-quantized to this many bits; see FakeQuantWeights.
  int weight_bits = 0;
  // The initial values of the weights.
  Initializer kernel_initializer = GlorotUniform;
  // Options of Conv2D: the height and width of its filter, its strides, and "SAME" or "VALID".
  int64_t filter = 3;
  int stride = 1;
  std::string padding = "SAME";

  // Setters that return a changed copy.
  LayerOptions UseBias(bool use) const;
  LayerOptions WeightBits(int bits) const;
  LayerOptions KernelInitializer(Initializer initializer) const;
  LayerOptions Filter(int64_t size) const;
  LayerOptions Stride(int size) const;
  LayerOptions Padding(std::string kind) const;
};

// x * kernel + bias, for x of shape [n, inputs]. Variables: kernel [inputs, units], bias.
Output Dense(const Scope& scope, Model* model, const std::string& name, const Output& x,
             int64_t units, const LayerOptions& options = {});

// A convolution of x [n, height, width, inputs]. Variables: kernel [filter, filter, inputs,
// filters], bias.
Output Conv2D(const Scope& scope, Model* model, const std::string& name, const Output& x,
              int64_t filters, const LayerOptions& options = {});

// Returns x as a matrix: a row for each example.
Output Flatten(const Scope& scope, const Output& x);

// Options of BatchNorm.
struct BatchNormOptions {
  // If true, uses the statistics of the batch and updates the moving statistics. Otherwise uses the
  // moving statistics.
  bool training = true;
  // The weight of the old statistics in the moving statistics.
  float momentum = 0.99f;
  // Added to the variance.
  float epsilon = 1e-3f;

  // Setters that return a changed copy.
  BatchNormOptions Training(bool is_training) const;
  BatchNormOptions Momentum(float value) const;
  BatchNormOptions Epsilon(float value) const;
};
// Normalizes each channel, the last dimension of x, which has rank 2 or 4. Variables: gamma, beta,
// moving_mean, moving_variance.
Output BatchNorm(const Scope& scope, Model* model, const std::string& name, const Output& x,
                 const BatchNormOptions& options = {});

// Options of FakeQuant.
struct FakeQuantOptions {
  // If true, updates the moving range.
  bool training = true;
  // The number of bits of a quantized value, from 2 to 16.
  int bits = 8;
  // The weight of the old bounds in the moving bounds.
  float momentum = 0.99f;
  // The initial range. If `nonnegative`, `min` is always 0; this suits the output of Relu.
  float min = -6;
  float max = 6;
  bool nonnegative = false;
  // If true, rounds the step up to a power of two. Products of quantized values are then exact in
  // float if their integers fit in 24 bits.
  bool power_of_two = false;

  // Setters that return a changed copy.
  FakeQuantOptions Training(bool is_training) const;
  FakeQuantOptions Bits(int number) const;
  FakeQuantOptions Momentum(float value) const;
  FakeQuantOptions Range(float lowest, float highest) const;
  FakeQuantOptions Nonnegative(bool is) const;
  FakeQuantOptions PowerOfTwo(bool is) const;
};
// Rounds x to the values that quantization with a moving range can represent. In training, the
// range first moves towards the range of the batch. Gradients pass where x is in the range.
// Variables: min (unless nonnegative) and max.
Output FakeQuant(const Scope& scope, Model* model, const std::string& name, const Output& x,
                 const FakeQuantOptions& options = {});

// Rounds weights to integers times a scale. Each channel (the last dimension) has its own scale,
// which maps the largest magnitude to the largest integer: 127 for 8 bits. Gradients pass
// unchanged.
Output FakeQuantWeights(const Scope& scope, const Output& weights, int bits = 8);

// Moving averages of variables. They often predict better than the last values of the variables.
//
//   ExponentialMovingAverage averages(scope, 0.999f);
//   Operation update;
//   averages.Apply(scope.WithControlDependencies({train}), model.trainable(), &update);
//   ...
//   session.Run({}, {}, model.initializers(), nullptr);
//   session.Run({}, {}, averages.initializers(), nullptr);   // after the variables' initializers
//   session.Run(feeds, {}, {update}, nullptr);
//   session.Run({}, {}, averages.assignments(), nullptr);    // the averages become the values
//
// Averages have the names of tf.train.ExponentialMovingAverage: "w/ExponentialMovingAverage".
class ExponentialMovingAverage {
 public:
  // Each update multiplies the averages by `decay` and adds the variables times 1 - decay.
  ExponentialMovingAverage(const Scope& scope, float decay) : scope_(scope), decay_(decay) {}
  ExponentialMovingAverage(const ExponentialMovingAverage&) = delete;
  ExponentialMovingAverage& operator=(const ExponentialMovingAverage&) = delete;

  // Adds the averages and an operation *update, which runs after the control dependencies of
  // `scope`. Returns FAILED_PRECONDITION if called twice.
  absl::Status Apply(const Scope& scope, const std::vector<Output>& variables, Operation* update);

  // The averages, in the order of the variables, for a Saver.
  const std::vector<Output>& averages() const { return averages_; }
  // Operations that copy the variables to the averages, and the averages to the variables.
  const std::vector<Operation>& initializers() const { return initializers_; }
  const std::vector<Operation>& assignments() const { return assignments_; }

 private:
  const Scope scope_;
  const float decay_;
  std::vector<Output> averages_;
  std::vector<Operation> initializers_;
  std::vector<Operation> assignments_;
};

}  // namespace training
}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_TRAINING_LAYERS_H_
