#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

// Returns the indices of each row in descending order of elements. Equal elements are ordered by
// index.
template <typename T>
std::vector<int64_t> SortedIndices(const Tensor& x, int64_t columns) {
  const auto flat = x.flat<T>();
  std::vector<int64_t> indices;
  for (int64_t row = 0; row < x.NumElements(); row += columns) {
    std::vector<int64_t> order(columns);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t i, int64_t j) { return flat(row + i) > flat(row + j); });
    indices.insert(indices.end(), order.begin(), order.end());
  }
  return indices;
}

TEST(TopK, RunsForEveryRealType) {
  ForEachType(RealTypes(), [](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr DataType dtype = DataTypeToEnum<T>::value;
    for (const int64_t columns : {1, 2, 17, 300}) {
      // Few distinct values, so that there are ties.
      const Tensor x = RandomTensor(DT_INT32, {2, 5, columns}, 0, 40);
      Tensor elements(dtype, {2, 5, columns});
      for (int64_t i = 0; i < x.NumElements(); ++i) {
        elements.flat<T>()(i) = static_cast<T>(static_cast<float>(x.flat<int32_t>()(i)));
      }
      const std::vector<int64_t> order = SortedIndices<T>(elements, columns);
      for (const int64_t k : {int64_t{0}, int64_t{1}, (columns + 1) / 2, columns}) {
        SCOPED_TRACE(DataTypeString(dtype) + " columns " + std::to_string(columns) + " k " +
                     std::to_string(k));
        Tensor values(dtype, {2, 5, k});
        Tensor indices(DT_INT32, {2, 5, k});
        for (int64_t row = 0; row < 10; ++row) {
          for (int64_t i = 0; i < k; ++i) {
            const int64_t at = order[row * columns + i];
            values.flat<T>()(row * k + i) = elements.flat<T>()(row * columns + at);
            indices.flat<int32_t>()(row * k + i) = static_cast<int32_t>(at);
          }
        }
        const auto by_input = OpTester("TopKV2").Input(elements).Input(Tensor(k)).Run();
        ASSERT_TRUE(by_input.ok()) << by_input.status();
        EXPECT_THAT((*by_input)[0], TensorEq(values));
        EXPECT_THAT((*by_input)[1], TensorEq(indices));
        const auto by_attr =
            OpTester("TopK").Input(elements).Attr("k", k).Attr("sorted", false).Run();
        ASSERT_TRUE(by_attr.ok()) << by_attr.status();
        EXPECT_THAT((*by_attr)[0], TensorEq(values));
        EXPECT_THAT((*by_attr)[1], TensorEq(indices));
        if (k == columns) continue;
        // Element k from the largest, and from the smallest.
        Tensor nth(dtype, {2, 5});
        for (int64_t row = 0; row < 10; ++row) {
          nth.flat<T>()(row) = elements.flat<T>()(row * columns + order[row * columns + k]);
        }
        const auto run = [&](int64_t n, bool reverse) {
          return OpTester("NthElement")
              .Input(elements)
              .Input(Tensor(static_cast<int32_t>(n)))
              .Attr("reverse", reverse)
              .RunOne();
        };
        EXPECT_THAT(run(k, true), TensorEq(nth));
        EXPECT_THAT(run(columns - 1 - k, false), TensorEq(nth));
      }
    }
  });
}

// The elements of a long row are selected in blocks.
TEST(TopK, RunsForLongRows) {
  for (const int64_t columns : {65537, 400000}) {
    // Few distinct values, so that there are ties between blocks.
    const Tensor x = RandomTensor(DT_INT32, {2, columns}, 0, columns / 10);
    const std::vector<int64_t> order = SortedIndices<int32_t>(x, columns);
    for (const int64_t k : {1, 90, 4000, 60000}) {
      SCOPED_TRACE(std::to_string(columns) + " columns, k " + std::to_string(k));
      const auto top = OpTester("TopKV2").Input(x).Input(Tensor(k)).RunEverywhere();
      GRADFLOW_ASSERT_OK(top.status());
      for (int64_t i = 0; i < 2 * k; ++i) {
        const int64_t at = order[i / k * columns + i % k];
        ASSERT_EQ((*top)[1].flat<int32_t>()(i), at) << i;
        ASSERT_EQ((*top)[0].flat<int32_t>()(i), x.flat<int32_t>()(i / k * columns + at)) << i;
      }
    }
  }
}

