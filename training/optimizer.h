// Optimizers: add ops to a graph that update variables by gradients.
//
//   Adam adam(scope, AdamOptions().LearningRate(0.01f));
//   Operation train;
//   GRADFLOW_RETURN_IF_ERROR(adam.Minimize(loss, {w, b}, &train));
//   ...
//   session.Run({}, {}, adam.initializers(), nullptr);   // the slots
//   for (...) session.Run(feeds, {loss}, {train}, &outputs);
//
// The same in two steps, to change the gradients in between:
//
//   GRADFLOW_RETURN_IF_ERROR(adam.ComputeGradients(loss, variables, &gradients));
//   gradients = ClipByGlobalNorm(scope, gradients, 1.0f);
//   GRADFLOW_RETURN_IF_ERROR(adam.ApplyGradients(gradients, variables, &train));
//
// If the loss only gathers rows of a variable, such as an embedding, the gradient of the variable
// consists of slices, the gradients of the gathered rows and their indices (IndexedSlices in
// gradients.h). GradientDescent, Momentum, Adagrad, RMSProp and Ftrl then update only these rows
// and the same rows of their slots, as TensorFlow's optimizers do. The time of a step depends on
// the number of gathered rows, not on the size of the variable. With a dense gradient, Momentum,
// RMSProp and Ftrl would also change rows whose gradient is zero. Adam and AdamW always update all
// rows, like TensorFlow's Adam, because moments decay in each step.
//
// Slots are the variables in which an optimizer keeps its state. They have the names that the
// optimizer of the same name in tf.compat.v1.train gives them: "w/Adam", "w/Adam_1". A second
// optimizer of a graph continues the numbers: "w/Adam_2", "beta1_power_1". Either library can
// continue from a checkpoint of the other.
//
// Errors of the graph are also reported through the scope.
#ifndef GRADFLOW_TRAINING_OPTIMIZER_H_
#define GRADFLOW_TRAINING_OPTIMIZER_H_

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gradflow/gradients/gradients.h"
#include "gradflow/graph/ops.h"
#include "gradflow/graph/scope.h"
#include "gradflow/training/variables.h"

#pragma GCC visibility push(default)
namespace gradflow {
namespace training {

// Adds gradients and updates to a graph. Subclasses implement the update rules.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // Adds the gradients of `loss` with respect to the variables. The gradient of a variable that the
  // loss does not depend on is NoGradient(). `options` can save memory by recomputation.
  absl::Status ComputeGradients(const Output& loss, const std::vector<Output>& variables,
                                std::vector<Output>* gradients,
                                const GradientBuildOptions& options = {});
  // Overload that returns slices for variables whose rows are only gathered.
  absl::Status ComputeGradients(const Output& loss, const std::vector<Output>& variables,
                                std::vector<SparseGradient>* gradients,
                                const GradientBuildOptions& options = {});
  // Adds the updates. *train runs them all. Skips variables without a gradient. Returns
  // INVALID_ARGUMENT if no variable has a gradient, and FAILED_PRECONDITION if called twice.
  absl::Status ApplyGradients(const std::vector<Output>& gradients,
                              const std::vector<Output>& variables, Operation* train);
  absl::Status ApplyGradients(const std::vector<SparseGradient>& gradients,
                              const std::vector<Output>& variables, Operation* train);
  // ComputeGradients(), with slices, and ApplyGradients().
  absl::Status Minimize(const Output& loss, const std::vector<Output>& variables, Operation* train,
                        const GradientBuildOptions& options = {});

  // Valid after ApplyGradients: the operations that give the slots their initial values, and the
  // slots, for a Saver.
  const std::vector<Operation>& initializers() const { return initializers_; }
  const std::vector<Output>& slots() const { return slots_; }

 protected:
  // `rate` is the learning rate, a scalar of any floating-point type. If `rate` is empty, the
  // learning rate is `constant_rate`.
  Optimizer(const Scope& scope, Output rate, float constant_rate)
      : scope_(scope), rate_(rate), constant_rate_(constant_rate) {}

  // Returns the scope passed to the constructor.
  const Scope& scope() const { return scope_; }
  // Adds the update of one variable, and returns it. Slices may repeat an index.
  virtual Operation Apply(const Scope& scope, const Output& variable, const VariableInfo& info,
                          const SparseGradient& gradient) = 0;
  // Begin is called once before all calls of Apply, with the first variable that has a gradient.
  // End is called once after them, with the operations that Apply returned. End may add operations.
  virtual void Begin(const VariableInfo&) {}
  virtual void End(const Scope&, std::vector<Operation>*) {}

