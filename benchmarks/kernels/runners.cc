#include "benchmarks/kernels/runners.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmarks/harness.h"
#include "gradflow/ops/standard_ops.h"

namespace gradflow::benchmarks {
namespace {

Tensor Filled(const TensorShape& shape, float value) {
  Tensor tensor(DT_FLOAT, shape);
  tensor.flat<float>().setConstant(value);
  return tensor;
}

// Adds the node "op" of the case. Its inputs "x" and "g" must be fed.
void BuildOp(const Scope& scope, const KernelCase& c) {
  using namespace ops;  // NOLINT: short
  const Output x = Placeholder(scope.WithOpName("x"), DT_FLOAT);
  const Output g = Placeholder(scope.WithOpName("g"), DT_FLOAT);
  const TensorShape vector({c.channels()});
  const Output scale = Const(scope, Input::Initializer(NormalTensor(vector, 3)));
  const Output mean = Const(scope, Input::Initializer(NormalTensor(vector, 4)));
  const Output variance = Const(scope, Input::Initializer(Filled(vector, 1)));
  const char* const format = c.channels_first ? "NCHW" : "NHWC";
  const Scope named = scope.WithOpName("op");
  switch (c.op) {
    case Op::kFakeQuant:
      FakeQuantWithMinMaxVars(named, x, -1.f, 1.f);
      break;
    case Op::kFakeQuantPerChannel:
      FakeQuantWithMinMaxVarsPerChannel(
          named, x, Const(scope, Input::Initializer(Filled(vector, -1))), variance);
      break;
    case Op::kFakeQuantGradient:
      FakeQuantWithMinMaxVarsGradient(named, g, x, -1.f, 1.f);
      break;
    case Op::kFakeQuantPerChannelGradient:
      FakeQuantWithMinMaxVarsPerChannelGradient(
          named, g, x, Const(scope, Input::Initializer(Filled(vector, -1))), variance);
      break;
    case Op::kBatchNormInference:
    case Op::kBatchNormTraining:
      FusedBatchNormV3(
          named, x, scale, mean, mean, variance,
          FusedBatchNormV3::DataFormat(format).IsTraining(c.op == Op::kBatchNormTraining));
      break;
    case Op::kBatchNormGradInference:
    case Op::kBatchNormGradTraining:
      FusedBatchNormGradV3(
          named, g, x, scale, mean, variance, mean,
          FusedBatchNormGradV3::DataFormat(format).IsTraining(c.op == Op::kBatchNormGradTraining));
      break;
  }
  Check(scope.status());
}

bool IsGradient(Op op) {
  return op != Op::kFakeQuant && op != Op::kFakeQuantPerChannel && op != Op::kBatchNormInference &&
         op != Op::kBatchNormTraining;
}

}  // namespace

std::string KernelCase::OpName() const {
  switch (op) {
    case Op::kFakeQuant:
      return "FakeQuantWithMinMaxVars";
    case Op::kFakeQuantPerChannel:
      return "FakeQuantWithMinMaxVarsPerChannel";
    case Op::kFakeQuantGradient:
      return "FakeQuantWithMinMaxVarsGradient";
    case Op::kFakeQuantPerChannelGradient:
      return "FakeQuantWithMinMaxVarsPerChannelGradient";
    case Op::kBatchNormInference:
      return "FusedBatchNorm (inference)";
    case Op::kBatchNormTraining:
      return "FusedBatchNorm (training)";
    case Op::kBatchNormGradInference:
      return "FusedBatchNormGrad (inference)";
    case Op::kBatchNormGradTraining:
      return "FusedBatchNormGrad (training)";
  }
  return "";
}

std::string KernelCase::ShapeName() const {
  const bool is_batch_norm = op >= Op::kBatchNormInference;
  return absl::StrCat(shape.DebugString(),
                      !is_batch_norm ? "" : (channels_first ? " NCHW" : " NHWC"));
}

double KernelCase::Bytes() const {
  return sizeof(float) * static_cast<double>(shape.num_elements()) * (IsGradient(op) ? 3 : 2);
}

Runner Ours(const KernelCase& c, int threads) {
  Scope scope = Scope::NewRootScope();
  BuildOp(scope, c);
  std::vector<std::pair<std::string, Tensor>> feeds = {{"x", NormalTensor(c.shape, 1)}};
  if (IsGradient(c.op)) feeds.emplace_back("g", NormalTensor(c.shape, 2));
  return InSession(scope, std::move(feeds), threads);
}

Runner Triad(const KernelCase& c, int threads) { return Triad(c.shape.num_elements(), threads); }

Runner Copy(const KernelCase& c, int threads) { return Copy(c.shape.num_elements(), threads); }

}  // namespace gradflow::benchmarks
