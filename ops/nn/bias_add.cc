// BiasAdd, BiasAddV1 and BiasAddGrad.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gradflow/core/fused_steps.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_context.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/data_types.h"
#include "gradflow/ops/common/elementwise.h"
#include "gradflow/ops/common/elementwise_simd.h"
#include "gradflow/ops/common/elementwise_step.h"
#include "gradflow/ops/common/input_checks.h"
#include "gradflow/ops/math/reducers.h"
#include "gradflow/ops/math/reduction.h"
#include "gradflow/proto/node_def.pb.h"

namespace gradflow::bias_add {
namespace {

struct Add {
  static constexpr ElementwiseLoop kFloatLoop = AddFloats;
  template <typename T>
  T operator()(T x, T y) const {
    return static_cast<T>(x + y);
  }
};

// Reads data_format if the op has this attribute, and sets *channels_last. Source is
// KernelConstruction or ShapeContext.
template <typename Source>
absl::Status ReadFormat(const Source& source, bool* channels_last) {
  std::string format = "NHWC";
  *channels_last = true;
  if (source.def().op() == "BiasAddV1") return absl::OkStatus();
  GRADFLOW_RETURN_IF_ERROR(source.GetAttr("data_format", &format));
  *channels_last = format == "NHWC";
  return absl::OkStatus();
}

// Returns the dimension of the channels. REQUIRES: the rank is at least 2
int ChannelDim(const PartialTensorShape& value, bool channels_last) {
  return channels_last ? value.dims() - 1 : 1;
}

absl::Status CheckRank(absl::string_view name, const PartialTensorShape& value) {
  if (value.unknown_rank() || value.dims() >= 2) return absl::OkStatus();
  return errors::InvalidArgument(name, " has shape ", value.DebugString(),
                                 ", expected rank 2 at least");
}

// Checks the shapes of BiasAdd, and sets *output to the shape of the result if it is known.
absl::Status CheckShapes(const PartialTensorShape& value, const PartialTensorShape& bias,
                         bool channels_last, PartialTensorShape* output) {
  GRADFLOW_RETURN_IF_ERROR(CheckRank("value", value));
  if (!bias.unknown_rank() && bias.dims() != 1) {
    return errors::InvalidArgument("bias has shape ", bias.DebugString(), ", expected a vector");
  }
  *output = value;
  if (value.unknown_rank() || bias.unknown_rank()) return absl::OkStatus();
  const int d = ChannelDim(value, channels_last);
  const int64_t channels = value.dim_size(d);
  const int64_t biases = bias.dim_size(0);
  if (channels >= 0 && biases >= 0 && channels != biases) {
    return errors::InvalidArgument("bias has ", biases, " elements, expected ", channels,
                                   " (the channels of value ", value.DebugString(), ", ",
                                   channels_last ? "NHWC" : "NCHW", ")");
  }
  if (channels < 0 && biases >= 0) {
    output->set_dim(d, biases);
    // The known sizes of both inputs together may have too many elements.
    return PartialTensorShape::Make(output->dim_sizes()).status();
  }
  return absl::OkStatus();
}

absl::Status BiasAddShape(ShapeContext& c) {
  bool channels_last = true;
  GRADFLOW_RETURN_IF_ERROR(ReadFormat(c, &channels_last));
  PartialTensorShape output;
  GRADFLOW_RETURN_IF_ERROR(CheckShapes(c.input(0), c.input(1), channels_last, &output));
  c.set_output(0, output);
  return absl::OkStatus();
}

absl::Status BiasAddGradShape(ShapeContext& c) {
  bool channels_last = true;
  GRADFLOW_RETURN_IF_ERROR(ReadFormat(c, &channels_last));
  GRADFLOW_RETURN_IF_ERROR(CheckRank("out_backprop", c.input(0)));
  const PartialTensorShape& x = c.input(0);
  c.set_output(0, {x.unknown_rank() ? -1 : x.dim_size(ChannelDim(x, channels_last))});
  return absl::OkStatus();
}

class BiasAddKernel final : public OpKernel, public StepKernel {
 public:
  BiasAddKernel(DataTypeVector types, bool channels_last, ElementwiseLoop loop, int size)
      : types_(std::move(types)), channels_last_(channels_last), loop_(loop), size_(size) {}

  bool CanBeStep(int input) const override {
    return input == 0 && types_[0] == DT_FLOAT && channels_last_;
  }
  StepOp step_op() const override { return StepOp::kBias; }
  std::unique_ptr<FusedStep> MakeStep(const RunContext&, absl::Span<const Tensor> inputs, int input,
                                      const TensorShape& shape) const override {
    PartialTensorShape output;
    if (!CheckShapes(shape, inputs[1].shape(), channels_last_, &output).ok()) return nullptr;
    return MakeElementwiseStep(loop_, inputs, input, shape, Pairing::kBroadcast);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckInputTypes(ctx, types_));
    const TensorShape& shape = ctx.input(0).shape();
    PartialTensorShape output;
    GRADFLOW_RETURN_IF_ERROR(CheckShapes(shape, ctx.input(1).shape(), channels_last_, &output));
    if (channels_last_ || shape.dims() == 2) {
      return RunElementwise(ctx, {size_, size_}, kCheapNanoseconds, loop_);
    }
    return AddToPlanes(ctx);
  }

