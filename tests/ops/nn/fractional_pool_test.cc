#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "gradflow/testing/kernel_test.h"
#include "tests/ops/common/error_case.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

OpTester Pool(const std::string& op, const Tensor& x, std::vector<float> ratio, bool pseudo,
              bool overlapping) {
  return OpTester(op)
      .Input(x)
      .Attr("pooling_ratio", ratio)
      .Attr("pseudo_random", pseudo)
      .Attr("overlapping", overlapping)
      .Attr("deterministic", true)
      .Attr("seed", int64_t{17})
      .Attr("seed2", int64_t{5});
}

// Checks the pooling sequence of one dimension.
void CheckSequence(const Tensor& tensor, int64_t in, int64_t out) {
  const auto sequence = tensor.flat<int64_t>();
  ASSERT_EQ(sequence.size(), out + 1);
  EXPECT_EQ(sequence(0), 0);
  EXPECT_EQ(sequence(out), in);
  for (int64_t i = 0; i < out; ++i) {
    EXPECT_GE(sequence(i + 1) - sequence(i), in / out);
    EXPECT_LE(sequence(i + 1) - sequence(i), in / out + 1);
  }
}

TEST(FractionalPool, AgreesWithItsDefinition) {
  for (const bool overlapping : {false, true}) {
    for (const bool pseudo : {false, true}) {
      for (const DataType dtype : {DT_FLOAT, DT_DOUBLE, DT_INT32, DT_INT64}) {
        SCOPED_TRACE(DataTypeString(dtype) + (overlapping ? " overlapping" : "") +
                     (pseudo ? " pseudo" : ""));
        const bool is_float = dtype == DT_FLOAT || dtype == DT_DOUBLE;
        const int64_t rows = 13, columns = 11, depth = 3;
        const Tensor x =
            RandomTensor(dtype, {2, rows, columns, depth}, is_float ? -2 : -50, is_float ? 2 : 50);
        const auto max =
            Pool("FractionalMaxPool", x, {1, 1.44f, 1.73f, 1}, pseudo, overlapping).Run();
        const auto mean =
            Pool("FractionalAvgPool", x, {1, 1.44f, 1.73f, 1}, pseudo, overlapping).Run();
        ASSERT_TRUE(max.ok()) << max.status();
        ASSERT_TRUE(mean.ok()) << mean.status();
        EXPECT_THAT((*mean)[1], TensorEq((*max)[1]));
        const TensorShape& shape = (*max)[0].shape();
        ASSERT_EQ(shape, TensorShape({2, 9, 6, depth}));
        CheckSequence((*max)[1], rows, 9);
        CheckSequence((*max)[2], columns, 6);

        const Tensor dy = RandomTensor(dtype, shape, is_float ? -2 : -50, is_float ? 2 : 50, 3);
        const std::vector<double> xs = AsDoubles(x);
        const std::vector<double> dys = AsDoubles(dy);
        std::vector<double> y_max, y_mean;
        std::vector<double> dx_max(xs.size()), dx_mean(xs.size());
        const auto seq_rows = (*max)[1].flat<int64_t>();
        const auto seq_columns = (*max)[2].flat<int64_t>();
        for (int64_t o = 0; o < shape.num_elements(); ++o) {
          const int64_t d = o % depth, j = o / depth % 6, i = o / depth / 6 % 9, b = o / depth / 54;
          const int64_t extra = overlapping ? 1 : 0;
          std::vector<int64_t> elements;
          for (int64_t r = seq_rows(i); r < std::min(rows, seq_rows(i + 1) + extra); ++r) {
            for (int64_t c = seq_columns(j); c < std::min(columns, seq_columns(j + 1) + extra);
                 ++c) {
              elements.push_back(((b * rows + r) * columns + c) * depth + d);
            }
          }
          int64_t best = elements[0];
          double sum = 0;
          for (const int64_t e : elements) {
            if (xs[e] > xs[best]) best = e;
            sum += xs[e];
            dx_mean[e] += dys[o] / static_cast<double>(elements.size());
          }
          dx_max[best] += dys[o];
          y_max.push_back(xs[best]);
          const double average = sum / static_cast<double>(elements.size());
          y_mean.push_back(is_float ? average : std::trunc(average));
        }
        if (!is_float) {
          for (double& v : dx_mean) v = std::trunc(v);
        }
        EXPECT_THAT((*max)[0], TensorEq(FromDoubles(dtype, shape, y_max)));
        EXPECT_THAT((*mean)[0], TensorNear(FromDoubles(dtype, shape, y_mean)));
        EXPECT_THAT(OpTester("FractionalMaxPoolGrad")
                        .Input(x)
                        .Input((*max)[0])
                        .Input(dy)
                        .Input((*max)[1])
                        .Input((*max)[2])
                        .Attr("overlapping", overlapping)
                        .RunOne(),
                    TensorNear(FromDoubles(dtype, x.shape(), dx_max)));
        EXPECT_THAT(OpTester("FractionalAvgPoolGrad")
                        .Input<int64_t>({2, rows, columns, depth})
                        .Input(dy)
                        .Input((*max)[1])
                        .Input((*max)[2])
                        .Attr("overlapping", overlapping)
                        .RunOne(),
                    TensorNear(FromDoubles(dtype, x.shape(), dx_mean)));
      }
    }
  }
}

