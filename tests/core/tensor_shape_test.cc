#include "gradflow/core/tensor_shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "gradflow/core/tensor.h"
#include "gradflow/proto/tensor_shape.pb.h"
#include "gradflow/testing/status_matchers.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace {

using ::gradflow::testing::IsOk;
using ::gradflow::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kBig = int64_t{1} << 40;

TensorShapeProto Proto(const std::vector<int64_t>& dims, bool unknown_rank = false) {
  TensorShapeProto proto;
  for (const int64_t dim : dims) proto.add_dim()->set_size(dim);
  proto.set_unknown_rank(unknown_rank);
  return proto;
}

// clang requires an initializer for constants of a class whose default constructor is defaulted.
TEST(TensorShape, ConstantsNeedNoInitializer) {
  const TensorShape scalar;
  EXPECT_EQ(scalar.dims(), 0);
  const PartialTensorShape unknown;
  EXPECT_TRUE(unknown.unknown_rank());
}

TEST(TensorShape, MultipliesWithoutOverflow) {
  const int64_t cases[][3] = {{0, 0, 0},
                              {3, 4, 12},
                              {kMax, 1, kMax},
                              {kMax, 0, 0},
                              {kMax, 2, -1},
                              {kBig, kBig, -1},
                              {-1, 5, -1},
                              {5, -1, -1},
                              {-1, 0, -1},
                              {-3, -4, -1},
                              {1 << 30, 1 << 30, int64_t{1} << 60}};
  for (const auto& [a, b, product] : cases) {
    EXPECT_EQ(MultiplyWithoutOverflow(a, b), product) << a << " * " << b;
  }
}

TEST(TensorShape, CountsElements) {
  const struct {
    std::vector<int64_t> dims;
    int64_t elements;
    const char* text;
  } cases[] = {
      {{}, 1, "[]"},
      {{0}, 0, "[0]"},
      {{7}, 7, "[7]"},
      {{2, 3, 4}, 24, "[2,3,4]"},
      {{2, 0, 4}, 0, "[2,0,4]"},
      {{kMax}, kMax, "[9223372036854775807]"},
      // A dimension of 0 makes the tensor empty, whatever the other dimensions are.
      {{kBig, kBig, 0}, 0, "[1099511627776,1099511627776,0]"},
      {{0, kBig, kBig}, 0, "[0,1099511627776,1099511627776]"},
      {{kBig, 0, kBig}, 0, "[1099511627776,0,1099511627776]"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.text);
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const TensorShape made, TensorShape::Make(c.dims));
    for (const TensorShape& shape : {made, TensorShape(c.dims)}) {
      EXPECT_TRUE(shape.IsValid());
      EXPECT_EQ(shape.dims(), static_cast<int>(c.dims.size()));
      EXPECT_EQ(shape.num_elements(), c.elements);
      EXPECT_EQ(shape.DebugString(), c.text);
    }
  }
}

TEST(TensorShape, RejectsInvalidShapes) {
  const struct {
    std::vector<int64_t> dims;
    const char* text;
  } cases[] = {
      {{2, -3}, "dimension -3 of shape [2,-3] is negative"},
      {{-1}, "negative"},
      {{0, -1}, "negative"},
      {{kBig, kBig}, "[1099511627776,1099511627776] has more elements than fit in an int64"},
      {{kMax, 2}, "more elements"},
      {std::vector<int64_t>(kMaxDims + 1, 1), "at most 254 dimensions, but this has 255"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.text);
    const auto refused = StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.text));
    EXPECT_THAT(TensorShape::Make(c.dims), refused);
    EXPECT_THAT(TensorShape::Make(Proto(c.dims)), refused);
    const TensorShape shape(c.dims);
    EXPECT_FALSE(shape.IsValid());
    EXPECT_EQ(shape.num_elements(), 0);
  }
}

TEST(TensorShape, AllowsMaxDims) {
  EXPECT_TRUE(TensorShape(std::vector<int64_t>(kMaxDims, 1)).IsValid());
  EXPECT_THAT(TensorShape::Make(Proto(std::vector<int64_t>(kMaxDims, 1))), IsOk());
}

