// Ops and kernels in C.
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "gradflow/core/context_free_kernel.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/proto/kernel_def.pb.h"
#include "gradflow/proto/node_def.pb.h"
#include "gradflow/proto/op_def.pb.h"
#include "tensorflow/c/kernels.h"
#include "tensorflow/c/ops.h"
#include "tests/c/c_api_test_util.h"

namespace gradflow::capi_test {
namespace {

// y = factor * x
void* MakeFactor(TF_OpKernelConstruction* ctx) {
  const Status status;
  auto* const factor = new float(0);
  TF_OpKernelConstruction_GetAttrFloat(ctx, "factor", factor, status);
  if (*factor == 13) TF_SetStatus(status, TF_INVALID_ARGUMENT, "13 is not a factor");
  if (status.code() != TF_OK) TF_OpKernelConstruction_Failure(ctx, status);
  return factor;
}

void Scale(void* kernel, TF_OpKernelContext* ctx) {
  const Status status;
  TF_Tensor* x = nullptr;
  TF_GetInput(ctx, 0, &x, status);
  const TensorPtr input = Own(x);
  if (TF_NumDims(x) > 1) {
    TF_SetStatus(status, TF_INVALID_ARGUMENT, "x has too many dimensions");
    return TF_OpKernelContext_Failure(ctx, status);
  }
  const int64_t dims[] = {TF_Dim(x, 0)};
  const TensorPtr y =
      Own(TF_AllocateOutput(ctx, 0, TF_FLOAT, dims, TF_NumDims(x), TF_TensorByteSize(x), status));
  auto* const to = static_cast<float*>(TF_TensorData(y.get()));
  for (int64_t i = 0; i < TF_TensorElementCount(x); ++i) {
    to[i] = *static_cast<float*>(kernel) * static_cast<float*>(TF_TensorData(x))[i];
  }
}

void DeleteFactor(void* kernel) { delete static_cast<float*>(kernel); }

// Appends "!" to each string.
void Shout(void*, TF_OpKernelContext* ctx) {
  const Status status;
  TF_Tensor* x = nullptr;
  TF_GetInput(ctx, 0, &x, status);
  const TensorPtr input = Own(x);
  const int64_t dims[] = {TF_Dim(x, 0)};
  const TensorPtr y =
      Own(TF_AllocateOutput(ctx, 0, TF_STRING, dims, 1, TF_TensorByteSize(x), status));
  for (int64_t i = 0; i < dims[0]; ++i) {
    TF_TString* const to = static_cast<TF_TString*>(TF_TensorData(y.get())) + i;
    TF_TString_Assign(to, static_cast<TF_TString*>(TF_TensorData(x)) + i);
    TF_TString_AppendN(to, "!", 1);
  }
}

void SetNothing(void*, TF_OpKernelContext*) {}

void EndLater(void*, TF_OpKernelContext* ctx, TF_AsyncOpKernelDoneCallback* done) {
  const Status status;
  TF_Tensor* x = nullptr;
  TF_GetInput(ctx, 0, &x, status);
  TF_SetOutput(ctx, 0, x, status);
  TF_DeleteTensor(x);
  TF_RunAsyncOpKernelDoneCallback(done);
}

void VectorShape(TF_ShapeInferenceContext* ctx, TF_Status* status) {
  TF_ShapeHandle* const shape = TF_NewShapeHandle();
  TF_ShapeInferenceContextGetInput(ctx, 0, shape, status);
  if (TF_GetCode(status) == TF_OK) {
    TF_ShapeInferenceContextWithRankAtMost(ctx, shape, 1, shape, status);
  }
  if (TF_GetCode(status) == TF_OK) TF_ShapeInferenceContextSetOutput(ctx, 0, shape, status);
  TF_DeleteShapeHandle(shape);
}

void DefineOp(const char* name, const char* input, const char* output,
              const std::vector<const char*>& attrs,
              void (*shape)(TF_ShapeInferenceContext*, TF_Status*) = nullptr) {
  TF_OpDefinitionBuilder* const builder = TF_NewOpDefinitionBuilder(name);
  TF_OpDefinitionBuilderAddInput(builder, input);
  TF_OpDefinitionBuilderAddOutput(builder, output);
  for (const char* attr : attrs) TF_OpDefinitionBuilderAddAttr(builder, attr);
  if (shape != nullptr) TF_OpDefinitionBuilderSetShapeInferenceFunction(builder, shape);
  const Status status;
  TF_RegisterOpDefinition(builder, status);
  EXPECT_EQ(status.code(), TF_OK) << status.message();
}

void DefineKernel(TF_KernelBuilder* builder) {
  const Status status;
  TF_RegisterKernelBuilder("kernel", builder, status);
  EXPECT_EQ(status.code(), TF_OK) << status.message();
}

class CKernelTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    DefineOp("CTestScale", "x: float", "y: float", {"factor: float = 2.0"}, &VectorShape);
    DefineKernel(TF_NewKernelBuilder("CTestScale", "CPU", &MakeFactor, &Scale, &DeleteFactor));
    DefineOp("CTestShout", "x: string", "y: string", {});
    DefineKernel(TF_NewKernelBuilder("CTestShout", "CPU", nullptr, &Shout, nullptr));
    DefineOp("CTestTyped", "x: T", "y: T", {"T: type"});
    TF_KernelBuilder* const typed =
        TF_NewKernelBuilder("CTestTyped", "CPU", nullptr, &SetNothing, nullptr);
    const Status status;
    TF_KernelBuilder_TypeConstraint(typed, "T", TF_INT32, status);
    DefineKernel(typed);
    TF_KernelBuilder* const later =
        TF_NewAsyncKernelBuilder("CTestTyped", "CPU", nullptr, &EndLater, nullptr);
    TF_KernelBuilder_TypeConstraint(later, "T", TF_FLOAT, status);
    DefineKernel(later);
  }

