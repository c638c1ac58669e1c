// Tests of the ops on quantized tensors, whose ranges are inputs. TensorFlow's values are in
// tests/data/tensorflow_values/quant_quantized.txt; these tests compare with float64 and int64
// references, over more types and shapes.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "gradflow/testing/kernel_test.h"
#include "tests/ops/common/error_case.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace quantized_test {
namespace {

using ::testing::HasSubstr;

constexpr float kLargest = std::numeric_limits<float>::max();

// A quantized tensor and its range.
struct Quantized {
  Tensor tensor;
  float min;
  float max;
};

template <typename F>
void ForQuantizedType(DataType dtype, const F& fn) {
  ASSERT_TRUE(DispatchType(QuantizedTypes(), dtype, fn));
}

// Returns the integers.
std::vector<int64_t> Integers(const Tensor& tensor) {
  std::vector<int64_t> values;
  ForQuantizedType(tensor.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (const T& value : tensor.flat<T>()) values.push_back(value.value);
  });
  return values;
}

struct Limits {
  double lowest;
  double highest;
};
Limits LimitsOf(DataType dtype) {
  Limits limits = {};
  ForQuantizedType(dtype, [&](auto tag) {
    using L = std::numeric_limits<decltype(decltype(tag)::type::value)>;
    limits = {static_cast<double>(L::min()), static_cast<double>(L::max())};
  });
  return limits;
}

// The number that a step stands for.
double StepOf(const Quantized& q) {
  const Limits limits = LimitsOf(q.tensor.dtype());
  return (static_cast<double>(q.max) - q.min) / (limits.highest - limits.lowest);
}

// Returns the numbers, with 0 at the nearest integer.
std::vector<double> Numbers(const Quantized& q) {
  const double step = StepOf(q);
  // A float cannot state the bounds of 32-bit integers exactly.
  const bool is_wide = q.tensor.dtype() == DT_QINT32 && q.min == -q.max;
  const double zero = is_wide ? 0 : LimitsOf(q.tensor.dtype()).lowest - std::round(q.min / step);
  std::vector<double> numbers;
  for (const int64_t i : Integers(q.tensor)) {
    numbers.push_back((static_cast<double>(i) - zero) * step);
  }
  return numbers;
}

Quantized RandomQuantized(DataType dtype, const TensorShape& shape, float min, float max,
                          std::mt19937* random) {
  Tensor tensor(dtype, shape);
  ForQuantizedType(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using L = std::numeric_limits<decltype(T::value)>;
    std::uniform_int_distribution<int64_t> any(L::min(), L::max());
    for (T& value : tensor.flat<T>()) value.value = static_cast<decltype(T::value)>(any(*random));
  });
  return {tensor, min, max};
}

// Adds the tensors and then their ranges, the order of the inputs of binary ops.
OpTester Binary(const char* op, const Quantized& x, const Quantized& y) {
  return OpTester(op)
      .Input(x.tensor)
      .Input(y.tensor)
      .Input(AsScalar<float>(x.min))
      .Input(AsScalar<float>(x.max))
      .Input(AsScalar<float>(y.min))
      .Input(AsScalar<float>(y.max));
}
OpTester UnaryOp(const char* op, const Quantized& x) {
  return OpTester(op).Input(x.tensor).Input(AsScalar<float>(x.min)).Input(AsScalar<float>(x.max));
}

// Runs the op and returns output 0 with its range.
Quantized RunOp(OpTester op) {
  const auto outputs = op.Run();
  GRADFLOW_EXPECT_OK(outputs.status());
  if (!outputs.ok()) return {Tensor(DT_QUINT8, {0}), 0, 1};
  EXPECT_EQ(outputs->size(), 3);
  return {(*outputs)[0], (*outputs)[1].scalar<float>()(), (*outputs)[2].scalar<float>()()};
}

const DataType kBytes[] = {DT_QUINT8, DT_QINT8};
// No bound is between two steps.
const std::pair<float, float> kRanges[] = {{-1, 1.2f}, {0, 6}, {-0.3f, 2.7f}, {1, 5}, {-9, -4}};

