// Cast between numbers and bools.
//
// A cast consists of at most two loops (cast_loops.h): one widens the source exactly to an
// intermediate type, one narrows the intermediate type to the target. This needs fewer loops than
// one per pair of types. Loops see half and bfloat16 as float (ops/common/elementwise.h).
#include <algorithm>
#include <complex>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/elementwise.h"
#include "gradflow/ops/math/cast_loops.h"
#include "gradflow/ops/math/small_types.h"

namespace gradflow::cast {
namespace {

// The number of elements that are converted at a time through buffers in the L1 cache.
constexpr int64_t kChunk = 512;

using CastTypes = ConcatTypes<NumberTypes, TypeList<bool>>::type;

template <typename From, typename To>
void ConvertComplex(const void* from, void* to, int64_t n) {
  const auto* const values = static_cast<const From*>(from);
  auto* const results = static_cast<To*>(to);
  for (int64_t i = 0; i < n; ++i) results[i] = To(values[i]);
}

// The element type that loops see. Quantized integers are cast like plain integers.
DataType LoopType(DataType dtype) {
  if (Float8::IsFloat8(dtype)) return DT_FLOAT;
  switch (dtype) {
    case DT_HALF:
    case DT_BFLOAT16:
      return DT_FLOAT;
    case DT_QINT8:
    case DT_INT4:
      return DT_INT8;
    case DT_QUINT8:
    case DT_UINT4:
      return DT_UINT8;
    case DT_QINT16:
      return DT_INT16;
    case DT_QUINT16:
      return DT_UINT16;
    case DT_QINT32:
      return DT_INT32;
    default:
      return dtype;
  }
}

// The types that have casts and are not in CastTypes.
DataTypeVector SmallTypes() {
  return {DT_QINT8,
          DT_QUINT8,
          DT_QINT16,
          DT_QUINT16,
          DT_QINT32,
          DT_INT4,
          DT_UINT4,
          DT_FLOAT8_E5M2,
          DT_FLOAT8_E4M3FN,
          DT_FLOAT8_E4M3FNUZ,
          DT_FLOAT8_E4M3B11FNUZ,
          DT_FLOAT8_E5M2FNUZ};
}

// 4-bit integers are stored in the low bits of a byte. Sets the high bits to zero or to the sign.
void Wrap4Bits(DataType dtype, const void* from, void* to, int64_t n) {
  const auto* const bytes = static_cast<const uint8_t*>(from);
  auto* const results = static_cast<uint8_t*>(to);
  for (int64_t i = 0; i < n; ++i) {
    const int low = bytes[i] & 15;
    results[i] = static_cast<uint8_t>(dtype == DT_INT4 && low >= 8 ? low - 16 : low);
  }
}
bool Has4Bits(DataType dtype) { return dtype == DT_INT4 || dtype == DT_UINT4; }

// Clears the low `bits` bits of the mantissas of n numbers. NaN stays NaN.
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

// Returns the number of stored mantissa bits; 0 for integers.
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
    from_ = LoopType(from);
    to_ = LoopType(to);
    middle_ = IntermediateType(from_);
    from_size_ = DataTypeSize(from_);
    to_size_ = DataTypeSize(to_);
    source_ = from;
    target_ = to;
    if (Float8::IsFloat8(from)) from_float8_.emplace(from);
    if (Float8::IsFloat8(to)) to_float8_.emplace(to);
    is_small_ =
        from_float8_.has_value() || to_float8_.has_value() || Has4Bits(from) || Has4Bits(to);
    if (truncate && MantissaBits(from) > MantissaBits(to) && MantissaBits(to) > 0) {
      // Loops see 16-bit floats as float.
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
    if (is_small_) return RunSmall(ctx);
    return RunElementwise(ctx, {from_size_}, kCheapNanoseconds,
                          [this](const void* const* x, const int64_t*, void* out, int64_t n) {
                            Run(static_cast<const char*>(x[0]), static_cast<char*>(out), n);
                          });
  }