TEST(TopK, NanIsSmallest) {
  const auto outputs = OpTester("TopKV2")
                           .Input<float>({kNan, 1, kNan, -kInf, kInf, 3})
                           .Input(Tensor(int32_t{6}))
                           .Run();
  ASSERT_TRUE(outputs.ok());
  EXPECT_THAT((*outputs)[0], TensorEq(AsTensor<float>({kInf, 3, 1, -kInf, kNan, kNan})));
  EXPECT_THAT((*outputs)[1], TensorEq(AsTensor<int32_t>({4, 5, 1, 3, 0, 2})));
  const Tensor first = AsTensor<float>({kNan, kNan, 1});
  EXPECT_THAT(OpTester("TopKV2").Input(first).Input(Tensor(int32_t{2})).Run().value()[1],
              TensorEq(AsTensor<int32_t>({2, 0})));
  EXPECT_THAT(OpTester("NthElement").Input(first).Input(Tensor(int32_t{2})).RunOne(),
              TensorEq(AsTensor<float>({1}, {})));
}

TEST(TopK, ReturnsIndicesOfEveryType) {
  const auto run = [](DataType type, int64_t columns) {
    return OpTester("TopKV2")
        .Input(RandomTensor(DT_FLOAT, {columns}))
        .Input(Tensor(int16_t{1}))
        .Attr("index_type", type)
        .Run();
  };
  for (const DataType type : {DT_INT16, DT_INT32, DT_INT64}) {
    const auto outputs = run(type, 32767);
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    EXPECT_EQ((*outputs)[1].dtype(), type);
  }
  EXPECT_THAT(run(DT_INT16, 32768),
              StatusIs(kInvalidArgument,
                       "the last dimension of input [32768] must be at most 32767 for indices of "
                       "int16"));
}

TEST(TopK, RejectsShapesAndNumbers) {
  const auto top_k = [](const Tensor& x, const Tensor& k) {
    OpTester op("TopKV2");
    op.Input(x).Input(k);
    const absl::Status status = op.Run().status();
    EXPECT_EQ(op.InferShapes().status(), status);
    return status;
  };
  const Tensor x = AsTensor<float>({1, 2});
  EXPECT_THAT(top_k(AsTensor<float>({1}, {}), Tensor(int32_t{1})),
              StatusIs(kInvalidArgument,
                       "Shape must be at least rank 1 but is rank 0: input has shape []"));
  EXPECT_THAT(
      top_k(x, Tensor(int32_t{3})),
      StatusIs(kInvalidArgument, "k must be at most 2, the last dimension of input [2], but is 3"));
  EXPECT_THAT(top_k(x, Tensor(int64_t{-1})),
              StatusIs(kInvalidArgument, "k must not be negative, but is -1"));
  EXPECT_THAT(
      OpTester("TopKV2").Input(x).Input<int32_t>({1}).Run(),
      StatusIs(kInvalidArgument,
               ::testing::HasSubstr("Shape must be rank 0 but is rank 1: k has shape [1]")));
  EXPECT_THAT(OpTester("TopK").Input(x).Attr("k", int64_t{3}).Run(),
              StatusIs(kInvalidArgument, ::testing::HasSubstr("k must be at most 2")));

  const auto nth = [](const Tensor& input, int32_t n) {
    OpTester op("NthElement");
    op.Input(input).Input(Tensor(n));
    const absl::Status status = op.Run().status();
    EXPECT_EQ(op.InferShapes().status(), status);
    return status;
  };
  EXPECT_THAT(nth(AsTensor<float>({1}, {}), 0),
              StatusIs(kInvalidArgument,
                       "Shape must be at least rank 1 but is rank 0: input has shape []"));
  EXPECT_THAT(nth(x, 2), StatusIs(kInvalidArgument,
                                  "n must be less than 2, the last dimension of input [2], but is "
                                  "2"));
  EXPECT_THAT(nth(x, -1), StatusIs(kInvalidArgument, "n must not be negative, but is -1"));
  EXPECT_THAT(nth(Tensor(DT_FLOAT, {2, 0}), 0),
              StatusIs(kInvalidArgument, ::testing::HasSubstr("n must be less than 0")));
  EXPECT_THAT(OpTester("NthElement").Input(Tensor(DT_FLOAT, {0, 3})).Input(Tensor(1)).RunOne(),
              TensorEq(Tensor(DT_FLOAT, {0})));
}

