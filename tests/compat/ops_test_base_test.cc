// Tests of kernels with OpsTestBase, like in TensorFlow.
#include <gtest/gtest-spi.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tensorflow/core/framework/fake_input.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_testutil.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/framework/types.pb.h"
#include "tensorflow/core/kernels/kernel_run.h"
#include "tensorflow/core/kernels/ops_testutil.h"
#include "tensorflow/core/lib/core/status_test_util.h"
#include "tensorflow/core/platform/test.h"

namespace tensorflow {

class QuantOpsTest : public OpsTestBase {
 protected:
  void MakeGradientOp(int num_bits, bool narrow_range) {
    TF_EXPECT_OK(NodeDefBuilder("op", "FakeQuantWithMinMaxVarsGradient")
                     .Input(FakeInput(DT_FLOAT))  // gradients
                     .Input(FakeInput(DT_FLOAT))  // inputs
                     .Input(FakeInput(DT_FLOAT))  // min
                     .Input(FakeInput(DT_FLOAT))  // max
                     .Attr("num_bits", num_bits)
                     .Attr("narrow_range", narrow_range)
                     .Finalize(node_def()));
    TF_EXPECT_OK(InitOp());
  }
};

TEST_F(QuantOpsTest, GradientPassesOnlyWithinTheRange) {
  MakeGradientOp(8, false);
  AddInput<float>(TensorShape({2, 3}), [](int i) -> float { return 1.f + i; });
  AddInputFromArray<float>(TensorShape({2, 3}), {-2.f, -0.9f, 0.f, 0.5f, 0.9f, 2.f});
  AddInputFromArray<float>(TensorShape({}), {-1.0f});
  AddInputFromList<float, double>(TensorShape({}), {1.0});
  TF_ASSERT_OK(RunOpKernel());

  Tensor expected_dx(allocator(), DT_FLOAT, TensorShape({2, 3}));
  test::FillValues<float>(&expected_dx, {0.f, 2.f, 3.f, 4.f, 5.f, 0.f});
  EXPECT_EQ(GetInput(1).dim_size(1), 3);
  test::ExpectClose(expected_dx, *GetOutput(0));
  test::ExpectTensorEqual<float>(test::AsScalar<float>(1), *GetOutput(1));
  test::ExpectTensorEqual<float>(test::AsScalar<float>(6), *GetOutput(2));
}

TEST_F(QuantOpsTest, RunsAgainOnOtherInputs) {
  TF_ASSERT_OK(NodeDefBuilder("op", "Neg").Input(FakeInput(DT_INT32)).Finalize(node_def()));
  TF_ASSERT_OK(InitOp());
  for (int32 value : {3, -4}) {
    inputs_.clear();
    AddInputFromArray<int32>(TensorShape({}), {value});
    TF_ASSERT_OK(RunOpKernel());
    test::ExpectTensorEqual<int32>(test::AsScalar<int32>(-value), *GetOutput(0));
  }
}

TEST_F(QuantOpsTest, AttributesAreChecked) {
  TF_ASSERT_OK(NodeDefBuilder("op", "FakeQuantWithMinMaxVarsGradient")
                   .Input(FakeInput())
                   .Input(FakeInput())
                   .Input(FakeInput())
                   .Input(FakeInput())
                   .Attr("num_bits", 99)
                   .Finalize(node_def()));
  Status s = InitOp();
  if (s.ok()) {
    for (int i = 0; i < 4; ++i) AddInputFromArray<float>(TensorShape({}), {0.5f * i});
    s = RunOpKernel();
  }
  EXPECT_EQ(error::INVALID_ARGUMENT, s.code()) << s;
  EXPECT_NE(s.message().find("num_bits"), string::npos) << s;
}

TEST_F(QuantOpsTest, ShapesAreChecked) {
  MakeGradientOp(8, true);
  AddInputFromArray<float>(TensorShape({2}), {1, 2});
  AddInputFromArray<float>(TensorShape({3}), {1, 2, 3});
  AddInputFromArray<float>(TensorShape({}), {-1});
  AddInputFromArray<float>(TensorShape({}), {1});
  EXPECT_TRUE(errors::IsInvalidArgument(RunOpKernel()));
  EXPECT_EQ(GetOutput(0), nullptr);
}

TEST_F(OpsTestBase, OutputsOfTheOtherBranchAreNull) {
  TF_ASSERT_OK(NodeDefBuilder("switch", "Switch")
                   .Input(FakeInput(DT_INT32))
                   .Input(FakeInput())
                   .Finalize(node_def()));
  TF_ASSERT_OK(InitOp());
  AddInputFromArray<int32>(TensorShape({2}), {1, 2});
  AddInputFromArray<bool>(TensorShape({}), {true});
  TF_ASSERT_OK(RunOpKernel());
  EXPECT_EQ(GetOutput(0), nullptr);
  test::ExpectTensorEqual<int32>(*GetOutput(1), test::AsTensor<int32>({1, 2}));
}

class AddNOpTest : public OpsTestBase {
 protected:
  template <typename T>
  void MakeOp(int n) {
    TF_ASSERT_OK(NodeDefBuilder("add_n", "AddN")
                     .Input(FakeInput(n, DataTypeToEnum<T>::v()))
                     .Finalize(node_def()));
    TF_ASSERT_OK(InitOp());
  }
};

TEST_F(AddNOpTest, SumsAList) {
  MakeOp<int32>(3);
  EXPECT_EQ(node_def()->attr().at("N").i(), 3);
  for (int i = 0; i < 3; ++i) {
    AddInput<int32>(TensorShape({4}), [i](int x) { return x + 10 * i; });
  }
  TF_ASSERT_OK(RunOpKernel());
  Tensor expected(DT_INT32, TensorShape({4}));
  auto flat = expected.flat<int32>();
  for (int i = 0; i < flat.size(); ++i) flat(i) = 30 + 3 * i;
  test::ExpectEqual(*GetOutput(0), expected);
}

TEST_F(AddNOpTest, RunsAgainOnChangedInputs) {
  MakeOp<double>(2);
  AddInputFromArray<double>(TensorShape({2}), {1, 2});
  AddInputFromArray<double>(TensorShape({2}), {3, 4});
  TF_ASSERT_OK(RunOpKernel());
  test::ExpectTensorNear<double>(*GetOutput(0), test::AsTensor<double>({4, 6}), 1e-12);
  mutable_input(0)->flat<double>().setConstant(10);
  TF_ASSERT_OK(RunOpKernel());
  test::ExpectTensorNear<double>(*GetOutput(0), test::AsTensor<double>({13, 14}), 1e-12);
}

TEST_F(AddNOpTest, WrongNumberOfInputsIsAnError) {
  MakeOp<float>(2);
  AddInputFromArray<float>(TensorShape({1}), {1});
  EXPECT_TRUE(errors::IsInvalidArgument(RunOpKernel()));
}

TEST_F(AddNOpTest, RefusedInitOpLeavesNoKernel) {
  MakeOp<float>(2);
  (*node_def()->mutable_attr())["N"].set_i(0);
  EXPECT_TRUE(errors::IsInvalidArgument(InitOp()));
  AddInputFromArray<float>(TensorShape({1}), {1});
  AddInputFromArray<float>(TensorShape({1}), {2});
  EXPECT_TRUE(errors::IsFailedPrecondition(RunOpKernel()));
}

// Makes the kernel of an op with a reference input and another input.
absl::Status InitAssign(const std::string& op, compat_internal::KernelRun* run) {
  NodeDef node;
  TF_CHECK_OK(NodeDefBuilder("n", op)
                  .Input(FakeInput(DT_FLOAT_REF))
                  .Input(FakeInput(DT_FLOAT))
                  .Finalize(&node));
  return run->Init(&node);
}

TEST(KernelRunTest, ReferencesAreVariables) {
  compat_internal::KernelRun run;
  TF_ASSERT_OK(InitAssign("AssignAdd", &run));
  EXPECT_EQ(run.input_type(0), DT_FLOAT_REF);
  EXPECT_EQ(run.input_type(1), DT_FLOAT);
  EXPECT_EQ(run.input_type(2), DT_INVALID);
  Tensor v = test::AsTensor<float>({1, 2}), x = test::AsTensor<float>({10, 20});
  const Tensor held = v;
  TF_ASSERT_OK(run.Run({&v, &x}));
  test::ExpectTensorEqual<float>(v, test::AsTensor<float>({11, 22}));
  test::ExpectTensorEqual<float>(held, test::AsTensor<float>({1, 2}));
  const std::vector<Tensor> outputs = run.TakeOutputs();
  ASSERT_EQ(outputs.size(), 1u);
  test::ExpectTensorEqual<float>(outputs[0], v);
  // Errors change nothing.
  Tensor other = test::AsTensor<float>({1, 2, 3});
  EXPECT_EQ(run.Run({&v, &other}).code(), error::INVALID_ARGUMENT);
  test::ExpectTensorEqual<float>(v, test::AsTensor<float>({11, 22}));
  EXPECT_TRUE(run.TakeOutputs().empty());
  EXPECT_EQ(run.Run({&v}).message(), "the kernel has 2 inputs, but 1 are given");
}

TEST(KernelRunTest, AnInitThatFailsLeavesNoKernel) {
  compat_internal::KernelRun run;
  TF_ASSERT_OK(InitAssign("Assign", &run));
  Tensor v = test::AsScalar<float>(1), x = test::AsScalar<float>(2);
  TF_ASSERT_OK(run.Run({&v, &x}));
  NodeDef unknown;
  unknown.set_op("KernelRunNoSuchOp");
  EXPECT_EQ(run.Init(&unknown).code(), error::NOT_FOUND);
  EXPECT_TRUE(run.TakeOutputs().empty());
  const absl::Status status = run.Run({&v, &x});
  EXPECT_EQ(status.code(), error::FAILED_PRECONDITION);
  EXPECT_EQ(status.message(), "there is no kernel: InitOp() has not succeeded");
  // The node lacks the type of its op.
  NodeDef node;
  node.set_op("Neg");
  node.add_input("x");
  EXPECT_EQ(run.Init(&node).code(), error::INVALID_ARGUMENT);
}

class BatchNormOpTest : public OpsTestBase {};

TEST_F(BatchNormOpTest, ComputesInference) {
  TF_ASSERT_OK(NodeDefBuilder("batch_norm", "FusedBatchNorm")
                   .Input(FakeInput(DT_FLOAT))
                   .Input(FakeInput(DT_FLOAT))
                   .Input(FakeInput(DT_FLOAT))
                   .Input(FakeInput(DT_FLOAT))
                   .Input(FakeInput(DT_FLOAT))
                   .Attr("epsilon", 0.001)
                   .Attr("is_training", false)
                   .Attr("data_format", "NHWC")
                   .Finalize(node_def()));
  TF_ASSERT_OK(InitOp());
  AddInputFromArray<float>(TensorShape({1, 1, 2, 2}), {5, 6, 7, 8});
  AddInputFromArray<float>(TensorShape({2}), {4.0, 1.0});
  AddInputFromArray<float>(TensorShape({2}), {2.0, 0.0});
  AddInputFromArray<float>(TensorShape({2}), {6.0, 7.0});
  AddInputFromArray<float>(TensorShape({2}), {1.0, 3.999});
  TF_ASSERT_OK(RunOpKernel());
  Tensor expected(DT_FLOAT, TensorShape({1, 1, 2, 2}));
  // 4 / sqrt(1.001) away from 2, and half a unit away from 0.
  test::FillValues<float>(&expected, {-1.998001f, -0.5f, 5.998001f, 0.5f});
  test::ExpectTensorNear<float>(expected, *GetOutput(0), 0.0001);
}

REGISTER_OP("OpsTestBaseSwap")
    .Input("a: Ref(float)")
    .Input("b: Ref(float)")
    .Output("x: Ref(float)")
    .Output("y: Ref(float)");
class SwapReferencesOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    context->forward_ref_input_to_ref_output(0, 1);
    context->forward_ref_input_to_ref_output(1, 0);
  }
};
REGISTER_KERNEL_BUILDER(Name("OpsTestBaseSwap").Device(DEVICE_CPU), SwapReferencesOp);

