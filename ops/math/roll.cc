// Roll.
#include <algorithm>
#include <utility>
#include <vector>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/strided_copy.h"

namespace gradflow::roll {
namespace {

absl::Status CheckShiftAndAxis(const PartialTensorShape& shift, const PartialTensorShape& axis) {
  for (const auto& [name, shape] : {std::pair("shift", &shift), std::pair("axis", &axis)}) {
    if (shape->dims() > 1) {
      return errors::InvalidArgument(name, " must be a scalar or a 1-D vector, but has shape ",
                                     shape->DebugString());
    }
  }
  if (!shift.IsCompatibleWith(axis)) {
    return errors::InvalidArgument("shift and axis must have the same size, but have shapes ",
                                   shift.DebugString(), " and ", axis.DebugString());
  }
  return absl::OkStatus();
}

absl::Status RollShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRankAtLeast(0, 1));
  GRADFLOW_RETURN_IF_ERROR(CheckShiftAndAxis(c.input(1), c.input(2)));
  std::vector<int64_t> axes;
  GRADFLOW_ASSIGN_OR_RETURN(const bool known, c.IntsFromInput(2, &axes));
  if (known && !c.input(0).unknown_rank()) {
    for (const int64_t axis : axes) {
      GRADFLOW_RETURN_IF_ERROR(CanonicalAxis("axis", axis, c.input(0).dims()).status());
    }
  }
  c.set_output(0, c.input(0));
  return absl::OkStatus();
}

// The dimensions that are rolled.
struct Rolled {
  // Sizes, shifts in (0, size), and row-major strides.
  DimVector dims;
  DimVector shifts;
  DimVector strides;
};

Rolled MakeRolled(const TensorShape& shape, const DimVector& shifts) {
  Rolled rolled;
  const DimVector strides = RowMajorStrides(shape.dim_sizes());
  for (int d = 0; d < shape.dims(); ++d) {
    if (shifts[d] == 0) continue;
    rolled.dims.push_back(shape.dim_size(d));
    rolled.shifts.push_back(shifts[d]);
    rolled.strides.push_back(strides[d]);
  }
  return rolled;
}

// Copies rows. A row consists of the last rolled dimension and all dimensions after it, and is
// copied in two parts.
template <typename E>
void CopyRolled(const RunContext& run, const Rolled& rolled, const Tensor& input, Tensor* output) {
  const E* from = static_cast<const E*>(input.raw_data());
  E* to = static_cast<E*>(output->raw_data());
  const int last = static_cast<int>(rolled.dims.size()) - 1;
  const int64_t row = rolled.dims[last] * rolled.strides[last];
  const int64_t head = rolled.shifts[last] * rolled.strides[last];
  const int64_t rows = input.NumElements() / row;
  const double cost = 5.0 + 5 * last + row * CopyNanoseconds(input.dtype());
  ParallelFor(run, rows, BlockSizeForCost(cost), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      int64_t source = r * row;
      for (int d = 0; d < last; ++d) {
        const int64_t index = r * row / rolled.strides[d] % rolled.dims[d];
        const bool wraps = index < rolled.shifts[d];
        source += ((wraps ? rolled.dims[d] : 0) - rolled.shifts[d]) * rolled.strides[d];
      }
      std::copy_n(from + source + row - head, head, to + r * row);
      std::copy_n(from + source, row - head, to + r * row + head);
    }
  });
}

absl::Status Roll(KernelContext& ctx) {
  const Tensor& input = ctx.input(0);
  GRADFLOW_RETURN_IF_ERROR(CheckRankAtLeast("input", input.shape(), 1));
  GRADFLOW_RETURN_IF_ERROR(CheckShiftAndAxis(ctx.input(1).shape(), ctx.input(2).shape()));
  GRADFLOW_ASSIGN_OR_RETURN(const DimVector amounts, ctx.Ints(1, "shift"));
  GRADFLOW_ASSIGN_OR_RETURN(const DimVector axes, ctx.Ints(2, "axis"));
  DimVector shifts(input.dims());
  for (size_t i = 0; i < axes.size(); ++i) {
    GRADFLOW_ASSIGN_OR_RETURN(const int d, CanonicalAxis("axis", axes[i], input.dims()));
    const int64_t size = input.dim_size(d);
    if (size == 0) continue;
    // Both shifts are in [0, size). Adding them before the modulus may overflow.
    const int64_t amount = (amounts[i] % size + size) % size;
    shifts[d] = shifts[d] >= size - amount ? shifts[d] - (size - amount) : shifts[d] + amount;
  }
  const bool moves = std::any_of(shifts.begin(), shifts.end(), [](int64_t s) { return s != 0; });
  if (!moves || input.NumElements() == 0) {
    ctx.set_output(0, input);
    return absl::OkStatus();
  }
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, input.shape(), &output));
  const Rolled rolled = MakeRolled(input.shape(), shifts);
  DispatchElement(input.dtype(), [&](auto tag) {
    CopyRolled<typename decltype(tag)::type>(ctx.run(), rolled, input, output);
  });
  return absl::OkStatus();
}

}  // namespace

void Register(Registry& registry) {
  registry.Op("Roll")
      .Group("manip_ops")
      .Input("input: T")
      .Input("shift: Tshift")
      .Input("axis: Taxis")
      .Output("output: T")
      .Attr("T: type")
      .Attr("Tshift: {int32, int64}")
      .Attr("Taxis: {int32, int64}")
      .Shape(RollShape)
      .Doc(R"(Shifts the elements of a tensor along dimensions, cyclically.

Elements that pass the end of a dimension come back at its beginning.

input: A tensor of at least one dimension.
shift: A scalar or vector: by how many positions to shift, towards larger indices, or towards
  smaller indices if negative.
axis: A scalar or vector of the same shape: the dimension of each shift. Negative values count from
  the end. Shifts of a dimension that is named several times are added.
output: The shifted tensor: element i + shift is element i of `input`.
T: The type of `input`.
Tshift: The type of `shift`.
Taxis: The type of `axis`.)");
  registry.Kernel("Roll", MakeFunctionKernel<Roll>).Types("T", AllDataTypes());
}

}  // namespace gradflow::roll
