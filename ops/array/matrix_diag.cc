// MatrixDiag, MatrixDiagPart, MatrixSetDiag and their versions V2 and V3, and MatrixBandPart.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/legacy_name.h"
#include "gradflow/ops/common/strided_copy.h"

namespace gradflow::matrix_diag {
namespace {

// The ops read or write diagonals of matrices. Diagonal k consists of the elements [i, i + k].
// Version 1 of the ops supports only the main diagonal. Since version 2, an input k selects the
// diagonals. Version 3 adds an attribute `align`. Several diagonals are stored as the rows of a
// matrix, from the upper to the lower diagonal, padded to the length of the longest.

// The diagonals from `lower` to `upper`. `upper_left` tells whether the main diagonal and the
// diagonals above it are aligned to the left of their rows, `lower_left` whether the diagonals
// below it are.
struct Band {
  int64_t lower = 0;
  int64_t upper = 0;
  bool upper_left = true;
  bool lower_left = true;

  int64_t num_diagonals() const { return upper - lower + 1; }
};

// Sets the alignment from the attribute `align` of version 3. REQUIRES: *band has its default
// alignment
absl::Status SetAlignment(const std::string& align, Band* band) {
  // The first word is the alignment of the main diagonal and of the diagonals above it.
  band->upper_left = absl::StartsWith(align, "LEFT");
  band->lower_left = absl::EndsWith(align, "LEFT");
  return absl::OkStatus();
}

// Sets the diagonals from the elements of input k.
absl::Status SetDiagonals(absl::Span<const int64_t> k, Band* band) {
  if (k.empty() || k.size() > 2) {
    return errors::InvalidArgument("k must have one or two elements, but has ", k.size());
  }
  band->lower = k.front();
  band->upper = k.back();
  if (band->lower <= band->upper) return absl::OkStatus();
  return errors::InvalidArgument("k must be in ascending order, but is ", band->lower, " and ",
                                 band->upper);
}

absl::Status CheckKShape(const PartialTensorShape& k) {
  if (k.unknown_rank() || k.dims() <= 1) return absl::OkStatus();
  return errors::InvalidArgument("k must be a scalar or a vector, but has shape ", k.DebugString());
}

// A band of matrices with `rows` rows and `columns` columns.
struct DiagonalBand {
  Band band;
  int64_t rows = 0;
  int64_t columns = 0;

  int64_t Length(int64_t k) const {
    return std::max<int64_t>(
        0, std::min(rows + std::min<int64_t>(k, 0), columns - std::max<int64_t>(k, 0)));
  }
  // The length of the longest diagonal.
  int64_t MaxLength() const {
    return std::max<int64_t>(0, std::min(rows + std::min<int64_t>(band.upper, 0),
                                         columns - std::max<int64_t>(band.lower, 0)));
  }
  // The position of the first element of diagonal k within its row.
  int64_t Offset(int64_t k) const {
    return (k >= 0 ? band.upper_left : band.lower_left) ? 0 : MaxLength() - Length(k);
  }

