// Times networks beside libtorch, and writes them as graphs.
//
//   models [--model NAME] [--batch N] [--threads N] [--repeats N] [--training] [--write FOLDER]
//   [--small]
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "benchmarks/harness.h"
#include "benchmarks/models/networks.h"
#include "gradflow/gradients/gradients.h"
#include "gradflow/graph/export.h"
#include "gradflow/io/file.h"
#include "gradflow/ops/rnn_ops.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/runtime/session/client_session.h"
#include "gradflow/runtime/session/options.h"

namespace gradflow::benchmarks {

const char* NameOf(Network network) {
  switch (network) {
    case Network::kResNet50:
      return "resnet50";
    case Network::kMobileNetV2:
      return "mobilenet_v2";
    case Network::kLstm:
      return "lstm";
    case Network::kBertLayer:
      return "bert_layer";
  }
  return "";
}

TensorShape InputShape(Network network, int64_t batch) {
  switch (network) {
    case Network::kLstm:
      return {kLstmSteps, batch, kLstmCells};
    case Network::kBertLayer:
      return {batch * kBertLength, kBertSize};
    default:
      return {batch, 224, 224, 3};
  }
}

namespace {

// Weights are constants, or placeholders that each run feeds, since training changes them.
class ScopeBackend {
 public:
  using Value = Output;
  using Dims = std::vector<int64_t>;

  ScopeBackend(const Scope& scope, bool training) : scope_(scope), training_(training) {}
  const std::vector<std::pair<Output, Tensor>>& weights() const { return weights_; }
  // The weights that are learnt.
  const std::vector<Output>& trainable() const { return trainable_; }

  Value Conv(const Value& x, int64_t in, int64_t out, int64_t size, int64_t stride) {
    const Output w = Weight(source_.Filter({size, size, in, out}, size * size * in));
    const int s = static_cast<int>(stride);
    if (size == 1) return ops::Conv2D(scope_, x, w, {1, s, s, 1}, "VALID");
    return ops::Conv2D(scope_, x, w, {1, s, s, 1}, "EXPLICIT",
                       ops::Conv2D::ExplicitPaddings(Padding(static_cast<int>(size / 2))));
  }
  Value Depthwise(const Value& x, int64_t channels, int64_t stride) {
    const Output w = Weight(source_.Filter({3, 3, channels, 1}, 9));
    const int s = static_cast<int>(stride);
    return ops::DepthwiseConv2dNative(scope_, x, w, {1, s, s, 1}, "EXPLICIT",
                                      ops::DepthwiseConv2dNative::ExplicitPaddings(Padding(1)));
  }
  Value Norm(const Value& x, int64_t channels) {
    const Output scale = Weight(source_.Vector(channels, 1));
    const Output offset = Weight(source_.Vector(channels, 0));
    Output mean = Weight(source_.Vector(channels, 0), false);
    Output variance = Weight(source_.Vector(channels, 1), false);
    if (training_) mean = variance = ops::Const(scope_, Tensor(DT_FLOAT, {0}));
    return ops::FusedBatchNormV3(scope_, x, scale, offset, mean, variance,
                                 ops::FusedBatchNormV3::Epsilon(1e-3f).IsTraining(training_))
        .y;
  }
  Value Relu(const Value& x) { return ops::Relu(scope_, x); }
  Value Relu6(const Value& x) { return ops::Relu6(scope_, x); }
  Value Add(const Value& x, const Value& y) { return ops::AddV2(scope_, x, y); }
  Value MaxPool(const Value& x) {
    return ops::MaxPool(scope_, x, {1, 3, 3, 1}, {1, 2, 2, 1}, "EXPLICIT",
                        ops::MaxPool::ExplicitPaddings(Padding(1)));
  }
  Value Average(const Value& x) { return ops::Mean(scope_, x, {1, 2}); }
  Value Dense(const Value& x, int64_t in, int64_t out) {
    const Output w = Weight(source_.Filter({in, out}, in));
    return ops::BiasAdd(scope_, ops::MatMul(scope_, x, w), Weight(source_.Vector(out, 0)));
  }
  Value Lstm(const Value& x, int64_t cells) {
    const int64_t in = kLstmCells;
    const Output w = Weight(source_.Filter({in + cells, 4 * cells}, in + cells));
    const Output bias = Weight(source_.Vector(4 * cells, 0));
    const Output peephole = ops::Const(scope_, 0.0f, TensorShape({cells}));
    const Output batch = ops::Slice(scope_, ops::Shape(scope_, x), {1}, {1});
    const Output shape =
        ops::Concat(scope_, {batch, ops::Const(scope_, {static_cast<int>(cells)})}, 0);
    const Output state = ops::Fill(scope_, shape, 0.0f);
    const Output steps = ops::Const(scope_, int64_t{kLstmSteps});
    return ops::BlockLSTMV2(scope_, steps, x, state, state, w, peephole, peephole, peephole, bias)
        .h;
  }
  Value Reshape(const Value& x, const Dims& dims) {
    return ops::Reshape(scope_, x, ops::Const(scope_, Ints(dims)));
  }
  Value Transpose(const Value& x, const Dims& order) {
    return ops::Transpose(scope_, x, ops::Const(scope_, Ints(order)));
  }
  Value BatchMatMul(const Value& x, const Value& y, bool transposed) {
    return ops::BatchMatMulV2(scope_, x, y, ops::BatchMatMulV2::AdjY(transposed));
  }
  Value Scale(const Value& x, float factor) { return ops::Mul(scope_, x, factor); }
  Value Softmax(const Value& x) { return ops::Softmax(scope_, x); }
  Value LayerNorm(const Value& x, int64_t size) {
    const Output scale = Weight(source_.Vector(size, 1));
    const Output offset = Weight(source_.Vector(size, 0));
    const Output mean = ops::Mean(scope_, x, -1, ops::Mean::KeepDims(true));
    const Output variance =
        ops::Mean(scope_, ops::SquaredDifference(scope_, x, mean), -1, ops::Mean::KeepDims(true));
    const Output factor =
        ops::Mul(scope_, ops::Rsqrt(scope_, ops::AddV2(scope_, variance, 1e-6f)), scale);
    const Output shift = ops::Sub(scope_, offset, ops::Mul(scope_, mean, factor));
    return ops::AddV2(scope_, ops::Mul(scope_, x, factor), shift);
  }
  Value Gelu(const Value& x) {
    const Output erf = ops::Erf(scope_, ops::Mul(scope_, x, std::sqrt(0.5f)));
    return ops::Mul(scope_, ops::Mul(scope_, x, 0.5f), ops::AddV2(scope_, erf, 1.0f));
  }

