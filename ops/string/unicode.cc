// UnicodeDecode, UnicodeDecodeWithOffsets, UnicodeEncode, UnicodeTranscode and UnicodeScript, on
// ICU. Without ICU, the kernels are errors that name the library.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/core/stop_token.h"
#include "gradflow/ops/common/first_error.h"
#include "gradflow/ops/common/indices.h"
#include "gradflow/ops/common/row_splits.h"
#include "gradflow/ops/string/string_loop.h"

#ifdef GRADFLOW_HAS_ICU
#include <unicode/ucnv.h>
#include <unicode/ucnv_err.h>
#include <unicode/uscript.h>
#include <unicode/utf8.h>
#endif

namespace gradflow::unicode {
namespace {

#ifdef GRADFLOW_HAS_ICU

constexpr int32_t kMostCodePoint = 0x10ffff;

bool IsSurrogate(int32_t code_point) { return code_point >= 0xd800 && code_point <= 0xdfff; }

// ---- Attributes ----

// The treatment of characters that are not valid.
struct ErrorPolicy {
  absl::Status Init(const KernelConstruction& construction, bool has_control_attr) {
    std::string treatment;
    int64_t replacement_char = 0;
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("errors", &treatment));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("replacement_char", &replacement_char));
    if (has_control_attr) {
      GRADFLOW_RETURN_IF_ERROR(
          construction.GetAttr("replace_control_characters", &replaces_control));
    }
    is_strict = treatment == "strict";
    ignores = treatment == "ignore";
    if (replacement_char < 0 || replacement_char > kMostCodePoint) {
      return errors::InvalidArgument("replacement_char must be a code point, but is ",
                                     replacement_char);
    }
    replacement = static_cast<int32_t>(replacement_char);
    return absl::OkStatus();
  }

  bool is_strict = false;
  bool ignores = false;
  bool replaces_control = false;
  int32_t replacement = 0xfffd;
};

enum class Encoding { kUtf8, kUtf16, kUtf32 };

absl::Status ReadEncoding(const KernelConstruction& construction, Encoding* encoding) {
  std::string name;
  GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("output_encoding", &name));
  *encoding = name == "UTF-8"       ? Encoding::kUtf8
              : name == "UTF-16-BE" ? Encoding::kUtf16
                                    : Encoding::kUtf32;
  return absl::OkStatus();
}

// ---- Reading ----

// Reads the code points of strings in one encoding. Not thread-safe.
class Decoder {
 public:
  static absl::StatusOr<std::unique_ptr<Decoder>> Make(const std::string& encoding) {
    auto decoder = std::make_unique<Decoder>();
    if (absl::EqualsIgnoreCase(encoding, "UTF-8")) return decoder;
    UErrorCode status = U_ZERO_ERROR;
    // ICU's default encoding depends on the machine, and it has names of any length.
    constexpr size_t kLongestName = 60;
    if (!encoding.empty() && encoding.size() < kLongestName &&
        encoding.find('\0') == std::string::npos) {
      decoder->converter_.reset(ucnv_open(encoding.c_str(), &status));
    }
    if (decoder->converter_ == nullptr || U_FAILURE(status)) {
      return errors::InvalidArgument("input_encoding '", errors::Printable(encoding),
                                     "' is not known");
    }
    ucnv_setToUCallBack(decoder->converter_.get(), &FoundError, &decoder->found_error_, nullptr,
                        nullptr, &status);
    if (U_FAILURE(status)) return errors::Internal("ICU: ", u_errorName(status));
    return decoder;
  }

  // Calls fn(code_point, bytes, is_valid) for each character, with the number of bytes that it
  // takes. A character that is not valid is U+FFFD. Stops if fn returns false.
  template <typename Fn>
  void ForEach(absl::string_view text, Fn&& fn) {
    if (converter_ == nullptr) return ForEachUtf8(text, fn);
    ucnv_reset(converter_.get());
    const char* at = text.data();
    const char* const end = at + text.size();
    UErrorCode status = U_ZERO_ERROR;
    while (at < end) {
      found_error_ = false;
      const char* const begin = at;
      const int32_t code_point = ucnv_getNextUChar(converter_.get(), &at, end, &status);
      if (U_FAILURE(status)) at = end;
      if (!fn(code_point, static_cast<int64_t>(at - begin), !found_error_)) return;
    }
  }

