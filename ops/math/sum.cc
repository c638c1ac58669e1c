// Sum, Mean and EuclideanNorm.
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "gradflow/core/registry.h"
#include "gradflow/ops/common/data_types.h"
#include "gradflow/ops/math/reducers.h"
#include "gradflow/ops/math/reduction.h"
#include "gradflow/ops/math/row_reduction_simd.h"
#include "gradflow/ops/math/sum_policy.h"
#include "gradflow/ops/quant/integer_mean.h"

namespace gradflow::sum {
namespace {

// Returns fn(TypeTag<Part>(), parts), where Part is the type of an element's parts, which are
// summed independently.
template <typename F>
Reducer ForParts(DataType dtype, const F& fn) {
  Reducer reducer = {};
  if (dtype == DT_COMPLEX64) return fn(TypeTag<float>(), 2);
  if (dtype == DT_COMPLEX128) return fn(TypeTag<double>(), 2);
  DispatchType(RealTypes(), dtype, [&](auto tag) { reducer = fn(tag, 1); });
  return reducer;
}

// The Reducer of sums of parts of type T. Contiguous floats are added with vectors.
template <typename T>
Reducer MakeSum(int parts) {
  using Policy = SumPolicy<T>;
  if constexpr (std::is_same_v<T, float>) {
    return MakeReducer<Policy, SumRows>(parts);
  } else {
    return MakeReducer<Policy>(parts);
  }
}

template <typename T, typename Wide>
T DividedBy(Wide sum, int64_t count) {
  if constexpr (std::is_integral_v<T>) {
    return count == 0 ? T(0) : static_cast<T>(sum / static_cast<Wide>(count));
  } else {
    return static_cast<T>(sum / count);
  }
}

// The square root of the sum of squares.
template <typename T>
struct RealNorm {
  using Element = T;
  using Accumulator = double;
  static Accumulator Nothing() { return 0; }
  static void Add(T x, double* a) {
    const double value = static_cast<double>(x);
    *a += value * value;
  }
  static void Merge(double from, double* a) { *a += from; }
  static T Finish(double a, int64_t) {
    const double norm = std::sqrt(a);
    if constexpr (std::is_integral_v<T>) {
      // A cast is undefined for values of 2^digits and above.
      const double limit = std::ldexp(1.0, std::numeric_limits<T>::digits);
      if (norm >= limit) return std::numeric_limits<T>::max();
    }
    return static_cast<T>(norm);
  }
};

struct DoubleNorm : DoubleSum {
  static void Add(double x, Accumulator* a) { DoubleSum::Add(x * x, a); }
  static void Merge(const Accumulator& from, Accumulator* a) { DoubleSum::Merge(from, a); }
  static double Finish(const Accumulator& a, int64_t) { return std::sqrt(Wide(a)); }
};

struct Complex64Norm : RealNorm<float> {
  using Element = complex64;
  static void Add(complex64 x, double* a) {
    RealNorm<float>::Add(x.real(), a);
    RealNorm<float>::Add(x.imag(), a);
  }
  static complex64 Finish(double a, int64_t) { return static_cast<float>(std::sqrt(a)); }
};

struct Complex128Norm : DoubleNorm {
  using Element = complex128;
  static void Add(complex128 x, Accumulator* a) {
    DoubleNorm::Add(x.real(), a);
    DoubleNorm::Add(x.imag(), a);
  }
  static complex128 Finish(const Accumulator& a, int64_t) { return DoubleNorm::Finish(a, 1); }
};

template <typename T>
struct NormPolicy {
  using type = RealNorm<T>;
};
template <>
struct NormPolicy<double> {
  using type = DoubleNorm;
};
template <>
struct NormPolicy<complex64> {
  using type = Complex64Norm;
};
template <>
struct NormPolicy<complex128> {
  using type = Complex128Norm;
};

Reducer NormReducer(DataType dtype) {
  Reducer reducer = {};
  DispatchType(NumberTypes(), dtype, [&](auto tag) {
    reducer = MakeReducer<typename NormPolicy<typename decltype(tag)::type>::type>();
  });
  reducer.keeps_one = false;
  return reducer;
}

class MeanKernel final : public ReductionKernel<MeanReducer>, public IntegerFormKernel {
 public:
  absl::StatusOr<std::shared_ptr<const OpKernel>> MakeIntegerForm(const Args& args) const override {
    return MakeIntegerMean(args, keep_dims());
  }
};

}  // namespace

void Register(Registry& registry) {
  RegisterReductionOp(registry, "Sum", "ReduceSum", "numbertype",
                      R"(Computes the sum of elements along axes of a tensor.

Floating-point sums are within a few units in the last place of the exact sum. The order of
summation depends on the shape alone. Integers wrap around. The sum of no elements is 0.

input: A tensor.
reduction_indices: The axes to reduce: a scalar or a vector of distinct axes, each in
  [-rank(input), rank(input)). If empty, the output equals the input.
output: The sums.
keep_dims: If true, retains reduced dimensions with size 1.
T: The type of `input` and `output`.
Tidx: The type of the axes.)");
  RegisterReductionOp(registry, "Mean", "ReduceMean", "numbertype",
                      R"(Computes the mean of elements along axes of a tensor.

The sum, computed as by Sum, is divided by the number of elements and then rounded to the type.
Integers are summed in 64 bits, and the quotient is rounded towards 0. The mean of no elements is
NaN, or 0 for integers.

input: A tensor.
reduction_indices: The axes to reduce: a scalar or a vector of distinct axes, each in
  [-rank(input), rank(input)). If empty, the output equals the input.
output: The means.
keep_dims: If true, retains reduced dimensions with size 1.
T: The type of `input` and `output`.
Tidx: The type of the axes.)");
  RegisterReductionOp(registry, "EuclideanNorm", "", "numbertype",
                      R"(Computes the Euclidean norm of elements along axes of a tensor.

The norm is the square root of the sum of squared magnitudes, accumulated in double. Norms of
integers are rounded towards 0 and clamped to the type. Norms of complex numbers have an imaginary
part of 0. The norm of no elements is 0.

input: A tensor.
reduction_indices: The axes to reduce: a scalar or a vector of distinct axes, each in
  [-rank(input), rank(input)). If empty, the output is the magnitude of each element.
output: The norms.
keep_dims: If true, retains reduced dimensions with size 1.
T: The type of `input` and `output`.
Tidx: The type of the axes.)");
  const DataTypeVector types = DataTypesOf(NumberTypes());
  registry.Kernel("Sum", MakeKernel<ReductionKernel<SumReducer>>).Types("T", types);
  registry.Kernel("Mean", MakeKernel<MeanKernel>).Types("T", types);
  registry.Kernel("EuclideanNorm", MakeKernel<ReductionKernel<NormReducer>>).Types("T", types);
}

}  // namespace gradflow::sum

