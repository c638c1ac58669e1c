#include <string>
#include <vector>

#include "gradflow/testing/kernel_test.h"
#include "tests/ops/common/error_case.h"
#include "tests/ops/list/lists.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::ElementsAre;

const std::string kLong(100, 'x');

// Returns a copy of row i.
Tensor Row(const Tensor& rows, int64_t i) { return *rows.SubSlice(i).DeepCopy(); }

TEST(TensorListFromTensor, HasTheRows) {
  for (const DataType dtype : TensorTypes()) {
    SCOPED_TRACE(DataTypeString(dtype));
    const Tensor rows = DistinctTensor(dtype, {3, 2});
    const Tensor list = ListOf(dtype, {2}, {Row(rows, 0), Row(rows, 1), Row(rows, 2)});
    EXPECT_THAT(OpTester("TensorListFromTensor").Input(rows).Input(AsTensor<int32_t>({2})).RunOne(),
                TensorEq(list));
    EXPECT_THAT(OpTester("TensorListStack")
                    .Input(list)
                    .Input(AsTensor<int32_t>({2}))
                    .Attr("element_dtype", dtype)
                    .ShapeIsData()
                    .RunOne(),
                TensorEq(rows));
  }
  // Aligned rows share the memory of the tensor.
  const Tensor wide = RandomTensor(DT_FLOAT, {2, 16});
  const auto shared = OpTester("TensorListFromTensor").Input(wide).Input(kNoShape).RunOne();
  GRADFLOW_ASSERT_OK(shared.status());
  EXPECT_EQ(ListIn(*shared).elements()[1].raw_data(), wide.SubSlice(1).raw_data());
}

TEST(TensorListFromTensor, ChecksTheShape) {
  ExpectErrors({
      {"scalar", OpTester("TensorListFromTensor").Input(Tensor(1.f)).Input(kNoShape),
       "Shape must be at least rank 1 but is rank 0: tensor"},
      {"shape", OpTester("TensorListFromTensor").Input<float>({1, 2}, {2, 1}).Input<int32_t>({2}),
       "a row of tensor, which has shape [2,1], is not compatible with element_shape [2]"},
  });
}

OpTester Stack(const Tensor& list, const Tensor& shape = kNoShape, int64_t n = -1) {
  return OpTester("TensorListStack")
      .Input(list)
      .Input(shape)
      .Attr("element_dtype", DT_FLOAT)
      .Attr("num_elements", n)
      .ShapeIsData();
}

TEST(TensorListStack, ReadsUnsetElementsAsZeros) {
  const Tensor a = AsTensor<float>({1, 2});
  EXPECT_THAT(Stack(ListOf(DT_FLOAT, {}, {Unset(), a})).RunOne(),
              TensorEq(AsTensor<float>({0, 0, 1, 2}, {2, 2})));
  EXPECT_THAT(Stack(ListOf(DT_FLOAT, {2}, {Unset()})).RunOne(),
              TensorEq(AsTensor<float>({0, 0}, {1, 2})));
  EXPECT_THAT(Stack(ListOf(DT_FLOAT, {}, {}), AsTensor<int32_t>({2}), 0).RunOne(),
              TensorEq(Tensor(DT_FLOAT, {0, 2})));
  EXPECT_THAT(OpTester("TensorListStack")
                  .Input(ListOf(DT_STRING, {}, {Tensor("a"), Unset(), Tensor(kLong)}))
                  .Input(kNoShape)
                  .Attr("element_dtype", DT_STRING)
                  .ShapeIsData()
                  .RunOne(),
              TensorEq(AsTensor<tstring>({"a", "", kLong})));
}

TEST(TensorListStack, InfersTheShape) {
  EXPECT_THAT(Stack(ListOf(DT_FLOAT, {}, {}), AsTensor<int32_t>({-1, 3}), 4).InferShape(),
              IsOkAndHolds(PartialTensorShape({4, -1, 3})));
  EXPECT_THAT(Stack(ListOf(DT_FLOAT, {}, {}), AsTensor<int32_t>({3})).InferShape(),
              IsOkAndHolds(PartialTensorShape({-1, 3})));
  EXPECT_THAT(Stack(ListOf(DT_FLOAT, {}, {})).InferShape(), IsOkAndHolds(PartialTensorShape()));
}

