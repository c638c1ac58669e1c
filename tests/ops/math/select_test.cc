#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

OpTester Select(const Tensor& condition, const Tensor& t, const Tensor& e) {
  return OpTester("SelectV2").Input(condition).Input(t).Input(e);
}

TEST(SelectV2, TakesElementsInEveryType) {
  const Tensor condition = AsTensor<bool>({true, false, false, true, true, false}, {2, 3});
  const auto c = condition.flat<bool>();
  for (const DataType dtype : TensorTypes()) {
    SCOPED_TRACE(DataTypeString(dtype));
    const Tensor both = DistinctTensor(dtype, {2, 2, 3});
    const Tensor t = both.SubSlice(0);
    const Tensor e = both.SubSlice(1);
    EXPECT_THAT(Select(condition, t, e).RunOne(),
                TensorEq(Rearranged(both, {2, 3}, [&](const std::vector<int64_t>& index) {
                  const int64_t i = index[0] * 3 + index[1];
                  return c(i) ? i : 6 + i;
                })));
  }
}

TEST(SelectV2, BroadcastsAllThree) {
  const Tensor condition = AsTensor<bool>({true, false}, {2, 1});
  const Tensor row = AsTensor<float>({1, 2, 3});
  EXPECT_THAT(Select(condition, row, AsScalar<float>(0)).RunOne(),
              TensorEq(AsTensor<float>({1, 2, 3, 0, 0, 0}, {2, 3})));
  EXPECT_THAT(Select(condition, AsScalar<float>(9), Iota<float>({2, 2, 3})).RunOne(),
              TensorEq(AsTensor<float>({9, 9, 9, 3, 4, 5, 9, 9, 9, 9, 10, 11}, {2, 2, 3})));
  EXPECT_THAT(Select(AsScalar<bool>(false), row, AsTensor<float>({7}, {1, 1})).RunOne(),
              TensorEq(AsTensor<float>({7, 7, 7}, {1, 3})));
  EXPECT_THAT(Select(AsScalar<bool>(true), AsScalar<float>(1), AsScalar<float>(2)).RunOne(),
              TensorEq(AsScalar<float>(1)));
}

TEST(SelectV2, TakesLargeAndEmptyTensors) {
  Tensor condition(DT_BOOL, {100000});
  for (int i = 0; i < 100000; ++i) condition.flat<bool>()(i) = i % 3 == 0;
  GRADFLOW_ASSERT_OK_AND_ASSIGN(
      const Tensor output,
      Select(condition, Iota<int32_t>({100000}), AsScalar<int32_t>(-1)).RunOne());
  for (int i = 0; i < 100000; ++i) {
    ASSERT_EQ(output.flat<int32_t>()(i), i % 3 == 0 ? i : -1);
  }
  EXPECT_THAT(Select(AsScalar<bool>(true), Tensor(DT_FLOAT, {0, 3}), AsScalar<float>(1)).RunOne(),
              TensorEq(Tensor(DT_FLOAT, {0, 3})));
}

// Elements of each size, in whole vectors and remainders.
TEST(SelectV2, TakesVectorsOnEveryProcessor) {
  for (const DataType dtype : {DT_INT8, DT_HALF, DT_FLOAT, DT_DOUBLE, DT_COMPLEX128}) {
    for (const int64_t n : {1, 7, 64, 131}) {
      SCOPED_TRACE(absl::StrCat(DataTypeString(dtype), " ", n));
      const Tensor both = DistinctTensor(dtype, {2, n});
      const Tensor t = both.SubSlice(0);
      const Tensor e = both.SubSlice(1);
      Tensor condition(DT_BOOL, {n});
      const auto c = condition.flat<bool>();
      for (int64_t i = 0; i < n; ++i) c(i) = i * 2654435761u % 7 < 3;
      const auto expected = [&](int64_t t_stride, int64_t e_stride) {
        return TensorEq(Rearranged(both, {n}, [&](const std::vector<int64_t>& index) {
          return c(index[0]) ? t_stride * index[0] : n + e_stride * index[0];
        }));
      };
      const auto first = [](const Tensor& x) { return *x.Slice(0, 1).Reshaped(TensorShape()); };
      EXPECT_THAT(Select(condition, t, e).RunEverywhere(),
                  IsOkAndHolds(ElementsAre(expected(1, 1))));
      EXPECT_THAT(Select(condition, first(t), e).RunEverywhere(),
                  IsOkAndHolds(ElementsAre(expected(0, 1))));
      EXPECT_THAT(Select(condition, t, first(e)).RunEverywhere(),
                  IsOkAndHolds(ElementsAre(expected(1, 0))));
    }
  }
}

TEST(SelectV2, ReusesAnInputThatNoOtherNodeNeeds) {
  const Tensor condition = AsTensor<bool>({true, false, true});
  for (const bool t_is_shared : {false, true}) {
    for (const bool e_is_shared : {false, true}) {
      Tensor t = AsTensor<float>({1, 2, 3});
      Tensor e = AsTensor<float>({4, 5, 6});
      const void* const t_data = t.raw_data();
      const void* const e_data = e.raw_data();
      const Tensor t_share = t_is_shared ? t : Tensor();
      const Tensor e_share = e_is_shared ? e : Tensor();
      std::vector<Tensor> inputs = {condition};
      inputs.push_back(std::move(t));
      inputs.push_back(std::move(e));
      GRADFLOW_ASSERT_OK_AND_ASSIGN(
          const std::vector<Tensor> outputs,
          OpTester("SelectV2").Attr("T", DT_FLOAT).RunOn(std::move(inputs)));
      EXPECT_THAT(outputs[0], TensorEq(AsTensor<float>({1, 5, 3})));
      EXPECT_EQ(outputs[0].raw_data() == t_data, !t_is_shared);
      EXPECT_EQ(outputs[0].raw_data() == e_data, t_is_shared && !e_is_shared);
    }
  }
}

