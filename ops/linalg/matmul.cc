// MatMul and SparseMatMul.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/fused_steps.h"
#include "gradflow/core/integer_kernels.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/data_types.h"
#include "gradflow/ops/linalg/integer_batch_matmul.h"
#include "gradflow/ops/linalg/product.h"
#include "gradflow/ops/quant/integer_product.h"

namespace gradflow::matmul {
namespace {

absl::Status InnerDimensionsDiffer(absl::string_view a_shape, bool transpose_a,
                                   absl::string_view b_shape, bool transpose_b) {
  return errors::InvalidArgument("inner dimensions must match: a has shape ", a_shape,
                                 transpose_a ? " (transposed)" : "", ", b has shape ", b_shape,
                                 transpose_b ? " (transposed)" : "");
}

absl::Status MatMulShape(ShapeContext& c) {
  bool transpose_a = false;
  bool transpose_b = false;
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("transpose_a", &transpose_a));
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("transpose_b", &transpose_b));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 2));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(1, 2));
  const int64_t a_inner = c.Dim(0, transpose_a ? 0 : 1);
  const int64_t b_inner = c.Dim(1, transpose_b ? 1 : 0);
  if (a_inner >= 0 && b_inner >= 0 && a_inner != b_inner) {
    return InnerDimensionsDiffer(c.input(0).DebugString(), transpose_a, c.input(1).DebugString(),
                                 transpose_b);
  }
  c.set_output(0, {c.Dim(0, transpose_a ? 1 : 0), c.Dim(1, transpose_b ? 0 : 1)});
  return absl::OkStatus();
}

// Returns the shape of the product of inputs 0 and 1.
absl::StatusOr<TensorShape> ProductShape(const KernelContext& ctx, bool transpose_a,
                                         bool transpose_b) {
  const Tensor& a = ctx.input(0);
  const Tensor& b = ctx.input(1);
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckRank(0, "a", 2));
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckRank(1, "b", 2));
  if (a.dim_size(transpose_a ? 0 : 1) != b.dim_size(transpose_b ? 1 : 0)) {
    return InnerDimensionsDiffer(a.shape().DebugString(), transpose_a, b.shape().DebugString(),
                                 transpose_b);
  }
  return TensorShape::Make({a.dim_size(transpose_a ? 1 : 0), b.dim_size(transpose_b ? 0 : 1)});
}

// Sets output 0 to the product of inputs 0 and 1.
absl::Status Multiply(KernelContext& ctx, bool transpose_a, bool transpose_b) {
  GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, ProductShape(ctx, transpose_a, transpose_b));
  Tensor* product = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &product));
  return MultiplyBatches(ctx, ctx.input(0), {transpose_a, false}, ctx.input(1),
                         {transpose_b, false}, product);
}

