#include "gradflow/ops/common/elementwise.h"

#include <hwy/cache_control.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "gradflow/core/fused_steps.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/elementwise_simd.h"
#include "gradflow/ops/common/elementwise_step.h"
#include "gradflow/ops/common/strided_copy.h"

namespace gradflow {
namespace {

using LoopRef =
    absl::FunctionRef<void(const void* const* x, const int64_t* strides, void* out, int64_t n)>;

// Up to this number of elements, a loop runs as one block without computing the block size.
constexpr int64_t kFew = 256;
// The size of each scratch buffer of a chunk. All buffers together fit the L1 cache.
constexpr int64_t kBufferBytes = 4096;
static_assert(kElementwiseChunk * static_cast<int64_t>(sizeof(float)) <= kBufferBytes);

int64_t ElementSize(DataType dtype) {
  return dtype == DT_STRING ? static_cast<int64_t>(sizeof(tstring)) : DataTypeSize(dtype);
}

absl::Status WrongSize(int input, DataType dtype, int64_t expected) {
  return errors::InvalidArgument("input ", input, " has type ", DataTypeString(dtype),
                                 ", expected a type with elements of ", expected, " bytes");
}

std::optional<ElementType> Float16Type(DataType dtype) {
  if (dtype == DT_HALF) return ElementType::kHalf;
  if (dtype == DT_BFLOAT16) return ElementType::kBfloat16;
  return std::nullopt;
}

// An input or the output.
struct LoopOperand {
  char* data;
  // The size of an element in memory, in bytes.
  int64_t size;
  // The 16-bit type if elements are converted from or to float.
  std::optional<ElementType> float16;
};

// Copies `rows` rows of n elements. Rows are `row_stride` elements apart in `from`. `stride`, the
// distance between the elements of a row, is 1 or 0.
template <typename E>
void GatherRowsOf(const E* from, int64_t row_stride, int64_t stride, int64_t rows, int64_t n,
                  E* to) {
  if (row_stride == 0) {
    for (int64_t i = 0; i < n; ++i) to[i] = from[i * stride];
    for (int64_t done = n; done < rows * n; done *= 2) {
      std::memcpy(to + done, to, std::min(done, rows * n - done) * sizeof(E));
    }
  } else if (stride == 0 && n < 16) {
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t r = 0; r < rows; ++r) to[r * n + i] = from[r * row_stride];
    }
  } else if (stride == 0) {
    for (int64_t r = 0; r < rows; ++r) {
      const E value = from[r * row_stride];
      for (int64_t i = 0; i < n; ++i) to[r * n + i] = value;
    }
  } else {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t i = 0; i < n; ++i) to[r * n + i] = from[r * row_stride + i];
    }
  }
}

void GatherRows(int64_t size, const void* from, int64_t row_stride, int64_t stride, int64_t rows,
                int64_t n, void* to) {
  const auto gather = [&](auto element) {
    using E = decltype(element);
    GatherRowsOf(static_cast<const E*>(from), row_stride, stride, rows, n, static_cast<E*>(to));
  };
  switch (size) {
    case 1:
      return gather(uint8_t());
    case 2:
      return gather(uint16_t());
    case 4:
      return gather(uint32_t());
    case 8:
      return gather(uint64_t());
    default:
      return gather(Bytes16());
  }
}

class Elementwise {
 public:
  Elementwise(LoopRef loop, double nanoseconds) : loop_(loop), nanoseconds_(nanoseconds) {}

  absl::Status Run(KernelContext& ctx, absl::Span<const int> sizes, Pairing pairing) {
    num_inputs_ = static_cast<int>(sizes.size());
    // The common case of equal shapes needs no copy of the shape.
    bool same_shape = true;
    for (int k = 0; k < num_inputs_; ++k) {
      GRADFLOW_RETURN_IF_ERROR(AddInput(ctx, k, sizes[k]));
      same_shape = same_shape && ctx.input(k).shape() == ctx.input(0).shape();
    }
    if (pairing == Pairing::kInOrder && !same_shape) {
      GRADFLOW_RETURN_IF_ERROR(CheckSameNumbers(ctx));
      same_shape = true;
    }
    if (same_shape) {
      GRADFLOW_RETURN_IF_ERROR(AllocateOutput(ctx, ctx.input(0).shape()));
      RunContiguous(ctx);
      return absl::OkStatus();
    }
    TensorShape shape = ctx.input(num_inputs_ - 1).shape();
    for (int k = num_inputs_ - 1; k-- > 0;) {
      GRADFLOW_ASSIGN_OR_RETURN(shape, BroadcastShapes(ctx.input(k).shape(), shape));
    }
    GRADFLOW_RETURN_IF_ERROR(AllocateOutput(ctx, shape));
    RunBroadcast(ctx, shape);
    return absl::OkStatus();
  }

