// Tests of sets: TensorFlow's values are in tests/data/tensorflow_values/sparse_sets.txt.
#include <vector>

#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

OpTester Sets(const char* op, const std::vector<Tensor>& inputs) {
  return OpTester(op).Inputs(inputs).Attr("set_operation", "union").ShapeIsData();
}

TEST(SparseSets, CheckTheirInputs) {
  const Tensor index = AsTensor<int64_t>({0, 1, 1, 0}, {2, 2});
  const Tensor repeated = AsTensor<int64_t>({0, 1, 0, 1}, {2, 2});
  const Tensor values = AsTensor<int32_t>({1, 2});
  const Tensor shape = AsTensor<int64_t>({2, 3});
  const Tensor dense = AsTensor<int32_t>({1, 2, 3, 4}, {2, 2});
  const auto size = [](const std::vector<Tensor>& inputs) {
    return OpTester("SetSize").Inputs(inputs).ShapeIsData();
  };
  const struct {
    OpTester tester;
    const char* error;
  } cases[] = {
      {size({repeated, values, shape}), "set_indices[1] is [0,1], which is repeated"},
      {size({index, values, AsTensor<int64_t>({2, 1})}), "which is not within the shape [2,1]"},
      {size({AsTensor<int64_t>({0, 1}, {2, 1}), values, AsTensor<int64_t>({2})}),
       "set must have at least 2 dimensions, but has 1"},
      {Sets("DenseToDenseSetOperation", {dense, dense}).Attr("set_operation", "xor"),
       "set_operation must be a-b, b-a, intersection or union, but is 'xor'"},
      {Sets("DenseToDenseSetOperation", {dense, AsTensor<int32_t>({1}, {1, 1})}),
       "set1 and set2 must have the same shape except for the last dimension, but have shapes "
       "[2,2] and [1,1]"},
      {Sets("DenseToSparseSetOperation", {dense, repeated, values, shape}),
       "set2_indices[1] is [0,1], which is repeated"},
      {Sets("SparseToSparseSetOperation", {index, values, shape, repeated, values, shape}),
       "set2_indices[1] is [0,1], which is repeated"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(OpTester(c.tester).Run(), StatusIs(kInvalidArgument, HasSubstr(c.error)));
  }
}

// A shape may claim any number of sets. Only those with elements are visited.
TEST(SparseSets, DoNotVisitTheSetsThatAShapeClaims) {
  constexpr int64_t kLarge = int64_t{1} << 60;
  const Tensor index = AsTensor<int64_t>({kLarge - 1, 1}, {1, 2});
  const Tensor shape = AsTensor<int64_t>({kLarge, 2});
  const Tensor value = AsTensor<int32_t>({5});
  const auto sets =
      Sets("SparseToSparseSetOperation", {index, value, shape, index, value, shape}).Run();
  ASSERT_THAT(sets, IsOk());
  EXPECT_THAT((*sets)[0], TensorEq(AsTensor<int64_t>({kLarge - 1, 0}, {1, 2})));
  EXPECT_THAT((*sets)[2], TensorEq(AsTensor<int64_t>({kLarge, 1})));
  EXPECT_THAT(OpTester("SetSize").Inputs({index, value, shape}).ShapeIsData().Run(),
              StatusIs(absl::StatusCode::kResourceExhausted));
  // Sets of size 0 have no elements either.
  EXPECT_THAT(Sets("DenseToDenseSetOperation",
                   {Tensor(DT_INT32, {kLarge, 0}), Tensor(DT_INT32, {kLarge, 0})})
                  .Run(),
              IsOk());
}

// Without the check, equal indices and indices in another order belong to one set.
TEST(SparseSets, NeedNoOrderIfIndicesAreNotChecked) {
  EXPECT_THAT(OpTester("SetSize")
                  .Input(AsTensor<int64_t>({1, 0, 0, 1, 1, 1}, {3, 2}))
                  .Input(AsTensor<int32_t>({7, 7, 8}))
                  .Input(AsTensor<int64_t>({2, 2}))
                  .Attr("validate_indices", false)
                  .ShapeIsData()
                  .RunOne(),
              TensorEq(AsTensor<int32_t>({1, 2})));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
