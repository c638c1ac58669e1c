#include "gradflow/ops/linalg/integer_batch_matmul.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "gradflow/core/fixed_point.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/strided_copy.h"
#include "gradflow/ops/quant/integer_product.h"

namespace gradflow {
namespace {

// Sums of this many products of two integers fit in 32 bits.
constexpr int64_t kMaxInner = std::numeric_limits<int32_t>::max() / (255 * 255);

// A view of a matrix of bytes.
struct ByteMatrix {
  const uint8_t* data;
  int64_t row_stride;
  int64_t column_stride;
};

// Multiplies pairs of matrices. Each thread has one.
class PairMultiplier {
 public:
  PairMultiplier(const IntegerFormKernel::Args& args, const IntegerResult& result, int64_t inner,
                 int64_t columns)
      : zero_x_(args.inputs[0].zero_point),
        zero_y_(args.inputs[1].zero_point),
        inner_(inner),
        columns_(columns),
        groups_(NumBlocks(inner, kIntegerGroup)),
        coefficients_(result, 0, columns),
        packed_(static_cast<size_t>(NumBlocks(columns, kIntegerBlock) * kIntegerBlock * groups_ *
                                    kIntegerGroup)) {
    // Sums with the packed integers, which are signed, lack this multiple of the sum of a row of x.
    if (zero_y_ != kSigned) {
      coefficients_.row_factor.assign(coefficients_.sum_offset.size(), kSigned - zero_y_);
    }
  }

  // Packs y [inner, columns].
  void Pack(const ByteMatrix& y) {
    std::vector<int32_t>& offset = coefficients_.sum_offset;
    std::fill(offset.begin(), offset.end(), 0);
    for (int64_t first = 0; first < columns_; first += kIntegerBlock) {
      const int64_t n = std::min(kIntegerBlock, columns_ - first);
      int8_t* to = packed_.data() + first * groups_ * kIntegerGroup;
      for (int64_t k = 0; k < inner_; k += kIntegerGroup) {
        const int64_t some = std::min(kIntegerGroup, inner_ - k);
        const uint8_t* const from = y.data + k * y.row_stride + first * y.column_stride;
        for (int64_t c = 0; c < n; ++c, to += kIntegerGroup) {
          int32_t sum = 0;
          for (int64_t i = 0; i < some; ++i) {
            const int32_t q = from[i * y.row_stride + c * y.column_stride];
            to[i] = static_cast<int8_t>(q - kSigned);
            sum += q;
          }
          offset[static_cast<size_t>(first + c)] += sum;
        }
        to += (kIntegerBlock - n) * kIntegerGroup;
      }
    }
    for (int32_t& sum : offset) {
      sum = static_cast<int32_t>(-zero_x_ * (sum - inner_ * zero_y_));
    }
  }

  // Sets out[rows, columns] to the rows [first, first + rows) of the product of x [rows, inner] and
  // the packed matrix.
  void Multiply(const ByteMatrix& x, int64_t first, int64_t rows, uint8_t* out) const {
    constexpr int64_t kRows = 8 * kIntegerRows;
    std::vector<uint8_t> copy;
    int32_t row_sums[kRows];
    const bool copies = x.column_stride != 1 || inner_ % kIntegerGroup != 0;
    if (copies) copy.resize(static_cast<size_t>(kRows * groups_ * kIntegerGroup));
    const IntegerStore store = coefficients_.store();
    IntegerProductTile tile;
    tile.groups = groups_;
    tile.weights = packed_.data();
    tile.channel = 0;
    tile.channels = columns_;
    tile.y_stride = columns_;
    tile.row_sums = store.row_factor == nullptr ? nullptr : row_sums;
    for (int64_t row = first; row < first + rows; row += kRows) {
      tile.rows = std::min(kRows, first + rows - row);
      tile.x = x.data + row * x.row_stride;
      tile.x_stride = x.row_stride;
      tile.y = out + row * columns_;
      if (copies) {
        CopyRows(x, row, tile.rows, copy.data());
        tile.x = copy.data();
        tile.x_stride = groups_ * kIntegerGroup;
      }
      if (tile.row_sums != nullptr) {
        for (int64_t r = 0; r < tile.rows; ++r) {
          const uint8_t* const from = tile.x + r * tile.x_stride;
          int32_t sum = 0;
          for (int64_t k = 0; k < inner_; ++k) sum += from[k];
          row_sums[r] = sum;
        }
      }
      MultiplyIntegers(tile, store);
    }
  }