// The number 0, as an integer that may be out of the range of the type.
int64_t ZeroOf(const Quantized& q) {
  const double step = StepOf(q);
  return static_cast<int64_t>(LimitsOf(q.tensor.dtype()).lowest - std::round(q.min / step));
}

TEST(QuantizedProducts, SumExactly) {
  std::mt19937 random(1);
  for (int i = 0; i < 40; ++i) {
    const int64_t m = 1 + random() % 5;
    const int64_t inner = i == 0 ? 0 : 1 + random() % 200;
    const int64_t n = i == 1 ? 1500 : random() % 7;
    const bool transpose_a = random() % 2 == 0;
    const bool transpose_b = random() % 2 == 0;
    const auto [a_min, a_max] = kRanges[random() % 5];
    const auto [b_min, b_max] = kRanges[random() % 5];
    const Quantized a = RandomQuantized(
        kBytes[random() % 2], transpose_a ? TensorShape({inner, m}) : TensorShape({m, inner}),
        a_min, a_max, &random);
    const Quantized b = RandomQuantized(
        kBytes[random() % 2], transpose_b ? TensorShape({n, inner}) : TensorShape({inner, n}),
        b_min, b_max, &random);
    const Quantized y = RunOp(Binary("QuantizedMatMul", a, b)
                                  .Attr("transpose_a", transpose_a)
                                  .Attr("transpose_b", transpose_b));
    const std::vector<int64_t> as = Integers(a.tensor);
    const std::vector<int64_t> bs = Integers(b.tensor);
    std::vector<int64_t> expected;
    for (int64_t row = 0; row < m; ++row) {
      for (int64_t column = 0; column < n; ++column) {
        int64_t sum = 0;
        for (int64_t k = 0; k < inner; ++k) {
          sum += (as[transpose_a ? k * m + row : row * inner + k] - ZeroOf(a)) *
                 (bs[transpose_b ? column * inner + k : k * n + column] - ZeroOf(b));
        }
        expected.push_back(sum);
      }
    }
    EXPECT_EQ(Integers(y.tensor), expected);
    EXPECT_NEAR(StepOf(y), StepOf(a) * StepOf(b), 1e-6 * StepOf(a) * StepOf(b));
  }
}

TEST(QuantizedProducts, WrapAround) {
  Tensor a(DT_QUINT8, {1, 70000});
  std::fill_n(static_cast<uint8_t*>(a.raw_data()), 70000, 255);
  Tensor b = *a.Reshaped({70000, 1});
  const Quantized y = RunOp(Binary("QuantizedMatMul", {a, 0, 1}, {b, 0, 1}));
  EXPECT_EQ(Integers(y.tensor)[0], static_cast<int32_t>(int64_t{70000} * 255 * 255));
}

