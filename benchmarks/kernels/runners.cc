#include "benchmarks/kernels/runners.h"

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <cmath>
#include <memory>

#include "absl/strings/str_cat.h"
#include "benchmarks/fill_normal.h"
#include "benchmarks/harness.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/runtime/memory/pool_allocator.h"
#include "gradflow/runtime/session/session.h"

namespace gradflow::benchmarks {
namespace {

Tensor Filled(const TensorShape& shape, float value) {
  Tensor tensor(DT_FLOAT, shape);
  tensor.flat<float>().setConstant(value);
  return tensor;
}

// Adds the node "op" of the case, whose inputs "x" and "g" must be fed.
void BuildOp(const Scope& scope, const Case& c) {
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

// Runs fn(begin, end) over [0, count) on `threads` threads, in about four parts per thread.
template <typename F>
Runner InParts(int64_t count, int threads, F fn) {
  if (threads == 1) return [=] { fn(0, count); };
  const auto arena = std::make_shared<tbb::task_arena>(threads);
  return [=] {
    arena->execute([&] {
      tbb::parallel_for(
          tbb::blocked_range<int64_t>(0, count, count / threads / 4 + 1),
          [&](const tbb::blocked_range<int64_t>& range) { fn(range.begin(), range.end()); });
    });
  };
}

}  // namespace

std::string Case::OpName() const {
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

std::string Case::ShapeName() const {
  const bool is_batch_norm = op >= Op::kBatchNormInference;
  return absl::StrCat(shape.DebugString(),
                      !is_batch_norm ? "" : (channels_first ? " NCHW" : " NHWC"));
}

double Case::Bytes() const {
  return sizeof(float) * static_cast<double>(shape.num_elements()) * (IsGradient(op) ? 3 : 2);
}

Tensor NormalTensor(const TensorShape& shape, uint32_t seed) {
  static const auto* const pool = new std::shared_ptr<Allocator>(std::make_shared<PoolAllocator>());
  Tensor tensor(*pool, DT_FLOAT, shape);
  FillNormal(tensor.flat<float>().data(), tensor.NumElements(), seed);
  return tensor;
}

Runner Ours(const Case& c, int threads) {
  Scope scope = Scope::NewRootScope();
  BuildOp(scope, c);
  GraphDef graph;
  Check(scope.ToGraphDef(&graph));
  SessionOptions options;
  options.config.set_intra_op_parallelism_threads(threads);
  const std::shared_ptr<Session> session(NewSession(options));
  Check(session->Create(graph));
  std::vector<std::pair<std::string, Tensor>> feeds = {{"x", NormalTensor(c.shape, 1)}};
  if (IsGradient(c.op)) feeds.emplace_back("g", NormalTensor(c.shape, 2));
  // Kernels compute all their outputs, fetched or not.
  return [=] {
    std::vector<Tensor> outputs;
    Check(session->Run(feeds, {"op"}, {}, &outputs));
  };
}

Runner Triad(const Case& c, int threads) {
  const int64_t count = c.shape.num_elements();
  Tensor a = NormalTensor(c.shape, 3);
  const Tensor b = NormalTensor(c.shape, 1);
  const Tensor d = NormalTensor(c.shape, 2);
  float* const out = a.flat<float>().data();
  const float* const x = b.flat<float>().data();
  const float* const y = d.flat<float>().data();
  return InParts(count, threads, [a, b, d, out, x, y](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = x[i] + 3.0f * y[i];
  });
}

Runner Copy(const Case& c, int threads) {
  const int64_t count = c.shape.num_elements();
  Tensor a = NormalTensor(c.shape, 3);
  const Tensor b = NormalTensor(c.shape, 1);
  float* const out = a.flat<float>().data();
  const float* const x = b.flat<float>().data();
  return InParts(count, threads, [a, b, out, x](int64_t begin, int64_t end) {
    std::copy(x + begin, x + end, out + begin);
  });
}

}  // namespace gradflow::benchmarks
