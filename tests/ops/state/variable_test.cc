// Tests of variables in sessions: creation, reading, assignment, updates, order and concurrency.
#include "gradflow/core/variable.h"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "gradflow/core/resource_handle.h"
#include "gradflow/graph/scope.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/runtime/plan/kernel_cache.h"
#include "gradflow/runtime/plan/passes.h"
#include "gradflow/runtime/plan/plan.h"
#include "gradflow/runtime/session/client_session.h"
#include "gradflow/runtime/session/options.h"
#include "gradflow/runtime/session/session.h"
#include "gradflow/testing/kernel_test.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

Tensor Scalar(float value) { return AsScalar<float>(value); }

class VariableTest : public ::testing::Test {
 protected:
  // Returns the fetched outputs of a run that also has `targets`.
  std::vector<Tensor> Run(ClientSession& session, const std::vector<Output>& fetches,
                          const std::vector<Operation>& targets = {}) {
    std::vector<Tensor> outputs;
    GRADFLOW_EXPECT_OK(session.Run({}, fetches, targets, &outputs));
    outputs.resize(fetches.size());
    return outputs;
  }

  Scope After(const Operation& operation) const {
    return scope_.WithControlDependencies(std::vector<Operation>{operation});
  }

  Scope scope_ = Scope::NewRootScope();
};

// ---- Resource variables ----

TEST_F(VariableTest, KeepsItsValueBetweenRuns) {
  const auto w = ops::VarHandleOp(scope_.WithOpName("w"), DT_FLOAT, {2});
  const auto init = ops::AssignVariableOp(scope_, w, ops::Const(scope_, {1.f, 2.f}));
  const auto add = ops::AssignAddVariableOp(scope_, w, ops::Const(scope_, {10.f, 20.f}));
  const auto subtract = ops::AssignSubVariableOp(scope_, w, ops::Const(scope_, {1.f, 1.f}));
  const auto read = ops::ReadVariableOp(scope_, w, DT_FLOAT);
  const auto shape = ops::VariableShape(scope_, w);
  GRADFLOW_ASSERT_OK(scope_.status());
  EXPECT_EQ(read.node()->output_shape(0).DebugString(), "[2]");
  ClientSession session(scope_);
  Run(session, {}, {init});
  EXPECT_THAT(Run(session, {read})[0], TensorEq(AsTensor<float>({1, 2})));
  Run(session, {}, {add});
  Run(session, {}, {add});
  Run(session, {}, {subtract});
  EXPECT_THAT(Run(session, {read})[0], TensorEq(AsTensor<float>({20, 41})));
  EXPECT_THAT(Run(session, {shape})[0], TensorEq(AsTensor<int32_t>({2})));
  // Another session has its own variables.
  ClientSession other(scope_);
  EXPECT_THAT(other.Run({read}, nullptr),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("variable 'w' has not been initialized")));
}

TEST_F(VariableTest, IsKeyedByContainerAndSharedName) {
  using Handle = ops::VarHandleOp;
  const Handle a(scope_, DT_FLOAT, PartialTensorShape(), Handle::SharedName("v"));
  const Handle same(scope_, DT_FLOAT, PartialTensorShape(), Handle::SharedName("v"));
  const Handle other(scope_, DT_FLOAT, PartialTensorShape(),
                     Handle::SharedName("v").Container("c"));
  const ops::AssignVariableOp init(scope_, a, 1.f);
  const ops::AssignVariableOp init_other(scope_, other, 2.f);
  const ops::ReadVariableOp read_same(scope_, same, DT_FLOAT);
  const ops::ReadVariableOp read_other(scope_, other, DT_FLOAT);
  ClientSession session(scope_);
  Run(session, {}, {init, init_other});
  const auto values = Run(session, {read_same, read_other});
  EXPECT_THAT(values[0], TensorEq(Scalar(1)));
  EXPECT_THAT(values[1], TensorEq(Scalar(2)));
}

