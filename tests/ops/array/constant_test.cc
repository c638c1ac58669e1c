#include "gradflow/core/tensor_proto.h"
#include "gradflow/proto/attr_value.pb.h"
#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

TEST(Const, ReturnsItsValueInEveryType) {
  for (const DataType dtype : TensorTypes()) {
    SCOPED_TRACE(DataTypeString(dtype));
    for (const TensorShape& shape : {TensorShape(), TensorShape({0}), TensorShape({2, 3})}) {
      const Tensor value = DistinctTensor(dtype, shape);
      EXPECT_THAT(OpTester("Const").Attr("dtype", dtype).Attr("value", value).RunOne(),
                  TensorEq(value));
    }
  }
}

TEST(Const, SharesItsValueBetweenRuns) {
  OpTester tester("Const");
  tester.Attr("dtype", DT_FLOAT).Attr("value", Iota<float>({1000}));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor first, tester.RunOne());
  EXPECT_THAT(tester.RunOne(), TensorEq(first));
}

TEST(Const, RejectsAValueOfAnotherType) {
  OpTester tester = OpTester("Const").Attr("dtype", DT_INT32).Attr("value", AsScalar<float>(1));
  EXPECT_THAT(tester.Run(),
              StatusIs(kInvalidArgument, HasSubstr("value has type float, but dtype is int32")));
  EXPECT_THAT(tester.InferShape(),
              StatusIs(kInvalidArgument, HasSubstr("value has type float, but dtype is int32")));
}

TEST(Const, RejectsAValueThatIsNoTensor) {
  AttrValue value;
  TensorToProto(AsTensor<float>({1, 2}), value.mutable_tensor());
  value.mutable_tensor()->mutable_tensor_shape()->mutable_dim(0)->set_size(-5);
  EXPECT_THAT(OpTester("Const").Attr("dtype", DT_FLOAT).Attr("value", value).Run(),
              StatusIs(kInvalidArgument, HasSubstr("-5")));
}

TEST(Const, NeedsAValue) {
  EXPECT_THAT(OpTester("Const").Attr("dtype", DT_FLOAT).Run(),
              StatusIs(kInvalidArgument, HasSubstr("value")));
}

TEST(HostConst, ReturnsItsValue) {
  const Tensor value = AsTensor<tstring>({"a", "b"});
  EXPECT_THAT(OpTester("HostConst").Attr("value", value).Attr("dtype", DT_STRING).RunOne(),
              TensorEq(value));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
