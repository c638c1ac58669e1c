// Variant: the element of a tensor of type DT_VARIANT, which holds a value of any copyable C++
// type, such as a TensorList.
//
//   Tensor t(DT_VARIANT, {});
//   t.scalar<Variant>()() = TensorList();
//   const TensorList* list = t.scalar<Variant>()().get<TensorList>();  // null for another type
//
// A type of values may have these members, as in TensorFlow:
//
//   std::string TypeName() const;                  // otherwise the name of the C++ type
//   std::string DebugString() const;               // otherwise numbers and strings, or "?"
//   void Encode(VariantTensorData* data) const;    // otherwise the bytes of a trivially copyable
//   bool Decode(VariantTensorData data);           // type, the tensor, or the message
//
// A message VariantTensorDataProto is a value whose type is not known yet. Copies of the variant
// share the message.
//
// Thread safety: as an int. Copies may be used on different threads if copies of the value may.
#ifndef GRADFLOW_CORE_VARIANT_H_
#define GRADFLOW_CORE_VARIANT_H_

#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/type_index.h"
#include "gradflow/core/types.h"
#include "gradflow/core/variant_tensor_data.h"

namespace google::protobuf {
class MessageLite;
}  // namespace google::protobuf

#pragma GCC visibility push(default)
namespace gradflow {

class Variant;

namespace internal {

// Returns the name of a type as C++ code writes it: "int".
std::string ReadableTypeName(const std::type_info& type);
// Returns the name that TensorFlow's message has: "tensorflow.TensorProto".
std::string MessageTypeName(absl::string_view name);

template <typename T, typename = void>
inline constexpr bool kHasTypeName = false;
template <typename T>
inline constexpr bool
    kHasTypeName<T, std::void_t<decltype(std::string(std::declval<const T&>().TypeName()))>> = true;
template <typename T, typename = void>
inline constexpr bool kHasDebugString = false;
template <typename T>
inline constexpr bool
    kHasDebugString<T, std::void_t<decltype(std::string(std::declval<const T&>().DebugString()))>> =
        true;
template <typename T, typename = void>
inline constexpr bool kHasEncode = false;
template <typename T>
inline constexpr bool kHasEncode<
    T, std::void_t<decltype(std::declval<const T&>().Encode(std::declval<VariantTensorData*>()))>> =
    true;
template <typename T, typename = void>
inline constexpr bool kHasDecode = false;
template <typename T>
inline constexpr bool kHasDecode<
    T, std::void_t<decltype(bool(std::declval<T&>().Decode(std::declval<VariantTensorData>())))>> =
    true;
template <typename T>
inline constexpr bool kIsEncodedVariant = std::is_same_v<T, VariantTensorDataProto>;
template <typename T>
inline constexpr bool kIsMessage = std::is_base_of_v<google::protobuf::MessageLite, T>;

}  // namespace internal

// ---- Operations on values of any type, by TensorFlow's names ----

template <typename T>
std::string TypeNameVariant(const T& value) {
  if constexpr (internal::kHasTypeName<T>) {
    return value.TypeName();
  } else if constexpr (std::is_same_v<T, Tensor>) {
    return "tensorflow::Tensor";
  } else if constexpr (internal::kIsEncodedVariant<T>) {
    return value.type_name();
  } else if constexpr (internal::kIsMessage<T>) {
    return internal::MessageTypeName(value.GetTypeName());
  } else {
    return internal::ReadableTypeName(typeid(T));
  }
}

template <typename T>
std::string DebugStringVariant(const T& value) {
  if constexpr (internal::kHasDebugString<T>) {
    return value.DebugString();
  } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
    return absl::StrCat(value);
  } else {
    return "?";
  }
}

template <typename T>
void EncodeVariant(const T& value, VariantTensorData* data) {
  data->set_type_name(TypeNameVariant(value));
  if constexpr (internal::kIsEncodedVariant<T>) {
    data->FromProto(value);
  } else if constexpr (internal::kHasEncode<T>) {
    value.Encode(data);
  } else if constexpr (std::is_same_v<T, Tensor>) {
    data->tensors_ = {value};
  } else if constexpr (internal::kIsMessage<T>) {
    value.SerializeToString(&data->metadata_);
  } else if constexpr (std::is_trivially_copyable_v<T> || std::is_same_v<T, std::string>) {
    data->set_metadata(value);
  }
}

