// RandomGamma and its stateless forms.
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/random/distributions.h"
#include "gradflow/ops/random/philox.h"
#include "gradflow/ops/random/streams.h"

namespace gradflow::random_gamma {
namespace {

// Reads pairs of numbers of a distribution. The second number of a pair comes first.
template <typename D>
class PairReader {
 public:
  double Next(Philox* generator) {
    if (left_ == 0) {
      pair_ = D()(generator->Next());
      left_ = 2;
    }
    return pair_[--left_];
  }

 private:
  std::array<double, 2> pair_{};
  int left_ = 0;
};

// Returns a gamma number with shape `alpha` and scale 1. Uses the method of Marsaglia and Tsang: "A
// simple method for generating gamma variables" (ACM TOMS 26, 2000). The result for a negative
// alpha is meaningless, as in TensorFlow, or NaN. An attempt succeeds with a probability of at
// least 0.9, even if alpha is NaN.
double Draw(double alpha, Philox generator) {
  PairReader<StandardNormal<double>> normal;
  PairReader<Uniform<double>> uniform;
  if (alpha == 1) return -std::log1p(-uniform.Next(&generator));
  // The method needs a shape of at least 1. For a smaller alpha, draws with alpha + 1 and scales
  // the result.
  const bool scaled = alpha < 1;
  const double d = alpha + (scaled ? 2.0 / 3 : -1.0 / 3);
  const double c = 1.0 / 3 / std::sqrt(d);
  while (true) {
    const double x = normal.Next(&generator);
    const double root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root;
    const double u = uniform.Next(&generator);
    // The first condition is cheaper and nearly implies the second.
    const bool accepted =
        u < 1 - 0.0331 * (x * x) * (x * x) || std::log(u) < 0.5 * x * x + d * (1 - v + std::log(v));
    if (!accepted) continue;
    return scaled ? d * v * std::pow(uniform.Next(&generator), 1 / alpha) : d * v;
  }
}

// Fills the output with `samples` numbers for each alpha. Alphas are the inner dimension of the
// output, but the stream has all numbers of an alpha in sequence.
template <typename T>
void Fill(const KernelContext& ctx, const Philox& stream, const Tensor& alphas, int64_t samples,
          Tensor* output) {
  const T* const alpha = alphas.flat<T>().data();
  T* const out = output->flat<T>().data();
  const int64_t inner = alphas.NumElements();
  ParallelFor(ctx, output->NumElements(), BlockSizeForCost(100), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t a = i % inner;
      const uint64_t place = static_cast<uint64_t>(a * samples + i / inner);
      out[i] = T(Draw(static_cast<double>(alpha[a]), stream.Ahead(place * kCountersPerOutput)));
    }
  });
}

absl::Status FillGamma(KernelContext& ctx, const Philox& stream, int alpha, Tensor* output) {
  const Tensor& alphas = ctx.input(alpha);
  if (output->NumElements() == 0) return absl::OkStatus();
  if (alphas.dtype() != output->dtype()) {
    return errors::InvalidArgument("alpha must be of type ", DataTypeString(output->dtype()),
                                   ", but is ", DataTypeString(alphas.dtype()));
  }
  const int64_t samples = output->NumElements() / alphas.NumElements();
  const bool known = DispatchType(TypeList<half, float, double>(), alphas.dtype(), [&](auto tag) {
    Fill<typename decltype(tag)::type>(ctx, stream, alphas, samples, output);
  });
  if (known) return absl::OkStatus();
  return errors::InvalidArgument("alpha must be half, float or double, but is ",
                                 DataTypeString(alphas.dtype()));
}

class RandomGamma final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) { return state_.Init(construction); }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_ASSIGN_OR_RETURN(TensorShape shape, ReadShape(ctx));
    shape.AppendShape(ctx.input(1).shape());
    if (!shape.IsValid()) {
      return errors::InvalidArgument(
          "the samples have more elements or dimensions than a tensor "
          "can have");
    }
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
    const uint64_t size = static_cast<uint64_t>(output->NumElements());
    return FillGamma(ctx, state_.Reserve(size * kCountersPerOutput), 1, output);
  }

 private:
  StatefulStream state_;
};

