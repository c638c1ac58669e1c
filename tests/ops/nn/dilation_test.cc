#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/stop_token.h"
#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

struct DilationCase {
  int64_t batch, rows, columns, depth;
  int64_t filter_rows, filter_columns;
  int64_t stride[2];
  int64_t rate[2];
  bool same;

  int64_t out(int d) const {
    const int64_t size = d == 0 ? rows : columns;
    if (same) return (size + stride[d] - 1) / stride[d];
    return std::max<int64_t>(0, (size - span(d)) / stride[d] + 1);
  }
  int64_t span(int d) const { return ((d == 0 ? filter_rows : filter_columns) - 1) * rate[d] + 1; }
  int64_t pad(int d) const {
    if (!same) return 0;
    return std::max<int64_t>(0, (out(d) - 1) * stride[d] + span(d) - (d == 0 ? rows : columns)) / 2;
  }
  OpTester Op(const std::string& name) const {
    OpTester op(name);
    op.Attr("strides", {1, stride[0], stride[1], 1}).Attr("rates", {1, rate[0], rate[1], 1});
    return op.Attr("padding", same ? "SAME" : "VALID");
  }
};

const DilationCase kDilationCases[] = {
    {1, 4, 5, 1, 2, 2, {1, 1}, {1, 1}, false}, {2, 7, 6, 3, 3, 2, {2, 1}, {1, 2}, true},
    {3, 9, 8, 40, 2, 3, {1, 3}, {2, 2}, true}, {1, 6, 6, 2, 1, 1, {3, 2}, {1, 1}, false},
    {2, 5, 5, 65, 3, 3, {1, 1}, {1, 1}, true}, {0, 5, 5, 2, 3, 3, {1, 1}, {1, 1}, true}};

struct DilationResults {
  std::vector<double> output;
  std::vector<double> input_gradient;
  std::vector<double> filter_gradient;
};

// Expects small integers, whose sums are exact.
DilationResults DilationReference(const DilationCase& c, const Tensor& input, const Tensor& filter,
                                  const Tensor& gradients, bool is_unsigned) {
  const std::vector<double> x = AsDoubles(input);
  const std::vector<double> f = AsDoubles(filter);
  const std::vector<double> dy = AsDoubles(gradients);
  DilationResults r;
  r.input_gradient.resize(x.size());
  r.filter_gradient.resize(f.size());
  for (int64_t b = 0; b < c.batch; ++b) {
    for (int64_t p = 0; p < c.out(0) * c.out(1) * c.depth; ++p) {
      const int64_t channel = p % c.depth;
      const int64_t i = p / c.depth / c.out(1) * c.stride[0] - c.pad(0);
      const int64_t j = p / c.depth % c.out(1) * c.stride[1] - c.pad(1);
      // TensorFlow starts at 0 for unsigned types.
      double best = is_unsigned ? 0 : -kInf;
      size_t from =
          ((b * c.rows + std::max<int64_t>(i, 0)) * c.columns + std::max<int64_t>(j, 0)) * c.depth +
          channel;
      size_t tap = channel;
      for (int64_t h = 0; h < c.filter_rows; ++h) {
        for (int64_t w = 0; w < c.filter_columns; ++w) {
          const int64_t row = i + h * c.rate[0];
          const int64_t column = j + w * c.rate[1];
          if (row < 0 || row >= c.rows || column < 0 || column >= c.columns) continue;
          const size_t source = ((b * c.rows + row) * c.columns + column) * c.depth + channel;
          const size_t element = (h * c.filter_columns + w) * c.depth + channel;
          if (x[source] + f[element] <= best) continue;
          best = x[source] + f[element];
          from = source;
          tap = element;
        }
      }
      r.output.push_back(best);
      const double gradient = dy[r.output.size() - 1];
      r.input_gradient[from] += gradient;
      r.filter_gradient[tap] += gradient;
    }
  }
  return r;
}

