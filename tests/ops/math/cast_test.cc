#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

using CastTypes = ConcatTypes<NumberTypes, TypeList<bool>>::type;

OpTester Cast(const Tensor& x, DataType to, bool truncate = false) {
  return OpTester("Cast").Input(x).Attr("DstT", to).Attr("Truncate", truncate);
}

template <typename T>
constexpr bool kIsInteger = std::is_integral_v<T> && !std::is_same_v<T, bool>;

// Returns values at and around the limits of all types that T can represent.
template <typename T>
std::vector<T> Samples() {
  std::vector<T> samples;
  if constexpr (std::is_same_v<T, bool>) {
    samples = {false, true};
  } else if constexpr (kIsInteger<T>) {
    for (const int bits : {0, 1, 7, 8, 11, 15, 16, 24, 31, 32, 53, 63}) {
      for (const int64_t off : {-1, 0, 1}) {
        const uint64_t value = (uint64_t{1} << bits) + static_cast<uint64_t>(off);
        samples.push_back(static_cast<T>(value));
        samples.push_back(static_cast<T>(-value));
      }
    }
    samples.push_back(std::numeric_limits<T>::min());
    samples.push_back(std::numeric_limits<T>::max());
  } else if constexpr (kIsComplex<T>) {
    for (const auto real : Samples<typename T::value_type>()) samples.emplace_back(real, 7);
    samples.emplace_back(0, 1);
  } else {
    for (const double value :
         {0.0,    0.3,       0.5,   1.0,     1.5,          2.5,    126.9,  127.5,  128.0,
          128.9,  255.9,     256.0, 32767.5, 32768.,       65504., 65519., 65520., 65536.,
          1e5,    16777217., 2.2e9, 4.3e9,   0x1p31,       0x1p32, 0x1p53, 0x1p62, 0x1p63,
          0x1p64, 1e25,      1e-8,  1e-40,   3.4028235e38, 1e300,  1e-310}) {
      samples.push_back(static_cast<T>(value));
      samples.push_back(static_cast<T>(-value));
    }
    for (const float value : {kInf, -kInf, kNan}) samples.push_back(static_cast<T>(value));
  }
  return samples;
}

// Returns the expected element of type To. Computes in long double, which represents all elements
// exactly.
template <typename To>
To Expected(long double value, bool from_integer) {
  if constexpr (std::is_same_v<To, bool>) {
    return value != 0;
  } else if constexpr (kIsComplex<To>) {
    return To(Expected<typename To::value_type>(value, from_integer), 0);
  } else if constexpr (kIsInteger<To>) {
    if (from_integer) return static_cast<To>(static_cast<__int128>(value));
    if (std::is_same_v<To, uint64_t> && value >= 0x1p63 && value < 0x1p64) {
      return static_cast<To>(value);
    }
    // A number that does not fit becomes the smallest number of the type that x86 converts to.
    constexpr bool kByInt64 = sizeof(To) == 8 || std::is_same_v<To, uint32_t>;
    const long double limit = kByInt64 ? 0x1p63 : 0x1p31;
    const bool fits = value >= -limit && value < limit;
    return static_cast<To>(static_cast<int64_t>(fits ? value : -limit));
  } else if constexpr (kIsFloat16<To>) {
    return To(static_cast<float>(value));
  } else {
    return static_cast<To>(value);
  }
}

template <typename From, typename To>
void ExpectCasts() {
  SCOPED_TRACE(absl::StrCat(DataTypeString(DataTypeToEnum<From>::value), " to ",
                            DataTypeString(DataTypeToEnum<To>::value)));
  const std::vector<From> samples = Samples<From>();
  const TensorShape shape({static_cast<int64_t>(samples.size())});
  Tensor x(DataTypeToEnum<From>::value, shape);
  Tensor expected(DataTypeToEnum<To>::value, shape);
  for (int64_t i = 0; i < x.NumElements(); ++i) {
    const From sample = samples[i];
    x.flat<From>()(i) = sample;
    To& element = expected.flat<To>()(i);
    if constexpr (kIsComplex<From> && kIsComplex<To>) {
      element = To(sample);
    } else if constexpr (kIsComplex<From>) {
      element = Expected<To>(sample.real(), false);
    } else {
      element = Expected<To>(static_cast<long double>(sample), std::is_integral_v<From>);
    }
  }
  if constexpr (kIsComplex<From> && kIsComplex<To>) {
    // Compares real and imaginary parts, and treats NaN as equal to NaN.
    EXPECT_THAT(Cast(x, expected.dtype()).RunOne(), TensorNear(expected, 0, 0));
  } else {
    EXPECT_THAT(Cast(x, expected.dtype()).RunOne(), TensorEq(expected));
  }
}

