#include "gradflow/runtime/session/session.h"

#include <google/protobuf/text_format.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/tsan.h"
#include "gradflow/testing/status_matchers.h"
#include "tests/runtime/toy_ops.h"

namespace gradflow {
namespace {

using ::absl::StatusCode;
using ::gradflow::testing::Int;
using ::gradflow::testing::IsOk;
using ::gradflow::testing::NumThreadsOfThisProcess;
using ::gradflow::testing::StatusIs;
using ::gradflow::testing::ToyAttrs;
using ::gradflow::testing::ToyCounter;
using ::gradflow::testing::ToyMeetings;
using ::gradflow::testing::ToyNode;
using ::gradflow::testing::ToyRegistry;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using Feeds = std::vector<std::pair<std::string, Tensor>>;

GraphDef Graphs(const std::vector<NodeDef>& nodes) {
  GraphDef graph;
  for (const NodeDef& node : nodes) *graph.add_node() = node;
  return graph;
}

NodeDef IntNode(const std::string& name, const std::string& op,
                const std::vector<std::string>& inputs) {
  return ToyNode(name, op, inputs, {{"T", DT_INT64}});
}

// x -> neg -> mix:0, mix:1 -> sum; y -> mix
GraphDef MixGraph() {
  const ToyAttrs int64_attrs = {{"dtype", DT_INT64}};
  return Graphs({ToyNode("x", "Placeholder", {}, int64_attrs),
                 ToyNode("y", "Placeholder", {}, int64_attrs), IntNode("neg", "Neg", {"x"}),
                 ToyNode("mix", "Mix", {"neg", "y"}), IntNode("sum", "Add", {"mix:0", "mix:1"})});
}

std::unique_ptr<Session> EmptySession(int threads = 2) {
  SessionOptions options;
  options.config.set_inter_op_parallelism_threads(threads);
  absl::StatusOr<std::unique_ptr<Session>> session = Session::Make(options, ToyRegistry());
  EXPECT_THAT(session, IsOk());
  return *std::move(session);
}

std::unique_ptr<Session> MixSession(int threads = 2) {
  std::unique_ptr<Session> session = EmptySession(threads);
  GRADFLOW_EXPECT_OK(session->Create(MixGraph()));
  return session;
}

// Returns the values of scalars.
std::vector<int64_t> Ints(const std::vector<Tensor>& tensors) {
  std::vector<int64_t> values;
  for (const Tensor& tensor : tensors) values.push_back(tensor.scalar<int64_t>()());
  return values;
}

TEST(Session, FeedsAndFetchesAnyTensor) {
  const std::unique_ptr<Session> session = MixSession();
  struct Case {
    Feeds feeds;
    std::vector<std::string> fetches;
    std::vector<int64_t> expected;
  };
  // neg = -x; mix:0 = 3 neg - y; mix:1 = neg ^ y
  const Case cases[] = {
      {{{"x", Int(-2)}, {"y", Int(1)}}, {"sum"}, {5 + 3}},
      {{{"x:0", Int(-2)}, {"y", Int(1)}}, {"mix:1", "mix", "neg:0"}, {3, 5, 2}},
      {{{"neg", Int(4)}, {"y", Int(1)}}, {"mix:0"}, {11}},
      {{{"mix:0", Int(100)}, {"x", Int(-2)}, {"y", Int(1)}}, {"sum", "mix:0"}, {103, 100}},
      {{{"mix:0", Int(100)}, {"mix:1", Int(10)}}, {"sum"}, {110}},
      {{{"sum", Int(7)}}, {"sum", "sum:0"}, {7, 7}},
      {{{"x", Int(5)}}, {}, {}},
  };
  for (const Case& c : cases) {
    // Runs twice, with a new plan and with the cached one.
    for (int i = 0; i < 2; ++i) {
      std::vector<Tensor> outputs;
      GRADFLOW_ASSERT_OK(session->Run(c.feeds, c.fetches, {}, &outputs));
      EXPECT_EQ(Ints(outputs), c.expected);
    }
  }
}

TEST(Session, RunsWithoutOutputs) {
  const std::unique_ptr<Session> session = MixSession();
  GRADFLOW_EXPECT_OK(session->Run({{"x", Int(1)}}, {}, {"neg"}, nullptr));
  GRADFLOW_EXPECT_OK(session->Run({{"x", Int(1)}}, {"neg"}, {}, nullptr));
  GRADFLOW_EXPECT_OK(session->Run({}, {}, {}, nullptr));
  std::vector<Tensor> outputs = {Int(1)};
  GRADFLOW_EXPECT_OK(session->Run({{"x", Int(1)}}, {}, {"neg"}, &outputs));
  EXPECT_THAT(outputs, IsEmpty());
}

TEST(Session, NamesTheErrorOfARequest) {
  std::unique_ptr<Session> session = EmptySession();
  GraphDef graph = MixGraph();
  *graph.add_node() =
      ToyNode("image", "Placeholder", {},
              {{"dtype", DT_FLOAT}, {"shape", PartialTensorShape({-1, 28, 28, 1})}});
  *graph.add_node() = ToyNode("odd", "Even", {"x"}, {{"n", 1}});
  GRADFLOW_ASSERT_OK(session->Create(graph));
  struct Case {
    Feeds feeds;
    std::vector<std::string> fetches;
    std::vector<std::string> targets;
    StatusCode code;
    std::string text;
  };
  const Case cases[] = {
      {{{"z", Int(1)}}, {"sum"}, {}, StatusCode::kNotFound, "feed 'z': the graph has no node"},
      {{},
       {"sun"},
       {},
       StatusCode::kNotFound,
       "fetch 'sun': the graph has no node of this name; "
       "did you mean 'sum'"},
      {{}, {}, {"nog"}, StatusCode::kNotFound, "target 'nog': "},
      {{}, {"mix:2"}, {}, StatusCode::kInvalidArgument, "has only outputs 0 to 1"},
      {{{"x", Int(1)}, {"x:0", Int(1)}},
       {"neg"},
       {},
       StatusCode::kInvalidArgument,
       "feed 'x:0' is given twice"},
      {{{"x", Tensor(1.5f)}},
       {"neg"},
       {},
       StatusCode::kInvalidArgument,
       "feed 'x:0': expected type int64, found float"},
      {{{"image", Tensor(DT_FLOAT, {2, 28, 27, 1})}},
       {"image"},
       {},
       StatusCode::kInvalidArgument,
       "feed 'image:0': expected shape [?,28,28,1], found [2,28,27,1]"},
      {{{"x", Int(1)}},
       {"sum"},
       {},
       StatusCode::kInvalidArgument,
       "node 'y' (Placeholder): must be fed"},
      {{{"x", Int(1)}},
       {"odd"},
       {},
       StatusCode::kInvalidArgument,
       "node 'odd' (Even): n must be even, but is 1"},
  };
  for (const Case& c : cases) {
    std::vector<Tensor> outputs = {Int(1), Int(2)};
    EXPECT_THAT(session->Run(c.feeds, c.fetches, c.targets, &outputs),
                StatusIs(c.code, HasSubstr(c.text)));
    EXPECT_THAT(outputs, SizeIs(2));
  }
}

TEST(Session, GetsItsGraphOnce) {
  const std::unique_ptr<Session> session = EmptySession();
  std::vector<Tensor> outputs;
  EXPECT_THAT(session->Run({}, {"x"}, {}, &outputs),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("no graph")));
  // An invalid graph is rejected.
  EXPECT_THAT(session->Create(Graphs({IntNode("y", "Neg", {"x"})})),
              StatusIs(StatusCode::kInvalidArgument));
  EXPECT_THAT(session->Run({}, {"y"}, {}, &outputs), StatusIs(StatusCode::kFailedPrecondition));
  GRADFLOW_ASSERT_OK(session->Create(MixGraph()));
  GRADFLOW_EXPECT_OK(session->Run({{"x", Int(1)}}, {"neg"}, {}, &outputs));
  EXPECT_THAT(session->Create(MixGraph()),
              StatusIs(StatusCode::kAlreadyExists, HasSubstr("Extend")));
}

TEST(Session, TakesGraphsUpToItsLimits) {
  SessionOptions options;
  options.graph_limits.max_nodes = 4;
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session,
                                Session::Make(options, ToyRegistry()));
  EXPECT_THAT(session->Create(MixGraph()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("max_nodes")));
  GraphDef small = MixGraph();
  small.mutable_node()->RemoveLast();
  GRADFLOW_ASSERT_OK(session->Create(small));
  EXPECT_THAT(session->Extend(MixGraph()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("max_nodes")));
}