TEST(TensorShape, ChangesDimensions) {
  TensorShape shape({2, 3});
  shape.AddDim(5);
  EXPECT_EQ(shape, TensorShape({2, 3, 5}));
  shape.InsertDim(0, 7);
  EXPECT_EQ(shape, TensorShape({7, 2, 3, 5}));
  EXPECT_EQ(shape.num_elements(), 210);
  shape.set_dim(1, 4);
  shape.RemoveDim(0);
  EXPECT_EQ(shape, TensorShape({4, 3, 5}));
  EXPECT_EQ(shape.num_elements(), 60);
  shape.AppendShape({2});
  EXPECT_THAT(shape.dim_sizes(), ElementsAre(4, 3, 5, 2));
  shape.set_dim(3, 0);
  EXPECT_EQ(shape.num_elements(), 0);
  shape.set_dim(3, 1);
  EXPECT_EQ(shape.num_elements(), 60);
}

TEST(TensorShape, StaysInvalidAfterAnInvalidChange) {
  const struct {
    const char* what;
    void (*change)(TensorShape* shape);
  } cases[] = {
      {"a negative dimension", [](TensorShape* s) { s->AddDim(-1); }},
      {"set to a negative dimension", [](TensorShape* s) { s->set_dim(0, -7); }},
      {"too large a product", [](TensorShape* s) { s->AddDim(kMax); }},
      {"too large a product of two", [](TensorShape* s) { s->AppendShape({kMax / 2}); }},
      {"an invalid shape behind", [](TensorShape* s) { s->AppendShape({-1}); }},
      {"insertion out of range", [](TensorShape* s) { s->InsertDim(4, 1); }},
      {"insertion before the first", [](TensorShape* s) { s->InsertDim(-1, 1); }},
      {"removal out of range", [](TensorShape* s) { s->RemoveDim(2); }},
      {"removal before the first", [](TensorShape* s) { s->RemoveDim(-1); }},
      {"a dimension out of range", [](TensorShape* s) { s->set_dim(2, 1); }},
      {"too many dimensions",
       [](TensorShape* s) { s->AppendShape(TensorShape(std::vector<int64_t>(kMaxDims, 1))); }},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.what);
    TensorShape shape({2, 3});
    c.change(&shape);
    EXPECT_FALSE(shape.IsValid());
    EXPECT_EQ(shape.num_elements(), 0);
    while (shape.dims() > 0) shape.RemoveDim(0);
    EXPECT_FALSE(shape.IsValid());
    EXPECT_NE(shape, TensorShape());
  }
}

TEST(TensorShape, ComparesDimensions) {
  EXPECT_EQ(TensorShape({1, 2}), TensorShape({1, 2}));
  EXPECT_NE(TensorShape({1, 2}), TensorShape({2, 1}));
  EXPECT_NE(TensorShape({1}), TensorShape());
  EXPECT_TRUE(TensorShape({1, 2}).IsSameSize({1, 2}));
  EXPECT_FALSE(TensorShape({6}).IsSameSize({2, 3}));
}

TEST(TensorShape, ProtoRoundTrips) {
  for (const TensorShape& shape : {TensorShape(), TensorShape({0}), TensorShape({2, kBig, 3})}) {
    TensorShapeProto proto = Proto({9, 9}, true);  // is overwritten
    shape.AsProto(&proto);
    EXPECT_FALSE(proto.unknown_rank());
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const TensorShape read, TensorShape::Make(proto));
    EXPECT_EQ(read, shape);
  }
}

TEST(TensorShape, ProtoOfUnknownRankIsRefused) {
  EXPECT_THAT(TensorShape::Make(Proto({}, true)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("rank is unknown")));
}

