#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/attributes.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/resource_handle.h"
#include "gradflow/core/resource_manager.h"
#include "gradflow/core/status.h"
#include "gradflow/core/variable.h"
#include "gradflow/ops/data_flow/tensor_queue.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/proto/config.pb.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/runtime/session/cancellation.h"
#include "gradflow/runtime/session/session.h"
#include "gradflow/testing/kernel_test.h"
#include "tests/ops/data_flow/run_graph.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr auto kOutOfRange = absl::StatusCode::kOutOfRange;
constexpr auto kCancelled = absl::StatusCode::kCancelled;

// A queue of one component in a session, and an op of each kind that uses it.
class Queue {
 public:
  // `queue` is the node that makes the queue, without a name. `label` selects the kernels of
  // dequeues.
  explicit Queue(NodeDef queue, DataType dtype = DT_INT64, int threads = 2,
                 const std::string& version = "V2", const std::string& label = "") {
    queue.set_name("queue");
    queue.set_op(absl::StrCat(queue.op(), version));
    GraphDef graph;
    *graph.add_node() = queue;
    for (const auto& [name, type] :
         std::map<std::string, DataType>{{"x", dtype}, {"n", DT_INT32}}) {
      NodeDef* const node = graph.add_node();
      node->set_name(name);
      node->set_op("Placeholder");
      AddNodeAttr("dtype", type, node);
    }
    const auto add = [&](const char* name, const char* op, const char* input, const char* types) {
      NodeDef* const node = graph.add_node();
      node->set_name(name);
      node->set_op(absl::StrCat(op, version));
      node->add_input("queue");
      if (input != nullptr) node->add_input(input);
      if (types != nullptr) AddNodeAttr(types, DataTypeVector{dtype}, node);
      if (!label.empty() && absl::StrContains(op, "Dequeue")) AddNodeAttr("_kernel", label, node);
      return node;
    };
    add("enqueue", "QueueEnqueue", "x", "Tcomponents");
    add("enqueue_many", "QueueEnqueueMany", "x", "Tcomponents");
    add("dequeue", "QueueDequeue", nullptr, "component_types");
    add("dequeue_many", "QueueDequeueMany", "n", "component_types");
    add("dequeue_up_to", "QueueDequeueUpTo", "n", "component_types");
    add("size", "QueueSize", nullptr, nullptr);
    add("is_closed", "QueueIsClosed", nullptr, nullptr);
    add("close", "QueueClose", nullptr, nullptr);
    AddNodeAttr("cancel_pending_enqueues", true, add("cancel", "QueueClose", nullptr, nullptr));
    SessionOptions options;
    options.config.set_inter_op_parallelism_threads(threads);
    options.config.set_intra_op_parallelism_threads(1);
    session_ = *Session::Make(options);
    EXPECT_THAT(session_->Create(graph), IsOk());
  }

  Session& session() { return *session_; }

  absl::Status Enqueue(const Tensor& x, const char* op = "enqueue",
                       const CancellationToken& token = {}) {
    return session_->Run({}, {{"x", x}}, {}, {op}, nullptr, nullptr, token);
  }
  absl::StatusOr<Tensor> Fetch(const std::string& name, int32_t n = 0,
                               const CancellationToken& token = {}) {
    std::vector<Tensor> outputs;
    GRADFLOW_RETURN_IF_ERROR(
        session_->Run({}, {{"n", Tensor(n)}}, {name}, {}, &outputs, nullptr, token));
    return outputs[0];
  }
  absl::Status Do(const char* op) { return session_->Run({}, {}, {op}, nullptr); }
  int32_t size() { return Fetch("size")->scalar<int32_t>()(); }

 private:
  std::unique_ptr<Session> session_;
};

NodeDef QueueNode(const std::string& op, const std::vector<PartialTensorShape>& shapes,
                  int64_t capacity = -1, DataType dtype = DT_INT64) {
  NodeDef node;
  node.set_op(op);
  const bool has_priority = op == "PriorityQueue";
  AddNodeAttr("component_types", has_priority ? DataTypeVector{} : DataTypeVector{dtype}, &node);
  AddNodeAttr("shapes", shapes, &node);
  AddNodeAttr("capacity", capacity, &node);
  return node;
}

