// Tests of callables of Session and ClientSession.
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gradflow/graph/scope.h"
#include "gradflow/runtime/session/client_session.h"
#include "gradflow/runtime/session/session.h"
#include "gradflow/testing/status_matchers.h"
#include "tests/runtime/toy_ops.h"

namespace gradflow {
namespace {

using ::absl::StatusCode;
using ::gradflow::testing::Floats;
using ::gradflow::testing::Int;
using ::gradflow::testing::StatusIs;
using ::gradflow::testing::ToyCounter;
using ::gradflow::testing::ToyNode;
using ::gradflow::testing::ToyRegistry;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// x, y -> mix -> mix:0, mix:1; x -> tick
class CallableTest : public ::testing::Test {
 protected:
  CallableTest() : session_(*Session::Make(SessionOptions(), ToyRegistry())) {
    GraphDef graph;
    *graph.add_node() = ToyNode("x", "Placeholder", {}, {{"dtype", DT_INT64}});
    *graph.add_node() = ToyNode("y", "Placeholder", {}, {{"dtype", DT_INT64}});
    *graph.add_node() = ToyNode("mix", "Mix", {"x", "y"});
    *graph.add_node() = ToyNode("tick", "Tick", {"x"}, {{"counter", 0}});
    GRADFLOW_EXPECT_OK(session_->Create(graph));
  }

  static CallableOptions MixOptions() {
    CallableOptions options;
    options.add_feed("y");
    options.add_feed("x:0");
    options.add_fetch("mix:1");
    options.add_fetch("mix");
    return options;
  }
  Session::CallableHandle Make(const CallableOptions& options) {
    Session::CallableHandle handle = -1;
    GRADFLOW_EXPECT_OK(session_->MakeCallable(options, &handle));
    return handle;
  }

  const std::unique_ptr<Session> session_;
  std::vector<Tensor> outputs_;
};

TEST_F(CallableTest, TakesAndReturnsTensorsInTheOrderOfItsOptions) {
  CallableOptions options = MixOptions();
  options.add_target("tick");
  EXPECT_EQ(options.feed_size(), 2);
  EXPECT_EQ(options.fetch(0), "mix:1");
  EXPECT_EQ(options.target_size(), 1);
  const Session::CallableHandle handle = Make(options);
  ToyCounter(0) = 0;
  for (int64_t x = 0; x < 3; ++x) {
    GRADFLOW_ASSERT_OK(session_->RunCallable(handle, {Int(7), Int(x)}, &outputs_, nullptr));
    ASSERT_THAT(outputs_, SizeIs(2));
    EXPECT_EQ(outputs_[0].scalar<int64_t>()(), x ^ 7);
    EXPECT_EQ(outputs_[1].scalar<int64_t>()(), 3 * x - 7);
    EXPECT_EQ(ToyCounter(0), x + 1);
  }
  GRADFLOW_EXPECT_OK(session_->RunCallable(handle, {Int(7), Int(1)}, nullptr, nullptr));
}

TEST_F(CallableTest, NamesErrors) {
  Session::CallableHandle handle = -1;
  CallableOptions unknown;
  unknown.add_fetch("z");
  EXPECT_THAT(session_->MakeCallable(unknown, &handle),
              StatusIs(StatusCode::kNotFound, HasSubstr("'z'")));
  CallableOptions late = MixOptions();
  late.mutable_run_options()->set_timeout_in_ms(-1);
  EXPECT_THAT(session_->MakeCallable(late, &handle),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("timeout_in_ms")));
  EXPECT_EQ(handle, -1);
  handle = Make(MixOptions());
  EXPECT_THAT(session_->RunCallable(handle, {Int(1)}, &outputs_, nullptr),
              StatusIs(StatusCode::kInvalidArgument, "expected 2 fed tensors, found 1"));
  EXPECT_THAT(
      session_->RunCallable(handle, {Int(1), Floats({1})}, &outputs_, nullptr),
      StatusIs(StatusCode::kInvalidArgument, "feed 'x:0': expected type int64, found float"));
  EXPECT_THAT(session_->RunCallable(handle + 1, {}, &outputs_, nullptr),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("no callable with handle")));
  GRADFLOW_EXPECT_OK(session_->ReleaseCallable(handle));
  EXPECT_THAT(session_->RunCallable(handle, {Int(1), Int(1)}, &outputs_, nullptr),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("may have been released")));
  EXPECT_THAT(session_->ReleaseCallable(handle), StatusIs(StatusCode::kInvalidArgument));
}

