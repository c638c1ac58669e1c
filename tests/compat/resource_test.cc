// Tests of resources of custom kernels: ResourceMgr, ResourceHandle and ResourceOpKernel.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/cc/client/client_session.h"
#include "tensorflow/cc/ops/standard_ops.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/resource_op_kernel.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow/core/lib/core/status_test_util.h"
#include "tensorflow/core/platform/env.h"

namespace tensorflow {
namespace resource_test {

using ::testing::HasSubstr;

// A counter. `*alive` states if it exists.
class Counter : public ResourceBase {
 public:
  explicit Counter(bool* alive = nullptr) : alive_(alive) {
    if (alive_ != nullptr) *alive_ = true;
  }
  ~Counter() override {
    if (alive_ != nullptr) *alive_ = false;
  }
  std::string DebugString() const override { return "counter"; }
  void Finalize() override { finalized = true; }

  std::atomic<int> count{0};
  bool finalized = false;

 private:
  bool* const alive_;
};
class OtherResource : public ResourceBase {};

TEST(ResourceMgr, OwnsResourcesByTypeAndName) {
  bool alive = false;
  {
    ResourceMgr manager;
    TF_ASSERT_OK(manager.Create("c", "n", new Counter(&alive)));
    TF_ASSERT_OK(manager.Create("c", "n", new OtherResource));
    Counter* const second = new Counter;
    const absl::Status status = manager.Create("c", "n", second);
    EXPECT_EQ(status.code(), error::ALREADY_EXISTS);
    EXPECT_THAT(std::string(status.message()), HasSubstr("Resource c/n"));

    core::RefCountPtr<Counter> found;
    TF_ASSERT_OK(manager.Lookup("c", "n", &found));
    EXPECT_EQ(found->RefCount(), 2);
    EXPECT_EQ(manager.Lookup("d", "n", &found).code(), error::NOT_FOUND);
    EXPECT_EQ(manager.Lookup("c", "m", &found).code(), error::NOT_FOUND);
    EXPECT_THAT(manager.DebugString(), HasSubstr("counter"));
    TF_ASSERT_OK(manager.Delete<OtherResource>("c", "n"));
    EXPECT_EQ(manager.Delete<OtherResource>("c", "n").code(), error::NOT_FOUND);
    EXPECT_TRUE(alive);
  }
  EXPECT_FALSE(alive);
}

TEST(ResourceMgr, LookupOrCreateCreatesOnce) {
  ResourceMgr manager;
  int created = 0;
  for (int i = 0; i < 2; ++i) {
    core::RefCountPtr<Counter> counter;
    TF_ASSERT_OK(manager.LookupOrCreate<Counter>("c", "n", &counter, [&](Counter** made) {
      ++created;
      *made = new Counter;
      return absl::OkStatus();
    }));
    ASSERT_NE(counter, nullptr);
  }
  EXPECT_EQ(created, 1);
  Counter* none = nullptr;
  EXPECT_EQ(
      manager
          .LookupOrCreate<Counter>("c", "other", &none,
                                   [](Counter**) -> absl::Status { return errors::Aborted("no"); })
          .code(),
      error::ABORTED);
  EXPECT_EQ(none, nullptr);
}

TEST(ResourceMgr, DoesNotKeepUnownedResources) {
  ResourceMgr manager;
  core::RefCountPtr<Counter> counter(new Counter);
  TF_ASSERT_OK(manager.CreateUnowned("c", "n", counter.get()));
  EXPECT_TRUE(counter->RefCountIsOne());
  EXPECT_EQ(counter->WeakRefCount(), 1);
  core::RefCountPtr<Counter> found;
  TF_ASSERT_OK(manager.Lookup("c", "n", &found));
  found.reset();
  counter.reset();
  EXPECT_EQ(manager.Lookup("c", "n", &found).code(), error::NOT_FOUND);
  // The name is free again.
  TF_ASSERT_OK(manager.Create("c", "n", new Counter));
}

TEST(ResourceMgr, FinalizeEndsCreation) {
  ResourceMgr manager;
  core::RefCountPtr<Counter> counter(new Counter);
  counter->Ref();
  TF_ASSERT_OK(manager.Create("c", "n", counter.get()));
  manager.Finalize();
  EXPECT_TRUE(counter->finalized);
  core::RefCountPtr<Counter> late(new Counter);
  EXPECT_EQ(manager.Create("c", "late", late.get()).code(), error::FAILED_PRECONDITION);
}

TEST(ResourceHandle, KeepsItsPropertiesInATensor) {
  ResourceHandle handle;
  handle.set_device("d");
  handle.set_container("c");
  handle.set_name("n");
  handle.set_hash_code(7);
  handle.set_maybe_type_name("t");
  Tensor tensor(DT_RESOURCE, TensorShape({}));
  tensor.span<gradflow::ResourceHandle>()[0] = handle;
  const ResourceHandle copy = tensor.span<gradflow::ResourceHandle>()[0];
  EXPECT_EQ(copy.device(), "d");
  EXPECT_EQ(copy.container(), "c");
  EXPECT_EQ(copy.name(), "n");
  EXPECT_EQ(copy.hash_code(), 7);
  ResourceHandleProto proto;
  copy.AsProto(&proto);
  EXPECT_EQ(ResourceHandle(proto).SummarizeValue(), handle.SummarizeValue());
  EXPECT_THAT(handle.SummarizeValue(), HasSubstr("name=\"n\", device=\"d\", container=\"c\""));
}

TEST(ResourceHandle, IsMadeWithAllItsProperties) {
  const ResourceHandle handle = MakeResourceHandle<Counter>("c", "n", DeviceBase(Env::Default()),
                                                            {{DT_FLOAT, PartialTensorShape({2})}});
  EXPECT_EQ(handle.device(), "/device:CPU:0");
  EXPECT_EQ(handle.container(), "c");
  EXPECT_EQ(handle.name(), "n");
  TF_EXPECT_OK(handle.ValidateType<Counter>());
  EXPECT_EQ(handle.ValidateType<OtherResource>().code(), error::INVALID_ARGUMENT);
  EXPECT_EQ(handle.maybe_type_name(), TypeIndex::Make<Counter>().name());
  ASSERT_EQ(handle.dtypes_and_shapes().size(), 1);
  EXPECT_EQ(handle.dtypes_and_shapes()[0].dtype, DT_FLOAT);
  EXPECT_EQ(handle.dtypes_and_shapes()[0].shape.DebugString(), "[2]");
  EXPECT_FALSE(handle.IsRefCounting());
}

TEST(ResourceHandle, OwnsAResource) {
  bool alive = false;
  {
    ResourceHandle handle = ResourceHandle::MakeRefCountingHandle(new Counter(&alive), "d");
    const ResourceHandle copy = handle;
    EXPECT_EQ(*copy.GetResource<Counter>(), handle.resource().get());
    EXPECT_EQ(copy, handle);
    EXPECT_EQ(copy.name(), handle.name());
    EXPECT_EQ(handle.resource()->RefCount(), 2);
    ResourceHandle assigned;
    EXPECT_NE(assigned, handle);
    assigned = copy;
    EXPECT_EQ(handle.resource()->RefCount(), 3);
    const ResourceHandle moved = std::move(assigned);
    EXPECT_EQ(handle.resource()->RefCount(), 3);
    EXPECT_EQ(copy.GetResource<OtherResource>().status().code(), error::INVALID_ARGUMENT);
  }
  EXPECT_FALSE(alive);
}

REGISTER_OP("ResourceTestCounter")
    .Output("handle: resource")
    .Attr("container: string = ''")
    .Attr("shared_name: string = ''")
    .SetIsStateful();
class CounterOp : public ResourceOpKernel<Counter> {
 public:
  using ResourceOpKernel::ResourceOpKernel;