  TensorPtr Run(TF_Operation* op, TF_Operation* x, const TensorPtr& value, const Status& status) {
    const SessionOwner session(graph_.get());
    return RunOnce(session.get(), {{x, 0}}, {value.get()}, {op, 0}, status);
  }

  // Runs an op of one input, and returns the error.
  std::string ErrorOf(const char* op) {
    TF_Operation* const x = Placeholder(graph_.get(), "x");
    TF_Operation* const y = Unary(graph_.get(), op, "y", x);
    const Status status;
    Run(y, x, Floats({}, {1}), status);
    return status.message();
  }

  // Runs an op of one input on 5, and expects 5.
  void ExpectCopies(const char* op) {
    TF_Operation* const x = Placeholder(graph_.get(), "x");
    TF_Operation* const y = Unary(graph_.get(), op, "y", x);
    const Status status;
    const TensorPtr result = Run(y, x, Floats({}, {5}), status);
    ASSERT_EQ(status.code(), TF_OK) << status.message();
    EXPECT_EQ(FloatsOf(result.get()), std::vector<float>{5});
  }

  const GraphPtr graph_ = NewGraph();
};

TEST_F(CKernelTest, ReadsAttributesAndComputes) {
  TF_Operation* const x = Placeholder(graph_.get(), "x");
  TF_OperationDescription* const desc = TF_NewOperation(graph_.get(), "CTestScale", "y");
  TF_AddInput(desc, {x, 0});
  TF_SetAttrFloat(desc, "factor", 3);
  const Status status;
  TF_Operation* const y = TF_FinishOperation(desc, status);
  ASSERT_NE(y, nullptr) << status.message();
  const TensorPtr result = Run(y, x, Floats({2}, {1, 2}), status);
  ASSERT_EQ(status.code(), TF_OK) << status.message();
  EXPECT_EQ(FloatsOf(result.get()), (std::vector<float>{3, 6}));
  Run(y, x, Floats({1, 1}, {1}), status);
  EXPECT_EQ(status.code(), TF_INVALID_ARGUMENT);
  EXPECT_EQ(status.message(), "node 'y' (CTestScale): x has too many dimensions");
}

TEST_F(CKernelTest, FailuresOfMakingKernelsAreErrors) {
  TF_Operation* const x = Placeholder(graph_.get(), "x");
  TF_OperationDescription* const desc = TF_NewOperation(graph_.get(), "CTestScale", "y");
  TF_AddInput(desc, {x, 0});
  TF_SetAttrFloat(desc, "factor", 13);
  const Status status;
  TF_Operation* const y = TF_FinishOperation(desc, status);
  Run(y, x, Floats({2}, {1, 2}), status);
  EXPECT_EQ(status.message(), "node 'y' (CTestScale): 13 is not a factor");
}

TEST_F(CKernelTest, ShapeFunctionRefusesMatrices) {
  TF_Operation* const matrix = Const(graph_.get(), "matrix", Floats({1, 1}, {1}));
  TF_OperationDescription* const desc = TF_NewOperation(graph_.get(), "CTestScale", "y");
  TF_AddInput(desc, {matrix, 0});
  const Status status;
  EXPECT_EQ(TF_FinishOperation(desc, status), nullptr);
  EXPECT_EQ(status.message(), "node 'y' (CTestScale): Shape must be at most rank 1 but is rank 2");
}

