// Max and Min.
#include <cstdint>
#include <limits>
#include <type_traits>

#include "gradflow/core/registry.h"
#include "gradflow/ops/common/data_types.h"
#include "gradflow/ops/common/elementwise.h"
#include "gradflow/ops/math/reducers.h"
#include "gradflow/ops/math/reduction.h"
#include "gradflow/ops/math/row_reduction_simd.h"

namespace gradflow::max {
namespace {

// Uses operators without branches, so that the compiler vectorizes. A NaN accumulator stays NaN,
// because comparisons with NaN are false.
template <typename T>
struct MaxPolicy {
  using Element = T;
  using Accumulator = ComputeType<T>;
  using Limits = std::numeric_limits<Accumulator>;
  static Accumulator Nothing() {
    return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  }
  static void Add(Accumulator x, Accumulator* a) { *a = ((x > *a) | (x != x)) ? x : *a; }
  static void Merge(Accumulator from, Accumulator* a) { Add(from, a); }
  static T Finish(Accumulator a, int64_t) { return static_cast<T>(a); }
};

template <typename T>
struct MinPolicy {
  using Element = T;
  using Accumulator = ComputeType<T>;
  using Limits = std::numeric_limits<Accumulator>;
  static Accumulator Nothing() { return Limits::has_infinity ? Limits::infinity() : Limits::max(); }
  static void Add(Accumulator x, Accumulator* a) { *a = ((x < *a) | (x != x)) ? x : *a; }
  static void Merge(Accumulator from, Accumulator* a) { Add(from, a); }
  static T Finish(Accumulator a, int64_t) { return static_cast<T>(a); }
};

constexpr char kTypes[] =
    "{float, double, int32, uint8, int16, int8, int64, "
    "bfloat16, uint16, half, uint32, uint64, "
    "qint8, quint8, qint32, qint16, quint16}";

// The Reducer of a policy. kRows compares contiguous floats with vectors.
template <template <typename> class Policy,
          void (*kRows)(const float*, int64_t, int64_t, int64_t, float*)>
Reducer MakeExtremum(DataType dtype) {
  Reducer reducer = {};
  DispatchType(RealTypes(), dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, float>) {
      reducer = MakeReducer<Policy<T>, kRows>();
    } else {
      reducer = MakeReducer<Policy<T>>();
    }
  });
  return reducer;
}

}  // namespace

Reducer MakeMax(DataType dtype) { return MakeExtremum<MaxPolicy, MaxRows>(dtype); }
Reducer MakeMin(DataType dtype) { return MakeExtremum<MinPolicy, MinRows>(dtype); }

void Register(Registry& registry) {
  RegisterReductionOp(registry, "Max", "ReduceMax", kTypes,
                      R"(Computes the maximum of elements along axes of a tensor.

If any element is NaN, the result is NaN. The maximum of no elements is minus infinity, or the
smallest value of an integer type.

input: A tensor.
reduction_indices: The axes to reduce: a scalar or a vector of distinct axes, each in
  [-rank(input), rank(input)). If empty, the output equals the input.
output: The maxima.
keep_dims: If true, retains reduced dimensions with size 1.
T: The type of `input` and `output`; there are no kernels for quantized types.
Tidx: The type of the axes.)");
  RegisterReductionOp(registry, "Min", "ReduceMin", kTypes,
                      R"(Computes the minimum of elements along axes of a tensor.

If any element is NaN, the result is NaN. The minimum of no elements is infinity, or the largest
value of an integer type.

input: A tensor.
reduction_indices: The axes to reduce: a scalar or a vector of distinct axes, each in
  [-rank(input), rank(input)). If empty, the output equals the input.
output: The minima.
keep_dims: If true, retains reduced dimensions with size 1.
T: The type of `input` and `output`; there are no kernels for quantized types.
Tidx: The type of the axes.)");
  const DataTypeVector types = DataTypesOf(RealTypes());
  registry.Kernel("Max", MakeKernel<ReductionKernel<MaxReducer>>).Types("T", types);
  registry.Kernel("Min", MakeKernel<ReductionKernel<MinReducer>>).Types("T", types);
}

}  // namespace gradflow::max

namespace gradflow {

Reducer MaxReducer(DataType dtype) { return max::MakeMax(dtype); }
Reducer MinReducer(DataType dtype) { return max::MakeMin(dtype); }

}  // namespace gradflow