namespace gradflow {

Reducer SumReducer(DataType dtype) {
  return sum::ForParts(
      dtype, [](auto tag, int parts) { return sum::MakeSum<typename decltype(tag)::type>(parts); });
}

Reducer MeanReducer(DataType dtype) {
  return sum::ForParts(dtype, [](auto tag, int parts) {
    using Part = typename decltype(tag)::type;
    using Policy = SumPolicy<Part>;
    Reducer reducer = sum::MakeSum<Part>(parts);
    reducer.finish = [](const void* accumulators, int64_t count, int64_t n, void* out) {
      const auto* a = static_cast<const typename Policy::Accumulator*>(accumulators);
      for (int64_t j = 0; j < n; ++j) {
        static_cast<Part*>(out)[j] = sum::DividedBy<Part>(Policy::Wide(a[j]), count);
      }
    };
    return reducer;
  });
}

Reducer SqrtNReducer(DataType dtype) {
  Reducer result = {};
  DispatchType(FloatingTypes(), dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Policy = SumPolicy<T>;
    result = MakeReducer<Policy>();
    result.finish = [](const void* accumulators, int64_t count, int64_t n, void* out) {
      const auto* a = static_cast<const typename Policy::Accumulator*>(accumulators);
      const double root = std::sqrt(static_cast<double>(count));
      for (int64_t j = 0; j < n; ++j) {
        static_cast<T*>(out)[j] = static_cast<T>(Policy::Wide(a[j]) / root);
      }
    };
  });
  return result;
}

}  // namespace gradflow
