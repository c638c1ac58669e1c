#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "gradflow/ops/common/simd.h"
#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

std::vector<double> DoublesOf(const Tensor& x) {
  std::vector<double> values;
  DispatchType(FloatingTypes(), x.dtype(), [&](auto tag) {
    for (const auto v : x.flat<typename decltype(tag)::type>()) {
      values.push_back(static_cast<double>(v));
    }
  });
  return values;
}

Tensor SoftmaxReference(const Tensor& x, bool log) {
  std::vector<double> y = DoublesOf(x);
  const size_t columns = static_cast<size_t>(x.dim_size(x.dims() - 1));
  for (size_t row = 0; row < y.size(); row += columns) {
    const double max = *std::max_element(&y[row], &y[row] + columns);
    double sum = 0;
    for (size_t i = row; i < row + columns; ++i) sum += std::exp(y[i] - max);
    for (size_t i = row; i < row + columns; ++i) {
      y[i] = log ? y[i] - max - std::log(sum) : std::exp(y[i] - max) / sum;
    }
  }
  return FromDoubles(x.dtype(), x.shape(), y);
}

TEST(Softmax, RunsForEveryTypeAndShape) {
  // Sizes around the number of rows in a group and the number of lanes.
  const TensorShape shapes[] = {{1},       {7},       {3, 4},    {2, 3, 5}, {100, 16},  {700, 3},
                                {3, 1000}, {3, 1024}, {3, 1025}, {2, 5000}, {4096, 10}, {1, 1}};
  for (const DataType dtype : {DT_FLOAT, DT_DOUBLE, DT_HALF, DT_BFLOAT16}) {
    for (const TensorShape& shape : shapes) {
      SCOPED_TRACE(shape.DebugString() + " of " + DataTypeString(dtype));
      const Tensor x = RandomTensor(dtype, shape, -5, 5);
      EXPECT_THAT(OpTester("Softmax").Input(x).RunOne(), TensorNear(SoftmaxReference(x, false)));
      EXPECT_THAT(OpTester("LogSoftmax").Input(x).RunOne(), TensorNear(SoftmaxReference(x, true)));
    }
  }
}

TEST(Softmax, HandlesLargeAndSpecialNumbers) {
  EXPECT_THAT(OpTester("Softmax").Input<float>({1000, 1000, -1000, -kInf}).RunOne(),
              TensorEq(AsTensor<float>({0.5f, 0.5f, 0, 0})));
  EXPECT_THAT(OpTester("LogSoftmax").Input<float>({1000, -1000, -kInf}).RunOne(),
              TensorEq(AsTensor<float>({0, -2000, -kInf})));
  const std::vector<std::vector<float>> rows = {{kNan, 1}, {1, kNan}, {kInf, 1}, {-kInf, -kInf}};
  for (const std::vector<float>& row : rows) {
    for (const char* const op : {"Softmax", "LogSoftmax"}) {
      const Tensor y = OpTester(op).Input<float>({row[0], row[1], 0, 1}, {2, 2}).RunOne().value();
      EXPECT_TRUE(std::isnan(y.flat<float>()(0))) << row[0] << " " << row[1];
      EXPECT_FALSE(std::isnan(y.flat<float>()(2))) << "the next row is affected";
    }
  }
}

TEST(Softmax, TakesEmptyTensors) {
  for (const char* const op : {"Softmax", "LogSoftmax"}) {
    for (const TensorShape& shape : {TensorShape({0}), TensorShape({0, 3}), TensorShape({3, 0})}) {
      EXPECT_THAT(OpTester(op).Input(Tensor(DT_HALF, shape)).RunOne(),
                  TensorEq(Tensor(DT_HALF, shape)));
    }
    OpTester scalar(op);
    scalar.Input<float>({1}, {});
    const auto error = StatusIs(kInvalidArgument,
                                "Shape must be at least rank 1 but is rank 0: logits has shape []");
    EXPECT_THAT(scalar.Run(), error);
    EXPECT_THAT(scalar.InferShape(), error);
  }
}

TEST(L2Loss, RunsForEveryType) {
  for (const DataType dtype : {DT_FLOAT, DT_DOUBLE, DT_HALF, DT_BFLOAT16}) {
    for (const TensorShape& shape :
         {TensorShape({}), TensorShape({0}), TensorShape({7}), TensorShape({3, 400, 101})}) {
      const Tensor t = RandomTensor(dtype, shape, -1, 1);
      double sum = 0;
      for (const double v : DoublesOf(t)) sum += v * v;
      EXPECT_THAT(OpTester("L2Loss").Input(t).RunOne(),
                  TensorNear(FromDoubles(dtype, {}, {sum / 2})))
          << shape.DebugString() << " of " << DataTypeString(dtype);
    }
  }
  // The square of a half may exceed the type, and so may the sum before it is halved.
  EXPECT_THAT(OpTester("L2Loss").Input<half>({half(300.0f)}).RunOne(),
              TensorEq(AsTensor<half>({half(45000.0f)}, {})));
}

