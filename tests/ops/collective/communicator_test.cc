#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "gradflow/core/attributes.h"
#include "gradflow/core/resource_handle.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/runtime/session/session.h"
#include "gradflow/testing/op_tester.h"
#include "gradflow/testing/status_matchers.h"
#include "gradflow/testing/tensor_matchers.h"
#include "gradflow/testing/tensors.h"
#include "tests/ops/collective/ranks.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<std::vector<Tensor>> Assign(const Tensor& assignment, int32_t device,
                                           int32_t base_key) {
  return OpTester("CollectiveAssignGroupV2")
      .Input(assignment)
      .Input(AsScalar<int32_t>(device))
      .Input(AsScalar<int32_t>(base_key))
      .Run();
}

TEST(CollectiveAssignGroupV2, FindsTheRowOfTheDevice) {
  const Tensor assignment = AsTensor<int32_t>({0, 1, 2, 3, 4, 5}, {2, 3});
  const auto outputs = Assign(assignment, 4, 5);
  GRADFLOW_ASSERT_OK(outputs.status());
  EXPECT_THAT(*outputs,
              ElementsAre(TensorEq(AsScalar<int32_t>(3)), TensorEq(AsScalar<int32_t>(6))));
  // As in TensorFlow, keys wrap around.
  EXPECT_THAT(Assign(assignment, 4, INT32_MAX)->at(1), TensorEq(AsScalar<int32_t>(INT32_MIN)));
}

TEST(CollectiveAssignGroupV2, RejectsInvalidArguments) {
  const Tensor assignment = AsTensor<int32_t>({0, 1, 2, 3}, {2, 2});
  EXPECT_THAT(Assign(assignment, 7, 5).status(),
              StatusIs(kInvalid, "group_assignment must have device_index 7"));
  EXPECT_THAT(Assign(assignment, 2, -1).status(),
              StatusIs(kInvalid, "base_key -1 gives group 1 the key 0, which is reserved"));
  EXPECT_THAT(
      Assign(AsTensor<int32_t>({0, 1}), 0, 1).status(),
      StatusIs(kInvalid,
               HasSubstr("Shape must be rank 2 but is rank 1: group_assignment has shape ")));
}

// The run of a rank: it makes a communicator, and then exchanges twice in the order of the nodes.
struct Calls {
  int32_t rank;
  int32_t group_size;
  Tensor input;
  Tensor assignment = Tensor(DT_INT32, {0, 0});
  std::string op = "CollectiveReduceV3";
  std::string reduction = "Add";
};

absl::StatusOr<std::vector<Tensor>> RunCalls(Session& session, const Calls& calls) {
  GraphDef graph;
  const std::vector<Tensor> keys = {AsScalar<int32_t>(1), AsScalar<int32_t>(calls.rank),
                                    AsScalar<int32_t>(calls.group_size)};
  NodeDef* const initialize =
      AddCall("communicator", "CollectiveInitializeCommunicator", keys, &graph);
  AddNodeAttr("timeout_seconds", 60.0f, initialize);
  std::vector<std::pair<std::string, Tensor>> feeds = FeedsOf("communicator", keys);
  const std::vector<Tensor> inputs = {calls.input, Tensor(DT_RESOURCE, {}), calls.assignment};
  const auto add = [&](const std::string& name) {
    NodeDef* const node = AddCall(name, calls.op, inputs, &graph, {"", "communicator"});
    AddNodeAttr("T", calls.input.dtype(), node);
    if (calls.op == "CollectiveReduceV3") AddNodeAttr("reduction", calls.reduction, node);
    for (const auto& feed : FeedsOf(name, inputs)) feeds.push_back(feed);
    return node;
  };
  add("first");
  add("second")->add_input("^first");
  GRADFLOW_RETURN_IF_ERROR(session.Create(graph));
  std::vector<Tensor> outputs;
  GRADFLOW_RETURN_IF_ERROR(session.Run(feeds, {"first", "second"}, {}, &outputs));
  return outputs;
}

std::vector<absl::StatusOr<std::vector<Tensor>>> RunRanks(const std::vector<Calls>& calls) {
  RankSessions ranks(static_cast<int>(calls.size()));
  return ranks.OnEachRank([&](int rank) -> absl::StatusOr<std::vector<Tensor>> {
    return RunCalls(ranks.session(rank), calls[static_cast<size_t>(rank)]);
  });
}

