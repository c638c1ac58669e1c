// StatelessRandomBinomial and StatefulRandomBinomial.
#include <cmath>
#include <cstdint>
#include <utility>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/random/generator_state.h"
#include "gradflow/ops/random/parameters.h"
#include "gradflow/ops/random/streams.h"

namespace gradflow::binomial {
namespace {

// The maximum number of attempts of the method for large means. An attempt succeeds with a
// probability of at least 0.24.
constexpr int kAttempts = 1000;

// Counts how many waiting times, which are geometrically distributed, fit in `count` trials.
double DrawSmall(double count, double prob, UniformReader* uniform) {
  const double log_failure = std::log1p(-prob);
  double trials = 0;
  for (double successes = 0;; ++successes) {
    trials += std::ceil(std::log(uniform->Next()) / log_failure);
    if (trials > count) return successes;
  }
}

// log(k!) minus Stirling's approximation.
double StirlingTail(double k) {
  constexpr double kTails[] = {0.0810614667953272,  0.0413406959554092, 0.0276779256849983,
                               0.02079067210376509, 0.0166446911898211, 0.0138761288230707,
                               0.0118967099458917,  0.0104112652619720, 0.00925546218271273,
                               0.00833056343336287};
  if (k <= 9) return kTails[static_cast<int>(k)];
  const double square = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

// Algorithm BTRS of Hoermann, "The generation of binomial random variates" (Journal of Statistical
// Computation and Simulation 46, 1993). For means of at least 10. Variables are named as in the
// paper.
double DrawLarge(double n, double p, UniformReader* uniform) {
  const double spq = std::sqrt(n * p * (1 - p));
  const double b = 1.15 + 2.53 * spq;
  const double a = -0.0873 + 0.0248 * b + 0.01 * p;
  const double c = n * p + 0.5;
  const double v_r = 0.92 - 4.2 / b;
  const double r = p / (1 - p);
  const double alpha = (2.83 + 5.1 / b) * spq;
  const double m = std::floor((n + 1) * p);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const double u = uniform->Next() - 0.5;
    double v = uniform->Next();
    const double us = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / us + b) * u + c);
    if (us >= 0.07 && v <= v_r) return k;
    if (!(k >= 0 && k <= n)) continue;
    v = std::log(v * alpha / (a / (us * us) + b));
    const double bound = (m + 0.5) * std::log((m + 1) / (r * (n - m + 1))) +
                         (n + 1) * std::log((n - m + 1) / (n - k + 1)) +
                         (k + 0.5) * std::log(r * (n - k + 1) / (k + 1)) + StirlingTail(m) +
                         StirlingTail(n - m) - StirlingTail(k) - StirlingTail(n - k);
    if (v <= bound) return k;
  }
  return m;
}

// The distribution of one batch.
struct Batch {
  double count;
  double prob;
  // True if the mean number of successes, or of failures if these are fewer, is large. The mean is
  // rounded to the type of the parameters.
  bool is_large;
};

// Draws number i. Its position in the stream depends on the method, as in TensorFlow.
double Draw(const Batch& batch, const Philox& stream, int64_t i) {
  constexpr uint64_t kSmallCounters = 42;
  const double n = batch.count;
  if (std::isnan(batch.prob) || std::isnan(n)) return std::nan("");
  if (n <= 0 || batch.prob <= 0) return 0;
  if (batch.prob >= 1) return n;
  if (std::isinf(n)) return n;
  const bool flipped = batch.prob > 0.5;
  const double p = flipped ? 1 - batch.prob : batch.prob;
  const auto place = static_cast<uint64_t>(i);
  UniformReader uniform(
      stream.Ahead(place * (batch.is_large ? kCountersPerOutput : kSmallCounters)));
  const double k = batch.is_large ? DrawLarge(n, p, &uniform) : DrawSmall(n, p, &uniform);
  return flipped ? n - k : k;
}

// Returns true for a large mean. The mean is count * prob, rounded to type T.
template <typename T>
bool IsLarge(double count, double prob) {
  if constexpr (std::is_integral_v<T>) {
    return false;
  } else {
    return static_cast<double>(static_cast<T>(count * prob)) >= 10;
  }
}

// Makes output 0. `counts_input` is the index of the input with the numbers of trials; the
// probabilities follow. `stream_of(batches, samples)` returns the stream.
template <typename StreamOf>
absl::Status Binomial(KernelContext& ctx, const TensorShape& shape, const int counts_input,
                      const StreamOf& stream_of) {
  const int probs_input = counts_input + 1;
  const DataType dtype = ctx.input_dtype(counts_input);
  if (dtype != ctx.input_dtype(probs_input) || !DispatchType(SampleTypes(), dtype, [](auto) {})) {
    return errors::InvalidArgument(
        "counts and probs must have one type of half, float, double, int32 and int64, but are ",
        DataTypeString(dtype), " and ", DataTypeString(ctx.input_dtype(probs_input)));
  }
  int64_t samples = 0;
  GRADFLOW_ASSIGN_OR_RETURN(const TensorShape batches,
                            BatchShape(ctx, shape, counts_input, probs_input + 1, &samples));
  GRADFLOW_ASSIGN_OR_RETURN(const Philox stream, stream_of(batches.num_elements(), samples));
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
  if (output->NumElements() == 0) return absl::OkStatus();
  const Parameter counts(ctx.input(counts_input), batches);
  const Parameter probs(ctx.input(probs_input), batches);
  const int64_t inner = batches.num_elements();
  bool (*is_large)(double, double) = nullptr;
  DispatchType(SampleTypes(), dtype,
               [&](auto tag) { is_large = IsLarge<typename decltype(tag)::type>; });
  const bool known = DispatchType(SampleTypes(), output->dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* const out = output->flat<T>().data();
    ParallelFor(ctx, output->NumElements(), BlockSizeForCost(200), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t b = i % inner;
        const double count = counts[b];
        const double prob = probs[b];
        const Batch batch = {count, prob, is_large(count, prob > 0.5 ? 1 - prob : prob)};
        out[i] = SampleAs<T>(Draw(batch, stream, b * samples + i / inner));
      }
    });
  });
  if (known) return absl::OkStatus();
  return errors::Unimplemented("numbers of type ", DataTypeString(output->dtype()));
}