TEST(Session, TakesOverGraphsThatAreMoved) {
  const std::unique_ptr<Session> session = EmptySession();
  GraphDef graph = MixGraph();
  const NodeDef sum = graph.node(4);
  graph.mutable_node()->RemoveLast();
  GRADFLOW_ASSERT_OK(session->Create(std::move(graph)));
  EXPECT_EQ(graph.node_size(), 0);
  GRADFLOW_ASSERT_OK(session->Extend(Graphs({sum})));
  std::vector<Tensor> outputs;
  GRADFLOW_ASSERT_OK(session->Run({{"x", Int(1)}, {"y", Int(2)}}, {"sum"}, {}, &outputs));
  EXPECT_EQ(Ints(outputs), std::vector<int64_t>{-8});
}

TEST(Session, ExtendsItsGraph) {
  const std::unique_ptr<Session> session = EmptySession();
  GRADFLOW_ASSERT_OK(session->Extend(MixGraph()));
  std::vector<Tensor> outputs;
  GRADFLOW_ASSERT_OK(session->Run({{"x", Int(1)}}, {"neg"}, {}, &outputs));
  GRADFLOW_ASSERT_OK(session->Extend(Graphs(
      {IntNode("more", "Neg", {"mix:1"}), IntNode("most", "Add", {"more", "neg", "^sum"})})));
  GRADFLOW_ASSERT_OK(session->Run({{"x", Int(-2)}, {"y", Int(1)}}, {"most", "neg"}, {}, &outputs));
  EXPECT_EQ(Ints(outputs), std::vector<int64_t>({-3 + 2, 2}));
  // A failed Extend has no effect.
  EXPECT_THAT(session->Extend(Graphs({IntNode("new", "Neg", {"x"}), IntNode("neg", "Neg", {"x"})})),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("neg")));
  EXPECT_THAT(session->Run({{"x", Int(1)}}, {"new"}, {}, &outputs),
              StatusIs(StatusCode::kNotFound));
  GRADFLOW_EXPECT_OK(session->Run({{"x", Int(1)}}, {"neg"}, {}, &outputs));
}

