// Where two tensors differ, and by how much. Needs no GoogleTest: its matchers (tensor_matchers.h)
// and `gradflow test` both say what this finds.
#ifndef GRADFLOW_TESTING_TENSOR_DIFF_H_
#define GRADFLOW_TESTING_TENSOR_DIFF_H_

#include <cstdint>
#include <string>
#include <vector>

#include "gradflow/core/tensor.h"
#include "gradflow/core/types.h"

namespace gradflow {
namespace testing {

// How far an element may be from the one expected. NaN and infinities are only close to themselves,
// and so are all elements that are not numbers. Of a complex number either part counts by itself.
class Tolerance {
 public:
  // The same bits; any NaN equals any other, and 0 is not -0.
  static Tolerance Exact() { return Tolerance(Kind::kExact, 0, 0, 0); }
  // |actual - expected| <= atol + rtol * |expected|
  static Tolerance Near(double atol, double rtol) { return Tolerance(Kind::kNear, atol, rtol, 0); }
  // At most `ulps` steps from one number of the type to the next; 0 and -0 are none apart. Integers
  // must be equal. A negative number allows what 0 does.
  static Tolerance Ulps(int64_t ulps) { return Tolerance(Kind::kUlps, 0, 0, ulps); }
  // Near() as a few roundings in the type leave it: for float 1e-6 + 1e-5 * |expected|. Exact for
  // what is not floating-point.
  static Tolerance ForType(DataType dtype);

  // What it was made with.
  bool is_exact() const { return kind_ == Kind::kExact; }
  bool in_ulps() const { return kind_ == Kind::kUlps; }
  double atol() const { return atol_; }
  double rtol() const { return rtol_; }
  int64_t ulps() const { return ulps_; }
  // "" for an exact one, "within 2 ulps", "within 1e-06 + 1e-05 * |expected|"
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

// What DiffTensors found.
struct TensorDiff {
  // An element that differs.
  struct Element {
    // Where it is in row-major order.
    int64_t position = 0;
    // "[0,2]: 1.5, expected 1.25 (difference 0.25, 2097152 ulps)"
    std::string text;
  };

  // Type, shape and elements agree.
  bool ok() const { return mismatch.empty() && differing == 0; }
  // "type is int32, expected float", "shape is [2], expected [3]"; then no elements are compared.
  std::string mismatch;
  int64_t elements = 0;
  // How many elements are further off than allowed: the first ones of them, and, where they are
  // finite numbers, the one that is furthest off.
  int64_t differing = 0;
  std::vector<Element> first;
  Element furthest;

  // "2 of 6 elements differ: [0,2]: 1.5, expected ...; [1,2]: ..."; "" if ok().
  std::string Line() const;
  // The same with an element a line.
  std::string Text() const;
};

// Compares type, shape and elements, and describes up to `max_elements` of those that differ.
TensorDiff DiffTensors(const Tensor& actual, const Tensor& expected, const Tolerance& tolerance,
                       int max_elements = 5);

// The elements of a numeric or bool tensor as doubles, of a complex number both parts; empty for
// other types.
std::vector<double> AsDoubles(const Tensor& tensor);

}  // namespace testing
}  // namespace gradflow

#endif  // GRADFLOW_TESTING_TENSOR_DIFF_H_
