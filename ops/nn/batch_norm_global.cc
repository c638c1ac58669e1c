// BatchNormWithGlobalNormalization and its gradient: batch normalization with given moments.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/input_checks.h"
#include "gradflow/ops/nn/softmax_rows.h"

namespace gradflow::batch_norm_global {
namespace {

constexpr const char* kInputs[] = {"t", "m", "v", "beta", "gamma"};
constexpr const char* kGradInputs[] = {"t", "m", "v", "gamma", "backprop"};

// Returns INVALID_ARGUMENT unless the first shape is a batch of images and the others are vectors
// with an element per channel.
absl::Status CheckShapes(const PartialTensorShape* const (&shapes)[5],
                         const char* const (&names)[5], bool is_grad) {
  int64_t channels = -1;
  for (int i = 0; i < 5; ++i) {
    const PartialTensorShape& shape = *shapes[i];
    const bool is_image = i == 0 || (is_grad && i == 4);
    const int rank = is_image ? 4 : 1;
    if (shape.unknown_rank()) continue;
    GRADFLOW_RETURN_IF_ERROR(CheckRank(names[i], shape, rank));
    const int64_t size = shape.dim_size(rank - 1);
    if (channels < 0) channels = size;
    if (size >= 0 && size != channels) {
      return errors::InvalidArgument(names[i], " has shape ", shape.DebugString(), ", expected ",
                                     channels, " channels");
    }
  }
  if (!is_grad || shapes[0]->IsCompatibleWith(*shapes[4])) return absl::OkStatus();
  return ShapeError(names[4], *shapes[4], *shapes[0], "the shape of t");
}

absl::Status Shape(ShapeContext& c) {
  const bool is_grad = c.num_outputs() == 5;
  const PartialTensorShape* shapes[5];
  PartialTensorShape channels({-1});
  for (int i = 0; i < 5; ++i) {
    shapes[i] = &c.input(i);
    if (!shapes[i]->unknown_rank() && shapes[i]->dims() > 0 && channels.dim_size(0) < 0) {
      channels.set_dim(0, c.Dim(i, -1));
    }
  }
  GRADFLOW_RETURN_IF_ERROR(CheckShapes(shapes, is_grad ? kGradInputs : kInputs, is_grad));
  PartialTensorShape image = PartialTensorShape::UnknownOfRank(4);
  image.set_dim(3, channels.dim_size(0));
  GRADFLOW_ASSIGN_OR_RETURN(image, image.MergeWith(*shapes[0]));
  if (is_grad) {
    GRADFLOW_ASSIGN_OR_RETURN(image, image.MergeWith(*shapes[4]));
  }
  c.set_output(0, std::move(image));
  for (int i = 1; i < c.num_outputs(); ++i) c.set_output(i, channels);
  return absl::OkStatus();
}

class Kernel : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    types_ = InputTypes(construction);
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("variance_epsilon", &epsilon_));
    return construction.GetAttr("scale_after_normalization", &scale_);
  }

 protected:
  absl::Status Check(const KernelContext& ctx, bool is_grad) const {
    GRADFLOW_RETURN_IF_ERROR(CheckInputTypes(ctx, types_));
    PartialTensorShape copies[5];
    const PartialTensorShape* shapes[5];
    for (int i = 0; i < 5; ++i) {
      copies[i] = ctx.input(i).shape();
      shapes[i] = &copies[i];
    }
    return CheckShapes(shapes, is_grad ? kGradInputs : kInputs, is_grad);
  }

  // Returns input i, which has one number per channel, as double.
  template <typename C>
  absl::StatusOr<Tensor> Channels(KernelContext& ctx, int i) const {
    Tensor values;
    const int64_t n = ctx.input(i).NumElements();
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_DOUBLE, {n}, &values));
    Tensor buffer;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DataTypeToEnum<C>::value, {n}, &buffer));
    if (n == 0) return values;
    const C* const from = RowReader<C>(ctx.input(i)).Read(0, n, buffer.flat<C>().data());
    std::copy_n(from, n, values.flat<double>().data());
    return values;
  }

  float epsilon_ = 0;
  bool scale_ = false;

 private:
  DataTypeVector types_;
};

// Writes output i, which has one number per channel, from doubles.
template <typename C>
absl::Status WriteChannels(KernelContext& ctx, int i, const Tensor& values) {
  const int64_t n = values.NumElements();
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(i, {n}, &output));
  Tensor buffer;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DataTypeToEnum<C>::value, {n}, &buffer));
  if (n == 0) return absl::OkStatus();
  const RowWriter<C> writer(output);
  C* const to = writer.Place(0, buffer.flat<C>().data());
  for (int64_t c = 0; c < n; ++c) to[c] = static_cast<C>(values.flat<double>()(c));
  writer.Write(to, 0, n);
  return absl::OkStatus();
}

// Blocks of rows. There are few blocks, so that their partial sums need little memory.
struct Rows {
  int64_t rows;
  int64_t channels;
  int64_t block;

