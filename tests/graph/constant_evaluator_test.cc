// Tests of shapes that depend on values of nodes other than Consts. Unless a case says otherwise,
// TensorFlow 2 infers the same shape, or a shape with fewer known dimensions.
#include "gradflow/graph/constant_evaluator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/graph/export.h"
#include "gradflow/graph/graph.h"
#include "gradflow/graph/graph_impl.h"
#include "gradflow/graph/import.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/runtime/session/client_session.h"
#include "gradflow/testing/status_matchers.h"
#include "tests/graph/toy_graph_ops.h"

namespace gradflow {
namespace {

using ::gradflow::testing::IsOk;
using ::gradflow::testing::StatusIs;
using internal::ConstantEvaluator;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string ShapeText(const Output& output) {
  return output.node() == nullptr ? "no node"
                                  : output.node()->output_shape(output.index()).DebugString();
}

// A graph with inputs of several shapes.
struct Inputs {
  Scope root = Scope::NewRootScope();
  // [?,5,7]
  Output x = ops::Placeholder(root, DT_FLOAT, ops::Placeholder::Shape({-1, 5, 7}));
  Output shape = ops::Shape(root, x);
  // [4,6]
  Output y = ops::Placeholder(root, DT_FLOAT, ops::Placeholder::Shape({4, 6}));
  // A scalar and a vector of 2 elements.
  Output n = ops::Placeholder(root, DT_INT32, ops::Placeholder::Shape(PartialTensorShape({})));
  Output v = ops::Placeholder(root, DT_INT32, ops::Placeholder::Shape({2}));
  Output unknown = ops::Placeholder(root, DT_FLOAT);

