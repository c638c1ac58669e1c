// Tests of ResourceMgr, ContainerInfo and ResourceHandle: lifetimes, and the text of each error.
#include "tensorflow/core/framework/resource_mgr.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor_testutil.h"
#include "tensorflow/core/lib/core/status_test_util.h"
#include "tensorflow/core/platform/status_matchers.h"

namespace tensorflow {
namespace resource_mgr_test {

using ::tensorflow::testing::StatusIs;
using ::testing::HasSubstr;

struct Item : ResourceBase {
  std::string DebugString() const override { return "item"; }
  void Finalize() override { ++finalized; }
  int finalized = 0;
};
struct OtherItem : Item {};

const std::string& TypeName() {
  static const std::string& name = *new std::string(TypeIndex::Make<Item>().name());
  return name;
}

TEST(ResourceMgrErrors, NameTheResource) {
  ResourceMgr manager;
  Item* found = nullptr;
  EXPECT_THAT(
      manager.Lookup("c", "n", &found),
      StatusIs(error::NOT_FOUND, "Container c does not exist. (Could not find resource: c/n)"));
  EXPECT_THAT(manager.Delete<Item>("c", "n"),
              StatusIs(error::NOT_FOUND, "Container c does not exist."));
  const core::RefCountPtr<Item> item(new Item);
  item->Ref();
  TF_ASSERT_OK(manager.Create("c", "n", item.get()));
  EXPECT_THAT(
      manager.Lookup("c", "m", &found),
      StatusIs(error::NOT_FOUND, absl::StrCat("Resource c/m/", TypeName(), " does not exist.")));
  EXPECT_EQ(found, nullptr);
  EXPECT_THAT(manager.Delete<OtherItem>("c", "n"),
              StatusIs(error::NOT_FOUND, "Resource c/n/ does not exist."));
  // If Create() fails, it releases a resource that it owns, and keeps other resources.
  const core::RefCountPtr<Item> second(new Item);
  second->Ref();
  EXPECT_THAT(manager.Create("c", "n", second.get()),
              StatusIs(error::ALREADY_EXISTS, absl::StrCat("Resource c/n/", TypeName())));
  EXPECT_EQ(second->RefCount(), 1);
  EXPECT_EQ(manager.CreateUnowned("c", "n", second.get()).code(), error::ALREADY_EXISTS);
  EXPECT_EQ(second->RefCount(), 1);
  TF_ASSERT_OK(manager.CreateUnowned("c", "other", second.get()));
  EXPECT_THAT(manager.Delete<Item>("c", "other"),
              StatusIs(error::INTERNAL,
                       absl::StrCat("Cannot delete an unowned Resource c/other/", TypeName())));
  EXPECT_EQ(manager.Lookup("c", "other", &found).code(), error::NOT_FOUND);
  TF_EXPECT_OK(manager.Delete<Item>("c", "n"));
  EXPECT_EQ(item->RefCount(), 1);
}

TEST(ResourceMgrContainers, EndWithTheirResources) {
  ResourceMgr manager;
  const core::RefCountPtr<Item> items[3] = {core::RefCountPtr<Item>(new Item),
                                            core::RefCountPtr<Item>(new Item),
                                            core::RefCountPtr<Item>(new Item)};
  const char* const containers[] = {"a", "a", "b"};
  for (int i = 0; i < 3; ++i) {
    items[i]->Ref();
    TF_ASSERT_OK(manager.Create(containers[i], absl::StrCat(i), items[i].get()));
  }
  core::RefCountPtr<Item> unowned(new Item);
  TF_ASSERT_OK(manager.CreateUnowned("b", "gone", unowned.get()));
  manager.Finalize();
  EXPECT_EQ(unowned->finalized, 0);
  unowned.reset();
  EXPECT_EQ(manager.DebugString(),
            absl::StrCat("a | ", TypeName(), " | 0 | item\na | ", TypeName(), " | 1 | item\nb | ",
                         TypeName(), " | 2 | item\nb | ", TypeName(), " | gone | <gone>"));
  manager.Finalize();
  for (const auto& item : items) EXPECT_EQ(item->finalized, 1);
  EXPECT_THAT(manager.Create("a", "late", items[0].get()),
              StatusIs(error::FAILED_PRECONDITION, "ResourceMgr is finalized"));
  TF_EXPECT_OK(manager.Cleanup("none"));
  TF_EXPECT_OK(manager.Cleanup("a"));
  Item* found = nullptr;
  EXPECT_THAT(manager.Lookup("a", "0", &found),
              StatusIs(error::NOT_FOUND, HasSubstr("Container a does not exist.")));
  EXPECT_EQ(items[0]->RefCount() + items[1]->RefCount(), 2);
  EXPECT_EQ(items[2]->RefCount(), 2);
  manager.Clear();
  EXPECT_EQ(items[2]->RefCount(), 1);
  EXPECT_EQ(manager.DebugString(), "");
  EXPECT_EQ(manager.NewPrivateNumber(), 0);
  EXPECT_EQ(manager.NewPrivateNumber(), 1);
}

TEST(ContainerInfoTest, ChecksTheAttributesOfTheNode) {
  const auto make = [](const std::string& container, const std::string& name) {
    NodeDef node;
    node.set_name("node");
    AddNodeAttr("container", container, &node);
    AddNodeAttr("shared_name", name, &node);
    return node;
  };
  ResourceMgr manager("home");
  ContainerInfo info;
  const struct {
    const char* container;
    const char* name;
    bool use_node_name;
    std::string expected;  // the expected result or error
  } kCases[] = {
      {"", "", true, "[home,node,public]"},
      {"", "", false, "[home,_0_node,private]"},
      {"", "", false, "[home,_1_node,private]"},
      {"c", "shared", false, "[c,shared,public]"},
      {"c", "shared", true, "[c,shared,public]"},
      {".a", "", true, "[.a,node,public]"},
      {"1_.-/b", "", true, "[1_.-/b,node,public]"},
      {"_a", "", true, "container contains invalid characters: _a"},
      {"/a", "", true, "container contains invalid characters: /a"},
      {"a b", "", true, "container contains invalid characters: a b"},
      {"a", "_x", true, "shared_name cannot start with '_': _x"},
  };
  for (const auto& [container, name, use_node_name, expected] : kCases) {
    const absl::Status status = info.Init(&manager, make(container, name), use_node_name);
    EXPECT_EQ(status.ok() ? info.DebugString() : std::string(status.message()), expected);
    EXPECT_EQ(status.ok(), expected[0] == '[');
    EXPECT_TRUE(status.ok() || status.code() == error::INVALID_ARGUMENT);
  }
  EXPECT_THAT(info.Init(nullptr, make("", "")),
              StatusIs(error::INTERNAL, "there is no resource manager"));
  for (const std::string attr : {"container", "shared_name"}) {
    NodeDef node = make("", "");
    node.mutable_attr()->erase(attr);
    EXPECT_THAT(info.Init(&manager, node),
                StatusIs(error::NOT_FOUND, HasSubstr("No attr named '" + attr + "' in NodeDef")));
  }
  {
    ResourceMgr temporary;
    TF_ASSERT_OK(info.Init(&temporary, make("", "")));
    EXPECT_EQ(info.resource_manager(), &temporary);
    EXPECT_TRUE(info.resource_is_private_to_kernel());
  }
  EXPECT_EQ(info.resource_manager(), nullptr);
}

// ---- Handles ----

TEST(ResourceHandleTest, ChangesOnePropertyAtATime) {
  ResourceHandle handle;
  handle.set_maybe_type_name("t");
  handle.set_hash_code(7);
  handle.set_container("c");
  handle.set_device("d");
  handle.set_dtypes_and_shapes(
      {{DT_FLOAT, PartialTensorShape({2, -1})}, {DT_INT32, PartialTensorShape()}});
  handle.set_name("n");
  const std::string text = "device: d container: c name: n hash_code: 7 maybe_type_name t";
  const std::string summary =
      "ResourceHandle(name=\"n\", device=\"d\", container=\"c\", type=\"t\", dtype and shapes : "
      "\"[ DType enum: 1, Shape: [2,?], DType enum: 3, Shape: <unknown> ]\")";
  EXPECT_EQ(handle.DebugString(), text);
  EXPECT_EQ(handle.SummarizeValue(), summary);
  EXPECT_EQ(handle.dtype(), DT_FLOAT);
  EXPECT_EQ(handle.shape(), PartialTensorShape({2, -1}));
  handle.set_name(handle.name());
  handle.set_container("c");
  handle.set_device("d");
  handle.set_hash_code(7);
  handle.set_maybe_type_name("t");
  const ResourceHandle& self = handle;
  handle = self;
  EXPECT_EQ(handle.SummarizeValue(), summary);

  ResourceHandleProto proto;
  handle.AsProto(&proto);
  const ResourceHandle parsed(proto);
  EXPECT_EQ(parsed.DebugString(), text);
  EXPECT_EQ(parsed.SummarizeValue(), summary);
  ResourceHandle built;
  TF_ASSERT_OK(ResourceHandle::BuildResourceHandle(proto, &built));
  EXPECT_EQ(built.SummarizeValue(), summary);
  proto.set_name("other");
  proto.mutable_dtypes_and_shapes(1)->mutable_shape()->add_dim()->set_size(-7);
  proto.mutable_dtypes_and_shapes(1)->mutable_shape()->set_unknown_rank(false);
  EXPECT_EQ(ResourceHandle::BuildResourceHandle(proto, &built).code(), error::INVALID_ARGUMENT);
  EXPECT_EQ(built.name(), "n");
  EXPECT_THAT(
      handle.ValidateType<Item>(),
      StatusIs(error::INVALID_ARGUMENT,
               absl::StrCat("Trying to access a handle's resource using the wrong type. The handle "
                            "points to a resource (name 'n') of type 't' but you are trying to "
                            "access it as type '",
                            TypeName(), "'")));
}

TEST(ResourceHandleTest, IsMadeFromGradflowsHandles) {
  const ResourceHandle handle =
      gradflow::ResourceHandle("c", "n", DT_FLOAT, PartialTensorShape({3}));
  EXPECT_EQ(handle.DebugString(),
            "device: /device:CPU:0 container: c name: n hash_code: 0 maybe_type_name ");
  ASSERT_EQ(handle.dtypes_and_shapes().size(), 1u);
  EXPECT_EQ(handle.dtypes_and_shapes()[0].dtype, DT_FLOAT);
  EXPECT_EQ(handle.dtypes_and_shapes()[0].shape, PartialTensorShape({3}));
  EXPECT_TRUE(ResourceHandle().dtypes_and_shapes().empty());
  EXPECT_EQ(ResourceHandle().SummarizeValue(),
            "ResourceHandle(name=\"\", device=\"/device:CPU:0\", container=\"\", type=\"\", dtype "
            "and shapes : \"[  ]\")");
  EXPECT_THAT(handle.GetResource<Item>().status(),
              StatusIs(error::NOT_FOUND, handle.DebugString() + " does not own its resource"));
  // gradflow can describe the resource of a TensorFlow handle.
  const ResourceHandle owner = ResourceHandle::MakeRefCountingHandle(new Item, "d");
  const gradflow::ResourceHandle& base = owner;
  EXPECT_EQ(base.resource()->DebugString(), "item");
  ResourceHandle named;
  named.set_name("n");
  EXPECT_EQ(static_cast<const gradflow::ResourceHandle&>(named).resource()->DebugString(), "");
}

REGISTER_OP("ResourceMgrTest").Input("x: resource").Input("y: float").Output("handle: resource");
struct NothingOp : OpKernel {
  using OpKernel::OpKernel;
  void Compute(OpKernelContext*) override {}
};
REGISTER_KERNEL_BUILDER(Name("ResourceMgrTest").Device(DEVICE_CPU), NothingOp);

class HandlesOfAContext : public ::testing::Test {
 protected:
  OpKernelContext& Make(ResourceMgr* manager) {
    NodeDef node;
    node.set_name("n");
    node.set_op("ResourceMgrTest");
    node.add_input("a");
    node.add_input("b");
    absl::StatusOr<std::unique_ptr<OpKernel>> kernel = CreateOpKernel(DEVICE_CPU, node);
    TF_CHECK_OK(kernel.status());
    kernel_ = *std::move(kernel);
    OpKernelContext::Params params;
    params.op_kernel = kernel_.get();
    params.resource_manager = manager;
    const std::vector<TensorValue> inputs = {TensorValue(&x_), TensorValue(&y_)};
    params.inputs = inputs;
    context_ = std::make_unique<OpKernelContext>(&params);
    return *context_;
  }

