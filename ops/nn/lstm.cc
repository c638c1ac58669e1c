// LSTMBlockCell, BlockLSTM, BlockLSTMV2 and their gradients: long short-term memory.
//
// The products of the inputs and their weights do not depend on states. One matrix product computes
// them for all steps in advance; likewise, one matrix product computes the gradients of the weights
// after the last step. A step multiplies the state by its weights, and then computes the gates in
// one pass. Half is computed in float, including the values passed from step to step, and rounded
// once.
#include <cstdint>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_context.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/input_checks.h"
#include "gradflow/ops/common/strided_copy.h"
#include "gradflow/ops/linalg/product.h"
#include "gradflow/ops/math/sigmoid_simd.h"
#include "gradflow/ops/nn/cell_math.h"
#include "gradflow/ops/nn/cell_shapes.h"
#include "gradflow/proto/node_def.pb.h"

namespace gradflow::lstm {
namespace {

constexpr CellTensor kCellInputs[] = {
    {"x", "bi"},  {"cs_prev", "bc"}, {"h_prev", "bc"},  {"w", "w4"},     {"wci", "c"}, {"wcf", "c"},
    {"wco", "c"}, {"b", "4"},        {"i", "bc"},       {"cs", "bc"},    {"f", "bc"},  {"o", "bc"},
    {"ci", "bc"}, {"co", "bc"},      {"cs_grad", "bc"}, {"h_grad", "bc"}};
constexpr CellTensor kCellOutputs[] = {{"i", "bc"},  {"cs", "bc"}, {"f", "bc"}, {"o", "bc"},
                                       {"ci", "bc"}, {"co", "bc"}, {"h", "bc"}};
constexpr CellTensor kCellGradients[] = {{"cs_prev_grad", "bc"},
                                         {"dicfo", "b4"},
                                         {"wci_grad", "c"},
                                         {"wcf_grad", "c"},
                                         {"wco_grad", "c"}};

constexpr CellTensor kBlockInputs[] = {
    {"seq_len_max", ""}, {"x", "tbi"},       {"cs_prev", "bc"}, {"h_prev", "bc"}, {"w", "w4"},
    {"wci", "c"},        {"wcf", "c"},       {"wco", "c"},      {"b", "4"},       {"i", "tbc"},
    {"cs", "tbc"},       {"f", "tbc"},       {"o", "tbc"},      {"ci", "tbc"},    {"co", "tbc"},
    {"h", "tbc"},        {"cs_grad", "tbc"}, {"h_grad", "tbc"}};
constexpr CellTensor kBlockOutputs[] = {{"i", "tbc"},  {"cs", "tbc"}, {"f", "tbc"}, {"o", "tbc"},
                                        {"ci", "tbc"}, {"co", "tbc"}, {"h", "tbc"}};
constexpr CellTensor kBlockGradients[] = {
    {"x_grad", "tbi"}, {"cs_prev_grad", "bc"}, {"h_prev_grad", "bc"}, {"w_grad", "w4"},
    {"wci_grad", "c"}, {"wcf_grad", "c"},      {"wco_grad", "c"},     {"b_grad", "4"}};

absl::Span<const CellTensor> Inputs(bool is_block, int count) {
  if (is_block) return absl::MakeConstSpan(kBlockInputs).first(static_cast<size_t>(count));
  return absl::MakeConstSpan(kCellInputs).first(static_cast<size_t>(count));
}

// Checks `steps`, the value of seq_len_max. `most` is the number of steps of x; negative if
// unknown.
absl::Status CheckSteps(int64_t steps, int64_t most) {
  if (steps >= 0 && (most < 0 || steps <= most)) return absl::OkStatus();
  if (most < 0) {
    return errors::InvalidArgument("seq_len_max is ", steps, ", expected 0 at least");
  }
  return errors::InvalidArgument("seq_len_max is ", steps, ", expected 0 to ", most,
                                 " (the steps of x)");
}

absl::Status BlockShape(ShapeContext& c, absl::Span<const CellTensor> outputs) {
  GRADFLOW_RETURN_IF_ERROR(InferCellShapes(c, Inputs(true, c.num_inputs()), outputs));
  const Tensor* const steps = c.input_tensor(0);
  if (steps == nullptr || steps->dtype() != DT_INT64 || steps->NumElements() != 1) {
    return absl::OkStatus();
  }
  return CheckSteps(*static_cast<const int64_t*>(steps->raw_data()), c.Dim(1, 0));
}
absl::Status BlockLstmShape(ShapeContext& c) { return BlockShape(c, kBlockOutputs); }
absl::Status BlockLstmGradShape(ShapeContext& c) { return BlockShape(c, kBlockGradients); }
absl::Status CellShapes(ShapeContext& c) {
  return InferCellShapes(c, Inputs(false, c.num_inputs()), kCellOutputs);
}
absl::Status CellGradShapes(ShapeContext& c) {
  return InferCellShapes(c, Inputs(false, c.num_inputs()), kCellGradients);
}

// The positions of the gates in the columns of the weights, in multiples of the cell size.
struct GateOrder {
  int64_t i = 0;
  int64_t ci = 1;
  int64_t f = 2;
  int64_t o = 3;
};

// The inputs of all ops, without seq_len_max.
enum Input { kX, kCsPrev, kHPrev, kW, kWci, kWcf, kWco, kB, kFirstResult };

class LstmKernel : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    types_ = InputTypes(construction);
    const std::string& op = construction.def().op();
    is_block_ = absl::StartsWith(op, "Block");
    if (absl::EndsWith(op, "V2")) order_ = {0, 2, 1, 3};
    return construction.GetAttr("use_peephole", &use_peephole_);
  }

