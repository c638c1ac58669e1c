// Tests of the step statistics of traced runs.
#include <tbb/global_control.h>

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gradflow/proto/step_stats.pb.h"
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
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::Lt;

int64_t NowMicros() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// Graph: x -> a -> b, c; i -> fail. The parameter is the number of threads.
class TraceRecorderTest : public ::testing::TestWithParam<int> {
 protected:
  TraceRecorderTest() : control_(tbb::global_control::max_allowed_parallelism, 8) {
    SessionOptions options;
    options.config.set_inter_op_parallelism_threads(GetParam());
    options.config.set_intra_op_parallelism_threads(GetParam());
    session_ = *Session::Make(options, ToyRegistry());
    GraphDef graph;
    *graph.add_node() = ToyNode("x", "Placeholder", {}, {{"dtype", DT_FLOAT}});
    *graph.add_node() = ToyNode("a", "Neg", {"x"}, {{"T", DT_FLOAT}});
    *graph.add_node() = ToyNode("b", "Reuse", {"a"});
    *graph.add_node() = ToyNode("c", "Neg", {"x", "^b"}, {{"T", DT_FLOAT}});
    *graph.add_node() = ToyNode("i", "Placeholder", {}, {{"dtype", DT_INT64}});
    *graph.add_node() = ToyNode("fail", "Fail", {"i", "^a"});
    GRADFLOW_EXPECT_OK(session_->Create(graph));
    traced_.set_trace_level(RunOptions::FULL_TRACE);
  }

  const tbb::global_control control_;
  std::unique_ptr<Session> session_;
  RunOptions traced_;
  RunMetadata metadata_;
  std::vector<Tensor> outputs_;
};

INSTANTIATE_TEST_SUITE_P(Threads, TraceRecorderTest, ::testing::Values(1, 2, 8));

TEST_P(TraceRecorderTest, RecordsEachNode) {
  const int64_t before = NowMicros();
  GRADFLOW_ASSERT_OK(
      session_->Run(traced_, {{"x", Floats({1, 2, 3})}}, {"b", "c"}, {}, &outputs_, &metadata_));
  const int64_t after = NowMicros();
  ASSERT_TRUE(metadata_.has_step_stats());
  // The statistics survive the wire format.
  StepStats stats;
  ASSERT_TRUE(stats.ParseFromString(metadata_.step_stats().SerializeAsString()));
  ASSERT_EQ(stats.dev_stats_size(), 1);
  const DeviceStepStats& device = stats.dev_stats(0);
  EXPECT_EQ(device.device(), "/job:localhost/replica:0/task:0/device:CPU:0");
  std::map<std::string, NodeExecStats> nodes;
  std::vector<std::string> order;
  for (const NodeExecStats& node : device.node_stats()) {
    order.push_back(node.node_name());
    nodes[node.node_name()] = node;
    EXPECT_GE(node.all_start_micros(), before - 1);
    EXPECT_LE(node.all_start_micros() + node.all_end_rel_micros(), after + 1);
    EXPECT_EQ(node.all_start_micros(), node.all_start_nanos() / 1000);
    EXPECT_LE(node.scheduled_nanos(), node.all_start_nanos());
    EXPECT_LE(0, node.op_start_rel_nanos());
    EXPECT_LE(node.op_start_rel_nanos(), node.op_end_rel_nanos());
    EXPECT_LE(node.op_end_rel_nanos(), node.all_end_rel_nanos());
    // The microseconds agree with the nanoseconds.
    const int64_t start = node.all_start_micros();
    const auto micros = [&](int64_t rel_nanos) {
      return (node.all_start_nanos() + rel_nanos) / 1000;
    };
    EXPECT_EQ(start + node.op_start_rel_micros(), micros(node.op_start_rel_nanos()));
    EXPECT_EQ(start + node.op_end_rel_micros(), micros(node.op_end_rel_nanos()));
    EXPECT_EQ(start + node.all_end_rel_micros(), micros(node.all_end_rel_nanos()));
    EXPECT_EQ(device.thread_names().count(node.thread_id()), 1u);
  }
  EXPECT_THAT(order, ElementsAre("a", "b", "c"));
  EXPECT_EQ(nodes["b"].timeline_label(), "b = Reuse(a)");
  EXPECT_EQ(nodes["c"].timeline_label(), "c = Neg(x, ^b)");
  EXPECT_GE(nodes["b"].scheduled_nanos(),
            nodes["a"].all_start_nanos() + nodes["a"].all_end_rel_nanos());

  ASSERT_EQ(nodes["b"].output_size(), 2);
  EXPECT_EQ(nodes["b"].output(1).slot(), 1);
  EXPECT_EQ(nodes["b"].output(1).tensor_description().dtype(), DT_BOOL);
  const TensorDescription& b = nodes["b"].output(0).tensor_description();
  EXPECT_EQ(b.dtype(), DT_FLOAT);
  ASSERT_EQ(b.shape().dim_size(), 1);
  EXPECT_EQ(b.shape().dim(0).size(), 3);
  EXPECT_EQ(b.allocation_description().requested_bytes(), 12);
  // Neg allocates a tensor, and Reuse computes in place.
  ASSERT_EQ(nodes["a"].memory_size(), 1);
  EXPECT_EQ(nodes["a"].memory(0).total_bytes(), 12);
  EXPECT_EQ(nodes["b"].memory(0).total_bytes(), 0);
}

