#include "gradflow/core/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gradflow/core/shape_fns.h"
#include "gradflow/proto/node_def.pb.h"
#include "gradflow/proto/op_def.pb.h"
#include "gradflow/testing/status_matchers.h"

namespace gradflow {
namespace {

using ::gradflow::testing::IsOk;
using ::gradflow::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

absl::Status Nothing(KernelContext&) { return absl::OkStatus(); }

void RegisterToy(Registry& registry) {
  registry.Op("Toy").Input("x: T").Output("y: T").Attr("T: type").Shape(UnchangedShape);
}

NodeDef ToyNode(DataType dtype, absl::string_view device = "", absl::string_view label = "") {
  NodeDef node;
  node.set_name("n");
  node.set_op("Toy");
  node.set_device(std::string(device));
  AddNodeAttr("T", dtype, &node);
  if (!label.empty()) AddNodeAttr("_kernel", label, &node);
  return node;
}

TEST(Registry, FindsRegisteredOpsAndKernels) {
  Registry registry;
  RegisterToy(registry);
  ASSERT_THAT(registry.status(), IsOk());
  const OpRegistration* op = registry.FindOp("Toy");
  ASSERT_NE(op, nullptr);
  EXPECT_EQ(op->def().name(), "Toy");
  EXPECT_EQ(op->shape_fn(), &UnchangedShape);
  EXPECT_EQ(registry.FindOp("toy"), nullptr);
  EXPECT_EQ(registry.Ops().size(), 1u);
}

TEST(Registry, KeepsHowAnOpCalls) {
  Registry registry;
  RegisterToy(registry);
  registry.Op("Call").Attr("f: func").Functional(FunctionalOp::kCall);
  ASSERT_THAT(registry.status(), IsOk());
  EXPECT_EQ(registry.FindOp("Toy")->functional(), FunctionalOp::kNone);
  EXPECT_EQ(registry.FindOp("Call")->functional(), FunctionalOp::kCall);
}

TEST(Registry, KeepsTheDeprecation) {
  Registry registry;
  registry.Op("Old").Deprecated(3, "Use another.").Shape(UnknownShape);
  ASSERT_THAT(registry.status(), IsOk());
  const OpDeprecation& deprecation = registry.FindOp("Old")->def().deprecation();
  EXPECT_EQ(deprecation.version(), 3);
  EXPECT_EQ(deprecation.explanation(), "Use another.");
}

TEST(Registry, SuggestsNearNames) {
  Registry registry;
  RegisterToy(registry);
  EXPECT_THAT(
      registry.LookUpOp("Toys"),
      StatusIs(absl::StatusCode::kNotFound, "op 'Toys' is not registered; did you mean 'Toy'?"));
  EXPECT_THAT(registry.LookUpOp("Convolution"),
              StatusIs(absl::StatusCode::kNotFound, "op 'Convolution' is not registered"));
}

TEST(Registry, ErrorExplainsHowToAddAnOmittedOp) {
  static constexpr const char* kLeftOut[] = {"Erf", "Toy"};
  Registry registry;
  RegisterToy(registry);
  registry.SetLeftOutOps(kLeftOut);
  EXPECT_THAT(
      registry.LookUpOp("Erf"),
      StatusIs(absl::StatusCode::kNotFound,
               "op 'Erf' is not part of this build of gradflow; add it to GRADFLOW_OPS when "
               "you run CMake"));
  EXPECT_THAT(registry.LookUpOp("Toy"), IsOk());
  EXPECT_THAT(registry.LookUpOp("Er"),
              StatusIs(absl::StatusCode::kNotFound, "op 'Er' is not registered"));
}

TEST(Registry, KeepsTheFirstFault) {
  {
    Registry registry;
    RegisterToy(registry);
    RegisterToy(registry);
    EXPECT_THAT(registry.status(), StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("'Toy'")));
  }
  {
    Registry registry;
    registry.Op("Bad").Input("x: Missing");
    EXPECT_THAT(registry.status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("Missing")));
    EXPECT_EQ(registry.FindOp("Bad"), nullptr);
  }
  {
    Registry registry;
    registry.Op("Bad").Input("x: Missing").Deprecated(3, "Use another.");
    EXPECT_THAT(registry.status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("Missing")));
  }
  {
    Registry registry;
    registry.Kernel("Toy", MakeFunctionKernel<Nothing>);
    EXPECT_THAT(registry.status(), StatusIs(absl::StatusCode::kNotFound, HasSubstr("'Toy'")));
  }
  {
    Registry registry;
    RegisterToy(registry);
    registry.Kernel("Toy", MakeFunctionKernel<Nothing>).Type<float>("U");
    EXPECT_THAT(registry.status(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("'U'"), HasSubstr("not a type attribute"))));
  }
  {
    Registry registry;
    RegisterToy(registry);
    registry.Kernel("Toy", nullptr);
    EXPECT_THAT(registry.status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("factory")));
  }
}