  // Returns INVALID_ARGUMENT unless the matrices have these diagonals. Every matrix has a main
  // diagonal.
  absl::Status Check() const {
    for (const int64_t k : {band.lower, band.upper}) {
      if (k == 0 || (k > -rows && k < columns)) continue;
      return errors::InvalidArgument("diagonal k = ", k, " is out of range (", -rows, ", ", columns,
                                     ") for matrices of shape [", rows, ",", columns, "]");
    }
    return absl::OkStatus();
  }
};

// Returns the shape of the diagonals of matrices with batch dimensions `batch`.
absl::StatusOr<PartialTensorShape> DiagonalsShape(absl::Span<const int64_t> batch,
                                                  const DiagonalBand& diagonals) {
  DimVector dims(batch.begin(), batch.end());
  if (diagonals.band.num_diagonals() > 1) dims.push_back(diagonals.band.num_diagonals());
  dims.push_back(diagonals.MaxLength());
  return PartialTensorShape::Make(dims);
}

// Reads the alignment. Only version 3 has the attribute.
template <int Version>
absl::Status ReadAlignment(const ShapeContext& c, Band* band) {
  if constexpr (Version == 3) {
    std::string align;
    GRADFLOW_RETURN_IF_ERROR(c.GetAttr("align", &align));
    return SetAlignment(align, band);
  }
  return absl::OkStatus();
}
// Reads the band. Input `k_input` is k, which version 1 does not have. Returns false if the
// diagonals are unknown.
template <int Version>
absl::StatusOr<bool> ReadBand(const ShapeContext& c, int k_input, Band* band) {
  GRADFLOW_RETURN_IF_ERROR(ReadAlignment<Version>(c, band));
  if constexpr (Version == 1) return true;
  GRADFLOW_RETURN_IF_ERROR(CheckKShape(c.input(k_input)));
  std::vector<int64_t> k;
  GRADFLOW_ASSIGN_OR_RETURN(const bool known, c.IntsFromInput(k_input, &k));
  if (known) GRADFLOW_RETURN_IF_ERROR(SetDiagonals(k, band));
  return known;
}

// The base class of the kernels. Reads the band of a run.
template <int Version>
class BandKernel : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    if constexpr (Version == 3) {
      std::string align;
      GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("align", &align));
      return SetAlignment(align, &band_);
    }
    return absl::OkStatus();
  }

 protected:
  absl::StatusOr<Band> ReadBand(const KernelContext& ctx, int k_input) const {
    Band band = band_;
    if constexpr (Version > 1) {
      GRADFLOW_RETURN_IF_ERROR(CheckKShape(ctx.input(k_input).shape()));
      GRADFLOW_ASSIGN_OR_RETURN(const DimVector k, ctx.Ints(k_input, "k"));
      GRADFLOW_RETURN_IF_ERROR(SetDiagonals(k, &band));
    }
    return band;
  }

 private:
  Band band_;
};

// Returns the scalar `padding_value`, which is an input since version 2; zero in version 1.
template <int Version>
absl::StatusOr<Tensor> PaddingValue(const KernelContext& ctx, int input) {
  if constexpr (Version == 1) return ZeroScalar(ctx.input_dtype(0));
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckScalar(input, "padding_value"));
  return ctx.input(input);
}

// ---- MatrixDiagPart ----

template <int Version>
absl::Status PartShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRankAtLeast(0, 2));
  if (Version > 1) GRADFLOW_RETURN_IF_ERROR(c.CheckRank(2, 0));
  DiagonalBand diagonals;
  GRADFLOW_ASSIGN_OR_RETURN(const bool known, ReadBand<Version>(c, 1, &diagonals.band));
  const PartialTensorShape& input = c.input(0);
  if (input.unknown_rank() || !known) return absl::OkStatus();
  const absl::Span<const int64_t> batch = input.dim_sizes().subspan(0, input.dims() - 2);
  diagonals.rows = c.Dim(0, -2);
  diagonals.columns = c.Dim(0, -1);
  PartialTensorShape shape;
  if (diagonals.rows >= 0 && diagonals.columns >= 0) {
    GRADFLOW_RETURN_IF_ERROR(diagonals.Check());
    GRADFLOW_ASSIGN_OR_RETURN(shape, DiagonalsShape(batch, diagonals));
  } else {
    DimVector dims(batch.begin(), batch.end());
    if (diagonals.band.num_diagonals() > 1) dims.push_back(diagonals.band.num_diagonals());
    dims.push_back(-1);
    GRADFLOW_ASSIGN_OR_RETURN(shape, PartialTensorShape::Make(dims));
  }
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

