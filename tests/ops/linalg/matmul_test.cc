#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "gradflow/core/parallel.h"
#include "gradflow/core/stop_token.h"
#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

// Returns the product in float64.
Tensor Product(const Tensor& a, const Tensor& b, bool transpose_a, bool transpose_b) {
  const std::vector<double> x = AsDoubles(a);
  const std::vector<double> y = AsDoubles(b);
  const int64_t m = a.dim_size(transpose_a ? 1 : 0);
  const int64_t k = a.dim_size(transpose_a ? 0 : 1);
  const int64_t n = b.dim_size(transpose_b ? 0 : 1);
  std::vector<double> values;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t p = 0; p < k; ++p) {
        sum += x[transpose_a ? p * m + i : i * k + p] * y[transpose_b ? j * k + p : p * n + j];
      }
      values.push_back(sum);
    }
  }
  return FromDoubles(a.dtype(), {m, n}, values);
}

TensorShape Matrix(int64_t rows, int64_t columns, bool transposed) {
  return transposed ? TensorShape({columns, rows}) : TensorShape({rows, columns});
}

struct Sizes {
  int64_t m, k, n;
};
const Sizes kSizes[] = {
    {1, 1, 1},   {2, 3, 4},    {1, 50, 7},    {7, 50, 1},     {1, 300, 1},
    {33, 1, 65}, {64, 64, 64}, {31, 130, 67}, {257, 40, 259}, {400, 9, 300},
};

TEST(MatMul, MultipliesEveryTranspose) {
  for (const DataType dtype : {DT_FLOAT, DT_DOUBLE}) {
    for (const Sizes& s : kSizes) {
      for (const bool transpose_a : {false, true}) {
        for (const bool transpose_b : {false, true}) {
          const Tensor a = RandomTensor(dtype, Matrix(s.m, s.k, transpose_a), -1, 1, 1);
          const Tensor b = RandomTensor(dtype, Matrix(s.k, s.n, transpose_b), -1, 1, 2);
          SCOPED_TRACE(DataTypeString(dtype) + a.shape().DebugString() + b.shape().DebugString());
          const double tolerance = (dtype == DT_FLOAT ? 1e-7 : 2e-16) * (s.k + 3);
          EXPECT_THAT(OpTester("MatMul")
                          .Input(a)
                          .Input(b)
                          .Attr("transpose_a", transpose_a)
                          .Attr("transpose_b", transpose_b)
                          .RunOne(),
                      TensorNear(Product(a, b, transpose_a, transpose_b), tolerance, tolerance));
        }
      }
    }
  }
}

// Sizes with several blocks, and with remainders after groups of rows and vectors of columns.
TEST(MatMul, OneRowHasTheSameBitsOnEverySimdTarget) {
  for (const int64_t k : {5, 8, 15, 16, 400, 5000}) {
    for (const int64_t n : {7, 37, 577, 1200}) {
      for (const bool transposed : {false, true}) {
        const Tensor a = RandomTensor(DT_FLOAT, Matrix(1, k, transposed), -1, 1, 1);
        const Tensor b = RandomTensor(DT_FLOAT, {k, n}, -1, 1, 2);
        SCOPED_TRACE(a.shape().DebugString() + b.shape().DebugString());
        OpTester tester("MatMul");
        tester.Input(a).Input(b).Attr("transpose_a", transposed);
        const double tolerance = 1e-7 * (k + 3);
        EXPECT_THAT(tester.RunOne(),
                    TensorNear(Product(a, b, transposed, false), tolerance, tolerance));
        EXPECT_THAT(tester.RunEverywhere({{1, 3}, {}}), IsOk());
      }
    }
  }
}

TEST(MatMul, RoundsSixteenBitFloatsOnce) {
  for (const DataType dtype : {DT_HALF, DT_BFLOAT16}) {
    for (const bool transpose : {false, true}) {
      SCOPED_TRACE(DataTypeString(dtype));
      const Tensor a = RandomTensor(dtype, Matrix(31, 130, transpose), 0, 1, 1);
      const Tensor b = RandomTensor(dtype, Matrix(130, 67, transpose), 0, 1, 2);
      // The tolerance is half a unit in the last place plus the error of the float sum.
      EXPECT_THAT(
          OpTester("MatMul")
              .Input(a)
              .Input(b)
              .Attr("transpose_a", transpose)
              .Attr("transpose_b", transpose)
              .RunOne(),
          TensorNear(Product(a, b, transpose, transpose), 0, dtype == DT_HALF ? 1e-3 : 8e-3));
    }
  }
  // A sum in half would stop at 2048.
  Tensor ones(DT_HALF, {1, 4000});
  ones.flat<half>().setConstant(half(1));
  EXPECT_THAT(OpTester("MatMul").Input(ones).Input(ones).Attr("transpose_b", true).RunOne(),
              TensorEq(AsTensor<half>({4000}, {1, 1})));
}

