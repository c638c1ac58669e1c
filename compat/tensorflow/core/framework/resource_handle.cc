#include "tensorflow/core/framework/resource_handle.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/platform/logging.h"

namespace tensorflow {

struct ResourceHandle::Info final : gradflow::ResourceBase {
  std::string DebugString() const override {
    return state.resource == nullptr ? "" : state.resource->DebugString();
  }
  State state;
};

const ResourceHandle::State& ResourceHandle::info() const {
  // Handles that gradflow's kernels create have no such part.
  static const State& none = *[] {
    auto* state = new State;
    state->device = "/device:CPU:0";
    return state;
  }();
  const auto* const info = dynamic_cast<const Info*>(gradflow::ResourceHandle::resource().get());
  return info == nullptr ? none : info->state;
}

ResourceHandle::ResourceHandle(const ResourceHandle& other) : gradflow::ResourceHandle(other) {
  if (other.IsRefCounting()) Set(other.Copy(), other.name());
}

ResourceHandle& ResourceHandle::operator=(const ResourceHandle& other) {
  return this == &other ? *this : *this = ResourceHandle(other);
}

const std::string& ResourceHandle::container() const {
  return gradflow::ResourceHandle::container().empty() ? info().container
                                                       : gradflow::ResourceHandle::container();
}

ResourceHandle::State ResourceHandle::Copy() const {
  const State& old = info();
  State state;
  state.device = old.device;
  state.container = container();
  state.hash_code = old.hash_code;
  state.type_name = old.type_name;
  state.dtypes_and_shapes = dtypes_and_shapes();
  if (old.resource != nullptr) state.resource = core::GetNewRef(old.resource.get());
  return state;
}

void ResourceHandle::Set(State state, const std::string& name) {
  const DtypeAndPartialTensorShape first =
      state.dtypes_and_shapes.empty() ? DtypeAndPartialTensorShape() : state.dtypes_and_shapes[0];
  auto info = std::make_shared<Info>();
  info->state = std::move(state);
  gradflow::ResourceHandle::operator=(
      gradflow::ResourceHandle(std::move(info), name, first.dtype, first.shape));
}

void ResourceHandle::set_device(const std::string& device) {
  State state = Copy();
  state.device = device;
  Set(std::move(state), name());
}

void ResourceHandle::set_container(const std::string& container) {
  State state = Copy();
  state.container = container;
  Set(std::move(state), name());
}

void ResourceHandle::set_name(const std::string& name) {
  // Copies, because `name` may be the name of this handle.
  Set(Copy(), std::string(name));
}

void ResourceHandle::set_hash_code(uint64_t hash_code) {
  State state = Copy();
  state.hash_code = hash_code;
  Set(std::move(state), name());
}

void ResourceHandle::set_maybe_type_name(const std::string& type_name) {
  State state = Copy();
  state.type_name = type_name;
  Set(std::move(state), name());
}

std::vector<DtypeAndPartialTensorShape> ResourceHandle::dtypes_and_shapes() const {
  if (!info().dtypes_and_shapes.empty() || dtype() == DT_INVALID) return info().dtypes_and_shapes;
  return {{dtype(), shape()}};
}

void ResourceHandle::set_dtypes_and_shapes(
    const std::vector<DtypeAndPartialTensorShape>& dtypes_and_shapes) {
  State state = Copy();
  state.dtypes_and_shapes = dtypes_and_shapes;
  Set(std::move(state), name());
}

ResourceHandle ResourceHandle::Make(
    const std::string& device, const std::string& container, const std::string& name,
    const TypeIndex& type, const std::vector<DtypeAndPartialTensorShape>& dtypes_and_shapes,
    core::RefCountPtr<ResourceBase> resource) {
  State state;
  state.device = device;
  state.container = container;
  state.hash_code = type.hash_code();
  state.type_name = type.name();
  state.dtypes_and_shapes = dtypes_and_shapes;
  state.resource = std::move(resource);
  ResourceHandle handle;
  handle.Set(std::move(state), name);
  return handle;
}

ResourceHandle ResourceHandle::MakeRefCountingHandle(
    ResourceBase* resource, const std::string& device, const TypeIndex& type,
    const std::vector<DtypeAndPartialTensorShape>& dtypes_and_shapes) {
  return Make(device, "__ref_counting", absl::StrCat("resource_", absl::Hex(resource)), type,
              dtypes_and_shapes, core::RefCountPtr<ResourceBase>(resource));
}

ResourceHandle::ResourceHandle(const ResourceHandleProto& proto) { TF_CHECK_OK(FromProto(proto)); }

absl::Status ResourceHandle::BuildResourceHandle(const ResourceHandleProto& proto,
                                                 ResourceHandle* out) {
  return out->FromProto(proto);
}

absl::Status ResourceHandle::FromProto(const ResourceHandleProto& proto) {
  State state;
  state.device = proto.device();
  state.container = proto.container();
  state.hash_code = proto.hash_code();
  state.type_name = proto.maybe_type_name();
  for (const auto& dtype_and_shape : proto.dtypes_and_shapes()) {
    PartialTensorShape shape;
    TF_RETURN_IF_ERROR(
        PartialTensorShape::BuildPartialTensorShape(dtype_and_shape.shape(), &shape));
    state.dtypes_and_shapes.push_back({dtype_and_shape.dtype(), std::move(shape)});
  }
  Set(std::move(state), proto.name());
  return absl::OkStatus();
}

void ResourceHandle::AsProto(ResourceHandleProto* proto) const {
  proto->set_device(device());
  proto->set_container(container());
  proto->set_name(name());
  proto->set_hash_code(hash_code());
  proto->set_maybe_type_name(maybe_type_name());
  for (const DtypeAndPartialTensorShape& each : dtypes_and_shapes()) {
    auto* const added = proto->add_dtypes_and_shapes();
    added->set_dtype(each.dtype);
    each.shape.AsProto(added->mutable_shape());
  }
}

absl::Status ResourceHandle::ValidateType(const TypeIndex& type) const {
  if (type.hash_code() == hash_code()) return absl::OkStatus();
  return errors::InvalidArgument("Trying to access a handle's resource using the wrong type. ",
                                 "The handle points to a resource (name '", name(), "') of type '",
                                 maybe_type_name(), "' but you are trying to access it as type '",
                                 type.name(), "'");
}

std::string ResourceHandle::SummarizeValue() const {
  std::string types;
  for (const DtypeAndPartialTensorShape& each : dtypes_and_shapes()) {
    absl::StrAppend(&types, types.empty() ? "" : ", ", "DType enum: ", static_cast<int>(each.dtype),
                    ", Shape: ", each.shape.DebugString());
  }
  return absl::StrCat("ResourceHandle(name=\"", name(), "\", device=\"", device(),
                      "\", container=\"", container(), "\", type=\"", maybe_type_name(),
                      "\", dtype and shapes : \"[ ", types, " ]\")");
}

std::string ResourceHandle::DebugString() const {
  return absl::StrCat("device: ", device(), " container: ", container(), " name: ", name(),
                      " hash_code: ", hash_code(), " maybe_type_name ", maybe_type_name());
}

}  // namespace tensorflow
