// Functions and loops of the C API.
#include <string>
#include <vector>

#include "gradflow/proto/function.pb.h"
#include "tests/c/c_api_test_util.h"

namespace gradflow::capi_test {
namespace {

// y = -(a + b)
class CFunctionTest : public ::testing::Test {
 protected:
  CFunctionTest() {
    a_ = Placeholder(body_.get(), "A");
    b_ = Placeholder(body_.get(), "scope/b");
    sum_ = Binary(body_.get(), "AddV2", "sum", a_, b_);
    neg_ = Unary(body_.get(), "Neg", "neg", sum_);
  }

  FunctionPtr Make(const char* name, const std::vector<TF_Output>& inputs,
                   const std::vector<TF_Output>& outputs, const Status& status) {
    return FunctionPtr(
        TF_GraphToFunction(body_.get(), name, 0, -1, nullptr, static_cast<int>(inputs.size()),
                           inputs.data(), static_cast<int>(outputs.size()), outputs.data(), nullptr,
                           nullptr, "text", status),
        &TF_DeleteFunction);
  }

  const GraphPtr body_ = NewGraph();
  TF_Operation* a_;
  TF_Operation* b_;
  TF_Operation* sum_;
  TF_Operation* neg_;
};

TEST_F(CFunctionTest, IsCalledByItsName) {
  const Status status;
  const FunctionPtr function = Make("NegSum", {{a_, 0}, {b_, 0}}, {{neg_, 0}}, status);
  ASSERT_NE(function, nullptr) << status.message();
  EXPECT_STREQ(TF_FunctionName(function.get()), "NegSum");
  const GraphPtr graph = NewGraph();
  TF_GraphCopyFunction(graph.get(), function.get(), nullptr, status);
  ASSERT_EQ(status.code(), TF_OK) << status.message();
  EXPECT_EQ(TF_GraphNumFunctions(graph.get()), 1);
  TF_Operation* const x = Placeholder(graph.get(), "x");
  TF_Operation* const call = Binary(graph.get(), "NegSum", "call", x, x);
  const SessionOwner session(graph.get());
  const TensorPtr value = Floats({}, {3});
  const TensorPtr result = RunOnce(session.get(), {{x, 0}}, {value.get()}, {call, 0}, status);
  ASSERT_EQ(status.code(), TF_OK) << status.message();
  EXPECT_EQ(FloatsOf(result.get()), std::vector<float>{-6});
}

TEST_F(CFunctionTest, NamesArgumentsAfterNodes) {
  const Status status;
  const FunctionPtr function = Make("f", {{a_, 0}, {b_, 0}}, {{neg_, 0}, {a_, 0}}, status);
  ASSERT_NE(function, nullptr) << status.message();
  const BufferPtr buffer = NewBuffer();
  TF_FunctionToFunctionDef(function.get(), buffer.get(), status);
  FunctionDef def;
  ASSERT_TRUE(def.ParseFromArray(buffer->data, static_cast<int>(buffer->length)));
  EXPECT_EQ(def.signature().input_arg(0).name(), "a_0");
  EXPECT_EQ(def.signature().input_arg(1).name(), "scope_b");
  EXPECT_EQ(def.signature().output_arg(0).name(), "neg");
  EXPECT_EQ(def.signature().output_arg(1).name(), "a");
  EXPECT_EQ(def.ret().at("neg"), "neg_0:y:0");
  EXPECT_EQ(def.ret().at("a"), "a_0");
  EXPECT_EQ(def.signature().description(), "text");
}

TEST_F(CFunctionTest, HashIsPartOfTheName) {
  const Status status;
  const TF_Output inputs[] = {{a_, 0}, {b_, 0}};
  const TF_Output output = {neg_, 0};
  std::string names[2];
  for (std::string& name : names) {
    const FunctionPtr function(TF_GraphToFunction(body_.get(), "f", 1, -1, nullptr, 2, inputs, 1,
                                                  &output, nullptr, nullptr, nullptr, status),
                               &TF_DeleteFunction);
    name = TF_FunctionName(function.get());
  }
  EXPECT_EQ(names[0].substr(0, 2), "f_");
  EXPECT_EQ(names[0].size(), 18u);
  EXPECT_EQ(names[0], names[1]);
}

TEST_F(CFunctionTest, MissingInputsAreErrors) {
  const Status status;
  const TF_Operation* const opers[] = {sum_};
  const TF_Output input = {a_, 0};
  const TF_Output output = {sum_, 0};
  EXPECT_EQ(TF_GraphToFunction(body_.get(), "f", 0, 1, opers, 1, &input, 1, &output, nullptr,
                               nullptr, nullptr, status),
            nullptr);
  EXPECT_EQ(status.message(),
            "Input 1, 'scope/b:0', of node 'sum' in function 'f' is not available. You might need "
            "to include it in inputs or include its source node in the body");
  EXPECT_EQ(Make("f", {{a_, 0}, {a_, 0}, {b_, 0}}, {{neg_, 0}}, status), nullptr);
  EXPECT_EQ(status.code(), TF_INVALID_ARGUMENT);
  EXPECT_EQ(Make("f", {{nullptr, 0}}, {}, status), nullptr);
  EXPECT_EQ(status.code(), TF_INVALID_ARGUMENT);
  const auto make = [&](int num_opers, int ninputs, int noutputs, int num_controls) {
    EXPECT_EQ(TF_GraphToFunctionWithControlOutputs(
                  body_.get(), "f", 0, num_opers, nullptr, ninputs, nullptr, noutputs, nullptr,
                  nullptr, num_controls, nullptr, nullptr, nullptr, nullptr, status),
              nullptr);
    return status.message();
  };
  EXPECT_EQ(make(1, 0, 0, 0), "opers of 1 elements is null");
  EXPECT_EQ(make(0, 1, 0, 0), "inputs of 1 elements is null");
  EXPECT_EQ(make(0, -1, 0, 0), "inputs has -1 elements");
  EXPECT_EQ(make(0, 0, 1, 0), "outputs of 1 elements is null");
  EXPECT_EQ(make(0, 0, 0, 1), "control_outputs of 1 elements is null");
}

TEST_F(CFunctionTest, NamesOfOpsAreTaken) {
  const Status status;
  const FunctionPtr function = Make("Neg", {{a_, 0}, {b_, 0}}, {{neg_, 0}}, status);
  ASSERT_NE(function, nullptr);
  const GraphPtr graph = NewGraph();
  TF_GraphCopyFunction(graph.get(), function.get(), nullptr, status);
  EXPECT_EQ(status.message(),
            "Cannot add function 'Neg' because an op with the same name already exists.");
}

TEST_F(CFunctionTest, RepeatedOperationsAreErrors) {
  const Status status;
  const TF_Operation* const opers[] = {sum_, neg_, sum_};
  const TF_Output inputs[] = {{a_, 0}, {b_, 0}};
  const TF_Output output = {neg_, 0};
  EXPECT_EQ(TF_GraphToFunction(body_.get(), "f", 0, 3, opers, 2, inputs, 1, &output, nullptr,
                               nullptr, nullptr, status),
            nullptr);
  EXPECT_EQ(status.message(), "opers[2] is 'sum' (AddV2), which is given twice");
}

// Returns a function of x that returns op(x).
FunctionPtr UnaryFunction(const char* name, const char* op, TF_Graph* graph) {
  const std::string prefix = std::string(name) + "_";
  TF_Operation* const x = Placeholder(graph, (prefix + "x").c_str());
  TF_Operation* const y = Unary(graph, op, (prefix + "y").c_str(), x);
  const TF_Output input = {x, 0};
  const TF_Output output = {y, 0};
  const TF_Operation* const opers[] = {y};
  const Status status;
  FunctionPtr function(TF_GraphToFunction(graph, name, 0, 1, opers, 1, &input, 1, &output, nullptr,
                                          nullptr, nullptr, status),
                       &TF_DeleteFunction);
  EXPECT_EQ(status.code(), TF_OK) << status.message();
  return function;
}

TEST(CGraphCopyFunctionTest, AddsAllFunctionsOrNone) {
  const Status status;
  const GraphPtr body = NewGraph();
  TF_GraphCopyFunction(body.get(), UnaryFunction("Inner", "Neg", body.get()).get(), nullptr,
                       status);
  const FunctionPtr outer = UnaryFunction("Outer", "Inner", body.get());
  const GraphPtr graph = NewGraph();
  // A gradient whose name is taken by an op fails after the functions that Outer calls.
  const FunctionPtr wrong = UnaryFunction("Neg", "Square", body.get());
  TF_GraphCopyFunction(graph.get(), outer.get(), wrong.get(), status);
  EXPECT_EQ(status.code(), TF_INVALID_ARGUMENT);
  EXPECT_EQ(TF_GraphNumFunctions(graph.get()), 0);
  // The gradient may be one of these functions.
  TF_GraphCopyFunction(graph.get(), outer.get(), outer.get(), status);
  ASSERT_EQ(status.code(), TF_OK) << status.message();
  EXPECT_EQ(TF_GraphNumFunctions(graph.get()), 2);
}

TEST(CGraphRemoveFunctionTest, KeepsFunctionsThatNodesReach) {
  const Status status;
  const GraphPtr body = NewGraph();
  const FunctionPtr inner = UnaryFunction("Inner", "Neg", body.get());
  TF_GraphCopyFunction(body.get(), inner.get(), nullptr, status);
  FunctionPtr outer = UnaryFunction("Outer", "Inner", body.get());
  // Imported functions do not bring the functions that they call.
  const BufferPtr buffer = NewBuffer();
  TF_FunctionToFunctionDef(outer.get(), buffer.get(), status);
  outer.reset(TF_FunctionImportFunctionDef(buffer->data, buffer->length, status));
  const GraphPtr graph = NewGraph();
  TF_GraphCopyFunction(graph.get(), outer.get(), nullptr, status);
  ASSERT_EQ(status.code(), TF_OK) << status.message();
  TF_GraphCopyFunction(graph.get(), inner.get(), inner.get(), status);
  TF_GraphCopyFunction(graph.get(), UnaryFunction("Last", "Square", body.get()).get(), nullptr,
                       status);
  ASSERT_EQ(TF_GraphNumFunctions(graph.get()), 3);
  TF_GraphRemoveFunction(graph.get(), "Nothing", status);
  EXPECT_EQ(status.message(), "Function Nothing not found");
  // No node calls a function.
  TF_GraphRemoveFunction(graph.get(), "Inner", status);
  ASSERT_EQ(status.code(), TF_OK) << status.message();
  EXPECT_EQ(TF_GraphNumFunctions(graph.get()), 2);
  TF_GraphCopyFunction(graph.get(), inner.get(), nullptr, status);
  ASSERT_EQ(status.code(), TF_OK) << status.message();
  TF_Operation* const x = Placeholder(graph.get(), "x");
  TF_Operation* const call = Unary(graph.get(), "Outer", "call", x);
  const SessionOwner session(graph.get());
  const TensorPtr value = Floats({}, {3});
  for (int i = 0; i < 2; ++i) {
    const TensorPtr result = RunOnce(session.get(), {{x, 0}}, {value.get()}, {call, 0}, status);
    ASSERT_EQ(status.code(), TF_OK) << status.message();
    EXPECT_EQ(FloatsOf(result.get()), std::vector<float>{-3});
    TF_GraphRemoveFunction(graph.get(), "Inner", status);
    EXPECT_EQ(status.message(), "node 'call' (Outer): the node calls function Outer");
  }
}

TEST(CWhileTest, CountsToTheLimit) {
  const GraphPtr graph = NewGraph();
  TF_Operation* const x = Placeholder(graph.get(), "x");
  const Status status;
  TF_Output inputs[] = {{x, 0}};
  TF_WhileParams params = TF_NewWhile(graph.get(), inputs, 1, status);
  ASSERT_EQ(status.code(), TF_OK) << status.message();
  params.name = "loop";
  TF_Operation* const limit = Const(params.cond_graph, "limit", Floats({}, {10}));
  params.cond_output = {
      Binary(params.cond_graph, "Less", "less", params.cond_inputs[0].oper, limit), 0};
  TF_Operation* const three = Const(params.body_graph, "three", Floats({}, {3}));
  params.body_outputs[0] = {
      Binary(params.body_graph, "AddV2", "next", params.body_inputs[0].oper, three), 0};
  TF_Output output;
  TF_FinishWhile(&params, status, &output);
  ASSERT_EQ(status.code(), TF_OK) << status.message();
  const SessionOwner session(graph.get());
  const TensorPtr value = Floats({}, {2});
  const TensorPtr result = RunOnce(session.get(), {{x, 0}}, {value.get()}, output, status);
  ASSERT_EQ(status.code(), TF_OK) << status.message();
  EXPECT_EQ(FloatsOf(result.get()), std::vector<float>{11});
}

TEST(CWhileTest, UnsetMembersAreErrors) {
  const GraphPtr graph = NewGraph();
  TF_Operation* const x = Placeholder(graph.get(), "x");
  const Status status;
  TF_Output inputs[] = {{x, 0}};
  TF_WhileParams params = TF_NewWhile(graph.get(), inputs, 1, status);
  params.name = "loop";
  TF_Output output;
  TF_FinishWhile(&params, status, &output);
  EXPECT_EQ(status.message(), "TF_WhileParams `cond_output` field isn't set");
  const auto finish = [&](void (*change)(TF_WhileParams * params, TF_Operation * foreign)) {
    TF_WhileParams wrong = TF_NewWhile(graph.get(), inputs, 1, status);
    wrong.name = "loop";
    const TensorPtr no = Own(TF_AllocateTensor(TF_BOOL, nullptr, 0, 1));
    *static_cast<bool*>(TF_TensorData(no.get())) = false;
    wrong.cond_output = {Const(wrong.cond_graph, "no", no), 0};
    wrong.body_outputs[0] = wrong.body_inputs[0];
    change(&wrong, x);
    TF_FinishWhile(&wrong, status, &output);
    EXPECT_EQ(status.code(), TF_INVALID_ARGUMENT);
    return status.message();
  };
  EXPECT_EQ(finish([](TF_WhileParams* params, TF_Operation* foreign) {
              params->cond_output = {foreign, 0};
            }),
            "Requested return tensor 'x:0' not found in graph def");
  EXPECT_EQ(finish([](TF_WhileParams* params, TF_Operation*) { params->cond_output.index = 9; }),
            "Invalid return output 9 of node 'no', which has 1 output(s)");
  EXPECT_EQ(finish([](TF_WhileParams* params, TF_Operation* foreign) {
              params->body_outputs[0] = {foreign, 0};
            }),
            "Requested return tensor 'x:0' not found in graph def");
  EXPECT_EQ(finish([](TF_WhileParams* params, TF_Operation*) {
              params->body_outputs[0] = {Placeholder(params->body_graph, "number", TF_INT32), 0};
            }),
            "TF_WhileParams `body_outputs[0]` has type int32, expected float");
  EXPECT_NE(finish([](TF_WhileParams* params, TF_Operation*) { params->name = "bad name"; }), "");
  // The functions of a loop that is wrong are not in the graph.
  EXPECT_EQ(TF_GraphNumFunctions(graph.get()), 0);
  // Changed parameters belong to the program.
  TF_WhileParams changed = TF_NewWhile(graph.get(), inputs, 1, status);
  const TF_WhileParams copy = {2,
                               changed.cond_graph,
                               changed.cond_inputs,
                               changed.cond_output,
                               changed.body_graph,
                               changed.body_inputs,
                               changed.body_outputs,
                               "loop"};
  TF_FinishWhile(&copy, status, &output);
  EXPECT_EQ(status.code(), TF_INVALID_ARGUMENT);
  // A session may outlive the graph of a condition.
  {
    const SessionOwner session(changed.cond_graph);
    TF_AbortWhile(&changed);
  }
  const TF_WhileParams aborted = TF_NewWhile(graph.get(), inputs, 1, status);
  TF_AbortWhile(&aborted);
  TF_NewWhile(graph.get(), inputs, 0, status);
  EXPECT_EQ(status.code(), TF_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace gradflow::capi_test