TEST(Dilation2D, RunsForEveryTypeWithGradients) {
  ForEachType(RealTypes(), [](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr DataType dtype = DataTypeToEnum<T>::value;
    for (const DilationCase& c : kDilationCases) {
      SCOPED_TRACE(absl::StrCat(DataTypeString(dtype), " of ", c.rows, "x", c.columns, "x", c.depth,
                                c.same ? " SAME" : " VALID"));
      // Few distinct values, so that there are ties.
      const auto whole = [](DataType type, const TensorShape& shape, double low, uint32_t seed) {
        const Tensor ints = RandomTensor(DT_INT32, shape, low, 4, seed);
        return FromDoubles(type, shape, AsDoubles(ints));
      };
      const double low = std::is_unsigned_v<T> ? 0 : -3;
      const Tensor x = whole(dtype, {c.batch, c.rows, c.columns, c.depth}, low, 1);
      const Tensor f = whole(dtype, {c.filter_rows, c.filter_columns, c.depth}, low, 2);
      const Tensor dy = whole(dtype, {c.batch, c.out(0), c.out(1), c.depth}, 0, 3);
      const DilationResults expected = DilationReference(c, x, f, dy, std::is_unsigned_v<T>);
      EXPECT_THAT(c.Op("Dilation2D").Input(x).Input(f).RunOne(),
                  TensorEq(FromDoubles(dtype, dy.shape(), expected.output)));
      EXPECT_THAT(c.Op("Dilation2DBackpropInput").Input(x).Input(f).Input(dy).RunOne(),
                  TensorEq(FromDoubles(dtype, x.shape(), expected.input_gradient)));
      EXPECT_THAT(c.Op("Dilation2DBackpropFilter").Input(x).Input(f).Input(dy).RunOne(),
                  TensorEq(FromDoubles(dtype, f.shape(), expected.filter_gradient)));
    }
  });
}

TEST(Dilation2D, HandlesNanAndWrapsIntegers) {
  const auto op = [](const char* name) {
    return OpTester(name)
        .Attr("strides", {1, 1, 1, 1})
        .Attr("rates", {1, 1, 1, 1})
        .Attr("padding", "VALID");
  };
  const Tensor x = AsTensor<float>({kNan, 1, kNan, kNan}, {1, 1, 4, 1});
  const Tensor f = AsTensor<float>({0, 0}, {1, 2, 1});
  const Tensor dy = AsTensor<float>({1, 10, 100}, {1, 1, 3, 1});
  const float lowest = std::numeric_limits<float>::lowest();
  EXPECT_THAT(op("Dilation2D").Input(x).Input(f).RunOne(),
              TensorEq(AsTensor<float>({1, 1, lowest}, {1, 1, 3, 1})));
  EXPECT_THAT(op("Dilation2DBackpropInput").Input(x).Input(f).Input(dy).RunOne(),
              TensorEq(AsTensor<float>({0, 11, 100, 0}, {1, 1, 4, 1})));
  EXPECT_THAT(op("Dilation2DBackpropFilter").Input(x).Input(f).Input(dy).RunOne(),
              TensorEq(AsTensor<float>({110, 1}, {1, 2, 1})));
  EXPECT_THAT(
      op("Dilation2D").Input<int8_t>({100}, {1, 1, 1, 1}).Input<int8_t>({100}, {1, 1, 1}).RunOne(),
      TensorEq(AsTensor<int8_t>({-56}, {1, 1, 1, 1})));
}

// Tensors without elements may have any other dimensions. No loop may run over these dimensions.
TEST(Dilation2D, TakesEmptyTensors) {
  constexpr int64_t kLarge = int64_t{1} << 31;
  const auto op = [](const char* name) {
    return OpTester(name)
        .Attr("strides", {1, 1, 1, 1})
        .Attr("rates", {1, 1, 1, 1})
        .Attr("padding", "VALID");
  };
  const Tensor f = AsTensor<float>({1, 2}, {1, 2, 1});
  const Tensor none = Tensor(DT_FLOAT, {0, kLarge, kLarge, 1});
  const Tensor none_out = Tensor(DT_FLOAT, {0, kLarge, kLarge - 1, 1});
  EXPECT_THAT(op("Dilation2D").Input(none).Input(f).RunOne(), TensorEq(none_out));
  EXPECT_THAT(op("Dilation2DBackpropInput").Input(none).Input(f).Input(none_out).RunOne(),
              TensorEq(none));
  EXPECT_THAT(op("Dilation2DBackpropFilter").Input(none).Input(f).Input(none_out).RunOne(),
              TensorEq(AsTensor<float>({0, 0}, {1, 2, 1})));
  // No window fits into the columns.
  const Tensor x = AsTensor<float>({1, 2}, {1, 2, 1, 1});
  EXPECT_THAT(op("Dilation2DBackpropInput")
                  .Input(x)
                  .Input(f)
                  .Input(Tensor(DT_FLOAT, {1, 2, 0, 1}))
                  .RunOne(),
              TensorEq(AsTensor<float>({0, 0}, {1, 2, 1, 1})));
  // 2^62 rows without columns.
  const Tensor batch = Tensor(DT_FLOAT, {int64_t{1} << 61, 2, 0, 1});
  EXPECT_THAT(op("Dilation2DBackpropFilter")
                  .Attr("padding", "SAME")
                  .Input(batch)
                  .Input(f)
                  .Input(batch)
                  .RunOne(),
              TensorEq(AsTensor<float>({0, 0}, {1, 2, 1})));
}