TEST(Cast, ConvertsEveryTypeToEveryOther) {
  ForEachType(CastTypes(), [](auto from) {
    ForEachType(CastTypes(), [](auto to) {
      ExpectCasts<typename decltype(from)::type, typename decltype(to)::type>();
    });
  });
}

// Enough elements for vectors of each width and a remainder.
TEST(Cast, HasTheSameBitsOnEverySimdTarget) {
  ForEachType(CastTypes(), [](auto tag) {
    using T = typename decltype(tag)::type;
    const std::vector<T> samples = Samples<T>();
    std::vector<T> elements;
    for (size_t i = 0; i < 307; ++i) elements.push_back(samples[i % samples.size()]);
    Tensor x(DataTypeToEnum<T>::value, {static_cast<int64_t>(elements.size())});
    std::copy(elements.begin(), elements.end(), x.flat<T>().data());
    ForEachType(CastTypes(), [&](auto to) {
      EXPECT_THAT(
          Cast(x, DataTypeToEnum<typename decltype(to)::type>::value).RunEverywhere({{1}, {}}),
          IsOk());
    });
  });
}

TEST(Cast, KeepsInt64Exact) {
  const int64_t odd = (int64_t{1} << 62) + 1;
  EXPECT_THAT(
      Cast(AsTensor<int64_t>({odd, -odd}), DT_UINT64).RunOne(),
      TensorEq(AsTensor<uint64_t>({static_cast<uint64_t>(odd), -static_cast<uint64_t>(odd)})));
  EXPECT_THAT(Cast(AsTensor<uint64_t>({UINT64_MAX}), DT_INT64).RunOne(),
              TensorEq(AsTensor<int64_t>({-1})));
  EXPECT_THAT(Cast(AsTensor<uint64_t>({UINT64_MAX}), DT_DOUBLE).RunOne(),
              TensorEq(AsTensor<double>({0x1p64})));
}

TEST(Cast, RoundsToHalfThroughFloat) {
  // The number is slightly above a tie of the type. The nearest float is the tie, which rounds to
  // even.
  EXPECT_THAT(Cast(AsTensor<double>({1.00048828218621, -1.00048828218621}), DT_HALF).RunOne(),
              TensorEq(AsTensor<half>({1, -1})));
  EXPECT_THAT(Cast(AsTensor<complex128>({{1.00048828218621, 0}}), DT_HALF).RunOne(),
              TensorEq(AsTensor<half>({1})));
  EXPECT_THAT(Cast(AsTensor<double>({1.00390625000001}), DT_BFLOAT16).RunOne(),
              TensorEq(AsTensor<bfloat16>({1})));
  EXPECT_THAT(Cast(AsTensor<int32_t>({(1 << 30) + (1 << 22) + 1}), DT_BFLOAT16).RunOne(),
              TensorEq(AsTensor<bfloat16>({0x1p30f})));
}

TEST(Cast, WrapsNumbersThatDoNotFit) {
  EXPECT_THAT(
      Cast(AsTensor<float>({3e9f, -3e9f, kInf, -kInf, kNan, -1.9f}), DT_INT32).RunOne(),
      TensorEq(AsTensor<int32_t>({INT32_MIN, INT32_MIN, INT32_MIN, INT32_MIN, INT32_MIN, -1})));
  EXPECT_THAT(Cast(AsTensor<float>({-5, 300, 255.5f, kNan, 1e20f}), DT_UINT8).RunOne(),
              TensorEq(AsTensor<uint8_t>({251, 44, 255, 0, 0})));
  EXPECT_THAT(Cast(AsTensor<double>({-1, 4e9, 1e10, kNan}), DT_UINT32).RunOne(),
              TensorEq(AsTensor<uint32_t>({4294967295, 4000000000, 1410065408, 0})));
  EXPECT_THAT(Cast(AsTensor<double>({-1, 1e19, 1e20, kNan}), DT_UINT64).RunOne(),
              TensorEq(AsTensor<uint64_t>(
                  {UINT64_MAX, 10000000000000000000u, uint64_t{1} << 63, uint64_t{1} << 63})));
  EXPECT_THAT(Cast(AsTensor<int32_t>({-1, 300}), DT_UINT8).RunOne(),
              TensorEq(AsTensor<uint8_t>({255, 44})));
}

