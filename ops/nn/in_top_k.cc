// InTopK and InTopKV2.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "absl/strings/str_cat.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/core/shape_context.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/clones.h"
#include "gradflow/ops/common/indices.h"
#include "gradflow/ops/common/input_checks.h"

namespace gradflow::in_top_k {
namespace {

// Checks the shapes. Returns the number of rows; -1 if unknown.
absl::StatusOr<int64_t> CheckShapes(const PartialTensorShape& predictions,
                                    const PartialTensorShape& targets) {
  GRADFLOW_RETURN_IF_ERROR(CheckRank("predictions", predictions, 2));
  GRADFLOW_RETURN_IF_ERROR(CheckRank("targets", targets, 1));
  return MergeDims("predictions", predictions, 0, "targets", targets, 0);
}

absl::Status InTopKShape(ShapeContext& c) {
  GRADFLOW_ASSIGN_OR_RETURN(const int64_t rows, CheckShapes(c.input(0), c.input(1)));
  if (c.num_inputs() == 3) GRADFLOW_RETURN_IF_ERROR(c.CheckRank(2, 0));
  c.set_output(0, {rows});
  return absl::OkStatus();
}

// Counts the predictions that exceed `prediction`, and those that are not finite.
GRADFLOW_CLONES void CountGreater(const float* x, int64_t n, float prediction, int32_t* greater,
                                  int32_t* infinite) {
  constexpr float kMax = std::numeric_limits<float>::max();
  int32_t more = 0;
  int32_t wrong = 0;
  for (int64_t i = 0; i < n; ++i) {
    more += x[i] > prediction ? 1 : 0;
    wrong += std::abs(x[i]) <= kMax ? 0 : 1;
  }
  *greater = more;
  *infinite = wrong;
}

// Returns true if fewer than k of the n predictions exceed the target's prediction, and all n
// predictions are finite. Returns early if the result is known.
bool IsInTopK(const float* x, int64_t n, int64_t target, int64_t k) {
  constexpr int64_t kPart = 256;
  if (target < 0 || target >= n) return false;
  const float prediction = x[target];
  int64_t count = 0;
  for (int64_t i = 0; i < n; i += kPart) {
    int32_t greater = 0;
    int32_t infinite = 0;
    CountGreater(x + i, std::min(kPart, n - i), prediction, &greater, &infinite);
    count += greater;
    if (infinite > 0 || count >= k) return false;
  }
  return count < k;
}

class InTopKKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    types_ = InputTypes(construction);
    if (types_.size() == 2) return construction.GetAttr("k", &k_);
    return absl::OkStatus();
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckInputTypes(ctx, types_));
    const Tensor& predictions = ctx.input(0);
    const Tensor& targets = ctx.input(1);
    GRADFLOW_RETURN_IF_ERROR(CheckShapes(predictions.shape(), targets.shape()).status());
    int64_t k = k_;
    if (types_.size() == 3) {
      GRADFLOW_RETURN_IF_ERROR(ctx.CheckScalar(2, "k"));
      GRADFLOW_ASSIGN_OR_RETURN(k, ctx.ScalarInt(2, "k"));
    }
    const int64_t rows = predictions.dim_size(0);
    const int64_t classes = predictions.dim_size(1);
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, {rows}, &output));
    const float* const x = static_cast<const float*>(predictions.raw_data());
    bool* const out = static_cast<bool*>(output->raw_data());
    const IndexReader target(targets);
    ParallelFor(ctx, rows, BlockSizeForCost(1.0 * static_cast<double>(classes) + 5),
                [&](int64_t begin, int64_t end) {
                  for (int64_t row = begin; row < end; ++row) {
                    out[row] = IsInTopK(x + row * classes, classes, target[row], k);
                  }
                });
    return absl::OkStatus();
  }

 private:
  DataTypeVector types_;
  // The attribute k, unless k is an input.
  int64_t k_ = 0;
};

constexpr char kSummary[] =
    R"(Returns whether the target class of each row is among its k greatest predictions.

A class is among them if fewer than k predictions of the row are greater than the prediction of the
class, so ties are included. The result is false if the class does not exist or if a prediction of
the row is not finite.

predictions: The predictions, of shape [rows, classes].
targets: The classes, of shape [rows].
)";

}  // namespace

void Register(Registry& registry) {
  registry.Op("InTopK")
      .Group("nn_ops")
      .Input("predictions: float")
      .Input("targets: T")
      .Output("precision: bool")
      .Attr("k: int")
      .Attr("T: {int32, int64} = DT_INT32")
      .Shape(InTopKShape)
      .Doc(absl::StrCat(kSummary, R"(precision: The results, of shape [rows].
k: The number of predictions.
T: The type of `targets`.)"));
  registry.Op("InTopKV2")
      .Group("nn_ops")
      .Input("predictions: float")
      .Input("targets: T")
      .Input("k: T")
      .Output("precision: bool")
      .Attr("T: {int32, int64} = DT_INT32")
      .Shape(InTopKShape)
      .Doc(absl::StrCat(kSummary, R"(k: The number of predictions, a scalar.
precision: The results, of shape [rows].
T: The type of `targets` and `k`.)"));
  registry.Kernel("InTopK", MakeKernel<InTopKKernel>).Types("T", {DT_INT32, DT_INT64});
  registry.Kernel("InTopKV2", MakeKernel<InTopKKernel>).Types("T", {DT_INT32, DT_INT64});
}

}  // namespace gradflow::in_top_k
