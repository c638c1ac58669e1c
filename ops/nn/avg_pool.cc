// AvgPool, AvgPool3D and their gradients.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/integer_kernels.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/ops/common/input_checks.h"
#include "gradflow/ops/nn/pool_rows.h"
#include "gradflow/ops/nn/pool_simd.h"
#include "gradflow/ops/nn/pool_windows.h"
#include "gradflow/ops/quant/integer_mean.h"

namespace gradflow::avg_pool {
namespace {

// Sums with more terms are accumulated in double.
constexpr double kMaxFloatTerms = 16;

template <int Rank>
absl::Status AvgPoolShape(ShapeContext& c) {
  PoolAttrs attrs;
  GRADFLOW_RETURN_IF_ERROR(attrs.Read(c, Rank));
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, PooledShape(attrs, c.input(0)));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status CheckAttrs(const PoolAttrs& attrs) {
  if (!attrs.pools_channels()) return absl::OkStatus();
  return errors::Unimplemented("averages across channels are not supported");
}

template <int Rank>
absl::Status AvgPoolGradShape(ShapeContext& c) {
  PoolAttrs attrs;
  GRADFLOW_RETURN_IF_ERROR(attrs.Read(c, Rank));
  GRADFLOW_RETURN_IF_ERROR(CheckAttrs(attrs));
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape input, c.ShapeFromInput(0));
  GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape pooled, PooledShape(attrs, input));
  GRADFLOW_RETURN_IF_ERROR(CheckPooled("grad", c.input(1), pooled));
  if (input.unknown_rank()) input = PartialTensorShape::UnknownOfRank(Rank);
  c.set_output(0, std::move(input));
  return absl::OkStatus();
}

// Pools bytes.
class IntegerAvgPool final : public OpKernel {
 public:
  IntegerAvgPool(const PoolAttrs& attrs, const IntegerFormKernel::Args& args)
      : attrs_(attrs), mean_(args, /*is_pool=*/true) {}

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckInputTypes(ctx, {DT_UINT8}));
    TensorShape shape;
    GRADFLOW_ASSIGN_OR_RETURN(const PoolGeometry g,
                              MakePoolGeometry(attrs_, ctx.input(0).shape(), &shape));
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
    if (output->NumElements() == 0) return absl::OkStatus();
    const auto* const x = static_cast<const uint8_t*>(ctx.input(0).raw_data());
    auto* const y = static_cast<uint8_t*>(output->raw_data());
    const double cost = 0.1 * g.window_rows() * static_cast<double>(g.out_row()) *
                        static_cast<double>(std::min(g.size[2], g.in[2]));
    return ForEachPoolRow(
        ctx, g.out_rows(), cost, PaddedBytes<int64_t>(g.depth), [&](int64_t row, char* scratch) {
          auto* const sums = reinterpret_cast<int64_t*>(scratch);
          for (int64_t o = 0; o < g.out[2]; ++o) {
            if (o % 64 == 0 && ctx.ShouldStop()) return;
            PoolPixel(ctx, g, x, row, o, sums, y + (row * g.out[2] + o) * g.depth);
          }
        });
  }

 private:
  void PoolPixel(const KernelContext& ctx, const PoolGeometry& g, const uint8_t* x, int64_t row,
                 int64_t o, int64_t* sums, uint8_t* y) const {
    const PoolRange planes = g.Window(0, row / g.out[1] % g.out[0]);
    const PoolRange rows = g.Window(1, row % g.out[1]);
    const PoolRange columns = g.Window(2, o);
    const int64_t batch = row / g.out[1] / g.out[0];
    std::fill_n(sums, g.depth, 0);
    for (int64_t p = planes.begin; p < planes.end; ++p) {
      for (int64_t r = rows.begin; r < rows.end; ++r) {
        if (r % 64 == 63 && ctx.ShouldStop()) return;
        AddIntegerRows(
            x + (((batch * g.in[0] + p) * g.in[1] + r) * g.in[2] + columns.begin) * g.depth,
            columns.size(), g.depth, g.depth, sums);
      }
    }
    mean_.Round(sums, g.depth, planes.size() * rows.size() * columns.size(), y);
  }

  const PoolAttrs attrs_;
  const IntegerMean mean_;
};

