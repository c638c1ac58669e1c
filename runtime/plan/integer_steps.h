// Kernels of integer inference that need no op: conversions, tables and elementwise pairs.
// Internal.
#ifndef GRADFLOW_RUNTIME_PLAN_INTEGER_STEPS_H_
#define GRADFLOW_RUNTIME_PLAN_INTEGER_STEPS_H_

#include <array>
#include <cstdint>
#include <memory>

#include "gradflow/core/integer_kernels.h"
#include "gradflow/core/op_kernel.h"

namespace gradflow {

// The number that each integer stands for, or the integer that replaces it.
using NumberTable = std::array<float, 256>;
using IntegerTable = std::array<uint8_t, 256>;

// Returns (q - zero_point) * scale for each q.
NumberTable NumbersOf(const IntegerFormat& format);

// Makes a kernel that replaces each integer of its input by the number that it stands for.
std::shared_ptr<const OpKernel> MakeDequantize(const IntegerFormat& format);

// Makes a kernel that replaces each number by its integer as TensorFlow Lite does: x / scale
// rounded to the nearest integer, halves away from 0. NaN becomes the zero point.
std::shared_ptr<const OpKernel> MakeTfLiteQuantize(const IntegerFormat& format);

// Makes a kernel that replaces each integer of its input by an element of the table.
std::shared_ptr<const OpKernel> MakeLookUp(const IntegerTable& table);

// The sum or the product of two tensors.
struct IntegerPair {
  IntegerFormat formats[2];
  bool multiplies = false;
  // The format of the result, and the clamp of the sum or product in steps of this format.
  IntegerFormat format;
  float lowest = 0;
  float highest = 0;
  // Rounds as TensorFlow Lite does.
  bool tflite_rounding = false;
};

// Makes the kernel of a pair. It has two inputs of uint8, which broadcast.
std::shared_ptr<const OpKernel> MakeIntegerPair(const IntegerPair& pair);

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_PLAN_INTEGER_STEPS_H_
