// LRN and LRNGrad: local response normalization.
//
// Summing the windows around all elements of a row takes linear time for any radius. Sums are not
// computed as differences of other sums, which would lose small elements next to large ones. Sums
// are accumulated in double.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "absl/strings/str_cat.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/clones.h"
#include "gradflow/ops/common/elementary_simd.h"
#include "gradflow/ops/common/elementwise_simd.h"
#include "gradflow/ops/common/input_checks.h"
#include "gradflow/ops/nn/softmax_rows.h"

namespace gradflow::lrn {
namespace {

// Sets sums[d] to the sum of x[j] for all j in [0, n) with |j - d| <= radius. Positions are divided
// into blocks of the width of a window. A window consists of a suffix of one block and a prefix of
// the next block, so its sum is the sum of both. REQUIRES: 0 <= radius < n, and the arrays do not
// overlap
void WindowSums(const double* x, int64_t n, int64_t radius, double* sums) {
  const int64_t width = 2 * radius + 1;
  // Element j is at position j + radius. The window of element d is [d, d + width).
  const auto at = [&](int64_t position) {
    const int64_t j = position - radius;
    return j >= 0 && j < n ? x[j] : 0;
  };
  for (int64_t begin = 0; begin < n; begin += width) {
    double suffix = 0;
    for (int64_t position = begin + width - 1; position >= begin; --position) {
      suffix += at(position);
      if (position < n) sums[position] = suffix;
    }
    // The windows of the elements from begin + 1 on reach into the next block.
    double prefix = 0;
    const int64_t end = std::min(begin + width, n);
    for (int64_t d = begin + 1; d < end; ++d) {
      prefix += at(d + width - 1);
      sums[d] += prefix;
    }
  }
}

// Sets sums[d] to the sum of x[d - radius], ..., x[d + radius], like WindowSums. x has `radius`
// zeros before and after its n elements.
GRADFLOW_CLONES void ShortWindowSums(const double* x, int64_t n, int64_t radius, double* sums) {
  // The sums of a block stay in the L1 cache.
  constexpr int64_t kBlock = 512;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t end = std::min(begin + kBlock, n);
    for (int64_t d = begin; d < end; ++d) sums[d] = x[d - radius];
    for (int64_t k = 1 - radius; k <= radius; ++k) {
      for (int64_t d = begin; d < end; ++d) sums[d] += x[d + k];
    }
  }
}

GRADFLOW_CLONES void Reciprocals(double* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i] = 1 / x[i];
}

GRADFLOW_CLONES void MultiplyInPlace(const double* x, int64_t n, double* y) {
  for (int64_t i = 0; i < n; ++i) y[i] *= x[i];
}

// Replaces each of n numbers x by x^-beta. `scratch` has n elements.
void InversePowers(double beta, double* x, int64_t n, double* scratch) {
  if (beta == 0.5 || beta == 0.75) {
    SquareRoots(x, x, n);
    if (beta == 0.75) {
      SquareRoots(x, scratch, n);
      MultiplyInPlace(scratch, n, x);
    }
    Reciprocals(x, n);
  } else if (beta == 1) {
    Reciprocals(x, n);
  } else if (beta == std::floor(beta)) {
    // x may be negative, so logarithms cannot be used.
    for (int64_t i = 0; i < n; ++i) x[i] = std::pow(x[i], -beta);
  } else {
    ApplyElementary(Elementary::kLog, x, x, n);
    for (int64_t i = 0; i < n; ++i) x[i] *= -beta;
    ApplyElementary(Elementary::kExp, x, x, n);
  }
}

struct LrnAttrs {
  int64_t depth_radius = 0;
  float bias = 0;
  float alpha = 0;
  float beta = 0;
};

// Reads the attributes. Source is KernelConstruction or ShapeContext.
template <typename Source>
absl::Status ReadAttrs(const Source& source, LrnAttrs* attrs) {
  GRADFLOW_RETURN_IF_ERROR(source.GetAttr("depth_radius", &attrs->depth_radius));
  GRADFLOW_RETURN_IF_ERROR(source.GetAttr("bias", &attrs->bias));
  GRADFLOW_RETURN_IF_ERROR(source.GetAttr("alpha", &attrs->alpha));
  GRADFLOW_RETURN_IF_ERROR(source.GetAttr("beta", &attrs->beta));
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  if (attrs->depth_radius >= 0 && attrs->depth_radius <= kMax) return absl::OkStatus();
  return errors::InvalidArgument("depth_radius is ", attrs->depth_radius, ", expected 0 to ", kMax);
}

