// Tests of counts: TensorFlow's values are in tests/data/tensorflow_values/sparse_count.txt.
#include <limits>
#include <vector>

#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

OpTester Count(const char* op, const std::vector<Tensor>& inputs) {
  return OpTester(op).Inputs(inputs).Attr("binary_output", false).ShapeIsData();
}

TEST(SparseCount, ChecksItsInputs) {
  const Tensor none = AsTensor<float>({});
  const Tensor index = AsTensor<int64_t>({0, 1, 1, 0}, {2, 2});
  const Tensor values = AsTensor<int64_t>({1, 2});
  const struct {
    OpTester tester;
    const char* error;
  } cases[] = {
      {Count("DenseCountSparseOutput", {AsTensor<int64_t>({1, -2}), none}),
       "values[1] is -2, expected at least 0"},
      {Count("DenseCountSparseOutput", {AsScalar<int64_t>(1), none}),
       "values must be a vector or a matrix, but has shape []"},
      {Count("DenseCountSparseOutput", {Tensor(DT_INT64, {0, 2}), none}),
       "values must have at least one row, but has shape [0,2]"},
      {Count("DenseCountSparseOutput", {values, AsTensor<float>({1})}),
       "weights has shape [1], and values has shape [2]"},
      {Count("DenseCountSparseOutput",
             {AsTensor<int64_t>({std::numeric_limits<int64_t>::max()}), none}),
       "which is too large to be counted"},
      {Count("SparseCountSparseOutput", {index, values, AsTensor<int64_t>({1, 2}), none}),
       "indices[1] is [1,0], which is not within the shape [1,2]"},
      {Count("SparseCountSparseOutput",
             {Tensor(DT_INT64, {0, 2}), AsTensor<int64_t>({}), AsTensor<int64_t>({0, 2}), none}),
       "dense_shape[0] must not be 0"},
      {Count("SparseCountSparseOutput",
             {Tensor(DT_INT64, {2, 0}), values, AsTensor<int64_t>({}), none}),
       "dense_shape must not be empty"},
      {Count("RaggedCountSparseOutput", {AsTensor<int64_t>({0, 3, 2}), values, none}),
       "splits must not decrease, but 3 is followed by 2"},
      {Count("RaggedCountSparseOutput", {AsTensor<int64_t>({0}), AsTensor<int64_t>({}), none}),
       "splits must describe at least one row"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(OpTester(c.tester).Run(), StatusIs(kInvalidArgument, HasSubstr(c.error)));
  }
}

// Weights are added in the order of the values, with the same bits on any number of threads.
TEST(SparseCount, AddsWeightsInTheOrderOfTheValues) {
  const auto counts = Count("DenseCountSparseOutput",
                            {AsTensor<int32_t>({1, 0, 1, 1}), AsTensor<float>({1, 5, 1e8, -1e8})})
                          .RunEverywhere();
  ASSERT_THAT(counts, IsOk());
  EXPECT_THAT((*counts)[1], TensorEq(AsTensor<float>({5, 0})));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