template <int Version>
class PartKernel final : public BandKernel<Version> {
 public:
  absl::Status Compute(KernelContext& ctx) const override {
    const Tensor& input = ctx.input(0);
    GRADFLOW_RETURN_IF_ERROR(CheckRankAtLeast("input", input.shape(), 2));
    DiagonalBand diagonals;
    GRADFLOW_ASSIGN_OR_RETURN(diagonals.band, this->ReadBand(ctx, 1));
    diagonals.rows = input.dim_size(input.dims() - 2);
    diagonals.columns = input.dim_size(input.dims() - 1);
    GRADFLOW_RETURN_IF_ERROR(diagonals.Check());
    GRADFLOW_ASSIGN_OR_RETURN(const Tensor padding, PaddingValue<Version>(ctx, 2));
    GRADFLOW_ASSIGN_OR_RETURN(
        const PartialTensorShape part,
        DiagonalsShape(input.shape().dim_sizes().subspan(0, input.dims() - 2), diagonals));
    if (input.dtype() == DT_STRING) {
      const double elements = static_cast<double>(part.num_elements());
      ctx.ExpectStringBytes(static_cast<double>(input.StringBytes()) +
                            elements * padding.StringBytes());
    }
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, TensorShape(part.dim_sizes()), &output));
    if (output->NumElements() == 0) return absl::OkStatus();
    DispatchElement(input.dtype(), [&](auto tag) {
      Copy<typename decltype(tag)::type>(ctx.run(), diagonals, input, padding, output);
    });
    return absl::OkStatus();
  }

 private:
  template <typename E>
  static void Copy(const RunContext& run, const DiagonalBand& diagonals, const Tensor& input,
                   const Tensor& padding, Tensor* output) {
    const E* from = static_cast<const E*>(input.raw_data());
    const E& pad = *static_cast<const E*>(padding.raw_data());
    E* to = static_cast<E*>(output->raw_data());
    const int64_t length = diagonals.MaxLength();
    const int64_t count = diagonals.band.num_diagonals();
    const int64_t stride = diagonals.columns + 1;
    const double cost = 5.0 + length * (1 + CopyNanoseconds(input.dtype()));
    ParallelFor(run, output->NumElements() / length, BlockSizeForCost(cost),
                [&](int64_t begin, int64_t end) {
                  for (int64_t r = begin; r < end; ++r) {
                    const int64_t k = diagonals.band.upper - r % count;
                    const E* source = from + r / count * diagonals.rows * diagonals.columns +
                                      (k >= 0 ? k : -k * diagonals.columns);
                    const int64_t offset = diagonals.Offset(k);
                    const int64_t own = diagonals.Length(k);
                    E* target = to + r * length;
                    std::fill_n(target, offset, pad);
                    for (int64_t i = 0; i < own; ++i) target[offset + i] = source[i * stride];
                    std::fill_n(target + offset + own, length - offset - own, pad);
                  }
                });
  }
};

// ---- MatrixDiag and MatrixSetDiag ----

// Overwrites the band of the matrices `output` with `diagonal`.
template <typename E>
void SetBand(const RunContext& run, const DiagonalBand& diagonals, const Tensor& diagonal,
             Tensor* output) {
  const E* from = static_cast<const E*>(diagonal.raw_data());
  E* to = static_cast<E*>(output->raw_data());
  const int64_t length = diagonals.MaxLength();
  const int64_t count = diagonals.band.num_diagonals();
  const int64_t rows = diagonals.rows;
  const int64_t columns = diagonals.columns;
  const double cost = 5.0 + std::min(count, columns) * (2 + CopyNanoseconds(diagonal.dtype()));
  ParallelFor(run, output->NumElements() / columns, BlockSizeForCost(cost),
              [&](int64_t begin, int64_t end) {
                for (int64_t r = begin; r < end; ++r) {
                  const int64_t i = r % rows;
                  const E* source = from + r / rows * count * length;
                  const int64_t first = std::max(diagonals.band.lower, -i);
                  const int64_t last = std::min(diagonals.band.upper, columns - 1 - i);
                  for (int64_t k = first; k <= last; ++k) {
                    const int64_t at = diagonals.Offset(k) + (k >= 0 ? i : i + k);
                    to[r * columns + i + k] = source[(diagonals.band.upper - k) * length + at];
                  }
                }
              });
}

absl::Status SetBand(KernelContext& ctx, const DiagonalBand& diagonals, const Tensor& diagonal,
                     Tensor* output) {
  if (output->NumElements() == 0 || diagonal.NumElements() == 0) return absl::OkStatus();
  DispatchElement(diagonal.dtype(), [&](auto tag) {
    SetBand<typename decltype(tag)::type>(ctx.run(), diagonals, diagonal, output);
  });
  return absl::OkStatus();
}

