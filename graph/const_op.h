// ops::Const: adds constants to a graph.
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

// Adds a node that holds `value`.
Output Const(const Scope& scope, const Input::Initializer& value);
// Adds a node that holds a copy of `proto`, which is checked but not converted.
Output ConstFromProto(const Scope& scope, const TensorProto& proto);

namespace internal {
// Adds a constant of type `dtype`. Converts numbers like static_cast; a complex number converts to
// a real type by its real part. The scope gets an error if `dtype` cannot hold a number, or if a
// string would have to become a number.
Output ConstAs(const Scope& scope, const Input::Initializer& value, DataType dtype);
}  // namespace internal

// Adds a constant of type T. A value of another type is converted here; TensorFlow adds a Cast.
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

// Returns the output that `input` stands for. A value becomes a Const in a sub-scope "Const". On
// error the scope gets the status, and the result has no node.
NodeOut AsNodeOut(const Scope& scope, const Input& input);
std::vector<NodeOut> AsNodeOutList(const Scope& scope, const InputList& inputs);

}  // namespace ops
}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_GRAPH_CONST_OP_H_
