#include "examples/qat_block/finite_differences.h"

#include <cmath>

#include "gradflow/core/status.h"

namespace qat_block {

using gradflow::Tensor;

absl::StatusOr<Tensor> FiniteDifferences(gradflow::Session& session, const Feeds& feeds,
                                         const std::string& loss, const std::string& variable,
                                         const Tensor& value, float step) {
  Feeds all = feeds;
  const auto loss_at = [&](int64_t i, float x) -> absl::StatusOr<double> {
    // Each run gets a new tensor, because a run may still hold the previous tensor.
    GRADFLOW_ASSIGN_OR_RETURN(Tensor moved, value.DeepCopy());
    moved.flat<float>()(i) = x;
    all.resize(feeds.size());
    all.emplace_back(variable, std::move(moved));
    std::vector<Tensor> outputs;
    GRADFLOW_RETURN_IF_ERROR(session.Run(all, {loss}, {}, &outputs));
    return outputs[0].scalar<double>()();
  };
  GRADFLOW_ASSIGN_OR_RETURN(Tensor result, Tensor::Allocate(gradflow::DT_FLOAT, value.shape()));
  for (int64_t i = 0; i < value.NumElements(); ++i) {
    const float x = value.flat<float>()(i);
    // In float32, the actual step differs from `step` by rounding errors.
    const float high = x + step;
    const float low = x - step;
    GRADFLOW_ASSIGN_OR_RETURN(const double loss_high, loss_at(i, high));
    GRADFLOW_ASSIGN_OR_RETURN(const double loss_low, loss_at(i, low));
    result.flat<float>()(i) =
        static_cast<float>((loss_high - loss_low) / (static_cast<double>(high) - low));
  }
  return result;
}

double RelativeDistance(const Tensor& a, const Tensor& b) {
  double difference = 0;
  double norm = 0;
  const auto x = a.flat<float>();
  const auto y = b.flat<float>();
  if (x.size() != y.size()) return std::nan("");
  for (int64_t i = 0; i < x.size(); ++i) {
    difference += std::pow(static_cast<double>(x(i)) - y(i), 2);
    norm += std::pow(static_cast<double>(y(i)), 2);
  }
  return difference == 0 ? 0 : std::sqrt(difference / norm);
}

}  // namespace qat_block