// Sets the sizes of the matrices whose diagonals are `diagonal`, a tensor of known rank. `rows` and
// `columns` are the inputs num_rows and num_cols; -1 means the smallest possible size.
absl::Status SetMatrixSizes(const PartialTensorShape& diagonal, int64_t rows, int64_t columns,
                            DiagonalBand* diagonals) {
  const Band& band = diagonals->band;
  const int64_t length = diagonal.dim_size(diagonal.dims() - 1);
  if (band.num_diagonals() > 1) {
    const int64_t count = diagonal.dims() < 2 ? -2 : diagonal.dim_size(diagonal.dims() - 2);
    if (count != -1 && count != band.num_diagonals()) {
      return errors::InvalidArgument("diagonal must have ", band.num_diagonals(),
                                     " rows, the diagonals of k, but has shape ",
                                     diagonal.DebugString());
    }
  }
  for (const auto& [name, size] : {std::pair("num_rows", rows), std::pair("num_cols", columns)}) {
    if (size < -1) return errors::InvalidArgument(name, " must be at least -1, but is ", size);
  }
  if (length < 0) {
    diagonals->rows = rows;
    diagonals->columns = columns;
    return absl::OkStatus();
  }
  int64_t least_rows = 0;
  int64_t least_columns = 0;
  if (__builtin_sub_overflow(length, std::min<int64_t>(band.upper, 0), &least_rows) ||
      __builtin_add_overflow(length, std::max<int64_t>(band.lower, 0), &least_columns)) {
    return errors::InvalidArgument("diagonals ", band.lower, " to ", band.upper, " of length ",
                                   length, " need matrices of more than 2^63 - 1 rows or columns");
  }
  const bool square = rows == -1 && columns == -1;
  const int64_t side = std::max(least_rows, least_columns);
  diagonals->rows = square ? side : rows == -1 ? least_rows : rows;
  diagonals->columns = square ? side : columns == -1 ? least_columns : columns;
  if (diagonals->rows < least_rows || diagonals->columns < least_columns ||
      (diagonals->rows != least_rows && diagonals->columns != least_columns)) {
    return errors::InvalidArgument("matrices of shape [", diagonals->rows, ",", diagonals->columns,
                                   "] have no diagonals ", band.lower, " to ", band.upper,
                                   " of length ", length, ", the last dimension of diagonal, of ",
                                   "shape ", diagonal.DebugString());
  }
  return length == 0 ? absl::OkStatus() : diagonals->Check();
}

// Returns the shape of the matrices.
absl::StatusOr<PartialTensorShape> MatricesShape(const PartialTensorShape& diagonal,
                                                 const DiagonalBand& diagonals) {
  const int batch = diagonal.dims() - (diagonals.band.num_diagonals() > 1 ? 2 : 1);
  DimVector dims(diagonal.dim_sizes().begin(), diagonal.dim_sizes().begin() + batch);
  dims.insert(dims.end(), {diagonals.rows, diagonals.columns});
  return PartialTensorShape::Make(dims);
}

template <int Version>
absl::Status DiagShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRankAtLeast(0, 1));
  DiagonalBand diagonals;
  GRADFLOW_ASSIGN_OR_RETURN(bool known, ReadBand<Version>(c, 1, &diagonals.band));
  std::vector<int64_t> rows = {-1};
  std::vector<int64_t> columns = {-1};
  if constexpr (Version > 1) {
    for (int i = 2; i <= 4; ++i) GRADFLOW_RETURN_IF_ERROR(c.CheckRank(i, 0));
    GRADFLOW_ASSIGN_OR_RETURN(const bool rows_known, c.IntsFromInput(2, &rows));
    GRADFLOW_ASSIGN_OR_RETURN(const bool columns_known, c.IntsFromInput(3, &columns));
    if (known && !c.input(0).unknown_rank() && !(rows_known && columns_known)) {
      const int more = diagonals.band.num_diagonals() > 1 ? 0 : 1;
      c.set_output(0, PartialTensorShape::UnknownOfRank(c.input(0).dims() + more));
    }
    known = known && rows_known && columns_known;
  }
  if (c.input(0).unknown_rank() || !known) return absl::OkStatus();
  GRADFLOW_RETURN_IF_ERROR(SetMatrixSizes(c.input(0), rows[0], columns[0], &diagonals));
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, MatricesShape(c.input(0), diagonals));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

