// Tests of ops that look up elements: one-hot, where, unique, searchsorted and edit distance.
#include "gradflow/testing/kernel_test.h"
#include "tests/ops/common/error_case.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

// ---- OneHot ----

OpTester OneHot(const Tensor& indices, int32_t depth, const Tensor& on, const Tensor& off,
                int64_t axis) {
  return OpTester("OneHot")
      .Input(indices)
      .Input(AsScalar<int32_t>(depth))
      .Input(on)
      .Input(off)
      .Attr("axis", axis);
}

TEST(OneHot, SetsOneElementInEveryType) {
  const std::vector<int64_t> indices = {0, 2, -1, 5, 1, 3};
  for (const DataType dtype : TensorTypes()) {
    SCOPED_TRACE(DataTypeString(dtype));
    // Element 0 is on, element 1 is off.
    const Tensor values = DistinctTensor(dtype, {2});
    const Tensor on = *values.Slice(0, 1).Reshaped({});
    const Tensor off = *values.Slice(1, 2).Reshaped({});
    for (int axis = -1; axis < 3; ++axis) {
      const int at = axis < 0 ? 2 : axis;
      TensorShape shape({2, 3});
      shape.InsertDim(at, 4);
      EXPECT_THAT(OneHot(AsTensor<int32_t>(indices, {2, 3}), 4, on, off, axis).RunOne(),
                  TensorEq(Rearranged(values, shape, [&](std::vector<int64_t> index) {
                    const int64_t depth = index[at];
                    index.erase(index.begin() + at);
                    return indices[index[0] * 3 + index[1]] == depth ? 0 : 1;
                  })));
    }
  }
}

TEST(OneHot, TakesIndicesOfEveryTypeScalarsAndNoDepth) {
  const Tensor on = AsScalar<float>(5);
  const Tensor off = AsScalar<float>(1);
  const Tensor expected = AsTensor<float>({1, 5, 1});
  EXPECT_THAT(OneHot(AsScalar<uint8_t>(1), 3, on, off, -1).RunOne(), TensorEq(expected));
  EXPECT_THAT(OneHot(AsScalar<int8_t>(1), 3, on, off, 0).RunOne(), TensorEq(expected));
  EXPECT_THAT(OneHot(AsScalar<int64_t>(1), 3, on, off, 0).RunOne(), TensorEq(expected));
  EXPECT_THAT(OneHot(AsTensor<int32_t>({0}), 0, on, off, -1).RunOne(),
              TensorEq(Tensor(DT_FLOAT, {1, 0})));
}

TEST(OneHot, RejectsBadArguments) {
  const Tensor indices = AsTensor<int32_t>({0, 1});
  const Tensor one = AsScalar<float>(1);
  ExpectErrors({
      {"depth", OneHot(indices, -1, one, one, -1), "depth must not be negative, but is -1"},
      {"axis", OneHot(indices, 2, one, one, 2), "axis must be in [-1, 1], but is 2"},
      {"negative axis", OneHot(indices, 2, one, one, -2), "axis must be"},
      {"on", OneHot(indices, 2, AsTensor<float>({1}), one, -1),
       "Shape must be rank 0 but is rank 1: on_value has shape [1]"},
  });
  EXPECT_THAT(OpTester("OneHot")
                  .UnknownInput(DT_INT32, {-1, 3})
                  .UnknownInput(DT_INT32)
                  .Input(one)
                  .Input(one)
                  .Attr("axis", int64_t{1})
                  .InferShape(),
              ShapeIs("[?,?,3]"));
}

// ---- Where ----

TEST(Where, FindsTrueElementsInEveryType) {
  const auto test = [](auto tag) {
    using T = typename decltype(tag)::type;
    SCOPED_TRACE(DataTypeString(DataTypeToEnum<T>::value));
    using L = typename Literal<T>::type;
    EXPECT_THAT(OpTester("Where").Input<T>({L(1), L(0), L(0), L(1)}, {2, 2}).ShapeIsData().RunOne(),
                TensorEq(AsTensor<int64_t>({0, 0, 1, 1}, {2, 2})));
  };
  ForEachType(NumberTypes(), test);
  ForEachType(QuantizedTypes(), test);
  test(TypeTag<bool>());
}