TEST(Session, DoesNothingAfterClose) {
  const std::unique_ptr<Session> session = MixSession();
  std::vector<Tensor> outputs;
  GRADFLOW_ASSERT_OK(session->Run({{"x", Int(1)}}, {"neg"}, {}, &outputs));
  GRADFLOW_EXPECT_OK(session->Close());
  GRADFLOW_EXPECT_OK(session->Close());
  EXPECT_THAT(session->Run({{"x", Int(1)}}, {"neg"}, {}, &outputs),
              StatusIs(StatusCode::kCancelled, HasSubstr("closed")));
  EXPECT_THAT(session->Extend(MixGraph()), StatusIs(StatusCode::kCancelled));
  EXPECT_THAT(session->Create(MixGraph()), StatusIs(StatusCode::kCancelled));
  EXPECT_EQ(outputs[0].scalar<int64_t>()(), -1);
}

TEST(Session, OutputsOutliveTheSession) {
  std::unique_ptr<Session> session = MixSession();
  std::vector<Tensor> outputs;
  GRADFLOW_ASSERT_OK(session->Run({{"x", Int(5)}}, {"neg"}, {}, &outputs));
  session.reset();
  EXPECT_EQ(outputs[0].scalar<int64_t>()(), -5);
}

TEST(Session, RefusesUnsupportedOptions) {
  struct Case {
    std::string target;
    int intra;
    int inter;
    StatusCode code;
    std::string text;
  };
  const Case cases[] = {
      {"grpc://host:1", 0, 0, StatusCode::kNotFound, "'grpc://host:1'"},
      {"", -1, 0, StatusCode::kInvalidArgument,
       "intra_op_parallelism_threads is -1, expected 0 to 1024"},
      {"", 0, 1025, StatusCode::kInvalidArgument,
       "inter_op_parallelism_threads is 1025, expected 0 to 1024"},
  };
  for (const Case& c : cases) {
    SessionOptions options;
    options.target = c.target;
    options.config.set_intra_op_parallelism_threads(c.intra);
    options.config.set_inter_op_parallelism_threads(c.inter);
    EXPECT_THAT(Session::Make(options, ToyRegistry()), StatusIs(c.code, HasSubstr(c.text)));
    EXPECT_EQ(NewSession(options), nullptr);
    Session* session = nullptr;
    EXPECT_THAT(NewSession(options, &session), StatusIs(c.code, HasSubstr(c.text)));
    EXPECT_EQ(session, nullptr);
  }
  SessionOptions options;
  options.target = "local";
  options.config.set_inter_op_parallelism_threads(SessionOptions::kMaxThreads);
  GRADFLOW_EXPECT_OK(Session::Make(options, ToyRegistry()));
  EXPECT_NE(std::unique_ptr<Session>(NewSession(options)), nullptr);
}

