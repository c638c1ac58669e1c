// What the tests of the math ops compare with, computed in float64 one element at a time, and ways
// to run a kernel that OpTester does not have.
#ifndef GRADFLOW_TESTS_TESTING_OP_REFERENCE_H_
#define GRADFLOW_TESTS_TESTING_OP_REFERENCE_H_

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/types.h"
#include "gradflow/proto/node_def.pb.h"
#include "tests/ops/op_test_util.h"

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

// A node with attribute T, without inputs.
NodeDef MakeNode(absl::string_view op, DataType type);
// Output 0 of the kernel for `node`, to which the inputs belong. Their types are not checked.
absl::StatusOr<Tensor> RunKernel(NodeDef node, std::vector<Tensor> inputs);
// Runs an op with one output on 1, 2, 3 and 8 threads, and expects the same bits.
void ExpectSameBitsOnThreads(OpTester* tester);

}  // namespace testing
}  // namespace gradflow

#endif  // GRADFLOW_TESTS_TESTING_OP_REFERENCE_H_