TEST_F(VariableTest, ErrorsNameTheVariable) {
  const auto w = ops::VarHandleOp(scope_.WithOpName("w"), DT_FLOAT, PartialTensorShape());
  const auto read = ops::ReadVariableOp(scope_.WithOpName("read"), w, DT_FLOAT);
  const auto initialized = ops::VarIsInitializedOp(scope_, w);
  const auto destroy = ops::DestroyResourceOp(scope_, w);
  const auto strict =
      ops::DestroyResourceOp(scope_, w, ops::DestroyResourceOp::IgnoreLookupError(false));
  const auto add = ops::AssignAddVariableOp(scope_.WithOpName("add"), w, {1.f, 2.f});
  const auto init = ops::AssignVariableOp(scope_, w, 1.f);
  const auto init_same = ops::AssignVariableOp(scope_.WithOpName("same"), w, {1.f, 2.f},
                                               ops::AssignVariableOp::ValidateShape(true));
  ClientSession session(scope_);
  EXPECT_THAT(session.Run({read}, nullptr),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "node 'read' (ReadVariableOp): variable 'w' has not been initialized"));
  EXPECT_THAT(session.Run({}, {}, {add}, nullptr),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("'w'")));
  EXPECT_THAT(Run(session, {initialized})[0], TensorEq(AsScalar<bool>(false)));
  EXPECT_THAT(session.Run({}, {}, {strict}, nullptr),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("resource 'w' does not exist")));
  Run(session, {}, {destroy});
  Run(session, {}, {init});
  EXPECT_THAT(Run(session, {initialized})[0], TensorEq(AsScalar<bool>(true)));
  EXPECT_THAT(session.Run({}, {}, {add}, nullptr),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("variable 'w' has shape [], but value has shape [2]")));
  EXPECT_THAT(session.Run({}, {}, {init_same}, nullptr),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("variable 'w' has shape [], but the value has shape [2]")));
  Run(session, {}, {strict});
  EXPECT_THAT(session.Run({read}, nullptr), StatusIs(absl::StatusCode::kFailedPrecondition));
}

// A name may contain any bytes.
TEST_F(VariableTest, ErrorsArePrintable) {
  const auto w =
      ops::VarHandleOp(scope_, DT_FLOAT, PartialTensorShape(),
                       ops::VarHandleOp::SharedName("\x1b[31m" + std::string(100000, 'x')));
  const auto read = ops::ReadVariableOp(scope_, w, DT_FLOAT);
  const auto destroy =
      ops::DestroyResourceOp(scope_, w, ops::DestroyResourceOp::IgnoreLookupError(false));
  ClientSession session(scope_);
  for (const absl::Status& status :
       {session.Run({read}, nullptr), session.Run({}, {}, {destroy}, nullptr)}) {
    EXPECT_THAT(std::string(status.message()), HasSubstr("\\x1b[31mxxx"));
    EXPECT_LT(status.message().size(), 1000);
  }
}

TEST_F(VariableTest, TypesAndShapesAreCheckedWhenTheGraphIsBuilt) {
  const auto w = ops::VarHandleOp(scope_, DT_FLOAT, {2, 3});
  const auto expect_error = [&](const auto& add, const std::string& text) {
    const Scope scope = scope_.NewSubScope("s");
    add(scope);
    EXPECT_THAT(scope.status(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text)));
  };
  {
    const Scope inner = Scope::NewRootScope();
    const auto v = ops::VarHandleOp(inner, DT_FLOAT, {2, 3});
    ops::ReadVariableOp(inner, v, DT_INT32);
    EXPECT_THAT(inner.status(), StatusIs(absl::StatusCode::kInvalidArgument,
                                         HasSubstr("has type float, expected int32")));
  }
  {
    const Scope inner = Scope::NewRootScope();
    const auto v = ops::VarHandleOp(inner, DT_FLOAT, {2, 3});
    ops::AssignVariableOp(inner, v, 1.f);
    EXPECT_THAT(inner.status(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("the variable has shape [2,3], and value has shape []")));
  }
  expect_error([&](const Scope& scope) { ops::AssignVariableOp(scope, w, {1}); },
               "the variable has type float, but value has type int32");
}

