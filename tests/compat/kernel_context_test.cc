// Tests of kernels and their contexts without a session: CreateOpKernel and
// OpKernelContext::Params.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/fake_input.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/rendezvous.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/tensor_testutil.h"
#include "tensorflow/core/lib/core/status_test_util.h"
#include "tensorflow/core/lib/io/path.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/test.h"
#include "tensorflow/core/public/version.h"
#include "tensorflow/core/util/device_name_utils.h"
#include "tensorflow/core/util/tensor_bundle/tensor_bundle.h"

namespace tensorflow {
namespace kernel_context_test {

using ::testing::HasSubstr;

REGISTER_OP("ContextHalve").Input("x: float").Output("y: float");
class HalveOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    Tensor* y;
    OP_REQUIRES_OK(context, context->allocate_output("y", context->input(0).shape(), &y));
    y->flat<float>()(0) = context->input(0).flat<float>()(0) / 2;
  }
};
REGISTER_KERNEL_BUILDER(Name("ContextHalve").Device(DEVICE_CPU), HalveOp);
class HalveOnGpuOp : public HalveOp {
 public:
  using HalveOp::HalveOp;
};
REGISTER_KERNEL_BUILDER(Name("ContextHalve").Device(DEVICE_GPU).Priority(3), HalveOnGpuOp);

NodeDef MakeNode(const std::string& op) {
  NodeDef node;
  TF_CHECK_OK(NodeDefBuilder("n", op).Input(FakeInput(DT_FLOAT)).Finalize(&node));
  return node;
}

std::unique_ptr<OpKernel> Make(const DeviceType& type, const NodeDef& node, absl::Status* status) {
  DeviceBase device(Env::Default());
  return CreateOpKernel(type, &device, cpu_allocator(), node, TF_GRAPH_DEF_VERSION, status);
}

// Runs a kernel with one input and one output.
absl::Status RunOnce(OpKernel* kernel, Tensor* x, Tensor* y) {
  DeviceBase device(Env::Default());
  OpKernelContext::Params params;
  params.op_kernel = kernel;
  params.device = &device;
  const std::vector<TensorValue> inputs = {TensorValue(x)};
  params.inputs = inputs;
  OpKernelContext context(&params);
  kernel->Compute(&context);
  if (context.mutable_output(0) != nullptr) *y = *context.mutable_output(0);
  return context.status();
}

TEST(OpKernel, TracesWithShapesIfVerbose) {
  absl::Status status;
  const std::unique_ptr<OpKernel> kernel = Make(DEVICE_CPU, MakeNode("ContextHalve"), &status);
  TF_ASSERT_OK(status);
  DeviceBase device(Env::Default());
  OpKernelContext::Params params;
  params.op_kernel = kernel.get();
  params.device = &device;
  Tensor x(DT_FLOAT, TensorShape({2, 3}));
  const std::vector<TensorValue> inputs = {TensorValue(&x)};
  params.inputs = inputs;
  const OpKernelContext context(&params);
  EXPECT_EQ(kernel->TraceString(context, /*verbose=*/true), "n:ContextHalve#shape=(float[2,3])#");
  EXPECT_EQ(kernel->TraceString(context, /*verbose=*/false), "n:ContextHalve");
}

TEST(CreateOpKernel, MakesCustomKernelsAndGradflowsKernels) {
  Tensor x = test::AsScalar<float>(-8);
  Tensor y;
  absl::Status status;
  const std::unique_ptr<OpKernel> halve = Make(DEVICE_CPU, MakeNode("ContextHalve"), &status);
  TF_ASSERT_OK(status);
  TF_ASSERT_OK(RunOnce(halve.get(), &x, &y));
  test::ExpectTensorEqual<float>(y, test::AsScalar<float>(-4));
  EXPECT_NE(dynamic_cast<HalveOp*>(halve.get()), nullptr);

  const std::unique_ptr<OpKernel> relu = Make(DEVICE_CPU, MakeNode("Relu"), &status);
  TF_ASSERT_OK(status);
  TF_ASSERT_OK(RunOnce(relu.get(), &x, &y));
  test::ExpectTensorEqual<float>(y, test::AsScalar<float>(0));

  // The inputs are checked before gradflow's kernel sees them.
  Tensor integer = test::AsScalar<int32>(1);
  EXPECT_EQ(RunOnce(relu.get(), &integer, &y).code(), error::INVALID_ARGUMENT);
  OpKernelContext::Params params;
  params.op_kernel = relu.get();
  OpKernelContext empty(&params);
  relu->Compute(&empty);
  EXPECT_EQ(empty.status().code(), error::INVALID_ARGUMENT);
  EXPECT_THAT(std::string(empty.status().message()), HasSubstr("has 0 inputs and 1 outputs"));
}

