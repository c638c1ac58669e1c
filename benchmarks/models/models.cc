// Times networks against libtorch, or writes them as graphs.
//
//   models [--model NAME] [--batch N] [--threads N] [--repeats N] [--training] [--write FOLDER]
//          [--small] [--benchmark_out=FILE]
//
// --write writes the networks to GraphDef files instead of timing them. --benchmark_out writes the
// times in Google Benchmark's JSON format.
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
#include "benchmarks/models/scope_backend.h"
#include "gradflow/gradients/gradients.h"
#include "gradflow/graph/export.h"
#include "gradflow/io/file.h"
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
    case Network::kInceptionV3:
      return "inception_v3";
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
    case Network::kInceptionV3:
      return {batch, 299, 299, 3};
    default:
      return {batch, 224, 224, 3};
  }
}

namespace {

// A network in a graph. Its input is "input" and its output "output".
struct NetworkGraph {
  Scope scope = Scope::NewRootScope();
  Output input;
  Output output;
  ClientSession::FeedType feeds;
  // Operations to run in addition to fetching the output.
  std::vector<Operation> targets;
};

NetworkGraph MakeModel(Network network, int64_t batch, bool training) {
  NetworkGraph model;
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
  const auto model = std::make_shared<NetworkGraph>(MakeModel(network, batch, training));
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

// Returns the median times in milliseconds; 0 for a null runner. The runners take turns.
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

struct ModelFlags {
  std::vector<Network> networks{std::begin(kNetworks), std::end(kNetworks)};
  std::vector<int64_t> batches = {1, 8};
  std::vector<int> threads = {1, 2};
  int repeats = 7;
  bool only_training = false;
  std::string folder;
};

void Print(Network network, int64_t batch, int threads, bool training, int repeats,
           Results* results) {
  const Tensor input = NormalTensor(InputShape(network, batch), 77);
  Tensor outputs[3];
  std::vector<Runner> runners = {
      OurNetwork(network, input, batch, training, false, threads, &outputs[0]),
      training ? nullptr : OurNetwork(network, input, batch, false, true, threads, &outputs[1]),
      TorchNetwork(network, input, training, threads, &outputs[2])};
  const std::vector<double> times = Measure(runners, repeats);
  const char* const pass = training ? "training" : "inference";
  const std::string name = absl::StrCat(NameOf(network), ", batch ", batch, ", ", pass);
  results->Add(name, threads, "ours", times[0]);
  results->Add(name, threads, "libtorch", times[2]);
  if (!training) {
    results->Add(absl::StrCat(name, ", --fast"), threads, "ours", times[1]);
    results->Add(absl::StrCat(name, ", --fast"), threads, "libtorch", times[2]);
  }
  std::printf("%-14s%6d%9d  %-9s%12.2f", NameOf(network), static_cast<int>(batch), threads, pass,
              times[0]);
  if (training) {
    std::printf("%12s", "-");
  } else {
    std::printf("%12.2f", times[1]);
  }
  if (runners[2] != nullptr) {
    std::printf("%12.2f%10.2f", times[2], times[0] / times[2]);
    if (!training) std::printf("%10.2f", times[1] / times[2]);
    const double difference = Difference(outputs[0], outputs[2]);
    if (difference > 1e-3) std::printf("  results differ by %.2g", difference);
  }
  std::printf("\n");
  std::fflush(stdout);
}

void Write(const std::string& folder, Network network, int64_t batch) {
  const NetworkGraph model = MakeModel(network, batch, false);
  GraphDef graph;
  Check(model.scope.ToGraphDef(&graph));
  const std::string path = absl::StrCat(folder, "/", NameOf(network), ".pb");
  Check(internal::WriteFile(path, {graph.SerializeAsString()}));
  std::printf("%s: input %s, output\n", path.c_str(),
              InputShape(network, batch).DebugString().c_str());
}

int Main(int argc, char** argv) {
  Results results(&argc, argv);
  ModelFlags flags;
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
      std::fprintf(stderr,
                   "usage: models [--model resnet50|mobilenet_v2|inception_v3|lstm|bert_layer]\n"
                   "              [--batch N] [--threads N] [--repeats N] [--training]\n"
                   "              [--write FOLDER] [--small] [--benchmark_out=FILE]\n");
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
          Print(network, batch, threads, training, flags.repeats, &results);
        }
      }
    }
  }
  results.Write();
  return 0;
}

}  // namespace
}  // namespace gradflow::benchmarks

int main(int argc, char** argv) { return gradflow::benchmarks::Main(argc, argv); }