class ReferencesTest : public OpsTestBase {};

TEST_F(ReferencesTest, AreReadFromSeveralOutputs) {
  TF_ASSERT_OK(NodeDefBuilder("n", "OpsTestBaseSwap")
                   .Input(FakeInput(DT_FLOAT_REF))
                   .Input(FakeInput(DT_FLOAT_REF))
                   .Finalize(node_def()));
  TF_ASSERT_OK(InitOp());
  AddInputFromArray<float>(TensorShape({2}), {1, 2});
  AddInputFromArray<float>(TensorShape({}), {3});
  TF_ASSERT_OK(RunOpKernel());
  test::ExpectTensorEqual<float>(*GetOutput(0), test::AsScalar<float>(3));
  test::ExpectTensorEqual<float>(*GetOutput(1), test::AsTensor<float>({1, 2}));
}

REGISTER_OP("OpsTestBaseReadVar").Input("v: resource").Output("value: float").SetIsStateful();
class ReadVarOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    core::RefCountPtr<Var> var;
    OP_REQUIRES_OK(context, LookupResource(context, HandleFromInput(context, 0), &var));
    context->set_output(0, *var->tensor());
  }
};
REGISTER_KERNEL_BUILDER(Name("OpsTestBaseReadVar").Device(DEVICE_CPU), ReadVarOp);

