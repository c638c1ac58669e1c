// StringSplit and StringSplitV2.
#include <algorithm>
#include <bitset>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/ascii.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/core/stop_token.h"
#include "gradflow/ops/string/string_loop.h"

namespace gradflow::string_split {
namespace {

using Add = absl::FunctionRef<void(absl::string_view token)>;
using Split = absl::FunctionRef<void(absl::string_view text, Add add)>;

// Makes the outputs: the indices, tokens and shape of a sparse matrix with a row for each string.
absl::Status MakeTokens(KernelContext& ctx, Split split) {
  const auto strings = ctx.input(0).span<tstring>();
  const auto rows = static_cast<int64_t>(strings.size());
  // Counts the tokens and their characters first.
  Tensor counts;
  Tensor sizes;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_INT64, {rows}, &counts));
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_DOUBLE, {rows}, &sizes));
  const auto count = counts.span<int64_t>();
  const auto size = sizes.span<double>();
  const int64_t block = BlockSizeForCost(StringNanoseconds(ctx.input(0), 2));
  ParallelFor(ctx, rows, block, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      int64_t tokens = 0;
      size_t bytes = 0;
      split(strings[r], [&](absl::string_view token) {
        ++tokens;
        bytes += token.size();
      });
      count[r] = tokens;
      size[r] = static_cast<double>(bytes);
    }
  });
  if (ctx.ShouldStop()) return StoppedError();
  int64_t total = 0;
  int64_t most = 0;
  double bytes = 0;
  for (int64_t r = 0; r < rows; ++r) {
    most = std::max(most, count[r]);
    bytes += size[r];
    // From here on, count[r] is the index of the row's first token.
    total += std::exchange(count[r], total);
  }
  Tensor* indices = nullptr;
  Tensor* values = nullptr;
  Tensor* shape = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, {total, 2}, &indices));
  ctx.ExpectStringBytes(bytes);
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(1, {total}, &values));
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(2, {2}, &shape));
  shape->span<int64_t>()[0] = rows;
  shape->span<int64_t>()[1] = most;
  const auto index = indices->span<int64_t>();
  const auto value = values->span<tstring>();
  ParallelFor(ctx, rows, block, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t first = count[r];
      int64_t at = first;
      split(strings[r], [&](absl::string_view token) {
        index[2 * at] = r;
        index[2 * at + 1] = at - first;
        value[at].assign(token.data(), token.size());
        ++at;
      });
    }
  });
  return absl::OkStatus();
}

absl::Status SplitShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 1));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(1, 0));
  c.set_output(0, PartialTensorShape({-1, 2}));
  c.set_output(1, PartialTensorShape({-1}));
  c.set_output(2, TensorShape({2}));
  return absl::OkStatus();
}

absl::StatusOr<const tstring*> CheckInputs(KernelContext& ctx, const char* separator) {
  GRADFLOW_RETURN_IF_ERROR(CheckStrings(ctx, 0, "input"));
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(0, "input"));
  return ScalarString(ctx, 1, separator);
}

// Splits at each of several characters.
class SplitKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return construction.GetAttr("skip_empty", &skips_empty_);
  }
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_ASSIGN_OR_RETURN(const tstring* const delimiter, CheckInputs(ctx, "delimiter"));
    if (delimiter->empty()) {
      return MakeTokens(ctx, [](absl::string_view text, Add add) {
        for (size_t i = 0; i < text.size(); ++i) add(text.substr(i, 1));
      });
    }
    std::bitset<256> is_delimiter;
    for (const char c : *delimiter) is_delimiter.set(static_cast<uint8_t>(c));
    return MakeTokens(ctx, [&](absl::string_view text, Add add) {
      if (text.empty()) return;
      size_t begin = 0;
      for (size_t i = 0; i <= text.size(); ++i) {
        if (i < text.size() && !is_delimiter[static_cast<uint8_t>(text[i])]) continue;
        if (i > begin || !skips_empty_) add(text.substr(begin, i - begin));
        begin = i + 1;
      }
    });
  }

 private:
  bool skips_empty_ = true;
};

// Splits at a separator, or at white space.
class SplitV2Kernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return construction.GetAttr("maxsplit", &maxsplit_);
  }
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_ASSIGN_OR_RETURN(const tstring* const separator, CheckInputs(ctx, "sep"));
    if (maxsplit_ == 0) {
      return MakeTokens(ctx, [](absl::string_view text, Add add) { add(text); });
    }
    if (separator->empty()) {
      return MakeTokens(ctx, [this](absl::string_view text, Add add) { AtSpaces(text, add); });
    }
    return MakeTokens(ctx, [&](absl::string_view text, Add add) {
      for (int64_t splits = 0; maxsplit_ < 0 || splits < maxsplit_; ++splits) {
        const size_t end =
            separator->size() == 1 ? text.find((*separator)[0]) : FindText(text, *separator);
        if (end == absl::string_view::npos) break;
        add(text.substr(0, end));
        text.remove_prefix(end + separator->size());
      }
      add(text);
    });
  }

 private:
  void AtSpaces(absl::string_view text, Add add) const {
    const auto skip_spaces = [&text] {
      size_t spaces = 0;
      while (spaces < text.size() && absl::ascii_isspace(text[spaces])) ++spaces;
      text.remove_prefix(spaces);
    };
    skip_spaces();
    for (int64_t splits = 1; !text.empty(); ++splits) {
      size_t end = 0;
      while (end < text.size() && !absl::ascii_isspace(text[end])) ++end;
      add(text.substr(0, end));
      text.remove_prefix(end);
      skip_spaces();
      // The rest counts as a token even if it is empty, as in TensorFlow.
      if (maxsplit_ > 0 && splits == maxsplit_) return add(text);
    }
  }

  int64_t maxsplit_ = -1;
};

}  // namespace

void Register(Registry& registry) {
  registry.Op("StringSplit")
      .Group("string_ops")
      .Input("input: string")
      .Input("delimiter: string")
      .Output("indices: int64")
      .Output("values: string")
      .Output("shape: int64")
      .Attr("skip_empty: bool = true")
      .Shape(SplitShape)
      .Doc(R"(Splits strings at single characters. The result is a sparse matrix.

input: A vector of strings.
delimiter: A scalar. Each of its bytes separates tokens. If it is "", each byte is a token.
indices: The row and column of each token.
values: The tokens.
shape: The number of strings, and the largest number of tokens of a string.
skip_empty: If true, leaves out empty tokens.)");
  registry.Kernel("StringSplit", MakeKernel<SplitKernel>);
  registry.Op("StringSplitV2")
      .Group("string_ops")
      .Input("input: string")
      .Input("sep: string")
      .Output("indices: int64")
      .Output("values: string")
      .Output("shape: int64")
      .Attr("maxsplit: int = -1")
      .Shape(SplitShape)
      .Doc(R"(Splits strings at a separator. The result is a sparse matrix.

input: A vector of strings.
sep: The separator, a scalar. If it is "", white space of any length separates tokens, and no token
  is empty.
indices: The row and column of each token.
values: The tokens.
shape: The number of strings, and the largest number of tokens of a string.
maxsplit: The largest number of splits of a string; negative for any number.)");
  registry.Kernel("StringSplitV2", MakeKernel<SplitV2Kernel>);
}

}  // namespace gradflow::string_split
