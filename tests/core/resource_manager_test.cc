#include "gradflow/core/resource_manager.h"

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "gradflow/core/parallel.h"
#include "gradflow/core/status.h"
#include "gradflow/core/stop_token.h"
#include "gradflow/testing/status_matchers.h"

namespace gradflow {
namespace {

using ::absl::StatusCode;
using ::gradflow::testing::IsOk;
using ::gradflow::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

class Number : public ResourceBase {
 public:
  explicit Number(int n) : n_(n) { ++alive; }
  ~Number() override { --alive; }
  std::string DebugString() const override { return "number " + std::to_string(n_); }
  int n() const { return n_; }

  static std::atomic<int> alive;

 private:
  const int n_;
};
std::atomic<int> Number::alive{0};

class Text : public ResourceBase {
 public:
  std::string DebugString() const override { return "text"; }
};

// The destructor creates another resource.
class Successor : public Number {
 public:
  explicit Successor(ResourceManager* manager) : Number(1), manager_(*manager) {}
  ~Successor() override {
    EXPECT_THAT(manager_.Create("heirs", "n", std::make_shared<Number>(2)), IsOk());
  }

 private:
  ResourceManager& manager_;
};

TEST(ResourceManager, MayBeUsedByResourcesThatDieWithIt) {
  {
    ResourceManager manager;
    ASSERT_THAT(manager.Create("", "n", std::make_shared<Successor>(&manager)), IsOk());
    EXPECT_EQ(Number::alive, 1);
  }
  EXPECT_EQ(Number::alive, 0);
}

// The destructor looks up another resource.
class Curious : public Text {
 public:
  explicit Curious(ResourceManager* manager) : manager_(*manager) {}
  ~Curious() override { EXPECT_THAT(manager_.Lookup<Text>("", "n"), IsOk()); }

 private:
  ResourceManager& manager_;
};

TEST(ResourceManager, MayBeUsedByARejectedResource) {
  ResourceManager manager;
  ASSERT_THAT(manager.Create("", "n", std::make_shared<Text>()), IsOk());
  EXPECT_THAT(manager.Create("", "n", std::make_shared<Curious>(&manager)),
              StatusIs(StatusCode::kAlreadyExists));
}

TEST(ResourceManager, TakesNoResourceAfterClose) {
  ResourceManager manager;
  ASSERT_THAT(manager.Create("", "a", std::make_shared<Number>(1)), IsOk());
  manager.Close();
  EXPECT_EQ(Number::alive, 0);
  EXPECT_THAT(manager.Create("", "b", std::make_shared<Number>(2)),
              StatusIs(StatusCode::kCancelled, HasSubstr("closed")));
  EXPECT_THAT(manager.LookupOrCreate<Number>("", "b", [] { return std::make_shared<Number>(2); }),
              StatusIs(StatusCode::kCancelled));
  EXPECT_EQ(manager.DebugString(), "");
}

TEST(ResourceManager, FindsResourcesByContainerAndName) {
  ResourceManager manager;
  GRADFLOW_ASSERT_OK(manager.Create("", "a", std::make_shared<Number>(1)));
  GRADFLOW_ASSERT_OK(manager.Create("c", "a", std::make_shared<Number>(2)));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const auto one, manager.Lookup<Number>("", "a"));
  EXPECT_EQ(one->n(), 1);
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const auto two, manager.Lookup<Number>("c", "a"));
  EXPECT_EQ(two->n(), 2);
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const auto base, manager.Lookup<ResourceBase>("c", "a"));
  EXPECT_EQ(base, two);
  EXPECT_EQ(manager.DebugString(),
            "resource 'a': number 1\nresource 'a' of container 'c': number 2\n");
}

