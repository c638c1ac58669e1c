// Operation, Output and Input: handles and values for code that builds graphs.
//
//   Output a = ops::Const(scope, {{1.f, 2.f}, {3.f, 4.f}});
//   Output b = ops::Add(scope, a, 1.f);        // an Input made from a value becomes a Const node
//   Output c = ops::AddN(scope, {a, b, {{0.f, 0.f}, {0.f, 0.f}}});
//
// Operations and outputs are handles into a graph, which must outlive them. A failed scope returns
// empty handles: they have no inputs or outputs, the type DT_INVALID and the name "".
#ifndef GRADFLOW_GRAPH_OPS_H_
#define GRADFLOW_GRAPH_OPS_H_

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/tensor_shape.h"
#include "gradflow/core/types.h"

#pragma GCC visibility push(default)
namespace gradflow {

class Node;
class Output;
class TensorProto;

// A node of a graph.
class Operation {
 public:
  Operation() = default;
  // A handle to a node.
  explicit Operation(const Node* node) : node_(const_cast<Node*>(node)) {}

  // The numbers of data inputs and outputs.
  int32_t num_inputs() const;
  int32_t num_outputs() const;
  // Return DT_INVALID, or an empty output, if there is no input (output) `i`.
  DataType input_type(int32_t i) const;
  DataType output_type(int32_t i) const;
  Output input(int32_t i) const;
  Output output(int32_t i) const;

  // Returns a pointer to a mutable node, as in TensorFlow's API, although no member of a node
  // changes it.
  Node* node() const { return node_; }
  uint64_t hash(int32_t index) const;
  friend bool operator==(const Operation& a, const Operation& b) { return a.node_ == b.node_; }
  friend bool operator!=(const Operation& a, const Operation& b) { return a.node_ != b.node_; }

 private:
  Node* node_ = nullptr;
};

// One output of a node.
class Output {
 public:
  Output() = default;
  // An output of a node or operation; output 0 if no index is given.
  explicit Output(const Node* node) : op_(node) {}
  Output(const Node* node, int32_t index) : op_(node), index_(index) {}
  Output(const Operation& op, int32_t index) : op_(op), index_(index) {}

  // The operation, and the index and type of its output.
  Operation op() const { return op_; }
  Node* node() const { return op_.node(); }
  int32_t index() const { return index_; }
  DataType type() const { return op_.output_type(index_); }
  // "node:0"
  std::string name() const;
  uint64_t hash() const { return op_.hash(index_); }
  friend bool operator==(const Output& a, const Output& b) {
    return a.op_ == b.op_ && a.index_ == b.index_;
  }
  friend bool operator!=(const Output& a, const Output& b) { return !(a == b); }

 private:
  Operation op_;
  int32_t index_ = 0;
};

// Hashes outputs, for maps.
struct OutputHash {
  // Returns the hash of an output.
  size_t operator()(const Output& output) const { return output.hash(); }
};

// Outputs, for inputs that are lists.
using OutputList = std::vector<Output>;

namespace internal {

// The element type of a C++ value in a tensor: tstring for types that convert to a string, int64_t
// for `long long`, otherwise the type itself. `type` is not defined for types that tensors cannot
// hold.
template <typename T, typename = void>
struct ElementType {};
template <typename T>
struct ElementType<T, std::void_t<decltype(DataTypeToEnum<T>::value)>> {
  using type = T;
};
template <typename T>
struct ElementType<T, std::enable_if_t<!std::is_same_v<T, std::string> &&
                                       std::is_convertible_v<const T&, absl::string_view>>> {
  using type = tstring;
};
template <>
struct ElementType<long long> {  // NOLINT: where int64_t is long
  using type = int64_t;
};
template <>
struct ElementType<unsigned long long> {  // NOLINT
  using type = uint64_t;
};
template <typename T>
using ElementTypeT = typename ElementType<T>::type;

}  // namespace internal

// An input of an op: an output, or a value. A value becomes a Const in the op's scope.
class Input {
 public:
  // A value in a program: a scalar, nested lists of scalars in braces, or a tensor.
  //
  // The elements of a list must agree in type and shape. Otherwise `status` states the reason and
  // becomes the error of the scope that uses the value.
  struct Initializer {
    // A scalar.
    template <typename T, typename E = internal::ElementTypeT<T>>
    Initializer(const T& value) {  // NOLINT: as in TensorFlow
      Fill(value, TensorShape());
    }
    // A tensor.
    Initializer(const Tensor& value);  // NOLINT: as in TensorFlow
    // A tensor of `shape` with `value` in every element.
    template <typename T, typename E = internal::ElementTypeT<T>>
    Initializer(const T& value, const TensorShape& shape) {
      Fill(value, shape);
    }
    template <typename T, typename E = internal::ElementTypeT<T>>
    Initializer(const std::initializer_list<T>& values)  // NOLINT: as in TensorFlow
        : Initializer(values, TensorShape({static_cast<int64_t>(values.size())})) {}
    // A tensor of `shape` with these elements in row-major order.
    template <typename T, typename E = internal::ElementTypeT<T>>
    Initializer(const std::initializer_list<T>& values, const TensorShape& shape) {
      if constexpr (std::is_same_v<E, tstring>) {
        const std::vector<absl::string_view> views = Views(values.begin(), values.size());
        SetStrings(views, shape);
      } else {
        SetBytes(DataTypeToEnum<E>::value, values.begin(), values.size(), shape);
      }
    }
    // A tensor with one more dimension in front of the elements' dimensions.
    Initializer(const std::initializer_list<Initializer>& elements);  // NOLINT: as in TensorFlow

