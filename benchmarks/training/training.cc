// Measures training: Adam compared with a loop over its arrays, checkpoints compared with plain
// files, the cost per node of a network of small variables, and a step of the
// network of examples/qat_fashion_mnist, without quantization, compared with libtorch.
//
//   training [--small] [--folder FOLDER] [--benchmark_out=FILE]
//
// The two sides of a ratio run in turn, so that other load of the machine affects both. Checkpoints
// are written to FOLDER (default: "."). --small reduces all sizes. --benchmark_out writes the times
// in Google Benchmark's JSON format.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmarks/harness.h"
#include "benchmarks/table.h"
#include "benchmarks/training/networks.h"
#include "benchmarks/workload.h"
#include "examples/qat_fashion_mnist/network.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/graph.h"
#include "gradflow/io/checkpoint.h"
#include "gradflow/io/checkpoint_files.h"
#include "gradflow/io/file.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/runtime/session/client_session.h"
#include "gradflow/runtime/session/options.h"
#include "gradflow/training/layers.h"
#include "gradflow/training/losses.h"
#include "gradflow/training/optimizer.h"
#include "gradflow/training/variables.h"

namespace gradflow::benchmarks {
namespace {

// Returns the median times in seconds; 0 for a null runner. The runners take turns.
std::vector<double> Measure(const std::vector<Runner>& runners, int repeats) {
  std::vector<std::vector<double>> times(runners.size());
  for (int i = -1; i < repeats; ++i) {
    for (size_t j = 0; j < runners.size(); ++j) {
      // Alternates the direction, because a runner affects the caches and the memory of the next
      // runner.
      const size_t k = i % 2 == 0 ? j : runners.size() - 1 - j;
      if (runners[k] == nullptr) continue;
      const auto start = std::chrono::steady_clock::now();
      runners[k]();
      const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
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

SessionOptions WithThreads(int threads) {
  SessionOptions options;
  options.config.set_intra_op_parallelism_threads(threads);
  options.config.set_inter_op_parallelism_threads(threads);
  return options;
}

std::string Threads(int threads) {
  return absl::StrCat(threads, threads == 1 ? " thread" : " threads");
}

// ---- Adam ----

Runner AdamUpdate(int64_t size, const Tensor& gradient, int threads) {
  const Scope s = Scope::NewRootScope();
  std::vector<Output> variables;
  std::vector<Operation> init;
  for (const char* name : {"w", "m", "v"}) {
    variables.push_back(training::NewVariable(s, name, DT_FLOAT, {size}));
    init.push_back(training::AssignVariable(s, variables.back(), ops::Fill(s, {size}, 0.5f)));
  }
  const Output dy = ops::Placeholder(s, DT_FLOAT, ops::Placeholder::Shape({size}));
  const Operation step = ops::ResourceApplyAdam(s, variables[0], variables[1], variables[2], 0.9f,
                                                0.999f, 1e-3f, 0.9f, 0.999f, 1e-8f, dy)
                             .operation;
  Check(s.status());
  const auto session = std::make_shared<ClientSession>(s, WithThreads(threads));
  Check(session->Run({}, {}, init, nullptr));
  return [=] { Check(session->Run({{dy, gradient}}, {}, {step}, nullptr)); };
}

// Makes Adam's memory accesses: reads four arrays and writes three of them.
Runner AdamTraffic(int64_t size, const Tensor& gradient, int threads) {
  Tensor a = NormalTensor({size}, 1);
  Tensor b = NormalTensor({size}, 2);
  Tensor c = NormalTensor({size}, 3);
  float* const w = a.flat<float>().data();
  float* const m = b.flat<float>().data();
  float* const v = c.flat<float>().data();
  const float* const g = gradient.flat<float>().data();
  return InParts(size, threads, [a, b, c, gradient, w, m, v, g](int64_t begin, int64_t end) {
    float* __restrict to_w = w;
    float* __restrict to_m = m;
    float* __restrict to_v = v;
    const float* __restrict from = g;
    for (int64_t i = begin; i < end; ++i) {
      to_m[i] = 0.5f * (to_m[i] + from[i]);
      to_v[i] = 0.5f * (to_v[i] + from[i]);
      to_w[i] = 0.5f * (to_w[i] + from[i]);
    }
  });
}

void MeasureAdam(bool small, Table* table, Results* results) {
  const int64_t size = int64_t{1} << (small ? 14 : 24);
  const Tensor gradient = NormalTensor({size}, 7);
  for (const int threads : {1, 2}) {
    const std::vector<double> times =
        Measure({AdamUpdate(size, gradient, threads), AdamTraffic(size, gradient, threads)}, 15);
    const std::string name = absl::StrCat("Adam of ", size, " parameters");
    table->Add(name, Threads(threads), times[0] * 1e3, "ms");
    results->Add(name, threads, "ours", times[0]);
    results->Add(name, threads, "a loop over its arrays", times[1]);
    table->Compare("a loop with its 7 reads and writes", times[0], times[1], Table::kAtMost, 1.15);
  }
}

// ---- Checkpoints ----

void WritePlainly(const std::string& path, const std::vector<CheckpointTensor>& tensors) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  bool ok = file >= 0;
  for (const CheckpointTensor& tensor : tensors) {
    absl::string_view bytes = tensor.tensor.tensor_data();
    while (ok && !bytes.empty()) {
      const ssize_t n = write(file, bytes.data(), bytes.size());
      ok = n > 0;
      if (ok) bytes.remove_prefix(n);
    }
  }
  if (!ok || fsync(file) != 0 || close(file) != 0) {
    Check(errors::Internal("cannot write '", path, "'"));
  }
}

// Reads the bytes of tensors into new tensors.
void ReadPlainly(const std::string& path, const std::vector<CheckpointTensor>& tensors) {
  size_t size = 0;
  const absl::StatusOr<internal::FileDescriptor> file = internal::OpenFile(path, &size);
  Check(file.status());
  size_t at = 0;
  std::vector<Tensor> read;
  for (const CheckpointTensor& tensor : tensors) {
    read.emplace_back(tensor.tensor.dtype(), tensor.tensor.shape());
    const size_t bytes = tensor.tensor.TotalBytes();
    Check(internal::ReadAt(file->get(), at, static_cast<char*>(read.back().raw_data()), bytes));
    at += bytes;
  }
}

void MeasureCheckpoints(bool small, const std::string& folder, Table* table, Results* results) {
  constexpr int kTensors = 16;
  const int64_t size = int64_t{1} << (small ? 12 : 24);
  std::vector<CheckpointTensor> tensors;
  for (int i = 0; i < kTensors; ++i) {
    tensors.push_back({absl::StrCat("t", 10 + i), NormalTensor({size}, 1 + i), ""});
  }
  const double bytes = static_cast<double>(kTensors * size * 4);
  const std::string prefix = absl::StrCat(folder, "/gradflow_benchmark_", getpid());
  const std::string plain = absl::StrCat(prefix, ".plain");
  const Runner write = [&] {
    internal::RemoveCheckpoint(prefix);
    Check(WriteCheckpoint(prefix, tensors));
    Check(internal::SyncFile(internal::DataFile(prefix, 0, 1)));
    Check(internal::SyncFile(internal::IndexFile(prefix)));
  };
  const Runner write_plainly = [&] {
    unlink(plain.c_str());
    WritePlainly(plain, tensors);
  };
  const Runner read = [&] {
    const absl::StatusOr<Checkpoint> checkpoint = Checkpoint::Open(prefix);
    Check(checkpoint.status());
    std::vector<Tensor> values;
    for (const CheckpointTensor& tensor : tensors) {
      absl::StatusOr<Tensor> value = checkpoint->Read(tensor.name);
      Check(value.status());
      values.push_back(*std::move(value));
    }
  };
  const int repeats = small ? 1 : 7;
  const std::vector<double> writes = Measure({write, write_plainly}, repeats);
  const std::vector<double> reads = Measure({read, [&] { ReadPlainly(plain, tensors); }}, repeats);
  internal::RemoveCheckpoint(prefix);
  unlink(plain.c_str());
  const std::string what = absl::StrCat(static_cast<int64_t>(bytes) >> 20, " MiB");
  // The table shows speeds. The ratio is the time of the plain file divided by our time.
  table->Add("writing a checkpoint", what, bytes / writes[0] / 1e9, "GB/s");
  table->Compare("writing and flushing", writes[1], writes[0], Table::kAtLeast, 0.8);
  table->Add("reading a checkpoint", what, bytes / reads[0] / 1e9, "GB/s");
  table->Compare("reading from the file cache", reads[1], reads[0], Table::kAtLeast, 0.8);
  const std::string writing = absl::StrCat("writing a checkpoint of ", what);
  results->Add(writing, 1, "ours", writes[0]);
  results->Add(writing, 1, "a plain file", writes[1]);
  const std::string reading = absl::StrCat("reading a checkpoint of ", what);
  results->Add(reading, 1, "ours", reads[0]);
  results->Add(reading, 1, "a plain file", reads[1]);
}

// ---- Small variables ----

// Returns the number of nodes that an operation needs, including itself.
int CountNodes(const Operation& operation) {
  std::vector<const Node*> open = {operation.node()};
  std::vector<const Node*> seen = open;
  const auto reach = [&](const Node* node) {
    if (std::find(seen.begin(), seen.end(), node) != seen.end()) return;
    seen.push_back(node);
    open.push_back(node);
  };
  while (!open.empty()) {
    const Node* const node = open.back();
    open.pop_back();
    for (const Node::Source& source : node->sources()) reach(source.node);
  }
  return static_cast<int>(seen.size());
}

// A chain that alternates products and ReLUs of sums, with 100 variables of 1,000 elements each.
void MeasureSmallVariables(bool small, Table* table, Results* results) {
  constexpr int kVariables = 100;
  constexpr int64_t kSize = 1000;
  for (const int threads : {1, 2}) {
    const Scope s = Scope::NewRootScope();
    std::vector<Output> variables;
    std::vector<Operation> init;
    Output x = ops::Placeholder(s, DT_FLOAT, ops::Placeholder::Shape({kSize}));
    const Output input = x;
    for (int i = 0; i < kVariables; ++i) {
      const Output v = training::NewVariable(s, absl::StrCat("v", i), DT_FLOAT, {kSize});
      variables.push_back(v);
      init.push_back(training::AssignVariable(s, v, ops::Fill(s, {kSize}, 0.5f)));
      const Output value = training::ReadVariable(s, v);
      x = i % 2 == 0 ? Output(ops::Mul(s, x, value)) : Output(ops::Relu(s, ops::Add(s, x, value)));
    }
    const Output loss = ops::Sum(s, x, 0);
    training::GradientDescent descent(s, training::GradientDescentOptions().LearningRate(1e-3f));
    Operation step;
    Check(descent.Minimize(loss, variables, &step));
    const int nodes = CountNodes(step);
    ClientSession session(s, WithThreads(threads));
    Check(session.Run({}, {}, init, nullptr));
    const Tensor value = NormalTensor({kSize}, 1);
    const Runner run = [&] {
      for (int i = 0; i < (small ? 2 : 50); ++i) {
        Check(session.Run({{input, value}}, {}, {step}, nullptr));
      }
    };
    const double seconds = Measure({run}, 15)[0] / (small ? 2 : 50);
    const std::string name =
        absl::StrCat("step of ", kVariables, " variables of ", kSize, ", ", nodes, " nodes");
    table->Add(name, Threads(threads), seconds / nodes * 1e6, "us a node");
    results->Add(name, threads, "ours", seconds);
    table->Expect(seconds / nodes * 1e6, Table::kAtMost, 1.5);
  }
}

// ---- The network of the example ----

void MeasureNetwork(bool small, Table* table, Results* results) {
  const int64_t batch = small ? 4 : 128;
  Tensor images(DT_UINT8, {batch, qat::kHeight, qat::kWidth});
  Tensor labels(DT_INT64, {batch});
  auto* const pixels = static_cast<uint8_t*>(images.raw_data());
  for (int64_t i = 0; i < images.NumElements(); ++i) pixels[i] = static_cast<uint8_t>(i * 77 >> 3);
  for (int64_t i = 0; i < batch; ++i) labels.flat<int64_t>()(i) = i % qat::kClasses;
  for (const int threads : {1, 2}) {
    const std::vector<double> times = Measure(
        {OurStep(images, labels, threads), TorchStep(images, labels, threads)}, small ? 1 : 21);
    const std::string name =
        absl::StrCat("step of qat_fashion_mnist without quantization, batch ", batch);
    table->Add(name, Threads(threads), times[0] * 1e3, "ms");
    results->Add(name, threads, "ours", times[0]);
    results->Add(name, threads, "libtorch", times[1]);
    if (times[1] > 0) table->Compare("libtorch", times[0], times[1], Table::kAtMost, 1);
  }
}

int Main(int argc, char** argv) {
  Results results(&argc, argv);
  bool small = false;
  std::string folder = ".";
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--small") == 0) {
      small = true;
    } else if (std::strcmp(argv[i], "--folder") == 0 && i + 1 < argc) {
      folder = argv[++i];
    } else {
      std::fprintf(stderr, "usage: training [--small] [--folder FOLDER] [--benchmark_out=FILE]\n");
      return 2;
    }
  }
  Table table;
  MeasureAdam(small, &table, &results);
  MeasureCheckpoints(small, folder, &table, &results);
  MeasureSmallVariables(small, &table, &results);
  MeasureNetwork(small, &table, &results);
  table.Print();
  results.Write();
  return 0;
}

}  // namespace

Runner OurStep(const Tensor& images, const Tensor& labels, int threads) {
  const Scope s = Scope::NewRootScope();
  training::Model model(s);
  const Output x = qat::Images(s);
  const Output y = ops::Placeholder(s, DT_INT64, ops::Placeholder::Shape({-1}));
  const Output logits = qat::Network(s, &model, x, /*quantize=*/false, /*training=*/true);
  const Output loss = training::SoftmaxCrossEntropy(s, logits, y);
  training::Adam adam(s, training::AdamOptions().LearningRate(1e-3f));
  Operation train;
  Check(adam.Minimize(loss, model.trainable(), &train));
  std::vector<Operation> step = model.updates();
  step.push_back(train);
  const auto session = std::make_shared<ClientSession>(s, WithThreads(threads));
  Check(session->Run({}, {}, model.initializers(), nullptr));
  Check(session->Run({}, {}, adam.initializers(), nullptr));
  return [=] { Check(session->Run({{x, images}, {y, labels}}, {}, step, nullptr)); };
}

}  // namespace gradflow::benchmarks

int main(int argc, char** argv) { return gradflow::benchmarks::Main(argc, argv); }
