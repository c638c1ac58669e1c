// Checks of a node before it becomes part of a graph. Internal.
//
// Errors are INVALID_ARGUMENT unless noted, and state the local fact; the caller adds NodePrefix.
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

// Returns `text` in quotes, escaped and shortened, for messages about untrusted input.
std::string Quoted(absl::string_view text);
// Returns "'name' (Op)".
std::string NodeTitle(const NodeDef& node);
std::string NodeTitle(absl::string_view name, absl::string_view op);
// Returns "node 'name' (Op): ".
std::string NodePrefix(const NodeDef& node);

// Checks that a name consists of letters, digits and '.'. After the first character, '_', '-', '/'
// and '>' are also allowed.
absl::Status CheckNodeName(absl::string_view name);

// Returns true if both nodes have bitwise equal attributes. 0.0 differs from -0.0, and two
// encodings of a tensor differ. Returns false if an attribute holds a function.
bool HaveSameAttrs(const NodeDef& a, const NodeDef& b);

// Returns true if the node has attributes that its op does not define.
bool HasExtraAttrs(const Node& node);

// Returns UNIMPLEMENTED if graphs of the version `producer` may not use the op.
absl::Status CheckDeprecation(const OpDef& op_def, int producer);

// Looks up the node's inputs: data inputs, then control inputs. `find` returns the node with a
// name, or null. The output types of this node must already be set.
using Sources = absl::InlinedVector<Node::Source, 4>;
absl::Status ResolveInputs(const NodeDef& node,
                           absl::FunctionRef<const Node*(absl::string_view name)> find,
                           Sources* sources);

// Returns true if an output of type `found` may be an input of type `expected`.
bool IsInputType(DataType found, DataType expected);
// Returns "input b ('y:1') has type int32, expected float (attribute T)".
absl::Status WrongInputType(const OpDef& op_def, const NodeDef& node, int input, DataType found,
                            DataType expected);

// Checks that the nodes that the node is colocated with (attribute _class) exist.
absl::Status CheckColocation(const NodeDef& node,
                             absl::FunctionRef<bool(absl::string_view name)> exists);

inline constexpr char kColocationAttr[] = "_class";
inline constexpr char kColocationPrefix[] = "loc:@";

}  // namespace internal
}  // namespace gradflow

#endif  // GRADFLOW_GRAPH_NODE_CHECKS_H_