template <typename C, int Rank>
class AvgPool final : public OpKernel, public IntegerFormKernel {
 public:
  absl::StatusOr<std::shared_ptr<const OpKernel>> MakeIntegerForm(const Args& args) const override {
    return std::make_shared<IntegerAvgPool>(attrs_, args);
  }

  absl::Status Init(const KernelConstruction& construction) {
    types_ = InputTypes(construction);
    GRADFLOW_RETURN_IF_ERROR(attrs_.Read(construction, Rank));
    return CheckAttrs(attrs_);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckInputTypes(ctx, types_));
    TensorShape shape;
    GRADFLOW_ASSIGN_OR_RETURN(const PoolGeometry g,
                              MakePoolGeometry(attrs_, ctx.input(0).shape(), &shape));
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
    if (output->NumElements() == 0) return absl::OkStatus();
    const double terms = g.window_rows() * static_cast<double>(std::min(g.size[2], g.in[2]));
    if (std::is_same_v<C, float> && terms <= kMaxFloatTerms) {
      return RowPooler<C, PoolMean<C>>(g, ctx.input(0), output).Run(ctx);
    }
    return RowPooler<C, PoolMean<double>>(g, ctx.input(0), output).Run(ctx);
  }

 private:
  DataTypeVector types_;
  PoolAttrs attrs_;
};

// Computes the gradient of the input. The gradient of each window is divided by the number of
// elements of the window. Each element is the sum of these quotients over its windows.
template <typename C, typename A>
class GradientRows {
 public:
  GradientRows(const PoolGeometry& g, const Tensor& grad, Tensor* output)
      : g_(g), reader_(grad), writer_(output, grad, g.depth) {
    if (!kIsFloat || g.depth < kMinPoolVector) return;
    for (int64_t o = 0; o < g.out[2]; ++o) {
      weights_.push_back(static_cast<float>(1.0 / static_cast<double>(g.Window(2, o).size())));
    }
    for (int64_t i = 0; i < g.in[2]; ++i) windows_.push_back(g.Covering(2, i));
  }

  absl::Status Run(KernelContext& ctx) const {
    const int64_t bytes = PaddedBytes<C>(g_.out_row()) + PaddedBytes<A>(g_.out_row()) +
                          PaddedBytes<A>(AccumulatorSize()) +
                          (writer_.converts() ? PaddedBytes<C>(g_.in_row()) : 0);
    const double rows = static_cast<double>(g_.Covering(0, g_.in[0] / 2).size()) *
                        static_cast<double>(g_.Covering(1, g_.in[1] / 2).size());
    const double cost =
        1 + 0.3 * sizeof(C) / 4 *
                (static_cast<double>(g_.out_row()) * rows +
                 static_cast<double>(g_.in_row()) * g_.Covering(2, g_.in[2] / 2).size());
    return ForEachPoolRow(ctx, g_.in_rows(), cost, bytes,
                          [&](int64_t row, char* scratch) { Row(ctx, row, scratch); });
  }

 private:
  static constexpr bool kIsFloat = std::is_same_v<C, float> && std::is_same_v<A, float>;

  int64_t AccumulatorSize() const { return g_.depth == 1 ? g_.in[2] : g_.depth; }