  Output Ints(const Input::Initializer& value) const { return ops::Const(root, value); }
  Output Pack(std::vector<Output> values) const {
    return ops::Stack(root, InputList(std::move(values)));
  }
  Output Concat(std::vector<Output> values) const {
    return ops::Concat(root, InputList(std::move(values)), 0);
  }
  // shape[begin:end]
  Output Slice(const Output& shape, int begin, int end) const {
    return ops::StridedSlice(root, shape, {begin}, {end}, {1});
  }
  // shape[i]
  Output At(const Output& shape, int i) const {
    return ops::StridedSlice(root, shape, {i}, {i + 1}, {1}, ops::StridedSlice::ShrinkAxisMask(1));
  }
};

// ---- Vectors as shapes ----

// The shape of Fill(dims, 1.0f).
struct DimsCase {
  const char* name;
  std::function<Output(const Inputs&)> dims;
  const char* expected;
};

const DimsCase kDims[] = {
    {"Const",
     [](const Inputs& in) {
       return in.Ints({3, 4});
     },
     "[3,4]"},
    {"Identity",
     [](const Inputs& in) {
       return ops::Identity(in.root, in.Ints({3, 4}));
     },
     "[3,4]"},
    {"Shape", [](const Inputs& in) { return in.shape; }, "[?,5,7]"},
    {"ShapeOfInt64",
     [](const Inputs& in) {
       return ops::Shape(in.root, in.x, ops::Shape::OutType(DT_INT64)).output;
     },
     "[?,5,7]"},
    {"ShapeN",
     [](const Inputs& in) {
       return ops::ShapeN(in.root, {in.x, in.y}).output[1];
     },
     "[4,6]"},
    {"ShapeOfUnknownRank", [](const Inputs& in) { return ops::Shape(in.root, in.unknown).output; },
     "<unknown>"},
    {"ShapeOfScalar", [](const Inputs& in) { return ops::Shape(in.root, in.n).output; }, "[]"},
    {"IdentityOfShape", [](const Inputs& in) { return ops::Identity(in.root, in.shape); },
     "[?,5,7]"},
    {"CastOfShape", [](const Inputs& in) { return ops::Cast(in.root, in.shape, DT_INT64); },
     "[?,5,7]"},
    {"ShapeThatDoesNotFitInt32",
     [](const Inputs& in) {
       const Output large =
           ops::Placeholder(in.root, DT_FLOAT, ops::Placeholder::Shape({int64_t{1} << 32, 3}));
       return ops::Shape(in.root, large).output;
     },
     "[?,3]"},
    {"ShapeThatJustFitsInt32",
     [](const Inputs& in) {
       const Output large =
           ops::Placeholder(in.root, DT_FLOAT, ops::Placeholder::Shape({2147483647, -1}));
       return ops::Shape(in.root, large).output;
     },
     "[2147483647,?]"},
    {"StridedSlice", [](const Inputs& in) { return in.Slice(in.shape, 0, 2); }, "[?,5]"},
    {"StridedSliceOfEnd", [](const Inputs& in) { return in.Slice(in.shape, -2, 3); }, "[5,7]"},
    // TensorFlow refuses to build this graph.
    {"Reversed",
     [](const Inputs& in) {
       return ops::StridedSlice(in.root, in.shape, {0}, {0}, {-1},
                                ops::StridedSlice::BeginMask(1).EndMask(1));
     },
     "[7,5,?]"},
    {"Slice", [](const Inputs& in) { return ops::Slice(in.root, in.shape, {1}, {2}); }, "[5,7]"},
    {"Gather",
     [](const Inputs& in) {
       return ops::GatherV2(in.root, in.shape, {2, 0, 1}, 0);
     },
     "[7,?,5]"},
    {"Split", [](const Inputs& in) { return ops::Split(in.root, 0, in.shape, 3).output[2]; },
     "[7]"},
    {"PackOfScalars",
     [](const Inputs& in) {
       return in.Pack({in.At(in.shape, 0), in.Ints(10)});
     },
     "[?,10]"},
    {"PackOfUnstacked",
     [](const Inputs& in) {
       const ops::Unstack parts(in.root, in.shape, 3);
       return in.Pack({parts.output[2], parts.output[0]});
     },
     "[7,?]"},
    {"PackWithAnUnknownScalar",
     [](const Inputs& in) {
       return in.Pack({in.n, in.Ints(2), in.n});
     },
     "[?,2,?]"},
    {"Concat",
     [](const Inputs& in) {
       return in.Concat({in.Slice(in.shape, 0, 1), in.Ints({9}), in.Slice(in.shape, 2, 3)});
     },
     "[?,9,7]"},
    {"ConcatWithAnUnknownVector",
     [](const Inputs& in) {
       return in.Concat({in.v, in.Ints({9})});
     },
     "[?,?,9]"},
    {"ConcatOfUnknownLength",
     [](const Inputs& in) {
       return in.Concat({ops::Shape(in.root, in.unknown), in.Ints({9})});
     },
     "<unknown>"},
    {"RankAndSize",
     [](const Inputs& in) {
       return in.Pack(
           {ops::Rank(in.root, in.x), ops::Size(in.root, in.y), ops::Size(in.root, in.x)});
     },
     "[3,24,?]"},
    {"VariableShape",
     [](const Inputs& in) {
       const Output handle = ops::VarHandleOp(in.root, DT_FLOAT, {2, 3});
       return ops::VariableShape(in.root, handle).output;
     },
     "[2,3]"},
    {"Arithmetic",
     [](const Inputs& in) {
       const Output columns = in.At(in.shape, 2);
       return in.Pack(
           {ops::Maximum(in.root, in.At(in.shape, 1), 9),
            ops::FloorDiv(in.root, ops::Sub(in.root, ops::Mul(in.root, columns, 6), 1), 4),
            ops::Mul(in.root, in.n, 2)});
     },
     "[9,10,?]"},
    {"ThroughFloats",
     [](const Inputs& in) {
       const Output floats = ops::Cast(in.root, in.Slice(in.shape, 1, 3), DT_FLOAT);
       return ops::Cast(in.root, ops::Floor(in.root, ops::Mul(in.root, floats, 0.5f)), DT_INT32);
     },
     "[2,3]"},
    {"Prod",
     [](const Inputs& in) {
       return in.Pack({in.At(in.shape, 0), ops::Prod(in.root, in.Slice(in.shape, 1, 3), 0)});
     },
     "[?,35]"},
    {"RangeAndTile",
     [](const Inputs& in) {
       return ops::Tile(in.root, ops::Range(in.root, 1, ops::Rank(in.root, in.x), 1), {2});
     },
     "[1,2,1,2]"},
    {"Stitched",
     [](const Inputs& in) {
       return ops::DynamicStitch(in.root, {in.Ints({0, 1}), in.Ints({1})},
                                 {ops::Shape(in.root, in.y).output, in.Ints({1})});
     },
     "[4,1]"},
    {"SumOfPartsUnknown", [](const Inputs& in) { return ops::Add(in.root, in.shape, 1); },
     "[?,?,?]"},
    {"DivisionByZero",
     [](const Inputs& in) {
       return in.Pack({ops::FloorDiv(in.root, in.Ints(4), 0), in.Ints(3)});
     },
     "[?,3]"},
    {"FedDefault",
     [](const Inputs& in) {
       return ops::PlaceholderWithDefault(in.root, in.Ints({3}), PartialTensorShape({1}));
     },
     "[?]"},
    {"RandomNumbers", [](const Inputs& in) { return ops::RandomUniformInt(in.root, {2}, 3, 4); },
     "[?,?]"},
    // TensorFlow allows such dimensions in a partly known shape.
    {"ProductTooLarge",
     [](const Inputs& in) {
       const Output large = in.Ints(1 << 30);
       return in.Pack({in.n, large, large, large});
     },
     "[?,?,?,?]"},
    // Shape inference accepts the negative value, because the shape is partly unknown. The kernel
    // refuses it.
    {"NegativeBesideUnknown",
     [](const Inputs& in) {
       return in.Pack({in.Ints(-2), in.n});
     },
     "[?,?]"},
};

TEST(ConstantEvaluator, EvaluatesDimensions) {
  for (const DimsCase& test : kDims) {
    const Inputs in;
    const Output filled = ops::Fill(in.root, test.dims(in), 1.0f);
    ASSERT_THAT(in.root.status(), IsOk()) << test.name;
    EXPECT_EQ(ShapeText(filled), test.expected) << test.name;
  }
}

TEST(ConstantEvaluator, AgreesInAnImportedFile) {
  for (const DimsCase& test : kDims) {
    const Inputs in;
    ops::Fill(in.root.WithOpName("filled"), test.dims(in), 1.0f);
    GraphDef def;
    ASSERT_THAT(in.root.ToGraphDef(&def), IsOk()) << test.name;
    // The file has nodes before their sources.
    GraphDef reversed;
    for (int i = def.node_size() - 1; i >= 0; --i) *reversed.add_node() = def.node(i);
    const std::string path = absl::StrCat(::testing::TempDir(), "/known_values.pb");
    ASSERT_THAT(WriteGraphDef(path, reversed), IsOk());
    const absl::StatusOr<GraphDef> read = ReadGraphDef(path);
    ASSERT_THAT(read, IsOk());
    Graph graph;
    ASSERT_THAT(ImportGraphDef({}, *read, &graph), IsOk()) << test.name;
    EXPECT_EQ(graph.FindNode("filled")->output_shape(0).DebugString(), test.expected) << test.name;
  }
}

// ---- Other shape functions ----

struct OpCase {
  const char* name;
  std::function<Output(const Inputs&)> op;
  const char* expected;
};

const OpCase kOps[] = {
    {"Reshape",
     [](const Inputs& in) {
       return ops::Reshape(in.root, in.x, in.Pack({in.At(in.shape, 0), in.Ints(35)}));
     },
     "[?,35]"},
    {"ReshapeToTheRest",
     [](const Inputs& in) {
       return ops::Reshape(in.root, in.x, in.Pack({in.Ints(-1), in.At(in.shape, 2)}));
     },
     "[?,7]"},
    {"ReshapeOfKnownSize",
     [](const Inputs& in) {
       return ops::Reshape(in.root, in.y, in.Pack({in.n, in.Ints(3)}));
     },
     "[8,3]"},
    {"ReshapeWithTwoUnknown",
     [](const Inputs& in) {
       return ops::Reshape(in.root, in.y, in.Pack({in.n, in.Ints(3), in.Ints(-1)}));
     },
     "[?,3,?]"},
    {"ReshapeOfNothing",
     [](const Inputs& in) {
       const Output empty = ops::Placeholder(in.root, DT_FLOAT, ops::Placeholder::Shape({0, 4}));
       return ops::Reshape(in.root, empty, in.Pack({in.n, in.Ints(0)}));
     },
     "[?,0]"},
    {"Tile",
     [](const Inputs& in) {
       return ops::Tile(in.root, in.y, in.Pack({in.n, in.Ints(2)}));
     },
     "[?,12]"},
    {"Slice",
     [](const Inputs& in) {
       return ops::Slice(in.root, in.y, {0, 0}, in.Pack({in.n, in.Ints(2)}));
     },
     "[?,2]"},
    {"BroadcastTo",
     [](const Inputs& in) {
       return ops::BroadcastTo(in.root, 1.0f, in.Pack({in.n, in.Ints(2)}));
     },
     "[?,2]"},
    {"Range", [](const Inputs& in) { return ops::Range(in.root, 0, ops::Rank(in.root, in.x), 1); },
     "[3]"},
    {"Sum",
     [](const Inputs& in) {
       return ops::Sum(in.root, in.x, ops::Range(in.root, 1, ops::Rank(in.root, in.x), 1));
     },
     "[?]"},
    {"RandomUniform",
     [](const Inputs& in) { return ops::RandomUniform(in.root, in.shape, DT_FLOAT); }, "[?,5,7]"},
    {"Conv2DBackpropInput",
     [](const Inputs& in) {
       const auto input = [&](std::initializer_list<int64_t> shape) {
         return ops::Placeholder(in.root, DT_FLOAT,
                                 ops::Placeholder::Shape(PartialTensorShape(shape)));
       };
       return ops::Conv2DBackpropInput(in.root, ops::Shape(in.root, input({-1, 8, 8, 3})),
                                       input({3, 3, 3, 4}), input({-1, 8, 8, 4}), {1, 1, 1, 1},
                                       "SAME");
     },
     "[?,8,8,3]"},
};

TEST(ConstantEvaluator, EvaluatesArgumentsOfOps) {
  for (const OpCase& test : kOps) {
    const Inputs in;
    const Output output = test.op(in);
    ASSERT_THAT(in.root.status(), IsOk()) << test.name;
    EXPECT_EQ(ShapeText(output), test.expected) << test.name;
  }
}

TEST(ConstantEvaluator, ChecksValues) {
  const auto status = [](const std::function<void(const Inputs&)>& add) {
    const Inputs in;
    add(in);
    return in.root.status();
  };
  EXPECT_THAT(status([](const Inputs& in) {
                ops::Fill(in.root, ops::Identity(in.root, in.Ints({-3})), 1.0f);
              }),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("negative")));
  EXPECT_THAT(
      status([](const Inputs& in) {
        ops::Reshape(in.root, in.y, in.Pack({in.n, in.Ints(5)}));
      }),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("cannot be reshaped to [?,5]")));
}

