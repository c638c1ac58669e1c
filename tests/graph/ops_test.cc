#include "gradflow/graph/ops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <unordered_map>
#include <vector>

#include "gradflow/graph/const_op.h"
#include "gradflow/graph/node_builder.h"
#include "gradflow/graph/scope.h"
#include "gradflow/proto/tensor.pb.h"
#include "gradflow/testing/status_matchers.h"
#include "tests/graph/toy_graph_ops.h"

namespace gradflow {
namespace {

using ::gradflow::testing::IsOk;
using ::gradflow::testing::NewToyScope;
using ::gradflow::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Initializer = Input::Initializer;

std::string Print(const Initializer& value) {
  return value.status.ok() ? value.tensor.DebugString(100) : value.status.ToString();
}

// ---- Operation, Output ----

TEST(Operation, DescribesItsNode) {
  const Scope root = NewToyScope();
  const Output x = ops::Const(root.WithOpName("x"), 1.0f);
  const Operation pair = OpBuilder(root.WithOpName("p"), "Pair").Input(x).Finish();
  EXPECT_EQ(pair.num_inputs(), 1);
  EXPECT_EQ(pair.num_outputs(), 2);
  EXPECT_EQ(pair.input_type(0), DT_FLOAT);
  EXPECT_EQ(pair.output_type(1), DT_FLOAT);
  EXPECT_EQ(pair.input(0), x);
  EXPECT_EQ(pair.output(1).index(), 1);
  EXPECT_EQ(pair.output(1).name(), "p:1");
  EXPECT_EQ(pair.output(1).node()->name(), "p");
  EXPECT_EQ(pair.output(1).op(), pair);
  EXPECT_EQ(x.name(), "x:0");
  EXPECT_EQ(x.type(), DT_FLOAT);
}

TEST(Operation, IsEmptyWithoutANode) {
  const Scope root = NewToyScope();
  const Operation noop = OpBuilder(root, "NoOp").Finish();
  for (const Operation& op : {Operation(), noop}) {
    EXPECT_EQ(op.num_inputs(), 0);
    EXPECT_EQ(op.num_outputs(), 0);
    for (const int i : {-1, 0, 1}) {
      EXPECT_EQ(op.input_type(i), DT_INVALID);
      EXPECT_EQ(op.output_type(i), DT_INVALID);
      EXPECT_EQ(op.input(i), Output());
      EXPECT_EQ(op.output(i), Output());
    }
  }
  EXPECT_EQ(Output().node(), nullptr);
  EXPECT_EQ(Output().name(), "");
  EXPECT_EQ(Output().type(), DT_INVALID);
}

TEST(Output, IsAKeyOfContainers) {
  const Scope root = NewToyScope();
  const Operation pair = OpBuilder(root, "Pair").Input(1.0f).Finish();
  std::unordered_map<Output, int, OutputHash> map;
  map[pair.output(0)] = 1;
  map[pair.output(1)] = 2;
  map[Output(pair.node(), 0)] = 3;
  EXPECT_EQ(map.size(), 2);
  EXPECT_EQ(map[pair.output(0)], 3);
  EXPECT_NE(pair.output(0), pair.output(1));
  EXPECT_NE(pair.hash(0), pair.hash(1));
  EXPECT_EQ(Output(pair.node()), pair.output(0));
}

// ---- Initializer ----

TEST(Initializer, TakesScalarsOfEveryType) {
  EXPECT_EQ(Print(1.5f), "Tensor<type: float shape: [] values: 1.5>");
  EXPECT_EQ(Print(1.5), "Tensor<type: double shape: [] values: 1.5>");
  EXPECT_EQ(Print(7), "Tensor<type: int32 shape: [] values: 7>");
  EXPECT_EQ(Print(7u), "Tensor<type: uint32 shape: [] values: 7>");
  EXPECT_EQ(Print(7l), "Tensor<type: int64 shape: [] values: 7>");
  EXPECT_EQ(Print(7ll), "Tensor<type: int64 shape: [] values: 7>");
  EXPECT_EQ(Print(7ull), "Tensor<type: uint64 shape: [] values: 7>");
  EXPECT_EQ(Print(true), "Tensor<type: bool shape: [] values: 1>");
  EXPECT_EQ(Print(complex64(1, 2)), "Tensor<type: complex64 shape: [] values: (1,2)>");
  EXPECT_EQ(Initializer(int8_t{-3}).tensor.scalar<int8_t>()(), -3);
  EXPECT_EQ(Initializer(uint16_t{3}).tensor.scalar<uint16_t>()(), 3);
  EXPECT_EQ(Initializer(half(0.5f)).tensor.scalar<half>()(), 0.5f);
  EXPECT_EQ(Initializer(bfloat16(0.5f)).tensor.scalar<bfloat16>()(), 0.5f);
  EXPECT_EQ(Initializer(qint8{5}).tensor.scalar<qint8>()().value, 5);
}

TEST(Initializer, TakesStringsOfEveryKind) {
  const std::string expected = "Tensor<type: string shape: [] values: text>";
  EXPECT_EQ(Print("text"), expected);
  EXPECT_EQ(Print(std::string("text")), expected);
  EXPECT_EQ(Print(absl::string_view("text")), expected);
  const char* pointer = "text";
  EXPECT_EQ(Print(pointer), expected);
  EXPECT_EQ(Print({"a", "b"}), "Tensor<type: string shape: [2] values: a b>");
  EXPECT_EQ(Print({{"a", "b"}, {"c", "d"}}),
            "Tensor<type: string shape: [2,2] values: [a b][c d]>");
  EXPECT_EQ(Print(Initializer("a", {2})), "Tensor<type: string shape: [2] values: a a>");
  pointer = nullptr;
  EXPECT_THAT(Initializer(pointer).status,
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("null")));
}

TEST(Initializer, NestsToAnyDepth) {
  EXPECT_EQ(Print({1, 2, 3}), "Tensor<type: int32 shape: [3] values: 1 2 3>");
  EXPECT_EQ(Print({{1., 2.}, {3., 4.}, {5., 6.}}),
            "Tensor<type: double shape: [3,2] values: [1 2][3 4][5 6]>");
  EXPECT_EQ(Print({{{true}}, {{false}}}), "Tensor<type: bool shape: [2,1,1] values: [[1]][[0]]>");
  EXPECT_EQ(Initializer({{{{{{1.f, 2.f}}}}}}).tensor.shape(), TensorShape({1, 1, 1, 1, 1, 2}));
}

TEST(Initializer, EmptyListsAreFloatsOfNoElements) {
  EXPECT_EQ(Initializer({}).tensor.shape(), TensorShape({0}));
  EXPECT_EQ(Initializer({{}}).tensor.shape(), TensorShape({1, 0}));
  EXPECT_EQ(Initializer({{{}, {}}}).tensor.shape(), TensorShape({1, 2, 0}));
  EXPECT_EQ(Initializer({{{}, {}}}).tensor.dtype(), DT_FLOAT);
  EXPECT_THAT(Initializer({{}, {}}).status, IsOk());
}

TEST(Initializer, TakesTensors) {
  const Tensor row = Initializer({1, 2}).tensor;
  EXPECT_TRUE(Initializer(row).tensor.SharesBufferWith(row));
  EXPECT_EQ(Print({row, row}), "Tensor<type: int32 shape: [2,2] values: [1 2][1 2]>");
  EXPECT_THAT(Initializer(Tensor(DT_FLOAT, TensorShape({-1}))).status,
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not initialized")));
}

TEST(Initializer, TakesShapes) {
  EXPECT_EQ(Print(Initializer(0.5f, {2, 2})),
            "Tensor<type: float shape: [2,2] values: [0.5 0.5][0.5 0.5]>");
  EXPECT_EQ(Print(Initializer({1, 2, 3, 4}, {2, 2})),
            "Tensor<type: int32 shape: [2,2] values: [1 2][3 4]>");
  EXPECT_EQ(Initializer(1, {0, 5}).tensor.shape(), TensorShape({0, 5}));
  EXPECT_EQ(Initializer(1, {}).tensor.shape(), TensorShape());
}

TEST(Initializer, RefusesShapesThatDoNotFit) {
  EXPECT_THAT(Initializer({1, 2, 3}, {2, 2}).status,
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "a list of 3 values cannot make a tensor of shape [2,2]"));
  EXPECT_THAT(Initializer({"a"}, {2}).status, StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Initializer(1, TensorShape({-1})).status,
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_FALSE(Initializer(1.0, {int64_t{1} << 60, 1}).status.ok());
}

TEST(Initializer, RefusesRaggedAndMixedLists) {
  EXPECT_THAT(Initializer({{1, 2}, {3}}).status,
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "a list is ragged: element 1 is int32 of shape [1], but element 0 is int32 "
                       "of shape [2]"));
  EXPECT_THAT(Initializer({{}, {{}}}).status,
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("ragged")));
  EXPECT_THAT(Initializer({{2.0}, {"df"}}).status,
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "a list has values of several types: element 1 is string of shape [1], but "
                       "element 0 is double of shape [1]"));
  EXPECT_THAT(Initializer({1, 2.0}).status,
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("several types")));
  // Lists are checked at any depth.
  EXPECT_THAT(Initializer({{{{1, 2}, {3}}}}).status,
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("element 1 is int32")));
}

