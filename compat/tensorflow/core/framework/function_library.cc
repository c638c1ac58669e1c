#include "tensorflow/core/framework/function_library.h"

#include <iterator>
#include <map>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/platform/logging.h"

namespace tensorflow {
namespace {

constexpr char kInterfaceAttr[] = "api_implements";

// Returns the interface that the function implements, or "".
std::string InterfaceOf(const FunctionDef& function) {
  const auto attr = function.attr().find(kInterfaceAttr);
  return attr == function.attr().end() ? "" : attr->second.s();
}

core::RefCountPtr<FunctionRecord> NewRecord(FunctionDef function, StackTracesMap traces) {
  return core::RefCountPtr<FunctionRecord>(
      new FunctionRecord(std::move(function), std::move(traces), /*finalized=*/true));
}

const StackTracesMap& TracesOf(const FunctionDefLibraryStackTraces& traces,
                               const std::string& function) {
  static const StackTracesMap& none = *new StackTracesMap;
  const auto found = traces.find(function);
  return found == traces.end() ? none : found->second;
}

}  // namespace

FunctionRecord::FunctionRecord(FunctionDef fdef, StackTracesMap stack_traces, bool finalized)
    : finalized_(finalized),
      fdef_(std::move(fdef)),
      stack_traces_(std::move(stack_traces)),
      op_(fdef_.signature(), shape_inference::UnknownShape, /*is_function=*/true) {}

absl::StatusOr<FunctionDef*> FunctionRecord::mutable_fdef() {
  if (!finalized_) return &fdef_;
  return errors::PermissionDenied("function '", fdef_.signature().name(), "' is finalized");
}

FunctionLibraryDefinition::FunctionLibraryDefinition(const OpRegistryInterface* default_registry,
                                                     const FunctionDefLibrary& library,
                                                     const FunctionDefLibraryStackTraces& traces)
    : default_registry_(default_registry) {
  for (const FunctionDef& function : library.function()) {
    const absl::Status status =
        AddFunctionDef(function, TracesOf(traces, function.signature().name()));
    if (!status.ok()) LOG(ERROR) << status.message();
  }
  for (const GradientDef& gradient : library.gradient()) {
    const absl::Status status = AddGradientDef(gradient);
    if (!status.ok()) LOG(ERROR) << status.message();
  }
}

FunctionLibraryDefinition::FunctionLibraryDefinition(const OpRegistryInterface* default_registry,
                                                     const GraphDef& graph_def)
    : FunctionLibraryDefinition(
          default_registry, graph_def.library(),
          CreateStackTracesForFunctionDefLibrary(graph_def.library(), graph_def.debug_info())) {}

FunctionLibraryDefinition::FunctionLibraryDefinition(const FunctionLibraryDefinition& other)
    : default_registry_(other.default_registry_) {
  const std::lock_guard<std::mutex> lock(other.mutex_);
  for (const auto& record : other.records_) {
    records_.push_back(core::GetNewRef(record.get()));
    by_name_[record->fdef().signature().name()] = std::prev(records_.end());
  }
  gradients_ = other.gradients_;
  optimized_ = other.optimized_;
}

FunctionLibraryDefinition& FunctionLibraryDefinition::operator=(FunctionLibraryDefinition&& other) {
  if (&other == this) return *this;
  const std::scoped_lock lock(mutex_, other.mutex_);
  default_registry_ = other.default_registry_;
  records_ = std::move(other.records_);
  by_name_ = std::move(other.by_name_);
  gradients_ = std::move(other.gradients_);
  optimized_ = std::move(other.optimized_);
  other.records_.clear();
  other.by_name_.clear();
  other.gradients_.clear();
  other.optimized_.clear();
  return *this;
}

FunctionRecord* FunctionLibraryDefinition::FindLocked(const std::string& func) const {
  const auto found = by_name_.find(func);
  return found == by_name_.end() ? nullptr : found->second->get();
}

core::RefCountPtr<FunctionRecord> FunctionLibraryDefinition::FindRecord(
    const std::string& func) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  FunctionRecord* const record = FindLocked(func);
  return record == nullptr ? nullptr : core::GetNewRef(record);
}

const FunctionDef* FunctionLibraryDefinition::Find(const std::string& func) const {
  const core::RefCountPtr<FunctionRecord> record = FindRecord(func);
  return record == nullptr ? nullptr : &record->fdef();
}

const StackTracesMap* FunctionLibraryDefinition::GetStackTraces(const std::string& func) const {
  const core::RefCountPtr<FunctionRecord> record = FindRecord(func);
  return record == nullptr ? nullptr : &record->stack_traces();
}