TEST(SelectV2, TakesEveryByteButZeroAsTrue) {
  Tensor condition(DT_BOOL, {3});
  const unsigned char bytes[] = {0, 2, 255};
  std::memcpy(condition.raw_data(), bytes, 3);
  EXPECT_THAT(Select(condition, AsScalar<float>(1), AsScalar<float>(0)).RunOne(),
              TensorEq(AsTensor<float>({0, 1, 1})));
}

OpTester SelectV1(const Tensor& condition, const Tensor& t, const Tensor& e) {
  return OpTester("Select").Input(condition).Input(t).Input(e);
}

TEST(Select, SelectsByElementByRowAndAll) {
  for (const DataType dtype : TensorTypes()) {
    SCOPED_TRACE(DataTypeString(dtype));
    const Tensor both = DistinctTensor(dtype, {4, 3, 2});
    const Tensor t = both.Slice(0, 2);
    const Tensor e = both.Slice(2, 4);
    const auto expected = [&](const std::function<bool(int64_t)>& condition) {
      return Rearranged(both, t.shape(), [&](const std::vector<int64_t>& index) {
        const int64_t i = (index[0] * 3 + index[1]) * 2 + index[2];
        return condition(i) ? i : i + 12;
      });
    };
    EXPECT_THAT(SelectV1(AsScalar<bool>(true), t, e).RunOne(), TensorEq(t));
    EXPECT_THAT(SelectV1(AsScalar<bool>(false), t, e).RunOne(), TensorEq(e));
    EXPECT_THAT(SelectV1(AsTensor<bool>({false, true}), t, e).RunOne(),
                TensorEq(expected([](int64_t i) { return i >= 6; })));
    Tensor each(DT_BOOL, t.shape());
    for (int64_t i = 0; i < 12; ++i) each.flat<bool>()(i) = i % 3 == 1;
    EXPECT_THAT(SelectV1(each, t, e).RunOne(),
                TensorEq(expected([](int64_t i) { return i % 3 == 1; })));
  }
  EXPECT_THAT(
      SelectV1(Tensor(DT_BOOL, {0}), Tensor(DT_FLOAT, {0, 2}), Tensor(DT_FLOAT, {0, 2})).RunOne(),
      TensorEq(Tensor(DT_FLOAT, {0, 2})));
}

TEST(Select, RejectsBadArguments) {
  const auto expect_rejected = [](OpTester op, const char* message) {
    EXPECT_THAT(op.Run(), StatusIs(kInvalidArgument, message));
    EXPECT_THAT(op.InferShape(), StatusIs(kInvalidArgument, message));
  };
  const Tensor t = Iota<float>({2, 3});
  expect_rejected(SelectV1(AsScalar<bool>(true), t, Iota<float>({3})),
                  "t and e must have the same shape, but have [2,3] and [3]");
  expect_rejected(SelectV1(AsTensor<bool>({true, true, true}), t, t),
                  "condition has shape [3], expected a scalar, the shape of t, [2,3], or the shape "
                  "of its first dimension");
  expect_rejected(
      SelectV1(AsTensor<bool>({true, true}, {2, 1}), t, t),
      "condition has shape [2,1], expected a scalar, the shape of t, [2,3], or the shape "
      "of its first dimension");
  expect_rejected(
      SelectV1(AsTensor<bool>({true}), AsScalar<float>(1), AsScalar<float>(1)),
      "condition has shape [1], expected a scalar, the shape of t, [], or the shape of its "
      "first dimension");
}

TEST(SelectV2, RejectsBadArguments) {
  OpTester values = Select(AsScalar<bool>(true), Iota<float>({2}), Iota<float>({3}));
  EXPECT_THAT(values.Run(),
              StatusIs(kInvalidArgument, "shapes [2] and [3] cannot be broadcast together"));
  EXPECT_THAT(values.InferShape(), StatusIs(kInvalidArgument));
  OpTester condition =
      Select(AsTensor<bool>({true, false}), Iota<float>({2, 3}), AsScalar<float>(0));
  EXPECT_THAT(condition.Run(),
              StatusIs(kInvalidArgument, "shapes [2] and [2,3] cannot be broadcast together"));
  EXPECT_THAT(condition.InferShape(), StatusIs(kInvalidArgument));
  EXPECT_THAT(Select(AsScalar<bool>(true), AsScalar<float>(1), AsScalar<int32_t>(1)).Run(),
              StatusIs(kInvalidArgument, HasSubstr("types")));
}

TEST(Select, TakesRowsWithoutElements) {
  const Tensor x(DT_FLOAT, {0, int64_t{1} << 32, int64_t{1} << 31});
  EXPECT_THAT(OpTester("Select").Input(Tensor(DT_BOOL, {0})).Input(x).Input(x).RunOne(),
              TensorEq(x));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
