// Tests of the plugin's kernel with gradflow::testing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "gradflow/io/plugin.h"
#include "gradflow/testing/kernel_test.h"

namespace {

using gradflow::DT_DOUBLE;
using gradflow::DT_FLOAT;
using gradflow::testing::AsTensor;
using gradflow::testing::KernelTest;
using gradflow::testing::Normal;
using gradflow::testing::StatusIs;
using gradflow::testing::TensorEq;
using ::testing::HasSubstr;

class SoftThresholdTest : public KernelTest {
 protected:
  static void SetUpTestSuite() { GRADFLOW_ASSERT_OK(gradflow::LoadLibrary(PLUGIN_FILE)); }
};

TEST_F(SoftThresholdTest, MovesTowardsZero) {
  Op("SoftThreshold").Attr("threshold", 0.5f).Input<float>({-2, -0.5, 0.25, 0, 1, 4}, {2, 3});
  GRADFLOW_ASSERT_OK(Run());
  EXPECT_THAT(output(0), TensorEq(AsTensor<float>({-1.5, 0, 0, 0, 0.5, 3.5}, {2, 3})));
}

TEST_F(SoftThresholdTest, NanStaysNan) {
  Op("SoftThreshold").Input<double>({std::numeric_limits<double>::quiet_NaN()});
  GRADFLOW_ASSERT_OK(Run());
  EXPECT_TRUE(std::isnan(output(0).flat<double>()(0)));
}

TEST_F(SoftThresholdTest, HasTheSameBitsEverywhere) {
  for (const auto dtype : {DT_FLOAT, DT_DOUBLE}) {
    Op("SoftThreshold").RandomInput(dtype, {300, 333}, Normal(0, 2));
    GRADFLOW_ASSERT_OK(RunEverywhere());
  }
}

TEST_F(SoftThresholdTest, AThresholdIsNotNegative) {
  Op("SoftThreshold").Attr("threshold", -1.0f).Input<float>({1});
  EXPECT_THAT(Run(), StatusIs(absl::StatusCode::kInvalidArgument,
                              HasSubstr("threshold must not be negative, but is -1")));
}

}  // namespace