TEST(Session, RefusesUnsupportedConfigs) {
  const auto make = [](const std::string& config) {
    SessionOptions options;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(config, &options.config)) << config;
    return Session::Make(options, ToyRegistry()).status();
  };
  const std::pair<std::string, std::string> refused[] = {
      {"session_inter_op_thread_pool { num_threads: 2 }",
       "ConfigProto.session_inter_op_thread_pool is set, but a session has one set of threads"},
      {"cluster_def { job { name: 'worker' } }", "ConfigProto.cluster_def is set"},
      {"graph_options { build_cost_model: 3 }", "build_cost_model is set"},
  };
  for (const auto& [config, text] : refused) {
    EXPECT_THAT(make(config), StatusIs(StatusCode::kUnimplemented, HasSubstr(text)));
  }
  EXPECT_THAT(make("operation_timeout_in_ms: -1"),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("operation_timeout_in_ms is -1")));
  // Options for devices that this machine does not have are accepted.
  GRADFLOW_EXPECT_OK(
      make("allow_soft_placement: true gpu_options { allow_growth: true } "
           "graph_options { rewrite_options { layout_optimizer: OFF } }"));

  const std::unique_ptr<Session> session = EmptySession();
  GRADFLOW_ASSERT_OK(session->Create(MixGraph()));
  const auto run = [&](const std::string& text) {
    RunOptions options;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &options)) << text;
    return session->Run(options, {}, {}, {"x"}, nullptr, nullptr);
  };
  for (const std::string text : {"inter_op_thread_pool: 1", "output_partition_graphs: true",
                                 "debug_options { debug_tensor_watch_opts { node_name: 'x' } }"}) {
    EXPECT_THAT(run(text), StatusIs(StatusCode::kUnimplemented, HasSubstr("is set, but ")));
  }
  CallableOptions callable;
  callable.add_tensor_connection();
  Session::CallableHandle handle;
  EXPECT_THAT(session->MakeCallable(callable, &handle),
              StatusIs(StatusCode::kUnimplemented, HasSubstr("tensor_connection is set")));
}

TEST(Session, AppliesItsTimeoutToRunsWithoutATimeout) {
  SessionOptions options;
  options.config.set_operation_timeout_in_ms(1);
  absl::StatusOr<std::unique_ptr<Session>> session = Session::Make(options, ToyRegistry());
  ASSERT_THAT(session, IsOk());
  GRADFLOW_ASSERT_OK((*session)->Create(
      Graphs({ToyNode("x", "Placeholder", {}, {{"dtype", DT_INT64}}),
              ToyNode("slow", "WaitFor", {"x"}, {{"ms", 3}}), IntNode("after", "Neg", {"slow"})})));
  const Feeds feeds = {{"x", Int(1)}};
  std::vector<Tensor> outputs;
  EXPECT_THAT((*session)->Run(feeds, {"after"}, {}, &outputs),
              StatusIs(StatusCode::kDeadlineExceeded, HasSubstr("timeout of 1 ms")));
  RunOptions run_options;
  run_options.set_timeout_in_ms(100'000);
  GRADFLOW_EXPECT_OK((*session)->Run(run_options, feeds, {"after"}, {}, &outputs, nullptr));
}

TEST(Session, HonoursOrRefusesRunOptions) {
  const std::unique_ptr<Session> session = EmptySession();
  GraphDef graph = MixGraph();
  *graph.add_node() = ToyNode("slow", "WaitFor", {"x"}, {{"ms", 3}});
  *graph.add_node() = IntNode("after", "Neg", {"slow"});
  GRADFLOW_ASSERT_OK(session->Create(graph));
  const Feeds feeds = {{"x", Int(1)}};
  std::vector<Tensor> outputs;
  RunMetadata metadata;
  RunOptions options;
  GRADFLOW_EXPECT_OK(session->Run(options, feeds, {"after"}, {}, &outputs, &metadata));
  options.set_timeout_in_ms(1);
  EXPECT_THAT(session->Run(options, feeds, {"after"}, {}, &outputs, &metadata),
              StatusIs(StatusCode::kDeadlineExceeded, HasSubstr("timeout of 1 ms")));
  options.set_timeout_in_ms(-1);
  EXPECT_THAT(session->Run(options, feeds, {"after"}, {}, &outputs, nullptr),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("timeout_in_ms is -1")));
  options.set_timeout_in_ms(INT64_MAX);
  GRADFLOW_EXPECT_OK(session->Run(options, feeds, {"after"}, {}, &outputs, nullptr));
  options.set_trace_level(static_cast<RunOptions::TraceLevel>(-1));
  EXPECT_THAT(session->Run(options, feeds, {"after"}, {}, &outputs, &metadata),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("trace_level is -1")));
}

TEST(Session, ReusesMemory) {
  const std::unique_ptr<Session> session = EmptySession();
  const ToyAttrs float_attrs = {{"T", DT_FLOAT}};
  GRADFLOW_ASSERT_OK(session->Create(
      Graphs({ToyNode("x", "Placeholder", {}, {{"dtype", DT_FLOAT}}),
              ToyNode("a", "Neg", {"x"}, float_attrs), ToyNode("b", "Neg", {"x"}, float_attrs),
              ToyNode("sum", "Add", {"a", "b"}, float_attrs)})));
  const Feeds feeds = {{"x", Tensor(DT_FLOAT, TensorShape({1 << 16}))}};
  std::vector<Tensor> outputs;
  GRADFLOW_ASSERT_OK(session->Run(feeds, {"sum"}, {}, &outputs));
  EXPECT_GE(session->MemoryStats().peak_bytes_in_use, 2 * (1 << 18));
  const int64_t allocations = session->MemoryStats().system_allocations;
  for (int i = 0; i < 10; ++i) {
    outputs.clear();
    GRADFLOW_ASSERT_OK(session->Run(feeds, {"sum"}, {}, &outputs));
  }
  EXPECT_EQ(session->MemoryStats().system_allocations, allocations);
  session->ResetPeakMemory();
  EXPECT_LT(session->MemoryStats().peak_bytes_in_use, 2 * (1 << 18));
}