  Rows(const Tensor& images, double nanoseconds)
      : rows(images.NumElements() == 0 ? 0 : images.NumElements() / images.dim_size(3)),
        channels(images.dim_size(3)),
        block(std::max(BlockSizeForCost(nanoseconds * static_cast<double>(channels)),
                       NumBlocks(rows, 64))) {}
  int64_t blocks() const { return NumBlocks(rows, block); }
};

template <typename C>
class Forward final : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(Check(ctx, false));
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, ctx.input(0).shape(), &output));
    if (output->NumElements() == 0) return absl::OkStatus();
    GRADFLOW_ASSIGN_OR_RETURN(const Tensor mean, Channels<C>(ctx, 1));
    GRADFLOW_ASSIGN_OR_RETURN(const Tensor variance, Channels<C>(ctx, 2));
    GRADFLOW_ASSIGN_OR_RETURN(const Tensor beta, Channels<C>(ctx, 3));
    GRADFLOW_ASSIGN_OR_RETURN(const Tensor gamma, Channels<C>(ctx, 4));
    const Rows rows(*output, 0.6);
    const int64_t n = rows.channels;
    Tensor coefficients;
    GRADFLOW_RETURN_IF_ERROR(
        ctx.AllocateTemp(DataTypeToEnum<C>::value, {3 + rows.blocks(), n}, &coefficients));
    C* const means = coefficients.flat<C>().data();
    C* const factors = means + n;
    C* const offsets = factors + n;
    for (int64_t c = 0; c < n; ++c) {
      const double factor = 1 / std::sqrt(variance.flat<double>()(c) + epsilon_);
      means[c] = static_cast<C>(mean.flat<double>()(c));
      factors[c] = static_cast<C>(scale_ ? factor * gamma.flat<double>()(c) : factor);
      offsets[c] = static_cast<C>(beta.flat<double>()(c));
    }
    const RowReader<C> reader(ctx.input(0));
    const RowWriter<C> writer(output);
    ParallelFor(ctx, rows.rows, rows.block, [&](int64_t begin, int64_t end) {
      C* const buffer = offsets + n * (1 + begin / rows.block);
      for (int64_t r = begin; r < end; ++r) {
        const C* const x = reader.Read(r * n, n, buffer);
        C* const y = writer.Place(r * n, buffer);
        for (int64_t c = 0; c < n; ++c) y[c] = (x[c] - means[c]) * factors[c] + offsets[c];
        writer.Write(y, r * n, n);
      }
    });
    return absl::OkStatus();
  }
};

template <typename C>
class GlobalBatchNormGradient final : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(Check(ctx, true));
    Tensor* dx = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, ctx.input(0).shape(), &dx));
    GRADFLOW_ASSIGN_OR_RETURN(const Tensor mean, Channels<C>(ctx, 1));
    GRADFLOW_ASSIGN_OR_RETURN(const Tensor variance, Channels<C>(ctx, 2));
    GRADFLOW_ASSIGN_OR_RETURN(const Tensor gamma, Channels<C>(ctx, 3));
    const Rows rows(*dx, 1.5);
    const int64_t n = rows.channels;
    Tensor factors;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DataTypeToEnum<C>::value, {n}, &factors));
    for (int64_t c = 0; c < n; ++c)
      factors.flat<C>()(c) = static_cast<C>(Factor(variance, gamma, c));
    // The sums of backprop and of backprop times the centered input.
    Tensor sums;
    GRADFLOW_RETURN_IF_ERROR(
        ctx.AllocateTemp(DT_DOUBLE, {std::max<int64_t>(1, rows.blocks()), 2, n}, &sums));
    std::fill_n(sums.flat<double>().data(), sums.NumElements(), 0.0);
    if (dx->NumElements() > 0) {
      GRADFLOW_RETURN_IF_ERROR(Run(ctx, rows, mean, factors, &sums, dx));
    }
    return WriteGradients(ctx, variance, gamma, sums.flat<double>().data());
  }

 private:
  // The derivative of the output with respect to t.
  double Factor(const Tensor& variance, const Tensor& gamma, int64_t c) const {
    const double rstd = 1 / std::sqrt(variance.flat<double>()(c) + epsilon_);
    return scale_ ? rstd * gamma.flat<double>()(c) : rstd;
  }

  absl::Status Run(KernelContext& ctx, const Rows& rows, const Tensor& mean, const Tensor& factors,
                   Tensor* sums, Tensor* dx) const {
    const int64_t n = rows.channels;
    Tensor buffers;
    GRADFLOW_RETURN_IF_ERROR(
        ctx.AllocateTemp(DataTypeToEnum<C>::value, {rows.blocks(), 2, n}, &buffers));
    const RowReader<C> inputs(ctx.input(0));
    const RowReader<C> grads(ctx.input(4));
    const RowWriter<C> writer(dx);
    const double* const means = mean.flat<double>().data();
    const C* const factor = factors.flat<C>().data();
    double* const all_sums = sums->flat<double>().data();
    ParallelFor(ctx, rows.rows, rows.block, [&](int64_t begin, int64_t end) {
      const int64_t block = begin / rows.block;
      C* const buffer = buffers.flat<C>().data() + block * 2 * n;
      double* const db = all_sums + block * 2 * n;
      double* const dg = db + n;
      for (int64_t r = begin; r < end; ++r) {
        const C* const x = inputs.Read(r * n, n, buffer);
        const C* const dy = grads.Read(r * n, n, buffer + n);
        for (int64_t c = 0; c < n; ++c) {
          db[c] += static_cast<double>(dy[c]);
          dg[c] += static_cast<double>(dy[c]) * (static_cast<double>(x[c]) - means[c]);
        }
        C* const to = writer.Place(r * n, buffer);
        for (int64_t c = 0; c < n; ++c) to[c] = dy[c] * factor[c];
        writer.Write(to, r * n, n);
      }
    });
    for (int64_t block = 1; block < rows.blocks(); ++block) {
      for (int64_t i = 0; i < 2 * n; ++i) all_sums[i] += all_sums[block * 2 * n + i];
    }
    return absl::OkStatus();
  }

  absl::Status WriteGradients(KernelContext& ctx, const Tensor& variance, const Tensor& gamma,
                              const double* sums) const {
    const int64_t n = variance.NumElements();
    Tensor values;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_DOUBLE, {n}, &values));
    for (int i = 1; i < 5; ++i) {
      for (int64_t c = 0; c < n; ++c) {
        const double shifted = variance.flat<double>()(c) + epsilon_;
        const double factor = Factor(variance, gamma, c);
        const double by_output[] = {-sums[c] * factor, sums[n + c] * factor * -0.5 / shifted,
                                    sums[c], scale_ ? sums[n + c] / std::sqrt(shifted) : 0.0};
        values.flat<double>()(c) = by_output[i - 1];
      }
      GRADFLOW_RETURN_IF_ERROR(WriteChannels<C>(ctx, i, values));
    }
    return absl::OkStatus();
  }
};

