// Cast between numbers and bools.
//
// A cast takes up to two loops, through an intermediate type: one that widens the source exactly
// and one that narrows to the target. This needs about 60 loops instead of one per pair of types.
// Loops see half and bfloat16 as float (ops/common/elementwise.h).
#include <algorithm>
#include <complex>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/elementwise.h"

namespace gradflow::cast {
namespace {

using CastTypes = ConcatTypes<NumberTypes, TypeList<bool>>::type;

// Converts n elements.
using Convert = void (*)(const void* from, void* to, int64_t n);

template <typename T>
using Intermediate = std::conditional_t<
    std::is_same_v<T, double> || std::is_same_v<T, complex128>, double,
    std::conditional_t<
        std::is_same_v<T, float> || std::is_same_v<T, complex64>, float,
        std::conditional_t<
            std::is_same_v<T, uint64_t>, uint64_t,
            std::conditional_t<(sizeof(T) > 4) || std::is_same_v<T, uint32_t>, int64_t, int32_t>>>>;

template <typename From>
void Widen(const void* from, void* to, int64_t n) {
  using To = Intermediate<From>;
  auto* const results = static_cast<To*>(to);
  if constexpr (kIsComplex<From>) {
    const auto* const values = static_cast<const From*>(from);
    for (int64_t i = 0; i < n; ++i) results[i] = values[i].real();
  } else if constexpr (std::is_same_v<From, bool>) {
    // As bytes: reading a bool other than 0 and 1, which may have been fed, is undefined behaviour.
    const auto* const values = static_cast<const uint8_t*>(from);
    for (int64_t i = 0; i < n; ++i) results[i] = values[i] != 0;
  } else {
    const auto* const values = static_cast<const From*>(from);
    for (int64_t i = 0; i < n; ++i) results[i] = static_cast<To>(values[i]);
  }
}

// Rounds towards zero. What does not fit, and NaN, becomes the smallest integer, as on x86.
template <typename To, typename From>
To ToSigned(From value) {
  constexpr From kMin = static_cast<From>(std::numeric_limits<To>::min());
  // Selects before it converts, which vectorises. False for NaN.
  const bool fits = (value >= kMin) & (value < -kMin);
  return static_cast<To>(fits ? value : kMin);
}

template <typename To, typename From>
To Narrowed(From value) {
  if constexpr (std::is_integral_v<From> || std::is_floating_point_v<To>) {
    return static_cast<To>(value);
  } else if constexpr (std::is_same_v<To, uint64_t>) {
    // The upper half of the range is not in that of int64.
    constexpr From kHalf = 0x1p63;
    if (value >= kHalf && value < 2 * kHalf) return static_cast<uint64_t>(value);
    return static_cast<uint64_t>(ToSigned<int64_t>(value));
  } else if constexpr (std::is_same_v<To, int64_t> || std::is_same_v<To, uint32_t>) {
    return static_cast<To>(ToSigned<int64_t>(value));
  } else {
    // Smaller types take the low bits of an int32.
    return static_cast<To>(ToSigned<int32_t>(value));
  }
}

template <typename From, typename To>
void Narrow(const void* from, void* to, int64_t n) {
  const auto* const values = static_cast<const From*>(from);
  if constexpr (std::is_same_v<To, bool>) {
    auto* const results = static_cast<uint8_t*>(to);
    GRADFLOW_SAME_INDEX_LOOP
    for (int64_t i = 0; i < n; ++i) results[i] = values[i] != From(0);
  } else {
    auto* const results = static_cast<To*>(to);
    GRADFLOW_SAME_INDEX_LOOP
    for (int64_t i = 0; i < n; ++i) {
      if constexpr (kIsComplex<To>) {
        results[i] = To(Narrowed<typename To::value_type>(values[i]));
      } else {
        results[i] = Narrowed<To>(values[i]);
      }
    }
  }
}

template <typename From, typename To>
void ConvertComplex(const void* from, void* to, int64_t n) {
  const auto* const values = static_cast<const From*>(from);
  auto* const results = static_cast<To*>(to);
  for (int64_t i = 0; i < n; ++i) results[i] = To(values[i]);
}

// Types that loops tell apart: the low bits of integers do not depend on signs.
template <typename From, typename To>
using Target =
    std::conditional_t<std::is_integral_v<From> && !std::is_same_v<To, bool>, WrappingType<To>, To>;

// Clears the low `bits` bits of the mantissas of n numbers. A NaN stays a NaN.
template <typename T, typename Word>
void ClearLowBits(const void* from, int bits, void* to, int64_t n) {
  const auto* const values = static_cast<const T*>(from);
  auto* const results = static_cast<T*>(to);
  for (int64_t i = 0; i < n; ++i) {
    Word word;
    std::memcpy(&word, &values[i], sizeof(word));
    word = word >> bits << bits;
    T cleared;
    std::memcpy(&cleared, &word, sizeof(cleared));
    results[i] = values[i] == values[i] ? cleared : values[i];
  }
}

// Returns the number of stored bits of the mantissa; 0 for integers.
int MantissaBits(DataType dtype) {
  switch (dtype) {
    case DT_BFLOAT16:
      return std::numeric_limits<bfloat16>::digits - 1;
    case DT_HALF:
      return std::numeric_limits<half>::digits - 1;
    case DT_FLOAT:
    case DT_COMPLEX64:
      return std::numeric_limits<float>::digits - 1;
    case DT_DOUBLE:
    case DT_COMPLEX128:
      return std::numeric_limits<double>::digits - 1;
    default:
      return 0;
  }
}

class CastKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    bool truncate;
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("Truncate", &truncate));
    const DataType from = construction.input_type(0);
    const DataType to = construction.output_type(0);
    forwards_ = from == to;
    if (forwards_) return absl::OkStatus();
    const bool known = DispatchType(CastTypes(), from, [&](auto tag) {
      using From = ComputeType<typename decltype(tag)::type>;
      from_size_ = sizeof(From);
      parts_ = kIsComplex<From> ? 2 : 1;
      is_wide_ = sizeof(From) / parts_ == 8;
      if constexpr (kIsComplex<From>) {
        if (DataTypeIsComplex(to)) {
          to_size_ = DataTypeSize(to);
          narrow_ = to == DT_COMPLEX64 ? ConvertComplex<From, complex64>
                                       : ConvertComplex<From, complex128>;
          return;
        }
      }
      using Middle = Intermediate<From>;
      if (!std::is_same_v<From, Middle>) widen_ = Widen<From>;
      DispatchType(CastTypes(), to, [&](auto to_tag) {
        using To = ComputeType<typename decltype(to_tag)::type>;
        to_size_ = sizeof(To);
        narrow_ = Narrow<Middle, Target<Middle, To>>;
      });
    });
    if (!known || narrow_ == nullptr) {
      return errors::Unimplemented("cannot cast ", DataTypeString(from), " to ",
                                   DataTypeString(to));
    }
    if (truncate && MantissaBits(from) > MantissaBits(to) && MantissaBits(to) > 0) {
      // Of float, in which loops see 16-bit numbers.
      clear_low_bits_ = std::max(MantissaBits(from), MantissaBits(DT_FLOAT)) - MantissaBits(to);
    }
    return absl::OkStatus();
  }

  // A cast between equal types forwards its input.
  bool IsCheap() const override { return forwards_; }

  absl::Status Compute(KernelContext& ctx) const override {
    if (forwards_) {
      ctx.set_output(0, ctx.input(0));
      return absl::OkStatus();
    }
    return RunElementwise(ctx, {from_size_}, kCheapNanoseconds,
                          [this](const void* const* x, const int64_t*, void* out, int64_t n) {
                            Run(static_cast<const char*>(x[0]), static_cast<char*>(out), n);
                          });
  }

 private:
  void Run(const char* from, char* to, int64_t n) const {
    if (widen_ == nullptr && clear_low_bits_ == 0) return narrow_(from, to, n);
    constexpr int64_t kChunk = 512;
    alignas(64) char cleared[kChunk * sizeof(complex128)];
    alignas(64) char wide[kChunk * sizeof(double)];
    for (int64_t i = 0; i < n; i += kChunk) {
      const int64_t count = std::min(kChunk, n - i);
      const void* source = from + i * from_size_;
      if (clear_low_bits_ > 0) {
        (is_wide_
             ? ClearLowBits<double, uint64_t>
             : ClearLowBits<float, uint32_t>)(source, clear_low_bits_, cleared, count * parts_);
        source = cleared;
      }
      if (widen_ != nullptr) {
        widen_(source, wide, count);
        source = wide;
      }
      narrow_(source, to + i * to_size_, count);
    }
  }

  bool forwards_ = false;
  Convert widen_ = nullptr;
  Convert narrow_ = nullptr;
  // Bytes of an element as loops see it, before and after; the numbers of which it consists, and
  // whether they are doubles.
  int from_size_ = 0;
  int to_size_ = 0;
  int parts_ = 1;
  bool is_wide_ = false;
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
towards zero; a number that does not fit int32 (int64 for uint32, int64 and uint64), and NaN,
becomes the smallest number of that type first, and a smaller type takes its low bits. Casts between
floating-point types round to nearest; those to half and bfloat16 from wider types than float, and
from integers, round to float before. Complex numbers are cast by their real part. True and false
are 1 and 0; every nonzero value is true.

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
