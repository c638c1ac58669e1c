#include "tensorflow/core/framework/resource_mgr.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/name_ranges.h"

namespace tensorflow {
namespace {

std::string Label(const std::string& container, const std::string& name,
                  const std::string& type_name) {
  return absl::StrCat("Resource ", container, "/", name, "/", type_name);
}

}  // namespace

absl::Status ResourceMgr::CheckNotFinalized() const {
  return finalized_ ? errors::FailedPrecondition("ResourceMgr is finalized") : absl::OkStatus();
}

absl::Status ResourceMgr::Add(const std::string& container, const TypeIndex& type,
                              const std::string& name, tensorflow::ResourceBase* resource,
                              bool owned) {
  // Dropped after the lock is released.
  core::RefCountPtr<tensorflow::ResourceBase> dropped;
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  TF_RETURN_IF_ERROR(CheckNotFinalized());
  Container& resources = containers_[container];
  const auto key = std::make_pair(type.hash_code(), name);
  const auto it = resources.find(key);
  if (it != resources.end()) {
    if (it->second.NewRef() != nullptr) {
      if (owned) dropped.reset(resource);
      return errors::AlreadyExists(Label(container, name, type.name()));
    }
    resources.erase(it);
  }
  Entry entry;
  entry.type_name = type.name();
  if (owned) {
    entry.owned.reset(resource);
  } else {
    entry.unowned = core::WeakPtr<tensorflow::ResourceBase>(resource);
  }
  resources.emplace(key, std::move(entry));
  return absl::OkStatus();
}

absl::Status ResourceMgr::Find(const std::string& container, const TypeIndex& type,
                               const std::string& name, tensorflow::ResourceBase** resource) const {
  return FindByHash(container, type.hash_code(), type.name(), name, resource);
}

absl::Status ResourceMgr::FindByHash(const std::string& container, uint64_t type,
                                     const std::string& type_name, const std::string& name,
                                     tensorflow::ResourceBase** resource) const {
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  const auto resources = containers_.find(container);
  if (resources == containers_.end()) {
    return errors::NotFound("Container ", container,
                            " does not exist. (Could not find resource: ", container, "/", name,
                            ")");
  }
  const auto it = resources->second.find(std::make_pair(type, name));
  if (it != resources->second.end()) {
    core::RefCountPtr<tensorflow::ResourceBase> found = it->second.NewRef();
    if (found != nullptr) {
      *resource = found.release();
      return absl::OkStatus();
    }
  }
  return errors::NotFound(Label(container, name, type_name), " does not exist.");
}

absl::Status ResourceMgr::Remove(const std::string& container, uint64_t type,
                                 const std::string& name) {
  Entry removed;  // destroyed without the lock
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  const auto resources = containers_.find(container);
  if (resources == containers_.end()) {
    return errors::NotFound("Container ", container, " does not exist.");
  }
  const auto it = resources->second.find(std::make_pair(type, name));
  if (it == resources->second.end()) {
    return errors::NotFound(Label(container, name, ""), " does not exist.");
  }
  removed = std::move(it->second);
  resources->second.erase(it);
  if (removed.owned == nullptr) {
    return errors::Internal("Cannot delete an unowned ", Label(container, name, removed.type_name));
  }
  return absl::OkStatus();
}

absl::Status ResourceMgr::Lookup(const ResourceHandle& handle,
                                 tensorflow::ResourceBase** resource) const {
  return FindByHash(handle.container(), handle.hash_code(), handle.maybe_type_name(), handle.name(),
                    resource);
}

absl::Status ResourceMgr::Delete(const ResourceHandle& handle) {
  return Remove(handle.container(), handle.hash_code(), handle.name());
}

absl::Status ResourceMgr::Cleanup(const std::string& container) {
  Container removed;  // destroyed without the lock
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  const auto it = containers_.find(container);
  if (it == containers_.end()) return absl::OkStatus();
  removed.swap(it->second);
  containers_.erase(it);
  return absl::OkStatus();
}

void ResourceMgr::Clear() {
  std::map<std::string, Container> removed;  // destroyed without the lock
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  removed.swap(containers_);
}

void ResourceMgr::Finalize() {
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  if (finalized_) return;
  finalized_ = true;
  for (auto& [container, resources] : containers_) {
    for (auto& [key, entry] : resources) {
      if (entry.owned != nullptr) entry.owned->Finalize();
    }
  }
}

std::string ResourceMgr::DebugString() const {
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  std::string text;
  for (const auto& [container, resources] : containers_) {
    for (const auto& [key, entry] : resources) {
      const core::RefCountPtr<tensorflow::ResourceBase> resource = entry.NewRef();
      absl::StrAppend(&text, text.empty() ? "" : "\n", container, " | ", entry.type_name, " | ",
                      key.second, " | ", resource == nullptr ? "<gone>" : resource->DebugString());
    }
  }
  return text;
}

int64_t ResourceMgr::NewPrivateNumber() {
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  return private_numbers_++;
}

absl::Status ContainerInfo::Init(ResourceMgr* manager, const NodeDef& node,
                                 bool use_node_name_as_default) {
  if (manager == nullptr) return errors::Internal("there is no resource manager");
  manager_ = manager;
  alive_ = manager->alive();
  for (const char* const name : {"container", "shared_name"}) {
    if (HasNodeAttr(node, name)) continue;
    return errors::NotFound("No attr named '", name, "' in NodeDef ", FormatNodeDefForError(node));
  }
  TF_RETURN_IF_ERROR(GetNodeAttr(node, "container", &container_));
  const auto is_valid = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains("_.-/", c);
  };
  const bool starts_well = container_.empty() ||
                           absl::ascii_isalnum(static_cast<unsigned char>(container_[0])) ||
                           container_[0] == '.';
  if (!starts_well || !std::all_of(container_.begin(), container_.end(), is_valid)) {
    return errors::InvalidArgument("container contains invalid characters: ", container_);
  }
  if (container_.empty()) container_ = manager->default_container();
  TF_RETURN_IF_ERROR(GetNodeAttr(node, "shared_name", &name_));
  if (absl::StartsWith(name_, "_")) {
    return errors::InvalidArgument("shared_name cannot start with '_': ", name_);
  }
  is_private_ = name_.empty() && !use_node_name_as_default;
  if (is_private_) {
    name_ = absl::StrCat("_", manager->NewPrivateNumber(), "_", node.name());
  } else if (name_.empty()) {
    name_ = node.name();
  }
  return absl::OkStatus();
}

