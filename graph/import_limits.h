// Checks of the sizes of an untrusted GraphDef, and of parts that neither an op definition nor a
// kernel checks. Not for users.
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

// Errors are INVALID_ARGUMENT and name the limit. Those of nodes say the local fact; the caller
// adds NodePrefix.
class LimitChecks {
 public:
  // `before` is what earlier imports into the graph have used.
  LimitChecks(const ImportGraphDefOptions& options, const GraphImpl::Used& before)
      : options_(options), used_(before) {}

  // Checks the numbers of nodes and functions, and the functions themselves. The graph of `before`
  // is what `graph` is added to.
  absl::Status CheckGraph(const GraphDef& graph, const GraphDef& before);
  // Returns DEADLINE_EXCEEDED if the time is over. Looks at the clock at every 64th call.
  absl::Status CheckTime();
  // Checks the bytes of the inferred shapes.
  absl::Status CheckShapeBytes(int64_t bytes) const;
  // Returns the parts of the limits that this and earlier imports have used.
  const GraphImpl::Used& used() const { return used_; }
  // Checks the lengths of names and the numbers of inputs and attributes, in constant time.
  absl::Status CheckNode(const NodeDef& node) const;
  // Checks the values of the attributes. REQUIRES: those of the op are valid.
  absl::Status CheckAttrs(const NodeDef& node);
  // Counts the outputs of one more node that are elements of lists.
  absl::Status CountListOutputs(int outputs);

 private:
  // Says if the tensors of an attribute are known to be valid.
  enum class Tensors { kValid, kUnknown };

  absl::Status CheckName(absl::string_view what, absl::string_view name) const;
  // Checks a value of attribute `name`, which is inside `depth` functions.
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
  // Checks the names of repeated messages, each of which must be unique.
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
