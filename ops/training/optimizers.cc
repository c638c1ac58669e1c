// The ops of optimizers: for each optimizer, Apply, SparseApply, ResourceApply and
// ResourceSparseApply.
#include <algorithm>
#include <array>
#include <atomic>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/core/variable.h"
#include "gradflow/ops/common/data_types.h"
#include "gradflow/ops/common/elementwise.h"
#include "gradflow/ops/common/indices.h"
#include "gradflow/ops/training/optimizer_steps.h"
#include "gradflow/proto/op_def.pb.h"

namespace gradflow::optimizers {
namespace {

constexpr int kMaxVariables = 4;
constexpr int kMaxScalars = 6;

// ---- Loops over elements ----

// Updates n elements at vars[k] with the elements at grad. REQUIRES: `scalars` are prepared
using StepLoop = void (*)(const void* scalars, void* const* vars, const void* grad, int64_t n);

template <typename Step, typename O, typename T>
void RunSteps(const void* scalars, void* const* vars, const void* grad, int64_t n) {
  std::array<T, kMaxScalars> s;
  std::copy_n(static_cast<const T*>(scalars), kMaxScalars, s.begin());
  const T* g = static_cast<const T*>(grad);
  T* a = static_cast<T*>(vars[0]);
  if constexpr (Step::kVariables == 1) {
    GRADFLOW_SAME_INDEX_LOOP
    for (int64_t i = 0; i < n; ++i) Step::template Apply<O>(s.data(), a[i], g[i]);
  } else if constexpr (Step::kVariables == 2) {
    T* b = static_cast<T*>(vars[1]);
    GRADFLOW_SAME_INDEX_LOOP
    for (int64_t i = 0; i < n; ++i) Step::template Apply<O>(s.data(), a[i], b[i], g[i]);
  } else if constexpr (Step::kVariables == 3) {
    T* b = static_cast<T*>(vars[1]);
    T* c = static_cast<T*>(vars[2]);
    GRADFLOW_SAME_INDEX_LOOP
    for (int64_t i = 0; i < n; ++i) Step::template Apply<O>(s.data(), a[i], b[i], c[i], g[i]);
  } else {
    T* b = static_cast<T*>(vars[1]);
    T* c = static_cast<T*>(vars[2]);
    T* d = static_cast<T*>(vars[3]);
    GRADFLOW_SAME_INDEX_LOOP
    for (int64_t i = 0; i < n; ++i) {
      Step::template Apply<O>(s.data(), a[i], b[i], c[i], d[i], g[i]);
    }
  }
}

template <typename Step, typename T, typename = void>
struct HasPrepare : std::false_type {};
template <typename Step, typename T>
struct HasPrepare<Step, T, std::void_t<decltype(Step::Prepare(std::declval<T*>()))>>
    : std::true_type {};
template <typename Step, typename T, typename = void>
struct HasSpecial : std::false_type {};
template <typename Step, typename T>
struct HasSpecial<Step, T, std::void_t<decltype(Step::IsSpecial(std::declval<T*>()))>>
    : std::true_type {};

// The loops of a step for one computing type.
struct StepLoops {
  // Indexed by the attribute, and by whether the special formula applies.
  StepLoop loops[2][2] = {{nullptr, nullptr}, {nullptr, nullptr}};
  void (*prepare)(void* scalars) = nullptr;
  bool (*is_special)(const void* scalars) = nullptr;
};

template <typename Step, typename T, bool kSparse>
StepLoops MakeLoops() {
  using optimizer::StepOptions;
  StepLoops result;
  result.loops[0][0] = RunSteps<Step, StepOptions<false, kSparse, false>, T>;
  result.loops[1][0] = RunSteps<Step, StepOptions<true, kSparse, false>, T>;
  if constexpr (HasSpecial<Step, T>::value) {
    result.loops[0][1] = RunSteps<Step, StepOptions<false, kSparse, true>, T>;
    result.loops[1][1] = RunSteps<Step, StepOptions<true, kSparse, true>, T>;
    result.is_special = [](const void* s) { return Step::IsSpecial(static_cast<const T*>(s)); };
  }
  if constexpr (HasPrepare<Step, T>::value) {
    result.prepare = [](void* s) { Step::Prepare(static_cast<T*>(s)); };
  }
  return result;
}

template <typename Step, typename T>
StepLoops LoopsOf(bool sparse) {
  return sparse ? MakeLoops<Step, T, true>() : MakeLoops<Step, T, false>();
}

// Returns the loops for elements of type `dtype`. 16-bit floats are computed in float.
template <typename Step, bool kHasComplex>
StepLoops FindLoops(DataType dtype, bool sparse) {
  if (dtype == DT_DOUBLE) return LoopsOf<Step, double>(sparse);
  if constexpr (kHasComplex) {
    if (dtype == DT_COMPLEX64) return LoopsOf<Step, complex64>(sparse);
    if (dtype == DT_COMPLEX128) return LoopsOf<Step, complex128>(sparse);
  }
  return LoopsOf<Step, float>(sparse);
}

// Calls `loop` on 16-bit floats, which are converted to float and back.
template <typename T>
void RunConverted(StepLoop loop, const void* scalars, int num_variables, void* const* vars,
                  const void* grad, int64_t n) {
  float buffers[kMaxVariables + 1][kElementwiseChunk];
  void* converted[kMaxVariables];
  for (int64_t begin = 0; begin < n; begin += kElementwiseChunk) {
    const int64_t count = std::min(kElementwiseChunk, n - begin);
    for (int k = 0; k < num_variables; ++k) {
      std::copy_n(static_cast<const T*>(vars[k]) + begin, count, buffers[k]);
      converted[k] = buffers[k];
    }
    std::copy_n(static_cast<const T*>(grad) + begin, count, buffers[kMaxVariables]);
    loop(scalars, converted, buffers[kMaxVariables], count);
    for (int k = 0; k < num_variables; ++k) {
      std::transform(buffers[k], buffers[k] + count, static_cast<T*>(vars[k]) + begin,
                     [](float x) { return static_cast<T>(x); });
    }
  }
}

// ---- Kernels ----

// With this attribute, the learning rate may be 0.
constexpr char kMultiplyLinear[] = "multiply_linear_by_lr";

// A condition on a scalar input.
enum class Range { kAny, kPositive, kNonnegative, kNonpositive };

struct OptimizerOps {
  // The name of the ops, without "Apply" and the words before it.
  const char* name;
  // The names of the variables, of the other inputs of the dense ops, and of the other inputs of
  // the sparse ops, in order. Null if there are no such ops.
  const char* variables;
  const char* dense;
  const char* sparse;
  // True if there are ops for reference variables.
  bool has_references;
  // The attribute in addition to use_locking, or null.
  const char* attr;
  const char* summary;
  const char* formula;
  // True if complex types have kernels.
  bool has_complex;
  KernelFactory factory;
};

Range RangeOf(absl::string_view optimizer, absl::string_view scalar) {
  if (!absl::StrContains(optimizer, "Ftrl")) return Range::kAny;
  if (scalar == "lr") return Range::kPositive;
  if (scalar == "lr_power") return Range::kNonpositive;
  return Range::kNonnegative;
}

// Returns the shape of the variable, with the dimensions that the gradient tells. Returns
// INVALID_ARGUMENT unless `grad` may have the shape of the variable (dense), or the shape
// [number of indices] + variable[1:] (sparse).
absl::StatusOr<PartialTensorShape> MergeGradient(const PartialTensorShape& var,
                                                 absl::string_view grad_name,
                                                 const PartialTensorShape& grad,
                                                 const PartialTensorShape* indices) {
  if (indices == nullptr) return MergeShapes("var", var, grad_name, grad);
  GRADFLOW_RETURN_IF_ERROR(CheckRank("indices", *indices, 1));
  GRADFLOW_RETURN_IF_ERROR(CheckRankAtLeast("var", var, 1));
  GRADFLOW_RETURN_IF_ERROR(CheckRankAtLeast(grad_name, grad, 1));
  GRADFLOW_RETURN_IF_ERROR(MergeDims("indices", *indices, 0, grad_name, grad, 0).status());
  // The gradient has a row for each index, and any number of rows fits the variable.
  if (grad.unknown_rank()) return var;
  PartialTensorShape rows = grad;
  rows.set_dim(0, -1);
  return MergeShapes("var", var, grad_name, rows);
}

// The role of an input of an optimizer.
enum class Role { kVariable, kGradient, kIndices, kGlobalStep, kScalar };

Role RoleOf(const OpDef::ArgDef& arg) {
  if (arg.is_ref() || arg.type() == DT_RESOURCE) return Role::kVariable;
  if (arg.name() == "grad" || arg.name() == "delta") return Role::kGradient;
  if (arg.name() == "indices") return Role::kIndices;
  if (arg.name() == "global_step") return Role::kGlobalStep;
  return Role::kScalar;
}

// The inputs of an op by role.
struct Inputs {
  explicit Inputs(const OpDef& def) {
    for (int i = 0; i < def.input_arg_size(); ++i) {
      const OpDef::ArgDef& arg = def.input_arg(i);
      names.push_back(arg.name());
      switch (RoleOf(arg)) {
        case Role::kVariable:
          variables.push_back(i);
          break;
        case Role::kGradient:
          grad = i;
          break;
        case Role::kIndices:
          indices = i;
          break;
        case Role::kGlobalStep:
          global_step = i;
          break;
        case Role::kScalar:
          scalars.push_back(i);
          break;
      }
    }
  }

