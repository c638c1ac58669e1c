// Max and Min.
#include <cstdint>
#include <limits>

#include "gradflow/ops/elementwise.h"
#include "gradflow/ops/reduction.h"
#include "gradflow/ops/register.h"

namespace gradflow {
namespace {

// The operators that do not branch let the compiler use vectors. An accumulator that is NaN stays
// so, since it compares false.
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

template <template <typename> class Policy, typename T>
Reducer PolicyReducer() {
  return MakeReducer<Policy<T>>();
}

constexpr char kTypes[] =
    "{float, double, int32, uint8, int16, int8, int64, "
    "bfloat16, uint16, half, uint32, uint64, "
    "qint8, quint8, qint32, qint16, quint16}";

}  // namespace

void RegisterMax(Registry& registry) {
  RegisterReductionOp(registry, "Max", "ReduceMax", kTypes,
                      R"(The largest of the elements along axes of a tensor.

If any of them is NaN, so is the result. Of no elements it is minus infinity; of integers, the least
of their type.

input: A tensor.
reduction_indices: The axes to go along: a scalar or a vector of different ones, each in
  [-rank(input), rank(input)). None leaves the input as it is.
output: The largest elements.
keep_dims: Whether the axes stay, with size 1.
T: The type of `input` and `output`; there are no kernels for quantized types.
Tidx: The type of the axes.)");
  RegisterReductionOp(registry, "Min", "ReduceMin", kTypes,
                      R"(The smallest of the elements along axes of a tensor.

If any of them is NaN, so is the result. Of no elements it is infinity; of integers, the greatest of
their type.

input: A tensor.
reduction_indices: The axes to go along: a scalar or a vector of different ones, each in
  [-rank(input), rank(input)). None leaves the input as it is.
output: The smallest elements.
keep_dims: Whether the axes stay, with size 1.
T: The type of `input` and `output`; there are no kernels for quantized types.
Tidx: The type of the axes.)");
  ForEachType(RealTypes(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    registry.Kernel("Max", MakeKernel<ReductionKernel<PolicyReducer<MaxPolicy, T>>>)
        .template Type<T>("T");
    registry.Kernel("Min", MakeKernel<ReductionKernel<PolicyReducer<MinPolicy, T>>>)
        .template Type<T>("T");
  });
}

}  // namespace gradflow
