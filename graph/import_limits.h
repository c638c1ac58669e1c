// What ImportGraphDef checks by itself of a GraphDef from a stranger: how large its parts are, and
// what neither an op definition nor a kernel looks at. Not for users.
#ifndef GRADFLOW_GRAPH_IMPORT_LIMITS_H_
#define GRADFLOW_GRAPH_IMPORT_LIMITS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gradflow/graph/import.h"

namespace gradflow {

class AttrValue;
class FunctionDef;
class FunctionDefLibrary;
class NodeDef;
class OpDef;

namespace internal {

// Errors are INVALID_ARGUMENT and name the limit; those of nodes say the local fact, and the caller
// adds NodePrefix.
class LimitChecks {
 public:
  explicit LimitChecks(const ImportGraphDefOptions& options) : options_(options) {}

  // How many nodes and functions there are, and the functions themselves.
  absl::Status CheckGraph(const GraphDef& graph);
  // How long names are, and how many inputs and attributes; in a time that does not depend on
  // these.
  absl::Status CheckNode(const NodeDef& node) const;
  // The values of the attributes. REQUIRES: those of the op are valid
  absl::Status CheckAttrs(const NodeDef& node);
  // Of one more node, the outputs that are elements of lists.
  absl::Status CountListOutputs(int outputs);

 private:
  // Whether those of an attribute are known to be valid.
  enum class Tensors { kValid, kUnknown };

  absl::Status CheckName(absl::string_view what, absl::string_view name) const;
  absl::Status CheckValue(absl::string_view name, const AttrValue& value, Tensors tensors,
                          int depth);
  absl::Status CheckLibrary(const FunctionDefLibrary& library);
  absl::Status CheckFunction(const FunctionDef& function);
  absl::Status CheckSignature(const OpDef& signature);
  // The names of repeated messages: also that none is there twice.
  template <typename Messages>
  absl::Status CheckDeclared(absl::string_view what, const Messages& messages) const;
  // A map of attributes, which no op's definition describes.
  template <typename Attrs>
  absl::Status CheckFunctionAttrs(const Attrs& attrs);
  // A map from the name of a result to "node:output:index", an argument or a node.
  template <typename Results>
  absl::Status CheckResults(absl::string_view what, const Results& results) const;

  const ImportGraphDefOptions& options_;
  // Of all attributes so far.
  int64_t constant_bytes_ = 0;
  // Of all nodes so far.
  int64_t list_outputs_ = 0;
};

}  // namespace internal
}  // namespace gradflow

#endif  // GRADFLOW_GRAPH_IMPORT_LIMITS_H_