Tensor Ints(const std::vector<int64_t>& values) { return AsTensor<int64_t>(values); }
Tensor Int(int64_t value) { return AsScalar<int64_t>(value); }

TEST(Queue, FifoKeepsTheOrder) {
  for (const char* const version : {"", "V2"}) {
    Queue queue(QueueNode("FIFOQueue", {TensorShape()}), DT_INT64, 2, version);
    ASSERT_THAT(queue.Enqueue(Int(1)), IsOk());
    ASSERT_THAT(queue.Enqueue(Ints({2, 3, 4, 5}), "enqueue_many"), IsOk());
    EXPECT_EQ(queue.size(), 5);
    EXPECT_THAT(queue.Fetch("dequeue"), IsOkAndHolds(TensorEq(Int(1))));
    EXPECT_THAT(queue.Fetch("dequeue_many", 2), IsOkAndHolds(TensorEq(Ints({2, 3}))));
    EXPECT_THAT(queue.Fetch("dequeue_many", 0), IsOkAndHolds(TensorEq(Ints({}))));
    EXPECT_THAT(queue.Fetch("is_closed"), IsOkAndHolds(TensorEq(Tensor(false))));
    EXPECT_THAT(queue.Do("close"), IsOk());
    EXPECT_THAT(queue.Fetch("is_closed"), IsOkAndHolds(TensorEq(Tensor(true))));
    EXPECT_THAT(queue.Enqueue(Int(6)), StatusIs(kCancelled, HasSubstr("queue 'queue' is closed")));
    EXPECT_THAT(queue.Fetch("dequeue_many", 3),
                StatusIs(kOutOfRange, HasSubstr("queue 'queue' is closed and has insufficient "
                                                "elements (requested 3, current size 2)")));
    EXPECT_THAT(queue.Fetch("dequeue_up_to", 3), IsOkAndHolds(TensorEq(Ints({4, 5}))));
    EXPECT_THAT(queue.Fetch("dequeue_up_to", 3), StatusIs(kOutOfRange, HasSubstr("is closed")));
    EXPECT_THAT(queue.Fetch("dequeue"), StatusIs(kOutOfRange, HasSubstr("is closed")));
    EXPECT_THAT(queue.Do("close"), StatusIs(kCancelled, HasSubstr("is already closed")));
    EXPECT_THAT(queue.Do("cancel"), IsOk());
  }
}

TEST(Queue, PriorityDequeuesTheSmallestFirst) {
  Queue queue(QueueNode("PriorityQueue", {}));
  ASSERT_THAT(queue.Enqueue(Ints({5, 1, 3, 1, -7}), "enqueue_many"), IsOk());
  std::vector<int64_t> order;
  for (int i = 0; i < 5; ++i) order.push_back(queue.Fetch("dequeue")->scalar<int64_t>()());
  EXPECT_THAT(order, ElementsAre(-7, 1, 1, 3, 5));
}

// The order is TensorFlow's for these seeds.
TEST(Queue, RandomShuffleKeepsSomeElementsUntilItIsClosed) {
  NodeDef node = QueueNode("RandomShuffleQueue", {TensorShape()});
  AddNodeAttr("min_after_dequeue", int64_t{2}, &node);
  AddNodeAttr("seed", int64_t{3}, &node);
  AddNodeAttr("seed2", int64_t{4}, &node);
  Queue queue(node);
  ASSERT_THAT(queue.Enqueue(Ints({0, 1, 2, 3, 4, 5, 6, 7}), "enqueue_many"), IsOk());
  EXPECT_THAT(queue.Fetch("dequeue_many", 6), IsOkAndHolds(TensorEq(Ints({1, 3, 5, 4, 6, 7}))));
  ASSERT_THAT(queue.Do("close"), IsOk());
  EXPECT_THAT(queue.Fetch("dequeue_many", 2), IsOkAndHolds(TensorEq(Ints({2, 0}))));
}

