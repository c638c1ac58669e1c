// OneHot.
#include <algorithm>
#include <utility>
#include <vector>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/indices.h"
#include "gradflow/ops/common/strided_copy.h"

namespace gradflow::one_hot {
namespace {

// Returns the shape of `indices` with an additional dimension `axis` of size `depth`, which is -1
// if unknown.
// REQUIRES: the rank is known
absl::StatusOr<PartialTensorShape> OneHotShape(const PartialTensorShape& indices, int64_t axis,
                                               int64_t depth) {
  if (axis < -1 || axis > indices.dims()) {
    return errors::InvalidArgument("axis must be in [-1, ", indices.dims(), "], but is ", axis);
  }
  DimVector dims(indices.dim_sizes().begin(), indices.dim_sizes().end());
  dims.insert(axis < 0 ? dims.end() : dims.begin() + axis, depth);
  return PartialTensorShape::Make(dims);
}

absl::Status CheckDepth(int64_t depth) {
  if (depth >= 0) return absl::OkStatus();
  return errors::InvalidArgument("depth must not be negative, but is ", depth);
}

absl::Status OneHotShapeFn(ShapeContext& c) {
  int64_t axis;
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("axis", &axis));
  if (axis < -1) return errors::InvalidArgument("axis must be at least -1, but is ", axis);
  for (int i = 1; i <= 3; ++i) GRADFLOW_RETURN_IF_ERROR(c.CheckRank(i, 0));
  std::vector<int64_t> depth = {-1};
  GRADFLOW_ASSIGN_OR_RETURN(const bool known, c.IntsFromInput(1, &depth));
  if (known) GRADFLOW_RETURN_IF_ERROR(CheckDepth(depth[0]));
  if (c.input(0).unknown_rank()) return absl::OkStatus();
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, OneHotShape(c.input(0), axis, depth[0]));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

class OneHotKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return construction.GetAttr("axis", &axis_);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    const Tensor& indices = ctx.input(0);
    GRADFLOW_ASSIGN_OR_RETURN(const int64_t depth, ctx.ScalarInt(1, "depth"));
    GRADFLOW_RETURN_IF_ERROR(CheckDepth(depth));
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckScalar(2, "on_value"));
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckScalar(3, "off_value"));
    GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape hot,
                              OneHotShape(indices.shape(), axis_, depth));
    const TensorShape shape(hot.dim_sizes());
    const Tensor& on = ctx.input(2);
    const Tensor& off = ctx.input(3);
    if (on.dtype() == DT_STRING) {
      ctx.ExpectStringBytes(static_cast<double>(shape.num_elements()) * off.StringBytes() +
                            static_cast<double>(indices.NumElements()) * on.StringBytes());
    }
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
    if (shape.num_elements() == 0) return absl::OkStatus();
    FillAll(ctx.run(), off, output);
    // The output is [prefix, depth, suffix]; the indices are [prefix, suffix].
    int64_t suffix = 1;
    for (int d = axis_ < 0 ? indices.dims() : static_cast<int>(axis_); d < indices.dims(); ++d) {
      suffix *= indices.dim_size(d);
    }
    const IndexReader reader(indices);
    DispatchElement(on.dtype(), [&](auto tag) {
      using E = typename decltype(tag)::type;
      const E& value = *static_cast<const E*>(on.raw_data());
      E* to = static_cast<E*>(output->raw_data());
      const double cost = 3 + CopyNanoseconds(on.dtype());
      ParallelFor(ctx, indices.NumElements(), BlockSizeForCost(cost),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; ++i) {
                      const int64_t index = reader[i];
                      if (index < 0 || index >= depth) continue;
                      to[(i / suffix * depth + index) * suffix + i % suffix] = value;
                    }
                  });
    });
    return absl::OkStatus();
  }

 private:
  int64_t axis_ = -1;
};

}  // namespace

void Register(Registry& registry) {
  registry.Op("OneHot")
      .Group("array_ops")
      .Input("indices: TI")
      .Input("depth: int32")
      .Input("on_value: T")
      .Input("off_value: T")
      .Output("output: T")
      .Attr("axis: int = -1")
      .Attr("T: type")
      .Attr("TI: {uint8, int8, int32, int64} = DT_INT64")
      .Shape(OneHotShapeFn)
      .Doc(R"(Encodes indices as vectors with one element set.

indices: The indices. An index that is out of range sets no element.
depth: A scalar: the size of the vectors.
on_value: A scalar: the value of the element at the index.
off_value: A scalar: the value of the other elements.
output: The vectors, in a new dimension.
axis: The index of the new dimension in the result; -1 for the last.
T: The type of the values.
TI: The type of `indices`.)");
  registry.Kernel("OneHot", MakeKernel<OneHotKernel>).Types("T", AllDataTypes());
}

}  // namespace gradflow::one_hot
