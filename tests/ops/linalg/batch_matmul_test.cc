#include <complex>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "gradflow/testing/kernel_test.h"
#include "tests/ops/common/error_case.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

using Complex = std::complex<double>;

// Returns the elements as complex numbers.
std::vector<Complex> Elements(const Tensor& x) {
  std::vector<Complex> values;
  DispatchType(NumberTypes(), x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (const T& v : x.span<T>()) {
      if constexpr (kIsComplex<T>) {
        values.emplace_back(v.real(), v.imag());
      } else {
        values.emplace_back(static_cast<double>(v), 0);
      }
    }
  });
  return values;
}

Tensor FromComplex(DataType dtype, const TensorShape& shape, const std::vector<Complex>& values) {
  Tensor x(dtype, shape);
  DispatchType(NumberTypes(), dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (size_t i = 0; i < values.size(); ++i) {
      if constexpr (kIsComplex<T>) {
        x.flat<T>()(i) = static_cast<T>(values[i]);
      } else if constexpr (std::is_integral_v<T>) {
        x.flat<T>()(i) = static_cast<T>(static_cast<int64_t>(values[i].real()));
      } else {
        x.flat<T>()(i) = static_cast<T>(values[i].real());
      }
    }
  });
  return x;
}

// Multiplies with broadcasting, in float64.
Tensor ProductReference(const Tensor& x, const Tensor& y, bool adj_x, bool adj_y, DataType dtype) {
  const int xr = x.dims();
  const int yr = y.dims();
  const int rank = std::max(xr, yr);
  TensorShape shape;
  for (int d = 0; d < rank - 2; ++d) {
    const int64_t a = d - (rank - xr) >= 0 ? x.dim_size(d - (rank - xr)) : 1;
    const int64_t b = d - (rank - yr) >= 0 ? y.dim_size(d - (rank - yr)) : 1;
    shape.AddDim(a == 1 ? b : a);
  }
  const int64_t m = x.dim_size(xr - (adj_x ? 1 : 2));
  const int64_t k = x.dim_size(xr - (adj_x ? 2 : 1));
  const int64_t n = y.dim_size(yr - (adj_y ? 2 : 1));
  const TensorShape batch = shape;
  shape.AddDim(m);
  shape.AddDim(n);
  const std::vector<Complex> a = Elements(x);
  const std::vector<Complex> b = Elements(y);
  std::vector<Complex> out(shape.num_elements());
  // Returns the index of the matrix that a tensor contributes to a batch index.
  const auto matrix = [&](const Tensor& t, int64_t index) {
    int64_t at = 0;
    int64_t stride = 1;
    for (int d = batch.dims() - 1; d >= 0; --d) {
      const int own = d - (rank - t.dims());
      const int64_t i = index % batch.dim_size(d);
      index /= batch.dim_size(d);
      if (own < 0) continue;
      if (t.dim_size(own) > 1) at += i * stride;
      stride *= t.dim_size(own);
    }
    return at;
  };
  for (int64_t s = 0; s < batch.num_elements(); ++s) {
    const Complex* u = a.data() + matrix(x, s) * m * k;
    const Complex* v = b.data() + matrix(y, s) * k * n;
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        Complex sum = 0;
        for (int64_t p = 0; p < k; ++p) {
          sum += (adj_x ? std::conj(u[p * m + i]) : u[i * k + p]) *
                 (adj_y ? std::conj(v[j * k + p]) : v[p * n + j]);
        }
        out[(s * m + i) * n + j] = sum;
      }
    }
  }
  return FromComplex(dtype, shape, out);
}

OpTester BatchProduct(const char* op, const Tensor& x, const Tensor& y, bool adj_x = false,
                      bool adj_y = false) {
  return OpTester(op).Input(x).Input(y).Attr("adj_x", adj_x).Attr("adj_y", adj_y);
}

TensorShape WithMatrix(TensorShape shape, int64_t rows, int64_t columns, bool adjoint) {
  shape.AddDim(adjoint ? columns : rows);
  shape.AddDim(adjoint ? rows : columns);
  return shape;
}

TEST(BatchMatMul, RunsForEveryShape) {
  struct Batches {
    TensorShape x;
    TensorShape y;
  };
  const Batches batches[] = {{{}, {}},     {{3}, {3}},       {{3}, {}},           {{}, {3}},
                             {{3}, {1}},   {{2, 1}, {1, 3}}, {{4, 1, 2}, {3, 1}}, {{2, 3}, {2, 3}},
                             {{40}, {40}}, {{1}, {5}}};
  // Small products, and products that the BLAS computes in one block or several.
  const int64_t sizes[][3] = {{2, 3, 4}, {1, 1, 1}, {20, 30, 25}, {1, 300, 9}};
  for (const Batches& batch : batches) {
    for (const auto& [m, n, k] : sizes) {
      for (int adjoint = 0; adjoint < 4; ++adjoint) {
        const bool adj_x = adjoint % 2 != 0;
        const bool adj_y = adjoint / 2 != 0;
        const Tensor x = RandomTensor(DT_COMPLEX64, WithMatrix(batch.x, m, k, adj_x), -1, 1, 1);
        const Tensor y = RandomTensor(DT_COMPLEX64, WithMatrix(batch.y, k, n, adj_y), -1, 1, 2);
        SCOPED_TRACE(x.shape().DebugString() + y.shape().DebugString());
        const Tensor expected = ProductReference(x, y, adj_x, adj_y, DT_COMPLEX64);
        EXPECT_THAT(BatchProduct("BatchMatMulV2", x, y, adj_x, adj_y).RunOne(),
                    TensorNear(expected, 1e-5, 1e-5));
        if (batch.x == batch.y) {
          EXPECT_THAT(BatchProduct("BatchMatMul", x, y, adj_x, adj_y).RunOne(),
                      TensorNear(expected, 1e-5, 1e-5));
        }
      }
    }
  }
}