absl::Status StatelessBinomial(KernelContext& ctx) {
  GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, ReadShape(ctx));
  return Binomial(ctx, shape, 2, [&](int64_t, int64_t) { return SeedStream(ctx, 1); });
}

// The stream is the state of a generator in a variable.
absl::Status StatefulBinomial(KernelContext& ctx) {
  GRADFLOW_ASSIGN_OR_RETURN(const int64_t algorithm, ctx.ScalarInt(1, "algorithm"));
  GRADFLOW_RETURN_IF_ERROR(CheckGeneratorAlgorithm(algorithm));
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(2, "shape"));
  GRADFLOW_ASSIGN_OR_RETURN(const DimVector dims, ctx.Ints(2, "shape"));
  const absl::StatusOr<TensorShape> shape = TensorShape::Make(dims);
  if (!shape.ok()) return errors::Prefix("shape: ", shape.status());
  return Binomial(ctx, *shape, 3, [&](int64_t batches, int64_t samples) -> absl::StatusOr<Philox> {
    // As many as TensorFlow.
    const uint64_t outputs =
        static_cast<uint64_t>(batches) * 200 * (static_cast<uint64_t>(samples) + 3) / 4;
    GRADFLOW_ASSIGN_OR_RETURN(const KeyAndCounter state, AdvanceGenerator(ctx, 0, outputs));
    return Philox(state.key, state.counter[0], state.counter[1]);
  });
}

absl::Status StatefulBinomialShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(1, 0));
  GRADFLOW_RETURN_IF_ERROR(BroadcastShapes(c.input(3), c.input(4)).status());
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, c.ShapeFromInput(2));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status BinomialShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckSourceShapes(c, Source::kSeed));
  GRADFLOW_RETURN_IF_ERROR(BroadcastShapes(c.input(2), c.input(3)).status());
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, c.ShapeFromInput(0));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

}  // namespace

void Register(Registry& registry) {
  registry.Op("StatelessRandomBinomial")
      .Group("stateless_random_ops")
      .Input("shape: S")
      .Input("seed: Tseed")
      .Input("counts: T")
      .Input("probs: T")
      .Output("output: dtype")
      .Attr("S: {int32, int64}")
      .Attr("Tseed: {int32, int64} = DT_INT64")
      .Attr("T: {half, float, double, int32, int64} = DT_DOUBLE")
      .Attr("dtype: {half, float, double, int32, int64} = DT_INT64")
      .Shape(BinomialShape)
      .Doc(R"(Returns numbers that have a binomial distribution, by a seed.

shape: A vector: the shape of the result. It ends with the shape that the parameters broadcast to.
seed: Two numbers. Equal seeds make equal numbers.
counts: The numbers of trials. The samples for infinitely many trials are infinity, or 0 as
  integers.
probs: The probabilities of success. Probabilities below 0 and above 1 count as 0 and 1. The samples
  for NaN are NaN, or 0 as integers.
output: The numbers of successes.
S: The type of `shape`.
Tseed: The type of `seed`.
T: The type of the parameters.
dtype: The type of the numbers.)");
  registry.Kernel("StatelessRandomBinomial", MakeFunctionKernel<StatelessBinomial>);
  registry.Op("StatefulRandomBinomial")
      .Group("random_ops")
      .HandWritten()
      .Input("resource: resource")
      .Input("algorithm: int64")
      .Input("shape: S")
      .Input("counts: T")
      .Input("probs: T")
      .Output("output: dtype")
      .Attr("S: {int32, int64}")
      .Attr("T: {half, float, double, int32, int64} = DT_DOUBLE")
      .Attr("dtype: {half, float, double, int32, int64} = DT_INT64")
      .Stateful()
      .Shape(StatefulBinomialShape)
      .Doc(R"(Returns numbers that have a binomial distribution, from a random generator.

resource: A variable with the state of the generator: the low and the high half of its counter, and
  its key. The op advances it.
algorithm: The algorithm, a scalar: 1 is Philox, 3 lets the device choose, and the CPU chooses
  Philox.
shape: A vector: the shape of the result. It ends with the shape that the parameters broadcast to.
counts: The numbers of trials.
probs: The probabilities of success.
output: The numbers of successes.
S: The type of `shape`.
T: The type of the parameters.
dtype: The type of the numbers.)");
  registry.Kernel("StatefulRandomBinomial", MakeFunctionKernel<StatefulBinomial>);
}

}  // namespace gradflow::binomial
