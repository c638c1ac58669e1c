// Tests of test::graph: the op, the inputs and the attributes of the node that each function adds.
#include "tensorflow/core/graph/testlib.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "gradflow/core/registry.h"
#include "gradflow/ops/register.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/tensor_testutil.h"
#include "tensorflow/core/lib/core/status_test_util.h"
#include "tensorflow/core/platform/test.h"

namespace tensorflow {
namespace testlib_test {

namespace graph = ::tensorflow::test::graph;

// Registers gradflow's ops, and TensorFlow ops that gradflow lacks.
void RegisterOps(gradflow::Registry* registry) {
  gradflow::RegisterStandardOps(*registry);
  registry->Op("Quantize")
      .Input("x: float")
      .Output("y: T")
      .Attr("T: type")
      .Attr("min_range: float")
      .Attr("max_range: float");
  registry->Op("Switch").Input("x: T").Input("b: bool").Output("y: T").Output("z: T").Attr(
      "T: type");
  registry->Op("Merge")
      .Input("x: N * T")
      .Output("y: T")
      .Output("i: int32")
      .Attr("T: type")
      .Attr("N: int");
  registry->Op("Enter").Input("x: T").Output("y: T").Attr("T: type").Attr("frame_name: string");
  for (const char* op : {"Exit", "NextIteration"}) {
    registry->Op(op).Input("x: T").Output("y: T").Attr("T: type");
  }
  registry->Op("LoopCond").Input("x: bool").Output("y: bool");
}

// Returns "Op(inputs) attr=value ..." for a node with the given attributes.
std::string Describe(const Node& node, const std::vector<std::string>& attrs) {
  std::string text =
      absl::StrCat(node.type_string(), "(", absl::StrJoin(node.def().input(), ","), ")");
  for (const std::string& name : attrs) {
    const AttrValue* const value = AttrSlice(node.def()).Find(name);
    absl::StrAppend(&text, " ", name, "=", value == nullptr ? "none" : SummarizeAttrValue(*value));
  }
  return text;
}

TEST(TestGraph, AddsTheNodesOfItsFunctions) {
  gradflow::Registry registry;
  RegisterOps(&registry);
  Graph g(registry);
  // The inputs have unknown shapes, which fit any op.
  const auto input = [&g](const std::string& name, DataType type) {
    Node* node = nullptr;
    TF_CHECK_OK(NodeBuilder(name, "Placeholder").Attr("dtype", type).Finalize(&g, &node));
    return node;
  };
  Node* const x = input("x", DT_FLOAT);
  Node* const y = input("y", DT_FLOAT);
  Node* const i = input("i", DT_INT32);
  Node* const b = input("b", DT_BOOL);
  Node* const v = graph::Var(&g, DT_FLOAT, TensorShape({2}), "v");
  Node* const u = graph::Unary(&g, "Unique", x);
  const struct {
    Node* node;
    std::vector<std::string> attrs;
    std::string expected;
  } kCases[] = {
      {graph::Constant(&g, test::AsTensor<float>({1, 2}), "c"),
       {"dtype", "value"},
       "Const() dtype=DT_FLOAT value=Tensor<type: float shape: [2] values: 1 2>"},
      {graph::HostConstant(&g, test::AsTensor<float>({3}), "h"),
       {"value"},
       "Const() value=Tensor<type: float shape: [1] values: 3>"},
      {graph::HostConstant(&g, test::AsScalar<int32>(5)),
       {"value"},
       "Const() value=Tensor<type: int32 shape: [] values: 5>"},
      {v, {"dtype", "shape"}, "Variable() dtype=DT_FLOAT shape=[2]"},
      {graph::Var(&g, DT_INT32, TensorShape({})),
       {"dtype", "shape"},
       "Variable() dtype=DT_INT32 shape=[]"},
      {graph::Assign(&g, v, x), {"use_locking"}, "Assign(v,x) use_locking=true"},
      {graph::Cumsum(&g, x, i),
       {"exclusive", "reverse"},
       "Cumsum(x,i) exclusive=false reverse=false"},
      {graph::Cumsum(&g, x, i, true, false),
       {"exclusive", "reverse"},
       "Cumsum(x,i) exclusive=true reverse=false"},
      {graph::Cumsum(&g, x, i, false, true),
       {"exclusive", "reverse"},
       "Cumsum(x,i) exclusive=false reverse=true"},
      {graph::Reduce(&g, "Max", x, i), {"keep_dims"}, "Max(x,i) keep_dims=false"},
      {graph::Reduce(&g, "Sum", x, i, true), {"keep_dims"}, "Sum(x,i) keep_dims=true"},
      {graph::Matmul(&g, x, y, true, false),
       {"transpose_a", "transpose_b"},
       "MatMul(x,y) transpose_a=true transpose_b=false"},
      {graph::Matmul(&g, y, x, false, true),
       {"transpose_a", "transpose_b"},
       "MatMul(y,x) transpose_a=false transpose_b=true"},
      {graph::BatchMatmul(&g, x, y, true, false),
       {"adj_x", "adj_y"},
       "BatchMatMul(x,y) adj_x=true adj_y=false"},
      {graph::BatchMatmul(&g, x, y, false, true),
       {"adj_x", "adj_y"},
       "BatchMatMul(x,y) adj_x=false adj_y=true"},
      {graph::QuantizeToUINT8(&g, x),
       {"T", "min_range", "max_range"},
       "Quantize(x) T=DT_QUINT8 min_range=-1.0 max_range=1.0"},
      {graph::Unary(&g, "Neg", u, 1), {"T"}, "Neg(n/_5:1) T=DT_INT32"},
      {graph::Binary(&g, "Sub", x, y), {"T"}, "Sub(x,y) T=DT_FLOAT"},
      {graph::Multi(&g, "Sub", {y, x}), {}, "Sub(y,x)"},
      {graph::Identity(&g, u, 1), {"T"}, "Identity(n/_5:1) T=DT_INT32"},
      {graph::Identity(&g, u), {"T"}, "Identity(n/_5) T=DT_FLOAT"},
      {graph::Add(&g, x, y), {}, "Add(x,y)"},
      {graph::Reverse(&g, x, i), {}, "ReverseV2(x,i)"},
      {graph::Roll(&g, x, i, i), {}, "Roll(x,i,i)"},
      {graph::RandomUniform(&g, i, DT_DOUBLE),
       {"dtype", "seed"},
       "RandomUniform(i) dtype=DT_DOUBLE seed=0"},
      {graph::RandomGaussian(&g, i, DT_FLOAT),
       {"dtype", "seed"},
       "RandomStandardNormal(i) dtype=DT_FLOAT seed=0"},
      {graph::TruncatedNormal(&g, i, DT_DOUBLE),
       {"dtype", "seed"},
       "TruncatedNormal(i) dtype=DT_DOUBLE seed=0"},
      {graph::RandomGamma(&g, i, x), {"T", "seed"}, "RandomGamma(i,x) T=DT_FLOAT seed=0"},
      {graph::RandomPoisson(&g, i, x),
       {"dtype", "seed"},
       "RandomPoisson(i,x) dtype=DT_FLOAT seed=0"},
      {graph::NoOp(&g, {x, b}), {}, "NoOp(^x,^b)"},
      {graph::Switch(&g, x, b), {}, "Switch(x,b)"},
      {graph::Enter(&g, x, "frame"), {"frame_name"}, "Enter(x) frame_name=\"frame\""},
      {graph::Exit(&g, x), {}, "Exit(x)"},
      {graph::Merge(&g, x, y), {"N"}, "Merge(x,y) N=2"},
      {graph::Next(&g, "next", x), {}, "NextIteration(x)"},
      {graph::LoopCond(&g, b), {}, "LoopCond(b)"},
      {graph::Less(&g, x, y), {}, "Less(x,y)"},
      {graph::Select(&g, b, x, y), {}, "Select(b,x,y)"},
      {graph::Cast(&g, x, DT_INT32), {"SrcT", "DstT"}, "Cast(x) SrcT=DT_FLOAT DstT=DT_INT32"},
      {graph::Gather(&g, x, i, i), {}, "GatherV2(x,i,i)"},
      {graph::Concat(&g, i, {x, y, x}), {"N"}, "Concat(i,x,y,x) N=3"},
      {graph::ConcatV2(&g, {x, y, x}, i), {"N"}, "ConcatV2(x,y,x,i) N=3"},
      {graph::Relu(&g, x), {}, "Relu(x)"},
      {graph::Relu6(&g, x), {}, "Relu6(x)"},
      {graph::BiasAdd(&g, x, y), {}, "BiasAdd(x,y)"},
      {graph::Conv2D(&g, x, y),
       {"strides", "padding"},
       "Conv2D(x,y) strides=[1, 1, 1, 1] padding=\"SAME\""},
      {graph::Diag(&g, x, DT_FLOAT), {"T"}, "Diag(x) T=DT_FLOAT"},
      {graph::DiagPart(&g, x, DT_FLOAT), {"T"}, "DiagPart(x) T=DT_FLOAT"},
      {graph::CheckNumerics(&g, x, "text"), {"message"}, "CheckNumerics(x) message=\"text\""},
      {graph::Arg(&g, 3, DT_INT64), {"T", "index"}, "_Arg() T=DT_INT64 index=3"},
      {graph::Retval(&g, 2, u, 1), {"T", "index"}, "_Retval(n/_5:1) T=DT_INT32 index=2"},
      {graph::Retval(&g, 0, u), {"T", "index"}, "_Retval(n/_5) T=DT_FLOAT index=0"},
  };
  for (const auto& [node, attrs, expected] : kCases) {
    ASSERT_NE(node, nullptr);
    EXPECT_EQ(Describe(*node, attrs), expected);
  }
  for (const char* name : {"c", "h", "v", "next"}) EXPECT_NE(g.FindNode(name), nullptr) << name;
  GraphDef def;
  graph::ToGraphDef(&g, &def);
  // There are also four inputs and a Unique node.
  EXPECT_EQ(def.node_size(), static_cast<int>(std::size(kCases)) + 5);
}

}  // namespace testlib_test
}  // namespace tensorflow
