#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "gradflow/testing/kernel_test.h"
#include "tests/ops/common/error_case.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

// Adds weights[i], or 1, to the bin of values[i] in row rows[i].
std::vector<double> Counts(const std::vector<int64_t>& values, const std::vector<int64_t>& rows,
                           const std::vector<double>& weights, int64_t num_rows, int64_t size,
                           bool binary = false) {
  std::vector<double> bins(num_rows * size);
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] >= size) continue;
    double& bin = bins[rows[i] * size + values[i]];
    bin = binary ? 1 : bin + (weights.empty() ? 1 : weights[i]);
  }
  return bins;
}

TEST(Bincount, RunsForEveryType) {
  const std::vector<int64_t> values = {1, 1, 3, 9, 0, 3};
  const std::vector<int64_t> rows(6);
  const std::vector<double> weights = {1, 2, 3, 4, 5, 6};
  for (const DataType dtype : {DT_INT32, DT_INT64, DT_FLOAT, DT_DOUBLE}) {
    SCOPED_TRACE(DataTypeString(dtype));
    for (const bool weighted : {false, true}) {
      const Tensor w = weighted ? FromDoubles(dtype, {2, 3}, weights) : Tensor(dtype, {0});
      EXPECT_THAT(
          OpTester("Bincount")
              .Input(AsTensor<int32_t>({1, 1, 3, 9, 0, 3}, {2, 3}))
              .Input(AsScalar<int32_t>(5))
              .Input(w)
              .RunOne(),
          TensorEq(FromDoubles(
              dtype, {5}, Counts(values, rows, weighted ? weights : std::vector<double>(), 1, 5))));
      for (const bool binary : {false, true}) {
        const auto expected = Counts(values, {0, 0, 0, 1, 1, 1},
                                     weighted ? weights : std::vector<double>(), 2, 4, binary);
        EXPECT_THAT(OpTester("DenseBincount")
                        .Input(AsTensor<int64_t>(values, {2, 3}))
                        .Input(AsScalar<int64_t>(4))
                        .Input(w)
                        .Attr("binary_output", binary)
                        .RunOne(),
                    TensorEq(FromDoubles(dtype, {2, 4}, expected)));
      }
    }
  }
  EXPECT_THAT(OpTester("DenseBincount")
                  .Input(AsScalar<int32_t>(1))
                  .Input(AsScalar<int32_t>(3))
                  .Input(AsScalar<float>(2))
                  .RunOne(),
              TensorEq(AsTensor<float>({0, 2, 0})));
}

// With this many values, each block has its own bins.
TEST(Bincount, CountsManyValues) {
  std::mt19937 random(2);
  for (const int64_t size : {3, 1000, 90000}) {
    SCOPED_TRACE(size);
    const int64_t n = 200000;
    Tensor values(DT_INT32, {n});
    std::vector<int64_t> wide(n);
    for (int64_t i = 0; i < n; ++i) {
      wide[i] = static_cast<int64_t>(random() % (size + 5));
      values.flat<int32_t>()(i) = static_cast<int32_t>(wide[i]);
    }
    const Tensor weights = RandomTensor(DT_FLOAT, {n}, -1, 2);
    const std::vector<double> w(weights.span<float>().begin(), weights.span<float>().end());
    OpTester tester("Bincount");
    tester.Input(values).Input(AsScalar<int32_t>(static_cast<int32_t>(size))).Input(weights);
    EXPECT_THAT(
        tester.RunOne(),
        TensorNear(FromDoubles(DT_FLOAT, {size}, Counts(wide, std::vector<int64_t>(n), w, 1, size)),
                   1e-6, 1e-6));
    GRADFLOW_EXPECT_OK(tester.RunEverywhere());
    EXPECT_THAT(OpTester("DenseBincount")
                    .Input(values)
                    .Input(AsScalar<int32_t>(static_cast<int32_t>(size)))
                    .Input(Tensor(DT_INT64, {0}))
                    .Attr("binary_output", true)
                    .RunOne(),
                TensorEq(FromDoubles(DT_INT64, {size},
                                     Counts(wide, std::vector<int64_t>(n), w, 1, size, true))));
  }
}