 private:
  static std::vector<int> Padding(int n) { return {0, 0, n, n, n, n, 0, 0}; }
  static Tensor Ints(const Dims& values) {
    Tensor tensor(DT_INT32, {static_cast<int64_t>(values.size())});
    for (size_t i = 0; i < values.size(); ++i) {
      tensor.flat<int32_t>()(static_cast<int64_t>(i)) = static_cast<int32_t>(values[i]);
    }
    return tensor;
  }
  Output Weight(const Tensor& value, bool trainable = true) {
    if (!training_) return ops::Const(scope_, value);
    weights_.emplace_back(
        ops::Placeholder(scope_, DT_FLOAT, ops::Placeholder::Shape(value.shape())), value);
    if (trainable) trainable_.push_back(weights_.back().first);
    return weights_.back().first;
  }

  const Scope& scope_;
  const bool training_;
  WeightSource source_;
  std::vector<std::pair<Output, Tensor>> weights_;
  std::vector<Output> trainable_;
};

// A network in a graph, whose input is "input" and whose output is "output".
struct Model {
  Scope scope = Scope::NewRootScope();
  Output input;
  Output output;
  ClientSession::FeedType feeds;
  // The operations of a run besides the output.
  std::vector<Operation> targets;
};

Model MakeModel(Network network, int64_t batch, bool training) {
  Model model;
  TensorShape shape = InputShape(network, batch);
  model.input =
      ops::Placeholder(model.scope.WithOpName("input"), DT_FLOAT, ops::Placeholder::Shape(shape));
  ScopeBackend backend(model.scope, training);
  const Output y = MakeNetwork(network, batch, backend, model.input);
  model.output = ops::Identity(model.scope.WithOpName("output"), y);
  Check(model.scope.status());
  if (!training) return model;
  const Output loss = ops::L2Loss(model.scope, y);
  std::vector<Output> gradients;
  Check(AddSymbolicGradients(model.scope, {loss}, backend.trainable(), &gradients));
  for (const Output& gradient : gradients) model.targets.push_back(gradient.op());
  for (const auto& [weight, value] : backend.weights()) model.feeds.emplace(weight, value);
  return model;
}

Runner OurNetwork(Network network, const Tensor& input, int64_t batch, bool training, bool fast,
                  int threads, Tensor* output) {
  const auto model = std::make_shared<Model>(MakeModel(network, batch, training));
  SessionOptions options;
  options.fold_batch_norms = fast;
  options.config.set_intra_op_parallelism_threads(threads);
  options.config.set_inter_op_parallelism_threads(threads);
  model->feeds.emplace(model->input, input);
  const auto session = std::make_shared<ClientSession>(model->scope, options);
  return [=] {
    std::vector<Tensor> outputs;
    Check(session->Run(model->feeds, {model->output}, model->targets, &outputs));
    if (output != nullptr) *output = outputs[0];
  };
}

// Returns the median times in milliseconds, each runner in turn; 0 without a runner.
std::vector<double> Measure(const std::vector<Runner>& runners, int repeats) {
  std::vector<std::vector<double>> times(runners.size());
  constexpr int kWarmUpRuns = 2;
  for (int i = -kWarmUpRuns; i < repeats; ++i) {
    for (size_t k = 0; k < runners.size(); ++k) {
      if (runners[k] == nullptr) continue;
      const auto start = std::chrono::steady_clock::now();
      runners[k]();
      const std::chrono::duration<double, std::milli> time =
          std::chrono::steady_clock::now() - start;
      if (i >= 0) times[k].push_back(time.count());
    }
  }
  std::vector<double> medians;
  for (std::vector<double>& samples : times) {
    std::sort(samples.begin(), samples.end());
    medians.push_back(samples.empty() ? 0 : samples[samples.size() / 2]);
  }
  return medians;
}

// Returns the largest difference, relative to the largest element.
double Difference(const Tensor& x, const Tensor& y) {
  double difference = 0;
  double largest = 0;
  const float* const a = static_cast<const float*>(x.raw_data());
  const float* const b = static_cast<const float*>(y.raw_data());
  if (x.NumElements() != y.NumElements()) return HUGE_VAL;
  for (int64_t i = 0; i < x.NumElements(); ++i) {
    difference = std::max(difference, std::abs(static_cast<double>(a[i]) - b[i]));
    largest = std::max(largest, std::abs(static_cast<double>(b[i])));
  }
  return difference / largest;
}

struct Flags {
  std::vector<Network> networks{std::begin(kNetworks), std::end(kNetworks)};
  std::vector<int64_t> batches = {1, 8};
  std::vector<int> threads = {1, 2};
  int repeats = 7;
  bool only_training = false;
  std::string folder;
};

void Print(Network network, int64_t batch, int threads, bool training, int repeats) {
  const Tensor input = NormalTensor(InputShape(network, batch), 77);
  Tensor results[3];
  std::vector<Runner> runners = {
      OurNetwork(network, input, batch, training, false, threads, &results[0]),
      training ? nullptr : OurNetwork(network, input, batch, false, true, threads, &results[1]),
      TorchNetwork(network, input, training, threads, &results[2])};
  const std::vector<double> times = Measure(runners, repeats);
  std::printf("%-14s%6d%9d  %-9s%12.2f", NameOf(network), static_cast<int>(batch), threads,
              training ? "training" : "inference", times[0]);
  if (training) {
    std::printf("%12s", "-");
  } else {
    std::printf("%12.2f", times[1]);
  }
  if (runners[2] != nullptr) {
    std::printf("%12.2f%10.2f", times[2], times[0] / times[2]);
    if (!training) std::printf("%10.2f", times[1] / times[2]);
    const double difference = Difference(results[0], results[2]);
    if (difference > 1e-3) std::printf("  results differ by %.2g", difference);
  }
  std::printf("\n");
  std::fflush(stdout);
}

void Write(const std::string& folder, Network network, int64_t batch) {
  const Model model = MakeModel(network, batch, false);
  GraphDef graph;
  Check(model.scope.ToGraphDef(&graph));
  const std::string path = absl::StrCat(folder, "/", NameOf(network), ".pb");
  Check(internal::WriteFile(path, {graph.SerializeAsString()}));
  std::printf("%s: input %s, output\n", path.c_str(),
              InputShape(network, batch).DebugString().c_str());
}

int Main(int argc, char** argv) {
  Flags flags;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    const char* const value = i + 1 < argc ? argv[i + 1] : "";
    int number = 0;
    const bool is_number = absl::SimpleAtoi(value, &number) && number > 0;
    if (flag == "--small") {
      flags.networks = {Network::kLstm};
      flags.batches = {1};
      flags.repeats = 1;
      continue;
    }
    if (flag == "--training") {
      flags.only_training = true;
      continue;
    }
    ++i;
    if (flag == "--batch" && is_number) {
      flags.batches = {number};
    } else if (flag == "--threads" && is_number) {
      flags.threads = {number};
    } else if (flag == "--repeats" && is_number) {
      flags.repeats = number;
    } else if (flag == "--write" && *value != 0) {
      flags.folder = value;
    } else if (flag == "--model" &&
               std::any_of(std::begin(kNetworks), std::end(kNetworks), [&](Network network) {
                 return std::strcmp(NameOf(network), value) == 0;
               })) {
      flags.networks = {
          *std::find_if(std::begin(kNetworks), std::end(kNetworks),
                        [&](Network network) { return std::strcmp(NameOf(network), value) == 0; })};
    } else {
      std::fprintf(
          stderr,
          "usage: models [--model resnet50|mobilenet_v2|lstm|bert_layer] [--batch N]\n"
          "              [--threads N] [--repeats N] [--training] [--write FOLDER] [--small]\n");
      return 2;
    }
  }
  if (!flags.folder.empty()) {
    for (const Network network : flags.networks) Write(flags.folder, network, flags.batches[0]);
    return 0;
  }
  std::printf("%-14s%6s%9s  %-9s%12s%12s%12s%10s%10s\n", "model", "batch", "threads", "",
              "gradflow ms", "--fast ms", "torch ms", "/ torch", "fast /");
  for (const Network network : flags.networks) {
    for (const int64_t batch : flags.batches) {
      for (const int threads : flags.threads) {
        for (const bool training : {false, true}) {
          if (flags.only_training && !training) continue;
          Print(network, batch, threads, training, flags.repeats);
        }
      }
    }
  }
  return 0;
}

}  // namespace
}  // namespace gradflow::benchmarks

int main(int argc, char** argv) { return gradflow::benchmarks::Main(argc, argv); }
