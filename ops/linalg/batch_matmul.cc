// BatchMatMul, BatchMatMulV2 and BatchMatMulV3.
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gradflow/core/fused_steps.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/data_types.h"
#include "gradflow/ops/linalg/integer_batch_matmul.h"
#include "gradflow/ops/linalg/product.h"

namespace gradflow::batch_matmul {
namespace {

// Returns the shape of the product of batches. Unless `broadcast` is true, the batch dimensions
// must be equal. The shape is unknown if a rank is unknown.
absl::StatusOr<PartialTensorShape> ProductShape(const PartialTensorShape& x,
                                                const PartialTensorShape& y, bool adj_x, bool adj_y,
                                                bool broadcast) {
  for (const PartialTensorShape* shape : {&x, &y}) {
    GRADFLOW_RETURN_IF_ERROR(CheckRankAtLeast(shape == &x ? "x" : "y", *shape, 2));
  }
  if (x.unknown_rank() || y.unknown_rank()) return PartialTensorShape();
  const auto x_dims = x.dim_sizes();
  const auto y_dims = y.dim_sizes();
  const int64_t x_inner = x_dims[x_dims.size() - (adj_x ? 2 : 1)];
  const int64_t y_inner = y_dims[y_dims.size() - (adj_y ? 1 : 2)];
  if (x_inner >= 0 && y_inner >= 0 && x_inner != y_inner) {
    return errors::InvalidArgument("inner dimensions must match: x has shape ", x.DebugString(),
                                   adj_x ? " (adjoint)" : "", ", y has shape ", y.DebugString(),
                                   adj_y ? " (adjoint)" : "");
  }
  const PartialTensorShape x_batch(x_dims.first(x_dims.size() - 2));
  const PartialTensorShape y_batch(y_dims.first(y_dims.size() - 2));
  PartialTensorShape batch;
  if (broadcast) {
    if (!CanBroadcast(x_batch, y_batch)) {
      return errors::InvalidArgument("batch dimensions cannot be broadcast together: x has shape ",
                                     x.DebugString(), ", y has shape ", y.DebugString());
    }
    GRADFLOW_ASSIGN_OR_RETURN(batch, BroadcastShapes(x_batch, y_batch));
  } else {
    if (!x_batch.IsCompatibleWith(y_batch)) {
      return errors::InvalidArgument("batch dimensions must be equal: x has shape ",
                                     x.DebugString(), ", y has shape ", y.DebugString());
    }
    GRADFLOW_ASSIGN_OR_RETURN(batch, x_batch.MergeWith(y_batch));
  }
  DimVector dims(batch.dim_sizes().begin(), batch.dim_sizes().end());
  dims.push_back(x_dims[x_dims.size() - (adj_x ? 1 : 2)]);
  dims.push_back(y_dims[y_dims.size() - (adj_y ? 2 : 1)]);
  return PartialTensorShape::Make(dims);
}

template <bool kBroadcast>
absl::Status BatchMatMulShape(ShapeContext& c) {
  bool adj_x = false;
  bool adj_y = false;
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("adj_x", &adj_x));
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("adj_y", &adj_y));
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape,
                            ProductShape(c.input(0), c.input(1), adj_x, adj_y, kBroadcast));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

template <bool kBroadcast>
class BatchMatMulKernel final : public OpKernel, public FusibleKernel, public IntegerFormKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    types_ = {construction.input_type(0), construction.input_type(1)};
    const DataType out = construction.output_type(0);
    if (!CanConvertElements(types_[0], out) || !CanConvertElements(types_[1], out)) {
      return errors::Unimplemented("no product of ", DataTypeString(types_[0]), " and ",
                                   DataTypeString(types_[1]), " as ", DataTypeString(out));
    }
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("adj_x", &adj_x_));
    is_float_ = types_[0] == DT_FLOAT && types_[1] == DT_FLOAT && out == DT_FLOAT;
    return construction.GetAttr("adj_y", &adj_y_);
  }

  bool CanBeFused() const override { return is_float_; }
  absl::Status ComputeFused(KernelContext& ctx, FusedSteps* steps, bool* done) const override {
    return MultiplyFused(ctx, {adj_x_, adj_x_}, {adj_y_, adj_y_}, ShapeOf(ctx, adj_x_, adj_y_),
                         steps, done);
  }

  bool IsIntegerProduct() const override { return true; }
  absl::StatusOr<std::shared_ptr<const OpKernel>> MakeIntegerForm(const Args& args) const override {
    return MakeIntegerBatchMatMul(
        args, adj_x_, adj_y_, /*rounds_once=*/false,
        [x = adj_x_, y = adj_y_](const KernelContext& ctx) { return ShapeOf(ctx, x, y); });
  }

  absl::Status Compute(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    const Tensor& y = ctx.input(1);
    if (x.dtype() != types_[0] || y.dtype() != types_[1]) {
      return errors::InvalidArgument("x and y must be of types ", DataTypeString(types_[0]),
                                     " and ", DataTypeString(types_[1]), ", but are ",
                                     DataTypeString(x.dtype()), " and ", DataTypeString(y.dtype()));
    }
    GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, ShapeOf(ctx, adj_x_, adj_y_));
    Tensor* out = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &out));
    return MultiplyBatches(ctx, x, {adj_x_, adj_x_}, y, {adj_y_, adj_y_}, out);
  }

 private:
  static absl::StatusOr<TensorShape> ShapeOf(const KernelContext& ctx, bool adj_x, bool adj_y) {
    GRADFLOW_ASSIGN_OR_RETURN(
        const PartialTensorShape dims,
        ProductShape(ctx.input(0).shape(), ctx.input(1).shape(), adj_x, adj_y, kBroadcast));
    return TensorShape::Make(dims.dim_sizes());
  }

  DataTypeVector types_;
  bool is_float_ = false;
  bool adj_x_ = false;
  bool adj_y_ = false;
};

