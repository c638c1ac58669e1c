#include <string>
#include <utility>
#include <vector>

#include "gradflow/core/registry.h"
#include "gradflow/testing/kernel_test.h"
#include "tests/ops/common/error_case.h"
#include "tests/ops/list/lists.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

OpTester Make(const char* op, DataType dtype, const Tensor& shape, int32_t n) {
  return OpTester(op).Input(shape).Input(AsScalar<int32_t>(n)).Attr("element_dtype", dtype);
}

TEST(EmptyTensorList, HasTypeShapeAndMaximum) {
  EXPECT_THAT(Make("EmptyTensorList", DT_FLOAT, AsTensor<int32_t>({-1, 2}), 3).RunOne(),
              TensorEq(ListOf(DT_FLOAT, {-1, 2}, {}, 3)));
  EXPECT_THAT(Make("EmptyTensorList", DT_STRING, AsScalar<int64_t>(-1), -1).RunOne(),
              TensorEq(ListOf(DT_STRING, {}, {})));
  EXPECT_THAT(Make("EmptyTensorList", DT_VARIANT, Tensor(DT_INT32, {0}), -7).RunOne(),
              TensorEq(ListOf(DT_VARIANT, TensorShape(), {})));
}

TEST(TensorListReserve, HasElementsThatAreNotSet) {
  EXPECT_THAT(Make("TensorListReserve", DT_INT8, AsTensor<int64_t>({2}), 2).RunOne(),
              TensorEq(ListOf(DT_INT8, {2}, {Unset(), Unset()})));
  EXPECT_THAT(Make("TensorListReserve", DT_INT8, kNoShape, -1).Run(),
              StatusIs(kInvalidArgument, "num_elements must not be negative, but is -1"));
}

TEST(EmptyTensorList, ChecksTheShape) {
  const auto op = [](const Tensor& shape) { return Make("EmptyTensorList", DT_FLOAT, shape, 1); };
  ExpectErrors({
      {"rank", op(Tensor(DT_INT32, {1, 1})),
       "Shape must be at most rank 1 but is rank 2: element_shape has shape [1,1]"},
      {"scalar", op(AsScalar<int32_t>(3)),
       "element_shape must be a vector, or the scalar -1 for an unknown shape, but is the scalar "
       "3"},
      {"dimension", op(AsTensor<int32_t>({-2})), "element_shape: "},
      {"product", op(AsTensor<int64_t>({1LL << 40, 1LL << 40})), "element_shape: "},
      {"max",
       OpTester("EmptyTensorList")
           .Input(kNoShape)
           .Input(AsTensor<int32_t>({1}))
           .Attr("element_dtype", DT_FLOAT),
       "Shape must be rank 0 but is rank 1: max_num_elements has shape [1]"},
  });
}

TEST(TensorListPushBack, AddsAnElement) {
  const Tensor a = AsTensor<float>({1, 2});
  const Tensor b = AsTensor<float>({3, 4});
  EXPECT_THAT(OpTester("TensorListPushBack").Input(ListOf(DT_FLOAT, {2}, {a})).Input(b).RunOne(),
              TensorEq(ListOf(DT_FLOAT, {2}, {a, b})));
  // Lists hold lists.
  const Tensor list = ListOf(DT_FLOAT, {2}, {a});
  EXPECT_THAT(OpTester("TensorListPushBack")
                  .Input(ListOf(DT_VARIANT, TensorShape(), {}))
                  .Input(list)
                  .RunOne(),
              TensorEq(ListOf(DT_VARIANT, TensorShape(), {list})));
}

