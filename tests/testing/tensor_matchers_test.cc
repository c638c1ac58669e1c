// Tests of the matchers for tensors: accepted values and exact messages.
#include "gradflow/testing/tensor_matchers.h"

#include <gtest/gtest-spi.h>

#include <cmath>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "gradflow/core/resource_handle.h"
#include "gradflow/testing/status_matchers.h"
#include "gradflow/testing/tensors.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Returns the message of EXPECT_THAT(value, matcher) from "Expected" on, or "" if it matches.
template <typename T, typename M>
std::string Failure(const T& value, const M& matcher) {
  const ::testing::Matcher<const T&> m = ::testing::SafeMatcherCast<const T&>(matcher);
  ::testing::StringMatchResultListener why;
  if (::testing::ExplainMatchResult(m, value, &why)) return "";
  std::ostringstream text;
  text << "Expected: ";
  m.DescribeTo(&text);
  text << "\n  Actual: " << ::testing::PrintToString(value) << ", " << why.str();
  return text.str();
}

Tensor Floats(std::initializer_list<float> values) { return AsTensor<float>(values); }

TEST(TensorEq, ShowsWhereAndByHowMuch) {
  EXPECT_EQ(Failure(AsTensor<float>({1, 2, 3, 5}, {2, 2}),
                    TensorEq(AsTensor<float>({1, 2, 3, 4}, {2, 2}))),
            "Expected: equals Tensor<type: float shape: [2,2] values: [1 2][3 4]>\n"
            "  Actual: Tensor<type: float shape: [2,2] values: [1 2][3 5]>, "
            "1 of 4 elements differs\n"
            "  [1,1]: 5, expected 4 (difference 1, 2097152 ulps)");
}

TEST(TensorEq, FailsThroughExpectThatWithThatText) {
  EXPECT_NONFATAL_FAILURE(
      EXPECT_THAT(AsScalar<float>(1), TensorEq(AsScalar<float>(0.1f))),
      "Value of: AsScalar<float>(1)\n"
      "Expected: equals Tensor<type: float shape: [] values: 0.1>\n"
      "  Actual: Tensor<type: float shape: [] values: 1> (of type gradflow::Tensor), "
      "1 of 1 element differs\n"
      "  1, expected 0.1 (difference 0.9, 28521267 ulps)");
}

TEST(TensorEq, ShowsTheFirstFewAndTheFurthest) {
  const Tensor zeros = AsTensor<int32_t>(std::vector<int32_t>(100));
  Tensor actual = Iota<int32_t>({100});
  actual.flat<int32_t>()(60) = -1000;
  EXPECT_THAT(Failure(actual, TensorEq(zeros)),
              HasSubstr("99 of 100 elements differ\n"
                        "  [1]: 1, expected 0 (difference 1)\n"
                        "  [2]: 2, expected 0 (difference 2)\n"
                        "  [3]: 3, expected 0 (difference 3)\n"
                        "  [4]: 4, expected 0 (difference 4)\n"
                        "  [5]: 5, expected 0 (difference 5)\n"
                        "  and 94 more, furthest off [60]: -1000, expected 0 (difference 1000)"));
}

TEST(TensorEq, ShowsTypesAndShapesThatDiffer) {
  EXPECT_EQ(Failure(AsTensor<int32_t>({1}), TensorEq(Floats({1}))),
            "Expected: equals Tensor<type: float shape: [1] values: 1>\n"
            "  Actual: Tensor<type: int32 shape: [1] values: 1>, "
            "whose type is int32, expected float");
  EXPECT_EQ(Failure(Floats({1, 2}), TensorEq(AsTensor<float>({1, 2}, {2, 1}))),
            "Expected: equals Tensor<type: float shape: [2,1] values: [1][2]>\n"
            "  Actual: Tensor<type: float shape: [2] values: 1 2>, "
            "whose shape is [2], expected [2,1]");
}

