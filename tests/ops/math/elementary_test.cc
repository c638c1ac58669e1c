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

using Long = long double;

struct ElementaryOpCase {
  const char* op;
  Long (*reference)(Long);
  double low;
  double high;
  bool is_complex;
};
// References in long double, so that rounding to double is correct.
const ElementaryOpCase kElementaryOpCases[] = {
    {"Exp", std::exp, -10, 10, true},
    {"Expm1", std::expm1, -3, 9, true},
    {"Log", std::log, 1e-6, 100, true},
    {"Log1p", std::log1p, -0.9, 100, true},
    {"Sigmoid", [](Long x) { return 1 / (1 + std::exp(-x)); }, -20, 20, true},
    {"Sin", std::sin, -30, 30, true},
    {"Cos", std::cos, -30, 30, true},
    {"Tan", std::tan, -30, 30, true},
    {"Asin", std::asin, -1, 1, true},
    {"Acos", std::acos, -1, 1, true},
    {"Atan", std::atan, -9, 9, true},
    {"Sinh", std::sinh, -9, 9, true},
    {"Cosh", std::cosh, -9, 9, true},
    {"Tanh", std::tanh, -5, 5, true},
    {"Asinh", std::asinh, -90, 90, true},
    {"Acosh", std::acosh, 1, 90, true},
    {"Atanh", std::atanh, -1, 1, true},
    {"Erf", std::erf, -3, 3, false},
    {"Erfc", std::erfc, -3, 5, false},
    {"Lgamma", std::lgamma, 0.1, 30, false},
};

Tensor LongReference(const Tensor& x, Long (*f)(Long)) {
  return UnaryReference(x, [&](double v) { return static_cast<double>(f(Long{v})); });
}

TEST(ElementaryOps, FloatsAndDoublesAreAccurateToTheLastPlaces) {
  for (const ElementaryOpCase& c : kElementaryOpCases) {
    for (const DataType dtype : {DT_FLOAT, DT_DOUBLE}) {
      SCOPED_TRACE(std::string(c.op) + " of " + DataTypeString(dtype));
      const Tensor x = RandomTensor(dtype, {3, 1501}, c.low, c.high);
      const std::string op = c.op;
      const bool is_loose = op == "Erfc" || op == "Lgamma" || op == "Erf" || op == "Tanh" ||
                            op == "Atan" || op == "Acos";
      const int ulps = op == "Sigmoid" || op == "Asin" ? 3 : is_loose ? 2 : 1;
      EXPECT_THAT(OpTester(c.op).Input(x).RunEverywhere(),
                  IsOkAndHolds(::testing::ElementsAre(
                      TensorWithinUlps(LongReference(x, c.reference), ulps))));
    }
  }
}

TEST(ElementaryOps, HalvesRoundOnceFromFloat) {
  for (const ElementaryOpCase& c : kElementaryOpCases) {
    for (const DataType dtype : {DT_HALF, DT_BFLOAT16}) {
      SCOPED_TRACE(std::string(c.op) + " of " + DataTypeString(dtype));
      const Tensor x = RandomTensor(dtype, {1501}, std::max(c.low, -9.0), std::min(c.high, 9.0));
      GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor wide,
                                    OpTester("Cast").Input(x).Attr("DstT", DT_FLOAT).RunOne());
      GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor y, OpTester(c.op).Input(wide).RunOne());
      EXPECT_THAT(OpTester(c.op).Input(x).RunOne(),
                  TensorEq(UnaryReference(FromDoubles(dtype, x.shape(), AsDoubles(y)),
                                          [](double v) { return v; })));
    }
  }
}

// A result has the same bits at every position.
TEST(ElementaryOps, ResultsDoNotDependOnThePosition) {
  const Tensor x = RandomTensor(DT_FLOAT, {70001}, -3, 3);
  for (const ElementaryOpCase& c : kElementaryOpCases) {
    SCOPED_TRACE(c.op);
    const Tensor positive = UnaryReference(x, [](double v) { return std::fabs(v) + 0.5; });
    const auto whole = OpTester(c.op).Input(positive).RunOne();
    const auto part = OpTester(c.op).Input(positive.Slice(31, 69999)).RunOne();
    GRADFLOW_ASSERT_OK(whole);
    EXPECT_THAT(part, TensorEq(whole->Slice(31, 69999)));
  }
}

