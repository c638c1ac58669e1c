// ResourceMgr: resources of kernels, by container, C++ type and name.
//
//   Table* table;
//   OP_REQUIRES_OK(ctx, ctx->resource_manager()->LookupOrCreate<Table>(
//       container, name, &table, [](Table** ret) { *ret = new Table; return OkStatus(); }));
//   core::ScopedUnref unref(table);
//
// Each session has a ResourceMgr. It holds the resources of the program's own kernels, but not
// gradflow's variables. Thread-safe.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_RESOURCE_MGR_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_RESOURCE_MGR_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "gradflow/core/resource_manager.h"
#include "tensorflow/core/framework/device_base.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_base.h"
#include "tensorflow/core/framework/resource_handle.h"
#include "tensorflow/core/framework/type_index.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {

class ResourceMgr : public gradflow::ResourceBase {
 public:
  ResourceMgr() : ResourceMgr("localhost") {}
  explicit ResourceMgr(const std::string& default_container)
      : default_container_(default_container) {}
  ResourceMgr(const ResourceMgr&) = delete;
  ResourceMgr& operator=(const ResourceMgr&) = delete;

  const std::string& default_container() const { return default_container_; }

  // Adds a resource and takes over the caller's reference. Returns ALREADY_EXISTS if a resource
  // with this name and type exists. Returns FAILED_PRECONDITION after Finalize(); the caller then
  // keeps its reference.
  template <typename T>
  absl::Status Create(const std::string& container, const std::string& name, T* resource) {
    return Add(container, TypeIndex::Make<T>(), name, resource, true);
  }
  // Adds a resource that others own. It is no longer found after they have dropped it.
  template <typename T>
  absl::Status CreateUnowned(const std::string& container, const std::string& name, T* resource) {
    return Add(container, TypeIndex::Make<T>(), name, resource, false);
  }
  // Return a new reference to a resource, or NOT_FOUND.
  template <typename T, bool use_dynamic_cast = false>
  absl::Status Lookup(const std::string& container, const std::string& name, T** resource) const {
    tensorflow::ResourceBase* base = nullptr;
    const absl::Status status = Find(container, TypeIndex::Make<T>(), name, &base);
    *resource = static_cast<T*>(base);
    return status;
  }
  template <typename T>
  absl::Status Lookup(const std::string& container, const std::string& name,
                      core::RefCountPtr<T>* resource) const {
    T* found = nullptr;
    const absl::Status status = Lookup(container, name, &found);
    resource->reset(found);
    return status;
  }
  absl::Status Lookup(const ResourceHandle& handle, tensorflow::ResourceBase** resource) const;
  // Looks up many resources. Missing resources are null.
  template <typename T>
  absl::Status LookupMany(
      const std::vector<std::pair<const std::string*, const std::string*>>& containers_and_names,
      std::vector<core::RefCountPtr<T>>* resources) const {
    resources->clear();
    for (const auto& [container, name] : containers_and_names) {
      resources->emplace_back();
      Lookup(*container, *name, &resources->back()).IgnoreError();
    }
    return absl::OkStatus();
  }
  // Returns a new reference to a resource. If it does not exist, calls creator(&resource), which
  // returns a status, and adds the resource. The manager's lock is held while the creator runs.
  template <typename T, typename Creator>
  absl::Status LookupOrCreate(const std::string& container, const std::string& name, T** resource,
                              Creator creator) {
    const std::lock_guard<std::recursive_mutex> lock(mutex_);
    if (Lookup(container, name, resource).ok()) return absl::OkStatus();
    *resource = nullptr;
    TF_RETURN_IF_ERROR(CheckNotFinalized());
    TF_RETURN_IF_ERROR(creator(resource));
    (*resource)->Ref();
    const absl::Status status = Create(container, name, *resource);
    if (!status.ok()) {
      // With ALREADY_EXISTS, Create() has already dropped the manager's reference.
      if (!absl::IsAlreadyExists(status)) (*resource)->Unref();
      (*resource)->Unref();
      *resource = nullptr;
    }
    return status;
  }
  template <typename T, typename Creator>
  absl::Status LookupOrCreate(const std::string& container, const std::string& name,
                              core::RefCountPtr<T>* resource, Creator creator) {
    T* found = nullptr;
    const absl::Status status = LookupOrCreate(container, name, &found, std::move(creator));
    resource->reset(found);
    return status;
  }

