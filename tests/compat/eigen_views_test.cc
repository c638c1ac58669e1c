// Tests of tensors viewed as Eigen maps, and of kernels that compute with Eigen on a device.
#define EIGEN_USE_THREADS

#include <gmock/gmock.h>

#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/fake_input.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/register_types.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_testutil.h"
#include "tensorflow/core/kernels/dense_update_functor.h"
#include "tensorflow/core/kernels/ops_testutil.h"
#include "third_party/eigen3/unsupported/Eigen/CXX11/Tensor"

namespace tensorflow {
namespace {

using CPUDevice = Eigen::ThreadPoolDevice;
using GPUDevice = Eigen::GpuDevice;

// Computes y = x^2 + 1 and the sum of the elements.
template <typename Device, typename T>
struct SquarePlusOne {
  void operator()(const Device& d, typename TTypes<T>::ConstFlat x, typename TTypes<T>::Flat y,
                  typename TTypes<T>::Scalar sum) const {
    y.device(d) = x.square() + x.constant(T(1));
    sum.device(d) = y.sum();
  }
};

REGISTER_OP("CompatSquarePlusOne")
    .Input("x: T")
    .Output("y: T")
    .Output("sum: T")
    .Attr("T: {half, bfloat16, float, double, int32}")
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      c->set_output(0, c->input(0));
      c->set_output(1, c->Scalar());
      return absl::OkStatus();
    });

template <typename Device, typename T>
class SquarePlusOneOp : public OpKernel {
 public:
  explicit SquarePlusOneOp(OpKernelConstruction* context) : OpKernel(context) {}
  void Compute(OpKernelContext* context) override {
    const Tensor& x = context->input(0);
    Tensor* y = nullptr;
    Tensor* sum = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, x.shape(), &y));
    OP_REQUIRES_OK(context, context->allocate_output(1, TensorShape(), &sum));
    SquarePlusOne<Device, T>()(context->eigen_device<Device>(), x.flat<T>(), y->flat<T>(),
                               sum->scalar<T>());
  }
};

// TensorFlow's macros allow a missing semicolon.
#define REGISTER_CPU(T)                                                                          \
  REGISTER_KERNEL_BUILDER(Name("CompatSquarePlusOne").Device(DEVICE_CPU).TypeConstraint<T>("T"), \
                          SquarePlusOneOp<CPUDevice, T>)
REGISTER_CPU(Eigen::half)
REGISTER_CPU(bfloat16)
REGISTER_CPU(float)
REGISTER_CPU(double)
REGISTER_CPU(int32)
#undef REGISTER_CPU

class EigenViewsTest : public OpsTestBase {
 protected:
  template <typename T>
  void Run(std::initializer_list<float> x, std::initializer_list<float> y, float sum) {
    TF_ASSERT_OK(NodeDefBuilder("op", "CompatSquarePlusOne")
                     .Input(FakeInput(DataTypeToEnum<T>::v()))
                     .Finalize(node_def()));
    TF_ASSERT_OK(InitOp());
    const TensorShape shape({static_cast<int64>(x.size())});
    AddInputFromList<T, float>(shape, x);
    TF_ASSERT_OK(RunOpKernel());
    Tensor expected(DataTypeToEnum<T>::v(), shape);
    test::FillValues<T, float>(&expected, y);
    test::ExpectTensorEqual<T>(*GetOutput(0), expected);
    EXPECT_EQ(static_cast<float>(GetOutput(1)->scalar<T>()()), sum);
  }
};

TEST_F(EigenViewsTest, KernelComputesWithFloat) { Run<float>({1, 2, -3}, {2, 5, 10}, 17); }
TEST_F(EigenViewsTest, KernelComputesWithDouble) { Run<double>({1, 2, -3}, {2, 5, 10}, 17); }
TEST_F(EigenViewsTest, KernelComputesWithHalf) { Run<Eigen::half>({1, 2, -3}, {2, 5, 10}, 17); }
TEST_F(EigenViewsTest, KernelComputesWithBfloat16) { Run<bfloat16>({1, 2, -3}, {2, 5, 10}, 17); }
TEST_F(EigenViewsTest, KernelComputesWithIntegers) { Run<int32>({1, 2, -3}, {2, 5, 10}, 17); }
TEST_F(EigenViewsTest, KernelComputesWithEmptyTensors) { Run<float>({}, {}, 0); }