struct CrossEntropy {
  std::vector<double> loss;
  std::vector<double> backprop;
};
// Computes the loss and its gradient for rows of logits x and labels p.
CrossEntropy CrossEntropyReference(const std::vector<double>& x, const std::vector<double>& p,
                                   size_t columns) {
  CrossEntropy result;
  for (size_t row = 0; row < x.size(); row += columns) {
    const double max = *std::max_element(&x[row], &x[row] + columns);
    double sum = 0;
    for (size_t i = row; i < row + columns; ++i) sum += std::exp(x[i] - max);
    double loss = 0;
    for (size_t i = row; i < row + columns; ++i) {
      loss += p[i] * (std::log(sum) - (x[i] - max));
      result.backprop.push_back(std::exp(x[i] - max) / sum - p[i]);
    }
    result.loss.push_back(loss);
  }
  return result;
}

TEST(SoftmaxCrossEntropy, RunsForEveryTypeAndShape) {
  for (const DataType dtype : {DT_FLOAT, DT_DOUBLE, DT_HALF, DT_BFLOAT16}) {
    for (const TensorShape& shape :
         {TensorShape({1, 1}), TensorShape({5, 7}), TensorShape({300, 10}), TensorShape({2, 1024}),
          TensorShape({3, 3001})}) {
      SCOPED_TRACE(shape.DebugString() + " of " + DataTypeString(dtype));
      const int64_t columns = shape.dim_size(1);
      const Tensor x = RandomTensor(dtype, shape, -3, 3, 1);
      const Tensor p = RandomTensor(dtype, shape, 0, 1, 2);
      const auto reference = CrossEntropyReference(DoublesOf(x), DoublesOf(p), columns);
      const auto outputs = OpTester("SoftmaxCrossEntropyWithLogits").Input(x).Input(p).Run();
      ASSERT_TRUE(outputs.ok()) << outputs.status();
      EXPECT_THAT((*outputs)[0],
                  TensorNear(FromDoubles(dtype, {shape.dim_size(0)}, reference.loss)));
      EXPECT_THAT((*outputs)[1], TensorNear(FromDoubles(dtype, shape, reference.backprop)));

      // A class index is the same as labels of 0 and 1.
      for (const DataType index : {DT_INT32, DT_INT64}) {
        const Tensor labels = RandomTensor(index, {shape.dim_size(0)}, 0, columns - 1, 3);
        std::vector<double> one_hot(shape.num_elements(), 0);
        for (int64_t row = 0; row < shape.dim_size(0); ++row) {
          const int64_t label =
              index == DT_INT32 ? labels.flat<int32_t>()(row) : labels.flat<int64_t>()(row);
          one_hot[row * columns + label] = 1;
        }
        const auto sparse = CrossEntropyReference(DoublesOf(x), one_hot, columns);
        const auto result =
            OpTester("SparseSoftmaxCrossEntropyWithLogits").Input(x).Input(labels).Run();
        ASSERT_TRUE(result.ok()) << result.status();
        EXPECT_THAT((*result)[0], TensorNear(FromDoubles(dtype, {shape.dim_size(0)}, sparse.loss)));
        EXPECT_THAT((*result)[1], TensorNear(FromDoubles(dtype, shape, sparse.backprop)));
      }
    }
  }
}

TEST(SoftmaxCrossEntropy, HasTheSameBitsOnAllInstructionSets) {
  for (const int64_t columns : {37, 1100}) {
    const Tensor x = RandomTensor(DT_FLOAT, {5, columns}, -3, 3, 1);
    const Tensor p = RandomTensor(DT_FLOAT, {5, columns}, 0, 1, 2);
    EXPECT_THAT(OpTester("Softmax").Input(x).RunEverywhere(), IsOk());
    EXPECT_THAT(OpTester("LogSoftmax").Input(x).RunEverywhere(), IsOk());
    EXPECT_THAT(OpTester("SoftmaxCrossEntropyWithLogits").Input(x).Input(p).RunEverywhere(),
                IsOk());
  }
}

// Large results are written with non-temporal stores, even if rows are not whole cache lines.
TEST(SoftmaxCrossEntropy, RunsForManyRows) {
  constexpr int64_t kRows = 47000;
  const Tensor x = RandomTensor(DT_FLOAT, {kRows, 67}, -3, 3, 1);
  ASSERT_GE(x.TotalBytes(), static_cast<size_t>(MinNonTemporalBytes()));
  const Tensor p = RandomTensor(DT_FLOAT, {kRows, 67}, 0, 1, 2);
  const Tensor labels = RandomTensor(DT_INT32, {kRows}, 0, 66, 3);
  const auto test = [&](const char* op, const std::vector<Tensor>& inputs) {
    OpTester all(op);
    for (const Tensor& input : inputs) all.Input(input);
    const auto outputs = all.Run();
    ASSERT_THAT(outputs, IsOk());
    for (int64_t row = 0; row < kRows; row += 1999) {
      OpTester some(op);
      for (const Tensor& input : inputs) some.Input(input.Slice(row, row + 1));
      const auto expected = some.Run();
      ASSERT_THAT(expected, IsOk());
      for (size_t i = 0; i < expected->size(); ++i) {
        EXPECT_EQ((*outputs)[i].Slice(row, row + 1).tensor_data(), (*expected)[i].tensor_data())
            << op << ", output " << i << ", row " << row;
      }
    }
  };
  test("Softmax", {x});
  test("LogSoftmax", {x});
  test("SoftmaxCrossEntropyWithLogits", {x, p});
  test("SparseSoftmaxCrossEntropyWithLogits", {x, labels});
}