TEST(Where, TakesNanAndTinyNumbersForTrue) {
  EXPECT_THAT(OpTester("Where").Input<float>({kNan, 0, -0.0f, 1e-40f, kInf}).ShapeIsData().RunOne(),
              TensorEq(AsTensor<int64_t>({0, 3, 4}, {3, 1})));
  EXPECT_THAT(
      OpTester("Where").Input<complex64>({{0, 0}, {0, 1}, {-0.0f, 0}}).ShapeIsData().RunOne(),
      TensorEq(AsTensor<int64_t>({1}, {1, 1})));
}

TEST(Where, FindsInLargeAndEmptyTensors) {
  Tensor input(DT_INT16, {50, 40, 60});
  std::vector<int64_t> expected;
  for (int64_t i = 0; i < input.NumElements(); ++i) {
    const bool is_true = i * 2654435761u % 7 < 2;
    input.flat<int16_t>()(i) = is_true ? 3 : 0;
    if (is_true) expected.insert(expected.end(), {i / 2400, i / 60 % 40, i % 60});
  }
  EXPECT_THAT(OpTester("Where").Input(input).ShapeIsData().RunOne(),
              TensorEq(AsTensor<int64_t>(
                  expected, TensorShape({static_cast<int64_t>(expected.size()) / 3, 3}))));
  EXPECT_THAT(OpTester("Where").Input(Tensor(DT_BOOL, {0, 3})).ShapeIsData().RunOne(),
              TensorEq(Tensor(DT_INT64, {0, 2})));
  EXPECT_THAT(
      OpTester("Where").Input(AsScalar<bool>(true)).Run(),
      StatusIs(kInvalidArgument,
               HasSubstr("Shape must be at least rank 1 but is rank 0: input has shape []")));
  EXPECT_THAT(OpTester("Where").UnknownInput(DT_BOOL, {-1, 4}).InferShape(), ShapeIs("[?,2]"));
}

// ---- Unique, ListDiff ----

OpTester Unique(const char* op, const Tensor& x) { return OpTester(op).Input(x).ShapeIsData(); }
OpTester UniqueV2(const char* op, const Tensor& x, const std::vector<int64_t>& axis) {
  return Unique(op, x).Input(AsTensor<int64_t>(axis));
}

TEST(Unique, NumbersElementsByFirstAppearanceInEveryType) {
  for (const DataType dtype : TensorTypes()) {
    // All distinct elements of this type are NaN.
    if (dtype == DT_COMPLEX128) continue;
    SCOPED_TRACE(DataTypeString(dtype));
    const Tensor pair = DistinctTensor(dtype, {2});
    const Tensor x = Rearranged(pair, {5}, [](const std::vector<int64_t>& index) {
      const int64_t picks[] = {1, 0, 0, 1, 0};
      return picks[index[0]];
    });
    const Tensor y =
        Rearranged(pair, {2}, [](const std::vector<int64_t>& index) { return 1 - index[0]; });
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> outputs,
                                  Unique("UniqueWithCounts", x).Run());
    EXPECT_THAT(outputs[0], TensorEq(y));
    EXPECT_THAT(outputs[1], TensorEq(AsTensor<int32_t>({0, 1, 1, 0, 1})));
    EXPECT_THAT(outputs[2], TensorEq(AsTensor<int32_t>({2, 3})));
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> two,
                                  Unique("Unique", x).Attr("out_idx", DT_INT64).Run());
    EXPECT_THAT(two[0], TensorEq(y));
    EXPECT_THAT(two[1], TensorEq(AsTensor<int64_t>({0, 1, 1, 0, 1})));
  }
}

TEST(Unique, TreatsZerosAndNansAsOperatorEquals) {
  const auto expect = [](const Tensor& x) {
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> outputs, Unique("Unique", x).Run());
    EXPECT_THAT(outputs[1], TensorEq(AsTensor<int32_t>({0, 1, 1, 2, 3})));
  };
  expect(AsTensor<float>({kNan, 0, -0.0f, kNan, 1}));
  expect(AsTensor<double>({kNan, 0, -0.0, kNan, 1}));
  expect(AsTensor<half>({kNan, 0, -0.0f, kNan, 1}));
  expect(AsTensor<bfloat16>({kNan, 0, -0.0f, kNan, 1}));
  expect(AsTensor<complex64>({{kNan, 0}, {0, 1}, {-0.0f, 1}, {kNan, 0}, {1, 0}}));
  expect(AsTensor<complex128>({{kNan, 0}, {0, 1}, {-0.0, 1}, {kNan, 0}, {1, 0}}));
}

