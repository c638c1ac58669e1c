// The kernels of the collective ops in sessions of several ranks. tests/distributed tests the
// exchange itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gradflow/core/attributes.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/runtime/session/cancellation.h"
#include "gradflow/runtime/session/session.h"
#include "gradflow/testing/op_tester.h"
#include "gradflow/testing/status_matchers.h"
#include "gradflow/testing/tensor_matchers.h"
#include "gradflow/testing/tensors.h"
#include "tests/ops/collective/ranks.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A call of an op: the first versions have the group in attributes, the second in inputs.
struct Call {
  std::string op;
  // Empty for receivers.
  std::vector<Tensor> inputs;
  int group_size = 2;
  std::string merge_op = "Add";
  std::string final_op = "Id";
  // For broadcasts.
  DataType dtype = DT_FLOAT;
  TensorShape shape = TensorShape({2});
  float timeout_seconds = 0;
};

bool IsSecond(const std::string& op) { return absl::EndsWith(op, "V2"); }
bool Merges(const std::string& op) { return absl::StrContains(op, "Reduce"); }

std::vector<Tensor> InputsOf(const Call& call) {
  std::vector<Tensor> inputs = call.inputs;
  if (!IsSecond(call.op)) return inputs;
  inputs.push_back(AsScalar<int32_t>(call.group_size));
  inputs.push_back(AsScalar<int32_t>(1));
  inputs.push_back(AsScalar<int32_t>(7));
  if (call.op == "CollectiveBcastRecvV2") {
    Tensor dims(DT_INT32, {call.shape.dims()});
    for (int d = 0; d < call.shape.dims(); ++d) {
      dims.vec<int32_t>()(d) = static_cast<int32_t>(call.shape.dim_size(d));
    }
    inputs.push_back(dims);
  }
  return inputs;
}

void SetAttrs(const Call& call, NodeDef* node) {
  AddNodeAttr("T", call.inputs.empty() ? call.dtype : call.inputs[0].dtype(), node);
  AddNodeAttr("timeout_seconds", call.timeout_seconds, node);
  if (Merges(call.op)) {
    AddNodeAttr("merge_op", call.merge_op, node);
    AddNodeAttr("final_op", call.final_op, node);
  }
  if (IsSecond(call.op)) return;
  AddNodeAttr("group_size", int64_t{call.group_size}, node);
  AddNodeAttr("group_key", int64_t{1}, node);
  AddNodeAttr("instance_key", int64_t{7}, node);
  if (call.op == "CollectiveReduce") {
    AddNodeAttr("subdiv_offsets", std::vector<int64_t>{}, node);
  } else {
    AddNodeAttr("shape", PartialTensorShape(call.shape), node);
  }
}

absl::StatusOr<Tensor> RunCall(Session& session, const Call& call,
                               const CancellationToken& token = {}) {
  GraphDef graph;
  const std::vector<Tensor> inputs = InputsOf(call);
  SetAttrs(call, AddCall("call", call.op, inputs, &graph));
  GRADFLOW_RETURN_IF_ERROR(session.Create(graph));
  std::vector<Tensor> outputs;
  GRADFLOW_RETURN_IF_ERROR(
      session.Run({}, FeedsOf("call", inputs), {"call"}, {}, &outputs, nullptr, token));
  return outputs[0];
}

// Runs calls[i] on rank i.
std::vector<absl::StatusOr<Tensor>> RunRanks(const std::vector<Call>& calls) {
  RankSessions ranks(static_cast<int>(calls.size()));
  return ranks.OnEachRank([&](int rank) -> absl::StatusOr<Tensor> {
    return RunCall(ranks.session(rank), calls[static_cast<size_t>(rank)]);
  });
}

class Versions : public ::testing::TestWithParam<const char*> {
 protected:
  std::string Op(const std::string& name) const { return name + GetParam(); }
};

INSTANTIATE_TEST_SUITE_P(Collective, Versions, ::testing::Values("", "V2"),
                         [](const auto& info) { return std::string("Version") + info.param; });

TEST_P(Versions, ReduceMergesTheTensors) {
  const std::map<std::string, std::vector<float>> expected = {
      {"Add", {5, 7}}, {"Mul", {4, 10}}, {"Min", {1, 2}}, {"Max", {4, 5}}};
  for (const auto& [merge_op, values] : expected) {
    Call call = {Op("CollectiveReduce"), {AsTensor<float>({1, 2})}};
    call.merge_op = merge_op;
    Call other = call;
    other.inputs = {AsTensor<float>({4, 5})};
    for (const auto& result : RunRanks({call, other})) {
      EXPECT_THAT(result, TensorEq(AsTensor<float>(values, {2}))) << merge_op;
    }
  }
}

