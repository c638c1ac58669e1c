// RandomShuffle and StatelessShuffle: put the rows of a tensor in random order.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/strided_copy.h"
#include "gradflow/ops/random/philox.h"
#include "gradflow/ops/random/streams.h"

namespace gradflow::random_shuffle {
namespace {

// Rows are chosen with 32-bit numbers.
constexpr int64_t kMaxRows = int64_t{1} << 32;
// The number of steps between checks for a stop of the run.
constexpr int64_t kStepsPerLook = int64_t{1} << 16;

// Sets `order` to the order that the stream chooses with the Fisher-Yates method. The order is
// unspecified if the run is stopped.
void Shuffle(const RunContext& run, const Philox& stream, int64_t* order, int64_t size) {
  std::iota(order, order + size, int64_t{0});
  PhiloxReader reader(stream);
  for (int64_t i = 0; i + 1 < size; ++i) {
    if (i % kStepsPerLook == 0 && run.ShouldStop()) return;
    std::swap(order[i], order[i + reader.Next() % (size - i)]);
  }
}

bool HasOneOrder(const Tensor& value) {
  return value.dims() == 0 || value.dim_size(0) < 2 || value.NumElements() == 0;
}

absl::Status CheckRows(const Tensor& value) {
  if (HasOneOrder(value) || value.dim_size(0) < kMaxRows) return absl::OkStatus();
  return errors::InvalidArgument("value must have less than ", kMaxRows, " rows, but has ",
                                 value.dim_size(0));
}

// Sets output 0 to the rows of `value` in the order that `stream` chooses.
absl::Status ShuffleRows(KernelContext& ctx, const Philox& stream) {
  const Tensor value = ctx.input(0);
  const int64_t rows = value.dim_size(0);
  Tensor order;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_INT64, TensorShape({rows}), &order));
  Shuffle(ctx.run(), stream, order.flat<int64_t>().data(), rows);
  if (value.dtype() == DT_STRING) ctx.ExpectStringBytes(InputStringBytes(ctx, 0, 1));
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, value.shape(), &output));
  const int64_t inner = value.NumElements() / rows;
  const int64_t* const from = order.flat<int64_t>().data();
  DispatchElement(value.dtype(), [&](auto tag) {
    using E = typename decltype(tag)::type;
    const E* const source = static_cast<const E*>(value.raw_data());
    E* const target = static_cast<E*>(output->raw_data());
    const double cost = 5 + 0.05 * static_cast<double>(inner * sizeof(E));
    ParallelFor(ctx, rows, BlockSizeForCost(cost), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        std::copy_n(source + from[row] * inner, inner, target + row * inner);
      }
    });
  });
  return absl::OkStatus();
}

class RandomShuffle final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) { return state_.Init(construction); }

  absl::Status Compute(KernelContext& ctx) const override {
    const Tensor& value = ctx.input(0);
    GRADFLOW_RETURN_IF_ERROR(CheckRows(value));
    if (HasOneOrder(value)) {
      ctx.set_output(0, value);
      return absl::OkStatus();
    }
    // Every row except one takes a number. The next run starts at the next counter.
    return ShuffleRows(ctx, state_.Reserve((value.dim_size(0) - 1 + 3) / 4));
  }

 private:
  StatefulStream state_;
};

absl::Status StatelessShuffle(KernelContext& ctx) {
  const Tensor& value = ctx.input(0);
  GRADFLOW_ASSIGN_OR_RETURN(const Philox stream, KeyStream(ctx, 1));
  GRADFLOW_RETURN_IF_ERROR(CheckRows(value));
  if (HasOneOrder(value)) {
    ctx.set_output(0, value);
    return absl::OkStatus();
  }
  return ShuffleRows(ctx, stream);
}

absl::Status StatelessShuffleShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckKeyShapes(c, 1));
  return UnchangedShape(c);
}

}  // namespace

void Register(Registry& registry) {
  registry.Op("RandomShuffle")
      .Group("random_ops")
      .Input("value: T")
      .Output("output: T")
      .Attr("seed: int = 0")
      .Attr("seed2: int = 0")
      .Attr("T: type")
      .Stateful()
      .Shape(UnchangedShape)
      .Doc(R"(Returns a tensor with its first dimension in random order.

value: A tensor. A scalar does not change.
output: The rows of `value`, each once.
seed: With `seed2`, selects the stream of orders, which each run continues. If both are zero, the
  system selects one.
seed2: The second half of the seed.
T: The type of `value`.)");
  registry.Kernel("RandomShuffle", MakeKernel<RandomShuffle>).Types("T", AllDataTypes());

  registry.Op("StatelessShuffle")
      .Group("stateless_random_ops_v2")
      .Input("value: T")
      .Input("key: uint64")
      .Input("counter: uint64")
      .Input("alg: int32")
      .Output("output: T")
      .Attr("T: type")
      .Shape(StatelessShuffleShape)
      .Doc(R"(Returns a tensor with its first dimension in the order that a key selects.

value: A tensor. A scalar does not change.
key: A vector of one number: the key of Philox.
counter: A vector: its first two numbers are the counter of Philox, low half first.
alg: The algorithm: 1 is Philox, 3 lets the device choose, and the CPU chooses Philox.
output: The rows of `value`, each once.
T: The type of `value`.)");
  registry.Kernel("StatelessShuffle", MakeFunctionKernel<StatelessShuffle>)
      .Types("T", AllDataTypes());
}

}  // namespace gradflow::random_shuffle
