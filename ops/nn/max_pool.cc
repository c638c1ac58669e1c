// MaxPool, MaxPoolV2, MaxPool3D and MaxPoolWithArgmax.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/ops/common/indices.h"
#include "gradflow/ops/common/input_checks.h"
#include "gradflow/ops/nn/pool_argmax.h"
#include "gradflow/ops/nn/pool_rows.h"
#include "gradflow/ops/nn/pool_windows.h"

namespace gradflow::max_pool {
namespace {

template <int Rank>
absl::Status MaxPoolShape(ShapeContext& c) {
  PoolAttrs attrs;
  const bool sizes_are_inputs = c.num_inputs() == 3;
  GRADFLOW_RETURN_IF_ERROR(attrs.Read(c, Rank, sizes_are_inputs));
  if (sizes_are_inputs) {
    GRADFLOW_ASSIGN_OR_RETURN(const bool known, ReadPoolSizes(c, 1, &attrs));
    if (!known) {
      GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, attrs.input_rank()));
      PartialTensorShape shape = PartialTensorShape::UnknownOfRank(attrs.input_rank());
      shape.set_dim(0, c.Dim(0, 0));
      c.set_output(0, std::move(shape));
      return absl::OkStatus();
    }
  }
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, PooledShape(attrs, c.input(0)));
  c.set_output(0, shape);
  if (c.num_outputs() > 1) c.set_output(1, std::move(shape));
  return absl::OkStatus();
}

template <typename C, int Rank>
class MaxPool final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    types_ = InputTypes(construction);
    return attrs_.Read(construction, Rank, types_.size() == 3);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckInputTypes(ctx, types_));
    if (types_.size() == 1) return Pool(ctx, attrs_);
    PoolAttrs attrs = attrs_;
    GRADFLOW_RETURN_IF_ERROR(ReadPoolSizes(ctx, 1, &attrs));
    return Pool(ctx, attrs);
  }

 private:
  absl::Status Pool(KernelContext& ctx, const PoolAttrs& attrs) const {
    TensorShape shape;
    GRADFLOW_ASSIGN_OR_RETURN(const PoolGeometry g,
                              MakePoolGeometry(attrs, ctx.input(0).shape(), &shape));
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
    if (output->NumElements() == 0) return absl::OkStatus();
    return RowPooler<C, PoolMax<C>>(g, ctx.input(0), output).Run(ctx);
  }

  DataTypeVector types_;
  PoolAttrs attrs_;
};

template <typename C>
class MaxPoolWithArgmax final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    types_ = InputTypes(construction);
    GRADFLOW_RETURN_IF_ERROR(attrs_.Read(construction, 4));
    GRADFLOW_RETURN_IF_ERROR(
        construction.GetAttr("include_batch_in_index", &include_batch_in_index_));
    if (!attrs_.pools_channels()) return absl::OkStatus();
    return errors::Unimplemented("ksize[3] is ", attrs_.size[3],
                                 ", but positions of maxima across channels are not supported");
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckInputTypes(ctx, types_));
    const Tensor& input = ctx.input(0);
    if (input.NumElements() == 0) {
      return errors::InvalidArgument("input must not be empty, but has shape ",
                                     input.shape().DebugString());
    }
    TensorShape shape;
    GRADFLOW_ASSIGN_OR_RETURN(const PoolGeometry g,
                              MakePoolGeometry(attrs_, input.shape(), &shape));
    GRADFLOW_RETURN_IF_ERROR(CheckArgmaxPositions(g));
    GRADFLOW_RETURN_IF_ERROR(
        CheckArgmaxIndices(g, ctx.expected_output_dtype(1), include_batch_in_index_));
    Tensor* output = nullptr;
    Tensor* argmax = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(1, shape, &argmax));
    if (output->NumElements() == 0) return absl::OkStatus();
    const RowArgmax<C> rows(g, input);
    const RowWriter<C> writer(output);
    const int64_t n = g.out_row();
    const int64_t bytes = rows.ScratchBytes() + PaddedBytes<int32_t>(n) + PaddedBytes<C>(n);
    return ForEachPoolRow(
        ctx, g.out_rows(), rows.Nanoseconds(), bytes, [&](int64_t row, char* scratch) {
          char* const buffer = scratch + rows.ScratchBytes();
          int32_t* const positions = reinterpret_cast<int32_t*>(buffer);
          C* const values =
              writer.Place(row * n, reinterpret_cast<C*>(buffer + PaddedBytes<int32_t>(n)));
          rows.Run(ctx, row, scratch, values, positions);
          writer.Write(values, row * n, n);
          WriteIndices(g, row, positions, argmax);
        });
  }

 private:
  // Writes the indices of the maxima of a row, within their image or within the whole input.
  void WriteIndices(const PoolGeometry& g, int64_t row, const int32_t* positions,
                    Tensor* argmax) const {
    const int64_t batch = row / g.out[1];
    const int64_t begin = include_batch_in_index_ ? batch * g.in[1] * g.in_row() : 0;
    int64_t to = row * g.out_row();
    for (int64_t o = 0; o < g.out[2]; ++o) {
      for (int64_t d = 0; d < g.depth; ++d) {
        WriteIndex(argmax, to++, begin + int64_t{*positions++} * g.depth + d);
      }
    }
  }

  DataTypeVector types_;
  PoolAttrs attrs_;
  bool include_batch_in_index_ = false;
};

