// Tests of the inputs that programs write, from the view of kernels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tensorflow/cc/client/client_session.h"
#include "tensorflow/cc/ops/standard_ops.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor_testutil.h"
#include "tensorflow/core/lib/core/status_test_util.h"

namespace tensorflow {
namespace input_test {

using ::testing::HasSubstr;

// Returns its input, and the type and shape that its kernel sees.
REGISTER_OP("InputTestSeen").Input("x: T").Output("y: T").Output("seen: string").Attr("T: type");
class SeenOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    const Tensor& x = context->input(0);
    context->set_output(0, x);
    Tensor* seen;
    OP_REQUIRES_OK(context, context->allocate_output(1, {}, &seen));
    seen->scalar<tstring>()() = DataTypeString(x.dtype()) + x.shape().DebugString();
  }
};
REGISTER_KERNEL_BUILDER(Name("InputTestSeen").Device(DEVICE_CPU), SeenOp);

// Runs the kernel on an input.
struct Seen {
  explicit Seen(const Input& input) : Seen(Scope::NewRootScope(), input) {}
  Seen(const Scope& scope, const Input& input) {
    const auto x = ops::AsNodeOut(scope, input);
    Node* node = nullptr;
    scope.UpdateStatus(
        NodeBuilder("seen", "InputTestSeen").Input(x).Finalize(scope.graph(), &node));
    TF_CHECK_OK(scope.status());
    std::vector<Tensor> outputs;
    TF_CHECK_OK(ClientSession(scope).Run({Output(node, 0), Output(node, 1)}, &outputs));
    value = outputs[0];
    text = std::string(outputs[1].scalar<tstring>()());
  }
  Tensor value;
  std::string text;
};

TEST(InputTest, AcceptsScalars) {
  EXPECT_EQ(Seen(3).text, "int32[]");
  EXPECT_EQ(Seen(int64{3}).text, "int64[]");
  EXPECT_EQ(Seen(uint8{3}).text, "uint8[]");
  EXPECT_EQ(Seen(2.5f).text, "float[]");
  EXPECT_EQ(Seen(2.5).text, "double[]");
  EXPECT_EQ(Seen(true).text, "bool[]");
  EXPECT_EQ(Seen(Eigen::half(1)).text, "half[]");
  EXPECT_EQ(Seen(complex64(1, 2)).text, "complex64[]");
  EXPECT_EQ(Seen("text").text, "string[]");
  EXPECT_EQ(Seen(std::string("text")).text, "string[]");
  test::ExpectTensorEqual<double>(Seen(2.5).value, test::AsScalar<double>(2.5));
  test::ExpectTensorEqual<tstring>(Seen("text").value, test::AsScalar<tstring>("text"));
}

TEST(InputTest, AcceptsNestedLists) {
  const Seen vector({1, 2, 3});
  EXPECT_EQ(vector.text, "int32[3]");
  test::ExpectTensorEqual<int32>(vector.value, test::AsTensor<int32>({1, 2, 3}));
  const Seen matrix({{1.f, 2.f}, {3.f, 4.f}, {5.f, 6.f}});
  EXPECT_EQ(matrix.text, "float[3,2]");
  test::ExpectTensorEqual<float>(matrix.value,
                                 test::AsTensor<float>({1, 2, 3, 4, 5, 6}, TensorShape({3, 2})));
  const Seen cube({{{1.0, 2.0}}, {{3.0, 4.0}}});
  EXPECT_EQ(cube.text, "double[2,1,2]");
  test::ExpectTensorEqual<double>(cube.value,
                                  test::AsTensor<double>({1, 2, 3, 4}, TensorShape({2, 1, 2})));
}

TEST(InputTest, AcceptsTensorsAndOutputs) {
  const Tensor tensor = test::AsTensor<int64>({7, 8}, TensorShape({2, 1}));
  const Seen value(tensor);
  EXPECT_EQ(value.text, "int64[2,1]");
  test::ExpectTensorEqual<int64>(value.value, tensor);
  const Seen filled(Input::Initializer(1.5f, TensorShape({2, 2})));
  EXPECT_EQ(filled.text, "float[2,2]");
  test::ExpectTensorEqual<float>(filled.value,
                                 test::AsTensor<float>({1.5f, 1.5f, 1.5f, 1.5f}, {2, 2}));

  const Scope root = Scope::NewRootScope();
  const auto sum = ops::Add(root, {1, 2}, 3);
  const Seen output(root, sum);
  EXPECT_EQ(output.text, "int32[2]");
  test::ExpectTensorEqual<int32>(output.value, test::AsTensor<int32>({4, 5}));
}

TEST(InputTest, ListsOfUnequalRowsAreAnErrorOfTheScope) {
  const Scope root = Scope::NewRootScope();
  ops::Identity(root, Input({{1, 2}, {3}}));
  EXPECT_FALSE(root.ok());
  const Scope types = Scope::NewRootScope();
  ops::Identity(types, Input({Input::Initializer(1), Input::Initializer(2.f)}));
  EXPECT_EQ(types.status().code(), error::INVALID_ARGUMENT);
}

}  // namespace input_test
}  // namespace tensorflow
