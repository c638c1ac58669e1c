// test::graph: functions that add a node to a graph, for tests and benchmarks. Errors end the
// program.
#ifndef GRADFLOW_COMPAT_CORE_GRAPH_TESTLIB_H_
#define GRADFLOW_COMPAT_CORE_GRAPH_TESTLIB_H_

#include <string>
#include <vector>

#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/graph/graph_def_builder.h"
#include "tensorflow/core/lib/gtl/array_slice.h"

namespace tensorflow {
namespace test {
namespace graph {

// Stores the nodes of the graph.
void ToGraphDef(Graph* g, GraphDef* def);

// Each function adds a node of the op of the same name. `index` is the output index of the input.
Node* Constant(Graph* g, const Tensor& tensor);
Node* Constant(Graph* g, const Tensor& tensor, const std::string& name);
Node* HostConstant(Graph* g, const Tensor& tensor);
Node* HostConstant(Graph* g, const Tensor& tensor, const std::string& name);
Node* Var(Graph* g, DataType dtype, const TensorShape& shape);
Node* Var(Graph* g, DataType dtype, const TensorShape& shape, const std::string& name);
Node* Assign(Graph* g, Node* var, Node* value);
Node* Cumsum(Graph* g, Node* data, Node* axes, bool exclusive = false, bool reverse = false);
// `reduce` is an op such as "Sum".
Node* Reduce(Graph* g, const std::string& reduce, Node* data, Node* axes, bool keep_dims = false);
Node* Matmul(Graph* g, Node* in0, Node* in1, bool transpose_a, bool transpose_b);
Node* BatchMatmul(Graph* g, Node* in0, Node* in1, bool adj_x, bool adj_y);
Node* QuantizeToUINT8(Graph* g, Node* data);
// Add an op with one, two, or any number of inputs.
Node* Unary(Graph* g, const std::string& func, Node* input, int index = 0);
Node* Binary(Graph* g, const std::string& func, Node* in0, Node* in1);
Node* Multi(Graph* g, const std::string& func, gtl::ArraySlice<Node*> ins);
Node* Identity(Graph* g, Node* input, int index = 0);
Node* Add(Graph* g, Node* in0, Node* in1);
Node* Reverse(Graph* g, Node* tensor, Node* axis);
Node* Roll(Graph* g, Node* input, Node* shift, Node* axis);
Node* RandomUniform(Graph* g, Node* shape, DataType dtype);
// Adds a RandomStandardNormal op.
Node* RandomGaussian(Graph* g, Node* shape, DataType dtype);
Node* TruncatedNormal(Graph* g, Node* shape, DataType dtype);
Node* RandomGamma(Graph* g, Node* shape, Node* alpha);
Node* RandomPoisson(Graph* g, Node* shape, Node* lam);
Node* NoOp(Graph* g, const std::vector<Node*>& control_inputs);
Node* Switch(Graph* g, Node* in0, Node* in1);
Node* Enter(Graph* g, Node* input, const std::string& frame_name);
Node* Exit(Graph* g, Node* input);
Node* Merge(Graph* g, Node* in0, Node* in1);
Node* Next(Graph* g, const std::string& name, Node* input);
Node* LoopCond(Graph* g, Node* input);
Node* Less(Graph* g, Node* in0, Node* in1);
Node* Select(Graph* g, Node* c, Node* inx, Node* iny);
Node* Cast(Graph* g, Node* in, DataType dst);
// Adds a GatherV2 op.
Node* Gather(Graph* g, Node* in0, Node* in1, Node* axis);
Node* Concat(Graph* g, Node* concat_dim, gtl::ArraySlice<Node*> tensors);
Node* ConcatV2(Graph* g, gtl::ArraySlice<Node*> tensors, Node* concat_dim);
Node* Relu(Graph* g, Node* in);
Node* Relu6(Graph* g, Node* in);
Node* BiasAdd(Graph* g, Node* value, Node* bias);
Node* Conv2D(Graph* g, Node* in0, Node* in1);
Node* Diag(Graph* g, Node* in, DataType type);
Node* DiagPart(Graph* g, Node* in, DataType type);
Node* CheckNumerics(Graph* g, Node* in, const std::string& message);
Node* Arg(Graph* g, int64 index, DataType type);
Node* Retval(Graph* g, int64 index, Node* in, int64 in_index = 0);

}  // namespace graph
}  // namespace test
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_GRAPH_TESTLIB_H_
