#include <cstdint>
#include <string>
#include <vector>

#include "absl/base/casts.h"
#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "gradflow/core/types.h"
#include "gradflow/graph/node_checks.h"
#include "gradflow/proto/attr_value.pb.h"
#include "gradflow/proto/node_def.pb.h"
#include "gradflow/proto/op_def.pb.h"
#include "gradflow/runtime/optimize.h"

namespace gradflow {
namespace {

// Bytes of an attribute beyond which it is not compared.
constexpr size_t kMaxAttrBytes = 4096;

// Shapes, tensors and lists are hashed in the wire format.
bool IsCompound(const AttrValue& value) {
  return value.value_case() == AttrValue::kShape || value.value_case() == AttrValue::kTensor ||
         value.value_case() == AttrValue::kList;
}

// False for what is not compared.
bool HashAttr(const AttrValue& value, std::string* scratch, size_t* hash) {
  switch (value.value_case()) {
    case AttrValue::kType:
      *hash = absl::HashOf(static_cast<int>(value.type()));
      return true;
    case AttrValue::kI:
      *hash = absl::HashOf(value.i());
      return true;
    case AttrValue::kF:
      *hash = absl::HashOf(absl::bit_cast<uint32_t>(value.f()));
      return true;
    case AttrValue::kB:
      *hash = absl::HashOf(value.b());
      return true;
    case AttrValue::kS:
      *hash = absl::HashOf(value.s());
      return true;
    default:
      break;
  }
  if (!IsCompound(value) || value.ByteSizeLong() > kMaxAttrBytes) return false;
  scratch->clear();
  if (!value.AppendPartialToString(scratch)) return false;
  *hash = absl::HashOf(*scratch);
  return true;
}

// Where a node takes a value from, by number: the same number is the same value. Nodes are to have
// their final positions.
struct SourceNumber {
  int32_t from;
  int32_t output;
  friend bool operator==(SourceNumber a, SourceNumber b) {
    return a.from == b.from && a.output == b.output;
  }
};
SourceNumber NumberOf(const PlanNodes& nodes, const Node::Source& source) {
  constexpr int32_t kFed = -3;
  constexpr int32_t kCutControl = -4;
  if (source.output < 0) {
    return {nodes.IsCut(source) ? kCutControl : nodes.PositionOf(*source.node), -1};
  }
  const int feed = nodes.FeedOf(*source.node, source.output);
  if (feed >= 0) return {kFed, feed};
  return {nodes.PositionOf(*source.node), source.output};
}

// Whether the node may be merged, and then its hash.
bool HashNode(const PlanNodes& nodes, const Node& node, std::string* scratch, size_t* hash) {
  if (!IsPure(node)) return false;
  // Attributes are in no order.
  size_t attrs = 0;
  for (const auto& [name, value] : node.def().attr()) {
    size_t attr;
    if (!HashAttr(value, scratch, &attr)) return false;
    attrs += absl::HashOf(name, attr);
  }
  size_t sources = 0;
  for (const Node::Source& source : node.sources()) {
    const SourceNumber number = NumberOf(nodes, source);
    sources = absl::HashOf(sources, number.from, number.output);
  }
  *hash = absl::HashOf(&node.op(), attrs, sources);
  return true;
}

bool Same(const PlanNodes& nodes, const Node& a, const Node& b) {
  if (&a.op() != &b.op() || a.sources().size() != b.sources().size() ||
      a.num_inputs() != b.num_inputs()) {
    return false;
  }
  for (size_t i = 0; i < a.sources().size(); ++i) {
    if (!(NumberOf(nodes, a.sources()[i]) == NumberOf(nodes, b.sources()[i]))) return false;
  }
  return a.requested_device() == b.requested_device() && internal::HaveSameAttrs(a.def(), b.def());
}

}  // namespace

bool IsPure(const Node& node) {
  if (node.op_def().is_stateful() || node.num_outputs() == 0 || IsPlaceholder(node)) return false;
  for (const OpDef::ArgDef& arg : node.op_def().input_arg()) {
    if (arg.is_ref()) return false;
  }
  for (const DataType dtype : node.output_types()) {
    if (IsRefType(dtype) || dtype == DT_RESOURCE) return false;
  }
  return true;
}

void MergeIdenticalNodes(PlanNodes* nodes) {
  // By position, of nodes that may be merged.
  std::vector<size_t> hashes(nodes->order.size());
  const auto hash_of = [&](int32_t i) { return hashes[i]; };
  const auto same = [&](int32_t a, int32_t b) {
    return hashes[a] == hashes[b] && Same(*nodes, *nodes->order[a], *nodes->order[b]);
  };
  absl::flat_hash_set<int32_t, decltype(hash_of), decltype(same)> kept(nodes->order.size(), hash_of,
                                                                       same);
  std::string scratch;
  int32_t end = 0;
  for (const Node* node : nodes->order) {
    // It is put behind those that are kept, to stay there unless it equals one of them.
    nodes->order[end] = node;
    int32_t& position = nodes->position[node->id()];
    position = end;
    if (HashNode(*nodes, *node, &scratch, &hashes[end])) position = *kept.insert(end).first;
    if (position == end) ++end;
  }
  nodes->order.resize(end);
}

}  // namespace gradflow
