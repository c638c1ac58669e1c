// Ops for tests of graphs, in a separate registry. These tests do not depend on the library's ops.
#ifndef GRADFLOW_TESTS_GRAPH_TOY_GRAPH_OPS_H_
#define GRADFLOW_TESTS_GRAPH_TOY_GRAPH_OPS_H_

#include <string>
#include <vector>

#include "gradflow/core/registry.h"
#include "gradflow/graph/graph.h"
#include "gradflow/graph/scope.h"
#include "gradflow/proto/graph.pb.h"

namespace gradflow::testing {

//   NoOp() -> ()
//   Const() -> (output: dtype) { value: tensor; dtype: type }
//   Placeholder() -> (output: dtype) { dtype: type; shape: shape = <unknown> }
//   Neg(x: T) -> (y: T) { T: {half, float, double, int32} }      no kernel for half
//   MatMul(a: T, b: T) -> (product: T) { transpose_a: bool = false; transpose_b: bool = false;
//                                        T: {float, double} }
//   Pair(x: float) -> (first: float, second: float)
//   Pack(values: N * T) -> (output: T) { N: int >= 1; T: type; axis: int = 0 }
//   Gather(first: T, rest: N * T) -> (output: T) { N: int >= 0; T: type }
//   IdentityN(input: T) -> (output: T) { T: list(type) >= 1 }
//   Fill(dims: int32, value: T) -> (output: T) { T: type }       shape from the value of dims
//   Mode(x: float) -> (y: float) { mode: {"SLOW", "FAST"}; sizes: list(int) = [1, 2] }
//   Retired() -> (y: float)                                      deprecated since version 1000
// All except Retired have kernels.
const Registry& ToyGraphRegistry();
// Returns the root scope of a new graph with these ops.
Scope NewToyScope();

// Parses a GraphDef from `text`. Fails the test if it does not parse.
GraphDef ToyGraphDef(const std::string& text);

// Return the text of a node for ToyGraphDef: a node of any op, a float placeholder, and a Neg of
// floats. `more` is the text of further fields.
std::string ToyNode(const std::string& name, const std::string& op, const std::string& more = "");
std::string ToyPlaceholder(const std::string& name);
std::string ToyNeg(const std::string& name, const std::vector<std::string>& inputs,
                   const std::string& more = "");

// Returns the names of the nodes, in order.
std::vector<std::string> NodeNames(const Graph& graph);

}  // namespace gradflow::testing

#endif  // GRADFLOW_TESTS_GRAPH_TOY_GRAPH_OPS_H_
