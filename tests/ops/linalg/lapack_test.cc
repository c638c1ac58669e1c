#include "gradflow/ops/linalg/lapack.h"

#include <cstdint>

#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

template <typename T>
class LapackTest : public ::testing::Test {};
using Types = ::testing::Types<double, complex128>;
TYPED_TEST_SUITE(LapackTest, Types);

auto IsTooLarge() {
  return StatusIs(kInvalidArgument, HasSubstr("are too large for the 32-bit sizes of LAPACK"));
}

TYPED_TEST(LapackTest, RefusesSizesThatOverflow) {
  using T = TypeParam;
  constexpr int64_t kHuge = int64_t{1} << 31;
  for (const auto vectors :
       {SingularVectors::kNone, SingularVectors::kThin, SingularVectors::kFull}) {
    EXPECT_THAT(SvdWork<T>(21000, 21000, vectors), IsTooLarge());
    EXPECT_THAT(SvdWork<T>(2, kHuge, vectors), IsTooLarge());
    EXPECT_THAT(SvdWork<T>(kHuge, 2, vectors), IsTooLarge());
    GRADFLOW_EXPECT_OK(SvdWork<T>(20000, 20000, vectors).status());
    GRADFLOW_EXPECT_OK(SvdWork<T>(1000000, 2, vectors).status());
  }
  EXPECT_THAT(QrWork<T>(kHuge, 1, 1), IsTooLarge());
  EXPECT_THAT(QrWork<T>(1, kHuge, 1), IsTooLarge());
  EXPECT_THAT(SelfAdjointEigWork<T>(23200, true), IsTooLarge());
  EXPECT_THAT(SelfAdjointEigWork<T>(kHuge, false), IsTooLarge());
  EXPECT_THAT(EigWork<T>(kHuge, true), IsTooLarge());
  EXPECT_THAT(SchurWork<T>(kHuge), IsTooLarge());
  EXPECT_THAT(LeastSquaresWork<T>(kHuge, 1, 1), IsTooLarge());
  EXPECT_THAT(LeastSquaresWork<T>(1, kHuge, 1), IsTooLarge());
  EXPECT_THAT(LeastSquaresWork<T>(1, 1, kHuge), IsTooLarge());
  EXPECT_THAT(QrWork<T>(kHuge, 1, 1),
              StatusIs(kInvalidArgument, HasSubstr("matrices of 2147483648 rows and 1 columns")));
}

// The sizes that LAPACK reports are not smaller than its documentation requires.
TYPED_TEST(LapackTest, ReportsWorkspacesOfLargeMatrices) {
  using T = TypeParam;
  constexpr int64_t n = 20000;
  const auto svd = SvdWork<T>(n, n, SingularVectors::kFull);
  GRADFLOW_ASSERT_OK(svd.status());
  if (kIsComplex<T>) {
    EXPECT_GE(svd->reals, 5 * n * n);
  } else {
    EXPECT_GE(svd->elements, 3 * n * n);
  }
  EXPECT_GE(QrWork<T>(n, n, n)->elements, 2 * n);
  EXPECT_GE(SelfAdjointEigWork<T>(n, true)->elements, kIsComplex<T> ? n * n : 2 * n * n);
  EXPECT_GE(EigWork<T>(n, true)->elements, 2 * n);
  EXPECT_GE(SchurWork<T>(n)->elements, 2 * n);
  EXPECT_GE(LeastSquaresWork<T>(n, n, 1)->elements, 2 * n);
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
