#include "gradflow/training/layers.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gradflow/core/out_parameter.h"
#include "gradflow/core/status.h"
#include "gradflow/core/tensor.h"
#include "gradflow/graph/const_op.h"
#include "gradflow/graph/node.h"
#include "gradflow/ops/array_ops.h"
#include "gradflow/ops/math_ops.h"
#include "gradflow/ops/nn_ops.h"
#include "gradflow/ops/no_op.h"
#include "gradflow/training/variables.h"

namespace gradflow {
namespace training {
namespace {

// Returns false, and sets the status of the scope, if x is empty.
bool HasInput(const Scope& scope, const std::string& name, const Output& x) {
  if (scope.ok() && x.node() == nullptr) {
    scope.UpdateStatus(errors::InvalidArgument("layer '", name, "': the input is empty"));
  }
  return scope.ok();
}

// Stores the dimensions of x, with -1 for an unknown first dimension. Returns false and sets the
// status of the scope if the rank is not one of `ranks` or another dimension is not known.
bool KnownDims(const Scope& scope, const std::string& name, const Output& x,
               const std::vector<int>& ranks, std::vector<int64_t>* dims) {
  if (!HasInput(scope, name, x)) return false;
  const PartialTensorShape& shape = x.node()->output_shape(x.index());
  bool is_known = false;
  for (const int rank : ranks) is_known = is_known || shape.dims() == rank;
  for (int d = 0; is_known && d < shape.dims(); ++d) {
    dims->push_back(shape.dim_size(d));
    is_known = d == 0 || shape.dim_size(d) > 0;
  }
  if (!is_known) {
    scope.UpdateStatus(errors::InvalidArgument(
        "layer '", name, "': expected an input of rank ", ranks.front(),
        ranks.size() > 1 ? absl::StrCat(" or ", ranks.back()) : "",
        " with known positive dimensions after the first, found shape ", shape.DebugString()));
  }
  return is_known;
}

Output AddBias(const Scope& scope, Model* model, const std::string& name, const Output& x,
               int64_t channels) {
  const Output bias = model->Variable(absl::StrCat(name, "/bias"), {channels}, Constant(0));
  return ops::BiasAdd(scope, x, ReadVariable(scope, bias));
}

Output Kernel(const Scope& scope, Model* model, const std::string& name, const TensorShape& shape,
              const LayerOptions& options) {
  const Output kernel = ReadVariable(
      scope, model->Variable(absl::StrCat(name, "/kernel"), shape, options.kernel_initializer));
  return options.weight_bits == 0 ? kernel : FakeQuantWeights(scope, kernel, options.weight_bits);
}

// Adds the update of a moving value, and returns the updated value.
Output Move(const Scope& scope, Model* model, const Output& variable, const Output& batch,
            float momentum) {
  const Output old = ReadVariable(scope, variable);
  const Output moved =
      ops::Add(scope, old, ops::Mul(scope, ops::Sub(scope, batch, old), 1 - momentum));
  model->AddUpdate(AssignVariable(scope, variable, moved));
  return moved;
}

Output AllAxes(const Scope& scope, const Output& x, bool but_last) {
  const Output rank = ops::Rank(scope, x);
  return ops::Range(scope, 0, but_last ? Output(ops::Sub(scope, rank, 1)) : rank, 1);
}

// Rounds a positive step up to a power of two. Computes in double, where powers of two are exact to
// the last bit of a float.
Output PowerOfTwoAbove(const Scope& scope, const Output& step) {
  const Output logarithm =
      ops::Mul(scope, ops::Log(scope, ops::Cast(scope, step, DT_DOUBLE)), 1 / std::log(2.0));
  // The subtraction leaves powers of two unchanged despite rounding errors of the logarithm.
  const Output exponent = ops::Ceil(scope, ops::Sub(scope, logarithm, 1e-6));
  return ops::Cast(scope, ops::Pow(scope, 2.0, exponent), DT_FLOAT);
}

template <typename Options, typename T>
Options With(const Options& options, T Options::*member, T value) {
  Options changed = options;
  changed.*member = std::move(value);
  return changed;
}

}  // namespace

Initializer Constant(float value) {
  return [value](const Scope& scope, const InitializerOptions& options) {
    return ConstantValues(scope, options, value);
  };
}

Output Model::Variable(const std::string& name, const TensorShape& shape,
                       const Initializer& initializer, bool is_trainable) {
  const auto found = by_name_.find(name);
  if (found != by_name_.end()) {
    const absl::StatusOr<VariableInfo> info = InfoOf(found->second);
    if (info.ok() && !info->shape.IsIdenticalTo(PartialTensorShape(shape))) {
      scope_.UpdateStatus(errors::InvalidArgument("variable '", name, "' has shape ",
                                                  info->shape.DebugString(), ", expected ",
                                                  shape.DebugString()));
    }
    return found->second;
  }
  const Output variable = NewVariable(scope_.WithOpName(name), name, DT_FLOAT, shape);
  const Scope scope = scope_.NewSubScope(absl::StrCat(name, "/initial"));
  InitializerOptions options;
  options.shape = shape;
  // Different seeds give all variables different numbers. Unsigned, because the product may wrap.
  options.seed = static_cast<int64_t>(static_cast<uint64_t>(seed_) * 1000003 + variables_.size());
  initializers_.push_back(AssignVariable(scope, variable, initializer(scope, options)));
  variables_.push_back(variable);
  if (is_trainable) trainable_.push_back(variable);
  by_name_.emplace(name, variable);
  return variable;
}

LayerOptions LayerOptions::UseBias(bool use) const {
  return With(*this, &LayerOptions::use_bias, use);
}
LayerOptions LayerOptions::WeightBits(int bits) const {
  return With(*this, &LayerOptions::weight_bits, bits);
}
LayerOptions LayerOptions::KernelInitializer(Initializer initializer) const {
  return With(*this, &LayerOptions::kernel_initializer, std::move(initializer));
}
LayerOptions LayerOptions::Filter(int64_t size) const {
  return With(*this, &LayerOptions::filter, size);
}
LayerOptions LayerOptions::Stride(int size) const {
  return With(*this, &LayerOptions::stride, size);
}
LayerOptions LayerOptions::Padding(std::string kind) const {
  return With(*this, &LayerOptions::padding, std::move(kind));
}
BatchNormOptions BatchNormOptions::Training(bool is_training) const {
  return With(*this, &BatchNormOptions::training, is_training);
}
BatchNormOptions BatchNormOptions::Momentum(float value) const {
  return With(*this, &BatchNormOptions::momentum, value);
}
BatchNormOptions BatchNormOptions::Epsilon(float value) const {
  return With(*this, &BatchNormOptions::epsilon, value);
}
FakeQuantOptions FakeQuantOptions::Training(bool is_training) const {
  return With(*this, &FakeQuantOptions::training, is_training);
}
FakeQuantOptions FakeQuantOptions::Bits(int number) const {
  return With(*this, &FakeQuantOptions::bits, number);
}
FakeQuantOptions FakeQuantOptions::Momentum(float value) const {
  return With(*this, &FakeQuantOptions::momentum, value);
}
FakeQuantOptions FakeQuantOptions::Range(float lowest, float highest) const {
  return With(With(*this, &FakeQuantOptions::min, lowest), &FakeQuantOptions::max, highest);
}
FakeQuantOptions FakeQuantOptions::Nonnegative(bool is) const {
  return With(*this, &FakeQuantOptions::nonnegative, is);
}
FakeQuantOptions FakeQuantOptions::PowerOfTwo(bool is) const {
  return With(*this, &FakeQuantOptions::power_of_two, is);
}

Output Dense(const Scope& scope, Model* model, const std::string& name, const Output& x,
             int64_t units, const LayerOptions& options) {
  const Scope s = scope.NewSubScope(name);
  std::vector<int64_t> dims;
  if (!KnownDims(s, name, x, {2}, &dims)) return Output();
  const Output y = ops::MatMul(s, x, Kernel(s, model, name, {dims[1], units}, options));
  return options.use_bias ? AddBias(s, model, name, y, units) : y;
}

Output Conv2D(const Scope& scope, Model* model, const std::string& name, const Output& x,
              int64_t filters, const LayerOptions& options) {
  const Scope s = scope.NewSubScope(name);
  std::vector<int64_t> dims;
  if (!KnownDims(s, name, x, {4}, &dims)) return Output();
  const Output kernel =
      Kernel(s, model, name, {options.filter, options.filter, dims[3], filters}, options);
  const Output y =
      ops::Conv2D(s, x, kernel, {1, options.stride, options.stride, 1}, options.padding);
  return options.use_bias ? AddBias(s, model, name, y, filters) : y;
}

Output Flatten(const Scope& scope, const Output& x) {
  if (!scope.ok()) return Output();
  if (x.node() == nullptr) {
    scope.UpdateStatus(errors::InvalidArgument("expected a tensor to flatten, found none"));
    return Output();
  }
  const PartialTensorShape& shape = x.node()->output_shape(x.index());
  int64_t columns = 1;
  for (int d = 1; d < shape.dims(); ++d) {
    // Negative if a dimension is not known or the product overflows.
    columns = columns < 0 || shape.dim_size(d) < 0
                  ? -1
                  : MultiplyWithoutOverflow(columns, shape.dim_size(d));
  }
  if (shape.dims() < 1 || columns < 1) {
    scope.UpdateStatus(errors::InvalidArgument(
        "expected known positive dimensions after the first to flatten, found shape ",
        shape.DebugString()));
    return Output();
  }
  return ops::Reshape(scope.WithOpName("flatten"), x, {int64_t{-1}, columns});
}

Output BatchNorm(const Scope& scope, Model* model, const std::string& name, const Output& x,
                 const BatchNormOptions& options) {
  const Scope s = scope.NewSubScope(name);
  std::vector<int64_t> dims;
  if (!KnownDims(s, name, x, {2, 4}, &dims)) return Output();
  const int64_t channels = dims.back();
  const auto variable = [&](const char* which, float value, bool is_trainable) {
    return model->Variable(absl::StrCat(name, "/", which), {channels}, Constant(value),
                           is_trainable);
  };
  const Output gamma = variable("gamma", 1, true);
  const Output beta = variable("beta", 0, true);
  const Output mean = variable("moving_mean", 0, false);
  const Output variance = variable("moving_variance", 1, false);
  const int64_t one = 1;
  const Output images =
      dims.size() == 4 ? x : Output(ops::Reshape(s, x, {int64_t{-1}, one, one, channels}));
  Output none =
      options.training ? ops::Const(s, Input::Initializer(Tensor(DT_FLOAT, {0}))) : Output();
  const ops::FusedBatchNormV3 norm(
      s, images, ReadVariable(s, gamma), ReadVariable(s, beta),
      options.training ? none : ReadVariable(s, mean),
      options.training ? none : ReadVariable(s, variance),
      ops::FusedBatchNormV3::Epsilon(options.epsilon).IsTraining(options.training));
  if (!s.ok()) return Output();
  if (options.training) {
    Move(s, model, mean, norm.batch_mean, options.momentum);
    Move(s, model, variance, norm.batch_variance, options.momentum);
  }
  return dims.size() == 4 ? norm.y : Output(ops::Reshape(s, norm.y, {int64_t{-1}, channels}));
}

Output FakeQuant(const Scope& scope, Model* model, const std::string& name, const Output& x,
                 const FakeQuantOptions& options) {
  const Scope s = scope.NewSubScope(name);
  if (options.bits < 2 || options.bits > 16) {
    s.UpdateStatus(
        errors::InvalidArgument("layer '", name, "': expected 2 to 16 bits, found ", options.bits));
  }
  if (!HasInput(s, name, x)) return Output();
  // Returns a bound of the range: the updated moving bound in training, otherwise the stored bound.
  const auto bound = [&](const char* which, float first, const auto& of_batch) {
    const Output variable =
        model->Variable(absl::StrCat(name, "/", which), TensorShape(), Constant(first), false);
    if (!options.training) return ReadVariable(s, variable);
    const Output batch = ops::StopGradient(s, of_batch());
    return Move(s, model, variable, batch, options.momentum);
  };
  const Output zero = ops::Const(s, 0.0f);
  Output max = bound("max", options.max, [&] {
    return Output(ops::Maximum(s, ops::Max(s, x, AllAxes(s, x, false)), 0.0f));
  });
  Output min = options.nonnegative ? zero : bound("min", options.min, [&] {
    return Output(ops::Minimum(s, ops::Min(s, x, AllAxes(s, x, false)), 0.0f));
  });
  const auto levels = static_cast<float>((int64_t{1} << options.bits) - 1);
  // An empty range would have a step of 0.
  max = ops::Maximum(s, max, 1e-6f);
  if (options.power_of_two) {
    // Signed integers range from -2^(bits - 1) to 2^(bits - 1) - 1.
    const float highest = options.nonnegative ? levels : (levels - 1) / 2;
    const Output reach = options.nonnegative ? max : Output(ops::Maximum(s, max, ops::Neg(s, min)));
    const Output step = PowerOfTwoAbove(s, ops::RealDiv(s, reach, highest));
    max = ops::Mul(s, step, highest);
    if (!options.nonnegative) min = ops::Mul(s, step, -highest - 1);
  }
  return ops::FakeQuantWithMinMaxVars(s, x, min, max,
                                      ops::FakeQuantWithMinMaxVars::NumBits(options.bits));
}

Output FakeQuantWeights(const Scope& scope, const Output& weights, int bits) {
  const Scope s = scope.NewSubScope("quantized_weights");
  if (!s.ok()) return Output();
  const Output magnitudes = ops::Abs(s, ops::StopGradient(s, weights));
  // The range of a channel of zeros is arbitrary, but must not be empty.
  const Output max = ops::Maximum(s, ops::Max(s, magnitudes, AllAxes(s, weights, true)), 1e-6f);
  return ops::FakeQuantWithMinMaxVarsPerChannel(
      s, weights, ops::Neg(s, max), max,
      ops::FakeQuantWithMinMaxVarsPerChannel::NumBits(bits).NarrowRange(true));
}

absl::Status ExponentialMovingAverage::Apply(const Scope& scope,
                                             const std::vector<Output>& variables,
                                             Operation* update) {
  GRADFLOW_RETURN_IF_ERROR(internal::CheckOut(update, "ExponentialMovingAverage::Apply", "update"));
  if (!averages_.empty()) return errors::FailedPrecondition("averages are applied once");
  if (variables.empty()) return errors::InvalidArgument("an average needs a variable");
  std::vector<VariableInfo> infos;
  for (const Output& variable : variables) {
    GRADFLOW_ASSIGN_OR_RETURN(VariableInfo info, InfoOf(variable));
    infos.push_back(std::move(info));
  }
  const Scope s = scope.NewSubScope("moving_averages");
  const Scope always = scope_.NewSubScope("averages");
  std::vector<Operation> updates;
  for (size_t i = 0; i < variables.size(); ++i) {
    const VariableInfo& info = infos[i];
    const Output average = NewVariable(always, absl::StrCat(info.name, "/ExponentialMovingAverage"),
                                       info.dtype, info.shape, info.is_resource);
    const Output old = ReadVariable(s, average);
    Output rate = ops::Const(s, 1 - decay_);
    if (info.dtype != DT_FLOAT) rate = ops::Cast(s, rate, info.dtype);
    const Output difference = ops::Sub(s, ReadVariable(s, variables[i]), old);
    updates.push_back(AssignVariable(s, average, ops::Add(s, old, ops::Mul(s, difference, rate))));
    initializers_.push_back(AssignVariable(always, average, ReadVariable(always, variables[i])));
    assignments_.push_back(AssignVariable(always, variables[i], ReadVariable(always, average)));
    averages_.push_back(average);
  }
  *update = ops::NoOp(s.WithControlDependencies(updates)).operation;
  return scope.status();
}

}  // namespace training
}  // namespace gradflow
