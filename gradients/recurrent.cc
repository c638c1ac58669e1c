// Gradients of the recurrent cells in ops/nn/lstm.cc and gru.cc.
#include <string>
#include <vector>

#include "gradflow/core/attributes.h"
#include "gradflow/core/status.h"
#include "gradflow/gradients/gradient_helpers.h"
#include "gradflow/gradients/gradient_registry.h"
#include "gradflow/ops/rnn_ops.h"
#include "gradflow/ops/standard_ops.h"

namespace gradflow {
namespace gradients {
namespace {

// The outputs of an LSTM cell that have gradients. The other outputs are intermediate results.
constexpr int kCs = 1;
constexpr int kH = 6;

absl::Status CheckOutputs(const std::vector<Output>& dy) {
  for (size_t i = 0; i < dy.size(); ++i) {
    if (i == kCs || i == kH || IsNoGradient(dy[i])) continue;
    return errors::Unimplemented("no gradient of output ", i, ", only of cs and h");
  }
  return absl::OkStatus();
}

template <typename Grad>
absl::Status GradientOfBlockLstm(const Scope& scope, const Operation& op,
                                 const std::vector<Output>& dy, std::vector<Output>* dx) {
  GRADFLOW_RETURN_IF_ERROR(CheckOutputs(dy));
  bool use_peephole = false;
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "use_peephole", &use_peephole));
  const Grad grad(scope, op.input(0), op.input(1), op.input(2), op.input(3), op.input(4),
                  op.input(5), op.input(6), op.input(7), op.input(8), op.output(0), op.output(1),
                  op.output(2), op.output(3), op.output(4), op.output(5), op.output(6),
                  OrZeros(scope, op, kCs, dy), OrZeros(scope, op, kH, dy), use_peephole);
  *dx = {NoGradient(),  grad.x_grad,   grad.cs_prev_grad, grad.h_prev_grad, grad.w_grad,
         grad.wci_grad, grad.wcf_grad, grad.wco_grad,     grad.b_grad};
  return scope.status();
}

Output SizeOfRow(const Scope& scope, const Output& matrix) {
  return ops::Slice(scope, ops::Shape(scope, matrix), Vector(scope, {1}), Vector(scope, {1}));
}

// The gradients of w and bias in y = [a, b] w + bias.
struct LayerGradients {
  Output w;
  Output bias;
};
LayerGradients GradientsOfLayer(const Scope& scope, const Output& a, const Output& b,
                                const Output& dy) {
  const Output ab = ops::Concat(scope, {a, b}, 1);
  return {ops::MatMul(scope, ab, dy, ops::MatMul::TransposeA(true)), ops::BiasAddGrad(scope, dy)};
}

absl::Status GradientOfLstmCell(const Scope& scope, const Operation& op,
                                const std::vector<Output>& dy, std::vector<Output>* dx) {
  GRADFLOW_RETURN_IF_ERROR(CheckOutputs(dy));
  bool use_peephole = false;
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "use_peephole", &use_peephole));
  const ops::LSTMBlockCellGrad grad(scope, op.input(0), op.input(1), op.input(2), op.input(3),
                                    op.input(4), op.input(5), op.input(6), op.input(7),
                                    op.output(0), op.output(1), op.output(2), op.output(3),
                                    op.output(4), op.output(5), OrZeros(scope, op, kCs, dy),
                                    OrZeros(scope, op, kH, dy), use_peephole);
  // The gates come from the layer [x, h_prev] w + b.
  const Output x = op.input(0);
  const Output h_prev = op.input(2);
  const LayerGradients layer = GradientsOfLayer(scope, x, h_prev, grad.dicfo);
  const Output inputs = ops::MatMul(scope, grad.dicfo, op.input(3), ops::MatMul::TransposeB(true));
  const Output sizes = ops::Concat(scope, {SizeOfRow(scope, x), SizeOfRow(scope, h_prev)}, 0);
  const ops::SplitV parts(scope, inputs, sizes, 1, 2);
  *dx = {parts.output[0], grad.cs_prev_grad, parts.output[1], layer.w,
         grad.wci_grad,   grad.wcf_grad,     grad.wco_grad,   layer.bias};
  return scope.status();
}

absl::Status GradientOfGruCell(const Scope& scope, const Operation& op,
                               const std::vector<Output>& dy, std::vector<Output>* dx) {
  for (size_t i = 0; i < 3; ++i) {
    if (IsNoGradient(dy[i])) continue;
    return errors::Unimplemented("no gradient of output ", i, ", only of h");
  }
  const Output x = op.input(0);
  const Output h_prev = op.input(1);
  const ops::GRUBlockCellGrad grad(scope, x, h_prev, op.input(2), op.input(3), op.input(4),
                                   op.input(5), op.output(0), op.output(1), op.output(2), dy[3]);
  const LayerGradients gates = GradientsOfLayer(scope, x, h_prev, grad.d_r_bar_u_bar);
  const Output reset = ops::Mul(scope, h_prev, op.output(0));
  const LayerGradients candidate = GradientsOfLayer(scope, x, reset, grad.d_c_bar);
  *dx = {grad.d_x, grad.d_h_prev, gates.w, candidate.w, gates.bias, candidate.bias};
  return scope.status();
}

}  // namespace
}  // namespace gradients

namespace gradients::recurrent {

void Register(GradientRegistry& registry) {
  registry.Register("BlockLSTM", GradientOfBlockLstm<ops::BlockLSTMGrad>);
  registry.Register("BlockLSTMV2", GradientOfBlockLstm<ops::BlockLSTMGradV2>);
  registry.Register("LSTMBlockCell", GradientOfLstmCell);
  registry.Register("GRUBlockCell", GradientOfGruCell);
}

}  // namespace gradients::recurrent

}  // namespace gradflow