TEST_F(VariableTest, HandlesMayPassThroughIdentity) {
  const auto w = ops::VarHandleOp(scope_, DT_FLOAT, {3});
  const auto same = ops::Identity(scope_, w);
  const auto read = ops::ReadVariableOp(scope_, same, DT_FLOAT);
  const auto init = ops::AssignVariableOp(scope_, same, {1.f, 2.f, 3.f});
  GRADFLOW_ASSERT_OK(scope_.status());
  EXPECT_EQ(read.node()->output_shape(0).DebugString(), "[3]");
  ClientSession session(scope_);
  Run(session, {}, {init});
  // A fetched handle may be fed.
  const Tensor handle = Run(session, {w})[0];
  EXPECT_EQ(handle.dtype(), DT_RESOURCE);
  std::vector<Tensor> outputs;
  GRADFLOW_ASSERT_OK(session.Run({{same, handle}}, {read}, &outputs));
  EXPECT_THAT(outputs[0], TensorEq(AsTensor<float>({1, 2, 3})));
}

// Kernels for all types that compare elements compare bytes or strings, so they must not accept
// handles.
TEST_F(VariableTest, OpsThatCompareElementsHaveNoKernelsForHandles) {
  const auto w = ops::VarHandleOp(scope_, DT_FLOAT, {3});
  const auto packed = ops::Stack(scope_, {w, w});
  const auto unique = ops::Unique(scope_, packed);
  GRADFLOW_ASSERT_OK(scope_.status());
  ClientSession session(scope_);
  EXPECT_THAT(session.Run({unique.y}, nullptr),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("resource")));
}

