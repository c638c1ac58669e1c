// Tests of ShapeInferenceTestutil: correct expectations pass, and wrong ones fail with a message.
#include "tensorflow/core/framework/shape_inference_testutil.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/lib/core/status_test_util.h"
#include "tensorflow/core/platform/test.h"

namespace tensorflow {
namespace shape_inference {
namespace testutil_test {

// Makes the output of CompatTestutil.
std::function<ShapeHandle(InferenceContext*)>* make_output = nullptr;

REGISTER_OP("CompatTestutil")
    .Input("a: float")
    .Input("b: float")
    .Output("y: float")
    .SetShapeFn([](InferenceContext* c) {
      c->set_output(0, (*make_output)(c));
      return absl::OkStatus();
    });
REGISTER_OP("CompatTestutilNoFunction").Input("a: float").Output("y: float");
REGISTER_OP("CompatTestutilHandles")
    .Input("a: resource")
    .Input("b: resource")
    .SetShapeFn([](InferenceContext* c) {
      EXPECT_EQ(c->input_handle_shapes_and_types(0), nullptr);
      return errors::Aborted(c->DebugString(*c->input_handle_shapes_and_types(1)));
    });

// Returns the error message of an expectation, or "" if it holds.
std::string Refusal(const ShapeInferenceTestOp& op, const std::string& ins,
                    const std::string& outs) {
  return std::string(ShapeInferenceTestutil::InferShapes(op, ins, outs).message());
}

using Cases = std::vector<std::pair<std::string, std::string>>;

// Checks each expected output and its message. `shown` is the true output.
void Check(std::function<ShapeHandle(InferenceContext*)> make, const std::string& ins,
           const std::string& shown, const Cases& cases) {
  make_output = &make;
  for (const auto& [outs, refusal] : cases) {
    const absl::Status status = ShapeInferenceTestutil::InferShapes("CompatTestutil", ins, outs);
    EXPECT_EQ(status.message(), absl::StrContains(refusal, "is not") || refusal.empty()
                                    ? refusal
                                    : absl::StrCat(refusal, " Output shape was ", shown))
        << outs;
  }
}

TEST(ShapeInferenceTestutil, ComparesWholeShapes) {
  const std::string by_handle =
      "Output 0 matched input 1 by handle but was expected to not match an input shape.";
  Check([](InferenceContext* c) { return c->input(1); }, "[1];[2,?]", "[2,?]",
        {{"in1", ""},
         {" in1 ", ""},
         {"in0|in1", ""},
         {"in0", "Output 0 matched input 1 and should have matched one of (in0)."},
         {"in2", "Output 0 matched input 1 and should have matched one of (in2)."},
         {"inx", "Output 0: 'inx' is not an input"},
         {"?", by_handle},
         {"[2,?]", by_handle}});
  Check([](InferenceContext* c) { return c->UnknownShape(); }, "?;?", "?",
        {{"?", ""},
         {" ? ", ""},
         {"[]", "Output 0 expected rank 0 but was ?."},
         {"in0",
          "Output 0 should have matched an input shape by handle, but matched no input shape."},
         {"x", "Output 0: 'x' is not a shape"},
         {"[x", "Output 0: '[x' is not a shape"}});
  Check([](InferenceContext* c) { return c->Scalar(); }, "[];[]", "[]",
        {{"[]", ""},
         {"[ ]", ""},
         {"?", "Output 0 expected to be unknown."},
         {"[1]", "Output 0 expected rank 1 but was 0."}});
}

TEST(ShapeInferenceTestutil, ComparesDimensions) {
  const auto make = [](InferenceContext* c) {
    return c->MakeShape({int64{7}, c->Dim(c->input(1), 1), int64{-1}});
  };
  Check(
      make, "[4];[2,?]", "[7,?,?]",
      {{"[7,d1_1,?]", ""},
       {"[ 7 , d1_1 , ? ]", ""},
       {"[7,d0_0|d1_1,?]", ""},
       // The inputs and dimensions do not exist.
       {"[7,d2_0|d-1_0|d1_2|d1_1,?]", ""},
       {"[7,d2_0,?]", "Output dim 0,1 matched input d1_1, but should have matched one of (d2_0)."},
       {"[7,d0_0,?]", "Output dim 0,1 matched input d1_1, but should have matched one of (d0_0)."},
       {"[7,d1_1|x,?]", "Output dim 0,1: 'x' is not a dimension"},
       {"[7,?,?]", "Output dim 0,1 expected to be an unknown but matched input d1_1."},
       {"[7,2,?]", "Output dim 0,1 expected to be 2 but matched input d1_1."},
       {"[7,,?]", "Output dim 0,1: the expected dimension value '' failed to parse as int64."},
       {"[d0_0,d1_1,?]",
        "Output dim 0,0 was expected to match one of (d0_0) but matched no input dimension."},
       {"[?,d1_1,?]", "Output dim 0,0 expected to be unknown but was 7."},
       {"[6,d1_1,?]", "Output dim 0,0 expected to be 6 but was 7."},
       {"[7,d1_1,x]", "Output dim 0,2: the expected dimension value 'x' failed to parse as int64."},
       {"[7,d1_1,-1]", "Output dim 0,2 expected to be -1 but was ?."},
       {"[7,d1_1]", "Output 0 expected rank 2 but was 3."}});
  // A dimension that two inputs share is shown as the dimension of the first.
  Check(
      [](InferenceContext* c) {
        c->SetInput(1, c->Matrix(c->Dim(c->input(0), 0), 3));
        return c->Vector(c->Dim(c->input(1), 0));
      },
      "[?];?", "[?]",
      {{"[d0_0]", ""},
       {"[d1_0]", ""},
       {"[d1_1]", "Output dim 0,0 matched input d0_0, but should have matched one of (d1_1)."}});
}

TEST(ShapeInferenceTestutil, ChecksTheCall) {
  std::function<ShapeHandle(InferenceContext*)> make = [](InferenceContext* c) {
    return c->input(0);
  };
  make_output = &make;
  const ShapeInferenceTestOp op("CompatTestutil");
  EXPECT_EQ(Refusal(op, " [ 1 , ? ] ; ? ", "in0"), "");
  EXPECT_EQ(Refusal(op, "1;?", "in0"), "the shape '1' has no brackets");
  EXPECT_EQ(Refusal(op, "[1;?", "in0"), "the shape '[1' has no brackets");
  EXPECT_EQ(Refusal(op, "[1,x];?", "in0"), "the shape '[1,x]' has dimension 'x'");
  const std::string wrong = "The expected output string lists the wrong number of outputs. ";
  EXPECT_EQ(Refusal(op, "?;?", "in0;in0"), wrong + "It lists 2 but should list 1");
  EXPECT_EQ(Refusal(op, "?;?", ""), wrong + "It lists 0 but should list 1");
  EXPECT_EQ(Refusal(op, "?;?", "e"), "Shape inference should have returned error");
  EXPECT_EQ(Refusal(op, "?", "in0"),
            "Wrong number of inputs passed: 1 while 2 expected based on NodeDef");
  EXPECT_EQ(Refusal(ShapeInferenceTestOp("CompatTestutilNoFunction"), "?", "?"),
            "No shape inference function exists for op 'CompatTestutilNoFunction'");
  EXPECT_EQ(ShapeInferenceTestutil::InferShapes("CompatTestutilNoOp", "", "").code(),
            error::NOT_FOUND);
  // If the shape function fails, the check returns its error, whether or not an error was expected.
  make = [](InferenceContext* c) { return c->input(5); };
  for (const char* outs : {"e", "?"}) {
    EXPECT_EQ(ShapeInferenceTestutil::InferShapes(op, "?;?", outs).code(), error::INTERNAL);
  }
}

TEST(ShapeInferenceTestutil, PassesValuesOfHandles) {
  ShapeInferenceTestOp op("CompatTestutilHandles");
  std::vector<ShapeInferenceTestOp::ShapeAndType> values = {{"[2,?]", DT_FLOAT}, {"?", DT_INT32}};
  op.input_resource_handle_shapes_and_types = {nullptr, &values};
  INFER_ERROR("[[2,?]:float,?:int32]", op, "[];[]");
  values[1].first = "2";
  EXPECT_EQ(Refusal(op, "[];[]", "e"), "the shape '2' has no brackets");
}

}  // namespace testutil_test
}  // namespace shape_inference
}  // namespace tensorflow
