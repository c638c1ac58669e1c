// Tests of the shapes and dimensions that InferenceContext makes, on both sides of each limit.
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/tensor_testutil.h"
#include "tensorflow/core/lib/core/status_test_util.h"
#include "tests/compat/inference_node.h"

namespace tensorflow {
namespace shape_inference {
namespace inference_context_test {

// ---- Shapes ----

TEST(InferenceContextShapes, AreMadeFromOtherForms) {
  TestNode c(Inputs{{1}});
  for (const auto& [rank, expected] :
       {std::pair(int64{-1}, int64{-1}), std::pair(int64{0}, int64{0}),
        std::pair(kMaxRank, kMaxRank), std::pair(kMaxRank + 1, int64{-1})}) {
    EXPECT_EQ(c->Rank(c->UnknownShapeOfRank(rank)), expected);
  }
  const ShapeHandle pair = c->UnknownShapeOfRank(2);
  EXPECT_FALSE(c->Dim(pair, 0).SameHandle(c->Dim(pair, 1)));
  const absl::StatusOr<ShapeHandle> of_shape = c->MakeShapeFromShapeTensor(TensorShape({2, 0}));
  TF_ASSERT_OK(of_shape.status());
  EXPECT_EQ(c->DebugString(*of_shape), "[2,0]");
  EXPECT_EQ(ShapeOf(*c, [&](auto* out) { return c->MakeShapeFromTensorShape({3}, out); }), "[3]");
  EXPECT_EQ(ShapeOf(*c, [&](auto* out) { return c->MakeShapeFromPartialTensorShape({-1}, out); }),
            "[?]");
  TensorShapeProto proto;
  proto.add_dim()->set_size(4);
  const auto of_proto = [&](auto* out) { return c->MakeShapeFromShapeProto(proto, out); };
  EXPECT_EQ(ShapeOf(*c, of_proto), "[4]");
  proto.add_dim()->set_size(-2);
  EXPECT_NE(ShapeOf(*c, of_proto).find("-2"), std::string::npos);
}

TEST(InferenceContextShapes, AreMadeFromTensors) {
  const auto ones = [](int64 count) {
    Tensor tensor(DT_INT32, TensorShape({count}));
    tensor.flat<int32>().setConstant(1);
    return tensor;
  };
  std::string longest = "[1";
  for (int i = 1; i < kMaxRank; ++i) longest += ",1";
  longest += "]";
  const std::string not_a_scalar =
      "Input tensor must be rank 1, or if its rank 0 it must have value -1 (representing an "
      "unknown shape).  Saw value: ";
  const struct {
    Tensor tensor;
    std::string expected;
  } kCases[] = {
      {test::AsTensor<int32>({2, -1, 0}), "[2,?,0]"},
      {test::AsTensor<int64>({int64{1} << 40, -1}), "[1099511627776,?]"},
      {test::AsTensor<float>({2}), "Input tensor must be int32 or int64, but was float"},
      {test::AsTensor<int32>({3, -2}), "Invalid value in tensor used for shape: -2"},
      {test::AsScalar<int32>(-1), "?"},
      {test::AsScalar<int64>(-1), "?"},
      {test::AsScalar<int32>(-2), not_a_scalar + "-2"},
      {test::AsScalar<int32>(0), not_a_scalar + "0"},
      {ones(kMaxRank), longest},
      {ones(kMaxRank + 1), "a shape has at most 254 dimensions, but the tensor has 255 elements"},
  };
  for (const auto& [tensor, expected] : kCases) {
    TestNode c(Inputs{PartialTensorShape(tensor.shape().dim_sizes())}, {&tensor});
    for (const bool scalar_is_unknown : {false, true}) {
      EXPECT_EQ(ShapeOf(*c,
                        [&, s = scalar_is_unknown](ShapeHandle* out) {
                          return s ? c->MakeShapeFromShapeTensorTreatScalarAsUnknownShape(0, out)
                                   : c->MakeShapeFromShapeTensor(0, out);
                        }),
                expected);
    }
    EXPECT_TRUE(c->requested_input_tensor(0));
    EXPECT_TRUE(c->requested_input_tensor_as_partial_shape(0));
    EXPECT_EQ(
        ShapeOf(*c, [&, t = &tensor](
                        ShapeHandle* out) { return c->MakeShapeFromTensor(t, c->input(0), out); }),
        expected);
  }
  TestNode c(Inputs{{1}});
  const Tensor matrix(DT_INT32, TensorShape({1, 2}));
  EXPECT_EQ(
      ShapeOf(*c, [&](auto* out) { return c->MakeShapeFromTensor(&matrix, c->input(0), out); }),
      "Input tensor must be rank 1, but was rank 2");
}

TEST(InferenceContextShapes, AreUnknownForUnknownTensors) {
  const PartialTensorShape unknown;
  const struct {
    PartialTensorShape tensor_shape;
    std::string expected;
    std::string treating_scalars_as_unknown;
  } kCases[] = {
      {{3}, "[?,?,?]", "[?,?,?]"},
      {{0}, "[]", "[]"},
      {{-1}, "?", "?"},
      {unknown, "?", "?"},
      {PartialTensorShape(std::vector<int64>()), "Shape must be rank 1 but is rank 0", "?"},
      {{1, 1}, "Shape must be rank 1 but is rank 2", "Shape must be at most rank 1 but is rank 2"},
      {{255},
       "a shape has at most 254 dimensions, but the tensor has 255 elements",
       "a shape has at most 254 dimensions, but the tensor has 255 elements"},
  };
  for (const auto& [shape, expected, treating_scalars] : kCases) {
    TestNode c(Inputs{shape});
    EXPECT_EQ(ShapeOf(*c, [&](auto* out) { return c->MakeShapeFromShapeTensor(0, out); }),
              expected);
    EXPECT_EQ(ShapeOf(*c,
                      [&](auto* out) {
                        return c->MakeShapeFromShapeTensorTreatScalarAsUnknownShape(0, out);
                      }),
              treating_scalars);
  }
  TestNode longest(Inputs{{254}});
  ShapeHandle out;
  TF_ASSERT_OK(longest->MakeShapeFromShapeTensor(0, &out));
  EXPECT_EQ(longest->Rank(out), 254);
}

TEST(InferenceContextShapes, AreMadeFromPartlyKnownTensors) {
  const Tensor known = test::AsTensor<int32>({4});
  TestNode c(Inputs{{2}, {1}, {1}, {1}}, {nullptr, &known},
             {PartialTensorShape({3, -1}), PartialTensorShape({9}), PartialTensorShape()});
  ShapeHandle out;
  TF_ASSERT_OK(c->MakeShapeFromShapeTensor(0, &out));
  EXPECT_TRUE(out.SameHandle(c->input_tensors_as_shapes()[0]));
  // A known value is preferred to a partly known value. Nothing is known about inputs 2 and 3.
  for (const auto& [i, expected] :
       {std::pair(1, "[4]"), std::pair(2, "[?]"), std::pair(3, "[?]")}) {
    TF_ASSERT_OK(c->MakeShapeFromShapeTensor(i, &out));
    EXPECT_EQ(c->DebugString(out), expected);
  }
}

TEST(InferenceContextShapes, AreMadeFromParts) {
  TestNode c(Inputs{{1, 2, 3, 4, 5}, PartialTensorShape()});
  const ShapeHandle five = c->input(0), unknown = c->input(1);
  constexpr int64 kMin = std::numeric_limits<int64>::min();
  const struct {
    int64 start;
    int64 end;
    int64 stride;
    std::string expected;
  } kCases[] = {
      {-5, 1, 1, "[1]"},
      {0, 4, 1, "[1,2,3,4]"},
      {2, 2, 1, "[]"},
      {5, 9, 1, "[]"},
      {3, 1, -1, "[4,3]"},
      {2, 2, -1, "[]"},
      {kMax, kMax, -1, "[5,4,3,2,1]"},
      {1, -4, -1, "[]"},
      {0, kMax, 4, "[1,5]"},
      {0, kMax, 5, "[1]"},
      {4, kMax, -4, "[5,1]"},
      {0, -6, 1, "Subshape end out of bounds: -6, for shape with rank 5"},
      {kMin, 0, 1, "Subshape start out of bounds: -9223372036854775808, for shape with rank 5"},
      {2, 1, 1,
       "Subshape must have computed start <= end, but is 2 and 1 (computed from start 2 and end 1 "
       "over shape with rank 5)"},
      {-5, -4, -2,
       "Subshape must have computed start >= end since stride is negative, but is 0 and 1 "
       "(computed from start -5 and end -4 over shape with rank 5)"},
  };
  for (const auto& test : kCases) {
    EXPECT_EQ(ShapeOf(*c,
                      [&](auto* out) {
                        return c->Subshape(five, test.start, test.end, test.stride, out);
                      }),
              test.expected);
  }
  ShapeHandle out;
  for (const int64 end : {int64{5}, int64{6}, kMax}) {
    TF_ASSERT_OK(c->Subshape(five, 0, end, &out));
    EXPECT_TRUE(out.SameHandle(five));
  }
  TF_ASSERT_OK(c->Subshape(five, 0, 5, 2, &out));
  EXPECT_EQ(c->DebugString(out), "[1,3,5]");
  TF_ASSERT_OK(c->Subshape(unknown, 0, &out));
  EXPECT_TRUE(out.SameHandle(unknown));
  for (const auto& [start, end, stride] :
       {std::tuple(1, kMax, 1), std::tuple(0, int64{2}, 1), std::tuple(0, kMax, 2)}) {
    TF_ASSERT_OK(c->Subshape(unknown, start, end, stride, &out));
    EXPECT_EQ(c->DebugString(out), "?");
    EXPECT_FALSE(out.SameHandle(unknown));
  }
}

TEST(InferenceContextShapes, AreMadeFromTwoShapesOrAnotherDimension) {
  TestNode c(Inputs{{1, 2}, PartialTensorShape(), {3}});
  const ShapeHandle two = c->input(0), unknown = c->input(1);
  const auto concatenate = [&](ShapeHandle a, ShapeHandle b) {
    return ShapeOf(*c, [&](auto* out) { return c->Concatenate(a, b, out); });
  };
  EXPECT_EQ(concatenate(two, c->input(2)), "[1,2,3]");
  EXPECT_EQ(concatenate(two, unknown), "?");
  EXPECT_EQ(concatenate(unknown, two), "?");
  ShapeHandle longest;
  TF_ASSERT_OK(c->Concatenate(two, c->UnknownShapeOfRank(kMaxRank - 2), &longest));
  EXPECT_EQ(c->Rank(longest), kMaxRank);
  EXPECT_EQ(concatenate(longest, c->input(2)),
            "the concatenated shape has 255 dimensions, more than 254");
  for (const auto& [i, expected] :
       {std::pair(-3, "Out of range dim_index -3 for shape with 2 dimensions"),
        std::pair(-2, "[3,2]"), std::pair(-1, "[1,3]"), std::pair(0, "[3,2]"),
        std::pair(1, "[1,3]"),
        std::pair(2, "Out of range dim_index 2 for shape with 2 dimensions")}) {
    EXPECT_EQ(
        ShapeOf(*c, [&, k = i](
                        auto* out) { return c->ReplaceDim(two, k, c->Dim(c->input(2), 0), out); }),
        expected);
  }
  EXPECT_EQ(ShapeOf(*c, [&](auto* out) { return c->ReplaceDim(unknown, 7, c->MakeDim(1), out); }),
            "?");
}

// ---- Dimensions ----

TEST(InferenceContextDims, AreReadFromTensors) {
  TestNode c(Inputs{{1}});
  const struct {
    Tensor tensor;
    int64 index;  // -9 for a scalar
    std::string expected;
  } kCases[] = {
      {test::AsScalar<int32>(-7), -9, "-7"},
      {test::AsScalar<int64>(kMax), -9, "9223372036854775807"},
      {test::AsScalar<float>(1), -9, "Scalar input must be int32 or int64, but is float"},
      {test::AsTensor<int32>({1}), -9, "Input must be scalar but has rank 1"},
      {test::AsTensor<int32>({3, 4}), 0, "3"},
      {test::AsTensor<int64>({3, kMax}), 1, "9223372036854775807"},
      {test::AsTensor<int64>({3, 4}), 2, "Invalid index 2 for Tensor of size 2"},
      {test::AsTensor<int64>({3, 4}), -1, "Invalid index -1 for Tensor of size 2"},
      {test::AsTensor<float>({3}), 0, "Tensor input must be int32 or int64, but is float"},
      {test::AsScalar<int32>(1), 0, "Input must be 1D but has rank 0"},
  };
  for (const auto& [tensor, index, expected] : kCases) {
    int64 value = 0;
    const absl::Status status = index == -9 ? c->GetScalarFromTensor(&tensor, &value)
                                            : c->GetScalarFromTensor(&tensor, index, &value);
    EXPECT_EQ(status.ok() ? absl::StrCat(value) : std::string(status.message()), expected);
    EXPECT_TRUE(status.ok() || status.code() == error::INVALID_ARGUMENT);
  }
}

TEST(InferenceContextDims, AreMadeFromScalarInputs) {
  const auto dim = [](const Tensor* tensor) {
    TestNode c(Inputs{PartialTensorShape()}, {tensor});
    return DimOf(*c, [&](Dim* out) { return c->MakeDimForScalarInput(0, out); });
  };
  const auto of_value = [&](int32 value) {
    const Tensor tensor = test::AsScalar<int32>(value);
    return dim(&tensor);
  };
  EXPECT_EQ(dim(nullptr), "?");
  EXPECT_EQ(of_value(0), "0");
  EXPECT_EQ(of_value(5), "5");
  EXPECT_EQ(of_value(-1),
            "Dimension size, given by scalar input 0, must be non-negative but is -1");
  const Tensor real = test::AsScalar<float>(1);
  EXPECT_EQ(dim(&real), "Scalar input must be int32 or int64, but is float");

  const auto indexed = [](const Tensor* tensor, int rank) {
    TestNode c(Inputs{PartialTensorShape()}, {tensor});
    return DimOf(
        *c, [&](Dim* out) { return c->MakeDimForScalarInputWithNegativeIndexing(0, rank, out); });
  };
  EXPECT_EQ(indexed(nullptr, 3), "?");
  EXPECT_EQ(indexed(&real, 3), "Scalar input must be int32 or int64, but is float");
  const std::string in_3 = " must be in range [-3, 3)";
  const std::string given = "Dimension size, given by scalar input ";
  const struct {
    int32 value;
    int rank;
    std::string expected;
  } kCases[] = {{0, -1, "0"},
                {7, -1, "7"},
                {-1, -1, "?"},
                {-3, 3, "0"},
                {-1, 3, "2"},
                {0, 3, "0"},
                {2, 3, "2"},
                {3, 3, given + "3" + in_3},
                {-4, 3, given + "-4" + in_3},
                {0, 0, given + "0 must be in range [0, 0)"},
                {-1, 0, given + "-1 must be in range [0, 0)"}};
  for (const auto& [value, rank, expected] : kCases) {
    const Tensor tensor = test::AsScalar<int32>(value);
    EXPECT_EQ(indexed(&tensor, rank), expected) << value << " of " << rank;
  }
}

TEST(InferenceContextDims, HaveArithmetic) {
  using Function = absl::Status (InferenceContext::*)(Dim, DimensionOrConstant, Dim*);
  const Function add = &InferenceContext::Add, subtract = &InferenceContext::Subtract;
  const Function multiply = &InferenceContext::Multiply;
  const Function min = &InferenceContext::Min, max = &InferenceContext::Max;
  // The result is "a" or "b" if it is the same dimension as that operand. Otherwise it is a new
  // dimension.
  const struct {
    Function function;
    int64 a;
    int64 b;
    std::string expected;
  } kCases[] = {
      {add, 0, 5, "b"},
      {add, 5, 0, "a"},
      {add, 0, -1, "b"},
      {add, -1, 0, "a"},
      {add, -1, 2, "?"},
      {add, 2, -1, "?"},
      {add, 1, 2, "3"},
      {add, kMax - 1, 1, absl::StrCat(kMax)},
      {add, kMax, 1, absl::StrCat("Dimension size overflow from adding ", kMax, " and 1")},
      {subtract, 5, 0, "a"},
      {subtract, -1, 0, "a"},
      {subtract, -1, 1, "?"},
      {subtract, 1, -1, "?"},
      {subtract, 5, 3, "2"},
      {subtract, 5, 5, "0"},
      {subtract, 5, 6, "Negative dimension size caused by subtracting 6 from 5"},
      {multiply, 0, -1, "a"},
      {multiply, -1, 1, "a"},
      {multiply, -1, 0, "b"},
      {multiply, 1, -1, "b"},
      {multiply, 1, 7, "b"},
      {multiply, -1, 2, "?"},
      {multiply, 2, -1, "?"},
      {multiply, 3, 4, "12"},
      {multiply, kMax, 2,
       absl::StrCat("Negative dimension size caused by overflow when multiplying ", kMax,
                    " and 2")},
      {min, 0, -1, "a"},
      {min, -1, 0, "b"},
      {min, -1, 3, "?"},
      {min, 3, -1, "?"},
      {min, 3, 4, "a"},
      {min, 4, 3, "b"},
      {min, 3, 3, "a"},
      {max, -1, 3, "?"},
      {max, 3, -1, "?"},
      {max, 3, 4, "b"},
      {max, 4, 3, "a"},
      {max, 3, 3, "a"},
  };
  for (const auto& test : kCases) {
    TestNode c(Inputs{{test.a, test.b}});
    const Dim a = c->Dim(c->input(0), 0), b = c->Dim(c->input(0), 1);
    const std::string text = DimOf(*c, [&](Dim* out) {
      const absl::Status status = ((*c).*test.function)(a, b, out);
      EXPECT_EQ(out->SameHandle(a), test.expected == "a") << test.a << " " << test.b;
      EXPECT_EQ(out->SameHandle(b), test.expected == "b") << test.a << " " << test.b;
      return status;
    });
    EXPECT_EQ(text, test.expected == "a"   ? c->DebugString(a)
                    : test.expected == "b" ? c->DebugString(b)
                                           : test.expected);
  }
}

TEST(InferenceContextDims, AreDivided) {
  TestNode c(Inputs{{6, -1}});
  const Dim six = c->Dim(c->input(0), 0), unknown = c->Dim(c->input(0), 1);
  const struct {
    Dim a;
    DimensionOrConstant b;
    bool evenly;
    std::string expected;
  } kCases[] = {
      {six, 3, true, "2"},
      {six, 4, false, "1"},
      {six, 4, true, "Dimension size must be evenly divisible by 4 but is 6"},
      {six, unknown, true, "?"},
      {unknown, 4, true, "?"},
      {unknown, 0, false, "Divisor must be positive but is 0"},
      // A constant -1 is an ordinary number.
      {six, -1, false, "Divisor must be positive but is -1"},
      {six, six, true, "1"},
  };
  for (const auto& test : kCases) {
    EXPECT_EQ(DimOf(*c, [&](Dim* out) { return c->Divide(test.a, test.b, test.evenly, out); }),
              test.expected);
  }
  Dim out;
  TF_ASSERT_OK(c->Divide(unknown, 1, true, &out));
  EXPECT_TRUE(out.SameHandle(unknown));
}

}  // namespace inference_context_test
}  // namespace shape_inference
}  // namespace tensorflow