TEST_F(VariableTest, AnonymousVariablesLiveAsLongAsTheirHandles) {
  const auto w =
      ops::VarHandleOp(scope_, DT_FLOAT, PartialTensorShape(),
                       ops::VarHandleOp::SharedName("cd2c89b7-88b7-44c8-ad83-06c2a9158347"));
  const auto init = ops::AssignVariableOp(scope_, w, 5.f);
  const auto read = ops::ReadVariableOp(After(init.operation), w, DT_FLOAT);
  const auto only_read = ops::ReadVariableOp(scope_, w, DT_FLOAT);
  ClientSession session(scope_);
  const auto outputs = Run(session, {w, read});
  EXPECT_THAT(outputs[1], TensorEq(Scalar(5)));
  std::vector<Tensor> again;
  GRADFLOW_ASSERT_OK(session.Run({{w, outputs[0]}}, {only_read}, &again));
  EXPECT_THAT(again[0], TensorEq(Scalar(5)));
  EXPECT_THAT(session.Run({only_read}, nullptr), StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(VariableTest, ControlDependenciesOrderReadsAndWrites) {
  const auto w = ops::VarHandleOp(scope_, DT_FLOAT, PartialTensorShape());
  const auto init = ops::AssignVariableOp(scope_, w, 1.f);
  const auto before = ops::ReadVariableOp(scope_, w, DT_FLOAT);
  const auto add = ops::AssignAddVariableOp(After(before.operation), w, 1.f);
  const auto after = ops::ReadVariableOp(After(add.operation), w, DT_FLOAT);
  ClientSession session(scope_);
  Run(session, {}, {init});
  for (int i = 1; i < 50; ++i) {
    const auto values = Run(session, {before, after});
    EXPECT_THAT(values[0], TensorEq(Scalar(static_cast<float>(i))));
    EXPECT_THAT(values[1], TensorEq(Scalar(static_cast<float>(i + 1))));
  }
}

// ---- Reference variables ----

TEST_F(VariableTest, ReferencesKeepTheirValuesBetweenRuns) {
  const auto w = ops::Variable(scope_.WithOpName("w"), {2}, DT_FLOAT);
  const auto init = ops::Assign(scope_, w, {1.f, 2.f});
  const auto add = ops::AssignAdd(scope_, w, {10.f, 20.f});
  const auto twice = ops::AddV2(scope_, w, w);
  const auto initialized = ops::IsVariableInitialized(scope_, w);
  GRADFLOW_ASSERT_OK(scope_.status());
  ClientSession session(scope_);
  EXPECT_THAT(Run(session, {initialized})[0], TensorEq(AsScalar<bool>(false)));
  EXPECT_THAT(session.Run({twice}, nullptr),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("variable 'w' has not been initialized")));
  EXPECT_THAT(session.Run({w}, nullptr), StatusIs(absl::StatusCode::kFailedPrecondition));
  // Fetching a reference reads its value.
  EXPECT_THAT(Run(session, {init})[0], TensorEq(AsTensor<float>({1, 2})));
  EXPECT_THAT(Run(session, {add})[0], TensorEq(AsTensor<float>({11, 22})));
  EXPECT_THAT(Run(session, {w})[0], TensorEq(AsTensor<float>({11, 22})));
  EXPECT_THAT(Run(session, {twice})[0], TensorEq(AsTensor<float>({22, 44})));
  EXPECT_THAT(Run(session, {initialized})[0], TensorEq(AsScalar<bool>(true)));
}

TEST_F(VariableTest, AssignmentsRunTogether) {
  const auto a = ops::Variable(scope_, {}, DT_FLOAT);
  const auto b = ops::Variable(scope_, {}, DT_INT32);
  const auto assign_a = ops::Assign(scope_, a, 3.f);
  const auto assign_b = ops::Assign(scope_, b, 4);
  ClientSession session(scope_);
  std::vector<Tensor> outputs;
  GRADFLOW_ASSERT_OK(session.Run({assign_a, assign_b}, nullptr));
  GRADFLOW_ASSERT_OK(session.Run({a, b}, &outputs));
  EXPECT_THAT(outputs[0], TensorEq(Scalar(3)));
  EXPECT_THAT(outputs[1], TensorEq(AsScalar<int32_t>(4)));
}

// A value is read when the other inputs of its reader are ready, not when the variable's node runs.
TEST_F(VariableTest, ReadersOfReferencesWaitForTheirOtherInputs) {
  const auto w = ops::Variable(scope_, {}, DT_FLOAT);
  const auto init = ops::Assign(scope_, w, 1.f);
  const auto add = ops::AssignAdd(scope_, w, 1.f);
  const auto by_control = ops::Identity(After(add.operation), w);
  const auto by_data = ops::Mul(scope_, w, ops::Neg(scope_, add));
  // The other input is also a reference.
  const auto before = ops::Mul(scope_, add, w);
  const auto after = ops::Mul(scope_, w, add);
  ClientSession session(scope_);
  Run(session, {init});
  for (int i = 2; i < 40; ++i) {
    const float x = static_cast<float>(i);
    const auto values = Run(session, {by_control, by_data, before, after});
    EXPECT_THAT(values[0], TensorEq(Scalar(x)));
    EXPECT_THAT(values[1], TensorEq(Scalar(-x * x)));
    EXPECT_THAT(values[2], TensorEq(Scalar(x * x)));
    EXPECT_THAT(values[3], TensorEq(Scalar(x * x)));
  }
  for (const Output& product : {Output(before), Output(after)}) {
    Run(session, {init});
    EXPECT_THAT(Run(session, {product})[0], TensorEq(Scalar(4)));
  }
}

int64_t num_edges = 0;

absl::Status CountEdges(const PassContext&, PlanGraph* graph) {
  for (const int32_t node : graph->order()) num_edges += graph->num_edges(node);
  return absl::OkStatus();
}

TEST_F(VariableTest, ReadsTakeALinearNumberOfEdges) {
  constexpr int kInputs = 10000;
  const auto w = ops::Variable(scope_, {}, DT_FLOAT);
  ops::Stack(scope_.WithOpName("pack"), std::vector<Output>(kInputs, w));
  GRADFLOW_ASSERT_OK(scope_.status());
  const PlanPass passes[] = {CountEdges};
  PlanOptions options;
  options.passes = passes;
  KernelCache kernels;
  num_edges = 0;
  GRADFLOW_ASSERT_OK(Plan::Make(*scope_.graph(), {{}, {"pack"}, {}}, &kernels, options));
  // The inputs of Pack, the inputs of the node that waits for them, and two edges for each read.
  EXPECT_EQ(num_edges, 4 * kInputs);
}

TEST_F(VariableTest, ReferencesMustNotBeFed) {
  const auto w = ops::Variable(scope_, {}, DT_FLOAT);
  const auto add = ops::AssignAdd(scope_.WithOpName("add"), w, 1.f);
  const auto negative = ops::Neg(scope_, w);
  ClientSession session(scope_);
  std::vector<Tensor> outputs;
  GRADFLOW_ASSERT_OK(session.Run({{w, 2.f}}, {negative}, &outputs));
  EXPECT_THAT(outputs[0], TensorEq(Scalar(-2)));
  EXPECT_THAT(session.Run({{w, 2.f}}, {add}, &outputs),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("node 'add' (AssignAdd): input 0 must be a reference")));
}

