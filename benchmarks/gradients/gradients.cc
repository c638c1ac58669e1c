// Measures how long AddSymbolicGradients takes for chains of Mul and for a ResNet-50, and how fast
// the gradients run: a forward and a backward pass of ResNet-50, compared with a hand-written
// backward pass.
//
//   gradients [--small] [--benchmark_filter=REGEX] [--benchmark_repetitions=N] ...
//
// --small reduces the chains and the images. With a filter, the passes are not measured.
#include "gradflow/gradients/gradients.h"

#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "benchmarks/harness.h"
#include "benchmarks/table.h"
#include "benchmarks/workload.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/graph.h"
#include "gradflow/graph/node.h"
#include "gradflow/graph/scope.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/runtime/session/client_session.h"

namespace gradflow::benchmarks {
namespace {

// A graph with a loss and weights. The benchmark differentiates the loss with respect to the
// weights.
struct LossGraph {
  explicit LossGraph(const Scope& scope) : scope(scope) {}
  Output Weight(const PartialTensorShape& shape) {
    weights.push_back(ops::Placeholder(scope, DT_FLOAT, ops::Placeholder::Shape(shape)));
    return weights.back();
  }

  Scope scope;
  Output loss;
  std::vector<Output> weights;
};

// x w w w ..., with `length` products.
std::unique_ptr<LossGraph> Chain(int length) {
  auto model = std::make_unique<LossGraph>(Scope::NewRootScope());
  const Output w = model->Weight(TensorShape({}));
  Output x = model->Weight(TensorShape({}));
  for (int i = 0; i < length; ++i) x = ops::Mul(model->scope, x, w);
  model->loss = x;
  return model;
}

// A convolution, a batch norm and, except at the end of a block, a ReLU.
struct ConvBatchNorm {
  ConvBatchNorm(LossGraph* model, const Output& input, int in, int out, int size, int stride,
                bool relu)
      : x(input), strides({1, stride, stride, 1}), has_relu(relu) {
    const Scope& s = model->scope;
    filter = model->Weight({size, size, in, out});
    scale = model->Weight({out});
    const Output offset = model->Weight({out});
    const Output empty = ops::Const(s, Tensor(DT_FLOAT, {0}));
    conv = ops::Conv2D(s, x, filter, strides, "SAME");
    norm = std::make_unique<ops::FusedBatchNormV3>(s, conv, scale, offset, empty, empty);
    y = relu ? Output(ops::Relu(s, norm->y)) : norm->y;
  }
  // Adds the gradients of the weights to *gradients, last weight first. Returns the gradient of the
  // input.
  Output Backward(const Scope& s, Output dy, std::vector<Output>* gradients) const {
    if (has_relu) dy = ops::ReluGrad(s, dy, y);
    const ops::FusedBatchNormGradV3 backward(s, dy, conv, scale, norm->reserve_space_1,
                                             norm->reserve_space_2, norm->reserve_space_3);
    const Output d_conv = backward.x_backprop;
    gradients->push_back(backward.offset_backprop);
    gradients->push_back(backward.scale_backprop);
    gradients->push_back(
        ops::Conv2DBackpropFilter(s, x, SizesOf(s, filter), d_conv, strides, "SAME"));
    return ops::Conv2DBackpropInput(s, SizesOf(s, x), filter, d_conv, strides, "SAME");
  }
  static Output SizesOf(const Scope& s, const Output& x) {
    const PartialTensorShape& shape = x.node()->output_shape(x.index());
    Tensor sizes(DT_INT32, {shape.dims()});
    for (int d = 0; d < shape.dims(); ++d) {
      sizes.flat<int32_t>()(d) = static_cast<int32_t>(shape.dim_size(d));
    }
    return ops::Const(s, sizes);
  }

