// The steps of optimizers. A step updates one element of a variable and of its slots, the variables
// with the optimizer's state. The formulas and the order of operations are TensorFlow's. Internal.
//
// A step defines
//   kVariables   the number of variables, which are the variable and its slots
//   Prepare()    replaces the scalars of a call by values that the elements need; optional
//   IsSpecial()  whether the scalars allow the special formula, StepOptions::kSpecial; optional
//   Apply()      updates an element of each variable. s has the scalars in the order of the inputs
#ifndef GRADFLOW_OPS_TRAINING_OPTIMIZER_STEPS_H_
#define GRADFLOW_OPS_TRAINING_OPTIMIZER_STEPS_H_

#include <cmath>
#include <complex>

#include "gradflow/core/types.h"
#include "gradflow/ops/common/elementary_simd.h"

namespace gradflow::optimizer {

// Properties of a call of a step that are known before its loop begins.
template <bool kFlagValue, bool kSparseValue, bool kSpecialValue>
struct StepOptions {
  // The value of the op's attribute use_nesterov, update_slots or multiply_linear_by_lr.
  static constexpr bool kFlag = kFlagValue;
  static constexpr bool kSparse = kSparseValue;
  static constexpr bool kSpecial = kSpecialValue;
};

// The sign of x; NaN if x is NaN.
template <typename T>
T Sign(T x) {
  return x > T(0) ? T(1) : x < T(0) ? T(-1) : x;
}
// The larger of x and 0; NaN if x is NaN.
template <typename T>
T Positive(T x) {
  return x < T(0) ? T(0) : x;
}

// The proximal operator: the x that minimizes (x - v)^2 / 2 + rate * (l1 |x| + l2 x^2 / 2).
template <typename T>
T Proximal(T v, T rate, T l1, T l2) {
  const T shrunk = l1 > T(0) ? Sign(v) * Positive(std::abs(v) - rate * l1) : v;
  return shrunk / (T(1) + l2 * rate);
}

struct GradientDescentStep {
  static constexpr int kVariables = 1;
  template <typename O, typename T>
  static void Apply(const T* s, T& var, T grad) {
    var -= grad * s[0];
  }
};

struct ProximalGradientDescentStep {
  static constexpr int kVariables = 1;
  template <typename O, typename T>
  static void Apply(const T* s, T& var, T grad) {
    var = Proximal(var - grad * s[0], s[0], s[1], s[2]);
  }
};

struct AdadeltaStep {
  static constexpr int kVariables = 3;
  template <typename O, typename T>
  static void Apply(const T* s, T& var, T& accum, T& accum_update, T grad) {
    const T lr = s[0];
    const T rho = s[1];
    const T epsilon = s[2];
    accum = accum * rho + grad * grad * (T(1) - rho);
    const T update = std::sqrt(accum_update + epsilon) * (T(1) / std::sqrt(accum + epsilon)) * grad;
    var -= update * lr;
    accum_update = accum_update * rho + update * update * (T(1) - rho);
  }
};

struct AdagradStep {
  static constexpr int kVariables = 2;
  template <typename O, typename T>
  static void Apply(const T* s, T& var, T& accum, T grad) {
    if (O::kFlag) accum += grad * grad;
    var -= grad * s[0] * (T(1) / std::sqrt(accum));
  }
};

struct AdagradV2Step {
  static constexpr int kVariables = 2;
  template <typename O, typename T>
  static void Apply(const T* s, T& var, T& accum, T grad) {
    if (O::kFlag) accum += grad * grad;
    var -= grad * s[0] / (std::sqrt(accum) + s[1]);
  }
};

struct ProximalAdagradStep {
  static constexpr int kVariables = 2;
  template <typename O, typename T>
  static void Apply(const T* s, T& var, T& accum, T grad) {
    accum += grad * grad;
    const T rate = s[0] * (T(1) / std::sqrt(accum));
    var = Proximal(var - grad * rate, rate, s[1], s[2]);
  }
};

// The scalars are lr, l1, l2 and the global step.
struct AdagradDAStep {
  static constexpr int kVariables = 3;
  template <typename O, typename T>
  static void Apply(const T* s, T& var, T& sum, T& square_sum, T grad) {
    const T lr = s[0];
    const T l1 = s[1];
    const T l2 = s[2];
    const T step = s[3];
    sum += grad;
    square_sum += grad * grad;
    const T denominator = l2 * (step * lr) + std::sqrt(square_sum);
    if (l1 > T(0)) {
      var = lr * T(-1) * Sign(sum) * Positive(std::abs(sum) - step * l1) / denominator;
    } else {
      var = lr * sum * T(-1) / denominator;
    }
  }
};

// x to the power of y, with the same bits on all processors.
template <typename T>
T Power(T x, T y) {
  T power;
  ApplyElementary(Elementary2::kPow, &x, &y, &power, 1);
  return power;
}

// kFlag: multiply_linear_by_lr. kSpecial: lr_power is -0.5, so the power is a square root.
template <bool kShrinks>
struct FtrlStep {
  static constexpr int kVariables = 3;
  static constexpr int kLrPower = kShrinks ? 4 : 3;
  template <typename T>
  static bool IsSpecial(const T* s) {
    return s[kLrPower] == T(-0.5);
  }
  template <typename O, typename T>
  static void Apply(const T* s, T& var, T& accum, T& linear, T grad) {
    const T lr = s[0];
    const T l1 = O::kFlag ? s[1] * lr : s[1];
    const T l2 = s[2];
    const T gradient = kShrinks ? grad + T(2) * s[3] * var : grad;
    const T new_accum = accum + grad * grad;
    const auto power = [&](T x) {
      if constexpr (O::kSpecial) {
        return std::sqrt(x);
      } else {
        return Power(x, -s[kLrPower]);
      }
    };
    const T root = power(new_accum);
    if (O::kFlag) {
      linear += gradient * lr - (root - power(accum)) * var;
    } else {
      linear += gradient - (root - power(accum)) / lr * var;
    }
    const T x = l1 * Sign(linear) - linear;
    const T y = O::kFlag ? root + T(2) * l2 * lr : root / lr + T(2) * l2;
    var = std::abs(linear) > l1 ? x / y : T(0);
    accum = new_accum;
  }
};

struct MomentumStep {
  static constexpr int kVariables = 2;
  template <typename O, typename T>
  static void Apply(const T* s, T& var, T& accum, T grad) {
    const T lr = s[0];
    const T momentum = s[1];
    accum = accum * momentum + grad;
    if (O::kFlag) {
      var -= grad * lr + accum * momentum * lr;
    } else {
      var -= accum * lr;
    }
  }
};

struct KerasMomentumStep {
  static constexpr int kVariables = 2;
  template <typename O, typename T>
  static void Apply(const T* s, T& var, T& accum, T grad) {
    const T lr = s[0];
    const T momentum = s[1];
    accum = accum * momentum - grad * lr;
    var += O::kFlag ? accum * momentum - grad * lr : accum;
  }
};

// Replaces beta1_power by the learning rate of the step. The scalars of Adam are beta1_power,
// beta2_power, lr, beta1, beta2 and epsilon.
template <typename T>
void PrepareAdam(T* s) {
  s[0] = s[2] * std::sqrt(T(1) - s[1]) / (T(1) - s[0]);
}

struct AdamStep {
  static constexpr int kVariables = 3;
  template <typename T>
  static void Prepare(T* s) {
    PrepareAdam(s);
  }
  template <typename O, typename T>
  static void Apply(const T* s, T& var, T& m, T& v, T grad) {
    const T alpha = s[0];
    const T beta1 = s[3];
    const T beta2 = s[4];
    m += (grad - m) * (T(1) - beta1);
    v += (grad * grad - v) * (T(1) - beta2);
    const T step = O::kFlag ? grad * (T(1) - beta1) + beta1 * m : m;
    var -= (step * alpha) / (std::sqrt(v) + s[5]);
  }
};

struct AdamWithAmsgradStep {
  static constexpr int kVariables = 4;
  template <typename T>
  static void Prepare(T* s) {
    PrepareAdam(s);
  }
  template <typename O, typename T>
  static void Apply(const T* s, T& var, T& m, T& v, T& vhat, T grad) {
    m += (grad - m) * (T(1) - s[3]);
    v += (grad * grad - v) * (T(1) - s[4]);
    vhat = vhat < v ? v : vhat;
    var -= (m * s[0]) / (std::sqrt(vhat) + s[5]);
  }
};

// The scalars are beta1_power, lr, beta1, beta2 and epsilon.
struct AdaMaxStep {
  static constexpr int kVariables = 3;
  template <typename T>
  static void Prepare(T* s) {
    s[0] = s[1] / (T(1) - s[0]);
  }
  template <typename O, typename T>
  static void Apply(const T* s, T& var, T& m, T& v, T grad) {
    m += (grad - m) * (T(1) - s[2]);
    const T decayed = s[3] * v;
    const T size = std::abs(grad);
    v = decayed < size ? size : decayed;
    var -= s[0] * (m / (v + s[4]));
  }
};

// The scalars are lr, rho, momentum and epsilon.
struct RMSPropStep {
  static constexpr int kVariables = 3;
  template <typename O, typename T>
  static void Apply(const T* s, T& var, T& ms, T& mom, T grad) {
    if (O::kSparse) {
      ms = ms * s[1] + grad * grad * (T(1) - s[1]);
      mom = mom * s[2] + (T(1) / std::sqrt(ms + s[3])) * s[0] * grad;
    } else {
      ms += (grad * grad - ms) * (T(1) - s[1]);
      mom = mom * s[2] + (grad * s[0]) / std::sqrt(ms + s[3]);
    }
    var -= mom;
  }
};

struct CenteredRMSPropStep {
  static constexpr int kVariables = 4;
  template <typename O, typename T>
  static void Apply(const T* s, T& var, T& mg, T& ms, T& mom, T grad) {
    if (O::kSparse) {
      ms = ms * s[1] + grad * grad * (T(1) - s[1]);
      mg = mg * s[1] + grad * (T(1) - s[1]);
      mom = mom * s[2] + (T(1) / std::sqrt(ms + s[3] - mg * mg)) * s[0] * grad;
    } else {
      ms += (grad * grad - ms) * (T(1) - s[1]);
      mg += (grad - mg) * (T(1) - s[1]);
      mom = mom * s[2] + (grad * s[0]) / std::sqrt((ms - mg * mg) + s[3]);
    }
    var -= mom;
  }
};

// The scalars are lr, alpha, sign_decay and beta.
struct AddSignStep {
  static constexpr int kVariables = 2;
  template <typename O, typename T>
  static void Apply(const T* s, T& var, T& m, T grad) {
    m = m * s[3] + grad * (T(1) - s[3]);
    var -= s[0] * (s[1] + s[2] * (Sign(grad) * Sign(m))) * grad;
  }
};

// The scalars are lr, logbase, sign_decay and beta.
struct PowerSignStep {
  static constexpr int kVariables = 2;
  template <typename T>
  static void Prepare(T* s) {
    // Replaces logbase and sign_decay by the scales for the products of signs 1 and -1. The scale
    // for the product 0 is 1.
    T exponent = s[1] * s[2];
    ApplyElementary(Elementary::kExp, &exponent, &s[1], 1);
    exponent = -exponent;
    ApplyElementary(Elementary::kExp, &exponent, &s[2], 1);
  }
  template <typename O, typename T>
  static void Apply(const T* s, T& var, T& m, T grad) {
    m = m * s[3] + grad * (T(1) - s[3]);
    const T sign = Sign(grad) * Sign(m);
    // NaN if `sign` is NaN.
    const T scale = sign > T(0) ? s[1] : sign < T(0) ? s[2] : T(1) + sign;
    var -= s[0] * scale * grad;
  }
};

}  // namespace gradflow::optimizer

#endif  // GRADFLOW_OPS_TRAINING_OPTIMIZER_STEPS_H_