TEST_P(Versions, ReduceDividesByTheNumberOfRanks) {
  Call call = {Op("CollectiveReduce"), {AsTensor<int32_t>({4, -8})}, 3};
  call.final_op = "Div";
  for (const auto& result : RunRanks({call, call, call})) {
    EXPECT_THAT(result, TensorEq(AsTensor<int32_t>({4, -8})));
  }
}

TEST_P(Versions, GatherConcatenatesInTheOrderOfTheRanks) {
  Call first = {Op("CollectiveGather"), {AsTensor<int64_t>({1, 2, 3}, {1, 3})}};
  Call second = {Op("CollectiveGather"), {AsTensor<int64_t>({4, 5, 6}, {1, 3})}};
  for (const auto& result : RunRanks({first, second})) {
    EXPECT_THAT(result, TensorEq(AsTensor<int64_t>({1, 2, 3, 4, 5, 6}, {2, 3})));
  }
}

TEST_P(Versions, BroadcastSendsToAllOthers) {
  Call sends = {Op("CollectiveBcastSend"), {AsTensor<bool>({true, false})}, 3};
  Call receives = {Op("CollectiveBcastRecv"), {}, 3};
  receives.dtype = DT_BOOL;
  for (const auto& result : RunRanks({receives, sends, receives})) {
    EXPECT_THAT(result, TensorEq(AsTensor<bool>({true, false})));
  }
}

TEST(CollectiveReduceScatterV2, GivesEachRankAPart) {
  Call call = {"CollectiveReduceScatterV2", {AsTensor<float>({1, 2, 3, 4}, {4, 1})}};
  const auto results = RunRanks({call, call});
  EXPECT_THAT(results[0], TensorEq(AsTensor<float>({2, 4}, {2, 1})));
  EXPECT_THAT(results[1], TensorEq(AsTensor<float>({6, 8}, {2, 1})));
}

TEST(CollectiveAllToAllV2, SendsRowsToRanks) {
  Call first = {"CollectiveAllToAllV2", {AsTensor<float>({1, 2, 3, 4}, {2, 2})}};
  Call second = {"CollectiveAllToAllV2", {AsTensor<float>({5, 6, 7, 8}, {2, 2})}};
  const auto results = RunRanks({first, second});
  EXPECT_THAT(results[0], TensorEq(AsTensor<float>({1, 2, 5, 6}, {2, 2})));
  EXPECT_THAT(results[1], TensorEq(AsTensor<float>({3, 4, 7, 8}, {2, 2})));
}

TEST(Collective, VersionsOfAnOpMatch) {
  const Call first = {"CollectiveReduce", {AsTensor<half>({1.0f})}};
  const Call second = {"CollectiveReduceV2", {AsTensor<half>({2.0f})}};
  for (const auto& result : RunRanks({first, second})) {
    EXPECT_THAT(result, TensorEq(AsTensor<half>({3.0f})));
  }
}

TEST(Collective, DisagreementIsAnErrorThatNamesTheNode) {
  const Call first = {"CollectiveReduceV2", {AsTensor<float>({1})}};
  const Call second = {"CollectiveReduceV2", {AsTensor<double>({1})}};
  for (const auto& result : RunRanks({first, second})) {
    EXPECT_THAT(result.status(),
                StatusIs(kInvalid, AllOf(HasSubstr("node 'call' (CollectiveReduceV2): "),
                                         HasSubstr("group 1, instance 7: rank"))));
  }
}

TEST(Collective, TimesOutIfARankIsMissing) {
  RankSessions ranks(2);
  Call call = {"CollectiveReduceV2", {AsTensor<float>({1})}};
  call.timeout_seconds = 0.01f;
  EXPECT_THAT(RunCall(ranks.session(0), call).status(),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       HasSubstr("rank 1 did not arrive within 10 ms")));
}

