// Costs of SavedModels: calls of signatures in comparison with calls of the frozen graph, the time
// to load ResNet-50, and the memory that it takes.
//
// usage: saved_model [--small] [--benchmark_out=FILE]
//
// --small loads a smaller network and makes few calls.
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <numeric>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmarks/harness.h"
#include "benchmarks/models/networks.h"
#include "benchmarks/models/scope_backend.h"
#include "benchmarks/table.h"
#include "gradflow/core/attributes.h"
#include "gradflow/core/resource_manager.h"
#include "gradflow/core/tensor_proto.h"
#include "gradflow/core/variable.h"
#include "gradflow/graph/import.h"
#include "gradflow/io/checkpoint.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/saved_model/builder.h"
#include "gradflow/saved_model/freeze.h"
#include "gradflow/saved_model/loader.h"

namespace gradflow::benchmarks {
namespace {

template <typename T>
T Value(absl::StatusOr<T> value) {
  Check(value.status());
  return *std::move(value);
}

// Returns a CPU time, of this thread or of the process. Other load of the machine does not change
// it much.
double CpuSeconds(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

// Returns the bytes of the process that are in memory.
double ResidentBytes() {
  int64_t pages = 0;
  int64_t resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

// ---- The models ----

const TensorShape kImage = {1, 224, 224, 3};

const char* Title(Network network) {
  return network == Network::kResNet50 ? "ResNet-50" : "MobileNetV2";
}

// Replaces float constants of at least 64 elements by variables, and stores their values in
// *resources.
GraphDef WithVariables(const GraphDef& graph, ResourceManager* resources) {
  constexpr int64_t kMinElements = 64;
  GraphDef changed = graph;
  changed.clear_node();
  for (const NodeDef& node : graph.node()) {
    if (node.op() != "Const") {
      *changed.add_node() = node;
      continue;
    }
    const Tensor value = Value(TensorFromProto(node.attr().at("value").tensor()));
    if (value.dtype() != DT_FLOAT || value.NumElements() < kMinElements) {
      *changed.add_node() = node;
      continue;
    }
    const std::string name = node.name() + "/variable";
    NodeDef& handle = *changed.add_node();
    handle.set_name(name);
    handle.set_op("VarHandleOp");
    AddNodeAttr("dtype", DT_FLOAT, &handle);
    AddNodeAttr("shape", PartialTensorShape(value.shape()), &handle);
    AddNodeAttr("shared_name", name, &handle);
    NodeDef& read = *changed.add_node();
    read.set_name(node.name());
    read.set_op("ReadVariableOp");
    read.add_input(name);
    AddNodeAttr("dtype", DT_FLOAT, &read);
    const auto variable = Value(resources->LookupOrCreate<Variable>("", name, [&] {
      return std::make_shared<Variable>(DT_FLOAT, PartialTensorShape(value.shape()), name);
    }));
    Check(variable->Assign(value));
  }
  return changed;
}

void Write(const Scope& scope, const Output& x, const Output& y, const std::string& folder) {
  GraphDef graph;
  Check(scope.ToGraphDef(&graph));
  ResourceManager resources;
  const Scope changed = Scope::NewRootScope();
  Check(ImportGraphDef(ImportGraphDefOptions(), WithVariables(graph, &resources), changed.graph()));
  const auto output = [&](const Output& old) {
    return Output(changed.graph()->FindNode(old.node()->name()), old.index());
  };
  SavedModelBuilder builder(folder);
  Check(builder.AddGraph(changed, &resources, {"serve"},
                         {{"serving_default", {{"x", output(x)}}, {{"y", output(y)}}}}));
  Check(builder.Save());
}

// y = a x + b
void WriteHalfPlusTwo(const std::string& folder) {
  const Scope scope = Scope::NewRootScope();
  const Output x =
      ops::Placeholder(scope.WithOpName("x"), DT_FLOAT, ops::Placeholder::Shape({-1, 1}));
  const Output a = ops::VarHandleOp(scope.WithOpName("a"), DT_FLOAT, TensorShape({}));
  const Output b = ops::VarHandleOp(scope.WithOpName("b"), DT_FLOAT, TensorShape({}));
  const Output y =
      ops::Add(scope.WithOpName("y"), ops::Mul(scope, ops::ReadVariableOp(scope, a, DT_FLOAT), x),
               ops::ReadVariableOp(scope, b, DT_FLOAT));
  ResourceManager resources;
  for (const auto& [name, value] : {std::pair("a", 0.5f), std::pair("b", 2.0f)}) {
    const auto variable = Value(resources.LookupOrCreate<Variable>("", name, [name = name] {
      return std::make_shared<Variable>(DT_FLOAT, PartialTensorShape(TensorShape()), name);
    }));
    Check(variable->Assign(Tensor(value)));
  }
  SavedModelBuilder builder(folder);
  Check(builder.AddGraph(scope, &resources, {"serve"},
                         {{"serving_default", {{"x", x}}, {{"y", y}}}}));
  Check(builder.Save());
}

void WriteNetwork(Network network, const std::string& folder) {
  const Scope scope = Scope::NewRootScope();
  ScopeBackend backend(scope, /*training=*/false);
  const Output x =
      ops::Placeholder(scope.WithOpName("x"), DT_FLOAT, ops::Placeholder::Shape(kImage));
  Output y;
  if (network == Network::kResNet50) {
    y = ResNet50(backend, x);
  } else {
    y = MobileNetV2(backend, x);
  }
  Write(scope, x, y, folder);
}

SavedModelBundleLite Load(const std::string& folder) {
  SavedModelBundleLite bundle;
  Check(LoadSavedModel(SessionOptions(), RunOptions(), folder, {"serve"}, &bundle));
  return bundle;
}

// ---- Calls ----

// Runs `call` on several threads at once. Returns the CPU seconds of a call.
double SecondsOfCall(int threads, int64_t calls, const std::function<void()>& call) {
  std::vector<double> seconds(threads);
  std::vector<std::thread> others;
  const auto work = [&](int thread) {
    const double begin = CpuSeconds(CLOCK_THREAD_CPUTIME_ID);
    for (int64_t i = 0; i < calls; ++i) call();
    seconds[thread] = CpuSeconds(CLOCK_THREAD_CPUTIME_ID) - begin;
  };
  for (int i = 1; i < threads; ++i) others.emplace_back(work, i);
  work(0);
  for (std::thread& other : others) other.join();
  return std::accumulate(seconds.begin(), seconds.end(), 0.0) / static_cast<double>(calls) /
         threads;
}

void MeasureCalls(const std::string& folder, bool small, Table* table, Results* results) {
  SavedModelBundle bundle;
  SessionOptions options;
  options.config.set_intra_op_parallelism_threads(1);
  options.config.set_inter_op_parallelism_threads(1);
  Check(LoadSavedModel(options, RunOptions(), folder, {"serve"}, &bundle));
  const Signature signature = Value(bundle.signature("serving_default"));
  const SignatureCallable callable = Value(signature.MakeCallable());
  const FrozenGraph frozen =
      Value(FreezeGraph(bundle.meta_graph_def.graph_def(), {signature.outputs()[0].tensor_name},
                        bundle.session.get()));
  const std::unique_ptr<Session> session(NewSession(options));
  Check(session->Create(frozen.graph));
  CallableOptions callable_options;
  callable_options.add_feed(signature.inputs()[0].tensor_name);
  callable_options.add_fetch(frozen.outputs[0]);
  Session::CallableHandle handle = 0;
  Check(session->MakeCallable(callable_options, &handle));

  Tensor x(DT_FLOAT, {1, 1});
  x.flat<float>()(0) = 3;
  const std::vector<Tensor> inputs = {x};
  const auto call_signature = [&] {
    std::vector<Tensor> outputs;
    Check(callable.Run(inputs, &outputs));
  };
  const auto call_frozen = [&] {
    std::vector<Tensor> outputs;
    Check(session->RunCallable(handle, inputs, &outputs, nullptr));
  };
  const auto call_named = [&] { Check(callable({{"x", x}}).status()); };
  for (const int threads : {1, 8}) {
    const int64_t calls = (small ? 100 : 40'000) / threads;
    const int rounds = small ? 3 : 31;
    std::vector<double> by_signature;
    std::vector<double> by_graph;
    std::vector<double> by_names;
    std::vector<double> ratios;
    for (int round = 0; round < rounds; ++round) {
      // The frozen graph and the signature take turns at going first. Calls by names are always
      // last.
      double of_graph = 0;
      if (round % 2 == 0) of_graph = SecondsOfCall(threads, calls, call_frozen);
      const double of_signature = SecondsOfCall(threads, calls, call_signature);
      if (round % 2 == 1) of_graph = SecondsOfCall(threads, calls, call_frozen);
      by_signature.push_back(of_signature);
      by_graph.push_back(of_graph);
      ratios.push_back(of_signature / of_graph);
      by_names.push_back(SecondsOfCall(threads, calls, call_named));
    }
    const std::string where = absl::StrCat(threads, threads == 1 ? " caller" : " callers");
    const double seconds = Median(by_signature);
    table->Add("half_plus_two: CPU time of a call", where, seconds * 1e9, "ns");
    table->Compare("the frozen graph", Median(ratios), 1, Table::kAtMost, 1.02);
    table->Add("half_plus_two: CPU time of a call by names", where, Median(by_names) * 1e9, "ns");
    if (threads == 1) {
      // The line above has another target already.
      table->Add("half_plus_two: CPU time of a call", where, seconds * 1e6, "us");
      table->Expect(seconds * 1e6, Table::kAtMost, 1);
    }
    results->Add("saved_model/call", threads, "ours", seconds);
  }
}

// ---- Loading ----

// Reads all tensors, which checks their checksums.
void ReadAll(const std::string& folder) {
  const Checkpoint checkpoint = Value(Checkpoint::Open(SavedModelCheckpoint(folder)));
  std::vector<Tensor> tensors;
  for (const std::string& name : checkpoint.Names())
    tensors.push_back(Value(checkpoint.Read(name)));
}

void MeasureMemory(Network network, const std::string& folder, Table* table) {
  const double before = ResidentBytes();
  const SavedModelBundleLite bundle = Load(folder);
  const Signature signature = Value(bundle.signature("serving_default"));
  const SignatureCallable callable = Value(signature.MakeCallable());
  {
    Tensor x(DT_FLOAT, kImage);
    x.flat<float>().setZero();
    std::vector<Tensor> outputs;
    Check(callable.Run({x}, &outputs));
  }
  bundle.GetSession()->Trim();
  // The memory of the session after the run: mostly weights, some of them packed for kernels.
  const auto weights = static_cast<double>(bundle.GetSession()->MemoryStats().bytes_in_use);
  const double growth = ResidentBytes() - before;
  table->Add(absl::StrCat(Title(network), ": memory"), "loaded", growth / (1 << 20), "MiB");
  table->Compare("weights", growth, weights, Table::kAtMost, 1.1);
}

void MeasureLoading(Network network, const std::string& folder, bool small, Table* table,
                    Results* results) {
  std::vector<double> loading;
  std::vector<double> reading;
  std::vector<double> ratios;
  for (int round = 0; round < (small ? 1 : 9); ++round) {
    const double begin = CpuSeconds(CLOCK_PROCESS_CPUTIME_ID);
    ReadAll(folder);
    const double middle = CpuSeconds(CLOCK_PROCESS_CPUTIME_ID);
    Load(folder);
    reading.push_back(middle - begin);
    loading.push_back(CpuSeconds(CLOCK_PROCESS_CPUTIME_ID) - middle);
    ratios.push_back(loading.back() / reading.back());
  }
  table->Add(absl::StrCat(Title(network), ": CPU time of loading"), "all", Median(loading) * 1e3,
             "ms");
  table->Compare("reading the checkpoint", Median(ratios), 1, Table::kAtMost, 1.3);
  results->Add("saved_model/loading", 1, "ours", Median(loading));
}

int Main(int argc, char** argv) {
  Results results(&argc, argv);
  const bool small = argc == 2 && std::string(argv[1]) == "--small";
  if (argc > (small ? 2 : 1)) {
    std::cerr << "usage: saved_model [--small] [--benchmark_out=FILE]\n";
    return 2;
  }
  // Static, because Check() ends the process.
  static std::string folder =
      (std::filesystem::temp_directory_path() / "gradflow_saved_model_XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) Check(absl::ErrnoToStatus(errno, folder));
  atexit([] {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  });
  const Network network = small ? Network::kMobileNetV2 : Network::kResNet50;
  Table table;
  // A child process writes the models. Otherwise loading could reuse memory that writing has freed,
  // and would seem to need less.
  const pid_t writer = fork();
  if (writer == 0) {
    WriteNetwork(network, folder + "/network");
    WriteHalfPlusTwo(folder + "/half_plus_two");
    _exit(0);
  }
  int exit_status = 0;
  if (waitpid(writer, &exit_status, 0) != writer || exit_status != 0) {
    std::cerr << "writing the models failed\n";
    return 1;
  }
  MeasureMemory(network, folder + "/network", &table);
  MeasureLoading(network, folder + "/network", small, &table, &results);
  MeasureCalls(folder + "/half_plus_two", small, &table, &results);
  table.Print();
  results.Write();
  return 0;
}

}  // namespace
}  // namespace gradflow::benchmarks

int main(int argc, char** argv) { return gradflow::benchmarks::Main(argc, argv); }
