// Tests of properties that all elementwise ops share: broadcasting, blocks and computation in
// place.
#include "gradflow/ops/common/elementwise.h"

#include <cmath>
#include <random>
#include <utility>
#include <vector>

#include "gradflow/ops/common/simd.h"
#include "gradflow/testing/kernel_test.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

Tensor Subtracted(const Tensor& x, const Tensor& y) {
  return BinaryReference(x, y, x.dtype(), [](double a, double b) { return a - b; });
}

TEST(Elementwise, BroadcastsLikeNumPy) {
  const std::vector<std::pair<TensorShape, TensorShape>> cases = {
      {{}, {}},
      {{1}, {}},
      {{3}, {}},
      {{}, {2, 3}},
      {{2, 3}, {2, 3}},
      {{2, 3}, {3}},
      {{3}, {2, 3}},
      {{2, 1}, {2, 3}},
      {{2, 3}, {2, 1}},
      {{4, 1}, {1, 5}},
      {{1, 5}, {4, 1}},
      {{1, 1, 1}, {7}},
      {{2, 1, 3, 1}, {1, 4, 1, 5}},
      {{2, 3, 4, 5}, {3, 1, 5}},
      {{2, 3, 4, 5}, {1, 3, 4, 1}},
      {{2, 3, 4, 5}, {2, 1, 1, 5}},
      {{6, 1, 1, 5}, {6, 1, 4, 5}},
      {{0}, {1}},
      {{0, 3}, {3}},
      {{1, 3}, {0, 1}},
      {{2, 0, 3}, {1, 1, 1}},
      {{1, 1, 1, 1, 1, 1, 1, 2}, {2, 1}},
  };
  for (const auto& [x_shape, y_shape] : cases) {
    SCOPED_TRACE(x_shape.DebugString() + " and " + y_shape.DebugString());
    const Tensor x = RandomTensor(DT_FLOAT, x_shape, -10, 10, 1);
    const Tensor y = RandomTensor(DT_FLOAT, y_shape, -10, 10, 2);
    EXPECT_THAT(OpTester("Sub").Input(x).Input(y).RunOne(), TensorEq(Subtracted(x, y)));
  }
}

TEST(Elementwise, BroadcastsRandomShapes) {
  std::mt19937 random(7);
  for (int round = 0; round < 150; ++round) {
    // A random shape. In each operand, some dimensions are 1 and some leading dimensions are
    // missing.
    DimVector dims[2];
    const int rank = random() % 6;
    const int ranks[2] = {rank, static_cast<int>(random() % (rank + 1))};
    for (int d = 0; d < rank; ++d) {
      const int64_t size = random() % 5 + (random() % 20 == 0 ? 0 : 1);
      for (int k = 0; k < 2; ++k) {
        if (d >= rank - ranks[k]) dims[k].push_back(random() % 3 == 0 ? 1 : size);
      }
    }
    if (random() % 2 == 0) std::swap(dims[0], dims[1]);
    const Tensor x = RandomTensor(DT_DOUBLE, TensorShape(dims[0]), -10, 10, round);
    const Tensor y = RandomTensor(DT_DOUBLE, TensorShape(dims[1]), -10, 10, round + 1000);
    SCOPED_TRACE(x.shape().DebugString() + " and " + y.shape().DebugString());
    EXPECT_THAT(OpTester("Sub").Input(x).Input(y).RunOne(), TensorEq(Subtracted(x, y)));
  }
}

