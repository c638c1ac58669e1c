// GRUBlockCell and GRUBlockCellGrad: one step of a gated recurrent unit.
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_context.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/input_checks.h"
#include "gradflow/ops/linalg/product.h"
#include "gradflow/ops/math/sigmoid_simd.h"
#include "gradflow/ops/nn/cell_math.h"
#include "gradflow/ops/nn/cell_shapes.h"

namespace gradflow::gru {
namespace {

constexpr CellTensor kInputs[] = {{"x", "bi"},   {"h_prev", "bc"}, {"w_ru", "w2"}, {"w_c", "wc"},
                                  {"b_ru", "2"}, {"b_c", "c"},     {"r", "bc"},    {"u", "bc"},
                                  {"c", "bc"},   {"d_h", "bc"}};
constexpr CellTensor kOutputs[] = {{"r", "bc"}, {"u", "bc"}, {"c", "bc"}, {"h", "bc"}};
constexpr CellTensor kGradients[] = {
    {"d_x", "bi"}, {"d_h_prev", "bc"}, {"d_c_bar", "bc"}, {"d_r_bar_u_bar", "b2"}};
enum Input { kX, kHPrev, kWRu, kWC, kBRu, kBC, kR, kU, kC, kDH };

absl::Span<const CellTensor> Inputs(int count) {
  return absl::MakeConstSpan(kInputs).first(static_cast<size_t>(count));
}
absl::Status CellShapes(ShapeContext& c) {
  return InferCellShapes(c, Inputs(c.num_inputs()), kOutputs);
}
absl::Status GradShapes(ShapeContext& c) {
  return InferCellShapes(c, Inputs(c.num_inputs()), kGradients);
}

// Allocates the outputs.
absl::Status Allocate(const CellSizes& sizes, absl::Span<const CellTensor> outputs,
                      FloatOutputs* out) {
  for (const CellTensor& tensor : outputs) {
    GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape partial, CellShape(tensor.dims, sizes));
    GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, TensorShape::Make(partial.dim_sizes()));
    GRADFLOW_RETURN_IF_ERROR(out->Add(shape));
  }
  return absl::OkStatus();
}

// The rows of the weights that multiply the input, and those that multiply the state.
Tensor OfInput(const Tensor& w, const CellSizes& sizes) { return w.Slice(0, sizes.input); }
Tensor OfState(const Tensor& w, const CellSizes& sizes) {
  return w.Slice(sizes.input, sizes.input + sizes.cell);
}
float* Data(const Tensor& tensor) {
  return const_cast<float*>(static_cast<const float*>(tensor.raw_data()));
}

class GruKernel : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    types_ = InputTypes(construction);
    return absl::OkStatus();
  }

 protected:
  absl::Status Prepare(KernelContext& ctx, CellSizes* sizes, FloatInputs* in) const {
    GRADFLOW_RETURN_IF_ERROR(CheckInputTypes(ctx, types_));
    GRADFLOW_RETURN_IF_ERROR(InferCellSizes(Inputs(ctx.num_inputs()), ctx, sizes));
    return in->Convert(ctx, 0);
  }

 private:
  DataTypeVector types_;
};

