// Tests of sessions with special ops: charging of memory, dropping of tensors, merging of nodes and
// stopping of runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/core/variable.h"
#include "gradflow/runtime/session/session.h"
#include "gradflow/testing/status_matchers.h"
#include "tests/runtime/toy_ops.h"

// This namespace keeps the names apart, because a unity build compiles several tests as one source.
namespace gradflow::accounting {
namespace {

using ::gradflow::testing::Floats;
using ::gradflow::testing::IsOk;
using ::gradflow::testing::StatusIs;
using ::gradflow::testing::ToyNode;
using ::testing::HasSubstr;

constexpr int64_t kMiB = 1 << 20;

// Makes a string of 1 MiB without reporting its memory.
absl::Status MakeString(KernelContext& ctx) {
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, TensorShape(), &output));
  output->scalar<tstring>()() = std::string(kMiB, 'x');
  return absl::OkStatus();
}

absl::Status Fail(KernelContext&) { return errors::InvalidArgument("failed"); }

absl::Status PassOn(KernelContext& ctx) {
  ctx.set_output(0, ctx.input(0));
  return absl::OkStatus();
}

int reads = 0;

absl::Status ReadReference(KernelContext& ctx) {
  ++reads;
  GRADFLOW_ASSIGN_OR_RETURN(Tensor value, ReadVariable(ctx, 0, DT_FLOAT));
  ctx.set_output(0, std::move(value));
  return absl::OkStatus();
}

absl::Status ReadValue(KernelContext& ctx) {
  ++reads;
  return PassOn(ctx);
}

absl::Status MakeVariable(KernelContext& ctx) {
  auto variable = std::make_shared<Variable>(DT_FLOAT, TensorShape(), "v");
  GRADFLOW_RETURN_IF_ERROR(variable->Assign(Tensor(1.0f)));
  ctx.set_output(0, Tensor(ResourceHandle(std::move(variable), "v")));
  return absl::OkStatus();
}

const Registry& OwnRegistry() {
  static const Registry& registry = *[] {
    auto* const own = new Registry;
    own->Op("Placeholder")
        .Output("output: dtype")
        .Attr("dtype: type")
        .Attr("shape: shape = { unknown_rank: true }");
    own->Kernel("Placeholder", MakeFunctionKernel<Fail>);
    own->Op("MakeString").Output("y: string").Stateful();
    own->Kernel("MakeString", MakeFunctionKernel<MakeString>);
    own->Op("Fail").Input("x: float").Output("y: float");
    own->Kernel("Fail", MakeFunctionKernel<Fail>);
    own->Op("Variable").Output("ref: Ref(float)").Stateful();
    own->Kernel("Variable", MakeFunctionKernel<MakeVariable>);
    own->Op("ReadReference").Input("ref: Ref(float)").Output("y: float");
    own->Kernel("ReadReference", MakeFunctionKernel<ReadReference>);
    own->Op("ReadValue").Input("x: float").Output("y: float");
    own->Kernel("ReadValue", MakeFunctionKernel<ReadValue>);
    own->Op("PassOn").Input("x: float").Output("y: float");
    own->Kernel("PassOn", MakeFunctionKernel<PassOn>);
    EXPECT_TRUE(own->status().ok()) << own->status();
    return own;
  }();
  return registry;
}

std::unique_ptr<Session> SessionOf(const std::vector<NodeDef>& nodes, SessionOptions options = {},
                                   int producer = kGraphDefVersion) {
  GraphDef graph;
  for (const NodeDef& node : nodes) *graph.add_node() = node;
  graph.mutable_versions()->set_producer(producer);
  options.config.set_inter_op_parallelism_threads(1);
  absl::StatusOr<std::unique_ptr<Session>> session = Session::Make(options, OwnRegistry());
  EXPECT_THAT(session, IsOk());
  EXPECT_THAT((*session)->Create(graph), IsOk());
  return *std::move(session);
}