// x -> a, b -> sum, with tensors of a quarter of a MiB.
std::unique_ptr<Session> SessionOfLargeTensors(const SessionOptions& options) {
  const ToyAttrs float_attrs = {{"T", DT_FLOAT}};
  absl::StatusOr<std::unique_ptr<Session>> session = Session::Make(options, ToyRegistry());
  EXPECT_THAT(session, IsOk());
  GRADFLOW_EXPECT_OK((*session)->Create(
      Graphs({ToyNode("x", "Placeholder", {}, {{"dtype", DT_FLOAT}}),
              ToyNode("a", "Neg", {"x"}, float_attrs), ToyNode("b", "Neg", {"a"}, float_attrs),
              ToyNode("sum", "Add", {"a", "b"}, float_attrs)})));
  return *std::move(session);
}

TEST(Session, FailsRunsThatExceedItsMemoryLimit) {
  SessionOptions options;
  options.tensor_memory_limit_bytes = 400 << 10;
  const std::unique_ptr<Session> session = SessionOfLargeTensors(options);
  const Feeds feeds = {{"x", Tensor(DT_FLOAT, TensorShape({1 << 16}))}};
  std::vector<Tensor> outputs;
  for (int i = 0; i < 3; ++i) {
    // b cannot be computed in place in a, because sum also reads a.
    EXPECT_THAT(session->Run(feeds, {"sum"}, {}, &outputs),
                StatusIs(StatusCode::kResourceExhausted,
                         AllOf(HasSubstr("node 'b' (Neg): output 0: out of memory"),
                               HasSubstr("409600 bytes of tensors"))));
    EXPECT_EQ(session->MemoryStats().bytes_in_use, 0);
    GRADFLOW_ASSERT_OK(session->Run(feeds, {"b"}, {}, &outputs));
    // Fetched tensors are charged while the caller holds them.
    std::vector<Tensor> more;
    EXPECT_THAT(session->Run(feeds, {"a"}, {}, &more), StatusIs(StatusCode::kResourceExhausted));
    EXPECT_THAT(more, IsEmpty());
    outputs.clear();
  }
  EXPECT_LE(session->MemoryStats().peak_bytes_in_use, 400 << 10);
}

TEST(Session, CountsSmallTensorsAgainstItsLimit) {
  SessionOptions options;
  options.tensor_memory_limit_bytes = 2000;
  const std::unique_ptr<Session> session = SessionOfLargeTensors(options);
  std::vector<Tensor> outputs;
  // New sizes: cached blocks must be freed for them.
  for (int64_t size = 1; size <= 128; ++size) {
    const Feeds feeds = {{"x", Tensor(DT_FLOAT, TensorShape({size}))}};
    GRADFLOW_ASSERT_OK(session->Run(feeds, {"sum"}, {}, nullptr)) << size;
  }
  EXPECT_THAT(session->Run({{"x", Tensor(DT_FLOAT, TensorShape({512}))}}, {"sum"}, {}, nullptr),
              StatusIs(StatusCode::kResourceExhausted));
}

TEST(Session, KeepsAndTrimsMemory) {
  for (const bool keep : {true, false}) {
    SessionOptions options;
    if (!keep) options.pool_limit_bytes = 0;
    const std::unique_ptr<Session> session = SessionOfLargeTensors(options);
    const Feeds feeds = {{"x", Tensor(DT_FLOAT, TensorShape({1 << 16}))}};
    std::vector<Tensor> outputs;
    GRADFLOW_ASSERT_OK(session->Run(feeds, {"sum"}, {}, &outputs));
    GRADFLOW_ASSERT_OK(session->Run(feeds, {"sum"}, {}, &outputs));
    EXPECT_EQ(session->MemoryStats().bytes_cached > 1 << 18, keep);
    EXPECT_EQ(session->MemoryStats().allocations, 4);
    session->Trim();
    EXPECT_EQ(session->MemoryStats().bytes_cached, 0);
    EXPECT_GT(session->MemoryStats().bytes_in_use, 0);
    EXPECT_EQ(outputs[0].NumElements(), 1 << 16);
  }
}