TEST(QuantizedConvolutions, SumExactly) {
  std::mt19937 random(2);
  for (int i = 0; i < 40; ++i) {
    const int64_t rows = 1 + random() % 6;
    const int64_t columns = 1 + random() % 6;
    const int64_t groups = 1 + random() % 2;
    const int64_t depth = groups * (1 + random() % 3);
    const int64_t size = 1 + random() % 3;
    const int64_t filters = groups * (1 + random() % 4);
    const int64_t stride = 1 + random() % 2;
    const int64_t dilation = stride == 1 ? 1 + random() % 2 : 1;
    const auto [x_min, x_max] = kRanges[random() % 5];
    const auto [f_min, f_max] = kRanges[random() % 5];
    const Quantized x =
        RandomQuantized(kBytes[random() % 2], {2, rows, columns, depth}, x_min, x_max, &random);
    const Quantized f = RandomQuantized(kBytes[random() % 2], {size, size, depth / groups, filters},
                                        f_min, f_max, &random);
    const Quantized y = RunOp(Binary("QuantizedConv2D", x, f)
                                  .Attr("strides", {1, stride, stride, 1})
                                  .Attr("dilations", {1, dilation, dilation, 1})
                                  .Attr("padding", "SAME"));
    const int64_t out_rows = (rows + stride - 1) / stride;
    const int64_t out_columns = (columns + stride - 1) / stride;
    ASSERT_EQ(y.tensor.shape(), TensorShape({2, out_rows, out_columns, filters}));
    const auto pad = [&](int64_t in, int64_t out) {
      return std::max<int64_t>(0, (out - 1) * stride + (size - 1) * dilation + 1 - in) / 2;
    };
    const std::vector<int64_t> xs = Integers(x.tensor);
    const std::vector<int64_t> fs = Integers(f.tensor);
    std::vector<int64_t> expected;
    for (int64_t b = 0; b < 2; ++b) {
      for (int64_t oy = 0; oy < out_rows; ++oy) {
        for (int64_t ox = 0; ox < out_columns; ++ox) {
          for (int64_t o = 0; o < filters; ++o) {
            const int64_t group = o / (filters / groups);
            int64_t sum = 0;
            for (int64_t fy = 0; fy < size; ++fy) {
              for (int64_t fx = 0; fx < size; ++fx) {
                const int64_t iy = oy * stride + fy * dilation - pad(rows, out_rows);
                const int64_t ix = ox * stride + fx * dilation - pad(columns, out_columns);
                if (iy < 0 || iy >= rows || ix < 0 || ix >= columns) continue;
                for (int64_t d = 0; d < depth / groups; ++d) {
                  const int64_t channel = group * (depth / groups) + d;
                  sum += (xs[((b * rows + iy) * columns + ix) * depth + channel] - ZeroOf(x)) *
                         (fs[((fy * size + fx) * (depth / groups) + d) * filters + o] - ZeroOf(f));
                }
              }
            }
            expected.push_back(sum);
          }
        }
      }
    }
    EXPECT_EQ(Integers(y.tensor), expected);
  }
}

// The numbers of the result, within `steps` steps of the operands.
void ExpectNumbers(const Quantized& y, const std::vector<double>& expected, double tolerance) {
  const std::vector<double> numbers = Numbers(y);
  ASSERT_EQ(numbers.size(), expected.size());
  for (size_t i = 0; i < numbers.size(); ++i) EXPECT_NEAR(numbers[i], expected[i], tolerance) << i;
}

std::vector<double> Combined(const Quantized& x, const Quantized& y,
                             absl::FunctionRef<double(double, double)> f) {
  const Tensor result =
      BinaryReference(FromDoubles(DT_DOUBLE, x.tensor.shape(), Numbers(x)),
                      FromDoubles(DT_DOUBLE, y.tensor.shape(), Numbers(y)), DT_DOUBLE, f);
  const auto values = result.flat<double>();
  return {values.begin(), values.end()};
}

TEST(QuantizedElementwise, AddsAndMultipliesNumbers) {
  std::mt19937 random(3);
  const std::pair<TensorShape, TensorShape> shapes[] = {{{2, 3}, {2, 3}},    {{2, 3}, {3}},
                                                        {{2, 1}, {2, 3}},    {{}, {4}},
                                                        {{2, 1, 3}, {4, 1}}, {{0}, {1}}};
  for (const auto& [x_shape, y_shape] : shapes) {
    for (const DataType x_type : kBytes) {
      for (const DataType y_type : kBytes) {
        const auto [x_min, x_max] = kRanges[random() % 5];
        const auto [y_min, y_max] = kRanges[random() % 5];
        const Quantized x = RandomQuantized(x_type, x_shape, x_min, x_max, &random);
        const Quantized y = RandomQuantized(y_type, y_shape, y_min, y_max, &random);
        const Quantized sum = RunOp(Binary("QuantizedAdd", x, y));
        ExpectNumbers(sum, Combined(x, y, [](double a, double b) { return a + b; }),
                      300 * StepOf(sum));
        EXPECT_EQ(sum.max, std::max({-x_min, x_max, -y_min, y_max}) * 16384);
        EXPECT_EQ(sum.min, -sum.max);
        const Quantized product = RunOp(Binary("QuantizedMul", x, y));
        ExpectNumbers(product, Combined(x, y, [](double a, double b) { return a * b; }), 1e-4);
      }
    }
  }
}

