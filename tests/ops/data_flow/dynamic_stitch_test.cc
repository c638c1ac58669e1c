#include <random>
#include <string>
#include <vector>

#include "gradflow/testing/kernel_test.h"
#include "tests/ops/common/error_case.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const char* const kStitches[] = {"DynamicStitch", "ParallelDynamicStitch"};

OpTester Partition(const Tensor& data, const Tensor& partitions, int64_t n) {
  return OpTester("DynamicPartition").Input(data).Input(partitions).Attr("num_partitions", n);
}

TEST(DynamicPartition, RunsForEveryType) {
  using Types = ConcatTypes<NumberTypes, TypeList<bool, qint8, int4>>::type;
  ForEachType(Types(), [](auto tag) {
    using T = typename decltype(tag)::type;
    SCOPED_TRACE(DataTypeString(DataTypeToEnum<T>::value));
    Tensor x(DataTypeToEnum<T>::value, {3, 2});
    for (int64_t i = 0; i < 6 * static_cast<int64_t>(sizeof(T)); ++i) {
      static_cast<char*>(x.raw_data())[i] = static_cast<char>(std::is_same_v<T, bool> ? i % 2 : i);
    }
    const auto y = Partition(x, AsTensor<int32_t>({1, 0, 1}), 3).Run();
    GRADFLOW_ASSERT_OK(y.status());
    EXPECT_THAT((*y)[0], TensorEq(Tensor(x.Slice(1, 2))));
    EXPECT_EQ((*y)[1].SubSlice(0).tensor_data(), x.SubSlice(0).tensor_data());
    EXPECT_EQ((*y)[1].SubSlice(1).tensor_data(), x.SubSlice(2).tensor_data());
    EXPECT_THAT((*y)[2], TensorEq(Tensor(x.dtype(), {0, 2})));
  });
}

TEST(DynamicPartition, RunsForScalarsAndStrings) {
  EXPECT_THAT(
      *Partition(AsTensor<float>({1, 2}), AsScalar<int32_t>(1), 2).Run(),
      ElementsAre(TensorEq(Tensor(DT_FLOAT, {0, 2})), TensorEq(AsTensor<float>({1, 2}, {1, 2}))));
  const std::string text(100, 'x');
  EXPECT_THAT(
      *Partition(AsTensor<tstring>({"a", text, "c"}), AsTensor<int32_t>({0, 1, 0}), 2).Run(),
      ElementsAre(TensorEq(AsTensor<tstring>({"a", "c"})), TensorEq(AsTensor<tstring>({text}))));
  EXPECT_THAT(*Partition(Tensor(DT_FLOAT, {0, 3}), Tensor(DT_INT32, {0}), 1).Run(),
              ElementsAre(TensorEq(Tensor(DT_FLOAT, {0, 3}))));
  EXPECT_THAT(*Partition(Tensor(DT_FLOAT, {2, 0}), AsTensor<int32_t>({0, 0}), 1).Run(),
              ElementsAre(TensorEq(Tensor(DT_FLOAT, {2, 0}))));
}

// Stitching the parts of a partition returns the input.
TEST(DynamicStitch, InvertsDynamicPartition) {
  std::mt19937 random(1);
  for (const int64_t width : {1, 300}) {
    const Tensor x = RandomTensor(DT_INT64, {40, 50, width}, -100, 100);
    Tensor partitions(DT_INT32, {40, 50});
    Tensor places(DT_INT32, {40, 50});
    for (int32_t i = 0; i < 2000; ++i) {
      partitions.flat<int32_t>()(i) = static_cast<int32_t>(random() % 3);
      places.flat<int32_t>()(i) = i;
    }
    const auto parts = Partition(x, partitions, 3).Run();
    const auto indices = Partition(places, partitions, 3).Run();
    GRADFLOW_ASSERT_OK(parts.status());
    for (const char* op : kStitches) {
      EXPECT_THAT(OpTester(op).Inputs(*indices).Inputs(*parts).RunOne(),
                  TensorEq(*x.Reshaped({2000, width})));
    }
  }
}

TEST(DynamicStitch, KeepsTheLastRowAndFillsGapsWithZeros) {
  for (const char* op : kStitches) {
    EXPECT_THAT(OpTester(op)
                    .Input(AsTensor<int32_t>({0, 5, 5}))
                    .Input(AsScalar<int32_t>(1))
                    .Input(AsTensor<int32_t>({0}, {1, 1}))
                    .Input(AsTensor<float>({1, 2, 3, 4, 5, 6}, {3, 2}))
                    .Input(AsTensor<float>({7, 8}))
                    .Input(AsTensor<float>({9, 10}, {1, 1, 2}))
                    .RunOne(),
                TensorEq(AsTensor<float>({9, 10, 7, 8, 0, 0, 0, 0, 0, 0, 5, 6}, {6, 2})));
    EXPECT_THAT(OpTester(op)
                    .Input(AsTensor<int32_t>({2, 0}))
                    .Input(AsTensor<tstring>({"long enough to be on the heap", "b"}))
                    .RunOne(),
                TensorEq(AsTensor<tstring>({"b", "", "long enough to be on the heap"})));
    EXPECT_THAT(OpTester(op).Input(Tensor(DT_INT32, {0})).Input(Tensor(DT_FLOAT, {0, 3})).RunOne(),
                TensorEq(Tensor(DT_FLOAT, {0, 3})));
  }
}

TEST(DynamicStitch, RejectsInvalidInputs) {
  for (const char* op : kStitches) {
    const auto stitch = [&](const Tensor& i, const Tensor& j, const Tensor& x, const Tensor& y) {
      return OpTester(op).Input(i).Input(j).Input(x).Input(y);
    };
    const Tensor two = AsTensor<int32_t>({0, 1});
    const Tensor one = AsTensor<int32_t>({1});
    ExpectErrors({
        {"sign", stitch(two, AsTensor<int32_t>({-1}), Tensor(DT_FLOAT, {2}), Tensor(DT_FLOAT, {1})),
         "indices[1][0] is -1, expected at least 0"},
        {"prefix", stitch(two, one, Tensor(DT_FLOAT, {2}), Tensor(DT_FLOAT, {2})),
         "Dimensions must be equal, but are 2 and 1: data[1] has shape [2], and indices[1] has "
         "shape [1]"},
        {"rows", stitch(two, one, Tensor(DT_FLOAT, {2, 1}), Tensor(DT_FLOAT, {1})),
         "Shapes must be equal rank, but are 1 and 0: a row of data[0] has shape [1]"},
    });
  }
  ExpectErrors({
      {"partition", Partition(Tensor(DT_FLOAT, {2}), AsTensor<int32_t>({0, 2}), 2),
       "partitions[1] = 2 is not in [0, 2)"},
      {"negative", Partition(Tensor(DT_FLOAT, {2}), AsTensor<int32_t>({-1, 1}), 2),
       "partitions[0] = -1 is not in [0, 2)"},
      {"prefix", Partition(Tensor(DT_FLOAT, {3}), AsTensor<int32_t>({0, 1}), 2),
       "Dimensions must be equal, but are 3 and 2: data has shape [3], and partitions has shape "
       "[2]"},
  });
  EXPECT_THAT(
      OpTester("DynamicStitch")
          .Attr("T", DT_FLOAT)
          .Attr("N", 1)
          .RunOn({AsTensor<int32_t>({0}), AsTensor<double>({1})}),
      StatusIs(kInvalidArgument, HasSubstr("types int32 and float, but are int32 and double")));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
