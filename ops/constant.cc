#include <string>
#include <utility>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/register.h"
#include "gradflow/proto/attr_value.pb.h"
#include "gradflow/proto/tensor.pb.h"

namespace gradflow {
namespace {

absl::Status CheckValueType(DataType value, DataType dtype) {
  if (value == dtype) return absl::OkStatus();
  return errors::InvalidArgument("value has type ", DataTypeString(value), ", but dtype is ",
                                 DataTypeString(dtype));
}

// Reads the shape beside the value, which may be large, rather than the value.
absl::Status ConstShape(ShapeContext& c) {
  DataType dtype;
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("dtype", &dtype));
  const AttrValue* value = FindNodeAttr(c.def(), "value");
  if (value == nullptr) return errors::InvalidArgument("the node has no attribute 'value'");
  const TensorProto& proto = value->tensor();
  GRADFLOW_RETURN_IF_ERROR(CheckValueType(static_cast<DataType>(proto.dtype()), dtype));
  GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, TensorShape::Make(proto.tensor_shape()));
  c.set_output(0, shape);
  return absl::OkStatus();
}

class ConstKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("value", &value_));
    return CheckValueType(value_.dtype(), construction.output_type(0));
  }
  absl::Status Compute(KernelContext& ctx) const override {
    ctx.set_output(0, value_);
    return absl::OkStatus();
  }
  bool IsCheap() const override { return true; }

 private:
  Tensor value_;
};

}  // namespace

void RegisterConstant(Registry& registry) {
  registry.Op("Const")
      .Group("const_op")
      .HandWritten()
      .Output("output: dtype")
      .Attr("value: tensor")
      .Attr("dtype: type")
      .Shape(ConstShape)
      .Doc(R"(A tensor whose value is part of the graph.

output: The value.
value: The tensor.
dtype: The type of `value`.)");
  registry.Kernel("Const", MakeKernel<ConstKernel>);
}

}  // namespace gradflow