TEST_F(CallableTest, FailsWithoutAGraphOrAnOpenSession) {
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> empty,
                                Session::Make(SessionOptions(), ToyRegistry()));
  Session::CallableHandle handle = -1;
  EXPECT_THAT(empty->MakeCallable(MixOptions(), &handle),
              StatusIs(StatusCode::kFailedPrecondition));
  handle = Make(MixOptions());
  GRADFLOW_EXPECT_OK(session_->Close());
  EXPECT_THAT(session_->RunCallable(handle, {Int(1), Int(1)}, &outputs_, nullptr),
              StatusIs(StatusCode::kCancelled));
  EXPECT_THAT(session_->MakeCallable(MixOptions(), &handle), StatusIs(StatusCode::kCancelled));
}

TEST_F(CallableTest, KeepsItsGraphWhenTheSessionIsExtended) {
  const Session::CallableHandle handle = Make(MixOptions());
  GraphDef more;
  *more.add_node() = ToyNode("neg", "Neg", {"mix"}, {{"T", DT_INT64}});
  GRADFLOW_ASSERT_OK(session_->Extend(more));
  GRADFLOW_EXPECT_OK(session_->RunCallable(handle, {Int(1), Int(1)}, &outputs_, nullptr));
  CallableOptions options = MixOptions();
  options.add_fetch("neg");
  GRADFLOW_ASSERT_OK(session_->RunCallable(Make(options), {Int(1), Int(5)}, &outputs_, nullptr));
  EXPECT_EQ(outputs_[2].scalar<int64_t>()(), -14);
}

TEST_F(CallableTest, HonoursItsRunOptions) {
  CallableOptions options = MixOptions();
  const CancellationToken token;
  options.mutable_run_options()->set_trace_level(RunOptions::FULL_TRACE);
  const Session::CallableHandle handle = Make(options);
  RunMetadata metadata;
  GRADFLOW_EXPECT_OK(session_->RunCallable(handle, {Int(1), Int(1)}, &outputs_, &metadata, token));
  EXPECT_TRUE(metadata.has_step_stats());
  token.Cancel();
  EXPECT_THAT(session_->RunCallable(handle, {Int(1), Int(1)}, &outputs_, nullptr, token),
              StatusIs(StatusCode::kCancelled));
}

TEST_F(CallableTest, RunsWhileOthersAreMadeAndReleased) {
  const Session::CallableHandle shared = Make(MixOptions());
  std::atomic<int> correct = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int64_t i = 0; i < 100; ++i) {
        Session::CallableHandle own = -1;
        if (i % 10 == 0) own = Make(MixOptions());
        std::vector<Tensor> outputs;
        const absl::Status status =
            session_->RunCallable(own < 0 ? shared : own, {Int(t), Int(i)}, &outputs, nullptr);
        correct += status.ok() && outputs[1].scalar<int64_t>()() == 3 * i - t;
        if (own >= 0) {
          GRADFLOW_EXPECT_OK(session_->ReleaseCallable(own));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(correct, 800);
  EXPECT_EQ(session_->MemoryStats().bytes_in_use, 0);
}

TEST(ClientSessionCallable, RunsTheGraphOfAScope) {
  Scope root = Scope::NewRootScope(ToyRegistry());
  GRADFLOW_ASSERT_OK(
      root.graph()->AddNode(ToyNode("x", "Placeholder", {}, {{"dtype", DT_INT64}})).status());
  GRADFLOW_ASSERT_OK(root.graph()->AddNode(ToyNode("y", "Neg", {"x"}, {{"T", DT_INT64}})).status());
  const ClientSession session(root);
  CallableOptions options;
  options.add_feed("x");
  options.add_fetch("y:0");
  ClientSession::CallableHandle handle = -1;
  GRADFLOW_ASSERT_OK(session.MakeCallable(options, &handle));
  std::vector<Tensor> outputs;
  GRADFLOW_ASSERT_OK(session.RunCallable(handle, {Int(4)}, &outputs, nullptr));
  EXPECT_EQ(outputs[0].scalar<int64_t>()(), -4);
  GRADFLOW_EXPECT_OK(session.ReleaseCallable(handle));
  EXPECT_THAT(session.RunCallable(handle, {Int(4)}, &outputs, nullptr),
              StatusIs(StatusCode::kInvalidArgument));
  EXPECT_THAT(ClientSession(root, "elsewhere").MakeCallable(options, &handle),
              StatusIs(StatusCode::kNotFound));
}

}  // namespace
}  // namespace gradflow