TEST(Session, RefusesInvalidMemoryOptions) {
  SessionOptions options;
  options.tensor_memory_limit_bytes = -1;
  EXPECT_THAT(Session::Make(options),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("tensor_memory_limit_bytes is -1")));
  options.tensor_memory_limit_bytes = 0;
  options.pool_limit_bytes = -2;
  EXPECT_THAT(Session::Make(options),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("pool_limit_bytes is -2")));
}

TEST(Session, FreesResourcesWhenItIsClosed) {
  GraphDef graph = Graphs({ToyNode("a", "CountRuns", {}, {{"name", "n"}}),
                           ToyNode("b", "CountRuns", {"^a"}, {{"name", "n"}}),
                           ToyNode("c", "CountRuns", {}, {{"name", "n"}, {"container", "c"}})});
  const std::unique_ptr<Session> first = EmptySession();
  GRADFLOW_ASSERT_OK(first->Create(graph));
  {
    const std::unique_ptr<Session> second = EmptySession();
    GRADFLOW_ASSERT_OK(second->Create(graph));
    std::vector<Tensor> outputs;
    for (int64_t i = 1; i <= 3; ++i) {
      GRADFLOW_ASSERT_OK(first->Run({}, {"a", "b", "c"}, {}, &outputs));
      EXPECT_EQ(Ints(outputs), std::vector<int64_t>({2 * i - 1, 2 * i, i}));
    }
    GRADFLOW_ASSERT_OK(second->Run({}, {"a", "b", "c"}, {}, &outputs));
    EXPECT_EQ(Ints(outputs), std::vector<int64_t>({1, 2, 1}));
    EXPECT_EQ(::gradflow::testing::ToyResources(), 4);
  }
  EXPECT_EQ(::gradflow::testing::ToyResources(), 2);
  GRADFLOW_EXPECT_OK(first->Close());
  EXPECT_EQ(::gradflow::testing::ToyResources(), 0);
}

// Counts its live instances, and returns a tensor of Pool(). Runs while Hold() is set, even if the
// run is stopped.
class KeptKernel final : public OpKernel {
 public:
  static std::atomic<int>& Alive() {
    static std::atomic<int> alive{0};
    return alive;
  }
  static std::atomic<bool>& Hold() {
    static std::atomic<bool> hold{false};
    return hold;
  }
  static std::atomic<int>& Started() {
    static std::atomic<int> started{0};
    return started;
  }
  static std::shared_ptr<PoolAllocator> Pool() {
    static const auto pool = std::make_shared<PoolAllocator>();
    return pool;
  }

  KeptKernel() { ++Alive(); }
  ~KeptKernel() override { --Alive(); }
  absl::Status Compute(KernelContext& ctx) const override {
    ++Started();
    while (Hold()) std::this_thread::yield();
    Tensor tensor(Pool(), DT_INT64, TensorShape());
    tensor.scalar<int64_t>()() = 1;
    ctx.set_output(0, tensor);
    return absl::OkStatus();
  }
};

TEST(Session, FreesKernelsAndConstantsWhenItIsClosed) {
  Registry registry;
  registry.Op("Const").Output("output: dtype").Attr("value: tensor").Attr("dtype: type");
  registry.Kernel("Const", MakeKernel<KeptKernel>);
  registry.Op("Pure").Input("x: int64").Output("y: int64");
  registry.Kernel("Pure", MakeKernel<KeptKernel>);
  registry.Op("Stateful").Stateful().Input("x: int64").Output("y: int64");
  registry.Kernel("Stateful", MakeKernel<KeptKernel>);
  const GraphDef graph =
      Graphs({ToyNode("c", "Const", {}, {{"dtype", DT_INT64}, {"value", Int(1)}}),
              ToyNode("folded", "Pure", {"c"}), ToyNode("last", "Stateful", {"folded"})});
  const auto in_use = [] { return KeptKernel::Pool()->GetStats().bytes_in_use; };
  for (const bool in_flight : {false, true}) {
    const std::unique_ptr<Session> session = *Session::Make(SessionOptions(), registry);
    GRADFLOW_ASSERT_OK(session->Create(graph));
    GRADFLOW_ASSERT_OK(session->Run({}, {}, {"last"}, nullptr));
    CallableOptions options;
    options.add_target("last");
    options.add_target("folded");
    Session::CallableHandle handle = 0;
    GRADFLOW_ASSERT_OK(session->MakeCallable(options, &handle));
    EXPECT_EQ(KeptKernel::Alive(), 3);
    EXPECT_GT(in_use(), 0);
    std::thread run;
    if (in_flight) {
      KeptKernel::Hold() = true;
      const int started = KeptKernel::Started();
      run = std::thread([&] {
        EXPECT_THAT(session->RunCallable(handle, {}, nullptr, nullptr),
                    StatusIs(StatusCode::kCancelled, HasSubstr("node 'last' (Stateful)")));
      });
      while (KeptKernel::Started() == started) std::this_thread::yield();
    }
    GRADFLOW_EXPECT_OK(session->Close());
    if (in_flight) {
      EXPECT_EQ(KeptKernel::Alive(), 3);
      KeptKernel::Hold() = false;
      run.join();
    }
    EXPECT_EQ(KeptKernel::Alive(), 0);
    EXPECT_EQ(in_use(), 0);
  }
}