template <int Version>
class DiagKernel final : public BandKernel<Version> {
 public:
  absl::Status Compute(KernelContext& ctx) const override {
    const Tensor& diagonal = ctx.input(0);
    GRADFLOW_RETURN_IF_ERROR(CheckRankAtLeast("diagonal", diagonal.shape(), 1));
    DiagonalBand diagonals;
    GRADFLOW_ASSIGN_OR_RETURN(diagonals.band, this->ReadBand(ctx, 1));
    int64_t rows = -1;
    int64_t columns = -1;
    if constexpr (Version > 1) {
      GRADFLOW_ASSIGN_OR_RETURN(rows, ctx.ScalarInt(2, "num_rows"));
      GRADFLOW_ASSIGN_OR_RETURN(columns, ctx.ScalarInt(3, "num_cols"));
    }
    GRADFLOW_ASSIGN_OR_RETURN(const Tensor padding, PaddingValue<Version>(ctx, 4));
    GRADFLOW_RETURN_IF_ERROR(SetMatrixSizes(diagonal.shape(), rows, columns, &diagonals));
    GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape matrices,
                              MatricesShape(diagonal.shape(), diagonals));
    const TensorShape shape(matrices.dim_sizes());
    if (diagonal.dtype() == DT_STRING) {
      ctx.ExpectStringBytes(static_cast<double>(diagonal.StringBytes()) +
                            static_cast<double>(shape.num_elements()) * padding.StringBytes());
    }
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
    FillAll(ctx.run(), padding, output);
    return SetBand(ctx, diagonals, diagonal, output);
  }
};

// Returns INVALID_ARGUMENT unless `diagonal` may have the shape of the diagonals of `input`.
absl::Status CheckDiagonal(const PartialTensorShape& input, const PartialTensorShape& diagonal,
                           DiagonalBand* diagonals) {
  diagonals->rows = input.dim_size(input.dims() - 2);
  diagonals->columns = input.dim_size(input.dims() - 1);
  if (diagonals->rows < 0 || diagonals->columns < 0) return absl::OkStatus();
  GRADFLOW_RETURN_IF_ERROR(diagonals->Check());
  GRADFLOW_ASSIGN_OR_RETURN(
      const PartialTensorShape expected,
      DiagonalsShape(input.dim_sizes().subspan(0, input.dims() - 2), *diagonals));
  if (diagonal.IsCompatibleWith(expected)) return absl::OkStatus();
  return errors::InvalidArgument("diagonal has shape ", diagonal.DebugString(), ", expected ",
                                 expected.DebugString(), ", the shape of the diagonals ",
                                 diagonals->band.lower, " to ", diagonals->band.upper,
                                 " of input, of shape ", input.DebugString());
}

template <int Version>
absl::Status SetDiagShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRankAtLeast(0, 2));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRankAtLeast(1, 1));
  DiagonalBand diagonals;
  GRADFLOW_ASSIGN_OR_RETURN(const bool known, ReadBand<Version>(c, 2, &diagonals.band));
  if (!c.input(0).unknown_rank() && known) {
    GRADFLOW_RETURN_IF_ERROR(CheckDiagonal(c.input(0), c.input(1), &diagonals));
  }
  c.set_output(0, c.input(0));
  return absl::OkStatus();
}

template <int Version>
class SetDiagKernel final : public BandKernel<Version> {
 public:
  absl::Status Compute(KernelContext& ctx) const override {
    const TensorShape& input = ctx.input(0).shape();
    GRADFLOW_RETURN_IF_ERROR(CheckRankAtLeast("input", input, 2));
    DiagonalBand diagonals;
    GRADFLOW_ASSIGN_OR_RETURN(diagonals.band, this->ReadBand(ctx, 2));
    GRADFLOW_RETURN_IF_ERROR(CheckDiagonal(input, ctx.input(1).shape(), &diagonals));
    if (ctx.input_dtype(0) == DT_STRING) {
      ctx.ExpectStringBytes(static_cast<double>(ctx.input(0).StringBytes()) +
                            static_cast<double>(ctx.input(1).StringBytes()));
    }
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(OutputCopy(ctx, 0, &output));
    return SetBand(ctx, diagonals, ctx.input(1), output);
  }
};

// ---- MatrixBandPart ----

// Returns INVALID_ARGUMENT unless the numbers of diagonals are valid for `input`, which has a known
// rank.
absl::Status CheckBand(const PartialTensorShape& input, int64_t lower, int64_t upper) {
  const int64_t rows = input.dim_size(input.dims() - 2);
  const int64_t columns = input.dim_size(input.dims() - 1);
  if (rows >= 0 && lower > rows) {
    return errors::InvalidArgument("num_lower must be at most ", rows, ", the number of rows of ",
                                   "input, but is ", lower);
  }
  if (columns >= 0 && upper > columns) {
    return errors::InvalidArgument("num_upper must be at most ", columns, ", the number of ",
                                   "columns of input, but is ", upper);
  }
  return absl::OkStatus();
}

