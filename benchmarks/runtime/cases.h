// The runtime benchmarks, one family to a file. Each family registers its benchmarks with Google
// Benchmark and afterwards adds its lines to the table.
#ifndef GRADFLOW_BENCHMARKS_RUNTIME_CASES_H_
#define GRADFLOW_BENCHMARKS_RUNTIME_CASES_H_

#include "benchmarks/harness.h"
#include "benchmarks/table.h"

namespace gradflow::benchmarks {

// The cost of a node: chains, layers and independent nodes beside tbb::flow::graph and plain loops;
// and two chains of long kernels that share two threads.
void RegisterNodeCases();
void PrintNodeCases(const Medians& medians, Table* table);

// The cost of a call of Run, alone and from many threads at once.
void RegisterCallCases();
void PrintCallCases(const Medians& medians, Table* table);

// The memory of a long chain of large tensors, of `mebibytes` each.
void RegisterMemoryCases(int mebibytes);
void PrintMemoryCases(const Medians& medians, Table* table);

// The latency of cancelling a run, measured `stops` times.
void RegisterStoppingCases(int stops);
void PrintStoppingCases(const Medians& medians, Table* table);

// The time to load a graph of `nodes` nodes from its bytes, to build it through Scope, and to plan
// it.
void RegisterLoadingCases(int nodes);
void PrintLoadingCases(const Medians& medians, Table* table);

}  // namespace gradflow::benchmarks

#endif  // GRADFLOW_BENCHMARKS_RUNTIME_CASES_H_