// Records the properties of its context.
struct SignatureOp : OpKernel {
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    match = context->MatchSignature({DT_FLOAT}, {DT_FLOAT});
    other_input = context->MatchSignature({DT_INT32}, {DT_FLOAT});
    no_output = context->MatchSignature({DT_FLOAT}, {});
    frame = context->frame_iter();
    rendezvous = context->rendezvous();
    manager = context->cancellation_manager();
    EXPECT_FALSE(context->track_allocations());
    context->set_output(0, context->input(0));
  }
  absl::Status match, other_input, no_output;
  FrameAndIter frame;
  RendezvousInterface* rendezvous;
  CancellationManager* manager;
};
REGISTER_OP("ContextSignature").Input("x: float").Output("y: float");
REGISTER_KERNEL_BUILDER(Name("ContextSignature").Device(DEVICE_CPU), SignatureOp);

TEST(OpKernelContext, HasTheSignatureAndTheParams) {
  absl::Status status;
  const std::unique_ptr<OpKernel> kernel = Make(DEVICE_CPU, MakeNode("ContextSignature"), &status);
  TF_ASSERT_OK(status);
  auto* const op = dynamic_cast<SignatureOp*>(kernel.get());
  ASSERT_NE(op, nullptr);
  const core::RefCountPtr<Rendezvous> rendezvous(NewLocalRendezvous());
  CancellationManager manager;
  OpKernelContext::Params params;
  params.op_kernel = op;
  params.frame_iter = FrameAndIter(3, 4);
  params.rendezvous = rendezvous.get();
  params.cancellation_manager = &manager;
  Tensor x = test::AsScalar<float>(1);
  const std::vector<TensorValue> inputs = {TensorValue(&x)};
  params.inputs = inputs;
  OpKernelContext context(&params);
  op->Compute(&context);
  TF_EXPECT_OK(context.status());
  TF_EXPECT_OK(op->match);
  EXPECT_EQ(op->other_input.code(), error::INVALID_ARGUMENT);
  EXPECT_THAT(std::string(op->other_input.message()), HasSubstr("have: float->float"));
  EXPECT_EQ(op->no_output.code(), error::INVALID_ARGUMENT);
  EXPECT_TRUE(op->frame == FrameAndIter(3, 4));
  EXPECT_EQ(op->rendezvous, rendezvous.get());
  EXPECT_EQ(op->manager, &manager);
}

TEST(CreateOpKernel, RejectsInvalidNodes) {
  absl::Status status;
  EXPECT_EQ(Make(DEVICE_GPU, MakeNode("Relu"), &status), nullptr);
  EXPECT_EQ(status.code(), error::NOT_FOUND);
  EXPECT_THAT(std::string(status.message()), HasSubstr("No registered 'Relu' OpKernel for 'GPU'"));
  NodeDef node;
  node.set_op("ContextNoSuchOp");
  EXPECT_EQ(Make(DEVICE_CPU, node, &status), nullptr);
  EXPECT_EQ(status.code(), error::NOT_FOUND);
  node = MakeNode("Relu");
  node.clear_input();
  EXPECT_EQ(Make(DEVICE_CPU, node, &status), nullptr);
  EXPECT_EQ(status.code(), error::INVALID_ARGUMENT);
}

TEST(Kernels, AreListedByDevice) {
  PrioritizedDeviceTypeVector devices;
  TF_ASSERT_OK(SupportedDeviceTypesForNode({DEVICE_CPU, DEVICE_GPU, DEVICE_TPU},
                                           MakeNode("ContextHalve"), &devices));
  ASSERT_EQ(devices.size(), 2);
  EXPECT_EQ(devices[0].first, DeviceType(DEVICE_GPU));
  EXPECT_EQ(devices[0].second, 3);
  EXPECT_EQ(devices[1].first, DeviceType(DEVICE_CPU));
  const KernelDef* def = nullptr;
  std::string name;
  TF_ASSERT_OK(FindKernelDef(DEVICE_GPU, MakeNode("ContextHalve"), &def, &name));
  EXPECT_EQ(name, "HalveOnGpuOp");
  EXPECT_EQ(def->priority(), 3);
  EXPECT_EQ(GetRegisteredKernelsForOp("ContextHalve").kernel_size(), 2);
  EXPECT_GE(GetAllRegisteredKernels().kernel_size(), 2);
}

REGISTER_OP("ContextAnywhere").Input("x: float").Output("y: float");
REGISTER_KERNEL_BUILDER(Name("ContextAnywhere").Device(DEVICE_DEFAULT), HalveOp);

TEST(Kernels, AreListedForAllDevices) {
  absl::Status status;
  for (const char* device : {DEVICE_CPU, DEVICE_GPU}) {
    EXPECT_NE(Make(device, MakeNode("ContextAnywhere"), &status), nullptr) << status;
  }
}

