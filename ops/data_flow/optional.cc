// OptionalFromValue, OptionalNone, OptionalHasValue and OptionalGetValue.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/optional_value.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/core/variant.h"

namespace gradflow::optional {
namespace {

// Values may hold values. Destroying them recurses.
constexpr int kMaxDepth = 64;

// Returns the number of levels of values in values, at most kMaxDepth + 1.
int Depth(const Tensor& tensor, int limit = kMaxDepth + 1) {
  if (tensor.dtype() != DT_VARIANT || limit == 0) return 0;
  int depth = 0;
  for (const Variant& variant : tensor.span<Variant>()) {
    const auto* const value = variant.get<OptionalValue>();
    if (value == nullptr || !value->has_value()) continue;
    for (const Tensor& component : value->components()) {
      depth = std::max(depth, 1 + Depth(component, limit - 1));
      if (depth >= limit) return depth;
    }
  }
  return depth;
}

absl::StatusOr<const OptionalValue*> ValueOf(const KernelContext& ctx) {
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckScalar(0, "optional"));
  if (ctx.input_dtype(0) != DT_VARIANT) {
    return errors::InvalidArgument("optional must be of type variant, but is ",
                                   DataTypeString(ctx.input_dtype(0)));
  }
  const Variant& variant = ctx.input(0).span<Variant>()[0];
  if (const auto* const value = variant.get<OptionalValue>()) return value;
  return errors::InvalidArgument("optional must hold an optional value, but holds ",
                                 variant.is_empty() ? "nothing" : "a value of type '",
                                 errors::Printable(variant.TypeName()),
                                 variant.is_empty() ? "" : "'");
}

absl::Status FromValue(KernelContext& ctx) {
  std::vector<Tensor> components;
  components.reserve(ctx.num_inputs());
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    if (Depth(ctx.input(i)) >= kMaxDepth) {
      return errors::InvalidArgument("expected at most ", kMaxDepth,
                                     " levels of optional values in optional values");
    }
    components.push_back(ctx.input(i));
  }
  ctx.set_output(0, Tensor(Variant(OptionalValue(std::move(components)))));
  return absl::OkStatus();
}

absl::Status None(KernelContext& ctx) {
  ctx.set_output(0, Tensor(Variant(OptionalValue())));
  return absl::OkStatus();
}

absl::Status HasValue(KernelContext& ctx) {
  GRADFLOW_ASSIGN_OR_RETURN(const OptionalValue* const value, ValueOf(ctx));
  ctx.set_output(0, Tensor(value->has_value()));
  return absl::OkStatus();
}

class GetValueKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("output_types", &types_));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("output_shapes", &shapes_));
    if (types_.size() == shapes_.size()) return absl::OkStatus();
    return errors::InvalidArgument("output_types and output_shapes must have the same length, but ",
                                   "have ", types_.size(), " and ", shapes_.size(), " elements");
  }
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_ASSIGN_OR_RETURN(const OptionalValue* const value, ValueOf(ctx));
    if (!value->has_value()) return errors::InvalidArgument("optional has no value");
    const std::vector<Tensor>& components = value->components();
    if (components.size() != types_.size()) {
      return errors::InvalidArgument("optional has ", components.size(), " tensors, expected ",
                                     types_.size());
    }
    for (size_t i = 0; i < components.size(); ++i) {
      const Tensor& component = components[i];
      if (component.dtype() != types_[i] || !shapes_[i].IsCompatibleWith(component.shape())) {
        return errors::InvalidArgument(
            "tensor ", i, " of optional has type ", DataTypeString(component.dtype()),
            " and shape ", component.shape().DebugString(), ", expected ",
            DataTypeString(types_[i]), " and ", shapes_[i].DebugString());
      }
    }
    for (size_t i = 0; i < components.size(); ++i) {
      ctx.set_output(static_cast<int>(i), components[i]);
    }
    return absl::OkStatus();
  }
  bool IsCheap() const override { return true; }

 private:
  DataTypeVector types_;
  std::vector<PartialTensorShape> shapes_;
};

absl::Status HasValueShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 0));
  return ScalarShape(c);
}

absl::Status GetValueShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 0));
  return ListedShapes(c, "output_shapes");
}

}  // namespace

void Register(Registry& registry) {
  registry.Op("OptionalFromValue")
      .Group("data_flow_ops")
      .Input("components: Toutput_types")
      .Output("optional: variant")
      .Attr("Toutput_types: list(type) >= 1")
      .Shape(ScalarShape)
      .Doc(R"(Returns an optional value that holds tensors.

components: The tensors.
optional: The optional value, a scalar.
Toutput_types: The types of the tensors.)");
  registry.Kernel("OptionalFromValue", MakeFunctionKernel<FromValue, /*Cheap=*/true>)
      .Types("Toutput_types", AllDataTypes());
  registry.Op("OptionalNone")
      .Group("data_flow_ops")
      .Output("optional: variant")
      .Shape(ScalarShape)
      .Doc(R"(Returns an optional value that holds nothing.

optional: The optional value, a scalar.)");
  registry.Kernel("OptionalNone", MakeFunctionKernel<None, /*Cheap=*/true>);
  registry.Op("OptionalHasValue")
      .Group("data_flow_ops")
      .Input("optional: variant")
      .Output("has_value: bool")
      .Shape(HasValueShape)
      .Doc(R"(Returns whether an optional value holds tensors.

optional: The optional value, a scalar.
has_value: A scalar.)");
  registry.Kernel("OptionalHasValue", MakeFunctionKernel<HasValue, /*Cheap=*/true>);
  registry.Op("OptionalGetValue")
      .Group("data_flow_ops")
      .Input("optional: variant")
      .Output("components: output_types")
      .Attr("output_types: list(type) >= 1")
      .Attr("output_shapes: list(shape) >= 1")
      .Shape(GetValueShape)
      .Doc(R"(Returns the tensors that an optional value holds. It is an error if it holds nothing.

optional: The optional value, a scalar.
components: The tensors.
output_types: The types of the tensors.
output_shapes: The shapes of the tensors, as far as they are known.)");
  registry.Kernel("OptionalGetValue", MakeKernel<GetValueKernel>)
      .Types("output_types", AllDataTypes());
}

}  // namespace gradflow::optional
