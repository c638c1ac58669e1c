// Div, DivNoNan, FloorDiv, TruncateDiv, Mod, FloorMod, TruncateMod, MulNoNan and Xdivy.
#include <atomic>
#include <cmath>
#include <complex>
#include <cstdint>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/elementwise.h"
#include "gradflow/ops/common/elementwise_chunks.h"
#include "gradflow/ops/common/elementwise_simd.h"

namespace gradflow::division {
namespace {

constexpr double kDivisionNanoseconds = 3;
constexpr double kRemainderNanoseconds = 15;

// The quotient of integers, rounded towards zero. The quotient of the smallest integer and -1 wraps
// around to the smallest integer. Division by zero gives 0 here; kernels reject it.
template <typename T>
T TruncatedQuotient(T x, T y) {
  using U = std::make_unsigned_t<T>;
  if constexpr (std::is_signed_v<T>) {
    if (y == -1) return static_cast<T>(U{0} - static_cast<U>(x));
  }
  return y == 0 ? T(0) : static_cast<T>(x / y);
}

// The remainder of TruncatedQuotient, which has the sign of x.
template <typename T>
T TruncatedRemainder(T x, T y) {
  if constexpr (std::is_signed_v<T>) {
    if (y == -1) return 0;
  }
  return y == 0 ? T(0) : static_cast<T>(x % y);
}

struct TruncateDivide {
  static constexpr double kNanoseconds = kDivisionNanoseconds;
  template <typename T>
  T operator()(T x, T y) const {
    if constexpr (std::is_integral_v<T>) {
      return TruncatedQuotient(x, y);
    } else {
      return x / y;
    }
  }
};

struct FloorDivide {
  static constexpr double kNanoseconds = kDivisionNanoseconds;
  template <typename T>
  T operator()(T x, T y) const {
    const T quotient = TruncatedQuotient(x, y);
    const bool down = ((x < 0) != (y < 0)) && TruncatedRemainder(x, y) != 0;
    return static_cast<T>(quotient - down);
  }
};

struct TruncateRemainder {
  static constexpr double kNanoseconds = kRemainderNanoseconds;
  template <typename T>
  T operator()(T x, T y) const {
    if constexpr (std::is_integral_v<T>) {
      return TruncatedRemainder(x, y);
    } else {
      return std::fmod(x, y);
    }
  }
};

struct FloorRemainder {
  static constexpr double kNanoseconds = kRemainderNanoseconds;
  template <typename T>
  T operator()(T x, T y) const {
    const T remainder = TruncateRemainder()(x, y);
    return remainder != 0 && (remainder < 0) != (y < 0) ? static_cast<T>(remainder + y) : remainder;
  }
};

// An operator without branches, so that the compiler vectorizes.
struct DivideNoNan {
  static constexpr double kNanoseconds = 1;
  template <typename T>
  T operator()(T x, T y) const {
    const T quotient = x / y;
    return y == T(0) ? T(0) : quotient;
  }
};

struct MultiplyNoNan {
  template <typename T>
  T operator()(T x, T y) const {
    const T product = x * y;
    return y == T(0) ? T(0) : product;
  }
};

struct DivideUnlessZero {
  static constexpr double kNanoseconds = 1;
  template <typename T>
  T operator()(T x, T y) const {
    const T quotient = x / y;
    return x == T(0) ? x : quotient;
  }
};

// Rounds quotients of floating-point numbers to T, and then to integers. Quotients may be computed
// in a wider type.
template <typename T, Rounding kRounding>
void RoundedQuotientLoop(const void* const* x, const int64_t* strides, void* out, int64_t n) {
  using C = ComputeType<T>;
  ForEachChunk<C, C, 2>(x, strides, out, n, [&](const C* const* a, C* result, int64_t count) {
    const void* const operands[] = {a[0], a[1]};
    internal::kBinaryLoop<TruncateDivide, C, C>(operands, strides, result, count);
    if constexpr (kIsFloat16<T>) {
      constexpr ElementType kType =
          std::is_same_v<T, half> ? ElementType::kHalf : ElementType::kBfloat16;
      uint16_t rounded[kElementwiseChunk];
      FloatToFloat16(kType, result, rounded, count, /*non_temporal=*/false);
      Float16ToFloat(kType, rounded, result, count);
    }
    RoundToIntegers(kRounding, result, result, count);
  });
}

// Returns INVALID_ARGUMENT if an integer of input 1 is zero. Returns OK if input 0 is empty.
template <typename U>
absl::Status CheckNoZero(const KernelContext& ctx) {
  if (ctx.input(0).NumElements() == 0) return absl::OkStatus();
  const auto* const y = static_cast<const U*>(ctx.input(1).raw_data());
  std::atomic<bool> has_zero{false};
  ParallelFor(ctx, ctx.input(1).NumElements(), BlockSizeForCost(kCheapNanoseconds),
              [&](int64_t begin, int64_t end) {
                int zero = 0;
                for (int64_t i = begin; i < end; ++i) zero |= static_cast<int>(y[i] == 0);
                if (zero != 0) has_zero = true;
              });
  if (has_zero) return errors::InvalidArgument("integer division by zero");
  return absl::OkStatus();
}

template <typename F, typename T>
absl::Status DivideIntegers(KernelContext& ctx) {
  if (DataTypeSize(ctx.input_dtype(1)) == sizeof(T)) {
    GRADFLOW_RETURN_IF_ERROR(CheckNoZero<std::make_unsigned_t<T>>(ctx));
  }
  return Binary<T>(ctx, F(), F::kNanoseconds);
}

template <typename F, typename... Ts>
void RegisterIntegers(Registry& registry, absl::string_view op, TypeList<Ts...>) {
  (registry.Kernel(op, MakeFunctionKernel<DivideIntegers<F, Ts>>).template Type<Ts>("T"), ...);
}

template <Rounding kRounding>
void RegisterRoundedQuotient(Registry& registry, absl::string_view op) {
  ForEachType(FloatingTypes(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr int kSize = sizeof(ComputeType<T>);
    registry.Kernel(op, MakeBinaryKernel<RoundedQuotientLoop<T, kRounding>, kSize, 250 * kSize>)
        .template Type<T>("T");
  });
}

void Define(Registry& registry, absl::string_view op, absl::string_view types,
            absl::string_view summary, absl::string_view details, absl::string_view result) {
  registry.Op(op)
      .Group("math_ops")
      .Input("x: T")
      .Input("y: T")
      .Output("z: T")
      .Attr(types)
      .Shape(BroadcastBinaryShape)
      .Doc(absl::StrCat(summary, R"(

The inputs are broadcast to one shape as NumPy does. )",
                        details, R"(

x: A tensor.
y: A tensor of the same type.
z: The )",
                        result, R"(, of the broadcast shape.
T: The type of the inputs and the output.)"));
}

constexpr absl::string_view kDivisionTypes =
    "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, "
    "complex64, complex128}";
constexpr absl::string_view kRoundedTwice =
    "Quotients of floating-point numbers are rounded twice: to the type, and ";
constexpr absl::string_view kNoComplex =
    " As in TensorFlow, there are no kernels for complex numbers.";
constexpr absl::string_view kByZero =
    "Division of an integer by zero is an error, unless the output has no elements.";

void RegisterQuotients(Registry& registry) {
  using ContinuousTypes = ConcatTypes<FloatingTypes, ComplexTypes>::type;
  Define(registry, "Div", kDivisionTypes, "Returns x / y element-wise.",
         absl::StrCat("Quotients of integers are rounded towards zero. ", kByZero), "quotients");
  RegisterBinaryKernels<TruncateDivide, OwnType>(registry, "Div", ContinuousTypes());
  RegisterIntegers<TruncateDivide>(registry, "Div", IntegerTypes());

  Define(registry, "TruncateDiv", kDivisionTypes,
         "Returns x / y rounded towards zero element-wise.",
         absl::StrCat(kRoundedTwice, "towards zero. ", kByZero, kNoComplex), "quotients");
  RegisterRoundedQuotient<Rounding::kTowardsZero>(registry, "TruncateDiv");
  RegisterIntegers<TruncateDivide>(registry, "TruncateDiv", IntegerTypes());

  Define(registry, "FloorDiv", kDivisionTypes, "Returns x / y rounded down element-wise.",
         absl::StrCat(kRoundedTwice, "down. ", kByZero, kNoComplex), "quotients");
  RegisterRoundedQuotient<Rounding::kDown>(registry, "FloorDiv");
  RegisterIntegers<FloorDivide>(registry, "FloorDiv", SignedIntegerTypes());
  RegisterIntegers<TruncateDivide>(registry, "FloorDiv", UnsignedIntegerTypes());

  Define(registry, "DivNoNan", "T: {half, float, bfloat16, double, complex64, complex128}",
         "Returns x / y element-wise, and 0 where y is 0.", "The 0 is positive, whatever x is.",
         "quotients");
  RegisterBinaryKernels<DivideNoNan, OwnType>(registry, "DivNoNan", ContinuousTypes());

  Define(registry, "Xdivy", "T: {half, bfloat16, float, double, complex64, complex128}",
         "Returns x / y element-wise, and 0 where x is 0.",
         "The 0 has the sign of x, even if y is 0 or NaN.", "quotients");
  RegisterBinaryKernels<DivideUnlessZero, OwnType>(registry, "Xdivy", ContinuousTypes());

  Define(registry, "MulNoNan", "T: {bfloat16, half, float, double, complex64, complex128}",
         "Returns x * y element-wise, and 0 where y is 0.",
         "The 0 is positive, even if x is infinite or NaN.", "products");
  RegisterBinaryKernels<MultiplyNoNan, OwnType>(registry, "MulNoNan", ContinuousTypes());
}

}  // namespace

