#include "gradflow/io/npy_header.h"

#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "gradflow/core/status.h"
#include "gradflow/io/npy.h"

namespace gradflow {
namespace internal {
namespace {

constexpr absl::string_view kMagic = "\x93NUMPY";
// Limit on the header's length, far above the length of NumPy's headers, which is a few thousand
// bytes for 254 dimensions.
constexpr size_t kMaxHeaderLength = 1 << 20;
// Limit on the bytes or characters of a string.
constexpr int64_t kMaxStringWidth = int64_t{1} << 31;

struct TypeName {
  DataType dtype;
  const char* name;
};

// Names of types in .npy files, without byte order.
constexpr TypeName kTypeNames[] = {{DT_BOOL, "b1"},      {DT_INT8, "i1"},       {DT_INT16, "i2"},
                                   {DT_INT32, "i4"},     {DT_INT64, "i8"},      {DT_UINT8, "u1"},
                                   {DT_UINT16, "u2"},    {DT_UINT32, "u4"},     {DT_UINT64, "u8"},
                                   {DT_HALF, "f2"},      {DT_FLOAT, "f4"},      {DT_DOUBLE, "f8"},
                                   {DT_COMPLEX64, "c8"}, {DT_COMPLEX128, "c16"}};

// Returns the start of `text`, escaped and in quotes, for messages about untrusted input.
std::string Excerpt(absl::string_view text) {
  if (text.empty()) return "nothing";
  constexpr size_t kMaxLength = 40;
  std::string excerpt(text.substr(0, kMaxLength));
  for (char& c : excerpt) {
    if (!absl::ascii_isprint(c)) c = '?';
  }
  return absl::StrCat("'", excerpt, text.size() > kMaxLength ? "..." : "", "'");
}

class HeaderParser {
 public:
  explicit HeaderParser(absl::string_view text) : text_(text), rest_(text) {}

  absl::StatusOr<NpyHeader> Parse() {
    if (!Consume('{')) return Expected("'{'");
    bool seen_descr = false, seen_order = false, seen_shape = false;
    while (!Consume('}')) {
      std::string key;
      GRADFLOW_RETURN_IF_ERROR(ParseString(&key));
      if (!Consume(':')) return Expected("':'");
      bool* const seen = key == "descr"           ? &seen_descr
                         : key == "fortran_order" ? &seen_order
                         : key == "shape"         ? &seen_shape
                                                  : nullptr;
      if (seen == nullptr || *seen) {
        return errors::InvalidArgument("expected the keys 'descr', 'fortran_order' and 'shape', ",
                                       "each once, but found ", Excerpt(key));
      }
      *seen = true;
      GRADFLOW_RETURN_IF_ERROR(seen == &seen_descr   ? ParseDescr()
                               : seen == &seen_order ? ParseOrder()
                                                     : ParseShape());
      if (!Consume(',') && !AtChar('}')) return Expected("',' or '}'");
    }
    if (!seen_descr || !seen_order || !seen_shape) {
      return errors::InvalidArgument("the header has no key '",
                                     !seen_descr   ? "descr"
                                     : !seen_order ? "fortran_order"
                                                   : "shape",
                                     "'");
    }
    SkipSpace();
    if (!rest_.empty()) return Expected("the end of the header");
    return header_;
  }

