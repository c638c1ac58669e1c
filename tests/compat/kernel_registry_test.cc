// Tests of kernel definitions, and of selecting a registered kernel for a node.
#include "tensorflow/core/framework/kernel_registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "gradflow/core/context_free_kernel.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "tensorflow/core/framework/fake_input.h"
#include "tensorflow/core/framework/kernel_def_util.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/tensor_testutil.h"
#include "tensorflow/core/lib/core/status_test_util.h"
#include "tensorflow/core/platform/status_matchers.h"

namespace tensorflow {
namespace kernel_registry_test {

using ::tensorflow::testing::StatusIs;
using ::testing::HasSubstr;

std::unique_ptr<const KernelDef> Build(const KernelDefBuilder& builder) {
  return std::unique_ptr<const KernelDef>(builder.Build());
}

TEST(KernelDefBuilderTest, SetsEachField) {
  KernelDefBuilder builder("Op");
  builder.Device(DEVICE_CPU).TypeConstraint("T", {DT_FLOAT, DT_INT32});
  builder.AttrConstraint("i", gtl::ArraySlice<int64_t>({3, 4}));
  builder.AttrConstraint("s", gtl::ArraySlice<std::string>({"a", "b"}));
  builder.AttrConstraint("c", gtl::ArraySlice<const char*>({"d", "e"}));
  builder.AttrConstraint("one", "f").AttrConstraint("b", gtl::ArraySlice<bool>({true, false}));
  builder.HostMemory("x").HostMemory("y").Label("fast").Priority(2);
  // Changing a copy does not change the original.
  KernelDefBuilder copy(builder);
  copy.Label("slow");
  const std::string before =
      "op: \"Op\" device_type: \"CPU\" "
      "constraint { name: \"T\" allowed_values { list { type: DT_FLOAT type: DT_INT32 } } } "
      "constraint { name: \"i\" allowed_values { list { i: 3 i: 4 } } } "
      "constraint { name: \"s\" allowed_values { list { s: \"a\" s: \"b\" } } } "
      "constraint { name: \"c\" allowed_values { list { s: \"d\" s: \"e\" } } } "
      "constraint { name: \"one\" allowed_values { list { s: \"f\" } } } "
      "constraint { name: \"b\" allowed_values { list { b: true b: false } } } "
      "host_memory_arg: \"x\" host_memory_arg: \"y\" ";
  EXPECT_EQ(Build(builder)->ShortDebugString(), before + "label: \"fast\" priority: 2");
  EXPECT_EQ(Build(copy)->ShortDebugString(), before + "label: \"slow\" priority: 2");
}

TEST(KernelAttrsMatchTest, ComparesValuesAndLists) {
  const auto def = Build(KernelDefBuilder("Op")
                             .TypeConstraint("T", {DT_FLOAT, DT_INT32})
                             .AttrConstraint("i", gtl::ArraySlice<int64_t>({3, 4}))
                             .AttrConstraint("s", gtl::ArraySlice<std::string>({"a", "b"}))
                             .AttrConstraint("b", true));
  AttrValue value[4], other[4];
  value[0].set_type(DT_INT32), other[0].set_type(DT_INT64);
  value[1].set_i(4), other[1].set_i(5);
  value[2].set_s("b"), other[2].set_s("c");
  value[3].set_b(true), other[3].set_b(false);
  AttrValue list[4], part[4];
  list[0].mutable_list()->add_type(DT_FLOAT), part[0].mutable_list()->add_type(DT_INT64);
  list[1].mutable_list()->add_i(3), part[1].mutable_list()->add_i(2);
  list[2].mutable_list()->add_s("a"), part[2].mutable_list()->add_s("c");
  list[3].mutable_list()->add_b(true), part[3].mutable_list()->add_b(false);
  // In each list of `part`, only the last element satisfies the constraint.
  for (int i = 0; i < 4; ++i) part[i].MergeFrom(list[i]);
  const std::string types[] = {"type", "int", "string", "bool"};
  const std::string names[] = {"T", "i", "s", "b"};
  const auto match = [&](int i, const AttrValue& with, bool* result) {
    NodeDef node;
    for (int k = 0; k < 4; ++k) (*node.mutable_attr())[names[k]] = k == i ? with : value[k];
    return KernelAttrsMatch(*def, AttrSlice(node), result);
  };
  for (int i = 0; i < 4; ++i) {
    bool result = false;
    for (const AttrValue* const with : {&value[i], &list[i], &other[i], &part[i]}) {
      TF_ASSERT_OK(match(i, *with, &result));
      EXPECT_EQ(result, with == &value[i] || with == &list[i]) << with->ShortDebugString();
    }
    AttrValue wrong;
    wrong.set_f(1);
    result = true;
    EXPECT_THAT(match(i, wrong, &result),
                StatusIs(error::INVALID_ARGUMENT, AllOf(HasSubstr("attribute " + names[i] + ": "),
                                                        HasSubstr("list(" + types[i] + ")"))));
    EXPECT_FALSE(result);
  }
  bool result = true;
  EXPECT_THAT(KernelAttrsMatch(*def, AttrSlice(NodeDef()), &result),
              StatusIs(error::INVALID_ARGUMENT,
                       HasSubstr("OpKernel 'Op' has constraint on attr 'T' not in NodeDef")));
  EXPECT_FALSE(result);
  KernelDef unknown;
  unknown.add_constraint()->set_name("T");
  unknown.mutable_constraint(0)->mutable_allowed_values()->mutable_list()->add_f(1);
  EXPECT_THAT(KernelAttrsMatch(unknown, AttrSlice(NodeDef()), &result),
              StatusIs(error::UNIMPLEMENTED,
                       HasSubstr("has constraint on attr 'T' with unsupported type: [1")));
  TF_ASSERT_OK(KernelAttrsMatch(KernelDef(), AttrSlice(NodeDef()), &result));
  EXPECT_TRUE(result);
}

// ---- Kernels of an op ----

REGISTER_OP("RegistryChoice").Input("x: T").Output("y: T").Attr("T: type").Attr("n: int = 0");

template <int id>
class ChoiceOp : public OpKernel {
 public:
  explicit ChoiceOp(OpKernelConstruction* context) : OpKernel(context) {
    if (id == 9) context->SetStatus(errors::DataLoss("not made"));
  }
  void Compute(OpKernelContext* context) override {
    context->SetStatus(errors::Aborted(absl::StrCat("kernel ", id)));
  }
};

template <int id>
void Add(const KernelDefBuilder& builder) {
  compat_internal::AddKernel(*Build(builder), absl::StrCat("Choice", id),
                             &compat_internal::NewKernel<ChoiceOp<id>>);
}

// Registers the kernels once.
void AddChoices() {
  static const bool added = [] {
    const auto choice = [] { return KernelDefBuilder("RegistryChoice"); };
    Add<1>(choice().Device(DEVICE_GPU).TypeConstraint<float>("T").Priority(1));
    Add<2>(choice().Device(DEVICE_GPU).TypeConstraint<float>("T").Priority(3));
    Add<3>(choice().Device(DEVICE_GPU).TypeConstraint<float>("T").Priority(2));
    Add<4>(choice().Device(DEVICE_GPU).TypeConstraint<float>("T").Label("other"));
    Add<5>(choice().Device(DEVICE_GPU).TypeConstraint<int32>("T"));
    Add<6>(choice().Device(DEVICE_GPU).TypeConstraint<int64_t>("T"));
    Add<7>(
        choice().Device(DEVICE_GPU).TypeConstraint<int64_t>("T").AttrConstraint("n", int64_t{0}));
    Add<8>(choice().Device(DEVICE_DEFAULT).TypeConstraint<double>("T"));
    Add<9>(choice().Device(DEVICE_TPU).TypeConstraint<float>("T").Priority(3));
    Add<10>(choice().Device(DEVICE_TPU).TypeConstraint<double>("T"));
    return true;
  }();
  (void)added;
}

NodeDef MakeNode(const std::string& op, DataType type, const std::string& label = "") {
  NodeDef node;
  TF_CHECK_OK(NodeDefBuilder("n", op).Input(FakeInput(type)).Finalize(&node));
  if (!label.empty()) AddNodeAttr("_kernel", label, &node);
  return node;
}

TEST(KernelRegistryTest, FindsTheKernelForANode) {
  AddChoices();
  const struct {
    const char* device;
    DataType type;
    const char* label;
    const char* class_name;
  } kCases[] = {{DEVICE_GPU, DT_FLOAT, "", "Choice2"},  {DEVICE_GPU, DT_FLOAT, "other", "Choice4"},
                {DEVICE_GPU, DT_INT32, "", "Choice5"},  {DEVICE_GPU, DT_DOUBLE, "", "Choice8"},
                {DEVICE_CPU, DT_DOUBLE, "", "Choice8"}, {DEVICE_TPU, DT_DOUBLE, "", "Choice10"},
                {DEVICE_CPU, DT_FLOAT, "", ""},         {DEVICE_GPU, DT_FLOAT, "none", ""}};
  for (const auto& [device, type, label, class_name] : kCases) {
    const NodeDef node = MakeNode("RegistryChoice", type, label);
    const std::string name = class_name;
    const KernelDef* def = nullptr;
    std::string found;
    const absl::Status status = FindKernelDef(device, node, &def, &found);
    EXPECT_EQ(found, name);
    EXPECT_EQ(KernelDefAvailable(device, node), !name.empty());
    const auto kernel = CreateOpKernel(device, node);
    if (name.empty()) {
      EXPECT_THAT(status,
                  StatusIs(error::NOT_FOUND,
                           AllOf(HasSubstr(absl::StrCat("No registered 'RegistryChoice' OpKernel "
                                                        "for '",
                                                        device, "' devices compatible with node")),
                                 HasSubstr("  op: \"RegistryChoice\" device_type: \"GPU\""))));
      EXPECT_EQ(kernel.status(), status);
      continue;
    }
    TF_EXPECT_OK(FindKernelDef(device, node, nullptr, nullptr));
    EXPECT_EQ(def->op(), "RegistryChoice");
    TF_ASSERT_OK(kernel.status());
    OpKernelContext::Params params;
    params.op_kernel = kernel->get();
    OpKernelContext context(&params);
    (*kernel)->Compute(&context);
    EXPECT_EQ(context.status().message(), "kernel " + name.substr(6));
  }
  // The constructor of the kernel fails.
  EXPECT_THAT(CreateOpKernel(DEVICE_TPU, MakeNode("RegistryChoice", DT_FLOAT)).status(),
              StatusIs(error::DATA_LOSS, "not made"));
}

TEST(KernelRegistryTest, RefusesAmbiguousNodes) {
  AddChoices();
  const NodeDef node = MakeNode("RegistryChoice", DT_INT64);
  const auto is_refused =
      StatusIs(error::INVALID_ARGUMENT,
               AllOf(HasSubstr("Multiple OpKernel registrations match NodeDef '"),
                     HasSubstr("constraint { name: \"n\" allowed_values { list { i: 0 } } }'")));
  EXPECT_THAT(FindKernelDef(DEVICE_GPU, node, nullptr, nullptr), is_refused);
  EXPECT_THAT(CreateOpKernel(DEVICE_GPU, node).status(), is_refused);
  EXPECT_FALSE(KernelDefAvailable(DEVICE_GPU, node));
  DeviceTypeVector devices;
  EXPECT_THAT(SupportedDeviceTypesForNode({DEVICE_GPU}, node, &devices), is_refused);
  NodeDef one = node;
  (*one.mutable_attr())["n"].set_i(1);
  EXPECT_TRUE(KernelDefAvailable(DEVICE_GPU, one));
  // The node lacks an attribute that another kernel constrains.
  one.mutable_attr()->erase("n");
  EXPECT_THAT(FindKernelDef(DEVICE_GPU, one, nullptr, nullptr),
              StatusIs(error::INVALID_ARGUMENT, HasSubstr("not in NodeDef")));
}

TEST(KernelRegistryTest, ListsDevicesByPriority) {
  AddChoices();
  const std::vector<DeviceType> all = {DEVICE_CPU, DEVICE_GPU, DEVICE_TPU};
  const auto list = [&](const NodeDef& node, const char* address) {
    DeviceNameUtils::ParsedName local;
    EXPECT_TRUE(address == nullptr || DeviceNameUtils::ParseFullName(address, &local));
    PrioritizedDeviceTypeVector devices = {{DEVICE_CPU, 7}};
    TF_EXPECT_OK(
        SupportedDeviceTypesForNode(all, node, &devices, address == nullptr ? nullptr : &local));
    std::string text;
    for (const auto& [device, priority] : devices) {
      absl::StrAppend(&text, device.type_string(), ":", priority, " ");
    }
    return text;
  };
  // Equal priorities keep their order.
  EXPECT_EQ(list(MakeNode("RegistryChoice", DT_FLOAT), nullptr), "GPU:3 TPU:3 ");
  EXPECT_EQ(list(MakeNode("RegistryChoice", DT_DOUBLE), nullptr), "CPU:0 GPU:0 TPU:0 ");
  EXPECT_EQ(list(MakeNode("RegistryChoice", DT_INT32), nullptr), "GPU:0 ");
  EXPECT_EQ(list(MakeNode("Relu", DT_FLOAT), nullptr), "CPU:0 ");
  // A function runs on any device.
  NodeDef function;
  function.set_op("RegistryNoSuchOp");
  EXPECT_EQ(list(function, nullptr), "CPU:0 GPU:0 TPU:0 ");
  // A node without a kernel may run on another machine.
  NodeDef node = MakeNode("RegistryChoice", DT_STRING);
  EXPECT_EQ(list(node, "/job:a/replica:0/task:1"), "");
  node.set_device("/job:a/replica:0/task:2");
  EXPECT_EQ(list(node, nullptr), "");
  EXPECT_EQ(list(node, "/job:a/replica:0/task:2"), "");
  EXPECT_EQ(list(node, "/job:a/replica:0/task:1"), "CPU:0 GPU:0 TPU:0 ");
  node = MakeNode("RegistryChoice", DT_INT32);
  node.set_device("/job:a/replica:0/task:2");
  EXPECT_EQ(list(node, "/job:a/replica:0/task:1"), "GPU:0 ");

  DeviceTypeVector devices = {DEVICE_CPU};
  TF_ASSERT_OK(SupportedDeviceTypesForNode(all, MakeNode("RegistryChoice", DT_FLOAT), &devices));
  EXPECT_EQ(devices, (DeviceTypeVector{DEVICE_GPU, DEVICE_TPU}));
}

TEST(KernelRegistryTest, ListsKernels) {
  AddChoices();
  EXPECT_EQ(KernelsRegisteredForOp("RegistryNoSuchOp"), "  <no registered kernels>\n");
  const KernelList list = GetRegisteredKernelsForOp("RegistryChoice");
  ASSERT_EQ(list.kernel_size(), 10);
  EXPECT_EQ(list.kernel(3).label(), "other");
  const std::string text = KernelsRegisteredForOp("RegistryChoice");
  EXPECT_EQ(text.find("  " + list.kernel(0).ShortDebugString() + "\n"), 0u);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 10);
  ::testing::internal::CaptureStderr();
  LogAllRegisteredKernels();
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("OpKernel ('" + list.kernel(9).ShortDebugString() + "')\n"));
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), GetAllRegisteredKernels().kernel_size());
}

