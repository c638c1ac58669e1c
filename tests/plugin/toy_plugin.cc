// The plugin of plugin_test.cc. The environment variable GRADFLOW_TOY_PLUGIN selects a fault.
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "gradflow/core/shape_fns.h"
#include "gradflow/io/plugin.h"

namespace {

absl::Status Negate(gradflow::KernelContext& ctx) {
  gradflow::Tensor* y;
  if (absl::Status status = ctx.AllocateOutput(0, ctx.input(0).shape(), &y); !status.ok()) {
    return status;
  }
  for (int64_t i = 0; i < y->NumElements(); ++i) {
    y->flat<float>()(i) = -ctx.input(0).flat<float>()(i);
  }
  return absl::OkStatus();
}

void RegisterToy(gradflow::Registry& registry) {
  const char* variable = std::getenv("GRADFLOW_TOY_PLUGIN");
  const std::string wanted = variable == nullptr ? "" : variable;
  registry.Op("ToyNegate").Input("x: float").Output("y: float").Shape(gradflow::UnchangedShape);
  registry.Kernel("ToyNegate", gradflow::MakeFunctionKernel<Negate>);
  registry.Kernel("Relu", gradflow::MakeFunctionKernel<Negate>).Type<float>("T").Label("toy");
  if (wanted == "an op that is there") registry.Op("Relu").Input("x: float").Output("y: float");
  if (wanted == "an exception") throw std::runtime_error("out of order");
}

}  // namespace

GRADFLOW_PLUGIN(RegisterToy)