constexpr char kTypes[] =
    "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, "
    "bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64}";

constexpr char kInstead[] = "Use tf.nn.batch_normalization()";
constexpr char kAttrsDoc[] =
    R"(T: The type of the inputs and outputs. There are kernels for half, bfloat16, float and double.
variance_epsilon: A small number that is added to the variance.
scale_after_normalization: True if the results are multiplied by `gamma`.)";

}  // namespace

void Register(Registry& registry) {
  registry.Op("BatchNormWithGlobalNormalization")
      .Group("nn_ops")
      .Input("t: T")
      .Input("m: T")
      .Input("v: T")
      .Input("beta: T")
      .Input("gamma: T")
      .Output("result: T")
      .Attr(kTypes)
      .Attr("variance_epsilon: float")
      .Attr("scale_after_normalization: bool")
      .Deprecated(9, kInstead)
      .Shape(Shape)
      .Doc(absl::StrCat(R"(Normalizes images by the given moments of their channels.

The result is (t - m) * rsqrt(v + variance_epsilon) * gamma + beta.

t: Images of rank 4, whose last dimension is the channels.
m: The mean of each channel.
v: The variance of each channel.
beta: The offset of each channel.
gamma: The scale of each channel, which is used if `scale_after_normalization` is true.
result: The normalized images, of the shape of `t`.
)",
                        kAttrsDoc));
  registry.Op("BatchNormWithGlobalNormalizationGrad")
      .Group("nn_ops")
      .Input("t: T")
      .Input("m: T")
      .Input("v: T")
      .Input("gamma: T")
      .Input("backprop: T")
      .Output("dx: T")
      .Output("dm: T")
      .Output("dv: T")
      .Output("db: T")
      .Output("dg: T")
      .Attr(kTypes)
      .Attr("variance_epsilon: float")
      .Attr("scale_after_normalization: bool")
      .Deprecated(9, kInstead)
      .Shape(Shape)
      .Doc(absl::StrCat(R"(Computes the gradients of BatchNormWithGlobalNormalization.

Sums over rows are accumulated in double.

t: Images of rank 4, whose last dimension is the channels.
m: The mean of each channel.
v: The variance of each channel.
gamma: The scale of each channel.
backprop: The gradients with respect to the result, of the shape of `t`.
dx: The gradients with respect to `t`.
dm: The gradients with respect to `m`.
dv: The gradients with respect to `v`.
db: The gradients with respect to `beta`.
dg: The gradients with respect to `gamma`; 0 if `scale_after_normalization` is false.
)",
                        kAttrsDoc));
  const DataTypeVector floats = {DT_FLOAT, DT_HALF, DT_BFLOAT16};
  constexpr char kOp[] = "BatchNormWithGlobalNormalization";
  registry.Kernel(kOp, MakeKernel<Forward<float>>).Types("T", floats);
  registry.Kernel(kOp, MakeKernel<Forward<double>>).Types("T", {DT_DOUBLE});
  constexpr char kGradOp[] = "BatchNormWithGlobalNormalizationGrad";
  registry.Kernel(kGradOp, MakeKernel<GlobalBatchNormGradient<float>>).Types("T", floats);
  registry.Kernel(kGradOp, MakeKernel<GlobalBatchNormGradient<double>>).Types("T", {DT_DOUBLE});
}

}  // namespace gradflow::batch_norm_global
