#include <cstdint>
#include <string>
#include <vector>

#include "absl/base/casts.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "gradflow/core/types.h"
#include "gradflow/graph/node_checks.h"
#include "gradflow/proto/attr_value.pb.h"
#include "gradflow/proto/node_def.pb.h"
#include "gradflow/proto/op_def.pb.h"
#include "gradflow/runtime/plan/op_traits.h"
#include "gradflow/runtime/plan/optimize.h"

namespace gradflow {
namespace {

// Attributes of more bytes are not compared.
constexpr size_t kMaxAttrBytes = 4096;

// Returns true for shapes, tensors and lists, which are hashed in the wire format.
bool IsCompound(const AttrValue& value) {
  return value.value_case() == AttrValue::kShape || value.value_case() == AttrValue::kTensor ||
         value.value_case() == AttrValue::kList;
}

// Hashes an attribute. Returns false if it is not compared.
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

// The number of a value that a node takes: equal numbers mean the same value. REQUIRES: the nodes
// have their final positions
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

// Hashes nodes that may be eliminated.
class NodeHasher {
 public:
  explicit NodeHasher(const PlanNodes& nodes) : nodes_(nodes) {}

  // Returns true if the node may be eliminated, and sets *hash then.
  bool Hash(const Node& node, size_t* hash) {
    // The sources of a node that was folded before are unknown.
    if (!IsPure(node) || nodes_.ConstantOf(node) != nullptr) return false;
    size_t attrs = absl::HashOf(&node.output_types());
    if (!TypesTellAttrs(node)) {
      // Attributes are unordered.
      for (const auto& [name, value] : node.def().attr()) {
        size_t attr;
        if (!HashAttr(value, &scratch_, &attr)) return false;
        attrs += absl::HashOf(name, attr);
      }
    }
    size_t sources = 0;
    for (const Node::Source& source : node.sources()) {
      const SourceNumber number = NumberOf(nodes_, source);
      sources = absl::HashOf(sources, number.from, number.output);
    }
    *hash = absl::HashOf(&node.op(), attrs, sources);
    return true;
  }

 private:
  bool TypesTellAttrs(const Node& node) {
    const auto [it, is_new] = types_tell_attrs_.try_emplace(&node.op());
    if (is_new) it->second = AttrsThatFollowFromTypes(node.op_def()).all;
    return it->second && !internal::HasExtraAttrs(node);
  }

  const PlanNodes& nodes_;
  absl::flat_hash_map<const OpRegistration*, bool> types_tell_attrs_;
  std::string scratch_;
};

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

void EliminateCommonSubexpressions(PlanNodes* nodes) {
  // By position; only for nodes that may be eliminated.
  std::vector<size_t> hashes(nodes->order.size());
  const auto hash_of = [&](int32_t i) { return hashes[i]; };
  const auto same = [&](int32_t a, int32_t b) {
    return hashes[a] == hashes[b] && Same(*nodes, *nodes->order[a], *nodes->order[b]);
  };
  absl::flat_hash_set<int32_t, decltype(hash_of), decltype(same)> kept(nodes->order.size(), hash_of,
                                                                       same);
  NodeHasher hasher(*nodes);
  int32_t end = 0;
  const size_t size = nodes->order.size();
  for (size_t i = 0; i < size; ++i) {
    const Node* const node = nodes->order[i];
    if (i + kNodesAhead < size) PrefetchNode(nodes->order[i + kNodesAhead]);
    if (i + kNodesAhead / 2 < size) __builtin_prefetch(&nodes->order[i + kNodesAhead / 2]->def());
    // Appends it to the nodes that are kept. It stays there unless it equals one of them.
    nodes->order[end] = node;
    int32_t& position = nodes->position[node->id()];
    position = end;
    if (hasher.Hash(*node, &hashes[end])) position = *kept.insert(end).first;
    if (position == end) ++end;
  }
  nodes->order.resize(end);
}

}  // namespace gradflow
