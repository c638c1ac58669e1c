// ShapeStore: the inferred shapes of a graph's nodes. Not for users.
#ifndef GRADFLOW_GRAPH_SHAPE_STORE_H_
#define GRADFLOW_GRAPH_SHAPE_STORE_H_

#include <array>
#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "gradflow/core/tensor_shape.h"

namespace gradflow::internal {

// Most nodes have the shape of a node shortly before them, and share it.
class ShapeStore {
 public:
  // A position in the store.
  struct Mark {
    size_t single = 0;
    size_t several = 0;
  };

  // Returns `count` shapes of unknown rank.
  const PartialTensorShape* Unknown(int count);
  // Returns shapes equal to `shapes`, which are moved from unless the store has them already.
  const PartialTensorShape* Add(absl::Span<PartialTensorShape> shapes);

  Mark mark() const { return {single_.size(), several_.size()}; }
  // Destroys the shapes that were added since `mark`.
  void Truncate(const Mark& mark);

 private:
  // The number of recent shapes that a new one is compared with.
  static constexpr int kRecent = 4;

  std::deque<PartialTensorShape> single_;
  std::vector<std::unique_ptr<PartialTensorShape[]>> several_;
  // The latest of single_, in a ring; null where there are none.
  std::array<const PartialTensorShape*, kRecent> recent_{};
  int next_recent_ = 0;
};

}  // namespace gradflow::internal

#endif  // GRADFLOW_GRAPH_SHAPE_STORE_H_
