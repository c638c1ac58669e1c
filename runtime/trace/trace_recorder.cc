#include "gradflow/runtime/trace/trace_recorder.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "gradflow/graph/node.h"
#include "gradflow/proto/node_def.pb.h"
#include "gradflow/proto/step_stats.pb.h"

namespace gradflow {
namespace {

// The prefix of devices' names.
constexpr char kTask[] = "/job:localhost/replica:0/task:0";
constexpr char kAllocator[] = "cpu";

int64_t Micros(int64_t nanoseconds) { return nanoseconds / 1000; }

// Sets the names under which a trace shows a node of a plan.
void WriteNames(const Plan& plan, int32_t index, const std::string& prefix, NodeExecStats* stats) {
  const PlanNodeLabel* const label = plan.label(index);
  const NodeDef& node = plan.nodes()[index].node->def();
  if (label == nullptr) {
    const std::string name = plan.NodeName(index);
    stats->set_node_name(absl::StrCat(prefix, name));
    stats->set_timeline_label(
        absl::StrCat(name, " = ", node.op(), "(", absl::StrJoin(node.input(), ", "), ")"));
    return;
  }
  stats->set_node_name(absl::StrCat(prefix, label->name));
  const auto name = [](std::string* out, const PlanOrigin& origin) {
    absl::StrAppend(out, origin.name());
  };
  stats->set_timeline_label(absl::StrCat(label->name, " = ", label->op, "(",
                                         absl::StrJoin(label->origins, ", ", name), ")"));
}

void WriteNode(const TraceRecorder::NodeRecord& record, int64_t since_1970, NodeExecStats* stats) {
  stats->set_thread_id(record.thread);
  const int64_t start = record.start + since_1970;
  stats->set_scheduled_nanos(record.scheduled + since_1970);
  stats->set_scheduled_micros(Micros(record.scheduled + since_1970));
  stats->set_all_start_nanos(start);
  stats->set_all_start_micros(Micros(start));
  // Uses differences of whole microseconds, so that sums are exact.
  const auto relative = [&](int64_t time) { return Micros(time + since_1970) - Micros(start); };
  stats->set_op_start_rel_nanos(record.compute_start - record.start);
  stats->set_op_start_rel_micros(relative(record.compute_start));
  stats->set_op_end_rel_nanos(record.compute_end - record.start);
  stats->set_op_end_rel_micros(relative(record.compute_end));
  stats->set_all_end_rel_nanos(record.end - record.start);
  stats->set_all_end_rel_micros(relative(record.end));
  AllocatorMemoryUsed* const memory = stats->add_memory();
  memory->set_allocator_name(kAllocator);
  memory->set_total_bytes(record.allocated_bytes);
  for (size_t i = 0; i < record.outputs.size(); ++i) {
    NodeOutput* const output = stats->add_output();
    output->set_slot(static_cast<int32_t>(i));
    TensorDescription* const tensor = output->mutable_tensor_description();
    tensor->set_dtype(record.outputs[i].dtype);
    TensorShapeProto* const shape = tensor->mutable_shape();
    for (int d = 0; d < record.outputs[i].shape.dims(); ++d) {
      shape->add_dim()->set_size(record.outputs[i].shape.dim_size(d));
    }
    AllocationDescription* const allocation = tensor->mutable_allocation_description();
    allocation->set_allocator_name(kAllocator);
    allocation->set_requested_bytes(record.outputs[i].bytes);
  }
}

}  // namespace

void TraceRecorder::NodeRecord::EndFailed() {
  end = Now();
  if (compute_start == 0) compute_start = end;
  if (compute_end == 0) compute_end = end;
  outputs.clear();
}

TraceRecorder::TraceRecorder(const Plan& plan)
    : plan_(plan),
      nodes_(plan.num_nodes()),
      caller_(ThisThread()),
      since_1970_(absl::GetCurrentTimeNanos() - Now()) {}

int64_t TraceRecorder::Now() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

uint32_t TraceRecorder::ThisThread() {
  thread_local const auto id = static_cast<uint32_t>(syscall(SYS_gettid));
  return id;
}

TraceRecorder* TraceRecorder::AddCall(std::shared_ptr<const Plan> plan, const TraceRecorder* trace,
                                      int32_t caller) {
  // A recursion may have any depth.
  constexpr size_t kMaxPrefix = 256;
  auto call = std::make_unique<TraceRecorder>(*plan);
  call->owned_plan_ = std::move(plan);
  call->prefix_ = absl::StrCat(trace->prefix_, trace->plan_.NodeName(caller), "/");
  if (call->prefix_.size() > kMaxPrefix) call->prefix_ = trace->prefix_;
  MutexLock lock(&mutex_);
  calls_.push_back(std::move(call));
  return calls_.back().get();
}

TraceRecorder* TraceRecorder::AddCallee(const Plan& plan, const TraceRecorder& trace) {
  MutexLock lock(&mutex_);
  callee_records_ += 1 + plan.num_nodes();
  if (callee_records_ > kMaxRecords) return nullptr;
  auto call = std::make_unique<TraceRecorder>(plan);
  // The names of the nodes already contain the names of the calling nodes.
  call->prefix_ = trace.prefix_;
  calls_.push_back(std::move(call));
  return calls_.back().get();
}

void TraceRecorder::AppendTo(std::vector<std::pair<const TraceRecorder*, int32_t>>* order) const {
  for (int32_t i = 0; i < plan_.num_nodes(); ++i) {
    if (nodes_[i].end != 0) order->emplace_back(this, i);
  }
}

void TraceRecorder::WriteTo(StepStats* stats) const {
  std::vector<std::pair<const TraceRecorder*, int32_t>> order;
  AppendTo(&order);
  {
    MutexLock lock(&mutex_);
    for (const auto& call : calls_) call->AppendTo(&order);
  }
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return a.first->nodes_[a.second].start < b.first->nodes_[b.second].start;
  });
  // All plans have the same devices in the same order; some plans have only the first ones.
  const auto add_devices = [stats](const Plan& plan) {
    for (int i = stats->dev_stats_size(); i < static_cast<int>(plan.devices().size()); ++i) {
      stats->add_dev_stats()->set_device(absl::StrCat(kTask, plan.devices()[i]));
    }
  };
  add_devices(plan_);
  std::map<uint32_t, std::string> names = {{caller_, "caller"}};
  (*stats->mutable_dev_stats(0)->mutable_thread_names())[caller_] = "caller";
  for (const auto& [trace, i] : order) {
    const NodeRecord& record = trace->nodes_[i];
    add_devices(trace->plan_);
    DeviceStepStats* const device = stats->mutable_dev_stats(trace->plan_.nodes()[i].device);
    NodeExecStats* const node = device->add_node_stats();
    WriteNames(trace->plan_, i, trace->prefix_, node);
    WriteNode(record, since_1970_, node);
    // Threads are numbered in order of appearance.
    std::string& name = names[record.thread];
    if (name.empty()) name = absl::StrCat("worker ", names.size() - 1);
    (*device->mutable_thread_names())[record.thread] = name;
  }
}

}  // namespace gradflow
