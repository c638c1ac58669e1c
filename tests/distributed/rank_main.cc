// A rank of a run, for tests that start, kill and stop processes:
//
//   gradflow_distributed_rank ADDRESS RANK SIZE TIMEOUT_MS random SEED COUNT
//   gradflow_distributed_rank ADDRESS RANK SIZE TIMEOUT_MS faults SEED COUNT
//   gradflow_distributed_rank ADDRESS RANK SIZE TIMEOUT_MS loop BYTES
//
// `random` and `faults` make the calls of random_calls.h. `loop` sums tensors until an error, and
// prints a line for each sum. Both print "connected" first, and print the error and the
// milliseconds that the failed call took, and then return 1.
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
  std::cout << "connected" << std::endl;
  if (mode != "loop") {
    const auto run = mode == "random" ? RunRandomRounds : RunFaultyRounds;
    const absl::Status status = run(collectives->get(), static_cast<uint64_t>(std::atoi(argv[6])),
                                    std::atoi(argv[7]), /*window=*/20, options.timeout);
    return status.ok() ? 0 : Fail(status, start);
  }
  const int64_t elements = std::atoi(argv[6]) / 4;
  for (int64_t step = 0;; ++step) {
    Tensor input(DT_FLOAT, {elements});
    for (float& x : input.span<float>()) x = 1;
    const CollectiveCall call =
        SumCall(input, options.size, /*instance=*/7, std::chrono::milliseconds(0));
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
  if (argc < 7 || (argc < 8 && std::string(argv[5]) != "loop")) return 2;
  return gradflow::testing::Main(argv);
}
