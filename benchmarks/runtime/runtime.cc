// Measures the runtime beside tbb::flow::graph, plain loops and the parsing of protobuf, all in one
// process, and prints one table: medians over repetitions that are interleaved at random, so that
// what else the machine does falls on all alike.
//
//   runtime [--small] [--benchmark_filter=REGEX] [--benchmark_repetitions=N] ...
//
// --small makes the large cases, a graph of a million nodes and tensors of 64 MiB, small ones.
#include <benchmark/benchmark.h>

#include "benchmarks/harness.h"
#include "benchmarks/runtime/cases.h"
#include "benchmarks/runtime/table.h"

namespace gradflow::benchmarks {
namespace {

int Main(int argc, char** argv) {
  bool small = false;
  if (!Initialize(argc, argv, "--small", &small)) return 2;

  RegisterNodeCases();
  RegisterCallCases();
  RegisterMemoryCases(small ? 1 : 64);
  RegisterStoppingCases(small ? 3 : 1000);
  RegisterLoadingCases(small ? 1000 : 1000000);
  Medians medians;
  benchmark::RunSpecifiedBenchmarks(&medians);
  Table table;
  PrintNodeCases(medians, &table);
  PrintCallCases(medians, &table);
  PrintMemoryCases(medians, &table);
  PrintStoppingCases(medians, &table);
  PrintLoadingCases(medians, &table);
  table.Print();
  return 0;
}

}  // namespace
}  // namespace gradflow::benchmarks

int main(int argc, char** argv) { return gradflow::benchmarks::Main(argc, argv); }
