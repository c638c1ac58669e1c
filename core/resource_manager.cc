#include "gradflow/core/resource_manager.h"

#include <cxxabi.h>
#include <tbb/task_arena.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "gradflow/core/call_safely.h"
#include "gradflow/core/status.h"
#include "gradflow/core/stop_token.h"

namespace gradflow {
namespace {

std::string FullName(absl::string_view container, absl::string_view name) {
  const std::string text = absl::StrCat("resource '", errors::Printable(name), "'");
  if (container.empty()) return text;
  return absl::StrCat(text, " of container '", errors::Printable(container), "'");
}

std::string TypeName(const std::type_info& type) {
  int status = 0;
  char* const name = abi::__cxa_demangle(type.name(), nullptr, nullptr, &status);
  std::string result = status == 0 ? name : type.name();
  std::free(name);
  return result;
}

}  // namespace

struct ResourceManager::Making {
  // Held by the thread that runs make().
  Mutex made;
  // The thread that runs make(); no thread after make() has returned. Guarded by
  // ResourceManager::mutex_.
  std::thread::id maker = std::this_thread::get_id();
};

ResourceManager::~ResourceManager() {
  // The destructor of a resource may use the manager and create another resource.
  while (!containers_.empty()) Clear();
}

absl::Status ResourceManager::Create(absl::string_view container, absl::string_view name,
                                     std::shared_ptr<ResourceBase> resource) {
  MutexLock lock(&mutex_);
  GRADFLOW_RETURN_IF_ERROR(CheckOpen());
  Resources& resources = containers_[std::string(container)];
  // On failure try_emplace does not move `resource`. It is destroyed after the lock is released,
  // because its destructor may use the manager.
  if (resources.try_emplace(std::string(name), std::move(resource)).second) {
    return absl::OkStatus();
  }
  return errors::AlreadyExists(FullName(container, name), " already exists");
}

absl::StatusOr<std::shared_ptr<ResourceBase>> ResourceManager::Find(absl::string_view container,
                                                                    absl::string_view name) const {
  {
    MutexLock lock(&mutex_);
    if (std::shared_ptr<ResourceBase> found = FindLocked(container, name)) return found;
  }
  return errors::NotFound(FullName(container, name), " does not exist");
}

std::shared_ptr<ResourceBase> ResourceManager::FindLocked(absl::string_view container,
                                                          absl::string_view name) const {
  const auto of_container = containers_.find(container);
  if (of_container == containers_.end()) return nullptr;
  const auto resource = of_container->second.find(name);
  return resource == of_container->second.end() ? nullptr : resource->second;
}

absl::StatusOr<std::shared_ptr<ResourceBase>> ResourceManager::FindOrMake(
    absl::string_view container, absl::string_view name,
    absl::FunctionRef<absl::StatusOr<std::shared_ptr<ResourceBase>>()> make, StopToken* stop) {
  if (auto found = Find(container, name); found.ok()) return found;
  const std::pair<std::string, std::string> key(container, name);
  // Declared before the locks: if the resource is not stored, its destructor runs after the locks
  // are released and may use the manager.
  std::shared_ptr<ResourceBase> made;
  const auto making = std::make_shared<Making>();
  // Threads that wait for this resource block on this lock.
  MutexLock while_it_is_made(&making->made);
  for (;;) {
    std::shared_ptr<Making> other;
    {
      MutexLock lock(&mutex_);
      GRADFLOW_RETURN_IF_ERROR(CheckOpen());
      if (std::shared_ptr<ResourceBase> found = FindLocked(container, name)) return found;
      const auto [it, is_first] = makings_.try_emplace(key, making);
      if (is_first) break;
      other = it->second;
      if (WaitsForThisThread(other.get())) {
        return errors::FailedPrecondition("creating ", FullName(container, name),
                                          " would deadlock: it waits for itself");
      }
      waiting_[std::this_thread::get_id()] = other.get();
    }
    { MutexLock until_it_is_made(&other->made); }
    MutexLock lock(&mutex_);
    waiting_.erase(std::this_thread::get_id());
  }
  // Isolated: while make() waits for its own tasks, oneTBB must not run other nodes on this thread,
  // because they could wait for this resource and deadlock.
  const absl::Status status = CallSafely([&] {
    return tbb::this_task_arena::isolate([&]() -> absl::Status {
      GRADFLOW_ASSIGN_OR_RETURN(made, make());
      // The loops of make() may have skipped blocks.
      if (IsStopped(stop))
        return absl::CancelledError("the run was stopped while it made a resource");
      if (made != nullptr) return absl::OkStatus();
      return errors::Internal("the function that creates ", FullName(container, name),
                              " returned null");
    });
  });
  MutexLock lock(&mutex_);
  makings_.erase(key);
  making->maker = std::thread::id();
  GRADFLOW_RETURN_IF_ERROR(status);
  GRADFLOW_RETURN_IF_ERROR(CheckOpen());
  // Create() may have added the resource meanwhile.
  return containers_[key.first].try_emplace(key.second, made).first->second;
}

bool ResourceManager::WaitsForThisThread(const Making* making) const {
  while (making != nullptr) {
    if (making->maker == std::this_thread::get_id()) return true;
    const auto next = waiting_.find(making->maker);
    making = next == waiting_.end() ? nullptr : next->second;
  }
  return false;
}

absl::Status ResourceManager::WrongType(absl::string_view container, absl::string_view name,
                                        const ResourceBase& resource,
                                        const std::type_info& expected) {
  return errors::InvalidArgument(FullName(container, name), " is a ", TypeName(typeid(resource)),
                                 ", expected a ", TypeName(expected));
}

absl::Status ResourceManager::Delete(absl::string_view container, absl::string_view name) {
  // Destroyed after the lock is released: its destructor may use the manager.
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
  return errors::NotFound(FullName(container, name), " does not exist");
}

void ResourceManager::Cleanup(absl::string_view container) {
  // Destroyed after the lock is released, as above.
  Resources removed;
  MutexLock lock(&mutex_);
  if (const auto it = containers_.find(container); it != containers_.end()) {
    removed = std::move(it->second);
    containers_.erase(it);
  }
}

void ResourceManager::Clear() {
  // Destroyed after the lock is released, as above.
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
