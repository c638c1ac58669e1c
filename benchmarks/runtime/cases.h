// The runtime benchmarks, a family to a file. Each family registers its benchmarks with Google
// Benchmark and afterwards writes its lines of the table.
#ifndef GRADFLOW_BENCHMARKS_RUNTIME_CASES_H_
#define GRADFLOW_BENCHMARKS_RUNTIME_CASES_H_

#include "benchmarks/harness.h"
#include "benchmarks/runtime/table.h"

namespace gradflow::benchmarks {

// What a node costs: chains, layers and independent nodes beside tbb::flow::graph and plain loops;
// and how two chains of long kernels share two threads.
void RegisterNodeCases();
void PrintNodeCases(const Medians& medians, Table* table);

// What a call of Run costs, alone and from many threads at once.
void RegisterCallCases();
void PrintCallCases(const Medians& medians, Table* table);

// What a long chain of large tensors takes of the system. `mebibytes` are those of a tensor.
void RegisterMemoryCases(int mebibytes);
void PrintMemoryCases(const Medians& medians, Table* table);

// How long a run goes on after it has been cancelled, `stops` times.
void RegisterStoppingCases(int stops);
void PrintStoppingCases(const Medians& medians, Table* table);

// How long a graph of `nodes` nodes takes from its bytes, or through Scope, to a plan.
void RegisterLoadingCases(int nodes);
void PrintLoadingCases(const Medians& medians, Table* table);

}  // namespace gradflow::benchmarks

#endif  // GRADFLOW_BENCHMARKS_RUNTIME_CASES_H_
