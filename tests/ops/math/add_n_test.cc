#include <limits>
#include <utility>
#include <vector>

#include "gradflow/testing/kernel_test.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

TEST(AddN, AddsInTheOrderOfTheInputs) {
  for (const TensorShape& shape : {TensorShape({}), {3, 5}, {100003}, {0, 2}}) {
    SCOPED_TRACE(shape.DebugString());
    std::vector<Tensor> inputs;
    Tensor expected(DT_FLOAT, shape);
    expected.flat<float>().setZero();
    for (uint32_t i = 0; i < 5; ++i) {
      inputs.push_back(RandomTensor(DT_FLOAT, shape, -10, 10, i));
      for (int64_t j = 0; j < shape.num_elements(); ++j) {
        float& sum = expected.flat<float>()(j);
        const float x = inputs.back().flat<float>()(j);
        sum = i == 0 ? x : sum + x;
      }
    }
    EXPECT_THAT(OpTester("AddN").Inputs(inputs).RunOne(), TensorEq(expected));
  }
}

TEST(AddN, RunsForEveryNumericType) {
  ForEachType(RealTypes(), [](auto tag) {
    using T = typename decltype(tag)::type;
    SCOPED_TRACE(DataTypeString(DataTypeToEnum<T>::value));
    EXPECT_THAT(OpTester("AddN")
                    .Input(AsTensor<T>({1, 2}))
                    .Input(AsTensor<T>({10, 20}))
                    .Input(AsTensor<T>({3, 4}))
                    .RunOne(),
                TensorEq(AsTensor<T>({14, 26})));
  });
  EXPECT_THAT(OpTester("AddN")
                  .Input(AsTensor<complex64>({{1, 2}}))
                  .Input(AsTensor<complex64>({{10, -20}}))
                  .RunOne(),
              TensorEq(AsTensor<complex64>({{11, -18}})));
}

TEST(AddN, ReturnsASingleInput) {
  const Tensor x = RandomTensor(DT_FLOAT, {4});
  EXPECT_THAT(OpTester("AddN").Input(x).RunOne(), TensorEq(x));
}

TEST(AddN, AddsATensorToItself) {
  const Tensor x = AsTensor<float>({1, 2, 3});
  EXPECT_THAT(OpTester("AddN").Input(x).Input(x).RunOne(), TensorEq(AsTensor<float>({2, 4, 6})));
}

// 2048 + 1 is not a half. Rounding after each addition would lose both ones.
TEST(AddN, RoundsHalvesOnce) {
  EXPECT_THAT(OpTester("AddN")
                  .Input(AsTensor<half>({2048}))
                  .Input(AsTensor<half>({1}))
                  .Input(AsTensor<half>({1}))
                  .RunOne(),
              TensorEq(AsTensor<half>({2050})));
}

TEST(AddN, IntegersWrapAround) {
  const int32_t max = std::numeric_limits<int32_t>::max();
  EXPECT_THAT(OpTester("AddN")
                  .Input(AsTensor<int32_t>({max}))
                  .Input(AsTensor<int32_t>({max}))
                  .Input(AsTensor<int32_t>({3}))
                  .RunOne(),
              TensorEq(AsTensor<int32_t>({1})));
}

TEST(AddN, RefusesDifferentShapes) {
  auto tester = OpTester("AddN");
  tester.Input(AsTensor<float>({1, 2})).Input(AsTensor<float>({3}));
  EXPECT_THAT(tester.Run(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("inputs must have one shape, but input 0 has [2] and input 1 has "
                                 "[1]")));
  EXPECT_THAT(tester.InferShape(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("[1]")));
}

TEST(AddN, RefusesInputsOfAnotherType) {
  EXPECT_THAT(OpTester("AddN")
                  .Attr("T", DT_FLOAT)
                  .Attr("N", 2)
                  .RunOn({AsTensor<float>({1}), AsTensor<int8_t>({1})}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("inputs must be of type float, but input 1 is int8")));
}

TEST(AccumulateNV2, AddsAndChecksTheShape) {
  const auto accumulate = [](const PartialTensorShape& shape) {
    return OpTester("AccumulateNV2")
        .Input(AsTensor<float>({1, 2}))
        .Input(AsTensor<float>({3, 5}))
        .Attr("shape", shape);
  };
  EXPECT_THAT(accumulate({2}).RunOne(), TensorEq(AsTensor<float>({4, 7})));
  EXPECT_THAT(accumulate({-1}).RunOne(), TensorEq(AsTensor<float>({4, 7})));
  for (const PartialTensorShape& shape : {PartialTensorShape({3}), PartialTensorShape({2, 1})}) {
    OpTester tester = accumulate(shape);
    const auto error =
        StatusIs(absl::StatusCode::kInvalidArgument,
                 ::testing::HasSubstr("inputs must have the shape of attribute shape"));
    EXPECT_THAT(tester.Run(), error);
    EXPECT_THAT(tester.InferShape(), error);
  }
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
