// Multinomial and StatelessMultinomial: draw classes with unnormalized log-probabilities.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/random/distributions.h"
#include "gradflow/ops/random/philox.h"
#include "gradflow/ops/random/streams.h"

namespace gradflow::multinomial {
namespace {

// The number of steps between checks for a stop of the run.
constexpr int64_t kStepsPerLook = int64_t{1} << 16;

// Stores the running sums of the unnormalized probabilities of a row. Logits that are not finite
// have probability 0. Subtracting the largest logit keeps the exponentials finite.
template <typename T>
void RunningSums(const RunContext& run, const T* logits, int64_t classes, double* sums) {
  double max = static_cast<double>(std::numeric_limits<T>::lowest());
  for (int64_t c = 0; c < classes; ++c) {
    const double logit = static_cast<double>(logits[c]);
    if (std::isfinite(logit)) max = std::max(max, logit);
  }
  double sum = 0;
  for (int64_t c = 0; c < classes; ++c) {
    if (c % kStepsPerLook == 0 && run.ShouldStop()) return;
    const double logit = static_cast<double>(logits[c]);
    if (std::isfinite(logit)) sum += std::exp(logit - max);
    sums[c] = sum;
  }
}

// Draws row `row` of the samples. The random numbers of a row follow the numbers of the previous
// row.
template <typename Index>
void DrawRow(const RunContext& run, const Philox& stream, const double* sums, int64_t classes,
             int64_t row, int64_t samples, Index* output) {
  const uint64_t first = static_cast<uint64_t>(row) * static_cast<uint64_t>(samples);
  PhiloxReader reader(stream.Ahead(first / 2));
  if (first % 2 != 0) {
    reader.Next();
    reader.Next();
  }
  for (int64_t s = 0; s < samples; ++s) {
    if (s % kStepsPerLook == 0 && run.ShouldStop()) return;
    const uint32_t high = reader.Next();
    const double point = UnitNumbers<double>::Make(high, reader.Next()) * sums[classes - 1];
    output[s] = static_cast<Index>(std::upper_bound(sums, sums + classes, point) - sums);
  }
}

absl::StatusOr<TensorShape> SamplesShape(const KernelContext& ctx) {
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckRank(0, "logits", 2));
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckScalar(1, "num_samples"));
  GRADFLOW_ASSIGN_OR_RETURN(const int64_t samples, ctx.ScalarInt(1, "num_samples"));
  if (samples < 0) {
    return errors::InvalidArgument("num_samples must not be negative, but is ", samples);
  }
  const int64_t rows = ctx.input(0).dim_size(0);
  const int64_t classes = ctx.input(0).dim_size(1);
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  if (rows > kMax || classes > kMax) {
    return errors::InvalidArgument("logits must have at most ", kMax,
                                   " rows and columns, but has shape ",
                                   ctx.input(0).shape().DebugString());
  }
  if (classes == 0) return errors::InvalidArgument("logits must have at least one column");
  return TensorShape::Make({rows, samples});
}

absl::Status Draw(KernelContext& ctx, const Philox& stream, const TensorShape& shape) {
  const Tensor& logits = ctx.input(0);
  const int64_t classes = logits.dim_size(1);
  const int64_t samples = shape.dim_size(1);
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
  if (output->NumElements() == 0) return absl::OkStatus();
  Tensor sums;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_DOUBLE, logits.shape(), &sums));
  double* const all_sums = sums.flat<double>().data();
  bool known = DispatchType(FloatingTypes(), logits.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* const all_logits = logits.flat<T>().data();
    const double cost = 20.0 * static_cast<double>(classes) + 40.0 * static_cast<double>(samples);
    ParallelFor(ctx, shape.dim_size(0), BlockSizeForCost(cost), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        double* const row_sums = all_sums + row * classes;
        RunningSums(ctx.run(), all_logits + row * classes, classes, row_sums);
        if (output->dtype() == DT_INT32) {
          DrawRow(ctx.run(), stream, row_sums, classes, row, samples,
                  output->flat<int32_t>().data() + row * samples);
        } else {
          DrawRow(ctx.run(), stream, row_sums, classes, row, samples,
                  output->flat<int64_t>().data() + row * samples);
        }
      }
    });
  });
  if (known) return absl::OkStatus();
  return errors::Unimplemented("logits of type ", DataTypeString(logits.dtype()));
}

