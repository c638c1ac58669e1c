#include "gradflow/ops/math/fourier.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <utility>

#include "gradflow/core/mutex.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/clones.h"

// Vectors are only passed between functions that are inlined.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wpsabi"
#endif
#define GRADFLOW_FOURIER_INLINE inline __attribute__((always_inline))

namespace gradflow {
namespace {

constexpr int kLargestFactor = 13;

// Returns a * b. Skips the checks for infinities that std::complex makes.
GRADFLOW_FOURIER_INLINE complex128 Times(complex128 a, complex128 b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}
// Returns -i * a.
GRADFLOW_FOURIER_INLINE complex128 TimesMinusI(complex128 a) { return {a.imag(), -a.real()}; }
GRADFLOW_FOURIER_INLINE complex128 Conjugate(complex128 a) { return std::conj(a); }

// FourLines has the operations of a complex number, on each of its lines.
GRADFLOW_FOURIER_INLINE FourLines operator+(const FourLines& a, const FourLines& b) {
  return {a.real + b.real, a.imag + b.imag};
}
GRADFLOW_FOURIER_INLINE FourLines operator-(const FourLines& a, const FourLines& b) {
  return {a.real - b.real, a.imag - b.imag};
}
GRADFLOW_FOURIER_INLINE FourLines& operator+=(FourLines& a, const FourLines& b) {
  a = a + b;
  return a;
}
GRADFLOW_FOURIER_INLINE FourLines operator*(double a, const FourLines& b) {
  return {a * b.real, a * b.imag};
}
GRADFLOW_FOURIER_INLINE FourLines operator/(const FourLines& a, double b) {
  return {a.real / b, a.imag / b};
}
GRADFLOW_FOURIER_INLINE FourLines Times(const FourLines& a, complex128 b) {
  const double real = b.real();
  const double imag = b.imag();
  return {a.real * real - a.imag * imag, a.real * imag + a.imag * real};
}
GRADFLOW_FOURIER_INLINE FourLines TimesMinusI(const FourLines& a) { return {a.imag, -a.real}; }
GRADFLOW_FOURIER_INLINE FourLines Conjugate(const FourLines& a) { return {a.real, -a.imag}; }

// A number as the sum of two doubles. `low` is less than a unit in the last place of `high`. Not a
// long double, whose precision depends on the processor.
struct Wide {
  double high;
  double low;
};

// Returns a + b. REQUIRES: |a| >= |b|
inline Wide OrderedSum(double a, double b) {
  const double sum = a + b;
  return {sum, b - (sum - a)};
}
inline Wide ExactSum(double a, double b) {
  const double sum = a + b;
  const double second = sum - a;
  return {sum, (a - (sum - second)) + (b - second)};
}
// Splits a number into two parts. Products of such parts are exact.
inline Wide Split(double a) {
  const double scaled = a * (0x1p27 + 1);
  const double high = scaled - (scaled - a);
  return {high, a - high};
}
inline Wide ExactProduct(double a, double b) {
  const double product = a * b;
  const Wide x = Split(a);
  const Wide y = Split(b);
  return {product, ((x.high * y.high - product) + x.high * y.low + x.low * y.high) + x.low * y.low};
}
inline Wide operator-(Wide a) { return {-a.high, -a.low}; }
inline Wide operator+(Wide a, Wide b) {
  const Wide sum = ExactSum(a.high, b.high);
  return OrderedSum(sum.high, sum.low + (a.low + b.low));
}
inline Wide operator*(Wide a, Wide b) {
  const Wide product = ExactProduct(a.high, b.high);
  return OrderedSum(product.high, product.low + (a.high * b.low + a.low * b.high));
}
inline Wide operator/(Wide a, double b) {
  const double quotient = a.high / b;
  const Wide product = ExactProduct(quotient, b);
  return OrderedSum(quotient, ((a.high - product.high) - product.low + a.low) / b);
}

// exp(i * angle).
struct WideRoot {
  Wide cosine;
  Wide sine;
};
inline WideRoot operator*(const WideRoot& a, const WideRoot& b) {
  return {a.cosine * b.cosine + -(a.sine * b.sine), a.cosine * b.sine + a.sine * b.cosine};
}

// Returns exp(i * angle). REQUIRES: 0 <= angle <= 2
WideRoot RootOfAngle(Wide angle) {
  // Adds the terms angle^k / k! of the exponential series until they are negligible.
  WideRoot root = {{1, 0}, {0, 0}};
  Wide term = {1, 0};
  for (int k = 1; term.high > 0x1p-110 * angle.high; ++k) {
    term = term * angle / k;
    Wide& part = k % 2 == 0 ? root.cosine : root.sine;
    part = part + (k % 4 < 2 ? term : -term);
  }
  return root;
}

// Returns the roots of unity exp(-2 pi i k / n), rounded to double. Each root is a product of
// entries of two tables for angles up to an eighth of the circle. Multiples of a right angle are
// exact.
absl::StatusOr<Tensor> Roots(const RunContext& run, int64_t n) {
  GRADFLOW_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(*run.allocator, DT_COMPLEX128, {n}));
  complex128* roots = static_cast<complex128*>(tensor.raw_data());
  constexpr Wide kRightAngle = {0x1.921fb54442d18p0, 0x1.1a62633145c07p-54};
  int bits = 0;
  while ((int64_t{1} << 2 * bits) < n) ++bits;
  const int64_t size = int64_t{1} << bits;
  // Entry i of `low` is at i / n of a right angle, and entry i of `high` at i * size / n of a right
  // angle.
  std::vector<WideRoot> low(size, WideRoot{{1, 0}, {0, 0}});
  std::vector<WideRoot> high(n / 2 / size + 1, low[0]);
  const WideRoot unit = RootOfAngle(kRightAngle / static_cast<double>(n));
  for (int64_t i = 1; i < size; ++i) low[i] = low[i - 1] * unit;
  const WideRoot step = low[size - 1] * unit;
  for (size_t i = 1; i < high.size(); ++i) high[i] = high[i - 1] * step;
  const auto set_roots = [&](int64_t k) {
    // In units of a right angle, the angle is quadrant + rest / n.
    const int64_t quadrant = 4 * k / n;
    const int64_t rest = 4 * k - quadrant * n;
    const int64_t near = 2 * rest <= n ? rest : n - rest;
    const WideRoot value = high[near >> bits] * low[near & (size - 1)];
    double cosine = value.cosine.high;
    double sine = value.sine.high;
    if (near != rest) std::swap(cosine, sine);
    // The angle is at most two right angles.
    roots[k] = quadrant == 0   ? complex128(cosine, -sine)
               : quadrant == 1 ? complex128(-sine, -cosine)
                               : complex128(-cosine, sine);
    if (k > 0 && 2 * k < n) roots[n - k] = std::conj(roots[k]);
  };
  ParallelFor(run, n / 2 + 1, BlockSizeForCost(20), [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) set_roots(k);
  });
  return tensor;
}