  std::vector<std::string> names;
  std::vector<int> variables;
  std::vector<int> scalars;
  int grad = -1;
  int indices = -1;
  int global_step = -1;
};

template <typename Step, bool kHasComplex>
class OptimizerKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    const OpDef& def = construction.op_def();
    inputs_ = Inputs(def);
    dtype_ = BaseType(construction.input_type(inputs_.grad));
    loops_ = FindLoops<Step, kHasComplex>(dtype_, inputs_.indices >= 0);
    for (const int i : inputs_.scalars) {
      ranges_.push_back(RangeOf(def.name(), inputs_.names[i]));
    }
    // An op has at most one of these attributes.
    for (const char* attr : {"use_nesterov", "update_slots", kMultiplyLinear}) {
      construction.GetAttr(attr, &flag_).IgnoreError();
    }
    bool multiplies = false;
    if (construction.GetAttr(kMultiplyLinear, &multiplies).ok() && multiplies) {
      std::replace(ranges_.begin(), ranges_.end(), Range::kPositive, Range::kNonnegative);
    }
    return absl::OkStatus();
  }

  absl::Status Compute(KernelContext& ctx) const override {
    alignas(16) char scalars[kMaxScalars * sizeof(complex128)] = {};
    GRADFLOW_RETURN_IF_ERROR(ReadScalars(ctx, scalars));
    const Tensor& grad = ctx.input(inputs_.grad);
    VariableUpdate update;
    GRADFLOW_RETURN_IF_ERROR(update.Begin(ctx, inputs_.variables, dtype_));
    const TensorShape shape = update.value(0).shape();
    for (size_t k = 1; k < inputs_.variables.size(); ++k) {
      if (update.value(k).shape() == shape) continue;
      return errors::InvalidArgument("var and ", inputs_.names[k],
                                     " must have the same shape, but have ", shape.DebugString(),
                                     " and ", update.value(k).shape().DebugString());
    }
    PartialTensorShape indices_shape;
    if (inputs_.indices >= 0) indices_shape = ctx.input(inputs_.indices).shape();
    GRADFLOW_RETURN_IF_ERROR(MergeGradient(shape, inputs_.names[inputs_.grad], grad.shape(),
                                           inputs_.indices >= 0 ? &indices_shape : nullptr)
                                 .status());
    if (inputs_.indices >= 0) {
      GRADFLOW_RETURN_IF_ERROR(
          CheckIndices(ctx.run(), ctx.input(inputs_.indices), shape.dim_size(0)));
      // Some indices may be unchecked.
      if (ctx.run().ShouldStop()) return StoppedError();
    }
    GRADFLOW_RETURN_IF_ERROR(update.MakeWritable());
    char* vars[kMaxVariables] = {};
    for (size_t k = 0; k < inputs_.variables.size(); ++k) {
      vars[k] = static_cast<char*>(update.value(k).raw_data());
    }
    const bool special = loops_.is_special != nullptr && loops_.is_special(scalars);
    const StepLoop loop = loops_.loops[flag_ ? 1 : 0][special ? 1 : 0];
    const char* from = static_cast<const char*>(grad.raw_data());
    const int64_t size = DataTypeSize(dtype_);
    // Updates n elements of the variables from element `to` on with the elements of grad from `at`
    // on.
    const auto run = [&](int64_t to, int64_t at, int64_t n) {
      void* elements[kMaxVariables] = {};
      for (size_t k = 0; k < inputs_.variables.size(); ++k) elements[k] = vars[k] + to * size;
      const int count = static_cast<int>(inputs_.variables.size());
      if (dtype_ == DT_HALF) {
        RunConverted<half>(loop, scalars, count, elements, from + at * size, n);
      } else if (dtype_ == DT_BFLOAT16) {
        RunConverted<bfloat16>(loop, scalars, count, elements, from + at * size, n);
      } else {
        loop(scalars, elements, from + at * size, n);
      }
    };
    if (inputs_.indices < 0) {
      ParallelFor(update.run(), shape.num_elements(), BlockSizeForCost(kNanoseconds),
                  [&](int64_t begin, int64_t end) { run(begin, begin, end - begin); });
    } else if (grad.NumElements() > 0) {
      // Tasks process columns, so that updates of the same row are applied in order.
      constexpr int64_t kMinColumns = 64;
      const IndexReader rows(ctx.input(inputs_.indices));
      const int64_t num_rows = grad.dim_size(0);
      const int64_t columns = grad.NumElements() / num_rows;
      const int64_t block =
          std::max(kMinColumns, BlockSizeForCost(kNanoseconds * static_cast<double>(num_rows)));
      ParallelFor(update.run(), columns, block, [&](int64_t begin, int64_t end) {
        for (int64_t i = 0; i < num_rows; ++i) {
          run(rows[i] * columns + begin, i * columns + begin, end - begin);
        }
      });
    }
    if (ctx.num_outputs() > 0) ctx.set_output(0, ctx.input(0));
    return absl::OkStatus();
  }