 private:
  struct alignas(64) Buffer {
    char bytes[kBufferBytes];
  };

  absl::Status AddInput(const KernelContext& ctx, int k, int loop_size) {
    const Tensor& x = ctx.input(k);
    LoopOperand& operand = inputs_[k];
    operand.data = static_cast<char*>(const_cast<void*>(x.raw_data()));
    operand.size = ElementSize(x.dtype());
    operand.float16 = Float16Type(x.dtype());
    if (operand.float16.has_value() && loop_size == operand.size) {
      operand.float16.reset();
      moves_float16_ = true;
    }
    const int64_t size = operand.float16.has_value() ? sizeof(float) : operand.size;
    if (size != loop_size) return WrongSize(k, x.dtype(), loop_size);
    if (operand.float16.has_value()) converts_ = true;
    if (x.dtype() == DT_STRING) plain_ = false;
    largest_ = std::max<int64_t>(largest_, loop_size);
    return absl::OkStatus();
  }

  absl::Status CheckSameNumbers(const KernelContext& ctx) const {
    const TensorShape& first = ctx.input(0).shape();
    for (int k = 1; k < num_inputs_; ++k) {
      const TensorShape& shape = ctx.input(k).shape();
      if (shape.num_elements() == first.num_elements()) continue;
      return errors::InvalidArgument("input ", k, " has shape ", shape.DebugString(), ", expected ",
                                     first.num_elements(), " elements, as in ",
                                     first.DebugString());
    }
    return absl::OkStatus();
  }

