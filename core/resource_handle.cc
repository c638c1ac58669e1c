#include "gradflow/core/resource_handle.h"

#include "absl/strings/str_cat.h"
#include "gradflow/core/status.h"

namespace gradflow {

ResourceHandle::ResourceHandle(absl::string_view container, absl::string_view name, DataType dtype,
                               PartialTensorShape shape)
    : info_(std::make_shared<const Info>(
          Info{std::string(container), std::string(name), dtype, std::move(shape), nullptr})) {}

ResourceHandle::ResourceHandle(std::shared_ptr<ResourceBase> resource, absl::string_view name,
                               DataType dtype, PartialTensorShape shape)
    : info_(std::make_shared<const Info>(
          Info{"", std::string(name), dtype, std::move(shape), std::move(resource)})) {}

const ResourceHandle::Info& ResourceHandle::info() const {
  static const Info& none = *new Info;
  return info_ == nullptr ? none : *info_;
}

std::string ResourceHandle::DebugString() const {
  if (info_ == nullptr) return "no resource";
  return absl::StrCat("resource '", errors::Printable(name()), "'",
                      container().empty()
                          ? ""
                          : absl::StrCat(" of container '", errors::Printable(container()), "'"));
}

}  // namespace gradflow
