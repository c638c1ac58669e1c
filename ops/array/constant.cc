// Const and HostConst.
#include <memory>
#include <string>
#include <utility>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/core/tensor_proto.h"
#include "gradflow/proto/attr_value.pb.h"
#include "gradflow/proto/tensor.pb.h"

namespace gradflow::constant {
namespace {

absl::Status CheckValueType(DataType value, DataType dtype) {
  if (value == dtype) return absl::OkStatus();
  return errors::InvalidArgument("value has type ", DataTypeString(value), ", but dtype is ",
                                 DataTypeString(dtype));
}

// Reads only the shape. The value may be large and is not decoded.
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

// Returns true if the value takes far more memory than its encoding, which may repeat one element
// any number of times.
bool IsCompact(const TensorProto& proto) {
  constexpr int64_t kSmallBytes = int64_t{1} << 10;
  constexpr int64_t kMuchMore = 8;
  const absl::StatusOr<TensorShape> shape = TensorShape::Make(proto.tensor_shape());
  if (!shape.ok() || !proto.tensor_content().empty()) return false;
  const int64_t bytes = TensorProtoBytes(proto);
  return bytes < 0 ||
         (bytes > kSmallBytes && bytes / kMuchMore > static_cast<int64_t>(proto.ByteSizeLong()));
}

class ConstKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    const AttrValue* const value = FindNodeAttr(construction.def(), "value");
    if (value == nullptr) return errors::InvalidArgument("the node has no attribute 'value'");
    GRADFLOW_RETURN_IF_ERROR(CheckValueType(static_cast<DataType>(value->tensor().dtype()),
                                            construction.output_type(0)));
    if (construction.constant() != nullptr) {
      value_ = *construction.constant();
      return absl::OkStatus();
    }
    if (!IsCompact(value->tensor())) return construction.GetAttr("value", &value_);
    compact_ = std::make_unique<TensorProto>(value->tensor());
    constexpr int64_t kCheapElements = 4096;
    is_cheap_ =
        TensorShape::Make(compact_->tensor_shape()).value_or(TensorShape()).num_elements() <=
        kCheapElements;
    return absl::OkStatus();
  }
  // Compact values are decoded in each run, which charges them against the run's memory limit. A
  // few bytes of untrusted input therefore cannot evade the limit.
  absl::Status Compute(KernelContext& ctx) const override {
    if (compact_ == nullptr) {
      ctx.set_output(0, value_);
      return absl::OkStatus();
    }
    GRADFLOW_ASSIGN_OR_RETURN(Tensor value,
                              TensorFromProto(*compact_, ctx.allocator(), ctx.run().stop));
    ctx.set_output(0, std::move(value));
    return absl::OkStatus();
  }
  bool IsCheap() const override { return is_cheap_; }

 private:
  Tensor value_;
  // The encoded value if it is compact; value_ is then unset.
  std::unique_ptr<const TensorProto> compact_;
  bool is_cheap_ = true;
};

}  // namespace

void Register(Registry& registry) {
  registry.Op("Const")
      .Group("const_op")
      .HandWritten()
      .Output("output: dtype")
      .Attr("value: tensor")
      .Attr("dtype: type")
      .Shape(ConstShape)
      .Doc(R"(Returns a constant tensor.

output: The value.
value: The tensor.
dtype: The type of `value`.)");
  registry.Kernel("Const", MakeKernel<ConstKernel>).Types("dtype", AllDataTypes());

  registry.Op("HostConst")
      .Group("array_ops")
      .HandWritten()  // TensorFlow has no class for this op.
      .Output("output: dtype")
      .Attr("value: tensor")
      .Attr("dtype: type")
      .Shape(ConstShape)
      .Doc(R"(Returns a constant tensor in the memory of the host.

output: The value.
value: The tensor.
dtype: The type of `value`.)");
  registry.Kernel("HostConst", MakeKernel<ConstKernel>).Types("dtype", AllDataTypes());
}

}  // namespace gradflow::constant
