#include <string>
#include <vector>

#include "gradflow/testing/kernel_test.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

// The ops of this file: "ScatterUpdate" "ScatterAdd" "ScatterSub" "ScatterMul" "ScatterDiv"
// "ScatterMin" "ScatterMax" "ResourceScatterUpdate" "ResourceScatterAdd" "ResourceScatterSub"
// "ResourceScatterMul" "ResourceScatterDiv" "ResourceScatterMin" "ResourceScatterMax"
// "ScatterNdUpdate" "ScatterNdAdd" "ScatterNdSub" "ScatterNdMin" "ScatterNdMax"
// "ResourceScatterNdUpdate" "ResourceScatterNdAdd" "ResourceScatterNdSub" "ResourceScatterNdMin"
// "ResourceScatterNdMax"

double Accumulated(const std::string& name, double to, double from) {
  if (name == "Add") return to + from;
  if (name == "Sub") return to - from;
  if (name == "Mul") return to * from;
  if (name == "Div") return to / from;
  if (name == "Min") return std::min(to, from);
  if (name == "Max") return std::max(to, from);
  return from;
}

class ScatterTest : public ::testing::TestWithParam<std::string> {
 protected:
  std::vector<std::string> Ops(const std::string& prefix) const {
    return {prefix + GetParam(), "Resource" + prefix + GetParam()};
  }
};
INSTANTIATE_TEST_SUITE_P(All, ScatterTest,
                         ::testing::Values("Update", "Add", "Sub", "Mul", "Div", "Min", "Max"));

TEST_P(ScatterTest, AppliesUpdatesInOrder) {
  // Rows 1 and 3 are updated twice.
  const std::vector<int> rows = {1, 3, 0, 1, 3};
  for (const DataType dtype : {DT_FLOAT, DT_DOUBLE}) {
    const Tensor var = RandomTensor(dtype, {5, 700}, 1, 2, 3);
    const Tensor updates = RandomTensor(dtype, {5, 700}, 1, 2, 4);
    const auto value = [&](const Tensor& t, int64_t i) {
      return dtype == DT_FLOAT ? t.flat<float>()(i) : t.flat<double>()(i);
    };
    std::vector<double> expected;
    for (int64_t i = 0; i < var.NumElements(); ++i) expected.push_back(value(var, i));
    for (int k = 0; k < 5; ++k) {
      for (int c = 0; c < 700; ++c) {
        double& to = expected[rows[k] * 700 + c];
        to = Accumulated(GetParam(), to, value(updates, k * 700 + c));
      }
    }
    const Tensor reference = dtype == DT_FLOAT ? AsTensor<float>(expected, {5, 700})
                                               : AsTensor<double>(expected, {5, 700});
    for (const std::string& op : Ops("Scatter")) {
      for (const Tensor& indices :
           {AsTensor<int32_t>({1, 3, 0, 1, 3}), AsTensor<int64_t>({1, 3, 0, 1, 3})}) {
        EXPECT_THAT(OpTester(op).Input(var).Input(indices).Input(updates).RunOne(),
                    TensorNear(reference))
            << op;
      }
    }
    if (GetParam() == "Mul" || GetParam() == "Div") continue;
    for (const std::string& op : Ops("ScatterNd")) {
      EXPECT_THAT(
          OpTester(op).Input(var).Input<int32_t>({1, 3, 0, 1, 3}, {5, 1}).Input(updates).RunOne(),
          TensorNear(reference))
          << op;
    }
  }
}

TEST_P(ScatterTest, TakesScalarsAndEmptyTensors) {
  for (const std::string& op : Ops("Scatter")) {
    SCOPED_TRACE(op);
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor all, OpTester(op)
                                                        .Input<float>({8, 6, 4, 2}, {2, 2})
                                                        .Input<int32_t>({1})
                                                        .Input(AsScalar<float>(3))
                                                        .RunOne());
    const auto expected = [&](double to) {
      return static_cast<float>(Accumulated(GetParam(), to, 3));
    };
    EXPECT_THAT(all, TensorNear(AsTensor<float>({8, 6, expected(4), expected(2)}, {2, 2})));
    EXPECT_THAT(OpTester(op)
                    .Input<float>({8, 6})
                    .Input(AsScalar<int32_t>(1))
                    .Input(AsScalar<float>(3))
                    .RunOne(),
                TensorNear(AsTensor<float>({8, expected(6)})));
    EXPECT_THAT(OpTester(op).Input<float>({8, 6}).Input<int32_t>({}).Input<float>({}).RunOne(),
                TensorEq(AsTensor<float>({8, 6})));
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor nothing, OpTester(op)
                                                            .Input(Tensor(DT_FLOAT, {3, 0}))
                                                            .Input<int32_t>({2, 1})
                                                            .Input(Tensor(DT_FLOAT, {2, 0}))
                                                            .RunOne());
    EXPECT_EQ(nothing.shape(), TensorShape({3, 0}));
  }
}