  // Adds a slot of a variable, named `variable`/`name`, with all elements initially `value`. If the
  // graph has a variable of this name, the slot is named `variable`/`name`_1, or _2, and so on.
  Output NewSlot(const VariableInfo& info, absl::string_view name, float value);
  // Adds a scalar variable of this name, with a suffix as in NewSlot if the name is taken.
  Output NewScalar(absl::string_view name, DataType dtype, bool is_resource, float value);
  // Adds a scalar of the type of a variable.
  Output ScalarOf(const Scope& scope, const VariableInfo& info, float value) const;
  // Returns the learning rate in the type of a variable.
  Output RateOf(const Scope& scope, const VariableInfo& info) const;
  // Adds the op that updates a variable. The op is [Resource][Sparse]Apply`name`: "Resource" if the
  // variable is a resource, "Sparse" if the gradient is slices. An example is
  // "ResourceSparseApplyMomentum". Its inputs are `before`, the gradient, and `after`. Rows with
  // the same index are summed. If `bool_attr` is not empty, the op has this attribute, with
  // `value`.
  Operation AddUpdate(const Scope& scope, const VariableInfo& info, absl::string_view name,
                      std::vector<Output> before, const SparseGradient& gradient,
                      const std::vector<Output>& after = {}, absl::string_view bool_attr = {},
                      bool value = false) const;

 private:
  Output NewState(const std::string& wanted, const VariableInfo& info, float value);

  const Scope scope_;
  const Output rate_;
  const float constant_rate_;
  bool applied_ = false;
  // The names of all variables of the graph.
  std::set<std::string> taken_names_;
  std::vector<Operation> initializers_;
  std::vector<Output> slots_;
};

// Options that all optimizers have. Learning rates may vary; see schedules.h.
template <typename Options>
struct OptimizerOptions {
  // A constant learning rate.
  Options LearningRate(float rate) const {
    Options changed = static_cast<const Options&>(*this);
    changed.learning_rate = rate;
    return changed;
  }
  // The learning rate as an output of the graph, a scalar.
  Options LearningRate(const Output& rate) const {
    Options changed = static_cast<const Options&>(*this);
    changed.rate = rate;
    return changed;
  }
  // The learning rate as an output of the graph; empty if it is constant.
  Output rate;
};

// var -= rate * gradient
struct GradientDescentOptions : OptimizerOptions<GradientDescentOptions> {
  // The learning rate, if it is constant.
  float learning_rate = 0.01f;
};
class GradientDescent final : public Optimizer {
 public:
  // Adds updates to the graph of `scope`.
  explicit GradientDescent(const Scope& scope, const GradientDescentOptions& options = {})
      : Optimizer(scope, options.rate, options.learning_rate) {}

 private:
  Operation Apply(const Scope& scope, const Output& variable, const VariableInfo& info,
                  const SparseGradient& gradient) override;
};

// Slot "Momentum".
struct MomentumOptions : OptimizerOptions<MomentumOptions> {
  // The learning rate, if it is constant; the factor of the accumulated gradients; and whether to
  // use Nesterov's momentum.
  float learning_rate = 0.01f;
  float momentum = 0.9f;
  bool use_nesterov = false;
};
class Momentum final : public Optimizer {
 public:
  // Adds updates to the graph of `scope`.
  explicit Momentum(const Scope& scope, const MomentumOptions& options = {})
      : Optimizer(scope, options.rate, options.learning_rate), options_(options) {}

 private:
  Operation Apply(const Scope& scope, const Output& variable, const VariableInfo& info,
                  const SparseGradient& gradient) override;

  const MomentumOptions options_;
};

// Slot "Adagrad".
struct AdagradOptions : OptimizerOptions<AdagradOptions> {
  // The learning rate, if it is constant.
  float learning_rate = 0.01f;
  // The initial value of the slot.
  float initial_accumulator_value = 0.1f;
};
class Adagrad final : public Optimizer {
 public:
  // Adds updates to the graph of `scope`.
  explicit Adagrad(const Scope& scope, const AdagradOptions& options = {})
      : Optimizer(scope, options.rate, options.learning_rate), options_(options) {}

 private:
  Operation Apply(const Scope& scope, const Output& variable, const VariableInfo& info,
                  const SparseGradient& gradient) override;

