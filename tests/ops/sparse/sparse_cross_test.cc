// Tests of combinations of features: TensorFlow's values are in
// tests/data/tensorflow_values/sparse_sparse.txt.
#include <string>
#include <vector>

#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

Tensor Ints(const std::vector<int64_t>& values, const TensorShape& shape) {
  return AsTensor<int64_t>(values, shape);
}

// A column for each of `indices`, with the number of each value.
OpTester Cross(const std::vector<Tensor>& indices, const std::vector<int64_t>& shape,
               const std::vector<Tensor>& dense) {
  OpTester tester("SparseCrossV2");
  DataTypeVector dense_types;
  for (const Tensor& column : dense) dense_types.push_back(column.dtype());
  std::vector<Tensor> values;
  for (const Tensor& index : indices) {
    Tensor numbers(DT_INT64, {index.dim_size(0)});
    for (int64_t i = 0; i < numbers.NumElements(); ++i) numbers.span<int64_t>()[i] = i;
    values.push_back(numbers);
  }
  tester.Inputs(indices).Inputs(values);
  for (size_t i = 0; i < indices.size(); ++i) tester.Input(AsTensor<int64_t>(shape));
  tester.Inputs(dense).Input(Tensor(tstring("-")));
  tester.Attr("N", static_cast<int64_t>(indices.size())).Attr("dense_types", dense_types);
  tester.Attr("sparse_types", DataTypeVector(indices.size(), DT_INT64));
  return tester.ShapeIsData();
}

// The hashes of one column, {{5}, {6}}, by the key {1, 2}.
OpTester StrongHash(bool is_sparse) {
  OpTester tester("SparseCrossHashed");
  const Tensor values = AsTensor<int64_t>({5, 6});
  if (is_sparse) {
    tester.Input(Ints({0, 0, 1, 0}, {2, 2})).Input(values).Input(AsTensor<int64_t>({2, 1}));
  } else {
    tester.Input(Ints({5, 6}, {2, 1}));
  }
  tester.Input(AsScalar<int64_t>(0)).Input(Tensor(true)).Input(AsTensor<int64_t>({1, 2}));
  tester.Attr("N", int64_t{is_sparse}).Attr("sparse_types", DataTypeVector(is_sparse, DT_INT64));
  tester.Attr("dense_types", DataTypeVector(!is_sparse, DT_INT64));
  return tester.ShapeIsData();
}

TEST(SparseCross, ChecksItsInputs) {
  const Tensor row = Ints({0, 0}, {1, 2});
  const struct {
    OpTester tester;
    const char* error;
  } cases[] = {
      {Cross({Ints({1, 0, 0, 0}, {2, 2})}, {2, 2}, {}),
       "the rows of indices[0] must not decrease and must be in [0, 2), but row 1 is 0"},
      {Cross({Ints({2, 0}, {1, 2})}, {2, 2}, {}), "must be in [0, 2), but row 0 is 2"},
      {Cross({Ints({0, 0, 0}, {1, 3})}, {2, 2, 2}, {}), "shapes[0] must have 2 elements"},
      {Cross({row}, {2, 2}, {Ints({1}, {1, 1})}),
       "all inputs must have 2 rows, but dense_inputs[0] has 1"},
      {Cross({row}, {2, 2}, {AsTensor<int64_t>({1, 2})}), "dense_inputs[0]"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(OpTester(c.tester).RunOnThreads(1), StatusIs(kInvalidArgument, HasSubstr(c.error)))
        << c.error;
  }
}

TEST(SparseCross, NeedsStringsIfItsTypeIsString) {
  const auto run = [](DataType internal_type) {
    OpTester tester("SparseCross");
    tester.Input(Ints({3, 4}, {2, 1})).Attr("N", int64_t{0}).Attr("sparse_types", DataTypeVector());
    tester.Attr("dense_types", DataTypeVector{DT_INT64}).Attr("out_type", DT_STRING);
    tester.Attr("hashed_output", false).Attr("num_buckets", 0).Attr("hash_key", 1);
    return tester.Attr("internal_type", internal_type).ShapeIsData().RunOnThreads(1);
  };
  EXPECT_THAT(run(DT_STRING), StatusIs(kInvalidArgument, HasSubstr("all inputs must be strings")));
  EXPECT_THAT(run(DT_INT64)->at(1), TensorEq(AsTensor<tstring>({"3", "4"})));
}

TEST(SparseCross, DoesNotVisitTheRowsThatAShapeClaims) {
  const int64_t rows = int64_t{1} << 60;
  const auto outputs =
      Cross({Ints({5, 0, rows - 1, 0}, {2, 2}), Ints({rows - 1, 0}, {1, 2})}, {rows, 1}, {})
          .RunOnThreads(1);
  GRADFLOW_ASSERT_OK(outputs.status());
  EXPECT_THAT((*outputs)[0], TensorEq(Ints({rows - 1, 0}, {1, 2})));
  EXPECT_THAT((*outputs)[1], TensorEq(AsTensor<tstring>({"1-0"})));
  EXPECT_THAT((*outputs)[2], TensorEq(AsTensor<int64_t>({rows, 1})));
  GRADFLOW_EXPECT_OK(Cross({}, {}, {Tensor(DT_INT64, {rows, 0})}).RunOnThreads(1).status());
}

// TensorFlow reads outside of its memory for dense integers.
TEST(SparseCross, HashesDenseIntegersAsSparseOnes) {
  const auto dense = StrongHash(false).RunOnThreads(1);
  const auto sparse = StrongHash(true).RunOnThreads(1);
  GRADFLOW_ASSERT_OK(dense.status());
  GRADFLOW_ASSERT_OK(sparse.status());
  EXPECT_THAT((*dense)[1], TensorEq((*sparse)[1]));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
