// ConstantEvaluator: finds the values of outputs that are known while a graph is built. Internal.
//
// Shape functions read sizes, axes and shapes from the values of inputs. Such a value may come from
// a Const or from small nodes that compute on Consts and inferred shapes, such as
// Pack([StridedSlice(Shape(x)), 10]). A value may be known in part: the known elements of Shape(x)
// are the known dimensions of x.
//
// The outputs of Shape, ShapeN, Size, Rank and VariableShape follow from inferred shapes. For the
// other ops of a fixed list, the registered kernel computes the outputs. Each node is evaluated
// once, and its outputs live as long as the graph.
//
// Thread safety: not thread-safe; used while nodes are added.
#ifndef GRADFLOW_GRAPH_CONSTANT_EVALUATOR_H_
#define GRADFLOW_GRAPH_CONSTANT_EVALUATOR_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/tensor_shape.h"
#include "gradflow/graph/node.h"
#include "gradflow/graph/tables.h"

namespace gradflow::internal {

class ConstantEvaluator {
 public:
  // The maximum number of elements of each input of a node, and of all its outputs together. Also
  // the maximum number of inputs, and of outputs. Enough for every shape, because a shape has at
  // most kMaxDims dimensions.
  static constexpr int64_t kMaxElements = 256;
  // The maximum number of nodes that one call evaluates. Further nodes have no known value.
  static constexpr int kMaxNodes = 4096;
  // The limit on the approximate bytes of all values. After the limit is reached, further nodes
  // have no known value.
  static constexpr int64_t kMaxBytes = int64_t{32} << 20;

  // Returns the value of an output, or null if any element is unknown. The value lives as long as
  // the node. The value of a Const is returned if it has at most 65,536 elements
  // (Graph::ConstantValue).
  const Tensor* Find(const Node::Source& source);
  // Returns the shape whose dimensions are the elements of an output, a vector of int32 or int64.
  // Negative and unknown elements are unknown dimensions. The rank is unknown if no element is
  // known, or if the output is not such a vector.
  PartialTensorShape FindShape(const Node::Source& source);
  // Forgets the values of the node with this id.
  void Forget(int id);
  int64_t bytes() const { return bytes_; }

 private:
  struct Value {
    // Unset if no element is known. Unknown elements are 0.
    Tensor elements{Tensor::Unset{}};
    // 1 for known elements, 0 for unknown elements; Unset if all are known. Has the type of
    // `elements`.
    Tensor known{Tensor::Unset{}};
  };
  using Values = std::vector<Value>;
  // A borrowed Value; null stands for Unset.
  struct View {
    const Tensor* elements = nullptr;
    const Tensor* known = nullptr;
  };
  struct Rule;

  // Returns how to find the outputs of the node, or null if the op is not supported.
  static const Rule* FindRule(const Node& node);
  // Sets the value to the numbers. Numbers that are negative or do not fit the type are unknown.
  // REQUIRES: the shape has numbers.size() elements
  static absl::Status SetInts(DataType dtype, const TensorShape& shape,
                              absl::Span<const int64_t> numbers, Value* value);
  static absl::Status ComputeShapes(const Node& node, const Rule& rule, Values* values);

  // Returns the known value of an output of a Const or evaluated node.
  View Look(const Node::Source& source) const;
  // Evaluates the node and the nodes that it depends on.
  void Evaluate(const Node& node);
  void Store(const Node& node, Values values);
  static int64_t BytesOf(const Values& values);
  absl::Status Compute(const Node& node, const Rule& rule, Values* values) const;

  // The values of the evaluated nodes, keyed by node id. An entry is empty if no output of the node
  // has known elements.
  HashMap<int, Values> values_;
  int64_t bytes_ = 0;
};

}  // namespace gradflow::internal

#endif  // GRADFLOW_GRAPH_CONSTANT_EVALUATOR_H_