  Output x;
  std::vector<int> strides;
  bool has_relu;
  Output filter;
  Output scale;
  Output conv;
  std::unique_ptr<ops::FusedBatchNormV3> norm;
  Output y;
};

// A residual block.
struct ResidualBlock {
  std::unique_ptr<ConvBatchNorm> shortcut;
  std::vector<std::unique_ptr<ConvBatchNorm>> layers;
  Output y;
};

struct ResNet : LossGraph {
  using LossGraph::LossGraph;

  // Adds the gradients of the weights without AddSymbolicGradients.
  std::vector<Output> HandWritten() const {
    const Scope s = scope.NewSubScope("by_hand");
    std::vector<Output> gradients;
    const auto count = static_cast<float>(batch);
    const Output d_logits = ops::Mul(s, d_losses, 1 / count);
    gradients.push_back(ops::BiasAddGrad(s, d_logits));
    gradients.push_back(ops::MatMul(s, features, d_logits, ops::MatMul::TransposeA(true)));
    const Output d_features = ops::MatMul(s, d_logits, dense, ops::MatMul::TransposeB(true));
    const Output& last = blocks.back().y;
    const PartialTensorShape& shape = last.node()->output_shape(0);
    const auto pixels = static_cast<float>(shape.dim_size(1) * shape.dim_size(2));
    const int channels = static_cast<int>(shape.dim_size(3));
    const Output kept =
        ops::Reshape(s, ops::Mul(s, d_features, 1 / pixels), {batch, 1, 1, channels});
    Output dy = ops::BroadcastTo(s, kept, ConvBatchNorm::SizesOf(s, last));
    for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) {
      dy = ops::ReluGrad(s, dy, block->y);
      Output dx = dy;
      // The shortcut comes first, because its weights are last.
      if (block->shortcut != nullptr) dx = block->shortcut->Backward(s, dy, &gradients);
      for (auto layer = block->layers.rbegin(); layer != block->layers.rend(); ++layer) {
        dy = (*layer)->Backward(s, dy, &gradients);
      }
      dy = ops::AddV2(s, dx, dy);
    }
    dy = ops::MaxPoolGrad(s, first->y, pooled, dy, {1, 3, 3, 1}, {1, 2, 2, 1}, "SAME");
    first->Backward(s, dy, &gradients);
    std::reverse(gradients.begin(), gradients.end());
    return gradients;
  }