TEST(TensorListStack, ChecksTheElements) {
  const Tensor a = AsTensor<float>({1, 2});
  const struct {
    OpTester tester;
    const char* error;
  } cases[] = {
      {Stack(ListOf(DT_FLOAT, {}, {a, Tensor(1.f)})),
       "element 1 of the list has shape [], expected [2]"},
      {Stack(ListOf(DT_FLOAT, {}, {a}), kNoShape, 2),
       "the list must have num_elements = 2 elements, but has 1"},
      {Stack(ListOf(DT_FLOAT, {2}, {a}), AsTensor<int32_t>({3})),
       "the list has elements of shape [2], which is not compatible with element_shape [3]"},
      {Stack(ListOf(DT_FLOAT, {-1}, {})),
       "the shape of elements is not fully known: [?], and there are none"},
      {Stack(ListOf(DT_FLOAT, {}, {Unset()})),
       "the shape of elements is not fully known: <unknown>, and none of them is set"},
      {Stack(ListOf(DT_INT32, {}, {})),
       "element_dtype is float, but the list has elements of type int32"},
  };
  for (const auto& c : cases) {
    OpTester tester = c.tester;
    EXPECT_THAT(tester.Run(), StatusIs(kInvalidArgument, c.error));
  }
}

OpTester Gather(const Tensor& list, const Tensor& indices, const Tensor& shape = kNoShape) {
  return OpTester("TensorListGather")
      .Input(list)
      .Input(indices)
      .Input(shape)
      .Attr("element_dtype", DT_FLOAT)
      .ShapeIsData();
}

TEST(TensorListGather, StacksSomeElements) {
  const Tensor a = AsTensor<float>({1, 2});
  const Tensor b = AsTensor<float>({3});
  const Tensor list = ListOf(DT_FLOAT, {}, {a, b, Unset()});
  EXPECT_THAT(Gather(list, AsTensor<int32_t>({2, 0, 0})).RunOne(),
              TensorEq(AsTensor<float>({0, 0, 1, 2, 1, 2}, {3, 2})));
  EXPECT_THAT(Gather(list, AsTensor<int32_t>({1})).RunOne(),
              TensorEq(AsTensor<float>({3}, {1, 1})));
  EXPECT_THAT(Gather(list, Tensor(DT_INT32, {0}), AsTensor<int32_t>({4})).RunOne(),
              TensorEq(Tensor(DT_FLOAT, {0, 4})));
  EXPECT_THAT(Gather(list, AsTensor<int32_t>({0, 1})).Run(),
              StatusIs(kInvalidArgument, "element 1 of the list has shape [1], expected [2]"));
  EXPECT_THAT(Gather(list, AsTensor<int32_t>({0, 3})).Run(),
              StatusIs(kInvalidArgument, "indices[1] is 3, but the list has 3 elements"));
  EXPECT_THAT(Gather(list, AsTensor<int32_t>({-1})).Run(),
              StatusIs(kInvalidArgument, "indices[0] is -1, but the list has 3 elements"));
}

TEST(TensorListScatter, PutsRowsAtIndices) {
  const Tensor rows = AsTensor<float>({1, 2, 3, 4, 5, 6}, {3, 2});
  const auto scatter = [&](const Tensor& indices) {
    return OpTester("TensorListScatter").Input(rows).Input(indices).Input(kNoShape).RunOne();
  };
  EXPECT_THAT(scatter(AsTensor<int32_t>({3, 0, 1})),
              TensorEq(ListOf(DT_FLOAT, {}, {Row(rows, 1), Row(rows, 2), Unset(), Row(rows, 0)})));
  // The last of several counts.
  EXPECT_THAT(scatter(AsTensor<int32_t>({1, 1, 0})),
              TensorEq(ListOf(DT_FLOAT, {}, {Row(rows, 2), Row(rows, 1)})));
  EXPECT_THAT(scatter(AsTensor<int32_t>({0, -1, 1})),
              StatusIs(kInvalidArgument, "indices must not be negative, but indices[1] is -1"));
  EXPECT_THAT(scatter(AsTensor<int32_t>({0, 1})),
              StatusIs(kInvalidArgument, "there are 2 indices, but tensor has 3 rows"));
}

