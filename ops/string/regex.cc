// RegexReplace, RegexFullMatch and their static forms, on RE2.
#include <re2/re2.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "gradflow/core/memory_reservation.h"
#include "gradflow/core/mutex.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/string/string_loop.h"

namespace gradflow::regex {
namespace {

// A compiled pattern, whose memory is charged.
class Regex {
 public:
  static absl::StatusOr<std::shared_ptr<const Regex>> Make(
      const std::string& pattern, const std::shared_ptr<Allocator>& allocator) {
    RE2::Options options;
    options.set_log_errors(false);
    // RE2's default allows larger patterns. Most patterns need far less memory.
    constexpr int64_t kSmall = int64_t{1} << 18;
    const int64_t large = options.max_mem();
    for (const int64_t max_bytes : {kSmall, large}) {
      std::shared_ptr<Regex> regex(new Regex(allocator));
      GRADFLOW_RETURN_IF_ERROR(
          regex->memory_.Set(static_cast<double>(max_bytes), "a regular expression"));
      options.set_max_mem(max_bytes);
      regex->re_ = std::make_unique<RE2>(pattern, options);
      if (regex->re_->ok()) return regex;
      if (regex->re_->error_code() == RE2::ErrorPatternTooLarge && max_bytes != large) continue;
      return errors::InvalidArgument(
          "pattern '", errors::Printable(pattern),
          "' is not a regular expression: ", errors::Printable(regex->re_->error()));
    }
    return errors::Internal("no regular expression");
  }

  const RE2& operator*() const { return *re_; }
  const RE2* operator->() const { return re_.get(); }

 private:
  explicit Regex(const std::shared_ptr<Allocator>& allocator)
      : allocator_(allocator), memory_(allocator.get()) {}

  const std::shared_ptr<Allocator> allocator_;
  MemoryReservation memory_;
  std::unique_ptr<RE2> re_;
};

// A kernel whose pattern is an attribute (static forms) or input 1.
class RegexKernel : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    is_static_ = construction.num_inputs() == 1;
    return is_static_ ? construction.GetAttr("pattern", &static_pattern_) : absl::OkStatus();
  }

 protected:
  bool is_static() const { return is_static_; }

  // Returns the compiled pattern. Keeps the last one.
  absl::StatusOr<std::shared_ptr<const Regex>> Compiled(KernelContext& ctx) const {
    const std::string* pattern = &static_pattern_;
    if (!is_static_) {
      GRADFLOW_ASSIGN_OR_RETURN(pattern, ScalarString(ctx, 1, "pattern"));
    }
    {
      MutexLock lock(&mutex_);
      if (last_ != nullptr && (*last_)->pattern() == *pattern) return last_;
    }
    GRADFLOW_ASSIGN_OR_RETURN(std::shared_ptr<const Regex> regex,
                              Regex::Make(*pattern, ctx.allocator()));
    MutexLock lock(&mutex_);
    return last_ = std::move(regex);
  }

 private:
  bool is_static_ = false;
  std::string static_pattern_;
  mutable Mutex mutex_;
  mutable std::shared_ptr<const Regex> last_ ABSL_GUARDED_BY(mutex_);
};

// ---- RegexFullMatch ----

class FullMatchKernel final : public RegexKernel {
 public:
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckStrings(ctx, 0, "input"));
    GRADFLOW_ASSIGN_OR_RETURN(const std::shared_ptr<const Regex> regex, Compiled(ctx));
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, ctx.input(0).shape(), &output));
    const auto strings = ctx.input(0).span<tstring>();
    const auto matches = output->span<bool>();
    ParallelFor(ctx, static_cast<int64_t>(strings.size()),
                BlockSizeForCost(StringNanoseconds(ctx.input(0), 3) + 100),
                [&](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end && !ctx.ShouldStop(); ++i) {
                    matches[i] = RE2::FullMatch(strings[i], **regex);
                  }
                });
    return absl::OkStatus();
  }
};

// ---- RegexReplace ----

