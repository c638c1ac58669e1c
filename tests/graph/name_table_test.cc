#include "gradflow/graph/name_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <exception>
#include <random>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"

namespace gradflow::internal {
namespace {

TEST(NodesByName, FindsInsertedNodes) {
  NodesByName table;
  EXPECT_EQ(table.Find(std::string("a")), nullptr);
  table.Prefetch(std::string("a"));
  table.Erase(std::string("a"));
  std::deque<std::string> names;
  for (int i = 0; i < 10'000; ++i) {
    names.push_back(absl::StrCat("n", i));
    EXPECT_TRUE(table.Insert(names.back(), &names.back(), i));
    EXPECT_FALSE(table.Insert(names.back(), &names.back(), i + 1));
  }
  EXPECT_EQ(table.size(), 10'000u);
  for (int i = 0; i < 10'000; ++i) {
    const NamedNode* const found = table.Find(absl::StrCat("n", i));
    ASSERT_NE(found, nullptr) << i;
    EXPECT_EQ(found->id, i);
    EXPECT_EQ(*found->name, names[i]);
  }
  EXPECT_EQ(table.Find(std::string("n10000")), nullptr);
}

// Compares with a set during random insertions and removals, at sizes where names collide.
TEST(NodesByName, KeepsTheOthersWhenOneIsErased) {
  std::mt19937 random(1);  // NOLINT: the same in each run
  std::deque<std::string> names;
  for (int i = 0; i < 40; ++i) names.push_back(absl::StrCat("n", i));
  for (int round = 0; round < 50; ++round) {
    NodesByName table;
    std::set<int> expected;
    for (int step = 0; step < 500; ++step) {
      const int i = static_cast<int>(random() % names.size());
      if (random() % 2 == 0) {
        EXPECT_EQ(table.Insert(names[i], &names[i], i), expected.insert(i).second);
      } else {
        table.Erase(names[i]);
        expected.erase(i);
      }
      ASSERT_EQ(table.size(), expected.size());
      for (int k = 0; k < static_cast<int>(names.size()); ++k) {
        const NamedNode* const found = table.Find(names[k]);
        ASSERT_EQ(found != nullptr, expected.count(k) == 1) << k;
        if (found != nullptr) {
          ASSERT_EQ(found->id, k);
        }
      }
    }
  }
}

TEST(NodesByName, TakesAllNodesOfAnotherTable) {
  std::deque<std::string> names;
  NodesByName a;
  NodesByName b;
  for (int i = 0; i < 100; ++i) {
    names.push_back(absl::StrCat("n", i));
    (i % 3 == 0 ? a : b).Insert(names.back(), &names.back(), i);
  }
  a.InsertAll(b);
  a.InsertAll(NodesByName());
  EXPECT_EQ(a.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(a.Find(names[i])->id, i);
}

TEST(NodesByName, StaysUnchangedIfItCannotGrow) {
  NodesByName table;
  const std::string name = "n";
  table.Insert(name, &name, 7);
  // More elements than a vector may have. Sanitizers also report this as an exception.
  EXPECT_THROW(table.Reserve(size_t{1} << 61), std::exception);
  EXPECT_EQ(table.size(), 1u);
  EXPECT_EQ(table.Find(name)->id, 7);
  const std::string other = "other";
  EXPECT_TRUE(table.Insert(other, &other, 8));
}

}  // namespace
}  // namespace gradflow::internal
