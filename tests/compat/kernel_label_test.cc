// Tests of kernels with a label, which a scope selects.
#include <vector>

#include "tensorflow/cc/client/client_session.h"
#include "tensorflow/cc/ops/standard_ops.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/numeric_op.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/register_types.h"
#include "tensorflow/core/framework/tensor_testutil.h"
#include "tensorflow/core/lib/core/status_test_util.h"

namespace tensorflow {

// Computes the square with the sign of the input, to identify the kernel that ran.
template <typename T>
class SignedSquareOp : public UnaryElementWiseOp<T, SignedSquareOp<T>> {
 public:
  using UnaryElementWiseOp<T, SignedSquareOp<T>>::UnaryElementWiseOp;
  void Operate(OpKernelContext*, const Tensor& input, Tensor* output) {
    typename TTypes<T>::ConstFlat in = input.flat<T>();
    typename TTypes<T>::Flat out = output->flat<T>();
    for (int64 i = 0; i < in.size(); ++i) {
      const T value = in(i);
      out(i) = value < T(0) ? -(value * value) : value * value;
    }
  }
};

#define REGISTER(type)                                                                    \
  REGISTER_KERNEL_BUILDER(                                                                \
      Name("Square").Device(DEVICE_CPU).TypeConstraint<type>("T").Label("compat_signed"), \
      SignedSquareOp<type>)
TF_CALL_float(REGISTER);
TF_CALL_double(REGISTER);
#undef REGISTER

// Returns a - b elementwise.
template <typename T>
class PlainSubOp : public BinaryElementWiseOp<T, PlainSubOp<T>> {
 public:
  using BinaryElementWiseOp<T, PlainSubOp<T>>::BinaryElementWiseOp;
  template <int NDIMS>
  void Operate(OpKernelContext*, const Tensor& a, const Tensor& b, Tensor* output) {
    typename TTypes<T, NDIMS>::Tensor out = output->tensor<T, NDIMS>();
    const auto x = a.flat<T>();
    const auto y = b.flat<T>();
    for (int64 i = 0; i < out.size(); ++i) out.data()[i] = 100 + x(i) - y(i);
  }
};
REGISTER_KERNEL_BUILDER(
    Name("Sub").Device(DEVICE_CPU).TypeConstraint<float>("T").Label("compat_plain"),
    PlainSubOp<float>);

// The label of TensorFlow's just-in-time compiled kernels. Here it has no effect.
REGISTER_OP("CompatJitSquare")
    .Input("x: float")
    .Output("y: float")
    .SetShapeFn(shape_inference::UnchangedShape);
REGISTER_KERNEL_BUILDER(Name("CompatJitSquare").Device(DEVICE_CPU).Label(kJitKernelLabel),
                        SignedSquareOp<float>);

namespace {

TEST(KernelLabelTest, IsIgnoredForJitCompiledKernels) {
  const KernelDef* def = nullptr;
  std::string class_name;
  NodeDef node;
  node.set_op("CompatJitSquare");
  TF_ASSERT_OK(FindKernelDef(DeviceType(DEVICE_CPU), node, &def, &class_name));
  EXPECT_EQ(def->label(), "");
  const Scope root = Scope::NewRootScope();
  Output y;
  TF_ASSERT_OK(CreateOutputWithScope("CompatJitSquare", {Input({-2.f, 3.f})}, root, &y));
  std::vector<Tensor> outputs;
  TF_ASSERT_OK(ClientSession(root).Run({y}, &outputs));
  test::ExpectTensorEqual<float>(outputs[0], test::AsTensor<float>({-4, 9}));
}

TEST(KernelLabelTest, ScopeChoosesTheKernel) {
  Scope root = Scope::NewRootScope();
  auto x = ops::Const(root, {-2.f, 3.f});
  auto plain = ops::Square(root, x);
  auto labelled = ops::Square(root.WithKernelLabel("compat_signed"), x);
  TF_EXPECT_OK(root.status());

  AttrSlice attrs = labelled.y.op().node()->attrs();
  const auto* kernel_attr = attrs.Find("_kernel");
  ASSERT_TRUE(kernel_attr);
  TF_EXPECT_OK(AttrValueHasType(*kernel_attr, "string"));
  EXPECT_EQ(kernel_attr->s(), "compat_signed");
  EXPECT_EQ(AttrSlice(plain.y.op().node()->attrs()).Find("_kernel"), nullptr);

  std::vector<Tensor> outputs;
  TF_ASSERT_OK(ClientSession(root).Run({plain, labelled}, &outputs));
  test::ExpectTensorEqual<float>(outputs[0], test::AsTensor<float>({4, 9}));
  test::ExpectTensorEqual<float>(outputs[1], test::AsTensor<float>({-4, 9}));
}

TEST(KernelLabelTest, BinaryElementWiseOpDemandsEqualShapes) {
  Scope root = Scope::NewRootScope();
  // Constants have no kernel with the label, so they are outside of the labeled scope.
  auto x = ops::Const(root, {{1.f, 2.f}});
  auto y = ops::Const(root, {{3.f, 5.f}});
  auto one = ops::Const(root, 1.f);
  Scope labelled = root.WithKernelLabel("compat_plain");
  auto same = ops::Sub(labelled, x, y);
  auto differs = ops::Sub(labelled, x, one);
  TF_EXPECT_OK(root.status());
  ClientSession session(root);
  std::vector<Tensor> outputs;
  TF_ASSERT_OK(session.Run({same}, &outputs));
  test::ExpectTensorEqual<float>(outputs[0], test::AsTensor<float>({98, 97}, {1, 2}));
  Status status = session.Run({differs}, &outputs);
  EXPECT_EQ(status.code(), error::INVALID_ARGUMENT);
  EXPECT_NE(status.message().find("same size and shape"), string::npos) << status;
}

TEST(KernelLabelTest, UnknownLabelHasNoKernel) {
  Scope root = Scope::NewRootScope();
  auto y = ops::Square(root.WithKernelLabel("compat_unknown"), ops::Const(root, 1.f));
  TF_EXPECT_OK(root.status());
  std::vector<Tensor> outputs;
  EXPECT_EQ(ClientSession(root).Run({y}, &outputs).code(), error::UNIMPLEMENTED);
}

}  // namespace
}  // namespace tensorflow
