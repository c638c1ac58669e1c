// Switch, RefSwitch, _SwitchN, RefSelect, Merge and RefMerge: branches in one graph.
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"

namespace gradflow::control_switch {
namespace {

// ---- Switch, RefSwitch, _SwitchN ----

absl::Status SwitchShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(1, 0));
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, c.input(0));
  return absl::OkStatus();
}

// Returns `data`, the input, in output `taken`. The other outputs are dead.
absl::Status SetTaken(KernelContext& ctx, int taken) {
  for (int i = 0; i < ctx.num_outputs(); ++i) {
    if (i == taken) {
      ctx.set_output(i, ctx.input(0));
    } else {
      ctx.SetOutputDead(i);
    }
  }
  return absl::OkStatus();
}

absl::Status ComputeSwitch(KernelContext& ctx) {
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckScalar(1, "pred"));
  return SetTaken(ctx, ctx.input(1).scalar<bool>()() ? 1 : 0);
}

absl::Status ComputeSwitchN(KernelContext& ctx) {
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckScalar(1, "output_index"));
  const int32_t index = ctx.input(1).scalar<int32_t>()();
  const int last = ctx.num_outputs() - 1;
  return SetTaken(ctx, index < 0 || index > last ? last : index);
}

void RegisterSwitch(Registry& registry, const char* name, const char* type, const char* data) {
  registry.Op(name)
      .Group("control_flow_ops")
      .Input(absl::StrCat("data: ", type))
      .Input("pred: bool")
      .Output(absl::StrCat("output_false: ", type))
      .Output(absl::StrCat("output_true: ", type))
      .Attr("T: type")
      .Shape(SwitchShape)
      .Doc(absl::StrCat("Passes ", data, R"( to one of two branches.

The other output is dead: the nodes that need it do not run. `Merge` ends the branches.

data: The value.
pred: A scalar, which selects the branch.
output_false: `data` if `pred` is false.
output_true: `data` if `pred` is true.
T: The type of `data`.)"));
  registry.Kernel(name, MakeFunctionKernel<ComputeSwitch, /*Cheap=*/true>)
      .Types("T", AllDataTypes());
}

// ---- RefSelect ----

absl::Status RefSelectShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 0));
  for (int i = 1; i < c.num_inputs(); ++i) {
    if (!c.input(i).IsFullyDefined() || c.input(i) != c.input(1)) return absl::OkStatus();
  }
  c.set_output(0, c.input(1));
  return absl::OkStatus();
}

absl::Status ComputeRefSelect(KernelContext& ctx) {
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckScalar(0, "index"));
  const int32_t index = ctx.input(0).scalar<int32_t>()();
  const int count = ctx.num_inputs() - 1;
  if (index < 0 || index >= count) {
    return errors::InvalidArgument("index must be in [0, ", count, "), but is ", index);
  }
  ctx.set_output(0, ctx.input(1 + index));
  return absl::OkStatus();
}

// ---- Merge, RefMerge ----

// Keeps the dimensions that are equal in all inputs.
absl::Status MergeShape(ShapeContext& c) {
  c.set_output(1, TensorShape());
  PartialTensorShape shape = c.input(0);
  if (shape.unknown_rank()) return absl::OkStatus();
  for (int i = 1; i < c.num_inputs(); ++i) {
    const PartialTensorShape& other = c.input(i);
    if (other.unknown_rank() || other.dims() != shape.dims()) return absl::OkStatus();
    for (int d = 0; d < shape.dims(); ++d) {
      if (other.dim_size(d) != shape.dim_size(d)) shape.set_dim(d, -1);
    }
  }
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

// The executor runs a Merge in a graph itself. This kernel takes the inputs of a Merge whose
// branches are all taken.
absl::Status ComputeMerge(KernelContext& ctx) {
  ctx.set_output(0, ctx.input(0));
  Tensor index(DT_INT32, {});
  index.scalar<int32_t>()() = 0;
  ctx.set_output(1, std::move(index));
  return absl::OkStatus();
}

void RegisterMerge(Registry& registry, const char* name, const char* inputs, const char* output) {
  registry.Op(name)
      .Group("control_flow_ops")
      .Input(absl::StrCat("inputs: ", inputs))
      .Output(absl::StrCat("output: ", output))
      .Output("value_index: int32")
      .Attr("T: type")
      .Attr("N: int >= 1")
      .Shape(MergeShape)
      .Doc(R"(Ends branches: returns the input that is not dead.

Waits for all inputs. If several inputs are not dead, returns the first of these. If all inputs are
dead, both outputs are dead. In a loop, one input is the first value of a variable and the other is
the `NextIteration` that makes its next values.

inputs: The results of the branches.
output: The input of the branch that is taken.
value_index: The index of this input.
T: The type of the inputs.
N: The number of inputs.)");
  registry.Kernel(name, MakeFunctionKernel<ComputeMerge, /*Cheap=*/true>)
      .Types("T", AllDataTypes());
}

}  // namespace

void Register(Registry& registry) {
  RegisterSwitch(registry, "Switch", "T", "a value");
  RegisterSwitch(registry, "RefSwitch", "Ref(T)", "a variable");
  registry.Op("_SwitchN")
      .Group("control_flow_ops")
      .Input("data: T")
      .Input("output_index: int32")
      .Output("outputs: num_outs * T")
      .Attr("num_outs: int >= 1")
      .Attr("T: type")
      .Shape(SwitchShape)
      .Doc(R"(Passes a value to one of several branches.

The other outputs are dead: the nodes that need them do not run. `Merge` ends the branches.

data: The value.
output_index: A scalar: the number of the branch. The last branch is taken if there is none of this
  number.
outputs: `data`, for each branch.
num_outs: The number of branches.
T: The type of `data`.)");
  registry.Kernel("_SwitchN", MakeFunctionKernel<ComputeSwitchN, /*Cheap=*/true>)
      .Types("T", AllDataTypes());
  registry.Op("RefSelect")
      .Group("control_flow_ops")
      .Input("index: int32")
      .Input("inputs: Ref(N * T)")
      .Output("output: Ref(T)")
      .Attr("T: type")
      .Attr("N: int >= 1")
      .Shape(RefSelectShape)
      .Doc(R"(Returns one of several variables.

index: A scalar: the index of the variable in `inputs`.
inputs: The variables.
output: The selected variable.
T: The type of the variables.
N: The number of variables.)");
  registry.Kernel("RefSelect", MakeFunctionKernel<ComputeRefSelect, /*Cheap=*/true>)
      .Types("T", AllDataTypes());
  RegisterMerge(registry, "Merge", "N * T", "T");
  RegisterMerge(registry, "RefMerge", "Ref(N * T)", "Ref(T)");
}

}  // namespace gradflow::control_switch
