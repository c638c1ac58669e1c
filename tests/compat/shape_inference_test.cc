// Tests of InferenceContext (handles of shapes and dimensions, constraints, arithmetic, resource
// handles), and of INFER_OK and INFER_ERROR.
#include "tensorflow/core/framework/shape_inference.h"

#include <limits>
#include <memory>
#include <vector>

#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_def_builder.h"
#include "tensorflow/core/framework/shape_inference_testutil.h"
#include "tensorflow/core/framework/tensor_testutil.h"
#include "tensorflow/core/lib/core/status_test_util.h"
#include "tensorflow/core/platform/status_matchers.h"
#include "tensorflow/core/platform/test.h"

namespace tensorflow {
namespace shape_inference {
namespace {

using ::tensorflow::testing::StatusIs;
using ::testing::HasSubstr;

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

class InferenceContextTest : public ::testing::Test {
 protected:
  // Makes a context for an op with the given inputs.
  InferenceContext& Make(const std::vector<PartialTensorShape>& inputs, int num_outputs = 1,
                         const std::vector<const Tensor*>& tensors = {}) {
    OpDefBuilder builder("Test");
    for (size_t i = 0; i < inputs.size(); ++i) builder.Input(absl::StrCat("i", i, ": int32"));
    for (int i = 0; i < num_outputs; ++i) builder.Output(absl::StrCat("o", i, ": int32"));
    OpRegistrationData data;
    TF_CHECK_OK(builder.Finalize(&data));
    node_.set_name("test");
    node_.set_op("Test");
    c_ = std::make_unique<InferenceContext>(
        0, node_, data.op_def, inputs, tensors, std::vector<PartialTensorShape>(),
        std::vector<std::unique_ptr<std::vector<std::pair<PartialTensorShape, DataType>>>>());
    TF_CHECK_OK(c_->construction_status());
    return *c_;
  }

