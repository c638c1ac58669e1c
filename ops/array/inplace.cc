// InplaceUpdate, InplaceAdd and InplaceSub.
#include <cstdint>
#include <utility>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/accumulate.h"
#include "gradflow/ops/common/indices.h"
#include "gradflow/ops/common/strided_copy.h"

namespace gradflow::inplace {
namespace {

absl::Status CheckShapes(const PartialTensorShape& x, const PartialTensorShape& i,
                         const PartialTensorShape& v) {
  GRADFLOW_RETURN_IF_ERROR(CheckRank("i", i, 1));
  if (x.unknown_rank()) return absl::OkStatus();
  GRADFLOW_RETURN_IF_ERROR(CheckRankAtLeast("x", x, 1));
  PartialTensorShape expected = x;
  expected.set_dim(0, i.unknown_rank() ? -1 : i.dim_size(0));
  if (v.IsCompatibleWith(expected)) return absl::OkStatus();
  return errors::InvalidArgument("v has shape ", v.DebugString(), ", expected ",
                                 expected.DebugString(), ", by x of shape ", x.DebugString(),
                                 " and i of shape ", i.DebugString());
}

absl::Status InplaceShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckShapes(c.input(0), c.input(1), c.input(2)));
  c.set_output(0, c.input(0));
  return absl::OkStatus();
}

template <Accumulation A>
class InplaceKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    accumulate_ = FindAccumulation(A, construction.input_type(0));
    return absl::OkStatus();
  }
  absl::Status Compute(KernelContext& ctx) const override {
    const TensorShape shape = ctx.input(0).shape();
    GRADFLOW_RETURN_IF_ERROR(CheckShapes(shape, ctx.input(1).shape(), ctx.input(2).shape()));
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(OutputCopy(ctx, 0, &output));
    if (shape.num_elements() == 0) return absl::OkStatus();
    const Tensor& updates = ctx.input(2);
    const IndexReader rows(ctx.input(1));
    const int64_t num_rows = shape.dim_size(0);
    const int64_t columns = shape.num_elements() / num_rows;
    const int64_t element = ElementBytes(output->dtype());
    char* to = static_cast<char*>(output->raw_data());
    const char* from = static_cast<const char*>(updates.raw_data());
    for (int64_t i = 0; i < ctx.input(1).NumElements() && !ctx.ShouldStop(); ++i) {
      // Row numbers are taken modulo the number of rows, as in TensorFlow.
      const int64_t row = (rows[i] % num_rows + num_rows) % num_rows;
      accumulate_(to + row * columns * element, 1, from + i * columns * element, 1, columns);
    }
    return absl::OkStatus();
  }

 private:
  AccumulateFn accumulate_ = nullptr;
};

}  // namespace

void Register(Registry& registry) {
  const struct {
    const char* op;
    const char* summary;
    KernelFactory factory;
    DataTypeVector types;
  } ops[] = {
      {"InplaceUpdate", "Replaces rows of a tensor.",
       MakeKernel<InplaceKernel<Accumulation::kUpdate>>, AllDataTypes()},
      {"InplaceAdd", "Adds to rows of a tensor.", MakeKernel<InplaceKernel<Accumulation::kAdd>>,
       AccumulationTypes(Accumulation::kAdd)},
      {"InplaceSub", "Subtracts from rows of a tensor.",
       MakeKernel<InplaceKernel<Accumulation::kSub>>, AccumulationTypes(Accumulation::kSub)},
  };
  for (const auto& op : ops) {
    registry.Op(op.op)
        .Group("array_ops")
        .Input("x: T")
        .Input("i: int32")
        .Input("v: T")
        .Output("y: T")
        .Attr("T: type")
        .Shape(InplaceShape)
        .Doc(absl::StrCat(op.summary, R"(

Updates `x` in place if nothing else reads it, and otherwise a copy. In TensorFlow, other readers of
`x` see the change.

x: A tensor of at least one dimension.
i: A vector: the indices of the rows, modulo the number of rows. Updates of the same row are applied
  in their order.
v: The updates, one for each index.
y: The updated tensor.
T: The type of `x`.)"));
    registry.Kernel(op.op, op.factory).Types("T", op.types);
  }
}

}  // namespace gradflow::inplace
