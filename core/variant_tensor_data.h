// VariantTensorData: the encoded form of a Variant: the name of its type, bytes and tensors. Its
// message is VariantTensorDataProto.
#ifndef GRADFLOW_CORE_VARIANT_TENSOR_DATA_H_
#define GRADFLOW_CORE_VARIANT_TENSOR_DATA_H_

#include <cstring>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "gradflow/core/tensor.h"

#pragma GCC visibility push(default)
namespace gradflow {

class VariantTensorDataProto;

class VariantTensorData {
 public:
  VariantTensorData() = default;
  // Decodes `proto`, or is empty if `proto` is not valid.
  explicit VariantTensorData(const VariantTensorDataProto& proto);

  // The name of the type of the value.
  const std::string& type_name() const { return type_name_; }
  void set_type_name(absl::string_view name) { type_name_ = std::string(name); }

  // The bytes of a trivially copyable value, or a string.
  template <typename T>
  void set_metadata(const T& value) {
    if constexpr (std::is_convertible_v<const T&, absl::string_view>) {
      metadata_ = std::string(absl::string_view(value));
    } else {
      static_assert(std::is_trivially_copyable_v<T>);
      metadata_.assign(reinterpret_cast<const char*>(&value), sizeof(value));
    }
  }
  // Returns false, without changing *value, if the bytes have another size. A bool is true if its
  // byte is not 0.
  template <typename T>
  bool get_metadata(T* value) const {
    if constexpr (std::is_same_v<T, std::string>) {
      *value = metadata_;
    } else {
      static_assert(std::is_trivially_copyable_v<T>);
      if (metadata_.size() != sizeof(T)) return false;
      if constexpr (std::is_same_v<T, bool>) {
        *value = metadata_[0] != 0;
      } else {
        std::memcpy(static_cast<void*>(value), metadata_.data(), sizeof(T));
      }
    }
    return true;
  }
  std::string& metadata_string() { return metadata_; }
  const std::string& metadata_string() const { return metadata_; }

  // The tensors of the value.
  int tensors_size() const { return static_cast<int>(tensors_.size()); }
  const Tensor& tensors(int i) const { return tensors_[i]; }
  const std::vector<Tensor>& tensors() const { return tensors_; }
  Tensor* add_tensors() { return &tensors_.emplace_back(); }
  template <typename... Args>
  Tensor* add_tensor(Args&&... args) {
    return &tensors_.emplace_back(std::forward<Args>(args)...);
  }

  // Writes the message. What TensorToProto() says about variants holds for the tensors.
  void ToProto(VariantTensorDataProto* proto) const;
  // Return false and change nothing if a tensor of the message is not valid.
  bool FromProto(const VariantTensorDataProto& proto);
  bool FromConstProto(const VariantTensorDataProto& proto) { return FromProto(proto); }
  // The message as bytes. They return false if that fails.
  std::string SerializeAsString() const;
  bool SerializeToString(std::string* bytes) const;
  bool ParseFromString(const std::string& bytes);
  // "type_name: Foo metadata: 4 bytes tensors: 2"
  std::string DebugString() const;

  // Public as in TensorFlow.
  std::string type_name_;
  std::string metadata_;
  std::vector<Tensor> tensors_;
};

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_CORE_VARIANT_TENSOR_DATA_H_
