#include <cmath>
#include <cstring>
#include <limits>

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

// Returns the expected element of type To, computed through long double, which represents all
// elements exactly.
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
    // What does not fit becomes the smallest number of the type that x86 converts to.
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
    // Compares real and imaginary parts; NaN equals NaN.
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

TEST(Cast, RoundsToHalfByWayOfFloat) {
  // Slightly above a tie of the type, which is the nearest float and rounds to even.
  EXPECT_THAT(Cast(AsTensor<double>({1.00048828218621, -1.00048828218621}), DT_HALF).RunOne(),
              TensorEq(AsTensor<half>({1, -1})));
  EXPECT_THAT(Cast(AsTensor<complex128>({{1.00048828218621, 0}}), DT_HALF).RunOne(),
              TensorEq(AsTensor<half>({1})));
  EXPECT_THAT(Cast(AsTensor<double>({1.00390625000001}), DT_BFLOAT16).RunOne(),
              TensorEq(AsTensor<bfloat16>({1})));
  EXPECT_THAT(Cast(AsTensor<int32_t>({(1 << 30) + (1 << 22) + 1}), DT_BFLOAT16).RunOne(),
              TensorEq(AsTensor<bfloat16>({0x1p30f})));
}

TEST(Cast, WrapsWhatDoesNotFit) {
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
  // 1 + 2^-8 + 2^-9 is above the midpoint of the bfloat16 values 1 and 1 + 2^-7.
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
  // Does not affect integers and widening casts.
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

// A file or another library may hold other bytes than 0 and 1 for booleans.
TEST(Cast, TakesEveryNonzeroByteForTrue) {
  Tensor x(DT_BOOL, {4});
  const unsigned char bytes[] = {0, 1, 2, 255};
  std::memcpy(x.raw_data(), bytes, sizeof(bytes));
  EXPECT_THAT(OpTester("Cast").Input(x).Attr("DstT", DT_INT32).RunOne(),
              TensorEq(AsTensor<int32_t>({0, 1, 1, 1})));
  EXPECT_THAT(OpTester("Cast").Input(x).Attr("DstT", DT_FLOAT).RunOne(),
              TensorEq(AsTensor<float>({0, 1, 1, 1})));
}

// A quantised integer casts as the integer of its size.
TEST(Cast, ConvertsQuantizedIntegers) {
  const std::pair<DataType, DataType> types[] = {{DT_QINT8, DT_INT8},
                                                 {DT_QUINT8, DT_UINT8},
                                                 {DT_QINT16, DT_INT16},
                                                 {DT_QUINT16, DT_UINT16},
                                                 {DT_QINT32, DT_INT32}};
  const Tensor x = AsTensor<float>({0, 1, -1, 127, 128, 200, -128, 70000, 2.75});
  for (const auto& [quantised, stored] : types) {
    SCOPED_TRACE(DataTypeString(quantised));
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor plain, Cast(x, stored).RunOne());
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor q, Cast(x, quantised).RunOne());
    Tensor bits;
    GRADFLOW_ASSERT_OK(bits.BitcastFrom(q, stored, q.shape()));
    EXPECT_THAT(bits, TensorEq(plain));
    EXPECT_THAT(Cast(plain, quantised).RunOne(), TensorEq(q));
    for (const DataType to : {DT_FLOAT, DT_HALF, DT_INT64, DT_UINT8, DT_COMPLEX64, DT_QINT16}) {
      if (to == quantised) continue;
      GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor expected, Cast(plain, to).RunOne());
      EXPECT_THAT(Cast(q, to).RunOne(), TensorEq(expected)) << DataTypeString(to);
    }
  }
}

TEST(Cast, WrapsToFourBits) {
  const Tensor x = AsTensor<int32_t>({0, 7, 8, 15, 16, -1, -8, -9, 1000});
  const Tensor low = AsTensor<int4>({0, 7, -8, -1, 0, -1, -8, 7, -8});
  const Tensor unsigned_low = AsTensor<uint4>({0, 7, 8, 15, 0, 15, 8, 7, 8});
  EXPECT_THAT(Cast(x, DT_INT4).RunOne(), TensorEq(low));
  EXPECT_THAT(Cast(x, DT_UINT4).RunOne(), TensorEq(unsigned_low));
  EXPECT_THAT(Cast(low, DT_UINT4).RunOne(), TensorEq(unsigned_low));
  EXPECT_THAT(Cast(unsigned_low, DT_INT4).RunOne(), TensorEq(low));
  EXPECT_THAT(Cast(low, DT_FLOAT).RunOne(),
              TensorEq(AsTensor<float>({0, 7, -8, -1, 0, -1, -8, 7, -8})));
  EXPECT_THAT(Cast(unsigned_low, DT_INT64).RunOne(),
              TensorEq(AsTensor<int64_t>({0, 7, 8, 15, 0, 15, 8, 7, 8})));
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
  EXPECT_THAT(Cast(AsTensor<float8_e5m2>({1}), DT_FLOAT).Run(),
              StatusIs(absl::StatusCode::kUnimplemented));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
