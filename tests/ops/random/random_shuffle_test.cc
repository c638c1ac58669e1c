#include <algorithm>
#include <numeric>
#include <vector>

#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

OpTester StatelessShuffle(const Tensor& value, int32_t algorithm = 1) {
  return OpTester("StatelessShuffle")
      .Input(value)
      .Input<uint64_t>({1})
      .Input<uint64_t>({2, 3})
      .Input(AsScalar<int32_t>(algorithm));
}

TEST(RandomShuffle, HasEachRowOnce) {
  const Tensor rows = Iota<int64_t>({50001, 2}, 0);
  for (OpTester tester :
       {OpTester("RandomShuffle").Input(rows).Attr("seed", int64_t{1}), StatelessShuffle(rows)}) {
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor output, tester.RunOne());
    std::vector<int64_t> order;
    int64_t fixed = 0;
    const auto values = output.flat<int64_t>();
    for (int64_t i = 0; i < 50001; ++i) {
      ASSERT_EQ(values(2 * i) + 1, values(2 * i + 1));
      order.push_back(values(2 * i) / 2);
      fixed += order.back() == i;
    }
    EXPECT_LT(fixed, 10);
    std::sort(order.begin(), order.end());
    std::vector<int64_t> expected(50001);
    std::iota(expected.begin(), expected.end(), int64_t{0});
    EXPECT_EQ(order, expected);
  }
}

TEST(RandomShuffle, MovesEveryType) {
  const Tensor order = *StatelessShuffle(Iota<int64_t>({5}, 0)).RunOne();
  for (const DataType dtype : TensorTypes()) {
    SCOPED_TRACE(DataTypeString(dtype));
    const Tensor value = DistinctTensor(dtype, {5, 3});
    EXPECT_THAT(StatelessShuffle(value).RunOne(),
                TensorEq(*OpTester("Gather").Input(value).Input(order).RunOne()));
  }
}

TEST(RandomShuffle, ReturnsTensorsWithOnlyOneOrder) {
  for (const TensorShape& shape :
       {TensorShape(), TensorShape({1, 4}), TensorShape({0}), TensorShape({int64_t{1} << 40, 0})}) {
    const Tensor value(DT_UINT8, shape);
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor output,
                                  OpTester("RandomShuffle").Input(value).RunOne());
    EXPECT_EQ(output.shape(), shape);
    EXPECT_EQ(StatelessShuffle(value).RunOne()->shape(), shape);
  }
}

TEST(StatelessShuffle, RejectsBadArguments) {
  EXPECT_THAT(StatelessShuffle(AsTensor<float>({1, 2}), 2).Run(),
              StatusIs(kInvalidArgument, HasSubstr("alg must be 1")));
  EXPECT_THAT(StatelessShuffle(AsScalar<float>(1), 0).Run(),
              StatusIs(kInvalidArgument, HasSubstr("alg must be 1")));
}

// The deadline has passed. The loop over the rows does not use ParallelFor.
TEST(RandomShuffle, StopsWhileItChoosesTheOrder) {
  const Tensor x = Iota<int32_t>({100});
  StopToken stop(nullptr, nullptr, StopToken::Clock::time_point());
  GRADFLOW_ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> outputs,
      OpTester("RandomShuffle").Input(x).Attr("seed", 1).StoppedBy(&stop).RunOnThreads(1));
  EXPECT_EQ(outputs[0].NumElements(), 100);
  EXPECT_TRUE(stop.IsStopped());
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
