#include "tools/view/tensor_stats.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>

#include "gradflow/core/float16.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/run_context.h"

namespace gradflow::tools {
namespace {

// The number of elements of a block. Blocks depend only on the size of the tensor, and their
// statistics are combined in order.
constexpr int64_t kBlockSize = 1 << 15;

// Reads an element of any numeric type as a double.
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

// The number of elements that are read at a time.
constexpr int64_t kChunk = 512;

// Reads one element, or up to kChunk elements, of a type.
class ElementReader {
 public:
  template <double (*kRead)(const char*, int64_t)>
  static ElementReader Of() {
    return ElementReader(kRead, [](const char* data, int64_t begin, int64_t count, double* values) {
      for (int64_t i = 0; i < count; ++i) values[i] = kRead(data, begin + i);
    });
  }
  // For types without numbers.
  ElementReader() = default;

  bool has_numbers() const { return one_ != nullptr; }
  double operator()(const char* data, int64_t index) const { return one_(data, index); }
  void ReadChunk(const char* data, int64_t begin, int64_t count, double* values) const {
    many_(data, begin, count, values);
  }

 private:
  using One = double (*)(const char*, int64_t);
  using Many = void (*)(const char*, int64_t, int64_t, double*);
  ElementReader(One one, Many many) : one_(one), many_(many) {}
  One one_ = nullptr;
  Many many_ = nullptr;
};

ElementReader ReaderOf(DataType dtype) {
  switch (dtype) {
    case DT_FLOAT:
      return ElementReader::Of<Read<float>>();
    case DT_DOUBLE:
      return ElementReader::Of<Read<double>>();
    case DT_HALF:
      return ElementReader::Of<ReadFloat<half>>();
    case DT_BFLOAT16:
      return ElementReader::Of<ReadFloat<bfloat16>>();
    case DT_INT8:
    case DT_QINT8:
      return ElementReader::Of<Read<int8_t>>();
    case DT_UINT8:
    case DT_QUINT8:
      return ElementReader::Of<Read<uint8_t>>();
    case DT_INT16:
    case DT_QINT16:
      return ElementReader::Of<Read<int16_t>>();
    case DT_UINT16:
    case DT_QUINT16:
      return ElementReader::Of<Read<uint16_t>>();
    case DT_INT32:
    case DT_QINT32:
      return ElementReader::Of<Read<int32_t>>();
    case DT_UINT32:
      return ElementReader::Of<Read<uint32_t>>();
    case DT_INT64:
      return ElementReader::Of<Read<int64_t>>();
    case DT_UINT64:
      return ElementReader::Of<Read<uint64_t>>();
    case DT_BOOL:
      return ElementReader::Of<Read<uint8_t>>();
    case DT_COMPLEX64:
      return ElementReader::Of<ReadMagnitude<float>>();
    case DT_COMPLEX128:
      return ElementReader::Of<ReadMagnitude<double>>();
    default:
      return ElementReader();
  }
}

struct BlockStats {
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

void Add(const BlockStats& block, BlockStats* sum) {
  sum->num_nan += block.num_nan;
  sum->num_positive += block.num_positive;
  sum->num_negative += block.num_negative;
  if (block.num_finite == 0) return;
  const double total = static_cast<double>(sum->num_finite + block.num_finite);
  const double share = static_cast<double>(block.num_finite) / total;
  const double delta = block.mean - sum->mean;
  // For the first elements, this order of multiplication adds 0 even if the square of delta
  // overflows.
  sum->squares += block.squares + delta * share * static_cast<double>(sum->num_finite) * delta;
  sum->mean += delta * share;
  sum->num_finite += block.num_finite;
  sum->min = std::min(sum->min, block.min);
  sum->max = std::max(sum->max, block.max);
}

// Handles any values, one after the other.
BlockStats SummarizeSpecial(const double* values, int64_t count) {
  BlockStats block;
  for (int64_t i = 0; i < count; ++i) {
    const double value = values[i];
    if (std::isnan(value)) {
      ++block.num_nan;
    } else if (std::isinf(value)) {
      ++(value > 0 ? block.num_positive : block.num_negative);
    } else {
      ++block.num_finite;
      block.min = std::min(block.min, value);
      block.max = std::max(block.max, value);
      // Welford's update: sums do not grow with the number of elements and do not cancel.
      const double delta = value - block.mean;
      block.mean += delta / static_cast<double>(block.num_finite);
      block.squares += delta * (value - block.mean);
    }
  }
  return block;
}

// Handles up to kChunk values. Sums of values of at most kLarge cannot overflow; they are in lanes
// that the compiler vectorizes.
BlockStats SummarizeChunk(const double* values, int64_t count) {
  constexpr double kLarge = 1e150;
  constexpr int64_t kLanes = 8;
  int64_t special = 0;
  for (int64_t i = 0; i < count; ++i) special += std::fabs(values[i]) <= kLarge ? 0 : 1;
  if (special > 0 || count < kLanes) return SummarizeSpecial(values, count);
  double sums[kLanes] = {};
  double mins[kLanes];
  double maxs[kLanes];
  std::copy_n(values, kLanes, mins);
  std::copy_n(values, kLanes, maxs);
  const int64_t whole = count - count % kLanes;
  for (int64_t i = 0; i < whole; i += kLanes) {
    for (int64_t k = 0; k < kLanes; ++k) {
      const double value = values[i + k];
      sums[k] += value;
      mins[k] = value < mins[k] ? value : mins[k];
      maxs[k] = value > maxs[k] ? value : maxs[k];
    }
  }
  for (int64_t i = whole; i < count; ++i) {
    sums[0] += values[i];
    mins[0] = std::min(mins[0], values[i]);
    maxs[0] = std::max(maxs[0], values[i]);
  }
  BlockStats block;
  block.num_finite = count;
  double sum = 0;
  for (int64_t k = 0; k < kLanes; ++k) {
    sum += sums[k];
    block.min = std::min(block.min, mins[k]);
    block.max = std::max(block.max, maxs[k]);
  }
  block.mean = sum / static_cast<double>(count);
  double squares[kLanes] = {};
  for (int64_t i = 0; i < whole; i += kLanes) {
    for (int64_t k = 0; k < kLanes; ++k) {
      const double delta = values[i + k] - block.mean;
      squares[k] += delta * delta;
    }
  }
  for (int64_t i = whole; i < count; ++i) {
    squares[0] += (values[i] - block.mean) * (values[i] - block.mean);
  }
  for (const double square : squares) block.squares += square;
  return block;
}

// Calls fn(values, count) for the elements of a block, a chunk at a time.
template <typename Fn>
void ForEachChunk(const char* data, const ElementReader& read, int64_t begin, int64_t end,
                  const Fn& fn) {
  double values[kChunk];
  for (int64_t i = begin; i < end; i += kChunk) {
    const int64_t count = std::min(kChunk, end - i);
    read.ReadChunk(data, i, count, values);
    fn(values, count);
  }
}

// Calls fn(block, begin, end) for all blocks.
template <typename Fn>
void ForEachBlock(int64_t size, const ForEachIndex& for_each, const Fn& fn) {
  const int64_t num_blocks = (size + kBlockSize - 1) / kBlockSize;
  for_each(num_blocks, [&](int64_t block) {
    fn(block, block * kBlockSize, std::min(size, (block + 1) * kBlockSize));
  });
}

// Counts the finite values of a chunk in their bins.
void CountBins(const double* values, int64_t count, const TensorStats& stats,
               std::vector<int64_t>* counts) {
  // Uses halves, because the difference of two doubles may overflow.
  const double low = stats.min / 2;
  const double range = stats.max / 2 - low;
  // Values that are not finite go into an additional last bin. If min equals max, all finite values
  // go into the first bin.
  int bins[kChunk];
  for (int64_t i = 0; i < count; ++i) {
    const double part = (values[i] / 2 - low) / range * kHistogramBins;
    const double bounded = part < kHistogramBins - 1 ? part : kHistogramBins - 1;
    bins[i] = std::fabs(values[i]) <= std::numeric_limits<double>::max()
                  ? static_cast<int>(range > 0 ? bounded : 0)
                  : kHistogramBins;
  }
  for (int64_t i = 0; i < count; ++i) ++(*counts)[bins[i]];
}

}  // namespace

ForEachIndex OnAllCores() {
  return [](int64_t count, const std::function<void(int64_t)>& fn) {
    ParallelFor(RunContext(), count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) fn(i);
    });
  };
}