TEST(Queue, PaddingMakesElementsEqual) {
  Queue queue(QueueNode("PaddingFIFOQueue", {PartialTensorShape({-1, 2})}));
  ASSERT_THAT(queue.Enqueue(AsTensor<int64_t>({1, 2}, {1, 2})), IsOk());
  ASSERT_THAT(queue.Enqueue(AsTensor<int64_t>({3, 4, 5, 6}, {2, 2})), IsOk());
  ASSERT_THAT(queue.Enqueue(Tensor(DT_INT64, {0, 2})), IsOk());
  EXPECT_THAT(
      queue.Fetch("dequeue_many", 3),
      IsOkAndHolds(TensorEq(AsTensor<int64_t>({1, 2, 0, 0, 3, 4, 5, 6, 0, 0, 0, 0}, {3, 2, 2}))));
  EXPECT_THAT(queue.Fetch("dequeue_many", 0),
              IsOkAndHolds(TensorEq(AsTensor<int64_t>({}, {0, 0, 2}))));
  EXPECT_THAT(queue.Enqueue(AsTensor<int64_t>({1}, {1, 1})),
              StatusIs(kInvalidArgument, HasSubstr("component 0 must have shape [?,2], but has "
                                                   "shape [1,1]")));
  Queue strings(QueueNode("PaddingFIFOQueue", {PartialTensorShape({-1, -1})}, -1, DT_STRING),
                DT_STRING);
  ASSERT_THAT(strings.Enqueue(AsTensor<tstring>({"a", "b"}, {1, 2})), IsOk());
  ASSERT_THAT(strings.Enqueue(AsTensor<tstring>({"c", "d"}, {2, 1})), IsOk());
  EXPECT_THAT(
      strings.Fetch("dequeue_many", 2),
      IsOkAndHolds(TensorEq(AsTensor<tstring>({"a", "b", "", "", "c", "", "d", ""}, {2, 2, 2}))));
}