 private:
  // Casts with 4-bit or 8-bit types. Decodes each chunk before the cast and encodes it afterwards.
  absl::Status RunSmall(KernelContext& ctx) const {
    const int stored = from_float8_.has_value() ? 1 : from_size_;
    const int written = to_float8_.has_value() ? 1 : to_size_;
    return RunElementwise(ctx, {stored}, 10 * kCheapNanoseconds,
                          [=](const void* const* x, const int64_t*, void* out, int64_t n) {
                            alignas(64) char wide[kChunk * sizeof(complex128)];
                            alignas(64) char result[kChunk * sizeof(complex128)];
                            for (int64_t i = 0; i < n; i += kChunk) {
                              const int64_t count = std::min(kChunk, n - i);
                              const void* from = static_cast<const char*>(x[0]) + i * stored;
                              char* const to = static_cast<char*>(out) + i * written;
                              from = Decoded(from, count, wide);
                              if (from_ == to_) {
                                std::memcpy(result, from, count * from_size_);
                              } else {
                                Run(static_cast<const char*>(from), result, count);
                              }
                              Encode(result, count, to);
                            }
                          });
  }
  const void* Decoded(const void* from, int64_t n, void* wide) const {
    if (from_float8_.has_value()) {
      const auto* const codes = static_cast<const uint8_t*>(from);
      for (int64_t i = 0; i < n; ++i) {
        static_cast<float*>(wide)[i] = from_float8_->Decode(codes[i]);
      }
      return wide;
    }
    if (!Has4Bits(source_)) return from;
    Wrap4Bits(source_, from, wide, n);
    return wide;
  }
  void Encode(const void* result, int64_t n, char* to) const {
    if (to_float8_.has_value()) {
      for (int64_t i = 0; i < n; ++i) {
        to[i] = static_cast<char>(to_float8_->Encode(static_cast<const float*>(result)[i]));
      }
    } else if (Has4Bits(target_)) {
      Wrap4Bits(target_, result, to, n);
    } else {
      std::memcpy(to, result, n * to_size_);
    }
  }

  void Run(const char* from, char* to, int64_t n) const {
    if (middle_ == from_ && clear_low_bits_ == 0) return NarrowElements(from_, to_, from, to, n);
    alignas(64) char cleared[kChunk * sizeof(complex128)];
    for (int64_t i = 0; i < n; i += kChunk) {
      const int64_t count = std::min(kChunk, n - i);
      const void* source = from + i * from_size_;
      if (clear_low_bits_ > 0) {
        const int parts = DataTypeIsComplex(from_) ? 2 : 1;
        (from_size_ / parts == 8
             ? ClearLowBits<double, uint64_t>
             : ClearLowBits<float, uint32_t>)(source, clear_low_bits_, cleared, count * parts);
        source = cleared;
      }
      Convert(source, to + i * to_size_, count);
    }
  }

  // Converts at most one chunk.
  void Convert(const void* from, void* to, int64_t n) const {
    if (DataTypeIsComplex(from_) && DataTypeIsComplex(to_)) {
      return to_ == DT_COMPLEX64 ? ConvertComplex<complex128, complex64>(from, to, n)
                                 : ConvertComplex<complex64, complex128>(from, to, n);
    }
    if (middle_ == from_) return NarrowElements(from_, to_, from, to, n);
    alignas(64) char wide[kChunk * sizeof(double)];
    WidenElements(from_, from, wide, n);
    NarrowElements(middle_, to_, wide, to, n);
  }

  bool forwards_ = false;
  // The types that loops see, and their sizes in bytes.
  DataType from_ = DT_INVALID;
  DataType middle_ = DT_INVALID;
  DataType to_ = DT_INVALID;
  int from_size_ = 0;
  int to_size_ = 0;
  int clear_low_bits_ = 0;
  // The types of the node, and whether one of them has 4 or 8 bits and no arithmetic.
  DataType source_ = DT_INVALID;
  DataType target_ = DT_INVALID;
  bool is_small_ = false;
  std::optional<Float8> from_float8_;
  std::optional<Float8> to_float8_;
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
towards zero, first to int32, or to int64 for uint32, int64 and uint64. NaN and numbers that do not
fit become the smallest number of that type. (uint64 also has the numbers from 2^63 to 2^64.) A
smaller type takes the low bits. Casts between floating-point types round to nearest. Casts to half
and bfloat16 from integers and from types wider than float round to float first. Casts to 8-bit
floats also round to float first; numbers that are too large for them become infinity, or NaN in
types without infinity. The real part of complex numbers is cast. True and false are 1 and 0; every
nonzero value is true. Quantized integers are cast like plain integers. Integers of 4 bits wrap
around.

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
  for (const DataType dtype : SmallTypes()) types.push_back(dtype);
  registry.Kernel("Cast", MakeKernel<CastKernel>).Types("SrcT", types).Types("DstT", types);
  for (const DataType dtype : AllDataTypes()) {
    if ((DataTypeIsPlainBytes(dtype) || dtype == DT_STRING) &&
        std::find(types.begin(), types.end(), dtype) == types.end()) {
      registry.Kernel("Cast", MakeKernel<CastKernel>).Types("SrcT", {dtype}).Types("DstT", {dtype});
    }
  }
}

}  // namespace gradflow::cast