 private:
  static constexpr double kNanoseconds = 2;

  // Reads the scalars in the computing type, checks them, and prepares them.
  absl::Status ReadScalars(const KernelContext& ctx, void* scalars) const {
    absl::Status status;
    const auto read = [&](auto stored, auto computed) {
      using T = decltype(stored);
      using C = decltype(computed);
      C* to = static_cast<C*>(scalars);
      size_t count = 0;
      for (const int i : inputs_.scalars) {
        status = ctx.CheckScalar(i, inputs_.names[i]);
        if (!status.ok()) return;
        to[count] = static_cast<C>(ctx.input(i).scalar<T>()());
        if constexpr (!kIsComplex<C>) {
          status = CheckRange(inputs_.names[i], ranges_[count], static_cast<double>(to[count]));
          if (!status.ok()) return;
        }
        ++count;
      }
      if (inputs_.global_step >= 0) {
        const absl::StatusOr<int64_t> step = ctx.ScalarInt(inputs_.global_step, "global_step");
        status = step.status();
        if (!status.ok()) return;
        if constexpr (!kIsComplex<C>) to[count] = static_cast<C>(*step);
      }
    };
    switch (dtype_) {
      case DT_HALF:
        read(half(), float());
        break;
      case DT_BFLOAT16:
        read(bfloat16(), float());
        break;
      case DT_DOUBLE:
        read(double(), double());
        break;
      case DT_COMPLEX64:
        read(complex64(), complex64());
        break;
      case DT_COMPLEX128:
        read(complex128(), complex128());
        break;
      default:
        read(float(), float());
    }
    if (status.ok() && loops_.prepare != nullptr) loops_.prepare(scalars);
    return status;
  }