 protected:
  // Checks and converts the inputs. Sets *sizes and the number of steps to compute.
  absl::Status Prepare(KernelContext& ctx, CellSizes* sizes, int64_t* steps,
                       FloatInputs* inputs) const {
    GRADFLOW_RETURN_IF_ERROR(CheckInputTypes(ctx, types_));
    GRADFLOW_RETURN_IF_ERROR(InferCellSizes(Inputs(is_block_, ctx.num_inputs()), ctx, sizes));
    *steps = 1;
    if (is_block_) {
      GRADFLOW_ASSIGN_OR_RETURN(*steps, ctx.ScalarInt(0, "seq_len_max"));
      GRADFLOW_RETURN_IF_ERROR(CheckSteps(*steps, sizes->steps));
      // There is nothing to compute, and the number of rows may not fit an int64.
      if (sizes->batch == 0 || sizes->cell == 0) *steps = 0;
    }
    return inputs->Convert(ctx, is_block_ ? 1 : 0);
  }

  // The cost of an element of the state per step, without the matrix products.
  static constexpr double kForwardNanoseconds = 10;
  static constexpr double kBackwardNanoseconds = 4;

  DataTypeVector types_;
  bool is_block_ = false;
  bool use_peephole_ = false;
  GateOrder order_;
};

// ---- Forward ----

