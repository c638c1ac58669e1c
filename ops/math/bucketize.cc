// Bucketize.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/elementwise.h"

namespace gradflow::bucketize {
namespace {

template <typename T>
class BucketizeKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("boundaries", &boundaries_));
    const auto unsorted = std::is_sorted_until(boundaries_.begin(), boundaries_.end());
    if (unsorted != boundaries_.end()) {
      return errors::InvalidArgument("boundaries are not sorted: ", *unsorted, " comes after ",
                                     *(unsorted - 1));
    }
    return absl::OkStatus();
  }

  absl::Status Compute(KernelContext& ctx) const override {
    return RunElementwise(ctx, {sizeof(T)}, /*nanoseconds=*/5,
                          [this](const void* const* x, const int64_t*, void* out, int64_t n) {
                            const T* const values = static_cast<const T*>(x[0]);
                            auto* const buckets = static_cast<int32_t*>(out);
                            for (int64_t i = 0; i < n; ++i) buckets[i] = BucketOf(values[i]);
                          });
  }

 private:
  // Returns the number of boundaries that are not greater than `value`. NaN counts all boundaries.
  int32_t BucketOf(T value) const {
    size_t below = 0;
    size_t n = boundaries_.size();
    while (n > 0) {
      const size_t half = n / 2;
      // Unlike std::upper_bound, has no branch that the processor would mispredict.
      const bool is_less = value < boundaries_[below + half];
      below = is_less ? below : below + half + 1;
      n = is_less ? half : n - half - 1;
    }
    return static_cast<int32_t>(below);
  }

  std::vector<float> boundaries_;
};

}  // namespace

void Register(Registry& registry) {
  registry.Op("Bucketize")
      .Group("math_ops")
      .Input("input: T")
      .Output("output: int32")
      .Attr("T: {int32, int64, float, double}")
      .Attr("boundaries: list(float)")
      .Shape(UnchangedShape)
      .Doc(R"(Returns the bucket of each element, by the boundaries between buckets.

The bucket is the number of boundaries that are at most the element: for the boundaries [0, 10], it
is 0 for -1, 1 for 0 and 5, and 2 for 10. The bucket of NaN is the last bucket. Integers are
compared as float.

input: A tensor of numbers.
output: The buckets, of the shape of `input`.
T: The type of `input`.
boundaries: Numbers in ascending order.)");
  ForEachType(TypeList<int32_t, int64_t, float, double>(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    registry.Kernel("Bucketize", MakeKernel<BucketizeKernel<T>>).template Type<T>("T");
  });
}

}  // namespace gradflow::bucketize