TEST(Queue, ChecksItsArguments) {
  const auto make = [](const NodeDef& node) {
    Queue queue(node);
    return queue.Fetch("size").status();
  };
  const auto use = [](const char* op, const Tensor& x) {
    Queue queue(QueueNode("FIFOQueue", {TensorShape({2})}));
    return queue.Enqueue(x, op);
  };
  NodeDef shuffle = QueueNode("RandomShuffleQueue", {}, 2);
  AddNodeAttr("min_after_dequeue", int64_t{2}, &shuffle);
  Queue shapeless(QueueNode("FIFOQueue", {}));
  const struct {
    absl::Status status;
    const char* error;
  } cases[] = {
      {make(QueueNode("FIFOQueue", {PartialTensorShape({-1})})),
       "the shapes of the components must be fully defined, but one is [?]"},
      {make(QueueNode("PaddingFIFOQueue", {})), "shapes must have 1 elements"},
      {make(QueueNode("PaddingFIFOQueue", {PartialTensorShape()})), "must have a rank"},
      {make(shuffle), "min_after_dequeue must be at least 0 and less than the capacity, 2"},
      {use("enqueue", Int(1)), "component 0 must have shape [2], but has shape []"},
      {use("enqueue_many", Ints({1, 2})), "the rows of component 0 must have shape [2]"},
      {use("enqueue_many", Int(1)), "component 0 must not be a scalar"},
      {shapeless.Fetch("dequeue_many", 2).status(),
       "queue 'queue' must have shapes for its components"},
      {Queue(QueueNode("FIFOQueue", {TensorShape()})).Fetch("dequeue_up_to", -1).status(),
       "n must not be negative, but is -1"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(c.status, StatusIs(kInvalidArgument, HasSubstr(c.error)));
  }
}

// One thread runs the graph, so the test ends only if nodes that wait hold no thread.
TEST(Queue, WaitingHoldsNoThread) {
  const Scope scope = Scope::NewRootScope();
  const Output queue = ops::FIFOQueueV2(scope, {DT_INT32}, ops::FIFOQueueV2::Capacity(2));
  std::vector<std::string> fetches;
  for (int i = 0; i < 20; ++i) {
    const std::string name = absl::StrCat("dequeue", i);
    ops::QueueDequeueV2(scope.WithOpName(name), queue, {DT_INT32});
    fetches.push_back(name);
  }
  ops::QueueEnqueueManyV2(scope.WithOpName("enqueue"), queue, {ops::Const(scope, {1, 2, 3, 4, 5})});
  for (int i = 0; i < 15; ++i) {
    ops::QueueEnqueueV2(scope.WithOpName(absl::StrCat("enqueue", i)), queue,
                        {ops::Const(scope, i)});
  }
  std::vector<std::string> targets = {"enqueue"};
  for (int i = 0; i < 15; ++i) targets.push_back(absl::StrCat("enqueue", i));
  GraphDef graph;
  ASSERT_THAT(scope.ToGraphDef(&graph), IsOk());
  SessionOptions options;
  options.config.set_inter_op_parallelism_threads(1);
  const std::unique_ptr<Session> session = *Session::Make(options);
  ASSERT_THAT(session->Create(graph), IsOk());
  std::vector<Tensor> outputs;
  ASSERT_THAT(session->Run({}, fetches, targets, &outputs), IsOk());
  int sum = 0;
  for (const Tensor& output : outputs) sum += output.scalar<int32_t>()();
  EXPECT_EQ(sum, 15 + 105);
}

// A batch of more elements than the capacity needs several rounds of producers.
TEST(Queue, DequeueManyMayExceedTheCapacity) {
  Queue queue(QueueNode("FIFOQueue", {TensorShape()}, 2));
  std::thread producer([&] {
    for (int i = 0; i < 7; ++i) EXPECT_THAT(queue.Enqueue(Int(i)), IsOk());
  });
  EXPECT_THAT(queue.Fetch("dequeue_many", 7), IsOkAndHolds(TensorEq(Ints({0, 1, 2, 3, 4, 5, 6}))));
  producer.join();
}

TEST(Queue, CancellationAndClosingEndTheWait) {
  {
    Queue queue(QueueNode("FIFOQueue", {TensorShape()}, 1));
    const CancellationToken token;
    std::thread canceller([&] { token.Cancel(); });
    EXPECT_EQ(queue.Fetch("dequeue", 0, token).status().code(), kCancelled);
    canceller.join();
    EXPECT_EQ(queue.Fetch("dequeue", 0, token).status().code(), kCancelled);
    RunOptions options;
    options.set_timeout_in_ms(1);
    EXPECT_EQ(queue.session().Run(options, {}, {"dequeue"}, {}, nullptr, nullptr).code(),
              absl::StatusCode::kDeadlineExceeded);
    // The attempts have left no trace.
    ASSERT_THAT(queue.Enqueue(Int(1)), IsOk());
    EXPECT_THAT(queue.Fetch("dequeue"), IsOkAndHolds(TensorEq(Int(1))));
  }
  {
    Queue queue(QueueNode("FIFOQueue", {TensorShape()}, 1));
    ASSERT_THAT(queue.Enqueue(Int(1)), IsOk());
    std::thread closer([&] { EXPECT_THAT(queue.Do("cancel"), IsOk()); });
    EXPECT_EQ(queue.Enqueue(Int(2)).code(), kCancelled);
    closer.join();
    EXPECT_THAT(queue.Fetch("dequeue"), IsOkAndHolds(TensorEq(Int(1))));
  }
  {
    Queue queue(QueueNode("FIFOQueue", {TensorShape()}, 1));
    std::thread closer([&] { EXPECT_THAT(queue.session().Close(), IsOk()); });
    EXPECT_FALSE(queue.Fetch("dequeue").ok());
    closer.join();
  }
}

TEST(Queue, ClosesAfterTheEnqueuesThatWait) {
  const Scope scope = Scope::NewRootScope();
  const Output queue = ops::FIFOQueueV2(scope, {DT_INT32}, ops::FIFOQueueV2::Capacity(1));
  ops::QueueEnqueueManyV2(scope.WithOpName("enqueue"), queue, {ops::Const(scope, {1, 2, 3})});
  const ops::QueueDequeueV2 first(scope.WithOpName("first"), queue, {DT_INT32});
  ops::QueueCloseV2(scope.WithOpName("close").WithControlDependencies(first.components[0]), queue);
  const ops::QueueDequeueV2 rest(
      scope.WithOpName("second").WithControlDependencies(first.components[0]), queue, {DT_INT32});
  const ops::QueueDequeueV2 last(
      scope.WithOpName("last").WithControlDependencies(rest.components[0]), queue, {DT_INT32});
  GraphDef graph;
  ASSERT_THAT(scope.ToGraphDef(&graph), IsOk());
  const std::unique_ptr<Session> session = *Session::Make(SessionOptions());
  ASSERT_THAT(session->Create(graph), IsOk());
  std::vector<Tensor> outputs;
  ASSERT_THAT(session->Run({}, {"first", "second", "last"}, {"enqueue", "close"}, &outputs),
              IsOk());
  EXPECT_THAT(outputs, ElementsAre(TensorEq(Tensor(1)), TensorEq(Tensor(2)), TensorEq(Tensor(3))));
}

TEST(Queue, SharedQueuesMustBeEqual) {
  const Scope scope = Scope::NewRootScope();
  const auto name = ops::FIFOQueueV2::SharedName("q");
  const Output queue = ops::FIFOQueueV2(scope, {DT_INT32}, name);
  const Output same = ops::FIFOQueueV2(scope, {DT_INT32}, name);
  const Output other = ops::FIFOQueueV2(scope, {DT_FLOAT}, name);
  ops::QueueEnqueueV2(scope.WithOpName("enqueue"), queue, {ops::Const(scope, 5)});
  ops::QueueSizeV2(scope.WithOpName("size"), same);
  ops::QueueSizeV2(scope.WithOpName("other"), other);
  ops::QueueDequeueV2(scope.WithOpName("wrong"), queue, {DT_FLOAT});
  GraphDef graph;
  ASSERT_THAT(scope.ToGraphDef(&graph), IsOk());
  const std::unique_ptr<Session> session = *Session::Make(SessionOptions());
  ASSERT_THAT(session->Create(graph), IsOk());
  ASSERT_THAT(session->Run({}, {}, {"enqueue"}, nullptr), IsOk());
  std::vector<Tensor> outputs;
  ASSERT_THAT(session->Run({}, {"size"}, {}, &outputs), IsOk());
  EXPECT_THAT(outputs, ElementsAre(TensorEq(Tensor(1))));
  EXPECT_THAT(session->Run({}, {"other"}, {}, &outputs),
              StatusIs(kInvalidArgument, HasSubstr("the queue of this name has another kind")));
  EXPECT_THAT(session->Run({}, {"wrong"}, {}, &outputs),
              StatusIs(kInvalidArgument, HasSubstr("component_types must be the types of queue")));
}

TEST(Queue, ElementsAreChargedToTheSession) {
  SessionOptions options;
  options.tensor_memory_limit_bytes = 1 << 20;
  const Scope scope = Scope::NewRootScope();
  const Output queue = ops::FIFOQueueV2(scope, {DT_INT32});
  const Output x = ops::Placeholder(scope.WithOpName("x"), DT_INT32);
  ops::QueueEnqueueManyV2(scope.WithOpName("enqueue"), queue, {x});
  GraphDef graph;
  ASSERT_THAT(scope.ToGraphDef(&graph), IsOk());
  const std::unique_ptr<Session> session = *Session::Make(options);
  ASSERT_THAT(session->Create(graph), IsOk());
  EXPECT_THAT(
      session->Run({{"x", Tensor(DT_INT32, {int64_t{1} << 40, 0})}}, {}, {"enqueue"}, nullptr),
      StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("a queue of tensors")));
}

