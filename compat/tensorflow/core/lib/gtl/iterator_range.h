// gtl::iterator_range: a range for loops.
#ifndef GRADFLOW_COMPAT_CORE_LIB_GTL_ITERATOR_RANGE_H_
#define GRADFLOW_COMPAT_CORE_LIB_GTL_ITERATOR_RANGE_H_

#include <utility>

namespace tensorflow {
namespace gtl {

template <typename Iterator>
class iterator_range {
 public:
  using value_type = decltype(*std::declval<Iterator>());
  using iterator = Iterator;
  using const_iterator = Iterator;

  iterator_range() = default;
  iterator_range(Iterator begin, Iterator end) : begin_(std::move(begin)), end_(std::move(end)) {}
  Iterator begin() const { return begin_; }
  Iterator end() const { return end_; }

 private:
  Iterator begin_ = {};
  Iterator end_ = {};
};

template <typename Iterator>
iterator_range<Iterator> make_range(Iterator begin, Iterator end) {
  return {std::move(begin), std::move(end)};
}

}  // namespace gtl
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_LIB_GTL_ITERATOR_RANGE_H_