TEST(TensorListScatterV2, HasANumberOfElements) {
  const Tensor rows = AsTensor<float>({1, 2});
  const auto scatter = [&](int32_t n) {
    return OpTester("TensorListScatterV2")
        .Input(rows)
        .Input<int32_t>({2, 0})
        .Input(AsTensor<int32_t>({}))
        .Input(AsScalar<int32_t>(n))
        .RunOne();
  };
  const Tensor list = ListOf(DT_FLOAT, TensorShape(), {Tensor(2.f), Unset(), Tensor(1.f)});
  EXPECT_THAT(scatter(-1), TensorEq(list));
  EXPECT_THAT(scatter(3), TensorEq(list));
  EXPECT_THAT(scatter(4), TensorEq(ListOf(DT_FLOAT, TensorShape(),
                                          {Tensor(2.f), Unset(), Tensor(1.f), Unset()})));
  EXPECT_THAT(scatter(2), StatusIs(kInvalidArgument,
                                   "indices[0] is 2, but the list has num_elements = 2 elements"));
  EXPECT_THAT(scatter(-2),
              StatusIs(kInvalidArgument, "num_elements must be at least -1, but is -2"));
}

TEST(TensorListScatterIntoExistingList, ReplacesAndAddsElements) {
  const Tensor list = ListOf(DT_FLOAT, TensorShape(), {Tensor(1.f), Tensor(2.f)});
  const auto scatter = [&](const Tensor& rows, const Tensor& indices) {
    return OpTester("TensorListScatterIntoExistingList")
        .Input(list)
        .Input(rows)
        .Input(indices)
        .RunOne();
  };
  EXPECT_THAT(
      scatter(AsTensor<float>({3, 4}), AsTensor<int32_t>({1, 3})),
      TensorEq(ListOf(DT_FLOAT, TensorShape(), {Tensor(1.f), Tensor(3.f), Unset(), Tensor(4.f)})));
  EXPECT_THAT(scatter(AsTensor<float>({3, 4}, {2, 1}), AsTensor<int32_t>({1, 3})),
              StatusIs(kInvalidArgument,
                       "a row of tensor, which has shape [2,1], is not compatible with "
                       "element_shape []"));
}

TEST(TensorListSplit, SplitsRows) {
  const Tensor rows = AsTensor<float>({1, 2, 3, 4, 5, 6}, {3, 2});
  const auto split = [&](const Tensor& shape, const Tensor& lengths) {
    return OpTester("TensorListSplit").Input(rows).Input(shape).Input(lengths);
  };
  EXPECT_THAT(split(AsTensor<int32_t>({-1, 2}), AsTensor<int64_t>({1, 0, 2})).RunOne(),
              TensorEq(ListOf(DT_FLOAT, {-1, 2},
                              {AsTensor<float>({1, 2}, {1, 2}), Tensor(DT_FLOAT, {0, 2}),
                               AsTensor<float>({3, 4, 5, 6}, {2, 2})})));
  const struct {
    OpTester tester;
    const char* error;
  } cases[] = {
      {split(kNoShape, AsTensor<int64_t>({1, 3})),
       "lengths[1] is 3, expected 0 to 2, the number of rows that are left"},
      {split(kNoShape, AsTensor<int64_t>({-1, 4})),
       "lengths[0] is -1, expected 0 to 3, the number of rows that are left"},
      {split(kNoShape, AsTensor<int64_t>({1, 1})),
       "lengths must add up to 3, the number of rows of tensor, but add up to 2"},
  };
  for (const auto& c : cases) {
    OpTester tester = c.tester;
    EXPECT_THAT(tester.Run(), StatusIs(kInvalidArgument, c.error));
  }
  ExpectErrors({
      {"shape", split(AsTensor<int32_t>({-1, 3}), AsTensor<int64_t>({3})),
       "tensor, which has shape [3,2], cannot be split into elements of shape [?,3]"},
      {"scalars", split(AsTensor<int32_t>({}), AsTensor<int64_t>({3})),
       "element_shape must have rank at least 1, but is a scalar"},
  });
}

absl::StatusOr<std::vector<Tensor>> Concat(const Tensor& list, const Tensor& shape = kNoShape,
                                           const Tensor& leading = Tensor(DT_INT64, {0})) {
  return OpTester("TensorListConcatV2")
      .Input(list)
      .Input(shape)
      .Input(leading)
      .Attr("element_dtype", DT_FLOAT)
      .ShapeIsData()
      .Run();
}

