// Prod, All and Any.
#include <cstdint>

#include "gradflow/core/registry.h"
#include "gradflow/ops/common/data_types.h"
#include "gradflow/ops/math/reducers.h"
#include "gradflow/ops/math/reduction.h"
#include "gradflow/ops/math/sum_policy.h"

namespace gradflow::prod {
namespace {

// Every byte except 0 is true.
struct AllPolicy {
  using Element = uint8_t;
  using Accumulator = uint8_t;
  static Accumulator Nothing() { return 1; }
  static void Add(uint8_t x, uint8_t* a) { *a = static_cast<uint8_t>(*a & (x != 0)); }
  static void Merge(uint8_t from, uint8_t* a) { Add(from, a); }
  static uint8_t Finish(uint8_t a, int64_t) { return a; }
};

struct AnyPolicy {
  using Element = uint8_t;
  using Accumulator = uint8_t;
  static Accumulator Nothing() { return 0; }
  static void Add(uint8_t x, uint8_t* a) { *a = static_cast<uint8_t>(*a | (x != 0)); }
  static void Merge(uint8_t from, uint8_t* a) { Add(from, a); }
  static uint8_t Finish(uint8_t a, int64_t) { return a; }
};

template <typename Policy>
Reducer BoolReducer(DataType) {
  return MakeReducer<Policy>();
}

}  // namespace

void Register(Registry& registry) {
  RegisterReductionOp(registry, "Prod", "ReduceProd", "numbertype",
                      R"(Computes the product of elements along axes of a tensor.

Floating-point and complex numbers are multiplied in double and rounded once. The order depends on
the shape alone. Integers wrap around. The product of no elements is 1.

input: A tensor.
reduction_indices: The axes to reduce: a scalar or a vector of distinct axes, each in
  [-rank(input), rank(input)). If empty, the output equals the input.
output: The products.
keep_dims: If true, retains reduced dimensions with size 1.
T: The type of `input` and `output`.
Tidx: The type of the axes.)");
  RegisterReductionOp(registry, "All", "ReduceAll", "",
                      R"(Computes the logical and of elements along axes of a tensor.

The result for no elements is true.

input: A tensor.
reduction_indices: The axes to reduce: a scalar or a vector of distinct axes, each in
  [-rank(input), rank(input)). If empty, the output equals the input.
output: True where all reduced elements are true.
keep_dims: If true, retains reduced dimensions with size 1.
Tidx: The type of the axes.)");
  RegisterReductionOp(registry, "Any", "ReduceAny", "",
                      R"(Computes the logical or of elements along axes of a tensor.

The result for no elements is false.

input: A tensor.
reduction_indices: The axes to reduce: a scalar or a vector of distinct axes, each in
  [-rank(input), rank(input)). If empty, the output equals the input.
output: True where any reduced element is true.
keep_dims: If true, retains reduced dimensions with size 1.
Tidx: The type of the axes.)");
  registry.Kernel("Prod", MakeKernel<ReductionKernel<ProdReducer>>)
      .Types("T", DataTypesOf(NumberTypes()));
  registry.Kernel("All", MakeKernel<ReductionKernel<BoolReducer<AllPolicy>>>);
  registry.Kernel("Any", MakeKernel<ReductionKernel<BoolReducer<AnyPolicy>>>);
}

}  // namespace gradflow::prod

namespace gradflow {

Reducer ProdReducer(DataType dtype) {
  Reducer reducer = {};
  DispatchType(NumberTypes(), dtype, [&](auto tag) {
    reducer = MakeReducer<ProductPolicy<typename decltype(tag)::type>>();
  });
  return reducer;
}

}  // namespace gradflow