  void Row(const KernelContext& ctx, int64_t row, char* scratch) const {
    C* const read = reinterpret_cast<C*>(scratch);
    scratch += PaddedBytes<C>(g_.out_row());
    A* const columns = reinterpret_cast<A*>(scratch);
    scratch += PaddedBytes<A>(g_.out_row());
    A* const sums = reinterpret_cast<A*>(scratch);
    scratch += PaddedBytes<A>(AccumulatorSize());
    C* const dx = writer_.Place(row * g_.in_row(), reinterpret_cast<C*>(scratch));

    const PoolRange planes = g_.Covering(0, row / g_.in[1] % g_.in[0]);
    const PoolRange rows = g_.Covering(1, row % g_.in[1]);
    const int64_t batch = row / g_.in[1] / g_.in[0];
    const int64_t n = g_.out_row();
    const int64_t depth = g_.depth;
    std::fill_n(columns, n, A(0));
    for (int64_t p = planes.begin; p < planes.end; ++p) {
      for (int64_t r = rows.begin; r < rows.end; ++r) {
        const C* const dy = reader_.Read(((batch * g_.out[0] + p) * g_.out[1] + r) * n, n, read);
        const double count = static_cast<double>(g_.Window(0, p).size()) *
                             static_cast<double>(g_.Window(1, r).size());
        const A weight = static_cast<A>(1 / count);
        if constexpr (kIsFloat) {
          AddWeighted(dy, weight, n, columns);
          continue;
        }
        for (int64_t i = 0; i < n; ++i) columns[i] += static_cast<A>(dy[i]) * weight;
      }
    }
    if constexpr (kIsFloat) {
      if (!windows_.empty()) {
        ScalePixels(weights_.data(), g_.out[2], depth, columns);
        if (!ForPixels(ctx, g_.in[2], [&](int64_t i, int64_t pixels) {
              PoolWindows(PoolKind::kSum, columns, n, 1, windows_.data() + i, pixels, depth, 0,
                          writer_.non_temporal(), dx + i * depth);
            })) {
          return;
        }
        return writer_.Write(dx, row * g_.in_row(), g_.in_row());
      }
    }
    for (int64_t o = 0; o < g_.out[2]; ++o) {
      const A weight = static_cast<A>(1.0 / static_cast<double>(g_.Window(2, o).size()));
      A* const at = columns + o * depth;
      for (int64_t d = 0; d < depth; ++d) at[d] *= weight;
    }
    if (depth == 1) {
      std::fill_n(sums, g_.in[2], A(0));
      const PoolRange used = g_.UsedColumns();
      for (int64_t k = used.begin; k < used.end; ++k) {
        if (k % 64 == 0 && ctx.ShouldStop()) return;
        const PoolRange windows = g_.WindowsWithColumn(k);
        A* const to = sums + windows.begin * g_.stride[2] - g_.padding[2] + k;
        const A* const from = columns + windows.begin;
        WithConstantStride(g_.stride[2], [&](auto stride) {
          for (int64_t i = 0; i < windows.size(); ++i) to[i * stride] += from[i];
        });
      }
      for (int64_t i = 0; i < g_.in[2]; ++i) dx[i] = static_cast<C>(sums[i]);
    } else {
      for (int64_t i = 0; i < g_.in[2]; ++i) {
        if (i % 64 == 0 && ctx.ShouldStop()) return;
        std::fill_n(sums, depth, A(0));
        const PoolRange windows = g_.Covering(2, i);
        for (int64_t o = windows.begin; o < windows.end; ++o) {
          const A* const from = columns + o * depth;
          for (int64_t d = 0; d < depth; ++d) sums[d] += from[d];
        }
        for (int64_t d = 0; d < depth; ++d) dx[i * depth + d] = static_cast<C>(sums[d]);
      }
    }
    writer_.Write(dx, row * g_.in_row(), g_.in_row());
  }

  const PoolGeometry& g_;
  const RowReader<C> reader_;
  const RowWriter<C> writer_;
  // The weight of each column of windows, and the windows that cover each column of the input.
  // Empty unless pixels are computed with vectors.
  std::vector<float> weights_;
  std::vector<PoolRange> windows_;
};

template <typename C, int Rank>
class AvgPoolGrad final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    types_ = InputTypes(construction);
    GRADFLOW_RETURN_IF_ERROR(attrs_.Read(construction, Rank));
    return CheckAttrs(attrs_);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckInputTypes(ctx, types_));
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(0, "orig_input_shape"));
    GRADFLOW_ASSIGN_OR_RETURN(const DimVector dims, ctx.Ints(0, "orig_input_shape"));
    GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, TensorShape::Make(dims));
    TensorShape pooled;
    GRADFLOW_ASSIGN_OR_RETURN(const PoolGeometry g, MakePoolGeometry(attrs_, shape, &pooled));
    GRADFLOW_RETURN_IF_ERROR(CheckPooled("grad", ctx.input(1).shape(), pooled));
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
    if (output->NumElements() == 0) return absl::OkStatus();
    const double terms = static_cast<double>(g.Covering(0, g.in[0] / 2).size()) *
                         static_cast<double>(g.Covering(1, g.in[1] / 2).size()) *
                         static_cast<double>(g.Covering(2, g.in[2] / 2).size());
    if (std::is_same_v<C, float> && terms <= kMaxFloatTerms) {
      return GradientRows<C, C>(g, ctx.input(1), output).Run(ctx);
    }
    return GradientRows<C, double>(g, ctx.input(1), output).Run(ctx);
  }

 private:
  DataTypeVector types_;
  PoolAttrs attrs_;
};