class Gru final : public GruKernel {
 public:
  absl::Status Compute(KernelContext& ctx) const override {
    CellSizes sizes;
    FloatInputs in;
    GRADFLOW_RETURN_IF_ERROR(Prepare(ctx, &sizes, &in));
    FloatOutputs out(&ctx);
    Tensor by_input;
    Tensor by_state;
    GRADFLOW_RETURN_IF_ERROR(Allocate(sizes, kOutputs, &out));
    const int64_t cell = sizes.cell;
    GRADFLOW_ASSIGN_OR_RETURN(const TensorShape gates, TensorShape::Make({sizes.batch, 2 * cell}));
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_FLOAT, gates, &by_input));
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_FLOAT, gates, &by_state));
    float* const r = out.data(0);
    float* const u = out.data(1);
    float* const c = out.data(2);
    float* const h = out.data(3);
    const float* const h_prev = in.data(kHPrev);

    GRADFLOW_RETURN_IF_ERROR(
        MultiplyBatches(ctx, in[kX], {}, OfInput(in[kWRu], sizes), {}, &by_input));
    GRADFLOW_RETURN_IF_ERROR(
        MultiplyBatches(ctx, in[kHPrev], {}, OfState(in[kWRu], sizes), {}, &by_state));
    ForEachRowChunk(ctx, sizes.batch, cell, 6, [&](int64_t b, int64_t column, int64_t n) {
      const int64_t at = b * cell + column;
      float sum[kCellChunk];
      for (const int64_t gate : {0, 1}) {
        const int64_t from = (b * 2 + gate) * cell + column;
        const float* const x = Data(by_input) + from;
        const float* const y = Data(by_state) + from;
        const float* const bias = in.data(kBRu) + gate * cell + column;
        for (int64_t j = 0; j < n; ++j) sum[j] = x[j] + y[j] + bias[j];
        ApplySigmoid(sum, (gate == 0 ? r : u) + at, n);
      }
      // Holds the reset state until the output is written.
      for (int64_t j = at; j < at + n; ++j) h[j] = h_prev[j] * r[j];
    });

    Tensor candidate_by_input = HalfOf(by_input, sizes);
    Tensor candidate_by_state = HalfOf(by_state, sizes);
    GRADFLOW_RETURN_IF_ERROR(
        MultiplyBatches(ctx, in[kX], {}, OfInput(in[kWC], sizes), {}, &candidate_by_input));
    GRADFLOW_RETURN_IF_ERROR(
        MultiplyBatches(ctx, out[3], {}, OfState(in[kWC], sizes), {}, &candidate_by_state));
    ForEachRowChunk(ctx, sizes.batch, cell, 4, [&](int64_t b, int64_t column, int64_t n) {
      const int64_t at = b * cell + column;
      const float* const bias = in.data(kBC) + column;
      float sum[kCellChunk];
      for (int64_t j = 0; j < n; ++j) {
        sum[j] = Data(candidate_by_input)[at + j] + Data(candidate_by_state)[at + j] + bias[j];
      }
      TanhChunk(sum, c + at, n);
      for (int64_t j = at; j < at + n; ++j) h[j] = u[j] * (h_prev[j] - c[j]) + c[j];
    });
    return absl::OkStatus();
  }

 private:
  // Returns the first half of a matrix with two columns per cell, as a matrix [batch, cell].
  static Tensor HalfOf(const Tensor& scratch, const CellSizes& sizes) {
    return RowsAsMatrix(scratch, 0, sizes.batch, sizes.cell);
  }
};

// The candidate state is tanh(c_bar), and the gates are sigmoid(r_bar) and sigmoid(u_bar).
class GruGrad final : public GruKernel {
 public:
  absl::Status Compute(KernelContext& ctx) const override {
    CellSizes sizes;
    FloatInputs in;
    GRADFLOW_RETURN_IF_ERROR(Prepare(ctx, &sizes, &in));
    FloatOutputs out(&ctx);
    GRADFLOW_RETURN_IF_ERROR(Allocate(sizes, kGradients, &out));
    Tensor d_state;
    Tensor d_input;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_FLOAT, {sizes.batch, sizes.cell}, &d_state));
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_FLOAT, {sizes.batch, sizes.input}, &d_input));
    const int64_t cell = sizes.cell;
    float* const d_x = out.data(0);
    float* const d_h_prev = out.data(1);
    float* const d_c_bar = out.data(2);
    float* const d_gates = out.data(3);
    const float* const h_prev = in.data(kHPrev);
    const float* const r = in.data(kR);
    const float* const u = in.data(kU);
    const float* const c = in.data(kC);
    const float* const d_h = in.data(kDH);

    ForEachRowChunk(ctx, sizes.batch, cell, 2, [&](int64_t b, int64_t column, int64_t n) {
      const int64_t at = b * cell + column;
      float* const d_u_bar = d_gates + (b * 2 + 1) * cell + column;
      for (int64_t j = 0; j < n; ++j) {
        const int64_t k = at + j;
        d_c_bar[k] = d_h[k] * (1 - u[k]) * (1 - c[k] * c[k]);
        d_u_bar[j] = d_h[k] * (h_prev[k] - c[k]) * u[k] * (1 - u[k]);
      }
    });
    // d_state is the gradient of the reset state.
    constexpr ProductForm kTransposed = {/*transposed=*/true};
    GRADFLOW_RETURN_IF_ERROR(
        MultiplyBatches(ctx, out[2], {}, OfState(in[kWC], sizes), kTransposed, &d_state));
    ForEachRowChunk(ctx, sizes.batch, cell, 2, [&](int64_t b, int64_t column, int64_t n) {
      const int64_t at = b * cell + column;
      float* const d_r_bar = d_gates + b * 2 * cell + column;
      for (int64_t j = 0; j < n; ++j) {
        const int64_t k = at + j;
        d_r_bar[j] = Data(d_state)[k] * h_prev[k] * r[k] * (1 - r[k]);
      }
    });
    GRADFLOW_RETURN_IF_ERROR(
        MultiplyBatches(ctx, out[3], {}, OfState(in[kWRu], sizes), kTransposed, &out[1]));
    ForEachRowChunk(ctx, sizes.batch, cell, 1, [&](int64_t b, int64_t column, int64_t n) {
      const int64_t at = b * cell + column;
      for (int64_t k = at; k < at + n; ++k) {
        d_h_prev[k] += Data(d_state)[k] * r[k] + d_h[k] * u[k];
      }
    });
    GRADFLOW_RETURN_IF_ERROR(
        MultiplyBatches(ctx, out[3], {}, OfInput(in[kWRu], sizes), kTransposed, &out[0]));
    GRADFLOW_RETURN_IF_ERROR(
        MultiplyBatches(ctx, out[2], {}, OfInput(in[kWC], sizes), kTransposed, &d_input));
    ForEachRowChunk(ctx, sizes.batch, sizes.input, 1, [&](int64_t b, int64_t column, int64_t n) {
      const int64_t at = b * sizes.input + column;
      for (int64_t k = at; k < at + n; ++k) d_x[k] += Data(d_input)[k];
    });
    return absl::OkStatus();
  }
};

