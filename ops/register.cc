#include "gradflow/ops/register.h"

namespace gradflow {

void RegisterStandardOps(Registry& registry) {
  RegisterAddN(registry);
  RegisterArithmetic(registry);
  RegisterBatchNorm(registry);
  RegisterBatchNormGrad(registry);
  RegisterBroadcastTo(registry);
  RegisterCast(registry);
  RegisterCheckNumerics(registry);
  RegisterComparison(registry);
  RegisterConcat(registry);
  RegisterConstant(registry);
  RegisterExponential(registry);
  RegisterFakeQuant(registry);
  RegisterFakeQuantGradient(registry);
  RegisterFill(registry);
  RegisterGather(registry);
  RegisterIdentity(registry);
  RegisterLogical(registry);
  RegisterMatMul(registry);
  RegisterMax(registry);
  RegisterMaximum(registry);
  RegisterNoOp(registry);
  RegisterPack(registry);
  RegisterPlaceholder(registry);
  RegisterRange(registry);
  RegisterRelu(registry);
  RegisterReshape(registry);
  RegisterSelect(registry);
  RegisterShape(registry);
  RegisterSlice(registry);
  RegisterSplit(registry);
  RegisterStridedSlice(registry);
  RegisterSum(registry);
  RegisterTile(registry);
  RegisterTranspose(registry);
  RegisterUnary(registry);
}

Registry& GlobalRegistry() {
  // Never destroyed: graphs and sessions of static storage may outlive main().
  static Registry* registry = [] {
    auto* standard = new Registry;
    RegisterStandardOps(*standard);
    return standard;
  }();
  return *registry;
}

}  // namespace gradflow
