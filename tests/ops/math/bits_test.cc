#include <bitset>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

template <typename T, typename F>
Tensor Computed(const Tensor& x, const Tensor& y, F f) {
  Tensor z(x.dtype(), x.shape());
  for (int64_t i = 0; i < x.NumElements(); ++i) {
    z.flat<T>()(i) = static_cast<T>(f(x.flat<T>()(i), y.flat<T>()(i)));
  }
  return z;
}

TEST(Bits, RunsForEveryType) {
  ForEachType(IntegerTypes(), [](auto tag) {
    using T = typename decltype(tag)::type;
    using U = std::make_unsigned_t<T>;
    constexpr DataType dtype = DataTypeToEnum<T>::value;
    SCOPED_TRACE(DataTypeString(dtype));
    constexpr int kBits = std::numeric_limits<U>::digits;
    Tensor x(dtype, {3, 333});
    Tensor y(dtype, {3, 333});
    uint64_t state = 1;
    for (int64_t i = 0; i < x.NumElements(); ++i) {
      for (Tensor* tensor : {&x, &y}) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        tensor->flat<T>()(i) = static_cast<T>(state >> 32 ^ state << 20);
      }
    }
    const auto run = [&](const char* op, const Tensor& b) {
      return OpTester(op).Input(x).Input(b).RunOne();
    };
    EXPECT_THAT(run("BitwiseAnd", y), TensorEq(Computed<T>(x, y, [](T a, T b) { return a & b; })));
    EXPECT_THAT(run("BitwiseOr", y), TensorEq(Computed<T>(x, y, [](T a, T b) { return a | b; })));
    EXPECT_THAT(run("BitwiseXor", y), TensorEq(Computed<T>(x, y, [](T a, T b) { return a ^ b; })));
    EXPECT_THAT(OpTester("Invert").Input(x).RunOne(),
                TensorEq(Computed<T>(x, y, [](T a, T) { return ~a; })));
    Tensor shift(dtype, x.shape());
    for (int64_t i = 0; i < x.NumElements(); ++i) shift.flat<T>()(i) = static_cast<T>(i % kBits);
    EXPECT_THAT(run("LeftShift", shift), TensorEq(Computed<T>(x, shift, [](T a, T b) {
                  return static_cast<U>(static_cast<uint64_t>(static_cast<U>(a)) << b);
                })));
    EXPECT_THAT(run("RightShift", shift),
                TensorEq(Computed<T>(x, shift, [](T a, T b) { return a >> b; })));
    Tensor counts(DT_UINT8, x.shape());
    for (int64_t i = 0; i < x.NumElements(); ++i) {
      counts.flat<uint8_t>()(i) =
          static_cast<uint8_t>(std::bitset<64>(static_cast<U>(x.flat<T>()(i))).count());
    }
    EXPECT_THAT(OpTester("PopulationCount").Input(x).RunOne(), TensorEq(counts));
    // C++ does not define these shifts.
    const T high = static_cast<T>(U{1} << (kBits - 1));
    EXPECT_THAT(OpTester("LeftShift")
                    .Input(AsTensor<T>({1, 1, 3}))
                    .Input(AsTensor<T>({kBits, kBits + 1, kBits - 1}))
                    .RunOne(),
                TensorEq(AsTensor<T>({high, high, high})));
    EXPECT_THAT(
        OpTester("RightShift").Input(AsTensor<T>({high, 5})).Input(AsTensor<T>({kBits})).RunOne(),
        TensorEq(AsTensor<T>({static_cast<T>(std::is_signed_v<T> ? -1 : 1), 0})));
    if constexpr (std::is_signed_v<T>) {
      for (const char* op : {"LeftShift", "RightShift"}) {
        EXPECT_THAT(
            OpTester(op).Input(AsTensor<T>({5, -5})).Input(AsTensor<T>({-1, -128})).RunOne(),
            TensorEq(AsTensor<T>({5, -5})));
      }
    }
  });
}

TEST(Bits, BroadcastsAndTakesEmptyTensors) {
  EXPECT_THAT(OpTester("BitwiseOr").Input<int32_t>({1, 2}, {2, 1}).Input<int32_t>({4, 8}).RunOne(),
              TensorEq(AsTensor<int32_t>({5, 9, 6, 10}, {2, 2})));
  EXPECT_THAT(OpTester("PopulationCount").Input(Tensor(DT_INT64, {0, 2})).RunOne(),
              TensorEq(Tensor(DT_UINT8, {0, 2})));
}

TEST(Bits, RefuseFloats) {
  for (const char* op : {"BitwiseAnd", "BitwiseOr", "BitwiseXor", "LeftShift", "RightShift"}) {
    EXPECT_THAT(OpTester(op).Input<float>({1}).Input<float>({1}).MakeKernel(),
                StatusIs(kInvalidArgument, HasSubstr("T")))
        << op;
  }
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
