// Columns of features: reads the features of many tf.Example messages into tensors.
#ifndef GRADFLOW_OPS_PARSING_FEATURE_COLUMNS_H_
#define GRADFLOW_OPS_PARSING_FEATURE_COLUMNS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/tensor_shape.h"
#include "gradflow/core/types.h"

namespace gradflow {

enum class FeatureKind { kSparse, kDense, kRagged };

// A feature to read.
struct FeatureColumn {
  FeatureKind kind = FeatureKind::kSparse;
  tstring key;
  DataType dtype = DT_INVALID;
  // The rest describes a dense column. The shape of a value.
  PartialTensorShape shape;
  bool is_variable = false;
  // The number of elements of a value, or of a row if the first dimension is not known.
  int64_t elements = 1;
  // Empty if the feature is required. Borrowed.
  const Tensor* default_value = nullptr;
};

// Sets the shape of a dense column. Only the first dimension may be unknown.
absl::Status SetShape(const PartialTensorShape& shape, FeatureColumn* column);

// Returns INVALID_ARGUMENT unless default value `k` of `name` fits the column.
absl::Status CheckDefault(absl::string_view name, const FeatureColumn& column, int k);

// Reads the columns of `serialized`, one message or a vector of messages. `names` are null, empty
// or the names of the messages for errors. The columns are ordered by their kinds. Makes outputs 0
// and later: for sparse columns the indices, the values and the shapes, the values of dense
// columns, and for ragged columns the values and the splits.
//
// The messages are tf.Example; the context of a tf.SequenceExample has the same format.
absl::Status ParseFeatures(KernelContext& ctx, const Tensor& serialized, const Tensor* names,
                           std::vector<FeatureColumn> columns);

// For shape functions: stores the shape of `serialized`, input 0. It is a scalar if `is_single`.
// Otherwise it is a vector or, if `allows_scalar`, a scalar.
absl::Status BatchShape(const ShapeContext& c, bool is_single, bool allows_scalar,
                        PartialTensorShape* batch);
// Returns the number of splits of a ragged column; 0 for one message, -1 if it is not known.
absl::StatusOr<int64_t> NumSplits(const PartialTensorShape& batch);

// Returns "example 3 ('name')" for errors.
std::string ExamplePlace(int64_t i, bool is_batch, absl::Span<const tstring> names);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_PARSING_FEATURE_COLUMNS_H_
