// ParseTensor and SerializeTensor.
#include <string>
#include <utility>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/tensor_message.h"

namespace gradflow::parse_tensor {
namespace {

absl::Status Serialize(KernelContext& ctx) {
  GRADFLOW_ASSIGN_OR_RETURN(std::string text, SerializedTensor(ctx.input(0), ctx.allocator()));
  ctx.ExpectStringBytes(static_cast<double>(text.size()));
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, {}, &output));
  output->span<tstring>()[0] = std::move(text);
  return absl::OkStatus();
}

absl::Status Parse(KernelContext& ctx) {
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckScalar(0, "serialized"));
  if (ctx.input_dtype(0) != DT_STRING) {
    return errors::InvalidArgument("serialized must be a string, but is ",
                                   DataTypeString(ctx.input_dtype(0)));
  }
  const tstring& serialized = ctx.input(0).span<tstring>()[0];
  GRADFLOW_ASSIGN_OR_RETURN(
      Tensor tensor,
      ParsedTensor("serialized", serialized, ctx.expected_output_dtype(0), ctx.allocator()));
  ctx.set_output(0, std::move(tensor));
  return absl::OkStatus();
}

absl::Status ParseShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 0));
  return UnknownShape(c);
}

}  // namespace

void Register(Registry& registry) {
  registry.Op("SerializeTensor")
      .Group("parsing_ops")
      .Input("tensor: T")
      .Output("serialized: string")
      .Attr("T: type")
      .Shape(ScalarShape)
      .Doc(R"(Returns the serialized TensorProto of a tensor.

tensor: The tensor.
serialized: The message, a scalar.
T: The type of the tensor.)");
  registry.Kernel("SerializeTensor", MakeFunctionKernel<Serialize>);
  registry.Op("ParseTensor")
      .Group("parsing_ops")
      .Input("serialized: string")
      .Output("output: out_type")
      .Attr("out_type: type")
      .Shape(ParseShape)
      .Doc(R"(Returns the tensor of a serialized TensorProto.

serialized: The message, a scalar.
output: The tensor.
out_type: The type of the tensor, which must be the type in the message.)");
  registry.Kernel("ParseTensor", MakeFunctionKernel<Parse>);
}

}  // namespace gradflow::parse_tensor