 private:
  // Half of the range of a byte.
  static constexpr int32_t kSigned = 128;

  void CopyRows(const ByteMatrix& x, int64_t row, int64_t rows, uint8_t* to) const {
    for (int64_t r = 0; r < rows; ++r, to += groups_ * kIntegerGroup) {
      const uint8_t* const from = x.data + (row + r) * x.row_stride;
      if (x.column_stride == 1) {
        std::memcpy(to, from, static_cast<size_t>(inner_));
      } else {
        for (int64_t k = 0; k < inner_; ++k) to[k] = from[k * x.column_stride];
      }
    }
  }

  const int32_t zero_x_;
  const int32_t zero_y_;
  const int64_t inner_;
  const int64_t columns_;
  const int64_t groups_;
  IntegerCoefficients coefficients_;
  std::vector<int8_t> packed_;
};

class IntegerBatchMatMul final : public OpKernel {
 public:
  IntegerBatchMatMul(const IntegerFormKernel::Args& args, bool transpose_x, bool transpose_y,
                     bool rounds_once, IntegerProductShape shape)
      : args_(args),
        transpose_x_(transpose_x),
        transpose_y_(transpose_y),
        shape_(std::move(shape)) {
    // TensorFlow Lite multiplies the scales in float.
    double scale = static_cast<double>(args.inputs[0].scale) * args.inputs[1].scale;
    if (args.tflite_rounding) scale = args.inputs[0].scale * args.inputs[1].scale;
    const double factor = args.factor * scale / args.format.scale;
    result_.multiplier = {static_cast<float>(factor)};
    result_.offset = {0};
    result_.lowest = args.lowest;
    result_.highest = args.highest;
    result_.zero_point = args.format.zero_point;
    if (args.tflite_rounding) {
      result_.fixed = {ToFixedPoint(factor)};
      result_.fixed_offset = {0};
      result_.rounds_once = rounds_once;
    }
  }

