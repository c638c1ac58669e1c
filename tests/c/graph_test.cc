// Graphs and operations of the C API.
#include <string>
#include <utility>
#include <vector>

#include "gradflow/proto/attr_value.pb.h"
#include "gradflow/proto/graph.pb.h"
#include "tensorflow/c/ops.h"
#include "tests/c/c_api_test_util.h"

namespace gradflow::capi_test {
namespace {

GraphDef DefOf(TF_Graph* graph) {
  const BufferPtr buffer = NewBuffer();
  const Status status;
  TF_GraphToGraphDef(graph, buffer.get(), status);
  GraphDef def;
  EXPECT_TRUE(def.ParseFromArray(buffer->data, static_cast<int>(buffer->length)));
  return def;
}

TEST(CGraphTest, FinishOperationReportsErrorsOfTheDescription) {
  const GraphPtr graph = NewGraph();
  const GraphPtr other = NewGraph();
  TF_Operation* const x = Placeholder(graph.get(), "x");
  TF_Operation* const foreign = Placeholder(other.get(), "foreign");
  struct Case {
    const char* op;
    const char* name;
    std::vector<TF_Output> inputs;
    TF_Code code;
    const char* message;
  };
  const Case cases[] = {
      {"Neg",
       "a",
       {{foreign, 0}},
       TF_INVALID_ARGUMENT,
       "operation 'a': an input is 'foreign' (Placeholder) of another graph"},
      {"Neg",
       "a",
       {{x, 1}},
       TF_INVALID_ARGUMENT,
       "operation 'a': an input is output 1 of 'x' (Placeholder), which has 1 outputs"},
      {"Neg", "a", {{nullptr, 0}}, TF_INVALID_ARGUMENT, "operation 'a': an input is null"},
      {"Neg",
       "x",
       {{x, 0}},
       TF_INVALID_ARGUMENT,
       "node 'x' (Neg): the graph already has a node of this name"},
      {"NoSuchOp", "a", {}, TF_NOT_FOUND, nullptr},
      {"Neg", "bad name", {{x, 0}}, TF_INVALID_ARGUMENT, nullptr},
      {"Neg", "a", {}, TF_INVALID_ARGUMENT, nullptr},
  };
  for (const Case& test : cases) {
    TF_OperationDescription* const desc = TF_NewOperation(graph.get(), test.op, test.name);
    for (const TF_Output& input : test.inputs) TF_AddInput(desc, input);
    const Status status;
    EXPECT_EQ(TF_FinishOperation(desc, status), nullptr);
    EXPECT_EQ(status.code(), test.code) << status.message();
    if (test.message != nullptr) {
      EXPECT_EQ(status.message(), test.message);
    }
  }
  EXPECT_EQ(DefOf(graph.get()).node_size(), 1);
}

TEST(CGraphTest, WrongAttributesAreErrorsOfFinish) {
  const GraphPtr graph = NewGraph();
  const Status status;
  TF_OperationDescription* desc = TF_NewOperation(graph.get(), "Placeholder", "x");
  const int64_t dims[] = {-7};
  TF_SetAttrShape(desc, "shape", dims, 1);
  EXPECT_EQ(TF_FinishOperation(desc, status), nullptr);
  EXPECT_EQ(status.code(), TF_INVALID_ARGUMENT);
  EXPECT_NE(status.message().find("operation 'x': attribute 'shape': "), std::string::npos)
      << status.message();
  desc = TF_NewOperation(graph.get(), "Placeholder", "x");
  TF_SetAttrIntList(desc, "dtype", nullptr, 3);
  EXPECT_EQ(TF_FinishOperation(desc, status), nullptr);
  EXPECT_EQ(status.message(), "operation 'x': attribute 'dtype': a list of 3 elements is null");
  desc = TF_NewOperation(graph.get(), "Placeholder", "x");
  TF_SetAttrValueProto(desc, "dtype", "\xff", 1, status);
  EXPECT_EQ(status.code(), TF_INVALID_ARGUMENT);
  TF_SetAttrInt(desc, "dtype", 1);
  EXPECT_EQ(TF_FinishOperation(desc, status), nullptr);
  EXPECT_EQ(status.code(), TF_INVALID_ARGUMENT);
}

TEST(CGraphTest, NullArgumentsOfSettersAreErrorsOfFinish) {
  const GraphPtr graph = NewGraph();
  using Set = void (*)(TF_OperationDescription * desc, const Status& status);
  const std::pair<Set, const char*> cases[] = {
      {[](TF_OperationDescription* desc, const Status&) {
         TF_SetAttrString(desc, "a", nullptr, 3);
       },
       "operation 'x': attribute 'a': a string of 3 bytes is null"},
      {[](TF_OperationDescription* desc, const Status&) {
         const void* const strings[] = {nullptr};
         const size_t length = 3;
         TF_SetAttrStringList(desc, "a", strings, &length, 1);
       },
       "operation 'x': attribute 'a': a string of 3 bytes is null"},
      {[](TF_OperationDescription* desc, const Status&) {
         TF_SetAttrStringList(desc, "a", nullptr, nullptr, -1);
       },
       "operation 'x': attribute 'a': a list has -1 elements"},
      {[](TF_OperationDescription* desc, const Status&) {
         TF_SetAttrFuncName(desc, "a", nullptr, 3);
       },
       "operation 'x': attribute 'a': a string of 3 bytes is null"},
      {[](TF_OperationDescription* desc, const Status&) {
         TF_SetAttrShapeList(desc, "a", nullptr, nullptr, 2);
       },
       "operation 'x': attribute 'a': a list of 2 elements is null"},
      {[](TF_OperationDescription* desc, const Status&) {
         TF_SetAttrFloatList(desc, nullptr, nullptr, 2);
       },
       "operation 'x': attribute '': a list of 2 elements is null"},
      {[](TF_OperationDescription* desc, const Status& status) {
         TF_SetAttrTensorShapeProtoList(desc, "a", nullptr, nullptr, 2, status);
         EXPECT_EQ(status.message(), "attribute 'a': a list of 2 elements is null");
       },
       nullptr},
      {[](TF_OperationDescription* desc, const Status& status) {
         TF_SetAttrTensor(desc, "a", nullptr, status);
         EXPECT_EQ(status.message(), "attribute 'a': a tensor is null");
       },
       nullptr},
  };
  for (const auto& [set, message] : cases) {
    TF_OperationDescription* const desc = TF_NewOperation(graph.get(), "Placeholder", "x");
    const Status status;
    set(desc, status);
    EXPECT_EQ(TF_FinishOperation(desc, status), nullptr);
    EXPECT_EQ(status.code(), TF_INVALID_ARGUMENT);
    if (message != nullptr) {
      EXPECT_EQ(status.message(), message);
    }
  }
}

TEST(CGraphTest, AttributesOfOtherKindsAreErrors) {
  const GraphPtr graph = NewGraph();
  TF_Operation* const x = Placeholder(graph.get(), "x");
  const Status status;
  int64_t number;
  TF_OperationGetAttrInt(x, "dtype", &number, status);
  EXPECT_EQ(status.code(), TF_INVALID_ARGUMENT);
  EXPECT_EQ(status.message(), "node 'x' (Placeholder): attribute dtype is DT_FLOAT, not an int");
  TF_OperationGetAttrMetadata(x, "nothing", status);
  EXPECT_EQ(status.message(), "Operation 'x' has no attr named 'nothing'.");
  char name[8];
  TF_OperationGetAttrName(x, 9, name, status);
  EXPECT_EQ(status.code(), TF_INVALID_ARGUMENT);
  EXPECT_EQ(TF_OperationGetAttrNameLength(x, 9), -1);
}

TEST(CGraphTest, FindsConsumersAndControlEdges) {
  const GraphPtr graph = NewGraph();
  TF_Operation* const x = Placeholder(graph.get(), "x");
  TF_Operation* const sum = Binary(graph.get(), "AddV2", "sum", x, x);
  TF_OperationDescription* const desc = TF_NewOperation(graph.get(), "Neg", "neg");
  TF_AddInput(desc, {sum, 0});
  TF_AddControlInput(desc, x);
  const Status status;
  TF_Operation* const neg = TF_FinishOperation(desc, status);
  EXPECT_EQ(TF_OperationOutputNumConsumers({x, 0}), 2);
  TF_Input consumers[1];
  EXPECT_EQ(TF_OperationOutputConsumers({x, 0}, consumers, 1), 1);
  EXPECT_EQ(consumers[0].oper, sum);
  EXPECT_EQ(TF_OperationNumControlOutputs(x), 1);
  TF_Operation* controls[2];
  ASSERT_EQ(TF_OperationGetControlInputs(neg, controls, 2), 1);
  EXPECT_EQ(controls[0], x);
  EXPECT_EQ(TF_OperationInput({neg, 0}).oper, sum);
  EXPECT_EQ(TF_OperationInput({neg, 5}).oper, nullptr);
}

TEST(CGraphTest, ChangesOfOperationsShowInTheGraphDef) {
  const GraphPtr graph = NewGraph();
  TF_Operation* const x = Placeholder(graph.get(), "x");
  TF_Operation* const y = Placeholder(graph.get(), "y");
  TF_Operation* const z = Placeholder(graph.get(), "z", TF_INT32);
  TF_Operation* const neg = Unary(graph.get(), "Neg", "neg", x);
  const Status status;
  TF_UpdateEdge(graph.get(), {y, 0}, {neg, 0}, status);
  EXPECT_EQ(status.code(), TF_OK) << status.message();
  EXPECT_EQ(TF_OperationOutputNumConsumers({x, 0}), 0);
  EXPECT_EQ(TF_OperationOutputNumConsumers({y, 0}), 1);
  TF_UpdateEdge(graph.get(), {z, 0}, {neg, 0}, status);
  EXPECT_EQ(status.code(), TF_INVALID_ARGUMENT);
  TF_UpdateEdge(graph.get(), {y, 0}, {neg, 1}, status);
  EXPECT_EQ(status.message(), "dst is input 1 of 'neg' (Neg), which has 1 inputs");
  TF_AddOperationControlInput(graph.get(), neg, x);
  TF_AddOperationControlInput(graph.get(), neg, x);
  EXPECT_EQ(TF_OperationNumControlInputs(neg), 1);
  TF_SetRequestedDevice(graph.get(), neg, "/cpu:0");
  EXPECT_STREQ(TF_OperationDevice(neg), "/cpu:0");
  TF_RemoveAllControlInputs(graph.get(), neg);
  EXPECT_EQ(TF_OperationNumControlInputs(neg), 0);
  // A session sees the new edge.
  const SessionOwner session(graph.get());
  const TensorPtr value = Floats({}, {3});
  const TensorPtr result = RunOnce(session.get(), {{y, 0}}, {value.get()}, {neg, 0}, status);
  ASSERT_EQ(status.code(), TF_OK) << status.message();
  EXPECT_EQ(FloatsOf(result.get()), std::vector<float>{-3});
}

TEST(CGraphTest, AttributesKeepTheTypesOfOperations) {
  const GraphPtr graph = NewGraph();
  TF_Operation* const x = Placeholder(graph.get(), "x");
  TF_Operation* const sum = Binary(graph.get(), "AddV2", "sum", x, x);
  const Status status;
  const auto cast = [&](const char* name) {
    TF_OperationDescription* const desc = TF_NewOperation(graph.get(), "Cast", name);
    TF_AddInput(desc, {x, 0});
    TF_SetAttrType(desc, "DstT", TF_FLOAT);
    return TF_FinishOperation(desc, status);
  };
  TF_Operation* const first = cast("first");
  const auto set = [&](TF_Operation* oper, const char* attr, AttrValue value) {
    const std::string bytes = value.SerializeAsString();
    const BufferPtr buffer(TF_NewBufferFromString(bytes.data(), bytes.size()), &TF_DeleteBuffer);
    TF_SetAttr(graph.get(), oper, attr, buffer.get(), status);
    return status.message();
  };
  AttrValue type;
  type.set_type(DT_DOUBLE);
  // The kernel would read numbers of 8 bytes.
  EXPECT_EQ(set(first, "SrcT", type),
            "node 'first' (Cast): attribute SrcT sets the types of the inputs or outputs, which "
            "cannot change");
  EXPECT_EQ(set(first, "DstT", type),
            "node 'first' (Cast): attribute DstT sets the types of the inputs or outputs, which "
            "cannot change");
  EXPECT_EQ(status.code(), TF_UNIMPLEMENTED);
  EXPECT_NE(set(sum, "nothing", type), "");
  AttrValue flag;
  flag.set_b(true);
  EXPECT_EQ(set(first, "Truncate", flag), "");
  EXPECT_EQ(set(first, "_any", type), "");
  TF_Operation* const second = cast("second");
  ASSERT_NE(second, nullptr) << status.message();
  EXPECT_EQ(TF_OperationInputType({second, 0}), TF_FLOAT);
  const SessionOwner session(graph.get());
  const TensorPtr value = Floats({2}, {1, 2});
  const TensorPtr result = RunOnce(session.get(), {{x, 0}}, {value.get()}, {first, 0}, status);
  ASSERT_EQ(status.code(), TF_OK) << status.message();
  EXPECT_EQ(FloatsOf(result.get()), (std::vector<float>{1, 2}));
}

TEST(CGraphTest, CyclesAreErrorsOfRunsAndGradients) {
  const GraphPtr graph = NewGraph();
  TF_Operation* const x = Placeholder(graph.get(), "x");
  TF_Operation* const first = Unary(graph.get(), "Neg", "first", x);
  TF_Operation* const second = Unary(graph.get(), "Neg", "second", first);
  TF_Operation* const other = Unary(graph.get(), "Square", "other", x);
  const SessionOwner session(graph.get());
  const Status status;
  const TensorPtr value = Floats({}, {3});
  // An edge may come from a later operation.
  TF_UpdateEdge(graph.get(), {other, 0}, {first, 0}, status);
  ASSERT_EQ(status.code(), TF_OK) << status.message();
  const TensorPtr result = RunOnce(session.get(), {{x, 0}}, {value.get()}, {second, 0}, status);
  ASSERT_EQ(status.code(), TF_OK) << status.message();
  EXPECT_EQ(FloatsOf(result.get()), std::vector<float>{9});
  TF_UpdateEdge(graph.get(), {second, 0}, {first, 0}, status);
  if (status.code() != TF_OK) return;
  EXPECT_EQ(RunOnce(session.get(), {{x, 0}}, {value.get()}, {first, 0}, status), nullptr);
  EXPECT_EQ(status.code(), TF_INVALID_ARGUMENT) << status.message();
  TF_Tensor* constant = nullptr;
  EXPECT_EQ(TF_TryEvaluateConstant(graph.get(), {second, 0}, &constant, status), 0);
  TF_Output y = {second, 0};
  TF_Output by = {x, 0};
  TF_Output dy;
  TF_AddGradients(graph.get(), &y, 1, &by, 1, nullptr, status, &dy);
  EXPECT_EQ(status.code(), TF_INVALID_ARGUMENT) << status.message();
  // Other parts of the graph still run.
  const TensorPtr square = RunOnce(session.get(), {{x, 0}}, {value.get()}, {other, 0}, status);
  ASSERT_EQ(status.code(), TF_OK) << status.message();
  EXPECT_EQ(FloatsOf(square.get()), std::vector<float>{9});
}

TEST(CGraphTest, ImportsUniquifyAndMap) {
  const GraphPtr graph = NewGraph();
  TF_Operation* const x = Placeholder(graph.get(), "x");
  Unary(graph.get(), "Neg", "neg", x);
  const BufferPtr def = NewBuffer();
  const Status status;
  TF_GraphToGraphDef(graph.get(), def.get(), status);
  const std::unique_ptr<TF_ImportGraphDefOptions, decltype(&TF_DeleteImportGraphDefOptions)>
      options(TF_NewImportGraphDefOptions(), &TF_DeleteImportGraphDefOptions);

  TF_GraphImportGraphDef(graph.get(), def.get(), options.get(), status);
  EXPECT_EQ(status.code(), TF_INVALID_ARGUMENT) << "the names exist";
  EXPECT_EQ(DefOf(graph.get()).node_size(), 2);

  TF_ImportGraphDefOptionsSetUniquifyNames(options.get(), 1);
  TF_GraphImportGraphDef(graph.get(), def.get(), options.get(), status);
  ASSERT_EQ(status.code(), TF_OK) << status.message();
  EXPECT_NE(TF_GraphOperationByName(graph.get(), "neg_1"), nullptr);
  EXPECT_EQ(TF_OperationInput({TF_GraphOperationByName(graph.get(), "neg_1"), 0}).oper,
            TF_GraphOperationByName(graph.get(), "x_1"));

  TF_ImportGraphDefOptionsSetPrefix(options.get(), "neg");
  TF_ImportGraphDefOptionsSetUniquifyPrefix(options.get(), 1);
  TF_ImportGraphDefOptionsAddInputMapping(options.get(), "x", 0, {x, 0});
  TF_GraphImportGraphDef(graph.get(), def.get(), options.get(), status);
  ASSERT_EQ(status.code(), TF_OK) << status.message();
  TF_Operation* const mapped = TF_GraphOperationByName(graph.get(), "neg_2/neg");
  ASSERT_NE(mapped, nullptr);
  EXPECT_EQ(TF_OperationInput({mapped, 0}).oper, x);

  TF_ImportGraphDefOptionsAddReturnOutput(options.get(), "nothing", 0);
  TF_Output output;
  TF_GraphImportGraphDefWithReturnOutputs(graph.get(), def.get(), options.get(), &output, 1,
                                          status);
  EXPECT_EQ(status.message(), "Requested return tensor 'nothing:0' not found in graph def");
  TF_GraphImportGraphDefWithReturnOutputs(graph.get(), def.get(), options.get(), &output, 2,
                                          status);
  EXPECT_EQ(status.code(), TF_INVALID_ARGUMENT);
  const std::unique_ptr<TF_ImportGraphDefOptions, decltype(&TF_DeleteImportGraphDefOptions)>
      wrong_index(TF_NewImportGraphDefOptions(), &TF_DeleteImportGraphDefOptions);
  TF_ImportGraphDefOptionsSetPrefix(wrong_index.get(), "wrong");
  TF_ImportGraphDefOptionsAddReturnOutput(wrong_index.get(), "neg", 7);
  TF_GraphImportGraphDefWithReturnOutputs(graph.get(), def.get(), wrong_index.get(), &output, 1,
                                          status);
  EXPECT_EQ(status.message(), "Invalid return output 7 of node 'neg', which has 1 output(s)");
  EXPECT_EQ(TF_GraphOperationByName(graph.get(), "wrong/neg"), nullptr);
  TF_GraphImportGraphDefWithReturnOutputs(graph.get(), def.get(), options.get(), nullptr, 1,
                                          status);
  EXPECT_EQ(status.message(), "'return_outputs' must be preallocated to length 1");
  const BufferPtr broken(TF_NewBufferFromString("\xff\xff", 2), &TF_DeleteBuffer);
  TF_GraphImportGraphDef(graph.get(), broken.get(), options.get(), status);
  EXPECT_EQ(status.code(), TF_INVALID_ARGUMENT);
}

TEST(CGraphTest, EvaluatesConstants) {
  const GraphPtr graph = NewGraph();
  TF_Operation* const x = Placeholder(graph.get(), "x");
  TF_Operation* const c = Const(graph.get(), "c", Floats({2}, {1, 2}));
  const Status status;
  TF_Tensor* result = nullptr;
  EXPECT_EQ(TF_TryEvaluateConstant(graph.get(), {c, 0}, &result, status), 1);
  EXPECT_EQ(FloatsOf(Own(result).get()), (std::vector<float>{1, 2}));
  EXPECT_EQ(TF_TryEvaluateConstant(graph.get(), {x, 0}, &result, status), 0);
  EXPECT_EQ(result, nullptr);
  EXPECT_EQ(status.code(), TF_OK);
}

TEST(CGraphTest, GradientsLeaveTheGraphUnchangedOnError) {
  const GraphPtr graph = NewGraph();
  TF_Operation* const x = Placeholder(graph.get(), "x");
  TF_Operation* const y = Unary(graph.get(), "Square", "y", x);
  TF_OpDefinitionBuilder* const op = TF_NewOpDefinitionBuilder("CTestNoGradient");
  TF_OpDefinitionBuilderAddInput(op, "x: float");
  TF_OpDefinitionBuilderAddOutput(op, "y: float");
  const Status status;
  TF_RegisterOpDefinition(op, status);
  TF_Operation* const last = Unary(graph.get(), "CTestNoGradient", "last", y);
  const int before = DefOf(graph.get()).node_size();
  TF_Output dy;
  TF_Output of = {y, 0};
  TF_Output by = {x, 0};
  TF_AddGradientsWithPrefix(graph.get(), "y", &of, 1, &by, 1, nullptr, status, &dy);
  EXPECT_EQ(status.message(), "prefix 'y' conflicts with existing node in the graph");
  TF_Output of_last = {last, 0};
  TF_AddGradients(graph.get(), &of_last, 1, &by, 1, nullptr, status, &dy);
  EXPECT_EQ(status.code(), TF_UNIMPLEMENTED) << status.message();
  EXPECT_EQ(DefOf(graph.get()).node_size(), before);
  const TensorPtr axis = Own(TF_AllocateTensor(TF_INT32, nullptr, 0, 4));
  *static_cast<int32_t*>(TF_TensorData(axis.get())) = 0;
  TF_Operation* const zero = Const(graph.get(), "zero", axis);
  TF_Operation* const index = Binary(graph.get(), "ArgMax", "index", x, zero);
  TF_Output of_index = {index, 0};
  TF_AddGradients(graph.get(), &of_index, 1, &by, 1, nullptr, status, &dy);
  EXPECT_EQ(status.message(), "node 'index' (ArgMax): No gradient defined for op: ArgMax");
  // An error does not affect later calls.
  TF_AddGradients(graph.get(), &of, 1, &by, 1, nullptr, status, &dy);
  ASSERT_EQ(status.code(), TF_OK) << status.message();
  EXPECT_EQ(std::string(TF_OperationName(dy.oper)).substr(0, 10), "gradients/");
  const SessionOwner session(graph.get());
  const TensorPtr value = Floats({}, {3});
  const TensorPtr result = RunOnce(session.get(), {by}, {value.get()}, dy, status);
  ASSERT_EQ(status.code(), TF_OK) << status.message();
  EXPECT_EQ(FloatsOf(result.get()), std::vector<float>{6});
}

TEST(CGraphTest, ListsOpsKernelsAndDocumentation) {
  const BufferPtr ops(TF_GetAllOpList(), &TF_DeleteBuffer);
  ASSERT_NE(ops, nullptr);
  const Status status;
  const std::unique_ptr<TF_ApiDefMap, decltype(&TF_DeleteApiDefMap)> map(
      TF_NewApiDefMap(ops.get(), status), &TF_DeleteApiDefMap);
  ASSERT_EQ(status.code(), TF_OK);
  const std::string text =
      "op {\n  graph_op_name: \"Neg\"\n  description: <<END\nFirst line.\n\"Second\" line.\nEND\n}";
  TF_ApiDefMapPut(map.get(), text.data(), text.size(), status);
  ASSERT_EQ(status.code(), TF_OK) << status.message();
  const BufferPtr neg(TF_ApiDefMapGet(map.get(), "Neg", 3, status), &TF_DeleteBuffer);
  ASSERT_NE(neg, nullptr);
  EXPECT_NE(std::string(static_cast<const char*>(neg->data), neg->length)
                .find("First line.\n\"Second\" line."),
            std::string::npos);
  EXPECT_EQ(TF_ApiDefMapGet(map.get(), "Nothing", 7, status), nullptr);
  EXPECT_EQ(status.message(), "the map has no op 'Nothing'");
  const BufferPtr kernels(TF_GetRegisteredKernelsForOp("Neg", status), &TF_DeleteBuffer);
  ASSERT_NE(kernels, nullptr);
  EXPECT_GT(kernels->length, 10u);
  EXPECT_EQ(TF_LoadLibrary("/nothing.so", status), nullptr);
  EXPECT_EQ(status.code(), TF_NOT_FOUND) << status.message();
  // A file that never ends is no library.
  EXPECT_EQ(TF_LoadLibrary("/dev/zero", status), nullptr);
  EXPECT_EQ(status.code(), TF_INVALID_ARGUMENT) << status.message();
  EXPECT_EQ(TF_NewServer(nullptr, 0, status), nullptr);
  EXPECT_EQ(status.code(), TF_UNIMPLEMENTED);
}

}  // namespace
}  // namespace gradflow::capi_test
