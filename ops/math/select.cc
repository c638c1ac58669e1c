#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/strided_copy.h"

namespace gradflow::select {
namespace {

absl::Status SelectShape(ShapeContext& c) {
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, BroadcastShapes(c.input(1), c.input(2)));
  GRADFLOW_ASSIGN_OR_RETURN(shape, BroadcastShapes(c.input(0), shape));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

// The selected elements, by position in a loop over the output, the condition, t and e.
template <typename E>
class Selected {
 public:
  // `data` holds the elements of the condition, t and e.
  Selected(const StridedLoop& loop, const void* const data[3])
      : loop_(loop),
        condition_(static_cast<const uint8_t*>(data[0])),
        t_(static_cast<const E*>(data[1])),
        e_(static_cast<const E*>(data[2])) {}

  // Returns element i of a run that starts at `offsets`.
  const E& At(const int64_t* offsets, int64_t i) const {
    return condition_[offsets[1] + i * loop_.inner_stride(1)] != 0
               ? t_[offsets[2] + i * loop_.inner_stride(2)]
               : e_[offsets[3] + i * loop_.inner_stride(3)];
  }

 private:
  const StridedLoop& loop_;
  // As bytes: reading a bool other than 0 and 1, which may have been fed, is undefined behaviour.
  const uint8_t* const condition_;
  const E* const t_;
  const E* const e_;
};

constexpr double kStringNanoseconds = 20;

// Returns the number of characters of the selected strings.
double SelectedBytes(const RunContext& run, const StridedLoop& loop, const void* const data[3]) {
  // More than any memory, and small enough that sums do not overflow.
  constexpr int64_t kEnough = int64_t{1} << 60;
  const Selected<tstring> selected(loop, data);
  std::atomic<int64_t> bytes{0};
  loop.ForEachRun(run, kStringNanoseconds, [&](const int64_t* offsets, int64_t n) {
    if (bytes >= kEnough) return;
    int64_t run_bytes = 0;
    for (int64_t i = 0; i < n; ++i) run_bytes += selected.At(offsets, i).size();
    bytes += run_bytes;
  });
  return static_cast<double>(bytes);
}

absl::Status Select(KernelContext& ctx) {
  GRADFLOW_ASSIGN_OR_RETURN(TensorShape shape,
                            BroadcastShapes(ctx.input(1).shape(), ctx.input(2).shape()));
  GRADFLOW_ASSIGN_OR_RETURN(shape, BroadcastShapes(ctx.input(0).shape(), shape));
  const absl::Span<const int64_t> dims = shape.dim_sizes();
  std::vector<StridedLoop::Operand> operands = {{0, RowMajorStrides(dims)}};
  const void* data[3];
  for (int i = 0; i < 3; ++i) {
    operands.push_back({0, BroadcastStrides(ctx.input(i).shape().dim_sizes(), dims)});
    data[i] = ctx.input(i).raw_data();
  }
  const StridedLoop loop(dims, std::move(operands));
  // Computes in place in an input that is not broadcast and not needed elsewhere.
  const Tensor& first = ctx.input(1);
  const int forward = first.NumElements() == shape.num_elements() && first.CanBeReused() ? 1 : 2;
  if (first.dtype() == DT_STRING) ctx.ExpectStringBytes(SelectedBytes(ctx.run(), loop, data));
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.ForwardInputOrAllocateOutput(forward, 0, shape, &output));
  DispatchElement(output->dtype(), [&](auto tag) {
    using E = typename decltype(tag)::type;
    E* result = static_cast<E*>(output->raw_data());
    const Selected<E> selected(loop, data);
    const double nanoseconds = std::is_same_v<E, tstring> ? kStringNanoseconds : 1;
    loop.ForEachRun(ctx.run(), nanoseconds, [&](const int64_t* offsets, int64_t n) {
      for (int64_t i = 0; i < n; ++i) {
        result[offsets[0] + i * loop.inner_stride(0)] = selected.At(offsets, i);
      }
    });
  });
  return absl::OkStatus();
}

}  // namespace

void Register(Registry& registry) {
  registry.Op("SelectV2")
      .Group("math_ops")
      .Input("condition: bool")
      .Input("t: T")
      .Input("e: T")
      .Output("output: T")
      .Attr("T: type")
      .Shape(SelectShape)
      .Doc(R"(Selects each element from t or e, depending on a condition.

All three inputs are broadcast to one shape as NumPy does.

condition: A tensor of bools.
t: The elements to select where `condition` is true.
e: The elements to select where `condition` is false.
output: The selected elements, of the broadcast shape.
T: The type of `t` and `e`.)");
  registry.Kernel("SelectV2", MakeFunctionKernel<Select>);
}

}  // namespace gradflow::select
