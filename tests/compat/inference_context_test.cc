// Tests of InferenceContext: its node, access to shapes, constraints, and values behind handles.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tensorflow/cc/ops/standard_ops.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/tensor_testutil.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow/core/lib/core/status_test_util.h"
#include "tensorflow/core/platform/status_matchers.h"
#include "tests/compat/inference_node.h"

namespace tensorflow {
namespace shape_inference {
namespace inference_context_test {

using ::tensorflow::testing::StatusIs;
using ::testing::ElementsAre;

TEST(InferenceContextOfANode, IsMadeFromPlainShapes) {
  std::vector<std::unique_ptr<PlainValues>> values(2);
  values[1] = std::make_unique<PlainValues>(
      PlainValues{{PartialTensorShape({2, -1}), DT_FLOAT}, {PartialTensorShape(), DT_INT32}});
  TestNode c(Inputs{{3}, {}}, {}, {PartialTensorShape({4, -1, 5}), PartialTensorShape()}, values);
  TF_ASSERT_OK(c->construction_status());
  EXPECT_EQ(c->graph_def_version(), 7);
  ASSERT_EQ(c->input_tensors_as_shapes().size(), 2u);
  EXPECT_EQ(c->DebugString(c->input_tensors_as_shapes()[0]), "[4,?,5]");
  EXPECT_EQ(c->DebugString(c->input_tensors_as_shapes()[1]), "?");
  EXPECT_EQ(c->input_handle_shapes_and_types(0), nullptr);
  ASSERT_NE(c->input_handle_shapes_and_types(1), nullptr);
  EXPECT_EQ(c->DebugString(*c->input_handle_shapes_and_types(1)), "[[2,?]:float,?:int32]");
  EXPECT_EQ(c->DebugString(), "InferenceContext for node: " + AttrSlice(c.node).SummarizeNode());
}

TEST(InferenceContextOfANode, ChecksTheNumberOfInputs) {
  for (const int64 length : {0, 2}) {
    TestNode c(Inputs{{1}, {2}}, {}, {}, {}, length);
    EXPECT_THAT(
        c->construction_status(),
        StatusIs(error::INVALID_ARGUMENT, absl::StrCat("Wrong number of inputs passed: 2 while ",
                                                       length + 1, " expected based on NodeDef")));
    EXPECT_EQ(c->num_outputs(), length + 1);
  }
  NodeDef node;
  node.set_op("Test");
  const InferenceContext c(0, node, TestNode::OpDefOfTest(), std::vector<ShapeHandle>(2), {}, {},
                           {});
  EXPECT_EQ(c.num_outputs(), 0);
  EXPECT_THAT(c.construction_status(), StatusIs(error::NOT_FOUND, "attribute N is missing"));
  // The op has no inputs.
  OpRegistrationData source;
  TF_ASSERT_OK(OpDefBuilder("Source").Output("y: int32").Finalize(&source));
  TF_EXPECT_OK(InferenceContext(0, node, source.op_def, std::vector<ShapeHandle>(), {}, {}, {})
                   .construction_status());
}

TEST(InferenceContextOfANode, FindsArgumentsByName) {
  TestNode c(Inputs{{1}, {2}, {3}});
  std::vector<ShapeHandle> shapes(5);
  TF_ASSERT_OK(c->input("rest", &shapes));
  ASSERT_EQ(shapes.size(), 2u);
  EXPECT_TRUE(shapes[0].SameHandle(c->input(1)));
  EXPECT_TRUE(shapes[1].SameHandle(c->input(2)));
  TF_EXPECT_OK(c->set_output("many", shapes));
  EXPECT_FALSE(c->RankKnown(c->output(0)));
  EXPECT_TRUE(c->output(1).SameHandle(c->input(1)));
  EXPECT_TRUE(c->output(2).SameHandle(c->input(2)));
  std::vector<ShapeHandle> found(5);
  TF_ASSERT_OK(c->output("many", &found));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_TRUE(found[0].SameHandle(shapes[0]) && found[1].SameHandle(shapes[1]));
  EXPECT_THAT(
      c->set_output("one", shapes),
      StatusIs(error::INVALID_ARGUMENT, "output 'one' has 1 tensors, but 2 shapes are given"));
  EXPECT_THAT(c->input("many", &found),
              StatusIs(error::INVALID_ARGUMENT, "Unknown input name: many"));
  EXPECT_THAT(c->output("rest", &found),
              StatusIs(error::INVALID_ARGUMENT, "Unknown output name: rest"));
  EXPECT_THAT(c->set_output("rest", shapes),
              StatusIs(error::INVALID_ARGUMENT, "Unknown output name: rest"));
  TF_EXPECT_OK(c->ExpandOutputs(3));
  EXPECT_THAT(c->ExpandOutputs(2), StatusIs(error::INVALID_ARGUMENT,
                                            "the number of outputs cannot be reduced from 3 to 2"));
  TF_EXPECT_OK(c->ExpandOutputs(4));
  EXPECT_EQ(c->num_outputs(), 4);
  EXPECT_EQ(c->output_handle_shapes_and_types(3), nullptr);
}

TEST(InferenceContextOfANode, ErrorsShowTheRequestedValues) {
  const Tensor asked = test::AsTensor<int32>({5, 6});
  const Tensor as_shape = test::AsTensor<int32>({7});
  TestNode c(Inputs{{2}, {1}, {1}, {2}, {3}, {1}}, {&asked, &as_shape, &as_shape},
             {PartialTensorShape(), PartialTensorShape(), PartialTensorShape({9}),
              PartialTensorShape({8, -1}), PartialTensorShape()});
  // The function does not request input 2, the shape of input 4 is unknown, and input 5 has no
  // shape.
  const absl::Status status = c->Run([](InferenceContext* context) {
    EXPECT_NE(context->input_tensor(0), nullptr);
    for (const int i : {1, 3, 4, 5}) context->request_input_tensor_as_partial_shape(i);
    return errors::NotFound("the reason");
  });
  EXPECT_THAT(status, StatusIs(error::NOT_FOUND,
                               "the reason for '" + AttrSlice(c.node).SummarizeNode() +
                                   "' with input shapes: [2], [1], [1], [2], [3], [1]"
                                   " and with computed input tensors: input[0] = <5 6>, input[1] = "
                                   "<7> and with input tensors computed as partial shapes: "
                                   "input[3] = [8,?]."));
  EXPECT_TRUE(c->requested_input_tensor(0));
  EXPECT_FALSE(c->requested_input_tensor(1));
  // Each run begins without merges.
  ShapeHandle out;
  TF_ASSERT_OK(c->Merge(c->input(1), c->input(2), &out));
  EXPECT_EQ(c->MergedShapes().size(), 1u);
  TF_EXPECT_OK(c->Run([](InferenceContext*) { return absl::OkStatus(); }));
  EXPECT_TRUE(c->MergedShapes().empty());
}

TEST(InferenceContextOfANode, ShapeFunctionsOfOtherOpsNeedTheirInputs) {
  const OpRegistrationData* write_file = nullptr;
  TF_ASSERT_OK(OpRegistry::Global()->LookUp("WriteFile", &write_file));
  TestNode two(Inputs{{2}, {2}});
  EXPECT_THAT(write_file->shape_inference_fn(two.context.get()), StatusIs(error::INVALID_ARGUMENT));
  TestNode one(Inputs{{2}});
  EXPECT_THAT(write_file->shape_inference_fn(one.context.get()),
              StatusIs(error::INTERNAL,
                       "the shape function of 'WriteFile' needs 2 inputs and 0 outputs, found 1 "
                       "and 1"));
}

// The shapes that a shape function makes for a node of a graph.
std::vector<std::string>* found_in_graph = nullptr;
REGISTER_OP("InferenceContextInAGraph")
    .Input("x: float")
    .Input("shapes: N * int32")
    .Output("ys: N * float")
    .Attr("N: int")
    .SetShapeFn([](InferenceContext* c) {
      std::vector<ShapeHandle> shapes;
      TF_RETURN_IF_ERROR(c->input("shapes", &shapes));
      for (int i = 1; i < c->num_inputs(); ++i) {
        EXPECT_TRUE(shapes[i - 1].SameHandle(c->input(i)));
        EXPECT_EQ(c->input_handle_shapes_and_types(i), nullptr);
        TF_RETURN_IF_ERROR(c->MakeShapeFromShapeTensor(i, &shapes[i - 1]));
        found_in_graph->push_back(c->DebugString(shapes[i - 1]));
      }
      TF_RETURN_IF_ERROR(c->set_output("ys", shapes));
      for (int i = 0; i < c->num_outputs(); ++i) {
        EXPECT_EQ(c->output_handle_shapes_and_types(i), nullptr);
        c->set_output_handle_shapes_and_types(i, {{shapes[i], DT_FLOAT}});
      }
      return c->graph_def_version() == 0 ? absl::OkStatus() : errors::Internal("a version");
    });

TEST(InferenceContextOfANode, IsMadeFromANodeOfAGraph) {
  std::vector<std::string> found;
  found_in_graph = &found;
  const Scope root = Scope::NewRootScope();
  const auto x = ops::Placeholder(root, DT_FLOAT, ops::Placeholder::Shape({2, -1}));
  const auto constant = ops::Const(root, {3, 4});
  const auto in_part = ops::Shape(root, x);
  const auto unknown = ops::Placeholder(root, DT_INT32, ops::Placeholder::Shape({1}));
  Node* node = nullptr;
  TF_ASSERT_OK(NodeBuilder("node", "InferenceContextInAGraph")
                   .Input(x.node(), 0)
                   .Input({{constant.node(), 0}, {in_part.node(), 0}, {unknown.node(), 0}})
                   .Finalize(root.graph(), &node));
  EXPECT_THAT(found, ElementsAre("[3,4]", "[2,?]", "[?]"));
}

TEST(InferenceContextAccess, CountsDimensionsFromBothEnds) {
  TestNode c(Inputs{{4, -1}});
  const ShapeHandle s = c->input(0);
  const struct {
    ShapeHandle shape;
    int64 i;
    const char* size;
    bool exists;
  } kCases[] = {{s, -3, "?", false},
                {s, -2, "4", true},
                {s, -1, "?", true},
                {s, 0, "4", true},
                {s, 1, "?", true},
                {s, 2, "?", false},
                {c->Scalar(), 0, "?", false},
                {c->Scalar(), -1, "?", false},
                {c->UnknownShape(), 0, "?", false},
                {c->UnknownShape(), -1, "?", false}};
  for (const auto& [shape, i, size, exists] : kCases) {
    EXPECT_EQ(c->DebugString(c->Dim(shape, i)), size) << i;
    EXPECT_EQ(InferenceContext::DimKnownRank(shape, i).Handle() != 0, exists) << i;
  }
}

TEST(InferenceContextAccess, DescribesShapes) {
  TestNode c(Inputs{{2, 3}, {2, -1}, {}, PartialTensorShape()});
  const struct {
    ShapeHandle shape;
    bool is_defined;
    const char* elements;
    const char* proto;
  } kCases[] = {{c->input(0), true, "6", "dim { size: 2 } dim { size: 3 }"},
                {c->input(1), false, "?", "dim { size: 2 } dim { size: -1 }"},
                {c->Scalar(), true, "1", ""},
                {c->input(3), false, "?", "unknown_rank: true"},
                {ShapeHandle(), false, "?", "unknown_rank: true"},
                // The number of elements overflows.
                {c->Matrix(kMax, kMax), true, "?",
                 "dim { size: 9223372036854775807 } dim { size: 9223372036854775807 }"}};
  for (const auto& [shape, is_defined, elements, proto] : kCases) {
    EXPECT_EQ(c->FullyDefined(shape), is_defined) << proto;
    EXPECT_EQ(c->DebugString(c->NumElements(shape)), elements) << proto;
    EXPECT_EQ(c->ShapeHandleToProto(shape).ShortDebugString(), proto);
    TensorShapeProto reused;
    reused.set_unknown_rank(true);
    reused.add_dim()->set_size(5);
    c->ShapeHandleToProto(shape, &reused);
    EXPECT_EQ(reused.ShortDebugString(), proto);
  }
}

// ---- Constraints ----

TEST(InferenceContextConstraints, ConstrainRanks) {
  using Function = absl::Status (InferenceContext::*)(ShapeHandle, int64, ShapeHandle*);
  TestNode c(Inputs{{2, -1}, PartialTensorShape()});
  const ShapeHandle two = c->input(0), unknown = c->input(1);
  const Function is = &InferenceContext::WithRank;
  const Function at_least = &InferenceContext::WithRankAtLeast;
  const Function at_most = &InferenceContext::WithRankAtMost;
  const struct {
    Function function;
    ShapeHandle shape;
    int64 rank;
    std::string expected;
  } kCases[] = {
      {is, two, 2, "[2,?]"},
      {is, two, 1, "Shape must be rank 1 but is rank 2"},
      {is, two, 3, "Shape must be rank 3 but is rank 2"},
      {is, unknown, 0, "[]"},
      {is, unknown, 2, "[?,?]"},
      {is, two, -1, "Rank must be in [0, 254], but is -1"},
      {is, two, 254, "Shape must be rank 254 but is rank 2"},
      {is, two, 255, "Rank must be in [0, 254], but is 255"},
      {at_least, two, 2, "[2,?]"},
      {at_least, two, 3, "Shape must be at least rank 3 but is rank 2"},
      {at_least, unknown, 3, "?"},
      {at_most, two, 2, "[2,?]"},
      {at_most, two, 1, "Shape must be at most rank 1 but is rank 2"},
      {at_most, unknown, 0, "?"},
  };
  for (const auto& test : kCases) {
    EXPECT_EQ(ShapeOf(*c,
                      [&](ShapeHandle* out) {
                        return ((*c).*test.function)(test.shape, test.rank, out);
                      }),
              test.expected);
  }
  ShapeHandle out;
  for (const Function function : {is, at_least, at_most}) {
    TF_ASSERT_OK(((*c).*function)(two, 2, &out));
    EXPECT_TRUE(out.SameHandle(two));
  }
}

TEST(InferenceContextConstraints, ConstrainDimensions) {
  TestNode c(Inputs{{5, -1, -1, 5, 6}});
  const Dim five = c->Dim(c->input(0), 0), a = c->Dim(c->input(0), 1), b = c->Dim(c->input(0), 2);
  const Dim other_five = c->Dim(c->input(0), 3), six = c->Dim(c->input(0), 4);
  Dim out;
  TF_ASSERT_OK(c->WithValue(five, 5, &out));
  EXPECT_TRUE(out.SameHandle(five));
  EXPECT_THAT(c->WithValue(five, 4, &out),
              StatusIs(error::INVALID_ARGUMENT, "Dimension must be 4 but is 5"));
  EXPECT_TRUE(out.SameHandle(Dim()));
  TF_ASSERT_OK(c->Merge(five, other_five, &out));
  EXPECT_TRUE(out.SameHandle(five));
  TF_ASSERT_OK(c->Merge(a, a, &out));
  EXPECT_TRUE(out.SameHandle(a));
  // No dimension has been merged so far.
  EXPECT_TRUE(c->MergedDims().empty());
  TF_ASSERT_OK(c->Merge(a, b, &out));
  EXPECT_TRUE(out.SameHandle(a));
  TF_ASSERT_OK(c->Merge(a, six, &out));
  EXPECT_TRUE(out.SameHandle(six));
  TF_ASSERT_OK(c->Merge(five, b, &out));
  EXPECT_TRUE(out.SameHandle(five));
  TF_ASSERT_OK(c->WithValue(a, 3, &out));
  EXPECT_EQ(c->Value(out), 3);
  ASSERT_EQ(c->MergedDims().size(), 4u);
  EXPECT_TRUE(c->MergedDims()[1].first.SameHandle(a));
  EXPECT_TRUE(c->MergedDims()[1].second.SameHandle(six));
  EXPECT_THAT(c->Merge(five, six, &out),
              StatusIs(error::INVALID_ARGUMENT, "Dimensions must be equal, but are 5 and 6"));
  EXPECT_TRUE(out.SameHandle(Dim()));
  EXPECT_EQ(c->MergedDims().size(), 4u);
}

TEST(InferenceContextConstraints, MergeTwoShapes) {
  TestNode c(
      Inputs{{2, -1}, {-1, 3}, {2, 3}, {2, -1}, PartialTensorShape(), PartialTensorShape(), {2}});
  const auto in = [&](int i) { return c->input(i); };
  // Merges the inputs a and b. The result is the input with the index `expected`, or a new shape.
  const struct {
    int a;
    int b;
    int expected;
    std::string text;
    size_t merged_shapes;
  } kCases[] = {{0, 0, 0, "[2,?]", 0}, {0, 2, 2, "[2,3]", 1}, {2, 0, 2, "[2,3]", 1},
                {0, 3, 0, "[2,?]", 1}, {0, 4, 0, "[2,?]", 1}, {4, 0, 0, "[2,?]", 1},
                {4, 5, 4, "?", 1},     {0, 1, -1, "[2,3]", 2}};
  for (const auto& test : kCases) {
    TF_ASSERT_OK(c->Run([&](InferenceContext*) { return absl::OkStatus(); }));
    ShapeHandle out;
    TF_ASSERT_OK(c->Merge(in(test.a), in(test.b), &out));
    EXPECT_EQ(c->DebugString(out), test.text);
    for (int i = 0; i < c->num_inputs(); ++i) {
      EXPECT_EQ(out.SameHandle(in(i)), i == test.expected) << test.a << " " << test.b << " " << i;
    }
    ASSERT_EQ(c->MergedShapes().size(), test.merged_shapes);
    if (test.merged_shapes == 0) continue;
    EXPECT_TRUE(c->MergedShapes()[0].first.SameHandle(in(test.a)));
    EXPECT_TRUE(c->MergedShapes()[0].second.SameHandle(in(test.b)));
  }
  // The merged shape has the known dimensions.
  ASSERT_EQ(c->MergedDims().size(), 2u);
  EXPECT_TRUE(c->MergedShapes()[1].first.SameHandle(in(0)));
  const ShapeHandle merged = c->MergedShapes()[1].second;
  EXPECT_TRUE(c->Dim(merged, 0).SameHandle(c->Dim(in(0), 0)));
  EXPECT_TRUE(c->Dim(merged, 1).SameHandle(c->Dim(in(1), 1)));
  EXPECT_EQ(ShapeOf(*c, [&](ShapeHandle* out) { return c->Merge(in(0), in(6), out); }),
            "Shapes must be equal rank, but are 2 and 1");
  EXPECT_EQ(ShapeOf(*c, [&](ShapeHandle* out) { return c->Merge(in(2), c->Matrix(-1, 4), out); }),
            "Dimension 1 in both shapes must be equal, but are 3 and 4. Shapes are [2,3] and "
            "[?,4].");
}

TEST(InferenceContextConstraints, MergeAPrefix) {
  TestNode c(Inputs{{-1, 2, -1}, {1, -1}, PartialTensorShape(), {1, 3}, {1, 2, 3, 4}});
  ShapeHandle s, prefix;
  TF_ASSERT_OK(c->MergePrefix(c->input(0), c->input(1), &s, &prefix));
  EXPECT_EQ(c->DebugString(s), "[1,2,?]");
  EXPECT_EQ(c->DebugString(prefix), "[1,2]");
  EXPECT_TRUE(c->Dim(s, 2).SameHandle(c->Dim(c->input(0), 2)));
  EXPECT_TRUE(c->Dim(prefix, 0).SameHandle(c->Dim(c->input(1), 0)));
  for (const auto& [i, k] : {std::pair(0, 2), std::pair(2, 0), std::pair(2, 2)}) {
    TF_ASSERT_OK(c->MergePrefix(c->input(i), c->input(k), &s, &prefix));
    EXPECT_TRUE(s.SameHandle(c->input(i)));
    EXPECT_TRUE(prefix.SameHandle(c->input(k)));
  }
  for (const auto& [i, message] : {std::pair(3, "Dimensions must be equal, but are 2 and 3"),
                                   std::pair(4, "Shape must be at least rank 4 but is rank 3")}) {
    EXPECT_EQ(ShapeOf(*c,
                      [&, k = i](ShapeHandle* out) {
                        return c->MergePrefix(c->input(0), c->input(k), out, &prefix);
                      }),
              message);
    EXPECT_TRUE(prefix.SameHandle(ShapeHandle()));
  }
}

TEST(InferenceContextConstraints, RelaxKeepsCommonDimensions) {
  const PartialTensorShape unknown;
  const struct {
    PartialTensorShape before;
    PartialTensorShape with;
    const char* after;
    bool changed;
  } kCases[] = {{{2, 3}, {2, 3}, "[2,3]", false}, {{2, 3}, {2, 4}, "[2,?]", true},
                {{2, 3}, {2, -1}, "[2,?]", true}, {{2, 3}, {2}, "?", true},
                {{2}, unknown, "?", true},        {unknown, {2}, "?", true},
                {{-1}, {3}, "[?]", true},         {{-1}, {-1}, "[?]", true}};
  for (const auto& [before, with, after, changed] : kCases) {
    TestNode c(Inputs{before, with, {1}, {-1}});
    ShapeHandle out;
    TF_ASSERT_OK(c->Merge(c->input(2), c->input(3), &out));
    Dim dim;
    TF_ASSERT_OK(c->Merge(c->Dim(c->input(2), 0), c->Dim(c->input(3), 0), &dim));
    EXPECT_FALSE(c->RelaxInput(0, c->input(0)));
    const ShapeHandle old = c->input(0);
    EXPECT_EQ(c->RelaxInput(0, c->input(1)), changed) << after;
    EXPECT_EQ(c->DebugString(c->input(0)), after);
    EXPECT_EQ(c->input(0).SameHandle(old), !changed) << after;
    // After a change, the recorded merges may be wrong.
    EXPECT_EQ(c->MergedShapes().size(), changed ? 0 : 1) << after;
    EXPECT_EQ(c->MergedDims().size(), changed ? 0 : 1) << after;
  }
  TestNode c(Inputs{{2, -1}, {2, -1}});
  const Dim kept = c->Dim(c->input(0), 0), taken = c->Dim(c->input(1), 1);
  EXPECT_TRUE(c->RelaxInput(0, c->input(1)));
  EXPECT_TRUE(c->Dim(c->input(0), 0).SameHandle(kept));
  EXPECT_TRUE(c->Dim(c->input(0), 1).SameHandle(taken));
  EXPECT_FALSE(c->RelaxInput(2, c->input(1)));
  EXPECT_FALSE(c->MergeInput(2, c->input(1)));
  EXPECT_FALSE(c->MergeInput(0, c->Vector(2)));
  EXPECT_EQ(c->DebugString(c->input(0)), "[2,?]");
}

// ---- Values behind handles ----

TEST(InferenceContextHandles, MergeAndRelaxShapesAndTypes) {
  using Values = InferenceContext::ShapesAndTypes;
  using Function = bool (InferenceContext::*)(int, const Values&);
  const bool kMerge = false, kRelax = true;
  TestNode c(Inputs{{}});
  const ShapeHandle two = c->Vector(2), three = c->Vector(3), some = c->Vector(-1);
  const struct {
    bool relax;
    Values before;
    Values with;
    bool changed;
    std::string after;
  } kCases[] = {
      {kMerge, {{some, DT_FLOAT}}, {{two, DT_FLOAT}}, true, "[[2]:float]"},
      {kMerge, {{two, DT_FLOAT}}, {{two, DT_FLOAT}}, false, "[[2]:float]"},
      {kMerge, {{two, DT_FLOAT}}, {{some, DT_FLOAT}}, false, "[[2]:float]"},
      // Keeps the known type, and keeps the shape if the new one contradicts it.
      {kMerge, {{some, DT_FLOAT}}, {{two, DT_INT32}}, true, "[[2]:float]"},
      {kMerge, {{two, DT_FLOAT}}, {{three, DT_FLOAT}}, false, "[[2]:float]"},
      {kMerge, {{two, DT_INVALID}}, {{two, DT_INT32}}, true, "[[2]:int32]"},
      {kMerge,
       {{two, DT_FLOAT}, {some, DT_FLOAT}, {two, DT_FLOAT}},
       {{three, DT_FLOAT}, {three, DT_FLOAT}, {two, DT_FLOAT}},
       true,
       "[[2]:float,[3]:float,[2]:float]"},
      {kMerge, {{some, DT_FLOAT}}, {{two, DT_FLOAT}, {two, DT_FLOAT}}, false, "[[?]:float]"},
      {kMerge,
       {{some, DT_FLOAT}, {some, DT_FLOAT}},
       {{two, DT_FLOAT}},
       false,
       "[[?]:float,[?]:float]"},
      {kRelax, {{two, DT_FLOAT}}, {{three, DT_FLOAT}}, true, "[[?]:float]"},
      {kRelax, {{two, DT_FLOAT}}, {{two, DT_FLOAT}}, false, "[[2]:float]"},
      {kRelax, {{two, DT_INVALID}}, {{two, DT_FLOAT}}, true, "[[2]:float]"},
      {kRelax, {{two, DT_FLOAT}}, {{three, DT_INT32}}, false, "[[2]:float]"},
      {kRelax, {{two, DT_FLOAT}}, {{three, DT_FLOAT}, {two, DT_FLOAT}}, false, "[[2]:float]"},
  };
  const auto call = [&](bool of_input, bool relax, int i, const Values& values) {
    const Function function = of_input
                                  ? (relax ? &InferenceContext::RelaxInputHandleShapesAndMergeTypes
                                           : &InferenceContext::MergeInputHandleShapesAndTypes)
                                  : (relax ? &InferenceContext::RelaxOutputHandleShapesAndMergeTypes
                                           : &InferenceContext::MergeOutputHandleShapesAndTypes);
    return ((*c).*function)(i, values);
  };
  for (const bool of_input : {false, true}) {
    for (const auto& test : kCases) {
      const auto text = [&] {
        return c->DebugString(of_input ? *c->input_handle_shapes_and_types(0)
                                       : *c->output_handle_shapes_and_types(0));
      };
      of_input ? c->set_input_handle_shapes_and_types(0, test.before)
               : c->set_output_handle_shapes_and_types(0, test.before);
      EXPECT_EQ(call(of_input, test.relax, 0, test.with), test.changed) << test.after;
      EXPECT_EQ(text(), test.after);
    }
    for (const bool relax : {false, true}) {
      EXPECT_FALSE(call(of_input, relax, 1, {{two, DT_FLOAT}}));
    }
  }
  for (const bool relax : {false, true}) {
    TestNode empty(Inputs{{}});
    EXPECT_EQ(empty->output_handle_shapes_and_types(0), nullptr);
    EXPECT_TRUE(relax ? empty->RelaxOutputHandleShapesAndMergeTypes(0, {{two, DT_FLOAT}})
                      : empty->MergeOutputHandleShapesAndTypes(0, {{two, DT_FLOAT}}));
    EXPECT_EQ(empty->DebugString(*empty->output_handle_shapes_and_types(0)), "[[2]:float]");
  }
  EXPECT_THAT(c->status(), StatusIs(error::INTERNAL, "the shape function asked for output 1 of 1"));
}

}  // namespace inference_context_test
}  // namespace shape_inference
}  // namespace tensorflow