// The tensors have several blocks and a remainder.
TEST(Elementwise, GoesThroughLargeTensorsInBlocks) {
  for (const auto& [x_shape, y_shape] : std::vector<std::pair<TensorShape, TensorShape>>{
           {{200003}, {200003}},
           {{200003}, {1}},
           {{3, 70001}, {70001}},
           {{3, 70001}, {3, 1}},
           {{50001, 3}, {3}},
           {{50001, 3}, {50001, 1}},
           {{31, 67, 41}, {31, 1, 41}},
       }) {
    SCOPED_TRACE(x_shape.DebugString() + " and " + y_shape.DebugString());
    const Tensor x = RandomTensor(DT_FLOAT, x_shape, -10, 10, 1);
    const Tensor y = RandomTensor(DT_FLOAT, y_shape, -10, 10, 2);
    EXPECT_THAT(OpTester("Sub").Input(x).Input(y).RunOne(), TensorEq(Subtracted(x, y)));
    EXPECT_THAT(OpTester("Sub").Input(y).Input(x).RunOne(), TensorEq(Subtracted(y, x)));
  }
  const Tensor x = RandomTensor(DT_FLOAT, {300007}, -10, 10);
  EXPECT_THAT(OpTester("Neg").Input(x).RunOne(),
              TensorEq(UnaryReference(x, [](double v) { return -v; })));
}

// Rows shorter than a vector, for elements of each size.
TEST(Elementwise, BroadcastsShortRows) {
  const std::vector<std::pair<TensorShape, TensorShape>> cases = {
      {{3001, 3}, {3}},           {{3001, 3}, {3001, 1}},        {{3001, 127}, {127}},
      {{701, 5, 3}, {701, 1, 3}}, {{701, 5, 3}, {1, 5, 1}},      {{2, 701, 3}, {2, 1, 3}},
      {{7, 1, 3}, {1, 701, 1}},   {{40, 1, 9, 1}, {1, 7, 1, 5}}, {{3, 2, 1, 2}, {2, 2000, 1}},
  };
  for (const auto& [x_shape, y_shape] : cases) {
    SCOPED_TRACE(x_shape.DebugString() + " and " + y_shape.DebugString());
    for (const DataType dtype : {DT_INT8, DT_HALF, DT_FLOAT, DT_DOUBLE, DT_BFLOAT16}) {
      const Tensor x = RandomTensor(dtype, x_shape, -9, 9, 1);
      const Tensor y = RandomTensor(dtype, y_shape, -9, 9, 2);
      EXPECT_THAT(OpTester("Sub").Input(x).Input(y).RunOne(), TensorEq(Subtracted(x, y)));
      EXPECT_THAT(OpTester("Sub").Input(y).Input(x).RunOne(), TensorEq(Subtracted(y, x)));
    }
    const Tensor x = DistinctTensor(DT_COMPLEX128, x_shape);
    EXPECT_THAT(OpTester("Sub").Input(x).Input(Tensor(complex128(0, 0))).RunOne(), TensorEq(x));
  }
}

// Large outputs are written with non-temporal stores.
TEST(Elementwise, WritesLargeOutputs) {
  constexpr int64_t kRows = 3083;
  for (const DataType dtype : {DT_FLOAT, DT_HALF}) {
    SCOPED_TRACE(DataTypeString(dtype));
    const int64_t columns = dtype == DT_FLOAT ? 1033 : 2063;
    const Tensor x = RandomTensor(dtype, {kRows, columns}, -9, 9, 1);
    ASSERT_GE(x.TotalBytes(), static_cast<size_t>(MinNonTemporalBytes()));
    for (const TensorShape& shape : {TensorShape({kRows, columns}), TensorShape({columns}),
                                     TensorShape({kRows, 1}), TensorShape()}) {
      SCOPED_TRACE(shape.DebugString());
      const Tensor y = RandomTensor(dtype, shape, -9, 9, 2);
      EXPECT_THAT(OpTester("Sub").Input(x).Input(y).RunEverywhere({{1, 3}, {}}),
                  IsOkAndHolds(::testing::ElementsAre(TensorEq(Subtracted(x, y)))));
    }
    const Tensor narrow = RandomTensor(dtype, {columns * kRows / 3, 3}, -9, 9, 1);
    const Tensor three = RandomTensor(dtype, {3}, -9, 9, 2);
    EXPECT_THAT(OpTester("Sub").Input(narrow).Input(three).RunOne(),
                TensorEq(Subtracted(narrow, three)));
  }
}

