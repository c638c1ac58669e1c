// Output sizes of windowed ops.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_KERNEL_SHAPE_UTIL_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_KERNEL_SHAPE_UTIL_H_

#include <cstdint>

#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/platform/types.h"
#include "tensorflow/core/util/padding.h"

namespace tensorflow {

// Store the number of windows, and the padding before and after the input. If the padding is
// EXPLICIT, `padding_before` and `padding_after` are inputs. Return INVALID_ARGUMENT if strides or
// dilations are not positive, or if the window is larger than the padded input.
absl::Status GetWindowedOutputSizeVerbose(int64_t input_size, int64_t filter_size,
                                          int64_t dilation_rate, int64_t stride,
                                          Padding padding_type, int64_t* output_size,
                                          int64_t* padding_before, int64_t* padding_after);
absl::Status GetWindowedOutputSize(int64_t input_size, int64_t filter_size, int64_t dilation_rate,
                                   int64_t stride, Padding padding_type, int64_t* output_size,
                                   int64_t* padding_size);

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_KERNEL_SHAPE_UTIL_H_
