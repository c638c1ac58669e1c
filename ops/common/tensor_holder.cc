#include "gradflow/ops/common/tensor_holder.h"

#include <atomic>

#include "gradflow/core/resource_handle.h"
#include "gradflow/core/status.h"
#include "gradflow/core/tensor_list.h"
#include "gradflow/core/variant.h"

namespace gradflow {
namespace {

uint64_t NextNumber() {
  static std::atomic<uint64_t> next{0};
  return next.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

TensorHolder::TensorHolder() : number_(NextNumber()) {}

absl::Status TensorHolder::CheckHandles(const Tensor& value) const {
  int64_t searched = 0;
  return CheckHandles(value, &searched);
}

absl::Status TensorHolder::CheckHandles(const Tensor& value, int64_t* searched) const {
  if (value.dtype() == DT_RESOURCE) {
    for (const ResourceHandle& handle : value.span<ResourceHandle>()) {
      const auto* const holder = dynamic_cast<const TensorHolder*>(handle.resource().get());
      if (holder == nullptr || holder->number_ > number_) continue;
      return errors::InvalidArgument(
          DebugString(), " cannot hold the handle of ",
          holder == this ? "itself" : "a resource that was made before it: ",
          holder == this ? "" : holder->DebugString());
    }
    return absl::OkStatus();
  }
  if (value.dtype() != DT_VARIANT) return absl::OkStatus();
  // Lists may share their elements, so a search without a limit could take exponential time.
  constexpr int64_t kMost = 10'000;
  for (const Variant& variant : value.span<Variant>()) {
    const auto* const list = variant.get<TensorList>();
    if (list == nullptr) continue;
    if (list->element_dtype() != DT_RESOURCE && list->element_dtype() != DT_VARIANT) continue;
    *searched += list->size();
    if (*searched > kMost) {
      return errors::ResourceExhausted(DebugString(), " cannot hold lists with more than ", kMost,
                                       " handles and lists");
    }
    for (const Tensor& element : list->elements()) {
      GRADFLOW_RETURN_IF_ERROR(CheckHandles(element, searched));
    }
  }
  return absl::OkStatus();
}

}  // namespace gradflow