TEST(Cast, TruncatesMantissasIfAsked) {
  // 1 + 2^-8 + 2^-9 is above the midpoint of the bfloat16 numbers 1 and 1 + 2^-7.
  const float value = 1 + 0x1p-8f + 0x1p-9f;
  const Tensor x = AsTensor<float>({value, -value, kInf, kNan, 0});
  EXPECT_THAT(Cast(x, DT_BFLOAT16).RunOne(),
              TensorEq(AsTensor<bfloat16>({1 + 0x1p-7f, -1 - 0x1p-7f, kInf, kNan, 0})));
  EXPECT_THAT(Cast(x, DT_BFLOAT16, true).RunOne(),
              TensorEq(AsTensor<bfloat16>({1, -1, kInf, kNan, 0})));
  const double precise = 1 + 0x1p-11 + 0x1p-12;
  EXPECT_THAT(Cast(AsTensor<double>({precise}), DT_HALF).RunOne(),
              TensorEq(AsTensor<half>({1 + 0x1p-10f})));
  EXPECT_THAT(Cast(AsTensor<double>({precise}), DT_HALF, true).RunOne(),
              TensorEq(AsTensor<half>({1})));
  EXPECT_THAT(Cast(AsTensor<double>({1 + 0x1.8p-24}), DT_FLOAT, true).RunOne(),
              TensorEq(AsTensor<float>({1})));
  EXPECT_THAT(
      Cast(AsTensor<complex128>({{1 + 0x1.8p-24, -1 - 0x1.8p-24}}), DT_COMPLEX64, true).RunOne(),
      TensorEq(AsTensor<complex64>({{1, -1}})));
  // Truncation does not affect integers or widening casts.
  EXPECT_THAT(Cast(AsTensor<int32_t>({257}), DT_BFLOAT16, true).RunOne(),
              TensorEq(AsTensor<bfloat16>({256})));
  EXPECT_THAT(Cast(AsTensor<half>({0.1f}), DT_DOUBLE, true).RunOne(),
              TensorEq(AsTensor<double>({float{half(0.1f)}})));
}

TEST(Cast, TruncationKeepsNanWhoseMantissaIsLow) {
  const uint32_t bits = 0x7f800001;
  float nan;
  std::memcpy(&nan, &bits, sizeof(nan));
  EXPECT_THAT(Cast(AsTensor<float>({nan}), DT_BFLOAT16, true).RunOne(),
              TensorEq(AsTensor<bfloat16>({kNan})));
}

TEST(Cast, ConvertsLargeAndEmptyTensors) {
  const Tensor x = Iota<int32_t>({301, 333});
  EXPECT_THAT(Cast(x, DT_DOUBLE).RunOne(), TensorEq(Iota<double>({301, 333})));
  EXPECT_THAT(Cast(Tensor(DT_FLOAT, {0, 2}), DT_INT8).RunOne(), TensorEq(Tensor(DT_INT8, {0, 2})));
  EXPECT_THAT(Cast(AsScalar<bool>(true), DT_HALF).RunOne(), TensorEq(AsScalar<half>(1)));
}

// Bools from a file or another library may have bytes other than 0 and 1.
TEST(Cast, TakesEveryNonzeroByteForTrue) {
  Tensor x(DT_BOOL, {4});
  const unsigned char bytes[] = {0, 1, 2, 255};
  std::memcpy(x.raw_data(), bytes, sizeof(bytes));
  EXPECT_THAT(OpTester("Cast").Input(x).Attr("DstT", DT_INT32).RunOne(),
              TensorEq(AsTensor<int32_t>({0, 1, 1, 1})));
  EXPECT_THAT(OpTester("Cast").Input(x).Attr("DstT", DT_FLOAT).RunOne(),
              TensorEq(AsTensor<float>({0, 1, 1, 1})));
}

TEST(Cast, ForwardsTensorsOfTheTargetType) {
  for (const DataType dtype : TensorTypes()) {
    SCOPED_TRACE(DataTypeString(dtype));
    const Tensor x = DistinctTensor(dtype, {3});
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor y, Cast(x, dtype).RunOne());
    EXPECT_THAT(y, TensorEq(x));
    EXPECT_EQ(y.raw_data(), x.raw_data());
  }
}