// A feed may replace the nodes that determine a shape. Kernels use the fed values.
TEST(ConstantEvaluator, IgnoresFeedsOfARun) {
  const Inputs in;
  const Output dims = in.Pack({in.Ints(2), in.Ints(3)});
  const Output filled = ops::Fill(in.root, dims, 1.0f);
  EXPECT_EQ(ShapeText(filled), "[2,3]");
  std::vector<Tensor> outputs;
  const ClientSession session(in.root);
  ASSERT_THAT(session.Run({{dims, {4, 1}}}, {filled}, &outputs), IsOk());
  EXPECT_EQ(outputs[0].shape(), TensorShape({4, 1}));
}

TEST(ConstantEvaluator, NeedsAKernel) {
  const Scope root = Scope::NewRootScope();
  const Output dims = ops::Identity(root.WithDevice("/device:GPU:0"), ops::Const(root, {3, 4}));
  EXPECT_EQ(ShapeText(ops::Fill(root, dims, 1.0f)), "[?,?]");
  EXPECT_THAT(root.status(), IsOk());
}

// ---- Limits ----

TEST(ConstantEvaluator, LimitsTheNumberOfElements) {
  const Scope root = Scope::NewRootScope();
  const auto filled = [&](int limit) {
    const Output sum = ops::Max(root, ops::Range(root, 0, limit, 1), 0);
    return ShapeText(ops::Fill(root, ops::Stack(root, InputList({sum})), 1.0f));
  };
  EXPECT_EQ(filled(256), "[255]");
  EXPECT_EQ(filled(257), "[?]");
  // No memory is allocated.
  EXPECT_EQ(filled(1 << 30), "[?]");
  EXPECT_THAT(root.status(), IsOk());
}