TEST(Unique, FindsManyElementsAndNone) {
  std::vector<int64_t> values;
  std::vector<int64_t> ids;
  std::map<int64_t, int64_t> first;
  for (int64_t i = 0; i < 100000; ++i) {
    values.push_back(i * 7919 % 30011);
    ids.push_back(first.emplace(values.back(), first.size()).first->second);
  }
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> outputs,
                                Unique("Unique", AsTensor<int64_t>(values)).Run());
  EXPECT_EQ(outputs[0].NumElements(), 30011);
  EXPECT_THAT(outputs[1], TensorEq(AsTensor<int32_t>(ids)));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> none,
                                Unique("UniqueWithCounts", Tensor(DT_STRING, {0})).Run());
  for (const Tensor& output : none) EXPECT_EQ(output.NumElements(), 0);
}

TEST(UniqueV2, ComparesSlicesAlongEveryAxis) {
  // Slices 0 and 2 are equal along axis 1. Slices 0 and 1 are equal along axis 0.
  const Tensor x = AsTensor<int32_t>({1, 2, 1, 1, 2, 1, 0, 2, 0}, {3, 3});
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> columns,
                                UniqueV2("UniqueWithCountsV2", x, {1}).Run());
  EXPECT_THAT(columns[0], TensorEq(AsTensor<int32_t>({1, 2, 1, 2, 0, 2}, {3, 2})));
  EXPECT_THAT(columns[1], TensorEq(AsTensor<int32_t>({0, 1, 0})));
  EXPECT_THAT(columns[2], TensorEq(AsTensor<int32_t>({2, 1})));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> rows,
                                UniqueV2("UniqueV2", x, {-2}).Run());
  EXPECT_THAT(rows[0], TensorEq(AsTensor<int32_t>({1, 2, 1, 0, 2, 0}, {2, 3})));
  EXPECT_THAT(rows[1], TensorEq(AsTensor<int32_t>({0, 0, 1})));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> flat,
                                UniqueV2("UniqueV2", AsTensor<tstring>({"a", "b", "a"}), {}).Run());
  EXPECT_THAT(flat[0], TensorEq(AsTensor<tstring>({"a", "b"})));
  // Slices without elements are equal.
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> empty,
                                UniqueV2("UniqueV2", Tensor(DT_FLOAT, {3, 0}), {0}).Run());
  EXPECT_THAT(empty[0], TensorEq(Tensor(DT_FLOAT, {1, 0})));
  EXPECT_THAT(empty[1], TensorEq(AsTensor<int32_t>({0, 0, 0})));
}

TEST(Unique, RejectsBadArguments) {
  const Tensor x = Iota<float>({2, 3});
  ExpectErrors({
      {"matrix", Unique("Unique", x), "Shape must be rank 1 but is rank 2: x has shape [2,3]"},
      {"axis", UniqueV2("UniqueV2", x, {2}), "axis 2 is out of range [-2, 2)"},
      {"axes", UniqueV2("UniqueV2", x, {0, 1}), "axis must have at most one element, but has 2"},
      {"no axis", UniqueV2("UniqueWithCountsV2", x, {}),
       "Shape must be rank 1 but is rank 2: x, without an axis, has shape [2,3]"},
  });
}

TEST(ListDiff, KeepsElementsThatTheOtherListLacks) {
  const auto diff = [](const Tensor& x, const Tensor& y) {
    return OpTester("ListDiff").Input(x).Input(y).ShapeIsData();
  };
  GRADFLOW_ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> numbers,
      diff(AsTensor<float>({kNan, 1, 0, 2, 1}), AsTensor<float>({kNan, -0.0f, 2})).Run());
  EXPECT_THAT(numbers[0], TensorEq(AsTensor<float>({kNan, 1, 1})));
  EXPECT_THAT(numbers[1], TensorEq(AsTensor<int32_t>({0, 1, 4})));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> strings,
                                diff(AsTensor<tstring>({"a", "b"}), AsTensor<tstring>({"b"}))
                                    .Attr("out_idx", DT_INT64)
                                    .Run());
  EXPECT_THAT(strings[0], TensorEq(AsTensor<tstring>({"a"})));
  EXPECT_THAT(strings[1], TensorEq(AsTensor<int64_t>({0})));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> empty,
                                diff(Tensor(DT_INT32, {0}), Tensor(DT_INT32, {0})).Run());
  EXPECT_EQ(empty[0].NumElements(), 0);
  EXPECT_THAT(diff(Iota<float>({1, 2}), Iota<float>({2})).Run(),
              StatusIs(kInvalidArgument, "Shape must be rank 1 but is rank 2: x has shape [1,2]"));
}

