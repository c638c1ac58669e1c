#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

// Returns `parts` tensors with distinct elements.
std::vector<Tensor> Parts(DataType dtype, int parts, const TensorShape& shape) {
  std::vector<Tensor> result;
  result.reserve(parts);
  const int64_t size = shape.num_elements();
  const Tensor all = DistinctTensor(dtype, {parts * size});
  for (int p = 0; p < parts; ++p) {
    result.push_back(*all.Slice(p * size, (p + 1) * size).Reshaped(shape));
  }
  return result;
}

TEST(Pack, StacksAlongEveryAxisInEveryType) {
  for (const DataType dtype : TensorTypes()) {
    SCOPED_TRACE(DataTypeString(dtype));
    const std::vector<Tensor> parts = Parts(dtype, 3, {2, 4});
    const Tensor all = DistinctTensor(dtype, {24});
    for (int axis = -3; axis < 3; ++axis) {
      SCOPED_TRACE(axis);
      const int d = axis < 0 ? axis + 3 : axis;
      TensorShape shape({2, 4});
      shape.InsertDim(d, 3);
      EXPECT_THAT(OpTester("Pack").Inputs(parts).Attr("axis", axis).RunOne(),
                  TensorEq(Rearranged(all, shape, [d](std::vector<int64_t> index) {
                    const int64_t part = index[d];
                    index.erase(index.begin() + d);
                    return part * 8 + index[0] * 4 + index[1];
                  })));
    }
  }
}

TEST(Pack, StacksScalarsAndEmptyTensors) {
  EXPECT_THAT(OpTester("Pack").Input(AsScalar<float>(1)).Input(AsScalar<float>(2)).RunOne(),
              TensorEq(AsTensor<float>({1, 2})));
  EXPECT_THAT(OpTester("Pack").Inputs(Parts(DT_FLOAT, 2, {3, 0})).RunOne(),
              TensorEq(Tensor(DT_FLOAT, {2, 3, 0})));
  EXPECT_THAT(OpTester("Pack").Input(AsTensor<float>({1, 2})).RunOne(),
              TensorEq(AsTensor<float>({1, 2}, {1, 2})));
}

TEST(Pack, RejectsBadArguments) {
  OpTester shapes = OpTester("Pack").Input(Iota<float>({2})).Input(Iota<float>({3}));
  EXPECT_THAT(shapes.Run(), StatusIs(kInvalidArgument,
                                     "Dimension 0 in both shapes must be equal, but are 2 and 3: "
                                     "values[0] has shape [2], and values[1] has shape [3]"));
  EXPECT_THAT(shapes.InferShape(),
              StatusIs(kInvalidArgument, HasSubstr("values[1] has [3] after [2]")));
  for (const int axis : {2, -3}) {
    OpTester tester = OpTester("Pack").Input(Iota<float>({2})).Attr("axis", axis);
    const auto error =
        StatusIs(kInvalidArgument, absl::StrCat("axis ", axis, " is out of range [-2, 2)"));
    EXPECT_THAT(tester.Run(), error);
    EXPECT_THAT(tester.InferShape(), error);
  }
  EXPECT_THAT(OpTester("Pack").Input(Iota<float>({2})).Input(Iota<int32_t>({2})).Run(),
              StatusIs(kInvalidArgument, HasSubstr("types")));
}

TEST(Pack, InfersFromAllInputs) {
  EXPECT_THAT(OpTester("Pack")
                  .UnknownInput(DT_FLOAT, {-1, 3})
                  .UnknownInput(DT_FLOAT)
                  .UnknownInput(DT_FLOAT, {2, -1})
                  .Attr("axis", 1)
                  .InferShape(),
              ShapeIs("[2,3,3]"));
}

TEST(Unpack, TakesApartAlongEveryAxisInEveryType) {
  for (const DataType dtype : TensorTypes()) {
    SCOPED_TRACE(DataTypeString(dtype));
    const Tensor value = DistinctTensor(dtype, {2, 3, 4});
    const int64_t strides[] = {12, 4, 1};
    for (int axis = -3; axis < 3; ++axis) {
      SCOPED_TRACE(axis);
      const int d = axis < 0 ? axis + 3 : axis;
      const int num = static_cast<int>(value.dim_size(d));
      GRADFLOW_ASSERT_OK_AND_ASSIGN(
          const std::vector<Tensor> parts,
          OpTester("Unpack").Input(value).Attr("num", num).Attr("axis", axis).Run());
      ASSERT_EQ(parts.size(), num);
      TensorShape shape = value.shape();
      shape.RemoveDim(d);
      for (int p = 0; p < num; ++p) {
        EXPECT_THAT(parts[p], TensorEq(Rearranged(value, shape, [&](std::vector<int64_t> index) {
                      index.insert(index.begin() + d, p);
                      return index[0] * strides[0] + index[1] * strides[1] + index[2];
                    })));
      }
    }
  }
}

TEST(Unpack, SharesRowsThatAreAligned) {
  const Tensor value = Iota<float>({3, 32});
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> rows,
                                OpTester("Unpack").Input(value).Attr("num", 3).Run());
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(rows[i], TensorEq(Iota<float>({32}, i * 32)));
    EXPECT_EQ(rows[i].raw_data(), value.flat<float>().data() + i * 32);
  }
}

TEST(Unpack, TakesEmptyTensorsApart) {
  EXPECT_THAT(OpTester("Unpack").Input(Tensor(DT_FLOAT, {0, 2})).Attr("num", 0).Run(),
              IsOkAndHolds(::testing::IsEmpty()));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> rows,
      OpTester("Unpack").Input(Tensor(DT_FLOAT, {2, 0})).Attr("num", 2).Run());
  EXPECT_THAT(rows[1], TensorEq(AsTensor<float>({})));
}

TEST(Unpack, RejectsBadArguments) {
  const struct {
    Tensor value;
    int num;
    int axis;
    const char* error;
  } cases[] = {
      {Iota<float>({2, 3}), 3, 0, "dimension 0 of value, of shape [2,3], must be num, which is 3"},
      {Iota<float>({2, 3}), 2, 2, "axis 2 is out of range [-2, 2)"},
      {AsScalar<float>(1), 1, 0, "axis 0 is out of range [0, 0)"},
  };
  for (const auto& c : cases) {
    OpTester tester = OpTester("Unpack").Input(c.value).Attr("num", c.num).Attr("axis", c.axis);
    EXPECT_THAT(tester.Run(), StatusIs(kInvalidArgument, c.error));
    EXPECT_THAT(tester.InferShapes(), StatusIs(kInvalidArgument, c.error));
  }
  EXPECT_THAT(OpTester("Unpack").Input(Iota<float>({2})).Attr("num", -1).Run(),
              StatusIs(kInvalidArgument, HasSubstr("num")));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
