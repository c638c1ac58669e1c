// Tests of TensorFlow's shape functions that call shape functions of gradflow's ops, for ops with
// other names.
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/shape_inference_testutil.h"
#include "tensorflow/core/lib/core/status_test_util.h"
#include "tensorflow/core/platform/test.h"

namespace tensorflow {
namespace {

REGISTER_OP("CompatConv")
    .Input("x: float")
    .Input("filter: float")
    .Output("y: float")
    .Attr("strides: list(int)")
    .Attr("padding: {'SAME', 'VALID', 'EXPLICIT'}")
    .SetShapeFn(shape_inference::Conv2DShape);
REGISTER_OP("CompatDepthwise")
    .Input("x: T")
    .Input("filter: T")
    .Input("more: T")
    .Output("y: T")
    .Attr("T: type")
    .Attr("strides: list(int)")
    .Attr("padding: string")
    .SetShapeFn(shape_inference::DepthwiseConv2DNativeShape);
REGISTER_OP("CompatVolume")
    .Input("x: float")
    .Input("filter: float")
    .Output("y: float")
    .Attr("strides: list(int)")
    .Attr("padding: string")
    .SetShapeFn(shape_inference::Conv3DShape);
REGISTER_OP("CompatOneInput")
    .Input("x: float")
    .Output("y: float")
    .Attr("strides: list(int)")
    .Attr("padding: string")
    .SetShapeFn(shape_inference::Conv2DShape);
REGISTER_OP("CompatNoOutput")
    .Input("x: float")
    .Input("filter: float")
    .Attr("strides: list(int)")
    .Attr("padding: string")
    .SetShapeFn(shape_inference::Conv2DShape);

// Returns the shape of its input by the shape function of gradflow's Neg.
REGISTER_OP("CompatUnchanged")
    .Input("x: float")
    .Output("y: float")
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      const OpRegistrationData* neg = nullptr;
      TF_RETURN_IF_ERROR(OpRegistry::Global()->LookUp("Neg", &neg));
      return neg->shape_inference_fn(c);
    });

// Sets the node of `op`, with float inputs.
void SetNode(const std::vector<int>& strides, int num_inputs, ShapeInferenceTestOp* op) {
  NodeDefBuilder builder("node", op->name);
  for (int i = 0; i < num_inputs; ++i) builder.Input("x", i, DT_FLOAT);
  TF_ASSERT_OK(builder.Attr("strides", strides).Attr("padding", "VALID").Finalize(&op->node_def));
}

TEST(PlainShapeFns, ServeOpsOfOtherNames) {
  ShapeInferenceTestOp conv("CompatConv");
  SetNode({1, 2, 2, 1}, 2, &conv);
  INFER_OK(conv, "[8,11,9,3];[3,3,3,16]", "[d0_0,5,4,d1_3]");
  ShapeInferenceTestOp depthwise("CompatDepthwise");
  SetNode({1, 2, 2, 1}, 3, &depthwise);
  INFER_OK(depthwise, "[8,11,9,3];[3,3,3,2];?", "[d0_0,5,4,6]");
  ShapeInferenceTestOp volume("CompatVolume");
  SetNode({1, 2, 2, 2, 1}, 2, &volume);
  INFER_OK(volume, "[8,11,9,7,3];[3,3,3,3,16]", "[d0_0,5,4,3,d1_4]");
}

TEST(PlainShapeFns, KeepTheIdentityOfDimensions) {
  ShapeInferenceTestOp conv("CompatConv");
  SetNode({1, 2, 2, 1}, 2, &conv);
  INFER_OK(conv, "[8,11,9,3];[3,3,3,16]", "[d0_0,5,4,d1_3]");
  INFER_OK(conv, "[?,?,9,3];[3,3,3,?]", "[d0_0,?,4,d1_3]");
  INFER_OK(conv, "[1,1,1,1];[1,1,1,1]", "[d0_0,1,1,d1_3]");
  INFER_OK(conv, "?;[3,3,3,16]", "[?,?,?,d1_3]");
  SetNode({1, 1, 1, 1}, 2, &conv);
  // With a filter of one element and stride 1, the sizes do not change, but they depend on the
  // filter.
  INFER_OK(conv, "[8,2,3,4];[1,1,4,5]", "[d0_0,2,3,d1_3]");
  INFER_OK(conv, "[8,?,3,4];[1,1,4,5]", "[d0_0,?,3,d1_3]");
  ShapeInferenceTestOp same("CompatConv");
  NodeDefBuilder builder("node", "CompatConv");
  TF_ASSERT_OK(builder.Input("x", 0, DT_FLOAT)
                   .Input("f", 0, DT_FLOAT)
                   .Attr("strides", {1, 1, 1, 1})
                   .Attr("padding", "SAME")
                   .Finalize(&same.node_def));
  INFER_OK(same, "[8,2,3,4];[3,3,4,5]", "[d0_0,d0_1,d0_2,d1_3]");
  // A product of two dimensions is a new dimension.
  ShapeInferenceTestOp depthwise("CompatDepthwise");
  SetNode({1, 2, 2, 1}, 3, &depthwise);
  INFER_OK(depthwise, "[8,11,9,3];[3,3,3,1];?", "[d0_0,5,4,3]");
}

