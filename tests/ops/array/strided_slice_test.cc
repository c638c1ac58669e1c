#include <random>

#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

struct Masks {
  int begin = 0;
  int end = 0;
  int ellipsis = 0;
  int new_axis = 0;
  int shrink_axis = 0;
};

OpTester StridedSlice(const Tensor& input, const std::vector<int64_t>& begin,
                      const std::vector<int64_t>& end, const std::vector<int64_t>& strides,
                      const Masks& masks = {}) {
  return OpTester("StridedSlice")
      .Input(input)
      .Input(AsTensor<int64_t>(begin))
      .Input(AsTensor<int64_t>(end))
      .Input(AsTensor<int64_t>(strides))
      .Attr("begin_mask", masks.begin)
      .Attr("end_mask", masks.end)
      .Attr("ellipsis_mask", masks.ellipsis)
      .Attr("new_axis_mask", masks.new_axis)
      .Attr("shrink_axis_mask", masks.shrink_axis);
}

// Returns the indices of Python's range(*slice(begin, end, stride).indices(size)).
std::vector<int64_t> Indices(int64_t size, int64_t begin, int64_t end, int64_t stride,
                             bool begin_open, bool end_open) {
  std::vector<int64_t> indices;
  if (begin < 0) begin += size;
  if (end < 0) end += size;
  if (begin_open) begin = stride > 0 ? -1000 : 1000;
  if (end_open) end = stride > 0 ? 1000 : -1000;
  // Iterates over all indices and keeps those in range.
  if (stride > 0) {
    for (int64_t i = std::max<int64_t>(begin, 0); i < std::min(end, size); i += stride) {
      indices.push_back(i);
    }
  } else {
    for (int64_t i = std::min(begin, size - 1); i > std::max<int64_t>(end, -1); i += stride) {
      indices.push_back(i);
    }
  }
  return indices;
}

TEST(StridedSlice, AgreesWithPythonOnOneDimension) {
  for (const int64_t size : {0, 1, 4}) {
    const Tensor input = Iota<int32_t>({size});
    for (int64_t begin = -6; begin <= 6; ++begin) {
      for (int64_t end = -6; end <= 6; ++end) {
        for (const int64_t stride : {1, 2, 3, 7, -1, -2, -3, -7}) {
          for (int mask = 0; mask < 4; ++mask) {
            SCOPED_TRACE(
                absl::StrCat("[", begin, ":", end, ":", stride, "] of ", size, ", masks ", mask));
            const std::vector<int64_t> indices =
                Indices(size, begin, end, stride, (mask & 1) != 0, (mask & 2) != 0);
            GRADFLOW_ASSERT_OK_AND_ASSIGN(
                const Tensor output,
                StridedSlice(input, {begin}, {end}, {stride}, {mask & 1, (mask & 2) >> 1})
                    .RunOne());
            EXPECT_THAT(output, TensorEq(AsTensor<int32_t>(indices)));
          }
        }
      }
    }
  }
}

TEST(StridedSlice, AgreesWithPythonInEveryType) {
  for (const DataType dtype : TensorTypes()) {
    SCOPED_TRACE(DataTypeString(dtype));
    const Tensor input = DistinctTensor(dtype, {4, 5, 6});
    // input[::-1, 1:-1, ::2]
    EXPECT_THAT(StridedSlice(input, {0, 1, 0}, {0, -1, 0}, {-1, 1, 2}, {0b101, 0b101}).RunOne(),
                TensorEq(Rearranged(input, {4, 3, 3}, [](const std::vector<int64_t>& index) {
                  return ((3 - index[0]) * 5 + index[1] + 1) * 6 + 2 * index[2];
                })));
  }
}

TEST(StridedSlice, AgreesWithPythonOnRandomSlices) {
  std::mt19937 random(1);
  const auto uniform = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % (high - low + 1));
  };
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    const int rank = static_cast<int>(uniform(1, 4));
    DimVector dims;
    std::vector<int64_t> begin, end, strides;
    std::vector<std::vector<int64_t>> indices;
    DimVector result;
    Masks masks;
    for (int d = 0; d < rank; ++d) {
      dims.push_back(uniform(1, 6));
      begin.push_back(uniform(-7, 7));
      end.push_back(uniform(-7, 7));
      strides.push_back(uniform(1, 3) * (random() % 2 == 0 ? 1 : -1));
      const bool begin_open = random() % 3 == 0;
      const bool end_open = random() % 3 == 0;
      masks.begin |= begin_open << d;
      masks.end |= end_open << d;
      indices.push_back(Indices(dims[d], begin[d], end[d], strides[d], begin_open, end_open));
      result.push_back(static_cast<int64_t>(indices[d].size()));
    }
    const Tensor input = DistinctTensor(DT_INT16, TensorShape(dims));
    EXPECT_THAT(
        StridedSlice(input, begin, end, strides, masks).RunOne(),
        TensorEq(Rearranged(input, TensorShape(result), [&](const std::vector<int64_t>& index) {
          int64_t from = 0;
          for (int d = 0; d < rank; ++d) from = from * dims[d] + indices[d][index[d]];
          return from;
        })));
  }
}

