// Compares elementary functions with long double, over the whole range of their type and near the
// numbers where they are hard to compute.
#include "gradflow/ops/common/elementary_simd.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "gradflow/ops/common/simd.h"
#include "tests/ops/common/elementary_cases.h"

namespace gradflow {
namespace {

using Long = long double;

using ::gradflow::testing::AllowedUlps;
using ::gradflow::testing::ErrorInUlps;
const auto& kElementaryCases = ::gradflow::testing::kElementaryCases<Long>;

// Returns numbers with random bits, numbers of moderate size, and special numbers.
template <typename T>
std::vector<T> HardNumbers() {
  std::vector<T> numbers;
  std::mt19937_64 random(1);
  for (int i = 0; i < 8000; ++i) {
    const uint64_t bits = random();
    T number;
    std::memcpy(&number, &bits, sizeof(number));
    numbers.push_back(number);
    const auto uniform = static_cast<T>(static_cast<double>(static_cast<int64_t>(bits)) * 0x1p-63);
    numbers.push_back(std::ldexp(uniform, static_cast<int>(random() % 15) - 4));
    // A number near a multiple of pi / 2.
    numbers.push_back(
        static_cast<T>(static_cast<Long>(random() % 100000) * 1.57079632679489661923L));
  }
  const T inf = std::numeric_limits<T>::infinity();
  for (const double value :
       {0.0,   0.5,   1.0,   2.0,   3.0,   88.0,   88.5,  88.72,  88.8,  89.0,  89.3,
        89.41, 89.5,  709.0, 709.5, 709.7, 709.78, 709.8, 709.9,  710.4, 710.5, 711.0,
        1e18,  1e19,  2e19,  1e28,  1e29,  1e36,   1e37,  1e38,   3e38,  1e150, 1e154,
        1e155, 1e202, 1e216, 1e304, 1e306, 1e307,  1e308, 1.7e308}) {
    for (const double sign : {-1, 1}) {
      const auto number = static_cast<T>(sign * value);
      numbers.push_back(number);
      numbers.push_back(std::nextafter(number, inf));
      numbers.push_back(std::nextafter(number, -inf));
    }
  }
  numbers.push_back(inf);
  numbers.push_back(-inf);
  numbers.push_back(std::numeric_limits<T>::quiet_NaN());
  return numbers;
}

template <typename T>
void ExpectAccurate() {
  const std::vector<T> x = HardNumbers<T>();
  std::vector<T> y(x.size());
  for (const auto& c : kElementaryCases) {
    ApplyElementary(c.function, x.data(), y.data(), static_cast<int64_t>(x.size()));
    int wrong = 0;
    for (size_t i = 0; i < x.size() && wrong < 3; ++i) {
      const Long exact = c.reference(Long{x[i]});
      const double error = ErrorInUlps(y[i], exact);
      if (error <= AllowedUlps<T>(c, exact)) continue;
      ++wrong;
      ADD_FAILURE() << c.name << "(" << x[i] << ") is " << y[i] << ", expected " << exact
                    << ", off by " << error << " ulps";
    }
  }
}

TEST(Elementary, FloatsAreAccurate) { ExpectAccurate<float>(); }

TEST(Elementary, DoublesAreAccurate) { ExpectAccurate<double>(); }

// Sets the instruction set, and restores it at the end.
class WithTarget {
 public:
  explicit WithTarget(const std::string& name) { EXPECT_TRUE(SetSimdTarget(name)); }
  ~WithTarget() { SetSimdTarget(""); }
};

template <typename T>
void ExpectSameBits(const T* a, const T* b, size_t n, const std::string& what) {
  for (size_t i = 0; i < n; ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    ASSERT_EQ(std::memcmp(&a[i], &b[i], sizeof(T)), 0)
        << what << ", element " << i << ": " << a[i] << ", " << b[i];
  }
}

template <typename T>
void ExpectSameBitsEverywhere() {
  const std::vector<T> x = HardNumbers<T>();
  std::vector<T> reversed(x.rbegin(), x.rend());
  const auto n = static_cast<int64_t>(x.size());
  std::vector<T> expected(x.size());
  std::vector<T> y(x.size());
  for (const auto& c : kElementaryCases) {
    {
      const WithTarget scalar("scalar");
      ApplyElementary(c.function, x.data(), expected.data(), n);
    }
    for (const std::string& target : SimdTargets()) {
      const WithTarget with(target);
      ApplyElementary(c.function, x.data(), y.data(), n);
      ExpectSameBits(y.data(), expected.data(), x.size(), c.name + (" on " + target));
      // With other neighbors, in place, and in arrays that do not fill a vector.
      y = reversed;
      ApplyElementary(c.function, y.data(), y.data(), n);
      std::reverse(y.begin(), y.end());
      ExpectSameBits(y.data(), expected.data(), x.size(), c.name + (" reversed on " + target));
      for (int64_t count = 1; count < 20; ++count) {
        ApplyElementary(c.function, x.data() + 3, y.data(), count);
        ExpectSameBits(y.data(), expected.data() + 3, count, c.name + (" in short on " + target));
      }
    }
  }
}

TEST(Elementary, FloatsHaveTheSameBitsOnEveryTarget) { ExpectSameBitsEverywhere<float>(); }

TEST(Elementary, DoublesHaveTheSameBitsOnEveryTarget) { ExpectSameBitsEverywhere<double>(); }

// Vectors of ordinary numbers take a shorter path than vectors with a special number.
TEST(Elementary, OrdinaryNumbersHaveTheSameBitsNextToSpecialOnes) {
  std::mt19937 random(2);
  std::uniform_real_distribution<float> exponents(-86, 86);
  std::vector<float> x(4096);
  std::vector<float> positive(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = exponents(random);
    positive[i] = std::exp(exponents(random));
  }
  for (const Elementary f : {Elementary::kExp, Elementary::kLog}) {
    const auto n = static_cast<int64_t>(x.size());
    std::vector<float> numbers = f == Elementary::kExp ? x : positive;
    std::vector<float> expected(x.size());
    ApplyElementary(f, numbers.data(), expected.data(), n);
    for (size_t i = 0; i < x.size(); ++i) {
      const Long exact =
          f == Elementary::kExp ? std::exp(Long{numbers[i]}) : std::log(Long{numbers[i]});
      ASSERT_LE(ErrorInUlps(expected[i], exact), f == Elementary::kExp ? 0.81 : 0.96) << numbers[i];
    }
    std::vector<float> y(x.size());
    for (const std::string& target : SimdTargets()) {
      const WithTarget with(target);
      ApplyElementary(f, numbers.data(), y.data(), n);
      ExpectSameBits(y.data(), expected.data(), y.size(), target);
      std::vector<float> mixed = numbers;
      for (size_t i = 3; i < mixed.size(); i += 8)
        mixed[i] = -std::numeric_limits<float>::infinity();
      ApplyElementary(f, mixed.data(), y.data(), n);
      for (size_t i = 3; i < mixed.size(); i += 8) {
        EXPECT_TRUE(f == Elementary::kExp ? y[i] == 0 : std::isnan(y[i])) << y[i];
        y[i] = expected[i];
      }
      ExpectSameBits(y.data(), expected.data(), y.size(), target + " beside infinity");
    }
  }
}

template <typename T>
void ExpectAccuratePairs() {
  std::vector<T> x = HardNumbers<T>();
  std::vector<T> y(x.rbegin(), x.rend());
  std::rotate(y.begin(), y.begin() + 7, y.end());
  const auto n = static_cast<int64_t>(x.size());
  std::vector<T> z(x.size());
  const std::pair<Elementary2, Long (*)(Long, Long)> cases[] = {{Elementary2::kAtan2, std::atan2},
                                                                {Elementary2::kPow, std::pow}};
  for (const auto& [function, reference] : cases) {
    ApplyElementary(function, x.data(), y.data(), z.data(), n);
    const std::vector<T> expected = z;
    int wrong = 0;
    for (int64_t i = 0; i < n && wrong < 3; ++i) {
      const Long exact = reference(Long{x[i]}, Long{y[i]});
      double allowed = std::abs(exact) < 16 * std::numeric_limits<T>::min() ? 2.01 : 1.01;
      if (std::is_same_v<T, float> && function == Elementary2::kAtan2) allowed += 1;
      if (ErrorInUlps(z[i], exact) <= allowed) continue;
      ++wrong;
      ADD_FAILURE() << static_cast<int>(function) << " of " << x[i] << " and " << y[i] << " is "
                    << z[i] << ", expected " << exact;
    }
    for (const std::string& target : SimdTargets()) {
      const WithTarget with(target);
      ApplyElementary(function, x.data(), y.data(), z.data(), n);
      ExpectSameBits(z.data(), expected.data(), z.size(), target);
      ApplyElementary(function, x.data() + 5, y.data() + 5, z.data(), 11);
      ExpectSameBits(z.data(), expected.data() + 5, 11, target);
    }
  }
}

TEST(Elementary, PairsAreAccurateOnEveryTarget) {
  ExpectAccuratePairs<float>();
  ExpectAccuratePairs<double>();
}

}  // namespace
}  // namespace gradflow