TensorStats ComputeTensorStats(const Tensor& tensor, const ForEachIndex& for_each) {
  TensorStats stats;
  const ElementReader read = ReaderOf(tensor.dtype());
  const int64_t size = read.has_numbers() ? tensor.NumElements() : 0;
  const char* const data = size == 0 ? nullptr : tensor.tensor_data().data();
  const int64_t num_blocks = (size + kBlockSize - 1) / kBlockSize;
  std::vector<BlockStats> blocks(num_blocks);
  ForEachBlock(size, for_each, [&](int64_t block, int64_t begin, int64_t end) {
    ForEachChunk(data, read, begin, end, [&](const double* values, int64_t count) {
      Add(SummarizeChunk(values, count), &blocks[block]);
    });
  });
  BlockStats sum;
  for (const BlockStats& block : blocks) Add(block, &sum);
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
  // The additional bin is for values that are not finite. Initialized to 0, because a loop of a
  // stopped run may skip blocks.
  std::vector<std::vector<int64_t>> counts(num_blocks, std::vector<int64_t>(kHistogramBins + 1));
  ForEachBlock(size, for_each, [&](int64_t block, int64_t begin, int64_t end) {
    ForEachChunk(data, read, begin, end, [&](const double* values, int64_t count) {
      CountBins(values, count, stats, &counts[block]);
    });
  });
  stats.histogram.resize(kHistogramBins);
  for (const std::vector<int64_t>& count : counts) {
    for (int bin = 0; bin < kHistogramBins; ++bin) stats.histogram[bin] += count[bin];
  }
  return stats;
}

std::vector<double> MakeTensorCurve(const Tensor& tensor, const ForEachIndex& for_each) {
  const ElementReader read = ReaderOf(tensor.dtype());
  const int64_t size = tensor.NumElements();
  const auto dims = tensor.shape().dim_sizes();
  if (!read.has_numbers() || size < 2 || std::find(dims.begin(), dims.end(), size) == dims.end()) {
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
    // The first parts get the remaining elements.
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
  const ElementReader read = ReaderOf(tensor.dtype());
  if (!read.has_numbers() || tensor.dims() == 0 || tensor.NumElements() == 0) return picture;
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
