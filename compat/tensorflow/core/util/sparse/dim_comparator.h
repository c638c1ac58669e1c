// DimComparator: compares rows of an index matrix, with a given order of the dimensions.
#ifndef GRADFLOW_COMPAT_CORE_UTIL_SPARSE_DIM_COMPARATOR_H_
#define GRADFLOW_COMPAT_CORE_UTIL_SPARSE_DIM_COMPARATOR_H_

#include <cstdint>

#include "absl/types/span.h"
#include "tensorflow/core/framework/tensor_types.h"
#include "tensorflow/core/platform/logging.h"

namespace tensorflow {
namespace sparse {

class DimComparator {
 public:
  using VarDimArray = absl::Span<const int64_t>;

  // `order` lists dimensions of `shape`, most significant first. Borrows both.
  DimComparator(const TTypes<int64_t>::Matrix& ix, VarDimArray order, VarDimArray shape)
      : ix_(ix), order_(order) {
    CHECK_LE(order.size(), shape.size()) << "the order has more dimensions than the shape";
    for (const int64_t d : order) {
      CHECK(d >= 0 && d < static_cast<int64_t>(shape.size())) << "the order has dimension " << d;
    }
  }

  // Returns true if row i precedes row j.
  bool operator()(int64_t i, int64_t j) const {
    for (const int64_t d : order_) {
      if (ix_(i, d) != ix_(j, d)) return ix_(i, d) < ix_(j, d);
    }
    return false;
  }

  // Returns -1, 0 or 1 if a row of `a` precedes, equals or follows a row of `b` in the first `dims`
  // dimensions.
  static int cmp(const TTypes<int64_t>::ConstMatrix& a, const TTypes<int64_t>::ConstMatrix& b,
                 int64_t a_row, int64_t b_row, int dims) {
    for (int d = 0; d < dims; ++d) {
      if (a(a_row, d) != b(b_row, d)) return a(a_row, d) < b(b_row, d) ? -1 : 1;
    }
    return 0;
  }

 private:
  TTypes<int64_t>::Matrix ix_;
  VarDimArray order_;
};

// A DimComparator for an order whose length is known at compile time.
template <int ORDER_DIM>
class FixedDimComparator : public DimComparator {
 public:
  FixedDimComparator(const TTypes<int64_t>::Matrix& ix, VarDimArray order, VarDimArray shape)
      : DimComparator(ix, order, shape) {
    CHECK_EQ(order.size(), static_cast<size_t>(ORDER_DIM));
  }
};

}  // namespace sparse
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_UTIL_SPARSE_DIM_COMPARATOR_H_
