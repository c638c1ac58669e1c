// ResourceManager: what kernels keep from one run to the next, owned by the session.
//
// A resource has a name within a named container; the container "" is the default one. Kernels
// find theirs through KernelContext::resource_manager():
//
//   class Counter : public ResourceBase { ... };
//   GRADFLOW_ASSIGN_OR_RETURN(
//       const std::shared_ptr<Counter> counter,
//       ctx.resource_manager()->LookupOrCreate<Counter>(
//           container_, name_, [] { return std::make_shared<Counter>(); }));
//
// An op whose kernel does this is Stateful(), so that no optimisation takes its nodes for functions
// of their inputs. A resource lives until it has been removed, or the session ends, and no one
// holds it any more.
//
// Thread safety: all of it may be used from any thread. Resources look after themselves.
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

class ResourceBase {
 public:
  virtual ~ResourceBase() = default;
  // A line for people.
  virtual std::string DebugString() const = 0;
};

class ResourceManager {
 public:
  ResourceManager() = default;
  ~ResourceManager();
  ResourceManager(const ResourceManager&) = delete;
  ResourceManager& operator=(const ResourceManager&) = delete;

  // ALREADY_EXISTS if there is one of that name, whatever its type; CANCELLED after Close().
  // REQUIRES: resource != nullptr
  absl::Status Create(absl::string_view container, absl::string_view name,
                      std::shared_ptr<ResourceBase> resource);
  // NOT_FOUND if there is none; INVALID_ARGUMENT if it is no T.
  template <typename T>
  absl::StatusOr<std::shared_ptr<T>> Lookup(absl::string_view container,
                                            absl::string_view name) const {
    return As<T>(container, name, Find(container, name));
  }
  // The one that is there, or else what make() returns: a std::shared_ptr<T> or a StatusOr of one.
  // Of several threads that ask at once, one makes it, and only the others that ask for the same
  // wait; if it fails, nothing is left, and the next one tries. make() may use the manager, also to
  // make other resources: FAILED_PRECONDITION if makers would wait for each other in a circle.
  // CANCELLED after Close(), also if that comes while it is made, or if the run is stopped then.
  // Waiting for a maker ends when that does, whatever becomes of the run that waits.
  template <typename T, typename F>
  absl::StatusOr<std::shared_ptr<T>> LookupOrCreate(absl::string_view container,
                                                    absl::string_view name, F&& make) {
    const auto make_base = [&]() -> absl::StatusOr<std::shared_ptr<ResourceBase>> {
      absl::StatusOr<std::shared_ptr<T>> made = make();
      if (!made.ok()) return made.status();
      return std::shared_ptr<ResourceBase>(*std::move(made));
    };
    return As<T>(container, name, FindOrMake(container, name, make_base));
  }

  // NOT_FOUND if there is none.
  absl::Status Delete(absl::string_view container, absl::string_view name);
  // Removes all resources of a container; there need not be any.
  void Cleanup(absl::string_view container);
  // Removes all resources.
  void Clear();
  // The same, and takes no more.
  void Close();
  // A line for each resource: container, name and what it says of itself, for which it must not use
  // the manager.
  std::string DebugString() const;

 private:
  using Resources = std::map<std::string, std::shared_ptr<ResourceBase>, std::less<>>;
  using Containers = std::map<std::string, Resources, std::less<>>;
  // A resource that is being made.
  struct Making;

  absl::StatusOr<std::shared_ptr<ResourceBase>> Find(absl::string_view container,
                                                     absl::string_view name) const;
  absl::StatusOr<std::shared_ptr<ResourceBase>> FindOrMake(
      absl::string_view container, absl::string_view name,
      absl::FunctionRef<absl::StatusOr<std::shared_ptr<ResourceBase>>()> make);
  std::shared_ptr<ResourceBase> FindLocked(absl::string_view container,
                                           absl::string_view name) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the maker is this thread, or waits for it, perhaps through others.
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
  // By container and name.
  std::map<std::pair<std::string, std::string>, std::shared_ptr<Making>> makings_
      ABSL_GUARDED_BY(mutex_);
  // What threads wait for.
  std::map<std::thread::id, const Making*> waiting_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_CORE_RESOURCE_MANAGER_H_
