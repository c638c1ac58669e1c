#include <cmath>
#include <complex>
#include <string>

#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

struct ExponentialCase {
  const char* op;
  double (*reference)(double);
  double low;
  double high;
};
// In long double, for a reference that is correctly rounded to double.
const ExponentialCase kExponentialCases[] = {
    {"Exp", [](double x) { return static_cast<double>(std::exp(static_cast<long double>(x))); },
     -10, 10},
    {"Log", [](double x) { return static_cast<double>(std::log(static_cast<long double>(x))); },
     1e-6, 100},
    {"Tanh", [](double x) { return static_cast<double>(std::tanh(static_cast<long double>(x))); },
     -5, 5},
    {"Sigmoid",
     [](double x) { return static_cast<double>(1 / (1 + std::exp(-static_cast<long double>(x)))); },
     -20, 20},
};

TEST(Exponential, FloatsAreCorrectlyRounded) {
  for (const ExponentialCase& c : kExponentialCases) {
    for (const DataType dtype : {DT_FLOAT, DT_BFLOAT16}) {
      SCOPED_TRACE(std::string(c.op) + " of " + DataTypeString(dtype));
      const Tensor x = RandomTensor(dtype, {2003}, c.low, c.high);
      EXPECT_THAT(OpTester(c.op).Input(x).RunOne(), TensorEq(UnaryReference(x, c.reference)));
    }
  }
}

TEST(Exponential, DoublesAndHalvesAreRightToTheLastPlaces) {
  for (const ExponentialCase& c : kExponentialCases) {
    SCOPED_TRACE(c.op);
    const Tensor x = RandomTensor(DT_DOUBLE, {501}, c.low, c.high);
    EXPECT_THAT(OpTester(c.op).Input(x).RunOne(),
                TensorNear(UnaryReference(x, c.reference), 0, 1e-15));
    const Tensor h = RandomTensor(DT_HALF, {501}, std::max(c.low, -9.0), std::min(c.high, 9.0));
    EXPECT_THAT(OpTester(c.op).Input(h).RunOne(),
                TensorNear(UnaryReference(h, c.reference), 1e-7, 1e-3));
  }
}

// The bits of a result do not depend on the position of the element.
TEST(Exponential, DoesNotDependOnThePosition) {
  const Tensor x = RandomTensor(DT_FLOAT, {70001}, -3, 3);
  for (const ExponentialCase& c : kExponentialCases) {
    SCOPED_TRACE(c.op);
    const Tensor positive = UnaryReference(x, [](double v) { return std::fabs(v) + 0.5; });
    const auto whole = OpTester(c.op).Input(positive).RunOne();
    const auto part = OpTester(c.op).Input(positive.Slice(31, 69999)).RunOne();
    GRADFLOW_ASSERT_OK(whole);
    EXPECT_THAT(part, TensorEq(whole->Slice(31, 69999)));
  }
}

TEST(Exponential, SpecialValues) {
  const Tensor x = AsTensor<float>({kInf, -kInf, kNan, 0, -0.0f, 1000, -1000});
  EXPECT_THAT(OpTester("Exp").Input(x).RunOne(),
              TensorEq(AsTensor<float>({kInf, 0, kNan, 1, 1, kInf, 0})));
  EXPECT_THAT(OpTester("Log").Input(x.Slice(0, 5)).RunOne(),
              TensorEq(AsTensor<float>({kInf, kNan, kNan, -kInf, -kInf})));
  EXPECT_THAT(OpTester("Tanh").Input(x).RunOne(),
              TensorEq(AsTensor<float>({1, -1, kNan, 0, -0.0f, 1, -1})));
  EXPECT_THAT(OpTester("Sigmoid").Input(x).RunOne(),
              TensorEq(AsTensor<float>({1, 0, kNan, 0.5f, 0.5f, 1, 0})));
}

TEST(Sigmoid, KeepsTheDigitsOfSmallResults) {
  EXPECT_THAT(
      OpTester("Sigmoid").Input(AsTensor<double>({-720, -40, 40, 750, -750})).RunOne(),
      TensorNear(AsTensor<double>({std::exp(-720.0), std::exp(-40.0), 1, 1, 0}), 1e-320, 1e-14));
  // A subnormal float.
  EXPECT_THAT(OpTester("Sigmoid").Input(AsTensor<float>({-100})).RunOne(),
              TensorEq(AsTensor<float>({static_cast<float>(std::exp(-100.0))})));
}

TEST(Exponential, ComplexNumbers) {
  using C = complex128;
  const Tensor x = AsTensor<C>({{0.5, 2}, {-1, -0.25}, {800, 1}, {-800, 1}});
  const auto reference = [&](C (*f)(C), int n) {
    Tensor y(DT_COMPLEX128, {n});
    for (int i = 0; i < n; ++i) y.vec<C>()(i) = f(x.vec<C>()(i));
    return y;
  };
  EXPECT_THAT(OpTester("Exp").Input(x.Slice(0, 2)).RunOne(),
              TensorNear(reference(
                  [](C z) { return std::exp(z.real()) * C(cos(z.imag()), sin(z.imag())); }, 2)));
  EXPECT_THAT(OpTester("Log").Input(x.Slice(0, 2)).RunOne(),
              TensorNear(reference([](C z) { return C(std::log(std::abs(z)), std::arg(z)); }, 2)));
  EXPECT_THAT(OpTester("Tanh").Input(x.Slice(0, 2)).RunOne(),
              TensorNear(reference([](C z) { return std::sinh(z) / std::cosh(z); }, 2)));
  EXPECT_THAT(OpTester("Sigmoid").Input(x).RunOne(), TensorNear(reference(
                                                         [](C z) {
                                                           if (std::abs(z.real()) > 100)
                                                             return C(z.real() > 0 ? 1 : 0);
                                                           return 1.0 / (1.0 + std::exp(-z));
                                                         },
                                                         4)));
}

template <typename F>
void ExpectComputedInComplex128(const char* op, F f) {
  SCOPED_TRACE(op);
  const Tensor x = RandomTensor(DT_COMPLEX64, {2003}, -3, 3);
  Tensor expected(DT_COMPLEX64, x.shape());
  for (int64_t i = 0; i < x.NumElements(); ++i) {
    expected.vec<complex64>()(i) = complex64(f(complex128(x.vec<complex64>()(i))));
  }
  EXPECT_THAT(OpTester(op).Input(x).RunOne(), TensorEq(expected));
}

TEST(Exponential, OfComplex64IsComputedInComplex128AndRoundedOnce) {
  using C = complex128;
  ExpectComputedInComplex128("Exp", [](C z) { return std::exp(z); });
  ExpectComputedInComplex128("Log", [](C z) { return std::log(z); });
  ExpectComputedInComplex128("Tanh", [](C z) { return std::tanh(z); });
  ExpectComputedInComplex128("Sigmoid", [](C z) {
    return z.real() >= 0 ? 1.0 / (1.0 + std::exp(-z)) : std::exp(z) / (1.0 + std::exp(z));
  });
}

TEST(Exponential, RefusesIntegers) {
  for (const ExponentialCase& c : kExponentialCases) {
    EXPECT_THAT(OpTester(c.op).Input(AsTensor<int32_t>({1})).MakeKernel(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("T")))
        << c.op;
  }
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
