#include "gradflow/testing/tensor_matchers.h"

namespace gradflow {
namespace {

// The number of values in messages.
constexpr int64_t kPrintedValues = 20;

}  // namespace

void PrintTo(const Tensor& tensor, std::ostream* os) { *os << tensor.DebugString(kPrintedValues); }

void PrintTo(const absl::StatusOr<Tensor>& tensor, std::ostream* os) {
  if (tensor.ok()) {
    PrintTo(*tensor, os);
  } else {
    *os << tensor.status();
  }
}

namespace testing {

bool TensorMatcher::MatchAndExplain(const Tensor& actual, std::ostream* os) const {
  const TensorDiff diff = DiffTensors(actual, expected_, tolerance_);
  if (!diff.ok() && os != nullptr) {
    *os << (diff.mismatch.empty() ? "" : "whose ") << diff.Text();
  }
  return diff.ok();
}

bool TensorMatcher::MatchAndExplain(const absl::StatusOr<Tensor>& actual, std::ostream* os) const {
  if (actual.ok()) return MatchAndExplain(*actual, os);
  if (os != nullptr) *os << "which is an error";
  return false;
}

void TensorMatcher::DescribeTo(std::ostream* os) const {
  const std::string tolerance = tolerance_.DebugString();
  *os << (tolerance.empty() ? "equals" : "is " + tolerance + " of") << " "
      << expected_.DebugString(kPrintedValues);
}

void TensorMatcher::DescribeNegationTo(std::ostream* os) const {
  *os << "not (";
  DescribeTo(os);
  *os << ")";
}

bool ShapeMatcher::MatchAndExplain(const PartialTensorShape& shape, std::ostream* os) const {
  if (os != nullptr) *os << "which is " << shape.DebugString();
  return shape.DebugString() == text_;
}

bool ShapeMatcher::MatchAndExplain(const absl::StatusOr<PartialTensorShape>& shape,
                                   std::ostream* os) const {
  if (shape.ok()) return MatchAndExplain(*shape, os);
  if (os != nullptr) *os << "whose status is " << shape.status();
  return false;
}

}  // namespace testing
}  // namespace gradflow