// Returns the prime factors of *n up to kLargestFactor, with 4 for two twos, and divides *n by
// them.
std::vector<int> TakeFactors(int64_t* n) {
  std::vector<int> factors;
  for (const int factor : {4, 2, 3, 5, 7, 11, kLargestFactor}) {
    while (*n % factor == 0) {
      factors.push_back(factor);
      *n /= factor;
    }
  }
  return factors;
}

// Replaces r elements by their transform. r may be any number. `step` is the distance between the
// roots of unity of order r.
template <typename C>
GRADFLOW_FOURIER_INLINE void SmallTransform(int r, const complex128* roots, int64_t step, C* a) {
  switch (r) {
    case 2: {
      const C sum = a[0] + a[1];
      a[1] = a[0] - a[1];
      a[0] = sum;
      return;
    }
    case 4: {
      const C even = a[0] + a[2];
      const C odd = a[1] + a[3];
      const C even_difference = a[0] - a[2];
      const C odd_difference = TimesMinusI(a[1] - a[3]);
      a[0] = even + odd;
      a[1] = even_difference + odd_difference;
      a[2] = even - odd;
      a[3] = even_difference - odd_difference;
      return;
    }
    default: {
      // For odd r, elements form pairs with the same cosine and opposite sines.
      C sums[kLargestFactor / 2 + 1];
      C differences[kLargestFactor / 2 + 1];
      const int half = r / 2;
      C total = a[0];
      for (int t = 1; t <= half; ++t) {
        sums[t] = a[t] + a[r - t];
        differences[t] = TimesMinusI(a[t] - a[r - t]);
        total += sums[t];
      }
      C result[kLargestFactor];
      for (int u = 1; u <= half; ++u) {
        C even = a[0];
        C odd = {};
        for (int t = 1; t <= half; ++t) {
          const complex128 root = roots[t * u % r * step];
          even += root.real() * sums[t];
          odd += -root.imag() * differences[t];
        }
        result[u] = even + odd;
        result[r - u] = even - odd;
      }
      a[0] = total;
      std::copy(result + 1, result + r, a + 1);
      return;
    }
  }
}