 private:
  // Adds the bias to planes of contiguous elements; each plane has one bias element.
  absl::Status AddToPlanes(KernelContext& ctx) const {
    const Tensor& value = ctx.input(0);
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.ForwardInputOrAllocateOutput(0, 0, value.shape(), &output));
    const int64_t total = value.NumElements();
    if (total == 0) return absl::OkStatus();
    const int64_t channels = value.dim_size(1);
    const int64_t plane = total / (value.dim_size(0) * channels);
    const int64_t size = DataTypeSize(value.dtype());
    const char* const x = static_cast<const char*>(value.raw_data());
    const char* const bias = static_cast<const char*>(ctx.input(1).raw_data());
    char* const out = static_cast<char*>(output->raw_data());
    ParallelFor(ctx, total, BlockSizeForCost(kCheapNanoseconds), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end;) {
        const int64_t number = i / plane;
        const int64_t count = std::min(end, (number + 1) * plane) - i;
        AddToRun(x + i * size, bias + number % channels * size, out + i * size, count);
        i += count;
      }
    });
    return absl::OkStatus();
  }

  // Adds one bias element to n elements.
  void AddToRun(const char* x, const char* bias, char* out, int64_t n) const {
    constexpr int64_t kStrides[] = {1, 0};
    const DataType dtype = types_[0];
    if (dtype != DT_HALF && dtype != DT_BFLOAT16) {
      const void* const operands[] = {x, bias};
      return loop_(operands, kStrides, out, n);
    }
    const ElementType type = dtype == DT_HALF ? ElementType::kHalf : ElementType::kBfloat16;
    float floats[kElementwiseChunk];
    float number = 0;
    Float16ToFloat(type, bias, &number, 1);
    for (int64_t i = 0; i < n; i += kElementwiseChunk) {
      const int64_t count = std::min(kElementwiseChunk, n - i);
      Float16ToFloat(type, x + 2 * i, floats, count);
      const void* const operands[] = {floats, &number};
      loop_(operands, kStrides, floats, count);
      FloatToFloat16(type, floats, out + 2 * i, count, /*non_temporal=*/false);
    }
  }

  const DataTypeVector types_;
  const bool channels_last_;
  const ElementwiseLoop loop_;
  // The size of an element in the loop, in bytes.
  const int size_;
};

template <ElementwiseLoop Loop, int Size>
absl::StatusOr<std::unique_ptr<OpKernel>> MakeBiasAdd(const KernelConstruction& construction) {
  bool channels_last = true;
  GRADFLOW_RETURN_IF_ERROR(ReadFormat(construction, &channels_last));
  return std::make_unique<BiasAddKernel>(InputTypes(construction), channels_last, Loop, Size);
}

class BiasAddGradKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    types_ = InputTypes(construction);
    reducer_ = SumReducer(construction.output_type(0));
    return ReadFormat(construction, &channels_last_);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckInputTypes(ctx, types_));
    const Tensor& x = ctx.input(0);
    GRADFLOW_RETURN_IF_ERROR(CheckRank("out_backprop", x.shape()));
    const int d = ChannelDim(x.shape(), channels_last_);
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, {x.dim_size(d)}, &output));
    std::vector<bool> reduced(x.dims(), true);
    reduced[d] = false;
    return ReduceTensor(ctx, reducer_, x, reduced, output);
  }

 private:
  DataTypeVector types_;
  Reducer reducer_ = {};
  bool channels_last_ = true;
};

template <typename... Ts>
void RegisterAdditions(Registry& registry, absl::string_view op, TypeList<Ts...>) {
  (registry
       .Kernel(op, MakeBiasAdd<internal::kBinaryLoop<Add, WrappingType<ComputeType<Ts>>,
                                                     WrappingType<ComputeType<Ts>>>,
                               sizeof(ComputeType<Ts>)>)
       .template Type<Ts>("T"),
   ...);
}

constexpr char kFormat[] = "data_format: {'NHWC', 'NCHW'} = 'NHWC'";

}  // namespace

void Register(Registry& registry) {
  registry.Op("BiasAdd")
      .Group("nn_ops")
      .Input("value: T")
      .Input("bias: T")
      .Output("output: T")
      .Attr("T: numbertype")
      .Attr(kFormat)
      .Shape(BiasAddShape)
      .Doc(R"(Adds a bias to each channel of a tensor.

Integers wrap around. There are no kernels for quantized integers.

value: A tensor of rank 2 at least.
bias: A vector with one element for each channel.
output: The sums, of the shape of `value`.
T: The type of the inputs and outputs.
data_format: The dimension of the channels: the last for NHWC, dimension 1 for NCHW, whatever the
  rank.)");
  registry.Op("BiasAddV1")
      .Group("nn_ops")
      .Input("value: T")
      .Input("bias: T")
      .Output("output: T")
      .Attr("T: numbertype")
      .Shape(BiasAddShape)
      .Doc(R"(Adds a bias to each channel of a tensor, as BiasAdd does for NHWC.

value: A tensor of rank 2 at least, whose channels are the last dimension.
bias: A vector with one element for each channel.
output: The sums, of the shape of `value`.
T: The type of the inputs and outputs.)");
  registry.Op("BiasAddGrad")
      .Group("nn_ops")
      .Input("out_backprop: T")
      .Output("output: T")
      .Attr("T: numbertype")
      .Attr(kFormat)
      .Shape(BiasAddGradShape)
      .Doc(R"(Computes the gradient of BiasAdd with respect to the bias: the sums of each channel.

Sums are computed as by Sum.

out_backprop: A tensor of rank 2 at least.
output: The sum of the elements of each channel; 0 if there are no elements.
T: The type of both; there are no kernels for quantized integers.
data_format: The dimension of the channels: the last for NHWC, dimension 1 for NCHW, whatever the
  rank.)");
  RegisterAdditions(registry, "BiasAdd", NumberTypes());
  RegisterAdditions(registry, "BiasAddV1", NumberTypes());
  registry.Kernel("BiasAddGrad", MakeKernel<BiasAddGradKernel>)
      .Types("T", DataTypesOf(NumberTypes()));
}

}  // namespace gradflow::bias_add