  static absl::Status CheckRange(absl::string_view name, Range range, double value) {
    const char* condition = nullptr;
    // NaN fails every condition.
    if (range == Range::kPositive && !(value > 0)) condition = "positive";
    if (range == Range::kNonnegative && !(value >= 0)) condition = "nonnegative";
    if (range == Range::kNonpositive && !(value <= 0)) condition = "nonpositive";
    if (condition == nullptr) return absl::OkStatus();
    return errors::InvalidArgument(name, " must be ", condition, ", but is ", value);
  }

  Inputs inputs_{OpDef()};
  std::vector<Range> ranges_;
  DataType dtype_ = DT_INVALID;
  StepLoops loops_;
  // The value of the attribute in addition to use_locking.
  bool flag_ = false;
};

// Returns the documentation of an argument or attribute.
std::string Describe(absl::string_view name) {
  static constexpr std::pair<absl::string_view, absl::string_view> kTexts[] = {
      {"var", "The variable to update."},
      {"out", "The variable, for nodes that use it after the update."},
      {"grad", "The gradient."},
      {"delta", "The change, usually the gradient."},
      {"indices", "A vector: the rows of the variables that the rows of `grad` belong to."},
      {"lr", "A scalar: the learning rate."},
      {"alpha", "A scalar: the factor of the step."},
      {"l1", "A scalar: the factor of the L1 penalty."},
      {"l2", "A scalar: the factor of the L2 penalty."},
      {"l2_shrinkage", "A scalar: the factor of the L2 penalty that is added to the gradient."},
      {"lr_power", "A scalar, at most 0: the power of the decay of the learning rate."},
      {"rho", "A scalar: the decay of the moving averages."},
      {"epsilon", "A scalar: keeps the divisor from being 0."},
      {"momentum", "A scalar: the factor of the previous step."},
      {"global_step", "A scalar: the number of the step."},
      {"beta1_power", "A scalar: beta1 to the power of the number of the step."},
      {"beta2_power", "A scalar: beta2 to the power of the number of the step."},
      {"beta1", "A scalar: the decay of the first moment."},
      {"beta2", "A scalar: the decay of the second moment."},
      {"beta", "A scalar: the decay of the moving average of the gradient."},
      {"logbase", "A scalar: the logarithm of the base of the power."},
      {"sign_decay", "A scalar: the factor of the product of the signs."},
      {"T", "The type of the variables."},
      {"Tindices", "The type of `indices`."},
      {"use_locking", "Has no effect: concurrent updates are applied one after the other."},
      {"use_nesterov", "Whether to use Nesterov's momentum."},
      {"update_slots", "Whether to update the accumulator."},
      {"multiply_linear_by_lr", "Whether `linear` is multiplied by the learning rate."},
  };
  for (const auto& [key, text] : kTexts) {
    if (key == name) return std::string(text);
  }
  return "A slot: a variable of the shape of `var`, updated with it.";
}

