// Exp, Log, Tanh and Sigmoid.
//
// float, half and bfloat16 are computed in double, complex64 in complex128, and rounded once. The C
// library selects its functions by processor, and their last bits differ. Rounding to float removes
// the difference, unless a result lies within 2^-28 of its last place of the midpoint of two
// floats. double and complex128 have the bits of the C library.
#include <cmath>
#include <complex>
#include <type_traits>

#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/ops/common/elementwise.h"

namespace gradflow::exponential {
namespace {

template <typename T>
using Wide = std::conditional_t<std::is_same_v<T, float>, double,
                                std::conditional_t<std::is_same_v<T, complex64>, complex128, T>>;

// Computes F in the wide type and rounds to T.
template <typename F>
struct Widened {
  static constexpr double kNanoseconds = kFunctionNanoseconds;
  template <typename T>
  T operator()(T x) const {
    return static_cast<T>(F()(static_cast<Wide<T>>(x)));
  }
};

struct Exponential {
  template <typename T>
  T operator()(T x) const {
    return std::exp(x);
  }
};

struct Logarithm {
  template <typename T>
  T operator()(T x) const {
    return std::log(x);
  }
};

struct HyperbolicTangent {
  template <typename T>
  T operator()(T x) const {
    return std::tanh(x);
  }
};

// Two forms of 1 / (1 + exp(-x)). Each is used where its exponential is at most 1, which avoids
// overflow and preserves the precision of small results.
struct LogisticFunction {
  template <typename T>
  T operator()(T x) const {
    if (std::real(x) >= 0) return T(1) / (T(1) + std::exp(-x));
    const T e = std::exp(x);
    return e / (T(1) + e);
  }
};

template <typename F>
void RegisterFunction(Registry& registry, absl::string_view op, absl::string_view doc) {
  registry.Op(op)
      .Group("math_ops")
      .Input("x: T")
      .Output("y: T")
      .Attr("T: {bfloat16, half, float, double, complex64, complex128}")
      .Shape(UnchangedShape)
      .Doc(doc);
  RegisterUnaryKernels<Widened<F>, OwnType>(registry, op,
                                            ConcatTypes<FloatingTypes, ComplexTypes>::type());
}

}  // namespace

void Register(Registry& registry) {
  RegisterFunction<Exponential>(registry, "Exp",
                                R"(Returns e^x element-wise.

x: A tensor.
y: The powers, of the shape of `x`.
T: The type of both.)");

  RegisterFunction<Logarithm>(registry, "Log",
                              R"(Returns the natural logarithm of x element-wise.

The logarithm of zero is minus infinity, that of a negative real number NaN.

x: A tensor.
y: The logarithms, of the shape of `x`.
T: The type of both.)");

  RegisterFunction<HyperbolicTangent>(registry, "Tanh",
                                      R"(Returns the hyperbolic tangent of x element-wise.

x: A tensor.
y: The tangents, of the shape of `x`; for real numbers between -1 and 1.
T: The type of both.)");

  RegisterFunction<LogisticFunction>(registry, "Sigmoid",
                                     R"(Returns the sigmoid 1 / (1 + exp(-x)) element-wise.

Does not overflow for any `x`.

x: A tensor.
y: The results, of the shape of `x`; for real numbers between 0 and 1.
T: The type of both.)");
}

}  // namespace gradflow::exponential