TEST(QuantizedElementwise, AddsBiases) {
  std::mt19937 random(4);
  for (const DataType dtype : kBytes) {
    for (const auto& [min, max] : kRanges) {
      const Quantized x = RandomQuantized(dtype, {2, 2, 3}, min, max, &random);
      const Quantized bias = RandomQuantized(dtype, {3}, -2, 1, &random);
      const Quantized sum = RunOp(Binary("QuantizedBiasAdd", x, bias).Attr("out_type", DT_QINT32));
      // The additions round in float, to steps of 2^17 ranges.
      ExpectNumbers(sum, Combined(x, bias, [](double a, double b) { return a + b; }),
                    2 * StepOf(sum) + 1e-5);
    }
  }
}

TEST(QuantizedElementwise, Clamps) {
  std::mt19937 random(5);
  for (const DataType dtype : {DT_QUINT8, DT_QINT8, DT_QINT32}) {
    for (const auto& [min, max] : {std::pair(-1.0f, 1.0f), {-9, 20}, {-9, -4}, {7, 9}}) {
      const Quantized x = RandomQuantized(dtype, {500}, min, max, &random);
      const std::vector<double> numbers = Numbers(x);
      const auto expect_clamped = [&](const Quantized& y, double most) {
        EXPECT_EQ(y.min, x.min);
        EXPECT_EQ(y.max, x.max);
        // A bound that is out of the range becomes the nearest bound of the range.
        const double step = StepOf(x);
        const double lowest = std::clamp(0.0, x.min - step, x.max + step);
        const double highest = std::clamp(most, x.min - step, x.max + step);
        std::vector<double> expected;
        for (const double number : numbers) expected.push_back(std::clamp(number, lowest, highest));
        ExpectNumbers(y, expected, 2 * step + 1e-6);
      };
      expect_clamped(RunOp(UnaryOp("QuantizedRelu", x).Attr("out_type", dtype)), 1e9);
      expect_clamped(RunOp(UnaryOp("QuantizedRelu6", x).Attr("out_type", dtype)), 6);
      expect_clamped(RunOp(OpTester("QuantizedReluX")
                               .Input(x.tensor)
                               .Input(AsScalar<float>(0.75f))
                               .Input(AsScalar<float>(min))
                               .Input(AsScalar<float>(max))
                               .Attr("out_type", dtype)),
                     0.75);
    }
  }
}

TEST(QuantizedPool, PoolsIntegers) {
  std::mt19937 random(6);
  for (const DataType dtype : kBytes) {
    for (const int64_t stride : {1, 2}) {
      const Quantized x = RandomQuantized(dtype, {2, 5, 4, 3}, -1, 3, &random);
      const std::vector<int64_t> xs = Integers(x.tensor);
      std::vector<int64_t> means;
      std::vector<int64_t> maxima;
      const int64_t rows = (5 + stride - 1) / stride;
      const int64_t columns = (4 + stride - 1) / stride;
      // Windows of 3 by 3 elements, with padding.
      const int64_t top = std::max<int64_t>(0, (rows - 1) * stride + 3 - 5) / 2;
      const int64_t left = std::max<int64_t>(0, (columns - 1) * stride + 3 - 4) / 2;
      for (int64_t i = 0; i < 2 * rows * columns * 3; ++i) {
        const int64_t first_row = i / (columns * 3) % rows * stride - top;
        const int64_t first_column = i / 3 % columns * stride - left;
        int64_t sum = 0;
        int64_t count = 0;
        int64_t max = -1000;
        for (int64_t y = std::max<int64_t>(0, first_row); y < std::min<int64_t>(5, first_row + 3);
             ++y) {
          for (int64_t z = std::max<int64_t>(0, first_column);
               z < std::min<int64_t>(4, first_column + 3); ++z) {
            const int64_t value = xs[((i / (rows * columns * 3) * 5 + y) * 4 + z) * 3 + i % 3];
            sum += value;
            max = std::max(max, value);
            ++count;
          }
        }
        means.push_back(sum / count);
        maxima.push_back(max);
      }
      const auto pool = [&](const char* op) {
        const Quantized y = RunOp(UnaryOp(op, x)
                                      .Attr("ksize", {1, 3, 3, 1})
                                      .Attr("strides", {1, stride, stride, 1})
                                      .Attr("padding", "SAME"));
        EXPECT_EQ(y.min, -1);
        EXPECT_EQ(y.max, 3);
        return Integers(y.tensor);
      };
      EXPECT_EQ(pool("QuantizedAvgPool"), means);
      EXPECT_EQ(pool("QuantizedMaxPool"), maxima);
    }
  }
}

