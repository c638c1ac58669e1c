// OptionalValue: several tensors or nothing, which the ops of ops/data_flow/optional.cc pass along
// edges of type variant.
//
// Thread safety: as an int. Copies share the tensors, which do not change.
#ifndef GRADFLOW_CORE_OPTIONAL_VALUE_H_
#define GRADFLOW_CORE_OPTIONAL_VALUE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gradflow/core/tensor.h"
#include "gradflow/core/variant_tensor_data.h"

#pragma GCC visibility push(default)
namespace gradflow {

class OptionalValue {
 public:
  // The name of the type in encoded variants.
  static constexpr char kTypeName[] = "tensorflow::data::Optional";

  // Has no value.
  OptionalValue() = default;
  // Has the value `components`.
  explicit OptionalValue(std::vector<Tensor> components)
      : components_(std::make_shared<const std::vector<Tensor>>(std::move(components))) {}

  // Returns false if there is no value.
  bool has_value() const { return components_ != nullptr; }
  // The tensors of the value. REQUIRES: has_value()
  const std::vector<Tensor>& components() const { return *components_; }

  // ---- As the value of a Variant ----

  std::string TypeName() const { return kTypeName; }
  // "2 tensors", or "no value"
  std::string DebugString() const;
  void Encode(VariantTensorData* data) const;
  bool Decode(VariantTensorData data);

 private:
  std::shared_ptr<const std::vector<Tensor>> components_;
};

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_CORE_OPTIONAL_VALUE_H_
