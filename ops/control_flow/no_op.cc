// NoOp.
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"

namespace gradflow::no_op {
namespace {

absl::Status Nothing(KernelContext&) { return absl::OkStatus(); }

}  // namespace

void Register(Registry& registry) {
  registry.Op("NoOp").Group("no_op").Shape(UnknownShape).Doc(R"(Does nothing.

Has no inputs and no outputs. Control edges from and to it synchronize groups of nodes.)");
  registry.Kernel("NoOp", MakeFunctionKernel<Nothing, /*Cheap=*/true>);
}

}  // namespace gradflow::no_op