absl::Status LrnShape(ShapeContext& c) {
  LrnAttrs attrs;
  GRADFLOW_RETURN_IF_ERROR(ReadAttrs(c, &attrs));
  for (int i = 0; i < c.num_inputs(); ++i) GRADFLOW_RETURN_IF_ERROR(c.CheckRank(i, 4));
  GRADFLOW_RETURN_IF_ERROR(SameShape(c));
  if (c.output(0).unknown_rank()) c.set_output(0, PartialTensorShape::UnknownOfRank(4));
  return absl::OkStatus();
}

// The buffers of a row, each with `depth` elements.
struct Row {
  float* floats;
  double* terms;
  double* sums;
};

// The largest radius of ShortWindowSums.
constexpr int64_t kMaxShortRadius = 7;

class LrnKernel : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    types_ = InputTypes(construction);
    return ReadAttrs(construction, &attrs_);
  }

 protected:
  // Allocates the output and calls fn(offset, row) concurrently for each of its rows.
  template <typename F>
  absl::Status ForEachRow(KernelContext& ctx, int64_t depth, int num_floats, double nanoseconds,
                          const F& fn) const {
    const int64_t total = ctx.input(0).NumElements();
    if (total == 0) return absl::OkStatus();
    const int64_t rows = total / depth;
    const int64_t block = BlockSizeForCost(nanoseconds * static_cast<double>(depth));
    // Each block of rows has its own buffers: two of double and `num_floats` of float. Zeros
    // surround the first buffer.
    const int64_t bytes = depth * (16 + 4 * num_floats) + 16 * kMaxShortRadius;
    Tensor scratch;
    GRADFLOW_RETURN_IF_ERROR(
        ctx.AllocateTemp(DT_INT8, {NumBlocks(rows, block), (bytes + 7) / 8 * 8}, &scratch));
    char* const buffers = static_cast<char*>(scratch.raw_data());
    ParallelFor(ctx, rows, block, [&](int64_t begin, int64_t end) {
      double* const doubles =
          reinterpret_cast<double*>(buffers + begin / block * ((bytes + 7) / 8 * 8));
      double* const terms = doubles + kMaxShortRadius;
      double* const sums = terms + depth + kMaxShortRadius;
      std::fill(doubles, terms, 0);
      std::fill(terms + depth, sums, 0);
      const Row row = {reinterpret_cast<float*>(sums + depth), terms, sums};
      for (int64_t r = begin; r < end; ++r) fn(r * depth, row);
    });
    return absl::OkStatus();
  }

  // Sets row.sums to bias + alpha * (sum of squares in the window) for each element.
  void Norms(const float* x, int64_t depth, const Row& row) const {
    for (int64_t d = 0; d < depth; ++d) row.terms[d] = static_cast<double>(x[d]) * x[d];
    SumWindows(depth, row);
    for (int64_t d = 0; d < depth; ++d) row.sums[d] = attrs_.bias + attrs_.alpha * row.sums[d];
  }
  // Sets row.sums to the sums of row.terms in the windows.
  void SumWindows(int64_t depth, const Row& row) const {
    if (attrs_.depth_radius <= kMaxShortRadius) {
      ShortWindowSums(row.terms, depth, attrs_.depth_radius, row.sums);
    } else {
      WindowSums(row.terms, depth, Radius(depth), row.sums);
    }
  }
  int64_t Radius(int64_t depth) const { return std::min(attrs_.depth_radius, depth - 1); }

  DataTypeVector types_;
  LrnAttrs attrs_;
};

class Lrn final : public LrnKernel {
 public:
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckInputTypes(ctx, types_));
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckRank(0, "input", 4));
    const Tensor& input = ctx.input(0);
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, input.shape(), &output));
    const int64_t depth = input.dim_size(3);
    const RowReader<float> reader(input);
    const RowWriter<float> writer(output);
    return ForEachRow(ctx, depth, 1, 10, [&](int64_t offset, const Row& row) {
      const float* const x = reader.Read(offset, depth, row.floats);
      Norms(x, depth, row);
      float* const y = writer.Place(offset, row.floats);
      // row.terms is scratch from here on.
      InversePowers(attrs_.beta, row.sums, depth, row.terms);
      for (int64_t d = 0; d < depth; ++d) y[d] = static_cast<float>(x[d] * row.sums[d]);
      writer.Write(y, offset, depth);
    });
  }
};

