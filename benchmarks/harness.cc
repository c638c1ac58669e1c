#include "benchmarks/harness.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace gradflow::benchmarks {

void Check(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::exit(1);
}

bool Initialize(int argc, char** argv, const char* name, bool* flag) {
  std::vector<std::string> arguments = {argv[0], "--benchmark_repetitions=11",
                                        "--benchmark_min_time=0.03",
                                        "--benchmark_enable_random_interleaving=true"};
  if (flag != nullptr) *flag = false;
  for (int i = 1; i < argc; ++i) {
    if (name != nullptr && std::strcmp(argv[i], name) == 0) {
      *flag = true;
    } else {
      arguments.emplace_back(argv[i]);
    }
  }
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  int count = static_cast<int>(pointers.size());
  benchmark::Initialize(&count, pointers.data());
  return !benchmark::ReportUnrecognizedArguments(count, pointers.data());
}

void Medians::ReportRuns(const std::vector<Run>& runs) {
  for (const Run& run : runs) {
    if (run.error_occurred || run.run_type == Run::RT_Aggregate) continue;
    std::fprintf(stderr, ".");
    const std::string& name = run.run_name.function_name;
    samples_[name].push_back(run.real_accumulated_time / static_cast<double>(run.iterations) * 1e9);
    samples_[name + "#cpu time"].push_back(run.cpu_accumulated_time /
                                           static_cast<double>(run.iterations) * 1e9);
    for (const auto& [counter, value] : run.counters) {
      samples_[name + "#" + counter].push_back(value.value);
    }
  }
}

double Medians::Median(const std::string& key) const {
  const auto it = samples_.find(key);
  if (it == samples_.end()) return 0;
  std::vector<double> sorted = it->second;
  std::nth_element(sorted.begin(), sorted.begin() + sorted.size() / 2, sorted.end());
  return sorted[sorted.size() / 2];
}

}  // namespace gradflow::benchmarks
