#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace testing {
namespace {

TEST(Placeholder, MustBeFed) {
  EXPECT_THAT(OpTester("Placeholder").Attr("dtype", DT_HALF).Run(),
              StatusIs(kInvalidArgument, "a value must be fed, of type half"));
  EXPECT_THAT(OpTester("Placeholder")
                  .Attr("dtype", DT_FLOAT)
                  .Attr("shape", PartialTensorShape({2, -1}))
                  .Run(),
              StatusIs(kInvalidArgument, "a value must be fed, of type float and shape [2,?]"));
}

TEST(Placeholder, HasTheShapeOfItsAttribute) {
  EXPECT_THAT(OpTester("Placeholder").Attr("dtype", DT_FLOAT).InferShape(), ShapeIs("<unknown>"));
  EXPECT_THAT(OpTester("Placeholder")
                  .Attr("dtype", DT_FLOAT)
                  .Attr("shape", PartialTensorShape({2, -1}))
                  .InferShape(),
              ShapeIs("[2,?]"));
}

TEST(PlaceholderWithDefault, ReturnsItsInputUnlessFed) {
  const Tensor input = AsTensor<int32_t>({1, 2, 3});
  for (const PartialTensorShape& shape :
       {PartialTensorShape(), PartialTensorShape({-1}), PartialTensorShape({3})}) {
    OpTester tester = OpTester("PlaceholderWithDefault").Input(input).Attr("shape", shape);
    EXPECT_THAT(tester.ShapeIsData().RunOne(), TensorEq(input));
    EXPECT_THAT(tester.InferShape(), ShapeIs(shape.DebugString()));
  }
}

TEST(PlaceholderWithDefault, RejectsADefaultOfAnotherShape) {
  OpTester tester = OpTester("PlaceholderWithDefault")
                        .Input(AsTensor<float>({1, 2, 3}))
                        .Attr("shape", PartialTensorShape({2}));
  const auto error = StatusIs(kInvalidArgument, "input has shape [3], expected [2]");
  EXPECT_THAT(tester.Run(), error);
  EXPECT_THAT(tester.InferShape(), error);
}

TEST(PlaceholderV2, MustBeFed) {
  OpTester tester =
      OpTester("PlaceholderV2").Attr("dtype", DT_FLOAT).Attr("shape", PartialTensorShape({2, -1}));
  EXPECT_THAT(tester.RunOn({}),
              StatusIs(kInvalidArgument, "a value must be fed, of type float and shape [2,?]"));
  EXPECT_THAT(tester.InferShape(), ShapeIs("[2,?]"));
}

TEST(EnsureShape, ReturnsItsInput) {
  const Tensor x = Iota<float>({2, 3});
  for (const PartialTensorShape& shape :
       {PartialTensorShape(), PartialTensorShape({-1, 3}), PartialTensorShape({2, 3})}) {
    EXPECT_THAT(OpTester("EnsureShape").Input(x).Attr("shape", shape).RunOne(), TensorEq(x));
  }
  OpTester bad = OpTester("EnsureShape").Input(x).Attr("shape", PartialTensorShape({-1, 2}));
  EXPECT_THAT(bad.Run(), StatusIs(kInvalidArgument, "input has shape [2,3], expected [?,2]"));
  EXPECT_THAT(bad.InferShape(), StatusIs(kInvalidArgument));
  EXPECT_THAT(OpTester("EnsureShape")
                  .UnknownInput(DT_FLOAT, {2, -1})
                  .Attr("shape", PartialTensorShape({-1, 3}))
                  .InferShape(),
              ShapeIs("[2,3]"));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
