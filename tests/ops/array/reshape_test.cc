#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

Tensor Reshaped(const Tensor& tensor, const TensorShape& shape) { return *tensor.Reshaped(shape); }

TEST(Reshape, KeepsElementsInEveryType) {
  for (const DataType dtype : TensorTypes()) {
    SCOPED_TRACE(DataTypeString(dtype));
    const Tensor tensor = DistinctTensor(dtype, {2, 6});
    const auto output = OpTester("Reshape").Input(tensor).Input(AsTensor<int32_t>({3, 4})).RunOne();
    EXPECT_THAT(output, TensorEq(Reshaped(tensor, {3, 4})));
    EXPECT_TRUE(!output.ok() || output->raw_data() == tensor.raw_data());
  }
}

TEST(Reshape, ResolvesOneUnknownDimension) {
  const struct {
    TensorShape from;
    std::vector<int64_t> shape;
    TensorShape to;
  } cases[] = {
      {{2, 6}, {-1}, {12}},         {{2, 6}, {4, -1}, {4, 3}},
      {{2, 6}, {-1, 12}, {1, 12}},  {{1}, {}, {}},
      {{}, {1, 1}, {1, 1}},         {{}, {-1}, {1}},
      {{0, 3}, {-1, 3}, {0, 3}},    {{0, 3}, {3, -1}, {3, 0}},
      {{0, 3}, {5, 0}, {5, 0}},     {{0}, {-1}, {0}},
      {{12}, {2, 3, 2}, {2, 3, 2}},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.to.DebugString());
    const Tensor tensor = Iota<float>(c.from);
    EXPECT_THAT(OpTester("Reshape").Input(tensor).Input(AsTensor<int64_t>(c.shape)).RunOne(),
                TensorEq(Reshaped(tensor, c.to)));
  }
}

TEST(Reshape, RejectsShapesThatDoNotFit) {
  const struct {
    Tensor shape;
    const char* error;
  } cases[] = {
      {AsTensor<int32_t>({5}), "a tensor of 12 elements cannot be reshaped to [5]"},
      {AsTensor<int32_t>({5, -1}), "a tensor of 12 elements cannot be reshaped to [5,?]"},
      {AsTensor<int32_t>({0, -1}), "a tensor of 12 elements cannot be reshaped to [0,?]"},
      {AsTensor<int32_t>({-1, -1}), "at most one unknown dimension (-1)"},
      {AsTensor<int32_t>({-2, -6}), "negative"},
      {AsTensor<int64_t>({int64_t{1} << 62, 8}), "more elements"},
  };
  for (const auto& c : cases) {
    OpTester tester = OpTester("Reshape").Input(Iota<float>({12})).Input(c.shape);
    EXPECT_THAT(tester.Run(), StatusIs(kInvalidArgument, HasSubstr(c.error)));
    EXPECT_THAT(tester.InferShape(), StatusIs(kInvalidArgument, HasSubstr(c.error)));
  }
  EXPECT_THAT(OpTester("Reshape").Input(Tensor(DT_FLOAT, {0, 3})).Input<int32_t>({-1, 0, 2}).Run(),
              StatusIs(kInvalidArgument, HasSubstr("0 elements cannot be reshaped to [?,0,2]")));
  OpTester matrix = OpTester("Reshape").Input(Iota<float>({1})).Input(Iota<int32_t>({1, 1}));
  EXPECT_THAT(matrix.Run(),
              StatusIs(kInvalidArgument,
                       HasSubstr("Shape must be rank 1 but is rank 2: shape has shape [1,1]")));
  EXPECT_THAT(matrix.InferShape(),
              StatusIs(kInvalidArgument,
                       HasSubstr("Shape must be rank 1 but is rank 2: shape has shape [1,1]")));
}

TEST(Reshape, InfersKnownDimensions) {
  const auto infer = [](const PartialTensorShape& tensor, std::vector<int32_t> shape) {
    return OpTester("Reshape")
        .UnknownInput(DT_FLOAT, tensor)
        .Input(AsTensor<int32_t>(shape))
        .InferShape();
  };
  EXPECT_THAT(infer({-1, 4}, {-1, 2}), ShapeIs("[?,2]"));
  EXPECT_THAT(infer(TensorShape(), {3}), StatusIs(kInvalidArgument));
  EXPECT_THAT(infer(PartialTensorShape(), {3, 5}), ShapeIs("[3,5]"));
  EXPECT_THAT(infer({-1}, {-1, -1}), StatusIs(kInvalidArgument, HasSubstr("at most one")));
  EXPECT_THAT(OpTester("Reshape").Input(Iota<float>({6})).UnknownInput(DT_INT32, {3}).InferShape(),
              ShapeIs("[?,?,?]"));
}

