#include "tools/view/tensor_stats.h"

#include <tbb/parallel_for.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>

#include "gradflow/core/float16.h"

namespace gradflow::tools {
namespace {

// Elements of a block. Blocks depend on the size alone, and are combined in their order.
constexpr int64_t kBlockSize = 1 << 15;

// Reads an element of any numeric type as a double.
using Reader = double (*)(const char* data, int64_t index);

template <typename T>
double Read(const char* data, int64_t index) {
  return static_cast<double>(reinterpret_cast<const T*>(data)[index]);
}
template <typename T>
double ReadFloat(const char* data, int64_t index) {
  return static_cast<double>(static_cast<float>(reinterpret_cast<const T*>(data)[index]));
}
template <typename T>
double ReadMagnitude(const char* data, int64_t index) {
  const std::complex<T> value = reinterpret_cast<const std::complex<T>*>(data)[index];
  return std::hypot(static_cast<double>(value.real()), static_cast<double>(value.imag()));
}

// Returns null for types without numbers.
Reader ReaderOf(DataType dtype) {
  switch (dtype) {
    case DT_FLOAT:
      return Read<float>;
    case DT_DOUBLE:
      return Read<double>;
    case DT_HALF:
      return ReadFloat<half>;
    case DT_BFLOAT16:
      return ReadFloat<bfloat16>;
    case DT_INT8:
    case DT_QINT8:
      return Read<int8_t>;
    case DT_UINT8:
    case DT_QUINT8:
      return Read<uint8_t>;
    case DT_INT16:
    case DT_QINT16:
      return Read<int16_t>;
    case DT_UINT16:
    case DT_QUINT16:
      return Read<uint16_t>;
    case DT_INT32:
    case DT_QINT32:
      return Read<int32_t>;
    case DT_UINT32:
      return Read<uint32_t>;
    case DT_INT64:
      return Read<int64_t>;
    case DT_UINT64:
      return Read<uint64_t>;
    case DT_BOOL:
      return Read<uint8_t>;
    case DT_COMPLEX64:
      return ReadMagnitude<float>;
    case DT_COMPLEX128:
      return ReadMagnitude<double>;
    default:
      return nullptr;
  }
}

struct Block {
  int64_t num_nan = 0;
  int64_t num_positive = 0;
  int64_t num_negative = 0;
  int64_t num_finite = 0;
  double min = std::numeric_limits<double>::infinity();
  double max = -std::numeric_limits<double>::infinity();
  double mean = 0;
  // The sum of the squares of the differences from the mean.
  double squares = 0;
};

Block SummarizeBlock(const char* data, Reader read, int64_t begin, int64_t end) {
  Block block;
  for (int64_t i = begin; i < end; ++i) {
    const double value = read(data, i);
    if (std::isnan(value)) {
      ++block.num_nan;
    } else if (std::isinf(value)) {
      ++(value > 0 ? block.num_positive : block.num_negative);
    } else {
      ++block.num_finite;
      block.min = std::min(block.min, value);
      block.max = std::max(block.max, value);
      // Welford's update: no sum grows with the number of elements, and none cancels.
      const double delta = value - block.mean;
      block.mean += delta / static_cast<double>(block.num_finite);
      block.squares += delta * (value - block.mean);
    }
  }
  return block;
}

void Add(const Block& block, Block* sum) {
  sum->num_nan += block.num_nan;
  sum->num_positive += block.num_positive;
  sum->num_negative += block.num_negative;
  if (block.num_finite == 0) return;
  const double total = static_cast<double>(sum->num_finite + block.num_finite);
  const double share = static_cast<double>(block.num_finite) / total;
  const double delta = block.mean - sum->mean;
  sum->squares += block.squares + delta * delta * share * static_cast<double>(sum->num_finite);
  sum->mean += delta * share;
  sum->num_finite += block.num_finite;
  sum->min = std::min(sum->min, block.min);
  sum->max = std::max(sum->max, block.max);
}

// Calls fn(block, begin, end) for all blocks.
template <typename Fn>
void ForEachBlock(int64_t size, const ForEachIndex& for_each, const Fn& fn) {
  const int64_t num_blocks = (size + kBlockSize - 1) / kBlockSize;
  for_each(num_blocks, [&](int64_t block) {
    fn(block, block * kBlockSize, std::min(size, (block + 1) * kBlockSize));
  });
}

// Returns the bin of a finite value.
int BinOf(double value, const TensorStats& stats) {
  // Halves, since the difference of two doubles may overflow.
  const double range = stats.max / 2 - stats.min / 2;
  if (!(range > 0)) return 0;
  const double part = (value / 2 - stats.min / 2) / range;
  return std::clamp(static_cast<int>(part * kHistogramBins), 0, kHistogramBins - 1);
}

}  // namespace

ForEachIndex OnAllCores() {
  return [](int64_t count, const std::function<void(int64_t)>& fn) {
    tbb::parallel_for(int64_t{0}, count, fn);
  };
}

TensorStats ComputeTensorStats(const Tensor& tensor, const ForEachIndex& for_each) {
  TensorStats stats;
  const Reader read = ReaderOf(tensor.dtype());
  const int64_t size = read == nullptr ? 0 : tensor.NumElements();
  const char* const data = size == 0 ? nullptr : tensor.tensor_data().data();
  const int64_t num_blocks = (size + kBlockSize - 1) / kBlockSize;
  std::vector<Block> blocks(num_blocks);
  ForEachBlock(size, for_each, [&](int64_t block, int64_t begin, int64_t end) {
    blocks[block] = SummarizeBlock(data, read, begin, end);
  });
  Block sum;
  for (const Block& block : blocks) Add(block, &sum);
  stats.num_nan = sum.num_nan;
  stats.num_positive_infinity = sum.num_positive;
  stats.num_negative_infinity = sum.num_negative;
  stats.num_finite = sum.num_finite;
  if (sum.num_finite == 0) {
    stats.min = stats.max = stats.mean = stats.stddev = std::numeric_limits<double>::quiet_NaN();
    return stats;
  }
  stats.min = sum.min;
  stats.max = sum.max;
  stats.mean = sum.mean;
  stats.stddev = std::sqrt(sum.squares / static_cast<double>(sum.num_finite));
  // A loop of a run that ends may leave out blocks.
  std::vector<std::vector<int64_t>> counts(num_blocks, std::vector<int64_t>(kHistogramBins));
  ForEachBlock(size, for_each, [&](int64_t block, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const double value = read(data, i);
      if (std::isfinite(value)) ++counts[block][BinOf(value, stats)];
    }
  });
  stats.histogram.resize(kHistogramBins);
  for (const std::vector<int64_t>& count : counts) {
    for (int bin = 0; bin < kHistogramBins; ++bin) stats.histogram[bin] += count[bin];
  }
  return stats;
}

