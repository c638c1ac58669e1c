#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"

// Conversions take two steps, through the widest type of the source's kind: int64, uint64, double
// or complex128, to which widening is exact. This needs one widening loop and four narrowing loops
// per type instead of one loop per pair of types.

namespace gradflow::cast {
namespace {

using CastTypes = ConcatTypes<NumberTypes, TypeList<bool>>::type;

template <typename T>
using Wide = std::conditional_t<
    kIsComplex<T>, complex128,
    std::conditional_t<std::is_floating_point_v<T> || kIsFloat16<T>, double,
                       std::conditional_t<std::is_same_v<T, uint64_t>, uint64_t, int64_t>>>;

// Number of elements widened at a time, into a buffer that stays in the L1 cache.
constexpr int64_t kChunk = 256;

// Clears the low `bits` bits of the mantissa. A NaN stays a NaN.
template <typename T>
T ClearLowBits(T value, int bits) {
  if constexpr (kIsComplex<T>) {
    return T(ClearLowBits(value.real(), bits), ClearLowBits(value.imag(), bits));
  } else {
    if (value != value) return value;
    std::conditional_t<sizeof(T) == 8, uint64_t,
                       std::conditional_t<sizeof(T) == 4, uint32_t, uint16_t>>
        word;
    std::memcpy(&word, &value, sizeof(word));
    word = static_cast<decltype(word)>(word >> bits << bits);
    std::memcpy(&value, &word, sizeof(word));
    return value;
  }
}

template <typename T>
void Widen(const void* from, int64_t n, int clear_low_bits, void* wide) {
  auto* to = static_cast<Wide<T>*>(wide);
  if constexpr (std::is_same_v<T, bool>) {
    // As bytes: reading a bool other than 0 and 1, which may have been fed, is undefined behaviour.
    const auto* values = static_cast<const uint8_t*>(from);
    for (int64_t i = 0; i < n; ++i) to[i] = values[i] != 0;
  } else {
    const auto* values = static_cast<const T*>(from);
    if constexpr (!std::is_integral_v<T>) {
      if (clear_low_bits > 0) {
        for (int64_t i = 0; i < n; ++i) to[i] = Wide<T>(ClearLowBits(values[i], clear_low_bits));
        return;
      }
    }
    for (int64_t i = 0; i < n; ++i) to[i] = static_cast<Wide<T>>(values[i]);
  }
}

// Rounds towards zero and clamps to the range of T. Returns 0 for NaN.
template <typename T>
T Saturate(double value) {
  // Doubles represent 2^digits, the maximum plus 1, and the minimum; the maximum itself they may
  // not.
  constexpr double kAboveMax =
      2 * static_cast<double>(uint64_t{1} << (std::numeric_limits<T>::digits - 1));
  constexpr double kMin = static_cast<double>(std::numeric_limits<T>::min());
  if (value >= kAboveMax) return std::numeric_limits<T>::max();
  if (value > kMin) return static_cast<T>(value);
  return value <= kMin ? std::numeric_limits<T>::min() : T(0);
}

template <typename To, typename From>
To Convert(From value) {
  if constexpr (std::is_same_v<From, complex128>) {
    if constexpr (kIsComplex<To>) {
      return To(value);
    } else {
      return Convert<To>(value.real());
    }
  } else if constexpr (kIsComplex<To>) {
    return To(Convert<typename To::value_type>(value));
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != 0;
  } else if constexpr (std::is_same_v<From, double> && std::is_integral_v<To>) {
    return Saturate<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

template <typename From, typename To>
void Narrow(const void* wide, int64_t n, void* to) {
  const auto* values = static_cast<const From*>(wide);
  auto* results = static_cast<To*>(to);
  for (int64_t i = 0; i < n; ++i) results[i] = Convert<To>(values[i]);
}

using WidenFn = void (*)(const void* from, int64_t n, int clear_low_bits, void* wide);
using NarrowFn = void (*)(const void* wide, int64_t n, void* to);

// Returns the number of stored bits of the mantissa; 0 for integers.
template <typename T>
constexpr int MantissaBits() {
  if constexpr (kIsComplex<T>) {
    return MantissaBits<typename T::value_type>();
  } else if constexpr (std::is_integral_v<T>) {
    return 0;
  } else {
    return std::numeric_limits<T>::digits - 1;
  }
}

class CastKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    bool truncate;
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("Truncate", &truncate));
    const DataType from = construction.input_type(0);
    const DataType to = construction.output_type(0);
    if (from == to) return absl::OkStatus();
    const bool known = DispatchType(CastTypes(), from, [&](auto from_tag) {
      using From = typename decltype(from_tag)::type;
      widen_ = Widen<From>;
      DispatchType(CastTypes(), to, [&](auto to_tag) {
        using To = typename decltype(to_tag)::type;
        narrow_ = Narrow<Wide<From>, To>;
        if (truncate && MantissaBits<To>() > 0) {
          clear_low_bits_ = std::max(0, MantissaBits<From>() - MantissaBits<To>());
        }
      });
    });
    if (!known || narrow_ == nullptr) {
      return errors::Unimplemented("cannot cast ", DataTypeString(from), " to ",
                                   DataTypeString(to));
    }
    return absl::OkStatus();
  }