// A queue with seeds is shared with nodes that have the same seeds or none.
TEST(Queue, SeedsOfSharedQueuesMustBeEqualOrZero) {
  for (const int64_t seed2 : {2, 0, 3}) {
    const Scope scope = Scope::NewRootScope();
    const auto name = ops::RandomShuffleQueueV2::SharedName("q");
    const Output queue = ops::RandomShuffleQueueV2(scope, {DT_INT32}, name.Seed(1).Seed2(2));
    const Output size = ops::QueueSizeV2(scope, queue);
    const Output other = ops::RandomShuffleQueueV2(scope.WithControlDependencies(size), {DT_INT32},
                                                   name.Seed(seed2 == 0 ? 0 : 1).Seed2(seed2));
    const absl::Status status = RunGraph(scope, {ops::QueueSizeV2(scope, other)}).status();
    EXPECT_EQ(status.ok(), seed2 != 3) << seed2 << " " << status;
  }
}

// The rows of a tensor without elements have shapes, which take memory.
TEST(Queue, ShapesAreCharged) {
  SessionOptions options;
  options.tensor_memory_limit_bytes = 1 << 20;
  const Scope scope = Scope::NewRootScope();
  const Output queue = ops::FIFOQueueV2(scope, {DT_INT32});
  const Output x = ops::Placeholder(scope.WithOpName("x"), DT_INT32);
  ops::QueueEnqueueManyV2(scope.WithOpName("enqueue"), queue, {x});
  GraphDef graph;
  ASSERT_THAT(scope.ToGraphDef(&graph), IsOk());
  // 1000 rows of rank 200 need 1.6 MB, and 1000 rows of rank 4 no memory besides their tensors.
  for (const int rank : {4, 200}) {
    const std::unique_ptr<Session> session = *Session::Make(options);
    ASSERT_THAT(session->Create(graph), IsOk());
    DimVector dims(static_cast<size_t>(rank + 1), 0);
    dims[0] = 1000;
    const absl::Status status =
        session->Run({{"x", Tensor(DT_INT32, TensorShape(dims))}}, {}, {"enqueue"}, nullptr);
    if (rank == 4) {
      EXPECT_THAT(status, IsOk());
    } else {
      EXPECT_THAT(status,
                  StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("a queue of tensors")));
    }
  }
}

