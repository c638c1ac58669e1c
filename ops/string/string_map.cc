// Ops that map each string to a string or a number: StringLower, StringUpper, StringStrip,
// StringLength, EncodeBase64 and DecodeBase64.
#include <cstdint>
#include <limits>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/string/string_loop.h"
#include "gradflow/proto/node_def.pb.h"

#ifdef GRADFLOW_HAS_ICU
#include <unicode/bytestream.h>
#include <unicode/locid.h>
#include <unicode/unistr.h>
#endif

namespace gradflow::string_map {
namespace {

// Makes each string of output 0 by fn(string of input 0, &string).
template <typename Fn>
absl::Status Map(KernelContext& ctx, const char* name, double nanoseconds_per_byte,
                 double bytes_per_byte, Fn fn) {
  GRADFLOW_RETURN_IF_ERROR(CheckStrings(ctx, 0, name));
  const auto strings = ctx.input(0).span<tstring>();
  return MakeStrings(
      ctx, ctx.input(0).shape(), StringNanoseconds(ctx.input(0), nanoseconds_per_byte),
      [&](int64_t i) { return static_cast<double>(strings[i].size()) * bytes_per_byte; },
      [&](int64_t i, tstring* string) { return fn(strings[i], string); });
}

// ---- StringLower, StringUpper ----

class CaseKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    std::string encoding;
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("encoding", &encoding));
    is_lower_ = construction.def().op() == "StringLower";
    if (encoding.empty()) return absl::OkStatus();
    if (encoding != "utf-8") {
      return errors::InvalidArgument("encoding must be '' or 'utf-8', but is '",
                                     errors::Printable(encoding), "'");
    }
#ifdef GRADFLOW_HAS_ICU
    is_utf8_ = true;
    return absl::OkStatus();
#else
    return errors::Unimplemented("encoding 'utf-8' needs ICU (Debian: libicu-dev), which this ",
                                 "build of gradflow lacks");
#endif
  }

  absl::Status Compute(KernelContext& ctx) const override {
    if (!is_utf8_) {
      return Map(ctx, "input", 1, 1, [this](const tstring& in, tstring* out) {
        *out = in;
        if (is_lower_) {
          absl::AsciiStrToLower(out);
        } else {
          absl::AsciiStrToUpper(out);
        }
        return absl::OkStatus();
      });
    }
#ifdef GRADFLOW_HAS_ICU
    // A byte becomes up to three bytes, in the result and in each of ICU's two strings, which have
    // two bytes for a character of ASCII.
    return Map(ctx, "input", 20, 12, [this](const tstring& in, tstring* out) {
      if (in.size() > std::numeric_limits<int32_t>::max() / 4) {
        return errors::InvalidArgument("a string of ", in.size(), " bytes is too long");
      }
      icu::UnicodeString text =
          icu::UnicodeString::fromUTF8(icu::StringPiece(in.data(), static_cast<int>(in.size())));
      if (is_lower_) {
        text.toLower(icu::Locale::getRoot());
      } else {
        text.toUpper(icu::Locale::getRoot());
      }
      icu::StringByteSink<std::string> sink(out);
      text.toUTF8(sink);
      return absl::OkStatus();
    });
#else
    return absl::OkStatus();
#endif
  }

 private:
  bool is_lower_ = false;
  bool is_utf8_ = false;
};

// ---- StringStrip ----

absl::Status Strip(KernelContext& ctx) {
  return Map(ctx, "input", 0.1, 1, [](const tstring& in, tstring* out) {
    *out = tstring(absl::StripAsciiWhitespace(in));
    return absl::OkStatus();
  });
}

// ---- StringLength ----

class LengthKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    std::string unit;
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("unit", &unit));
    counts_characters_ = unit == "UTF8_CHAR";
    return absl::OkStatus();
  }
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckStrings(ctx, 0, "input"));
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, ctx.input(0).shape(), &output));
    const auto strings = ctx.input(0).span<tstring>();
    const auto lengths = output->span<int32_t>();
    const double cost = counts_characters_ ? StringNanoseconds(ctx.input(0), 0.3) : 2;
    ParallelFor(ctx, static_cast<int64_t>(strings.size()), BlockSizeForCost(cost),
                [&](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i) {
                    size_t length = strings[i].size();
                    if (counts_characters_) {
                      length = 0;
                      for (const char c : strings[i]) length += IsTrailByte(c) ? 0 : 1;
                    }
                    lengths[i] = static_cast<int32_t>(length);
                  }
                });
    return absl::OkStatus();
  }

 private:
  bool counts_characters_ = false;
};

// ---- EncodeBase64, DecodeBase64 ----

class EncodeKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return construction.GetAttr("pad", &pads_);
  }
  absl::Status Compute(KernelContext& ctx) const override {
    return Map(ctx, "input", 2, 4, [this](const tstring& in, tstring* out) {
      absl::WebSafeBase64Escape(in, out);
      if (pads_) out->append((4 - out->size() % 4) % 4, '=');
      return absl::OkStatus();
    });
  }

 private:
  bool pads_ = false;
};

// Returns the six bits of a character, or -1.
int Base64Bits(char c) {
  if (absl::ascii_isupper(c)) return c - 'A';
  if (absl::ascii_islower(c)) return c - 'a' + 26;
  if (absl::ascii_isdigit(c)) return c - '0' + 52;
  return c == '-' ? 62 : c == '_' ? 63 : -1;
}

// Padding is optional, but must be complete. Bits after the last byte are ignored.
absl::Status Decode(absl::string_view in, tstring* out) {
  if (!in.empty() && in.size() % 4 == 0) {
    for (int pads = 0; pads < 2 && in.back() == '='; ++pads) in.remove_suffix(1);
  }
  if (in.size() % 4 == 1) {
    return errors::InvalidArgument("a string of ", in.size(),
                                   " characters without padding is not base64");
  }
  out->clear();
  out->reserve(in.size() / 4 * 3 + 2);
  uint32_t bits = 0;
  int num_bits = 0;
  for (const char c : in) {
    const int six = Base64Bits(c);
    if (six < 0) {
      return errors::InvalidArgument("expected characters of web-safe base64, but found '",
                                     errors::Printable(absl::string_view(&c, 1)), "'");
    }
    bits = bits << 6 | static_cast<uint32_t>(six);
    num_bits += 6;
    if (num_bits >= 8) {
      num_bits -= 8;
      out->push_back(static_cast<char>(bits >> num_bits & 0xff));
    }
  }
  return absl::OkStatus();
}

absl::Status DecodeBase64(KernelContext& ctx) {
  return Map(ctx, "input", 2, 1, [](const tstring& in, tstring* out) { return Decode(in, out); });
}

}  // namespace

void Register(Registry& registry) {
  const struct {
    const char* name;
    const char* doc;
  } cases[] = {
      {"StringLower", R"(Converts the letters of strings to lower case.

input: Strings.
output: The results, of the shape of `input`.
encoding: "" changes the letters of ASCII only, "utf-8" all letters of Unicode.)"},
      {"StringUpper", R"(Converts the letters of strings to upper case.

input: Strings.
output: The results, of the shape of `input`.
encoding: "" changes the letters of ASCII only, "utf-8" all letters of Unicode.)"},
  };
  for (const auto& c : cases) {
    registry.Op(c.name)
        .Group("string_ops")
        .Input("input: string")
        .Output("output: string")
        .Attr("encoding: string = ''")
        .Shape(UnchangedShape)
        .Doc(c.doc);
    registry.Kernel(c.name, MakeKernel<CaseKernel>);
  }
  registry.Op("StringStrip")
      .Group("string_ops")
      .Input("input: string")
      .Output("output: string")
      .Shape(UnchangedShape)
      .Doc(R"(Removes white space at both ends of strings.

input: Strings.
output: The results, of the shape of `input`.)");
  registry.Kernel("StringStrip", MakeFunctionKernel<Strip>);
  registry.Op("StringLength")
      .Group("string_ops")
      .Input("input: string")
      .Output("output: int32")
      .Attr("unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'")
      .Shape(UnchangedShape)
      .Doc(R"(Returns the lengths of strings.

input: Strings.
output: The lengths, of the shape of `input`.
unit: What is counted: bytes, or characters of UTF-8.)");
  registry.Kernel("StringLength", MakeKernel<LengthKernel>);
  registry.Op("EncodeBase64")
      .Group("string_ops")
      .Input("input: string")
      .Output("output: string")
      .Attr("pad: bool = false")
      .Shape(UnchangedShape)
      .Doc(R"(Encodes strings in the web-safe form of base64.

input: Strings of any bytes.
output: The results, of the shape of `input`.
pad: If true, "=" fills each result up to a multiple of four characters.)");
  registry.Kernel("EncodeBase64", MakeKernel<EncodeKernel>);
  registry.Op("DecodeBase64")
      .Group("string_ops")
      .Input("input: string")
      .Output("output: string")
      .Shape(UnchangedShape)
      .Doc(R"(Decodes strings in the web-safe form of base64, with or without padding.

input: The encoded strings.
output: The results, of the shape of `input`.)");
  registry.Kernel("DecodeBase64", MakeFunctionKernel<DecodeBase64>);
}

}  // namespace gradflow::string_map