constexpr char kSizesDoc[] = R"(ksize: The size of the windows along each dimension.
strides: The distance between neighboring windows along each dimension.
)";
constexpr char kPaddingDoc[] =
    R"(padding: "SAME" pads the input to ceil(size / stride) windows along each dimension. "VALID" has the
  windows that lie within the input.
)";
constexpr char kExplicitDoc[] =
    R"(padding: "SAME" pads the input to ceil(size / stride) windows along each dimension. "VALID" has the
  windows that lie within the input. "EXPLICIT" pads the input by `explicit_paddings`.
explicit_paddings: The padding before and after each dimension, in the order of `data_format`, each less than the
  size of a window.
)";
constexpr char kFormatDoc[] =
    R"(data_format: The order of the dimensions. Unlike in TensorFlow, the CPU accepts channels first.
)";

}  // namespace

void Register(Registry& registry) {
  registry.Op("MaxPool")
      .Group("nn_ops")
      .Input("input: T")
      .Output("output: T")
      .Attr(
          "T: {half, bfloat16, float, double, int32, int64, uint8, int16, int8, uint16, qint8} = "
          "DT_FLOAT")
      .Attr("ksize: list(int) >= 4")
      .Attr("strides: list(int) >= 4")
      .Attr("padding: {'SAME', 'VALID', 'EXPLICIT'}")
      .Attr("explicit_paddings: list(int) = []")
      .Attr("data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'")
      .Shape(MaxPoolShape<4>)
      .Doc(absl::StrCat(R"(Computes the maxima of windows of images.

Ignores NaN: the maximum of a window of NaNs is -inf.

input: Images of shape [batch, rows, columns, channels], or as `data_format` says.
output: The maximum of each window.
T: The type of the elements.
)",
                        kSizesDoc, kExplicitDoc, kFormatDoc));
  registry.Op("MaxPoolV2")
      .Group("nn_ops")
      .Input("input: T")
      .Input("ksize: int32")
      .Input("strides: int32")
      .Output("output: T")
      .Attr(
          "T: {half, bfloat16, float, double, int32, int64, uint8, int16, int8, uint16, qint8} = "
          "DT_FLOAT")
      .Attr("padding: {'SAME', 'VALID'}")
      .Attr("data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'")
      .Shape(MaxPoolShape<4>)
      .Doc(absl::StrCat(
          R"(Computes the maxima of windows of images. The sizes and strides of windows are inputs.

Ignores NaN: the maximum of a window of NaNs is -inf.

input: Images of shape [batch, rows, columns, channels], or as `data_format` says.
)",
          kSizesDoc, R"(output: The maximum of each window.
T: The type of the elements.
)",
          kPaddingDoc, kFormatDoc));
  registry.Op("MaxPool3D")
      .Group("nn_ops")
      .Input("input: T")
      .Output("output: T")
      .Attr("ksize: list(int) >= 5")
      .Attr("strides: list(int) >= 5")
      .Attr("padding: {'SAME', 'VALID'}")
      .Attr("data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'")
      .Attr("T: {half, bfloat16, float}")
      .Shape(MaxPoolShape<5>)
      .Doc(absl::StrCat(R"(Computes the maxima of windows of volumes.

Ignores NaN: the maximum of a window of NaNs is -inf.

input: Volumes of shape [batch, planes, rows, columns, channels], or as `data_format` says.
output: The maximum of each window.
)",
                        kSizesDoc, kPaddingDoc, kFormatDoc, "T: The type of the elements."));
  registry.Op("MaxPoolWithArgmax")
      .Group("nn_ops")
      .Input("input: T")
      .Output("output: T")
      .Output("argmax: Targmax")
      .Attr("ksize: list(int) >= 4")
      .Attr("strides: list(int) >= 4")
      .Attr("Targmax: {int32, int64} = DT_INT64")
      .Attr("padding: {'SAME', 'VALID'}")
      .Attr("include_batch_in_index: bool = false")
      .Attr(
          "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, "
          "uint64}")
      .Shape(MaxPoolShape<4>)
      .Doc(absl::StrCat(
          R"(Computes the maxima of windows of images, and their positions.

If elements are equal, the first one in row-major order is the maximum. NaN is the maximum if it
comes first.

input: Images of shape [batch, rows, columns, channels].
output: The maximum of each window.
argmax: The index of the maximum: (row * columns + column) * channels + channel.
)",
          kSizesDoc, R"(Targmax: The type of `argmax`.
)",
          kPaddingDoc,
          R"(include_batch_in_index: If true, indices count from the first image of the batch.
T: The type of the elements.)"));
  const auto add = [&](auto tag, const DataTypeVector& of_c, bool of_max_pool) {
    using C = typename decltype(tag)::type;
    if (of_max_pool) {
      DataTypeVector types = of_c;
      if (of_c[0] == DT_INT8) types.push_back(DT_QINT8);
      for (const char* const op : {"MaxPool", "MaxPoolV2"}) {
        registry.Kernel(op, MakeKernel<MaxPool<C, 4>>).Types("T", types);
      }
    }
    registry.Kernel("MaxPoolWithArgmax", MakeKernel<MaxPoolWithArgmax<C>>).Types("T", of_c);
  };
  const DataTypeVector floats = {DT_FLOAT, DT_HALF, DT_BFLOAT16};
  add(TypeTag<float>(), floats, true);
  ForEachType(TypeList<double, int32_t, int64_t, uint8_t, int16_t, int8_t, uint16_t>(),
              [&](auto tag) {
                using C = typename decltype(tag)::type;
                add(tag, {DataTypeToEnum<C>::value}, true);
              });
  add(TypeTag<uint32_t>(), {DT_UINT32}, false);
  add(TypeTag<uint64_t>(), {DT_UINT64}, false);
  registry.Kernel("MaxPool3D", MakeKernel<MaxPool<float, 5>>).Types("T", floats);
}

}  // namespace gradflow::max_pool
