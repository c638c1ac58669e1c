// QuantizedMatMul and QuantizedConv2D.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/nn/conv_geometry.h"
#include "gradflow/ops/quant/quantized_range.h"

namespace gradflow::quantized_product {
namespace {

// The number of columns of a product that are computed together.
constexpr int64_t kTile = 1024;
constexpr double kNanosecondsPerProduct = 0.3;

// An operand: integers and the integer of 0.
template <typename Q>
struct Operand {
  Operand(const Tensor& tensor, const QuantizedRange& range)
      : data(static_cast<const Q*>(tensor.raw_data())),
        zero(static_cast<uint32_t>(ZeroPoint<Q>(range))) {}
  // Returns the distance of element i from 0. The arithmetic wraps around modulo 2^32.
  uint32_t operator()(int64_t i) const { return static_cast<uint32_t>(data[i]) - zero; }

  const Q* data;
  uint32_t zero;
};

// Adds x times the elements [first, first + n) of `weights`, which are `stride` apart, to y.
template <typename Q>
void AddProducts(uint32_t x, const Operand<Q>& weights, int64_t first, int64_t stride, int64_t n,
                 uint32_t* y) {
  if (stride == 1) {
    for (int64_t i = 0; i < n; ++i) y[i] += x * weights(first + i);
  } else {
    for (int64_t i = 0; i < n; ++i) y[i] += x * weights(first + i * stride);
  }
}

// Reads the ranges of two operands. Sums are qint32.
class ProductKernel : public OpKernel {
 protected:
  void InitRanges(const KernelConstruction& construction) { ranges_.Init(construction, 2, 2); }

  RangeInputs ranges_;
};

// ---- QuantizedMatMul ----

struct MatMulAttrs {
  bool transpose_a = false;
  bool transpose_b = false;

  template <typename Source>
  absl::Status Read(const Source& source) {
    GRADFLOW_RETURN_IF_ERROR(source.GetAttr("transpose_a", &transpose_a));
    return source.GetAttr("transpose_b", &transpose_b);
  }
};

// Returns the shape of the product of matrices.
absl::StatusOr<PartialTensorShape> MatMulShape(const MatMulAttrs& attrs,
                                               const PartialTensorShape& a,
                                               const PartialTensorShape& b) {
  PartialTensorShape result = PartialTensorShape::UnknownOfRank(2);
  int64_t inner[2] = {-1, -1};
  for (int k = 0; k < 2; ++k) {
    const PartialTensorShape& shape = k == 0 ? a : b;
    if (shape.unknown_rank()) continue;
    GRADFLOW_RETURN_IF_ERROR(CheckRank(k == 0 ? "a" : "b", shape, 2));
    const bool inner_is_first = k == 0 ? attrs.transpose_a : !attrs.transpose_b;
    inner[k] = shape.dim_size(inner_is_first ? 0 : 1);
    result.set_dim(k, shape.dim_size(inner_is_first ? 1 : 0));
  }
  if (inner[0] >= 0 && inner[1] >= 0 && inner[0] != inner[1]) {
    return errors::InvalidArgument("inner dimensions must match: a has shape ", a.DebugString(),
                                   attrs.transpose_a ? " (transposed)" : "", ", b has shape ",
                                   b.DebugString(), attrs.transpose_b ? " (transposed)" : "");
  }
  return PartialTensorShape::Make(result.dim_sizes());
}

absl::Status MatMulShapeFn(ShapeContext& c) {
  MatMulAttrs attrs;
  GRADFLOW_RETURN_IF_ERROR(attrs.Read(c));
  GRADFLOW_RETURN_IF_ERROR(CheckRangeShapes(c, 2, 4));
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, MatMulShape(attrs, c.input(0), c.input(1)));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

template <typename A, typename B>
class MatMulKernel final : public ProductKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    InitRanges(construction);
    return attrs_.Read(construction);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_ASSIGN_OR_RETURN(const std::vector<QuantizedRange> ranges, ranges_.ReadNonempty(ctx));
    const Tensor& a_tensor = ctx.input(0);
    const Tensor& b_tensor = ctx.input(1);
    GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape shape,
                              MatMulShape(attrs_, a_tensor.shape(), b_tensor.shape()));
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, TensorShape(shape.dim_sizes()), &output));
    const int64_t rows = shape.dim_size(0);
    const int64_t columns = shape.dim_size(1);
    const int64_t inner = a_tensor.dim_size(attrs_.transpose_a ? 0 : 1);
    const Operand<A> a(a_tensor, ranges[0]);
    const Operand<B> b(b_tensor, ranges[1]);
    const int64_t a_row = attrs_.transpose_a ? 1 : inner;
    const int64_t a_inner = attrs_.transpose_a ? rows : 1;
    const int64_t b_column = attrs_.transpose_b ? inner : 1;
    const int64_t b_inner = attrs_.transpose_b ? 1 : columns;
    auto* const y = static_cast<uint32_t*>(output->raw_data());
    const int64_t tiles = NumBlocks(columns, kTile);
    const double cost = kNanosecondsPerProduct * static_cast<double>(inner + 1) *
                        static_cast<double>(std::min(columns, kTile));
    ParallelFor(ctx, rows * tiles, BlockSizeForCost(cost), [&](int64_t begin, int64_t end) {
      for (int64_t unit = begin; unit < end; ++unit) {
        const int64_t row = unit / tiles;
        const int64_t first = unit % tiles * kTile;
        const int64_t n = std::min(kTile, columns - first);
        uint32_t* const to = y + row * columns + first;
        std::fill_n(to, n, 0);
        for (int64_t k = 0; k < inner; ++k) {
          if (k % 64 == 0 && ctx.ShouldStop()) return;
          AddProducts(a(row * a_row + k * a_inner), b, k * b_inner + first * b_column, b_column, n,
                      to);
        }
      }
    });
    return OutputRange(ctx, 1, ProductRange<A, B>(ranges[0], ranges[1]));
  }

 private:
  MatMulAttrs attrs_;
};

