#include "gradflow/testing/tensors.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <set>

#include "absl/strings/str_cat.h"

namespace gradflow {
namespace testing {
namespace {

// Returns the distribution that kDefault stands for.
Distribution DefaultDistribution(DataType dtype) {
  Distribution distribution = Uniform(-1, 1);
  DispatchType(IntegerTypes(), dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    distribution = Uniform(std::is_signed_v<T> ? -10 : 0, 10);
  });
  return distribution;
}

// Rounds to nearest and clamps to the range of T. Returns the smallest T for NaN.
template <typename T>
T NearestInteger(double value) {
  using Limits = std::numeric_limits<T>;
  const double rounded = std::round(value);
  // Doubles can represent 2^digits, but perhaps not the maximum itself.
  if (rounded >= std::ldexp(1.0, Limits::digits)) return Limits::max();
  return rounded > static_cast<double>(Limits::min()) ? static_cast<T>(rounded) : Limits::min();
}

}  // namespace

Tensor RandomTensor(DataType dtype, const TensorShape& shape, const Distribution& distribution,
                    uint32_t seed) {
  const bool is_default = distribution.kind == Distribution::Kind::kDefault;
  const Distribution drawn = is_default ? DefaultDistribution(dtype) : distribution;
  Tensor tensor(dtype, shape);
  // mt19937 is portable, unlike the distributions of the standard library.
  std::mt19937 generator(seed);
  const auto unit = [&] { return generator() / 4294967296.0; };
  const auto next = [&] {
    if (drawn.kind == Distribution::Kind::kUniform) {
      return drawn.a + (drawn.b - drawn.a) * unit();
    }
    // Box-Muller transform. The argument of the logarithm is in (0, 1].
    constexpr double kTwoPi = 6.283185307179586;
    const double radius = std::sqrt(-2 * std::log(1 - unit()));
    return drawn.a + drawn.b * radius * std::cos(kTwoPi * unit());
  };
  using Types = ConcatTypes<NumberTypes, TypeList<bool>>::type;
  const bool numeric = DispatchType(Types(), dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (T& element : tensor.flat<T>()) {
      if constexpr (kIsComplex<T>) {
        const double real = next();
        element = T(real, next());
      } else if constexpr (std::is_same_v<T, bool>) {
        element = generator() % 2 == 1;
      } else if constexpr (std::is_integral_v<T>) {
        element = NearestInteger<T>(next());
      } else {
        element = static_cast<T>(next());
      }
    }
  });
  EXPECT_TRUE(numeric) << "RandomTensor of " << DataTypeString(dtype);
  return tensor;
}

Tensor DistinctTensor(DataType dtype, const TensorShape& shape) {
  Tensor tensor(dtype, shape);
  if (dtype == DT_STRING) {
    int64_t i = 0;
    for (tstring& element : tensor.flat<tstring>()) {
      element = absl::StrCat("an element that lives on the heap: ", i++);
    }
    return tensor;
  }
  static const auto* tiny = new std::set<DataType>{DT_BOOL, DT_INT4, DT_UINT4, DT_INT2, DT_UINT2};
  const size_t size = DataTypeSize(dtype);
  for (int64_t i = 0; i < tensor.NumElements(); ++i) {
    const int64_t value = tiny->count(dtype) > 0 ? i % 3 % 2 : i + 1;
    const int64_t words[2] = {value, ~value};
    std::memcpy(static_cast<char*>(tensor.raw_data()) + i * size, words, size);
  }
  return tensor;
}

const DataTypeVector& TensorTypes() {
  static const auto* types = [] {
    auto* result = new DataTypeVector;
    for (const DataType dtype : AllDataTypes()) {
      if (DataTypeIsPlainBytes(dtype) || dtype == DT_STRING) result->push_back(dtype);
    }
    return result;
  }();
  return *types;
}

}  // namespace testing
}  // namespace gradflow
