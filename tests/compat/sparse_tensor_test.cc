// Tests of SparseTensor, its groups and its comparison of indices.
#include "tensorflow/core/util/sparse/sparse_tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/tensor_testutil.h"
#include "tensorflow/core/lib/core/status_test_util.h"

namespace tensorflow {
namespace sparse_tensor_test {

using sparse::DimComparator;
using sparse::FixedDimComparator;
using sparse::Group;
using sparse::SparseTensor;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor Indices(int64_t entries, int64_t dims, const std::vector<int64_t>& values) {
  return test::AsTensor<int64_t>(values, TensorShape({entries, dims}));
}

std::vector<int64_t> IndicesOf(const SparseTensor& sparse) {
  const auto span = sparse.indices().span<int64_t>();
  return {span.begin(), span.end()};
}
std::vector<float> ValuesOf(const SparseTensor& sparse) {
  const auto span = sparse.values().span<float>();
  return {span.begin(), span.end()};
}

// [[1 . .]
//  [. 2 3]
//  [. . .]
//  [4 . .]], sorted by rows
SparseTensor Rows() {
  SparseTensor sparse;
  TF_CHECK_OK(SparseTensor::Create(Indices(4, 2, {0, 0, 1, 1, 1, 2, 3, 0}),
                                   test::AsTensor<float>({1, 2, 3, 4}), TensorShape({4, 3}), {0, 1},
                                   &sparse));
  return sparse;
}

TEST(SparseTensorTest, HasParts) {
  const SparseTensor sparse = Rows();
  EXPECT_EQ(sparse.dims(), 2);
  EXPECT_EQ(sparse.num_entries(), 4);
  EXPECT_EQ(sparse.dtype(), DT_FLOAT);
  EXPECT_THAT(sparse.shape(), ElementsAre(4, 3));
  EXPECT_THAT(sparse.order(), ElementsAre(0, 1));
  EXPECT_THAT(sparse.PickDims({1, 0, 1}), ElementsAre(3, 4, 3));
  TF_EXPECT_OK(sparse.IndicesValid());
  EXPECT_EQ(SparseTensor().num_entries(), 0);
}

TEST(SparseTensorTest, CreateChecksTypesAndShapes) {
  const Tensor values = test::AsTensor<float>({1, 2});
  const Tensor indices = Indices(2, 2, {0, 0, 1, 1});
  SparseTensor sparse;
  const auto create = [&](const Tensor& ix, const Tensor& vals, const TensorShape& shape,
                          const std::vector<int64_t>& order) {
    return SparseTensor::Create(ix, vals, shape, order, &sparse).code();
  };
  EXPECT_EQ(create(indices, values, {2, 2}, {1, 0}), error::OK);
  EXPECT_EQ(create(Tensor(DT_INT32, {2, 2}), values, {2, 2}, {0, 1}), error::INVALID_ARGUMENT);
  EXPECT_EQ(create(Tensor(DT_INT64, {2}), values, {2, 2}, {0, 1}), error::INVALID_ARGUMENT);
  EXPECT_EQ(create(Tensor(DT_INT64, {2, 2, 1}), values, {2, 2}, {0, 1}), error::INVALID_ARGUMENT);
  EXPECT_EQ(create(indices, Tensor(DT_FLOAT, {2, 1}), {2, 2}, {0, 1}), error::INVALID_ARGUMENT);
  EXPECT_EQ(create(indices, Tensor(DT_FLOAT, {3}), {2, 2}, {0, 1}), error::INVALID_ARGUMENT);
  EXPECT_EQ(create(indices, values, {2, 2, 2}, {0, 1}), error::INVALID_ARGUMENT);
  EXPECT_EQ(create(indices, values, {2, 2}, {0}), error::INVALID_ARGUMENT);
  // After a failure, the tensor keeps its previous value.
  EXPECT_THAT(sparse.order(), ElementsAre(1, 0));
  EXPECT_DEATH(SparseTensor(indices, values, TensorShape({2})), "2 dimensions, the shape 1");
}

TEST(SparseTensorTest, IndicesValidNamesTheEntry) {
  const auto check = [](const std::vector<int64_t>& indices, const std::vector<int64_t>& order) {
    SparseTensor sparse;
    TF_CHECK_OK(SparseTensor::Create(Indices(3, 2, indices), Tensor(DT_FLOAT, {3}),
                                     TensorShape({10, 20}), order, &sparse));
    return sparse.IndicesValid();
  };
  TF_EXPECT_OK(check({0, 5, 1, 0, 9, 19}, {0, 1}));
  TF_EXPECT_OK(check({1, 0, 0, 5, 9, 19}, {1, 0}));
  EXPECT_THAT(std::string(check({0, 5, 1, 0, 9, 19}, {1, 0}).message()),
              HasSubstr("indices[1] = [1,0] is out of order"));
  EXPECT_THAT(std::string(check({0, 5, 1, 0, 1, 0}, {0, 1}).message()),
              HasSubstr("indices[2] = [1,0] is repeated"));
  EXPECT_THAT(std::string(check({0, 5, 1, 20, 2, 0}, {0, 1}).message()),
              HasSubstr("indices[1] = [1,20] is out of bounds: need 0 <= index < [10,20]"));
  EXPECT_THAT(std::string(check({-1, 5, 1, 2, 2, 0}, {0, 1}).message()),
              HasSubstr("indices[0] = [-1,5] is out of bounds"));
  EXPECT_EQ(check({0, 5, 1, 0, 9, 19}, {-1, -1}).code(), error::FAILED_PRECONDITION);
}

TEST(SparseTensorTest, ReorderSortsIndicesAndValues) {
  SparseTensor sparse;
  TF_ASSERT_OK(SparseTensor::Create(Indices(5, 3, {0, 0, 0, 3, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2}),
                                    test::AsTensor<float>({1, 2, 3, 4, 5}), TensorShape({4, 2, 3}),
                                    &sparse));
  EXPECT_EQ(sparse.IndicesValid().code(), error::FAILED_PRECONDITION);
  sparse.Reorder<float>({0, 1, 2});
  EXPECT_THAT(IndicesOf(sparse), ElementsAre(0, 0, 0, 0, 0, 2, 0, 1, 0, 2, 0, 0, 3, 0, 0));
  EXPECT_THAT(ValuesOf(sparse), ElementsAre(1, 5, 4, 3, 2));
  EXPECT_THAT(sparse.order(), ElementsAre(0, 1, 2));
  TF_EXPECT_OK(sparse.IndicesValid());
  // Copies share the elements.
  SparseTensor copy = sparse;
  copy.Reorder<float>({2, 0, 1});
  EXPECT_THAT(ValuesOf(sparse), ElementsAre(1, 4, 3, 2, 5));
  TF_EXPECT_OK(copy.IndicesValid());
  EXPECT_DEATH(sparse.Reorder<float>({0, 1}), "expected an order of 3 dimensions");
  EXPECT_DEATH(sparse.Reorder<float>({0, 1, 1}), "expected an order of 3 dimensions");
}

TEST(SparseTensorTest, ReorderIsStableAndTakesAnyType) {
  SparseTensor strings;
  TF_ASSERT_OK(SparseTensor::Create(Indices(4, 1, {2, 1, 2, 1}),
                                    test::AsTensor<tstring>({"a", "b", "c", "d"}), TensorShape({3}),
                                    &strings));
  strings.Reorder<tstring>({0});
  EXPECT_THAT(strings.values().span<tstring>(), ElementsAre("b", "d", "a", "c"));
  SparseTensor flags;
  TF_ASSERT_OK(SparseTensor::Create(Indices(2, 1, {1, 0}), test::AsTensor<bool>({true, false}),
                                    TensorShape({2}), &flags));
  flags.Reorder<bool>({0});
  EXPECT_THAT(flags.values().span<bool>(), ElementsAre(false, true));
}

TEST(SparseTensorTest, IteratesOverGroups) {
  const SparseTensor sparse = Rows();
  auto groups = sparse.group({0});
  std::vector<std::vector<int64_t>> found;
  std::vector<std::vector<float>> values;
  for (const Group& group : groups) {
    found.push_back(group.group());
    EXPECT_EQ(group.group_at(0), found.back()[0]);
    const auto view = group.values<float>();
    values.emplace_back(view.data(), view.data() + view.size());
    EXPECT_EQ(group.indices().dimension(0), view.size());
    EXPECT_EQ(group.indices()(0, 0), found.back()[0]);
  }
  EXPECT_THAT(found, ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(3)));
  EXPECT_THAT(values, ElementsAre(ElementsAre(1), ElementsAre(2, 3), ElementsAre(4)));

