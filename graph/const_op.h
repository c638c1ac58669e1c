// ops::Const: constants in a graph.
//
//   ops::Const(scope, 42.f);                          // a scalar
//   ops::Const(scope, {{1, 2}, {3, 4}});              // int32 of shape [2,2]
//   ops::Const<double>(scope, {1, 2});                // converted to double
//   ops::Const(scope, 0.5f, {2, 3});                  // 0.5 everywhere
//   ops::Const(scope, {1.f, 2.f, 3.f, 4.f}, {2, 2});  // with a shape
//   ops::Const(scope, tensor);
#ifndef GRADFLOW_GRAPH_CONST_OP_H_
#define GRADFLOW_GRAPH_CONST_OP_H_

#include <initializer_list>
#include <vector>

#include "gradflow/core/tensor_shape.h"
#include "gradflow/core/types.h"
#include "gradflow/graph/ops.h"
#include "gradflow/graph/scope.h"

#pragma GCC visibility push(default)
namespace gradflow {

class TensorProto;
struct NodeOut;

namespace ops {

// A node that holds `value`.
Output Const(const Scope& scope, const Input::Initializer& value);
// The node holds a copy of `proto`, checked but otherwise as it is.
Output ConstFromProto(const Scope& scope, const TensorProto& proto);

namespace internal {
// The value as `dtype`. Numbers are converted as by static_cast, and a complex number counts by its
// real part where a real one is wanted; a number that the type cannot hold, or a string where a
// number is wanted, is an error of the scope.
Output ConstAs(const Scope& scope, const Input::Initializer& value, DataType dtype);
}  // namespace internal

// The value is converted to T where it is another type; TensorFlow adds a Cast for that.
template <typename T>
Output Const(const Scope& scope, const Input::Initializer& value) {
  return internal::ConstAs(scope, value,
                           DataTypeToEnum<gradflow::internal::ElementTypeT<T>>::value);
}
template <typename T>
Output Const(const Scope& scope, const T& value, const TensorShape& shape) {
  return Const(scope, Input::Initializer(value, shape));
}
template <typename T>
Output Const(const Scope& scope, const std::initializer_list<T>& values, const TensorShape& shape) {
  return Const(scope, Input::Initializer(values, shape));
}

// The output that `input` stands for: a value becomes a Const of a sub-scope "Const". On failure
// the scope has the error and the result no node.
NodeOut AsNodeOut(const Scope& scope, const Input& input);
std::vector<NodeOut> AsNodeOutList(const Scope& scope, const InputList& inputs);

}  // namespace ops
}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_GRAPH_CONST_OP_H_