// One factor r of Stockham's algorithm. x is viewed as [r, m, s], and y as [m, r, s]. `step` is the
// distance between the roots of unity of order r m.
template <int kFactor, typename C>
GRADFLOW_CLONES void Stage(const RunContext& run, int factor, int64_t m, int64_t s, int64_t step,
                           const complex128* roots, const C* x, C* y) {
  const int r = kFactor == 0 ? factor : kFactor;
  // The number of elements between checks for a stop of the run.
  constexpr int64_t kStep = int64_t{1} << 15;
  int64_t next_look = kStep;
  for (int64_t p = 0; p < m; ++p) {
    complex128 twiddles[kLargestFactor];
    for (int u = 1; u < r; ++u) twiddles[u] = roots[p * u * step];
    const C* from = x + p * s;
    C* to = y + p * r * s;
    for (int64_t begin = 0; begin < s; begin += kStep) {
      if (p * s + begin >= next_look) {
        if (run.ShouldStop()) return;
        next_look += kStep;
      }
      for (int64_t q = begin; q < std::min(s, begin + kStep); ++q) {
        C a[kLargestFactor];
        for (int t = 0; t < r; ++t) a[t] = from[t * m * s + q];
        SmallTransform(r, roots, m * step, a);
        to[q] = a[0];
        for (int u = 1; u < r; ++u) to[u * s + q] = Times(a[u], twiddles[u]);
      }
    }
  }
}

}  // namespace

absl::StatusOr<FourierPlan> FourierPlan::Make(const RunContext& run, int64_t n) {
  FourierPlan plan;
  plan.n_ = n;
  int64_t rest = n;
  plan.factors_ = TakeFactors(&rest);
  if (rest == 1) {
    GRADFLOW_ASSIGN_OR_RETURN(plan.roots_, Roots(run, n));
    return plan;
  }
  constexpr int64_t kLargest = int64_t{1} << 40;
  if (n > kLargest) {
    return errors::ResourceExhausted("a transform of length ", n, " needs too much memory");
  }
  int64_t m = 1;
  while (m < 2 * n - 1) m *= 2;
  GRADFLOW_ASSIGN_OR_RETURN(plan.roots_, Roots(run, 2 * n));
  GRADFLOW_ASSIGN_OR_RETURN(FourierPlan convolution, Make(run, m));
  GRADFLOW_ASSIGN_OR_RETURN(plan.chirp_, Tensor::Allocate(*run.allocator, DT_COMPLEX128, {m}));
  GRADFLOW_ASSIGN_OR_RETURN(Tensor scratch, Tensor::Allocate(*run.allocator, DT_COMPLEX128, {m}));
  // The conjugate factors, at positive and negative distances.
  complex128* chirp = static_cast<complex128*>(plan.chirp_.raw_data());
  std::fill_n(chirp, m, complex128(0));
  int64_t square = 0;
  for (int64_t k = 0; k < n; ++k) {
    chirp[k] = std::conj(plan.roots()[square]);
    if (k > 0) chirp[m - k] = chirp[k];
    // k^2 modulo 2 n.
    square = (square + 2 * k + 1) % (2 * n);
  }
  convolution.Forward(run, chirp, static_cast<complex128*>(scratch.raw_data()));
  plan.convolution_ = std::make_shared<const FourierPlan>(std::move(convolution));
  return plan;
}

double FourierPlan::Operations() const {
  if (convolution_ != nullptr) return 2 * convolution_->Operations() + 4 * static_cast<double>(n_);
  double sum = 1;
  for (const int factor : factors_) sum += factor;
  return sum * static_cast<double>(n_);
}

