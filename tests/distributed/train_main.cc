// A rank that trains a small network, for tests that kill and stop processes:
//
//   gradflow_distributed_train ADDRESS RANK SIZE TIMEOUT_MS PREFIX STEPS
//
// Prints a line for each step, and at the end a digest of all variables. Continues from a
// checkpoint at PREFIX if there is one. After an error, prints it with the milliseconds since the
// last step, and returns 1.
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "gradflow/distributed/gloo_collectives.h"
#include "tests/distributed/train_rank.h"

namespace gradflow::testing {
namespace {

using Clock = std::chrono::steady_clock;

int Main(char** argv) {
  LaunchOptions launch;
  launch.address = argv[1];
  launch.rank = std::atoi(argv[2]);
  launch.size = std::atoi(argv[3]);
  launch.timeout = std::chrono::milliseconds(std::atoi(argv[4]));
  training::RankOptions options;
  options.has_statistics = true;
  options.micro_batches = 8;
  options.prefix = argv[5];
  options.steps = std::atoi(argv[6]);
  Clock::time_point last = Clock::now();
  options.after_step = [&](int64_t step, float) {
    last = Clock::now();
    std::cout << "step " << step << std::endl;
    return absl::OkStatus();
  };
  const absl::StatusOr<std::shared_ptr<Collectives>> collectives = GlooCollectives(launch);
  absl::Status status = collectives.status();
  if (status.ok()) {
    std::cout << "connected" << std::endl;
    const absl::StatusOr<std::vector<Tensor>> variables =
        training::TrainRank(*collectives, options);
    status = variables.status();
    if (status.ok()) {
      // FNV-1a over the bytes.
      uint64_t digest = 0xcbf29ce484222325u;
      for (const Tensor& variable : *variables) {
        for (const char byte : variable.tensor_data()) {
          digest = (digest ^ static_cast<uint8_t>(byte)) * 0x100000001b3u;
        }
      }
      std::cout << absl::StrFormat("digest %016x", digest) << std::endl;
      return 0;
    }
  }
  const auto time = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - last);
  std::cout << "error " << time.count() << " " << status << std::endl;
  return 1;
}

}  // namespace
}  // namespace gradflow::testing

int main(int argc, char** argv) {
  if (argc != 7) return 2;
  return gradflow::testing::Main(argv);
}