OpTester Concat(int32_t axis, const Quantized& x, const Quantized& y) {
  return OpTester("QuantizedConcat")
      .Input(AsScalar<int32_t>(axis))
      .Input(x.tensor)
      .Input(y.tensor)
      .Input(AsScalar<float>(x.min))
      .Input(AsScalar<float>(y.min))
      .Input(AsScalar<float>(x.max))
      .Input(AsScalar<float>(y.max));
}

TEST(QuantizedConcat, KeepsNumbers) {
  std::mt19937 random(7);
  for (const DataType dtype : {DT_QUINT8, DT_QINT8, DT_QINT32}) {
    const Quantized x = RandomQuantized(dtype, {2, 3}, 1, 5, &random);
    const Quantized y = RandomQuantized(dtype, {2, 1}, -0.25f, 2.75f, &random);
    const Quantized z = RunOp(Concat(-1, x, y));
    EXPECT_EQ(z.min, dtype == DT_QUINT8 ? -0.25f : -5);
    EXPECT_EQ(z.max, 5);
    const std::vector<double> xs = Numbers(x);
    const std::vector<double> ys = Numbers(y);
    ExpectNumbers(z, {xs[0], xs[1], xs[2], ys[0], xs[3], xs[4], xs[5], ys[1]},
                  1.5 * StepOf(z) + 1e-6);
  }
}

TEST(QuantizedReshape, KeepsIntegers) {
  std::mt19937 random(8);
  const Quantized x = RandomQuantized(DT_QINT32, {2, 3}, -1, 3, &random);
  const Quantized y = RunOp(OpTester("QuantizedReshape")
                                .Input(x.tensor)
                                .Input<int32_t>({3, -1})
                                .Input(AsScalar<float>(-1))
                                .Input(AsScalar<float>(3)));
  EXPECT_THAT(y.tensor, TensorEq(*x.tensor.Reshaped({3, 2})));
  EXPECT_EQ(y.min, -1);
  EXPECT_EQ(y.max, 3);
}

TEST(Requantize, KeepsNumbers) {
  std::mt19937 random(9);
  for (const DataType dtype : kBytes) {
    for (const auto& [min, max] : kRanges) {
      for (const auto& [to_min, to_max] : {std::pair(-1.0f, 3.0f), {0, 6}, {-20, -1}}) {
        const Quantized x = RandomQuantized(DT_QINT32, {3, 50}, min, max, &random);
        const Quantized y = RunOp(UnaryOp("Requantize", x)
                                      .Input(AsScalar<float>(to_min))
                                      .Input(AsScalar<float>(to_max))
                                      .Attr("out_type", dtype));
        EXPECT_EQ(y.min, to_min);
        EXPECT_EQ(y.max, to_max);
        std::vector<double> expected;
        for (const double number : Numbers(x)) {
          expected.push_back(std::clamp<double>(number, to_min, to_max));
        }
        ExpectNumbers(y, expected, 1.01 * StepOf(y));
      }
    }
  }
}