TEST(Session, ListsUnusedOutputs) {
  const std::unique_ptr<Session> session = EmptySession();
  GRADFLOW_ASSERT_OK_AND_ASSIGN(std::vector<std::string> unused, session->UnusedOutputs());
  EXPECT_TRUE(unused.empty());
  GRADFLOW_ASSERT_OK(
      session->Create(Graphs({ToyNode("x", "Placeholder", {}, {{"dtype", DT_INT64}}),
                              ToyNode("last", "Neg", {"first"}, {{"T", DT_INT64}}),
                              ToyNode("first", "Neg", {"x"}, {{"T", DT_INT64}}),
                              ToyNode("waited_for", "Neg", {"x"}, {{"T", DT_INT64}}),
                              ToyNode("waits", "Neg", {"x", "^waited_for"}, {{"T", DT_INT64}})})));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(unused, session->UnusedOutputs());
  EXPECT_THAT(unused, ElementsAre("last", "waited_for", "waits"));
}

// Each session has more ready nodes than threads. No node ends before the other session has
// started. One node of each session ends only together with its partner in the other session.
TEST(Session, LetsOtherSessionsRun) {
  for (const int counter : {0, 1}) ToyCounter(counter) = 0;
  ToyMeetings() = 0;
  const auto run = [](int own, int other) {
    const std::unique_ptr<Session> session = EmptySession();
    GraphDef graph = Graphs({ToyNode("x", "Placeholder", {}, {{"dtype", DT_INT64}}),
                             ToyNode("start", "Tick", {"x"}, {{"counter", own}})});
    *graph.add_node() = ToyNode("meet", "Meet", {"^start"});
    std::vector<std::string> waits;
    for (int i = 0; i < 8; ++i) {
      waits.push_back(absl::StrCat("wait", i));
      *graph.add_node() =
          ToyNode(waits.back(), "WaitForCounter", {"start"}, {{"counter", other}, {"value", 1}});
    }
    GRADFLOW_ASSERT_OK(session->Create(graph));
    std::vector<Tensor> outputs;
    GRADFLOW_ASSERT_OK(session->Run({{"x", Int(1)}}, {"meet"}, waits, &outputs));
    EXPECT_TRUE(outputs[0].scalar<bool>()());
  };
  std::thread first([&] { run(0, 1); });
  run(1, 0);
  first.join();
}

TEST(Session, StartsNoThreadIfItMayHaveOne) {
  SessionOptions options;
  options.config.set_intra_op_parallelism_threads(1);
  options.config.set_inter_op_parallelism_threads(1);
  const int before = NumThreadsOfThisProcess();
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session,
                                Session::Make(options, ToyRegistry()));
  GraphDef graph = Graphs({ToyNode("i", "Placeholder", {}, {{"dtype", DT_INT64}})});
  std::vector<std::string> fetches;
  for (int i = 0; i < 20; ++i) {
    fetches.push_back(absl::StrCat("n", i));
    *graph.add_node() = IntNode(fetches.back(), "Neg", {"i"});
    *graph.add_node() = ToyNode(absl::StrCat("threads", i), "Threads", {"^" + fetches.back()});
    fetches.push_back(absl::StrCat("threads", i));
  }
  GRADFLOW_ASSERT_OK(session->Create(graph));
  std::vector<Tensor> outputs;
  GRADFLOW_ASSERT_OK(session->Run({{"i", Int(1)}}, fetches, {}, &outputs));
  EXPECT_EQ(outputs[1].scalar<int64_t>()(), 1);
  EXPECT_LE(NumThreadsOfThisProcess(), before);
}

TEST(Session, ServesAThousandRunsFromEightThreads) {
  for (const int threads : {1, 2, 4}) {
    const std::unique_ptr<Session> session = MixSession(threads);
    std::atomic<int> correct{0};
    std::vector<std::thread> callers;
    for (int t = 0; t < 8; ++t) {
      callers.emplace_back([&, t] {
        for (int i = 0; i < 125; ++i) {
          const int64_t x = 1000 * t + i;
          const int64_t neg = -x;
          std::vector<Tensor> outputs;
          // Uses several plans, and fails now and then.
          if (i % 5 == 4) {
            const absl::Status status = session->Run({{"x", Int(x)}}, {"sum"}, {}, &outputs);
            correct += status.code() == StatusCode::kInvalidArgument;
          } else if (i % 2 == 0) {
            const absl::Status status =
                session->Run({{"x", Int(x)}, {"y", Int(i)}}, {"sum"}, {"neg"}, &outputs);
            correct += status.ok() && Ints(outputs)[0] == 3 * neg - i + (neg ^ i);
          } else {
            const absl::Status status =
                session->Run({{"neg", Int(x)}, {"y", Int(i)}}, {"mix:1", "neg"}, {}, &outputs);
            correct += status.ok() && Ints(outputs) == std::vector<int64_t>({x ^ i, x});
          }
        }
      });
    }
    for (std::thread& caller : callers) caller.join();
    EXPECT_EQ(correct, 1000);
    EXPECT_EQ(session->MemoryStats().bytes_in_use, 0);
  }
}

