// Reference implementation of batch normalization in float64, and test tensors in every data
// format.
#ifndef GRADFLOW_TESTS_OPS_NN_BATCH_NORM_REFERENCE_H_
#define GRADFLOW_TESTS_OPS_NN_BATCH_NORM_REFERENCE_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "gradflow/testing/kernel_test.h"

namespace gradflow {
namespace testing {

// The sizes of a tensor, independent of the data format. 4-D formats have no depth.
struct ImageSizes {
  int64_t batch;
  int64_t depth;
  int64_t height;
  int64_t width;
  int64_t channels;

  int64_t spatial() const { return depth * height * width; }
  int64_t count() const { return batch * spatial(); }
  int64_t size() const { return count() * channels; }
  TensorShape Shape(const std::string& format) const {
    DimVector dims;
    for (const char c : format) {
      dims.push_back(c == 'N'   ? batch
                     : c == 'D' ? depth
                     : c == 'H' ? height
                     : c == 'W' ? width
                                : channels);
    }
    return TensorShape(dims);
  }
};

// Returns the channel of element i.
inline int64_t ChannelOf(const ImageSizes& sizes, const std::string& format, int64_t i) {
  return format.back() == 'C' ? i % sizes.channels : i / sizes.spatial() % sizes.channels;
}

// Converts a tensor to another data format.
inline Tensor ToFormat(const Tensor& tensor, const ImageSizes& sizes, const std::string& from,
                       const std::string& to) {
  Tensor result(tensor.dtype(), sizes.Shape(to));
  const bool from_last = from.back() == 'C';
  const bool to_last = to.back() == 'C';
  const int64_t element = DataTypeSize(tensor.dtype());
  for (int64_t n = 0; n < sizes.batch; ++n) {
    for (int64_t s = 0; s < sizes.spatial(); ++s) {
      for (int64_t c = 0; c < sizes.channels; ++c) {
        const int64_t last = (n * sizes.spatial() + s) * sizes.channels + c;
        const int64_t first = (n * sizes.channels + c) * sizes.spatial() + s;
        std::memcpy(
            static_cast<char*>(result.raw_data()) + element * (to_last ? last : first),
            static_cast<const char*>(tensor.raw_data()) + element * (from_last ? last : first),
            element);
      }
    }
  }
  return result;
}

// Returns an empty vector, for statistics that an op does not use.
inline Tensor EmptyVector() { return Tensor(DT_FLOAT, {0}); }

// The mean and population variance of each channel.
struct BatchStatistics {
  std::vector<double> mean;
  std::vector<double> variance;
};
inline BatchStatistics StatisticsOf(const std::vector<double>& x, const ImageSizes& sizes,
                                    const std::string& format) {
  BatchStatistics result;
  result.mean.resize(sizes.channels);
  result.variance.resize(sizes.channels);
  const double count = static_cast<double>(sizes.count());
  for (size_t i = 0; i < x.size(); ++i) result.mean[ChannelOf(sizes, format, i)] += x[i] / count;
  for (size_t i = 0; i < x.size(); ++i) {
    const int64_t c = ChannelOf(sizes, format, i);
    result.variance[c] += (x[i] - result.mean[c]) * (x[i] - result.mean[c]) / count;
  }
  return result;
}

inline std::vector<double> Normalize(const std::vector<double>& x, const ImageSizes& sizes,
                                     const std::string& format, const BatchStatistics& statistics,
                                     const std::vector<double>& scale,
                                     const std::vector<double>& offset, double epsilon) {
  std::vector<double> y(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const int64_t c = ChannelOf(sizes, format, i);
    y[i] = (x[i] - statistics.mean[c]) * scale[c] / std::sqrt(statistics.variance[c] + epsilon) +
           offset[c];
  }
  return y;
}

// Returns `count` floats with the given mean and a stddev of about 1. They repeat with a period
// that is not a multiple of a kernel's block size.
inline Tensor AroundMean(int64_t count, float mean, const TensorShape& shape, uint32_t seed) {
  const Tensor period = RandomTensor(DT_FLOAT, {65537}, mean - 1.7, mean + 1.7, seed);
  Tensor tensor(DT_FLOAT, shape);
  for (int64_t i = 0; i < count; i += period.NumElements()) {
    std::memcpy(tensor.flat<float>().data() + i, period.raw_data(),
                sizeof(float) * std::min(period.NumElements(), count - i));
  }
  return tensor;
}

// Returns random sizes that reach all loop orders of the kernels.
inline ImageSizes RandomSizes(std::mt19937& random, int round, const std::string& format) {
  const auto up_to = [&](int64_t limit) { return 1 + static_cast<int64_t>(random() % limit); };
  const int64_t channels = up_to(round % 5 == 0 ? 1500 : round % 5 == 1 ? 3 : 70);
  const int64_t batch = up_to(9);
  const int64_t elements = round % 20 == 1 ? 500000 : 15000;
  const int64_t area = elements / (channels * batch) + 1;
  const int64_t depth = format.size() == 5 ? up_to(3) : 1;
  const int64_t height = up_to(static_cast<int64_t>(std::sqrt(area)) + 1);
  return {batch, depth, height, area / height / depth + 1, channels};
}

// Returns sizes with one or many channels and elements, which reach every path of the kernels.
inline std::vector<ImageSizes> ManySizes() {
  return {{2, 1, 3, 3, 4},    {1, 1, 1, 1, 1},     {1, 1, 1, 1, 9},     {2, 1, 1, 1, 600},
          {7, 1, 1, 1, 3},    {3, 1, 5, 7, 1},     {2, 1, 4, 5, 3},     {2, 1, 3, 3, 17},
          {5, 1, 7, 7, 64},   {1, 1, 2, 3, 513},   {2, 1, 1, 2, 1030},  {3, 1, 129, 131, 2},
          {20, 1, 4, 4, 33},  {300, 1, 15, 16, 3}, {1, 1, 400, 400, 2}, {75, 1, 30, 30, 16},
          {22, 1, 32, 32, 48}};
}

}  // namespace testing
}  // namespace gradflow

#endif  // GRADFLOW_TESTS_OPS_NN_BATCH_NORM_REFERENCE_H_