class MatMulKernel final : public OpKernel,
                           public FusibleKernel,
                           public IntegerProductKernel,
                           public IntegerFormKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    is_float_ = construction.input_type(0) == DT_FLOAT;
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("transpose_a", &transpose_a_));
    return construction.GetAttr("transpose_b", &transpose_b_);
  }

  bool CanBeFused() const override { return is_float_; }
  absl::Status ComputeFused(KernelContext& ctx, FusedSteps* steps, bool* done) const override {
    return MultiplyFused(ctx, {transpose_a_, false}, {transpose_b_, false},
                         ProductShape(ctx, transpose_a_, transpose_b_), steps, done);
  }

  absl::StatusOr<Channels> IntegerChannels(const TensorShape& weights) const override {
    if (transpose_a_) return errors::Unimplemented("the activations are transposed");
    if (weights.dims() != 2 || weights.num_elements() == 0) {
      return errors::Unimplemented("the weights have shape ", weights.DebugString());
    }
    Channels channels;
    channels.count = weights.dim_size(transpose_b_ ? 0 : 1);
    channels.stride = transpose_b_ ? weights.dim_size(1) : 1;
    channels.rank = 2;
    return channels;
  }
  absl::StatusOr<std::shared_ptr<const OpKernel>> MakeIntegerProduct(
      const IntegerProductArgs& args) const override {
    IntegerWeights weights;
    weights.data = static_cast<const int16_t*>(args.weights.raw_data());
    weights.inner = args.weights.dim_size(transpose_b_ ? 1 : 0);
    weights.channels = args.weights.dim_size(transpose_b_ ? 0 : 1);
    weights.inner_stride = transpose_b_ ? 1 : weights.channels;
    weights.channel_stride = transpose_b_ ? weights.inner : 1;
    return MakeIntegerMatMul(weights, args);
  }
  bool IsIntegerProduct() const override { return true; }
  absl::StatusOr<std::shared_ptr<const OpKernel>> MakeIntegerForm(const Args& args) const override {
    // TensorFlow Lite's fully connected layers round once.
    return MakeIntegerBatchMatMul(args, transpose_a_, transpose_b_, /*rounds_once=*/true,
                                  [a = transpose_a_, b = transpose_b_](const KernelContext& ctx) {
                                    return ProductShape(ctx, a, b);
                                  });
  }

  absl::Status Compute(KernelContext& ctx) const override {
    const Tensor& a = ctx.input(0);
    const Tensor& b = ctx.input(1);
    const DataType type = ctx.expected_output_dtype(0);
    if (a.dtype() != type || b.dtype() != type) {
      return errors::InvalidArgument("a and b must be of type ", DataTypeString(type), ", but are ",
                                     DataTypeString(a.dtype()), " and ", DataTypeString(b.dtype()));
    }
    return Multiply(ctx, transpose_a_, transpose_b_);
  }

 private:
  bool is_float_ = false;
  bool transpose_a_ = false;
  bool transpose_b_ = false;
};

bool AllFinite(KernelContext& ctx, const Tensor& tensor) {
  const float* x = static_cast<const float*>(tensor.raw_data());
  std::atomic<bool> finite{true};
  ParallelFor(ctx, tensor.NumElements(), BlockSizeForCost(0.5), [&](int64_t begin, int64_t end) {
    bool all = true;
    for (int64_t i = begin; i < end; ++i)
      all &= std::abs(x[i]) <= std::numeric_limits<float>::max();
    if (!all) finite = false;
  });
  return finite;
}

// A view of a matrix of floats [rows, columns].
struct MatrixView {
  MatrixView(const Tensor& tensor, bool transposed)
      : data(static_cast<const float*>(tensor.raw_data())),
        row_stride(transposed ? 1 : tensor.dim_size(1)),
        column_stride(transposed ? tensor.dim_size(1) : 1) {}
  float operator()(int64_t row, int64_t column) const {
    return data[row * row_stride + column * column_stride];
  }

  const float* data;
  int64_t row_stride;
  int64_t column_stride;
};

// Sets `out` [m, n] to a [m, inner] times b [inner, n]. Skips products with zeros of a, or with
// zeros of b if `zeros_of_b` is true.
void MultiplyNonZeros(KernelContext& ctx, const MatrixView& a, const MatrixView& b, int64_t inner,
                      bool zeros_of_b, Tensor* out) {
  const int64_t n = out->dim_size(1);
  float* const products = static_cast<float*>(out->raw_data());
  ParallelFor(ctx, out->dim_size(0), BlockSizeForCost(2.0 * inner * n + 10),
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end && !ctx.ShouldStop(); ++i) {
                  float* row = products + i * n;
                  std::fill_n(row, n, 0.0f);
                  for (int64_t k = 0; k < inner; ++k) {
                    const float x = a(i, k);
                    if (!zeros_of_b && x == 0) continue;
                    for (int64_t j = 0; j < n; ++j) {
                      const float y = b(k, j);
                      if (!zeros_of_b || y != 0) row[j] += x * y;
                    }
                  }
                }
              });
}

class SparseMatMulKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("a_is_sparse", &a_is_sparse_));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("b_is_sparse", &b_is_sparse_));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("transpose_a", &transpose_a_));
    return construction.GetAttr("transpose_b", &transpose_b_);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    for (int i = 0; i < 2; ++i) {
      if (ctx.input_dtype(i) != DT_FLOAT && ctx.input_dtype(i) != DT_BFLOAT16) {
        return errors::InvalidArgument("a and b must be of type float or bfloat16, but are ",
                                       DataTypeString(ctx.input_dtype(0)), " and ",
                                       DataTypeString(ctx.input_dtype(1)));
      }
    }
    if (!a_is_sparse_ && !b_is_sparse_) return Multiply(ctx, transpose_a_, transpose_b_);
    GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape,
                              ProductShape(ctx, transpose_a_, transpose_b_));
    Tensor a;
    Tensor b;
    GRADFLOW_RETURN_IF_ERROR(ConvertElements(ctx, ctx.input(0), DT_FLOAT, &a));
    GRADFLOW_RETURN_IF_ERROR(ConvertElements(ctx, ctx.input(1), DT_FLOAT, &b));
    Tensor* product = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &product));
    // If the other matrix is finite, products with zeros do not change the result.
    if (AllFinite(ctx, a_is_sparse_ ? b : a)) {
      return MultiplyBatches(ctx, a, {transpose_a_, false}, b, {transpose_b_, false}, product);
    }
    MultiplyNonZeros(ctx, MatrixView(a, transpose_a_), MatrixView(b, transpose_b_),
                     a.dim_size(transpose_a_ ? 0 : 1), /*zeros_of_b=*/!a_is_sparse_, product);
    return absl::OkStatus();
  }

 private:
  bool a_is_sparse_ = false;
  bool b_is_sparse_ = false;
  bool transpose_a_ = false;
  bool transpose_b_ = false;
};

}  // namespace

void Register(Registry& registry) {
  registry.Op("MatMul")
      .Group("math_ops")
      .Input("a: T")
      .Input("b: T")
      .Output("product: T")
      .Attr("transpose_a: bool = false")
      .Attr("transpose_b: bool = false")
      .Attr(
          "T: {bfloat16, half, float, double, int32, int64, uint8, uint16, "
          "uint32, uint64, "
          "complex64, complex128}")
      .Attr("grad_a: bool = false")
      .Attr("grad_b: bool = false")
      .Shape(MatMulShape)
      .Doc(R"(Multiplies matrix a by matrix b.

Half and bfloat16 are computed in float and rounded once. Integers wrap around. If the inner
dimension is 0, the product is zeros.

a: A matrix.
b: A matrix with as many rows as `a` has columns.
product: The product. It has as many rows as `a` and as many columns as `b`.
transpose_a: If true, transposes `a` before multiplication, without conjugation.
transpose_b: If true, transposes `b` before multiplication, without conjugation.
T: The type of the inputs and the output.
grad_a: Has no effect.
grad_b: Has no effect.)");
  registry.Op("SparseMatMul")
      .Group("math_ops")
      .Input("a: Ta")
      .Input("b: Tb")
      .Output("product: float")
      .Attr("transpose_a: bool = false")
      .Attr("transpose_b: bool = false")
      .Attr("a_is_sparse: bool = false")
      .Attr("b_is_sparse: bool = false")
      .Attr("Ta: {float, bfloat16} = DT_FLOAT")
      .Attr("Tb: {float, bfloat16} = DT_FLOAT")
      .Shape(MatMulShape)
      .Doc(R"(Multiplies matrix a by matrix b, which may have many zeros.

The product is computed in float, as by MatMul. `a_is_sparse` and `b_is_sparse` only change products
of 0 with infinity or NaN: a zero of the sparse matrix then contributes nothing.

a: A matrix.
b: A matrix with as many rows as `a` has columns.
product: The product. It has as many rows as `a` and as many columns as `b`.
transpose_a: If true, transposes `a` before multiplication.
transpose_b: If true, transposes `b` before multiplication.
a_is_sparse: If true, `a` is the sparse matrix.
b_is_sparse: If true, `b` is the sparse matrix, unless `a` is.
Ta: The type of `a`.
Tb: The type of `b`.)");
  using Types = TypeList<bfloat16, half, float, double, int32_t, int64_t, uint8_t, uint16_t,
                         uint32_t, uint64_t, complex64, complex128>;
  registry.Kernel("MatMul", MakeKernel<MatMulKernel>).Types("T", DataTypesOf(Types()));
  registry.Kernel("SparseMatMul", MakeKernel<SparseMatMulKernel>);
}

}  // namespace gradflow::matmul
