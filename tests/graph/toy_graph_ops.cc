#include "tests/graph/toy_graph_ops.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/proto/op_def.pb.h"

namespace gradflow::testing {
namespace {

absl::Status DoNothing(KernelContext&) { return absl::OkStatus(); }

absl::Status ConstShape(ShapeContext& c) {
  Tensor value;
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("value", &value));
  DataType dtype;
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("dtype", &dtype));
  if (value.dtype() != dtype) return errors::InvalidArgument("value is not of type dtype");
  c.set_output(0, value.shape());
  return absl::OkStatus();
}

absl::Status PlaceholderShape(ShapeContext& c) {
  PartialTensorShape shape;
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("shape", &shape));
  c.set_output(0, shape);
  return absl::OkStatus();
}

absl::Status MatMulShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 2));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(1, 2));
  const int64_t k = c.Dim(0, 1);
  if (k >= 0 && c.Dim(1, 0) >= 0 && k != c.Dim(1, 0)) {
    return errors::InvalidArgument("a and b must agree, but have shapes ", c.input(0).DebugString(),
                                   " and ", c.input(1).DebugString());
  }
  c.set_output(0, PartialTensorShape({c.Dim(0, 0), c.Dim(1, 1)}));
  return absl::OkStatus();
}

absl::Status FillShape(ShapeContext& c) {
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, c.ShapeFromInput(0));
  c.set_output(0, shape);
  return absl::OkStatus();
}

void Register(Registry& r) {
  r.Op("NoOp");
  r.Op("Const").Output("output: dtype").Attr("value: tensor").Attr("dtype: type").Shape(ConstShape);
  r.Op("Placeholder")
      .Output("output: dtype")
      .Attr("dtype: type")
      .Attr("shape: shape = { unknown_rank: true }")
      .Shape(PlaceholderShape);
  r.Op("Neg")
      .Input("x: T")
      .Output("y: T")
      .Attr("T: {half, float, double, int32}")
      .Shape(UnchangedShape);
  r.Op("MatMul")
      .Input("a: T")
      .Input("b: T")
      .Output("product: T")
      .Attr("transpose_a: bool = false")
      .Attr("transpose_b: bool = false")
      .Attr("T: {float, double}")
      .Shape(MatMulShape);
  r.Op("Pair").Input("x: float").Output("first: float").Output("second: float");
  r.Op("Pack")
      .Input("values: N * T")
      .Output("output: T")
      .Attr("N: int >= 1")
      .Attr("T: type")
      .Attr("axis: int = 0");
  r.Op("Gather")
      .Input("first: T")
      .Input("rest: N * T")
      .Output("output: T")
      .Attr("N: int >= 0")
      .Attr("T: type");
  r.Op("IdentityN").Input("input: T").Output("output: T").Attr("T: list(type) >= 1");
  r.Op("Fill")
      .Input("dims: int32")
      .Input("value: T")
      .Output("output: T")
      .Attr("T: type")
      .Shape(FillShape);
  r.Op("Mode")
      .Input("x: float")
      .Output("y: float")
      .Attr("mode: {'SLOW', 'FAST'}")
      .Attr("sizes: list(int) = [1, 2]");
  for (const char* op : {"NoOp", "Const", "Placeholder", "MatMul", "Pair", "Pack", "Gather",
                         "IdentityN", "Fill", "Mode"}) {
    r.Kernel(op, MakeFunctionKernel<DoNothing>);
  }
  r.Kernel("Neg", MakeFunctionKernel<DoNothing>).Types("T", {DT_FLOAT, DT_DOUBLE, DT_INT32});
  r.Kernel("Neg", MakeFunctionKernel<DoNothing>).Type<float>("T").Label("fast");

  auto retired = std::make_unique<OpDef>();
  EXPECT_TRUE(OpDefBuilder("Retired")
                  .Output("y: float")
                  .Deprecated(1000, "Use Const.")
                  .Finalize(retired.get())
                  .ok());
  EXPECT_TRUE(r.RegisterOp(std::move(retired), nullptr).ok());
  EXPECT_TRUE(r.status().ok()) << r.status();
}

}  // namespace

const Registry& ToyGraphRegistry() {
  static const Registry& registry = *[] {
    auto* toy = new Registry;
    Register(*toy);
    return toy;
  }();
  return registry;
}

Scope NewToyScope() { return Scope::NewRootScope(ToyGraphRegistry()); }

GraphDef ToyGraphDef(const std::string& text) {
  GraphDef graph_def;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &graph_def)) << text;
  return graph_def;
}

std::string ToyNode(const std::string& name, const std::string& op, const std::string& more) {
  return absl::StrCat("node { name: '", name, "' op: '", op, "' ", more, " }\n");
}

std::string ToyPlaceholder(const std::string& name) {
  return ToyNode(name, "Placeholder", "attr { key: 'dtype' value { type: DT_FLOAT } }");
}

std::string ToyNeg(const std::string& name, const std::vector<std::string>& inputs,
                   const std::string& more) {
  std::string text = "attr { key: 'T' value { type: DT_FLOAT } } ";
  for (const std::string& input : inputs) absl::StrAppend(&text, "input: '", input, "' ");
  return ToyNode(name, "Neg", absl::StrCat(text, more));
}

std::vector<std::string> NodeNames(const Graph& graph) {
  std::vector<std::string> names;
  names.reserve(graph.num_nodes());
  for (int id = 0; id < graph.num_nodes(); ++id) names.push_back(graph.node(id)->name());
  return names;
}

}  // namespace gradflow::testing
