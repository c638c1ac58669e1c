// NoOp, ControlTrigger and Abort.
#include <string>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"

namespace gradflow::no_op {
namespace {

absl::Status Nothing(KernelContext&) { return absl::OkStatus(); }

class AbortKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("error_msg", &message_));
    return construction.GetAttr("exit_without_error", &exits_);
  }
  absl::Status Compute(KernelContext&) const override {
    if (exits_) return absl::AbortedError("Exit_op intentional exit");
    return absl::AbortedError("Abort_op intentional failure; " + errors::Printable(message_));
  }

 private:
  std::string message_;
  bool exits_ = false;
};

}  // namespace

void Register(Registry& registry) {
  registry.Op("NoOp").Group("no_op").Shape(UnknownShape).Doc(R"(Does nothing.

Has no inputs and no outputs. Control edges from and to it synchronize groups of nodes.)");
  registry.Kernel("NoOp", MakeFunctionKernel<Nothing, /*Cheap=*/true>);
  registry.Op("ControlTrigger").Group("control_flow_ops").Shape(UnknownShape).Doc(R"(Does nothing.

Unlike `NoOp`, it also runs if nodes that it waits for are in a branch that is not taken
(`Switch`).)");
  registry.Kernel("ControlTrigger", MakeFunctionKernel<Nothing, /*Cheap=*/true>);
  registry.Op("Abort")
      .Group("control_flow_ops")
      .Attr("error_msg: string = ''")
      .Attr("exit_without_error: bool = false")
      .Shape(UnknownShape)
      .Doc(R"(Ends the run with the error ABORTED.

Unlike in TensorFlow, the process goes on.

error_msg: The message of the error.
exit_without_error: If true, the message is that the graph asks to exit.)");
  registry.Kernel("Abort", MakeKernel<AbortKernel>);
}

}  // namespace gradflow::no_op
