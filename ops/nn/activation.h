// Definitions that the activation ops and the ops of their gradients share.
#ifndef GRADFLOW_OPS_NN_ACTIVATION_H_
#define GRADFLOW_OPS_NN_ACTIVATION_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/types.h"
#include "gradflow/ops/common/elementwise.h"

namespace gradflow {

// Specs of attribute T of activations.
inline constexpr char kRealActivationTypes[] =
    "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}";
inline constexpr char kFloatActivationTypes[] = "T: {half, bfloat16, float, double}";

// Registers the definition of an activation. The output has the shape of the input `features`.
// `alpha` is the spec of an attribute that comes first, or empty. `doc` is the documentation
// without the arguments.
void RegisterActivation(Registry& registry, absl::string_view op, absl::string_view alpha,
                        absl::string_view types, absl::string_view doc);
// Registers the definition of the op that computes the gradient. Its inputs are `gradients` and
// `known`, which is "features" or "outputs". `alpha` is as in RegisterActivation().
void RegisterActivationGrad(Registry& registry, absl::string_view op, absl::string_view known,
                            absl::string_view alpha, absl::string_view types,
                            absl::string_view doc);

// Returns a kernel that runs `loop` on two inputs, which must have the same shape. The loop expects
// elements of `size` bytes.
std::unique_ptr<OpKernel> NewActivationGradKernel(const KernelConstruction& construction,
                                                  ElementwiseLoop loop, int size,
                                                  double nanoseconds);
template <ElementwiseLoop Loop, int Size, int Picoseconds>
absl::StatusOr<std::unique_ptr<OpKernel>> MakeActivationGradKernel(
    const KernelConstruction& construction) {
  return NewActivationGradKernel(construction, Loop, Size, Picoseconds / 1000.0);
}

// Registers kernels for floating-point types. half and bfloat16 share the float loop.
template <ElementwiseLoop FloatLoop, ElementwiseLoop DoubleLoop, int Picoseconds>
void RegisterFloatActivation(Registry& registry, absl::string_view op) {
  registry.Kernel(op, MakeUnaryKernel<FloatLoop, sizeof(float), Picoseconds>)
      .Types("T", {DT_FLOAT, DT_HALF, DT_BFLOAT16});
  registry.Kernel(op, MakeUnaryKernel<DoubleLoop, sizeof(double), 2 * Picoseconds>)
      .Types("T", {DT_DOUBLE});
}
template <ElementwiseLoop FloatLoop, ElementwiseLoop DoubleLoop, int Picoseconds>
void RegisterFloatActivationGrad(Registry& registry, absl::string_view op) {
  registry.Kernel(op, MakeActivationGradKernel<FloatLoop, sizeof(float), Picoseconds>)
      .Types("T", {DT_FLOAT, DT_HALF, DT_BFLOAT16});
  registry.Kernel(op, MakeActivationGradKernel<DoubleLoop, sizeof(double), 2 * Picoseconds>)
      .Types("T", {DT_DOUBLE});
}
// Registers kernels of the functor F for all real types.
template <typename F, typename... Ts>
void RegisterRealActivationGrad(Registry& registry, absl::string_view op, TypeList<Ts...>) {
  (registry
       .Kernel(op,
               MakeActivationGradKernel<internal::kBinaryLoop<F, ComputeType<Ts>, ComputeType<Ts>>,
                                        sizeof(ComputeType<Ts>), internal::kPicoseconds<F>>)
       .template Type<Ts>("T"),
   ...);
}

}  // namespace gradflow

#endif  // GRADFLOW_OPS_NN_ACTIVATION_H_