TEST(Unique, TreatsSlicesWithoutElementsAsEqual) {
  constexpr int64_t kHuge = int64_t{1} << 62;
  const struct {
    TensorShape x;
    int64_t axis;
    TensorShape y;
    std::vector<int32_t> idx;
  } cases[] = {
      {{2, 3, 0}, 1, {2, 1, 0}, {0, 0, 0}},
      {{0, 3}, 1, {0, 1}, {0, 0, 0}},
      {{kHuge, 1, 0}, 1, {kHuge, 1, 0}, {0}},
      {{kHuge, kHuge, 0, 2}, 3, {kHuge, kHuge, 0, 1}, {0, 0}},
      {{0, kHuge, kHuge}, 0, {0, kHuge, kHuge}, {}},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.x.DebugString());
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> outputs,
                                  UniqueV2("UniqueV2", Tensor(DT_FLOAT, c.x), {c.axis}).Run());
    EXPECT_THAT(outputs[0], TensorEq(Tensor(DT_FLOAT, c.y)));
    EXPECT_THAT(outputs[1],
                TensorEq(AsTensor<int32_t>(c.idx, {static_cast<int64_t>(c.idx.size())})));
  }
}

// All NaNs have the same hash, so a hash table of NaNs would take quadratic time.
TEST(Unique, HandlesManyNansInLinearTime) {
  constexpr int64_t kCount = 1 << 20;
  Tensor x(DT_FLOAT, {kCount});
  std::fill_n(x.flat<float>().data(), kCount, kNan);
  x.flat<float>()(5) = 1;
  x.flat<float>()(kCount - 1) = 1;
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> outputs, Unique("Unique", x).Run());
  EXPECT_EQ(outputs[0].NumElements(), kCount - 1);
  EXPECT_EQ(outputs[1].flat<int32_t>()(kCount - 2), kCount - 2);
  EXPECT_EQ(outputs[1].flat<int32_t>()(kCount - 1), 5);
  GRADFLOW_EXPECT_OK(OpTester("ListDiff").Input(x).Input(x).ShapeIsData().Run().status());
}

// ---- UpperBound, LowerBound ----

OpTester Bound(const char* op, const Tensor& sorted, const Tensor& values) {
  return OpTester(op).Input(sorted).Input(values);
}

TEST(Bounds, FindPositionsInEveryType) {
  ForEachType(RealTypes(), [](auto tag) {
    using T = typename decltype(tag)::type;
    SCOPED_TRACE(DataTypeString(DataTypeToEnum<T>::value));
    const Tensor sorted = AsTensor<T>({0, 3, 9, 9, 10, 1, 2, 3, 4, 5}, {2, 5});
    const Tensor values = AsTensor<T>({2, 4, 9, 0, 2, 6}, {2, 3});
    EXPECT_THAT(Bound("UpperBound", sorted, values).RunOne(),
                TensorEq(AsTensor<int32_t>({1, 2, 4, 0, 2, 5}, {2, 3})));
    EXPECT_THAT(Bound("LowerBound", sorted, values).Attr("out_type", DT_INT64).RunOne(),
                TensorEq(AsTensor<int64_t>({1, 2, 2, 0, 1, 5}, {2, 3})));
  });
}

TEST(Bounds, FindInEmptyRows) {
  EXPECT_THAT(
      Bound("LowerBound", Tensor(DT_FLOAT, {1, 0}), AsTensor<float>({1, 2}, {1, 2})).RunOne(),
      TensorEq(AsTensor<int32_t>({0, 0}, {1, 2})));
  EXPECT_THAT(Bound("UpperBound", Iota<float>({2, 3}), Tensor(DT_FLOAT, {2, 0})).RunOne(),
              TensorEq(Tensor(DT_INT32, {2, 0})));
}