TEST(MatMul, MultipliesIntegers) {
  ForEachType(TypeList<int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>(), [](auto tag) {
    constexpr DataType dtype = DataTypeToEnum<typename decltype(tag)::type>::value;
    for (const bool transpose_a : {false, true}) {
      for (const bool transpose_b : {false, true}) {
        SCOPED_TRACE(DataTypeString(dtype));
        const Tensor a = RandomTensor(dtype, Matrix(5, 6, transpose_a), 0, 6, 1);
        const Tensor b = RandomTensor(dtype, Matrix(6, 7, transpose_b), 0, 6, 2);
        EXPECT_THAT(OpTester("MatMul")
                        .Input(a)
                        .Input(b)
                        .Attr("transpose_a", transpose_a)
                        .Attr("transpose_b", transpose_b)
                        .RunOne(),
                    TensorEq(Product(a, b, transpose_a, transpose_b)));
      }
    }
  });
  const Tensor a = RandomTensor(DT_INT32, {150, 90}, -100, 100, 1);
  const Tensor b = RandomTensor(DT_INT32, {90, 140}, -100, 100, 2);
  EXPECT_THAT(OpTester("MatMul").Input(a).Input(b).RunOne(), TensorEq(Product(a, b, false, false)));
}

TEST(MatMul, MultipliesIntegersWithLongRows) {
  for (const DataType dtype : {DT_INT32, DT_UINT64}) {
    for (const bool transpose_b : {false, true}) {
      SCOPED_TRACE(DataTypeString(dtype));
      const Tensor a = RandomTensor(dtype, {3, 200}, 0, 100, 1);
      const Tensor b = RandomTensor(dtype, Matrix(200, 5000, transpose_b), 0, 100, 2);
      EXPECT_THAT(OpTester("MatMul").Input(a).Input(b).Attr("transpose_b", transpose_b).RunOne(),
                  TensorEq(Product(a, b, false, transpose_b)));
    }
  }
}

TEST(MatMul, StopsWithinARowOfIntegers) {
  constexpr int32_t kInner = 1 << 14;
  for (const bool transpose_b : {false, true}) {
    Tensor a(DT_INT32, {1, kInner});
    Tensor b(DT_INT32, Matrix(kInner, 64, transpose_b));
    a.flat<int32_t>().setConstant(1);
    b.flat<int32_t>().setConstant(1);
    // The deadline has passed, but a loop of one block does not check it. One row is one block.
    StopToken stop(nullptr, nullptr, StopToken::Clock::time_point());
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> outputs,
                                  OpTester("MatMul")
                                      .Input(a)
                                      .Input(b)
                                      .Attr("transpose_b", transpose_b)
                                      .StoppedBy(&stop)
                                      .RunOnThreads(1));
    // Each element equals the number of products in its sum.
    for (const int32_t products : outputs[0].span<int32_t>()) {
      EXPECT_GT(products, 0);
      EXPECT_LT(products, kInner);
    }
  }
}

// No block of the inner dimension may be left out. Integers have longer blocks than floats.
TEST(MatMul, AddsAllBlocksOfALongInnerDimension) {
  ForEachType(TypeList<float, double, int32_t, complex128, half>(), [](auto tag) {
    using T = typename decltype(tag)::type;
    const DataType dtype = DataTypeToEnum<T>::value;
    SCOPED_TRACE(DataTypeString(dtype));
    const int64_t k = std::is_same_v<T, int32_t> ? 300'000 : 10'000;
    Tensor a(dtype, {2, k});
    Tensor b(dtype, {k, 1});
    std::fill_n(a.flat<T>().data(), 2 * k, T(0));
    std::fill_n(b.flat<T>().data(), k, T(1));
    // The nonzero elements are at both ends and at the ends of blocks.
    double sum = 0;
    for (const int64_t p : {int64_t{0}, int64_t{1}, int64_t{2047}, int64_t{2048}, int64_t{4095},
                            int64_t{4096}, int64_t{8191}, int64_t{8192}, k / 2, k - 1}) {
      a.flat<T>()(p) = T(static_cast<float>(1 + p % 7));
      a.flat<T>()(k + p) = T(2);
      sum += static_cast<double>(1 + p % 7);
    }
    const Tensor expected = AsTensor<T>({T(static_cast<float>(sum)), T(20)}, {2, 1});
    EXPECT_THAT(OpTester("MatMul").Input(a).Input(b).RunOne(), TensorEq(expected));
  });
}