  // Allocates the output, or reuses an input that is not broadcast. The loop reads each element of
  // such an input before it overwrites the element.
  absl::Status AllocateOutput(KernelContext& ctx, const TensorShape& shape) {
    int reused = 0;
    for (int k = num_inputs_; k-- > 0;) {
      const Tensor& x = ctx.input(k);
      if (x.dtype() == ctx.expected_output_dtype(0) && x.NumElements() == shape.num_elements() &&
          x.CanBeReused()) {
        reused = k;
      }
    }
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.ForwardInputOrAllocateOutput(reused, 0, shape, &output));
    num_elements_ = shape.num_elements();
    out_.data = static_cast<char*>(output->raw_data());
    out_.size = ElementSize(output->dtype());
    if (!moves_float16_) out_.float16 = Float16Type(output->dtype());
    if (output->dtype() == DT_STRING) plain_ = false;
    if (out_.float16.has_value()) converts_ = true;
    const int64_t loop_size = out_.float16.has_value() ? sizeof(float) : out_.size;
    largest_ = std::max(largest_, loop_size);
    bool over_input = false;
    for (int k = 0; k < num_inputs_; ++k) over_input |= inputs_[k].data == out_.data;
    // A plain store first reads its cache line. More expensive arithmetic hides this time.
    constexpr double kMaxNanoseconds = 2;
    non_temporal_ = plain_ && nanoseconds_ <= kMaxNanoseconds &&
                    ShouldUseNonTemporalStores(out_.data, over_input, num_elements_ * out_.size);
    chunk_ = std::min(kElementwiseChunk, kBufferBytes / largest_);
    return absl::OkStatus();
  }

  void RunContiguous(const KernelContext& ctx) const {
    const auto run = [&](int64_t begin, int64_t end) {
      const char* x[kMaxElementwiseInputs] = {};
      int64_t strides[kMaxElementwiseInputs];
      for (int k = 0; k < num_inputs_; ++k) {
        x[k] = inputs_[k].data + begin * inputs_[k].size;
        strides[k] = 1;
      }
      RunPiece(x, strides, begin, end - begin);
      if (non_temporal_) hwy::FlushStream();
    };
    if (num_elements_ > kFew) {
      ParallelFor(ctx, num_elements_, BlockSizeForCost(nanoseconds_), run);
    } else if (num_elements_ > 0) {
      run(0, num_elements_);
    }
  }

  void RunBroadcast(const KernelContext& ctx, const TensorShape& shape) const {
    const absl::Span<const int64_t> dims = shape.dim_sizes();
    std::vector<StridedLoop::Operand> operands = {{0, RowMajorStrides(dims)}};
    for (int k = 0; k < num_inputs_; ++k) {
      operands.push_back({0, BroadcastStrides(ctx.input(k).shape().dim_sizes(), dims)});
    }
    const StridedLoop loop(dims, std::move(operands));
    constexpr int64_t kShortRow = 128;
    if (plain_ && loop.dims().size() > 1 && loop.dims().back() < kShortRow) {
      return RunShortRows(ctx, loop);
    }
    int64_t strides[kMaxElementwiseInputs];
    for (int k = 0; k < num_inputs_; ++k) strides[k] = loop.inner_stride(k + 1);
    loop.ForEachRun(
        ctx.run(), nanoseconds_,
        [&](const int64_t* offsets, int64_t n) {
          const char* x[kMaxElementwiseInputs] = {};
          for (int k = 0; k < num_inputs_; ++k) {
            x[k] = inputs_[k].data + offsets[k + 1] * inputs_[k].size;
          }
          RunPiece(x, strides, offsets[0], n);
        },
        EndOfBlock());
  }

  // A thread calls this function after it has written a block of the output.
  using BlockFunction = void (*)();
  BlockFunction EndOfBlock() const {
    return non_temporal_ ? +[] { hwy::FlushStream(); } : nullptr;
  }

  // Computes many short rows at once. Gathers the rows of broadcast operands.
  void RunShortRows(const KernelContext& ctx, const StridedLoop& loop) const {
    const int last = static_cast<int>(loop.dims().size()) - 1;
    const int64_t row = loop.dims()[last];
    const int64_t chunk_rows = std::max<int64_t>(1, chunk_ / row);
    // A loop over segments of up to chunk_rows rows. The offset of the last operand is the first
    // row of the segment, counted within the innermost dimension of rows.
    DimVector dims(loop.dims().begin(), loop.dims().end() - 1);
    const int64_t rows = dims.back();
    dims.back() = NumBlocks(rows, chunk_rows);
    std::vector<StridedLoop::Operand> operands;
    for (int k = 0; k <= num_inputs_; ++k) {
      DimVector strides(loop.operand(k).strides.begin(), loop.operand(k).strides.end() - 1);
      strides.back() *= chunk_rows;
      operands.push_back({loop.operand(k).offset, std::move(strides)});
    }
    operands.push_back({0, DimVector(dims.size())});
    operands.back().strides.back() = chunk_rows;
    const StridedLoop segments(dims, std::move(operands));
    const int64_t segment_rows = std::min(rows, chunk_rows);
    segments.ForEachRun(
        ctx.run(), nanoseconds_ * static_cast<double>(segment_rows * row),
        [&](const int64_t* offsets, int64_t n) {
          Buffer buffers[kMaxElementwiseInputs];
          // The row that each buffer holds copies of (null if there is none), and the number of the
          // copies.
          const char* repeated[kMaxElementwiseInputs] = {};
          int64_t repeated_rows[kMaxElementwiseInputs] = {};
          for (int64_t s = 0; s < n; ++s) {
            const auto offset = [&](int k) { return offsets[k] + s * segments.inner_stride(k); };
            const int64_t count = std::min(chunk_rows, rows - offset(num_inputs_ + 1));
            const char* x[kMaxElementwiseInputs] = {};
            int64_t strides[kMaxElementwiseInputs];
            for (int k = 0; k < num_inputs_; ++k) {
              const LoopOperand& input = inputs_[k];
              const char* const from = input.data + offset(k + 1) * input.size;
              const int64_t row_stride = loop.operand(k + 1).strides[last - 1];
              const int64_t stride = loop.inner_stride(k + 1);
              strides[k] = row_stride == 0 && stride == 0 ? 0 : 1;
              x[k] = from;
              if (strides[k] == 0 || (stride == 1 && row_stride == row)) continue;
              x[k] = buffers[k].bytes;
              if (repeated[k] == from && count <= repeated_rows[k]) continue;
              GatherRows(input.size, from, row_stride, stride, count, row, buffers[k].bytes);
              repeated[k] = row_stride == 0 ? from : nullptr;
              repeated_rows[k] = count;
            }
            RunPiece(x, strides, offset(0), count * row);
          }
        },
        EndOfBlock());
  }

  // Computes n elements of the output, starting at element `begin`.
  void RunPiece(const char* const* x, const int64_t* strides, int64_t begin, int64_t n) const {
    char* const out = out_.data + begin * out_.size;
    const void* pointers[kMaxElementwiseInputs] = {};
    if (!converts_ && !non_temporal_) {
      for (int k = 0; k < num_inputs_; ++k) pointers[k] = x[k];
      return loop_(pointers, strides, out, n);
    }
    Buffer buffers[kMaxElementwiseInputs];
    Buffer results;
    for (int64_t i = 0; i < n; i += chunk_) {
      const int64_t count = std::min(chunk_, n - i);
      for (int k = 0; k < num_inputs_; ++k) {
        const LoopOperand& input = inputs_[k];
        const char* const from = x[k] + i * strides[k] * input.size;
        pointers[k] = from;
        if (!input.float16.has_value()) continue;
        pointers[k] = buffers[k].bytes;
        if (strides[k] == 0 && i > 0) continue;
        Float16ToFloat(*input.float16, from, reinterpret_cast<float*>(buffers[k].bytes),
                       strides[k] == 0 ? 1 : count);
      }
      char* const to = out + i * out_.size;
      const bool is_result_buffered = non_temporal_ || out_.float16.has_value();
      loop_(pointers, strides, is_result_buffered ? results.bytes : to, count);
      if (out_.float16.has_value()) {
        FloatToFloat16(*out_.float16, reinterpret_cast<const float*>(results.bytes), to, count,
                       non_temporal_);
      } else if (non_temporal_) {
        CopyNonTemporal(results.bytes, to, count * out_.size);
      }
    }
  }

  const LoopRef loop_;
  const double nanoseconds_;
  int num_inputs_ = 0;
  std::array<LoopOperand, kMaxElementwiseInputs> inputs_;
  LoopOperand out_;
  int64_t num_elements_ = 0;
  // The size in bytes of the largest element of the loop, and the number of elements in a chunk.
  int64_t largest_ = 1;
  int64_t chunk_ = 0;
  // True if elements are plain bytes, not strings.
  bool plain_ = true;
  // True if 16-bit floats are converted.
  bool converts_ = false;
  // True if the loop takes unconverted 16-bit floats.
  bool moves_float16_ = false;
  bool non_temporal_ = false;
};