// ---- Kernels that gradflow's sessions use ----

REGISTER_OP("RegistrySession").Input("x: T").Output("y: T").Attr("T: type");
struct CheapOp : ChoiceOp<0> {
  using ChoiceOp<0>::ChoiceOp;
  bool IsExpensive() override { return false; }
};
REGISTER_KERNEL_BUILDER(Name("RegistrySession").Device(DEVICE_CPU).Priority(1), ChoiceOp<0>);
REGISTER_KERNEL_BUILDER(
    Name("RegistrySession").Device(DEVICE_CPU).TypeConstraint<float>("T").Priority(2), CheapOp);

TEST(KernelRegistryTest, SessionsChooseByPriorityAndType) {
  for (const auto& [type, priority] : {std::pair(DT_FLOAT, 2), std::pair(DT_INT32, 1)}) {
    const NodeDef node = MakeNode("RegistrySession", type);
    const auto kernel = gradflow::GlobalRegistry().FindKernel(node);
    TF_ASSERT_OK(kernel.status());
    EXPECT_EQ((*kernel)->priority, priority);
    const DataTypeVector types = {type};
    const OpDef& op = gradflow::GlobalRegistry().FindOp(node.op())->def();
    const auto made = (*kernel)->factory(gradflow::KernelConstruction(node, op, types, types));
    TF_ASSERT_OK(made.status());
    EXPECT_EQ((*made)->IsCheap(), priority == 2);
  }
}

