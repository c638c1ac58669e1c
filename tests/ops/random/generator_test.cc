// Tests of ops whose stream is the state of a generator in a variable. TensorFlow's values are in
// tests/data/tensorflow_values/random_generator.txt.
#include <set>

#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

OpTester Draw(const char* op, const Tensor& state, const std::vector<int64_t>& shape) {
  OpTester tester(op);
  tester.Input(state).Input(AsScalar<int64_t>(1)).Input(AsTensor<int64_t>(shape));
  return tester;
}

// A generator gives the numbers of the stateless op with its key and counter, and then its counter
// is 256 further for each number.
TEST(Generators, GiveTheNumbersOfTheirState) {
  const Tensor state = AsTensor<int64_t>({5, 1, 7});
  const struct {
    const char* op;
    const char* stateless;
    DataType dtype;
  } cases[] = {
      {"StatefulUniform", "StatelessRandomUniformV2", DT_FLOAT},
      {"StatefulStandardNormalV2", "StatelessRandomNormalV2", DT_DOUBLE},
      {"StatefulTruncatedNormal", "StatelessTruncatedNormalV2", DT_HALF},
      {"StatefulUniformFullInt", "StatelessRandomUniformFullIntV2", DT_UINT64},
      {"StatefulUniformInt", "StatelessRandomUniformIntV2", DT_INT32},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.op);
    OpTester tester = Draw(c.op, state, {10, 3}).Attr("dtype", c.dtype);
    OpTester stateless(c.stateless);
    stateless.Attr("dtype", c.dtype)
        .Input(AsTensor<int64_t>({10, 3}))
        .Input(AsTensor<uint64_t>({7}))
        .Input(AsTensor<uint64_t>({5, 1}))
        .Input(AsScalar<int32_t>(1));
    if (c.dtype == DT_INT32) {
      for (OpTester* t : {&tester, &stateless}) {
        t->Input(AsScalar<int32_t>(-5)).Input(AsScalar<int32_t>(100));
      }
    }
    const auto outputs = tester.Run();
    GRADFLOW_ASSERT_OK(outputs.status());
    EXPECT_THAT(stateless.RunOne(), TensorEq((*outputs)[0]));
    EXPECT_THAT((*outputs)[1], TensorEq(AsTensor<int64_t>({5 + 30 * 256, 1, 7})));
  }
}

TEST(Generators, LeaveTheStateIfACallIsNotValid) {
  const Tensor state = AsTensor<int64_t>({5, 1, 7});
  const struct {
    OpTester tester;
    absl::StatusCode code;
    const char* error;
  } cases[] = {
      {OpTester("RngReadAndSkip")
           .Input(AsTensor<int64_t>({1, 2}))
           .Input(AsScalar<int32_t>(1))
           .Input(AsScalar<uint64_t>(1)),
       kInvalidArgument,
       "the state of a generator must be a vector of at least 3 elements, but has shape [2]"},
      {OpTester("RngSkip").Input(state).Input(AsScalar<int64_t>(2)).Input(AsScalar<int64_t>(1)),
       absl::StatusCode::kUnimplemented, "algorithm 2 (ThreeFry) is not available on the CPU"},
      {OpTester("RngSkip").Input(state).Input(AsScalar<int64_t>(7)).Input(AsScalar<int64_t>(1)),
       kInvalidArgument, "algorithm must be 1 (Philox) or 3 (automatic), but is 7"},
      {Draw("StatefulUniformInt", state, {2})
           .Attr("dtype", DT_INT32)
           .Input(AsScalar<int32_t>(3))
           .Input(AsScalar<int32_t>(3)),
       kInvalidArgument, "minval must be less than maxval, but they are 3 and 3"},
      {Draw("StatefulUniform", state, {-1}).Attr("dtype", DT_FLOAT), kInvalidArgument, "shape"},
      {Draw("StatefulRandomBinomial", state, {2, 2})
           .Attr("dtype", DT_FLOAT)
           .Input(AsTensor<float>({1, 2, 3}))
           .Input(AsScalar<float>(0.5)),
       kInvalidArgument, "[2,2]"},
  };
  for (const auto& c : cases) {
    OpTester tester = c.tester;
    EXPECT_THAT(tester.Run(), StatusIs(c.code, HasSubstr(c.error)));
  }
}

// The numbers of tf.random.Generator.binomial().
TEST(StatefulRandomBinomial, HasTheNumbersOfTensorFlow) {
  const struct {
    Tensor counts;
    Tensor probs;
    std::vector<int64_t> shape;
    std::vector<double> expected;
    int64_t counter;
  } cases[] = {
      {AsScalar<float>(10), AsScalar<float>(0.3), {6}, {4, 1, 2, 4, 3, 2}, 115205},
      {AsScalar<double>(1000), AsScalar<double>(0.5), {6}, {500, 529, 507, 492, 503, 480}, 115205},
      {AsScalar<double>(7), AsScalar<double>(0.9), {6}, {6, 7, 6, 7, 6, 6}, 115205},
      {AsTensor<double>({10, 1000}),
       AsTensor<double>({0.3, 0.5}),
       {3, 2},
       {4, 492, 1, 503, 2, 480},
       153605},
  };
  for (const auto& c : cases) {
    const auto outputs = Draw("StatefulRandomBinomial", AsTensor<int64_t>({5, 0, 7}), c.shape)
                             .Attr("dtype", DT_DOUBLE)
                             .Input(c.counts)
                             .Input(c.probs)
                             .Run();
    GRADFLOW_ASSERT_OK(outputs.status());
    EXPECT_THAT((*outputs)[0], TensorEq(AsTensor<double>(c.expected, TensorShape(c.shape))));
    EXPECT_THAT((*outputs)[1], TensorEq(AsTensor<int64_t>({c.counter, 0, 7})));
  }
}

TEST(NonDeterministicInts, AreDifferent) {
  const auto draw = [] {
    return OpTester("NonDeterministicInts").Input(AsTensor<int64_t>({100})).RunOnThreads(1);
  };
  std::set<int64_t> numbers;
  for (int run = 0; run < 2; ++run) {
    const auto outputs = draw();
    GRADFLOW_ASSERT_OK(outputs.status());
    for (const int64_t number : (*outputs)[0].span<int64_t>()) numbers.insert(number);
  }
  EXPECT_GT(numbers.size(), 190u);
  EXPECT_EQ(
      OpTester("NonDeterministicInts").Input(AsTensor<int64_t>({2, 3})).InferShape()->DebugString(),
      "[2,3]");
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