  Tensor x_{DT_RESOURCE, TensorShape({})};
  Tensor y_ = test::AsTensor<float>({1, 2});
  std::unique_ptr<OpKernel> kernel_;
  std::unique_ptr<OpKernelContext> context_;
};

TEST_F(HandlesOfAContext, AreReadFromInputs) {
  x_.span<gradflow::ResourceHandle>()[0] = gradflow::ResourceHandle("c", "n");
  OpKernelContext& context = Make(nullptr);
  ResourceHandle handle;
  TF_ASSERT_OK(HandleFromInput(&context, 0, &handle));
  EXPECT_EQ(handle.name(), "n");
  ResourceHandle by_name;
  TF_ASSERT_OK(HandleFromInput(&context, "x", &by_name));
  EXPECT_EQ(by_name, handle);
  EXPECT_EQ(HandleFromInput(&context, 0), handle);
  EXPECT_EQ(HandleFromInput(&context, 1), ResourceHandle());
  EXPECT_THAT(
      HandleFromInput(&context, "y", &handle),
      StatusIs(error::INVALID_ARGUMENT, "input 1 must be a resource handle, but is float [2]"));
  EXPECT_THAT(HandleFromInput(&context, "none", &handle),
              StatusIs(error::INVALID_ARGUMENT, "Unknown input name: none"));
  EXPECT_EQ(HandleFromInput(&context, 2, &handle).code(), error::INVALID_ARGUMENT);
  x_ = Tensor(DT_RESOURCE, TensorShape({0}));
  EXPECT_THAT(
      HandleFromInput(&Make(nullptr), 0, &handle),
      StatusIs(error::INVALID_ARGUMENT, "input 0 must be a resource handle, but is resource [0]"));
}

TEST_F(HandlesOfAContext, AreWrittenToOutputs) {
  ResourceMgr manager("home");
  OpKernelContext& context = Make(&manager);
  for (const auto& [container, expected] : {std::pair("", "home"), std::pair("c", "c")}) {
    TF_ASSERT_OK(MakeResourceHandleToOutput(&context, 0, container, "n", TypeIndex::Make<Item>()));
    const ResourceHandle handle = context.mutable_output(0)->span<gradflow::ResourceHandle>()[0];
    EXPECT_EQ(handle.container(), expected);
    EXPECT_EQ(handle.name(), "n");
    EXPECT_EQ(handle.device(), "/device:CPU:0");
    TF_EXPECT_OK(handle.ValidateType<Item>());
    EXPECT_EQ(MakeResourceHandle<Item>(&context, container, "n"), handle);
  }
  EXPECT_EQ(MakeResourceHandleToOutput(&context, 1, "", "n", TypeIndex::Make<Item>()).code(),
            error::INTERNAL);
  EXPECT_THAT(MakeResourceHandleToOutput(&Make(nullptr), 0, "", "n", TypeIndex::Make<Item>()),
              StatusIs(error::INTERNAL, "there is no resource manager"));
}

TEST_F(HandlesOfAContext, FindResources) {
  ResourceMgr manager;
  OpKernelContext& context = Make(&manager);
  const core::RefCountPtr<Item> item(new Item);
  item->Ref();
  const ResourceHandle handle = MakeResourceHandle<Item>(&context, "c", "n");
  TF_ASSERT_OK(CreateResource(&context, handle, item.get()));
  ResourceBase* found = nullptr;
  TF_ASSERT_OK(LookupResource(&context, handle, &found));
  EXPECT_EQ(found, item.get());
  EXPECT_EQ(item->RefCount(), 3);
  found->Unref();
  ResourceBase* by_handle = nullptr;
  TF_ASSERT_OK(manager.Lookup(handle, &by_handle));
  EXPECT_EQ(by_handle, item.get());
  by_handle->Unref();

  ResourceHandle far = handle;
  far.set_device("d");
  const auto is_far = StatusIs(error::INVALID_ARGUMENT,
                               "Trying to access resource n located in device d from device "
                               "/device:CPU:0");
  EXPECT_THAT(LookupResource(&context, far, &found), is_far);
  EXPECT_THAT(DeleteResource(&context, far), is_far);
  TF_EXPECT_OK(DeleteResource(&context, handle));
  EXPECT_EQ(item->RefCount(), 1);
  EXPECT_THAT(DeleteResource(&context, handle),
              StatusIs(error::NOT_FOUND, "Resource c/n/ does not exist."));
  EXPECT_THAT(
      LookupResource(&context, handle, &found),
      StatusIs(error::NOT_FOUND, absl::StrCat("Resource c/n/", TypeName(), " does not exist.")));
  EXPECT_EQ(manager.Delete(handle).code(), error::NOT_FOUND);

  // A handle that owns its resource works without a manager.
  OpKernelContext& without = Make(nullptr);
  const auto has_none = StatusIs(error::INTERNAL, "there is no resource manager");
  EXPECT_THAT(LookupResource(&without, handle, &found), has_none);
  EXPECT_THAT(DeleteResource(&without, handle), has_none);
  item->Ref();
  const ResourceHandle owner = ResourceHandle::MakeRefCountingHandle(item.get(), "d");
  TF_ASSERT_OK(LookupResource(&without, owner, &found));
  EXPECT_EQ(found, item.get());
  EXPECT_EQ(item->RefCount(), 3);
  found->Unref();
  TF_EXPECT_OK(DeleteResource(&without, owner));
  EXPECT_EQ(item->RefCount(), 2);
}

}  // namespace resource_mgr_test
}  // namespace tensorflow
