// Equality and summaries of attribute values.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "absl/strings/escaping.h"
#include "gradflow/core/attributes.h"
#include "gradflow/core/status.h"
#include "gradflow/core/string_content.h"
#include "gradflow/core/tensor_proto.h"
#include "gradflow/proto/attr_value.pb.h"
#include "gradflow/proto/node_def.pb.h"
#include "gradflow/proto/types.pb.h"

namespace gradflow {
namespace {

using List = AttrValue::ListValue;

// ---- Equality ----

// Returns the number of leading elements that the proto stores. Further elements equal the last
// stored element, or are zero if no element is stored.
int64_t NumSpelledOut(const TensorProto& proto, int64_t num_elements) {
  if (!proto.tensor_content().empty()) return num_elements;
  return std::max<int64_t>(
      {proto.half_val_size(), proto.float_val_size(), proto.double_val_size(), proto.int_val_size(),
       proto.string_val_size(), proto.scomplex_val_size() / 2, proto.int64_val_size(),
       proto.bool_val_size(), proto.dcomplex_val_size() / 2, proto.uint32_val_size(),
       proto.uint64_val_size(), static_cast<int64_t>(proto.float8_val().size())});
}

// Decodes the first `count` elements of a valid tensor of `num_elements`, as a vector. Does not
// decode the rest, because a proto of a few bytes may encode a tensor larger than memory.
absl::StatusOr<Tensor> DecodeHead(const TensorProto& proto, int64_t num_elements, int64_t count) {
  TensorProto head;
  head.set_dtype(proto.dtype());
  head.mutable_tensor_shape()->add_dim()->set_size(count);
  if (proto.dtype() != DT_STRING) {
    head.set_tensor_content(proto.tensor_content().substr(0, count * DataTypeSize(proto.dtype())));
  } else if (!proto.tensor_content().empty()) {
    internal::ForEachString(proto.tensor_content(), num_elements, count,
                            [&](absl::string_view s) { head.add_string_val(s.data(), s.size()); });
  }
  head.set_float8_val(proto.float8_val().substr(0, count));
  const auto copy = [](const auto& from, int64_t n, auto* to) {
    to->Add(from.begin(), from.begin() + std::min<int64_t>(n, from.size()));
  };
  copy(proto.half_val(), count, head.mutable_half_val());
  copy(proto.float_val(), count, head.mutable_float_val());
  copy(proto.double_val(), count, head.mutable_double_val());
  copy(proto.int_val(), count, head.mutable_int_val());
  copy(proto.string_val(), count, head.mutable_string_val());
  copy(proto.scomplex_val(), 2 * count, head.mutable_scomplex_val());
  copy(proto.int64_val(), count, head.mutable_int64_val());
  copy(proto.bool_val(), count, head.mutable_bool_val());
  copy(proto.dcomplex_val(), 2 * count, head.mutable_dcomplex_val());
  copy(proto.uint32_val(), count, head.mutable_uint32_val());
  copy(proto.uint64_val(), count, head.mutable_uint64_val());
  return TensorFromProto(head);
}

bool AreTensorsEqual(const TensorProto& a, const TensorProto& b) {
  if (!ValidateTensorProto(a).ok() || !ValidateTensorProto(b).ok()) {
    return a.SerializeAsString() == b.SerializeAsString();
  }
  const TensorShape shape = TensorShape::Make(a.tensor_shape()).value_or(TensorShape());
  if (a.dtype() == DT_VARIANT) return a.SerializeAsString() == b.SerializeAsString();
  if (a.dtype() != b.dtype() ||
      TensorShape::Make(b.tensor_shape()).value_or(TensorShape()) != shape) {
    return false;
  }
  // Beyond their stored elements, both tensors repeat their last stored element.
  const int64_t n = shape.num_elements();
  const int64_t count = std::min(n, std::max(NumSpelledOut(a, n), NumSpelledOut(b, n)));
  const absl::StatusOr<Tensor> head_a = DecodeHead(a, n, count);
  const absl::StatusOr<Tensor> head_b = DecodeHead(b, n, count);
  if (!head_a.ok() || !head_b.ok()) return false;
  if (a.dtype() == DT_STRING) return head_a->span<tstring>() == head_b->span<tstring>();
  return head_a->tensor_data() == head_b->tensor_data();
}

bool AreShapesEqual(const TensorShapeProto& a, const TensorShapeProto& b) {
  // Dimension names have no meaning and are not compared.
  return a.unknown_rank() == b.unknown_rank() &&
         std::equal(a.dim().begin(), a.dim().end(), b.dim().begin(), b.dim().end(),
                    [](const auto& x, const auto& y) { return x.size() == y.size(); });
}

bool AreFloatsEqual(float a, float b) { return std::memcmp(&a, &b, sizeof(a)) == 0; }

bool AreFunctionsEqual(const NameAttrList& a, const NameAttrList& b) {
  if (a.name() != b.name() || a.attr_size() != b.attr_size()) return false;
  for (const auto& [name, value] : a.attr()) {
    const auto it = b.attr().find(name);
    if (it == b.attr().end() || !AreAttrValuesEqual(value, it->second)) return false;
  }
  return true;
}

bool AreListsEqual(const List& a, const List& b) {
  const auto equal = [](const auto& x, const auto& y, auto same) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), same);
  };
  return equal(a.s(), b.s(), std::equal_to<>()) && equal(a.i(), b.i(), std::equal_to<>()) &&
         equal(a.f(), b.f(), AreFloatsEqual) && equal(a.b(), b.b(), std::equal_to<>()) &&
         equal(a.type(), b.type(), std::equal_to<>()) &&
         equal(a.shape(), b.shape(), AreShapesEqual) &&
         equal(a.tensor(), b.tensor(), AreTensorsEqual) &&
         equal(a.func(), b.func(), AreFunctionsEqual);
}

