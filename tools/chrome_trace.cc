#include "tools/chrome_trace.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gradflow/core/types.h"
#include "gradflow/graph/tensor_id.h"
#include "tools/json.h"

namespace gradflow::tools {
namespace {

// The process id of all rows.
constexpr int kProcess = 1;
// The runtime's name for the calling thread.
constexpr char kCaller[] = "caller";

// Returns microseconds, the unit of the format. Exact to the nanosecond in runs of up to 90 days.
double Micros(int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1000; }

std::string ShapeOf(const TensorDescription& tensor) {
  return absl::StrCat(
      DataTypeString(tensor.dtype()), "[",
      absl::StrJoin(tensor.shape().dim(), ",",
                    [](std::string* out, const auto& dim) { absl::StrAppend(out, dim.size()); }),
      "]");
}

int64_t Start(const NodeExecStats& node) { return node.all_start_nanos(); }
int64_t End(const NodeExecStats& node) { return Start(node) + node.all_end_rel_nanos(); }

class ChromeTraceWriter {
 public:
  ChromeTraceWriter(const StepStats& stats, const GraphDef& graph, std::vector<TracePhase> phases)
      : phases_(std::move(phases)) {
    for (const NodeDef& node : graph.node()) defs_[node.name()] = &node;
    for (const DeviceStepStats& device : stats.dev_stats()) {
      for (const auto& [thread, name] : device.thread_names()) {
        threads_.emplace_back(thread, name);
        if (name == kCaller) caller_ = thread;
      }
      for (const NodeExecStats& node : device.node_stats()) {
        nodes_.push_back(&node);
        by_name_[node.node_name()] = &node;
      }
    }
    std::sort(threads_.begin(), threads_.end());
  }

  std::string Write() {
    FitPhases();
    for (const NodeExecStats* node : nodes_) origin_ = std::min(origin_, Start(*node));
    for (const TracePhase& phase : phases_) origin_ = std::min(origin_, phase.start);
    events_.Add({{"ph", "M"},
                 {"name", "process_name"},
                 {"pid", kProcess},
                 {"args", {{"name", "gradflow"}}}});
    for (const auto& [thread, name] : threads_) {
      events_.Add({{"ph", "M"},
                   {"name", "thread_name"},
                   {"pid", kProcess},
                   {"tid", thread},
                   {"args", {{"name", name}}}});
    }
    for (const TracePhase& phase : phases_) {
      AddComplete(phase.name, "phase", caller_, phase.start, phase.end, Json::object());
    }
    for (const NodeExecStats* node : nodes_) AddNode(*node);
    for (const NodeExecStats* node : nodes_) AddArrowsTo(*node);
    JsonObjectText trace;
    trace.Add("displayTimeUnit", "ns");
    trace.AddText("traceEvents", events_.Finish());
    return trace.Finish() + "\n";
  }

 private:
  // Extends phases over events that they overlap partially: clocks may differ by some nanoseconds.
  void FitPhases() {
    for (TracePhase& phase : phases_) {
      for (const NodeExecStats* node : nodes_) {
        if (node->thread_id() != caller_) continue;
        if (End(*node) <= phase.start || Start(*node) >= phase.end) continue;
        phase.start = std::min(phase.start, Start(*node));
        phase.end = std::max(phase.end, End(*node));
      }
    }
    for (size_t i = 1; i < phases_.size(); ++i) {
      phases_[i - 1].end = std::min(phases_[i - 1].end, phases_[i].start);
    }
  }

  double Time(int64_t nanoseconds) const { return Micros(nanoseconds - origin_); }

  void AddComplete(const std::string& name, const std::string& category, uint32_t thread,
                   int64_t start, int64_t end, Json args) {
    events_.Add({{"ph", "X"},
                 {"name", name},
                 {"cat", category},
                 {"pid", kProcess},
                 {"tid", thread},
                 {"ts", Time(start)},
                 {"dur", Micros(end - start)},
                 {"args", std::move(args)}});
  }

  void AddNode(const NodeExecStats& node) {
    const auto def = defs_.find(node.node_name());
    const std::string op = def == defs_.end() ? "node" : def->second->op();
    int64_t allocated = 0;
    for (const AllocatorMemoryUsed& memory : node.memory()) allocated += memory.total_bytes();
    const std::string outputs =
        absl::StrJoin(node.output(), " ", [](std::string* out, const NodeOutput& output) {
          absl::StrAppend(out, ShapeOf(output.tensor_description()));
        });
    AddComplete(node.node_name(), op, node.thread_id(), Start(node), End(node),
                {{"op", op},
                 {"outputs", outputs},
                 {"allocated_bytes", allocated},
                 {"waited_us", Micros(Start(node) - node.scheduled_nanos())}});
  }

  void AddArrowsTo(const NodeExecStats& node) {
    const auto def = defs_.find(node.node_name());
    if (def == defs_.end()) return;
    for (const std::string& input : def->second->input()) {
      const absl::StatusOr<TensorId> id = ParseTensorId(input);
      if (!id.ok() || id->IsControl()) continue;
      const auto maker = by_name_.find(std::string(id->node));
      // There is no arrow if the producer was fed, or eliminated as a common subexpression.
      if (maker == by_name_.end() || End(*maker->second) > Start(node)) continue;
      // Arrows must start within an event, and the end of an event is exclusive.
      const int64_t from = std::max(Start(*maker->second), End(*maker->second) - 1);
      ++arrows_;
      events_.Add(ArrowEnd("s", input, maker->second->thread_id(), from));
      Json end = ArrowEnd("f", input, node.thread_id(), Start(node));
      // Binds the arrow to the event that encloses its end.
      end["bp"] = "e";
      events_.Add(end);
    }
  }

  // Returns the start ("s") or the end ("f") of the last arrow.
  Json ArrowEnd(const char* phase, const std::string& tensor, uint32_t thread, int64_t time) const {
    return {{"ph", phase},     {"name", tensor}, {"cat", "tensor"}, {"id", arrows_},
            {"pid", kProcess}, {"tid", thread},  {"ts", Time(time)}};
  }

  std::vector<TracePhase> phases_;
  std::unordered_map<std::string, const NodeDef*> defs_;
  std::vector<const NodeExecStats*> nodes_;
  std::unordered_map<std::string, const NodeExecStats*> by_name_;
  std::vector<std::pair<uint32_t, std::string>> threads_;
  uint32_t caller_ = 0;
  int64_t origin_ = std::numeric_limits<int64_t>::max();
  int arrows_ = 0;
  JsonArrayText events_;
};

}  // namespace

std::string ChromeTrace(const StepStats& stats, const GraphDef& graph,
                        std::vector<TracePhase> phases) {
  return ChromeTraceWriter(stats, graph, std::move(phases)).Write();
}

}  // namespace gradflow::tools
