#include <algorithm>
#include <utility>
#include <vector>

#include "gradflow/ops/random/philox.h"
#include "gradflow/ops/random_ops.h"
#include "gradflow/proto/node_def.pb.h"
#include "gradflow/runtime/session/client_session.h"
#include "gradflow/testing/kernel_test.h"
#include "gradflow/testing/tensor_diff.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

// Known answers of the reference implementation, Random123.
TEST(Philox, HasTheKnownAnswers) {
  EXPECT_EQ(Philox(0, 0, 0).Next(),
            (Philox::Numbers{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint64_t kOnes = ~uint64_t{0};
  EXPECT_EQ(Philox(kOnes, kOnes, kOnes).Next(),
            (Philox::Numbers{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox(0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e).Next(),
            (Philox::Numbers{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, SkippingEqualsReading) {
  Philox read(1, ~uint64_t{0} - 2, ~uint64_t{0});
  for (int i = 0; i < 5; ++i) read.Next();
  Philox skipped = Philox(1, ~uint64_t{0} - 2, ~uint64_t{0}).Ahead(5);
  EXPECT_EQ(skipped.Next(), read.Next());
  EXPECT_EQ(Philox(1, ~uint64_t{0} - 2, ~uint64_t{0}).Ahead(5).Next(), Philox(1, 2, 0).Next());
}

OpTester Stateful(const char* op, const Tensor& shape, DataType dtype) {
  return OpTester(op).Input(shape).Attr("dtype", dtype).Attr("seed", int64_t{5});
}
OpTester Stateless(const char* op, const Tensor& shape, DataType dtype) {
  return OpTester(op).Input(shape).Input<int64_t>({5, 6}).Attr("dtype", dtype);
}
OpTester Keyed(const char* op, const Tensor& shape, DataType dtype) {
  return OpTester(op)
      .Input(shape)
      .Input<uint64_t>({5})
      .Input<uint64_t>({6, 7})
      .Input(AsScalar<int32_t>(1))
      .Attr("dtype", dtype);
}

struct Moments {
  double mean, variance, min, max;
};
Moments MomentsOf(const Tensor& tensor) {
  const std::vector<double> values = AsDoubles(tensor);
  Moments m = {0, 0, values[0], values[0]};
  for (const double v : values) {
    m.mean += v / values.size();
    m.min = std::min(m.min, v);
    m.max = std::max(m.max, v);
  }
  for (const double v : values) m.variance += (v - m.mean) * (v - m.mean) / values.size();
  return m;
}

// The shape has several blocks and an incomplete group at the end.
TEST(RandomFill, HasTheMomentsOfItsDistributionOnAnyNumberOfThreads) {
  const Tensor shape = AsTensor<int64_t>({37, 1001});
  for (const DataType dtype : {DT_HALF, DT_BFLOAT16, DT_FLOAT, DT_DOUBLE}) {
    SCOPED_TRACE(DataTypeString(dtype));
    const std::pair<OpTester, double> cases[] = {
        {Stateful("RandomUniform", shape, dtype), -1},
        {Stateless("StatelessRandomUniform", shape, dtype), -1},
        {Keyed("StatelessRandomUniformV2", shape, dtype), -1},
        {Stateful("RandomStandardNormal", shape, dtype), 1},
        {Stateless("StatelessRandomNormal", shape, dtype), 1},
        {Keyed("StatelessRandomNormalV2", shape, dtype), 1},
        // The variance of a normal distribution cut off at 2.
        {Stateful("TruncatedNormal", shape, dtype), 0.774},
        {Stateless("StatelessTruncatedNormal", shape, dtype), 0.774},
        {Keyed("StatelessTruncatedNormalV2", shape, dtype), 0.774},
    };
    for (auto [tester, variance] : cases) {
      SCOPED_TRACE(tester.node().op());
      GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor output, tester.RunOne());
      EXPECT_THAT(tester.RunOnThreads(7)->at(0), TensorEq(output));
      const Moments m = MomentsOf(output);
      const bool uniform = variance < 0;
      EXPECT_NEAR(m.mean, uniform ? 0.5 : 0, 0.02);
      EXPECT_NEAR(m.variance, uniform ? 1.0 / 12 : variance, 0.02);
      if (uniform) {
        EXPECT_GE(m.min, 0);
        EXPECT_LT(m.max, 1);
      } else if (variance < 1) {
        EXPECT_LE(std::max(m.max, -m.min), 2);
        EXPECT_GT(std::max(m.max, -m.min), 1.9);
      } else {
        EXPECT_GT(std::max(m.max, -m.min), 3);
      }
    }
  }
}

TEST(RandomUniformInt, CoversItsRange) {
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor output, OpTester("StatelessRandomUniformInt")
                                                         .Input<int32_t>({100001})
                                                         .Input<int32_t>({1, 2})
                                                         .Input(AsScalar<int64_t>(-2))
                                                         .Input(AsScalar<int64_t>(3))
                                                         .RunOne());
  int counts[5] = {};
  for (const int64_t value : output.flat<int64_t>()) {
    ASSERT_GE(value, -2);
    ASSERT_LT(value, 3);
    ++counts[value + 2];
  }
  for (const int count : counts) EXPECT_NEAR(count, 20000, 600);
}

// The known answers of Philox, as the bits of integers.
TEST(RandomFullInt, HasTheBitsOfTheStream) {
  const auto full = [](DataType dtype, const Tensor& shape) {
    return OpTester("StatelessRandomUniformFullIntV2")
        .Input(shape)
        .Input<uint64_t>({0})
        .Input<uint64_t>({0, 0})
        .Input(AsScalar<int32_t>(3))
        .Attr("dtype", dtype);
  };
  const Tensor three = AsTensor<int32_t>({3});
  EXPECT_THAT(full(DT_UINT32, three).RunOne(),
              TensorEq(AsTensor<uint32_t>({0x6627e8d5, 0xe169c58d, 0xbc57ac4c})));
  EXPECT_THAT(full(DT_UINT64, AsTensor<int32_t>({2})).RunOne(),
              TensorEq(AsTensor<uint64_t>({0xe169c58d6627e8d5, 0x9b00dbd8bc57ac4c})));
  EXPECT_THAT(OpTester("StatelessRandomUniformIntV2")
                  .Input(three)
                  .Input<uint64_t>({0})
                  .Input<uint64_t>({0, 0})
                  .Input(AsScalar<int32_t>(1))
                  .Input(AsScalar<uint32_t>(100))
                  .Input(AsScalar<uint32_t>(1100))
                  .RunOne(),
              TensorEq(AsTensor<uint32_t>(
                  {100 + 0x6627e8d5 % 1000, 100 + 0xe169c58d % 1000, 100 + 0xbc57ac4c % 1000})));
  // The stream is the same on any number of threads, and for a seed or its key and counter.
  OpTester tester = OpTester("StatelessRandomUniformFullInt")
                        .Input<int32_t>({70001})
                        .Input<int32_t>({1, 2})
                        .Attr("dtype", DT_INT64);
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor by_seed, tester.RunOne());
  EXPECT_THAT(tester.RunOnThreads(5)->at(0), TensorEq(by_seed));
  EXPECT_THAT(OpTester("StatelessRandomUniformFullIntV2")
                  .Input<int32_t>({70001})
                  .Input<uint64_t>({10413732777507651514u})
                  .Input<uint64_t>({0, 17830669156045600267u})
                  .Input(AsScalar<int32_t>(1))
                  .Attr("dtype", DT_INT64)
                  .RunOne(),
              TensorEq(by_seed));
}

// Results of TensorFlow.
TEST(StatelessRandomGetKeyCounterAlg, ScramblesTheSeed) {
  GRADFLOW_ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> outputs,
      OpTester("StatelessRandomGetKeyCounterAlg").Input<int32_t>({1, 2}).Run());
  ASSERT_EQ(outputs.size(), 3);
  EXPECT_THAT(outputs[0], TensorEq(AsTensor<uint64_t>({10413732777507651514u})));
  EXPECT_THAT(outputs[1], TensorEq(AsTensor<uint64_t>({0, 17830669156045600267u})));
  EXPECT_THAT(outputs[2], TensorEq(AsScalar<int32_t>(1)));
  EXPECT_THAT(OpTester("StatelessRandomGetAlg").RunOne(), TensorEq(AsScalar<int32_t>(1)));
}

TEST(RandomFill, ContinuesItsStream) {
  // Results of three runs of a TensorFlow session.
  const Scope scope = Scope::NewRootScope();
  const Output numbers =
      ops::RandomUniform(scope, {3}, DT_FLOAT, ops::RandomUniform::Seed(1).Seed2(2));
  ClientSession session(scope);
  const std::vector<float> expected[] = {{0.40639675f, 0.8575996f, 0.05539584f},
                                         {0.16840732f, 0.88910615f, 0.53549695f},
                                         {0.49945498f, 0.06284702f, 0.46006584f}};
  for (const auto& values : expected) {
    std::vector<Tensor> outputs;
    GRADFLOW_ASSERT_OK(session.Run({numbers}, &outputs));
    EXPECT_THAT(outputs[0], TensorEq(AsTensor<float>(values)));
  }
}

// Results of three runs of a TensorFlow session. The ops take different amounts of their streams.
TEST(RandomOps, ContinueTheirStreams) {
  const Scope scope = Scope::NewRootScope();
  const Output order =
      ops::RandomShuffle(scope, {1, 2, 3, 4, 5}, ops::RandomShuffle::Seed(1).Seed2(2));
  const Output classes =
      ops::Multinomial(scope, Input::Initializer({1.0f, 2.0f}, TensorShape({1, 2})), 6,
                       ops::Multinomial::Seed(1).Seed2(2));
  const Output gamma = ops::RandomGamma(scope, {2}, {1.5f}, ops::RandomGamma::Seed(1).Seed2(2));
  ClientSession session(scope);
  const struct {
    std::vector<int32_t> order;
    std::vector<int64_t> classes;
    std::vector<float> gamma;
  } expected[] = {
      {{5, 1, 3, 2, 4}, {0, 1, 1, 0, 1, 1}, {0.16344427f, 0.66106427f}},
      {{2, 4, 1, 5, 3}, {1, 1, 0, 1, 1, 0}, {1.2825683f, 0.86448693f}},
      {{4, 5, 2, 3, 1}, {1, 0, 0, 0, 1, 1}, {1.3873677f, 0.3035615f}},
  };
  for (const auto& run : expected) {
    std::vector<Tensor> outputs;
    GRADFLOW_ASSERT_OK(session.Run({order, classes, gamma}, &outputs));
    EXPECT_THAT(outputs[0], TensorEq(AsTensor<int32_t>(run.order)));
    EXPECT_THAT(outputs[1], TensorEq(AsTensor<int64_t>(run.classes, {1, 6})));
    EXPECT_THAT(outputs[2], TensorWithinUlps(AsTensor<float>(run.gamma, {2, 1}), 4));
  }
}

TEST(RandomFill, TakesASeedFromTheSystemByDefault) {
  OpTester tester = OpTester("RandomUniform").Input<int32_t>({4}).Attr("dtype", DT_DOUBLE);
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> a, tester.RunOnThreads(1));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> b, tester.RunOnThreads(1));
  EXPECT_NE(AsDoubles(a[0]), AsDoubles(b[0]));
}

TEST(RandomFill, RejectsBadArguments) {
  const Tensor two = AsTensor<int32_t>({2});
  const Tensor low = AsScalar<int32_t>(5);
  const auto uniform = [](const Tensor& shape) {
    return Stateful("RandomUniform", shape, DT_FLOAT);
  };
  const auto range = [&](const Tensor& min, const Tensor& max) {
    return OpTester("RandomUniformInt").Input(two).Input(min).Input(max).Attr("seed", int64_t{1});
  };
  const auto keyed = [&](const Tensor& key, const Tensor& counter, const Tensor& alg) {
    return OpTester("StatelessRandomUniformV2").Input(two).Input(key).Input(counter).Input(alg);
  };
  const Tensor key = AsTensor<uint64_t>({1});
  const Tensor counter = AsTensor<uint64_t>({1, 2});
  const Tensor alg = AsScalar<int32_t>(1);
  const struct {
    OpTester tester;
    const char* error;
  } cases[] = {
      {uniform(AsScalar<int32_t>(2)), "Shape must be rank 1 but is rank 0: shape has shape []"},
      {uniform(AsTensor<int32_t>({-1})), "shape: dimension -1"},
      {uniform(AsTensor<int64_t>({int64_t{1} << 40, int64_t{1} << 40})), "has more elements"},
      {OpTester("StatelessRandomUniform").Input(two).Input<int32_t>({1, 2, 3}),
       "seed must have shape [2], but has shape [3]"},
      {OpTester("StatelessRandomGetKeyCounter").Input(AsScalar<int32_t>(1)),
       "seed must have shape [2], but has shape []"},
      {range(low, low), "minval must be less than maxval, but they are 5 and 5"},
      {range(AsTensor<int32_t>({1}), low),
       "Shape must be rank 0 but is rank 1: minval has shape [1]"},
      {range(low, AsTensor<int32_t>({1})),
       "Shape must be rank 0 but is rank 1: maxval has shape [1]"},
      {keyed(counter, counter, alg), "key must have shape [1], but has shape [2]"},
      {keyed(key, key, alg), "counter must have at least 2 elements, but has 1"},
      {keyed(key, AsScalar<uint64_t>(1), alg),
       "Shape must be rank 1 but is rank 0: counter has shape []"},
      {keyed(key, counter, AsTensor<int32_t>({1})),
       "Shape must be rank 0 but is rank 1: alg has shape [1]"},
      {keyed(key, counter, AsScalar<int32_t>(2)),
       "alg must be 1 (Philox) or 3 (automatic), but "
       "is 2"},
  };
  for (auto c : cases) {
    EXPECT_THAT(c.tester.Run(), StatusIs(kInvalidArgument, HasSubstr(c.error)));
  }
  EXPECT_THAT(uniform(AsTensor<int64_t>({int64_t{1} << 58})).Run(),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST(RandomFill, ChecksShapesWhenTheGraphIsBuilt) {
  EXPECT_THAT(
      OpTester("StatelessRandomUniform").Input<int32_t>({2}).Input<int64_t>({1}).InferShape(),
      StatusIs(kInvalidArgument, "seed must have shape [2], but has shape [1]"));
  EXPECT_THAT(Keyed("StatelessRandomUniformV2", AsScalar<int32_t>(2), DT_FLOAT).InferShape(),
              StatusIs(kInvalidArgument, "Shape must be rank 1 but is rank 0: shape has shape []"));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
