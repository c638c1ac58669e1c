#include "gradflow/core/shape_fns.h"
#include "gradflow/ops/register.h"

namespace gradflow {
namespace {

absl::Status Nothing(KernelContext&) { return absl::OkStatus(); }

}  // namespace

void RegisterNoOp(Registry& registry) {
  registry.Op("NoOp").Group("no_op").Shape(UnknownShape).Doc(R"(Does nothing.

It has no inputs and no outputs: control dependencies from and to it make it a point that nodes
wait for together.)");
  registry.Kernel("NoOp", MakeFunctionKernel<Nothing, /*Cheap=*/true>);
}

}  // namespace gradflow
