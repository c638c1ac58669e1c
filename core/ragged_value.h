// RaggedValue: a ragged tensor as the value of a Variant, which the ops of ops/ragged/variant.cc
// make. Nothing checks that the splits fit the values.
//
// Thread safety: as an int. Copies share the tensors, which do not change.
#ifndef GRADFLOW_CORE_RAGGED_VALUE_H_
#define GRADFLOW_CORE_RAGGED_VALUE_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/variant_tensor_data.h"

#pragma GCC visibility push(default)
namespace gradflow {

class RaggedValue {
 public:
  // The name of the type in encoded variants.
  static constexpr char kTypeName[] = "RaggedTensorVariant";

  RaggedValue() : components_(1) {}
  // Holds the splits, from the outermost dimension on, followed by the values. REQUIRES: the values
  // are not variants
  explicit RaggedValue(std::vector<Tensor> components) : components_(std::move(components)) {}

  // The row splits of each ragged dimension, from the outermost dimension on.
  absl::Span<const Tensor> splits() const {
    return absl::MakeConstSpan(components_).first(components_.size() - 1);
  }
  // The values of all rows.
  const Tensor& values() const { return components_.back(); }

  // ---- As the value of a Variant ----

  std::string TypeName() const { return kTypeName; }
  // "2 splits, float[3,2]"
  std::string DebugString() const;
  void Encode(VariantTensorData* data) const;
  bool Decode(VariantTensorData data);

 private:
  std::vector<Tensor> components_;
};

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_CORE_RAGGED_VALUE_H_