// Large matrices have larger blocks. These sizes leave remainders in all dimensions.
TEST(MatMul, MultipliesManyRowsAndColumns) {
  constexpr int64_t kInner = 1100;
  for (const auto& [m, n] : {std::pair<int64_t, int64_t>(1030, 1540), {1030, 800}}) {
    Tensor a(DT_FLOAT, {m, kInner});
    Tensor b(DT_FLOAT, {kInner, n});
    int64_t sum = 0;
    for (int64_t p = 0; p < kInner; ++p) {
      sum += p % 3 * (p % 2);
      for (int64_t i = 0; i < m; ++i) a.matrix<float>()(i, p) = static_cast<float>(i % 5 * (p % 3));
      for (int64_t j = 0; j < n; ++j) b.matrix<float>()(p, j) = static_cast<float>(j % 7 * (p % 2));
    }
    Tensor expected(DT_FLOAT, {m, n});
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        expected.matrix<float>()(i, j) = static_cast<float>(sum * (i % 5) * (j % 7));
      }
    }
    EXPECT_THAT(OpTester("MatMul").Input(a).Input(b).RunOne(), TensorEq(expected));
  }
}

TEST(MatMul, IntegersWrapAround) {
  const int32_t min = std::numeric_limits<int32_t>::min();
  EXPECT_THAT(OpTester("MatMul")
                  .Input(AsTensor<int32_t>({min, 3}, {1, 2}))
                  .Input(AsTensor<int32_t>({-1, 5}, {2, 1}))
                  .RunOne(),
              TensorEq(AsTensor<int32_t>({min + 15}, {1, 1})));
  EXPECT_THAT(OpTester("MatMul")
                  .Input(AsTensor<uint16_t>({65535, 65535}, {1, 2}))
                  .Input(AsTensor<uint16_t>({65535, 65535}, {2, 1}))
                  .RunOne(),
              TensorEq(AsTensor<uint16_t>({2}, {1, 1})));
}

TEST(MatMul, TransposesComplexNumbersWithoutConjugating) {
  const Tensor a = AsTensor<complex64>({{1, 2}, {3, 4}}, {2, 1});
  const Tensor b = AsTensor<complex64>({{0, 1}, {2, 0}}, {1, 2});
  EXPECT_THAT(OpTester("MatMul").Input(a).Input(b).RunOne(),
              TensorEq(AsTensor<complex64>({{-2, 1}, {2, 4}, {-4, 3}, {6, 8}}, {2, 2})));
  EXPECT_THAT(OpTester("MatMul")
                  .Input(a)
                  .Input(b)
                  .Attr("transpose_a", true)
                  .Attr("transpose_b", true)
                  .RunOne(),
              TensorEq(AsTensor<complex64>({{4, 9}}, {1, 1})));
  const Tensor z = AsTensor<complex128>({{0, 1}}, {1, 1});
  EXPECT_THAT(OpTester("MatMul").Input(z).Input(z).RunOne(),
              TensorEq(AsTensor<complex128>({{-1, 0}}, {1, 1})));
}

TEST(MatMul, TakesEmptyMatrices) {
  for (const DataType dtype : {DT_FLOAT, DT_HALF, DT_INT32, DT_COMPLEX64}) {
    SCOPED_TRACE(DataTypeString(dtype));
    Tensor zeros(dtype, {2, 3});
    std::memset(zeros.raw_data(), 0, zeros.TotalBytes());
    EXPECT_THAT(
        OpTester("MatMul").Input(Tensor(dtype, {2, 0})).Input(Tensor(dtype, {0, 3})).RunOne(),
        TensorEq(zeros));
    EXPECT_THAT(OpTester("MatMul").Input(Tensor(dtype, {0, 2})).Input(zeros).RunOne(),
                TensorEq(Tensor(dtype, {0, 3})));
    EXPECT_THAT(OpTester("MatMul")
                    .Input(zeros)
                    .Input(Tensor(dtype, {0, 3}))
                    .Attr("transpose_b", true)
                    .RunOne(),
                TensorEq(Tensor(dtype, {2, 0})));
    Tensor many_zeros(dtype, {1000, 300});
    std::memset(many_zeros.raw_data(), 0, many_zeros.TotalBytes());
    EXPECT_THAT(
        OpTester("MatMul").Input(Tensor(dtype, {1000, 0})).Input(Tensor(dtype, {0, 300})).RunOne(),
        TensorEq(many_zeros));
  }
}

