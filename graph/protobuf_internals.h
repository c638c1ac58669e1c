// All undocumented interfaces of Protocol Buffers that graph/ uses. Internal.
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

// ---- Ownership of the NodeDefs of a graph; some may be in an arena ----

// Makes an arena whose blocks are in huge pages.
std::unique_ptr<google::protobuf::Arena> MakeGraphArena();
// Adds a string that lives as long as the message of the field. REQUIRES: the message is in an
// arena.
void AddBorrowed(const std::string& value, google::protobuf::RepeatedPtrField<std::string>* field);
// Replaces element `i` by such a string. Other messages may have borrowed the old element.
void SetBorrowed(int i, const std::string& value,
                 google::protobuf::RepeatedPtrField<std::string>* field);
// Appends a node. The graph owns it unless it is in an arena. If this throws, `node` still owns it.
void AddNodeDef(NodeDefPtr&& node, GraphDef* graph);
// Removes all nodes. Deletes them, except nodes in an arena.
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
// Returns the encoding of the field's value, or of an element of a repeated field.
WireType WireTypeOf(const google::protobuf::FieldDescriptor& field);

// Returns true if protobuf accepts `text` as a string.
bool IsUtf8(absl::string_view text);

}  // namespace internal
}  // namespace gradflow

#endif  // GRADFLOW_GRAPH_PROTOBUF_INTERNALS_H_
