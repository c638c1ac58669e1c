#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

OpTester BroadcastTo(const Tensor& input, const std::vector<int64_t>& shape) {
  return OpTester("BroadcastTo").Input(input).Input(AsTensor<int64_t>(shape));
}

TEST(BroadcastTo, RepeatsInEveryType) {
  const struct {
    TensorShape from;
    TensorShape to;
  } cases[] = {
      {{}, {2, 3}},           {{3}, {2, 3}},    {{2, 1}, {2, 3}}, {{1, 3}, {2, 3}},
      {{2, 1, 3}, {2, 4, 3}}, {{1}, {0}},       {{2, 3}, {2, 3}}, {{3, 1}, {2, 3, 4}},
      {{0, 1}, {5, 0, 2}},    {{1, 1}, {1, 1}}, {{}, {}},
  };
  for (const DataType dtype : TensorTypes()) {
    SCOPED_TRACE(DataTypeString(dtype));
    for (const auto& c : cases) {
      SCOPED_TRACE(absl::StrCat(c.from.DebugString(), " to ", c.to.DebugString()));
      const Tensor input = DistinctTensor(dtype, c.from);
      const std::vector<int64_t> dims(c.to.dim_sizes().begin(), c.to.dim_sizes().end());
      EXPECT_THAT(BroadcastTo(input, dims).RunOne(),
                  TensorEq(Rearranged(input, c.to, [&](const std::vector<int64_t>& index) {
                    int64_t from = 0;
                    const int skip = c.to.dims() - c.from.dims();
                    for (int d = 0; d < c.from.dims(); ++d) {
                      const int64_t size = c.from.dim_size(d);
                      from = from * size + (size == 1 ? 0 : index[d + skip]);
                    }
                    return from;
                  })));
    }
  }
}

TEST(BroadcastTo, RejectsShapesThatDoNotFit) {
  const Tensor input = Iota<float>({2, 3});
  const struct {
    OpTester tester;
    const char* error;
  } cases[] = {
      {BroadcastTo(input, {2, 4}),
       "input has shape [2,3], which cannot be broadcast to shape [2,4]"},
      {BroadcastTo(input, {3}), "input has shape [2,3], which cannot be broadcast to shape [3]"},
      {BroadcastTo(input, {1, 3}),
       "input has shape [2,3], which cannot be broadcast to shape [1,3]"},
      {BroadcastTo(input, {2, -3}), "shape: dimension -3"},
      {BroadcastTo(AsScalar<float>(1), {int64_t{1} << 40, int64_t{1} << 40}),
       "shape: shape [1099511627776,1099511627776] has more elements"},
  };
  for (const auto& c : cases) {
    OpTester tester = c.tester;
    EXPECT_THAT(tester.Run(), StatusIs(kInvalidArgument, HasSubstr(c.error)));
    EXPECT_THAT(tester.InferShape(), StatusIs(kInvalidArgument, HasSubstr(c.error)));
  }
  EXPECT_THAT(OpTester("BroadcastTo").Input(input).Input(AsScalar<int32_t>(1)).Run(),
              StatusIs(kInvalidArgument, "Shape must be rank 1 but is rank 0: shape has shape []"));
}

TEST(BroadcastTo, InfersKnownDimensions) {
  EXPECT_THAT(
      OpTester("BroadcastTo").UnknownInput(DT_FLOAT).Input(AsTensor<int32_t>({2, 3})).InferShape(),
      ShapeIs("[2,3]"));
  EXPECT_THAT(
      OpTester("BroadcastTo").Input(Iota<float>({3})).UnknownInput(DT_INT32, {2}).InferShape(),
      ShapeIs("[?,?]"));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
