#include "gradflow/ops/common/element_copy.h"

#include <algorithm>
#include <cstring>

#include "gradflow/core/resource_handle.h"
#include "gradflow/core/variant.h"

namespace gradflow {

void CopyElements(const Tensor& from, int64_t from_at, int64_t count, Tensor* to, int64_t to_at) {
  if (count == 0) return;
  const auto copy = [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::copy_n(from.span<T>().begin() + from_at, count, to->span<T>().begin() + to_at);
  };
  if (DispatchType(TypeList<tstring, Variant, ResourceHandle>(), from.dtype(), copy)) return;
  const size_t size = DataTypeSize(from.dtype());
  std::memcpy(static_cast<char*>(to->raw_data()) + to_at * size,
              static_cast<const char*>(from.raw_data()) + from_at * size, count * size);
}

}  // namespace gradflow