std::string ContainerInfo::DebugString() const {
  return absl::StrCat("[", container_, ",", name_, ",", is_private_ ? "private" : "public", "]");
}

ResourceHandle MakeResourceHandle(
    const std::string& container, const std::string& name, const DeviceBase& device,
    const TypeIndex& type, const std::vector<DtypeAndPartialTensorShape>& dtypes_and_shapes) {
  return ResourceHandle::Make(device.name(), container, name, type, dtypes_and_shapes);
}

absl::Status MakeResourceHandleToOutput(OpKernelContext* ctx, int output,
                                        const std::string& container, const std::string& name,
                                        const TypeIndex& type) {
  TF_RETURN_IF_ERROR(internal::RequireManager(ctx));
  Tensor* handle;
  TF_RETURN_IF_ERROR(ctx->allocate_output(output, TensorShape(), &handle));
  handle->span<gradflow::ResourceHandle>()[0] = MakeResourceHandle(
      container.empty() ? ctx->resource_manager()->default_container() : container, name,
      *ctx->device(), type);
  return absl::OkStatus();
}

absl::Status HandleFromInput(OpKernelContext* ctx, int input, ResourceHandle* handle) {
  const absl::StatusOr<const Tensor*> found = ctx->get_input(input);
  TF_RETURN_IF_ERROR(found.status());
  const Tensor* const tensor = *found;
  if (tensor->dtype() != DT_RESOURCE || tensor->NumElements() == 0) {
    return errors::InvalidArgument("input ", input, " must be a resource handle, but is ",
                                   DataTypeString(tensor->dtype()), " ",
                                   tensor->shape().DebugString());
  }
  *handle = tensor->span<gradflow::ResourceHandle>()[0];
  return absl::OkStatus();
}

absl::Status HandleFromInput(OpKernelContext* ctx, absl::string_view input,
                             ResourceHandle* handle) {
  int i;
  TF_RETURN_IF_ERROR(compat_internal::FindInput(ctx->op_kernel(), input, &i));
  return HandleFromInput(ctx, i, handle);
}

ResourceHandle HandleFromInput(OpKernelContext* ctx, int input) {
  ResourceHandle handle;
  HandleFromInput(ctx, input, &handle).IgnoreError();
  return handle;
}

namespace internal {

absl::Status RequireManager(OpKernelContext* ctx) {
  if (ctx->resource_manager() != nullptr) return absl::OkStatus();
  return errors::Internal("there is no resource manager");
}

absl::Status ValidateDevice(OpKernelContext* ctx, const ResourceHandle& handle) {
  if (ctx->device()->name() == handle.device()) return absl::OkStatus();
  return errors::InvalidArgument("Trying to access resource ", handle.name(), " located in device ",
                                 handle.device(), " from device ", ctx->device()->name());
}

}  // namespace internal

absl::Status LookupResource(OpKernelContext* ctx, const ResourceHandle& handle,
                            ResourceBase** value) {
  if (handle.IsRefCounting()) {
    *value = core::GetNewRef(handle.resource().get()).release();
    return absl::OkStatus();
  }
  TF_RETURN_IF_ERROR(internal::RequireManager(ctx));
  TF_RETURN_IF_ERROR(internal::ValidateDevice(ctx, handle));
  return ctx->resource_manager()->Lookup(handle, value);
}

absl::Status DeleteResource(OpKernelContext* ctx, const ResourceHandle& handle) {
  if (handle.IsRefCounting()) return absl::OkStatus();
  TF_RETURN_IF_ERROR(internal::RequireManager(ctx));
  TF_RETURN_IF_ERROR(internal::ValidateDevice(ctx, handle));
  return ctx->resource_manager()->Delete(handle);
}

}  // namespace tensorflow
