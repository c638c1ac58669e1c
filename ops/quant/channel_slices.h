// The slices of a tensor [outer, channels, inner] along the axis of a per-channel quantization.
#ifndef GRADFLOW_OPS_QUANT_CHANNEL_SLICES_H_
#define GRADFLOW_OPS_QUANT_CHANNEL_SLICES_H_

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/status.h"
#include "gradflow/core/tensor_shape.h"

namespace gradflow {

// Returns INVALID_ARGUMENT unless `axis` is -1 (quantization without channels) or a dimension of
// `input`.
inline absl::Status CheckChannelAxis(int64_t axis, const PartialTensorShape& input) {
  if (axis < -1 || axis >= kMaxDims || (!input.unknown_rank() && axis >= input.dims())) {
    return errors::InvalidArgument("axis must be -1 or a dimension of input, of shape ",
                                   input.DebugString(), ", but is ", axis);
  }
  return absl::OkStatus();
}

// Returns INVALID_ARGUMENT unless the argument `name` of shape `range` is a scalar (without an
// axis) or a vector whose size is dimension `axis` of `input`. REQUIRES: CheckChannelAxis(axis,
// input) is OK
inline absl::Status CheckChannelRange(absl::string_view name, const PartialTensorShape& range,
                                      int64_t axis, const PartialTensorShape& input) {
  PartialTensorShape expected = TensorShape();
  if (axis >= 0) {
    expected = {input.unknown_rank() ? -1 : input.dim_size(static_cast<int>(axis))};
  }
  if (range.IsCompatibleWith(expected)) return absl::OkStatus();
  return errors::InvalidArgument(name, " must have shape ", expected.DebugString(), ", by axis ",
                                 axis, " and input of shape ", input.DebugString(),
                                 ", but has shape ", range.DebugString());
}

class ChannelSlices {
 public:
  // REQUIRES: axis is -1 or a dimension of `shape`
  ChannelSlices(const TensorShape& shape, int64_t axis) : size_(shape.num_elements()) {
    if (axis < 0 || size_ == 0) {
      blocks_ = NumBlocks(size_, kBlock);
      return;
    }
    channels_ = shape.dim_size(static_cast<int>(axis));
    for (int d = static_cast<int>(axis) + 1; d < shape.dims(); ++d) inner_ *= shape.dim_size(d);
    outer_ = size_ / channels_ / inner_;
    // There are at most kMaxBlocks blocks, because each block has partial results for all channels.
    rows_per_block_ =
        std::max({kBlock / (channels_ * inner_), NumBlocks(outer_, kMaxBlocks), int64_t{1}});
    blocks_ = NumBlocks(outer_, rows_per_block_);
  }

  int64_t channels() const { return channels_; }
  // The number of blocks that run concurrently. It depends only on the shape.
  int64_t num_blocks() const { return blocks_; }

  // Returns true if the channels are the last dimension.
  bool channels_are_last() const { return outer_ > 0 && inner_ == 1; }
  // Calls fn(begin, end) for blocks of rows of all channels. REQUIRES: channels_are_last()
  template <typename F>
  void ForEachRow(const RunContext& run, const F& fn) const {
    ParallelFor(run, outer_, rows_per_block_, fn);
  }

  // Calls fn(block, channel, begin, end) for contiguous runs that together cover all elements.
  template <typename F>
  void ForEachRun(const RunContext& run, const F& fn) const {
    if (outer_ == 0) {
      ParallelFor(run, size_, kBlock,
                  [&](int64_t begin, int64_t end) { fn(begin / kBlock, int64_t{0}, begin, end); });
      return;
    }
    ParallelFor(run, outer_, rows_per_block_, [&](int64_t begin, int64_t end) {
      int64_t element = begin * channels_ * inner_;
      for (int64_t o = begin; o < end; ++o) {
        for (int64_t c = 0; c < channels_; ++c, element += inner_) {
          fn(begin / rows_per_block_, c, element, element + inner_);
        }
      }
    });
  }

 private:
  static constexpr int64_t kBlock = 32 * 1024;
  static constexpr int64_t kMaxBlocks = 256;

  int64_t size_;
  int64_t channels_ = 1;
  int64_t inner_ = 1;
  // 0 if there are no channels.
  int64_t outer_ = 0;
  int64_t rows_per_block_ = 1;
  int64_t blocks_ = 0;
};

}  // namespace gradflow

#endif  // GRADFLOW_OPS_QUANT_CHANNEL_SLICES_H_
