// StringToNumber, AsString and StringFormat.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "gradflow/core/memory_reservation.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/core/variant.h"
#include "gradflow/ops/common/indices.h"
#include "gradflow/ops/common/parse_number.h"
#include "gradflow/ops/string/string_loop.h"

namespace gradflow::string_number {
namespace {

// ---- StringToNumber ----

template <typename T>
absl::Status ToNumbers(KernelContext& ctx, Tensor* output) {
  const auto strings = ctx.input(0).span<tstring>();
  const auto numbers = output->span<T>();
  FirstBadIndex bad;
  ParallelFor(ctx, static_cast<int64_t>(strings.size()), BlockSizeForCost(40),
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  if (!ParseNumber(strings[i], &numbers[i])) return bad.Found(i);
                }
              });
  if (!bad.any()) return absl::OkStatus();
  return errors::InvalidArgument(ElementName("string_tensor", ctx.input(0).shape(), bad.first()),
                                 " must be a number of type ", DataTypeString(output->dtype()),
                                 ", but is '", errors::Printable(strings[bad.first()]), "'");
}

absl::Status StringToNumber(KernelContext& ctx) {
  GRADFLOW_RETURN_IF_ERROR(CheckStrings(ctx, 0, "string_tensor"));
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, ctx.input(0).shape(), &output));
  absl::Status status;
  DispatchType(TypeList<float, double, int32_t, int64_t, uint32_t, uint64_t>(), output->dtype(),
               [&](auto tag) { status = ToNumbers<typename decltype(tag)::type>(ctx, output); });
  return status;
}

// ---- AsString ----

// Appends a number in the format of printf(), but not in the language of the program.
template <typename T>
void AppendNumber(const std::string& format, T value, tstring* string) {
  // The format fits the type, because the kernel makes both from the node's attributes.
  static_cast<void>(
      absl::FormatUntyped(string, absl::UntypedFormatSpec(format), {absl::FormatArg(value)}));
}

template <typename T>
void AppendValue(const std::string& format, T value, tstring* string) {
  if constexpr (std::is_same_v<T, bool>) {
    string->append(value ? "true" : "false");
  } else if constexpr (kIsComplex<T>) {
    string->push_back('(');
    AppendNumber(format, static_cast<double>(value.real()), string);
    string->push_back(',');
    AppendNumber(format, static_cast<double>(value.imag()), string);
    string->push_back(')');
  } else if constexpr (!std::is_integral_v<T>) {
    AppendNumber(format, static_cast<double>(value), string);
  } else if constexpr (std::is_signed_v<T>) {
    AppendNumber(format, static_cast<long long>(value), string);
  } else {
    AppendNumber(format, static_cast<unsigned long long>(value), string);
  }
}

using PrintedTypes = ConcatTypes<NumberTypes, TypeList<bool>>::type;

class AsStringKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    DataType dtype = DT_INVALID;
    int64_t precision = -1;
    bool scientific = false;
    bool shortest = false;
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("T", &dtype));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("precision", &precision));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("scientific", &scientific));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("shortest", &shortest));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("width", &width_));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("fill", &fill_));
    const bool is_real = DataTypeIsFloating(dtype) || DataTypeIsComplex(dtype);
    if (scientific && shortest) {
      return errors::InvalidArgument("scientific and shortest must not both be true");
    }
    if ((scientific || shortest) && !is_real) {
      return errors::InvalidArgument("scientific and shortest must be false for type ",
                                     DataTypeString(dtype));
    }
    if (precision >= 0 && !is_real && dtype != DT_STRING) {
      return errors::InvalidArgument("precision must be negative for type ", DataTypeString(dtype),
                                     ", but is ", precision);
    }
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max() / 4;
    if (width_ > kMost || precision > kMost) {
      return errors::InvalidArgument("width and precision must be at most ", kMost, ", but are ",
                                     width_, " and ", precision);
    }
    if (fill_.size() > 1 || (!fill_.empty() && !absl::StrContains(" +-0#", fill_))) {
      return errors::InvalidArgument("fill must be '', ' ', '+', '-' or '0', but is '",
                                     errors::Printable(fill_), "'");
    }
    format_ = "%";
    if (fill_ != "#") format_ += fill_;
    if (width_ > 0) absl::StrAppend(&format_, width_);
    if (!is_real) {
      format_ += absl::StartsWith(DataTypeString(dtype), "u") ? "llu" : "lld";
    } else {
      if (precision >= 0) absl::StrAppend(&format_, ".", precision);
      format_ += scientific ? "e" : shortest ? "g" : "f";
    }
    // The digits of the largest number of the type, or more.
    constexpr double kDigits = 21;
    constexpr double kFloatDigits = 48;
    constexpr double kDoubleDigits = 320;
    const double digits = !is_real                                       ? kDigits
                          : dtype == DT_DOUBLE || dtype == DT_COMPLEX128 ? kDoubleDigits
                                                                         : kFloatDigits;
    most_bytes_ = digits + static_cast<double>(std::max<int64_t>(width_, 0)) +
                  static_cast<double>(std::max<int64_t>(precision, 0));
    if (DataTypeIsComplex(dtype)) most_bytes_ = 2 * most_bytes_ + 3;
    return absl::OkStatus();
  }

  absl::Status Compute(KernelContext& ctx) const override {
    const Tensor& input = ctx.input(0);
    if (input.dtype() == DT_STRING) return PadStrings(ctx);
    if (input.dtype() == DT_VARIANT) {
      const auto values = input.span<Variant>();
      return MakeStrings(
          ctx, input.shape(), 1000, [](int64_t) { return 1000.0; },
          [&](int64_t i, tstring* string) {
            *string = values[i].DebugString();
            return absl::OkStatus();
          });
    }
    absl::Status status =
        errors::InvalidArgument("input must not be of type ", DataTypeString(input.dtype()));
    DispatchType(PrintedTypes(), input.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      const auto values = input.span<T>();
      status = MakeStrings(
          ctx, input.shape(), 200, [this](int64_t) { return most_bytes_; },
          [&](int64_t i, tstring* string) {
            AppendValue<T>(format_, values[i], string);
            return absl::OkStatus();
          });
    });
    return status;
  }

 private:
  absl::Status PadStrings(KernelContext& ctx) const {
    const auto strings = ctx.input(0).span<tstring>();
    const auto pad = [&](int64_t i) {
      const auto size = static_cast<int64_t>(strings[i].size());
      return static_cast<size_t>(std::max<int64_t>(width_ - size, 0));
    };
    return MakeStrings(
        ctx, ctx.input(0).shape(), StringNanoseconds(ctx.input(0), 0.1),
        [&](int64_t i) { return static_cast<double>(strings[i].size() + pad(i)); },
        [&](int64_t i, tstring* string) {
          if (fill_ != "-") string->append(pad(i), ' ');
          string->append(strings[i]);
          if (fill_ == "-") string->append(pad(i), ' ');
          return absl::OkStatus();
        });
  }

  std::string format_;
  std::string fill_;
  int64_t width_ = -1;
  double most_bytes_ = 0;
};

// ---- StringFormat ----

class FormatKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    std::string text;
    std::string placeholder;
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("template", &text));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("placeholder", &placeholder));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("summarize", &summarize_));
    parts_ = absl::StrSplit(text, placeholder);
    const auto expected = static_cast<int>(parts_.size()) - 1;
    if (construction.num_inputs() != expected) {
      return errors::InvalidArgument("template has ", expected, " placeholders, but there are ",
                                     construction.num_inputs(), " inputs");
    }
    return absl::OkStatus();
  }

  absl::Status Compute(KernelContext& ctx) const override {
    // Each text is charged before the next one is made.
    MemoryReservation memory(ctx.allocator().get());
    std::string text = parts_[0];
    for (int i = 0; i < ctx.num_inputs(); ++i) {
      const Tensor& input = ctx.input(i);
      // An estimate: numbers have up to 25 characters, and strings are printed in part.
      constexpr double kPerElement = 25;
      constexpr double kPerString = 220;
      const double per_element = input.dtype() == DT_STRING ? kPerString : kPerElement;
      double elements = static_cast<double>(input.NumElements());
      if (summarize_ >= 0) {
        double most = 1;
        for (int d = 0; d < input.dims(); ++d) most *= 2.0 * static_cast<double>(summarize_) + 1;
        elements = std::min(elements, most);
      }
      GRADFLOW_RETURN_IF_ERROR(memory.Set(static_cast<double>(text.size()) + elements * per_element,
                                          "the text of a tensor"));
      absl::StrAppend(&text, input.SummarizeValue(summarize_, /*print_v2=*/true), parts_[i + 1]);
    }
    ctx.ExpectStringBytes(static_cast<double>(text.size()));
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, {}, &output));
    output->span<tstring>()[0] = std::move(text);
    return absl::OkStatus();
  }

 private:
  std::vector<std::string> parts_;
  int64_t summarize_ = 3;
};

}  // namespace

void Register(Registry& registry) {
  registry.Op("StringToNumber")
      .Group("parsing_ops")
      .Input("string_tensor: string")
      .Output("output: out_type")
      .Attr("out_type: {float, double, int32, int64, uint32, uint64} = DT_FLOAT")
      .Shape(UnchangedShape)
      .Doc(R"(Converts strings to numbers.

White space around a number is allowed. Integers that do not fit the type are an error; other numbers
become infinite.

string_tensor: Strings.
output: The numbers, of the shape of `string_tensor`.
out_type: The type of the result.)");
  registry.Kernel("StringToNumber", MakeFunctionKernel<StringToNumber>);
  registry.Op("AsString")
      .Group("string_ops")
      .Input("input: T")
      .Output("output: string")
      .Attr(
          "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, "
          "uint64, complex64, complex128, bool, variant, string}")
      .Attr("precision: int = -1")
      .Attr("scientific: bool = false")
      .Attr("shortest: bool = false")
      .Attr("width: int = -1")
      .Attr("fill: string = ''")
      .Shape(UnchangedShape)
      .Doc(R"(Converts elements to text.

Complex numbers become `(1.5,2)`.

input: A tensor.
output: The texts, of the shape of `input`.
T: The type of `input`.
precision: The number of digits after the point, or with `shortest` the number of significant
  digits; negative for 6. Must be negative for types without fractions.
scientific: If true, uses the form 1.5e+10.
shortest: If true, uses the shorter form, with or without exponent.
width: The smallest number of characters of a number or a string.
fill: How a text is filled up to `width`: "" and " " with spaces before the text, "0" with zeros,
  "-" with spaces after the text; "+" also writes the sign of positive numbers.)");
  DataTypeVector types = {DT_STRING, DT_VARIANT, DT_BOOL};
  types.insert(types.end(), NumberDataTypes().begin(), NumberDataTypes().end());
  registry.Kernel("AsString", MakeKernel<AsStringKernel>).Types("T", types);
  registry.Op("StringFormat")
      .Group("string_ops")
      .Input("inputs: T")
      .Output("output: string")
      .Attr("T: list(type) >= 0")
      .Attr("template: string = '%s'")
      .Attr("placeholder: string = '%s'")
      .Attr("summarize: int = 3")
      .Rename("template", "template_")
      .Shape(ScalarShape)
      .Doc(R"(Writes tensors into a text.

inputs: A tensor for each placeholder in `template`.
output: A scalar.
T: The types of the inputs.
template: The text.
placeholder: What each tensor replaces in `template`.
summarize: The number of elements to print at both ends of each dimension; negative for all.)");
  registry.Kernel("StringFormat", MakeKernel<FormatKernel>);
}

}  // namespace gradflow::string_number
