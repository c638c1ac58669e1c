#include "gradflow/ops/common/elementwise.h"

#include <utility>
#include <vector>

#include "gradflow/core/parallel.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/strided_copy.h"

namespace gradflow {
namespace internal {
namespace {

size_t ElementSize(DataType dtype) {
  return dtype == DT_STRING ? sizeof(tstring) : DataTypeSize(dtype);
}

// Returns an error if input i has another element size than the kernel, which reads raw memory.
absl::Status CheckElementSize(const KernelContext& ctx, int i, size_t element_size) {
  if (ElementSize(ctx.input_dtype(i)) == element_size) return absl::OkStatus();
  return errors::InvalidArgument("input ", i, " has type ", DataTypeString(ctx.input_dtype(i)),
                                 ", expected a type with elements of ", element_size, " bytes");
}

// Calls fn(begin, end) for blocks that cover all elements. Few elements are always one block, which
// skips computing the block size.
template <typename F>
void ForEachBlock(const KernelContext& ctx, int64_t num_elements, double nanoseconds, F fn) {
  constexpr int64_t kFew = 256;
  if (num_elements > kFew) {
    ParallelFor(ctx, num_elements, BlockSizeForCost(nanoseconds), fn);
  } else if (num_elements > 0) {
    fn(0, num_elements);
  }
}

const char* Bytes(const Tensor& tensor) { return static_cast<const char*>(tensor.raw_data()); }

// RunBinary without broadcasting, the most frequent case.
absl::Status RunSameShape(KernelContext& ctx, size_t element_size, double nanoseconds,
                          BinaryLoop loop) {
  const Tensor& x = ctx.input(0);
  const Tensor& y = ctx.input(1);
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(
      ctx.ForwardInputOrAllocateOutput(x.CanBeReused() ? 0 : 1, 0, x.shape(), &output));
  const size_t out_size = ElementSize(output->dtype());
  char* out = static_cast<char*>(output->raw_data());
  ForEachBlock(ctx, output->NumElements(), nanoseconds, [&](int64_t begin, int64_t end) {
    loop(Bytes(x) + begin * element_size, 1, Bytes(y) + begin * element_size, 1,
         out + begin * out_size, end - begin);
  });
  return absl::OkStatus();
}

}  // namespace

absl::Status RunUnary(KernelContext& ctx, size_t element_size, double nanoseconds, UnaryLoop loop) {
  GRADFLOW_RETURN_IF_ERROR(CheckElementSize(ctx, 0, element_size));
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.ForwardInputOrAllocateOutput(0, 0, ctx.input(0).shape(), &output));
  const char* x = Bytes(ctx.input(0));
  char* out = static_cast<char*>(output->raw_data());
  const size_t out_size = ElementSize(output->dtype());
  ForEachBlock(ctx, output->NumElements(), nanoseconds, [&](int64_t begin, int64_t end) {
    loop(x + begin * element_size, out + begin * out_size, end - begin);
  });
  return absl::OkStatus();
}

absl::Status RunBinary(KernelContext& ctx, size_t element_size, double nanoseconds,
                       BinaryLoop loop) {
  for (int i = 0; i < 2; ++i) {
    GRADFLOW_RETURN_IF_ERROR(CheckElementSize(ctx, i, element_size));
  }
  const Tensor& x = ctx.input(0);
  const Tensor& y = ctx.input(1);
  if (x.shape() == y.shape()) return RunSameShape(ctx, element_size, nanoseconds, loop);
  GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, BroadcastShapes(x.shape(), y.shape()));
  // An input with as many elements as the output is not broadcast: it is read at the index that is
  // written, so the output may overwrite it.
  const bool over_x = x.NumElements() == shape.num_elements() && x.CanBeReused();
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.ForwardInputOrAllocateOutput(over_x ? 0 : 1, 0, shape, &output));

  const absl::Span<const int64_t> dims = shape.dim_sizes();
  const StridedLoop runs(dims, {{0, BroadcastStrides(x.shape().dim_sizes(), dims)},
                                {0, BroadcastStrides(y.shape().dim_sizes(), dims)},
                                {0, RowMajorStrides(dims)}});
  const int64_t x_stride = runs.inner_stride(0);
  const int64_t y_stride = runs.inner_stride(1);
  const size_t out_size = ElementSize(output->dtype());
  char* out = static_cast<char*>(output->raw_data());
  runs.ForEachRun(ctx.run(), nanoseconds, [&](const int64_t* offsets, int64_t n) {
    loop(Bytes(x) + offsets[0] * element_size, x_stride, Bytes(y) + offsets[1] * element_size,
         y_stride, out + offsets[2] * out_size, n);
  });
  return absl::OkStatus();
}

}  // namespace internal
}  // namespace gradflow
