// Integer inference: kernels that compute with 8-bit integers what the nodes of a fake-quantized
// graph compute with floats. A plan pass (runtime/plan/integer_inference.cc) finds such nodes. The
// float kernels below make the kernels of integers. docs/quantization.md states the arithmetic.
// Internal.
#ifndef GRADFLOW_CORE_INTEGER_KERNELS_H_
#define GRADFLOW_CORE_INTEGER_KERNELS_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gradflow/core/fixed_point.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/tensor_shape.h"

#pragma GCC visibility push(default)
namespace gradflow {

// The meaning of the integers 0 … highest of a uint8 tensor: integer q stands for the number
// (q - zero_point) * scale.
struct IntegerFormat {
  float scale = 1;
  int32_t zero_point = 0;
  int32_t highest = 255;
  // The range of the fake-quantization node; empty for other integers.
  float min = 0;
  float max = 0;

  // Compares the meaning of integers.
  friend bool operator==(const IntegerFormat& a, const IntegerFormat& b) {
    return a.scale == b.scale && a.zero_point == b.zero_point && a.highest == b.highest;
  }
};

// The conversion of the exact sums of an output channel c to results. In float, with a rounding
// after each operation, value = clamp(float(sum) * multiplier[c] + offset[c], lowest, highest). A
// float result is the value. A uint8 result is the value rounded to the nearest integer, halves to
// even, plus the zero point.
struct IntegerResult {
  // One element for each output channel, or a single element for all channels.
  std::vector<float> multiplier;
  std::vector<float> offset;
  float lowest = -std::numeric_limits<float>::max();
  float highest = std::numeric_limits<float>::max();
  bool is_float = false;
  int32_t zero_point = 0;
  // If not empty, a uint8 result is computed as TensorFlow Lite does:
  //   clamp(Multiply(sum + fixed_offset[c], fixed[c]), lowest, highest) + zero_point
  // The multipliers and offsets above then have no effect.
  std::vector<FixedPoint> fixed;
  std::vector<int32_t> fixed_offset;
  // Uses MultiplyOnce() instead of Multiply().
  bool rounds_once = false;
};

// A product of activations and constant weights in integers.
struct IntegerProductArgs {
  // The weights divided by their scales, DT_INT16, with the shape of the weights.
  Tensor weights;
  // The zero point of the activations.
  int32_t zero_point = 0;
  IntegerResult result;
};

// A float kernel of a convolution or matrix product. Input 0 has the activations and input 1 the
// weights.
class IntegerProductKernel {
 public:
  virtual ~IntegerProductKernel() = default;
  // The output channels, which are the last dimension of the output. Weight i, counted in memory
  // order, belongs to channel i / stride % count.
  struct Channels {
    int64_t count = 0;
    int64_t stride = 1;
    // The number of dimensions of the output.
    int rank = 0;
  };
  // Returns the channels of weights of this shape. The status says why the kernel has no form in
  // integers.
  virtual absl::StatusOr<Channels> IntegerChannels(const TensorShape& weights) const = 0;
  // Makes the kernel of integers. Its only input is the activations, DT_UINT8. The status says why
  // the weights are not supported.
  virtual absl::StatusOr<std::shared_ptr<const OpKernel>> MakeIntegerProduct(
      const IntegerProductArgs& args) const = 0;
};

// A float kernel with a form in integers. All its float inputs are integers, and a
// fake-quantization node rounds its result.
class IntegerFormKernel {
 public:
  virtual ~IntegerFormKernel() = default;
  // Returns true for products of two activations, which are faster in integers. Other forms are
  // worthwhile only between products.
  virtual bool IsIntegerProduct() const { return false; }
  // Returns true if TensorFlow Lite gives every result the scale 1/256 and the lowest zero point,
  // and then converts it to the range of the fake-quantization node.
  virtual bool HasTfLiteSigmoidFormat() const { return false; }
  struct Args {
    // The formats of the float inputs, which come before other inputs.
    std::vector<IntegerFormat> inputs;
    // The result is clamp(value * factor / format.scale, lowest, highest), rounded to the nearest
    // integer, halves to even, plus the zero point.
    IntegerFormat format;
    double factor = 1;
    float lowest = 0;
    float highest = 0;
    // Rounds as TensorFlow Lite does.
    bool tflite_rounding = false;
  };
  // Makes a kernel that takes DT_UINT8 in place of floats. The status says why there is none.
  virtual absl::StatusOr<std::shared_ptr<const OpKernel>> MakeIntegerForm(
      const Args& args) const = 0;
};

// A float kernel that rounds input 0 to the levels of an integer type, such as
// FakeQuantWithMinMaxVars. The other inputs are ranges.
class QuantizingKernel {
 public:
  virtual ~QuantizingKernel() = default;
  struct Formats {
    // A single format, or one for each index of dimension `axis`.
    std::vector<IntegerFormat> formats;
    // The dimension; -1 is the last.
    int axis = -1;
  };
  // Returns the formats of output 0 with these ranges. inputs[0] is unset. The status says why the
  // levels are not 8-bit integers.
  virtual absl::StatusOr<Formats> FormatsOf(absl::Span<const Tensor> inputs) const = 0;
  // Makes a kernel that computes the integers, DT_UINT8, of its only input. They stand for the same
  // levels as the results of this kernel. NaN becomes the zero point.
  // REQUIRES: FormatsOf(inputs) has returned a single format
  virtual std::shared_ptr<const OpKernel> MakeQuantize(absl::Span<const Tensor> inputs) const = 0;
};

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_CORE_INTEGER_KERNELS_H_
