// Equal, NotEqual, Less, LessEqual, Greater, GreaterEqual and ApproximateEqual.
//
// Comparisons with NaN are false, except for NotEqual.
#include <cmath>
#include <complex>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/elementwise.h"

namespace gradflow::comparison {
namespace {

// The shape function of Equal and NotEqual. If incompatible_shape_error is false and the shapes are
// not compatible, the output is a scalar. The output shape is therefore unknown until both shapes
// are known.
absl::Status EqualShape(ShapeContext& c) {
  bool incompatible_shape_error = true;
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("incompatible_shape_error", &incompatible_shape_error));
  if (incompatible_shape_error) return BroadcastBinaryShape(c);
  if (!CanBroadcast(c.input(0), c.input(1))) return ScalarShape(c);
  if (c.input(0).IsFullyDefined() && c.input(1).IsFullyDefined()) return BroadcastBinaryShape(c);
  return absl::OkStatus();
}

// Compares elements of type T with F, which is std::equal_to or std::not_equal_to.
template <typename T, typename F>
class EqualKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return construction.GetAttr("incompatible_shape_error", &incompatible_shape_error_);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    if (!incompatible_shape_error_ && !CanBroadcast(ctx.input(0).shape(), ctx.input(1).shape())) {
      ctx.set_output(0, Tensor(F()(0, 1)));
      return absl::OkStatus();
    }
    return Binary<T, bool>(ctx, F());
  }

 private:
  bool incompatible_shape_error_ = true;
};

template <typename F>
void RegisterEqualKernels(Registry& registry, absl::string_view op) {
  const auto add = [&](auto tag, DataTypeVector types) {
    using T = typename decltype(tag)::type;
    registry.Kernel(op, MakeKernel<EqualKernel<T, F>>).Types("T", std::move(types));
  };
  // Integers are equal if their bits are equal.
  add(TypeTag<uint8_t>(), {DT_BOOL, DT_INT8, DT_UINT8, DT_QINT8, DT_QUINT8});
  add(TypeTag<uint16_t>(), {DT_INT16, DT_UINT16, DT_QINT16, DT_QUINT16});
  add(TypeTag<uint32_t>(), {DT_INT32, DT_UINT32, DT_QINT32});
  add(TypeTag<uint64_t>(), {DT_INT64, DT_UINT64});
  ForEachType(TypeList<bfloat16, half, float, double, complex64, complex128, tstring>(),
              [&](auto tag) { add(tag, {DataTypeToEnum<typename decltype(tag)::type>::value}); });
}

void RegisterEqual(Registry& registry) {
  registry.Op("Equal")
      .Group("math_ops")
      .Input("x: T")
      .Input("y: T")
      .Output("z: bool")
      .Attr("T: type")
      .Attr("incompatible_shape_error: bool = true")
      .Commutative()
      .Shape(EqualShape)
      .Doc(R"(Returns x == y element-wise.

The inputs are broadcast to one shape as NumPy does. NaN equals nothing, and -0 equals 0.

x: A tensor of numbers, bools or strings.
y: A tensor of the same type.
z: The results, of the broadcast shape.
T: The type of `x` and `y`.
incompatible_shape_error: If true, shapes that cannot be broadcast together are an error. If false,
  the result for such shapes is the scalar false.)");
  RegisterEqualKernels<std::equal_to<>>(registry, "Equal");

  registry.Op("NotEqual")
      .Group("math_ops")
      .Input("x: T")
      .Input("y: T")
      .Output("z: bool")
      .Attr("T: type")
      .Attr("incompatible_shape_error: bool = true")
      .Commutative()
      .Shape(EqualShape)
      .Doc(R"(Returns x != y element-wise.

The inputs are broadcast to one shape as NumPy does. NaN differs from everything, and -0 equals 0.

x: A tensor of numbers, bools or strings.
y: A tensor of the same type.
z: The results, of the broadcast shape.
T: The type of `x` and `y`.
incompatible_shape_error: If true, shapes that cannot be broadcast together are an error. If false,
  the result for such shapes is the scalar true.)");
  RegisterEqualKernels<std::not_equal_to<>>(registry, "NotEqual");
}

// Registers an ordering comparison of real numbers. `sign` is the operator, such as "<" for Less.
template <typename F>
void RegisterOrder(Registry& registry, absl::string_view op, absl::string_view sign) {
  registry.Op(op)
      .Group("math_ops")
      .Input("x: T")
      .Input("y: T")
      .Output("z: bool")
      .Attr(
          "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, "
          "uint16, half, uint32, "
          "uint64}")
      .Shape(BroadcastBinaryShape)
      .Doc(absl::StrCat("Returns x ", sign, R"( y element-wise.

The inputs are broadcast to one shape as NumPy does. A comparison with NaN is false.

x: A tensor of real numbers.
y: A tensor of the same type.
z: The results, of the broadcast shape.
T: The type of `x` and `y`.)"));
  ForEachType(RealTypes(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    registry.Kernel(op, internal::kBinaryFactory<F, T, bool>).template Type<T>("T");
  });
}

template <typename T>
class ApproximateEqualKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return construction.GetAttr("tolerance", &tolerance_);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckSameShape(0, "x", 1, "y"));
    using C = ComputeType<T>;
    if constexpr (std::is_integral_v<C>) {
      // The difference of 64-bit integers may not fit int64.
      const double tolerance = tolerance_;
      return Binary<T, bool>(ctx, [tolerance](C x, C y) {
        using U = std::make_unsigned_t<C>;
        const U distance = x > y ? static_cast<U>(static_cast<U>(x) - static_cast<U>(y))
                                 : static_cast<U>(static_cast<U>(y) - static_cast<U>(x));
        return static_cast<double>(distance) <= tolerance;
      });
    } else if constexpr (kIsComplex<C>) {
      const auto tolerance = static_cast<typename C::value_type>(tolerance_);
      return Binary<T, bool>(
          ctx, [tolerance](C x, C y) { return std::abs(x - y) <= tolerance; }, 5);
    } else {
      const C tolerance = static_cast<C>(tolerance_);
      return Binary<T, bool>(ctx, [tolerance](C x, C y) { return std::abs(x - y) <= tolerance; });
    }
  }

 private:
  float tolerance_ = 0;
};

void RegisterApproximateEqual(Registry& registry) {
  registry.Op("ApproximateEqual")
      .Group("math_ops")
      .Input("x: T")
      .Input("y: T")
      .Output("z: bool")
      .Attr("T: numbertype")
      .Attr("tolerance: float = 0.00001")
      .Shape(SameShape)
      .Doc(R"(Returns |x - y| <= tolerance element-wise.

The result is false where either element is NaN or infinite, even for equal infinities. There are no
kernels for quantized integers.

x: A tensor.
y: A tensor of the same shape and type.
z: The results, of the same shape.
T: The type of `x` and `y`.
tolerance: The largest difference of elements that count as equal.)");
  ForEachType(NumberTypes(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    registry.Kernel("ApproximateEqual", MakeKernel<ApproximateEqualKernel<T>>)
        .template Type<T>("T");
  });
}

}  // namespace

void Register(Registry& registry) {
  RegisterEqual(registry);
  RegisterApproximateEqual(registry);
  RegisterOrder<std::less<>>(registry, "Less", "<");
  RegisterOrder<std::less_equal<>>(registry, "LessEqual", "<=");
  RegisterOrder<std::greater<>>(registry, "Greater", ">");
  RegisterOrder<std::greater_equal<>>(registry, "GreaterEqual", ">=");
}

}  // namespace gradflow::comparison