  absl::Status Compute(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    const Tensor& y = ctx.input(1);
    if (x.dtype() != DT_UINT8 || y.dtype() != DT_UINT8) {
      return errors::InvalidArgument("x and y must be of type uint8, but are ",
                                     DataTypeString(x.dtype()), " and ", DataTypeString(y.dtype()));
    }
    GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, shape_(ctx));
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
    if (output->NumElements() == 0) return absl::OkStatus();
    const int rank = shape.dims();
    const int64_t rows = shape.dim_size(rank - 2);
    const int64_t columns = shape.dim_size(rank - 1);
    const int64_t inner = x.dim_size(x.dims() - (transpose_x_ ? 2 : 1));
    ByteMatrix x_view = {nullptr, inner, 1};
    if (transpose_x_) x_view = {nullptr, 1, rows};
    ByteMatrix y_view = {nullptr, columns, 1};
    if (transpose_y_) y_view = {nullptr, 1, inner};
    const absl::Span<const int64_t> batch_dims = shape.dim_sizes().first(rank - 2);
    const DimVector x_strides = Strides(x, batch_dims);
    const DimVector y_strides = Strides(y, batch_dims);
    const int64_t batches = output->NumElements() / (rows * columns);
    const auto at = [&](const Tensor& tensor, const DimVector& strides, int64_t batch) {
      int64_t offset = 0;
      for (size_t d = batch_dims.size(); d-- > 0 && batch > 0;) {
        offset += batch % batch_dims[d] * strides[d];
        batch /= batch_dims[d];
      }
      return static_cast<const uint8_t*>(tensor.raw_data()) + offset;
    };
    auto* const out = static_cast<uint8_t*>(output->raw_data());
    if (inner > kMaxInner) {
      ParallelFor(ctx, output->NumElements(), BlockSizeForCost(static_cast<double>(inner)),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; ++i) {
                      const int64_t batch = i / (rows * columns);
                      ByteMatrix a = x_view;
                      ByteMatrix b = y_view;
                      a.data = at(x, x_strides, batch) + i / columns % rows * a.row_stride;
                      b.data = at(y, y_strides, batch) + i % columns * b.column_stride;
                      out[i] = Round(WideSum(a, b, inner));
                    }
                  });
      return absl::OkStatus();
    }
    const double row_cost = 0.02 * static_cast<double>(inner) * static_cast<double>(columns);
    if (batches == 1) {
      PairMultiplier multiplier(args_, result_, inner, columns);
      x_view.data = static_cast<const uint8_t*>(x.raw_data());
      y_view.data = static_cast<const uint8_t*>(y.raw_data());
      multiplier.Pack(y_view);
      ParallelFor(ctx, rows, NumBlocks(BlockSizeForCost(row_cost), kIntegerRows) * kIntegerRows,
                  [&](int64_t begin, int64_t end) {
                    multiplier.Multiply(x_view, begin, end - begin, out);
                  });
      return absl::OkStatus();
    }
    ParallelFor(ctx, batches, BlockSizeForCost(row_cost * static_cast<double>(rows)),
                [&](int64_t begin, int64_t end) {
                  PairMultiplier multiplier(args_, result_, inner, columns);
                  ByteMatrix a = x_view;
                  ByteMatrix b = y_view;
                  for (int64_t i = begin; i < end; ++i) {
                    a.data = at(x, x_strides, i);
                    b.data = at(y, y_strides, i);
                    multiplier.Pack(b);
                    multiplier.Multiply(a, 0, rows, out + i * rows * columns);
                  }
                });
    return absl::OkStatus();
  }

 private:
  // Returns the sum of products of a row of x and a column of y.
  int64_t WideSum(const ByteMatrix& x, const ByteMatrix& y, int64_t inner) const {
    int64_t sum = 0;
    for (int64_t k = 0; k < inner; ++k) {
      sum += (x.data[k * x.column_stride] - args_.inputs[0].zero_point) *
             (y.data[k * y.row_stride] - args_.inputs[1].zero_point);
    }
    return sum;
  }

  // Returns the result for a sum that may exceed 32 bits.
  uint8_t Round(int64_t sum) const {
    float steps = static_cast<float>(sum) * result_.multiplier[0];
    if (!result_.fixed.empty()) {
      const auto lite_sum = static_cast<int32_t>(sum);
      const FixedPoint factor = result_.fixed[0];
      steps = static_cast<float>(result_.rounds_once ? MultiplyOnce(lite_sum, factor)
                                                     : gradflow::Multiply(lite_sum, factor));
    }
    return static_cast<uint8_t>(
        static_cast<int32_t>(std::nearbyint(std::clamp(steps, result_.lowest, result_.highest))) +
        result_.zero_point);
  }

  // Returns the strides of the batch dimensions.
  static DimVector Strides(const Tensor& tensor, absl::Span<const int64_t> batch_dims) {
    const absl::Span<const int64_t> dims = tensor.shape().dim_sizes();
    DimVector strides = BroadcastStrides(dims.first(dims.size() - 2), batch_dims);
    const int64_t matrix = dims[dims.size() - 1] * dims[dims.size() - 2];
    for (int64_t& stride : strides) stride *= matrix;
    return strides;
  }

  const IntegerFormKernel::Args args_;
  const bool transpose_x_;
  const bool transpose_y_;
  const IntegerProductShape shape_;
  IntegerResult result_;
};

}  // namespace

std::shared_ptr<const OpKernel> MakeIntegerBatchMatMul(const IntegerFormKernel::Args& args,
                                                       bool transpose_x, bool transpose_y,
                                                       bool rounds_once,
                                                       IntegerProductShape shape) {
  return std::make_shared<IntegerBatchMatMul>(args, transpose_x, transpose_y, rounds_once,
                                              std::move(shape));
}

}  // namespace gradflow
