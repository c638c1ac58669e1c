// Select and SelectV2.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/elementwise.h"
#include "gradflow/ops/common/strided_copy.h"
#include "gradflow/ops/math/cast_loops.h"

namespace gradflow::select {
namespace {

absl::Status SelectV2Shape(ShapeContext& c) {
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, BroadcastShapes(c.input(1), c.input(2)));
  GRADFLOW_ASSIGN_OR_RETURN(shape, BroadcastShapes(c.input(0), shape));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

// Returns the shape of Select's output, or an error if the shapes do not match.
absl::StatusOr<PartialTensorShape> CheckSelect(const PartialTensorShape& condition,
                                               const PartialTensorShape& t,
                                               const PartialTensorShape& e) {
  const absl::StatusOr<PartialTensorShape> both = t.MergeWith(e);
  if (!both.ok()) {
    return errors::InvalidArgument("t and e must have the same shape, but have ", t.DebugString(),
                                   " and ", e.DebugString());
  }
  const PartialTensorShape& shape = *both;
  if (condition.dims() <= 0) return shape;
  const auto mismatch = [&] {
    return errors::InvalidArgument("condition has shape ", condition.DebugString(),
                                   ", expected a scalar, the shape of t, ", shape.DebugString(),
                                   ", or the shape of its first dimension");
  };
  if (condition.dims() == 1) {
    if (shape.dims() == 0) return mismatch();
    if (shape.dims() > 0 && condition.dim_size(0) >= 0 && shape.dim_size(0) >= 0 &&
        condition.dim_size(0) != shape.dim_size(0)) {
      return mismatch();
    }
    return shape;
  }
  const absl::StatusOr<PartialTensorShape> merged = shape.MergeWith(condition);
  return merged.ok() ? merged : mismatch();
}

absl::Status SelectShape(ShapeContext& c) {
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape,
                            CheckSelect(c.input(0), c.input(1), c.input(2)));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

// ---- Strings, handles and variants ----

// The selected elements. The operands of the loop are the output, the condition, t and e.
template <typename E>
class SelectedObjects {
 public:
  SelectedObjects(const StridedLoop& loop, const KernelContext& ctx)
      : loop_(loop),
        condition_(static_cast<const uint8_t*>(ctx.input(0).raw_data())),
        t_(static_cast<const E*>(ctx.input(1).raw_data())),
        e_(static_cast<const E*>(ctx.input(2).raw_data())) {}

  // Returns element i of the run that starts at `offsets`.
  const E& At(const int64_t* offsets, int64_t i) const {
    return condition_[offsets[1] + i * loop_.inner_stride(1)] != 0
               ? t_[offsets[2] + i * loop_.inner_stride(2)]
               : e_[offsets[3] + i * loop_.inner_stride(3)];
  }

