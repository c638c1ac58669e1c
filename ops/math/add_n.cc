// AddN and AccumulateNV2.
#include <algorithm>
#include <utility>
#include <vector>

#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/elementwise.h"
#include "gradflow/ops/common/variant_ops.h"

namespace gradflow::add_n {
namespace {

// The number of elements of a tile. The sums of a tile stay in the L1 cache while the inputs are
// added.
constexpr int64_t kTile = 1024;

template <typename T>
absl::Status AddN(KernelContext& ctx) {
  const int n = ctx.num_inputs();
  if (n == 0) return errors::InvalidArgument("inputs must not be an empty list");
  const TensorShape& shape = ctx.input(0).shape();
  std::vector<const T*> inputs;
  // The output may reuse the buffer of any input, because all inputs of a tile are read before the
  // tile is written.
  int forward = 0;
  for (int i = 0; i < n; ++i) {
    const Tensor& input = ctx.input(i);
    if (input.dtype() != ctx.expected_output_dtype(0)) {
      return errors::InvalidArgument("inputs must be of type ",
                                     DataTypeString(ctx.expected_output_dtype(0)), ", but input ",
                                     i, " is ", DataTypeString(input.dtype()));
    }
    if (input.shape() != shape) {
      return errors::InvalidArgument("inputs must have one shape, but input 0 has ",
                                     shape.DebugString(), " and input ", i, " has ",
                                     input.shape().DebugString());
    }
    inputs.push_back(static_cast<const T*>(input.raw_data()));
    if (input.CanBeReused()) forward = i;
  }
  if (n == 1) {
    ctx.set_output(0, ctx.input(0));
    return absl::OkStatus();
  }
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.ForwardInputOrAllocateOutput(forward, 0, shape, &output));
  T* sum = static_cast<T*>(output->raw_data());
  ParallelFor(
      ctx, shape.num_elements(), BlockSizeForCost(0.3 * n), [&](int64_t begin, int64_t end) {
        ComputeType<T> tile[kTile];
        for (int64_t start = begin; start < end; start += kTile) {
          const int64_t size = std::min(kTile, end - start);
          for (int64_t i = 0; i < size; ++i)
            tile[i] = static_cast<ComputeType<T>>(inputs[0][start + i]);
          for (int k = 1; k < n; ++k) {
            const T* input = inputs[k] + start;
            for (int64_t i = 0; i < size; ++i) {
              tile[i] =
                  static_cast<ComputeType<T>>(tile[i] + static_cast<ComputeType<T>>(input[i]));
            }
          }
          for (int64_t i = 0; i < size; ++i) sum[start + i] = static_cast<T>(tile[i]);
        }
      });
  return absl::OkStatus();
}

absl::Status AccumulateShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(SameShape(c));
  PartialTensorShape shape;
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("shape", &shape));
  if (!shape.IsCompatibleWith(c.output(0))) {
    return errors::InvalidArgument("inputs must have the shape of attribute shape, ",
                                   shape.DebugString(), ", but have shape ",
                                   c.output(0).DebugString());
  }
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape merged, shape.MergeWith(c.output(0)));
  c.set_output(0, std::move(merged));
  return absl::OkStatus();
}

template <typename T>
class AccumulateKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return construction.GetAttr("shape", &shape_);
  }
  absl::Status Compute(KernelContext& ctx) const override {
    if (ctx.num_inputs() > 0 && !shape_.IsCompatibleWith(ctx.input(0).shape())) {
      return errors::InvalidArgument("inputs must have the shape of attribute shape, ",
                                     shape_.DebugString(), ", but have shape ",
                                     ctx.input(0).shape().DebugString());
    }
    return AddN<T>(ctx);
  }

 private:
  PartialTensorShape shape_;
};

}  // namespace

void Register(Registry& registry) {
  registry.Op("AddN")
      .Group("math_ops")
      .Input("inputs: N * T")
      .Output("sum: T")
      .Attr("N: int >= 1")
      .Attr(
          "T: {float, double, int32, uint8, int16, int8, complex64, int64, "
          "qint8, quint8, qint32, "
          "bfloat16, qint16, quint16, uint16, complex128, half, uint32, "
          "uint64, variant}")
      .Commutative()
      .Aggregate()
      .Shape(SameShape)
      .Doc(R"(Adds tensors of the same shape element-wise.

The inputs are added in order, half and bfloat16 in float with one rounding. Integers wrap around.
Unlike Add, AddN does not broadcast. The sum of lists of tensors is the list of the sums of their
elements.

inputs: Tensors of the same type and shape.
sum: The sums, of the same shape.
N: The number of inputs.
T: The type of `inputs` and `sum`.)");
  registry.Op("AccumulateNV2")
      .Group("math_ops")
      .Input("inputs: N * T")
      .Output("sum: T")
      .Attr("N: int >= 1")
      .Attr("T: numbertype")
      .Attr("shape: shape")
      .Commutative()
      .Aggregate()
      .Shape(AccumulateShape)
      .Doc(R"(Adds tensors of the same shape element-wise, like AddN.

inputs: Tensors of the same type and shape.
sum: The sums, of the same shape.
N: The number of inputs.
T: The type of `inputs` and `sum`.
shape: The shape of the inputs.)");
  ForEachType(NumberTypes(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    registry.Kernel("AccumulateNV2", MakeKernel<AccumulateKernel<WrappingType<T>>>)
        .template Type<T>("T");
    registry.Kernel("AddN", MakeFunctionKernel<AddN<WrappingType<T>>>).template Type<T>("T");
  });
  registry.Kernel("AddN", MakeFunctionKernel<AddVariants>).Type<Variant>("T");
}

}  // namespace gradflow::add_n
