#include "gradflow/runtime/session/published.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

namespace gradflow {
namespace {

// A number that counts its live instances.
class Number {
 public:
  explicit Number(int value = 0) : value_(value) { ++alive(); }
  Number(const Number& other) : Number(other.value_) {}
  Number& operator=(const Number&) = default;
  ~Number() {
    value_ = -1;
    --alive();
  }
  int value() const { return value_; }

  static std::atomic<int>& alive() {
    static std::atomic<int> alive{0};
    return alive;
  }

 private:
  int value_;
};

using Reader = Published<Number>::Reader;

void Set(Published<Number>* published, int value) {
  published->Update([=](const Number&) { return std::optional<Number>(value); });
}

TEST(Published, ReadersGetTheNewestValue) {
  {
    Published<Number> published;
    EXPECT_EQ(Reader(published)->value(), 0);
    Set(&published, 1);
    EXPECT_EQ(Reader(published)->value(), 1);
    published.Update([](const Number& old) { return std::optional<Number>(old.value() + 1); });
    EXPECT_EQ((*Reader(published)).value(), 2);
    published.Update([](const Number&) { return std::optional<Number>(); });
    EXPECT_EQ(Reader(published)->value(), 2);
    EXPECT_EQ(Number::alive(), 1);
  }
  EXPECT_EQ(Number::alive(), 0);
}

TEST(Published, KeepsAValueForItsReaders) {
  Published<Number> published;
  auto first = std::make_unique<Reader>(published);
  Set(&published, 1);
  auto second = std::make_unique<Reader>(published);
  Set(&published, 2);
  EXPECT_EQ((*first)->value(), 0);
  EXPECT_EQ((*second)->value(), 1);
  EXPECT_EQ(Number::alive(), 3);
  first = nullptr;
  EXPECT_EQ((*second)->value(), 1);
  second = nullptr;
  EXPECT_EQ(Number::alive(), 1);
}

TEST(Published, DeletesOldValuesThoughThereIsAlwaysAReader) {
  Published<Number> published;
  auto reader = std::make_unique<Reader>(published);
  for (int i = 1; i <= 100; ++i) {
    Set(&published, i);
    auto next = std::make_unique<Reader>(published);
    reader = std::move(next);
    EXPECT_EQ((*reader)->value(), i);
    EXPECT_LE(Number::alive(), 3);
  }
}

TEST(Published, ServesManyThreads) {
  constexpr int kUpdates = 2000;
  {
    Published<Number> published;
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 6; ++t) {
      threads.emplace_back([&] {
        for (int last = 0; last < 2 * kUpdates;) {
          const Reader outer(published);
          const Reader inner(published);
          const int value = outer->value();
          if (value < last || inner->value() < value || outer->value() != value) ++wrong;
          last = value;
        }
      });
    }
    for (int t = 0; t < 2; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < kUpdates; ++i) {
          published.Update(
              [](const Number& old) { return std::optional<Number>(old.value() + 1); });
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(Reader(published)->value(), 2 * kUpdates);
    EXPECT_EQ(Number::alive(), 1);
  }
  EXPECT_EQ(Number::alive(), 0);
}

}  // namespace
}  // namespace gradflow
