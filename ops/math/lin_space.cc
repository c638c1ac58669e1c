// LinSpace.
#include <cstdint>
#include <vector>

#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/data_types.h"
#include "gradflow/ops/common/elementwise.h"

namespace gradflow::lin_space {
namespace {

absl::Status CheckNum(int64_t num) {
  if (num > 0) return absl::OkStatus();
  return errors::InvalidArgument("num is ", num, ", expected at least 1");
}

absl::Status LinSpaceShape(ShapeContext& c) {
  for (int i = 0; i < 3; ++i) GRADFLOW_RETURN_IF_ERROR(c.CheckRank(i, 0));
  std::vector<int64_t> num;
  GRADFLOW_ASSIGN_OR_RETURN(const bool known, c.IntsFromInput(2, &num));
  if (known) GRADFLOW_RETURN_IF_ERROR(CheckNum(num[0]));
  c.set_output(0, {known ? num[0] : -1});
  return absl::OkStatus();
}

absl::Status LinSpace(KernelContext& ctx) {
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckScalar(0, "start"));
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckScalar(1, "stop"));
  GRADFLOW_ASSIGN_OR_RETURN(const int64_t num, ctx.ScalarInt(2, "num"));
  GRADFLOW_RETURN_IF_ERROR(CheckNum(num));
  for (int i = 0; i < 2; ++i) {
    if (ctx.input_dtype(i) != ctx.expected_output_dtype(0)) {
      return errors::InvalidArgument("start and stop must be of type ",
                                     DataTypeString(ctx.expected_output_dtype(0)), ", but input ",
                                     i, " is ", DataTypeString(ctx.input_dtype(i)));
    }
  }
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, {num}, &output));
  DispatchType(FloatingTypes(), output->dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = ComputeType<T>;
    const C start = static_cast<C>(ctx.input(0).scalar<T>()());
    const C stop = static_cast<C>(ctx.input(1).scalar<T>()());
    const C step = num > 1 ? (stop - start) / static_cast<C>(num - 1) : C(0);
    T* values = output->flat<T>().data();
    ParallelFor(ctx, num, BlockSizeForCost(0.5), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        values[i] = static_cast<T>(start + step * static_cast<C>(i));
      }
      // The last value is exactly `stop`, without the rounding error of the steps.
      if (end == num && num > 1) values[num - 1] = static_cast<T>(stop);
    });
  });
  return absl::OkStatus();
}

}  // namespace

void Register(Registry& registry) {
  registry.Op("LinSpace")
      .Group("math_ops")
      .Input("start: T")
      .Input("stop: T")
      .Input("num: Tidx")
      .Output("output: T")
      .Attr("T: {bfloat16, half, float, double}")
      .Attr("Tidx: {int32, int64} = DT_INT32")
      .Shape(LinSpaceShape)
      .Doc(R"(Returns numbers at equal distances from `start` to `stop`.

Element i is `start + i * (stop - start) / (num - 1)`, computed in the element type (half and
bfloat16 in float). The last number is `stop`. If there is only one number, it is `start`.

start: A scalar: the first number.
stop: A scalar: the last number.
num: A scalar: the number of numbers, at least 1.
output: A vector of `num` numbers.
T: The type of the numbers.
Tidx: The type of `num`.)");
  registry.Kernel("LinSpace", MakeFunctionKernel<LinSpace>)
      .Types("T", DataTypesOf(FloatingTypes()));
}

}  // namespace gradflow::lin_space
