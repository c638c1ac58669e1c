// The page of `gradflow quantize --report`.
#ifndef GRADFLOW_TOOLS_QUANTIZE_REPORT_H_
#define GRADFLOW_TOOLS_QUANTIZE_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "gradflow/core/tensor.h"

namespace gradflow::tools {

// The numbers of a tensor that gets a range. Ignores infinities and NaN.
class TensorHistogram {
 public:
  static constexpr int kBins = 64;

  // The bins divide [low, high], which must be finite and not empty.
  TensorHistogram(double low, double high) : low_(low), high_(high), counts_(kBins) {}

  // Adds the values of a run. Tensors of other types than float are ignored.
  void Add(const Tensor& values, double range_min, double range_max);

  double low() const { return low_; }
  double high() const { return high_; }
  const std::vector<int64_t>& counts() const { return counts_; }
  // Count the finite elements, and the elements outside of the range.
  int64_t total() const { return total_; }
  int64_t outside() const { return outside_; }

 private:
  double low_;
  double high_;
  std::vector<int64_t> counts_;
  int64_t total_ = 0;
  int64_t outside_ = 0;
};

// A tensor with its range.
struct ReportedRange {
  std::string name;
  double min;
  double max;
  TensorHistogram histogram;
};

// The squares of a product's results and of their errors, added over all runs.
struct ReportedProduct {
  std::string name;
  std::string op;
  // This product alone causes the errors, because its input is exact. Sums of the means of runs.
  double squared_results = 0;
  double squared_errors = 0;
  // The errors include the errors of all earlier products. Sums of squares.
  double total_squared_results = 0;
  double total_squared_errors = 0;
};

// Returns the page. `title` is the path of the graph.
std::string QuantizeReport(const std::string& title, const std::string& method, int64_t runs,
                           absl::Span<const ReportedProduct> products,
                           absl::Span<const ReportedRange> ranges);

}  // namespace gradflow::tools

#endif  // GRADFLOW_TOOLS_QUANTIZE_REPORT_H_
