// ShapeStore: the inferred shapes of a graph's nodes. Internal.
#ifndef GRADFLOW_GRAPH_SHAPE_STORE_H_
#define GRADFLOW_GRAPH_SHAPE_STORE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "gradflow/core/tensor_shape.h"

namespace gradflow::internal {

// Most nodes have the same shape as a node shortly before them, and share it. A node stores a shape
// once if all its outputs have this shape.
class ShapeStore {
 public:
  // A position in the store.
  struct Mark {
    size_t single = 0;
    size_t several = 0;
    int64_t bytes = 0;
  };

  // Returns a shape of unknown rank.
  static const PartialTensorShape* Unknown();
  // Returns shapes equal to `shapes`. Moves from `shapes` unless the store already has them. Shape
  // i is at i * *step.
  const PartialTensorShape* Add(absl::Span<PartialTensorShape> shapes, int* step);

  Mark mark() const { return {single_.size(), several_.size(), bytes_}; }
  // Returns the bytes of all shapes. A shared shape counts once.
  int64_t bytes() const { return bytes_; }
  // Destroys the shapes that were added since `mark`.
  void Truncate(const Mark& mark);

 private:
  // The number of recent shapes that a new shape is compared with.
  static constexpr int kRecent = 4;

  std::deque<PartialTensorShape> single_;
  std::vector<std::unique_ptr<PartialTensorShape[]>> several_;
  int64_t bytes_ = 0;
  // The latest elements of single_, in a ring; null for free places.
  std::array<const PartialTensorShape*, kRecent> recent_{};
  int next_recent_ = 0;
};

}  // namespace gradflow::internal

#endif  // GRADFLOW_GRAPH_SHAPE_STORE_H_
