// CountUpTo and ResourceCountUpTo.
#include <cstdint>
#include <limits>
#include <memory>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/core/variable.h"
#include "gradflow/ops/common/data_types.h"
#include "gradflow/ops/common/indices.h"

namespace gradflow::count_up_to {
namespace {

absl::Status CounterShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckRank("the variable", c.variable_shape(0), 0));
  c.set_output(0, TensorShape());
  return absl::OkStatus();
}

class CountUpToKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("limit", &limit_));
    constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
    DataType dtype = DT_INVALID;
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("T", &dtype));
    if (dtype != DT_INT32 || limit_ <= kMax) return absl::OkStatus();
    return errors::InvalidArgument("limit is ", limit_, ", expected at most ", kMax,
                                   " for a counter of type int32");
  }
  absl::Status Compute(KernelContext& ctx) const override {
    VariableUpdate update;
    GRADFLOW_RETURN_IF_ERROR(update.Begin(ctx, {0}, ctx.expected_output_dtype(0)));
    if (update.value(0).dims() != 0) {
      return errors::InvalidArgument("variable '", errors::Printable(update.variable(0).name()),
                                     "' must be a scalar, but has shape ",
                                     update.value(0).shape().DebugString());
    }
    const int64_t count = IndexReader(update.value(0))[0];
    if (count >= limit_) {
      return absl::OutOfRangeError(absl::StrCat("variable '",
                                                errors::Printable(update.variable(0).name()),
                                                "' has reached the limit of ", limit_));
    }
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, TensorShape(), &output));
    GRADFLOW_RETURN_IF_ERROR(update.MakeWritable());
    WriteIndex(output, 0, count);
    WriteIndex(&update.value(0), 0, count + 1);
    return absl::OkStatus();
  }

 private:
  int64_t limit_ = 0;
};

}  // namespace

void Register(Registry& registry) {
  registry.Op("CountUpTo")
      .Group("state_ops")
      .Input("ref: Ref(T)")
      .Output("output: T")
      .Attr("limit: int")
      .Attr("T: {int32, int64}")
      .Shape(CounterShape)
      .Doc(R"(Increments a variable, and returns its old value.

Once the variable has reached the limit, returns the error OUT_OF_RANGE.

ref: The variable, a scalar.
output: The value before the increment.
limit: The limit.
T: The type of the variable.)");
  registry.Kernel("CountUpTo", MakeKernel<CountUpToKernel>).Types("T", DataTypesOf(IndexTypes()));
  registry.Op("ResourceCountUpTo")
      .Group("state_ops")
      .Input("resource: resource")
      .Output("output: T")
      .Attr("limit: int")
      .Attr("T: {int32, int64}")
      .Shape(CounterShape)
      .Doc(R"(Increments a variable, and returns its old value.

Once the variable has reached the limit, returns the error OUT_OF_RANGE.

resource: The variable, a scalar.
output: The value before the increment.
limit: The limit.
T: The type of the variable.)");
  registry.Kernel("ResourceCountUpTo", MakeKernel<CountUpToKernel>)
      .Types("T", DataTypesOf(IndexTypes()));
}

}  // namespace gradflow::count_up_to
