// FakeParam.
#include <utility>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/strided_copy.h"

namespace gradflow::fake_param {
namespace {

absl::Status FakeParamShape(ShapeContext& c) {
  PartialTensorShape shape;
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("shape", &shape));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

class FakeParamKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    PartialTensorShape shape;
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("shape", &shape));
    DimVector dims;
    for (int d = 0; d < shape.dims(); ++d) {
      dims.push_back(shape.dim_size(d) < 0 ? 0 : shape.dim_size(d));
    }
    GRADFLOW_ASSIGN_OR_RETURN(shape_, TensorShape::Make(dims));
    return absl::OkStatus();
  }
  absl::Status Compute(KernelContext& ctx) const override {
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape_, &output));
    // New strings, handles and variants are empty.
    if (DataTypeIsPlainBytes(output->dtype())) SetZero(ctx.run(), output);
    return absl::OkStatus();
  }

 private:
  TensorShape shape_;
};

}  // namespace

void Register(Registry& registry) {
  registry.Op("FakeParam")
      .Group("functional_ops")
      .Output("output: dtype")
      .Attr("dtype: type")
      .Attr("shape: shape")
      .HandWritten()
      .Shape(FakeParamShape)
      .Doc(R"(Returns a tensor that nothing reads.

Stands for a value that one branch of an `If` computes for the gradient, and the other does not.

output: Zeros, or empty elements, of the shape `shape`. Its unknown dimensions are 0, and it is a
  scalar if the rank is unknown.
dtype: The type of the tensor.
shape: The shape of the tensor.)");
  DataTypeVector types = AllDataTypes();
  types.push_back(DT_RESOURCE);
  registry.Kernel("FakeParam", MakeKernel<FakeParamKernel>).Types("dtype", std::move(types));
}

}  // namespace gradflow::fake_param
