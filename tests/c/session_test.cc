// Sessions of the C API.
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gradflow/proto/config.pb.h"
#include "tests/c/c_api_test_util.h"

namespace gradflow::capi_test {
namespace {

class CSessionTest : public ::testing::Test {
 protected:
  CSessionTest() {
    x_ = Placeholder(graph_.get(), "x");
    two_ = Const(graph_.get(), "two", Floats({}, {2}));
    half_ = Const(graph_.get(), "half", Floats({}, {0.5f}));
    product_ = Binary(graph_.get(), "Mul", "product", x_, half_);
    y_ = Binary(graph_.get(), "AddV2", "y", product_, two_);
  }

  const GraphPtr graph_ = NewGraph();
  TF_Operation* x_;
  TF_Operation* two_;
  TF_Operation* half_;
  TF_Operation* product_;
  TF_Operation* y_;
  const TensorPtr value_ = Floats({2}, {1, 4});
};

TEST_F(CSessionTest, RunsTheSameCallRepeatedly) {
  const SessionOwner session(graph_.get());
  const Status status;
  for (int i = 0; i < 3; ++i) {
    const TensorPtr result = RunOnce(session.get(), {{x_, 0}}, {value_.get()}, {y_, 0}, status);
    ASSERT_EQ(status.code(), TF_OK) << status.message();
    EXPECT_EQ(FloatsOf(result.get()), (std::vector<float>{2.5f, 4}));
  }
}

TEST_F(CSessionTest, SharesFedAndFetchedMemory) {
  const SessionOwner session(graph_.get());
  const Status status;
  const TensorPtr result = RunOnce(session.get(), {{x_, 0}}, {value_.get()}, {x_, 0}, status);
  ASSERT_EQ(status.code(), TF_OK) << status.message();
  EXPECT_EQ(TF_TensorData(result.get()), TF_TensorData(value_.get()));
}

TEST_F(CSessionTest, SeesOperationsThatAreAdded) {
  const SessionOwner session(graph_.get());
  const Status status;
  RunOnce(session.get(), {{x_, 0}}, {value_.get()}, {y_, 0}, status);
  TF_Operation* const neg = Unary(graph_.get(), "Neg", "neg", y_);
  const TensorPtr result = RunOnce(session.get(), {{x_, 0}}, {value_.get()}, {neg, 0}, status);
  ASSERT_EQ(status.code(), TF_OK) << status.message();
  EXPECT_EQ(FloatsOf(result.get()), (std::vector<float>{-2.5f, -4}));
}

TEST_F(CSessionTest, ManyDifferentCallsRun) {
  const SessionOwner session(graph_.get());
  const Status status;
  for (int i = 0; i < 300; ++i) {
    const std::string name = "neg" + std::to_string(i);
    TF_Operation* const neg = Unary(graph_.get(), "Neg", name.c_str(), y_);
    const TensorPtr result = RunOnce(session.get(), {{x_, 0}}, {value_.get()}, {neg, 0}, status);
    ASSERT_EQ(status.code(), TF_OK) << status.message();
    EXPECT_EQ(FloatsOf(result.get())[0], -2.5f);
  }
}

// A session keeps callables for its first 256 different calls. Threads that make them at the same
// time and calls beyond them give the same results.
TEST_F(CSessionTest, ThreadsMakeManyDifferentCalls) {
  constexpr int kOutputs = 20;
  std::vector<TF_Output> outputs;
  TF_Operation* last = x_;
  for (int i = 0; i < kOutputs; ++i) {
    last = Binary(graph_.get(), "AddV2", ("sum" + std::to_string(i)).c_str(), last, half_);
    outputs.push_back({last, 0});
  }
  const SessionOwner session(graph_.get());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int first = 0; first < kOutputs; ++first) {
        for (int second = 0; second < kOutputs; ++second) {
          const int i = t % 2 == 0 ? first : kOutputs - 1 - first;
          const TF_Output input = {x_, 0};
          const TF_Output fetched[] = {outputs[i], outputs[second]};
          TF_Tensor* const value = value_.get();
          TF_Tensor* results[2] = {};
          const Status status;
          TF_SessionRun(session.get(), nullptr, &input, &value, 1, fetched, results, 2, nullptr, 0,
                        nullptr, status);
          ASSERT_EQ(status.code(), TF_OK) << status.message();
          const float sums[] = {1 + 0.5f * static_cast<float>(i + 1),
                                1 + 0.5f * static_cast<float>(second + 1)};
          ASSERT_EQ(FloatsOf(Own(results[0]).get())[0], sums[0]);
          ASSERT_EQ(FloatsOf(Own(results[1]).get())[0], sums[1]);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(CSessionTest, WrongCallsAreErrorsAndLeaveNoTensors) {
  const SessionOwner session(graph_.get());
  const GraphPtr other = NewGraph();
  TF_Operation* const foreign = Placeholder(other.get(), "foreign");
  const TensorPtr text = Strings({"a"});
  struct Case {
    TF_Output input;
    TF_Tensor* value;
    TF_Output output;
    TF_Code code;
    const char* message;
  };
  const Case cases[] = {
      {{x_, 0}, nullptr, {y_, 0}, TF_INVALID_ARGUMENT, "input_values[0] is null"},
      {{x_, 0},
       value_.get(),
       {y_, 1},
       TF_INVALID_ARGUMENT,
       "outputs[0] is output 1 of 'y' (AddV2), which has 1 outputs"},
      {{x_, 0},
       value_.get(),
       {foreign, 0},
       TF_INVALID_ARGUMENT,
       "outputs[0] is 'foreign' (Placeholder) of another graph"},
      {{nullptr, 0}, value_.get(), {y_, 0}, TF_INVALID_ARGUMENT, "inputs[0] is null"},
      {{x_, 0}, text.get(), {y_, 0}, TF_INVALID_ARGUMENT, nullptr},
      {{two_, 0}, value_.get(), {y_, 0}, TF_INVALID_ARGUMENT, nullptr},
  };
  for (const Case& test : cases) {
    const Status status;
    TF_Tensor* result = value_.get();
    TF_SessionRun(session.get(), nullptr, &test.input, &test.value, 1, &test.output, &result, 1,
                  nullptr, 0, nullptr, status);
    EXPECT_EQ(status.code(), test.code) << status.message();
    if (test.message != nullptr) {
      EXPECT_EQ(status.message(), test.message);
    }
    EXPECT_EQ(result, nullptr);
  }
}

TEST_F(CSessionTest, WrongArraysAreErrors) {
  const SessionOwner session(graph_.get());
  const TF_Output input = {x_, 0};
  const TF_Output output = {y_, 0};
  const TF_Operation* const target = y_;
  struct Case {
    const TF_Output* inputs;
    bool has_values;
    int ninputs;
    const TF_Output* outputs;
    bool has_results;
    int noutputs;
    const TF_Operation* const* targets;
    int ntargets;
    const char* message;
  };
  const Case cases[] = {
      {nullptr, true, -1, nullptr, true, 0, nullptr, 0, "there are -1 inputs, which are null"},
      {nullptr, true, 1, nullptr, true, 0, nullptr, 0, "there are 1 inputs, which are null"},
      {&input, false, 1, &output, true, 1, nullptr, 0, "input_values of 1 elements is null"},
      {&input, true, 1, &output, true, -1, nullptr, 0, "there are -1 outputs"},
      {&input, true, 1, nullptr, true, 1, nullptr, 0, "there are 1 outputs, which are null"},
      {&input, true, 1, &output, false, 1, nullptr, 0, "output_values of 1 elements is null"},
      {&input, true, 1, &output, true, 1, nullptr, 1, "target_opers of 1 elements is null"},
      {&input, true, 1, &output, true, 1, &target, -1, "target_opers has -1 elements"},
  };
  for (const Case& test : cases) {
    const Status status;
    TF_Tensor* value = value_.get();
    TF_Tensor* result = nullptr;
    TF_SessionRun(session.get(), nullptr, test.inputs, test.has_values ? &value : nullptr,
                  test.ninputs, test.outputs, test.has_results ? &result : nullptr, test.noutputs,
                  test.targets, test.ntargets, nullptr, status);
    EXPECT_EQ(status.code(), TF_INVALID_ARGUMENT);
    EXPECT_EQ(status.message(), test.message);
    const char* handle = nullptr;
    TF_SessionPRunSetup(session.get(), &input, 1, &output, 1, nullptr, 0, &handle, status);
    ASSERT_EQ(status.code(), TF_OK) << status.message();
    TF_SessionPRun(session.get(), handle, test.inputs, test.has_values ? &value : nullptr,
                   test.ninputs, test.outputs, test.has_results ? &result : nullptr, test.noutputs,
                   test.targets, test.ntargets, status);
    EXPECT_EQ(status.message(), test.message);
    EXPECT_EQ(result, nullptr);
    TF_DeletePRunHandle(handle);
  }
}

TEST_F(CSessionTest, HandlesOfOtherPartialRunsAreErrors) {
  const auto session = std::make_unique<SessionOwner>(graph_.get());
  auto other = std::make_unique<SessionOwner>(graph_.get());
  const TF_Output input = {x_, 0};
  const TF_Output output = {y_, 0};
  const char* handle = nullptr;
  const Status status;
  TF_SessionPRunSetup(other->get(), &input, 1, &output, 1, nullptr, 0, &handle, status);
  ASSERT_EQ(status.code(), TF_OK) << status.message();
  const auto run = [&](const char* with_handle) {
    TF_Tensor* value = value_.get();
    TF_Tensor* result = nullptr;
    TF_SessionPRun(session->get(), with_handle, &input, &value, 1, &output, &result, 1, nullptr, 0,
                   status);
    EXPECT_EQ(status.code(), TF_INVALID_ARGUMENT);
    EXPECT_EQ(result, nullptr);
    return status.message();
  };
  const std::string no_run = "the session has no partial run with handle '";
  EXPECT_EQ(run(nullptr), no_run + "'");
  EXPECT_EQ(run("nothing"), no_run + "nothing'");
  EXPECT_EQ(run(handle), no_run + handle + "'");
  // The handle outlives its session.
  other = nullptr;
  EXPECT_EQ(run(handle), no_run + handle + "'");
  TF_DeletePRunHandle(handle);
  TF_DeletePRunHandle(nullptr);
}

TEST_F(CSessionTest, FillsMetadata) {
  const SessionOwner session(graph_.get());
  const Status status;
  RunOptions options;
  options.set_trace_level(RunOptions::FULL_TRACE);
  const std::string bytes = options.SerializeAsString();
  const BufferPtr run_options(TF_NewBufferFromString(bytes.data(), bytes.size()), &TF_DeleteBuffer);
  const BufferPtr metadata = NewBuffer();
  const TF_Output input = {x_, 0};
  const TF_Output output = {y_, 0};
  TF_Tensor* const value = value_.get();
  TF_Tensor* result = nullptr;
  TF_SessionRun(session.get(), run_options.get(), &input, &value, 1, &output, &result, 1, nullptr,
                0, metadata.get(), status);
  ASSERT_EQ(status.code(), TF_OK) << status.message();
  TF_DeleteTensor(result);
  RunMetadata parsed;
  ASSERT_TRUE(parsed.ParseFromArray(metadata->data, static_cast<int>(metadata->length)));
  EXPECT_GT(parsed.step_stats().dev_stats_size(), 0);
}

TEST_F(CSessionTest, PartialRunsComputeEachValueOnce) {
  TF_Operation* const z = Placeholder(graph_.get(), "z");
  TF_Operation* const sum = Binary(graph_.get(), "AddV2", "sum", y_, z);
  const SessionOwner session(graph_.get());
  const Status status;
  const TF_Output inputs[] = {{x_, 0}, {z, 0}};
  const TF_Output outputs[] = {{product_, 0}, {sum, 0}};
  const char* handle = nullptr;
  TF_SessionPRunSetup(session.get(), inputs, 2, outputs, 2, nullptr, 0, &handle, status);
  ASSERT_EQ(status.code(), TF_OK) << status.message();
  TF_Tensor* value = value_.get();
  TF_Tensor* result = nullptr;
  // `sum` needs `z`.
  TF_SessionPRun(session.get(), handle, inputs, &value, 1, outputs + 1, &result, 1, nullptr, 0,
                 status);
  EXPECT_EQ(status.message(), "Must feed z:0 before sum can run");
  EXPECT_EQ(result, nullptr);
  // The call that failed has fed nothing.
  TF_SessionPRun(session.get(), handle, inputs, &value, 1, outputs, &result, 1, nullptr, 0, status);
  ASSERT_EQ(status.code(), TF_OK) << status.message();
  EXPECT_EQ(FloatsOf(Own(result).get()), (std::vector<float>{0.5f, 2}));
  const TensorPtr ten = Floats({}, {10});
  value = ten.get();
  TF_SessionPRun(session.get(), handle, inputs + 1, &value, 1, outputs + 1, &result, 1, nullptr, 0,
                 status);
  ASSERT_EQ(status.code(), TF_OK) << status.message();
  EXPECT_EQ(FloatsOf(Own(result).get()), (std::vector<float>{12.5f, 14}));
  TF_SessionPRun(session.get(), handle, inputs + 1, &value, 1, outputs + 1, &result, 1, nullptr, 0,
                 status);
  EXPECT_EQ(status.message(), "The feed z:0 had already been fed.");
  TF_DeletePRunHandle(handle);
}

TEST_F(CSessionTest, FeedsMayDifferFromTheShapeOfAPlaceholder) {
  TF_OperationDescription* desc = TF_NewOperation(graph_.get(), "Placeholder", "scalar");
  TF_SetAttrType(desc, "dtype", TF_FLOAT);
  TF_SetAttrShape(desc, "shape", nullptr, 0);
  const Status status;
  TF_Operation* const scalar = TF_FinishOperation(desc, status);
  ASSERT_EQ(status.code(), TF_OK) << status.message();
  TF_Operation* const sum = Binary(graph_.get(), "AddV2", "sum", scalar, two_);
  // A kernel refuses a shape that the graph did not foresee.
  TF_Operation* const triple = Const(graph_.get(), "triple", Floats({3}, {1, 2, 3}));
  TF_Operation* const wrong = Binary(graph_.get(), "AddV2", "wrong", scalar, triple);
  const SessionOwner session(graph_.get());
  const TensorPtr result = RunOnce(session.get(), {{scalar, 0}}, {value_.get()}, {sum, 0}, status);
  ASSERT_EQ(status.code(), TF_OK) << status.message();
  EXPECT_EQ(FloatsOf(result.get()), (std::vector<float>{3, 6}));
  EXPECT_EQ(RunOnce(session.get(), {{scalar, 0}}, {value_.get()}, {wrong, 0}, status), nullptr);
  EXPECT_EQ(status.code(), TF_INVALID_ARGUMENT) << status.message();
}

// TensorFlow's tests expect this: a fetched reference shares the memory of its variable.
TEST_F(CSessionTest, FetchedReferencesSeeAllUpdatesOfTheRun) {
  const Status status;
  TF_OperationDescription* const desc = TF_NewOperation(graph_.get(), "VariableV2", "v");
  TF_SetAttrType(desc, "dtype", TF_FLOAT);
  TF_SetAttrShape(desc, "shape", nullptr, 0);
  TF_Operation* const v = TF_FinishOperation(desc, status);
  ASSERT_EQ(status.code(), TF_OK) << status.message();
  TF_Operation* const start = Binary(graph_.get(), "Assign", "start", v, two_);
  TF_Operation* const first = Binary(graph_.get(), "AssignAdd", "first", v, two_);
  TF_Operation* const second = Binary(graph_.get(), "AssignSub", "second", v, half_);
  const SessionOwner session(graph_.get());
  RunOnce(session.get(), {}, {}, {start, 0}, status);
  ASSERT_EQ(status.code(), TF_OK) << status.message();
  const TF_Output outputs[] = {{v, 0}, {first, 0}, {second, 0}};
  TF_Tensor* results[3] = {};
  TF_SessionRun(session.get(), nullptr, nullptr, nullptr, 0, outputs, results, 3, nullptr, 0,
                nullptr, status);
  ASSERT_EQ(status.code(), TF_OK) << status.message();
  for (TF_Tensor* result : results) {
    EXPECT_EQ(FloatsOf(Own(result).get()), std::vector<float>{3.5f});
  }
  // A target also counts.
  const TF_Operation* const target = first;
  TF_SessionRun(session.get(), nullptr, nullptr, nullptr, 0, outputs, results, 1, &target, 1,
                nullptr, status);
  ASSERT_EQ(status.code(), TF_OK) << status.message();
  EXPECT_EQ(FloatsOf(Own(results[0]).get()), std::vector<float>{5.5f});
}

TEST_F(CSessionTest, GraphMayBeDeletedBeforeTheSession) {
  GraphPtr graph = NewGraph();
  TF_Operation* const x = Placeholder(graph.get(), "x");
  TF_Operation* const neg = Unary(graph.get(), "Neg", "neg", x);
  const SessionOwner session(graph.get());
  graph = NewGraph();
  const Status status;
  const TensorPtr result = RunOnce(session.get(), {{x, 0}}, {value_.get()}, {neg, 0}, status);
  ASSERT_EQ(status.code(), TF_OK) << status.message();
  EXPECT_EQ(FloatsOf(result.get()), (std::vector<float>{-1, -4}));
}

TEST_F(CSessionTest, ClosedSessionsRunNothing) {
  const SessionOwner session(graph_.get());
  const Status status;
  RunOnce(session.get(), {{x_, 0}}, {value_.get()}, {y_, 0}, status);
  TF_CloseSession(session.get(), status);
  EXPECT_EQ(status.code(), TF_OK);
  RunOnce(session.get(), {{x_, 0}}, {value_.get()}, {y_, 0}, status);
  EXPECT_EQ(status.code(), TF_CANCELLED) << status.message();
}

TEST_F(CSessionTest, ThreadsRunWhileOthersAddOperations) {
  const SessionOwner session(graph_.get());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const std::string name = "neg" + std::to_string(t) + "_" + std::to_string(i);
        TF_Operation* const neg = Unary(graph_.get(), "Neg", name.c_str(), y_);
        const Status status;
        const TensorPtr result =
            RunOnce(session.get(), {{x_, 0}}, {value_.get()}, {neg, 0}, status);
        ASSERT_EQ(status.code(), TF_OK) << status.message();
        ASSERT_EQ(FloatsOf(result.get())[0], -2.5f);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(CSessionTest, ThreadsReadOperationsWhileOthersChangeThem) {
  TF_Operation* const read = Unary(graph_.get(), "Neg", "read", x_);
  std::thread writer([&] {
    const Status status;
    for (int i = 0; i < 200; ++i) {
      TF_UpdateEdge(graph_.get(), {i % 2 == 0 ? product_ : x_, 0}, {read, 0}, status);
      ASSERT_EQ(status.code(), TF_OK) << status.message();
      const std::string name = "reader" + std::to_string(i);
      Unary(graph_.get(), "Neg", name.c_str(), read);
    }
  });
  const Status status;
  const BufferPtr node_def = NewBuffer();
  for (int i = 0; i < 200; ++i) {
    TF_Output input;
    TF_OperationAllInputs(read, &input, 1);
    ASSERT_TRUE(input.oper == x_ || input.oper == product_);
    input = TF_OperationInput({read, 0});
    ASSERT_TRUE(input.oper == x_ || input.oper == product_);
    ASSERT_EQ(TF_OperationInputType({read, 0}), TF_FLOAT);
    ASSERT_EQ(TF_OperationInputListLength(read, "x", status), 1);
    TF_DataType dtype;
    TF_OperationGetAttrType(read, "T", &dtype, status);
    ASSERT_EQ(dtype, TF_FLOAT);
    TF_OperationToNodeDef(read, node_def.get(), status);
    ASSERT_EQ(status.code(), TF_OK) << status.message();
  }
  writer.join();
}

TEST(CSessionOptionsTest, WrongOptionsAreErrors) {
  const std::unique_ptr<TF_SessionOptions, decltype(&TF_DeleteSessionOptions)> options(
      TF_NewSessionOptions(), &TF_DeleteSessionOptions);
  const Status status;
  TF_SetConfig(options.get(), "\xff", 1, status);
  EXPECT_EQ(status.message(), "Unparseable ConfigProto");
  TF_SetTarget(options.get(), "grpc://nowhere");
  const GraphPtr graph = NewGraph();
  EXPECT_EQ(TF_NewSession(graph.get(), options.get(), status), nullptr);
  EXPECT_EQ(status.code(), TF_NOT_FOUND) << status.message();
}

TEST(CDeprecatedSessionTest, RunsByNames) {
  const GraphPtr graph = NewGraph();
  TF_Operation* const x = Placeholder(graph.get(), "x");
  Unary(graph.get(), "Neg", "neg", x);
  const BufferPtr def = NewBuffer();
  const Status status;
  TF_GraphToGraphDef(graph.get(), def.get(), status);
  TF_DeprecatedSession* const session = TF_NewDeprecatedSession(nullptr, status);
  ASSERT_NE(session, nullptr);
  TF_ExtendGraph(session, def->data, def->length, status);
  ASSERT_EQ(status.code(), TF_OK) << status.message();
  const char* input = "x";
  const char* output = "neg";
  const TensorPtr value = Floats({}, {3});
  TF_Tensor* in = value.get();
  TF_Tensor* out = nullptr;
  TF_Run(session, nullptr, &input, &in, 1, &output, &out, 1, nullptr, 0, nullptr, status);
  ASSERT_EQ(status.code(), TF_OK) << status.message();
  EXPECT_EQ(FloatsOf(Own(out).get()), std::vector<float>{-3});
  TF_DeleteDeprecatedSession(session, status);
}

TEST(CDeviceListTest, HasTheCpu) {
  const GraphPtr graph = NewGraph();
  const SessionOwner session(graph.get());
  const Status status;
  const std::unique_ptr<TF_DeviceList, decltype(&TF_DeleteDeviceList)> list(
      TF_SessionListDevices(session.get(), status), &TF_DeleteDeviceList);
  ASSERT_EQ(TF_DeviceListCount(list.get()), 1);
  EXPECT_STREQ(TF_DeviceListType(list.get(), 0, status), "CPU");
  EXPECT_EQ(TF_DeviceListName(list.get(), 1, status), nullptr);
  EXPECT_EQ(status.message(), "device 1 does not exist; there are 1");
}

}  // namespace
}  // namespace gradflow::capi_test
