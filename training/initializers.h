// Initial values of variables. They depend only on the seed.
#ifndef GRADFLOW_TRAINING_INITIALIZERS_H_
#define GRADFLOW_TRAINING_INITIALIZERS_H_

#include <cstdint>

#include "gradflow/core/tensor_shape.h"
#include "gradflow/core/types.h"
#include "gradflow/graph/ops.h"
#include "gradflow/graph/scope.h"

#pragma GCC visibility push(default)
namespace gradflow {
namespace training {

// The last dimension of the shape is the number of output channels of a layer, and the dimension
// before it is the number of input channels. Any dimensions before these are the sizes of a filter.
// In the formulas below, inputs and outputs are the numbers of channels times the sizes of the
// filter.
struct InitializerOptions {
  // The shape and type of the values, and the seed of random values.
  TensorShape shape;
  DataType dtype = DT_FLOAT;
  int64_t seed = 0;
};

// All elements are `value`.
Output ConstantValues(const Scope& scope, const InitializerOptions& options, float value);
// Normally distributed values with mean 0. Values beyond 2 * stddev are drawn again.
Output TruncatedNormal(const Scope& scope, const InitializerOptions& options, float stddev);
// Uniform in [-a, a), a = sqrt(6 / (inputs + outputs)).
Output GlorotUniform(const Scope& scope, const InitializerOptions& options);
// A truncated normal distribution, whose stddev after truncation is sqrt(2 / inputs).
Output HeNormal(const Scope& scope, const InitializerOptions& options);
// A matrix with orthonormal columns, or orthonormal rows if there are fewer rows than columns. All
// dimensions except the last are flattened into the rows.
Output Orthogonal(const Scope& scope, const InitializerOptions& options);

}  // namespace training
}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_TRAINING_INITIALIZERS_H_
