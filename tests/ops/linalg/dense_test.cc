#include "gradflow/ops/linalg/dense.h"

#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <random>

#include "gradflow/testing/kernel_test.h"

namespace gradflow {
namespace testing {
namespace {

template <typename T>
class DenseTest : public ::testing::Test {
 protected:
  WideMatrix<T> Random(int64_t rows, int64_t columns) {
    WideMatrix<T> matrix(rows, columns);
    std::uniform_real_distribution<double> values(-1, 1);
    for (T& element : matrix.elements()) {
      if constexpr (kIsComplex<T>) {
        element = T(values(random_), values(random_));
      } else {
        element = values(random_);
      }
    }
    return matrix;
  }

  static void ExpectNear(const WideMatrix<T>& actual, const WideMatrix<T>& expected) {
    ASSERT_EQ(actual.rows(), expected.rows());
    ASSERT_EQ(actual.columns(), expected.columns());
    double largest = 0;
    for (size_t i = 0; i < actual.elements().size(); ++i) {
      largest = std::max(largest, std::abs(actual.elements()[i] - expected.elements()[i]));
    }
    EXPECT_LT(largest, 1e-11);
  }

  std::minstd_rand random_;
};
using Types = ::testing::Types<double, complex128>;
TYPED_TEST_SUITE(DenseTest, Types);

// Products small enough for loops, and larger ones.
TYPED_TEST(DenseTest, Multiplies) {
  using T = TypeParam;
  for (const int64_t size : {1, 3, 20}) {
    for (const bool adjoint_a : {false, true}) {
      for (const bool adjoint_b : {false, true}) {
        const int64_t m = size + 1;
        const int64_t n = size + 2;
        const WideMatrix<T> a = this->Random(m, size);
        const WideMatrix<T> b = this->Random(size, n);
        const WideMatrix<T> c = this->Random(m, n);
        WideMatrix<T> product(m, n);
        WideMatrix<T> difference = c;
        for (int64_t i = 0; i < m; ++i) {
          for (int64_t j = 0; j < n; ++j) {
            for (int64_t k = 0; k < size; ++k) product(i, j) += a(i, k) * b(k, j);
            difference(i, j) -= product(i, j);
          }
        }
        const WideMatrix<T> left = adjoint_a ? Adjoint(a) : a;
        const WideMatrix<T> right = adjoint_b ? Adjoint(b) : b;
        WideMatrix<T> actual = c;
        Multiply<T>({left.view(), adjoint_a}, {right.view(), adjoint_b}, actual.view());
        this->ExpectNear(actual, product);
        actual = c;
        Multiply<T>({left.view(), adjoint_a}, {right.view(), adjoint_b}, actual.view(), true);
        this->ExpectNear(actual, difference);
      }
    }
  }
}

TYPED_TEST(DenseTest, MultipliesEmptyMatrices) {
  using T = TypeParam;
  const WideMatrix<T> tall(3, 0);
  const WideMatrix<T> wide(0, 2);
  WideMatrix<T> c = this->Random(3, 2);
  const WideMatrix<T> before = c;
  Multiply<T>({tall.view()}, {wide.view()}, c.view(), true);
  this->ExpectNear(c, before);
  Multiply<T>({tall.view()}, {wide.view()}, c.view());
  this->ExpectNear(c, WideMatrix<T>(3, 2));
}

// Several blocks of rows and of columns.
TYPED_TEST(DenseTest, SolvesTriangularSystems) {
  using T = TypeParam;
  constexpr T kUnread = std::numeric_limits<double>::quiet_NaN();
  for (const int64_t n : {1, 31, 32, 33, 70}) {
    for (const int64_t columns : {1, 600}) {
      for (const Triangle triangle : {Triangle::kLower, Triangle::kUpper, Triangle::kUnitLower}) {
        WideMatrix<T> matrix = this->Random(n, n);
        WideMatrix<T> read = matrix;
        for (int64_t i = 0; i < n; ++i) {
          for (int64_t j = 0; j < n; ++j) {
            // Makes the matrix well-conditioned.
            matrix(i, j) = i == j ? matrix(i, j) + T(4) : matrix(i, j) / static_cast<double>(n);
            read(i, j) = matrix(i, j);
            if (triangle == Triangle::kUnitLower && i == j) {
              matrix(i, j) = kUnread;
              read(i, j) = 1;
            }
            if (triangle == Triangle::kUpper ? i > j : i < j) {
              matrix(i, j) = kUnread;
              read(i, j) = 0;
            }
          }
        }
        const WideMatrix<T> b = this->Random(n, columns);
        WideMatrix<T> x = b;
        SolveTriangular<T>(matrix.view(), triangle, x.view());
        this->ExpectNear(Product(read, x), b);
      }
    }
  }
}

TYPED_TEST(DenseTest, PivotsAreTheLargestElements) {
  using T = TypeParam;
  for (const int64_t n : {1, 5, 32, 33, 100}) {
    const WideMatrix<T> a = this->Random(n, n);
    const LuDecomposition<T> lu = FactorLu(a);
    EXPECT_FALSE(lu.is_singular());
    WideMatrix<T> lower = lu.factors;
    WideMatrix<T> upper = lu.factors;
    WideMatrix<T> rows(n, n);
    int64_t exchanges = 0;
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        rows(i, j) = a(lu.order[i], j);
        if (i > j) {
          EXPECT_LE(std::abs(lower(i, j)), 1 + 1e-15);
          upper(i, j) = 0;
          exchanges += lu.order[i] < lu.order[j] ? 1 : 0;
        } else {
          lower(i, j) = i == j ? 1 : 0;
        }
      }
    }
    EXPECT_EQ(lu.odd, exchanges % 2 == 1);
    this->ExpectNear(Product(lower, upper), rows);
    const WideMatrix<T> b = this->Random(n, 2);
    const WideMatrix<T> x = SolveLu(lu, b);
    this->ExpectNear(Product(a, x), b);
  }
}

TYPED_TEST(DenseTest, FindsSingularMatrices) {
  using T = TypeParam;
  WideMatrix<T> a = this->Random(40, 40);
  for (int64_t i = 0; i < 40; ++i) a(i, 35) = 0;
  EXPECT_TRUE(FactorLu(a).is_singular());
  EXPECT_TRUE(FactorLu(WideMatrix<T>(2, 2)).is_singular());
}

TYPED_TEST(DenseTest, FactorsPositiveMatrices) {
  using T = TypeParam;
  for (const int64_t n : {1, 5, 32, 33, 100}) {
    const WideMatrix<T> root = this->Random(n, n);
    WideMatrix<T> a = Product(root, Adjoint(root));
    for (int64_t i = 0; i < n; ++i) a(i, i) += 1;
    WideMatrix<T> l = a;
    // The upper triangle is not read.
    for (int64_t j = 1; j < n; ++j) l(0, j) = std::numeric_limits<double>::quiet_NaN();
    ASSERT_TRUE(FactorCholesky(&l));
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t i = 0; i < j; ++i) l(i, j) = 0;
    }
    this->ExpectNear(Product(l, Adjoint(l)), a);
    // The negative pivot is in the last block of columns.
    a(n - 1, n - 1) = -1;
    EXPECT_FALSE(FactorCholesky(&a));
  }
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
