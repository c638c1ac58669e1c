// Qr and Svd.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/data_types.h"
#include "gradflow/ops/common/legacy_name.h"
#include "gradflow/ops/common/strided_copy.h"
#include "gradflow/ops/linalg/lapack.h"
#include "gradflow/ops/linalg/matrices.h"
#include "gradflow/ops/linalg/wide_matrix.h"

namespace gradflow::qr {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Returns the smaller of two dimensions; -1 if it is unknown.
int64_t MinDim(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  return a < 0 || b < 0 ? -1 : std::min(a, b);
}

absl::Status QrShape(ShapeContext& c) {
  bool full = false;
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("full_matrices", &full));
  GRADFLOW_RETURN_IF_ERROR(CheckMatrices("input", c.input(0)));
  if (c.input(0).unknown_rank()) return absl::OkStatus();
  const int64_t m = c.Dim(0, -2);
  const int64_t n = c.Dim(0, -1);
  const int64_t p = full ? m : MinDim(m, n);
  GRADFLOW_RETURN_IF_ERROR(SetBatchOutput(c, 0, {m, p}));
  return SetBatchOutput(c, 1, {p, n});
}

// Sets each matrix to the identity.
void SetIdentity(const RunContext& run, Tensor* tensor) {
  const MatrixBatch batch(tensor->shape());
  if (batch.count == 0) return;
  SetZero(run, tensor);
  const int64_t diagonal = std::min(batch.rows, batch.columns);
  DispatchType(MatrixTypes(), tensor->dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* const elements = static_cast<T*>(tensor->raw_data());
    ParallelFor(run, batch.count * diagonal, BlockSizeForCost(5), [&](int64_t begin, int64_t end) {
      for (int64_t d = begin; d < end; ++d) {
        elements[d / diagonal * batch.size + d % diagonal * (batch.columns + 1)] = T(1);
      }
    });
  });
}

class QrKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return construction.GetAttr("full_matrices", &full_);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    const Tensor& input = ctx.input(0);
    GRADFLOW_RETURN_IF_ERROR(CheckTypes(ctx, 1, ctx.expected_output_dtype(0)));
    GRADFLOW_RETURN_IF_ERROR(CheckMatrices("input", input.shape()));
    const MatrixBatch batch(input.shape());
    const int64_t m = batch.rows;
    const int64_t n = batch.columns;
    const int64_t p = full_ ? m : std::min(m, n);
    Tensor* q = nullptr;
    Tensor* r = nullptr;
    GRADFLOW_RETURN_IF_ERROR(AllocateBatchOutput(ctx, 0, {m, p}, &q));
    GRADFLOW_RETURN_IF_ERROR(AllocateBatchOutput(ctx, 1, {p, n}, &r));
    if (batch.count == 0) {
      // The input is empty. If it has no columns, there are no reflections and Q is the identity.
      SetIdentity(ctx.run(), q);
      return absl::OkStatus();
    }
    const double elements = static_cast<double>(m) * static_cast<double>(n + p);
    absl::Status status;
    DispatchWide(input.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      const absl::StatusOr<LapackWork> work = QrWork<T>(m, n, p);
      if (!work.ok()) {
        status = work.status();
        return;
      }
      const auto decompose = [&](int64_t i) {
        WideMatrix<T> matrix = LoadMatrix<T>(input, i);
        if (!AllFinite(matrix)) {
          FillMatrix(kNan, q, i);
          FillMatrix(kNan, r, i);
          return absl::OkStatus();
        }
        WideMatrix<T> orthonormal;
        ComputeQr(*work, &matrix, p, &orthonormal);
        StoreMatrix(orthonormal, q, i);
        StoreMatrix(matrix, r, i);
        return absl::OkStatus();
      };
      status = ForEachMatrix(ctx, batch.count, 4 * elements * static_cast<double>(std::min(m, n)),
                             sizeof(T) * elements + work->bytes<T>(), decompose);
    });
    return status;
  }

 private:
  bool full_ = false;
};

// ---- Svd ----

absl::Status SvdShape(ShapeContext& c) {
  bool compute_uv = true;
  bool full = false;
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("compute_uv", &compute_uv));
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("full_matrices", &full));
  GRADFLOW_RETURN_IF_ERROR(CheckMatrices("input", c.input(0)));
  if (!compute_uv) {
    c.set_output(1, {0});
    c.set_output(2, {0});
  }
  if (c.input(0).unknown_rank()) return absl::OkStatus();
  const int64_t m = c.Dim(0, -2);
  const int64_t n = c.Dim(0, -1);
  const int64_t p = MinDim(m, n);
  GRADFLOW_RETURN_IF_ERROR(SetBatchOutput(c, 0, {p}));
  if (!compute_uv) return absl::OkStatus();
  GRADFLOW_RETURN_IF_ERROR(SetBatchOutput(c, 1, {m, full ? m : p}));
  return SetBatchOutput(c, 2, {n, full ? n : p});
}

class SvdKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("compute_uv", &compute_uv_));
    return construction.GetAttr("full_matrices", &full_);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    const Tensor& input = ctx.input(0);
    GRADFLOW_RETURN_IF_ERROR(CheckTypes(ctx, 1, ctx.expected_output_dtype(0)));
    GRADFLOW_RETURN_IF_ERROR(CheckMatrices("input", input.shape()));
    const MatrixBatch batch(input.shape());
    const int64_t m = batch.rows;
    const int64_t n = batch.columns;
    const int64_t p = std::min(m, n);
    Tensor* s = nullptr;
    Tensor* u = nullptr;
    Tensor* v = nullptr;
    GRADFLOW_RETURN_IF_ERROR(AllocateBatchOutput(ctx, 0, {p}, &s));
    if (compute_uv_) {
      GRADFLOW_RETURN_IF_ERROR(AllocateBatchOutput(ctx, 1, {m, full_ ? m : p}, &u));
      GRADFLOW_RETURN_IF_ERROR(AllocateBatchOutput(ctx, 2, {n, full_ ? n : p}, &v));
    } else {
      GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(1, {0}, &u));
      GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(2, {0}, &v));
    }
    if (batch.count == 0) {
      if (compute_uv_) {
        SetIdentity(ctx.run(), u);
        SetIdentity(ctx.run(), v);
      }
      return absl::OkStatus();
    }
    SingularVectors vectors = SingularVectors::kNone;
    if (compute_uv_) vectors = full_ ? SingularVectors::kFull : SingularVectors::kThin;
    const double smaller = static_cast<double>(p);
    double elements = static_cast<double>(batch.size);
    if (compute_uv_) {
      elements += full_ ? static_cast<double>(m) * static_cast<double>(m) +
                              static_cast<double>(n) * static_cast<double>(n)
                        : smaller * static_cast<double>(m + n);
    }
    absl::Status status;
    DispatchWide(input.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      const absl::StatusOr<LapackWork> work = SvdWork<T>(m, n, vectors);
      if (!work.ok()) {
        status = work.status();
        return;
      }
      const auto decompose = [&](int64_t i) {
        WideMatrix<T> matrix = LoadMatrix<T>(input, i);
        if (!AllFinite(matrix)) {
          FillVector(kNan, p, s, i);
          if (compute_uv_) {
            FillMatrix(kNan, u, i);
            FillMatrix(kNan, v, i);
          }
          return absl::OkStatus();
        }
        std::vector<double> values;
        WideMatrix<T> left;
        WideMatrix<T> right;
        GRADFLOW_RETURN_IF_ERROR(ComputeSvd(*work, vectors, &matrix, &values, &left, &right));
        StoreVector<double>(values, s, i);
        if (compute_uv_) {
          StoreMatrix(left, u, i);
          StoreMatrix(right, v, i, /*adjoint=*/true);
        }
        return absl::OkStatus();
      };
      status = ForEachMatrix(ctx, batch.count, 25 * elements * smaller,
                             sizeof(T) * elements + sizeof(double) * smaller + work->bytes<T>(),
                             decompose);
    });
    return status;
  }

 private:
  bool compute_uv_ = true;
  bool full_ = false;
};

}  // namespace

void Register(Registry& registry) {
  registry.Op("Qr")
      .Group("linalg_ops")
      .Input("input: T")
      .Output("q: T")
      .Output("r: T")
      .Attr("full_matrices: bool = false")
      .Attr("T: {double, float, half, complex64, complex128}")
      .Shape(QrShape)
      .Doc(R"(Computes the QR decompositions of matrices, by Householder reflections.

For a matrix with NaN or infinity, all results are NaN.

input: Matrices [m, n] along the last two dimensions.
q: Matrices with orthonormal columns, [m, min(m, n)], or [m, m] if `full_matrices`.
r: Upper triangular matrices, [min(m, n), n], or [m, n] if `full_matrices`. The product of `q`
  and `r` is `input`.
full_matrices: If true, `q` is square.
T: The type of the input and the outputs.)");
  registry.Op("Svd")
      .Group("linalg_ops")
      .Input("input: T")
      .Output("s: T")
      .Output("u: T")
      .Output("v: T")
      .Attr("compute_uv: bool = true")
      .Attr("full_matrices: bool = false")
      .Attr("T: {double, float, half, complex64, complex128}")
      .Shape(SvdShape)
      .Doc(R"(Computes the singular value decompositions of matrices.

A matrix is the product of `u`, the diagonal matrix of `s`, and the adjoint of `v`. If the singular
values are distinct and not 0, each pair of singular vectors is determined up to a common factor of
magnitude 1. For a matrix with NaN or infinity, all results are NaN.

input: Matrices [m, n] along the last two dimensions.
s: The min(m, n) singular values of each matrix, in decreasing order.
u: The left singular vectors as columns: [m, min(m, n)], or [m, m] if `full_matrices`. Empty
  unless `compute_uv`.
v: The right singular vectors as columns: [n, min(m, n)], or [n, n] if `full_matrices`. Empty
  unless `compute_uv`.
compute_uv: If true, computes the singular vectors.
full_matrices: If true, `u` and `v` are square.
T: The type of the input and the outputs; there is no kernel for half.)");
  registry.Kernel("Qr", MakeKernel<QrKernel>).Types("T", DataTypesOf(MatrixTypes()));
  registry.Kernel("Svd", MakeKernel<SvdKernel>).Types("T", DataTypesOf(LinalgTypes()));
  RegisterLegacyName(
      registry, {"BatchSvd", "Svd", 13, "T", {DT_DOUBLE, DT_FLOAT, DT_COMPLEX64, DT_COMPLEX128}},
      MakeKernel<SvdKernel>);
}

}  // namespace gradflow::qr
