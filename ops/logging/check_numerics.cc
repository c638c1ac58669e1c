// CheckNumerics and CheckNumericsV2.
#include <atomic>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"

namespace gradflow::check_numerics {
namespace {

// Distinguishes positive and negative infinities if `Signs` is true.
template <typename T, bool Signs>
class CheckNumericsKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return construction.GetAttr("message", &message_);
  }
  absl::Status Compute(KernelContext& ctx) const override {
    const Tensor& tensor = ctx.input(0);
    const auto values = tensor.flat<T>();
    std::atomic<bool> any_nan{false};
    std::atomic<bool> any_negative{false};
    std::atomic<bool> any_positive{false};
    ParallelFor(ctx, values.size(), BlockSizeForCost(0.5), [&](int64_t begin, int64_t end) {
      bool nan = false;
      bool negative = false;
      bool positive = false;
      for (int64_t i = begin; i < end; ++i) {
        // Converts half and bfloat16 to float, which is exact.
        const auto value = values(i) + 0.0f;
        nan |= std::isnan(value);
        negative |= std::isinf(value) && value < 0;
        positive |= std::isinf(value) && value > 0;
      }
      if (nan) any_nan = true;
      if (negative) any_negative = true;
      if (positive) any_positive = true;
    });
    std::vector<absl::string_view> found;
    if (any_negative && Signs) found.push_back("-Inf");
    if (any_positive && Signs) found.push_back("+Inf");
    if ((any_negative || any_positive) && !Signs) found.push_back("Inf");
    if (any_nan) found.push_back("NaN");
    if (!found.empty()) {
      const absl::string_view last = found.back();
      found.pop_back();
      return errors::InvalidArgument(
          errors::Printable(message_, 1000), " : Tensor had ", absl::StrJoin(found, ", "),
          found.empty() ? "" : (found.size() > 1 ? ", and " : " and "), last, " values");
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
  registry.Op("CheckNumericsV2")
      .Group("array_ops")
      .Input("tensor: T")
      .Output("output: T")
      .Attr("T: {bfloat16, half, float, double}")
      .Attr("message: string")
      .Stateful()
      .Shape(UnchangedShape)
      .Doc(R"(Returns its input, or an error if any element is NaN or infinite.

Unlike the error of `CheckNumerics`, the error tells the signs of infinities.

tensor: The tensor to check.
output: The same tensor.
T: The type of the tensor.
message: The prefix of the error message.)");
  ForEachType(FloatingTypes(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    registry.Kernel("CheckNumerics", MakeKernel<CheckNumericsKernel<T, false>>)
        .template Type<T>("T");
    registry.Kernel("CheckNumericsV2", MakeKernel<CheckNumericsKernel<T, true>>)
        .template Type<T>("T");
  });
}

}  // namespace gradflow::check_numerics