TEST(Registry, ChoosesKernelsByTypeDeviceLabelAndPriority) {
  Registry registry;
  RegisterToy(registry);
  registry.Kernel("Toy", MakeFunctionKernel<Nothing>).Type<float>("T");
  registry.Kernel("Toy", MakeFunctionKernel<Nothing>).Types("T", {DT_INT32, DT_INT64});
  registry.Kernel("Toy", MakeFunctionKernel<Nothing>).Type<float>("T").Label("fast");
  registry.Kernel("Toy", MakeFunctionKernel<Nothing>).Type<int64_t>("T").Priority(1);
  registry.Kernel("Toy", MakeFunctionKernel<Nothing>).Type<float>("T").Device("GPU");
  ASSERT_THAT(registry.status(), IsOk());

  const auto find = [&](const NodeDef& node) { return registry.FindKernel(node); };
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const KernelRegistration* plain, find(ToyNode(DT_FLOAT)));
  EXPECT_EQ(plain->device, "CPU");
  EXPECT_EQ(plain->label, "");
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const KernelRegistration* labeled,
                                find(ToyNode(DT_FLOAT, "", "fast")));
  EXPECT_EQ(labeled->label, "fast");
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const KernelRegistration* preferred, find(ToyNode(DT_INT64)));
  EXPECT_EQ(preferred->priority, 1);
  for (const char* device : {"/cpu:0", "/job:a/replica:0/task:1/device:CPU:0", "CPU"}) {
    EXPECT_THAT(find(ToyNode(DT_INT32, device)), IsOk()) << device;
  }
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const KernelRegistration* gpu,
                                find(ToyNode(DT_FLOAT, "/device:GPU:0")));
  EXPECT_EQ(gpu->device, "GPU");
  EXPECT_THAT(find(ToyNode(DT_INT32, "/gpu:1")), StatusIs(absl::StatusCode::kUnimplemented));
  EXPECT_THAT(find(ToyNode(DT_DOUBLE)),
              StatusIs(absl::StatusCode::kUnimplemented,
                       AllOf(HasSubstr("op 'Toy' has no kernel for (CPU; T = double)"),
                             HasSubstr("(CPU; T in [float, int32, int64])"))));
  EXPECT_THAT(find(ToyNode(DT_FLOAT, "", "slow")),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("label 'slow'")));
}

TEST(Registry, RejectsTwoKernelsOfOnePriority) {
  Registry registry;
  RegisterToy(registry);
  registry.Kernel("Toy", MakeFunctionKernel<Nothing>).Type<float>("T").Priority(2);
  registry.Kernel("Toy", MakeFunctionKernel<Nothing>).Priority(2);
  registry.Kernel("Toy", MakeFunctionKernel<Nothing>);
  EXPECT_THAT(registry.FindKernel(ToyNode(DT_FLOAT)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("several kernels")));
  EXPECT_THAT(registry.FindKernel(ToyNode(DT_INT32)), IsOk());
}

TEST(Registry, ConstrainsEveryTypeOfAList) {
  Registry registry;
  registry.Op("List").Input("x: T").Attr("T: list(type)").Shape(UnknownShape);
  registry.Kernel("List", MakeFunctionKernel<Nothing>).Types("T", {DT_FLOAT, DT_INT32});
  ASSERT_THAT(registry.status(), IsOk());
  NodeDef node;
  node.set_op("List");
  AddNodeAttr("T", absl::MakeConstSpan({DT_FLOAT, DT_INT32}), &node);
  EXPECT_THAT(registry.FindKernel(node), IsOk());
  AddNodeAttr("T", absl::MakeConstSpan({DT_FLOAT, DT_STRING}), &node);
  EXPECT_THAT(registry.FindKernel(node), StatusIs(absl::StatusCode::kUnimplemented));
}

TEST(Registry, RegistersAllOrNothing) {
  Registry registry;
  RegisterToy(registry);
  const auto add = [](Registry& additions) {
    // Additional registrations may refer to existing ops.
    additions.Kernel("Toy", MakeFunctionKernel<Nothing>);
    additions.Op("Other").Input("x: float").Output("y: float").Shape(UnchangedShape);
    additions.Kernel("Other", MakeFunctionKernel<Nothing>);
  };
  EXPECT_THAT(registry.RegisterAllOrNothing([&](Registry& additions) {
    add(additions);
    RegisterToy(additions);
  }),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("'Toy'")));
  EXPECT_THAT(registry.status(), IsOk());
  EXPECT_EQ(registry.FindOp("Other"), nullptr);
  EXPECT_THAT(registry.FindKernel(ToyNode(DT_FLOAT)).status(),
              StatusIs(absl::StatusCode::kUnimplemented));

  EXPECT_THAT(registry.RegisterAllOrNothing(add), IsOk());
  EXPECT_NE(registry.FindOp("Other"), nullptr);
  EXPECT_THAT(registry.FindKernel(ToyNode(DT_FLOAT)).status(), IsOk());
}

}  // namespace
}  // namespace gradflow
