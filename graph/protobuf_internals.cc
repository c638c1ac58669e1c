#include "gradflow/graph/protobuf_internals.h"

#include <google/protobuf/arena.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/stubs/common.h>
#include <google/protobuf/wire_format_lite.h>

#include <utility>
#include <vector>

#include "gradflow/core/huge_pages.h"
#include "gradflow/proto/graph.pb.h"

namespace gradflow::internal {

using google::protobuf::Arena;
using google::protobuf::ArenaOptions;
using google::protobuf::internal::WireFormatLite;

static_assert(kVarint == static_cast<int>(WireFormatLite::WIRETYPE_VARINT) &&
              kFixed64 == static_cast<int>(WireFormatLite::WIRETYPE_FIXED64) &&
              kLength == static_cast<int>(WireFormatLite::WIRETYPE_LENGTH_DELIMITED) &&
              kStartGroup == static_cast<int>(WireFormatLite::WIRETYPE_START_GROUP) &&
              kEndGroup == static_cast<int>(WireFormatLite::WIRETYPE_END_GROUP) &&
              kFixed32 == static_cast<int>(WireFormatLite::WIRETYPE_FIXED32));

std::unique_ptr<Arena> MakeGraphArena() {
  ArenaOptions options;
  // Blocks grow up to this size.
  options.max_block_size = kHugePageBytes;
  options.block_alloc = AllocateBlock;
  options.block_dealloc = FreeBlock;
  return std::make_unique<Arena>(options);
}

void AddBorrowed(const std::string& value, google::protobuf::RepeatedPtrField<std::string>* field) {
  // A message in an arena deletes no element, and no caller changes an element through a const
  // message.
  field->UnsafeArenaAddAllocated(const_cast<std::string*>(&value));
}

void SetBorrowed(int i, const std::string& value,
                 google::protobuf::RepeatedPtrField<std::string>* field) {
  std::vector<std::string*> elements(static_cast<size_t>(field->size()));
  field->UnsafeArenaExtractSubrange(0, field->size(), elements.data());
  elements[static_cast<size_t>(i)] = const_cast<std::string*>(&value);
  for (std::string* element : elements) field->UnsafeArenaAddAllocated(element);
}

void AddNodeDef(NodeDefPtr&& node, GraphDef* graph) {
  graph->mutable_node()->Reserve(graph->node_size() + 1);
  // AddAllocated would copy a node that is in an arena.
  graph->mutable_node()->UnsafeArenaAddAllocated(node.release());
}

void ClearNodeDefs(GraphDef* graph) {
  // The destructor of the GraphDef would delete all nodes, including nodes in an arena.
  auto& nodes = *graph->mutable_node();
  while (!nodes.empty()) NodeDefPtr(nodes.UnsafeArenaReleaseLast()).reset();
}

WireType WireTypeOf(const google::protobuf::FieldDescriptor& field) {
  return static_cast<WireType>(
      WireFormatLite::WireTypeForFieldType(static_cast<WireFormatLite::FieldType>(field.type())));
}

bool IsUtf8(absl::string_view text) {
  return google::protobuf::internal::IsStructurallyValidUTF8(text.data(),
                                                             static_cast<int>(text.size()));
}

}  // namespace gradflow::internal