TEST(BatchMatMul, RunsForEveryType) {
  using Types = TypeList<bfloat16, half, float, double, int16_t, int32_t, int64_t, uint8_t,
                         uint16_t, uint32_t, uint64_t, complex64, complex128>;
  ForEachType(Types(), [](auto tag) {
    const DataType dtype = DataTypeToEnum<typename decltype(tag)::type>::value;
    SCOPED_TRACE(DataTypeString(dtype));
    for (const int64_t k : {3, 40}) {
      const Tensor x = RandomTensor(dtype, {2, 5, k}, 0, 3, 1);
      const Tensor y = RandomTensor(dtype, {2, 9, k}, 0, 3, 2);
      EXPECT_THAT(BatchProduct("BatchMatMulV2", x, y, false, true).RunOne(),
                  TensorNear(ProductReference(x, y, false, true, dtype)));
    }
  });
}

TEST(BatchMatMulV3, MultipliesTwoTypes) {
  struct Types {
    DataType x;
    DataType y;
    DataType out;
  };
  const Types cases[] = {
      {DT_INT8, DT_INT8, DT_INT32},         {DT_UINT8, DT_INT8, DT_INT32},
      {DT_BFLOAT16, DT_INT8, DT_BFLOAT16},  {DT_UINT8, DT_BFLOAT16, DT_BFLOAT16},
      {DT_BFLOAT16, DT_BFLOAT16, DT_FLOAT}, {DT_FLOAT, DT_DOUBLE, DT_DOUBLE},
      {DT_HALF, DT_HALF, DT_HALF},          {DT_FLOAT, DT_COMPLEX64, DT_COMPLEX64},
      {DT_INT64, DT_INT16, DT_INT64}};
  for (const Types& c : cases) {
    SCOPED_TRACE(DataTypeString(c.x) + DataTypeString(c.y) + DataTypeString(c.out));
    const Tensor x = RandomTensor(c.x, {3, 1, 4, 17}, Uniform(0, 9), 1);
    const Tensor y = RandomTensor(c.y, {2, 17, 5}, Uniform(0, 9), 2);
    EXPECT_THAT(BatchProduct("BatchMatMulV3", x, y).Attr("Tout", c.out).RunOne(),
                TensorNear(ProductReference(x, y, false, false, c.out)));
  }
  EXPECT_THAT(BatchProduct("BatchMatMulV3", Tensor(DT_COMPLEX64, {1, 1}), Tensor(DT_FLOAT, {1, 1}))
                  .Attr("Tout", DT_FLOAT)
                  .MakeKernel(),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("no product of complex64 and float as float")));
  EXPECT_THAT(BatchProduct("BatchMatMulV3", Tensor(DT_HALF, {1, 1}), Tensor(DT_INT8, {1, 1}))
                  .Attr("Tout", DT_INT32)
                  .MakeKernel(),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("no product of half and int8 as int32")));
}

TEST(BatchMatMul, HasTheSameBitsOnAnyNumberOfThreads) {
  for (const int64_t batch : {1, 3, 200}) {
    OpTester tester = BatchProduct("BatchMatMulV2", RandomTensor(DT_FLOAT, {batch, 150, 70}, -1, 1),
                                   RandomTensor(DT_FLOAT, {batch, 70, 90}, -1, 1));
    GRADFLOW_EXPECT_OK(tester.RunEverywhere());
  }
}

TEST(BatchMatMul, TakesEmptyTensors) {
  for (const char* op : {"BatchMatMul", "BatchMatMulV2"}) {
    EXPECT_THAT(BatchProduct(op, Tensor(DT_FLOAT, {2, 3, 0}), Tensor(DT_FLOAT, {2, 0, 1})).RunOne(),
                TensorEq(AsTensor<float>({0, 0, 0, 0, 0, 0}, {2, 3, 1})));
    EXPECT_THAT(BatchProduct(op, Tensor(DT_HALF, {0, 3, 4}), Tensor(DT_HALF, {0, 4, 1})).RunOne(),
                TensorEq(Tensor(DT_HALF, {0, 3, 1})));
  }
  EXPECT_THAT(
      BatchProduct("BatchMatMulV2", Tensor(DT_FLOAT, {1, 3, 4}), Tensor(DT_FLOAT, {0, 4, 0}))
          .RunOne(),
      TensorEq(Tensor(DT_FLOAT, {0, 3, 0})));
}