TEST(RaggedBincount, CountsEachRow) {
  const std::vector<int64_t> rows = {0, 0, 2, 2, 2};
  for (const bool binary : {false, true}) {
    EXPECT_THAT(
        OpTester("RaggedBincount")
            .Input(AsTensor<int64_t>({0, 2, 2, 5}))
            .Input(AsTensor<int32_t>({1, 1, 0, 7, 2}))
            .Input(AsScalar<int32_t>(3))
            .Input(AsTensor<double>({1, 2, 3, 4, 5}))
            .Attr("binary_output", binary)
            .RunOne(),
        TensorEq(FromDoubles(DT_DOUBLE, {3, 3},
                             Counts({1, 1, 0, 7, 2}, rows, {1, 2, 3, 4, 5}, 3, 3, binary))));
  }
  EXPECT_THAT(OpTester("RaggedBincount")
                  .Input(AsTensor<int64_t>({0}))
                  .Input(Tensor(DT_INT64, {0}))
                  .Input(AsScalar<int64_t>(3))
                  .Input(Tensor(DT_INT32, {0}))
                  .RunOne(),
              TensorEq(Tensor(DT_INT32, {0, 3})));
}

TEST(SparseBincount, CountsEachRow) {
  EXPECT_THAT(OpTester("SparseBincount")
                  .Input(AsTensor<int64_t>({1, 3, 0, 1, 1, 0}, {3, 2}))
                  .Input(AsTensor<int32_t>({1, 0, 1}))
                  .Input(AsTensor<int64_t>({2, 4}))
                  .Input(AsScalar<int32_t>(3))
                  .Input(AsTensor<float>({1, 2, 4}))
                  .RunOne(),
              TensorEq(AsTensor<float>({2, 0, 0, 0, 5, 0}, {2, 3})));
  EXPECT_THAT(OpTester("SparseBincount")
                  .Input(AsTensor<int64_t>({0, 3}, {2, 1}))
                  .Input(AsTensor<int64_t>({1, 1}))
                  .Input(AsTensor<int64_t>({4}))
                  .Input(AsScalar<int64_t>(3))
                  .Input(Tensor(DT_INT32, {0}))
                  .RunOne(),
              TensorEq(AsTensor<int32_t>({0, 2, 0})));
  EXPECT_THAT(OpTester("SparseBincount")
                  .Input(Tensor(DT_INT64, {0, 2}))
                  .Input(Tensor(DT_INT64, {0}))
                  .Input(AsTensor<int64_t>({2, 3}))
                  .Input(AsScalar<int64_t>(2))
                  .Input(Tensor(DT_INT32, {0}))
                  .RunOne(),
              TensorEq(AsTensor<int32_t>({0, 0, 0, 0}, {2, 2})));
}

TEST(Bincount, TakesEmptyTensors) {
  EXPECT_THAT(OpTester("Bincount")
                  .Input(Tensor(DT_INT32, {0, 3}))
                  .Input(AsScalar<int32_t>(2))
                  .Input(Tensor(DT_FLOAT, {0}))
                  .RunOne(),
              TensorEq(AsTensor<float>({0, 0})));
  EXPECT_THAT(OpTester("Bincount")
                  .Input(AsTensor<int32_t>({1, 2}))
                  .Input(AsScalar<int32_t>(0))
                  .Input(Tensor(DT_FLOAT, {0}))
                  .RunOne(),
              TensorEq(Tensor(DT_FLOAT, {0})));
  EXPECT_THAT(OpTester("DenseBincount")
                  .Input(Tensor(DT_INT32, {0, 2}))
                  .Input(AsScalar<int32_t>(2))
                  .Input(Tensor(DT_FLOAT, {0}))
                  .RunOne(),
              TensorEq(Tensor(DT_FLOAT, {0, 2})));
}