TEST(SoftmaxCrossEntropy, Broadcasts) {
  const TensorShape shapes[] = {{}, {1}, {3}, {1, 3}, {2, 1}, {1, 1}, {2, 3}};
  for (const TensorShape& shape : shapes) {
    SCOPED_TRACE(shape.DebugString());
    const Tensor small = RandomTensor(DT_DOUBLE, shape, -1, 1, 1);
    const Tensor full = RandomTensor(DT_DOUBLE, {2, 3}, -1, 1, 2);
    const Tensor same =
        BinaryReference(small, Tensor(full), DT_DOUBLE, [](double a, double) { return a; });
    const auto run = [](const Tensor& x, const Tensor& p) {
      return OpTester("SoftmaxCrossEntropyWithLogits").Input(x).Input(p).Run().value();
    };
    for (const int output : {0, 1}) {
      EXPECT_THAT(run(small, full)[output], TensorEq(run(same, full)[output]));
      EXPECT_THAT(run(full, small)[output], TensorEq(run(full, same)[output]));
    }
  }
}

TEST(SoftmaxCrossEntropy, TakesEmptyTensors) {
  const auto run = [](const TensorShape& shape) {
    return OpTester("SoftmaxCrossEntropyWithLogits")
        .Input(Tensor(DT_FLOAT, shape))
        .Input(Tensor(DT_FLOAT, shape))
        .Run()
        .value();
  };
  EXPECT_THAT(run({0, 2})[0], TensorEq(Tensor(DT_FLOAT, {0})));
  EXPECT_THAT(run({2, 0})[0], TensorEq(AsTensor<float>({0, 0})));
  EXPECT_THAT(run({2, 0})[1], TensorEq(Tensor(DT_FLOAT, {2, 0})));
}

TEST(SoftmaxCrossEntropy, RejectsShapes) {
  const auto run = [](const TensorShape& x, const TensorShape& p) {
    OpTester op("SoftmaxCrossEntropyWithLogits");
    op.Input(Tensor(DT_FLOAT, x)).Input(Tensor(DT_FLOAT, p));
    const absl::Status status = op.Run().status();
    EXPECT_EQ(op.InferShapes().status(), status);
    return status;
  };
  EXPECT_THAT(run({2}, {2}), StatusIs(kInvalidArgument,
                                      "Shape must be broadcasted with rank 2 but is rank 1: "
                                      "features has shape [2], and labels has shape [2]"));
  EXPECT_THAT(run({2, 2, 2}, {2, 2}),
              StatusIs(kInvalidArgument,
                       "Shape must be broadcasted with rank 2 but is rank 3: "
                       "features has shape [2,2,2], and labels has shape [2,2]"));
  EXPECT_THAT(run({1, 2}, {1, 3}),
              StatusIs(kInvalidArgument, "shapes [1,2] and [1,3] cannot be broadcast together"));
}

TEST(SparseSoftmaxCrossEntropy, RejectsShapesAndLabels) {
  const auto run = [](const TensorShape& x, const Tensor& labels) {
    Tensor features(DT_FLOAT, x);
    for (float& v : features.flat<float>()) v = 1;
    return OpTester("SparseSoftmaxCrossEntropyWithLogits").Input(features).Input(labels).Run();
  };
  EXPECT_THAT(
      run({3}, AsTensor<int32_t>({1})),
      StatusIs(kInvalidArgument, "Shape must be rank 2 but is rank 1: features has shape [3]"));
  EXPECT_THAT(
      run({1, 3}, AsTensor<int32_t>({1}, {})),
      StatusIs(kInvalidArgument, "Shape must be rank 1 but is rank 0: labels has shape []"));
  EXPECT_THAT(run({1, 3}, AsTensor<int32_t>({1, 2})),
              StatusIs(kInvalidArgument,
                       "Dimensions must be equal, but are 1 and 2: features has shape [1,3], and "
                       "labels has shape [2]"));
  EXPECT_THAT(run({2, 3}, AsTensor<int32_t>({1, 3})),
              StatusIs(kInvalidArgument, "labels[1] is 3, expected a class in [0, 3)"));
  EXPECT_THAT(run({1, 3}, AsTensor<int64_t>({-1})),
              StatusIs(kInvalidArgument, "labels[0] is -1, expected a class in [0, 3)"));
  EXPECT_THAT(
      run({2, 0}, AsTensor<int64_t>({0, 0})),
      StatusIs(kInvalidArgument, "features must have at least one class, but has shape [2,0]"));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