TEST(PartialTensorShape, ReportsKnownDimensions) {
  const struct {
    PartialTensorShape shape;
    int dims;
    int64_t elements;
    bool defined;
    const char* text;
  } cases[] = {
      {PartialTensorShape(), -1, -1, false, "<unknown>"},
      {PartialTensorShape({}), 0, 1, true, "[]"},
      {PartialTensorShape({2, 3}), 2, 6, true, "[2,3]"},
      {PartialTensorShape({2, -1}), 2, -1, false, "[2,?]"},
      {PartialTensorShape({kBig, kBig}), 2, -1, true, "[1099511627776,1099511627776]"},
      {PartialTensorShape::UnknownOfRank(3), 3, -1, false, "[?,?,?]"},
      {PartialTensorShape::UnknownOfRank(0), 0, 1, true, "[]"},
      {TensorShape({4, 0}), 2, 0, true, "[4,0]"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.text);
    EXPECT_EQ(c.shape.dims(), c.dims);
    EXPECT_EQ(c.shape.unknown_rank(), c.dims < 0);
    EXPECT_EQ(c.shape.num_elements(), c.elements);
    EXPECT_EQ(c.shape.IsFullyDefined(), c.defined);
    EXPECT_EQ(c.shape.DebugString(), c.text);
    TensorShape known({99});
    EXPECT_EQ(c.shape.AsTensorShape(&known), c.elements >= 0);
    EXPECT_EQ(known, c.elements >= 0 ? TensorShape(c.shape.dim_sizes()) : TensorShape({99}));
  }
}

TEST(PartialTensorShape, MergesKnownDimensions) {
  const struct {
    PartialTensorShape a, b, merged;
  } cases[] = {
      {PartialTensorShape(), {2, -1}, {2, -1}},
      {PartialTensorShape(), PartialTensorShape({}), PartialTensorShape({})},
      {{2, -1}, {-1, 3}, {2, 3}},
      {{2, 3}, {2, 3}, {2, 3}},
      {{-1, -1}, {-1, -1}, {-1, -1}},
      {{-1, 0}, {5, -1}, {5, 0}},
      {PartialTensorShape(), PartialTensorShape(), PartialTensorShape()},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.a.DebugString() + " and " + c.b.DebugString());
    EXPECT_TRUE(c.a.IsCompatibleWith(c.b));
    EXPECT_TRUE(c.b.IsCompatibleWith(c.a));
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const PartialTensorShape ab, c.a.MergeWith(c.b));
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const PartialTensorShape ba, c.b.MergeWith(c.a));
    EXPECT_EQ(ab, c.merged);
    EXPECT_EQ(ba, c.merged);
  }
}

TEST(PartialTensorShape, ContradictingShapesDoNotMerge) {
  const std::pair<PartialTensorShape, PartialTensorShape> cases[] = {
      {{2, -1}, {3, -1}}, {{2}, {2, 1}}, {{0}, {1}}, {PartialTensorShape({}), {-1}}};
  for (const auto& [a, b] : cases) {
    EXPECT_FALSE(a.IsCompatibleWith(b));
    EXPECT_THAT(a.MergeWith(b), StatusIs(absl::StatusCode::kInvalidArgument,
                                         "shapes " + a.DebugString() + " and " + b.DebugString() +
                                             " are not compatible"));
  }
}

TEST(PartialTensorShape, UnknownRankStaysWhenDimensionsAreAdded) {
  PartialTensorShape shape;
  shape.AddDim(3);
  EXPECT_TRUE(shape.unknown_rank());
  PartialTensorShape known({-1});
  known.AddDim(3);
  known.set_dim(0, 2);
  EXPECT_EQ(known, PartialTensorShape({2, 3}));
  EXPECT_NE(known, PartialTensorShape());
  EXPECT_NE(PartialTensorShape(TensorShape()), PartialTensorShape());
}

TEST(PartialTensorShape, ProtoRoundTrips) {
  for (const PartialTensorShape& shape :
       {PartialTensorShape(), PartialTensorShape(TensorShape()), PartialTensorShape({2, -1, 0})}) {
    TensorShapeProto proto = Proto({9}, true);  // is overwritten
    shape.AsProto(&proto);
    EXPECT_EQ(proto.unknown_rank(), shape.unknown_rank());
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const PartialTensorShape read, PartialTensorShape::Make(proto));
    EXPECT_EQ(read, shape);
  }
}

