// Central finite differences of a scalar of a graph.
#ifndef GRADFLOW_EXAMPLES_QAT_BLOCK_FINITE_DIFFERENCES_H_
#define GRADFLOW_EXAMPLES_QAT_BLOCK_FINITE_DIFFERENCES_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "gradflow/core/tensor.h"
#include "gradflow/runtime/session/session.h"

namespace qat_block {

using Feeds = std::vector<std::pair<std::string, gradflow::Tensor>>;

// Returns the gradient of the double scalar `loss` with respect to each element of the float tensor
// `variable`, at `value`: (loss(v + step) - loss(v - step)) / (2 * step).
absl::StatusOr<gradflow::Tensor> FiniteDifferences(gradflow::Session& session, const Feeds& feeds,
                                                   const std::string& loss,
                                                   const std::string& variable,
                                                   const gradflow::Tensor& value, float step);

// Returns |a - b| / |b| in the Euclidean norm over all elements; 0 if they are equal.
double RelativeDistance(const gradflow::Tensor& a, const gradflow::Tensor& b);

}  // namespace qat_block

#endif  // GRADFLOW_EXAMPLES_QAT_BLOCK_FINITE_DIFFERENCES_H_
