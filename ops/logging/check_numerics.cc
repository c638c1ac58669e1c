#include <algorithm>
#include <atomic>
#include <cmath>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"

namespace gradflow::check_numerics {
namespace {

template <typename T>
class CheckNumericsKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("message", &message_));
    // A graph from a file may have any bytes here.
    if (!std::all_of(message_.begin(), message_.end(), absl::ascii_isprint)) {
      message_ = absl::CHexEscape(message_);
    }
    return absl::OkStatus();
  }
  absl::Status Compute(KernelContext& ctx) const override {
    const Tensor& tensor = ctx.input(0);
    const auto values = tensor.flat<T>();
    std::atomic<bool> any_nan{false};
    std::atomic<bool> any_inf{false};
    ParallelFor(ctx, values.size(), BlockSizeForCost(0.5), [&](int64_t begin, int64_t end) {
      bool nan = false;
      bool inf = false;
      for (int64_t i = begin; i < end; ++i) {
        // Converts half and bfloat16 to float, exactly.
        const auto value = values(i) + 0.0f;
        nan |= std::isnan(value);
        inf |= std::isinf(value);
      }
      if (nan) any_nan = true;
      if (inf) any_inf = true;
    });
    if (any_nan || any_inf) {
      return errors::InvalidArgument(message_, " : Tensor had ",
                                     any_nan && any_inf ? "Inf and NaN"
                                     : any_nan          ? "NaN"
                                                        : "Inf",
                                     " values");
    }
    ctx.set_output(0, tensor);
    return absl::OkStatus();
  }

 private:
  std::string message_;
};

}  // namespace

void Register(Registry& registry) {
  registry.Op("CheckNumerics")
      .Group("array_ops")
      .Input("tensor: T")
      .Output("output: T")
      .Attr("T: {bfloat16, half, float, double}")
      .Attr("message: string")
      .Stateful()
      .Shape(UnchangedShape)
      .Doc(R"(Returns its input, or an error if any element is NaN or infinite.

tensor: The tensor to check.
output: The same tensor.
T: The type of the tensor.
message: The prefix of the error message.)");
  ForEachType(FloatingTypes(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    registry.Kernel("CheckNumerics", MakeKernel<CheckNumericsKernel<T>>).template Type<T>("T");
  });
}

}  // namespace gradflow::check_numerics