class Lstm final : public LstmKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("cell_clip", &cell_clip_));
    if (construction.def().op() != "BlockLSTMV2") {
      GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("forget_bias", &forget_bias_));
    }
    return LstmKernel::Init(construction);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    CellSizes sizes;
    int64_t steps = 0;
    FloatInputs in;
    GRADFLOW_RETURN_IF_ERROR(Prepare(ctx, &sizes, &steps, &in));
    FloatOutputs out(&ctx);
    for (const CellTensor& tensor : is_block_ ? kBlockOutputs : kCellOutputs) {
      GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape partial, CellShape(tensor.dims, sizes));
      GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, TensorShape::Make(partial.dim_sizes()));
      GRADFLOW_RETURN_IF_ERROR(out.Add(shape));
    }
    if (is_block_ && steps < sizes.steps) {
      for (int k = 0; k < 7; ++k) {
        Tensor rest = out[k].Slice(steps, sizes.steps);
        SetZero(ctx.run(), &rest);
      }
    }
    const int64_t batch = sizes.batch;
    const int64_t rows = steps * batch;
    if (rows > 0 && sizes.cell > 0) {
      const Tensor w_x = in[kW].Slice(0, sizes.input);
      const Tensor w_h = in[kW].Slice(sizes.input, sizes.input + sizes.cell);
      Tensor by_input;
      Tensor by_state;
      GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_FLOAT, {rows, 4 * sizes.cell}, &by_input));
      GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_FLOAT, {batch, 4 * sizes.cell}, &by_state));
      GRADFLOW_RETURN_IF_ERROR(
          MultiplyBatches(ctx, RowsAsMatrix(in[kX], 0, rows, sizes.input), {}, w_x, {}, &by_input));
      for (int64_t t = 0; t < steps && !ctx.ShouldStop(); ++t) {
        const int64_t row = t * batch;
        const Tensor h_prev =
            t == 0 ? in[kHPrev] : RowsAsMatrix(out[6], row - batch, row, sizes.cell);
        GRADFLOW_RETURN_IF_ERROR(MultiplyBatches(ctx, h_prev, {}, w_h, {}, &by_state));
        const float* const cs_prev =
            t == 0 ? in.data(kCsPrev) : out.data(1) + (row - batch) * sizes.cell;
        const float* const gates[] = {
            static_cast<const float*>(by_input.raw_data()) + row * 4 * sizes.cell,
            static_cast<const float*>(by_state.raw_data())};
        ForEachRowChunk(
            ctx, batch, sizes.cell, kForwardNanoseconds, [&](int64_t b, int64_t column, int64_t n) {
              const int64_t at = b * 4 * sizes.cell + column;
              ComputeGates(in, gates[0] + at, gates[1] + at, cs_prev + b * sizes.cell + column,
                           sizes.cell, column, n, (row + b) * sizes.cell + column, &out);
            });
      }
    }
    out.Round();
    return absl::OkStatus();
  }

 private:
  // Computes n elements of the state of a row, starting at `column`. The gates are the sums of two
  // products, the biases and the peepholes.
  void ComputeGates(const FloatInputs& in, const float* by_input, const float* by_state,
                    const float* cs_prev, int64_t cell, int64_t column, int64_t n, int64_t offset,
                    FloatOutputs* out) const {
    const auto gate = [&](int64_t position, float bias, const float* peephole, const float* state,
                          float* sum) {
      const int64_t at = position * cell;
      const float* const b = in.data(kB) + at + column;
      for (int64_t j = 0; j < n; ++j) sum[j] = by_input[at + j] + by_state[at + j] + b[j] + bias;
      if (!use_peephole_ || peephole == nullptr) return;
      for (int64_t j = 0; j < n; ++j) sum[j] += peephole[column + j] * state[j];
    };
    float* const i = out->data(0) + offset;
    float* const cs = out->data(1) + offset;
    float* const f = out->data(2) + offset;
    float* const o = out->data(3) + offset;
    float* const ci = out->data(4) + offset;
    float* const co = out->data(5) + offset;
    float* const h = out->data(6) + offset;
    float sum[kCellChunk];
    gate(order_.i, 0, in.data(kWci), cs_prev, sum);
    ApplySigmoid(sum, i, n);
    gate(order_.ci, 0, nullptr, nullptr, sum);
    TanhChunk(sum, ci, n);
    gate(order_.f, forget_bias_, in.data(kWcf), cs_prev, sum);
    ApplySigmoid(sum, f, n);
    for (int64_t j = 0; j < n; ++j) cs[j] = i[j] * ci[j] + f[j] * cs_prev[j];
    if (cell_clip_ > 0) {
      // NaN stays NaN.
      for (int64_t j = 0; j < n; ++j) {
        cs[j] = cs[j] > cell_clip_ ? cell_clip_ : cs[j] < -cell_clip_ ? -cell_clip_ : cs[j];
      }
    }
    TanhChunk(cs, co, n);
    gate(order_.o, 0, in.data(kWco), cs, sum);
    ApplySigmoid(sum, o, n);
    for (int64_t j = 0; j < n; ++j) h[j] = o[j] * co[j];
  }

  float cell_clip_ = 0;
  float forget_bias_ = 0;
};

// ---- Gradients ----

// The tensors of a step that its gradient reads, starting at the first row of the step.
struct StepResults {
  const float* i;
  const float* cs;
  const float* f;
  const float* o;
  const float* ci;
  const float* co;
  const float* cs_prev;
};