template <int Rank>
void RegisterKernels(Registry& registry, const std::string& op) {
  const DataTypeVector floats = {DT_FLOAT, DT_HALF, DT_BFLOAT16};
  registry.Kernel(op, MakeKernel<AvgPool<float, Rank>>).Types("T", floats);
  registry.Kernel(op, MakeKernel<AvgPool<double, Rank>>).Types("T", {DT_DOUBLE});
  registry.Kernel(op + "Grad", MakeKernel<AvgPoolGrad<float, Rank>>).Types("T", floats);
  registry.Kernel(op + "Grad", MakeKernel<AvgPoolGrad<double, Rank>>).Types("T", {DT_DOUBLE});
}

constexpr char kAttrsDoc[] =
    R"(ksize: The size of the windows along each dimension; 1 for batch and channels.
strides: The distance between neighboring windows along each dimension; 1 for batch and channels.
padding: "SAME" pads the input to ceil(size / stride) windows along each dimension. "VALID" has the
  windows that lie within the input.
data_format: The order of the dimensions. Unlike in TensorFlow, the CPU accepts channels first.
T: The type of the elements.)";

}  // namespace

void Register(Registry& registry) {
  registry.Op("AvgPool")
      .Group("nn_ops")
      .Input("value: T")
      .Output("output: T")
      .Attr("ksize: list(int) >= 4")
      .Attr("strides: list(int) >= 4")
      .Attr("padding: {'SAME', 'VALID'}")
      .Attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
      .Attr("T: {half, bfloat16, float, double}")
      .Shape(AvgPoolShape<4>)
      .Doc(absl::StrCat(R"(Computes the means of windows of images.

Padding does not count. Means of more than 16 elements are accumulated in double.

value: Images of shape [batch, rows, columns, channels], or as `data_format` says.
output: The mean of each window.
)",
                        kAttrsDoc));
  registry.Op("AvgPoolGrad")
      .Group("nn_ops")
      .Input("orig_input_shape: int32")
      .Input("grad: T")
      .Output("output: T")
      .Attr("ksize: list(int) >= 4")
      .Attr("strides: list(int) >= 4")
      .Attr("padding: {'SAME', 'VALID'}")
      .Attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
      .Attr("T: {half, bfloat16, float, double}")
      .Shape(AvgPoolGradShape<4>)
      .Doc(absl::StrCat(R"(Computes the gradient of AvgPool.

orig_input_shape: The shape of the input of AvgPool.
grad: The gradients with respect to the output of AvgPool, of the same shape.
output: The gradients with respect to the input.
)",
                        kAttrsDoc));
  registry.Op("AvgPool3D")
      .Group("nn_ops")
      .Input("input: T")
      .Output("output: T")
      .Attr("ksize: list(int) >= 5")
      .Attr("strides: list(int) >= 5")
      .Attr("padding: {'SAME', 'VALID'}")
      .Attr("data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'")
      .Attr("T: {half, bfloat16, float, double}")
      .Shape(AvgPoolShape<5>)
      .Doc(absl::StrCat(R"(Computes the means of windows of volumes.

Padding does not count. Means of more than 16 elements are accumulated in double.

input: Volumes of shape [batch, planes, rows, columns, channels], or as `data_format` says.
output: The mean of each window.
)",
                        kAttrsDoc));
  registry.Op("AvgPool3DGrad")
      .Group("nn_ops")
      .Input("orig_input_shape: int32")
      .Input("grad: T")
      .Output("output: T")
      .Attr("ksize: list(int) >= 5")
      .Attr("strides: list(int) >= 5")
      .Attr("padding: {'SAME', 'VALID'}")
      .Attr("data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'")
      .Attr("T: {half, bfloat16, float, double}")
      .Shape(AvgPoolGradShape<5>)
      .Doc(absl::StrCat(R"(Computes the gradient of AvgPool3D.

orig_input_shape: The shape of the input of AvgPool3D.
grad: The gradients with respect to the output of AvgPool3D, of the same shape.
output: The gradients with respect to the input.
)",
                        kAttrsDoc));
  RegisterKernels<4>(registry, "AvgPool");
  RegisterKernels<5>(registry, "AvgPool3D");
}

}  // namespace gradflow::avg_pool
