#include "tools/view/dot.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/status.h"
#include "tools/view/graph_json.h"

namespace gradflow::tools {
namespace {

// Bytes of a name.
constexpr size_t kMaxName = 10'240;
// Levels of clusters. Graphviz recurses into them.
constexpr int kMaxClusters = 32;

// Returns untrusted text as a quoted string of the language. Escapes such as \n have a meaning
// there.
std::string DotQuoted(absl::string_view text) {
  std::string quoted = "\"";
  for (const char c : errors::Printable(text, kMaxName)) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

// Joins two quoted strings with the line break of the language.
std::string WithLine(std::string quoted, const std::string& line) {
  quoted.pop_back();
  return absl::StrCat(quoted, "\\n", line.substr(1));
}

class DotWriter {
 public:
  DotWriter(const AnalyzedGraph& graph, const AnalyzedGraph* old_graph, const GraphDiff* diff)
      : graph_(graph), old_(old_graph), diff_(diff) {}

  std::string Write() {
    out_ =
        "digraph gradflow {\n  rankdir=LR;\n  node [shape=box, fontname=\"sans-serif\"];\n"
        "  edge [fontname=\"sans-serif\", fontsize=10];\n";
    for (int i = 0; i < graph_.def.node_size(); ++i) {
      items_.push_back({graph_.def.node(i).name(), &graph_, i});
    }
    if (diff_ != nullptr) {
      for (int i = 0; i < old_->def.node_size(); ++i) {
        if (diff_->new_of_old[i] < 0) items_.push_back({old_->def.node(i).name(), old_, i});
      }
    }
    WriteNodes();
    for (const Item& item : items_) WriteEdges(item);
    return out_ + "}\n";
  }

 private:
  struct Item {
    absl::string_view name;
    const AnalyzedGraph* graph;
    int index;
  };

  // Writes the nodes sorted by scope, and begins and ends clusters between them.
  void WriteNodes() {
    std::vector<std::pair<std::vector<absl::string_view>, const Item*>> sorted;
    for (const Item& item : items_) {
      std::vector<absl::string_view> scopes;
      absl::string_view rest = item.name;
      for (size_t slash = rest.find('/');
           slash != absl::string_view::npos && scopes.size() < kMaxClusters;
           slash = rest.find('/')) {
        scopes.push_back(rest.substr(0, slash));
        rest.remove_prefix(slash + 1);
      }
      sorted.emplace_back(std::move(scopes), &item);
    }
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<absl::string_view> open;
    int clusters = 0;
    const auto indent = [&] { return std::string(2 * open.size() + 2, ' '); };
    const auto close = [&](size_t depth) {
      while (open.size() > depth) {
        open.pop_back();
        absl::StrAppend(&out_, indent(), "}\n");
      }
    };
    for (const auto& [scopes, item] : sorted) {
      size_t common = 0;
      while (common < std::min(open.size(), scopes.size()) && open[common] == scopes[common]) {
        ++common;
      }
      close(common);
      for (size_t depth = common; depth < scopes.size(); ++depth) {
        absl::StrAppend(&out_, indent(), "subgraph cluster_", clusters++, " {\n");
        open.push_back(scopes[depth]);
        absl::StrAppend(&out_, indent(), "label=", DotQuoted(scopes[depth]), ";\n");
      }
      absl::StrAppend(
          &out_, indent(), Id(*item->graph, item->index), " [label=",
          WithLine(DotQuoted(item->name), DotQuoted(item->graph->def.node(item->index).op())),
          Style(*item), "];\n");
    }
    close(0);
  }

  std::string Style(const Item& item) const {
    if (item.graph == old_) return ", style=dotted";
    if (graph_.node_problems.count(item.index) > 0) return ", color=red";
    if (diff_ == nullptr) return "";
    if (diff_->old_of_new[item.index] < 0) return ", style=filled, fillcolor=palegreen";
    return diff_->changes[item.index].empty() ? "" : ", style=filled, fillcolor=khaki";
  }

  // Returns the name of a node in the file: n3, or o3 for a removed node.
  std::string Id(const AnalyzedGraph& graph, int node) const {
    if (&graph != old_) return absl::StrCat("n", node);
    const int match = diff_->new_of_old[node];
    return match < 0 ? absl::StrCat("o", node) : absl::StrCat("n", match);
  }

  void WriteEdges(const Item& item) {
    for (const AnalyzedGraph::Source& source : item.graph->sources[item.index]) {
      if (source.node < 0) continue;
      absl::StrAppend(&out_, "  ", Id(*item.graph, source.node), " -> ",
                      Id(*item.graph, item.index));
      const Node* const producer = item.graph->nodes[source.node];
      if (source.output < 0) {
        out_ += " [style=dashed]";
      } else if (producer != nullptr && source.output < producer->num_outputs()) {
        absl::StrAppend(
            &out_, " [label=",
            DotQuoted(absl::StrCat(DataTypeString(producer->output_type(source.output)), " ",
                                   ShapeText(producer->output_shape(source.output)))),
            "]");
      }
      out_ += ";\n";
    }
  }

  const AnalyzedGraph& graph_;
  const AnalyzedGraph* const old_;
  const GraphDiff* const diff_;
  std::vector<Item> items_;
  std::string out_;
};

}  // namespace

std::string DotText(const AnalyzedGraph& graph, const AnalyzedGraph* old_graph,
                    const GraphDiff* diff) {
  return DotWriter(graph, old_graph, diff).Write();
}

}  // namespace gradflow::tools