TEST(Cast, HasNoKernelForOtherTypes) {
  EXPECT_THAT(Cast(AsTensor<tstring>({"1"}), DT_FLOAT).Run(),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("DstT = float; SrcT = string")));
}

// ---- Types without arithmetic ----

absl::StatusOr<Tensor> CastTo(const Tensor& x, DataType dtype) {
  return OpTester("Cast").Input(x).Attr("DstT", dtype).RunOne();
}

TEST(Cast, TakesQuantizedIntegersByTheirBits) {
  EXPECT_THAT(CastTo(AsTensor<qint8>({-128, 0, 127}), DT_FLOAT),
              TensorEq(AsTensor<float>({-128, 0, 127})));
  EXPECT_THAT(CastTo(AsTensor<quint8>({0, 200, 255}), DT_INT32),
              TensorEq(AsTensor<int32_t>({0, 200, 255})));
  EXPECT_THAT(CastTo(AsTensor<qint32>({-70000, 5}), DT_DOUBLE),
              TensorEq(AsTensor<double>({-70000, 5})));
  EXPECT_THAT(CastTo(AsTensor<float>({-3.75f, 200}), DT_QINT8),
              TensorEq(AsTensor<qint8>({-3, static_cast<int8_t>(200 - 256)})));
  EXPECT_THAT(CastTo(AsTensor<int32_t>({65535, -1}), DT_QUINT16),
              TensorEq(AsTensor<quint16>({65535, 65535})));
  // Loops treat these types as one type.
  EXPECT_THAT(CastTo(AsTensor<qint16>({-5, 300}), DT_INT16),
              TensorEq(AsTensor<int16_t>({-5, 300})));
  EXPECT_THAT(CastTo(AsTensor<uint8_t>({1, 2}), DT_QUINT8), TensorEq(AsTensor<quint8>({1, 2})));
}

TEST(Cast, Wraps4BitIntegers) {
  EXPECT_THAT(CastTo(AsTensor<int4>({-8, -1, 7}), DT_FLOAT),
              TensorEq(AsTensor<float>({-8, -1, 7})));
  EXPECT_THAT(CastTo(AsTensor<uint4>({0, 15}), DT_INT64), TensorEq(AsTensor<int64_t>({0, 15})));
  EXPECT_THAT(CastTo(AsTensor<int32_t>({7, 8, -9, 100}), DT_INT4),
              TensorEq(AsTensor<int4>({7, -8, 7, 4})));
  EXPECT_THAT(CastTo(AsTensor<int32_t>({16, -1}), DT_UINT4), TensorEq(AsTensor<uint4>({0, 15})));
  EXPECT_THAT(CastTo(AsTensor<int4>({-1, 3}), DT_UINT4), TensorEq(AsTensor<uint4>({15, 3})));
  EXPECT_THAT(CastTo(AsTensor<int4>({-1, 3}), DT_INT8), TensorEq(AsTensor<int8_t>({-1, 3})));
  // The high bits of a byte are ignored.
  EXPECT_THAT(CastTo(AsTensor<uint4>({0x5f}), DT_FLOAT), TensorEq(AsTensor<float>({15})));
}

template <typename T>
Tensor AllCodes() {
  std::vector<uint8_t> codes(256);
  for (int i = 0; i < 256; ++i) codes[i] = static_cast<uint8_t>(i);
  return AsTensor<T>(codes);
}

// Checks the values of codes, and the results of casts from float.
template <typename T>
void Check8BitFloat(const std::vector<std::pair<int, float>>& codes,
                    const std::vector<std::pair<float, int>>& encoded) {
  const DataType dtype = DataTypeToEnum<T>::value;
  SCOPED_TRACE(DataTypeString(dtype));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor values, CastTo(AllCodes<T>(), DT_FLOAT));
  for (const auto& [code, value] : codes) {
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(values.flat<float>()(code))) << code;
    } else {
      EXPECT_EQ(values.flat<float>()(code), value) << code;
    }
  }
  // Every number converts back to its own code.
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor back, CastTo(values, dtype));
  const auto* const bytes = static_cast<const uint8_t*>(back.raw_data());
  for (int code = 0; code < 256; ++code) {
    const bool is_nan = std::isnan(values.flat<float>()(code));
    EXPECT_TRUE(is_nan || bytes[code] == code) << code;
  }
  for (const auto& [value, code] : encoded) {
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor one, CastTo(AsTensor<float>({value}), dtype));
    EXPECT_EQ(*static_cast<const uint8_t*>(one.raw_data()), code) << value;
  }
}