// ---- gradflow's kernels ----

// Runs a kernel on some of its inputs and returns its status.
absl::Status RunKernel(OpKernel* kernel, const std::vector<TensorValue>& inputs,
                       int num_outputs = 1) {
  OpKernelContext::Params params;
  params.op_kernel = kernel;
  params.inputs = inputs;
  OpKernelContext context(&params, num_outputs);
  kernel->Compute(&context);
  return context.status();
}

TEST(LibraryKernelTest, ChecksItsContext) {
  const auto relu = CreateOpKernel(DEVICE_CPU, MakeNode("Relu", DT_FLOAT));
  TF_ASSERT_OK(relu.status());
  Tensor x = test::AsScalar<float>(1), integer = test::AsScalar<int32>(1);
  TF_EXPECT_OK(RunKernel(relu->get(), {TensorValue(&x)}));
  EXPECT_THAT(RunKernel(relu->get(), {TensorValue(&integer)}),
              StatusIs(error::INVALID_ARGUMENT, "input 0 has type int32, expected float"));
  const struct {
    std::vector<TensorValue> inputs;
    int num_outputs;
    const char* found;
  } kCases[] = {{{}, 1, "0 inputs and 1 outputs"},
                {{TensorValue(&x), TensorValue(&x)}, 1, "2 inputs and 1 outputs"},
                {{TensorValue(&x)}, 0, "1 inputs and 0 outputs"}};
  for (const auto& [inputs, num_outputs, found] : kCases) {
    EXPECT_THAT(RunKernel(relu->get(), inputs, num_outputs),
                StatusIs(error::INVALID_ARGUMENT,
                         absl::StrCat("the context has ", found, ", expected 1 and 1")));
  }

  NodeDef node;
  TF_ASSERT_OK(NodeDefBuilder("n", "Assign")
                   .Input(FakeInput(DT_FLOAT_REF))
                   .Input(FakeInput(DT_FLOAT))
                   .Finalize(&node));
  const auto assign = CreateOpKernel(DEVICE_CPU, node);
  TF_ASSERT_OK(assign.status());
  mutex mu;
  EXPECT_THAT(RunKernel(assign->get(), {TensorValue(&mu, &x), TensorValue(&x)}),
              StatusIs(error::UNIMPLEMENTED,
                       "input 0 is a reference to a variable, which gradflow's kernels take in a "
                       "session"));
}