TEST(TensorListConcat, JoinsRows) {
  const Tensor a = AsTensor<float>({1, 2}, {1, 2});
  const Tensor b = AsTensor<float>({3, 4, 5, 6}, {2, 2});
  const Tensor joined = AsTensor<float>({1, 2, 3, 4, 5, 6}, {3, 2});
  const auto expected = ElementsAre(TensorEq(joined), TensorEq(AsTensor<int64_t>({1, 2})));
  const Tensor list = ListOf(DT_FLOAT, {}, {a, b});
  EXPECT_THAT(*Concat(list), expected);
  EXPECT_THAT(*OpTester("TensorListConcat")
                   .Input(list)
                   .Attr("element_dtype", DT_FLOAT)
                   .Attr("element_shape", PartialTensorShape({-1, 2}))
                   .ShapeIsData()
                   .Run(),
              expected);
  EXPECT_THAT(*Concat(ListOf(DT_FLOAT, {5, 2}, {})),
              ElementsAre(TensorEq(Tensor(DT_FLOAT, {0, 2})), TensorEq(Tensor(DT_INT64, {0}))));
}

TEST(TensorListConcat, ReadsUnsetElementsAsZeros) {
  const Tensor a = AsTensor<float>({1, 2}, {2, 1});
  const auto lengths = [](const absl::StatusOr<std::vector<Tensor>>& outputs) {
    return outputs.ok() ? outputs->back() : Tensor();
  };
  const auto zeros = Concat(ListOf(DT_FLOAT, {2, 1}, {Unset(), Unset()}));
  EXPECT_THAT(*zeros, ElementsAre(TensorEq(AsTensor<float>({0, 0, 0, 0}, {4, 1})),
                                  TensorEq(AsTensor<int64_t>({2, 2}))));
  const Tensor list = ListOf(DT_FLOAT, {}, {Unset(), a, Unset()});
  EXPECT_THAT(lengths(Concat(list)), TensorEq(AsTensor<int64_t>({2, 2, 2})));
  EXPECT_THAT(*Concat(list, AsTensor<int32_t>({-1, 1}), AsTensor<int64_t>({1, 9, 3})),
              ElementsAre(TensorEq(AsTensor<float>({0, 1, 2, 0, 0, 0}, {6, 1})),
                          TensorEq(AsTensor<int64_t>({1, 2, 3}))));
}

TEST(TensorListConcat, ChecksTheElements) {
  const Tensor a = AsTensor<float>({1, 2}, {1, 2});
  const struct {
    absl::StatusOr<std::vector<Tensor>> outputs;
    const char* error;
  } cases[] = {
      {Concat(ListOf(DT_FLOAT, {}, {a, Tensor(DT_FLOAT, {1, 3})})),
       "element 1 of the list has shape [1,3], expected [?,2]"},
      {Concat(ListOf(DT_FLOAT, {}, {a}), AsTensor<int32_t>({2, 2})),
       "element 0 of the list has shape [1,2], expected [2,2]"},
      {Concat(ListOf(DT_FLOAT, {}, {Tensor(1.f)})),
       "element 0 of the list must have rank at least 1 to be concatenated, but is a scalar"},
      {Concat(ListOf(DT_FLOAT, TensorShape(), {})),
       "elements must have rank at least 1 to be concatenated, but are scalars"},
      {Concat(ListOf(DT_FLOAT, {2, -1}, {})),
       "the shape of the rows of elements is not fully known: [?], and there are none"},
      {Concat(ListOf(DT_FLOAT, {}, {Unset()})),
       "the shape of the rows of elements is not fully known: <unknown>, and none of them is set"},
      {Concat(ListOf(DT_FLOAT, {-1, 3}, {Unset()})),
       "the number of rows of element 0, which is not set, is not known: leading_dims has 0 "
       "elements"},
      {Concat(ListOf(DT_FLOAT, {-1, 3}, {Unset()}), kNoShape, AsTensor<int64_t>({-5})),
       "the number of rows of element 0, which is not set, is not known: leading_dims has 1 "
       "elements"},
      {Concat(ListOf(DT_FLOAT, {-1, 3}, {Unset(), Unset()}), kNoShape,
              AsTensor<int64_t>({1LL << 62, 1LL << 62})),
       "the elements have more than 2^63 - 1 rows"},
  };
  for (const auto& c : cases) EXPECT_THAT(c.outputs, StatusIs(kInvalidArgument, c.error));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