TEST(Accounting, StringsThatAKernelMakesAreCharged) {
  SessionOptions options;
  options.tensor_memory_limit_bytes = 4 * kMiB;
  const auto session =
      SessionOf({ToyNode("s", "MakeString", {}), ToyNode("t", "MakeString", {})}, options);
  std::vector<Tensor> outputs;
  GRADFLOW_ASSERT_OK(session->Run({}, {"s"}, {}, &outputs));
  EXPECT_GE(session->MemoryStats().bytes_in_use, kMiB);
  // Keeps the output of each run until the memory is exhausted.
  std::vector<std::vector<Tensor>> kept;
  absl::Status status;
  for (int i = 0; i < 10 && status.ok(); ++i) {
    status = session->Run({}, {"s", "t"}, {}, &kept.emplace_back());
  }
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted,
                               HasSubstr("out of memory for the 1048576 characters")));
  EXPECT_LE(session->MemoryStats().peak_bytes_in_use, 4 * kMiB);
  kept.clear();
  outputs.clear();
  EXPECT_EQ(session->MemoryStats().bytes_in_use, 0);
  GRADFLOW_EXPECT_OK(session->Run({}, {"s"}, {}, &outputs));
}

TEST(Accounting, AFailedRunKeepsNoFedTensor) {
  const auto session =
      SessionOf({ToyNode("x", "Placeholder", {}, {{"dtype", DT_FLOAT}}),
                 ToyNode("y", "Placeholder", {}, {{"dtype", DT_FLOAT}}),
                 ToyNode("fail", "Fail", {"x"}), ToyNode("z", "PassOn", {"y", "^fail"})});
  Tensor x = Floats({1, 2});
  Tensor y = Floats({3});
  std::vector<Tensor> outputs;
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(session->Run({{"x", x}, {"y", y}}, {"fail", "z", "x"}, {}, &outputs),
                StatusIs(absl::StatusCode::kInvalidArgument, "node 'fail' (Fail): failed"));
    EXPECT_TRUE(x.CanBeReused());
    EXPECT_TRUE(y.CanBeReused());
  }
}

// Two reads of a variable may see different values.
TEST(Accounting, ReadersOfReferencesAreNotMerged) {
  for (const std::string op : {"ReadReference", "ReadValue"}) {
    SCOPED_TRACE(op);
    reads = 0;
    const auto session =
        SessionOf({ToyNode("v", "Variable", {}), ToyNode("a", op, {"v"}), ToyNode("b", op, {"v"})});
    std::vector<Tensor> outputs;
    GRADFLOW_ASSERT_OK(session->Run({}, {"a", "b"}, {}, &outputs));
    EXPECT_EQ(reads, 2);
  }
}

// Fetching a fed tensor needs no node.
TEST(Accounting, ARunWithoutNodesCanBeStopped) {
  const auto session = SessionOf({ToyNode("x", "Placeholder", {}, {{"dtype", DT_FLOAT}})});
  std::vector<Tensor> outputs;
  const std::vector<std::pair<std::string, Tensor>> feeds = {{"x", Floats({1})}};
  GRADFLOW_ASSERT_OK(session->Run(feeds, {"x"}, {}, &outputs));
  const CancellationToken cancelled;
  cancelled.Cancel();
  outputs.clear();
  EXPECT_THAT(session->Run({}, feeds, {"x"}, {}, &outputs, nullptr, cancelled),
              StatusIs(absl::StatusCode::kCancelled));
  EXPECT_TRUE(outputs.empty());
  CallableOptions options;
  options.add_feed("x");
  options.add_fetch("x");
  Session::CallableHandle handle;
  GRADFLOW_ASSERT_OK(session->MakeCallable(options, &handle));
  EXPECT_THAT(session->RunCallable(handle, {Floats({1})}, &outputs, nullptr, cancelled),
              StatusIs(absl::StatusCode::kCancelled));
  GRADFLOW_ASSERT_OK(session->Close());
  EXPECT_THAT(session->Run(feeds, {"x"}, {}, &outputs), StatusIs(absl::StatusCode::kCancelled));
}

// Before version 24 of GraphDef, the shape of a scalar meant an unknown shape.
TEST(Accounting, ScalarShapesAreBindingFromVersion24On) {
  for (const int producer : {23, 24, 25}) {
    PartialTensorShape scalar({});
    const auto session =
        SessionOf({ToyNode("x", "Placeholder", {}, {{"dtype", DT_FLOAT}, {"shape", scalar}}),
                   ToyNode("y", "PassOn", {"x"})},
                  {}, producer);
    std::vector<Tensor> outputs;
    const absl::Status status = session->Run({{"x", Floats({1, 2})}}, {"y"}, {}, &outputs);
    if (producer < 24) {
      EXPECT_THAT(status, IsOk()) << producer;
    } else {
      EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument)) << producer;
    }
    GRADFLOW_EXPECT_OK(session->Run({{"x", Tensor(1.0f)}}, {"y"}, {}, &outputs));
  }
}

}  // namespace
}  // namespace gradflow::accounting