TEST_F(CKernelTest, WritesStrings) {
  TF_Operation* const x = Placeholder(graph_.get(), "x", TF_STRING);
  TF_Operation* const y = Unary(graph_.get(), "CTestShout", "y", x);
  const Status status;
  const std::string text(30, 'a');
  const TensorPtr result = Run(y, x, Strings({"hi", text}), status);
  ASSERT_EQ(status.code(), TF_OK) << status.message();
  EXPECT_EQ(StringsOf(result.get()), (std::vector<std::string>{"hi!", text + "!"}));
}

TEST_F(CKernelTest, UnsetOutputsAreErrors) {
  TF_Operation* const x = Placeholder(graph_.get(), "x", TF_INT32);
  TF_Operation* const y = Unary(graph_.get(), "CTestTyped", "y", x);
  const Status status;
  const TensorPtr value = Own(TF_AllocateTensor(TF_INT32, nullptr, 0, 4));
  Run(y, x, value, status);
  EXPECT_EQ(status.message(), "node 'y' (CTestTyped): the kernel did not set output 0");
}

TEST_F(CKernelTest, AsynchronousKernelsRun) { ExpectCopies("CTestTyped"); }

TEST_F(CKernelTest, WrongDefinitionsAreErrors) {
  const Status status;
  TF_OpDefinitionBuilder* const builder = TF_NewOpDefinitionBuilder("CTestWrong");
  TF_OpDefinitionBuilderAddInput(builder, "no type");
  TF_RegisterOpDefinition(builder, status);
  EXPECT_EQ(status.code(), TF_INVALID_ARGUMENT);
  TF_RegisterKernelBuilder(
      "kernel", TF_NewKernelBuilder("CTestNoSuchOp", "CPU", nullptr, &SetNothing, nullptr), status);
  EXPECT_EQ(status.code(), TF_NOT_FOUND) << status.message();
  TF_DeleteKernelBuilder(nullptr);
  TF_DeleteShapeHandle(nullptr);
  TF_DeleteDimensionHandle(nullptr);
}

TEST_F(CKernelTest, BuildersMayBeDeletedAfterTheirRegistration) {
  DefineOp("CTestDeleted", "x: T", "y: T", {"T: type"});
  TF_KernelBuilder* const builder =
      TF_NewAsyncKernelBuilder("CTestDeleted", "CPU", nullptr, &EndLater, nullptr);
  const Status status;
  TF_KernelBuilder_TypeConstraint(builder, "T", TF_FLOAT, status);
  DefineKernel(builder);
  TF_RegisterKernelBuilder("again", builder, status);
  EXPECT_EQ(status.code(), TF_FAILED_PRECONDITION);
  EXPECT_EQ(status.message(), "the kernel builder of op CTestDeleted is registered already");
  TF_DeleteKernelBuilder(builder);
  ExpectCopies("CTestDeleted");
}

TEST_F(CKernelTest, WrongBuildersAreErrorsAndMayBeDeleted) {
  const Status status;
  TF_RegisterKernelBuilder("kernel", nullptr, status);
  EXPECT_EQ(status.message(), "the kernel builder is null");
  TF_KernelBuilder* builder =
      TF_NewKernelBuilder("CTestScale", "CPU", nullptr, nullptr, &DeleteFactor);
  TF_RegisterKernelBuilder("kernel", builder, status);
  EXPECT_EQ(status.message(), "the kernel of op CTestScale has no compute function");
  TF_DeleteKernelBuilder(builder);
  builder = TF_NewKernelBuilder("CTestScale", "CPU", nullptr, &SetNothing, nullptr);
  TF_KernelBuilder_TypeConstraint(builder, "T", static_cast<TF_DataType>(63), status);
  EXPECT_EQ(status.code(), TF_INVALID_ARGUMENT);
  EXPECT_EQ(status.message(), "Unexpected type 63");
  TF_RegisterKernelBuilderWithKernelDef("\xff", "kernel", builder, status);
  EXPECT_EQ(status.code(), TF_INVALID_ARGUMENT);
  TF_DeleteKernelBuilder(builder);
}