TEST(CollectiveReduceV3, MergesTheTensorsOfACommunicator) {
  for (const auto& outputs :
       RunRanks({{1, 2, AsTensor<float>({1, 2})}, {0, 2, AsTensor<float>({4, 5})}})) {
    GRADFLOW_ASSERT_OK(outputs.status());
    EXPECT_THAT(*outputs,
                ElementsAre(TensorEq(AsTensor<float>({5, 7})), TensorEq(AsTensor<float>({5, 7}))));
  }
}

TEST(CollectiveReduceV3, RowsOfTheAssignmentAreGroups) {
  const Tensor assignment = AsTensor<int32_t>({0, 2, 1, 3}, {2, 2});
  std::vector<Calls> calls;
  for (int rank = 0; rank < 4; ++rank) {
    calls.push_back({rank, 4, AsTensor<int64_t>({int64_t{1} << rank}), assignment});
  }
  const auto outputs = RunRanks(calls);
  for (int rank = 0; rank < 4; ++rank) {
    GRADFLOW_ASSERT_OK(outputs[rank].status());
    EXPECT_THAT(outputs[rank]->at(0), TensorEq(AsTensor<int64_t>({rank % 2 == 0 ? 5 : 10})));
  }
}

TEST(CollectiveAllToAllV3, SendsRowsInTheOrderOfTheRanks) {
  Calls first = {1, 2, AsTensor<float>({1, 2}, {2, 1})};
  Calls second = {0, 2, AsTensor<float>({3, 4}, {2, 1})};
  first.op = second.op = "CollectiveAllToAllV3";
  const auto outputs = RunRanks({first, second});
  GRADFLOW_ASSERT_OK(outputs[0].status());
  GRADFLOW_ASSERT_OK(outputs[1].status());
  EXPECT_THAT(outputs[0]->at(0), TensorEq(AsTensor<float>({4, 2}, {2, 1})));
  EXPECT_THAT(outputs[1]->at(0), TensorEq(AsTensor<float>({3, 1}, {2, 1})));
}

TEST(CollectiveInitializeCommunicator, RejectsRanksThatRepeat) {
  for (const auto& outputs :
       RunRanks({{1, 2, AsTensor<float>({1})}, {1, 2, AsTensor<float>({1})}})) {
    EXPECT_THAT(outputs.status(),
                StatusIs(kInvalid, HasSubstr("each must have a rank of its own")));
  }
  EXPECT_THAT(RunRanks({{2, 2, AsTensor<float>({1})}, {2, 2, AsTensor<float>({1})}})[0].status(),
              StatusIs(kInvalid, HasSubstr("rank must be in [0, 2), but is 2")));
}

TEST(CollectiveInitializeCommunicator, OneRankNeedsNoCollectives) {
  const auto outputs = RunCalls(**Session::Make(SessionOptions()), {0, 1, AsTensor<float>({1, 2})});
  GRADFLOW_ASSERT_OK(outputs.status());
  EXPECT_THAT(outputs->at(1), TensorEq(AsTensor<float>({1, 2})));
}

TEST(CollectiveReduceV3, RejectsInvalidAssignments) {
  const auto error = [](const Tensor& assignment) {
    Calls calls = {0, 1, AsTensor<float>({1, 2}), assignment};
    return RunCalls(**Session::Make(SessionOptions()), calls).status();
  };
  EXPECT_THAT(
      error(AsTensor<int32_t>({0})),
      StatusIs(kInvalid,
               HasSubstr("Shape must be rank 2 but is rank 1: group_assignment has shape ")));
  EXPECT_THAT(error(AsTensor<int32_t>({1}, {1, 1})),
              StatusIs(kInvalid, HasSubstr("group_assignment must have rank 0")));
  EXPECT_THAT(error(AsTensor<int32_t>({0, 1}, {1, 2})),
              StatusIs(kInvalid, HasSubstr("group_assignment must have at most 1 columns")));
}

TEST(CollectiveReduceV3, NeedsACommunicator) {
  EXPECT_THAT(OpTester("CollectiveReduceV3")
                  .Input<float>({1})
                  .Input(Tensor(ResourceHandle("", "other")))
                  .Input(Tensor(DT_INT32, {0, 0}))
                  .Attr("reduction", std::string("Add"))
                  .Run()
                  .status(),
              StatusIs(kInvalid, HasSubstr("communicator must be a communicator, but is ")));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
