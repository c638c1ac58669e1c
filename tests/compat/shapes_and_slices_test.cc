// Tests of shapes, slices and types of tensors, and of copying rows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/full_type.pb.h"
#include "tensorflow/core/framework/resource_handle.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/tensor_slice.h"
#include "tensorflow/core/framework/tensor_testutil.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/lib/core/status_test_util.h"
#include "tensorflow/core/platform/status_matchers.h"
#include "tensorflow/core/util/batch_util.h"

namespace tensorflow {
namespace shapes_and_slices_test {

using ::tensorflow::testing::StatusIs;
using ::testing::HasSubstr;

TEST(ShapeUtils, CompareBothEnds) {
  const struct {
    TensorShape part;
    bool starts, ends;
  } cases[] = {{{}, true, true},       {{2}, true, false},           {{4}, false, true},
               {{2, 3}, true, false},  {{3, 4}, false, true},        {{2, 3, 4}, true, true},
               {{2, 4}, false, false}, {{2, 3, 4, 5}, false, false}, {{1, 2, 3, 4}, false, false}};
  for (const auto& c : cases) {
    EXPECT_EQ(TensorShapeUtils::StartsWith({2, 3, 4}, c.part), c.starts) << c.part;
    EXPECT_EQ(TensorShapeUtils::EndsWith({2, 3, 4}, c.part), c.ends) << c.part;
  }
}

TEST(ShapeUtils, MakeShapesFromNumbers) {
  const int32 small[] = {2, 3, 9};
  const int64 large[] = {2, 3, 9};
  TensorShape shapes[4];
  PartialTensorShape partial[4];
  TF_EXPECT_OK(TensorShapeUtils::MakeShape(small, 2, &shapes[0]));
  TF_EXPECT_OK(TensorShapeUtils::MakeShape(large, 2, &shapes[1]));
  TF_EXPECT_OK(TensorShapeUtils::MakeShape(std::vector<int32>{2, 3}, &shapes[2]));
  TF_EXPECT_OK(TensorShapeUtils::MakeShape(std::vector<int64>{2, 3}, &shapes[3]));
  TF_EXPECT_OK(TensorShapeUtils::MakeShape(small, 2, &partial[0]));
  TF_EXPECT_OK(TensorShapeUtils::MakeShape(large, 2, &partial[1]));
  TF_EXPECT_OK(TensorShapeUtils::MakeShape(std::vector<int32>{2, 3}, &partial[2]));
  TF_EXPECT_OK(TensorShapeUtils::MakeShape(std::vector<int64>{2, 3}, &partial[3]));
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(shapes[i], TensorShape({2, 3})) << i;
    EXPECT_EQ(partial[i], PartialTensorShape({2, 3})) << i;
  }
  EXPECT_FALSE(TensorShapeUtils::MakeShape(std::vector<int32>{-1}, &shapes[0]).ok());
  EXPECT_FALSE(TensorShapeUtils::MakeShape(std::vector<int32>{-2}, &partial[0]).ok());
}

TEST(ShapeUtils, MultiplySizes) {
  int64 elements = 7;
  TF_EXPECT_OK(TensorShapeUtils::NumElements({}, &elements));
  EXPECT_EQ(elements, 1);
  TF_EXPECT_OK(TensorShapeUtils::NumElements({3, 0, 5}, &elements));
  EXPECT_EQ(elements, 0);
  TF_EXPECT_OK(TensorShapeUtils::NumElements({kint64max}, &elements));
  EXPECT_EQ(elements, kint64max);
  EXPECT_THAT(TensorShapeUtils::NumElements({int64{1} << 62, 2}, &elements),
              StatusIs(error::INVALID_ARGUMENT,
                       "Can't compute total size of shape [4611686018427387904,2]; product would "
                       "overflow int64"));
  EXPECT_EQ(elements, kint64max);
}

TEST(ShapeUtils, CompareLists) {
  using Utils = PartialTensorShapeUtils;
  const PartialTensorShape a = {2, -1}, b = {2, 3}, c = {3, 3};
  EXPECT_TRUE(Utils::AreIdentical({a, b}, {a, b}));
  EXPECT_FALSE(Utils::AreIdentical({a, b}, {a, a}));
  EXPECT_FALSE(Utils::AreIdentical({a, b}, {a}));
  EXPECT_TRUE(Utils::AreCompatible({a, b}, {b, a}));
  EXPECT_FALSE(Utils::AreCompatible({a, b}, {b, c}));
  EXPECT_FALSE(Utils::AreCompatible({a}, {a, b}));
  EXPECT_EQ(Utils::PartialShapeListString({}), "[]");
}

// ---- Slices ----

TensorSlice Slice(const char* text) { return TensorSlice::ParseOrDie(text); }

TEST(Slices, AreMadeFromExtents) {
  const TensorSlice slice = TensorSlice({{1, 2}, {0, -1}});
  EXPECT_EQ(slice.DebugString(), "1,2:-");
  TensorSliceProto proto;
  slice.AsProto(&proto);
  EXPECT_EQ(proto.ShortDebugString(), "extent { start: 1 length: 2 } extent { }");
  EXPECT_EQ(TensorSlice(proto), slice);
  EXPECT_FALSE(slice.IsFull());
  EXPECT_FALSE(Slice("-:0,1").IsFull());
  EXPECT_TRUE(Slice("-:-").IsFull());
  EXPECT_TRUE(TensorSlice().IsFull());
  TensorSlice extended = slice;
  extended.Extend(1);
  EXPECT_EQ(extended, slice);
  extended.Extend(4);
  EXPECT_EQ(extended.DebugString(), "1,2:-:-:-");
  EXPECT_EQ(extended.start(3), 0);
  extended.SetFullSlice(2);
  EXPECT_EQ(extended.DebugString(), "-:-");
  extended.Clear();
  EXPECT_EQ(extended.dims(), 0);
}

TEST(Slices, ReportWhereATextIsInvalid) {
  const std::pair<const char*, const char*> cases[] = {
      {"-:x,1", "Expected a pair of numbers or '-' but got 'x,1': string = -:x,1"},
      {"1,x", "Expected a pair of numbers or '-' but got '1,x': string = 1,x"},
      {"1,2,3", "Expected a pair of numbers or '-' but got '1,2,3': string = 1,2,3"},
      {"-1,2",
       "Expected non-negative start and positive length but got start = -1, length = 2: string = "
       "-1,2"},
      {"1,0",
       "Expected non-negative start and positive length but got start = 1, length = 0: string = "
       "1,0"}};
  TensorSlice slice = Slice("5,6");
  for (const auto& [text, error] : cases) {
    EXPECT_THAT(TensorSlice::Parse(text, &slice), StatusIs(error::INVALID_ARGUMENT, error));
  }
  EXPECT_EQ(slice, Slice("5,6"));
  TF_EXPECT_OK(TensorSlice::Parse("0,1", &slice));
  EXPECT_EQ(slice.end(0), 1);
}

TEST(Slices, Intersect) {
  // Two slices and their intersection, or "" if it is empty.
  const char* const cases[][3] = {
      {"0,4", "3,5", "3,1"},         {"0,4", "4,5", ""},         {"0,4", "5,5", ""},
      {"0,9", "3,5", "3,5"},         {"-", "3,5", "3,5"},        {"-", "-", "-"},
      {"-:2,3", "1,1:-", "1,1:2,3"}, {"0,4:0,4", "0,4:4,1", ""}, {"0,4", "0,4:-", ""}};
  for (const auto& [a, b, both] : cases) {
    for (const bool swap : {false, true}) {
      SCOPED_TRACE(absl::StrCat(a, " and ", b));
      const TensorSlice one = Slice(swap ? b : a), two = Slice(swap ? a : b);
      TensorSlice result = Slice("8,8");
      EXPECT_EQ(one.Intersect(two, &result), *both != 0);
      EXPECT_EQ(result.DebugString(), both);
      EXPECT_EQ(one.Overlaps(two), *both != 0);
    }
  }
}

TEST(Slices, CoverAndContainOthers) {
  const char* const covers[][3] = {{"2,2", "5,1", "2,4"}, {"2,2", "0,1", "0,4"},
                                   {"2,9", "3,1", "2,9"}, {"2,2", "-", "-"},
                                   {"-", "2,2", "-"},     {"-:1,1", "3,1:3,1", "-:1,3"}};
  for (const auto& [slice, other, result] : covers) {
    TensorSlice cover = Slice(slice);
    cover.UpdateToCover(Slice(other));
    EXPECT_EQ(cover.DebugString(), result);
  }
  TensorSlice relative;
  Slice("3,9:-").ComputeRelative(Slice("5,2:4,1"), &relative);
  EXPECT_EQ(relative.DebugString(), "2,2:4,1");
  TensorSlice slice = Slice("1,1");
  EXPECT_DEATH(slice.ComputeRelative(Slice("1,1:-"), &relative), "dims\\(\\) == sub.dims\\(\\)");
  EXPECT_DEATH(slice.UpdateToCover(Slice("1,1:-")), "dims\\(\\) == other.dims\\(\\)");
}

TEST(Slices, HaveShapesWithinTensors) {
  const auto shape_of = [](TensorSlice slice, const TensorShape& shape) {
    TensorShape result({9});
    const absl::Status status = slice.SliceTensorShape(shape, &result);
    EXPECT_EQ(status.ok() || result == TensorShape(), true);
    EXPECT_TRUE(status.ok() || status.code() == error::INTERNAL);
    return status.ok() ? result.DebugString() : std::string(status.message());
  };
  EXPECT_EQ(shape_of(Slice("1,2:-"), {3, 4}), "[2,4]");
  EXPECT_EQ(shape_of(Slice("0,3:-"), {3, 4}), "[3,4]");
  EXPECT_EQ(shape_of(TensorSlice({{3, 0}}), {3}), "[0]");
  EXPECT_EQ(shape_of(TensorSlice(), {}), "[]");
  EXPECT_EQ(shape_of(Slice("1,2"), {3, 4}), "Mismatching ranks: shape = [3,4], slice = 1,2");
  const TensorSlice outside[] = {Slice("-:0,5"), Slice("-:2,3"), TensorSlice({{0, -1}, {-1, 2}}),
                                 TensorSlice({{0, -1}, {1, -1}}), Slice("-:5,1")};
  for (const TensorSlice& slice : outside) {
    EXPECT_EQ(shape_of(slice, {3, 4}),
              absl::StrCat("Extent in dimension 1 out of bounds: shape = [3,4], slice = ",
                           slice.DebugString()));
  }
}

// ---- Types ----

TEST(FullTypes, MatchDataTypes) {
  const std::pair<DataType, int> types[] = {
      {DT_FLOAT, TFT_FLOAT},         {DT_DOUBLE, TFT_DOUBLE},
      {DT_HALF, TFT_HALF},           {DT_BFLOAT16, TFT_BFLOAT16},
      {DT_INT8, TFT_INT8},           {DT_INT16, TFT_INT16},
      {DT_INT32, TFT_INT32},         {DT_INT64, TFT_INT64},
      {DT_UINT8, TFT_UINT8},         {DT_UINT16, TFT_UINT16},
      {DT_UINT32, TFT_UINT32},       {DT_UINT64, TFT_UINT64},
      {DT_BOOL, TFT_BOOL},           {DT_STRING, TFT_STRING},
      {DT_COMPLEX64, TFT_COMPLEX64}, {DT_COMPLEX128, TFT_COMPLEX128},
      {DT_RESOURCE, TFT_UNSET},      {DT_INVALID, TFT_UNSET}};
  for (const auto& [type, id] : types) {
    FullTypeDef full, parent;
    for (FullTypeDef* t : {&full, &parent}) {
      // The call removes these values.
      t->set_s("before");
      t->add_args();
      t->add_args();
    }
    map_dtype_to_tensor(type, full);
    EXPECT_EQ(full.type_id(), id) << DataTypeString(type);
    EXPECT_EQ(full.args_size(), 0);
    map_dtype_to_child_of_tensor(type, parent);
    EXPECT_EQ(parent.type_id(), TFT_TENSOR);
    EXPECT_EQ(parent.s(), "");
    ASSERT_EQ(parent.args_size(), 1);
    EXPECT_EQ(parent.args(0).DebugString(), full.DebugString());
  }
}

// ---- Rows ----

TEST(Rows, AreCopiedWithinBounds) {
  Tensor parent = test::AsTensor<int32>({1, 2, 3, 4, 5, 6}, TensorShape({3, 2}));
  Tensor row(DT_INT32, TensorShape({1, 2})), reals(DT_FLOAT, TensorShape({3, 2}));
  const Tensor scalar = test::AsScalar<int32>(1), none, wide(DT_INT32, TensorShape({2, 3}));
  Tensor not_initialized{Tensor::Unset()};
  for (int i = 0; i < 3; ++i) {
    TF_EXPECT_OK(batch_util::CopySliceToElement(parent, &row, i));
    test::ExpectTensorEqual<int32>(
        row, test::AsTensor<int32>({2 * i + 1, 2 * i + 2}, TensorShape({1, 2})));
  }
  TF_EXPECT_OK(batch_util::CopyElementToSlice(row, &parent, 0));
  TF_EXPECT_OK(batch_util::CopyContiguousSlices(parent, 1, 0, 2, &parent));
  test::ExpectTensorEqual<int32>(parent,
                                 test::AsTensor<int32>({3, 4, 5, 6, 5, 6}, TensorShape({3, 2})));
  TF_EXPECT_OK(batch_util::CopyContiguousSlices(parent, 3, 3, 0, &parent));
  TF_EXPECT_OK(batch_util::CopyContiguousSlices(parent, 2, 1, 1, &parent));
  EXPECT_EQ(parent.matrix<int32>()(1, 1), 6);
  // Tensors without rows, or whose rows have no elements.
  Tensor empty(DT_INT32, TensorShape({0, 2})), thin(DT_INT32, TensorShape({2, 0}));
  TF_EXPECT_OK(batch_util::CopyContiguousSlices(empty, 0, 0, 0, &thin));
  TF_EXPECT_OK(batch_util::CopyContiguousSlices(thin, 0, 0, 2, &thin));
  const std::pair<absl::Status, const char*> cases[] = {
      {batch_util::CopySliceToElement(parent, &row, 3), "rows [3, 3 + 1) of 3 rows"},
      {batch_util::CopySliceToElement(parent, &row, -1), "rows [-1, -1 + 1) of 3 rows"},
      {batch_util::CopyContiguousSlices(parent, 0, 0, 4, &parent), "rows [0, 0 + 4) of 3 rows"},
      {batch_util::CopyContiguousSlices(parent, 0, 0, -1, &parent), "rows [0, 0 + -1) of 3 rows"},
      {batch_util::CopyContiguousSlices(parent, 0, 2, 2, &parent), "rows [2, 2 + 2) of 3 rows"},
      {batch_util::CopyContiguousSlices(wide, 0, 0, 1, &parent), "rows of 3 and 2 elements"},
      {batch_util::CopySliceToElement(scalar, &row, 0), "a tensor of shape [] has no rows"},
      {batch_util::CopyElementToSlice(scalar, &parent, 0),
       "the element has shape [], but a row has 2 elements"},
      {batch_util::CopySliceToElement(parent, &parent, 0),
       "the element has shape [3,2], but a row has 2 elements"},
      {batch_util::CopyContiguousSlices(parent, 0, 0, 1, &reals),
       "the tensors have types int32 and float"},
      {batch_util::SetElementZero(&parent, row),
       "the padding has shape [1,2], expected one element"},
      {batch_util::SetElementZero(&parent, test::AsScalar<float>(0)),
       "the tensors have types float and int32"},
      {batch_util::SetElementZero(&not_initialized, scalar),
       "the padding has shape [], expected one element"}};
  for (const auto& [status, message] : cases) {
    EXPECT_THAT(status, StatusIs(error::INVALID_ARGUMENT, message));
  }
  EXPECT_EQ(batch_util::CopySliceToElement(not_initialized, &row, 0).code(),
            error::INVALID_ARGUMENT);
  EXPECT_EQ(batch_util::CopySliceToElement(parent, &not_initialized, 0).code(),
            error::INVALID_ARGUMENT);
}

TEST(Rows, StringsAreMovedUnlessShared) {
  const std::string first(50, 'a'), second(50, 'b');
  const auto words = [&] { return test::AsTensor<tstring>({first, second}, TensorShape({2, 1})); };
  Tensor target(DT_STRING, TensorShape({1, 1}));
  const auto target_text = [&] { return std::string(target.flat<tstring>()(0)); };
  Tensor source = words();
  TF_EXPECT_OK(batch_util::MaybeMoveSliceToElement(&source, &target, 1));
  EXPECT_EQ(target_text(), second);
  EXPECT_EQ(source.flat<tstring>()(1), "");
  EXPECT_EQ(source.flat<tstring>()(0), first);
  TF_EXPECT_OK(batch_util::MaybeMoveContiguousSlices(source, 0, 0, 1, &target));
  EXPECT_EQ(target_text(), first);
  EXPECT_EQ(source.flat<tstring>()(0), "");

  source = words();
  Tensor other = words();
  TF_EXPECT_OK(batch_util::CopySliceToElement(source, &target, 0));
  TF_EXPECT_OK(batch_util::CopyElementToSlice(target, &other, 1));
  EXPECT_EQ(other.flat<tstring>()(1), first);
  TF_EXPECT_OK(batch_util::CopyContiguousSlices(source, 0, 0, 1, &target));
  const Tensor held = source;
  TF_EXPECT_OK(batch_util::MaybeMoveContiguousSlices(source, 0, 0, 2, &other));
  TF_EXPECT_OK(batch_util::MaybeMoveSliceToElement(&source, &target, 0));
  test::ExpectTensorEqual<tstring>(held, words());
  test::ExpectTensorEqual<tstring>(other, words());
  EXPECT_EQ(target_text(), first);
  TF_EXPECT_OK(batch_util::SetElementZero(&other, target));
  test::ExpectTensorEqual<tstring>(other,
                                   test::AsTensor<tstring>({first, first}, TensorShape({2, 1})));
}

TEST(Rows, HandlesAreCopied) {
  Tensor handles(DT_RESOURCE, TensorShape({2})), one(DT_RESOURCE, TensorShape({}));
  for (int i = 0; i < 2; ++i) {
    ResourceHandle handle;
    handle.set_name(absl::StrCat("h", i));
    handles.span<gradflow::ResourceHandle>()[i] = handle;
  }
  TF_EXPECT_OK(batch_util::CopySliceToElement(handles, &one, 1));
  EXPECT_EQ(ResourceHandle(one.span<gradflow::ResourceHandle>()[0]).name(), "h1");
}

}  // namespace shapes_and_slices_test
}  // namespace tensorflow