TEST(StridedSlice, ShrinksInsertsAndSkipsDimensions) {
  const Tensor input = Iota<float>({2, 3, 4});
  const auto at = [](int64_t i, int64_t j, int64_t k) { return (i * 3 + j) * 4 + k; };
  // input[1]
  EXPECT_THAT(StridedSlice(input, {1}, {2}, {1}, {0, 0, 0, 0, 1}).RunOne(),
              TensorEq(Iota<float>({3, 4}, 12)));
  // input[-1, ..., -2]
  EXPECT_THAT(
      StridedSlice(input, {-1, 0, -2}, {0, 0, 0}, {1, 1, 1}, {0, 0, 0b010, 0, 0b101}).RunOne(),
      TensorEq(Rearranged(input, {3}, [&](auto& index) { return at(1, index[0], 2); })));
  // input[..., newaxis, 1:3]
  EXPECT_THAT(
      StridedSlice(input, {0, 0, 1}, {0, 0, 3}, {1, 1, 1}, {0, 0, 0b001, 0b010, 0}).RunOne(),
      TensorEq(Rearranged(input, {2, 3, 1, 2},
                          [&](auto& index) { return at(index[0], index[1], index[3] + 1); })));
  // input[newaxis, 0, newaxis]
  EXPECT_THAT(
      StridedSlice(input, {0, 0, 0}, {0, 0, 0}, {1, 1, 1}, {0, 0, 0, 0b101, 0b010}).RunOne(),
      TensorEq(Iota<float>({1, 1, 3, 4})));
  // input[...] with an empty ellipsis
  EXPECT_THAT(
      StridedSlice(input, {0, 0, 0, 0}, {1, 2, 9, 3}, {1, 1, 1, 1}, {0, 0, 0b0100, 0, 0}).RunOne(),
      TensorEq(Rearranged(input, {1, 2, 3},
                          [&](auto& index) { return at(index[0], index[1], index[2]); })));
  // A scalar: input[newaxis, ...]
  EXPECT_THAT(
      StridedSlice(AsScalar<tstring>("x"), {0, 0}, {0, 0}, {1, 1}, {0, 0, 0b10, 0b01}).RunOne(),
      TensorEq(AsTensor<tstring>({"x"})));
  // Everything: input[:]
  EXPECT_THAT(StridedSlice(input, {}, {}, {}).RunOne(), TensorEq(input));
}

TEST(StridedSlice, ShrinkingWinsOverBeginMaskAndNewAxisOverShrinking) {
  const Tensor input = Iota<float>({3});
  EXPECT_THAT(StridedSlice(input, {2}, {0}, {1}, {1, 1, 0, 0, 1}).RunOne(),
              TensorEq(AsScalar<float>(2)));
  EXPECT_THAT(StridedSlice(input, {2}, {0}, {1}, {0, 0, 0, 1, 1}).RunOne(),
              TensorEq(Iota<float>({1, 3})));
}

TEST(StridedSlice, TakesInt16AndInt32) {
  EXPECT_THAT(OpTester("StridedSlice")
                  .Input(Iota<float>({9}))
                  .Input(AsTensor<int16_t>({8}))
                  .Input(AsTensor<int16_t>({0}))
                  .Input(AsTensor<int16_t>({-4}))
                  .RunOne(),
              TensorEq(AsTensor<float>({8, 4})));
  EXPECT_THAT(OpTester("StridedSlice")
                  .Input(Iota<float>({9}))
                  .Input(AsTensor<int32_t>({1}))
                  .Input(AsTensor<int32_t>({INT32_MAX}))
                  .Input(AsTensor<int32_t>({INT32_MAX}))
                  .RunOne(),
              TensorEq(AsTensor<float>({1})));
}