std::string FunctionLibraryDefinition::FindGradient(const std::string& func) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = gradients_.find(func);
  return found == gradients_.end() ? "" : found->second;
}

absl::Status FunctionLibraryDefinition::LookUp(const std::string& op_type_name,
                                               const OpRegistrationData** op_reg_data) const {
  const core::RefCountPtr<FunctionRecord> record = FindRecord(op_type_name);
  if (record == nullptr) return default_registry_->LookUp(op_type_name, op_reg_data);
  *op_reg_data = &record->op_registration_data();
  return absl::OkStatus();
}

absl::Status FunctionLibraryDefinition::AddLocked(core::RefCountPtr<FunctionRecord> record,
                                                  bool* added) {
  *added = false;
  const std::string& name = record->fdef().signature().name();
  if (const FunctionRecord* const old = FindLocked(name)) {
    if (FunctionDefsEqual(old->fdef(), record->fdef())) return absl::OkStatus();
    return errors::InvalidArgument("Cannot add function '", name,
                                   "' because a different function with the same name already "
                                   "exists.");
  }
  const OpRegistrationData* op = nullptr;
  if (default_registry_->LookUp(name, &op).ok()) {
    return errors::InvalidArgument("Cannot add function '", name,
                                   "' because an op with the same name already exists.");
  }
  records_.push_back(std::move(record));
  by_name_[name] = std::prev(records_.end());
  *added = true;
  return absl::OkStatus();
}

absl::Status FunctionLibraryDefinition::AddGradientLocked(const std::string& func,
                                                          const std::string& gradient,
                                                          bool* added) {
  const auto [it, is_new] = gradients_.try_emplace(func, gradient);
  *added = is_new;
  if (is_new || it->second == gradient) return absl::OkStatus();
  return errors::InvalidArgument("Cannot assign gradient function '", gradient, "' to '", func,
                                 "' because it already has gradient function '", it->second, "'");
}

void FunctionLibraryDefinition::RemoveLocked(const std::string& func) {
  const auto found = by_name_.find(func);
  records_.erase(found->second);
  by_name_.erase(found);
}

absl::Status FunctionLibraryDefinition::AddAllLocked(
    std::vector<core::RefCountPtr<FunctionRecord>> records,
    gtl::ArraySlice<GradientDef> gradients) {
  std::vector<std::string> new_functions, new_gradients;
  absl::Status status;
  bool added;
  for (auto& record : records) {
    const std::string name = record->fdef().signature().name();
    status = AddLocked(std::move(record), &added);
    if (!status.ok()) break;
    if (added) new_functions.push_back(name);
  }
  for (const GradientDef& gradient : gradients) {
    if (!status.ok()) break;
    status = AddGradientLocked(gradient.function_name(), gradient.gradient_func(), &added);
    if (status.ok() && added) new_gradients.push_back(gradient.function_name());
  }
  if (status.ok()) return status;
  for (const std::string& name : new_functions) RemoveLocked(name);
  for (const std::string& name : new_gradients) gradients_.erase(name);
  return status;
}

absl::Status FunctionLibraryDefinition::AddFunctionDef(FunctionDef fdef,
                                                       StackTracesMap stack_traces) {
  return AddFunctionRecord(NewRecord(std::move(fdef), std::move(stack_traces)));
}

absl::Status FunctionLibraryDefinition::AddFunctionRecord(
    core::RefCountPtr<FunctionRecord> record) {
  const std::lock_guard<std::mutex> lock(mutex_);
  bool added;
  return AddLocked(std::move(record), &added);
}

absl::Status FunctionLibraryDefinition::AddGradientDef(const GradientDef& grad) {
  const std::lock_guard<std::mutex> lock(mutex_);
  bool added;
  return AddGradientLocked(grad.function_name(), grad.gradient_func(), &added);
}

