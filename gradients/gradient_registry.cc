#include "gradflow/gradients/gradient_registry.h"

#include <utility>

#include "gradflow/core/status.h"
#include "gradflow/gradients/register.h"
#include "gradflow/graph/node_checks.h"

namespace gradflow {

GradientRegistry& GradientRegistry::Global() {
  static GradientRegistry& registry = *[] {
    auto* const made = new GradientRegistry;
    RegisterAllGradients(*made);
    MutexLock lock(&made->mutex_);
    for (auto& [op, entry] : made->entries_) entry.is_default = true;
    return made;
  }();
  return registry;
}

bool GradientRegistry::Register(absl::string_view op, GradientFunction function) {
  MutexLock lock(&mutex_);
  const auto [it, is_new] = entries_.try_emplace(std::string(op));
  if (!is_new && !it->second.is_default) return false;
  it->second = {std::move(function), /*is_default=*/false};
  return true;
}

bool GradientRegistry::RegisterNoGradient(absl::string_view op) { return Register(op, nullptr); }

absl::StatusOr<GradientFunction> GradientRegistry::Find(absl::string_view op) const {
  MutexLock lock(&mutex_);
  const auto it = entries_.find(op);
  if (it == entries_.end()) {
    return errors::NotFound("op ", internal::Quoted(op), " has no registered gradient function");
  }
  return it->second.function;
}

std::vector<std::string> GradientRegistry::DifferentiableOps() const {
  MutexLock lock(&mutex_);
  std::vector<std::string> ops;
  for (const auto& [op, entry] : entries_) {
    if (entry.function != nullptr) ops.push_back(op);
  }
  return ops;
}

}  // namespace gradflow
