#include "tensorflow/cc/training/queue_runner.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/cc/ops/const_op.h"
#include "tensorflow/cc/ops/data_flow_ops.h"
#include "tensorflow/cc/ops/state_ops.h"
#include "tensorflow/cc/training/coordinator.h"
#include "tensorflow/core/lib/core/status_test_util.h"
#include "tensorflow/core/protobuf/queue_runner.pb.h"
#include "tensorflow/core/public/session.h"

namespace tensorflow {
namespace {

// A queue with room for three numbers, a counter that ends at 5, and the nodes that use them.
std::unique_ptr<Session> NewQueueSession() {
  Scope root = Scope::NewRootScope();
  auto variable = ops::Variable(root.WithOpName("variable"), TensorShape({}), DT_INT32);
  ops::Assign(root.WithOpName("assign"), variable, ops::Const(root, 0));
  auto count = ops::CountUpTo(root.WithOpName("count"), variable, 5);
  auto queue = ops::FIFOQueue(root.WithOpName("queue"), {DT_INT32}, ops::FIFOQueue::Capacity(3));
  ops::QueueEnqueue(root.WithOpName("enqueue"), queue, {count});
  ops::QueueEnqueue(root.WithOpName("enqueue_one"), queue, {ops::Const(root, 1)});
  ops::QueueDequeue(root.WithOpName("dequeue"), queue, {DT_INT32});
  ops::QueueClose(root.WithOpName("close"), queue);
  ops::QueueClose(root.WithOpName("cancel"), queue, ops::QueueClose::CancelPendingEnqueues(true));
  GraphDef graph;
  TF_CHECK_OK(root.ToGraphDef(&graph));
  std::unique_ptr<Session> session(NewSession(SessionOptions()));
  TF_CHECK_OK(session->Create(graph));
  TF_CHECK_OK(session->Run({}, {}, {"assign"}, nullptr));
  return session;
}

QueueRunnerDef RunnerDef(const std::vector<std::string>& enqueue_ops,
                         const std::vector<error::Code>& closed_codes = {}) {
  QueueRunnerDef def;
  def.set_queue_name("queue");
  for (const std::string& op : enqueue_ops) def.add_enqueue_op_name(op);
  def.set_close_op_name("close");
  def.set_cancel_op_name("cancel");
  for (const error::Code& code : closed_codes) {
    def.add_queue_closed_exception_types(static_cast<int>(code));
  }
  return def;
}

TEST(QueueRunner, FillsTheQueueAndClosesIt) {
  const std::unique_ptr<Session> session = NewQueueSession();
  std::unique_ptr<QueueRunner> runner;
  TF_ASSERT_OK(QueueRunner::New(RunnerDef({"enqueue"}), &runner));
  TF_ASSERT_OK(runner->Start(session.get(), /*wait_for_ms=*/60'000));
  EXPECT_TRUE(runner->IsRunning());
  for (int i = 0; i < 5; ++i) {
    std::vector<Tensor> outputs;
    TF_ASSERT_OK(session->Run({}, {"dequeue"}, {}, &outputs));
    EXPECT_EQ(outputs[0].scalar<int32>()(), i);
  }
  EXPECT_EQ(session->Run({}, {"dequeue"}, {}, nullptr).code(), error::OUT_OF_RANGE);
  TF_EXPECT_OK(runner->Join());
  CostGraphDef costs;
  EXPECT_EQ(runner->ExportCostGraph(&costs).code(), error::FAILED_PRECONDITION);
}

TEST(QueueRunner, ReportsTheFirstError) {
  const std::unique_ptr<Session> session = NewQueueSession();
  Coordinator coordinator;
  std::unique_ptr<QueueRunner> runner;
  EXPECT_EQ(QueueRunner::New(RunnerDef({}), &runner).code(), error::INVALID_ARGUMENT);
  TF_ASSERT_OK(QueueRunner::New(RunnerDef({"none"}), &coordinator, &runner));
  int errors = 0;
  runner->AddErrorCallback([&errors](const Status&) { ++errors; });
  TF_ASSERT_OK(runner->Start(session.get()));
  coordinator.WaitForStop();
  EXPECT_EQ(runner->Join().code(), error::NOT_FOUND);
  EXPECT_EQ(runner->GetStatus().code(), error::NOT_FOUND);
  EXPECT_EQ(coordinator.GetStatus().code(), error::NOT_FOUND);
  EXPECT_EQ(errors, 1);
  EXPECT_FALSE(runner->IsRunning());
}

TEST(QueueRunner, StopsWithItsCoordinator) {
  const std::unique_ptr<Session> session = NewQueueSession();
  Coordinator coordinator;
  std::unique_ptr<QueueRunner> runner;
  TF_ASSERT_OK(QueueRunner::New(
      RunnerDef({"enqueue_one", "enqueue_one"}, {error::OUT_OF_RANGE, error::CANCELLED}),
      &coordinator, &runner));
  TF_ASSERT_OK(runner->Start(session.get()));
  TF_ASSERT_OK(coordinator.RegisterRunner(std::move(runner)));
  std::vector<Tensor> outputs;
  TF_ASSERT_OK(session->Run({}, {"dequeue"}, {}, &outputs));
  EXPECT_EQ(outputs[0].scalar<int32>()(), 1);
  // Both threads wait if the queue is full.
  TF_ASSERT_OK(coordinator.RequestStop());
  TF_EXPECT_OK(coordinator.Join());
}

}  // namespace
}  // namespace tensorflow