TEST_P(ScatterTest, ErrorsChangeNothing) {
  for (const std::string& op : Ops("Scatter")) {
    SCOPED_TRACE(op);
    EXPECT_THAT(
        OpTester(op).Input<float>({8, 6}).Input<int32_t>({0, 2}).Input<float>({1, 1}).Run(),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("indices[1] = 2 is not in [0, 2)")));
    EXPECT_THAT(
        OpTester(op).Input<float>({8, 6}).Input<int32_t>({0, -1}).Input<float>({1, 1}).Run(),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("-1")));
    EXPECT_THAT(OpTester(op).Input<float>({8, 6}).Input<int32_t>({0}).Input<float>({1, 1}).Run(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("Must have updates.shape = indices.shape + params.shape[1:] or "
                                   "updates.shape = [], got updates.shape [2], indices.shape [1], "
                                   "params.shape [2]")));
    EXPECT_THAT(OpTester(op)
                    .Input(AsScalar<float>(1))
                    .Input(AsScalar<int32_t>(0))
                    .Input(AsScalar<float>(1))
                    .Run(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("at least 1 dimension")));
  }
}

TEST(Scatter, TakesIntegersAndBits) {
  EXPECT_THAT(OpTester("ScatterDiv")
                  .Input<int32_t>({7, -7, INT32_MIN})
                  .Input<int32_t>({0, 1, 2})
                  .Input<int32_t>({2, 2, -1})
                  .RunOne(),
              TensorEq(AsTensor<int32_t>({3, -3, INT32_MIN})));
  EXPECT_THAT(OpTester("ResourceScatterDiv")
                  .Input<int32_t>({7})
                  .Input<int32_t>({0})
                  .Input<int32_t>({0})
                  .Run(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("divisor of 0")));
  EXPECT_THAT(OpTester("ScatterMul")
                  .Input<uint16_t>({65535})
                  .Input<int32_t>({0})
                  .Input<uint16_t>({65535})
                  .RunOne(),
              TensorEq(AsTensor<uint16_t>({1})));
  EXPECT_THAT(OpTester("ResourceScatterUpdate")
                  .Input<bool>({true, false})
                  .Input<int32_t>({1})
                  .Input<bool>({true})
                  .RunOne(),
              TensorEq(AsTensor<bool>({true, true})));
  EXPECT_THAT(OpTester("ScatterUpdate")
                  .Input<tstring>({"a", "b"})
                  .Input<int32_t>({0})
                  .Input<tstring>({"long enough to be on the heap"})
                  .RunOne(),
              TensorEq(AsTensor<tstring>({"long enough to be on the heap", "b"})));
  EXPECT_THAT(
      OpTester("ScatterAdd").Input<half>({1, 2}).Input<int32_t>({1}).Input<half>({0.5f}).RunOne(),
      TensorEq(AsTensor<half>({1, 2.5f})));
}

TEST(ScatterNd, UpdatesElementsAndRejectsBadIndices) {
  OpTester tester = OpTester("ResourceScatterNdAdd")
                        .Input<float>({1, 2, 3, 4}, {2, 2})
                        .Input<int32_t>({1, 0, 0, 1, 1, 0}, {3, 2})
                        .Input<float>({10, 20, 30});
  EXPECT_THAT(tester.RunOne(), TensorEq(AsTensor<float>({1, 22, 43, 4}, {2, 2})));
  const auto bad = [](const char* op) {
    return OpTester(op)
        .Input<float>({1, 2, 3, 4}, {2, 2})
        .Input<int32_t>({1, 2, 0, 1}, {2, 2})
        .Input<float>({10, 20});
  };
  for (const char* op : {"ScatterNdAdd", "ResourceScatterNdAdd"}) {
    EXPECT_THAT(bad(op).Run(), StatusIs(absl::StatusCode::kInvalidArgument));
    EXPECT_THAT(bad(op).Attr("bad_indices_policy", std::string("IGNORE")).RunOne(),
                TensorEq(AsTensor<float>({1, 22, 3, 4}, {2, 2})));
  }
}

// The variable must not change until all indices are known to be valid.
TEST(ScatterNd, ChangesNothingIfTheRunStopsWhileIndicesAreChecked) {
  StopToken stop(nullptr, nullptr, StopToken::Clock::time_point());
  EXPECT_THAT(OpTester("ResourceScatterNdAdd")
                  .Input<float>({1, 2})
                  .Input<int32_t>({1}, {1, 1})
                  .Input<float>({10})
                  .StoppedBy(&stop)
                  .RunOnThreads(1)
                  .status(),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("stopped")));
}

TEST(ResourceGather, ReadsSlices) {
  const Tensor var = Iota<float>({4, 3});
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const auto gathered,
                                OpTester("ResourceGather").Input(var).Input<int32_t>({2, 0}).Run());
  EXPECT_THAT(gathered[0], TensorEq(AsTensor<float>({6, 7, 8, 0, 1, 2}, {2, 3})));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const auto batched, OpTester("ResourceGather")
                                                        .Input(var)
                                                        .Input<int64_t>({2, 0, 1, 1}, {4, 1})
                                                        .Attr("batch_dims", 1)
                                                        .Run());
  EXPECT_THAT(batched[0], TensorEq(AsTensor<float>({2, 3, 7, 10}, {4, 1})));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(
      const auto elements,
      OpTester("ResourceGatherNd").Input(var).Input<int32_t>({3, 1, 0, 2}, {2, 2}).Run());
  EXPECT_THAT(elements[0], TensorEq(AsTensor<float>({10, 2})));
  EXPECT_THAT(OpTester("ResourceGather").Input(var).Input<int32_t>({4}).Run(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("indices[0] = 4")));
  EXPECT_THAT(OpTester("ResourceGather").Input(AsScalar<float>(1)).Input<int32_t>({0}).Run(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("Shape must be at least rank 1 but is rank 0")));
  EXPECT_THAT(OpTester("ResourceGatherNd").Input(var).Input<int32_t>({4, 0}, {1, 2}).Run(),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
