// Tests of Session as an interface that programs derive from, and of functions that gradflow's
// session lacks.
#include "tensorflow/core/public/session.h"

#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/cc/ops/standard_ops.h"
#include "tensorflow/core/framework/tensor_testutil.h"
#include "tensorflow/core/lib/core/status_test_util.h"
#include "tensorflow/core/platform/test.h"
#include "tensorflow/core/platform/threadpool_interface.h"

namespace tensorflow {
namespace {

using ::testing::HasSubstr;

// Overrides all functions of TensorFlow's class and counts the calls.
class CountingSession : public Session {
 public:
  using Inputs = std::vector<std::pair<std::string, Tensor>>;
  using Names = std::vector<std::string>;

  absl::Status Create(const GraphDef&) override { return Count(); }
  absl::Status Create(GraphDef&&) override { return Count(); }
  absl::Status Create(const RunOptions&, const GraphDef&) override { return Count(); }
  absl::Status Create(const RunOptions&, GraphDef&&) override { return Count(); }
  absl::Status Extend(const GraphDef&) override { return Count(); }
  absl::Status Extend(GraphDef&&) override { return Count(); }
  absl::Status Extend(const RunOptions&, const GraphDef&) override { return Count(); }
  absl::Status Extend(const RunOptions&, GraphDef&&) override { return Count(); }
  absl::Status Run(const Inputs&, const Names&, const Names&, std::vector<Tensor>*) override {
    return Count();
  }
  absl::Status Run(const RunOptions&, const Inputs&, const Names&, const Names&,
                   std::vector<Tensor>*, RunMetadata*) override {
    return Count();
  }
  absl::Status Run(const RunOptions&, const Inputs&, const Names&, const Names&,
                   std::vector<Tensor>*, RunMetadata*, const thread::ThreadPoolOptions&) override {
    return Count();
  }
  absl::Status PRunSetup(const Names&, const Names&, const Names&, std::string*) override {
    return Count();
  }
  absl::Status PRun(const std::string&, const Inputs&, const Names&,
                    std::vector<Tensor>*) override {
    return Count();
  }
  absl::Status ListDevices(std::vector<DeviceAttributes>*) override { return Count(); }
  absl::Status LocalDeviceManager(const DeviceMgr**) override { return Count(); }
  absl::Status MakeCallable(const CallableOptions&, CallableHandle*) override { return Count(); }
  absl::Status RunCallable(CallableHandle, const std::vector<Tensor>&, std::vector<Tensor>*,
                           RunMetadata*) override {
    return Count();
  }
  absl::Status RunCallable(CallableHandle, const std::vector<Tensor>&, std::vector<Tensor>*,
                           RunMetadata*, const thread::ThreadPoolOptions&) override {
    return Count();
  }
  absl::Status ReleaseCallable(CallableHandle) override { return Count(); }
  absl::Status Finalize() override { return Count(); }
  absl::Status Close() override { return Count(); }
  absl::Status Close(const RunOptions&) override { return Count(); }

  int calls = 0;