TEST(Bincount, RejectsInvalidInputs) {
  const auto bincount = [](const Tensor& values, const Tensor& size, const Tensor& weights) {
    return OpTester("Bincount").Input(values).Input(size).Input(weights);
  };
  const auto dense = [](const Tensor& values, const Tensor& size, const Tensor& weights) {
    return OpTester("DenseBincount").Input(values).Input(size).Input(weights);
  };
  const Tensor values = AsTensor<int32_t>({1, 2});
  const Tensor size = AsScalar<int32_t>(3);
  const Tensor ones(DT_FLOAT, {0});
  ExpectErrors({
      {"size", bincount(values, AsScalar<int32_t>(-1), ones), "size is -1, expected at least 0"},
      {"size of a vector", bincount(values, AsTensor<int32_t>({3}), ones),
       "Shape must be rank 0 but is rank 1: size has shape [1]"},
      {"weights", bincount(values, size, AsTensor<float>({1, 2, 3})),
       "weights must be empty or have the size of arr, [2], but have shape [3]"},
      {"weights of rows", dense(values, size, AsTensor<float>({1, 2}, {1, 2})),
       "weights must be empty or have the shape of input, [2], but have shape [1,2]"},
      {"rank", dense(Tensor(DT_INT32, {1, 1, 1}), size, ones),
       "Shape must be at most rank 2 but is rank 3: input has shape [1,1,1]"},
      {"splits",
       OpTester("RaggedBincount")
           .Input(Tensor(DT_INT64, {0}))
           .Input(values)
           .Input(size)
           .Input(ones),
       "splits must not be empty"},
  });
  EXPECT_THAT(
      bincount(AsTensor<int32_t>({1, -2}), size, ones).Run(),
      StatusIs(kInvalidArgument, HasSubstr("arr must not be negative, but element 1 is -2")));
  EXPECT_THAT(
      dense(AsTensor<int32_t>({-1, 2}), size, ones).Run(),
      StatusIs(kInvalidArgument, HasSubstr("input must not be negative, but element 0 is -1")));
  const auto ragged = [&](const Tensor& splits) {
    return OpTester("RaggedBincount").Input(splits).Input(values).Input(size).Input(ones).Run();
  };
  EXPECT_THAT(ragged(AsTensor<int64_t>({1, 2})),
              StatusIs(kInvalidArgument, HasSubstr("splits must start with 0 and end with 2")));
  EXPECT_THAT(ragged(AsTensor<int64_t>({0, 1})),
              StatusIs(kInvalidArgument, HasSubstr("start with 0 and end with 1")));
  EXPECT_THAT(
      ragged(AsTensor<int64_t>({0, 2, 1, 2})),
      StatusIs(kInvalidArgument, HasSubstr("splits must be sorted, but splits[2] is 1 after 2")));
  const auto sparse = [&](const Tensor& indices, const Tensor& shape) {
    return OpTester("SparseBincount")
        .Input(indices)
        .Input(values)
        .Input(shape)
        .Input(size)
        .Input(ones)
        .Run();
  };
  EXPECT_THAT(sparse(AsTensor<int64_t>({0, 0, 2, 0}, {2, 2}), AsTensor<int64_t>({2, 4})),
              StatusIs(kInvalidArgument, HasSubstr("indices[1,0] is 2, expected in [0, 2)")));
  EXPECT_THAT(sparse(AsTensor<int64_t>({0, 0}, {2, 1}), AsTensor<int64_t>({2, 4})),
              StatusIs(kInvalidArgument, HasSubstr("indices must have shape [2,2]")));
  EXPECT_THAT(sparse(AsTensor<int64_t>({0, 0}, {2, 1}), Tensor(DT_INT64, {0})),
              StatusIs(kInvalidArgument, HasSubstr("dense_shape must not be empty")));
  EXPECT_THAT(sparse(AsTensor<int64_t>({0, 0, 0, 0}, {2, 2}), AsTensor<int64_t>({-2, 4})),
              StatusIs(kInvalidArgument, HasSubstr("dense_shape[0] is -2")));
}