class ElementwiseKernel final : public OpKernel, public StepKernel {
 public:
  ElementwiseKernel(const KernelConstruction& construction, ElementwiseLoop loop,
                    absl::Span<const int> sizes, double nanoseconds, Pairing pairing)
      : loop_(loop), num_inputs_(sizes.size()), nanoseconds_(nanoseconds), pairing_(pairing) {
    std::copy(sizes.begin(), sizes.end(), sizes_.begin());
    for (size_t k = 0; k < num_inputs_; ++k) {
      types_[k] = construction.input_type(static_cast<int>(k));
    }
    is_float_ = construction.num_inputs() == static_cast<int>(num_inputs_) &&
                construction.num_outputs() == 1 && construction.output_type(0) == DT_FLOAT &&
                std::all_of(types_.begin(), types_.begin() + num_inputs_,
                            [](DataType dtype) { return dtype == DT_FLOAT; });
    const auto is_plain = [](DataType dtype) {
      return DataTypeIsPlainBytes(dtype) && !Float16Type(dtype).has_value();
    };
    is_plain_ = construction.num_outputs() == 1 && is_plain(construction.output_type(0));
    for (size_t k = 0; k < num_inputs_; ++k) {
      is_plain_ = is_plain_ && is_plain(types_[k]) && DataTypeSize(types_[k]) == sizes_[k];
    }
  }

