// Sum and Mean.
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "gradflow/core/registry.h"
#include "gradflow/ops/math/reduction.h"

namespace gradflow::sum {
namespace {

// float, half and bfloat16 are summed in double. Results are exact up to the final rounding, unless
// nearly all of the sum cancels.
template <typename T>
struct NarrowSum {
  using Element = T;
  using Accumulator = double;
  static Accumulator Nothing() { return 0; }
  static void Add(T x, double* a) { *a += static_cast<float>(x); }
  static void Merge(double from, double* a) { *a += from; }
  static T Finish(double a, int64_t) { return static_cast<T>(a); }
  static T FinishMean(double a, int64_t count) { return static_cast<T>(a / count); }
};

// double is summed with compensation: the error of each addition is accumulated separately (Knuth's
// two-sum), which is as accurate as twice the precision.
struct DoubleSum {
  using Element = double;
  struct Accumulator {
    double sum;
    double error;
  };
  static Accumulator Nothing() { return {0, 0}; }
  static void Add(double x, Accumulator* a) {
    const double sum = a->sum + x;
    const double x_part = sum - a->sum;
    a->error += (a->sum - (sum - x_part)) + (x - x_part);
    a->sum = sum;
  }
  static void Merge(const Accumulator& from, Accumulator* a) {
    Add(from.sum, a);
    a->error += from.error;
  }
  static double Finish(const Accumulator& a, int64_t) {
    // The error term of an infinite sum is NaN.
    return std::isfinite(a.error) ? a.sum + a.error : a.sum;
  }
  static double FinishMean(const Accumulator& a, int64_t count) { return Finish(a, count) / count; }
};

// Integers are summed in 64 bits. The low bits of the sum equal the sum that wraps around in T. A
// mean is correct if the sum does not overflow.
template <typename T>
struct IntegerSum {
  using Element = T;
  using Accumulator = uint64_t;
  using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
  static Accumulator Nothing() { return 0; }
  static void Add(T x, uint64_t* a) { *a += static_cast<uint64_t>(static_cast<Wide>(x)); }
  static void Merge(uint64_t from, uint64_t* a) { *a += from; }
  static T Finish(uint64_t a, int64_t) { return static_cast<T>(a); }
  static T FinishMean(uint64_t a, int64_t count) {
    return count == 0 ? T(0) : static_cast<T>(static_cast<Wide>(a) / static_cast<Wide>(count));
  }
};

template <typename T>
struct SumPolicy {
  using type = std::conditional_t<std::is_integral_v<T>, IntegerSum<T>, NarrowSum<T>>;
};
template <>
struct SumPolicy<double> {
  using type = DoubleSum;
};

template <typename Part, int kParts>
Reducer SumReducer() {
  return MakeReducer<typename SumPolicy<Part>::type>(kParts);
}

template <typename Part, int kParts>
Reducer MeanReducer() {
  using Policy = typename SumPolicy<Part>::type;
  Reducer reducer = SumReducer<Part, kParts>();
  reducer.finish = [](const void* accumulators, int64_t count, int64_t n, void* out) {
    const auto* a = static_cast<const typename Policy::Accumulator*>(accumulators);
    for (int64_t j = 0; j < n; ++j) static_cast<Part*>(out)[j] = Policy::FinishMean(a[j], count);
  };
  return reducer;
}

// Registers kernels for T, whose elements consist of kParts elements of type Part.
template <typename T, typename Part = T, int kParts = 1>
void RegisterKernels(Registry& registry) {
  registry.Kernel("Sum", MakeKernel<ReductionKernel<SumReducer<Part, kParts>>>)
      .template Type<T>("T");
  registry.Kernel("Mean", MakeKernel<ReductionKernel<MeanReducer<Part, kParts>>>)
      .template Type<T>("T");
}

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
  ForEachType(RealTypes(),
              [&](auto tag) { RegisterKernels<typename decltype(tag)::type>(registry); });
  RegisterKernels<complex64, float, 2>(registry);
  RegisterKernels<complex128, double, 2>(registry);
}

}  // namespace gradflow::sum