  int batch = 0;
  Output images;
  Output labels;
  std::unique_ptr<ConvBatchNorm> first;
  Output pooled;
  std::vector<ResidualBlock> blocks;
  Output features;
  Output dense;
  // The gradients of the examples' losses with respect to the logits.
  Output d_losses;
};

std::unique_ptr<ResNet> ResNet50(int batch, int size) {
  auto model = std::make_unique<ResNet>(Scope::NewRootScope());
  const Scope& s = model->scope;
  model->batch = batch;
  model->images = ops::Placeholder(s, DT_FLOAT, ops::Placeholder::Shape({batch, size, size, 3}));
  model->labels = ops::Placeholder(s, DT_INT32, ops::Placeholder::Shape({batch}));
  model->first = std::make_unique<ConvBatchNorm>(model.get(), model->images, 3, 64, 7, 2, true);
  model->pooled = ops::MaxPool(s, model->first->y, {1, 3, 3, 1}, {1, 2, 2, 1}, "SAME");
  Output x = model->pooled;
  const int counts[] = {3, 4, 6, 3};
  int in = 64;
  for (int stage = 0; stage < 4; ++stage) {
    const int width = 64 << stage;
    for (int i = 0; i < counts[stage]; ++i) {
      const int stride = stage > 0 && i == 0 ? 2 : 1;
      ResidualBlock block;
      const auto add = [&](const Output& y, int from, int to, int filter, int step, bool relu) {
        block.layers.push_back(
            std::make_unique<ConvBatchNorm>(model.get(), y, from, to, filter, step, relu));
        return block.layers.back()->y;
      };
      Output y = add(x, in, width, 1, 1, true);
      y = add(y, width, width, 3, stride, true);
      y = add(y, width, 4 * width, 1, 1, false);
      if (i == 0) {
        block.shortcut =
            std::make_unique<ConvBatchNorm>(model.get(), x, in, 4 * width, 1, stride, false);
      }
      x = ops::Relu(s, ops::AddV2(s, block.shortcut != nullptr ? block.shortcut->y : x, y));
      block.y = x;
      model->blocks.push_back(std::move(block));
      in = 4 * width;
    }
  }
  model->features = ops::Mean(s, x, {1, 2});
  model->dense = model->Weight({in, 1000});
  const Output bias = model->Weight({1000});
  const Output logits = ops::BiasAdd(s, ops::MatMul(s, model->features, model->dense), bias);
  const ops::SparseSoftmaxCrossEntropyWithLogits entropy(s, logits, model->labels);
  model->d_losses = entropy.backprop;
  model->loss = ops::Mean(s, entropy.loss, {0});
  return model;
}

// Returns the median times, in seconds, of a forward and a backward pass with derived gradients and
// with hand-written gradients. The two run in turn.
std::vector<double> TimeBackward(int batch, int size, int repeats) {
  const std::unique_ptr<ResNet> model = ResNet50(batch, size);
  std::vector<Output> gradients[2];
  gradients[1] = model->HandWritten();
  Check(model->scope.status());
  Check(AddSymbolicGradients(model->scope, {model->loss}, model->weights, &gradients[0]));
  ClientSession::FeedType feeds;
  uint32_t seed = 1;
  for (const Output& weight : model->weights) {
    TensorShape shape;
    weight.node()->output_shape(0).AsTensorShape(&shape);
    Tensor value = NormalTensor(shape, seed++);
    // Uses He's stddev, so that activations stay in range.
    const double fan_in = shape.dims() == 4 ? static_cast<double>(shape.num_elements()) /
                                                  static_cast<double>(shape.dim_size(3))
                          : shape.dims() == 2 ? static_cast<double>(shape.dim_size(0))
                                              : 2.0;
    const auto factor = static_cast<float>(std::sqrt(2 / fan_in));
    for (float& x : value.span<float>()) x *= factor;
    feeds.emplace(weight, value);
  }
  feeds.emplace(model->images, NormalTensor({batch, size, size, 3}, 1));
  Tensor labels(DT_INT32, {batch});
  for (int i = 0; i < batch; ++i) labels.flat<int32_t>()(i) = i;
  feeds.emplace(model->labels, labels);
  const ClientSession session(model->scope);
  std::vector<double> times[2];
  std::vector<Tensor> results[2];
  for (int i = -1; i < repeats; ++i) {
    for (int k = 0; k < 2; ++k) {
      const auto start = std::chrono::steady_clock::now();
      Check(session.Run(feeds, gradients[k], &results[k]));
      const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
      if (i >= 0) times[k].push_back(time.count());
    }
  }
  for (size_t i = 0; i < results[0].size(); ++i) {
    double difference = 0;
    double largest = 0;
    for (int64_t j = 0; j < results[0][i].NumElements(); ++j) {
      const double x = results[0][i].flat<float>()(j);
      difference = std::max(difference, std::abs(x - results[1][i].flat<float>()(j)));
      largest = std::max(largest, std::abs(x));
    }
    // The negation also catches NaN.
    if (!(difference <= 1e-4 * largest)) Check(errors::Internal("gradient ", i, " differs"));
  }
  std::vector<double> medians;
  for (std::vector<double>& samples : times) {
    std::sort(samples.begin(), samples.end());
    medians.push_back(samples[samples.size() / 2]);
  }
  return medians;
}

// The CPU seconds of the program and of the system, and the peak memory so far.
struct Usage {
  double user;
  double system;
  double peak_bytes;
};
Usage UsageNow() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return {seconds(usage.ru_utime), seconds(usage.ru_stime),
          1024 * static_cast<double>(usage.ru_maxrss)};
}

