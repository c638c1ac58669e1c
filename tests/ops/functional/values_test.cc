// Tests of DeviceIndex, FakeParam and ToBool.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gradflow/core/tensor.h"
#include "gradflow/graph/node_builder.h"
#include "gradflow/graph/scope.h"
#include "gradflow/runtime/session/client_session.h"
#include "gradflow/testing/op_tester.h"
#include "gradflow/testing/status_matchers.h"
#include "gradflow/testing/tensor_matchers.h"
#include "tests/testing/constants.h"

namespace gradflow::testing {
namespace {

using ::testing::HasSubstr;

TEST(DeviceIndex, IsThePositionOfTheCpu) {
  const auto index = [](const std::vector<std::string>& names) {
    return OpTester("DeviceIndex").Attr("device_names", names).RunOne();
  };
  EXPECT_THAT(index({"CPU", "GPU"}), TensorEq(AsScalar<int32_t>(0)));
  EXPECT_THAT(index({"GPU", "TPU", "CPU", "CPU"}), TensorEq(AsScalar<int32_t>(2)));
  EXPECT_THAT(index({"GPU", "TPU"}), TensorEq(AsScalar<int32_t>(2)));
  EXPECT_THAT(index({}), TensorEq(AsScalar<int32_t>(0)));
}

TEST(FakeParam, IsZero) {
  const auto param = [](DataType dtype, const PartialTensorShape& shape) {
    return OpTester("FakeParam").Attr("dtype", dtype).Attr("shape", shape).RunOne();
  };
  EXPECT_THAT(param(DT_FLOAT, PartialTensorShape({2, 1})),
              TensorEq(AsTensor<float>({0, 0}, TensorShape({2, 1}))));
  EXPECT_THAT(param(DT_STRING, PartialTensorShape({2})), TensorEq(AsTensor<tstring>({"", ""})));
}

// The shape function does not know these sizes, which OpTester would report.
TEST(FakeParam, HasNoElementsInUnknownDimensions) {
  const auto run = [](const PartialTensorShape& shape) {
    const Scope root = Scope::NewRootScope();
    const Output param(
        OpBuilder(root, "FakeParam").Attr("dtype", DT_BOOL).Attr("shape", shape).Finish(), 0);
    std::vector<Tensor> outputs;
    GRADFLOW_EXPECT_OK(ClientSession(root).Run({param}, &outputs));
    return outputs.empty() ? Tensor() : outputs[0];
  };
  EXPECT_THAT(run(PartialTensorShape({3, -1})), TensorEq(Tensor(DT_BOOL, TensorShape({3, 0}))));
  EXPECT_THAT(run(PartialTensorShape()), TensorEq(AsScalar<bool>(false)));
}

TEST(FakeParam, IsChargedToTheMemoryOfTheRun) {
  EXPECT_THAT(OpTester("FakeParam")
                  .Attr("dtype", DT_FLOAT)
                  .Attr("shape", PartialTensorShape({int64_t{1} << 40}))
                  .Run(),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST(ToBool, IsTrueForScalarsThatAreNotZeroOrEmpty) {
  const auto to_bool = [](const Tensor& x) { return OpTester("ToBool").Input(x).RunOne(); };
  const Tensor yes = AsScalar<bool>(true);
  const Tensor no = AsScalar<bool>(false);
  EXPECT_THAT(to_bool(AsScalar<float>(0.5)), TensorEq(yes));
  EXPECT_THAT(to_bool(AsScalar<float>(-0.0f)), TensorEq(no));
  EXPECT_THAT(to_bool(AsScalar<double>(0)), TensorEq(no));
  EXPECT_THAT(to_bool(AsScalar<half>(half(1))), TensorEq(yes));
  EXPECT_THAT(to_bool(AsScalar<bfloat16>(bfloat16(0))), TensorEq(no));
  EXPECT_THAT(to_bool(AsScalar<int32_t>(-3)), TensorEq(yes));
  EXPECT_THAT(to_bool(AsScalar<uint8_t>(0)), TensorEq(no));
  EXPECT_THAT(to_bool(yes), TensorEq(yes));
  EXPECT_THAT(to_bool(no), TensorEq(no));
  EXPECT_THAT(to_bool(AsScalar<tstring>("")), TensorEq(no));
  EXPECT_THAT(to_bool(AsScalar<tstring>("false")), TensorEq(yes));
}

TEST(ToBool, IsTrueForTensorsWithElements) {
  const auto to_bool = [](const Tensor& x) { return OpTester("ToBool").Input(x).RunOne(); };
  EXPECT_THAT(to_bool(AsTensor<float>({0})), TensorEq(AsScalar<bool>(true)));
  EXPECT_THAT(to_bool(Tensor(DT_FLOAT, TensorShape({2, 0}))), TensorEq(AsScalar<bool>(false)));
  EXPECT_THAT(to_bool(AsTensor<tstring>({""})), TensorEq(AsScalar<bool>(true)));
  EXPECT_THAT(to_bool(Tensor(DT_COMPLEX64, TensorShape({1}))), TensorEq(AsScalar<bool>(true)));
}

TEST(ToBool, RefusesComplexScalars) {
  EXPECT_THAT(OpTester("ToBool").Input(Tensor(DT_COMPLEX64, TensorShape())).Run(),
              StatusIs(kInvalidArgument,
                       HasSubstr("a scalar of type complex64 is neither true nor false")));
}

}  // namespace
}  // namespace gradflow::testing