// Clipping does not change gradients, as in TensorFlow.
class LstmGrad : public LstmKernel {
 protected:
  // Sets the gradients of the gates, [rows, 4 * cell], and of the previous state, from the total
  // gradients of the state and the output.
  void BackpropStep(const KernelContext& ctx, const FloatInputs& in, const CellSizes& sizes,
                    const StepResults& r, const float* cs_grad, const float* h_grad, float* dgates,
                    float* cs_prev_grad) const {
    ForEachRowChunk(ctx, sizes.batch, sizes.cell, kBackwardNanoseconds,
                    [&](int64_t b, int64_t column, int64_t n) {
                      const int64_t at = b * sizes.cell + column;
                      float* const row = dgates + b * 4 * sizes.cell + column;
                      float* const di = row + order_.i * sizes.cell;
                      float* const dci = row + order_.ci * sizes.cell;
                      float* const df = row + order_.f * sizes.cell;
                      float* const d_o = row + order_.o * sizes.cell;
                      const float* const wci = in.data(kWci) + column;
                      const float* const wcf = in.data(kWcf) + column;
                      const float* const wco = in.data(kWco) + column;
                      for (int64_t j = 0; j < n; ++j) {
                        const int64_t k = at + j;
                        const float d_output = r.o[k] * (1 - r.o[k]) * h_grad[k] * r.co[k];
                        float dcs = (1 - r.co[k] * r.co[k]) * h_grad[k] * r.o[k] + cs_grad[k];
                        if (use_peephole_) dcs += d_output * wco[j];
                        const float d_forget = r.f[k] * (1 - r.f[k]) * dcs * r.cs_prev[k];
                        const float d_input = r.i[k] * (1 - r.i[k]) * dcs * r.ci[k];
                        dci[j] = (1 - r.ci[k] * r.ci[k]) * dcs * r.i[k];
                        d_o[j] = d_output;
                        df[j] = d_forget;
                        di[j] = d_input;
                        float d_prev = dcs * r.f[k];
                        if (use_peephole_) d_prev += d_input * wci[j] + d_forget * wcf[j];
                        cs_prev_grad[k] = d_prev;
                      }
                    });
  }

  // Sets the gradients of the peepholes, outputs `first` to `first` + 2. `cs` and `cs_prev` give
  // the states after and before a row.
  template <typename F>
  void BackpropPeepholes(const KernelContext& ctx, const CellSizes& sizes, int64_t rows,
                         const float* dgates, const float* cs, const F& cs_prev, int first,
                         FloatOutputs* out) const {
    if (!use_peephole_ || rows == 0) {
      for (int k = 0; k < 3; ++k) SetZero(ctx.run(), &(*out)[first + k]);
      return;
    }
    const int64_t cell = sizes.cell;
    const auto sum = [&](int output, int64_t gate, const auto& state) {
      SumColumns(ctx, rows, cell, out->data(output), [&](int64_t row, int64_t column) {
        return static_cast<double>(dgates[(row * 4 + gate) * cell + column]) *
               static_cast<double>(state(row)[column]);
      });
    };
    sum(first, order_.i, cs_prev);
    sum(first + 1, order_.f, cs_prev);
    sum(first + 2, order_.o, [&](int64_t row) { return cs + row * cell; });
  }
};

class CellGrad final : public LstmGrad {
 public:
  absl::Status Compute(KernelContext& ctx) const override {
    CellSizes sizes;
    int64_t steps = 0;
    FloatInputs in;
    GRADFLOW_RETURN_IF_ERROR(Prepare(ctx, &sizes, &steps, &in));
    FloatOutputs out(&ctx);
    GRADFLOW_RETURN_IF_ERROR(out.Add({sizes.batch, sizes.cell}));
    GRADFLOW_ASSIGN_OR_RETURN(const TensorShape gates,
                              TensorShape::Make({sizes.batch, 4 * sizes.cell}));
    GRADFLOW_RETURN_IF_ERROR(out.Add(gates));
    for (int k = 0; k < 3; ++k) GRADFLOW_RETURN_IF_ERROR(out.Add({sizes.cell}));
    enum { kI = kFirstResult, kCs, kF, kO, kCi, kCo, kCsGrad, kHGrad };
    const StepResults results = {in.data(kI),  in.data(kCs), in.data(kF),     in.data(kO),
                                 in.data(kCi), in.data(kCo), in.data(kCsPrev)};
    BackpropStep(ctx, in, sizes, results, in.data(kCsGrad), in.data(kHGrad), out.data(1),
                 out.data(0));
    BackpropPeepholes(
        ctx, sizes, sizes.batch, out.data(1), results.cs,
        [&](int64_t row) { return results.cs_prev + row * sizes.cell; }, 2, &out);
    out.Round();
    return absl::OkStatus();
  }
};