// A graph on one thread with two collectives, which the ranks reach in different order.
TEST(Collective, WaitingHoldsNoThread) {
  constexpr int kCalls = 50;
  RankSessions ranks(2);
  const auto results = ranks.OnEachRank([&](int rank) -> absl::Status {
    GraphDef graph;
    std::vector<std::pair<std::string, Tensor>> feeds;
    std::vector<std::string> fetches;
    for (int i = 0; i < kCalls; ++i) {
      const int key = rank == 0 ? i : kCalls - 1 - i;
      const std::string name = absl::StrCat("call", key);
      const std::vector<Tensor> inputs = {AsScalar<float>(static_cast<float>(key)),
                                          AsScalar<int32_t>(2), AsScalar<int32_t>(1),
                                          AsScalar<int32_t>(key)};
      NodeDef* const node = AddCall(name, "CollectiveReduceV2", inputs, &graph);
      AddNodeAttr("T", DT_FLOAT, node);
      AddNodeAttr("merge_op", "Add", node);
      AddNodeAttr("final_op", "Id", node);
      for (const auto& feed : FeedsOf(name, inputs)) feeds.push_back(feed);
    }
    for (int key = 0; key < kCalls; ++key) fetches.push_back(absl::StrCat("call", key));
    GRADFLOW_RETURN_IF_ERROR(ranks.session(rank).Create(graph));
    std::vector<Tensor> outputs;
    GRADFLOW_RETURN_IF_ERROR(ranks.session(rank).Run(feeds, fetches, {}, &outputs));
    for (int key = 0; key < kCalls; ++key) {
      EXPECT_EQ(outputs[static_cast<size_t>(key)].scalar<float>()(),
                2.0f * static_cast<float>(key));
    }
    return absl::OkStatus();
  });
  for (const absl::Status& status : results) GRADFLOW_EXPECT_OK(status);
}

TEST(Collective, CancelledRunIsAnErrorOnEveryRank) {
  RankSessions ranks(2);
  const Call call = {"CollectiveReduceV2", {AsTensor<float>({1})}};
  CancellationToken token;
  std::thread canceller([&] {
    ranks.WaitForStart(0);
    token.Cancel();
  });
  EXPECT_THAT(RunCall(ranks.session(0), call, token).status(),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("the run was cancelled")));
  canceller.join();
  // The call of the stopped run has ended, so the other rank does not wait for it.
  EXPECT_THAT(RunCall(ranks.session(1), call).status(),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("the run of rank 0 was stopped")));
}

TEST(Collective, ClosedSessionIsAnErrorOnEveryRank) {
  RankSessions ranks(2);
  const Call call = {"CollectiveReduceV2", {AsTensor<float>({1})}};
  std::thread closer([&] {
    ranks.WaitForStart(0);
    GRADFLOW_EXPECT_OK(ranks.session(0).Close());
  });
  EXPECT_THAT(RunCall(ranks.session(0), call).status(),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("the session was closed")));
  closer.join();
  EXPECT_THAT(RunCall(ranks.session(1), call).status(),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("the run of rank 0 was stopped")));
}

TEST(Collective, GroupOfOneRankNeedsNoCollectives) {
  const auto run = [](const Call& call) {
    return RunCall(**Session::Make(SessionOptions()), call);
  };
  const Tensor x = AsTensor<float>({1, 2});
  for (const char* const op :
       {"CollectiveReduce", "CollectiveReduceV2", "CollectiveReduceScatterV2", "CollectiveGather",
        "CollectiveGatherV2", "CollectiveBcastSend", "CollectiveBcastSendV2"}) {
    Call call = {op, {x}, 1};
    call.final_op = "Div";
    EXPECT_THAT(run(call), TensorEq(x)) << op;
  }
  EXPECT_THAT(run({"CollectiveAllToAllV2", {AsTensor<float>({1, 2}, {1, 2})}, 1}),
              TensorEq(AsTensor<float>({1, 2}, {1, 2})));
  for (const char* const op : {"CollectiveBcastRecv", "CollectiveBcastRecvV2"}) {
    EXPECT_THAT(run({op, {}, 1}).status(),
                StatusIs(kInvalid, HasSubstr("a group of one rank has no sender")));
  }
}

TEST(Collective, LargerGroupsNeedCollectives) {
  EXPECT_THAT(
      RunCall(**Session::Make(SessionOptions()), {"CollectiveReduceV2", {AsTensor<float>({1})}})
          .status(),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               HasSubstr("a group of 2 ranks needs SessionOptions::collectives")));
}