TEST(TopK, InfersShapes) {
  EXPECT_THAT(OpTester("TopKV2")
                  .UnknownInput(DT_FLOAT, PartialTensorShape({3, -1}))
                  .UnknownInput(DT_INT32)
                  .InferShapes()
                  .value()[1],
              ShapeIs("[3,?]"));
  EXPECT_THAT(OpTester("TopKV2")
                  .UnknownInput(DT_FLOAT, PartialTensorShape({3, -1}))
                  .Input(Tensor(int32_t{4}))
                  .InferShapes()
                  .value()[0],
              ShapeIs("[3,4]"));
}

struct InTopKCase {
  std::vector<float> predictions;
  int32_t target;
  int32_t k;
  bool expected;
};
const InTopKCase kInTopKCases[] = {
    {{1, 3, 2, 3}, 3, 1, true},     {{1, 3, 2, 3}, 2, 2, false},     {{1, 3, 2, 3}, 2, 3, true},
    {{5, 5, 5, 5}, 0, 1, true},     {{1, 3, 2, 3}, 0, 100, true},    {{1, 3, 2, 3}, 1, 0, false},
    {{1, 3, 2, 3}, 1, -1, false},   {{1, 3, 2, 3}, 4, 4, false},     {{1, 3, 2, 3}, -1, 4, false},
    {{1, kNan, 2, 3}, 3, 4, false}, {{1, -kInf, 2, 3}, 3, 4, false}, {{kInf, 1, 2, 3}, 0, 4, false},
};

TEST(InTopK, CountsGreaterPredictions) {
  for (const InTopKCase& c : kInTopKCases) {
    SCOPED_TRACE(std::to_string(c.target) + " in top " + std::to_string(c.k));
    // The second row has its largest prediction at the target.
    Tensor predictions(DT_FLOAT, {2, 4});
    for (int64_t i = 0; i < 4; ++i) {
      predictions.flat<float>()(i) = c.predictions[i];
      predictions.flat<float>()(4 + i) = static_cast<float>(i);
    }
    const Tensor expected = AsTensor<bool>({c.expected, c.k > 0});
    const Tensor targets = AsTensor<int32_t>({c.target, 3});
    EXPECT_THAT(
        OpTester("InTopK").Input(predictions).Input(targets).Attr("k", int64_t{c.k}).RunOne(),
        TensorEq(expected));
    EXPECT_THAT(OpTester("InTopKV2").Input(predictions).Input(targets).Input(Tensor(c.k)).RunOne(),
                TensorEq(expected));
    EXPECT_THAT(OpTester("InTopKV2")
                    .Input(predictions)
                    .Input(AsTensor<int64_t>({c.target, 3}))
                    .Input(Tensor(int64_t{c.k}))
                    .RunOne(),
                TensorEq(expected));
  }
}

TEST(InTopK, RunsForManyRows) {
  const Tensor predictions = RandomTensor(DT_FLOAT, {5000, 37}, -1, 1, 1);
  const Tensor targets = RandomTensor(DT_INT32, {5000}, 0, 36, 2);
  Tensor expected(DT_BOOL, {5000});
  for (int64_t row = 0; row < 5000; ++row) {
    const float* const x = predictions.flat<float>().data() + row * 37;
    const float target = x[targets.flat<int32_t>()(row)];
    expected.flat<bool>()(row) = std::count_if(x, x + 37, [=](float v) { return v > target; }) < 5;
  }
  EXPECT_THAT(OpTester("InTopK").Input(predictions).Input(targets).Attr("k", int64_t{5}).RunOne(),
              TensorEq(expected));
}