  // A cast between equal types forwards its input.
  bool IsCheap() const override { return narrow_ == nullptr; }

  absl::Status Compute(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    if (narrow_ == nullptr) {
      ctx.set_output(0, x);
      return absl::OkStatus();
    }
    Tensor* y = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, x.shape(), &y));
    const auto* from = static_cast<const char*>(x.raw_data());
    auto* to = static_cast<char*>(y->raw_data());
    const int64_t from_size = DataTypeSize(x.dtype());
    const int64_t to_size = DataTypeSize(y->dtype());
    ParallelFor(ctx, x.NumElements(), BlockSizeForCost(1), [&](int64_t begin, int64_t end) {
      alignas(16) char wide[kChunk * sizeof(complex128)];
      for (int64_t i = begin; i < end; i += kChunk) {
        const int64_t n = std::min(kChunk, end - i);
        widen_(from + i * from_size, n, clear_low_bits_, wide);
        narrow_(wide, n, to + i * to_size);
      }
    });
    return absl::OkStatus();
  }

 private:
  WidenFn widen_ = nullptr;
  NarrowFn narrow_ = nullptr;
  int clear_low_bits_ = 0;
};

}  // namespace

void Register(Registry& registry) {
  registry.Op("Cast")
      .Group("math_ops")
      .Input("x: SrcT")
      .Output("y: DstT")
      .Attr("SrcT: type")
      .Attr("DstT: type")
      .Attr("Truncate: bool = false")
      .Shape(UnchangedShape)
      .Doc(R"(Converts the elements of a tensor to another type.

Casts to a smaller integer type wrap around. Casts from floating-point to integer types round
towards zero and clamp to the range of the type; NaN becomes 0. Casts between floating-point types
round to nearest. Complex numbers are cast by their real part. True and false are 1 and 0; every
nonzero value is true.

x: A tensor of numbers or booleans (or of any type, if the types are equal).
y: The converted tensor.
SrcT: The type of `x`.
DstT: The type of `y`.
Truncate: If true, casts to a smaller floating-point type truncate the mantissa instead of
  rounding.)");
  DataTypeVector types;
  ForEachType(CastTypes(), [&](auto tag) {
    types.push_back(DataTypeToEnum<typename decltype(tag)::type>::value);
  });
  registry.Kernel("Cast", MakeKernel<CastKernel>).Types("SrcT", types).Types("DstT", types);
  for (const DataType dtype : AllDataTypes()) {
    if (DataTypeCanBeTensor(dtype) && std::find(types.begin(), types.end(), dtype) == types.end()) {
      registry.Kernel("Cast", MakeKernel<CastKernel>).Types("SrcT", {dtype}).Types("DstT", {dtype});
    }
  }
}

}  // namespace gradflow::cast
