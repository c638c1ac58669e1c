// ParameterizedTruncatedNormal and StatelessParameterizedTruncatedNormal.
#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <utility>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/indices.h"
#include "gradflow/ops/random/parameters.h"
#include "gradflow/ops/random/streams.h"

namespace gradflow::truncated_normal {
namespace {

// The maximum number of attempts to make a number. Each attempt takes two random numbers.
constexpr int kAttempts = 1000;

using FloatTypes = TypeList<half, float, double>;

// Makes numbers of one distribution after another from a stream, in groups of the numbers of a
// counter. Uses the methods of Robert, "Simulation of truncated normal variables" (Statistics and
// Computing 5, 1995): a normal proposal for distant bounds, a uniform proposal for close bounds,
// and an exponential proposal for tails.
template <typename F>
class Sampler {
 public:
  static constexpr int kGroup = UnitNumbers<F>::kPerCounter;

  explicit Sampler(const Philox& stream) : stream_(stream) {}

  // Sets the distribution. REQUIRES: stddev > 0 and min < max
  void Set(F mean, F stddev, F min, F max) {
    // The bound that is infinite or farther from the mean becomes the upper bound.
    if ((std::isinf(min) && min < 0) || max < mean) {
      std::swap(min, max);
      stddev = -stddev;
    }
    mean_ = mean;
    stddev_ = stddev;
    low_ = (min - mean) / stddev;
    high_ = (max - mean) / stddev;
  }

  // Passes numbers to `accept` until it returns false. Drops the remaining numbers of the group.
  // Returns false if kAttempts attempts have failed.
  template <typename Accept>
  bool Run(const Accept& accept) {
    constexpr F kFar = F(1.3);
    const F root = std::sqrt(low_ * low_ + F(4));
    const F cutoff = F(2) * std::exp(F(0.5) + low_ * (low_ - root) / F(4)) / (low_ + root);
    failures_ = 0;
    if ((low_ < -kFar && high_ >= 0) || (high_ > kFar && low_ <= 0)) return RunNormal(accept);
    if (high_ - low_ < cutoff) return RunUniform(accept);
    return RunExponential(accept);
  }

 private:
  template <typename Accept>
  bool RunNormal(const Accept& accept) {
    while (true) {
      for (const F z : StandardNormal<F>()(stream_.Next())) {
        if (z >= low_ && z <= high_) {
          failures_ = 0;
          if (!accept(z * stddev_ + mean_)) return true;
        } else if (++failures_ > kAttempts) {
          return false;
        }
      }
    }
  }
  template <typename Accept>
  bool RunUniform(const Accept& accept) {
    const F width = high_ - low_;
    const F offset = low_ < 0 ? F(0) : low_ * low_;
    while (true) {
      const std::array<F, kGroup> points = Uniform<F>()(stream_.Next());
      const std::array<F, kGroup> levels = Uniform<F>()(stream_.Next());
      for (int i = 0; i < kGroup; ++i) {
        const F z = points[i] * width + low_;
        if (levels[i] <= std::exp((offset - z * z) / F(2))) {
          failures_ = 0;
          if (!accept(z * stddev_ + mean_)) return true;
        } else if (++failures_ >= kAttempts) {
          return false;
        }
      }
    }
  }
  template <typename Accept>
  bool RunExponential(const Accept& accept) {
    const F alpha = (low_ + std::sqrt(low_ * low_ + F(4))) / F(2);
    while (true) {
      const std::array<F, kGroup> numbers = Uniform<F>()(stream_.Next());
      for (int i = 0; i < kGroup; i += 2) {
        const F z = -std::log(numbers[i]) / alpha + low_;
        const F x = low_ < alpha ? alpha - z : low_ - alpha;
        if (numbers[i + 1] <= std::exp(-x * x / F(2)) && z < high_) {
          failures_ = 0;
          if (!accept(z * stddev_ + mean_)) return true;
        } else if (++failures_ >= kAttempts) {
          return false;
        }
      }
    }
  }