  // Removes a resource. Returns NOT_FOUND if it does not exist, and INTERNAL if the manager does
  // not own it.
  template <typename T>
  absl::Status Delete(const std::string& container, const std::string& name) {
    return Remove(container, TypeIndex::Make<T>().hash_code(), name);
  }
  absl::Status Delete(const ResourceHandle& handle);
  // Removes the resources of a container, if any.
  absl::Status Cleanup(const std::string& container);
  // Removes all resources.
  void Clear();
  // Calls Finalize() on the owned resources. Afterwards no resource can be added.
  void Finalize();
  // Returns a line per resource.
  std::string DebugString() const override;

  // Returns a unique number for the name of a private resource.
  int64_t NewPrivateNumber();
  // Lives for as long as the manager.
  std::weak_ptr<const bool> alive() const { return alive_; }

 private:
  struct Entry {
    // Returns null if its owner has dropped the resource.
    core::RefCountPtr<tensorflow::ResourceBase> NewRef() const {
      return owned != nullptr ? core::GetNewRef(owned.get()) : unowned.GetNewRef();
    }

    // Exactly one of the two is set.
    core::RefCountPtr<tensorflow::ResourceBase> owned;
    core::WeakPtr<tensorflow::ResourceBase> unowned;
    std::string type_name;
  };
  // Keyed by type and name.
  using Container = std::map<std::pair<uint64_t, std::string>, Entry>;

  absl::Status Add(const std::string& container, const TypeIndex& type, const std::string& name,
                   tensorflow::ResourceBase* resource, bool owned);
  absl::Status Find(const std::string& container, const TypeIndex& type, const std::string& name,
                    tensorflow::ResourceBase** resource) const;
  absl::Status FindByHash(const std::string& container, uint64_t type, const std::string& type_name,
                          const std::string& name, tensorflow::ResourceBase** resource) const;
  absl::Status Remove(const std::string& container, uint64_t type, const std::string& name);
  absl::Status CheckNotFinalized() const;

  const std::string default_container_;
  const std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
  // Recursive, because creators may look up other resources.
  mutable std::recursive_mutex mutex_;
  std::map<std::string, Container> containers_;
  int64_t private_numbers_ = 0;
  bool finalized_ = false;
};

// The resources of one step, in a separate container that is removed with this object.
class ScopedStepContainer {
 public:
  // `cleanup` removes the container with the given name.
  ScopedStepContainer(int64_t step_id, std::function<absl::Status(const std::string&)> cleanup,
                      const std::string& prefix = "")
      : step_id_(step_id),
        name_(prefix + "__per_step_" + std::to_string(step_id)),
        cleanup_(std::move(cleanup)) {}
  ScopedStepContainer(const ScopedStepContainer&) = delete;
  ScopedStepContainer& operator=(const ScopedStepContainer&) = delete;
  ~ScopedStepContainer() { CleanUp(); }

  int64_t StepId() const { return step_id_; }
  const std::string& name() const { return name_; }
  void CleanUp() { cleanup_(name_).IgnoreError(); }

  // Same as in ResourceMgr, for this container.
  template <typename T>
  absl::Status Create(ResourceMgr* manager, const std::string& name, T* resource) {
    return manager->Create(name_, name, resource);
  }
  template <typename T>
  absl::Status Lookup(ResourceMgr* manager, const std::string& name, T** resource) const {
    return manager->Lookup(name_, name, resource);
  }
  template <typename T, typename Creator>
  absl::Status LookupOrCreate(ResourceMgr* manager, const std::string& name, T** resource,
                              Creator creator) {
    return manager->LookupOrCreate(name_, name, resource, std::move(creator));
  }
  template <typename T>
  absl::Status Delete(ResourceMgr* manager, const std::string& name) {
    return manager->template Delete<T>(name_, name);
  }

