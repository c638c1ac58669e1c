// Tests of SparseTensor in the style of TensorFlow 1.x: constructors, and results without a status.
#include "tensorflow/core/util/sparse/sparse_tensor.h"

#include <vector>

#include "tensorflow/core/framework/tensor_testutil.h"
#include "tensorflow/core/platform/test.h"

namespace tensorflow {
namespace {

TEST(SparseTensorTest, HasTheStatusAndTheResultsOf1x) {
  const Tensor indices = test::AsTensor<int64>({0, 0, 0, 1, 1, 1}, TensorShape({3, 2}));
  const std::vector<int64> order = {0, 1};
  const auto sparse =
      sparse::SparseTensor(indices, test::AsTensor<float>({1, 2, 3}), TensorShape({2, 2}), order);
  const auto valid = sparse.IndicesValid();
  EXPECT_TRUE(valid.ok());
  EXPECT_EQ(valid.error_message(), "");
  std::vector<int64> rows;
  for (const auto& group : sparse.group({0})) rows.push_back(group.group()[0]);
  EXPECT_EQ(rows, std::vector<int64>({0, 1}));

  const std::vector<sparse::SparseTensor> parts = sparse::SparseTensor::Split<float>(sparse, 0, 2);
  ASSERT_EQ(parts.size(), 2);
  test::ExpectTensorEqual<float>(parts[1].values(), test::AsTensor<float>({3}));
  const sparse::SparseTensor column = sparse::SparseTensor::Slice<float>(sparse, {0, 1}, {2, 1});
  test::ExpectTensorEqual<float>(column.values(), test::AsTensor<float>({2, 3}));
  EXPECT_DEATH(sparse::SparseTensor::Slice<float>(sparse, {-1, 0}, {1, 1}), "starts at -1");
}

}  // namespace
}  // namespace tensorflow