  const AdagradOptions options_;
};

// Slots "RMSProp", the mean square, and "RMSProp_1", the momentum.
struct RMSPropOptions : OptimizerOptions<RMSPropOptions> {
  // The learning rate, if it is constant.
  float learning_rate = 0.001f;
  // The decay of the mean square.
  float decay = 0.9f;
  // The factor of the previous step.
  float momentum = 0;
  // Added to the mean square before its square root.
  float epsilon = 1e-10f;
};
class RMSProp final : public Optimizer {
 public:
  // Adds updates to the graph of `scope`.
  explicit RMSProp(const Scope& scope, const RMSPropOptions& options = {})
      : Optimizer(scope, options.rate, options.learning_rate), options_(options) {}

 private:
  Operation Apply(const Scope& scope, const Output& variable, const VariableInfo& info,
                  const SparseGradient& gradient) override;

  const RMSPropOptions options_;
};

// Slots "Adam" and "Adam_1", and the scalars "beta1_power" and "beta2_power".
struct AdamOptions : OptimizerOptions<AdamOptions> {
  // The learning rate, if it is constant.
  float learning_rate = 0.001f;
  // The decays of the first and the second moment.
  float beta1 = 0.9f;
  float beta2 = 0.999f;
  // Added to the square root of the second moment.
  float epsilon = 1e-8f;
  // If true, uses Nesterov's momentum.
  bool use_nesterov = false;
  // If not 0, each step first multiplies the variables by 1 - rate * weight_decay.
  float weight_decay = 0;
  // Returns whether weight decay applies to the variable of this name; if empty, it applies to all.
  // Biases and the variables of batch norms are often excluded.
  std::function<bool(const std::string& name)> decays;
};
class Adam : public Optimizer {
 public:
  // Adds updates to the graph of `scope`.
  explicit Adam(const Scope& scope, const AdamOptions& options = {})
      : Optimizer(scope, options.rate, options.learning_rate), options_(options) {}

 private:
  Operation Apply(const Scope& scope, const Output& variable, const VariableInfo& info,
                  const SparseGradient& gradient) override;
  void Begin(const VariableInfo& info) override;
  void End(const Scope& scope, std::vector<Operation>* updates) override;

  const AdamOptions options_;
  DataType power_dtype_ = DT_FLOAT;
  Output beta1_power_;
  Output beta2_power_;
};

// Adam with decoupled weight decay. A weight_decay of 0 is replaced by 0.004, the default of Keras.
class AdamW final : public Adam {
 public:
  // Adds updates to the graph of `scope`.
  explicit AdamW(const Scope& scope, AdamOptions options = {}) : Adam(scope, Decayed(options)) {}

 private:
  static AdamOptions Decayed(AdamOptions options) {
    if (options.weight_decay == 0) options.weight_decay = 0.004f;
    return options;
  }
};

// Slots "Ftrl", the sum of squares, and "Ftrl_1", the linear term.
struct FtrlOptions : OptimizerOptions<FtrlOptions> {
  // The learning rate, if it is constant.
  float learning_rate = 0.01f;
  // The power of the decay of the learning rate, at most 0.
  float learning_rate_power = -0.5f;
  // The initial value of the sum of squares.
  float initial_accumulator_value = 0.1f;
  // The factors of the L1 and L2 penalties.
  float l1 = 0;
  float l2 = 0;
};
class Ftrl final : public Optimizer {
 public:
  // Adds updates to the graph of `scope`.
  explicit Ftrl(const Scope& scope, const FtrlOptions& options = {})
      : Optimizer(scope, options.rate, options.learning_rate), options_(options) {}

 private:
  Operation Apply(const Scope& scope, const Output& variable, const VariableInfo& info,
                  const SparseGradient& gradient) override;

  const FtrlOptions options_;
};

// Scales the gradients so that the square root of the sum of all squares is at most `norm`. If the
// square root is not finite, all gradients become NaN, as in TensorFlow. Empty gradients stay
// empty. The norm of slices counts each value separately, even if an index repeats, as in
// TensorFlow.
std::vector<Output> ClipByGlobalNorm(const Scope& scope, const std::vector<Output>& gradients,
                                     float norm);
std::vector<SparseGradient> ClipByGlobalNorm(const Scope& scope,
                                             const std::vector<SparseGradient>& gradients,
                                             float norm);

}  // namespace training
}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_TRAINING_OPTIMIZER_H_
