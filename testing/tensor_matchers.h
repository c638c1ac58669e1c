// GoogleTest matchers for Tensor and absl::StatusOr<Tensor>:
//
//   EXPECT_THAT(y, TensorEq(AsTensor<float>({1, 2})));
//   EXPECT_THAT(session.Fetch("y"), TensorNear(expected));           // default for the type
//   EXPECT_THAT(y, TensorNear(expected, /*atol=*/1e-6, /*rtol=*/1e-4));
//   EXPECT_THAT(y, TensorWithinUlps(expected, 2));
//   EXPECT_THAT(outputs, ElementsAre(TensorEq(a), TensorEq(b)));
//
// A failure shows the first elements that differ:
//
//   Value of: y
//   Expected: equals Tensor<type: float shape: [2,2] values: [1 2][3 4]>
//     Actual: Tensor<...> (of type gradflow::Tensor), 1 of 4 elements differs
//     [1,1]: 5, expected 4 (difference 1, 2097152 ulps)
#ifndef GRADFLOW_TESTING_TENSOR_MATCHERS_H_
#define GRADFLOW_TESTING_TENSOR_MATCHERS_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <ostream>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/tensor_shape.h"
#include "gradflow/testing/tensor_diff.h"

namespace gradflow {

// Print tensors and shapes in GoogleTest failures.
void PrintTo(const Tensor& tensor, std::ostream* os);
void PrintTo(const absl::StatusOr<Tensor>& tensor, std::ostream* os);
inline void PrintTo(const TensorShape& shape, std::ostream* os) { *os << shape.DebugString(); }
inline void PrintTo(const PartialTensorShape& shape, std::ostream* os) {
  *os << shape.DebugString();
}

namespace testing {

// The matcher of TensorEq, TensorNear and TensorWithinUlps.
class TensorMatcher {
 public:
  // Required by GoogleTest.
  using is_gtest_matcher = void;

  // Called by the functions below.
  TensorMatcher(Tensor expected, const Tolerance& tolerance)
      : expected_(std::move(expected)), tolerance_(tolerance) {}
  // Required by GoogleTest.
  bool MatchAndExplain(const Tensor& actual, std::ostream* os) const;
  bool MatchAndExplain(const absl::StatusOr<Tensor>& actual, std::ostream* os) const;
  void DescribeTo(std::ostream* os) const;
  void DescribeNegationTo(std::ostream* os) const;

 private:
  Tensor expected_;
  Tolerance tolerance_;
};

// Matches a tensor with the same type, shape and bits. All NaNs are equal; 0 differs from -0.
inline TensorMatcher TensorEq(const Tensor& expected) {
  return TensorMatcher(expected, Tolerance::Exact());
}
// Matches a tensor with the same type and shape whose elements are within the tolerance. Infinities
// and NaNs must be equal.
inline TensorMatcher TensorNear(const Tensor& expected, const Tolerance& tolerance) {
  return TensorMatcher(expected, tolerance);
}
// Requires |actual - expected| <= atol + rtol * |expected|.
inline TensorMatcher TensorNear(const Tensor& expected, double atol, double rtol) {
  return TensorMatcher(expected, Tolerance::Near(atol, rtol));
}
// Uses Tolerance::ForType.
inline TensorMatcher TensorNear(const Tensor& expected) {
  return TensorMatcher(expected, Tolerance::ForType(expected.dtype()));
}
// Allows a distance of `ulps` units in the last place.
inline TensorMatcher TensorWithinUlps(const Tensor& expected, int64_t ulps) {
  return TensorMatcher(expected, Tolerance::Ulps(ulps));
}

// The matcher of ShapeIs.
class ShapeMatcher {
 public:
  // Required by GoogleTest.
  using is_gtest_matcher = void;

  // Called by ShapeIs.
  explicit ShapeMatcher(absl::string_view text) : text_(text) {}
  // Required by GoogleTest.
  bool MatchAndExplain(const TensorShape& shape, std::ostream* os) const {
    return MatchAndExplain(PartialTensorShape(shape), os);
  }
  bool MatchAndExplain(const PartialTensorShape& shape, std::ostream* os) const;
  bool MatchAndExplain(const absl::StatusOr<PartialTensorShape>& shape, std::ostream* os) const;
  void DescribeTo(std::ostream* os) const { *os << "is " << text_; }
  void DescribeNegationTo(std::ostream* os) const { *os << "is not " << text_; }

 private:
  std::string text_;
};
// Matches a TensorShape, a PartialTensorShape or a StatusOr of either, if its DebugString() is
// `text`: "[2,?]", "<unknown>".
inline ShapeMatcher ShapeIs(absl::string_view text) { return ShapeMatcher(text); }

}  // namespace testing
}  // namespace gradflow

#endif  // GRADFLOW_TESTING_TENSOR_MATCHERS_H_