TEST(Collective, RejectsInvalidCalls) {
  const auto run = [](const Call& call) {
    RankSessions ranks(2);
    return RunCall(ranks.session(0), call).status();
  };
  const Tensor x = AsTensor<float>({1, 2, 3});
  for (const char* const op : {"CollectiveReduce", "CollectiveReduceV2"}) {
    EXPECT_THAT(run({op, {x}, 0}),
                StatusIs(kInvalid, HasSubstr("group_size must be at least 1, but is 0")));
    EXPECT_THAT(run({op, {x}, 3}),
                StatusIs(kInvalid, HasSubstr("group_size is 3, but there are 2 ranks")));
  }
  for (const char* const op : {"CollectiveGather", "CollectiveGatherV2"}) {
    EXPECT_THAT(run({op, {AsScalar<float>(1)}}), StatusIs(kInvalid, HasSubstr("rank")));
  }
  EXPECT_THAT(run({"CollectiveReduceScatterV2", {x}}),
              StatusIs(kInvalid, HasSubstr("the first dimension of input must be a multiple of "
                                           "group_size 2, but is 3")));
  EXPECT_THAT(run({"CollectiveAllToAllV2", {x}}),
              StatusIs(kInvalid, HasSubstr("the first dimension of input must be group_size 2, but "
                                           "is 3")));
  EXPECT_THAT(run({"CollectiveBcastSend", {x}}),
              StatusIs(kInvalid, HasSubstr("input must have the shape of attribute shape, [2], but "
                                           "has shape [3]")));
  Call call = {"CollectiveReduceV2", {x}};
  call.timeout_seconds = -1;
  EXPECT_THAT(run(call),
              StatusIs(kInvalid, HasSubstr("timeout_seconds must be at least 0, but is -1")));
}

TEST(Collective, KernelsCheckShapesThatGraphsRuleOut) {
  const Tensor vector = AsTensor<int32_t>({1, 1});
  const auto tester = [] {
    return OpTester("CollectiveReduceV2")
        .Input<float>({1, 2})
        .Input(AsScalar<int32_t>(1))
        .Input(AsScalar<int32_t>(1))
        .Input(AsScalar<int32_t>(1))
        .Attr("Nordering_token", int64_t{0})
        .Attr("merge_op", std::string("Add"))
        .Attr("final_op", std::string("Id"));
  };
  const char* const names[] = {"group_size", "group_key", "instance_key"};
  for (size_t i = 0; i < 3; ++i) {
    std::vector<Tensor> inputs = {AsTensor<float>({1, 2}), AsScalar<int32_t>(1),
                                  AsScalar<int32_t>(1), AsScalar<int32_t>(1)};
    inputs[i + 1] = vector;
    EXPECT_THAT(tester().RunOn(inputs).status(),
                StatusIs(kInvalid, HasSubstr(absl::StrCat("Shape must be rank 0 but is rank 1: ",
                                                          names[i]))));
  }
}

TEST(Collective, InferShapes) {
  const auto infer = [](const std::string& op, const TensorShape& shape, bool knows_size) {
    OpTester tester(op);
    tester.UnknownInput(DT_FLOAT, shape);
    if (knows_size) {
      tester.Input(AsScalar<int32_t>(3));
    } else {
      tester.UnknownInput(DT_INT32);
    }
    tester.UnknownInput(DT_INT32).UnknownInput(DT_INT32).Attr("Nordering_token", int64_t{0});
    if (Merges(op)) {
      tester.Attr("merge_op", std::string("Add")).Attr("final_op", std::string("Id"));
    }
    const auto inferred = tester.InferShape();
    return inferred.ok() ? inferred->DebugString() : std::string(inferred.status().message());
  };
  EXPECT_EQ(infer("CollectiveReduceV2", {6, 2}, true), "[6,2]");
  EXPECT_EQ(infer("CollectiveAllToAllV2", {6, 2}, false), "[6,2]");
  EXPECT_EQ(infer("CollectiveGatherV2", {6, 2}, true), "[18,2]");
  EXPECT_EQ(infer("CollectiveGatherV2", {6, 2}, false), "[?,2]");
  EXPECT_EQ(infer("CollectiveReduceScatterV2", {6, 2}, true), "[2,2]");
  EXPECT_EQ(infer("CollectiveReduceScatterV2", {6, 2}, false), "[?,2]");
  OpTester receiver("CollectiveBcastRecvV2");
  receiver.UnknownInput(DT_INT32).UnknownInput(DT_INT32).UnknownInput(DT_INT32);
  receiver.Input<int32_t>({4, 5}).Attr("T", DT_FLOAT);
  EXPECT_EQ(receiver.InferShape()->DebugString(), "[4,5]");
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
