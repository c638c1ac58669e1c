// What is checked of a node before it is part of a graph, wherever it comes from. Not for users.
//
// Unless said otherwise errors are INVALID_ARGUMENT and say the local fact; the caller adds
// NodePrefix.
#ifndef GRADFLOW_GRAPH_NODE_CHECKS_H_
#define GRADFLOW_GRAPH_NODE_CHECKS_H_

#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/types.h"
#include "gradflow/graph/node.h"

namespace gradflow {

class NodeDef;
class OpDef;

namespace internal {

// `text` in quotes, for messages: escaped and cut, since it may be anything.
std::string Quoted(absl::string_view text);
// "node 'name' (Op): "
std::string NodePrefix(const NodeDef& node);

// Letters, digits and '.'; behind the first character also '_', '-', '/' and '>'.
absl::Status CheckNodeName(absl::string_view name);

// Whether both have the same attributes to the bit: 0.0 is not -0.0, nor is a tensor in another
// encoding the same. False for attributes that hold functions.
bool HaveSameAttrs(const NodeDef& a, const NodeDef& b);

// UNIMPLEMENTED if graphs of the version `producer` may not use the op.
absl::Status CheckDeprecation(const OpDef& op_def, int producer);

// Where the node's inputs come from: data inputs, then control inputs. `find` gives the node of a
// name, or null; its outputs must be known.
using Sources = absl::InlinedVector<Node::Source, 4>;
absl::Status ResolveInputs(const NodeDef& node,
                           absl::FunctionRef<const Node*(absl::string_view name)> find,
                           Sources* sources);

// Whether an output of type `found` may be an input of type `expected`.
bool IsInputType(DataType found, DataType expected);
// "input b ('y:1') has type int32, expected float (attribute T)"
absl::Status WrongInputType(const OpDef& op_def, const NodeDef& node, int input, DataType found,
                            DataType expected);

// That the nodes with which the node is to be colocated (attribute _class) exist.
absl::Status CheckColocation(const NodeDef& node,
                             absl::FunctionRef<bool(absl::string_view name)> exists);

inline constexpr char kColocationAttr[] = "_class";
inline constexpr char kColocationPrefix[] = "loc:@";

}  // namespace internal
}  // namespace gradflow

#endif  // GRADFLOW_GRAPH_NODE_CHECKS_H_