TEST(HistogramFixedWidth, CountsInBins) {
  const auto run = [](const Tensor& values, const Tensor& range, int32_t bins) {
    return OpTester("HistogramFixedWidth")
        .Input(values)
        .Input(range)
        .Input(AsScalar<int32_t>(bins))
        .RunOne();
  };
  EXPECT_THAT(run(AsTensor<float>({-1, 0, 1.5f, 2, 5, 15}), AsTensor<float>({0, 5}), 5),
              TensorEq(AsTensor<int32_t>({2, 1, 1, 0, 2})));
  EXPECT_THAT(run(AsTensor<double>({kInf, -kInf, 1}), AsTensor<double>({0, 5}), 5),
              TensorEq(AsTensor<int32_t>({1, 1, 0, 0, 1})));
  EXPECT_THAT(run(AsTensor<int32_t>({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}), AsTensor<int32_t>({0, 9}), 4),
              TensorEq(AsTensor<int32_t>({3, 2, 2, 3})));
  EXPECT_THAT(run(AsTensor<double>({1, kInf}), AsTensor<double>({0, kInf}), 3),
              TensorEq(AsTensor<int32_t>({2, 0, 0})));
  const int64_t max = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(OpTester("HistogramFixedWidth")
                  .Input(AsTensor<int64_t>({-max, max, 0}))
                  .Input(AsTensor<int64_t>({-max, max}))
                  .Input(AsScalar<int32_t>(2))
                  .Attr("dtype", DT_INT64)
                  .RunOne(),
              TensorEq(AsTensor<int64_t>({1, 2})));
  EXPECT_THAT(run(Tensor(DT_FLOAT, {0}), AsTensor<float>({0, 1}), 2),
              TensorEq(AsTensor<int32_t>({0, 0})));
}

TEST(HistogramFixedWidth, CountsManyValues) {
  const int64_t n = 500000;
  const Tensor x = RandomTensor(DT_FLOAT, {n}, 0, 1);
  std::vector<double> counts(10);
  for (const float v : x.span<float>()) ++counts[static_cast<int>((v + 0.1) / 0.12)];
  const auto y = OpTester("HistogramFixedWidth")
                     .Input(x)
                     .Input(AsTensor<float>({-0.1f, 1.1f}))
                     .Input(AsScalar<int32_t>(10))
                     .RunOne();
  GRADFLOW_ASSERT_OK(y.status());
  // The ends of the bins are rounded, so counts may differ slightly.
  for (int i = 0; i < 10; ++i) EXPECT_NEAR(y->flat<int32_t>()(i), counts[i], 5);
}

TEST(HistogramFixedWidth, RejectsInvalidInputs) {
  const auto histogram = [](const Tensor& values, const Tensor& range, const Tensor& bins) {
    return OpTester("HistogramFixedWidth").Input(values).Input(range).Input(bins);
  };
  const Tensor x = AsTensor<float>({1});
  const Tensor range = AsTensor<float>({0, 5});
  ExpectErrors({
      {"bins", histogram(x, range, AsScalar<int32_t>(0)), "nbins is 0, expected at least 1"},
      {"bins of a vector", histogram(x, range, AsTensor<int32_t>({2})),
       "Shape must be rank 0 but is rank 1: nbins has shape [1]"},
      {"range", histogram(x, AsTensor<float>({0, 1, 2}), AsScalar<int32_t>(2)),
       "value_range must have shape [2], but has shape [3]"},
  });
  EXPECT_THAT(
      histogram(x, AsTensor<float>({5, 5}), AsScalar<int32_t>(2)).Run(),
      StatusIs(kInvalidArgument, HasSubstr("value_range[0] must be less than value_range[1], "
                                           "but they are 5 and 5")));
  EXPECT_THAT(histogram(x, AsTensor<float>({kNan, 5}), AsScalar<int32_t>(2)).Run(),
              StatusIs(kInvalidArgument, HasSubstr("but they are nan and 5")));
  EXPECT_THAT(histogram(AsTensor<float>({1, kNan}), range, AsScalar<int32_t>(2)).Run(),
              StatusIs(kInvalidArgument, HasSubstr("values must not contain NaN")));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