TEST(ResourceManager, NamesErrors) {
  ResourceManager manager;
  GRADFLOW_ASSERT_OK(manager.Create("", "a", std::make_shared<Number>(1)));
  EXPECT_THAT(manager.Create("", "a", std::make_shared<Text>()),
              StatusIs(StatusCode::kAlreadyExists, HasSubstr("resource 'a'")));
  EXPECT_THAT(manager.Lookup<Number>("", "b"),
              StatusIs(StatusCode::kNotFound, HasSubstr("resource 'b'")));
  EXPECT_THAT(manager.Lookup<Number>("c", "a"),
              StatusIs(StatusCode::kNotFound, HasSubstr("resource 'a' of container 'c'")));
  EXPECT_THAT(manager.Lookup<Text>("", "a"),
              StatusIs(StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("Number, expected"), HasSubstr("Text"))));
  EXPECT_THAT(manager.Delete("c", "a"), StatusIs(StatusCode::kNotFound));
  EXPECT_THAT(manager.LookupOrCreate<Text>("", "t", [] { return std::shared_ptr<Text>(); }),
              StatusIs(StatusCode::kInternal));
  EXPECT_THAT(manager.LookupOrCreate<Text>("", "t",
                                           []() -> absl::StatusOr<std::shared_ptr<Text>> {
                                             return errors::InvalidArgument("no");
                                           }),
              StatusIs(StatusCode::kInvalidArgument, "no"));
  EXPECT_THAT(manager.Lookup<Text>("", "t"), StatusIs(StatusCode::kNotFound));
}

TEST(ResourceManager, FreesRemovedResourcesOnceUnreferenced) {
  {
    ResourceManager manager;
    for (const char* container : {"", "c", "d"}) {
      for (const char* name : {"a", "b"}) {
        GRADFLOW_ASSERT_OK(manager.Create(container, name, std::make_shared<Number>(1)));
      }
    }
    EXPECT_EQ(Number::alive, 6);
    GRADFLOW_ASSERT_OK(manager.Delete("", "a"));
    EXPECT_EQ(Number::alive, 5);
    {
      GRADFLOW_ASSERT_OK_AND_ASSIGN(const auto held, manager.Lookup<Number>("c", "a"));
      manager.Cleanup("c");
      manager.Cleanup("no such container");
      EXPECT_EQ(Number::alive, 4);
    }
    EXPECT_EQ(Number::alive, 3);
    EXPECT_THAT(manager.Lookup<Number>("c", "a"), StatusIs(StatusCode::kNotFound));
    manager.Clear();
    EXPECT_EQ(Number::alive, 0);
    GRADFLOW_ASSERT_OK(manager.Create("", "a", std::make_shared<Number>(1)));
  }
  EXPECT_EQ(Number::alive, 0);
}

TEST(ResourceManager, MakesOneForManyThreads) {
  ResourceManager manager;
  std::atomic<int> made = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        const std::string name = std::to_string(i % 20);
        const auto resource = manager.LookupOrCreate<Number>("", name, [&] {
          ++made;
          return std::make_shared<Number>(i % 20);
        });
        EXPECT_THAT(resource, IsOk());
        EXPECT_EQ((*resource)->n(), i % 20);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made, 20);
}

std::shared_ptr<Number> MakeNumber() { return std::make_shared<Number>(1); }

TEST(ResourceManager, MakersMayUseIt) {
  ResourceManager manager;
  GRADFLOW_ASSERT_OK(manager.Create("", "a", std::make_shared<Number>(1)));
  const auto made =
      manager.LookupOrCreate<Number>("", "c", [&]() -> absl::StatusOr<std::shared_ptr<Number>> {
        GRADFLOW_ASSIGN_OR_RETURN(const auto a, manager.Lookup<Number>("", "a"));
        GRADFLOW_ASSIGN_OR_RETURN(
            const auto b, manager.LookupOrCreate<Number>("", "b", [] { return MakeNumber(); }));
        EXPECT_THAT(manager.Delete("", "a"), IsOk());
        return std::make_shared<Number>(a->n() + b->n());
      });
  GRADFLOW_ASSERT_OK(made);
  EXPECT_EQ((*made)->n(), 2);
  EXPECT_EQ(manager.DebugString(), "resource 'b': number 1\nresource 'c': number 2\n");
}

TEST(ResourceManager, DoesNotBlockOthersDuringCreation) {
  ResourceManager manager;
  std::atomic<bool> begun = false;
  std::atomic<bool> others_done = false;
  std::thread slow([&] {
    EXPECT_THAT(manager.LookupOrCreate<Number>("c", "slow",
                                               [&] {
                                                 begun = true;
                                                 while (!others_done) std::this_thread::yield();
                                                 return MakeNumber();
                                               }),
                IsOk());
  });
  while (!begun) std::this_thread::yield();
  EXPECT_THAT(manager.Lookup<Number>("c", "slow"), StatusIs(StatusCode::kNotFound));
  EXPECT_THAT(manager.LookupOrCreate<Number>("c", "fast", MakeNumber), IsOk());
  EXPECT_THAT(manager.LookupOrCreate<Number>("", "slow", MakeNumber), IsOk());
  GRADFLOW_EXPECT_OK(manager.Delete("c", "fast"));
  others_done = true;
  slow.join();
  EXPECT_THAT(manager.Lookup<Number>("c", "slow"), IsOk());
}

