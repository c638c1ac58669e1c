#include "gradflow/core/resource_manager.h"

#include <cxxabi.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "gradflow/core/status.h"

namespace gradflow {
namespace {

std::string FullName(absl::string_view container, absl::string_view name) {
  if (container.empty()) return absl::StrCat("resource '", name, "'");
  return absl::StrCat("resource '", name, "' of container '", container, "'");
}

std::string TypeName(const std::type_info& type) {
  int status = 0;
  char* const name = abi::__cxa_demangle(type.name(), nullptr, nullptr, &status);
  std::string result = status == 0 ? name : type.name();
  std::free(name);
  return result;
}

}  // namespace

ResourceManager::~ResourceManager() {
  // The destructor of a resource may use the manager, and make another.
  while (!containers_.empty()) Clear();
}

absl::Status ResourceManager::Create(absl::string_view container, absl::string_view name,
                                     std::shared_ptr<ResourceBase> resource) {
  MutexLock lock(&mutex_);
  GRADFLOW_RETURN_IF_ERROR(CheckOpen());
  Resources& resources = containers_[std::string(container)];
  // Which leaves `resource` as it is if it has no place for it: the destructor, too, may use the
  // manager.
  if (resources.try_emplace(std::string(name), std::move(resource)).second) {
    return absl::OkStatus();
  }
  return errors::AlreadyExists("there is a ", FullName(container, name));
}

absl::StatusOr<std::shared_ptr<ResourceBase>> ResourceManager::Find(absl::string_view container,
                                                                    absl::string_view name) const {
  {
    MutexLock lock(&mutex_);
    if (const auto of_container = containers_.find(container); of_container != containers_.end()) {
      const auto resource = of_container->second.find(name);
      if (resource != of_container->second.end()) return resource->second;
    }
  }
  return errors::NotFound("there is no ", FullName(container, name));
}

absl::StatusOr<std::shared_ptr<ResourceBase>> ResourceManager::FindOrMake(
    absl::string_view container, absl::string_view name,
    absl::FunctionRef<absl::StatusOr<std::shared_ptr<ResourceBase>>()> make) {
  if (auto found = Find(container, name); found.ok()) return found;
  MutexLock lock(&mutex_);
  GRADFLOW_RETURN_IF_ERROR(CheckOpen());
  Resources& resources = containers_[std::string(container)];
  if (const auto it = resources.find(name); it != resources.end()) return it->second;
  GRADFLOW_ASSIGN_OR_RETURN(std::shared_ptr<ResourceBase> made, make());
  if (made == nullptr) {
    return errors::Internal("the maker of the ", FullName(container, name), " made none");
  }
  resources.emplace(name, made);
  return made;
}

absl::Status ResourceManager::WrongType(absl::string_view container, absl::string_view name,
                                        const ResourceBase& resource,
                                        const std::type_info& expected) {
  return errors::InvalidArgument("the ", FullName(container, name), " is a ",
                                 TypeName(typeid(resource)), ", expected a ", TypeName(expected));
}

absl::Status ResourceManager::Delete(absl::string_view container, absl::string_view name) {
  // Dropped without the lock: its destructor may use the manager.
  std::shared_ptr<ResourceBase> removed;
  {
    MutexLock lock(&mutex_);
    if (const auto of_container = containers_.find(container); of_container != containers_.end()) {
      if (const auto it = of_container->second.find(name); it != of_container->second.end()) {
        removed = std::move(it->second);
        of_container->second.erase(it);
      }
    }
  }
  if (removed != nullptr) return absl::OkStatus();
  return errors::NotFound("there is no ", FullName(container, name));
}

void ResourceManager::Cleanup(absl::string_view container) {
  // Dropped after the lock, as above.
  Resources removed;
  MutexLock lock(&mutex_);
  if (const auto it = containers_.find(container); it != containers_.end()) {
    removed = std::move(it->second);
    containers_.erase(it);
  }
}

void ResourceManager::Clear() {
  // As above.
  Containers removed;
  MutexLock lock(&mutex_);
  removed.swap(containers_);
}

void ResourceManager::Close() {
  {
    MutexLock lock(&mutex_);
    closed_ = true;
  }
  Clear();
}

absl::Status ResourceManager::CheckOpen() const {
  return closed_ ? absl::CancelledError("the session has been closed") : absl::OkStatus();
}

std::string ResourceManager::DebugString() const {
  std::string text;
  MutexLock lock(&mutex_);
  for (const auto& [container, resources] : containers_) {
    for (const auto& [name, resource] : resources) {
      absl::StrAppend(&text, FullName(container, name), ": ", resource->DebugString(), "\n");
    }
  }
  return text;
}

}  // namespace gradflow
