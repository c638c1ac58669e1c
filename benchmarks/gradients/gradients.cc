// Measures how long AddSymbolicGradients takes: of chains of Mul, and of a ResNet-50.
//
//   gradients [--small] [--benchmark_filter=REGEX] [--benchmark_repetitions=N] ...
//
// --small reduces the chains.
#include "gradflow/gradients/gradients.h"

#include <benchmark/benchmark.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmarks/harness.h"
#include "benchmarks/models/networks.h"
#include "benchmarks/models/scope_backend.h"
#include "benchmarks/table.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/graph.h"
#include "gradflow/graph/scope.h"
#include "gradflow/ops/standard_ops.h"

namespace gradflow::benchmarks {
namespace {

// A loss, and what it is differentiated by.
struct Model {
  explicit Model(Scope scope) : scope(std::move(scope)) {}
  Output Weight(const PartialTensorShape& shape) {
    weights.push_back(ops::Placeholder(scope, DT_FLOAT, ops::Placeholder::Shape(shape)));
    return weights.back();
  }

  Scope scope;
  Output loss;
  std::vector<Output> weights;
};

// x w w w ..., with `length` products.
std::unique_ptr<Model> Chain(int length) {
  auto model = std::make_unique<Model>(Scope::NewRootScope());
  const Output w = model->Weight(TensorShape({}));
  Output x = model->Weight(TensorShape({}));
  for (int i = 0; i < length; ++i) x = ops::Mul(model->scope, x, w);
  model->loss = x;
  return model;
}

// ResNet-50 with the loss of a classifier.
std::unique_ptr<Model> Classifier() {
  auto model = std::make_unique<Model>(Scope::NewRootScope());
  const Scope& s = model->scope;
  const Output images = ops::Placeholder(s, DT_FLOAT, ops::Placeholder::Shape({32, 224, 224, 3}));
  const Output labels = ops::Placeholder(s, DT_INT32, ops::Placeholder::Shape({32}));
  ScopeBackend backend(s, /*training=*/true, WeightSource(/*has_values=*/false));
  const Output logits = ResNet50(backend, images);
  model->weights = backend.trainable();
  model->loss = ops::Mean(s, ops::SparseSoftmaxCrossEntropyWithLogits(s, logits, labels).loss, {0});
  return model;
}

// Times the gradients of models, each of which is differentiated once.
template <typename Make>
void Differentiate(benchmark::State& state, const Make& make) {
  for (auto _ : state) {
    state.PauseTiming();
    std::unique_ptr<Model> model = make();
    Check(model->scope.status());
    const int before = model->scope.graph()->num_nodes();
    std::vector<Output> gradients;
    state.ResumeTiming();
    Check(AddSymbolicGradients(model->scope, {model->loss}, model->weights, &gradients));
    state.PauseTiming();
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
  benchmark::RegisterBenchmark(kResNet,
                               [](benchmark::State& state) { Differentiate(state, Classifier); });
  Medians medians;
  benchmark::RunSpecifiedBenchmarks(&medians);
  Table table;
  const auto nodes = [&](const char* name) {
    return absl::StrCat(medians.Counter(name, "nodes"), " nodes, ", medians.Counter(name, "added"),
                        " added");
  };
  const double seconds = medians.Nanoseconds(kLong) / 1e9;
  table.Add("gradients of a chain of Mul", nodes(kLong), seconds, "s");
  if (seconds > 0) {
    table.Expect(seconds, Table::kAtMost, 5);
    // Linear: ten times the time of a chain of a tenth.
    table.Compare("a tenth", seconds, medians.Nanoseconds(kShort) / 1e9, Table::kAtMost, 13);
  }
  const double milliseconds = medians.Nanoseconds(kResNet) / 1e6;
  table.Add("gradients of ResNet-50", nodes(kResNet), milliseconds, "ms");
  if (milliseconds > 0) table.Expect(milliseconds, Table::kAtMost, 50);
  table.Print();
  return 0;
}

}  // namespace
}  // namespace gradflow::benchmarks

int main(int argc, char** argv) { return gradflow::benchmarks::Main(argc, argv); }
