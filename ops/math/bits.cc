// BitwiseAnd, BitwiseOr, BitwiseXor, Invert, LeftShift, RightShift and PopulationCount.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/ops/common/elementwise.h"

namespace gradflow::bits {
namespace {

struct And {
  template <typename T>
  T operator()(T x, T y) const {
    return static_cast<T>(x & y);
  }
};

struct Or {
  template <typename T>
  T operator()(T x, T y) const {
    return static_cast<T>(x | y);
  }
};

struct Xor {
  template <typename T>
  T operator()(T x, T y) const {
    return static_cast<T>(x ^ y);
  }
};

struct Not {
  template <typename T>
  T operator()(T x) const {
    return static_cast<T>(~x);
  }
};

// Returns y clamped to the range of shifts of a T that C++ defines.
template <typename T>
int ClampedShift(T y) {
  constexpr int kMax = std::numeric_limits<std::make_unsigned_t<T>>::digits - 1;
  if constexpr (std::is_signed_v<T>) {
    if (y < 0) return 0;
  }
  return y < kMax ? static_cast<int>(y) : kMax;
}

struct ShiftLeft {
  template <typename T>
  T operator()(T x, T y) const {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<U>(static_cast<uint64_t>(x) << ClampedShift(y)));
  }
};

struct ShiftRight {
  template <typename T>
  T operator()(T x, T y) const {
    return static_cast<T>(x >> ClampedShift(y));
  }
};

struct CountOfOnes {
  static constexpr double kNanoseconds = 1;
  template <typename T>
  uint8_t operator()(T x) const {
    uint64_t bits = x;
    // Adds pairs of bits, groups of four and eight bits, and then bytes. The compiler can vectorize
    // this. A built-in becomes a library call if the processor has no such instruction.
    bits -= (bits >> 1) & 0x5555555555555555u;
    bits = (bits & 0x3333333333333333u) + ((bits >> 2) & 0x3333333333333333u);
    bits = (bits + (bits >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    return static_cast<uint8_t>((bits * 0x0101010101010101u) >> 56);
  }
};

constexpr absl::string_view kTypes =
    "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}";

void DefineBinary(Registry& registry, absl::string_view op, absl::string_view summary,
                  absl::string_view details) {
  registry.Op(op)
      .Group("bitwise_ops")
      .Input("x: T")
      .Input("y: T")
      .Output("z: T")
      .Attr(kTypes)
      .Shape(BroadcastBinaryShape)
      .Doc(absl::StrCat(summary, R"(

The inputs are broadcast to one shape as NumPy does.)",
                        details, R"(

x: A tensor of integers.
y: A tensor of the same type.
z: The results, of the broadcast shape.
T: The type of the inputs and the output.)"));
}

}  // namespace

void Register(Registry& registry) {
  DefineBinary(registry, "BitwiseAnd", "Returns the bitwise AND of x and y element-wise.", "");
  RegisterBinaryKernels<And, WrappingType>(registry, "BitwiseAnd", IntegerTypes());
  DefineBinary(registry, "BitwiseOr", "Returns the bitwise OR of x and y element-wise.", "");
  RegisterBinaryKernels<Or, WrappingType>(registry, "BitwiseOr", IntegerTypes());
  DefineBinary(registry, "BitwiseXor", "Returns the bitwise XOR of x and y element-wise.", "");
  RegisterBinaryKernels<Xor, WrappingType>(registry, "BitwiseXor", IntegerTypes());

  constexpr absl::string_view kClamped =
      " A shift by less than 0 counts as a shift by 0, and a shift by the number of bits or more "
      "as a shift by the number of bits less 1.";
  DefineBinary(registry, "LeftShift", "Shifts the bits of x left by y element-wise.", kClamped);
  RegisterBinaryKernels<ShiftLeft, OwnType>(registry, "LeftShift", IntegerTypes());
  DefineBinary(registry, "RightShift",
               "Shifts the bits of x right by y element-wise, keeping the sign of signed integers.",
               kClamped);
  RegisterBinaryKernels<ShiftRight, OwnType>(registry, "RightShift", IntegerTypes());

  registry.Op("Invert")
      .Group("bitwise_ops")
      .Input("x: T")
      .Output("y: T")
      .Attr(kTypes)
      .Shape(UnchangedShape)
      .Doc(R"(Inverts the bits of x element-wise.

x: A tensor of integers.
y: The results, of the shape of `x`.
T: The type of both.)");
  RegisterUnaryKernels<Not, WrappingType>(registry, "Invert", IntegerTypes());

  registry.Op("PopulationCount")
      .Group("bitwise_ops")
      .Input("x: T")
      .Output("y: uint8")
      .Attr(kTypes)
      .Shape(UnchangedShape)
      .Doc(R"(Returns the number of ones in the bits of x element-wise.

x: A tensor of integers.
y: The numbers, of the shape of `x`.
T: The type of `x`.)");
  ForEachType(IntegerTypes(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    registry
        .Kernel("PopulationCount",
                internal::kUnaryFactory<CountOfOnes, std::make_unsigned_t<T>, uint8_t>)
        .template Type<T>("T");
  });
}

}  // namespace gradflow::bits