TEST(TensorListPushBack, ChecksTheElement) {
  const struct {
    Tensor list;
    Tensor element;
    const char* error;
  } cases[] = {
      {ListOf(DT_FLOAT, {}, {}), Tensor(DT_INT32, {}),
       "element_dtype is int32, but the list has elements of type float"},
      {ListOf(DT_FLOAT, {2}, {}), Tensor(DT_FLOAT, {3}),
       "the list has elements of shape [2], but the tensor has shape [3]"},
      {ListOf(DT_FLOAT, {}, {Tensor(1.f)}, 1), Tensor(2.f),
       "the list is full: it has 1 elements, at most 1"},
      {Tensor(DT_VARIANT, {}), Tensor(2.f),
       "input_handle must hold a list of tensors, but holds no value"},
      {Tensor(Variant(7)), Tensor(2.f),
       "input_handle must hold a list of tensors, but holds a value of type 'int'"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(OpTester("TensorListPushBack").Input(c.list).Input(c.element).Run(),
                StatusIs(kInvalidArgument, c.error));
  }
  ExpectErrors(
      {{"rank", OpTester("TensorListPushBack").Input(Tensor(DT_VARIANT, {2})).Input<float>({1}),
        "Shape must be rank 0 but is rank 1: input_handle has shape [2]"}});
}

// Runs a kernel whose first input is a list that nothing else reads.
TensorList RunInPlace(OpTester tester, Tensor list, std::vector<Tensor> others) {
  std::vector<Tensor> inputs;
  inputs.push_back(std::move(list));
  for (Tensor& other : others) inputs.push_back(std::move(other));
  absl::StatusOr<std::vector<Tensor>> outputs = tester.RunOn(std::move(inputs));
  GRADFLOW_EXPECT_OK(outputs.status());
  return outputs.ok() ? ListIn((*outputs)[0]) : TensorList();
}

TEST(TensorLists, ChangeInPlaceIfNothingElseReadsThem) {
  const auto make = [] {
    Tensor list = ListOf(DT_FLOAT, TensorShape(), {Tensor(1.f), Tensor(2.f)});
    // Room for one more.
    GRADFLOW_EXPECT_OK(list.span<Variant>()[0].get<TensorList>()->Reserve(3));
    return list;
  };
  const OpTester push = OpTester("TensorListPushBack").Attr("element_dtype", DT_FLOAT);
  const OpTester set = OpTester("TensorListSetItem").Attr("element_dtype", DT_FLOAT);
  const OpTester pop = OpTester("TensorListPopBack").Attr("element_dtype", DT_FLOAT);
  const OpTester resize = OpTester("TensorListResize");
  const struct {
    OpTester tester;
    std::vector<Tensor> others;
    int64_t size;
  } cases[] = {
      {push, {Tensor(3.f)}, 3},
      {set, {AsScalar<int32_t>(0), Tensor(3.f)}, 2},
      {pop, {kNoShape}, 1},
      {resize, {AsScalar<int32_t>(3)}, 3},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.tester.node().op());
    Tensor own = make();
    const void* const identity = ListIn(own).identity();
    const TensorList changed = RunInPlace(c.tester, std::move(own), c.others);
    EXPECT_EQ(changed.identity(), identity);
    EXPECT_EQ(changed.size(), c.size);
    // Another tensor reads the variant, or another variant the list.
    for (const bool copies_variant : {false, true}) {
      const Tensor shared = make();
      const Tensor other = copies_variant ? *shared.DeepCopy() : shared;
      const TensorList copy = RunInPlace(c.tester, shared, c.others);
      EXPECT_NE(copy.identity(), ListIn(other).identity());
      EXPECT_EQ(copy.size(), c.size);
      EXPECT_THAT(other, TensorEq(make()));
    }
  }
}

TEST(TensorListPopBack, ReturnsTheLastElementAndTheOthers) {
  const Tensor a = AsTensor<float>({1, 2});
  const Tensor b = AsTensor<float>({3});
  const auto pop = [](const Tensor& list, const Tensor& shape) {
    return OpTester("TensorListPopBack")
        .Input(list)
        .Input(shape)
        .Attr("element_dtype", DT_FLOAT)
        .ShapeIsData()
        .Run();
  };
  EXPECT_THAT(*pop(ListOf(DT_FLOAT, {}, {a, b}), kNoShape),
              ElementsAre(TensorEq(ListOf(DT_FLOAT, {}, {a})), TensorEq(b)));
  EXPECT_THAT(*pop(ListOf(DT_FLOAT, {}, {a, Unset()}), AsTensor<int32_t>({-1})),
              ElementsAre(TensorEq(ListOf(DT_FLOAT, {}, {a})), TensorEq(AsTensor<float>({0, 0}))));
  EXPECT_THAT(pop(ListOf(DT_FLOAT, {}, {}), kNoShape),
              StatusIs(kInvalidArgument, "the list is empty, so no element can be removed"));
  EXPECT_THAT(pop(ListOf(DT_FLOAT, {}, {a}), AsTensor<int32_t>({3})),
              StatusIs(kInvalidArgument,
                       "element 0 of the list has shape [2], which is not compatible with "
                       "element_shape [3]"));
  EXPECT_THAT(pop(ListOf(DT_FLOAT, {-1, 2}, {Unset()}), AsTensor<int32_t>({1, 3})),
              StatusIs(kInvalidArgument,
                       "the list has elements of shape [?,2], which is not compatible with "
                       "element_shape [1,3]"));
  EXPECT_THAT(pop(ListOf(DT_FLOAT, {-1, 2}, {Unset()}), kNoShape),
              StatusIs(kInvalidArgument,
                       "the shape of an element that is not set is not fully known: [?,2]"));
}

OpTester GetItem(const Tensor& list, int32_t index, const Tensor& shape = kNoShape,
                 DataType dtype = DT_FLOAT) {
  return OpTester("TensorListGetItem")
      .Input(list)
      .Input(AsScalar<int32_t>(index))
      .Input(shape)
      .Attr("element_dtype", dtype)
      .ShapeIsData();
}