  NodeDef node_;
  std::unique_ptr<InferenceContext> c_;
};

TEST_F(InferenceContextTest, HandlesHaveIdentity) {
  InferenceContext& c = Make({{-1, -1, 3}, PartialTensorShape()});
  const ShapeHandle in = c.input(0);
  EXPECT_TRUE(c.Dim(in, 0).SameHandle(c.Dim(in, -3)));
  EXPECT_FALSE(c.Dim(in, 0).SameHandle(c.Dim(in, 1)));
  ShapeHandle tail, both;
  TF_ASSERT_OK(c.Subshape(in, 1, &tail));
  EXPECT_TRUE(c.Dim(tail, 0).SameHandle(c.Dim(in, 1)));
  TF_ASSERT_OK(c.Concatenate(tail, in, &both));
  EXPECT_EQ(c.DebugString(both), "[?,3,?,?,3]");
  EXPECT_TRUE(c.Dim(both, 2).SameHandle(c.Dim(in, 0)));
  EXPECT_FALSE(c.Dim(c.input(1), 0).SameHandle(c.Dim(c.input(1), 0)));
  EXPECT_FALSE(c.UnknownShape().SameHandle(c.UnknownShape()));
}

TEST_F(InferenceContextTest, SubshapeTakesStrides) {
  InferenceContext& c = Make({{1, 2, 3, 4, 5}});
  const auto subshape = [&](int64_t start, int64_t end, int64_t stride) {
    ShapeHandle out;
    const absl::Status status = c.Subshape(c.input(0), start, end, stride, &out);
    return status.ok() ? c.DebugString(out) : std::string(status.message());
  };
  EXPECT_EQ(subshape(0, kMax, 2), "[1,3,5]");
  EXPECT_EQ(subshape(1, -1, 2), "[2,4]");
  EXPECT_EQ(subshape(-1, 0, -2), "[5,3]");
  EXPECT_EQ(subshape(5, kMax, -2), "[5,3,1]");
  EXPECT_EQ(subshape(0, 5, kMax), "[1]");
  EXPECT_EQ(subshape(4, kMax, std::numeric_limits<int64_t>::min()), "[5]");
  EXPECT_EQ(subshape(0, 2, 0), "Subshape must have a stride other than 0");
  EXPECT_THAT(subshape(3, 1, 1), HasSubstr("start <= end, but is 3 and 1"));
  EXPECT_THAT(subshape(-6, 1, 1), HasSubstr("start out of bounds: -6"));
}

TEST_F(InferenceContextTest, MergesRecordEqualDimensions) {
  InferenceContext& c = Make({{-1, 2}, {1, -1}, {3, 3}});
  ShapeHandle out;
  TF_ASSERT_OK(c.Merge(c.input(0), c.input(1), &out));
  EXPECT_EQ(c.DebugString(out), "[1,2]");
  EXPECT_EQ(c.MergedShapes().size(), 2u);
  EXPECT_EQ(c.MergedDims().size(), 2u);
  EXPECT_THAT(c.Merge(out, c.input(2), &out),
              StatusIs(error::INVALID_ARGUMENT,
                       HasSubstr("Dimension 0 in both shapes must be equal, but are 1 and 3")));
  EXPECT_FALSE(c.RankKnown(out));
  EXPECT_TRUE(c.MergeInput(0, c.input(1)));
  EXPECT_EQ(c.DebugString(c.input(0)), "[1,2]");
  EXPECT_TRUE(c.RelaxInput(0, c.input(2)));
  EXPECT_EQ(c.DebugString(c.input(0)), "[?,?]");
  EXPECT_FALSE(c.MergeInput(2, c.Vector(1)));
}

TEST_F(InferenceContextTest, ArithmeticChecksOverflow) {
  InferenceContext& c = Make({{6, -1, 0}});
  const DimensionHandle six = c.Dim(c.input(0), 0), unknown = c.Dim(c.input(0), 1);
  DimensionHandle out;
  TF_ASSERT_OK(c.Multiply(six, 7, &out));
  EXPECT_EQ(c.Value(out), 42);
  TF_ASSERT_OK(c.Multiply(unknown, 1, &out));
  EXPECT_TRUE(out.SameHandle(unknown));
  EXPECT_THAT(c.Multiply(six, kMax / 2, &out), StatusIs(error::INVALID_ARGUMENT));
  EXPECT_THAT(c.Add(six, kMax, &out), StatusIs(error::INVALID_ARGUMENT));
  EXPECT_THAT(c.Subtract(six, 7, &out), StatusIs(error::INVALID_ARGUMENT));
  EXPECT_THAT(
      c.Divide(six, 4, /*evenly_divisible=*/true, &out),
      StatusIs(error::INVALID_ARGUMENT, "Dimension size must be evenly divisible by 4 but is 6"));
  TF_ASSERT_OK(c.Divide(six, 4, /*evenly_divisible=*/false, &out));
  EXPECT_EQ(c.Value(out), 1);
  TF_ASSERT_OK(c.Min(unknown, 0, &out));
  EXPECT_EQ(c.Value(out), 0);
  TF_ASSERT_OK(c.Max(six, 9, &out));
  EXPECT_EQ(c.Value(out), 9);
}

TEST_F(InferenceContextTest, MakesShapesFromTensors) {
  const Tensor dims = test::AsTensor<int32>({2, -1});
  const Tensor unknown = test::AsScalar<int32>(-1);
  InferenceContext& c = Make({{2}, {}, {3}, {kMax}}, 1, {&dims, &unknown});
  ShapeHandle out;
  TF_ASSERT_OK(c.MakeShapeFromShapeTensor(0, &out));
  EXPECT_EQ(c.DebugString(out), "[2,?]");
  TF_ASSERT_OK(c.MakeShapeFromShapeTensor(1, &out));
  EXPECT_EQ(c.DebugString(out), "?");
  TF_ASSERT_OK(c.MakeShapeFromShapeTensor(2, &out));
  EXPECT_EQ(c.DebugString(out), "[?,?,?]");
  // A scalar may mean an unknown shape, either by its value or if the caller allows it.
  const TensorShape scalar({});
  Make({scalar, scalar, {3}}, 1, {&unknown});
  TF_ASSERT_OK(c_->MakeShapeFromShapeTensor(0, &out));
  EXPECT_EQ(c_->DebugString(out), "?");
  EXPECT_THAT(c_->MakeShapeFromShapeTensorTreatScalarAsUnknownShape(2, &out), StatusIs(error::OK));
  EXPECT_EQ(c_->DebugString(out), "[?,?,?]");
  TF_ASSERT_OK(c_->MakeShapeFromShapeTensorTreatScalarAsUnknownShape(1, &out));
  EXPECT_EQ(c_->DebugString(out), "?");
}

TEST_F(InferenceContextTest, RejectsShapesFromLongVectors) {
  const Tensor dims = test::AsTensor<int32>({2, -1});
  InferenceContext& c = Make({{2}, {}, {3}, {kMax}});
  ShapeHandle out;
  // A vector of this length is not a valid shape, and takes no memory.
  EXPECT_THAT(c.MakeShapeFromShapeTensor(3, &out), StatusIs(error::INVALID_ARGUMENT));
  EXPECT_THAT(c.WithRank(c.UnknownShape(), kMax, &out), StatusIs(error::INVALID_ARGUMENT));
  EXPECT_FALSE(c.RankKnown(c.UnknownShapeOfRank(kMax)));
  int64_t value = 0;
  TF_ASSERT_OK(c.GetScalarFromTensor(&dims, 1, &value));
  EXPECT_EQ(value, -1);
  EXPECT_THAT(c.GetScalarFromTensor(&dims, 2, &value), StatusIs(error::INVALID_ARGUMENT));
}

TEST_F(InferenceContextTest, InputsThatDoNotExistAreErrors) {
  InferenceContext& c = Make({{1}});
  EXPECT_FALSE(c.RankKnown(c.input(1)));
  EXPECT_EQ(c.input_tensor(-1), nullptr);
  c.set_output(7, c.input(0));
  EXPECT_THAT(c.status(), StatusIs(error::INTERNAL, "the shape function asked for input 1 of 1"));
  EXPECT_THAT(c.Run([](InferenceContext*) { return absl::OkStatus(); }),
              StatusIs(error::INTERNAL, HasSubstr("with input shapes: [1].")));
  ASSERT_EQ(c.num_outputs(), 1);
  EXPECT_THAT(c.ExpandOutputs(0), StatusIs(error::INVALID_ARGUMENT));
  TF_ASSERT_OK(c.ExpandOutputs(3));
  EXPECT_FALSE(c.RankKnown(c.output(2)));
}

TEST_F(InferenceContextTest, PropagatesValuesOfHandles) {
  InferenceContext& c = Make({{}});
  EXPECT_EQ(c.input_handle_shapes_and_types(0), nullptr);
  EXPECT_TRUE(c.MergeInputHandleShapesAndTypes(0, {{c.Vector(-1), DT_FLOAT}}));
  EXPECT_FALSE(c.MergeInputHandleShapesAndTypes(0, {{c.Vector(-1), DT_FLOAT}}));
  EXPECT_TRUE(c.MergeInputHandleShapesAndTypes(0, {{c.Vector(2), DT_FLOAT}}));
  EXPECT_EQ(c.DebugString(*c.input_handle_shapes_and_types(0)), "[[2]:float]");
  EXPECT_FALSE(c.RelaxInputHandleShapesAndMergeTypes(0, {{c.Vector(3), DT_INT32}}));
  EXPECT_TRUE(c.RelaxInputHandleShapesAndMergeTypes(0, {{c.Vector(3), DT_FLOAT}}));
  EXPECT_EQ(c.DebugString(*c.input_handle_shapes_and_types(0)), "[[?]:float]");
}

REGISTER_OP("CompatMatMul")
    .Input("a: T")
    .Input("b: T")
    .Output("c: T")
    .Attr("T: {float, int32}")
    .Attr("transpose_a: bool = false")
    .Attr("transpose_b: bool = false")
    .SetShapeFn(MatMulShape);
REGISTER_OP("CompatBatchMatMul")
    .Input("x: float")
    .Input("y: float")
    .Output("z: float")
    .Attr("adj_x: bool = false")
    .Attr("adj_y: bool = false")
    .SetShapeFn(BatchMatMulV2Shape);
REGISTER_OP("CompatAdd")
    .Input("a: float")
    .Input("b: float")
    .Output("c: float")
    .SetShapeFn(BroadcastBinaryOpShapeFn);
REGISTER_OP("CompatConcat")
    .Input("axis: int32")
    .Input("values: N * float")
    .Output("c: float")
    .Attr("N: int")
    .SetShapeFn([](InferenceContext* c) { return ConcatShape(c, c->num_inputs() - 1); });

REGISTER_OP("CompatExplicit")
    .Input("x: float")
    .Output("y: float")
    .Attr("shape: shape")
    .SetShapeFn(ExplicitShape);

ShapeInferenceTestOp TestOp(const string& name, const std::vector<std::pair<string, int>>& attrs) {
  ShapeInferenceTestOp op(name);
  op.node_def.set_op(name);
  for (const auto& [attr, value] : attrs) AddNodeAttr(attr, value != 0, &op.node_def);
  return op;
}

TEST(InferOkTest, ComparesHandles) {
  ShapeInferenceTestOp op = TestOp("CompatMatMul", {{"transpose_a", 0}, {"transpose_b", 1}});
  INFER_OK(op, "[2,?];[?,3]", "[d0_0,d1_0]");
  INFER_OK(op, "?;?", "[?,?]");
  INFER_ERROR("Dimensions must be equal, but are 4 and 3", op, "[2,4];[?,3]");
  EXPECT_THAT(ShapeInferenceTestutil::InferShapes(op, "[2,?];[?,3]", "[d0_0,d0_0]"),
              StatusIs(error::UNKNOWN, HasSubstr("should have matched one of (d0_0)")));
  EXPECT_THAT(ShapeInferenceTestutil::InferShapes(op, "[2,?];[?,3]", "[d0_0,?]"),
              StatusIs(error::UNKNOWN, HasSubstr("matched input d1_0")));
}

TEST(InferOkTest, AcceptsBatchesOfProducts) {
  const auto test = [](int adj_x, int adj_y) {
    return TestOp("CompatBatchMatMul", {{"adj_x", adj_x}, {"adj_y", adj_y}});
  };
  INFER_OK(test(0, 0), "[5,2,3];[5,3,4]", "[d0_0|d1_0,d0_1,d1_2]");
  INFER_OK(test(1, 0), "[5,3,2];[1,3,4]", "[d0_0,d0_2,d1_2]");
  INFER_OK(test(0, 1), "[2,3];[5,4,3]", "[d1_0,d0_0,d1_1]");
  INFER_OK(test(1, 1), "[5,3,2];[4,3]", "[d0_0,d0_2,d1_0]");
  INFER_ERROR("Dimensions must be equal, but are 2 and 4", test(1, 1), "[2,3];[3,4]");
}

TEST(InferOkTest, AcceptsBroadcasting) {
  const ShapeInferenceTestOp op("CompatAdd");
  INFER_OK(op, "[2,?];[1,3]", "[d0_0,d1_1]");
  INFER_OK(op, "[4];[?,?,1]", "[d1_0,d1_1,d0_0]");
  INFER_OK(op, "[?];[?]", "[?]");
  INFER_OK(op, "?;[1]", "?");
  INFER_ERROR("but are 2 and 3", op, "[2];[3]");
}

TEST(InferOkTest, AcceptsConcatenation) {
  ShapeInferenceTestOp op("CompatConcat");
  AddNodeAttr("N", 2, &op.node_def);
  INFER_OK(op, "[];[2,?];[?,3]", "[?,?]");
  INFER_OK(op, "[];?;[?,3]", "[?,?]");
  INFER_OK(op, "[];?;?", "in1");
  INFER_ERROR("must be rank 2 but is rank 1", op, "[];[2,?];[3]");
  INFER_ERROR("must be at least rank 1 but is rank 0", op, "[];[];[]");
  for (const int axis : {1, -1}) {
    const Tensor value = test::AsScalar<int32>(axis);
    op.input_tensors = {&value};
    INFER_OK(op, "[];[2,5];[?,3]", "[d1_0,8]");
    INFER_OK(op, "[];[2,5];[?,?]", "[d1_0,?]");
    INFER_ERROR("but are 2 and 4", op, "[];[2,5];[4,3]");
  }
  const Tensor far = test::AsScalar<int32>(std::numeric_limits<int32>::min());
  op.input_tensors = {&far};
  INFER_ERROR("the axis of a concatenation is -2147483648", op, "[];[2,5];[4,3]");
}

TEST(InferOkTest, AcceptsAShapeInAnAttribute) {
  ShapeInferenceTestOp op("CompatExplicit");
  TF_ASSERT_OK(NodeDefBuilder("node", op.name)
                   .Input("x", 0, DT_FLOAT)
                   .Attr("shape", PartialTensorShape({2, -1}))
                   .Finalize(&op.node_def));
  INFER_OK(op, "?", "[2,?]");
}

// Shape functions of gradflow's ops see plain shapes.
TEST(InferOkTest, AcceptsGradflowsOps) {
  ShapeInferenceTestOp op("Transpose");
  AddNodeAttr("T", DT_FLOAT, &op.node_def);
  AddNodeAttr("Tperm", DT_INT32, &op.node_def);
  const Tensor perm = test::AsTensor<int32>({1, 0});
  op.input_tensors = {nullptr, &perm};
  INFER_OK(op, "[2,3];[2]", "[d0_1,d0_0]");
  INFER_ERROR("perm", op, "[2,3,4];[2]");
}

}  // namespace
}  // namespace shape_inference
}  // namespace tensorflow