TEST(TensorEq, ShowsElementsOfEveryKind) {
  EXPECT_THAT(Failure(AsTensor<tstring>({"a", "b\n"}), TensorEq(AsTensor<tstring>({"a", "c"}))),
              HasSubstr("\n  [1]: \"b\\n\", expected \"c\""));
  EXPECT_THAT(Failure(AsTensor<bool>({true}), TensorEq(AsTensor<bool>({false}))),
              HasSubstr("\n  [0]: true, expected false"));
  EXPECT_THAT(Failure(AsTensor<complex64>({{1, 2}}), TensorEq(AsTensor<complex64>({{1, 3}}))),
              HasSubstr("\n  [0]: (1,2), expected (1,3)"));
  EXPECT_THAT(Failure(AsTensor<half>({1.5f}), TensorEq(AsTensor<half>({1.25f}))),
              HasSubstr("\n  [0]: 1.5, expected 1.25 (difference 0.25, 256 ulps)"));
  EXPECT_THAT(Failure(AsTensor<qint8>({-3}), TensorEq(AsTensor<qint8>({4}))),
              HasSubstr("\n  [0]: -3, expected 4"));
  EXPECT_THAT(
      Failure(AsTensor<uint64_t>({~uint64_t{0}}), TensorEq(AsTensor<uint64_t>({0}))),
      HasSubstr("\n  [0]: 18446744073709551615, expected 0 (difference 18446744073709551615)"));
  // The numbers agree in six digits.
  EXPECT_THAT(Failure(AsTensor<double>({0.1}), TensorEq(AsTensor<double>({0.1 + 0x1p-55}))),
              HasSubstr("\n  [0]: 0.1, expected 0.10000000000000003 (difference 2.77556e-17, 2 "
                        "ulps)"));
  for (const DataType dtype : TensorTypes()) {
    const Tensor distinct = DistinctTensor(dtype, {7});
    EXPECT_THAT(distinct, TensorEq(*distinct.DeepCopy())) << DataTypeString(dtype);
    EXPECT_THAT(distinct.Slice(1, 7), Not(TensorEq(distinct.Slice(0, 6)))) << DataTypeString(dtype);
  }
}

TEST(TensorEq, ComparesResources) {
  const Tensor a(ResourceHandle("c", "a"));
  EXPECT_EQ(Failure(a, TensorEq(Tensor(ResourceHandle("c", "a")))), "");
  EXPECT_THAT(Failure(a, TensorEq(Tensor(ResourceHandle("c", "b")))),
              HasSubstr("element 0 is resource 'a' of container 'c', expected resource 'b' of "
                        "container 'c'"));
}