// A batch of very many elements ends with its run.
TEST(Queue, StopsEndLongEnqueues) {
  Queue queue(QueueNode("FIFOQueue", {}));
  const CancellationToken token;
  std::thread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    token.Cancel();
  });
  EXPECT_EQ(queue.Enqueue(Tensor(DT_INT64, {int64_t{1} << 40, 0}), "enqueue_many", token).code(),
            kCancelled);
  canceller.join();
  EXPECT_LT(queue.size(), 100'000'000);
}

TEST(Stage, UnstageReturnsTheFirstTuple) {
  const Scope scope = Scope::NewRootScope();
  const Output x = ops::Placeholder(scope.WithOpName("x"), DT_FLOAT);
  ops::Stage(scope.WithOpName("stage"), {x, ops::Const(scope, 3)},
             ops::Stage::SharedName("s").MemoryLimit(100));
  const ops::Unstage unstage(scope.WithOpName("unstage"), {DT_FLOAT, DT_INT32},
                             ops::Unstage::SharedName("s").MemoryLimit(100));
  GraphDef graph;
  ASSERT_THAT(scope.ToGraphDef(&graph), IsOk());
  const std::unique_ptr<Session> session = *Session::Make(SessionOptions());
  ASSERT_THAT(session->Create(graph), IsOk());
  std::vector<Tensor> outputs;
  std::thread consumer([&] {
    EXPECT_THAT(session->Run({}, {"unstage", "unstage:1"}, {}, &outputs), IsOk());
  });
  EXPECT_THAT(session->Run({{"x", AsScalar<float>(2)}}, {}, {"stage"}, nullptr), IsOk());
  consumer.join();
  EXPECT_THAT(outputs, ElementsAre(TensorEq(AsScalar<float>(2)), TensorEq(Tensor(3))));
  EXPECT_THAT(session->Run({{"x", Tensor(DT_FLOAT, {30})}}, {}, {"stage"}, nullptr),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("the element has 124 bytes, but queue 's' has a limit of 100")));
}

// ---- Random programs ----

// The elements that dequeues of this process have got: those whose runs took them. A cancelled run
// gives its elements back, unless it is too late; the caller of the run cannot tell.
class Receipts {
 public:
  void Add(const std::vector<int64_t>& ids) {
    const std::lock_guard<std::mutex> lock(mutex_);
    ids_.insert(ids_.end(), ids.begin(), ids.end());
  }
  // Removes the ids, which Add() has added.
  void TakeBack(const std::vector<int64_t>& ids) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const int64_t id : ids) ids_.erase(std::find(ids_.begin(), ids_.end(), id));
  }
  std::vector<int64_t> ids() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return ids_;
  }
  void Clear() {
    const std::lock_guard<std::mutex> lock(mutex_);
    ids_.clear();
  }

 private:
  mutable std::mutex mutex_;
  std::vector<int64_t> ids_;
};

Receipts& AllReceipts() {
  static auto* const receipts = new Receipts;
  return *receipts;
}

// Ends a dequeue, and records its elements if the run takes them.
class RecordingTarget final : public AsyncDone::Target {
 public:
  RecordingTarget(KernelContext* ctx, AsyncDone done) : ctx_(ctx), done_(std::move(done)) {}