class BlockGrad final : public LstmGrad {
 public:
  absl::Status Compute(KernelContext& ctx) const override {
    CellSizes sizes;
    int64_t steps = 0;
    FloatInputs in;
    GRADFLOW_RETURN_IF_ERROR(Prepare(ctx, &sizes, &steps, &in));
    FloatOutputs out(&ctx);
    for (int k = 0; k < kFirstResult; ++k) GRADFLOW_RETURN_IF_ERROR(out.Add(in[k].shape()));
    const int64_t batch = sizes.batch;
    const int64_t cell = sizes.cell;
    const int64_t rows = steps * batch;
    enum { kXGrad, kCsPrevGrad, kHPrevGrad, kWGrad, kWciGrad, kBGrad = 7 };
    enum { kI = kFirstResult, kCs, kF, kO, kCi, kCo, kH, kCsGrad, kHGrad };

    // The gradients of all gates, and the total gradients of the state and the output of a step.
    GRADFLOW_ASSIGN_OR_RETURN(const TensorShape gates_shape, TensorShape::Make({rows, 4 * cell}));
    Tensor dgates;
    Tensor totals;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_FLOAT, gates_shape, &dgates));
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_FLOAT, {2, batch, cell}, &totals));
    float* const dgates_data = static_cast<float*>(dgates.raw_data());
    float* const cs_total = static_cast<float*>(totals.raw_data());
    float* const h_total = cs_total + batch * cell;
    const Tensor w_x = in[kW].Slice(0, sizes.input);
    const Tensor w_h = in[kW].Slice(sizes.input, sizes.input + cell);
    const auto cs_prev_of = [&](int64_t row) {
      return row < batch ? in.data(kCsPrev) + row * cell : in.data(kCs) + (row - batch) * cell;
    };
    SetZero(ctx.run(), &out[kCsPrevGrad]);
    SetZero(ctx.run(), &out[kHPrevGrad]);
    for (int64_t t = steps; t-- > 0 && !ctx.ShouldStop();) {
      const int64_t first = t * batch * cell;
      Add(ctx, batch * cell, in.data(kCsGrad) + first, out.data(kCsPrevGrad), cs_total);
      Add(ctx, batch * cell, in.data(kHGrad) + first, out.data(kHPrevGrad), h_total);
      const StepResults results = {in.data(kI) + first,  in.data(kCs) + first, in.data(kF) + first,
                                   in.data(kO) + first,  in.data(kCi) + first, in.data(kCo) + first,
                                   cs_prev_of(t * batch)};
      BackpropStep(ctx, in, sizes, results, cs_total, h_total, dgates_data + 4 * first,
                   out.data(kCsPrevGrad));
      const Tensor step = dgates.Slice(t * batch, (t + 1) * batch);
      GRADFLOW_RETURN_IF_ERROR(
          MultiplyBatches(ctx, step, {}, w_h, {/*transposed=*/true}, &out[kHPrevGrad]));
    }

    // x_grad = dgates w_x^T, w_grad = [x, h_prev]^T dgates.
    Tensor x_grad = RowsAsMatrix(out[kXGrad], 0, rows, sizes.input);
    GRADFLOW_RETURN_IF_ERROR(MultiplyBatches(ctx, dgates, {}, w_x, {true}, &x_grad));
    Tensor rest = out[kXGrad].Slice(steps, sizes.steps);
    SetZero(ctx.run(), &rest);
    Tensor w_x_grad = out[kWGrad].Slice(0, sizes.input);
    Tensor w_h_grad = out[kWGrad].Slice(sizes.input, sizes.input + cell);
    const Tensor x = RowsAsMatrix(in[kX], 0, rows, sizes.input);
    GRADFLOW_RETURN_IF_ERROR(MultiplyBatches(ctx, x, {true}, dgates, {}, &w_x_grad));
    Tensor h_prev;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_FLOAT, {rows, cell}, &h_prev));
    float* const h_prev_data = static_cast<float*>(h_prev.raw_data());
    ForEachRowChunk(ctx, rows, cell, 0.5, [&](int64_t row, int64_t column, int64_t n) {
      const float* const from =
          row < batch ? in.data(kHPrev) + row * cell : in.data(kH) + (row - batch) * cell;
      std::copy_n(from + column, n, h_prev_data + row * cell + column);
    });
    GRADFLOW_RETURN_IF_ERROR(MultiplyBatches(ctx, h_prev, {true}, dgates, {}, &w_h_grad));
    SumColumns(ctx, rows, 4 * cell, out.data(kBGrad), [&](int64_t row, int64_t column) {
      return static_cast<double>(dgates_data[row * 4 * cell + column]);
    });
    BackpropPeepholes(ctx, sizes, rows, dgates_data, in.data(kCs), cs_prev_of, kWciGrad, &out);
    out.Round();
    return absl::OkStatus();
  }

 private:
  static void Add(const KernelContext& ctx, int64_t n, const float* a, const float* b, float* sum) {
    ParallelFor(ctx, n, BlockSizeForCost(0.5), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) sum[i] = a[i] + b[i];
    });
  }
};

