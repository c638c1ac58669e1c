// Tests of candidate samplers. TensorFlow's values are in
// tests/data/tensorflow_values/random_candidate_sampler.txt. Here are what samplers learn, files
// and errors.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "gradflow/graph/node_builder.h"
#include "gradflow/graph/scope.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/runtime/session/client_session.h"
#include "gradflow/testing/kernel_test.h"
#include "tests/ops/common/error_case.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

OpTester Sampler(const char* op, const std::vector<int64_t>& true_classes, int64_t sampled,
                 bool unique, int64_t range = -1) {
  OpTester tester(op);
  tester.Input(AsTensor<int64_t>(true_classes, {static_cast<int64_t>(true_classes.size()), 1}))
      .Attr("num_true", 1)
      .Attr("num_sampled", sampled)
      .Attr("unique", unique)
      .Attr("seed", 3);
  if (range >= 0) tester.Attr("range_max", range);
  return tester;
}

TEST(CandidateSamplers, DrawUniqueClasses) {
  for (const char* const op :
       {"UniformCandidateSampler", "LogUniformCandidateSampler", "LearnedUnigramCandidateSampler",
        "ThreadUnsafeUnigramCandidateSampler"}) {
    SCOPED_TRACE(op);
    const auto outputs = Sampler(op, {0}, 100, true, 100).RunOnThreads(1);
    GRADFLOW_ASSERT_OK(outputs.status());
    const auto found = (*outputs)[0].span<int64_t>();
    EXPECT_EQ(std::set<int64_t>(found.begin(), found.end()).size(), 100);
    EXPECT_EQ(*std::max_element(found.begin(), found.end()), 99);
  }
}

// Each of 4 classes has the weight 1 at first, and class 2 has the weight 101 in the second run.
TEST(CandidateSamplers, LearnFromTheTrueClasses) {
  const Scope s = Scope::NewRootScope();
  const Output classes = ops::Placeholder(s, DT_INT64);
  const Operation sampler = OpBuilder(s, "LearnedUnigramCandidateSampler")
                                .Input(classes)
                                .Attr("num_true", 1)
                                .Attr("num_sampled", 1000)
                                .Attr("unique", false)
                                .Attr("range_max", 4)
                                .Finish();
  GRADFLOW_ASSERT_OK(s.status());
  ClientSession session(s);
  const Tensor seen = AsTensor<int64_t>(std::vector<int64_t>(100, 2), {100, 1});
  for (const float expected : {250.0f, 1000 * 101.0f / 104}) {
    std::vector<Tensor> outputs;
    GRADFLOW_ASSERT_OK(session.Run({{classes, seen}}, {Output(sampler, 1)}, &outputs));
    EXPECT_THAT(outputs[0].span<float>()[0], ::testing::FloatEq(expected));
  }
}

TEST(CandidateSamplers, ReadWeightsOfFiles) {
  const std::string path = ::testing::TempDir() + "/gradflow_weights";
  const auto run = [&](const std::string& text, int64_t range) {
    std::ofstream(path, std::ios::binary) << text;
    return Sampler("FixedUnigramCandidateSampler", {1}, 1000, false, range)
        .Attr("vocab_file", path)
        .RunOnThreads(1);
  };
  const auto outputs = run("a,0\nb,3\nc,c,1", 3);
  GRADFLOW_ASSERT_OK(outputs.status());
  EXPECT_THAT((*outputs)[1].span<float>()[0], ::testing::FloatEq(750));
  const auto found = (*outputs)[0].span<int64_t>();
  EXPECT_EQ(std::set<int64_t>(found.begin(), found.end()), (std::set<int64_t>{1, 2}));
  const struct {
    const char* text;
    int64_t range;
    const char* error;
  } cases[] = {
      {"a,x", 2, "'x' is not a weight of a class"},
      {"a,1", 2, "range_max is 2, but there are 1 weights"},
      {"a,1\nb,1\nc,1", 2, "range_max is 2, but there are more weights"},
      {"a,-1\nb,1", 2, "the weight of class 0 is -1, expected a finite number"},
      {"a,0\nb,0", 2, "all weights are zero"},
      {"", 2, "range_max is 2, but there are 0 weights"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(run(c.text, c.range), StatusIs(kInvalidArgument, HasSubstr(c.error))) << c.text;
  }
  std::filesystem::remove(path);
  EXPECT_THAT(Sampler("FixedUnigramCandidateSampler", {1}, 5, false, 3)
                  .Attr("vocab_file", path)
                  .RunOnThreads(1),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("gradflow_weights")));
}

TEST(CandidateSamplers, CheckTheirInputs) {
  const std::vector<float> weights = {1, 0, 2};
  const auto fixed = [&](int64_t sampled) {
    return Sampler("FixedUnigramCandidateSampler", {1}, sampled, true, 3)
        .Attr("unigrams", absl::Span<const float>(weights));
  };
  const struct {
    OpTester tester;
    const char* error;
  } cases[] = {
      {Sampler("UniformCandidateSampler", {5}, 5, true, 5),
       "true_classes must be in [0, 5), but have 5"},
      {Sampler("UniformCandidateSampler", {1}, 6, true, 5),
       "num_sampled must be at most 5, the number of classes"},
      {Sampler("AllCandidateSampler", {4}, 4, true), "true_classes must be in [0, 4), but have 4"},
      // Otherwise the draws would not end.
      {fixed(3), "num_sampled must be at most 2, the number of classes with a weight"},
      {Sampler("FixedUnigramCandidateSampler", {1}, 3, true, 3),
       "expected either vocab_file or unigrams"},
      {Sampler("LearnedUnigramCandidateSampler", {1}, 3, true, int64_t{1} << 31),
       "range_max must be less than 2^31 - 1"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(OpTester(c.tester).RunOnThreads(1), StatusIs(kInvalidArgument, HasSubstr(c.error)));
  }
}

TEST(ComputeAccidentalHits, FindsTrueClassesAmongTheCandidates) {
  const auto outputs = OpTester("ComputeAccidentalHits")
                           .Input(AsTensor<int64_t>({3, 1, 9, 3}, {2, 2}))
                           .Input(AsTensor<int64_t>({1, 3, 3}))
                           .Attr("num_true", 2)
                           .ShapeIsData()
                           .Run();
  GRADFLOW_ASSERT_OK(outputs.status());
  EXPECT_THAT((*outputs)[0], TensorEq(AsTensor<int32_t>({0, 0, 1})));
  EXPECT_THAT((*outputs)[1], TensorEq(AsTensor<int64_t>({2, 0, 2})));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