TEST(ExpandDims, InsertsADimension) {
  const struct {
    int32_t dim;
    TensorShape shape;
  } cases[] = {{0, {1, 2, 3}},  {1, {2, 1, 3}},  {2, {2, 3, 1}},
               {-1, {2, 3, 1}}, {-2, {2, 1, 3}}, {-3, {1, 2, 3}}};
  const Tensor input = Iota<double>({2, 3});
  for (const auto& c : cases) {
    SCOPED_TRACE(c.dim);
    EXPECT_THAT(OpTester("ExpandDims").Input(input).Input(AsScalar<int32_t>(c.dim)).RunOne(),
                TensorEq(Reshaped(input, c.shape)));
  }
  EXPECT_THAT(
      OpTester("ExpandDims").Input(AsScalar<tstring>("x")).Input(AsTensor<int64_t>({0})).RunOne(),
      TensorEq(AsTensor<tstring>({"x"})));
}

TEST(ExpandDims, RejectsDimensionsOutOfRange) {
  for (const int32_t dim : {3, -4}) {
    OpTester tester =
        OpTester("ExpandDims").Input(Iota<float>({2, 3})).Input(AsScalar<int32_t>(dim));
    const auto error =
        StatusIs(kInvalidArgument, absl::StrCat("dim ", dim, " is out of range [-3, 3)"));
    EXPECT_THAT(tester.Run(), error);
    EXPECT_THAT(tester.InferShape(), error);
  }
  OpTester two = OpTester("ExpandDims").Input(Iota<float>({2})).Input(AsTensor<int32_t>({0, 1}));
  EXPECT_THAT(two.Run(),
              StatusIs(kInvalidArgument, "dim must have one element, but has shape [2]"));
  OpTester none = OpTester("ExpandDims").Input(Iota<float>({2})).Input(AsTensor<int32_t>({}));
  EXPECT_THAT(none.Run(),
              StatusIs(kInvalidArgument, "dim must have one element, but has shape [0]"));
  EXPECT_THAT(none.InferShape(), StatusIs(kInvalidArgument));
}

TEST(ExpandDims, RejectsTooManyDimensions) {
  const Tensor input(DT_FLOAT, TensorShape(std::vector<int64_t>(kMaxDims, 1)));
  EXPECT_THAT(OpTester("ExpandDims").Input(input).Input(AsScalar<int32_t>(0)).Run(),
              StatusIs(kInvalidArgument, HasSubstr("at most 254 dimensions")));
}

TEST(Squeeze, TakesOutDimensionsOfSizeOne) {
  const Tensor input = Iota<float>({1, 2, 1, 3, 1});
  const struct {
    std::vector<int64_t> axes;
    TensorShape shape;
  } cases[] = {{{}, {2, 3}},
               {{0}, {2, 1, 3, 1}},
               {{2, 4}, {1, 2, 3}},
               {{-1}, {1, 2, 1, 3}},
               {{-5, 2, 2}, {2, 3, 1}}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.shape.DebugString());
    EXPECT_THAT(OpTester("Squeeze").Input(input).Attr("squeeze_dims", c.axes).RunOne(),
                TensorEq(Reshaped(input, c.shape)));
  }
  EXPECT_THAT(OpTester("Squeeze").Input(Iota<int32_t>({1, 1})).RunOne(),
              TensorEq(AsScalar<int32_t>(0)));
}

TEST(Squeeze, RejectsOtherDimensions) {
  OpTester size = OpTester("Squeeze").Input(Iota<float>({1, 2})).Attr("squeeze_dims", {1});
  const auto size_error =
      StatusIs(kInvalidArgument, "squeeze_dims names dimension 1 of shape [1,2], which must be 1");
  EXPECT_THAT(size.Run(), size_error);
  EXPECT_THAT(size.InferShape(), size_error);
  EXPECT_THAT(OpTester("Squeeze").Input(Iota<float>({1, 2})).Attr("squeeze_dims", {-3}).Run(),
              StatusIs(kInvalidArgument, "squeeze_dims -3 is out of range [-2, 2)"));
}

TEST(Squeeze, InfersKnownDimensions) {
  const auto infer = [](std::vector<int64_t> axes) {
    return OpTester("Squeeze")
        .UnknownInput(DT_FLOAT, {1, -1, 3})
        .Attr("squeeze_dims", axes)
        .InferShape();
  };
  EXPECT_THAT(infer({}), ShapeIs("<unknown>"));
  EXPECT_THAT(infer({0}), ShapeIs("[?,3]"));
  EXPECT_THAT(infer({1}), ShapeIs("[1,3]"));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