TEST(Initializer, ConvertsToAProto) {
  const TensorProto proto = Initializer({1, 2}).AsTensorProto();
  EXPECT_EQ(proto.dtype(), DT_INT32);
  EXPECT_THAT(proto.int_val(), ElementsAre(1, 2));
  EXPECT_EQ(Initializer({1, 2.0}).AsTensorProto().dtype(), DT_INVALID);
}

// ---- Input, InputList ----

TEST(Input, IsAnOutputOrAValue) {
  const Scope root = NewToyScope();
  const Output x = ops::Const(root, 1.0f);
  const Input from_output = x;
  EXPECT_FALSE(from_output.is_value());
  EXPECT_EQ(from_output.node(), x.node());
  EXPECT_EQ(from_output.index(), 0);
  EXPECT_EQ(from_output.tensor().NumElements(), 0);
  const Input from_value = {{1, 2}, {3, 4}};
  EXPECT_TRUE(from_value.is_value());
  EXPECT_EQ(from_value.node(), nullptr);
  EXPECT_EQ(from_value.tensor().shape(), TensorShape({2, 2}));
  EXPECT_THAT(from_value.status(), IsOk());
  const Input ragged = {{1, 2}, {3}};
  EXPECT_THAT(ragged.status(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("ragged")));
}