TEST(FractionalPool, HasNewSequencesWithoutASeed) {
  const Tensor x = Iota<float>({1, 1000, 1, 1});
  OpTester op("FractionalMaxPool");
  op.Input(x).Attr("pooling_ratio", std::vector<float>{1, 1.5f, 1, 1});
  const auto a = op.RunOnThreads(1);
  const auto b = op.RunOnThreads(1);
  ASSERT_TRUE(a.ok() && b.ok());
  CheckSequence((*a)[1], 1000, 666);
  EXPECT_NE((*a)[1].tensor_data(), (*b)[1].tensor_data());
}

TEST(FractionalPool, RejectsBadArguments) {
  const Tensor x = Iota<float>({1, 4, 4, 1});
  ExpectErrors({
      {"ratio", Pool("FractionalMaxPool", x, {1, 0.5f, 1, 1}, false, false),
       "pooling_ratio must be finite and at least 1"},
      {"nan", Pool("FractionalMaxPool", x, {1, kNan, 1, 1}, false, false),
       "pooling_ratio must be finite and at least 1"},
      {"size", Pool("FractionalAvgPool", x, {1, 5, 1, 1}, false, false),
       "dimension 1 of value is 4, expected a size from its pooling_ratio 5"},
      {"rank", Pool("FractionalAvgPool", Iota<float>({4, 4}), {1, 1, 1, 1}, false, false),
       "Shape must be rank 4 but is rank 2: value has shape [4,4]"},
      {"seed",
       Pool("FractionalAvgPool", x, {1, 1, 1, 1}, false, false).Attr("deterministic", false),
       "expected 0, as deterministic is false"},
  });
  EXPECT_THAT(Pool("FractionalAvgPool", x, {1, 1, 1, 2}, false, false).Run(),
              StatusIs(absl::StatusCode::kUnimplemented, ::testing::HasSubstr("channels")));
  // 2^24 + 3 is not a float, and the nearest float is larger. There must not be more windows than
  // rows.
  const TensorShape large = {1, 16777219, 4, 1};
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const auto shapes,
                                OpTester("FractionalMaxPool")
                                    .UnknownInput(DT_FLOAT, large)
                                    .Attr("pooling_ratio", std::vector<float>(4, 1))
                                    .InferShapes());
  EXPECT_EQ(shapes[0].DebugString(), large.DebugString());
  const auto grad = [&](std::vector<int64_t> rows, std::vector<int64_t> columns) {
    return OpTester("FractionalMaxPoolGrad")
        .Input(x)
        .Input(Iota<float>({1, 2, 2, 1}))
        .Input(Iota<float>({1, 2, 2, 1}))
        .Input(AsTensor<int64_t>(rows))
        .Input(AsTensor<int64_t>(columns))
        .Run();
  };
  EXPECT_TRUE(grad({0, 2, 4}, {0, 1, 4}).ok());
  for (const auto& [rows, error] : std::vector<std::pair<std::vector<int64_t>, const char*>>{
           {{0, 2}, "row_pooling_sequence must have shape [3], but has shape [2]"},
           {{-1, 2, 4}, "row_pooling_sequence[0] is -1, expected a number from 0 to 4"},
           {{0, 0, 4}, "row_pooling_sequence[1] is 0, expected a number from 1 to 4"},
           {{0, 2, 5}, "row_pooling_sequence[2] is 5, expected a number from 3 to 4"}}) {
    EXPECT_THAT(grad(rows, {0, 2, 4}), StatusIs(kInvalidArgument, ::testing::HasSubstr(error)));
  }
  EXPECT_THAT(grad({0, 2, 4}, {0, 2, 9}),
              StatusIs(kInvalidArgument, ::testing::HasSubstr("col_pooling_sequence[2] is 9")));
  EXPECT_THAT(OpTester("FractionalAvgPoolGrad")
                  .Input<int64_t>({2, 4, 4, 1})
                  .Input(Iota<float>({1, 2, 2, 1}))
                  .Input<int64_t>({0, 2, 4})
                  .Input<int64_t>({0, 2, 4})
                  .Run(),
              StatusIs(kInvalidArgument, ::testing::HasSubstr("expected the batch and channels")));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