 private:
  void SkipSpace() { rest_ = absl::StripLeadingAsciiWhitespace(rest_); }
  bool AtChar(char c) {
    SkipSpace();
    return !rest_.empty() && rest_[0] == c;
  }
  bool Consume(char c) {
    if (!AtChar(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  absl::Status Expected(absl::string_view what) {
    SkipSpace();
    return errors::InvalidArgument("expected ", what, " at byte ", text_.size() - rest_.size(),
                                   " of the header, but found ", Excerpt(rest_));
  }
  // Parses a string in single or double quotes, without escapes.
  absl::Status ParseString(std::string* value) {
    const char quote = AtChar('"') ? '"' : '\'';
    if (!AtChar(quote)) return Expected("a string in quotes");
    const size_t end = rest_.find(quote, 1);
    if (end == absl::string_view::npos || absl::StrContains(rest_.substr(0, end), '\\')) {
      return Expected("a string in quotes, without escapes");
    }
    *value = std::string(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return absl::OkStatus();
  }

  absl::Status ParseDescr() {
    std::string descr;
    if (AtChar('[')) {
      return errors::InvalidArgument("expected a simple type, but found descr ", Excerpt(rest_),
                                     ", a structured type");
    }
    GRADFLOW_RETURN_IF_ERROR(ParseString(&descr));
    absl::string_view name = descr;
    // '=', '|' and no prefix mean native byte order, as in NumPy.
    header_.big_endian = absl::StartsWith(name, ">");
    if (!name.empty() && absl::StrContains("<>=|", name[0])) name.remove_prefix(1);
    if (name == "?") name = "b1";
    for (const TypeName& type : kTypeNames) {
      if (name == type.name) {
        header_.dtype = type.dtype;
        header_.element_bytes = DataTypeSize(type.dtype);
        return absl::OkStatus();
      }
    }
    // "S5" is 5 bytes, "U5" 5 Unicode characters.
    header_.is_utf32 = absl::StartsWith(name, "U");
    int64_t width = 0;
    if ((header_.is_utf32 || absl::StartsWith(name, "S") || absl::StartsWith(name, "a")) &&
        absl::SimpleAtoi(name.substr(1), &width) && width >= 1 && width <= kMaxStringWidth) {
      header_.dtype = DT_STRING;
      header_.element_bytes = header_.is_utf32 ? 4 * width : width;
      return absl::OkStatus();
    }
    return errors::InvalidArgument(
        "expected a numeric type, bool or strings of fixed width ('<f4', '|b1', '|S5', '<U5', "
        "...), but found descr ",
        Excerpt(descr));
  }

  absl::Status ParseOrder() {
    SkipSpace();
    if (absl::ConsumePrefix(&rest_, "True")) {
      header_.fortran_order = true;
    } else if (!absl::ConsumePrefix(&rest_, "False")) {
      return Expected("True or False");
    }
    return absl::OkStatus();
  }

  // Parses a tuple: "()", "(3,)", "(3, 4)", "(3, 4,)".
  absl::Status ParseShape() {
    if (!Consume('(')) return Expected("a tuple as shape");
    DimVector dims;
    bool comma = true;
    while (!Consume(')')) {
      if (!comma) return Expected("',' or ')'");
      SkipSpace();
      const size_t digits = std::min(rest_.find_first_not_of("0123456789"), rest_.size());
      int64_t dim;
      if (!absl::SimpleAtoi(rest_.substr(0, digits), &dim)) {
        return Expected("a dimension (a 64-bit integer of at least 0)");
      }
      rest_.remove_prefix(digits);
      absl::ConsumePrefix(&rest_, "L");  // Suffix of long integers in Python 2.
      dims.push_back(dim);
      comma = Consume(',');
    }
    if (dims.size() == 1 && !comma) return Expected("',' in a tuple of one dimension, before this");
    GRADFLOW_ASSIGN_OR_RETURN(header_.shape, TensorShape::Make(dims));
    return absl::OkStatus();
  }

  absl::string_view text_;
  absl::string_view rest_;
  NpyHeader header_;
};

absl::Status CheckDataSize(const NpyHeader& header, size_t found) {
  const int64_t expected =
      MultiplyWithoutOverflow(header.shape.num_elements(), header.element_bytes);
  if (expected >= 0 && static_cast<size_t>(expected) == found) return absl::OkStatus();
  return errors::InvalidArgument("expected ", header.shape.num_elements(), " elements of ",
                                 header.element_bytes, " bytes (type ",
                                 DataTypeString(header.dtype), ", shape ",
                                 header.shape.DebugString(), "), but found ", found, " bytes");
}

}  // namespace

absl::StatusOr<NpyHeaderRange> FindNpyHeader(absl::string_view start, size_t file_size) {
  if (file_size == 0) return errors::InvalidArgument("expected a .npy file, but it is empty");
  const absl::string_view magic = start.substr(0, kMagic.size());
  if (!absl::StartsWith(kMagic, magic)) {
    return errors::InvalidArgument("expected a .npy file, but its first bytes are '",
                                   absl::CHexEscape(magic), "', not '", absl::CHexEscape(kMagic),
                                   "'");
  }
  const auto byte = [&](size_t i) -> size_t { return static_cast<uint8_t>(start[i]); };
  const size_t major = start.size() > 6 ? byte(6) : 0;
  const size_t begin = major == 1 ? 10 : 12;
  if (start.size() < begin) {
    return errors::InvalidArgument("expected a .npy file of at least ", begin,
                                   " bytes, but it has ", file_size);
  }
  if (major < 1 || major > 3 || byte(7) != 0) {
    return errors::InvalidArgument("expected .npy version 1.0, 2.0 or 3.0, but found ", major, ".",
                                   byte(7));
  }
  const size_t length =
      byte(8) | byte(9) << 8 | (begin == 10 ? 0 : byte(10) << 16 | byte(11) << 24);
  if (length > kMaxHeaderLength) {
    return errors::InvalidArgument("expected a header of at most ", kMaxHeaderLength,
                                   " bytes, but its length is ", length);
  }
  if (length > file_size - begin) {
    return errors::InvalidArgument("expected a header of ", length, " bytes, but only ",
                                   file_size - begin, " follow");
  }
  return NpyHeaderRange{begin, begin + length};
}

absl::StatusOr<NpyHeader> ParseNpyHeader(absl::string_view text, size_t data_size) {
  GRADFLOW_ASSIGN_OR_RETURN(NpyHeader header, HeaderParser(text).Parse());
  GRADFLOW_RETURN_IF_ERROR(CheckDataSize(header, data_size));
  return header;
}

absl::StatusOr<int64_t> NpyStringWidth(const Tensor& tensor) {
  // Limit on the bytes of all elements. A single long string makes all elements long.
  constexpr int64_t kMaxBytes = int64_t{1} << 31;
  int64_t width = 1;
  for (const tstring& text : tensor.span<tstring>()) {
    if (text.size() > 0 && text[text.size() - 1] == '\0') {
      return errors::InvalidArgument(
          "a string that ends in a zero byte cannot be written to a .npy file");
    }
    width = std::max(width, static_cast<int64_t>(text.size()));
  }
  const int64_t bytes = MultiplyWithoutOverflow(width, tensor.NumElements());
  if (bytes < 0 || bytes > kMaxBytes) {
    return errors::InvalidArgument("expected strings that take at most ", kMaxBytes,
                                   " bytes in a .npy file, but ", tensor.NumElements(),
                                   " strings of ", width, " bytes take more");
  }
  return width;
}

}  // namespace internal

absl::StatusOr<std::string> FormatNpyHeader(const Tensor& tensor) {
  if (!tensor.IsInitialized()) {
    return errors::InvalidArgument("expected a tensor with elements, but it is not initialized");
  }
  // NumPy has no bfloat16, so the bits are written as integers.
  const DataType dtype = tensor.dtype() == DT_BFLOAT16 ? DT_UINT16 : tensor.dtype();
  std::string name;
  if (dtype == DT_STRING) {
    GRADFLOW_ASSIGN_OR_RETURN(const int64_t width, internal::NpyStringWidth(tensor));
    name = absl::StrCat("|S", width);
  } else {
    const auto* const type =
        std::find_if(std::begin(internal::kTypeNames), std::end(internal::kTypeNames),
                     [&](const auto& candidate) { return candidate.dtype == dtype; });
    if (type == std::end(internal::kTypeNames)) {
      return errors::InvalidArgument("a tensor of type ", DataTypeString(dtype),
                                     " cannot be written to a .npy file: NumPy has no such type");
    }
    name = absl::StrCat(DataTypeSize(dtype) == 1 ? "|" : "<", type->name);
  }
  const auto dims = tensor.shape().dim_sizes();
  std::string text = absl::StrCat("{'descr': '", name, "', 'fortran_order': False, 'shape': (",
                                  absl::StrJoin(dims, ", "), dims.size() == 1 ? "," : "", "), }");
  // Version 1.0 is enough: kMaxDims dimensions of 19 digits take far less than 64 KiB.
  static_assert(kMaxDims * (19 + 2) + 128 < 1 << 16);
  // The elements start at a multiple of 64 bytes, so that they can be used in place.
  constexpr size_t kPreludeSize = 10;
  constexpr size_t kAlignment = 64;
  text.append(kAlignment - 1 - (kPreludeSize + text.size()) % kAlignment, ' ');
  text.push_back('\n');
  return absl::StrCat(
      internal::kMagic, absl::string_view("\1\0", 2),
      std::string{static_cast<char>(text.size() & 0xff), static_cast<char>(text.size() >> 8)},
      text);
}

}  // namespace gradflow
