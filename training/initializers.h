// First values of variables, which depend on the seed alone.
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

// The shape and type of the values, and the seed of the random ones. The last dimension is the
// number of outputs of a layer, the one before that of its inputs, and dimensions before these are
// those of a filter.
struct InitializerOptions {
  // The shape, the type and the seed.
  TensorShape shape;
  DataType dtype = DT_FLOAT;
  int64_t seed = 0;
};

// All elements are `value`.
Output ConstantValues(const Scope& scope, const InitializerOptions& options, float value);
// Normal, without what is more than two stddevs from the mean.
Output TruncatedNormal(const Scope& scope, const InitializerOptions& options, float stddev);
// Uniform in [-a, a), a = sqrt(6 / (inputs + outputs)).
Output GlorotUniform(const Scope& scope, const InitializerOptions& options);
// Truncated normal of the stddev sqrt(2 / inputs), before truncation.
Output HeNormal(const Scope& scope, const InitializerOptions& options);
// A matrix with orthonormal columns, or rows if there are fewer of them. All dimensions but the
// last are flattened into the rows.
Output Orthogonal(const Scope& scope, const InitializerOptions& options);

}  // namespace training
}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_TRAINING_INITIALIZERS_H_
