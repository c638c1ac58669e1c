// Tests of Batches: order, position and accepted arguments.
#include "gradflow/training/input.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "gradflow/io/npy.h"
#include "gradflow/testing/status_matchers.h"
#include "gradflow/testing/tensor_matchers.h"
#include "gradflow/testing/tensors.h"
#include "tests/testing/folder_fixture.h"
#include "tests/testing/subprocess.h"

namespace gradflow {
namespace training {
namespace {

using ::gradflow::testing::AsTensor;
using ::gradflow::testing::FolderFixture;
using ::gradflow::testing::StatusIs;
using ::gradflow::testing::TensorEq;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Returns rows [i, -i] with labels i.
std::vector<Tensor> Rows(int64_t rows) {
  Tensor x(DT_INT32, {rows, 2});
  Tensor y(DT_INT64, {rows});
  for (int64_t i = 0; i < rows; ++i) {
    x.matrix<int32_t>()(i, 0) = static_cast<int32_t>(i);
    x.matrix<int32_t>()(i, 1) = static_cast<int32_t>(-i);
    y.flat<int64_t>()(i) = i;
  }
  return {x, y};
}

std::unique_ptr<Batches> MakeBatches(int64_t rows, const BatchesOptions& options) {
  absl::StatusOr<std::unique_ptr<Batches>> batches = Batches::Make(Rows(rows), options);
  GRADFLOW_EXPECT_OK(batches.status());
  return *std::move(batches);
}

// Returns the labels of the next batch. Compares the rows with the labels.
std::vector<int64_t> NextLabels(Batches* batches) {
  std::vector<Tensor> batch;
  GRADFLOW_EXPECT_OK(batches->Next(&batch));
  std::vector<int64_t> labels;
  if (batch.size() != 2) return labels;
  const auto y = batch[1].flat<int64_t>();
  labels.assign(y.begin(), y.end());
  EXPECT_EQ(batch[0].shape(), TensorShape({static_cast<int64_t>(labels.size()), 2}));
  for (size_t i = 0; i < labels.size(); ++i) {
    EXPECT_EQ(batch[0].matrix<int32_t>()(i, 0), labels[i]);
    EXPECT_EQ(batch[0].matrix<int32_t>()(i, 1), -labels[i]);
  }
  return labels;
}

TEST(Batches, KeepTheOrderAndTheRemainder) {
  BatchesOptions options;
  options.batch_size = 3;
  options.shuffle = false;
  options.drop_remainder = false;
  options.epochs = 2;
  for (options.prefetch = 0; options.prefetch < 5; ++options.prefetch) {
    const auto batches = MakeBatches(7, options);
    EXPECT_EQ(batches->batches_per_epoch(), 3);
    EXPECT_EQ(batches->num_examples(), 7);
    for (int epoch = 0; epoch < 2; ++epoch) {
      EXPECT_THAT(NextLabels(batches.get()), ElementsAre(0, 1, 2));
      EXPECT_THAT(NextLabels(batches.get()), ElementsAre(3, 4, 5));
      EXPECT_THAT(NextLabels(batches.get()), ElementsAre(6));
    }
    std::vector<Tensor> batch;
    EXPECT_THAT(batches->Next(&batch), StatusIs(absl::StatusCode::kOutOfRange,
                                                HasSubstr("the last of 2 epochs has ended")));
    EXPECT_EQ(batches->position(), 6);
    GRADFLOW_EXPECT_OK(batches->Seek(4));
    EXPECT_THAT(NextLabels(batches.get()), ElementsAre(3, 4, 5));
  }
}

TEST(Batches, EachEpochIsAPermutation) {
  BatchesOptions options;
  options.batch_size = 10;
  options.seed = 7;
  const auto batches = MakeBatches(100, options);
  std::set<std::vector<int64_t>> orders;
  for (int epoch = 0; epoch < 5; ++epoch) {
    std::vector<int64_t> order;
    for (int i = 0; i < 10; ++i) {
      for (const int64_t label : NextLabels(batches.get())) order.push_back(label);
    }
    orders.insert(order);
    std::sort(order.begin(), order.end());
    for (int64_t i = 0; i < 100; ++i) EXPECT_EQ(order[i], i);
  }
  EXPECT_EQ(orders.size(), 5);
}

// Over many seeds, the position of the first row is uniformly distributed.
TEST(Batches, ShufflesUniformly) {
  constexpr int kSeeds = 6000;
  constexpr int kRows = 6;
  std::vector<int> counts(kRows);
  BatchesOptions options;
  options.batch_size = kRows;
  options.prefetch = 0;
  for (options.seed = 0; options.seed < kSeeds; ++options.seed) {
    const std::vector<int64_t> order = NextLabels(MakeBatches(kRows, options).get());
    ++counts[std::find(order.begin(), order.end(), 0) - order.begin()];
  }
  // The tolerance is five stddevs.
  for (const int count : counts) EXPECT_NEAR(count, kSeeds / kRows, 5 * 29);
}

TEST(Batches, OrdersNeverChange) {
  BatchesOptions options;
  options.batch_size = 8;
  options.seed = 1;
  const auto batches = MakeBatches(8, options);
  // If this order changed, resumed runs would see other batches.
  EXPECT_THAT(NextLabels(batches.get()), ElementsAre(0, 1, 2, 7, 3, 4, 5, 6));
  EXPECT_THAT(NextLabels(batches.get()), ElementsAre(5, 6, 3, 4, 7, 2, 0, 1));
}

TEST(Batches, ContinueAtAPosition) {
  BatchesOptions options;
  options.batch_size = 4;
  options.seed = 3;
  const auto first = MakeBatches(30, options);
  std::vector<std::vector<int64_t>> all;
  for (int i = 0; i < 40; ++i) all.push_back(NextLabels(first.get()));
  for (const int64_t position : {0, 5, 7, 13, 39}) {
    options.prefetch = static_cast<int>(position % 4);
    const auto second = MakeBatches(30, options);
    NextLabels(second.get());
    GRADFLOW_ASSERT_OK(second->Seek(position));
    for (int64_t i = position; i < 40; ++i) EXPECT_EQ(NextLabels(second.get()), all[i]) << i;
  }
}

// Destroys a Batches many times while batches are being prepared.
TEST(Batches, MayBeDestroyedAtAnyTime) {
  BatchesOptions options;
  options.batch_size = 200;
  options.prefetch = 4;
  for (int i = 0; i < 50; ++i) {
    const auto batches = MakeBatches(2000, options);
    NextLabels(batches.get());
    GRADFLOW_EXPECT_OK(batches->Seek(i % 3));
  }
}

TEST(Batches, RejectInvalidArguments) {
  const auto error = [](std::vector<Tensor> arrays, const BatchesOptions& options) {
    return Batches::Make(std::move(arrays), options).status();
  };
  const auto is = [](const std::string& text) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text));
  };
  BatchesOptions options;
  options.batch_size = 4;
  EXPECT_THAT(error({}, options), is("batches need an array"));
  EXPECT_THAT(error({Tensor(1.0f)}, options), is("array 0 has type float and shape []"));
  EXPECT_THAT(error({Tensor(DT_STRING, {5})}, options), is("array 0 has type string"));
  EXPECT_THAT(error({Tensor(DT_FLOAT, {5}), Tensor(DT_FLOAT, {6})}, options),
              is("array 0 has 5 and array 1 has 6"));
  EXPECT_THAT(error(Rows(3), options), is("no batch of 4 examples: found 3"));
  options.drop_remainder = false;
  GRADFLOW_EXPECT_OK(error(Rows(3), options));
  EXPECT_THAT(error(Rows(0), options), is("no batch of 4 examples: found 0"));
  options.batch_size = 0;
  EXPECT_THAT(error(Rows(3), options), is("found batch_size 0, epochs 0"));
  options.batch_size = 1;
  options.epochs = -1;
  EXPECT_THAT(error(Rows(3), options), is("epochs -1"));
  EXPECT_THAT(MakeBatches(3, BatchesOptions{1})->Seek(-1), is("position of 0 or more, found -1"));
  // There is no position after this one.
  options = BatchesOptions{1};
  const auto batches = MakeBatches(3, options);
  GRADFLOW_ASSERT_OK(batches->Seek(std::numeric_limits<int64_t>::max() - 1));
  EXPECT_EQ(NextLabels(batches.get()).size(), 1);
  std::vector<Tensor> batch;
  EXPECT_THAT(batches->Next(&batch), StatusIs(absl::StatusCode::kOutOfRange));
}

class ReadArrayTest : public FolderFixture {};

TEST_F(ReadArrayTest, DetectsFormats) {
  const Tensor x = AsTensor<float>({1, 2, 3});
  GRADFLOW_ASSERT_OK(WriteNpy(File("x.npy"), x));
  ::gradflow::testing::WriteFile(File("y"), std::string("\0\0\x8\1\0\0\0\3\5\6\7", 11));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor npy, ReadArray(File("x.npy")));
  EXPECT_THAT(npy, TensorEq(x));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor idx, ReadArray(File("y")));
  EXPECT_THAT(idx, TensorEq(AsTensor<uint8_t>({5, 6, 7})));
  EXPECT_THAT(ReadArray(File("z")).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/z'")));
  ::gradflow::testing::WriteFile(File("z"), "abc");
  EXPECT_THAT(ReadArray(File("z")).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("expected an IDX file")));
  BatchesOptions options;
  options.batch_size = 3;
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const auto batches,
                                Batches::Open({File("x.npy"), File("y")}, options));
  EXPECT_EQ(batches->num_examples(), 3);
  EXPECT_FALSE(Batches::Open({File("none")}, options).ok());
}

}  // namespace
}  // namespace training
}  // namespace gradflow
