// Means of 8-bit integers, for average pooling and Mean.
#ifndef GRADFLOW_OPS_QUANT_INTEGER_MEAN_H_
#define GRADFLOW_OPS_QUANT_INTEGER_MEAN_H_

#include <cstdint>
#include <memory>

#include "gradflow/core/fixed_point.h"
#include "gradflow/core/integer_kernels.h"
#include "gradflow/core/op_kernel.h"

namespace gradflow {

// The conversion of sums of integers to means in the format of the result.
class IntegerMean {
 public:
  // TensorFlow Lite has different formulas for pools and for other means.
  IntegerMean(const IntegerFormKernel::Args& args, bool is_pool);

  // Sets y[n] to the means of `count` integers each, from their sums. Means of no integers are NaN,
  // the zero point.
  void Round(const int64_t* sums, int64_t n, int64_t count, uint8_t* y) const;

 private:
  void RoundLikeTfLitePool(const int64_t* sums, int64_t n, int64_t count, uint8_t* y) const;
  void RoundLikeTfLite(const int64_t* sums, int64_t n, int64_t count, uint8_t* y) const;

  const IntegerFormat from_;
  const int32_t zero_point_;
  const double scale_;
  const float lowest_;
  const float highest_;
  const bool tflite_rounding_;
  const bool is_pool_;
  const bool same_format_;
  const FixedPoint fixed_;
};

// Adds rows x[rows, n] of integers, `stride` apart, to sums[n].
void AddIntegerRows(const uint8_t* x, int64_t rows, int64_t stride, int64_t n, int64_t* sums);

// Makes the kernel of a mean of input 0 over the axes in input 1.
std::shared_ptr<const OpKernel> MakeIntegerMean(const IntegerFormKernel::Args& args,
                                                bool keep_dims);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_QUANT_INTEGER_MEAN_H_