// Times the gradients of models. Each model is differentiated once.
template <typename Make>
void Differentiate(benchmark::State& state, const Make& make) {
  for (auto _ : state) {
    state.PauseTiming();
    auto model = make();
    Check(model->scope.status());
    const int before = model->scope.graph()->num_nodes();
    std::vector<Output> gradients;
    const Usage start = UsageNow();
    state.ResumeTiming();
    Check(AddSymbolicGradients(model->scope, {model->loss}, model->weights, &gradients));
    state.PauseTiming();
    const Usage end = UsageNow();
    state.counters["user"] = end.user - start.user;
    state.counters["system"] = end.system - start.system;
    state.counters["peak"] = end.peak_bytes;
    for (const Output& gradient : gradients) {
      if (IsNoGradient(gradient)) Check(errors::Internal("a weight has no gradient"));
    }
    state.counters["nodes"] = before;
    state.counters["added"] = model->scope.graph()->num_nodes() - before;
    model = nullptr;
    state.ResumeTiming();
  }
}

int Main(int argc, char** argv) {
  bool small = false;
  bool filtered = false;
  for (int i = 1; i < argc; ++i) {
    filtered |= absl::StartsWith(argv[i], "--benchmark_filter");
  }
  if (!Initialize(argc, argv, "--small", &small)) return 2;
  const int length = small ? 2000 : 1000000;
  const char kLong[] = "gradients/chain";
  const char kShort[] = "gradients/short_chain";
  const char kResNet[] = "gradients/resnet50";
  benchmark::RegisterBenchmark(kLong, [=](benchmark::State& state) {
    Differentiate(state, [=] { return Chain(length); });
  })->Iterations(1);
  benchmark::RegisterBenchmark(kShort, [=](benchmark::State& state) {
    Differentiate(state, [=] { return Chain(length / 10); });
  })->Iterations(1);
  benchmark::RegisterBenchmark(kResNet, [](benchmark::State& state) {
    Differentiate(state, [] { return ResNet50(32, 224); });
  });
  Medians medians;
  benchmark::RunSpecifiedBenchmarks(&medians);
  Table table;
  const auto nodes = [&](const char* name) {
    return absl::StrCat(medians.Counter(name, "nodes"), " nodes, ", medians.Counter(name, "added"),
                        " added");
  };
  // One thread builds graphs without waiting, so its user time does not depend on other load of the
  // machine. System time is spent on memory, which some machines provide slowly.
  const double seconds = medians.Counter(kLong, "user");
  table.Add("gradients of a chain of Mul", nodes(kLong), seconds, "s");
  if (seconds > 0) {
    table.Expect(seconds, Table::kAtMost, 5);
    // Time should be linear: ten times the time of a chain of a tenth of the length.
    table.Compare("a tenth", seconds, medians.Counter(kShort, "user"), Table::kAtMost, 13);
    table.Add("  time of the system", nodes(kLong), medians.Counter(kLong, "system"), "s");
    table.Add("  peak memory of the program", nodes(kLong), medians.Counter(kLong, "peak") / 1e9,
              "GB");
  }
  const double milliseconds = medians.CpuNanoseconds(kResNet) / 1e6;
  table.Add("gradients of ResNet-50", nodes(kResNet), milliseconds, "ms");
  if (milliseconds > 0) table.Expect(milliseconds, Table::kAtMost, 50);
  if (filtered) {
    table.Print();
    return 0;
  }
  const int batch = small ? 1 : 4;
  const int size = small ? 32 : 224;
  const std::vector<double> times = TimeBackward(batch, size, small ? 1 : 11);
  table.Add("ResNet-50, forward and backward", absl::StrCat("batch ", batch), times[0] * 1e3, "ms");
  table.Compare("written by hand", times[0], times[1], Table::kAtMost, 1.05);
  table.Print();
  return 0;
}

}  // namespace
}  // namespace gradflow::benchmarks

int main(int argc, char** argv) { return gradflow::benchmarks::Main(argc, argv); }