TEST(TensorListGetItem, ReadsElements) {
  const Tensor a = AsTensor<float>({1, 2});
  const Tensor list = ListOf(DT_FLOAT, {}, {Unset(), a});
  EXPECT_THAT(GetItem(list, 1).RunOne(), TensorEq(a));
  EXPECT_THAT(GetItem(list, 1, AsTensor<int32_t>({2})).RunOne(), TensorEq(a));
  // Zeros have the shape of the elements that are set, or the shape in the input.
  EXPECT_THAT(GetItem(list, 0).RunOne(), TensorEq(AsTensor<float>({0, 0})));
  EXPECT_THAT(GetItem(list, 0, AsTensor<int32_t>({1})).RunOne(), TensorEq(AsTensor<float>({0})));
  EXPECT_THAT(GetItem(ListOf(DT_STRING, {2}, {Unset()}), 0, kNoShape, DT_STRING).RunOne(),
              TensorEq(AsTensor<tstring>({"", ""})));
  const struct {
    OpTester tester;
    const char* error;
  } cases[] = {
      {GetItem(list, 2), "index is 2, but the list has 2 elements"},
      {GetItem(list, -1), "index is -1, but the list has 2 elements"},
      {GetItem(list, 0, kNoShape, DT_INT32),
       "element_dtype is int32, but the list has elements of type float"},
      {GetItem(list, 1, AsTensor<int32_t>({3})),
       "element 1 of the list has shape [2], which is not compatible with element_shape [3]"},
      {GetItem(ListOf(DT_FLOAT, {}, {Unset(), a, Tensor(1.f)}), 0, AsTensor<int32_t>({-1, 2})),
       "element 1 of the list has shape [2], expected [?,2]"},
      {GetItem(ListOf(DT_FLOAT, {}, {Unset()}), 0),
       "the shape of an element that is not set is not fully known: <unknown>"},
  };
  for (const auto& c : cases) {
    OpTester tester = c.tester;
    EXPECT_THAT(tester.Run(), StatusIs(kInvalidArgument, c.error));
  }
}

TEST(TensorListSetItem, ReplacesElements) {
  const Tensor a = AsTensor<float>({1, 2});
  const Tensor b = AsTensor<float>({3, 4});
  const auto set = [&](int32_t index, bool resizes) {
    return OpTester("TensorListSetItem")
        .Input(ListOf(DT_FLOAT, {2}, {a, Unset()}))
        .Input(AsScalar<int32_t>(index))
        .Input(b)
        .Attr("resize_if_index_out_of_bounds", resizes)
        .RunOne();
  };
  EXPECT_THAT(set(0, false), TensorEq(ListOf(DT_FLOAT, {2}, {b, Unset()})));
  EXPECT_THAT(set(1, true), TensorEq(ListOf(DT_FLOAT, {2}, {a, b})));
  EXPECT_THAT(set(3, true), TensorEq(ListOf(DT_FLOAT, {2}, {a, Unset(), Unset(), b})));
  EXPECT_THAT(set(2, false), StatusIs(kInvalidArgument, "index is 2, but the list has 2 elements"));
  EXPECT_THAT(set(-1, true),
              StatusIs(kInvalidArgument, "index is -1, but the list has 2 elements"));
}

TEST(TensorListLength, CountsElements) {
  EXPECT_THAT(OpTester("TensorListLength").Input(ListOf(DT_FLOAT, {}, {Unset(), Unset()})).RunOne(),
              TensorEq(AsScalar<int32_t>(2)));
}

TEST(TensorListElementShape, IsAVectorOrAScalar) {
  const auto shape = [](const PartialTensorShape& shape, DataType type) {
    return OpTester("TensorListElementShape")
        .Input(ListOf(DT_FLOAT, shape, {}))
        .Attr("shape_type", type)
        .ShapeIsData()
        .RunOne();
  };
  EXPECT_THAT(shape({2, -1}, DT_INT32), TensorEq(AsTensor<int32_t>({2, -1})));
  EXPECT_THAT(shape({}, DT_INT64), TensorEq(AsScalar<int64_t>(-1)));
  EXPECT_THAT(shape(TensorShape(), DT_INT64), TensorEq(Tensor(DT_INT64, {0})));
  EXPECT_THAT(shape({int64_t{1} << 40}, DT_INT64), TensorEq(AsTensor<int64_t>({1LL << 40})));
  EXPECT_THAT(
      shape({int64_t{1} << 40}, DT_INT32),
      StatusIs(kInvalidArgument,
               "dimension 0 of the shape of elements, [1099511627776], does not fit int32"));
}

