// Variants and the functions of their types, by TensorFlow's names.
#include "tensorflow/core/framework/variant.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tensorflow/cc/client/client_session.h"
#include "tensorflow/cc/ops/standard_ops.h"
#include "tensorflow/core/framework/variant_op_registry.h"
#include "tensorflow/core/framework/variant_tensor_data.h"

namespace tensorflow {
namespace {

struct Interval {
  int least = 0;
  int most = 0;
  std::string TypeName() const { return "Interval"; }
  static absl::Status Zeros(OpKernelContext*, const Interval&, Interval* zeros) {
    *zeros = Interval();
    return absl::OkStatus();
  }
  static absl::Status Add(OpKernelContext*, const Interval& a, const Interval& b, Interval* sum) {
    *sum = {a.least + b.least, a.most + b.most};
    return absl::OkStatus();
  }
};
REGISTER_UNARY_VARIANT_DECODE_FUNCTION(Interval, "Interval");
REGISTER_UNARY_VARIANT_UNARY_OP_FUNCTION(ZEROS_LIKE_VARIANT_UNARY_OP, DEVICE_CPU, Interval,
                                         Interval::Zeros);
REGISTER_UNARY_VARIANT_BINARY_OP_FUNCTION(ADD_VARIANT_BINARY_OP, DEVICE_CPU, Interval,
                                          Interval::Add);

Tensor IntervalTensor(int least, int most) {
  Tensor tensor(DT_VARIANT, {});
  tensor.scalar<Variant>()() = Interval{least, most};
  return tensor;
}

TEST(Variants, AreComputedByTheFunctionsOfTheirType) {
  const Scope root = Scope::NewRootScope();
  const Output x = ops::Placeholder(root, DT_VARIANT);
  const Output sum = ops::AddN(root, {x, x});
  const Output zeros = ops::ZerosLike(root, x);
  ClientSession session(root);
  std::vector<Tensor> outputs;
  const absl::Status status = session.Run({{x, IntervalTensor(3, 5)}}, {sum, zeros}, &outputs);
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_NE(outputs[0].scalar<Variant>()().get<Interval>(), nullptr);
  EXPECT_EQ(outputs[0].scalar<Variant>()().get<Interval>()->most, 10);
  EXPECT_EQ(outputs[1].scalar<Variant>()().get<Interval>()->most, 0);
}

TEST(Variants, AreDecodedByTheFunctionOfTheirType) {
  TensorProto proto;
  IntervalTensor(3, 5).AsProtoField(&proto);
  Tensor tensor;
  ASSERT_TRUE(tensor.FromProto(proto));
  ASSERT_NE(tensor.scalar<Variant>()().get<Interval>(), nullptr);
  EXPECT_EQ(tensor.scalar<Variant>()().get<Interval>()->least, 3);

  Variant unknown = VariantTensorDataProto();
  EXPECT_TRUE(DecodeUnaryVariant(&unknown));
  EXPECT_TRUE(unknown.is_empty());
  VariantTensorDataProto other;
  other.set_type_name("other");
  unknown = other;
  EXPECT_FALSE(DecodeUnaryVariant(&unknown));
}

TEST(Variants, HaveNoFunctionsOfOtherTypes) {
  using Device = Eigen::ThreadPoolDevice;
  Variant result;
  const Variant number = 7;
  EXPECT_EQ(
      UnaryOpVariant<Device>(nullptr, ZEROS_LIKE_VARIANT_UNARY_OP, number, &result),
      absl::InternalError("variants of type 'int' have no function ZEROS_LIKE for device CPU"));
  EXPECT_EQ(BinaryOpVariants<Device>(nullptr, ADD_VARIANT_BINARY_OP, number, Interval(), &result),
            absl::InternalError("variants of types int and Interval have no common function"));
  EXPECT_EQ(UnaryVariantOpRegistry::Global()->GetDecodeFn("other"), nullptr);
}

}  // namespace
}  // namespace tensorflow