template <Source S>
absl::Status StatelessGamma(KernelContext& ctx) {
  constexpr int kAlpha = NumSourceInputs(S);
  GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, ReadShape(ctx));
  GRADFLOW_ASSIGN_OR_RETURN(const Philox stream,
                            S == Source::kSeed ? SeedStream(ctx, 1) : KeyStream(ctx, 1));
  const TensorShape& alpha = ctx.input(kAlpha).shape();
  const int outer = shape.dims() - alpha.dims();
  if (outer < 0 || shape.dim_sizes().subspan(outer) != alpha.dim_sizes()) {
    return errors::InvalidArgument("shape must end with the shape of alpha, but they are ",
                                   shape.DebugString(), " and ", alpha.DebugString());
  }
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
  return FillGamma(ctx, stream, kAlpha, output);
}

absl::Status GammaShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 1));
  GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape samples, c.ShapeFromInput(0));
  const PartialTensorShape& alpha = c.input(1);
  if (samples.unknown_rank() || alpha.unknown_rank()) return absl::OkStatus();
  DimVector dims;
  for (int d = 0; d < samples.dims(); ++d) dims.push_back(samples.dim_size(d));
  for (int d = 0; d < alpha.dims(); ++d) dims.push_back(alpha.dim_size(d));
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, PartialTensorShape::Make(dims));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

template <Source S>
absl::Status StatelessGammaShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckSourceShapes(c, S));
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, c.ShapeFromInput(0));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

}  // namespace

void Register(Registry& registry) {
  registry.Op("RandomGamma")
      .Group("random_ops")
      .Input("shape: S")
      .Input("alpha: T")
      .Output("output: T")
      .Attr("seed: int = 0")
      .Attr("seed2: int = 0")
      .Attr("S: {int32, int64}")
      .Attr("T: {half, float, double}")
      .Stateful()
      .Shape(GammaShape)
      .Doc(R"(Returns numbers that have a gamma distribution.

shape: A vector: the shape of the samples of each element of `alpha`.
alpha: A tensor of shape parameters. The scale is 1. The samples for negative parameters have no
  meaning, and are NaN below -2/3.
output: The samples. The shape is `shape` followed by the shape of `alpha`.
seed: With `seed2`, selects the stream of numbers, which each run continues. If both are zero, the
  system selects one.
seed2: The second half of the seed.
S: The type of `shape`.
T: The type of `alpha`.)");
  registry.Kernel("RandomGamma", MakeKernel<RandomGamma>);

  registry.Op("StatelessRandomGammaV2")
      .Group("stateless_random_ops")
      .Input("shape: T")
      .Input("seed: Tseed")
      .Input("alpha: dtype")
      .Output("output: dtype")
      .Attr("dtype: {half, float, double}")
      .Attr("T: {int32, int64}")
      .Attr("Tseed: {int32, int64} = DT_INT64")
      .Shape(StatelessGammaShape<Source::kSeed>)
      .Doc(R"(Returns numbers that have a gamma distribution, by a seed.

shape: A vector: the shape of the result, which ends with the shape of `alpha`.
seed: Two numbers. Equal seeds make equal numbers.
alpha: A tensor of shape parameters. The scale is 1. The samples for negative parameters have no
  meaning, and are NaN below -2/3.
output: The samples.
dtype: The type of `alpha`.
T: The type of `shape`.
Tseed: The type of `seed`.)");
  registry.Kernel("StatelessRandomGammaV2", MakeFunctionKernel<StatelessGamma<Source::kSeed>>);

  registry.Op("StatelessRandomGammaV3")
      .Group("stateless_random_ops_v2")
      .Input("shape: shape_dtype")
      .Input("key: uint64")
      .Input("counter: uint64")
      .Input("alg: int32")
      .Input("alpha: dtype")
      .Output("output: dtype")
      .Attr("dtype: {half, float, double}")
      .Attr("shape_dtype: {int32, int64} = DT_INT32")
      .Shape(StatelessGammaShape<Source::kKey>)
      .Doc(R"(Returns numbers that have a gamma distribution, by a key and a counter.

shape: A vector: the shape of the result, which ends with the shape of `alpha`.
key: A vector of one number: the key of Philox.
counter: A vector: its first two numbers are the counter of Philox, low half first.
alg: The algorithm: 1 is Philox, 3 lets the device choose, and the CPU chooses Philox.
alpha: A tensor of shape parameters. The scale is 1. The samples for negative parameters have no
  meaning, and are NaN below -2/3.
output: The samples.
dtype: The type of `alpha`.
shape_dtype: The type of `shape`.)");
  registry.Kernel("StatelessRandomGammaV3", MakeFunctionKernel<StatelessGamma<Source::kKey>>);
}

}  // namespace gradflow::random_gamma
