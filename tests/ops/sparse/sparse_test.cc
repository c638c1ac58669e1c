// Tests of sparse tensors: TensorFlow's values are in
// tests/data/tensorflow_values/sparse_sparse.txt. Here are the texts of errors, larger inputs, and
// the bits on several threads.
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

Tensor Ints(const std::vector<int64_t>& values) { return AsTensor<int64_t>(values); }
Tensor Pairs(const std::vector<int64_t>& values) {
  return AsTensor<int64_t>(values, {static_cast<int64_t>(values.size()) / 2, 2});
}
OpTester Op(const char* op, const std::vector<Tensor>& inputs) {
  OpTester tester(op);
  return tester.Inputs(inputs).ShapeIsData();
}

TEST(Sparse, ChecksIndicesAndShapes) {
  const Tensor values = AsTensor<float>({1, 2});
  const Tensor shape = Ints({2, 3});
  const Tensor index = Pairs({0, 1, 1, 0});
  const Tensor zero = Tensor(0.f);
  // The product of two such sizes overflows.
  constexpr int64_t kLarge = int64_t{1} << 40;
  const struct {
    OpTester tester;
    const char* error;
  } cases[] = {
      {Op("SparseDenseCwiseAdd", {Pairs({0, 1, 1, 3}), values, shape, zero}),
       "sp_indices[1] is [1,3], which is not within the shape [2,3]"},
      {Op("SparseDenseCwiseMul", {index, AsTensor<float>({1}), shape, zero}), "sp_values must"},
      {Op("SparseDenseCwiseDiv", {index, values, Ints({2}), zero}),
       "sp_indices must have a column for each of the 1 dimensions of sp_shape"},
      {Op("SparseDenseCwiseAdd", {index, values, shape, Tensor(DT_FLOAT, {2, 2})}),
       "dense must broadcast to the shape of the sparse tensor, [2,3], but has shape [2,2]"},
      {Op("SparseAdd", {Pairs({1, 0, 0, 1}), values, shape, index, values, shape, zero}),
       "a_indices[1] is [0,1], which is out of order"},
      {Op("SparseSparseMaximum", {index, values, shape, Pairs({0, 1, 0, 1}), values, shape}),
       "b_indices[1] is [0,1], which is repeated"},
      {Op("SparseSparseMinimum", {index, values, shape, index, values, Ints({3, 3})}),
       "both tensors must have the same shape, but have [2,3] and [3,3]"},
      {Op("SparseReorder", {index, values, Ints({int64_t{1} << 40, int64_t{1} << 40})}),
       "input_shape: "},
      {Op("SparseReshape", {index, shape, Ints({4, -1})}),
       "a sparse tensor of shape [2,3] cannot be reshaped to [4,1]"},
      {Op("SparseSlice", {index, values, shape, Ints({0, 0}), Ints({1, -1})}),
       "size must not be negative, but has -1"},
      {Op("SparseSliceGrad", {AsTensor<float>({1}), index, Ints({0, 0}), Pairs({0, 2})}),
       "output_indices[0] is not an index of the slice"},
      {Op("SparseSplit", {AsScalar<int64_t>(1), index, values, shape}).Attr("num_split", 4),
       "num_split must be between 1 and 3, the size of dimension 1, but is 4"},
      {Op("SparseConcat", {index, index, values, values, shape, Ints({3, 3})})
           .Attr("concat_dim", 1),
       "inputs must have the same shape except for dimension 1, but inputs 0 and 1 have [2,3] and "
       "[3,3]"},
      {Op("SparseFillEmptyRows", {Pairs({0, 1, 5, 0}), values, shape, zero}),
       "indices[1] has row 5, but there are 2 rows"},
      {Op("SparseFillEmptyRowsGrad", {Ints({4}), values}),
       "reverse_index_map[0] is 4, but grad_values has 2 elements"},
      {Op("SparseReduceSum", {index, values, shape, AsTensor<int32_t>({2})}),
       "reduction_axes 2 is out of range [-2, 2)"},
      {Op("SparseReduceMax", {index, values, shape, AsTensor<int32_t>({-3})}), "out of range"},
      {Op("SparseReduceSumSparse", {index, values, shape, AsTensor<int32_t>({2})}), "out of range"},
      {Op("SparseReduceMaxSparse", {index, values, shape, AsTensor<int32_t>({2})}), "out of range"},
      {Op("SparseTensorDenseAdd", {index, values, shape, Tensor(DT_FLOAT, {2, 2})}),
       "b must have the shape of the sparse tensor, whose dimension 1 is 3"},
      {Op("SparseTensorDenseMatMul", {index, values, shape, Tensor(DT_FLOAT, {2, 2})}),
       "a matrix with 3 columns cannot be multiplied by a matrix with 2 rows"},
      {Op("SparseToDense", {index, Ints({1, 3}), values, zero}),
       "sparse_indices[1] has 1 for dimension 0 of the shape [1,3]"},
      {Op("SparseToDense", {AsTensor<int64_t>({kLarge - 1, kLarge - 1, 0}, {1, 3}),
                            Ints({kLarge, kLarge, 0}), AsTensor<float>({1}), zero}),
       "sparse_indices[0] has 0 for dimension 2 of the shape"},
      {Op("SparseDenseCwiseAdd", {AsTensor<int64_t>({0, 0, 0}, {1, 3}), AsTensor<float>({1}),
                                  Ints({2, 1, 1}), Tensor(DT_FLOAT, {0, kLarge, kLarge})}),
       "dense must broadcast to the shape of the sparse tensor"},
      {Op("SparseSoftmax", {AsTensor<int64_t>({0, 1}, {2, 1}), values, Ints({3})}),
       "sp_shape must have at least 2 elements, but has 1"},
      {Op("SparseAddGrad", {values, index, index, Pairs({0, 0})}), "backprop_val_grad must"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(OpTester(c.tester).Run(), StatusIs(kInvalidArgument, HasSubstr(c.error)));
  }
}

// A random sparse matrix with sorted indices, and its dense form.
struct Matrix {
  Tensor indices;
  Tensor values;
  Tensor shape;
  Tensor dense;
};
Matrix RandomMatrix(int64_t rows, int64_t columns, int64_t size, uint32_t seed) {
  std::mt19937 random(seed);
  std::set<int64_t> places;
  while (static_cast<int64_t>(places.size()) < size) places.insert(random() % (rows * columns));
  Matrix matrix{Tensor(DT_INT64, {size, 2}), RandomTensor(DT_DOUBLE, {size}), Ints({rows, columns}),
                Tensor(DT_DOUBLE, {rows, columns})};
  matrix.dense.flat<double>().setZero();
  int64_t i = 0;
  for (const int64_t place : places) {
    matrix.indices.matrix<int64_t>()(i, 0) = place / columns;
    matrix.indices.matrix<int64_t>()(i, 1) = place % columns;
    matrix.dense.flat<double>()(place) = matrix.values.flat<double>()(i);
    ++i;
  }
  return matrix;
}

TEST(SparseTensorDenseMatMul, AgreesWithMatMulOnAnyNumberOfThreads) {
  const Matrix a = RandomMatrix(70, 90, 500, 1);
  for (const auto& [adjoint_a, adjoint_b, columns] :
       std::vector<std::tuple<bool, bool, int64_t>>{{false, false, 330},
                                                    {false, true, 330},
                                                    {true, false, 330},
                                                    {true, true, 330},
                                                    {false, false, 1},
                                                    {true, false, 1}}) {
    const int64_t inner = adjoint_a ? 70 : 90;
    const Tensor b = RandomTensor(
        DT_DOUBLE, adjoint_b ? TensorShape({columns, inner}) : TensorShape({inner, columns}));
    const auto expected = OpTester("MatMul")
                              .Input(a.dense)
                              .Input(b)
                              .Attr("transpose_a", adjoint_a)
                              .Attr("transpose_b", adjoint_b)
                              .RunOne();
    GRADFLOW_ASSERT_OK(expected.status());
    OpTester tester = Op("SparseTensorDenseMatMul", {a.indices, a.values, a.shape, b})
                          .Attr("adjoint_a", adjoint_a)
                          .Attr("adjoint_b", adjoint_b);
    const auto product = tester.RunEverywhere();
    GRADFLOW_ASSERT_OK(product.status());
    EXPECT_THAT((*product)[0], TensorNear(*expected, 1e-13, 1e-12));
  }
}

TEST(Sparse, AgreesWithDenseTensors) {
  const Matrix a = RandomMatrix(40, 30, 300, 1);
  const Matrix b = RandomMatrix(40, 30, 200, 2);
  const auto dense = [&](const std::vector<Tensor>& sparse) {
    return OpTester("SparseToDense")
        .Input(sparse[0])
        .Input(a.shape)
        .Input(sparse[1])
        .Input(AsScalar<double>(0))
        .RunOne();
  };
  const auto binary = [&](const char* op, const Tensor& y) {
    return OpTester(op).Input(a.dense).Input(y).RunOne();
  };
  const auto sum = Op("SparseAdd", {a.indices, a.values, a.shape, b.indices, b.values, b.shape,
                                    AsScalar<double>(0)})
                       .Run();
  GRADFLOW_ASSERT_OK(sum.status());
  EXPECT_THAT(dense(*sum), TensorEq(*binary("Add", b.dense)));
  for (const auto& [op, reference] :
       {std::make_pair("SparseSparseMaximum", "Maximum"), {"SparseSparseMinimum", "Minimum"}}) {
    const auto result = Op(op, {a.indices, a.values, a.shape, b.indices, b.values, b.shape}).Run();
    GRADFLOW_ASSERT_OK(result.status());
    EXPECT_THAT(dense(*result), TensorEq(*binary(reference, b.dense)));
  }
  for (const int32_t axis : {0, 1}) {
    const Tensor axes = AsTensor<int32_t>({axis});
    EXPECT_THAT(Op("SparseReduceSum", {a.indices, a.values, a.shape, axes}).RunOne(),
                TensorNear(*OpTester("Sum").Input(a.dense).Input(axes).RunOne(), 1e-13, 1e-12));
  }
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
