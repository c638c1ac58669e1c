// The rounding of TensorFlow Lite: the formats that its converter derives from ranges, and tables
// with the results of its integer kernels. docs/quantization.md states the arithmetic. Internal.
#ifndef GRADFLOW_RUNTIME_PLAN_TFLITE_ROUNDING_H_
#define GRADFLOW_RUNTIME_PLAN_TFLITE_ROUNDING_H_

#include <cstdint>

#include "absl/types/span.h"
#include "gradflow/core/integer_kernels.h"
#include "gradflow/runtime/plan/integer_steps.h"

namespace gradflow {

// Returns the scale of a range, in double.
double RangeScale(const IntegerFormat& format);

// Returns the format that the converter derives from the range of `format`. A fake-quantization
// node computes its scale and zero point in float, so both may differ.
IntegerFormat TfLiteFormat(const IntegerFormat& format);

// Returns the integer of a number, in steps from the zero point and clamped to the format: divided
// by the scale and rounded, halves away from 0. NaN becomes 0.
int32_t TfLiteSteps(double number, double scale, const IntegerFormat& format);

// Returns the table that converts integers to another format, with a clamp in steps of `to`. The
// quotient of the scales is `factor`.
IntegerTable TfLiteRequantize(const IntegerFormat& from, const IntegerFormat& to, double factor,
                              float lowest, float highest);

// Converts integers to another format, without a further clamp. REQUIRES: the quotient of the
// scales is less than FixedPoint::kMaxFactor
IntegerTable TfLiteRequantize(const IntegerFormat& from, const IntegerFormat& to);

// Return the formats of the results of Sigmoid and Softmax, and of Tanh. The formats do not depend
// on ranges.
IntegerFormat TfLiteSigmoidFormat();
IntegerFormat TfLiteTanhFormat();

// Returns the table of numbers[256], rounded to the format.
IntegerTable TfLiteTable(absl::Span<const float> numbers, const IntegerFormat& format);

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_PLAN_TFLITE_ROUNDING_H_
