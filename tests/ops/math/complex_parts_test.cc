#include <cmath>
#include <complex>
#include <string>

#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

template <typename T>
void ExpectParts() {
  using C = std::complex<T>;
  constexpr DataType kPart = DataTypeToEnum<T>::value;
  const Tensor z = RandomTensor(DataTypeToEnum<C>::value, {3, 701}, -5, 5);
  Tensor real(kPart, z.shape());
  Tensor imag(kPart, z.shape());
  Tensor magnitude(kPart, z.shape());
  Tensor angle(kPart, z.shape());
  Tensor conjugate(z.dtype(), z.shape());
  for (int64_t i = 0; i < z.NumElements(); ++i) {
    const C value = z.flat<C>()(i);
    real.flat<T>()(i) = value.real();
    imag.flat<T>()(i) = value.imag();
    magnitude.flat<T>()(i) = static_cast<T>(
        std::hypot(static_cast<long double>(value.real()), static_cast<long double>(value.imag())));
    angle.flat<T>()(i) = static_cast<T>(
        std::atan2(static_cast<long double>(value.imag()), static_cast<long double>(value.real())));
    conjugate.flat<C>()(i) = std::conj(value);
  }
  const auto part = [&](const char* op) { return OpTester(op).Input(z).Attr("Tout", kPart); };
  EXPECT_THAT(part("Real").RunOne(), TensorEq(real));
  EXPECT_THAT(part("Imag").RunOne(), TensorEq(imag));
  EXPECT_THAT(part("ComplexAbs").RunOne(), TensorWithinUlps(magnitude, 1));
  EXPECT_THAT(part("Angle").RunOne(), TensorWithinUlps(angle, 1));
  EXPECT_THAT(OpTester("Conj").Input(z).RunOne(), TensorEq(conjugate));
  EXPECT_THAT(OpTester("Complex").Input(real).Input(imag).Attr("Tout", z.dtype()).RunOne(),
              TensorEq(z));
}

TEST(ComplexParts, RunsForBothTypes) {
  ExpectParts<float>();
  ExpectParts<double>();
}

TEST(ComplexParts, HandlesSpecialValues) {
  const Tensor z = AsTensor<complex64>({{0, 0}, {-1, 0}, {-1, -0.0f}, {0, 2}, {3e38f, 3e38f}});
  EXPECT_THAT(OpTester("Angle").Input(z).RunOne(),
              TensorWithinUlps(
                  AsTensor<float>({0, 3.14159265f, -3.14159265f, 1.57079633f, 0.785398163f}), 1));
  EXPECT_THAT(OpTester("ComplexAbs").Input(z.Slice(0, 4)).RunOne(),
              TensorEq(AsTensor<float>({0, 1, 1, 2})));
  EXPECT_THAT(OpTester("Real").Input(Tensor(DT_COMPLEX64, {0, 2})).RunOne(),
              TensorEq(Tensor(DT_FLOAT, {0, 2})));
}

TEST(Complex, Broadcasts) {
  EXPECT_THAT(OpTester("Complex").Input<float>({1, 2}).Input<float>({3, 4}, {2, 1}).RunOne(),
              TensorEq(AsTensor<complex64>({{1, 3}, {2, 3}, {1, 4}, {2, 4}}, {2, 2})));
}

TEST(ComplexParts, RefuseMixedPrecision) {
  EXPECT_THAT(OpTester("Real").Input(AsTensor<complex128>({{1, 2}})).MakeKernel(),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("Real")));
  EXPECT_THAT(OpTester("Complex").Input<double>({1}).Input<double>({1}).MakeKernel(),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("Complex")));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
