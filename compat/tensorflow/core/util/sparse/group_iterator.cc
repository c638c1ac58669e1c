#include "tensorflow/core/util/sparse/group_iterator.h"

#include "tensorflow/core/platform/logging.h"

namespace tensorflow {
namespace sparse {

std::vector<int64_t> Group::group() const {
  std::vector<int64_t> result;
  for (size_t i = 0; i < groups_->group_dims_.size(); ++i) result.push_back(group_at(i));
  return result;
}

int64_t Group::group_at(size_t i) const {
  const Tensor& ix = groups_->ix_;
  return ix.matrix<int64_t>()(begin_, groups_->group_dims_[i]);
}

TTypes<int64_t>::UnalignedConstMatrix Group::indices() const {
  const Tensor ix = groups_->ix_.Slice(begin_, end_);
  return ix.matrix<int64_t>();
}

GroupIterable::GroupIterable(Tensor ix, Tensor vals, int dims, VarDimArray group_dims)
    : ix_(std::move(ix)),
      vals_(std::move(vals)),
      group_dims_(group_dims.begin(), group_dims.end()) {
  CHECK(ix_.dims() == 2 && ix_.dim_size(1) == dims) << "the indices are " << ix_.DebugString();
  for (const int64_t d : group_dims_) CHECK(d >= 0 && d < dims) << "there is no dimension " << d;
}

GroupIterable::IteratorStep GroupIterable::at(int64_t loc) const {
  CHECK(loc >= 0 && loc <= ix_.dim_size(0)) << "there is no entry " << loc;
  return IteratorStep(this, loc);
}

int64_t GroupIterable::EndOfGroup(int64_t loc) const {
  const auto ix = ix_.matrix<int64_t>();
  int64_t end = loc;
  while (end < ix_.dim_size(0) && GroupMatches(ix, loc, end)) ++end;
  return end;
}

}  // namespace sparse
}  // namespace tensorflow