REGISTER_OP("ContextReplace").Input("a: Ref(float)").Output("b: Ref(float)");
class ReplaceOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    EXPECT_TRUE(context->input_is_ref(0));
    Tensor old = context->mutable_input(0, /*lock_held=*/false);
    Tensor changed(DT_FLOAT, TensorShape({}));
    changed.flat<float>()(0) = old.flat<float>()(0) + 1;
    OP_REQUIRES_OK(context, context->replace_ref_input("a", changed, /*lock_held=*/false));
    context->forward_ref_input_to_ref_output(0, 0);
  }
};
REGISTER_KERNEL_BUILDER(Name("ContextReplace").Device(DEVICE_CPU), ReplaceOp);

TEST(OpKernelContext, SupportsReferences) {
  NodeDef node;
  TF_ASSERT_OK(
      NodeDefBuilder("n", "ContextReplace").Input(FakeInput(DT_FLOAT_REF)).Finalize(&node));
  absl::Status status;
  const std::unique_ptr<OpKernel> kernel = Make(DEVICE_CPU, node, &status);
  TF_ASSERT_OK(status);
  mutex mu;
  Tensor a = test::AsScalar<float>(41);
  const std::vector<TensorValue> inputs = {TensorValue(&mu, &a)};
  OpKernelContext::Params params;
  params.op_kernel = kernel.get();
  params.inputs = &inputs;
  OpKernelContext context(&params);
  kernel->Compute(&context);
  TF_ASSERT_OK(context.status());
  test::ExpectTensorEqual<float>(a, test::AsScalar<float>(42));
  test::ExpectTensorEqual<float>(*context.mutable_output(0), a);
}

// Deletes its input, which is a reference.
REGISTER_OP("ContextDelete").Input("x: Ref(float)");
class DeleteOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override { context->delete_ref_input(0, false); }
};
REGISTER_KERNEL_BUILDER(Name("ContextDelete").Device(DEVICE_CPU), DeleteOp);

TEST(OpKernelContext, DeletesATensorByItsReference) {
  NodeDef node;
  TF_ASSERT_OK(NodeDefBuilder("n", "ContextDelete").Input(FakeInput(DT_FLOAT_REF)).Finalize(&node));
  absl::Status status;
  const std::unique_ptr<OpKernel> kernel = Make(DEVICE_CPU, node, &status);
  TF_ASSERT_OK(status);
  mutex mu;
  // The tensor leaks unless the kernel deletes it.
  auto* const tensor = new Tensor(test::AsScalar<float>(41));
  const std::vector<TensorValue> inputs = {TensorValue(&mu, tensor)};
  OpKernelContext::Params params;
  params.op_kernel = kernel.get();
  params.inputs = inputs;
  OpKernelContext context(&params);
  kernel->Compute(&context);
  TF_EXPECT_OK(context.status());
  EXPECT_FALSE(context.has_input(0));
}

REGISTER_OP("ContextLists").Input("a: Ref(N * float)").Input("h: N * resource").Attr("N: int >= 0");
class ListsOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext*) override {}
};
REGISTER_KERNEL_BUILDER(Name("ContextLists").Device(DEVICE_CPU), ListsOp);

TEST(OpKernelContext, AListIsNotOneInput) {
  for (const int n : {0, 1, 3}) {
    NodeDef node;
    TF_ASSERT_OK(NodeDefBuilder("n", "ContextLists")
                     .Input(FakeInput(n, DT_FLOAT_REF))
                     .Input(FakeInput(n, DT_RESOURCE))
                     .Finalize(&node));
    absl::Status status;
    const std::unique_ptr<OpKernel> kernel = Make(DEVICE_CPU, node, &status);
    TF_ASSERT_OK(status);
    mutex mu;
    Tensor a = test::AsScalar<float>(1);
    Tensor handle(DT_RESOURCE, TensorShape({}));
    std::vector<TensorValue> inputs(n, TensorValue(&mu, &a));
    inputs.resize(2 * n, TensorValue(&handle));
    OpKernelContext::Params params;
    params.op_kernel = kernel.get();
    params.inputs = &inputs;
    OpKernelContext context(&params);
    mutex* of_a = nullptr;
    Tensor value;
    ResourceHandle first;
    const auto expect = [n](const absl::Status& found, const std::string& name) {
      if (n == 1) {
        TF_EXPECT_OK(found);
        return;
      }
      EXPECT_EQ(found.code(), error::INVALID_ARGUMENT);
      EXPECT_EQ(found.message(), absl::StrCat("input '", name, "' is a list of ", n,
                                              " where one tensor is expected"));
    };
    expect(context.input_ref_mutex("a", &of_a), "a");
    expect(context.mutable_input("a", &value, /*lock_held=*/false), "a");
    expect(context.replace_ref_input("a", a, /*lock_held=*/false), "a");
    expect(HandleFromInput(&context, "h", &first), "h");
    EXPECT_EQ(of_a, n == 1 ? &mu : nullptr);
    TF_EXPECT_OK(context.status());
  }
}

