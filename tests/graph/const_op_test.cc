#include "gradflow/graph/const_op.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "gradflow/core/attributes.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/testing/status_matchers.h"
#include "tests/graph/toy_graph_ops.h"

namespace gradflow {
namespace {

using ::gradflow::testing::IsOk;
using ::gradflow::testing::NewToyScope;
using ::gradflow::testing::StatusIs;
using ::testing::HasSubstr;

// Returns the text of the node's value. Expects that the value has the node's type.
std::string ValueOf(const Output& output) {
  if (output.node() == nullptr) return "none";
  EXPECT_EQ(output.node()->type_string(), "Const");
  Tensor value;
  EXPECT_THAT(output.node()->GetAttr("value", &value), IsOk());
  DataType dtype;
  EXPECT_THAT(output.node()->GetAttr("dtype", &dtype), IsOk());
  EXPECT_EQ(value.dtype(), dtype);
  EXPECT_EQ(output.type(), dtype);
  EXPECT_EQ(output.node()->output_shape(0), PartialTensorShape(value.shape()));
  return value.DebugString(100);
}

TEST(Const, HoldsScalarsAndLists) {
  const Scope root = NewToyScope();
  EXPECT_EQ(ValueOf(ops::Const(root, 42.0f)), "Tensor<type: float shape: [] values: 42>");
  EXPECT_EQ(ValueOf(ops::Const(root, {{2.0}, {3.0}})),
            "Tensor<type: double shape: [2,1] values: [2][3]>");
  EXPECT_EQ(ValueOf(ops::Const(root, {1, 2})), "Tensor<type: int32 shape: [2] values: 1 2>");
  EXPECT_EQ(ValueOf(ops::Const(root, "text")), "Tensor<type: string shape: [] values: text>");
  EXPECT_EQ(ValueOf(ops::Const(root, true)), "Tensor<type: bool shape: [] values: 1>");
  EXPECT_EQ(ValueOf(ops::Const(root, Tensor(half(0.5f)))),
            "Tensor<type: half shape: [] values: 0.5>");
  EXPECT_THAT(root.status(), IsOk());
}

TEST(Const, HoldsEmptyLists) {
  const Scope root = NewToyScope();
  EXPECT_EQ(ops::Const(root, {}).node()->output_shape(0).DebugString(), "[0]");
  EXPECT_EQ(ops::Const(root, {{}}).node()->output_shape(0).DebugString(), "[1,0]");
  EXPECT_EQ(ops::Const(root, {{{}, {}}}).node()->output_shape(0).DebugString(), "[1,2,0]");
  const Output ints = ops::Const<int>(root, {{{}}});
  EXPECT_EQ(ints.type(), DT_INT32);
  EXPECT_EQ(ints.node()->output_shape(0).DebugString(), "[1,1,0]");
  EXPECT_EQ(ops::Const<tstring>(root, {}).type(), DT_STRING);
  EXPECT_THAT(root.status(), IsOk());
}

TEST(Const, TakesAShape) {
  const Scope root = NewToyScope();
  EXPECT_EQ(ValueOf(ops::Const(root, 42.0, {2, 2})),
            "Tensor<type: double shape: [2,2] values: [42 42][42 42]>");
  EXPECT_EQ(ValueOf(ops::Const(root, {"1", "2", "3", "4"}, {2, 2})),
            "Tensor<type: string shape: [2,2] values: [1 2][3 4]>");
  EXPECT_EQ(ValueOf(ops::Const<float>(root, Input::Initializer(1, {3}))),
            "Tensor<type: float shape: [3] values: 1 1 1>");
  EXPECT_EQ(ValueOf(ops::Const<float>(root, {7.0f, TensorShape({2})})),
            "Tensor<type: float shape: [2] values: 7 7>");
  EXPECT_THAT(root.status(), IsOk());
}

TEST(Const, ConvertsToTheTypeAskedFor) {
  const Scope root = NewToyScope();
  EXPECT_EQ(ValueOf(ops::Const<int>(root, {1, 2})), "Tensor<type: int32 shape: [2] values: 1 2>");
  EXPECT_EQ(ValueOf(ops::Const<double>(root, {1, -2})),
            "Tensor<type: double shape: [2] values: 1 -2>");
  EXPECT_EQ(ValueOf(ops::Const<half>(root, 0.5)), "Tensor<type: half shape: [] values: 0.5>");
  EXPECT_EQ(ValueOf(ops::Const<bfloat16>(root, {{1.5f}})),
            "Tensor<type: bfloat16 shape: [1,1] values: [1.5]>");
  EXPECT_EQ(ValueOf(ops::Const<complex64>(root, 2)),
            "Tensor<type: complex64 shape: [] values: (2,0)>");
  EXPECT_EQ(ValueOf(ops::Const<uint8_t>(root, {255, 0})),
            "Tensor<type: uint8 shape: [2] values: 255 0>");
  EXPECT_EQ(ValueOf(ops::Const<int8_t>(root, -128.9)), "Tensor<type: int8 shape: [] values: -128>");
  EXPECT_EQ(ValueOf(ops::Const<int64_t>(root, std::numeric_limits<uint32_t>::max())),
            "Tensor<type: int64 shape: [] values: 4294967295>");
  EXPECT_EQ(ValueOf(ops::Const<int64_t>(root, -0x1p63)),
            "Tensor<type: int64 shape: [] values: -9223372036854775808>");
  EXPECT_EQ(ValueOf(ops::Const<bool>(root, {1, 0})), "Tensor<type: bool shape: [2] values: 1 0>");
  EXPECT_EQ(ValueOf(ops::Const<float>(root, {true, false})),
            "Tensor<type: float shape: [2] values: 1 0>");
  EXPECT_EQ(ValueOf(ops::Const<tstring>(root, {{"this"}, {"that"}})),
            "Tensor<type: string shape: [2,1] values: [this][that]>");
  EXPECT_THAT(root.status(), IsOk());
}

TEST(Const, ConvertsTensorsOfEveryNumberType) {
  ForEachType(ConcatTypes<NumberTypes, TypeList<bool>>::type(), [](auto tag) {
    using T = typename decltype(tag)::type;
    const Scope root = NewToyScope();
    SCOPED_TRACE(DataTypeString(DataTypeToEnum<T>::value));
    Tensor tensor(DataTypeToEnum<T>::value, {2});
    tensor.flat<T>()(0) = static_cast<T>(1);
    tensor.flat<T>()(1) = static_cast<T>(0);
    EXPECT_EQ(ValueOf(ops::Const<float>(root, tensor)),
              "Tensor<type: float shape: [2] values: 1 0>");
    EXPECT_EQ(ValueOf(ops::Const<uint64_t>(root, tensor)),
              "Tensor<type: uint64 shape: [2] values: 1 0>");
    EXPECT_EQ(ValueOf(ops::Const<complex128>(root, tensor)),
              "Tensor<type: complex128 shape: [2] values: (1,0) (0,0)>");
    EXPECT_THAT(root.status(), IsOk());
  });
  const Scope root = NewToyScope();
  EXPECT_EQ(ValueOf(ops::Const<float>(root, Tensor(half(-0.5f)))),
            "Tensor<type: float shape: [] values: -0.5>");
  EXPECT_EQ(ValueOf(ops::Const<int>(root, Tensor(bfloat16(-300)))),
            "Tensor<type: int32 shape: [] values: -300>");
  EXPECT_EQ(ValueOf(ops::Const<int64_t>(root, Tensor(int8_t{-128}))),
            "Tensor<type: int64 shape: [] values: -128>");
  EXPECT_EQ(ValueOf(ops::Const<double>(root, Tensor(std::numeric_limits<uint64_t>::max()))),
            "Tensor<type: double shape: [] values: 18446744073709551616>");
  // Like Cast, keeps the real part of complex numbers.
  EXPECT_EQ(ValueOf(ops::Const<complex128>(root, Tensor(complex64(1, 2)))),
            "Tensor<type: complex128 shape: [] values: (1,2)>");
  EXPECT_EQ(ValueOf(ops::Const<float>(root, Tensor(complex128(1.5, 2)))),
            "Tensor<type: float shape: [] values: 1.5>");
  EXPECT_THAT(root.status(), IsOk());
}

template <typename T>
void ExpectNoConversion(const Input::Initializer& value, const std::string& error) {
  const Scope root = NewToyScope();
  EXPECT_EQ(ops::Const<T>(root.WithOpName("c"), value), Output());
  EXPECT_THAT(root.status(),
              StatusIs(absl::StatusCode::kInvalidArgument, "node 'c' (Const): value: " + error));
}

TEST(Const, RejectsValuesThatTheTypeCannotHold) {
  ExpectNoConversion<uint8_t>({0, 256}, "the value 256 does not fit in uint8");
  ExpectNoConversion<uint8_t>(-1, "the value -1 does not fit in uint8");
  ExpectNoConversion<int8_t>(128.0, "the value 128 does not fit in int8");
  ExpectNoConversion<int64_t>(std::numeric_limits<uint64_t>::max(),
                              "the value 18446744073709551615 does not fit in int64");
  ExpectNoConversion<int64_t>(0x1p63, "the value 9.22337e+18 does not fit in int64");
  ExpectNoConversion<int>(std::nan(""), "the value nan does not fit in int32");
  ExpectNoConversion<bool>(2, "the value 2 does not fit in bool");
  ExpectNoConversion<float>("1", "a value of type string cannot be converted to float");
  ExpectNoConversion<tstring>(1, "a value of type int32 cannot be converted to string");
  ExpectNoConversion<uint8_t>(complex64(256, 2), "the value (256,2) does not fit in uint8");
  ExpectNoConversion<uint8_t>(Tensor(half(-1)), "the value -1 does not fit in uint8");
}

TEST(Const, RefusesListsThatAreNotATensor) {
  for (const Input::Initializer& value :
       {Input::Initializer({{2.0}, {"df"}}), Input::Initializer({{1}, {1, 2}}),
        Input::Initializer({1, 2, 3}, {2})}) {
    const Scope root = NewToyScope();
    EXPECT_EQ(ops::Const(root, value), Output());
    EXPECT_THAT(root.status(), StatusIs(absl::StatusCode::kInvalidArgument,
                                        HasSubstr("node 'Const' (Const): value: a list ")));
    EXPECT_EQ(root.graph()->num_nodes(), 0);
  }
}

TEST(Const, HoldsAProtoUnchanged) {
  const Scope root = NewToyScope();
  TensorProto proto;
  proto.set_dtype(DT_DOUBLE);
  proto.mutable_tensor_shape()->add_dim()->set_size(4);
  proto.add_double_val(0.5);
  const Output output = ops::ConstFromProto(root, proto);
  EXPECT_EQ(ValueOf(output), "Tensor<type: double shape: [4] values: 0.5 0.5 0.5 0.5>");
  EXPECT_EQ(output.node()->def().attr().at("value").tensor().SerializeAsString(),
            proto.SerializeAsString());
}

TEST(Const, RefusesInvalidTensorProtos) {
  const Scope root = NewToyScope();
  TensorProto proto;
  proto.set_dtype(DT_DOUBLE);
  proto.add_double_val(1);
  proto.add_double_val(2);
  EXPECT_EQ(ops::ConstFromProto(root, proto), Output());
  EXPECT_THAT(root.status(), StatusIs(absl::StatusCode::kInvalidArgument,
                                      HasSubstr("node 'Const' (Const): attribute value: ")));
}

TEST(Const, IsNamedLikeOtherOps) {
  const Scope root = NewToyScope();
  EXPECT_EQ(ops::Const(root, 1).node()->name(), "Const");
  EXPECT_EQ(ops::Const(root, 1).node()->name(), "Const_1");
  EXPECT_EQ(ops::Const<float>(root, 1).node()->name(), "Const_2");
  EXPECT_EQ(ops::Const(root.WithOpName("x"), 1).node()->name(), "x");
  EXPECT_EQ(ops::Const(root.WithOpName("x"), 1).node()->name(), "x_1");
  EXPECT_EQ(ops::Const(root.NewSubScope("c").WithOpName("y"), 1).node()->name(), "c/y");
}

}  // namespace
}  // namespace gradflow
