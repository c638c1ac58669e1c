#include "gradflow/ops/common/indices.h"

#include <algorithm>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "gradflow/core/status.h"

namespace gradflow {

std::string ElementName(absl::string_view name, const TensorShape& shape, int64_t i) {
  if (shape.dims() == 0) return std::string(name);
  std::string position;
  for (int d = shape.dims() - 1; d >= 0; --d) {
    position = absl::StrCat(i % shape.dim_size(d), position.empty() ? "" : ",", position);
    i /= shape.dim_size(d);
  }
  return absl::StrCat(name, "[", position, "]");
}

namespace {

// Returns the position of the first index that is not in [0, limit). Returns -1 if all are valid or
// the run is stopped.
template <typename Index>
int64_t FindBadIndex(const RunContext& run, const Index* values, int64_t count, int64_t limit) {
  FirstBadIndex bad;
  using Unsigned = std::make_unsigned_t<Index>;
  const auto last =
      static_cast<Unsigned>(std::min<int64_t>(limit - 1, std::numeric_limits<Index>::max()));
  ParallelFor(run, count, BlockSizeForCost(0.2), [&](int64_t begin, int64_t end) {
    // Indices after an invalid index need no check.
    if (begin > bad.first()) return;
    int64_t i = begin;
    // Compilers vectorize loops of constant length.
    constexpr int64_t kPart = 256;
    for (; i + kPart <= end; i += kPart) {
      // If an index is out of range, the sign bit of the index or of its distance to the last valid
      // index is set.
      Unsigned signs = 0;
      for (int64_t k = 0; k < kPart; ++k) {
        const auto value = static_cast<Unsigned>(values[i + k]);
        signs |= static_cast<Unsigned>(value | static_cast<Unsigned>(last - value));
      }
      if (static_cast<Index>(signs) < 0) break;
    }
    for (; i < end; ++i) {
      if (values[i] < 0 || values[i] >= limit) return bad.Found(i);
    }
  });
  return bad.any() ? bad.first() : -1;
}

}  // namespace

absl::Status CheckIndices(const RunContext& run, const Tensor& indices, int64_t limit) {
  int64_t bad = -1;
  DispatchType(TypeList<int16_t, int32_t, int64_t>(), indices.dtype(), [&](auto tag) {
    using Index = typename decltype(tag)::type;
    bad = FindBadIndex(run, indices.flat<Index>().data(), indices.NumElements(), limit);
  });
  if (bad < 0) return absl::OkStatus();
  return errors::InvalidArgument(ElementName("indices", indices.shape(), bad), " = ",
                                 IndexReader(indices)[bad], " is not in [0, ", limit, ")");
}

}  // namespace gradflow
