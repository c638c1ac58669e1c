#include <limits>

#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

template <typename T>
OpTester Range(typename Literal<T>::type start, typename Literal<T>::type limit,
               typename Literal<T>::type delta) {
  return OpTester("Range")
      .Input(AsScalar<T>(start))
      .Input(AsScalar<T>(limit))
      .Input(AsScalar<T>(delta));
}

TEST(Range, CountsInEveryType) {
  using Types = TypeList<bfloat16, half, float, double, int8_t, int16_t, int32_t, int64_t, uint16_t,
                         uint32_t, uint64_t>;
  ForEachType(Types(), [](auto tag) {
    using T = typename decltype(tag)::type;
    SCOPED_TRACE(DataTypeString(DataTypeToEnum<T>::value));
    EXPECT_THAT(Range<T>(3, 10, 2).RunOne(), TensorEq(AsTensor<T>({3, 5, 7, 9})));
    EXPECT_THAT(Range<T>(0, 3, 1).RunOne(), TensorEq(AsTensor<T>({0, 1, 2})));
    EXPECT_THAT(Range<T>(5, 5, 1).RunOne(), TensorEq(AsTensor<T>({})));
    EXPECT_THAT(Range<T>(5, 6, 100).RunOne(), TensorEq(AsTensor<T>({5})));
  });
}

TEST(Range, CountsDown) {
  EXPECT_THAT(Range<int32_t>(3, -4, -3).RunOne(), TensorEq(AsTensor<int32_t>({3, 0, -3})));
  EXPECT_THAT(Range<double>(1, 0, -0.25).RunOne(),
              TensorEq(AsTensor<double>({1, 0.75, 0.5, 0.25})));
}

TEST(Range, StopsBeforeTheRoundedLimit) {
  EXPECT_THAT(Range<float>(0, 0.3f, 0.1f).RunOne(), TensorEq(AsTensor<float>({0, 0.1f, 2 * 0.1f})));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor tenths, Range<float>(0, 1, 0.1f).RunOne());
  EXPECT_EQ(tenths.NumElements(), 10);
}

TEST(Range, DoesNotAccumulateErrors) {
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor numbers, Range<bfloat16>(0, 1000, 1).RunOne());
  ASSERT_EQ(numbers.NumElements(), 1000);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(float{numbers.flat<bfloat16>()(i)}, float{bfloat16(i)});
  }
}

// The index of an element is not rounded to the type. half represents all integers only up to 2048.
TEST(Range, CountsBeyondTheExactIntegersOfItsType) {
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor numbers, Range<half>(-2000, 2000, 1).RunOne());
  ASSERT_EQ(numbers.NumElements(), 4000);
  for (int i = 0; i < 4000; ++i) {
    ASSERT_EQ(float{numbers.flat<half>()(i)}, static_cast<float>(i - 2000));
  }
  // Adding the step repeatedly would accumulate rounding errors.
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor tenths, Range<float>(0, 1000, 0.1f).RunOne());
  for (int i = 0; i < tenths.NumElements(); ++i) {
    ASSERT_EQ(tenths.flat<float>()(i), static_cast<float>(i) * 0.1f);
  }
}

TEST(Range, ReachesTheEndsOfIntegerTypes) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  EXPECT_THAT(Range<int64_t>(kMax - 3, kMax, 2).RunOne(),
              TensorEq(AsTensor<int64_t>({kMax - 3, kMax - 1})));
  EXPECT_THAT(Range<int64_t>(kMin, kMax, kMax).RunOne(),
              TensorEq(AsTensor<int64_t>({kMin, -1, kMax - 1})));
  EXPECT_THAT(Range<int64_t>(kMax, kMin, kMin).RunOne(), TensorEq(AsTensor<int64_t>({kMax, -1})));
  EXPECT_THAT(Range<int8_t>(-128, 127, 100).RunOne(), TensorEq(AsTensor<int8_t>({-128, -28, 72})));
}

TEST(Range, RejectsBadArguments) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const struct {
    OpTester tester;
    const char* error;
  } cases[] = {
      {Range<int32_t>(0, 5, 0), "delta must not be 0"},
      {Range<float>(0, 5, -0.f), "delta must not be 0"},
      {Range<int32_t>(5, 0, 1),
       "start must be at most limit when delta is positive, but start, limit and delta are 5, 0 "
       "and 1"},
      {Range<float>(0, 5, -0.5f),
       "start must be at least limit when delta is negative, but start, limit and delta are 0, 5 "
       "and -0.5"},
      {Range<float>(0, inf, 1), "must be finite, but are 0, inf and 1"},
      {Range<double>(nan, 1, 1), "must be finite"},
      {Range<bfloat16>(0, 1, nan), "must be finite"},
      {Range<double>(0, 1e300, 1e-300), "more elements than fit in an int64"},
      {Range<int64_t>(std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max(), 1),
       "more elements than fit in an int64"},
  };
  for (const auto& c : cases) {
    OpTester tester = c.tester;
    EXPECT_THAT(tester.Run(), StatusIs(kInvalidArgument, HasSubstr(c.error)));
    EXPECT_THAT(tester.InferShape(), StatusIs(kInvalidArgument, HasSubstr(c.error)));
  }
  EXPECT_THAT(OpTester("Range")
                  .Input(AsTensor<int32_t>({1}, {1, 1}))
                  .Input(AsScalar<int32_t>(2))
                  .Input(AsScalar<int32_t>(1))
                  .Run(),
              StatusIs(kInvalidArgument, "start must be a scalar, but has shape [1,1]"));
}

// TensorFlow's kernel accepts such vectors, but its shape function does not.
TEST(Range, TakesVectorsOfOneElement) {
  const auto range =
      OpTester("Range")
          .Attr("Tidx", DT_INT32)
          .RunOn({AsTensor<int32_t>({1}), AsTensor<int32_t>({7}), AsTensor<int32_t>({2})});
  GRADFLOW_ASSERT_OK(range.status());
  EXPECT_THAT((*range)[0], TensorEq(AsTensor<int32_t>({1, 3, 5})));
  EXPECT_THAT(OpTester("Range")
                  .UnknownInput(DT_INT32, {1})
                  .UnknownInput(DT_INT32)
                  .UnknownInput(DT_INT32)
                  .InferShape(),
              StatusIs(kInvalidArgument,
                       HasSubstr("Shape must be rank 0 but is rank 1: start has shape [1]")));
}

TEST(Range, InfersAVector) {
  EXPECT_THAT(OpTester("Range")
                  .Input(AsScalar<int32_t>(1))
                  .UnknownInput(DT_INT32)
                  .Input(AsScalar<int32_t>(1))
                  .InferShape(),
              ShapeIs("[?]"));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
