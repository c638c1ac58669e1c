#include "gradflow/ops/math/special_functions.h"

#include <cmath>
#include <complex>
#include <iterator>
#include <limits>
#include <unsupported/Eigen/SpecialFunctions>

#include "gradflow/ops/common/log_gamma.h"

namespace gradflow::special_functions {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kPi = 3.14159265358979323846;
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

// Zeta. REQUIRES: x > 1 and q > 0
double ZetaOfPositive(double x, double q) { return Eigen::numext::zeta(x, q); }

}  // namespace

// ---- Gamma functions ----

double Digamma(double x) { return Eigen::numext::digamma(x); }

double Zeta(double x, double q) {
  if (std::isnan(x) || std::isnan(q) || x < 1) return kNan;
  if (x == 1) return kInfinity;
  if (std::isinf(q)) return q > 0 ? 0 : kNan;
  if (q > 0) return ZetaOfPositive(x, q);
  const double below = std::floor(q);
  if (q == below) return kInfinity;
  // The sum has powers of negative numbers, which are real only for integers x.
  if (x != std::floor(x)) return kNan;
  // The magnitudes of the negative bases are f, f + 1, ..., -q. The sum of their powers is a
  // difference of two zeta functions, because adding up -q terms has no bound on time. The positive
  // bases start at 1 - f.
  const double f = -q - std::floor(-q);
  const double negative = ZetaOfPositive(x, f) - ZetaOfPositive(x, 1 - q);
  const bool is_odd = std::fmod(x, 2) != 0;
  return ZetaOfPositive(x, 1 - f) + (is_odd ? -negative : negative);
}

double Polygamma(double n, double x) {
  if (std::isnan(n) || n < 0 || n != std::floor(n)) return kNan;
  if (n == 0) return Digamma(x);
  const double magnitude = std::exp(LogGamma(n + 1)) * Zeta(n + 1, x);
  return std::fmod(n, 2) != 0 ? magnitude : -magnitude;
}

namespace {

// For large a, Eigen's series and continued fraction for the incomplete gamma functions stop before
// they converge.
constexpr double kLargeGamma = 2e4;

// Returns Q(a, x), or P(a, x) if `lower`, for large a. Uses Temme's uniform asymptotic expansion
// (A. R. DiDonato and A. H. Morris, 1986, equation 18).
double IgammaOfLarge(double a, double x, bool lower) {
  const double mu = (x - a) / a;
  // mu - log(1 + mu), computed with a series if the two terms cancel.
  double excess = 0;
  if (std::abs(mu) < 0.1) {
    double power = mu;
    for (int k = 2; k < 20; ++k) {
      power *= -mu;
      excess -= power / k;
    }
  } else {
    excess = mu - std::log1p(mu);
  }
  const double eta = std::copysign(std::sqrt(2 * excess), mu);
  const double tail = std::erfc((lower ? -eta : eta) * std::sqrt(a / 2)) / 2;
  const double scale = std::exp(-a * excess) / std::sqrt(2 * kPi * a);
  if (scale == 0) return tail;
  // Taylor series of the first two terms. Further coefficients are negligible: if `scale` is not
  // zero, |eta| is less than 0.3.
  constexpr double kFirst[] = {-1.0 / 3,    1.0 / 12,           -2.0 / 135,
                               1.0 / 864,   1.0 / 2835,         -139.0 / 777600,
                               1.0 / 25515, -571.0 / 261273600, -281.0 / 151559100};
  constexpr double kSecond[] = {-1.0 / 540, -1.0 / 288, 1.0 / 378};
  const auto polynomial = [eta](const double* begin, const double* end) {
    double value = 0;
    while (end != begin) value = value * eta + *--end;
    return value;
  };
  const double rest = scale * (polynomial(std::begin(kFirst), std::end(kFirst)) +
                               polynomial(std::begin(kSecond), std::end(kSecond)) / a);
  return lower ? tail - rest : tail + rest;
}

// Returns true if the expansion applies. It requires finite numbers.
bool IsLargeGamma(double a, double x) {
  return a > kLargeGamma && x > 0 && std::isfinite(a / x) && std::isfinite(x / a);
}

}  // namespace

double Igamma(double a, double x) {
  return IsLargeGamma(a, x) ? IgammaOfLarge(a, x, true) : Eigen::numext::igamma(a, x);
}

double Igammac(double a, double x) {
  return IsLargeGamma(a, x) ? IgammaOfLarge(a, x, false) : Eigen::numext::igammac(a, x);
}