  Philox stream_;
  F mean_ = 0;
  F stddev_ = 1;
  F low_ = 0;
  F high_ = 0;
  int failures_ = 0;
};

// The parameters of all batches.
struct Parameters {
  Parameter mean;
  Parameter stddev;
  Parameter min;
  Parameter max;

  bool IsValid(int64_t b) const {
    const double low = min[b];
    const double high = max[b];
    return stddev[b] > 0 && low < high && (std::isfinite(low) || std::isfinite(high));
  }
  absl::Status Check(const RunContext& run, int64_t batches) const {
    FirstBadIndex bad;
    ParallelFor(run, batches, BlockSizeForCost(10), [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        if (!IsValid(b)) return bad.Found(b);
      }
    });
    if (!bad.any()) return absl::OkStatus();
    const int64_t b = bad.first();
    return errors::InvalidArgument(
        "the standard deviation must be positive, and the bounds in order and not both infinite, "
        "but batch ",
        b, " has the standard deviation ", stddev[b], " and the bounds ", min[b], " and ", max[b]);
  }
};

// Makes the numbers [begin, end) of the batches, in order; each batch has `samples` numbers.
// `place` returns the output position of number i. Returns early if the run is stopped.
template <typename T, typename Place>
bool FillBlock(const RunContext& run, const Parameters& parameters, const Philox& stream,
               int64_t samples, int64_t begin, int64_t end, T* out, const Place& place) {
  using F = std::conditional_t<std::is_same_v<T, double>, double, float>;
  constexpr int64_t kPart = int64_t{1} << 16;
  Sampler<F> sampler(stream);
  bool stops = false;
  for (int64_t i = begin; i < end && !stops;) {
    const int64_t b = i / samples;
    const int64_t last = std::min(end, (b + 1) * samples);
    sampler.Set(static_cast<F>(parameters.mean[b]), static_cast<F>(parameters.stddev[b]),
                static_cast<F>(parameters.min[b]), static_cast<F>(parameters.max[b]));
    const bool is_done = sampler.Run([&](F value) {
      out[place(i)] = static_cast<T>(value);
      ++i;
      stops = i % kPart == 0 && run.ShouldStop();
      return i < last && !stops;
    });
    if (!is_done) return false;
  }
  return true;
}

absl::Status Failed() {
  return errors::InvalidArgument("no number between the bounds was found in ", kAttempts,
                                 " attempts");
}

// Each block of numbers starts at its own counters. TensorFlow's blocks depend on its threads, so
// only the numbers of the first block equal TensorFlow's.
constexpr int64_t kBlock = 64;

template <typename T, typename Place>
absl::Status FillBlocks(KernelContext& ctx, const Parameters& parameters, int64_t samples,
                        int64_t block, const Philox& stream, uint64_t numerator,
                        uint64_t denominator, T* out, int64_t n, const Place& place) {
  std::atomic<bool> failed{false};
  ParallelFor(ctx, NumBlocks(n, block), 1, [&](int64_t first, int64_t last) {
    for (int64_t k = first; k < last; ++k) {
      const uint64_t counters = (static_cast<uint64_t>(k) * numerator) / denominator;
      if (!FillBlock(ctx.run(), parameters, stream.Ahead(counters), samples, k * block,
                     std::min(n, (k + 1) * block), out, place)) {
        failed = true;
      }
    }
  });
  return failed ? Failed() : absl::OkStatus();
}

// ---- The stateful op: parameters are scalars or vectors along dimension 0 ----

absl::Status CheckVector(const KernelContext& ctx, int i, const char* name, int64_t batches) {
  const TensorShape& shape = ctx.input(i).shape();
  if (shape.dims() == 0 ||
      (shape.dims() == 1 && (shape.dim_size(0) == 1 || shape.dim_size(0) == batches))) {
    return absl::OkStatus();
  }
  return errors::InvalidArgument(name, " must be a scalar or a vector of 1 or ", batches,
                                 " elements, but has shape ", shape.DebugString());
}

class TruncatedNormalKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) { return state_.Init(construction); }

  absl::Status Compute(KernelContext& ctx) const override {
    constexpr const char* kNames[] = {"shape", "means", "stdevs", "minvals", "maxvals"};
    GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, ReadShape(ctx));
    if (shape.dims() == 0) return errors::InvalidArgument("shape must not be empty");
    int64_t batches = shape.dim_size(0);
    bool same = true;
    for (int i = 1; i < 5; ++i) {
      GRADFLOW_RETURN_IF_ERROR(CheckVector(ctx, i, kNames[i], batches));
      if (ctx.input_dtype(i) != ctx.expected_output_dtype(0)) {
        return errors::InvalidArgument(kNames[i], " must be ",
                                       DataTypeString(ctx.expected_output_dtype(0)));
      }
      // As in TensorFlow, vectors of bounds use one stream per batch.
      const bool may_have_one = i <= 2;
      same &= ctx.input(i).dims() == 0 || (may_have_one && ctx.input(i).NumElements() == 1);
    }
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
    const int64_t n = output->NumElements();
    int64_t samples = batches == 0 ? 0 : n / batches;
    if (same) {
      // As in TensorFlow, equal parameters are split into batches.
      samples = 100;
      batches = NumBlocks(n, samples);
    }
    // The number of counters that TensorFlow reserves.
    const uint64_t per_batch = uint64_t{2} * kAttempts * (static_cast<uint64_t>(samples) + 3);
    const Philox stream = state_.Reserve(static_cast<uint64_t>(batches) * per_batch / 4);
    if (n == 0) return absl::OkStatus();
    const TensorShape batch_shape({batches});
    const Parameters parameters = {
        Parameter(ctx.input(1), batch_shape), Parameter(ctx.input(2), batch_shape),
        Parameter(ctx.input(3), batch_shape), Parameter(ctx.input(4), batch_shape)};
    GRADFLOW_RETURN_IF_ERROR(parameters.Check(ctx.run(), same ? 1 : batches));
    // A block consists of whole batches.
    const int64_t per_block = std::max<int64_t>(1, kBlock / samples);
    absl::Status status =
        errors::Unimplemented("numbers of type ", DataTypeString(output->dtype()));
    DispatchType(FloatTypes(), output->dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      status = FillBlocks(ctx, parameters, samples, per_block * samples, stream,
                          static_cast<uint64_t>(per_block) * per_batch, 4, output->flat<T>().data(),
                          n, [](int64_t i) { return i; });
    });
    return status;
  }

 private:
  StatefulStream state_;
};