constexpr char kInputs[] = R"(x: Matrices along the last two dimensions.
y: Matrices along the last two dimensions. They have as many rows as `x` has columns.
output: The products, with the rows of `x` and the columns of `y`.
adj_x: If true, multiplies the adjoints of `x`: transposed and conjugated.
adj_y: If true, multiplies by the adjoints of `y`.
grad_x: Has no effect.
grad_y: Has no effect.
)";
constexpr char kType[] = "T: The type of the inputs and the output.";
constexpr char kPrecision[] =
    "Half and bfloat16 are computed in float and rounded once. Integers wrap around. If the inner\n"
    "dimension is 0, the products are zeros.\n\n";

}  // namespace

void Register(Registry& registry) {
  registry.Op("BatchMatMul")
      .Group("math_ops")
      .Input("x: T")
      .Input("y: T")
      .Output("output: T")
      .Attr("T: {bfloat16, half, float, double, int32, int64, complex64, complex128}")
      .Attr("adj_x: bool = false")
      .Attr("adj_y: bool = false")
      .Attr("grad_x: bool = false")
      .Attr("grad_y: bool = false")
      .Shape(BatchMatMulShape<false>)
      .Doc(absl::StrCat("Multiplies matrices in batches, without broadcasting.\n\n", kPrecision,
                        kInputs, kType));
  registry.Op("BatchMatMulV2")
      .Group("math_ops")
      .Input("x: T")
      .Input("y: T")
      .Output("output: T")
      .Attr(
          "T: {bfloat16, half, float, double, int16, int32, int64, uint8, uint16, uint32, uint64, "
          "complex64, complex128}")
      .Attr("adj_x: bool = false")
      .Attr("adj_y: bool = false")
      .Attr("grad_x: bool = false")
      .Attr("grad_y: bool = false")
      .Shape(BatchMatMulShape<true>)
      .Doc(absl::StrCat("Multiplies matrices in batches, with broadcasting of the other "
                        "dimensions.\n\n",
                        kPrecision, kInputs, kType));
  registry.Op("BatchMatMulV3")
      .Group("math_ops")
      .Input("x: Ta")
      .Input("y: Tb")
      .Output("output: Tout")
      .Attr(
          "Ta: {bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, "
          "complex128}")
      .Attr(
          "Tb: {bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, "
          "complex128}")
      .Attr("Tout: {bfloat16, half, float, double, int16, int32, int64, complex64, complex128}")
      .Attr("adj_x: bool = false")
      .Attr("adj_y: bool = false")
      .Attr("grad_x: bool = false")
      .Attr("grad_y: bool = false")
      .Shape(BatchMatMulShape<true>)
      .Doc(absl::StrCat(
          "Multiplies matrices of two types in batches, with broadcasting of the other "
          "dimensions.\n\nThe inputs are converted to the type of the output, half and bfloat16 to "
          "float. There are no kernels for\ncomplex inputs with a real output, nor for "
          "floating-point inputs with an integer output.\n\n",
          kInputs, "Ta: The type of `x`.\nTb: The type of `y`.\nTout: The type of the output."));
  using Types = TypeList<bfloat16, half, float, double, int16_t, int32_t, int64_t, uint8_t,
                         uint16_t, uint32_t, uint64_t, complex64, complex128>;
  registry.Kernel("BatchMatMul", MakeKernel<BatchMatMulKernel<false>>);
  registry.Kernel("BatchMatMulV2", MakeKernel<BatchMatMulKernel<true>>)
      .Types("T", DataTypesOf(Types()));
  registry.Kernel("BatchMatMulV3", MakeKernel<BatchMatMulKernel<true>>);
}

}  // namespace gradflow::batch_matmul
