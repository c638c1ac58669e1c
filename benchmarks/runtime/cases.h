// The runtime benchmarks, one family per file. Each family registers its benchmarks with Google
// Benchmark, and later adds its lines to the table.
#ifndef GRADFLOW_BENCHMARKS_RUNTIME_CASES_H_
#define GRADFLOW_BENCHMARKS_RUNTIME_CASES_H_

#include "benchmarks/harness.h"
#include "benchmarks/table.h"

namespace gradflow::benchmarks {

// The cost per node: chains, layers and independent nodes, compared with tbb::flow::graph and plain
// loops; and two chains of long kernels that share two threads.
void RegisterNodeCases();
void PrintNodeCases(const Medians& medians, Table* table);

// The cost of a call of Run, from one thread and from many threads concurrently.
void RegisterCallCases();
void PrintCallCases(const Medians& medians, Table* table);

// The cost of branches and of iterations of loops, compared with their nodes.
void RegisterFunctionCases();
void PrintFunctionCases(const Medians& medians, Table* table);

// The memory of a long chain of large tensors of `mebibytes` each.
void RegisterMemoryCases(int mebibytes);
void PrintMemoryCases(const Medians& medians, Table* table);

// The latency of cancelling a run, measured `stops` times.
void RegisterStoppingCases(int stops);
void PrintStoppingCases(const Medians& medians, Table* table);

// The time to load a graph of `nodes` nodes from its bytes, to build it with a Scope, and to plan
// it.
void RegisterLoadingCases(int nodes);
void PrintLoadingCases(const Medians& medians, Table* table);

}  // namespace gradflow::benchmarks

#endif  // GRADFLOW_BENCHMARKS_RUNTIME_CASES_H_