TEST(ElementaryOps, HandlesSpecialValues) {
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
  // The result is a subnormal float.
  EXPECT_THAT(OpTester("Sigmoid").Input(AsTensor<float>({-100})).RunOne(),
              TensorWithinUlps(AsTensor<float>({static_cast<float>(std::exp(-100.0))}), 1));
}

TEST(ElementaryOps, ComputesComplexNumbers) {
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

TEST(ElementaryOps, Complex64IsComputedInComplex128AndRoundedOnce) {
  using C = complex128;
  ExpectComputedInComplex128("Exp", [](C z) { return std::exp(z); });
  ExpectComputedInComplex128("Log", [](C z) { return std::log(z); });
  ExpectComputedInComplex128("Tanh", [](C z) { return std::tanh(z); });
  ExpectComputedInComplex128("Sigmoid", [](C z) {
    return z.real() >= 0 ? 1.0 / (1.0 + std::exp(-z)) : std::exp(z) / (1.0 + std::exp(z));
  });
}

template <typename F>
void ExpectComplex(const char* op, F f) {
  SCOPED_TRACE(op);
  const Tensor x = RandomTensor(DT_COMPLEX128, {501}, -2, 2);
  Tensor expected(DT_COMPLEX128, x.shape());
  for (int64_t i = 0; i < x.NumElements(); ++i) {
    const std::complex<Long> z(x.vec<complex128>()(i));
    expected.vec<complex128>()(i) = complex128(f(z));
  }
  EXPECT_THAT(OpTester(op).Input(x).RunOne(), TensorNear(expected, 1e-14, 1e-13));
}

TEST(ElementaryOps, ComputesComplex128) {
  using C = std::complex<Long>;
  ExpectComplex("Expm1", [](C z) { return std::exp(z) - Long{1}; });
  ExpectComplex("Log1p", [](C z) { return std::log(Long{1} + z); });
  ExpectComplex("Sin", [](C z) { return std::sin(z); });
  ExpectComplex("Cos", [](C z) { return std::cos(z); });
  ExpectComplex("Tan", [](C z) { return std::tan(z); });
  ExpectComplex("Asin", [](C z) { return std::asin(z); });
  ExpectComplex("Acos", [](C z) { return std::acos(z); });
  ExpectComplex("Atan", [](C z) { return std::atan(z); });
  ExpectComplex("Sinh", [](C z) { return std::sinh(z); });
  ExpectComplex("Cosh", [](C z) { return std::cosh(z); });
  ExpectComplex("Asinh", [](C z) { return std::asinh(z); });
  ExpectComplex("Acosh", [](C z) { return std::acosh(z); });
  ExpectComplex("Atanh", [](C z) { return std::atanh(z); });
}

TEST(ElementaryOps, SmallComplexNumbersKeepTheirDigits) {
  const Tensor x = AsTensor<complex128>({{1e-9, 2e-9}, {-1e-12, 1e-11}});
  // Computes the first terms of the series.
  const auto series = [&](double sign) {
    Tensor y(DT_COMPLEX128, {2});
    for (int i = 0; i < 2; ++i) {
      const complex128 z = x.vec<complex128>()(i);
      y.vec<complex128>()(i) = z + sign * z * z / 2.0;
    }
    return y;
  };
  EXPECT_THAT(OpTester("Expm1").Input(x).RunOne(), TensorNear(series(1), 0, 1e-14));
  EXPECT_THAT(OpTester("Log1p").Input(x).RunOne(), TensorNear(series(-1), 0, 1e-14));
}

TEST(ElementaryOps, RefusesIntegers) {
  for (const ElementaryOpCase& c : kElementaryOpCases) {
    EXPECT_THAT(OpTester(c.op).Input(AsTensor<int32_t>({1})).MakeKernel(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("T")))
        << c.op;
  }
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