// Decodes `data` to *value. Returns false if `data` does not encode a T.
template <typename T>
bool DecodeVariant(VariantTensorData* data, T* value) {
  if constexpr (internal::kIsEncodedVariant<T>) {
    data->ToProto(value);
    return true;
  } else if constexpr (internal::kHasDecode<T>) {
    return value->Decode(std::move(*data));
  } else if constexpr (std::is_same_v<T, Tensor>) {
    if (data->tensors_.size() != 1) return false;
    *value = data->tensors_[0];
    return true;
  } else if constexpr (internal::kIsMessage<T>) {
    return value->ParseFromString(data->metadata_);
  } else if constexpr (std::is_trivially_copyable_v<T> || std::is_same_v<T, std::string>) {
    return data->get_metadata(value);
  } else {
    return false;
  }
}

namespace internal {

// The functions that a Variant calls for a type of values. `storage` is the storage of the Variant.
struct VariantOps {
  const std::type_info* type;
  void (*destroy)(void* storage);
  void (*copy)(const void* from, void* to);
  // Ends the lifetime of `from`.
  void (*move)(void* from, void* to) noexcept;
  const void* (*value)(const void* storage);
  // The value for writing.
  void* (*mutable_value)(void* storage);
  std::string (*type_name)(const void* value);
  std::string (*debug_string)(const void* value);
  void (*encode)(const void* value, VariantTensorData* data);
  bool (*decode)(VariantTensorData* data, void* value);
};

// Large values are on the heap.
constexpr size_t kInlineVariantBytes = 24;

// The place of a value of type T: in the storage, on the heap, or shared by copies.
template <typename T>
struct VariantStorage {
  static constexpr bool kShared = kIsEncodedVariant<T>;
  static constexpr bool kInline = sizeof(T) <= kInlineVariantBytes &&
                                  alignof(T) <= alignof(void*) &&
                                  std::is_nothrow_move_constructible_v<T>;
  using Holder = std::conditional_t<kShared, std::shared_ptr<T>,
                                    std::conditional_t<kInline, T, std::unique_ptr<T>>>;

  static Holder* Get(void* storage) { return std::launder(static_cast<Holder*>(storage)); }
  static const Holder* Get(const void* storage) {
    return std::launder(static_cast<const Holder*>(storage));
  }

  template <typename... Args>
  static void Make(void* storage, Args&&... args) {
    if constexpr (kShared) {
      new (storage) Holder(std::make_shared<T>(std::forward<Args>(args)...));
    } else if constexpr (kInline) {
      new (storage) T(std::forward<Args>(args)...);
    } else {
      new (storage) Holder(new T(std::forward<Args>(args)...));
    }
  }
  static void Destroy(void* storage) { std::destroy_at(Get(storage)); }
  static void Copy(const void* from, void* to) {
    if constexpr (kShared || kInline) {
      new (to) Holder(*Get(from));
    } else {
      new (to) Holder(new T(**Get(from)));
    }
  }
  static void Move(void* from, void* to) noexcept {
    new (to) Holder(std::move(*Get(from)));
    Destroy(from);
  }
  static const void* Value(const void* storage) {
    if constexpr (kInline && !kShared) {
      return Get(storage);
    } else {
      return Get(storage)->get();
    }
  }
  static void* MutableValue(void* storage) {
    if constexpr (kShared) {
      Holder& holder = *Get(storage);
      if (holder.use_count() != 1) holder = std::make_shared<T>(*holder);
      return holder.get();
    } else if constexpr (kInline) {
      return Get(storage);
    } else {
      return Get(storage)->get();
    }
  }
  static std::string TypeName(const void* value) {
    return TypeNameVariant(*static_cast<const T*>(value));
  }
  static std::string DebugString(const void* value) {
    return DebugStringVariant(*static_cast<const T*>(value));
  }
  static void Encode(const void* value, VariantTensorData* data) {
    EncodeVariant(*static_cast<const T*>(value), data);
  }
  static bool Decode(VariantTensorData* data, void* value) {
    return DecodeVariant(data, static_cast<T*>(value));
  }

  static constexpr VariantOps kOps = {&typeid(T),   Destroy,  Copy,        Move,   Value,
                                      MutableValue, TypeName, DebugString, Encode, Decode};
};

}  // namespace internal

