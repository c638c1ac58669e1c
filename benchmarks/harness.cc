#include "benchmarks/harness.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/libraries.h"
#include "gradflow/core/status.h"
#include "gradflow/core/version.h"
#include "gradflow/ops/common/libraries.h"
#include "gradflow/ops/common/simd.h"

namespace gradflow::benchmarks {
namespace {

// Adds the versions and settings that affect results to the context of results in JSON.
void AddContext() {
  benchmark::AddCustomContext("gradflow", GRADFLOW_VERSION_STRING);
  benchmark::AddCustomContext("simd", CurrentSimdTarget());
  for (const auto& libraries : {CoreLibraries(), KernelLibraries()}) {
    for (const Library& library : libraries) {
      benchmark::AddCustomContext(absl::StrCat("library ", library.name), library.version);
    }
  }
}

}  // namespace

void Check(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::exit(1);
}

bool Initialize(int argc, char** argv, const char* name, bool* flag) {
  std::vector<std::string> arguments = {"--benchmark_repetitions=11", "--benchmark_min_time=0.03",
                                        "--benchmark_enable_random_interleaving=true"};
  if (flag != nullptr) *flag = false;
  for (int i = 1; i < argc; ++i) {
    if (name != nullptr && std::strcmp(argv[i], name) == 0) {
      *flag = true;
    } else {
      arguments.emplace_back(argv[i]);
    }
  }
  // Google Benchmark keeps the pointer to the program name.
  std::vector<char*> pointers = {argv[0]};
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  int count = static_cast<int>(pointers.size());
  benchmark::Initialize(&count, pointers.data());
  AddContext();
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

Results::Results(int* argc, char** argv) {
  constexpr absl::string_view kFlag = "--benchmark_out=";
  char** const end = std::remove_if(argv + 1, argv + *argc, [&](const char* argument) {
    if (!absl::StartsWith(argument, kFlag)) return false;
    path_ = argument + kFlag.size();
    return true;
  });
  *argc = static_cast<int>(end - argv);
}

void Results::Add(absl::string_view name, int threads, absl::string_view contestant,
                  double seconds) {
  if (seconds == 0) return;
  benchmark::BenchmarkReporter::Run run;
  run.run_name.function_name = absl::StrCat(name, "/", threads, "/", contestant);
  run.run_type = benchmark::BenchmarkReporter::Run::RT_Iteration;
  run.family_index = static_cast<int64_t>(runs_.size());
  run.per_family_instance_index = 0;
  run.repetition_index = 0;
  run.repetitions = 1;
  run.time_unit = benchmark::kNanosecond;
  run.real_accumulated_time = seconds;
  run.cpu_accumulated_time = seconds;
  runs_.push_back(std::move(run));
}

void Results::Write() const {
  if (path_.empty()) return;
  AddContext();
  std::ofstream file(path_);
  benchmark::JSONReporter reporter;
  reporter.SetOutputStream(&file);
  reporter.ReportContext(benchmark::BenchmarkReporter::Context());
  reporter.ReportRuns(runs_);
  reporter.Finalize();
  file.close();
  if (!file) Check(errors::Internal("cannot write '", path_, "'"));
}

}  // namespace gradflow::benchmarks