TEST(InTopK, RejectsShapes) {
  const auto run = [](const TensorShape& predictions, const TensorShape& targets) {
    OpTester op("InTopK");
    op.Input(RandomTensor(DT_FLOAT, predictions)).Input(RandomTensor(DT_INT32, targets));
    op.Attr("k", int64_t{1});
    const absl::Status status = op.Run().status();
    EXPECT_EQ(op.InferShapes().status(), status);
    return status;
  };
  EXPECT_THAT(
      run({2}, {1}),
      StatusIs(kInvalidArgument, "Shape must be rank 2 but is rank 1: predictions has shape [2]"));
  EXPECT_THAT(
      run({1, 2}, {}),
      StatusIs(kInvalidArgument, "Shape must be rank 1 but is rank 0: targets has shape []"));
  EXPECT_THAT(run({1, 2}, {2}), StatusIs(kInvalidArgument,
                                         "Dimensions must be equal, but are 1 and 2: predictions "
                                         "has shape [1,2], and targets has shape [2]"));
  EXPECT_THAT(
      OpTester("InTopKV2")
          .Input(RandomTensor(DT_FLOAT, {1, 2}))
          .Input<int32_t>({0})
          .Input<int32_t>({1})
          .Run(),
      StatusIs(kInvalidArgument,
               ::testing::HasSubstr("Shape must be rank 0 but is rank 1: k has shape [1]")));
  EXPECT_THAT(run({0, 3}, {0}), IsOk());
}

// The kernel takes samples of long rows. These rows are random, sorted, with few distinct values,
// and with a misleading sample. If the bounds from the sample fail, the row is partitioned before
// std::nth_element.
TEST(NthElement, RunsForLongRows) {
  constexpr int64_t kColumns = (int64_t{5} << 18) + 5;
  constexpr int64_t kRows = 4;
  std::mt19937 random(7);
  Tensor x(DT_FLOAT, {kRows, kColumns});
  for (int64_t i = 0; i < kColumns; ++i) {
    x.matrix<float>()(0, i) = static_cast<float>(random());
    x.matrix<float>()(1, i) = static_cast<float>(-i);
    x.matrix<float>()(2, i) = static_cast<float>(random() % 3);
    x.matrix<float>()(3, i) = i % (kColumns / 1024) == 0 ? -1.0f : static_cast<float>(random());
  }
  Tensor sorted = *x.DeepCopy();
  for (int64_t row = 0; row < kRows; ++row) {
    float* const begin = sorted.flat<float>().data() + row * kColumns;
    std::sort(begin, begin + kColumns);
  }
  for (const int64_t n : {int64_t{0}, int64_t{12345}, kColumns / 2, kColumns - 1}) {
    Tensor expected(DT_FLOAT, {kRows});
    for (int64_t row = 0; row < kRows; ++row) {
      expected.flat<float>()(row) = sorted.flat<float>()(row * kColumns + n);
    }
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> nth,
                                  OpTester("NthElement")
                                      .Input(x)
                                      .Input(AsScalar<int32_t>(static_cast<int32_t>(n)))
                                      .RunEverywhere());
    EXPECT_THAT(nth[0], TensorEq(expected));
  }
}

// The deadline has passed, but a loop of one block does not check it. The row is one block because
// k is large.
TEST(TopK, StopsWithinARow) {
  constexpr int64_t kColumns = int64_t{1} << 21;
  constexpr int32_t kElements = 1 << 17;
  StopToken stop(nullptr, nullptr, StopToken::Clock::time_point());
  Tensor x(DT_FLOAT, {kColumns});
  for (int64_t i = 0; i < kColumns; ++i) x.flat<float>()(i) = static_cast<float>(i);
  GRADFLOW_ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> top,
      OpTester("TopKV2").Input(x).Input(Tensor(kElements)).StoppedBy(&stop).RunOnThreads(1));
  EXPECT_LT(top[1].flat<int32_t>()(0), kColumns - 1);
}

// A row that is divided into blocks may skip them after a stop.
TEST(TopK, StopsBetweenBlocks) {
  const Tensor x = RandomTensor(DT_FLOAT, {1 << 21}, 0, 1);
  for (const char* op : {"TopKV2", "NthElement"}) {
    StopToken stop(nullptr, nullptr, StopToken::Clock::time_point());
    GRADFLOW_EXPECT_OK(
        OpTester(op).Input(x).Input(AsScalar<int32_t>(100)).StoppedBy(&stop).RunOnThreads(3));
  }
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
