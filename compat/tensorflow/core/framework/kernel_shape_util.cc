#include "tensorflow/core/framework/kernel_shape_util.h"

#include <algorithm>

#include "tensorflow/core/platform/errors.h"

namespace tensorflow {

absl::Status GetPaddingFromString(const std::string& text, Padding* value) {
  if (text == "VALID") {
    *value = VALID;
  } else if (text == "SAME") {
    *value = SAME;
  } else if (text == "EXPLICIT") {
    *value = EXPLICIT;
  } else {
    return errors::InvalidArgument("padding must be VALID, SAME or EXPLICIT, but is '", text, "'");
  }
  return absl::OkStatus();
}

absl::Status GetWindowedOutputSizeVerbose(int64_t input_size, int64_t filter_size,
                                          int64_t dilation_rate, int64_t stride,
                                          Padding padding_type, int64_t* output_size,
                                          int64_t* padding_before, int64_t* padding_after) {
  if (stride <= 0) return errors::InvalidArgument("Stride must be > 0, but got ", stride);
  if (dilation_rate < 1) {
    return errors::InvalidArgument("Dilation rate must be >= 1, but got ", dilation_rate);
  }
  // Tensor sizes have at most 63 bits, but their products may have more.
  int64_t extent;
  if (filter_size < 1 || input_size < 0 ||
      __builtin_mul_overflow(filter_size - 1, dilation_rate, &extent) ||
      __builtin_add_overflow(extent, 1, &extent)) {
    return errors::InvalidArgument("a window of ", filter_size, " elements, dilated by ",
                                   dilation_rate, ", does not fit an input of ", input_size);
  }
  int64_t padded = input_size;
  if (padding_type == SAME) {
    *output_size = input_size / stride + (input_size % stride != 0 ? 1 : 0);
    const int64_t covered = std::max<int64_t>(*output_size - 1, 0) * stride;
    const int64_t needed = std::max<int64_t>(covered - input_size + extent, 0);
    *padding_before = needed / 2;
    *padding_after = needed - needed / 2;
    return absl::OkStatus();
  }
  if (padding_type == VALID) {
    *padding_before = 0;
    *padding_after = 0;
  } else if (__builtin_add_overflow(padded, *padding_before, &padded) ||
             __builtin_add_overflow(padded, *padding_after, &padded)) {
    return errors::InvalidArgument("the padded input has more than 2^63 - 1 elements");
  }
  if (padded < extent) {
    return errors::InvalidArgument("Computed output size would be negative: ", padded - extent + 1,
                                   " [input_size: ", padded, ", effective_filter_size: ", extent,
                                   ", stride: ", stride, "]");
  }
  *output_size = (padded - extent) / stride + 1;
  return absl::OkStatus();
}

absl::Status GetWindowedOutputSize(int64_t input_size, int64_t filter_size, int64_t dilation_rate,
                                   int64_t stride, Padding padding_type, int64_t* output_size,
                                   int64_t* padding_size) {
  if (padding_type == EXPLICIT) {
    return errors::InvalidArgument("explicit padding has two sizes: GetWindowedOutputSizeVerbose");
  }
  int64_t after;
  return GetWindowedOutputSizeVerbose(input_size, filter_size, dilation_rate, stride, padding_type,
                                      output_size, padding_size, &after);
}

}  // namespace tensorflow