absl::Status TruncatedNormalShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 1));
  for (int i = 1; i < 5; ++i) {
    if (c.input(i).dims() <= 1) continue;
    return errors::InvalidArgument("input ", i, " must be a scalar or a vector, but has shape ",
                                   c.input(i).DebugString());
  }
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, c.ShapeFromInput(0));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

// ---- The stateless op, whose parameters are broadcast ----

absl::Status StatelessTruncatedNormal(KernelContext& ctx) {
  constexpr int kMeans = 2;
  constexpr int kEnd = 6;
  GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, ReadShape(ctx));
  GRADFLOW_ASSIGN_OR_RETURN(const Philox stream, SeedStream(ctx, 1));
  for (int i = kMeans; i < kEnd; ++i) {
    if (ctx.input_dtype(i) == ctx.expected_output_dtype(0)) continue;
    return errors::InvalidArgument("input ", i, " must be ",
                                   DataTypeString(ctx.expected_output_dtype(0)), ", but is ",
                                   DataTypeString(ctx.input_dtype(i)));
  }
  int64_t samples = 0;
  GRADFLOW_ASSIGN_OR_RETURN(const TensorShape batches,
                            BatchShape(ctx, shape, kMeans, kEnd, &samples));
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
  const int64_t n = output->NumElements();
  if (n == 0) return absl::OkStatus();
  const Parameters parameters = {Parameter(ctx.input(2), batches), Parameter(ctx.input(3), batches),
                                 Parameter(ctx.input(4), batches),
                                 Parameter(ctx.input(5), batches)};
  const int64_t inner = batches.num_elements();
  GRADFLOW_RETURN_IF_ERROR(parameters.Check(ctx.run(), inner));
  absl::Status status = errors::Unimplemented("numbers of type ", DataTypeString(output->dtype()));
  DispatchType(FloatTypes(), output->dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr uint64_t kGroup = UnitNumbers<T>::kPerCounter;
    status = FillBlocks(ctx, parameters, samples, kBlock, stream, uint64_t{kBlock} * 2 * kAttempts,
                        kGroup, output->flat<T>().data(), n,
                        [&](int64_t i) { return i % samples * inner + i / samples; });
  });
  return status;
}

absl::Status StatelessTruncatedNormalShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckSourceShapes(c, Source::kSeed));
  PartialTensorShape batches = c.input(2);
  for (int i = 3; i < 6; ++i) {
    GRADFLOW_ASSIGN_OR_RETURN(batches, BroadcastShapes(batches, c.input(i)));
  }
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, c.ShapeFromInput(0));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

}  // namespace

void Register(Registry& registry) {
  registry.Op("ParameterizedTruncatedNormal")
      .Group("random_ops")
      .Input("shape: T")
      .Input("means: dtype")
      .Input("stdevs: dtype")
      .Input("minvals: dtype")
      .Input("maxvals: dtype")
      .Output("output: dtype")
      .Attr("seed: int = 0")
      .Attr("seed2: int = 0")
      .Attr("dtype: {half, bfloat16, float, double}")
      .Attr("T: {int32, int64}")
      .Stateful()
      .Shape(TruncatedNormalShape)
      .Doc(R"(Returns numbers from truncated normal distributions.

The first dimension of the result is the dimension of the batches. Each batch has a distribution.
Parameters are vectors with an element for each batch, or scalars. Half is computed in float. There
is no kernel for bfloat16.

shape: A vector of at least one element: the shape of the result.
means: The means of the normal distributions, before truncation.
stdevs: The standard deviations of the normal distributions; positive.
minvals: The lower bounds, which may be -infinity.
maxvals: The upper bounds, which may be infinity if the lower bounds are finite.
output: The numbers.
seed: With `seed2`, selects the stream of numbers, which each run continues. If both are zero, the
  system selects one.
seed2: The second half of the seed.
dtype: The type of the parameters and the numbers.
T: The type of `shape`.)");
  registry.Kernel("ParameterizedTruncatedNormal", MakeKernel<TruncatedNormalKernel>)
      .Types("dtype", {DT_HALF, DT_FLOAT, DT_DOUBLE});

  registry.Op("StatelessParameterizedTruncatedNormal")
      .Group("stateless_random_ops")
      .Input("shape: S")
      .Input("seed: Tseed")
      .Input("means: dtype")
      .Input("stddevs: dtype")
      .Input("minvals: dtype")
      .Input("maxvals: dtype")
      .Output("output: dtype")
      .Attr("S: {int32, int64}")
      .Attr("Tseed: {int32, int64} = DT_INT64")
      .Attr("dtype: {half, float, double}")
      .Shape(StatelessTruncatedNormalShape)
      .Doc(R"(Returns numbers from truncated normal distributions, by a seed.

Half is computed in float.

shape: A vector: the shape of the result. It ends with the shape that the parameters broadcast to.
seed: Two numbers. Equal seeds make equal numbers.
means: The means of the normal distributions, before truncation.
stddevs: The standard deviations of the normal distributions; positive.
minvals: The lower bounds, which may be -infinity.
maxvals: The upper bounds, which may be infinity if the lower bounds are finite.
output: The numbers.
S: The type of `shape`.
Tseed: The type of `seed`.
dtype: The type of the parameters and the numbers.)");
  registry.Kernel("StatelessParameterizedTruncatedNormal",
                  MakeFunctionKernel<StatelessTruncatedNormal>);
}

}  // namespace gradflow::truncated_normal
