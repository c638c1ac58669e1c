#include "gradflow/runtime/session/client_session.h"

#include <string>
#include <thread>
#include <vector>

#include "gradflow/graph/node_builder.h"
#include "gradflow/runtime/session/options.h"
#include "gradflow/testing/status_matchers.h"
#include "tests/runtime/toy_ops.h"

namespace gradflow {
namespace {

using ::absl::StatusCode;
using ::gradflow::testing::Int;
using ::gradflow::testing::StatusIs;
using ::gradflow::testing::ToyCounter;
using ::gradflow::testing::ToyRegistry;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Output Placeholder(const Scope& scope, DataType dtype = DT_INT64) {
  return Output(OpBuilder(scope, "Placeholder").Attr("dtype", dtype).Finish(), 0);
}
Output Neg(const Scope& scope, const Input& x) {
  return Output(OpBuilder(scope, "Neg").Input(x).Finish(), 0);
}
Operation Mix(const Scope& scope, const Input& a, const Input& b) {
  return OpBuilder(scope, "Mix").Input(a).Input(b).Finish();
}
Output Tick(const Scope& scope, const Input& x, int counter) {
  return Output(OpBuilder(scope, "Tick").Input(x).Attr("counter", counter).Finish(), 0);
}

class ClientSessionTest : public ::testing::Test {
 protected:
  Scope root_ = Scope::NewRootScope(ToyRegistry());
  std::vector<Tensor> outputs_;
};

TEST_F(ClientSessionTest, FetchesWithoutFeeds) {
  const Output y = Neg(root_, int64_t{3});
  const ClientSession session(root_);
  GRADFLOW_ASSERT_OK(session.Run({y}, &outputs_));
  ASSERT_THAT(outputs_, SizeIs(1));
  EXPECT_EQ(outputs_[0].scalar<int64_t>()(), -3);
}

TEST_F(ClientSessionTest, FeedsValuesListsAndTensors) {
  const Output x = Placeholder(root_);
  const Output f = Placeholder(root_, DT_FLOAT);
  const Output y = Neg(root_, x);
  const Output g = Neg(root_, f);
  const ClientSession session(root_);
  GRADFLOW_ASSERT_OK(
      session.Run({{x, int64_t{4}}, {f, {{1.f, 2.f}, {3.f, 4.f}}}}, {y, g}, &outputs_));
  EXPECT_EQ(outputs_[0].scalar<int64_t>()(), -4);
  EXPECT_EQ(outputs_[1].shape(), TensorShape({2, 2}));
  EXPECT_EQ(outputs_[1].matrix<float>()(1, 0), -3);
  GRADFLOW_ASSERT_OK(session.Run({{x, Int(7)}}, {y}, &outputs_));
  EXPECT_EQ(outputs_[0].scalar<int64_t>()(), -7);
}

TEST_F(ClientSessionTest, FeedsAndFetchesAnyOutput) {
  const Output x = Placeholder(root_);
  const Operation mix = Mix(root_, x, x);
  const Output first = Neg(root_, mix.output(0));
  const Output second = Neg(root_, mix.output(1));
  const ClientSession session(root_);
  GRADFLOW_ASSERT_OK(session.Run({{mix.output(1), int64_t{10}}, {x, int64_t{2}}},
                                 {second, mix.output(1), first}, &outputs_));
  EXPECT_EQ(outputs_[0].scalar<int64_t>()(), -10);
  EXPECT_EQ(outputs_[1].scalar<int64_t>()(), 10);
  EXPECT_EQ(outputs_[2].scalar<int64_t>()(), -4);
}

TEST_F(ClientSessionTest, RunsOperationsWithoutFetchingThem) {
  const Output x = Placeholder(root_);
  const Output tick = Tick(root_, x, 0);
  const Operation group = OpBuilder(root_.WithControlDependencies({tick.op()}), "NoOp").Finish();
  const ClientSession session(root_);
  ToyCounter(0) = 0;
  GRADFLOW_ASSERT_OK(session.Run({{x, int64_t{1}}}, {}, {group}, nullptr));
  EXPECT_EQ(ToyCounter(0), 1);
  GRADFLOW_ASSERT_OK(
      session.Run(RunOptions(), {{x, int64_t{1}}}, {x}, {tick.op(), group}, &outputs_, nullptr));
  EXPECT_EQ(ToyCounter(0), 2);
  EXPECT_THAT(outputs_, SizeIs(1));
  RunMetadata metadata;
  GRADFLOW_ASSERT_OK(session.Run(RunOptions(), {}, {}, {}, &outputs_, &metadata));
  EXPECT_THAT(outputs_, IsEmpty());
}

TEST_F(ClientSessionTest, SeesNodesThatAreAddedLater) {
  const Output x = Placeholder(root_);
  const ClientSession session(root_);
  GRADFLOW_ASSERT_OK(session.Run({{x, int64_t{1}}}, {x}, &outputs_));
  Output last = x;
  for (int i = 0; i < 100; ++i) {
    last = Neg(root_, last);
    GRADFLOW_ASSERT_OK(session.Run({{x, int64_t{1}}}, {last}, &outputs_));
    EXPECT_EQ(outputs_[0].scalar<int64_t>()(), i % 2 == 0 ? -1 : 1);
  }
}

TEST_F(ClientSessionTest, ReturnsTheErrorOfItsScope) {
  const Output x = Placeholder(root_);
  const ClientSession session(root_);
  GRADFLOW_EXPECT_OK(session.Run({{x, int64_t{1}}}, {x}, &outputs_));
  const Output bad = Neg(root_.WithOpName("bad"), Input::Initializer({1.f, 2.f}, {3}));
  EXPECT_FALSE(root_.ok());
  EXPECT_EQ(session.Run({{x, int64_t{1}}}, {x}, &outputs_), root_.status());
  EXPECT_EQ(ClientSession(root_).Run({bad}, &outputs_), root_.status());
}

TEST_F(ClientSessionTest, NamesTheErrorOfARequest) {
  const Output x = Placeholder(root_.WithOpName("x"));
  const Output y = Neg(root_.WithOpName("y"), x);
  const Scope other = Scope::NewRootScope(ToyRegistry());
  const Output z = Placeholder(other.WithOpName("x"));
  const ClientSession session(root_);
  struct Case {
    absl::Status status;
    StatusCode code;
    std::string text;
  };
  const Output empty;
  const Case cases[] = {
      {session.Run({{x, 1.f}}, {y}, &outputs_), StatusCode::kInvalidArgument,
       "feed 'x:0': expected type int64, found float"},
      {session.Run({{x, Input::Initializer({1.f, 2.f}, {3})}}, {y}, &outputs_),
       StatusCode::kInvalidArgument, "feed 'x:0': "},
      {session.Run({y}, &outputs_), StatusCode::kInvalidArgument, "node 'x' (Placeholder): "},
      {session.Run({{z, int64_t{1}}}, {y}, &outputs_), StatusCode::kInvalidArgument,
       "feed 'x' belongs to another graph"},
      {session.Run({z}, &outputs_), StatusCode::kInvalidArgument,
       "fetch 'x' belongs to another graph"},
      {session.Run({}, {}, {z.op()}, &outputs_), StatusCode::kInvalidArgument,
       "target 'x' belongs to another graph"},
      {session.Run({empty}, &outputs_), StatusCode::kInvalidArgument, "a fetch is empty"},
      {session.Run({{empty, 1.f}}, {y}, &outputs_), StatusCode::kInvalidArgument,
       "a feed is empty"},
      {session.Run({}, {}, {Operation()}, &outputs_), StatusCode::kInvalidArgument,
       "a target is empty"},
      {session.Run({Output(y.op(), 1)}, &outputs_), StatusCode::kInvalidArgument,
       "has only output 0"},
      {session.Run({Output(y.op(), -1)}, &outputs_), StatusCode::kInvalidArgument, "output -1"},
      {ClientSession(root_, "elsewhere").Run({x}, &outputs_), StatusCode::kNotFound, "'elsewhere'"},
  };
  for (const Case& c : cases) EXPECT_THAT(c.status, StatusIs(c.code, HasSubstr(c.text)));
  EXPECT_THAT(outputs_, IsEmpty());
}

TEST_F(ClientSessionTest, TakesOptions) {
  const Output y = Neg(root_, int64_t{3});
  SessionOptions options;
  options.config.set_intra_op_parallelism_threads(1);
  GRADFLOW_EXPECT_OK(ClientSession(root_, options).Run({y}, &outputs_));
  GRADFLOW_EXPECT_OK(ClientSession(root_, "").Run({y}, &outputs_));
  options.config.set_intra_op_parallelism_threads(-3);
  EXPECT_THAT(ClientSession(root_, options).Run({y}, &outputs_),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("intra_op_parallelism_threads")));
  RunOptions run_options;
  run_options.set_timeout_in_ms(-1);
  EXPECT_THAT(ClientSession(root_).Run(run_options, {}, {y}, {}, &outputs_, nullptr),
              StatusIs(StatusCode::kInvalidArgument));
}

TEST_F(ClientSessionTest, DoesNotOverwriteFeeds) {
  const Output x = Placeholder(root_);
  const Output y = Neg(root_, x);
  const ClientSession session(root_);
  const Tensor fed = Int(5);
  const ClientSession::FeedType feeds = {{x, fed}};
  for (int i = 0; i < 3; ++i) {
    GRADFLOW_ASSERT_OK(session.Run(feeds, {y}, &outputs_));
    EXPECT_EQ(outputs_[0].scalar<int64_t>()(), -5);
    EXPECT_EQ(fed.scalar<int64_t>()(), 5);
  }
}

TEST_F(ClientSessionTest, KeepsTheGraphAlive) {
  auto scope = std::make_unique<Scope>(Scope::NewRootScope(ToyRegistry()));
  const Output x = Placeholder(*scope);
  const Output y = Neg(*scope, x);
  const ClientSession session(*scope);
  scope.reset();
  GRADFLOW_ASSERT_OK(session.Run({{x, int64_t{2}}}, {y}, &outputs_));
  EXPECT_EQ(outputs_[0].scalar<int64_t>()(), -2);
}

TEST_F(ClientSessionTest, RunsFromManyThreads) {
  const Output x = Placeholder(root_);
  const Operation mix = Mix(root_, Neg(root_, x), x);
  const ClientSession session(root_);
  std::atomic<int> correct{0};
  std::vector<std::thread> callers;
  for (int t = 0; t < 8; ++t) {
    callers.emplace_back([&, t] {
      for (int64_t value = t; value < t + 100; ++value) {
        std::vector<Tensor> outputs;
        const absl::Status status = session.Run({{x, value}}, {mix.output(0)}, &outputs);
        correct += status.ok() && outputs[0].scalar<int64_t>()() == -4 * value;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(correct, 800);
}

}  // namespace
}  // namespace gradflow
