#include "tools/view/run_report.h"

#include <regex.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/tensor_id.h"
#include "tools/json.h"
#include "tools/names.h"
#include "tools/view/graph_json.h"
#include "tools/view/page.h"

namespace gradflow::tools {
namespace {

// The maximum number of outputs whose values a report has.
constexpr size_t kMaxReported = 10'000;

class NameRegex {
 public:
  NameRegex() = default;
  NameRegex(const NameRegex&) = delete;
  NameRegex& operator=(const NameRegex&) = delete;
  ~NameRegex() {
    if (compiled_) regfree(&regex_);
  }
  absl::Status Compile(const std::string& text) {
    const int error = regcomp(&regex_, text.c_str(), REG_EXTENDED | REG_NOSUB);
    if (error == 0) {
      compiled_ = true;
      return absl::OkStatus();
    }
    char reason[200];
    regerror(error, &regex_, reason, sizeof(reason));
    return errors::InvalidArgument("--report-tensors '", text,
                                   "' is not a regular expression: ", reason);
  }
  bool Matches(const std::string& text) const {
    return regexec(&regex_, text.c_str(), 0, nullptr, 0) == 0;
  }

 private:
  regex_t regex_;
  bool compiled_ = false;
};

// Returns, for each node, true if a run needs it to compute `ends`. Fed tensors need no nodes.
std::vector<bool> NeededNodes(const AnalyzedGraph& graph, const std::vector<std::string>& ends,
                              const std::vector<std::string>& feeds) {
  absl::flat_hash_map<absl::string_view, int> index;
  for (int i = 0; i < graph.def.node_size(); ++i) index.emplace(graph.def.node(i).name(), i);
  std::set<std::pair<int, int>> fed;
  for (const std::string& name : feeds) {
    const absl::StatusOr<TensorId> id = ParseTensorId(name);
    if (id.ok() && index.contains(id->node)) fed.emplace(index[id->node], id->index);
  }
  std::vector<bool> needed(graph.def.node_size());
  std::vector<int> work;
  const auto need = [&](int node, int output) {
    if (node < 0 || needed[node] || fed.count({node, output}) > 0) return;
    needed[node] = true;
    work.push_back(node);
  };
  for (const std::string& name : ends) {
    const absl::StatusOr<TensorId> id = ParseTensorId(name);
    if (id.ok() && index.contains(id->node)) need(index[id->node], id->index);
  }
  while (!work.empty()) {
    const int node = work.back();
    work.pop_back();
    for (const AnalyzedGraph::Source& source : graph.sources[node]) {
      need(source.node, source.output);
    }
  }
  return needed;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ReportedOutputs(const AnalyzedGraph& graph,
                                                         const std::string& which,
                                                         const std::vector<std::string>& fetches,
                                                         const std::vector<std::string>& targets,
                                                         const std::vector<std::string>& feeds) {
  std::vector<std::string> names;
  if (which == "outputs") return names;
  NameRegex regex;
  if (which != "all") GRADFLOW_RETURN_IF_ERROR(regex.Compile(which));
  std::set<std::string> given;
  for (const std::vector<std::string>* list : {&fetches, &feeds}) {
    for (const std::string& name : *list) {
      const absl::StatusOr<TensorId> id = ParseTensorId(name);
      if (id.ok()) given.insert(FormatTensorId(*id));
    }
  }
  std::vector<std::string> ends = fetches;
  ends.insert(ends.end(), targets.begin(), targets.end());
  const std::vector<bool> needed = NeededNodes(graph, ends, feeds);
  for (int i = 0; i < graph.def.node_size(); ++i) {
    const Node* const node = graph.nodes[i];
    if (!needed[i] || node == nullptr) continue;
    if (which != "all" && !regex.Matches(node->name())) continue;
    for (int output = 0; output < node->num_outputs(); ++output) {
      const DataType type = node->output_type(output);
      // A report shows no values of references, handles and variants.
      if (IsRefType(type) || type == DT_RESOURCE || type == DT_VARIANT) continue;
      std::string name = FormatTensorId({node->name(), output});
      if (given.count(name) > 0) continue;
      if (names.size() == kMaxReported) return names;
      names.push_back(std::move(name));
    }
  }
  return names;
}

std::string RunJson(const AnalyzedGraph& graph, const StepStats& stats,
                    const std::vector<TensorReport>& tensors) {
  absl::flat_hash_map<absl::string_view, int> index;
  for (int i = 0; i < graph.def.node_size(); ++i) index.emplace(graph.def.node(i).name(), i);
  std::map<uint32_t, int> threads;
  Json thread_names = Json::array();
  int64_t begin = std::numeric_limits<int64_t>::max();
  int64_t end = 0;
  // Returns true unless the node only makes the report.
  const auto is_run = [&](const NodeExecStats& node) {
    return index.contains(node.node_name()) || !ReportNodes::IsReportNode(node.node_name());
  };
  for (const DeviceStepStats& device : stats.dev_stats()) {
    for (const NodeExecStats& node : device.node_stats()) {
      if (!is_run(node)) continue;
      if (threads.emplace(node.thread_id(), static_cast<int>(threads.size())).second) {
        const auto name = device.thread_names().find(node.thread_id());
        thread_names.push_back(LimitedText(
            name == device.thread_names().end() ? absl::StrCat(node.thread_id()) : name->second,
            1000));
      }
      begin = std::min(begin, node.all_start_nanos());
      end = std::max(end, node.all_start_nanos() + node.all_end_rel_nanos());
    }
  }
  // Six numbers for each execution: the index of the node or -1, begin, end, thread, bytes
  // allocated, bytes of outputs. `labels` has the names of the nodes with -1.
  std::vector<int64_t> events;
  Json labels = Json::array();
  for (const DeviceStepStats& device : stats.dev_stats()) {
    for (const NodeExecStats& node : device.node_stats()) {
      if (!is_run(node)) continue;
      const auto found = index.find(node.node_name());
      int64_t allocated = 0;
      for (const AllocatorMemoryUsed& memory : node.memory()) allocated += memory.total_bytes();
      int64_t output_bytes = 0;
      for (const NodeOutput& output : node.output()) {
        output_bytes += output.tensor_description().allocation_description().requested_bytes();
      }
      const int64_t start = node.all_start_nanos() - begin;
      events.insert(events.end(), {found == index.end() ? -1 : found->second, start,
                                   start + node.all_end_rel_nanos(), threads[node.thread_id()],
                                   allocated, output_bytes});
      if (found == index.end()) labels.push_back(LimitedText(node.node_name(), 1000));
    }
  }
  JsonArrayText outputs;
  for (const auto& [name, json] : tensors) {
    const absl::StatusOr<TensorId> id = ParseTensorId(name);
    if (!id.ok() || id->IsControl()) continue;
    const auto found = index.find(id->node);
    if (found == index.end()) continue;
    Json output = {{"n", found->second}, {"o", id->index}};
    output.update(Json::parse(json));
    outputs.Add(output);
  }
  JsonObjectText run;
  run.Add("total", std::max<int64_t>(end - begin, 0));
  run.Add("threads", thread_names);
  run.Add("events", events);
  run.Add("labels", labels);
  run.AddText("outputs", outputs.Finish());
  return run.Finish();
}

absl::StatusOr<std::string> ReportPage(const std::string& path, const AnalyzedGraph& graph,
                                       const StepStats& stats,
                                       const std::vector<TensorReport>& tensors) {
  GraphJsonOptions options;
  options.title = std::string(FileName(path));
  options.run = RunJson(graph, stats, tensors);
  return Page(GraphJson(graph, options));
}

}  // namespace gradflow::tools