  bool Done(absl::Status status) override {
    if (!status.ok()) return done_(std::move(status));
    const auto span = ctx_->mutable_output(0)->span<int64_t>();
    const std::vector<int64_t> ids(span.begin(), span.end());
    // The run may go on, and end, before done_() returns.
    AllReceipts().Add(ids);
    if (done_(std::move(status))) return true;
    AllReceipts().TakeBack(ids);
    return false;
  }

 private:
  KernelContext* const ctx_;
  const AsyncDone done_;
};

// The ops that dequeue, which record what they get.
class RecordingKernel final : public AsyncOpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    is_batch_ = construction.num_inputs() > 1;
    allows_fewer_ = construction.def().op() == "QueueDequeueUpToV2";
    return absl::OkStatus();
  }
  void ComputeAsync(KernelContext& ctx, AsyncDone done) const override {
    const AsyncDone recorded(std::make_shared<RecordingTarget>(&ctx, std::move(done)));
    const ResourceHandle handle = *HandleOf(ctx, 0);
    const std::shared_ptr<TensorQueue> queue =
        *ctx.resource_manager()->Lookup<TensorQueue>(handle.container(), handle.name());
    if (!is_batch_) return queue->Dequeue(ctx, recorded);
    queue->DequeueMany(ctx, recorded, *ctx.ScalarInt(1, "n"), allows_fewer_);
  }

 private:
  bool is_batch_ = false;
  bool allows_fewer_ = false;
};

constexpr char kRecording[] = "recording";

void RegisterRecordingKernels() {
  static const bool registered = [] {
    for (const char* const op : {"QueueDequeueV2", "QueueDequeueManyV2", "QueueDequeueUpToV2"}) {
      GlobalRegistry().Kernel(op, MakeKernel<RecordingKernel>).Label(kRecording);
    }
    return true;
  }();
  ASSERT_TRUE(registered);
  GRADFLOW_ASSERT_OK(GlobalRegistry().status());
}

// Producers, consumers and cancellations that a seed determines.
class RandomProgram {
 public:
  explicit RandomProgram(uint32_t seed) : random_(seed) {
    const char* const kinds[] = {"FIFOQueue", "RandomShuffleQueue", "PaddingFIFOQueue",
                                 "PriorityQueue"};
    is_fifo_ = seed % 4 == 0;
    NodeDef node = QueueNode(kinds[seed % 4], {}, Below(8) + 1);
    // A queue with priorities has the priority as its component.
    has_shapes_ = seed % 4 != 3;
    if (has_shapes_) AddNodeAttr("shapes", std::vector<PartialTensorShape>{TensorShape()}, &node);
    if (seed % 4 == 1) AddNodeAttr("seed", int64_t{seed}, &node);
    AllReceipts().Clear();
    queue_ =
        std::make_unique<Queue>(node, DT_INT64, static_cast<int>(Below(8) + 1), "V2", kRecording);
    cancels_consumers_ = Below(2) == 0;
    num_producers_ = Below(3) + 1;
    num_consumers_ = Below(3) + 1;
  }

  void Run() {
    std::vector<std::thread> producers;
    std::vector<std::thread> consumers;
    for (int64_t p = 0; p < num_producers_; ++p) {
      producers.emplace_back([this, p, seed = random_()] { Produce(p, seed); });
    }
    for (int64_t c = 0; c < num_consumers_; ++c) {
      consumers.emplace_back([this, seed = random_()] { Consume(seed); });
    }
    for (std::thread& thread : producers) thread.join();
    EXPECT_THAT(queue_->Do(Below(2) == 0 ? "close" : "cancel"), IsOk());
    for (std::thread& thread : consumers) thread.join();
    // A cancelled run may give its elements back after its end, on another thread.
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    std::string error;
    do {
      while (queue_->Fetch("dequeue").ok()) {
      }
      error = FindError();
    } while (!error.empty() && std::chrono::steady_clock::now() < deadline);
    EXPECT_EQ(error, "");
  }

 private:
  int64_t Below(int64_t n) { return random_() % n; }

