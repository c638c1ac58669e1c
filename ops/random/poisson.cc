// RandomPoisson, RandomPoissonV2 and StatelessRandomPoisson.
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/log_gamma.h"
#include "gradflow/ops/random/parameters.h"
#include "gradflow/ops/random/streams.h"

namespace gradflow::poisson {
namespace {

// The maximum number of attempts of the method for large rates. An attempt succeeds with a
// probability of at least 0.75, unless the numbers are too large for their type.
constexpr int kAttempts = 1000;

// Counts how many numbers in [0, 1) can be multiplied before the product is at most exp(-rate)
// (Knuth, The Art of Computer Programming, volume 2).
double DrawSmall(double rate, UniformReader* uniform) {
  const double limit = std::exp(-rate);
  double product = 1;
  for (double count = 0;; ++count) {
    product *= uniform->Next();
    if (product <= limit) return count;
  }
}

// Hoermann, "The transformed rejection method for generating Poisson random variables" (Insurance:
// Mathematics and Economics 12, 1993). For rates of at least 10. Variables are named as in the
// paper.
double DrawLarge(double rate, double max, UniformReader* uniform) {
  const double log_rate = std::log(rate);
  const double b = 0.931 + 2.53 * std::sqrt(rate);
  const double a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
  const double v_r = 0.9277 - 3.6224 / (b - 2);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const double u = uniform->Next() - 0.5;
    const double v = uniform->Next();
    const double us = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / us + b) * u + rate + 0.43);
    if (k > max) continue;
    if (us >= 0.07 && v <= v_r) return k;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    const double s = std::log(v * inverse_alpha / (a / (us * us) + b));
    const double t = -rate + k * log_rate - LogGamma(k + 1);
    if (s <= t) return k;
  }
  return rate < max ? std::floor(rate) : max;
}

// Draws a number. Each number has its own counters, so it does not depend on other numbers.
double Draw(double rate, double max, const Philox& stream) {
  if (std::isnan(rate) || (std::isinf(rate) && rate > 0)) return rate;
  UniformReader uniform(stream);
  return rate < 10 ? DrawSmall(rate, &uniform) : DrawLarge(rate, max, &uniform);
}

// Fills the output with `samples` numbers for each rate. Rates are the inner dimension of the
// output, but the stream has all numbers of a rate in sequence.
absl::Status FillPoisson(KernelContext& ctx, const Philox& stream, int input, Tensor* output) {
  const Tensor& rates = ctx.input(input);
  if (output->NumElements() == 0) return absl::OkStatus();
  const Parameter rate(rates, rates.shape());
  const int64_t inner = rates.NumElements();
  const int64_t samples = output->NumElements() / inner;
  const bool known = DispatchType(SampleTypes(), output->dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* const out = output->flat<T>().data();
    const auto max = static_cast<double>(std::numeric_limits<T>::max());
    ParallelFor(ctx, output->NumElements(), BlockSizeForCost(150), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t r = i % inner;
        const auto place = static_cast<uint64_t>(r * samples + i / inner);
        const Philox own = stream.Ahead(place * kCountersPerOutput);
        out[i] = SampleAs<T>(Draw(rate[r], max, own));
      }
    });
  });
  if (known) return absl::OkStatus();
  return errors::Unimplemented("numbers of type ", DataTypeString(output->dtype()));
}

absl::Status CheckRateType(const KernelContext& ctx, int input) {
  if (DispatchType(SampleTypes(), ctx.input_dtype(input), [](auto) {})) return absl::OkStatus();
  return errors::InvalidArgument("the rate must be half, float, double, int32 or int64, but is ",
                                 DataTypeString(ctx.input_dtype(input)));
}

class RandomPoisson final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) { return state_.Init(construction); }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckRateType(ctx, 1));
    GRADFLOW_ASSIGN_OR_RETURN(TensorShape shape, ReadShape(ctx));
    shape.AppendShape(ctx.input(1).shape());
    if (!shape.IsValid()) {
      return errors::InvalidArgument(
          "the samples have more elements or dimensions than a tensor can have");
    }
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
    const auto size = static_cast<uint64_t>(output->NumElements());
    return FillPoisson(ctx, state_.Reserve(size * kCountersPerOutput), 1, output);
  }

 private:
  StatefulStream state_;
};

