// TridiagonalMatMul and TridiagonalSolve.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "gradflow/core/registry.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/data_types.h"
#include "gradflow/ops/linalg/matrices.h"

namespace gradflow::tridiagonal {
namespace {

using Types = TypeList<float, double, complex64, complex128>;

// Checks diagonals [..., rows, m] against rhs [..., m, n].
absl::Status CheckDiagonals(absl::string_view name, const PartialTensorShape& diagonals,
                            const PartialTensorShape& rhs, int64_t rows) {
  GRADFLOW_RETURN_IF_ERROR(CheckMatrices(name, diagonals));
  GRADFLOW_RETURN_IF_ERROR(CheckMatrices("rhs", rhs));
  if (diagonals.unknown_rank()) return absl::OkStatus();
  if (!rhs.unknown_rank()) {
    GRADFLOW_RETURN_IF_ERROR(MergeShapes(absl::StrCat("the batch of ", name),
                                         PartialTensorShape(BatchDims(diagonals)),
                                         "the batch of rhs", PartialTensorShape(BatchDims(rhs)))
                                 .status());
    GRADFLOW_RETURN_IF_ERROR(MergeDims(name, diagonals, -1, "rhs", rhs, -2).status());
  }
  return CheckDim(name, diagonals, -2, rows);
}

// ---- TridiagonalMatMul ----

constexpr const char* kDiagonalNames[] = {"superdiag", "maindiag", "subdiag"};

absl::Status MatMulShape(ShapeContext& c) {
  for (int i = 0; i < 3; ++i) {
    GRADFLOW_RETURN_IF_ERROR(CheckDiagonals(kDiagonalNames[i], c.input(i), c.input(3), 1));
  }
  c.set_output(0, c.input(3));
  return absl::OkStatus();
}

absl::Status TridiagonalMatMul(KernelContext& ctx) {
  const Tensor& rhs = ctx.input(3);
  GRADFLOW_RETURN_IF_ERROR(CheckTypes(ctx, 4, ctx.expected_output_dtype(0)));
  for (int i = 0; i < 3; ++i) {
    GRADFLOW_RETURN_IF_ERROR(
        CheckDiagonals(kDiagonalNames[i], ctx.input(i).shape(), rhs.shape(), 1));
  }
  Tensor* out = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, rhs.shape(), &out));
  const MatrixBatch batch(rhs.shape());
  const int64_t m = batch.rows;
  const int64_t n = batch.columns;
  DispatchType(Types(), rhs.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* super = static_cast<const T*>(ctx.input(0).raw_data());
    const T* main = static_cast<const T*>(ctx.input(1).raw_data());
    const T* sub = static_cast<const T*>(ctx.input(2).raw_data());
    const T* x = static_cast<const T*>(rhs.raw_data());
    T* y = static_cast<T*>(out->raw_data());
    ParallelFor(ctx, batch.count * m, BlockSizeForCost(2.0 * static_cast<double>(n) + 5),
                [&](int64_t begin, int64_t end) {
                  for (int64_t row = begin; row < end; ++row) {
                    const T* from = x + row * n;
                    T* to = y + row * n;
                    const bool is_first = row % m == 0;
                    const bool is_last = row % m == m - 1;
                    for (int64_t j = 0; j < n; ++j) {
                      T sum = main[row] * from[j];
                      if (!is_last) sum += super[row] * from[j + n];
                      if (!is_first) sum += sub[row] * from[j - n];
                      to[j] = sum;
                    }
                  }
                });
  });
  return absl::OkStatus();
}

// ---- TridiagonalSolve ----

absl::Status SolveShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckDiagonals("diagonals", c.input(0), c.input(1), 3));
  c.set_output(0, c.input(1));
  return absl::OkStatus();
}