 private:
  Status CreateResource(Counter** counter) override {
    *counter = new Counter;
    return absl::OkStatus();
  }
};
REGISTER_KERNEL_BUILDER(Name("ResourceTestCounter").Device(DEVICE_CPU), CounterOp);

REGISTER_OP("ResourceTestNext").Input("handle: resource").Output("count: int32").SetIsStateful();
class NextOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    core::RefCountPtr<Counter> counter;
    OP_REQUIRES_OK(context, LookupResource(context, HandleFromInput(context, 0), &counter));
    Tensor* count;
    OP_REQUIRES_OK(context, context->allocate_output(0, TensorShape({}), &count));
    count->flat<int32>()(0) = ++counter->count;
  }
};
REGISTER_KERNEL_BUILDER(Name("ResourceTestNext").Device(DEVICE_CPU), NextOp);

// Adds a node and returns its output.
Output AddNode(const Scope& scope, const std::string& op, const std::vector<Output>& inputs) {
  NodeBuilder builder(scope.GetUniqueNameForOp(op), op);
  for (const Output& input : inputs) builder.Input(input.node(), input.index());
  Node* node = nullptr;
  scope.UpdateBuilder(&builder);
  scope.UpdateStatus(builder.Finalize(scope.graph(), &node));
  return Output(node, 0);
}