double IgammaGradA(double a, double x) { return Eigen::numext::igamma_der_a(a, x); }

double GammaSampleGradAlpha(double alpha, double sample) {
  return Eigen::numext::gamma_sample_der_alpha(alpha, sample);
}

double Betainc(double a, double b, double x) {
  if (!(a > 0) || !(b > 0) || std::isinf(a) || std::isinf(b) || !(x >= 0) || x > 1) return kNan;
  return Eigen::numext::betainc(a, b, x);
}

// ---- Normal distribution ----

double Ndtri(double p) {
  if (!(p >= 0 && p <= 1)) return kNan;
  if (p == 0) return -kInfinity;
  return p == 1 ? kInfinity : Eigen::numext::ndtri(p);
}

double Erfinv(double x) {
  if (!(x >= -1 && x <= 1)) return kNan;
  const double magnitude = std::abs(x);
  if (magnitude == 1) return std::copysign(kInfinity, x);
  constexpr double kHalfRootPi = 0.88622692545275801365;
  if (magnitude < 1e-8) return x * kHalfRootPi;
  // 1 - |x| is exact if it is small.
  const double rest = 1 - magnitude;
  double y = -Ndtri(rest / 2) * 0.70710678118654752440;
  // Halley's method, with the form of the difference that does not cancel.
  for (int i = 0; i < 2; ++i) {
    const double difference = magnitude < 0.5 ? std::erf(y) - magnitude : rest - std::erfc(y);
    const double step = difference * kHalfRootPi * std::exp(y * y);
    y -= step / (1 + y * step);
  }
  return std::copysign(y, x);
}

// ---- Integrals ----

double Dawsn(double x) {
  const double a = std::abs(x);
  if (a < 0.25) {
    // The Taylor series.
    const double square = x * x;
    double term = x;
    double sum = x;
    for (int k = 1; k < 20; ++k) {
      term *= -2 * square / (2 * k + 1);
      sum += term;
    }
    return sum;
  }
  if (a > 1e8) return 0.5 / x;
  // The trapezoidal rule for an integral whose value is D(x) (G. B. Rybicki, 1989): the sum of
  // e^-(x - n h)^2 / n over odd n, divided by sqrt(pi). Its error is e^-(pi / (2 h))^2.
  constexpr double kStep = 0.25;
  constexpr int kTerms = 13;
  // The even grid point nearest to x, and the distance of x from it.
  const double nearest = 2 * std::nearbyint(a / (2 * kStep));
  const double rest = a - nearest * kStep;
  double sum = 0;
  for (int k = -2 * kTerms + 1; k < 2 * kTerms; k += 2) {
    const double distance = rest - k * kStep;
    sum += std::exp(-distance * distance) / (nearest + k);
  }
  return std::copysign(sum * 0.56418958354775628695, x);
}

double Expint(double x) {
  if (!(x >= 0) || std::isinf(x)) return kNan;
  if (x == 0) return -kInfinity;
  // The zero of the function as the sum of two doubles.
  constexpr double kZero = 0.37250741078136663446;
  constexpr double kZeroRest = 1.3140183414386028e-17;
  const double distance = (x - kZero) - kZeroRest;
  if (std::abs(distance) < 0.15) {
    // log(x / zero) plus the sum of (x^k - zero^k) / (k k!), which has the factor `distance`.
    double quotient = 0;
    double powers = 1;
    double zero_power = 1;
    double factorial = 1;
    for (int k = 1; k < 20; ++k) {
      factorial *= k;
      quotient += powers / (k * factorial);
      zero_power *= kZero;
      powers = powers * x + zero_power;
    }
    return std::log1p(distance / kZero) + distance * quotient;
  }
  if (x <= 40) {
    constexpr double kEulerGamma = 0.57721566490153286061;
    double sum = 0;
    double term = 1;
    for (int k = 1; k < 200; ++k) {
      term *= x / k;
      sum += term / k;
      if (term < kEpsilon * sum * k) break;
    }
    return kEulerGamma + std::log(x) + sum;
  }
  // The asymptotic series. Its smallest term, which bounds the error, is about e^-x times the sum.
  double sum = 1;
  double term = 1;
  for (int k = 1; k < 60; ++k) {
    const double next = term * k / x;
    if (next > term || next < kEpsilon) break;
    term = next;
    sum += term;
  }
  // e^x alone may overflow.
  const double root = std::exp(x / 2);
  return root / x * sum * root;
}