TEST(OpKernelContext, WritersOfListsTakeAllTensors) {
  NodeDef node;
  TF_ASSERT_OK(NodeDefBuilder("n", "SaveV2")
                   .Input(FakeInput(DT_STRING))
                   .Input(FakeInput(DT_STRING))
                   .Input(FakeInput(DT_STRING))
                   .Input(FakeInput({DT_FLOAT}))
                   .Finalize(&node));
  absl::Status status;
  const std::unique_ptr<OpKernel> kernel = Make(DEVICE_CPU, node, &status);
  TF_ASSERT_OK(status);
  const std::string file = io::JoinPath(testing::TmpDir(), "compat_lists");
  Tensor prefix = test::AsScalar<tstring>(file);
  Tensor names = test::AsTensor<tstring>({"a", "b"});
  Tensor slices = test::AsTensor<tstring>({"", ""});
  Tensor a = test::AsTensor<int32>({1, 2}), b = test::AsTensor<float>({3});
  const auto run = [&](std::vector<Tensor*> tensors) {
    std::vector<TensorValue> inputs(tensors.begin(), tensors.end());
    OpKernelContext::Params params;
    params.op_kernel = kernel.get();
    params.inputs = &inputs;
    OpKernelContext context(&params);
    kernel->Compute(&context);
    return context.status();
  };
  TF_ASSERT_OK(run({&prefix, &names, &slices, &a, &b}));
  Tensor value;
  TF_ASSERT_OK(BundleReader(Env::Default(), file).Lookup("b", &value));
  test::ExpectTensorEqual<float>(value, b);
  EXPECT_EQ(run({&prefix, &names}).code(), error::INVALID_ARGUMENT);
  EXPECT_EQ(run({&prefix, &names, &a, &a, &b}).message(),
            "input 2 has type int32, expected string");
  EXPECT_EQ(run({&prefix, &names, &slices, &a, nullptr}).message(), "input 4 is not there");
}

TEST(OpKernelContext, RejectsOutputsAndInputsThatDoNotExist) {
  absl::Status status;
  const std::unique_ptr<OpKernel> kernel = Make(DEVICE_CPU, MakeNode("ContextHalve"), &status);
  TF_ASSERT_OK(status);
  OpKernelContext::Params params;
  params.op_kernel = kernel.get();
  OpKernelContext context(&params);
  EXPECT_FALSE(context.has_input(0));
  EXPECT_EQ(context.get_input(0).status().code(), error::INVALID_ARGUMENT);
  Tensor* out;
  EXPECT_EQ(context.allocate_output(1, TensorShape({}), &out).code(), error::INTERNAL);
  EXPECT_EQ(context.release_output(0).tensor, nullptr);
  TF_ASSERT_OK(context.allocate_output(0, TensorShape({2}), &out));
  const std::unique_ptr<Tensor> released(context.release_output(0).tensor);
  EXPECT_EQ(released->NumElements(), 2);
  EXPECT_EQ(context.mutable_output(0), nullptr);
}

TEST(DeviceNameUtils, Parses) {
  DeviceNameUtils::ParsedName name;
  ASSERT_TRUE(DeviceNameUtils::ParseFullName("/job:w/replica:0/task:3/device:GPU:1", &name));
  EXPECT_EQ(name.job, "w");
  EXPECT_EQ(name.task, 3);
  EXPECT_EQ(name.type, "GPU");
  EXPECT_EQ(name.id, 1);
  EXPECT_EQ(DeviceNameUtils::ParsedNameToString(name), "/job:w/replica:0/task:3/device:GPU:1");
  ASSERT_TRUE(DeviceNameUtils::ParseFullName("/cpu:0", &name));
  EXPECT_EQ(name.type, "CPU");
  EXPECT_FALSE(name.has_job);
  EXPECT_FALSE(DeviceNameUtils::ParseFullName("/job:w/task:x", &name));
  EXPECT_FALSE(DeviceNameUtils::ParseFullName("job:w", &name));
  EXPECT_TRUE(DeviceNameUtils::IsSameAddressSpace("/job:a/task:1/device:CPU:0", "/job:a/task:1"));
  EXPECT_FALSE(DeviceNameUtils::IsSameAddressSpace("/job:a/task:1", "/job:a/task:2"));
}

}  // namespace kernel_context_test
}  // namespace tensorflow
