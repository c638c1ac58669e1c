// What the tests of ops compare with, computed in float64 one element at a time.
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

// A tensor of these values, each rounded once to the type, which is real or bool.
Tensor FromDoubles(DataType dtype, const TensorShape& shape, const std::vector<double>& values);
// f of each element of x.
Tensor UnaryReference(const Tensor& x, absl::FunctionRef<double(double)> f);
// f of the elements of x and y, broadcast to one shape.
Tensor BinaryReference(const Tensor& x, const Tensor& y, DataType dtype,
                       absl::FunctionRef<double(double, double)> f);
// f of the elements that go into each result of a reduction, in their order.
Tensor ReductionReference(const Tensor& x, const std::vector<int32_t>& axes, bool keep_dims,
                          absl::FunctionRef<double(const std::vector<double>&)> f);

struct ReductionCase {
  TensorShape shape;
  std::vector<int32_t> axes;

  std::string DebugString() const;
};
// Shapes around the sizes at which a reduction is laid out differently.
std::vector<ReductionCase> ReductionLayouts();
// A small shape and some of its axes.
ReductionCase RandomReduction(std::mt19937* random);

// The tensor of `shape` whose element at `index` is element number source_index(index) of `source`,
// in row-major order. What an op that only moves elements should give.
Tensor Rearranged(const Tensor& source, const TensorShape& shape,
                  const std::function<int64_t(const std::vector<int64_t>& index)>& source_index);

}  // namespace testing
}  // namespace gradflow

#endif  // GRADFLOW_TESTS_TESTING_OP_REFERENCE_H_