namespace {

// Returns C(x) + i S(x). REQUIRES: x >= 0
std::complex<double> Fresnel(double x) {
  using Complex = std::complex<double>;
  if (x > 1e8) return {0.5, 0.5};
  const double square = x * x;
  const double phase = kPi / 2 * square;
  if (x < 1.6) {
    // Both Taylor series as one complex series: the terms i^n phase^n / (n! (2 n + 1)), times x.
    double power = x;
    double cosine = 0;
    double sine = 0;
    for (int n = 0; n < 40; ++n) {
      const double term = power / (2 * n + 1);
      (n % 2 == 0 ? cosine : sine) += n % 4 < 2 ? term : -term;
      power *= phase / (n + 1);
    }
    return {cosine, sine};
  }
  // The continued fraction of the complementary error function at (1 - i) sqrt(pi) x / 2, with
  // Lentz's method: 1 / (b0 - 1*2 / (b1 - 3*4 / (b2 - ...))), where bn = 4 n + 1 - i pi x^2.
  Complex b(1, -kPi * square);
  Complex c(1e300, 0);
  Complex d = 1.0 / b;
  Complex fraction = d;
  for (int n = 1; n < 300; ++n) {
    const double a = -(2.0 * n - 1) * (2.0 * n);
    b += 4;
    d = 1.0 / (a * d + b);
    c = b + a / c;
    const Complex factor = c * d;
    fraction *= factor;
    if (std::abs(factor.real() - 1) + std::abs(factor.imag()) < kEpsilon) break;
  }
  // The phase modulo 2 pi, with x^2 as the sum of two doubles.
  const double rest = std::fma(x, x, -square);
  const double reduced = kPi / 2 * (std::fmod(square, 4) + rest);
  const Complex turn(std::cos(reduced), std::sin(reduced));
  return Complex(0.5, 0.5) * (1.0 - turn * (Complex(x, -x) * fraction));
}

}  // namespace

double FresnelCos(double x) {
  return std::isnan(x) ? x : std::copysign(Fresnel(std::abs(x)).real(), x);
}

double FresnelSin(double x) {
  return std::isnan(x) ? x : std::copysign(Fresnel(std::abs(x)).imag(), x);
}

double Spence(double x) {
  constexpr double kPiSquaredBySix = 1.64493406684822643647;
  if (!(x >= 0) || std::isinf(x)) return kNan;
  if (x == 0) return kPiSquaredBySix;
  if (x > 2) {
    const double log = std::log(x);
    return -log * log / 2 - Spence(1 / x);
  }
  if (x < 0.5) return kPiSquaredBySix - std::log(x) * std::log1p(-x) - Spence(1 - x);
  // The series in u = -log(x) for |u| <= log(2): u - u^2 / 4 + the sum of B(2k) u^(2k+1) / (2k+1)!.
  constexpr double kCoefficients[] = {1.0 / 36,
                                      -1.0 / 3600,
                                      1.0 / 211680,
                                      -1.0 / 10886400,
                                      1.0 / 526901760,
                                      -691.0 / 16999766784000,
                                      1.0 / 1120863744000,
                                      -3617.0 / 181400588328960000};
  const double u = -std::log(x);
  const double square = u * u;
  double sum = 0;
  double power = u;
  for (const double coefficient : kCoefficients) {
    power *= square;
    sum += coefficient * power;
  }
  return u - square / 4 + sum;
}

// ---- Bessel functions ----

double BesselI0(double x) { return Eigen::numext::bessel_i0(x); }
double BesselI1(double x) { return Eigen::numext::bessel_i1(x); }
double BesselI0e(double x) { return Eigen::numext::bessel_i0e(x); }
double BesselI1e(double x) { return Eigen::numext::bessel_i1e(x); }
double BesselK0(double x) { return Eigen::numext::bessel_k0(x); }
double BesselK1(double x) { return Eigen::numext::bessel_k1(x); }
double BesselK0e(double x) { return Eigen::numext::bessel_k0e(x); }
double BesselK1e(double x) { return Eigen::numext::bessel_k1e(x); }

// The functions of the C library are accurate near their zeros. Infinite arguments are outside of
// the domain, as in TensorFlow.
double BesselJ0(double x) { return std::isinf(x) ? kNan : j0(x); }
double BesselJ1(double x) { return std::isinf(x) ? kNan : j1(x); }
double BesselY0(double x) { return x <= 0 ? -kInfinity : std::isinf(x) ? kNan : y0(x); }
double BesselY1(double x) { return x <= 0 ? -kInfinity : std::isinf(x) ? kNan : y1(x); }

}  // namespace gradflow::special_functions
