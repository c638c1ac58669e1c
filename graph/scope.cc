#include "gradflow/graph/scope.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/strings/strip.h"
#include "gradflow/core/attributes.h"
#include "gradflow/core/out_parameter.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/export.h"
#include "gradflow/graph/graph_impl.h"
#include "gradflow/graph/import.h"
#include "gradflow/graph/node_builder.h"
#include "gradflow/graph/node_checks.h"
#include "gradflow/graph/unique_names.h"

namespace gradflow {

// The state that all scopes of one root share.
struct Scope::Shared {
  std::shared_ptr<Graph> graph;
  absl::Status status;
  bool infer_shapes = true;
};

// Properties that few scopes change. Immutable once a scope has them.
struct Scope::Settings {
  std::vector<Operation> control_deps;
  std::string device;
  std::string assigned_device;
  std::string kernel_label;
  // Names of nodes in order.
  std::vector<std::string> colocations;
  bool exit_on_error = false;
};

Scope::Scope(const Registry& registry, bool infer_shapes)
    : shared_(std::make_shared<Shared>()), names_(std::make_shared<internal::UniqueNames>()) {
  shared_->graph = std::make_shared<Graph>(registry);
  shared_->infer_shapes = infer_shapes;
}

Scope Scope::NewRootScope() { return NewRootScope(GlobalRegistry()); }
Scope Scope::NewRootScope(const Registry& registry) { return Scope(registry, true); }
Scope Scope::DisabledShapeInferenceScope() { return DisabledShapeInferenceScope(GlobalRegistry()); }
Scope Scope::DisabledShapeInferenceScope(const Registry& registry) {
  return Scope(registry, false);
}

const Scope::Settings& Scope::settings() const {
  // Never destroyed, because scopes in static storage may live until the end.
  static const Settings& defaults = *new Settings();
  return settings_ == nullptr ? defaults : *settings_;
}

Scope Scope::WithNewSettings(Settings** settings) const {
  Scope scope = *this;
  auto copy = std::make_shared<Settings>(this->settings());
  *settings = copy.get();
  scope.settings_ = std::move(copy);
  return scope;
}

// ---- Names ----

Scope Scope::NewSubScope(absl::string_view name) const {
  Scope scope = *this;
  scope.used_ = nullptr;
  scope.op_name_.clear();
  if (!name.empty()) {
    scope.name_ = names_->Take(name_, name);
    scope.names_ = std::make_shared<internal::UniqueNames>();
  }
  return scope;
}

Scope internal::SubScopeOfUnusedName(const Scope& scope, absl::string_view name) {
  Scope sub_scope = scope;
  sub_scope.used_ = nullptr;
  sub_scope.op_name_.clear();
  sub_scope.name_ = scope.name_.empty() ? std::string(name) : absl::StrCat(scope.name_, "/", name);
  sub_scope.names_ = std::make_shared<internal::UniqueNames>();
  return sub_scope;
}

Scope internal::NewScopeOfFunction(const Scope& caller) {
  Scope scope(caller.graph()->registry(), caller.shared_->infer_shapes);
  std::unique_ptr<Graph> graph =
      GraphImpl::NewGraph(caller.graph()->registry(), caller.graph()->functions());
  scope.shared_->graph = std::shared_ptr<Graph>(
      graph.release(), [keep = caller.graph_as_shared_ptr()](Graph* g) { delete g; });
  return scope;
}

Scope Scope::WithOpNameImpl(std::string op_name) const {
  if (single_use()) {
    UpdateStatus(
        errors::InvalidArgument("the last op of a composite op is named already: it "
                                "cannot be named ",
                                internal::Quoted(op_name)));
    return *this;
  }
  Scope scope = *this;
  scope.op_name_ = std::move(op_name);
  return scope;
}

std::string Scope::GetUniqueNameForOp(absl::string_view default_name) const {
  if (!single_use()) return names_->Take(name_, op_name_.empty() ? default_name : op_name_);
  if (*used_) {
    UpdateStatus(errors::AlreadyExists("the last op of a composite op, ",
                                       internal::Quoted(op_name_), ", exists already"));
    return "";
  }
  *used_ = true;
  return op_name_;
}

CompositeOpScopes Scope::GetCompositeOpScopes(absl::string_view composite_op_name) const {
  if (op_name_.empty() && composite_op_name.empty()) {
    UpdateStatus(errors::InvalidArgument("a composite op needs a name"));
    return {*this, *this};
  }
  if (single_use()) {
    // The last op of a composite is itself a composite: its ops are named like the ops before it.
    Scope child = *this;
    child.used_ = nullptr;
    child.name_ = op_name_;
    child.op_name_.clear();
    return {child, *this};
  }
  const Scope child = NewSubScope(op_name_.empty() ? composite_op_name : op_name_);
  Scope last = child;
  last.used_ = std::make_shared<bool>(false);
  // In a sub-scope "a" the last op of "b" is "a_a/b", as in TensorFlow.
  last.op_name_ = name_.empty() ? child.name_ : absl::StrCat(name_, "_", child.name_);
  return {child, last};
}

// ---- Other properties ----

Scope Scope::WithControlDependencies(absl::Span<const Operation> control_deps) const {
  Settings* settings;
  Scope scope = WithNewSettings(&settings);
  settings->control_deps.insert(settings->control_deps.end(), control_deps.begin(),
                                control_deps.end());
  return scope;
}

Scope Scope::WithControlDependencies(const Output& control_dep) const {
  const Operation op = control_dep.op();
  return WithControlDependencies(absl::MakeConstSpan(&op, 1));
}

Scope Scope::WithNoControlDependencies() const {
  Settings* settings;
  Scope scope = WithNewSettings(&settings);
  settings->control_deps.clear();
  return scope;
}

Scope Scope::WithDevice(absl::string_view device) const {
  Settings* settings;
  Scope scope = WithNewSettings(&settings);
  settings->device = std::string(device);
  return scope;
}

Scope Scope::WithAssignedDevice(absl::string_view device) const {
  Settings* settings;
  Scope scope = WithNewSettings(&settings);
  settings->assigned_device = std::string(device);
  return scope;
}

Scope Scope::ColocateWith(const Operation& op) const {
  if (op.node() == nullptr) {
    UpdateStatus(errors::InvalidArgument("an op cannot be colocated with an empty operation"));
    return *this;
  }
  Settings* settings;
  Scope scope = WithNewSettings(&settings);
  std::vector<std::string>& names = settings->colocations;
  std::vector<std::string> entries;
  if (op.node()->GetAttr(internal::kColocationAttr, &entries).ok()) {
    for (absl::string_view name : entries) {
      if (absl::ConsumePrefix(&name, internal::kColocationPrefix)) names.emplace_back(name);
    }
  } else {
    names.push_back(op.node()->name());
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return scope;
}

Scope Scope::ClearColocation() const {
  Settings* settings;
  Scope scope = WithNewSettings(&settings);
  settings->colocations.clear();
  return scope;
}

Scope Scope::ExitOnError() const {
  Settings* settings;
  Scope scope = WithNewSettings(&settings);
  settings->exit_on_error = true;
  return scope;
}

Scope Scope::WithKernelLabel(absl::string_view kernel_label) const {
  Settings* settings;
  Scope scope = WithNewSettings(&settings);
  settings->kernel_label = std::string(kernel_label);
  return scope;
}

const std::vector<Operation>& Scope::control_deps() const { return settings().control_deps; }

void Scope::UpdateBuilder(NodeBuilder* builder) const {
  builder->InferShapes(shared_->infer_shapes);
  if (settings_ == nullptr) return;
  for (const Operation& op : settings_->control_deps) builder->ControlInput(op.node());
  if (!settings_->kernel_label.empty()) builder->Attr("_kernel", settings_->kernel_label);
  if (!settings_->colocations.empty()) {
    std::vector<std::string> entries;
    entries.reserve(settings_->colocations.size());
    for (const std::string& name : settings_->colocations) {
      entries.push_back(absl::StrCat(internal::kColocationPrefix, name));
    }
    builder->Attr(internal::kColocationAttr, absl::MakeConstSpan(entries));
  }
  if (!settings_->device.empty()) builder->Device(settings_->device);
  if (!settings_->assigned_device.empty()) builder->AssignedDevice(settings_->assigned_device);
}

// ---- Status and graph ----

void Scope::UpdateStatus(const absl::Status& status) const {
  if (shared_->status.ok()) shared_->status = status;
  if (!shared_->status.ok() && settings().exit_on_error) {
    std::fprintf(stderr, "%s\n", shared_->status.ToString().c_str());
    std::abort();
  }
}

bool Scope::ok() const { return shared_->status.ok(); }
const absl::Status& Scope::status() const { return shared_->status; }
Graph* Scope::graph() const { return shared_->graph.get(); }
std::shared_ptr<Graph> Scope::graph_as_shared_ptr() const { return shared_->graph; }

absl::Status Scope::ToGraphDef(GraphDef* graph_def, bool /*include_debug_info*/) const {
  GRADFLOW_RETURN_IF_ERROR(internal::CheckOut(graph_def, "Scope::ToGraphDef", "graph_def"));
  GRADFLOW_RETURN_IF_ERROR(status());
  return ExportGraphDef(*graph(), {}, graph_def);
}

absl::Status Scope::ToGraph(Graph* graph) const {
  GRADFLOW_RETURN_IF_ERROR(internal::CheckOut(graph, "Scope::ToGraph", "graph"));
  GRADFLOW_RETURN_IF_ERROR(status());
  return ImportGraphDef({}, this->graph()->def(), graph);
}

}  // namespace gradflow