TEST(Session, FailsWithoutAFeedThatAnEarlierRunHad) {
  const std::unique_ptr<Session> session = EmptySession();
  GRADFLOW_ASSERT_OK(
      session->Create(Graphs({ToyNode("x", "Placeholder", {}, {{"dtype", DT_INT64}}),
                              ToyNode("c", "Const", {}, {{"dtype", DT_INT64}, {"value", Int(5)}}),
                              IntNode("n", "Neg", {"c", "^x"})})));
  std::vector<Tensor> outputs;
  GRADFLOW_ASSERT_OK(session->Run({{"x", Int(1)}}, {"n"}, {}, &outputs));
  EXPECT_EQ(Ints(outputs), (std::vector<int64_t>{-5}));
  EXPECT_THAT(session->Run({}, {"n"}, {}, &outputs),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("node 'x' (Placeholder)")));
}

// Its factory calls a hook once.
class HookKernel final : public OpKernel {
 public:
  static std::function<void()>& Hook() {
    static auto& hook = *new std::function<void()>();
    return hook;
  }
  absl::Status Init(const KernelConstruction&) {
    if (const auto hook = std::exchange(Hook(), nullptr); hook != nullptr) hook();
    return absl::OkStatus();
  }
  absl::Status Compute(KernelContext&) const override { return absl::OkStatus(); }
};

// The factory of "a" waits for a task on another thread. Meanwhile this thread may run "b", which
// also needs a plan.
TEST(Session, MakesPlansWithinTasksOfTheCaller) {
  const tbb::global_control control(tbb::global_control::max_allowed_parallelism, 8);
  Registry registry;
  registry.Op("Hook").Stateful();
  registry.Kernel("Hook", MakeKernel<HookKernel>);
  const std::unique_ptr<Session> session = *Session::Make(SessionOptions(), registry);
  GRADFLOW_ASSERT_OK(session->Create(Graphs({ToyNode("a", "Hook", {}), ToyNode("b", "Hook", {})})));
  std::atomic<bool> begun{false};
  std::atomic<bool> awaited{false};
  tbb::task_arena(2).execute([&] {
    tbb::task_group busy;
    tbb::task_group runs;
    TsanRelease(&begun);
    busy.run([&]() GRADFLOW_NO_TSAN {
      TsanAcquire(&begun);
      begun = true;
      while (!awaited) std::this_thread::yield();
      for (int i = 0; i < 10000; ++i) std::this_thread::yield();
    });
    while (!begun) std::this_thread::yield();
    TsanRelease(&runs);
    runs.run([&]() GRADFLOW_NO_TSAN {
      TsanAcquire(&runs);
      GRADFLOW_EXPECT_OK(session->Run({}, {}, {"b"}, nullptr));
    });
    HookKernel::Hook() = [&] {
      awaited = true;
      busy.wait();
    };
    GRADFLOW_EXPECT_OK(session->Run({}, {}, {"a"}, nullptr));
    runs.wait();
  });
  EXPECT_TRUE(awaited);
}

TEST(Session, RunsWhileItIsExtendedAndClosed) {
  const std::unique_ptr<Session> session = MixSession();
  std::atomic<int> extended{0};
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int t = 0; t < 4; ++t) {
    callers.emplace_back([&] {
      for (int64_t i = 0; i < 1000000; ++i) {
        // Once added, a node is visible to all later runs.
        const int nodes = extended;
        const std::string name = nodes == 0 ? "neg" : absl::StrCat("more", i % nodes);
        std::vector<Tensor> outputs;
        const absl::Status status = session->Run({{"x", Int(i)}}, {name}, {}, &outputs);
        if (status.code() == StatusCode::kCancelled) return;
        if (!status.ok() || Ints(outputs)[0] != (nodes == 0 ? -i : i)) ++wrong;
      }
    });
  }
  for (int i = 0; i < 100; ++i) {
    GRADFLOW_EXPECT_OK(session->Extend(Graphs({IntNode(absl::StrCat("more", i), "Neg", {"neg"})})));
    extended = i + 1;
  }
  GRADFLOW_EXPECT_OK(session->Close());
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace gradflow
