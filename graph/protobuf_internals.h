// Undocumented interfaces of Protocol Buffers that graph/ uses, in one place. Not for users.
#ifndef GRADFLOW_GRAPH_PROTOBUF_INTERNALS_H_
#define GRADFLOW_GRAPH_PROTOBUF_INTERNALS_H_

#include <google/protobuf/repeated_ptr_field.h>

#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "gradflow/graph/node.h"

namespace google::protobuf {
class Arena;
class FieldDescriptor;
}  // namespace google::protobuf

namespace gradflow {

class GraphDef;

namespace internal {

// ---- Ownership of the NodeDefs of a graph, some of which are in an arena ----

// Makes an arena whose blocks are in huge pages.
std::unique_ptr<google::protobuf::Arena> MakeGraphArena();
// Adds a string that lives as long as the message of the field. REQUIRES: the message is in an
// arena.
void AddBorrowed(const std::string& value, google::protobuf::RepeatedPtrField<std::string>* field);
// Appends a node, which the graph owns unless it is in an arena. `node` keeps it if this throws.
void AddNodeDef(NodeDefPtr&& node, GraphDef* graph);
// Removes and deletes all nodes, except that those in an arena are left to it.
void ClearNodeDefs(GraphDef* graph);

// ---- The wire format ----

// The encoding of a value; the lower bits of a tag.
enum WireType {
  kVarint = 0,
  kFixed64 = 1,
  kLength = 2,
  kStartGroup = 3,
  kEndGroup = 4,
  kFixed32 = 5,
};
// Returns the encoding of a value of the field, or of an element if it is repeated.
WireType WireTypeOf(const google::protobuf::FieldDescriptor& field);

// Returns whether protobuf accepts `text` as a string.
bool IsUtf8(absl::string_view text);

}  // namespace internal
}  // namespace gradflow

#endif  // GRADFLOW_GRAPH_PROTOBUF_INTERNALS_H_