TEST(Cast, Converts8BitFloats) {
  const float tiny = std::ldexp(1.0f, -9);
  Check8BitFloat<float8_e4m3fn>(
      {{0, 0}, {0x38, 1}, {0xb8, -1}, {0x39, 1.125f}, {0x7e, 448}, {1, tiny}, {0x7f, kNan}},
      {{1.0625f, 0x38},
       {1.1875f, 0x3a},
       {464, 0x7e},
       {465, 0x7f},
       {-1e9f, 0xff},
       {kInf, 0x7f},
       {tiny / 2, 0},
       {-tiny / 2, 0x80},
       {tiny * 0.75f, 1},
       {kNan, 0x7f}});
  Check8BitFloat<float8_e5m2>(
      {{0x3c, 1}, {0x7b, 57344}, {0x7c, kInf}, {0xfc, -kInf}, {0x7e, kNan}},
      {{1.125f, 0x3c}, {1.375f, 0x3e}, {61439, 0x7b}, {61440, 0x7c}, {-kInf, 0xfc}});
  Check8BitFloat<float8_e4m3fnuz>({{0x40, 1}, {0x7f, 240}, {0x80, kNan}},
                                  {{247, 0x7f}, {248, 0x80}, {-0.0f, 0}, {-1, 0xc0}, {kNan, 0x80}});
  Check8BitFloat<float8_e4m3b11fnuz>({{0x58, 1}, {0x7f, 30}, {0x80, kNan}},
                                     {{30.9f, 0x7f}, {31, 0x80}, {-kInf, 0x80}});
  Check8BitFloat<float8_e5m2fnuz>({{0x40, 1}, {0x7f, 57344}, {0x80, kNan}},
                                  {{1.25f, 0x41}, {61440, 0x80}});
}

TEST(Cast, ConvertsBetween8BitFloatsAndOtherTypes) {
  EXPECT_THAT(CastTo(AsTensor<float8_e4m3fn>({0x38, 0x40}), DT_FLOAT8_E5M2),
              TensorEq(AsTensor<float8_e5m2>({0x3c, 0x40})));
  EXPECT_THAT(CastTo(AsTensor<int32_t>({1, -2}), DT_FLOAT8_E4M3FN),
              TensorEq(AsTensor<float8_e4m3fn>({0x38, 0xc0})));
  EXPECT_THAT(CastTo(AsTensor<float8_e4m3fn>({0x38, 0xc0}), DT_INT64),
              TensorEq(AsTensor<int64_t>({1, -2})));
  EXPECT_THAT(CastTo(AsTensor<half>({1, -2}), DT_FLOAT8_E5M2),
              TensorEq(AsTensor<float8_e5m2>({0x3c, 0xc0})));
  EXPECT_THAT(CastTo(AsTensor<float8_e5m2>({0x3c, 0xc0}), DT_BFLOAT16),
              TensorEq(AsTensor<bfloat16>({1, -2})));
  EXPECT_THAT(CastTo(AsTensor<float8_e5m2>({0x3c, 0xc0}), DT_COMPLEX64),
              TensorEq(AsTensor<complex64>({1, -2})));
  EXPECT_THAT(CastTo(AsTensor<bool>({true, false}), DT_FLOAT8_E5M2),
              TensorEq(AsTensor<float8_e5m2>({0x3c, 0})));
  EXPECT_THAT(CastTo(AsTensor<float8_e5m2>({0x3c, 0x80}), DT_BOOL),
              TensorEq(AsTensor<bool>({true, false})));
  EXPECT_THAT(CastTo(Tensor(DT_FLOAT8_E5M2, {0, 2}), DT_FLOAT), TensorEq(Tensor(DT_FLOAT, {0, 2})));
  // More elements than a chunk.
  Tensor many(DT_FLOAT, {2001});
  for (int i = 0; i < 2001; ++i) many.flat<float>()(i) = static_cast<float>(i % 16);
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor small, CastTo(many, DT_FLOAT8_E4M3FN));
  EXPECT_THAT(CastTo(small, DT_FLOAT), TensorEq(many));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