// dx = g norm^-beta - 2 alpha beta x * (sum of g y / norm in the window), where g is the gradient
// and y the result.
class LrnGrad final : public LrnKernel {
 public:
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckInputTypes(ctx, types_));
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckRank(0, "input_grads", 4));
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckSameShape(0, "input_grads", 1, "input_image"));
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckSameShape(0, "input_grads", 2, "output_image"));
    const TensorShape& shape = ctx.input(0).shape();
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
    const int64_t depth = shape.dim_size(3);
    const RowReader<float> grads(ctx.input(0));
    const RowReader<float> images(ctx.input(1));
    const RowReader<float> results(ctx.input(2));
    const RowWriter<float> writer(output);
    const double beta = attrs_.beta;
    const double factor = -2.0 * attrs_.alpha * beta;
    return ForEachRow(ctx, depth, 6, 20, [&](int64_t offset, const Row& row) {
      float* const result_buffer = row.floats + 2 * depth;
      const float* const g = grads.Read(offset, depth, row.floats);
      const float* const x = images.Read(offset, depth, row.floats + depth);
      const float* const y = results.Read(offset, depth, result_buffer);
      Norms(x, depth, row);
      float* const dx = writer.Place(offset, row.floats + 3 * depth);
      for (int64_t d = 0; d < depth; ++d) {
        row.terms[d] = static_cast<double>(g[d]) * y[d] / row.sums[d];
      }
      InversePowers(beta, row.sums, depth, reinterpret_cast<double*>(row.floats + 4 * depth));
      for (int64_t d = 0; d < depth; ++d) dx[d] = static_cast<float>(g[d] * row.sums[d]);
      SumWindows(depth, row);
      for (int64_t d = 0; d < depth; ++d) {
        dx[d] = static_cast<float>(dx[d] + factor * x[d] * row.sums[d]);
      }
      writer.Write(dx, offset, depth);
    });
  }
};

constexpr char kAttrsDoc[] =
    R"(depth_radius: The number of channels on each side of an element in its window.
bias: The offset of the norm.
alpha: The factor of the sum of squares.
beta: The exponent of the norm.
T: The type of the inputs and outputs. TensorFlow's CPU has no kernel for bfloat16.)";

template <typename Kernel>
void RegisterKernels(Registry& registry, absl::string_view op) {
  registry.Kernel(op, MakeKernel<Kernel>).Types("T", {DT_FLOAT, DT_HALF, DT_BFLOAT16});
}

}  // namespace

void Register(Registry& registry) {
  registry.Op("LRN")
      .Group("nn_ops")
      .Input("input: T")
      .Output("output: T")
      .Attr("depth_radius: int = 5")
      .Attr("bias: float = 1.0")
      .Attr("alpha: float = 1.0")
      .Attr("beta: float = 0.5")
      .Attr("T: {half, bfloat16, float} = DT_FLOAT")
      .Shape(LrnShape)
      .Doc(absl::StrCat(R"(Normalizes each element by the elements of neighboring channels.

Each element is multiplied by (bias + alpha * s)^-beta, where s is the sum of squares in its window:
the channels of its position that are at most `depth_radius` away.

input: A tensor of rank 4, whose last dimension is the channels.
output: The normalized elements, of the shape of `input`.
)",
                        kAttrsDoc));
  registry.Op("LRNGrad")
      .Group("nn_ops")
      .Input("input_grads: T")
      .Input("input_image: T")
      .Input("output_image: T")
      .Output("output: T")
      .Attr("depth_radius: int = 5")
      .Attr("bias: float = 1.0")
      .Attr("alpha: float = 1.0")
      .Attr("beta: float = 0.5")
      .Attr("T: {half, bfloat16, float} = DT_FLOAT")
      .Shape(LrnShape)
      .Doc(absl::StrCat(R"(Computes the gradient of LRN.

input_grads: The gradients with respect to the results of LRN, of rank 4.
input_image: The input of LRN, of the same shape.
output_image: The results of LRN, of the same shape.
output: The gradients with respect to the input, of the same shape.
)",
                        kAttrsDoc));
  RegisterKernels<Lrn>(registry, "LRN");
  RegisterKernels<LrnGrad>(registry, "LRNGrad");
}

}  // namespace gradflow::lrn
