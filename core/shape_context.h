// ShapeContext: the argument of an op's shape function: the node, the known shapes and values of
// its inputs, and the inferred shapes of its outputs.
//
//   absl::Status MyShape(ShapeContext& c) {
//     GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 4));         // input 0 has rank 4, or unknown
//     PartialTensorShape out = c.input(0);
//     out.set_dim(3, c.Dim(1, 0));
//     c.set_output(0, out);
//     return absl::OkStatus();
//   }
//
// Shape functions run when a node is added to a graph and may see unknown shapes and values, so
// kernels check their inputs again. Error messages state the local fact; the caller prepends
// "node 'name' (Op): ".
#ifndef GRADFLOW_CORE_SHAPE_CONTEXT_H_
#define GRADFLOW_CORE_SHAPE_CONTEXT_H_

#include <optional>
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
  // `constant(i)` returns the value of input i if it is known when the graph is built, or else
  // null; the pointer must stay valid while the context lives. Borrows all arguments.
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

  // The node, the definition of its op, and the types and known shapes of its inputs.
  const NodeDef& def() const { return node_; }
  const OpDef& op_def() const { return op_def_; }
  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  int num_outputs() const { return static_cast<int>(outputs_.size()); }
  // REQUIRES: the index of an input (output) is in range. Otherwise these functions end the
  // program.
  const PartialTensorShape& input(int i) const {
    internal::RequireIndex("ShapeContext::input", i, num_inputs());
    return *inputs_[i];
  }
  DataType input_type(int i) const {
    internal::RequireIndex("ShapeContext::input_type", i, num_inputs());
    return input_types_[i];
  }
  // Returns the name of input i in the op definition; "values[1]" for an element of a list of two
  // or more.
  std::string input_name(int i) const;
  // Returns the value of input i, or null if it is not known when the graph is built. It is known
  // if the input is a Const, or a few small nodes compute it from Consts and known shapes.
  const Tensor* input_tensor(int i) const {
    internal::RequireIndex("ShapeContext::input_tensor", i, num_inputs());
    return constant_(i);
  }

  // Sets the function that input_as_shape() calls. Without it, input_as_shape() returns unknown
  // ranks. Borrows the function.
  using FindShape = absl::FunctionRef<PartialTensorShape(int i)>;
  void SetFindShape(FindShape find) { find_shape_.emplace(find); }
  // Returns the shape whose dimensions are the elements of input i, a vector of int32 or int64.
  // Negative elements, and elements that are not known when the graph is built, are unknown
  // dimensions. The rank is unknown if no element is known.
  PartialTensorShape input_as_shape(int i) const {
    internal::RequireIndex("ShapeContext::input_as_shape", i, num_inputs());
    return find_shape_.has_value() ? (*find_shape_)(i) : PartialTensorShape();
  }

  // Sets the function that finds the variable of input i, a resource. It returns false if the
  // variable is not known when the graph is built. Borrows the function.
  using FindVariable = absl::FunctionRef<bool(int i, DataType* dtype, PartialTensorShape* shape)>;
  void SetFindVariable(FindVariable find) { find_variable_.emplace(find); }
  // Returns the type of the variable of input i, a resource or a reference; DT_INVALID if unknown.
  DataType variable_type(int i) const;
  // Returns the shape of the variable. The rank is unknown if the shape is unknown.
  PartialTensorShape variable_shape(int i) const;

  // Returns NOT_FOUND if there is no such attribute, INVALID_ARGUMENT if it has another type.
  template <typename T>
  absl::Status GetAttr(absl::string_view name, T* value) const {
    return GetNodeAttr(node_, name, value);
  }

  // Sets the shape of output i; by default the rank is unknown. Shares memory with the shape of
  // output i - 1 if both are equal.
  void set_output(int i, PartialTensorShape shape);
  const PartialTensorShape& output(int i) const {
    internal::RequireIndex("ShapeContext::output", i, num_outputs());
    return outputs_[i];
  }
  absl::Span<PartialTensorShape> mutable_outputs() { return absl::MakeSpan(outputs_); }

  // ---- Helpers ----

  // Returns dimension d of input i, counted from the end if negative; -1 if it is unknown.
  int64_t Dim(int i, int d) const;
  // Returns INVALID_ARGUMENT "Shape must be rank 0 but is rank 1: min has shape [2]" unless the
  // rank of input i is `rank` or unknown.
  absl::Status CheckRank(int i, int rank) const;
  absl::Status CheckRankAtLeast(int i, int rank) const;
  // Returns INVALID_ARGUMENT unless the shapes of inputs i and j are compatible.
  absl::Status CheckSameShape(int i, int j) const;
  // Returns the shape whose dimensions are the elements of input i, a vector of int16, int32 or
  // int64. If all elements are known, checks them: -1 means an unknown dimension if
  // `allow_unknown`, and is an error otherwise. If only some are known, negative and unknown
  // elements are unknown dimensions.
  absl::StatusOr<PartialTensorShape> ShapeFromInput(int i, bool allow_unknown = false) const;
  // Stores the elements of input i in *values. Returns false if the value is unknown. Returns
  // INVALID_ARGUMENT if the value is known and its type is not int16, int32 or int64.
  absl::StatusOr<bool> IntsFromInput(int i, std::vector<int64_t>* values) const;

 private:
  const NodeDef& node_;
  const OpDef& op_def_;
  absl::Span<const PartialTensorShape* const> inputs_;
  absl::Span<const DataType> input_types_;
  absl::FunctionRef<const Tensor*(int)> constant_;
  std::optional<FindVariable> find_variable_;
  std::optional<FindShape> find_shape_;
  absl::InlinedVector<PartialTensorShape, 2> outputs_;
};

// Sets the shapes of the outputs, or returns an error if the inputs are invalid.
using ShapeFn = absl::Status (*)(ShapeContext& c);

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_CORE_SHAPE_CONTEXT_H_