 private:
  const int64_t step_id_;
  const std::string name_;
  const std::function<absl::Status(const std::string&)> cleanup_;
};

// The container and the name of a kernel's resource, from the attributes of its node.
class ContainerInfo {
 public:
  // Reads `container` and `shared_name`. Without a shared name, uses the name of the node, or a
  // name that no other kernel has.
  absl::Status Init(ResourceMgr* manager, const NodeDef& node, bool use_node_name_as_default);
  absl::Status Init(ResourceMgr* manager, const NodeDef& node) {
    return Init(manager, node, false);
  }

  // Returns null if the manager no longer exists.
  ResourceMgr* resource_manager() const { return alive_.expired() ? nullptr : manager_; }
  const std::string& container() const { return container_; }
  const std::string& name() const { return name_; }
  bool resource_is_private_to_kernel() const { return is_private_; }
  std::string DebugString() const;

 private:
  ResourceMgr* manager_ = nullptr;
  std::weak_ptr<const bool> alive_;
  std::string container_;
  std::string name_;
  bool is_private_ = false;
};

// ---- Handles ----

ResourceHandle MakeResourceHandle(
    const std::string& container, const std::string& name, const DeviceBase& device,
    const TypeIndex& type, const std::vector<DtypeAndPartialTensorShape>& dtypes_and_shapes = {});
template <typename T>
ResourceHandle MakeResourceHandle(
    const std::string& container, const std::string& name, const DeviceBase& device,
    const std::vector<DtypeAndPartialTensorShape>& dtypes_and_shapes = {}) {
  return MakeResourceHandle(container, name, device, TypeIndex::Make<T>(), dtypes_and_shapes);
}
template <typename T>
ResourceHandle MakeResourceHandle(
    OpKernelContext* ctx, const std::string& container, const std::string& name,
    const std::vector<DtypeAndPartialTensorShape>& dtypes_and_shapes = {}) {
  const bool is_default = container.empty() && ctx->resource_manager() != nullptr;
  return MakeResourceHandle<T>(
      is_default ? ctx->resource_manager()->default_container() : container, name, *ctx->device(),
      dtypes_and_shapes);
}
absl::Status MakeResourceHandleToOutput(OpKernelContext* ctx, int output,
                                        const std::string& container, const std::string& name,
                                        const TypeIndex& type);

// Return the handle in an input, or INVALID_ARGUMENT.
absl::Status HandleFromInput(OpKernelContext* ctx, int input, ResourceHandle* handle);
absl::Status HandleFromInput(OpKernelContext* ctx, absl::string_view input, ResourceHandle* handle);
// Returns a copy of the handle in an input, because tensors hold gradflow's handle type. Returns an
// empty handle if there is none.
ResourceHandle HandleFromInput(OpKernelContext* ctx, int input);

namespace internal {

// Returns INVALID_ARGUMENT if the handle belongs to another device.
absl::Status ValidateDevice(OpKernelContext* ctx, const ResourceHandle& handle);
// Returns INTERNAL if there is no manager.
absl::Status RequireManager(OpKernelContext* ctx);
template <typename T>
absl::Status ValidateDeviceAndType(OpKernelContext* ctx, const ResourceHandle& handle) {
  TF_RETURN_IF_ERROR(RequireManager(ctx));
  TF_RETURN_IF_ERROR(ValidateDevice(ctx, handle));
  return handle.ValidateType<T>();
}

}  // namespace internal