absl::Status OptimizerShape(ShapeContext& c) {
  const Inputs inputs(c.op_def());
  PartialTensorShape var = c.variable_shape(0);
  for (int i = 0; i < c.num_inputs(); ++i) {
    switch (RoleOf(c.op_def().input_arg(i))) {
      case Role::kGradient:
      case Role::kIndices:
        break;
      case Role::kGlobalStep:
      case Role::kScalar:
        GRADFLOW_RETURN_IF_ERROR(c.CheckRank(i, 0));
        break;
      case Role::kVariable: {
        GRADFLOW_ASSIGN_OR_RETURN(var,
                                  MergeShapes("var", var, inputs.names[i], c.variable_shape(i)));
      }
    }
  }
  GRADFLOW_ASSIGN_OR_RETURN(var,
                            MergeGradient(var, inputs.names[inputs.grad], c.input(inputs.grad),
                                          inputs.indices < 0 ? nullptr : &c.input(inputs.indices)));
  if (c.num_outputs() > 0) c.set_output(0, std::move(var));
  return absl::OkStatus();
}

// ---- Definitions ----

template <typename Step, bool kHasComplex = false>
constexpr KernelFactory kFactory = MakeKernel<OptimizerKernel<Step, kHasComplex>>;

constexpr char kRates[] = "lr rho momentum epsilon grad";

