// Tensor::SummarizeValue, DebugString and DeviceSafeDebugString.
#include <algorithm>
#include <charconv>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/resource_handle.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/variant.h"

namespace gradflow {
namespace {

// Appends the shortest text that parses to the same number in the precision of T.
template <typename T>
void AppendFloat(std::string* out, T value) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof(text), value);
  out->append(text, end);
}

// Returns the beginning of a string, which may have any length. With `keeps_utf8`, only control
// characters and quotes are escaped.
std::string StringSummary(absl::string_view text, bool keeps_utf8) {
  constexpr size_t kMaxCharacters = 200;
  if (text.size() <= kMaxCharacters) {
    return keeps_utf8 ? absl::Utf8SafeCEscape(text) : absl::CEscape(text);
  }
  if (!keeps_utf8) return absl::StrCat(absl::CEscape(text.substr(0, kMaxCharacters)), "...");
  // Characters of UTF-8 are not cut.
  size_t end = kMaxCharacters;
  while (end > kMaxCharacters - 3 && (static_cast<uint8_t>(text[end]) & 0xc0) == 0x80) --end;
  return absl::StrCat(absl::Utf8SafeCEscape(text.substr(0, end)), "...");
}

template <typename T>
void AppendElement(std::string* out, const T& value) {
  if constexpr (std::is_same_v<T, tstring>) {
    absl::StrAppend(out, StringSummary(value, /*keeps_utf8=*/false));
  } else if constexpr (std::is_same_v<T, ResourceHandle>) {
    constexpr size_t kMaxCharacters = 200;
    absl::StrAppend(out, absl::CEscape(value.DebugString().substr(0, kMaxCharacters)));
  } else if constexpr (std::is_same_v<T, Variant>) {
    constexpr size_t kMaxCharacters = 200;
    absl::StrAppend(out, "<", absl::CEscape(value.SummarizeValue().substr(0, kMaxCharacters)), ">");
  } else if constexpr (kIsComplex<T>) {
    out->push_back('(');
    AppendFloat(out, value.real());
    out->push_back(',');
    AppendFloat(out, value.imag());
    out->push_back(')');
  } else if constexpr (kIsFloat16<T>) {
    // Six digits distinguish all values of half and bfloat16.
    absl::StrAppend(out, static_cast<float>(value));
  } else if constexpr (std::is_floating_point_v<T>) {
    AppendFloat(out, value);
  } else if constexpr (std::is_integral_v<T>) {
    absl::StrAppend(out, +value);
  } else {
    absl::StrAppend(out, +value.value);
  }
}

template <typename T>
class Summary {
 public:
  Summary(const Tensor& tensor, int64_t max_entries)
      : values_(tensor.flat<T>()), dims_(tensor.shape().dim_sizes()), left_(max_entries) {}

  std::string Print() {
    // The outermost dimension has no brackets.
    PrintDim(0, 0, values_.size());
    if (truncated_) out_ += "...";
    return std::move(out_);
  }

 private:
  void PrintDim(size_t d, int64_t begin, int64_t count) {
    if (dims_.empty()) {
      PrintOne(begin);
      return;
    }
    const int64_t step = count / dims_[d];
    const bool last = d + 1 == dims_.size();
    for (int64_t i = 0; i < dims_[d]; ++i) {
      if (left_ <= 0) {
        truncated_ = true;
        return;
      }
      if (last) {
        if (i > 0) out_.push_back(' ');
        PrintOne(begin + i);
      } else {
        out_.push_back('[');
        PrintDim(d + 1, begin + i * step, step);
        out_.push_back(']');
      }
    }
  }

  void PrintOne(int64_t i) {
    AppendElement(&out_, values_[i]);
    --left_;
  }

  TensorView<const T, 1> values_;
  absl::Span<const int64_t> dims_;
  int64_t left_;
  bool truncated_ = false;
  std::string out_;
};

// Prints like NumPy.
template <typename T>
class NumpySummary {
 public:
  NumpySummary(const Tensor& tensor, int64_t ends)
      : values_(tensor.flat<T>()), dims_(tensor.shape().dim_sizes()), ends_(ends) {}

  std::string Print() {
    PrintDim(0, 0, values_.size());
    return std::move(out_);
  }

 private:
  void PrintDim(size_t d, int64_t begin, int64_t count) {
    if (d == dims_.size()) {
      if constexpr (std::is_same_v<T, tstring>) {
        absl::StrAppend(&out_, "\"", StringSummary(values_[begin], /*keeps_utf8=*/true), "\"");
      } else {
        AppendElement(&out_, values_[begin]);
      }
      return;
    }
    out_.push_back('[');
    const int64_t size = dims_[d];
    const int64_t step = size == 0 ? 0 : count / size;
    // Subtracts, because 2 * ends_ might overflow.
    const bool elided = ends_ < size && ends_ < size - ends_;
    for (int64_t i = 0; i < size; ++i) {
      if (i > 0) PrintSpace(d);
      if (elided && i == ends_) {
        out_ += "...";
        i = size - ends_ - 1;
      } else {
        PrintDim(d + 1, begin + i * step, step);
      }
    }
    out_.push_back(']');
  }

  void PrintSpace(size_t d) {
    const size_t inner = dims_.size() - d - 1;
    out_.append(inner, '\n');
    out_.append(inner == 0 ? 1 : d + 1, ' ');
  }

  TensorView<const T, 1> values_;
  absl::Span<const int64_t> dims_;
  int64_t ends_;
  std::string out_;
};

using PrintableTypes = ConcatTypes<
    ConcatTypes<NumberTypes, QuantizedTypes>::type,
    TypeList<bool, tstring, ResourceHandle, Variant, float8_e5m2, float8_e4m3fn, float8_e4m3fnuz,
             float8_e4m3b11fnuz, float8_e5m2fnuz, int4, uint4, int2, uint2>>::type;

}  // namespace

std::string Tensor::SummarizeValue(int64_t max_entries, bool print_v2) const {
  if (!IsInitialized()) {
    return absl::StrCat("uninitialized Tensor of type ", DataTypeString(dtype_), " and shape ",
                        shape_.DebugString());
  }
  if (NumElements() == 0) return print_v2 ? "[]" : "";
  std::string text;
  if (max_entries < 0) max_entries = NumElements();
  DispatchType(PrintableTypes(), dtype_, [&](auto tag) {
    using T = typename decltype(tag)::type;
    text = print_v2 ? NumpySummary<T>(*this, max_entries).Print()
                    : Summary<T>(*this, max_entries).Print();
  });
  return text;
}

std::string Tensor::DebugString(int64_t max_entries) const {
  return absl::StrCat("Tensor<type: ", DataTypeString(dtype_), " shape: ", shape_.DebugString(),
                      " values: ", SummarizeValue(max_entries), ">");
}

std::string Tensor::DeviceSafeDebugString() const {
  return absl::StrCat("Tensor<type: ", DataTypeString(dtype_), " shape: ", shape_.DebugString(),
                      ">");
}

}  // namespace gradflow