absl::Status FunctionLibraryDefinition::AddLibrary(const FunctionLibraryDefinition& other) {
  std::vector<core::RefCountPtr<FunctionRecord>> records;
  std::vector<GradientDef> gradients;
  {
    const std::lock_guard<std::mutex> lock(other.mutex_);
    for (const auto& record : other.records_) records.push_back(core::GetNewRef(record.get()));
    for (const auto& [function, gradient] : other.gradients_) {
      gradients.emplace_back();
      gradients.back().set_function_name(function);
      gradients.back().set_gradient_func(gradient);
    }
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  return AddAllLocked(std::move(records), gradients);
}

absl::Status FunctionLibraryDefinition::AddLibrary(const FunctionDefLibrary& library,
                                                   const FunctionDefLibraryStackTraces& traces) {
  std::vector<core::RefCountPtr<FunctionRecord>> records;
  for (const FunctionDef& function : library.function()) {
    records.push_back(NewRecord(function, TracesOf(traces, function.signature().name())));
  }
  const std::vector<GradientDef> gradients(library.gradient().begin(), library.gradient().end());
  const std::lock_guard<std::mutex> lock(mutex_);
  return AddAllLocked(std::move(records), gradients);
}

absl::Status FunctionLibraryDefinition::CopyFunctionDefFrom(
    const std::string& name, const FunctionLibraryDefinition& other) {
  if (default_registry() != other.default_registry()) {
    return errors::InvalidArgument("Cannot copy the function '", name,
                                   "' between libraries with different default registries");
  }
  core::RefCountPtr<FunctionRecord> record = other.FindRecord(name);
  if (record == nullptr) {
    return errors::InvalidArgument("Cannot copy the function '", name,
                                   "', which the other library does not have");
  }
  TF_RETURN_IF_ERROR(AddFunctionRecord(std::move(record)));
  GradientDef gradient;
  gradient.set_function_name(name);
  gradient.set_gradient_func(other.FindGradient(name));
  return gradient.gradient_func().empty() ? absl::OkStatus() : AddGradientDef(gradient);
}

absl::Status FunctionLibraryDefinition::ReplaceFunction(const std::string& func,
                                                        const FunctionDef& fdef,
                                                        const StackTracesMap& stack_traces) {
  core::RefCountPtr<FunctionRecord> record = NewRecord(fdef, stack_traces);
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = by_name_.find(func);
  if (found == by_name_.end()) {
    return errors::InvalidArgument("Tried to replace non-existent function '", func, "'.");
  }
  bool added;
  if (fdef.signature().name() != func) {
    TF_RETURN_IF_ERROR(AddLocked(std::move(record), &added));
    RemoveLocked(func);
  } else {
    *found->second = std::move(record);
  }
  return absl::OkStatus();
}

absl::Status FunctionLibraryDefinition::RemoveFunction(const std::string& func) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (FindLocked(func) == nullptr) {
    return errors::InvalidArgument("Tried to remove non-existent function '", func, "'.");
  }
  RemoveLocked(func);
  return absl::OkStatus();
}

absl::Status FunctionLibraryDefinition::ReplaceGradient(const GradientDef& grad) {
  const std::lock_guard<std::mutex> lock(mutex_);
  gradients_[grad.function_name()] = grad.gradient_func();
  return absl::OkStatus();
}

void FunctionLibraryDefinition::Clear() {
  const std::lock_guard<std::mutex> lock(mutex_);
  by_name_.clear();
  records_.clear();
  gradients_.clear();
  optimized_.clear();
}

std::string FunctionLibraryDefinition::UniqueFunctionName(absl::string_view prefix) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::string name;
  for (size_t i = by_name_.size();; ++i) {
    name = absl::StrCat(prefix, i);
    if (FindLocked(name) == nullptr) return name;
  }
}

FunctionDefLibrary FunctionLibraryDefinition::ToProto() const {
  FunctionDefLibrary library;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& record : records_) *library.add_function() = record->fdef();
  // Sorted by name.
  const std::map<std::string, std::string> gradients(gradients_.begin(), gradients_.end());
  for (const auto& [function, gradient] : gradients) {
    GradientDef* const added = library.add_gradient();
    added->set_function_name(function);
    added->set_gradient_func(gradient);
  }
  return library;
}

std::vector<std::string> FunctionLibraryDefinition::ListFunctionNames() const {
  std::vector<std::string> names;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& record : records_) names.push_back(record->fdef().signature().name());
  return names;
}

size_t FunctionLibraryDefinition::num_functions() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return records_.size();
}

core::RefCountPtr<FunctionRecord> FunctionLibraryDefinition::Callee(const NodeDef& node) const {
  if (node.op() != kGradientOp) return FindRecord(node.op());
  NameAttrList function;
  if (!GetNodeAttr(node, kFuncAttr, &function).ok()) return nullptr;
  const std::string gradient = FindGradient(function.name());
  return FindRecord(gradient.empty() ? function.name() : gradient);
}