// Counts its runs without a context, and the runs whose second input is not there.
class ContextFree final : public gradflow::OpKernel, public gradflow::ContextFreeKernel {
 public:
  static int runs_without_context;
  static int runs_without_input;
  static absl::StatusOr<std::unique_ptr<gradflow::OpKernel>> Make(
      const gradflow::KernelConstruction&) {
    return std::make_unique<ContextFree>();
  }
  absl::Status Compute(gradflow::KernelContext& ctx) const override {
    if (ctx.input(1).dtype() == DT_INVALID) ++runs_without_input;
    ctx.set_output(0, ctx.input(0));
    return absl::OkStatus();
  }
  void ComputeWithoutContext() const override { ++runs_without_context; }
};
int ContextFree::runs_without_context = 0;
int ContextFree::runs_without_input = 0;

REGISTER_OP("RegistryContextFree").Input("x: float").Input("y: float").Output("z: float");

// Kernels in C may be for devices that do not exist.
TEST(LibraryKernelTest, IsMadeForOtherDevicesAndRunsWithoutContextOrInputs) {
  gradflow::KernelRegistration registration;
  registration.op = "RegistryContextFree";
  registration.device = "INVENTEDDEVICE";
  registration.factory = &ContextFree::Make;
  TF_ASSERT_OK(gradflow::GlobalRegistry().RegisterKernel(registration));
  NodeDef node;
  TF_ASSERT_OK(NodeDefBuilder("n", "RegistryContextFree")
                   .Input(FakeInput(DT_FLOAT))
                   .Input(FakeInput(DT_FLOAT))
                   .Finalize(&node));
  EXPECT_THAT(CreateOpKernel("OtherDevice", node).status(), StatusIs(error::NOT_FOUND));
  EXPECT_THAT(CreateOpKernel(DEVICE_CPU, node).status(), StatusIs(error::NOT_FOUND));
  const auto kernel = CreateOpKernel("InventedDevice", node);
  TF_ASSERT_OK(kernel.status());
  (*kernel)->Compute(nullptr);
  EXPECT_EQ(ContextFree::runs_without_context, 1);
  Tensor x = test::AsScalar<float>(1);
  TF_EXPECT_OK(RunKernel(kernel->get(), {TensorValue(&x), TensorValue()}));
  EXPECT_EQ(ContextFree::runs_without_input, 1);

  // Other kernels do nothing without a context, and need all inputs.
  const auto relu = CreateOpKernel(DEVICE_CPU, MakeNode("Relu", DT_FLOAT));
  TF_ASSERT_OK(relu.status());
  (*relu)->Compute(nullptr);
  EXPECT_THAT(RunKernel(relu->get(), {TensorValue()}),
              StatusIs(error::INVALID_ARGUMENT, HasSubstr("input 0 has type")));
}

