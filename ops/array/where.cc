// Where.
#include <cstdint>
#include <utility>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/elementwise.h"

namespace gradflow::where {
namespace {

absl::Status WhereShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRankAtLeast(0, 1));
  c.set_output(0, {-1, c.input(0).dims()});
  return absl::OkStatus();
}

template <typename T>
bool IsTrue(const T& value) {
  return static_cast<ComputeType<T>>(value) != ComputeType<T>(0);
}
template <typename Storage, DataType Id>
bool IsTrue(const StorageType<Storage, Id>& value) {
  return value.value != 0;
}

// Integers of the same size share an instantiation.
template <typename T>
using Stored = WrappingType<T>;

template <typename T>
absl::Status Where(KernelContext& ctx) {
  constexpr int64_t kBlock = 16 * 1024;
  const Tensor& input = ctx.input(0);
  const TensorShape& shape = input.shape();
  GRADFLOW_RETURN_IF_ERROR(CheckRankAtLeast("input", shape, 1));
  const T* values = static_cast<const T*>(input.raw_data());
  const int64_t size = input.NumElements();
  // Counts the elements of each block. The counts determine where the indices of a block begin.
  Tensor starts;
  const int64_t blocks = NumBlocks(size, kBlock);
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_INT64, {blocks}, &starts));
  const absl::Span<int64_t> counts = starts.span<int64_t>();
  ParallelFor(ctx, size, kBlock, [&](int64_t begin, int64_t end) {
    int64_t count = 0;
    for (int64_t i = begin; i < end; ++i) count += IsTrue(values[i]) ? 1 : 0;
    counts[begin / kBlock] = count;
  });
  // The counts of skipped blocks are not valid.
  if (ctx.ShouldStop()) return absl::CancelledError("the run is stopped");
  int64_t total = 0;
  for (int64_t& count : counts) total += std::exchange(count, total);
  const int rank = shape.dims();
  GRADFLOW_ASSIGN_OR_RETURN(const TensorShape output_shape, TensorShape::Make({total, rank}));
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, output_shape, &output));
  int64_t* indices = static_cast<int64_t*>(output->raw_data());
  ParallelFor(ctx, size, kBlock, [&](int64_t begin, int64_t end) {
    int64_t* to = indices + counts[begin / kBlock] * rank;
    for (int64_t i = begin; i < end; ++i) {
      if (!IsTrue(values[i])) continue;
      int64_t rest = i;
      for (int d = rank - 1; d > 0; --d) {
        to[d] = rest % shape.dim_size(d);
        rest /= shape.dim_size(d);
      }
      to[0] = rest;
      to += rank;
    }
  });
  return absl::OkStatus();
}

}  // namespace

void Register(Registry& registry) {
  registry.Op("Where")
      .Group("array_ops")
      .Rename("input", "condition")
      .Input("input: T")
      .Output("index: int64")
      .Attr(
          "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, "
          "bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64, bool} = DT_BOOL")
      .Shape(WhereShape)
      .Doc(R"(Returns the indices of the elements that are true, or not zero.

input: A tensor of at least one dimension. NaN is not zero.
index: A matrix with a row for each such element, in row-major order: its index in each dimension.
T: The type of `input`.)");
  using Types = ConcatTypes<ConcatTypes<NumberTypes, QuantizedTypes>::type, TypeList<bool>>::type;
  ForEachType(Types(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    registry.Kernel("Where", MakeFunctionKernel<Where<Stored<T>>>).template Type<T>("T");
  });
}

}  // namespace gradflow::where
