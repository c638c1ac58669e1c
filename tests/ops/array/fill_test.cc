#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

TEST(Fill, RepeatsAValueOfEveryType) {
  for (const DataType dtype : TensorTypes()) {
    SCOPED_TRACE(DataTypeString(dtype));
    const Tensor value = DistinctTensor(dtype, {});
    for (const TensorShape& shape : {TensorShape({2, 3}), TensorShape(), TensorShape({4, 0})}) {
      const Tensor dims = AsTensor<int64_t>(shape.dim_sizes());
      EXPECT_THAT(OpTester("Fill").Input(dims).Input(value).RunOne(),
                  TensorEq(Rearranged(value, shape, [](auto&) { return 0; })));
    }
  }
}

TEST(Fill, FillsALargeTensor) {
  EXPECT_THAT(
      OpTester("Fill").Input(AsTensor<int32_t>({70, 9000})).Input(AsScalar<int8_t>(7)).RunOne(),
      TensorEq(AsTensor<int8_t>(std::vector<int8_t>(630000, 7), {70, 9000})));
}

TEST(Fill, RejectsBadArguments) {
  const struct {
    Tensor dims;
    Tensor value;
    const char* error;
  } cases[] = {
      {AsTensor<int32_t>({2, -1}), AsScalar<float>(1), "dims: dimension -1"},
      {AsTensor<int64_t>({int64_t{1} << 40, int64_t{1} << 40}), AsScalar<float>(1),
       "dims: shape [1099511627776,1099511627776] has more elements"},
      {AsTensor<int32_t>({1}), AsTensor<float>({1, 2}), "value must"},
      {AsTensor<int32_t>({1}, {1, 1}), AsScalar<float>(1),
       "Shape must be rank 1 but is rank 2: dims has shape [1,1]"},
  };
  for (const auto& c : cases) {
    OpTester tester = OpTester("Fill").Input(c.dims).Input(c.value);
    EXPECT_THAT(tester.Run(), StatusIs(kInvalidArgument, HasSubstr(c.error)));
    EXPECT_THAT(tester.InferShape(), StatusIs(kInvalidArgument));
  }
}

// TensorFlow's kernel accepts these shapes, but its shape function does not.
TEST(Fill, TakesOneDimensionAndAVectorOfOneElement) {
  const auto filled =
      OpTester("Fill").Attr("T", DT_FLOAT).RunOn({AsScalar<int32_t>(2), AsTensor<float>({7})});
  GRADFLOW_ASSERT_OK(filled.status());
  EXPECT_THAT((*filled)[0], TensorEq(AsTensor<float>({7, 7})));
}

TEST(Fill, ReportsMemoryShortage) {
  EXPECT_THAT(OpTester("Fill")
                  .Input(AsTensor<int64_t>({int64_t{1} << 59}))
                  .Input(AsScalar<double>(1))
                  .Run(),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST(ZerosLike, ReturnsZerosOfEveryType) {
  for (const DataType dtype : TensorTypes()) {
    SCOPED_TRACE(DataTypeString(dtype));
    for (const TensorShape& shape : {TensorShape(), TensorShape({3, 5}), TensorShape({0, 2})}) {
      GRADFLOW_ASSERT_OK_AND_ASSIGN(
          const Tensor zeros, OpTester("ZerosLike").Input(DistinctTensor(dtype, shape)).RunOne());
      EXPECT_EQ(zeros.shape(), shape);
      if (dtype == DT_STRING) {
        for (const tstring& element : zeros.flat<tstring>()) EXPECT_EQ(element, "");
      } else {
        for (const char byte : zeros.tensor_data()) ASSERT_EQ(byte, 0);
      }
    }
  }
  EXPECT_THAT(OpTester("ZerosLike").Input(Iota<double>({300000}, 1)).RunOne(),
              TensorEq(AsTensor<double>(std::vector<double>(300000, 0))));
}

TEST(ZerosLike, TakesOneInput) {
  EXPECT_THAT(OpTester("ZerosLike").Attr("T", DT_FLOAT).Run(),
              StatusIs(kInvalidArgument, HasSubstr("input")));
}

TEST(OnesLike, ReturnsOnesOfEveryType) {
  ForEachType(ConcatTypes<NumberTypes, TypeList<bool>>::type(), [](auto tag) {
    using T = typename decltype(tag)::type;
    SCOPED_TRACE(DataTypeString(DataTypeToEnum<T>::value));
    const TensorShape shapes[] = {{}, {3, 5}, {0, 2}};
    for (const TensorShape& shape : shapes) {
      Tensor ones(DataTypeToEnum<T>::value, shape);
      ones.flat<T>().setConstant(T(1));
      EXPECT_THAT(
          OpTester("OnesLike").Input(DistinctTensor(DataTypeToEnum<T>::value, shape)).RunOne(),
          TensorEq(ones));
    }
  });
}

TEST(OnesLike, RejectsStrings) {
  EXPECT_THAT(OpTester("OnesLike").Input(AsScalar<tstring>("x")).Run(),
              StatusIs(kInvalidArgument, HasSubstr("string")));
}

TEST(Empty, ReturnsZeros) {
  for (const DataType dtype : TensorTypes()) {
    SCOPED_TRACE(DataTypeString(dtype));
    for (const bool init : {false, true}) {
      const Tensor distinct = DistinctTensor(dtype, {2, 3});
      EXPECT_THAT(
          OpTester("Empty").Input<int32_t>({2, 3}).Attr("dtype", dtype).Attr("init", init).RunOne(),
          TensorEq(*OpTester("ZerosLike").Input(distinct).RunOne()));
    }
  }
  const auto empty = [](const Tensor& shape) {
    return OpTester("Empty").Input(shape).Attr("dtype", DT_FLOAT);
  };
  EXPECT_THAT(empty(AsTensor<int32_t>({-1})).Run(),
              StatusIs(kInvalidArgument, "shape: dimension -1 of shape [?] is negative"));
  EXPECT_THAT(empty(AsScalar<int32_t>(2)).Run(),
              StatusIs(kInvalidArgument, "Shape must be rank 1 but is rank 0: shape has shape []"));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