TEST(TensorListResize, DropsOrAddsElements) {
  const Tensor a = AsTensor<float>({1, 2});
  const auto resize = [&](int32_t size) {
    return OpTester("TensorListResize")
        .Input(ListOf(DT_FLOAT, {2}, {a, a}))
        .Input(AsScalar<int32_t>(size))
        .RunOne();
  };
  EXPECT_THAT(resize(1), TensorEq(ListOf(DT_FLOAT, {2}, {a})));
  EXPECT_THAT(resize(3), TensorEq(ListOf(DT_FLOAT, {2}, {a, a, Unset()})));
  EXPECT_THAT(resize(-1), StatusIs(kInvalidArgument, "size must not be negative, but is -1"));
}

Tensor ListsOf(const std::vector<Tensor>& lists) {
  Tensor tensor(DT_VARIANT, {static_cast<int64_t>(lists.size())});
  for (size_t i = 0; i < lists.size(); ++i) tensor.span<Variant>()[i] = lists[i].span<Variant>()[0];
  return tensor;
}

TEST(TensorListPushBackBatch, AddsARowToEachList) {
  const Tensor a = AsTensor<float>({1, 2});
  const Tensor one = ListOf(DT_FLOAT, {2}, {});
  const Tensor two = ListOf(DT_FLOAT, {}, {a});
  const Tensor rows = AsTensor<float>({3, 4, 5, 6}, {2, 2});
  EXPECT_THAT(OpTester("TensorListPushBackBatch").Input(ListsOf({one, two})).Input(rows).RunOne(),
              TensorEq(ListsOf({ListOf(DT_FLOAT, {2}, {AsTensor<float>({3, 4})}),
                                ListOf(DT_FLOAT, {}, {a, AsTensor<float>({5, 6})})})));
  EXPECT_THAT(OpTester("TensorListPushBackBatch")
                  .Input(ListsOf({two, ListOf(DT_FLOAT, {3}, {})}))
                  .Input(rows)
                  .Run(),
              StatusIs(kInvalidArgument,
                       "input_handles[1]: the list has elements of shape [3], but the tensor has "
                       "shape [2]"));
  EXPECT_THAT(
      OpTester("TensorListPushBackBatch").Input(Tensor(DT_VARIANT, {2})).Input(rows).Run(),
      StatusIs(kInvalidArgument, "input_handles[0] must hold a list of tensors, but does not"));
  EXPECT_THAT(OpTester("TensorListPushBackBatch").Input(ListsOf({two})).Input(rows).InferShapes(),
              StatusIs(kInvalidArgument, "there are 1 lists, but tensor has 2 rows"));
  EXPECT_THAT(OpTester("TensorListPushBackBatch").Input(ListsOf({two})).Input(rows).Run(),
              StatusIs(kInvalidArgument,
                       "tensor must have type float and 1 rows, one for each list, but has type "
                       "float and shape [2,2]"));
}

TEST(TensorListConcatLists, AppendsListsToLists) {
  const Tensor a = ListOf(DT_INT32, TensorShape(), {Tensor(1), Unset()});
  const Tensor b = ListOf(DT_INT32, TensorShape(), {Tensor(2)});
  const auto concat = [](const Tensor& x, const Tensor& y) {
    return OpTester("TensorListConcatLists")
        .Input(x)
        .Input(y)
        .Attr("element_dtype", DT_INT32)
        .RunOne();
  };
  EXPECT_THAT(concat(a, b),
              TensorEq(ListOf(DT_INT32, TensorShape(), {Tensor(1), Unset(), Tensor(2)})));
  EXPECT_THAT(concat(b, b), TensorEq(ListOf(DT_INT32, TensorShape(), {Tensor(2), Tensor(2)})));
  EXPECT_THAT(concat(ListsOf({a, b}), ListsOf({b, a})),
              TensorEq(ListsOf({*concat(a, b), *concat(b, a)})));
  EXPECT_THAT(concat(a, ListOf(DT_INT32, {}, {})),
              StatusIs(kInvalidArgument,
                       "elements 0 of input_a and input_b are lists of elements of different "
                       "shapes, [] and <unknown>"));
  EXPECT_THAT(concat(a, ListOf(DT_FLOAT, TensorShape(), {})),
              StatusIs(kInvalidArgument,
                       "element_dtype is int32, but the list has elements of type float"));
  EXPECT_THAT(
      concat(a, Tensor(DT_VARIANT, {})),
      StatusIs(kInvalidArgument, "element 0 of input_b must hold a list of tensors, but does not"));
  EXPECT_THAT(
      concat(a, ListsOf({b})),
      StatusIs(kInvalidArgument, HasSubstr("Shapes must be equal rank, but are 0 and 1: input_a "
                                           "has shape [], and input_b has shape [1]")));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
