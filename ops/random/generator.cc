// RngReadAndSkip, RngSkip and NonDeterministicInts.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/random/generator_state.h"
#include "gradflow/ops/random/philox.h"
#include "gradflow/ops/random/streams.h"

namespace gradflow::generator {
namespace {

absl::Status SkipShape(ShapeContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) GRADFLOW_RETURN_IF_ERROR(c.CheckRank(i, 0));
  if (c.num_outputs() > 0) c.set_output(0, TensorShape({kGeneratorStateSize}));
  return absl::OkStatus();
}

absl::Status ReadAndSkip(KernelContext& ctx) {
  GRADFLOW_ASSIGN_OR_RETURN(const int64_t algorithm, ctx.ScalarInt(1, "alg"));
  GRADFLOW_RETURN_IF_ERROR(CheckGeneratorAlgorithm(algorithm));
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckScalar(2, "delta"));
  if (ctx.input_dtype(2) != DT_UINT64) {
    return errors::InvalidArgument("delta must be uint64, but is ",
                                   DataTypeString(ctx.input_dtype(2)));
  }
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, {kGeneratorStateSize}, &output));
  return AdvanceGenerator(ctx, 0, ctx.input(2).span<uint64_t>()[0], output).status();
}

absl::Status Skip(KernelContext& ctx) {
  GRADFLOW_ASSIGN_OR_RETURN(const int64_t algorithm, ctx.ScalarInt(1, "algorithm"));
  GRADFLOW_RETURN_IF_ERROR(CheckGeneratorAlgorithm(algorithm));
  GRADFLOW_ASSIGN_OR_RETURN(const int64_t delta, ctx.ScalarInt(2, "delta"));
  return AdvanceGenerator(ctx, 0, static_cast<uint64_t>(delta)).status();
}

absl::Status IntsShape(ShapeContext& c) {
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, c.ShapeFromInput(0));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status NonDeterministicInts(KernelContext& ctx) {
  GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, ReadShape(ctx));
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
  char* bytes = static_cast<char*>(output->raw_data());
  const auto size = static_cast<int64_t>(output->TotalBytes());
  const Philox stream(SystemRandom(), SystemRandom(), SystemRandom());
  constexpr int64_t kCounterBytes = sizeof(Philox::Numbers);
  ParallelFor(ctx, (size + kCounterBytes - 1) / kCounterBytes, BlockSizeForCost(10),
              [&](int64_t begin, int64_t end) {
                Philox own = stream.Ahead(static_cast<uint64_t>(begin));
                for (int64_t k = begin; k < end; ++k) {
                  const Philox::Numbers numbers = own.Next();
                  const int64_t at = k * kCounterBytes;
                  std::memcpy(bytes + at, numbers.data(), std::min(kCounterBytes, size - at));
                }
              });
  return absl::OkStatus();
}

}  // namespace

void Register(Registry& registry) {
  registry.Op("RngReadAndSkip")
      .Group("random_ops")
      .HandWritten()
      .Input("resource: resource")
      .Input("alg: int32")
      .Input("delta: uint64")
      .Output("value: int64")
      .Stateful()
      .Shape(SkipShape)
      .Doc(R"(Advances the counter of a random generator and returns its old state.

resource: A variable with the state of the generator: the low and the high half of its counter, and
  its key.
alg: The algorithm, a scalar: 1 is Philox, 3 lets the device choose, and the CPU chooses Philox.
delta: The number of random numbers to skip. Each takes 256 counters.
value: The three numbers of the old state.)");
  registry.Kernel("RngReadAndSkip", MakeFunctionKernel<ReadAndSkip, /*Cheap=*/true>);
  registry.Op("RngSkip")
      .Group("random_ops")
      .HandWritten()
      .Input("resource: resource")
      .Input("algorithm: int64")
      .Input("delta: int64")
      .Stateful()
      .Shape(SkipShape)
      .Doc(R"(Advances the counter of a random generator.

resource: A variable with the state of the generator: the low and the high half of its counter, and
  its key.
algorithm: The algorithm, a scalar: 1 is Philox, 3 lets the device choose, and the CPU chooses
  Philox.
delta: The number of random numbers to skip. Each takes 256 counters.)");
  registry.Kernel("RngSkip", MakeFunctionKernel<Skip, /*Cheap=*/true>);
  registry.Op("NonDeterministicInts")
      .Group("random_ops")
      .HandWritten()
      .Input("shape: shape_dtype")
      .Output("output: dtype")
      .Attr("dtype: type = DT_INT64")
      .Attr("shape_dtype: type = DT_INT64")
      .Stateful()
      .Shape(IntsShape)
      .Doc(R"(Returns integers that nobody can predict, from the operating system's random numbers.

shape: A vector: the shape of the result.
output: The random integers.
dtype: The type of the result.
shape_dtype: The type of `shape`.)");
  registry.Kernel("NonDeterministicInts", MakeFunctionKernel<NonDeterministicInts>)
      .Types("dtype", {DT_INT32, DT_INT64, DT_UINT32, DT_UINT64});
}

}  // namespace gradflow::generator
