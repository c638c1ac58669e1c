// Eager execution of the C API.
#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "gradflow/proto/function.pb.h"
#include "tensorflow/c/c_api_experimental.h"
#include "tensorflow/c/eager/c_api.h"
#include "tensorflow/c/eager/c_api_experimental.h"
#include "tensorflow/c/eager/dlpack.h"
#include "tests/c/c_api_test_util.h"

namespace gradflow::capi_test {
namespace {

using HandlePtr = std::unique_ptr<TFE_TensorHandle, decltype(&TFE_DeleteTensorHandle)>;
using OpPtr = std::unique_ptr<TFE_Op, decltype(&TFE_DeleteOp)>;

class CEagerTest : public ::testing::Test {
 protected:
  CEagerTest() {
    const Status status;
    TFE_ContextOptions* const options = TFE_NewContextOptions();
    context_ = TFE_NewContext(options, status);
    TFE_DeleteContextOptions(options);
    EXPECT_EQ(status.code(), TF_OK) << status.message();
  }
  ~CEagerTest() override { TFE_DeleteContext(context_); }

  HandlePtr Handle(const TensorPtr& tensor) {
    const Status status;
    return HandlePtr(TFE_NewTensorHandle(tensor.get(), status), &TFE_DeleteTensorHandle);
  }
  OpPtr NewOp(const char* name) {
    const Status status;
    OpPtr op(TFE_NewOp(context_, name, status), &TFE_DeleteOp);
    EXPECT_EQ(status.code(), TF_OK) << status.message();
    return op;
  }
  // Runs an op with one result.
  HandlePtr Execute(const OpPtr& op, const Status& status) {
    TFE_TensorHandle* result = nullptr;
    int count = 1;
    TFE_Execute(op.get(), &result, &count, status);
    return HandlePtr(result, &TFE_DeleteTensorHandle);
  }
  HandlePtr Run(const char* name, const std::vector<const HandlePtr*>& inputs,
                const Status& status) {
    const OpPtr op = NewOp(name);
    for (const HandlePtr* input : inputs) TFE_OpAddInput(op.get(), input->get(), status);
    return Execute(op, status);
  }
  std::vector<float> ValuesOf(const HandlePtr& handle) {
    const Status status;
    return FloatsOf(Own(TFE_TensorHandleResolve(handle.get(), status)).get());
  }