// One row takes much longer than the deadline.
TEST(Dilation2D, StopsWithinARow) {
  constexpr int64_t kColumns = int64_t{1} << 24;
  Tensor x(DT_FLOAT, {1, 1, kColumns, 1});
  x.flat<float>().setConstant(2);
  const Tensor f = AsTensor<float>({3}, {1, 1, 1});
  for (const char* const op :
       {"Dilation2D", "Dilation2DBackpropInput", "Dilation2DBackpropFilter"}) {
    SCOPED_TRACE(op);
    OpTester tester(op);
    tester.Input(x).Input(f);
    tester.Attr("strides", {1, 1, 1, 1}).Attr("rates", {1, 1, 1, 1}).Attr("padding", "VALID");
    const bool forward = op == std::string("Dilation2D");
    if (!forward) tester.Input(x);
    StopToken stop(nullptr, nullptr, StopToken::Clock::now() + std::chrono::milliseconds(50));
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> outputs,
                                  tester.StoppedBy(&stop).RunOnThreads(1));
    const Tensor& y = outputs[0];
    EXPECT_NE(y.flat<float>()(y.NumElements() - 1), forward               ? 5
                                                    : y.NumElements() > 1 ? 2
                                                                          : 2 * kColumns);
  }
}

TEST(Dilation2D, RejectsInvalidInputs) {
  const auto run = [](const TensorShape& input, const TensorShape& filter,
                      std::vector<int64_t> strides, std::vector<int64_t> rates) {
    return OpTester("Dilation2D")
        .Input(RandomTensor(DT_FLOAT, input))
        .Input(RandomTensor(DT_FLOAT, filter))
        .Attr("strides", absl::MakeConstSpan(strides))
        .Attr("rates", absl::MakeConstSpan(rates))
        .Attr("padding", "VALID")
        .RunOne();
  };
  const std::vector<int64_t> ones = {1, 1, 1, 1};
  EXPECT_THAT(run({3, 3, 3}, {2, 2, 3}, ones, ones),
              StatusIs(kInvalidArgument,
                       HasSubstr("Shape must be rank 4 but is rank 3: input has shape [3,3,3]")));
  EXPECT_THAT(
      run({1, 3, 3, 3}, {2, 2, 1, 3}, ones, ones),
      StatusIs(kInvalidArgument,
               HasSubstr("Shape must be rank 3 but is rank 4: filter has shape [2,2,1,3]")));
  EXPECT_THAT(run({1, 3, 3, 3}, {2, 2, 2}, ones, ones),
              StatusIs(kInvalidArgument, HasSubstr("filter has depth 2, expected 3 (the depth")));
  EXPECT_THAT(run({1, 3, 3, 3}, {0, 2, 3}, ones, ones),
              StatusIs(kInvalidArgument, HasSubstr("expected rows and columns")));
  EXPECT_THAT(run({1, 3, 3, 3}, {2, 2, 3}, {1, 0, 1, 1}, ones),
              StatusIs(kInvalidArgument, HasSubstr("strides[1] is 0, expected 1 to 2147483647")));
  EXPECT_THAT(run({1, 3, 3, 3}, {2, 2, 3}, ones, {1, 1, 1, 2}),
              StatusIs(kInvalidArgument, HasSubstr("rates must have 4 elements")));
  EXPECT_THAT(run({1, 1, 3, 3}, {3, 2, 3}, ones, ones),
              StatusIs(kInvalidArgument, HasSubstr("the filter spans 3 elements")));
  EXPECT_THAT(OpTester("Dilation2DBackpropInput")
                  .Input(RandomTensor(DT_FLOAT, {1, 3, 3, 1}))
                  .Input(RandomTensor(DT_FLOAT, {2, 2, 1}))
                  .Input(RandomTensor(DT_FLOAT, {1, 2, 3, 1}))
                  .Attr("strides", {1, 1, 1, 1})
                  .Attr("rates", {1, 1, 1, 1})
                  .Attr("padding", "VALID")
                  .RunOne(),
              StatusIs(kInvalidArgument, HasSubstr("out_backprop has shape [1,2,3,1], expected "
                                                   "[1,2,2,1] (the output of Dilation2D)")));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
