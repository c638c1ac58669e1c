#include "gradflow/ops/linalg/plain_product.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstdint>
#include <vector>

#include "gradflow/core/types.h"
#include "gradflow/ops/linalg/register_product.h"

namespace gradflow {
namespace testing {
namespace {

// Small integers, whose sums of products are exact in any order.
template <typename T>
std::vector<T> Integers(int64_t n, int64_t step) {
  std::vector<T> numbers(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    const double value = static_cast<double>(i * step % 17 - 8);
    if constexpr (kIsComplex<T>) {
      using Real = typename T::value_type;
      numbers[static_cast<size_t>(i)] =
          T(static_cast<Real>(value), static_cast<Real>(i * step % 5 - 2));
    } else {
      numbers[static_cast<size_t>(i)] = static_cast<T>(value);
    }
  }
  return numbers;
}

template <typename T>
complex128 At(const std::vector<T>& numbers, const BlasMatrix<const T>& matrix, int64_t row,
              int64_t column) {
  const int64_t index =
      matrix.transposed ? column * matrix.stride + row : row * matrix.stride + column;
  const complex128 value(numbers[static_cast<size_t>(index)]);
  return matrix.conjugated ? std::conj(value) : value;
}

struct Form {
  bool a_transposed;
  bool b_transposed;
  bool conjugated;
  bool add;
};

// Multiplies matrices that end in the middle of tiles and lie inside larger matrices.
template <typename T>
void ExpectProduct(const Form& form) {
  constexpr int64_t kM = 5, kN = 600, kK = 37, kStride = 640;
  const std::vector<T> a = Integers<T>(40 * kStride, 5);
  const std::vector<T> b = Integers<T>(kN * kStride, 11);
  const std::vector<T> before = Integers<T>(kM * kStride, 3);
  const BlasMatrix<const T> left = {a.data(), kStride, form.a_transposed,
                                    form.a_transposed && form.conjugated};
  const BlasMatrix<const T> right = {b.data(), kStride, form.b_transposed,
                                     form.b_transposed && form.conjugated};
  std::vector<T> expected = before;
  for (int64_t i = 0; i < kM; ++i) {
    for (int64_t j = 0; j < kN; ++j) {
      T& element = expected[static_cast<size_t>(i * kStride + j)];
      complex128 sum = form.add ? complex128(element) : 0;
      for (int64_t p = 0; p < kK; ++p) sum += At(a, left, i, p) * At(b, right, p, j);
      if constexpr (kIsComplex<T>) {
        element = T(sum);
      } else {
        element = static_cast<T>(sum.real());
      }
    }
  }
  std::vector<T> tiles = before;
  MultiplyInTiles<T>(kM, kN, kK, left, right, {tiles.data(), kStride}, form.add);
  EXPECT_EQ(tiles, expected);
  std::vector<T> small = before;
  MultiplySmall<T>(kM, kN, kK, left, right, {small.data(), kStride}, form.add);
  EXPECT_EQ(small, expected);
  std::vector<T> in_registers = before;
  std::vector<T> scratch;
  MultiplyInRegisters<T>(kM, kN, kK, left, right, {in_registers.data(), kStride}, form.add,
                         &scratch);
  EXPECT_EQ(in_registers, expected);
}

TEST(PlainProduct, IsExactForIntegersInAllForms) {
  for (int form = 0; form < 16; ++form) {
    SCOPED_TRACE(form);
    const Form bits = {(form & 1) != 0, (form & 2) != 0, (form & 4) != 0, (form & 8) != 0};
    ExpectProduct<complex64>(bits);
    ExpectProduct<complex128>(bits);
    if (bits.conjugated) continue;
    ExpectProduct<float>(bits);
    ExpectProduct<double>(bits);
  }
}

TEST(PlainProduct, HasTheSameBitsInTiles) {
  constexpr int64_t kM = 7, kN = 300, kK = 90;
  std::vector<float> a(kM * kK), b(kK * kN), tiles(kM * kN), small(kM * kN);
  for (size_t i = 0; i < a.size(); ++i) a[i] = 1.0f / static_cast<float>(i % 91 + 1);
  for (size_t i = 0; i < b.size(); ++i) b[i] = 1.0f / static_cast<float>(i % 53 + 3);
  MultiplyInTiles<float>(kM, kN, kK, {a.data(), kK}, {b.data(), kN}, {tiles.data(), kN});
  MultiplySmall<float>(kM, kN, kK, {a.data(), kK}, {b.data(), kN}, {small.data(), kN});
  EXPECT_EQ(tiles, small);
}

// The product does not read the result unless it adds to it.
TEST(PlainProduct, ReplacesNans) {
  const std::vector<double> ones(40 * 40, 1);
  std::vector<double> c(40 * 40, std::nan(""));
  MultiplyInTiles<double>(40, 40, 40, {ones.data(), 40}, {ones.data(), 40}, {c.data(), 40});
  EXPECT_THAT(c, ::testing::Each(40.0));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