 private:
  struct Close {
    void operator()(UConverter* converter) const { ucnv_close(converter); }
  };

  template <typename Fn>
  static void ForEachUtf8(absl::string_view text, Fn&& fn) {
    const auto* const bytes = reinterpret_cast<const uint8_t*>(text.data());
    const auto size = static_cast<int64_t>(text.size());
    for (int64_t at = 0; at < size;) {
      const int64_t begin = at;
      int32_t code_point = 0;
      U8_NEXT(bytes, at, size, code_point);
      const bool is_valid = code_point >= 0;
      if (!fn(is_valid ? code_point : 0xfffd, at - begin, is_valid)) return;
    }
  }

  static void FoundError(const void* context, UConverterToUnicodeArgs* args, const char* units,
                         int32_t length, UConverterCallbackReason reason, UErrorCode* status) {
    if (reason == UCNV_UNASSIGNED || reason == UCNV_ILLEGAL || reason == UCNV_IRREGULAR) {
      *static_cast<bool*>(const_cast<void*>(context)) = true;
    }
    UCNV_TO_U_CALLBACK_SUBSTITUTE(nullptr, args, units, length, reason, status);
  }

  // Null for UTF-8.
  std::unique_ptr<UConverter, Close> converter_;
  bool found_error_ = false;
};

// A kernel that reads strings of an encoding.
class DecodingKernel : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    GRADFLOW_RETURN_IF_ERROR(policy_.Init(construction, /*has_control_attr=*/true));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("input_encoding", &encoding_));
    return Decoder::Make(encoding_).status();
  }

 protected:
  absl::StatusOr<std::unique_ptr<Decoder>> MakeDecoder() const { return Decoder::Make(encoding_); }
  const ErrorPolicy& policy() const { return policy_; }

  static absl::Status NotValid(const KernelContext& ctx, int64_t i) {
    return errors::InvalidArgument(ElementName("input", ctx.input(0).shape(), i),
                                   " has a character that is not valid");
  }

 private:
  std::string encoding_;
  ErrorPolicy policy_;
};

// ---- UnicodeDecode, UnicodeDecodeWithOffsets ----

class DecodeKernel final : public DecodingKernel {
 public:
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckStrings(ctx, 0, "input"));
    const auto strings = ctx.input(0).span<tstring>();
    const auto count = static_cast<int64_t>(strings.size());
    Tensor counts;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_INT64, {count}, &counts));
    const int64_t block = BlockSizeForCost(StringNanoseconds(ctx.input(0), 3) + 100);
    const auto number = counts.span<int64_t>();
    // Calls use(i, code_point, offset) for each character of the results.
    FirstError error;
    const auto decode = [&](const auto& begin_string, const auto& use) {
      ParallelFor(ctx, count, block, [&](int64_t begin, int64_t end) {
        absl::StatusOr<std::unique_ptr<Decoder>> decoder = MakeDecoder();
        if (!decoder.ok()) return error.Found(begin, decoder.status());
        for (int64_t i = begin; i < end && !ctx.ShouldStop(); ++i) {
          begin_string(i);
          int64_t offset = 0;
          bool is_valid_string = true;
          (*decoder)->ForEach(strings[i], [&](int32_t code_point, int64_t bytes, bool is_valid) {
            is_valid_string &= is_valid;
            if (!is_valid && policy().is_strict) return false;
            const int64_t at = offset;
            offset += bytes;
            if (!is_valid || (policy().replaces_control && code_point <= 0x1f)) {
              if (policy().ignores) return true;
              code_point = policy().replacement;
            }
            use(i, code_point, at);
            return true;
          });
          if (!is_valid_string && policy().is_strict) return error.Found(i, NotValid(ctx, i));
        }
      });
    };
    decode([&](int64_t i) { number[i] = 0; }, [&](int64_t i, int32_t, int64_t) { ++number[i]; });
    GRADFLOW_RETURN_IF_ERROR(error.status());
    if (ctx.ShouldStop()) return StoppedError();
    Tensor* splits = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, {count + 1}, &splits));
    int64_t total = 0;
    for (int64_t i = 0; i < count; ++i) {
      WriteIndex(splits, i, total);
      // From now on, the first character of the string.
      total += std::exchange(number[i], total);
    }
    WriteIndex(splits, count, total);
    if (splits->dtype() == DT_INT32 && total > std::numeric_limits<int32_t>::max()) {
      return errors::InvalidArgument("there are ", total, " characters, which exceed int32");
    }
    Tensor* values = nullptr;
    Tensor* offsets = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(1, {total}, &values));
    if (ctx.num_outputs() > 2) {
      GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(2, {total}, &offsets));
    }
    const auto value = values->span<int32_t>();
    const auto start = offsets == nullptr ? absl::Span<int64_t>() : offsets->span<int64_t>();
    decode([](int64_t) {},
           [&](int64_t i, int32_t code_point, int64_t offset) {
             const int64_t at = number[i]++;
             value[at] = code_point;
             if (!start.empty()) start[at] = offset;
           });
    return error.status();
  }
};

