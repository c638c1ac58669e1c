// Measures the runtime against tbb::flow::graph, plain loops and protobuf parsing, all in one
// process, and prints a table of medians. Repetitions are interleaved at random, so that other load
// of the machine affects all contestants equally.
//
//   runtime [--small] [--benchmark_filter=REGEX] [--benchmark_repetitions=N] ...
//
// --small reduces the large cases: a graph of a million nodes, and tensors of 64 MiB.
#include <benchmark/benchmark.h>

#include "benchmarks/harness.h"
#include "benchmarks/runtime/cases.h"
#include "benchmarks/table.h"

namespace gradflow::benchmarks {
namespace {

int Main(int argc, char** argv) {
  bool small = false;
  if (!Initialize(argc, argv, "--small", &small)) return 2;

  RegisterNodeCases();
  RegisterCallCases();
  RegisterFunctionCases();
  RegisterMemoryCases(small ? 1 : 64);
  RegisterStoppingCases(small ? 3 : 1000);
  RegisterLoadingCases(small ? 1000 : 1000000);
  Medians medians;
  benchmark::RunSpecifiedBenchmarks(&medians);
  Table table;
  PrintNodeCases(medians, &table);
  PrintCallCases(medians, &table);
  PrintFunctionCases(medians, &table);
  PrintMemoryCases(medians, &table);
  PrintStoppingCases(medians, &table);
  PrintLoadingCases(medians, &table);
  table.Print();
  return 0;
}

}  // namespace
}  // namespace gradflow::benchmarks

int main(int argc, char** argv) { return gradflow::benchmarks::Main(argc, argv); }