absl::Status BandPartShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRankAtLeast(0, 2));
  std::vector<int64_t> bounds[2] = {{-1}, {-1}};
  for (int i = 0; i < 2; ++i) {
    GRADFLOW_RETURN_IF_ERROR(c.CheckRank(i + 1, 0));
    GRADFLOW_RETURN_IF_ERROR(c.IntsFromInput(i + 1, &bounds[i]).status());
  }
  if (!c.input(0).unknown_rank()) {
    GRADFLOW_RETURN_IF_ERROR(CheckBand(c.input(0), bounds[0][0], bounds[1][0]));
  }
  c.set_output(0, c.input(0));
  return absl::OkStatus();
}

absl::Status BandPart(KernelContext& ctx) {
  const TensorShape shape = ctx.input(0).shape();
  GRADFLOW_RETURN_IF_ERROR(CheckRankAtLeast("input", shape, 2));
  GRADFLOW_ASSIGN_OR_RETURN(const int64_t lower, ctx.ScalarInt(1, "num_lower"));
  GRADFLOW_ASSIGN_OR_RETURN(const int64_t upper, ctx.ScalarInt(2, "num_upper"));
  GRADFLOW_RETURN_IF_ERROR(CheckBand(shape, lower, upper));
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.ForwardInputOrAllocateOutput(0, 0, shape, &output));
  if (shape.num_elements() == 0) return absl::OkStatus();
  const int64_t rows = shape.dim_size(shape.dims() - 2);
  const int64_t columns = shape.dim_size(shape.dims() - 1);
  DispatchElement(output->dtype(), [&](auto tag) {
    using E = typename decltype(tag)::type;
    const E* from = static_cast<const E*>(ctx.input(0).raw_data());
    E* to = static_cast<E*>(output->raw_data());
    const double cost = 5.0 + columns * CopyNanoseconds(output->dtype());
    ParallelFor(ctx, shape.num_elements() / columns, BlockSizeForCost(cost),
                [&](int64_t begin, int64_t end) {
                  for (int64_t r = begin; r < end; ++r) {
                    const int64_t i = r % rows;
                    const int64_t first =
                        lower < 0 ? 0 : std::clamp<int64_t>(i - lower, 0, columns);
                    const int64_t last =
                        upper < 0 ? columns : std::clamp<int64_t>(i + upper + 1, first, columns);
                    E* row = to + r * columns;
                    std::fill_n(row, first, E());
                    if (from != to) {
                      std::copy_n(from + r * columns + first, last - first, row + first);
                    }
                    std::fill_n(row + last, columns - last, E());
                  }
                });
  });
  return absl::OkStatus();
}

constexpr char kAlign[] = R"(
align: The alignment of short diagonals within their rows. The first word is for the main diagonal
  and the diagonals above it, the second word for the diagonals below it. "RIGHT_LEFT" aligns the
  upper diagonals to the right and the lower diagonals to the left.)";
constexpr char kK[] = R"(
k: A scalar: the diagonal; or a vector: the lowest and the highest diagonal. 0 is the main diagonal,
  positive diagonals are above it.)";