TEST_F(CKernelTest, ListsHaveOtherDevicesAndHostMemory) {
  DefineOp("CTestListed", "x: T", "y: T", {"T: type"});
  TF_KernelBuilder* const builder =
      TF_NewKernelBuilder("CTestListed", "Toaster", nullptr, &SetNothing, nullptr);
  const Status status;
  TF_KernelBuilder_TypeConstraint(builder, "T", TF_HALF, status);
  TF_KernelBuilder_HostMemory(builder, "x");
  DefineKernel(builder);
  const BufferPtr buffer(TF_GetRegisteredKernelsForOp("CTestListed", status), &TF_DeleteBuffer);
  KernelList list;
  ASSERT_TRUE(list.ParseFromArray(buffer->data, static_cast<int>(buffer->length)));
  ASSERT_EQ(list.kernel_size(), 1);
  EXPECT_EQ(list.kernel(0).device_type(), "Toaster");
  ASSERT_EQ(list.kernel(0).host_memory_arg_size(), 1);
  EXPECT_EQ(list.kernel(0).host_memory_arg(0), "x");
  ASSERT_EQ(list.kernel(0).constraint_size(), 1);
  EXPECT_EQ(list.kernel(0).constraint(0).allowed_values().list().type(0), DT_HALF);
}

// The inputs that KeepInput() has seen.
std::vector<TensorPtr>& KeptInputs() {
  static auto& inputs = *new std::vector<TensorPtr>;
  return inputs;
}

// Keeps its input and its output after the run.
void KeepInput(void*, TF_OpKernelContext* ctx) {
  const Status status;
  TF_Tensor* x = nullptr;
  TF_GetInput(ctx, 0, &x, status);
  KeptInputs().push_back(Own(x));
  const int64_t dims[] = {TF_Dim(x, 0)};
  TensorPtr y = Own(TF_AllocateOutput(ctx, 0, TF_FLOAT, dims, 1, TF_TensorByteSize(x), status));
  std::memcpy(TF_TensorData(y.get()), TF_TensorData(x), TF_TensorByteSize(x));
  KeptInputs().push_back(std::move(y));
}

TEST_F(CKernelTest, TensorsOfKernelsOutliveTheRun) {
  DefineOp("CTestKeep", "x: float", "y: float", {});
  DefineKernel(TF_NewKernelBuilder("CTestKeep", "CPU", nullptr, &KeepInput, nullptr));
  TF_Operation* const x = Placeholder(graph_.get(), "x");
  TF_Operation* const before = Unary(graph_.get(), "Neg", "before", x);
  TF_Operation* const keep = Unary(graph_.get(), "CTestKeep", "keep", before);
  TF_Operation* const after = Unary(graph_.get(), "Neg", "after", keep);
  TF_Operation* const last = Unary(graph_.get(), "Exp", "last", after);
  {
    const SessionOwner session(graph_.get());
    const Status status;
    for (const float value : {1.0f, 2.0f, 3.0f}) {
      const TensorPtr fed = Floats({100}, std::vector<float>(100, value));
      const TensorPtr result = RunOnce(session.get(), {{x, 0}}, {fed.get()}, {last, 0}, status);
      ASSERT_EQ(status.code(), TF_OK) << status.message();
    }
  }
  ASSERT_EQ(KeptInputs().size(), 6u);
  for (size_t i = 0; i < 6; ++i) {
    const float expected = -1.0f - static_cast<float>(i / 2);
    EXPECT_EQ(FloatsOf(KeptInputs()[i].get()), std::vector<float>(100, expected)) << i;
  }
  KeptInputs().clear();
}

// Reads the attributes `small` and `large` into 32 bits.
void* ReadSmallNumbers(TF_OpKernelConstruction* ctx) {
  const Status status;
  int32_t number = 0;
  int32_t numbers[2] = {};
  TF_OpKernelConstruction_GetAttrInt32(ctx, "small", &number, status);
  EXPECT_EQ(number, -7) << status.message();
  TF_OpKernelConstruction_GetAttrInt32(ctx, "large", &number, status);
  EXPECT_EQ(status.message(),
            "attribute large has value 4294967296, which does not fit into 32 bits");
  TF_OpKernelConstruction_GetAttrInt32List(ctx, "list", numbers, 2, status);
  EXPECT_EQ(status.code(), TF_INVALID_ARGUMENT);
  TF_OpKernelConstruction_GetAttrInt32List(ctx, "list", numbers, -1, status);
  TF_OpKernelConstruction_GetAttrString(ctx, "text", nullptr, 0, status);
  return nullptr;
}

TEST_F(CKernelTest, NumbersThatDoNotFitAreErrors) {
  DefineOp("CTestNumbers", "x: float", "y: float",
           {"small: int = -7", "large: int = 4294967296", "list: list(int) = [1, 4294967296]",
            "text: string = 'a'"});
  DefineKernel(TF_NewKernelBuilder("CTestNumbers", "CPU", &ReadSmallNumbers, &SetNothing, nullptr));
  EXPECT_EQ(ErrorOf("CTestNumbers"), "node 'y' (CTestNumbers): the kernel did not set output 0");
}