void Register(Registry& registry) {
  RegisterQuotients(registry);

  Define(registry, "Mod", "T: {int32, int64, half, half, bfloat16, float, double}",
         "Returns the remainder of x / y rounded towards zero element-wise.",
         absl::StrCat("It has the sign of x. ", kByZero), "remainders");
  Define(registry, "TruncateMod", "T: {int32, int64, bfloat16, half, float, double}",
         "Returns the remainder of x / y rounded towards zero element-wise.",
         absl::StrCat("It has the sign of x. ", kByZero), "remainders");
  for (const char* op : {"Mod", "TruncateMod"}) {
    RegisterBinaryKernels<TruncateRemainder, OwnType>(registry, op, FloatingTypes());
    RegisterIntegers<TruncateRemainder>(registry, op, IndexTypes());
  }
  Define(registry, "FloorMod",
         "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64, bfloat16, half, float, "
         "double}",
         "Returns the remainder of x / y rounded down element-wise.",
         absl::StrCat("It has the sign of y. ", kByZero), "remainders");
  RegisterBinaryKernels<FloorRemainder, OwnType>(registry, "FloorMod", FloatingTypes());
  RegisterIntegers<FloorRemainder>(registry, "FloorMod", SignedIntegerTypes());
  RegisterIntegers<TruncateRemainder>(registry, "FloorMod", UnsignedIntegerTypes());
}

}  // namespace gradflow::division
