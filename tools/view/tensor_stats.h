// Statistics of a tensor, for the report of a run.
#ifndef GRADFLOW_TOOLS_VIEW_TENSOR_STATS_H_
#define GRADFLOW_TOOLS_VIEW_TENSOR_STATS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gradflow/core/tensor.h"

namespace gradflow::tools {

// Statistics of the elements, as doubles; complex numbers count as their magnitudes. Without finite
// elements, min to stddev are NaN and the histogram is empty.
struct TensorStats {
  int64_t num_nan = 0;
  int64_t num_positive_infinity = 0;
  int64_t num_negative_infinity = 0;
  int64_t num_finite = 0;
  // Statistics of the finite elements. stddev is the population standard deviation.
  double min = 0;
  double max = 0;
  double mean = 0;
  double stddev = 0;
  // The numbers of finite elements in kHistogramBins equal steps from min to max. If min equals
  // max, all elements are in the first bin.
  std::vector<int64_t> histogram;
};

inline constexpr int kHistogramBins = 32;

// Calls fn(i) for each i in [0, count), concurrently.
using ForEachIndex = std::function<void(int64_t count, const std::function<void(int64_t)>& fn)>;
ForEachIndex OnAllCores();

// Computes the statistics of a tensor. The bits of the result do not depend on the number of
// threads. A tensor of a type without numbers, such as string, counts as empty.
TensorStats ComputeTensorStats(const Tensor& tensor, const ForEachIndex& for_each = OnAllCores());

// A small picture of a tensor: rows and columns of pixels, with 1, 3 or 4 channels. Levels are from
// 0 for min to 255 for max, 128 if min equals max, and -1 for elements that are not finite.
struct TensorPicture {
  int rows = 0;
  int columns = 0;
  int channels = 1;
  std::vector<int> levels;
};

// Returns the first image of a tensor [batch, height, width, channels] with 1, 3 or 4 channels, the
// first matrix of another tensor of rank 2 or more, or a vector as a row. If there are more than 48
// rows or columns, takes 48 in equal steps. Empty for scalars and empty tensors.
TensorPicture MakeTensorPicture(const Tensor& tensor, const TensorStats& stats);

// Returns the elements of a vector of two or more elements; further dimensions of size 1 are
// allowed. If there are more than kMaxCurve elements, returns the smallest and the largest element
// of each of kMaxCurve / 2 equal parts, in their order. NaN stands for values that are not finite.
// Empty for other tensors.
std::vector<double> MakeTensorCurve(const Tensor& tensor,
                                    const ForEachIndex& for_each = OnAllCores());

inline constexpr int kMaxCurve = 256;

}  // namespace gradflow::tools

#endif  // GRADFLOW_TOOLS_VIEW_TENSOR_STATS_H_
