#include "gradflow/graph/shape_store.h"

#include <algorithm>
#include <utility>

namespace gradflow::internal {

const PartialTensorShape* ShapeStore::Unknown(int count) {
  // Never destroyed, as graphs of static storage may live until the end.
  static const auto& few = *new std::array<PartialTensorShape, 16>();
  if (count <= static_cast<int>(few.size())) return few.data();
  several_.push_back(std::make_unique<PartialTensorShape[]>(count));
  return several_.back().get();
}

const PartialTensorShape* ShapeStore::Add(absl::Span<PartialTensorShape> shapes) {
  if (shapes.empty()) return Unknown(0);
  if (shapes.size() > 1) {
    several_.push_back(std::make_unique<PartialTensorShape[]>(shapes.size()));
    std::move(shapes.begin(), shapes.end(), several_.back().get());
    return several_.back().get();
  }
  for (const PartialTensorShape* shape : recent_) {
    if (shape != nullptr && *shape == shapes[0]) return shape;
  }
  const PartialTensorShape* const added = &single_.emplace_back(std::move(shapes[0]));
  recent_[next_recent_] = added;
  next_recent_ = (next_recent_ + 1) % kRecent;
  return added;
}

void ShapeStore::Truncate(const Mark& mark) {
  single_.resize(mark.single);
  several_.resize(mark.several);
  recent_ = {};
}

}  // namespace gradflow::internal