// ---- Text ----

// Limits on the length of summaries.
constexpr int kMaxItems = 10;
constexpr int kMaxInputs = 30;
constexpr size_t kMaxBytes = 80;
constexpr int kMaxPrintedDepth = 3;

std::string Escape(const std::string& text) {
  std::string escaped = absl::CEscape(absl::string_view(text).substr(0, kMaxBytes));
  if (text.size() > kMaxBytes) escaped += "...";
  return escaped;
}

// "a, b, c, ... (20 in all)"
template <typename Items, typename Print>
std::string JoinSome(const Items& items, int limit, Print print) {
  std::string text;
  int printed = 0;
  for (const auto& item : items) {
    if (printed > 0) text += ", ";
    if (printed == limit) {
      absl::StrAppend(&text, "... (", items.size(), " in all)");
      break;
    }
    text += print(item);
    ++printed;
  }
  return text;
}

// Returns the shortest text that parses to the same float and is distinct from an int.
std::string FloatText(float value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  const float magnitude = std::fabs(value);
  const bool plain = value == 0 || (magnitude >= 1e-4f && magnitude < 1e16f);
  char text[64];
  const auto [end, error] =
      std::to_chars(text, text + sizeof(text), value,
                    plain ? std::chars_format::fixed : std::chars_format::scientific);
  std::string result(text, end);
  if (plain && result.find('.') == std::string::npos) result += ".0";
  return result;
}

std::string QuotedText(const std::string& text) { return absl::StrCat("\"", Escape(text), "\""); }

std::string TypeText(int number) {
  return DataType_IsValid(number) ? DataType_Name(static_cast<DataType>(number))
                                  : DataTypeString(static_cast<DataType>(number));
}

// Accepts invalid shapes, which error messages quote.
std::string ShapeText(const TensorShapeProto& shape) {
  if (shape.unknown_rank()) return "<unknown>";
  std::string text = "[";
  for (int d = 0; d < shape.dim_size(); ++d) {
    if (d > 0) text += ",";
    if (d == kMaxItems) {
      absl::StrAppend(&text, "... (", shape.dim_size(), " in all)");
      break;
    }
    if (shape.dim(d).size() == -1) {
      text += "?";
    } else {
      absl::StrAppend(&text, shape.dim(d).size());
    }
  }
  return text + "]";
}

std::string TensorText(const TensorProto& proto) {
  std::string text = absl::StrCat("Tensor<type: ", DataTypeString(proto.dtype()),
                                  " shape: ", ShapeText(proto.tensor_shape()));
  if (!ValidateTensorProto(proto).ok()) return text + " invalid>";
  // One may hold large tensors.
  if (proto.dtype() == DT_VARIANT) return text + ">";
  const absl::StatusOr<TensorShape> shape = TensorShape::Make(proto.tensor_shape());
  const int64_t count = shape.ok() ? shape->num_elements() : 0;
  absl::StatusOr<Tensor> head = DecodeHead(proto, count, std::min<int64_t>(count, kMaxItems));
  if (!head.ok()) return text + ">";
  text += " values:";
  if (proto.dtype() == DT_STRING) {
    for (const tstring& item : head->span<tstring>()) absl::StrAppend(&text, " ", QuotedText(item));
  } else if (count > 0) {
    absl::StrAppend(&text, " ", head->SummarizeValue(kMaxItems));
  }
  return text + (count > kMaxItems ? "...>" : ">");
}

