// A custom op like in TensorFlow's guide, with the names of 1.15: definition, shape function,
// kernel, and use in a graph.
#include "tensorflow/cc/client/client_session.h"
#include "tensorflow/cc/ops/standard_ops.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_def.pb.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/framework/tensor_testutil.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow/core/lib/core/status_test_util.h"
#include "tensorflow/core/platform/test.h"

using namespace tensorflow;  // NOLINT(build/namespaces): like in programs for 1.x

REGISTER_OP("CompatKeepOne")
    .Attr("T: {float, int32}")
    .Attr("preserve_index: int = 0")
    .Input("to_zero: T")
    .Output("zeroed: T")
    .SetShapeFn([](::tensorflow::shape_inference::InferenceContext* c) {
      c->set_output(0, c->input(0));
      return Status::OK();
    })
    .Doc(R"doc(
Sets all elements but one to zero.

to_zero: Any tensor.
zeroed: Of its shape.
)doc");

template <typename T>
class KeepOneOp : public OpKernel {
 public:
  explicit KeepOneOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("preserve_index", &preserve_index_));
    OP_REQUIRES(context, preserve_index_ >= 0,
                errors::InvalidArgument("Need preserve_index >= 0, got ", preserve_index_));
  }

  void Compute(OpKernelContext* context) override {
    const Tensor& input_tensor = context->input(0);
    auto input = input_tensor.flat<T>();
    OP_REQUIRES(context, preserve_index_ < input.size(),
                errors::InvalidArgument("preserve_index out of range of ", input.size()));
    Tensor* output_tensor = NULL;
    OP_REQUIRES_OK(context, context->allocate_output(0, input_tensor.shape(), &output_tensor));
    auto output_flat = output_tensor->template flat<T>();
    const int N = input.size();
    for (int i = 0; i < N; i++) {
      output_flat(i) = 0;
    }
    output_flat(preserve_index_) = input(preserve_index_);
  }

 private:
  int preserve_index_;
};

#define REGISTER_KERNEL(type)                                                                 \
  REGISTER_KERNEL_BUILDER(Name("CompatKeepOne").Device(DEVICE_CPU).TypeConstraint<type>("T"), \
                          KeepOneOp<type>)

REGISTER_KERNEL(float);
REGISTER_KERNEL(int32);

#undef REGISTER_KERNEL

namespace {

// A wrapper class like the ones that TensorFlow's build generates.
class KeepOne {
 public:
  KeepOne(const Scope& scope, Input to_zero, int64 preserve_index) {
    if (!scope.ok()) return;
    auto _to_zero = ops::AsNodeOut(scope, to_zero);
    if (!scope.ok()) return;
    Node* ret;
    const auto unique_name = scope.GetUniqueNameForOp("CompatKeepOne");
    NodeBuilder builder(unique_name, "CompatKeepOne");
    builder.Input(_to_zero).Attr("preserve_index", preserve_index);
    scope.UpdateBuilder(&builder);
    scope.UpdateStatus(builder.Finalize(scope.graph(), &ret));
    if (!scope.ok()) return;
    scope.UpdateStatus(scope.DoShapeInference(ret));
    this->operation = Operation(ret);
    this->zeroed = Output(ret, 0);
  }
  operator Output() const { return zeroed; }
  operator Input() const { return Input(zeroed); }
  Operation operation;
  Output zeroed;
};

TEST(CustomOpTest, RunsInAGraph) {
  Scope root = Scope::NewRootScope();
  auto x = ops::Const(root, {{1, 2}, {3, 4}});
  auto kept = KeepOne(root, x, 2);
  auto sum = ops::Add(root, kept, 1);
  TF_ASSERT_OK(root.status());
  ClientSession session(root);
  std::vector<Tensor> outputs;
  TF_ASSERT_OK(session.Run({kept, sum}, &outputs));
  test::ExpectTensorEqual<int32>(outputs[0], test::AsTensor<int32>({0, 0, 3, 0}, {2, 2}));
  test::ExpectTensorEqual<int32>(outputs[1], test::AsTensor<int32>({1, 1, 4, 1}, {2, 2}));
}

TEST(CustomOpTest, ShapeFunctionRunsWhenTheGraphIsBuilt) {
  Scope root = Scope::NewRootScope();
  auto kept = KeepOne(root, ops::Const(root, 1.f, {5, 7}), 0);
  EXPECT_EQ(kept.zeroed.node()->output_shape(0).DebugString(), "[5,7]");
}

TEST(CustomOpTest, ErrorOfTheConstructorEndsTheRun) {
  Scope root = Scope::NewRootScope();
  auto kept = KeepOne(root, {1, 2}, -1);
  TF_ASSERT_OK(root.status());
  std::vector<Tensor> outputs;
  Status status = ClientSession(root).Run({kept}, &outputs);
  EXPECT_EQ(status.code(), error::INVALID_ARGUMENT);
  EXPECT_NE(status.error_message().find("Need preserve_index >= 0, got -1"), string::npos)
      << status;
}

TEST(CustomOpTest, ErrorOfComputeNamesTheNode) {
  Scope root = Scope::NewRootScope();
  auto kept = KeepOne(root.NewSubScope("layer"), {1, 2}, 2);
  std::vector<Tensor> outputs;
  Status status = ClientSession(root).Run({kept}, &outputs);
  EXPECT_TRUE(errors::IsInvalidArgument(status)) << status;
  EXPECT_NE(status.error_message().find("'layer/CompatKeepOne' (CompatKeepOne)"), string::npos);
  EXPECT_NE(status.error_message().find("out of range of 2"), string::npos) << status;
}

TEST(CustomOpTest, TypeWithoutKernelOrDefinitionIsAnError) {
  Scope root = Scope::NewRootScope();
  KeepOne(root, {1.0, 2.0}, 0);
  EXPECT_FALSE(root.ok());
}

TEST(CustomOpTest, IsInTheRegistry) {
  const OpDef* op_def;
  TF_ASSERT_OK(OpRegistry::Global()->LookUpOpDef("CompatKeepOne", &op_def));
  EXPECT_EQ(op_def->name(), "CompatKeepOne");
  EXPECT_EQ(op_def->summary(), "Sets all elements but one to zero.");
  EXPECT_EQ(OpRegistry::Global()->LookUpOpDef("CompatKeepTwo", &op_def).code(), error::NOT_FOUND);
}

}  // namespace