// ---- Definitions ----

constexpr char kCellDoc[] = R"(x: The input of the step, [batch, input size].
cs_prev: The previous state of the cells, [batch, cell size].
h_prev: The previous output, of the shape of `cs_prev`.
)";
constexpr char kBlockDoc[] =
    R"(seq_len_max: The number of steps to compute, a scalar. Outputs of further steps are 0.
x: The inputs of all steps, [steps, batch, input size].
cs_prev: The state of the cells before the first step, [batch, cell size].
h_prev: The output before the first step, of the shape of `cs_prev`.
)";
constexpr char kWeightsDoc[] =
    R"(w: The weights of the input and of the previous output, [input size + cell size, 4 * cell size]. The
  columns belong to the gates, in the order of the forward op.
wci: The weights of the peepholes from the previous state to the input gate, [cell size].
wcf: The weights of the peepholes from the previous state to the forget gate.
wco: The weights of the peepholes from the new state to the output gate.
b: The biases, [4 * cell size].
)";
constexpr char kResultsDoc[] = R"(i: The input gate.
cs: The state of the cells, before its hyperbolic tangent.
f: The forget gate.
o: The output gate.
ci: The input of the cells.
co: The hyperbolic tangent of `cs`.
)";
constexpr char kGradsDoc[] = R"(cs_grad: The gradient with respect to `cs`.
h_grad: The gradient with respect to the output.
)";
constexpr char kPeepholeGradsDoc[] =
    R"(wci_grad: The gradient with respect to `wci`; 0 without peepholes.
wcf_grad: The gradient with respect to `wcf`; 0 without peepholes.
wco_grad: The gradient with respect to `wco`; 0 without peepholes.
)";
constexpr char kForgetDoc[] = "forget_bias: A number that is added to the forget gate.\n";
constexpr char kClipDoc[] = "cell_clip: If positive, `cs` is clamped to [-cell_clip, cell_clip].\n";
constexpr char kLastDoc[] =
    R"(use_peephole: If true, the gates read the state through `wci`, `wcf` and `wco`.
T: The type of all floating-point inputs and outputs. Half is computed in float.)";
constexpr char kFormula[] = R"(
    i  = sigmoid(gate i + wci * cs_prev)
    f  = sigmoid(gate f + wcf * cs_prev + forget_bias)
    ci = tanh(gate ci)
    cs = clip(i * ci + f * cs_prev)
    co = tanh(cs)
    o  = sigmoid(gate o + wco * cs)
    h  = o * co

where the gates are the columns of [x, h_prev] * w + b. )";

constexpr char kTypes[] = "T: {half, float}";

void AddInputs(Registry::OpRegistrar& op, absl::Span<const CellTensor> tensors) {
  for (const CellTensor& tensor : tensors) {
    const bool is_steps = absl::string_view(tensor.name) == "seq_len_max";
    op.Input(absl::StrCat(tensor.name, is_steps ? ": int64" : ": T"));
  }
}
void AddOutputs(Registry::OpRegistrar& op, absl::Span<const CellTensor> tensors) {
  for (const CellTensor& tensor : tensors) op.Output(absl::StrCat(tensor.name, ": T"));
}

}  // namespace

