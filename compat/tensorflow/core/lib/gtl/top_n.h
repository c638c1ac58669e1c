// gtl::TopN: keeps the greatest elements of a sequence.
#ifndef GRADFLOW_COMPAT_CORE_LIB_GTL_TOP_N_H_
#define GRADFLOW_COMPAT_CORE_LIB_GTL_TOP_N_H_

#include <algorithm>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

namespace tensorflow {
namespace gtl {

// `Cmp` is the order of the result: std::greater keeps the greatest, largest first.
template <class T, class Cmp = std::greater<T>>
class TopN {
 public:
  using UnsortedIterator = typename std::vector<T>::const_iterator;

  explicit TopN(size_t limit, const Cmp& cmp = Cmp()) : limit_(limit), cmp_(cmp) {}

  size_t limit() const { return limit_; }
  size_t size() const { return heap_.size(); }
  bool empty() const { return heap_.empty(); }
  void reserve(size_t n) { heap_.reserve(std::min(n, limit_)); }
  // Adds an element. Stores the element that it displaces in *dropped, unless `dropped` is null. No
  // element is displaced until there are `limit` elements.
  void push(T value, T* dropped = nullptr) {
    if (heap_.size() < limit_) {
      heap_.push_back(std::move(value));
      std::push_heap(heap_.begin(), heap_.end(), cmp_);
      return;
    }
    if (limit_ > 0 && cmp_(value, heap_.front())) {
      std::pop_heap(heap_.begin(), heap_.end(), cmp_);
      std::swap(heap_.back(), value);
      std::push_heap(heap_.begin(), heap_.end(), cmp_);
    }
    if (dropped != nullptr) *dropped = std::move(value);
  }
  // Returns the last element of the result. REQUIRES: !empty()
  const T& peek_bottom() const { return heap_.front(); }
  // Move the elements out. The caller owns the vector.
  std::vector<T>* Extract() {
    std::sort_heap(heap_.begin(), heap_.end(), cmp_);
    return ExtractUnsorted();
  }
  std::vector<T>* ExtractUnsorted() {
    auto* out = new std::vector<T>;
    out->swap(heap_);
    return out;
  }
  void ExtractNondestructive(std::vector<T>* out) const {
    *out = heap_;
    std::sort_heap(out->begin(), out->end(), cmp_);
  }
  std::vector<T>* ExtractNondestructive() const {
    auto* out = new std::vector<T>;
    ExtractNondestructive(out);
    return out;
  }
  void ExtractUnsortedNondestructive(std::vector<T>* out) const { *out = heap_; }
  std::vector<T>* ExtractUnsortedNondestructive() const { return new std::vector<T>(heap_); }
  UnsortedIterator unsorted_begin() const { return heap_.begin(); }
  UnsortedIterator unsorted_end() const { return heap_.end(); }
  Cmp* comparator() { return &cmp_; }
  void Reset() { heap_.clear(); }

 private:
  std::vector<T> heap_;
  size_t limit_;
  Cmp cmp_;
};

}  // namespace gtl
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_LIB_GTL_TOP_N_H_
