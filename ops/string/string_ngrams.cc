// StringNGrams.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/core/stop_token.h"
#include "gradflow/ops/common/indices.h"
#include "gradflow/ops/string/string_loop.h"

namespace gradflow::string_ngrams {
namespace {

absl::Status NGramsShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 1));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(1, 1));
  c.set_output(0, PartialTensorShape({-1}));
  c.set_output(1, PartialTensorShape({c.Dim(1, 0)}));
  return absl::OkStatus();
}

class NGramsKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("separator", &separator_));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("ngram_widths", &widths_));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("left_pad", &left_pad_));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("right_pad", &right_pad_));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("pad_width", &pad_width_));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("preserve_short_sequences", &preserves_short_));
    // Larger numbers would overflow.
    constexpr int64_t kMost = int64_t{1} << 40;
    for (const int64_t width : widths_) {
      if (width < 1 || width > kMost) {
        return errors::InvalidArgument("ngram_widths must be positive and at most 2^40, but has ",
                                       width);
      }
    }
    if (pad_width_ > kMost) {
      return errors::InvalidArgument("pad_width must be at most 2^40, but is ", pad_width_);
    }
    if (preserves_short_ && widths_.empty() && pad_width_ < 0) {
      return errors::InvalidArgument(
          "pad_width must not be negative if short sequences are preserved and there are no "
          "ngram_widths, but is ",
          pad_width_);
    }
    return absl::OkStatus();
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckStrings(ctx, 0, "data"));
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(0, "data"));
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(1, "data_splits"));
    const auto data = ctx.input(0).span<tstring>();
    const IndexReader splits(ctx.input(1));
    const int64_t num_splits = ctx.input(1).NumElements();
    GRADFLOW_RETURN_IF_ERROR(CheckSplits(splits, num_splits, static_cast<int64_t>(data.size())));
    // The characters before each token.
    Tensor sums;
    GRADFLOW_RETURN_IF_ERROR(
        ctx.AllocateTemp(DT_INT64, {static_cast<int64_t>(data.size()) + 1}, &sums));
    const auto before = sums.span<int64_t>();
    before[0] = 0;
    for (size_t i = 0; i < data.size(); ++i) {
      before[i + 1] = before[i] + static_cast<int64_t>(data[i].size());
    }
    Tensor* out_splits = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(1, ctx.input(1).shape(), &out_splits));
    double total = 0;
    for (int64_t s = 0; s < num_splits; ++s) {
      if (s % 1024 == 0 && ctx.ShouldStop()) return StoppedError();
      if (s > 0) total += Count(splits[s] - splits[s - 1]);
      constexpr double kMost = 1e15;
      if (total > kMost ||
          (out_splits->dtype() == DT_INT32 && total > std::numeric_limits<int32_t>::max())) {
        return errors::InvalidArgument("there are ", total, " n-grams, which are too many");
      }
      WriteIndex(out_splits, s, static_cast<int64_t>(total));
    }
    Tensor* output = nullptr;
    ctx.ExpectStringBytes(0);
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, {static_cast<int64_t>(total)}, &output));
    const auto ngrams = output->span<tstring>();
    // Counts the characters, and then makes the strings.
    double bytes = 0;
    for (const bool writes : {false, true}) {
      int64_t next = 0;
      for (int64_t s = 1; s < num_splits; ++s) {
        const int64_t begin = splits[s - 1];
        const int64_t size = splits[s] - begin;
        const auto window = [&](int64_t pad, int64_t first, int64_t width) {
          const int64_t left = std::clamp<int64_t>(pad - first, 0, width);
          const int64_t right = std::clamp<int64_t>(first + width - pad - size, 0, width);
          const int64_t from = begin + std::clamp<int64_t>(first - pad, 0, size);
          const int64_t tokens = width - left - right;
          tstring& ngram = ngrams[next++];
          bool is_first = true;
          if (!writes) {
            bytes += static_cast<double>(left) * static_cast<double>(left_pad_.size()) +
                     static_cast<double>(right) * static_cast<double>(right_pad_.size()) +
                     static_cast<double>(before[from + tokens] - before[from]) +
                     static_cast<double>(width - 1) * static_cast<double>(separator_.size());
            return;
          }
          const auto append = [&](int64_t count, auto token) {
            for (int64_t k = 0; k < count; ++k) {
              // Ends loops over many empty tokens.
              if (k % 4096 == 4095 && ctx.ShouldStop()) return;
              if (!is_first) ngram.append(separator_);
              ngram.append(token(k));
              is_first = false;
            }
          };
          // Many empty pads would take time and add nothing.
          const auto pads = [&](int64_t count, const std::string& pad_text) {
            if (pad_text.empty() && separator_.empty()) return;
            append(count, [&](int64_t) -> const std::string& { return pad_text; });
          };
          pads(left, left_pad_);
          append(tokens, [&](int64_t k) -> const std::string& { return data[from + k]; });
          pads(right, right_pad_);
        };
        int64_t made = 0;
        for (const int64_t width : widths_) {
          const int64_t pad = Pad(width);
          const int64_t count = CountOf(size, width);
          for (int64_t i = 0; i < count; ++i, ++made) {
            if (made % 1024 == 0 && ctx.ShouldStop()) return StoppedError();
            window(pad, i, width);
          }
        }
        if (made == 0 && preserves_short_ && size > 0) {
          const int64_t pad = std::max<int64_t>(pad_width_, 0);
          window(pad, 0, size + 2 * pad);
        }
        if (s % 1024 == 0 && ctx.ShouldStop()) return StoppedError();
      }
      if (writes) break;
      constexpr double kMost = 1e18;
      GRADFLOW_RETURN_IF_ERROR(output->ChargeStrings(static_cast<size_t>(std::min(bytes, kMost))));
    }
    return absl::OkStatus();
  }

 private:
  static absl::Status CheckSplits(const IndexReader& splits, int64_t count, int64_t size) {
    int64_t last = 0;
    for (int64_t s = 0; s < count; ++s) {
      if (splits[s] < last || splits[s] > size || (s == 0 && splits[s] != 0)) {
        return errors::InvalidArgument("data_splits must begin with 0 and must not decrease or ",
                                       "exceed ", size, ", but data_splits[", s, "] is ",
                                       splits[s]);
      }
      last = splits[s];
    }
    if (last == size) return absl::OkStatus();
    return errors::InvalidArgument("data_splits must end with the number of elements of data, ",
                                   size, ", but ends with ", last);
  }

  // The padding at each end.
  int64_t Pad(int64_t width) const {
    return pad_width_ < 0 ? width - 1 : std::min(pad_width_, width - 1);
  }
  // Returns the number of n-grams of a width of a sequence of `size` tokens.
  int64_t CountOf(int64_t size, int64_t width) const {
    return std::max<int64_t>(size + 2 * Pad(width) - width + 1, 0);
  }
  // Returns the number of n-grams of a sequence.
  double Count(int64_t size) const {
    double count = 0;
    for (const int64_t width : widths_) count += static_cast<double>(CountOf(size, width));
    return count == 0 && preserves_short_ && size > 0 ? 1 : count;
  }

  std::string separator_;
  std::vector<int64_t> widths_;
  std::string left_pad_;
  std::string right_pad_;
  int64_t pad_width_ = 0;
  bool preserves_short_ = false;
};

}  // namespace

