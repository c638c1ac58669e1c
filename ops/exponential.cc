// Exp, Log, Tanh and Sigmoid.
//
// A float (and so half and bfloat16) is computed in double, a complex64 in complex128, and rounded
// once. The C library picks its functions by what the processor can do, and their last bits differ;
// after rounding to float that difference is gone, except where a result lies within 2^-28 of its
// last place from the middle of two floats. double and complex128 have the bits of the C library.
#include <cmath>
#include <complex>
#include <type_traits>

#include "gradflow/core/shape_fns.h"
#include "gradflow/ops/elementwise.h"
#include "gradflow/ops/register.h"

namespace gradflow {
namespace {

template <typename T>
using Wide = std::conditional_t<std::is_same_v<T, float>, double,
                                std::conditional_t<std::is_same_v<T, complex64>, complex128, T>>;

// F in the wide type, rounded to T.
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

// Both forms are 1 / (1 + exp(-x)); each is used where its exponential is at most 1, so that
// nothing overflows and small results keep their digits.
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

void RegisterExponential(Registry& registry) {
  RegisterFunction<Exponential>(registry, "Exp",
                                R"(e to the power of x, element by element.

x: A tensor.
y: The powers, of the shape of `x`.
T: The type of both.)");

  RegisterFunction<Logarithm>(registry, "Log",
                              R"(The natural logarithm of x, element by element.

Of zero it is minus infinity, of a negative real number NaN.

x: A tensor.
y: The logarithms, of the shape of `x`.
T: The type of both.)");

  RegisterFunction<HyperbolicTangent>(registry, "Tanh",
                                      R"(The hyperbolic tangent of x, element by element.

x: A tensor.
y: The tangents, of the shape of `x`; those of real numbers are between -1 and 1.
T: The type of both.)");

  RegisterFunction<LogisticFunction>(registry, "Sigmoid",
                                     R"(The logistic function 1 / (1 + exp(-x)), element by element.

It is computed without overflow, however large `x` is.

x: A tensor.
y: The results, of the shape of `x`; those of real numbers are between 0 and 1.
T: The type of both.)");
}

}  // namespace gradflow