TEST(Elementwise, ReadsSlicesThatAreNotAligned) {
  const Tensor whole = RandomTensor(DT_FLOAT, {7, 3}, -10, 10);
  const Tensor x = whole.Slice(1, 7);
  EXPECT_THAT(OpTester("Sub").Input(x).Input(whole.Slice(0, 6)).RunOne(),
              TensorEq(Subtracted(x, whole.Slice(0, 6))));
}

// Runs AddV2 and returns the address of the output's elements.
const void* OutputOfAdd(std::vector<Tensor> inputs) {
  const auto z = OpTester("AddV2").Attr("T", DT_FLOAT).RunOn(std::move(inputs));
  GRADFLOW_EXPECT_OK(z);
  return z.ok() ? (*z)[0].raw_data() : nullptr;
}

TEST(Elementwise, ReusesAnInputThatNoOtherNodeNeeds) {
  const auto make = [](const TensorShape& shape) { return RandomTensor(DT_FLOAT, shape); };
  const Tensor kept = make({2, 3});
  {
    Tensor x = make({2, 3});
    const void* memory = x.raw_data();
    std::vector<Tensor> inputs;
    inputs.push_back(std::move(x));
    inputs.push_back(kept);
    EXPECT_EQ(OutputOfAdd(std::move(inputs)), memory);
  }
  {
    // The op computes in place in the second input, because the first input is in use.
    Tensor y = make({2, 3});
    const void* memory = y.raw_data();
    std::vector<Tensor> inputs = {kept};
    inputs.push_back(std::move(y));
    EXPECT_EQ(OutputOfAdd(std::move(inputs)), memory);
  }
  {
    // The op does not compute in place in an input that is used twice, or that is smaller.
    EXPECT_NE(OutputOfAdd({kept, kept}), kept.raw_data());
    Tensor x = make({1, 3});
    const void* memory = x.raw_data();
    std::vector<Tensor> inputs;
    inputs.push_back(std::move(x));
    inputs.push_back(kept);
    EXPECT_NE(OutputOfAdd(std::move(inputs)), memory);
  }
}

TEST(Elementwise, RefusesShapesThatDoNotBroadcast) {
  for (const char* op : {"Add",         "AddV2",        "Sub",     "Mul",
                         "RealDiv",     "Maximum",      "Minimum", "SquaredDifference",
                         "Equal",       "NotEqual",     "Less",    "LessEqual",
                         "Greater",     "GreaterEqual", "Div",     "DivNoNan",
                         "FloorDiv",    "TruncateDiv",  "Mod",     "FloorMod",
                         "TruncateMod", "MulNoNan",     "Xdivy",   "Xlogy",
                         "Xlog1py",     "Pow",          "Atan2",   "NextAfter",
                         "Complex"}) {
    auto tester = OpTester(op);
    tester.Input(RandomTensor(DT_FLOAT, {2, 3})).Input(RandomTensor(DT_FLOAT, {2}));
    const auto error = StatusIs(absl::StatusCode::kInvalidArgument,
                                HasSubstr("shapes [2,3] and [2] cannot be broadcast together"));
    EXPECT_THAT(tester.Run(), error) << op;
    EXPECT_THAT(tester.InferShape(), error) << op;
  }
}

TEST(Elementwise, RefusesInputsOfAnotherType) {
  EXPECT_THAT(OpTester("AddV2")
                  .Attr("T", DT_FLOAT)
                  .RunOn({RandomTensor(DT_FLOAT, {2}), RandomTensor(DT_DOUBLE, {2})}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("input 1 has type double, expected float")));
  EXPECT_THAT(OpTester("Neg").Attr("T", DT_FLOAT).RunOn({RandomTensor(DT_HALF, {2})}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("input 0 has type half, expected float")));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