TEST(Requantize, ShrinksTheRange) {
  Tensor integers(DT_QINT32, {3});
  for (int i = 0; i < 3; ++i) integers.flat<qint32>()(i).value = (i - 1) * (1 << 21);
  const Quantized x = {integers, -1024, 1024};
  const Quantized y = RunOp(UnaryOp("QuantizeDownAndShrinkRange", x).Attr("out_type", DT_QUINT8));
  EXPECT_NEAR(y.min, -1, 1e-6);
  EXPECT_NEAR(y.max, 1, 1e-6);
  EXPECT_EQ(Integers(y.tensor), std::vector<int64_t>({0, 127, 255}));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> range,
                                UnaryOp("RequantizationRange", x).Run());
  EXPECT_EQ(range[0].scalar<float>()(), y.min);
  EXPECT_EQ(range[1].scalar<float>()(), y.max);
  // The range contains 0, and several blocks of a loop share it.
  Tensor many(DT_QINT32, {300000});
  std::fill_n(static_cast<int32_t*>(many.raw_data()), 300000, 1 << 20);
  many.flat<qint32>()(299999).value = 1 << 22;
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> large,
                                UnaryOp("RequantizationRange", {many, -1024, 1024}).Run());
  EXPECT_EQ(large[0].scalar<float>()(), 0);
  EXPECT_NEAR(large[1].scalar<float>()(), 2, 1e-6);
}

TEST(QuantizedOps, RejectBadShapes) {
  std::mt19937 random(10);
  const auto bytes = [&](const TensorShape& shape) {
    return RandomQuantized(DT_QUINT8, shape, -1, 1, &random);
  };
  const Quantized wide = RandomQuantized(DT_QINT32, {2}, -1, 1, &random);
  const auto conv = [](OpTester op) {
    return op.Attr("strides", {1, 1, 1, 1}).Attr("padding", "VALID");
  };
  ExpectErrors({
      {"broadcast", Binary("QuantizedAdd", bytes({2}), bytes({3})),
       "shapes [2] and [3] cannot be broadcast together"},
      {"broadcast", Binary("QuantizedMul", bytes({2}), bytes({3})),
       "shapes [2] and [3] cannot be broadcast together"},
      {"inner", Binary("QuantizedMatMul", bytes({2, 3}), bytes({2, 3})),
       "inner dimensions must match: a has shape [2,3], b has shape [2,3]"},
      {"rank", Binary("QuantizedMatMul", bytes({2}), bytes({2, 3})),
       "Shape must be rank 2 but is rank 1: a has shape [2]"},
      {"depth", conv(Binary("QuantizedConv2D", bytes({1, 2, 2, 3}), bytes({1, 1, 2, 2}))),
       "input has depth 3"},
      {"bias", Binary("QuantizedBiasAdd", bytes({2, 3}), bytes({2})).Attr("out_type", DT_QINT32),
       "bias must have shape [3], by the last dimension of input, but has shape [2]"},
      {"rank", Binary("QuantizedBiasAdd", bytes({3}), bytes({3})).Attr("out_type", DT_QINT32),
       "Shape must be at least rank 2 but is rank 1: input has shape [3]"},
      {"ksize", conv(UnaryOp("QuantizedMaxPool", bytes({1, 2, 2, 1})).Attr("ksize", {1, 0, 1, 1})),
       "ksize"},
      {"values", Concat(0, bytes({2, 3}), bytes({2, 2})), "values[1] has shape [2,2]"},
      {"axis", Concat(2, bytes({2, 3}), bytes({2, 3})), "axis 2 is out of range"},
  });
}