const OptimizerOps kOptimizers[] = {
    {"GradientDescent", "var", "alpha delta", nullptr, true, nullptr, "gradient descent",
     "var -= delta * alpha", true, kFactory<optimizer::GradientDescentStep, true>},
    {"ProximalGradientDescent", "var", "alpha l1 l2 delta", "alpha l1 l2 grad indices", true,
     nullptr, "proximal gradient descent",
     "v = var - delta * alpha\n"
     "var = sign(v) * max(abs(v) - alpha * l1, 0) / (1 + l2 * alpha)",
     false, kFactory<optimizer::ProximalGradientDescentStep>},
    {"Adadelta", "var accum accum_update", "lr rho epsilon grad", "lr rho epsilon grad indices",
     true, nullptr, "Adadelta",
     "accum = accum * rho + grad * grad * (1 - rho)\n"
     "update = sqrt(accum_update + epsilon) / sqrt(accum + epsilon) * grad\n"
     "var -= update * lr\n"
     "accum_update = accum_update * rho + update * update * (1 - rho)",
     true, kFactory<optimizer::AdadeltaStep, true>},
    {"Adagrad", "var accum", "lr grad", "lr grad indices", true, "update_slots: bool = true",
     "Adagrad",
     "accum += grad * grad\n"
     "var -= grad * lr / sqrt(accum)",
     true, kFactory<optimizer::AdagradStep, true>},
    {"AdagradV2", "var accum", "lr epsilon grad", "lr epsilon grad indices", true,
     "update_slots: bool = true", "Adagrad, with epsilon",
     "accum += grad * grad\n"
     "var -= grad * lr / (sqrt(accum) + epsilon)",
     true, kFactory<optimizer::AdagradV2Step, true>},
    {"ProximalAdagrad", "var accum", "lr l1 l2 grad", "lr l1 l2 grad indices", true, nullptr,
     "proximal Adagrad",
     "accum += grad * grad\n"
     "rate = lr / sqrt(accum)\n"
     "v = var - grad * rate\n"
     "var = sign(v) * max(abs(v) - rate * l1, 0) / (1 + l2 * rate)",
     false, kFactory<optimizer::ProximalAdagradStep>},
    {"AdagradDA", "var gradient_accumulator gradient_squared_accumulator",
     "grad lr l1 l2 global_step", "grad indices lr l1 l2 global_step", true, nullptr,
     "Adagrad with dual averaging",
     "sum = gradient_accumulator += grad\n"
     "squares = gradient_squared_accumulator += grad * grad\n"
     "var = -lr * sign(sum) * max(abs(sum) - global_step * l1, 0) /\n"
     "      (l2 * global_step * lr + sqrt(squares))",
     false, kFactory<optimizer::AdagradDAStep>},
    {"Ftrl", "var accum linear", "grad lr l1 l2 lr_power", "grad indices lr l1 l2 lr_power", true,
     "multiply_linear_by_lr: bool = false", "FTRL-proximal",
     "new_accum = accum + grad * grad\n"
     "linear += grad - (new_accum^-lr_power - accum^-lr_power) / lr * var\n"
     "quadratic = new_accum^-lr_power / lr + 2 * l2\n"
     "var = (sign(linear) * l1 - linear) / quadratic if abs(linear) > l1 else 0\n"
     "accum = new_accum",
     false, kFactory<optimizer::FtrlStep<false>>},
    {"FtrlV2", "var accum linear", "grad lr l1 l2 l2_shrinkage lr_power",
     "grad indices lr l1 l2 l2_shrinkage lr_power", true, "multiply_linear_by_lr: bool = false",
     "FTRL-proximal, with L2 shrinkage",
     "new_accum = accum + grad * grad\n"
     "linear += grad + 2 * l2_shrinkage * var -\n"
     "          (new_accum^-lr_power - accum^-lr_power) / lr * var\n"
     "quadratic = new_accum^-lr_power / lr + 2 * l2\n"
     "var = (sign(linear) * l1 - linear) / quadratic if abs(linear) > l1 else 0\n"
     "accum = new_accum",
     false, kFactory<optimizer::FtrlStep<true>>},
    {"Momentum", "var accum", "lr grad momentum", "lr grad indices momentum", true,
     "use_nesterov: bool = false", "gradient descent with momentum",
     "accum = accum * momentum + grad\n"
     "var -= accum * lr, without use_nesterov\n"
     "var -= grad * lr + accum * momentum * lr, with use_nesterov",
     true, kFactory<optimizer::MomentumStep, true>},
    {"KerasMomentum", "var accum", "lr grad momentum", "lr grad indices momentum", false,
     "use_nesterov: bool = false", "gradient descent with momentum, as in Keras",
     "accum = accum * momentum - grad * lr\n"
     "var += accum, without use_nesterov\n"
     "var += accum * momentum - grad * lr, with use_nesterov",
     true, kFactory<optimizer::KerasMomentumStep, true>},
    {"Adam", "var m v", "beta1_power beta2_power lr beta1 beta2 epsilon grad", nullptr, true,
     "use_nesterov: bool = false", "Adam",
     "alpha = lr * sqrt(1 - beta2_power) / (1 - beta1_power)\n"
     "m += (grad - m) * (1 - beta1)\n"
     "v += (grad * grad - v) * (1 - beta2)\n"
     "var -= m * alpha / (sqrt(v) + epsilon), without use_nesterov\n"
     "var -= (grad * (1 - beta1) + beta1 * m) * alpha / (sqrt(v) + epsilon), with use_nesterov",
     true, kFactory<optimizer::AdamStep, true>},
    {"AdamWithAmsgrad", "var m v vhat", "beta1_power beta2_power lr beta1 beta2 epsilon grad",
     nullptr, false, nullptr, "AMSGrad",
     "alpha = lr * sqrt(1 - beta2_power) / (1 - beta1_power)\n"
     "m += (grad - m) * (1 - beta1)\n"
     "v += (grad * grad - v) * (1 - beta2)\n"
     "vhat = max(vhat, v)\n"
     "var -= m * alpha / (sqrt(vhat) + epsilon)",
     false, kFactory<optimizer::AdamWithAmsgradStep>},
    {"AdaMax", "var m v", "beta1_power lr beta1 beta2 epsilon grad", nullptr, true, nullptr,
     "AdaMax",
     "m += (grad - m) * (1 - beta1)\n"
     "v = max(beta2 * v, abs(grad))\n"
     "var -= lr / (1 - beta1_power) * (m / (v + epsilon))",
     false, kFactory<optimizer::AdaMaxStep>},
    {"RMSProp", "var ms mom", kRates, "lr rho momentum epsilon grad indices", true, nullptr,
     "RMSProp",
     "ms += (grad * grad - ms) * (1 - rho)\n"
     "mom = mom * momentum + grad * lr / sqrt(ms + epsilon)\n"
     "var -= mom",
     true, kFactory<optimizer::RMSPropStep, true>},
    {"CenteredRMSProp", "var mg ms mom", kRates, "lr rho momentum epsilon grad indices", true,
     nullptr, "centered RMSProp",
     "ms += (grad * grad - ms) * (1 - rho)\n"
     "mg += (grad - mg) * (1 - rho)\n"
     "mom = mom * momentum + grad * lr / sqrt(ms - mg * mg + epsilon)\n"
     "var -= mom",
     true, kFactory<optimizer::CenteredRMSPropStep, true>},
    {"AddSign", "var m", "lr alpha sign_decay beta grad", nullptr, true, nullptr, "AddSign",
     "m = m * beta + grad * (1 - beta)\n"
     "var -= lr * (alpha + sign_decay * sign(grad) * sign(m)) * grad",
     false, kFactory<optimizer::AddSignStep>},
    {"PowerSign", "var m", "lr logbase sign_decay beta grad", nullptr, true, nullptr, "PowerSign",
     "m = m * beta + grad * (1 - beta)\n"
     "var -= lr * exp(logbase * sign_decay * sign(grad) * sign(m)) * grad",
     false, kFactory<optimizer::PowerSignStep>},
};

