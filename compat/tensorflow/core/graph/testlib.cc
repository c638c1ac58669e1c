#include "tensorflow/core/graph/testlib.h"

#include "tensorflow/core/platform/status.h"

namespace tensorflow {
namespace test {
namespace graph {
namespace {

// A node with the given inputs.
class Builder {
 public:
  Builder(Graph* g, const std::string& op, gtl::ArraySlice<NodeBuilder::NodeOut> inputs)
      : graph_(g), builder_(g->NewName("n"), op) {
    for (const NodeBuilder::NodeOut& input : inputs) builder_.Input(input);
  }
  template <typename T>
  Builder& Attr(absl::string_view name, const T& value) {
    builder_.Attr(name, value);
    return *this;
  }
  NodeBuilder& node() { return builder_; }
  operator Node*() {  // NOLINT: ends the expression
    Node* node = nullptr;
    TF_CHECK_OK(builder_.Finalize(graph_, &node));
    return node;
  }

 private:
  Graph* const graph_;
  NodeBuilder builder_;
};

std::vector<NodeBuilder::NodeOut> Outputs(gtl::ArraySlice<Node*> nodes) {
  return std::vector<NodeBuilder::NodeOut>(nodes.begin(), nodes.end());
}

}  // namespace

void ToGraphDef(Graph* g, GraphDef* def) { *def = g->def(); }

Node* Constant(Graph* g, const Tensor& tensor) { return Constant(g, tensor, g->NewName("n")); }

Node* Constant(Graph* g, const Tensor& tensor, const std::string& name) {
  Node* node = nullptr;
  TF_CHECK_OK(NodeBuilder(name, "Const")
                  .Attr("dtype", tensor.dtype())
                  .Attr("value", tensor)
                  .Finalize(g, &node));
  return node;
}

Node* HostConstant(Graph* g, const Tensor& tensor) { return Constant(g, tensor); }

Node* HostConstant(Graph* g, const Tensor& tensor, const std::string& name) {
  return Constant(g, tensor, name);
}

Node* Var(Graph* g, DataType dtype, const TensorShape& shape) {
  return Var(g, dtype, shape, g->NewName("n"));
}

Node* Var(Graph* g, DataType dtype, const TensorShape& shape, const std::string& name) {
  Node* node = nullptr;
  TF_CHECK_OK(
      NodeBuilder(name, "Variable").Attr("dtype", dtype).Attr("shape", shape).Finalize(g, &node));
  return node;
}

Node* Assign(Graph* g, Node* var, Node* value) {
  return Builder(g, "Assign", {var, value}).Attr("use_locking", true);
}

Node* Cumsum(Graph* g, Node* data, Node* axes, bool exclusive, bool reverse) {
  return Builder(g, "Cumsum", {data, axes}).Attr("exclusive", exclusive).Attr("reverse", reverse);
}

Node* Reduce(Graph* g, const std::string& reduce, Node* data, Node* axes, bool keep_dims) {
  return Builder(g, reduce, {data, axes}).Attr("keep_dims", keep_dims);
}

Node* Matmul(Graph* g, Node* in0, Node* in1, bool transpose_a, bool transpose_b) {
  return Builder(g, "MatMul", {in0, in1})
      .Attr("transpose_a", transpose_a)
      .Attr("transpose_b", transpose_b);
}

Node* BatchMatmul(Graph* g, Node* in0, Node* in1, bool adj_x, bool adj_y) {
  return Builder(g, "BatchMatMul", {in0, in1}).Attr("adj_x", adj_x).Attr("adj_y", adj_y);
}

Node* QuantizeToUINT8(Graph* g, Node* data) {
  return Builder(g, "Quantize", {data})
      .Attr("T", DT_QUINT8)
      .Attr("max_range", 1.0f)
      .Attr("min_range", -1.0f);
}

Node* Unary(Graph* g, const std::string& func, Node* input, int index) {
  return Builder(g, func, {NodeBuilder::NodeOut(input, index)});
}

Node* Binary(Graph* g, const std::string& func, Node* in0, Node* in1) {
  return Builder(g, func, {in0, in1});
}

Node* Multi(Graph* g, const std::string& func, gtl::ArraySlice<Node*> ins) {
  return Builder(g, func, Outputs(ins));
}

Node* Identity(Graph* g, Node* input, int index) { return Unary(g, "Identity", input, index); }

Node* Add(Graph* g, Node* in0, Node* in1) { return Binary(g, "Add", in0, in1); }

Node* Reverse(Graph* g, Node* tensor, Node* axis) { return Binary(g, "ReverseV2", tensor, axis); }

Node* Roll(Graph* g, Node* input, Node* shift, Node* axis) {
  return Multi(g, "Roll", {input, shift, axis});
}

namespace {

Node* Random(Graph* g, const std::string& op, Node* shape, DataType dtype) {
  return Builder(g, op, {shape}).Attr("dtype", dtype).Attr("seed", int64{0});
}

}  // namespace

Node* RandomUniform(Graph* g, Node* shape, DataType dtype) {
  return Random(g, "RandomUniform", shape, dtype);
}

Node* RandomGaussian(Graph* g, Node* shape, DataType dtype) {
  return Random(g, "RandomStandardNormal", shape, dtype);
}

Node* TruncatedNormal(Graph* g, Node* shape, DataType dtype) {
  return Random(g, "TruncatedNormal", shape, dtype);
}

Node* RandomGamma(Graph* g, Node* shape, Node* alpha) {
  return Builder(g, "RandomGamma", {shape, alpha}).Attr("seed", int64{0});
}

Node* RandomPoisson(Graph* g, Node* shape, Node* lam) {
  return Builder(g, "RandomPoisson", {shape, lam}).Attr("seed", int64{0});
}

Node* NoOp(Graph* g, const std::vector<Node*>& control_inputs) {
  Builder builder(g, "NoOp", {});
  for (const Node* input : control_inputs) builder.node().ControlInput(input);
  return builder;
}

Node* Switch(Graph* g, Node* in0, Node* in1) { return Binary(g, "Switch", in0, in1); }

Node* Enter(Graph* g, Node* input, const std::string& frame_name) {
  return Builder(g, "Enter", {input}).Attr("frame_name", frame_name);
}

Node* Exit(Graph* g, Node* input) { return Unary(g, "Exit", input); }

Node* Merge(Graph* g, Node* in0, Node* in1) {
  Builder builder(g, "Merge", {});
  const std::vector<NodeBuilder::NodeOut> inputs = {in0, in1};
  builder.node().Input(gtl::ArraySlice<NodeBuilder::NodeOut>(inputs));
  return builder;
}

Node* Next(Graph* g, const std::string& name, Node* input) {
  Node* node = nullptr;
  TF_CHECK_OK(NodeBuilder(name, "NextIteration").Input(input).Finalize(g, &node));
  return node;
}

Node* LoopCond(Graph* g, Node* input) { return Unary(g, "LoopCond", input); }

Node* Less(Graph* g, Node* in0, Node* in1) { return Binary(g, "Less", in0, in1); }

Node* Select(Graph* g, Node* c, Node* inx, Node* iny) { return Multi(g, "Select", {c, inx, iny}); }

Node* Cast(Graph* g, Node* in, DataType dst) { return Builder(g, "Cast", {in}).Attr("DstT", dst); }

Node* Gather(Graph* g, Node* in0, Node* in1, Node* axis) {
  return Multi(g, "GatherV2", {in0, in1, axis});
}

Node* Concat(Graph* g, Node* concat_dim, gtl::ArraySlice<Node*> tensors) {
  Builder builder(g, "Concat", {concat_dim});
  const std::vector<NodeBuilder::NodeOut> values = Outputs(tensors);
  builder.node().Input(gtl::ArraySlice<NodeBuilder::NodeOut>(values));
  return builder;
}

Node* ConcatV2(Graph* g, gtl::ArraySlice<Node*> tensors, Node* concat_dim) {
  Builder builder(g, "ConcatV2", {});
  const std::vector<NodeBuilder::NodeOut> values = Outputs(tensors);
  builder.node().Input(gtl::ArraySlice<NodeBuilder::NodeOut>(values)).Input(concat_dim);
  return builder;
}

Node* Relu(Graph* g, Node* in) { return Unary(g, "Relu", in); }

Node* Relu6(Graph* g, Node* in) { return Unary(g, "Relu6", in); }

Node* BiasAdd(Graph* g, Node* value, Node* bias) { return Binary(g, "BiasAdd", value, bias); }

Node* Conv2D(Graph* g, Node* in0, Node* in1) {
  return Builder(g, "Conv2D", {in0, in1})
      .Attr("strides", std::vector<int64>{1, 1, 1, 1})
      .Attr("padding", std::string("SAME"));
}

Node* Diag(Graph* g, Node* in, DataType type) { return Builder(g, "Diag", {in}).Attr("T", type); }

Node* DiagPart(Graph* g, Node* in, DataType type) {
  return Builder(g, "DiagPart", {in}).Attr("T", type);
}

Node* CheckNumerics(Graph* g, Node* in, const std::string& message) {
  return Builder(g, "CheckNumerics", {in}).Attr("message", message);
}

Node* Arg(Graph* g, int64 index, DataType type) {
  return Builder(g, "_Arg", {}).Attr("T", type).Attr("index", index);
}

Node* Retval(Graph* g, int64 index, Node* in, int64 in_index) {
  return Builder(g, "_Retval", {NodeBuilder::NodeOut(in, static_cast<int>(in_index))})
      .Attr("index", index);
}

}  // namespace graph
}  // namespace test
}  // namespace tensorflow