class ResourceInputTest : public OpsTestBase {};

TEST_F(ResourceInputTest, IsFoundByTheKernel) {
  TF_ASSERT_OK(
      NodeDefBuilder("n", "OpsTestBaseReadVar").Input(FakeInput(DT_RESOURCE)).Finalize(node_def()));
  TF_ASSERT_OK(InitOp());
  Var* const var = new Var(DT_FLOAT);
  *var->tensor() = test::AsScalar<float>(7);
  AddResourceInput("", "v", var);
  for (int i = 0; i < 2; ++i) {
    TF_ASSERT_OK(RunOpKernel());
    test::ExpectTensorEqual<float>(*GetOutput(0), test::AsScalar<float>(7));
  }
  ASSERT_NE(step_container_, nullptr);
  EXPECT_EQ(step_container_->name(), "__per_step_0");
}

TEST_F(ResourceInputTest, EndsWithTheOutputsOfTheRunThatOwnIt) {
  class Watched : public ResourceBase {
   public:
    explicit Watched(bool* alive) : alive_(alive) { *alive_ = true; }
    ~Watched() override { *alive_ = false; }

   private:
    bool* const alive_;
  };
  TF_ASSERT_OK(NodeDefBuilder("n", "Identity").Input(FakeInput(DT_RESOURCE)).Finalize(node_def()));
  TF_ASSERT_OK(InitOp());
  bool alive = false;
  AddInputFromArray<ResourceHandle>(
      TensorShape({}), {ResourceHandle::MakeRefCountingHandle(new Watched(&alive), "d")});
  TF_ASSERT_OK(RunOpKernel());
  const auto same = [](const ResourceHandle& a, const ResourceHandle& b) {
    return a.resource().get() == b.resource().get();
  };
  test::ExpectTensorEqual<ResourceHandle>(*GetOutput(0), GetInput(0), same);
  *tensors_[0] = Tensor();
  EXPECT_TRUE(alive);
  context_.reset();
  EXPECT_FALSE(alive);
  EXPECT_EQ(GetOutput(0), nullptr);
}

TEST(ExpectTensorEqual, FailsIfThePredicateFails) {
  const auto equal = [](const float& a, const float& b) { return a == b; };
  test::ExpectTensorEqual<float>(test::AsScalar<float>(1), test::AsScalar<float>(1), equal);
  EXPECT_NONFATAL_FAILURE(
      test::ExpectTensorEqual<float>(test::AsScalar<float>(1), test::AsScalar<float>(2), equal),
      "element 0 is 1, expected 2");
}

TEST(ScopedStepContainer, EndsWithItsResources) {
  ResourceMgr manager;
  const core::RefCountPtr<Var> var(new Var(DT_FLOAT));
  {
    ScopedStepContainer container(
        3, [&](const std::string& name) { return manager.Cleanup(name); }, "prefix");
    EXPECT_EQ(container.name(), "prefix__per_step_3");
    var->Ref();
    TF_ASSERT_OK(container.Create(&manager, "v", var.get()));
    Var* found = nullptr;
    TF_ASSERT_OK(container.Lookup(&manager, "v", &found));
    EXPECT_EQ(found, var.get());
    found->Unref();
    EXPECT_EQ(var->RefCount(), 2);
  }
  EXPECT_EQ(var->RefCount(), 1);
}

}  // namespace tensorflow
