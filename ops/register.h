// The families of ops. Each is one file of this folder, with one function that registers
// definitions, shape functions and kernels; RegisterStandardOps calls them all.
//
// A new family adds its function here and in register.cc, each in alphabetical order.
#ifndef GRADFLOW_OPS_REGISTER_H_
#define GRADFLOW_OPS_REGISTER_H_

#include "gradflow/core/registry.h"

#pragma GCC visibility push(default)
namespace gradflow {

// Registers every op of the library. Faults, such as an op that is there already, are in
// registry.status() afterwards.
void RegisterStandardOps(Registry& registry);

// Registers the family of this name.
void RegisterAddN(Registry& registry);
void RegisterArithmetic(Registry& registry);
void RegisterBatchNorm(Registry& registry);
void RegisterBatchNormGrad(Registry& registry);
void RegisterBroadcastTo(Registry& registry);
void RegisterCast(Registry& registry);
void RegisterCheckNumerics(Registry& registry);
void RegisterComparison(Registry& registry);
void RegisterConcat(Registry& registry);
void RegisterConstant(Registry& registry);
void RegisterExponential(Registry& registry);
void RegisterFakeQuant(Registry& registry);
void RegisterFakeQuantGradient(Registry& registry);
void RegisterFill(Registry& registry);
void RegisterGather(Registry& registry);
void RegisterIdentity(Registry& registry);
void RegisterLogical(Registry& registry);
void RegisterMatMul(Registry& registry);
void RegisterMax(Registry& registry);
void RegisterMaximum(Registry& registry);
void RegisterNoOp(Registry& registry);
void RegisterPack(Registry& registry);
void RegisterPlaceholder(Registry& registry);
void RegisterRange(Registry& registry);
void RegisterRelu(Registry& registry);
void RegisterReshape(Registry& registry);
void RegisterSelect(Registry& registry);
void RegisterShape(Registry& registry);
void RegisterSlice(Registry& registry);
void RegisterSplit(Registry& registry);
void RegisterStridedSlice(Registry& registry);
void RegisterSum(Registry& registry);
void RegisterTile(Registry& registry);
void RegisterTranspose(Registry& registry);
void RegisterUnary(Registry& registry);

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_OPS_REGISTER_H_