TEST(EigenViews, HaveExpressions) {
  Tensor a(DT_FLOAT, TensorShape({2, 3}));
  a.flat<float>().setZero();
  auto m = a.matrix<float>();
  m(1, 2) = 5;
  m(0, 1) = -2;
  EXPECT_EQ(a.flat<float>()(5), 5);
  // A view of any rank accepts a single index.
  EXPECT_EQ(m(5), 5);
  EXPECT_EQ(m.dimension(1), 3);
  EXPECT_EQ(m.size(), 6);

  Tensor b(DT_FLOAT, TensorShape({3}));
  b.vec<float>() = m.chip(1, 0);
  test::ExpectTensorEqual<float>(b, test::AsTensor<float>({0, 0, 5}));
  b.vec<float>() = (m.chip(0, 0) < 0.0f).select(m.chip(1, 0).constant(7.0f), m.chip(1, 0));
  test::ExpectTensorEqual<float>(b, test::AsTensor<float>({0, 7, 5}));
  a.flat<float>().setRandom();
  a.flat<float>().setConstant(3);
  const Tensor& constant = a;
  const Eigen::Tensor<float, 0, Eigen::RowMajor> sum = constant.matrix<float>().sum();
  EXPECT_EQ(sum(), 18);
  EXPECT_EQ(To32Bit(constant.matrix<float>())(1, 1), 3);
}

TEST(EigenViews, SupportOtherTypes) {
  Tensor strings(DT_STRING, TensorShape({2}));
  strings.vec<tstring>()(1) = "b";
  EXPECT_EQ(strings.flat<tstring>()(1), "b");
  Tensor quantised(DT_QINT8, TensorShape({2}));
  quantised.flat<qint8>()(0) = qint8(3);
  EXPECT_EQ(quantised.flat<qint8>()(0).value, 3);
  Tensor scalar(7.0f);
  EXPECT_EQ(scalar.scalar<float>()(), 7);
  EXPECT_EQ(scalar.scalar<float>()(0), 7);
  EXPECT_EQ((scalar.tensor<float, 0>()()), 7);
  EXPECT_EQ((scalar.shaped<float, 3>({1, 1, 1})(0, 0, 0)), 7);
  // Eigen's float16 and gradflow's have the same bits.
  Tensor half(Eigen::half(1.5f));
  EXPECT_EQ(half.dtype(), DT_HALF);
  EXPECT_EQ(static_cast<float>(half.scalar<gradflow::half>()()), 1.5f);
  EXPECT_EQ((std::is_same_v<EnumToDataType<DT_BFLOAT16>::Type, Eigen::bfloat16>), true);
}

TEST(DenseUpdate, AssignsAddsAndSubtracts) {
  Eigen::ThreadPool threads(1);
  const CPUDevice device(&threads, 1);
  Tensor params(DT_FLOAT, TensorShape({2}));
  const Tensor update = test::AsTensor<float>({3, 5});
  functor::DenseUpdate<CPUDevice, float, ASSIGN>()(device, params.flat<float>(),
                                                   update.flat<float>());
  test::ExpectTensorEqual<float>(params, update);
  functor::DenseUpdate<CPUDevice, float, ADD>()(device, params.flat<float>(), update.flat<float>());
  test::ExpectTensorEqual<float>(params, test::AsTensor<float>({6, 10}));
  const Tensor one = test::AsTensor<float>({1, 2});
  functor::DenseUpdate<CPUDevice, float, SUB>()(device, params.flat<float>(), one.flat<float>());
  test::ExpectTensorEqual<float>(params, test::AsTensor<float>({5, 8}));
}

TEST(EigenViews, SupportUnalignedSlices) {
  Tensor a(DT_FLOAT, TensorShape({33}));
  test::FillIota<float>(&a, 0);
  const Tensor slice = a.Slice(1, 33);
  ASSERT_FALSE(slice.IsAligned());
  Tensor sums(DT_FLOAT, TensorShape({32}));
  sums.flat<float>() = slice.flat<float>() + slice.flat<float>();
  for (int i = 0; i < 32; ++i) EXPECT_EQ(sums.flat<float>()(i), 2.0f * (i + 1));
}

TEST(EigenViewsDeathTest, WrongTypesEndTheProgram) {
  Tensor a(DT_FLOAT, TensorShape({2, 3}));
  EXPECT_DEATH(a.flat<int32>(), "int32 expected, got float");
  EXPECT_DEATH(a.vec<float>(), "view of 1 dimensions of a tensor of 2 dimensions");
  EXPECT_DEATH(a.scalar<float>(), "Must have a one element tensor, but the shape is \\[2,3\\]");
  EXPECT_DEATH((a.shaped<float, 1>({5})), "a view of shape \\[5\\] of a tensor of shape \\[2,3\\]");
  EXPECT_DEATH(Tensor(Tensor::Unset()).flat<float>(), "is not initialized|float expected");
}

}  // namespace
}  // namespace tensorflow