void RegisterForm(Registry& registry, const OptimizerOps& optimizer, bool resource, bool sparse) {
  const std::string name =
      absl::StrCat(resource ? "Resource" : "", sparse ? "Sparse" : "", "Apply", optimizer.name);
  std::vector<std::string> described;
  Registry::OpRegistrar op = registry.Op(name);
  op.Group("training_ops").Shape(OptimizerShape);
  for (const absl::string_view variable : absl::StrSplit(optimizer.variables, ' ')) {
    op.Input(absl::StrCat(variable, resource ? ": resource" : ": Ref(T)"));
    described.emplace_back(variable);
  }
  for (const absl::string_view input :
       absl::StrSplit(sparse ? optimizer.sparse : optimizer.dense, ' ')) {
    const char* type = input == "indices" ? "Tindices" : input == "global_step" ? "int64" : "T";
    op.Input(absl::StrCat(input, ": ", type));
    described.emplace_back(input);
  }
  if (!resource) {
    op.Output("out: Ref(T)");
    described.emplace_back("out");
  }
  op.Attr("T: numbertype");
  described.emplace_back("T");
  if (sparse) {
    op.Attr("Tindices: {int32, int64}");
    described.emplace_back("Tindices");
  }
  op.Attr("use_locking: bool = false");
  described.emplace_back("use_locking");
  if (optimizer.attr != nullptr) {
    op.Attr(optimizer.attr);
    described.emplace_back(
        std::string(optimizer.attr).substr(0, std::string(optimizer.attr).find(':')));
  }
  std::string doc = absl::StrCat("Updates ", sparse ? "rows of a variable" : "a variable", " by ",
                                 optimizer.summary, ".\n\n");
  for (const absl::string_view line : absl::StrSplit(optimizer.formula, '\n')) {
    absl::StrAppend(&doc, "    ", line, "\n");
  }
  if (sparse) {
    absl::StrAppend(&doc,
                    "\nRow i of `grad` updates row `indices[i]` of the variables. Updates of the "
                    "same row are applied in\ntheir order. If an index is out of range, nothing "
                    "changes.\n");
  }
  for (const std::string& argument : described) {
    absl::StrAppend(&doc, "\n", argument, ": ", Describe(argument));
  }
  op.Doc(doc);
}

}  // namespace

void Register(Registry& registry) {
  for (const OptimizerOps& optimizer : kOptimizers) {
    DataTypeVector types = DataTypesOf(FloatingTypes());
    if (optimizer.has_complex) {
      types.push_back(DT_COMPLEX64);
      types.push_back(DT_COMPLEX128);
    }
    for (const bool resource : {false, true}) {
      if (!resource && !optimizer.has_references) continue;
      for (const bool sparse : {false, true}) {
        if (sparse && optimizer.sparse == nullptr) continue;
        RegisterForm(registry, optimizer, resource, sparse);
        registry
            .Kernel(absl::StrCat(resource ? "Resource" : "", sparse ? "Sparse" : "", "Apply",
                                 optimizer.name),
                    optimizer.factory)
            .Types("T", types);
      }
    }
  }
}

}  // namespace gradflow::optimizers
