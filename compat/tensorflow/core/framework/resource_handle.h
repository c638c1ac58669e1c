// ResourceHandle: the element type of DT_RESOURCE tensors. It is gradflow's class with TensorFlow's
// names, and views of a tensor accept either class.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_RESOURCE_HANDLE_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_RESOURCE_HANDLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gradflow/core/resource_handle.h"
#include "tensorflow/core/framework/resource_base.h"
#include "tensorflow/core/framework/resource_handle.pb.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/type_index.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {

// The type and shape of the value that a handle refers to.
struct DtypeAndPartialTensorShape {
  DataType dtype = DT_INVALID;
  PartialTensorShape shape;
};

class ResourceHandle : public gradflow::ResourceHandle {
 public:
  ResourceHandle() = default;
  ResourceHandle(const gradflow::ResourceHandle& other)  // NOLINT: both are one
      : gradflow::ResourceHandle(other) {}
  // Each copy holds a separate reference to a resource that the handle owns. (Tensors that share
  // elements, and copies that gradflow's kernels make, share one reference.)
  ResourceHandle(const ResourceHandle& other);
  ResourceHandle& operator=(const ResourceHandle& other);
  ResourceHandle(ResourceHandle&&) = default;
  ResourceHandle& operator=(ResourceHandle&&) = default;
  ~ResourceHandle() = default;
  // Creates the handle of a message. Ends the program if a shape is invalid.
  explicit ResourceHandle(const ResourceHandleProto& proto);
  static absl::Status BuildResourceHandle(const ResourceHandleProto& proto, ResourceHandle* out);

  // Creates a handle with these properties.
  static ResourceHandle Make(const std::string& device, const std::string& container,
                             const std::string& name, const TypeIndex& type,
                             const std::vector<DtypeAndPartialTensorShape>& dtypes_and_shapes,
                             core::RefCountPtr<ResourceBase> resource = nullptr);
  // Creates a handle that owns the resource, and takes over the caller's reference.
  template <typename Stack = std::nullptr_t>
  static ResourceHandle MakeRefCountingHandle(
      ResourceBase* resource, const std::string& device,
      const std::vector<DtypeAndPartialTensorShape>& dtypes_and_shapes = {},
      const Stack& = nullptr) {
    return MakeRefCountingHandle(resource, device, TypeIndex(), dtypes_and_shapes);
  }
  static ResourceHandle MakeRefCountingHandle(
      ResourceBase* resource, const std::string& device, const TypeIndex& type,
      const std::vector<DtypeAndPartialTensorShape>& dtypes_and_shapes);

  // The device, the container, the name of the resource, and its type.
  const std::string& device() const { return info().device; }
  void set_device(const std::string& device);
  const std::string& container() const;
  void set_container(const std::string& container);
  const std::string& name() const { return gradflow::ResourceHandle::name(); }
  void set_name(const std::string& name);
  uint64_t hash_code() const { return info().hash_code; }
  void set_hash_code(uint64_t hash_code);
  const std::string& maybe_type_name() const { return info().type_name; }
  void set_maybe_type_name(const std::string& type_name);
  std::vector<DtypeAndPartialTensorShape> dtypes_and_shapes() const;
  void set_dtypes_and_shapes(const std::vector<DtypeAndPartialTensorShape>& dtypes_and_shapes);

  // Returns the resource that the handle owns, or null.
  const core::RefCountPtr<ResourceBase>& resource() const { return info().resource; }
  bool IsRefCounting() const { return resource() != nullptr; }
  // Handles are equal if they name and own the same resource.
  friend bool operator==(const ResourceHandle& a, const ResourceHandle& b) {
    return a.resource().get() == b.resource().get() && a.container() == b.container() &&
           a.name() == b.name();
  }
  friend bool operator!=(const ResourceHandle& a, const ResourceHandle& b) { return !(a == b); }
  // Returns NOT_FOUND unless the handle owns a resource, and INVALID_ARGUMENT if the resource is
  // not a T.
  template <typename T>
  absl::StatusOr<T*> GetResource() const {
    if (!IsRefCounting()) {
      return errors::NotFound(DebugString(), " does not own its resource");
    }
    T* const typed = dynamic_cast<T*>(resource().get());
    if (typed == nullptr) {
      return errors::InvalidArgument(DebugString(), " refers to a resource of another type");
    }
    return typed;
  }
  template <typename T>
  absl::Status ValidateType() const {
    return ValidateType(TypeIndex::Make<T>());
  }
  absl::Status ValidateType(const TypeIndex& type) const;

  std::string SummarizeValue() const;
  std::string DebugString() const;
  void AsProto(ResourceHandleProto* proto) const;
  absl::Status FromProto(const ResourceHandleProto& proto);

 private:
  // The fields that gradflow's handle lacks. They are stored as the resource that it owns.
  struct Info;
  struct State {
    std::string device;
    std::string container;
    uint64_t hash_code = 0;
    std::string type_name;
    std::vector<DtypeAndPartialTensorShape> dtypes_and_shapes;
    core::RefCountPtr<ResourceBase> resource;
  };
  State Copy() const;
  void Set(State state, const std::string& name);
  const State& info() const;
};
// Elements of tensors have the base class.
static_assert(sizeof(ResourceHandle) == sizeof(gradflow::ResourceHandle));

}  // namespace tensorflow

namespace gradflow {

template <>
struct DataTypeToEnum<tensorflow::ResourceHandle> : DataTypeToEnum<ResourceHandle> {};

}  // namespace gradflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_RESOURCE_HANDLE_H_