  // Calls run(token) while another thread may cancel the token. Returns true if it may.
  template <typename Fn>
  static bool RunCancelled(std::mt19937* random, bool cancels, const Fn& run) {
    const CancellationToken token;
    if (!cancels || (*random)() % 3 != 0) {
      run(token);
      return false;
    }
    std::thread canceller([token, delay = (*random)() % 20'000] {
      for (volatile uint32_t i = 0; i < delay; i = i + 1) {
      }
      token.Cancel();
    });
    run(token);
    canceller.join();
    return true;
  }

  void Produce(int64_t producer, uint32_t seed) {
    std::mt19937 random(seed);
    int64_t next = producer * 1'000'000;
    for (int run = 0; run < 12; ++run) {
      const auto count = static_cast<int64_t>(random() % 5);
      std::vector<int64_t> ids;
      for (int64_t i = 0; i < std::max<int64_t>(count, 1); ++i) ids.push_back(next++);
      absl::Status status;
      const bool cancels = RunCancelled(&random, true, [&](const CancellationToken& token) {
        status = count == 0 ? queue_->Enqueue(Int(ids[0]), "enqueue", token)
                            : queue_->Enqueue(Ints(ids), "enqueue_many", token);
      });
      if (!status.ok()) {
        EXPECT_TRUE(cancels && status.code() == kCancelled) << status;
      }
      const std::lock_guard<std::mutex> lock(mutex_);
      (status.ok() ? sent_ : maybe_sent_).insert(ids.begin(), ids.end());
    }
  }

  void Consume(uint32_t seed) {
    std::mt19937 random(seed);
    while (true) {
      const auto n = static_cast<int32_t>(random() % 4);
      const char* const op = n == 0 || !has_shapes_ ? "dequeue"
                             : random() % 2 == 0    ? "dequeue_many"
                                                    : "dequeue_up_to";
      absl::Status status;
      const bool cancels = RunCancelled(
          &random, cancels_consumers_,
          [&](const CancellationToken& token) { status = queue_->Fetch(op, n, token).status(); });
      if (status.ok() || (cancels && status.code() == kCancelled)) continue;
      EXPECT_EQ(status.code(), kOutOfRange) << status;
      return;
    }
  }

  // Returns an element that was lost, doubled or not sent; "" if there is none.
  std::string FindError() const {
    const std::vector<int64_t> received = AllReceipts().ids();
    std::vector<int64_t> sorted = received;
    std::sort(sorted.begin(), sorted.end());
    const auto doubled = std::adjacent_find(sorted.begin(), sorted.end());
    if (doubled != sorted.end()) return absl::StrCat(*doubled, " was received twice");
    for (const int64_t id : sent_) {
      if (!std::binary_search(sorted.begin(), sorted.end(), id)) {
        return absl::StrCat(id, " was lost");
      }
    }
    for (const int64_t id : sorted) {
      if (sent_.count(id) == 0 && maybe_sent_.count(id) == 0) {
        return absl::StrCat(id, " was not sent");
      }
    }
    const bool is_ordered = is_fifo_ && num_producers_ == 1 && num_consumers_ == 1;
    return !is_ordered || cancels_consumers_ || received == sorted ? "" : "the order is wrong";
  }

  std::mt19937 random_;
  std::unique_ptr<Queue> queue_;
  bool is_fifo_ = false;
  bool has_shapes_ = false;
  bool cancels_consumers_ = false;
  int64_t num_producers_ = 0;
  int64_t num_consumers_ = 0;
  std::mutex mutex_;
  // The elements of enqueues that have ended with OK, and of cancelled enqueues.
  std::set<int64_t> sent_;
  std::set<int64_t> maybe_sent_;
};

// Set GRADFLOW_QUEUE_PROGRAMS for more programs, and GRADFLOW_QUEUE_SEED for other ones.
TEST(Queue, RandomProgramsLoseAndDoubleNoElement) {
  RegisterRecordingKernels();
  const auto number = [](const char* name, int otherwise) {
    const char* const text = std::getenv(name);
    return text == nullptr ? otherwise : std::atoi(text);
  };
  const int first = number("GRADFLOW_QUEUE_SEED", 0);
  const int programs = number("GRADFLOW_QUEUE_PROGRAMS", 12);
  for (int seed = first; seed < first + programs && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    RandomProgram(static_cast<uint32_t>(seed)).Run();
  }
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
