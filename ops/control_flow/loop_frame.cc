// Enter, Exit, NextIteration and LoopCond, with their reference forms: loops in one graph.
#include "absl/strings/str_cat.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"

namespace gradflow::loop_frame {
namespace {

// The shape of a variable may change in the loop.
absl::Status EnterShape(ShapeContext& c) {
  bool is_constant = false;
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("is_constant", &is_constant));
  if (is_constant) c.set_output(0, c.input(0));
  return absl::OkStatus();
}

absl::Status LoopCondShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 0));
  c.set_output(0, TensorShape());
  return absl::OkStatus();
}

absl::Status Forward(KernelContext& ctx) {
  ctx.set_output(0, ctx.input(0));
  return absl::OkStatus();
}

absl::Status ComputeLoopCond(KernelContext& ctx) {
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckScalar(0, "input"));
  return Forward(ctx);
}

void RegisterEnter(Registry& registry, const char* name, const char* type, const char* what) {
  registry.Op(name)
      .Group("control_flow_ops")
      .Input(absl::StrCat("data: ", type))
      .Output(absl::StrCat("output: ", type))
      .Attr("T: type")
      .Attr("frame_name: string")
      .Attr("is_constant: bool = false")
      .Attr("parallel_iterations: int = 10")
      .Shape(EnterShape)
      .Doc(absl::StrCat("Passes ", what, R"( into a loop.

The nodes that need the output belong to the loop. `Merge` makes a variable of the loop from the
output and a `NextIteration`. `LoopCond` is the condition of the loop: a `Switch` by its output
passes the variable to the body of the loop while the condition is true, and then to `Exit`.

data: A value, or the first value of a variable of the loop.
output: The same.
T: The type of `data`.
frame_name: The name of the loop. The loops in another loop may have the same names as other loops.
is_constant: True if all iterations read the same value.
parallel_iterations: Not used: an iteration begins when the previous iteration has ended.)"));
  registry.Kernel(name, MakeFunctionKernel<Forward, /*Cheap=*/true>).Types("T", AllDataTypes());
}

void RegisterForward(Registry& registry, const char* name, const char* type, const char* summary) {
  registry.Op(name)
      .Group("control_flow_ops")
      .Input(absl::StrCat("data: ", type))
      .Output(absl::StrCat("output: ", type))
      .Attr("T: type")
      .Shape(UnchangedShape)
      .Doc(absl::StrCat(summary, R"(

data: The value.
output: The same.
T: The type of `data`.)"));
  registry.Kernel(name, MakeFunctionKernel<Forward, /*Cheap=*/true>).Types("T", AllDataTypes());
}

}  // namespace

void Register(Registry& registry) {
  RegisterEnter(registry, "Enter", "T", "a value");
  RegisterEnter(registry, "RefEnter", "Ref(T)", "a variable of the graph");
  constexpr char kExit[] = "Passes a value out of a loop (`Enter`).";
  RegisterForward(registry, "Exit", "T", kExit);
  RegisterForward(registry, "RefExit", "Ref(T)", kExit);
  constexpr char kNext[] = "Passes a value to the next iteration of a loop (`Enter`).";
  RegisterForward(registry, "NextIteration", "T", kNext);
  RegisterForward(registry, "RefNextIteration", "Ref(T)", kNext);

  registry.Op("LoopCond")
      .Group("control_flow_ops")
      .Input("input: bool")
      .Output("output: bool")
      .Shape(LoopCondShape)
      .Doc(R"(Marks the condition of a loop (`Enter`).

input: A scalar. The loop goes on while it is true.
output: The same.)");
  registry.Kernel("LoopCond", MakeFunctionKernel<ComputeLoopCond, /*Cheap=*/true>);
}

}  // namespace gradflow::loop_frame
