// A rank of a run, for tests that start, kill and stop processes:
//
//   gradflow_distributed_rank ADDRESS RANK SIZE TIMEOUT_MS random SEED COUNT
//   gradflow_distributed_rank ADDRESS RANK SIZE TIMEOUT_MS loop BYTES
//
// `random` makes the calls of random_calls.h. `loop` sums tensors until an error, and prints a line
// for each sum. Both print the error and the milliseconds that the failed call took, and then
// return 1.
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>

#include "gradflow/core/collectives.h"
#include "gradflow/distributed/gloo_collectives.h"
#include "tests/distributed/random_calls.h"

namespace gradflow::testing {
namespace {

int Fail(const absl::Status& status, std::chrono::steady_clock::time_point start) {
  const auto time = std::chrono::steady_clock::now() - start;
  std::cout << "error " << std::chrono::duration_cast<std::chrono::milliseconds>(time).count()
            << " " << status << std::endl;
  return 1;
}

int Main(char** argv) {
  LaunchOptions options;
  options.address = argv[1];
  options.rank = std::atoi(argv[2]);
  options.size = std::atoi(argv[3]);
  options.timeout = std::chrono::milliseconds(std::atoi(argv[4]));
  const std::string mode = argv[5];
  auto start = std::chrono::steady_clock::now();
  const absl::StatusOr<std::shared_ptr<Collectives>> collectives = GlooCollectives(options);
  if (!collectives.ok()) return Fail(collectives.status(), start);
  if (mode == "random") {
    const absl::Status status =
        RunRandomRounds(collectives->get(), static_cast<uint64_t>(std::atoi(argv[6])),
                        std::atoi(argv[7]), /*window=*/20, options.timeout);
    return status.ok() ? 0 : Fail(status, start);
  }
  const int64_t elements = std::atoi(argv[6]) / 4;
  for (int64_t step = 0;; ++step) {
    CollectiveCall call;
    call.op = "CollectiveReduceV2";
    call.type = CollectiveType::kReduce;
    call.group_size = options.size;
    call.group_key = 1;
    call.instance_key = 7;
    call.input = Tensor(DT_FLOAT, {elements});
    for (float& x : call.input.span<float>()) x = 1;
    call.output = Tensor(DT_FLOAT, {elements});
    start = std::chrono::steady_clock::now();
    const absl::Status status = StartCall(collectives->get(), call).status.get();
    if (!status.ok()) return Fail(status, start);
    for (const float x : call.output.span<float>()) {
      if (x != static_cast<float>(options.size)) {
        return Fail(absl::InternalError("a wrong sum"), start);
      }
    }
    std::cout << "step " << step << std::endl;
  }
}

}  // namespace
}  // namespace gradflow::testing

int main(int argc, char** argv) {
  if (argc < 7) return 2;
  return gradflow::testing::Main(argv);
}