  TFE_Context* context_;
};

TEST_F(CEagerTest, ExecutesAnOpRepeatedly) {
  const HandlePtr a = Handle(Floats({2}, {1, 2}));
  const HandlePtr b = Handle(Floats({}, {10}));
  const Status status;
  for (int i = 0; i < 3; ++i) {
    const HandlePtr sum = Run("AddV2", {&a, &b}, status);
    ASSERT_EQ(status.code(), TF_OK) << status.message();
    EXPECT_EQ(ValuesOf(sum), (std::vector<float>{11, 12}));
  }
  // Another type needs another plan.
  const int64_t one = 1;
  const TensorPtr integer = Own(TF_AllocateTensor(TF_INT64, nullptr, 0, 8));
  std::memcpy(TF_TensorData(integer.get()), &one, 8);
  const HandlePtr c = Handle(integer);
  const HandlePtr sum = Run("AddV2", {&c, &c}, status);
  ASSERT_EQ(status.code(), TF_OK) << status.message();
  EXPECT_EQ(TFE_TensorHandleDataType(sum.get()), TF_INT64);
}

TEST_F(CEagerTest, AttributesChooseThePlan) {
  const HandlePtr a = Handle(Floats({1, 2}, {1, 2}));
  const Status status;
  for (const unsigned char transpose : {0, 1, 0}) {
    const OpPtr op = NewOp("MatMul");
    TFE_OpAddInput(op.get(), a.get(), status);
    TFE_OpAddInput(op.get(), a.get(), status);
    TFE_OpSetAttrBool(op.get(), "transpose_a", transpose == 0 ? 0 : 1);
    TFE_OpSetAttrBool(op.get(), "transpose_b", transpose == 0 ? 1 : 0);
    const HandlePtr product = Execute(op, status);
    ASSERT_EQ(status.code(), TF_OK) << status.message();
    EXPECT_EQ(TFE_TensorHandleNumElements(product.get(), status), transpose == 0 ? 1 : 4);
  }
}

TEST_F(CEagerTest, ListsComeAsOneInputOrOneByOne) {
  const HandlePtr a = Handle(Floats({}, {1}));
  const Status status;
  OpPtr op = NewOp("AddN");
  TFE_TensorHandle* list[] = {a.get(), a.get(), a.get()};
  TFE_OpAddInputList(op.get(), list, 3, status);
  EXPECT_EQ(TFE_OpGetInputLength(op.get(), "inputs", status), 3);
  EXPECT_EQ(ValuesOf(Execute(op, status)), std::vector<float>{3});
  op = NewOp("AddN");
  TFE_OpSetAttrInt(op.get(), "N", 2);
  TFE_OpAddInput(op.get(), a.get(), status);
  TFE_OpAddInput(op.get(), a.get(), status);
  EXPECT_EQ(ValuesOf(Execute(op, status)), std::vector<float>{2});
  op = NewOp("AddN");
  TFE_OpAddInput(op.get(), a.get(), status);
  EXPECT_EQ(Execute(op, status), nullptr);
  EXPECT_EQ(status.code(), TF_INVALID_ARGUMENT);
}

TEST_F(CEagerTest, ErrorsNameTheOp) {
  const HandlePtr a = Handle(Floats({2}, {1, 2}));
  const HandlePtr b = Handle(Floats({3}, {1, 2, 3}));
  const Status status;
  EXPECT_EQ(TFE_NewOp(context_, "NoSuchOp", status), nullptr);
  EXPECT_EQ(status.code(), TF_NOT_FOUND);
  EXPECT_EQ(Run("AddV2", {&a, &b}, status), nullptr);
  EXPECT_EQ(status.code(), TF_INVALID_ARGUMENT);
  EXPECT_EQ(status.message().substr(0, 23), "node 'AddV2' (AddV2): s") << status.message();
  EXPECT_EQ(Run("AddV2", {&a}, status), nullptr);
  EXPECT_EQ(status.message(), "op AddV2 has no input for argument y");
  EXPECT_EQ(Run("Neg", {&a, &b}, status), nullptr);
  EXPECT_EQ(status.message(), "op Neg has 2 inputs, expected 1");
  const OpPtr op = NewOp("Neg");
  TFE_OpAddInput(op.get(), nullptr, status);
  EXPECT_EQ(status.code(), TF_INVALID_ARGUMENT);
  TFE_OpAddInput(op.get(), a.get(), status);
  int count = 0;
  TFE_Execute(op.get(), nullptr, &count, status);
  EXPECT_EQ(status.message(), "Expecting 1 outputs, but *num_retvals is 0");
  TFE_OpSetDevice(op.get(), "/device:GPU:0", status);
  EXPECT_EQ(status.code(), TF_INVALID_ARGUMENT);
  TFE_OpSetAttrTypeList(op.get(), "T", nullptr, -1);
  EXPECT_EQ(Execute(op, status), nullptr);
  EXPECT_EQ(status.message(), "attribute 'T': a list has -1 elements");
}

TEST_F(CEagerTest, VariablesLiveInTheContext) {
  const Status status;
  const OpPtr op = NewOp("VarHandleOp");
  TFE_OpSetAttrType(op.get(), "dtype", TF_FLOAT);
  TFE_OpSetAttrShape(op.get(), "shape", nullptr, 0, status);
  TFE_OpSetAttrString(op.get(), "shared_name", "v", 1);
  const HandlePtr variable = Execute(op, status);
  ASSERT_EQ(status.code(), TF_OK) << status.message();
  const HandlePtr value = Handle(Floats({}, {7}));
  const OpPtr assign = NewOp("AssignVariableOp");
  TFE_OpAddInput(assign.get(), variable.get(), status);
  TFE_OpAddInput(assign.get(), value.get(), status);
  int none = 0;
  TFE_Execute(assign.get(), nullptr, &none, status);
  ASSERT_EQ(status.code(), TF_OK) << status.message();
  TFE_ContextClearCaches(context_);
  const OpPtr read = NewOp("ReadVariableOp");
  TFE_OpSetAttrType(read.get(), "dtype", TF_FLOAT);
  TFE_OpAddInput(read.get(), variable.get(), status);
  EXPECT_EQ(ValuesOf(Execute(read, status)), std::vector<float>{7});
}

TEST_F(CEagerTest, CallsFunctions) {
  const GraphPtr body = capi_test::NewGraph();
  TF_Operation* const x = Placeholder(body.get(), "x");
  TF_Operation* const y = Unary(body.get(), "Square", "y", x);
  const TF_Output input = {x, 0};
  const TF_Output output = {y, 0};
  const Status status;
  const FunctionPtr function(TF_GraphToFunction(body.get(), "Twice", 0, -1, nullptr, 1, &input, 1,
                                                &output, nullptr, nullptr, nullptr, status),
                             &TF_DeleteFunction);
  TFE_ContextAddFunction(context_, function.get(), status);
  ASSERT_EQ(status.code(), TF_OK) << status.message();
  EXPECT_EQ(TFE_ContextHasFunction(context_, "Twice"), 1);
  const HandlePtr three = Handle(Floats({}, {3}));
  EXPECT_EQ(ValuesOf(Run("Twice", {&three}, status)), std::vector<float>{9});
  // The op PartitionedCall takes it as an attribute.
  const OpPtr call = NewOp("PartitionedCall");
  TFE_TensorHandle* list[] = {three.get()};
  TFE_OpAddInputList(call.get(), list, 1, status);
  const TF_DataType type = TF_FLOAT;
  TFE_OpSetAttrTypeList(call.get(), "Tout", &type, 1);
  TFE_OpSetAttrFunctionName(call.get(), "f", "Twice", 5);
  EXPECT_EQ(ValuesOf(Execute(call, status)), std::vector<float>{9});
  TFE_ContextRemoveFunction(context_, "Twice", status);
  EXPECT_EQ(status.code(), TF_OK) << status.message();
  EXPECT_EQ(TFE_ContextHasFunction(context_, "Twice"), 0);
  TFE_ContextRemoveFunction(context_, "Twice", status);
  EXPECT_EQ(status.message(), "there is no function 'Twice'");
  TFE_ContextAddFunctionDef(context_, "\xff", 1, status);
  EXPECT_EQ(status.message(), "Invalid FunctionDef proto");
}

TEST_F(CEagerTest, OpsOutliveTheRemovalOfTheirFunction) {
  const GraphPtr body = capi_test::NewGraph();
  TF_Operation* const x = Placeholder(body.get(), "x");
  const Status status;
  const auto add = [&](TF_Operation* y) {
    const TF_Output input = {x, 0};
    const TF_Output output = {y, 0};
    const FunctionPtr function(TF_GraphToFunction(body.get(), "Changing", 0, -1, nullptr, 1, &input,
                                                  1, &output, nullptr, nullptr, nullptr, status),
                               &TF_DeleteFunction);
    TFE_ContextAddFunction(context_, function.get(), status);
    ASSERT_EQ(status.code(), TF_OK) << status.message();
  };
  add(Unary(body.get(), "Square", "square", x));
  const HandlePtr three = Handle(Floats({}, {3}));
  const OpPtr op = NewOp("Changing");
  TFE_OpAddInput(op.get(), three.get(), status);
  EXPECT_EQ(TFE_OpGetInputLength(op.get(), "x", status), 1) << status.message();
  EXPECT_EQ(ValuesOf(Execute(op, status)), std::vector<float>{9});
  TFE_ContextRemoveFunction(context_, "Changing", status);
  EXPECT_EQ(Execute(op, status), nullptr);
  EXPECT_EQ(status.code(), TF_NOT_FOUND) << status.message();
  add(Unary(body.get(), "Neg", "neg", x));
  EXPECT_EQ(ValuesOf(Execute(op, status)), std::vector<float>{-3});
}

TEST_F(CEagerTest, EmptyListsDoNotReplaceInputs) {
  const HandlePtr a = Handle(Floats({}, {1}));
  const OpPtr op = NewOp("ConcatV2");
  const Status status;
  TFE_OpSetAttrInt(op.get(), "N", 3);
  TFE_OpAddInput(op.get(), a.get(), status);
  TFE_OpAddInputList(op.get(), nullptr, 0, status);
  TFE_OpAddInputList(op.get(), nullptr, 0, status);
  TFE_OpAddInput(op.get(), a.get(), status);
  EXPECT_EQ(Execute(op, status), nullptr);
  EXPECT_EQ(status.code(), TF_INVALID_ARGUMENT) << status.message();
}

TEST_F(CEagerTest, InfersShapesOfTheRightNumberOfInputs) {
  const auto infer = [&](int count, const Status& status) {
    TF_ShapeAndTypeList* const inputs = TF_NewShapeAndTypeList(count);
    const int64_t dims[] = {2, 3};
    for (int i = 0; i < count; ++i) TF_ShapeAndTypeListSetShape(inputs, i, dims, 2);
    const OpPtr op = NewOp("AddV2");
    TF_ShapeAndTypeList* outputs = nullptr;
    TFE_InferShapes(op.get(), inputs, nullptr, nullptr, nullptr, &outputs, nullptr, status);
    const int rank = outputs == nullptr ? -1 : outputs->items[0].num_dims;
    TF_DeleteShapeAndTypeList(inputs);
    TF_DeleteShapeAndTypeList(outputs);
    return rank;
  };
  const Status status;
  EXPECT_EQ(infer(2, status), 2) << status.message();
  EXPECT_EQ(infer(1, status), -1);
  EXPECT_EQ(status.message(), "op AddV2 has 2 inputs, but there are 1 shapes");
}

TEST_F(CEagerTest, ExecutorsMayBeDeletedAfterTheyAreSet) {
  TFE_Executor* const executor = TFE_NewExecutor(true, false, 0);
  TFE_ContextSetExecutorForThread(context_, executor);
  TFE_DeleteExecutor(executor);
  TFE_Executor* const found = TFE_ContextGetExecutorForThread(context_);
  EXPECT_TRUE(TFE_ExecutorIsAsync(found));
  TFE_DeleteExecutor(found);
  TFE_ContextSetExecutorForThread(context_, nullptr);
}

TEST_F(CEagerTest, CancelledOpsDoNotRun) {
  TFE_CancellationManager* const manager = TFE_NewCancellationManager();
  int calls = 0;
  const TFE_CancelCallback callback = {[](void* count) { ++*static_cast<int*>(count); }, &calls};
  const TFE_CancellationToken token = TFE_CancellationManagerGetToken(manager);
  EXPECT_TRUE(TFE_CancellationManagerRegisterCallback(manager, token, &callback, "test"));
  TFE_CancellationManagerStartCancel(manager);
  EXPECT_TRUE(TFE_CancellationManagerIsCancelled(manager));
  EXPECT_EQ(calls, 1);
  EXPECT_FALSE(TFE_CancellationManagerDeregisterCallback(manager, token));
  const HandlePtr a = Handle(Floats({}, {1}));
  const OpPtr op = NewOp("Neg");
  const Status status;
  TFE_OpAddInput(op.get(), a.get(), status);
  TFE_OpSetCancellationManager(op.get(), manager, status);
  EXPECT_EQ(Execute(op, status), nullptr);
  EXPECT_EQ(status.code(), TF_CANCELLED);
  TFE_DeleteCancellationManager(manager);
}

TEST_F(CEagerTest, DeregisteringWaitsForCallbacks) {
  TFE_CancellationManager* const manager = TFE_NewCancellationManager();
  struct State {
    TFE_CancellationManager* manager;
    TFE_CancellationToken token;
    std::atomic<bool> started{false};
    std::atomic<bool> ended{false};
  } state{manager, TFE_CancellationManagerGetToken(manager)};
  const TFE_CancelCallback callback = {
      [](void* context) {
        auto* const of = static_cast<State*>(context);
        of->started.store(true);
        // The thread of the callbacks does not wait for itself.
        EXPECT_FALSE(TFE_CancellationManagerDeregisterCallback(of->manager, of->token));
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        of->ended.store(true);
      },
      &state};
  EXPECT_TRUE(TFE_CancellationManagerRegisterCallback(manager, state.token, &callback, "callback"));
  std::thread canceller([&] { TFE_CancellationManagerStartCancel(manager); });
  while (!state.started.load()) std::this_thread::yield();
  std::thread second([&] {
    EXPECT_FALSE(TFE_CancellationManagerDeregisterCallback(manager, state.token));
    EXPECT_TRUE(state.ended.load());
  });
  EXPECT_FALSE(TFE_CancellationManagerTryDeregisterCallback(manager, state.token));
  EXPECT_FALSE(TFE_CancellationManagerDeregisterCallback(manager, state.token));
  EXPECT_TRUE(state.ended.load());
  canceller.join();
  second.join();
  EXPECT_FALSE(TFE_CancellationManagerIsCancelling(manager));
  TFE_DeleteCancellationManager(manager);
}

TEST_F(CEagerTest, OnlyPlainElementsHaveAnAddress) {
  const Status status;
  const HandlePtr floats = Handle(Floats({2}, {1, 2}));
  const auto* const data =
      static_cast<const float*>(TFE_TensorHandleDevicePointer(floats.get(), status));
  ASSERT_NE(data, nullptr) << status.message();
  EXPECT_EQ(data[1], 2);
  EXPECT_EQ(TFE_TensorHandleDeviceMemorySize(floats.get(), status), 8u);
  const HandlePtr text = Handle(Strings({"a"}));
  EXPECT_EQ(TFE_TensorHandleDevicePointer(text.get(), status), nullptr);
  EXPECT_EQ(status.message(),
            "the elements of a tensor of type string have no layout in C; call "
            "TFE_TensorHandleResolve() for strings");
}

TEST_F(CEagerTest, NullHandlesAreErrors) {
  const Status status;
  EXPECT_EQ(TFE_TensorHandleResolve(nullptr, status), nullptr);
  EXPECT_EQ(status.message(), "Invalid handle");
  EXPECT_EQ(TFE_TensorHandleNumDims(nullptr, status), -1);
  EXPECT_EQ(TFE_TensorHandleDeviceName(nullptr, status), nullptr);
  const HandlePtr a = Handle(Floats({2}, {1, 2}));
  EXPECT_EQ(TFE_TensorHandleDim(a.get(), 1, status), -1);
  EXPECT_EQ(status.code(), TF_INVALID_ARGUMENT);
  EXPECT_EQ(TFE_TensorHandleCopyToDevice(a.get(), context_, "GPU:0", status), nullptr);
  EXPECT_EQ(status.code(), TF_INVALID_ARGUMENT);
}

TEST_F(CEagerTest, ThreadsShareAContext) {
  const HandlePtr a = Handle(Floats({}, {1}));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        const Status status;
        ASSERT_EQ(ValuesOf(Run("AddV2", {&a, &a}, status)), std::vector<float>{2});
        if (i % 10 == 0) TFE_ContextClearCaches(context_);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(CEagerTest, DlPackSharesMemory) {
  const TensorPtr tensor = Floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const Status status;
  HandlePtr handle = Handle(tensor);
  void* const managed = tensorflow::TFE_HandleToDLPack(handle.get(), status);
  ASSERT_NE(managed, nullptr) << status.message();
  handle.reset();
  const HandlePtr back(tensorflow::TFE_HandleFromDLPack(managed, status, context_),
                       &TFE_DeleteTensorHandle);
  ASSERT_NE(back, nullptr) << status.message();
  const TensorPtr result = Own(TFE_TensorHandleResolve(back.get(), status));
  EXPECT_EQ(TF_TensorData(result.get()), TF_TensorData(tensor.get()));
  EXPECT_EQ(TF_Dim(result.get(), 1), 3);
  const HandlePtr text = Handle(Strings({"a"}));
  EXPECT_EQ(tensorflow::TFE_HandleToDLPack(text.get(), status), nullptr);
  EXPECT_EQ(status.message(), "string is not supported by dlpack");
  EXPECT_EQ(tensorflow::TFE_HandleToDLPack(nullptr, status), nullptr);
  EXPECT_EQ(status.message(), "Invalid handle");
  tensorflow::TFE_CallDLManagedTensorDeleter(nullptr);
}

// The layout that the specification of DLPack fixes.
struct DlManagedTensor {
  void* data;
  int32_t device_type;
  int32_t device_id;
  int32_t ndim;
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
  void* context;
  void (*deleter)(DlManagedTensor*);
};

TEST_F(CEagerTest, DlPackChecksTensorsAndLeavesThemOnError) {
  alignas(16) float values[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  int64_t shape[2] = {2, 2};
  int64_t strides[2] = {2, 1};
  int64_t transposed[2] = {1, 2};
  int64_t negative[2] = {2, -2};
  int64_t huge[2] = {int64_t{1} << 61, 1};
  int64_t empty[3] = {int64_t{1} << 62, int64_t{1} << 62, 0};
  int64_t any[3] = {7, -7, 7};
  int deleted = 0;
  const auto deleter = [](DlManagedTensor* self) { ++*static_cast<int*>(self->context); };
  const DlManagedTensor good = {values, 1, 0, 2, 2, 32, 1, shape, strides, 0, &deleted, deleter};
  const auto import = [&](const std::function<void(DlManagedTensor*)>& change, int expected) {
    DlManagedTensor tensor = good;
    change(&tensor);
    deleted = 0;
    const Status status;
    const HandlePtr handle(tensorflow::TFE_HandleFromDLPack(&tensor, status, context_),
                           &TFE_DeleteTensorHandle);
    EXPECT_EQ(deleted, expected);
    EXPECT_EQ(status.code(), handle == nullptr ? TF_INVALID_ARGUMENT : TF_OK) << status.message();
    return handle == nullptr ? std::vector<float>{-1} : ValuesOf(handle);
  };
  EXPECT_EQ(import([](auto*) {}, 0), (std::vector<float>{0, 1, 2, 3}));
  EXPECT_EQ(deleted, 1);
  EXPECT_EQ(import([](auto* t) { t->byte_offset = 16; }, 0), (std::vector<float>{4, 5, 6, 7}));
  EXPECT_EQ(import([](auto* t) { t->strides = nullptr; }, 0), (std::vector<float>{0, 1, 2, 3}));
  EXPECT_EQ(import([](auto* t) { t->deleter = nullptr; }, 0), (std::vector<float>{0, 1, 2, 3}));
  // Memory without elements is not read, and is given back at once.
  EXPECT_EQ(import(
                [&](auto* t) {
                  t->ndim = 3;
                  t->shape = empty;
                  t->strides = any;
                  t->data = nullptr;
                },
                1),
            std::vector<float>());
  const std::function<void(DlManagedTensor*)> wrong[] = {
      [&](auto* t) { t->strides = transposed; },
      [](auto* t) { t->data = nullptr; },
      [](auto* t) { t->byte_offset = 2; },
      [](auto* t) { t->byte_offset = ~uint64_t{15}; },
      [](auto* t) { t->lanes = 4; },
      [](auto* t) { t->bits = 33; },
      [](auto* t) { t->code = 77; },
      [](auto* t) { t->device_type = 2; },
      [](auto* t) { t->ndim = -1; },
      [](auto* t) { t->ndim = 1 << 20, t->shape = nullptr; },
      [&](auto* t) { t->shape = negative; },
      [&](auto* t) { t->shape = huge, t->strides = nullptr; },
  };
  for (const auto& change : wrong) EXPECT_EQ(import(change, 0), std::vector<float>{-1});
  const Status status;
  EXPECT_EQ(tensorflow::TFE_HandleFromDLPack(nullptr, status, context_), nullptr);
  EXPECT_EQ(status.message(), "the DLManagedTensor is null");
}

TEST_F(CEagerTest, ScalarsNeedTheirBytes) {
  float value = 3;
  const Status status;
  const HandlePtr handle(TFE_NewTensorHandleFromScalar(TF_FLOAT, &value, 4, status),
                         &TFE_DeleteTensorHandle);
  EXPECT_EQ(ValuesOf(handle), std::vector<float>{3});
  const std::tuple<TF_DataType, void*, size_t> wrong[] = {
      {TF_FLOAT, &value, 3},
      {TF_FLOAT, nullptr, 4},
      {TF_STRING, &value, 4},
      {TF_RESOURCE, &value, 4},
      {static_cast<TF_DataType>(63), &value, 4}};
  for (const auto& [dtype, data, size] : wrong) {
    EXPECT_EQ(TFE_NewTensorHandleFromScalar(dtype, data, size, status), nullptr);
    EXPECT_EQ(status.code(), TF_INVALID_ARGUMENT) << status.message();
  }
}

}  // namespace
}  // namespace gradflow::capi_test