std::string AttrText(const AttrValue& value, int depth);

template <typename Map>
std::string AttrsText(const Map& attrs, int limit, int depth) {
  // Sorted by name, because the order of the map depends on hashing.
  std::vector<std::pair<const std::string*, const AttrValue*>> sorted;
  for (const auto& [name, value] : attrs) sorted.emplace_back(&name, &value);
  std::sort(sorted.begin(), sorted.end(),
            [](const auto& a, const auto& b) { return *a.first < *b.first; });
  return JoinSome(sorted, limit, [depth](const auto& attr) {
    return absl::StrCat(Escape(*attr.first), "=", AttrText(*attr.second, depth));
  });
}

std::string FunctionText(const NameAttrList& function, int depth) {
  const std::string name = Escape(function.name());
  if (function.attr().empty()) return name;
  if (depth >= kMaxPrintedDepth) return absl::StrCat(name, "[...]");
  return absl::StrCat(name, "[", AttrsText(function.attr(), kMaxItems, depth + 1), "]");
}

std::string BoolText(bool value) { return value ? "true" : "false"; }

std::string ListText(const List& list, int depth) {
  const auto join = [](const auto& items, auto print) {
    return items.empty() ? std::string() : JoinSome(items, kMaxItems, print);
  };
  // In a valid list at most one of these is non-empty.
  return absl::StrCat(
             "[", join(list.s(), QuotedText),
             join(list.i(), [](int64_t i) { return absl::StrCat(i); }), join(list.f(), FloatText),
             join(list.b(), BoolText), join(list.type(), TypeText), join(list.shape(), ShapeText),
             join(list.tensor(), TensorText),
             join(list.func(), [depth](const auto& f) { return FunctionText(f, depth); })) +
         "]";
}

std::string AttrText(const AttrValue& value, int depth) {
  switch (value.value_case()) {
    case AttrValue::kS:
      return QuotedText(value.s());
    case AttrValue::kI:
      return absl::StrCat(value.i());
    case AttrValue::kF:
      return FloatText(value.f());
    case AttrValue::kB:
      return BoolText(value.b());
    case AttrValue::kType:
      return TypeText(value.type());
    case AttrValue::kShape:
      return ShapeText(value.shape());
    case AttrValue::kTensor:
      return TensorText(value.tensor());
    case AttrValue::kList:
      return ListText(value.list(), depth);
    case AttrValue::kFunc:
      return FunctionText(value.func(), depth);
    case AttrValue::kPlaceholder:
      return absl::StrCat("$", Escape(value.placeholder()));
    case AttrValue::VALUE_NOT_SET:
      break;
  }
  return "<no value>";
}

}  // namespace

bool AreAttrValuesEqual(const AttrValue& a, const AttrValue& b) {
  if (&a == &b) return true;
  if (a.value_case() != b.value_case()) return false;
  switch (a.value_case()) {
    case AttrValue::kS:
      return a.s() == b.s();
    case AttrValue::kI:
      return a.i() == b.i();
    case AttrValue::kF:
      return AreFloatsEqual(a.f(), b.f());
    case AttrValue::kB:
      return a.b() == b.b();
    case AttrValue::kType:
      return a.type() == b.type();
    case AttrValue::kShape:
      return AreShapesEqual(a.shape(), b.shape());
    case AttrValue::kTensor:
      return AreTensorsEqual(a.tensor(), b.tensor());
    case AttrValue::kList:
      return AreListsEqual(a.list(), b.list());
    case AttrValue::kFunc:
      return AreFunctionsEqual(a.func(), b.func());
    case AttrValue::kPlaceholder:
      return a.placeholder() == b.placeholder();
    case AttrValue::VALUE_NOT_SET:
      break;
  }
  return true;
}

std::string SummarizeAttrValue(const AttrValue& value) { return AttrText(value, 0); }

std::string SummarizeNodeDef(const NodeDef& node) {
  std::string text = absl::StrCat("{{node ", Escape(node.name()), "}} = ", Escape(node.op()), "[",
                                  AttrsText(node.attr(), kMaxInputs, 0));
  if (!node.device().empty()) {
    absl::StrAppend(&text, node.attr().empty() ? "" : ", ", "_device=", QuotedText(node.device()));
  }
  absl::StrAppend(&text, "](", JoinSome(node.input(), kMaxInputs, Escape), ")");
  return text;
}

}  // namespace gradflow
