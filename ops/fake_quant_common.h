// What the fake-quant ops and their gradients share: attributes, ranges and checks.
#ifndef GRADFLOW_OPS_FAKE_QUANT_COMMON_H_
#define GRADFLOW_OPS_FAKE_QUANT_COMMON_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/shape_context.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/tensor_shape.h"
#include "gradflow/ops/fake_quant_simd.h"

namespace gradflow {

// Elements that an elementwise loop gives to one task.
inline constexpr int64_t kFakeQuantBlock = 32 * 1024;

absl::Status MakeFakeQuantLevels(int64_t num_bits, bool narrow_range, FakeQuantLevels* levels);
// `min` and `max` as attributes: both finite, and min < max.
absl::Status CheckFakeQuantArgs(float min, float max);
// `min` and `max` as inputs, of the same shape: all elements finite.
absl::Status CheckFakeQuantVars(const Tensor& min, const Tensor& max);

// The same from the attributes of a node; Source is KernelConstruction or ShapeContext.
template <typename Source>
absl::Status ReadFakeQuantLevels(const Source& source, FakeQuantLevels* levels) {
  int64_t num_bits = 0;
  bool narrow_range = false;
  if (absl::Status s = source.GetAttr("num_bits", &num_bits); !s.ok()) return s;
  if (absl::Status s = source.GetAttr("narrow_range", &narrow_range); !s.ok()) return s;
  return MakeFakeQuantLevels(num_bits, narrow_range, levels);
}
template <typename Source>
absl::Status ReadFakeQuantArgs(const Source& source, float* min, float* max) {
  if (absl::Status s = source.GetAttr("min", min); !s.ok()) return s;
  if (absl::Status s = source.GetAttr("max", max); !s.ok()) return s;
  return CheckFakeQuantArgs(*min, *max);
}

// Such a range says that it has not been measured yet: numbers become 0, gradients pass.
inline bool IsZeroRange(float min, float max) { return min == 0.0f && max == 0.0f; }

// ---- Shapes ----

absl::Status CheckFakeQuantScalars(const PartialTensorShape& min, const PartialTensorShape& max);
// The number of channels: of the last dimension of `inputs`, and of `min` and `max`; -1 if none of
// them is known.
absl::StatusOr<int64_t> FakeQuantChannels(const PartialTensorShape& inputs,
                                          const PartialTensorShape& min,
                                          const PartialTensorShape& max);
absl::Status CheckFakeQuantGradients(const PartialTensorShape& gradients,
                                     const PartialTensorShape& inputs);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_FAKE_QUANT_COMMON_H_
