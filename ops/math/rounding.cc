// Floor, Ceil, Rint and Round, and the predicates IsNan, IsInf and IsFinite.
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/ops/common/elementwise.h"
#include "gradflow/ops/common/elementwise_simd.h"

namespace gradflow::rounding {
namespace {

template <typename T, Rounding kRounding>
void RoundLoop(const void* const* x, const int64_t*, void* out, int64_t n) {
  RoundToIntegers(kRounding, static_cast<const T*>(x[0]), static_cast<T*>(out), n);
}

template <Rounding kRounding>
void RegisterRounding(Registry& registry, absl::string_view op, absl::string_view types,
                      absl::string_view summary) {
  registry.Op(op)
      .Group("math_ops")
      .Input("x: T")
      .Output("y: T")
      .Attr(types)
      .Shape(UnchangedShape)
      .Doc(absl::StrCat(summary, R"(

Zeros keep their sign; infinities and NaN are unchanged.

x: A tensor.
y: The integers, of the shape and type of `x`.
T: The type of both.)"));
  registry.Kernel(op, MakeUnaryKernel<RoundLoop<float, kRounding>, sizeof(float), 500>)
      .Types("T", {DT_FLOAT, DT_HALF, DT_BFLOAT16});
  registry.Kernel(op, MakeUnaryKernel<RoundLoop<double, kRounding>, sizeof(double), 500>)
      .Types("T", {DT_DOUBLE});
}

absl::Status PassOn(KernelContext& ctx) {
  ctx.set_output(0, ctx.input(0));
  return absl::OkStatus();
}

struct NanPredicate {
  template <typename T>
  bool operator()(T x) const {
    return x != x;
  }
};

struct InfinityPredicate {
  template <typename T>
  bool operator()(T x) const {
    return std::abs(x) == std::numeric_limits<T>::infinity();
  }
};

struct FinitePredicate {
  template <typename T>
  bool operator()(T x) const {
    return std::abs(x) <= std::numeric_limits<T>::max();
  }
};

template <typename F>
void RegisterPredicate(Registry& registry, absl::string_view op, absl::string_view what) {
  registry.Op(op)
      .Group("math_ops")
      .Input("x: T")
      .Output("y: bool")
      .Attr("T: {bfloat16, half, float, double}")
      .Shape(UnchangedShape)
      .Doc(absl::StrCat("Returns which elements are ", what, R"(.

x: A tensor of floating-point numbers.
y: The results, of the shape of `x`.
T: The type of `x`.)"));
  RegisterUnaryPredicates<F, OwnType>(registry, op, FloatingTypes());
}

}  // namespace

void Register(Registry& registry) {
  constexpr absl::string_view kFloats = "T: {bfloat16, half, float, double}";
  RegisterRounding<Rounding::kDown>(registry, "Floor", kFloats,
                                    "Returns the largest integer not greater than x element-wise.");
  RegisterRounding<Rounding::kUp>(registry, "Ceil", kFloats,
                                  "Returns the smallest integer not less than x element-wise.");
  RegisterRounding<Rounding::kNearest>(
      registry, "Rint", kFloats,
      "Rounds x to the nearest integer element-wise, halves to the even one.");
  RegisterRounding<Rounding::kNearest>(
      registry, "Round",
      "T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}",
      "Rounds x to the nearest integer element-wise, halves to the even one. Integers are "
      "unchanged. As in TensorFlow, there are no kernels for complex numbers.");
  registry.Kernel("Round", MakeFunctionKernel<PassOn, /*Cheap=*/true>)
      .Types("T", {DT_INT8, DT_INT16, DT_INT32, DT_INT64});

  RegisterPredicate<NanPredicate>(registry, "IsNan", "NaN");
  RegisterPredicate<InfinityPredicate>(registry, "IsInf", "infinities");
  RegisterPredicate<FinitePredicate>(registry, "IsFinite", "finite: neither infinities nor NaN");
}

}  // namespace gradflow::rounding
