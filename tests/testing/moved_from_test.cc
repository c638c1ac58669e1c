// Tests that moved-from objects of public classes are empty or copies, and that every member
// function can still be called. Code written for TensorFlow may do so, because std::move often
// copies there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "gradflow/core/op_kernel.h"
#include "gradflow/graph/graph.h"
#include "gradflow/graph/node_builder.h"
#include "gradflow/graph/ops.h"
#include "gradflow/graph/scope.h"
#include "gradflow/io/checkpoint.h"
#include "gradflow/io/events.h"
#include "gradflow/io/npy.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/runtime/session/client_session.h"
#include "gradflow/runtime/session/session.h"
#include "gradflow/testing/compare_kernels.h"
#include "gradflow/testing/golden.h"
#include "gradflow/testing/op_tester.h"
#include "gradflow/testing/status_matchers.h"
#include "gradflow/testing/tensor_matchers.h"
#include "gradflow/testing/tensors.h"

namespace gradflow::testing {
namespace {

// These classes cannot be moved, so their objects are never empty.
static_assert(!std::is_move_constructible_v<Graph>);
static_assert(!std::is_move_constructible_v<ClientSession>);
static_assert(!std::is_move_constructible_v<Registry>);

template <typename T>
T MoveFrom(T* object) {
  return std::move(*object);
}

TEST(MovedFrom, TensorHasNoElements) {
  for (const DataType dtype : {DT_FLOAT, DT_STRING}) {
    Tensor tensor(dtype, {2, 3});
    const Tensor taken = MoveFrom(&tensor);
    EXPECT_TRUE(taken.IsInitialized());
    EXPECT_FALSE(tensor.IsInitialized());
    EXPECT_EQ(tensor.dims(), 2);
    EXPECT_EQ(tensor.TotalBytes(), 0u);
    EXPECT_EQ(tensor.flat<float>().size(), 0);
    EXPECT_TRUE(tensor.span<tstring>().empty());
    EXPECT_TRUE(tensor.tensor_data().empty());
    EXPECT_EQ(tensor.StringBytes(), 0u);
    EXPECT_FALSE(tensor.CanBeReused());
    EXPECT_FALSE(tensor.SharesBufferWith(taken));
    EXPECT_FALSE(tensor.Slice(0, 1).IsInitialized());
    EXPECT_FALSE(tensor.SubSlice(0).IsInitialized());
    EXPECT_THAT(tensor.DebugString(), ::testing::HasSubstr("uninitialized"));
    EXPECT_FALSE(tensor.Reshaped({6}).ok());
    EXPECT_FALSE(tensor.DeepCopy().ok());
    tensor = taken;
    EXPECT_TRUE(tensor.IsInitialized());
  }
}

TEST(MovedFrom, InputsAndOutputsAreCopiesOrEmpty) {
  const Scope root = Scope::NewRootScope();
  Output output = ops::Const(root, 1.0f);
  const Output taken = MoveFrom(&output);
  EXPECT_EQ(output, taken);
  Input input(2.0f);
  const Input taken_input = MoveFrom(&input);
  EXPECT_TRUE(taken_input.is_value());
  EXPECT_EQ(input.tensor().dtype(), DT_FLOAT);
  EXPECT_EQ(input.node(), nullptr);
  EXPECT_TRUE(input.status().ok());
  EXPECT_EQ(input.node_name(), "");
  EXPECT_EQ(input.data_type(), DT_INVALID);
  EXPECT_EQ(input.index(), 0);
  ops::Neg(root, input);
  EXPECT_FALSE(root.ok());
  InputList list({taken_input});
  MoveFrom(&list);
  EXPECT_EQ(list.size(), 0u);
  CompositeOpScopes scopes = root.GetCompositeOpScopes("c");
  MoveFrom(&scopes);
  EXPECT_FALSE(scopes.child.ok());
  EXPECT_FALSE(scopes.last.ok());
}

TEST(MovedFrom, NodeBuilderIsACopy) {
  Graph graph;
  NodeBuilder builder("a", "NoOp");
  NodeBuilder taken = MoveFrom(&builder);
  EXPECT_EQ(builder.node_name(), "a");
  taken = NodeBuilder("b", "NoOp");
  builder.Device("/cpu:0");
  EXPECT_TRUE(builder.Finalize(&graph, nullptr).ok());
  EXPECT_TRUE(taken.Finalize(&graph, nullptr).ok());
  EXPECT_EQ(graph.num_nodes(), 2);
  // A builder that has made its node is empty.
  builder.Device("/cpu:0").AssignedDevice("/cpu:0").Attr("_a", 1);
  EXPECT_EQ(builder.node_name(), "");
  EXPECT_FALSE(builder.Finalize(&graph, nullptr).ok());
}

TEST(MovedFrom, CancellationTokenIsACopy) {
  CancellationToken token;
  const CancellationToken taken = MoveFrom(&token);
  token.Cancel();
  EXPECT_TRUE(taken.IsCancelled());
}

TEST(MovedFrom, OpTesterIsACopy) {
  OpTester tester("Neg");
  tester.Input(AsTensor<float>({1, 2}));
  OpTester taken = MoveFrom(&tester);
  EXPECT_EQ(tester.node().op(), "Neg");
  EXPECT_THAT(tester.RunOne(), TensorEq(AsTensor<float>({-1, -2})));
  taken = std::move(tester);
  EXPECT_THAT(taken.RunOne(), TensorEq(AsTensor<float>({-1, -2})));
  EXPECT_THAT(tester.RunOne(), TensorEq(AsTensor<float>({-1, -2})));
}

TEST(MovedFrom, AsyncDoneIsACopy) {
  class Target final : public AsyncDone::Target {
   public:
    bool Done(absl::Status) override { return ++calls == 1; }
    int calls = 0;
  };
  AsyncDone done(std::make_shared<Target>());
  const AsyncDone taken = MoveFrom(&done);
  EXPECT_TRUE(done(absl::OkStatus()));
  EXPECT_FALSE(taken(absl::OkStatus()));
}

TEST(MovedFrom, CheckpointIsACopy) {
  const std::string prefix = ::testing::TempDir() + "/moved_from/ckpt";
  GRADFLOW_ASSERT_OK(WriteCheckpoint(prefix, {{"x", AsTensor<float>({1, 2}), ""}}));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(Checkpoint checkpoint, Checkpoint::Open(prefix));
  const Checkpoint taken = MoveFrom(&checkpoint);
  const Checkpoint& first = checkpoint;
  for (const Checkpoint* one : {&first, &taken}) {
    EXPECT_THAT(one->Names(), ::testing::ElementsAre("x"));
    EXPECT_TRUE(one->Find("x").ok());
    EXPECT_THAT(one->Read("x"), IsOkAndHolds(TensorEq(AsTensor<float>({1, 2}))));
  }
}

TEST(MovedFrom, EventWriterIsClosed) {
  GRADFLOW_ASSERT_OK_AND_ASSIGN(EventWriter writer,
                                EventWriter::Open(::testing::TempDir() + "/moved_from"));
  EventWriter taken = MoveFrom(&writer);
  EXPECT_EQ(writer.path(), "");
  const auto is_closed =
      StatusIs(absl::StatusCode::kFailedPrecondition, "the event writer has been moved from");
  EXPECT_THAT(writer.AddScalar("loss", 1, 2), is_closed);
  EXPECT_THAT(writer.AddSummary(1, ""), is_closed);
  EXPECT_THAT(writer.Sync(), is_closed);
  GRADFLOW_EXPECT_OK(taken.AddScalar("loss", 1, 2));
}

TEST(MovedFrom, OptionsAndResultsAreEmpty) {
  SessionOptions options;
  options.config.set_intra_op_parallelism_threads(2);
  MoveFrom(&options);
  EXPECT_TRUE(Session::Make(options).ok());
  GoldenResult result;
  result.differences.emplace_back();
  MoveFrom(&result);
  EXPECT_EQ(result.Text(), "");
}

}  // namespace
}  // namespace gradflow::testing
