// CheckSums() (checks.h).
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmarks/accuracy/checks.h"
#include "benchmarks/fill_normal.h"
#include "benchmarks/harness.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/runtime/session/client_session.h"

namespace gradflow::benchmarks {
namespace {

Tensor Normal(const TensorShape& shape, uint32_t seed, float mean) {
  Tensor tensor(DT_FLOAT, shape);
  FillNormal(tensor.flat<float>().data(), tensor.NumElements(), seed, mean);
  return tensor;
}

Tensor Filled(const TensorShape& shape, float value) {
  Tensor tensor(DT_FLOAT, shape);
  tensor.flat<float>().setConstant(value);
  return tensor;
}

// A compensated sum in float64, and the sum of magnitudes.
class Reference {
 public:
  void Add(double term) {
    const double sum = sum_ + term;
    const double part = sum - sum_;
    rest_ += (sum_ - (sum - part)) + (term - part);
    sum_ = sum;
    magnitude_ += std::abs(term);
  }
  double sum() const { return sum_ + rest_; }
  // Returns the error of `found` relative to factor * this sum, in units of 2^-24 times the sum of
  // magnitudes.
  double Error(float found, double factor = 1) const {
    const double error = std::abs(found - factor * sum());
    return error == 0 ? 0 : error / (std::abs(factor) * magnitude_) * 0x1p24;
  }

 private:
  double sum_ = 0;
  double rest_ = 0;
  double magnitude_ = 0;
};

// The mapping of a tensor's elements to channels.
struct ChannelLayout {
  TensorShape shape;
  bool channels_first;