// Sets its output to null, and allocates outputs of wrong shapes.
void SetWrongOutputs(void*, TF_OpKernelContext* ctx) {
  const Status status;
  TF_SetOutput(ctx, 0, nullptr, status);
  EXPECT_EQ(status.message(), "the tensor of output 0 is null");
  const int64_t negative[] = {-1};
  const int64_t huge[] = {int64_t{1} << 40, int64_t{1} << 40};
  EXPECT_EQ(TF_AllocateOutput(ctx, 0, TF_FLOAT, negative, 1, 0, status), nullptr);
  EXPECT_EQ(TF_AllocateOutput(ctx, 0, TF_FLOAT, huge, 2, 0, status), nullptr);
  EXPECT_EQ(TF_AllocateOutput(ctx, 0, TF_FLOAT, nullptr, -1, 0, status), nullptr);
  EXPECT_EQ(TF_AllocateTemp(ctx, TF_FLOAT, nullptr, 1, nullptr, status), nullptr);
  EXPECT_EQ(TF_AllocateOutput(ctx, 0, TF_INT32, nullptr, 0, 0, status), nullptr);
  EXPECT_EQ(TF_GetMutableOutput(ctx, 0, status), nullptr);
  const int candidates[] = {5};
  EXPECT_EQ(TF_ForwardInputOrAllocateOutput(ctx, candidates, 1, 0, nullptr, 0, nullptr, status),
            nullptr);
  EXPECT_EQ(status.code(), TF_OUT_OF_RANGE);
  EXPECT_EQ(TF_ForwardInputOrAllocateOutput(ctx, nullptr, 1, 0, nullptr, 0, nullptr, status),
            nullptr);
  EXPECT_EQ(status.message(), "candidate_input_indices of 1 elements is null");
}

TEST_F(CKernelTest, WrongOutputsAreErrors) {
  DefineOp("CTestOutputs", "x: float", "y: float", {});
  DefineKernel(TF_NewKernelBuilder("CTestOutputs", "CPU", nullptr, &SetWrongOutputs, nullptr));
  EXPECT_EQ(ErrorOf("CTestOutputs"), "node 'y' (CTestOutputs): the kernel did not set output 0");
}

int runs_without_context = 0;

void CountRunsWithoutContext(void*, TF_OpKernelContext* ctx) {
  if (ctx == nullptr) ++runs_without_context;
}

// Programs for TensorFlow make such kernels without a session.
TEST_F(CKernelTest, KernelsOfInventedDevicesCanBeMade) {
  DefineOp("CTestDevice", "x: float", "y: float", {});
  DefineKernel(TF_NewKernelBuilder("CTestDevice", "InventedDevice", nullptr,
                                   &CountRunsWithoutContext, nullptr));
  NodeDef node;
  node.set_name("y");
  node.set_op("CTestDevice");
  node.set_device("/device:InventedDevice:0");
  const auto found = GlobalRegistry().FindKernel(node);
  ASSERT_EQ(found.status(), absl::OkStatus());
  const DataType types[] = {DT_FLOAT};
  // The device of the node may be a full name, or the type of a device.
  for (const char* device : {"/device:InventedDevice:0", "InventedDevice"}) {
    node.set_device(device);
    const KernelConstruction construction(node, GlobalRegistry().FindOp(node.op())->def(), types,
                                          types);
    const auto kernel = (*found)->factory(construction);
    ASSERT_EQ(kernel.status(), absl::OkStatus());
    const auto* const context_free = dynamic_cast<const ContextFreeKernel*>(kernel->get());
    ASSERT_NE(context_free, nullptr);
    context_free->ComputeWithoutContext();
  }
  EXPECT_EQ(runs_without_context, 2);
  // The kernel keeps its name in lists of kernels.
  const Status status;
  const BufferPtr list(TF_GetRegisteredKernelsForOp("CTestDevice", status), &TF_DeleteBuffer);
  KernelList kernels;
  ASSERT_TRUE(kernels.ParseFromArray(list->data, static_cast<int>(list->length)));
  ASSERT_EQ(kernels.kernel_size(), 1);
  EXPECT_EQ(kernels.kernel(0).device_type(), "InventedDevice");
  EXPECT_EQ(ErrorOf("CTestDevice").substr(0, 24), "node 'y' (CTestDevice): ");
}

}  // namespace
}  // namespace gradflow::capi_test