FunctionLibraryDefinition FunctionLibraryDefinition::Reachable(
    std::vector<const NodeDef*> nodes) const {
  // Keeps the records alive while other threads change the library: `nodes` points to their nodes.
  const FunctionLibraryDefinition snapshot(*this);
  std::map<std::string, std::vector<std::string>> implementations;
  for (const auto& record : snapshot.records_) {
    const std::string interface = InterfaceOf(record->fdef());
    if (!interface.empty()) {
      implementations[interface].push_back(record->fdef().signature().name());
    }
  }
  absl::flat_hash_set<std::string> reached;
  std::vector<std::string> names;
  while (!nodes.empty() || !names.empty()) {
    if (names.empty()) {
      const NodeDef& node = *nodes.back();
      nodes.pop_back();
      names.push_back(node.op());
      for (const auto& [name, value] : node.attr()) {
        if (value.has_func()) names.push_back(value.func().name());
        for (const NameAttrList& function : value.list().func()) names.push_back(function.name());
      }
      continue;
    }
    const core::RefCountPtr<FunctionRecord> record = snapshot.FindRecord(names.back());
    names.pop_back();
    if (record == nullptr) continue;
    const FunctionDef& function = record->fdef();
    if (!reached.insert(function.signature().name()).second) continue;
    for (const NodeDef& node : function.node_def()) nodes.push_back(&node);
    const std::string gradient = snapshot.FindGradient(function.signature().name());
    if (!gradient.empty()) names.push_back(gradient);
    // Visits each interface once, because many functions may implement it.
    if (auto others = implementations.extract(InterfaceOf(function)); !others.empty()) {
      names.insert(names.end(), others.mapped().begin(), others.mapped().end());
    }
  }
  FunctionLibraryDefinition library(default_registry_);
  for (const auto& record : snapshot.records_) {
    const std::string& name = record->fdef().signature().name();
    if (reached.contains(name)) library.CopyFunctionDefFrom(name, snapshot).IgnoreError();
  }
  return library;
}

FunctionLibraryDefinition FunctionLibraryDefinition::ReachableDefinitions(
    const GraphDef& graph) const {
  std::vector<const NodeDef*> nodes;
  for (const NodeDef& node : graph.node()) nodes.push_back(&node);
  return Reachable(std::move(nodes));
}

FunctionLibraryDefinition FunctionLibraryDefinition::ReachableDefinitions(
    const Graph& graph) const {
  std::vector<const NodeDef*> nodes;
  for (int id = 0; id < graph.num_nodes(); ++id) nodes.push_back(&graph.node(id)->def());
  return Reachable(std::move(nodes));
}

FunctionLibraryDefinition FunctionLibraryDefinition::ReachableDefinitions(
    const FunctionDef& func) const {
  std::vector<const NodeDef*> nodes;
  for (const NodeDef& node : func.node_def()) nodes.push_back(&node);
  return Reachable(std::move(nodes));
}

absl::StatusOr<FunctionLibraryDefinition> FunctionLibraryDefinition::ReachableDefinitions(
    const std::string& function_name) const {
  const core::RefCountPtr<FunctionRecord> record = FindRecord(function_name);
  if (record == nullptr) {
    return errors::NotFound("the library has no function '", function_name, "'");
  }
  FunctionLibraryDefinition library = ReachableDefinitions(record->fdef());
  TF_RETURN_IF_ERROR(library.CopyFunctionDefFrom(function_name, *this));
  return library;
}

void FunctionLibraryDefinition::AddOptimizedFunctionGraph(const std::string& function_name,
                                                          const OptimizedFunctionGraph& graph) {
  AddOptimizedFunctionGraph(function_name, [graph] { return graph; });
}

void FunctionLibraryDefinition::AddOptimizedFunctionGraph(const std::string& function_name,
                                                          OptimizedFunctionGraphCreator creator) {
  const std::lock_guard<std::mutex> lock(mutex_);
  optimized_.try_emplace(function_name, std::move(creator));
}

std::optional<absl::StatusOr<OptimizedFunctionGraph>>
FunctionLibraryDefinition::FindOptimizedFunctionGraph(const std::string& function_name) const {
  OptimizedFunctionGraphCreator creator;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = optimized_.find(function_name);
    if (found == optimized_.end()) return std::nullopt;
    creator = found->second;
  }
  return creator();
}

bool FunctionLibraryDefinition::HasOptimizedFunctionGraph(const std::string& function_name) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return optimized_.contains(function_name);
}

FunctionDefLibraryStackTraces FunctionLibraryDefinition::CreateStackTracesForFunctionDefLibrary(
    const FunctionDefLibrary& library, const GraphDebugInfo& debug_info) {
  FunctionDefLibraryStackTraces traces;
  if (debug_info.files().empty()) return traces;
  absl::flat_hash_set<std::string> functions;
  for (const FunctionDef& function : library.function()) {
    functions.insert(function.signature().name());
  }
  for (auto& [name, trace] : LoadTracesFromDebugInfo(debug_info)) {
    const size_t at = name.rfind('@');
    if (at == std::string::npos || !functions.contains(name.substr(at + 1))) continue;
    traces[name.substr(at + 1)][name.substr(0, at)] = std::move(trace);
  }
  return traces;
}

}  // namespace tensorflow