TEST(StridedSlice, SurvivesExtremeIndices) {
  const Tensor input = Iota<float>({3});
  for (const int64_t a : {INT64_MIN, INT64_MAX}) {
    for (const int64_t b : {INT64_MIN, INT64_MAX}) {
      for (const int64_t stride : {INT64_MIN, INT64_MIN + 1, INT64_MAX, int64_t{-1}, int64_t{1}}) {
        GRADFLOW_EXPECT_OK(StridedSlice(input, {a}, {b}, {stride}).Run());
      }
    }
  }
  EXPECT_THAT(StridedSlice(input, {INT64_MAX}, {INT64_MIN}, {-1}).RunOne(),
              TensorEq(AsTensor<float>({2, 1, 0})));
  const Tensor empty(DT_FLOAT, {0, INT64_MAX});
  EXPECT_THAT(StridedSlice(empty, {0, INT64_MAX}, {0, INT64_MIN}, {-1, -1}).RunOne(),
              TensorEq(empty));
}

TEST(StridedSlice, RejectsBadArguments) {
  const Tensor input = Iota<float>({2, 3});
  const std::vector<int64_t> many(32, 0);
  const struct {
    OpTester tester;
    const char* error;
  } cases[] = {
      {StridedSlice(input, {0}, {1}, {0}), "strides[0] must not be 0"},
      {StridedSlice(input, {0, 3}, {1, 0}, {1, 1}, {0, 0, 0, 0, 0b10}),
       "slice index begin[1] = 3 of dimension 1 is out of range [-3, 3)"},
      {StridedSlice(input, {-3}, {1}, {1}, {0, 0, 0, 0, 1}),
       "slice index begin[0] = -3 of dimension 0 is out of range [-2, 2)"},
      {StridedSlice(input, {0}, {1}, {-1}, {0, 0, 0, 0, 1}), "strides[0] must be positive"},
      {StridedSlice(input, {0, 0, 0}, {1, 1, 1}, {1, 1, 1}),
       "index 3 dimensions, but input has shape [2,3]"},
      {StridedSlice(input, {0, 0}, {1, 1}, {1, 1}, {0, 0, 0b11, 0, 0}),
       "ellipsis_mask 3 has more than one entry, 0 and 1"},
      {StridedSlice(input, many, many, many, {0, 0, 0, -1, 0}), "fewer than 32 elements"},
  };
  for (const auto& c : cases) {
    OpTester tester = c.tester;
    EXPECT_THAT(tester.Run(), StatusIs(kInvalidArgument, HasSubstr(c.error)));
    EXPECT_THAT(tester.InferShape(), StatusIs(kInvalidArgument, HasSubstr(c.error)));
  }
  EXPECT_THAT(StridedSlice(input, {0}, {1, 1}, {1}).Run(),
              StatusIs(kInvalidArgument,
                       "Dimension 0 in both shapes must be equal, but are 1 and 2: begin has shape "
                       "[1], and end has shape [2]"));
  EXPECT_THAT(StridedSlice(input, {0}, {1}, {1, 1}).InferShape(),
              StatusIs(kInvalidArgument, HasSubstr("[1], [1] and [2]")));
  EXPECT_THAT(OpTester("StridedSlice")
                  .Input(input)
                  .Input(AsScalar<int32_t>(0))
                  .Input(AsScalar<int32_t>(0))
                  .Input(AsScalar<int32_t>(1))
                  .Run(),
              StatusIs(kInvalidArgument,
                       HasSubstr("Shape must be rank 1 but is rank 0: begin has shape []")));
}

TEST(StridedSlice, InfersKnownDimensions) {
  // input[0, :, 1:] with unknown begin and end.
  EXPECT_THAT(OpTester("StridedSlice")
                  .UnknownInput(DT_FLOAT, {-1, 4, 5})
                  .UnknownInput(DT_INT32, {3})
                  .UnknownInput(DT_INT32)
                  .Input(AsTensor<int32_t>({1, 1, 1}))
                  .Attr("begin_mask", 0b010)
                  .Attr("end_mask", 0b110)
                  .Attr("shrink_axis_mask", 0b001)
                  .InferShape(),
              ShapeIs("[4,?]"));
  // The number of entries is known, but not their values.
  EXPECT_THAT(OpTester("StridedSlice")
                  .UnknownInput(DT_FLOAT, {7, 4, 5})
                  .UnknownInput(DT_INT32)
                  .UnknownInput(DT_INT32)
                  .UnknownInput(DT_INT32, {2})
                  .Attr("new_axis_mask", 0b01)
                  .InferShape(),
              ShapeIs("[1,?,4,5]"));
  EXPECT_THAT(OpTester("StridedSlice")
                  .UnknownInput(DT_FLOAT, {7})
                  .UnknownInput(DT_INT32)
                  .UnknownInput(DT_INT32)
                  .UnknownInput(DT_INT32)
                  .InferShape(),
              ShapeIs("<unknown>"));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