TEST_F(VariableTest, InfersShapesOfReferences) {
  const auto w = ops::Variable(scope_.WithOpName("w"), {2}, DT_FLOAT);
  const auto x = ops::Placeholder(scope_, DT_FLOAT);
  const auto assign = ops::Assign(scope_, w, x);
  const auto reshape = ops::Assign(scope_, w, x, ops::Assign::ValidateShape(false));
  GRADFLOW_ASSERT_OK(scope_.status());
  ClientSession session(scope_);
  EXPECT_THAT(session.Run({{x, {1.f, 2.f, 3.f}}}, {assign}, nullptr),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("variable 'w' has shape [2], but the value has shape [3]")));
  GRADFLOW_EXPECT_OK(session.Run({{x, {1.f, 2.f}}}, {assign}, nullptr));
  GRADFLOW_EXPECT_OK(session.Run({{x, {1.f, 2.f, 3.f}}}, {reshape}, nullptr));
  EXPECT_THAT(Run(session, {w})[0], TensorEq(AsTensor<float>({1, 2, 3})));
  GRADFLOW_EXPECT_OK(session.Run({{x, {1.f, 2.f, 4.f}}}, {assign}, nullptr));
}

// The op Variable uses the shape of a scalar for an unknown shape. Both forms share one store.
TEST_F(VariableTest, OldVariablesShareTheStore) {
  NodeDef old;
  old.set_name("old");
  old.set_op("Variable");
  AddNodeAttr("dtype", DT_FLOAT, &old);
  AddNodeAttr("shape", PartialTensorShape(TensorShape()), &old);
  AddNodeAttr("shared_name", std::string("w"), &old);
  NodeDef handle;
  handle.set_name("handle");
  handle.set_op("VarHandleOp");
  AddNodeAttr("dtype", DT_FLOAT, &handle);
  AddNodeAttr("shape", PartialTensorShape(), &handle);
  AddNodeAttr("shared_name", std::string("w"), &handle);
  NodeDef read;
  read.set_name("read");
  read.set_op("ReadVariableOp");
  AddNodeAttr("dtype", DT_FLOAT, &read);
  read.add_input("handle");
  NodeDef value;
  value.set_name("value");
  value.set_op("Const");
  AddNodeAttr("dtype", DT_FLOAT, &value);
  AddNodeAttr("value", AsTensor<float>({1, 2, 3}), &value);
  NodeDef assign;
  assign.set_name("assign");
  assign.set_op("Assign");
  AddNodeAttr("T", DT_FLOAT, &assign);
  assign.add_input("old");
  assign.add_input("value");
  GraphDef graph;
  for (const NodeDef& node : {old, handle, read, value, assign}) *graph.add_node() = node;
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session,
                                Session::Make(SessionOptions()));
  GRADFLOW_ASSERT_OK(session->Create(graph));
  std::vector<Tensor> outputs;
  GRADFLOW_ASSERT_OK(session->Run({}, {}, {"assign"}, &outputs));
  GRADFLOW_ASSERT_OK(session->Run({}, {"read", "old"}, {}, &outputs));
  EXPECT_THAT(outputs[0], TensorEq(AsTensor<float>({1, 2, 3})));
  EXPECT_THAT(outputs[1], TensorEq(AsTensor<float>({1, 2, 3})));
}

