// KnownValues: the values of outputs that are known while a graph is built. Not for users.
//
// Shape functions read sizes, axes and shapes from the values of inputs. Besides Consts, such a
// value may come from small nodes that follow from Consts and from inferred shapes, such as
// Pack([StridedSlice(Shape(x)), 10]). Some elements may be known where others are not: those of
// Shape(x) are the known dimensions of x.
//
// The nodes are computed by their registered kernels, if their op is in a fixed list. Each node is
// looked at once, and its outputs are kept as long as the graph.
//
// Thread safety: none; used while nodes are added.
#ifndef GRADFLOW_GRAPH_KNOWN_VALUES_H_
#define GRADFLOW_GRAPH_KNOWN_VALUES_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/tensor_shape.h"
#include "gradflow/graph/node.h"
#include "gradflow/graph/tables.h"

namespace gradflow::internal {

class KnownValues {
 public:
  // The maximum number of elements of the outputs of a node, and of each of its inputs; also the
  // maximum number of its inputs and outputs. A shape has at most kMaxDims.
  static constexpr int64_t kMaxElements = 256;
  // The maximum number of nodes that one call looks at. Further ones have no known value.
  static constexpr int kMaxNodes = 4096;
  // The approximate bytes of all values. Nodes that are looked at later have no known value.
  static constexpr int64_t kMaxBytes = int64_t{32} << 20;

  // Returns the value of an output, or null if any element is not known. Valid as long as the node.
  // A Const may have 65,536 elements.
  const Tensor* Find(const Node::Source& source);
  // Returns the shape whose dimensions are the elements of an output, a vector of int32 or int64.
  // Elements that are negative or not known are unknown dimensions. Of unknown rank if no element
  // is known, or if the output is no such vector.
  PartialTensorShape FindShape(const Node::Source& source);
  // Forgets the nodes from `num_nodes` on.
  void Truncate(int num_nodes);
  int64_t bytes() const { return bytes_; }

 private:
  struct Value {
    // Unset if no element is known. Elements that are not known are 0.
    Tensor elements{Tensor::Unset{}};
    // 1 where the element is known, 0 elsewhere; Unset if all are known. Of the same type.
    Tensor known{Tensor::Unset{}};
  };
  using Values = std::vector<Value>;
  // A borrowed Value, with null where that is Unset.
  struct View {
    const Tensor* elements = nullptr;
    const Tensor* known = nullptr;
  };
  struct Rule;

  // Returns how the outputs of the node are found; null if they are not.
  static const Rule* FindRule(const Node& node);
  // Sets the value to the numbers. Those that are negative or do not fit the type are not known.
  // REQUIRES: the shape has as many elements
  static absl::Status SetInts(DataType dtype, const TensorShape& shape,
                              absl::Span<const int64_t> numbers, Value* value);
  static absl::Status ComputeShapes(const Node& node, const Rule& rule, Values* values);

  // Returns what is known of an output of a node that is a Const or has been evaluated.
  View Look(const Node::Source& source) const;
  // Finds the outputs of the node and of those that it follows from.
  void Evaluate(const Node& node);
  void Store(const Node& node, Values values);
  static int64_t BytesOf(const Values& values);
  absl::Status Compute(const Node& node, const Rule& rule, Values* values) const;

  // By node id; empty if nothing is known of any output.
  HashMap<int, Values> values_;
  int64_t bytes_ = 0;
};

}  // namespace gradflow::internal

#endif  // GRADFLOW_GRAPH_KNOWN_VALUES_H_