// A system of equations. The rows of `diagonals` are the superdiagonal, the diagonal and the
// subdiagonal, aligned with the rows of the matrix.
template <typename T>
class System {
 public:
  System(const T* diagonals, int64_t m, int64_t n, T* x)
      : upper_(diagonals, diagonals + m),
        main_(diagonals + m, diagonals + 2 * m),
        lower_(diagonals + 2 * m, diagonals + 3 * m),
        // The second superdiagonal. Row exchanges fill it.
        upper2_(m, T(0)),
        m_(m),
        n_(n),
        x_(x) {}

  // Replaces the right-hand sides by the solution. Exchanges rows to get the larger pivot if
  // `pivoting` is true. Replaces pivots near 0 if `perturb` is true. Returns false if a pivot is 0.
  // The result is unspecified if the run is stopped.
  bool Solve(const RunContext& run, bool pivoting, bool perturb) {
    const double least = perturb ? Smallest() : 0;
    // The number of rows between checks for a stop of the run.
    const int64_t rows = std::max<int64_t>(1, (int64_t{1} << 16) / std::max<int64_t>(1, n_));
    for (int64_t i = 0; i < m_; ++i) {
      if (i % rows == 0 && run.ShouldStop()) return true;
      const bool is_last = i == m_ - 1;
      if (pivoting && !is_last && std::abs(main_[i]) < std::abs(lower_[i + 1])) Exchange(i);
      if (std::abs(main_[i]) < least) {
        main_[i] = T(static_cast<decltype(std::abs(T()))>(least));
      }
      if (main_[i] == T(0)) return false;
      if (is_last) break;
      const T factor = lower_[i + 1] / main_[i];
      main_[i + 1] -= factor * upper_[i];
      if (i + 2 < m_) upper_[i + 1] -= factor * upper2_[i];
      for (int64_t j = 0; j < n_; ++j) x_[(i + 1) * n_ + j] -= factor * x_[i * n_ + j];
    }
    for (int64_t i = m_ - 1; i >= 0; --i) {
      if (i % rows == 0 && run.ShouldStop()) return true;
      for (int64_t j = 0; j < n_; ++j) {
        T sum = x_[i * n_ + j];
        if (i + 1 < m_) sum -= upper_[i] * x_[(i + 1) * n_ + j];
        if (i + 2 < m_) sum -= upper2_[i] * x_[(i + 2) * n_ + j];
        x_[i * n_ + j] = sum / main_[i];
      }
    }
    return true;
  }

 private:
  // Exchanges row i, which has columns i and i + 1, and row i + 1.
  void Exchange(int64_t i) {
    std::swap(main_[i], lower_[i + 1]);
    std::swap(upper_[i], main_[i + 1]);
    if (i + 2 < m_) {
      upper2_[i] = upper_[i + 1];
      upper_[i + 1] = T(0);
    }
    for (int64_t j = 0; j < n_; ++j) std::swap(x_[i * n_ + j], x_[(i + 1) * n_ + j]);
  }

  // Returns the rounding error of the largest element.
  double Smallest() const {
    using Real = decltype(std::abs(T()));
    double largest = 0;
    for (int64_t i = 0; i < m_; ++i) {
      largest = std::max<double>(largest, std::abs(main_[i]));
      if (i > 0) largest = std::max<double>(largest, std::abs(lower_[i]));
      if (i + 1 < m_) largest = std::max<double>(largest, std::abs(upper_[i]));
    }
    if (largest == 0) largest = 1;
    return std::max<double>(largest * std::numeric_limits<Real>::epsilon(),
                            std::numeric_limits<Real>::min());
  }

  std::vector<T> upper_;
  std::vector<T> main_;
  std::vector<T> lower_;
  std::vector<T> upper2_;
  const int64_t m_;
  const int64_t n_;
  // The right-hand sides, which are replaced by the solution.
  T* const x_;
};

class TridiagonalSolveKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("partial_pivoting", &pivoting_));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("perturb_singular", &perturb_));
    if (perturb_ && !pivoting_) {
      return errors::InvalidArgument("perturb_singular requires partial_pivoting");
    }
    return absl::OkStatus();
  }

  absl::Status Compute(KernelContext& ctx) const override {
    const Tensor& diagonals = ctx.input(0);
    const Tensor& rhs = ctx.input(1);
    GRADFLOW_RETURN_IF_ERROR(CheckTypes(ctx, 2, ctx.expected_output_dtype(0)));
    GRADFLOW_RETURN_IF_ERROR(CheckDiagonals("diagonals", diagonals.shape(), rhs.shape(), 3));
    Tensor* out = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, rhs.shape(), &out));
    const MatrixBatch batch(rhs.shape());
    const double m = static_cast<double>(batch.rows);
    absl::Status status;
    DispatchType(Types(), rhs.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      const double operations = m * (3 * static_cast<double>(batch.columns) + 5);
      status = ForEachMatrix(ctx, batch.count, operations, 4 * sizeof(T) * m, [&](int64_t i) {
        T* x = static_cast<T*>(out->raw_data()) + i * batch.size;
        std::copy_n(static_cast<const T*>(rhs.raw_data()) + i * batch.size, batch.size, x);
        System<T> system(static_cast<const T*>(diagonals.raw_data()) + i * 3 * batch.rows,
                         batch.rows, batch.columns, x);
        if (!system.Solve(ctx.run(), pivoting_, perturb_)) {
          using Real = decltype(std::abs(T()));
          std::fill_n(x, batch.size, T(std::numeric_limits<Real>::quiet_NaN()));
        }
        return absl::OkStatus();
      });
    });
    return status;
  }

 private:
  bool pivoting_ = true;
  bool perturb_ = false;
};

}  // namespace

void Register(Registry& registry) {
  registry.Op("TridiagonalMatMul")
      .Group("linalg_ops")
      .Input("superdiag: T")
      .Input("maindiag: T")
      .Input("subdiag: T")
      .Input("rhs: T")
      .Output("output: T")
      .Attr("T: {double, float, complex64, complex128}")
      .Shape(MatMulShape)
      .Doc(R"(Multiplies tridiagonal matrices by matrices.

The diagonals are aligned with the rows of the matrix.

superdiag: The elements above the diagonal, [..., 1, m]. The last element is ignored.
maindiag: The diagonal, [..., 1, m].
subdiag: The elements below the diagonal, [..., 1, m]. The first element is ignored.
rhs: Matrices [..., m, n].
output: The products, of the shape of `rhs`.
T: The type of the inputs and the output.)");
  registry.Op("TridiagonalSolve")
      .Group("linalg_ops")
      .Input("diagonals: T")
      .Input("rhs: T")
      .Output("output: T")
      .Attr("partial_pivoting: bool = true")
      .Attr("perturb_singular: bool = false")
      .Attr("T: {double, float, complex64, complex128}")
      .Shape(SolveShape)
      .Doc(R"(Solves systems of linear equations with tridiagonal matrices.

If a pivot is 0, the solution of the system is NaN.

diagonals: The superdiagonal, the diagonal and the subdiagonal, aligned with the rows of the matrix:
  [..., 3, m]. The last element of the superdiagonal and the first element of the subdiagonal are
  ignored.
rhs: Matrices [..., m, n], whose columns are right-hand sides.
output: The solutions, of the shape of `rhs`.
partial_pivoting: If true, exchanges rows for larger pivots, which is more accurate.
perturb_singular: If true, replaces pivots near 0 by the rounding error of the largest element.
  Requires `partial_pivoting`.
T: The type of the inputs and the output.)");
  registry.Kernel("TridiagonalMatMul", MakeFunctionKernel<TridiagonalMatMul>)
      .Types("T", DataTypesOf(Types()));
  registry.Kernel("TridiagonalSolve", MakeKernel<TridiagonalSolveKernel>)
      .Types("T", DataTypesOf(Types()));
}

}  // namespace gradflow::tridiagonal
