#include "gradflow/core/resource_handle.h"
#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

TEST(Identity, ForwardsAnyTensorWithoutACopy) {
  for (const char* op : {"Identity", "StopGradient", "PreventGradient"}) {
    SCOPED_TRACE(op);
    for (const DataType dtype : TensorTypes()) {
      SCOPED_TRACE(DataTypeString(dtype));
      for (const TensorShape& shape : {TensorShape(), TensorShape({2, 0}), TensorShape({2, 3})}) {
        const Tensor input = DistinctTensor(dtype, shape);
        const auto output = OpTester(op).Input(input).RunOne();
        EXPECT_THAT(output, TensorEq(input));
        EXPECT_TRUE(!output.ok() || output->raw_data() == input.raw_data());
      }
    }
  }
}

TEST(Identity, TakesOneInput) {
  for (const char* op : {"Identity", "StopGradient", "PreventGradient"}) {
    EXPECT_THAT(OpTester(op).Attr("T", DT_FLOAT).Run(),
                StatusIs(kInvalidArgument, HasSubstr("input")));
  }
}

TEST(IdentityN, ForwardsTensorsOfSeveralTypes) {
  const std::vector<Tensor> inputs = {AsTensor<float>({1, 2}), AsScalar<tstring>("x"),
                                      AsTensor<bool>({true, false}, {2, 1})};
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> outputs,
                                OpTester("IdentityN").Inputs(inputs).Run());
  ASSERT_EQ(outputs.size(), inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_THAT(outputs[i], TensorEq(inputs[i]));
    EXPECT_EQ(outputs[i].raw_data(), inputs[i].raw_data());
  }
}

TEST(IdentityN, TakesAtLeastOneInput) {
  EXPECT_THAT(OpTester("IdentityN").Run(), StatusIs(kInvalidArgument, HasSubstr("T")));
}

TEST(Identity, SimilarOpsAlsoShareMemory) {
  for (const char* op : {"Snapshot", "GuaranteeConst"}) {
    const Tensor x = DistinctTensor(DT_STRING, {3});
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor y, OpTester(op).Input(x).RunOne());
    EXPECT_THAT(y, TensorEq(x));
    EXPECT_EQ(y.raw_data(), x.raw_data());
  }
}

TEST(GuaranteeConst, RefusesResources) {
  EXPECT_THAT(OpTester("GuaranteeConst").Input(Tensor(ResourceHandle("c", "n"))).Run(),
              StatusIs(kInvalidArgument, HasSubstr("input must not be a resource")));
  EXPECT_THAT(OpTester("Snapshot").Input(Tensor(ResourceHandle("c", "n"))).Run(), IsOk());
}

// The variable keeps its value.
TEST(RefIdentity, ReturnsTheVariable) {
  EXPECT_THAT(OpTester("RefIdentity").Input<float>({1, 2}).RunOne(),
              TensorEq(AsTensor<float>({1, 2})));
  EXPECT_THAT(OpTester("RefIdentity").Input<tstring>({"a"}).RunOne(),
              TensorEq(AsTensor<tstring>({"a"})));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