absl::StatusOr<std::shared_ptr<const FourierPlan>> FourierPlan::Cached(const RunContext& run,
                                                                       int64_t n) {
  constexpr int64_t kMostCached = 4096;
  constexpr size_t kPlans = 16;
  static Mutex mutex;
  // Most recently used last.
  static auto* const plans = new std::vector<std::shared_ptr<const FourierPlan>>();
  if (n <= kMostCached) {
    MutexLock lock(&mutex);
    const auto found = std::find_if(plans->begin(), plans->end(),
                                    [n](const auto& plan) { return plan->n() == n; });
    if (found != plans->end()) {
      std::rotate(found, found + 1, plans->end());
      return plans->back();
    }
  }
  // The constants of a cached plan outlive the run and its allocator.
  absl::StatusOr<FourierPlan> made = n <= kMostCached ? Make(RunContext(), n) : Make(run, n);
  if (!made.ok()) return made.status();
  auto plan = std::make_shared<const FourierPlan>(*std::move(made));
  if (n <= kMostCached) {
    MutexLock lock(&mutex);
    if (plans->size() == kPlans) plans->erase(plans->begin());
    plans->push_back(plan);
  }
  return plan;
}

template <typename C>
void FourierPlan::Forward(const RunContext& run, C* data, C* scratch) const {
  if (convolution_ != nullptr) return Convolve(run, data, scratch);
  C* x = data;
  C* y = scratch;
  int64_t m = n_;
  int64_t s = 1;
  for (const int factor : factors_) {
    m /= factor;
    switch (factor) {
      case 2:
        Stage<2>(run, 2, m, s, s, roots(), x, y);
        break;
      case 3:
        Stage<3>(run, 3, m, s, s, roots(), x, y);
        break;
      case 4:
        Stage<4>(run, 4, m, s, s, roots(), x, y);
        break;
      case 5:
        Stage<5>(run, 5, m, s, s, roots(), x, y);
        break;
      default:
        Stage<0>(run, factor, m, s, s, roots(), x, y);
        break;
    }
    std::swap(x, y);
    s *= factor;
  }
  if (x != data) std::copy_n(x, n_, data);
}

// j k = (j^2 + k^2 - (k - j)^2) / 2 turns the transform into a convolution with conjugate factors.
template <typename C>
void FourierPlan::Convolve(const RunContext& run, C* data, C* scratch) const {
  const int64_t m = convolution_->n_;
  C* a = scratch;
  int64_t square = 0;
  for (int64_t k = 0; k < n_; ++k) {
    a[k] = Times(data[k], roots()[square]);
    square = (square + 2 * k + 1) % (2 * n_);
  }
  std::fill(a + n_, a + m, C{});
  convolution_->Forward(run, a, scratch + m);
  const complex128* chirp = static_cast<const complex128*>(chirp_.raw_data());
  // The inverse transform is conj(Forward(conj(a))) / m.
  for (int64_t k = 0; k < m; ++k) a[k] = Conjugate(Times(a[k], chirp[k]));
  convolution_->Forward(run, a, scratch + m);
  const double scale = 1 / static_cast<double>(m);
  square = 0;
  for (int64_t k = 0; k < n_; ++k) {
    data[k] = Times(scale * Conjugate(a[k]), roots()[square]);
    square = (square + 2 * k + 1) % (2 * n_);
  }
}

template <typename C>
void FourierPlan::TransformAny(const RunContext& run, bool inverse, C* data, C* scratch) const {
  if (!inverse) return Forward(run, data, scratch);
  for (int64_t k = 0; k < n_; ++k) data[k] = Conjugate(data[k]);
  Forward(run, data, scratch);
  const double n = static_cast<double>(n_);
  for (int64_t k = 0; k < n_; ++k) data[k] = Conjugate(data[k]) / n;
}

void FourierPlan::Transform(const RunContext& run, bool inverse, complex128* data,
                            complex128* scratch) const {
  TransformAny(run, inverse, data, scratch);
}
void FourierPlan::Transform(const RunContext& run, bool inverse, FourLines* data,
                            FourLines* scratch) const {
  TransformAny(run, inverse, data, scratch);
}

}  // namespace gradflow
