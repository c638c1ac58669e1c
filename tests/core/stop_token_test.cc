#include "gradflow/core/stop_token.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

namespace gradflow {
namespace {

TEST(CancelFlag, CallsCallbacksOnceInOrder) {
  CancelFlag flag;
  std::vector<int> calls;
  const auto first = flag.AddCallback([&] { calls.push_back(1); });
  const auto second = flag.AddCallback([&] { calls.push_back(2); });
  flag.AddCallback([&] { calls.push_back(3); });
  EXPECT_NE(first, 0);
  flag.RemoveCallback(second);
  EXPECT_FALSE(flag.IsRaised());
  flag.Raise();
  flag.Raise();
  EXPECT_TRUE(flag.IsRaised());
  EXPECT_EQ(calls, (std::vector<int>{1, 3}));
  // The callbacks have been called, so there is nothing to remove.
  flag.RemoveCallback(first);
}

TEST(CancelFlag, TakesNoCallbackAfterItWasRaised) {
  CancelFlag flag;
  flag.Raise();
  bool called = false;
  EXPECT_EQ(flag.AddCallback([&] { called = true; }), 0);
  flag.Raise();
  EXPECT_FALSE(called);
}

TEST(CancelFlag, CallbackMayRemoveItself) {
  CancelFlag flag;
  CancelFlag::CallbackId id = 0;
  bool called = false;
  id = flag.AddCallback([&] {
    flag.RemoveCallback(id);
    called = true;
  });
  flag.Raise();
  EXPECT_TRUE(called);
}

TEST(CancelFlag, DestroysCallbacksAndTheirState) {
  CancelFlag flag;
  auto owned = std::make_shared<int>(0);
  flag.AddCallback([owned] { ++*owned; });
  EXPECT_EQ(owned.use_count(), 2);
  flag.DropCallbacks();
  EXPECT_EQ(owned.use_count(), 1);
  flag.Raise();
  EXPECT_EQ(*owned, 0);
}

TEST(StopToken, CallsCallbacksWhenItIsStoppedAfterItsDeadline) {
  StopToken stop(nullptr, nullptr, StopToken::Clock::time_point());
  bool called = false;
  stop.AddCallback([&] { called = true; });
  EXPECT_FALSE(called);
  EXPECT_TRUE(stop.Check());
  EXPECT_FALSE(called);
  EXPECT_EQ(stop.AddCallback([] {}), 0);
  stop.Stop();
  EXPECT_TRUE(called);
}

TEST(StopToken, CallsCallbacksWhenItIsStoppedAfterAFlag) {
  CancelFlag cancelled;
  CancelFlag closed;
  StopToken stops_by_cancel(&cancelled, nullptr);
  StopToken stops_by_close(nullptr, &closed);
  int calls = 0;
  for (const auto& [flag, stop] :
       {std::pair(&cancelled, &stops_by_cancel), std::pair(&closed, &stops_by_close)}) {
    stop->AddCallback([&] { ++calls; });
    EXPECT_FALSE(stop->Check());
    EXPECT_EQ(calls, 0);
    flag->Raise();
    EXPECT_TRUE(stop->Check());
    EXPECT_EQ(calls, 0);
    stop->Stop();
    stop->Stop();
    EXPECT_EQ(calls, 1);
    calls = 0;
  }
}

}  // namespace
}  // namespace gradflow