TEST(TensorEq, CountsDifferencesOfIntegersExactly) {
  constexpr int64_t min = std::numeric_limits<int64_t>::min();
  constexpr int64_t max = std::numeric_limits<int64_t>::max();
  // As a double, it equals large + 1.
  constexpr int64_t large = int64_t{1} << 53;
  const struct {
    Tensor actual;
    Tensor expected;
    const char* text;
  } cases[] = {
      {AsTensor<int64_t>({large + 1}), AsTensor<int64_t>({large}), "(difference 1)"},
      {AsTensor<int64_t>({-large}), AsTensor<int64_t>({-large - 1}), "(difference 1)"},
      {AsTensor<int64_t>({min}), AsTensor<int64_t>({max}), "(difference 18446744073709551615)"},
      {AsTensor<int64_t>({max}), AsTensor<int64_t>({min}), "(difference 18446744073709551615)"},
      {AsTensor<uint64_t>({0}), AsTensor<uint64_t>({~uint64_t{1}}),
       "(difference 18446744073709551614)"},
      {AsTensor<int32_t>({-5000000}), AsTensor<int32_t>({5000000}), "(difference 10000000)"},
      {AsTensor<int8_t>({-128}), AsTensor<int8_t>({127}), "(difference 255)"},
      {AsTensor<uint8_t>({1}), AsTensor<uint8_t>({255}), "(difference 254)"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(Failure(c.actual, TensorEq(c.expected)), ::testing::EndsWith(c.text));
  }
  const TensorDiff diff =
      DiffTensors(AsTensor<int64_t>({max - 1, max - 3, max - 2}),
                  AsTensor<int64_t>({max, max, max}), Tolerance::Exact(), /*max_elements=*/1);
  EXPECT_EQ(diff.furthest.position, 1);
  EXPECT_EQ(diff.furthest.text,
            "[1]: 9223372036854775804, expected 9223372036854775807 (difference 3)");
}

TEST(TensorEq, DistinguishesZerosButNotNans) {
  EXPECT_THAT(Floats({kNan, kInf}), TensorEq(Floats({-kNan, kInf})));
  EXPECT_THAT(Failure(Floats({-0.0f}), TensorEq(Floats({0}))),
              HasSubstr("\n  [0]: -0, expected 0 (difference 0, 0 ulps)"));
  EXPECT_THAT(Failure(Floats({kNan}), TensorEq(Floats({1}))),
              HasSubstr("\n  [0]: nan, expected 1"));
  EXPECT_THAT(Failure(Floats({kInf}), TensorEq(Floats({-kInf}))),
              HasSubstr("\n  [0]: inf, expected -inf"));
}

TEST(TensorEq, AcceptsAStatusOr) {
  const absl::StatusOr<Tensor> good = Floats({1});
  EXPECT_THAT(good, TensorEq(Floats({1})));
  const absl::StatusOr<Tensor> bad = absl::NotFoundError("no node 'x'");
  EXPECT_EQ(Failure(bad, TensorEq(Floats({1}))),
            "Expected: equals Tensor<type: float shape: [1] values: 1>\n"
            "  Actual: NOT_FOUND: no node 'x', which is an error");
  const std::vector<Tensor> several = {Floats({1}), Floats({2})};
  EXPECT_THAT(several, ElementsAre(TensorEq(Floats({1})), TensorEq(Floats({2}))));
}

TEST(TensorEq, AcceptsTensorsWithoutElements) {
  EXPECT_THAT(Tensor(DT_FLOAT, {0, 3}), TensorEq(Tensor(DT_FLOAT, {0, 3})));
  EXPECT_THAT(Tensor(DT_FLOAT, {0, 3}), Not(TensorEq(Tensor(DT_FLOAT, {3, 0}))));
}

TEST(TensorNear, AllowsBothTolerances) {
  const Tensor expected = Floats({100, 0});
  EXPECT_THAT(Floats({101.5f, 0.5f}), TensorNear(expected, 0.5, 0.01));
  EXPECT_EQ(Failure(Floats({101.75f, -0.5f}), TensorNear(expected, 0.5, 0.01)),
            "Expected: is within 0.5 + 0.01 * |expected| of "
            "Tensor<type: float shape: [2] values: 100 0>\n"
            "  Actual: Tensor<type: float shape: [2] values: 101.75 -0.5>, "
            "1 of 2 elements differs\n"
            "  [0]: 101.75, expected 100 (difference 1.75, 229376 ulps)");
}

TEST(TensorNear, IsRelativeToTheExpectedValue) {
  EXPECT_THAT(Floats({2}), Not(TensorNear(Floats({1}), 0, 0.6)));
  EXPECT_THAT(Floats({1}), TensorNear(Floats({2}), 0, 0.6));
  EXPECT_THAT(Floats({-2}), Not(TensorNear(Floats({-1}), 0, 0.6)));
  EXPECT_THAT(Floats({0}), TensorNear(Floats({1}), 0, 1));
  EXPECT_THAT(Floats({1}), Not(TensorNear(Floats({0}), 0, 1)));
}

TEST(TensorNear, RequiresEqualNansAndInfinities) {
  EXPECT_THAT(Floats({kNan, kInf, -kInf}), TensorNear(Floats({kNan, kInf, -kInf}), 1e30, 1));
  EXPECT_THAT(Floats({kNan}), Not(TensorNear(Floats({1}), 1e30, 1)));
  EXPECT_THAT(Floats({1}), Not(TensorNear(Floats({kNan}), 1e30, 1)));
  EXPECT_THAT(Floats({kInf}), Not(TensorNear(Floats({3e38f}), 1e39, 1)));
  EXPECT_THAT(Floats({3e38f}), Not(TensorNear(Floats({kInf}), 1e39, 1)));
  EXPECT_THAT(Floats({-0.0f}), TensorNear(Floats({0}), 0, 0));
}

TEST(TensorNear, HasADefaultForEachType) {
  EXPECT_THAT(Floats({1.000009f}), TensorNear(Floats({1})));
  EXPECT_THAT(Floats({1.00003f}), Not(TensorNear(Floats({1}))));
  EXPECT_THAT(AsTensor<double>({1.000009}), Not(TensorNear(AsTensor<double>({1}))));
  EXPECT_THAT(AsTensor<bfloat16>({1.0078125f}), TensorNear(AsTensor<bfloat16>({1})));
  EXPECT_THAT(AsTensor<int32_t>({2}), Not(TensorNear(AsTensor<int32_t>({1}))));
  EXPECT_THAT(AsTensor<complex64>({{1, 0.000009f}}),
              TensorNear(AsTensor<complex64>({{1, 0}}), 1e-5, 0));
  EXPECT_THAT(AsTensor<complex64>({{1, 2}}), Not(TensorNear(AsTensor<complex64>({{1, 0}}))));
}

TEST(TensorNear, UsesTheDifferenceOfIntegers) {
  const int64_t large = int64_t{1} << 60;
  EXPECT_THAT(AsTensor<int64_t>({large + 1}), TensorNear(AsTensor<int64_t>({large}), 1, 0));
  EXPECT_THAT(AsTensor<int64_t>({large + 2}), Not(TensorNear(AsTensor<int64_t>({large}), 1, 0)));
}

TEST(TensorWithinUlps, CountsNumbersBetween) {
  const float one_up = std::nextafter(1.0f, 2.0f);
  const float two_up = std::nextafter(one_up, 2.0f);
  EXPECT_THAT(Floats({one_up}), TensorWithinUlps(Floats({1}), 1));
  EXPECT_EQ(Failure(Floats({1, two_up}), TensorWithinUlps(Floats({1, 1}), 1)),
            "Expected: is within 1 ulp of Tensor<type: float shape: [2] values: 1 1>\n"
            "  Actual: Tensor<type: float shape: [2] values: 1 1.0000002>, "
            "1 of 2 elements differs\n"
            "  [1]: 1.0000002, expected 1 (difference 2.38419e-07, 2 ulps)");
  // Across zero, where 0 and -0 are one number.
  const float tiny = std::numeric_limits<float>::denorm_min();
  EXPECT_THAT(Floats({-tiny}), TensorWithinUlps(Floats({tiny}), 2));
  EXPECT_THAT(Floats({-tiny}), Not(TensorWithinUlps(Floats({tiny}), 1)));
  EXPECT_THAT(Floats({-0.0f}), TensorWithinUlps(Floats({0}), 0));
}

TEST(TensorWithinUlps, SupportsOnlyFloatingTypes) {
  EXPECT_THAT(AsTensor<half>({0x1.004p0f}), TensorWithinUlps(AsTensor<half>({1}), 1));
  EXPECT_THAT(AsTensor<half>({0x1.008p0f}), Not(TensorWithinUlps(AsTensor<half>({1}), 1)));
  EXPECT_THAT(AsTensor<bfloat16>({0x1.02p0f}), TensorWithinUlps(AsTensor<bfloat16>({1}), 1));
  EXPECT_THAT(AsTensor<double>({1 + 0x1p-52}), TensorWithinUlps(AsTensor<double>({1}), 1));
  EXPECT_THAT(AsTensor<double>({1 + 0x1p-51}), Not(TensorWithinUlps(AsTensor<double>({1}), 1)));
  EXPECT_THAT(AsTensor<double>({1e308}), Not(TensorWithinUlps(AsTensor<double>({-1e308}), 1)));
  EXPECT_THAT(AsTensor<int32_t>({2}), Not(TensorWithinUlps(AsTensor<int32_t>({1}), 5)));
  EXPECT_THAT(Floats({kInf}), Not(TensorWithinUlps(Floats({3.4028235e38f}), 5)));
  EXPECT_THAT(Floats({kNan}), TensorWithinUlps(Floats({kNan}), 0));
}

TEST(TensorWithinUlps, AllowsOnlyEqualElementsIfNegative) {
  for (const int64_t ulps : {int64_t{-1}, std::numeric_limits<int64_t>::min()}) {
    SCOPED_TRACE(ulps);
    EXPECT_THAT(Floats({1, -0.0f, kNan, kInf}), TensorWithinUlps(Floats({1, 0, kNan, kInf}), ulps));
    EXPECT_THAT(Floats({1.5f}), Not(TensorWithinUlps(Floats({1}), ulps)));
    EXPECT_THAT(AsTensor<half>({1.5f}), Not(TensorWithinUlps(AsTensor<half>({1}), ulps)));
    EXPECT_THAT(AsTensor<double>({1 + 0x1p-52}),
                Not(TensorWithinUlps(AsTensor<double>({1}), ulps)));
    EXPECT_THAT(AsTensor<complex64>({{1, 2}}),
                Not(TensorWithinUlps(AsTensor<complex64>({{1, 3}}), ulps)));
  }
}

TEST(ShapeIs, AcceptsShapesAndAStatusOr) {
  EXPECT_THAT(TensorShape({2, 3}), ShapeIs("[2,3]"));
  EXPECT_THAT(PartialTensorShape({2, -1}), ShapeIs("[2,?]"));
  const absl::StatusOr<PartialTensorShape> unknown = PartialTensorShape();
  EXPECT_THAT(unknown, ShapeIs("<unknown>"));
  EXPECT_EQ(Failure(PartialTensorShape({2, -1}), ShapeIs("[2,3]")),
            "Expected: is [2,3]\n  Actual: [2,?], which is [2,?]");
  const absl::StatusOr<PartialTensorShape> bad = absl::InternalError("no");
  EXPECT_THAT(Failure(bad, ShapeIs("[]")), HasSubstr("whose status is INTERNAL: no"));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