// ---- QuantizedConv2D ----

absl::Status ConvShapeFn(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckRangeShapes(c, 2, 4));
  return ConvShape(c);
}

template <typename A, typename B>
class ConvKernel final : public ProductKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    InitRanges(construction);
    return attrs_.Read(construction);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_ASSIGN_OR_RETURN(const std::vector<QuantizedRange> ranges, ranges_.Read(ctx));
    ConvGeometry g;
    PartialTensorShape shape;
    GRADFLOW_RETURN_IF_ERROR(
        InferConv(attrs_, ctx.input(0).shape(), ctx.input(1).shape(), &g, &shape));
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, TensorShape(shape.dim_sizes()), &output));
    const Operand<A> x(ctx.input(0), ranges[0]);
    const Operand<B> filter(ctx.input(1), ranges[1]);
    auto* const y = static_cast<uint32_t*>(output->raw_data());
    const int64_t pixels = output->NumElements() == 0 ? 0 : g.batch * g.out_volume();
    const double cost = 10 + kNanosecondsPerProduct * g.products() /
                                 static_cast<double>(std::max<int64_t>(1, pixels));
    ParallelFor(ctx, pixels, BlockSizeForCost(cost), [&](int64_t begin, int64_t end) {
      for (int64_t pixel = begin; pixel < end; ++pixel) {
        uint32_t* const to = y + pixel * g.out_depth;
        std::fill_n(to, g.out_depth, 0);
        AddPixel(ctx, g, pixel, x, filter, to);
      }
    });
    return OutputRange(ctx, 1, ProductRange<A, B>(ranges[0], ranges[1]));
  }

 private:
  // Adds the products of one output pixel to `to`. Padding adds nothing.
  static void AddPixel(const KernelContext& ctx, const ConvGeometry& g, int64_t pixel,
                       const Operand<A>& x, const Operand<B>& filter, uint32_t* to) {
    const int64_t in_depth = g.group_in_depth();
    const int64_t out_depth = g.group_out_depth();
    const int64_t batch = pixel / g.out_volume();
    const int64_t first_row = pixel / g.out[2] % g.out[1] * g.stride[1] - g.pad[1];
    const int64_t first_column = pixel % g.out[2] * g.stride[2] - g.pad[2];
    for (int64_t fy = 0; fy < g.filter[1]; ++fy) {
      const int64_t row = first_row + fy * g.dilation[1];
      if (row < 0 || row >= g.in[1]) continue;
      for (int64_t fx = 0; fx < g.filter[2]; ++fx) {
        const int64_t column = first_column + fx * g.dilation[2];
        if (column < 0 || column >= g.in[2]) continue;
        if (ctx.ShouldStop()) return;
        const int64_t from = ((batch * g.in[1] + row) * g.in[2] + column) * g.in_depth;
        const int64_t tap = (fy * g.filter[2] + fx) * in_depth * g.out_depth;
        for (int64_t group = 0; group < g.groups; ++group) {
          for (int64_t d = 0; d < in_depth; ++d) {
            AddProducts(x(from + group * in_depth + d), filter,
                        tap + d * g.out_depth + group * out_depth, 1, out_depth,
                        to + group * out_depth);
          }
        }
      }
    }
  }

  ConvAttrs attrs_;
};

// ---- Registration ----