Output Chain(const Scope& scope, Output output, int length) {
  for (int i = 0; i < length; ++i) output = ops::Identity(scope, output);
  return output;
}

TEST(ConstantEvaluator, LimitsTheNumberOfNodes) {
  const Scope root = Scope::NewRootScope();
  const Output dims = ops::Const(root, {3, 4});
  const Output near = Chain(root, dims, ConstantEvaluator::kMaxNodes);
  EXPECT_EQ(ShapeText(ops::Fill(root, near, 1.0f)), "[3,4]");
  // Nodes whose values are known do not count.
  const Output next = Chain(root, near, ConstantEvaluator::kMaxNodes);
  EXPECT_EQ(ShapeText(ops::Fill(root, next, 1.0f)), "[3,4]");
  const Output far = Chain(root, dims, ConstantEvaluator::kMaxNodes + 1);
  EXPECT_EQ(ShapeText(ops::Fill(root, far, 1.0f)), "[?,?]");
  // The same holds for the next node that reads `far`.
  EXPECT_EQ(ShapeText(ops::Fill(root, far, 1.0f)), "[?,?]");
}

// Each Fill must not visit the nodes before it again, which would take quadratic time.
TEST(ConstantEvaluator, RemembersNodesBeyondTheLimit) {
  const Scope root = Scope::NewRootScope();
  const Output far = Chain(root, ops::Const(root, {3, 4}), ConstantEvaluator::kMaxNodes + 1);
  const Output one = ops::Const(root, 1.0f);
  for (int i = 0; i < 100'000; ++i) ops::Fill(root, far, one);
  EXPECT_EQ(ShapeText(ops::Fill(root, far, one)), "[?,?]");
}

// Each node doubles the number of paths.
TEST(ConstantEvaluator, EvaluatesEachNodeOnce) {
  const Scope root = Scope::NewRootScope();
  Output zero = ops::Const(root, {0});
  for (int i = 0; i < 1000; ++i) zero = ops::Add(root, zero, zero);
  EXPECT_EQ(ShapeText(ops::Fill(root, zero, 1.0f)), "[0]");
}

TEST(ConstantEvaluator, LimitsItsMemory) {
  const Scope root = Scope::NewRootScope();
  const Output zeros = ops::Fill(root, {256}, int64_t{0});
  Output last = zeros;
  std::string shape;
  int nodes = 0;
  do {
    last = Chain(root, last, 1000);
    nodes += 1000;
    const Output dims = ops::Slice(root, last, {0}, {1});
    shape = ShapeText(ops::Fill(root, dims, 1.0f));
  } while (shape == "[0]" && nodes < 100'000);
  EXPECT_EQ(shape, "[?]");
  EXPECT_GT(nodes, 10'000);
  EXPECT_LT(nodes, 20'000);
}

TEST(ConstantEvaluator, ForgetsRemovedNodes) {
  const auto graph_def = [](int size, bool is_valid) {
    const Scope root = Scope::NewRootScope();
    const Output dims = ops::Identity(root, ops::Const(root, {size}));
    const Output filled = ops::Fill(root.WithOpName("filled"), dims, 1.0f);
    ops::Const(root.WithOpName("seven"), {7});
    ops::Identity(root.WithOpName("last"), filled);
    GraphDef def;
    EXPECT_THAT(root.ToGraphDef(&def), IsOk());
    if (!is_valid) {
      NodeDef* const reshape = def.add_node();
      *reshape = def.node(def.node_size() - 2);
      reshape->set_name("wrong");
      reshape->set_op("Reshape");
      reshape->add_input("seven");
      (*reshape->mutable_attr())["Tshape"].set_type(DT_INT32);
    }
    return def;
  };
  Graph graph;
  EXPECT_THAT(ImportGraphDef({}, graph_def(5, false), &graph),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("node 'wrong' (Reshape)")));
  EXPECT_EQ(graph.num_nodes(), 0);
  ASSERT_THAT(ImportGraphDef({}, graph_def(8, true), &graph), IsOk());
  EXPECT_EQ(graph.FindNode("filled")->output_shape(0).DebugString(), "[8]");
}

TEST(ConstantEvaluator, DoesNothingWithoutShapeInference) {
  const Inputs in;
  ops::Fill(in.root.WithOpName("filled"), in.Pack({in.Ints(3)}), 1.0f);
  GraphDef def;
  ASSERT_THAT(in.root.ToGraphDef(&def), IsOk());
  ImportGraphDefOptions options;
  options.infer_shapes = false;
  Graph graph;
  ASSERT_THAT(ImportGraphDef(options, def, &graph), IsOk());
  // The next node only sees the value of the Const.
  NodeDef fill = graph.FindNode("filled")->def();
  fill.set_name("more");
  const absl::StatusOr<const Node*> more = graph.AddNode(std::move(fill));
  ASSERT_THAT(more, IsOk());
  EXPECT_EQ((*more)->output_shape(0).DebugString(), "<unknown>");
}

}  // namespace
}  // namespace gradflow