TEST(QuantizedOps, RejectBadRanges) {
  std::mt19937 random(11);
  const auto bytes = [&](float min, float max) {
    return RandomQuantized(DT_QUINT8, {1, 1, 1, 1}, min, max, &random);
  };
  const auto square = [&](float min, float max) {
    return RandomQuantized(DT_QUINT8, {1, 1}, min, max, &random);
  };
  const auto wide = [&](float min, float max) {
    return RandomQuantized(DT_QINT32, {2}, min, max, &random);
  };
  const auto expect_error = [](OpTester op, const char* error) {
    EXPECT_THAT(op.Run(), StatusIs(kInvalidArgument, HasSubstr(error)));
  };
  expect_error(UnaryOp("QuantizedRelu", bytes(kNan, 1)).Attr("out_type", DT_QUINT8),
               "min_features must be finite, but is nan");
  expect_error(UnaryOp("QuantizedRelu6", bytes(0, kInf)).Attr("out_type", DT_QUINT8),
               "max_features must be finite, but is inf");
  expect_error(Binary("QuantizedAdd", bytes(0, 1), bytes(2, 2)),
               "max_y must be greater than min_y, but they are 2 and 2");
  expect_error(Binary("QuantizedMul", bytes(0, -1), bytes(0, 1)),
               "max_x must be greater than min_x, but they are -1 and 0");
  expect_error(Binary("QuantizedMatMul", square(1, 1), square(0, 1)),
               "max_a must be greater than min_a, but they are 1 and 1");
  expect_error(Concat(0, bytes(0, 1), bytes(kNan, 1)), "input_mins[1] must be finite, but is nan");
  const auto requantize = [&](float min, float max) {
    return UnaryOp("Requantize", wide(-1, 1))
        .Input(AsScalar<float>(min))
        .Input(AsScalar<float>(max))
        .Attr("out_type", DT_QINT8);
  };
  expect_error(requantize(0.5f, 1),
               "requested_output_min must be at most 0 and at most requested_output_max, but they "
               "are 0.5 and 1");
  expect_error(requantize(0, -1), "but they are 0 and -1");
  expect_error(UnaryOp("RequantizationRange", wide(0, -kInf)), "input_max must be finite");
}

TEST(QuantizedOps, RejectRangesThatAreNotScalars) {
  std::mt19937 random(14);
  const Quantized x = RandomQuantized(DT_QUINT8, {1, 1, 1, 1}, -1, 1, &random);
  const Tensor bound = AsTensor<float>({1});
  for (int i = 0; i < 4; ++i) {
    OpTester conv("QuantizedConv2D");
    conv.Input(x.tensor).Input(x.tensor).Attr("strides", {1, 1, 1, 1}).Attr("padding", "SAME");
    for (int k = 0; k < 4; ++k) conv.Input(k == i ? bound : AsScalar<float>(k % 2 == 0 ? -1 : 1));
    const char* const kNames[] = {"min_input", "max_input", "min_filter", "max_filter"};
    EXPECT_THAT(conv.Run(), StatusIs(kInvalidArgument, HasSubstr(kNames[i])));
  }
  for (int i = 0; i < 2; ++i) {
    OpTester pool("QuantizedAvgPool");
    pool.Input(x.tensor).Attr("ksize", {1, 1, 1, 1}).Attr("strides", {1, 1, 1, 1});
    pool.Attr("padding", "SAME");
    for (int k = 0; k < 2; ++k) pool.Input(k == i ? bound : AsScalar<float>(k == 0 ? -1 : 1));
    EXPECT_THAT(pool.Run(),
                StatusIs(kInvalidArgument, HasSubstr(i == 0 ? "min_input" : "max_input")));
  }
}

// Tensors without elements may have huge dimensions.
TEST(QuantizedOps, RejectSizesThatOverflow) {
  constexpr int64_t kHuge = int64_t{1} << 40;
  const auto empty = [](const TensorShape& shape) {
    return Quantized{Tensor(DT_QUINT8, shape), -1, 1};
  };
  const auto conv = [](OpTester op) {
    return op.Attr("strides", {1, 1, 1, 1}).Attr("padding", "SAME");
  };
  EXPECT_THAT(Binary("QuantizedMatMul", empty({kHuge, 0}), empty({0, kHuge})).Run(),
              StatusIs(kInvalidArgument, HasSubstr("elements")));
  // A filter without elements could have loops over its huge dimension.
  EXPECT_THAT(conv(Binary("QuantizedConv2D", empty({1, 1, 1, 0}), empty({kHuge, 1, 0, 1}))).Run(),
              StatusIs(kInvalidArgument, HasSubstr("no dimension of 0")));
  EXPECT_THAT(conv(Binary("QuantizedConv2D", empty({1, kHuge, 0, 1}), empty({1, 1, 1, 1}))).Run(),
              IsOk());
}

