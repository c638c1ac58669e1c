// Reverse, ReverseV2 and ReverseSequence.
#include <algorithm>
#include <utility>
#include <vector>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/indices.h"
#include "gradflow/ops/common/strided_copy.h"

namespace gradflow::reverse {
namespace {

// Sets output 0 to input 0, reversed along each dimension d with reversed[d].
absl::Status OutputReversed(KernelContext& ctx, const std::vector<bool>& reversed) {
  const TensorShape& shape = ctx.input(0).shape();
  StridedLoop::Operand from = {0, RowMajorStrides(shape.dim_sizes())};
  for (int d = 0; d < shape.dims(); ++d) {
    if (!reversed[d] || shape.dim_size(d) == 1) continue;
    from.offset += (shape.dim_size(d) - 1) * from.strides[d];
    from.strides[d] = -from.strides[d];
  }
  return OutputStrided(ctx, 0, shape, shape.dim_sizes(), 0, std::move(from));
}

// ---- Reverse ----

absl::Status DimsError(const PartialTensorShape& tensor, int64_t length) {
  return errors::InvalidArgument("dims must have one element for each dimension of tensor, of ",
                                 "shape ", tensor.DebugString(), ", but has ", length);
}

absl::Status ReverseShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(1, 1));
  PartialTensorShape shape = c.input(0);
  if (const int64_t length = c.Dim(1, 0); length >= 0) {
    if (length > kMaxDims || (!shape.unknown_rank() && shape.dims() != length)) {
      return DimsError(shape, length);
    }
    if (shape.unknown_rank()) shape = PartialTensorShape::UnknownOfRank(static_cast<int>(length));
  }
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status Reverse(KernelContext& ctx) {
  // The kernel accepts a scalar `dims` for a scalar input, as in TensorFlow. The shape function
  // does not.
  if (ctx.input(0).dims() == 0 && ctx.input(1).dims() == 0) return OutputReversed(ctx, {});
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(1, "dims"));
  const Tensor& dims = ctx.input(1);
  if (dims.NumElements() != ctx.input(0).dims()) {
    return DimsError(ctx.input(0).shape(), dims.NumElements());
  }
  const absl::Span<const bool> flags = dims.span<bool>();
  return OutputReversed(ctx, std::vector<bool>(flags.begin(), flags.end()));
}

// ---- ReverseV2 ----

absl::Status ReverseV2Shape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(1, 1));
  std::vector<int64_t> axes;
  GRADFLOW_ASSIGN_OR_RETURN(const bool known, c.IntsFromInput(1, &axes));
  if (known && !c.input(0).unknown_rank()) {
    GRADFLOW_RETURN_IF_ERROR(NamedAxes("axis", axes, c.input(0).dims()).status());
  }
  c.set_output(0, c.input(0));
  return absl::OkStatus();
}

absl::Status ReverseV2(KernelContext& ctx) {
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(1, "axis"));
  GRADFLOW_ASSIGN_OR_RETURN(const DimVector axes, ctx.Ints(1, "axis"));
  GRADFLOW_ASSIGN_OR_RETURN(const std::vector<bool> reversed,
                            NamedAxes("axis", axes, ctx.input(0).dims()));
  return OutputReversed(ctx, reversed);
}

// ---- ReverseSequence ----

struct SequenceDims {
  int64_t seq = 0;
  int64_t batch = 0;

  template <typename Source>
  absl::Status Read(const Source& source) {
    GRADFLOW_RETURN_IF_ERROR(source.GetAttr("seq_dim", &seq));
    return source.GetAttr("batch_dim", &batch);
  }

  // Returns INVALID_ARGUMENT unless seq_dim and batch_dim are different dimensions, and `lengths`
  // has an element per batch. REQUIRES: the rank of `lengths` is 1
  absl::Status Check(const PartialTensorShape& input, const PartialTensorShape& lengths) const {
    for (const auto& [name, dim] : {std::pair("seq_dim", seq), std::pair("batch_dim", batch)}) {
      if (dim < 0 || dim >= input.dims()) {
        return errors::InvalidArgument(name, " ", dim, " is out of range [0, ", input.dims(), ")");
      }
    }
    if (seq == batch) {
      return errors::InvalidArgument("seq_dim and batch_dim must differ, but both are ", seq);
    }
    const int64_t size = input.dim_size(static_cast<int>(batch));
    const int64_t count = lengths.unknown_rank() ? -1 : lengths.dim_size(0);
    if (size >= 0 && count >= 0 && size != count) {
      return errors::InvalidArgument("seq_lengths has ", count, " elements, expected ", size,
                                     ", the size of dimension batch_dim of input, of shape ",
                                     input.DebugString());
    }
    return absl::OkStatus();
  }
};

absl::Status ReverseSequenceShape(ShapeContext& c) {
  SequenceDims dims;
  GRADFLOW_RETURN_IF_ERROR(dims.Read(c));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(1, 1));
  PartialTensorShape shape = c.input(0);
  if (shape.unknown_rank()) return absl::OkStatus();
  GRADFLOW_RETURN_IF_ERROR(dims.Check(shape, c.input(1)));
  if (const int64_t batches = c.Dim(1, 0); batches >= 0) {
    shape.set_dim(static_cast<int>(dims.batch), batches);
  }
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

// The sizes of the input [outer, first, middle, second, inner]. `first` and `second` are the
// sequence and the batch, in the order of their dimensions.
struct SequenceSizes {
  int64_t outer = 1;
  int64_t first = 1;
  int64_t middle = 1;
  int64_t second = 1;
  int64_t inner = 1;
};

class ReverseSequenceKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) { return dims_.Read(construction); }

  absl::Status Compute(KernelContext& ctx) const override {
    const Tensor& input = ctx.input(0);
    const Tensor& lengths = ctx.input(1);
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(1, "seq_lengths"));
    GRADFLOW_RETURN_IF_ERROR(dims_.Check(input.shape(), lengths.shape()));
    const int64_t steps = input.dim_size(static_cast<int>(dims_.seq));
    const IndexReader reader(lengths);
    for (int64_t i = 0; i < lengths.NumElements(); ++i) {
      if (reader[i] < 0 || reader[i] > steps) {
        return errors::InvalidArgument("seq_lengths[", i, "] must be in [0, ", steps, "], but is ",
                                       reader[i]);
      }
    }
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, input.shape(), &output));
    if (input.NumElements() == 0) return absl::OkStatus();
    SequenceSizes sizes;
    const auto [low, high] = std::minmax(dims_.seq, dims_.batch);
    for (int d = 0; d < input.dims(); ++d) {
      const int64_t size = input.dim_size(d);
      (d < low     ? sizes.outer
       : d == low  ? sizes.first
       : d < high  ? sizes.middle
       : d == high ? sizes.second
                   : sizes.inner) *= size;
    }
    DispatchElement(input.dtype(), [&](auto tag) {
      Copy<typename decltype(tag)::type>(ctx.run(), sizes, input, reader, output);
    });
    return absl::OkStatus();
  }

 private:
  template <typename E>
  void Copy(const RunContext& run, const SequenceSizes& sizes, const Tensor& input,
            const IndexReader& lengths, Tensor* output) const {
    const E* from = static_cast<const E*>(input.raw_data());
    E* to = static_cast<E*>(output->raw_data());
    const bool seq_first = dims_.seq < dims_.batch;
    const double run_cost = 5 + sizes.inner * (kIsObject<E> ? 20 : 0.05 * sizeof(E));
    const int64_t first_stride = sizes.middle * sizes.second;
    ParallelFor(run, sizes.outer * sizes.first * first_stride, BlockSizeForCost(run_cost),
                [&](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i) {
                    const int64_t first = i / first_stride % sizes.first;
                    const int64_t second = i % sizes.second;
                    const int64_t step = seq_first ? first : second;
                    const int64_t length = lengths[seq_first ? second : first];
                    const int64_t moved = step < length ? length - 1 - 2 * step : 0;
                    const int64_t source = i + moved * (seq_first ? first_stride : 1);
                    std::copy_n(from + source * sizes.inner, sizes.inner, to + i * sizes.inner);
                  }
                });
  }

  SequenceDims dims_;
};

}  // namespace

void Register(Registry& registry) {
  registry.Op("Reverse")
      .Group("array_ops")
      .HandWritten()  // TensorFlow's class Reverse is ReverseV2.
      .Input("tensor: T")
      .Input("dims: bool")
      .Output("output: T")
      .Attr(
          "T: {uint8, int8, uint16, int16, uint32, int32, uint64, int64, bool, bfloat16, half, "
          "float, double, complex64, complex128, string}")
      .Shape(ReverseShape)
      .Doc(R"(Reverses dimensions of a tensor, selected by flags.

tensor: The tensor.
dims: A vector with an element for each dimension: true reverses it.
output: The tensor with the elements of these dimensions in reverse order.
T: The type of `tensor`.)");
  registry.Kernel("Reverse", MakeFunctionKernel<Reverse>);

  registry.Op("ReverseV2")
      .Group("array_ops")
      .Alias("Reverse")
      .Input("tensor: T")
      .Input("axis: Tidx")
      .Output("output: T")
      .Attr("Tidx: {int32, int64} = DT_INT32")
      .Attr(
          "T: {uint8, int8, uint16, int16, int32, uint32, int64, uint64, bool, bfloat16, half, "
          "float, double, complex64, complex128, string}")
      .Shape(ReverseV2Shape)
      .Doc(R"(Reverses dimensions of a tensor.

tensor: The tensor.
axis: A vector: the dimensions to reverse, each at most once. Negative values count from the end.
output: The tensor with the elements of these dimensions in reverse order.
Tidx: The type of `axis`.
T: The type of `tensor`.)");
  registry.Kernel("ReverseV2", MakeFunctionKernel<ReverseV2>);

  registry.Op("ReverseSequence")
      .Group("array_ops")
      .Input("input: T")
      .Input("seq_lengths: Tlen")
      .Output("output: T")
      .Attr("seq_dim: int")
      .Attr("batch_dim: int = 0")
      .Attr("T: type")
      .Attr("Tlen: {int32, int64} = DT_INT64")
      .Shape(ReverseSequenceShape)
      .Doc(R"(Reverses the beginning of each sequence of a batch.

In batch i, the first `seq_lengths[i]` elements along `seq_dim` are reversed. The other elements
keep their positions.

input: The sequences.
seq_lengths: A vector: the number of elements to reverse for each index of `batch_dim`, from 0 to
  the size of `seq_dim`.
output: The sequences, partly reversed.
seq_dim: The dimension of the sequences.
batch_dim: The dimension of the batch; differs from `seq_dim`.
T: The type of `input`.
Tlen: The type of `seq_lengths`.)");
  registry.Kernel("ReverseSequence", MakeKernel<ReverseSequenceKernel>);
}

}  // namespace gradflow::reverse
