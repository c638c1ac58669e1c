// VariantTensorData: the encoded form of a Variant.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_VARIANT_TENSOR_DATA_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_VARIANT_TENSOR_DATA_H_

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/lib/core/stringpiece.h"

namespace tensorflow {

class VariantTensorData {
 public:
  // The name of the type of the value.
  const std::string& type_name() const { return type_name_; }
  void set_type_name(absl::string_view name) { type_name_ = std::string(name); }

  // The plain value, as bytes.
  template <typename T>
  void set_metadata(const T& value) {
    if constexpr (std::is_same_v<T, std::string>) {
      metadata_ = value;
    } else {
      metadata_.assign(reinterpret_cast<const char*>(&value), sizeof(value));
    }
  }
  template <typename T>
  bool get_metadata(T* value) const {
    if constexpr (std::is_same_v<T, std::string>) {
      *value = metadata_;
      return true;
    } else {
      if (metadata_.size() != sizeof(T)) return false;
      std::memcpy(value, metadata_.data(), sizeof(T));
      return true;
    }
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

 private:
  std::string type_name_;
  std::string metadata_;
  std::vector<Tensor> tensors_;
};

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_VARIANT_TENSOR_DATA_H_
