#include "tensorflow/core/framework/attr_value_util.h"

#include <algorithm>
#include <optional>
#include <string>

#include "absl/hash/hash.h"
#include "gradflow/core/tensor_proto.h"

namespace tensorflow {
namespace {

template <typename Value>
uint64 Hash(const Value& value) {
  return absl::Hash<Value>()(value);
}

uint64 Combine(uint64 a, uint64 b) { return Hash(std::make_pair(a, b)); }

uint64 ShapeHash(const TensorShapeProto& shape) {
  uint64 hash = Hash(shape.unknown_rank());
  for (const auto& dim : shape.dim()) hash = Combine(hash, Hash(dim.size()));
  return hash;
}

// Hashes strings. Trailing copies of the last string do not change the hash.
template <typename Strings>
uint64 StringsHash(const Strings& strings) {
  auto size = strings.size();
  while (size > 1 && strings[size - 1] == strings[size - 2]) --size;
  uint64 hash = Hash(size > 0 ? std::string(strings[0]) : std::string());
  for (decltype(size) i = 1; i < size; ++i) hash = Combine(hash, Hash(std::string(strings[i])));
  return hash;
}

// Hashes the elements of a tensor of up to 32 MiB, or of a string tensor, independently of their
// encoding. For a larger tensor, only hashes the type and the shape.
uint64 TensorHash(const TensorProto& proto) {
  constexpr int64 kMaxBytes = 32 << 20;
  uint64 hash = Combine(Hash(static_cast<int>(proto.dtype())), ShapeHash(proto.tensor_shape()));
  // A list of strings may be shortened; strings in tensor_content are always complete.
  if (proto.dtype() == DT_STRING && proto.tensor_content().empty()) {
    return Combine(hash, StringsHash(proto.string_val()));
  }
  if (proto.dtype() == DT_STRING) {
    const absl::StatusOr<Tensor> tensor = gradflow::TensorFromProto(proto);
    return tensor.ok() ? Combine(hash, StringsHash(tensor->span<tstring>())) : hash;
  }
  const int64 bytes = attr_value_util_internal::TensorByteSize(proto);
  if (bytes <= 0 || bytes > kMaxBytes) return hash;
  const absl::StatusOr<Tensor> tensor = gradflow::TensorFromProto(proto);
  return tensor.ok() ? Combine(hash, Hash(tensor->tensor_data())) : hash;
}

uint64 FunctionHash(const NameAttrList& function) {
  uint64 attrs = 0;
  // Sums, because the order of a map is irrelevant.
  for (const auto& [name, value] : function.attr()) {
    attrs += Combine(Hash(name), AttrValueHash(value));
  }
  return Combine(Hash(function.name()), attrs);
}

// Calls visit(value). If it returns nullopt, visits each attribute of functions in the value, until
// a call returns true. Returns true if a call returned true. Value is AttrValue or const AttrValue.
template <typename Value, typename Visit>
bool AnyValue(Value* value, const Visit& visit) {
  if (const std::optional<bool> done = visit(value)) return *done;
  const auto in_function = [&](auto* function) {
    auto& attrs = [&]() -> auto& {
      if constexpr (std::is_const_v<Value>) {
        return function->attr();
      } else {
        return *function->mutable_attr();
      }
    }
    ();
    return std::any_of(attrs.begin(), attrs.end(),
                       [&](auto& attr) { return AnyValue(&attr.second, visit); });
  };
  if constexpr (std::is_const_v<Value>) {
    if (value->has_func()) return in_function(&value->func());
    return std::any_of(value->list().func().begin(), value->list().func().end(),
                       [&](const NameAttrList& f) { return in_function(&f); });
  } else {
    if (value->has_func()) return in_function(value->mutable_func());
    if (!value->has_list()) return false;
    auto& functions = *value->mutable_list()->mutable_func();
    return std::any_of(functions.begin(), functions.end(),
                       [&](NameAttrList& f) { return in_function(&f); });
  }
}

}  // namespace

void SetAttrValue(const TensorShapeProto& value, AttrValue* out) { *out->mutable_shape() = value; }
void SetAttrValue(const TensorProto& value, AttrValue* out) { *out->mutable_tensor() = value; }

void SetAttrValue(gtl::ArraySlice<const char*> value, AttrValue* out) {
  gradflow::SetAttrValue(std::vector<absl::string_view>(value.begin(), value.end()), out);
}
void SetAttrValue(gtl::ArraySlice<double> value, AttrValue* out) {
  gradflow::SetAttrValue(std::vector<float>(value.begin(), value.end()), out);
}
void SetAttrValue(gtl::ArraySlice<TensorShape> value, AttrValue* out) {
  gradflow::SetAttrValue(std::vector<PartialTensorShape>(value.begin(), value.end()), out);
}
void SetAttrValue(gtl::ArraySlice<TensorShapeProto> value, AttrValue* out) {
  out->mutable_list()->Clear();
  for (const TensorShapeProto& item : value) *out->mutable_list()->add_shape() = item;
}
void SetAttrValue(gtl::ArraySlice<TensorProto> value, AttrValue* out) {
  out->mutable_list()->Clear();
  for (const TensorProto& item : value) *out->mutable_list()->add_tensor() = item;
}
void SetAttrValue(std::initializer_list<bool> value, AttrValue* out) {
  gradflow::SetAttrValue(gtl::ArraySlice<bool>(value.begin(), value.size()), out);
}

void MoveAttrValue(std::vector<std::string>&& value, AttrValue* out) {
  out->mutable_list()->Clear();
  for (std::string& item : value) out->mutable_list()->add_s(std::move(item));
}

uint64 AttrValueHash(const AttrValue& a) {
  uint64 hash = Hash(static_cast<int>(a.value_case()));
  switch (a.value_case()) {
    case AttrValue::kS:
      return Combine(hash, Hash(a.s()));
    case AttrValue::kI:
      return Combine(hash, Hash(a.i()));
    case AttrValue::kF:
      return Combine(hash, Hash(a.f()));
    case AttrValue::kB:
      return Combine(hash, Hash(a.b()));
    case AttrValue::kType:
      return Combine(hash, Hash(static_cast<int>(a.type())));
    case AttrValue::kShape:
      return Combine(hash, ShapeHash(a.shape()));
    case AttrValue::kTensor:
      return Combine(hash, TensorHash(a.tensor()));
    case AttrValue::kFunc:
      return Combine(hash, FunctionHash(a.func()));
    case AttrValue::kPlaceholder:
      return Combine(hash, Hash(a.placeholder()));
    case AttrValue::kList:
      break;
    case AttrValue::VALUE_NOT_SET:
      return hash;
  }
  const auto add = [&hash](const auto& items, auto item_hash) {
    for (const auto& item : items) hash = Combine(hash, item_hash(item));
  };
  const auto plain = [](const auto& item) { return Hash(item); };
  add(a.list().s(), plain);
  add(a.list().i(), plain);
  add(a.list().f(), plain);
  add(a.list().b(), plain);
  add(a.list().type(), plain);
  add(a.list().shape(), ShapeHash);
  add(a.list().tensor(), TensorHash);
  add(a.list().func(), FunctionHash);
  return hash;
}

uint64 FastAttrValueHash(const AttrValue& a) { return AttrValueHash(a); }

bool HasPlaceHolder(const AttrValue& val) {
  return AnyValue(&val, [](const AttrValue* value) -> std::optional<bool> {
    if (value->value_case() != AttrValue::kPlaceholder) return std::nullopt;
    return true;
  });
}

bool SubstitutePlaceholders(const SubstituteFunc& substitute, AttrValue* value) {
  return !AnyValue(value, [&](AttrValue* v) -> std::optional<bool> {
    if (v->value_case() != AttrValue::kPlaceholder) return std::nullopt;
    // Copied, because `substitute` overwrites the value.
    const std::string placeholder = v->placeholder();
    // Does not visit placeholders in the substituted value.
    return !substitute(placeholder, v);
  });
}

namespace attr_value_util_internal {

int64 TensorByteSize(const TensorProto& t) {
  const absl::StatusOr<TensorShape> shape = TensorShape::Make(t.tensor_shape());
  if (!shape.ok()) return -1;
  return gradflow::MultiplyWithoutOverflow(shape->num_elements(),
                                           gradflow::DataTypeSize(t.dtype()));
}

}  // namespace attr_value_util_internal
}  // namespace tensorflow