class Variant {
 public:
  // Holds no value.
  Variant() noexcept = default;
  Variant(const Variant& other) { CopyFrom(other); }
  Variant(Variant&& other) noexcept { MoveFrom(&other); }
  // Holds `value`.
  template <typename T, typename = std::enable_if_t<!std::is_same_v<std::decay_t<T>, Variant>>>
  Variant(T&& value) {  // NOLINT: as in TensorFlow
    Make<std::decay_t<T>>(std::forward<T>(value));
  }
  Variant& operator=(const Variant& other) {
    if (this != &other) *this = Variant(other);
    return *this;
  }
  Variant& operator=(Variant&& other) noexcept {
    if (this == &other) return *this;
    // `other` may be part of this value.
    Variant moved(std::move(other));
    clear();
    MoveFrom(&moved);
    return *this;
  }
  template <typename T, typename = std::enable_if_t<!std::is_same_v<std::decay_t<T>, Variant>>>
  Variant& operator=(T&& value) {
    return *this = Variant(std::forward<T>(value));
  }
  ~Variant() { clear(); }

  // Returns true if there is no value.
  bool is_empty() const { return ops_ == nullptr; }
  void clear() noexcept {
    // The value may refer to this.
    if (const internal::VariantOps* ops = std::exchange(ops_, nullptr)) ops->destroy(storage_);
  }
  // Exchanges the values.
  void swap(Variant& other) noexcept { std::swap(*this, other); }
  // Replaces the value by T(args...).
  template <typename T, typename... Args>
  T& emplace(Args&&... args) {
    clear();
    Make<T>(std::forward<Args>(args)...);
    return *static_cast<T*>(ops_->mutable_value(storage_));
  }

  // Return the value if it is a T, otherwise null. get<void>() returns any value.
  template <typename T>
  T* get() {
    return Holds<T>() ? static_cast<T*>(ops_->mutable_value(storage_)) : nullptr;
  }
  template <typename T>
  const T* get() const {
    return Holds<T>() ? static_cast<const T*>(ops_->value(storage_)) : nullptr;
  }
  // Stores the value, or decodes it if it is encoded. Returns false if it is not a T.
  template <typename T>
  bool MaybeDecodeAndCopy(T* out) const {
    if (const T* value = get<T>()) {
      *out = *value;
      return true;
    }
    VariantTensorData data;
    T decoded;
    if (!EncodedData(&data) || !DecodeVariant(&data, &decoded)) return false;
    *out = std::move(decoded);
    return true;
  }

  // Returns the type of the value, or the type void if the variant is empty.
  TypeIndex TypeId() const { return is_empty() ? TypeIndex::Make<void>() : TypeIndex(*ops_->type); }
  // Returns the name of the type. For an encoded value, returns the name of the encoded type.
  // Returns "" if the variant is empty.
  std::string TypeName() const;
  // Returns the value as text, such as "42". Returns "?" if the type has no text form, and "" if
  // the variant is empty.
  std::string SummarizeValue() const;
  // "Variant<type: int value: 42>"
  std::string DebugString() const;

  // Sets *data to the encoded value. An empty variant has no type name.
  void Encode(VariantTensorData* data) const;
  // Replaces the value by the value of the same type that `data` encodes. Returns false if the
  // variant is empty or if `data` encodes no such value; the old value may then have changed.
  bool Decode(VariantTensorData data);

 private:
  template <typename T, typename... Args>
  void Make(Args&&... args) {
    static_assert(std::is_copy_constructible_v<T>, "a Variant copies its value");
    internal::VariantStorage<T>::Make(storage_, std::forward<Args>(args)...);
    ops_ = &internal::VariantStorage<T>::kOps;
  }
  void CopyFrom(const Variant& other) {
    if (other.is_empty()) return;
    other.ops_->copy(other.storage_, storage_);
    ops_ = other.ops_;
  }
  void MoveFrom(Variant* other) noexcept {
    ops_ = std::exchange(other->ops_, nullptr);
    if (ops_ != nullptr) ops_->move(other->storage_, storage_);
  }
  template <typename T>
  bool Holds() const {
    if (is_empty()) return false;
    if constexpr (std::is_void_v<T>) {
      return true;
    } else {
      // Each shared library may have a copy of the table.
      return ops_ == &internal::VariantStorage<T>::kOps || *ops_->type == typeid(T);
    }
  }
  // Sets *data to the content of a VariantTensorDataProto. Returns false if the value is not such a
  // message, or if the message is not valid.
  bool EncodedData(VariantTensorData* data) const;

  alignas(void*) unsigned char storage_[internal::kInlineVariantBytes];
  const internal::VariantOps* ops_ = nullptr;
};

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_CORE_VARIANT_H_
