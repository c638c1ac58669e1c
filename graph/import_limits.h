// Checks the sizes of an untrusted GraphDef, and the parts that neither an op definition nor a
// kernel checks. Internal.
#ifndef GRADFLOW_GRAPH_IMPORT_LIMITS_H_
#define GRADFLOW_GRAPH_IMPORT_LIMITS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gradflow/graph/graph_impl.h"
#include "gradflow/graph/import.h"

namespace gradflow {

class AttrValue;
class FunctionDef;
class FunctionDefLibrary;
class NameAttrList;
class NodeDef;
class OpDef;
class TensorProto;

namespace internal {

// Errors are INVALID_ARGUMENT and name the limit. Errors of nodes state the local fact; the caller
// adds NodePrefix.
class LimitChecks {
 public:
  // `before` holds the parts of the limits that earlier imports into the graph have used.
  LimitChecks(const ImportGraphDefOptions& options, const GraphImpl::Used& before)
      : options_(options), used_(before) {}

  // Checks the numbers of nodes and functions, and the functions themselves. `graph` is added to
  // `before`.
  absl::Status CheckGraph(const GraphDef& graph, const GraphDef& before);
  // Returns DEADLINE_EXCEEDED if the deadline has passed. Reads the clock on every 64th call.
  absl::Status CheckTime();
  // Checks the bytes of the inferred shapes.
  absl::Status CheckShapeBytes(int64_t bytes) const;
  // Returns the parts of the limits that this and earlier imports have used.
  const GraphImpl::Used& used() const { return used_; }
  // Checks the lengths of names and the numbers of inputs and attributes, in constant time.
  absl::Status CheckNode(const NodeDef& node) const;
  // Checks the values of the attributes. REQUIRES: the attributes of the op are valid.
  absl::Status CheckAttrs(const NodeDef& node);
  // Checks the values of the attributes of a node whose op is not registered.
  absl::Status CheckUnknownAttrs(const NodeDef& node);
  // Counts the list outputs of one more node.
  absl::Status CountListOutputs(int outputs);

 private:
  // States whether the tensors of an attribute are known to be valid.
  enum class Tensors { kValid, kUnknown };

  absl::Status CheckName(absl::string_view what, absl::string_view name) const;
  // Checks a value of attribute `name` that is nested in `depth` functions.
  absl::Status CheckValue(absl::string_view name, const AttrValue& value, Tensors tensors,
                          int depth);
  absl::Status CheckFloat(absl::string_view name, float value) const;
  absl::Status CheckFunctionValue(absl::string_view name, const NameAttrList& function,
                                  Tensors tensors, int depth);
  // Counts the bytes of a tensor.
  absl::Status AddTensor(absl::string_view name, const TensorProto& tensor, Tensors tensors);
  absl::Status CheckLibrary(const FunctionDefLibrary& library);
  absl::Status CheckFunction(const FunctionDef& function);
  absl::Status CheckSignature(const OpDef& signature);
  // Checks the names of repeated messages, which must be unique.
  template <typename Messages>
  absl::Status CheckDeclared(absl::string_view what, const Messages& messages) const;
  // Checks a map of attributes that no op definition describes.
  template <typename Attrs>
  absl::Status CheckFunctionAttrs(const Attrs& attrs);
  // Checks a map from the name of a result to "node:output:index", an argument or a node.
  template <typename Results>
  absl::Status CheckResults(absl::string_view what, const Results& results) const;

  const ImportGraphDefOptions& options_;
  GraphImpl::Used used_;
  uint32_t time_checks_ = 0;
};

}  // namespace internal
}  // namespace gradflow

#endif  // GRADFLOW_GRAPH_IMPORT_LIMITS_H_
