// Special functions of doubles. They return NaN for NaN and outside of their domain, and take a
// bounded number of steps for all arguments. Unless stated otherwise, the error is about 1e-14:
// relative, or absolute near zeros.
#ifndef GRADFLOW_OPS_MATH_SPECIAL_FUNCTIONS_H_
#define GRADFLOW_OPS_MATH_SPECIAL_FUNCTIONS_H_

namespace gradflow::special_functions {

// ---- Gamma functions ----

// The logarithmic derivative of Gamma.
double Digamma(double x);
// The derivative of Digamma of order n, which must be an integer. Order 0 is Digamma.
double Polygamma(double n, double x);
// The sum of (k + q)^-x over k = 0, 1, ...; infinity for x = 1 and for q = 0, -1, ...
double Zeta(double x, double q);
// The regularized incomplete gamma functions P(a, x) and Q(a, x) = 1 - P(a, x). The error is at
// most 1e-10.
double Igamma(double a, double x);
double Igammac(double a, double x);
// The derivative of Igamma with respect to a. The error is at most 1e-11 for a up to 1000.
double IgammaGradA(double a, double x);
// The derivative with respect to alpha of a sample from a gamma distribution, at a fixed quantile.
double GammaSampleGradAlpha(double alpha, double sample);
// The regularized incomplete beta function. The error is at most 1e-11.
double Betainc(double a, double b, double x);

// ---- Normal distribution ----

// The inverse of the cumulative distribution function.
double Ndtri(double p);
double Erfinv(double x);

// ---- Integrals ----

// e^(-x^2) times the integral of e^(t^2) from 0 to x.
double Dawsn(double x);
// The integral of e^t / t from -infinity to x. REQUIRES: x >= 0
double Expint(double x);
// The integrals of cos(pi t^2 / 2) and sin(pi t^2 / 2) from 0 to x.
double FresnelCos(double x);
double FresnelSin(double x);
// The integral of log(t) / (1 - t) from 1 to x.
double Spence(double x);

// ---- Bessel functions: modified (I, K, and scaled by e^-|x| and e^x) and others ----

double BesselI0(double x);
double BesselI1(double x);
double BesselI0e(double x);
double BesselI1e(double x);
double BesselK0(double x);
double BesselK1(double x);
double BesselK0e(double x);
double BesselK1e(double x);
double BesselJ0(double x);
double BesselJ1(double x);
double BesselY0(double x);
double BesselY1(double x);

}  // namespace gradflow::special_functions

#endif  // GRADFLOW_OPS_MATH_SPECIAL_FUNCTIONS_H_
