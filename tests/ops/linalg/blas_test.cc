#include "gradflow/ops/linalg/blas.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <thread>
#include <vector>

#include "gradflow/ops/linalg/openmp.h"

namespace gradflow {
namespace testing {
namespace {

constexpr int64_t kSize = 8;

template <typename T>
std::vector<T> Numbers(int step) {
  std::vector<T> numbers(kSize * kSize);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<T>(i * step % 17) - T(8);
  return numbers;
}

template <typename T>
std::vector<T> Product(const std::vector<T>& a, const std::vector<T>& b) {
  std::vector<T> c(kSize * kSize, T(7));
  BlasGemm(kSize, kSize, kSize, BlasMatrix<const T>{a.data(), kSize},
           BlasMatrix<const T>{b.data(), kSize, true}, BlasMatrix<T>{c.data(), kSize});
  return c;
}

// Multiplies on many threads at once, like several MatMul nodes. A serial OpenBLAS returns wrong
// results unless its calls are serialized.
template <typename T>
void ExpectRightOnManyThreads() {
  const std::vector<T> a = Numbers<T>(5);
  const std::vector<T> b = Numbers<T>(11);
  std::vector<T> expected(kSize * kSize);
  for (int64_t i = 0; i < kSize * kSize; ++i) {
    for (int64_t p = 0; p < kSize; ++p) {
      expected[i] += a[i / kSize * kSize + p] * b[i % kSize * kSize + p];
    }
  }
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  threads.reserve(wrong.size());
  for (int& count : wrong) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50000; ++i) {
        if (Product(a, b) != expected) ++count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(wrong, ::testing::Each(0));
}

TEST(Blas, MultipliesOnManyThreadsAtOnce) {
  ExpectRightOnManyThreads<float>();
  ExpectRightOnManyThreads<double>();
}

TEST(Blas, MultipliesBlocks) {
  // Multiplies the lower right 2x1 block of [2x3] * [3x2], inside larger matrices. a is transposed.
  const std::vector<float> a = {1, 2, 9, 3, 4, 9, 5, 6, 9};
  const std::vector<float> b = {1, 2, 9, 3, 4, 9, 5, 6, 9};
  std::vector<float> c(6, -1);
  const BlasMatrix<const float> left = {a.data(), 3, true};
  const BlasMatrix<const float> right = {b.data(), 3};
  BlasGemm(1, 1, 3, left.Block(1, 0), right.Block(0, 1),
           BlasMatrix<float>{c.data(), 3}.Block(1, 1));
  EXPECT_THAT(c, ::testing::ElementsAre(-1, -1, -1, -1, 2 * 2 + 4 * 4 + 6 * 6, -1));
}

// The product does not read the result unless it adds to it.
TEST(Blas, ReplacesNans) {
  constexpr int64_t n = 100;
  const std::vector<float> a(n * n, 1);
  std::vector<float> c(n * n, std::numeric_limits<float>::quiet_NaN());
  const BlasMatrix<const float> ones = {a.data(), n};
  BlasGemm(n, n, n, ones, ones, BlasMatrix<float>{c.data(), n});
  EXPECT_THAT(c, ::testing::Each(100.0f));
  BlasGemm(n, n, n, ones, ones, BlasMatrix<float>{c.data(), n}, /*add=*/true);
  EXPECT_THAT(c, ::testing::Each(200.0f));
}

TEST(Blas, KeepsTheSettingOfOpenMp) {
  const int threads = OpenMpThreads();
  if (threads == 0) GTEST_SKIP() << "no OpenMP";
  SetOpenMpThreads(3);
  Product(Numbers<float>(5), Numbers<float>(11));
  EXPECT_EQ(OpenMpThreads(), 3);
  {
    const OneOpenMpThread one;
    EXPECT_EQ(OpenMpThreads(), 1);
  }
  SetOpenMpThreads(threads);
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