class Multinomial final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) { return state_.Init(construction); }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, SamplesShape(ctx));
    // A sample takes two numbers. Like TensorFlow, reserves numbers for a multiple of four samples.
    const uint64_t padded = 2 * ((static_cast<uint64_t>(shape.dim_size(1)) + 3) / 4 * 4);
    const bool empty = shape.num_elements() == 0;
    const uint64_t rows = empty ? 0 : static_cast<uint64_t>(shape.dim_size(0));
    return Draw(ctx, state_.Reserve(rows * padded * kCountersPerOutput), shape);
  }

 private:
  StatefulStream state_;
};

absl::Status StatelessMultinomial(KernelContext& ctx) {
  GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, SamplesShape(ctx));
  GRADFLOW_ASSIGN_OR_RETURN(const Philox stream, SeedStream(ctx, 2));
  return Draw(ctx, stream, shape);
}

absl::Status MultinomialShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 2));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(1, 0));
  if (c.num_inputs() == 3) GRADFLOW_RETURN_IF_ERROR(CheckSeedShape(c, 2));
  int64_t columns = -1;
  std::vector<int64_t> samples;
  GRADFLOW_ASSIGN_OR_RETURN(const bool known, c.IntsFromInput(1, &samples));
  if (known && samples.size() == 1) {
    columns = samples[0];
    if (columns < 0) {
      return errors::InvalidArgument("num_samples must not be negative, but is ", columns);
    }
  }
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape,
                            PartialTensorShape::Make({c.Dim(0, 0), columns}));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

}  // namespace

void Register(Registry& registry) {
  const DataTypeVector types = {DT_HALF, DT_BFLOAT16, DT_FLOAT, DT_DOUBLE};

  registry.Op("Multinomial")
      .Group("random_ops")
      .Input("logits: T")
      .Input("num_samples: int32")
      .Output("output: output_dtype")
      .Attr("seed: int = 0")
      .Attr("seed2: int = 0")
      .Attr(
          "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, "
          "uint64}")
      .Attr("output_dtype: {int32, int64} = DT_INT64")
      .Stateful()
      .Shape(MultinomialShape)
      .Doc(R"(Returns classes that are drawn independently, with replacement.

logits: A matrix with a row of unnormalized log-probabilities for each distribution. Logits that
  are not finite stand for probability 0. There are kernels for floating-point types.
num_samples: A scalar: the number of samples of each distribution.
output: A matrix with a row of samples for each distribution: indices of columns. If no logit of a
  row is finite, the samples are the number of columns.
seed: With `seed2`, selects the stream of numbers, which each run continues. If both are zero, the
  system selects one.
seed2: The second half of the seed.
T: The type of `logits`.
output_dtype: The type of the samples.)");
  registry.Kernel("Multinomial", MakeKernel<Multinomial>).Types("T", types);

  registry.Op("StatelessMultinomial")
      .Group("stateless_random_ops")
      .Input("logits: T")
      .Input("num_samples: int32")
      .Input("seed: Tseed")
      .Output("output: output_dtype")
      .Attr(
          "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, "
          "uint64}")
      .Attr("Tseed: {int32, int64} = DT_INT64")
      .Attr("output_dtype: {int32, int64} = DT_INT64")
      .Shape(MultinomialShape)
      .Doc(R"(Returns classes that are drawn independently, with replacement, by a seed.

logits: A matrix with a row of unnormalized log-probabilities for each distribution. Logits that
  are not finite stand for probability 0. There are kernels for floating-point types.
num_samples: A scalar: the number of samples of each distribution.
seed: Two numbers. Equal seeds make equal samples.
output: A matrix with a row of samples for each distribution: indices of columns. If no logit of a
  row is finite, the samples are the number of columns.
T: The type of `logits`.
Tseed: The type of `seed`.
output_dtype: The type of the samples.)");
  registry.Kernel("StatelessMultinomial", MakeFunctionKernel<StatelessMultinomial>)
      .Types("T", types);
}

}  // namespace gradflow::multinomial
