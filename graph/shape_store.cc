#include "gradflow/graph/shape_store.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace gradflow::internal {

const PartialTensorShape* ShapeStore::Unknown() {
  // Never destroyed, because graphs in static storage may live until the end.
  static const auto& unknown = *new PartialTensorShape();
  return &unknown;
}

const PartialTensorShape* ShapeStore::Add(absl::Span<PartialTensorShape> shapes, int* step) {
  *step = 0;
  if (shapes.empty()) return Unknown();
  const bool are_equal =
      std::adjacent_find(shapes.begin(), shapes.end(), std::not_equal_to<>()) == shapes.end();
  if (!are_equal) {
    const PartialTensorShape* before = nullptr;
    for (const PartialTensorShape& shape : shapes) {
      bytes_ += static_cast<int64_t>(sizeof(shape));
      if (before == nullptr || shape != *before) bytes_ += static_cast<int64_t>(shape.HeapBytes());
      before = &shape;
    }
    several_.push_back(std::make_unique<PartialTensorShape[]>(shapes.size()));
    std::move(shapes.begin(), shapes.end(), several_.back().get());
    *step = 1;
    return several_.back().get();
  }
  for (const PartialTensorShape* shape : recent_) {
    if (shape != nullptr && *shape == shapes[0]) return shape;
  }
  const PartialTensorShape* const added = &single_.emplace_back(std::move(shapes[0]));
  bytes_ += static_cast<int64_t>(sizeof(*added) + added->HeapBytes());
  recent_[next_recent_] = added;
  next_recent_ = (next_recent_ + 1) % kRecent;
  return added;
}

void ShapeStore::Truncate(const Mark& mark) {
  single_.resize(mark.single);
  several_.resize(mark.several);
  bytes_ = mark.bytes;
  recent_ = {};
}

}  // namespace gradflow::internal