TEST(Bounds, RejectBadShapes) {
  ExpectErrors({
      {"rank", Bound("LowerBound", Iota<float>({3}), Iota<float>({1, 3})),
       "Shape must be rank 2 but is rank 1: sorted_inputs has shape [3]"},
      {"rows", Bound("UpperBound", Iota<float>({1, 3}), Iota<float>({2, 3})),
       "sorted_inputs and values must have the same number of rows, but have shapes [1,3] and "
       "[2,3]"},
  });
}

// ---- EditDistance ----

struct Sparse {
  std::vector<int64_t> indices;
  Tensor values;
  std::vector<int64_t> shape;
};
OpTester EditDistance(const Sparse& hypothesis, const Sparse& truth, bool normalize = true) {
  OpTester tester("EditDistance");
  for (const Sparse& s : {hypothesis, truth}) {
    const int64_t rank = static_cast<int64_t>(s.shape.size());
    tester.Input(AsTensor<int64_t>(s.indices, {s.values.NumElements(), rank}))
        .Input(s.values)
        .Input(AsTensor<int64_t>(s.shape));
  }
  return tester.Attr("normalize", normalize);
}

// The expected values are results of TensorFlow 2.21.
TEST(EditDistance, HasTheValuesOfTensorFlow) {
  const Sparse hypothesis = {{0, 0, 1, 0, 1, 1}, AsTensor<tstring>({"a", "b", "c"}), {2, 2}};
  const Sparse truth = {{0, 0, 0, 1, 1, 0}, AsTensor<tstring>({"a", "x", "b"}), {2, 2}};
  EXPECT_THAT(EditDistance(hypothesis, truth).RunOne(), TensorEq(AsTensor<float>({0.5f, 1})));
  EXPECT_THAT(EditDistance(hypothesis, truth, false).RunOne(), TensorEq(AsTensor<float>({1, 1})));
  const Sparse first = {{0, 0}, AsTensor<tstring>({"a"}), {3, 2}};
  const Sparse second = {{1, 0}, AsTensor<tstring>({"a"}), {2, 5}};
  EXPECT_THAT(EditDistance(first, second).RunOne(), TensorEq(AsTensor<float>({kInf, 1, 0})));
  EXPECT_THAT(EditDistance({{0, 0, 0}, AsTensor<float>({1}), {1, 2, 2}},
                           {{0, 1, 0}, AsTensor<float>({1}), {1, 2, 1}})
                  .RunOne(),
              TensorEq(AsTensor<float>({kInf, 1}, {1, 2})));
  EXPECT_THAT(EditDistance({{0, 0}, AsTensor<float>({kNan}), {1, 2}},
                           {{0, 0}, AsTensor<float>({kNan}), {1, 2}})
                  .RunOne(),
              TensorEq(AsTensor<float>({1})));
}

TEST(EditDistance, AgreesWithTheRecursion) {
  const std::string a = "intention and more";
  const std::string b = "execution of much";
  const auto sparse = [](const std::string& text) {
    Sparse s;
    s.values = AsTensor<int8_t>(std::vector<int8_t>(text.begin(), text.end()));
    for (size_t i = 0; i < text.size(); ++i) {
      s.indices.insert(s.indices.end(), {0, static_cast<int64_t>(i)});
    }
    s.shape = {1, static_cast<int64_t>(text.size())};
    return s;
  };
  std::vector<std::vector<int>> d(a.size() + 1, std::vector<int>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = static_cast<int>(i + j);
      } else {
        d[i][j] = std::min(
            {d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      }
    }
  }
  EXPECT_THAT(EditDistance(sparse(a), sparse(b), false).RunOne(),
              TensorEq(AsTensor<float>({static_cast<float>(d[a.size()][b.size()])})));
}

TEST(EditDistance, RejectsBadArguments) {
  const Sparse good = {{0, 0}, AsTensor<float>({1}), {1, 2}};
  ExpectErrors({
      {"rank", EditDistance({{0}, AsTensor<float>({1}), {1}}, {{0}, AsTensor<float>({1}), {1}}),
       "hypothesis_shape must have 2 to 254 elements, a batch and a sequence, but has 1"},
      {"ranks", EditDistance(good, {{0, 0, 0}, AsTensor<float>({1}), {1, 1, 2}}),
       "hypothesis_shape and truth_shape must have the same length, but have 2 and 3 elements"},
      {"negative", EditDistance(good, {{0, 0}, AsTensor<float>({1}), {1, -2}}),
       "truth_shape[1] must not be negative, but is -2"},
  });
  EXPECT_THAT(EditDistance({{5, 0}, AsTensor<float>({1}), {1, 2}}, good).Run(),
              StatusIs(kInvalidArgument, "hypothesis_indices[0,0] = 5 is not in [0, 1)"));
  EXPECT_THAT(EditDistance({{1, 0, 0, 0}, AsTensor<float>({1, 2}), {2, 2}}, good).Run(),
              StatusIs(kInvalidArgument,
                       "hypothesis_indices must be in row-major order, but row 1 precedes row 0"));
}

