// Attributes, ranges and checks that the fake-quant ops and their gradients share.
#ifndef GRADFLOW_OPS_QUANT_FAKE_QUANT_COMMON_H_
#define GRADFLOW_OPS_QUANT_FAKE_QUANT_COMMON_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/shape_context.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/tensor_shape.h"
#include "gradflow/ops/quant/fake_quant_simd.h"

namespace gradflow {

// The number of elements of a task of an elementwise loop.
inline constexpr int64_t kFakeQuantBlock = 32 * 1024;

absl::Status MakeFakeQuantLevels(int64_t num_bits, bool narrow_range, FakeQuantLevels* levels);
// Checks the attributes `min` and `max`: both must be finite, and min < max.
absl::Status CheckFakeQuantArgs(float min, float max);
// Checks the inputs `min` and `max`: all elements must be finite.
absl::Status CheckFakeQuantVars(const RunContext& run, const Tensor& min, const Tensor& max);

// Reads the attributes num_bits and narrow_range. Source is KernelConstruction or ShapeContext.
template <typename Source>
absl::Status ReadFakeQuantLevels(const Source& source, FakeQuantLevels* levels) {
  int64_t num_bits = 0;
  bool narrow_range = false;
  if (absl::Status s = source.GetAttr("num_bits", &num_bits); !s.ok()) return s;
  if (absl::Status s = source.GetAttr("narrow_range", &narrow_range); !s.ok()) return s;
  return MakeFakeQuantLevels(num_bits, narrow_range, levels);
}
// Reads num_bits, narrow_range, min and max.
template <typename Source>
absl::Status ReadFakeQuantStep(const Source& source, FakeQuantStep* step) {
  FakeQuantLevels levels;
  float min = 0;
  float max = 0;
  if (absl::Status s = ReadFakeQuantLevels(source, &levels); !s.ok()) return s;
  if (absl::Status s = source.GetAttr("min", &min); !s.ok()) return s;
  if (absl::Status s = source.GetAttr("max", &max); !s.ok()) return s;
  if (absl::Status s = CheckFakeQuantArgs(min, max); !s.ok()) return s;
  *step = Nudge(levels, min, max);
  return absl::OkStatus();
}

// Returns the distance, in elements, between the tables of a tile with that many columns. It is a
// multiple of a cache line. Tables 4 KiB apart would compete for the same ways of the L1 cache.
inline int64_t FakeQuantTableStride(int64_t columns) { return (columns + 15) / 16 * 16; }

// Returns true if the range has not been measured yet. Results are then 0, and gradients pass
// unchanged.
inline bool IsZeroRange(float min, float max) { return min == 0.0f && max == 0.0f; }

// ---- Shapes ----

absl::Status CheckFakeQuantScalars(const PartialTensorShape& min, const PartialTensorShape& max);
// Returns the number of channels: the last dimension of `inputs` and the size of `min` and `max`.
// Returns -1 if it is unknown.
absl::StatusOr<int64_t> FakeQuantChannels(const PartialTensorShape& inputs,
                                          const PartialTensorShape& min,
                                          const PartialTensorShape& max);
absl::Status CheckFakeQuantGradients(const PartialTensorShape& gradients,
                                     const PartialTensorShape& inputs);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_QUANT_FAKE_QUANT_COMMON_H_
