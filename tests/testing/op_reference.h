// Reference implementations for tests of ops. They compute in float64, one element at a time.
#ifndef GRADFLOW_TESTS_TESTING_OP_REFERENCE_H_
#define GRADFLOW_TESTS_TESTING_OP_REFERENCE_H_

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/types.h"

namespace gradflow {
namespace testing {

// Returns a tensor with the values, each rounded once to `dtype`, which must be a real type or
// bool.
Tensor FromDoubles(DataType dtype, const TensorShape& shape, const std::vector<double>& values);
// Returns f(x) for each element.
Tensor UnaryReference(const Tensor& x, absl::FunctionRef<double(double)> f);
// Returns f(x, y) for each element, with broadcasting.
Tensor BinaryReference(const Tensor& x, const Tensor& y, DataType dtype,
                       absl::FunctionRef<double(double, double)> f);
// Returns f of the elements that are reduced to each result. The elements are in order.
Tensor ReductionReference(const Tensor& x, const std::vector<int32_t>& axes, bool keep_dims,
                          absl::FunctionRef<double(const std::vector<double>&)> f);

struct ReductionCase {
  TensorShape shape;
  std::vector<int32_t> axes;

  std::string DebugString() const;
};
// Returns shapes around the sizes at which reductions change their layout.
std::vector<ReductionCase> ReductionLayouts();
// Returns a small random shape and some of its axes.
ReductionCase RandomReduction(std::mt19937* random);

// Returns a tensor of shape `shape`. Its element at `index` is element source_index(index) of
// `source` in row-major order. This is the reference for ops that only move elements.
Tensor Rearranged(const Tensor& source, const TensorShape& shape,
                  const std::function<int64_t(const std::vector<int64_t>& index)>& source_index);

}  // namespace testing
}  // namespace gradflow

#endif  // GRADFLOW_TESTS_TESTING_OP_REFERENCE_H_