TEST_P(TraceRecorderTest, RecordsAFailedRunUpToTheFailure) {
  EXPECT_THAT(session_->Run(traced_, {{"x", Floats({1})}, {"i", Int(1)}}, {"fail"}, {}, &outputs_,
                            &metadata_),
              StatusIs(StatusCode::kInvalidArgument));
  ASSERT_EQ(metadata_.step_stats().dev_stats_size(), 1);
  ASSERT_EQ(metadata_.step_stats().dev_stats(0).node_stats_size(), 2);
  const NodeExecStats& a = metadata_.step_stats().dev_stats(0).node_stats(0);
  const NodeExecStats& fail = metadata_.step_stats().dev_stats(0).node_stats(1);
  EXPECT_EQ(a.node_name(), "a");
  EXPECT_EQ(a.output_size(), 1);
  EXPECT_EQ(fail.node_name(), "fail");
  EXPECT_EQ(fail.output_size(), 0);
  EXPECT_GE(fail.scheduled_nanos(), a.all_start_nanos() + a.all_end_rel_nanos());
  EXPECT_GE(fail.all_start_nanos(), fail.scheduled_nanos());
  EXPECT_LE(0, fail.op_start_rel_nanos());
  EXPECT_LE(fail.op_start_rel_nanos(), fail.op_end_rel_nanos());
  EXPECT_LE(fail.op_end_rel_nanos(), fail.all_end_rel_nanos());
}

TEST_P(TraceRecorderTest, RecordsTheNodeThatWasStopped) {
  GraphDef graph;
  *graph.add_node() = ToyNode("loop", "LoopForever", {"i"}, {{"counter", 0}});
  *graph.add_node() = ToyNode("after", "Neg", {"loop"}, {{"T", DT_INT64}});
  GRADFLOW_ASSERT_OK(session_->Extend(graph));
  ToyCounter(0) = 0;
  const CancellationToken token;
  std::thread canceller([&] {
    while (ToyCounter(0) == 0) std::this_thread::yield();
    token.Cancel();
  });
  EXPECT_THAT(session_->Run(traced_, {{"i", Int(1)}}, {"after"}, {}, &outputs_, &metadata_, token),
              StatusIs(StatusCode::kCancelled));
  canceller.join();
  ASSERT_EQ(metadata_.step_stats().dev_stats(0).node_stats_size(), 1);
  EXPECT_EQ(metadata_.step_stats().dev_stats(0).node_stats(0).node_name(), "loop");
  EXPECT_EQ(metadata_.step_stats().dev_stats(0).node_stats(0).output_size(), 0);
}

// The recorder sets only field 1 of TensorFlow's RunMetadata.
TEST_P(TraceRecorderTest, WritesTensorFlowsMessage) {
  EXPECT_EQ(metadata_.SerializeAsString(), "");
  GRADFLOW_ASSERT_OK(
      session_->Run(traced_, {{"x", Floats({1, 2, 3})}}, {"b"}, {}, &outputs_, &metadata_));
  const std::string stats = metadata_.step_stats().SerializeAsString();
  ASSERT_THAT(stats.size(), AllOf(Ge(128), Lt(128 * 128)));
  const char size[] = {static_cast<char>(0x80 | (stats.size() & 0x7f)),
                       static_cast<char>(stats.size() >> 7)};
  EXPECT_EQ(metadata_.SerializeAsString(), "\x0a" + std::string(size, 2) + stats);
}

TEST_P(TraceRecorderTest, RecordsNothingUnlessAsked) {
  const std::vector<std::pair<std::string, Tensor>> feeds = {{"x", Floats({1})}};
  GRADFLOW_EXPECT_OK(session_->Run(traced_, feeds, {"a"}, {}, &outputs_, nullptr));
  GRADFLOW_EXPECT_OK(session_->Run(traced_, feeds, {"a"}, {}, &outputs_, &metadata_));
  const RunMetadata copy = metadata_;
  GRADFLOW_EXPECT_OK(session_->Run(RunOptions(), feeds, {"a"}, {}, &outputs_, &metadata_));
  EXPECT_FALSE(metadata_.has_step_stats());
  EXPECT_EQ(metadata_.step_stats().dev_stats_size(), 0);
  EXPECT_EQ(copy.step_stats().dev_stats_size(), 1);
  traced_.set_trace_level(static_cast<RunOptions::TraceLevel>(4));
  EXPECT_THAT(session_->Run(traced_, feeds, {"a"}, {}, &outputs_, &metadata_),
              StatusIs(StatusCode::kInvalidArgument));
}

TEST_P(TraceRecorderTest, RecordsEachOfManyRunsApart) {
  for (int i = 0; i < 200; ++i) {
    const bool all = i % 2 == 0;
    GRADFLOW_ASSERT_OK(session_->Run(traced_, {{"x", Floats({1, 2})}}, {all ? "c" : "a"}, {},
                                     &outputs_, &metadata_));
    ASSERT_EQ(metadata_.step_stats().dev_stats(0).node_stats_size(), all ? 3 : 1);
  }
}

}  // namespace
}  // namespace gradflow