  auto second = groups.at(1);
  EXPECT_EQ(second.loc(), 1);
  EXPECT_EQ((*second).indices()(1, 1), 2);
  EXPECT_EQ((second++).loc(), 1);
  EXPECT_EQ(second.loc(), 3);
  EXPECT_TRUE(groups.at(4) == groups.end());
  EXPECT_DEATH(groups.at(5), "there is no entry 5");
  EXPECT_DEATH(sparse.group({1}), "sorted by \\[0,1\\]");

  auto all = sparse.group({});
  EXPECT_EQ((*all.begin()).values<float>().size(), 4);
  EXPECT_TRUE(++all.begin() == all.end());
}

TEST(SparseTensorTest, ToDenseWritesElements) {
  const SparseTensor sparse = Rows();
  Tensor dense(DT_FLOAT, {4, 3});
  dense.flat<float>().setConstant(7);
  ASSERT_TRUE(sparse.ToDense<float>(&dense));
  test::ExpectTensorEqual<float>(
      dense, test::AsTensor<float>({1, 0, 0, 0, 2, 3, 0, 0, 0, 4, 0, 0}, {4, 3}));
  // The target is larger, and its other elements stay.
  Tensor larger(DT_FLOAT, {4, 4});
  larger.flat<float>().setConstant(7);
  ASSERT_TRUE(sparse.ToDense<float>(&larger, false));
  test::ExpectTensorEqual<float>(
      larger, test::AsTensor<float>({1, 7, 7, 7, 7, 2, 3, 7, 7, 7, 7, 7, 4, 7, 7, 7}, {4, 4}));

  Tensor smaller(DT_FLOAT, {4, 2}), flat(DT_FLOAT, {12}), integers(DT_INT32, {4, 3});
  EXPECT_FALSE(sparse.ToDense<float>(&smaller));
  EXPECT_FALSE(sparse.ToDense<float>(&flat));
  EXPECT_FALSE(sparse.ToDense<float>(&integers));
  EXPECT_FALSE(sparse.ToDense<int32>(&integers));
  for (const int64_t index : {int64_t{-1}, int64_t{4}}) {
    SparseTensor outside;
    TF_ASSERT_OK(SparseTensor::Create(Indices(1, 1, {index}), test::AsTensor<float>({1}),
                                      TensorShape({4}), &outside));
    Tensor vector(DT_FLOAT, {4});
    EXPECT_FALSE(outside.ToDense<float>(&vector));
  }
  SparseTensor scalar;
  TF_ASSERT_OK(SparseTensor::Create(Tensor(DT_INT64, {1, 0}), test::AsTensor<float>({5}),
                                    TensorShape({}), &scalar));
  Tensor one(DT_FLOAT, TensorShape({}));
  ASSERT_TRUE(scalar.ToDense<float>(&one));
  EXPECT_EQ(one.scalar<float>()(), 5);
}

TEST(SparseTensorTest, ConcatJoinsTensors) {
  const SparseTensor rows = Rows();
  const SparseTensor both = SparseTensor::Concat<float>({rows, rows});
  EXPECT_THAT(both.shape(), ElementsAre(8, 3));
  EXPECT_THAT(both.order(), ElementsAre(0, 1));
  EXPECT_THAT(ValuesOf(both), ElementsAre(1, 2, 3, 4, 1, 2, 3, 4));
  EXPECT_THAT(IndicesOf(both), ElementsAre(0, 0, 1, 1, 1, 2, 3, 0, 4, 0, 5, 1, 5, 2, 7, 0));
  TF_EXPECT_OK(both.IndicesValid());

  // Concatenates along the first dimension of the order.
  SparseTensor columns(Indices(2, 2, {3, 0, 0, 1}), test::AsTensor<float>({1, 2}),
                       TensorShape({4, 2}), {1, 0});
  const SparseTensor wide = SparseTensor::Concat<float>({columns, columns});
  EXPECT_THAT(wide.shape(), ElementsAre(4, 4));
  EXPECT_THAT(IndicesOf(wide), ElementsAre(3, 0, 0, 1, 3, 2, 0, 3));
  TF_EXPECT_OK(wide.IndicesValid());
  EXPECT_DEATH(SparseTensor::Concat<float>({rows, columns}), "sorted by \\[1,0\\]");
  EXPECT_DEATH(SparseTensor::Concat<float>({}), "no tensors to concatenate");
  const SparseTensor narrow(Indices(1, 2, {0, 0}), test::AsTensor<float>({1}), TensorShape({4, 2}),
                            {0, 1});
  EXPECT_DEATH(SparseTensor::Concat<float>({rows, narrow}), "sizes of dimension 1 differ");

  // If the orders differ after the first dimension, the order of the result is unknown.
  const auto cube = [](const std::vector<int64_t>& order) {
    return SparseTensor(Tensor(DT_INT64, {0, 3}), Tensor(DT_FLOAT, {0}), TensorShape({2, 2, 2}),
                        order);
  };
  const SparseTensor cubes = SparseTensor::Concat<float>({cube({0, 1, 2}), cube({0, 2, 1})});
  EXPECT_THAT(cubes.order(), ElementsAre(-1, -1, -1));
  EXPECT_THAT(cubes.shape(), ElementsAre(4, 2, 2));
  EXPECT_EQ(cubes.num_entries(), 0);
}

TEST(SparseTensorTest, SplitDividesATensor) {
  std::vector<SparseTensor> parts;
  TF_ASSERT_OK(SparseTensor::Split<float>(Rows(), 0, 3, &parts));
  ASSERT_EQ(parts.size(), 3);
  EXPECT_THAT(parts[0].shape(), ElementsAre(2, 3));
  EXPECT_THAT(parts[1].shape(), ElementsAre(1, 3));
  EXPECT_THAT(parts[2].shape(), ElementsAre(1, 3));
  EXPECT_THAT(IndicesOf(parts[0]), ElementsAre(0, 0, 1, 1, 1, 2));
  EXPECT_EQ(parts[1].num_entries(), 0);
  EXPECT_THAT(IndicesOf(parts[2]), ElementsAre(0, 0));
  EXPECT_THAT(ValuesOf(parts[2]), ElementsAre(4));
  EXPECT_THAT(parts[2].order(), ElementsAre(0, 1));
  // Joining the parts of a vector of n elements restores the vector.
  for (int n = 1; n <= 7; ++n) {
    std::vector<int64_t> numbers(7);
    for (int i = 0; i < 7; ++i) numbers[i] = i;
    const SparseTensor vector(Indices(7, 1, numbers), test::AsTensor<float>({0, 1, 2, 3, 4, 5, 6}),
                              TensorShape({7}), {0});
    const SparseTensor again =
        SparseTensor::Concat<float>(SparseTensor::Split<float>(vector, 0, n));
    EXPECT_EQ(IndicesOf(again), numbers) << n;
    EXPECT_EQ(ValuesOf(again), ValuesOf(vector)) << n;
  }

  EXPECT_EQ(SparseTensor::Split<float>(Rows(), 2, 1, &parts).code(), error::INVALID_ARGUMENT);
  EXPECT_EQ(SparseTensor::Split<float>(Rows(), -1, 1, &parts).code(), error::INVALID_ARGUMENT);
  EXPECT_EQ(SparseTensor::Split<float>(Rows(), 0, 0, &parts).code(), error::INVALID_ARGUMENT);
  EXPECT_EQ(SparseTensor::Split<float>(Rows(), 0, 5, &parts).code(), error::INVALID_ARGUMENT);
  const SparseTensor outside(Indices(1, 1, {9}), test::AsTensor<float>({1}), TensorShape({4}), {0});
  EXPECT_EQ(SparseTensor::Split<float>(outside, 0, 2, &parts).code(), error::INVALID_ARGUMENT);
  EXPECT_EQ(parts.size(), 3);
}

TEST(SparseTensorTest, SliceSelectsElements) {
  const auto slice = [](const std::vector<int64_t>& start, const std::vector<int64_t>& size) {
    return SparseTensor::Slice<float>(Rows(), start, size);
  };
  TF_ASSERT_OK_AND_ASSIGN(const SparseTensor middle, slice({1, 1}, {2, 5}));
  EXPECT_THAT(middle.shape(), ElementsAre(2, 2));
  EXPECT_THAT(IndicesOf(middle), ElementsAre(0, 0, 0, 1));
  EXPECT_THAT(ValuesOf(middle), ElementsAre(2, 3));
  TF_EXPECT_OK(middle.IndicesValid());
  const absl::StatusOr<SparseTensor> behind = slice({5, 1}, {1, 2});
  TF_ASSERT_OK(behind.status());
  EXPECT_THAT(behind->shape(), ElementsAre(0, 2));
  EXPECT_EQ(behind->num_entries(), 0);
  const int64_t max = std::numeric_limits<int64_t>::max();
  const absl::StatusOr<SparseTensor> rest = slice({3, 0}, {max, max});
  TF_ASSERT_OK(rest.status());
  EXPECT_THAT(rest->shape(), ElementsAre(1, 3));
  EXPECT_THAT(ValuesOf(*rest), ElementsAre(4));
  EXPECT_EQ(slice({-1, 0}, {1, 1}).status().code(), error::INVALID_ARGUMENT);
  EXPECT_EQ(slice({0, 0}, {1, -1}).status().code(), error::INVALID_ARGUMENT);
  EXPECT_EQ(slice({0}, {1}).status().code(), error::INVALID_ARGUMENT);
}

TEST(SparseTensorTest, DescribesMismatches) {
  const Tensor values = test::AsTensor<float>({1, 2});
  const Tensor indices = Indices(2, 2, {0, 0, 1, 1});
  const auto create = [](const Tensor& ix, const Tensor& vals, const TensorShape& shape,
                         const std::vector<int64_t>& order) {
    SparseTensor sparse;
    return std::string(SparseTensor::Create(ix, vals, shape, order, &sparse).message());
  };
  EXPECT_EQ(create(Tensor(DT_INT32, {2, 2}), values, {2, 2}, {0, 1}),
            "expected indices of type int64, found int32");
  EXPECT_EQ(create(Tensor(DT_INT64, {2}), values, {2, 2}, {0, 1}),
            "expected a matrix of indices, found shape [2]");
  EXPECT_EQ(create(indices, Tensor(DT_FLOAT, {3}), {2, 2}, {0, 1}),
            "expected values of shape [2], found [3]");
  EXPECT_EQ(create(indices, values, {2, 2, 2}, {0}),
            "the indices have 2 dimensions, the shape 3 and the order 1");
  const SparseTensor unknown(indices, values, TensorShape({2, 2}));
  EXPECT_THAT(unknown.order(), ElementsAre(-1, -1));
  const SparseTensor rows = Rows();
  EXPECT_EQ(rows.PickDims({}).size(), 0u);
  EXPECT_DEATH(rows.PickDims({2}), "there is no dimension 2");
  EXPECT_DEATH(rows.PickDims({-1}), "there is no dimension -1");
  EXPECT_DEATH(rows.group({0, 1, 2}), "dims.size\\(\\) <= order_.size\\(\\)");
  EXPECT_EQ(rows.group({0}).at(0).loc(), 0);
  EXPECT_DEATH(rows.group({0}).at(-1), "there is no entry -1");
  const auto group = [&](const Tensor& ix, int dims, const std::vector<int64_t>& of) {
    return sparse::GroupIterable(ix, values, dims, of);
  };
  group(indices, 2, {0, 1});
  EXPECT_DEATH(group(indices, 3, {0}), "the indices are ");
  EXPECT_DEATH(group(Indices(4, 1, {0, 1, 2, 3}).Slice(0, 2), 2, {0}), "the indices are ");
  EXPECT_DEATH(group(indices, 2, {2}), "there is no dimension 2");
  EXPECT_DEATH(group(indices, 2, {0, -1}), "there is no dimension -1");

  const SparseTensor integers(indices, test::AsTensor<int32>({1, 2}), TensorShape({4, 3}), {0, 1});
  const SparseTensor vector(Indices(1, 1, {0}), test::AsTensor<float>({1}), TensorShape({4}), {0});
  const SparseTensor scalar(Tensor(DT_INT64, {1, 0}), test::AsTensor<float>({5}), TensorShape({}));
  EXPECT_DEATH(SparseTensor::Concat<float>({rows, integers}), "tensor.dtype\\(\\) == ");
  EXPECT_DEATH(SparseTensor::Concat<float>({vector, rows}), "tensor.dims\\(\\) == ");
  EXPECT_DEATH(SparseTensor::Concat<float>({unknown, rows}), "the order is not known");
  EXPECT_DEATH(SparseTensor::Concat<float>({scalar}), "the order is not known");
  EXPECT_DEATH(SparseTensor::Concat<float>({rows, unknown}), "sorted by \\[-1,-1\\]");
  const SparseTensor broken(indices, values, TensorShape({4, 3}), {0, 0});
  EXPECT_DEATH(SparseTensor::Concat<float>({rows, broken}), "sorted by \\[0,0\\]");
  EXPECT_EQ(SparseTensor::Concat<float>({vector, vector, vector}).shape()[0], 12);
  const auto columns = [&](int64_t rows) {
    return SparseTensor(indices, values, TensorShape({rows, 3}), {1, 0});
  };
  EXPECT_DEATH(SparseTensor::Concat<float>({columns(2), columns(3)}),
               "sizes of dimension 0 differ");
}

TEST(SparseTensorTest, SplitsAndSlicesColumns) {
  std::vector<SparseTensor> parts;
  TF_ASSERT_OK(SparseTensor::Split<float>(Rows(), 1, 2, &parts));
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_THAT(parts[0].shape(), ElementsAre(4, 2));
  EXPECT_THAT(IndicesOf(parts[0]), ElementsAre(0, 0, 1, 1, 3, 0));
  EXPECT_THAT(ValuesOf(parts[0]), ElementsAre(1, 2, 4));
  EXPECT_THAT(parts[1].shape(), ElementsAre(4, 1));
  EXPECT_THAT(IndicesOf(parts[1]), ElementsAre(1, 0));
  EXPECT_THAT(ValuesOf(parts[1]), ElementsAre(3));
  TF_EXPECT_OK(SparseTensor::Split<float>(Rows(), 1, 3, &parts));
  EXPECT_EQ(parts.size(), 3u);
  const auto error = [](const SparseTensor& sparse, int dim, int num) {
    std::vector<SparseTensor> none;
    return std::string(SparseTensor::Split<float>(sparse, dim, num, &none).message());
  };
  EXPECT_EQ(error(Rows(), 2, 1), "there is no dimension 2 of 2");
  EXPECT_EQ(error(Rows(), 1, 4), "dimension 1 of size 3 cannot be split into 4 parts");
  for (const int64_t index : {-1, 3}) {
    const SparseTensor outside(Indices(1, 2, {0, index}), test::AsTensor<float>({1}),
                               TensorShape({4, 3}), {0, 1});
    EXPECT_EQ(error(outside, 1, 1), absl::StrCat("indices[0] = [0,", index,
                                                 "] is out of bounds: dimension 1 has size 3"));
    Tensor dense(DT_FLOAT, {4, 3});
    EXPECT_FALSE(outside.ToDense<float>(&dense));
  }
  const std::vector<int64_t> start = {0, 0}, size = {4, 2}, one = {1};
  const auto slice = SparseTensor::Slice<float>(Rows(), start, size);
  TF_ASSERT_OK(slice.status());
  EXPECT_THAT(IndicesOf(*slice), ElementsAre(0, 0, 1, 1, 3, 0));
  EXPECT_EQ(SparseTensor::Slice<float>(Rows(), start, one).status().message(),
            "expected 2 starts and sizes, found 2 and 1");
  EXPECT_EQ(SparseTensor::Slice<float>(Rows(), one, size).status().message(),
            "expected 2 starts and sizes, found 1 and 2");
  const std::vector<int64_t> negative = {0, -1};
  EXPECT_EQ(SparseTensor::Slice<float>(Rows(), negative, size).status().message(),
            "the slice of dimension 1 starts at -1 and has size 2");
}

TEST(DimComparatorTest, ComparesInTheOrderOfDimensions) {
  Tensor indices = Indices(4, 2, {1, 0, 0, 1, 0, 0, 1, 1});
  const auto sorted = [&](const auto& comparator) {
    std::vector<int64_t> rows = {0, 1, 2, 3};
    std::sort(rows.begin(), rows.end(), comparator);
    return rows;
  };
  const std::vector<int64_t> shape = {2, 2}, rows = {0, 1}, columns = {1, 0}, one = {0};
  const auto ix = indices.matrix<int64_t>();
  EXPECT_THAT(sorted(DimComparator(ix, rows, shape)), ElementsAre(2, 1, 0, 3));
  EXPECT_THAT(sorted(DimComparator(ix, columns, shape)), ElementsAre(2, 0, 1, 3));
  EXPECT_THAT(sorted(FixedDimComparator<2>(ix, columns, shape)), ElementsAre(2, 0, 1, 3));
  EXPECT_FALSE(DimComparator(ix, one, shape)(1, 2));
  EXPECT_DEATH(FixedDimComparator<1>(ix, rows, shape), "");
  const Tensor& constant = indices;
  const auto view = constant.matrix<int64_t>();
  EXPECT_EQ(DimComparator::cmp(view, view, 0, 1, 2), 1);
  EXPECT_EQ(DimComparator::cmp(view, view, 1, 0, 2), -1);
  EXPECT_EQ(DimComparator::cmp(view, view, 1, 2, 1), 0);
  EXPECT_EQ(DimComparator::cmp(view, view, 1, 2, 2), 1);
}

}  // namespace sparse_tensor_test
}  // namespace tensorflow