void Register(Registry& registry) {
  const auto types = {DT_HALF, DT_FLOAT};
  const std::string results = absl::StrCat(kResultsDoc, "h: The output.\n");
  {
    auto&& op = registry.Op("LSTMBlockCell");
    op.Group("rnn_ops");
    AddInputs(op, Inputs(false, 8));
    AddOutputs(op, kCellOutputs);
    op.Attr("forget_bias: float = 1.0")
        .Attr("cell_clip: float = 3.0")
        .Attr("use_peephole: bool = false")
        .Attr(kTypes)
        .Shape(CellShapes)
        .Doc(absl::StrCat("Computes one step of a long short-term memory.\n", kFormula,
                          "The gates are in the order i, ci, f, o.\n\n", kCellDoc, kWeightsDoc,
                          results, kForgetDoc, kClipDoc, kLastDoc));
  }
  {
    auto&& op = registry.Op("LSTMBlockCellGrad");
    op.Group("rnn_ops");
    AddInputs(op, kCellInputs);
    AddOutputs(op, kCellGradients);
    op.Attr("use_peephole: bool")
        .Attr(kTypes)
        .Shape(CellGradShapes)
        .Doc(absl::StrCat(R"(Computes the gradient of one step of a long short-term memory.

The gradient does not depend on whether the state was clipped.

)",
                          kCellDoc, kWeightsDoc, kResultsDoc, kGradsDoc,
                          R"(cs_prev_grad: The gradient with respect to `cs_prev`.
dicfo: The gradients with respect to the gates, [batch, 4 * cell size], in the order i, ci, f, o.
)",
                          kPeepholeGradsDoc, kLastDoc));
  }
  for (const bool v2 : {false, true}) {
    const char* const order = v2 ? "i, f, ci, o" : "i, ci, f, o";
    const char* const name = v2 ? "BlockLSTMV2" : "BlockLSTM";
    auto&& op = registry.Op(name);
    op.Group("rnn_ops");
    AddInputs(op, Inputs(true, 9));
    AddOutputs(op, kBlockOutputs);
    if (!v2) op.Attr("forget_bias: float = 1.0");
    op.Attr(v2 ? "cell_clip: float = 0.0" : "cell_clip: float = 3.0")
        .Attr("use_peephole: bool = false")
        .Attr(kTypes)
        .Shape(BlockLstmShape)
        .Doc(absl::StrCat("Computes the steps of a long short-term memory.\n", kFormula,
                          "The gates are in the order ", order, v2 ? ", and forget_bias is 0" : "",
                          ". All outputs are [steps, batch, cell size].\n\n", kBlockDoc,
                          kWeightsDoc, results, v2 ? "" : kForgetDoc, kClipDoc, kLastDoc));
  }
  for (const bool v2 : {false, true}) {
    const char* const name = v2 ? "BlockLSTMGradV2" : "BlockLSTMGrad";
    auto&& op = registry.Op(name);
    op.Group("rnn_ops");
    AddInputs(op, kBlockInputs);
    AddOutputs(op, kBlockGradients);
    op.Attr("use_peephole: bool")
        .Attr(kTypes)
        .Shape(BlockLstmGradShape)
        .Doc(absl::StrCat(
            "Computes the gradient of ", v2 ? "BlockLSTMV2" : "BlockLSTM", R"(.

The gradient does not depend on whether the state was clipped.

)",
            kBlockDoc, kWeightsDoc, results, kGradsDoc, R"(x_grad: The gradient with respect to `x`.
cs_prev_grad: The gradient with respect to `cs_prev`.
h_prev_grad: The gradient with respect to `h_prev`.
w_grad: The gradient with respect to `w`.
)",
            kPeepholeGradsDoc, "b_grad: The gradient with respect to `b`.\n", kLastDoc));
  }
  // The definitions are registered at the end of their sections.
  for (const char* const op : {"LSTMBlockCell", "BlockLSTM", "BlockLSTMV2"}) {
    registry.Kernel(op, MakeKernel<Lstm>).Types("T", types);
  }
  registry.Kernel("LSTMBlockCellGrad", MakeKernel<CellGrad>).Types("T", types);
  for (const char* const op : {"BlockLSTMGrad", "BlockLSTMGradV2"}) {
    registry.Kernel(op, MakeKernel<BlockGrad>).Types("T", types);
  }
}

}  // namespace gradflow::lstm
