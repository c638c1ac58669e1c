// Tests of ragged tensors: TensorFlow's values are in
// tests/data/tensorflow_values/ragged_ragged.txt. Here are the texts of errors, and cases that
// TensorFlow does not check.
#include <string>
#include <vector>

#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

OpTester ToTensor(const std::vector<Tensor>& partitions, const std::vector<std::string>& types) {
  OpTester tester("RaggedTensorToTensor");
  tester.Input(AsTensor<int64_t>({-1, -1})).Input(AsTensor<float>({1, 2, 3}));
  tester.Input(AsScalar<float>(0)).Inputs(partitions).Attr("row_partition_types", types);
  return tester.ShapeIsData();
}

TEST(Ragged, ChecksItsInputs) {
  const auto ints = [](const std::vector<int64_t>& values) { return AsTensor<int64_t>(values); };
  const Tensor values = AsTensor<float>({1, 2, 3});
  const auto sparse = [&](const std::vector<int64_t>& splits) {
    return OpTester("RaggedTensorToSparse").Input(ints(splits)).Input(values).ShapeIsData();
  };
  // Gathers row 0, which has `row_size` empty values.
  const auto gather = [](const TensorShape& indices, int32_t row_size) {
    return OpTester("RaggedGather")
        .Input(AsTensor<int32_t>({0, row_size}))
        .Input(Tensor(DT_FLOAT, {row_size, 0}))
        .Input(RandomTensor(DT_INT64, indices, 0, 0))
        .Attr("OUTPUT_RAGGED_RANK", indices.dims())
        .ShapeIsData();
  };
  const auto range = [](int32_t start, int32_t limit, int32_t delta) {
    return OpTester("RaggedRange")
        .Input(AsScalar<int32_t>(start))
        .Input(AsScalar<int32_t>(limit))
        .Input(AsScalar<int32_t>(delta))
        .ShapeIsData();
  };
  const auto fill = [&](const std::vector<int64_t>& rows, int64_t num_rows) {
    return OpTester("RaggedFillEmptyRows")
        .Input(ints(rows))
        .Input(AsTensor<float>({1, 2}))
        .Input(AsScalar<int64_t>(num_rows))
        .Input(AsScalar<float>(0))
        .ShapeIsData();
  };
  const auto cross = [&](const char* order, const std::vector<int64_t>& splits) {
    return OpTester("RaggedCross")
        .Input(ints({1, 2, 3}))
        .Input(ints(splits))
        .Attr("Nsparse", 0)
        .Attr("input_order", order)
        .Attr("hashed_output", true)
        .Attr("num_buckets", 0)
        .Attr("hash_key", 1)
        .Attr("ragged_values_types", DataTypeVector{DT_INT64})
        .Attr("ragged_splits_types", DataTypeVector{DT_INT64})
        .Attr("sparse_values_types", DataTypeVector{})
        .Attr("dense_types", DataTypeVector{})
        .Attr("out_values_type", DT_INT64)
        .Attr("out_row_splits_type", DT_INT64)
        .ShapeIsData();
  };
  const struct {
    OpTester tester;
    const char* error;
  } cases[] = {
      {sparse({1, 3}), "rt_nested_splits[0] must begin with 0, but begins with 1"},
      {sparse({0, 2, 1, 3}), "rt_nested_splits[0] must not decrease, but 2 is followed by 1"},
      {sparse({0, 2}),
       "rt_nested_splits[0] must end with the number of values, 3, but ends with 2"},
      {sparse({}), "rt_nested_splits[0] must be a vector of at least one integer"},
      {OpTester("RaggedGather")
           .Input(ints({0, 3}))
           .Input(values)
           .Input(ints({1}))
           .Attr("OUTPUT_RAGGED_RANK", 1)
           .ShapeIsData(),
       "indices[0] = 1 is not in [0, 1)"},
      {OpTester("RaggedGather")
           .Input(ints({0, 3}))
           .Input(values)
           .Input(ints({0}))
           .Attr("OUTPUT_RAGGED_RANK", 2)
           .ShapeIsData(),
       "OUTPUT_RAGGED_RANK must be 1 for indices of rank 1, but is 2"},
      {gather({2, int64_t{1} << 62, 0}, 0), "the splits of the result exceed int32"},
      {gather({2, int64_t{1} << 31, 0}, 0), "the splits of the result exceed int32"},
      {gather({4}, 1 << 30), "the splits of the result exceed int32"},
      {range(0, 1, 0), "delta 0 must not be 0"},
      {fill({0, 4}, 3), "value_rowids[1] has row 4, but there are 3 rows"},
      {fill({0, 1}, -1), "nrows must not be negative, but is -1"},
      {OpTester("RaggedFillEmptyRowsGrad").Input(ints({4})).Input(values).ShapeIsData(),
       "reverse_index_map[0] is 4, but grad_values has 3 elements"},
      {cross("R", {0, 2}), "ragged_row_splits[0] must end with the number of values, 3"},
      {cross("D", {0, 3}), "input_order must have 1 times the letter R, but is 'D'"},
      {cross("RX", {0, 3}), "input_order must consist of the letters R, S and D, but is 'RX'"},
      {ToTensor({ints({0, 2, 9})}, {"ROW_SPLITS"}),
       "row_partition_tensors[0] describes 9 values, but there are 3"},
      {ToTensor({ints({0, 2, 1})}, {"ROW_SPLITS"}), "must not decrease"},
      {ToTensor({AsScalar<int64_t>(2), ints({0, 0, 2})}, {"FIRST_DIM_SIZE", "VALUE_ROWIDS"}),
       "must be in [0, 2), but element 2 is 2"},
      {ToTensor({AsScalar<int64_t>(-2), ints({0})}, {"FIRST_DIM_SIZE", "VALUE_ROWIDS"}),
       "the first dimension must not be negative, but is -2"},
      {ToTensor({ints({0, 0, 1})}, {"VALUE_ROWIDS"}), "but element 0 is 'VALUE_ROWIDS'"},
      {ToTensor({ints({0, 3})}, {}), "row_partition_types must have 1 elements"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(OpTester(c.tester).Run(), StatusIs(kInvalidArgument, HasSubstr(c.error)));
  }
}

TEST(Ragged, DenseTensorsWithoutElementsTakeNoMemory) {
  constexpr int64_t kLarge = int64_t{1} << 40;
  const auto dense = OpTester("RaggedTensorToTensor")
                         .Input(AsTensor<int64_t>({-1, kLarge, -1}))
                         .Input(Tensor(DT_FLOAT, {0, kLarge}))
                         .Input(AsScalar<float>(0))
                         .Input(AsTensor<int64_t>({0}))
                         .Attr("row_partition_types", std::vector<std::string>{"ROW_SPLITS"})
                         .ShapeIsData()
                         .RunOne();
  ASSERT_THAT(dense, IsOk());
  EXPECT_EQ(dense->shape(), TensorShape({0, kLarge, kLarge}));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
