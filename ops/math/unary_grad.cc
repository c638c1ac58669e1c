// The gradients of unary functions in terms of their results: InvGrad, ReciprocalGrad, SqrtGrad,
// RsqrtGrad, SigmoidGrad and TanhGrad.
#include <complex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/elementwise.h"

namespace gradflow::unary_grad {
namespace {

// The conjugate of a complex number, which gradients of complex functions multiply by; a real
// number itself.
template <typename T>
T Conjugate(T x) {
  if constexpr (kIsComplex<T>) {
    return std::conj(x);
  } else {
    return x;
  }
}

struct GradientOfReciprocal {
  template <typename T>
  T operator()(T y, T dy) const {
    const T c = Conjugate(y);
    return -dy * c * c;
  }
};

struct GradientOfSqrt {
  static constexpr double kNanoseconds = 1;
  template <typename T>
  T operator()(T y, T dy) const {
    return dy * T(0.5f) / Conjugate(y);
  }
};

struct GradientOfRsqrt {
  template <typename T>
  T operator()(T y, T dy) const {
    const T c = Conjugate(y);
    return T(-0.5f) * (dy * c) * (c * c);
  }
};

struct GradientOfSigmoid {
  template <typename T>
  T operator()(T y, T dy) const {
    return dy * y * (T(1) - y);
  }
};

struct GradientOfTanh {
  template <typename T>
  T operator()(T y, T dy) const {
    return dy * (T(1) - y * y);
  }
};

absl::Status GradientShape(ShapeContext& c) {
  const PartialTensorShape& y = c.input(0);
  const PartialTensorShape& dy = c.input(1);
  if (y.IsFullyDefined() && dy.IsFullyDefined() && y.num_elements() != dy.num_elements()) {
    return errors::InvalidArgument("input 1 has shape ", dy.DebugString(), ", expected ",
                                   y.num_elements(), " elements, as in ", y.DebugString());
  }
  return UnchangedShape(c);
}

template <typename F>
void RegisterGradient(Registry& registry, absl::string_view op, absl::string_view function,
                      absl::string_view formula, absl::string_view complex_numbers) {
  registry.Op(op)
      .Group("math_ops")
      .Input("y: T")
      .Input("dy: T")
      .Output("z: T")
      .Attr("T: {bfloat16, half, float, double, complex64, complex128}")
      .Shape(GradientShape)
      .Doc(absl::StrCat("Computes the gradient of y = ", function, " from y: ", formula, ".\n\n",
                        complex_numbers, R"(

y: The values of the function.
dy: The gradients with respect to `y`, one for each element of `y`.
z: The gradients with respect to x, of the shape of `y`.
T: The type of the inputs and the output.)"));
  const auto add = [&](auto tag, DataTypeVector types) {
    using T = typename decltype(tag)::type;
    registry
        .Kernel(op, MakeBinaryKernel<internal::kBinaryLoop<F, T, T>, sizeof(T),
                                     internal::kPicoseconds<F>, Pairing::kInOrder>)
        .Types("T", std::move(types));
  };
  add(TypeTag<float>(), {DT_FLOAT, DT_HALF, DT_BFLOAT16});
  add(TypeTag<double>(), {DT_DOUBLE});
  add(TypeTag<complex64>(), {DT_COMPLEX64});
  add(TypeTag<complex128>(), {DT_COMPLEX128});
}

}  // namespace

void Register(Registry& registry) {
  constexpr absl::string_view kConjugates = "For complex numbers, y is replaced by its conjugate.";
  RegisterGradient<GradientOfReciprocal>(registry, "ReciprocalGrad", "1 / x", "-dy * y * y",
                                         kConjugates);
  RegisterGradient<GradientOfReciprocal>(registry, "InvGrad", "1 / x", "-dy * y * y", kConjugates);
  RegisterGradient<GradientOfSqrt>(registry, "SqrtGrad", "sqrt(x)", "dy * 0.5 / y", kConjugates);
  RegisterGradient<GradientOfRsqrt>(registry, "RsqrtGrad", "1 / sqrt(x)", "dy * -0.5 * y^3",
                                    kConjugates);
  constexpr absl::string_view kKeeps =
      "Complex numbers are not replaced by their conjugates: pass the conjugate as y.";
  RegisterGradient<GradientOfSigmoid>(registry, "SigmoidGrad", "sigmoid(x)", "dy * y * (1 - y)",
                                      kKeeps);
  RegisterGradient<GradientOfTanh>(registry, "TanhGrad", "tanh(x)", "dy * (1 - y * y)", kKeeps);
}

}  // namespace gradflow::unary_grad