  bool CanBeStep(int) const override { return is_float_; }
  StepOp step_op() const override {
    if (!is_float_) return StepOp::kOther;
    if (loop_ == AddFloats) return StepOp::kAdd;
    if (loop_ == ReluFloats) return StepOp::kRelu;
    return loop_ == Relu6Floats ? StepOp::kRelu6 : StepOp::kOther;
  }
  std::unique_ptr<FusedStep> MakeStep(const RunContext&, absl::Span<const Tensor> inputs, int input,
                                      const TensorShape& shape) const override {
    return MakeElementwiseStep(loop_, inputs, input, shape, pairing_);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    absl::Status status;
    if (is_plain_ && ((num_inputs_ == 1 && ComputeFew<1>(ctx, &status)) ||
                      (num_inputs_ == 2 && ComputeFew<2>(ctx, &status)))) {
      return status;
    }
    for (size_t k = 0; k < num_inputs_; ++k) {
      const DataType dtype = ctx.input_dtype(static_cast<int>(k));
      if (dtype != types_[k]) {
        return errors::InvalidArgument("input ", k, " has type ", DataTypeString(dtype),
                                       ", expected ", DataTypeString(types_[k]));
      }
    }
    return RunElementwise(ctx, absl::MakeConstSpan(sizes_.data(), num_inputs_), nanoseconds_, loop_,
                          pairing_);
  }

 private:
  // Computes up to kFew elements of kInputs inputs that have the same shape, or of an input and a
  // single element, which is repeated. Returns false for other inputs. Elementwise gives the same
  // results, but its preparations take longer than the loop over a scalar.
  template <int kInputs>
  bool ComputeFew(KernelContext& ctx, absl::Status* status) const {
    // The input that has the shape of the output.
    int full = 0;
    if (kInputs == 2 && ctx.input(1).shape() != ctx.input(0).shape()) {
      const auto repeats = [&](int k, int other) {
        return ctx.input(k).NumElements() == 1 && ctx.input(k).dims() <= ctx.input(other).dims();
      };
      full = repeats(0, 1) ? 1 : 0;
      if (pairing_ == Pairing::kInOrder || (full == 0 && !repeats(1, 0))) return false;
    }
    const TensorShape& shape = ctx.input(full).shape();
    const int64_t n = shape.num_elements();
    if (n > kFew) return false;
    const void* x[kInputs];
    int64_t strides[kInputs];
    int reused = 0;
    for (int k = kInputs; k-- > 0;) {
      const Tensor& input = ctx.input(k);
      if (input.dtype() != types_[k]) return false;
      x[k] = input.raw_data();
      strides[k] = k == full || input.NumElements() == n ? 1 : 0;
      if (types_[k] == ctx.expected_output_dtype(0) && strides[k] == 1 && input.CanBeReused()) {
        reused = k;
      }
    }
    Tensor* output = nullptr;
    *status = ctx.ForwardInputOrAllocateOutput(reused, 0, shape, &output);
    if (status->ok() && n > 0) loop_(x, strides, output->raw_data(), n);
    return true;
  }

  const ElementwiseLoop loop_;
  std::array<int, kMaxElementwiseInputs> sizes_{};
  std::array<DataType, kMaxElementwiseInputs> types_{};
  const size_t num_inputs_;
  const double nanoseconds_;
  const Pairing pairing_;
  // True if all inputs and the output are float.
  bool is_float_ = false;
  // True if the loop takes all elements without conversion.
  bool is_plain_ = false;
};

}  // namespace

namespace internal {

absl::Status CheckElementSizes(const KernelContext& ctx, int count, int size) {
  for (int k = 0; k < count; ++k) {
    if (ElementSize(ctx.input_dtype(k)) != size) return WrongSize(k, ctx.input_dtype(k), size);
  }
  return absl::OkStatus();
}

}  // namespace internal

absl::Status RunElementwise(KernelContext& ctx, absl::Span<const int> sizes, double nanoseconds,
                            LoopRef loop, Pairing pairing) {
  return Elementwise(loop, nanoseconds).Run(ctx, sizes, pairing);
}

std::unique_ptr<OpKernel> NewElementwiseKernel(const KernelConstruction& construction,
                                               ElementwiseLoop loop, absl::Span<const int> sizes,
                                               double nanoseconds, Pairing pairing) {
  return std::make_unique<ElementwiseKernel>(construction, loop, sizes, nanoseconds, pairing);
}

}  // namespace gradflow