 private:
  const StridedLoop& loop_;
  // Bytes, because a fed bool may be neither 0 nor 1, and reading such a bool is undefined
  // behavior.
  const uint8_t* const condition_;
  const E* const t_;
  const E* const e_;
};

constexpr double kObjectNanoseconds = 20;

// Returns the total length of the selected strings.
double SelectedBytes(const RunContext& run, const StridedLoop& loop,
                     const SelectedObjects<tstring>& selected) {
  // Larger than any memory, and small enough that sums do not overflow.
  constexpr int64_t kEnough = int64_t{1} << 60;
  std::atomic<int64_t> bytes{0};
  loop.ForEachRun(run, kObjectNanoseconds, [&](const int64_t* offsets, int64_t n) {
    if (bytes >= kEnough) return;
    int64_t run_bytes = 0;
    for (int64_t i = 0; i < n; ++i) run_bytes += selected.At(offsets, i).size();
    bytes += run_bytes;
  });
  return static_cast<double>(bytes);
}

template <typename E>
absl::Status SelectObjects(KernelContext& ctx) {
  GRADFLOW_ASSIGN_OR_RETURN(TensorShape shape,
                            BroadcastShapes(ctx.input(1).shape(), ctx.input(2).shape()));
  GRADFLOW_ASSIGN_OR_RETURN(shape, BroadcastShapes(ctx.input(0).shape(), shape));
  const absl::Span<const int64_t> dims = shape.dim_sizes();
  std::vector<StridedLoop::Operand> operands = {{0, RowMajorStrides(dims)}};
  for (int i = 0; i < 3; ++i) {
    operands.push_back({0, BroadcastStrides(ctx.input(i).shape().dim_sizes(), dims)});
  }
  const StridedLoop loop(dims, std::move(operands));
  const SelectedObjects<E> selected(loop, ctx);
  if constexpr (std::is_same_v<E, tstring>) {
    ctx.ExpectStringBytes(SelectedBytes(ctx.run(), loop, selected));
  }
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
  auto* const result = static_cast<E*>(output->raw_data());
  loop.ForEachRun(ctx.run(), kObjectNanoseconds, [&](const int64_t* offsets, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      result[offsets[0] + i * loop.inner_stride(0)] = selected.At(offsets, i);
    }
  });
  return absl::OkStatus();
}

// ---- Elements of a fixed size ----

template <typename E>
void SelectLoop(const void* const* x, const int64_t* strides, void* out, int64_t n) {
  // Bytes, because a fed bool may be neither 0 nor 1, and reading such a bool is undefined
  // behavior.
  const auto* const condition = static_cast<const uint8_t*>(x[0]);
  const E* const t = static_cast<const E*>(x[1]);
  const E* const e = static_cast<const E*>(x[2]);
  E* const result = static_cast<E*>(out);
  if (strides[0] == 0) {
    const int chosen = *condition != 0 ? 1 : 2;
    const E* const from = chosen == 1 ? t : e;
    if (strides[chosen] == 0) {
      std::fill_n(result, n, *from);
    } else if (from != result) {
      std::memcpy(result, from, n * sizeof(E));
    }
  } else {
    SelectElements(sizeof(E), condition, t, strides[1], e, strides[2], result, n);
  }
}

absl::Status SelectV2(KernelContext& ctx) {
  absl::Status status;
  DispatchElement(ctx.input_dtype(1), [&](auto tag) {
    using E = typename decltype(tag)::type;
    if constexpr (kIsObject<E>) {
      status = SelectObjects<E>(ctx);
    } else {
      constexpr int kSize = sizeof(E);
      status = RunElementwise(ctx, {1, kSize, kSize}, kCheapNanoseconds, SelectLoop<E>);
    }
  });
  return status;
}

absl::Status Select(KernelContext& ctx) {
  const Tensor& condition = ctx.input(0);
  const Tensor& t = ctx.input(1);
  GRADFLOW_RETURN_IF_ERROR(CheckSelect(PartialTensorShape(condition.shape()),
                                       PartialTensorShape(t.shape()),
                                       PartialTensorShape(ctx.input(2).shape()))
                               .status());
  if (condition.dims() == 0 || condition.shape() == t.shape()) return SelectV2(ctx);
  // The condition has one bool for each row: it is a column that is broadcast.
  const int64_t rows = t.dim_size(0);
  const int64_t columns = t.NumElements() == 0 ? 0 : t.NumElements() / rows;
  Tensor views[3];
  GRADFLOW_ASSIGN_OR_RETURN(views[0], condition.Reshaped({rows, 1}));
  for (const int i : {1, 2}) {
    GRADFLOW_ASSIGN_OR_RETURN(views[i], ctx.input(i).Reshaped({rows, columns}));
  }
  Tensor result{Tensor::Unset()};
  const DataType dtype = ctx.expected_output_dtype(0);
  KernelContext rows_ctx(absl::MakeSpan(views), absl::MakeSpan(&result, 1),
                         absl::MakeConstSpan(&dtype, 1), ctx.run());
  GRADFLOW_RETURN_IF_ERROR(SelectV2(rows_ctx));
  GRADFLOW_ASSIGN_OR_RETURN(Tensor output, result.Reshaped(t.shape()));
  ctx.set_output(0, std::move(output));
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
      .Shape(SelectV2Shape)
      .Doc(R"(Selects each element from t or e, depending on a condition.

All three inputs are broadcast to one shape as NumPy does.

condition: A tensor of bools.
t: The elements to select where `condition` is true.
e: The elements to select where `condition` is false.
output: The selected elements, of the broadcast shape.
T: The type of `t` and `e`.)");
  registry.Kernel("SelectV2", MakeFunctionKernel<SelectV2>).Types("T", AllDataTypes());

  registry.Op("Select")
      .Group("math_ops")
      .Alias("Where3")
      .Input("condition: bool")
      .Input("t: T")
      .Input("e: T")
      .Output("output: T")
      .Attr("T: type")
      .Shape(SelectShape)
      .Doc(R"(Selects each element, or each row, from t or e, depending on a condition.

condition: A condition for each element, in the shape of `t`; a condition for each row, in a vector
  of the size of the first dimension of `t`; or one condition for all, in a scalar.
t: The elements to select where `condition` is true.
e: The elements to select where `condition` is false, of the shape of `t`.
output: The selected elements, of the shape of `t`.
T: The type of `t` and `e`.)");
  registry.Kernel("Select", MakeFunctionKernel<Select>).Types("T", AllDataTypes());
}

}  // namespace gradflow::select