// ---- Buffers ----

TEST_F(VariableTest, UpdatesAreInPlaceUnlessSomebodyReads) {
  const auto w = ops::VarHandleOp(scope_, DT_FLOAT, {1000});
  const auto x = ops::Placeholder(scope_, DT_FLOAT);
  const auto init = ops::AssignVariableOp(scope_, w, x);
  const auto add = ops::AssignAddVariableOp(scope_, w, ops::Fill(scope_, {1000}, 1.f));
  const auto read = ops::ReadVariableOp(scope_, w, DT_FLOAT);
  ClientSession session(scope_);
  Tensor fed(DT_FLOAT, {1000});
  fed.flat<float>().setZero();
  std::vector<Tensor> outputs;
  GRADFLOW_ASSERT_OK(session.Run({{x, fed}}, {}, {init}, &outputs));
  // The caller may change a tensor after it was fed.
  fed.flat<float>()(0) = 7;
  const auto address = [&] { return Run(session, {read})[0].raw_data(); };
  const void* const first = address();
  EXPECT_NE(first, fed.raw_data());
  Run(session, {}, {add});
  EXPECT_EQ(address(), first);
  // A tensor that the caller holds keeps its values.
  const Tensor held = Run(session, {read})[0];
  Run(session, {}, {add});
  EXPECT_EQ(held.flat<float>()(0), 1);
  EXPECT_EQ(held.flat<float>()(999), 1);
  EXPECT_NE(address(), held.raw_data());
  EXPECT_EQ(Run(session, {read})[0].flat<float>()(0), 2);
}

// The session allocated the fetched tensor, but the caller holds it too, so the assignment copies
// it.
TEST_F(VariableTest, CopiesFetchedTensorsThatAreFed) {
  const auto w = ops::VarHandleOp(scope_, DT_FLOAT, {1000});
  const auto x = ops::Placeholder(scope_, DT_FLOAT);
  const auto init = ops::AssignVariableOp(scope_, w, x);
  const auto made = ops::AddV2(scope_, x, x);
  const auto read = ops::ReadVariableOp(scope_, w, DT_FLOAT);
  ClientSession session(scope_);
  Tensor ones(DT_FLOAT, {1000});
  ones.flat<float>().setConstant(1);
  std::vector<Tensor> fetched;
  GRADFLOW_ASSERT_OK(session.Run({{x, ones}}, {made}, &fetched));
  GRADFLOW_ASSERT_OK(session.Run({{x, fetched[0]}}, {}, {init}, nullptr));
  fetched[0].flat<float>()(0) = 7;
  EXPECT_EQ(Run(session, {read})[0].flat<float>()(0), 2);
}

