// DiffTensors: the differences between two tensors. Independent of GoogleTest; the matchers in
// tensor_matchers.h and `gradflow test` use it.
#ifndef GRADFLOW_TESTING_TENSOR_DIFF_H_
#define GRADFLOW_TESTING_TENSOR_DIFF_H_

#include <cstdint>
#include <string>
#include <vector>

#include "gradflow/core/tensor.h"
#include "gradflow/core/types.h"

namespace gradflow {
namespace testing {

// The allowed difference between an element and its expected value. NaN, infinities and non-numeric
// elements only match themselves. The two parts of a complex number are compared separately.
class Tolerance {
 public:
  // Requires equal bits, except that all NaNs are equal. 0 differs from -0.
  static Tolerance Exact() { return Tolerance(Kind::kExact, 0, 0, 0); }
  // Requires |actual - expected| <= atol + rtol * |expected|.
  static Tolerance Near(double atol, double rtol) { return Tolerance(Kind::kNear, atol, rtol, 0); }
  // Allows a distance of `ulps` units in the last place. 0 equals -0. Integers must be equal. A
  // negative number counts as 0.
  static Tolerance Ulps(int64_t ulps) { return Tolerance(Kind::kUlps, 0, 0, ulps); }
  // Allows a few rounding errors of the type: Near(1e-6, 1e-5) for float. Exact for types that are
  // not floating-point.
  static Tolerance ForType(DataType dtype);

  // The kind, and the arguments of the function that made the tolerance.
  bool is_exact() const { return kind_ == Kind::kExact; }
  bool in_ulps() const { return kind_ == Kind::kUlps; }
  double atol() const { return atol_; }
  double rtol() const { return rtol_; }
  int64_t ulps() const { return ulps_; }
  // Returns "" for Exact(), "within 2 ulps", or "within 1e-06 + 1e-05 * |expected|".
  std::string DebugString() const;

 private:
  enum class Kind { kExact, kNear, kUlps };
  Tolerance(Kind kind, double atol, double rtol, int64_t ulps)
      : kind_(kind), atol_(atol), rtol_(rtol), ulps_(ulps) {}

  Kind kind_;
  double atol_;
  double rtol_;
  int64_t ulps_;
};

// The result of DiffTensors.
struct TensorDiff {
  // An element that differs from its expected value.
  struct Element {
    // The index of the element in row-major order.
    int64_t position = 0;
    // "[0,2]: 1.5, expected 1.25 (difference 0.25, 2097152 ulps)"
    std::string text;
  };

  // Returns true if types, shapes and elements agree.
  bool ok() const { return mismatch.empty() && differing == 0; }
  // "type is int32, expected float" or "shape is [2], expected [3]"; otherwise "". If it is not
  // empty, elements are not compared.
  std::string mismatch;
  // The number of elements of each tensor; 0 if they are not compared.
  int64_t elements = 0;
  // The number of elements that differ by more than the tolerance, the first of these elements, and
  // the element with the largest difference among finite elements. The text of `furthest` is empty
  // if there is no such element.
  int64_t differing = 0;
  std::vector<Element> first;
  Element furthest;

  // Returns "2 of 6 elements differ: [0,2]: 1.5, expected ...; [1,2]: ..."; "" if ok().
  std::string Line() const;
  // Returns Line() with each element on a separate line.
  std::string Text() const;
};

// Compares types, shapes and elements. Describes up to `max_elements` elements that differ.
TensorDiff DiffTensors(const Tensor& actual, const Tensor& expected, const Tolerance& tolerance,
                       int max_elements = 5);

// Returns the elements of a numeric or bool tensor as doubles, with both parts of complex numbers.
// Returns an empty vector for other types.
std::vector<double> AsDoubles(const Tensor& tensor);

}  // namespace testing
}  // namespace gradflow

#endif  // GRADFLOW_TESTING_TENSOR_DIFF_H_