TEST(PartialTensorShape, RejectsInvalidShapes) {
  const struct {
    TensorShapeProto proto;
    const char* text;
  } cases[] = {
      {Proto({-2}), "dimension -2"},
      {Proto({kBig, -1, kBig}), "more elements"},
      {Proto(std::vector<int64_t>(kMaxDims + 1, -1)), "at most 254 dimensions"},
      {Proto({1}, true), "unknown rank has no dimensions, but this has 1"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(PartialTensorShape::Make(c.proto),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.text)));
  }
  EXPECT_THAT(PartialTensorShape::Make({kBig, kBig, 0, -1}), IsOk());
}

// A small file can contain many shapes of 254 dimensions.
TEST(TensorShape, CopiesOfManyDimensionsShareThem) {
  const TensorShape few({1, 2, 3, 4});
  EXPECT_EQ(PartialTensorShape(few).HeapBytes(), 0u);
  TensorShape many(DimVector(254, 1));
  const TensorShape copy = many;
  EXPECT_EQ(copy.dim_sizes().data(), many.dim_sizes().data());
  const PartialTensorShape partial = many;
  EXPECT_EQ(partial.dim_sizes().data(), many.dim_sizes().data());
  EXPECT_THAT(partial.HeapBytes(), ::testing::AllOf(::testing::Ge(254u * 8), ::testing::Le(2100u)));
  many.set_dim(253, 7);
  EXPECT_EQ(many.dim_size(253), 7);
  EXPECT_EQ(many.num_elements(), 7);
  EXPECT_EQ(copy.dim_size(253), 1);
  EXPECT_EQ(partial.dim_size(253), 1);
  // The dimensions are no longer shared, so they are changed in place.
  const int64_t* const data = many.dim_sizes().data();
  many.set_dim(0, 2);
  EXPECT_EQ(many.dim_sizes().data(), data);
  TensorShape other({5});
  other = many;
  const TensorShape& itself = other;
  other = itself;
  EXPECT_EQ(other, many);
  other = few;
  EXPECT_EQ(other, few);
  PartialTensorShape merged = PartialTensorShape::UnknownOfRank(5);
  const PartialTensorShape unknown = merged;
  merged.set_dim(4, 3);
  EXPECT_EQ(unknown.dim_size(4), -1);
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const PartialTensorShape both, unknown.MergeWith(merged));
  EXPECT_EQ(both, merged);
  EXPECT_EQ(unknown.dim_size(4), -1);
}

TEST(TensorShape, ShapeOfManyDimensionsCanBeMovedFrom) {
  for (const int rank : {0, 3, 4, 5, 254}) {
    TensorShape shape(DimVector(rank, 2 - rank % 2));
    shape = TensorShape(DimVector(rank, 1));
    const TensorShape taken = std::move(shape);
    EXPECT_EQ(shape, taken);
    EXPECT_EQ(shape.dims(), rank);
    EXPECT_EQ(shape.num_elements(), 1);
  }
}

TEST(TensorShape, StaysInvalidWhenShapesAreAppended) {
  TensorShape invalid({-1});
  TensorShape shape({2});
  shape.AppendShape(invalid);
  EXPECT_FALSE(shape.IsValid());
  EXPECT_EQ(shape.num_elements(), 0);
  // The shape is invalid, although its dimensions equal the dimensions of a valid shape.
  TensorShape restored({-1});
  restored.set_dim(0, 1);
  ASSERT_FALSE(restored.IsValid());
  TensorShape target({2});
  target.AppendShape(restored);
  EXPECT_FALSE(target.IsValid());
  EXPECT_EQ(target.num_elements(), 0);
}

TEST(TensorShapeDeathTest, ReportsTheIndexOutOfRange) {
  ::testing::FLAGS_gtest_death_test_style = ::gradflow::testing::kDeathTestStyle;
  const TensorShape shape({2, 3});
  EXPECT_DEATH(shape.dim_size(7),
               "TensorShape::dim_size\\(7\\): index out of range, expected at least 0 and less "
               "than 2");
  EXPECT_DEATH(Tensor(DT_FLOAT, {2}).dim_size(-1), "TensorShape::dim_size\\(-1\\)");
  EXPECT_DEATH(PartialTensorShape().dim_size(0), "PartialTensorShape::dim_size\\(0\\)");
  EXPECT_DEATH(PartialTensorShape({2}).set_dim(1, 0), "PartialTensorShape::set_dim\\(1\\)");
}

