// Optimizers: add the updates of variables by gradients to a graph.
//
//   Adam adam(scope, AdamOptions().LearningRate(0.01f));
//   Operation train;
//   GRADFLOW_RETURN_IF_ERROR(adam.Minimize(loss, {w, b}, &train));
//   ...
//   session.Run({}, {}, adam.initializers(), nullptr);   // the slots
//   for (...) session.Run(feeds, {loss}, {train}, &outputs);
//
// Also in two steps, to change the gradients in between:
//
//   GRADFLOW_RETURN_IF_ERROR(adam.ComputeGradients(loss, variables, &gradients));
//   gradients = ClipByGlobalNorm(scope, gradients, 1.0f);
//   GRADFLOW_RETURN_IF_ERROR(adam.ApplyGradients(gradients, variables, &train));
//
// The gradient of a variable of which the loss only gathers rows, such as an embedding, is slices.
// GradientDescent, Momentum, Adagrad, RMSProp and Ftrl then update these rows, and those of their
// slots, and leave the others as they are, as TensorFlow's do. A step takes time that depends on
// the rows that it gathers, not on those of the variable. Momentum, RMSProp and Ftrl would also
// change other rows for a dense gradient of zeros. Adam and AdamW always update all rows, as
// TensorFlow's Adam does, since moments decay in each step.
//
// Slots are variables of the names that TensorFlow's optimizers of the same name
// (tf.compat.v1.train) give them: "w/Adam", "w/Adam_1". A second optimizer of a graph continues the
// numbers: "w/Adam_2", "beta1_power_1". A checkpoint of either continues in the other.
//
// Errors of the graph are also those of the scope.
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

// Adds gradients and updates to a graph. The classes below are the kinds of update.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // Adds the gradients of `loss` by the variables. A variable that the loss does not depend on has
  // no gradient, NoGradient(). The options may save memory, for example.
  absl::Status ComputeGradients(const Output& loss, const std::vector<Output>& variables,
                                std::vector<Output>* gradients,
                                const GradientBuildOptions& options = {});
  // Overload that returns slices for variables of which only rows are gathered.
  absl::Status ComputeGradients(const Output& loss, const std::vector<Output>& variables,
                                std::vector<SparseGradient>* gradients,
                                const GradientBuildOptions& options = {});
  // Adds the updates. *train runs them all. Variables without a gradient are left out. Returns
  // INVALID_ARGUMENT if none has one, FAILED_PRECONDITION if it is called twice.
  absl::Status ApplyGradients(const std::vector<Output>& gradients,
                              const std::vector<Output>& variables, Operation* train);
  absl::Status ApplyGradients(const std::vector<SparseGradient>& gradients,
                              const std::vector<Output>& variables, Operation* train);
  // ComputeGradients(), with slices, and ApplyGradients().
  absl::Status Minimize(const Output& loss, const std::vector<Output>& variables, Operation* train,
                        const GradientBuildOptions& options = {});

  // After ApplyGradients: the operations that give the slots their initial values, and the slots,
  // for a Saver.
  const std::vector<Operation>& initializers() const { return initializers_; }
  const std::vector<Output>& slots() const { return slots_; }

 protected:
  // `rate` is the learning rate, a scalar of any floating type; empty for `constant_rate`.
  Optimizer(const Scope& scope, Output rate, float constant_rate)
      : scope_(scope), rate_(rate), constant_rate_(constant_rate) {}

  // Returns the scope of the constructor.
  const Scope& scope() const { return scope_; }
  // Adds the update of one variable, and returns it. Slices may have an index several times.
  virtual Operation Apply(const Scope& scope, const Output& variable, const VariableInfo& info,
                          const SparseGradient& gradient) = 0;
  // Called once before and once after all calls of Apply. `updates` are theirs; more may be added.
  virtual void Begin(const VariableInfo&) {}
  virtual void End(const Scope&, std::vector<Operation>*) {}

  // Adds a slot of `variable`, named `variable`/`name`, with all elements `value` at first. If the
  // graph has a variable of this name, the slot is named `variable`/`name`_1, or _2, and so on.
  Output NewSlot(const VariableInfo& info, absl::string_view name, float value);
  // Adds a scalar variable of this name, or one that follows it, as above.
  Output NewScalar(absl::string_view name, DataType dtype, bool is_resource, float value);
  // Adds a scalar of the type of a variable.
  Output ScalarOf(const Scope& scope, const VariableInfo& info, float value) const;
  // Returns the learning rate in the type of a variable.
  Output RateOf(const Scope& scope, const VariableInfo& info) const;
  // Adds the op of an update, "ApplyMomentum" for the name "Momentum" and a reference to a
  // variable, "ResourceSparseApplyMomentum" for slices and a resource. Its inputs are `before`, the
  // gradient, and `after`. Rows of the same index are summed.
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

// The options that all optimizers have. Learning rates may vary, see schedules.h.
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
  // With AdamW, each step first multiplies the variables by 1 - rate * weight_decay.
  float weight_decay = 0;
  // Returns, for the name of a variable, whether it is multiplied; empty for all. Biases and the
  // variables of batch norms are often left out.
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

// Adam with decoupled weight decay, by default of 0.004, as in Keras.
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

// Slots "Ftrl", the sum of squares, and "Ftrl_1".
struct FtrlOptions : OptimizerOptions<FtrlOptions> {
  // The learning rate, if it is constant.
  float learning_rate = 0.01f;
  // The power of the decay of the learning rate, at most 0.
  float learning_rate_power = -0.5f;
  // The initial value of the sum of squares.
  float initial_accumulator_value = 0.1f;
  // The factors of the penalties.
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

// Scales the gradients such that the square root of the sum of all squares is at most `norm`. If
// the square root is not finite, all become NaN, as in TensorFlow. Empty gradients stay empty. The
// squares of slices are those of their values, as in TensorFlow, also if an index is there several
// times.
std::vector<Output> ClipByGlobalNorm(const Scope& scope, const std::vector<Output>& gradients,
                                     float norm);
std::vector<SparseGradient> ClipByGlobalNorm(const Scope& scope,
                                             const std::vector<SparseGradient>& gradients,
                                             float norm);

}  // namespace training
}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_TRAINING_OPTIMIZER_H_
