#include "gradflow/runtime/session/replicated.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace gradflow {
namespace {

int Get(const Replicated<int>& number) {
  return number.Read([](int value) { return value; });
}

TEST(Replicated, AppliesAChangeToEveryCopy) {
  Replicated<int> number;
  int calls = 0;
  number.Update([&](int* value) {
    *value = 7;
    ++calls;
  });
  EXPECT_EQ(calls, kNumShards);
  // The threads of all shards see the change.
  std::atomic<int> sum{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2 * kNumShards; ++i) {
    threads.emplace_back([&] { sum += Get(number); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sum, 7 * 2 * kNumShards);
}

TEST(Replicated, ServesReadersAndUpdatesAtOnce) {
  constexpr int kUpdates = 2000;
  constexpr int kUpdaters = 2;
  Replicated<int> number;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&] {
      for (int last = 0; last < kUpdaters * kUpdates;) {
        number.Read([&](const int& value) {
          const int now = value;
          if (now < last || value != now) ++wrong;
          last = now;
          return 0;
        });
      }
    });
  }
  for (int t = 0; t < kUpdaters; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kUpdates; ++i) number.Update([](int* value) { ++*value; });
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(Get(number), kUpdaters * kUpdates);
}

}  // namespace
}  // namespace gradflow
