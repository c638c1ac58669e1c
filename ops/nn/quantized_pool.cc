// QuantizedAvgPool and QuantizedMaxPool.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/nn/pool_rows.h"
#include "gradflow/ops/nn/pool_windows.h"
#include "gradflow/ops/quant/quantized_range.h"

namespace gradflow::quantized_pool {
namespace {

// The mean of integers, truncated toward 0. Padding does not count.
struct TruncatedMean {
  using Accumulator = int64_t;
  static constexpr PoolKind kKind = PoolKind::kMean;
  static int64_t Initial() { return 0; }
  static int64_t Combine(int64_t a, int64_t x) { return a + x; }
  static int64_t Finish(int64_t a, int64_t count) { return a / count; }
};

absl::Status PoolShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckRangeShapes(c, 1, 2));
  PoolAttrs attrs;
  GRADFLOW_RETURN_IF_ERROR(attrs.Read(c, 4));
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, PooledShape(attrs, c.input(0)));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

template <typename Q, typename Op>
class PoolKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    ranges_.Init(construction, 1);
    GRADFLOW_RETURN_IF_ERROR(attrs_.Read(construction, 4));
    if (Op::kKind != PoolKind::kMean || !attrs_.pools_channels()) return absl::OkStatus();
    return errors::Unimplemented("averages across channels are not supported");
  }
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_ASSIGN_OR_RETURN(const std::vector<QuantizedRange> ranges, ranges_.Read(ctx));
    TensorShape shape;
    GRADFLOW_ASSIGN_OR_RETURN(const PoolGeometry g,
                              MakePoolGeometry(attrs_, ctx.input(0).shape(), &shape));
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
    if (output->NumElements() > 0) {
      GRADFLOW_RETURN_IF_ERROR((RowPooler<Q, Op>(g, ctx.input(0), output).Run(ctx)));
    }
    return OutputRange(ctx, 1, ranges[0]);
  }

 private:
  RangeInputs ranges_;
  PoolAttrs attrs_;
};

void DefinePool(Registry& registry, const char* op, const char* summary, const char* output) {
  registry.Op(op)
      .Group("nn_ops")
      .Input("input: T")
      .Input("min_input: float")
      .Input("max_input: float")
      .Output("output: T")
      .Output("min_output: float")
      .Output("max_output: float")
      .Attr(absl::StrCat("T: ", kQuantizedTypes))
      .Attr("ksize: list(int)")
      .Attr("strides: list(int)")
      .Attr("padding: {'SAME', 'VALID'}")
      .Shape(PoolShape)
      .Doc(absl::StrCat(summary, R"(

input: Integers of shape [batch, rows, columns, channels].
min_input: A scalar: the number of the lowest integer of `input`.
max_input: A scalar: the number of the highest integer of `input`.
output: )",
                        output, R"( of each window.
min_output: `min_input`.
max_output: `max_input`.
T: The type of the integers.
ksize: The size of the windows along each dimension; 1 for batch and channels.
strides: The distance between neighboring windows along each dimension; 1 for batch and channels.
padding: "SAME" pads the input to ceil(size / stride) windows along each dimension. "VALID" has the
  windows that lie within the input.)"));
}

}  // namespace

void Register(Registry& registry) {
  DefinePool(registry, "QuantizedAvgPool",
             "Computes the means of windows of quantized images, without padding.",
             "The mean, truncated to an integer,");
  DefinePool(registry, "QuantizedMaxPool", "Computes the maxima of windows of quantized images.",
             "The maximum");
  ForEachType(TypeList<quint8, qint8>(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Q = decltype(T::value);
    registry.Kernel("QuantizedAvgPool", MakeKernel<PoolKernel<Q, TruncatedMean>>)
        .template Type<T>("T");
    registry.Kernel("QuantizedMaxPool", MakeKernel<PoolKernel<Q, PoolMax<Q>>>)
        .template Type<T>("T");
  });
}

}  // namespace gradflow::quantized_pool