// ---- UnicodeTranscode, UnicodeEncode ----

void AppendCodePoint(Encoding encoding, int32_t code_point, tstring* out) {
  const auto byte = [out](int32_t value) { out->push_back(static_cast<char>(value & 0xff)); };
  switch (encoding) {
    case Encoding::kUtf8:
      // UTF-8 has no surrogates.
      if (IsSurrogate(code_point)) code_point = 0xfffd;
      if (code_point < 0x80) return byte(code_point);
      if (code_point < 0x800) {
        byte(0xc0 | code_point >> 6);
      } else {
        if (code_point < 0x10000) {
          byte(0xe0 | code_point >> 12);
        } else {
          byte(0xf0 | code_point >> 18);
          byte(0x80 | (code_point >> 12 & 0x3f));
        }
        byte(0x80 | (code_point >> 6 & 0x3f));
      }
      return byte(0x80 | (code_point & 0x3f));
    case Encoding::kUtf16:
      if (code_point >= 0x10000) {
        const int32_t lead = 0xd7c0 + (code_point >> 10);
        byte(lead >> 8);
        byte(lead);
        code_point = 0xdc00 | (code_point & 0x3ff);
      }
      byte(code_point >> 8);
      return byte(code_point);
    case Encoding::kUtf32:
      for (int shift = 24; shift >= 0; shift -= 8) byte(code_point >> shift);
  }
}

class TranscodeKernel final : public DecodingKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    GRADFLOW_RETURN_IF_ERROR(ReadEncoding(construction, &encoding_));
    return DecodingKernel::Init(construction);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckStrings(ctx, 0, "input"));
    const auto strings = ctx.input(0).span<tstring>();
    // A byte becomes up to two characters of four bytes.
    constexpr double kExpansion = 8;
    return MakeStrings(
        ctx, ctx.input(0).shape(), StringNanoseconds(ctx.input(0), 5) + 500,
        [&](int64_t i) { return kExpansion * static_cast<double>(strings[i].size() + 1); },
        [&](int64_t i, tstring* string) -> absl::Status {
          GRADFLOW_ASSIGN_OR_RETURN(const std::unique_ptr<Decoder> decoder, MakeDecoder());
          bool is_valid_string = true;
          decoder->ForEach(strings[i], [&](int32_t code_point, int64_t, bool is_valid) {
            if (!is_valid || (policy().replaces_control && code_point <= 0x1f)) {
              is_valid_string = false;
              if (policy().is_strict) return false;
              if (policy().ignores) return true;
              code_point = policy().replacement;
            }
            AppendCodePoint(encoding_, code_point, string);
            return true;
          });
          return is_valid_string || !policy().is_strict ? absl::OkStatus() : NotValid(ctx, i);
        });
  }

 private:
  Encoding encoding_ = Encoding::kUtf8;
};

class EncodeKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    GRADFLOW_RETURN_IF_ERROR(ReadEncoding(construction, &encoding_));
    return policy_.Init(construction, /*has_control_attr=*/false);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(0, "input_values"));
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(1, "input_splits"));
    if (ctx.input_dtype(0) != DT_INT32) {
      return errors::InvalidArgument("input_values must be int32, but are ",
                                     DataTypeString(ctx.input_dtype(0)));
    }
    const auto values = ctx.input(0).span<int32_t>();
    const IndexReader splits(ctx.input(1));
    const int64_t rows = ctx.input(1).NumElements() - 1;
    if (rows < 0) return errors::InvalidArgument("input_splits must not be empty");
    const auto size = static_cast<int64_t>(values.size());
    for (int64_t i = 0; i <= rows; ++i) {
      if (i == 0 ? splits[i] != 0 : splits[i] < splits[i - 1] || splits[i] > size) {
        return errors::InvalidArgument("input_splits must begin with 0 and must not decrease or ",
                                       "exceed ", size, ", but input_splits[", i, "] is ",
                                       splits[i]);
      }
    }
    if (splits[rows] != size) {
      return errors::InvalidArgument("input_splits must end with ", size,
                                     ", the number of input_values, but ends with ", splits[rows]);
    }
    constexpr double kMostBytes = 4;
    const double average = static_cast<double>(size) / static_cast<double>(rows + 1);
    return MakeStrings(
        ctx, TensorShape({rows}), 30 + 3 * average,
        [&](int64_t i) { return kMostBytes * static_cast<double>(splits[i + 1] - splits[i]); },
        [&](int64_t i, tstring* string) -> absl::Status {
          for (int64_t k = splits[i]; k < splits[i + 1]; ++k) {
            int32_t code_point = values[k];
            if (code_point < 0 || code_point > kMostCodePoint || IsSurrogate(code_point)) {
              if (policy_.is_strict) {
                return errors::InvalidArgument("input_values[", k, "] is ", code_point,
                                               ", which is not a character");
              }
              if (policy_.ignores) continue;
              code_point = policy_.replacement;
            }
            AppendCodePoint(encoding_, code_point, string);
          }
          return absl::OkStatus();
        });
  }

 private:
  Encoding encoding_ = Encoding::kUtf8;
  ErrorPolicy policy_;
};

// ---- UnicodeScript ----

class ScriptKernel final : public OpKernel {
 public:
  absl::Status Compute(KernelContext& ctx) const override {
    const Tensor& input = ctx.input(0);
    if (input.dtype() != DT_INT32) {
      return errors::InvalidArgument("input must be int32, but is ", DataTypeString(input.dtype()));
    }
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, input.shape(), &output));
    const auto code_points = input.span<int32_t>();
    const auto scripts = output->span<int32_t>();
    ParallelFor(ctx, input.NumElements(), BlockSizeForCost(5), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        UErrorCode status = U_ZERO_ERROR;
        const UScriptCode script = uscript_getScript(code_points[i], &status);
        scripts[i] = U_FAILURE(status) ? USCRIPT_INVALID_CODE : script;
      }
    });
    return absl::OkStatus();
  }
};

#else

// The kernel of a build without ICU.
class MissingKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction&) {
    return errors::Unimplemented(
        "the op needs ICU (Debian: libicu-dev), which this build of gradflow lacks");
  }
  absl::Status Compute(KernelContext&) const override { return absl::OkStatus(); }
};
using DecodeKernel = MissingKernel;
using TranscodeKernel = MissingKernel;
using EncodeKernel = MissingKernel;
using ScriptKernel = MissingKernel;

#endif

// ---- Shapes ----

absl::Status DecodeShape(ShapeContext& c) {
  GRADFLOW_ASSIGN_OR_RETURN(const int64_t splits, NumRowSplits(c.input(0).num_elements()));
  c.set_output(0, PartialTensorShape({splits}));
  for (int i = 1; i < c.num_outputs(); ++i) c.set_output(i, PartialTensorShape({-1}));
  return absl::OkStatus();
}

absl::Status EncodeShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 1));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(1, 1));
  const int64_t splits = c.Dim(1, 0);
  if (splits == 0) return errors::InvalidArgument("input_splits must not be empty");
  c.set_output(0, PartialTensorShape({splits < 0 ? -1 : splits - 1}));
  return absl::OkStatus();
}

// The documentation of attributes that several ops have.
constexpr char kInputEncodingDoc[] =
    "input_encoding: The encoding of `input`: a name that ICU knows, such as \"UTF-8\" or "
    "\"latin1\".\n";
