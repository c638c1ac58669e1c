// Ops that return the keys, counters and algorithms of version 2 stateless ops.
#include <cstdint>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/random/streams.h"

namespace gradflow::random_key {
namespace {

// Philox is the only algorithm of the CPU.
constexpr int32_t kAlgorithm = 1;

absl::Status KeyShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckSeedShape(c, 0));
  c.set_output(0, PartialTensorShape({1}));
  c.set_output(1, PartialTensorShape({2}));
  if (c.num_outputs() == 3) c.set_output(2, PartialTensorShape(TensorShape()));
  return absl::OkStatus();
}

absl::Status GetKey(KernelContext& ctx) {
  GRADFLOW_ASSIGN_OR_RETURN(const KeyAndCounter seed, ReadSeed(ctx, 0));
  Tensor* key = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, {1}, &key));
  Tensor* counter = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(1, {2}, &counter));
  key->flat<uint64_t>()(0) = seed.key;
  counter->flat<uint64_t>()(0) = seed.counter[0];
  counter->flat<uint64_t>()(1) = seed.counter[1];
  if (ctx.num_outputs() == 3) ctx.set_output(2, Tensor(kAlgorithm));
  return absl::OkStatus();
}

absl::Status GetAlgorithm(KernelContext& ctx) {
  ctx.set_output(0, Tensor(kAlgorithm));
  return absl::OkStatus();
}

}  // namespace

void Register(Registry& registry) {
  registry.Op("StatelessRandomGetKeyCounter")
      .Group("stateless_random_ops_v2")
      .Input("seed: Tseed")
      .Output("key: uint64")
      .Output("counter: uint64")
      .Attr("Tseed: {int32, int64} = DT_INT64")
      .Shape(KeyShape)
      .Doc(R"(Returns the key and the counter of Philox that a seed stands for.

seed: Two numbers.
key: A vector of one number.
counter: A vector of two numbers.
Tseed: The type of `seed`.)");
  registry.Kernel("StatelessRandomGetKeyCounter", MakeFunctionKernel<GetKey, true>);

  registry.Op("StatelessRandomGetKeyCounterAlg")
      .Group("stateless_random_ops_v2")
      .Input("seed: Tseed")
      .Output("key: uint64")
      .Output("counter: uint64")
      .Output("alg: int32")
      .Attr("Tseed: {int32, int64} = DT_INT64")
      .Shape(KeyShape)
      .Doc(R"(Returns the key, the counter and the algorithm that a seed stands for.

seed: Two numbers.
key: A vector of one number.
counter: A vector of two numbers.
alg: The algorithm, which is 1, Philox.
Tseed: The type of `seed`.)");
  registry.Kernel("StatelessRandomGetKeyCounterAlg", MakeFunctionKernel<GetKey, true>);

  registry.Op("StatelessRandomGetAlg")
      .Group("stateless_random_ops_v2")
      .Output("alg: int32")
      .Stateful()
      .Shape(ScalarShape)
      .Doc(R"(Returns the algorithm of random numbers that suits the device.

alg: The algorithm, which is 1, Philox.)");
  registry.Kernel("StatelessRandomGetAlg", MakeFunctionKernel<GetAlgorithm, true>);
}

}  // namespace gradflow::random_key
