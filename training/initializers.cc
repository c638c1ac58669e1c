#include "gradflow/training/initializers.h"

#include <algorithm>
#include <cmath>

#include "gradflow/core/tensor.h"
#include "gradflow/graph/const_op.h"
#include "gradflow/ops/array_ops.h"
#include "gradflow/ops/linalg_ops.h"
#include "gradflow/ops/math_ops.h"
#include "gradflow/ops/stateless_random_ops.h"

namespace gradflow {
namespace training {
namespace {

Output Dims(const Scope& scope, const TensorShape& shape) {
  Tensor dims(DT_INT64, {shape.dims()});
  for (int d = 0; d < shape.dims(); ++d) dims.flat<int64_t>()(d) = shape.dim_size(d);
  return ops::Const(scope, Input::Initializer(dims));
}
Output Seed(const Scope& scope, int64_t seed) {
  Tensor words(DT_INT64, {2});
  words.flat<int64_t>()(0) = seed;
  words.flat<int64_t>()(1) = 0;
  return ops::Const(scope, Input::Initializer(words));
}

// Returns `values`, of type float, times `factor` in the type of the options.
Output Scaled(const Scope& scope, const InitializerOptions& options, const Output& values,
              double factor) {
  const Output scaled = ops::Mul(scope, values, static_cast<float>(factor));
  return options.dtype == DT_FLOAT ? scaled : Output(ops::Cast(scope, scaled, options.dtype));
}

// Sets the numbers of inputs and outputs of a layer.
void Fans(const TensorShape& shape, double* inputs, double* outputs) {
  const int rank = shape.dims();
  double field = 1;
  for (int d = 0; d + 2 < rank; ++d) field *= static_cast<double>(shape.dim_size(d));
  const double last = rank == 0 ? 1 : static_cast<double>(shape.dim_size(rank - 1));
  *inputs = rank < 2 ? last : field * static_cast<double>(shape.dim_size(rank - 2));
  *outputs = rank < 2 ? last : field * last;
}

}  // namespace

Output ConstantValues(const Scope& scope, const InitializerOptions& options, float value) {
  const Output values = ops::Fill(scope, Dims(scope, options.shape), value);
  return options.dtype == DT_FLOAT ? values : Output(ops::Cast(scope, values, options.dtype));
}

Output TruncatedNormal(const Scope& scope, const InitializerOptions& options, float stddev) {
  const Output normal =
      ops::StatelessTruncatedNormal(scope, Dims(scope, options.shape), Seed(scope, options.seed));
  return Scaled(scope, options, normal, stddev);
}

Output GlorotUniform(const Scope& scope, const InitializerOptions& options) {
  double inputs = 1;
  double outputs = 1;
  Fans(options.shape, &inputs, &outputs);
  const Output uniform =
      ops::StatelessRandomUniform(scope, Dims(scope, options.shape), Seed(scope, options.seed));
  const Output centered = ops::Sub(scope, ops::Mul(scope, uniform, 2.0f), 1.0f);
  return Scaled(scope, options, centered, std::sqrt(6 / std::max(inputs + outputs, 1.0)));
}

Output HeNormal(const Scope& scope, const InitializerOptions& options) {
  double inputs = 1;
  double outputs = 1;
  Fans(options.shape, &inputs, &outputs);
  // The stddev of a standard normal distribution that is truncated at two stddevs.
  constexpr double kTruncated = 0.87962566103423978;
  const Output normal =
      ops::StatelessTruncatedNormal(scope, Dims(scope, options.shape), Seed(scope, options.seed));
  return Scaled(scope, options, normal, std::sqrt(2 / std::max(inputs, 1.0)) / kTruncated);
}

Output Orthogonal(const Scope& scope, const InitializerOptions& options) {
  const int rank = options.shape.dims();
  const int64_t columns = rank == 0 ? 1 : options.shape.dim_size(rank - 1);
  const int64_t rows = columns == 0 ? 0 : options.shape.num_elements() / columns;
  const TensorShape tall = {std::max(rows, columns), std::min(rows, columns)};
  const Output normal =
      ops::StatelessRandomNormal(scope, Dims(scope, tall), Seed(scope, options.seed));
  const auto qr = ops::Qr(scope, normal);
  // Multiplying by the signs of the diagonal of R makes the distribution uniform.
  Output q = ops::Mul(scope, qr.q, ops::Sign(scope, ops::MatrixDiagPart(scope, qr.r)));
  if (rows < columns) q = ops::Transpose(scope, q, {1, 0});
  return Scaled(scope, options, ops::Reshape(scope, q, Dims(scope, options.shape)), 1);
}

}  // namespace training
}  // namespace gradflow