// Tests the members for programs written for TensorFlow. A function that fails does not change the
// shape.
TEST(TensorShapeInterface, ChangesDimensionsOrReturnsAnError) {
  TensorShape shape({2, 3, 4});
  EXPECT_THAT(shape.AddDimWithStatus(5), IsOk());
  EXPECT_THAT(shape.InsertDimWithStatus(0, 1), IsOk());
  EXPECT_EQ(shape, TensorShape({1, 2, 3, 4, 5}));
  EXPECT_EQ(shape.num_elements(), 120);
  EXPECT_THAT(shape.SetDimWithStatus(1, 7), IsOk());
  EXPECT_THAT(shape.RemoveDimWithStatus(2), IsOk());
  EXPECT_EQ(shape, TensorShape({1, 7, 4, 5}));
  EXPECT_THAT(shape.RemoveLastDimsWithStatus(2), IsOk());
  EXPECT_THAT(shape.AppendShapeWithStatus(TensorShape({8, 9, 6})), IsOk());
  EXPECT_EQ(shape, TensorShape({1, 7, 8, 9, 6}));
  EXPECT_THAT(shape.RemoveDimRangeWithStatus(1, 3), IsOk());
  EXPECT_EQ(shape, TensorShape({1, 9, 6}));
  // -1 means the end.
  EXPECT_THAT(shape.RemoveDimRangeWithStatus(-3, -1), IsOk());
  EXPECT_THAT(shape.RemoveDimRangeWithStatus(1, 0), IsOk());
  EXPECT_EQ(shape, TensorShape({1}));

  EXPECT_THAT(shape.AddDimWithStatus(-1),
              StatusIs(absl::StatusCode::kInvalidArgument, "Expected a non-negative size, got -1"));
  EXPECT_THAT(shape.InsertDimWithStatus(2, 1),
              StatusIs(absl::StatusCode::kInternal, "The insertion index must be at most 1 got 2"));
  EXPECT_THAT(shape.InsertDimWithStatus(-1, 1), StatusIs(absl::StatusCode::kInternal));
  EXPECT_THAT(shape.SetDimWithStatus(1, 1), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(shape.SetDimWithStatus(-1, 1), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(shape.RemoveDimWithStatus(1), StatusIs(absl::StatusCode::kInternal));
  EXPECT_THAT(shape.RemoveDimWithStatus(-1), StatusIs(absl::StatusCode::kInternal));
  EXPECT_THAT(shape.RemoveLastDimsWithStatus(2), StatusIs(absl::StatusCode::kInternal));
  EXPECT_THAT(shape.RemoveLastDimsWithStatus(-1), StatusIs(absl::StatusCode::kInternal));
  EXPECT_THAT(shape.RemoveDimRangeWithStatus(-3, 1), StatusIs(absl::StatusCode::kInternal));
  EXPECT_THAT(shape.RemoveDimRangeWithStatus(0, 2), StatusIs(absl::StatusCode::kInternal));
  EXPECT_THAT(shape.AppendShapeWithStatus(TensorShape({kMax})), IsOk());
  EXPECT_EQ(shape, TensorShape({1, kMax}));
  EXPECT_THAT(shape.AddDimWithStatus(2),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("overflow")));
  EXPECT_EQ(shape, TensorShape({1, kMax}));
  EXPECT_EQ(shape.num_elements(), kMax);

  TensorShape full(std::vector<int64_t>(kMaxDims, 1));
  EXPECT_THAT(full.AddDimWithStatus(1), StatusIs(absl::StatusCode::kInternal));
  EXPECT_EQ(full.dims(), TensorShape::MaxDimensions());
  full.RemoveLastDims(kMaxDims - 1);
  full.RemoveDimRange(0, 1);
  EXPECT_EQ(full, TensorShape());
  full.RemoveLastDims(1);
  EXPECT_FALSE(full.IsValid());
  full.Clear();
  EXPECT_TRUE(full.IsValid());
  full.RemoveDimRange(0, 1);
  EXPECT_FALSE(full.IsValid());
}

TEST(TensorShapeInterface, ChangesPartialShapes) {
  PartialTensorShape shape({2, -1});
  EXPECT_THAT(shape.AddDimWithStatus(-1), IsOk());
  EXPECT_THAT(shape.SetDimWithStatus(1, 3), IsOk());
  EXPECT_EQ(shape, PartialTensorShape({2, 3, -1}));
  EXPECT_THAT(shape.AddDimWithStatus(-2), StatusIs(absl::StatusCode::kInvalidArgument));
  shape.RemoveLastDims(4);
  EXPECT_EQ(shape, PartialTensorShape({2, 3, -1}));
  EXPECT_TRUE(shape.IsIdenticalTo({2, 3, -1}));
  EXPECT_TRUE(shape.IsValid());

  EXPECT_EQ(shape.Concatenate(-1), PartialTensorShape({2, 3, -1, -1}));
  EXPECT_EQ(shape.Concatenate({4, 5}), PartialTensorShape({2, 3, -1, 4, 5}));
  EXPECT_TRUE(shape.Concatenate(PartialTensorShape()).unknown_rank());
  PartialTensorShape result;
  EXPECT_THAT(shape.ConcatenateWithStatus(kMax, &result),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_TRUE(shape.Concatenate(kMax).unknown_rank());

  EXPECT_THAT(shape.MergeWith({-1, 3, 4}, &result), IsOk());
  EXPECT_EQ(result, PartialTensorShape({2, 3, 4}));
  EXPECT_THAT(shape.MergeWith({-1, 4, 4}, &result),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("Incompatible shapes")));
  EXPECT_EQ(result, PartialTensorShape({2, 3, 4}));
  EXPECT_THAT(shape.MergeWith(result, &shape), StatusIs(absl::StatusCode::kInternal));

  // A shape of unknown rank keeps its unknown rank.
  PartialTensorShape unknown;
  EXPECT_THAT(unknown.AppendShapeWithStatus({2, 3}), IsOk());
  EXPECT_EQ(unknown, PartialTensorShape());
  EXPECT_EQ(unknown.dims(), -1);
  EXPECT_THAT(shape.AppendShapeWithStatus(unknown), IsOk());
  EXPECT_EQ(shape, PartialTensorShape());
  EXPECT_EQ(unknown.Concatenate(PartialTensorShape({4})), PartialTensorShape());
  EXPECT_THAT(unknown.AddDimWithStatus(1), IsOk());
  EXPECT_THAT(unknown.RemoveDimRangeWithStatus(0, 3), IsOk());
  EXPECT_TRUE(unknown.unknown_rank());
  EXPECT_FALSE(unknown.IsValid());
}

TEST(TensorShapeInterface, BuildsShapes) {
  TensorShape shape;
  PartialTensorShape partial;
  EXPECT_THAT(TensorShape::BuildTensorShape({2, 3}, &shape), IsOk());
  EXPECT_EQ(shape, TensorShape({2, 3}));
  EXPECT_THAT(TensorShape::BuildTensorShape({2, -1}, &shape),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not fully defined")));
  EXPECT_THAT(TensorShape::BuildTensorShape({kMax, 2}, &shape),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("overflow")));
  EXPECT_THAT(PartialTensorShape::BuildPartialTensorShape({2, -1}, &partial), IsOk());
  EXPECT_EQ(partial, PartialTensorShape({2, -1}));
  EXPECT_THAT(PartialTensorShape::BuildPartialTensorShape({2, -2}, &partial),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("below -1")));
  const int32_t dims[] = {4, -1};
  EXPECT_THAT(PartialTensorShape::MakePartialShape(dims, 2, &partial), IsOk());
  EXPECT_EQ(partial, PartialTensorShape({4, -1}));

  EXPECT_EQ(*TensorShape::BuildTensorShape(Proto({2, 3})), TensorShape({2, 3}));
  EXPECT_FALSE(TensorShape::BuildTensorShape(Proto({2, -1})).ok());
  EXPECT_TRUE(PartialTensorShape::BuildPartialTensorShape(Proto({}, true))->unknown_rank());
  EXPECT_FALSE(PartialTensorShape::BuildPartialTensorShape(Proto({1}, true)).ok());
  EXPECT_FALSE(TensorShape::IsValid(Proto(std::vector<int64_t>(kMaxDims + 1, 1))));
  EXPECT_EQ(TensorShape(Proto({5})), TensorShape({5}));
  EXPECT_FALSE(TensorShape(Proto({-1})).IsValid());
  EXPECT_EQ(PartialTensorShape(Proto({-1})), PartialTensorShape({-1}));
  EXPECT_TRUE(PartialTensorShape(Proto({-2})).unknown_rank());
  EXPECT_EQ(TensorShape({6, 7}).AsProto().dim(1).size(), 7);
}

