// ResourceHandle: the element of a tensor of type DT_RESOURCE, which names a resource.
//
// A handle holds the container and name of a resource in a ResourceManager, or owns the resource
// (resource()). Copies are cheap and share both. The handle of a variable also states the
// variable's type and shape, for shape inference and checks.
//
// In a running graph, edges of reference type also carry handles (TypeOfSlot).
//
// Thread safety: copies may be used on different threads.
#ifndef GRADFLOW_CORE_RESOURCE_HANDLE_H_
#define GRADFLOW_CORE_RESOURCE_HANDLE_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "gradflow/core/resource_manager.h"
#include "gradflow/core/tensor_shape.h"
#include "gradflow/core/types.h"

#pragma GCC visibility push(default)
namespace gradflow {

class ResourceHandle {
 public:
  // Names no resource.
  ResourceHandle() = default;
  // Names the resource `name` of `container`. `dtype` and `shape` describe a variable; `dtype` is
  // DT_INVALID for other resources.
  ResourceHandle(absl::string_view container, absl::string_view name, DataType dtype = DT_INVALID,
                 PartialTensorShape shape = PartialTensorShape());
  // Owns `resource`. Messages call it `name`.
  ResourceHandle(std::shared_ptr<ResourceBase> resource, absl::string_view name,
                 DataType dtype = DT_INVALID, PartialTensorShape shape = PartialTensorShape());

  // Return the arguments of the constructor.
  const std::string& container() const { return info().container; }
  const std::string& name() const { return info().name; }
  DataType dtype() const { return info().dtype; }
  const PartialTensorShape& shape() const { return info().shape; }
  // Returns the resource that the handle owns, or null.
  const std::shared_ptr<ResourceBase>& resource() const { return info().resource; }
  // "resource 'w' of container 'c'"
  std::string DebugString() const;

  // Handles are equal if they name and own the same resource.
  friend bool operator==(const ResourceHandle& a, const ResourceHandle& b) {
    return a.info_ == b.info_ ||
           (a.container() == b.container() && a.name() == b.name() && a.resource() == b.resource());
  }
  friend bool operator!=(const ResourceHandle& a, const ResourceHandle& b) { return !(a == b); }

 private:
  struct Info {
    std::string container;
    std::string name;
    DataType dtype = DT_INVALID;
    PartialTensorShape shape;
    std::shared_ptr<ResourceBase> resource;
  };
  const Info& info() const;

  std::shared_ptr<const Info> info_;
};

// Returns the type of the tensors that an edge of type `dtype` carries in a run: DT_RESOURCE if
// `dtype` is a reference type.
inline DataType TypeOfSlot(DataType dtype) { return IsRefType(dtype) ? DT_RESOURCE : dtype; }

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_CORE_RESOURCE_HANDLE_H_
