// Compares sums over two ranks with Gloo called directly, in one run:
//
//   distributed [MEGABYTES TENSORS REPEATS]
//
// The ranks are threads of this process that are connected by TCP. Prints the best time of each,
// for one large tensor, and for many tensors of 4 KiB.
#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/hash_store.h>
#include <gloo/transport/tcp/device.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <future>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/collectives.h"
#include "gradflow/distributed/gloo_collectives.h"

namespace gradflow {
namespace {

constexpr int kRanks = 2;
constexpr int64_t kSmall = 1024;

// Calls fn(rank) on a thread for each rank, and returns the seconds of the slower one.
double OnRanks(const std::function<void(int)>& fn) {
  std::atomic<int> waiting{kRanks};
  std::vector<double> seconds(kRanks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      --waiting;
      while (waiting > 0) std::this_thread::yield();
      const auto start = std::chrono::steady_clock::now();
      fn(rank);
      seconds[rank] =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return *std::max_element(seconds.begin(), seconds.end());
}

std::vector<std::shared_ptr<Collectives>> Connect() {
  LaunchOptions options;
  options.address = absl::StrCat("file:/tmp/gradflow_all_reduce_", getpid());
  options.size = kRanks;
  std::vector<std::shared_ptr<Collectives>> ranks(kRanks);
  OnRanks([&](int rank) {
    LaunchOptions own = options;
    own.rank = rank;
    auto collectives = GlooCollectives(own);
    if (!collectives.ok()) {
      std::fprintf(stderr, "%s\n", collectives.status().ToString().c_str());
      std::exit(1);
    }
    ranks[rank] = *std::move(collectives);
  });
  return ranks;
}

// Sums tensors over the ranks, all in flight at once.
void Sum(Collectives* rank, const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs) {
  std::atomic<size_t> left{inputs.size()};
  std::promise<void> ended;
  for (size_t i = 0; i < inputs.size(); ++i) {
    CollectiveCall call;
    call.op = "CollectiveReduceV2";
    call.type = CollectiveType::kReduce;
    call.group_size = kRanks;
    call.instance_key = static_cast<int64_t>(i);
    call.input = inputs[i];
    call.output = outputs[i];
    rank->Start(rank->NewCallId(), call, [&](const absl::Status& status) {
      if (!status.ok()) {
        std::fprintf(stderr, "%s\n", status.ToString().c_str());
        std::exit(1);
      }
      if (--left == 0) ended.set_value();
    });
  }
  ended.get_future().wait();
}

void Compare(const char* name, const std::vector<std::shared_ptr<Collectives>>& ranks,
             const std::vector<std::shared_ptr<gloo::rendezvous::Context>>& contexts, int64_t count,
             int64_t elements, int repeats) {
  std::vector<std::vector<Tensor>> inputs(kRanks);
  std::vector<std::vector<Tensor>> outputs(kRanks);
  for (int rank = 0; rank < kRanks; ++rank) {
    for (int64_t i = 0; i < count; ++i) {
      inputs[rank].emplace_back(DT_FLOAT, TensorShape({elements}));
      outputs[rank].emplace_back(DT_FLOAT, TensorShape({elements}));
      for (float& x : inputs[rank].back().span<float>()) x = 1;
      for (float& x : outputs[rank].back().span<float>()) x = 0;
    }
  }
  double ours = std::numeric_limits<double>::infinity();
  double direct = ours;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    ours = std::min(
        ours, OnRanks([&](int rank) { Sum(ranks[rank].get(), inputs[rank], outputs[rank]); }));
    direct = std::min(
        direct, OnRanks([&](int rank) {
          for (int64_t i = 0; i < count; ++i) {
            gloo::AllreduceOptions options(contexts[rank]);
            const auto size = static_cast<size_t>(elements);
            options.setInput(inputs[rank][i].span<float>().data(), size);
            options.setOutput(outputs[rank][i].span<float>().data(), size);
            options.setReduceFunction(
                static_cast<void (*)(void*, const void*, const void*, size_t)>(&gloo::sum<float>));
            options.setTag(static_cast<uint32_t>(i));
            gloo::allreduce(options);
          }
        }));
  }
  std::printf("%-24s gradflow %9.3f ms, Gloo %9.3f ms, ratio %.2f\n", name, 1e3 * ours,
              1e3 * direct, ours / direct);
}

}  // namespace
}  // namespace gradflow

int main(int argc, char** argv) {
  const int64_t megabytes = argc > 3 ? std::atoi(argv[1]) : 64;
  const int64_t tensors = argc > 3 ? std::atoi(argv[2]) : 1000;
  const int repeats = argc > 3 ? std::atoi(argv[3]) : 10;
  const auto ranks = gradflow::Connect();
  gloo::rendezvous::HashStore store;
  std::vector<std::shared_ptr<gloo::rendezvous::Context>> contexts(gradflow::kRanks);
  gradflow::OnRanks([&](int rank) {
    std::shared_ptr<gloo::transport::Device> device =
        gloo::transport::tcp::CreateDevice(gloo::transport::tcp::attr("127.0.0.1"));
    contexts[rank] = std::make_shared<gloo::rendezvous::Context>(rank, gradflow::kRanks);
    contexts[rank]->connectFullMesh(store, device);
  });
  const int64_t large = megabytes * (int64_t{1} << 20) / 4;
  gradflow::Compare("one large tensor", ranks, contexts, 1, large, repeats);
  gradflow::Compare("tensors of 4 KiB", ranks, contexts, tensors, gradflow::kSmall, repeats);
  return 0;
}