  int64_t channels() const { return shape.dim_size(channels_first ? 1 : shape.dims() - 1); }
  // Returns the channel of element i, for a batch of 1.
  int64_t ChannelOf(int64_t i) const {
    return channels_first ? i / (shape.num_elements() / channels()) : i % channels();
  }
};

template <typename Term>
std::vector<Reference> Sums(const ChannelLayout& layout, const Term& term) {
  std::vector<Reference> sums(layout.channels());
  for (int64_t i = 0; i < layout.shape.num_elements(); ++i) {
    sums[layout.ChannelOf(i)].Add(term(i));
  }
  return sums;
}

// Returns the larger of two errors. NaN counts as the largest error.
double Worse(double a, double b) { return a >= b || std::isnan(a) ? a : b; }

double WorstError(const std::vector<Reference>& sums, const Tensor& found, double factor = 1) {
  double worst = 0;
  for (size_t c = 0; c < sums.size(); ++c) {
    worst = Worse(worst, sums[c].Error(found.flat<float>()(c), factor));
  }
  return worst;
}

bool Report(const std::string& what, double error) {
  constexpr double kAllowed = 4;
  std::printf("%-78s %5.2f * 2^-24%s\n", what.c_str(), error,
              error <= kAllowed ? "" : "  TOO MUCH");
  std::fflush(stdout);
  return error <= kAllowed;
}

bool CheckFakeQuant(const TensorShape& shape, float mean) {
  const bool per_channel = shape.dims() > 1;
  const ChannelLayout layout = {per_channel ? shape : TensorShape({shape.num_elements(), 1}),
                                false};
  const Tensor g = Normal(shape, 1, mean);
  const Tensor x = Normal(shape, 2, 0);
  const TensorShape range({layout.channels()});
  // Nudging leaves this range unchanged.
  constexpr float kMin = -0.5f;
  constexpr float kMax = kMin + 255 * 0.5f / 128;
  Scope root = Scope::NewRootScope();
  std::vector<Output> fetches;
  if (per_channel) {
    const ops::FakeQuantWithMinMaxVarsPerChannelGradient gradient(root, g, x, Filled(range, kMin),
                                                                  Filled(range, kMax));
    fetches = {gradient.backprop_wrt_min, gradient.backprop_wrt_max};
  } else {
    const ops::FakeQuantWithMinMaxVarsGradient gradient(root, g, x, kMin, kMax);
    fetches = {gradient.backprop_wrt_min, gradient.backprop_wrt_max};
  }
  std::vector<Tensor> outputs;
  Check(ClientSession(root).Run(fetches, &outputs));
  const float* const dy = g.flat<float>().data();
  const float* const values = x.flat<float>().data();
  const double below =
      WorstError(Sums(layout, [&](int64_t i) { return values[i] < kMin ? dy[i] : 0; }), outputs[0]);
  const double above =
      WorstError(Sums(layout, [&](int64_t i) { return values[i] > kMax ? dy[i] : 0; }), outputs[1]);
  return Report(
      absl::StrCat("fake quant gradient ", shape.DebugString(), ", gradients' mean ", mean),
      std::max(below, above));
}

bool CheckBatchNorm(const ChannelLayout& layout, float mean) {
  const std::string format = layout.channels_first ? "NCHW" : "NHWC";
  const TensorShape vector({layout.channels()});
  const double count =
      static_cast<double>(layout.shape.num_elements()) / static_cast<double>(layout.channels());
  const Tensor x = Normal(layout.shape, 3, mean);
  const Tensor dy = Normal(layout.shape, 4, 0.5f);
  const float* const values = x.flat<float>().data();
  const float* const gradients = dy.flat<float>().data();
  const std::string name = absl::StrCat(layout.shape.DebugString(), " ", format, ", mean ", mean);

  Scope root = Scope::NewRootScope();
  const ops::FusedBatchNormV3 forward(root, x, Filled(vector, 1), Filled(vector, 0),
                                      Tensor(DT_FLOAT, {0}), Tensor(DT_FLOAT, {0}),
                                      ops::FusedBatchNormV3::DataFormat(format));
  // The gradient ops read the statistics of the distribution, as the reference below does.
  const Tensor mean_in = Filled(vector, mean);
  constexpr float kEpsilon = 0x1p-10f;
  const ops::FusedBatchNormGradV3 backward(
      root, dy, x, Filled(vector, 1), mean_in, Filled(vector, 1), Filled(vector, 1),
      ops::FusedBatchNormGradV3::DataFormat(format).Epsilon(kEpsilon));
  const ops::FusedBatchNormGradV3 frozen(
      root, dy, x, Filled(vector, 1), mean_in, Filled(vector, 1), Filled(vector, 1),
      ops::FusedBatchNormGradV3::DataFormat(format).Epsilon(kEpsilon).IsTraining(false));
  std::vector<Tensor> outputs;
  Check(ClientSession(root).Run(
      {forward.reserve_space_1, forward.reserve_space_2, backward.offset_backprop,
       backward.scale_backprop, frozen.offset_backprop, frozen.scale_backprop},
      &outputs));

  const std::vector<Reference> sums = Sums(layout, [&](int64_t i) { return values[i]; });
  bool good =
      Report(absl::StrCat("batch norm's mean ", name), WorstError(sums, outputs[0], 1 / count));
  const std::vector<Reference> squares = Sums(layout, [&](int64_t i) {
    const double difference = values[i] - sums[layout.ChannelOf(i)].sum() / count;
    return difference * difference;
  });
  good &= Report(absl::StrCat("batch norm's variance ", name),
                 WorstError(squares, outputs[1], 1 / count));
  const std::vector<Reference> offsets = Sums(layout, [&](int64_t i) { return gradients[i]; });
  const std::vector<Reference> products = Sums(layout, [&](int64_t i) {
    return static_cast<double>(gradients[i]) * (static_cast<double>(values[i]) - mean);
  });
  const double inverse = 1 / std::sqrt(1.0 + kEpsilon);
  good &= Report(absl::StrCat("batch norm's offset gradient ", name),
                 Worse(WorstError(offsets, outputs[2]), WorstError(offsets, outputs[4])));
  good &= Report(
      absl::StrCat("batch norm's scale gradient ", name),
      Worse(WorstError(products, outputs[3], inverse), WorstError(products, outputs[5], inverse)));
  return good;
}

}  // namespace

bool CheckSums(bool small) {
  bool good = true;
  const int64_t side = small ? 25 : 1250;
  const int64_t rows = side * side;
  for (const float mean : {0.0f, 1e4f}) {
    good &= CheckFakeQuant({rows * 64}, mean);
    good &= CheckFakeQuant({rows, 64}, mean);
    good &= CheckBatchNorm({{1, side, side, 64}, false}, mean);
    good &= CheckBatchNorm({{1, 64, side, side}, true}, mean);
  }
  return good;
}

}  // namespace gradflow::benchmarks