// Sizes of ranges that overflow or underflow float have no undefined results.
TEST(QuantizedOps, TakeExtremeRanges) {
  std::mt19937 random(12);
  for (const auto& [min, max] : {std::pair(-kLargest, kLargest),
                                 {0, 1e-45f},
                                 {-1e-45f, kLargest},
                                 {kLargest, -kLargest},
                                 {kLargest, kLargest}}) {
    SCOPED_TRACE(absl::StrCat(min, " ", max));
    for (const DataType dtype : kBytes) {
      const Quantized x = RandomQuantized(dtype, {1, 2, 2, 3}, min, max, &random);
      GRADFLOW_EXPECT_OK(UnaryOp("QuantizedRelu6", x).Attr("out_type", dtype).Run());
      GRADFLOW_EXPECT_OK(Binary("QuantizedBiasAdd", x, RandomQuantized(dtype, {3}, min, 1, &random))
                             .Attr("out_type", DT_QINT32)
                             .Run());
      GRADFLOW_EXPECT_OK(
          Binary("QuantizedConv2D", x, RandomQuantized(dtype, {2, 2, 3, 1}, min, max, &random))
              .Attr("strides", {1, 1, 1, 1})
              .Attr("padding", "SAME")
              .Run());
      GRADFLOW_EXPECT_OK(Concat(0, x, RandomQuantized(dtype, {1, 2, 2, 3}, 0, 1, &random)).Run());
      if (max > min) {
        GRADFLOW_EXPECT_OK(Binary("QuantizedAdd", x, x).Run());
        GRADFLOW_EXPECT_OK(Binary("QuantizedMul", x, x).Run());
      }
    }
    const Quantized wide = RandomQuantized(DT_QINT32, {7}, min, max, &random);
    GRADFLOW_EXPECT_OK(
        UnaryOp("QuantizeDownAndShrinkRange", wide).Attr("out_type", DT_QUINT8).Run());
    for (const DataType dtype : kBytes) {
      for (const float bound : {0.0f, 1e-45f, kLargest}) {
        GRADFLOW_EXPECT_OK(UnaryOp("Requantize", wide)
                               .Input(AsScalar<float>(-bound))
                               .Input(AsScalar<float>(bound))
                               .Attr("out_type", dtype)
                               .Run());
      }
    }
  }
}

TEST(QuantizedOps, HaveTheSameBitsEverywhere) {
  std::mt19937 random(13);
  const Quantized x = RandomQuantized(DT_QUINT8, {2, 40, 30, 8}, -1, 3, &random);
  const Quantized filter = RandomQuantized(DT_QUINT8, {3, 3, 8, 9}, -1, 1, &random);
  GRADFLOW_EXPECT_OK(Binary("QuantizedConv2D", x, filter)
                         .Attr("strides", {1, 2, 2, 1})
                         .Attr("padding", "SAME")
                         .RunEverywhere());
  GRADFLOW_EXPECT_OK(Binary("QuantizedMatMul", {*x.tensor.Reshaped({80, 240}), -1, 3},
                            RandomQuantized(DT_QUINT8, {240, 2100}, -1, 1, &random))
                         .RunEverywhere());
  GRADFLOW_EXPECT_OK(
      Binary("QuantizedAdd", x, RandomQuantized(DT_QUINT8, {8}, 0, 1, &random)).RunEverywhere());
}

}  // namespace
}  // namespace quantized_test
}  // namespace testing
}  // namespace gradflow