TEST(Input, ValueBecomesAConstOfASubScope) {
  const Scope root = NewToyScope();
  const Operation a = OpBuilder(root.WithOpName("a"), "Neg").Input(1.0f).Finish();
  const Operation b = OpBuilder(root, "Neg").Input(Input{{1.0f}, {2.0f}}).Finish();
  const Operation c = OpBuilder(root, "Neg").Input(Tensor(3.0f)).Finish();
  ASSERT_THAT(root.status(), IsOk());
  EXPECT_EQ(a.input(0).name(), "Const/Const:0");
  EXPECT_EQ(b.input(0).name(), "Const_1/Const:0");
  EXPECT_EQ(b.input(0).node()->output_shape(0).DebugString(), "[2,1]");
  EXPECT_EQ(c.input(0).name(), "Const_2/Const:0");
  EXPECT_EQ(a.node()->name(), "a");
}

TEST(Input, BadValueIsAnErrorOfTheScope) {
  const Scope root = NewToyScope();
  OpBuilder(root.WithOpName("m"), "MatMul").Input(1.0f).Input(Input{{1, 2}, {3}}).Finish();
  EXPECT_THAT(root.status(), StatusIs(absl::StatusCode::kInvalidArgument,
                                      HasSubstr("node 'm' (MatMul): input b: a list is ragged")));
  const Scope other = NewToyScope();
  OpBuilder(other, "Pack").Input(InputList{1, {1, 2.0}}).Finish();
  EXPECT_THAT(other.status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("node 'Pack' (Pack): input values[1]: a list has values")));
}

TEST(Input, TakesAnOperationOfOneOutput) {
  const Scope root = NewToyScope();
  const Operation neg = OpBuilder(root, "Neg").Input(1.0f).Finish();
  EXPECT_EQ(OpBuilder(root, "Neg").Input(neg).Finish().input(0), neg.output(0));
  const Operation pair = OpBuilder(root.WithOpName("p"), "Pair").Input(neg).Finish();
  OpBuilder(root, "Neg").Input(pair).Finish();
  EXPECT_THAT(root.status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("input x: operation 'p' (Pair) has 2 outputs, expected one")));
}

TEST(Input, NamesANode) {
  const Scope root = NewToyScope();
  const Operation pair = OpBuilder(root.WithOpName("p"), "Pair").Input(1.0f).Finish();
  const Operation neg = OpBuilder(root, "Neg").Input(Input("p", 1, DT_FLOAT)).Finish();
  EXPECT_EQ(neg.input(0), pair.output(1));
  for (const Input& input :
       {Input("none", 0, DT_FLOAT), Input("p", 2, DT_FLOAT), Input("p", 0, DT_HALF)}) {
    const Scope other = NewToyScope();
    OpBuilder(other.WithOpName("p"), "Pair").Input(1.0f).Finish();
    OpBuilder(other, "Neg").Input(input).Finish();
    EXPECT_THAT(other.status(), StatusIs(absl::StatusCode::kInvalidArgument,
                                         HasSubstr(std::string(input.node_name()))));
  }
}

TEST(InputList, MixesOutputsAndValues) {
  const Scope root = NewToyScope();
  const Output x = ops::Const(root, 1.0f);
  const Operation pack = OpBuilder(root, "Pack").Input(InputList{x, 2.0f, Tensor(3.0f)}).Finish();
  ASSERT_THAT(root.status(), IsOk());
  EXPECT_EQ(pack.num_inputs(), 3);
  EXPECT_EQ(pack.input(0), x);
  const OutputList outputs = {x, x};
  EXPECT_EQ(InputList(outputs).size(), 2);
  EXPECT_EQ(InputList({x, x, x}).size(), 3);
  EXPECT_EQ(InputList(std::vector<Input>{x}).size(), 1);
  EXPECT_EQ(InputList(OutputList()).size(), 0);
}

}  // namespace
}  // namespace gradflow
