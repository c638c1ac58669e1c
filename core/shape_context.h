// ShapeContext: what an op's shape function sees of a node, and where it puts the result.
//
//   absl::Status MyShape(ShapeContext& c) {
//     GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 4));         // input 0 has rank 4, or unknown
//     PartialTensorShape out = c.input(0);
//     out.set_dim(3, c.Dim(1, 0));
//     c.set_output(0, out);
//     return absl::OkStatus();
//   }
//
// Shape functions run when a node is added to a graph, with whatever is known then, and do not
// have the last word: kernels check again. Their errors say the local fact; the caller adds
// "node 'name' (Op): ".
#ifndef GRADFLOW_CORE_SHAPE_CONTEXT_H_
#define GRADFLOW_CORE_SHAPE_CONTEXT_H_

#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gradflow/core/attributes.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/tensor_shape.h"
#include "gradflow/core/types.h"

#pragma GCC visibility push(default)
namespace gradflow {

class NodeDef;
class OpDef;

class ShapeContext {
 public:
  // `constant(i)` gives the value of input i if the graph knows it, or null; the pointer stays
  // valid while the context lives. All are borrowed.
  ShapeContext(const NodeDef& node, const OpDef& op_def,
               absl::Span<const PartialTensorShape* const> inputs,
               absl::Span<const DataType> input_types, int num_outputs,
               absl::FunctionRef<const Tensor*(int)> constant)
      : node_(node),
        op_def_(op_def),
        inputs_(inputs),
        input_types_(input_types),
        constant_(constant),
        outputs_(num_outputs) {}

  // The node, and what is known of its inputs.
  const NodeDef& def() const { return node_; }
  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  int num_outputs() const { return static_cast<int>(outputs_.size()); }
  const PartialTensorShape& input(int i) const { return *inputs_[i]; }
  DataType input_type(int i) const { return input_types_[i]; }
  // The name of input i in the op definition, in a list of several "values[1]".
  std::string input_name(int i) const;
  // Null if not known when the graph is built.
  const Tensor* input_tensor(int i) const { return constant_(i); }

  // NOT_FOUND without such an attribute, INVALID_ARGUMENT for another type.
  template <typename T>
  absl::Status GetAttr(absl::string_view name, T* value) const {
    return GetNodeAttr(node_, name, value);
  }

  // Outputs that are not set are of unknown rank.
  void set_output(int i, PartialTensorShape shape) { outputs_[i] = std::move(shape); }
  const PartialTensorShape& output(int i) const { return outputs_[i]; }

  // ---- Helpers ----

  // Dimension d of input i (from the end if negative), or -1 if it, or the rank, is not known.
  int64_t Dim(int i, int d) const;
  // INVALID_ARGUMENT "min must have rank 0, but has shape [2,3]" unless input i has rank `rank`
  // or an unknown one.
  absl::Status CheckRank(int i, int rank) const;
  absl::Status CheckRankAtLeast(int i, int rank) const;
  // INVALID_ARGUMENT unless the shapes of inputs i and j may be the same.
  absl::Status CheckSameShape(int i, int j) const;
  // The shape that input i, a vector of int32 or int64 sizes, holds: dimensions are checked, -1
  // means unknown if `allow_unknown`. Of known rank only if its value is not known.
  absl::StatusOr<PartialTensorShape> ShapeFromInput(int i, bool allow_unknown = false) const;
  // The elements of input i as int64 into *values; false if its value is not known.
  // INVALID_ARGUMENT if it is not of an integer type.
  absl::StatusOr<bool> IntsFromInput(int i, std::vector<int64_t>* values) const;

 private:
  const NodeDef& node_;
  const OpDef& op_def_;
  absl::Span<const PartialTensorShape* const> inputs_;
  absl::Span<const DataType> input_types_;
  absl::FunctionRef<const Tensor*(int)> constant_;
  absl::InlinedVector<PartialTensorShape, 2> outputs_;
};

// Sets the output shapes, or says what is wrong with the inputs.
using ShapeFn = absl::Status (*)(ShapeContext& c);

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_CORE_SHAPE_CONTEXT_H_