TEST(BatchMatMul, KeepsNan) {
  const Tensor x = AsTensor<float>({0, 0, 1, kNan}, {1, 2, 2});
  const Tensor y = AsTensor<float>({1, kInf, 0, 1}, {1, 2, 2});
  EXPECT_THAT(BatchProduct("BatchMatMul", x, y).RunOne(),
              TensorEq(AsTensor<float>({0, kNan, kNan, kNan}, {1, 2, 2})));
}

TEST(BatchMatMul, RejectsInvalidInputs) {
  const auto product = [](const char* op, const TensorShape& x, const TensorShape& y) {
    return BatchProduct(op, Tensor(DT_FLOAT, x), Tensor(DT_FLOAT, y));
  };
  ExpectErrors({
      {"batches", product("BatchMatMul", {2, 2, 3}, {1, 3, 2}),
       "batch dimensions must be equal: x has shape [2,2,3], y has shape [1,3,2]"},
      {"ranks", product("BatchMatMul", {2, 2, 3}, {3, 2}), "batch dimensions must be equal"},
      {"broadcast", product("BatchMatMulV2", {2, 2, 3}, {3, 3, 2}),
       "batch dimensions cannot be broadcast together: x has shape [2,2,3]"},
      {"inner", product("BatchMatMulV2", {2, 2, 3}, {2, 2, 2}),
       "inner dimensions must match: x has shape [2,2,3], y has shape [2,2,2]"},
      {"rank of x", product("BatchMatMulV2", {3}, {3, 2}),
       "Shape must be at least rank 2 but is rank 1: x has shape [3]"},
      {"rank of y", product("BatchMatMulV3", {2, 3}, {}).Attr("Tout", DT_FLOAT),
       "Shape must be at least rank 2 but is rank 0: y has shape []"},
      {"size", product("BatchMatMulV2", {int64_t{1} << 40, 0}, {0, int64_t{1} << 40}),
       "has more elements than fit in an int64"},
  });
  EXPECT_THAT(OpTester("BatchMatMul")
                  .Attr("T", DT_DOUBLE)
                  .RunOn({Tensor(DT_FLOAT, {1, 1}), Tensor(DT_DOUBLE, {1, 1})}),
              StatusIs(kInvalidArgument, HasSubstr("must be of types double and double, but are")));
}

TEST(SparseMatMul, IsAProductInFloat) {
  for (const DataType a : {DT_FLOAT, DT_BFLOAT16}) {
    for (const DataType b : {DT_FLOAT, DT_BFLOAT16}) {
      const Tensor x = RandomTensor(a, {30, 20}, -1, 1, 1);
      const Tensor y = RandomTensor(b, {15, 20}, -1, 1, 2);
      EXPECT_THAT(OpTester("SparseMatMul")
                      .Input(x)
                      .Input(y)
                      .Attr("transpose_b", true)
                      .Attr("a_is_sparse", true)
                      .RunOne(),
                  TensorNear(ProductReference(x, y, false, true, DT_FLOAT), 1e-5, 1e-5));
    }
  }
  ExpectErrors(
      {{"inner",
        OpTester("SparseMatMul").Input(Tensor(DT_FLOAT, {1, 2})).Input(Tensor(DT_FLOAT, {1, 2})),
        "inner dimensions must match: a has shape [1,2], b has shape [1,2]"}});
  EXPECT_THAT(OpTester("SparseMatMul").RunOn({Tensor(DT_DOUBLE, {1, 1}), Tensor(DT_FLOAT, {1, 1})}),
              StatusIs(kInvalidArgument, HasSubstr("must be of type float or bfloat16")));
}

// A single thread computes a small product with several blocks of rows or columns, because two
// threads would add to the same elements.
TEST(BatchMatMul, ComputesSmallLongProductsOnce) {
  constexpr int64_t kBatches = 1000;
  constexpr int64_t kLong = 300;
  const Tensor one = RandomTensor(DT_FLOAT, {kBatches, 1, 1}, 1, 2, 3);
  for (const bool is_column : {true, false}) {
    const TensorShape shape =
        is_column ? TensorShape{kBatches, kLong, 1} : TensorShape{kBatches, 1, kLong};
    const Tensor x = RandomTensor(DT_FLOAT, shape, 1, 2, 4);
    Tensor expected(DT_FLOAT, shape);
    for (int64_t i = 0; i < kBatches * kLong; ++i) {
      expected.flat<float>()(i) = x.flat<float>()(i) * one.flat<float>()(i / kLong);
    }
    OpTester tester("BatchMatMul");
    tester.Input(is_column ? x : one).Input(is_column ? one : x);
    for (int i = 0; i < 10; ++i) EXPECT_THAT(tester.RunOne(), TensorEq(expected));
  }
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
