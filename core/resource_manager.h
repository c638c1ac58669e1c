// ResourceManager: state of kernels that outlives a run. The session owns it.
//
// A resource has a name within a named container; "" is the default container. Kernels look
// resources up through KernelContext::resource_manager():
//
//   class Counter : public ResourceBase { ... };
//   GRADFLOW_ASSIGN_OR_RETURN(
//       const std::shared_ptr<Counter> counter,
//       ctx.resource_manager()->LookupOrCreate<Counter>(
//           container_, name_, [] { return std::make_shared<Counter>(); }));
//
// An op whose kernel uses resources must be Stateful(), so that optimizations do not treat its
// nodes as pure functions. Ownership is shared: a resource is destroyed once it has been removed
// (or the session has ended) and no kernel holds it.
//
// Thread-safe. Resources synchronize themselves.
#ifndef GRADFLOW_CORE_RESOURCE_MANAGER_H_
#define GRADFLOW_CORE_RESOURCE_MANAGER_H_

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/mutex.h"

#pragma GCC visibility push(default)
namespace gradflow {

class StopToken;

// Containers whose names begin with this prefix belong to the implementation of TensorFlow's
// headers (compat/). Kernels reject them in the attribute `container`.
inline constexpr absl::string_view kReservedContainers = "_tensorflow";

class ResourceBase {
 public:
  virtual ~ResourceBase() = default;
  // Returns a human-readable line. Must not use the ResourceManager.
  virtual std::string DebugString() const = 0;
};

class ResourceManager {
 public:
  ResourceManager() = default;
  ~ResourceManager();
  ResourceManager(const ResourceManager&) = delete;
  ResourceManager& operator=(const ResourceManager&) = delete;

  // Adds a resource. Returns ALREADY_EXISTS if a resource of any type has this name, and CANCELLED
  // after Close(). REQUIRES: resource != nullptr
  absl::Status Create(absl::string_view container, absl::string_view name,
                      std::shared_ptr<ResourceBase> resource);
  // Returns NOT_FOUND if there is no such resource, INVALID_ARGUMENT if it is not a T.
  template <typename T>
  absl::StatusOr<std::shared_ptr<T>> Lookup(absl::string_view container,
                                            absl::string_view name) const {
    return As<T>(container, name, Find(container, name));
  }
  // Returns the resource. Creates it by make() if it does not exist. make() returns a
  // std::shared_ptr<T> or a StatusOr of one. Concurrent calls for one resource call make() once:
  // one thread creates it, the others wait. If make() fails, its caller returns the error and one
  // of the waiting threads tries next. The other threads wait until make() returns, even if
  // their runs are cancelled.
  //
  // make() may use the manager, and may create other resources. LookupOrCreate returns
  // FAILED_PRECONDITION if that would deadlock. Returns CANCELLED if Close() was called before or
  // during make(), or if `stop`, which may be null, stopped the run during make().
  template <typename T, typename F>
  absl::StatusOr<std::shared_ptr<T>> LookupOrCreate(absl::string_view container,
                                                    absl::string_view name, F&& make,
                                                    StopToken* stop = nullptr) {
    const auto make_base = [&]() -> absl::StatusOr<std::shared_ptr<ResourceBase>> {
      absl::StatusOr<std::shared_ptr<T>> made = make();
      if (!made.ok()) return made.status();
      return std::shared_ptr<ResourceBase>(*std::move(made));
    };
    return As<T>(container, name, FindOrMake(container, name, make_base, stop));
  }

  // Removes a resource. Returns NOT_FOUND if it does not exist.
  absl::Status Delete(absl::string_view container, absl::string_view name);
  // Removes all resources of a container, if any.
  void Cleanup(absl::string_view container);
  // Removes all resources.
  void Clear();
  // Removes all resources and rejects new ones.
  void Close();
  // Returns a line per resource: container, name and the resource's DebugString().
  std::string DebugString() const;

 private:
  using Resources = std::map<std::string, std::shared_ptr<ResourceBase>, std::less<>>;
  using Containers = std::map<std::string, Resources, std::less<>>;
  // The state of a LookupOrCreate whose make() is running.
  struct Making;

  absl::StatusOr<std::shared_ptr<ResourceBase>> Find(absl::string_view container,
                                                     absl::string_view name) const;
  absl::StatusOr<std::shared_ptr<ResourceBase>> FindOrMake(
      absl::string_view container, absl::string_view name,
      absl::FunctionRef<absl::StatusOr<std::shared_ptr<ResourceBase>>()> make, StopToken* stop);
  std::shared_ptr<ResourceBase> FindLocked(absl::string_view container,
                                           absl::string_view name) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns true if the thread that runs make() is this thread or waits for it, directly or through
  // other threads.
  bool WaitsForThisThread(const Making* making) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckOpen() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static absl::Status WrongType(absl::string_view container, absl::string_view name,
                                const ResourceBase& resource, const std::type_info& expected);

  template <typename T>
  static absl::StatusOr<std::shared_ptr<T>> As(
      absl::string_view container, absl::string_view name,
      absl::StatusOr<std::shared_ptr<ResourceBase>> resource) {
    static_assert(std::is_base_of_v<ResourceBase, T>);
    if (!resource.ok()) return resource.status();
    if (auto typed = std::dynamic_pointer_cast<T>(*resource)) return typed;
    return WrongType(container, name, **resource, typeid(T));
  }

  mutable Mutex mutex_;
  Containers containers_ ABSL_GUARDED_BY(mutex_);
  // Resources being made, by container and name.
  std::map<std::pair<std::string, std::string>, std::shared_ptr<Making>> makings_
      ABSL_GUARDED_BY(mutex_);
  // The resource that each waiting thread waits for.
  std::map<std::thread::id, const Making*> waiting_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_CORE_RESOURCE_MANAGER_H_