TEST_F(VariableTest, CountsTowardsTheMemoryLimit) {
  const auto w = ops::VarHandleOp(scope_, DT_FLOAT, {-1});
  const auto x = ops::Placeholder(scope_, DT_FLOAT);
  const auto init = ops::AssignVariableOp(scope_, w, x);
  const auto destroy = ops::DestroyResourceOp(scope_, w);
  SessionOptions options;
  options.tensor_memory_limit_bytes = 1 << 20;
  ClientSession session(scope_, options);
  GRADFLOW_ASSERT_OK(session.Run({{x, Tensor(DT_FLOAT, {100000})}}, {}, {init}, nullptr));
  EXPECT_GE(session.MemoryStats().bytes_in_use, 400000);
  EXPECT_THAT(session.Run({{x, Tensor(DT_FLOAT, {1 << 18})}}, {}, {init}, nullptr),
              StatusIs(absl::StatusCode::kResourceExhausted));
  Run(session, {}, {destroy});
  EXPECT_EQ(session.MemoryStats().bytes_in_use, 0);
}

TEST_F(VariableTest, HoldsStrings) {
  const auto w = ops::VarHandleOp(scope_, DT_STRING, {-1});
  const auto init = ops::AssignVariableOp(scope_, w, {"one", "two"});
  const auto update = ops::ResourceScatterUpdate(scope_, w, {1}, {std::string(100, 'x')});
  const auto read = ops::ReadVariableOp(scope_, w, DT_STRING);
  ClientSession session(scope_);
  Run(session, {}, {init});
  Run(session, {}, {update});
  EXPECT_THAT(Run(session, {read})[0], TensorEq(AsTensor<tstring>({"one", std::string(100, 'x')})));
}

// Custom kernels may store handles in variables. A copy of such a tensor also keeps the resources
// alive.
TEST_F(VariableTest, CopiesHandles) {
  const auto resource = std::make_shared<Variable>(DT_FLOAT, TensorShape(), "v");
  Tensor copy;
  {
    const Tensor handle(ResourceHandle(resource, "v"));
    // A tensor is copied only if it has another holder.
    const Tensor other = handle;
    const RunContext run;
    KernelContext context({}, {}, {}, run);
    GRADFLOW_ASSERT_OK_AND_ASSIGN(copy, ForVariable(context, handle));
    EXPECT_NE(copy.raw_data(), handle.raw_data());
  }
  EXPECT_EQ(resource.use_count(), 2);
  copy = Tensor();
  EXPECT_EQ(resource.use_count(), 1);
}

// ---- Concurrency ----