TEST(Resources, OutliveARunOfASession) {
  const Scope root = Scope::NewRootScope();
  const Output handle = AddNode(root, "ResourceTestCounter", {});
  const Output next = AddNode(root, "ResourceTestNext", {handle});
  TF_ASSERT_OK(root.status());
  std::vector<Tensor> outputs;
  for (int session = 0; session < 2; ++session) {
    const ClientSession client(root);
    for (int i = 1; i <= 3; ++i) {
      TF_ASSERT_OK(client.Run({next}, &outputs));
      EXPECT_EQ(outputs[0].flat<int32>()(0), i);
    }
  }
}

// Adds 1 to the variable x. Returns whether all ways to access x lead to the same buffer.
REGISTER_OP("ResourceTestTwice")
    .Input("x: Ref(float)")
    .Input("y: Ref(float)")
    .Output("shared: bool")
    .SetIsStateful();
class TwiceOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    Tensor first = context->mutable_input(0, /*lock_held=*/false);
    Tensor second = context->mutable_input(0, /*lock_held=*/false);
    Tensor third;
    OP_REQUIRES_OK(context, context->mutable_input("x", &third, /*lock_held=*/false));
    Tensor other = context->mutable_input(1, /*lock_held=*/false);
    OP_REQUIRES_OK(context, context->status());
    OP_REQUIRES(context, first.IsInitialized(), errors::FailedPrecondition("x has no value"));
    first.flat<float>()(0) += 1;
    Tensor* shared;
    OP_REQUIRES_OK(context, context->allocate_output(0, TensorShape({}), &shared));
    shared->flat<bool>()(0) = first.SharesBufferWith(second) && first.SharesBufferWith(third) &&
                              first.SharesBufferWith(other);
  }
};
REGISTER_KERNEL_BUILDER(Name("ResourceTestTwice").Device(DEVICE_CPU), TwiceOp);

TEST(References, SecondCallsShareTheBuffer) {
  const Scope root = Scope::NewRootScope();
  const Output v = ops::Variable(root, {1}, DT_FLOAT);
  const Output w = ops::Variable(root, {1}, DT_FLOAT);
  const Output assign_v = ops::Assign(root, v, ops::Const(root, {3.f}));
  const Output assign_w = ops::Assign(root, w, ops::Const(root, {5.f}));
  const Output same = AddNode(root, "ResourceTestTwice", {v, v});
  const Output different = AddNode(root, "ResourceTestTwice", {v, w});
  TF_ASSERT_OK(root.status());
  const ClientSession session(root);
  std::vector<Tensor> outputs;
  EXPECT_EQ(session.Run({same}, &outputs).code(), error::FAILED_PRECONDITION);
  TF_ASSERT_OK(session.Run({assign_v, assign_w}, &outputs));
  TF_ASSERT_OK(session.Run({same}, &outputs));
  EXPECT_TRUE(outputs[0].flat<bool>()(0));
  TF_ASSERT_OK(session.Run({different}, &outputs));
  EXPECT_FALSE(outputs[0].flat<bool>()(0));
  TF_ASSERT_OK(session.Run({v, w}, &outputs));
  EXPECT_EQ(outputs[0].flat<float>()(0), 5);
  EXPECT_EQ(outputs[1].flat<float>()(0), 5);
}

TEST(ContainerInfo, UsesNamesOfNodes) {
  ResourceMgr manager;
  NodeDef node;
  node.set_name("foo");
  ContainerInfo info;
  EXPECT_EQ(info.Init(&manager, node, false).code(), error::NOT_FOUND);
  AddNodeAttr("container", "", &node);
  AddNodeAttr("shared_name", "", &node);
  TF_ASSERT_OK(info.Init(&manager, node, false));
  EXPECT_EQ(info.DebugString(), "[localhost,_0_foo,private]");
  TF_ASSERT_OK(info.Init(&manager, node, true));
  EXPECT_EQ(info.DebugString(), "[localhost,foo,public]");
  (*node.mutable_attr())["container"].set_s("a b");
  EXPECT_EQ(info.Init(&manager, node, true).code(), error::INVALID_ARGUMENT);
}

TEST(Var, UninitializeRemovesTheValue) {
  const core::RefCountPtr<Var> var(new Var(DT_INT32));
  *var->tensor() = Tensor(DT_INT32, TensorShape({3}));
  var->is_initialized = true;
  EXPECT_EQ(var->DebugString(), "int32/[3]");
  var->Uninitialize();
  EXPECT_FALSE(var->is_initialized);
  EXPECT_EQ(var->tensor()->NumElements(), 0);
}

}  // namespace resource_test
}  // namespace tensorflow
