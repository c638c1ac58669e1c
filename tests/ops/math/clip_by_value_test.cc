#include <algorithm>
#include <string>

#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

OpTester Clip(const Tensor& t, const Tensor& min, const Tensor& max) {
  return OpTester("ClipByValue").Input(t).Input(min).Input(max);
}

TEST(ClipByValue, ClipsNumbersOfEveryType) {
  ForEachType(RealTypes(), [](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr DataType dtype = DataTypeToEnum<T>::value;
    SCOPED_TRACE(DataTypeString(dtype));
    const Tensor t = RandomTensor(dtype, {3, 701}, 0, 100);
    const Tensor expected =
        UnaryReference(t, [](double v) { return std::min(std::max(v, 20.0), 70.0); });
    EXPECT_THAT(Clip(t, FromDoubles(dtype, {}, {20}), FromDoubles(dtype, {}, {70})).RunOne(),
                TensorEq(expected));
    // One bound has an element for each number, the other is a scalar.
    const Tensor bounds = RandomTensor(dtype, {3, 701}, 0, 60, 2);
    const Tensor above = BinaryReference(
        t, bounds, dtype, [](double a, double b) { return std::max(std::min(a, 70.0), b); });
    EXPECT_THAT(Clip(t, bounds, FromDoubles(dtype, {}, {70})).RunOne(), TensorEq(above));
    const Tensor below = BinaryReference(
        t, bounds, dtype, [](double a, double b) { return std::max(std::min(a, b), 20.0); });
    EXPECT_THAT(Clip(t, FromDoubles(dtype, {}, {20}), bounds).RunOne(), TensorEq(below));
  });
}

TEST(ClipByValue, HandlesSpecialValues) {
  const Tensor t = AsTensor<float>({1, kNan, 3, kInf, -kInf});
  EXPECT_THAT(Clip(t, AsScalar<float>(5), AsScalar<float>(2)).RunOne(),
              TensorEq(AsTensor<float>({5, kNan, 5, 5, 5})));
  EXPECT_THAT(Clip(t, AsScalar<float>(kNan), AsScalar<float>(2)).RunOne(),
              TensorEq(AsTensor<float>({1, kNan, 2, 2, -kInf})));
  EXPECT_THAT(Clip(AsTensor<complex64>({{3, 4}, {1, 1}, {9, 0}}), AsTensor<complex64>({{2, 0}}, {}),
                   AsTensor<complex64>({{5, 0}}, {}))
                  .RunOne(),
              TensorEq(AsTensor<complex64>({{3, 0}, {2, 0}, {5, 0}})));
  EXPECT_THAT(Clip(Tensor(DT_HALF, {0, 2}), AsScalar<half>(0), AsScalar<half>(1)).RunOne(),
              TensorEq(Tensor(DT_HALF, {0, 2})));
}

TEST(ClipByValue, RejectsBoundsOfOtherShapes) {
  const Tensor t = Iota<float>({2, 3});
  const Tensor scalar = AsScalar<float>(1);
  const auto expect_rejected = [](OpTester op, const char* message) {
    EXPECT_THAT(op.Run(), StatusIs(kInvalidArgument, message));
    EXPECT_THAT(op.InferShape(), StatusIs(kInvalidArgument, message));
  };
  expect_rejected(Clip(t, Iota<float>({3}), scalar),
                  "clip_value_min has shape [3], expected a scalar or the shape of t, [2,3]");
  expect_rejected(Clip(t, scalar, Iota<float>({1, 1})),
                  "clip_value_max has shape [1,1], expected a scalar or the shape of t, [2,3]");
  expect_rejected(Clip(scalar, scalar, Iota<float>({2})),
                  "clip_value_max has shape [2], expected a scalar or the shape of t, []");
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