 private:
  absl::Status Count() { return ++calls, absl::OkStatus(); }
};

// Calls the optional functions of a session and returns their statuses.
std::vector<absl::Status> CallOptional(Session* session) {
  std::string handle;
  const DeviceMgr* devices = nullptr;
  const RunOptions options;
  return {session->Create(options, GraphDef()),
          session->Extend(options, GraphDef()),
          session->PRunSetup({}, {}, {}, &handle),
          session->PRun(handle, {}, {}, nullptr),
          session->LocalDeviceManager(&devices),
          session->Finalize(),
          session->Close(options)};
}

TEST(SessionTest, ProgramsMayOverrideEachFunction) {
  CountingSession counting;
  Session* const session = &counting;
  const GraphDef graph;
  TF_EXPECT_OK(session->Create(graph));
  TF_EXPECT_OK(session->Create(GraphDef()));
  TF_EXPECT_OK(session->Extend(GraphDef()));
  TF_EXPECT_OK(
      session->Run(RunOptions(), {}, {}, {}, nullptr, nullptr, thread::ThreadPoolOptions()));
  TF_EXPECT_OK(session->RunCallable(0, {}, nullptr, nullptr, thread::ThreadPoolOptions()));
  for (const absl::Status& status : CallOptional(session)) TF_EXPECT_OK(status);
  EXPECT_EQ(counting.calls, 12);
}

// A thread pool that must not be used.
class NoThreads : public thread::ThreadPoolInterface {
 public:
  void Schedule(std::function<void()>) override { FAIL(); }
  int NumThreads() const override { return 1; }
  int CurrentThreadId() const override { return -1; }
};

TEST(SessionTest, UnsupportedFunctionsAreUnimplemented) {
  const std::unique_ptr<Session> session(NewSession(SessionOptions()));
  for (const absl::Status& status : CallOptional(session.get())) {
    EXPECT_EQ(status.code(), error::UNIMPLEMENTED);
    EXPECT_THAT(std::string(status.message()), HasSubstr("is not supported for this session"));
  }
  EXPECT_EQ(Reset(SessionOptions(), {"container"}).code(), error::UNIMPLEMENTED);
}

TEST(SessionTest, ExtendsReleasesAndCloses) {
  const auto graph = [](const std::string& name, float value) {
    const Scope root = Scope::NewRootScope();
    ops::Const(root.WithOpName(name), value);
    GraphDef def;
    TF_CHECK_OK(root.ToGraphDef(&def));
    return def;
  };
  const std::unique_ptr<Session> session(NewSession(SessionOptions()));
  TF_ASSERT_OK(session->Create(graph("x", 3)));
  EXPECT_EQ(session->Extend(graph("x", 4)).code(), error::INVALID_ARGUMENT);
  TF_ASSERT_OK(session->Extend(graph("y", 4)));
  std::vector<Tensor> outputs;
  TF_ASSERT_OK(session->Run({}, {"y", "x"}, {}, &outputs));
  ASSERT_EQ(outputs.size(), 2u);
  test::ExpectTensorEqual<float>(outputs[0], test::AsScalar<float>(4));
  test::ExpectTensorEqual<float>(outputs[1], test::AsScalar<float>(3));
  CallableOptions options;
  options.add_fetch("y");
  Session::CallableHandle handle;
  TF_ASSERT_OK(session->MakeCallable(options, &handle));
  TF_EXPECT_OK(session->RunCallable(handle, {}, &outputs, nullptr));
  TF_EXPECT_OK(session->ReleaseCallable(handle));
  EXPECT_EQ(session->RunCallable(handle, {}, &outputs, nullptr).code(), error::INVALID_ARGUMENT);
  EXPECT_EQ(session->ReleaseCallable(handle).code(), error::INVALID_ARGUMENT);
  TF_EXPECT_OK(session->Close());
  EXPECT_FALSE(session->Run({}, {"y"}, {}, &outputs).ok());
}

TEST(SessionTest, RejectsThreadPoolsOfTheProgram) {
  Scope root = Scope::NewRootScope();
  ops::Const(root.WithOpName("x"), 3.f);
  GraphDef graph;
  TF_ASSERT_OK(root.ToGraphDef(&graph));
  const std::unique_ptr<Session> session(NewSession(SessionOptions()));
  TF_ASSERT_OK(session->Create(std::move(graph)));
  std::vector<Tensor> outputs;
  RunMetadata metadata;
  TF_ASSERT_OK(
      session->Run(RunOptions(), {}, {"x"}, {}, &outputs, &metadata, thread::ThreadPoolOptions()));
  test::ExpectTensorEqual<float>(outputs[0], test::AsScalar<float>(3));
  CallableOptions options;
  options.add_fetch("x");
  Session::CallableHandle handle;
  TF_ASSERT_OK(session->MakeCallable(options, &handle));
  TF_EXPECT_OK(session->RunCallable(handle, {}, &outputs, &metadata, thread::ThreadPoolOptions()));
  NoThreads threads;
  thread::ThreadPoolOptions pools;
  pools.intra_op_threadpool = &threads;
  EXPECT_EQ(session->Run(RunOptions(), {}, {"x"}, {}, &outputs, &metadata, pools).code(),
            error::UNIMPLEMENTED);
  EXPECT_EQ(session->RunCallable(handle, {}, &outputs, &metadata, pools).code(),
            error::UNIMPLEMENTED);
}

}  // namespace
}  // namespace tensorflow
