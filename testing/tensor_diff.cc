#include "gradflow/testing/tensor_diff.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/resource_handle.h"
#include "gradflow/core/tensor_list.h"
#include "gradflow/core/variant.h"

namespace gradflow {
namespace testing {
namespace {

// Returns the shortest text that parses to the same number of type T.
template <typename T>
std::string NumberText(T value) {
  std::array<char, 64> text{};
  std::to_chars_result result{};
  if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>) {
    // Five significant digits distinguish all values of the type. Omits trailing zeros.
    result = std::to_chars(text.data(), text.data() + text.size(), static_cast<float>(value),
                           std::chars_format::general, 5);
  } else {
    result = std::to_chars(text.data(), text.data() + text.size(), value);
  }
  return std::string(text.data(), result.ptr);
}

// Maps adjacent numbers of type T to adjacent integers, and both zeros to 0.
template <typename T>
int64_t Ordinal(T value) {
  using Bits = std::conditional_t<sizeof(T) == 2, int16_t,
                                  std::conditional_t<sizeof(T) == 4, int32_t, int64_t>>;
  Bits bits;
  std::memcpy(&bits, &value, sizeof bits);
  if (bits >= 0) return bits;
  return -static_cast<int64_t>(bits & std::numeric_limits<Bits>::max());
}

// Returns |a - b| without overflow.
template <typename T>
uint64_t IntegerDistance(T a, T b) {
  return a > b ? static_cast<uint64_t>(a) - static_cast<uint64_t>(b)
               : static_cast<uint64_t>(b) - static_cast<uint64_t>(a);
}

// Returns the distance in units in the last place. REQUIRES: both numbers are finite
template <typename T>
uint64_t UlpDistance(T a, T b) {
  return IntegerDistance(Ordinal(a), Ordinal(b));
}

template <typename T>
constexpr bool kIsFloating =
    std::is_floating_point_v<T> || std::is_same_v<T, half> || std::is_same_v<T, bfloat16>;

template <typename T>
bool SameBits(const T& a, const T& b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

// Returns true if a part of an element is within the tolerance. Only complex elements have two
// parts.
template <typename T>
bool IsClose(T actual, T expected, const Tolerance& tolerance) {
  if (SameBits(actual, expected)) return true;
  if constexpr (kIsFloating<T>) {
    const auto a = static_cast<double>(actual);
    const auto e = static_cast<double>(expected);
    if (std::isnan(a) && std::isnan(e)) return true;
    if (tolerance.is_exact()) return false;
    if (!std::isfinite(a) || !std::isfinite(e)) return false;
    if (tolerance.in_ulps()) {
      const int64_t ulps = std::max<int64_t>(tolerance.ulps(), 0);
      return UlpDistance(actual, expected) <= static_cast<uint64_t>(ulps);
    }
    return std::abs(a - e) <= tolerance.atol() + tolerance.rtol() * std::abs(e);
  } else if constexpr (std::is_integral_v<T>) {
    if (tolerance.is_exact() || tolerance.in_ulps()) return false;
    const auto a = static_cast<long double>(actual);
    const auto e = static_cast<long double>(expected);
    return std::abs(a - e) <= tolerance.atol() + tolerance.rtol() * std::abs(e);
  } else {
    return false;
  }
}

// The type of distances. Doubles cannot represent all distances of 64-bit integers.
template <typename T>
using DistanceOf = std::conditional_t<std::is_integral_v<T>, uint64_t, double>;

// Returns |actual - expected| if it is finite.
template <typename T>
std::optional<DistanceOf<T>> Distance(T actual, T expected) {
  if constexpr (std::is_integral_v<T>) {
    return IntegerDistance(actual, expected);
  } else if constexpr (kIsFloating<T>) {
    const double distance = std::abs(static_cast<double>(actual) - static_cast<double>(expected));
    if (std::isfinite(distance)) return distance;
  }
  return std::nullopt;
}

// A bool in a tensor. It may be a byte other than 0 and 1.
struct BoolByte {
  uint8_t value;
};

template <typename T>
std::string PartText(const T& value) {
  if constexpr (std::is_same_v<T, BoolByte>) {
    if (value.value > 1) return absl::StrCat("true (byte ", value.value, ")");
    return value.value == 1 ? "true" : "false";
  } else if constexpr (std::is_same_v<T, tstring>) {
    return absl::StrCat("\"", absl::CEscape(value), "\"");
  } else if constexpr (kIsFloating<T> || std::is_integral_v<T>) {
    return NumberText(value);
  } else {
    return absl::StrCat(value.value);
  }
}

// Returns " (difference 0.25, 12 ulps)", or "" if the difference is not finite. Prints all digits
// of integers.
template <typename T>
std::string DistanceText(T actual, T expected) {
  const auto distance = Distance(actual, expected);
  if (!distance.has_value()) return "";
  if constexpr (kIsFloating<T>) {
    const uint64_t ulps = UlpDistance(actual, expected);
    return absl::StrCat(" (difference ", *distance, ", ", ulps, ulps == 1 ? " ulp)" : " ulps)");
  } else {
    return absl::StrCat(" (difference ", *distance, ")");
  }
}

// Returns an index such as "[0,2]"; "" for the element of a scalar.
std::string IndexText(const TensorShape& shape, int64_t position) {
  if (shape.dims() == 0) return "";
  std::vector<int64_t> index(shape.dims());
  for (int d = shape.dims(); d-- > 0;) {
    index[d] = position % shape.dim_size(d);
    position /= shape.dim_size(d);
  }
  std::string text;
  for (const int64_t i : index) absl::StrAppend(&text, text.empty() ? "[" : ",", i);
  return text + "]";
}

// Compares elements that have kParts parts each.
template <typename T, int kParts>
class ElementComparison {
 public:
  ElementComparison(const T* actual, const T* expected, const TensorShape& shape)
      : actual_(actual), expected_(expected), shape_(shape) {}

  void Run(const Tolerance& tolerance, int max_elements, TensorDiff* diff) const {
    std::optional<DistanceOf<T>> furthest;
    for (int64_t i = 0; i < shape_.num_elements(); ++i) {
      bool close = true;
      std::optional<DistanceOf<T>> distance;
      for (int part = 0; part < kParts; ++part) {
        const T& a = actual_[i * kParts + part];
        const T& e = expected_[i * kParts + part];
        if (IsElementClose(a, e, tolerance)) continue;
        close = false;
        if constexpr (!std::is_same_v<T, tstring>) distance = std::max(distance, Distance(a, e));
      }
      if (close) continue;
      if (diff->differing++ < max_elements) diff->first.push_back({i, Describe(i)});
      // An empty distance compares less than any other.
      if (distance > furthest) {
        furthest = distance;
        diff->furthest.position = i;
      }
    }
    if (furthest.has_value()) diff->furthest.text = Describe(diff->furthest.position);
  }

 private:
  static bool IsElementClose(const T& a, const T& e, const Tolerance& tolerance) {
    if constexpr (std::is_same_v<T, tstring>) {
      return a == e;
    } else {
      return IsClose(a, e, tolerance);
    }
  }

  std::string Describe(int64_t i) const {
    const std::string index = IndexText(shape_, i);
    const T* a = actual_ + i * kParts;
    const T* e = expected_ + i * kParts;
    std::string text = index.empty() ? "" : index + ": ";
    if constexpr (kParts == 2) {
      absl::StrAppend(&text, "(", PartText(a[0]), ",", PartText(a[1]), "), expected (",
                      PartText(e[0]), ",", PartText(e[1]), ")");
    } else {
      absl::StrAppend(&text, PartText(*a), ", expected ", PartText(*e));
      if constexpr (!std::is_same_v<T, tstring>) absl::StrAppend(&text, DistanceText(*a, *e));
    }
    return text;
  }

  const T* actual_;
  const T* expected_;
  const TensorShape& shape_;
};

using OtherTypes =
    TypeList<bool, tstring, qint8, quint8, qint16, quint16, qint32, float8_e5m2, float8_e4m3fn,
             float8_e4m3fnuz, float8_e4m3b11fnuz, float8_e5m2fnuz, int4, uint4, int2, uint2>;
using TensorTypeList = ConcatTypes<NumberTypes, OtherTypes>::type;

std::string Counted(const TensorDiff& diff) {
  return absl::StrCat(diff.differing, " of ", diff.elements,
                      diff.elements == 1 ? " element " : " elements ",
                      diff.differing == 1 ? "differs" : "differ");
}

// Returns the elements, each preceded by `separator`.
std::string Elements(const TensorDiff& diff, const std::string& separator) {
  std::string text;
  for (const TensorDiff::Element& element : diff.first) {
    absl::StrAppend(&text, separator, element.text);
  }
  const auto left = diff.differing - static_cast<int64_t>(diff.first.size());
  if (left > 0) absl::StrAppend(&text, separator, "and ", left, " more");
  if (left > 0 && !diff.furthest.text.empty()) {
    absl::StrAppend(&text, ", furthest off ", diff.furthest.text);
  }
  return text;
}

}  // namespace

Tolerance Tolerance::ForType(DataType dtype) {
  switch (dtype) {
    case DT_HALF:
      return Near(1e-4, 2e-3);
    case DT_BFLOAT16:
      return Near(1e-4, 1.6e-2);
    case DT_FLOAT:
    case DT_COMPLEX64:
      return Near(1e-6, 1e-5);
    case DT_DOUBLE:
    case DT_COMPLEX128:
      return Near(1e-13, 1e-12);
    default:
      return Exact();
  }
}

std::string Tolerance::DebugString() const {
  switch (kind_) {
    case Kind::kExact:
      return "";
    case Kind::kUlps:
      return absl::StrCat("within ", ulps_, ulps_ == 1 ? " ulp" : " ulps");
    case Kind::kNear:
      break;
  }
  return absl::StrCat("within ", atol_, " + ", rtol_, " * |expected|");
}

std::string TensorDiff::Line() const {
  if (ok()) return "";
  if (!mismatch.empty()) return mismatch;
  const std::string elements_text = Elements(*this, "; ");
  return absl::StrCat(Counted(*this), ":", elements_text.substr(1));
}

std::string TensorDiff::Text() const {
  if (ok()) return "";
  if (!mismatch.empty()) return mismatch;
  return absl::StrCat(Counted(*this), Elements(*this, "\n  "));
}

namespace {

// Returns a text that describes the difference of two variants, or "" if they are equal. `what`
// names the variants. Lists in lists recurse.
std::string DiffVariants(const Variant& actual, const Variant& expected, const Tolerance& tolerance,
                         const std::string& what) {
  const auto* const list = actual.get<TensorList>();
  const auto* const expected_list = expected.get<TensorList>();
  if (list == nullptr || expected_list == nullptr) {
    VariantTensorData data;
    VariantTensorData expected_data;
    actual.Encode(&data);
    expected.Encode(&expected_data);
    if (data.SerializeAsString() == expected_data.SerializeAsString()) return "";
    return absl::StrCat(what, " is ", actual.DebugString(), ", expected ", expected.DebugString());
  }
  if (list->identity() == expected_list->identity()) return "";
  if (list->element_dtype() != expected_list->element_dtype() ||
      list->element_shape() != expected_list->element_shape() ||
      list->max_num_elements() != expected_list->max_num_elements() ||
      list->size() != expected_list->size()) {
    return absl::StrCat(what, " is a list of ", list->DebugString(), " and shape ",
                        list->element_shape().DebugString(), ", expected ",
                        expected_list->DebugString(), " and shape ",
                        expected_list->element_shape().DebugString());
  }
  for (int64_t i = 0; i < list->size(); ++i) {
    if (!list->IsSet(i) && !expected_list->IsSet(i)) continue;
    const std::string name = absl::StrCat("item ", i, " of ", what);
    if (!list->IsSet(i) || !expected_list->IsSet(i)) {
      return absl::StrCat(name, " is ", list->IsSet(i) ? "" : "not ", "set");
    }
    const TensorDiff diff =
        DiffTensors(list->elements()[i], expected_list->elements()[i], tolerance);
    if (!diff.ok()) return absl::StrCat(name, ": ", diff.Line());
  }
  return "";
}

}  // namespace

TensorDiff DiffTensors(const Tensor& actual, const Tensor& expected, const Tolerance& tolerance,
                       int max_elements) {
  TensorDiff diff;
  if (actual.dtype() != expected.dtype()) {
    diff.mismatch = absl::StrCat("type is ", DataTypeString(actual.dtype()), ", expected ",
                                 DataTypeString(expected.dtype()));
    return diff;
  }
  if (!actual.IsInitialized() || !expected.IsInitialized()) {
    diff.mismatch = absl::StrCat("the tensor ", actual.IsInitialized() ? "expected " : "",
                                 "is not initialized");
    return diff;
  }
  if (actual.shape() != expected.shape()) {
    diff.mismatch = absl::StrCat("shape is ", actual.shape().DebugString(), ", expected ",
                                 expected.shape().DebugString());
    return diff;
  }
  diff.elements = actual.NumElements();
  if (diff.elements == 0) return diff;
  if (actual.dtype() == DT_RESOURCE) {
    const auto handles = actual.span<ResourceHandle>();
    const auto expected_handles = expected.span<ResourceHandle>();
    for (size_t i = 0; i < handles.size() && diff.mismatch.empty(); ++i) {
      if (handles[i] == expected_handles[i]) continue;
      diff.mismatch = absl::StrCat("element ", i, " is ", handles[i].DebugString(), ", expected ",
                                   expected_handles[i].DebugString());
    }
    return diff;
  }
  if (actual.dtype() == DT_VARIANT) {
    const auto variants = actual.span<Variant>();
    for (size_t i = 0; i < variants.size() && diff.mismatch.empty(); ++i) {
      diff.mismatch = DiffVariants(variants[i], expected.span<Variant>()[i], tolerance,
                                   absl::StrCat("element ", i));
    }
    return diff;
  }
  const bool known = DispatchType(TensorTypeList(), actual.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (kIsComplex<T>) {
      using Part = typename T::value_type;
      ElementComparison<Part, 2>(static_cast<const Part*>(actual.raw_data()),
                                 static_cast<const Part*>(expected.raw_data()), actual.shape())
          .Run(tolerance, max_elements, &diff);
    } else if constexpr (std::is_same_v<T, bool>) {
      ElementComparison<BoolByte, 1>(static_cast<const BoolByte*>(actual.raw_data()),
                                     static_cast<const BoolByte*>(expected.raw_data()),
                                     actual.shape())
          .Run(tolerance, max_elements, &diff);
    } else {
      ElementComparison<T, 1>(actual.flat<T>().data(), expected.flat<T>().data(), actual.shape())
          .Run(tolerance, max_elements, &diff);
    }
  });
  if (!known) {
    diff.mismatch =
        absl::StrCat("elements of type ", DataTypeString(actual.dtype()), " cannot be compared");
  }
  return diff;
}

std::vector<double> AsDoubles(const Tensor& tensor) {
  std::vector<double> values;
  using Types = ConcatTypes<NumberTypes, TypeList<bool>>::type;
  DispatchType(Types(), tensor.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    values.reserve(tensor.NumElements());
    for (const T& element : tensor.flat<T>()) {
      if constexpr (kIsComplex<T>) {
        values.push_back(element.real());
        values.push_back(element.imag());
      } else {
        values.push_back(static_cast<double>(element));
      }
    }
  });
  return values;
}

}  // namespace testing
}  // namespace gradflow