TEST_F(VariableTest, ConcurrentRunsSeeWholeValuesAndLoseNoUpdate) {
  constexpr int kThreads = 4;
  constexpr int kRuns = 100;
  constexpr int kSize = 5000;
  const auto w = ops::VarHandleOp(scope_, DT_INT64, {kSize});
  const auto init =
      ops::AssignVariableOp(scope_, w, ops::Fill(scope_, {kSize}, ops::Const<int64_t>(scope_, 0)));
  const auto add = ops::AssignAddVariableOp(
      scope_, w, ops::Fill(scope_, {kSize}, ops::Const<int64_t>(scope_, 1)));
  const auto read = ops::ReadVariableOp(scope_, w, DT_INT64);
  ClientSession session(scope_);
  Run(session, {}, {init});
  std::atomic<int> torn{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRuns; ++i) {
        if (t % 2 == 0) {
          GRADFLOW_EXPECT_OK(session.Run({}, {}, {add}, nullptr));
          continue;
        }
        std::vector<Tensor> outputs;
        GRADFLOW_EXPECT_OK(session.Run({read}, &outputs));
        const auto values = outputs[0].flat<int64_t>();
        for (int k = 1; k < kSize; ++k) torn += values(k) != values(0);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(torn, 0);
  EXPECT_EQ(Run(session, {read})[0].flat<int64_t>()(0), kThreads / 2 * kRuns);
}

// ---- Single ops ----

TEST(VariableOps, KernelsComputeSingleOps) {
  const Tensor w = AsTensor<float>({1, 2, 3});
  EXPECT_THAT(*OpTester("ReadVariableOp").Input(w).Run(),
              ::testing::ElementsAre(TensorEq(w), TensorEq(w)));
  EXPECT_THAT(*OpTester("VariableShape").Input(w).Attr("out_type", DT_INT64).Run(),
              ::testing::ElementsAre(TensorEq(AsTensor<int64_t>({3})), TensorEq(w)));
  EXPECT_THAT(OpTester("DisableCopyOnRead").Input(w).Run(), IsOk());
  EXPECT_THAT(OpTester("DestroyResourceOp").Input(w).Run(), IsOk());
  EXPECT_THAT(*OpTester("Assign").Input(w).Input<float>({4, 5, 6}).RunOne(),
              TensorEq(AsTensor<float>({4, 5, 6})));
  EXPECT_THAT(*OpTester("AssignVariableOp").Input(w).Input<float>({4, 5, 6}).RunOne(),
              TensorEq(AsTensor<float>({4, 5, 6})));
  for (const DataType dtype :
       {DT_HALF, DT_BFLOAT16, DT_FLOAT, DT_DOUBLE, DT_INT8, DT_UINT64, DT_INT32, DT_COMPLEX64}) {
    SCOPED_TRACE(DataTypeString(dtype));
    const Tensor a = RandomTensor(dtype, {3, 70000});
    const Tensor b = RandomTensor(dtype, {3, 70000}, Distribution(), 7);
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor sum, OpTester("AddV2").Input(a).Input(b).RunOne());
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor minus, OpTester("Sub").Input(a).Input(b).RunOne());
    for (const char* op : {"AssignAdd", "AssignAddVariableOp"}) {
      EXPECT_THAT(OpTester(op).Input(a).Input(b).RunOne(), TensorEq(sum));
    }
    for (const char* op : {"AssignSub", "AssignSubVariableOp"}) {
      EXPECT_THAT(OpTester(op).Input(a).Input(b).RunOne(), TensorEq(minus));
    }
  }
  // Ops of the tests above: "VarHandleOp", "VariableV2", "Variable", "IsVariableInitialized",
  // "VarIsInitializedOp".
}

TEST(VariableOps, CountUpToStopsAtItsLimit) {
  for (const char* op : {"CountUpTo", "ResourceCountUpTo"}) {
    for (const DataType dtype : {DT_INT32, DT_INT64}) {
      const Tensor three = dtype == DT_INT32 ? AsScalar<int32_t>(3) : AsScalar<int64_t>(3);
      const Tensor four = dtype == DT_INT32 ? AsScalar<int32_t>(4) : AsScalar<int64_t>(4);
      GRADFLOW_ASSERT_OK_AND_ASSIGN(const auto outputs,
                                    OpTester(op).Input(three).Attr("limit", 4).Run());
      EXPECT_THAT(outputs, ::testing::ElementsAre(TensorEq(three), TensorEq(four)));
      EXPECT_THAT(OpTester(op).Input(three).Attr("limit", 3).Run(),
                  StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("has reached the limit of 3")));
    }
    EXPECT_THAT(OpTester(op).Input<int32_t>({1, 2}).Attr("limit", 3).Run(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("variable 'input0' must be a scalar, but has shape [2]")));
    constexpr int64_t kLarge = int64_t{1} << 31;
    EXPECT_THAT(OpTester(op).Input(AsScalar<int32_t>(INT32_MAX)).Attr("limit", kLarge).Run(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("limit is 2147483648, expected at most 2147483647")));
    EXPECT_THAT(OpTester(op).Input(AsScalar<int64_t>(kLarge - 1)).Attr("limit", kLarge).Run(),
                IsOkAndHolds(::testing::ElementsAre(TensorEq(AsScalar<int64_t>(kLarge - 1)),
                                                    TensorEq(AsScalar<int64_t>(kLarge)))));
  }
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