std::vector<double> MakeTensorCurve(const Tensor& tensor, const ForEachIndex& for_each) {
  const Reader read = ReaderOf(tensor.dtype());
  const int64_t size = tensor.NumElements();
  const auto dims = tensor.shape().dim_sizes();
  if (read == nullptr || size < 2 || std::find(dims.begin(), dims.end(), size) == dims.end()) {
    return {};
  }
  const char* const data = tensor.tensor_data().data();
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  const auto finite = [&](int64_t i) {
    const double value = read(data, i);
    return std::isfinite(value) ? value : kNone;
  };
  std::vector<double> curve;
  if (size <= kMaxCurve) {
    for (int64_t i = 0; i < size; ++i) curve.push_back(finite(i));
    return curve;
  }
  constexpr int64_t kParts = kMaxCurve / 2;
  curve.resize(kMaxCurve);
  for_each(kParts, [&](int64_t part) {
    // The first parts have the elements that are left over.
    const int64_t begin = part * (size / kParts) + std::min(part, size % kParts);
    const int64_t end = begin + size / kParts + (part < size % kParts ? 1 : 0);
    int64_t low = begin;
    int64_t high = begin;
    for (int64_t i = begin; i < end; ++i) {
      const double value = finite(i);
      if (std::isnan(value)) continue;
      if (!(finite(low) <= value)) low = i;
      if (!(finite(high) >= value)) high = i;
    }
    curve[2 * part] = finite(std::min(low, high));
    curve[2 * part + 1] = finite(std::max(low, high));
  });
  return curve;
}

TensorPicture MakeTensorPicture(const Tensor& tensor, const TensorStats& stats) {
  constexpr int64_t kMaxSize = 48;
  TensorPicture picture;
  const Reader read = ReaderOf(tensor.dtype());
  if (read == nullptr || tensor.dims() == 0 || tensor.NumElements() == 0) return picture;
  const int dims = tensor.dims();
  const int64_t last = tensor.dim_size(dims - 1);
  int64_t rows = dims == 1 ? 1 : tensor.dim_size(dims - 2);
  int64_t columns = last;
  if (dims == 4 && (last == 1 || last == 3 || last == 4)) {
    rows = tensor.dim_size(1);
    columns = tensor.dim_size(2);
    picture.channels = static_cast<int>(last);
  }
  picture.rows = static_cast<int>(std::min(rows, kMaxSize));
  picture.columns = static_cast<int>(std::min(columns, kMaxSize));
  const char* const data = tensor.tensor_data().data();
  const double range = stats.max / 2 - stats.min / 2;
  for (int64_t r = 0; r < picture.rows; ++r) {
    for (int64_t c = 0; c < picture.columns; ++c) {
      // The products are less than the number of elements times 48.
      const int64_t row = r * (rows / picture.rows) + r * (rows % picture.rows) / picture.rows;
      const int64_t column =
          c * (columns / picture.columns) + c * (columns % picture.columns) / picture.columns;
      for (int channel = 0; channel < picture.channels; ++channel) {
        const double value = read(data, (row * columns + column) * picture.channels + channel);
        int level = -1;
        if (std::isfinite(value)) {
          level = range > 0 ? static_cast<int>((value / 2 - stats.min / 2) / range * 255) : 128;
        }
        picture.levels.push_back(std::clamp(level, -1, 255));
      }
    }
  }
  return picture;
}

}  // namespace gradflow::tools
