// GroupIterable: the groups of consecutive entries of a sparse tensor whose indices are equal in
// some dimensions. See SparseTensor::group().
//
//   auto groups = sparse.group({0});
//   for (const Group& group : groups) Use(group.group(), group.indices(), group.values<float>());
#ifndef GRADFLOW_COMPAT_CORE_UTIL_SPARSE_GROUP_ITERATOR_H_
#define GRADFLOW_COMPAT_CORE_UTIL_SPARSE_GROUP_ITERATOR_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_types.h"

namespace tensorflow {
namespace sparse {

class GroupIterable;

// A group of entries. REQUIRES: its GroupIterable outlives it and its views
class Group {
 public:
  Group(const GroupIterable* groups, int64_t begin, int64_t end)
      : groups_(groups), begin_(begin), end_(end) {}

  // The indices that the entries share in the dimensions of the group.
  std::vector<int64_t> group() const;
  int64_t group_at(size_t i) const;
  // The indices (in all dimensions) and the values of the entries.
  TTypes<int64_t>::UnalignedConstMatrix indices() const;
  template <typename T>
  typename TTypes<T>::UnalignedVec values() const;

 private:
  const GroupIterable* groups_;
  int64_t begin_;
  int64_t end_;
};

class GroupIterable {
 public:
  using VarDimArray = absl::Span<const int64_t>;

  // Shares the indices and values, which must be sorted by the dimensions of the group.
  GroupIterable(Tensor ix, Tensor vals, int dims, VarDimArray group_dims);

  class IteratorStep {
   public:
    IteratorStep(const GroupIterable* groups, int64_t loc)
        : groups_(groups), loc_(loc), end_(groups->EndOfGroup(loc)) {}

    bool operator==(const IteratorStep& other) const {
      return groups_ == other.groups_ && loc_ == other.loc_;
    }
    bool operator!=(const IteratorStep& other) const { return !(*this == other); }
    IteratorStep& operator++() { return *this = IteratorStep(groups_, end_); }
    IteratorStep operator++(int) { return std::exchange(*this, IteratorStep(groups_, end_)); }
    Group operator*() const { return Group(groups_, loc_, end_); }
    // The number of the group's first entry.
    int64_t loc() const { return loc_; }

   private:
    const GroupIterable* groups_;
    int64_t loc_;
    int64_t end_;
  };

  IteratorStep begin() const { return IteratorStep(this, 0); }
  IteratorStep end() const { return IteratorStep(this, ix_.dim_size(0)); }
  // Returns the group that starts at entry `loc`. Ends the program unless the entry exists or is
  // end().
  IteratorStep at(int64_t loc) const;

  // Returns true if two entries are in the same group.
  template <typename TIX>
  bool GroupMatches(const TIX& ix, int64_t loc_a, int64_t loc_b) const {
    for (const int64_t d : group_dims_) {
      if (ix(loc_a, d) != ix(loc_b, d)) return false;
    }
    return true;
  }

 private:
  friend class Group;
  int64_t EndOfGroup(int64_t loc) const;

  Tensor ix_;
  Tensor vals_;
  absl::InlinedVector<int64_t, 8> group_dims_;
};

template <typename T>
typename TTypes<T>::UnalignedVec Group::values() const {
  return groups_->vals_.Slice(begin_, end_).vec<T>();
}

}  // namespace sparse
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_UTIL_SPARSE_GROUP_ITERATOR_H_
