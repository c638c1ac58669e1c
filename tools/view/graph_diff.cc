#include "tools/view/graph_diff.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "gradflow/core/attributes.h"
#include "gradflow/core/op_def_util.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"

namespace gradflow::tools {
namespace {

using Source = AnalyzedGraph::Source;

uint64_t Mix(uint64_t hash, uint64_t value) {
  // The finalizer of SplitMix64.
  uint64_t x = hash + value + 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

uint64_t HashText(absl::string_view text) {
  return std::hash<std::string_view>()(std::string_view(text.data(), text.size()));
}

// Returns the definition of the op of a node; null if the op is not registered.
const OpDef* RegisteredDef(const NodeDef& node) {
  const OpRegistration* const op = GlobalRegistry().FindOp(node.op());
  return op == nullptr ? nullptr : &op->def();
}

// Returns the same bytes for equal values. Maps are sorted.
std::string Bytes(const AttrValue& value) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  value.SerializeToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

struct Hashes {
  // The computation of each node: its op, its attributes, and the hashes of its inputs.
  std::vector<uint64_t> whole;
  // For a node that reads both constants and other values: its op, its attributes and its
  // constants, because a layer keeps its weights if it moves. 0 for other nodes.
  std::vector<uint64_t> parameters;
};

Hashes HashNodes(const AnalyzedGraph& graph) {
  Hashes hashes;
  hashes.whole.resize(graph.def.node_size());
  hashes.parameters.resize(graph.def.node_size());
  std::vector<bool> is_constant(graph.def.node_size());
  std::vector<int> order = ProducersFirst(graph.sources);
  // Nodes of cycles come last.
  std::vector<bool> is_ordered(graph.def.node_size());
  for (const int i : order) is_ordered[i] = true;
  for (int i = 0; i < graph.def.node_size(); ++i) {
    if (!is_ordered[i]) order.push_back(i);
  }
  for (const int i : order) {
    const NodeDef& node = graph.def.node(i);
    const std::vector<Source>& sources = graph.sources[i];
    uint64_t hash = HashText(node.op());
    for (const auto& [name, value] : OwnAttrs(node, RegisteredDef(node))) {
      hash = Mix(Mix(hash, HashText(name)), HashText(Bytes(*value)));
    }
    uint64_t parameters = hash;
    size_t num_constants = 0;
    // A placeholder is identified only by its name.
    if (sources.empty() && node.op() != "Const") hash = Mix(hash, HashText(node.name()));
    for (const Source& source : sources) {
      const uint64_t value = source.node < 0 ? 0 : hashes.whole[source.node];
      hash = Mix(Mix(hash, value), source.output + 1);
      const bool is_parameter = source.node >= 0 && source.output >= 0 && is_constant[source.node];
      if (is_parameter) ++num_constants;
      parameters = Mix(parameters, is_parameter ? value : 0);
    }
    is_constant[i] = sources.empty() ? node.op() == "Const" : num_constants == sources.size();
    hashes.whole[i] = hash;
    if (num_constants > 0 && !is_constant[i]) hashes.parameters[i] = parameters;
  }
  return hashes;
}

class Matcher {
 public:
  Matcher(const AnalyzedGraph& old_graph, const AnalyzedGraph& new_graph)
      : old_(old_graph), new_(new_graph) {
    diff_.new_of_old.assign(old_.def.node_size(), -1);
    diff_.old_of_new.assign(new_.def.node_size(), -1);
    diff_.changes.resize(new_.def.node_size());
  }

  GraphDiff Run() {
    const Hashes old_hashes = HashNodes(old_);
    const Hashes new_hashes = HashNodes(new_);
    const auto hashes = [&](const AnalyzedGraph& graph) -> const Hashes& {
      return &graph == &old_ ? old_hashes : new_hashes;
    };
    const auto name = [](const AnalyzedGraph& graph, int i) {
      return HashText(graph.def.node(i).name());
    };
    const auto op = [](const AnalyzedGraph& graph, int i) {
      return HashText(graph.def.node(i).op());
    };
    const auto whole = [&](const AnalyzedGraph& g, int i) { return hashes(g).whole[i]; };
    const auto parameters = [&](const AnalyzedGraph& g, int i) { return hashes(g).parameters[i]; };
    const auto whole_and_name = [&](const AnalyzedGraph& g, int i) {
      return Mix(whole(g, i), name(g, i));
    };
    // First, nodes other than constants that are the same in all respects. Constants of several
    // layers may be equal, and must stay with their layers.
    MatchByKey([&](const AnalyzedGraph& g, int i) {
      return g.def.node(i).op() == "Const" ? 0 : whole_and_name(g, i);
    });
    // Then nodes that are the only ones with their computation or their constants, and the
    // neighbors of such nodes if the names differ: layers may have moved and taken the names of
    // other layers.
    MatchUnique(whole);
    MatchUnique(parameters);
    MatchNeighbors(/*only_of_renamed=*/true);
    MatchByKey(whole_and_name);
    // Then nodes with equal op and name, and then one of several nodes with the same computation.
    MatchByKey([&](const AnalyzedGraph& g, int i) { return Mix(op(g, i), name(g, i)); });
    MatchByKey(whole);
    MatchNeighbors(/*only_of_renamed=*/false);
    MatchByKey(name);
    for (int i = 0; i < new_.def.node_size(); ++i) {
      if (diff_.old_of_new[i] >= 0) diff_.changes[i] = Changes(diff_.old_of_new[i], i);
    }
    return std::move(diff_);
  }

 private:
  void Match(int old_node, int new_node) {
    diff_.new_of_old[old_node] = new_node;
    diff_.old_of_new[new_node] = old_node;
  }
  bool IsFree(int old_node, int new_node) const {
    return diff_.new_of_old[old_node] < 0 && diff_.old_of_new[new_node] < 0;
  }

  // Matches nodes with equal keys, in their order. Ignores the key 0.
  template <typename Key>
  void MatchByKey(const Key& key) {
    std::unordered_map<uint64_t, std::vector<int>> free;
    for (int i = old_.def.node_size() - 1; i >= 0; --i) {
      if (diff_.new_of_old[i] < 0 && key(old_, i) != 0) free[key(old_, i)].push_back(i);
    }
    for (int i = 0; i < new_.def.node_size(); ++i) {
      if (diff_.old_of_new[i] >= 0) continue;
      const auto found = free.find(key(new_, i));
      if (found == free.end() || found->second.empty()) continue;
      Match(found->second.back(), i);
      found->second.pop_back();
    }
  }

  // Matches nodes with equal keys if no other free node of their graphs has the key. Ignores the
  // key 0.
  template <typename Key>
  void MatchUnique(const Key& key) {
    const auto find = [&](const AnalyzedGraph& graph, const std::vector<int>& match) {
      // The node of each key; -1 if several nodes have the key.
      std::unordered_map<uint64_t, int> nodes;
      for (int i = 0; i < graph.def.node_size(); ++i) {
        if (match[i] >= 0 || key(graph, i) == 0) continue;
        const auto [place, is_new] = nodes.emplace(key(graph, i), i);
        if (!is_new) place->second = -1;
      }
      return nodes;
    };
    const auto old_nodes = find(old_, diff_.new_of_old);
    for (const auto& [value, new_node] : find(new_, diff_.old_of_new)) {
      const auto found = old_nodes.find(value);
      if (new_node >= 0 && found != old_nodes.end() && found->second >= 0) {
        Match(found->second, new_node);
      }
    }
  }

  // Matches nodes with the same op that are the same input of matched nodes, or read the same
  // outputs of matched nodes. With `only_of_renamed`, begins only at matches with different names.
  void MatchNeighbors(bool only_of_renamed) {
    std::vector<int> work;
    for (int i = 0; i < new_.def.node_size(); ++i) {
      const int old_node = diff_.old_of_new[i];
      if (old_node < 0) continue;
      if (only_of_renamed && old_.def.node(old_node).name() == new_.def.node(i).name()) continue;
      work.push_back(i);
    }
    const Consumers old_consumers = FreeConsumers(old_, diff_.new_of_old);
    const Consumers new_consumers = FreeConsumers(new_, diff_.old_of_new);
    const auto match_if_alike = [&](int old_node, int new_node) {
      if (old_node < 0 || new_node < 0 || !IsFree(old_node, new_node) ||
          old_.def.node(old_node).op() != new_.def.node(new_node).op()) {
        return;
      }
      Match(old_node, new_node);
      work.push_back(new_node);
    };
    for (size_t next = 0; next < work.size(); ++next) {
      const int new_node = work[next];
      const int old_node = diff_.old_of_new[new_node];
      const std::vector<Source>& old_sources = old_.sources[old_node];
      const std::vector<Source>& new_sources = new_.sources[new_node];
      for (size_t k = 0; k < std::min(old_sources.size(), new_sources.size()); ++k) {
        match_if_alike(old_sources[k].node, new_sources[k].node);
      }
      const auto old_found = old_consumers.find(old_node);
      const auto new_found = new_consumers.find(new_node);
      if (old_found == old_consumers.end() || new_found == new_consumers.end()) continue;
      for (size_t k = 0; k < std::min(old_found->second.size(), new_found->second.size()); ++k) {
        match_if_alike(old_found->second[k], new_found->second[k]);
      }
    }
  }

  // For each node, its consumers without a match.
  using Consumers = std::unordered_map<int, std::vector<int>>;
  static Consumers FreeConsumers(const AnalyzedGraph& graph, const std::vector<int>& match) {
    Consumers consumers;
    for (int i = 0; i < graph.def.node_size(); ++i) {
      if (match[i] >= 0) continue;
      for (const Source& source : graph.sources[i]) {
        if (source.node >= 0) consumers[source.node].push_back(i);
      }
    }
    return consumers;
  }

  std::vector<std::string> Changes(int old_node, int new_node) const {
    const NodeDef& from = old_.def.node(old_node);
    const NodeDef& to = new_.def.node(new_node);
    std::vector<std::string> changes;
    const auto add = [&](absl::string_view what, absl::string_view before,
                         absl::string_view after) {
      // A hostile graph may have any number of changes.
      constexpr size_t kMaxChanges = 100;
      constexpr size_t kMaxText = 1000;
      if (changes.size() == kMaxChanges) {
        changes.push_back("...");
      } else if (changes.size() < kMaxChanges) {
        changes.push_back(absl::StrCat(errors::Printable(what, kMaxText), ": ",
                                       errors::Printable(before, kMaxText), " -> ",
                                       errors::Printable(after, kMaxText)));
      }
    };
    if (from.name() != to.name()) add("name", from.name(), to.name());
    if (from.op() != to.op()) add("op", from.op(), to.op());
    if (from.device() != to.device()) add("device", from.device(), to.device());
    AddAttrChanges(from, to, add);
    AddShapeChanges(old_node, new_node, add);
    const std::vector<Source>& before = old_.sources[old_node];
    const std::vector<Source>& after = new_.sources[new_node];
    for (size_t k = 0; k < std::max(before.size(), after.size()); ++k) {
      if (k < before.size() && k < after.size() && IsSameSource(before[k], after[k], from, to, k)) {
        continue;
      }
      add(absl::StrCat("input ", k), k < before.size() ? from.input(k) : "(none)",
          k < after.size() ? to.input(k) : "(none)");
    }
    return changes;
  }

  bool IsSameSource(const Source& before, const Source& after, const NodeDef& from,
                    const NodeDef& to, int k) const {
    if (before.node < 0 || after.node < 0) return from.input(k) == to.input(k);
    return diff_.new_of_old[before.node] == after.node && before.output == after.output;
  }

  template <typename Add>
  static void AddAttrChanges(const NodeDef& from, const NodeDef& to, const Add& add) {
    const auto before = OwnAttrs(from, RegisteredDef(from));
    const auto after = OwnAttrs(to, RegisteredDef(to));
    const auto text = [](const auto& attrs, absl::string_view name) {
      const auto found = attrs.find(name);
      return found == attrs.end() ? std::string("(default)") : SummarizeAttrValue(*found->second);
    };
    std::map<absl::string_view, const AttrValue*> all = before;
    all.insert(after.begin(), after.end());
    for (const auto& [name, value] : all) {
      const auto in_before = before.find(name);
      const auto in_after = after.find(name);
      if (in_before != before.end() && in_after != after.end() &&
          AreAttrValuesEqual(*in_before->second, *in_after->second)) {
        continue;
      }
      add(absl::StrCat("attr ", name), text(before, name), text(after, name));
    }
  }

  template <typename Add>
  void AddShapeChanges(int old_node, int new_node, const Add& add) const {
    const Node* const before = old_.nodes[old_node];
    const Node* const after = new_.nodes[new_node];
    if (before == nullptr || after == nullptr) return;
    constexpr int kMaxOutputs = 64;
    const int outputs = std::min({before->num_outputs(), after->num_outputs(), kMaxOutputs});
    for (int i = 0; i < outputs; ++i) {
      if (before->output_type(i) == after->output_type(i) &&
          before->output_shape(i).IsIdenticalTo(after->output_shape(i))) {
        continue;
      }
      const auto text = [i](const Node& node) {
        return absl::StrCat(DataTypeString(node.output_type(i)), " ",
                            ShapeText(node.output_shape(i)));
      };
      add(absl::StrCat("output ", i), text(*before), text(*after));
    }
  }

  const AnalyzedGraph& old_;
  const AnalyzedGraph& new_;
  GraphDiff diff_;
};

}  // namespace

GraphDiff DiffGraphs(const AnalyzedGraph& old_graph, const AnalyzedGraph& new_graph) {
  return Matcher(old_graph, new_graph).Run();
}

}  // namespace gradflow::tools