TEST(PlainShapeFns, KeepIdentityForAFewDimensions) {
  ShapeInferenceTestOp unchanged("CompatUnchanged");
  AddNodeAttr("T", DT_FLOAT, &unchanged.node_def);
  for (const int rank : {32, 33}) {
    std::vector<std::string> in, out;
    for (int i = 0; i < rank; ++i) {
      in.push_back("1");
      out.push_back(rank == 32 ? absl::StrCat("d0_", i) : "1");
    }
    INFER_OK(unchanged, absl::StrCat("[", absl::StrJoin(in, ","), "]"),
             absl::StrCat("[", absl::StrJoin(out, ","), "]"));
  }
  ShapeInferenceTestOp reshape("Reshape");
  AddNodeAttr("T", DT_FLOAT, &reshape.node_def);
  AddNodeAttr("Tshape", DT_INT32, &reshape.node_def);
  INFER_OK(reshape, "[2,3];?", "?");
  INFER_OK(reshape, "[2,3];[1]", "[6]");
}

// The outputs of gradflow's own ops have no identity.
TEST(PlainShapeFns, AreComparedByValue) {
  ShapeInferenceTestOp neg("Neg");
  AddNodeAttr("T", DT_FLOAT, &neg.node_def);
  for (const char* const right : {"in0", "[3,?,3]", "[d0_0,d0_1,d0_2]", "[d0_2,?,d0_1|d0_0]"}) {
    INFER_OK(neg, "[3,?,3]", right);
  }
  INFER_OK(neg, "?", "in0");
  INFER_OK(neg, "?", "?");
  const struct {
    const char* expected;
    const char* error;
  } cases[] = {
      {"?", "was expected to be ?"},
      {"[3,?]", "was expected to be [3,?]"},
      {"[3,3,3]", "Output shape was [3,?,3]"},
      {"[?,?,3]", "was expected to be [?,?,3]"},
      {"[d0_1,?,3]", "was expected to be [d0_1,?,3]"},
      {"in1", "'in1' is not an input"},
      {"[d0_3,?,3]", "'d0_3' is not a dimension"},
      {"[d1_0,?,3]", "'d1_0' is not a dimension"},
      {"[x,?,3]", "'x' is not a dimension"},
      {"[3,?,3", "is not an input"},
  };
  for (const auto& c : cases) {
    const absl::Status status =
        shape_inference::ShapeInferenceTestutil::InferShapes(neg, "[3,?,3]", c.expected);
    EXPECT_FALSE(status.ok()) << c.expected;
    EXPECT_TRUE(absl::StrContains(status.message(), c.error)) << status;
  }
  const absl::Status status = shape_inference::ShapeInferenceTestutil::InferShapes(neg, "?", "[?]");
  EXPECT_TRUE(absl::StrContains(status.message(), "Output shape was ?")) << status;
}

TEST(PlainShapeFns, NeedTheArgumentsOfTheirOps) {
  ShapeInferenceTestOp one_input("CompatOneInput");
  SetNode({1, 2, 2, 1}, 1, &one_input);
  INFER_ERROR("'Conv2D' needs 2 inputs and 1 outputs, found 1 and 1", one_input, "[8,11,9,3]");
  ShapeInferenceTestOp no_output("CompatNoOutput");
  SetNode({1, 2, 2, 1}, 2, &no_output);
  INFER_ERROR("'Conv2D' needs 2 inputs and 1 outputs, found 2 and 0", no_output, "?;?");
}

}  // namespace
}  // namespace tensorflow