TEST(TensorShapeInterface, IteratesOverDimensions) {
  std::vector<int64_t> sizes;
  for (const auto& dim : TensorShape({2, 3})) sizes.push_back(dim.size);
  for (const auto& dim : PartialTensorShape({-1, 4})) sizes.push_back(dim.size);
  for (const auto& dim : TensorShape()) sizes.push_back(dim.size);
  EXPECT_THAT(sizes, ElementsAre(2, 3, -1, 4));
}

TEST(TensorShapeInterface, PartialShapesChangeLikeFullShapes) {
  PartialTensorShape shape({2, -1});
  shape.InsertDim(1, 5);
  EXPECT_EQ(shape, PartialTensorShape({2, 5, -1}));
  shape.RemoveDim(0);
  EXPECT_EQ(shape, PartialTensorShape({5, -1}));
  shape.AppendShape(PartialTensorShape({-1, 3}));
  EXPECT_EQ(shape, PartialTensorShape({5, -1, -1, 3}));
  // Errors change nothing.
  shape.InsertDim(9, 1);
  shape.RemoveDim(4);
  shape.InsertDim(0, -2);
  EXPECT_EQ(shape, PartialTensorShape({5, -1, -1, 3}));
  shape.Clear();
  EXPECT_EQ(shape.dims(), 0);
  EXPECT_TRUE(shape.IsFullyDefined());
}