// The first make() fails while another thread waits. That thread then creates the resource.
TEST(ResourceManager, WaitersRetryWhenCreationFails) {
  ResourceManager manager;
  std::atomic<int> asked = 0;
  std::atomic<int> calls = 0;
  std::atomic<int> failed = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      ++asked;
      const auto resource =
          manager.LookupOrCreate<Number>("", "n", [&]() -> absl::StatusOr<std::shared_ptr<Number>> {
            while (asked < 4) std::this_thread::yield();
            const int call = ++calls;
            if (call == 1) return errors::InvalidArgument("no");
            if (call == 2) throw std::runtime_error("no");
            return std::make_shared<Number>(call);
          });
      if (!resource.ok()) {
        ++failed;
      } else {
        EXPECT_EQ((*resource)->n(), 3);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(failed, 2);
}

TEST(ResourceManager, RefusesMakersThatWaitForEachOther) {
  ResourceManager manager;
  const auto itself = manager.LookupOrCreate<Number>("", "n", [&] {
    return manager.LookupOrCreate<Number>("", "n", [] { return MakeNumber(); });
  });
  EXPECT_THAT(itself, StatusIs(StatusCode::kFailedPrecondition,
                               "creating resource 'n' would deadlock: it waits for itself"));
  EXPECT_THAT(manager.Lookup<Number>("", "n"), StatusIs(StatusCode::kNotFound));

  // Each of "0", "1" and "2" requires the next one.
  std::atomic<int> begun = 0;
  std::atomic<int> refused = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      const auto made = manager.LookupOrCreate<Number>(
          "circle", std::to_string(t), [&]() -> absl::StatusOr<std::shared_ptr<Number>> {
            ++begun;
            while (begun < 3) std::this_thread::yield();
            const auto next = manager.LookupOrCreate<Number>("circle", std::to_string((t + 1) % 3),
                                                             [] { return MakeNumber(); });
            if (!next.ok()) {
              EXPECT_THAT(next, StatusIs(StatusCode::kFailedPrecondition));
              ++refused;
            }
            return std::make_shared<Number>(t);
          });
      EXPECT_THAT(made, IsOk());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(refused, 1);
}

// The loops of a stopped run skip blocks, so the resource may be incomplete.
TEST(ResourceManager, DropsResourcesOfAStoppedRun) {
  ResourceManager manager;
  const auto make = [] { return std::make_shared<Number>(1); };
  {
    StopToken stop(nullptr, nullptr, StopToken::Clock::time_point::max());
    stop.Stop();
    EXPECT_THAT(manager.LookupOrCreate<Number>("c", "x", make, &stop),
                StatusIs(absl::StatusCode::kCancelled));
  }
  EXPECT_THAT(manager.Lookup<Number>("c", "x"), StatusIs(absl::StatusCode::kNotFound));
  GRADFLOW_EXPECT_OK(manager.LookupOrCreate<Number>("c", "x", make).status());
}

TEST(ResourceManager, DropsResourcesMadeAfterClose) {
  ResourceManager manager;
  const auto existing = manager.LookupOrCreate<Number>("", "n", [&] {
    EXPECT_THAT(manager.Create("", "n", std::make_shared<Number>(7)), IsOk());
    return MakeNumber();
  });
  GRADFLOW_ASSERT_OK(existing);
  EXPECT_EQ((*existing)->n(), 7);
  EXPECT_EQ(Number::alive, 1);
  EXPECT_THAT(manager.LookupOrCreate<Text>("", "closed",
                                           [&] {
                                             manager.Close();
                                             return std::make_shared<Text>();
                                           }),
              StatusIs(StatusCode::kCancelled));
  EXPECT_EQ(manager.DebugString(), "");
}

}  // namespace
}  // namespace gradflow