TEST(MatMul, InfinitiesAndNanReachTheProduct) {
  const Tensor a = AsTensor<float>({kInf, 0, kNan, 0, 1, 1}, {3, 2});
  const Tensor b = AsTensor<float>({1, 0, 2, 3}, {2, 2});
  EXPECT_THAT(OpTester("MatMul").Input(a).Input(b).RunOne(),
              TensorEq(AsTensor<float>({kInf, kNan, kNan, kNan, 3, 3}, {3, 2})));
}

TEST(MatMul, HasTheSameBitsOnAnyNumberOfThreads) {
  for (const DataType dtype : {DT_FLOAT, DT_DOUBLE, DT_INT32}) {
    for (const Sizes& s :
         std::vector<Sizes>{{300, 70, 600}, {1000, 33, 5}, {3, 700, 800}, {2, 70, 9000}}) {
      OpTester tester("MatMul");
      tester.Input(RandomTensor(dtype, {s.m, s.k}, -10, 10, 1));
      tester.Input(RandomTensor(dtype, {s.k, s.n}, -10, 10, 2));
      GRADFLOW_EXPECT_OK(tester.RunEverywhere());
    }
  }
}

TEST(MatMul, RefusesInnerDimensionsThatDiffer) {
  const auto check = [](const Tensor& a, const Tensor& b, bool transpose_a, bool transpose_b,
                        const char* text) {
    auto tester = OpTester("MatMul");
    tester.Input(a).Input(b).Attr("transpose_a", transpose_a).Attr("transpose_b", transpose_b);
    const auto error = StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text));
    EXPECT_THAT(tester.Run(), error);
    EXPECT_THAT(tester.InferShape(), error);
  };
  const Tensor a = RandomTensor(DT_FLOAT, {2, 3});
  const Tensor b = RandomTensor(DT_FLOAT, {4, 5});
  check(a, b, false, false, "inner dimensions must match: a has shape [2,3], b has shape [4,5]");
  check(a, a, true, true,
        "inner dimensions must match: a has shape [2,3] (transposed), b has "
        "shape [2,3] "
        "(transposed)");
}

TEST(MatMul, RejectsNonMatrices) {
  const Tensor matrix = RandomTensor(DT_FLOAT, {2, 2});
  EXPECT_THAT(OpTester("MatMul").Input(RandomTensor(DT_FLOAT, {2})).Input(matrix).Run(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("Shape must be rank 2 but is rank 1: a has shape [2]")));
  EXPECT_THAT(OpTester("MatMul").Input(matrix).Input(RandomTensor(DT_FLOAT, {1, 2, 2})).Run(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("Shape must be rank 2 but is rank 3: b has shape [1,2,2]")));
}

TEST(MatMul, RefusesInputsOfAnotherType) {
  EXPECT_THAT(OpTester("MatMul")
                  .Attr("T", DT_FLOAT)
                  .RunOn({RandomTensor(DT_FLOAT, {1, 1}), RandomTensor(DT_DOUBLE, {1, 1})}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("a and b must be of type float, but are float and double")));
}

// This address space is never accessed.
TEST(MatMul, RefusesDimensionsBeyondTheBlas) {
  constexpr int64_t n = int64_t{1} << 31;
  constexpr size_t bytes = n * sizeof(float);
  void* memory =
      mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) GTEST_SKIP() << "no address space";
  {
    const auto row = Tensor::FromMemory(DT_FLOAT, {1, n}, memory, false, [] {});
    const auto column = Tensor::FromMemory(DT_FLOAT, {n, 1}, memory, false, [] {});
    GRADFLOW_ASSERT_OK(row);
    GRADFLOW_ASSERT_OK(column);
    EXPECT_THAT(OpTester("MatMul").Attr("T", DT_FLOAT).RunOn({*row, *column}),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("dimensions must be less than 2147483648, but a has shape "
                                   "[1,2147483648], b has shape [2147483648,1]")));
  }
  munmap(memory, bytes);
}

TEST(MatMul, InfersKnownDimensions) {
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const PartialTensorShape shape, OpTester("MatMul")
                                                                    .UnknownInput(DT_FLOAT, {-1, 3})
                                                                    .UnknownInput(DT_FLOAT)
                                                                    .Attr("transpose_a", true)
                                                                    .InferShape());
  EXPECT_EQ(shape.DebugString(), "[3,?]");
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
