// EliminateCommonSubexpressions() (passes.h).
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
#include "gradflow/runtime/plan/passes.h"
#include "gradflow/runtime/plan/prefetch.h"

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

// Hashes nodes that may be eliminated.
class NodeHasher {
 public:
  explicit NodeHasher(const PlanGraph& graph) : graph_(graph) {}

  // Sets *hash and returns true if the node may be eliminated.
  bool Hash(int32_t index, size_t* hash) {
    const Node& node = graph_.origin(index);
    // The sources of a node that is already folded are unknown.
    if (!graph_.is_original(index) || graph_.has_known_value(index) || !IsPure(node)) return false;
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
    for (int i = 0; i < graph_.num_edges(index); ++i) {
      const PlanGraph::Value source = graph_.edge(index, i);
      sources = absl::HashOf(sources, source.node, source.output);
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

  const PlanGraph& graph_;
  absl::flat_hash_map<const OpRegistration*, bool> types_tell_attrs_;
  std::string scratch_;
};

bool Same(const PlanGraph& graph, int32_t i, int32_t j) {
  const Node& a = graph.origin(i);
  const Node& b = graph.origin(j);
  if (&a.op() != &b.op() || graph.num_edges(i) != graph.num_edges(j) ||
      graph.num_inputs(i) != graph.num_inputs(j)) {
    return false;
  }
  for (int edge = 0; edge < graph.num_edges(i); ++edge) {
    if (!(graph.edge(i, edge) == graph.edge(j, edge))) return false;
  }
  return a.requested_device() == b.requested_device() && internal::HaveSameAttrs(a.def(), b.def());
}

}  // namespace

absl::Status EliminateCommonSubexpressions(const PassContext& context, PlanGraph* graph) {
  if (!context.options.eliminate_common_subexpressions) return absl::OkStatus();
  // Indexed by node; set only for nodes that may be eliminated.
  std::vector<size_t> hashes(graph->num_nodes());
  const auto hash_of = [&](int32_t i) { return hashes[i]; };
  const auto same = [&](int32_t a, int32_t b) {
    return hashes[a] == hashes[b] && Same(*graph, a, b);
  };
  absl::flat_hash_set<int32_t, decltype(hash_of), decltype(same)> kept(graph->num_nodes(), hash_of,
                                                                       same);
  NodeHasher hasher(*graph);
  const absl::Span<const int32_t> order = graph->order();
  for (size_t i = 0; i < order.size(); ++i) {
    if (i + kNodesAhead < order.size()) PrefetchNode(&graph->origin(order[i + kNodesAhead]));
    if (i + kNodesAhead / 2 < order.size()) {
      __builtin_prefetch(&graph->origin(order[i + kNodesAhead / 2]).def());
    }
    const int32_t node = order[i];
    if (!hasher.Hash(node, &hashes[node])) continue;
    const int32_t first = *kept.insert(node).first;
    if (first != node) graph->Replace(node, first);
  }
  return graph->Prune();
}

}  // namespace gradflow