constexpr char kInputsDoc[] = R"(x: The input, [batch, input size].
h_prev: The previous state, [batch, cell size].
w_ru: The weights of the gates r and u, in this order, [input size + cell size, 2 * cell size].
w_c: The weights of the candidate, [input size + cell size, cell size].
b_ru: The biases of the gates, [2 * cell size].
b_c: The biases of the candidate, [cell size].
)";

}  // namespace

void Register(Registry& registry) {
  registry.Op("GRUBlockCell")
      .Group("rnn_ops")
      .Input("x: T")
      .Input("h_prev: T")
      .Input("w_ru: T")
      .Input("w_c: T")
      .Input("b_ru: T")
      .Input("b_c: T")
      .Output("r: T")
      .Output("u: T")
      .Output("c: T")
      .Output("h: T")
      .Attr("T: {float}")
      .Shape(CellShapes)
      .Doc(absl::StrCat(R"(Computes one step of gated recurrent units.

    [r, u] = sigmoid([x, h_prev] * w_ru + b_ru)
    c = tanh([x, h_prev * r] * w_c + b_c)
    h = u * h_prev + (1 - u) * c

)",
                        kInputsDoc, R"(r: The reset gate.
u: The update gate.
c: The candidate.
h: The state.
T: The type of the inputs and outputs.)"));
  registry.Op("GRUBlockCellGrad")
      .Group("rnn_ops")
      .Input("x: T")
      .Input("h_prev: T")
      .Input("w_ru: T")
      .Input("w_c: T")
      .Input("b_ru: T")
      .Input("b_c: T")
      .Input("r: T")
      .Input("u: T")
      .Input("c: T")
      .Input("d_h: T")
      .Output("d_x: T")
      .Output("d_h_prev: T")
      .Output("d_c_bar: T")
      .Output("d_r_bar_u_bar: T")
      .Attr("T: {float}")
      .Shape(GradShapes)
      .Doc(absl::StrCat(R"(Computes the gradient of GRUBlockCell.

The gradients of the weights and biases are not outputs. They are products and sums of `d_c_bar` and
`d_r_bar_u_bar`.

)",
                        kInputsDoc, R"(r: The reset gate.
u: The update gate.
c: The candidate.
d_h: The gradient with respect to `h`.
d_x: The gradient with respect to `x`.
d_h_prev: The gradient with respect to `h_prev`.
d_c_bar: The gradient with respect to the argument of the hyperbolic tangent.
d_r_bar_u_bar: The gradients with respect to the arguments of the sigmoids.
T: The type of the inputs and outputs.)"));
  registry.Kernel("GRUBlockCell", MakeKernel<Gru>).Types("T", {DT_FLOAT});
  registry.Kernel("GRUBlockCellGrad", MakeKernel<GruGrad>).Types("T", {DT_FLOAT});
}

}  // namespace gradflow::gru