void Register(Registry& registry) {
  registry.Op("StringNGrams")
      .Group("string_ops")
      .Input("data: string")
      .Input("data_splits: Tsplits")
      .Output("ngrams: string")
      .Output("ngrams_splits: Tsplits")
      .Attr("separator: string")
      .Attr("ngram_widths: list(int) >= 0")
      .Attr("left_pad: string")
      .Attr("right_pad: string")
      .Attr("pad_width: int")
      .Attr("preserve_short_sequences: bool")
      .Attr("Tsplits: {int32, int64} = DT_INT64")
      .Shape(NGramsShape)
      .Doc(R"(Joins each run of several neighboring tokens of sequences.

data: The tokens of all sequences, a vector.
data_splits: The first token of each sequence, and the number of tokens.
ngrams: The results of all sequences: for each of `ngram_widths` in turn, the runs in their order.
ngrams_splits: The first result of each sequence, and the number of results.
separator: The text between two tokens.
ngram_widths: The numbers of tokens to join.
left_pad: The token before a sequence.
right_pad: The token after a sequence.
pad_width: The number of such tokens at each end, but at most one less than the width; negative for
  this maximum.
preserve_short_sequences: If true, a sequence that is shorter than all widths gives one result, of
  all its tokens and `pad_width` tokens at each end.
Tsplits: The type of the splits.)");
  registry.Kernel("StringNGrams", MakeKernel<NGramsKernel>);
}

}  // namespace gradflow::string_ngrams