constexpr char kOutputEncodingDoc[] = "output_encoding: The encoding of `output`.\n";
constexpr char kErrorsDoc[] =
    "errors: The treatment of characters that are not valid: \"replace\" puts `replacement_char` "
    "in\n  their place, \"ignore\" leaves them out, and \"strict\" is an error.\n"
    "replacement_char: A code point.\n";
constexpr char kControlDoc[] =
    "replace_control_characters: If true, control characters below U+0020 count as not valid.";

void RegisterDecode(Registry& registry, bool has_offsets) {
  const char* const name = has_offsets ? "UnicodeDecodeWithOffsets" : "UnicodeDecode";
  {
    // Registers the op before its kernel.
    Registry::OpRegistrar op = registry.Op(name);
    op.Group("string_ops")
        .Input("input: string")
        .Output("row_splits: Tsplits")
        .Output("char_values: int32");
    if (has_offsets) op.Output("char_to_byte_starts: int64");
    op.Attr("input_encoding: string")
        .Attr("errors: {'strict', 'replace', 'ignore'} = 'replace'")
        .Attr("replacement_char: int = 65533")
        .Attr("replace_control_characters: bool = false")
        .Attr("Tsplits: {int32, int64} = DT_INT64")
        .HandWritten()
        .Shape(DecodeShape)
        .Doc(absl::StrCat(
            "Returns the code points of strings, as a ragged tensor.\n\n"
            "input: Strings.\n"
            "row_splits: The first character of each string, and the number of characters.\n"
            "char_values: The code points.\n",
            has_offsets ? "char_to_byte_starts: The first byte of each character in its string.\n"
                        : "",
            kInputEncodingDoc, kErrorsDoc, kControlDoc, "\nTsplits: The type of `row_splits`."));
  }
  registry.Kernel(name, MakeKernel<DecodeKernel>);
}

}  // namespace

void Register(Registry& registry) {
  RegisterDecode(registry, false);
  RegisterDecode(registry, true);
  registry.Op("UnicodeEncode")
      .Group("string_ops")
      .Input("input_values: int32")
      .Input("input_splits: Tsplits")
      .Output("output: string")
      .Attr("errors: {'ignore', 'replace', 'strict'} = 'replace'")
      .Attr("output_encoding: {'UTF-8', 'UTF-16-BE', 'UTF-32-BE'}")
      .Attr("replacement_char: int = 65533")
      .Attr("Tsplits: {int32, int64} = DT_INT64")
      .HandWritten()
      .Shape(EncodeShape)
      .Doc(absl::StrCat("Makes strings of code points.\n\n"
                        "input_values: The code points of all strings, a vector.\n"
                        "input_splits: The first character of each string, and the number of "
                        "characters.\n"
                        "output: The strings, a vector.\n",
                        kErrorsDoc, kOutputEncodingDoc, "Tsplits: The type of `input_splits`."));
  registry.Kernel("UnicodeEncode", MakeKernel<EncodeKernel>);
  registry.Op("UnicodeTranscode")
      .Group("string_ops")
      .Input("input: string")
      .Output("output: string")
      .Attr("input_encoding: string")
      .Attr("output_encoding: {'UTF-8', 'UTF-16-BE', 'UTF-32-BE'}")
      .Attr("errors: {'strict', 'replace', 'ignore'} = 'replace'")
      .Attr("replacement_char: int = 65533")
      .Attr("replace_control_characters: bool = false")
      .HandWritten()
      .Shape(UnchangedShape)
      .Doc(absl::StrCat("Converts strings to another encoding.\n\n"
                        "input: Strings.\n"
                        "output: The results, of the shape of `input`.\n",
                        kInputEncodingDoc, kOutputEncodingDoc, kErrorsDoc, kControlDoc));
  registry.Kernel("UnicodeTranscode", MakeKernel<TranscodeKernel>);
  registry.Op("UnicodeScript")
      .Group("string_ops")
      .Input("input: int32")
      .Output("output: int32")
      .HandWritten()
      .Shape(UnchangedShape)
      .Doc(R"(Returns the scripts of characters, as numbers of ICU's UScriptCode.

input: Code points.
output: The scripts, of the shape of `input`; -1 for numbers that are not code points.)");
  registry.Kernel("UnicodeScript", MakeKernel<ScriptKernel>);
}

}  // namespace gradflow::unicode