class ReplaceKernel final : public RegexKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    GRADFLOW_RETURN_IF_ERROR(RegexKernel::Init(construction));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("replace_global", &replaces_all_));
    return is_static() ? construction.GetAttr("rewrite", &static_rewrite_) : absl::OkStatus();
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckStrings(ctx, 0, "input"));
    GRADFLOW_ASSIGN_OR_RETURN(const std::shared_ptr<const Regex> regex, Compiled(ctx));
    const std::string* rewrite = &static_rewrite_;
    if (!is_static()) {
      GRADFLOW_ASSIGN_OR_RETURN(rewrite, ScalarString(ctx, 2, "rewrite"));
    }
    std::string error;
    if (!(*regex)->CheckRewriteString(*rewrite, &error)) {
      return errors::InvalidArgument("rewrite '", errors::Printable(*rewrite),
                                     "' does not fit the pattern: ", errors::Printable(error));
    }
    const Rewrite replacement(*rewrite);
    const auto strings = ctx.input(0).span<tstring>();
    return MakeStrings(
        ctx, ctx.input(0).shape(), StringNanoseconds(ctx.input(0), 10) + 200,
        [&](int64_t i) { return static_cast<double>(strings[i].size()); },
        [&](int64_t i, tstring* string) {
          return Replace(ctx, strings[i], **regex, replacement, string);
        });
  }

 private:
  // The new text of a match.
  struct Rewrite {
    explicit Rewrite(const std::string& pattern) : text(pattern) {
      for (size_t i = 0; i + 1 < text.size(); ++i) {
        if (text[i] == '\\' && absl::ascii_isdigit(text[++i])) ++references;
      }
    }
    // Returns the largest length of the new text of a match of `size` bytes.
    double MostBytes(size_t size) const {
      return static_cast<double>(text.size()) +
             static_cast<double>(references) * static_cast<double>(size);
    }

    const std::string& text;
    int64_t references = 0;
  };

  // Makes `*out` the text with replaced matches, as RE2::GlobalReplace() and RE2::Replace() do.
  // Charges what the matches add, and stops between matches: a pattern that looks ahead from each
  // match takes quadratic time.
  absl::Status Replace(const KernelContext& ctx, const std::string& in, const RE2& regex,
                       const Rewrite& rewrite, tstring* out) const {
    constexpr int kMostGroups = 10;
    re2::StringPiece groups[kMostGroups];
    const int num_groups = 1 + RE2::MaxSubmatch(rewrite.text);
    const re2::StringPiece text(in);
    MemoryReservation memory(ctx.allocator().get());
    auto charged = static_cast<double>(text.size());
    size_t at = 0;
    size_t last_end = re2::StringPiece::npos;
    while (at <= text.size() && !ctx.ShouldStop()) {
      if (!regex.Match(text, at, text.size(), RE2::UNANCHORED, groups, num_groups)) break;
      const auto begin = static_cast<size_t>(groups[0].data() - text.data());
      out->append(in, at, begin - at);
      if (begin == last_end && groups[0].empty()) {
        // An empty match after a match does not count. A character is copied instead.
        at = begin;
        const size_t size = CharacterSize(absl::string_view(in).substr(at));
        out->append(in, at, size);
        at += std::max<size_t>(size, 1);
        continue;
      }
      const double needed = static_cast<double>(out->size() + text.size() - begin) +
                            rewrite.MostBytes(groups[0].size());
      if (needed > charged) {
        charged = 2 * needed;
        GRADFLOW_RETURN_IF_ERROR(memory.Set(charged, "strings"));
      }
      regex.Rewrite(out, rewrite.text, groups, num_groups);
      at = begin + groups[0].size();
      last_end = at;
      if (!replaces_all_) break;
    }
    if (at < text.size()) out->append(in, at, text.size() - at);
    return absl::OkStatus();
  }

  // Returns the bytes of the first character of a text: 1 if they are not UTF-8, and 0 at the end.
  static size_t CharacterSize(absl::string_view text) {
    if (text.empty()) return 0;
    const auto lead = static_cast<uint8_t>(text[0]);
    const size_t expected = lead < 0xc2   ? 1
                            : lead < 0xe0 ? 2
                            : lead < 0xf0 ? 3
                            : lead < 0xf5 ? 4
                                          : 1;
    size_t size = 1;
    while (size < std::min(expected, text.size()) && IsTrailByte(text[size])) ++size;
    return size == expected ? size : 1;
  }

  bool replaces_all_ = true;
  std::string static_rewrite_;
};

absl::Status RegexShape(ShapeContext& c) {
  for (int i = 1; i < c.num_inputs(); ++i) GRADFLOW_RETURN_IF_ERROR(c.CheckRank(i, 0));
  return UnchangedShape(c);
}

}  // namespace

void Register(Registry& registry) {
  registry.Op("RegexFullMatch")
      .Group("string_ops")
      .Input("input: string")
      .Input("pattern: string")
      .Output("output: bool")
      .Shape(RegexShape)
      .Doc(R"(Returns whether all of each string matches a regular expression.

input: Strings.
pattern: The regular expression, a scalar, in RE2's syntax.
output: The results, of the shape of `input`.)");
  registry.Op("StaticRegexFullMatch")
      .Group("string_ops")
      .Input("input: string")
      .Output("output: bool")
      .Attr("pattern: string")
      .Shape(RegexShape)
      .Doc(R"(Returns whether all of each string matches a regular expression.

input: Strings.
output: The results, of the shape of `input`.
pattern: The regular expression, in RE2's syntax.)");
  registry.Op("RegexReplace")
      .Group("string_ops")
      .Input("input: string")
      .Input("pattern: string")
      .Input("rewrite: string")
      .Output("output: string")
      .Attr("replace_global: bool = true")
      .Shape(RegexShape)
      .Doc(R"(Replaces what matches a regular expression.

input: Strings.
pattern: The regular expression, a scalar, in RE2's syntax.
rewrite: The new text, a scalar. "\0" stands for the match, "\1" to "\9" for its groups, and "\\"
  for a backslash.
output: The results, of the shape of `input`.
replace_global: If true, replaces all matches in a string, otherwise the first.)");
  registry.Op("StaticRegexReplace")
      .Group("string_ops")
      .Input("input: string")
      .Output("output: string")
      .Attr("pattern: string")
      .Attr("rewrite: string")
      .Attr("replace_global: bool = true")
      .Shape(RegexShape)
      .Doc(R"(Replaces what matches a regular expression.

input: Strings.
output: The results, of the shape of `input`.
pattern: The regular expression, in RE2's syntax.
rewrite: The new text. "\0" stands for the match, "\1" to "\9" for its groups, and "\\" for a
  backslash.
replace_global: If true, replaces all matches in a string, otherwise the first.)");
  for (const char* op : {"RegexFullMatch", "StaticRegexFullMatch"}) {
    registry.Kernel(op, MakeKernel<FullMatchKernel>);
  }
  for (const char* op : {"RegexReplace", "StaticRegexReplace"}) {
    registry.Kernel(op, MakeKernel<ReplaceKernel>);
  }
}

}  // namespace gradflow::regex