TEST(TensorShapeInterface, PrintsMessages) {
  EXPECT_EQ(TensorShape::DebugString(Proto({2, -1})), "[2,?]");
  EXPECT_EQ(TensorShape::DebugString(Proto({})), "[]");
  EXPECT_EQ(PartialTensorShape::DebugString(Proto({}, true)), "<unknown>");
}

TEST(TensorShapeInterface, SizesAreASpanAndAVector) {
  const TensorShape shape({2, 3});
  const absl::InlinedVector<int64_t, 4> vector = shape.dim_sizes();
  EXPECT_THAT(vector, ElementsAre(2, 3));
  const absl::Span<const int64_t> span = shape.dim_sizes();
  const std::vector<int64_t> other = {2, 4};
  EXPECT_TRUE(shape.dim_sizes() == span && span == shape.dim_sizes());
  EXPECT_TRUE(shape.dim_sizes() == PartialTensorShape({2, 3}).dim_sizes());
  EXPECT_TRUE(shape.dim_sizes() == vector && vector == shape.dim_sizes());
  EXPECT_TRUE(shape.dim_sizes() != other && other != shape.dim_sizes());
  EXPECT_TRUE(shape.dim_sizes() != TensorShape({3, 2}).dim_sizes());
  EXPECT_THAT(shape.dim_sizes().subspan(1), ElementsAre(3));
  EXPECT_EQ(shape.dim_sizes().front() * shape.dim_sizes().back() * shape.dim_sizes()[0], 12);
  EXPECT_THAT(shape.dim_sizes().first(1), ElementsAre(2));
  EXPECT_THAT(shape.dim_sizes().last(1), ElementsAre(3));
}

}  // namespace
}  // namespace gradflow