absl::Status StatelessPoisson(KernelContext& ctx) {
  GRADFLOW_RETURN_IF_ERROR(CheckRateType(ctx, 2));
  GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, ReadShape(ctx));
  GRADFLOW_ASSIGN_OR_RETURN(const Philox stream, SeedStream(ctx, 1));
  int64_t samples = 0;
  GRADFLOW_RETURN_IF_ERROR(BatchShape(ctx, shape, 2, 3, &samples).status());
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
  return FillPoisson(ctx, stream, 2, output);
}

absl::Status PoissonShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 1));
  GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape samples, c.ShapeFromInput(0));
  const PartialTensorShape& rate = c.input(1);
  if (samples.unknown_rank() || rate.unknown_rank()) return absl::OkStatus();
  DimVector dims;
  for (int d = 0; d < samples.dims(); ++d) dims.push_back(samples.dim_size(d));
  for (int d = 0; d < rate.dims(); ++d) dims.push_back(rate.dim_size(d));
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, PartialTensorShape::Make(dims));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}
absl::Status StatelessPoissonShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckSourceShapes(c, Source::kSeed));
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, c.ShapeFromInput(0));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

}  // namespace

void Register(Registry& registry) {
  registry.Op("RandomPoisson")
      .Group("random_ops")
      .Input("shape: S")
      .Input("rate: dtype")
      .Output("output: dtype")
      .Attr("seed: int = 0")
      .Attr("seed2: int = 0")
      .Attr("S: {int32, int64}")
      .Attr("dtype: {half, float, double}")
      .Stateful()
      .Shape(PoissonShape)
      .Doc(R"(Returns numbers that have a Poisson distribution. RandomPoissonV2 replaces it.

shape: A vector: the shape of the samples of each element of `rate`.
rate: A tensor of rates, the means of the distributions. Negative rates count as 0. The samples of
  the rates NaN and infinity are NaN and infinity.
output: The samples. The shape is `shape` followed by the shape of `rate`.
seed: With `seed2`, selects the stream of numbers, which each run continues. If both are zero, the
  system selects one.
seed2: The second half of the seed.
S: The type of `shape`.
dtype: The type of `rate` and the numbers.)");
  registry.Kernel("RandomPoisson", MakeKernel<RandomPoisson>);

  registry.Op("RandomPoissonV2")
      .Group("random_ops")
      .Input("shape: S")
      .Input("rate: R")
      .Output("output: dtype")
      .Attr("seed: int = 0")
      .Attr("seed2: int = 0")
      .Attr("S: {int32, int64}")
      .Attr("R: {half, float, double, int32, int64} = DT_DOUBLE")
      .Attr("dtype: {half, float, double, int32, int64} = DT_INT64")
      .Stateful()
      .Shape(PoissonShape)
      .Doc(R"(Returns numbers that have a Poisson distribution.

shape: A vector: the shape of the samples of each element of `rate`.
rate: A tensor of rates, the means of the distributions. Negative rates count as 0. The samples of
  the rates NaN and infinity are NaN and infinity, or 0 as integers.
output: The samples. The shape is `shape` followed by the shape of `rate`. No sample exceeds the
  type.
seed: With `seed2`, selects the stream of numbers, which each run continues. If both are zero, the
  system selects one.
seed2: The second half of the seed.
S: The type of `shape`.
R: The type of `rate`.
dtype: The type of the numbers.)");
  registry.Kernel("RandomPoissonV2", MakeKernel<RandomPoisson>);

  registry.Op("StatelessRandomPoisson")
      .Group("stateless_random_ops")
      .Input("shape: T")
      .Input("seed: Tseed")
      .Input("lam: Rtype")
      .Output("output: dtype")
      .Attr("Rtype: {half, float, double, int32, int64}")
      .Attr("dtype: {half, float, double, int32, int64}")
      .Attr("T: {int32, int64}")
      .Attr("Tseed: {int32, int64} = DT_INT64")
      .Shape(StatelessPoissonShape)
      .Doc(R"(Returns numbers that have a Poisson distribution, by a seed.

shape: A vector: the shape of the result, which ends with the shape of `lam`.
seed: Two numbers. Equal seeds make equal numbers.
lam: A tensor of rates, the means of the distributions. Negative rates count as 0. The samples of
  the rates NaN and infinity are NaN and infinity, or 0 as integers.
output: The samples. No sample exceeds the type.
Rtype: The type of `lam`.
dtype: The type of the numbers.
T: The type of `shape`.
Tseed: The type of `seed`.)");
  registry.Kernel("StatelessRandomPoisson", MakeFunctionKernel<StatelessPoisson>);
}

}  // namespace gradflow::poisson