// Adds the resource of a handle. On success, takes over the caller's reference.
template <typename T>
absl::Status CreateResource(OpKernelContext* ctx, const ResourceHandle& handle, T* value) {
  TF_RETURN_IF_ERROR(internal::ValidateDeviceAndType<T>(ctx, handle));
  return ctx->resource_manager()->Create(handle.container(), handle.name(), value);
}
// Return a new reference to the resource of a handle.
template <typename T>
absl::Status LookupResource(OpKernelContext* ctx, const ResourceHandle& handle, T** value) {
  if (handle.IsRefCounting()) {
    const absl::StatusOr<T*> owned = handle.GetResource<T>();
    TF_RETURN_IF_ERROR(owned.status());
    (*owned)->Ref();
    *value = *owned;
    return absl::OkStatus();
  }
  TF_RETURN_IF_ERROR(internal::ValidateDeviceAndType<T>(ctx, handle));
  return ctx->resource_manager()->Lookup(handle.container(), handle.name(), value);
}
absl::Status LookupResource(OpKernelContext* ctx, const ResourceHandle& handle,
                            ResourceBase** value);
template <typename T>
absl::Status LookupResource(OpKernelContext* ctx, const ResourceHandle& handle,
                            core::RefCountPtr<T>* value) {
  T* found = nullptr;
  const absl::Status status = LookupResource(ctx, handle, &found);
  value->reset(found);
  return status;
}
template <typename T, typename Creator>
absl::Status LookupOrCreateResource(OpKernelContext* ctx, const ResourceHandle& handle, T** value,
                                    Creator creator) {
  TF_RETURN_IF_ERROR(internal::ValidateDeviceAndType<T>(ctx, handle));
  return ctx->resource_manager()->LookupOrCreate(handle.container(), handle.name(), value,
                                                 std::move(creator));
}
template <typename T, typename Creator>
absl::Status LookupOrCreateResource(OpKernelContext* ctx, const ResourceHandle& handle,
                                    core::RefCountPtr<T>* value, Creator creator) {
  T* found = nullptr;
  const absl::Status status = LookupOrCreateResource(ctx, handle, &found, std::move(creator));
  value->reset(found);
  return status;
}
// Removes the resource of a handle. No effect if the handle owns the resource.
template <typename T>
absl::Status DeleteResource(OpKernelContext* ctx, const ResourceHandle& handle) {
  if (handle.IsRefCounting()) return absl::OkStatus();
  TF_RETURN_IF_ERROR(internal::ValidateDeviceAndType<T>(ctx, handle));
  return ctx->resource_manager()->Delete<T>(handle.container(), handle.name());
}
absl::Status DeleteResource(OpKernelContext* ctx, const ResourceHandle& handle);
template <typename T>
absl::Status GetResourceFromContext(OpKernelContext* ctx, const std::string& input_name,
                                    T** resource) {
  ResourceHandle handle;
  TF_RETURN_IF_ERROR(HandleFromInput(ctx, input_name, &handle));
  return LookupResource(ctx, handle, resource);
}

// The kernel of an op that returns a handle to a resource of class T.
template <typename T>
class ResourceHandleOp : public OpKernel {
 public:
  explicit ResourceHandleOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("container", &container_));
    OP_REQUIRES_OK(context, context->GetAttr("shared_name", &name_));
  }
  void Compute(OpKernelContext* ctx) override {
    OP_REQUIRES_OK(ctx,
                   MakeResourceHandleToOutput(ctx, 0, container_, name_.empty() ? name() : name_,
                                              TypeIndex::Make<T>()));
  }
  bool IsExpensive() override { return false; }

 private:
  std::string container_;
  std::string name_;
};

// The kernel of an op that returns true if the resource of its handle exists.
template <typename T>
class IsResourceInitialized : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* ctx) override {
    Tensor* output;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, {}, &output));
    core::RefCountPtr<T> resource;
    output->flat<bool>()(0) = LookupResource(ctx, HandleFromInput(ctx, 0), &resource).ok();
  }
};

}  // namespace tensorflow

#define REGISTER_RESOURCE_HANDLE_OP(Type) \
  REGISTER_OP(#Type "HandleOp")           \
      .Attr("container: string = ''")     \
      .Attr("shared_name: string = ''")   \
      .Output("resource: resource")       \
      .SetIsStateful()
#define REGISTER_RESOURCE_HANDLE_KERNEL(Type) \
  REGISTER_KERNEL_BUILDER(Name(#Type "HandleOp").Device(DEVICE_CPU), ResourceHandleOp<Type>)

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_RESOURCE_MGR_H_
