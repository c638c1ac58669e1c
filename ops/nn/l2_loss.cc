// L2Loss.
#include <cstdint>
#include <type_traits>
#include <vector>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/math/reduction.h"
#include "gradflow/ops/math/sum_policy.h"

namespace gradflow::l2_loss {
namespace {

template <typename T>
struct HalfSumOfSquares {
  using Element = T;
  using Accumulator = double;
  static Accumulator Nothing() { return 0; }
  static void Add(T x, double* a) {
    const double value = static_cast<float>(x);
    *a += value * value;
  }
  static void Merge(double from, double* a) { *a += from; }
  static T Finish(double a, int64_t) { return static_cast<T>(a / 2); }
};

template <>
struct HalfSumOfSquares<double> : DoubleSum {
  static void Add(double x, Accumulator* a) { DoubleSum::Add(x * x, a); }
  static void Merge(const Accumulator& from, Accumulator* a) { DoubleSum::Merge(from, a); }
  static double Finish(const Accumulator& a, int64_t) { return Wide(a) / 2; }
};

template <typename T>
absl::Status Compute(KernelContext& ctx) {
  const Tensor& t = ctx.input(0);
  if (t.dtype() != DataTypeToEnum<T>::value) {
    return errors::InvalidArgument("t has type ", DataTypeString(t.dtype()), ", expected ",
                                   DataTypeString(DataTypeToEnum<T>::value));
  }
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, {}, &output));
  return ReduceTensor(ctx, MakeReducer<HalfSumOfSquares<T>>(), t, std::vector<bool>(t.dims(), true),
                      output);
}

}  // namespace

void Register(Registry& registry) {
  registry.Op("L2Loss")
      .Group("nn_ops")
      .Input("t: T")
      .Output("output: T")
      .Attr("T: {half, bfloat16, float, double}")
      .Shape(ScalarShape)
      .Doc(R"(Computes half the sum of the squares of all elements: sum(t^2) / 2.

The sum is accumulated as by Sum, and rounded to the type at the end.

t: A tensor.
output: A scalar; 0 if `t` is empty.
T: The type of both.)");
  ForEachType(FloatingTypes(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    registry.Kernel("L2Loss", MakeFunctionKernel<Compute<T>>).template Type<T>("T");
  });
}

}  // namespace gradflow::l2_loss
