#include "gradflow/runtime/session/plan_cache.h"

#include <string>
#include <thread>
#include <vector>

#include "gradflow/testing/status_matchers.h"
#include "tests/runtime/toy_ops.h"

namespace gradflow {
namespace {

using ::gradflow::testing::AddToy;
using ::gradflow::testing::Int;
using ::gradflow::testing::ToyRegistry;

// The arguments of a call of Run.
struct Request {
  std::vector<std::pair<std::string, Tensor>> feeds;
  std::vector<std::string> fetches;
  std::vector<std::string> targets;

  RunRequest View() const { return {feeds, fetches, targets}; }
};

class PlanCacheTest : public ::testing::Test {
 protected:
  PlanCacheTest() {
    GRADFLOW_EXPECT_OK(AddToy(&graph_, "a", "Placeholder", {}, {{"dtype", DT_INT64}}));
    GRADFLOW_EXPECT_OK(AddToy(&graph_, "b", "Placeholder", {}, {{"dtype", DT_INT64}}));
  }

  static std::shared_ptr<const Plan> Find(const PlanCache& cache, const Request& request) {
    return cache.Find(request.View());
  }
  std::shared_ptr<const Plan> Insert(PlanCache* cache, const Request& request) {
    absl::StatusOr<std::shared_ptr<const Plan>> made =
        Plan::Make(graph_, request.View().Names(), &kernels_);
    GRADFLOW_EXPECT_OK(made);
    std::shared_ptr<const Plan> plan = *std::move(made);
    cache->Insert(request.View().Names(), plan);
    return plan;
  }

  Graph graph_{ToyRegistry()};
  KernelCache kernels_;
};

TEST_F(PlanCacheTest, TellsNamesInEachRoleAndOrderApart) {
  const Request requests[] = {
      {{}, {}, {}},
      {{{"a", Int(1)}}, {}, {}},
      {{}, {"a"}, {}},
      {{}, {}, {"a"}},
      {{}, {"a", "b"}, {}},
      {{}, {"b", "a"}, {}},
      {{}, {"a"}, {"b"}},
      {{{"a", Int(1)}, {"b", Int(1)}}, {}, {}},
      {{{"b", Int(1)}, {"a", Int(1)}}, {}, {}},
      {{}, {"a:0"}, {}},
  };
  PlanCache cache;
  std::vector<std::shared_ptr<const Plan>> plans;
  for (const Request& request : requests) {
    EXPECT_EQ(Find(cache, request), nullptr);
    plans.push_back(Insert(&cache, request));
  }
  for (size_t i = 0; i < plans.size(); ++i) EXPECT_EQ(Find(cache, requests[i]), plans[i]);
  // The fed values do not matter.
  const Request other_value = {{{"a", Int(2)}}, {}, {}};
  EXPECT_EQ(Find(cache, other_value), plans[1]);
  cache.Clear();
  EXPECT_EQ(cache.size(), 0u);
  EXPECT_EQ(Find(cache, requests[0]), nullptr);
}

TEST_F(PlanCacheTest, EvictsTheLeastRecentlyUsedPlan) {
  const Request a = {{}, {"a"}, {}};
  const Request b = {{}, {"b"}, {}};
  const Request both = {{}, {"a", "b"}, {}};
  PlanCache cache(2);
  Insert(&cache, a);
  Insert(&cache, b);
  EXPECT_NE(Find(cache, a), nullptr);
  Insert(&cache, both);
  EXPECT_EQ(cache.size(), 2u);
  EXPECT_EQ(Find(cache, b), nullptr);
  EXPECT_NE(Find(cache, a), nullptr);
  EXPECT_NE(Find(cache, both), nullptr);
}

// Evicts in order of use, not in hash-table order.
TEST_F(PlanCacheTest, EvictsInOrderOfUse) {
  constexpr int kPlans = 12;
  PlanCache cache(kPlans);
  // Requests differ in their number of fetches.
  const auto request = [](int i) { return Request{{}, std::vector<std::string>(i + 1, "a"), {}}; };
  int end = 0;
  for (; end < kPlans; ++end) Insert(&cache, request(end));
  for (int first = 0; first < 6; ++first) {
    for (int i = first; i < end; ++i) EXPECT_NE(Find(cache, request(i)), nullptr) << i;
    Insert(&cache, request(end++));
    EXPECT_EQ(Find(cache, request(first)), nullptr) << first;
  }
}

TEST_F(PlanCacheTest, ServesManyThreads) {
  PlanCache cache(2);
  const Request requests[] = {
      {{}, {"a"}, {}}, {{}, {"b"}, {}}, {{}, {"a", "b"}, {}}, {{}, {}, {"a"}}};
  std::vector<std::shared_ptr<const Plan>> plans;
  for (const Request& request : requests) plans.push_back(Insert(&cache, request));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 1000; ++i) {
        const int n = (i + t) % 4;
        const std::shared_ptr<const Plan> found = Find(cache, requests[n]);
        if (found != nullptr) {
          EXPECT_EQ(found, plans[n]);
        } else {
          cache.Insert(requests[n].View().Names(), plans[n]);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(cache.size(), 2u);
}

TEST_F(PlanCacheTest, DroppedPlansLiveAsLongAsTheirUsers) {
  const Request a = {{}, {"a"}, {}};
  PlanCache cache;
  const std::weak_ptr<const Plan> plan = Insert(&cache, a);
  std::shared_ptr<const Plan> found = cache.Find(a.View());
  EXPECT_NE(found, nullptr);
  cache.Clear();
  EXPECT_EQ(Find(cache, a), nullptr);
  EXPECT_EQ(found, plan.lock());
  found.reset();
  EXPECT_TRUE(plan.expired());
}

}  // namespace
}  // namespace gradflow