template <int Version>
void RegisterVersion(Registry& registry, const std::string& suffix) {
  const auto align = [](Registry::OpRegistrar& op) -> Registry::OpRegistrar& {
    if (Version < 3) return op;
    return op.Attr(
        "align: {'LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT', 'RIGHT_RIGHT'} = 'RIGHT_LEFT'");
  };
  const char* const align_doc = Version == 3 ? kAlign : "";

  {
    Registry::OpRegistrar op = registry.Op("MatrixDiag" + suffix);
    op.Group("array_ops").Input("diagonal: T").Output("output: T").Attr("T: type");
    if (Version > 1) {
      op.Input("k: int32").Input("num_rows: int32").Input("num_cols: int32");
      op.Input("padding_value: T");
    }
    align(op).Shape(DiagShape<Version>);
    if (Version == 1) {
      op.Doc(R"(Returns matrices with given main diagonals, and zeros elsewhere.

diagonal: The diagonals, in the last dimension.
output: The matrices, in the last two dimensions.
T: The type of `diagonal`.)");
    } else {
      op.Doc(absl::StrCat(R"(Returns matrices with given diagonals.

diagonal: The diagonals: one in the last dimension, or several in the last two, from the highest to
  the lowest. Shorter diagonals are padded to the length of the longest.)",
                          kK, R"(
num_rows: A scalar: the number of rows; -1 for the smallest possible number.
num_cols: A scalar: the number of columns; -1 for the smallest possible number. If both are -1, the
  matrices are square.
padding_value: A scalar: the value of the other elements.
output: The matrices, in the last two dimensions.
T: The type of `diagonal`.)",
                          align_doc));
    }
  }
  registry.Kernel("MatrixDiag" + suffix, MakeKernel<DiagKernel<Version>>);

  {
    Registry::OpRegistrar op = registry.Op("MatrixDiagPart" + suffix);
    op.Group("array_ops").Input("input: T").Output("diagonal: T").Attr("T: type");
    if (Version > 1) op.Input("k: int32").Input("padding_value: T");
    align(op).Shape(PartShape<Version>);
    if (Version == 1) {
      op.Doc(R"(Returns the main diagonals of matrices.

input: The matrices, in the last two dimensions.
diagonal: The diagonals, in the last dimension.
T: The type of `input`.)");
    } else {
      op.Doc(absl::StrCat(R"(Returns diagonals of matrices.

input: The matrices, in the last two dimensions.)",
                          kK, R"(
padding_value: A scalar: the padding of shorter diagonals to the length of the longest.
diagonal: The diagonals: one in the last dimension, or several in the last two, from the highest to
  the lowest.
T: The type of `input`.)",
                          align_doc));
    }
  }
  registry.Kernel("MatrixDiagPart" + suffix, MakeKernel<PartKernel<Version>>);

  {
    Registry::OpRegistrar op = registry.Op("MatrixSetDiag" + suffix);
    op.Group("array_ops").Input("input: T").Input("diagonal: T").Output("output: T");
    op.Attr("T: type");
    if (Version > 1) op.Input("k: int32");
    align(op).Shape(SetDiagShape<Version>);
    op.Doc(absl::StrCat(R"(Replaces diagonals of matrices.

input: The matrices, in the last two dimensions. They are not changed.
diagonal: The new diagonals: one in the last dimension, or several in the last two, from the highest
  to the lowest, padded to the length of the longest.)",
                        Version == 1 ? "" : kK, R"(
output: The matrices with these diagonals.
T: The type of `input`.)",
                        align_doc));
  }
  registry.Kernel("MatrixSetDiag" + suffix, MakeKernel<SetDiagKernel<Version>>);
}

}  // namespace

void Register(Registry& registry) {
  RegisterVersion<1>(registry, "");
  RegisterVersion<2>(registry, "V2");
  RegisterVersion<3>(registry, "V3");
  RegisterLegacyName(registry, {"BatchMatrixDiag", "MatrixDiag", 14, "", {}},
                     MakeKernel<DiagKernel<1>>);
  RegisterLegacyName(registry, {"BatchMatrixDiagPart", "MatrixDiagPart", 14, "", {}},
                     MakeKernel<PartKernel<1>>);
  RegisterLegacyName(registry, {"BatchMatrixSetDiag", "MatrixSetDiag", 14, "", {}},
                     MakeKernel<SetDiagKernel<1>>);

  registry.Op("MatrixBandPart")
      .Group("array_ops")
      .Input("input: T")
      .Input("num_lower: Tindex")
      .Input("num_upper: Tindex")
      .Output("band: T")
      .Attr("T: type")
      .Attr("Tindex: {int32, int64} = DT_INT64")
      .Shape(BandPartShape)
      .Doc(R"(Keeps a band of matrices around the main diagonal, and sets other elements to zero.

input: The matrices, in the last two dimensions.
num_lower: A scalar: the number of diagonals to keep below the main one; negative for all.
num_upper: A scalar: the number of diagonals to keep above the main one; negative for all.
band: The matrices with zeros, or empty strings, outside the band.
T: The type of `input`.
Tindex: The type of the numbers.)");
  registry.Kernel("MatrixBandPart", MakeFunctionKernel<BandPart>);
  RegisterLegacyName(registry, {"BatchMatrixBandPart", "MatrixBandPart", 14, "Tindex", {DT_INT64}},
                     MakeFunctionKernel<BandPart>);
}

}  // namespace gradflow::matrix_diag