    // Returns the tensor as a message.
    TensorProto AsTensorProto() const;

    // If not ok, there is no tensor.
    absl::Status status;
    Tensor tensor;

   private:
    template <typename T>
    void Fill(const T& value, const TensorShape& shape) {
      using E = internal::ElementTypeT<T>;
      if constexpr (std::is_same_v<E, tstring>) {
        FillString(Views(&value, 1)[0], shape);
      } else {
        FillBytes(DataTypeToEnum<E>::value, &value, shape);
      }
    }
    template <typename T>
    std::vector<absl::string_view> Views(const T* values, size_t count) {
      std::vector<absl::string_view> views;
      for (size_t i = 0; i < count; ++i) {
        if constexpr (std::is_pointer_v<T>) {
          if (values[i] == nullptr) {
            status = absl::InvalidArgumentError("a string is a null pointer");
            views.emplace_back();
            continue;
          }
        }
        views.emplace_back(values[i]);
      }
      return views;
    }
    // These take elements as bytes, so that one function serves all types.
    void FillBytes(DataType dtype, const void* value, const TensorShape& shape);
    void FillString(absl::string_view value, const TensorShape& shape);
    void SetBytes(DataType dtype, const void* values, size_t count, const TensorShape& shape);
    void SetStrings(absl::Span<const absl::string_view> values, const TensorShape& shape);
    bool CheckCount(size_t count, const TensorShape& shape);
    bool Allocate(DataType dtype, const TensorShape& shape);
  };

  // An output, or a value that becomes a Const.
  Input(const Output& output) : output_(output) {}  // NOLINT: as in TensorFlow
  // The only output of `op`. An error if `op` does not have exactly one.
  Input(const Operation& op);  // NOLINT: as in TensorFlow
  // An output, or a value that becomes a Const.
  template <typename T, typename E = internal::ElementTypeT<T>>
  Input(const T& value) : Input(Initializer(value)) {}       // NOLINT: as in TensorFlow
  Input(const Initializer& value);                           // NOLINT: as in TensorFlow
  Input(const Tensor& value) : Input(Initializer(value)) {}  // NOLINT: as in TensorFlow
  Input(const std::initializer_list<Initializer>& value)     // NOLINT: as in TensorFlow
      : Input(Initializer(value)) {}
  // Output `index` of the node `node_name` of the scope's graph.
  Input(absl::string_view node_name, int32_t index, DataType dtype);

  // The node of an output; null for anything else.
  Node* node() const { return output_.node(); }
  const Output& output() const { return output_; }
  int32_t index() const;
  // The arguments of Input(node_name, index, dtype).
  absl::string_view node_name() const {
    return other_ == nullptr ? absl::string_view() : other_->node_name;
  }
  DataType data_type() const { return other_ == nullptr ? DT_INVALID : other_->dtype; }
  // Returns true if this is a value. status() is its error, tensor() its tensor.
  bool is_value() const { return other_ != nullptr && other_->node_name.empty(); }
  absl::Status status() const { return other_ == nullptr ? absl::OkStatus() : other_->status; }
  const Tensor& tensor() const;

 private:
  struct Other {
    absl::Status status;
    Tensor tensor;
    std::string node_name;
    int32_t index = 0;
    DataType dtype = DT_INVALID;
  };

  Output output_;
  // Null for an output. Shared, so that inputs are cheap to copy.
  std::shared_ptr<const Other> other_;
};

// An input of an op that is a list.
class InputList {
 public:
  // Outputs and values in order.
  InputList(const OutputList& outputs)  // NOLINT: as in TensorFlow
      : inputs_(outputs.begin(), outputs.end()) {}
  InputList(const std::initializer_list<Input>& inputs) : inputs_(inputs) {}  // NOLINT: the same
  InputList(absl::Span<const Input> inputs)                                   // NOLINT: the same
      : inputs_(inputs.begin(), inputs.end()) {}
  InputList(std::vector<Input> inputs) : inputs_(std::move(inputs)) {}  // NOLINT: the same

  // The inputs.
  size_t size() const { return inputs_.size(); }
  std::vector<Input>::iterator begin() { return inputs_.begin(); }
  std::vector<Input>::iterator end() { return inputs_.end(); }
  std::vector<Input>::const_iterator begin() const { return inputs_.begin(); }
  std::vector<Input>::const_iterator end() const { return inputs_.end(); }

 private:
  std::vector<Input> inputs_;
};

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_GRAPH_OPS_H_