// ---- BroadcastArgs, BroadcastGradientArgs, UnravelIndex ----

TEST(BroadcastArgs, ReturnsTheShape) {
  const auto args = [](const char* op, const std::vector<int64_t>& a,
                       const std::vector<int64_t>& b) {
    return OpTester(op).Input(AsTensor<int64_t>(a)).Input(AsTensor<int64_t>(b)).ShapeIsData();
  };
  EXPECT_THAT(args("BroadcastArgs", {2, 1}, {3, 1, 4}).RunOne(),
              TensorEq(AsTensor<int64_t>({3, 2, 4})));
  EXPECT_THAT(args("BroadcastArgs", {}, {0, 1}).RunOne(), TensorEq(AsTensor<int64_t>({0, 1})));
  EXPECT_THAT(args("BroadcastArgs", {2, 2}, {3, 1, 4}).Run(),
              StatusIs(kInvalidArgument, "shapes [2,2] and [3,1,4] cannot be broadcast together"));
  EXPECT_THAT(args("BroadcastArgs", {-1}, {3}).Run(), StatusIs(kInvalidArgument));
  EXPECT_THAT(
      OpTester("BroadcastArgs").Input(AsScalar<int32_t>(2)).Input<int32_t>({2}).Run(),
      StatusIs(kInvalidArgument, HasSubstr("Shape must be rank 1 but is rank 0: s0 has shape []")));
  // The expected values are results of TensorFlow 2.21.
  const struct {
    std::vector<int64_t> s0, s1, r0, r1;
  } cases[] = {
      {{2, 1, 1}, {3, 1}, {1, 2}, {0, 2}},
      {{2, 3, 5}, {1}, {}, {0, 1, 2}},
      {{1, 1}, {1, 1}, {}, {}},
      {{0, 1}, {1, 1}, {1}, {0, 1}},
      {{1}, {1, 1}, {0, 1}, {0, 1}},
      {{}, {1, 2}, {0, 1}, {0}},
      {{2, 1}, {2, 1}, {}, {}},
  };
  for (const auto& c : cases) {
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> axes,
                                  args("BroadcastGradientArgs", c.s0, c.s1).Run());
    EXPECT_THAT(axes[0], TensorEq(AsTensor<int64_t>(c.r0)));
    EXPECT_THAT(axes[1], TensorEq(AsTensor<int64_t>(c.r1)));
  }
}

TEST(UnravelIndex, SplitsPositions) {
  const auto unravel = [](const Tensor& indices, const std::vector<int64_t>& dims) {
    return OpTester("UnravelIndex").Input(indices).Input(AsTensor<int32_t>(dims));
  };
  EXPECT_THAT(unravel(AsTensor<int32_t>({22, 41, 37}), {7, 6}).RunOne(),
              TensorEq(AsTensor<int32_t>({3, 6, 6, 4, 5, 1}, {2, 3})));
  EXPECT_THAT(unravel(AsScalar<int32_t>(22), {7, 6}).RunOne(), TensorEq(AsTensor<int32_t>({3, 4})));
  EXPECT_THAT(unravel(AsTensor<int32_t>({1, 42}), {7, 6}).Run(),
              StatusIs(kInvalidArgument, "indices[1] = 42 is not in [0, 42), the product of dims"));
  EXPECT_THAT(unravel(AsScalar<int32_t>(-1), {7}).Run(),
              StatusIs(kInvalidArgument, HasSubstr("indices = -1 is not in [0, 7)")));
  EXPECT_THAT(unravel(AsTensor<int32_t>({0}), {7, 0}).Run(),
              StatusIs(kInvalidArgument, "dims[1] must be positive, but is 0"));
  EXPECT_THAT(unravel(AsTensor<int32_t>({0}, {1, 1}), {7}).Run(),
              StatusIs(kInvalidArgument,
                       "Shape must be at most rank 1 but is rank 2: indices has shape [1,1]"));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