template <template <typename, typename> class Kernel>
void RegisterKernels(Registry& registry, const char* op, const char* a_attr, const char* b_attr,
                     const char* out_attr) {
  using Types = TypeList<quint8, qint8>;
  ForEachType(Types(), [&](auto a) {
    ForEachType(Types(), [&](auto b) {
      using A = typename decltype(a)::type;
      using B = typename decltype(b)::type;
      registry.Kernel(op, MakeKernel<Kernel<decltype(A::value), decltype(B::value)>>)
          .template Type<A>(a_attr)
          .template Type<B>(b_attr)
          .template Type<qint32>(out_attr);
    });
  });
}

}  // namespace

void Register(Registry& registry) {
  registry.Op("QuantizedMatMul")
      .Group("math_ops")
      .Input("a: T1")
      .Input("b: T2")
      .Input("min_a: float")
      .Input("max_a: float")
      .Input("min_b: float")
      .Input("max_b: float")
      .Output("out: Toutput")
      .Output("min_out: float")
      .Output("max_out: float")
      .Attr(absl::StrCat("T1: ", kQuantizedTypes))
      .Attr(absl::StrCat("T2: ", kQuantizedTypes))
      .Attr(absl::StrCat("Toutput: ", kQuantizedTypes, " = DT_QINT32"))
      .Attr("transpose_a: bool = false")
      .Attr("transpose_b: bool = false")
      .Attr(absl::StrCat("Tactivation: ", kQuantizedTypes, " = DT_QUINT8"))
      .Shape(MatMulShapeFn)
      .Doc(R"(Multiplies quantized matrices.

Sums are exact modulo 2^32.

a: A matrix of integers.
b: A matrix of integers.
min_a: A scalar: the number of the lowest integer of `a`.
max_a: A scalar, greater than `min_a`: the number of the highest integer of `a`.
min_b: A scalar: the number of the lowest integer of `b`.
max_b: A scalar, greater than `min_b`: the number of the highest integer of `b`.
out: The integers of the product.
min_out: The number of the lowest integer of `out`: -2^31 products of a step of `a` and a step of
  `b`.
max_out: The number of the highest integer of `out`.
T1: The type of `a`.
T2: The type of `b`.
Toutput: The type of `out`.
transpose_a: Whether `a` is transposed before the multiplication.
transpose_b: Whether `b` is transposed before the multiplication.
Tactivation: Has no effect.)");
  RegisterKernels<MatMulKernel>(registry, "QuantizedMatMul", "T1", "T2", "Toutput");

  registry.Op("QuantizedConv2D")
      .Group("nn_ops")
      .Input("input: Tinput")
      .Input("filter: Tfilter")
      .Input("min_input: float")
      .Input("max_input: float")
      .Input("min_filter: float")
      .Input("max_filter: float")
      .Output("output: out_type")
      .Output("min_output: float")
      .Output("max_output: float")
      .Attr(absl::StrCat("Tinput: ", kQuantizedTypes))
      .Attr(absl::StrCat("Tfilter: ", kQuantizedTypes))
      .Attr(absl::StrCat("out_type: ", kQuantizedTypes, " = DT_QINT32"))
      .Attr("strides: list(int)")
      .Attr("padding: {'SAME', 'VALID'}")
      .Attr("dilations: list(int) = [1, 1, 1, 1]")
      .Shape(ConvShapeFn)
      .Doc(R"(Convolves quantized images.

Sums are exact modulo 2^32. Padding has the number 0, even if the range of `input` does not contain
0. Unlike in TensorFlow, strides may differ, and filters may be dilated and grouped.

input: Integers of shape [batch, rows, columns, channels].
filter: Integers of shape [rows, columns, input channels, output channels].
min_input: A scalar: the number of the lowest integer of `input`.
max_input: A scalar: the number of the highest integer of `input`.
min_filter: A scalar: the number of the lowest integer of `filter`.
max_filter: A scalar: the number of the highest integer of `filter`.
output: The integers of the sums.
min_output: The number of the lowest integer of `output`: -2^31 products of a step of `input` and a
  step of `filter`.
max_output: The number of the highest integer of `output`.
Tinput: The type of `input`.
Tfilter: The type of `filter`.
out_type: The type of `output`.
strides: The distance between neighboring windows along each dimension; 1 for batch and channels.
padding: "SAME" pads the input to ceil(size / stride) windows along each dimension. "VALID" has the
  windows that lie within the input.
dilations: The distance between neighboring elements of a window along each dimension; 1 for batch
  and channels.)");
  RegisterKernels<ConvKernel>(registry, "QuantizedConv2D", "Tinput", "Tfilter", "out_type");
}

}  // namespace gradflow::quantized_product