TEST(LibraryKernelTest, IsTheKernelOfGradflow) {
  const auto relu = CreateOpKernel(DEVICE_CPU, MakeNode("Relu", DT_FLOAT));
  TF_ASSERT_OK(relu.status());
  EXPECT_TRUE((*relu)->IsExpensive());
  NodeDef node;
  TF_ASSERT_OK(NodeDefBuilder("n", "Reshape")
                   .Input(FakeInput(DT_FLOAT))
                   .Input(FakeInput(DT_INT32))
                   .Finalize(&node));
  const auto reshape = CreateOpKernel(DEVICE_CPU, node);
  TF_ASSERT_OK(reshape.status());
  EXPECT_FALSE((*reshape)->IsExpensive());
  Tensor x = test::AsTensor<float>({1, 2}), shape = test::AsTensor<int32>({3});
  EXPECT_EQ(RunKernel(reshape->get(), {TensorValue(&x), TensorValue(&shape)}).code(),
            error::INVALID_ARGUMENT);
  // The kernel rejects an attribute.
  NodeDef quantize;
  TF_ASSERT_OK(NodeDefBuilder("n", "FakeQuantWithMinMaxArgs")
                   .Input(FakeInput(DT_FLOAT))
                   .Attr("num_bits", 99)
                   .Finalize(&quantize));
  EXPECT_THAT(CreateOpKernel(DEVICE_CPU, quantize).status(),
              StatusIs(error::INVALID_ARGUMENT, HasSubstr("num_bits")));
  // The node does not match its op.
  node.mutable_attr()->erase("T");
  EXPECT_EQ(CreateOpKernel(DEVICE_CPU, node).status().code(), error::INVALID_ARGUMENT);
  node.set_op("RegistryNoSuchOp");
  EXPECT_THAT(
      CreateOpKernel(DEVICE_CPU, node).status(),
      StatusIs(error::NOT_FOUND, "Op type not registered 'RegistryNoSuchOp' in the program"));
}

}  // namespace kernel_registry_test
}  // namespace tensorflow
